//! Dirty pages, their way to the device, and sync.
//!
//! ```text
//!   write   W says dirty ─▶ the gate ─▶ the bytes ─▶ the gate                    no lock, and the engine need not hear of it
//!           else: lock ─▶ start: it counts, throttles, reads what is left of the page ─▶ dirty ─▶ the gate ─▶ unlock ─▶ the bytes ─▶ the gate
//!   flusher lock ─▶ a step: W is not dirty any more ─▶ writes of neighbours are one ─▶ the gates are passed ─▶ unlock ─▶ the device
//!   sync    the engine's fsync ─▶ this thread writes, with others ─▶ the length on the device is the file's ─▶ fdatasync
//! ```
//! The engine decides what is written and when, and which writers wait. Here are only the device's limits. A number of writes are in flight at a
//! time, and a caller that requests more than `BACKLOG_MAX` sleeps, as in a kernel whose request queue is full. A page that is being written to
//! delays its write.

use std::sync::Arc;
use std::time::Duration;

use pageout_engine::{CpuId, FileId, IoError, Nanos, ObjectId, PAGE_SIZE, Pfn, Served, Step, Wait};

use super::inner::{Inner, KernelThread, Runs};
use super::locked::{Locked, Miss, Outcome};
use super::transfer::{Target, Transfer, Written};
use super::{LiveMachine, Want};
use crate::arena::{Arena, Writing};
use crate::error::Error;
use crate::file::Inner as File;
use crate::gate::{Gate, Unpinned};
use crate::local;

/// Background writes that are at a device at the same time: enough to keep one busy.
pub(super) const AT_ONCE: usize = 8;
/// Pages of them while a thread reads: mostly as many as a program writes in one call. A read waits for all earlier requests of a device. The block
/// layer's writeback throttling also gives such writes less of a device if reads get slow. Here they wait whether or not it is fast: twice as many
/// reads per second were made as with 64 pages in flight, and three fifths as much was written. A sync waits, too, and has no limit.
const PAGES_BESIDE_READS: usize = 16;
/// So long after a read another one is expected: by the time it is asked for, what is in its way was begun.
const IS_READ_FOR: Nanos = Nanos(100_000_000);
/// Writes that a sync itself has in flight.
const SYNCED_AT_ONCE: usize = 32;

/// Interval at which a sync checks whether guards hold pages to be written.
const LOOK_FOR_GUARDS: Duration = Duration::from_millis(20);

/// The part of a page that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) page: u64,
    /// From which byte of the page on, and how many.
    pub(crate) skip: usize,
    pub(crate) len: usize,
}

/// A page that is to be written to.
pub(crate) struct Writable<'a> {
    pub(crate) writing: Writing<'a>,
    /// Its frame holds nothing yet: what is not written is to be zeroes.
    pub(crate) is_new: bool,
    /// The group's debt for the page, if any.
    pub(crate) owed: Option<Owed<'a>>,
}

/// A group's debt for a page that was brought in above `memory.high`: reclaim, or a delay. It is paid when the bytes are in memory, as it takes long,
/// and others wait for a page with a writer.
#[must_use]
pub(crate) struct Owed<'a> {
    machine: &'a LiveMachine,
    /// There until it is paid.
    miss: Option<Miss>,
}

impl Owed<'_> {
    pub(super) fn new(machine: &LiveMachine, miss: Miss) -> Owed<'_> {
        Owed { machine, miss: Some(miss) }
    }

    pub(crate) fn pay(mut self) -> Result<(), Error> {
        let Some(mut miss) = self.miss.take() else { return Ok(()) };
        let (machine, step) = (self.machine, std::mem::replace(&mut miss.step, Step::Again));
        let (mut locked, _) = machine.see_through(machine.lock()?, miss.hired.task, step)?;
        locked.ended(&miss);
        machine.read(locked, 0).map(drop)
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        if self.miss.is_some() {
            let machine = self.machine;
            // A thread that has panicked has poisoned the cache.
            let _ = Owed { machine, miss: self.miss.take() }.pay();
        }
    }
}

