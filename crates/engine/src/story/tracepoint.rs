//! Tracepoints: the kernel's trace events of reclaim, under their names.
//!
//! A tracepoint is sent by one `self.trace(node, |core| Tracepoint::...)` at the same place as in the kernel. Without a listener that is one test of
//! a null pointer, and its numbers are not even put together. The values are the kernel's, the text is not: the lab writes it in the words of one
//! kernel or another (`crates/lab/src/tracing/`). [reclaim 8.1; machine 9.5]
//!
//! A new one is a row of `tracepoints!` here, and its fields in `tracing/fields.rs` there, which does not compile without them.

use crate::memory::folio::HUGE_PAGE_ORDER;
use crate::page_alloc::request::{Gfp, Request};
use crate::reclaim::{Reclaimer, ScanControl, ThrottleReason, Why};
use crate::units::ZoneType;
use crate::units::{BdiId, FileId, LruType, MemcgId, Nanos, Pfn};
use crate::writeback::WritebackReason;

macro_rules! tracepoints {
    (
        $(#[$of:meta])* $points:ident $(, $(#[$rest_doc:meta])* $rest:ident($others:ident))?:
        $($(#[$doc:meta])* $variant:ident = $name:literal $({ $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })?,)*
    ) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum $points {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $type),* })?,)*
            $($(#[$rest_doc])* $rest($others),)?
        }

        impl $points {
            /// The names of all, as Linux 6.12 has them.
            pub fn names() -> impl Iterator<Item = &'static str> + Clone {
                [$($name),*].into_iter()$(.chain($others::names()))?
            }

            /// The tracepoint's name, as Linux 6.12 has it.
            pub fn name(&self) -> &'static str {
                match self {
                    $($points::$variant { .. } => $name,)*
                    $($points::$rest(other) => other.name(),)?
                }
            }
        }

        $(impl From<$others> for $points {
            fn from(other: $others) -> $points {
                $points::$rest(other)
            }
        })?
    };
}

