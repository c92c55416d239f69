//! Filling a new folio of a miss: zeroes, a read of the file's block, or a read of the swap slot.

use crate::access::hits::Object;
use crate::access::miss::Source;
use crate::access::task::Current;
use crate::config::SwapKind;
use crate::lru::AddedFor;
use crate::machine::op::Op;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::mm::Backing;
use crate::memory::table::{SwapEntry, Word};
use crate::mthp::MthpStat;
use crate::stat::Stat;
use crate::units::{FileId, MmId, Pfn};

impl Current<'_> {
    /// Gives an absent page a folio and starts reading it in, where there is something to read.
    #[inline]
    pub(super) fn fill(&mut self, pfn: Pfn, source: Source) {
        self.hold_for(pfn);
        let added_for = self.added_for();
        match source {
            Source::File(file, page) => {
                self.core.mm.memory.folios[pfn].set(FolioFlags::LOCKED);
                if self.is_written_through_descriptor() {
                    self.core.page_cache_add_for_write(pfn, file, page);
                } else {
                    self.core.page_cache_add(pfn, file, page, added_for);
                }
                self.core.lru_add(pfn, added_for);
                self.core.start_read_file(pfn, self.id);
                self.task.attempt.progress.started_read = true;
            }
            Source::Overwritten(file, page) => {
                self.core.page_cache_add_for_write(pfn, file, page);
                self.core.lru_add(pfn, added_for);
                self.task.attempt.progress.created = true;
            }
            Source::NewTmpfs(file, page) => self.fill_tmpfs(pfn, file, page, added_for),
            Source::NewAnon => {
                let (mm, page) = self.accessed_address().expect("anonymous memory is mapped");
                let folio = &mut self.core.mm.memory.folios[pfn];
                folio.set(FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::DIRTY);
                folio.owner = mm.0;
                folio.index = page as u32;
                self.core.out.push(Op::Zero { pfn, pages: 1 });
                self.core.map(mm, page, pfn, true);
                self.core.lru_add(pfn, added_for);
            }
            Source::Swap(entry) => self.swap_in(pfn, entry, added_for),
        }
    }

    /// Fills a new folio of tmpfs with zeroes, which a page of it is accessed of.
    #[inline]
    pub(super) fn fill_tmpfs(&mut self, pfn: Pfn, file: FileId, page: u64, added_for: AddedFor) {
        let folio = &mut self.core.mm.memory.folios[pfn];
        folio.set(FolioFlags::SWAPBACKED | FolioFlags::DIRTY);
        let (node, order, first) = (folio.node, folio.order, page & !(folio.pages() - 1));
        self.core.out.push(Op::Zero { pfn, pages: 1 << order });
        self.core.page_cache_add(pfn, file, first, added_for);
        self.core.lru_add(pfn, added_for);
        if order > 0 {
            self.core.count_mthp(node, order, MthpStat::ShmemAlloc);
        }
        if matches!(self.task.accessed(), Object::File { .. }) {
            // Written through a descriptor: the write itself may be the first of the two accesses that activate.
            if self.core.mm.mark_of(pfn).counts(true, false) {
                self.core.mm.memory.add_use(pfn, UseBits::REFERENCED);
            }
            self.task.attempt.progress.created = true;
        }
    }

    fn is_written_through_descriptor(&self) -> bool {
        self.task.attempt.write && matches!(self.task.accessed(), Object::File { .. })
    }

    /// Brings a swapped page back. Its folio is in the swap cache while it is read, so that no other task reads it too.
    #[doc(alias = "do_swap_page")]
    fn swap_in(&mut self, pfn: Pfn, entry: SwapEntry, added_for: AddedFor) {
        self.name_swapped_owner(pfn);
        let shadow = self.core.mm.memory.swap.shadow(entry);
        self.core.mm.zswap_swapped_in(pfn);
        self.core.mm.memory.folios[pfn].set(FolioFlags::SWAPBACKED);
        self.task.attempt.progress.started_read = true;
        if self.core.mm.memory.swap.kind(entry.swap) == SwapKind::Synchronous {
            self.swap_in_now(pfn, entry, shadow, added_for);
            return;
        }
        self.core.swap_cache_read(pfn, entry, Some(self.id), added_for);
        mutant!(self.core, SlotFreedBeforeRead => self.core.out.push(Op::FreeSlot { swap: entry.swap, slot: entry.slot }));
    }

    /// From a synchronous device an anonymous page comes back without the swap cache. Its slot is freed immediately: the compressed copy
    /// would only be a second one in memory.
    ///
    /// Since 7.0 the page is in the swap cache until it is mapped. So if it fills a batch of new folios, the batch puts it on the list for
    /// pages of the swap cache. [reclaim-6.12 M9; mglru-2026 4.1]
    fn swap_in_now(&mut self, pfn: Pfn, entry: SwapEntry, shadow: Word, added_for: AddedFor) {
        let is_anon = self.core.mm.memory.folios[pfn].has(FolioFlags::ANON);
        let memcg = self.core.mm.memory.folios[pfn].memcg;
        let is_cached = !is_anon || !self.core.mm.memcgs[memcg].policy.reclaim.swap_cache_bypass;
        if is_cached {
            self.core.swap_cache_insert(pfn, entry);
        }
        self.core.workingset_refault(pfn, shadow, added_for);
        self.core.lru_add(pfn, added_for);
        if !self.core.swap_zeroes_in(pfn, entry) && !self.core.zswap_load(pfn, entry) {
            let node = self.core.mm.memory.folios[pfn].node;
            self.core.mm.count_node(node, Stat::Pswpin, 1);
            self.core.mm.count_node(node, Stat::Pgpgin, (crate::PAGE_SIZE / 1024) as i64);
            self.core.out.push(Op::ReadSwapNow { swap: entry.swap, slot: entry.slot, pfn });
        }
        if let Some((mm, page)) = self.accessed_address()
            && is_anon
        {
            self.core.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
            self.core.map(mm, page, pfn, self.task.attempt.write);
            if is_cached {
                self.core.free_swap(pfn);
            } else {
                self.core.free_slot(entry);
            }
        }
    }

    /// Records whose page a swapped-in folio is.
    fn name_swapped_owner(&mut self, pfn: Pfn) {
        let page = self.task.attempt.page;
        let (owner, index, anon) = match *self.task.accessed() {
            Object::File { file, .. } => (file.0, page, false),
            Object::Mapping { mm, vma, start, .. } => match self.core.mm.memory.mm(mm).vmas[vma].backing {
                Backing::Anon => (mm.0, start + page, true),
                Backing::File(file) => (file.0, page, false),
            },
        };
        let folio = &mut self.core.mm.memory.folios[pfn];
        folio.owner = owner;
        folio.index = index as u32;
        folio.change(FolioFlags::ANON, anon);
    }

    /// The address space and the page of it that are accessed, where that is through a mapping.
    #[inline]
    fn accessed_address(&self) -> Option<(MmId, u64)> {
        match *self.task.accessed() {
            Object::File { .. } => None,
            Object::Mapping { mm, start, .. } => Some((mm, start + self.task.attempt.page)),
        }
    }
}
