//! Checks of the engine's counters, made from outside.

use super::ByteMachine;
use crate::stat::ISOLATED;
use crate::{Pfn, Stat};
use std::collections::BTreeSet;

impl ByteMachine {
    /// Panics if the count of an event has decreased, if more pages were promoted than there were candidates, or if records of hotness are
    /// wrongly ready or taken. Also panics if pages count as isolated that no task has isolated.
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
        self.check_records();
        if self.tasks.iter().all(|task| task.is_at_rest()) {
            self.check_isolated();
        }
    }

    /// A record that has become ready has counted enough for it. A record that was taken holds only later reports.
    fn check_records(&mut self) {
        let (core, before) = (&self.engine.core, &self.ready);
        let (records, reports) = (&core.mm.pghot.records, crate::pghot::Hotness::of(&core.mm.config).reports);
        let ready: BTreeSet<Pfn> =
            records.iter().filter(|(_, record)| record.ready).map(|(pfn, _)| pfn).collect();
        for &pfn in ready.difference(before) {
            let record = records.get(pfn);
            assert!(
                record.freq >= reports,
                "{pfn:?} is ready too early: {record:?}, after {reports} reports"
            );
        }
        for &pfn in before.difference(&ready) {
            let record = records.get(pfn);
            let (is_empty, is_new) = (records.layout().encode(record) == 0, record.freq < reports);
            assert!(is_empty || is_new, "{pfn:?} was taken, and its record says {record:?}");
        }
        self.ready = ready;
    }

    /// No call of reclaim is in progress: the isolated pages are those that readers have isolated for promotion in
    /// calls that are not over.
    fn check_isolated(&self) {
        let held = self.engine.pages_set_aside();
        for node in self.engine.core.mm.memory.nodes() {
            for (kind, stat) in ISOLATED.into_iter().enumerate() {
                let held = held.get(&(node, kind)).copied().unwrap_or_default();
                assert_eq!(
                    self.engine.figures().node_stat(node, stat),
                    held,
                    "{} of {node:?} at rest",
                    stat.name()
                );
            }
        }
    }
}
