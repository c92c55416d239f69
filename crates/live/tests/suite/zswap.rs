//! Compressed pages: what was written comes back from the pool and from the swap file behind it, and the kernel's settings and counters are true.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

use std::time::{Duration, Instant};

use crate::made::draws;
use pageout::{Builder, Error, Group, Limits, Memory, Region, RegionAdvice, RegionOptions, Zswap};

const PAGE: u64 = 4096;
const PAGE_BYTES: usize = PAGE as usize;

fn builder(zswap: Zswap) -> Builder {
    let builder = Memory::builder().budget(41 << 18).files(64 << 20).io_threads(2);
    builder.swap_file(std::env::temp_dir(), 32 << 20).swap_buffered(true).zswap(zswap)
}

fn limited(memory: &Memory, name: &str, pages: u64) -> Group {
    memory.group(name, Limits { max: Some(pages * PAGE), ..Limits::NONE }).unwrap()
}

/// The contents of a page, by its number and a version. Of six pages one is a single word, one does not shrink, and the others shrink more or less.
fn contents(page: u64, version: u64) -> Vec<u8> {
    let name = [page, version].map(u64::to_le_bytes).concat();
    let random = match page % 6 {
        0 => return (page << 32 | version).to_le_bytes().repeat(PAGE_BYTES / 8),
        1 => 0,
        2 => 700,
        3 => 1500,
        4 => 3000,
        _ => PAGE_BYTES,
    };
    let mut draw = draws(page << 20 | version);
    let mut bytes = name.repeat(PAGE_BYTES / 16);
    bytes[16..].iter_mut().take(random).for_each(|byte| *byte = draw(256) as u8);
    bytes
}

/// Contents that shrink to a fourth.
fn text(page: u64, version: u64) -> Vec<u8> {
    let mut draw = draws(page << 20 | version);
    let mut bytes = [page, version].map(u64::to_le_bytes).concat().repeat(PAGE_BYTES / 16);
    bytes[16..].iter_mut().take(1000).for_each(|byte| *byte = draw(256) as u8);
    bytes
}

type Contents = fn(u64, u64) -> Vec<u8>;

fn write(region: &Region, of: Contents, page: u64, version: u64) {
    region.write_at(&of(page, version), page * PAGE).unwrap();
}

fn check(region: &Region, of: Contents, page: u64, version: u64) {
    let mut buf = vec![7; PAGE_BYTES];
    region.read_at(&mut buf, page * PAGE).unwrap();
    let at = buf.iter().zip(of(page, version)).position(|(&found, wanted)| found != wanted);
    assert!(at.is_none(), "page {page}, version {version}, from byte {at:?} on: {:?}", &buf[..16]);
}

/// A number of a text of lines with names.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

fn stat(group: &Group, name: &str) -> u64 {
    number(&group.read("memory.stat").unwrap(), name)
}

fn zswap_file(memory: &Memory, name: &str) -> u64 {
    memory.read(&format!("/sys/kernel/debug/zswap/{name}")).unwrap().trim().parse().unwrap()
}

/// Reads and writes pages of a region in a random order.
fn use_region(region: &Region, of: Contents, rounds: u64, seed: u64) -> Vec<u64> {
    let pages = region.len() / PAGE;
    let (mut draw, mut versions) = (draws(seed), vec![1; pages as usize]);
    (0..pages).for_each(|page| write(region, of, page, 1));
    for _ in 0..rounds {
        let page = draw(pages);
        let version = &mut versions[page as usize];
        check(region, of, page, *version);
        if draw(3) == 0 {
            *version += 1;
            write(region, of, page, *version);
        }
    }
    (0..pages).for_each(|page| check(region, of, page, versions[page as usize]));
    versions
}

