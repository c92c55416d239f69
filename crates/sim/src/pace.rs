//! The pace of a task: its next access starts as soon as the one before it ended, or by a timetable.
//!
//! A timetable is a recorded run's clock: points (access, time), straight lines between them. Access k starts at the time that
//! its line gives, or when the one before it ended if that is later. Before the first point it starts at the first point's time,
//! beyond the last as soon as possible. So every timer of the simulated kernel fires at the right place in the sequence, although
//! hits and misses cost other times here than on the recorded machine.
//!
//! In an open loop each access *arrives* at a time of its own: it starts then, or when those before it are done. Several tasks that take
//! *turns* go through one sequence: an access starts when the one before it ended, whosever that was.

use std::sync::Arc;

use pageout_engine::Nanos;

/// The rule by which a task's accesses start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Pace {
    /// Each access starts when the one before it ended, at the price the cost table gives.
    #[default]
    Costed,
    /// Access numbers with their start times: numbers rise, times don't fall. The price applies too.
    Timetable(Vec<(u64, Nanos)>),
    /// Arrival time of each access, in nanoseconds from the task's start on; times don't fall. An access that can't start then waits for its turn.
    Arrivals(Arc<[u64]>),
    /// The task's number among those that take turns, and whose each access of the sequence is. All of them have the same one.
    Turns(u16, Arc<[u16]>),
}

impl Pace {
    /// Arrivals at these times, in nanoseconds, so many times as fast.
    pub fn arrivals(times: &[u64], speed: f64) -> Pace {
        Pace::Arrivals(times.iter().map(|&time| (time as f64 / speed).round() as u64).collect())
    }
}

/// A timetable that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PaceError {
    /// The pace has no points.
    #[error("the timetable has no points")]
    Empty,
    /// A point's access number does not rise or its time falls.
    #[error(
        "point {position} of the timetable (access {}, {}) does not follow (access {}, {})",
        point.0, point.1, previous.0, previous.1
    )]
    OutOfOrder {
        /// Which point, from 0.
        position: usize,
        /// The point of the pace that is wrong.
        point: (u64, Nanos),
        /// The one before it.
        previous: (u64, Nanos),
    },
}

/// When accesses start at the earliest.
#[derive(Clone, Debug)]
pub(crate) enum Timetable {
    Lines(Lines),
    /// Each has a time of its own, from this one on.
    Arrivals(Nanos, Arc<[u64]>),
}

impl Timetable {
    /// When access `index` starts at the earliest. Numbers asked for never go back.
    pub(crate) fn start_of(&mut self, index: u64) -> Nanos {
        match self {
            Timetable::Lines(lines) => lines.start_of(index),
            Timetable::Arrivals(from, times) => {
                let last = times.last().copied().unwrap_or(0);
                Nanos(from.0.saturating_add(times.get(index as usize).copied().unwrap_or(last)))
            }
        }
    }

    /// How many accesses from `index` on may start by `until` in one go; at least 1. `index` is the one last given to
    /// [`Timetable::start_of`].
    #[inline(never)]
    pub(crate) fn starting_by(&self, index: u64, until: Nanos) -> u64 {
        match self {
            Timetable::Lines(lines) => lines.starting_by(index, until),
            // The wait of each access is reported.
            Timetable::Arrivals(..) => 1,
        }
    }

    /// Returns true if accesses arrive, and wait for their turn.
    pub(crate) fn has_arrivals(&self) -> bool {
        matches!(self, Timetable::Arrivals(..))
    }
}

/// Lines between points.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    points: Vec<(u64, Nanos)>,
    /// The first point whose access number is above the last one asked for.
    next: usize,
}

impl Lines {
    pub(crate) fn new(points: Vec<(u64, Nanos)>) -> Result<Lines, PaceError> {
        if points.is_empty() {
            return Err(PaceError::Empty);
        }
        for (position, pair) in points.windows(2).enumerate() {
            let (previous, point) = (pair[0], pair[1]);
            if point.0 <= previous.0 || point.1 < previous.1 {
                return Err(PaceError::OutOfOrder { position: position + 1, point, previous });
            }
        }
        Ok(Lines { points, next: 0 })
    }

