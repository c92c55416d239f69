//! The HTML page of `advise-tier`: the advice in sentences, then the tables behind it.

use std::path::Path;

use pageout_study::advise_tier::Advice;
use pageout_study::scenario::source::Source;

use crate::commands::advise_tier::args::AdviseTierArgs;
use crate::report::{Axis, Chart, Colour, Line, Page, Part, Shape, Table, Unit, scenario};

pub(super) fn page(source: &Source, file: &Path, args: &AdviseTierArgs, advice: &Advice) -> Page {
    let table = |title: &str, says: &str, rows, words| {
        Part::Table(Table { title: title.to_string(), says: says.to_string(), rows, words, last_words: 0 })
    };
    let name = file.display();
    let knobs = advice.knob_table();
    let knobs = (knobs.len() > 1).then(|| {
        table(
            "Knobs",
            &format!(
                "What each changes alone ({}). Below 0 it is faster. Those that change nothing are left out.",
                advice.knobs_at()
            ),
            knobs,
            2,
        )
    });
    let overview = table(
        "By ratio and memory",
        "How much longer it takes than with fast memory alone, after the warm-up, by the source that finds hot pages best.",
        advice.overview(),
        1,
    );
    let details = table(
        "All runs",
        "Losses are of what comes after the warm-up, the other figures of whole runs. Fast hits: accesses that fast memory served. At best: what it could have served at most with as many promotions, had all accesses been known beforehand.",
        advice.details(),
        3,
    );
    let scales = advice
        .scales_title()
        .zip(advice.scales())
        .map(|(says, rows)| table("At half of the scale", &format!("{says}."), rows, 2));
    let charts = advice.devices().iter().filter_map(|device| chart(advice, device)).map(Part::Chart);
    let scenario = scenario(source, &args.options.changes(), &[]);
    Page {
        title: "How much memory may be slower".to_string(),
        of: format!("{name}, {} of memory. {}", advice.memory, advice.scenario.question),
        story: advice.extent.warning().into_iter().chain(advice.story()).collect(),
        parts: charts
            .chain([Some(overview), scales, knobs, Some(details), Some(scenario)].into_iter().flatten())
            .collect(),
    }
}

/// The loss by how much of the memory is slow, a line a source.
fn chart(advice: &Advice, device: &str) -> Option<Chart> {
    let (xs, lines) = advice.lines(device)?;
    let lines = lines.into_iter().map(|line| Line {
        name: line.name.to_string(),
        colour: Colour::nth(line.source),
        ys: line.losses,
    });
    Some(Chart {
        title: format!("What {device} costs, by how much of the memory it is"),
        says: "Percent of time longer than with fast memory alone, after the warm-up, one line by who finds hot pages. The lowest line is what one buys."
            .to_string(),
        x: Axis::linear("slow memory, % of all", Unit::Number),
        y: Axis::linear("takes longer, %", Unit::Number),
        xs,
        lines: lines.collect(),
        shape: Shape::Points,
    })
}
