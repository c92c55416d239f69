//! `docs/kernels.md`: rules by version, made of the rows that declare them.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads and writes a page

use pageout_rules::config::PARAMETERS;
use pageout_rules::era::TREES;
use pageout_rules::history::Line;
use pageout_rules::switch::SWITCHES;
use pageout_rules::unmodelled::UNMODELLED;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Rules by version

Which value each rule of the kernel had in which version, and how that is known. `UPDATE=1 cargo test -p pageout-rules` writes this
page from the rows that declare the rules; [spec/kernels.md](spec/kernels.md) has the readings they rest on. `pageout keys kernel --at 6.8` prints one version,
`pageout bisect` says which rule changed a result between two.

*Read*: in the sources of these versions. *Documented*: a commit's message, a posting or a document says so. *Inferred*: from
the neighbours, or from memory. **Not known**: between two values it is not known when the one became the other, or what there was is not
modelled; the simulator takes the value of the next version that is known. *Without effect*: the mechanisms that the rule chooses among did not
exist yet, or exist no more. MGLRU (\"generations\") came with 6.1, and so did its rules. A series at the beginning of a span is its first version,
at the end its last.
";

const NOT_MODELLED: &str = "
## Not modelled

What versions did otherwise, and no rule has: a run with the rules of such a version differs from it there. `pageout keys kernel --at 6.1`
prints those of a version.

| what | versions | what they did, and what is done here |
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
    writeln!(page, "Sources were read of {}, and in parts of 6.6.\n", read.join(", ")).unwrap();
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
    let made = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "docs/kernels.md is stale: UPDATE=1 cargo test -p pageout-rules");
}
