//! Regions: anonymous memory that is swapped out and in again, and the promises of their calls.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use std::time::Duration;

use pageout::{Builder, Error, Group, Limits, Memory, Open, ReadAt, Region, RegionAdvice, RegionOptions};

const PAGE: u64 = 4096;
const PAGE_BYTES: usize = PAGE as usize;
/// A little more than the minimum budget, so that a region has more pages than there are frames.
const BUDGET: u64 = 37 << 18;

fn builder() -> Builder {
    let builder = Memory::builder().budget(BUDGET).files(64 << 20).guard_wait(Duration::from_millis(300));
    builder.swap_file(std::env::temp_dir(), 32 << 20).swap_buffered(true)
}

fn memory() -> Memory {
    builder().build().unwrap()
}

fn limited(memory: &Memory, name: &str, pages: u64) -> Group {
    memory.group(name, Limits { max: Some(pages * PAGE), ..Limits::NONE }).unwrap()
}

/// The contents of a page: its number and a version, repeated.
fn contents(page: u64, version: u64) -> Vec<u8> {
    [page, version].map(u64::to_le_bytes).concat().repeat(PAGE_BYTES / 16)
}

fn write(region: &Region, page: u64, version: u64) {
    region.write_at(&contents(page, version), page * PAGE).unwrap();
}

fn check(region: &Region, page: u64, version: u64) {
    let mut buf = vec![7; PAGE_BYTES];
    region.read_at(&mut buf, page * PAGE).unwrap();
    let at = buf.iter().zip(contents(page, version)).position(|(&found, wanted)| found != wanted);
    assert!(at.is_none(), "page {page} from byte {at:?} on: {:?}", &buf[at.unwrap()..][..16]);
}

fn check_zeroes(region: &Region, page: u64) {
    let mut buf = vec![7; PAGE_BYTES];
    region.read_at(&mut buf, page * PAGE).unwrap();
    assert!(buf.iter().all(|&byte| byte == 0), "page {page}: {:?}", &buf[..16]);
}

/// A number in a file of a group.
fn number(group: &Group, file: &str) -> u64 {
    group.read(file).unwrap().trim().parse().unwrap()
}

