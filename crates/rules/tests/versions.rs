//! Docs of rules and of their values name no version of the kernel: versions are in the eras, which are data.
//!
//! A version in prose is a copy of an era that no test compares with it. What is printed and generated of the eras is never stale.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads source files

use pageout_rules::Values;
use pageout_rules::config::PARAMETERS;
use pageout_rules::switch::SWITCHES;
use std::path::{Path, PathBuf};

/// The versions that a text names: `6.12`, `2.6.35`, `3.x`.
///
/// A citation like [machine 9.3] is none. Neither is a value whose word is a number: `6.12` between backquotes where it is one of
/// `words`, and what follows `lru.references = `.
fn versions(text: &str, words: &[&str]) -> Vec<String> {
    let mut text = text.to_owned();
    for word in words {
        text = text.replace(&format!("`{word}`"), "");
    }
    for switch in SWITCHES {
        for word in words_of(switch.values) {
            text = text.replace(&format!("{} = {word}", switch.name), "");
        }
    }
    while let Some((before, rest)) = text.split_once('[')
        && let Some((_, after)) = rest.split_once(']')
    {
        text = format!("{before} {after}");
    }
    let of_number = |c: char| c.is_ascii_digit() || c == '.' || c == 'x';
    text.split(|c: char| !of_number(c))
        .map(|number| number.trim_matches('.'))
        .filter(|number| number.split('.').count() > 1 && number.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

fn words_of(values: Values) -> &'static [&'static str] {
    match values {
        Values::Choice(words) => words,
        Values::Bool | Values::Number(..) => &[],
    }
}

/// Every source file below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            found.push(path);
        }
    }
}

/// The doc comments of the `choice!` blocks of a source, each with the line after its last, which declares the enumeration or a value.
fn choice_docs(source: &str) -> Vec<(String, &str)> {
    let mut docs = Vec::new();
    let (mut is_inside, mut doc) = (false, String::new());
    for line in source.lines() {
        match line.trim() {
            "choice! {" => is_inside = true,
            _ if line == "}" => is_inside = false,
            text if is_inside => match text.strip_prefix("///") {
                Some(part) => doc += part,
                None if !doc.is_empty() => docs.push((std::mem::take(&mut doc), text)),
                None => {}
            },
            _ => {}
        }
    }
    docs
}

#[test]
fn choice_docs_name_no_version() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let (mut count, mut faults) = (0, Vec::new());
    for file in &files {
        let source = std::fs::read_to_string(file).unwrap();
        for (doc, of) in choice_docs(&source) {
            count += 1;
            let named = versions(&doc, &[]);
            if !named.is_empty() {
                faults.push(format!("{}: {of}: {named:?}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "put the versions into the eras of the rule:\n{}", faults.join("\n"));
    assert!(count > 200, "only {count} docs were found");
}

#[test]
fn rule_docs_name_no_version() {
    let rules = SWITCHES.iter().map(|switch| (switch.name, switch.doc, words_of(switch.values)));
    let parameters = PARAMETERS.iter().flat_map(|parameter| {
        [(parameter.name, parameter.doc, &[][..]), (parameter.name, parameter.reason, &[])]
    });
    let faults: Vec<String> = rules
        .chain(parameters)
        .map(|(name, doc, words)| (name, versions(doc, words)))
        .filter(|(_, named)| !named.is_empty())
        .map(|(name, named)| format!("{name}: {named:?}"))
        .collect();
    assert!(faults.is_empty(), "put the versions into the eras of the rule:\n{}", faults.join("\n"));
}

#[test]
fn version_in_a_doc_is_found() {
    for (text, found) in [
        ("Up to 6.13, as before.", &["6.13"][..]),
        ("Linux up to 3.x, and 2.6.35 to 5.4.", &["3.x", "2.6.35", "5.4"]),
        ("`6.12`: of 6.12.117 [machine 9.3]", &["6.12.117"]),
        ("Only with lru.references = 6.16. A 64th of 1024 pages (2010).", &[]),
        ("Since 6.16", &["6.16"]),
    ] {
        assert_eq!(versions(text, &["6.12"]), found, "{text}");
    }
}

#[test]
fn docs_of_a_choice_are_read_to_their_ends() {
    let source = "choice! {\n    /// One\n    /// line more.\n    Kind {\n        /// A value.\n        A = \"a\",\n        B = \"b\",\n    }\n}\n/// Other.\nstruct Other;\n";
    let docs = choice_docs(source);
    assert_eq!(docs, [(" One line more.".to_owned(), "Kind {"), (" A value.".to_owned(), "A = \"a\",")]);
}
