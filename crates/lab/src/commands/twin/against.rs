//! Predictions of the twin next to recordings at other limits, and the error that they show.

use pageout_study::twin::{Against, Answer, Figures, Kind, PredictionError, value};

use super::difference;
use crate::print::{Layout, figures};

/// The title of a comparison.
pub(super) fn title(against: &Against, found: &Answer) -> String {
    let accesses = |count: u64| figures::count(count);
    let [own, other] =
        [&found.recording, &against.recording].map(|recording| recording.manifest.recording.accesses);
    format!(
        "{}: limit {}, {}, {} accesses (this recording: {})",
        against.recording.folder.display(),
        figures::bytes(against.recording.limit()),
        against.kind.name(),
        accesses(other),
        accesses(own),
    )
}

/// The rows of a comparison; none without a prediction.
pub(super) fn rows(against: &Against, found: &Answer) -> Vec<Vec<String>> {
    let Some(played) = against.played() else { return Vec::new() };
    let mut rows = vec![["", "predicted", "recorded", "difference"].map(str::to_string).to_vec()];
    let has_time = found.time_refusal().is_none();
    for (at, figure) in Figures::NAMED.iter().enumerate() {
        let is_time = at == Figures::TIME;
        let predicted = played.interval(figure.of);
        let (shown, off) = match (&against.recorded[at], is_time && !has_time) {
            (_, true) => continue,
            (Ok(recorded), _) => (value(*recorded, is_time), difference(predicted.value, *recorded)),
            (Err(_), _) => ("-".to_string(), "-".to_string()),
        };
        rows.push(vec![figure.name.to_string(), predicted.shown(is_time), shown, off]);
    }
    rows
}

/// One row per counter, one column per kind of change that was compared.
pub(super) fn error_rows(errors: &[PredictionError]) -> Vec<Vec<String>> {
    let kinds = [Kind::AsRecorded, Kind::LessMemory, Kind::MoreMemory];
    let kinds: Vec<Kind> =
        kinds.into_iter().filter(|kind| errors.iter().any(|error| error.kind == *kind)).collect();
    let mut rows = vec![vec!["largest error".to_string()]];
    rows[0].extend(kinds.iter().map(|kind| kind.name().to_string()));
    for figure in Figures::NAMED {
        let of = |kind: &Kind| {
            let found = errors.iter().find(|error| error.kind == *kind && error.figure.key == figure.key);
            found.map_or_else(|| "-".to_string(), PredictionError::shown)
        };
        let cells: Vec<String> = kinds.iter().map(of).collect();
        if cells.iter().any(|cell| cell != "-") {
            rows.push([vec![figure.name.to_string()], cells].concat());
        }
    }
    rows
}

/// The comparisons and the errors, as text.
pub(super) fn text(found: &Answer, layout: Layout) -> String {
    let mut text = String::new();
    for against in &found.against {
        text += &format!("\n\nagainst {}\n", title(against, found));
        match (&against.predicted, against.played()) {
            (Err(why), _) => text += &format!("not answered, as {why}"),
            (_, None) => text += "failed",
            _ => text += layout.table(&rows(against, found), 1).trim_end(),
        }
    }
    if !found.against.is_empty() {
        text += "\n\n";
        text += &match found.missing() {
            0 => layout.table(&error_rows(&found.errors), 1).trim_end().to_string(),
            missing => format!(
                "error: stated from three compared recordings on; missing {}",
                figures::counted(missing as u64, "recording")
            ),
        };
    }
    text
}

/// What the intervals of answers rest on.
pub(super) fn note(found: &Answer) -> Option<String> {
    let has = |kind: Kind| found.errors.iter().any(|error| error.kind == kind);
    let kinds: Vec<&str> =
        [Kind::LessMemory, Kind::MoreMemory].into_iter().filter(|kind| has(*kind)).map(Kind::name).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "Ranges of answers for {} are at least as wide as the largest error above; other changes are not checked.",
            kinds.join(" and ")
        )
    })
}
