//! The TLB, the processor's cache of translations, as far as it hides accesses from the accessed bit.
//!
//! Hardware sets an accessed bit when it walks a page table, and it walks only for translations that it doesn't hold. Linux on
//! x86 clears accessed bits without flushing translations: a flush costs more than the accesses that go unseen. So a page whose
//! translation stays cached looks idle however often it is used. [reclaim 9 row 1; reclaim-6.12 M14]
//!
//! The cache is direct-mapped by page. When a page is unmapped, its translation goes. Without a cache every access sets the bit,
//! about as with a small one that is flushed often.

/// Translations of one address space.
pub struct Tlb {
    /// By the page number's low bits: the page, plus 1.
    entries: Box<[u64]>,
}

impl Tlb {
    /// `entries`: a power of two.
    pub fn new(entries: u32) -> Tlb {
        Tlb { entries: vec![0; entries as usize].into_boxed_slice() }
    }

    fn slot(&mut self, page: u64) -> &mut u64 {
        let mask = self.entries.len() as u64 - 1;
        &mut self.entries[(page & mask) as usize]
    }

    /// Returns true if the translation is held; it is afterwards.
    pub fn access(&mut self, page: u64) -> bool {
        std::mem::replace(self.slot(page), page + 1) == page + 1
    }

    /// Forgets the translation of a page.
    pub fn drop_page(&mut self, page: u64) {
        let slot = self.slot(page);
        if *slot == page + 1 {
            *slot = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_translation_is_held_until_it_is_dropped_or_another_takes_its_place() {
        let mut tlb = Tlb::new(4);
        assert!(!tlb.access(1) && tlb.access(1));
        tlb.drop_page(1);
        assert!(!tlb.access(1) && !tlb.access(5) && !tlb.access(1));
    }
}
