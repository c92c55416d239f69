//! The verdict on a row of a published table: which way the figure changes, seed by seed, and by how much.
//!
//! - The *sign* is right if it is so for nine seeds of ten.
//! - The *size* is right if the mean change is between half and twice the published one.

use serde_json::{Value, json};

use super::chapter::{Claim, Direction, Published};
use crate::result::metrics::{Metric, Unit};
use crate::result::spread::{Paired, Spread};

/// The share of seeds for which the sign has to be right.
const SIGN_SHARE: f64 = 0.9;
/// How many times the published size is too much, or that part of it too little.
pub(crate) const SIZE_FACTOR: f64 = 2.0;

/// The criteria, in words.
pub const CRITERIA: &str = "A row is reproduced if 9 of 10 seeds have the published sign and the mean change \
    is between half and twice the published change. A row with one published level is reproduced if the \
    mean is between half and twice this level. A row with a relation is reproduced if the relation is true \
    for every seed. ± after a value is the standard deviation over the seeds. ± after a change is half of \
    its 95 % interval over pairs of runs with the same seed.";

/// The measurements of a claim.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The claim.
    pub claim: Claim,
    /// Unit of the values.
    pub unit: Unit,
    /// Values, a seed each, at every side; `None` for a side of which a run failed.
    pub sides: Vec<Option<Vec<f64>>>,
    /// The side whose row says so, and whether the claim's relation is true with every seed.
    pub relation: Option<(usize, bool)>,
}

/// The result of a row at a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The change against the base. None: this is the base.
    pub change: Option<Paired>,
    /// Seeds with the right sign, and how many it takes.
    pub sign: Option<(usize, usize)>,
    /// pageout's size divided by the published size.
    pub size: Option<f64>,
    /// True if all holds that was published of this side; `None` if nothing was.
    pub holds: Option<bool>,
}

impl Judged {
    fn sign_holds(&self) -> bool {
        self.sign.is_none_or(|(right, needed)| right >= needed)
    }

    fn size_holds(&self) -> bool {
        self.size.is_none_or(|size| (1.0 / SIZE_FACTOR..=SIZE_FACTOR).contains(&size))
    }

    /// `held`, or what is not.
    pub fn verdict(&self) -> String {
        match self.holds {
            None => String::new(),
            Some(true) => "held".to_string(),
            Some(false) => {
                let mut not = Vec::new();
                not.extend((!self.sign_holds()).then_some("sign"));
                not.extend((!self.size_holds()).then_some("size"));
                match not.is_empty() {
                    true => "not held".to_string(),
                    false => format!("not held: {}", not.join(", ")),
                }
            }
        }
    }
}

impl Measured {
    /// The results of the row at each side, the base first.
    pub fn judge(&self) -> Vec<Judged> {
        let base = self.sides[0].as_deref();
        let judged = (0..).zip(&self.sides).map(|(index, values)| {
            let of_base = index == 0;
            let judged = match (self.claim.published, base, values) {
                (Some(Published::Base(level)), _, Some(values)) if of_base => judge_level(level, values),
                (published, Some(base), Some(values)) if !of_base => judge_change(published, base, values),
                (published, ..) => {
                    let is_claimed = matches!(published, Some(Published::Base(_))) == of_base;
                    let has_failed = values.is_none() || (!of_base && base.is_none());
                    let holds = (has_failed && is_claimed && published.is_some()).then_some(false);
                    Judged { change: None, sign: None, size: None, holds }
                }
            };
            match self.relation {
                Some((side, holds)) if side == index => Judged { holds: Some(holds), ..judged },
                _ => judged,
            }
        });
        judged.collect()
    }

    /// As JSON, with the sides' names.
    pub fn json(&self, names: &[&str]) -> Value {
        let sides = names.iter().zip(&self.sides).zip(self.judge()).map(|((name, values), judged)| {
            let spread = values.as_deref().map(Spread::of);
            let percent = |change: Paired| change.percent(change.difference);
            let half = |change: Paired| change.percent(change.half_width?);
            json!({
                "side": name,
                "values": values,
                "mean": spread.map(|spread| spread.mean),
                "deviation": spread.map(|spread| spread.deviation),
                "change_percent": judged.change.and_then(percent),
                "change_half_width_percent": judged.change.and_then(half),
                "seeds_with_the_right_sign": judged.sign.map(|(right, _)| right),
                "seeds_needed": judged.sign.map(|(_, needed)| needed),
                "size_by_the_published": judged.size,
                "holds": judged.holds,
            })
        });
        json!({
            "row": self.claim.row,
            "figures": self.claim.figures,
            "per": self.claim.per,
            "published": self.claim.published,
            "levels": self.claim.levels,
            "relation": self.claim.holds,
            "published_change": self.claim.published.and_then(Published::change),
            "note": self.claim.note,
            "because": self.claim.because,
            "shown_by": self.claim.shown_by,
            "sides": sides.collect::<Vec<_>>(),
        })
    }
}