tracepoints! {
    /// A tracepoint of the kernel. A field with the name of one of the kernel's has its meaning.
    Tracepoint,
    /// One of writeback.
    Writeback(WritebackTracepoint):

    /// kswapd has found nothing to do for the length of a nap.
    KswapdSleep = "mm_vmscan_kswapd_sleep",
    /// kswapd goes to work.
    KswapdWake = "mm_vmscan_kswapd_wake" {
        /// The highest order that was asked for: blocks of 2^order pages.
        order: u8,
    },
    /// A task wakes kswapd.
    WakeupKswapd = "mm_vmscan_wakeup_kswapd" {
        /// The order of the request: a block of 2^order pages.
        order: u8,
        /// The highest permitted zone.
        zone: ZoneType,
        /// What the request that wakes it may do.
        gfp: GfpFlags,
    },
    /// A task begins to reclaim for the machine.
    DirectReclaimBegin = "mm_vmscan_direct_reclaim_begin" {
        /// The order of the request: a block of 2^order pages.
        order: u8,
        /// The reclaimer may write pages.
        may_writepage: bool,
        /// Permissions of the reclaimer's request.
        gfp: GfpFlags,
    },
    /// The direct reclaim call ends.
    DirectReclaimEnd = "mm_vmscan_direct_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    },
    /// A task begins to reclaim for a group: at its limit, above its `memory.high`, or asked to by a user.
    MemcgReclaimBegin = "mm_vmscan_memcg_reclaim_begin" {
        /// The order of the request: a block of 2^order pages.
        order: u8,
        /// The reclaimer may write pages.
        may_writepage: bool,
        /// Permissions of the reclaimer's request.
        gfp: GfpFlags,
    },
    /// The call for a group ends.
    MemcgReclaimEnd = "mm_vmscan_memcg_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    },
    /// For the machine, a group above its soft limit begins to be reclaimed (cgroup v1).
    SoftLimitReclaimBegin = "mm_vmscan_memcg_softlimit_reclaim_begin" {
        /// The order of the request: a block of 2^order pages.
        order: u8,
        /// The reclaimer may write pages.
        may_writepage: bool,
        /// Permissions of the request behind it.
        gfp: GfpFlags,
    },
    /// The call for a soft limit ends.
    SoftLimitReclaimEnd = "mm_vmscan_memcg_softlimit_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    },
    /// A task begins to reclaim a near node rather than use another's memory (`vm.zone_reclaim_mode`).
    NodeReclaimBegin = "mm_vmscan_node_reclaim_begin" {
        /// The order of the request: a block of 2^order pages.
        order: u8,
        /// Permissions of the reclaimer's request.
        gfp: GfpFlags,
    },
    /// The call for a near node ends.
    NodeReclaimEnd = "mm_vmscan_node_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    },
    /// Pages were taken off a list.
    LruIsolate = "mm_vmscan_lru_isolate" {
        /// The highest zone that is wanted.
        zone: ZoneType,
        /// The order of the request: a block of 2^order pages.
        order: u8,
        /// Pages to look at, at most.
        nr_requested: u64,
        /// Scanned pages.
        nr_scanned: u64,
        /// Pages passed by for their zone.
        nr_skipped: u64,
        /// Pages taken.
        nr_taken: u64,
        /// The list's type.
        kind: LruType,
        /// True if the list is active.
        is_active: bool,
        /// Reclaim is of a group, not of the machine: another event in kernels of 2010, whose groups had lists of their own.
        is_of_group: bool,
        /// Pages taken around the isolated ones, by lumpy reclaim.
        contig: Contig,
    },
    /// A batch of pages was judged.
    LruShrinkInactive = "mm_vmscan_lru_shrink_inactive" {
        /// The zone of the first page of the batch. In 2010, when zones had lists of their own, it is the zone of all.
        zone: ZoneType,
        /// The type of the batch's pages.
        kind: LruType,
        /// Pages scanned to make the batch.
        nr_scanned: u64,
        /// Pages freed.
        nr_reclaimed: u64,
        /// What became of the pages that were not freed.
        kept: Kept,
        /// How hard reclaim tries: 12 is gently, 0 is everything.
        priority: u8,
    },
    /// A batch of active pages was aged.
    LruShrinkActive = "mm_vmscan_lru_shrink_active" {
        /// The type of the batch's pages.
        kind: LruType,
        /// Pages taken.
        nr_taken: u64,
        /// Pages left active.
        nr_active: u64,
        /// Pages made inactive.
        nr_deactivated: u64,
        /// Pages left active because they were used.
        nr_referenced: u64,
        /// How hard reclaim tries.
        priority: u8,
    },
    /// Reclaim begins to write a page.
    WriteFolio = "mm_vmscan_write_folio" {
        /// The page's frame.
        pfn: Pfn,
        /// The page's type.
        kind: LruType,
        /// The reclaimer waits for the write.
        is_sync: bool,
    },
    /// A reclaimer has waited for others.
    Throttled = "mm_vmscan_throttled" {
        /// The longest that it would have waited.
        timeout: Nanos,
        /// How long it has waited.
        delayed: Nanos,
        /// What it waited for.
        reason: ThrottleReason,
    },
    /// A shrinker is asked to free some of what it holds.
    ShrinkSlabStart = "mm_shrink_slab_start" {
        /// Which shrinker.
        shrinker: Shrinker,
        /// Permissions of the request behind it.
        gfp: GfpFlags,
        /// Objects left undone by earlier calls.
        deferred: u64,
        /// Objects that the shrinker could free.
        freeable: u64,
        /// Objects that this call adds to what is owed.
        delta: u64,
        /// Objects that may be scanned in this call.
        total_scan: u64,
        /// How hard reclaim tries.
        priority: u8,
    },
    /// A window of a kdamond is over: one of its regions.
    DamonAggregated = "damon_aggregated" {
        /// The region.
        region: TracedRegion,
    },
    /// A scheme of a kdamond is applied to a region.
    DamosBeforeApply = "damos_before_apply" {
        /// The number of the scheme.
        scheme: u32,
        /// The region.
        region: TracedRegion,
    },
    /// The shrinker has scanned what it could.
    ShrinkSlabEnd = "mm_shrink_slab_end" {
        /// Which shrinker.
        shrinker: Shrinker,
        /// Objects left undone by earlier calls.
        deferred: u64,
        /// Objects left undone for later calls.
        left: u64,
        /// Objects that could still have been scanned.
        total_scan: u64,
        /// Objects freed.
        freed: u64,
    },
}

