//! A process with regions of many times the budget stays in its budget: frames, words, and the state of slots. The test has its own process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that reads /proc")]

#[path = "made/memory.rs"]
mod memory;

use memory::Growth;
use pageout::{Memory, RegionOptions, Zswap};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

#[test]
fn process_with_regions_grows_by_no_more_than_the_budget() {
    let budget = 24 * MIB;
    for (policy, times, accesses, zswap) in [
        ("mglru@6.12", 3, 30_000, None),
        ("classic@6.12", 3, 30_000, None),
        ("mglru@6.12", 24, 15_000, None),
        ("mglru@6.12", 3, 30_000, Some(Zswap::lz4())),
        ("classic@6.12", 24, 30_000, Some(Zswap::zstd(1))),
        ("classic@6.8", 3, 30_000, Some(Zswap::zstd(22))),
    ] {
        let bytes = times * budget;
        let growth = Growth::begin();
        let builder = Memory::builder().budget(budget).files(bytes).policy(policy);
        let builder = builder.swap_file(std::env::temp_dir(), bytes).swap_buffered(true);
        let builder = match zswap {
            None => builder,
            Some(zswap) => builder.zswap(zswap).sysctl("zswap.max_pool_percent", 50),
        };
        let memory = builder.build().unwrap();
        let region = memory.region(bytes, RegionOptions::new()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let region = &region;
                scope.spawn(move || {
                    let (mut state, mut buf) = (thread, [0; 16]);
                    for _ in 0..accesses {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let page = (state >> 33) % (bytes / PAGE);
                        let number = (page + 1).to_le_bytes();
                        if state >> 20 & 1 == 0 {
                            region.write_at(&number, page * PAGE).unwrap();
                        } else {
                            region.read_at(&mut buf, page * PAGE).unwrap();
                            assert!(buf[..8] == number || buf == [0; 16], "page {page}: {buf:?}");
                        }
                    }
                });
            }
        });
        let grown = growth.peak();
        let stats = memory.stats().unwrap();
        println!(
            "{policy}, {zswap:?}, a region of {times} budgets: grown by {:.2} of {} MiB; {} frames, {} pages in swap, {} of them compressed in {} frames; {}",
            grown as f64 / MIB as f64,
            budget / MIB,
            stats.frames,
            stats.swapped,
            stats.zswapped,
            stats.zswap_frames,
            growth.describe_parts(),
        );
        assert!(zswap.is_none() || stats.zswapped > 1000, "{policy}, {times}: {stats:?}");
        assert!(stats.swapped > 1000, "{policy}, {times}: {} pages in swap", stats.swapped);
        assert!(grown <= budget, "{policy}, {zswap:?}, a region of {times} budgets: grown by {grown} bytes");
    }
}
