//! A stop's table: a line for each figure that something is claimed of, and whether the runs are enough for a verdict.
//!
//! ```text
//!   claims ─ by figure, side, and what it is compared with ─▶ line: published │ ours │ held, not held, or not decided
//! ```
//! A chapter may have several rows of one figure at one side: which way it goes, how far at least, how far at most. Here they are a line, which holds
//! if all of them do. Whether a row holds is what [`judge`](crate::reproduce::judge) says. It is not decided where the 95 % interval of what
//! it compares contains the bound, as with few seeds.

use pageout_sim::scenario::{Relation, Sign, Term};

use crate::reproduce::chapter::{Claim, Published};
use crate::reproduce::judge::{Measured, SIZE_FACTOR};
use crate::reproduce::{change, published_text};
use crate::result::metrics::Unit;
use crate::result::spread::{Paired, Spread};

/// The verdict about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Held,
    /// It does not.
    NotHeld,
    /// The runs are too few to say.
    NotDecided,
}

impl Verdict {
    /// The verdict in words.
    pub fn told(self) -> &'static str {
        match self {
            Verdict::Held => "held",
            Verdict::NotHeld => "NOT HELD",
            Verdict::NotDecided => "not decided",
        }
    }

    /// The verdict on several rows together.
    fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::NotHeld, _) | (_, Verdict::NotHeld) => Verdict::NotHeld,
            (Verdict::NotDecided, _) | (_, Verdict::NotDecided) => Verdict::NotDecided,
            _ => Verdict::Held,
        }
    }
}

/// One line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub name: String,
    pub side: &'a str,
    /// The base of the comparison, if it is another side.
    pub against: Option<&'a str>,
    pub published: String,
    pub ours: String,
    pub verdict: Verdict,
    /// True if no more is claimed than which way it goes.
    pub is_way_only: bool,
    /// The comparison that decides whether it holds.
    pub compared: String,
    /// As figures, for charts.
    pub figures: Option<Figures>,
    pub unit: Unit,
    /// The rows of a line, with their texts.
    pub rows: Vec<(&'a Claim, Verdict)>,
}

/// The part of a line that a chart can show.
#[derive(Debug, Clone, Copy)]
pub enum Figures {
    /// The published change as a fraction, and pageout's.
    Changes(f64, Paired),
    /// The published level, and pageout's.
    Levels(f64, f64),
}

/// The common part of the rows of one line.
#[derive(PartialEq)]
struct Key<'a> {
    figures: (&'a [String], &'a [String]),
    side: usize,
    against: Option<usize>,
}

/// A row at the side that shows it.
struct Part<'a> {
    row: &'a Measured,
    verdict: Verdict,
}

/// The lines of an experiment, in the order of its rows.
pub(super) fn lines<'a>(names: &[&'a str], measured: &'a [Measured]) -> Vec<Line<'a>> {
    let mut groups: Vec<(Key, Vec<Part>)> = Vec::new();
    for row in measured {
        for (side, judged) in row.judge().into_iter().enumerate() {
            let Some(holds) = judged.holds else { continue };
            let against = match &row.claim.holds {
                Some(relation) => {
                    relation.variants().find_map(|name| place(names, name).filter(|&at| at != side))
                }
                None => (side > 0).then_some(0),
            };
            let key = Key { figures: figures_of(&row.claim), side, against };
            let part = Part { row, verdict: verdict(row, side, names, holds) };
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, parts)) => parts.push(part),
                None => groups.push((key, vec![part])),
            }
        }
    }
    groups.into_iter().filter_map(|(key, parts)| line(names, measured, &key, &parts)).collect()
}

fn place(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|known| *known == name)
}

/// A row's name without what tells the rows of one line apart.
pub(super) fn name_of(row: &str) -> &str {
    const APART: [&str; 3] = [": at least", ": at most", ": direction"];
    APART.iter().find_map(|end| row.strip_suffix(end)).unwrap_or(row)
}

