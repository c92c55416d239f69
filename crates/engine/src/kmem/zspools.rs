//! The shrinker of zsmalloc pools, which compacts them when memory is short.
//!
//! A pool with holes takes more pages than its objects need. It has a shrinker, as slab caches have. What that could free is what
//! the holes come to in whole zspages, and a chunk of it compacts the whole pool. It belongs to no group, so only reclaim for the
//! machine asks it, when it is the root's turn. The calls are those that `mm_shrink_slab_*` show in recorded runs. [tiering-zswap-6.12 1.1]

use crate::core::Core;
use crate::machine::op::Op;
use crate::reclaim::{ScanControl, ShrinkerCall};
use crate::stat::Stat;
use crate::story::{GfpFlags, Shrinker};
use crate::swap::zspool::{Compacted, ZsPool};
use crate::units::{MemcgId, NodeId};

/// Objects of zswap's pool that are moved in a step: a host copies each while others wait for the engine. The kernel's function gives way after each zspage.
const MOVED_IN_A_STEP: usize = 64;

/// A call of a pool's shrinker in progress.
#[derive(Debug)]
pub(crate) struct ZspoolShrink {
    call: ShrinkerCall,
    /// Pages that the call has freed, and the present chunk of it.
    freed: u64,
    freed_by_chunk: u64,
}

/// The outcome of one step of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ZspoolShrinkStep {
    /// Objects have moved; there is more to do.
    Again,
    Over,
}

impl ZspoolShrink {
    /// Begins a call; `None` if there is nothing to free.
    fn begin(pool: &mut ZsPool, sc: &ScanControl) -> Option<ZspoolShrink> {
        let freeable = pool.compactable();
        let call = (freeable > 0).then(|| ShrinkerCall::begin(freeable, &mut pool.deferred, sc.priority))?;
        Some(ZspoolShrink { call, freed: 0, freed_by_chunk: 0 })
    }

    /// Moves at most `most` objects; `None` if the call is over.
    fn compact(&mut self, pool: &mut ZsPool, most: usize) -> Option<Compacted> {
        let chunk = self.call.chunk()?;
        let compacted = pool.compact(most);
        self.freed += compacted.freed.len() as u64;
        self.freed_by_chunk += compacted.freed.len() as u64;
        if compacted.is_over {
            if std::mem::take(&mut self.freed_by_chunk) == 0 {
                assert!(compacted.moved.is_empty(), "objects have moved, and no zspage is empty");
                return None;
            }
            self.call.note(chunk);
        }
        Some(compacted)
    }
}

impl Core {
    /// Offers the pools of zram devices the pressure of a pass over a group's lists. Their bytes are not kept, so a call is not divided into steps.
    pub(crate) fn shrink_zram_pools(&mut self, memcg: MemcgId, node: NodeId, sc: &ScanControl) {
        if !asks_pools(memcg, sc) {
            return;
        }
        let (mut freed, mut calls) = (Vec::new(), Vec::new());
        for zram in self.mm.memory.swap.zrams_mut() {
            let Some(mut shrink) = ZspoolShrink::begin(&mut zram.pool, sc) else { continue };
            while let Some(compacted) = shrink.compact(&mut zram.pool, usize::MAX) {
                freed.extend(compacted.freed);
            }
            zram.pool.deferred += shrink.call.left();
            calls.push(shrink);
        }
        for shrink in calls {
            self.trace_zspool_start(&shrink, node, sc);
            self.note_zspool_end(&shrink, node);
        }
        freed.into_iter().for_each(|pfn| self.zspage_free(pfn));
        self.mm.assert_zspages_counted();
    }

    /// Offers zswap's pool the same pressure; `None` if it has nothing to free.
    pub(crate) fn zspool_shrink_begin(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> Option<ZspoolShrink> {
        if !asks_pools(memcg, sc) {
            return None;
        }
        let shrink = ZspoolShrink::begin(&mut self.mm.zswap.pool, sc)?;
        self.trace_zspool_start(&shrink, node, sc);
        Some(shrink)
    }

    /// Moves the objects of a step.
    #[doc(alias = "zs_shrinker_scan")]
    pub(crate) fn zspool_shrink_step(&mut self, shrink: &mut ZspoolShrink, node: NodeId) -> ZspoolShrinkStep {
        while let Some(compacted) = shrink.compact(&mut self.mm.zswap.pool, MOVED_IN_A_STEP) {
            let Compacted { freed, moved, is_over } = compacted;
            moved.into_iter().for_each(|(from, to)| self.out.push(Op::ZswapMove { from, to }));
            freed.into_iter().for_each(|pfn| self.zspage_free(pfn));
            self.mm.assert_zspages_counted();
            if !is_over {
                return ZspoolShrinkStep::Again;
            }
        }
        self.mm.zswap.pool.deferred += shrink.call.left();
        self.note_zspool_end(shrink, node);
        ZspoolShrinkStep::Over
    }

    fn trace_zspool_start(&mut self, shrink: &ZspoolShrink, node: NodeId, sc: &ScanControl) {
        let gfp = GfpFlags::of_reclaimer(&sc.by);
        self.trace(node, |_| shrink.call.traced_start(Shrinker::Zspool, gfp));
    }

    fn note_zspool_end(&mut self, shrink: &ZspoolShrink, node: NodeId) {
        self.mm.count_node(node, Stat::SlabsScanned, shrink.call.scanned() as i64);
        self.trace(node, |_| shrink.call.traced_end(Shrinker::Zspool, shrink.freed));
    }
}

/// Returns true if a pass over a group's lists asks the shrinkers of pools, which belong to no group.
fn asks_pools(memcg: MemcgId, sc: &ScanControl) -> bool {
    memcg == MemcgId::ROOT && sc.by.is_global()
}