/// The outcome of starting a write to a page.
pub(crate) enum Begun<'a> {
    /// The page is dirty, and the caller's.
    Writable(Writable<'a>),
    /// It is dirty, and another thread holds this frame of it.
    Held(Pfn),
}

/// What happens to a writer if more pages are dirty than allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DirtyLimits {
    HoldUp,
    Spare,
}

/// Bytes that a file can have: as many as the words of its pages have numbers for.
pub(crate) const BYTES_MAX: u64 = PAGE_SIZE << 30;

impl Inner {
    /// The device of a file, unless it is forgotten.
    pub(super) fn device_of(&self, file: FileId) -> Option<usize> {
        self.files.open.get(file.0 as usize)?.as_ref().map(|of| of.device)
    }

    /// Takes the first read out of the queue that a thread may begin.
    pub(super) fn take_read(&mut self, may: impl Fn(&Inner, &Transfer) -> bool) -> Option<Transfer> {
        let at = self.transfers.queue.iter().position(|read| may(self, read))?;
        self.transfers.queue.remove(at)
    }

    /// Takes the next read that one of so many threads of the cache may begin.
    pub(super) fn next_read(&mut self, threads: usize) -> Option<Transfer> {
        let most = self.transfers.devices.threads_of_each(threads);
        self.take_read(|inner, read| inner.transfers.devices[read.device as usize].threads < most)
    }

    /// Takes the next write that one of so many threads of the cache may begin: of each device in its turn.
    pub(super) fn next_write_in_turn(
        &mut self,
        arena: &Arena,
        writers: usize,
        threads: usize,
    ) -> Option<Transfer> {
        let (most, threads) = (
            self.transfers.devices.writers_of_each(writers),
            self.transfers.devices.threads_of_each(threads),
        );
        for device in self.transfers.devices.in_turn() {
            if self.transfers.devices[device].threads < threads
                && let Some(write) = self.next_write(arena, device, most)
            {
                self.transfers.devices.has_had_turn(device);
                return Some(write);
            }
        }
        None
    }

    /// Takes the next background write of a device that may begin, if fewer than this many are in flight.
    pub(super) fn next_write(&mut self, arena: &Arena, device: usize, most: usize) -> Option<Transfer> {
        let of = &self.transfers.devices[device];
        let is_read = of.read_at.is_some_and(|at| self.now.0 - at.0 < IS_READ_FOR.0);
        let piece = if is_read { PAGES_BESIDE_READS } else { usize::MAX };
        let room = piece.saturating_sub(of.writing_pages);
        if of.writing < most && room > 0 { self.take_write(arena, device, piece, room) } else { None }
    }

    /// Takes the next write of a device that may begin, or this many of its first pages. If those do not fit, takes nothing: shorter writes that
    /// overtake them would keep them waiting forever.
    fn take_write(&mut self, arena: &Arena, device: usize, piece: usize, room: usize) -> Option<Transfer> {
        let is_cut = |write: &Transfer| match write.target {
            Target::File(file) => self.files.open[file.0 as usize].as_ref().is_some_and(|of| of.is_cut),
            Target::Swap => false,
        };
        let mut at = 0;
        let piece = loop {
            let write = self.transfers.devices[device].writes.get(at)?;
            if is_cut(write) {
                at += 1;
                continue;
            }
            let pages = write.frames.len().min(piece);
            if pages > room {
                return None;
            }
            match first_held(write, pages, arena) {
                None => break piece,
                // Its neighbours do not wait for a held page.
                Some(held) if held > 0 => break held,
                Some(_) => {
                    let rest = self.transfers.devices[device].writes[at].split_off(1);
                    rest.into_iter()
                        .for_each(|rest| self.transfers.devices[device].writes.insert(at + 1, rest));
                    at += 1;
                }
            }
        };
        let of = &mut self.transfers.devices[device];
        let write = match of.writes[at].split_off(piece) {
            Some(rest) => std::mem::replace(&mut of.writes[at], rest),
            None => of.writes.remove(at)?,
        };
        of.writing += 1;
        of.writing_pages += write.frames.len();
        of.is_written = true;
        if let Target::File(file) = write.target
            && let Some(of) = &mut self.files.open[file.0 as usize]
        {
            of.writing += 1;
        }
        Some(write)
    }
}

