//! Changes of the budget while pages are in use: what stays, what is refused, and what it leaves unchanged.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::made::{Made, PAGE, check, draws};
use pageout::{Builder, Error, File, Limits, Memory, Open, PageRef, RegionOptions};

const MIB: u64 = 1 << 20;
const LARGE: u64 = 32 * MIB;
const SMALL: u64 = 12 * MIB;
const PAGES: u64 = 8192;

fn builder() -> Builder {
    Memory::builder().budget(LARGE).files(PAGES * PAGE as u64 * 2)
}

fn open(memory: &Memory, made: &Made) -> File {
    memory.open(&made.0, Open::read().random().buffered(true)).unwrap()
}

fn made(name: &str) -> Made {
    Made::new(name, PAGES as usize * PAGE)
}

fn read_all(file: &File) {
    let mut buf = vec![0; PAGE];
    for page in 0..PAGES {
        file.read_at(&mut buf, page * PAGE as u64).unwrap();
        check(&buf, page as usize * PAGE);
    }
}

fn guards(file: &File, count: u64) -> Vec<(u64, PageRef<'_>)> {
    (0..count).map(|at| (at * 5, file.page(at * 5).unwrap())).collect()
}

fn check_guards(guards: &[(u64, PageRef<'_>)]) {
    guards.iter().for_each(|(page, guard)| check(guard, *page as usize * PAGE));
}

#[test]
fn pages_are_intact_and_within_each_budget() {
    let made = made("intact");
    for policy in ["mglru@6.12", "classic@6.12", "lru"] {
        let memory = builder().policy(policy).build().unwrap();
        let file = open(&memory, &made);
        let all = memory.stats().unwrap().frames;
        for budget in [SMALL, 20 * MIB, 15 * MIB, LARGE] {
            read_all(&file);
            memory.set_budget(budget).unwrap();
            assert_eq!(memory.budget(), budget);
            let stats = memory.stats().unwrap();
            assert!(stats.resident <= stats.frames && stats.frames * PAGE as u64 <= budget, "{stats:?}");
            read_all(&file);
            assert!(memory.stats().unwrap().resident <= stats.frames);
        }
        assert_eq!(memory.stats().unwrap().frames, all);
    }
}

#[test]
fn pages_under_guards_stay_in_place() {
    let made = made("guards");
    let memory = builder().build().unwrap();
    let file = open(&memory, &made);
    read_all(&file);
    let guards = guards(&file, 300);
    let places: Vec<_> = guards.iter().map(|(_, guard)| guard.as_ptr()).collect();
    memory.set_budget(SMALL).unwrap();
    check_guards(&guards);
    read_all(&file);
    check_guards(&guards);
    memory.set_budget(LARGE).unwrap();
    read_all(&file);
    check_guards(&guards);
    assert!(guards.iter().map(|(_, guard)| guard.as_ptr()).eq(places));
}

#[test]
fn budget_below_what_guards_hold_changes_nothing() {
    let made = made("pinned");
    let memory = builder().build().unwrap();
    let file = open(&memory, &made);
    read_all(&file);
    let before = memory.stats().unwrap();
    let guards = guards(&file, before.frames / 5);
    let before = memory.stats().unwrap();
    let error = memory.set_budget(SMALL).unwrap_err();
    let held = guards.len() as u64;
    assert!(
        matches!(&error, Error::Pinned { pinned, most, .. } if *pinned == held && *most < held),
        "{error}"
    );
    let after = memory.stats().unwrap();
    assert_eq!((memory.budget(), after.frames), (LARGE, before.frames));
    assert_eq!(after.resident, before.resident, "pages were evicted for nothing");
    // As many guards as before may be taken.
    drop(guards);
    drop(self::guards(&file, before.frames / 5));
    memory.set_budget(SMALL).unwrap();
}

#[test]
fn budget_outside_of_its_bounds_is_refused() {
    let memory = builder().budget_max(LARGE + 4 * MIB).build().unwrap();
    let error = memory.set_budget(LARGE + 5 * MIB).unwrap_err();
    assert!(matches!(error, Error::BudgetBeyondArena { most, .. } if most == LARGE + 4 * MIB), "{error}");
    let Err(Error::BudgetTooSmall { least }) = memory.set_budget(MIB) else { panic!("it is too small") };
    assert!(memory.set_budget(least - 1).is_err());
    assert_eq!(memory.budget(), LARGE);
    memory.set_budget(least).unwrap();
    memory.set_budget(LARGE + 4 * MIB).unwrap();
    assert!(memory.describe().contains(&format!("{} frames", memory.stats().unwrap().frames)));
}

#[test]
fn regions_without_swap_limit_the_budget() {
    let memory = builder().build().unwrap();
    let region = memory.region(20 * MIB, RegionOptions::new()).unwrap();
    let error = memory.set_budget(SMALL).unwrap_err();
    assert!(matches!(error, Error::NoSwap { bytes, .. } if bytes == 20 * MIB), "{error}");
    assert_eq!(memory.budget(), LARGE);
    drop(region);
    memory.set_budget(SMALL).unwrap();
    assert!(matches!(memory.region(20 * MIB, RegionOptions::new()), Err(Error::NoSwap { .. })));
}

#[test]
fn region_with_swap_keeps_its_bytes() {
    let memory = builder().swap_file(std::env::temp_dir(), 64 * MIB).swap_buffered(true).build().unwrap();
    let region = memory.region(20 * MIB, RegionOptions::new()).unwrap();
    let pages = 20 * MIB / PAGE as u64;
    for page in 0..pages {
        region.write_at(&page.to_le_bytes(), page * PAGE as u64 + 5).unwrap();
    }
    memory.set_budget(SMALL).unwrap();
    assert!(memory.stats().unwrap().swapped > pages / 3);
    for page in 0..pages {
        let mut buf = [0; 8];
        region.read_at(&mut buf, page * PAGE as u64 + 5).unwrap();
        assert_eq!(u64::from_le_bytes(buf), page);
    }
}

#[test]
fn dirty_pages_are_written_before_they_leave() {
    let made = made("dirty");
    let memory =
        builder().sysctl("vm.dirty_ratio", 90).sysctl("vm.dirty_background_ratio", 80).build().unwrap();
    let file = memory.open(&made.0, Open::read_write().random().buffered(true)).unwrap();
    let pages = memory.stats().unwrap().frames * 3 / 4;
    for page in 0..pages {
        file.write_at(&page.to_le_bytes(), page * PAGE as u64).unwrap();
    }
    memory.set_budget(SMALL).unwrap();
    for page in 0..pages {
        let mut buf = [0; 8];
        file.read_at(&mut buf, page * PAGE as u64).unwrap();
        assert_eq!(u64::from_le_bytes(buf), page);
    }
    file.sync_data().unwrap();
}

#[test]
fn arena_is_fixed_and_has_all_guards() {
    let made = made("arena");
    let memory = builder().build().unwrap();
    let file = open(&memory, &made);
    let (at, bytes) = memory.arena();
    read_all(&file);
    for budget in [SMALL, LARGE] {
        memory.set_budget(budget).unwrap();
        assert_eq!(memory.arena(), (at, bytes));
        for page in (0..PAGES).step_by(11) {
            let guard = file.page(page).unwrap();
            let offset = guard.as_ptr().addr() - at.addr();
            assert!(offset < bytes && offset.is_multiple_of(PAGE), "page {page} is at {offset} of {bytes}");
        }
    }
}

#[test]
fn readers_and_writers_go_on_while_the_budget_changes() {
    let (made, written) = (made("threads"), Made::new("written", 1024 * PAGE));
    let memory = builder().io_threads(2).build().unwrap();
    let small = memory.group("small", Limits { max: Some(2 * MIB), ..Limits::NONE }).unwrap();
    let file = open(&memory, &made);
    let writable = memory.open(&written.0, Open::read_write().buffered(true).group(&small)).unwrap();
    let stops = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (file, stops) = (&file, &stops);
            scope.spawn(move || {
                let (mut draw, mut buf) = (draws(thread), vec![0; PAGE]);
                while !stops.load(Relaxed) {
                    let page = draw(PAGES);
                    if draw(3) == 0 {
                        let guard = file.page(page).unwrap();
                        check(&guard, page as usize * PAGE);
                    } else {
                        file.read_at(&mut buf, page * PAGE as u64).unwrap();
                        check(&buf, page as usize * PAGE);
                    }
                }
            });
        }
        let (writable, stops_too) = (&writable, &stops);
        scope.spawn(move || {
            let mut draw = draws(77);
            let mut versions = vec![0_u64; 1024];
            while !stops_too.load(Relaxed) {
                let page = draw(1024);
                let version = &mut versions[page as usize];
                if *version > 0 {
                    let mut buf = [0; 8];
                    writable.read_at(&mut buf, page * PAGE as u64 + 8).unwrap();
                    assert_eq!(u64::from_le_bytes(buf), *version);
                }
                *version += 1;
                writable.write_at(&version.to_le_bytes(), page * PAGE as u64 + 8).unwrap();
            }
        });
        let mut draw = draws(5);
        for _ in 0..40 {
            let budget = SMALL + draw(LARGE - SMALL + 1);
            memory.set_budget(budget).unwrap();
            assert_eq!(memory.budget(), budget);
        }
        stops.store(true, Relaxed);
    });
    let stats = memory.stats().unwrap();
    assert_eq!(stats.pinned, 0);
    assert!(stats.resident <= stats.frames);
}
