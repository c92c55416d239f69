//! Regions over two kinds of memory: cold pages go to the slow one, hot pages come back, and every byte is what was written wherever it is.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::made::draws;
use pageout::{Builder, Delay, Limits, Memory, Node, Region, RegionAdvice, RegionOptions, Stats, Zswap};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const SCHED: &str = "/sys/kernel/debug/sched/numa_balancing";

/// 16 MiB of fast memory at least, and 8 MiB of slow memory.
fn builder(policy: &str) -> Builder {
    let slow = Node::slow(8 * MIB).emulated(Delay::per_page(Duration::from_nanos(100)));
    let builder = Memory::builder().budget(30 * MIB).files(128 * MIB).policy(policy).node(slow);
    builder.swap_file(std::env::temp_dir(), 64 * MIB).swap_buffered(true)
}

/// A cache whose scans come soon, and whose marked pages stay hot however slow the machine of this test is.
fn cache(builder: Builder) -> Memory {
    let memory = builder.build().unwrap();
    for (file, value) in
        [("hot_threshold_ms", "1000000"), ("scan_delay_ms", "10"), ("scan_period_min_ms", "20")]
    {
        memory.write(&format!("{SCHED}/{file}"), value).unwrap();
    }
    memory
}

/// A region of a group whose pages are brought into slow memory.
fn slow_region(memory: &Memory, pages: u64) -> Region {
    let group = memory.group("slow", Limits::NONE).unwrap();
    group.write("cpuset.mems", "1").unwrap();
    memory.region(pages * PAGE, RegionOptions::new().group(&group)).unwrap()
}

fn contents(page: u64, version: u64) -> Vec<u8> {
    [page, version].map(u64::to_le_bytes).concat().repeat(PAGE as usize / 16)
}

fn write(region: &Region, page: u64, version: u64) {
    region.write_at(&contents(page, version), page * PAGE).unwrap();
}

fn check(region: &Region, page: u64, version: u64) {
    let mut buf = vec![7; PAGE as usize];
    region.read_at(&mut buf, page * PAGE).unwrap();
    assert!(buf == contents(page, version), "page {page} is not at version {version}: {:?}", &buf[..16]);
}

