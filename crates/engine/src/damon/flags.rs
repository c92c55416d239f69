//! Sampling a page: it is made old, and a while later tested. [access-aware 1.3, 4]
//!
//! Free frames, and folios that are isolated or in a batch of a CPU, are not prepared and count as not accessed.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::state::State;
use crate::units::Pfn;

/// What a look at a page is for. A scheme looks at each page of a region, and a sample at one of them. If a page stands for many, a host
/// multiplies the price of the first alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    Sample,
    Scheme,
}

impl Core {
    /// Counts a page that is looked up.
    pub(super) fn count_damon_page(&mut self, look: Look) {
        match look {
            Look::Sample => self.out.count.damon_samples(1),
            Look::Scheme => self.out.count.damon_pages(1),
        }
    }

    fn count_damon_steps(&mut self, look: Look, steps: u64) {
        match look {
            Look::Sample => self.out.count.damon_sample_steps(steps),
            Look::Scheme => self.out.count.rmap_steps(steps),
        }
    }

    /// The folio of a frame, if it is on a list.
    pub(super) fn damon_folio(&mut self, look: Look, frame: Pfn) -> Option<Pfn> {
        self.count_damon_page(look);
        let pfn = self.mm.memory.folio_of(frame);
        let folio = self.mm.memory.folios.get(pfn);
        folio.has(FolioFlags::LRU | FolioFlags::CHARGED).then_some(pfn)
    }

    /// Clears the accessed bits of all entries that map a folio, and makes it idle.
    pub(super) fn damon_make_old(&mut self, look: Look, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        let mut was_young = false;
        if folio.mapped > 0 {
            for at in 0..self.mm.memory.rmap_len(&folio) {
                let (mm, page) = self.mm.rmap_entry(&folio, at);
                self.count_damon_steps(look, 1);
                let table = &mut self.mm.memory.mm_mut(mm).table;
                let word = table.word_if_any(page);
                if word.is_present() && word.pfn() == pfn && table.is_entry_young(page) {
                    table.clear_entry_young(page);
                    was_young = true;
                }
            }
        }
        self.mm.damon.has_flags = true;
        self.mm.memory.set_idle(pfn, was_young);
    }

    /// Returns true if a folio was accessed since it was made old.
    pub(super) fn damon_is_young(&mut self, look: Look, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        if folio.mapped > 0 {
            self.count_damon_steps(look, self.mm.memory.rmap_len(&folio) as u64);
        }
        self.mm.is_mapped_young(pfn) || self.mm.has_idle_flag(pfn) && !self.mm.memory.is_idle(pfn)
    }
}

impl State {
    /// Reclaim has looked at the accessed bits of a folio. Takes its young flag, and returns whether it had one. `has_cleared`: reclaim has cleared
    /// a bit, so the folio is not idle.
    #[cold]
    pub(crate) fn take_flags(&mut self, pfn: Pfn, has_cleared: bool) -> bool {
        if has_cleared {
            self.memory.clear_idle(pfn);
        }
        self.memory.take_seen_young(pfn)
    }

    /// Anonymous memory that nothing maps has no idle flag: no task can have used it.
    fn has_idle_flag(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        folio.has(FolioFlags::INDEXED) || folio.mapped > 0
    }
}
