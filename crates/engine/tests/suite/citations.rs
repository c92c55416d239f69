//! A citation leads somewhere: `[reclaim 2.10]` names a document of `docs/spec/` and a heading or an item that is in it.
//!
//! A citation is a bracket in a comment or on a page that holds a document's name and what it cites of it: sections, items such as M9, and
//! rows of a section's table, each alone or from one to another; documents are separated by semicolons. What looks like one, and isn't,
//! is a fault as well, so that a slip of the pen is found.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads source files

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders and files whose citations are checked, from the root of the repository.
const PLACES: &[&str] = &[
    "crates",
    "docs",
    "fuzz",
    "scenarios",
    "ground-truth",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
];

/// The citable places of a document.
#[derive(Default)]
struct Document {
    /// Numbers of sections and names of items.
    labels: BTreeSet<String>,
    /// Rows of the tables of a section, by their first cell.
    rows: BTreeSet<(String, String)>,
}

type Documents = BTreeMap<String, Document>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file below `path` that holds prose, in order.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = path.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        let built = |entry: &PathBuf| entry.file_name().is_some_and(|name| name == "target");
        entries.iter().filter(|&entry| !built(entry)).for_each(|entry| files(entry, found));
    } else if path.extension().is_some_and(|suffix| suffix == "rs" || suffix == "md" || suffix == "toml") {
        found.push(path.to_owned());
    }
}

/// Returns true if `word` names something that can be cited: 4, 4.12, M, M9, T-1.
fn is_label(word: &str) -> bool {
    let letter = word.starts_with(|first: char| first.is_ascii_uppercase());
    let rest = if letter { word[1..].trim_start_matches('-') } else { word };
    let numbers =
        rest.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    numbers || letter && word.len() == 1
}

/// The label at the beginning of `text`.
fn label_at(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-')).unwrap_or(text.len());
    let word = text[..end].trim_end_matches('.');
    is_label(word).then_some(word)
}

fn document(text: &str) -> Document {
    let mut document = Document::default();
    let mut sections: Vec<String> = Vec::new();
    for line in text.lines() {
        let body = line.trim_start_matches(['#', '-', '*', '|', ' ', '`']);
        if line.starts_with('#') {
            // A heading of several sections is "2.3 / 2.4 Lists".
            let labels = body.split(" / ").map_while(label_at);
            sections = labels.map(str::to_owned).collect();
            document.labels.extend(sections.iter().cloned());
        } else if let Some(label) = label_at(body) {
            if label.starts_with(|first: char| first.is_ascii_uppercase()) {
                document.labels.insert(label.to_owned());
            } else if line.starts_with('|') {
                document.rows.extend(sections.iter().map(|section| (section.clone(), label.to_owned())));
            }
        }
    }
    document
}

fn documents() -> Documents {
    let mut found = Vec::new();
    files(&root().join("docs/spec"), &mut found);
    let named = found.iter().map(|path| {
        (
            path.file_stem().unwrap().to_str().unwrap().to_owned(),
            document(&std::fs::read_to_string(path).unwrap()),
        )
    });
    named.filter(|(name, _)| !["README", "SUMMARY", "book"].contains(&name.as_str())).collect()
}

/// The prose of a file, a line for each of its lines: a page as a whole, of other files the comments.
fn prose(path: &Path, text: &str) -> String {
    let mark = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("rs") => "//",
        Some("toml") => "#",
        _ => return text.to_owned(),
    };
    let comment = |line: &str| {
        let at = if line.trim_start().starts_with(mark) {
            line.find(mark)
        } else {
            line.find(&format!(" {mark} "))
        };
        at.map_or(String::new(), |at| line[at..].trim_start_matches([' ', '/', '!', '#']).to_owned())
    };
    text.lines().map(comment).collect::<Vec<_>>().join("\n")
}

/// The fault of a part of a citation, which is a document and its cited places; `None` if it has none.
fn fault_of_part(part: &str, documents: &Documents) -> Option<String> {
    let Some((name, cited)) = part.split_once(' ') else {
        return Some(format!("{part} cites nothing of a document"));
    };
    let Some(document) = documents.get(name) else { return Some(format!("there is no docs/spec/{name}.md")) };
    for item in cited.split(", ") {
        let (section, rows) =
            item.split_once(" row").map_or((item, None), |(section, rows)| (section, Some(rows)));
        let ends = |range: &str| range.split(" to ").map(str::to_owned).collect::<Vec<_>>();
        for label in ends(section) {
            if !document.labels.contains(&label) {
                return Some(format!("docs/spec/{name}.md has no {label}"));
            }
        }
        for row in rows.into_iter().flat_map(|rows| ends(rows.trim_start_matches('s').trim())) {
            if !document.rows.contains(&(section.to_owned(), row.clone())) {
                return Some(format!("docs/spec/{name}.md has no row {row} in {section}"));
            }
        }
    }
    None
}

