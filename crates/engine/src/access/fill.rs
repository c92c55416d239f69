//! Filling a new folio of a miss: zeroes, a read of the file's block, or a read of the swap slot.

use crate::access::hits::Object;
use crate::access::miss::{Source, Stop};
use crate::access::task::Current;
use crate::config::SwapKind;
use crate::lru::AddedFor;
use crate::machine::op::Op;
use crate::memcg::charge::ChargeOutcome;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::mm::Backing;
use crate::memory::table::{Entry, SwapEntry, Word};
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

    /// Returns true if a swapped page may come back with others around it as a large folio. [folios 2.5, 2.6]
    #[inline]
    pub(super) fn wants_large_swap_in(&self, entry: SwapEntry) -> bool {
        (self.core.mm.anon_orders != 0 || self.core.mm.memory.has_large_folios())
            && self.task.attempt.progress.swap_in_order.is_none()
            && self.large_swap_in_orders(entry) != 0
    }

    /// The orders of the large folios, a bit each, as which a swapped page may come back now.
    #[cold]
    fn large_swap_in_orders(&self, entry: SwapEntry) -> u16 {
        if let Some((file, page)) = self.tmpfs_page() {
            return self.core.mm.tmpfs_swap_in_orders(file, page, entry);
        }
        match *self.task.accessed() {
            Object::Mapping { mm, vma, start, .. } => {
                self.core.mm.swap_in_orders(mm, vma, start + self.task.attempt.page, entry)
            }
            Object::File { .. } => 0,
        }
    }

    /// The accessed page, if it is one of tmpfs.
    fn tmpfs_page(&self) -> Option<(FileId, u64)> {
        let file = match *self.task.accessed() {
            Object::File { file, .. } => file,
            Object::Mapping { mm, vma, .. } => match self.core.mm.memory.mm(mm).vmas[vma].backing {
                Backing::File(file) => file,
                Backing::Anon => return None,
            },
        };
        self.core.mm.memory.file(file).is_tmpfs().then_some((file, self.task.attempt.page))
    }

    /// The slot of the page that is accessed, if it is swapped out.
    fn swapped_entry(&self) -> Option<SwapEntry> {
        let word = match self.tmpfs_page() {
            Some((file, page)) => self.core.mm.memory.file(file).index.word(page),
            None => {
                let (mm, page) = self.accessed_address()?;
                self.core.mm.memory.mm(mm).table.word(page)
            }
        };
        match word.decode() {
            Entry::Swap(entry) => Some(entry),
            _ => None,
        }
    }

    /// Brings a swapped page back with others around it, or finds out that it has to come alone.
    #[doc(alias = "alloc_swap_folio")]
    #[cold]
    pub(super) fn bring_in_large_swap(&mut self) -> Result<(), Stop> {
        let orders = |current: &Self| {
            let entry = current.swapped_entry();
            entry.map_or(0, |entry| current.large_swap_in_orders(entry))
        };
        loop {
            let order = match self.task.attempt.progress.swap_in_order {
                Some(order) => order,
                None => orders(self).ilog2() as u8,
            };
            self.task.attempt.progress.swap_in_order = Some(order);
            let (memcg, of_tmpfs) = (self.memcg(), self.tmpfs_page());
            let gfp = if of_tmpfs.is_some() { self.tmpfs_gfp() } else { self.large_anon_gfp() };
            let prepared = self.prepare_block(memcg, order, gfp);
            if let Err((Stop::Pause(pause), _)) = prepared {
                return Err(Stop::Pause(pause));
            }
            // Others may have brought some of these pages back meanwhile.
            let orders = orders(self);
            self.task.attempt.progress.swap_in_order = None;
            match prepared {
                Ok((pfn, charged)) if orders >> order & 1 == 1 => {
                    self.fill_large_swap(pfn, charged);
                    return Ok(());
                }
                Ok(_) => {
                    self.give_back();
                    return Ok(());
                }
                Err((Stop::NoRoom, is_charge)) => {
                    if let Some((file, page)) = of_tmpfs {
                        if orders >> order & 1 == 1 {
                            self.core.mm.memory.file_mut(file).index.split_swapped(page);
                        }
                        self.task.attempt.progress.swap_in_order = Some(0);
                        return Ok(());
                    }
                    let node = self.core.current_node();
                    self.core.count_swap_in_fallback(node, order, is_charge);
                    let smaller = orders & ((1 << order) - 1);
                    let next = if smaller == 0 { 0 } else { smaller.ilog2() as u8 };
                    self.task.attempt.progress.swap_in_order = Some(next);
                    if next == 0 {
                        return Ok(());
                    }
                }
                Err((stop, _)) => return Err(stop),
            }
        }
    }

    /// Fills a large folio from slots in a row of a synchronous device. One of anonymous memory is mapped completely. One of tmpfs is found in the swap
    /// cache next. The shadow of the slot that was asked for decides [folios 3.7].
    fn fill_large_swap(&mut self, pfn: Pfn, charged: ChargeOutcome) {
        let of_tmpfs = self.tmpfs_page();
        let of_mapping = self.accessed_address();
        let (owner, page) = match of_tmpfs {
            Some((file, page)) => (file.0, page),
            None => of_mapping.map(|(mm, page)| (mm.0, page)).expect("anonymous memory is mapped"),
        };
        let entry = self.swapped_entry().expect("its page is swapped out");
        let added_for = self.added_for();
        self.task.attempt.frame = None;
        if self.core.is_telling() {
            self.tell_filled(pfn, Source::Swap(entry), charged);
        }
        self.hold_for(pfn);
        let folio = &mut self.core.mm.memory.folios[pfn];
        let (order, pages) = (folio.order, folio.pages() as u32);
        folio.change(FolioFlags::ANON, of_tmpfs.is_none());
        folio.set(FolioFlags::SWAPBACKED);
        folio.owner = owner;
        folio.index = (page & !(folio.pages() - 1)) as u32;
        let at = (page & (folio.pages() - 1)) as u32;
        let (node, memcg) = (folio.node, folio.memcg);
        let slots = (0..pages).map(|page| SwapEntry { slot: entry.slot - at + page, ..entry });
        let shadow = self.core.mm.memory.swap.shadow(entry);
        self.core.mm.zswap_swapped_in(pfn);
        self.task.attempt.progress.started_read = true;
        let is_cached = of_tmpfs.is_some() || !self.core.mm.memcgs[memcg].policy.reclaim.swap_cache_bypass;
        if is_cached {
            self.core.swap_cache_insert(pfn, SwapEntry { slot: entry.slot - at, ..entry });
        }
        self.core.workingset_refault(pfn, shadow, added_for);
        self.core.lru_add(pfn, added_for);
        if self.core.mm.memory.swap.holds_zeroes(entry) {
            self.core.mm.count_node(node, Stat::SwpinZero, i64::from(pages));
            self.core.out.push(Op::Zero { pfn, pages });
        } else {
            self.core.count_mthp(node, order, MthpStat::Swpin);
            self.core.mm.count_node(node, Stat::Pswpin, i64::from(pages));
            self.core.mm.count_node(node, Stat::Pgpgin, i64::from(pages) * (crate::PAGE_SIZE / 1024) as i64);
            for (at, SwapEntry { swap, slot }) in (0..).zip(slots.clone()) {
                self.core.out.push(Op::ReadSwapNow { swap, slot, pfn: Pfn(pfn.0 + at) });
            }
        }
        let (None, Some((mm, page))) = (of_tmpfs, of_mapping) else { return };
        self.core.mm.mthp.gauge(order, MthpStat::NrAnon, 1);
        self.core.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
        self.core.map_large_anon(mm, page, pfn, self.task.attempt.write);
        if is_cached {
            self.core.free_swap(pfn);
        } else {
            slots.for_each(|slot| self.core.free_slot(slot));
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
