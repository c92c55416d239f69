//! The fields of each tracepoint, by the names that kernels print: those of Linux 6.12, and those of a kernel of 2010.
//!
//! A field is written in one of two forms, ` nr_taken=32` for text and `,"nr_taken":32` for JSON. Which one is known when this is compiled: a
//! trace has millions of fields, and what stands before each value is one constant. Fields that a kernel of 2010 has for what is not
//! modelled are 0. [machine 9.5; reclaim 8.1]

use pageout_engine::{
    BdiId, Contig, FileId, FilePage, GfpFlags, InodeMark, InodeState, Kept, ListedInode, LruType, Nanos,
    PAGE_SIZE, Pfn, Shrinker, ThrottleReason, TracedInode, TracedPause, TracedRegion, TracedWb, TracedWork,
    Tracepoint, WritebackReason, WritebackTracepoint,
};
use pageout_sim::TraceRecord;

use super::text::{Hex, Part, text};

/// How fields are written.
pub(super) trait Form {
    /// As members of a JSON object that has some before; otherwise as words of a line.
    const IS_JSON: bool;
}

/// Words of a line.
pub(super) struct Text;
/// Members of an object.
pub(super) struct Json;

impl Form for Text {
    const IS_JSON: bool = false;
}

impl Form for Json {
    const IS_JSON: bool = true;
}

/// What a field may hold.
trait Value: Part {
    /// JSON has it in quotes. Nothing needs escaping, because pageout defines these words.
    const IS_WORD: bool;
}

macro_rules! values {
    ($($value:ty => $is_word:literal),*) => {$(
        impl Value for $value {
            const IS_WORD: bool = $is_word;
        }
    )*};
}

values! {
    u8 => false, u16 => false, u32 => false, u64 => false, usize => false, i64 => false,
    &str => true, Hex => true, Prefixed => true, Dev => true
}

/// Adds fields by their names.
macro_rules! fields {
    ($form:ident, $out:expr, $($name:literal => $value:expr),*) => {{
        $(
            let before: &str =
                if $form::IS_JSON { concat!(",\"", $name, "\":") } else { concat!(" ", $name, "=") };
            $out.extend_from_slice(before.as_bytes());
            put_value::<$form, _>($value, $out);
        )*
    }};
}

#[inline]
fn put_value<F: Form, V: Value>(value: V, out: &mut Vec<u8>) {
    if F::IS_JSON && V::IS_WORD {
        out.push(b'"');
        value.put(out);
        out.push(b'"');
    } else {
        value.put(out);
    }
}

/// A field that lines have without a sign in between.
fn word<F: Form>(name: &str, value: impl Value, out: &mut Vec<u8>) {
    if F::IS_JSON {
        text!(out, ",\"" => name; "\":");
    } else {
        text!(out, " " => name; " ");
    }
    put_value::<F, _>(value, out);
}

/// The device that it is about.
fn device<F: Form>(bdi: BdiId, out: &mut Vec<u8>) {
    if F::IS_JSON {
        text!(out, ",\"bdi\":\"" => Bdi(bdi); "\"");
    } else {
        text!(out, " bdi " => Bdi(bdi); ":");
    }
}

/// Fields that are printed as a sentence.
fn sentence<F: Form>(out: &mut Vec<u8>, tell: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(if F::IS_JSON { b",\"text\":\"" } else { b" " });
    tell(out);
    if F::IS_JSON {
        out.push(b'"');
    }
}

