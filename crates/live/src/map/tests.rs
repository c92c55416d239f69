//! Mapped regions: contents, samples, faults that can't be served, and what the system refuses.

#![allow(clippy::unwrap_used, reason = "tests, which map regions")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::storage::failing::{Fate, Faults, Held, Request, When};
use crate::{Backend, Builder, Limits, Memory, Open, ReadAt, Zswap};

const MIB: u64 = 1 << 20;
/// A budget of little more than the least.
const SMALL: u64 = 10 * MIB;
const BACKENDS: [(Backend, usize); 3] = [(Backend::Threads, 3), (Backend::Uring, 3), (Backend::Threads, 0)];

fn builder(budget: u64) -> Builder {
    let builder = Memory::builder().budget(budget).files(256 * MIB);
    builder.swap_file(std::env::temp_dir(), 128 * MIB).swap_buffered(true)
}

/// The word of a page with this number.
fn word(map: &MappedRegion, page: u64, number: usize) -> *mut u64 {
    assert!((page + 1) * PAGE_SIZE <= map.len() && number < 512);
    map.as_mut_ptr().wrapping_add((page * PAGE_SIZE) as usize).cast::<u64>().wrapping_add(number)
}

fn store_at(map: &MappedRegion, page: u64, number: usize, value: u64) {
    // SAFETY: the word is in the region, by `word`, and the region exists. Each word has one thread at a time.
    unsafe { word(map, page, number).write_volatile(value) };
}

fn load_at(map: &MappedRegion, page: u64, number: usize) -> u64 {
    // SAFETY: as for `store_at`.
    unsafe { word(map, page, number).read_volatile() }
}

fn store(map: &MappedRegion, page: u64, value: u64) {
    store_at(map, page, 0, value);
}

fn load(map: &MappedRegion, page: u64) -> u64 {
    load_at(map, page, 0)
}

fn pages_of(map: &MappedRegion) -> u64 {
    map.len() / PAGE_SIZE
}

fn check(memory: &Memory) {
    memory.look_at_engine(|engine| engine.check_invariants()).unwrap();
}

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % most
    }
}

/// A device that a test controls.
#[derive(Default, Debug)]
struct Device {
    fails_reads: AtomicBool,
    fails_writes: AtomicBool,
    holds_reads: AtomicBool,
    holds_writes: AtomicBool,
    held: Arc<Held>,
    failed: AtomicU64,
}

impl Faults for Device {
    fn fate(&self, request: Request) -> Fate {
        let fails = match request {
            Request::Read { .. } => &self.fails_reads,
            Request::Write { .. } => &self.fails_writes,
            _ => return Fate::Well,
        };
        if !fails.load(SeqCst) {
            return Fate::Well;
        }
        self.failed.fetch_add(1, SeqCst);
        Fate::Fails(libc::EIO)
    }

    fn when(&self, request: Request) -> When {
        match request {
            Request::Read { .. } if self.holds_reads.load(SeqCst) => When::Released(Arc::clone(&self.held)),
            Request::Write { .. } if self.holds_writes.load(SeqCst) => When::Released(Arc::clone(&self.held)),
            _ => When::Now,
        }
    }
}

fn with_device(builder: Builder) -> (Memory, Arc<Device>) {
    let device = Arc::new(Device::default());
    (builder.swap_faults(Arc::clone(&device) as Arc<dyn Faults>).build().unwrap(), device)
}

