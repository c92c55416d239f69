//! The NUMA-balancing scanner: a thread that has used its period of CPU time marks entries of its own address space PROT_NONE.
//! It does so on its way back to user space. [tiering-zswap-6.12 3.1, 3.2]
//!
//! ```text
//!   for each mapping from where the last scan ended: is it worth it? ── nobody here has used it lately ──▶ passed by, this time
//!        │
//!        ▼
//!   2 MiB at a time, until a scan size of pages was changed, or eight times that was looked at
//!        each entry: in slow memory, not shared, not dirty in a file ─▶ PROT_NONE, and the time is kept
//! ```
//! If pages follow CPUs, pages of fast memory are marked, too: of a process of one thread those on other nodes, otherwise all.
//!
//! A scan's time belongs to memory in use. So the users of a mapping are forgotten when two scans have skipped it without a hint fault
//! in between. Then it waits for its turn like a mapping without users. A scan takes one such mapping.
//!
//! A scan that is due while the address space rests is lost: the thread's next one is a whole period of CPU time later.

use super::period::ScanKnobs;
use super::threshold::AccessTime;
use super::{MmScan, ThreadScan, VmaScan};
use crate::core::Core;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_PAGES};
use crate::memory::mm::{Backing, Vma};
use crate::memory::table::{LEAF_PAGES, Word};
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{MmId, Nanos, Pfn, TaskId};
use pageout_rules::numa_balancing::SkippedMappings;
use std::ops::Range;

/// A scan looks at so many times its size of address space.
const VIRTUAL_FACTOR: i64 = 8;
/// A thread pays so many times the CPU time that a scan took before its next one.
const COST_FACTOR: u64 = 32;
/// Scan delays after which it is forgotten which threads used a mapping.
const FORGET_DELAYS: u64 = 4;

/// A span of milliseconds.
fn ms(count: u64) -> Nanos {
    Nanos(count * 1_000_000)
}

impl Core {
    /// A timer tick of a running thread that has used so much CPU time. Scans if that is due; false if nothing was scanned.
    #[doc(alias = "task_tick_numa")]
    pub(crate) fn scan_tick(
        &mut self,
        mm: MmId,
        thread: &mut ThreadScan,
        id: TaskId,
        runtime: Nanos,
    ) -> bool {
        let Some(due) = self.mm.scan_due(thread) else { return false };
        if runtime <= due {
            return false;
        }
        // The first thread derives its period from its resident pages from the start. Another thread uses the delay until its
        // faults change it.
        if thread.is_first && thread.stamp == Nanos::ZERO {
            thread.period_ms =
                Some(ScanKnobs::of(&self.mm.config).period_min(self.mm.memory.mm(mm).table.resident()));
        }
        thread.stamp = due;
        let period = ms(self.mm.scan_period(thread));
        let (now, delay) = (self.by.now, ms(self.mm.config.scan_delay_ms.into()));
        let scan = &mut self.mm.memory.mm_mut(mm).scan;
        if scan.next == Nanos::ZERO {
            scan.next = now + delay;
            return false;
        }
        if now < scan.next {
            return false;
        }
        if self.mm.is_confined_to_one_node(mm) {
            return false;
        }
        let scan = &mut self.mm.memory.mm_mut(mm).scan;
        scan.next = now + period;
        thread.stamp += Nanos::from_ticks(2, self.mm.config.hz);
        self.scan_mm(mm, id);
        true
    }

    /// Marks entries from where the last scan ended.
    #[doc(alias = "task_numa_work")]
    fn scan_mm(&mut self, mm: MmId, thread: TaskId) {
        let MmScan { mut seq, mut offset, .. } = self.mm.memory.mm(mm).scan;
        let vmas = self.mm.memory.mm(mm).vmas.len();
        let mut at = self.mm.vma_from(mm, offset);
        if at == vmas {
            (seq, offset, at) = (seq + 1, 0, 0);
        }
        let mut pages = ScanKnobs::of(&self.mm.config).pages() as i64;
        let mut virtual_pages = VIRTUAL_FACTOR * pages;
        let (mut has_skipped, mut is_forced) = (false, false);
        loop {
            while at < vmas {
                let range = self.mm.memory.mm(mm).vmas[at].range();
                if !self.mm.is_scannable(mm, at) || !self.may_scan_vma(mm, at, seq) {
                    at += 1;
                    continue;
                }
                if self.mm.vma_scan(mm, at).prev_seq == Some(seq) {
                    offset = range.end;
                    at += 1;
                    continue;
                }
                if !is_forced && !self.mm.is_vma_accessed(mm, at, seq, offset, thread) {
                    has_skipped = true;
                    at += 1;
                    continue;
                }
                let mut start = range.start.max(offset);
                while start < range.end {
                    let end = (start + pages as u64).next_multiple_of(LEAF_PAGES).min(range.end);
                    let length = (end - start) as i64;
                    if self.mark_range(mm, at, start..end) > 0 {
                        pages -= length;
                    }
                    virtual_pages -= length;
                    start = end;
                    if pages <= 0 || virtual_pages <= 0 {
                        return self.mm.end_scan(mm, seq, start);
                    }
                }
                self.mm.vma_scan_mut(mm, at).prev_seq = Some(seq);
                if is_forced {
                    // One mapping without users is enough per scan.
                    return self.mm.end_scan(mm, seq, range.end);
                }
                at += 1;
            }
            let takes_turns = self.mm.skipped_mappings() == SkippedMappings::UnusedInTurn;
            if !has_skipped || is_forced || !takes_turns {
                return self.mm.end_scan(mm, seq + 1, 0);
            }
            is_forced = true;
            at = self.mm.vma_from(mm, offset);
        }
    }

