//! Look-around: the reverse map has led to a young entry, and its neighbours are likely to be young as well.
//!
//! The expensive part of the reverse map is the way from the page to its entry. The neighbouring entries are in the same cache lines. So
//! look-around checks up to 64 of them, and each page that it finds young needs no reverse-map lookup later. If a table has enough young
//! entries, it goes into the Bloom filter and the next walk visits it: eviction shows aging which tables to visit. [reclaim 4.8; kernels
//! 2.3]

use super::walk::ENTRIES_PER_LINE;
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::table::{LEAF_PAGES, Word};
use crate::state::State;
use crate::story::{FoundBy, PageEvent};
use crate::units::{LruType, MmId, Pfn};
use pageout_rules::accessed::Neighbours;
use pageout_rules::lru::{Lru, References};

/// Entries looked at.
const WINDOW: u64 = 64;

impl Core {
    /// Looks around an entry that was found young. `has_buffer`: a walk's buffer is available, so neighbours can change their generation
    /// immediately instead of going through the activation batch.
    #[doc(alias = "lru_gen_look_around")]
    #[inline(never)]
    pub(super) fn look_around(&mut self, pfn: Pfn, mm: MmId, page: u64, has_buffer: bool) {
        let lruvec = self.mm.lruvec_of(pfn);
        let target = self.mm.memory.folios[pfn].lru_type();
        let vma = self.mm.memory.mm(mm).vma_of(page);
        let executable = vma.executable;
        let (start, pages) = (vma.start, vma.pages);
        let by_batch = match self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.harvest.neighbours {
            Neighbours::Batched => true,
            Neighbours::AtOnce => {
                // The page's own entry is one of those checked, and the page is on no list: a second sign of use, in addition to the entry
                // itself.
                self.mm.memory.add_use(pfn, UseBits::REFERENCED);
                has_buffer || self.mm.lru_of(lruvec) != Lru::Generations
            }
        };
        let leaf = page / LEAF_PAGES;
        let first = start.max(leaf * LEAF_PAGES);
        let end = (start + pages).min((leaf + 1) * LEAF_PAGES);
        if end - first == 1 {
            return;
        }
        let window = window(first, end, page);
        self.gather_accessed(mm, window.clone());
        self.out.count.ptes_walked(window.end - window.start);
        let mut young = 1;
        let (mut held_back, mut count) = ([Pfn(0); WINDOW as usize], 0);
        for near in window.clone().filter(|&near| near != page) {
            let word = self.mm.memory.mm(mm).table.word(near);
            if word.is_young() && !word.is_zero_page() && self.mm.is_neighbour(lruvec, target, word.pfn()) {
                young += 1;
                self.mm.memory.mm_mut(mm).table.update(near, Word::clear_young);
                self.mm.memory.take_over_dirty(word);
                self.tell(word.pfn(), |_| PageEvent::FoundYoung { by: FoundBy::LookAround });
                if has_buffer {
                    self.lru_young(word.pfn(), executable);
                } else if !by_batch && self.mm.memory.folios[word.pfn()].has(FolioFlags::LRU) {
                    if !self.mm.is_in_youngest(lruvec, word.pfn()) {
                        held_back[count] = word.pfn();
                        count += 1;
                    }
                } else {
                    self.lru_young_nearby(word.pfn(), executable);
                }
            }
        }
        let is_worth_the_lock = count >= self.mm.config.folio_batch;
        for &near in &held_back[..count] {
            if is_worth_the_lock {
                self.lru_young(near, executable);
            } else {
                self.lru_activate(near);
            }
        }
        if young * ENTRIES_PER_LINE >= window.end - window.start {
            let state = &mut self.mm.lruvecs[lruvec].walk;
            state.filters.insert(state.seq + 1, mm, leaf);
        }
    }
}

impl State {
    /// Returns whether a page is in the same group on the same node, and of a type that may be evicted now if the target folio may. Since
    /// 6.14 it has to be in a generation: another folio of the batch keeps its accessed bit, by which it is judged itself. [reclaim 4.8]
    fn is_neighbour(&self, lruvec: LruvecId, target: LruType, pfn: Pfn) -> bool {
        let kind = self.memory.folios[pfn].lru_type();
        let is_seen = || {
            self.lru_of(lruvec) != Lru::Generations
                || self.generation_rules(lruvec).references == References::Linux6_12
                || self.memory.places.get(pfn).is_listed()
        };
        self.lruvec_of(pfn) == lruvec && (target == LruType::Anon || kind == LruType::File) && is_seen()
    }
}

/// Sixty-four pages around one, within a range: at its start or end if that is near, else the page in the middle.
fn window(first: u64, end: u64, page: u64) -> std::ops::Range<u64> {
    if end - first <= WINDOW {
        first..end
    } else if page - first < WINDOW / 2 {
        first..first + WINDOW
    } else if end - page < WINDOW / 2 {
        end - WINDOW..end
    } else {
        page - WINDOW / 2..page + WINDOW / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_64_entries_that_hold_the_page() {
        for (first, end, page, expected) in [
            (0, 512, 3, 0..64),
            (0, 512, 32, 0..64),
            (0, 512, 200, 168..232),
            (0, 512, 500, 448..512),
            (100, 140, 120, 100..140),
        ] {
            assert_eq!(window(first, end, page), expected);
            assert!(window(first, end, page).contains(&page));
        }
    }
}