const CHILD: &str = "PAGEOUT_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs a test of this file in a process of its own, where `is_child` is true. Fails if it takes too long.
fn run_in_child(test: &str) -> ExitStatus {
    const LONGEST: Duration = Duration::from_secs(120);
    let name = format!("map::tests::{test}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    let mut child = child.args(["--exact", &name, "--nocapture"]).env(CHILD, "1").spawn().unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("{test}: the child has not ended after {LONGEST:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Signals that threads have got.
static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// Makes each thread that gets a signal sleep forever.
fn sleep_at(signal: libc::c_int) {
    extern "C" fn sleep(_: libc::c_int) {
        SIGNALS.fetch_add(1, SeqCst);
        loop {
            // SAFETY: the call waits for a signal.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: the handler makes one call, which handlers may make.
    unsafe { libc::signal(signal, sleep as extern "C" fn(libc::c_int) as libc::sighandler_t) };
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "after a minute: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn region_larger_than_memory_is_read_as_written() {
    // Each policy with each backend, and each with and without a pool.
    let policies = ["mglru@6.12", "classic@6.12"];
    for (number, (backend, io_threads)) in BACKENDS.into_iter().enumerate() {
        for (at, policy) in policies.into_iter().enumerate() {
            let zswap = (number + at).is_multiple_of(2).then(Zswap::lz4);
            let builder = builder(11 * MIB).backend(backend).io_threads(io_threads).policy(policy);
            let builder = zswap.map_or(builder.clone(), |zswap| builder.zswap(zswap));
            let memory = builder.build().unwrap();
            let map = memory.map_region(18 * MIB, MapOptions::new().handlers(2)).unwrap();
            let pages = pages_of(&map);
            assert_eq!(load(&map, 7), 0);
            (0..pages).for_each(|page| store(&map, page, page + 1));
            for page in 0..pages {
                assert_eq!(load(&map, page), page + 1, "page {page}");
                if page % 3 == 0 {
                    store_at(&map, page, 511, page);
                }
            }
            for page in (0..pages).rev() {
                let last = if page % 3 == 0 { page } else { 0 };
                assert_eq!((load(&map, page), load_at(&map, page, 511)), (page + 1, last), "page {page}");
            }
            let stats = memory.stats().unwrap();
            assert!(stats.swapped > pages / 2 && stats.anon < pages / 2, "{stats:?}");
            assert_eq!(zswap.is_some(), stats.zswapped > 0, "{stats:?}");
            check(&memory);
            drop(map);
            let stats = memory.stats().unwrap();
            assert_eq!((stats.anon, stats.swapped), (0, 0), "{backend:?} {io_threads} {policy}: {stats:?}");
            check(&memory);
        }
    }
}

#[test]
fn clean_page_is_evicted_without_a_write() {
    let memory = builder(16 * MIB).build().unwrap();
    let map = memory.map_region(48 * MIB, MapOptions::new()).unwrap();
    let pages = pages_of(&map);
    (0..pages).for_each(|page| store(&map, page, page + 1));
    let read_all = || (0..pages).for_each(|page| assert_eq!(load(&map, page), page + 1));
    read_all();
    let written = memory.stats().unwrap().device_bytes_written;
    read_all();
    let stats = memory.stats().unwrap();
    assert!(stats.device_bytes_written - written < MIB, "{} bytes", stats.device_bytes_written - written);
}

/// The pages that the system says were used, and that the test has used.
#[test]
fn sample_has_exactly_the_pages_that_were_touched() {
    let memory = builder(96 * MIB).build().unwrap();
    let map = memory.map_region(64 * MIB, MapOptions::new()).unwrap();
    let (pages, pagemap) = (pages_of(&map), memory.0.machine.arena.tokens.pagemap());
    let sample = || {
        let mut used = Vec::new();
        pagemap.sample(map.mapping(), 0..pages, &mut used).unwrap();
        used
    };
    (0..pages).for_each(|page| store(&map, page, page));
    assert_eq!(sample(), (0..pages).collect::<Vec<_>>());
    assert_eq!(sample(), []);
    let mut random = Random(7);
    for share in [1, 3, 10, 30, 50, 70, 90, 97, 99, 100] {
        let touched: Vec<_> = (0..pages).filter(|_| random.below(100) < share).collect();
        for &page in &touched {
            match random.below(2) {
                0 => store(&map, page, page),
                _ => assert_eq!(load(&map, page), page),
            }
        }
        assert_eq!(sample(), touched, "{share} %");
    }
    // A protected page counts as well, used or not, and stays protected.
    map.mapping().protect(5);
    assert_eq!((load(&map, 5), sample()), (5, vec![5]));
    let misses = || memory.stats().unwrap().misses;
    let before = misses();
    assert_eq!((load(&map, 5), misses()), (5, before), "a load has faulted");
    store(&map, 5, 6);
    assert_eq!((load(&map, 5), misses()), (6, before + 1), "a store is a fault");
}

#[test]
fn used_pages_stay_by_samples() {
    for policy in ["mglru@6.12", "classic@6.12"] {
        let memory = builder(12 * MIB).policy(policy).build().unwrap();
        let map = memory.map_region(48 * MIB, MapOptions::new()).unwrap();
        let (pages, hot) = (pages_of(&map), MIB / PAGE_SIZE);
        let misses_of_hot = |touches: bool| {
            let mut faults = 0;
            for page in hot..pages {
                store(&map, page, 1);
                if touches && page % 8 == 0 {
                    let before = memory.stats().unwrap().misses;
                    (0..hot).for_each(|page| _ = load(&map, page));
                    faults += memory.stats().unwrap().misses - before;
                }
            }
            let before = memory.stats().unwrap().misses;
            (0..hot).for_each(|page| _ = load(&map, page));
            (faults, memory.stats().unwrap().misses - before)
        };
        (0..hot).for_each(|page| store(&map, page, 1));
        let (_, untouched) = misses_of_hot(false);
        assert_eq!(untouched, hot, "{policy}: pages without uses are gone");
        let (during, at_end) = misses_of_hot(true);
        // They are touched 1,500 times each.
        assert!(
            during < 8 * hot && at_end < hot / 4,
            "{policy}: {during} faults, then {at_end}, of {hot} pages"
        );
    }
}

#[test]
fn discarded_page_is_zeroes_and_uses_nothing() {
    for (backend, io_threads) in BACKENDS {
        let memory = builder(SMALL).backend(backend).io_threads(io_threads).build().unwrap();
        let map = memory.map_region(24 * MIB, MapOptions::new()).unwrap();
        let pages = pages_of(&map);
        for round in 1..=2 {
            (0..pages).for_each(|page| store(&map, page, round));
            // Some writes of slots are in flight.
            map.discard(0..pages / 2 * PAGE_SIZE).unwrap();
            for page in 0..pages {
                assert_eq!(load(&map, page), if page < pages / 2 { 0 } else { round }, "page {page}");
            }
        }
        map.discard(0..map.len()).unwrap();
        await_that("pages are in flight", || {
            let stats = memory.stats().unwrap();
            (stats.anon, stats.swapped) == (0, 0)
        });
        check(&memory);
    }
}

#[test]
fn advised_page_leaves_memory_and_comes_back() {
    let memory = builder(32 * MIB).build().unwrap();
    let map = memory.map_region(8 * MIB, MapOptions::new()).unwrap();
    let pages = pages_of(&map);
    (0..pages).for_each(|page| store(&map, page, page + 1));
    map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
    await_that("pages are not swapped out", || {
        map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
        memory.stats().unwrap().anon == 0
    });
    (0..pages).for_each(|page| assert_eq!(load(&map, page), page + 1));
    map.advise(RegionAdvice::Cold, 0..map.len()).unwrap();
    // A page that is on its way out is not forgotten.
    (0..pages).for_each(|page| store(&map, page, page + 1));
    map.advise(RegionAdvice::Free, 0..map.len()).unwrap();
    (0..pages).filter(|page| page % 2 == 0).for_each(|page| store(&map, page, page + 2));
    memory.write("/proc/sys/vm/swappiness", "200").unwrap();
    let other = memory.map_region(64 * MIB, MapOptions::new()).unwrap();
    (0..pages_of(&other)).for_each(|page| store(&other, page, 1));
    for page in 0..pages {
        let value = load(&map, page);
        match page % 2 {
            0 => assert_eq!(value, page + 2, "a written page was lost"),
            _ => assert!(value == 0 || value == page + 1, "page {page}: {value}"),
        }
    }
    assert!((0..pages).any(|page| load(&map, page) == 0), "no page was forgotten");
    check(&memory);
}

/// The engine's page stays if its write fails, and the user's stores during and after that.
#[test]
fn page_whose_write_fails_stays_and_can_be_stored_to() {
    for (backend, io_threads) in BACKENDS {
        let (memory, device) = with_device(builder(24 * MIB).backend(backend).io_threads(io_threads));
        let map = memory.map_region(12 * MIB, MapOptions::new()).unwrap();
        let pages = pages_of(&map);
        (0..pages).for_each(|page| store(&map, page, page + 1));
        device.fails_writes.store(true, SeqCst);
        for round in 0..10 {
            map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
            for page in (0..pages).step_by(7) {
                store_at(&map, page, 1, round);
            }
        }
        await_that("no write has failed", || device.failed.load(SeqCst) > 0);
        device.fails_writes.store(false, SeqCst);
        let check_all = || {
            for page in 0..pages {
                let second = if page % 7 == 0 { 9 } else { 0 };
                assert_eq!((load(&map, page), load_at(&map, page, 1)), (page + 1, second), "page {page}");
            }
        };
        check_all();
        await_that("pages are not swapped out", || {
            map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
            memory.stats().unwrap().anon < pages / 8
        });
        check_all();
        check(&memory);
    }
}

/// The load does not fault, but the engine is notified of it before it frees the page.
#[test]
fn page_that_is_used_while_it_is_written_stays() {
    let (memory, device) = with_device(builder(24 * MIB));
    let group = memory.group("job", Limits::NONE).unwrap();
    let map = memory.map_region(64 * PAGE_SIZE, MapOptions::new().group(&group)).unwrap();
    (0..64).for_each(|page| store(&map, page, page + 1));
    device.holds_writes.store(true, SeqCst);
    map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
    await_that("nothing is written", || device.held.waiting() > 0);
    let misses = || memory.stats().unwrap().misses;
    let before = misses();
    assert_eq!((load(&map, 7), load(&map, 8)), (8, 9));
    assert_eq!(misses(), before, "a load of a page that is being written has faulted");
    device.held.release();
    await_that("writes are in flight", || memory.stats().unwrap().writeback == 0);
    // The pages are clean. Most of them can go, and the used ones are not among those.
    group.write("memory.reclaim", &(48 * PAGE_SIZE).to_string()).unwrap();
    let before = misses();
    assert_eq!((load(&map, 7), load(&map, 8), misses()), (8, 9, before), "used pages have left memory");
    (0..64).for_each(|page| assert_eq!(load(&map, page), page + 1));
    assert!(misses() - before >= 48, "unused pages have stayed: {} faults", misses() - before);
    check(&memory);
}

/// Has a thread store to page after page, until a store gets a signal because there is no memory. Returns how many pages have been stored to.
fn store_until_refused(map: &Arc<MappedRegion>) -> u64 {
    let stored = Arc::new(AtomicU64::new(0));
    let (other, count) = (Arc::clone(map), Arc::clone(&stored));
    thread::spawn(move || {
        for page in 0..pages_of(&other) {
            store(&other, page, page + 1);
            count.store(page + 1, SeqCst);
        }
    });
    await_that("the access gets no signal", || SIGNALS.load(SeqCst) == 1);
    let error = map.take_error();
    assert!(matches!(error, Some(Error::OutOfMemory(_))), "{error:?}");
    stored.load(SeqCst)
}

#[test]
fn store_without_memory_and_swap_is_sigbus() {
    if !is_child() {
        let status = run_in_child("store_without_memory_and_swap_is_sigbus");
        assert!(status.success(), "{status}");
        return;
    }
    sleep_at(libc::SIGBUS);
    let memory = Memory::builder().budget(16 * MIB).files(256 * MIB);
    let memory = memory.swap_file(std::env::temp_dir(), 8 * MIB).swap_buffered(true).build().unwrap();
    let map = Arc::new(memory.map_region(64 * MIB, MapOptions::new()).unwrap());
    let stored = store_until_refused(&map);
    assert!((3000..26 * MIB / PAGE_SIZE).contains(&stored), "{stored}");
    // With memory for the others, nothing is lost.
    map.discard(stored / 2 * PAGE_SIZE..map.len()).unwrap();
    (0..stored / 2).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page}"));
    std::process::exit(0);
}

#[test]
fn drop_with_a_pending_fault_ends() {
    if !is_child() {
        // The thread whose pointer outlives the region may be killed, but no thread waits forever.
        let status = run_in_child("drop_with_a_pending_fault_ends");
        assert!(status.success() || status.signal() == Some(libc::SIGSEGV), "{status}");
        return;
    }
    for handlers in [1, 3] {
        let (memory, device) = with_device(builder(16 * MIB));
        let map = memory.map_region(48 * MIB, MapOptions::new().handlers(handlers)).unwrap();
        (0..pages_of(&map)).for_each(|page| store(&map, page, page + 1));
        device.holds_reads.store(true, SeqCst);
        let first = word(&map, 0, 0).expose_provenance();
        // SAFETY: the region may end during the load, which then kills the child. That is what is tested.
        let load =
            thread::spawn(move || unsafe { std::ptr::with_exposed_provenance::<u64>(first).read_volatile() });
        await_that("no fault waits for the device", || device.held.waiting() > 0);
        let dropped = thread::spawn(move || drop(map));
        thread::sleep(Duration::from_millis(20));
        device.held.release();
        dropped.join().unwrap();
        assert_eq!(load.join().unwrap(), 1);
        let stats = memory.stats().unwrap();
        assert_eq!((stats.anon, stats.swapped), (0, 0));
        check(&memory);
    }
    std::process::exit(0);
}

#[test]
fn forked_child_has_no_region_and_changes_none() {
    let memory = builder(24 * MIB).build().unwrap();
    let map = memory.map_region(4 * MIB, MapOptions::new()).unwrap();
    (0..pages_of(&map)).for_each(|page| store(&map, page, page + 1));
    // SAFETY: the child makes a store, and drops a value that does nothing there, and exits without the destructors of others.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(map);
        // SAFETY: the store kills the child, as there is no memory: that is what is tested.
        unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            memory.0.machine.arena.place().0.cast_mut().write_volatile(1);
            libc::_exit(0)
        }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: the call writes to the one place that it is given.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status}");
    (0..pages_of(&map)).for_each(|page| assert_eq!(load(&map, page), page + 1));
    check(&memory);
}

#[test]
fn store_of_a_forked_child_is_killed() {
    let memory = builder(24 * MIB).build().unwrap();
    let map = memory.map_region(4 * MIB, MapOptions::new()).unwrap();
    store(&map, 0, 1);
    // SAFETY: the child makes a store, and nothing else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the store kills the child, as there is no memory: that is what is tested.
        unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            word(&map, 0, 0).write_volatile(2);
            libc::_exit(0)
        }
    }
    let mut status = 0;
    // SAFETY: the call writes to the one place that it is given.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status}");
    assert_eq!(load(&map, 0), 1);
}