tracepoints! {
    /// A tracepoint of writeback: of dirty pages, and of the flushers that write them.
    WritebackTracepoint:

    /// A page of a file becomes dirty.
    DirtyFolio = "writeback_dirty_folio" {
        /// The page and its file.
        folio: FilePage,
    },
    /// A task waits until a page is written.
    WaitWriteback = "folio_wait_writeback" {
        /// The page and its file.
        folio: FilePage,
    },
    /// A task that dirties pages is checked: the amount of dirty pages, and the limits. Unit: pages.
    GlobalDirtyState = "global_dirty_state" {
        /// Dirty pages.
        dirty: u64,
        /// Pages under writeback.
        writeback: u64,
        /// The background threshold, from which on the flusher writes.
        bg_thresh: u64,
        /// The threshold, at which writers stop.
        thresh: u64,
        /// The threshold as it is smoothed where it falls.
        limit: u64,
        /// Pages dirtied since the start.
        dirtied: u64,
        /// Pages written since the start.
        written: u64,
    },
    /// A task that dirties pages was checked, and more pages are dirty than a task may dirty unchecked.
    BalanceDirtyPages = "balance_dirty_pages" {
        /// The device, and the group, whose share is checked.
        wb: TracedWb,
        /// The numbers that were compared, and how long the task pauses.
        pause: TracedPause,
    },
    /// The rate of a wb's writers is recalculated. Unit: pages per second.
    BdiDirtyRatelimit = "bdi_dirty_ratelimit" {
        /// The device, and the group, whose rate it is.
        wb: TracedWb,
        /// Pages written lately.
        write_bw: u64,
        /// Pages written on average.
        awrite_bw: u64,
        /// Pages dirtied lately.
        dirty_rate: u64,
        /// Pages that each writer may dirty.
        dirty_ratelimit: u64,
        /// Pages that this writer may dirty, in view of how many are dirty.
        task_ratelimit: u64,
        /// The rate at which dirtied and written would be equal.
        balanced_dirty_ratelimit: u64,
    },
    /// The flusher is woken for what is dirty beyond the background threshold.
    WakeBackground = "writeback_wake_background" {
        /// The device, and the group, whose flusher is woken.
        wb: TracedWb,
    },
    /// A flusher is asked for a piece of work.
    WritebackQueue = "writeback_queue" {
        /// The piece of work.
        work: TracedWork,
    },
    /// A flusher takes up a piece of work.
    WritebackExec = "writeback_exec" {
        /// The piece of work.
        work: TracedWork,
    },
    /// A pass over dirty files begins.
    WritebackStart = "writeback_start" {
        /// The piece of work.
        work: TracedWork,
    },
    /// A pass of a piece of work over dirty files is over.
    WritebackWritten = "writeback_written" {
        /// The piece of work.
        work: TracedWork,
    },
    /// A flusher has done what there was to do.
    PagesWritten = "writeback_pages_written" {
        /// Pages that it has begun to write since it was woken.
        pages: u64,
    },
    /// Files are chosen for a pass.
    QueueIo = "writeback_queue_io" {
        /// The device, and the group, whose flusher it is.
        wb: TracedWb,
        /// Files that are dirty since this tick, or longer.
        older: u64,
        /// The time since that tick.
        age: Nanos,
        /// Files chosen.
        enqueue: u64,
        /// The reason why the flusher writes.
        reason: WritebackReason,
    },
    /// A file's turn begins.
    SingleInodeStart = "writeback_single_inode_start" {
        /// The device, and the group, whose flusher it is.
        wb: TracedWb,
        /// The file and its turn.
        inode: TracedInode,
    },
    /// The turn of a file is over.
    SingleInode = "writeback_single_inode" {
        /// The device, and the group, whose flusher it is.
        wb: TracedWb,
        /// The file and its turn.
        inode: TracedInode,
    },
    /// A file's times change, or a page of it becomes dirty.
    MarkInodeDirty = "writeback_mark_inode_dirty" {
        /// The file.
        inode: InodeMark,
    },
    /// The file system is about to be notified of a change of a file's times.
    DirtyInodeStart = "writeback_dirty_inode_start" {
        /// The file.
        inode: InodeMark,
    },
    /// The file system was notified of a change of a file's times.
    DirtyInode = "writeback_dirty_inode" {
        /// The file.
        inode: InodeMark,
    },
    /// A clean file is among the dirty ones from now on.
    DirtyInodeEnqueue = "writeback_dirty_inode_enqueue" {
        /// The file.
        inode: ListedInode,
    },
    /// The first page of a file is being written.
    MarkInodeWriteback = "sb_mark_inode_writeback" {
        /// The file.
        inode: ListedInode,
    },
    /// The last page of a file that was being written is written.
    ClearInodeWriteback = "sb_clear_inode_writeback" {
        /// The file.
        inode: ListedInode,
    },
    /// A flusher has a file's times written.
    WriteInodeStart = "writeback_write_inode_start" {
        /// The device, and the group, whose flusher it is.
        wb: TracedWb,
        /// The file.
        file: FileId,
        /// The file is waited for.
        is_sync: bool,
    },
    /// The file system has noted a file's times.
    WriteInode = "writeback_write_inode" {
        /// The device, and the group, whose flusher it is.
        wb: TracedWb,
        /// The file.
        file: FileId,
        /// The file is waited for.
        is_sync: bool,
    },
}

