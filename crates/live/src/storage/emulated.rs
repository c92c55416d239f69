//! [`EmulatedDisk`]: a disk with one head. Its requests are made on real files, and each takes as long as the head would need.
//!
//! ```text
//!   request ─▶ waits with the others ─▶ is chosen ─▶ the file ─▶ the rest of its time ─▶ done, and the next one is chosen
//!                reads before writes, in batches by position       base + seek by distance + transfer; less if it follows
//! ```
//! The order is that of the block layer's mq-deadline, as far as its documentation goes. A batch has up to 16 requests of one direction in the order of
//! their positions. Reads go first, and writes yield to two batches. A batch begins with the oldest request if that is overdue.
//!
//! Two files are as far apart as can be. The disk remembers nothing: what is written is in the file when the call returns.
//! Figures of such a disk describe the order of requests, and not any hardware. Reports of them must state *emulated*. [live-3 7]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pageout_engine::{PAGE_SIZE, Pfn};

use super::{ByRing, Storage};
use crate::arena::Arena;

/// Requests of a batch.
const BATCH: u32 = 16;
/// Batches of reads for which writes stand back.
const STARVED_MAX: u32 = 2;
/// A batch begins with a request that has waited this long.
const OVERDUE: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];
/// Directions, as indices.
const READ: usize = 0;
const WRITE: usize = 1;

/// A disk with one head, emulated in the process: files opened on it ([`crate::Open::on_disk`]) share the head. For experiments with the order of
/// requests.
///
/// ```no_run
/// use pageout::{EmulatedDisk, Memory, Open};
/// use std::time::Duration;
///
/// let memory = Memory::builder().budget(64 << 20).build()?;
/// let disk = EmulatedDisk::new(Duration::from_millis(1), 120_000_000).seek(Duration::from_millis(8), 1 << 30);
/// let file = memory.open("table.db", Open::read_write().on_disk(&disk))?;
/// # Ok::<(), pageout::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct EmulatedDisk {
    times: Times,
    shared: Arc<Shared>,
}

/// How long a request takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Times {
    base: Duration,
    bytes_per_second: u64,
    follows: Duration,
    longest_seek: Duration,
    seek_span: u64,
}

#[derive(Debug)]
struct Shared {
    number: u64,
    files: AtomicU64,
    state: Mutex<State>,
    chosen: Condvar,
}

/// Position of a request: its file, its first byte, and its number, as several requests may have the same position.
type Position = (u64, u64, u64);

#[derive(Debug, Default)]
struct State {
    /// Waiting reads and writes, and since when each waits.
    waiting: [BTreeMap<Position, Instant>; 2],
    requests: u64,
    /// The request that the head is at.
    serving: Option<u64>,
    /// File and byte behind the previous request.
    head: Option<(u64, u64)>,
    /// Direction of the batch, and the number of requests that it may still have.
    batch: Option<(usize, u32)>,
    starved: u32,
}

impl State {
    /// Takes the request whose turn it is.
    fn choose(&mut self, now: Instant) -> Option<Position> {
        let behind = self.head.map_or((0, 0, 0), |(file, byte)| (file, byte, 0));
        if let Some((direction, left @ 1..)) = self.batch
            && let Some((&next, _)) = self.waiting[direction].range(behind..).next()
        {
            self.batch = Some((direction, left - 1));
            self.waiting[direction].remove(&next);
            return Some(next);
        }
        let [reads, writes] = [READ, WRITE].map(|direction| !self.waiting[direction].is_empty());
        let direction = match (reads, writes) {
            (false, false) => return None,
            (true, true) if self.starved < STARVED_MAX => {
                self.starved += 1;
                READ
            }
            (true, false) => READ,
            (_, true) => {
                self.starved = 0;
                WRITE
            }
        };
        self.batch = Some((direction, BATCH - 1));
        let waiting = &mut self.waiting[direction];
        let oldest = waiting.iter().min_by_key(|&(position, since)| (*since, position.2))?;
        let is_overdue = now.duration_since(*oldest.1) > OVERDUE[direction];
        let next = match waiting.range(behind..).next() {
            Some((&next, _)) if !is_overdue => next,
            // From the first position on again.
            None if !is_overdue => *waiting.first_key_value()?.0,
            _ => *oldest.0,
        };
        waiting.remove(&next);
        Some(next)
    }
}

impl Times {
    /// The time of a request of so many bytes from this position on.
    fn of(&self, head: Option<(u64, u64)>, (file, byte): (u64, u64), bytes: usize) -> Duration {
        let transfer =
            |bytes: u64| Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / self.bytes_per_second);
        if head == Some((file, byte)) {
            return self.follows.max(transfer(bytes as u64));
        }
        let span = self.seek_span;
        let distance =
            head.filter(|&(of, _)| of == file).map_or(span, |(_, head)| head.abs_diff(byte).min(span));
        let seek = self.longest_seek.as_nanos() * u128::from(distance) / u128::from(span);
        let rest = (bytes as u64).saturating_sub(PAGE_SIZE);
        self.base + Duration::from_nanos(seek as u64) + transfer(rest)
    }
}

