//! The page: the advice in sentences, then the tables behind it.

use super::Advice;
use crate::report::{Page, Part, Table, scenario};
use crate::scenario::source::Source;

pub(super) fn page(source: &Source, advice: &Advice) -> Page {
    let table = |title: &str, says: &str, rows, words| {
        Part::Table(Table { title: title.to_string(), says: says.to_string(), rows, words, last_words: 0 })
    };
    let name = advice.args.scenario.display();
    let knobs = advice.knob_table();
    let knobs = (knobs.len() > 1).then(|| {
        table(
            "Knobs",
            &format!(
                "What each changes alone ({}). Below 0 it is faster. Those that change nothing are left out.",
                advice.cells[advice.at].name()
            ),
            knobs,
            2,
        )
    });
    let overview = table(
        "By ratio and memory",
        "How much longer it takes than with fast memory alone, by the source that finds hot pages best.",
        advice.overview(),
        1,
    );
    let details = table(
        "All runs",
        "Fast hits: accesses that fast memory served. At best: what it could have served at most with as many promotions, had all accesses been known beforehand.",
        advice.details(),
        3,
    );
    let scenario = scenario(source, &advice.args.options, &[]);
    Page {
        title: "How much memory may be slower".to_string(),
        of: format!("{name}, {} of memory. {}", advice.memory, advice.scenario.question),
        story: advice.extent.warning().into_iter().chain(advice.story()).collect(),
        parts: [Some(overview), knobs, Some(details), Some(scenario)].into_iter().flatten().collect(),
    }
}