/// What was published of a line, in the form that can be compared best: changes, which hardly depend on the size, before levels.
enum Told<'a> {
    /// What the row itself has.
    OfRow(Published),
    /// Levels of the side and of what it is compared with.
    Change { from: f64, to: f64, by: &'a Claim },
    /// That of the side alone.
    Level { level: f64, by: &'a Claim },
    /// Nothing but what has to be true.
    Bound(&'a Relation),
}

impl<'a> Told<'a> {
    fn of(names: &[&str], measured: &'a [Measured], key: &Key, claim: &'a Claim) -> Option<Told<'a>> {
        if let Some(published) = claim.published {
            return Some(Told::OfRow(published));
        }
        let level = |at: usize| {
            let mut same = measured.iter().filter(|row| key.figures == figures_of(&row.claim));
            same.find_map(|row| Some((&row.claim, row.claim.levels.of(at, names[at])?)))
        };
        match (key.against.and_then(level), level(key.side)) {
            (Some((_, from)), Some((by, to))) if from != 0.0 => Some(Told::Change { from, to, by }),
            (_, Some((by, level))) => Some(Told::Level { level, by }),
            (_, None) => claim.holds.as_ref().map(Told::Bound),
        }
    }

    fn name(&self, names: &[&str], key: &Key, claim: &Claim) -> String {
        let is_of_base = key.side > 0 && key.against.is_none_or(|at| at == 0);
        let (claim, is_shared) = match self {
            Told::Change { by, .. } | Told::Level { by, .. } if is_of_base => {
                let of = (1..).zip(&names[1..]).filter(|&(at, name)| by.levels.of(at, name).is_some());
                (*by, of.count() > 1)
            }
            Told::OfRow(_) => (claim, key.side > 0),
            _ => (claim, false),
        };
        let name = name_of(&claim.row);
        if is_shared && names.len() > 2 { format!("{name}: {}", names[key.side]) } else { name.to_string() }
    }

    fn published(&self, unit: Unit, side: &str) -> String {
        match *self {
            Told::OfRow(published) => published_text(published, unit),
            Told::Change { from, to, .. } => percent(to / from - 1.0),
            Told::Level { level, .. } => unit.show(level),
            Told::Bound(relation) => bound(relation, unit, side),
        }
    }

    /// pageout's figure in the same form.
    fn ours(&self, unit: Unit, values: &[f64], paired: Option<&Paired>) -> String {
        match (self, paired) {
            (Told::OfRow(Published::Levels { .. }), Some(paired)) => {
                format!("{} to {}", unit.show(paired.base), unit.show(paired.base + paired.difference))
            }
            (Told::OfRow(_) | Told::Change { .. }, Some(paired)) => change(paired),
            (Told::Bound(_), Some(paired)) if paired.base != 0.0 => {
                format!("{:.3}x", 1.0 + paired.difference / paired.base)
            }
            _ => unit.show(Spread::of(values).mean),
        }
    }

    fn figures(&self, values: &[f64], paired: Option<Paired>) -> Option<Figures> {
        match (self, paired) {
            (Told::OfRow(published), Some(paired)) => Some(Figures::Changes(published.change()?, paired)),
            (Told::Change { from, to, .. }, Some(paired)) => Some(Figures::Changes(to / from - 1.0, paired)),
            (Told::Level { level, .. }, _) => Some(Figures::Levels(*level, Spread::of(values).mean)),
            _ => None,
        }
    }
}

fn figures_of(claim: &Claim) -> (&[String], &[String]) {
    (&claim.figures, &claim.per)
}

fn line<'a>(names: &[&'a str], measured: &'a [Measured], key: &Key, parts: &[Part<'a>]) -> Option<Line<'a>> {
    let first = parts[0].row;
    let told = Told::of(names, measured, key, &first.claim)?;
    let values = first.sides[key.side].as_deref();
    let base = key.against.map(|at| first.sides[at].as_deref());
    let (ours, figures) = match (values, base) {
        (None, _) | (_, Some(None)) => ("failed".to_string(), None),
        (Some(values), base) => {
            let paired = base.flatten().map(|base| Paired::of(base, values));
            (told.ours(first.unit, values, paired.as_ref()), told.figures(values, paired))
        }
    };
    Some(Line {
        name: told.name(names, key, &first.claim),
        side: names[key.side],
        against: key.against.map(|at| names[at]),
        published: told.published(first.unit, names[key.side]),
        ours,
        verdict: parts.iter().map(|part| part.verdict).fold(Verdict::Held, Verdict::and),
        is_way_only: parts.iter().all(|part| says_which_way_alone(&part.row.claim)),
        compared: compared(parts, first.unit, names[key.side]),
        figures,
        unit: first.unit,
        rows: parts.iter().map(|part| (&part.row.claim, part.verdict)).collect(),
    })
}

