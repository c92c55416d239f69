//! Regions against a model, with many threads, over a failing swap device.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::*;
use crate::storage::failing::{Fate, Faults, Held, Request, When};
use crate::{Backend, Builder, Limits, Memory, Zswap};

fn builder((backend, io_threads): (Backend, usize)) -> Builder {
    let builder = Memory::builder().budget(37 << 18).files(64 << 20).backend(backend).io_threads(io_threads);
    builder.swap_file(std::env::temp_dir(), 16 << 20).swap_buffered(true)
}

const BACKENDS: [(Backend, usize); 3] = [(Backend::Threads, 3), (Backend::Uring, 3), (Backend::Threads, 0)];

/// Random numbers from a seed, for several threads.
#[derive(Debug)]
struct Random(AtomicU64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    fn below(&self, most: u64) -> u64 {
        let mut word = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, SeqCst);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % most
    }
}

/// A device on which some requests fail, and others are short.
#[derive(Debug)]
struct Faulty {
    random: Random,
    is_on: AtomicBool,
    failed_reads: AtomicU64,
    failed_writes: AtomicU64,
}

impl Faults for Faulty {
    fn fate(&self, request: Request) -> Fate {
        if !self.is_on.load(SeqCst) {
            return Fate::Well;
        }
        match (request, self.random.below(40)) {
            (Request::Read { .. }, 0) => {
                self.failed_reads.fetch_add(1, SeqCst);
                Fate::Fails(libc::EIO)
            }
            (Request::Read { bytes, .. } | Request::Write { bytes, .. }, 1 | 2) => Fate::Short(bytes / 2),
            (Request::Write { bytes, .. }, 3) => {
                self.failed_writes.fetch_add(1, SeqCst);
                Fate::Torn(bytes / 3, libc::ENOSPC)
            }
            (Request::Write { .. }, 4) => {
                self.failed_writes.fetch_add(1, SeqCst);
                Fate::Fails(libc::EIO)
            }
            _ => Fate::Well,
        }
    }
}

const PAGES: u64 = 360;
const THREADS: u64 = 4;
const CHUNK: usize = 16;

/// The operations on a page by its owner: the last one begun, and the last one ended. Every eighth operation discards the page.
#[derive(Default)]
struct Turns {
    begun: AtomicU64,
    ended: AtomicU64,
}

fn discards(turn: u64) -> bool {
    turn.is_multiple_of(8)
}

/// A chunk of a page after an operation.
fn chunk(page: u64, turn: u64) -> [u8; CHUNK] {
    let mut chunk = [0; CHUNK];
    if !discards(turn) {
        chunk[..8].copy_from_slice(&(page + 1).to_le_bytes());
        chunk[8..].copy_from_slice(&turn.to_le_bytes());
    }
    chunk
}

/// Returns true if a page is always written completely, so that other threads see a single operation.
fn is_whole(page: u64) -> bool {
    page.is_multiple_of(2)
}

/// Checks a read by a thread that does not own the page.
fn check_others(page: u64, bytes: &[u8], (ended, begun): (u64, u64)) {
    let turns: BTreeSet<u64> = bytes
        .chunks_exact(CHUNK)
        .map(|chunk| {
            let [of, turn] =
                [&chunk[..8], &chunk[8..]].map(|part| u64::from_le_bytes(part.try_into().unwrap()));
            assert!(of == page + 1 || (of, turn) == (0, 0), "page {page} has a chunk {turn} of page {of}");
            assert!(turn <= begun, "page {page} has turn {turn} of {begun}");
            turn
        })
        .collect();
    if !is_whole(page) {
        return;
    }
    assert_eq!(turns.len(), 1, "page {page} is of several moments: {turns:?}");
    match turns.first() {
        Some(0) => assert!((ended..=begun).any(discards), "page {page} is lost: {ended} to {begun}"),
        Some(&turn) => assert!(turn >= ended, "page {page} is {turn}, and was {ended}"),
        None => unreachable!("a page has chunks"),
    }
}

struct Stress {
    region: Region,
    turns: Vec<Turns>,
    random: Random,
    faulty: Arc<Faulty>,
}

impl Stress {
    /// Returns true if a failing device can cause the error.
    fn may_fail(&self, error: &Error) -> bool {
        let is_faulty = self.faulty.failed_reads.load(SeqCst) + self.faulty.failed_writes.load(SeqCst) > 0;
        match error {
            Error::SwapIo { .. } | Error::OutOfMemory(_) => is_faulty,
            _ => false,
        }
    }

    /// Repeats a call until it succeeds.
    fn insist<T>(&self, mut call: impl FnMut() -> Result<T, Error>) -> T {
        let began = Instant::now();
        loop {
            match call() {
                Ok(value) => return value,
                Err(error) => {
                    assert!(self.may_fail(&error), "{error}");
                    if began.elapsed() > Duration::from_secs(5) {
                        // Otherwise unreadable pages would leave no memory for others.
                        self.faulty.is_on.store(false, SeqCst);
                    }
                    assert!(began.elapsed() < Duration::from_secs(60), "{error}");
                }
            }
        }
    }

