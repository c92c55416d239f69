//! Invariants of the counters, seen from outside.

use pageout_engine::*;

use super::ByteMachine;

impl ByteMachine {
    /// Panics if an event was taken back, if there is less than nothing of anything, or if more was promoted than was asked about.
    pub(super) fn check_counters(&mut self) {
        for (&stat, before) in Stat::ALL.iter().zip(&mut self.counted) {
            let now = self.engine.figures().vmstat(stat);
            assert!(stat.is_gauge() || now >= *before, "{} falls from {before} to {now}", stat.name());
            assert!(now >= 0, "{} is {now}", stat.name());
            *before = now;
        }
        let count = |stat| self.engine.figures().vmstat(stat);
        // A node this small never has so much free memory that no page becomes a candidate.
        let (promoted, asked) = (count(Stat::PgpromoteSuccess), count(Stat::PgpromoteCandidate));
        assert!(promoted <= asked, "{promoted} pages were promoted, {asked} asked about");
    }

    /// Panics if a page is isolated: all tasks have ended, and kernel threads rest.
    pub(super) fn check_nothing_isolated(&self) {
        for stat in [Stat::NrIsolatedAnon, Stat::NrIsolatedFile] {
            assert_eq!(self.engine.figures().vmstat(stat), 0, "{} at the end", stat.name());
        }
    }
}
