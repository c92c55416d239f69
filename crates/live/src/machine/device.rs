//! Backing devices: each has its own queue of writes and its own limits, so that a device that does not answer holds back no other.
//!
//! ```text
//!   a file ─▶ its device ─┬─ writes that were asked for, and not begun
//!                         ├─ writes in flight      a ring: so many of each device; threads: each device has its share of those that may write
//!                         └─ threads that are at it: if there are several devices, one thread is left for the others
//! ```
//! The queue of reads is one, in the order in which they were asked for. A thread passes reads whose device has all threads it may have.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use pageout_engine::{BdiId, Nanos};

use super::inner::{KernelThread, Runs};
use super::locked::Locked;
use super::transfer::Transfer;
use crate::error::Error;
use crate::queue;

/// Writes of a device that are queued or in flight before further callers have to sleep: the block layer's nr_requests.
const BACKLOG_MAX: usize = 128;

/// A backing device.
pub(super) struct Device {
    /// The system's number of it, or `None` for the swap file, which is a device of its own here.
    number: Option<u64>,
    /// The engine's id of it, if it has files.
    pub(super) bdi: BdiId,
    /// Pages of its files that are read ahead at a time.
    pub(super) ra_pages: u32,
    /// Writes that were asked for, and not begun.
    pub(super) writes: VecDeque<Transfer>,
    /// Those that were begun and have not ended.
    pub(super) writing: usize,
    /// Their pages.
    pub(super) writing_pages: usize,
    /// Threads of the cache that read or write it at the moment.
    pub(super) threads: usize,
    /// Time of the last request for a read of it.
    pub(super) read_at: Option<Nanos>,
    /// The last call of the engine has asked for a write of it.
    pub(super) was_asked: bool,
    /// Something was written to it once.
    pub(super) is_written: bool,
    /// Why its last write has failed, if it has.
    pub(super) write_error: Option<i32>,
}

impl Device {
    /// Returns true if writes were requested and have not ended.
    pub(super) fn is_busy(&self) -> bool {
        !self.writes.is_empty() || self.writing > 0
    }

    /// Returns true if it accepts more writes.
    pub(super) fn has_room(&self) -> bool {
        self.writes.len() + self.writing < BACKLOG_MAX
    }
}

/// All devices that a file was opened on, in the order of the first of each.
#[derive(Default)]
pub(super) struct Devices {
    devices: Vec<Device>,
    /// Whose write a thread begins next, if it has one.
    turn: usize,
}

impl Devices {
    /// The index of a device by its number.
    fn numbered(&self, number: u64) -> Option<usize> {
        self.devices.iter().position(|device| device.number == Some(number))
    }

    fn add(&mut self, number: Option<u64>, bdi: BdiId, ra_pages: u32) -> usize {
        self.devices.push(Device {
            number,
            bdi,
            ra_pages,
            writes: VecDeque::new(),
            writing: 0,
            writing_pages: 0,
            threads: 0,
            read_at: None,
            was_asked: false,
            is_written: false,
            write_error: None,
        });
        self.devices.len() - 1
    }

    /// Adds the swap file. Returns its index.
    pub(super) fn add_swap(&mut self) -> usize {
        self.add(None, BdiId(0), 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter()
    }

    /// All of them, from the one on whose turn it is.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (turn, count) = (self.turn, self.devices.len());
        (0..count).map(move |at| (turn + at) % count)
    }

    /// A thread has begun a write of a device: that of the next one is begun before another.
    pub(super) fn has_had_turn(&mut self, device: usize) {
        self.turn = device + 1;
    }

    /// Returns true if the last call of the engine has asked for no write, and all that were asked for have begun.
    #[inline]
    pub(super) fn are_idle(&self) -> bool {
        self.iter().all(|device| !device.was_asked && device.writes.is_empty())
    }

    /// Returns true if writes were asked for and not begun.
    pub(super) fn have_writes(&self) -> bool {
        self.iter().any(|device| !device.writes.is_empty())
    }

    /// Returns true if a device is idle although writes of it were requested: their pages are being written to.
    pub(super) fn is_one_held_up(&self) -> bool {
        self.iter().any(|device| !device.writes.is_empty() && device.writing == 0)
    }

    /// A device that the last call of the engine has asked for more writes than it accepts.
    pub(super) fn asked_without_room(&self) -> Option<usize> {
        self.iter().position(|device| device.was_asked && !device.has_room())
    }

    pub(super) fn forget_who_was_asked(&mut self) {
        self.devices.iter_mut().for_each(|device| device.was_asked = false);
    }

    /// Writes of one device that threads make at the same time, of as many as all may have.
    pub(super) fn writers_of_each(&self, of_all: usize) -> usize {
        let written = self.iter().filter(|device| device.is_written).count();
        (of_all / written.max(1)).max(1)
    }

    /// Threads that one device may have, of as many as there are.
    pub(super) fn threads_of_each(&self, of_all: usize) -> usize {
        if self.devices.len() > 1 { (of_all - 1).max(1) } else { of_all }
    }
}

impl Index<usize> for Devices {
    type Output = Device;