/// What rows compare: the sign and the size of a change, the size of a level, or what a relation asks.
fn compared(parts: &[Part], unit: Unit, side: &str) -> String {
    let mut compared: Vec<String> = Vec::new();
    for claim in parts.iter().map(|part| &part.row.claim) {
        let of_one = match (&claim.holds, claim.published) {
            (Some(relation), _) if relation.sign == Sign::Equal => {
                format!("= {}", bound(relation, unit, side).trim_start_matches("== "))
            }
            (Some(relation), _) => bound(relation, unit, side),
            (None, Some(Published::Base(_))) => "size".to_string(),
            (None, Some(published)) if published.change().is_some() => "sign and size".to_string(),
            (None, _) => "sign".to_string(),
        };
        if !compared.contains(&of_one) {
            compared.push(of_one);
        }
    }
    compared.join(", ")
}

fn percent(change: f64) -> String {
    let percent = change * 100.0;
    if percent.abs() < 10.0 { format!("{percent:+.1}%") } else { format!("{percent:+.0}%") }
}

/// What has to be true of a side: `<= 1.01 numab2`.
fn bound(relation: &Relation, unit: Unit, side: &str) -> String {
    let is_left = relation.left.variant.as_deref() == Some(side);
    let (sign, Term { factor, variant }) = match is_left {
        true => (relation.sign, &relation.right),
        false => (turned(relation.sign), &relation.left),
    };
    match variant {
        Some(variant) if *factor == 1.0 => format!("{} {variant}", sign.symbol()),
        Some(variant) => format!("{} {factor} {variant}", sign.symbol()),
        None if sign == Sign::Equal => unit.show(*factor),
        None => format!("{} {}", sign.symbol(), unit.show(*factor)),
    }
}

fn turned(sign: Sign) -> Sign {
    match sign {
        Sign::Less => Sign::Greater,
        Sign::LessOrEqual => Sign::GreaterOrEqual,
        Sign::GreaterOrEqual => Sign::LessOrEqual,
        Sign::Greater => Sign::Less,
        Sign::Equal | Sign::Unequal => sign,
    }
}

fn says_which_way_alone(claim: &Claim) -> bool {
    let is_way = |relation: &Relation| {
        let plain = |term: &Term| term.factor == 1.0 && term.variant.is_some();
        let is_strict = matches!(relation.sign, Sign::Less | Sign::Greater);
        is_strict && plain(&relation.left) && plain(&relation.right)
    };
    matches!(claim.published, Some(Published::Direction(_))) || claim.holds.as_ref().is_some_and(is_way)
}

/// The verdict on a row at a side: undecided if the runs are too few.
fn verdict(row: &Measured, side: usize, names: &[&str], holds: bool) -> Verdict {
    match (is_decided(row, side, names).unwrap_or(true), holds) {
        (false, _) => Verdict::NotDecided,
        (true, true) => Verdict::Held,
        (true, false) => Verdict::NotHeld,
    }
}

