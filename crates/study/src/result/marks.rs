//! Moments of a run that charts mark: kswapd woken, a reclaimer throttled, a writer throttled, a task killed. At most 512 of each kind are
//! kept; beyond that neighbours are joined.

use pageout_engine::{Nanos, Tracepoint, WritebackTracepoint};

/// Marks of a kind at most.
const MARKS_MAX: usize = 512;

/// The kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// kswapd was woken from sleep.
    KswapdWoken,
    /// A reclaimer waited for others.
    Throttled,
    /// A task that dirties pages sleeps until some are written; the mark is as long as the sleep.
    WriterSleeps,
    /// The OOM killer ended a process.
    OomKill,
}

impl Mark {
    /// All kinds.
    pub const ALL: [Mark; 4] = [Mark::KswapdWoken, Mark::Throttled, Mark::WriterSleeps, Mark::OomKill];

    /// The mark of a tracepoint, if it has one, and how long from its moment on it lasts.
    pub fn of(event: &Tracepoint) -> Option<(Mark, Nanos)> {
        match event {
            Tracepoint::WakeupKswapd { .. } => Some((Mark::KswapdWoken, Nanos::ZERO)),
            Tracepoint::Throttled { .. } => Some((Mark::Throttled, Nanos::ZERO)),
            Tracepoint::Writeback(WritebackTracepoint::BalanceDirtyPages { pause, .. })
                if pause.sleep_ms() > 0 =>
            {
                Some((Mark::WriterSleeps, Nanos(pause.sleep_ms() * 1_000_000)))
            }
            _ => None,
        }
    }
}

/// Some that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The start of the first.
    pub from: Nanos,
    /// The end of the last.
    pub to: Nanos,
    /// The number of joined moments.
    pub count: u64,
}

/// All of them, in the order of time.
#[derive(Debug, Default)]
pub struct Marks([Vec<Marked>; Mark::ALL.len()]);

impl Marks {
    /// Marks `count` of a kind, that last so long from a moment that is not before the last one of that kind.
    pub fn add(&mut self, mark: Mark, at: Nanos, lasts: Nanos, count: u64) {
        let marks = &mut self.0[mark as usize];
        marks.push(Marked { from: at, to: at + lasts, count });
        if marks.len() >= MARKS_MAX {
            let joined = |two: &[Marked]| Marked {
                from: two[0].from,
                // If two overlap, the first can be the longer one.
                to: two[0].to.max(two[two.len() - 1].to),
                count: two.iter().map(|marked| marked.count).sum(),
            };
            *marks = marks.chunks(2).map(joined).collect();
        }
    }

    /// Those of a kind.
    pub fn of(&self, mark: Mark) -> &[Marked] {
        &self.0[mark as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_joined_and_none_is_lost() {
        let mut marks = Marks::default();
        for at in 0..10_000 {
            marks.add(Mark::Throttled, Nanos(at), Nanos::ZERO, 1);
        }
        let kept = marks.of(Mark::Throttled);
        assert!(kept.len() < MARKS_MAX && marks.of(Mark::OomKill).is_empty());
        assert_eq!(kept.iter().map(|marked| marked.count).sum::<u64>(), 10_000);
        assert!(kept.windows(2).all(|two| two[0].to < two[1].from));
    }

    #[test]
    fn marks_that_are_joined_last_as_long_as_the_longer_one() {
        let mut marks = Marks::default();
        for at in 0..MARKS_MAX as u64 {
            marks.add(Mark::WriterSleeps, Nanos(at), Nanos(if at == 0 { 90 } else { 1 }), 1);
        }
        let first = marks.of(Mark::WriterSleeps)[0];
        assert_eq!(first, Marked { from: Nanos(0), to: Nanos(90), count: 2 });
    }
}
