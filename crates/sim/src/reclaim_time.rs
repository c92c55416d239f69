//! Time of a task in reclaim calls, each from the step in which it begins to the end of the step in which it ends.

use pageout_engine::Nanos;

/// A task's time in reclaim.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ReclaimTime {
    /// Since when it has been in a call.
    since: Option<Nanos>,
    total: Nanos,
    /// When its last call ended: ahead of the machine's time if the call's step was long.
    until: Nanos,
}

impl ReclaimTime {
    /// Returns true if it is in a call.
    pub(crate) fn is_under_way(&self) -> bool {
        self.since.is_some()
    }

    /// A step in which so many calls have ended; the task is in another one after it, or not. Returns how long each of them took.
    /// More than one in a step is rare; they get equal parts.
    pub(crate) fn step(&mut self, began: Nanos, ended: Nanos, calls: u64, is_in_one: bool) -> Nanos {
        let total = Nanos(ended.0 - self.since.unwrap_or(began).0);
        let span = total.0.checked_div(calls);
        if span.is_some() {
            self.since = None;
            self.total += total;
            self.until = ended;
        }
        if self.since.is_none() && is_in_one {
            self.since = Some(if calls > 0 { ended } else { began });
        }
        Nanos(span.unwrap_or(0))
    }

    /// All of it up to `now`: without the part beyond it of the last call, and with the part before it of a current one.
    pub(crate) fn by(&self, now: Nanos) -> Nanos {
        let ahead = self.until.0.saturating_sub(now.0);
        let under_way = self.since.map_or(0, |since| now.0.saturating_sub(since.0));
        Nanos(self.total.0 - ahead + under_way)
    }
}
