//! The budget is the process's: its peak, less what it was before, with files of many times the budget. A test of its own process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and reads /proc")]

mod made;
#[path = "made/memory.rs"]
mod memory;

use std::io::Write;
use std::time::Duration;

use made::Made;
use memory::Growth;
use pageout::{Delay, Memory, Node, Open};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

#[test]
fn the_process_grows_by_no_more_than_the_budget() {
    let made = Made::empty("large");
    let budget = 16 * MIB;
    let delay = Delay::per_page(Duration::ZERO);
    for (policy, times, slow) in [
        ("mglru@6.12", 4, 0),
        ("classic@6.12", 4, 0),
        ("classic@6.12", 4, 6 * MIB),
        ("mglru@6.12", 64, 0),
        ("classic@6.12", 64, 0),
        ("mglru@6.12", 64, 4 * MIB),
    ] {
        let bytes = times * budget;
        // Nobody writes it: it takes no blocks, and reads as zeroes.
        let mut file = std::fs::File::create(&made.0).unwrap();
        file.set_len(bytes).unwrap();
        file.write_all(&[1; 5]).unwrap();
        let growth = Growth::begin();
        let builder = Memory::builder().budget(budget).files(bytes).policy(policy);
        let builder = if slow > 0 { builder.node(Node::slow(slow).emulated(delay)) } else { builder };
        let memory = builder.build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let file = &file;
                scope.spawn(move || {
                    let (mut state, mut buf) = (thread, [0; 64]);
                    for _ in 0..40_000 {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let page = (state >> 33) % (bytes / PAGE);
                        file.read_at(&mut buf, page * PAGE).unwrap();
                        assert_eq!(buf[0], u8::from(page == 0));
                    }
                });
            }
        });
        let grown = growth.peak();
        let stats = memory.stats().unwrap();
        println!(
            "{policy}, a file of {times} budgets: grown by {:.2} of {} MiB; {} frames, {} of them slow, {} pages of files in memory, {} reads; {}",
            grown as f64 / MIB as f64,
            budget / MIB,
            stats.frames,
            stats.slow_frames,
            stats.resident,
            stats.device_reads,
            growth.describe_parts(),
        );
        assert!(grown <= budget, "{policy}, a file of {times} budgets: grown by {grown} bytes");
    }
}
