//! Tracepoints as ftrace prints them: a line each, in the words of a kernel of 2010 or of Linux 6.12.
//!
//! ```text
//!             dd-1003    [001] d....   207.727380: mm_vmscan_lru_isolate: classzone=2 order=0 nr_requested=32 ...     modern
//!             dd-1003  [001]   207.727380: mm_vmscan_lru_isolate: isolate_mode=0 order=0 nr_requested=32 ...          2010
//! ```
//! The text is that of `trace_pipe`. `trace` has one more line at its top, with the number of lines that follow. A stream does not know it. Fields that
//! a kernel of 2010 has for what is not modelled are 0. Events that it does not have are left out. [machine 9.5; reclaim 8.1]

use clap::ValueEnum;
use pageout_engine::{
    BdiId, Contig, FileId, FilePage, GfpFlags, Kept, LruType, Nanos, PAGE_SIZE, Pfn, Shrinker,
    ThrottleReason, TracedInode, TracedPause, TracedWb, Tracepoint, WritebackReason,
};
use pageout_sim::TraceRecord;

use super::Task;
use super::text::{Hex, Left, Part, Right, Zeros, text};

/// Whose words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// Of the first kernels with these events, as the kernel's own trace-vmscan-postprocess of then reads them
    #[value(name = "2010")]
    Early,
    /// Of Linux 6.12
    Modern,
}

/// A text of lines.
pub(super) struct Ftrace {
    pub(super) dialect: Dialect,
    /// Times have nine digits behind the point.
    pub(super) nanoseconds: bool,
}

const HEADER_MODERN: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

const HEADER_2010: &str = "\
# tracer: nop
#
#           TASK-PID    CPU#    TIMESTAMP  FUNCTION
#              | |       |          |         |
";

impl Ftrace {
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.dialect {
            Dialect::Early => HEADER_2010.as_bytes(),
            Dialect::Modern => HEADER_MODERN.as_bytes(),
        });
    }

    /// Adds a line, if the dialect has that event.
    pub(super) fn add(&self, record: &TraceRecord, task: &Task, out: &mut Vec<u8>) {
        let Some(name) = name(&record.event, self.dialect) else { return };
        let (seconds, nanos) = (record.at.0 / Nanos::SECOND.0, record.at.0 % Nanos::SECOND.0);
        let Task { comm, pid } = task;
        let cpu = u64::from(record.cpu.0);
        let comm = Right(comm, 16);
        match self.dialect {
            Dialect::Early => text!(out, "" => comm, "-" => Left(*pid, 5), " [" => Zeros(cpu, 3); "] "),
            Dialect::Modern => text!(
                out, "" => comm, "-" => Left(*pid, 7), " [" => Zeros(cpu, 3), "] " => flags(&record.event); " "
            ),
        }
        let fraction = if self.nanoseconds { Zeros(nanos, 9) } else { Zeros(nanos / 1000, 6) };
        text!(out, "" => Right(seconds, 5), "." => fraction, ": " => name; ": ");
        match self.dialect {
            Dialect::Early => early(record, out),
            Dialect::Modern => modern(record, out),
        }
        out.push(b'\n');
    }
}

/// What a dialect calls it, if it has it.
fn name(event: &Tracepoint, dialect: Dialect) -> Option<&'static str> {
    match (dialect, event) {
        (Dialect::Early, Tracepoint::WriteFolio { .. }) => Some("mm_vmscan_writepage"),
        (Dialect::Early, Tracepoint::LruShrinkActive { .. } | Tracepoint::Throttled { .. }) => None,
        // Those of shrinkers came in 2011.
        (Dialect::Early, _) if !event.name().starts_with("mm_vmscan_") => None,
        _ => Some(event.name()),
    }
}

/// The state of the CPU: interrupts are off under the lock of a list.
fn flags(event: &Tracepoint) -> &'static str {
    match event {
        Tracepoint::LruIsolate { .. } | Tracepoint::DirtyFolio { .. } => "d....",
        _ => ".....",
    }
}

