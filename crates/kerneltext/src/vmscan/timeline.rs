//! Reclaim over time by kswapd and by tasks, in at most 1024 steps: when they are used up, each two become one.

use super::work::{Reclaimer, Work};

/// Steps at most.
const STEPS_MAX: usize = 1024;

/// The width of a step to begin with.
const STEP_NS: u64 = 100_000;

/// Work and time of one reclaimer in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Pages scanned.
    pub scanned: u64,
    /// Pages judged in batches.
    judged: u64,
    /// Pages freed.
    pub reclaimed: u64,
    /// Pages written.
    pub written: u64,
    /// Time in calls of all tasks together, in nanoseconds; for kswapd, time awake.
    pub busy_ns: u64,
}

/// One step, by [`Reclaimer`].
pub type Step = [Slice; Reclaimer::ALL.len()];

/// Work and time over time.
#[derive(Debug)]
pub struct Timeline {
    /// Begin of the first step, in nanoseconds of the trace's clock; `None` without events.
    pub begin_ns: Option<u64>,
    /// Length of a step, in nanoseconds.
    pub step_ns: u64,
    /// The steps, at most 1024.
    pub steps: Vec<Step>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { begin_ns: None, step_ns: STEP_NS, steps: Vec::new() }
    }
}

impl Timeline {
    /// Time begins with the first event.
    pub(super) fn begin(&mut self, time_ns: u64) {
        self.begin_ns.get_or_insert(time_ns);
    }

    pub(super) fn work(&mut self, reclaimer: Reclaimer, time_ns: u64, work: &Work) {
        let at = self.step_at(time_ns);
        let slice = &mut self.steps[at][reclaimer as usize];
        slice.scanned += work.scanned.total();
        slice.judged += work.judged.total();
        slice.reclaimed += work.reclaimed.total();
        slice.written += work.written();
    }

    /// A task was busy from one moment to another.
    pub(super) fn busy(&mut self, reclaimer: Reclaimer, (from_ns, to_ns): (u64, u64)) {
        let last = self.step_at(to_ns);
        let first = self.step_at(from_ns);
        let begin_ns = self.begin_ns.unwrap_or(0);
        for at in first..=last {
            let start = begin_ns.saturating_add(at as u64 * self.step_ns);
            let end = start.saturating_add(self.step_ns);
            let busy_ns = to_ns.min(end).saturating_sub(from_ns.max(start));
            let slice = &mut self.steps[at][reclaimer as usize];
            slice.busy_ns = slice.busy_ns.saturating_add(busy_ns);
        }
    }

    /// No isolation was recorded, so the batches have the scanned pages.
    pub(super) fn count_judged_as_scanned(&mut self) {
        self.steps.iter_mut().flatten().for_each(|slice| slice.scanned = slice.judged);
    }

    /// The step of a moment, which makes room for it.
    fn step_at(&mut self, time_ns: u64) -> usize {
        let since = time_ns.saturating_sub(self.begin_ns.unwrap_or(time_ns));
        while since / self.step_ns >= STEPS_MAX as u64 {
            let halves = self.steps.chunks(2);
            self.steps = halves.map(|two| two.iter().fold(Step::default(), joined)).collect();
            self.step_ns *= 2;
        }
        let at = (since / self.step_ns) as usize;
        if self.steps.len() <= at {
            self.steps.resize(at + 1, Step::default());
        }
        at
    }
}

fn joined(mut sum: Step, other: &Step) -> Step {
    for (slice, more) in sum.iter_mut().zip(other) {
        slice.scanned += more.scanned;
        slice.judged += more.judged;
        slice.reclaimed += more.reclaimed;
        slice.written += more.written;
        slice.busy_ns = slice.busy_ns.saturating_add(more.busy_ns);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_never_lost_however_long_the_trace() {
        let mut timeline = Timeline::default();
        timeline.begin(1_000);
        let spans = [(1_000, 51_000), (90_000, 400_000), (1 << 30, (1 << 30) + 7), (1 << 50, 1 << 51)];
        for span in spans {
            timeline.busy(Reclaimer::Direct, span);
        }
        let busy: u64 = timeline.steps.iter().map(|step| step[Reclaimer::Direct as usize].busy_ns).sum();
        assert_eq!(busy, spans.iter().map(|(from, to)| to - from).sum::<u64>());
        assert!(timeline.steps.len() <= STEPS_MAX);
    }
}