#[test]
fn pages_come_back_from_the_pool_as_written() {
    let cases = [
        (Zswap::lz4(), "mglru@6.12"),
        (Zswap::zstd(1), "classic@6.12"),
        (Zswap::zstd(6), "mglru@next"),
        // This kernel stores a page of one word as that word.
        (Zswap::lz4(), "classic@6.8"),
    ];
    for (at, (zswap, profile)) in (1..).zip(cases) {
        // The shrinker would empty the pool of the classic lists: it takes what reclaim of their few pages does not give.
        let builder = builder(zswap).policy(profile).sysctl("zswap.shrinker_enabled", 0);
        let memory = builder.build().unwrap();
        let group = limited(&memory, "job", 400);
        let region = memory.region(700 * PAGE, RegionOptions::new().group(&group)).unwrap();
        use_region(&region, contents, 2500, at);
        let stats = memory.stats().unwrap();
        let case = format!("{zswap}, {profile}: {stats:?}");
        assert!(stats.zswap_stores > 300 && stats.zswapped > 50 && stats.zswap_frames > 10, "{case}");
        // All of the pool is this group's, and the figures of the kernel are those of the pool.
        assert_eq!(stat(&group, "zswapped"), stats.zswapped * PAGE, "{case}");
        let bytes = stat(&group, "zswap");
        assert_eq!(group.read("memory.zswap.current").unwrap().trim(), bytes.to_string());
        assert!((1..=stats.zswap_frames * PAGE).contains(&bytes), "{case}: {bytes} bytes");
        assert!(stat(&group, "kernel") >= bytes, "{case}: the pool is not charged");
        assert_eq!(stat(&group, "zswpout"), stats.zswap_stores, "{case}");
        assert_eq!(zswap_file(&memory, "stored_pages"), stats.zswapped, "{case}");
        let same_filled = zswap_file(&memory, "same_filled_pages");
        assert_eq!(same_filled > 0, profile == "classic@6.8", "{case}: {same_filled} pages of one word");
        // Freed with the region.
        drop(region);
        let began = Instant::now();
        while memory.stats().unwrap().swapped > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", memory.stats());
            memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
        }
        let stats = memory.stats().unwrap();
        assert_eq!((stats.zswapped, stats.zswap_frames), (0, 0), "{case}");
        assert_eq!((stat(&group, "zswapped"), stat(&group, "zswap")), (0, 0), "{case}");
    }
}

#[test]
fn pages_of_zeroes_take_neither_pool_nor_device() {
    let memory = builder(Zswap::lz4()).build().unwrap();
    let group = limited(&memory, "job", 100);
    let region = memory.region(400 * PAGE, RegionOptions::new().group(&group)).unwrap();
    let zeroes = vec![0; PAGE_BYTES];
    (0..400).for_each(|page| region.write_at(&zeroes, page * PAGE).unwrap());
    let mut buf = vec![7; PAGE_BYTES];
    for page in 0..400 {
        if page % 2 == 0 {
            region.read_at(&mut buf, page * PAGE).unwrap();
            assert!(buf == zeroes, "page {page}");
        } else {
            // A write of a part keeps the zeroes around it.
            region.write_at(&[9], page * PAGE + page).unwrap();
            let guard = region.page(page).unwrap();
            assert!(
                guard.iter().enumerate().all(|(at, &byte)| byte == if at as u64 == page { 9 } else { 0 })
            );
        }
    }
    let vmstat = memory.read("/proc/vmstat").unwrap();
    assert!(number(&vmstat, "swpout_zero") > 250 && number(&vmstat, "swpin_zero") > 250, "{vmstat}");
    assert_eq!(number(&vmstat, "pswpout"), 0);
    for page in 0..400 {
        region.read_at(&mut buf, page * PAGE).unwrap();
        let (sum, expected) = (buf.iter().map(|&byte| u64::from(byte)).sum::<u64>(), page % 2 * 9);
        assert_eq!(sum, expected, "page {page}");
    }
}

#[test]
fn full_pool_writes_its_oldest_pages_to_the_swap_file() {
    for profile in ["mglru@6.12", "classic@6.12"] {
        let memory =
            builder(Zswap::lz4()).policy(profile).sysctl("zswap.max_pool_percent", 3).build().unwrap();
        let region = memory.region(24 << 20, RegionOptions::new()).unwrap();
        use_region(&region, text, 1500, 3);
        let stats = memory.stats().unwrap();
        let limit = stats.frames * 3 / 100;
        let [hits, back] = ["pool_limit_hit", "written_back_pages"].map(|name| zswap_file(&memory, name));
        assert!(stats.zswap_frames <= limit + 8, "{profile}: {stats:?}");
        assert!(hits > 0 && back > 0, "{profile}: {hits} hits, {back} written back: {stats:?}");
        assert!(stats.device_reads > 0 && stats.zswap_stores > 200, "{profile}: {stats:?}");
    }
}

#[test]
fn group_far_beyond_its_limit_keeps_its_pages() {
    // All of its pages, compressed, are more than the group may have.
    for zswap in [Zswap::lz4(), Zswap::zstd(1)] {
        let memory = builder(zswap).build().unwrap();
        let group = limited(&memory, "job", 150);
        let region = memory.region(2500 * PAGE, RegionOptions::new().group(&group)).unwrap();
        use_region(&region, text, 1500, 4);
        assert!(stat(&group, "zswpwb") > 0, "{}", group.read("memory.stat").unwrap());
    }
}

#[test]
fn group_without_zswap_goes_to_the_swap_file() {
    let memory = builder(Zswap::lz4()).build().unwrap();
    let group = limited(&memory, "job", 100);
    group.write("memory.zswap.max", "0").unwrap();
    let region = memory.region(400 * PAGE, RegionOptions::new().group(&group)).unwrap();
    use_region(&region, text, 500, 5);
    let stats = memory.stats().unwrap();
    assert_eq!((stats.zswap_stores, stat(&group, "zswapped")), (0, 0));
    assert!(stats.device_reads > 100, "{stats:?}");
    memory.write("/sys/module/zswap/parameters/enabled", "N").unwrap();
    group.write("memory.zswap.max", "max").unwrap();
    use_region(&region, text, 100, 6);
    assert_eq!(memory.stats().unwrap().zswap_stores, 0, "it is off");
    memory.write("/sys/module/zswap/parameters/enabled", "Y").unwrap();
    use_region(&region, text, 100, 7);
    assert!(memory.stats().unwrap().zswap_stores > 0, "it is on again");
}

