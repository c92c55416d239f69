//! Tracepoints as ftrace prints them: a line each, in the words of a kernel of 2010 or of Linux 6.12.
//!
//! ```text
//!             dd-1003    [001] d....   207.727380: mm_vmscan_lru_isolate: classzone=2 order=0 nr_requested=32 ...     modern
//!             dd-1003  [001]   207.727380: mm_vmscan_lru_isolate: isolate_mode=0 order=0 nr_requested=32 ...          2010
//! ```
//! The text is that of `trace_pipe`. `trace` has one more line at its top, with the number of lines that follow. A stream does not know it. Fields that
//! a kernel of 2010 has for what is not modelled are 0. Events that it does not have are left out. [machine 9.5; reclaim 8.1]

use std::io::Write;

use clap::ValueEnum;
use pageout_engine::{GfpFlags, Kept, LruType, Nanos, Pfn, ThrottleCause, Tracepoint};
use pageout_sim::TraceRecord;

use super::Task;

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
        let cpu = record.cpu.0;
        match self.dialect {
            Dialect::Early => put(out, format_args!("{comm:>16}-{pid:<5} [{cpu:03}] ")),
            Dialect::Modern => {
                let flags = flags(&record.event);
                put(out, format_args!("{comm:>16}-{pid:<7} [{cpu:03}] {flags} "));
            }
        }
        if self.nanoseconds {
            put(out, format_args!("{seconds:>5}.{nanos:09}: {name}: "));
        } else {
            put(out, format_args!("{seconds:>5}.{:06}: {name}: ", nanos / 1000));
        }
        match self.dialect {
            Dialect::Early => early(record, out),
            Dialect::Modern => modern(record, out),
        }
        out.push(b'\n');
    }
}

/// Adds formatted text; memory takes it all.
fn put(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    _ = out.write_fmt(text);
}

/// What a dialect calls it, if it has it.
fn name(event: &Tracepoint, dialect: Dialect) -> Option<&'static str> {
    match (dialect, event) {
        (Dialect::Early, Tracepoint::WriteFolio { .. }) => Some("mm_vmscan_writepage"),
        (Dialect::Early, Tracepoint::LruShrinkActive { .. } | Tracepoint::Throttled { .. }) => None,
        _ => Some(event.name()),
    }
}

/// The state of the CPU: interrupts are off under the lock of a list.
fn flags(event: &Tracepoint) -> &'static str {
    match event {
        Tracepoint::LruIsolate { .. } => "d....",
        _ => ".....",
    }
}

/// Fields as Linux 6.12 has them.
pub(super) fn modern(record: &TraceRecord, out: &mut Vec<u8>) {
    let nid = record.node.0;
    match record.event {
        Tracepoint::KswapdSleep => put(out, format_args!("nid={nid}")),
        Tracepoint::KswapdWake { order } => put(out, format_args!("nid={nid} order={order}")),
        Tracepoint::WakeupKswapd { order, gfp, .. } => {
            put(out, format_args!("nid={nid} order={order} gfp_flags={}", compound(gfp)));
        }
        Tracepoint::DirectReclaimBegin { order, gfp, .. } => {
            put(out, format_args!("order={order} gfp_flags={}", compound(gfp)));
        }
        Tracepoint::MemcgReclaimBegin { order, gfp, .. } => {
            put(out, format_args!("order={order} gfp_flags={}", plain(gfp)));
        }
        Tracepoint::DirectReclaimEnd { nr_reclaimed } | Tracepoint::MemcgReclaimEnd { nr_reclaimed } => {
            put(out, format_args!("nr_reclaimed={nr_reclaimed}"));
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
        } => {
            let (zone, activity) = (zone as u8, if is_active { "active" } else { "inactive" });
            let kind = match kind {
                LruType::Anon => "anon",
                LruType::File => "file",
            };
            put(
                out,
                format_args!(
                    "classzone={zone} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} \
                     nr_skipped={nr_skipped} nr_taken={nr_taken} lru={activity}_{kind}"
                ),
            );
        }
        Tracepoint::LruShrinkInactive { kind, nr_scanned, nr_reclaimed, kept, priority } => {
            let Kept { nr_dirty, nr_writeback, nr_congested, nr_immediate, .. } = kept;
            let Kept { nr_activate: [anon, file], nr_ref_keep, nr_unmap_fail, .. } = kept;
            put(
                out,
                format_args!(
                    "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} \
                     nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} \
                     nr_activate_anon={anon} nr_activate_file={file} nr_ref_keep={nr_ref_keep} \
                     nr_unmap_fail={nr_unmap_fail} priority={priority} flags={}",
                    reclaim_flags(kind)
                ),
            );
        }
        Tracepoint::LruShrinkActive {
            kind,
            nr_taken,
            nr_active,
            nr_deactivated,
            nr_referenced,
            priority,
        } => put(
            out,
            format_args!(
                "nid={nid} nr_taken={nr_taken} nr_active={nr_active} nr_deactivated={nr_deactivated} \
                 nr_referenced={nr_referenced} priority={priority} flags={}",
                reclaim_flags(kind)
            ),
        ),
        Tracepoint::WriteFolio { pfn, kind } => {
            let (page, flags) = (page_pointer(pfn), reclaim_flags(kind));
            put(out, format_args!("page={page:016x} pfn={:#x} flags={flags}", pfn.0));
        }
        Tracepoint::Throttled { timeout, delayed, reason } => {
            let reason = match reason {
                ThrottleCause::Writeback => "WRITEBACK",
                ThrottleCause::Isolated => "ISOLATED",
                ThrottleCause::NoProgress => "NOPROGRESS",
                ThrottleCause::Congested => "CONGESTED",
            };
            let (timeout, delayed) = (micros(timeout), micros(delayed));
            put(
                out,
                format_args!(
                    "nid={nid} usec_timeout={timeout} usect_delayed={delayed} reason=VMSCAN_THROTTLE_{reason}"
                ),
            );
        }
    }
}

/// Fields as the first kernels with these events have them; of others, those of today.
fn early(record: &TraceRecord, out: &mut Vec<u8>) {
    let nid = record.node.0;
    match record.event {
        Tracepoint::WakeupKswapd { order, zone, .. } => {
            put(out, format_args!("nid={nid} zid={} order={order}", zone as u8));
        }
        Tracepoint::DirectReclaimBegin { order, may_writepage, gfp }
        | Tracepoint::MemcgReclaimBegin { order, may_writepage, gfp } => {
            let may_writepage = u8::from(may_writepage);
            let gfp = plain(gfp);
            put(out, format_args!("order={order} may_writepage={may_writepage} gfp_flags={gfp}"));
        }
        Tracepoint::LruIsolate { order, nr_requested, nr_scanned, nr_taken, is_active, .. } => {
            // Two stands for the active lists, as the script that reads it has it.
            let mode = if is_active { 2 } else { 0 };
            put(
                out,
                format_args!(
                    "isolate_mode={mode} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} \
                     nr_taken={nr_taken} contig_taken=0 contig_dirty=0 contig_failed=0"
                ),
            );
        }
        Tracepoint::LruShrinkInactive { kind, nr_scanned, nr_reclaimed, priority, .. } => put(
            out,
            format_args!(
                "nid={nid} zid=2 nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} priority={priority} \
                 flags={}",
                reclaim_flags(kind)
            ),
        ),
        Tracepoint::WriteFolio { pfn, kind } => {
            let (page, flags) = (page_pointer(pfn), reclaim_flags(kind));
            put(out, format_args!("page={page:016x} pfn={} flags={flags}", pfn.0));
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