/// The first of these frames of a write that is being written to. If the write keeps writers out, the frames before it have pins then.
fn first_held(write: &Transfer, pages: usize, arena: &Arena) -> Option<usize> {
    write.frames[..pages].iter().position(|&pfn| match (write.is_stable, write.target) {
        (false, _) => !arena.gate(pfn).pass(),
        // The page of a closed frame was discarded, and no task can write to it.
        (true, Target::Swap) => matches!(arena.gate(pfn).pin(), Err(Unpinned::Written | Unpinned::Full)),
        (true, Target::File(_)) => arena.gate(pfn).pin().is_err(),
    })
}

impl Locked<'_> {
    /// A write has ended: its pages are on the device, or dirty again.
    pub(super) fn write_done(&mut self, write: Transfer) {
        let machine = self.machine();
        let Transfer { target, device, page: first, frames, bytes, writes, is_stable, .. } = write;
        let device = device as usize;
        let Some(Written { ios, failed }) = writes else { unreachable!("it is a write") };
        if is_stable {
            // A frame that has had a pin is still open.
            let gates = frames.iter().map(|&pfn| machine.arena.gate(pfn));
            gates.filter(|gate| !gate.is_closed()).for_each(Gate::unpin);
        }
        self.transfers.device_writes += 1;
        self.transfers.held_up_since = None;
        self.transfers.device_bytes_written += u64::from(bytes) - failed.len() as u64 * PAGE_SIZE;
        let had_room = self.transfers.devices[device].has_room();
        self.transfers.devices[device].writing -= 1;
        self.transfers.devices[device].writing_pages -= frames.len();
        self.transfers.devices[device].write_error = failed.last().map(|&(_, errno)| errno);
        let mut is_awaited = false;
        if let Target::File(file) = target
            && let Some(of) = &mut self.files.open[file.0 as usize]
        {
            of.writing -= 1;
            of.requests.writes += 1;
            of.requests.bytes_written += u64::from(bytes) - failed.len() as u64 * PAGE_SIZE;
            of.needs_flush = true;
            is_awaited = of.is_cut && of.writing == 0;
            of.write_error = failed.last().map(|&(_, errno)| errno).or(of.write_error);
            for at in 0..frames.len() {
                let page = first + at as u64;
                if failed.iter().any(|&(failed, _)| failed == at) {
                    of.unwritten.insert(page);
                } else {
                    of.unwritten.remove(&page);
                    of.on_disk = of.on_disk.max((page + 1) * PAGE_SIZE);
                }
            }
            if of.writing == 0 {
                of.look();
            }
        }
        for (at, io) in ios.into_iter().enumerate() {
            let is_failed = failed.iter().any(|&(failed, _)| failed == at);
            let result = if is_failed { Err(IoError::Device) } else { Ok(()) };
            self.engine.io_done(io, CpuId(0), result);
        }
        if target == Target::Swap {
            self.slot_was_written(device);
        }
        self.settle();
        if let Target::File(file) = target
            && self.unlock_if_done(file)
        {
            // The engine's own thread sees to its length.
            self.files.tended_at = Nanos::ZERO;
            self.wake_service();
        }
        let has_room = self.transfers.devices[device].has_room();
        if is_awaited || !had_room && has_room {
            machine.wake_idle();
        }
        if has_room && self.waiting.threads.iter().any(|thread| thread.runs == Runs::WithRoom(device)) {
            self.wake_service();
        }
    }

    /// Returns true if a write is in flight, or may begin: memory may come from it. Other writes wait for a writer in place.
    pub(super) fn may_write_end(&self) -> bool {
        let arena = &self.machine().arena;
        let is_held_up = |write: &Transfer| write.frames.iter().any(|&pfn| arena.gate(pfn).is_written());
        let devices = &self.transfers.devices;
        !devices.iter().all(|device| device.writing == 0 && device.writes.iter().all(is_held_up))
    }

    /// Returns true if others may free memory soon: a write ends, a miss that holds a page goes on, or a kernel thread runs.
    pub(super) fn may_get_memory(&self) -> bool {
        let runs = |thread: &KernelThread| matches!(thread.runs, Runs::Now | Runs::WithRoom(_));
        self.may_write_end() || !self.waiting.due.is_empty() || self.waiting.threads.iter().any(runs)
    }

    /// Reports to the engine each write that has long waited for a writer in place: a task that finds no memory then may be that writer.
    pub(super) fn note_held_up_writes(&mut self) {
        const LONG: Nanos = Nanos(100_000_000);
        let are_held_up = self.transfers.devices.have_writes() && !self.may_write_end();
        if !are_held_up {
            self.transfers.held_up_since = None;
            return;
        }
        let now = self.now;
        if now.0 - self.transfers.held_up_since.get_or_insert(now).0 >= LONG.0 {
            self.transfers.held_up_since = None;
            self.engine.writes_are_held_up();
            self.settle();
        }
    }

    /// Reports to the engine whether a page that this part is written to must be read first if it is not in memory. Repeat it whenever others have
    /// had the lock: they may have written the page, and it may have gone to its device since.
    fn say_what_is_written(&mut self, miss: &Miss, file: FileId, part: Part) {
        let of = self.files.open[file.0 as usize].as_ref().expect("an access to it is under way");
        let is_partial = of.has_more_than(part);
        let said = self.engine.set_partial_writes(miss.hired.task, miss.access.object, is_partial);
        debug_assert!(said.is_ok(), "it was lent the file");
    }
}

