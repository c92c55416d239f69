//! The lists of a removed group become those of its parent, with the folios on them (since Linux 7.1).
//!
//! ```text
//!                head                            tail          the parent's list: who is next is at the tail
//!   two lists    parent's ─────────────► group's               likewise for each of the four
//!
//!   generations  youngest  [parent's ► group's]                the parent first opens generations, without a walk, until its
//!                   ⋮      [parent's ► group's]                window is full; then slot by slot
//!                oldest    [parent's ► group's]
//! ```
//! So a removed group has no pages left that only its own reclaim finds, and the kernel frees it as soon as its last swap slot is free.
//! The cost is order. The pages that the group used last are now behind those that the parent used last. And a generation of the group
//! joins the one that has the same slot, which may be older or younger: nothing records which of the two windows moved faster. [mglru-2026
//! 2.14]
//!
//! *If no source specifies more:* folios on no list (in a batch, isolated by a reclaimer, locked into memory) are the parent's, too, as
//! the charge is. If the parent has other lists, each folio goes to the list for its state. Swap slots stay the group's.

use super::Arrival;
use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::FolioFlags;
use crate::state::State;
use crate::units::{FileId, MemcgId, Pfn};
use pageout_rules::lru::Lru;

impl Core {
    /// Makes all folios of a removed group its parent's, on lists or not. Returns how many pages are charged to that one instead.
    pub(crate) fn lru_reparent(&mut self, memcg: MemcgId, parent: MemcgId) -> u64 {
        let mut placed_anew = Vec::new();
        for node in self.mm.lruvecs.nodes() {
            let (from, to) = (self.mm.lruvecs.id(memcg, node), self.mm.lruvecs.id(parent, node));
            if !self.mm.have_lists_alike(from, to) {
                self.empty_lists(from, &mut placed_anew);
                debug_assert!(self.mm.lruvecs[from].by_zone.iter().flatten().all(|&pages| pages == 0));
            } else {
                self.mm.move_zones(from, to);
                match self.mm.lru_of(from) {
                    Lru::Generations => self.generations_splice(from, to),
                    _ => self.two_lists_splice(from, to),
                }
            }
            let unevictable = self.mm.lruvecs[from].size(LruList::Unevictable);
            self.move_size(from, to, LruList::Unevictable, unevictable);
        }
        assert_ne!(memcg, parent, "a group's folios become its own");
        let pages = self.mm.reown_folios(memcg, parent);
        self.mm.deferred_splits.reparent(memcg, parent);
        let left: u64 = self
            .mm
            .lruvecs
            .nodes()
            .map(|node| self.mm.lruvecs[self.mm.lruvecs.id(memcg, node)].evictable())
            .sum();
        assert_eq!(left, 0, "pages are left on the lists of a group whose folios are its parent's");
        for pfn in placed_anew {
            self.lru_place(pfn, Arrival::Added);
        }
        pages
    }

    fn two_lists_splice(&mut self, from: LruvecId, to: LruvecId) {
        for list in LruList::EVICTABLE {
            let group = std::mem::take(&mut self.mm.lruvecs[from].lists[list as usize]);
            self.mm.lruvecs[to].lists[list as usize].append(&mut self.mm.memory.folios, group);
            let pages = self.mm.lruvecs[from].size(list);
            self.move_size(from, to, list, pages);
            self.mm.assert_counted(from, list);
            self.mm.assert_counted(to, list);
        }
    }

    /// Pages of a list that one lruvec counted are counted by the other.
    pub(super) fn move_size(&mut self, from: LruvecId, to: LruvecId, list: LruList, pages: u64) {
        let before = [from, to].map(|of| self.mm.lruvecs[of].size(list));
        self.update_size(from, list, -(pages as i64));
        self.update_size(to, list, pages as i64);
        let after = [from, to].map(|of| self.mm.lruvecs[of].size(list));
        debug_assert_eq!(
            [after[0] + pages, after[1]],
            [before[0], before[1] + pages],
            "pages of {list:?} move from a group to its parent"
        );
    }

    /// Takes all folios off the lists, the coldest of each first.
    fn empty_lists(&mut self, lruvec: LruvecId, folios: &mut Vec<Pfn>) {
        if self.mm.lruvecs[lruvec].guest.is_some() {
            return self.guest_leave_all(lruvec, folios);
        }
        let tail_of = |core: &Core| {
            let lists = &core.mm.lruvecs[lruvec];
            let generations = lists.generations.iter().flat_map(|generations| &generations.lists);
            lists.lists.iter().chain(generations).find_map(|list| list.tail()).map(Pfn)
        };
        while let Some(pfn) = tail_of(self) {
            self.lru_unlink(pfn);
            folios.push(pfn);
        }
    }
}

impl State {
    /// Returns whether the folios of one lruvec's lists may be put on the other's lists unchanged.
    fn have_lists_alike(&self, from: LruvecId, to: LruvecId) -> bool {
        let is_switching = self.lruvecs[from].is_switching || self.lruvecs[to].is_switching;
        let is_same = self.lru_of(from) == self.lru_of(to);
        !is_switching
            && is_same
            && match self.lru_of(from) {
                Lru::TwoLists => true,
                Lru::Generations => self.have_windows_alike(from, to),
                Lru::Guest(_) => false,
            }
    }

    /// Pages that one lruvec counted by zone, over all its lists, are counted by the other.
    fn move_zones(&mut self, from: LruvecId, to: LruvecId) {
        let moved = self.lruvecs[from].by_zone.iter_mut().map(std::mem::take).collect::<Vec<_>>();
        for (zone, moved) in self.lruvecs[to].by_zone.iter_mut().zip(moved) {
            zone.iter_mut().zip(moved).for_each(|(pages, moved)| *pages += moved);
        }
    }

    /// Writes the parent's name into the record of each folio, and its mark where a hit looks for it. Returns their pages.
    fn reown_folios(&mut self, memcg: MemcgId, parent: MemcgId) -> u64 {
        let (folios, pages) = self.charged_folios(memcg);
        for pfn in folios {
            assert_eq!(self.memory.folios[pfn].memcg, memcg, "{pfn:?} is another group's");
            self.guest_forget(pfn);
            self.memory.folios[pfn].memcg = parent;
            let folio = self.memory.folios[pfn];
            if folio.has(FolioFlags::INDEXED) {
                let mark = self.mark_of(pfn);
                let index = &mut self.memory.file_mut(FileId(folio.owner)).index;
                index.update(u64::from(folio.index), |word| *word = word.with_mark(mark));
            }
        }
        pages
    }

    /// The folios that a group is charged for, and their pages. Some are on no list: their records alone tell.
    fn charged_folios(&self, memcg: MemcgId) -> (Vec<Pfn>, u64) {
        let (charged, mut folios, mut pages) = (self.memcgs[memcg].usage, Vec::new(), 0);
        for pfn in self.memory.nodes().flat_map(|node| self.memory.zones.used_so_far(node)) {
            if pages == charged {
                break;
            }
            let folio = &self.memory.folios[pfn];
            if folio.memcg == memcg && folio.has(FolioFlags::CHARGED) && self.memory.is_head_in_use(pfn) {
                folios.push(pfn);
                pages += folio.pages();
            }
        }
        (folios, pages)
    }
}
