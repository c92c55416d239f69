//! The scenario on a page: its file as it was written, and what the command line changed in it.

use pageout_study::scenario::load::Changes;
use pageout_study::scenario::source::{Setting, Source};

use super::Part;

/// The scenario as a text to copy.
pub(crate) fn scenario(source: &Source, changes: &Changes, more: &[Setting]) -> Part {
    let mut text = source.text().to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for Setting { key, value, .. } in changes.settings.iter().chain(more) {
        text += &format!("# --set {key}={value}\n");
    }
    if let Some(seed) = changes.seed {
        text += &format!("# --seed {seed}\n");
    }
    Part::Text { title: "The scenario".to_string(), text, is_open: false }
}