#[test]
fn group_without_writeback_writes_nothing_to_the_device() {
    let memory = builder(Zswap::lz4()).build().unwrap();
    let group = limited(&memory, "job", 200);
    group.write("memory.zswap.writeback", "0").unwrap();
    let region = memory.region(400 * PAGE, RegionOptions::new().group(&group)).unwrap();
    use_region(&region, text, 1000, 8);
    let stats = memory.stats().unwrap();
    assert!(stats.zswap_stores > 200, "{stats:?}");
    assert_eq!((stats.device_writes, stat(&group, "zswpwb")), (0, 0));
}

#[test]
fn pages_are_compressed_once_per_store_and_without_the_lock() {
    for profile in ["mglru@6.12", "classic@6.12"] {
        let builder = builder(Zswap::lz4()).policy(profile).sysctl("zswap.shrinker_enabled", 0);
        let memory = builder.build().unwrap();
        let group = limited(&memory, "job", 500);
        let region = memory.region(1000 * PAGE, RegionOptions::new().group(&group)).unwrap();
        let mut draw = draws(11);
        (0..1000).for_each(|page| write(&region, text, page, 1));
        for _ in 0..6000 {
            // Some pages are used more than others.
            let page = draw(1000).min(draw(1000)).min(draw(1000));
            check(&region, text, page, 1);
            if draw(4) == 0 {
                write(&region, text, page, 1);
            }
        }
        let stats = memory.stats().unwrap();
        println!(
            "{profile}: {} stores, {} compressions, {} under the lock, {} reads of the device",
            stats.zswap_stores, stats.zswap_compressions, stats.zswap_compressions_locked, stats.device_reads
        );
        assert!(stats.zswap_stores > 1500, "{profile}: {stats:?}");
        assert!(stats.zswap_compressions * 10 <= stats.zswap_stores * 11, "{profile}: {stats:?}");
        assert!(stats.zswap_compressions_locked * 3 < stats.zswap_stores, "{profile}: {stats:?}");
    }
}

#[test]
fn threads_find_their_pages_while_others_are_compressed() {
    for (zswap, percent) in [(Zswap::lz4(), 20), (Zswap::zstd(1), 2)] {
        let memory = builder(zswap).sysctl("zswap.max_pool_percent", percent).build().unwrap();
        let group = limited(&memory, "job", 300);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (memory, group) = (&memory, &group);
                scope.spawn(move || {
                    let region = memory.region(300 * PAGE, RegionOptions::new().group(group)).unwrap();
                    let versions = use_region(&region, contents, 1500, 20 + thread);
                    region.advise(RegionAdvice::PageOut, 0..region.len()).unwrap();
                    for (page, version) in (0..).zip(versions) {
                        check(&region, contents, page, version);
                        // In place, with a guard that others wait for.
                        let mut guard = region.page_mut(page).unwrap();
                        guard.copy_from_slice(&contents(page, version + 1));
                        drop(guard);
                        check(&region, contents, page, version + 1);
                    }
                });
            }
        });
        assert!(memory.stats().unwrap().zswap_stores > 300, "{:?}", memory.stats());
    }
}

#[test]
fn zswap_without_a_swap_file_or_a_compressor_is_an_error() {
    let refused = Memory::builder().budget(10 << 20).zswap(Zswap::lz4()).build().unwrap_err();
    assert!(matches!(refused, Error::Zswap(_)), "{refused}");
    assert!(refused.to_string().contains("help: call `swap_file`"), "{refused}");
    let refused = builder(Zswap::zstd(99)).build().unwrap_err();
    assert!(matches!(refused, Error::Config(_)), "{refused}");
    let refused = builder(Zswap::lz4()).sysctl("zswap.max_pool_percent", 101).build().unwrap_err();
    assert!(matches!(refused, Error::File(_)), "{refused}");
    let memory = Memory::builder().budget(10 << 20).build().unwrap();
    for value in ["1", "Y", "on\n"] {
        let refused = memory.write("/sys/module/zswap/parameters/enabled", value).unwrap_err();
        assert!(matches!(refused, Error::Zswap(_)), "{refused}");
    }
    memory.write("/sys/module/zswap/parameters/enabled", "0").unwrap();
    let memory = builder(Zswap::zstd(3)).build().unwrap();
    assert!(memory.describe().contains("swap behind zswap by zstd at level 3; "), "{}", memory.describe());
}
