//! The plug: swap writes that a pass of reclaim has begun, held back so that neighbours are merged into one request.
//!
//! ```text
//!   pageout ─► plug [ request: slots 7 to 12 ][ slot 80 ] ...   submitted at the end of the pass, or as soon as it is full
//! ```
//! Slots that follow each other are one request. A full plug is submitted although the pass goes on: the device shouldn't be
//! idle any longer. That happens where slots are scattered (`swap/slots.rs`), and in the middle of a batch, while the pages
//! are in reclaim's hands. How the race between the device and the rest of the batch ends is no business of the engine's, which
//! runs a batch as plain code; on a machine whose CPU is slow enough for its disk to win, [`crate::Config::writes_won`] says how
//! often it does. Pages written by then can't be rotated to the end of a list that they aren't on, and a policy that looks at
//! its batch a second time frees them at once.
//!
//! There is one plug. In the kernel each reclaimer has its own: passes that interleave share this one, and fill it together.
//!
//! The specification knows no plug: it was found in the recordings (`docs/results/fidelity.md`). Not here: a limit to the
//! length of a request.

use crate::engine::Engine;
use crate::folio::FolioFlags;
use crate::op::Op;
use crate::table::SwapEntry;
use crate::units::{IoId, Pfn};

/// Writes held back.
#[derive(Default)]
pub(crate) struct Plug {
    writes: Vec<Write>,
    requests: u32,
    /// Plugs that have been full.
    fillings: u64,
}

#[derive(Clone, Copy)]
struct Write {
    io: IoId,
    pfn: Pfn,
    to: SwapEntry,
}

impl Write {
    fn op(self) -> Op {
        Op::WriteSwap { io: self.io, swap: self.to.swap, slot: self.to.slot, pfn: self.pfn }
    }

    /// The slot after this one.
    fn next(self) -> SwapEntry {
        SwapEntry { slot: self.to.slot + 1, ..self.to }
    }
}

impl Engine {
    /// Holds a write back until the pass ends, or no other request fits.
    pub(crate) fn plug(&mut self, io: IoId, pfn: Pfn, to: SwapEntry) {
        if self.plug.writes.last().is_none_or(|last| last.next() != to) {
            if self.plug.requests == self.config.plug_requests {
                self.submit_full_plug();
            }
            self.plug.requests += 1;
        }
        self.plug.writes.push(Write { io, pfn, to });
    }

    /// Submits what has been held back.
    pub(crate) fn unplug(&mut self) {
        self.plug.requests = 0;
        self.ops.extend(self.plug.writes.drain(..).map(Write::op));
    }

    fn submit_full_plug(&mut self) {
        self.plug.requests = 0;
        let won = |fillings: u64| fillings * u64::from(self.config.writes_won) / 100;
        self.plug.fillings += 1;
        if won(self.plug.fillings) == won(self.plug.fillings - 1) {
            return self.unplug();
        }
        for write in std::mem::take(&mut self.plug.writes) {
            // What its owner has given up since would be freed in the middle of its batch.
            let is_listed = self.memory.folios[write.pfn].has(FolioFlags::LRU);
            if is_listed || self.is_slot_referenced(write.pfn) {
                self.ops.push(Op::WriteSwapNow { swap: write.to.swap, slot: write.to.slot, pfn: write.pfn });
                self.io_done(write.io, self.cpu, Ok(()));
            } else {
                self.ops.push(write.op());
            }
        }
    }
}
