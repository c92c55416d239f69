//! Reads that are under way while their thread does something else: submitted, polled, awaited, given up.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use crate::made::{Made, PAGE, check};
use pageout::{Advice, Backend, Error, File, Limits, Memory, Open, Pending, ReadAt};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// So many reads of a buffer each, this far apart.
fn reads(buffers: &mut [Vec<u8>], first: u64, step: u64) -> Vec<ReadAt<'_>> {
    (0..).zip(buffers).map(|(at, buf)| ReadAt { buf, offset: first + at * step }).collect()
}

fn buffers(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    vec![vec![0; bytes]; count]
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counts(AtomicU32);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs futures in turn, each when it is woken, until all are over.
fn run_all(pending: Vec<Pending<'_>>) -> Vec<Result<(), Error>> {
    let counts: Vec<Arc<Counts>> = pending.iter().map(|_| Arc::default()).collect();
    let mut pending: Vec<_> = pending.into_iter().map(|one| (Some(Box::pin(one)), None, u32::MAX)).collect();
    let since = Instant::now();
    while pending.iter().any(|(one, ..)| one.is_some()) {
        for ((one, outcome, seen), counts) in pending.iter_mut().zip(&counts) {
            let woken = counts.0.load(Ordering::Relaxed);
            let Some(future) = one.as_mut().filter(|_| *seen != woken) else { continue };
            *seen = woken;
            let waker = Waker::from(Arc::clone(counts));
            if let Poll::Ready(told) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                (*one, *outcome) = (None, Some(told));
            }
        }
        assert!(since.elapsed() < Duration::from_secs(60), "somebody was not woken");
        std::thread::yield_now();
    }
    pending.into_iter().map(|(_, outcome, _)| outcome.unwrap()).collect()
}

#[test]
fn reads_that_one_thread_awaits_together_are_read_whole_whoever_reads_them() {
    let made = Made::new("together", 4096 * PAGE);
    for (backend, io_threads) in [
        (Backend::Any, 8),
        (Backend::Any, 0),
        (Backend::Threads, 8),
        (Backend::Threads, 1),
        (Backend::Threads, 0),
    ] {
        let memory =
            Memory::builder().budget(8 << 20).backend(backend).io_threads(io_threads).build().unwrap();
        // Fewer pages than a flight has: not all can be in memory together.
        let small = memory.group("small", Limits { max: Some(16 * PAGE as u64), ..Limits::NONE }).unwrap();
        let files = [
            memory.open(&made.0, Open::read()).unwrap(),
            memory.open(&made.0, Open::read().random()).unwrap(),
            memory.open(&made.0, Open::read().random().group(&small)).unwrap(),
        ];
        for round in 0..8 {
            let mut all: Vec<_> = files.iter().map(|_| buffers(70, 5000)).collect();
            let pending = (0..).zip(files.iter().zip(&mut all)).map(|(at, (file, buffers))| {
                file.submit(reads(buffers, 300_000 * round + 1_000 * at, 200_000)).unwrap()
            });
            assert!(run_all(pending.collect()).iter().all(Result::is_ok));
            for (at, buffers) in all.iter().enumerate() {
                for (read, buffer) in buffers.iter().enumerate() {
                    check(buffer, 300_000 * round as usize + 1_000 * at + 200_000 * read);
                }
            }
        }
        assert_eq!(memory.stats().unwrap().pinned, 0);
    }
}

