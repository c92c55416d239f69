//! Contents of frames, swap slots and devices, and the copies and transfers between them: whatever the engine decides is carried out
//! here.

use super::{ByteMachine, Checks, GARBAGE, WAITING_MAX};
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
    /// No task's access depends on it.
    is_readahead: bool,
    /// What the frames held when a write started.
    at_start: Vec<u64>,
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
            (Medium::Slot(swap, slot), Medium::Slot(of, at)) => {
                let ends = [slot + self.frames.len() as u32, at + other.frames.len() as u32];
                swap == of && slot < ends[1] && at < ends[0]
            }
            _ => false,
        }
    }
}

impl Transfer {
    fn slots(&self) -> Option<(SwapId, std::ops::Range<u32>)> {
        match self.medium {
            Medium::File(..) => None,
            Medium::Slot(swap, slot) => Some((swap, slot..slot + self.frames.len() as u32)),
        }
    }
}

impl ByteMachine {
    pub(super) fn frame(&self, pfn: Pfn) -> u64 {
        self.frames.get(&pfn).copied().unwrap_or(GARBAGE)
    }

    fn contents_of(&self, frames: &[Pfn]) -> Vec<u64> {
        frames.iter().map(|&pfn| self.frame(pfn)).collect()
    }

    fn slot(&self, swap: SwapId, slot: u32) -> u64 {
        self.slots.get(&(swap, slot)).copied().unwrap_or(GARBAGE)
    }

    pub(super) fn block(&self, file: FileId, page: u64) -> u64 {
        self.blocks.get(&(file, page)).copied().unwrap_or_else(|| file_contents(file, page))
    }

    /// Puts an operation into the queue. For any request of the engine: no unfinished transfer may use the same frame, or the
    /// same slot, as the two might end in either order.
    pub(super) fn submit(&mut self, op: Op) {
        self.queue.push(op, |io| self.engine.frames_of(io).collect());
        if self.checks == Checks::Contents {
            return;
        }
        let mut waiting: Vec<(&Op, &[Pfn])> = self.queue.iter().collect();
        let (_, frames) = waiting.pop().expect("it was just put there");
        // Pages compressed for a slot have nothing to do with its device.
        let in_memory = matches!(
            op,
            Op::ZswapStore { .. } | Op::ZswapLoad { .. } | Op::ZswapMove { .. } | Op::ZswapFree { .. }
        );
        let slots = op.slots().filter(|_| !in_memory);
        let races = |other: Option<(SwapId, std::ops::Range<u32>)>, of: &[Pfn]| {
            let meet = slots.as_ref().zip(other).is_some_and(|((swap, ours), (of, theirs))| {
                *swap == of && ours.start < theirs.end && theirs.start < ours.end
            });
            meet || of.iter().any(|pfn| frames.contains(pfn))
        };
        let begun = self.transfers.iter().any(|transfer| races(transfer.slots(), &transfer.frames));
        let queued = waiting
            .iter()
            .filter(|(other, _)| other.is_transfer())
            .any(|(other, of)| races(other.slots(), of));
        assert!(!begun && !queued, "{op:?} races with a transfer that is not over");
    }

    /// Carries out one that may be.
    pub(super) fn carry_out_at(&mut self, at: u64) {
        let (op, frames) = self.queue.take(at);
        self.carry_out(op, frames);
        self.finish_copies();
    }

    /// Carries out what was asked for last, of all that may be.
    pub(super) fn carry_out_youngest(&mut self) {
        let youngest = self.queue.ready().next_back();
        self.carry_out_at(youngest.expect("the first is always ready"));
    }

    /// Carries operations out until no more wait than may.
    pub(super) fn keep_up(&mut self) {
        while self.queue.len() > WAITING_MAX {
            self.carry_out_youngest();
        }
    }

    fn carry_out(&mut self, op: Op, frames: Vec<Pfn>) {
        match op {
            Op::Zero { .. } | Op::Clear { .. } => frames.into_iter().for_each(|pfn| {
                self.frames.insert(pfn, 0);
            }),
            Op::ReadFile { io, file, page, pages, readahead } => {
                assert_eq!(frames.len(), pages as usize, "a frame for each page");
                self.begin(Transfer {
                    io,
                    medium: Medium::File(file, page),
                    frames,
                    is_write: false,
                    is_readahead: readahead,
                    at_start: Vec::new(),
                });
            }
            Op::WriteFile { io, file, page, .. } => {
                let (medium, at_start) = (Medium::File(file, page), self.contents_of(&frames));
                let (is_write, is_readahead) = (true, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start });
            }
            Op::ReadSwap { io, swap, slot, .. } => {
                let medium = Medium::Slot(swap, slot);
                let (is_write, is_readahead) = (false, false);
                self.begin(Transfer { io, medium, frames, is_write, is_readahead, at_start: Vec::new() });
            }
            Op::WriteSwap { io, swap, slot, .. } => {
                let (medium, at_start) = (Medium::Slot(swap, slot), self.contents_of(&frames));
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
            Op::ZswapStore { swap, slot, pfn, .. } => {
                let data = self.frame(pfn);
                self.compressed.insert((swap, slot), data);
            }
            Op::ZswapMove { .. } => {}
            Op::ZswapLoad { swap, slot, pfn, .. } => {
                let data = self.compressed.get(&(swap, slot)).copied().unwrap_or(GARBAGE);
                self.frames.insert(pfn, data);
            }
            Op::ZswapFree { swap, slot } => {
                let was = self.compressed.remove(&(swap, slot));
                assert!(was.is_some() || self.checks == Checks::Contents, "slot {slot} has no entry");
            }
            Op::Copy { from, to, pages } => (0..pages).for_each(|at| {
                let value = self.frame(Pfn(from.0 + at));
                self.frames.insert(Pfn(to.0 + at), value);
            }),
            Op::FreeFrame { .. } => frames.iter().for_each(|pfn| {
                self.frames.remove(pfn);
            }),
            Op::PunchHole { file, page, pages } => (page..page + pages).for_each(|page| {
                self.blocks.insert((file, page), 0);
            }),
            Op::FreeSlot { swap, slot } => {
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
                    let data = if early { transfer.at_start[at as usize] } else { self.frame(pfn) };
                    self.slots.insert((swap, slot + at as u32), if fails { GARBAGE } else { data });
                }
                Medium::Slot(swap, slot) => {
                    let data = self.slot(swap, slot + at as u32);
                    self.frames.insert(pfn, if fails { GARBAGE } else { data });
                }
                Medium::File(file, page) if transfer.is_write => {
                    let data = if early { transfer.at_start[at as usize] } else { self.frame(pfn) };
                    self.blocks.insert((file, page), if fails { GARBAGE } else { data });
                    self.has_untold_error |= fails;
                    self.has_untold_fs_error |= fails;
                    match fails {
                        true => self.not_on_device.insert((file, page)),
                        false => self.not_on_device.remove(&(file, page)),
                    };
                    // What could not be written is kept in memory, or may be lost from now on.
                    if !(fails && self.keeps_failed_writes) {
                        let data = (!fails).then_some(data);
                        self.model.reached_device(Page::Regular(file, page), data, GARBAGE);
                    }
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
        self.take_ops();
    }
}
