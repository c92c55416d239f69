//! Pools of compressed pages are compacted when memory is short.
//!
//! A pool with holes takes more pages than its objects need. It has a shrinker, as slab caches have. What that could free is what
//! the holes come to in whole zspages, and a chunk of it compacts the whole pool. It belongs to no group, so only reclaim for the
//! machine asks it, when it is the root's turn. [zswap 1.1; the calls by `mm_shrink_slab_*` of recorded runs]

use crate::core::Core;
use crate::reclaim::{ScanControl, ShrinkerCall};
use crate::stat::Stat;
use crate::swap::zspool::ZsPool;
use crate::units::{MemcgId, NodeId, Pfn};

impl Core {
    /// Offers each pool the pressure of a pass over a group's lists.
    pub(crate) fn shrink_zspools(&mut self, memcg: MemcgId, node: NodeId, sc: &ScanControl) {
        if memcg != MemcgId::ROOT || !sc.by.is_global() {
            return;
        }
        let zrams = self.memory.swap.zrams_mut().map(|zram| &mut zram.pool);
        let mut freed = Vec::new();
        let pools = zrams.chain([&mut self.zswap.pool]);
        let scanned: u64 = pools.map(|pool| shrink(pool, sc.priority, &mut freed)).sum();
        self.count_node(node, Stat::SlabsScanned, scanned as i64);
        freed.into_iter().for_each(|pfn| self.zspage_free(pfn));
    }
}

/// A call of a pool's shrinker: what it scanned. The pages that it frees join `freed`.
fn shrink(pool: &mut ZsPool, priority: u8, freed: &mut Vec<Pfn>) -> u64 {
    let freeable = pool.compactable();
    if freeable == 0 {
        return 0;
    }
    let mut call = ShrinkerCall::begin(freeable, &mut pool.deferred, priority);
    while let Some(chunk) = call.chunk() {
        let (pages, _) = pool.compact();
        if pages.is_empty() {
            break;
        }
        freed.extend(pages);
        call.note(chunk);
    }
    pool.deferred += call.left();
    call.scanned()
}
