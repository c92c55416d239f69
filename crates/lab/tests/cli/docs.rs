//! Pages with the same facts agree: the index of results with its pages, the table of regressions with its scenarios, and the list of unmodelled parts with the live page cache. The index and two pages
//! of the reference are generated here: `UPDATE=1 cargo test -p pageout-lab --test cli docs::`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{check_success, pageout};

/// Pages of results, in the order of their index.
const RESULTS: [&str; 18] = [
    "fidelity",
    "folios",
    "twin",
    "premature-oom",
    "bisect",
    "mglru",
    "ablation",
    "tiering",
    "hotness",
    "no-writeback",
    "zswap-lru",
    "live-seeds",
    "live-speed",
    "policies",
    "live-durability",
    "bindings",
    "custom-policy",
    "speed",
];

/// The size limit of a page of results. Longer tables belong to an appendix in `docs/results/data`.
const PAGE_BYTES: usize = 6 * 1024;

/// The size limit of a tutorial.
const TUTORIAL_BYTES: usize = 6 * 1024;

/// The size limit of the prose of all results, appendices included.
const RESULTS_PROSE_BYTES: usize = 80 * 1024;

const INDEX_HEAD: &str = "\
# Results

One page per question: verdict, method, main table, reasons, limitations. Simulated figures are the
same on every machine. This table is generated from the verdicts of the pages (`UPDATE=1 cargo test
-p pageout-lab --test cli docs::`).

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

/// The text without code blocks, tables and HTML comments.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let is_prose = |line: &&str| {
        let line = line.trim_start();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code && !line.starts_with('|') && !line.starts_with("<!--")
    };
    text.split_inclusive('\n').filter(is_prose).collect()
}

/// The Markdown files of a folder of the repository, by name.
fn pages_in(folder: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(repository().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")).collect();
    names.sort_unstable();
    names
        .into_iter()
        .map(|name| {
            let text = page(&name);
            (name, text)
        })
        .collect()
}

#[test]
fn prose_excludes_code_tables_and_comments() {
    let text = "# A\n\nText.\n\n```sh\nrm x\n| y\n```\n<!-- not run -->\n| a |\n|---|\n- Item.\n";
    assert_eq!(prose(text), "# A\n\nText.\n\n- Item.\n");
}

#[test]
fn results_prose_stays_within_80_kib() {
    let pages = [pages_in("docs/results"), pages_in("docs/results/data")].concat();
    let mut sizes: Vec<(usize, &str)> =
        pages.iter().map(|(name, text)| (prose(text).len(), name.as_str())).collect();
    let all: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    assert!(
        all <= RESULTS_PROSE_BYTES,
        "docs/results: {all} bytes of prose, expected at most {RESULTS_PROSE_BYTES}; the largest: {:?}",
        &sizes[..5]
    );
}

#[test]
fn tutorial_stays_within_6_kib() {
    let pages = pages_in("docs/tutorials");
    assert!(pages.len() >= 5, "the tutorials were found");
    for (name, text) in pages {
        let bytes = text.len();
        assert!(bytes <= TUTORIAL_BYTES, "{name}: {bytes} bytes, expected at most {TUTORIAL_BYTES}");
    }
}

/// The value of `question`, which is one line in each scenario.
fn question_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("question = \"")?.strip_suffix('"').map(str::to_owned));
    line.unwrap_or_else(|| panic!("{}: no line `question = \"...\"`", path.display()))
}

fn scenarios_in(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "toml")).collect()
}

#[test]
fn scenarios_readme_names_the_bug_of_each_regression() {
    let readme = page("scenarios/README.md");
    for path in scenarios_in("scenarios/regressions") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let row = format!("| [{name}](regressions/{name}.toml) | ");
        assert!(
            readme.lines().any(|line| line.starts_with(&row)),
            "scenarios/README.md has no row for {name}"
        );
    }
}

#[test]
fn scenario_question_has_under_15_words() {
    let folders = [
        "",
        "/damon",
        "/hotness",
        "/large",
        "/mglru-v4",
        "/no-writeback",
        "/pghot",
        "/predictions",
        "/regressions",
        "/zswap-lru",
    ];
    let paths: Vec<PathBuf> =
        folders.iter().flat_map(|folder| scenarios_in(&format!("scenarios{folder}"))).collect();
    assert!(paths.len() > 100, "the folders have the scenarios");
    for path in paths {
        let question = question_of(&path);
        let words = question.split_whitespace().count();
        assert!(words < 15 && question.ends_with('?'), "{}: {words} words: {question}", path.display());
    }
}

