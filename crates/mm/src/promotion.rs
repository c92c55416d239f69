//! Pages of slow memory that a task has set aside, to be promoted when its call is over. [tiering 7]

use crate::page_alloc::zones::Zones;
use crate::tiers::MemoryTiers;
use crate::units::{NodeId, Pfn, SECTION_FRAMES};

/// What a task has set aside, to be promoted when its call is over.
#[derive(Default)]
pub struct SetAside {
    /// Folios with the node that each was on, in the order in which they were read.
    pub folios: Vec<(Pfn, NodeId)>,
    /// Their pages.
    pub pages: u64,
}

impl SetAside {
    /// Whether nothing was set aside.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.folios.is_empty()
    }

    /// The folios, in the order in which they were read.
    pub fn folios(&self) -> impl Iterator<Item = Pfn> {
        self.folios.iter().map(|&(pfn, _)| pfn)
    }

    /// Pages set aside.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

/// Which frames are of a lower tier: what a read has to know of each page, so that it must cost no look at the folio.
pub struct LowerTierFrames {
    /// By section; nodes begin with one of their own.
    sections: Vec<bool>,
}

impl LowerTierFrames {
    /// The frames of all nodes that are not of the top tier.
    pub fn new(zones: &Zones, tiers: &MemoryTiers, nodes: impl Iterator<Item = NodeId>) -> LowerTierFrames {
        let mut sections = Vec::new();
        for node in nodes.filter(|&node| !tiers.node_is_top_tier(node)) {
            for zone in zones.of_node(node) {
                let end = zone.start + zone.present as u32;
                let (first, last) = (zone.start / SECTION_FRAMES, end.div_ceil(SECTION_FRAMES));
                sections.resize(sections.len().max(last as usize), false);
                sections[first as usize..last as usize].fill(true);
            }
        }
        LowerTierFrames { sections }
    }

    /// Whether a frame is of a lower tier.
    #[inline]
    pub fn holds(&self, pfn: Pfn) -> bool {
        self.sections.get((pfn.0 / SECTION_FRAMES) as usize).is_some_and(|&lower| lower)
    }
}