/// A region of a kdamond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedRegion {
    /// The number of its target.
    pub target: u32,
    /// Regions of the target.
    pub nr_regions: u32,
    /// First address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Samples with an access.
    pub nr_accesses: u32,
    /// Windows without a notable change.
    pub age: u32,
}

/// A shrinker, which frees objects of the kernel's own when memory is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shrinker {
    /// Compacts a pool of compressed pages.
    Zspool,
    /// Writes compressed pages back.
    Zswap,
}

/// A page of a file, on the device that it is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilePage {
    /// The device.
    pub bdi: BdiId,
    /// The file.
    pub file: FileId,
    /// The page's number in the file.
    pub index: u64,
}

/// A device's writeback on behalf of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedWb {
    /// The device.
    pub bdi: BdiId,
    /// The group.
    pub memcg: MemcgId,
}

/// A piece of work of a flusher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedWork {
    /// The device, and the group, whose flusher it is.
    pub wb: TracedWb,
    /// Pages that are still to be written.
    pub nr_pages: u64,
    /// The reason why the flusher writes.
    pub reason: WritebackReason,
    /// The flusher waits until the device has each file.
    pub is_sync: bool,
}

/// A look at a task that dirties pages. Unit: pages, pages a second, and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedPause {
    /// Pages that may be dirty at most.
    pub limit: u64,
    /// The setpoint of dirty pages.
    pub setpoint: u64,
    /// Pages that are dirty.
    pub dirty: u64,
    /// The wb's share of the setpoint.
    pub wb_setpoint: u64,
    /// Pages that are dirty on the wb.
    pub wb_dirty: u64,
    /// Pages that each writer may dirty.
    pub dirty_ratelimit: u64,
    /// Pages that this writer may dirty, in view of how many are dirty.
    pub task_ratelimit: u64,
    /// Pages that the task has dirtied since the last look.
    pub dirtied: u64,
    /// Pages after which the task is checked again.
    pub dirtied_pause: u64,
    /// The sleep of the task, in milliseconds; negative if it continues.
    pub pause_ms: i64,
    /// The time that the task's pages should have taken.
    pub period_ms: i64,
    /// The time since the task's last sleep.
    pub think_ms: i64,
}

