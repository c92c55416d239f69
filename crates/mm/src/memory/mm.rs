//! Address spaces: mappings laid out over one page table.
//!
//! Addresses are counted in pages. Each mapping begins at a 2 MiB boundary, as large mappings do in practice, so that no
//! two mappings share a leaf of the page table.

use crate::memory::mempolicy::{MemPolicy, Placement};
use crate::memory::nodes::{NodeKind, Nodes};
use crate::memory::open_file::OpenFile;
use crate::memory::table::{LEAF_PAGES, Table};
use crate::memory::table_memory::TableMemory;
use crate::memory::tlb::Tlb;
use crate::numa_balancing::{MmScan, VmaScan};
use crate::swap::contents::Compressibility;
use crate::swap::window::SwapWindow;
use crate::units::{FileId, MemcgId, OpenFileId};
use pageout_rules::accessed::Recency;
use std::ops::Range;

/// A task's advice on how it will access a mapping (madvise) or an open file (fadvise).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Advice {
    /// No advice.
    #[default]
    Normal,
    /// Random access: accessed bits do not predict future accesses, so reclaim ignores them.
    Random,
    /// Sequential access: a page is not used again soon, so reclaim ignores accessed bits.
    Sequential,
    /// The data will not be reused. The hint is about an open file; reclaim ignores accessed bits of mappings through it.
    NoReuse,
}

/// A task's advice on huge pages in a mapping of anonymous memory (`MADV_HUGEPAGE`, `MADV_NOHUGEPAGE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HugeAdvice {
    /// Nothing: as the machine has it.
    #[default]
    Normal,
    /// `madvise(MADV_HUGEPAGE)`: it is worth some time to have them.
    Hugepage,
    /// `madvise(MADV_NOHUGEPAGE)`: none.
    NoHugepage,
}

/// Object behind a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// Anonymous memory.
    Anon,
    /// A whole file, mapped shared.
    File(FileId),
}

/// A mapping of an address space (VMA).
#[derive(Clone, Debug)]
pub struct Vma {
    /// First page in the address space.
    pub start: u64,
    /// The number of pages.
    pub pages: u64,
    /// Object behind the mapping.
    pub backing: Backing,
    /// The open file that it was made from.
    pub open: Option<OpenFileId>,
    /// madvise hint about accesses.
    pub advice: Advice,
    /// madvise hint about huge pages, if it is one for the whole mapping.
    pub huge_advice: HugeAdvice,
    /// Otherwise, parts of the mapping with their hints, in order and without gaps.
    huge_parts: Vec<(Range<u64>, HugeAdvice)>,
    /// Its pages are locked into memory (mlock).
    pub locked: bool,
    /// It maps a program's code.
    pub executable: bool,
    /// False after munmap; the place is kept so that positions stay valid.
    pub mapped: bool,
    /// The window by which swapped pages of the mapping are read ahead.
    pub swap_window: SwapWindow,
    /// The compressibility of its anonymous pages; `None`: that of the device.
    pub compressibility: Option<Compressibility>,
    /// State of NUMA balancing for the mapping, from its first scan on.
    pub scan: Option<VmaScan>,
}

