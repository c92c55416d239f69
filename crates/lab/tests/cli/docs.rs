//! Pages with the same facts agree: the index of results with its pages, the index of scenarios with their questions, and the list of
//! unmodelled parts with the live page cache.

use std::path::{Path, PathBuf};

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

#[test]
fn each_command_has_its_chapter() {
    let page = page("docs/commands.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for row in pageout_lab::commands::ROWS {
        assert!(
            headings.contains(&row.chapter),
            "{}: docs/commands.md has no `## {}`",
            row.module,
            row.chapter
        );
    }
    let is_of_a_row = |heading: &&str| pageout_lab::commands::ROWS.iter().any(|row| row.chapter == *heading);
    assert!(headings.iter().filter(|heading| is_of_a_row(heading)).count() > 20);
}

#[test]
fn context_of_the_diffs_on_adding_is_in_the_files() {
    let adding = page("docs/adding.md");
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
fn figures_of_the_results_index_stand_in_their_pages() {
    let mut rows = 0;
    let mut missing = Vec::new();
    for row in page("docs/results/README.md").lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(link) = cells.get(1).and_then(|cell| cell.strip_suffix(".md)")?.split_once("](")) else {
            continue;
        };
        rows += 1;
        let of_page = numbers(&page(&format!("docs/results/{}.md", link.1)));
        for number in numbers(cells[2]).into_iter().filter(|number| !of_page.contains(number)) {
            missing.push(format!("{}.md has no {number}, which its row in README.md says", link.1));
        }
    }
    assert!(rows > 10, "the index has its rows");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
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
fn scenario_index_shows_each_question() {
    let index = page("scenarios/README.md");
    for path in scenarios_in("scenarios") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let row = format!("| [{name}]({name}.toml) | {} |", question_of(&path));
        assert!(index.lines().any(|line| line == row), "scenarios/README.md has no row `{row}`");
    }
    for path in scenarios_in("scenarios/regressions") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let row = format!("| [{name}](regressions/{name}.toml) | ");
        assert!(
            index.lines().any(|line| line.starts_with(&row)),
            "scenarios/README.md has no row for {name}"
        );
    }
}

#[test]
fn scenario_question_has_under_15_words() {
    let folders =
        ["", "/large", "/mglru-v4", "/no-writeback", "/pghot", "/predictions", "/regressions", "/zswap-lru"];
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
    let modelled = page("docs/modelled.md");
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
