//! Direct compaction: who needs a block of pages, and finds free ones that lie apart, makes the block itself. [machine 2.9]
//!
//! ```text
//!   zone after zone of the request's list ─▶ a run (`compaction.rs`) ─┬─ a block: it is the request's before anyone else sees it
//!                                                                     └─ none: the next zone
//! ```
//! A block made this way needs to pass no mark: its pages were free before, only not side by side.

use crate::core::Core;
use crate::migrate::{CompactMode, CompactStep, Compacted, Compaction, Goal};
use crate::page_alloc::request::{Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::stat::Stat;
use crate::state::State;
use crate::units::ZoneType;
use crate::units::{MemcgId, NodeId, Pfn};

/// Direct compaction in progress.
pub(crate) struct DirectCompaction {
    mode: CompactMode,
    /// Zones that it has not been to, last first.
    zones: Vec<(NodeId, ZoneType)>,
    run: Option<Compaction>,
    /// The result of the runs so far.
    result: Compacted,
}

/// The outcome of one step of direct compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DirectCompactStep {
    Again,
    Page(Pfn),
    /// The run ended without a block.
    Failed(Compacted),
}

impl Core {
    /// Takes it one batch further.
    #[doc(alias = "__alloc_pages_direct_compact")]
    pub(crate) fn direct_compact_step(
        &mut self,
        request: &Request,
        rights: Rights,
        memcg: MemcgId,
        direct: &mut DirectCompaction,
    ) -> DirectCompactStep {
        loop {
            let Some(run) = &mut direct.run else {
                let Some((node, zone)) = direct.zones.pop() else {
                    return self.direct_compact_end(request, rights, memcg, direct);
                };
                let goal = Goal::Block(request.wanted());
                direct.run = Some(Compaction::new(node, zone, direct.mode, goal));
                continue;
            };
            let ended = match self.compact_step(run) {
                CompactStep::Again => return DirectCompactStep::Again,
                CompactStep::Done(ended) => ended,
            };
            direct.result = direct.result.max(ended);
            let (node, zone) = (run.node, run.zone);
            direct.run = None;
            if ended != Compacted::Success {
                continue;
            }
            if let Some(pfn) = self.capture(node, zone, request, memcg) {
                assert_eq!(
                    self.mm.memory.folios[pfn].order, request.order,
                    "a request gets a block of another size"
                );
                assert_eq!(
                    self.mm.memory.folios[pfn].node, node,
                    "a block is made on a node, and taken from another"
                );
                self.mm.count_node(request.node, Stat::CompactStall, 1);
                self.mm.count_node(request.node, Stat::CompactSuccess, 1);
                return DirectCompactStep::Page(pfn);
            }
        }
    }

    /// All zones have been tried. Pages may have come together all the same: others free some, too.
    fn direct_compact_end(
        &mut self,
        request: &Request,
        rights: Rights,
        memcg: MemcgId,
        direct: &DirectCompaction,
    ) -> DirectCompactStep {
        if direct.result < Compacted::Complete {
            return DirectCompactStep::Failed(direct.result);
        }
        self.mm.count_node(request.node, Stat::CompactStall, 1);
        match self.try_alloc(request, Watermark::Min, rights, memcg) {
            Some(pfn) => {
                self.mm.count_node(request.node, Stat::CompactSuccess, 1);
                DirectCompactStep::Page(pfn)
            }
            None => {
                self.mm.count_node(request.node, Stat::CompactFail, 1);
                DirectCompactStep::Failed(direct.result)
            }
        }
    }
}

impl State {
    /// Begins direct compaction for a request.
    pub(crate) fn direct_compaction(&self, request: &Request, mode: CompactMode) -> DirectCompaction {
        let zones = self.memory.zones.zonelist(request.node, request.class, request.allowed);
        let mut zones: Vec<(NodeId, ZoneType)> = zones.map(|zone| (zone.node, zone.kind)).collect();
        zones.reverse();
        DirectCompaction { mode, zones, run: None, result: Compacted::Skipped }
    }
}
