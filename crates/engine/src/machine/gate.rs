//! Frames that a machine lets others look at while the engine decides: readers that take no lock, and so hold no reference that the
//! engine knows.
//!
//! ```text
//!   filled by the machine ─▶ open ─── readers come and go ───▶ close? ─ no: somebody is there ─▶ the page stays
//!            ▲                 ▲                                 │ yes: nobody comes in any more
//!            │                 └── it stays after all: open ◀────┤
//!            └────────────── the frame is somebody else's ◀──────┘ the page leaves it
//! ```
//! The kernel freezes a page's reference count before it takes the page from whoever may have found it. A reference that nobody counted
//! could not be seen there, and a frame that was freed is handed out again at once. So the engine asks ([`FrameGate::close`]) before it
//! takes a page out of the place where it is found: at eviction, migration, truncation, and before a write to swap. It does not ask
//! where the owner of a mapping gives pages up himself (munmap, exit): who looks into a mapping sees to it that it stays.
//!
//! A frame is closed from the start and whenever it is free. Only the machine knows when a page's contents are there, so it opens the frame
//! then: when a read has ended, when zeroing, a copy or a decompression was carried out, when a whole page was overwritten.

use crate::core::Core;
use crate::units::Pfn;

/// Who may look at a frame without asking the engine.
pub trait FrameGate: Send + Sync {
    /// Nobody may come to a frame any more; false, and nothing has changed, where somebody is there or the machine has not opened the frame yet.
    fn close(&mut self, pfn: Pfn) -> bool;

    /// The page stays in the frame that was closed: it may be looked at as before.
    fn open(&mut self, pfn: Pfn);
}

impl Core {
    /// Takes a folio from all who could use it, known or not. False where somebody does: then it stays as it is.
    #[doc(alias = "folio_ref_freeze")]
    #[inline]
    pub(crate) fn folio_freeze(&mut self, pfn: Pfn) -> bool {
        self.mm.memory.folios[pfn].refs == 0 && self.gate_close(pfn)
    }

    /// The same where those are told who have a reference.
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