/// Numbers of emulated disks.
static DISKS: AtomicU64 = AtomicU64::new(0);

impl EmulatedDisk {
    /// Returns a disk on which a request of 4 KiB takes this time without a seek. More bytes are transferred at this rate, in bytes per second; the
    /// minimum is 1.
    pub fn new(base: Duration, bytes_per_second: u64) -> EmulatedDisk {
        let times = Times {
            base,
            bytes_per_second: bytes_per_second.max(1),
            follows: Duration::ZERO,
            longest_seek: Duration::ZERO,
            seek_span: 1,
        };
        let shared = Shared {
            number: DISKS.fetch_add(1, Relaxed),
            files: AtomicU64::new(0),
            state: Mutex::default(),
            chosen: Condvar::new(),
        };
        EmulatedDisk { times, shared: Arc::new(shared) }
    }

    /// Sets the time of the longest seek, and the distance in bytes from which on a seek is the longest. Shorter seeks take less, in proportion. Default:
    /// seeks take no time.
    pub fn seek(mut self, longest: Duration, span: u64) -> EmulatedDisk {
        (self.times.longest_seek, self.times.seek_span) = (longest, span.max(1));
        self
    }

    /// Sets the time of a request that begins where the previous one ended, if its transfer takes less. Default: 0.
    pub fn follows(mut self, time: Duration) -> EmulatedDisk {
        self.times.follows = time;
        self
    }

    /// The number by which the machine knows it: no device of the system has such a high one.
    pub(crate) fn device(&self) -> u64 {
        u64::MAX - self.shared.number
    }

    /// A file on it.
    pub(crate) fn file(&self, storage: Arc<dyn Storage>) -> OnDisk {
        let number = self.shared.files.fetch_add(1, Relaxed);
        OnDisk { storage, disk: self.clone(), number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A request that panics has left the state before.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request when it is its turn. It takes as long as the disk needs.
    fn serve<T>(
        &self,
        direction: usize,
        (file, byte): (u64, u64),
        bytes: usize,
        make: impl FnOnce() -> T,
    ) -> T {
        let mut state = self.state();
        state.requests += 1;
        let number = state.requests;
        let began = Instant::now();
        state.waiting[direction].insert((file, byte, number), began);
        if state.serving.is_none() {
            state.serving = state.choose(began).map(|next| next.2);
            debug_assert_eq!(state.serving, Some(number), "no other request waits for an idle disk");
        }
        let wait = |state: &mut State| state.serving != Some(number);
        let mut state = self.shared.chosen.wait_while(state, wait).unwrap_or_else(PoisonError::into_inner);
        let time = self.times.of(state.head, (file, byte), bytes);
        state.head = Some((file, byte.saturating_add(bytes as u64)));
        drop(state);
        // The next one is chosen even if the request panics.
        let _turn = Turn(self);
        let began = Instant::now();
        let made = make();
        std::thread::sleep(time.saturating_sub(began.elapsed()));
        made
    }
}

/// A request that the head is at. When it goes, the next one is chosen.
struct Turn<'a>(&'a EmulatedDisk);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.serving = state.choose(Instant::now()).map(|next| next.2);
        drop(state);
        self.0.shared.chosen.notify_all();
    }
}

/// A file on an emulated disk.
pub(crate) struct OnDisk {
    storage: Arc<dyn Storage>,
    disk: EmulatedDisk,
    number: u64,
}