    fn start_of(&mut self, index: u64) -> Nanos {
        while self.points.get(self.next).is_some_and(|point| point.0 <= index) {
            self.next += 1;
        }
        match self.segment() {
            Segment::Before(first) => first.1,
            Segment::Between((index_0, time_0), (index_1, time_1)) => {
                let span = u128::from(time_1.0 - time_0.0);
                let done = span * u128::from(index - index_0) / u128::from(index_1 - index_0);
                Nanos(time_0.0 + done as u64)
            }
            Segment::After(last) => last.1,
        }
    }

    /// How many accesses from `index` on lie on one line and start by `until`.
    fn starting_by(&self, index: u64, until: Nanos) -> u64 {
        let count = match self.segment() {
            Segment::Before(first) => first.0 - index,
            Segment::Between((index_0, time_0), (index_1, time_1)) => {
                if time_1 <= until {
                    index_1 - index
                } else {
                    let span = u128::from(until.0.saturating_sub(time_0.0));
                    let passed = span * u128::from(index_1 - index_0) / u128::from(time_1.0 - time_0.0);
                    (index_0 + passed as u64 + 1).saturating_sub(index)
                }
            }
            Segment::After(_) => u64::MAX,
        };
        count.max(1)
    }

    fn segment(&self) -> Segment {
        match (self.next.checked_sub(1).map(|last| self.points[last]), self.points.get(self.next)) {
            (None, Some(&first)) => Segment::Before(first),
            (Some(from), Some(&to)) => Segment::Between(from, to),
            (Some(last), None) => Segment::After(last),
            (None, None) => unreachable!("a timetable has points"),
        }
    }
}

/// Where an access lies relative to the points around it.
enum Segment {
    Before((u64, Nanos)),
    Between((u64, Nanos), (u64, Nanos)),
    After((u64, Nanos)),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timetable(points: &[(u64, u64)]) -> Result<Timetable, PaceError> {
        Lines::new(points.iter().map(|&(index, time)| (index, Nanos(time))).collect()).map(Timetable::Lines)
    }

    #[test]
    fn arrivals_count_from_the_start_and_start_one_at_a_time() {
        let mut timetable = Timetable::Arrivals(Nanos(100), [0, 7, 7, 50].into());
        assert_eq!([0, 1, 2, 3, 9].map(|index| timetable.start_of(index).0), [100, 107, 107, 150, 150]);
        assert_eq!(timetable.starting_by(1, Nanos(1_000)), 1);
    }

    #[test]
    fn accesses_between_two_points_are_spread_evenly() {
        let mut timetable = timetable(&[(10, 1_000), (20, 2_000), (30, 2_000)]).unwrap();
        let starts = [0, 10, 15, 19, 20, 29, 30, 99].map(|index| timetable.start_of(index).0);
        assert_eq!(starts, [1_000, 1_000, 1_500, 1_900, 2_000, 2_000, 2_000, 2_000]);
    }

    #[test]
    fn those_that_may_start_are_counted_to_the_end_of_the_line() {
        let mut timetable = timetable(&[(0, 0), (10, 1_000), (20, 5_000)]).unwrap();
        timetable.start_of(3);
        assert_eq!(timetable.starting_by(3, Nanos(350)), 1, "access 3 only: access 4 starts at 400");
        assert_eq!(timetable.starting_by(3, Nanos(400)), 2);
        assert_eq!(timetable.starting_by(3, Nanos(9_000)), 7);
        assert_eq!(timetable.starting_by(3, Nanos(0)), 1, "the one whose turn it is");
        timetable.start_of(25);
        assert_eq!(timetable.starting_by(25, Nanos(0)), u64::MAX);
    }

    #[test]
    fn a_timetable_that_goes_back_is_refused_by_its_point() {
        let error = timetable(&[(0, 0), (5, 10), (5, 20)]).unwrap_err().to_string();
        assert_eq!(error, "point 2 of the timetable (access 5, 20 ns) does not follow (access 5, 10 ns)");
        assert!(timetable(&[(0, 5), (1, 4)]).is_err() && timetable(&[]).is_err());
    }
}
