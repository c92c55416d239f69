//! Seam 3, workingset: what it means that a page is needed again after it was evicted.
//!
//! When reclaim takes a page, it leaves a shadow in the page's slot: who evicted it and when. When the page comes back, the
//! shadow tells whether it was evicted too early. What "too early" means is the policy's; counting refaults and keeping the
//! shadows is shared.

mod distance;
mod shadow_nodes;

use crate::engine::Engine;
use crate::lruvec::LruvecId;
use crate::stat::{ACTIVATE, ByType, REFAULT};
use crate::table::{Entry, Shadow, Word};
use crate::units::{LruType, Pfn};
pub(crate) use shadow_nodes::ShadowNodes;

/// What a refault means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workingset {
    /// A page that returns before the active list would have turned over is activated: classic.
    Distance,
    /// Refaults are counted and have no consequence.
    CountOnly,
}

impl Engine {
    /// The shadow to leave for a folio that reclaim on behalf of `target` evicts.
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, target: LruvecId) -> Shadow {
        self.distance_eviction(pfn, target)
    }

    /// A reclaim cycle is over. The next one will compare the activations that refaults have caused with these, which are as
    /// old as a reader's copy is.
    pub(crate) fn workingset_end_cycle(&mut self, target: LruvecId) {
        for kind in LruType::BOTH {
            self.lruvecs[target].refaults[kind as usize] = self.stale(target, ACTIVATE.of(kind));
        }
    }

    /// Evaluates the shadow found in the slot of a folio that has just been read in again, before it goes to the lists.
    pub(crate) fn workingset_refault(&mut self, pfn: Pfn, found: Word) {
        let Entry::Shadow(shadow) = found.decode() else { return };
        let folio = self.memory.folios[pfn];
        let lruvec = self.lruvec_of(pfn);
        self.flush_stats_ratelimited();
        self.count(lruvec, REFAULT.of(folio.lru_type()), folio.pages() as i64);
        match self.memcgs[folio.memcg].policy.workingset {
            Workingset::Distance => self.distance_refault(pfn, shadow),
            Workingset::CountOnly => {}
        }
    }
}
