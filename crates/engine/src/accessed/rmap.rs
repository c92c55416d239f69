//! The reverse map: from a folio to the page-table entries that map it.
//!
//! An anonymous folio is mapped at one place, which its record names; a file's folio may be mapped wherever the file is.
//! [reclaim 2.8, 9 rows 1 to 5]

use crate::audit::Transition;
use crate::core::Core;
use crate::lru::two_lists;
use crate::memory::Memory;
use crate::memory::file::FileMapping;
use crate::memory::folio::{Folio, FolioFlags};
use crate::memory::mm::Backing;
use crate::memory::table::{LEAF_PAGES, SwapEntry, Word};
use crate::policy::GroupRules;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{FileId, MmId, Pfn};
use pageout_rules::accessed::Recency;
use pageout_rules::lru::Lru;

/// What the reverse map said of a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Referenced {
    /// Entries whose accessed bit was set; it has been cleared.
    pub(crate) young: u32,
    /// A mapping is locked into memory.
    pub(crate) locked: bool,
    /// A mapping that has referenced it is executable.
    pub(crate) executable: bool,
}

/// The gauge that counts a mapped folio.
pub(crate) fn mapped_stat(folio: &Folio) -> Stat {
    if folio.has(FolioFlags::ANON) { Stat::NrAnonPages } else { Stat::NrMapped }
}

impl Core {
    /// Tests and clears the accessed bits of all entries that map the folio, and looks around the young ones. `has_buffer`: see
    /// `look_around`.
    #[inline(always)]
    pub(crate) fn folio_referenced(&mut self, pfn: Pfn, has_buffer: bool) -> Referenced {
        let folio = &self.mm.memory.folios[pfn];
        match folio.order {
            _ if folio.mapped == 0 => Referenced::default(),
            0 => self.page_referenced(pfn, has_buffer),
            _ => self.large_folio_referenced(pfn, has_buffer),
        }
    }

    #[inline(never)]
    fn page_referenced(&mut self, pfn: Pfn, has_buffer: bool) -> Referenced {
        // The compiler sees a folio of one page.
        let mut folio = self.mm.memory.folios[pfn];
        folio.order = 0;
        self.mapped_folio_referenced(pfn, folio, has_buffer)
    }

    #[cold]
    #[inline(never)]
    fn large_folio_referenced(&mut self, pfn: Pfn, has_buffer: bool) -> Referenced {
        self.mapped_folio_referenced(pfn, self.mm.memory.folios[pfn], has_buffer)
    }

    #[inline(always)]
    fn mapped_folio_referenced(&mut self, pfn: Pfn, folio: Folio, has_buffer: bool) -> Referenced {
        let mut found = Referenced::default();
        let GroupRules { lru, harvest, .. } = self.mm.memcgs[folio.memcg].policy;
        let was_seen = lru == Lru::TwoLists
            && harvest.sees_elsewhere()
            && two_lists::take_use_seen(&mut self.view_mut(self.mm.lruvec_of(pfn)), pfn);
        found.young += u32::from(was_seen);
        // Several young entries of a mapping are one use [folios 3.2].
        let (per_mapping, mut counted) = (folio.order, None);
        for at in 0..self.mm.memory.rmap_len(&folio) {
            let (mm_id, page) = self.mm.rmap_entry(&folio, at);
            self.out.count.rmap_steps(1);
            self.gather_accessed(mm_id, page..page + 1);
            let Memory { mms, open_files, .. } = &mut self.mm.memory;
            let mm = &mut mms[mm_id.index()];
            let word = mm.table.word_if_any(page);
            if !word.is_present() || word.pfn() != pfn {
                continue;
            }
            let vma = mm.vma_of(page);
            if vma.locked {
                found.locked = true;
                return found;
            }
            found.executable |= was_seen && vma.executable;
            let is_young =
                if word.is_huge() { mm.table.is_leaf_young(page / LEAF_PAGES) } else { word.is_young() };
            if !is_young || !harvest.rmap {
                continue;
            }
            let counts = vma.counts_use(open_files, harvest.recency);
            // Before 6.3 the bit of a use that does not count was cleared all the same.
            if counts || harvest.recency == Recency::Sequential {
                let is_counted = folio.order > 0 && counted == Some(at >> per_mapping);
                if counts && !is_counted {
                    found.young += 1;
                    counted = Some(at >> per_mapping);
                }
                found.executable |= counts && vma.executable;
                // Next to the entry of a huge page there are no entries of single pages.
                let looks_around =
                    harvest.look_around && !word.is_huge() && vma.has_recency(open_files, harvest.recency);
                mm.table.clear_entry_young(page);
                if looks_around {
                    self.look_around(pfn, mm_id, page, has_buffer);
                }
            }
        }
        if self.mm.damon.has_flags {
            let has_cleared = found.young > 0;
            found.young += u32::from(self.mm.take_flags(pfn, has_cleared));
        }
        found
    }

