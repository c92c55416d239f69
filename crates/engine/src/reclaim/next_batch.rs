//! Prefetch: while reclaim judges a batch of folios, the processor's caches load the records of the next one.
//!
//! Reclaim meets folios that were not used for long, so no cache of the processor has their records. A walk down a list reads the address
//! of a folio only from the links of the one before it, and so would wait for memory again and again.
//!
//! Here each folio that is judged advances a walk down the list by one. Each step prefetches what the next one needs: a folio's links,
//! then its record, then its page words. The walk decides and changes nothing. If the next batch turns out to be another one, the prefetch
//! was useless.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::memory::list::{Links, NONE};
use crate::units::Pfn;

/// A walk down an LRU list, some folios ahead of reclaim, that prefetches.
pub(super) struct NextBatch {
    /// The folio whose links were asked for, or [`NONE`].
    links: u32,
    /// The folio before that one, whose record was asked for, or [`NONE`].
    record: u32,
}

impl NextBatch {
    /// Begins the walk at the list's coldest folio.
    pub(super) fn new(coldest: Option<Pfn>) -> NextBatch {
        NextBatch { links: coldest.map_or(NONE, |pfn| pfn.0), record: NONE }
    }

    /// Goes one folio further.
    #[inline]
    pub(super) fn step(&mut self, core: &Core) {
        let folios = &core.mm.memory.folios;
        if self.record != NONE {
            let folio = &folios[Pfn(self.record)];
            // It may have left its list since.
            if folio.has(FolioFlags::LRU) {
                core.mm.prefetch_words(folio);
            }
        }
        self.record = self.links;
        if self.links != NONE {
            folios.prefetch(Pfn(self.record));
            self.links = folios.links(self.links).0;
            if self.links != NONE {
                folios.prefetch_links(Pfn(self.links));
            }
        }
    }
}
