//! Remarks around the figures of a result, in lines: what is missing, what figures do not say, what a run leaves out, at which points it was run.

use pageout_study::result::notes::Note;
use pageout_study::result::variants::Extent;
use pageout_study::scenario::grid::Point;

use super::output;

/// What a reader has to know before the figures of an interrupted command; no line where all was run.
pub(crate) fn warning(extent: &Extent) -> String {
    extent.warning().map_or(String::new(), |says| output::wrap(&says, output::width(), ""))
}

/// Caveats, a paragraph each.
pub(crate) fn caveats(caveats: &[String]) -> String {
    caveats.iter().map(|says| output::wrap(says, output::width(), "")).collect()
}

/// Notes, a paragraph each.
pub(crate) fn notes(notes: &[Note]) -> String {
    notes.iter().map(|note| output::wrap(&format!("Note: {}", note.text), output::width(), "")).collect()
}

/// Points of a grid by number.
pub(crate) fn points<'a>(points: impl Iterator<Item = &'a Point>) -> String {
    let lines = points.enumerate().map(|(at, point)| {
        let settings: Vec<String> = point.settings.iter().map(ToString::to_string).collect();
        format!("{:>4}  {}\n", at + 1, settings.join("  "))
    });
    lines.collect()
}