    /// Removes every entry that maps the folio, collecting dirty bits; anonymous pages leave their swap entry behind.
    #[doc(alias = "try_to_unmap")]
    pub(crate) fn unmap_all(&mut self, pfn: Pfn) {
        let mut folio = self.mm.memory.folios[pfn];
        match folio.order {
            _ if folio.mapped == 0 => {}
            0 => {
                folio.order = 0;
                self.unmap_entries(pfn, folio);
            }
            _ => self.unmap_large(pfn, folio),
        }
    }

    #[cold]
    #[inline(never)]
    fn unmap_large(&mut self, pfn: Pfn, folio: Folio) {
        if folio.is_large_anon() && self.mm.memory.is_mapped_by_one(&folio) {
            self.split_huge_entry(pfn);
        }
        self.unmap_entries(pfn, folio);
    }

    #[inline(always)]
    fn unmap_entries(&mut self, pfn: Pfn, folio: Folio) {
        for at in 0..self.mm.memory.rmap_len(&folio) {
            let (mm, page) = self.mm.rmap_entry(&folio, at);
            self.out.count.rmap_steps(1);
            let word = self.mm.memory.mm(mm).table.word_if_any(page);
            if !word.is_present() || word.pfn() != pfn {
                continue;
            }
            let left = if folio.has(FolioFlags::ANON | FolioFlags::SWAPCACHE) {
                Word::swapped(SwapEntry { swap: folio.swap, slot: folio.slot + at as u32 })
            } else {
                Word::EMPTY
            };
            self.out.count.unmapped(1);
            self.unmap_one(mm, page, left);
        }
        debug_assert_eq!(
            self.mm.memory.folios[pfn].mapped, 0,
            "{pfn:?} is mapped where its reverse map does not look"
        );
    }

    /// Replaces the entry that maps a folio, and takes over its dirty bit.
    #[inline(always)]
    pub(crate) fn unmap_one(&mut self, mm: MmId, page: u64, left: Word) {
        let mapped = self.mm.memory.mm(mm).table.word_if_any(page).pfn();
        let books = self.open_audit(Transition::Unmap, [mapped]);
        let space = self.mm.memory.mm_mut(mm);
        let (word, _) = space.table.replace(page, left);
        debug_assert!(word.is_present() && !word.is_zero_page(), "an entry is taken away that maps no folio");
        debug_assert!(!word.is_huge(), "an entry is taken away that maps more than this page");
        debug_assert!(!left.is_present(), "an entry is taken away, and another takes its place");
        let pfn = word.pfn();
        if let Some(tlb) = &mut space.tlb {
            tlb.drop_page(page);
        }
        let folio = &mut self.mm.memory.folios[pfn];
        if word.is_dirty() && !mutant!(self, DirtyLostAtUnmap) {
            folio.set(FolioFlags::DIRTY);
        }
        debug_assert!(folio.mapped > 0, "{pfn:?} loses a mapping, and has none: {folio:?}");
        debug_assert!(!folio.has(FolioFlags::LOCKED), "{pfn:?} was mapped while it was being read");
        folio.mapped -= 1;
        let folio = *folio;
        if folio.mapped == 0 || folio.order > 0 && self.mm.maps_page_alone(&folio, pfn, mm, page) {
            self.count(self.mm.lruvec_of(pfn), mapped_stat(&folio), -1);
        }
        self.close_audit(books);
    }

    /// Write-protects every entry that maps a page of a regular file which is about to be written: the next store faults, and
    /// so makes the page dirty again.
    pub(crate) fn page_mkclean(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        if folio.mapped == 0 {
            return;
        }
        for at in 0..self.mm.memory.rmap_len(&folio) {
            let (mm, page) = self.mm.rmap_entry(&folio, at);
            self.out.count.rmap_steps(1);
            let mm = self.mm.memory.mm_mut(mm);
            let word = mm.table.word_if_any(page);
            if word.is_dirty() && word.pfn() == pfn {
                mm.table.update(page, Word::clear_dirty);
                if let Some(tlb) = &mut mm.tlb {
                    tlb.drop_page(page);
                }
            }
        }
    }
}

