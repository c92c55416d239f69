//! The view of one lruvec: all of the machine that a family of lists sees.
//!
//! ```text
//!   sees       its lruvec (lists, sizes, what walks remember), its group's rules, folios' records and use bits, counters as of the last flush
//!   does       moves folios between its lists, sets use bits, counts, tells
//!   can't      see another lruvec, a task, a device; reclaim, map, migrate or write a page
//! ```
//! The machine behind a view is private to this file. So a family that is written over views can't call reclaim, and reclaim can't be
//! called back: the compiler ensures it. A view is made for one question and lives until the answer; it costs no more than the reference
//! to the machine inside it.

use crate::core::Core;
use crate::lru::lruvec::{LruList, Lruvec, LruvecId};
use crate::memory::folio::{Folio, UseBits};
use crate::policy::GroupRules;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::Pfn;

/// One lruvec, as its family sees it, to read.
#[derive(Clone, Copy)]
pub(crate) struct LruvecView<'a> {
    mm: &'a State,
    lruvec: LruvecId,
}

/// One lruvec, as its family sees it, to change.
pub(crate) struct LruvecViewMut<'a> {
    core: &'a mut Core,
    lruvec: LruvecId,
}

impl State {
    /// What a family sees of an lruvec.
    #[inline(always)]
    pub(crate) fn view(&self, lruvec: LruvecId) -> LruvecView<'_> {
        LruvecView { mm: self, lruvec }
    }
}

impl Core {
    /// What a family sees of an lruvec, and may change.
    #[inline(always)]
    pub(crate) fn view_mut(&mut self, lruvec: LruvecId) -> LruvecViewMut<'_> {
        LruvecViewMut { core: self, lruvec }
    }
}

impl<'a> LruvecView<'a> {
    /// The lruvec itself.
    #[inline(always)]
    pub(crate) fn lruvec(self) -> &'a Lruvec {
        &self.mm.lruvecs[self.lruvec]
    }

    /// The rules of its group.
    #[inline(always)]
    pub(crate) fn rules(self) -> &'a GroupRules {
        &self.mm.memcgs[self.lruvec().memcg].policy
    }

    /// A counter, as of the last flush of statistics.
    #[inline]
    pub(crate) fn stale(self, stat: Stat) -> u64 {
        self.mm.stale(self.lruvec, stat)
    }
}

impl LruvecViewMut<'_> {
    /// The same, to read.
    #[inline(always)]
    pub(crate) fn read(&self) -> LruvecView<'_> {
        self.core.mm.view(self.lruvec)
    }

    #[inline(always)]
    pub(crate) fn folio(&self, pfn: Pfn) -> Folio {
        self.core.mm.memory.folios[pfn]
    }

    #[inline(always)]
    pub(crate) fn use_bits_of(&self, folio: &Folio) -> UseBits {
        self.core.mm.memory.use_bits_of(folio)
    }

    /// Changes what is known of a folio's use; returns what it was before.
    #[inline(always)]
    pub(crate) fn change_use_bits(&mut self, pfn: Pfn, change: impl FnOnce(UseBits) -> UseBits) -> UseBits {
        self.core.mm.memory.change_use_bits(pfn, change)
    }

    /// Puts a folio of `pages` pages at the hot end of a list, which counts them.
    #[inline(always)]
    pub(crate) fn push_head(&mut self, list: LruList, pfn: Pfn, pages: u64) {
        let State { lruvecs, memory, .. } = &mut self.core.mm;
        lruvecs[self.lruvec].lists[list as usize].push_head(&mut memory.folios, pfn.0);
        self.note_pushed(list, pfn, pages);
    }

    /// Puts a folio at the cold end of a list, likewise.
    #[inline(always)]
    pub(crate) fn push_tail(&mut self, list: LruList, pfn: Pfn, pages: u64) {
        let State { lruvecs, memory, .. } = &mut self.core.mm;
        lruvecs[self.lruvec].lists[list as usize].push_tail(&mut memory.folios, pfn.0);
        self.note_pushed(list, pfn, pages);
    }

    #[inline(always)]
    fn note_pushed(&mut self, list: LruList, pfn: Pfn, pages: u64) {
        self.core.out.count.list_moves(1);
        self.resize(list, pfn, pages as i64);
    }

    /// Takes a folio off a list, which no longer counts it.
    #[inline(always)]
    pub(crate) fn remove(&mut self, list: LruList, pfn: Pfn, pages: u64) {
        let State { lruvecs, memory, .. } = &mut self.core.mm;
        lruvecs[self.lruvec].lists[list as usize].remove(&mut memory.folios, pfn.0);
        self.resize(list, pfn, -(pages as i64));
    }

    #[inline(always)]
    fn resize(&mut self, list: LruList, pfn: Pfn, pages: i64) {
        self.core.update_size(self.lruvec, list, pages);
        self.core.mm.count_in_zone(self.lruvec, list, pfn, pages);
        self.core.mm.assert_counted(self.lruvec, list);
    }

    /// Returns true if a folio waits in the CPU's batch of new ones, and so is on no list yet.
    pub(crate) fn is_in_add_batch(&self, pfn: Pfn) -> bool {
        self.core.is_in_add_batch(pfn)
    }

    /// Tells that a page is accessed a second time, if it is followed.
    #[inline]
    pub(crate) fn tell_second_access(&mut self, pfn: Pfn) {
        self.core.tell(pfn, |core| PageEvent::SecondAccess { in_add_batch: core.is_in_add_batch(pfn) });
    }

    /// Asks for a folio to become active, by way of the CPU's batch.
    pub(crate) fn activate(&mut self, pfn: Pfn) {
        self.core.lru_activate(pfn);
    }

    /// Counts pages of the group.
    #[inline]
    pub(crate) fn count(&mut self, stat: Stat, pages: u64) {
        self.core.count(self.lruvec, stat, pages as i64);
    }

    /// Reports an event of a page, if the page is followed.
    #[inline]
    pub(crate) fn tell(&mut self, pfn: Pfn, event: impl FnOnce() -> PageEvent) {
        self.core.tell(pfn, |_| event());
    }
}
