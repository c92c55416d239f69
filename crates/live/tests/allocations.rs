//! A miss allocates nothing once its structures have grown, unless it reclaims: counted by an allocator of this process. Only the thread of the test counts.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

mod made;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use made::{Made, PAGE, draws};
use pageout::{Memory, Open};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator unchanged. The count is a cell of the thread, which allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that the call asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread.
fn allocations(act: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    act();
    ALLOCATIONS.get() - before
}

/// Calls of direct reclaim so far.
fn reclaim_calls(memory: &Memory) -> u64 {
    let vmstat = memory.read("/proc/vmstat").unwrap();
    let stalls = vmstat.lines().filter_map(|line| line.strip_prefix("allocstall")?.split(' ').nth(1));
    stalls.map(|calls| calls.parse::<u64>().unwrap()).sum()
}

const PAGES: u64 = 16_384;
const MISSES: u64 = 20_000;

#[test]
fn misses_allocate_nothing_after_the_first_ones() {
    assert!(allocations(|| drop(vec![1])) > 0, "nothing is counted");
    let made = Made::new("misses", PAGES as usize * PAGE);
    for policy in ["mglru@6.12", "classic@6.12"] {
        let memory = Memory::builder().budget(16 << 20).io_threads(0).policy(policy).build().unwrap();
        let file = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
        let (mut draw, mut buf) = (draws(7), vec![0; 64]);
        let mut read =
            |reads: u64| (0..reads).for_each(|_| file.read_at(&mut buf, draw(PAGES) * PAGE as u64).unwrap());
        read(3 * MISSES);
        let before = (memory.stats().unwrap().misses, reclaim_calls(&memory));
        let allocated = allocations(|| read(MISSES));
        let missed = memory.stats().unwrap().misses - before.0;
        assert!(missed > MISSES / 2, "{policy}: {missed} misses");
        // A miss that reclaims itself, because kswapd is late, lists the groups to reclaim from, at each priority.
        let reclaims = reclaim_calls(&memory) - before.1;
        assert!(reclaims < missed / 8, "{policy}: {reclaims} of {missed} misses reclaim");
        assert!(
            allocated <= 16 * reclaims,
            "{policy}: {allocated} allocations of {missed} misses, {reclaims} of which reclaim"
        );
    }
}

#[test]
fn windows_of_readahead_use_their_vectors_again() {
    let made = Made::new("ahead", PAGES as usize * PAGE);
    for policy in ["mglru@6.12", "classic@6.12"] {
        let memory = Memory::builder().budget(16 << 20).io_threads(0).policy(policy).build().unwrap();
        let file = memory.open(&made.0, Open::read().buffered(true)).unwrap();
        let mut buf = vec![0; PAGE];
        let mut read = || (0..PAGES).for_each(|page| file.read_at(&mut buf, page * PAGE as u64).unwrap());
        (0..3).for_each(|_| read());
        let before = memory.stats().unwrap().device_reads;
        let allocated = allocations(&mut read);
        let requests = memory.stats().unwrap().device_reads - before;
        assert!((64..PAGES / 8).contains(&requests), "{policy}: {requests} requests for {PAGES} pages");
        // The tree of index nodes with shadows grows and shrinks, and more often with a small reserve of free memory.
        assert!(allocated <= requests * 2 / 3, "{policy}: {allocated} allocations of {requests} requests");
    }
}
