//! Promotion: a folio of slow memory goes to a node of the top tier. [tiering 6; tiering-zswap-6.12 3.5] A folio that balancing of CPUs moves to
//! another node goes the same way. [access-aware 6.3]
//!
//! Its callers have found a hot page: hint faults know the mapping in which the page was used, others don't. What may keep a folio
//! back, and in which order that is asked, is `nodes.rs`; why it was called, and whether too many have gone already, is the caller's.

use super::NotMigrated;
use crate::core::Core;
use crate::stat::Stat;
use crate::story::MigrateReason;
use crate::units::{MmId, NodeId, Pfn};
use pageout_rules::numa_balancing::PromoteCount;

impl Core {
    /// Moves a folio that a hint fault has met to another node, where it is added to its lists as a new one. A folio that
    /// can't move stays on its list unchanged. `vma`: the mapping on whose behalf.
    #[doc(alias = "migrate_misplaced_folio")]
    pub(crate) fn promote_folio(
        &mut self,
        pfn: Pfn,
        to: NodeId,
        vma: (MmId, usize),
        why: MigrateReason,
    ) -> Result<(), NotMigrated> {
        assert_ne!(self.mm.memory.folios[pfn].node, to, "{pfn:?} moves to the node that it is on");
        self.migrate_prepare(pfn, Some(vma), to)?;
        if self.promote_prepared(&[pfn], to, why) > 0 { Ok(()) } else { Err(NotMigrated::Again) }
    }

    /// Promotes folios that were prepared ([`Core::migrate_prepare`]), a batch at most; returns how many pages have moved. Pages that
    /// come from the top tier do not count as promoted.
    pub(crate) fn promote_prepared(&mut self, folios: &[Pfn], to: NodeId, why: MigrateReason) -> u64 {
        let is_upward = self.mm.tiers.node_is_top_tier(to)
            && folios.iter().all(|&pfn| !self.mm.tiers.node_is_top_tier(self.mm.memory.folios[pfn].node));
        let pages: u64 = folios.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
        let moved = self.migrate_misplaced(folios, to, why);
        assert!(moved <= pages, "{moved} pages of {pages} are promoted");
        let counts = why != MigrateReason::Misplaced
            || self.mm.config.is_memory_tiering()
            || self.mm.config.policy.machine.numa_balancing.promote_count == PromoteCount::AnyMove;
        if is_upward && counts {
            self.mm.count_node(to, Stat::PgpromoteSuccess, moved as i64);
        }
        moved
    }
}
