//! `docs/reference/kernel-files.md`: which files of the kernel are here, made of the rows that serve them:
//! `UPDATE=1 cargo test -p pageout-engine --test suite kernel_files`.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads a page

use pageout_engine::{CGROUP_FILES, Holds, MACHINE_FILES, NODE_FILES, ZRAM_FILES, damon_files};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Kernel files

A scenario's events read and write these files under the paths shown, in the kernel's formats. The
simulated machine serves `/proc/pressure/{memory,io,cpu}` and each cgroup's `memory.pressure`,
`io.pressure` and `cpu.pressure`. The engine serves all others.

The page is generated from the rows that serve the files:
`UPDATE=1 cargo test -p pageout-engine --test suite kernel_files`.
";

fn opened(is_readable: bool, is_writable: bool) -> &'static str {
    match (is_readable, is_writable) {
        (true, true) => "read, write",
        (true, false) => "read",
        (false, _) => "write",
    }
}

fn table(page: &mut String, title: &str, rows: impl IntoIterator<Item = (String, &'static str, String)>) {
    write!(page, "\n## {title}\n\n| file | access | content |\n|---|---|---|\n").unwrap();
    for (name, opened, doc) in rows {
        writeln!(page, "| `{name}` | {opened} | {} |", doc.replace('|', "\\|")).unwrap();
    }
}

#[test]
fn the_page_of_kernel_files_is_what_the_rows_say() {
    let mut page = HEAD.to_owned();
    let of_group = CGROUP_FILES.iter().map(|file| {
        let initially = match file.holds {
            Holds::Limit(initial) | Holds::Switch(initial) => format!(" At first: {initial}."),
            _ => String::new(),
        };
        let root = if file.is_in_root { " The root has it, too." } else { "" };
        let doc = format!("{}{initially}{root}", file.doc);
        (file.name.to_owned(), opened(file.is_readable(), file.is_writable()), doc)
    });
    table(&mut page, "Cgroup: `/sys/fs/cgroup/PATH`", of_group);
    let of_machine = MACHINE_FILES.iter().map(|file| {
        let opened = opened(file.is_readable(), file.is_writable());
        (file.path.to_owned(), opened, file.doc().to_owned())
    });
    table(&mut page, "Machine", of_machine);
    let of_nodes = NODE_FILES.iter().map(|file| {
        (file.name.to_owned(), opened(file.is_readable(), file.is_writable()), file.doc.to_owned())
    });
    table(&mut page, "Memory node: `/sys/devices/system/node/nodeN`", of_nodes);
    let of_tiers = [("nodelist".to_owned(), "read", "Nodes of the tier.".to_owned())];
    table(&mut page, "Memory tier: `/sys/devices/virtual/memory_tiering/memory_tierN`", of_tiers);
    let of_zram = ZRAM_FILES.iter().map(|file| (file.name.to_owned(), "read", file.doc.to_owned()));
    table(&mut page, "Compressed swap: `/sys/block/zramN`", of_zram);
    let of_damon = damon_files().map(|file| (file.path.replace('*', "N"), "read", file.doc.to_owned()));
    table(&mut page, "DAMON: `/sys/kernel/mm/damon/admin/kdamonds`", of_damon);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/kernel-files.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let stale = page.lines().zip(written.lines()).find(|(made, there)| made != there);
    assert!(
        page == written,
        "docs/reference/kernel-files.md is out of date{}\nUPDATE=1 cargo test -p pageout-engine --test suite kernel_files",
        stale.map_or(String::new(), |(made, there)| format!(":\n  there: {there}\n  now:   {made}"))
    );
}
