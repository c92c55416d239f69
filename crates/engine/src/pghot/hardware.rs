//! Hardware hints (samples of accesses, such as AMD IBS takes): their way from the interrupt to the record. [tiering 5.1]
//!
//! ```text
//!   machine: a sample ─▶ sampled: where was its page? ─▶ on a list? ─▶ machine: a ring, as long as it has room ─▶ later: hinted
//! ```
//! What hardware samples, and how much of that is lost, is the machine's. The counters are those of the third posting's driver; of those
//! before it, which count what never reached memory, a machine without processor caches has none.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::pghot::report::Source;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{NodeId, Pfn};

impl Core {
    /// A hint was taken out of its ring: a page was accessed `accesses` times, from this node if that is known.
    pub(crate) fn hardware_hinted(&mut self, pfn: Pfn, nid: Option<NodeId>, accesses: u32) {
        self.record_accesses(pfn, nid, Source::Hardware, accesses).expect("hardware names its own nodes");
    }

    /// A hint was taken out of its ring that is for pages in a row, which share a counter.
    pub(crate) fn hardware_hinted_range(&mut self, first: Pfn, pages: u32, accesses: u32) {
        self.record_range(first, pages, None, Source::Hardware, accesses).expect("it names no node");
    }
}

impl State {
    /// An access of a CPU of node `from` to a frame was sampled. Whether it is worth keeping.
    pub(crate) fn hardware_sampled(&mut self, pfn: Pfn, from: NodeId) -> bool {
        let folio = self.memory.folios[self.memory.folio_of(pfn)];
        self.count_node(from, Stat::HwhintNrEvents, 1);
        let is_top_tier = self.tiers.node_is_top_tier(folio.node);
        let source = if is_top_tier { Stat::HwhintDramAccesses } else { Stat::HwhintCxlAccesses };
        self.count_node(from, source, 1);
        if folio.node != from {
            self.count_node(from, Stat::HwhintRemoteNode, 1);
        }
        if !folio.has(FolioFlags::LRU) {
            self.count_node(from, Stat::HwhintNonLru, 1);
            return false;
        }
        true
    }

    /// A sample worth keeping was stored, or found the buffer full.
    pub(crate) fn hardware_kept(&mut self, from: NodeId, has_room: bool) {
        let stat = if has_room { Stat::HwhintUsefulSamples } else { Stat::HwhintBufferFull };
        self.count_node(from, stat, 1);
    }
}
