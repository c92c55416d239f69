//! Signs of an effect over a grid of scenarios: does a verdict hold beyond the scenario that it was found in?
//!
//! ```text
//!   --++     less at the first two points, more at the last two: it turns, and no point alone is a rule
//!   -~--     less wherever it is more than noise: it holds
//! ```

use std::fmt::{Display, Formatter, Write};

use serde_json::{Value, json};

use super::spread::Paired;

/// The direction of an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// Less, beyond noise.
    Less,
    /// More, beyond noise.
    More,
    /// Either way: its confidence interval contains 0.
    Noise,
    /// No run differs.
    Same,
    /// A run failed or was not made, so there is nothing to compare.
    Missing,
}

impl Sign {
    fn of(effect: Option<&Paired>) -> Sign {
        match effect {
            None => Sign::Missing,
            Some(effect) if effect.is_same => Sign::Same,
            Some(effect) if effect.is_within_noise() => Sign::Noise,
            Some(effect) if effect.difference < 0.0 => Sign::Less,
            Some(effect) if effect.difference > 0.0 => Sign::More,
            // Runs differ, and on average don't.
            Some(_) => Sign::Noise,
        }
    }

    fn letter(self) -> char {
        match self {
            Sign::Less => '-',
            Sign::More => '+',
            Sign::Noise => '~',
            Sign::Same => '=',
            Sign::Missing => 'x',
        }
    }
}

/// The signs of one effect, in the order of the grid's points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signs(Vec<Sign>);

impl Signs {
    /// The signs of effects, a point each; of a point without a figure there is none.
    pub fn of<'a>(effects: impl IntoIterator<Item = Option<&'a Paired>>) -> Signs {
        Signs(effects.into_iter().map(Sign::of).collect())
    }

    /// More at one point and less at another, both beyond noise.
    pub fn turns(&self) -> bool {
        self.0.contains(&Sign::Less) && self.0.contains(&Sign::More)
    }

    /// No run differs at any point.
    pub fn is_same(&self) -> bool {
        self.0.iter().all(|sign| *sign == Sign::Same)
    }

    /// The signs, and how many of each there are.
    pub fn json(&self) -> Value {
        let count = |sign: Sign| self.0.iter().filter(|known| **known == sign).count();
        json!({
            "signs": self.to_string(),
            "less": count(Sign::Less),
            "more": count(Sign::More),
            "within_noise": count(Sign::Noise),
            "same": count(Sign::Same),
            "missing": count(Sign::Missing),
            "turns": self.turns(),
        })
    }
}

impl Display for Signs {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|sign| f.write_char(sign.letter()))
    }
}

/// The legend of the signs, with their reliability.
pub fn legend(repeat: u32) -> String {
    let mut lines =
        vec!["signs: one letter per point; - less, + more, = the same in every run, x a run is missing"];
    if repeat == 1 {
        lines.push("One seed: the noise of an effect is unknown; see --repeat.");
    } else {
        lines.push("~ may be noise: the 95 % confidence interval of the mean difference between runs of the");
        lines.push("  same seed contains 0 (about one of twenty zero effects misses this mark,");
        lines.push("  so a single letter that contradicts all others may be chance)");
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(values: &[f64]) -> Paired {
        Paired::of(&vec![100.0; values.len()], values)
    }

    #[test]
    fn a_sign_turns_only_where_both_ways_are_beyond_noise() {
        let less = effect(&[90.0, 90.1, 89.9]);
        let more = effect(&[110.0, 110.1, 109.9]);
        let noise = effect(&[110.0, 90.0, 101.0]);
        let same = effect(&[100.0; 3]);
        let signs = Signs::of([Some(&less), Some(&more), Some(&noise), Some(&same), None]);
        assert_eq!(signs.to_string(), "-+~=x");
        assert!(signs.turns() && !signs.is_same());
        assert!(!Signs::of([Some(&less), Some(&noise), Some(&same), None]).turns());
        assert!(Signs::of([Some(&same), Some(&same)]).is_same());
        assert!(!Signs::of([Some(&same), None]).is_same(), "what is missing may differ");
    }

    #[test]
    fn differences_that_cancel_out_point_nowhere() {
        assert_eq!(Signs::of([Some(&effect(&[101.0, 99.0]))]).to_string(), "~");
    }
}