/// Fields as Linux 6.12 has them.
pub(super) fn modern(record: &TraceRecord, out: &mut Vec<u8>) {
    let nid = record.node.0;
    match record.event {
        Tracepoint::KswapdSleep => text!(out, "nid=" => nid),
        Tracepoint::KswapdWake { order } => text!(out, "nid=" => nid, " order=" => order),
        Tracepoint::WakeupKswapd { order, gfp, .. } => {
            text!(out, "nid=" => nid, " order=" => order, " gfp_flags=" => compound(gfp));
        }
        Tracepoint::DirectReclaimBegin { order, gfp, .. } => {
            text!(out, "order=" => order, " gfp_flags=" => compound(gfp));
        }
        Tracepoint::MemcgReclaimBegin { order, gfp, .. } => {
            text!(out, "order=" => order, " gfp_flags=" => plain(gfp));
        }
        Tracepoint::DirectReclaimEnd { nr_reclaimed } | Tracepoint::MemcgReclaimEnd { nr_reclaimed } => {
            text!(out, "nr_reclaimed=" => nr_reclaimed);
        }
        Tracepoint::LruIsolate {
            zone,
            order,
            nr_requested,
            nr_scanned,
            nr_skipped,
            nr_taken,
            kind,
            is_active,
            contig: _,
        } => {
            let (zone, activity) = (zone as u8, if is_active { "active" } else { "inactive" });
            let kind = match kind {
                LruType::Anon => "anon",
                LruType::File => "file",
            };
            text!(
                out, "classzone=" => zone, " order=" => order, " nr_requested=" => nr_requested,
                " nr_scanned=" => nr_scanned, " nr_skipped=" => nr_skipped, " nr_taken=" => nr_taken,
                " lru=" => activity, "_" => kind
            );
        }
        Tracepoint::LruShrinkInactive { kind, nr_scanned, nr_reclaimed, kept, priority } => {
            let Kept { nr_dirty, nr_writeback, nr_congested, nr_immediate, .. } = kept;
            let Kept { nr_activate: [anon, file], nr_ref_keep, nr_unmap_fail, .. } = kept;
            text!(
                out, "nid=" => nid, " nr_scanned=" => nr_scanned, " nr_reclaimed=" => nr_reclaimed,
                " nr_dirty=" => nr_dirty, " nr_writeback=" => nr_writeback,
                " nr_congested=" => nr_congested, " nr_immediate=" => nr_immediate,
                " nr_activate_anon=" => anon, " nr_activate_file=" => file, " nr_ref_keep=" => nr_ref_keep,
                " nr_unmap_fail=" => nr_unmap_fail, " priority=" => priority,
                " flags=" => reclaim_flags(kind)
            );
        }
        Tracepoint::LruShrinkActive {
            kind,
            nr_taken,
            nr_active,
            nr_deactivated,
            nr_referenced,
            priority,
        } => text!(
            out, "nid=" => nid, " nr_taken=" => nr_taken, " nr_active=" => nr_active,
            " nr_deactivated=" => nr_deactivated, " nr_referenced=" => nr_referenced,
            " priority=" => priority, " flags=" => reclaim_flags(kind)
        ),
        Tracepoint::WriteFolio { pfn, kind, is_sync } => {
            let (page, flags) = (page_pointer(pfn), write_flags(kind, is_sync));
            text!(out, "page=" => Hex(page, 16), " pfn=0x" => Hex(pfn.0.into(), 1), " flags=" => flags);
        }
        Tracepoint::Throttled { timeout, delayed, reason } => {
            let reason = match reason {
                ThrottleReason::Writeback => "WRITEBACK",
                ThrottleReason::Isolated => "ISOLATED",
                ThrottleReason::NoProgress => "NOPROGRESS",
                ThrottleReason::Congested => "CONGESTED",
            };
            let (timeout, delayed) = (micros(timeout), micros(delayed));
            text!(
                out, "nid=" => nid, " usec_timeout=" => timeout, " usect_delayed=" => delayed,
                " reason=VMSCAN_THROTTLE_" => reason
            );
        }
        Tracepoint::ShrinkSlabStart { shrinker, gfp, deferred, freeable, delta, total_scan, priority } => {
            text!(
                out, "" => ScanFunction(shrinker), ": nid: " => nid, " objects to shrink " => deferred,
                " gfp_flags " => compound(gfp), " cache items " => freeable, " delta " => delta,
                " total_scan " => total_scan, " priority " => priority
            )
        }
        Tracepoint::ShrinkSlabEnd { shrinker, deferred, left, total_scan, freed } => text!(
            out, "" => ScanFunction(shrinker), ": nid: " => nid, " unused scan count " => deferred,
            " new scan count " => left, " total_scan " => total_scan, " last shrinker return val " => freed
        ),
        ref writeback => of_writeback(writeback, out),
    }
}

