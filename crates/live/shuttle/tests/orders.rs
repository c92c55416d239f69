//! The real engine, its machine and readers in orders of their threads that are drawn: every byte read is its page's, nobody sleeps for ever, and the
//! engine's invariants hold.
//!
//! ```text
//!   readers ── hits, misses, guards ──┐
//!   who forgets the file ─────────────┼──▶ one group of some 40 pages over a file of 96
//!   who writes memory.reclaim ────────┘    kernel threads, threads that read
//! ```
//! What `compared/tests/gate/` tries in all orders is drawn here, so that a step of the gate that is left out may pass: to find that a reader looks at the gate before the word, or not
//! at the gate again, a page has to go, another to come and the first to come back between two of its looks. And an access is seen by all at once here: an
//! order that is too weak is loom's to find. `ORDERS` says how many are tried (ci/slow/shuttle.sh). A failure prints the order; `shuttle::replay` runs it again.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pageout_shuttle::{
    Advice, Backend, Delay, Error, File, Limits, Memory, Node, Open, ReadAt, Region, RegionAdvice,
    RegionOptions, Zswap,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

const PAGE: u64 = 4096;
/// Of the file.
const PAGES: u64 = 96;
/// Of the group: the engine reclaims 32 at a time.
const LIMIT: u64 = 40;

/// A file whose pages say which they are, at their beginning and at their end, and which goes with this value.
struct Made(PathBuf);

