//! The compressed pool over a swap device that fails.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/made/pages.rs"]
mod pages;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use pages::contents;

use super::*;
use crate::storage::failing::{Fate, Faults, Request};
use crate::{Builder, Limits, Memory, Region, RegionAdvice, RegionOptions};

const SWAP: u64 = 16 << 20;

fn builder() -> Builder {
    let builder = Memory::builder().budget(16 << 20).files(16 << 20).zswap(Zswap::lz4());
    builder.swap_file(std::env::temp_dir(), SWAP).swap_buffered(true)
}

/// A device on which requests of one kind fail while `is_on`.
#[derive(Debug)]
struct Failing {
    fails: fn(Request) -> bool,
    is_on: AtomicBool,
    failed: AtomicU64,
}

impl Faults for Failing {
    fn fate(&self, request: Request) -> Fate {
        if self.is_on.load(SeqCst) && (self.fails)(request) {
            self.failed.fetch_add(1, SeqCst);
            return Fate::Fails(libc::EIO);
        }
        Fate::Well
    }
}

/// A region of 600 pages, of which `pages` and a pool of `percent` are in memory.
fn over_failing(fails: fn(Request) -> bool, pages: u64, percent: u8) -> (Arc<Failing>, Memory, Region) {
    let failing = Arc::new(Failing { fails, is_on: AtomicBool::new(false), failed: AtomicU64::new(0) });
    let faults = Arc::clone(&failing) as Arc<dyn Faults>;
    let memory = builder().swap_faults(faults).sysctl("zswap.max_pool_percent", percent).build().unwrap();
    let group = memory.group("job", Limits { max: Some(pages * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let region = memory.region(600 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
    (failing, memory, region)
}

fn check(region: &Region, page: u64, version: u64) {
    let mut buf = vec![7; PAGE];
    region.read_at(&mut buf, page * PAGE_SIZE).unwrap();
    assert!(buf == contents(page, version), "page {page} is not at version {version}");
}

fn written_back(memory: &Memory) -> u64 {
    memory.read("/sys/kernel/debug/zswap/written_back_pages").unwrap().trim().parse().unwrap()
}

#[test]
fn page_that_can_not_be_written_back_is_kept() {
    let (failing, memory, region) = over_failing(|request| matches!(request, Request::Write { .. }), 100, 1);
    (0..60).for_each(|page| region.write_at(&contents(page, 1), page * PAGE_SIZE).unwrap());
    region.advise(RegionAdvice::PageOut, 0..60 * PAGE_SIZE).unwrap();
    failing.is_on.store(true, SeqCst);
    // More pages than the pool and the group hold. At some point memory is full of pages that can't be written.
    let mut written = 60;
    for page in 60..200 {
        match region.write_at(&contents(page, 1), page * PAGE_SIZE) {
            Ok(()) => written = page + 1,
            Err(Error::OutOfMemory(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failing.failed.load(SeqCst) > 0 && written > 90, "{written} pages are written");
    failing.is_on.store(false, SeqCst);
    (written..600).for_each(|page| region.write_at(&contents(page, 1), page * PAGE_SIZE).unwrap());
    (0..600).for_each(|page| check(&region, page, 1));
    assert!(written_back(&memory) > 0);
    memory.0.machine.lock().unwrap().engine.check_invariants();
}

#[test]
fn unreadable_slot_is_an_error_and_pages_of_the_pool_are_not() {
    let (failing, memory, region) = over_failing(|request| matches!(request, Request::Read { .. }), 250, 4);
    let mut buf = vec![7; PAGE];
    // The shrinker may have written all pages of the pool before they are read: then again.
    let is_seen = (0..20).any(|_| {
        failing.is_on.store(false, SeqCst);
        (0..600).for_each(|page| region.write_at(&contents(page, 1), page * PAGE_SIZE).unwrap());
        failing.is_on.store(true, SeqCst);
        let (mut read, mut failed) = (0, 0);
        for page in (0..600).rev() {
            match region.read_at(&mut buf, page * PAGE_SIZE) {
                Ok(()) => {
                    assert!(buf == contents(page, 1), "page {page}");
                    read += 1;
                }
                Err(Error::SwapIo { page: at, .. }) => {
                    assert_eq!(at, page);
                    failed += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let vmstat = memory.read("/proc/vmstat").unwrap();
        let zswpin = vmstat.lines().find(|line| line.starts_with("zswpin ")).unwrap();
        println!("{read} read, {failed} not, {zswpin}");
        read > 100 && failed > 100 && zswpin != "zswpin 0"
    });
    assert!(is_seen, "no round has read pages of the pool beside slots that fail");
    failing.is_on.store(false, SeqCst);
    (0..600).for_each(|page| check(&region, page, 1));
    memory.0.machine.lock().unwrap().engine.check_invariants();
}

#[test]
fn page_changed_after_it_was_compressed_is_compressed_again() {
    let memory = builder().io_threads(0).build().unwrap();
    let group = memory.group("job", Limits { max: Some(100 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let region = memory.region(300 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
    let mut versions = vec![1; 300];
    (0..300).for_each(|page| region.write_at(&contents(page, 1), page * PAGE_SIZE).unwrap());
    let ready = || -> Vec<Pfn> {
        let locked = memory.0.machine.lock().unwrap();
        let pages = super::lock(&locked.machine().zpool.as_ref().unwrap().0);
        pages.ready.iter().map(|ready| ready.pfn).collect()
    };
    let mut changed = 0;
    for round in 2..40 {
        // Compressed pages in memory are written again, and leave it at once.
        let compressed = ready();
        for page in 0..300 {
            if region.0.frame_of(page).is_some_and(|pfn| compressed.contains(&pfn)) {
                versions[page as usize] = round;
                region.write_at(&contents(page, round), page * PAGE_SIZE).unwrap();
                region.advise(RegionAdvice::PageOut, page * PAGE_SIZE..(page + 1) * PAGE_SIZE).unwrap();
                changed += 1;
            }
        }
        // Others are written, so that reclaim is near: clean pages would not be compressed.
        for page in (round * 67..).take(60).map(|page| page % 300) {
            check(&region, page, versions[page as usize]);
            versions[page as usize] = round;
            region.write_at(&contents(page, round), page * PAGE_SIZE).unwrap();
        }
    }
    assert!(changed > 50, "{changed} compressed pages were changed");
    (0..300).for_each(|page| check(&region, page, versions[page as usize]));
}
