//! The way of an isolated batch, whichever LRU it came from: it is counted, judged, put back, and counted again. [reclaim 2.6, 2.9]
//!
//! ```text
//!   isolate (the LRU's code) ─► shrink_batch:  judge each ─► free
//!                                                 │
//!                                                 └─► put back (where to: the LRU's business)
//! ```
//! A [`ReclaimStat`] says what became of the batch. The LRU that isolated it draws its conclusions (costs, shares).

use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::reclaim::{ScanControl, Tally};
use crate::stat::{ByType, PGSCAN, PGSTEAL};
use crate::state::State;
use crate::story::Tracepoint;
use crate::units::{LruType, Pfn};
use pageout_rules::lru::{Lru, SecondLook};

/// The outcome of a batch (the kernel's `reclaim_stat`). Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ReclaimStat {
    /// Pages in reclaim's hands at first.
    pub(crate) taken: u64,
    pub(crate) reclaimed: u64,
    /// Pages that were written or are being written, reclaimed or still there.
    pub(crate) written: u64,
    /// Dirty pages, and pages under writeback, that the batch has met.
    pub(crate) tally: Tally,
}

impl Core {
    /// Judges a batch of one type, isolated from the lists of `lru` by looking at `looked_at` pages, and puts back what can't be
    /// freed. Leaves `batch` empty.
    pub(crate) fn shrink_batch(
        &mut self,
        lru: Lru,
        lruvec: LruvecId,
        kind: LruType,
        batch: &mut Vec<Pfn>,
        looked_at: u64,
        sc: &mut ScanControl,
    ) -> ReclaimStat {
        let mut stat = self.judge_batch(lru, lruvec, kind, batch, looked_at, sc);
        if lru == Lru::Generations {
            // The folio was written or unlocked while it was isolated, so it could not be rotated: it is judged once more.
            let mut again = Vec::new();
            for pfn in batch.drain(..) {
                if self.mm.may_have_become_free(pfn) {
                    again.push(pfn);
                } else {
                    self.generations_put_back(lruvec, pfn);
                }
            }
            if !again.is_empty() {
                let (before, first) = (stat.reclaimed, again[0]);
                self.shrink_folio_list(lruvec, &mut again, sc, &mut stat);
                self.trace_shrunk((lruvec, kind, first), looked_at, stat.reclaimed - before, sc);
            }
            for pfn in again {
                self.generations_put_back(lruvec, pfn);
            }
        }
        self.put_back_all(batch);
        self.count_stolen(lruvec, PGSTEAL.of(kind), stat.reclaimed, sc);
        stat
    }

    /// Returns what is left of a batch to the lists, each folio to the one that its state names.
    #[inline]
    pub(super) fn put_back_all(&mut self, batch: &mut Vec<Pfn>) {
        for &pfn in &*batch {
            self.put_back(pfn);
        }
        debug_assert!(
            batch.iter().all(|&pfn| self.mm.memory.folios[pfn].has(FolioFlags::LRU)),
            "a folio of a batch is neither freed nor on a list"
        );
        batch.clear();
    }

    /// Judges a batch, and leaves in it what can't be freed.
    pub(super) fn judge_batch(
        &mut self,
        lru: Lru,
        lruvec: LruvecId,
        kind: LruType,
        batch: &mut Vec<Pfn>,
        looked_at: u64,
        sc: &mut ScanControl,
    ) -> ReclaimStat {
        if batch.is_empty() {
            return ReclaimStat::default();
        }
        let node = self.mm.lruvecs[lruvec].node;
        let taken = batch.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
        let mut stat = ReclaimStat { taken, ..ReclaimStat::default() };
        debug_assert!(taken >= batch.len() as u64, "{} folios of {taken} pages are judged", batch.len());
        debug_assert!(
            batch.iter().all(|&pfn| self.mm.memory.folios[pfn].node == node),
            "a batch of {node:?} has folios of others"
        );
        sc.nr_scanned += taken;
        self.mm.note_isolated(node, kind, taken, sc);
        self.count_scanned(lruvec, PGSCAN.of(kind), taken, sc);
        stat.tally.taken = taken;
        stat.tally.file_taken = if kind == LruType::File { taken } else { 0 };
        let first = batch[0];
        self.shrink_folio_list(lruvec, batch, sc, &mut stat);
        self.trace_shrunk((lruvec, kind, first), looked_at, stat.reclaimed, sc);
        assert!(stat.reclaimed <= taken, "{} pages of {taken} are reclaimed", stat.reclaimed);
        assert!(
            stat.tally.unqueued_dirty + stat.tally.congested <= stat.tally.dirty,
            "more pages than are dirty: {:?}",
            stat.tally
        );
        self.note_batch(lru, lruvec, stat.tally, sc);
        stat
    }

