//! `docs/kernels.md`: rules by version, made of the rows that declare them.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads and writes a page

use pageout_rules::config::PARAMETERS;
use pageout_rules::era::{Era, Lists, TREES, When};
use pageout_rules::switch::SWITCHES;
use pageout_rules::unmodelled::UNMODELLED;
use pageout_rules::{Series, Version};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Rules by version

Which value each rule of the kernel had in which version, and how that is known. `UPDATE=1 cargo test -p pageout-rules` writes this
page from the rows that declare the rules; [spec/kernels.md](spec/kernels.md) has the readings they rest on. `pageout keys kernel --at 6.8` prints one version,
`pageout bisect` says which rule changed a result between two.

*Recorded*: read in the source of that version. *Documented*: a commit's message, a posting or a document says so. *Inferred*: from
the neighbours, or from memory. **Not known**: between two values it is not known when the one became the other, or what there was is not
modelled; the simulator takes the value of the next version that is known. Generations came with 6.1, and what belongs to them
rests before. A series at the beginning of a span is its first version, at the end its last.
";

const NOT_MODELLED: &str = "
## Not modelled

What versions did otherwise, and no rule has: a run with the rules of such a version differs from it there. `pageout keys kernel --at 6.1`
prints those of a version.

| what | versions | what they did, and what is done here |
|---|---|---|
";

fn told(lists: Lists) -> &'static str {
    match lists {
        Lists::Classic => "two lists",
        Lists::Mglru => "generations",
    }
}

/// Spans of versions with lists of this kind, in order, as a cell has them.
fn spans(eras: &[Era], lists: Lists) -> Vec<String> {
    let mut held: Vec<(Version, Version, &Era)> = eras
        .iter()
        .filter(|era| era.lists.is_none_or(|of| of == lists))
        .filter_map(|era| match era.when {
            When::Versions(from, to) => Some((from, to, era)),
            _ => None,
        })
        .collect();
    held.sort_by_key(|&(from, to, _)| (from, to));
    let mut cells = Vec::new();
    let rests = eras.iter().filter(|era| matches!(era.when, When::Rests(..)));
    let rests: Vec<String> = rests.map(Era::span).collect();
    // What belongs to generations begins with them.
    if let Some((from, ..)) = held.first().filter(|_| !rests.iter().any(|span| span.starts_with("rests ..")))
    {
        let series = from.series().to_string();
        if !from.to_string().starts_with("0.0") && series != "6.1" {
            cells.push(format!("**not known** before {from}"));
        }
    }
    cells.extend(rests);
    for (at, (from, _, era)) in held.iter().enumerate() {
        if let Some((_, before, _)) = at.checked_sub(1).map(|at| &held[at])
            && !follows(*before, *from)
        {
            cells.push(format!("**not known** between {before} and {from}"));
        }
        let span = match era.span() {
            span if span == ".." => "all".to_owned(),
            span => span,
        };
        cells.push(format!("`{}` {span} ({})", era.value, era.sources()));
    }
    cells
}

/// Whether no version lies between two.
fn follows(before: Version, next: Version) -> bool {
    let next_series = Series::all().find(|series| *series > before.series());
    let is_first = |version: Version| version.to_string() == format!("{}.0", version.series());
    match before.is_newest() {
        true => next_series == Some(next.series()) && is_first(next),
        false => next.series() == before.series() && next > before && is_next_patch(before, next),
    }
}

fn is_next_patch(before: Version, next: Version) -> bool {
    let patch = |version: Version| -> u32 {
        version.to_string().rsplit('.').next().and_then(|patch| patch.parse().ok()).unwrap_or(0)
    };
    patch(next) == patch(before) + 1
}

fn row(name: &str, eras: &[Era]) -> String {
    let (classic, mglru) = (spans(eras, Lists::Classic), spans(eras, Lists::Mglru));
    let mut cells = Vec::new();
    if classic == mglru {
        cells.extend(classic);
    } else {
        cells.extend(classic.iter().map(|cell| format!("two lists: {cell}")));
        cells.extend(mglru.iter().map(|cell| format!("generations: {cell}")));
    }
    for era in eras.iter().filter(|era| !matches!(era.when, When::Versions(..) | When::Rests(..))) {
        let span = if matches!(era.when, When::Beside(..)) {
            era.span() + ", by file system"
        } else {
            era.sources()
        };
        cells.push(format!("`{}` {span}", era.value));
    }
    format!("| `{name}` | {} |\n", cells.join("<br>"))
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let read: Vec<String> = TREES.iter().map(|(_, tree)| tree.to_string()).collect();
    writeln!(page, "Sources were read of {}, and in parts of 6.6.\n", read.join(", ")).unwrap();
    page += "| rule | values and versions |\n|---|---|\n";
    SWITCHES.iter().for_each(|switch| page += &row(switch.name, switch.eras));
    let parameters = PARAMETERS.iter().filter(|parameter| !parameter.eras.is_empty());
    parameters.for_each(|parameter| page += &row(parameter.name, parameter.eras));
    page += NOT_MODELLED;
    for row in UNMODELLED {
        let lists = row.lists().map_or_else(String::new, |lists| format!("{}: ", told(lists)));
        let span = match row.span() {
            span if span == ".." => "all".to_owned(),
            span => span,
        };
        writeln!(page, "| {} | {lists}{span} ({}) | {} |", row.name(), row.sources(), row.doc).unwrap();
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
