//! The process has the memory of the current budget: less after a smaller one is set, and no more than that before. The test has its own process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and reads /proc")]

mod made;
#[path = "made/memory.rs"]
mod memory;

use made::{Made, draws};
use memory::resident;
use pageout::{File, Memory, Open};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
const LARGE: u64 = 96 * MIB;
const SMALL: u64 = 24 * MIB;

/// Reads pages at random, as many as the largest budget has.
fn load(file: &File, seed: u64) {
    let (mut draw, mut buf) = (draws(seed), [0; 64]);
    for _ in 0..2 * LARGE / PAGE {
        let page = draw(file.len() / PAGE);
        file.read_at(&mut buf, page * PAGE).unwrap();
        assert_eq!(buf[0], u8::from(page == 0));
    }
}

#[test]
fn process_has_the_memory_of_the_current_budget() {
    let made = Made::empty("large");
    // The rest is a hole, which takes no blocks and reads as zeroes.
    std::fs::write(&made.0, [1; 5]).unwrap();
    std::fs::OpenOptions::new().write(true).open(&made.0).unwrap().set_len(2 * LARGE).unwrap();
    for policy in ["mglru@6.12", "classic@6.12"] {
        let before = resident();
        let grown = || resident().saturating_sub(before);
        let builder = Memory::builder().budget(SMALL).budget_max(LARGE).files(2 * LARGE).policy(policy);
        let memory = builder.build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        for round in 0..3 {
            load(&file, round);
            let small = grown();
            assert!(small <= SMALL + MIB, "{policy}, round {round}: {small} bytes of a budget of {SMALL}");
            assert!(small >= SMALL * 3 / 4, "{policy}, round {round}: {small} bytes of a budget of {SMALL}");
            memory.set_budget(LARGE).unwrap();
            load(&file, round + 10);
            let large = grown();
            assert!(large <= LARGE + MIB, "{policy}, round {round}: {large} bytes of a budget of {LARGE}");
            assert!(large >= LARGE * 3 / 4, "{policy}, round {round}: {large} bytes of a budget of {LARGE}");
            memory.set_budget(SMALL).unwrap();
            let less = grown();
            println!(
                "{policy}, round {round}: grown by {:.2}, {:.2} and {:.2} MiB; {} frames",
                small as f64 / MIB as f64,
                large as f64 / MIB as f64,
                less as f64 / MIB as f64,
                memory.stats().unwrap().frames,
            );
            assert!(less <= SMALL + MIB, "{policy}, round {round}: {less} bytes are left of {large}");
        }
    }
}