    /// Changes a page as its owner. `held`: the turn that the page has.
    fn change(&self, page: u64, held: &mut [u8]) {
        let (region, turns) = (&self.region, &self.turns[page as usize]);
        let turn = turns.begun.fetch_add(1, SeqCst) + 1;
        let offset = page * PAGE_SIZE;
        let new = chunk(page, turn).repeat(PAGE / CHUNK);
        if discards(turn) {
            self.insist(|| region.advise(RegionAdvice::DontNeed, offset..offset + PAGE_SIZE));
            held.fill(0);
        } else if is_whole(page) || self.random.below(2) == 0 {
            match self.random.below(3) {
                // A guard shows the old contents, which may be unreadable.
                0 if page.is_multiple_of(3) => match region.page_mut(page) {
                    Ok(mut guard) => {
                        assert!(*guard == *held, "page {page} at turn {turn}");
                        guard.copy_from_slice(&new);
                    }
                    Err(error) => {
                        assert!(self.may_fail(&error), "{error}");
                        self.insist(|| region.write_at(&new, offset));
                    }
                },
                _ => self.insist(|| region.write_at(&new, offset)),
            }
            held.copy_from_slice(&new);
        } else {
            let first = self.random.below((PAGE / CHUNK) as u64) as usize;
            let count = 1 + self.random.below((PAGE / CHUNK - first) as u64) as usize;
            let part = first * CHUNK..(first + count) * CHUNK;
            match region.write_at(&new[part.clone()], offset + part.start as u64) {
                Ok(()) => held[part.clone()].copy_from_slice(&new[part]),
                Err(error) => {
                    // The page is unchanged. It may be unreadable forever: a write of the complete page restores it.
                    assert!(self.may_fail(&error), "{error}");
                    self.insist(|| region.write_at(&new, offset));
                    held.copy_from_slice(&new);
                }
            }
        }
        turns.ended.store(turn, SeqCst);
    }

    /// Reads a page as its owner.
    fn look(&self, page: u64, held: &[u8]) {
        let mut buf = vec![7; PAGE];
        match self.random.below(3) {
            0 => match self.region.page(page) {
                Ok(guard) => buf.copy_from_slice(&guard),
                Err(error) => return assert!(self.may_fail(&error), "{error}"),
            },
            _ => match self.region.read_at(&mut buf, page * PAGE_SIZE) {
                Ok(()) => {}
                Err(error) => return assert!(self.may_fail(&error), "{error}"),
            },
        }
        let differs =
            buf.chunks_exact(CHUNK).zip(held.chunks_exact(CHUNK)).position(|(found, held)| found != held);
        if let Some(at) = differs {
            let [found, held] = [&buf, held].map(|bytes| &bytes[at * CHUNK..][..CHUNK]);
            panic!("page {page} from chunk {at} on is {found:?}, and {held:?} was written");
        }
    }

    /// Runs one thread, which reads pages of all owners.
    fn look_at_others(&self) {
        let pages: Vec<u64> = (0..1 + self.random.below(6)).map(|_| self.random.below(PAGES)).collect();
        let ended: Vec<u64> =
            pages.iter().map(|&page| self.turns[page as usize].ended.load(SeqCst)).collect();
        let mut bufs = vec![vec![7; PAGE]; pages.len()];
        let reads = pages.iter().zip(&mut bufs);
        let mut reads: Vec<_> = reads.map(|(&page, buf)| ReadAt { buf, offset: page * PAGE_SIZE }).collect();
        let outcome = match self.random.below(4) {
            0 => self.region.read_batch(&mut reads),
            1 => self.region.submit(reads).and_then(Pending::wait),
            2 => self.region.submit(reads).map(drop).and(Err(Error::Poisoned)),
            _ => reads.iter_mut().try_for_each(|read| self.region.read_at(read.buf, read.offset)),
        };
        match outcome {
            Err(Error::Poisoned) => {}
            Err(error) => assert!(self.may_fail(&error), "{error}"),
            Ok(()) => {
                for ((&page, buf), ended) in pages.iter().zip(&bufs).zip(ended) {
                    let begun = self.turns[page as usize].begun.load(SeqCst);
                    check_others(page, buf, (ended, begun));
                }
            }
        }
    }

    fn run(&self, thread: u64, memory: &Memory, rounds: u32) {
        let mut held = vec![vec![0; PAGE]; PAGES as usize];
        let own = |random: &Random| {
            let page = random.below(PAGES / THREADS) * THREADS;
            page + thread
        };
        for _ in 0..rounds {
            let page = own(&self.random);
            let range = |pages: u64| page * PAGE_SIZE..(page + pages).min(PAGES) * PAGE_SIZE;
            match self.random.below(20) {
                0..7 => self.change(page, &mut held[page as usize]),
                7..12 => self.look(page, &held[page as usize]),
                12..16 => self.look_at_others(),
                16 => self.insist(|| self.region.advise(RegionAdvice::PageOut, range(20))),
                17 => self.insist(|| self.region.advise(RegionAdvice::Cold, range(5))),
                18 => self.insist(|| self.region.prefetch(range(20))),
                _ => self.short_lived(memory),
            }
        }
        (thread..PAGES).step_by(THREADS as usize).for_each(|page| self.look(page, &held[page as usize]));
    }

    /// Creates and drops a region of another group, sometimes with reads in flight.
    fn short_lived(&self, memory: &Memory) {
        let region = memory.region(20 * PAGE_SIZE, RegionOptions::new()).unwrap();
        (0..20).for_each(|page| {
            self.insist(|| region.write_at(&chunk(page, 1).repeat(PAGE / CHUNK), page * PAGE_SIZE))
        });
        self.insist(|| region.advise(RegionAdvice::PageOut, 0..region.len()));
        self.insist(|| region.set_len(10 * PAGE_SIZE + 5));
        let mut bufs = vec![vec![7; PAGE]; 10];
        let reads = (0..).zip(&mut bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE_SIZE });
        let pending = region.submit(reads.collect());
        drop(region);
        match pending.map(|pending| (self.random.below(2) == 0).then(|| pending.wait())) {
            Ok(Some(Ok(()))) => (0..).zip(&bufs).for_each(|(page, buf)| check_others(page, buf, (1, 1))),
            Ok(None) => {}
            Ok(Some(Err(error))) | Err(error) => assert!(self.may_fail(&error), "{error}"),
        }
    }
}

