//! Promises of how reclaimers stood back for devices in 2010: by what is asked of them, and by what is being written.

use super::compaction::{Bench, PAGES};
use crate::memory::table::SwapEntry;
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::page_alloc::slow_path::Allocated;
use crate::stat::Stat;
use crate::swap::plug::Plug;
use crate::*;
use pageout_rules::reclaim::Writepage;

const NODE: NodeId = NodeId(0);

/// A machine of 2010 that is full of dirty pages of a file, each of which would be a request of its own.
fn full_of_dirty_pages() -> Bench {
    let mut bench = Bench::keeping(MigrateType::Movable, |pfn| u64::from(pfn.0) < PAGES - 256);
    bench.engine.core.set_policy(Policy::of("classic@2010"));
    bench.engine.core.mm.config.watermark_boost_factor = 0;
    bench.engine.enter(bench.task);
    for pfn in bench.engine.used_folios() {
        bench.engine.core.folio_mark_dirty(pfn);
    }
    bench
}

/// Asks for single pages until a request gets none. The device is congested all the time, or never, and has written what it was asked
/// for when a wait is over.
fn use_up(bench: &mut Bench, gfp: Gfp, is_congested: bool) {
    let request = Request::movable(gfp | Gfp::NORETRY, NODE);
    let mm = bench.engine.mm_of(bench.task);
    loop {
        bench.engine.enter(bench.task);
        bench.engine.core.io.is_congested = is_congested;
        let mut allocation = bench.engine.core.allocation(request, MemcgId::ROOT, Some(mm));
        loop {
            match bench.engine.core.allocation_step(&mut allocation) {
                Allocated::Page(pfn) => {
                    bench.engine.core.mm.memory.folios[pfn].refs = 1;
                    break;
                }
                Allocated::Nothing => return,
                Allocated::Wait(_) => {
                    let mut ops = Vec::new();
                    bench.engine.take_ops(&mut ops);
                    for op in ops {
                        if let Op::WriteFile { io, .. } = op {
                            bench.engine.io_done(io, CpuId(0), Ok(()));
                        }
                    }
                    bench.engine.enter(bench.task);
                    bench.engine.core.io.is_congested = is_congested;
                }
                _ => {}
            }
        }
    }
}

#[test]
fn neighbours_in_swap_are_one_request_and_others_fill_the_queue() {
    let mut bench = full_of_dirty_pages();
    let core = &mut bench.engine.core;
    let mut plug = Plug::default();
    let mut write = |core: &mut core::Core, slot: u32| {
        core.start_write(Pfn(0), SwapEntry { swap: SwapId(0), slot }, &mut plug);
        core.unplug(&mut plug);
    };
    let mut neighbours = Plug::default();
    for slot in 0..500 {
        core.start_write(Pfn(0), SwapEntry { swap: SwapId(0), slot }, &mut neighbours);
    }
    core.unplug(&mut neighbours);
    (1..112).for_each(|at| write(core, 1000 + 2 * at));
    assert!(!core.io.is_congested, "112 requests");
    write(core, 5000);
    assert!(core.io.is_congested, "113 requests");
}

#[test]
fn a_task_keeps_dirty_pages_of_a_congested_device_unless_it_is_writing_itself() {
    let mut bench = full_of_dirty_pages();
    use_up(&mut bench, Gfp::KERNEL, true);
    assert_eq!(bench.engine.figures().pageouts().direct, 0);

    let mut writer = full_of_dirty_pages();
    use_up(&mut writer, Gfp::KERNEL | Gfp::WRITE, true);
    assert!(writer.engine.figures().pageouts().direct > 0);

    let mut free = full_of_dirty_pages();
    use_up(&mut free, Gfp::KERNEL, false);
    assert!(free.engine.figures().pageouts().direct > 0, "a device that has time is written to");
}

#[test]
fn a_file_system_that_marks_pages_dirty_again_lets_reclaim_count_writes_that_never_begin() {
    let mut bench = full_of_dirty_pages();
    bench.engine.core.mm.memcgs[MemcgId::ROOT].policy.reclaim.writepage = Writepage::Redirties;
    let dirty = bench.engine.figures().vmstat(Stat::NrDirty);
    use_up(&mut bench, Gfp::KERNEL, false);
    let pageouts = bench.engine.figures().pageouts();
    assert!(pageouts.direct > 0);
    assert_eq!(pageouts.redirtied, pageouts.direct);
    assert_eq!(bench.engine.figures().vmstat(Stat::NrVmscanWrite), pageouts.direct as i64);
    assert_eq!(bench.engine.figures().pages_written_by(WritebackReason::Pageout), 0);
    assert_eq!(
        (bench.engine.figures().vmstat(Stat::NrDirty), bench.engine.figures().vmstat(Stat::NrWriteback)),
        (dirty, 0)
    );
    bench.engine.check_invariants();
}

#[test]
fn kswapd_writes_to_a_congested_device() {
    let mut bench = full_of_dirty_pages();
    let threads = bench.engine.start_kernel_threads();
    let kswapd = threads.iter().find(|thread| thread.name == "kswapd0").unwrap().task;
    // No task reclaims for itself.
    use_up(&mut bench, Gfp::NOWAIT, true);
    let mut woken = Vec::new();
    bench.engine.take_woken(&mut woken);
    assert!(woken.contains(&kswapd));
    while bench.engine.resume(kswapd) == Step::Again {}
    assert!(bench.engine.figures().pageouts().kswapd > 0);
}

/// Runs `steps` steps of a call of reclaim, with this many pages under writeback all the time; returns whether
/// it has ended.
fn has_ended(bench: &mut Bench, gfp: Gfp, writeback: i64) -> bool {
    let request = Request::movable(gfp, NODE);
    let mut direct = reclaim::DirectReclaim::AtGate;
    bench.engine.core.mm.count_node(NODE, Stat::NrWriteback, writeback);
    bench.engine.enter(bench.task);
    let has_ended = (0..10_000).any(|_| {
        matches!(bench.engine.core.direct_reclaim_step(&request, &mut direct), reclaim::ReclaimStep::Done(_))
    });
    bench.engine.core.mm.count_node(NODE, Stat::NrWriteback, -writeback);
    has_ended
}

/// The threshold is a fifth of what could be dirty, and a tenth more is borne.
#[test]
fn a_pass_waits_while_more_is_being_written_than_may_be_dirty() {
    let mut bench = full_of_dirty_pages();
    for pfn in bench.engine.used_folios() {
        bench.engine.core.clear_dirty(pfn);
    }
    let threshold = bench.engine.core.mm.dirty_thresholds()[0] as i64;
    assert!(has_ended(&mut bench, Gfp::KERNEL, threshold + threshold / 20));
    assert!(!has_ended(&mut bench, Gfp::KERNEL, threshold + threshold / 5));
    assert!(
        has_ended(&mut bench, Gfp::NOFS, threshold + threshold / 5),
        "for whom writers may wait waits once"
    );
}