/// Fields as Linux 6.12 has them.
pub(super) fn modern<F: Form>(record: &TraceRecord, out: &mut Vec<u8>) {
    let nid = record.node.0;
    match record.event {
        Tracepoint::KswapdSleep => fields!(F, out, "nid" => nid),
        Tracepoint::KswapdWake { order } => fields!(F, out, "nid" => nid, "order" => order),
        Tracepoint::WakeupKswapd { order, gfp, .. } => {
            fields!(F, out, "nid" => nid, "order" => order, "gfp_flags" => compound(gfp));
        }
        Tracepoint::DirectReclaimBegin { order, gfp, .. } => {
            fields!(F, out, "order" => order, "gfp_flags" => compound(gfp));
        }
        Tracepoint::MemcgReclaimBegin { order, gfp, .. }
        | Tracepoint::SoftLimitReclaimBegin { order, gfp, .. } => {
            fields!(F, out, "order" => order, "gfp_flags" => plain(gfp));
        }
        Tracepoint::NodeReclaimBegin { order, gfp } => {
            fields!(F, out, "nid" => nid, "order" => order, "gfp_flags" => compound(gfp));
        }
        Tracepoint::DirectReclaimEnd { nr_reclaimed }
        | Tracepoint::NodeReclaimEnd { nr_reclaimed }
        | Tracepoint::MemcgReclaimEnd { nr_reclaimed }
        | Tracepoint::SoftLimitReclaimEnd { nr_reclaimed } => {
            fields!(F, out, "nr_reclaimed" => nr_reclaimed);
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
            is_of_group: _,
            contig: _,
        } => {
            let lru = match (kind, is_active) {
                (LruType::Anon, false) => "inactive_anon",
                (LruType::Anon, true) => "active_anon",
                (LruType::File, false) => "inactive_file",
                (LruType::File, true) => "active_file",
            };
            fields!(
                F, out, "classzone" => zone as u8, "order" => order, "nr_requested" => nr_requested,
                "nr_scanned" => nr_scanned, "nr_skipped" => nr_skipped, "nr_taken" => nr_taken, "lru" => lru
            );
        }
        Tracepoint::LruShrinkInactive { kind, nr_scanned, nr_reclaimed, kept, priority, .. } => {
            let Kept { nr_dirty, nr_writeback, nr_congested, nr_immediate, .. } = kept;
            let Kept { nr_activate: [anon, file], nr_ref_keep, nr_unmap_fail, .. } = kept;
            fields!(
                F, out, "nid" => nid, "nr_scanned" => nr_scanned, "nr_reclaimed" => nr_reclaimed,
                "nr_dirty" => nr_dirty, "nr_writeback" => nr_writeback,
                "nr_congested" => nr_congested, "nr_immediate" => nr_immediate,
                "nr_activate_anon" => anon, "nr_activate_file" => file, "nr_ref_keep" => nr_ref_keep,
                "nr_unmap_fail" => nr_unmap_fail, "priority" => priority,
                "flags" => reclaim_flags(kind)
            );
        }
        Tracepoint::LruShrinkActive {
            kind,
            nr_taken,
            nr_active,
            nr_deactivated,
            nr_referenced,
            priority,
        } => fields!(
            F, out, "nid" => nid, "nr_taken" => nr_taken, "nr_active" => nr_active,
            "nr_deactivated" => nr_deactivated, "nr_referenced" => nr_referenced,
            "priority" => priority, "flags" => reclaim_flags(kind)
        ),
        Tracepoint::WriteFolio { pfn, kind, is_sync } => {
            let (page, flags) = (page_pointer(pfn), write_flags(kind, is_sync));
            fields!(F, out, "page" => Hex(page, 16), "pfn" => Prefixed(pfn), "flags" => flags);
        }
        Tracepoint::Throttled { timeout, delayed, reason } => {
            let reason = match reason {
                ThrottleReason::Writeback => "VMSCAN_THROTTLE_WRITEBACK",
                ThrottleReason::Isolated => "VMSCAN_THROTTLE_ISOLATED",
                ThrottleReason::NoProgress => "VMSCAN_THROTTLE_NOPROGRESS",
                ThrottleReason::Congested => "VMSCAN_THROTTLE_CONGESTED",
            };
            let (timeout, delayed) = (micros(timeout), micros(delayed));
            fields!(
                F, out, "nid" => nid, "usec_timeout" => timeout, "usect_delayed" => delayed, "reason" => reason
            );
        }
        Tracepoint::ShrinkSlabStart { shrinker, gfp, deferred, freeable, delta, total_scan, priority } => {
            sentence::<F>(out, |out| {
                text!(
                    out, "" => ScanFunction(shrinker), ": nid: " => nid, " objects to shrink " => deferred,
                    " gfp_flags " => compound(gfp), " cache items " => freeable, " delta " => delta,
                    " total_scan " => total_scan, " priority " => priority
                );
            });
        }
        Tracepoint::ShrinkSlabEnd { shrinker, deferred, left, total_scan, freed } => {
            sentence::<F>(out, |out| {
                text!(
                    out, "" => ScanFunction(shrinker), ": nid: " => nid, " unused scan count " => deferred,
                    " new scan count " => left, " total_scan " => total_scan, " last shrinker return val " => freed
                );
            });
        }
        Tracepoint::DamonAggregated { region } => {
            fields!(F, out, "target_id" => region.target, "nr_regions" => region.nr_regions);
            put_region::<F>(&region, out);
        }
        Tracepoint::DamosBeforeApply { scheme, region } => {
            fields!(
                F, out, "ctx_idx" => 0u8, "scheme_idx" => scheme, "target_idx" => region.target,
                "nr_regions" => region.nr_regions
            );
            put_region::<F>(&region, out);
        }
        Tracepoint::Writeback(event) => of_writeback::<F>(event, out),
    }
}

