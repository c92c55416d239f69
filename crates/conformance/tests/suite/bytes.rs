//! Runs of bytes: what failed once, and random ones.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads inputs

use pageout_conformance::run;
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
    for seed in 0..150_u64 {
        println!("seed {seed}");
        let mut state = seed;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        });
        run(&bytes.take(1600).collect::<Vec<u8>>());
    }
}
