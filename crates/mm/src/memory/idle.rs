//! Idle and young flags of folios, for monitors that clear accessed bits next to reclaim. [access-aware 1.3, 4]
//!
//! A monitor makes a folio idle and clears its accessed bits. A bit that was set leaves the young flag, so that reclaim misses no use. Reclaim that
//! clears a bit takes the idle flag away, so that the monitor misses none either. A walk of page tables knows neither flag.
//!
//! The flags are in the word of the folio's first page: in its index, or in the entry that maps it. Anonymous memory that nothing maps has no flags,
//! because a task that uses it maps it first.

use crate::memory::Memory;
use crate::memory::folio::{Folio, FolioFlags};
use crate::memory::table::Word;
use crate::units::{FileId, MmId, Pfn};

impl Memory {
    /// Makes a folio idle. `was_young`: an accessed bit of it was set and is cleared.
    pub fn set_idle(&mut self, pfn: Pfn, was_young: bool) {
        let folio = self.folios[pfn];
        if folio.has(FolioFlags::INDEXED) {
            self.file_mut(FileId(folio.owner)).index.set_idle(folio.index.into());
        }
        self.change_flags(pfn, &folio, |word| {
            word.set_idle();
            if was_young {
                word.set_seen_young();
            }
        });
    }

    /// Returns whether a folio is idle.
    pub fn is_idle(&self, pfn: Pfn) -> bool {
        self.flags_word(pfn, &self.folios[pfn]).is_some_and(Word::is_idle)
    }

    /// A folio was used, or a bit that shows a use was cleared.
    pub fn clear_idle(&mut self, pfn: Pfn) {
        let folio = self.folios[pfn];
        match folio.has(FolioFlags::INDEXED) {
            true => _ = self.file_mut(FileId(folio.owner)).index.clear_idle(folio.index.into()),
            false => self.change_flags(pfn, &folio, Word::clear_idle),
        }
    }

    /// Takes the young flag of a folio away, and returns whether it was set.
    pub fn take_seen_young(&mut self, pfn: Pfn) -> bool {
        let (folio, mut was_young) = (self.folios[pfn], false);
        self.change_flags(pfn, &folio, |word| was_young = word.take_seen_young());
        was_young
    }

    fn flags_word(&self, pfn: Pfn, folio: &Folio) -> Option<Word> {
        let table = match (folio.has(FolioFlags::INDEXED), folio.has(FolioFlags::ANON)) {
            (true, _) => &self.file(FileId(folio.owner)).index,
            (false, true) => &self.mm(MmId(folio.owner)).table,
            (false, false) => return None,
        };
        let word = table.word_if_any(folio.index.into());
        (word.is_present() && word.pfn() == pfn).then_some(word)
    }

    fn change_flags(&mut self, pfn: Pfn, folio: &Folio, change: impl FnOnce(&mut Word)) {
        if self.flags_word(pfn, folio).is_none() {
            return;
        }
        let table = match folio.has(FolioFlags::INDEXED) {
            true => &mut self.file_mut(FileId(folio.owner)).index,
            false => &mut self.mm_mut(MmId(folio.owner)).table,
        };
        table.update(folio.index.into(), change);
    }
}
