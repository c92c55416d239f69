//! The page-table walk: all address spaces of a group, table by table, for accessed bits.
//!
//! ```text
//!   group's address spaces   ─ ran since the last walk?         mm skip          each a reason to skip what
//!     mappings               ─ recency, evictable at all?       VMA rules        is likely not to have been used
//!       upper entries        ─ young?                           non-leaf young
//!                            ─ dense when last walked?          Bloom filter
//!         512 entries        ─ young: reported to the LRU, the bit cleared
//! ```
//! The cost of a walk grows with the number of accessed pages, the cost of the reverse map with the number of pages that reclaim asks
//! about. Pages that a walk leaves out are not lost: the reverse map sees them when reclaim has isolated them.
//!
//! All walkers of an lruvec share one *iteration* over the address spaces. Each takes the next one. A walker that finds none left has
//! completed the iteration, even while others still walk theirs. So on the first shortage of memory an allocator can open two generations
//! while kswapd walks the only large address space. Pages that kswapd has not reached yet count as unused.
//!
//! A walk continues in steps of some tables, so that other tasks age and evict meanwhile. A page that it finds young joins the generation
//! that is the youngest at that time, and that counts immediately. A walk that another one has overtaken notices that at its next batch of
//! updates, or at the end of its address space, and stops. [reclaim 4.5, 4.6; reclaim-6.12 4.5, 4.6]

use crate::accessed::{TableWalkState, WalkStats};
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::memory::mm::{Backing, Mm, Vma};
use crate::memory::table::{LEAF_PAGES, Word};
use crate::state::State;
use crate::story::{FoundBy, PageEvent};
use crate::units::{MemcgId, MmId, Pfn};
use pageout_rules::lru::SWAPPINESS_ANON_ONLY;
use std::ops::Range;

/// Entries of a cache line: a table is worth walking again if every line of it had one young entry on average.
pub(super) const ENTRIES_PER_LINE: u64 = 8;
/// Tables between two steps. Few, because another processor opens a generation in the time that some hundred entries take.
const TABLES_PER_STEP: u64 = 4;
/// Folios that a walk moves to another generation before it looks whether others have overtaken it.
const MAX_LRU_BATCH: u64 = 4096;

/// Entries that a step looks at, at most.
pub(crate) const ENTRIES_PER_STEP: usize = (TABLES_PER_STEP * LEAF_PAGES) as usize;

/// A walk in progress.
pub(crate) struct Walk {
    pub(super) seq: u64,
    is_forced: bool,
    swappiness: u8,
    pub(super) in_hand: Option<InHand>,
    /// Folios moved to another generation since it looked whether it was overtaken.
    batched: u64,
    /// Frames of the entries found young, if the caller needs them.
    pub(super) found: Option<Vec<Pfn>>,
}

/// An address space that is being walked.
#[derive(Clone, Copy)]
pub(super) struct InHand {
    pub(super) mm: MmId,
    /// The page to go on at.
    pub(super) from: u64,
    /// True if everything is scanned.
    pub(super) is_forced: bool,
    /// True if tables that are not in the filter are scanned, too.
    pub(super) is_new: bool,
}

/// The outcome of one step of a page-table walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walked {
    More,
    /// Other walks have overtaken this one.
    Overtaken,
    /// Every address space has been taken, though others may still be walking theirs.
    Complete,
}

impl Core {
    /// Walks some page tables: one step of a walk.
    pub(crate) fn walk_step(&mut self, lruvec: LruvecId, walk: &mut Walk) -> Walked {
        let memcg = self.mm.lruvecs[lruvec].memcg;
        if walk.in_hand.is_none() || walk.batched >= MAX_LRU_BATCH {
            if self.mm.lruvecs[lruvec].walk.seq >= walk.seq {
                return Walked::Overtaken;
            }
            walk.batched = 0;
        }
        if !self.mm.memcgs[memcg].policy.harvest.page_table_walk {
            // Walks may have been turned off in the middle of this one. Without walks, the state of every address space is unknown: the
            // first walk after that is a full one.
            let state = &mut self.mm.lruvecs[lruvec].walk;
            state.seq = state.seq.max(walk.seq);
            state.next = 0;
            state.known = 0;
            state.has_filter = false;
            return Walked::Complete;
        }
        let Some(in_hand) = walk.in_hand.or_else(|| self.mm.walk_take(lruvec, walk)) else {
            return self.mm.walk_end(lruvec, walk);
        };
        let next = self.walk_tables(lruvec, walk, in_hand);
        walk.in_hand = next.map(|from| InHand { from, ..in_hand });
        Walked::More
    }

