//! What the engine has decided, carried out: under the lock, or noted for the thread that releases it.

use std::sync::Arc;
use std::time::Duration;

use pageout_engine::{Compressed, IoId, Op, PAGE_SIZE, Pfn};

use super::device::Devices;
use super::locked::Locked;
use super::moves::Move;
use super::transfer::{PAGE_BYTES, Progress, Target, Transfer, WRITTEN_TOGETHER, Written};
use crate::arena::Arena;
use crate::storage::Storage;
use crate::sync::{Instant, thread};

/// The place to write a page to.
struct Destination<'a> {
    target: Target,
    device: usize,
    disk: &'a Arc<dyn Storage>,
    is_stable: bool,
}

impl Destination<'_> {
    /// Requests a write of a page, together with its neighbours if they were requested just before.
    fn write(self, devices: &mut Devices, io: IoId, page: u64, pfn: Pfn) {
        let device = &mut devices[self.device];
        device.was_asked = true;
        let is_next = |last: &&mut Transfer| {
            last.target == self.target
                && last.page + last.frames.len() as u64 == page
                && last.frames.len() < WRITTEN_TOGETHER
                && last.is_stable == self.is_stable
        };
        if let Some(last) = device.writes.back_mut().filter(is_next) {
            last.frames.push(pfn);
            last.bytes += PAGE_BYTES;
            last.writes.as_mut().expect("it is a write").ios.push(io);
            return;
        }
        device.writes.push_back(Transfer {
            io,
            target: self.target,
            device: self.device as u32,
            disk: Arc::clone(self.disk),
            page,
            frames: pfn.into(),
            bytes: PAGE_BYTES,
            writes: Some(Written { ios: vec![io], failed: Vec::new() }),
            progress: Progress::default(),
            is_stable: self.is_stable,
        });
    }
}

/// The frames of the pool that have what zswap keeps of a page.
fn frames_of(compressed: Compressed) -> impl Iterator<Item = Pfn> {
    let place = match compressed {
        Compressed::At(place) => Some(place.frames),
        Compressed::Word(_) => None,
    };
    place.into_iter().flatten()
}

/// Closes a frame that is free from now on. A thread with an outdated word may still be reading the frame. Returns false if it does not end.
fn close_for_good(arena: &Arena, pfn: Pfn) -> bool {
    const LONG: Duration = Duration::from_secs(1);
    let mut began = None;
    while arena.gate(pfn).is_open() && !arena.close(pfn) {
        if began.get_or_insert_with(Instant::now).elapsed() > LONG {
            return false;
        }
        thread::yield_now();
    }
    true
}