impl Vma {
    /// The mapping's pages in the address space.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.pages
    }

    /// Sets the hint about huge pages of a range of the mapping, as pages of the address space. Ranges with different hints are mappings of their own
    /// to the kernel: no large folio lies across their border.
    pub fn advise_huge(&mut self, pages: Range<u64>, advice: HugeAdvice) {
        let all = self.range();
        let old = match std::mem::take(&mut self.huge_parts) {
            parts if parts.is_empty() => vec![(all.clone(), self.huge_advice)],
            parts => parts,
        };
        let cut = |(of, is): &(Range<u64>, HugeAdvice)| {
            let (before, behind) = (of.start..of.end.min(pages.start), of.start.max(pages.end)..of.end);
            [(before, *is), (behind, *is)]
        };
        let mut parts: Vec<(Range<u64>, HugeAdvice)> = old.iter().flat_map(cut).collect();
        parts.push((pages.start.max(all.start)..pages.end.min(all.end), advice));
        parts.retain(|(pages, _)| !pages.is_empty());
        parts.sort_by_key(|(pages, _)| pages.start);
        for (pages, advice) in parts {
            match self.huge_parts.last_mut() {
                Some((last, is)) if *is == advice => last.end = pages.end,
                _ => self.huge_parts.push((pages, advice)),
            }
        }
        if let [(_, advice)] = self.huge_parts[..] {
            self.huge_advice = advice;
            self.huge_parts.clear();
        }
    }

    /// The hint about huge pages at a page, and the pages around it with the same hint.
    pub fn huge_at(&self, page: u64) -> (Range<u64>, HugeAdvice) {
        let all = self.range();
        let part = self.huge_parts.iter().rfind(|(pages, _)| pages.start <= page);
        part.map_or((all.clone(), self.huge_advice), |(pages, advice)| {
            let is_last = self.huge_parts.last().is_some_and(|(last, _)| last == pages);
            (pages.start..if is_last { all.end } else { pages.end }, *advice)
        })
    }

    /// Returns whether having been accessed lately says that a page of it will be accessed again. [reclaim-6.12 M6; machine 1.8; kernels 2.2]
    #[inline]
    #[doc(alias = "vma_has_recency")]
    pub fn has_recency(&self, open_files: &[OpenFile], rule: Recency) -> bool {
        let is_reused = || !self.open.is_some_and(|open| open_files[open.index()].no_reuse);
        self.advice == Advice::Normal && (is_reused() || rule == Recency::Sequential)
    }

    /// Returns whether a young entry counts as a use of its page, where that is found page by page.
    #[inline]
    pub fn counts_use(&self, open_files: &[OpenFile], rule: Recency) -> bool {
        match rule {
            Recency::Sequential => self.advice != Advice::Sequential,
            Recency::AllAdvice => self.has_recency(open_files, rule),
        }
    }
}

/// An address space: its mappings, its page table, the group that pays.
pub struct Mm {
    /// The group that pays for its memory.
    pub memcg: MemcgId,
    /// The page table: one word per page.
    pub table: Table,
    /// The page-table pages.
    pub nodes: Nodes,
    /// `None`: every access walks the page table.
    pub tlb: Option<Tlb>,
    /// The mappings, in order of address.
    pub vmas: Vec<Vma>,
    /// A bit a node: it has run since a walk for that node's lists last took it.
    pub used_on_nodes: u64,
    /// The host has its accessed bits, and uses pages of it without an access.
    pub is_sampled: bool,
    /// The progress of NUMA balancing's scan.
    pub scan: MmScan,
    /// Tasks that run in it.
    pub users: u32,
    /// One of them has begun to.
    pub is_running: bool,
    /// The OOM killer has chosen it: its tasks are to end.
    pub is_oom_victim: bool,
    /// Memory for it must not wait for I/O, which may be waiting for it (PR_SET_IO_FLUSHER).
    pub is_io_flusher: bool,
    /// -1000 to 1000: how much rather than others it is to be killed.
    pub oom_score_adj: i16,
    /// From which nodes its pages come; anywhere without, the node of the CPU first.
    pub placement: Option<Box<Placement>>,
}

impl Mm {
    /// An address space without mappings, whose tables the allocator has.
    pub fn new(memcg: MemcgId, tlb: Option<Tlb>) -> Mm {
        Mm::new_in(memcg, tlb, &TableMemory::default())
    }

    /// An address space without mappings, with tables in this memory.
    pub fn new_in(memcg: MemcgId, tlb: Option<Tlb>, memory: &TableMemory) -> Mm {
        let (table, nodes) = (Table::new_in(0, memory), Nodes::new(NodeKind::PageTable, 0, memory));
        Mm {
            memcg,
            table,
            nodes,
            tlb,
            vmas: Vec::new(),
            used_on_nodes: 0,
            is_sampled: false,
            scan: MmScan::default(),
            users: 0,
            is_running: false,
            is_oom_victim: false,
            is_io_flusher: false,
            oom_score_adj: 0,
            placement: None,
        }
    }

