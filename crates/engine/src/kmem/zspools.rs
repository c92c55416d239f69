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

impl Core {
    /// Offers each pool the pressure of a pass over a group's lists.
    #[doc(alias = "zs_shrinker_scan")]
    pub(crate) fn shrink_zspools(&mut self, memcg: MemcgId, node: NodeId, sc: &ScanControl) {
        if memcg != MemcgId::ROOT || !sc.by.is_global() {
            return;
        }
        let zrams = self.mm.memory.swap.zrams_mut().map(|zram| &mut zram.pool);
        let mut freed = Vec::new();
        let mut calls = Vec::new();
        for pool in zrams {
            let mut compacted = Compacted::default();
            // The bytes of a zram device are not kept.
            let call = shrink(pool, sc.priority, &mut compacted);
            calls.extend(call.map(|call| (call, compacted.freed.len())));
            freed.extend(compacted.freed);
        }
        let mut compacted = Compacted::default();
        let call = shrink(&mut self.mm.zswap.pool, sc.priority, &mut compacted);
        calls.extend(call.map(|call| (call, compacted.freed.len())));
        freed.extend(compacted.freed);
        compacted.moved.into_iter().for_each(|(from, to)| self.out.push(Op::ZswapMove { from, to }));
        for (call, freed) in calls {
            self.mm.count_node(node, Stat::SlabsScanned, call.scanned() as i64);
            let gfp = GfpFlags::of_reclaimer(&sc.by);
            self.trace(node, |_| call.traced_start(Shrinker::Zspool, gfp));
            self.trace(node, |_| call.traced_end(Shrinker::Zspool, freed as u64));
        }
        freed.into_iter().for_each(|pfn| self.zspage_free(pfn));
        self.mm.assert_zspages_counted();
    }
}

/// A call of a pool's shrinker, if there is anything to free. What it frees and moves joins `compacted`.
fn shrink(pool: &mut ZsPool, priority: u8, compacted: &mut Compacted) -> Option<ShrinkerCall> {
    let freeable = pool.compactable();
    if freeable == 0 {
        return None;
    }
    let mut call = ShrinkerCall::begin(freeable, &mut pool.deferred, priority);
    while let Some(chunk) = call.chunk() {
        let Compacted { freed, moved } = pool.compact();
        if freed.is_empty() {
            break;
        }
        compacted.freed.extend(freed);
        compacted.moved.extend(moved);
        call.note(chunk);
    }
    pool.deferred += call.left();
    Some(call)
}