fn judge_level(level: f64, values: &[f64]) -> Judged {
    let size = Spread::of(values).mean / level;
    let judged = Judged { change: None, sign: None, size: Some(size), holds: None };
    Judged { holds: Some(judged.size_holds()), ..judged }
}

fn judge_change(published: Option<Published>, base: &[f64], values: &[f64]) -> Judged {
    let change = Paired::of(base, values);
    let published = published.filter(|published| !matches!(published, Published::Base(_)));
    let right = |direction: Direction| {
        let pairs = base.iter().zip(values);
        let is_right = |(base, value): &(&f64, &f64)| match direction {
            Direction::Less => value < base,
            Direction::More => value > base,
        };
        pairs.filter(is_right).count()
    };
    let needed = (SIGN_SHARE * base.len() as f64 - 1e-9).ceil() as usize;
    let sign = published.and_then(Published::direction).map(|direction| (right(direction), needed));
    // A change from zero has no size.
    let ours = change.percent(change.difference).map_or(f64::NAN, |percent| percent / 100.0);
    let size = published.and_then(Published::change).map(|published| ours / published);
    let judged = Judged { change: Some(change), sign, size, holds: None };
    Judged { holds: published.map(|_| judged.sign_holds() && judged.size_holds()), ..judged }
}

/// The verdict on a claim's relation, with the row of the side that shows it: the last side that it names.
pub(super) fn relation(
    claim: &Claim,
    names: &[&str],
    sides: &[Option<Vec<f64>>],
    seeds: usize,
) -> Option<(usize, bool)> {
    let relation = claim.holds.as_ref()?;
    let place = |name: &str| names.iter().position(|side| *side == name);
    let of = |name: &str, seed: usize| sides.get(place(name)?)?.as_ref()?.get(seed).copied();
    let holds = (0..seeds).all(|seed| relation.is_true(|name| of(name, seed)) == Some(true));
    Some((relation.variants().filter_map(place).max().unwrap_or(0), holds))
}

/// A claim's figure in one run, and its unit. Errors: the run has no such figure; the message names it.
pub(super) fn figure(claim: &Claim, metrics: &[Metric]) -> Result<(f64, Unit), String> {
    let find = |name: &String| {
        let metric = metrics.iter().find(|metric| metric.full_name() == *name);
        metric.ok_or_else(|| name.clone())
    };
    let sum = |names: &[String]| names.iter().map(|name| Ok(find(name)?.value)).sum::<Result<f64, String>>();
    let value = sum(&claim.figures)?;
    if claim.per.is_empty() {
        return Ok((value, find(&claim.figures[0])?.unit));
    }
    let whole = sum(&claim.per)?;
    Ok((if whole == 0.0 { 0.0 } else { value / whole }, Unit::Share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(published: Option<Published>, base: &[f64], values: &[f64]) -> Judged {
        judge_change(published, base, values)
    }

    #[test]
    fn a_row_holds_with_the_sign_of_nine_seeds_and_half_to_twice_the_size() {
        let base = [100.0; 10];
        let mut values = [60.0; 10];
        values[3] = 101.0;
        let row = judged(Some(Published::Change(-0.3)), &base, &values);
        assert_eq!((row.sign, row.holds), (Some((9, 9)), Some(true)));
        values[4] = 101.0;
        let row = judged(Some(Published::Change(-0.3)), &base, &values);
        assert_eq!((row.sign, row.verdict().as_str()), (Some((8, 9)), "not held: sign"));
        let row = judged(Some(Published::Change(-0.9)), &base, &[60.0; 10]);
        assert_eq!(row.verdict(), "not held: size");
        let row = judged(Some(Published::Change(0.1)), &base, &[60.0; 10]);
        assert_eq!(row.verdict(), "not held: sign, size");
    }

    #[test]
    fn two_published_levels_say_a_change_and_one_says_the_base() {
        let levels = Published::Levels { before: 0.2, after: 0.1 };
        assert_eq!(judged(Some(levels), &[50.0], &[30.0]).holds, Some(true));
        assert_eq!(judge_level(0.2, &[0.3, 0.4]).holds, Some(true));
        assert_eq!(judge_level(0.2, &[0.9, 0.4]).holds, Some(false));
        assert_eq!(judged(Some(Published::Base(0.2)), &[50.0], &[30.0]).holds, None, "the base's row alone");
    }

    #[test]
    fn a_change_from_nothing_has_no_size_and_does_not_hold() {
        let row = judged(Some(Published::Change(0.5)), &[0.0], &[3.0]);
        assert_eq!(row.holds, Some(false));
        assert_eq!(judged(Some(Published::Direction(Direction::More)), &[0.0], &[3.0]).holds, Some(true));
        assert_eq!(judged(None, &[1.0], &[3.0]).holds, None);
    }
}
