//! Users that do more with a mapped region than to load and store.

use super::*;

/// The engine takes its own entry of a page away before it asks if a handler has the page. The user has it then, and does not fault again.
#[test]
fn page_that_was_served_during_an_eviction_is_evicted_later() {
    let memory = builder(24 * MIB).zswap(Zswap::lz4()).build().unwrap();
    let map = memory.map_region(MIB, MapOptions::new()).unwrap();
    store(&map, 5, 6);
    let page_out = || map.advise(RegionAdvice::PageOut, 5 * PAGE_SIZE..6 * PAGE_SIZE).unwrap();
    let machine = &memory.0.machine;
    let pfn = machine.frame_of_page(map.state.number, 5).unwrap();
    let served = machine.arena.begin_write(pfn).ok().unwrap();
    page_out();
    drop(served);
    let misses = memory.stats().unwrap().misses;
    assert_eq!((load(&map, 5), memory.stats().unwrap().misses), (6, misses), "it is in memory");
    await_that("the page is not evicted", || {
        page_out();
        machine.frame_of_page(map.state.number, 5).is_none()
    });
    assert_eq!((load(&map, 5), memory.stats().unwrap().misses), (6, misses + 1));
    check(&memory);
}
