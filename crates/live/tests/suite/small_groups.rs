//! Groups of a few pages, and swap that is full, under every policy.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use std::time::{Duration, Instant};

use crate::made::{Made, PAGE, check};
use pageout::engine::{Engine, PROFILES, ThrottleReason};
use pageout::{Builder, Error, File, Group, Limits, Memory, Open, Region, RegionAdvice, RegionOptions};

/// How much a test does under a policy. Reclaim of 2010 waits a tenth of a second wherever it finds too little.
struct Extent {
    /// Pages of groups.
    sizes: &'static [u64],
    /// Pages of files and regions.
    pages: u64,
    rounds: u64,
    /// Slots of the group.
    slots: u64,
    /// Slots of all.
    all_slots: u64,
}

impl Extent {
    fn of(policy: &str) -> Extent {
        match policy.starts_with("classic@2010") {
            true => Extent { sizes: &[16], pages: 20, rounds: 1, slots: 3, all_slots: 10 },
            // All of their pages may wait in a batch, which has up to 31.
            false => Extent { sizes: &[4, 8, 16, 20], pages: 60, rounds: 3, slots: 80, all_slots: 300 },
        }
    }
}

fn builder(policy: &str, swap_pages: u64) -> Builder {
    let builder = Memory::builder().budget(8 << 20).files(64 << 20).policy(policy).io_threads(0);
    builder.swap_file(std::env::temp_dir(), swap_pages * PAGE as u64).swap_buffered(true)
}

fn limited(memory: &Memory, pages: u64) -> Group {
    memory.group("small", Limits { max: Some(pages * PAGE as u64), ..Limits::NONE }).unwrap()
}

/// The contents of a page of a region.
fn contents(page: u64, version: u64) -> Vec<u8> {
    [page, version].map(u64::to_le_bytes).concat().repeat(PAGE / 16)
}

fn write(region: &Region, page: u64, version: u64) -> Result<(), Error> {
    region.write_at(&contents(page, version), page * PAGE as u64)
}

#[track_caller]
fn check_page(region: &Region, page: u64, version: u64, of: &str) {
    let mut buf = vec![7; PAGE];
    region.read_at(&mut buf, page * PAGE as u64).unwrap_or_else(|error| panic!("{of}: page {page}: {error}"));
    assert!(buf == contents(page, version), "{of}: page {page}: {:?}", &buf[..16]);
}

/// Does this in a group of each size, under each policy.
fn each_small_group(act: impl Fn(&Memory, &Group, &Extent, &str)) {
    for profile in PROFILES {
        let extent = Extent::of(profile.name);
        for &pages in extent.sizes {
            let memory = builder(profile.name, 4096).build().unwrap();
            let group = limited(&memory, pages);
            let of = format!("{}, {pages} pages", profile.name);
            act(&memory, &group, &extent, &of);
            let used = group.read("memory.current").unwrap().trim().parse::<u64>().unwrap() / PAGE as u64;
            assert!(used <= pages, "{of}: {used} are used");
        }
    }
}

fn read_and_write_file(file: &File, pages: u64, round: u64, of: &str) {
    for page in (0..pages).map(|page| page * 7 % pages) {
        let mut buf = [0; PAGE];
        let read = file.read_at(&mut buf, page * PAGE as u64);
        read.unwrap_or_else(|error| panic!("{of}: page {page}: {error}"));
        check(&buf, page as usize * PAGE);
        if page % 3 == round % 3 {
            file.write_at(&buf, page * PAGE as u64)
                .unwrap_or_else(|error| panic!("{of}: write {page}: {error}"));
        }
    }
}

#[test]
fn small_groups_read_and_write_files_with_every_policy() {
    let made = Made::new("files", 60 * PAGE);
    each_small_group(|memory, group, extent, of| {
        let how = Open::read_write().random().buffered(true).group(group);
        let file = memory.open(&made.0, how).unwrap();
        (0..=extent.rounds).for_each(|round| read_and_write_file(&file, extent.pages, round, of));
        file.sync_data().unwrap();
    });
}

