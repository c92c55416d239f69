//! Isolation: taking a batch off the cold end of a list, so that nobody else finds its folios while they are judged.

use crate::engine::Engine;
use crate::lruvec::LruvecId;
use crate::reclaim::ScanControl;
use crate::stat::Stat;
use crate::units::Pfn;

impl Engine {
    /// Takes folios of up to `n` pages from the tail of a list, coldest first; returns the pages taken.
    pub(crate) fn isolate_from(
        &mut self,
        lruvec: LruvecId,
        list: usize,
        n: u64,
        into: &mut Vec<Pfn>,
    ) -> u64 {
        debug_assert!(into.is_empty());
        let mut taken = 0;
        while taken < n {
            let Some(pfn) = self.lruvecs[lruvec].lists[list].tail() else { break };
            taken += self.memory.folios[Pfn(pfn)].pages();
            self.lru_unlink(Pfn(pfn));
            into.push(Pfn(pfn));
        }
        self.work.scanned += taken;
        taken
    }

    /// Counts scanned pages. A group's own reclaim appears in `memory.stat` under its reclaimer's name, and in
    /// `/proc/vmstat` by type only. [6.12 2.6]
    pub(crate) fn count_scanned(&mut self, lruvec: LruvecId, by_type: Stat, pages: u64, sc: &ScanControl) {
        let reclaimer = if sc.proactive { Stat::PgscanProactive } else { Stat::PgscanDirect };
        self.count_memcg(lruvec, reclaimer, pages as i64);
        self.count_node(self.lruvecs[lruvec].node, by_type, pages as i64);
    }

    /// Counts reclaimed pages, likewise.
    pub(crate) fn count_stolen(&mut self, lruvec: LruvecId, by_type: Stat, pages: u64, sc: &ScanControl) {
        let reclaimer = if sc.proactive { Stat::PgstealProactive } else { Stat::PgstealDirect };
        self.count_memcg(lruvec, reclaimer, pages as i64);
        self.count_node(self.lruvecs[lruvec].node, by_type, pages as i64);
        self.work.reclaimed += pages;
    }
}