/// What a sync flushes of the device's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flush {
    Nothing,
    /// The data, and the length.
    Data,
    /// The file's times, too.
    All,
}

impl LiveMachine {
    /// Writes that threads without a ring make at the same time, over all devices: the others read.
    pub(super) fn writers_max(&self) -> usize {
        self.io_threads().div_ceil(2)
    }

    /// Begins what may begin of the writes that were asked for.
    pub(super) fn begin_writes<'a>(&'a self, mut locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        if locked.transfers.devices.are_idle() {
            return Ok(locked);
        }
        locked.transfers.devices.forget_who_was_asked();
        if self.io_threads() == 0 {
            let next = |locked: &mut Locked<'_>| {
                let mut devices = locked.transfers.devices.in_turn();
                devices.find_map(|device| locked.take_write(&self.arena, device, usize::MAX, usize::MAX))
            };
            while let Some(mut write) = next(&mut locked) {
                drop(locked);
                let _ = write.perform(&self.arena);
                locked = self.lock()?;
                locked.write_done(write);
            }
        } else if let Some(ring) = &self.readers.ring {
            let mut begun = Vec::new();
            for device in locked.transfers.devices.in_turn() {
                begun.extend(std::iter::from_fn(|| locked.next_write(&self.arena, device, AT_ONCE)));
            }
            if !begun.is_empty() {
                drop(locked);
                ring.begin(&self.arena, begun);
                locked = self.lock()?;
            }
        } else {
            let most = locked.transfers.devices.writers_of_each(self.writers_max());
            let more = locked
                .transfers
                .devices
                .iter()
                .map(|of| of.writes.len().min(most.saturating_sub(of.writing)));
            (0..more.sum()).for_each(|_| self.readers.more.notify_one());
        }
        if locked.transfers.devices.is_one_held_up() {
            // Pages of the write are being written to. The engine's own thread checks again.
            locked.wake_service();
        }
        Ok(locked)
    }

    /// Makes a caller that has requested more writes than a device accepts wait until it has accepted some.
    pub(super) fn await_room<'a>(&'a self, mut locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        let Some(device) = locked.transfers.devices.asked_without_room() else { return Ok(locked) };
        locked = self.begin_writes(locked)?;
        self.wait_while(locked, |inner| !inner.transfers.devices[device].has_room())
    }

    /// Makes the requested writes of a device, in addition to the threads that do this anyway.
    fn write_now<'a>(&'a self, mut locked: Locked<'a>, device: usize) -> Result<Locked<'a>, Error> {
        loop {
            let ring =
                if locked.transfers.devices[device].writes.len() > 1 { self.readers.lend() } else { None };
            let most = if ring.is_some() { SYNCED_AT_ONCE } else { 1 };
            let next = |_| locked.take_write(&self.arena, device, usize::MAX, usize::MAX);
            let mut writes: Vec<_> = (0..most).map_while(next).collect();
            if ring.is_none() && writes.len() == 1 {
                locked = self.help_write(locked, device);
            }
            let is_over = writes.is_empty();
            if !is_over {
                drop(locked);
                match &ring {
                    Some(ring) => {
                        writes =
                            ring.perform(&self.arena, writes).into_iter().map(|(write, _)| write).collect();
                        // The engine is notified of them in one order, whichever ends first.
                        writes.sort_by_key(|write| write.io);
                    }
                    None => writes.iter_mut().for_each(|write| _ = write.perform(&self.arena)),
                }
                locked = self.lock()?;
                writes.into_iter().for_each(|write| locked.write_done(write));
            }
            ring.into_iter().for_each(|ring| self.readers.give_back(ring));
            if is_over {
                // The rest waits for a writer, or is made by others.
                return self.begin_writes(locked);
            }
        }
    }

    /// Threads that write do so in parallel to the waiting thread.
    fn help_write<'a>(&self, locked: Locked<'a>, device: usize) -> Locked<'a> {
        let more = locked.transfers.devices[device].writes.len().min(self.writers_max());
        (0..more).for_each(|_| self.readers.more.notify_one());
        locked
    }

    /// A part of a page is to be written, on behalf of a group: its frame, for the caller alone, or who the caller has to wait for. No byte of the file is taken
    /// away meanwhile: the caller has a span, or is who takes bytes away.
    pub(crate) fn begin_write(&self, file: &File, group: usize, part: Part) -> Result<Begun<'_>, Error> {
        self.begin_write_as(file, group, part, DirtyLimits::HoldUp)
    }

    pub(super) fn begin_write_as(
        &self,
        file: &File,
        group: usize,
        part: Part,
        limits: DirtyLimits,
    ) -> Result<Begun<'_>, Error> {
        let mut locked = self.lock_for_page()?;
        local::give_back(self, &locked);
        locked = self.wait_if_going(locked, file)?;
        locked.transfers.misses += 1;
        let want = Want { page: part.page, bytes: PAGE_SIZE };
        let mut miss = locked.begin_access(file, group, want, true)?;
        miss.is_spared = limits == DirtyLimits::Spare;
        locked.say_what_is_written(&miss, file.id, part);
        locked.start(&mut miss);
        let begun;
        (locked, begun) = self.finish_write(locked, file, miss, part)?;
        drop(self.read(locked, 0)?);
        begun
    }

    /// Completes an access that writes. The caller gets the frame before any other thread has the lock: until it is filled, it may have any contents.
    fn finish_write<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: &File,
        mut miss: Miss,
        part: Part,
    ) -> Result<(Locked<'a>, Result<Begun<'a>, Error>), Error> {
        loop {
            let (task, step) = (miss.hired.task, std::mem::replace(&mut miss.step, Step::Again));
            let served;
            let say = |locked: &mut Locked<'a>| locked.say_what_is_written(&miss, file.id, part);
            (locked, served) = self.see_through_anew(locked, task, step, say)?;
            if let Some(crowded) = locked.crowded(&mut miss, &served) {
                locked = self.await_room_beside(locked, &miss, crowded)?;
            } else if let Outcome::Found(found) = locked.frame_of(file.id.into(), part.page, served) {
                let mut begun =
                    found.map(|pfn| self.take_to_write(pfn.expect("what is written has a frame")));
                let Ok(taken) = &mut begun else {
                    locked.ended(&miss);
                    return Ok((locked, begun));
                };
                let step = locked.engine.pay(task, miss.access);
                locked.settle();
                match (taken, step) {
                    (_, Step::Done(_)) => locked.ended(&miss),
                    (Begun::Writable(writable), step) => {
                        miss.step = step;
                        writable.owed = Some(Owed { machine: self, miss: Some(miss) });
                    }
                    (Begun::Held(_), step) => {
                        (locked, _) = self.see_through(locked, task, step)?;
                        locked.ended(&miss);
                    }
                }
                return Ok((locked, begun));
            }
            locked.say_what_is_written(&miss, file.id, part);
            locked.start(&mut miss);
        }
    }

    /// A dirty page's frame, for the caller alone, if it is not held.
    fn take_to_write(&self, pfn: Pfn) -> Begun<'_> {
        // Only the engine, whose lock this thread has, closes or fills a frame.
        if self.arena.gate(pfn).is_closed() {
            return Begun::Writable(Writable { writing: self.arena.fill(pfn), is_new: true, owed: None });
        }
        match self.arena.begin_write(pfn) {
            Ok(writing) => Begun::Writable(Writable { writing, is_new: false, owed: None }),
            Err(_) => Begun::Held(pfn),
        }
    }

    /// Has all that was written to a file so far on its device: with its times, too, where `is_all`.
    pub(crate) fn sync(&self, file: &File, flush: Flush) -> Result<(), Error> {
        let mut locked = self.drain(self.lock()?)?;
        locked = self.wait_if_going(locked, file)?;
        self.sync_object(locked, file.id, file.object, flush)?.1
    }

    /// The same of a file that the owner has open.
    pub(crate) fn sync_object<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: FileId,
        object: ObjectId,
        flush: Flush,
    ) -> Result<(Locked<'a>, Result<(), Error>), Error> {
        let hired = locked.hire(0);
        let owner = locked.files.owner;
        let lent = locked.engine.lend((owner, object), hired.task)?;
        let mut step = locked.engine.fsync(hired.task, lent)?;
        let of = locked.file_mut(file);
        of.busy += 1;
        let (flushes_failed, device) = (of.flushes_failed, of.device);
        let mut guard_wait = self.guard_wait();
        let written = loop {
            locked.settle();
            locked = match step {
                Step::Done(Served::Synced(result)) => break result,
                Step::Again if locked.transfers.devices[device].has_room() => {
                    // Neighbours become one write if they are asked for before it begins.
                    drop(locked);
                    self.lock()?
                }
                Step::Again => self.write_now(locked, device)?,
                #[cfg(test)]
                Step::Wait(_) if self.has_bug(super::Bug::ForgetsWriteback) => {
                    locked.engine.give_up_fsync(hired.task);
                    break Ok(());
                }
                Step::Wait(Wait::Io(_) | Wait::Woken) => {
                    locked = self.write_now(locked, device)?;
                    loop {
                        let is_woken;
                        (locked, is_woken) = self.wait_for(locked, hired.task, LOOK_FOR_GUARDS)?;
                        if is_woken {
                            break locked;
                        }
                        // A guard may hold a page of it that is to be written.
                        if let Some((page, pfn)) = locked.held_write(file)
                            && !guard_wait.may_go_on(pfn)
                        {
                            locked.engine.give_up_fsync(hired.task);
                            locked.file_mut(file).busy -= 1;
                            self.wake_idle();
                            let error = locked.pinned_page(file, page);
                            return Ok((locked, Err(error)));
                        }
                        locked = self.write_now(locked, device)?;
                    }
                }
                other => unreachable!("fsync comes to {other:?}"),
            };
            step = locked.engine.resume(hired.task);
        };
        let cut;
        (locked, cut) = self.set_len_on_device(locked, file)?;
        if flush != Flush::Nothing {
            locked = self.flush(locked, file, object, flush == Flush::All)?;
        }
        let of = locked.file_mut(file);
        of.busy -= 1;
        self.wake_idle();
        // This call also reports the loss of another call's flush, even if that was acknowledged.
        let has_lost = of.flushes_failed > flushes_failed;
        let outcome = match (written, cut, of.flush_error.or(has_lost.then_some(libc::EIO))) {
            (Err(_), _, flush) => Err(of.sync_error(flush.or(of.write_error).unwrap_or(libc::EIO))),
            (_, _, Some(errno)) => Err(of.sync_error(errno)),
            (_, Err(error), _) => Err(of.sync_error(error.raw_os_error().unwrap_or(libc::EIO))),
            (Ok(()), Ok(()), None) => Ok(()),
        };
        #[cfg(test)]
        if outcome.is_err() && self.has_bug(super::Bug::TellsOnce) {
            locked.engine.acknowledge_write_errors(owner, object)?;
        }
        Ok((locked, outcome))
    }

    /// Makes a file's device store its cached data. A file has one flush at a time: the current one may have begun before all of this was written,
    /// and if it fails, this has failed.
    fn flush<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: FileId,
        object: ObjectId,
        is_all: bool,
    ) -> Result<Locked<'a>, Error> {
        let is_flushing =
            |inner: &Inner| inner.files.open[file.0 as usize].as_ref().is_some_and(|of| of.is_flushing);
        locked = self.wait_while(locked, is_flushing)?;
        let of = locked.file_mut(file);
        #[cfg(test)]
        if self.has_bug(super::Bug::DoesNotFlush) {
            of.needs_flush = false;
        }
        if !std::mem::take(&mut of.needs_flush) {
            return Ok(locked);
        }
        of.is_flushing = true;
        let (disk, owner) = (Arc::clone(&of.disk), locked.files.owner);
        locked.engine.flush_begins(owner, object)?;
        drop(locked);
        let flushed = disk.flush(is_all);
        locked = self.lock()?;
        let result = flushed.as_ref().map_or(Err(IoError::Device), |()| Ok(()));
        #[cfg(test)]
        let result = if self.has_bug(super::Bug::ForgetsUnkept) { Ok(()) } else { result };
        let unkept = locked.engine.flush_ended(owner, object, result)?;
        locked.settle();
        let of = locked.file_mut(file);
        of.is_flushing = false;
        if let Err(error) = flushed {
            of.needs_flush = true;
            of.flushes_failed += 1;
            of.flush_error = error.raw_os_error().or(Some(libc::EIO));
            of.unwritten.extend(unkept.dirty);
            of.lost.extend(unkept.lost);
        }
        self.wake_idle();
        Ok(locked)
    }

    #[cfg(test)]
    fn has_bug(&self, bug: super::Bug) -> bool {
        *self.bug.lock().expect("nobody panics there") == Some(bug)
    }

    /// Failed writes of a file are acknowledged.
    pub(crate) fn acknowledge(&self, file: &File) -> Result<(), Error> {
        // A file that cannot be forgotten after all stays, with its errors.
        let mut locked = self.wait_if_going(self.lock()?, file)?;
        let owner = locked.files.owner;
        locked.engine.acknowledge_write_errors(owner, file.object)?;
        let of = locked.file_mut(file.id);
        of.flush_error = None;
        of.lost.clear();
        Ok(())
    }
}