/// What a shrinker is called by, and a number that stands for itself.
struct ScanFunction(Shrinker);

impl Part for ScanFunction {
    fn put(self, out: &mut Vec<u8>) {
        let (function, number) = match self.0 {
            Shrinker::Zspool => ("zs_shrinker_scan+0x0/0x20", 0),
            Shrinker::Zswap => ("zswap_shrinker_scan+0x0/0x150", 1),
        };
        text!(out, "" => function, " " => Hex(page_pointer(Pfn(number)), 16));
    }
}

/// Fields of writeback. Rates are KiB a second there, and times ms.
fn of_writeback(event: &Tracepoint, out: &mut Vec<u8>) {
    let kib = |pages: u64| pages * (PAGE_SIZE / 1024);
    match *event {
        Tracepoint::DirtyFolio { folio } | Tracepoint::WaitWriteback { folio } => {
            let FilePage { bdi, file, index } = folio;
            text!(out, "bdi " => Bdi(bdi), ": ino=" => ino(file), " index=" => index);
        }
        Tracepoint::GlobalDirtyState { dirty, writeback, bg_thresh, thresh, limit, dirtied, written } => {
            text!(
                out, "dirty=" => dirty, " writeback=" => writeback, " bg_thresh=" => bg_thresh,
                " thresh=" => thresh, " limit=" => limit, " dirtied=" => dirtied, " written=" => written
            )
        }
        Tracepoint::BalanceDirtyPages { wb, pause } => {
            let (dirty_rate, task_rate) = (kib(pause.dirty_ratelimit), kib(pause.task_ratelimit));
            let TracedPause { limit, setpoint, dirty, wb_setpoint, wb_dirty, dirtied, dirtied_pause, .. } =
                pause;
            let TracedPause { pause_ms, period_ms, think_ms, .. } = pause;
            text!(
                out, "bdi " => Bdi(wb.bdi), ": limit=" => limit, " setpoint=" => setpoint,
                " dirty=" => dirty, " bdi_setpoint=" => wb_setpoint, " bdi_dirty=" => wb_dirty,
                " dirty_ratelimit=" => dirty_rate, " task_ratelimit=" => task_rate, " dirtied=" => dirtied,
                " dirtied_pause=" => dirtied_pause, " paused=0 pause=" => pause_ms, " period=" => period_ms,
                " think=" => think_ms, " cgroup_ino=" => cgroup_ino(wb)
            );
        }
        Tracepoint::BdiDirtyRatelimit {
            wb,
            write_bw,
            awrite_bw,
            dirty_rate,
            dirty_ratelimit,
            task_ratelimit,
            balanced_dirty_ratelimit,
        } => text!(
            out, "bdi " => Bdi(wb.bdi), ": write_bw=" => kib(write_bw), " awrite_bw=" => kib(awrite_bw),
            " dirty_rate=" => kib(dirty_rate), " dirty_ratelimit=" => kib(dirty_ratelimit),
            " task_ratelimit=" => kib(task_ratelimit),
            " balanced_dirty_ratelimit=" => kib(balanced_dirty_ratelimit), " cgroup_ino=" => cgroup_ino(wb)
        ),
        Tracepoint::WakeBackground { wb } => {
            text!(out, "bdi " => Bdi(wb.bdi), ": cgroup_ino=" => cgroup_ino(wb));
        }
        Tracepoint::WritebackStart { wb, nr_pages, reason }
        | Tracepoint::WritebackWritten { wb, nr_pages, reason } => {
            let is = |of: WritebackReason| u8::from(reason == of);
            // A long's largest stands for no limit.
            let nr_pages = nr_pages.min(i64::MAX as u64);
            text!(
                out, "bdi " => Bdi(wb.bdi), ": sb_dev 0:0 nr_pages=" => nr_pages,
                " sync_mode=0 kupdate=" => is(WritebackReason::Periodic),
                " range_cyclic=1 background=" => is(WritebackReason::Background),
                " reason=" => reason.name(), " cgroup_ino=" => cgroup_ino(wb)
            );
        }
        Tracepoint::PagesWritten { pages } => text!(out, "" => pages),
        Tracepoint::QueueIo { wb, older, age, enqueue, reason } => text!(
            out, "bdi " => Bdi(wb.bdi), ": older=" => older, " age=" => micros(age) / 1000,
            " enqueue=" => enqueue, " reason=" => reason.name(), " cgroup_ino=" => cgroup_ino(wb)
        ),
        Tracepoint::SingleInodeStart { wb, inode } | Tracepoint::SingleInode { wb, inode } => {
            let state =
                if inode.is_dirty { "I_DIRTY_PAGES|I_SYNC|I_SYNC_QUEUED" } else { "I_SYNC|I_SYNC_QUEUED" };
            let TracedInode { file, dirtied_when, age, index, to_write, wrote, .. } = inode;
            text!(
                out, "bdi " => Bdi(wb.bdi), ": ino=" => ino(file), " state=" => state,
                " dirtied_when=" => dirtied_when, " age=" => age.0 / Nanos::SECOND.0, " index=" => index,
                " to_write=" => to_write, " wrote=" => wrote, " cgroup_ino=" => cgroup_ino(wb)
            );
        }
        Tracepoint::KswapdSleep
        | Tracepoint::KswapdWake { .. }
        | Tracepoint::WakeupKswapd { .. }
        | Tracepoint::DirectReclaimBegin { .. }
        | Tracepoint::DirectReclaimEnd { .. }
        | Tracepoint::MemcgReclaimBegin { .. }
        | Tracepoint::MemcgReclaimEnd { .. }
        | Tracepoint::LruIsolate { .. }
        | Tracepoint::LruShrinkInactive { .. }
        | Tracepoint::LruShrinkActive { .. }
        | Tracepoint::WriteFolio { .. }
        | Tracepoint::ShrinkSlabStart { .. }
        | Tracepoint::ShrinkSlabEnd { .. }
        | Tracepoint::Throttled { .. } => unreachable!("an event of reclaim"),
    }
}

