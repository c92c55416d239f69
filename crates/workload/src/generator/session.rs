//! Sessions: which of several programs a user looks at, and when.
//!
//! ```text
//!   opened in turn        then from the recently used ones: rank r with probability proportional to r^-recency
//!   0 │ 1 │ 2 │ 3 │ 4 │   3 │ 4 │ 1 │ 4 │ 0 │ ...
//!     └ dwell                          │
//!                                      └ rank 1: the one looked at before this one
//! ```
//!
//! One program is in the foreground at a time. It stays there for a time that is evenly distributed from half to one and a half times `dwell`. The
//! distribution is even, because only the order of magnitude is known, and bounded, because a session has to end. Ranks are stack distances: the more
//! `recency`, the more the user goes back and forth between few programs.
//!
//! Drawn from descriptions of loads, not from recordings: the browser session of the multigenerational LRU's cover letter (tabs of
//! popular websites, <https://lore.kernel.org/linux-mm/20210818063107.2696454-1-yuzhao@google.com/>), and the switching among 30
//! apps of <https://lkml.iu.edu/2604.1/02242.html>. Neither gives a law of revisits. What it leaves out: a user who waits for a
//! slow program instead of going on, programs that are closed, and what programs do in the background.

use super::error::PatternError;
use super::zipf::ZipfTable;
use crate::rng::SplitMix64;

/// Programs in a session at most.
pub const SESSION_MEMBERS_MAX: u32 = 10_000;

/// A session of one user with several programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Programs; 1 to [`SESSION_MEMBERS_MAX`].
    pub members: u32,
    /// Visits in total; the first `members` of them open one program each.
    pub visits: u32,
    /// Mean time of a visit, in nanoseconds.
    pub dwell_ns: u64,
    /// Exponent of the distribution of ranks; 0 (any other program alike) to 100.
    pub recency: f64,
}

/// One stay in the foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The program that is in the foreground.
    pub member: u32,
    /// The time when it comes to the foreground, in nanoseconds from the start of the session.
    pub start_ns: u64,
    /// The time when the program leaves the foreground.
    pub end_ns: u64,
}

impl Session {
    /// Checks whether a schedule can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        let error = |key, reason: String| Err(PatternError::new("session", key, reason));
        if !(1..=SESSION_MEMBERS_MAX).contains(&self.members) {
            return error("members", format!("must be 1 to {SESSION_MEMBERS_MAX}, got {}", self.members));
        }
        if self.visits < self.members {
            return error("visits", format!("must open all {} programs, got {}", self.members, self.visits));
        }
        if self.dwell_ns == 0 || u64::from(self.visits).checked_mul(self.dwell_ns * 2).is_none() {
            return error(
                "dwell",
                "must be more than 0, and the session must end before the maximum time".to_string(),
            );
        }
        if !(0.0..=100.0).contains(&self.recency) {
            return error("recency", format!("must be a number from 0 to 100, got {}", self.recency));
        }
        Ok(())
    }

    /// All visits, in order of time. The session is expected to be valid.
    pub fn schedule(&self, seed: u64) -> Vec<Visit> {
        let mut rng = SplitMix64::new(seed);
        // Last used first.
        let mut stack: Vec<u32> = Vec::new();
        let ranks = (self.members > 1).then(|| ZipfTable::new(self.members - 1, self.recency));
        let mut start_ns = 0;
        let visit = |number: u32| {
            let member = match &ranks {
                _ if number < self.members => number,
                None => stack.remove(0),
                // The one in the foreground is on top and is not switched to.
                Some(ranks) => stack.remove(1 + ranks.rank(rng.mantissa()) as usize),
            };
            stack.insert(0, member);
            let dwell_ns = self.dwell_ns / 2 + (rng.unit() * self.dwell_ns as f64) as u64;
            let visit = Visit { member, start_ns, end_ns: start_ns + dwell_ns.max(1) };
            start_ns = visit.end_ns;
            visit
        };
        (0..self.visits).map(visit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: Session = Session { members: 20, visits: 200_020, dwell_ns: 1_000, recency: 1.2 };

    #[test]
    fn programs_are_opened_in_turn_and_follow_each_other_without_a_gap() {
        let visits = SESSION.schedule(7);
        assert_eq!(visits, SESSION.schedule(7));
        assert_ne!(visits, SESSION.schedule(8));
        assert!(visits.iter().take(20).map(|visit| visit.member).eq(0..20));
        for pair in visits.windows(2) {
            assert_eq!(pair[0].end_ns, pair[1].start_ns);
            assert_ne!(pair[0].member, pair[1].member, "a switch is to another one");
        }
        assert!(visits.iter().all(|visit| (500..=1500).contains(&(visit.end_ns - visit.start_ns))));
        let mean = visits[visits.len() - 1].end_ns as f64 / visits.len() as f64;
        assert!((990.0..1010.0).contains(&mean), "{mean}");
    }

    #[test]
    fn ranks_of_recency_come_with_their_probabilities() {
        let mut stack: Vec<u32> = Vec::new();
        let mut count = [0u32; 20];
        for (number, visit) in SESSION.schedule(3).into_iter().enumerate() {
            if let Some(rank) = stack.iter().position(|&member| member == visit.member) {
                count[rank] += 1;
                stack.remove(rank);
            } else {
                assert!(number < 20);
            }
            stack.insert(0, visit.member);
        }
        let sum: f64 = (1..20).map(|rank| libm::pow(f64::from(rank), -1.2)).sum();
        for rank in 1..20 {
            let expected = 200_000.0 * libm::pow(f64::from(rank), -1.2) / sum;
            let (found, rank) = (f64::from(count[rank as usize]), rank);
            let noise = 5.0 * expected.sqrt();
            assert!((found - expected).abs() < noise, "rank {rank}: {found}, expected {expected}");
        }
        assert_eq!(count[0], 0);
    }

    #[test]
    fn a_session_of_one_program_is_one_long_visit_in_pieces() {
        let session = Session { members: 1, visits: 100, ..SESSION };
        assert!(session.schedule(1).iter().all(|visit| visit.member == 0));
    }

    #[test]
    fn a_session_that_makes_no_sense_is_refused_by_key() {
        let told = |session: Session| session.validate().unwrap_err().to_string();
        assert!(told(Session { members: 0, ..SESSION }).contains("`members`"));
        assert!(
            told(Session { visits: 19, ..SESSION }).contains("`visits` must open all 20 programs, got 19")
        );
        assert!(told(Session { dwell_ns: 0, ..SESSION }).contains("`dwell`"));
        assert!(told(Session { recency: -1.0, ..SESSION }).contains("`recency`"));
        assert_eq!(SESSION.validate(), Ok(()));
    }
}
