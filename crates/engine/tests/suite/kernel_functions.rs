//! `docs/contributing/kernel-functions.md`: where a function of the kernel is here, by name.
//!
//! Whoever takes over the part of a kernel function has its name as `#[doc(alias = "shrink_active_list")]`, so that the documentation's search
//! finds it, too. The page is made of these: `UPDATE=1 cargo test -p pageout-engine --test suite kernel_functions`.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads source files

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Functions that have the kernel's own name, which rustdoc accepts as no alias.
const SAME_NAME: &[&str] = &[
    "add_to_swap",
    "alloc_demote_folio",
    "alloc_pages",
    "can_demote",
    "exit_mmap",
    "finish_fault",
    "folio_check_references",
    "folio_mark_dirty",
    "folio_referenced",
    "inactive_is_low",
    "lru_add_drain",
    "migrate_folio",
    "out_of_memory",
    "page_mkclean",
    "pageout",
    "prepare_scan_control",
    "promotion_candidate",
    "queue_io",
    "set_mempolicy",
    "should_compact_retry",
    "should_continue_reclaim",
    "should_reclaim_retry",
    "sort_folio",
    "swap_cluster_readahead",
    "throttle_direct_reclaim",
    "too_many_isolated",
    "workingset_eviction",
    "workingset_refault",
    "zswap_load",
    "zswap_store",
];

const HEAD: &str = "# Kernel functions

If you know `mm/`, this page shows which function, type or thread of pageout corresponds to a
function of the kernel. The counterpart may do less or more; its documentation states what it does.
Files are in `crates/engine/src/`, files with the prefix `mm:` in `crates/mm/src/`. The search of the
API documentation finds the names too (`cargo doc --open --document-private-items`).

The page is generated from the `#[doc(alias)]` attributes in the sources:
`UPDATE=1 cargo test -p pageout-engine --test suite kernel_functions`.

| in the kernel | in pageout | file |
|---|---|---|
";

/// A row of the page: the kernel's name, ours, and the file.
type Row = (String, String, String);

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        path.read_dir().unwrap().for_each(|entry| sources(&entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|suffix| suffix == "rs") {
        found.push(path.to_owned());
    }
}

/// The name of what a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let line = line.strip_prefix("const ").unwrap_or(line);
    let name = ["fn ", "struct ", "enum "].iter().find_map(|kind| line.strip_prefix(kind))?;
    name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
}

/// The type whose methods follow a line, if it is the head of an `impl`.
fn implemented(line: &str) -> Option<&str> {
    let head = line.strip_prefix("impl")?.strip_suffix('{')?;
    let head = head.split(" for ").last()?;
    let name = head.rsplit(' ').find(|word| !word.is_empty())?;
    name.split('<').next()
}

/// The rows of one file: what has an alias, or one of [`SAME_NAME`].
fn rows_of(file: &str, text: &str, rows: &mut Vec<Row>) {
    let (mut aliases, mut of) = (Vec::new(), None);
    for line in text.lines().take_while(|line| !line.starts_with("mod tests {")) {
        if line.starts_with("impl") || line == "}" {
            of = implemented(line);
        }
        if let Some(alias) = line.trim_start().strip_prefix("#[doc(alias = \"") {
            aliases.push(alias.trim_end_matches("\")]").to_owned());
        } else if let Some(name) = defined(line) {
            aliases.extend(SAME_NAME.contains(&name).then(|| name.to_owned()));
            let here = of.map_or_else(|| name.to_owned(), |of| format!("{of}::{name}"));
            rows.extend(aliases.drain(..).map(|alias| (alias, here.clone(), file.to_owned())));
        }
    }
    assert!(aliases.is_empty(), "{file}: {aliases:?} name nothing");
}

#[test]
fn the_page_of_kernel_functions_is_what_the_aliases_say() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut rows = Vec::new();
    for (root, mark) in [("src", ""), ("../mm/src", "mm:")] {
        let root = crates.join(root);
        let mut found = Vec::new();
        sources(&root, &mut found);
        for path in found {
            let file = format!("{mark}{}", path.strip_prefix(&root).unwrap().to_str().unwrap());
            rows_of(&file, &std::fs::read_to_string(&path).unwrap(), &mut rows);
        }
    }
    rows.sort_by_key(|(kernel, here, file)| {
        (kernel.trim_start_matches('_').to_owned(), file.clone(), here.clone())
    });
    for name in SAME_NAME {
        let number = rows.iter().filter(|(kernel, ..)| kernel == name).count();
        assert_eq!(number, 1, "{name} is defined {number} times: it is no row of its own");
    }
    let mut page = HEAD.to_owned();
    for (kernel, here, file) in rows {
        let path = match file.strip_prefix("mm:") {
            Some(file) => format!("mm/src/{file}"),
            None => format!("engine/src/{file}"),
        };
        writeln!(page, "| `{kernel}` | `{here}` | [{file}](../../crates/{path}) |").unwrap();
    }
    let path = crates.join("../../docs/contributing/kernel-functions.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let stale = page.lines().zip(written.lines()).find(|(made, there)| made != there);
    assert!(
        page == written,
        "docs/contributing/kernel-functions.md is out of date{}\nUPDATE=1 cargo test -p pageout-engine --test suite kernel_functions",
        stale.map_or(String::new(), |(made, there)| format!(":\n  there: {there}\n  now:   {made}"))
    );
}
