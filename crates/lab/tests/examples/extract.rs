//! Where command lines are written: help, the reference of keys, and texts in the sources (documentation and what is printed).
//!
//! A command line is one of the examples of a help text, indented, or stands between backticks. A command that is named in any other way is a
//! fault: nothing would check it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pageout_sim::scenario::keys::{KEYS, WORKLOAD_KEYS};

/// A command line, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    pub(crate) place: String,
    pub(crate) text: String,
}

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Examples of help, in the order in which they stand there.
    pub(crate) examples: Vec<Line>,
    /// Between backticks, with or without arguments.
    pub(crate) inline: BTreeSet<Line>,
    /// Of hints: what the program fills in stands there as `{name}`.
    pub(crate) hints: BTreeSet<Line>,
    /// Of scenarios and chapters: in their comments, and as commands that show a row.
    pub(crate) scenarios: BTreeSet<Line>,
    /// Commands that help and keys name otherwise.
    pub(crate) bare: BTreeSet<Line>,
}

/// The names of all commands, those of `trace` with it.
pub(crate) fn names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let program = pageout_lab::api::command_line();
        program.get_subcommands().map(|command| command.get_name().to_string()).collect()
    });
    &NAMES
}

/// The help of each command, as wide as it gets, by its name. The short help of the program has examples of its own.
pub(crate) fn helps() -> Vec<(String, String)> {
    let mut helps = Vec::new();
    for help in pageout_lab::api::helps(100) {
        if help.command == "pageout" {
            helps.push(("pageout -h".to_string(), help.short.expect("only a topic has none")));
        }
        helps.push((help.command, help.complete));
    }
    helps
}

impl Found {
    /// Adds the command lines of a help text.
    pub(crate) fn help(&mut self, name: &str, text: &str) {
        let place = format!("{name} --help");
        let mut rest = String::new();
        let mut is_examples = false;
        let mut open: Option<String> = None;
        for line in text.lines() {
            if line.starts_with("Examples") || line.starts_with("Start with:") {
                is_examples = true;
                continue;
            }
            if let Some(begun) = open.take() {
                let whole = format!("{begun}\n{line}");
                if is_open(&whole) {
                    open = Some(whole);
                } else {
                    self.examples.push(Line { place: place.clone(), text: whole });
                }
                continue;
            }
            is_examples &= line.starts_with("  ");
            match is_examples.then(|| line.trim_start()) {
                Some(comment) if comment.starts_with('#') => rest.push_str(&format!("{comment}\n")),
                Some(example) if is_open(example) => open = Some(example.to_string()),
                Some(example) => {
                    self.examples.push(Line { place: place.clone(), text: example.to_string() });
                }
                None if line.starts_with("Usage:") => {}
                None => rest.push_str(&format!("{line}\n")),
            }
        }
        self.prose(&place, &rest);
    }

    /// Adds what a text names between backticks, and otherwise.
    pub(crate) fn prose(&mut self, place: &str, text: &str) {
        let line = |text: &str| Line { place: place.to_string(), text: text.to_string() };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (at, part) in text.split('`').enumerate() {
            if mentions(part).is_none() {
                continue;
            }
            if at % 2 == 1 {
                self.inline.insert(line(part));
            } else {
                self.bare.insert(line(part));
            }
        }
    }

    /// Adds the reference of keys.
    pub(crate) fn keys(&mut self) {
        for key in KEYS.iter().chain(WORKLOAD_KEYS.iter()) {
            for text in [&*key.meaning, &key.accepts.to_string(), &*key.default] {
                self.prose(&format!("keys {}", key.path), text);
            }
        }
    }

    /// Adds documentation and texts of a source file. Outside of backticks a command line reaches to the end of its text.
    pub(crate) fn source(&mut self, place: &str, text: &str) {
        let mut found = Found::default();
        for part in texts(text) {
            // Examples of help are read where they are printed.
            let is_help = part.lines().any(|line| line.starts_with("Examples") || line == "Start with:");
            if !is_help {
                found.prose(place, &part);
            }
        }
        self.hints.append(&mut found.inline);
        self.hints.extend(found.bare.into_iter().map(|Line { place, text }| {
            let begin = mentions(&text).expect("it was found by that");
            Line { place, text: text[begin..].trim_end().to_string() }
        }));
    }

