//! Promises of the balloon: which frames the host gets back, where their pages go, and how zones change.

use super::compaction::{Bench, PAGES};
use crate::page_alloc::request::MigrateType;
use crate::stat::Stat;
use crate::*;

/// The most steps of any resize here: a step takes, moves or gives back 32 frames at least, or is one of reclaim.
const STEPS_MAX: usize = 2000;

impl Bench {
    /// Resizes the balloon, and returns its size.
    fn balloon(&mut self, pages: u64) -> u64 {
        let mut step = self.engine.balloon_resize(self.task, pages);
        let mut steps = 0;
        while !matches!(step, Step::Done(_)) {
            self.carry_out();
            if steps % 16 == 0 {
                self.engine.check_invariants();
            }
            steps += 1;
            assert!(
                steps < STEPS_MAX,
                "the resize does not end: {step:?}, {} frames",
                self.engine.balloon_frames().len()
            );
            step = self.engine.resume(self.task);
        }
        self.carry_out();
        self.engine.check_invariants();
        self.engine.balloon_frames().len() as u64
    }

    /// Frames beyond the lowest of the balloon that are not of it, and not the kernel's.
    fn passed_by(&self) -> usize {
        let lowest = self.engine.balloon_frames().iter().min().unwrap().0;
        let others = self.engine.used_folios().into_iter().filter(|pfn| pfn.0 > lowest).count();
        let free = PAGES as usize
            - lowest as usize
            - others
            - self.engine.core.mm.kernel_frames().iter().filter(|pfn| pfn.0 >= lowest).count();
        assert_eq!(free, 0, "frames beyond it are free");
        others
    }

    fn cached(&self) -> u64 {
        self.engine.figures().cached_pages(self.file, 0..PAGES).count() as u64
    }

    fn zone(&self) -> ZoneInfo {
        self.engine.figures().zones().next().unwrap()
    }
}

fn every(step: u32) -> impl Fn(&Pfn) -> bool {
    move |pfn| pfn.0.is_multiple_of(step)
}

#[test]
fn balloon_takes_the_end_of_memory_and_moves_its_pages() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(8));
    let before = bench.cached();
    assert_eq!(bench.balloon(PAGES / 2), PAGES / 2);
    assert_eq!(bench.passed_by(), 0);
    assert_eq!(bench.cached(), before, "no page is evicted while there are free frames elsewhere");
    let moved = bench.engine.figures().vmstat(Stat::PgmigrateSuccess) as u64;
    assert!((before / 2 - 8..before / 2 + 8).contains(&moved), "{moved} of {before} pages have moved");
}

#[test]
fn balloon_in_full_memory_evicts_as_many_pages_as_it_takes() {
    let mut bench = Bench::keeping(MigrateType::Movable, |pfn| u64::from(pfn.0) < PAGES - 32);
    let whole = bench.zone();
    let before = bench.cached();
    assert_eq!(bench.balloon(PAGES / 2), PAGES / 2);
    let (evicted, high) = (before - bench.cached(), whole.high);
    assert!((PAGES / 2 - 64..PAGES / 2 + high).contains(&evicted), "{evicted} pages are evicted");
}

#[test]
fn zone_without_the_balloon_is_one_of_a_smaller_machine() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(8));
    let whole = bench.zone();
    for pages in [PAGES / 2, 3 * PAGES / 4, 1000, 0] {
        assert_eq!(bench.balloon(pages), pages);
        let small = Engine::new(Config { node_pages: vec![PAGES - pages], ..Config::default() }).unwrap();
        let (small, now) = (small.figures().zones().next().unwrap(), bench.zone());
        let of = |zone: &ZoneInfo| (zone.managed, zone.min, zone.low, zone.high);
        assert_eq!(of(&now), of(&small), "{pages} pages are taken");
    }
    assert_eq!(bench.zone().managed, whole.managed);
}

#[test]
fn held_pages_stay_and_lower_frames_are_taken() {
    let mut bench = Bench::keeping(MigrateType::Movable, every(8));
    let held: Vec<Pfn> =
        bench.engine.used_folios().into_iter().filter(|pfn| pfn.0.is_multiple_of(32)).collect();
    for &pfn in &held {
        bench.engine.core.mm.memory.folios[pfn].refs += 1;
    }
    let before = bench.cached();
    assert_eq!(bench.balloon(PAGES / 2), PAGES / 2);
    assert_eq!(bench.cached(), before);
    assert!(held.iter().all(|pfn| !bench.engine.balloon_frames().contains(pfn)));
    let lowest = bench.engine.balloon_frames().iter().min().unwrap();
    assert_eq!(bench.passed_by(), held.iter().filter(|&pfn| pfn > lowest).count());
}

#[test]
fn balloon_stays_smaller_where_nothing_can_go() {
    let mut bench = Bench::keeping(MigrateType::Movable, |pfn| u64::from(pfn.0) < PAGES / 2);
    for pfn in bench.engine.used_folios() {
        bench.engine.core.mm.memory.folios[pfn].refs += 1;
    }
    let taken = bench.balloon(3 * PAGES / 4);
    assert!((PAGES / 2 - 64..=PAGES / 2).contains(&taken), "{taken} of {} free frames", PAGES / 2);
    assert_eq!(bench.engine.figures().vmstat(Stat::OomKill), 0);
    assert_eq!(bench.balloon(0), 0);
}

#[test]
fn memory_never_used_is_taken_from_its_end() {
    let mut engine = Engine::new(Config { node_pages: vec![PAGES + 300], ..Config::default() }).unwrap();
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    let mut step = engine.balloon_resize(task, 700);
    while step == Step::Again {
        step = engine.resume(task);
    }
    engine.check_invariants();
    let lowest = engine.balloon_frames().iter().min().unwrap().0;
    assert_eq!((engine.balloon_frames().len(), u64::from(lowest)), (700, PAGES - 400));
}