#[test]
fn what_is_not_modelled_live_is_what_the_live_cache_lacks() {
    let modelled = page("docs/explanation/modelled.md");
    let row = modelled.lines().find(|line| line.starts_with("| where it runs |")).unwrap();
    let not_yet = row.split('|').map(str::trim).rfind(|cell| !cell.is_empty()).unwrap();
    let live = page("crates/live/README.md").to_lowercase();
    let (_, lacks) = live.split_once("## not supported").unwrap();
    for part in not_yet.trim_start_matches("live ").split([',']).flat_map(|part| part.split(" and ")) {
        assert!(
            lacks.contains(part.trim()),
            "live memory has `{part}`, or its README does not say that it lacks it"
        );
    }
}

/// Fails unless the page has this text; with `UPDATE=1` writes it first.
fn check_generated(path: &str, made: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(repository().join(path), made).unwrap();
    }
    let written = std::fs::read_to_string(repository().join(path)).unwrap_or_default();
    let stale = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(
        written == made,
        "{path} is out of date: UPDATE=1 cargo test -p pageout-lab --test cli docs::\n{stale:?}"
    );
}

const KEYS_HEAD: &str = "# Scenario keys

This page lists every key of a scenario. A name in brackets stands for an element of a list: `memcg[].memory.max` is
`memory.max` of a `[[memcg]]`. `pageout keys TEXT` prints the same for keys whose path contains TEXT, with the
[versions](kernels.md) of each kernel rule. [Write a scenario](scenarios.md) explains sizes and durations.

The page is generated: `UPDATE=1 cargo test -p pageout-lab --test cli docs::`.
";

#[test]
fn scenario_keys_page_is_what_keys_prints() {
    let output = pageout(&repository(), &["keys", "--json"]);
    check_success(&output);
    let keys: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = |key: &Value, name: &str| {
        let text = key[name].as_str().unwrap_or_default();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.replace('|', "\\|").replace('<', "&lt;")
    };
    let mut page = KEYS_HEAD.to_owned();
    let mut part = "";
    for key in keys.as_array().unwrap() {
        let name = key["key"].as_str().unwrap();
        let of_part = name.split(['.', '[']).next().unwrap();
        let title = if name.contains(['.', '[']) { of_part } else { "Scenario" };
        if title != part {
            part = title;
            write!(page, "\n## {title}\n\n| key | allowed | default | meaning |\n|---|---|---|---|\n")
                .unwrap();
        }
        let [allowed, default, meaning] = ["allowed", "default", "meaning"].map(|name| cell(key, name));
        writeln!(page, "| `{name}` | {allowed} | {default} | {meaning} |").unwrap();
    }
    check_generated("docs/reference/scenario-keys.md", &page);
}

const CATALOGUE_HEAD: &str = "# Scenario catalogue

This page lists the shipped scenarios with their questions. Run one with `pageout run scenarios/NAME.toml`, and its
variants with `pageout compare scenarios/NAME.toml`. [The folder's README](../../scenarios/README.md) explains the groups.

The page is generated: `UPDATE=1 cargo test -p pageout-lab --test cli docs::`.
";

/// The scenarios of a folder and those below it, by folder and name.
fn scenarios(folder: &Path, found: &mut BTreeMap<(String, String), String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, found);
            continue;
        }
        let Some(text) = path
            .extension()
            .filter(|suffix| *suffix == "toml")
            .map(|_| std::fs::read_to_string(&path).unwrap())
        else {
            continue;
        };
        let document: toml_edit::DocumentMut = text.parse().unwrap();
        if let Some(question) = document.get("question").and_then(|item| item.as_str()) {
            let place = path.strip_prefix(repository().join("scenarios")).unwrap();
            let folder = place.parent().unwrap().to_str().unwrap().to_owned();
            let name = place.file_stem().unwrap().to_str().unwrap().to_owned();
            found.insert((folder, name), question.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}

#[test]
fn catalogue_page_has_every_scenario() {
    let mut found = BTreeMap::new();
    scenarios(&repository().join("scenarios"), &mut found);
    assert!(found.len() > 100, "scenarios were found");
    let mut page = CATALOGUE_HEAD.to_owned();
    let mut part = None;
    for ((folder, name), question) in &found {
        if part != Some(folder) {
            part = Some(folder);
            let title = if folder.is_empty() { "Mechanisms and workloads" } else { folder };
            write!(page, "\n## {title}\n\n| scenario | question |\n|---|---|\n").unwrap();
        }
        let place = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        writeln!(page, "| [{name}](../../scenarios/{place}.toml) | {} |", question.replace('|', "\\|"))
            .unwrap();
    }
    check_generated("docs/reference/catalogue.md", &page);
}
