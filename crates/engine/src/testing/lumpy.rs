//! Promises of lumpy reclaim: which pages go for a block, what is waited for, and when it ends.

use super::compaction::{Bench, PAGES};
use crate::memory::folio::UseBits;
use crate::memory::table::Word;
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::page_alloc::slow_path::Allocated;
use crate::stat::Stat;
use crate::story::{Contig, Tracepoint};
use crate::units::PAGEBLOCK_ORDER;
use crate::*;
use pageout_rules::reclaim::CongestedQueue;

/// How an attempt at a block went.
#[derive(Default)]
struct Asked {
    got: Option<Pfn>,
    /// Waits for a device, and for single pages.
    waits: u32,
    waits_for_pages: u32,
    /// The maximum number of pages that it had isolated while it waited.
    isolated: i64,
    contig: Contig,
}

fn huge(gfp: Gfp) -> Request {
    Request { order: PAGEBLOCK_ORDER, ..Request::movable(gfp, NodeId(0)) }
}

/// A machine of this era that is full of a file's pages, except for a few frames.
fn full(policy: Policy) -> Bench {
    let mut bench = Bench::keeping(MigrateType::Movable, |pfn| u64::from(pfn.0) < PAGES - 256);
    bench.engine.core.set_policy(policy);
    // No mark was ever raised in 2010.
    bench.engine.core.mm.config.watermark_boost_factor = 0;
    bench.engine.core.mm.memory.zones.zone_mut(NodeId(0), ZoneType::Dma32).boost = 0;
    bench.engine.tell_tracepoints();
    bench
}

impl Bench {
    fn for_each_page(&mut self, mut act: impl FnMut(&mut core::Core, Pfn)) {
        for pfn in self.engine.used_folios() {
            act(&mut self.engine.core, pfn);
        }
    }

    fn dirty_all(&mut self) {
        self.engine.enter(self.task);
        self.for_each_page(|core, pfn| {
            core.folio_mark_dirty(pfn);
        });
        self.engine.check_invariants();
    }

    /// Asks to the end. A wait is as long as all writes that have begun.
    fn ask_for(&mut self, request: Request) -> Asked {
        let mut asked = Asked::default();
        self.engine.enter(self.task);
        let mm = self.engine.mm_of(self.task);
        let mut allocation = self.engine.core.allocation(request, MemcgId::ROOT, Some(mm));
        let mut writes = Vec::new();
        for step in 0.. {
            let allocated = self.engine.core.allocation_step(&mut allocation);
            if step % 8 == 0 && !matches!(allocated, Allocated::Page(_)) {
                self.engine.check_invariants();
            }
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            writes.extend(ops.into_iter().filter_map(|op| match op {
                Op::WriteFile { io, .. } => Some(io),
                _ => None,
            }));
            match allocated {
                Allocated::Page(pfn) => {
                    self.engine.core.mm.memory.folios[pfn].refs = 1;
                    asked.got = Some(pfn);
                    break;
                }
                Allocated::Nothing => break,
                Allocated::Again => {}
                Allocated::Wait(wait) => {
                    match wait {
                        Wait::Io(_) => asked.waits_for_pages += 1,
                        _ => asked.waits += 1,
                    }
                    asked.isolated = asked.isolated.max(self.engine.figures().vmstat(Stat::NrIsolatedFile));
                    for io in writes.drain(..) {
                        self.engine.io_done(io, CpuId(0), Ok(()));
                    }
                    self.engine.enter(self.task);
                }
                other => panic!("{other:?}"),
            }
        }
        let mut events = Vec::new();
        self.engine.take_story(&mut events);
        for event in events {
            if let Told::Tracepoint(Tracepoint::LruIsolate { contig, .. }) = event.told {
                asked.contig.taken += contig.taken;
                asked.contig.dirty += contig.dirty;
                asked.contig.failed += contig.failed;
            }
        }
        assert_eq!(self.engine.figures().vmstat(Stat::NrIsolatedFile), 0);
        asked
    }
}

const COMPACTED: [Stat; 2] = [Stat::CompactStall, Stat::CompactMigrateScanned];

fn stats<const N: usize>(bench: &Bench, stats: [Stat; N]) -> [i64; N] {
    stats.map(|stat| bench.engine.figures().vmstat(stat))
}

