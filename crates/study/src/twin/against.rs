//! Predictions checked by other recordings of the same load, and the error that they show.
//!
//! ```text
//!   REC ─▶ twin ─▶ memory=LIMIT of each other recording ─▶ predicted │ recorded ─▶ error by counter and kind of change
//!                                                                                    └─▶ interval of the twin's answers
//! ```
//! The twin's comparison with its own recording counts as one, of the kind "as recorded". From three comparisons on the errors are stated.
//! An answer about a kind of change that was checked is then at least as wide as the largest error of that kind.

use super::machine::TwinMachine;
use super::play::{Figure, Figures, Interval, Played};
use super::question::Question;
use super::recording::Recording;
use crate::basis::Verdict;
use crate::figures;

/// Comparisons that an error needs.
const ENOUGH: usize = 3;

/// What a prediction changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nothing: the machine as it was recorded.
    AsRecorded,
    /// The limit, downwards.
    LessMemory,
    /// The limit, upwards.
    MoreMemory,
    /// Anything else, which no other recording checks.
    Other,
}

impl Kind {
    /// That of a question about a recording.
    pub fn of(question: &Question, recording: &Recording) -> Kind {
        let base = TwinMachine::of(recording);
        let TwinMachine { limit, high, swappable, .. } = question.machine;
        if question.machine != (TwinMachine { limit, high, swappable, ..base }) {
            return Kind::Other;
        }
        match question.memory {
            std::cmp::Ordering::Less => Kind::LessMemory,
            std::cmp::Ordering::Equal => Kind::AsRecorded,
            std::cmp::Ordering::Greater => Kind::MoreMemory,
        }
    }

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AsRecorded => "as recorded",
            Kind::LessMemory => "less memory",
            Kind::MoreMemory => "more memory",
            Kind::Other => "another change",
        }
    }
}

/// A recording that checks a prediction.
#[derive(Debug)]
pub struct Against {
    /// The recording.
    pub recording: Recording,
    /// Its figures, in the order of [`Figures::NAMED`].
    pub recorded: [Verdict<u64>; 6],
    /// What it changes.
    pub kind: Kind,
    /// The prediction, or why there is none.
    pub predicted: Result<Played, String>,
}

/// The question that this recording answers, about the machine of `about`.
pub(super) fn question(of: &Recording, about: &Recording) -> String {
    let high = |recording: &Recording| recording.manifest.group.limits.get("memory.high").cloned();
    let mut text = format!("memory={}KiB", of.limit() >> 10);
    if high(of) != high(about) {
        let high = high(of).unwrap_or_else(|| "max".to_string());
        text += &format!("+memory.high={}", high.trim());
    }
    text
}

/// Why these recordings can't be compared, if they can't.
pub(super) fn unlike(one: &Recording, other: &Recording) -> Option<String> {
    let [found, expected] = [other, one].map(|recording| &recording.manifest.recording);
    if found.command != expected.command && !found.command.is_empty() && !expected.command.is_empty() {
        return Some(format!(
            "found a recording of `{}`, expected one of `{}`",
            found.command, expected.command
        ));
    }
    (found.sample != expected.sample).then(|| {
        format!("found a sample of one page in {}, expected one in {}", found.sample, expected.sample)
    })
}

impl Against {
    /// The prediction, if it ran to its end.
    pub fn played(&self) -> Option<&Played> {
        self.predicted.as_ref().ok().filter(|played| played.failed.is_none())
    }

    /// The predicted and the recorded figure at a place of [`Figures::NAMED`], if both are known.
    pub fn pair(&self, at: usize) -> Option<(Interval, u64)> {
        Some((self.played()?.interval(Figures::NAMED[at].of), *self.recorded[at].as_ref().ok()?))
    }
}

/// The error of predictions of a figure, of one kind of change.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// The figure.
    pub figure: Figure,
    /// The kind.
    pub kind: Kind,
    /// Predictions that were compared.
    pub count: usize,
    /// The median of their distances, as a share of what was recorded.
    pub median: f64,
    /// The largest distance, with its sign: above 0 the prediction was too high.
    pub worst: f64,
}

/// Predicted and recorded figures, each with its kind of change and the place of the figure.
pub(super) type Pair = (Kind, usize, u64, u64);