/// Returns true if a bracket is meant as a citation: it begins with the name of a document, or with any name and then nothing but labels, of
/// which one has a point or a letter.
fn is_meant(bracket: &str, documents: &Documents) -> bool {
    let Some((name, cited)) = bracket.split_once(' ') else { return false };
    let lower = name.starts_with(|first: char| first.is_ascii_lowercase());
    let word =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte));
    let labels: Vec<&str> = cited.split([',', ';']).map(str::trim).collect();
    let all = labels.iter().all(|label| is_label(label));
    let any = labels.iter().any(|label| !label.bytes().all(|byte| byte.is_ascii_digit()));
    documents.contains_key(name.trim_end_matches([',', ';'])) || lower && word && all && any
}

/// The citations of a text that lead nowhere, each with its line, and how many there are in all.
fn check(text: &str, documents: &Documents) -> (usize, Vec<String>) {
    let (mut count, mut faults) = (0, Vec::new());
    for (at, _) in text.match_indices('[') {
        let Some(length) = text[at + 1..].find(['[', ']']) else { continue };
        let bracket = &text[at + 1..at + 1 + length];
        let after = &text[at + 1 + length..];
        let is_link = after.starts_with("](");
        if !after.starts_with(']') || is_link || bracket.matches('\n').count() > 1 {
            continue;
        }
        let bracket = bracket.split_whitespace().collect::<Vec<_>>().join(" ");
        if is_meant(&bracket, documents) {
            count += 1;
            let line = text[..at].matches('\n').count() + 1;
            let fault = bracket.split("; ").find_map(|part| fault_of_part(part, documents));
            faults.extend(fault.map(|fault| format!("{line}: [{bracket}]: {fault}")));
        }
    }
    (count, faults)
}

#[test]
fn every_citation_names_a_document_and_a_heading_or_an_item_of_it() {
    let (root, documents) = (root(), documents());
    let mut found = Vec::new();
    PLACES.iter().for_each(|place| files(&root.join(place), &mut found));
    let (mut count, mut faults) = (0, Vec::new());
    for path in found {
        let text = prose(&path, &std::fs::read_to_string(&path).unwrap());
        let (citations, of_file) = check(&text, &documents);
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        count += citations;
        faults.extend(of_file.iter().map(|fault| format!("{name}:{fault}")));
        for (at, _) in text.match_indices("docs/spec/") {
            let rest = &text[at + "docs/spec/".len()..];
            let mention =
                rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-.".contains(c))).next().unwrap();
            let file = mention.trim_end_matches('.');
            if file.ends_with(".md") && !root.join("docs/spec").join(file).exists() {
                faults.push(format!("{name}: there is no docs/spec/{file}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 200, "only {count} citations were found");
}

#[test]
fn the_index_of_the_rules_names_every_document() {
    let index = std::fs::read_to_string(root().join("docs/spec/README.md")).unwrap();
    for name in documents().keys() {
        assert!(
            index.contains(&format!("| [{name}]({name}.md) |")),
            "docs/spec/README.md has no row for {name}"
        );
    }
}

#[test]
fn a_citation_that_leads_nowhere_is_found() {
    let text = "# Reclaim\n## 2.3 / 2.4 Lists\n| # | what |\n|---|---|\n| 1 | bits |\n- **M9** swap-in\n";
    let documents = Documents::from([("reclaim".to_owned(), document(text))]);
    let faults = |citation: &str| check(citation, &documents).1;
    for right in [
        "[reclaim 2.3]",
        "[reclaim 2.3 to 2.4, M9]",
        "[reclaim\n2.3]",
        "[reclaim 2.4 row 1]",
        "[0 to 4]",
        "[u8 x]",
    ] {
        assert_eq!(faults(right), [""; 0], "{right}");
    }
    for (wrong, fault) in [
        ("[reclaim 2.5]", "1: [reclaim 2.5]: docs/spec/reclaim.md has no 2.5"),
        ("a\n[reclaim 2.3, M10]", "2: [reclaim 2.3, M10]: docs/spec/reclaim.md has no M10"),
        ("[reclaim 2.3; spec 4]", "1: [reclaim 2.3; spec 4]: there is no docs/spec/spec.md"),
        ("[reclaim; zswap 1.1]", "1: [reclaim; zswap 1.1]: reclaim cites nothing of a document"),
        ("[zswap 1.1]", "1: [zswap 1.1]: there is no docs/spec/zswap.md"),
        ("[reclaim 2.3, invariants]", "1: [reclaim 2.3, invariants]: docs/spec/reclaim.md has no invariants"),
        ("[reclaim 2.3 row 2]", "1: [reclaim 2.3 row 2]: docs/spec/reclaim.md has no row 2 in 2.3"),
    ] {
        assert_eq!(faults(wrong), [fault], "{wrong}");
    }
}