impl State {
    /// Returns true if a locked mapping shows the folio.
    pub(crate) fn is_mapped_locked(&self, pfn: Pfn) -> bool {
        self.rmap_entries(pfn).any(|(mm, page)| {
            let mm = self.memory.mm(mm);
            let word = mm.table.word_if_any(page);
            word.is_present() && word.pfn() == pfn && mm.vma_of(page).locked
        })
    }

    /// How many entries map the folio, by what they say.
    pub(crate) fn mappings_of(&self, pfn: Pfn) -> u16 {
        let maps = |&(mm, page): &(MmId, u64)| {
            let word = self.memory.mm(mm).table.word_if_any(page);
            word.is_present() && !word.is_zero_page() && word.pfn() == pfn
        };
        let folio = &self.memory.folios[pfn];
        if self.memory.is_mapped_by_one(folio) {
            return folio.pages() as u16;
        }
        self.rmap_entries(pfn).filter(maps).count() as u16
    }

    /// Returns true if the folio was written through a mapping since the dirty bits were last collected.
    pub(crate) fn is_mapped_dirty(&self, pfn: Pfn) -> bool {
        self.rmap_entries(pfn).any(|(mm, page)| {
            let word = self.memory.mm(mm).table.word_if_any(page);
            word.is_dirty() && word.pfn() == pfn
        })
    }

    /// Returns true if an entry that maps the folio has its accessed bit set.
    pub(crate) fn is_mapped_young(&self, pfn: Pfn) -> bool {
        self.memory.folios[pfn].mapped > 0
            && self.rmap_entries(pfn).any(|(mm, page)| {
                let table = &self.memory.mm(mm).table;
                let word = table.word_if_any(page);
                word.is_present() && word.pfn() == pfn && table.is_entry_young(page)
            })
    }

    /// The page-table entries that may map the folio or pages of it, as address space and page.
    fn rmap_entries(&self, pfn: Pfn) -> impl Iterator<Item = (MmId, u64)> {
        let folio = &self.memory.folios[pfn];
        (0..self.memory.rmap_len(folio)).map(|at| self.rmap_entry(folio, at))
    }

    /// The address space and the page in it at which the folio would be mapped. A file that has grown has pages that lie behind the end of its
    /// mappings: there is another mapping's word, or none.
    #[inline(always)]
    pub(crate) fn rmap_entry(&self, folio: &Folio, at: usize) -> (MmId, u64) {
        if folio.has(FolioFlags::ANON) {
            return (MmId(folio.owner), u64::from(folio.index) + at as u64);
        }
        let file = FileId(folio.owner);
        let (at, within) = (at >> folio.order, at as u64 & ((1 << folio.order) - 1));
        let FileMapping { mm, vma, start } = self.memory.file(file).mappings[at];
        debug_assert!({
            let vma = &self.memory.mm(mm).vmas[vma];
            vma.mapped && (vma.backing, vma.start) == (Backing::File(file), start)
        });
        (mm, start + u64::from(folio.index) + within)
    }

    /// Returns true if no other entry maps the page of a large folio that this one maps, or has mapped: of anonymous memory, none ever does.
    #[cold]
    pub(crate) fn maps_page_alone(&self, folio: &Folio, pfn: Pfn, mm: MmId, page: u64) -> bool {
        folio.has(FolioFlags::ANON) || !self.is_page_mapped_but_by(folio, pfn, mm, page)
    }

    /// Returns true if another entry than that of a page of an address space maps the same page of a large folio of a file.
    #[cold]
    pub(crate) fn is_page_mapped_but_by(&self, folio: &Folio, pfn: Pfn, mm: MmId, page: u64) -> bool {
        let at = folio.file_page_at(page);
        self.memory.file(FileId(folio.owner)).mappings.iter().any(|mapping| {
            let other = mapping.start + at;
            let word = self.memory.mm(mapping.mm).table.word_if_any(other);
            (mapping.mm, other) != (mm, page)
                && word.is_present()
                && word.pfn() == pfn
                && word.frame(other) == Pfn(pfn.0 + (at - u64::from(folio.index)) as u32)
        })
    }

    /// How many pages of a folio are mapped, be it by one entry or by several.
    pub(crate) fn mapped_pages(&self, folio: &Folio, pfn: Pfn) -> u64 {
        if folio.mapped == 0 {
            return 0;
        }
        if folio.has(FolioFlags::ANON) {
            return folio.mapped.into();
        }
        if folio.order == 0 {
            return 1;
        }
        let is_mapped = |&page: &u64| self.is_page_mapped_but_by(folio, pfn, MmId(u32::MAX), page);
        folio.file_pages().filter(is_mapped).count() as u64
    }
}