    fn index(&self, device: usize) -> &Device {
        &self.devices[device]
    }
}

impl IndexMut<usize> for Devices {
    fn index_mut(&mut self, device: usize) -> &mut Device {
        &mut self.devices[device]
    }
}

impl Locked<'_> {
    /// The index of a device by its number. The engine is notified of a new one, and has a flusher for it.
    pub(super) fn device_numbered(&mut self, number: u64) -> Result<usize, Error> {
        if let Some(known) = self.transfers.devices.numbered(number) {
            return Ok(known);
        }
        let is_first = self.transfers.devices.iter().all(|device| device.number.is_none());
        let bdi = match is_first {
            true => BdiId(0),
            false => self.engine.bdi_register(&format!("{number:x}"))?,
        };
        let now = self.now;
        let started = self.engine.start_kernel_threads();
        let runs = |wait| Runs::after(wait, now);
        self.waiting
            .threads
            .extend(started.into_iter().map(|of| KernelThread { task: of.task, runs: runs(of.wait) }));
        let limits = self.machine().limits;
        let ra_pages = limits.ra_pages.unwrap_or_else(|| queue::ra_pages(number, limits.ra_pages_max));
        Ok(self.transfers.devices.add(Some(number), bdi, ra_pages))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    use pageout_engine::PAGE_SIZE;

    use super::super::Backend;
    use crate::storage::failing::{Fate, Faults, Held, Request, When};
    use crate::{File, Memory, Open, ReadAt};

    const PAGE: usize = PAGE_SIZE as usize;
    const PAGES: u64 = 600;
    const BACKENDS: [(Backend, usize); 3] =
        [(Backend::Threads, 2), (Backend::Threads, 4), (Backend::Uring, 2)];

    /// A device that answers nothing of one kind until it is released.
    #[derive(Debug)]
    struct Silent {
        holds: fn(Request) -> bool,
        held: Arc<Held>,
    }

    impl Faults for Silent {
        fn fate(&self, _: Request) -> Fate {
            Fate::Well
        }

        fn when(&self, request: Request) -> When {
            if (self.holds)(request) { When::Released(Arc::clone(&self.held)) } else { When::Now }
        }
    }

    struct Made(PathBuf);

    impl Made {
        fn new() -> Made {
            static MADE: AtomicU64 = AtomicU64::new(0);
            let number = MADE.fetch_add(1, Relaxed);
            let path = std::env::temp_dir().join(format!("pageout-device-{}-{number}", std::process::id()));
            std::fs::write(&path, vec![1; PAGES as usize * PAGE]).unwrap();
            Made(path)
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// A cache with a file on a device that holds requests, and one on another device.
    struct Two {
        memory: Memory,
        silent: File,
        other: File,
        other_made: Made,
        held: Arc<Held>,
        _silent_made: Made,
    }

    fn two((backend, io_threads): (Backend, usize), holds: fn(Request) -> bool) -> Two {
        let memory = Memory::builder().budget(16 << 20).backend(backend).io_threads(io_threads);
        let memory =
            memory.sysctl("vm.dirty_ratio", 90).sysctl("vm.dirty_background_ratio", 80).build().unwrap();
        let (silent_made, other_made, held) = (Made::new(), Made::new(), Arc::new(Held::default()));
        let how = || Open::read_write().random().buffered(true);
        let faults = Arc::new(Silent { holds, held: Arc::clone(&held) });
        let silent = memory.open(&silent_made.0, how().device(1).faults(faults)).unwrap();
        let other = memory.open(&other_made.0, how().device(2)).unwrap();
        for (name, value) in [("dirty_writeback_centisecs", "1"), ("dirty_expire_centisecs", "1")] {
            memory.write(&format!("/proc/sys/vm/{name}"), value).unwrap();
        }
        Two { memory, silent, other, other_made, held, _silent_made: silent_made }
    }

    /// Writes so many pages, no two of which are one request.
    fn write(file: &File, pages: u64, byte: u8) {
        (0..pages).for_each(|at| file.write_at(&[byte; PAGE], 2 * at * PAGE_SIZE).unwrap());
    }

    /// A wait that takes longer than this has no end. A disk that others write to answers a sync after half a minute at times.
    const LONG: Duration = Duration::from_secs(120);

    fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < LONG, "after {LONG:?}: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    impl Two {
        /// Does something while the one device is silent, which must end before that answers.
        fn goes_on(&self, what: &str, act: impl FnOnce() + Send) {
            let is_over = std::thread::scope(|scope| {
                let thread = scope.spawn(act);
                let began = Instant::now();
                while !thread.is_finished() && began.elapsed() < LONG {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let is_over = thread.is_finished();
                if !is_over {
                    self.held.release();
                }
                // A panic of the thread is reported after the device has answered. Otherwise the cache could not be dropped.
                thread.join().map(|()| is_over)
            });
            let is_over = is_over.unwrap_or_else(|panic| {
                self.held.release();
                std::panic::resume_unwind(panic)
            });
            assert!(is_over, "{what} waits for the other device");
        }

        fn read_other(&self) {
            let file = &self.other;
            let check = |buf: &[u8]| assert!(buf.iter().all(|&byte| byte == 1 || byte == 7));
            for round in 0..3 {
                self.memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
                let mut bufs = [[0; PAGE]; 40];
                let reads = |bufs: &mut [[u8; PAGE]]| -> Result<(), crate::Error> {
                    let of = (0..).zip(bufs);
                    file.submit(of.map(|(at, buf)| ReadAt { buf, offset: 3 * at * PAGE_SIZE }).collect())?
                        .wait()
                };
                reads(&mut bufs).unwrap();
                check(bufs.as_flattened());
                let mut batch: Vec<_> = (150..)
                    .zip(&mut bufs)
                    .map(|(at, buf)| ReadAt { buf, offset: 3 * at * PAGE_SIZE })
                    .collect();
                file.read_batch(&mut batch).unwrap();
                check(bufs.as_flattened());
                file.prefetch(0..PAGES * PAGE_SIZE).unwrap();
                file.read_at(&mut bufs[0], (500 + round) * PAGE_SIZE).unwrap();
                check(&bufs[0]);
            }
        }

        /// The flusher has written it, without a sync.
        fn await_other_written(&self, pages: u64, byte: u8) {
            await_that("the flusher has not written the other device", || {
                let bytes = std::fs::read(&self.other_made.0).unwrap();
                (0..pages)
                    .all(|at| bytes[2 * at as usize * PAGE..][..PAGE].iter().all(|&found| found == byte))
            });
        }
    }

    fn is_write(request: Request) -> bool {
        matches!(request, Request::Write { .. })
    }

    #[test]
    fn silent_writes_hold_back_no_other_device() {
        for backend in BACKENDS {
            let two = two(backend, is_write);
            write(&two.silent, 60, 6);
            await_that("nothing is written", || two.held.waiting() > 0);
            two.goes_on("a write, a sync or a read", || {
                write(&two.other, 60, 7);
                two.await_other_written(60, 7);
                write(&two.other, 30, 7);
                two.other.sync_data().unwrap();
                two.read_other();
            });
            assert!(two.held.waiting() > 0);
            two.held.release();
            two.silent.sync_data().unwrap();
        }
    }

    /// A request for several pages fails, and each of those for one of them is held.
    #[derive(Debug)]
    struct SilentRetries(Arc<Held>);

    impl Faults for SilentRetries {
        fn fate(&self, request: Request) -> Fate {
            match request {
                Request::Write { bytes, .. } if bytes > PAGE => Fate::Fails(libc::EIO),
                _ => Fate::Well,
            }
        }

        fn when(&self, request: Request) -> When {
            match request {
                Request::Write { bytes: PAGE, .. } => When::Released(Arc::clone(&self.0)),
                _ => When::Now,
            }
        }
    }

    #[test]
    fn silent_retries_hold_back_no_other_device() {
        for backend in BACKENDS {
            let two = two(backend, |_| false);
            let (made, faults) = (Made::new(), Arc::new(SilentRetries(Arc::clone(&two.held))));
            let how = Open::read_write().random().buffered(true).device(1).faults(faults);
            let retried = two.memory.open(&made.0, how).unwrap();
            retried.write_at(&[6; 20 * PAGE], 0).unwrap();
            await_that("no page is written by itself", || two.held.waiting() > 0);
            two.goes_on("a write, a sync or a read", || {
                write(&two.other, 60, 7);
                two.await_other_written(60, 7);
                two.other.sync_data().unwrap();
                two.read_other();
            });
            two.held.release();
            retried.sync_data().unwrap();
            assert!(std::fs::read(&made.0).unwrap()[..20 * PAGE] == [6; 20 * PAGE]);
        }
    }

    #[test]
    fn full_backlog_holds_back_no_sync_of_another_device() {
        for backend in BACKENDS {
            let two = two(backend, is_write);
            write(&two.silent, 300, 6);
            let is_full = || !two.memory.0.machine.lock().unwrap().transfers.devices[0].has_room();
            await_that("the backlog is not full", is_full);
            two.goes_on("a sync", || {
                write(&two.other, 60, 7);
                two.other.sync_data().unwrap();
                two.read_other();
            });
            assert!(is_full() && two.held.waiting() > 0);
            two.held.release();
            two.silent.sync_data().unwrap();
        }
    }

    #[test]
    fn silent_reads_hold_back_no_other_device() {
        for backend in BACKENDS {
            let two = two(backend, |request| matches!(request, Request::Read { .. } | Request::Write { .. }));
            write(&two.silent, 60, 6);
            await_that("nothing is written", || two.held.waiting() > 0);
            let mut bufs = [[0; 9]; 60];
            let reads = (100..).zip(&mut bufs).map(|(at, buf)| ReadAt { buf, offset: 2 * at * PAGE_SIZE });
            let pending = two.silent.submit(reads.collect()).unwrap();
            two.goes_on("a read, a write or a sync", || {
                two.read_other();
                write(&two.other, 60, 7);
                two.await_other_written(60, 7);
                two.other.sync_data().unwrap();
            });
            two.held.release();
            pending.wait().unwrap();
            assert_eq!(bufs, [[1; 9]; 60]);
        }
    }
}
