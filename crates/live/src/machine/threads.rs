//! The cache's own threads: one runs the engine's kernel threads, the others read and write what no caller waits for.
//!
//! All take the lock for one step and release it. Each ends when the last handle has gone, or when the engine has panicked.

use std::time::Duration;

use pageout_engine::Step;

use super::LiveMachine;
use super::inner::{KernelThread, Runs};
use super::transfer::Transfer;
use super::uring::Uring;
use crate::sync::wait_at_most;

/// How soon writes are checked again that could not begin: mostly who writes to a page copies and is done.
const HELD_UP: Duration = Duration::from_millis(1);
/// Reads of the queue that a thread makes before a waiting write: callers that wait for a free slot wait for that.
const READS_A_WRITE: u32 = 8;

impl LiveMachine {
    /// Runs the engine's kernel threads until all is to stop.
    pub(crate) fn run_kernel_threads(&self) {
        while let Ok(mut locked) = self.lock() {
            if locked.stops {
                return;
            }
            locked.waiting.service_sleeps = false;
            // A record has uses between two accesses, and not in the middle of one.
            let is_recorded = self.arena.tokens.record.is_on();
            let report = |locked| if is_recorded { Ok(locked) } else { self.use_touched(locked) };
            locked = match self.drain(locked).and_then(report) {
                Ok(locked) => locked,
                Err(_) => return,
            };
            if locked.drive() || locked.transfers.devices.have_writes() {
                locked = match self.read(locked, 0) {
                    Ok(locked) => locked,
                    Err(_) => return,
                };
            }
            if locked.close_gone().is_err() {
                return;
            }
            if let Some(region) = locked.next_dropped() {
                drop(locked);
                // It fails only if the cache is poisoned.
                let _ = self.free_region(region);
                continue;
            }
            locked.note_held_up_writes();
            locked.scan_next_region();
            if locked.is_time_to_tend() {
                drop(locked);
                // Failed writes are tried again.
                let _ = self.tend_idle_files();
                continue;
            }
            let now = locked.now;
            let is_due = |thread: &KernelThread| match thread.runs {
                Runs::Now => true,
                Runs::WithRoom(device) => locked.transfers.devices[device].has_room(),
                Runs::WhenWoken => false,
                Runs::At(time) => time <= now,
            };
            // In turn: kswapd may have work for long, and others free the memory that it looks for.
            let (all, last) = (locked.waiting.threads.len(), locked.waiting.ran_last);
            let mut in_turn = (1..=all).map(|after| (last + after) % all);
            if let Some(at) = in_turn.find(|&at| is_due(&locked.waiting.threads[at])) {
                if self.is_compressing() {
                    if self.await_compressed(locked).is_err() {
                        return;
                    }
                    continue;
                }
                locked.waiting.ran_last = at;
                let task = locked.waiting.threads[at].task;
                let step = locked.engine.resume(task);
                locked.waiting.threads[at].runs = match step {
                    Step::Again => Runs::Now,
                    Step::Wait(wait) => Runs::after(wait, now),
                    Step::Done(served) => panic!("a kernel thread has ended: {served:?}"),
                };
                locked.settle();
                if step == Step::Again
                    && let Some(device) = locked.transfers.devices.asked_without_room()
                {
                    // A caller that submits more than a device accepts sleeps until it has accepted some.
                    locked.waiting.threads[at].runs = Runs::WithRoom(device);
                }
                let _ = self.read(locked, 0);
                continue;
            }
            let next = locked.waiting.threads.iter().filter_map(|thread| match thread.runs {
                Runs::At(time) => Some(Duration::from_nanos(time.0 - now.0)),
                _ => None,
            });
            let next = next.chain(locked.next_driven());
            let next = next.chain(locked.next_tending()).chain(locked.next_scan());
            // A page that must go to its device was being written to.
            let held_up = locked.transfers.devices.have_writes().then_some(HELD_UP);
            let next = next.chain(held_up).min().unwrap_or(Duration::from_secs(60));
            if !(locked.waiting.due.is_empty() && locked.effects.to_wake.is_empty()) {
                continue;
            }
            locked.waiting.service_sleeps = true;
            let inner = locked.into_inner();
            wait_at_most(&self.service, inner, next);
        }
    }

    /// Makes reads that no thread waits for, until the end of the cache.
    pub(crate) fn run_reader(&self) {
        match &self.readers.ring {
            Some(ring) => self.run_reaper(ring),
            None => self.run_reader_of_queue(),
        }
    }

    /// Waits for what is read in the ring of all.
    fn run_reaper(&self, ring: &Uring) {
        let mut ended = Vec::new();
        loop {
            ring.wait(&self.arena, 1, &mut ended);
            let Ok(mut locked) = self.lock() else { return };
            ended.drain(..).for_each(|(transfer, result)| locked.transfer_done(transfer, result));
            if locked.stops {
                return;
            }
            if self.begin_writes(locked).is_err() {
                return;
            }
        }
    }

    fn run_reader_of_queue(&self) {
        let Ok(mut inner) = self.inner.lock() else { return };
        let mut reads = 0;
        loop {
            if inner.stops || self.is_poisoned() {
                return;
            }
            // Reads first: a thread waits for them, or soon will.
            let read = if reads < READS_A_WRITE { inner.next_read(self.io_threads()) } else { None };
            let next =
                read.or_else(|| inner.next_write_in_turn(&self.arena, self.writers_max(), self.io_threads()));
            let next = next.or_else(|| inner.next_read(self.io_threads()));
            reads = if next.as_ref().is_some_and(Transfer::is_write) { 0 } else { reads + 1 };
            let Some(mut transfer) = next else {
                if inner.transfers.devices.is_one_held_up()
                    && std::mem::take(&mut inner.waiting.service_sleeps)
                {
                    // Pages of the write are being written to. The engine's own thread checks again.
                    self.service.notify_one();
                }
                match self.readers.more.wait(inner) {
                    Ok(again) => inner = again,
                    Err(_) => return,
                }
                continue;
            };
            let device = transfer.device as usize;
            inner.transfers.devices[device].threads += 1;
            if inner.transfers.devices.iter().count() > 1
                && (inner.transfers.devices.have_writes() || !inner.transfers.queue.is_empty())
            {
                // Entries that this thread has passed, or reaches only after this, may be of a device that has threads left.
                self.readers.more.notify_one();
            }
            drop(inner);
            let result = transfer.perform(&self.arena);
            match self.lock() {
                Ok(mut locked) => {
                    locked.transfers.devices[device].threads -= 1;
                    locked.transfer_done(transfer, result);
                    inner = locked.into_inner();
                }
                Err(_) => return,
            }
        }
    }

    /// Has all threads end.
    pub(crate) fn stop(&self) {
        if let Ok(mut inner) = self.inner.lock() {
            inner.stops = true;
        }
        self.service.notify_all();
        self.readers.notify_all();
        self.stop_following();
    }
}
