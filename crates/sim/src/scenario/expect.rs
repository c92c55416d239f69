//! `[[variant]]` and `[[expect]]`: the sides of a question, and what is known of the answer.
//!
//! A known bug is two runs and a relation between their figures: under the old rule it shows, under the new one it is gone.
//!
//! ```toml
//! [[variant]]
//! name = "old"
//! set = { kernel.lru.aging = "6.12" }
//!
//! [[variant]]
//! name = "new"
//! set = { kernel.lru.aging = "6.16" }
//!
//! [[expect]]
//! figure = "task reader: misses"
//! holds = "old > 2 * new"
//! because = "the idle memory is never evicted, so that files have too little"
//! ```
//! Where the bug ends the run there are no figures: the variant says `fails = "out of memory"`, and is expected to fail so.
//! Here a relation is read and its variants are looked up. Its figure is looked up when the run is over.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Knobs;
use super::keys::Accepts;
use super::section::section;

// Half of a scale leaves both tables out: their values are of the whole scale.

section! {
    /// The scenario with some keys set otherwise.
    pub struct Variant {
        name: String, [required] in Accepts::Text => Same,
            "Name of the variant's column in `pageout compare`, also used in expectations.";
        set: Knobs, [default Knobs::default()] in Accepts::Table("keys and values, as for --set") => Same,
            "The settings of this variant: { kernel.lru.aging = \"6.12\" }. List entries as in --set: \"memcg./web.memory.max\".";
        fails: String, [unless String::new()] in Accepts::Text => Same,
            "A part of this variant's failure message: \"out of memory in /job\". `pageout compare` then expects it to fail with this message for every seed. It has no figures to compare.";
    }
}

section! {
    /// A relation that holds between figures of the variants.
    pub struct Expect {
        figure: String, [required] in Accepts::Text => Same,
            "A figure of the result, by its name in `pageout compare FILE --all --json`: \"task reader: misses\", \"memcg /web: pgscan\".";
        holds: Relation, [required] in Accepts::Table("relation, such as \"old > 2 * new\" or \"new == 0\"") => Same,
            "The relation that must hold: variants, numbers, and numbers times variants, compared by < <= == != >= or >. `pageout compare` without --vary checks it.";
        because: String, [unless String::new()] in Accepts::Text => Same,
            "Why the relation should hold; printed if it does not.";
    }
}

/// `old > 2 * new`: two terms and how they compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// The term before the sign.
    pub left: Term,
    /// The sign of the comparison.
    pub sign: Sign,
    /// The term behind the sign.
    pub right: Term,
}

/// A number, a variant's figure, or a multiple of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The number; 1 where only a variant is named.
    pub factor: f64,
    /// The variant whose figure it is multiplied with.
    pub variant: Option<String>,
}

/// The sign between two terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl Sign {
    const ALL: [(&str, Sign); 6] = [
        ("<", Sign::Less),
        ("<=", Sign::LessOrEqual),
        ("==", Sign::Equal),
        ("!=", Sign::Unequal),
        (">=", Sign::GreaterOrEqual),
        (">", Sign::Greater),
    ];

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        Sign::ALL.iter().find(|(_, sign)| *sign == self).expect("every sign is listed").0
    }
}

impl Relation {
    /// True if it holds for the figures of the variants that `of` gives; `None` if a figure is missing.
    pub fn is_true(&self, of: impl Fn(&str) -> Option<f64>) -> Option<bool> {
        let (left, right) = (self.left.value(&of)?, self.right.value(&of)?);
        Some(match self.sign {
            Sign::Less => left < right,
            Sign::LessOrEqual => left <= right,
            Sign::Equal => left == right,
            Sign::Unequal => left != right,
            Sign::GreaterOrEqual => left >= right,
            Sign::Greater => left > right,
        })
    }

    /// The variants it speaks of.
    pub fn variants(&self) -> impl Iterator<Item = &str> {
        [&self.left, &self.right].into_iter().filter_map(|term| term.variant.as_deref())
    }
}

impl Term {
    fn value(&self, of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        Some(self.factor * self.variant.as_ref().map_or(Some(1.0), |variant| of(variant))?)
    }
}

/// The reason why a text is not a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationError(String);

impl fmt::Display for RelationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a relation; write it with spaces, such as \"old > 2 * new\" or \"new == 0\"",
            self.0
        )
    }
}

impl std::error::Error for RelationError {}

impl FromStr for Relation {
    type Err = RelationError;

    fn from_str(text: &str) -> Result<Relation, RelationError> {
        let error = || RelationError(text.to_string());
        let words: Vec<&str> = text.split_whitespace().collect();
        let sign_of =
            |word: &str| Sign::ALL.iter().find(|(symbol, _)| *symbol == word).map(|(_, sign)| *sign);
        let at = words.iter().position(|word| sign_of(word).is_some()).ok_or_else(error)?;
        let left = Term::of(&words[..at]).ok_or_else(error)?;
        let right = Term::of(&words[at + 1..]).ok_or_else(error)?;
        let sign = sign_of(words[at]).expect("it was found by its sign");
        let relation = Relation { left, sign, right };
        // Without a variant it is true or false whatever happens.
        if relation.variants().next().is_none() { Err(error()) } else { Ok(relation) }
    }
}

impl Term {
    fn of(words: &[&str]) -> Option<Term> {
        let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
        let name = |word: &str| (number(word).is_none() && word != "*").then(|| word.to_string());
        match *words {
            [word] if number(word).is_some() => Some(Term { factor: number(word)?, variant: None }),
            [word] => Some(Term { factor: 1.0, variant: Some(name(word)?) }),
            [factor, "*", word] => Some(Term { factor: number(factor)?, variant: Some(name(word)?) }),
            _ => None,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            None => write!(f, "{}", self.factor),
            Some(variant) if self.factor == 1.0 => f.write_str(variant),
            Some(variant) => write!(f, "{} * {variant}", self.factor),
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.sign.symbol(), self.right)
    }
}

impl Serialize for Relation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Relation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Relation, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_two_terms_and_a_sign() {
        for text in ["old > 2 * new", "new == 0", "0.5 <= a", "a != b", "3 * mglru@6.12 < 4 * classic"] {
            let relation: Relation = text.parse().unwrap();
            assert_eq!(relation.to_string(), text);
        }
        for text in
            ["", "old", "old >", "old > 2 new", "old = new", "1 < 2", "2 * 3 < a", "a < b < c", "a < *"]
        {
            assert!(text.parse::<Relation>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_relation_is_true_false_or_not_known() {
        let of = |name: &str| match name {
            "old" => Some(7.0),
            "new" => Some(3.0),
            _ => None,
        };
        let is_true = |text: &str| text.parse::<Relation>().unwrap().is_true(of);
        assert_eq!(is_true("old > 2 * new"), Some(true));
        assert_eq!(is_true("old > 3 * new"), Some(false));
        assert_eq!(is_true("new == 3"), Some(true));
        assert_eq!(is_true("new == other"), None);
    }
}