    /// Returns true if a mapping has been there for long enough. Its first scan begins what is known of it; old users are forgotten on the way.
    fn may_scan_vma(&mut self, mm: MmId, vma: usize, seq: u32) -> bool {
        let (now, delay) = (self.by.now, u64::from(self.mm.config.scan_delay_ms));
        let space = self.mm.memory.mm_mut(mm);
        let has_passed = seq > 0;
        let scan = space.vmas[vma].scan.get_or_insert(VmaScan {
            start_seq: seq,
            prev_seq: None,
            next: now + ms(delay),
            forget_at: now + ms(delay * (1 + FORGET_DELAYS)),
            threads: [0; 2],
        });
        if has_passed && now < scan.next {
            return false;
        }
        if has_passed && now > scan.forget_at {
            scan.forget_at += ms(delay * FORGET_DELAYS);
            scan.threads = [scan.threads[1], 0];
        }
        true
    }

    /// Marks the entries of a range whose pages may move; returns how many.
    #[doc(alias = "change_prot_numa")]
    fn mark_range(&mut self, mm: MmId, vma: usize, pages: Range<u64>) -> u64 {
        let is_private = self.mm.memory.mm(mm).vmas[vma].backing == Backing::Anon;
        let is_single = is_private && self.mm.memory.mm(mm).users == 1;
        let stored = AccessTime::of(&self.mm.config).stored(self.by.now.0 / 1_000_000);
        let (mut marked, mut entries) = (0, 0);
        let leaves = pages.start / LEAF_PAGES..pages.end.div_ceil(LEAF_PAGES);
        for leaf in leaves {
            if !self.mm.memory.mm(mm).table.leaf_exists(leaf) {
                continue;
            }
            if self.mm.memory.mm(mm).table.is_leaf_huge(leaf) {
                self.out.count.ptes_walked(1);
                let word = self.mm.memory.mm(mm).table.word(leaf * LEAF_PAGES);
                if self.may_mark(word, is_single) {
                    self.mark_in_scan(mm, leaf * LEAF_PAGES, word, stored);
                    marked += HUGE_PAGE_PAGES;
                    entries += 1;
                }
                continue;
            }
            let pages = (leaf * LEAF_PAGES).max(pages.start)..((leaf + 1) * LEAF_PAGES).min(pages.end);
            self.out.count.ptes_walked(pages.end - pages.start);
            for page in pages {
                let word = self.mm.memory.mm(mm).table.word(page);
                if self.may_mark(word, is_single) {
                    self.mark_in_scan(mm, page, word, stored);
                    marked += 1;
                    entries += 1;
                }
            }
        }
        self.count_marked(marked, entries);
        marked
    }

    fn mark_in_scan(&mut self, mm: MmId, page: u64, word: Word, stored: u32) {
        self.mark_entry(mm, page, word, stored);
        self.tell(word.pfn(), |_| PageEvent::HintMarked);
        let here = self.current_node();
        let is_upward = self.mm.tiers.node_is_top_tier(here) && self.mm.is_slow(word.pfn());
        if self.mm.is_governed() && is_upward {
            self.note_mark(word.pfn(), here);
        }
    }

    /// Marks an entry, that of a huge page for all its pages, and keeps the time.
    pub(super) fn mark_entry(&mut self, mm: MmId, page: u64, word: Word, stored: u32) {
        if word.is_huge() {
            self.mm.update_huge(mm, page, Word::set_prot_none);
            self.mm.count_node(self.current_node(), Stat::NumaHugePteUpdates, 1);
        } else {
            let space = self.mm.memory.mm_mut(mm);
            space.table.update(page, Word::set_prot_none);
            if let Some(tlb) = &mut space.tlb {
                tlb.drop_page(page);
            }
        }
        if self.mm.is_slow(word.pfn()) && self.mm.config.is_memory_tiering() {
            self.mm.numa_balancing.exchange_access_time(word.pfn(), stored);
        }
    }

    /// `pages` pages were marked, in `entries` entries.
    pub(super) fn count_marked(&mut self, pages: u64, entries: u64) {
        if pages > 0 {
            self.mm.numa_balancing.has_marked = true;
            self.out.count.ptes_marked(entries);
            self.mm.count_node(self.current_node(), Stat::NumaPteUpdates, pages as i64);
        }
    }

