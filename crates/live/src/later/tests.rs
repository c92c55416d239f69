//! Syncs and writes that are awaited, and writes in batches, on devices that answer late, or fail.

#![allow(clippy::unwrap_used, reason = "tests, which make files")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use super::*;
use crate::storage::failing::{Fate, Faults, Held, Request, When};
use crate::works::THREADS_MAX;
use crate::{Backend, Memory, Open};

const PAGE: usize = 4096;
const BACKENDS: [(Backend, usize); 2] = [(Backend::Threads, 8), (Backend::Uring, 8)];

/// A device that holds some requests back until it is released, and fails others.
#[derive(Debug)]
struct Device {
    holds: fn(Request) -> bool,
    fails: fn(Request) -> bool,
    held: Arc<Held>,
    reads: AtomicUsize,
    /// The maximum number of reads at the same time.
    together: AtomicUsize,
}

impl Device {
    fn new(holds: fn(Request) -> bool, fails: fn(Request) -> bool) -> Arc<Device> {
        let (reads, together) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Device { holds, fails, held: Arc::default(), reads, together })
    }
}

impl Faults for Device {
    fn fate(&self, request: Request) -> Fate {
        if matches!(request, Request::Read { .. }) {
            // Longer than it takes another thread to begin the next one.
            let reads = self.reads.fetch_add(1, SeqCst) + 1;
            self.together.fetch_max(reads, SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            self.reads.fetch_sub(1, SeqCst);
        }
        if (self.fails)(request) { Fate::Fails(libc::ENOSPC) } else { Fate::Well }
    }

    fn when(&self, request: Request) -> When {
        if (self.holds)(request) { When::Released(Arc::clone(&self.held)) } else { When::Now }
    }
}

struct Made(PathBuf);

impl Made {
    fn new(pages: usize) -> Made {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, SeqCst);
        let path = std::env::temp_dir().join(format!("pageout-later-{}-{number}", std::process::id()));
        std::fs::write(&path, vec![1; pages * PAGE]).unwrap();
        Made(path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn cache((backend, io_threads): (Backend, usize)) -> Memory {
    let builder = Memory::builder().budget(8 << 20).backend(backend).io_threads(io_threads);
    builder.guard_wait(Duration::from_secs(60)).build().unwrap()
}

fn open(memory: &Memory, made: &Made, device: &Arc<Device>) -> File {
    let how = Open::read_write().random().buffered(true);
    memory.open(&made.0, how.faults(Arc::clone(device) as Arc<dyn Faults>)).unwrap()
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn none(_: Request) -> bool {
    false
}

#[test]
fn sync_in_flight_blocks_neither_task_nor_reads() {
    for backend in BACKENDS {
        let (memory, made) = (cache(backend), Made::new(8));
        let device = Device::new(|request| request == Request::Flush, none);
        let file = open(&memory, &made, &device);
        file.write_at(&[7; 100], 50).unwrap();
        let sync = file.submit_sync_data();
        await_that("the device is flushed", || device.held.waiting() > 0);
        assert!(!sync.is_ready());
        let mut byte = [0];
        file.read_at(&mut byte, 5 * PAGE as u64).unwrap();
        assert_eq!(byte, [1]);
        device.held.release();
        sync.wait().unwrap();
        assert_eq!(std::fs::read(&made.0).unwrap()[50..150], [7; 100]);
    }
}

#[test]
fn sync_of_failing_device_resolves_to_its_error() {
    let (memory, made) = (cache(BACKENDS[0]), Made::new(8));
    let device = Device::new(none, |request| matches!(request, Request::Write { .. }));
    let file = open(&memory, &made, &device);
    file.write_at(&[7; 100], 50).unwrap();
    for sync in [file.submit_sync_data(), file.submit_sync_all()] {
        let error = sync.wait().unwrap_err();
        assert!(matches!(error, Error::Sync { failed: 1, .. }), "{error}");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
    file.forget_and_discard().unwrap();
}

#[test]
fn sync_proceeds_while_all_writes_wait_for_a_guard() {
    let (memory, made, other) = (cache(BACKENDS[0]), Made::new(8), Made::new(8));
    let device = Device::new(none, none);
    let (file, synced) = (open(&memory, &made, &device), open(&memory, &other, &device));
    let held = file.page_mut_owned(3).unwrap();
    let writes: Vec<_> = (0..2 * THREADS_MAX as u8)
        .map(|byte| file.submit_writes(vec![(vec![byte; 10], 3 * PAGE as u64)]))
        .collect();
    synced.write_at(b"row", 0).unwrap();
    synced.submit_sync_data().wait().unwrap();
    assert!(writes.iter().all(|write| !write.is_ready()));
    drop(held);
    for (at, write) in (0..).zip(writes) {
        let (outcome, buffers) = write.wait();
        outcome.unwrap();
        assert_eq!(buffers, [vec![at; 10]]);
    }
}

#[test]
fn dropped_write_that_has_not_begun_is_not_made() {
    let (memory, made) = (cache(BACKENDS[0]), Made::new(8));
    let device = Device::new(none, none);
    let file = open(&memory, &made, &device);
    let held = file.page_mut_owned(3).unwrap();
    let blocked: Vec<_> =
        (0..THREADS_MAX).map(|_| file.submit_writes(vec![([5; 10], 3 * PAGE as u64)])).collect();
    await_that("all threads have a write", || memory.0.later.writes.queue().jobs.is_empty());
    drop(file.submit_writes(vec![([9; 10], 5 * PAGE as u64)]));
    drop(held);
    blocked.into_iter().for_each(|write| write.wait().0.unwrap());
    await_that("nothing is left", || {
        let queue = memory.0.later.writes.queue();
        queue.jobs.is_empty() && queue.idle == queue.threads.len()
    });
    assert_eq!(file.page(5).unwrap()[..10], [1; 10]);
}

#[test]
fn partial_pages_of_a_batch_are_read_together() {
    for backend in BACKENDS {
        let (memory, made) = (cache(backend), Made::new(64));
        let device = Device::new(none, none);
        let file = open(&memory, &made, &device);
        // Two pages each, of which both are changed in part.
        let bytes: Vec<_> = (0..20).map(|at| vec![at + 2; PAGE]).collect();
        let offset = |at: usize| (3 * at * PAGE + 100) as u64;
        let writes: Vec<_> =
            bytes.iter().enumerate().map(|(at, buf)| WriteAt { buf, offset: offset(at) }).collect();
        file.write_batch(&writes).unwrap();
        let together = device.together.load(SeqCst);
        assert!(together >= 4, "{backend:?}: {together} reads at a time");
        let mut expected = vec![1; 64 * PAGE];
        writes.iter().for_each(|of| expected[of.offset as usize..][..PAGE].copy_from_slice(of.buf));
        let mut found = vec![0; 64 * PAGE];
        file.read_at(&mut found, 0).unwrap();
        assert!(found == expected, "{backend:?}");
        file.sync_data().unwrap();
        assert!(std::fs::read(&made.0).unwrap() == expected, "{backend:?}");
    }
}

#[test]
fn complete_pages_of_a_batch_are_not_read() {
    let (memory, made) = (cache(BACKENDS[0]), Made::new(16));
    let device = Device::new(none, none);
    let file = open(&memory, &made, &device);
    let buf = vec![3; 2 * PAGE];
    let end = 16 * PAGE as u64;
    // The last one begins in the last page, and extends the file.
    let offsets = [0, 4 * PAGE as u64, 8 * PAGE as u64, end - PAGE as u64];
    file.write_batch(&offsets.map(|offset| WriteAt { buf: &buf, offset })).unwrap();
    assert_eq!(memory.stats().unwrap().device_reads, 0);
    assert_eq!(file.len(), end + PAGE as u64);
}

#[test]
fn batch_ends_with_its_first_failing_write() {
    let (memory, made) = (cache(BACKENDS[0]), Made::new(16));
    let device = Device::new(none, |request| matches!(request, Request::Read { offset: 8192, .. }));
    let file = open(&memory, &made, &device);
    let writes = [0, 2, 4].map(|page| WriteAt { buf: &[9; 10], offset: page * PAGE as u64 + 5 });
    let error = file.write_batch(&writes).unwrap_err();
    assert!(matches!(error, Error::Io { page: Some(2), .. }), "{error}");
    assert_eq!(file.page(0).unwrap()[5..15], [9; 10]);
    assert_eq!(file.page(4).unwrap()[5..15], [1; 10]);
}

#[test]
fn region_batch_reads_its_slots_and_writes_in_order() {
    for backend in BACKENDS {
        let (backend, io_threads) = backend;
        let device = Device::new(none, none);
        let builder = Memory::builder().budget(33 << 18).backend(backend).io_threads(io_threads);
        let builder = builder.swap_file(std::env::temp_dir(), 16 << 20).swap_buffered(true);
        let memory = builder.swap_faults(Arc::clone(&device) as Arc<dyn Faults>).build().unwrap();
        let query = memory.group("query", crate::Limits::NONE).unwrap();
        let region = memory.region(1 << 20, crate::RegionOptions::new().group(&query)).unwrap();
        region.write_at(&vec![1; 1 << 20], 0).unwrap();
        region.advise(crate::RegionAdvice::PageOut, 0..1 << 20).unwrap();
        await_that("all is in swap", || {
            // It takes what has been written; there may be less than it is asked for.
            let _ = query.write("memory.reclaim", "1M");
            let is_cached = !memory.read("/proc/vmstat").unwrap().contains("\nnr_swapcached 0\n");
            memory.stats().unwrap().anon == 0 && !is_cached
        });
        let writes: Vec<_> = (0..20u64)
            .flat_map(|at| [4, 5].map(|byte| (vec![byte; 10], 3 * at * PAGE as u64 + 100 + u64::from(byte))))
            .collect();
        let (outcome, buffers) = region.submit_writes(writes).wait();
        outcome.unwrap();
        assert_eq!(buffers.len(), 40);
        let together = device.together.load(SeqCst);
        assert!(together >= 4, "{backend:?}: {together} reads at a time");
        for page in (0..60).step_by(3) {
            let held = region.page(page).unwrap();
            assert_eq!((held[103], held[104], held[105], held[114], held[115]), (1, 4, 5, 5, 1));
        }
    }
}
