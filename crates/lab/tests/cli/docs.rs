//! Pages agree with each other: the index of results with the verdicts, and what is modelled with what the live page cache does.
//!
//! `UPDATE=1 cargo test -p pageout-lab --test cli docs::` writes the index of results.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Pages of results, in the order of their index.
const RESULTS: [&str; 14] = [
    "fidelity",
    "twin",
    "premature-oom",
    "bisect",
    "mglru",
    "ablation",
    "tiering",
    "no-writeback",
    "zswap-lru",
    "live-speed",
    "live-durability",
    "bindings",
    "custom-policy",
    "speed",
];

/// The size limit of a page of results. Longer tables belong to an appendix in `docs/results/data`.
const PAGE_BYTES: usize = 6 * 1024;

const INDEX_HEAD: &str = "\
# Results

One page per question: verdict, method, main table, reasons, limitations. This table is generated
from the verdicts of the pages (`UPDATE=1 cargo test -p pageout-lab --test cli docs::`).

| question | verdict |
|---|---|
";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

/// Numbers as they are written: `1,024`, `0.77`, `29`.
fn numbers(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| !word.is_empty()).map(str::to_string).collect()
}

/// A page of results: its question, its verdict on one line, and the text after the verdict.
struct Results {
    title: String,
    verdict: String,
    rest: String,
}

fn results(name: &str) -> Results {
    let place = format!("docs/results/{name}.md");
    let text = page(&place);
    let (head, text) = text
        .split_once("\n\n**Verdict:** ")
        .unwrap_or_else(|| panic!("{place}: no paragraph begins with `**Verdict:** `"));
    let title = head.strip_prefix("# ").unwrap_or_else(|| panic!("{place}: line 1 is not `# TITLE`"));
    let (verdict, rest) =
        text.split_once("\n\n").unwrap_or_else(|| panic!("{place}: nothing after the verdict"));
    Results { title: title.to_string(), verdict: verdict.replace('\n', " "), rest: format!("\n{rest}") }
}

#[test]
fn each_command_has_its_chapter() {
    let page = page("docs/reference/commands.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for row in pageout_lab::commands::ROWS {
        assert!(
            headings.contains(&row.chapter),
            "{}: docs/reference/commands.md has no `## {}`",
            row.module,
            row.chapter
        );
    }
    let is_of_a_row = |heading: &&str| pageout_lab::commands::ROWS.iter().any(|row| row.chapter == *heading);
    assert!(headings.iter().filter(|heading| is_of_a_row(heading)).count() > 20);
}

#[test]
fn context_of_the_diffs_on_adding_is_in_the_files() {
    let adding = page("docs/contributing/adding.md");
    let (mut file, mut checked) = (String::new(), 0);
    for line in adding.split("```diff\n").skip(1).flat_map(|rest| rest.split("```").next().unwrap().lines()) {
        match line.strip_prefix("--- ") {
            Some(path) => file = page(path),
            None if line.starts_with(' ') => {
                assert!(file.lines().any(|of| of == &line[1..]), "no file that a diff names has `{line}`");
                checked += 1;
            }
            None => assert!(line.starts_with('+'), "`{line}` is neither context nor an addition"),
        }
    }
    assert!(checked > 8, "there are diffs");
}

#[test]
fn results_index_equals_verdicts_of_pages() {
    let mut folder: Vec<String> = std::fs::read_dir(repository().join("docs/results"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".md").map(str::to_string))
        .filter(|name| name != "README")
        .collect();
    folder.sort_unstable();
    let mut listed = RESULTS.to_vec();
    listed.sort_unstable();
    assert_eq!(listed, folder, "RESULTS lists every page of docs/results");

    let mut index = INDEX_HEAD.to_string();
    for name in RESULTS {
        let Results { title, verdict, .. } = results(name);
        writeln!(index, "| [{title}]({name}.md) | {verdict} |").unwrap();
    }
    let path = repository().join("docs/results/README.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &index).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == index,
        "docs/results/README.md is out of date\nUPDATE=1 cargo test -p pageout-lab --test cli docs::"
    );
}

#[test]
fn verdict_figures_occur_in_their_page() {
    let mut missing = Vec::new();
    for name in RESULTS {
        let Results { verdict, rest, .. } = results(name);
        let of_page = numbers(&rest);
        for number in numbers(&verdict).into_iter().filter(|number| !of_page.contains(number)) {
            missing.push(format!("docs/results/{name}.md: {number} occurs only in the verdict"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn results_page_has_each_section_within_6_kib() {
    let mut wrong = Vec::new();
    for name in RESULTS {
        let Results { title, rest, .. } = results(name);
        if !title.ends_with('?') {
            wrong.push(format!("docs/results/{name}.md: the title is not a question: found `{title}`"));
        }
        let mut at = 0;
        for section in ["\n## Method\n", "\n## Result\n", "\n## Why", "\n## Limitations\n"] {
            match rest[at..].find(section) {
                Some(found) => at += found,
                None => wrong
                    .push(format!("docs/results/{name}.md: no section `{}` in its place", section.trim())),
            }
        }
        let bytes = page(&format!("docs/results/{name}.md")).len();
        if bytes > PAGE_BYTES {
            wrong.push(format!(
                "docs/results/{name}.md: {bytes} bytes, expected at most {PAGE_BYTES}: move tables to data/"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn results_appendix_is_linked_from_a_page() {
    let pages: String = RESULTS.iter().map(|name| page(&format!("docs/results/{name}.md"))).collect();
    let appendices: Vec<_> = std::fs::read_dir(repository().join("docs/results/data")).unwrap().collect();
    assert!(!appendices.is_empty(), "there are appendices");
    for appendix in appendices {
        let name = appendix.unwrap().file_name().into_string().unwrap();
        let is_linked =
            pages.contains(&format!("(data/{name})")) || pages.contains(&format!("(data/{name}#"));
        assert!(is_linked, "no page of docs/results links to data/{name}");
    }
}

#[test]
fn what_is_not_modelled_live_is_what_the_live_cache_lacks() {
    let modelled = page("docs/explanation/modelled.md");
    let row = modelled.lines().find(|line| line.starts_with("| where it runs |")).unwrap();
    let not_yet = row.split('|').map(str::trim).rfind(|cell| !cell.is_empty()).unwrap();
    let live = page("crates/live/README.md").to_lowercase();
    let (_, lacks) = live.split_once("## not there").unwrap();
    for part in not_yet.trim_start_matches("live ").split([',']).flat_map(|part| part.split(" and ")) {
        assert!(
            lacks.contains(part.trim()),
            "live memory has `{part}`, or its README does not say that it lacks it"
        );
    }
}
