//! `docs/reference/kernels.md`: rules by version, made of the rows that declare them.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads and writes a page

use pageout_rules::config::PARAMETERS;
use pageout_rules::era::TREES;
use pageout_rules::history::Line;
use pageout_rules::switch::SWITCHES;
use pageout_rules::unmodelled::UNMODELLED;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Rules by version

This page lists the value of each kernel rule in each version, and the source of that knowledge.
`pageout keys kernel --at 6.8` prints one version. `pageout bisect` finds the rule that changed a
result between two versions. [Kernel notes: versions](../spec/kernels.md) has the evidence.

The page is generated from the rows that declare the rules:
`UPDATE=1 cargo test -p pageout-rules`.

- *Read*: read in the sources of these versions.
- *Documented*: a commit message, a posting or a document states it.
- *Inferred*: concluded from neighbouring versions, or from memory.
- **Not known**: the version in which the value changed is unknown, or the old behaviour is not
  modelled. The simulator uses the value of the next known version.
- *Without effect*: the mechanisms that the rule selects did not exist yet, or no longer exist.

MGLRU (\"generations\") and its rules exist since 6.1. A series at the start of a span means its first
version, a series at the end means its last version.
";

const NOT_MODELLED: &str = "
## Not modelled

These behaviours of old or new versions have no rule, so a run of such a version differs from the
kernel here. `pageout keys kernel --at 6.1` prints those of one version.

| what | versions | kernel behaviour, and behaviour here |
|---|---|---|
";

fn row(name: &str, history: &[Line]) -> String {
    let cell = |line: &Line| match line.value {
        Some(value) => format!("`{value}`: {}", line.when),
        None => format!("**not known**: {}", line.when),
    };
    let cells: Vec<String> = history.iter().map(cell).collect();
    format!("| `{name}` | {} |\n", cells.join("<br>"))
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let read: Vec<String> = TREES.iter().map(|(_, tree)| tree.to_string()).collect();
    writeln!(page, "Sources read: {}, and parts of 6.6.\n", read.join(", ")).unwrap();
    page += "| rule | values and versions |\n|---|---|\n";
    SWITCHES.iter().for_each(|switch| page += &row(switch.name, &switch.history()));
    let parameters = PARAMETERS.iter().filter(|parameter| !parameter.eras.is_empty());
    parameters.for_each(|parameter| page += &row(parameter.name, &parameter.history()));
    page += NOT_MODELLED;
    for row in UNMODELLED {
        writeln!(page, "| {} | {} ({}) | {} |", row.name(), row.words(), row.sources(), row.doc).unwrap();
    }
    page
}

#[test]
fn the_page_of_rules_by_version_is_what_the_rows_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/kernels.md");
    let made = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "docs/reference/kernels.md is stale: UPDATE=1 cargo test -p pageout-rules");
}