/// A device by its number, as of virtio disks.
struct Bdi(BdiId);

impl Part for Bdi {
    fn put(self, out: &mut Vec<u8>) {
        text!(out, "254:" => u32::from(self.0.0) * 16);
    }
}

/// Inodes below are those of directories.
fn ino(file: FileId) -> u32 {
    file.0 + 12
}

/// The root group is 1.
fn cgroup_ino(wb: TracedWb) -> u32 {
    u32::from(wb.memcg.0) + 1
}

/// Fields as the first kernels with these events have them; of others, those of today.
fn early(record: &TraceRecord, out: &mut Vec<u8>) {
    let nid = record.node.0;
    match record.event {
        Tracepoint::WakeupKswapd { order, zone, .. } => {
            text!(out, "nid=" => nid, " zid=" => zone as u8, " order=" => order);
        }
        Tracepoint::DirectReclaimBegin { order, may_writepage, gfp }
        | Tracepoint::MemcgReclaimBegin { order, may_writepage, gfp } => {
            let may_writepage = u8::from(may_writepage);
            let gfp = plain(gfp);
            text!(out, "order=" => order, " may_writepage=" => may_writepage, " gfp_flags=" => gfp);
        }
        Tracepoint::LruIsolate { order, nr_requested, nr_scanned, nr_taken, is_active, contig, .. } => {
            // Two stands for the active lists, as the script that reads it has it, and three for both.
            let mode: u8 = match contig == Contig::default() {
                false => 3,
                true if is_active => 2,
                true => 0,
            };
            let Contig { taken, dirty, failed } = contig;
            text!(
                out, "isolate_mode=" => mode, " order=" => order, " nr_requested=" => nr_requested,
                " nr_scanned=" => nr_scanned, " nr_taken=" => nr_taken, " contig_taken=" => taken,
                " contig_dirty=" => dirty, " contig_failed=" => failed
            );
        }
        Tracepoint::LruShrinkInactive { kind, nr_scanned, nr_reclaimed, priority, .. } => text!(
            out, "nid=" => nid, " zid=2 nr_scanned=" => nr_scanned, " nr_reclaimed=" => nr_reclaimed,
            " priority=" => priority, " flags=" => reclaim_flags(kind)
        ),
        Tracepoint::WriteFolio { pfn, kind, is_sync } => {
            let (page, flags) = (page_pointer(pfn), write_flags(kind, is_sync));
            text!(out, "page=" => Hex(page, 16), " pfn=" => pfn.0, " flags=" => flags);
        }
        _ => modern(record, out),
    }
}