/// Addresses, accesses and age of a region, which lines have without names.
fn put_region<F: Form>(region: &TracedRegion, out: &mut Vec<u8>) {
    let TracedRegion { start, end, nr_accesses, age, .. } = *region;
    if F::IS_JSON {
        fields!(F, out, "start" => start, "end" => end, "nr_accesses" => nr_accesses, "age" => age);
    } else {
        text!(out, " " => start, "-" => end, ": " => nr_accesses, " " => age);
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
fn of_writeback<F: Form>(event: WritebackTracepoint, out: &mut Vec<u8>) {
    let kib = |pages: u64| pages * (PAGE_SIZE / 1024);
    match event {
        WritebackTracepoint::DirtyFolio { folio } | WritebackTracepoint::WaitWriteback { folio } => {
            let FilePage { bdi, file, index } = folio;
            device::<F>(bdi, out);
            fields!(F, out, "ino" => ino(file), "index" => index);
        }
        WritebackTracepoint::GlobalDirtyState {
            dirty,
            writeback,
            bg_thresh,
            thresh,
            limit,
            dirtied,
            written,
        } => {
            fields!(
                F, out, "dirty" => dirty, "writeback" => writeback, "bg_thresh" => bg_thresh,
                "thresh" => thresh, "limit" => limit, "dirtied" => dirtied, "written" => written
            )
        }
        WritebackTracepoint::BalanceDirtyPages { wb, pause } => {
            let (dirty_rate, task_rate) = (kib(pause.dirty_ratelimit), kib(pause.task_ratelimit));
            let TracedPause { limit, setpoint, dirty, wb_setpoint, wb_dirty, dirtied, dirtied_pause, .. } =
                pause;
            let TracedPause { pause_ms, period_ms, think_ms, .. } = pause;
            device::<F>(wb.bdi, out);
            fields!(F, out, "limit" => limit, "setpoint" => setpoint,
                "dirty" => dirty, "bdi_setpoint" => wb_setpoint, "bdi_dirty" => wb_dirty,
                "dirty_ratelimit" => dirty_rate, "task_ratelimit" => task_rate, "dirtied" => dirtied,
                "dirtied_pause" => dirtied_pause, "paused" => 0u8, "pause" => pause_ms, "period" => period_ms,
                "think" => think_ms, "cgroup_ino" => cgroup_ino(wb)
            );
        }
        WritebackTracepoint::BdiDirtyRatelimit {
            wb,
            write_bw,
            awrite_bw,
            dirty_rate,
            dirty_ratelimit,
            task_ratelimit,
            balanced_dirty_ratelimit,
        } => {
            device::<F>(wb.bdi, out);
            fields!(F, out, "write_bw" => kib(write_bw), "awrite_bw" => kib(awrite_bw),
                "dirty_rate" => kib(dirty_rate), "dirty_ratelimit" => kib(dirty_ratelimit),
                "task_ratelimit" => kib(task_ratelimit),
                "balanced_dirty_ratelimit" => kib(balanced_dirty_ratelimit), "cgroup_ino" => cgroup_ino(wb)
            );
        }
        WritebackTracepoint::WakeBackground { wb } => {
            device::<F>(wb.bdi, out);
            fields!(F, out, "cgroup_ino" => cgroup_ino(wb));
        }
        WritebackTracepoint::WritebackQueue { work }
        | WritebackTracepoint::WritebackExec { work }
        | WritebackTracepoint::WritebackStart { work }
        | WritebackTracepoint::WritebackWritten { work } => {
            let TracedWork { wb, nr_pages, reason, is_sync } = work;
            let is = |of: WritebackReason| u8::from(reason == of);
            device::<F>(wb.bdi, out);
            word::<F>("sb_dev", "0:0", out);
            fields!(F, out, "nr_pages" => nr_pages,
                "sync_mode" => u8::from(is_sync), "kupdate" => is(WritebackReason::Periodic),
                "range_cyclic" => u8::from(!is_sync), "background" => is(WritebackReason::Background),
                "reason" => reason.name(), "cgroup_ino" => cgroup_ino(wb)
            );
        }
        WritebackTracepoint::PagesWritten { pages } => {
            // Its only field has no name there.
            out.extend_from_slice(if F::IS_JSON { b",\"pages\":" } else { b" " });
            pages.put(out);
        }
        WritebackTracepoint::QueueIo { wb, older, age, enqueue, reason } => {
            device::<F>(wb.bdi, out);
            fields!(F, out, "older" => older, "age" => micros(age) / 1000,
                "enqueue" => enqueue, "reason" => reason.name(), "cgroup_ino" => cgroup_ino(wb)
            );
        }
        WritebackTracepoint::SingleInodeStart { wb, inode }
        | WritebackTracepoint::SingleInode { wb, inode } => {
            let TracedInode { file, state, dirtied_when, age, index, to_write, wrote } = inode;
            device::<F>(wb.bdi, out);
            fields!(F, out, "ino" => ino(file), "state" => state_flags(state),
                "dirtied_when" => dirtied_when, "age" => age.0 / Nanos::SECOND.0, "index" => index,
                "to_write" => to_write, "wrote" => wrote, "cgroup_ino" => cgroup_ino(wb)
            );
        }
        WritebackTracepoint::MarkInodeDirty { inode }
        | WritebackTracepoint::DirtyInodeStart { inode }
        | WritebackTracepoint::DirtyInode { inode } => {
            let InodeMark { bdi, file, state, flags } = inode;
            device::<F>(bdi, out);
            fields!(F, out, "ino" => ino(file), "state" => state_flags(state), "flags" => state_flags(flags));
        }
        WritebackTracepoint::DirtyInodeEnqueue { inode }
        | WritebackTracepoint::MarkInodeWriteback { inode }
        | WritebackTracepoint::ClearInodeWriteback { inode } => {
            let ListedInode { bdi, file, state, dirtied_when } = inode;
            word::<F>("dev", Dev(bdi), out);
            word::<F>("ino", ino(file), out);
            word::<F>("dirtied", dirtied_when, out);
            word::<F>("state", state_flags(state), out);
            word::<F>("mode", REGULAR_FILE, out);
        }
        WritebackTracepoint::WriteInodeStart { wb, file, is_sync }
        | WritebackTracepoint::WriteInode { wb, file, is_sync } => {
            device::<F>(wb.bdi, out);
            let sync_mode = u8::from(is_sync);
            fields!(F, out, "ino" => ino(file), "sync_mode" => sync_mode, "cgroup_ino" => cgroup_ino(wb));
        }
    }
}

/// A page's number as C writes hexadecimal numbers.
struct Prefixed(Pfn);

impl Part for Prefixed {
    fn put(self, out: &mut Vec<u8>) {
        text!(out, "0x" => Hex(self.0.0.into(), 1));
    }
}

/// A device by its number, as of virtio disks.
struct Bdi(BdiId);

impl Part for Bdi {
    fn put(self, out: &mut Vec<u8>) {
        text!(out, "254:" => u32::from(self.0.0) * 16);
    }
}

/// A device by the parts of its number.
struct Dev(BdiId);

impl Part for Dev {
    fn put(self, out: &mut Vec<u8>) {
        text!(out, "254," => u32::from(self.0.0) * 16);
    }
}

/// Type and rights of a file that its owner may write and all may read.
const REGULAR_FILE: &str = "0100644";

/// What of a file is to be written, and that it is.
fn state_flags(state: InodeState) -> &'static str {
    let InodeState { times, pages, is_written } = state;
    match (times, pages, is_written) {
        (false, false, false) => "",
        (true, false, false) => "I_DIRTY_SYNC",
        (false, true, false) => "I_DIRTY_PAGES",
        (true, true, false) => "I_DIRTY_SYNC|I_DIRTY_PAGES",
        (false, false, true) => "I_SYNC|I_SYNC_QUEUED",
        (true, false, true) => "I_DIRTY_SYNC|I_SYNC|I_SYNC_QUEUED",
        (false, true, true) => "I_DIRTY_PAGES|I_SYNC|I_SYNC_QUEUED",
        (true, true, true) => "I_DIRTY_SYNC|I_DIRTY_PAGES|I_SYNC|I_SYNC_QUEUED",
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
pub(super) fn early(record: &TraceRecord, out: &mut Vec<u8>) {
    let nid = record.node.0;
    match record.event {
        Tracepoint::WakeupKswapd { order, zone, .. } => {
            fields!(Text, out, "nid" => nid, "zid" => zone as u8, "order" => order);
        }
        Tracepoint::DirectReclaimBegin { order, may_writepage, gfp }
        | Tracepoint::MemcgReclaimBegin { order, may_writepage, gfp }
        | Tracepoint::SoftLimitReclaimBegin { order, may_writepage, gfp } => {
            let may_writepage = u8::from(may_writepage);
            let gfp = plain(gfp);
            fields!(Text, out, "order" => order, "may_writepage" => may_writepage, "gfp_flags" => gfp);
        }
        Tracepoint::LruIsolate { order, nr_requested, nr_scanned, nr_taken, is_active, contig, .. } => {
            // Two stands for the active lists, as the script that reads it has it, and three for both.
            let mode: u8 = match contig == Contig::default() {
                false => 3,
                true if is_active => 2,
                true => 0,
            };
            let Contig { taken, dirty, failed } = contig;
            fields!(
                Text, out, "isolate_mode" => mode, "order" => order, "nr_requested" => nr_requested,
                "nr_scanned" => nr_scanned, "nr_taken" => nr_taken, "contig_taken" => taken,
                "contig_dirty" => dirty, "contig_failed" => failed
            );
        }
        Tracepoint::LruShrinkInactive { zone, kind, nr_scanned, nr_reclaimed, priority, .. } => fields!(
            Text, out, "nid" => nid, "zid" => zone as u8, "nr_scanned" => nr_scanned, "nr_reclaimed" => nr_reclaimed,
            "priority" => priority, "flags" => reclaim_flags(kind)
        ),
        Tracepoint::WriteFolio { pfn, kind, is_sync } => {
            let (page, flags) = (page_pointer(pfn), write_flags(kind, is_sync));
            fields!(Text, out, "page" => Hex(page, 16), "pfn" => pfn.0, "flags" => flags);
        }
        _ => modern::<Text>(record, out),
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

/// The allocation flags of a task that charges a page.
fn plain(gfp: GfpFlags) -> &'static str {
    match gfp {
        GfpFlags::None => "none",
        GfpFlags::Kernel => "GFP_KERNEL",
        GfpFlags::NoFs => "GFP_NOFS",
        GfpFlags::NoWait => "GFP_NOWAIT",
        GfpFlags::HugeDeferred => "GFP_TRANSHUGE_LIGHT|__GFP_KSWAPD_RECLAIM",
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
