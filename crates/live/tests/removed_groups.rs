//! Groups that are removed: when they can be, what becomes of their pages, and what is left of many.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

mod made;

use made::{Made, PAGE, check};
use pageout::engine::FileError;
use pageout::{Error, Limits, Memory, Open, RegionOptions};

fn memory() -> Memory {
    Memory::builder().budget(8 << 20).build().unwrap()
}

#[track_caller]
fn assert_busy(removed: Result<(), Error>, why: &str) {
    match removed {
        Err(Error::File(FileError::Busy { why: found, .. })) => assert!(found.contains(why), "{found}"),
        other => panic!("{other:?}, expected `{why}`"),
    }
}

#[test]
fn group_with_files_or_regions_is_not_removed() {
    let (memory, made) = (memory(), Made::new("busy", 16 * PAGE));
    let group = memory.group("query", Limits::NONE).unwrap();
    let file = memory.open(&made.0, Open::read().buffered(true).group(&group)).unwrap();
    let region = memory.region(PAGE as u64, RegionOptions::new().group(&group)).unwrap();
    assert_busy(group.remove(), "is open in it");
    let other = memory.open(&made.0, Open::read().buffered(true)).unwrap();
    drop(file);
    assert_busy(group.remove(), "a region is in it");
    drop(region);
    group.remove().unwrap();
    assert!(matches!(group.remove(), Err(Error::File(FileError::NoSuchFile(_)))));
    assert!(group.read("memory.stat").is_err() && group.stats().is_err());
    let how = || Open::read().buffered(true).group(&group);
    assert!(matches!(memory.open(&made.0, how()), Err(Error::Config(_))));
    assert!(matches!(memory.region(1, RegionOptions::new().group(&group)), Err(Error::Config(_))));
    let mut bytes = [0; PAGE];
    other.read_at(&mut bytes, 0).unwrap();
    check(&bytes, 0);
}

#[test]
fn name_of_removed_group_is_free_and_its_successor_is_new() {
    let (memory, made) = (memory(), Made::new("name", 64 * PAGE));
    for turn in 0..5 {
        let limits = Limits { max: Some(16 * PAGE as u64), high: Some(12 * PAGE as u64), ..Limits::NONE };
        let group = memory.group("query", if turn % 2 == 0 { limits } else { Limits::NONE }).unwrap();
        let stats = group.stats().unwrap();
        assert_eq!((stats.hits, stats.misses, stats.evictions, stats.charged), (0, 0, 0, 0), "turn {turn}");
        let max = group.read("memory.max").unwrap();
        assert_eq!(max.trim(), if turn % 2 == 0 { "65536" } else { "max" });
        assert!(group.read("memory.events").unwrap().contains("max 0\n"));
        let file = memory.open(&made.0, Open::read().random().buffered(true).group(&group)).unwrap();
        for page in 0..64 {
            let mut bytes = [0; PAGE];
            file.read_at(&mut bytes, page * PAGE as u64).unwrap();
            check(&bytes, page as usize * PAGE);
        }
        assert_eq!(group.stats().unwrap().misses, 64, "turn {turn}");
        // Its pages go with the file.
        file.forget().unwrap();
        group.remove().unwrap();
    }
}

#[test]
fn pages_of_removed_group_stay_in_memory() {
    for policy in ["mglru@6.12", "classic@6.12"] {
        for offline in ["keep", "reparent"] {
            let builder = Memory::builder().budget(8 << 20).policy(policy).rule("reclaim.offline", offline);
            let (memory, made) = (builder.build().unwrap(), Made::new("stay", 64 * PAGE));
            let group = memory.group("query", Limits::NONE).unwrap();
            let file = memory.open(&made.0, Open::read().random().buffered(true).group(&group)).unwrap();
            (0..64).for_each(|page| file.read_at(&mut [0; 8], page * PAGE as u64).unwrap());
            drop(file);
            group.remove().unwrap();
            let file = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
            (0..64).for_each(|page| file.read_at(&mut [0; 8], page * PAGE as u64).unwrap());
            let stats = file.stats().unwrap();
            assert_eq!((stats.misses, stats.hits), (64, 64), "{policy}, {offline}");
            let gone = memory.read("/sys/fs/cgroup/cgroup.stat").unwrap();
            let dying = if offline == "keep" { 1 } else { 0 };
            assert!(gone.contains(&format!("nr_dying_descendants {dying}\n")), "{policy}, {offline}: {gone}");
        }
    }
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn memory_stays_flat_over_100_000_groups() {
    let (memory, made) = (memory(), Made::new("flat", 2048 * PAGE));
    let mut after_some = 0;
    for turn in 0..100_000_u64 {
        let limits = Limits { max: Some(1 << 20), ..Limits::NONE };
        let group = memory.group(&format!("query-{turn}"), limits).unwrap();
        match turn % 10 {
            // Its pages stay charged to it after it is removed, until others evict them.
            0 => {
                let how = Open::read().random().buffered(true).group(&group);
                let file = memory.open(&made.0, how).unwrap();
                let page = turn / 10 % 2048;
                let mut bytes = [0; PAGE];
                file.read_at(&mut bytes, page * PAGE as u64).unwrap();
                check(&bytes, page as usize * PAGE);
            }
            5 => {
                let region = memory.region(PAGE as u64, RegionOptions::new().group(&group)).unwrap();
                region.write_at(b"spilled", 0).unwrap();
            }
            _ => {}
        }
        group.remove().unwrap();
        if turn == 40_000 {
            after_some = resident();
        }
    }
    let grown = resident().saturating_sub(after_some);
    assert!(grown < 2 << 20, "60,000 groups have left {grown} bytes");
    let stats = memory.read("/sys/fs/cgroup/cgroup.stat").unwrap();
    assert!(stats.starts_with("nr_descendants 0\n"), "{stats}");
}