    /// Adds a scenario's or chapter's: lines of comments that are a command, and strings.
    pub(crate) fn scenario(&mut self, place: &str, text: &str) {
        let mut add = |text: &str| {
            if text.starts_with("pageout ") && mentions(text) == Some(0) {
                self.scenarios.insert(Line { place: place.to_string(), text: text.to_string() });
            }
        };
        for line in text.lines() {
            match line.strip_prefix('#') {
                Some(comment) if comment.starts_with("  ") => add(comment.trim()),
                Some(comment) => comment.split('`').skip(1).step_by(2).for_each(&mut add),
                None => line.split('"').skip(1).step_by(2).for_each(&mut add),
            }
        }
    }
}

/// Returns true if a command line goes on in the next one.
pub(crate) fn is_open(text: &str) -> bool {
    text.ends_with('\\') || text.matches('\'').count() % 2 == 1
}

/// Where a text names a command: `pageout`, and the name of one.
pub(crate) fn mentions(text: &str) -> Option<usize> {
    let names = names();
    text.match_indices("pageout ").map(|(at, _)| at).find(|&at| {
        let is_word = at == 0 || text[..at].ends_with([' ', '(', '|', '\n', '/']);
        let next: String =
            text[at + 8..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        is_word && names.contains(&next)
    })
}

/// Files below folders of the repository with an ending, by their paths there; none of tests.
pub(crate) fn files(folders: &[&str], ending: &str) -> Vec<(String, String)> {
    fn visit(path: &Path, ending: &str, files: &mut Vec<PathBuf>) {
        for path in std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["target", "tests"].contains(&name.as_str()) {
                visit(&path, ending, files);
            } else if name.ends_with(ending) && name != "tests.rs" {
                files.push(path);
            }
        }
    }
    let root = super::manifest().join("../..");
    let mut files = Vec::new();
    folders.iter().for_each(|folder| visit(&root.join(folder), ending, &mut files));
    files.sort();
    let named = files.into_iter().map(|path| {
        let name = path.strip_prefix(&root).expect("it is below").display().to_string();
        (name, std::fs::read_to_string(path).unwrap())
    });
    named.collect()
}

/// Comments and literals of a source file: neighbouring lines of comments as one, without their marks.
fn texts(source: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut comment = String::new();
    let mut characters = source.chars().peekable();
    let mut is_line_begin = true;
    while let Some(character) = characters.next() {
        match character {
            '/' if characters.peek() == Some(&'/') => {
                let mut line = String::new();
                while let Some(next) = characters.next_if(|next| *next != '\n') {
                    line.push(next);
                }
                if !is_line_begin {
                    texts.push(std::mem::take(&mut comment));
                }
                comment += line.trim_start_matches(['/', '!']);
                comment.push('\n');
                continue;
            }
            '"' => {
                let mut literal = String::new();
                while let Some(next) = characters.next() {
                    match next {
                        '"' => break,
                        '\\' => match characters.next() {
                            Some('n') => literal.push('\n'),
                            Some('\n') => while characters.next_if(|next| next.is_whitespace()).is_some() {},
                            Some(other) => literal.push(other),
                            None => break,
                        },
                        _ => literal.push(next),
                    }
                }
                texts.push(literal);
            }
            // A quote as a character is the begin of no literal.
            '\'' => {
                let next = characters.peek().copied();
                if next == Some('"') {
                    characters.next();
                } else if next == Some('\\') {
                    characters.next();
                    characters.next();
                }
            }
            _ => {}
        }
        if character == '\n' {
            is_line_begin = true;
        } else if !character.is_whitespace() {
            is_line_begin = false;
            texts.push(std::mem::take(&mut comment));
        }
    }
    texts.push(comment);
    texts.retain(|text| text.contains("pageout "));
    texts
}

#[test]
fn texts_of_a_source_are_its_comments_and_literals() {
    let source =
        "//! pageout a\n//! b\nconst A: char = '\"'; // pageout c\nlet b = \"pageout \\\n     d\\n\"; // e\n";
    assert_eq!(texts(source), [" pageout a\n b\n", " pageout c\n", "pageout d\n"]);
}