    /// A batch was judged, which began with a folio of this frame.
    #[inline]
    fn trace_shrunk(
        &mut self,
        (lruvec, kind, first): (LruvecId, LruType, Pfn),
        nr_scanned: u64,
        nr_reclaimed: u64,
        sc: &ScanControl,
    ) {
        if self.is_traced() {
            let (kept, priority) = (self.take_kept(), sc.priority);
            let node = self.mm.lruvecs[lruvec].node;
            self.trace(node, |core| Tracepoint::LruShrinkInactive {
                zone: core.mm.memory.zones.zone_of(node, first).kind,
                kind,
                nr_scanned,
                nr_reclaimed,
                kept,
                priority,
            });
        }
    }
}

impl State {
    /// Returns true if nothing speaks against freeing a folio any more that was kept a moment ago.
    fn may_have_become_free(&self, pfn: Pfn) -> bool {
        let folio = self.memory.folios[pfn];
        let in_use = FolioFlags::MLOCKED | FolioFlags::LOCKED | FolioFlags::DIRTY | FolioFlags::WRITEBACK;
        let use_bits = match self.memcgs[folio.memcg].policy.generations.second_look {
            SecondLook::Unreferenced => UseBits::ACTIVE | UseBits::REFERENCED,
            SecondLook::Unmapped => UseBits::ACTIVE,
        };
        !folio.flags().intersects(in_use)
            && folio.mapped == 0
            && !self.memory.use_bits(pfn).intersects(use_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Advice, Config, CpuId, Engine, MemcgId, Policy, Step};

    /// Its write has ended, or its wait in a batch of the CPU. A reference says that it was used only where isolation clears it.
    #[test]
    fn what_becomes_free_in_reclaims_hands_is_judged_again_and_since_6_14_though_it_is_referenced() {
        for (policy, though_referenced) in
            [("mglru@6.1.192", false), ("mglru@6.12", false), ("mglru@6.16", true), ("mglru@7.3", true)]
        {
            let config = Config { policy: Policy::by_name(policy).unwrap(), ..Config::default() };
            let mut engine = Engine::new(config).unwrap();
            let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
            let mm = engine.process_create(memcg);
            let task = engine.task_create(mm, CpuId(0));
            let heap = engine.map_anon(task, 1, Advice::Normal).unwrap();
            let step = engine.start(task, Access::new(heap, 0, true));
            assert!(matches!(step, Step::Done(_)), "{step:?}");
            let pfn = engine.used_folios()[0];
            assert_eq!(engine.core.mm.memory.folios[pfn].memcg, memcg);
            engine.enter(task);
            engine.core.unmap_all(pfn);
            let mut is_judged_again = |is_dirty: bool, use_bits: UseBits| {
                engine.core.mm.memory.folios[pfn].change(FolioFlags::DIRTY, is_dirty);
                engine.core.mm.memory.set_use_bits(pfn, use_bits);
                engine.core.mm.may_have_become_free(pfn)
            };
            assert!(is_judged_again(false, UseBits::empty()), "{policy}");
            assert!(is_judged_again(false, UseBits::WORKINGSET), "{policy}");
            assert_eq!(is_judged_again(false, UseBits::REFERENCED), though_referenced, "{policy}");
            assert!(!is_judged_again(false, UseBits::ACTIVE), "{policy}");
            assert!(!is_judged_again(true, UseBits::empty()), "{policy}");
        }
    }
}
