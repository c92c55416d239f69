//! While a batch is judged, the next one comes out of memory.
//!
//! Reclaim meets what nobody has used for long, so no cache of the processor has its records. Who walks down a list can't know a folio
//! before it has read the links of the one before it, and so would wait for memory again and again. Here each folio that is judged
//! takes a walk down the list one further, and each step asks for what the next one needs: a folio's links, then its record, then its
//! words. Nothing is decided by it, and nothing is changed: where the next batch is another one, something was asked for in vain.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::memory::list::{Links, NONE};
use crate::units::Pfn;

/// A walk ahead of reclaim.
pub(super) struct NextBatch {
    /// The folio whose links were asked for, or [`NONE`].
    links: u32,
    /// The one before it, whose record was.
    record: u32,
}

impl NextBatch {
    /// Begins with the folio that comes next.
    pub(super) fn new(coldest: Option<Pfn>) -> NextBatch {
        NextBatch { links: coldest.map_or(NONE, |pfn| pfn.0), record: NONE }
    }

    /// Goes one folio further.
    #[inline]
    pub(super) fn step(&mut self, core: &Core) {
        let folios = &core.memory.folios;
        if self.record != NONE {
            let folio = &folios[Pfn(self.record)];
            // It may have left its list since.
            if folio.has(FolioFlags::LRU) {
                core.prefetch_words(folio);
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