#[test]
fn small_groups_use_regions_with_every_policy() {
    each_small_group(|memory, group, extent, of| {
        let region = memory.region(100 * PAGE as u64, RegionOptions::new().group(group)).unwrap();
        for version in 1..=extent.rounds {
            for page in 0..extent.pages {
                write(&region, page, version).unwrap_or_else(|error| panic!("{of}: write {page}: {error}"));
            }
            (0..extent.pages).for_each(|page| check_page(&region, page, version, of));
        }
    });
}

#[test]
fn small_groups_mix_files_and_regions_with_every_policy() {
    let made = Made::new("mixed", 60 * PAGE);
    each_small_group(|memory, group, extent, of| {
        let how = Open::read_write().random().buffered(true).group(group);
        let file = memory.open(&made.0, how).unwrap();
        let region = memory.region(extent.pages * PAGE as u64, RegionOptions::new().group(group)).unwrap();
        for version in 1..=extent.rounds {
            for page in 0..extent.pages {
                write(&region, page, version).unwrap_or_else(|error| panic!("{of}: write {page}: {error}"));
            }
            read_and_write_file(&file, extent.pages, version, of);
            (0..extent.pages).for_each(|page| check_page(&region, page, version, of));
        }
        file.sync_data().unwrap();
    });
}

/// Writes new pages until there is no memory for the next. Returns how many were written.
fn fill(region: &Region, most: u64, of: &str) -> u64 {
    for page in 0..most {
        match write(region, page, 1) {
            Ok(()) => {}
            Err(Error::OutOfMemory(_)) => return page,
            Err(error) => panic!("{of}: page {page}: {error}"),
        }
    }
    panic!("{of}: swap is never full");
}

/// What was written to full swap can be read, and written again; and pages that are discarded make room.
fn check_full(region: &Region, written: u64, extent: &Extent, of: &str) {
    if extent.rounds == 1 {
        // The oldest pages are in swap.
        return (0..extent.slots).for_each(|page| check_page(region, page, 1, of));
    }
    (0..written).for_each(|page| check_page(region, page, 1, of));
    for page in (0..written).rev() {
        write(region, page, 2).unwrap_or_else(|error| panic!("{of}: write {page} again: {error}"));
    }
    (0..written).for_each(|page| check_page(region, page, 2, of));
    let discarded = written / 4;
    region.advise(RegionAdvice::DontNeed, 0..discarded * PAGE as u64).unwrap();
    for page in written..written + discarded / 2 {
        write(region, page, 2).unwrap_or_else(|error| panic!("{of}: write {page}: {error}"));
    }
    (discarded..written + discarded / 2).for_each(|page| check_page(region, page, 2, of));
}

#[test]
fn full_swap_of_a_group_is_readable_with_every_policy() {
    for profile in PROFILES {
        let extent = Extent::of(profile.name);
        let slots = extent.slots;
        for &pages in extent.sizes {
            let of = format!("{}, {pages} pages", profile.name);
            let memory = builder(profile.name, 4096).build().unwrap();
            let group = limited(&memory, pages);
            group.write("memory.swap.max", &(slots * PAGE as u64).to_string()).unwrap();
            let region = memory.region(1000 * PAGE as u64, RegionOptions::new().group(&group)).unwrap();
            let written = fill(&region, 1000, &of);
            assert!((slots..=pages + slots).contains(&written), "{of}: {written}");
            check_full(&region, written, &extent, &of);
            let used = group.read("memory.current").unwrap().trim().parse::<u64>().unwrap() / PAGE as u64;
            assert!(used <= pages + 8, "{of}: {used} are used");
        }
    }
}

