//! The share of accesses that the top tier served, over time, and when it had converged to what it is at the end.
//!
//! The initial share is of little use: new memory is fast as long as there is some. After each change of phase it falls, and comes back. So both are
//! reported: the first time at which the share was reached, and the longest time for which it was not. The latter belongs to the slowest phase to
//! converge.

use pageout_engine::Nanos;

use crate::report::Convergence;

/// Spans of the time series at most.
const SPANS: usize = 256;

/// Accesses to the top tier, and all, span by span. There are never more than [`SPANS`]: they become longer.
pub(super) struct Shares {
    span: u64,
    counts: Vec<[u64; 2]>,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares { span: Shares::SPAN.0, counts: Vec::new() }
    }
}

impl Shares {
    /// How long a span is at first.
    pub(super) const SPAN: Nanos = Nanos(1_000_000);

    pub(super) fn add(&mut self, at: Nanos, fast: u64, all: u64) {
        while (at.0 / self.span) as usize >= SPANS {
            let pairs = self.counts.chunks(2);
            self.counts =
                pairs.map(|pair| [0, 1].map(|of| pair.iter().map(|count| count[of]).sum())).collect();
            self.span *= 2;
        }
        let span = (at.0 / self.span) as usize;
        if self.counts.len() <= span {
            self.counts.resize(span + 1, [0; 2]);
        }
        self.counts[span][0] += fast;
        self.counts[span][1] += all;
    }

    /// How the share of the top tier came to nine tenths of what it is in the last quarter of the run; `None` where it ends at none.
    pub(super) fn convergence(&self) -> Option<Convergence> {
        let sum = |counts: &[[u64; 2]]| counts.iter().fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
        let [fast, all] = sum(&self.counts[self.counts.len() * 3 / 4..]);
        let is_there = |[here, of]: &[u64; 2]| {
            10 * u128::from(*here) * u128::from(all) >= 9 * u128::from(fast) * u128::from(*of)
        };
        let first = self.counts.iter().position(|span| span[1] > 0 && is_there(span))?;
        let is_first = self.counts[..first].iter().all(|span| span[1] == 0);
        let (mut below, mut longest) = (0, 0);
        for span in &self.counts {
            // Without an access it was unchanged.
            let is_below = if span[1] == 0 { below > 0 } else { !is_there(span) };
            below = if is_below { below + 1 } else { 0 };
            longest = longest.max(below);
        }
        (fast > 0).then(|| Convergence {
            by: (!is_first).then_some(Nanos(first as u64 * self.span)),
            longest_below: Nanos(longest * self.span),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A share in percent for each span, and what came of it, in spans.
    fn converged(percent: &[u64]) -> Option<(Option<u64>, u64)> {
        let mut shares = Shares::default();
        for (span, &fast) in (0..).zip(percent) {
            shares.add(Nanos(span * Shares::SPAN.0), fast, 100);
        }
        let convergence = shares.convergence()?;
        let spans = |time: Nanos| time.0 / Shares::SPAN.0;
        Some((convergence.by.map(spans), spans(convergence.longest_below)))
    }

    #[test]
    fn convergence_is_where_the_share_comes_to_nine_tenths_of_what_it_ends_at() {
        assert_eq!(converged(&[10, 10, 10, 72, 80, 80, 80, 80]), Some((Some(3), 3)));
        assert_eq!(converged(&[0, 0, 0, 0]), None, "it never comes to anything");
        assert_eq!(converged(&[]), None);
        let mut shares = Shares::default();
        for at in 0..1000 {
            shares.add(Nanos(at * 10 * Shares::SPAN.0), if at < 300 { 10 } else { 80 }, 100);
        }
        let at = shares.convergence().unwrap().by.unwrap().0 / Shares::SPAN.0;
        assert!((2950..=3050).contains(&at), "{at}");
    }

    #[test]
    fn a_share_that_begins_there_has_converged_from_the_start_and_a_phase_is_told_by_its_fall() {
        assert_eq!(converged(&[80, 80, 80, 80]), Some((None, 0)));
        assert_eq!(converged(&[100, 80, 20, 30, 40, 80, 80, 10, 80, 80, 80, 80]), Some((None, 3)));
    }
}
