//! `min_ttl_ms`: a process is killed once no memcg has an oldest generation that is older than that many milliseconds.
//!
//! kswapd checks all groups before each of its passes. As long as one of them has enough pages in an oldest generation that is older than
//! that, reclaim continues as usual. If none has, any page that it took would be needed again soon, so a process has to be killed. Nothing
//! else keeps young generations: the protection is the kill. [reclaim 4.10; reclaim-6.12 4.10]

use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::oom::OomCause;
use crate::units::{LruType, MemcgId, Nanos, NodeId};
use pageout_rules::lru::Lru;

impl Core {
    /// kswapd is about to make a pass over a node at a priority: has a process killed if all that it could take is too young.
    #[doc(alias = "lruvec_is_reclaimable")]
    pub(crate) fn keep_working_set(&mut self, node: NodeId, priority: u8) {
        let min_ttl_ms = self.mm.min_ttl_ms;
        let keeps = min_ttl_ms > 0 && self.mm.config.oom_kill;
        if !keeps || self.mm.memcgs[MemcgId::ROOT].policy.lru != Lru::Generations {
            return;
        }
        let min_ttl = Nanos(min_ttl_ms.saturating_mul(1_000_000));
        let mut groups = self.mm.memcgs.subtree(MemcgId::ROOT).into_iter();
        if !groups.any(|memcg| self.is_old_enough(memcg, node, priority, min_ttl)) {
            // If no process may be killed, nothing else can be done, and memory is not short yet.
            let _ = self.out_of_memory(MemcgId::ROOT, |_| OomCause::WorkingSet { min_ttl_ms });
        }
    }

    /// Returns true if a group has pages on a node that reclaim may take without thrashing.
    fn is_old_enough(&self, memcg: MemcgId, node: NodeId, priority: u8, min_ttl: Nanos) -> bool {
        let protection = self.mm.memcgs.protection(MemcgId::ROOT, memcg).min;
        if protection > 0 && protection >= self.mm.memcgs[memcg].usage {
            return false;
        }
        let lruvec: LruvecId = self.mm.lruvecs.id(memcg, node);
        let pages = self.mm.evictable(lruvec);
        // A group that was removed goes as a whole.
        let is_sizable = if self.mm.memcgs[memcg].is_online { pages >> priority > 0 } else { pages > 0 };
        let Some(generations) = &self.mm.lruvecs[lruvec].generations else { return is_sizable };
        let born = generations.birth(generations.min_seq[LruType::File as usize]);
        is_sizable && born.0.saturating_add(min_ttl.0) < self.by.now.0
    }
}
