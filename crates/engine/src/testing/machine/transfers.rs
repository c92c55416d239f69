//! What frames, swap slots and devices hold, and the transfers between them: whatever the engine decides is carried out here.

use super::{Checks, GARBAGE, Machine};
use crate::testing::model::{Page, file_contents};
use crate::*;

/// Where a transfer's data is outside memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Medium {
    File(FileId, u64),
    Slot(SwapId, u32),
}

#[derive(Clone, Debug)]
pub(super) struct Transfer {
    io: IoId,
    medium: Medium,
    frames: Vec<Pfn>,
    is_write: bool,
    /// Nobody's access depends on it.
    is_readahead: bool,
    /// What the frame held when a write started.
    at_start: u64,
}

/// A device that ends so many of a hundred of a full plug's writes before the batch does, and fails at some of those.
pub(super) fn race(writes_won: u8) -> FullPlug {
    let mut seed = 0_u64;
    let mut draw = move |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    Box::new(move |writes| {
        let ended = writes.iter().take_while(|_| draw(100) < writes_won.into()).count();
        (0..ended).map(|_| if draw(10) == 0 { Err(IoError::Device) } else { Ok(()) }).collect()
    })
}

impl Transfer {
    /// Both are of the same slot, or of the same block while one of them writes it.
    fn overlaps(&self, other: &Transfer) -> bool {
        match (self.medium, other.medium) {
            (Medium::File(file, page), Medium::File(of, at)) if self.is_write || other.is_write => {
                let ends = [page + self.frames.len() as u64, at + other.frames.len() as u64];
                file == of && page < ends[1] && at < ends[0]
            }
            (Medium::Slot(..), Medium::Slot(..)) => self.medium == other.medium,
            _ => false,
        }
    }
}

impl Machine {
    pub(super) fn frame(&self, pfn: Pfn) -> u64 {
        self.frames.get(&pfn).copied().unwrap_or(GARBAGE)
    }

    fn slot(&self, swap: SwapId, slot: u32) -> u64 {
        self.slots.get(&(swap, slot)).copied().unwrap_or(GARBAGE)
    }

    pub(super) fn block(&self, file: FileId, page: u64) -> u64 {
        self.blocks.get(&(file, page)).copied().unwrap_or_else(|| file_contents(file, page))
    }

    pub(super) fn carry_out_one(&mut self, op: Op) {
        match op {
            Op::Zero { pfn, pages } => (0..pages).for_each(|at| {
                self.frames.insert(Pfn(pfn.0 + at), 0);
            }),
            Op::ReadFile { io, file, page, pages, readahead } => {
                let frames: Vec<Pfn> = self.engine.frames_of(io).collect();
                assert_eq!(frames.len(), pages as usize, "a frame for each page");
                self.begin(Transfer {
                    io,
                    medium: Medium::File(file, page),
                    frames,
                    is_write: false,
                    is_readahead: readahead,
                    at_start: 0,
                });
            }
            Op::WriteFile { io, file, page, pfn } => {
                let (medium, frames, at_start) = (Medium::File(file, page), vec![pfn], self.frame(pfn));
                let (is_write, is_readahead) = (true, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start });
            }
            Op::ReadSwap { io, swap, slot, pfn } => {
                let (medium, frames) = (Medium::Slot(swap, slot), vec![pfn]);
                let (is_write, is_readahead) = (false, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start: 0 });
            }
            Op::WriteSwap { io, swap, slot, pfn } => {
                let (medium, frames, at_start) = (Medium::Slot(swap, slot), vec![pfn], self.frame(pfn));
                let (is_write, is_readahead) = (true, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start });
            }
            Op::ReadSwapNow { swap, slot, pfn } => {
                let data = self.slot(swap, slot);
                self.frames.insert(pfn, data);
            }
            Op::WriteSwapNow { swap, slot, pfn } => {
                let data = self.frame(pfn);
                self.slots.insert((swap, slot), data);
            }
            Op::ZswapStore { swap, slot, pfn } => {
                let data = self.frame(pfn);
                self.compressed.insert((swap, slot), data);
            }
            Op::ZswapLoad { swap, slot, pfn } => {
                let data = self.compressed.get(&(swap, slot)).copied().unwrap_or(GARBAGE);
                self.frames.insert(pfn, data);
            }
            Op::ZswapFree { swap, slot } => {
                let was = self.compressed.remove(&(swap, slot));
                assert!(was.is_some() || self.checks == Checks::Contents, "slot {slot} has no entry");
            }
            Op::Copy { from, to, pages } => (0..pages).for_each(|at| {
                let from = Pfn(from.0 + at);
                let busy = self.transfers.iter().any(|transfer| transfer.frames.contains(&from));
                assert!(!busy || self.checks == Checks::Contents, "{from:?} is moved under a transfer");
                let value = self.frame(from);
                self.frames.insert(Pfn(to.0 + at), value);
            }),
            Op::FreeFrame { pfn, pages } => (0..pages).for_each(|at| {
                let pfn = Pfn(pfn.0 + at);
                let busy = self.transfers.iter().any(|transfer| transfer.frames.contains(&pfn));
                assert!(!busy || self.checks == Checks::Contents, "{pfn:?} is freed under a transfer");
                self.frames.remove(&pfn);
            }),
            Op::FreeSlot { swap, slot } => {
                let busy = self.transfers.iter().any(|transfer| transfer.medium == Medium::Slot(swap, slot));
                assert!(!busy || self.checks == Checks::Contents, "slot {slot} is freed under a transfer");
                self.slots.remove(&(swap, slot));
            }
        }
    }

    fn begin(&mut self, transfer: Transfer) {
        // Two transfers of the same frame, slot or block might end in either order.
        let races = |other: &Transfer| {
            other.frames.iter().any(|pfn| transfer.frames.contains(pfn)) || other.overlaps(&transfer)
        };
        let raced = self.transfers.iter().any(races);
        assert!(!raced || self.checks == Checks::Contents, "{transfer:?} races with another");
        self.transfers.push(transfer);
    }

    /// A transfer ends: moves its data, or leaves garbage if it fails, and tells the engine.
    pub(super) fn complete(&mut self, at: usize, fails: bool, early: bool) {
        let transfer = self.transfers.swap_remove(at);
        for (at, &pfn) in (0..).zip(&transfer.frames) {
            match transfer.medium {
                Medium::Slot(swap, slot) if transfer.is_write => {
                    let data = if early { transfer.at_start } else { self.frame(pfn) };
                    self.slots.insert((swap, slot), if fails { GARBAGE } else { data });
                }
                Medium::Slot(swap, slot) => {
                    let data = self.slot(swap, slot);
                    self.frames.insert(pfn, if fails { GARBAGE } else { data });
                }
                Medium::File(file, page) if transfer.is_write => {
                    let data = if early { transfer.at_start } else { self.frame(pfn) };
                    self.blocks.insert((file, page), if fails { GARBAGE } else { data });
                    self.has_untold_error |= fails;
                    self.model.reached_device(Page::Regular(file, page), (!fails).then_some(data), GARBAGE);
                }
                Medium::File(file, page) => {
                    let data = self.block(file, page + at);
                    self.frames.insert(pfn, if fails { GARBAGE } else { data });
                }
            }
        }
        let result = if fails { Err(IoError::Device) } else { Ok(()) };
        self.engine.io_done(transfer.io, CpuId(0), result);
        self.wake(fails && !transfer.is_write && !transfer.is_readahead);
        self.carry_out();
    }
}