/// The errors of these comparisons, in the order of figures and kinds. Empty: they are too few. A figure below its noise is in none.
pub(super) fn errors(pairs: &[Pair], compared: usize) -> Vec<Error> {
    let mut errors = Vec::new();
    if compared < ENOUGH {
        return errors;
    }
    for (place, figure) in Figures::NAMED.into_iter().enumerate() {
        for kind in [Kind::AsRecorded, Kind::LessMemory, Kind::MoreMemory] {
            let is_counted =
                |&&(of, at, _, recorded): &&Pair| of == kind && at == place && recorded > figure.few;
            let shares = pairs.iter().filter(is_counted);
            let mut shares: Vec<f64> =
                shares.map(|&(_, _, predicted, recorded)| predicted as f64 / recorded as f64 - 1.0).collect();
            shares.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
            let Some(&worst) = shares.last() else { continue };
            let middle = shares.len() / 2;
            let median = match shares.len() % 2 {
                0 => f64::midpoint(shares[middle - 1].abs(), shares[middle].abs()),
                _ => shares[middle].abs(),
            };
            errors.push(Error { figure, kind, count: shares.len(), median, worst });
        }
    }
    errors
}

/// How many comparisons are missing for an error to be stated.
pub(super) fn missing(compared: usize) -> usize {
    ENOUGH.saturating_sub(compared)
}

/// The least and the most of each figure that the errors of a kind allow. None: the kind was not checked.
pub(super) fn checked(figures: &Figures, kind: Kind, errors: &[Error]) -> Option<(Figures, Figures)> {
    let (mut least, mut most) = (*figures, *figures);
    let mut is_checked = false;
    for error in errors.iter().filter(|error| error.kind == kind) {
        let value = (error.figure.of)(figures) as f64;
        let share = error.worst.abs();
        let of = |value: f64| value.round().clamp(0.0, u64::MAX as f64) as u64;
        (error.figure.set)(&mut least, of(value / (1.0 + share)));
        // A prediction that was twice as high as the machine, or more, sets no upper end by this rule.
        (error.figure.set)(&mut most, of(value * (1.0 + share).max(1.0 / (1.0 - share.min(0.5)))));
        is_checked = true;
    }
    is_checked.then_some((least, most))
}

impl Error {
    /// `worst +1.9 %, median 0.7 %, n = 2`.
    pub fn shown(&self) -> String {
        let sign = if self.worst < 0.0 { "-" } else { "+" };
        let worst = figures::percent(self.worst.abs());
        match self.count {
            1 => format!("{sign}{worst} (n = 1)"),
            count => format!("{sign}{worst} (median {}, n = {count})", figures::percent(self.median)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_stated_from_three_comparisons_on() {
        let pairs = [
            (Kind::AsRecorded, 0, 1000, 1000),
            (Kind::LessMemory, 0, 1100, 1000),
            (Kind::LessMemory, 0, 980, 1000),
            (Kind::LessMemory, 0, 990, 1000),
            // Below the noise of its figure.
            (Kind::MoreMemory, 2, 3, 1),
        ];
        assert!(errors(&pairs, 2).is_empty() && missing(2) == 1);
        let found = errors(&pairs, 4);
        let shown: Vec<(Kind, String)> = found.iter().map(|error| (error.kind, error.shown())).collect();
        assert_eq!(
            shown,
            [
                (Kind::AsRecorded, "+0.00% (n = 1)".to_string()),
                (Kind::LessMemory, "+10.00% (median 2.00%, n = 3)".to_string())
            ]
        );
    }

    #[test]
    fn interval_of_an_answer_covers_the_error_of_its_kind() {
        let figures = Figures { insertions: 1000, refaults: 50, ..Figures::default() };
        let errors = errors(&[(Kind::LessMemory, 0, 1100, 1000)], 3);
        let (least, most) = checked(&figures, Kind::LessMemory, &errors).unwrap();
        assert_eq!((least.insertions, most.insertions), (909, 1111));
        assert_eq!((least.refaults, most.refaults), (50, 50));
        assert!(checked(&figures, Kind::MoreMemory, &errors).is_none());
    }
}
