//! How far a run had come by when, so that its first part can be left out of what is compared.
//!
//! ```text
//!   time      0    step   2 steps   3 steps          end
//!   accesses  0 ──── 40 ──── 55 ────── 90 ─── ... ─── all     between two of them work goes on evenly
//! ```
//! The length of a run is known only at its end. A trail therefore begins with short steps. When it has too many points, every other one is
//! dropped and the steps double. From then on it always has between half of the maximum and the maximum.

use pageout_engine::Nanos;
use pageout_sim::{Ended, Machine, Observer, RunError};

/// The first step. Tasks run ahead of each other for ten times as long at most (`machine.quantum`), so nothing finer is to be seen.
const FIRST_STEP: u64 = 10_000;
/// The most points, and at least half as many for a run of so many first steps. Even, so that every other one is on the longer steps.
const POINTS_MAX: usize = 1024;

/// Accesses done by the end of each step.
#[derive(Debug, Clone)]
pub struct Trail {
    step: u64,
    /// From time 0 on.
    points: Vec<u64>,
    /// When the run was over, and all it did.
    end: (u64, u64),
}

impl Default for Trail {
    fn default() -> Trail {
        Trail { step: FIRST_STEP, points: vec![0], end: (0, 0) }
    }
}

impl Trail {
    /// Runs a machine as [`Machine::run_until`] does, and notes how far it has come after each step. It is the same run.
    pub fn follow(
        &mut self,
        machine: &mut Machine,
        until: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        let ended = loop {
            let stop = Nanos(self.next()).min(until);
            let ended = machine.run_until(stop, observer)?;
            if ended != Ended::TimeUp || stop == until {
                break ended;
            }
            self.add(machine.accesses_by(stop));
        };
        let report = machine.report();
        self.end = (report.end.0, report.accesses);
        Ok(ended)
    }

    /// When the next point is due.
    fn next(&self) -> u64 {
        self.step * self.points.len() as u64
    }

    fn add(&mut self, accesses: u64) {
        self.points.push(accesses);
        if self.points.len() > POINTS_MAX {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.step *= 2;
        }
    }

    /// All points as (time, accesses), the end among them.
    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        let points = self.points.iter().enumerate().map(|(at, &accesses)| (at as u64 * self.step, accesses));
        let (end, all) = self.end;
        points
            .take_while(move |&(at, _)| at < end)
            .map(move |(at, done)| (at, done.min(all)))
            .chain([self.end])
    }

    /// Accesses done by a time.
    pub fn accesses_by(&self, time: u64) -> u64 {
        let (x, y) = (|point: (u64, u64)| point.0, |point: (u64, u64)| point.1);
        between(self.all(), time, x, y)
    }

    /// After this number of accesses, or at the end if the run has fewer.
    pub fn time_of(&self, accesses: u64) -> u64 {
        let (x, y) = (|point: (u64, u64)| point.1, |point: (u64, u64)| point.0);
        between(self.all(), accesses, x, y)
    }
}

/// The `y` where `x` first comes to `wanted`, on a straight line between two points; the last one's beyond all.
fn between(
    points: impl Iterator<Item = (u64, u64)>,
    wanted: u64,
    x: impl Fn((u64, u64)) -> u64,
    y: impl Fn((u64, u64)) -> u64,
) -> u64 {
    let mut before = (0, 0);
    for point in points {
        if x(point) >= wanted {
            let (whole, part) = (x(point) - x(before), wanted - x(before));
            let rise = u128::from(y(point) - y(before)) * u128::from(part);
            return y(before) + rise.checked_div(whole.into()).unwrap_or(0) as u64;
        }
        before = point;
    }
    y(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(accesses: impl Fn(u64) -> u64, end: u64) -> Trail {
        let mut trail = Trail::default();
        while trail.next() < end {
            trail.add(accesses(trail.next()));
        }
        trail.end = (end, accesses(end));
        trail
    }

    #[test]
    fn a_trail_of_any_length_tells_when_and_how_much() {
        for end in [1, 9_999, 10_000, 1_234_567, 10_000_000_000] {
            // Slow at first, and three times as fast from a third on.
            let work = |time: u64| time + 2 * time.saturating_sub(end / 3);
            let trail = trail(work, end);
            assert!(trail.points.len() <= POINTS_MAX);
            for part in 0..=7 {
                let time = end * part / 7;
                // Nothing finer than the first step is to be seen.
                let error = (end / 200).max(FIRST_STEP);
                assert!(trail.accesses_by(time).abs_diff(work(time)) <= error + 1, "{time} of {end}");
                assert!(trail.time_of(work(time)).abs_diff(time) <= error + 1, "{time} of {end}");
            }
            assert_eq!(trail.time_of(0), 0);
            assert_eq!(trail.time_of(work(end) + 1), end);
            assert_eq!(trail.accesses_by(end + 1), work(end));
        }
    }

    #[test]
    fn no_work_for_a_while_is_over_when_work_goes_on() {
        let trail = trail(|time| time / 100_000 * 100, 1_000_000);
        assert_eq!(trail.accesses_by(550_000), 500);
        assert_eq!(trail.time_of(500), 500_000, "it was done then");
    }
}
