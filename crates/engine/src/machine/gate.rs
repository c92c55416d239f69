//! Frames that a machine lets others look at while the engine decides: readers that take no lock, and so hold no reference that the
//! engine knows.
//!
//! ```text
//!   filled by the machine ─▶ open ─── readers come and go ───▶ close? ─ no: somebody is there ─▶ the page stays
//!            ▲                 ▲                                 │ yes: nobody comes in any more
//!            │                 └── it stays after all: open ◀────┤
//!            └────────────── the frame is somebody else's ◀──────┘ the page leaves it
//! ```
//! The kernel freezes a page's reference count before it takes the page from other users. A reference that was not counted would be invisible there,
//! and a freed frame is immediately reused. So the engine asks ([`FrameGate::close`]) before it takes a page out of the place where it is found: at
//! eviction, migration, truncation, and before a write to swap. It does not ask when the owner of a mapping gives pages up itself (munmap, exit): a
//! reader of a mapping must ensure that it stays.
//!
//! A frame is closed from the start and whenever it is free. Only the machine knows when a page's contents are in memory, so it opens the frame then.
//! That is when a read has ended, when zeroing, a copy or a decompression was carried out, or when a complete page was overwritten.

use crate::core::Core;
use crate::units::Pfn;

/// Permission to use a frame without asking the engine.
pub trait FrameGate: Send + Sync {
    /// Closes a frame for new users; false, with nothing changed, if it has a user or the machine has not opened the frame yet.
    fn close(&mut self, pfn: Pfn) -> bool;

    /// The page stays in the frame that was closed: it is readable as before.
    fn open(&mut self, pfn: Pfn);
}

impl Core {
    /// Takes a folio from all its users, known or not. False if one uses it: then it stays unchanged.
    #[doc(alias = "folio_ref_freeze")]
    #[inline]
    pub(crate) fn folio_freeze(&mut self, pfn: Pfn) -> bool {
        self.mm.memory.folios[pfn].refs == 0 && self.gate_close(pfn)
    }

    /// The same without the check of references, for callers that have made it.
    #[inline]
    pub(crate) fn gate_close(&mut self, pfn: Pfn) -> bool {
        self.gate.is_none() || self.close_all(pfn)
    }

    /// A folio that was frozen stays.
    #[doc(alias = "folio_ref_unfreeze")]
    #[inline]
    pub(crate) fn folio_unfreeze(&mut self, pfn: Pfn) {
        if self.gate.is_some() {
            self.open_all(pfn, self.mm.memory.folios[pfn].pages() as u32);
        }
    }

    /// Closes one frame of a large folio, of which no other page is taken from its users.
    #[cold]
    pub(crate) fn gate_close_page(&mut self, frame: Pfn) -> bool {
        self.gate.as_mut().is_none_or(|gate| gate.close(frame))
    }

    #[cold]
    fn close_all(&mut self, pfn: Pfn) -> bool {
        let pages = self.mm.memory.folios[pfn].pages() as u32;
        let gate = self.gate.as_mut().expect("there is one to be closed");
        let closed = (0..pages).take_while(|at| gate.close(Pfn(pfn.0 + at))).count() as u32;
        if closed < pages {
            self.open_all(pfn, closed);
        }
        closed == pages
    }

    /// Opens so many frames from the first of a folio on, whatever has become of that.
    #[cold]
    pub(crate) fn open_all(&mut self, pfn: Pfn, pages: u32) {
        if let Some(gate) = &mut self.gate {
            (0..pages).for_each(|at| gate.open(Pfn(pfn.0 + at)));
        }
    }
}