    /// Returns whether it says itself where its memory is to be. Then nothing is moved nearer to its CPUs: without MPOL_F_NUMA_BALANCING, which
    /// numactl sets only if asked, a policy does not allow that.
    pub fn has_mempolicy(&self) -> bool {
        self.placement.as_ref().is_some_and(|placement| placement.policy != MemPolicy::Default)
    }

    /// One of the same group with the same mappings, and nothing in them.
    pub fn like(&self, tlb: Option<Tlb>) -> Mm {
        let pages = self.table.pages();
        let (table, nodes) =
            (Table::new(pages), Nodes::new(NodeKind::PageTable, pages, &TableMemory::default()));
        let anew = |vma: &Vma| Vma { swap_window: SwapWindow::default(), scan: None, ..vma.clone() };
        Mm {
            table,
            nodes,
            vmas: self.vmas.iter().map(anew).collect(),
            is_running: self.is_running,
            is_io_flusher: self.is_io_flusher,
            oom_score_adj: self.oom_score_adj,
            placement: self.placement.clone(),
            ..Mm::new(self.memcg, tlb)
        }
    }

    /// The process is exiting, or about to, and its memory will be free: no other process need be killed.
    pub fn is_ending(&self) -> bool {
        self.is_oom_victim || self.users == 0 && !self.vmas.is_empty()
    }

    /// The address space's last task is gone, and its mappings are: only its number is left, and it is not given out again.
    pub fn end(&mut self) {
        assert_eq!(self.users, 0, "an address space ends in which tasks run");
        debug_assert!(self.table.iter().next().is_none(), "an address space ends that has pages");
        debug_assert!(self.nodes.iter().next().is_none(), "its page tables went with its mappings");
        *self = Mm::new(self.memcg, None);
    }

    /// Lays out a mapping behind the others; returns its position.
    pub fn map(&mut self, pages: u64, backing: Backing, advice: Advice, executable: bool) -> usize {
        assert!(pages > 0, "a mapping of no page");
        let start = self.table.pages().next_multiple_of(LEAF_PAGES);
        self.table.grow(start + pages - self.table.pages());
        self.nodes.grow(start + pages);
        self.vmas.push(Vma {
            start,
            pages,
            backing,
            open: None,
            advice,
            huge_advice: HugeAdvice::default(),
            huge_parts: Vec::new(),
            locked: false,
            executable,
            mapped: true,
            swap_window: SwapWindow::default(),
            compressibility: None,
            scan: None,
        });
        self.vmas.len() - 1
    }

    /// The mapping that holds this page.
    pub fn vma_of(&self, page: u64) -> &Vma {
        &self.vmas[self.vmas.partition_point(|vma| vma.start <= page) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_on_a_part_splits_and_equal_parts_join() {
        use HugeAdvice::{Hugepage, NoHugepage, Normal};
        let mut mm = Mm::new(MemcgId::ROOT, None);
        mm.map(100, Backing::Anon, Advice::Normal, false);
        let vma = &mut mm.vmas[0];
        vma.advise_huge(5..60, Hugepage);
        assert_eq!(
            [0, 4, 5, 59, 60].map(|page| vma.huge_at(page)),
            [(0..5, Normal), (0..5, Normal), (5..60, Hugepage), (5..60, Hugepage), (60..100, Normal)]
        );
        vma.advise_huge(60..100, Hugepage);
        assert_eq!(vma.huge_at(70), (5..100, Hugepage));
        vma.advise_huge(20..30, NoHugepage);
        assert_eq!(vma.huge_at(40), (30..100, Hugepage));
        vma.advise_huge(0..100, Hugepage);
        assert_eq!((vma.huge_at(3), vma.huge_advice), ((0..100, Hugepage), Hugepage));
    }

    #[test]
    fn mappings_begin_at_2_mib_and_pages_find_theirs() {
        let mut mm = Mm::new(MemcgId::ROOT, None);
        mm.map(5, Backing::Anon, Advice::Normal, false);
        mm.map(1000, Backing::Anon, Advice::Random, false);
        assert_eq!(mm.vmas[1].start, 512);
        assert_eq!(mm.vma_of(4).start, 0);
        assert_eq!(mm.vma_of(1511).advice, Advice::Random);
    }
}
