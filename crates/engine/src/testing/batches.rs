//! Promises of the per-CPU batches that can't be seen from outside: who is let in, when they drain, and in which order.

use crate::lru::lruvec::LruList;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::mm::Advice;
use crate::*;

/// A task that has read some pages of a file, and written some of its heap.
struct Bench {
    engine: Engine,
    task: TaskId,
    file: ObjectId,
    heap: ObjectId,
}

impl Bench {
    /// With this number of pages of each, on the lists already.
    fn new(pages: u64) -> Bench {
        let mut builder = Engine::builder(Config::default()).unwrap();
        builder.swap_on(SwapSpec { pages: 100, kind: SwapKind::Device }).unwrap();
        let mut engine = builder.build();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let spec =
            FileSpec { name: "data".to_owned(), pages: 100, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
        let file = engine.file_create(spec).unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let file = engine.open(task, file).unwrap();
        let heap = engine.map_anon(task, 100, Advice::Normal).unwrap();
        let mut bench = Bench { engine, task, file, heap };
        for page in 0..pages {
            bench.read(page);
            bench.write_heap(page);
        }
        bench.engine.core.lru_add_drain();
        bench
    }

    fn read(&mut self, page: u64) {
        let mut step = self.engine.start(self.task, Access::new(self.file, page, false));
        while matches!(step, Step::Wait(Wait::Io(_))) {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, .. } = op {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            step = self.engine.resume(self.task);
        }
        assert!(matches!(step, Step::Done(Served::Hit(_) | Served::Major(_))));
    }

    fn write_heap(&mut self, page: u64) {
        let step = self.engine.start(self.task, Access::new(self.heap, page, true));
        assert!(matches!(step, Step::Done(Served::Minor(_))), "{step:?}");
    }

    fn pfn(&self, object: ObjectId, page: u64) -> Pfn {
        match self.engine.touched(self.task, Access::new(object, page, false)) {
            Touched::Frame(pfn) => pfn,
            touched => panic!("page {page} is {touched:?}"),
        }
    }

    fn file_pfn(&self, page: u64) -> Pfn {
        self.pfn(self.file, page)
    }

    fn heap_pfn(&self, page: u64) -> Pfn {
        self.pfn(self.heap, page)
    }

    fn queued(&self) -> usize {
        self.engine.core.mm.cpus[0].batches.iter().count()
    }

    /// The list from its cold end.
    fn list(&self, list: LruList) -> Vec<Pfn> {
        let lruvec = self.engine.core.mm.lruvec_of(self.file_pfn(0));
        let list = &self.engine.core.mm.lruvecs[lruvec].lists[list as usize];
        list.iter_from_tail(&self.engine.core.mm.memory.folios).map(Pfn).collect()
    }
}

#[test]
fn a_batch_drains_when_the_31st_folio_comes_and_takes_no_other_along() {
    let mut bench = Bench::new(1);
    bench.engine.core.lru_deactivate_file(bench.file_pfn(0));
    for page in 1..31 {
        bench.read(page);
    }
    assert_eq!((bench.queued(), bench.list(LruList::InactiveFile).len()), (31, 1));
    bench.read(31);
    assert_eq!((bench.queued(), bench.list(LruList::InactiveFile).len()), (1, 32));
}

#[test]
fn new_folios_are_placed_before_anything_else_is_moved() {
    let mut bench = Bench::new(1);
    let old = bench.file_pfn(0);
    bench.engine.core.lru_activate(old);
    bench.read(1);
    bench.read(2);
    bench.engine.core.mm.memory.add_use(bench.file_pfn(1), UseBits::ACTIVE);
    bench.engine.core.lru_add_drain();
    assert_eq!(
        bench.list(LruList::ActiveFile),
        [bench.file_pfn(1), old],
        "the activated one came last, to the head"
    );
}

#[test]
fn rotated_folios_go_to_the_tail_before_dropped_ones_do() {
    let mut bench = Bench::new(3);
    let pfns = [0, 1, 2].map(|page| bench.file_pfn(page));
    bench.engine.core.lru_deactivate_file(pfns[1]);
    bench.engine.core.lru_rotate(pfns[2]);
    bench.engine.core.lru_add_drain();
    assert_eq!(bench.list(LruList::InactiveFile), [pfns[1], pfns[2], pfns[0]]);
}

#[test]
fn a_folio_said_to_be_cold_and_free_is_deactivated_first() {
    let mut bench = Bench::new(2);
    let pfn = bench.heap_pfn(0);
    bench.engine.core.lru_activate(pfn);
    bench.engine.core.lru_add_drain();
    bench.engine.core.lru_lazyfree(pfn);
    bench.engine.core.lru_deactivate(pfn);
    bench.engine.core.lru_add_drain();
    assert!(bench.list(LruList::InactiveFile).contains(&pfn));
    assert_eq!(
        (bench.engine.figures().vmstat(Stat::Pgdeactivate), bench.engine.figures().vmstat(Stat::Pglazyfree)),
        (1, 1)
    );
}

#[test]
fn activation_has_the_last_word() {
    let mut bench = Bench::new(2);
    let pfn = bench.file_pfn(0);
    bench.engine.core.lru_activate(pfn);
    bench.engine.core.lru_deactivate_file(pfn);
    bench.engine.core.lru_add_drain();
    assert_eq!(bench.list(LruList::ActiveFile), [pfn]);
}

#[test]
fn a_folio_that_is_on_no_list_enters_no_batch_but_the_first() {
    let mut bench = Bench::new(0);
    bench.read(0);
    bench.write_heap(0);
    let (file, heap) = (bench.file_pfn(0), bench.heap_pfn(0));
    assert_eq!(bench.queued(), 2);
    bench.engine.core.lru_activate(file);
    bench.engine.core.lru_deactivate(file);
    bench.engine.core.lru_deactivate_file(file);
    bench.engine.core.lru_rotate(file);
    bench.engine.core.lru_lazyfree(heap);
    assert_eq!(bench.queued(), 2);
}

#[test]
fn each_batch_lets_in_only_what_it_can_move() {
    let mut bench = Bench::new(2);
    let (file, heap, other) = (bench.file_pfn(0), bench.heap_pfn(0), bench.heap_pfn(1));
    let mut refuses = |why: &str, ask: &mut dyn FnMut(&mut Engine)| {
        let before = bench.engine.core.mm.cpus[0].batches.iter().count();
        ask(&mut bench.engine);
        assert_eq!(bench.engine.core.mm.cpus[0].batches.iter().count(), before, "{why}");
    };
    refuses("an inactive folio needn't be deactivated", &mut |engine| engine.core.lru_deactivate(file));
    refuses("a file folio's contents can't be forgotten", &mut |engine| engine.core.lru_lazyfree(file));
    refuses("a dirty folio isn't ready to go", &mut |engine| engine.core.lru_rotate(heap));
    refuses("an active folio needn't be activated", &mut |engine| {
        engine.core.mm.memory.add_use(file, UseBits::ACTIVE);
        engine.core.lru_activate(file);
        engine.core.mm.memory.remove_use(file, UseBits::ACTIVE);
    });
    refuses("a folio with a slot keeps its contents there", &mut |engine| {
        engine.core.mm.memory.folios[other].set(FolioFlags::SWAPCACHE);
        engine.core.lru_lazyfree(other);
        engine.core.mm.memory.folios[other].clear(FolioFlags::SWAPCACHE);
    });
    bench.engine.mlock(bench.task, bench.heap).unwrap();
    let before = bench.queued();
    bench.engine.core.lru_activate(heap);
    bench.engine.core.lru_rotate(heap);
    bench.engine.core.lru_deactivate_file(heap);
    assert_eq!(bench.queued(), before, "an unevictable folio stays where it is");
}

#[test]
fn a_folio_isolated_while_it_waits_is_skipped() {
    let mut bench = Bench::new(1);
    let pfn = bench.file_pfn(0);
    bench.engine.core.lru_activate(pfn);
    bench.engine.core.lru_unlink(pfn);
    bench.engine.core.lru_add_drain();
    assert_eq!((bench.queued(), bench.engine.figures().vmstat(Stat::Pgactivate)), (0, 0));
    assert_eq!(bench.engine.core.mm.memory.folios[pfn].refs, 0, "the batch has let go of it");
    bench.engine.core.put_back(pfn);
    assert_eq!(bench.list(LruList::InactiveFile), [pfn]);
}

#[test]
fn a_folio_that_was_given_a_slot_while_it_waits_is_not_made_forgettable() {
    let mut bench = Bench::new(1);
    let pfn = bench.heap_pfn(0);
    bench.engine.core.lru_lazyfree(pfn);
    bench.engine.core.mm.memory.folios[pfn].set(FolioFlags::SWAPCACHE);
    bench.engine.core.lru_add_drain();
    assert!(bench.engine.core.mm.memory.folios[pfn].has(FolioFlags::SWAPBACKED));
    assert_eq!(bench.engine.figures().vmstat(Stat::Pglazyfree), 0);
}

#[test]
fn a_folio_queued_twice_for_activation_moves_once_and_ages_twice() {
    let mut bench = Bench::new(2);
    let lruvec = bench.engine.core.mm.lruvec_of(bench.file_pfn(0));
    for page in [0, 1, 0, 1, 0] {
        bench.read(page);
    }
    // 0 was read four times with another page in between: marked, queued, marked, queued. 1 was read three times.
    assert_eq!((bench.queued(), bench.engine.core.mm.lruvecs[lruvec].nonresident_age), (3, 3));
    bench.engine.core.lru_add_drain();
    assert_eq!(bench.engine.figures().vmstat(Stat::Pgactivate), 2);
}

#[test]
fn a_reference_from_a_batch_keeps_a_folio_from_being_freed() {
    let mut bench = Bench::new(1);
    bench.engine.core.lru_activate(bench.file_pfn(0));
    assert!(!bench.engine.core.release_if_unused(bench.file_pfn(0)));
    assert_eq!(bench.engine.core.mm.memory.folios[bench.file_pfn(0)].refs, 1);
}

#[test]
fn accessed_bits_of_a_mapping_advised_random_are_not_cleared() {
    let mut bench = Bench::new(0);
    let random = bench.engine.map_anon(bench.task, 8, Advice::Random).unwrap();
    bench.write_heap(0);
    let step = bench.engine.start(bench.task, Access::new(random, 0, true));
    assert!(matches!(step, Step::Done(Served::Minor(_))), "{step:?}");
    let (normal, random) = (bench.heap_pfn(0), bench.pfn(random, 0));
    assert_eq!([normal, random].map(|pfn| bench.engine.core.folio_referenced(pfn, false).young), [1, 0]);
    let is_young = |pfn: Pfn| {
        let folio = &bench.engine.core.mm.memory.folios[pfn];
        bench.engine.core.mm.memory.mm(MmId(folio.owner)).table.word(folio.index.into()).is_young()
    };
    assert_eq!([normal, random].map(is_young), [false, true]);
}
