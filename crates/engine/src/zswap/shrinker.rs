//! zswap's dynamic shrinker: how many of a memcg's entries reclaim writes back, in addition to the pages that it takes from the
//! LRU lists.
//!
//! It is a slab shrinker (`reclaim/shrinker.rs`), so a small pool is touched only where reclaim has come to low priorities.
//!
//! Two kinds of entries are protected. The first are as many as pages had to be read from the device since it last counted. The second is
//! each entry that it meets for the first time (second chance). An entry whose page is in use already ends the call: it is warm there.
//! [tiering-zswap-6.12 1.4, 1.5]

use super::EntryId;
use super::writeback::Writeback;
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::reclaim::{ScanControl, ShrinkerCall};
use crate::stat::Stat;
use crate::state::State;
use crate::story::{GfpFlags, Shrinker};
use crate::units::PAGE_SIZE;
use pageout_rules::zswap::ZswapProtection;

/// A call in progress.
#[derive(Debug)]
pub(crate) struct ZswapShrink {
    lruvec: LruvecId,
    call: ShrinkerCall,
    /// The current chunk: its size, the steps left of it, and the entries that it has written.
    chunk: u64,
    left: u64,
    written: u64,
    /// Entries that the call has written.
    freed: u64,
}

/// The outcome of one step of the shrinker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ZswapShrinkStep {
    /// An entry is being written back; there is more to do.
    Again,
    Over,
}

impl Core {
    /// Begins a call on behalf of a reclaimer; `None` if there is nothing to do.
    pub(crate) fn zswap_shrink_begin(&mut self, lruvec: LruvecId, sc: &ScanControl) -> Option<ZswapShrink> {
        if !self.mm.config.zswap_shrinker_enabled || self.mm.zswap.stored() == 0 {
            return None;
        }
        let freeable = self.zswap_count_freeable(lruvec, sc);
        if freeable == 0 {
            return None;
        }
        let call = ShrinkerCall::begin(freeable, &mut self.mm.lruvecs[lruvec].zswap.deferred, sc.priority);
        self.trace(self.mm.lruvecs[lruvec].node, |_| {
            call.traced_start(Shrinker::Zswap, GfpFlags::of_reclaimer(&sc.by))
        });
        Some(ZswapShrink { lruvec, call, chunk: 0, left: 0, written: 0, freed: 0 })
    }

    #[doc(alias = "zswap_shrinker_count")]
    fn zswap_count_freeable(&mut self, lruvec: LruvecId, sc: &ScanControl) -> u64 {
        let memcg = self.mm.lruvecs[lruvec].memcg;
        if !sc.by.may_enter_fs || !self.mm.may_write_back(memcg) {
            return 0;
        }
        self.flush_for_reader(memcg);
        let backing = self.mm.memcg_stat(memcg, Stat::Zswap).max(0) as u64 / PAGE_SIZE;
        let stored = self.mm.memcg_stat(memcg, Stat::Zswapped).max(0) as u64;
        let lru = &mut self.mm.lruvecs[lruvec].zswap;
        if stored == 0 || lru.list.is_empty() {
            return 0;
        }
        let unprotected = match self.mm.config.policy.machine.zswap.protection {
            ZswapProtection::Size => lru.list.len().saturating_sub(lru.protected),
            ZswapProtection::SecondChance => {
                let used = lru.disk_swapins.min(lru.list.len());
                lru.disk_swapins -= used;
                lru.list.len() - used
            }
        };
        (u128::from(unprotected) * u128::from(backing) / u128::from(stored)) as u64
    }

    /// Goes on up to an entry that is written back.
    #[doc(alias = "zswap_shrinker_scan")]
    pub(crate) fn zswap_shrink_step(&mut self, shrink: &mut ZswapShrink) -> ZswapShrinkStep {
        loop {
            if shrink.left == 0 && !self.mm.zswap_next_chunk(shrink) {
                break;
            }
            let Some(number) = self.mm.lruvecs[shrink.lruvec].zswap.list.head() else {
                shrink.left = 0;
                continue;
            };
            assert!(shrink.left > 0, "a chunk of the shrinker has no step left");
            shrink.left -= 1;
            match self.zswap_offer(EntryId(number)) {
                None | Some(Writeback::NoMemory) => {}
                Some(Writeback::Exists) => break,
                Some(Writeback::Begun) => {
                    shrink.written += 1;
                    shrink.freed += 1;
                    return ZswapShrinkStep::Again;
                }
            }
        }
        self.mm.lruvecs[shrink.lruvec].zswap.deferred += shrink.call.left();
        self.trace(self.mm.lruvecs[shrink.lruvec].node, |_| {
            shrink.call.traced_end(Shrinker::Zswap, shrink.freed)
        });
        ZswapShrinkStep::Over
    }
}

impl State {
    /// Ends a chunk and begins another; false if the call is over.
    fn zswap_next_chunk(&mut self, shrink: &mut ZswapShrink) -> bool {
        if shrink.chunk > 0 {
            if shrink.written == 0 {
                return false;
            }
            shrink.call.note(shrink.chunk);
            let node = self.lruvecs[shrink.lruvec].node;
            self.count_node(node, Stat::SlabsScanned, shrink.chunk as i64);
        }
        let Some(chunk) = shrink.call.chunk() else { return false };
        shrink.chunk = chunk;
        (shrink.left, shrink.written) = (shrink.chunk, 0);
        let lru = &self.lruvecs[shrink.lruvec].zswap;
        let spares = lru.protected >= lru.list.len().saturating_sub(shrink.chunk);
        !(self.config.policy.machine.zswap.protection == ZswapProtection::Size && spares)
    }
}
