//! Moments of a run that a picture marks: kswapd woken, a reclaimer throttled, a task killed. At most 512 of each kind, of which neighbours are
//! joined when they are used up.

use pageout_engine::{Nanos, Tracepoint};

/// Marks of a kind at most.
const MARKS_MAX: usize = 512;

/// What is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    KswapdWoken,
    Throttled,
    OomKill,
}

impl Mark {
    pub(crate) const ALL: [Mark; 3] = [Mark::KswapdWoken, Mark::Throttled, Mark::OomKill];

    /// The mark of a tracepoint, if it has one.
    pub(crate) fn of(event: &Tracepoint) -> Option<Mark> {
        match event {
            Tracepoint::WakeupKswapd { .. } => Some(Mark::KswapdWoken),
            Tracepoint::Throttled { .. } => Some(Mark::Throttled),
            _ => None,
        }
    }
}

/// Some that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) count: u64,
}

/// All of them, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Marks([Vec<Marked>; Mark::ALL.len()]);

impl Marks {
    /// Marks `count` of a kind, at a moment that is not before the last one of that kind.
    pub(crate) fn add(&mut self, mark: Mark, at: Nanos, count: u64) {
        let marks = &mut self.0[mark as usize];
        marks.push(Marked { from: at, to: at, count });
        if marks.len() >= MARKS_MAX {
            let joined = |two: &[Marked]| Marked {
                from: two[0].from,
                to: two[two.len() - 1].to,
                count: two.iter().map(|marked| marked.count).sum(),
            };
            *marks = marks.chunks(2).map(joined).collect();
        }
    }

    pub(crate) fn of(&self, mark: Mark) -> &[Marked] {
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
            marks.add(Mark::Throttled, Nanos(at), 1);
        }
        let kept = marks.of(Mark::Throttled);
        assert!(kept.len() < MARKS_MAX && marks.of(Mark::OomKill).is_empty());
        assert_eq!(kept.iter().map(|marked| marked.count).sum::<u64>(), 10_000);
        assert!(kept.windows(2).all(|two| two[0].to < two[1].from));
    }
}