#[test]
fn full_swap_file_is_readable_with_every_policy() {
    for profile in PROFILES {
        let extent = Extent::of(profile.name);
        let slots = extent.all_slots;
        let memory = builder(profile.name, slots).build().unwrap();
        let frames = memory.stats().unwrap().frames;
        let region = memory.region(4 * frames * PAGE as u64, RegionOptions::new()).unwrap();
        let written = fill(&region, 4 * frames, profile.name);
        assert!((frames - 64..frames + slots).contains(&written), "{}: {written} of {frames}", profile.name);
        check_full(&region, written, &extent, profile.name);
    }
}

#[test]
fn threads_read_and_write_pages_of_full_swap() {
    const THREADS: u64 = 4;
    for policy in ["classic@6.12", "mglru@6.12", "s3-fifo"] {
        let memory = builder(policy, 4096).io_threads(4).build().unwrap();
        let group = limited(&memory, 100);
        group.write("memory.swap.max", &(200 * PAGE).to_string()).unwrap();
        let region = memory.region(1000 * PAGE as u64, RegionOptions::new().group(&group)).unwrap();
        let written = fill(&region, 1000, policy);
        let all_done = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let region = &region;
                    scope.spawn(move || {
                        for version in 1..6 {
                            for page in (thread..written).step_by(THREADS as usize) {
                                check_page(region, page, version, policy);
                                write(region, page, version + 1)
                                    .unwrap_or_else(|error| panic!("{policy}: write {page}: {error}"));
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().all(|thread| thread.join().is_ok())
        });
        assert!(all_done, "{policy}");
        (0..written).for_each(|page| check_page(&region, page, 6, policy));
    }
}

/// A group whose pages are all held by guards has no memory for another page, and its caller is told soon.
#[test]
fn group_full_of_held_pages_is_out_of_memory_soon() {
    const HELD: u64 = 64;
    let made = Made::new("held", 200 * PAGE);
    for policy in ["classic@6.12", "mglru@6.12", "mglru@7.3", "s3-fifo"] {
        for is_file in [true, false] {
            let memory = builder(policy, 4096).io_threads(2).build().unwrap();
            let group = limited(&memory, HELD);
            let file =
                memory.open(&made.0, Open::read_write().random().buffered(true).group(&group)).unwrap();
            let region = memory.region(200 * PAGE as u64, RegionOptions::new().group(&group)).unwrap();
            let hold = |page| if is_file { file.page_mut(page) } else { region.page_mut(page) };
            let mut held = Vec::new();
            // Calls of reclaim, and waits for writes within them.
            let work = || {
                let look = |engine: &Engine| {
                    let waits = ThrottleReason::ALL.map(|reason| engine.figures().throttled(reason));
                    (engine.work().reclaim_calls, waits.iter().sum::<u64>())
                };
                memory.look_at_engine(look).unwrap()
            };
            let mut began = Instant::now();
            let mut before = work();
            let error = loop {
                match hold(held.len() as u64) {
                    Ok(page) => held.push(page),
                    Err(error) => break error,
                }
                began = Instant::now();
                before = work();
            };
            let (span, (calls, waits)) = (began.elapsed(), work());
            let (calls, waits) = (calls - before.0, waits - before.1);
            println!(
                "{policy}, file: {is_file}: {} pages, {span:?}, {calls} calls, {waits} waits",
                held.len()
            );
            assert!(matches!(error, Error::OutOfMemory(_)), "{policy}: {error}");
            assert!(held.len() as u64 >= HELD - 8, "{policy}: {} pages", held.len());
            // 17 times 17 attempts in 66 ms, as the holders may be copies; and once more, before writes count as held up.
            assert!(calls <= 400, "{policy}, file: {is_file}: {calls} calls of reclaim");
            // A call waits up to 15 times, for writes that may end.
            assert!(waits <= 17 * 15, "{policy}, file: {is_file}: {waits} waits");
            // On a machine that does other work.
            assert!(span < Duration::from_secs(6), "{policy}, file: {is_file}: after {span:?}");
            held.clear();
            drop(hold(100).unwrap());
        }
    }
}
