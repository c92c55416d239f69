//! The history of a rule in words: which value it had in which versions, and how that is known.
//!
//! `docs/reference/kernels.md` and `pageout keys` print these lines, so that the eras of a rule are described in one way.

use crate::era::{Era, Lists, When};
use crate::version::Version;
use std::fmt;

/// One line of the history of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The value. `None`: the value is not known.
    pub value: Option<&'static str>,
    /// The versions that had the value, and how that is known: `MGLRU of 6.14 to 7.1 (documented)`.
    pub when: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.value.unwrap_or("not known"), self.when)
    }
}

/// The history of a rule with these eras. The versions are in order for each kind of lists, and gaps between them are lines. Values that only
/// some machines had or that no version had are last.
pub(crate) fn history(eras: &[Era]) -> Vec<Line> {
    let (classic, mglru) = (spans(eras, Lists::Classic), spans(eras, Lists::Mglru));
    let mut lines = Vec::new();
    if lines_of(&classic, None) == lines_of(&mglru, None) {
        lines.extend(lines_of(&classic, None));
    } else {
        lines.extend(lines_of(&classic, Some(Lists::Classic)));
        lines.extend(lines_of(&mglru, Some(Lists::Mglru)));
    }
    let others = eras.iter().filter(|era| matches!(era.when, When::Beside(..) | When::Posted | When::Never));
    lines.extend(others.map(|era| {
        let when = match era.when {
            When::Beside(from, to) => format!("{}, on some file systems", between(era.lists, from, to)),
            _ => era.sources(),
        };
        Line { value: Some(era.value), when }
    }));
    lines
}

/// A span of versions in words: `MGLRU of 6.14 to 7.1`, `up to 6.13`.
pub(crate) fn between(lists: Option<Lists>, from: Version, to: Version) -> String {
    let begin = (from != Version::BEFORE_ALL).then(|| from.shown_as_begin());
    let end = (to != Version::AFTER_ALL).then(|| to.to_string());
    let span = match (begin, end) {
        (None, None) => "all versions".to_owned(),
        (None, Some(end)) => return with_lists(lists, "", &format!("up to {end}")),
        (Some(begin), None) => format!("{begin} and later"),
        (Some(begin), Some(end)) if begin == end => begin,
        (Some(begin), Some(end)) => format!("{begin} to {end}"),
    };
    with_lists(lists, "of ", &span)
}

fn with_lists(lists: Option<Lists>, joined_by: &str, span: &str) -> String {
    match lists {
        None => span.to_owned(),
        Some(Lists::Classic) => format!("classic LRU {joined_by}{span}"),
        Some(Lists::Mglru) => format!("MGLRU {joined_by}{span}"),
    }
}

/// An era that covers versions.
type Span<'a> = (Version, Version, &'a Era);

/// The eras that cover versions with lists of this kind, in order.
fn spans(eras: &[Era], lists: Lists) -> Vec<Span<'_>> {
    let of_lists = eras.iter().filter(|era| era.lists.is_none_or(|of| of == lists));
    let mut spans: Vec<Span<'_>> = of_lists
        .filter_map(|era| match era.when {
            When::Versions(from, to) | When::Rests(from, to) => Some((from, to, era)),
            _ => None,
        })
        .collect();
    spans.sort_by_key(|&(from, to, _)| (from, to));
    spans
}

/// A line for each span, and one for each gap before or between them.
fn lines_of(spans: &[Span<'_>], lists: Option<Lists>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut last: Option<Version> = None;
    for &(from, to, era) in spans {
        let gap = match last {
            Some(before) if !before.is_right_before(from) => Some(format!("between {before} and {from}")),
            None if from != Version::BEFORE_ALL && !from.begins_with_generations() => {
                Some(format!("before {from}"))
            }
            _ => None,
        };
        lines.extend(gap.map(|gap| Line { value: None, when: with_lists(lists, "", &gap) }));
        let span = between(lists, from, to);
        let when = match era.when {
            When::Rests(..) => format!("{span}, without effect"),
            _ => format!("{span} ({})", era.sources()),
        };
        lines.push(Line { value: Some(era.value), when });
        last = Some(to);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Parameter;
    use crate::switch::Switch;

    /// Checks the history of a rule.
    #[track_caller]
    fn check(name: &str, expected: &[&str]) {
        let lines = match Switch::by_name(name) {
            Some(switch) => switch.history(),
            None => Parameter::by_name(name).expect("a rule or a parameter").history(),
        };
        let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
        assert_eq!(lines, expected, "{name}");
    }

    #[test]
    fn history_names_values_versions_and_sources() {
        check(
            "folio_batch",
            &[
                "14: up to 4.14 (inferred)",
                "15: 4.15 to 6.8 (read in 6.1.192)",
                "31: 6.9 and later (read in 6.12.117, 7.2.13)",
            ],
        );
        check(
            "harvest.rmap",
            &["true: all versions (read in 6.1.192, 6.12.117, 7.2.13, 7.3.4)", "false: never in a kernel"],
        );
        check("hz", &[]);
    }

    #[test]
    fn history_names_lists_and_gaps() {
        check(
            "reclaim.flusher_wake",
            &[
                "scanned: classic LRU up to 2.6.35 (documented)",
                "not known: classic LRU between 2.6.35 and 6.1.0",
                "batch: classic LRU of 6.1 and later (read in 6.1.192, 6.12.117, 7.2.13, 7.3.4)",
                "never: MGLRU of 6.1 to 6.12.0 (read in 6.1.192, 6.6; documented)",
                "not known: MGLRU between 6.12.0 and 6.12.117",
                "pass: MGLRU of 6.12.117 to 7.1 (read in 6.12.117; documented)",
                "batch: MGLRU of 7.2 and later (read in 7.2.13)",
            ],
        );
        check(
            "reclaim.stat_flush",
            &[
                "not known: before 5.15.0",
                "6.12: 5.15 (inferred)",
                "6.1: 5.16 to 6.7 (read in 6.1.192)",
                "6.8: 6.8 to 6.11 (documented)",
                "6.12: 6.12 and later (read in 6.12.117, 7.2.13, 7.3.4)",
            ],
        );
    }

    #[test]
    fn history_ends_with_values_of_no_version() {
        check(
            "workingset.refault_activate",
            &[
                "fault: up to 6.13, without effect",
                "fault: 6.14 to 7.1 (documented)",
                "fault_of_workingset: 7.2 and later (read in 7.2.13)",
            ],
        );
        check(
            "reclaim.writepage",
            &["obeys: all versions (inferred)", "redirties: 2.6.35, on some file systems"],
        );
        check(
            "reclaim.anon_writeback",
            &["any: all versions (read in 6.1.192, 6.12.117, 7.2.13, 7.3.4)", "not_direct: posted"],
        );
    }
}
