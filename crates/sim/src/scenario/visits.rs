//! From a session to when each copy of a task makes its accesses.
//!
//! ```text
//!   visits of copy 1    │ first_ops │             │ visit_ops │          │ visit_ops │
//!   time            ────┴───────────┴─────────────┴───────────┴──────────┴───────────┴──▶
//!                       └─ busy ────┘ idles       └─ busy ────┘
//! ```
//! The times are those of the user, who does not wait for a slow machine; an access that can't start in time starts when it can.

use std::collections::BTreeMap;

use pageout_engine::Nanos;
use pageout_workload::generator::{Session as Schedule, Visit};
use pageout_workload::rng::SplitMix64;

use super::{Session, Task};
use crate::pace::Pace;

/// What one copy does in a session.
pub(super) struct Visits {
    /// Accesses of all visits.
    pub(super) ops: u64,
    pub(super) pace: Pace,
}

impl Task {
    /// The session of the task's copies; `None` where there is no user.
    pub(super) fn schedule(&self) -> Option<Schedule> {
        let Session { visits, dwell, recency, .. } = self.session;
        let schedule = Schedule { members: self.copies, visits, dwell_ns: dwell.0, recency };
        (visits > 0).then_some(schedule)
    }

    /// What each copy does in the session of these draws; nothing where there is none. The session is expected to be valid.
    pub(super) fn visits(&self, seed: u64) -> BTreeMap<u32, Visits> {
        // Apart from the copies' own seeds, which are derived from the task's by their numbers.
        let visits =
            self.schedule().map(|schedule| schedule.schedule(SplitMix64::derive_seed(seed, u64::MAX)));
        let mut by_copy: BTreeMap<u32, Vec<Visit>> = BTreeMap::new();
        for visit in visits.into_iter().flatten() {
            by_copy.entry(visit.member).or_default().push(visit);
        }
        by_copy.into_iter().map(|(copy, visits)| (copy, self.visits_of_copy(&visits))).collect()
    }

    fn visits_of_copy(&self, visits: &[Visit]) -> Visits {
        let Session { first_ops, visit_ops, busy, .. } = self.session;
        let mut points = Vec::new();
        let mut ops = 0;
        for (at, visit) in visits.iter().enumerate() {
            let count = if ops == 0 { first_ops } else { visit_ops };
            let start = self.start.0.saturating_add(visit.start_ns);
            points.push((ops, Nanos(start)));
            ops += count;
            if count > 1 {
                // A user who leaves early leaves a program that goes on.
                let end =
                    visits.get(at + 1).map_or(u64::MAX, |next| self.start.0.saturating_add(next.start_ns));
                points.push((ops - 1, Nanos(start.saturating_add(busy.0).min(end))));
            }
        }
        Visits { ops, pace: Pace::Timetable(points) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(session: &str) -> Task {
        let text = format!(r#"{{"name": "tab", "copies": 3, "start": "1s", "session": {session}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn each_copy_makes_its_accesses_while_it_is_looked_at() {
        let task =
            task(r#"{"visits": 50, "dwell": "2s", "busy": "500ms", "first_ops": 100, "visit_ops": 10}"#);
        let schedule = task.schedule().unwrap().schedule(SplitMix64::derive_seed(9, u64::MAX));
        for (copy, Visits { ops, pace }) in task.visits(9) {
            let own: Vec<&Visit> = schedule.iter().filter(|visit| visit.member == copy).collect();
            assert_eq!(ops, 100 + 10 * (own.len() as u64 - 1));
            let Pace::Timetable(points) = pace else { panic!("a session has times") };
            let starts: Vec<u64> = points.iter().step_by(2).map(|(_, at)| at.0 - 1_000_000_000).collect();
            assert!(own.iter().map(|visit| visit.start_ns).eq(starts));
            assert_eq!(points[1], (99, points[0].1 + Nanos(500_000_000)));
            assert_eq!(points[2].0, 100);
            assert!(crate::pace::Lines::new(points).is_ok());
        }
    }

    #[test]
    fn a_visit_of_one_access_is_one_point_and_a_long_one_ends_where_the_next_begins() {
        let long = task(r#"{"visits": 30, "dwell": "1s", "busy": "1h", "first_ops": 1, "visit_ops": 5}"#);
        for Visits { pace, .. } in long.visits(1).into_values() {
            let Pace::Timetable(points) = pace else { panic!("a session has times") };
            assert!(crate::pace::Lines::new(points).is_ok(), "times never go back");
        }
    }
}