#[test]
fn region_unmapped_by_its_user_harms_no_other() {
    let memory = builder(SMALL).build().unwrap();
    let [map, other] = [(); 2].map(|()| memory.map_region(12 * MIB, MapOptions::new()).unwrap());
    for page in 0..pages_of(&map) {
        store(&map, page, 1);
        store(&other, page, page + 1);
    }
    // SAFETY: no pointer into the region is used any more. The call is what its documentation forbids.
    assert_eq!(unsafe { libc::munmap(map.as_mut_ptr().cast(), map.len() as usize) }, 0);
    for round in 0..3 {
        for page in 0..pages_of(&other) {
            assert_eq!(load(&other, page), page + 1 + round);
            store(&other, page, page + 2 + round);
        }
    }
    map.discard(0..map.len()).unwrap();
    drop(map);
    check(&memory);
    drop(other);
    let stats = memory.stats().unwrap();
    assert_eq!((stats.anon, stats.swapped), (0, 0));
}

#[test]
fn groups_have_their_limits() {
    let memory = builder(48 * MIB).build().unwrap();
    let limits = |max| Limits { max: Some(max), ..Limits::NONE };
    let groups = [(4, "a"), (8, "b")].map(|(max, name)| memory.group(name, limits(max * MIB)).unwrap());
    let maps =
        groups.each_ref().map(|group| memory.map_region(24 * MIB, MapOptions::new().group(group)).unwrap());
    for round in 1..=2 {
        for (map, (group, max)) in maps.iter().zip(groups.iter().zip([4, 8])) {
            for page in 0..pages_of(map) {
                assert_eq!(load(map, page), page * (round - 1));
                store(map, page, page * round);
            }
            let current: u64 = group.read("memory.current").unwrap().trim().parse().unwrap();
            assert!((max * MIB / 2..=max * MIB).contains(&current), "{current} of {max} MiB");
            assert!(group.stats().unwrap().misses >= pages_of(map) * round);
        }
    }
    drop(maps);
    groups.into_iter().for_each(|group| group.remove().unwrap());
    check(&memory);
}