#[test]
fn a_read_that_is_ready_is_waited_for_by_nobody() {
    let made = Made::new("ready", 256 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let mut first = buffers(40, 700);
    let mut pending = file.submit(reads(&mut first, 5, 20_000)).unwrap();
    while !pending.is_ready() {
        std::thread::yield_now();
    }
    assert!(pending.is_ready(), "it stays so");
    pending.wait().unwrap();
    first.iter().enumerate().for_each(|(at, buffer)| check(buffer, 5 + at * 20_000));
    // Now all are in memory: the first look finds them so.
    let before = memory.stats().unwrap();
    let mut again = buffers(40, 700);
    let mut pending = pin!(file.submit(reads(&mut again, 5, 20_000)).unwrap());
    assert!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    let after = memory.stats().unwrap();
    assert_eq!((after.misses, after.device_reads), (before.misses, before.device_reads));
    assert!(matches!(
        file.submit(reads(&mut buffers(1, 9), 256 * 4096 - 3, 1)),
        Err(Error::BeyondEnd { .. })
    ));
}

#[test]
fn reads_that_are_given_up_hold_nothing() {
    let made = Made::new("given-up", 4096 * PAGE);
    for backend in [Backend::Any, Backend::Threads] {
        let memory = Memory::builder().budget(8 << 20).backend(backend).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        for round in 0..50 {
            let mut some = buffers(60, 700);
            let mut pending = file.submit(reads(&mut some, round * 3 * 4096, 200_000)).unwrap();
            if round % 2 == 0 {
                pending.is_ready();
            }
        }
        // Whoever wants to forget it waits for all that is under way, and then nobody holds a page.
        file.forget().unwrap();
        let stats = memory.stats().unwrap();
        assert_eq!((stats.pinned, stats.resident), (0, 0));
    }
}

/// Owns the last handle of a file, so that its drop closes the file.
struct Owns(#[expect(dead_code, reason = "it is there to be dropped")] File);

impl Wake for Owns {
    fn wake(self: Arc<Self>) {}
}

/// Polls reads that are under way with wakers that own a handle each, so often at most, and drops them. Fails if that takes too long.
fn poll_with_owners(name: &str, polls: u32) {
    let (made, other) = (Made::new(name, 4096 * PAGE), Made::new(&format!("{name}-other"), PAGE));
    let (sender, receiver) = std::sync::mpsc::channel();
    // A thread of its own: where this fails, it hangs, and so would the end of the cache.
    std::thread::spawn(move || {
        let memory = Memory::builder().budget(8 << 20).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        for round in 0..100 {
            let mut some = buffers(32, 9);
            let first = round * 40 * 4096;
            let mut pending = file.submit(reads(&mut some, first, 4096)).unwrap();
            for _ in 0..polls {
                let waker = Waker::from(Arc::new(Owns(memory.open(&other.0, Open::read()).unwrap())));
                if Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_ready() {
                    break;
                }
            }
        }
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(120)).expect("the cache hangs");
}

#[test]
fn waker_that_outlives_its_reads_may_close_a_file() {
    poll_with_owners("outlives", 1);
}

#[test]
fn waker_that_another_replaces_may_close_a_file() {
    poll_with_owners("replaces", u32::MAX);
}

/// Makes calls that wait for the cache's own threads when it wakes, once.
struct Calls {
    memory: Memory,
    once: std::sync::Mutex<Option<(File, std::sync::mpsc::Sender<()>)>>,
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        let Some((file, ends)) = self.once.lock().unwrap().take() else { return };
        // More than may be dirty.
        (0..128).for_each(|at| file.write_at(&[7; 65536], at * 65536).unwrap());
        file.sync_data().unwrap();
        self.memory.set_budget(10 << 20).unwrap();
        let mut some = buffers(8, 4096);
        file.submit(reads(&mut some, 0, 100 * 4096)).unwrap().wait().unwrap();
        assert!(some.iter().all(|buf| buf[..] == [7; 4096]));
        file.set_len(4096).unwrap();
        file.forget().unwrap();
        ends.send(()).unwrap();
    }
}

#[test]
fn waker_may_make_calls_that_wait() {
    let (made, other) = (Made::new("calls", 4096 * PAGE), Made::new("calls-other", PAGE));
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = (made.0.clone(), other.0.clone());
    // A thread of its own: where this fails, it hangs, and so would the end of the cache.
    std::thread::spawn(move || {
        let memory = Memory::builder().budget(12 << 20).build().unwrap();
        let file = memory.open(&path.0, Open::read().random()).unwrap();
        let mut some = buffers(32, 9);
        let mut pending = file.submit(reads(&mut some, 0, 4096)).unwrap();
        let written = memory.open(&path.1, Open::read_write()).unwrap();
        let once = std::sync::Mutex::new(Some((written, sender)));
        let calls = Arc::new(Calls { memory: memory.clone(), once });
        let waker = Waker::from(Arc::clone(&calls));
        if Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake_by_ref();
        }
        while !pending.is_ready() {
            std::thread::yield_now();
        }
    });
    receiver.recv_timeout(Duration::from_secs(120)).expect("the cache hangs");
}

/// Begins a sync when it wakes, and waits for it.
struct Syncs(File, std::sync::mpsc::Sender<()>);

impl Wake for Syncs {
    fn wake(self: Arc<Self>) {
        self.0.write_at(b"more", 0).unwrap();
        self.0.submit_sync_data().wait().unwrap();
        let _ = self.1.send(());
    }
}

#[test]
fn wakers_of_syncs_may_wait_for_syncs() {
    let made = Made::new("syncs", PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read_write()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    for round in 0..20 {
        file.write_at(&[round], 9).unwrap();
        let waker = Waker::from(Arc::new(Syncs(file.clone(), sender.clone())));
        let mut syncs: Vec<_> = (0..8).map(|_| file.submit_sync_data()).collect();
        for sync in &mut syncs {
            if Pin::new(sync).poll(&mut Context::from_waker(&waker)).is_ready() {
                waker.wake_by_ref();
            }
        }
        for _ in 0..8 {
            receiver.recv_timeout(Duration::from_secs(60)).expect("a waker does not end");
        }
    }
}

/// Takes a lock of the program when it wakes.
struct Locks(Arc<std::sync::Mutex<()>>, std::sync::mpsc::Sender<()>);

impl Wake for Locks {
    fn wake(self: Arc<Self>) {
        let _ = self.1.send(());
        drop(self.0.lock().unwrap());
        let _ = self.1.send(());
    }
}

#[test]
fn cache_ends_while_a_waker_waits_for_its_last_owner() {
    let made = Made::new("locks", 4096 * PAGE);
    let (sender, receiver) = std::sync::mpsc::channel();
    let next = || receiver.recv_timeout(Duration::from_secs(60)).expect("it hangs");
    let (lock, ended) = (Arc::new(std::sync::Mutex::new(())), sender.clone());
    let path = made.0.clone();
    std::thread::spawn(move || {
        let memory = Memory::builder().budget(8 << 20).build().unwrap();
        let file = memory.open(&path, Open::read().random()).unwrap();
        let locked = lock.lock().unwrap();
        let mut some = buffers(32, 9);
        let mut pending = file.submit(reads(&mut some, 0, 4096)).unwrap();
        let waker = Waker::from(Arc::new(Locks(Arc::clone(&lock), sender.clone())));
        if Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_ready() {
            std::thread::spawn(|| waker.wake());
        }
        while !pending.is_ready() {
            std::thread::yield_now();
        }
        drop((pending, file, memory));
        drop(locked);
        ended.send(()).unwrap();
    });
    (0..3).for_each(|_| next());
}

/// A buffer that can't be read.
struct Panics;

impl AsRef<[u8]> for Panics {
    fn as_ref(&self) -> &[u8] {
        assert!(std::thread::current().name() != Some("pageout-write"), "as a test");
        &[7; 9]
    }
}

#[test]
fn buffer_that_panics_is_the_panic_of_its_caller_alone() {
    let made = Made::new("panicking-buffer", 4096 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read_write().random()).unwrap();
    for page in 0..12 {
        // The page is not in memory: a thread of the cache makes the write.
        let writes = file.submit_writes(vec![(Panics, page * 100 * 4096)]);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writes.wait().0));
        assert!(panicked.is_err());
    }
    let (outcome, buffers) = file.submit_writes(vec![([7; 9], 1500 * 4096)]).wait();
    outcome.unwrap();
    assert_eq!(buffers, [[7; 9]]);
}