    /// Walks tables of an address space from a page on; returns where to go on.
    #[doc(alias = "walk_pmd_range")]
    pub(super) fn walk_tables(&mut self, lruvec: LruvecId, walk: &mut Walk, in_hand: InHand) -> Option<u64> {
        let InHand { mm, from, .. } = in_hand;
        let vmas = self.mm.memory.mm(mm).vmas.len();
        let first = self.mm.memory.mm(mm).vmas.partition_point(|vma| vma.start + vma.pages <= from);
        let mut tables = 0;
        for at in first..vmas {
            let vma = &self.mm.memory.mm(mm).vmas[at];
            if !self.mm.is_walked(vma, self.mm.memory.mm(mm).memcg, walk.swappiness) {
                continue;
            }
            let (start, end) = (vma.start.max(from), vma.start + vma.pages);
            let mut page = start;
            while page < end {
                if tables == TABLES_PER_STEP {
                    return Some(page);
                }
                let table_end = (page / LEAF_PAGES + 1) * LEAF_PAGES;
                tables += 1;
                self.walk_upper_entry(lruvec, walk, in_hand, page..table_end.min(end));
                page = table_end;
            }
        }
        None
    }

    /// Looks at an upper entry, and if it is worth it at the entries of the table below it.
    fn walk_upper_entry(&mut self, lruvec: LruvecId, walk: &mut Walk, in_hand: InHand, pages: Range<u64>) {
        let InHand { mm, is_forced, is_new, .. } = in_hand;
        let harvest = self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.harvest;
        let leaf = pages.start / LEAF_PAGES;
        self.out.count.upper_entries(1);
        self.looked_at += 1;
        if !self.mm.memory.mm(mm).table.leaf_exists(leaf) {
            self.mm.walk_stats(lruvec, walk).leaf_total += 1;
            return;
        }
        self.gather_accessed(mm, pages.clone());
        let goes_by_young = harvest.non_leaf_young && !is_forced;
        if goes_by_young && !self.mm.memory.mm(mm).table.is_leaf_young(leaf) {
            return;
        }
        if self.mm.memory.mm(mm).table.is_leaf_huge(leaf) {
            self.walk_huge_entry(lruvec, walk, mm, pages.start);
            return;
        }
        if goes_by_young {
            self.mm.memory.mm_mut(mm).table.clear_leaf_young(leaf);
        }
        let passes = |state: &TableWalkState| state.filters.may_contain(walk.seq, mm, leaf);
        if harvest.bloom_filter && !is_new && !passes(&self.mm.lruvecs[lruvec].walk) {
            return;
        }
        let all = pages.end - pages.start;
        let young = self.walk_entries(lruvec, walk, mm, pages);
        let is_dense = young * ENTRIES_PER_LINE >= all;
        let stats = self.mm.walk_stats(lruvec, walk);
        stats.nonleaf_found += 1;
        stats.leaf_total += all;
        stats.leaf_young += young;
        stats.nonleaf_added += u64::from(is_dense);
        if is_dense {
            self.mm.lruvecs[lruvec].walk.filters.insert(walk.seq + 1, mm, leaf);
        }
    }

    /// The entry leads to no table, but to a huge page: as good as any other, for the price of one.
    fn walk_huge_entry(&mut self, lruvec: LruvecId, walk: &mut Walk, mm: MmId, page: u64) {
        self.mm.walk_stats(lruvec, walk).leaf_total += 1;
        let head = self.mm.memory.mm(mm).table.word(page).pfn();
        if !self.mm.memory.mm(mm).table.is_entry_young(page) || self.mm.lruvec_of(head) != lruvec {
            return;
        }
        self.mm.memory.mm_mut(mm).table.clear_entry_young(page);
        self.mm.walk_stats(lruvec, walk).leaf_young += 1;
        self.tell(head, |_| PageEvent::FoundYoung { by: FoundBy::Walk });
        walk.batched += u64::from(self.lru_young(head, false));
        if let Some(found) = &mut walk.found {
            found.push(head);
        }
    }

    /// Tells the LRU of every young entry, and clears it; returns how many there were.
    #[doc(alias = "walk_pte_range")]
    fn walk_entries(&mut self, lruvec: LruvecId, walk: &mut Walk, mm: MmId, pages: Range<u64>) -> u64 {
        self.out.count.ptes_walked(pages.end - pages.start);
        let executable = self.mm.memory.mm(mm).vma_of(pages.start).executable;
        let mut young = 0;
        for page in pages {
            let word = self.mm.memory.mm(mm).table.word(page);
            if !word.is_young() || word.is_zero_page() || self.mm.lruvec_of(word.pfn()) != lruvec {
                continue;
            }
            self.mm.memory.mm_mut(mm).table.update(page, Word::clear_young);
            young += 1;
            self.mm.memory.take_over_dirty(word);
            self.tell(word.pfn(), |_| PageEvent::FoundYoung { by: FoundBy::Walk });
            walk.batched += u64::from(self.lru_young(word.pfn(), executable));
            if let Some(found) = &mut walk.found {
                found.push(word.pfn());
            }
        }
        self.out.count.ptes_young(young);
        young
    }
}

