//! The published sequences come out of the generators bit for bit.
//!
//! Each pattern below is the `spec` of a sequence in the ground truth's `sequences/index.json`, written as a scenario
//! file would; the dumped file is right where the two differ.
#![allow(clippy::unwrap_used)] // a helper of a test fails as a test does

use std::path::PathBuf;

use pageout_workload::trace::{self, Format};
use pageout_workload::{Access, AccessStream, Pattern, ReadOptions};

/// A file of the recordings: from the part that ships with the project, from all of them where they are, or nothing and a
/// word about it.
fn shared(relative: &str) -> Option<PathBuf> {
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = project.join(relative);
    if shipped.exists() {
        return Some(shipped);
    }
    let beside = || project.join("../shared");
    let path = std::env::var_os("PAGEOUT_SHARED").map_or_else(beside, PathBuf::from).join(relative);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there (set PAGEOUT_SHARED)", path.display());
    None
}

fn drain(mut stream: Box<dyn AccessStream>) -> Vec<Access> {
    let mut out = Vec::new();
    // An odd chunk, so that chunk borders fall everywhere.
    while stream.fill(&mut out, 7919).unwrap() > 0 {}
    out
}

#[track_caller]
fn check(sequence: &str, seed: u64, pattern: &str) {
    let Some(path) = shared(&format!("ground-truth/sequences/{sequence}.u32.zst")) else { return };
    let options = ReadOptions { format: Some(Format::Words), ..ReadOptions::default() };
    let dumped = drain(trace::open(&path, &options).unwrap());
    let pattern: Pattern = toml::from_str(pattern).unwrap();
    let stream = pattern.stream(0, seed).unwrap();
    let hint = stream.len_hint();
    let generated = drain(stream);
    assert!(hint.is_none_or(|hint| hint == generated.len() as u64));
    assert_eq!(generated.len(), dumped.len());
    let first_difference = generated.iter().zip(&dumped).position(|(a, b)| a != b);
    assert_eq!(first_difference, None, "{sequence} differs");
    let sizes = pattern.object_pages(0);
    assert!(dumped.iter().all(|access| access.page() < sizes[&access.object()]));
}

#[test]
fn zipf_sequences_are_reproduced() {
    check("zipf080", 101, "pattern = 'zipf'\npages = 16384\nalpha = 0.8\nops = 300000");
    check("zipf099", 102, "pattern = 'zipf'\npages = 16384\nalpha = 0.99\nops = 300000");
    check("global", 119, "pattern = 'zipf'\npages = 65536\nalpha = 0.9\nops = 400000");
}

#[test]
fn the_uniform_sequence_is_reproduced() {
    check("uniform", 104, "pattern = 'uniform'\npages = 16384\nops = 200000");
}

#[test]
fn the_loop_is_reproduced() {
    check("loop", 0, "pattern = 'loop'\npages = 10240\nops = 102400");
}

#[test]
fn the_zipf_sequence_with_scans_is_reproduced() {
    check(
        "zipfscan",
        106,
        "pattern = 'zipf_scan'\npages = 8192\nalpha = 0.9\nops = 240000\nscan_every = 40000\nscan_length = 8192",
    );
}

#[test]
fn the_two_phases_are_reproduced() {
    check(
        "twophase",
        108,
        "pattern = 'phase_shift'
         phases = [
             { pages = 5120, ops = 60000 },
             { pages = 12288, ops = 60000, offset = 5120, order = 'looping' },
             { pages = 5120, ops = 60000 },
         ]",
    );
}

#[test]
fn zipf_sequences_with_writes_are_reproduced() {
    check("dirty", 115, "pattern = 'zipf'\npages = 16384\nalpha = 0.5\nops = 120000\nwrite_ratio = 0.7");
    check(
        "anon",
        0,
        "pattern = 'chain'
         parts = [
             { of = { pattern = 'fill', pages = 8192 } },
             { of = { pattern = 'zipf', seed = 109, pages = 8192, alpha = 0.9, ops = 200000, write_ratio = 0.3 } },
         ]",
    );
}

const MIXED: &str = "
    pattern = 'chain'
    [[parts]]
    object = 1
    of = { pattern = 'fill', pages = 8192 }
    [[parts]]
    [parts.of]
    pattern = 'interleave'
    seed = 111
    [[parts.of.parts]]
    weight = 50
    object = 1
    of = { pattern = 'zipf', seed = 112, pages = 8192, alpha = 0.9, ops = 150000, write_ratio = 0.3 }
    [[parts.of.parts]]
    weight = 50
    of = { pattern = 'zipf', seed = 114, pages = 16384, alpha = 0.9, ops = 150000 }";

#[test]
fn the_mix_of_two_objects_is_reproduced() {
    check("mixed", 0, MIXED);
}

#[test]
fn the_short_sequences_are_the_starts_of_the_long_ones() {
    check(
        "zipf099s",
        102,
        "pattern = 'limit'\nops = 40000\nof = { pattern = 'zipf', pages = 16384, ops = 300000 }",
    );
    check(
        "dirtys",
        115,
        "pattern = 'limit'\nops = 24000
         of = { pattern = 'zipf', pages = 16384, alpha = 0.5, ops = 120000, write_ratio = 0.7 }",
    );
    check(
        "globals",
        119,
        "pattern = 'limit'\nops = 120000\nof = { pattern = 'zipf', pages = 65536, alpha = 0.9, ops = 400000 }",
    );
    let mixed = toml::from_str::<toml::Table>(MIXED).unwrap();
    let limited = toml::Table::from_iter([
        ("pattern".to_string(), "limit".into()),
        ("ops".to_string(), 40_000.into()),
        ("of".to_string(), mixed.into()),
    ]);
    let Some(path) = shared("ground-truth/sequences/mixeds.u32.zst") else { return };
    let dumped = drain(trace::open(&path, &ReadOptions::default()).unwrap());
    let pattern: Pattern = limited.try_into().unwrap();
    assert!(drain(pattern.stream(0, 0).unwrap()) == dumped);
}
