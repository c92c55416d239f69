//! Verdicts with their basis: a sentence is made from what it needs, or it is unknown and says what is missing.
//!
//! ```text
//!   needs ──Evidence::seen──▶ all seen  ──▶ the sentence is made, from what was seen
//!                       └──▶ one missing ──▶ unknown: no end events
//! ```
//! A verdict names the counters or events that it needs where it is written. Its sentence is a closure that receives what was seen of
//! them, so it cannot be said without them. Every command whose output judges something goes through [`verdict`]: two snapshots of
//! counters, a trace of events, a recording and a set of runs are each an [`Evidence`].

use std::fmt;

/// A source of facts that verdicts rest on.
pub trait Evidence {
    /// A fact that a verdict can need: a counter, a kind of event, a number of runs.
    type Need;
    /// What is known of such a fact.
    type Seen;

    /// What was seen of `need`. Errors: what is missing, in the words that follow `unknown: `, as `no end events`.
    fn seen(&self, need: &Self::Need) -> Result<Self::Seen, String>;
}

/// A judgement, or what it lacks.
pub type Verdict<T = String> = Result<T, Unknown>;

/// Missing needs of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    lacking: Vec<String>,
}

impl Unknown {
    /// A verdict that lacks one thing, in the words that follow `unknown: `.
    pub fn of(lacking: impl fmt::Display) -> Unknown {
        Unknown { lacking: vec![lacking.to_string()] }
    }

    /// Each thing that is missing, in the order of the needs.
    pub fn lacking(&self) -> &[String] {
        &self.lacking
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown: {}", self.lacking.join(", "))
    }
}

impl std::error::Error for Unknown {}

/// Returns the result of `say` for needs whose number is known at run time. Errors: as of [`verdict`].
pub fn verdict_of<E: Evidence + ?Sized, T>(
    evidence: &E,
    needs: &[E::Need],
    say: impl FnOnce(Vec<E::Seen>) -> T,
) -> Verdict<T> {
    let (mut seen, mut lacking) = (Vec::with_capacity(needs.len()), Vec::new());
    for need in needs {
        match evidence.seen(need) {
            Ok(fact) => seen.push(fact),
            Err(missing) if lacking.contains(&missing) => {}
            Err(missing) => lacking.push(missing),
        }
    }
    if lacking.is_empty() { Ok(say(seen)) } else { Err(Unknown { lacking }) }
}

/// Returns the result of `say` for the needs, if `evidence` has all of them. Errors: all that are missing.
pub fn verdict<E: Evidence + ?Sized, T, const N: usize>(
    evidence: &E,
    needs: [E::Need; N],
    say: impl FnOnce([E::Seen; N]) -> T,
) -> Verdict<T> {
    verdict_of(evidence, &needs, |seen| match seen.try_into() {
        Ok(seen) => say(seen),
        Err(_) => unreachable!("one fact was seen of each need"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known(&'static [(&'static str, u64)]);

    impl Evidence for Known {
        type Need = &'static str;
        type Seen = u64;

        fn seen(&self, need: &&'static str) -> Result<u64, String> {
            let found = self.0.iter().find(|(name, _)| name == need);
            found.map(|(_, value)| *value).ok_or(format!("no {need}"))
        }
    }

    #[test]
    fn verdict_with_all_needs_is_made_from_what_was_seen() {
        let said = verdict(&Known(&[("a", 2), ("b", 3)]), ["b", "a"], |[b, a]| format!("{b} of {a}"));
        assert_eq!(said, Ok("3 of 2".to_string()));
    }

    #[test]
    fn verdict_without_a_need_is_unknown_and_names_it() {
        let never = |_: [u64; 4]| -> String { unreachable!("a need is missing") };
        let unknown = verdict(&Known(&[("a", 2)]), ["x", "a", "x", "y"], never).unwrap_err();
        assert_eq!(unknown.lacking(), ["no x", "no y"]);
        assert_eq!(unknown.to_string(), "unknown: no x, no y");
    }
}
