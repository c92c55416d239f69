//! Young bits that a host has ([`crate::AccessedBits`]), put into the words before they are read. [live-3 2.4]

use std::ops::Range;

use crate::core::Core;
use crate::units::MmId;

impl Core {
    /// Sets the young bits of those of these pages that were used, if the host has the bits of this address space.
    #[inline]
    pub(crate) fn gather_accessed(&mut self, mm: MmId, pages: Range<u64>) {
        if self.sampler.is_some() {
            self.gather_from_host(mm, pages);
        }
    }

    #[cold]
    #[inline(never)]
    fn gather_from_host(&mut self, mm: MmId, pages: Range<u64>) {
        let space = self.mm.memory.mm_mut(mm);
        let Some(sampler) = self.sampler.as_mut().filter(|_| space.is_sampled) else { return };
        sampler.bits.gather(mm, pages, &mut sampler.accessed);
        let mut words = space.table.mapped_words(0, space.table.pages());
        for page in sampler.accessed.drain(..) {
            // A page that is on its way out has no entry any more.
            words.touch(page, false);
        }
    }
}
