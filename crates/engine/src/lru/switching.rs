//! Switching groups between MGLRU and the classic LRU while they run (`/sys/kernel/mm/lru_gen/enabled`).
//!
//! ```text
//!   written ──► new policy ──► 4096 folios ──► 4096 folios ──► ... ──► done           a step each; others run in between
//!               │              moved, coldest first, to where their state puts them
//!               └─ from here on what is added, put back or accessed goes by the new policy
//! ```
//! The policy changes immediately and for all groups; their folios follow list by list. In between, most of a group is still on the lists
//! of its old policy. A reclaimer that scans only the new lists finds nothing. If the group is at its limit, it is killed, although its
//! memory is full of idle pages. So while a group is *switching*, reclaim also walks the old lists, and walks them first, because folios
//! only go from old lists to new ones. The switch `lru.switching` restores the older rule, and with it the bug. [reclaim 4.12; bugs M5]
//!
//! The task that writes `enabled` moves the folios. Two writers move them together, to the lists of the policy that was written last.

use super::Arrival;
use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::state::State;
use crate::units::Pfn;
use pageout_rules::lru::Lru;
use pageout_rules::lru::Switching;

/// Folios moved in a step.
const CHUNK: u64 = 4096;

impl Core {
    /// Moves a chunk of the folios left behind; false when none is left.
    pub(crate) fn switch_step(&mut self) -> bool {
        let mut left = CHUNK;
        for memcg in self.mm.memcgs.ids() {
            for node in self.mm.lruvecs.nodes() {
                let lruvec = self.mm.lruvecs.id(memcg, node);
                if !self.mm.lruvecs[lruvec].is_switching {
                    continue;
                }
                while let Some(pfn) = self.mm.left_behind(lruvec) {
                    if left == 0 {
                        return true;
                    }
                    left -= 1;
                    self.lru_unlink(pfn);
                    self.lru_place(pfn, Arrival::Added);
                }
                self.mm.lruvecs[lruvec].is_switching = false;
                LruList::EVICTABLE.into_iter().for_each(|list| self.mm.assert_counted(lruvec, list));
            }
        }
        false
    }
}

impl State {
    /// Gives every group of one of Linux's policies generations, or two lists. Its folios are still where they were:
    /// [`Core::switch_step`] moves them.
    #[doc(alias = "lru_gen_change_state")]
    pub(crate) fn switch_lru(&mut self, keeps_generations: bool) {
        for memcg in self.memcgs.ids() {
            let group = &mut self.memcgs[memcg];
            let is_switched = match group.policy.lru {
                Lru::Generations => !keeps_generations,
                Lru::TwoLists => keeps_generations,
                _ => false,
            };
            if !is_switched {
                continue;
            }
            // What it was, it will be again if it is switched back, down to the last switch.
            let policy = group.set_aside.unwrap_or_else(|| group.policy.with_generations(keeps_generations));
            group.set_aside = Some(group.policy);
            group.policy = policy;
            for node in self.lruvecs.nodes() {
                let lruvec = self.lruvecs.id(memcg, node);
                self.lruvecs[lruvec].is_switching = true;
            }
        }
        self.remark_indexes();
    }

    /// The words of the indexes hold the effect of an access through a file descriptor, so that a hit reads nothing else. They follow
    /// their groups' policies immediately.
    fn remark_indexes(&mut self) {
        for file in 0..self.memory.files.len() {
            for page in self.memory.files[file].index.present() {
                let word = self.memory.files[file].index.word(page);
                if word.head(page) != page {
                    // Only the first page of a folio notes accesses.
                    continue;
                }
                let pfn = word.pfn();
                let mark = self.mark_of(pfn);
                self.memory.files[file].index.update(page, |word| *word = word.with_mark(mark));
            }
        }
    }

    /// The coldest folio on lists that the group's policy doesn't speak of.
    fn left_behind(&self, lruvec: LruvecId) -> Option<Pfn> {
        let lists = &self.lruvecs[lruvec];
        let item = match self.lru_of(lruvec) {
            Lru::Generations => lists.lists.iter().find_map(|list| list.tail()),
            _ => lists.generations.as_ref().and_then(|generations| generations.coldest()),
        };
        item.map(Pfn)
    }

    /// The LRU on whose lists folios may be left that reclaim has to look for.
    pub(crate) fn lru_left_behind(&self, lruvec: LruvecId) -> Option<Lru> {
        let rules = self.generation_rules(lruvec);
        if !self.lruvecs[lruvec].is_switching || rules.switching == Switching::NewOnly {
            return None;
        }
        Some(if self.lru_of(lruvec) == Lru::Generations { Lru::TwoLists } else { Lru::Generations })
    }

    /// Panics if folios are on lists that their group's policy doesn't use, and no task is about to move them.
    pub(crate) fn check_switching(&self) {
        for memcg in self.memcgs.ids() {
            for node in self.lruvecs.nodes() {
                let lruvec = self.lruvecs.id(memcg, node);
                let left = self.left_behind(lruvec).filter(|_| self.lru_of(lruvec).may_be_switched());
                assert!(
                    self.lruvecs[lruvec].is_switching || left.is_none(),
                    "{left:?} was left behind on the other LRU's lists of {}",
                    self.memcgs.path(memcg)
                );
            }
        }
        for file in &self.memory.files {
            for page in file.index.present() {
                let word = file.index.word(page);
                if word.head(page) != page {
                    continue;
                }
                let mark = self.mark_of(word.pfn());
                assert!(
                    word.with_mark(mark) == word,
                    "page {page} of {} has another policy's mark",
                    file.name
                );
            }
        }
    }
}