    /// Returns true if an entry leads to a page that could move to the node of its user. One that is marked keeps its time.
    pub(super) fn may_mark(&self, word: Word, is_single: bool) -> bool {
        if !word.is_present() || word.is_zero_page() || word.is_prot_none() {
            return false;
        }
        let folio = &self.mm.memory.folios[word.pfn()];
        let is_regular = !folio.flags().intersects(FolioFlags::ANON | FolioFlags::SWAPBACKED);
        let is_dirty_file = is_regular && (folio.has(FolioFlags::DIRTY) || word.is_dirty());
        let is_here = is_single && folio.node == self.current_node();
        !is_dirty_file
            && !folio.has(FolioFlags::PINNED)
            && !is_here
            && (self.mm.config.is_cpu_balancing() || !self.mm.tiers.node_is_top_tier(folio.node))
    }
}

impl State {
    /// The CPU time of a thread beyond which its next tick starts a scan; `None` if scanning is off.
    pub(crate) fn scan_due(&self, thread: &ThreadScan) -> Option<Nanos> {
        let has_slow = self.config.is_memory_tiering() && self.tiers.has_lower_tier();
        let has_remote = self.config.is_cpu_balancing() && self.config.node_pages.len() > 1;
        // A small `scan_size_mb` makes a period of 0: then each tick is one.
        let tick = || Nanos::from_ticks(1, self.config.hz);
        let period = || match self.scan_period(thread) {
            0 => tick(),
            period => ms(period),
        };
        (has_slow || has_remote).then(|| thread.stamp + period())
    }

    fn scan_period(&self, thread: &ThreadScan) -> u64 {
        thread.period_ms.unwrap_or(self.config.scan_delay_ms.into())
    }

    /// A scan of a thread took so much of its CPU time, in whole ticks.
    pub(crate) fn scan_took(&self, thread: &mut ThreadScan, billed: Nanos) {
        thread.stamp += Nanos(COST_FACTOR * billed.0);
    }

    /// The first mapping that ends behind a page, by its place in the order of addresses.
    pub(super) fn vma_from(&self, mm: MmId, page: u64) -> usize {
        self.memory.mm(mm).vmas.partition_point(|vma| vma.range().end <= page)
    }

    fn end_scan(&mut self, mm: MmId, seq: u32, offset: u64) {
        let scan = &mut self.memory.mm_mut(mm).scan;
        (scan.seq, scan.offset) = (seq, offset);
    }

    /// Returns true if pages of a mapping may move for those who use it. Program text is shared by all who run it.
    pub(super) fn is_scannable(&self, mm: MmId, vma: usize) -> bool {
        let mm = self.memory.mm(mm);
        let vma: &Vma = &mm.vmas[vma];
        vma.mapped && !mm.has_mempolicy() && !(vma.executable && vma.backing != Backing::Anon)
    }

    /// Returns true if a mapping is likely to be in use by this thread, or its turn has come.
    fn is_vma_accessed(&self, mm: MmId, vma: usize, seq: u32, offset: u64, thread: TaskId) -> bool {
        let space = self.memory.mm(mm);
        let scan = self.vma_scan(mm, vma);
        if self.skipped_mappings() == SkippedMappings::Nothing {
            return true;
        }
        let takes_turns = self.skipped_mappings() == SkippedMappings::UnusedInTurn;
        let users = scan.threads[0] | scan.threads[1];
        let last = scan.prev_seq.map_or(i64::from(scan.start_seq) - 1, i64::from);
        seq - scan.start_seq < 2
            || users & thread_bit(thread) != 0
            || offset > space.vmas[vma].start
            || takes_turns && i64::from(seq) > last + i64::from(space.users)
    }

    fn skipped_mappings(&self) -> SkippedMappings {
        self.config.policy.machine.numa_balancing.skipped_mappings
    }

    /// Returns true if the pages of an address space may be on one node only, and the kernel then does not scan it.
    fn is_confined_to_one_node(&self, mm: MmId) -> bool {
        if !self.config.policy.machine.numa_balancing.single_node_cpuset {
            return false;
        }
        let mems = self.memcgs.mems_allowed(self.memory.mm(mm).memcg);
        self.memory.nodes().filter(|&node| mems.contains(node)).count() == 1
    }

    fn is_slow(&self, pfn: Pfn) -> bool {
        !self.tiers.node_is_top_tier(self.memory.folios[pfn].node)
    }

    fn vma_scan(&self, mm: MmId, vma: usize) -> &VmaScan {
        self.memory.mm(mm).vmas[vma].scan.as_ref().expect("its first look has made it")
    }

    fn vma_scan_mut(&mut self, mm: MmId, vma: usize) -> &mut VmaScan {
        self.memory.mm_mut(mm).vmas[vma].scan.as_mut().expect("its first look has made it")
    }
}

/// The bit of a thread in a small set, in which several threads share a bit.
pub(super) fn thread_bit(thread: TaskId) -> u64 {
    1 << (thread.0 % u64::BITS)
}