/// Runs threads on one region. Returns the numbers of failed reads and writes.
fn stress(
    backend: (Backend, usize),
    profile: &str,
    zswap: Option<Zswap>,
    fails: bool,
    seed: u64,
) -> (u64, u64) {
    let faulty = Arc::new(Faulty {
        random: Random::new(seed),
        is_on: AtomicBool::new(fails),
        failed_reads: AtomicU64::new(0),
        failed_writes: AtomicU64::new(0),
    });
    let faults = Arc::clone(&faulty) as Arc<dyn Faults>;
    let builder = builder(backend).policy(profile).swap_faults(faults);
    let builder = match zswap {
        Some(zswap) => builder.zswap(zswap),
        None => builder,
    };
    let memory = builder.build().unwrap();
    let group = memory.group("job", Limits { max: Some(90 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let region = memory.region(PAGES * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
    let turns = (0..PAGES).map(|_| Turns::default()).collect();
    let stress = Stress { region, turns, random: Random::new(!seed), faulty };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (stress, memory) = (&stress, &memory);
            scope.spawn(move || stress.run(thread, memory, 1200));
        }
    });
    let stats = memory.stats().unwrap();
    assert!(stats.swapped > 0, "nothing was swapped");
    assert_eq!(stats.zswap_stores > 0, zswap.is_some(), "{stats:?}");
    assert_eq!(memory.stats().unwrap().pinned, 0);
    memory.0.machine.lock().unwrap().engine.check_invariants();
    let failed = [&stress.faulty.failed_reads, &stress.faulty.failed_writes];
    let [reads, writes] = failed.map(|failed| failed.load(SeqCst));
    drop(stress);
    await_freed(&memory);
    (reads, writes)
}

/// Waits until all pages of all regions are freed, with those that wait in batches.
fn await_freed(memory: &Memory) {
    let began = Instant::now();
    loop {
        memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
        let stats = memory.stats().unwrap();
        if (stats.anon, stats.swapped) == (0, 0) {
            return memory.0.machine.lock().unwrap().engine.check_invariants();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn threads_find_in_a_region_what_they_wrote() {
    for (at, backend) in (0..).zip(BACKENDS) {
        for profile in ["mglru@6.12", "classic@6.12"] {
            stress(backend, profile, None, false, 7 + at);
            stress(backend, profile, Some(Zswap::lz4()), false, 17 + at);
        }
    }
}

#[test]
fn threads_find_what_they_wrote_though_swap_fails() {
    let (mut reads, mut writes) = (0, 0);
    for (at, backend) in (0..).zip(BACKENDS) {
        let failed = stress(backend, "mglru@6.12", None, true, 100 + at);
        (reads, writes) = (reads + failed.0, writes + failed.1);
    }
    assert!(reads > 0 && writes > 0, "{reads} reads and {writes} writes have failed");
}

/// A device on which all requests of one kind fail while `is_on`.
#[derive(Debug)]
struct Failing {
    fails: fn(Request) -> bool,
    with: i32,
    is_on: AtomicBool,
    failed: AtomicU64,
}

impl Failing {
    fn new(with: i32, fails: fn(Request) -> bool) -> Arc<Failing> {
        Arc::new(Failing { fails, with, is_on: AtomicBool::new(false), failed: AtomicU64::new(0) })
    }
}

impl Faults for Failing {
    fn fate(&self, request: Request) -> Fate {
        match self.is_on.load(SeqCst) && (self.fails)(request) {
            true => {
                self.failed.fetch_add(1, SeqCst);
                Fate::Fails(self.with)
            }
            false => Fate::Well,
        }
    }
}

fn is_read(request: Request) -> bool {
    matches!(request, Request::Read { .. })
}

fn is_write(request: Request) -> bool {
    matches!(request, Request::Write { .. })
}

/// A region of 200 pages, some 150 of which are in swap.
fn swapped(faults: Arc<dyn Faults>) -> (Memory, Region) {
    let memory = builder((Backend::Threads, 2)).swap_faults(faults).build().unwrap();
    let group = memory.group("job", Limits { max: Some(50 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let region = memory.region(200 * PAGE_SIZE, RegionOptions::new().group(&group).name("heap")).unwrap();
    for page in 0..200 {
        region.write_at(&chunk(page, 1).repeat(PAGE / CHUNK), page * PAGE_SIZE).unwrap();
    }
    (memory, region)
}

#[test]
fn unreadable_slot_is_an_error_until_its_page_is_written_whole_or_discarded() {
    let failing = Failing::new(libc::EIO, is_read);
    let (memory, region) = swapped(Arc::clone(&failing) as Arc<dyn Faults>);
    let mut buf = vec![0; PAGE];
    region.read_at(&mut buf, 199 * PAGE_SIZE).unwrap();
    failing.is_on.store(true, SeqCst);
    for _ in 0..3 {
        let error = region.read_at(&mut buf, 3 * PAGE_SIZE).unwrap_err();
        assert!(matches!(&error, Error::SwapIo { page: 3, .. }), "{error}");
        assert!(error.to_string().starts_with("page 3 of heap can't be read from swap: "), "{error}");
    }
    assert!(matches!(region.page(3).err(), Some(Error::SwapIo { page: 3, .. })));
    assert!(matches!(region.page_mut(3).err(), Some(Error::SwapIo { page: 3, .. })));
    let part = region.write_at(&[9; 100], 3 * PAGE_SIZE);
    assert!(matches!(part, Err(Error::SwapIo { page: 3, .. })));
    let batch = region.read_batch(&mut [ReadAt { buf: &mut buf, offset: 4 * PAGE_SIZE }]);
    assert!(matches!(batch, Err(Error::SwapIo { page: 4, .. })));
    let reads = vec![ReadAt { buf: &mut buf, offset: 4 * PAGE_SIZE }];
    assert!(matches!(region.submit(reads).unwrap().wait(), Err(Error::SwapIo { page: 4, .. })));
    region.prefetch(0..20 * PAGE_SIZE).unwrap();
    // A page is readable again after it is written completely or discarded.
    region.write_at(&chunk(3, 2).repeat(PAGE / CHUNK), 3 * PAGE_SIZE).unwrap();
    region.read_at(&mut buf, 3 * PAGE_SIZE).unwrap();
    assert!(buf == chunk(3, 2).repeat(PAGE / CHUNK));
    region.advise(RegionAdvice::DontNeed, 4 * PAGE_SIZE..5 * PAGE_SIZE).unwrap();
    region.read_at(&mut buf, 4 * PAGE_SIZE).unwrap();
    assert!(buf == [0; PAGE]);
    // Other regions see no error, and the unreadable pages are not lost.
    let other = memory.region(PAGE_SIZE, RegionOptions::new()).unwrap();
    other.write_at(&[1; PAGE], 0).unwrap();
    failing.is_on.store(false, SeqCst);
    region.read_at(&mut buf, 5 * PAGE_SIZE).unwrap();
    assert!(buf == chunk(5, 1).repeat(PAGE / CHUNK));
}

#[test]
fn page_given_up_to_be_written_is_no_page_of_zeroes() {
    let failing = Failing::new(libc::EIO, is_read);
    let (_memory, region) = swapped(Arc::clone(&failing) as Arc<dyn Faults>);
    failing.is_on.store(true, SeqCst);
    // This is the state after a write that found no memory.
    region.0.memory.guarded(|machine| machine.give_up_slot(&region.0, 3)).unwrap();
    failing.is_on.store(false, SeqCst);
    let mut buf = vec![7; PAGE];
    assert!(matches!(region.read_at(&mut buf, 3 * PAGE_SIZE), Err(Error::SwapIo { page: 3, .. })));
    assert!(matches!(region.page_mut(3).err(), Some(Error::SwapIo { page: 3, .. })));
    region.write_at(&chunk(3, 2).repeat(PAGE / CHUNK), 3 * PAGE_SIZE).unwrap();
    region.read_at(&mut buf, 3 * PAGE_SIZE).unwrap();
    assert!(buf == chunk(3, 2).repeat(PAGE / CHUNK));
}

#[test]
fn slot_that_takes_no_page_leaves_it_in_memory() {
    for errno in [libc::ENOSPC, libc::EIO] {
        let failing = Failing::new(errno, is_write);
        let memory = builder((Backend::Threads, 2)).swap_faults(Arc::clone(&failing) as Arc<dyn Faults>);
        let memory = memory.build().unwrap();
        let group = memory.group("job", Limits { max: Some(50 * PAGE_SIZE), ..Limits::NONE }).unwrap();
        let region = memory.region(200 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
        failing.is_on.store(true, SeqCst);
        let mut written = 0;
        let error = loop {
            match region.write_at(&chunk(written, 1).repeat(PAGE / CHUNK), written * PAGE_SIZE) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
        assert!(error.to_string().contains("page writes failed"), "{error}");
        assert!(written >= 49, "{written}");
        let check = |most| {
            for page in 0..most {
                let mut buf = vec![7; PAGE];
                region.read_at(&mut buf, page * PAGE_SIZE).unwrap();
                assert!(buf == chunk(page, 1).repeat(PAGE / CHUNK), "page {page}");
            }
        };
        check(written);
        failing.is_on.store(false, SeqCst);
        for page in written..200 {
            region.write_at(&chunk(page, 1).repeat(PAGE / CHUNK), page * PAGE_SIZE).unwrap();
        }
        check(200);
    }
}

/// As soon as the device counts as hopeless, the engine makes 16 attempts after the first one. It makes them again where these have brought pages from batches to
/// the lists.
#[test]
fn write_gives_up_after_few_reclaim_calls_while_swap_fails() {
    const ATTEMPTS: u64 = 17;
    for (backend, policy) in BACKENDS.into_iter().zip(["mglru@6.12", "classic@6.12", "s3-fifo"]) {
        let failing = Failing::new(libc::EIO, is_write);
        let faults = Arc::clone(&failing) as Arc<dyn Faults>;
        let memory = builder(backend).policy(policy).swap_faults(faults).build().unwrap();
        let group = memory.group("job", Limits { max: Some(50 * PAGE_SIZE), ..Limits::NONE }).unwrap();
        let region = memory.region(200 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
        failing.is_on.store(true, SeqCst);
        let calls = || memory.look_at_engine(|engine| engine.work().reclaim_calls).unwrap();
        let (mut most, mut refused) = (0, 0);
        for page in 0..80 {
            let before = calls();
            let written = region.write_at(&[1; PAGE], page * PAGE_SIZE);
            // The first one waits until enough writes have failed.
            if refused > 0 {
                most = most.max(calls() - before);
            }
            refused += u64::from(matches!(written, Err(Error::OutOfMemory(_))));
        }
        println!("{policy}: {most} calls, {refused} refused");
        assert!(refused >= 20, "{policy}: {refused} of 80 writes are refused");
        assert!(most <= 4 * ATTEMPTS, "{policy}: {most} calls of reclaim for a write");
    }
}

/// A device with space for this many bytes of the swap file.
#[derive(Debug)]
struct Small {
    space: AtomicU64,
    refused: AtomicU64,
}

impl Faults for Small {
    fn fate(&self, request: Request) -> Fate {
        match request {
            Request::Write { offset, bytes } if offset + bytes as u64 > self.space.load(SeqCst) => {
                self.refused.fetch_add(1, SeqCst);
                Fate::Fails(libc::ENOSPC)
            }
            _ => Fate::Well,
        }
    }
}

/// On a full disk, reclaim would write all 2,000 pages of the group in each of its attempts.
#[test]
fn full_disk_refuses_few_writes_for_each_page_that_finds_no_space() {
    for (backend, policy) in BACKENDS.into_iter().zip(["mglru@6.12", "classic@6.12", "s3-fifo"]) {
        let small = Arc::new(Small { space: AtomicU64::new(1 << 20), refused: AtomicU64::new(0) });
        let faults = Arc::clone(&small) as Arc<dyn Faults>;
        let builder = builder(backend).budget(24 << 20).policy(policy).swap_faults(faults);
        let memory = builder.build().unwrap();
        let group = memory.group("job", Limits { max: Some(2000 * PAGE_SIZE), ..Limits::NONE }).unwrap();
        let region = memory.region(3000 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
        let write = |page: u64| region.write_at(&chunk(page, 1).repeat(PAGE / CHUNK), page * PAGE_SIZE);
        let written = (0..3000).take_while(|&page| write(page).is_ok()).count() as u64;
        // Each slot with space has a page, except those that reclaim has not tried.
        assert!((2000..2257).contains(&written), "{policy}: {written}");
        let before = small.refused.load(SeqCst);
        let refused =
            (0..20).filter(|page| matches!(write(written + page), Err(Error::OutOfMemory(_)))).count();
        assert!(refused > 0, "{policy}");
        let writes = small.refused.load(SeqCst) - before;
        println!("{policy}: {written} written, {refused} of 20 refused, {writes} writes of the device");
        assert!(writes < 2000, "{policy}: {writes} writes failed for 20 pages");
        // As soon as there is space, the next write finds it.
        small.space.store(u64::MAX, SeqCst);
        (written..3000).for_each(|page| write(page).unwrap());
        for page in 0..3000 {
            let mut buf = vec![7; PAGE];
            region.read_at(&mut buf, page * PAGE_SIZE).unwrap();
            assert!(buf == chunk(page, 1).repeat(PAGE / CHUNK), "{policy}: page {page}");
        }
    }
}

/// A device that answers no read until it is released.
#[derive(Debug)]
struct Silent {
    is_on: AtomicBool,
    held: Arc<Held>,
}

impl Faults for Silent {
    fn fate(&self, _: Request) -> Fate {
        Fate::Well
    }

    fn when(&self, request: Request) -> When {
        match self.is_on.load(SeqCst) && is_read(request) {
            true => When::Released(Arc::clone(&self.held)),
            false => When::Now,
        }
    }
}

#[test]
fn region_dropped_with_reads_in_flight_goes_when_they_have_ended() {
    let held = Arc::new(Held::default());
    let silent = Arc::new(Silent { is_on: AtomicBool::new(false), held: Arc::clone(&held) });
    let (memory, region) = swapped(Arc::clone(&silent) as Arc<dyn Faults>);
    silent.is_on.store(true, SeqCst);
    let mut bufs = vec![vec![7; PAGE]; 8];
    let reads = (0..).zip(&mut bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE_SIZE });
    drop(region.submit(reads.collect()).unwrap());
    while held.waiting() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(region);
    // Other regions continue meanwhile, in frames of their own.
    let other = memory.region(20 * PAGE_SIZE, RegionOptions::new()).unwrap();
    let mut buf = vec![7; PAGE];
    other.read_at(&mut buf, 0).unwrap();
    assert!(buf == [0; PAGE]);
    other.write_at(&[1; 9], 0).unwrap();
    drop(other);
    held.release();
    await_freed(&memory);
}

/// A device that answers no write until it is released.
#[derive(Debug)]
struct SilentWrites(Arc<Held>);

impl Faults for SilentWrites {
    fn fate(&self, _: Request) -> Fate {
        Fate::Well
    }

    fn when(&self, request: Request) -> When {
        match request {
            Request::Write { .. } => When::Released(Arc::clone(&self.0)),
            _ => When::Now,
        }
    }
}

/// Discards pages while their slots are being written, and waits until they are free.
fn discard_in_flight(backend: (Backend, usize), zswap: bool, discard: fn(Region) -> Option<Region>) {
    let held = Arc::new(Held::default());
    let builder = builder(backend).swap_faults(Arc::new(SilentWrites(Arc::clone(&held))));
    let builder =
        if zswap { builder.zswap(Zswap::lz4()).sysctl("zswap.max_pool_percent", 0) } else { builder };
    let memory = builder.build().unwrap();
    let region = memory.region(20 * PAGE_SIZE, RegionOptions::new()).unwrap();
    (0..20).for_each(|page| region.write_at(&[page as u8 + 1; 100], page * PAGE_SIZE).unwrap());
    region.advise(RegionAdvice::PageOut, 0..20 * PAGE_SIZE).unwrap();
    let began = Instant::now();
    while held.waiting() == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no slot is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    let kept = discard(region);
    held.release();
    // Nothing else happens: no reclaim drains the batches.
    while memory.stats().map(|stats| (stats.anon, stats.swapped)).unwrap() != (0, 0) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", memory.stats().unwrap());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(kept);
    memory.0.machine.lock().unwrap().engine.check_invariants();
}

#[test]
fn slots_in_flight_are_free_when_their_region_is_dropped() {
    let discard = |region| {
        drop(region);
        None
    };
    for backend in [(Backend::Threads, 3), (Backend::Uring, 3)] {
        discard_in_flight(backend, false, discard);
        discard_in_flight(backend, true, discard);
    }
}

#[test]
fn slots_in_flight_are_free_when_pages_are_discarded() {
    for backend in [(Backend::Threads, 3), (Backend::Uring, 3)] {
        discard_in_flight(backend, false, |region| {
            region.advise(RegionAdvice::DontNeed, 0..20 * PAGE_SIZE).unwrap();
            Some(region)
        });
        discard_in_flight(backend, false, |region| {
            region.set_len(0).unwrap();
            Some(region)
        });
    }
}

#[test]
fn read_that_waits_while_its_region_gets_shorter_is_refused() {
    type Call = fn(&Region, u64) -> Result<(), Error>;
    let calls: [(&str, Call); 5] = [
        ("read_at", |region, at| region.read_at(&mut [0; 16], at)),
        ("page", |region, at| region.page(at / PAGE_SIZE).map(drop)),
        ("read_batch", |region, at| region.read_batch(&mut [ReadAt { buf: &mut [0; 16], offset: at }])),
        ("submit", |region, at| region.submit(vec![ReadAt { buf: &mut [0; 16], offset: at }])?.wait()),
        ("reader", |region, at| region.reader()?.page(at / PAGE_SIZE).map(drop)),
    ];
    for (name, call) in calls {
        let memory = builder((Backend::Threads, 2)).build().unwrap();
        let region = memory.region(10_000 * PAGE_SIZE, RegionOptions::new()).unwrap();
        let guard = region.page_mut(9_999).unwrap();
        std::thread::scope(|scope| {
            // It waits for the guard, and the read for it.
            let cuts = scope.spawn(|| region.set_len(PAGE_SIZE));
            std::thread::sleep(Duration::from_millis(20));
            let reads = scope.spawn(|| call(&region, 5_000 * PAGE_SIZE));
            std::thread::sleep(Duration::from_millis(20));
            drop(guard);
            cuts.join().unwrap().unwrap();
            let read = reads.join().unwrap();
            assert!(
                matches!(read, Err(Error::BeyondEnd { .. } | Error::CutMeanwhile { .. })),
                "{name}: {read:?}"
            );
        });
        region.write_at(b"x", 0).unwrap();
    }
}

#[test]
fn region_gets_longer_while_a_guard_and_a_read_of_its_page_wait() {
    let memory = builder((Backend::Threads, 2)).build().unwrap();
    let region = memory.region(100 * PAGE_SIZE, RegionOptions::new()).unwrap();
    let mut guard = region.page_mut(0).unwrap();
    let mut buf = [0];
    let mut pending = region.submit(vec![ReadAt { buf: &mut buf, offset: 0 }]).unwrap();
    std::thread::scope(|scope| {
        let (began, region) = (Instant::now(), &region);
        for pages in [200, 50, 300].into_iter().cycle().take(120) {
            // Neither of the guard's thread nor of others.
            scope.spawn(move || region.set_len(pages * PAGE_SIZE)).join().unwrap().unwrap();
            region.set_len((pages + 1) * PAGE_SIZE).unwrap();
            assert!(!pending.is_ready());
        }
        let longest = memory.0.machine.guard_wait / 2;
        assert!(began.elapsed() < longest, "it waited for the guard: {:?}", began.elapsed());
    });
    guard[0] = 9;
    drop(guard);
    pending.wait().unwrap();
    assert_eq!(buf, [9]);
}

#[test]
fn read_that_stands_aside_while_its_page_is_cut_is_refused() {
    let memory = builder((Backend::Threads, 2)).build().unwrap();
    let region = memory.region(100 * PAGE_SIZE, RegionOptions::new()).unwrap();
    let guard = region.page_mut(50).unwrap();
    let mut buf = [0];
    let mut pending = region.submit(vec![ReadAt { buf: &mut buf, offset: 50 * PAGE_SIZE }]).unwrap();
    std::thread::scope(|scope| {
        // It waits for the guard.
        let cuts = scope.spawn(|| region.set_len(10 * PAGE_SIZE));
        let began = Instant::now();
        while !memory.0.machine.lock().unwrap().regions.is_resizing(region.0.number) {
            assert!(began.elapsed() < Duration::from_secs(60), "the region does not begin to get shorter");
        }
        assert!(!pending.is_ready(), "the page is held");
        drop(guard);
        cuts.join().unwrap().unwrap();
    });
    assert!(matches!(pending.wait(), Err(Error::BeyondEnd { .. } | Error::CutMeanwhile { .. })));
    // The region is dropped while a read of it stands aside.
    let guard = region.page_mut(5).unwrap();
    let pending = region.submit(vec![ReadAt { buf: &mut buf, offset: 5 * PAGE_SIZE }]).unwrap();
    std::thread::scope(|scope| {
        let cuts = scope.spawn(|| region.set_len(1));
        std::thread::sleep(Duration::from_millis(20));
        drop(pending);
        drop(guard);
        cuts.join().unwrap().unwrap();
    });
    drop(region);
    memory.0.machine.lock().unwrap().engine.check_invariants();
}

#[test]
fn calls_on_a_large_region_take_the_time_of_its_used_pages() {
    let memory =
        Memory::builder().budget(24 << 20).swap_file(std::env::temp_dir(), 64 << 20).build().unwrap();
    let (bytes, began) = (1 << 40, Instant::now());
    let region = memory.region(bytes, RegionOptions::new()).unwrap();
    for at in [1 << 30, 700 << 30, bytes - 3] {
        region.write_at(b"xyz", at).unwrap();
    }
    let read = |at| {
        let mut seen = [0; 3];
        region.read_at(&mut seen, at).map(|()| seen).unwrap()
    };
    region.advise(RegionAdvice::Cold, 0..bytes).unwrap();
    region.advise(RegionAdvice::PageOut, 0..bytes).unwrap();
    region.prefetch(0..bytes).unwrap();
    assert_eq!((read(1 << 30), read(bytes - 3)), (*b"xyz", *b"xyz"));
    region.advise(RegionAdvice::DontNeed, 0..bytes - PAGE_SIZE).unwrap();
    assert_eq!((read(1 << 30), read(700 << 30), read(bytes - 3)), ([0; 3], [0; 3], *b"xyz"));
    region.set_len(bytes / 2).unwrap();
    region.set_len(bytes).unwrap();
    assert_eq!(read(bytes - 3), [0; 3]);
    drop(region);
    // Page by page, these are 1.6 billion.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn page_tables_of_a_region_go_with_its_pages() {
    let memory = builder((Backend::Threads, 2)).build().unwrap();
    let tables = || {
        let vmstat = memory.read("/proc/vmstat").unwrap();
        let line = vmstat.lines().find_map(|line| line.strip_prefix("nr_page_table_pages "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let regions: Vec<Region> = (0..50)
        .map(|_| memory.region(PAGE_SIZE, RegionOptions::new()).unwrap())
        .inspect(|region| region.write_at(b"x", 0).unwrap())
        .collect();
    assert_eq!(tables(), 3 * 50);
    drop(regions);
    assert_eq!(tables(), 0);
    let region = memory.region(60 << 20, RegionOptions::new()).unwrap();
    (0..30).for_each(|at| region.write_at(b"x", at << 21).unwrap());
    assert_eq!(tables(), 30 + 2);
    region.set_len((10 << 21) + 1).unwrap();
    assert_eq!(tables(), 11 + 2);
    region.set_len(0).unwrap();
    assert_eq!(tables(), 0);
    region.set_len(100).unwrap();
    region.write_at(b"x", 50).unwrap();
    assert_eq!(tables(), 3);
    drop(region);
    assert_eq!(tables(), 0);
}

#[test]
fn dont_need_discards_the_pages_that_are_whole_when_it_begins() {
    let held = Arc::new(Held::default());
    let silent = Arc::new(Silent { is_on: AtomicBool::new(false), held: Arc::clone(&held) });
    let (memory, region) = swapped(Arc::clone(&silent) as Arc<dyn Faults>);
    let last = 10 * PAGE_SIZE;
    region.set_len(last + 1165).unwrap();
    silent.is_on.store(true, SeqCst);
    let mut buf = [7];
    let pending = region.submit(vec![ReadAt { buf: &mut buf, offset: 0 }]).unwrap();
    std::thread::scope(|scope| {
        // Both wait for the read.
        let grows = scope.spawn(|| region.set_len(last + PAGE_SIZE));
        let (number, began) = (region.0.number, Instant::now());
        while !memory.0.machine.lock().unwrap().regions.is_resizing(number) {
            assert!(began.elapsed() < Duration::from_secs(60), "the region does not begin to grow");
            std::thread::sleep(Duration::from_millis(1));
        }
        // All of the region's last page, but not once the region has grown.
        let discards = scope.spawn(|| region.advise(RegionAdvice::DontNeed, last..last + 1165));
        std::thread::sleep(Duration::from_millis(50));
        held.release();
        grows.join().unwrap().unwrap();
        discards.join().unwrap().unwrap();
    });
    drop(pending);
    let mut seen = vec![0; PAGE];
    region.read_at(&mut seen, last).unwrap();
    assert!(seen[..1165] == chunk(10, 1).repeat(PAGE / CHUNK)[..1165], "a part of a page was discarded");
}

#[test]
fn page_is_not_discarded_after_its_region_got_shorter() {
    let memory = builder((Backend::Threads, 2)).build().unwrap();
    for round in 0..300_u64 {
        let region = memory.region(PAGE_SIZE, RegionOptions::new()).unwrap();
        let guard = region.page_mut(0).unwrap();
        std::thread::scope(|scope| {
            // Both wait for the guard, and one of them longer than for it.
            let discards = scope.spawn(|| region.advise(RegionAdvice::DontNeed, 0..PAGE_SIZE));
            std::thread::sleep(Duration::from_micros(round % 100));
            let cuts = scope.spawn(|| {
                region.set_len(1165).unwrap();
                region.page_mut(0).unwrap().fill(9);
            });
            std::thread::sleep(Duration::from_micros(round / 100 * 50));
            drop(guard);
            cuts.join().unwrap();
            let discarded = discards.join().unwrap();
            let mut seen = [0; 1165];
            region.read_at(&mut seen, 0).unwrap();
            assert!(
                seen == [9; 1165],
                "round {round}: {discarded:?}, and a page of the shorter region is gone"
            );
        });
    }
}

#[test]
fn region_that_grows_counts_its_new_length_at_once() {
    const HALF: u64 = 40 << 20;
    let held = Arc::new(Held::default());
    let silent = Arc::new(Silent { is_on: AtomicBool::new(false), held: Arc::clone(&held) });
    let (memory, region) = swapped(Arc::clone(&silent) as Arc<dyn Faults>);
    let other = memory.region(PAGE_SIZE, RegionOptions::new()).unwrap();
    silent.is_on.store(true, SeqCst);
    let mut buf = vec![7; PAGE];
    let pending = region.submit(vec![ReadAt { buf: &mut buf, offset: 0 }]).unwrap();
    std::thread::scope(|scope| {
        // It waits for the read.
        let grows = scope.spawn(|| region.set_len(HALF));
        let began = Instant::now();
        let number = region.0.number;
        while !memory.0.machine.lock().unwrap().regions.is_resizing(number) {
            assert!(began.elapsed() < Duration::from_secs(60), "the region does not begin to grow");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(region.len(), 200 * PAGE_SIZE);
        let refused = memory.region(HALF, RegionOptions::new()).map(drop);
        assert!(matches!(refused, Err(Error::TooManyFiles { .. })), "{refused:?}");
        let refused = other.set_len(HALF);
        assert!(matches!(refused, Err(Error::TooManyFiles { .. })), "{refused:?}");
        held.release();
        grows.join().unwrap().unwrap();
    });
    drop(pending);
    // The refused length was not counted, and the larger one no longer is.
    other.set_len(20 << 20).unwrap();
    region.set_len(PAGE_SIZE).unwrap();
    other.set_len(HALF).unwrap();
}

#[test]
fn frame_of_another_shows_nothing_of_it() {
    let memory = builder((Backend::Threads, 2)).build().unwrap();
    let secret = memory.group("secret", Limits { max: Some(100 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    for round in 0..20 {
        let region = memory.region(300 * PAGE_SIZE, RegionOptions::new().group(&secret)).unwrap();
        (0..300).for_each(|page| region.write_at(&[0xaa; PAGE], page * PAGE_SIZE).unwrap());
        drop(region);
        let other = memory.region(1000 * PAGE_SIZE, RegionOptions::new()).unwrap();
        for page in 0..1000 {
            // Writes one byte per page: the others show the old contents of the frame, if it was not zeroed.
            other.write_at(&[1], page * PAGE_SIZE + page % PAGE_SIZE).unwrap();
        }
        for page in 0..1000 {
            let bytes = other.page(page).unwrap();
            let ones = bytes.iter().filter(|&&byte| byte == 1).count();
            let zeroes = bytes.iter().filter(|&&byte| byte == 0).count();
            assert_eq!((ones, zeroes), (1, PAGE - 1), "page {page} in round {round}");
        }
    }
}

#[test]
fn threads_that_resize_a_region_see_its_bytes_or_its_end() {
    let memory = builder((Backend::Threads, 2)).build().unwrap();
    let group = memory.group("job", Limits { max: Some(60 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let region = memory.region(200 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
    let (stops, well, beyond) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (region, stops, well, beyond) = (&region, &stops, &well, &beyond);
            scope.spawn(move || {
                let (random, mut buf) = (Random::new(thread), vec![7; PAGE]);
                while !stops.load(SeqCst) {
                    let page = random.below(200);
                    let outcome = match random.below(4) {
                        0 => region.write_at(&chunk(page, 1).repeat(PAGE / CHUNK), page * PAGE_SIZE),
                        1 => region.page(page).map(|guard| {
                            buf.fill(0);
                            buf[..guard.len()].copy_from_slice(&guard);
                        }),
                        2 => region
                            .submit(vec![ReadAt { buf: &mut buf, offset: page * PAGE_SIZE }])
                            .and_then(Pending::wait),
                        _ => region.read_at(&mut buf, page * PAGE_SIZE),
                    };
                    match outcome {
                        Ok(()) => {
                            for found in buf.chunks_exact(CHUNK) {
                                // The region may have ended within the chunk, and may be longer again.
                                let is_right = (0..=CHUNK).any(|end| {
                                    let whole = chunk(page, 1);
                                    found[..end] == whole[..end] && found[end..].iter().all(|&byte| byte == 0)
                                });
                                assert!(is_right || *found == [7; CHUNK], "page {page}: {found:?}");
                            }
                            well.fetch_add(1, SeqCst);
                        }
                        Err(Error::BeyondEnd { .. } | Error::CutMeanwhile { .. }) => {
                            _ = beyond.fetch_add(1, SeqCst)
                        }
                        Err(error) => panic!("{error}"),
                    }
                    buf.fill(7);
                }
            });
        }
        let random = Random::new(77);
        let (began, mut resized) = (Instant::now(), 0);
        while resized < 300 || well.load(SeqCst) < 200 || beyond.load(SeqCst) < 200 {
            region.set_len(random.below(200 * PAGE_SIZE)).unwrap();
            resized += 1;
            if began.elapsed() > Duration::from_secs(60) {
                break;
            }
        }
        stops.store(true, SeqCst);
    });
    let [well, beyond] = [well, beyond].map(AtomicU64::into_inner);
    assert!(well >= 200 && beyond >= 200, "{well}, {beyond}");
    memory.0.machine.lock().unwrap().engine.check_invariants();
}

mod pool; // pools that are full
