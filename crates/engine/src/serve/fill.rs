//! A new folio's contents: zeroes, a block of a file, or a swap slot.

use crate::config::SwapKind;
use crate::machine::op::Op;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::mm::Backing;
use crate::memory::table::{SwapEntry, Word};
use crate::serve::access::Object;
use crate::serve::engine::Engine;
use crate::serve::miss::Source;
use crate::stat::Stat;
use crate::units::{MmId, Pfn, TaskId};

impl Engine {
    /// Gives an absent page a folio and starts reading it in, where there is something to read.
    #[inline]
    pub(super) fn fill(&mut self, task: TaskId, pfn: Pfn, source: Source) {
        self.hold_for(task, pfn);
        match source {
            Source::File(file, page) => {
                self.core.memory.folios[pfn].set(FolioFlags::LOCKED);
                if self.is_written_through_descriptor(task) {
                    self.core.page_cache_add_for_write(pfn, file, page);
                } else {
                    self.core.page_cache_add(pfn, file, page);
                }
                self.core.lru_add(pfn);
                self.core.start_read_file(pfn, task);
                self.tasks[task.index()].attempt.started_read = true;
            }
            Source::Overwritten(file, page) => {
                self.core.page_cache_add_for_write(pfn, file, page);
                self.core.lru_add(pfn);
                self.tasks[task.index()].attempt.created = true;
            }
            Source::NewTmpfs(file, page) => {
                self.core.memory.folios[pfn].set(FolioFlags::SWAPBACKED | FolioFlags::DIRTY);
                self.core.ops.push(Op::Zero { pfn, pages: 1 });
                self.core.page_cache_add(pfn, file, page);
                self.core.lru_add(pfn);
                if matches!(self.tasks[task.index()].accessed(), Object::File { .. }) {
                    // Written through a descriptor: the write itself may be the first of the two accesses that activate.
                    if self.core.mark_of(pfn).counts(true, false) {
                        self.core.memory.add_use(pfn, UseBits::REFERENCED);
                    }
                    self.tasks[task.index()].attempt.created = true;
                }
            }
            Source::NewAnon => {
                let (mm, page) = self.accessed_address(task).expect("anonymous memory is mapped");
                let folio = &mut self.core.memory.folios[pfn];
                folio.set(FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::DIRTY);
                folio.owner = mm.0;
                folio.index = page as u32;
                self.core.ops.push(Op::Zero { pfn, pages: 1 });
                self.core.map(mm, page, pfn, true);
                self.core.lru_add(pfn);
            }
            Source::Swap(entry) => self.swap_in(task, pfn, entry),
        }
    }

    fn is_written_through_descriptor(&self, task: TaskId) -> bool {
        let task = &self.tasks[task.index()];
        task.attempt.write && matches!(task.accessed(), Object::File { .. })
    }

    /// Brings a swapped page back. Its folio stands in the swap cache while it is read, so that nobody reads it twice.
    fn swap_in(&mut self, task: TaskId, pfn: Pfn, entry: SwapEntry) {
        self.name_swapped_owner(task, pfn);
        let shadow = self.core.memory.swap.shadow(entry);
        self.core.zswap_swapped_in(pfn);
        self.core.memory.folios[pfn].set(FolioFlags::SWAPBACKED);
        self.tasks[task.index()].attempt.started_read = true;
        if self.core.memory.swap.kind(entry.swap) == SwapKind::Synchronous {
            self.swap_in_now(task, pfn, entry, shadow);
            return;
        }
        self.core.swap_cache_read(pfn, entry, Some(task));
        #[cfg(test)]
        if self.core.mutant == Some(crate::testing::Mutant::SlotFreedBeforeRead) {
            self.core.ops.push(Op::FreeSlot { swap: entry.swap, slot: entry.slot });
        }
    }

    /// From a synchronous device an anonymous page comes back without the swap cache, and its slot is freed at once: the
    /// compressed copy would only be a second one in memory. Since 7.0 it stands in the swap cache until it is mapped, so that a
    /// batch of new folios that fills with it puts it where pages of the swap cache go. [6.12 M9; mglru-2026 4.1]
    fn swap_in_now(&mut self, task: TaskId, pfn: Pfn, entry: SwapEntry, shadow: Word) {
        let is_anon = self.core.memory.folios[pfn].has(FolioFlags::ANON);
        let memcg = self.core.memory.folios[pfn].memcg;
        let is_cached = !is_anon || !self.core.memcgs[memcg].policy.reclaim.swap_cache_bypass;
        if is_cached {
            self.core.swap_cache_insert(pfn, entry);
        }
        self.core.workingset_refault(pfn, shadow);
        self.core.lru_add(pfn);
        if !self.core.swap_zeroes_in(pfn, entry) && !self.core.zswap_load(pfn, entry) {
            let node = self.core.memory.folios[pfn].node;
            self.core.count_node(node, Stat::Pswpin, 1);
            self.core.count_node(node, Stat::Pgpgin, (crate::PAGE_SIZE / 1024) as i64);
            self.core.ops.push(Op::ReadSwapNow { swap: entry.swap, slot: entry.slot, pfn });
        }
        if let Some((mm, page)) = self.accessed_address(task)
            && is_anon
        {
            self.core.memory.folios[pfn].set(FolioFlags::DIRTY);
            self.core.map(mm, page, pfn, self.tasks[task.index()].attempt.write);
            if is_cached {
                self.core.free_swap(pfn);
            } else {
                self.core.free_slot(entry);
            }
        }
    }

    /// Records whose page a swapped-in folio is.
    fn name_swapped_owner(&mut self, task: TaskId, pfn: Pfn) {
        let task = &self.tasks[task.index()];
        let page = task.attempt.page;
        let (owner, index, anon) = match *task.accessed() {
            Object::File { file, .. } => (file.0, page, false),
            Object::Mapping { mm, vma, start, .. } => match self.core.memory.mm(mm).vmas[vma].backing {
                Backing::Anon => (mm.0, start + page, true),
                Backing::File(file) => (file.0, page, false),
            },
        };
        let folio = &mut self.core.memory.folios[pfn];
        folio.owner = owner;
        folio.index = index as u32;
        folio.change(FolioFlags::ANON, anon);
    }

    /// The address space and the page of it that are accessed, where that is through a mapping.
    #[inline]
    fn accessed_address(&self, task: TaskId) -> Option<(MmId, u64)> {
        let task = &self.tasks[task.index()];
        match *task.accessed() {
            Object::File { .. } => None,
            Object::Mapping { mm, start, .. } => Some((mm, start + task.attempt.page)),
        }
    }
}