impl TracedPause {
    /// Returns the sleep of the task in milliseconds: 0 if its pages have taken that time already.
    pub fn sleep_ms(&self) -> u64 {
        self.pause_ms.max(0) as u64
    }
}

/// A file that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedInode {
    /// The file.
    pub file: FileId,
    /// The dirty state of the file.
    pub state: InodeState,
    /// The tick at which the file became dirty.
    pub dirtied_when: u64,
    /// The time since that tick.
    pub age: Nanos,
    /// The page at which the file's next turn begins.
    pub index: u64,
    /// Pages that the turn may write.
    pub to_write: u64,
    /// Pages that the turn has written.
    pub wrote: u64,
}

/// State of an inode: which of its parts are dirty, and whether it is being written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InodeState {
    /// The file's times (`I_DIRTY_SYNC`).
    pub times: bool,
    /// Pages of the file (`I_DIRTY_PAGES`).
    pub pages: bool,
    /// A flusher is writing the file (`I_SYNC`, `I_SYNC_QUEUED`).
    pub is_written: bool,
}

impl InodeState {
    /// The file's times alone.
    pub const TIMES: InodeState = InodeState { times: true, pages: false, is_written: false };
    /// The file's pages alone.
    pub const PAGES: InodeState = InodeState { times: false, pages: true, is_written: false };
}

/// A file of which more is to be written than before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InodeMark {
    /// The file's device.
    pub bdi: BdiId,
    /// The file.
    pub file: FileId,
    /// The dirty state of the file before.
    pub state: InodeState,
    /// The dirty state that was added.
    pub flags: InodeState,
}

/// A file that is put among others: the dirty ones, or those that are being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedInode {
    /// The file's device.
    pub bdi: BdiId,
    /// The file.
    pub file: FileId,
    /// The dirty state of the file.
    pub state: InodeState,
    /// The tick at which the file became dirty.
    pub dirtied_when: u64,
}

/// Pages that lumpy reclaim has taken in the blocks around those that it took off a list. Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Contig {
    /// Pages taken.
    pub taken: u64,
    /// Pages taken that are dirty.
    pub dirty: u64,
    /// Blocks with a page that could not be isolated.
    pub failed: u64,
}

/// Pages of a batch that were not freed, by reason. Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Kept {
    /// Dirty pages of files.
    pub nr_dirty: u64,
    /// Pages under writeback.
    pub nr_writeback: u64,
    /// Dirty pages whose device has too much to do.
    pub nr_congested: u64,
    /// Pages under writeback that kswapd met a second time.
    pub nr_immediate: u64,
    /// Pages made active, by type.
    pub nr_activate: [u64; 2],
    /// Pages in use, kept for another round.
    pub nr_ref_keep: u64,
    /// Pages that are still mapped.
    pub nr_unmap_fail: u64,
}

/// The gfp flags of a request for memory, as far as tracepoints print them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GfpFlags {
    /// No request: a wake-up without an allocation.
    None,
    /// GFP_KERNEL: memory of the kernel's own.
    Kernel,
    /// GFP_NOFS: memory of the kernel's own, without entering a file system.
    NoFs,
    /// GFP_NOWAIT: memory of the kernel's own, without waiting.
    NoWait,
    /// GFP_ATOMIC: memory of the kernel's own, from the reserve.
    Atomic,
    /// GFP_TRANSHUGE_LIGHT, and kswapd is woken: a huge page that is put off.
    HugeDeferred,
    /// A page of a process.
    HighUserMovable,
    /// A page of a file that is read.
    PageCache,
    /// A page of a file that is read ahead, or whose read has another way if there is none.
    Readahead,
}

