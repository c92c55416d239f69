//! The block plug: swap writes that a pass of reclaim has begun are held back, so that neighbours are merged into one request.
//!
//! ```text
//!   pageout ─► plug [ request: slots 7 to 12 ][ slot 80 ] ...   submitted at the end of the pass, or as soon as it is full
//! ```
//! Slots that follow each other are one request. A full plug is submitted although the pass goes on: the device shouldn't be
//! idle any longer. Plugs become full where slots are scattered (`swap/slots.rs`). This happens in the middle of a batch, while
//! reclaim holds the pages.
//!
//! Then the device races with the rest of the batch. Usually the CPU wins. The machine decides who wins: the engine asks it at the
//! moment of submission ([`crate::FullPlug`]), as the engine runs a batch as plain code. Pages whose write ends within the batch are on
//! no list, so nothing rotates them to its end. A policy that scans its batch a second time frees them immediately. Those whose write
//! fails are dirty again.
//!
//! Neighbours are one request to the device's queue, too, which may be congested by others.
//!
//! Each reclaimer has a plug of its own, in its scan control. No source says so: the recordings showed it
//! (`ground-truth/README.md`). Not modelled: a limit to the length of a request.

use crate::core::Core;
use crate::machine::op::Op;
use crate::memory::folio::FolioFlags;
use crate::memory::table::SwapEntry;
use crate::units::{IoId, Pfn};

/// Writes held back.
#[derive(Default, Debug)]
pub(crate) struct Plug {
    writes: Vec<Write>,
    requests: u32,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    io: IoId,
    pfn: Pfn,
    to: SwapEntry,
    pages: u32,
}

impl Write {
    fn op(self) -> Op {
        let Write { io, pfn, to: SwapEntry { swap, slot }, pages } = self;
        Op::WriteSwap { io, swap, slot, pfn, pages }
    }

    /// The slot after the last one.
    fn next(self) -> SwapEntry {
        SwapEntry { slot: self.to.slot + self.pages, ..self.to }
    }
}

impl Core {
    /// Holds a write back until the pass ends, or no other request fits.
    #[doc(alias = "blk_start_plug")]
    pub(crate) fn plug(&mut self, plug: &mut Plug, io: IoId, pfn: Pfn, to: SwapEntry) {
        if plug.writes.last().is_none_or(|last| last.next() != to) {
            if plug.requests == self.mm.config.plug_requests {
                self.submit_full(plug);
            }
            plug.requests += 1;
        }
        debug_assert!(
            plug.writes.iter().rev().take(1).all(|last| last.to != to),
            "slot {} is written twice in a row",
            to.slot
        );
        let pages = self.mm.memory.folios[pfn].pages() as u32;
        plug.writes.push(Write { io, pfn, to, pages });
    }

    /// Submits what has been held back.
    #[doc(alias = "blk_finish_plug")]
    pub(crate) fn unplug(&mut self, plug: &mut Plug) {
        assert_eq!(plug.requests == 0, plug.writes.is_empty(), "a plug of {} requests", plug.requests);
        plug.requests = 0;
        let mut next = None;
        for write in plug.writes.drain(..) {
            self.submit(write, &mut next);
        }
    }

    fn submit_full(&mut self, plug: &mut Plug) {
        let Some(mut full_plug) = self.full_plug.take() else { return self.unplug(plug) };
        plug.requests = 0;
        // A page that its owner has given up since would be freed in the middle of its batch.
        let may_end = |write: &Write| {
            self.mm.memory.folios[write.pfn].has(FolioFlags::LRU)
                || self.mm.memory.is_slot_referenced(write.pfn)
        };
        let (racing, late): (Vec<Write>, Vec<Write>) = plug.writes.drain(..).partition(may_end);
        let submitted: Vec<Op> = racing.iter().map(|write| write.op()).collect();
        let mut ended = full_plug(&submitted).into_iter();
        self.full_plug = Some(full_plug);
        let mut next = None;
        for write in racing {
            match ended.next() {
                None => self.submit(write, &mut next),
                Some(result) => {
                    if result.is_ok() {
                        let SwapEntry { swap, slot } = write.to;
                        for at in 0..write.pages {
                            self.out.push(Op::WriteSwapNow {
                                swap,
                                slot: slot + at,
                                pfn: Pfn(write.pfn.0 + at),
                            });
                        }
                    }
                    self.transfer_done(write.io, result);
                }
            }
        }
        late.into_iter().for_each(|write| self.submit(write, &mut next));
    }

    /// Submits a write, as part of the request before it if that ends at `next`, where this begins.
    fn submit(&mut self, write: Write, next: &mut Option<SwapEntry>) {
        if next.replace(write.next()) != Some(write.to) {
            self.io.submit_request(write.io);
        }
        self.out.push(write.op());
    }
}