#[test]
fn changed_budget_moves_pages_of_a_mapped_region() {
    let memory = builder(32 * MIB).build().unwrap();
    let map = memory.map_region(24 * MIB, MapOptions::new()).unwrap();
    let pages = pages_of(&map);
    (0..pages).for_each(|page| store(&map, page, page + 1));
    for budget in [16, 32, 12, 32] {
        memory.set_budget(budget * MIB).unwrap();
        check(&memory);
        (0..pages).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page} at {budget} MiB"));
        (0..pages).for_each(|page| store_at(&map, page, 1, budget));
    }
    assert!((0..pages).all(|page| load_at(&map, page, 1) == 32));
}

/// Buffers of calls may lie in a mapped region: their faults need the engine.
#[test]
fn buffer_in_a_mapped_region_is_filled_and_read() {
    let path = std::env::temp_dir().join(format!("pageout-map-buffers-{}", std::process::id()));
    let file_pages = 2048;
    let bytes: Vec<u8> = (0..file_pages).flat_map(|page: u64| (page + 1).to_le_bytes().repeat(512)).collect();
    std::fs::write(&path, bytes).unwrap();
    for user_mode_only in [false, true] {
        let memory = builder(16 * MIB).build().unwrap();
        let map = memory.map_region(32 * MIB, MapOptions::new().user_mode_only(user_mode_only)).unwrap();
        let explicit = memory.region(8 * MIB, RegionOptions::new()).unwrap();
        let file = memory.open(&path, Open::read_write().random().buffered(true)).unwrap();
        for first in (0..file_pages).step_by(64) {
            // SAFETY: these pages of the region are used through this reference only, as long as it exists.
            let buf = unsafe { std::slice::from_raw_parts_mut(word(&map, first, 0).cast::<u8>(), 64 * 4096) };
            let reads = buf.chunks_mut(4096).zip(first..);
            let mut reads: Vec<_> =
                reads.map(|(buf, page)| ReadAt { buf, offset: page * PAGE_SIZE }).collect();
            match first % 128 {
                0 => file.read_batch(&mut reads).unwrap(),
                _ => file.submit(reads).unwrap().wait().unwrap(),
            }
            explicit.write_at(buf, first * PAGE_SIZE).unwrap();
        }
        for page in 0..file_pages {
            assert_eq!((load(&map, page), load_at(&map, page, 511)), (page + 1, page + 1));
        }
        // The other way: from missing pages to a file, and from an explicit region to new ones.
        for page in 0..file_pages {
            let to = file_pages + page;
            // SAFETY: as above.
            let buf = unsafe { std::slice::from_raw_parts_mut(word(&map, to, 0).cast::<u8>(), 4096) };
            explicit.read_at(buf, page * PAGE_SIZE).unwrap();
            file.write_at(buf, page * PAGE_SIZE).unwrap();
            assert_eq!(load(&map, to), page + 1);
        }
        check(&memory);
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn system_call_gets_a_page_or_efault_by_the_form() {
    for user_mode_only in [false, true] {
        let memory = builder(16 * MIB).build().unwrap();
        let map = memory.map_region(MIB, MapOptions::new().user_mode_only(user_mode_only)).unwrap();
        let has_all = map.describe().contains("of system calls too");
        assert!(!(user_mode_only && has_all), "{}", map.describe());
        // SAFETY: the call writes a byte of the region.
        let read = |page| unsafe {
            let urandom = libc::open(c"/dev/zero".as_ptr(), libc::O_RDONLY);
            let read = libc::read(urandom, word(&map, page, 0).cast(), 1);
            let errno = std::io::Error::last_os_error().raw_os_error();
            libc::close(urandom);
            if read == 1 { None } else { errno }
        };
        assert_eq!(read(0), if has_all { None } else { Some(libc::EFAULT) });
        store(&map, 1, 7);
        assert_eq!((read(1), load(&map, 1)), (None, 0));
    }
}

#[test]
fn many_regions_are_made_and_given_back() {
    let memory = builder(24 * MIB).build().unwrap();
    for _ in 0..2 {
        let maps: Vec<_> =
            (0..100).map(|_| memory.map_region(MIB / 2, MapOptions::new().handlers(1)).unwrap()).collect();
        for (number, map) in (1..).zip(&maps) {
            (0..pages_of(map)).for_each(|page| store(map, page, number));
        }
        for (number, map) in (1..).zip(&maps) {
            (0..pages_of(map)).for_each(|page| assert_eq!(load(map, page), number));
        }
        drop(maps);
        let stats = memory.stats().unwrap();
        assert_eq!((stats.anon, stats.swapped), (0, 0));
    }
    check(&memory);
}

#[test]
fn options_out_of_range_are_refused() {
    let memory = builder(16 * MIB).build().unwrap();
    for handlers in [0, 65] {
        let error = memory.map_region(MIB, MapOptions::new().handlers(handlers)).unwrap_err();
        assert!(error.to_string().contains("threads that serve faults"), "{error}");
    }
    let error = memory.map_region(4 << 40, MapOptions::new().name("huge")).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    let error = memory.map_region(1 << 30, MapOptions::new()).unwrap_err();
    assert!(matches!(error, Error::TooManyFiles { .. }), "{error}");
    let map = memory.map_region(0, MapOptions::new()).unwrap();
    assert!(map.is_empty());
}

mod stress; // stores of several threads during evictions
mod uses; // users that lock a region, run over its end, and repair it