/// Accesses the first pages until so many are promoted.
fn use_until_promoted(memory: &Memory, region: &Region, hot: u64, wanted: u64) -> Stats {
    let began = Instant::now();
    loop {
        (0..hot).for_each(|page| check(region, page, 1));
        // Pages whose move has failed as they were in use are not lost.
        let stats = memory.stats().unwrap();
        if stats.promoted >= wanted || began.elapsed() > Duration::from_secs(30) {
            return stats;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn region_page_accessed_after_a_scan_is_promoted() {
    for policy in ["classic@6.12", "mglru@6.12"] {
        let memory = cache(builder(policy));
        let region = slow_region(&memory, 1000);
        (0..1000).for_each(|page| write(&region, page, 1));
        let stats = memory.stats().unwrap();
        assert_eq!((stats.slow_resident, stats.promoted), (1000, 0), "{policy}");
        let stats = use_until_promoted(&memory, &region, 200, 195);
        assert!((195..=200).contains(&stats.promoted), "{policy}: {stats:?}");
        assert_eq!(stats.slow_resident + stats.promoted, 1000, "{policy}: {stats:?}");
        let vmstat = memory.read("/proc/vmstat").unwrap();
        assert!(!vmstat.contains("\nnuma_hint_faults 0\n"), "{vmstat}");
        let before = memory.stats().unwrap();
        (0..200).for_each(|page| check(&region, page, 1));
        let slow = memory.stats().unwrap().slow_hits - before.slow_hits;
        assert!(slow <= 5, "{policy}: {slow} accesses of promoted pages were slow");
        (0..1000).for_each(|page| check(&region, page, 1));
    }
}

#[test]
fn region_stays_in_slow_memory_without_balancing() {
    let memory = cache(builder("classic@6.12"));
    memory.write("/proc/sys/kernel/numa_balancing", "0").unwrap();
    let region = slow_region(&memory, 300);
    (0..300).for_each(|page| write(&region, page, 1));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) {
        (0..300).for_each(|page| check(&region, page, 1));
    }
    let stats = memory.stats().unwrap();
    assert_eq!((stats.promoted, stats.slow_resident), (0, 300), "{stats:?}");
    assert!(stats.slow_hits > 300, "{stats:?}");
}

#[test]
fn hot_region_pages_are_promoted_by_the_page_table_scan() {
    // It shares MGLRU's walk of page tables, so there is none with the classic lists.
    let memory = cache(builder("mglru@6.12"));
    // No scan for hint faults comes meanwhile.
    memory.write(&format!("{SCHED}/scan_delay_ms"), "1000000").unwrap();
    memory.write("/proc/sys/vm/pghot_record_pgtscans_enable", "1").unwrap();
    let region = slow_region(&memory, 800);
    (0..800).for_each(|page| write(&region, page, 1));
    let stats = use_until_promoted(&memory, &region, 200, 190);
    assert!(stats.promoted >= 190, "{stats:?}");
    let vmstat = memory.read("/proc/vmstat").unwrap();
    assert!(vmstat.contains("\nnuma_hint_faults 0\n"), "{vmstat}");
    (0..800).for_each(|page| check(&region, page, 1));
}

#[test]
fn page_under_a_guard_does_not_move() {
    let memory = cache(builder("classic@6.12"));
    let region = slow_region(&memory, 64);
    (0..64).for_each(|page| write(&region, page, 1));
    let (guard, before) = (region.page(3).unwrap(), memory.stats().unwrap().promoted);
    let address = guard.as_ptr();
    let stats = use_until_promoted(&memory, &region, 64, before + 63);
    assert_eq!((stats.promoted, stats.slow_resident), (63, 1), "{stats:?}");
    assert!(guard.as_ptr() == address && *guard == contents(3, 1));
    drop(guard);
    let stats = use_until_promoted(&memory, &region, 64, before + 64);
    assert_eq!((stats.promoted, stats.slow_resident), (64, 0), "{stats:?}");
}

#[test]
fn region_pages_keep_their_bytes_while_they_move_both_ways() {
    let cases = [("classic@6.12", None), ("mglru@6.12", None), ("mglru@6.18", Some(Zswap::lz4()))];
    for (policy, zswap) in cases {
        let builder = builder(policy).io_threads(2);
        let memory = cache(match zswap {
            Some(zswap) => builder.zswap(zswap),
            None => builder,
        });
        // More than all memory: pages are demoted, promoted and swapped out.
        let (pages, threads) = (9000_u64, 4);
        let region = memory.region(pages * PAGE, RegionOptions::new()).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (region, is_over) = (&region, &is_over);
                scope.spawn(move || {
                    let mut draw = draws(thread + 1);
                    let mut versions = vec![0_u64; pages as usize];
                    for round in 0_u64.. {
                        if is_over.load(Relaxed) {
                            break;
                        }
                        // Half of the accesses are to a few pages, which are others after a while.
                        let few = draw(600) + round / 5000 * 500;
                        let page = if draw(2) == 0 { draw(pages) } else { few % pages };
                        let page = page / threads * threads + thread;
                        let version = &mut versions[page as usize];
                        if *version > 0 {
                            check(region, page, *version);
                        }
                        match draw(4) {
                            0 => {
                                *version += 1;
                                write(region, page, *version);
                            }
                            1 => {
                                *version += 1;
                                let mut guard = region.page_mut(page).unwrap();
                                guard.copy_from_slice(&contents(page, *version));
                            }
                            _ => {}
                        }
                    }
                    for (page, version) in (0..).zip(versions).filter(|&(_, version)| version > 0) {
                        check(region, page, version);
                    }
                });
            }
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(40) {
                std::thread::sleep(Duration::from_millis(20));
                let stats = memory.stats().unwrap();
                if stats.promoted > 100 && stats.demoted > 500 && stats.swapped > 500 {
                    break;
                }
            }
            is_over.store(true, Relaxed);
        });
        let stats = memory.stats().unwrap();
        let moves = stats.promoted > 100 && stats.demoted > 500 && stats.swapped > 500;
        assert!(moves && stats.pinned == 0, "{policy}: {stats:?}");
        // Discarded pages leave both kinds of memory.
        region.advise(RegionAdvice::DontNeed, 0..region.len()).unwrap();
        let stats = memory.stats().unwrap();
        assert!(stats.anon < 100, "{policy}: {stats:?}");
    }
}
