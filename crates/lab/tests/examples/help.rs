//! The size of help: `-h` is one screen, `--help` two, at 80 columns.

use pageout_lab::api::{self, Help};

use super::extract;

const COLUMNS: usize = 80;
/// Lines of `-h`.
const SHORT_LINES: usize = 24;
/// Lines of `--help`.
const COMPLETE_LINES: usize = 80;
/// Examples of a command.
const EXAMPLES: usize = 6;

fn faults(check: impl Fn(&Help) -> Vec<String>) -> Vec<String> {
    api::helps(COLUMNS)
        .iter()
        .flat_map(|help| check(help).into_iter().map(|fault| format!("{}: {fault}", help.command)))
        .collect()
}

/// Lines that are too long, and one fault if there are too many lines.
fn size(option: &str, text: &str, lines_max: usize) -> Vec<String> {
    let lines = text.trim_end().lines().count();
    let mut faults = Vec::new();
    if lines > lines_max {
        faults.push(format!("{option} has {lines} lines, expected at most {lines_max}"));
    }
    let is_long = |line: &&str| line.chars().count() > COLUMNS;
    faults.extend(
        text.lines().filter(is_long).map(|line| format!("{option}: more than {COLUMNS} columns: `{line}`")),
    );
    faults
}

/// The examples, each with whether a comment precedes it.
fn examples(text: &str) -> Vec<(String, bool)> {
    let is_before = |line: &&str| !line.starts_with("Examples") && !line.starts_with("Start with:");
    let lines = text.lines().skip_while(is_before).skip(1).take_while(|line| line.starts_with("  "));
    let mut examples = Vec::new();
    let (mut open, mut is_commented) = (String::new(), false);
    for line in lines {
        if open.is_empty() && line.trim_start().starts_with('#') {
            is_commented = true;
            continue;
        }
        open += line;
        if !extract::is_open(&open) {
            examples.push((std::mem::take(&mut open).trim().to_string(), is_commented));
            is_commented = false;
        }
    }
    examples
}

#[test]
fn short_help_of_each_command_fits_one_screen() {
    let faults = faults(|help| help.short.iter().flat_map(|text| size("-h", text, SHORT_LINES)).collect());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn complete_help_of_each_command_fits_two_screens() {
    let faults = faults(|help| size("--help", &help.complete, COMPLETE_LINES));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn examples_of_help_are_few_and_have_comments() {
    let faults = faults(|help| {
        let examples = examples(&help.complete);
        let mut faults = Vec::new();
        if examples.len() > EXAMPLES {
            faults.push(format!("{} examples, expected at most {EXAMPLES}", examples.len()));
        }
        let is_parent = help.command == "pageout trace" || help.command == "pageout man";
        let has_none = examples.is_empty()
            && help.command.starts_with("pageout ")
            && !help.command.starts_with("pageout help")
            && !is_parent;
        faults.extend(has_none.then(|| "no examples".to_string()));
        faults.extend(
            examples
                .into_iter()
                .filter(|(_, is_commented)| !is_commented)
                .map(|(line, _)| format!("no comment above `{line}`")),
        );
        faults
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn summary_of_each_command_is_one_imperative_line() {
    let faults = faults(|help| {
        let summary = &help.summary;
        let first = summary.split(' ').next().unwrap_or_default();
        let is_verb = first.starts_with(char::is_uppercase)
            && !["The", "What", "Which", "How", "Why", "Who", "A"].contains(&first);
        let is_topic = help.short.is_none();
        let mut faults = Vec::new();
        if !is_verb || summary.ends_with('.') || summary.chars().count() > 62 {
            faults.push(format!(
                "summary `{summary}`: expected at most 62 characters, imperative, without a period"
            ));
        }
        if !is_topic && help.complete.lines().next() != Some(summary) {
            faults.push(format!(
                "--help starts with `{}`, expected `{summary}`",
                help.complete.lines().next().unwrap_or_default()
            ));
        }
        faults
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn shared_options_are_described_by_one_help_only() {
    let faults = faults(|help| {
        let is_topic = help.short.is_none();
        let describes = |option: &str| {
            help.complete.lines().any(|line| line.trim_start().trim_start_matches("-q, ").starts_with(option))
        };
        let options = [
            "--json",
            "--format <",
            "--out <",
            "--figure <",
            "--quiet",
            "--allow-plugins",
            "--fallback",
            "--call-limit <",
        ];
        options
            .iter()
            // What `play` writes is a page, and no result.
            .filter(|option| {
                describes(option) != is_topic && !(help.command.ends_with("play") && **option == "--out <")
            })
            .map(|option| format!("{option}: described is {}", describes(option)))
            .collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