/// True if the interval of what a row compares lies on one side of every bound. `None` if there is nothing to compare, as after a failure.
fn is_decided(row: &Measured, side: usize, names: &[&str]) -> Option<bool> {
    let values = |at: usize| row.sides.get(at)?.as_deref();
    if let Some(relation) = &row.claim.holds {
        if matches!(relation.sign, Sign::Equal | Sign::Unequal) {
            return Some(true);
        }
        let term = |term: &Term, seed: usize| match &term.variant {
            Some(name) => Some(term.factor * values(place(names, name)?)?.get(seed)?),
            None => Some(term.factor),
        };
        let differences: Vec<f64> = (0..values(side)?.len())
            .map(|seed| Some(term(&relation.left, seed)? - term(&relation.right, seed)?))
            .collect::<Option<_>>()?;
        let mean = Paired::of_differences(&differences, &differences);
        // If the mean is within the relation, seeds outside of it show that there are too few seeds.
        let keeps = |difference: f64| match relation.sign {
            Sign::Less | Sign::LessOrEqual => difference <= 0.0,
            _ => difference >= 0.0,
        };
        let is_split = keeps(mean.difference) && !differences.iter().all(|&difference| keeps(difference));
        return Some(is_beside(&mean, 0.0) && !is_split);
    }
    let published = row.claim.published?;
    if let Published::Base(level) = published {
        let shares: Vec<f64> = values(side)?.iter().map(|value| value / level).collect();
        return Some(is_size_decided(&Paired::of_differences(&shares, &shares)));
    }
    let (base, values) = (values(0)?, values(side)?);
    let paired = Paired::of(base, values);
    let Some(change) = published.change() else { return Some(is_beside(&paired, 0.0)) };
    let whole = Some(paired.base * change).filter(|whole| *whole != 0.0)?;
    let shares: Vec<f64> = values.iter().zip(base).map(|(value, base)| (value - base) / whole).collect();
    Some(is_size_decided(&Paired::of_differences(&shares, &shares)))
}

fn is_size_decided(share: &Paired) -> bool {
    [1.0 / SIZE_FACTOR, SIZE_FACTOR].iter().all(|&bound| is_beside(share, bound))
}

/// Returns true if the interval of the mean has `bound` outside. A single run has no interval.
fn is_beside(mean: &Paired, bound: f64) -> bool {
    let distance = (mean.difference - bound).abs();
    mean.half_width.is_some_and(|half| half == 0.0 || distance > half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_decided_by(values: &[f64], bound: f64) -> bool {
        is_beside(&Paired::of_differences(values, values), bound)
    }

    #[test]
    fn an_interval_that_contains_the_bound_decides_nothing_and_a_single_run_has_none() {
        assert!(is_decided_by(&[1.0, 1.1, 0.9], 0.0));
        assert!(!is_decided_by(&[1.0, 2.1, 0.1], 0.0));
        assert!(is_decided_by(&[0.0, 0.0], 0.0), "what is the same with every seed is known");
        assert!(!is_decided_by(&[1.0], 0.0));
    }

    #[test]
    fn one_row_that_does_not_hold_makes_its_line_not_hold_and_one_undecided_undecided() {
        use Verdict::{Held, NotDecided, NotHeld};
        assert_eq!(Held.and(NotDecided).and(NotHeld), NotHeld);
        assert_eq!(Held.and(NotDecided).and(Held), NotDecided);
        assert_eq!(Held.and(Held), Held);
    }

    #[test]
    fn a_bound_is_told_from_the_side_that_it_is_of() {
        let told = |relation: &str| bound(&relation.parse().unwrap(), Unit::Count, "new");
        assert_eq!(told("new <= 1.01 * old"), "<= 1.01 old");
        assert_eq!(told("old > new"), "< old");
        assert_eq!(told("new == 0"), "0");
        assert_eq!(told("new > 5"), "> 5");
    }
}