impl Made {
    fn new(name: &str) -> Made {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let pages =
            (0..PAGES).flat_map(|page| std::iter::repeat_n(page.to_le_bytes(), PAGE as usize / 8).flatten());
        std::fs::write(&path, pages.collect::<Vec<u8>>()).unwrap();
        Made(path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// How many orders are tried of each kind.
fn orders() -> usize {
    std::env::var("ORDERS").ok().and_then(|orders| orders.parse().ok()).unwrap_or(100)
}

/// Runs in orders that are drawn: any, and those with few changes from one thread to another.
fn try_orders(act: impl Fn() + Send + Sync + 'static) {
    let act = Arc::new(act);
    let schedulers: [Box<dyn Scheduler + Send>; 2] =
        [Box::new(RandomScheduler::new(orders())), Box::new(PctScheduler::new(3, orders()))];
    for scheduler in schedulers {
        let mut config = Config::new();
        // The engine is called on it.
        config.stack_size = 1 << 20;
        config.max_steps = shuttle::MaxSteps::FailAfter(1 << 22);
        let act = Arc::clone(&act);
        Runner::new(scheduler, config).run(move || act());
    }
}

fn cache(policy: &str, made: &Path, limit: u64, io_threads: usize) -> (Memory, File) {
    // io_uring's answers come when the kernel has them, in no order that is drawn.
    let builder = Memory::builder().budget(8 << 20).files(1 << 20).policy(policy);
    let memory = builder.backend(Backend::Threads).io_threads(io_threads).build().unwrap();
    let tenant = memory.group("tenant", Limits { max: Some(limit * PAGE), ..Limits::NONE }).unwrap();
    // Through the system's cache: what is at stake here are threads.
    let file = memory.open(made, Open::read().random().buffered(true).group(&tenant)).unwrap();
    (memory, file)
}

fn check(bytes: &[u8], page: u64) {
    for word in bytes.chunks_exact(8) {
        assert_eq!(word, page.to_le_bytes(), "page {page} is read as another");
    }
}

/// Pages that a thread reads: hot ones, and others that push them out.
fn walk(thread: u64, reads: u64) -> impl Iterator<Item = u64> {
    (0..reads).map(move |at| match at % 3 {
        0 => at / 3 % 4,
        _ => (at * 29 + thread * 37) % PAGES,
    })
}

fn read(file: &File, thread: u64, reads: u64) {
    let mut buf = vec![0; PAGE as usize];
    for page in walk(thread, reads) {
        file.read_at(&mut buf, page * PAGE).unwrap();
        check(&buf, page);
    }
}

fn look(file: &File, thread: u64, reads: u64) {
    for page in walk(thread, reads) {
        let guard = file.page(page).unwrap();
        check(&guard, page);
        thread::yield_now();
        check(&guard, page);
    }
}

#[test]
fn readers_and_guards_see_their_pages_while_others_evict() {
    let made = Made::new("readers");
    let path = made.0.clone();
    try_orders(move || {
        for policy in ["mglru@6.12", "classic@6.12"] {
            let (memory, file) = cache(policy, &path, LIMIT, 1);
            let threads = [
                thread::spawn({
                    let file = file.clone();
                    move || read(&file, 1, 60)
                }),
                thread::spawn({
                    let file = file.clone();
                    move || look(&file, 2, 60)
                }),
            ];
            read(&file, 0, 60);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let stats = memory.stats().unwrap();
            assert_eq!(stats.pinned, 0);
            assert!(stats.device_reads > PAGES, "nothing was evicted and read again");
        }
    });
}

#[test]
fn pages_that_take_turns_in_one_frame_are_read_as_themselves() {
    let made = Made::new("turns");
    let path = made.0.clone();
    try_orders(move || {
        // The frame that was freed last is the next one that is taken: while one copies, its page may go, another come, and the first come back.
        let (memory, file) = cache("mglru@6.12", &path, LIMIT, 0);
        let turns = thread::spawn({
            let file = file.clone();
            move || {
                for page in [0, 1].into_iter().cycle().take(24) {
                    file.advise(Advice::DontNeed, (1 - page) * PAGE..(2 - page) * PAGE).unwrap();
                    check(&file.page(page).unwrap(), page);
                }
            }
        });
        let mut buf = vec![0; PAGE as usize];
        for page in [0, 0, 1].into_iter().cycle().take(24) {
            file.read_at(&mut buf, page * PAGE).unwrap();
            check(&buf, page);
            let guard = file.page(page).unwrap();
            check(&guard, page);
            thread::yield_now();
            check(&guard, page);
        }
        turns.join().unwrap();
        assert_eq!(memory.stats().unwrap().pinned, 0);
    });
}

#[test]
fn a_page_that_two_miss_is_read_once() {
    let made = Made::new("once");
    let path = made.0.clone();
    try_orders(move || {
        let (memory, file) = cache("mglru@6.12", &path, LIMIT, 1);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let file = file.clone();
                thread::spawn(move || {
                    for page in 0..6 {
                        check(&file.page(page).unwrap(), page);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(memory.stats().unwrap().device_reads, 6);
    });
}

#[test]
fn batches_beside_readers_come_to_an_end_whoever_reads() {
    let made = Made::new("batches");
    let path = made.0.clone();
    try_orders(move || {
        let (_, file) = cache("classic@6.12", &path, LIMIT, 2);
        let batch = thread::spawn({
            let file = file.clone();
            move || {
                for first in [0, 11, 50] {
                    let mut bufs = vec![[0; PAGE as usize]; 12];
                    let reads = bufs.iter_mut().zip(first..);
                    let mut reads: Vec<ReadAt> =
                        reads.map(|(buf, page)| ReadAt { buf, offset: page * PAGE }).collect();
                    file.read_batch(&mut reads).unwrap();
                    bufs.iter().zip(first..).for_each(|(buf, page)| check(buf, page));
                }
            }
        });
        read(&file, 5, 40);
        batch.join().unwrap();
    });
}

#[test]
fn reads_that_are_waited_for_later_or_given_up_come_to_an_end_beside_readers() {
    let made = Made::new("pending");
    let path = made.0.clone();
    try_orders(move || {
        let (memory, file) = cache("mglru@6.12", &path, LIMIT, 1);
        let later = thread::spawn({
            let file = file.clone();
            move || {
                for (first, is_given_up) in [(0, false), (30, true), (62, false)] {
                    let mut bufs = vec![[0; PAGE as usize]; 8];
                    let reads = bufs.iter_mut().zip(first..);
                    let reads = reads.map(|(buf, page)| ReadAt { buf, offset: page * PAGE }).collect();
                    let pending = file.submit(reads).unwrap();
                    thread::yield_now();
                    if !is_given_up {
                        pending.wait().unwrap();
                        bufs.iter().zip(first..).for_each(|(buf, page)| check(buf, page));
                    }
                }
            }
        });
        read(&file, 2, 40);
        later.join().unwrap();
        assert_eq!(memory.stats().unwrap().pinned, 0);
    });
}

#[test]
fn a_file_that_is_forgotten_under_readers_is_read_or_forgotten() {
    let made = Made::new("forgotten");
    let path = made.0.clone();
    try_orders(move || {
        let (memory, file) = cache("mglru@6.12", &path, LIMIT, 1);
        let reader = thread::spawn({
            let file = file.clone();
            move || {
                let mut buf = vec![0; PAGE as usize];
                for page in walk(1, 30) {
                    match file.read_at(&mut buf, page * PAGE) {
                        Ok(()) => check(&buf, page),
                        Err(Error::Forgotten { .. }) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
        read(&file, 0, 9);
        match file.clone().forget() {
            Ok(()) => {
                assert!(matches!(file.page(0).map(drop), Err(Error::Forgotten { .. })));
                reader.join().unwrap();
                assert_eq!(memory.stats().unwrap().resident, 0);
            }
            Err(Error::Pinned { .. }) => reader.join().unwrap(),
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn what_the_group_gives_back_by_order_is_not_what_a_guard_holds() {
    let made = Made::new("reclaim");
    let path = made.0.clone();
    try_orders(move || {
        let (memory, file) = cache("classic@6.12", &path, LIMIT, 1);
        let writer = thread::spawn({
            let memory = memory.clone();
            move || {
                for _ in 0..3 {
                    // As much as it can: guards may be in the way.
                    let _ = memory.write("/sys/fs/cgroup/tenant/memory.reclaim", &(16 * PAGE).to_string());
                }
            }
        });
        look(&file, 3, 45);
        writer.join().unwrap();
    });
}

#[test]
fn pages_that_move_between_fast_and_slow_memory_are_read_as_themselves() {
    let made = Made::new("moves");
    let path = made.0.clone();
    try_orders(move || {
        let slow = Node::slow(4 << 20).emulated(Delay::per_page(Duration::ZERO));
        let builder = Memory::builder().budget(14 << 20).files(1 << 20).policy("classic@6.12").io_threads(1);
        let memory = builder.backend(Backend::Threads).node(slow).build().unwrap();
        let tenant = memory.group("tenant", Limits { max: Some(LIMIT * PAGE), ..Limits::NONE }).unwrap();
        // What is brought in is slow at first. What is promoted is demoted when the group has to give something back.
        tenant.write("cpuset.mems", "1").unwrap();
        let file = memory.open(&path, Open::read().random().buffered(true).group(&tenant)).unwrap();
        let hot = |file: &File| {
            let mut buf = vec![0; 3 * PAGE as usize];
            for first in (0..3).cycle().take(18) {
                file.read_at(&mut buf, 3 * first * PAGE).unwrap();
                buf.chunks(PAGE as usize).zip(3 * first..).for_each(|(bytes, page)| check(bytes, page));
            }
        };
        let threads = [
            thread::spawn({
                let file = file.clone();
                move || hot(&file)
            }),
            thread::spawn({
                let file = file.clone();
                move || look(&file, 2, 30)
            }),
        ];
        read(&file, 1, 40);
        hot(&file);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let stats = memory.stats().unwrap();
        assert!(stats.promoted > 0, "{stats:?}");
        assert_eq!(stats.pinned, 0);
    });
}

/// A word that is all over a page: which one it is, and its how manieth writing.
fn stamp(page: u64, turn: u64) -> Vec<u8> {
    (page << 32 | turn).to_le_bytes().repeat(PAGE as usize / 8)
}

#[test]
fn what_is_written_beside_readers_and_syncs_is_there_and_nobody_sees_half_of_it() {
    const WRITTEN: u64 = 60;
    let made = Made::new("written");
    let path = made.0.clone();
    try_orders(move || {
        for (policy, is_stable) in [("mglru@6.12", false), ("classic@2010", true)] {
            std::fs::write(&path, (0..WRITTEN).flat_map(|page| stamp(page, 0)).collect::<Vec<u8>>()).unwrap();
            let builder = Memory::builder().budget(8 << 20).files(1 << 20).policy(policy);
            let memory = builder.backend(Backend::Threads).io_threads(1).build().unwrap();
            let tenant = memory.group("tenant", Limits { max: Some(LIMIT * PAGE), ..Limits::NONE }).unwrap();
            let how = Open::read_write().random().buffered(true).stable_writes(is_stable).group(&tenant);
            let file = memory.open(&path, how).unwrap();
            let writer = |thread: u64| {
                let file = file.clone();
                thread::spawn(move || {
                    for turn in 1..=25 {
                        // Each page has one writer.
                        let page = (turn * 7 % (WRITTEN / 2)) * 2 + thread;
                        if turn % 3 == 0 {
                            // Others read, sync and evict while half of it is there.
                            let mut guard = file.page_mut(page).unwrap();
                            let (first, second) = guard.split_at_mut(PAGE as usize / 2);
                            first.copy_from_slice(&stamp(page, turn)[..PAGE as usize / 2]);
                            (0..4).for_each(|_| thread::yield_now());
                            second.copy_from_slice(&stamp(page, turn)[PAGE as usize / 2..]);
                        } else {
                            file.write_at(&stamp(page, turn), page * PAGE).unwrap();
                        }
                        let mut buf = vec![0; PAGE as usize];
                        file.read_at(&mut buf, page * PAGE).unwrap();
                        assert!(buf == stamp(page, turn), "page {page} is not as it was written last");
                    }
                })
            };
            let writers = [writer(0), writer(1)];
            let mut buf = vec![0; PAGE as usize];
            for at in 0..20 {
                let page = at * 11 % WRITTEN;
                file.read_at(&mut buf, page * PAGE).unwrap();
                assert!(buf.chunks(8).all(|word| word == &buf[..8]), "half a write");
                if at % 8 == 7 {
                    file.sync_data().unwrap();
                }
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            file.sync_data().unwrap();
            let stats = memory.stats().unwrap();
            assert_eq!((stats.dirty, stats.writeback, stats.pinned), (0, 0, 0));
            for (page, bytes) in (0..).zip(std::fs::read(&path).unwrap().chunks(PAGE as usize)) {
                file.read_at(&mut buf, page * PAGE).unwrap();
                assert!(buf == bytes, "page {page} is synced, and its device has another one");
            }
        }
    });
}

/// A region of as many pages as the file, in a group with memory for some of them.
fn heap(policy: &str, io_threads: usize) -> (Memory, Region) {
    let builder = Memory::builder().budget(8 << 20).files(4 << 20).policy(policy);
    let builder = builder.swap_file(std::env::temp_dir(), 1 << 20).swap_buffered(true);
    let memory = builder.backend(Backend::Threads).io_threads(io_threads).build().unwrap();
    let tenant = memory.group("tenant", Limits { max: Some(LIMIT * PAGE), ..Limits::NONE }).unwrap();
    let region = memory.region(PAGES * PAGE, RegionOptions::new().group(&tenant)).unwrap();
    (memory, region)
}

/// The version of a region's page, which has its number and version in each word.
fn version_of(bytes: &[u8], page: u64) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let first = word(&bytes[..8]);
    assert!(bytes.chunks_exact(8).all(|bytes| word(bytes) == first), "page {page} is of several moments");
    assert!(first == 0 || first >> 32 == page, "page {page} is read as {}", first >> 32);
    first & u64::from(u32::MAX)
}

fn versioned(page: u64, version: u64) -> Vec<u8> {
    (page << 32 | version).to_le_bytes().repeat(PAGE as usize / 8)
}

/// Writes the pages of one thread, by copies and in place, and reads pages of all threads.
fn write_and_look(region: &Region, thread: u64, threads: u64, rounds: u64) {
    let mut versions = [0; PAGES as usize];
    let mut buf = vec![0; PAGE as usize];
    for at in 0..rounds {
        let page = (at * 31 + thread * 7) % (PAGES / threads) * threads + thread;
        let version = &mut versions[page as usize];
        *version += 1;
        match at % 3 {
            0 => {
                let mut guard = region.page_mut(page).unwrap();
                assert_eq!(version_of(&guard, page), *version - 1);
                thread::yield_now();
                guard.copy_from_slice(&versioned(page, *version));
            }
            _ => region.write_at(&versioned(page, *version), page * PAGE).unwrap(),
        }
        let other = (at * 29 + thread) % PAGES;
        let guard = region.page(other).unwrap();
        let seen = version_of(&guard, other);
        thread::yield_now();
        assert_eq!(version_of(&guard, other), seen, "page {other} changes under a guard");
        drop(guard);
        region.read_at(&mut buf, page * PAGE).unwrap();
        assert_eq!(version_of(&buf, page), *version, "page {page}");
    }
    for page in (thread..PAGES).step_by(threads as usize) {
        region.read_at(&mut buf, page * PAGE).unwrap();
        assert_eq!(version_of(&buf, page), versions[page as usize], "page {page} in the end");
    }
}

#[test]
fn budget_changes_beside_guards_and_readers() {
    const MIB: u64 = 1 << 20;
    let made = Made::new("budget");
    let path = made.0.clone();
    try_orders(move || {
        let builder = Memory::builder().budget(10 * MIB).files(7 * MIB).policy("mglru@6.12");
        let memory = builder.backend(Backend::Threads).io_threads(1).build().unwrap();
        let file = memory.open(&path, Open::read().random().buffered(true)).unwrap();
        // The first frames are in use when pages of the file are read, and free later: those pages are at the end of memory, and have to move.
        let most = 6 * MIB;
        let region = memory.region(most, RegionOptions::new()).unwrap();
        region.write_at(&vec![1; most as usize], 0).unwrap();
        (0..PAGES).for_each(|page| check(&file.page(page).unwrap(), page));
        region.set_len(1).unwrap();
        let threads = [
            thread::spawn({
                let file = file.clone();
                move || read(&file, 1, 60)
            }),
            thread::spawn({
                let file = file.clone();
                move || look(&file, 2, 60)
            }),
        ];
        for budget in [9 * MIB, 10 * MIB, 8 * MIB + 512 * 1024, 10 * MIB] {
            let held = file.page(5).unwrap();
            memory.set_budget(budget).unwrap();
            check(&held, 5);
            drop(held);
            assert_eq!(memory.budget(), budget);
            let stats = memory.stats().unwrap();
            assert!(stats.resident <= stats.frames && stats.frames * PAGE <= budget);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(memory.stats().unwrap().pinned, 0);
        let vmstat = memory.read("/proc/vmstat").unwrap();
        assert!(!vmstat.contains("pgmigrate_success 0\n"), "no page has moved");
    });
}

#[test]
fn region_loses_no_write_while_others_evict() {
    for (policy, io_threads) in [("mglru@6.12", 1), ("classic@6.12", 2)] {
        try_orders(move || {
            let (memory, region) = heap(policy, io_threads);
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let region = region.clone();
                    thread::spawn(move || write_and_look(&region, thread, 3, 60))
                })
                .collect();
            for at in 0..6 {
                let pages = at * 13 % PAGES..(at * 13 + 30).min(PAGES);
                region.advise(RegionAdvice::PageOut, pages.start * PAGE..pages.end * PAGE).unwrap();
                region.prefetch(pages.start * PAGE..pages.end * PAGE).unwrap();
                thread::yield_now();
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(memory.stats().unwrap().pinned, 0);
        });
    }
}

#[test]
fn compressed_pages_lose_no_write_while_they_are_written_back() {
    for (policy, io_threads) in [("mglru@6.12", 1), ("classic@6.8", 2)] {
        try_orders(move || {
            let builder = Memory::builder().budget(9 << 20).files(4 << 20).policy(policy);
            let builder = builder.swap_file(std::env::temp_dir(), 1 << 20).swap_buffered(true);
            let builder = builder.zswap(Zswap::lz4()).backend(Backend::Threads).io_threads(io_threads);
            let memory = builder.build().unwrap();
            let tenant = memory.group("tenant", Limits { max: Some(LIMIT * PAGE), ..Limits::NONE }).unwrap();
            // A page of the pool has the bytes of all pages: with more, each store writes another page back.
            tenant.write("memory.zswap.max", "4096").unwrap();
            let region = memory.region(PAGES * PAGE, RegionOptions::new().group(&tenant)).unwrap();
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let region = region.clone();
                    thread::spawn(move || write_and_look(&region, thread, 3, 50))
                })
                .collect();
            for at in 0..4 {
                let pages = at * 13 % PAGES..(at * 13 + 30).min(PAGES);
                region.advise(RegionAdvice::PageOut, pages.start * PAGE..pages.end * PAGE).unwrap();
                region.prefetch(pages.start * PAGE..pages.end * PAGE).unwrap();
                thread::yield_now();
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let stats = memory.stats().unwrap();
            assert!(stats.zswap_stores > 0 && stats.pinned == 0, "{stats:?}");
        });
    }
}

#[test]
fn page_in_swap_is_read_once_for_all_who_want_it() {
    try_orders(|| {
        let (memory, region) = heap("mglru@6.12", 1);
        (0..PAGES).for_each(|page| region.write_at(&versioned(page, 1), page * PAGE).unwrap());
        let before = memory.stats().unwrap().device_reads;
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let region = region.clone();
                thread::spawn(move || match thread {
                    0 => assert_eq!(version_of(&region.page(3).unwrap(), 3), 1),
                    1 => {
                        let mut buf = vec![0; PAGE as usize];
                        region.read_at(&mut buf, 3 * PAGE).unwrap();
                        assert_eq!(version_of(&buf, 3), 1);
                    }
                    _ => {
                        let mut buf = vec![0; PAGE as usize];
                        let reads = vec![ReadAt { buf: &mut buf, offset: 3 * PAGE }];
                        region.submit(reads).unwrap().wait().unwrap();
                        assert_eq!(version_of(&buf, 3), 1);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(memory.stats().unwrap().device_reads - before, 1);
    });
}

#[test]
fn region_dropped_with_reads_in_flight_leaves_nothing() {
    try_orders(|| {
        let (memory, region) = heap("mglru@6.12", 1);
        (0..PAGES).for_each(|page| region.write_at(&versioned(page, 1), page * PAGE).unwrap());
        let other = region.clone();
        let reader = thread::spawn(move || {
            let mut bufs = vec![vec![0; PAGE as usize]; 3];
            let reads = (0..).zip(&mut bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE });
            drop(other.submit(reads.collect()).unwrap());
        });
        region.set_len(50 * PAGE + 8).unwrap();
        drop(region);
        reader.join().unwrap();
        let next = memory.region(PAGES * PAGE, RegionOptions::new()).unwrap();
        for page in 0..PAGES {
            assert_eq!(version_of(&next.page(page).unwrap(), page), 0);
            next.write_at(&versioned(page, 2), page * PAGE).unwrap();
        }
        (0..PAGES).for_each(|page| assert_eq!(version_of(&next.page(page).unwrap(), page), 2));
    });
}