impl GfpFlags {
    /// The flags of an allocation.
    pub(crate) fn of(request: &Request) -> GfpFlags {
        let (gfp, is_movable) = (request.gfp, request.class == ZoneType::Movable);
        match () {
            () if !gfp.contains(Gfp::DIRECT_RECLAIM) && gfp.contains(Gfp::HIGH) => GfpFlags::Atomic,
            () if !gfp.contains(Gfp::DIRECT_RECLAIM) && request.order == HUGE_PAGE_ORDER && is_movable => {
                GfpFlags::HugeDeferred
            }
            () if !gfp.contains(Gfp::DIRECT_RECLAIM) => GfpFlags::NoWait,
            () if is_movable => GfpFlags::movable(gfp.contains(Gfp::FS), gfp.contains(Gfp::NORETRY)),
            () if gfp.contains(Gfp::FS) => GfpFlags::Kernel,
            () => GfpFlags::NoFs,
        }
    }

    /// The flags of a reclaim call, of which no more is known than what it may do.
    pub(crate) fn of_reclaimer(by: &Reclaimer) -> GfpFlags {
        match by.why {
            Why::High | Why::Requested | Why::Generations | Why::Kswapd => GfpFlags::Kernel,
            Why::Limit | Why::Direct | Why::Node if by.class == ZoneType::Movable => {
                GfpFlags::movable(by.may_enter_fs, true)
            }
            Why::Limit | Why::Direct | Why::Node if by.may_enter_fs => GfpFlags::Kernel,
            Why::Limit | Why::Direct | Why::Node => GfpFlags::NoFs,
        }
    }

    fn movable(may_enter_fs: bool, has_another_way: bool) -> GfpFlags {
        match (may_enter_fs, has_another_way) {
            (true, _) => GfpFlags::HighUserMovable,
            (false, true) => GfpFlags::Readahead,
            (false, false) => GfpFlags::PageCache,
        }
    }
}

impl Tracepoint {
    /// A reclaim call begins. kswapd's work does not count as a call, except for soft limits.
    pub(crate) fn reclaim_begin(sc: &ScanControl) -> Tracepoint {
        let (order, may_writepage, gfp) = (sc.by.order, sc.may_write_now(), GfpFlags::of_reclaimer(&sc.by));
        match sc.by.why {
            _ if sc.by.is_for_soft_limit() => Tracepoint::SoftLimitReclaimBegin { order, may_writepage, gfp },
            Why::Node => Tracepoint::NodeReclaimBegin { order, gfp },
            Why::Direct => Tracepoint::DirectReclaimBegin { order, may_writepage, gfp },
            _ => Tracepoint::MemcgReclaimBegin { order, may_writepage, gfp },
        }
    }

    /// A reclaim call ends.
    pub(crate) fn reclaim_end(sc: &ScanControl) -> Tracepoint {
        let nr_reclaimed = sc.nr_reclaimed;
        match sc.by.why {
            _ if sc.by.is_for_soft_limit() => Tracepoint::SoftLimitReclaimEnd { nr_reclaimed },
            Why::Node => Tracepoint::NodeReclaimEnd { nr_reclaimed },
            Why::Direct => Tracepoint::DirectReclaimEnd { nr_reclaimed },
            _ => Tracepoint::MemcgReclaimEnd { nr_reclaimed },
        }
    }

    /// Returns true if the tracepoint ends a reclaim call, which lasts until the end of the step in which it is sent.
    pub fn ends_reclaim(&self) -> bool {
        matches!(
            self,
            Tracepoint::DirectReclaimEnd { .. }
                | Tracepoint::MemcgReclaimEnd { .. }
                | Tracepoint::NodeReclaimEnd { .. }
        )
    }
}