/// Panics when it wakes, and again when what it has panicked with is dropped.
struct PanicsTwice;

struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic!("as a test");
    }
}

impl Wake for PanicsTwice {
    fn wake(self: Arc<Self>) {
        std::panic::panic_any(Payload);
    }
}

#[test]
fn panic_of_a_waker_is_no_panic_of_the_cache() {
    let made = Made::new("panics", 4096 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    for round in 0..20 {
        let mut some = buffers(32, 9);
        let mut pending = file.submit(reads(&mut some, round * 40 * 4096, 4096)).unwrap();
        let waker = Waker::from(Arc::new(PanicsTwice));
        let _ = Pin::new(&mut pending).poll(&mut Context::from_waker(&waker));
        let since = Instant::now();
        while !pending.is_ready() {
            assert!(since.elapsed() < Duration::from_secs(60), "the reads do not end");
            std::thread::yield_now();
        }
        pending.wait().unwrap();
    }
}

#[test]
fn task_that_has_polled_is_woken_whoever_looks_after_that() {
    let made = Made::new("looks", 4096 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let mut was_pending = 0;
    for round in 0..100 {
        let mut some = buffers(32, 9);
        let mut pending = file.submit(reads(&mut some, round * 40 * 4096, 4096)).unwrap();
        let counts = Arc::new(Counts::default());
        let waker = Waker::from(Arc::clone(&counts));
        if Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_ready() || pending.is_ready() {
            continue;
        }
        was_pending += 1;
        let since = Instant::now();
        while counts.0.load(Ordering::Relaxed) == 0 {
            assert!(since.elapsed() < Duration::from_secs(60), "nobody wakes the task");
            std::thread::yield_now();
        }
    }
    assert!(was_pending > 0, "each read was over at once");
}

#[test]
fn pages_of_reads_that_nobody_takes_count_as_held() {
    let made = Made::new("held", 4096 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let most = memory.stats().unwrap().frames / 4;
    let mut all: Vec<_> = (0..most / 32 + 2).map(|_| buffers(32, 100)).collect();
    let pending =
        (0..).zip(&mut all).map(|(at, some)| file.submit(reads(some, at * 32 * 4096, 4096)).unwrap());
    let pending: Vec<_> = pending.collect();
    // All are over, but nobody has asked.
    let since = Instant::now();
    while memory.stats().unwrap().pinned < most - 32 && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pinned = memory.stats().unwrap().pinned;
    assert!(pinned >= most - 32 && pinned <= most, "{pinned} of {most}: {:?}", memory.stats());
    // Those that had no room then have some when the others are taken.
    assert!(run_all(pending).iter().all(Result::is_ok));
    for (at, some) in all.iter().enumerate() {
        some.iter().enumerate().for_each(|(read, buffer)| check(buffer, (at * 32 + read) * PAGE));
    }
    assert_eq!(memory.stats().unwrap().pinned, 0);
}

#[test]
fn a_read_that_fails_is_told_and_the_others_are_made() {
    let made = Made::new("fails", 64 * PAGE);
    for backend in [Backend::Any, Backend::Threads] {
        made.fill(64 * PAGE);
        let memory = Memory::builder().budget(8 << 20).backend(backend).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        std::fs::OpenOptions::new().write(true).open(&made.0).unwrap().set_len(40 * PAGE as u64).unwrap();
        let mut some = buffers(64, 100);
        let told = run_all(vec![file.submit(reads(&mut some, 0, 4096)).unwrap()]).remove(0);
        assert!(matches!(told, Err(Error::Shortened { page: 40.., .. })), "{told:?}");
        some[..32].iter().enumerate().for_each(|(page, buffer)| check(buffer, page * PAGE));
        file.clone().forget().unwrap();
        assert!(matches!(file.submit(reads(&mut some, 0, 4096)), Err(Error::Forgotten { .. })));
    }
}

#[test]
fn what_is_asked_for_ahead_is_there_when_it_is_read() {
    let made = Made::new("ahead", 2048 * PAGE);
    for (backend, io_threads) in [(Backend::Any, 8), (Backend::Threads, 8), (Backend::Any, 0)] {
        let memory =
            Memory::builder().budget(16 << 20).backend(backend).io_threads(io_threads).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        // Far more than the kernel reads for one such piece of advice.
        file.prefetch(100..1500 * 4096).unwrap();
        let since = Instant::now();
        while memory.stats().unwrap().device_bytes < 1500 * 4096 {
            assert!(since.elapsed() < Duration::from_secs(60), "{:?}", memory.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(memory.stats().unwrap().resident, 1500);
        let before = memory.stats().unwrap().device_reads;
        let mut buf = vec![0; 1500 * PAGE];
        file.read_at(&mut buf, 0).unwrap();
        check(&buf, 0);
        assert_eq!(memory.stats().unwrap().device_reads, before, "all of it was there");
        file.advise(Advice::DontNeed, 0..1400 * 4096).unwrap();
        assert_eq!(memory.stats().unwrap().resident, 100);
        file.advise(Advice::WillNeed, 0..1400 * 4096).unwrap();
        assert!(matches!(file.advise(Advice::WillNeed, 0..2049 * 4096), Err(Error::BeyondEnd { .. })));
        file.clone().forget().unwrap();
        assert!(matches!(file.prefetch(0..9), Err(Error::Forgotten { .. })));
        assert!(matches!(file.advise(Advice::Random, 0..0), Err(Error::Forgotten { .. })));
    }
}

#[test]
fn advice_on_the_order_of_reads_says_whether_anything_is_read_ahead() {
    let made = Made::new("order", 1024 * PAGE);
    let memory = Memory::builder().budget(16 << 20).io_threads(0).build().unwrap();
    let file = memory.open(&made.0, Open::read()).unwrap();
    let reads_of = |first: u64| {
        let before = memory.stats().unwrap().device_reads;
        (first..first + 64).for_each(|page| file.read_at(&mut [0; 4096], page * 4096).unwrap());
        memory.stats().unwrap().device_reads - before
    };
    file.advise(Advice::Random, 0..0).unwrap();
    assert_eq!(reads_of(0), 64);
    file.advise(Advice::Normal, 0..0).unwrap();
    let normal = reads_of(200);
    assert!(normal < 8, "{normal} reads of 64 pages");
    file.advise(Advice::Sequential, 0..0).unwrap();
    let ahead = reads_of(600);
    assert!(ahead <= normal, "{ahead} reads of 64 pages");
}
