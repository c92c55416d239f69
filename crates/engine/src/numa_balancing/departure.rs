//! Departures: pages that were demoted are watched, for the governor (`promotion_governor_ms`) to learn how soon they are used again.
//! No kernel has it. [tiering 9.3]
//!
//! The measurement adds nothing to what it measures. No entry is marked for the governor's sake: its fault would cost what a promotion may
//! not, and a page that has just left would come back by it. A demoted page carries a flag until it is used. The scanner marks it when it
//! comes by, as any other page of slow memory, and its use is a hint fault that there would be without a governor, too. A page that nothing
//! maps is seen by its next read. The window of the mark is kept with it, as the kernel's own clock of a page goes round in seconds.
//!
//! Neighbours in a file are read together, and would all give the same result. So only one of 64 unmapped pages is
//! sampled.

use super::gain::Whose;
use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::state::State;
use crate::units::{NodeId, Pfn};

/// A large request reads this many pages of a file. The first one is sampled.
const NEIGHBOURS: u64 = 64;

impl Core {
    /// The number of the current window.
    fn governor_window(&self) -> u64 {
        self.by.now.0 / 1_000_000 / u64::from(self.mm.config.promotion_governor_ms)
    }

    /// A folio has been demoted from a node, and is still isolated.
    pub(crate) fn note_departure(&mut self, pfn: Pfn, from: NodeId) {
        if !self.mm.is_governed()
            || !self.mm.config.is_memory_tiering()
            || !self.mm.tiers.node_is_top_tier(from)
        {
            return;
        }
        self.mm.memory.folios[pfn].set(FolioFlags::DEPARTED);
        if self.mm.is_asked(pfn) {
            self.note_mark(pfn, from);
        }
    }

    /// A page has been marked whose use would bring it to a node.
    pub(super) fn note_mark(&mut self, pfn: Pfn, to: NodeId) {
        let whose = self.mm.whose(pfn);
        let (window, pages) = (self.governor_window(), self.mm.memory.folios[pfn].pages());
        self.mm.numa_balancing.mark_windows.populate(pfn);
        self.mm.numa_balancing.mark_windows[pfn] = window as u16;
        self.mm.numa_balancing.gains[to.index()].marked(whose, window, pages);
    }

    /// A page that was marked is used on a node.
    pub(super) fn note_use(&mut self, pfn: Pfn, to: NodeId) {
        let window = self.governor_window();
        let windows_ago = (window as u16).wrapping_sub(self.mm.numa_balancing.mark_windows.get(pfn));
        let whose = self.mm.whose(pfn);
        let folio = &mut self.mm.memory.folios[pfn];
        folio.clear(FolioFlags::DEPARTED);
        self.mm.numa_balancing.gains[to.index()].used(whose, window, windows_ago, folio.pages());
    }

    /// A page of slow memory is read through a file descriptor. Each read is the mark of the next one.
    pub(crate) fn note_read(&mut self, pfn: Pfn) {
        let to = self.current_node();
        if self.mm.tiers.node_is_top_tier(to) && self.mm.is_asked(pfn) {
            self.note_use(pfn, to);
            self.note_mark(pfn, to);
        }
    }
}

impl State {
    /// Returns true if promotion has a governor.
    #[inline]
    pub(crate) fn is_governed(&self) -> bool {
        self.config.promotion_governor_ms > 0
    }

    /// The kind of a page of slow memory: `Left` if it has left fast memory and was not seen to be used since.
    fn whose(&self, pfn: Pfn) -> Whose {
        if self.memory.folios[pfn].has(FolioFlags::DEPARTED) { Whose::Left } else { Whose::Stays }
    }

    /// Returns true if an unmapped page is sampled for how soon it is used. If reads are not watched, its missing use has no
    /// meaning.
    fn is_asked(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let is_read = folio.mapped == 0 && folio.has(FolioFlags::INDEXED);
        is_read && self.watches_reads() && is_asked_when_read(folio.index.into())
    }

    /// Returns true if pages that come to a node are used sooner than those that leave it.
    pub(super) fn exchange_gains(&mut self, to: NodeId) -> bool {
        let is_governed = self.numa_balancing.governors[to.index()].governs();
        self.numa_balancing.gains[to.index()].judge(is_governed)
    }
}

/// Returns true if a page of a file says how soon it is used, where nothing maps it.
#[inline]
pub(crate) fn is_asked_when_read(page: u64) -> bool {
    page.is_multiple_of(NEIGHBOURS)
}