impl State {
    /// Begins the walk after the one completed last, or joins those who have begun it.
    ///
    /// Its number is that of the generation it ages as long as nothing but generations walks; a group that has had two lists
    /// for a while may be ahead.
    pub(crate) fn walk_begin(&self, lruvec: LruvecId, swappiness: u8, is_forced: bool) -> Walk {
        let seq = self.lruvecs[lruvec].walk.seq + 1;
        Walk { seq, is_forced, swappiness, in_hand: None, batched: 0, found: None }
    }

    /// Takes the next address space that is worth it.
    fn walk_take(&mut self, lruvec: LruvecId, walk: &Walk) -> Option<InHand> {
        let (memcg, node) = (self.lruvecs[lruvec].memcg, self.lruvecs[lruvec].node);
        let skips = self.memcgs[memcg].policy.harvest.mm_skip;
        let state = &mut self.lruvecs[lruvec].walk;
        while let Some(&mm) = self.memcgs[memcg].mms.get(state.next) {
            let is_forced = walk.is_forced || state.next >= state.known;
            state.next += 1;
            let Mm { used_on_nodes: used, is_sampled, .. } = &mut self.memory.mms[mm.index()];
            let is_used = *used >> node.0 & 1 != 0 || *is_sampled;
            let has_run = self.recorded.walks.pop_front().unwrap_or(is_used);
            if skips && !is_forced && !has_run {
                state.unused += 1;
                if !is_interrupted(self.config.interruptions, state.unused) {
                    continue;
                }
            }
            *used &= !(1 << node.0);
            if !state.has_filter {
                state.filters.reset(walk.seq + 1);
                state.has_filter = true;
            }
            return Some(InHand { mm, from: 0, is_forced, is_new: is_forced });
        }
        None
    }

    /// An address space joins another group, whose walks visit it from now on. A walker that is in the address space now continues.
    pub(crate) fn lru_gen_migrate_mm(&mut self, mm: MmId, memcg: MemcgId) {
        self.lru_gen_del_mm(mm);
        self.memory.mm_mut(mm).memcg = memcg;
        self.memcgs[memcg].mms.push(mm);
    }

    /// An address space ends, and no walk visits it again. A walker that is in it now finds it empty.
    pub(crate) fn lru_gen_del_mm(&mut self, mm: MmId) {
        let memcg = self.memory.mm(mm).memcg;
        let position = self.memcgs[memcg].mms.iter().position(|&other| other == mm);
        let position = position.expect("it joined its group when it was created");
        self.memcgs[memcg].mms.remove(position);
        for node in self.lruvecs.nodes() {
            let lruvec = self.lruvecs.id(memcg, node);
            self.lruvecs[lruvec].walk.forget_mm(position);
        }
    }

    /// No address space is left to take.
    fn walk_end(&mut self, lruvec: LruvecId, walk: &Walk) -> Walked {
        let memcg = self.lruvecs[lruvec].memcg;
        let state = &mut self.lruvecs[lruvec].walk;
        state.seq = walk.seq;
        state.next = 0;
        state.has_filter = false;
        state.known = self.memcgs[memcg].mms.len();
        Walked::Complete
    }

    /// Returns true if a mapping's accessed bits say anything that matters.
    fn is_walked(&self, vma: &Vma, memcg: MemcgId, swappiness: u8) -> bool {
        let is_anon_type = match vma.backing {
            Backing::Anon => true,
            Backing::File(file) => self.memory.file(file).is_tmpfs(),
        };
        let is_evictable = if is_anon_type { swappiness > 0 } else { swappiness != SWAPPINESS_ANON_ONLY };
        let recency = self.memcgs[memcg].policy.harvest.recency;
        vma.mapped && vma.has_recency(&self.memory.open_files, recency) && !vma.locked && is_evictable
    }

    fn walk_stats(&mut self, lruvec: LruvecId, walk: &Walk) -> &mut WalkStats {
        let state = &mut self.lruvecs[lruvec].walk;
        let slot = state.slot(walk.seq);
        &mut state.stats[slot]
    }
}

/// Returns true if another thread ran before the `nth` walk that finds an address space unused: half of them, by a hash; none for seed 0.
fn is_interrupted(seed: u32, nth: u64) -> bool {
    let mixed = (u64::from(seed) << 32 ^ nth).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed != 0 && (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb) >> 63 != 0
}

#[cfg(test)]
mod tests {
    use super::is_interrupted;

    #[test]
    fn half_of_the_walks_are_interrupted_by_seed_and_none_without_one() {
        let interrupted = |seed| (0..10_000).filter(|&nth| is_interrupted(seed, nth)).count();
        assert_eq!(interrupted(0), 0);
        for seed in 1..=64 {
            assert!((4_800..5_200).contains(&interrupted(seed)), "seed {seed}: {}", interrupted(seed));
        }
        let alike = (0..10_000).filter(|&nth| is_interrupted(1, nth) == is_interrupted(2, nth)).count();
        assert!((4_800..5_200).contains(&alike), "{alike}");
    }
}
