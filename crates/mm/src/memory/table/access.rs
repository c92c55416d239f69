//! Words of a table, as runs of accesses use them: those of a mapping, and those that read(2) only looks at.

use super::words::Run;
use super::{LEAF_PAGES, Leaf, Word};
use crate::memory::tlb::Tlb;

/// Words that accesses to one mapping read.
pub struct MappedWords<'a> {
    words: Run<'a>,
    leaves: &'a mut [Leaf],
}

/// Words that reads through descriptors use, as long as nothing has to be recorded.
#[derive(Clone, Copy)]
pub struct ReadWords<'a>(Run<'a>);

impl<'a> ReadWords<'a> {
    /// All words of a table.
    pub(super) fn new(words: Run<'a>) -> ReadWords<'a> {
        ReadWords(words)
    }

    /// Prefetches a page's word. Does nothing if there is no such page.
    #[inline(always)]
    pub fn prefetch(self, page: u64) {
        self.0.prefetch(page);
    }

    /// Returns whether a read finds the page, and has nothing to note: be it the first or a further one.
    #[inline(always)]
    pub fn is_settled(self, page: u64) -> bool {
        const HIT: u64 = Word::PRESENT | Word::BUSY | Word::READAHEAD | Word::SETTLED;
        self.0.slot(page).is_some_and(|slot| slot.get().0 & HIT == Word::PRESENT | Word::SETTLED)
    }
}

impl<'a> MappedWords<'a> {
    /// Words of a mapping that begins at a leaf, and all leaves from this one on.
    pub(super) fn new(words: Run<'a>, leaves: &'a mut [Leaf]) -> MappedWords<'a> {
        MappedWords { words, leaves }
    }

    /// See [`super::Table::prefetch`].
    #[inline(always)]
    pub fn prefetch(&self, page: u64) {
        self.words.prefetch(page);
    }

    /// Models the hardware on an access: sets the accessed bit, for a store the dirty bit, and the young bit above. False,
    /// leaving a fault to take, where the page isn't mapped, is marked for a hint fault, or is the shared page of zeroes and would be
    /// written.
    #[inline(always)]
    pub fn touch(&mut self, page: u64, write: bool) -> bool {
        let (bits, looked_at) = if write {
            (Word::ACCESSED | Word::DIRTY, Word::PRESENT | Word::ZERO | Word::PROT_NONE)
        } else {
            (Word::ACCESSED, Word::PRESENT | Word::PROT_NONE)
        };
        self.touch_if(page, looked_at, Word::PRESENT, bits)
    }

    /// Sets these bits if exactly the wanted ones of the checked bits are set. It reads the word once, whatever the rule.
    #[inline(always)]
    fn touch_if(&mut self, page: u64, looked_at: u64, wanted: u64, bits: u64) -> bool {
        let Some(slot) = self.words.slot(page) else { return false };
        let Word(word) = slot.get();
        if word & looked_at != wanted {
            return false;
        }
        slot.set(Word(word | bits));
        let leaf = &mut self.leaves[(page / LEAF_PAGES) as usize];
        if !leaf.contains(Leaf::YOUNG) {
            leaf.insert(Leaf::YOUNG);
        }
        true
    }

    /// Accesses a page in a shared mapping of a regular file. An entry that is clean is write-protected, so that the first store
    /// faults and is counted. [machine 5.1]
    #[inline(always)]
    pub fn touch_shared(&mut self, page: u64, write: bool) -> bool {
        const DIRTIED: u64 = Word::PRESENT | Word::DIRTY;
        let (looked_at, wanted) = if write {
            (DIRTIED | Word::ZERO | Word::PROT_NONE, DIRTIED)
        } else {
            (Word::PRESENT | Word::PROT_NONE, Word::PRESENT)
        };
        self.touch_if(page, looked_at, wanted, Word::ACCESSED)
    }

    /// Accesses a page through a cache of translations, `start` being the page at which the mapping begins. If the translation is cached, no bit is
    /// set, except by the first store to a page whose entry is clean.
    pub fn touch_through(
        &mut self,
        tlb: &mut Tlb,
        start: u64,
        page: u64,
        write: bool,
        is_regular_file: bool,
    ) -> bool {
        let Some(slot) = self.words.slot(page) else { return false };
        let word = slot.get();
        let needs_table_walk = write && (word.is_zero_page() || !word.is_dirty());
        let is_held = word.is_present() && !word.is_prot_none() && tlb.access(start + page);
        match is_regular_file {
            _ if is_held && !needs_table_walk => true,
            true => self.touch_shared(page, write),
            false => self.touch(page, write),
        }
    }
}
