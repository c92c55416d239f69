//! The HTML page of `bisect`: one bar per rule, with its share of the change.

use super::{Answer, change_text, heading, left_out, rows};
use crate::commands::bisect::args::BisectArgs;
use crate::report::{Bar, Bars, Page, Part, Table, scenario};

pub(super) fn page(args: &BisectArgs, found: &Answer) -> Page {
    let (from, to) = (found.from.kernel.name(), found.to.kernel.name());
    let mut page = Page {
        title: format!("What changed from {from} to {to}"),
        of: format!("{}. {}", heading(args, found), found.from.question),
        story: (found.extent.warning().into_iter())
            .chain(change_text(found))
            .chain(found.verdict())
            .chain(found.doubts())
            .collect(),
        parts: Vec::new(),
    };
    let bars = [("What each rule brings alone", 0), ("What is gone without it", 1)];
    page.parts
        .extend(bars.into_iter().filter_map(|(title, which)| bars_of(found, title, which)).map(Part::Bars));
    page.parts.push(Part::Table(Table {
        title: "Rules that differ, in the order in which they came".to_string(),
        says: left_out(found).join(". "),
        rows: rows(found),
        words: 4,
        last_words: 0,
    }));
    page.parts.push(scenario(&found.source, &args.options.changes(), &[]));
    page
}

/// A bar for every rule, in percent of the whole change.
fn bars_of(found: &Answer, title: &str, which: usize) -> Option<Bars> {
    let change = found.change()?;
    let better = found.measure?.better();
    let bars: Vec<Bar> = (0..found.rules.len())
        .filter_map(|at| {
            let share = found.shares(at)[which]?;
            let rule = &found.rules[at];
            Some(Bar {
                name: format!("{}={}", rule.knob.name(), rule.to),
                percent: share.share * 100.0,
                half_width: share.half_width.map(|width| width * 100.0),
                is_noise: share.half_width.is_some_and(|width| width >= share.share.abs()),
                verdict: better.verdict(share.share * change),
                text: share.show(),
            })
        })
        .collect();
    let says = "Share of the whole change; lines are 95 % intervals, hollow bars may be noise.".to_string();
    (!bars.is_empty()).then(|| Bars { title: title.to_string(), says, bars })
}
