//! Pages of slow memory that a task has isolated, to promote them when its call is over. [tiering 7]

use crate::page_alloc::zones::Zones;
use crate::tiers::MemoryTiers;
use crate::units::{NodeId, Pfn, SECTION_FRAMES};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Pages that a task has isolated, to promote them when its call is over.
#[derive(Default)]
pub struct SetAside {
    /// Folios with the node that each was on, in the order in which they were read.
    pub folios: Vec<(Pfn, NodeId)>,
    /// Their pages.
    pub pages: u64,
}

impl SetAside {
    /// Returns whether no page is isolated.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.folios.is_empty()
    }

    /// The folios, in the order in which they were read.
    pub fn folios(&self) -> impl Iterator<Item = Pfn> {
        self.folios.iter().map(|&(pfn, _)| pfn)
    }

    /// Puts others behind them.
    pub fn append(&mut self, others: SetAside) {
        self.folios.extend(others.folios);
        self.pages += others.pages;
    }

    /// Isolated pages.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

/// The frames of a lower tier. A read needs this for each page, so it must not read the folio. Clones share the set.
#[derive(Clone)]
pub struct LowerTierFrames {
    /// By section; nodes begin with one of their own.
    sections: Arc<[bool]>,
    /// True if reads of them have an effect on promotion. Shared with threads that read outside the engine.
    are_watched: Arc<AtomicBool>,
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
        LowerTierFrames { sections: sections.into(), are_watched: Arc::default() }
    }

    /// Returns whether a frame is of a lower tier.
    #[inline]
    pub fn holds(&self, pfn: Pfn) -> bool {
        self.sections.get((pfn.0 / SECTION_FRAMES) as usize).is_some_and(|&lower| lower)
    }

    /// Says whether reads of these frames matter to anyone.
    pub fn watch(&self, are_watched: bool) {
        self.are_watched.store(are_watched, Relaxed);
    }

    /// Returns whether they do.
    #[inline]
    pub fn are_watched(&self) -> bool {
        self.are_watched.load(Relaxed)
    }
}

/// For a thread that reads file pages while the engine runs: the reads that it has to report although their words do not change. These are reads of
/// slow memory, if pages that are read again are promoted or tracked.
#[derive(Clone)]
pub struct WatchedReads(LowerTierFrames);

impl WatchedReads {
    /// The handle of a machine's frames.
    pub fn of(frames: &LowerTierFrames) -> WatchedReads {
        WatchedReads(frames.clone())
    }

    /// Returns whether a read of the page in this frame must be reported.
    #[inline]
    pub fn holds(&self, pfn: Pfn) -> bool {
        self.0.are_watched() && self.0.holds(pfn)
    }
}