/// A counter of vmstat.
fn vmstat(memory: &Memory, name: &str) -> u64 {
    let text = memory.read("/proc/vmstat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

/// Waits until all pages of dropped regions are freed: writes in flight keep their slots, and so do pages that wait in batches after that.
fn await_freed(memory: &Memory) {
    let began = std::time::Instant::now();
    loop {
        let stats = memory.stats().unwrap();
        if (stats.anon, stats.swapped) == (0, 0) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{stats:?}");
        memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn stat(group: &Group, name: &str) -> u64 {
    let text = group.read("memory.stat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

#[test]
fn region_larger_than_the_budget_keeps_what_was_written() {
    for (profile, cluster) in [("mglru@6.12", 0), ("classic@6.12", 3), ("lru", 0)] {
        let builder = builder().policy(profile).sysctl("vm.page-cluster", cluster);
        let memory = builder.build().unwrap();
        let region = memory.region(24 << 20, RegionOptions::new()).unwrap();
        let pages = region.len() / PAGE;
        assert!(pages > 2 * memory.stats().unwrap().frames);
        (0..pages).for_each(|page| write(&region, page, 1));
        assert!(memory.stats().unwrap().swapped > pages / 2, "{profile}");
        for version in 2..4 {
            for page in (0..pages).rev() {
                check(&region, page, version - 1);
                write(&region, page, version);
            }
        }
        (0..pages).for_each(|page| check(&region, page, 3));
        drop(region);
        await_freed(&memory);
    }
}

#[test]
fn swap_file_reads_and_writes_bypass_the_system_cache() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let missing = builder().swap_file("/nowhere", 1 << 20).build().unwrap_err();
    assert!(matches!(missing, Error::Io { op: "making a swap file", .. }), "{missing}");
    let empty = builder().swap_file(folder, 100).build().unwrap_err();
    assert!(matches!(empty, Error::Config(_)), "{empty}");
    let memory = match builder().swap_file(folder, 32 << 20).swap_buffered(false).build() {
        // The file system does not support direct I/O.
        Err(error) => return assert!(matches!(error, Error::DirectRefused { .. }), "{error}"),
        Ok(memory) => memory,
    };
    assert!(memory.describe().contains(", 32 MiB of swap; "), "{}", memory.describe());
    let group = limited(&memory, "job", 100);
    let region = memory.region(400 * PAGE, RegionOptions::new().group(&group)).unwrap();
    for version in 1..4 {
        (0..400).for_each(|page| write(&region, page, version));
        (0..400).for_each(|page| check(&region, page, version));
    }
}

#[test]
fn region_beyond_memory_without_a_swap_file_is_refused() {
    let memory = Memory::builder().budget(BUDGET).build().unwrap();
    let frames = memory.stats().unwrap().frames;
    let fits = memory.region(frames * PAGE / 2, RegionOptions::new()).unwrap();
    let refused = memory.region(frames * PAGE, RegionOptions::new()).unwrap_err();
    assert!(matches!(refused, Error::NoSwap { most, .. } if most == frames * PAGE), "{refused}");
    assert!(refused.to_string().contains("help: give the cache a swap file"), "{refused}");
    let refused = fits.set_len(frames * PAGE + 1).unwrap_err();
    assert!(matches!(refused, Error::NoSwap { .. }), "{refused}");
    drop(fits);
    memory.region(frames * PAGE, RegionOptions::new()).unwrap();
    let too_large = memory.region(u64::MAX, RegionOptions::new()).unwrap_err();
    assert!(matches!(too_large, Error::TooLong { .. }), "{too_large}");
    let too_many = builder().build().unwrap().region(65 << 20, RegionOptions::new()).unwrap_err();
    assert!(matches!(too_many, Error::TooManyFiles { .. }), "{too_many}");
}

#[test]
fn page_never_written_reads_as_zeroes_and_takes_no_frame() {
    let memory = memory();
    let group = limited(&memory, "job", 64);
    let region = memory.region(16 << 20, RegionOptions::new().group(&group)).unwrap();
    for page in 0..4096 {
        check_zeroes(&region, page);
        assert!(region.page(page).unwrap().iter().all(|&byte| byte == 0));
    }
    assert_eq!(number(&group, "memory.current"), 0);
    // The rest of a partly written page is zeroes, whatever the frame held before.
    region.write_at(b"part", 5 * PAGE + 100).unwrap();
    let page = region.page(5).unwrap();
    assert_eq!(&page[100..104], b"part");
    assert!(page[..100].iter().chain(&page[104..]).all(|&byte| byte == 0));
    assert!(number(&group, "memory.current") > 0);
}

#[test]
fn limit_of_a_group_sends_its_pages_to_swap() {
    let memory = memory();
    let (small, large) = (limited(&memory, "small", 200), limited(&memory, "large", 1000));
    let of_small = memory.region(1000 * PAGE, RegionOptions::new().group(&small)).unwrap();
    let of_large = memory.region(1000 * PAGE, RegionOptions::new().group(&large)).unwrap();
    for page in 0..900 {
        write(&of_small, page, 1);
        write(&of_large, page, 2);
    }
    assert!(number(&small, "memory.current") <= 200 * PAGE);
    assert!(number(&small, "memory.swap.current") >= 700 * PAGE);
    assert_eq!(number(&large, "memory.swap.current"), 0);
    assert!(stat(&small, "anon") <= 200 * PAGE && stat(&large, "anon") == 900 * PAGE);
    (0..900).for_each(|page| check(&of_small, page, 1));
    assert!(stat(&small, "workingset_refault_anon") > 0 && vmstat(&memory, "pswpin") >= 700);
}

#[test]
fn full_swap_of_a_group_is_an_error_until_pages_are_discarded() {
    let memory = memory();
    let group = limited(&memory, "job", 100);
    group.write("memory.swap.max", &(50 * PAGE).to_string()).unwrap();
    let region = memory.region(1000 * PAGE, RegionOptions::new().group(&group)).unwrap();
    let mut written = 0;
    let error = loop {
        match region.write_at(&contents(written, 1), written * PAGE) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    assert!((100..=150).contains(&written), "{written}");
    (0..written).for_each(|page| check(&region, page, 1));
    check_zeroes(&region, written);
    region.advise(RegionAdvice::DontNeed, 0..20 * PAGE).unwrap();
    (written..written + 15).for_each(|page| write(&region, page, 1));
    (20..written + 15).for_each(|page| check(&region, page, 1));
    (0..20).for_each(|page| check_zeroes(&region, page));
}

#[test]
fn swappiness_of_zero_spares_regions_beside_files() {
    let swapped = |swappiness: u8| {
        let memory = builder().policy("classic@6.12").sysctl("vm.swappiness", swappiness).build().unwrap();
        let path = std::env::temp_dir().join(format!("pageout-regions-{}-{swappiness}", std::process::id()));
        std::fs::write(&path, vec![1; 16 << 20]).unwrap();
        let group = limited(&memory, "job", 400);
        let file = memory.open(&path, Open::read().random().buffered(true).group(&group)).unwrap();
        std::fs::remove_file(&path).unwrap();
        let region = memory.region(300 * PAGE, RegionOptions::new().group(&group)).unwrap();
        (0..300).for_each(|page| write(&region, page, 1));
        for page in (0..20).flat_map(|_| 0..250) {
            file.read_at(&mut [0; 9], page * PAGE).unwrap();
        }
        (0..300).for_each(|page| check(&region, page, 1));
        number(&group, "memory.swap.current") / PAGE
    };
    let (spared, taken) = (swapped(0), swapped(200));
    assert!(spared == 0 && taken > 100, "{spared}, {taken}");
}

#[test]
fn guards_of_a_region_show_and_change_its_pages() {
    let memory = memory();
    let group = limited(&memory, "job", 100);
    let region = memory.region(500 * PAGE + 10, RegionOptions::new().group(&group).name("heap")).unwrap();
    for page in 0..500 {
        region.page_mut(page).unwrap().copy_from_slice(&contents(page, 1));
    }
    for page in 0..500 {
        assert!(*region.page(page).unwrap() == contents(page, 1)[..], "page {page}");
    }
    assert_eq!(region.page(500).unwrap().len(), 10);
    let beyond = region.page(501).err().unwrap();
    assert!(matches!(beyond, Error::BeyondEnd { .. }), "{beyond}");
    assert!(beyond.to_string().contains("heap"), "{beyond}");
    // A page under a guard is unchanged, even if other pages need memory.
    let held = region.page(7).unwrap();
    (0..500).filter(|&page| page != 7).for_each(|page| write(&region, page, 2));
    assert!(*held == contents(7, 1)[..]);
    let pinned = region.write_at(&[1], 7 * PAGE).unwrap_err();
    assert!(matches!(pinned, Error::Pinned { page: Some(7), .. }), "{pinned}");
    assert!(region.try_page_mut(7).unwrap().is_none());
    drop(held);
    write(&region, 7, 2);
    let mut writing = region.page_mut(7).unwrap();
    writing.copy_from_slice(&contents(7, 3));
    (8..500).for_each(|page| check(&region, page, 2));
    assert!(*writing == contents(7, 3)[..]);
    drop(writing);
    check(&region, 7, 3);
    assert_eq!(memory.stats().unwrap().pinned, 0);
}

#[test]
fn region_that_shrinks_and_grows_has_zeroes_behind_its_end() {
    let memory = memory();
    let group = limited(&memory, "job", 100);
    let region = memory.region(600 * PAGE, RegionOptions::new().group(&group)).unwrap();
    (0..600).for_each(|page| write(&region, page, 1));
    let held = region.page(400).unwrap();
    let pinned = region.set_len(300 * PAGE).unwrap_err();
    assert!(matches!(pinned, Error::Pinned { page: Some(400), .. }), "{pinned}");
    assert_eq!(region.len(), 600 * PAGE);
    (0..600).for_each(|page| check(&region, page, 1));
    drop(held);
    region.set_len(300 * PAGE + 50).unwrap();
    assert!(matches!(region.read_at(&mut [0; 9], 300 * PAGE + 50), Err(Error::BeyondEnd { .. })));
    assert!(matches!(region.write_at(&[0; 9], 599 * PAGE), Err(Error::BeyondEnd { .. })));
    assert!(number(&group, "memory.current") + number(&group, "memory.swap.current") <= 450 * PAGE);
    region.set_len(5000 * PAGE).unwrap();
    let page = region.page(300).unwrap();
    assert!(page[..50] == contents(300, 1)[..50] && page[50..].iter().all(|&byte| byte == 0));
    drop(page);
    (0..300).for_each(|page| check(&region, page, 1));
    [301, 599, 600, 4999].into_iter().for_each(|page| check_zeroes(&region, page));
    write(&region, 4999, 2);
    region.set_len(0).unwrap();
    assert!(region.is_empty() && matches!(region.page(0), Err(Error::BeyondEnd { .. })));
    region.set_len(PAGE).unwrap();
    check_zeroes(&region, 0);
}

#[test]
fn advice_by_the_names_of_madvise_does_what_it_says() {
    let memory = memory();
    let group = limited(&memory, "job", 1000);
    let region = memory.region(600 * PAGE + 9, RegionOptions::new().group(&group)).unwrap();
    (0..600).for_each(|page| write(&region, page, 1));
    region.write_at(&[9; 9], 600 * PAGE).unwrap();
    region.advise(RegionAdvice::PageOut, 0..100 * PAGE).unwrap();
    assert_eq!(number(&group, "memory.swap.current"), 100 * PAGE);
    region.advise(RegionAdvice::Cold, 100 * PAGE..200 * PAGE).unwrap();
    (0..600).for_each(|page| check(&region, page, 1));
    // Pages that are partly in the range are unchanged.
    region.advise(RegionAdvice::DontNeed, 50 * PAGE + 1..60 * PAGE - 1).unwrap();
    [50, 59].into_iter().for_each(|page| check(&region, page, 1));
    (51..59).for_each(|page| check_zeroes(&region, page));
    region.advise(RegionAdvice::DontNeed, 590 * PAGE..600 * PAGE + 9).unwrap();
    let mut last = [7; 9];
    region.read_at(&mut last, 600 * PAGE).unwrap();
    assert_eq!(last, [0; 9]);
    region.advise(RegionAdvice::Free, 300 * PAGE..400 * PAGE).unwrap();
    (300..350).for_each(|page| write(&region, page, 2));
    // It reclaims as much as possible.
    let _ = group.write("memory.reclaim", &(900 * PAGE).to_string());
    (300..350).for_each(|page| check(&region, page, 2));
    let mut lost = 0;
    for page in 350..400 {
        let mut buf = vec![7; PAGE_BYTES];
        region.read_at(&mut buf, page * PAGE).unwrap();
        assert!(buf == contents(page, 1) || buf.iter().all(|&byte| byte == 0), "page {page}");
        lost += u32::from(buf[..16] == [0; 16]);
    }
    assert!(lost > 0, "nothing was freed");
    assert!(stat(&group, "pglazyfreed") >= lost.into());
    assert!(matches!(region.advise(RegionAdvice::Cold, 0..601 * PAGE), Err(Error::BeyondEnd { .. })));
}

#[test]
fn discarded_page_under_a_guard_waits_for_the_guard() {
    let memory = memory();
    let region = memory.region(64 * PAGE, RegionOptions::new()).unwrap();
    (0..64).for_each(|page| write(&region, page, 1));
    let held = region.page(9).unwrap();
    let pinned = region.advise(RegionAdvice::DontNeed, 0..64 * PAGE).unwrap_err();
    assert!(matches!(pinned, Error::Pinned { page: Some(9), .. }), "{pinned}");
    assert!(*held == contents(9, 1)[..]);
    drop(held);
    region.advise(RegionAdvice::DontNeed, 0..64 * PAGE).unwrap();
    (0..64).for_each(|page| check_zeroes(&region, page));
}

#[test]
fn batches_pending_reads_and_prefetches_read_swapped_pages() {
    for io_threads in [0, 4] {
        let memory = builder().io_threads(io_threads).build().unwrap();
        let group = limited(&memory, "job", 150);
        let region = memory.region(500 * PAGE, RegionOptions::new().group(&group)).unwrap();
        (0..450).for_each(|page| write(&region, page, 1));
        let mut bufs = vec![[7; PAGE_BYTES]; 120];
        let pages = |at: usize| (at as u64 * 7) % 500;
        fn reads(bufs: &mut [[u8; PAGE_BYTES]], pages: impl Fn(usize) -> u64) -> Vec<ReadAt<'_>> {
            let of = bufs.iter_mut().enumerate();
            of.map(|(at, buf)| ReadAt { buf, offset: pages(at) * PAGE }).collect()
        }
        let check_all = |bufs: &[[u8; PAGE_BYTES]]| {
            for (at, buf) in bufs.iter().enumerate() {
                let page = pages(at);
                let wanted = if page < 450 { contents(page, 1) } else { vec![0; PAGE_BYTES] };
                assert!(buf[..] == wanted[..], "page {page}");
            }
        };
        region.read_batch(&mut reads(&mut bufs, pages)).unwrap();
        check_all(&bufs);
        bufs.fill([7; PAGE_BYTES]);
        region.submit(reads(&mut bufs, pages)).unwrap().wait().unwrap();
        check_all(&bufs);
        let before = vmstat(&memory, "pswpin");
        region.prefetch(0..100 * PAGE).unwrap();
        let read_in = vmstat(&memory, "pswpin") - before;
        assert!(read_in > 50, "{read_in}");
        let faults = stat(&group, "pgmajfault");
        (40..100).for_each(|page| check(&region, page, 1));
        assert!(stat(&group, "pgmajfault") - faults < 50, "requested pages are read one by one");
        // Dropped reads do not keep a region.
        drop(region.submit(reads(&mut bufs, pages)).unwrap());
        drop(region);
        await_freed(&memory);
    }
}

#[test]
fn typed_region_has_values_that_no_page_boundary_cuts() {
    #[derive(Clone, Copy, PartialEq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Bucket {
        key: u64,
        values: [u32; 6],
    }
    let memory = memory();
    let group = limited(&memory, "job", 60);
    let region = memory.region(500 * PAGE, RegionOptions::new().group(&group)).unwrap();
    let buckets = region.typed::<Bucket>().unwrap();
    assert_eq!(buckets.len(), 500 * 128);
    let of = |index: u64| Bucket { key: index, values: [index as u32; 6] };
    assert_eq!(*buckets.get(5000).unwrap(), of(0), "zeroes");
    for index in (0..buckets.len()).step_by(3) {
        *buckets.get_mut(index).unwrap() = of(index);
    }
    for index in 0..buckets.len() {
        let wanted = if index % 3 == 0 { of(index) } else { of(0) };
        assert_eq!(*buckets.get(index).unwrap(), wanted);
    }
    buckets.write(1, &of(77)).unwrap();
    assert_eq!(buckets.read(1).unwrap(), of(77));
    assert!(matches!(buckets.get(buckets.len()), Err(Error::BeyondEnd { .. })));
    region.set_len(3 * PAGE + 33).unwrap();
    assert_eq!(buckets.len(), 3 * 128 + 1);
    // 24 bytes: the rest of a page is in no value.
    let triples = region.typed::<[u64; 3]>().unwrap();
    triples.write(170, &[1, 2, 3]).unwrap();
    assert_eq!(*triples.get(170).unwrap(), [1, 2, 3]);
    assert_eq!(triples.len(), 3 * 170 + 1);
    assert!(matches!(region.typed::<[u64; 1024]>(), Err(Error::Config(_))));
    assert!(matches!(region.typed::<()>(), Err(Error::Config(_))));
}

#[test]
fn address_spaces_of_dropped_regions_are_used_again() {
    let memory = memory();
    let group = limited(&memory, "job", 100);
    for round in 0..300_u64 {
        let pages = 1 + round * 37 % 900;
        let region = memory.region(pages * PAGE, RegionOptions::new().group(&group)).unwrap();
        check_zeroes(&region, pages - 1);
        write(&region, 0, round);
        write(&region, pages / 2, round);
        check(&region, pages / 2, round);
    }
    assert_eq!(number(&group, "memory.swap.current"), 0);
    assert!(number(&group, "memory.current") <= 64 * PAGE, "what a CPU keeps of charges");
}

#[test]
fn leaked_guard_keeps_its_page_and_harms_nobody() {
    let memory = memory();
    let region = memory.region(64 * PAGE, RegionOptions::new()).unwrap();
    (0..64).for_each(|page| write(&region, page, 1));
    std::mem::forget(region.page(9).unwrap());
    drop(region);
    assert_eq!(memory.stats().unwrap().pinned, 1);
    let other = memory.region(24 << 20, RegionOptions::new()).unwrap();
    for version in 1..3 {
        (0..6000).for_each(|page| write(&other, page, version));
        (0..6000).for_each(|page| check(&other, page, version));
    }
}