fn micros(time: Nanos) -> u64 {
    time.0 / 1000
}

/// Kernels print no pointer, but a number that stands for it.
fn page_pointer(pfn: Pfn) -> u64 {
    let mut hash = u64::from(pfn.0).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash >> 32
}

fn write_flags(kind: LruType, is_sync: bool) -> &'static str {
    match (kind, is_sync) {
        (LruType::Anon, true) => "RECLAIM_WB_ANON|RECLAIM_WB_SYNC",
        (LruType::File, true) => "RECLAIM_WB_FILE|RECLAIM_WB_SYNC",
        (kind, false) => reclaim_flags(kind),
    }
}

fn reclaim_flags(kind: LruType) -> &'static str {
    match kind {
        LruType::Anon => "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
        LruType::File => "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
    }
}

/// The flags of whoever charges a page.
fn plain(gfp: GfpFlags) -> &'static str {
    match gfp {
        GfpFlags::None => "none",
        GfpFlags::Kernel => "GFP_KERNEL",
        GfpFlags::NoFs => "GFP_NOFS",
        GfpFlags::NoWait => "GFP_NOWAIT",
        GfpFlags::Atomic => "GFP_ATOMIC",
        GfpFlags::HighUserMovable => "GFP_HIGHUSER_MOVABLE",
        GfpFlags::PageCache => "GFP_NOFS|__GFP_HIGHMEM|__GFP_HARDWALL|__GFP_MOVABLE",
        GfpFlags::Readahead => {
            "GFP_NOFS|__GFP_HIGHMEM|__GFP_NOWARN|__GFP_NORETRY|__GFP_HARDWALL|__GFP_MOVABLE"
        }
    }
}

/// The flags of the allocation itself, which is of a folio.
fn compound(gfp: GfpFlags) -> &'static str {
    match gfp {
        GfpFlags::Kernel => "GFP_KERNEL|__GFP_COMP",
        GfpFlags::HighUserMovable => "GFP_HIGHUSER_MOVABLE|__GFP_COMP",
        GfpFlags::PageCache => "GFP_NOFS|__GFP_HIGHMEM|__GFP_COMP|__GFP_HARDWALL|__GFP_MOVABLE",
        GfpFlags::Readahead => {
            "GFP_NOFS|__GFP_HIGHMEM|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP|__GFP_HARDWALL|__GFP_MOVABLE"
        }
        other => plain(other),
    }
}