#[test]
fn a_block_is_made_of_all_that_is_around_the_oldest_page_used_or_not() {
    let mut bench = full(Policy::of("classic@2010"));
    bench.engine.enter(bench.task);
    bench.for_each_page(|core, pfn| core.mm.memory.add_use(pfn, UseBits::REFERENCED));
    let asked = bench.ask_for(huge(Gfp::KERNEL));
    assert!(asked.got.is_some());
    let [stolen, isolated] = stats(&bench, [Stat::PgstealDirect, Stat::PgscanDirect]);
    assert!((500..1100).contains(&stolen), "{stolen} pages: a block, and what else is in a batch");
    assert!(isolated >= stolen && asked.contig.taken > 400);
    assert_eq!(stats(&bench, COMPACTED), [0, 0], "nothing is moved");
    assert_eq!(asked.waits + asked.waits_for_pages, 0, "clean pages need no wait");
}

#[test]
fn active_pages_of_a_block_are_deactivated_and_go_with_it() {
    let mut bench = full(Policy::of("classic@2010"));
    bench.engine.enter(bench.task);
    // All but every eighth: the tags.
    bench.for_each_page(|core, pfn| {
        if !pfn.0.is_multiple_of(8) {
            core.lru_activate(pfn);
        }
    });
    bench.engine.core.lru_add_drain();
    let before = bench.engine.figures().vmstat(Stat::Pgdeactivate);
    assert!(bench.ask_for(huge(Gfp::KERNEL)).got.is_some());
    assert!(bench.engine.figures().vmstat(Stat::Pgdeactivate) - before > 400);
}

#[test]
fn the_walk_over_a_block_ends_at_the_first_page_that_can_not_be_had() {
    let mut bench = full(Policy::of("classic@2010"));
    bench.engine.enter(bench.task);
    // The hundredth of each pageblock is in someone's hands.
    bench.for_each_page(|core, pfn| {
        if pfn.0 % 512 == 100 {
            assert!(core.migrate_isolate(pfn));
            core.mm.memory.folios[pfn].refs += 1;
        }
    });
    let held = bench.engine.figures().vmstat(Stat::NrIsolatedFile);
    let request = huge(Gfp::KERNEL | Gfp::NORETRY);
    let mut sc_contig = Contig::default();
    let mm = bench.engine.mm_of(bench.task);
    let mut allocation = bench.engine.core.allocation(request, MemcgId::ROOT, Some(mm));
    while bench.engine.core.allocation_step(&mut allocation) == Allocated::Again {}
    let mut events = Vec::new();
    bench.engine.take_story(&mut events);
    for event in events {
        if let Told::Tracepoint(Tracepoint::LruIsolate { nr_taken, contig, .. }) = event.told {
            assert!(contig.failed <= 32 && nr_taken < 32 + 128, "{nr_taken} taken, {contig:?}");
            (sc_contig.taken, sc_contig.failed) =
                (sc_contig.taken + contig.taken, sc_contig.failed + contig.failed);
        }
    }
    assert!(sc_contig.failed > 0);
    assert_eq!(bench.engine.figures().vmstat(Stat::NrIsolatedFile), held);
    assert_eq!(bench.blocks(9), 0);
}

#[test]
fn dirty_pages_of_a_block_are_written_and_waited_for_one_by_one() {
    let mut bench = full(Policy::of("classic@2010"));
    bench.dirty_all();
    let asked = bench.ask_for(huge(Gfp::KERNEL));
    assert!(asked.got.is_some());
    let pageouts = bench.engine.figures().pageouts();
    assert_eq!(pageouts.direct, 113, "the first look begins writes until the device has much to do");
    assert!(pageouts.direct_sync > 300, "{pageouts:?}: the second begins the others");
    assert!(asked.waits > 0 && asked.isolated > 400, "they are held for a tenth of a second");
    assert!(asked.contig.dirty > 400);
    assert_eq!(stats(&bench, COMPACTED), [0, 0]);
}