impl Storage for OnDisk {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.storage.set_len(bytes)
    }

    fn read(&self, arena: &Arena, frames: &[Pfn], skip: usize, offset: u64) -> io::Result<usize> {
        let bytes = frames.len() * PAGE_SIZE as usize - skip;
        self.disk.serve(READ, (self.number, offset), bytes, || self.storage.read(arena, frames, skip, offset))
    }

    fn write(&self, arena: &Arena, frames: &[Pfn], offset: u64) -> io::Result<usize> {
        let bytes = frames.len() * PAGE_SIZE as usize;
        self.disk.serve(WRITE, (self.number, offset), bytes, || self.storage.write(arena, frames, offset))
    }

    fn expect_write(&self, end: u64) {
        self.storage.expect_write(end);
    }

    fn flush(&self, is_all: bool) -> io::Result<()> {
        self.storage.flush(is_all)
    }

    fn by_ring(&self) -> ByRing {
        ByRing::Call
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use super::*;
    use crate::{Backend, Memory, Open};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn request_takes_longer_with_the_distance_of_its_seek() {
        let disk = EmulatedDisk::new(MS, 4_096_000).seek(8 * MS, 1_000).follows(MS / 10);
        let time = |head, at, bytes| disk.times.of(head, at, bytes);
        assert_eq!(time(None, (0, 5), 4096), 9 * MS, "the head is nowhere yet");
        assert_eq!(time(Some((0, 5)), (0, 105), 4096), MS + 8 * MS / 10);
        assert_eq!(time(Some((0, 105)), (0, 5), 4096), MS + 8 * MS / 10, "the same way back");
        assert_eq!(time(Some((1, 5)), (0, 5), 4096), 9 * MS, "another file");
        assert_eq!(time(Some((0, 5)), (0, 5), 4096), MS, "it follows, and its transfer takes this long");
        assert_eq!(time(Some((0, 5)), (0, 5), 40), MS / 10, "it follows");
        assert_eq!(time(Some((0, 9_000)), (0, 5), 3 * 4096), 11 * MS, "the longest seek, and two pages more");
    }

    /// First bytes in the order in which they are chosen.
    fn order(state: &mut State) -> Vec<u64> {
        let chosen = std::iter::from_fn(|| state.choose(Instant::now()));
        chosen.map(|(_, byte, _)| byte).collect()
    }

    fn waiting(state: &mut State, direction: usize, bytes: &[u64]) {
        for &byte in bytes {
            state.requests += 1;
            state.waiting[direction].insert((0, byte, state.requests), Instant::now());
        }
    }

    #[test]
    fn requests_go_by_position_and_reads_first() {
        let mut state = State::default();
        waiting(&mut state, WRITE, &[9, 1, 5]);
        waiting(&mut state, READ, &[80, 20, 50]);
        assert_eq!(order(&mut state), [20, 50, 80, 1, 5, 9]);
        state.head = Some((0, 50));
        waiting(&mut state, READ, &[80, 20, 50]);
        assert_eq!(order(&mut state), [50, 80, 20], "on from the head");
    }

    #[test]
    fn writes_yield_to_two_batches_of_reads() {
        let mut state = State::default();
        let reads: Vec<u64> = (0..60).collect();
        waiting(&mut state, READ, &reads);
        waiting(&mut state, WRITE, &[99]);
        // The head moves with each request.
        let mut order = Vec::new();
        while let Some((file, byte, _)) = state.choose(Instant::now()) {
            state.head = Some((file, byte));
            order.push(byte);
        }
        assert_eq!(order.iter().position(|&byte| byte == 99), Some(2 * BATCH as usize), "{order:?}");
        assert_eq!(order.len(), 61);
    }

    #[test]
    fn overdue_request_begins_a_batch() {
        let mut state = State::default();
        waiting(&mut state, READ, &[7, 30]);
        let long_ago = Instant::now().checked_sub(2 * OVERDUE[READ]).unwrap();
        state.waiting[READ].insert((0, 20, 0), long_ago);
        assert_eq!(order(&mut state)[0], 20);
    }

    #[test]
    fn files_on_an_emulated_disk_have_their_bytes_and_its_times() {
        for (backend, threads) in [(Backend::Any, 2), (Backend::Threads, 2), (Backend::Threads, 0)] {
            let path = std::env::temp_dir().join(format!("pageout-emulated-{}", std::process::id()));
            std::fs::write(&path, vec![3; 64 * PAGE_SIZE as usize]).unwrap();
            let memory = Memory::builder().budget(16 << 20).backend(backend).io_threads(threads);
            let memory = memory.build().unwrap();
            let disk = EmulatedDisk::new(2 * MS, 1 << 40);
            let how = Open::read_write().random().buffered(true).on_disk(&disk);
            let file = memory.open(&path, how).unwrap();
            let began = Instant::now();
            let mut byte = [0];
            for page in 0..20 {
                file.read_at(&mut byte, page * 2 * PAGE_SIZE).unwrap();
                assert_eq!(byte, [3]);
            }
            assert!(began.elapsed() >= 40 * MS, "20 reads took {:?}", began.elapsed());
            for page in 0..20 {
                file.write_at(&[page as u8; PAGE_SIZE as usize], page * 3 * PAGE_SIZE).unwrap();
            }
            let began = Instant::now();
            file.sync_data().unwrap();
            assert!(began.elapsed() >= 40 * MS, "20 writes took {:?}", began.elapsed());
            let bytes = std::fs::read(&path).unwrap();
            (0..20).for_each(|page| assert_eq!(bytes[page * 3 * PAGE_SIZE as usize], page as u8));
            drop((file, memory));
            std::fs::remove_file(&path).unwrap();
        }
    }
}
