//! A process with mapped regions of many times the budget stays in its budget, next to files and explicit regions. The test has its own process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that reads /proc")]

#[path = "made/memory.rs"]
mod memory;

use memory::Growth;
use pageout::{MapOptions, Memory, Open, RegionOptions, Zswap};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// The next random number.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 20
}

#[test]
fn process_with_mapped_regions_grows_by_the_budget_and_a_mebibyte() {
    let budget = 24 * MIB;
    let path = std::env::temp_dir().join(format!("pageout-map-budget-{}", std::process::id()));
    std::fs::write(&path, vec![7; 32 << 20]).unwrap();
    for (policy, times, accesses, zswap, others) in [
        ("mglru@6.12", 3, 16_000, None, false),
        ("mglru@6.12", 3, 16_000, None, true),
        ("classic@6.12", 24, 10_000, None, true),
        ("mglru@6.12", 3, 16_000, Some(Zswap::lz4()), false),
        ("classic@6.12", 3, 16_000, Some(Zswap::zstd(1)), true),
    ] {
        let bytes = times * budget;
        let growth = Growth::begin();
        let builder = Memory::builder().budget(budget).files(2 * bytes + 64 * MIB).policy(policy);
        let builder = builder.swap_file(std::env::temp_dir(), 2 * bytes).swap_buffered(true);
        let builder = match zswap {
            None => builder,
            Some(zswap) => builder.zswap(zswap).sysctl("zswap.max_pool_percent", 50),
        };
        let memory = builder.build().unwrap();
        let explicit = memory.region(bytes, RegionOptions::new()).unwrap();
        let file = memory.open(&path, Open::read_write().random().buffered(true)).unwrap();
        let use_others = |state: &mut u64| {
            explicit.write_at(&[1; 9], next(state) % (bytes - 9)).unwrap();
            file.read_at(&mut [0; 9], next(state) % (32 * MIB - 9)).unwrap();
        };
        if others {
            // Frames have memory in the arena before they stand for mapped pages.
            let mut state = 1;
            (0..accesses).for_each(|_| use_others(&mut state));
        }
        let map = memory.map_region(bytes, MapOptions::new()).unwrap();
        let at = map.as_mut_ptr().expose_provenance();
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                scope.spawn(move || {
                    let mut state = thread;
                    for _ in 0..accesses {
                        let (page, is_store) =
                            (next(&mut state) % (bytes / PAGE), next(&mut state).is_multiple_of(2));
                        let word = std::ptr::with_exposed_provenance_mut::<u64>(at + (page * PAGE) as usize)
                            .wrapping_add(thread as usize);
                        // SAFETY: the word is in the region, which exists until the end of the scope, and is this thread's.
                        unsafe {
                            let value = word.read_volatile();
                            assert!(value == 0 || value == page + 1, "page {page}: {value}");
                            if is_store {
                                word.write_volatile(page + 1);
                            }
                        }
                        if others && state >> 50 & 3 == 0 {
                            use_others(&mut state);
                        }
                    }
                });
            }
        });
        let grown = growth.peak();
        let stats = memory.stats().unwrap();
        println!(
            "{policy}, {zswap:?}, {times} budgets, others: {others}: grown by {:.2} of {} MiB; {} pages in swap; {}",
            grown as f64 / MIB as f64,
            budget / MIB,
            stats.swapped,
            growth.describe_parts(),
        );
        assert!(stats.swapped > 1000, "{policy}, {times}: {} pages in swap", stats.swapped);
        assert!(grown <= budget + MIB, "{policy}, {zswap:?}, {times}, {others}: grown by {grown} bytes");
        drop(map);
        drop((memory, file, explicit));
    }
    std::fs::remove_file(&path).unwrap();
}