impl Locked<'_> {
    /// Carries out what the last call of the engine has decided, and notes what it wants read.
    pub(crate) fn settle(&mut self) {
        let machine = self.machine();
        let arena = &machine.arena;
        let inner = &mut **self;
        let mut ops = std::mem::take(&mut inner.effects.ops);
        inner.engine.take_ops(&mut ops);
        for op in ops.drain(..) {
            match op {
                Op::ReadFile { io, file, page, pages, .. } => {
                    let of = inner.files.open[file.0 as usize]
                        .as_ref()
                        .expect("it is open as long as it has pages");
                    let device = of.device;
                    inner.transfers.devices[device].read_at = Some(inner.now);
                    // Data beyond the device's end is zeroes: it was never written, or it would be in memory.
                    let end = of.bytes().min(of.on_disk);
                    let bytes = end.saturating_sub(page * PAGE_SIZE).min(u64::from(pages) * PAGE_SIZE);
                    let frames = inner.transfers.spare.collect(inner.engine.frames_of(io));
                    frames.iter().for_each(|&pfn| machine.await_move(&mut inner.effects.moves, pfn));
                    let disk = Arc::clone(&of.disk);
                    let progress = Progress::default();
                    inner.transfers.reads.push(Transfer {
                        io,
                        target: Target::File(file),
                        device: device as u32,
                        disk,
                        page,
                        frames,
                        bytes: bytes as u32,
                        writes: None,
                        progress,
                        is_stable: false,
                    });
                }
                Op::WriteFile { io, file, page, pfn, pages, .. } => {
                    debug_assert_eq!(pages, 1, "files have single pages here");
                    machine.await_move(&mut inner.effects.moves, pfn);
                    let of = inner.files.open[file.0 as usize].as_ref().expect("it has pages");
                    let to = Destination {
                        target: Target::File(file),
                        device: of.device,
                        disk: &of.disk,
                        is_stable: of.is_stable,
                    };
                    to.write(&mut inner.transfers.devices, io, page, pfn);
                }
                // The engine clears parts of large folios, which files do not have here.
                Op::Zero { pfn, pages } | Op::Clear { pfn, pages } => {
                    for pfn in (pfn.0..pfn.0 + pages).map(Pfn) {
                        machine.await_move(&mut inner.effects.moves, pfn);
                        inner.effects.zeroes.push(pfn);
                        inner.note_filled(arena, pfn, true);
                    }
                }
                Op::ReadSwap { io, slot, pfn, .. } => {
                    machine.await_move(&mut inner.effects.moves, pfn);
                    inner.note_filled(arena, pfn, false);
                    let swap = inner.transfers.swap.as_ref().expect("a slot is of the swap file");
                    inner.transfers.devices[swap.device].read_at = Some(inner.now);
                    inner.transfers.reads.push(Transfer {
                        io,
                        target: Target::Swap,
                        device: swap.device as u32,
                        disk: Arc::clone(&swap.disk),
                        page: slot.into(),
                        frames: pfn.into(),
                        bytes: PAGE_BYTES,
                        writes: None,
                        progress: Progress::default(),
                        is_stable: false,
                    });
                }
                Op::WriteSwap { io, slot, pfn, .. } => {
                    machine.await_move(&mut inner.effects.moves, pfn);
                    let swap = inner.transfers.swap.as_ref().expect("a slot is of the swap file");
                    // A page that is written to meanwhile is dirty again, and this slot is never read.
                    let (target, device, disk) = (Target::Swap, swap.device, &swap.disk);
                    let is_stable = arena.tokens.is_token(pfn);
                    if is_stable {
                        arena.tokens.begins_to_leave(pfn);
                    }
                    let to = Destination { target, device, disk, is_stable };
                    to.write(&mut inner.transfers.devices, io, slot.into(), pfn);
                }
                Op::ZswapStore { pfn, to, .. } => {
                    machine.await_move(&mut inner.effects.moves, pfn);
                    for pfn in frames_of(to) {
                        machine.await_move(&mut inner.effects.moves, pfn);
                    }
                    machine.zpool.as_ref().expect("the engine has no zswap without it").store(pfn, to);
                }
                Op::ZswapLoad { pfn, from, .. } => {
                    machine.await_move(&mut inner.effects.moves, pfn);
                    inner.note_filled(arena, pfn, false);
                    machine.zpool.as_ref().expect("it was stored").load(pfn, from);
                }
                Op::ZswapMove { from, to } => {
                    machine.zpool.as_ref().expect("it was stored").relocate(from, to);
                }
                // A free frame is written before it is read again.
                Op::ZswapFree { .. } | Op::FreeSlot { .. } => {}
                Op::FreeFrame { pfn, pages } => {
                    for pfn in (pfn.0..pfn.0 + pages).map(Pfn) {
                        inner.effects.zeroes.retain(|&other| other != pfn);
                        assert!(close_for_good(arena, pfn), "{pfn:?} is freed while somebody holds it");
                        inner.note_freed(arena, pfn);
                    }
                }
                Op::Copy { from, to, pages } => {
                    for at in 0..pages {
                        let one = Move { from: Pfn(from.0 + at), to: Pfn(to.0 + at) };
                        machine.await_moves_of_others(one.from);
                        machine.await_moves_of_others(one.to);
                        if !arena.move_token(one.from, one.to) {
                            inner.effects.moves.push(one);
                        }
                    }
                }
                // A file that is forgotten stays as it is on its device, and one that is made shorter is cut there.
                Op::PunchHole { .. } => {}
                op => panic!("a cache of files is asked for {op:?}"),
            }
        }
        inner.effects.ops = ops;
        inner.make_holes(arena);
        if arena.tokens.has_touched() && !arena.tokens.record.is_on() {
            self.wake_service();
        }
        self.wake();
    }

    /// Makes all moves that were decided on.
    pub(super) fn make_moves(&mut self) {
        let machine = self.machine();
        self.effects.moves.drain(..).for_each(|one| one.make(&machine.arena));
    }

    /// Fills new frames that have no writer with zeroes, and opens them.
    pub(super) fn make_zeroes(&mut self) {
        let arena = &self.machine().arena;
        for pfn in self.effects.zeroes.drain(..) {
            if !arena.tokens.is_token(pfn) {
                arena.zero(pfn, 0);
            }
            arena.gate(pfn).open();
        }
    }

    /// Returns whether a frame was to be filled with zeroes. If so, the caller fills it.
    pub(super) fn take_zeroes(&mut self, pfn: Pfn) -> bool {
        let at = self.effects.zeroes.iter().position(|&other| other == pfn);
        at.map(|at| self.effects.zeroes.swap_remove(at)).is_some()
    }
}
