//! Pressure of a group over all CPUs: totals, and averages over ten seconds, one minute and five. [machine 4.3]

use std::fmt::Write;

use pageout_engine::{MemcgId, Nanos};

use super::state::{Cell, NONIDLE, Resource, STATES, state};

/// Averages are fixed-point percentages with this many binary places.
const FRACTION_BITS: u32 = 11;
const ONE: u64 = 1 << FRACTION_BITS;
/// What is left of an average after a period, for 10, 60 and 300 seconds.
const DECAY: [u64; 3] = [1677, 1981, 2034];

/// When things are due: a tick, and the period of averages, which is one tick longer than two seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    tick: Nanos,
    span: Nanos,
}

impl Period {
    pub(super) fn new(hz: u32) -> Period {
        let tick = Nanos(1_000_000_000 / u64::from(hz));
        Period { tick, span: Nanos(tick.0 * u64::from(2 * hz + 1)) }
    }

    pub(super) fn after(self, at: Nanos) -> Nanos {
        at + self.span
    }
}

/// A group of tasks: all of the machine, or those of a cgroup and of the cgroups below it.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The group above it; the machine has none.
    pub(super) parent: Option<MemcgId>,
    period: Period,
    /// Times of each cell at the last collection.
    collected: Vec<[u64; STATES + 1]>,
    total: [u64; STATES],
    /// As much of the totals as the averages have seen.
    averaged: [u64; STATES],
    averages: [[u64; 3]; STATES],
    averaged_at: Nanos,
    average_due: Nanos,
    /// When the worker comes by next; it stays away while the group is idle.
    pub(super) work_due: Option<Nanos>,
}

impl Group {
    pub(super) fn new(parent: Option<MemcgId>, cpus: u16, period: Period, now: Nanos) -> Group {
        Group {
            parent,
            period,
            collected: vec![[0; STATES + 1]; usize::from(cpus)],
            total: [0; STATES],
            averaged: [0; STATES],
            averages: [[0; 3]; STATES],
            averaged_at: now,
            average_due: period.after(now),
            work_due: None,
        }
    }

    /// The worker comes by.
    pub(super) fn work(&mut self, cells: &[Cell], now: Nanos) {
        let is_idle = !self.collect(cells, now);
        if now >= self.average_due {
            self.average(now);
        }
        self.work_due = (!is_idle).then(|| self.period.after(now));
    }

    /// What a file of the group says at `now`.
    pub(super) fn text(&mut self, cells: &[Cell], resource: Resource, now: Nanos) -> String {
        if now >= self.average_due {
            self.collect(cells, now);
            self.average(now);
        }
        let mut text = String::new();
        for (name, full) in [("some", false), ("full", true)] {
            let [ten, sixty, three_hundred] = self.averages[state(resource, full)].map(percent);
            let total = self.total[state(resource, full)] / 1000;
            writeln!(text, "{name} avg10={ten} avg60={sixty} avg300={three_hundred} total={total}")
                .expect("writing to a string can't fail");
        }
        text
    }

    /// Current stall time of some task and of all by the lack of each resource, as if it was collected now.
    pub(super) fn totals(&self, cells: &[Cell], now: Nanos) -> [[Nanos; 2]; 3] {
        let (added, _) = self.added(cells, now);
        let total = |state: usize| Nanos(self.total[state] + added[state]);
        Resource::ALL.map(|resource| [false, true].map(|full| total(state(resource, full))))
    }

    /// Takes in what the CPUs did since the last time. Returns whether any had anything to do.
    fn collect(&mut self, cells: &[Cell], now: Nanos) -> bool {
        let (added, any) = self.added(cells, now);
        for (cell, collected) in cells.iter().zip(&mut self.collected) {
            *collected = cell.times_by(now, self.parent.is_none());
        }
        for (total, added) in self.total.iter_mut().zip(added) {
            *total += added;
        }
        any
    }

    /// What the CPUs did since the last time: the mean of their times in each state, weighted with how long each had anything to do. So
    /// an idle CPU counts for nothing. And whether any had.
    fn added(&self, cells: &[Cell], now: Nanos) -> ([u64; STATES], bool) {
        let mut weights = 0u64;
        let mut sums = [0u128; STATES];
        let mut any = false;
        for (cell, since) in cells.iter().zip(&self.collected) {
            let times = cell.times_by(now, self.parent.is_none());
            let nonidle = times[NONIDLE] - since[NONIDLE];
            any |= nonidle > 0;
            let weight = nonidle / self.period.tick.0;
            weights += weight;
            for (state, sum) in sums.iter_mut().enumerate() {
                *sum += u128::from(times[state] - since[state]) * u128::from(weight);
            }
        }
        (sums.map(|sum| (sum / u128::from(weights.max(1))) as u64), any)
    }

    /// Feeds the averages with what was collected since the last time.
    fn average(&mut self, now: Nanos) {
        let span = self.period.span.0;
        let missed = (now.0 - self.average_due.0) / span;
        self.average_due += Nanos((1 + missed) * span);
        let window = now.0 - self.averaged_at.0 - missed * span;
        self.averaged_at = now;
        for state in 0..STATES {
            let sample = (self.total[state] - self.averaged[state]).min(window);
            self.averaged[state] += sample;
            let percent = u64::try_from(u128::from(sample) * 100 / u128::from(window)).expect("at most 100");
            for (average, decay) in self.averages[state].iter_mut().zip(DECAY) {
                for _ in 0..missed {
                    if *average == 0 {
                        break;
                    }
                    *average = step(*average, decay, 0);
                }
                *average = step(*average, decay, percent * ONE);
            }
        }
    }
}

/// An average after one more period, in which the share was `new`. Rising, it is rounded up, so that it can reach what it is fed.
fn step(average: u64, decay: u64, new: u64) -> u64 {
    let rounding = if new >= average { ONE - 1 } else { 0 };
    (average * decay + new * (ONE - decay) + rounding) / ONE
}

fn percent(average: u64) -> String {
    format!("{}.{:02}", average >> FRACTION_BITS, ((average & (ONE - 1)) * 100) >> FRACTION_BITS)
}
