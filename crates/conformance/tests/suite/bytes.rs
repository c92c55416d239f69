//! Runs of bytes: what failed once, and random ones.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads inputs

use pageout_conformance::{run, run_behind_deaf_gate};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[test]
fn inputs_on_which_the_engine_once_failed_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions/engine");
    let mut inputs: Vec<_> = folder.read_dir().unwrap().map(|input| input.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for input in inputs {
        println!("{}", input.display());
        run(&std::fs::read(&input).unwrap());
    }
}

#[test]
fn no_input_of_random_bytes_loses_a_page() {
    let runs = std::env::var("PAGEOUT_RUNS").ok().map(|runs| runs.parse::<u64>().unwrap());
    for seed in 0..runs.unwrap_or(150) {
        println!("seed {seed}");
        run(&random_bytes(seed));
    }
}

#[test]
fn gate_that_closes_before_a_reader_leaves_is_noticed() {
    let failure = |seed| {
        let bytes = random_bytes(seed);
        let panic = catch_unwind(AssertUnwindSafe(|| run_behind_deaf_gate(&bytes))).err()?;
        panic.downcast_ref::<String>().cloned()
    };
    let text = (0..500).find_map(failure).unwrap_or_default();
    assert!(text.contains("look"), "{text:?}");
}

/// As many as a long run takes.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let bytes = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    });
    bytes.take(1600).collect()
}