#[test]
fn what_is_dirtied_again_is_written_while_the_task_waits_for_it() {
    let mut policy = Policy::of("classic@2010");
    // Or the first look would leave most of it to the second.
    policy.group.reclaim.congested_queue = CongestedQueue::Waits;
    let mut bench = full(policy);
    bench.dirty_all();
    // A device so slow that what the first look writes is still there at the second.
    bench.engine.enter(bench.task);
    let mm = bench.engine.mm_of(bench.task);
    let mut allocation = bench.engine.core.allocation(huge(Gfp::KERNEL), MemcgId::ROOT, Some(mm));
    let (mut writes, mut waits_for_pages, mut redirtied) = (Vec::new(), 0, false);
    loop {
        let allocated = bench.engine.core.allocation_step(&mut allocation);
        let mut ops = Vec::new();
        bench.engine.take_ops(&mut ops);
        for op in ops {
            if let Op::WriteFile { io, pfn, .. } = op {
                writes.push((io, pfn));
            }
        }
        match allocated {
            Allocated::Wait(Wait::Io(_)) => {
                waits_for_pages += 1;
                for (io, pfn) in writes.drain(..) {
                    if !std::mem::replace(&mut redirtied, true) {
                        bench.engine.core.folio_mark_dirty(pfn);
                    }
                    bench.engine.io_done(io, CpuId(0), Ok(()));
                }
                bench.engine.enter(bench.task);
            }
            Allocated::Wait(_) | Allocated::Again => {}
            Allocated::Page(pfn) => {
                bench.engine.core.mm.memory.folios[pfn].refs = 1;
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    bench.engine.check_invariants();
    assert!(waits_for_pages > 0);
    assert_eq!(bench.engine.figures().pageouts().direct_sync, 1, "the one that was dirty again");
}

#[test]
fn who_may_not_write_has_the_flushers_do_it_50_times_at_most_and_puts_all_back() {
    let mut bench = full(Policy::of("classic@2010-nodirect"));
    bench.dirty_all();
    let listed = bench.engine.figures().vmstat(Stat::NrInactiveFile);
    let asked = bench.ask_for(huge(Gfp::KERNEL | Gfp::NORETRY));
    assert_eq!(asked.got, None, "no flusher has come by");
    let pageouts = bench.engine.figures().pageouts();
    assert_eq!((pageouts.direct, pageouts.direct_sync), (0, 0));
    let one_batch = 2 + 50;
    assert!(asked.waits >= one_batch, "{} waits", asked.waits);
    assert_eq!(bench.engine.figures().vmstat(Stat::NrInactiveFile), listed);
    assert_eq!(bench.engine.figures().vmstat(Stat::NrDirty), listed);
}

#[test]
fn a_large_request_goes_on_while_it_frees_something_and_less_than_the_block_holds() {
    let mut bench = full(Policy::of("classic@2010"));
    let core = &bench.engine.core;
    let large = huge(Gfp::KERNEL | Gfp::RETRY_MAYFAIL);
    assert!(core.mm.is_block_worth_more(&large, 1, 511));
    assert!(!core.mm.is_block_worth_more(&large, 1, 512) && !core.mm.is_block_worth_more(&large, 0, 100));
    let small = Request { order: 2, ..large };
    assert!(core.mm.is_block_worth_more(&small, 1, 10_000) && !core.mm.is_block_worth_more(&small, 0, 0));
    // Every page is held, so that nothing can be freed.
    bench.for_each_page(|core, pfn| core.mm.memory.folios[pfn].refs += 1);
    assert_eq!(bench.ask_for(large).got, None);
    assert_eq!(bench.engine.figures().vmstat(Stat::OomKill), 0);
}

#[test]
fn kswapd_frees_blocks_and_ends_when_it_has_one() {
    let mut bench = full(Policy::of("classic@2010"));
    let threads = bench.engine.start_kernel_threads();
    let kswapd = threads.iter().find(|thread| thread.name == "kswapd0").unwrap().task;
    bench.engine.enter(bench.task);
    bench.engine.core.wake_kswapds(&huge(Gfp::NOWAIT));
    let mut woken = Vec::new();
    bench.engine.take_woken(&mut woken);
    assert_eq!(woken, [kswapd]);
    let wait = loop {
        let step = bench.engine.resume(kswapd);
        bench.carry_out();
        if let Step::Wait(wait) = step {
            bench.engine.check_invariants();
            break wait;
        }
    };
    assert!(matches!(wait, Wait::WokenOr(_, DelayReason::Nap)), "{wait:?}");
    assert!(bench.blocks(9) > 0);
    assert_eq!(stats(&bench, COMPACTED), [0, 0]);
    woken.clear();
    bench.engine.take_woken(&mut woken);
    assert_eq!(woken, [], "kcompactd is left alone");
}

/// Every other page of the machine is free: far more than eight times the high watermark, and not one block.
#[test]
fn single_pages_are_not_plenty_for_who_wants_a_block() {
    let mut bench = full(Policy::of("classic@2010"));
    let mut is_odd = false;
    bench.for_each_page(|core, pfn| {
        is_odd = !is_odd;
        if is_odd {
            core.lru_unlink(pfn);
            core.page_cache_remove(pfn, Word::EMPTY);
            core.free_folio(pfn);
        }
    });
    let zone = bench.engine.figures().zones().next().unwrap();
    assert!(zone.free > 8 * zone.high, "{zone:?}");
    let core = &bench.engine.core;
    let has_plenty = |order: u8| core.mm.has_plenty(NodeId(0), order, ZoneType::Movable);
    assert!(has_plenty(0) && !has_plenty(9));
}
