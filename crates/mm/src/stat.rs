//! Counters of `/proc/vmstat` and `memory.stat` under the kernel's names, and the updates that a CPU has not passed on yet. [reclaim 7]

use crate::units::ZoneType;
use crate::units::{LruType, MemcgId};

macro_rules! stats {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A counter of `/proc/vmstat` or `memory.stat`, under the kernel's name. Unit: pages or events.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)] // the kernel's names say it
        pub enum Stat {
            $($(#[$doc])* $variant,)*
        }

        impl Stat {
            /// All counters, those of each kind in the order of `/proc/vmstat`.
            pub const ALL: &[Stat] = &[$(Stat::$variant),*];

            /// The kernel's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Stat::$variant => $name,)*
                }
            }
        }
    };
}

stats! {
    NrFreePages = "nr_free_pages",
    NrZspages = "nr_zspages",
    /// Requests that got memory of this node, which they wanted; those below, too, are requests.
    NumaHit = "numa_hit",
    /// Requests that got memory of this node, and wanted another's.
    NumaMiss = "numa_miss",
    /// Requests that wanted memory of this node, and got another's.
    NumaForeign = "numa_foreign",
    /// Requests that got memory of the node whose turn it was (interleave_hit).
    NumaInterleave = "numa_interleave",
    /// Requests that got memory of the node of their CPU.
    NumaLocal = "numa_local",
    /// Requests that got memory of another node than that of their CPU.
    NumaOther = "numa_other",
    NrInactiveAnon = "nr_inactive_anon",
    NrActiveAnon = "nr_active_anon",
    NrInactiveFile = "nr_inactive_file",
    NrActiveFile = "nr_active_file",
    NrUnevictable = "nr_unevictable",
    NrMlock = "nr_mlock",
    NrIsolatedAnon = "nr_isolated_anon",
    NrIsolatedFile = "nr_isolated_file",
    /// Slab pages of the machine that can be reclaimed.
    NrSlabReclaimable = "nr_slab_reclaimable",
    WorkingsetNodes = "workingset_nodes",
    WorkingsetRefaultAnon = "workingset_refault_anon",
    WorkingsetRefaultFile = "workingset_refault_file",
    WorkingsetActivateAnon = "workingset_activate_anon",
    WorkingsetActivateFile = "workingset_activate_file",
    WorkingsetRestoreAnon = "workingset_restore_anon",
    WorkingsetRestoreFile = "workingset_restore_file",
    WorkingsetNodereclaim = "workingset_nodereclaim",
    NrAnonPages = "nr_anon_pages",
    NrMapped = "nr_mapped",
    NrFilePages = "nr_file_pages",
    NrDirty = "nr_dirty",
    NrWriteback = "nr_writeback",
    NrShmem = "nr_shmem",
    /// In huge pages.
    NrAnonThps = "nr_anon_transparent_hugepages",
    NrVmscanWrite = "nr_vmscan_write",
    NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
    NrDirtied = "nr_dirtied",
    NrWritten = "nr_written",
    NrThrottledWritten = "nr_throttled_written",
    /// In KiB.
    NrKernelStack = "nr_kernel_stack",
    NrPageTablePages = "nr_page_table_pages",
    NrSwapcached = "nr_swapcached",
    PgpromoteSuccess = "pgpromote_success",
    PgpromoteCandidate = "pgpromote_candidate",
    /// Not rate-limited, as their node had plenty of free memory. Since 6.18.
    PgpromoteCandidateNrl = "pgpromote_candidate_nrl",
    /// Computed where it is read, as the next one is.
    NrDirtyThreshold = "nr_dirty_threshold",
    NrDirtyBackgroundThreshold = "nr_dirty_background_threshold",
    Pgpgin = "pgpgin",
    Pgpgout = "pgpgout",
    Pswpin = "pswpin",
    Pswpout = "pswpout",
    PgallocDma = "pgalloc_dma",
    PgallocDma32 = "pgalloc_dma32",
    PgallocNormal = "pgalloc_normal",
    PgallocMovable = "pgalloc_movable",
    AllocstallDma = "allocstall_dma",
    AllocstallDma32 = "allocstall_dma32",
    AllocstallNormal = "allocstall_normal",
    AllocstallMovable = "allocstall_movable",
    PgskipDma = "pgskip_dma",
    PgskipDma32 = "pgskip_dma32",
    PgskipNormal = "pgskip_normal",
    PgskipMovable = "pgskip_movable",
    Pgfree = "pgfree",
    Pgactivate = "pgactivate",
    Pgdeactivate = "pgdeactivate",
    Pglazyfree = "pglazyfree",
    Pgfault = "pgfault",
    Pgmajfault = "pgmajfault",
    Pglazyfreed = "pglazyfreed",
    Pgrefill = "pgrefill",
    PgstealKswapd = "pgsteal_kswapd",
    PgstealDirect = "pgsteal_direct",
    /// Pages are not collapsed, so it is 0, like the other two.
    PgstealKhugepaged = "pgsteal_khugepaged",
    PgstealProactive = "pgsteal_proactive",
    PgdemoteKswapd = "pgdemote_kswapd",
    PgdemoteDirect = "pgdemote_direct",
    PgdemoteKhugepaged = "pgdemote_khugepaged",
    PgdemoteProactive = "pgdemote_proactive",
    PgscanKswapd = "pgscan_kswapd",
    PgscanDirect = "pgscan_direct",
    PgscanKhugepaged = "pgscan_khugepaged",
    PgscanProactive = "pgscan_proactive",
    PgscanDirectThrottle = "pgscan_direct_throttle",
    PgscanAnon = "pgscan_anon",
    PgscanFile = "pgscan_file",
    PgstealAnon = "pgsteal_anon",
    PgstealFile = "pgsteal_file",
    /// Calls of node reclaim that freed what was wanted, and those that did not.
    ZoneReclaimSuccess = "zone_reclaim_success",
    ZoneReclaimFailed = "zone_reclaim_failed",
    KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly",
    KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly",
    Pageoutrun = "pageoutrun",
    Pgrotated = "pgrotated",
    OomKill = "oom_kill",
    NumaPteUpdates = "numa_pte_updates",
    NumaHugePteUpdates = "numa_huge_pte_updates",
    NumaHintFaults = "numa_hint_faults",
    NumaHintFaultsLocal = "numa_hint_faults_local",
    NumaPagesMigrated = "numa_pages_migrated",
    PgmigrateSuccess = "pgmigrate_success",
    PgmigrateFail = "pgmigrate_fail",
    ThpMigrationSuccess = "thp_migration_success",
    ThpMigrationFail = "thp_migration_fail",
    ThpMigrationSplit = "thp_migration_split",
    NumaHintPageCache = "numa_hint_page_cache",
    NumaHintPageCacheLocal = "numa_hint_page_cache_local",
    CompactMigrateScanned = "compact_migrate_scanned",
    CompactFreeScanned = "compact_free_scanned",
    CompactIsolated = "compact_isolated",
    CompactStall = "compact_stall",
    CompactFail = "compact_fail",
    CompactSuccess = "compact_success",
    CompactDaemonWake = "compact_daemon_wake",
    CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned",
    CompactDaemonFreeScanned = "compact_daemon_free_scanned",
    PghotRecordedAccesses = "pghot_recorded_accesses",
    PghotRecordedHwhints = "pghot_recorded_hwhints",
    PghotRecordedPgtscans = "pghot_recorded_pgtscans",
    PghotRecordedHintfaults = "pghot_recorded_hintfaults",
    /// In no posting: by read(2).
    PghotRecordedFma = "pghot_recorded_fma",
    HwhintNrEvents = "hwhint_nr_events",
    HwhintDramAccesses = "hwhint_dram_accesses",
    HwhintCxlAccesses = "hwhint_cxl_accesses",
    HwhintRemoteNode = "hwhint_remote_node",
    HwhintNonLru = "hwhint_non_lru",
    HwhintBufferFull = "hwhint_buffer_full",
    HwhintUsefulSamples = "hwhint_useful_samples",
    HtlbBuddyAllocSuccess = "htlb_buddy_alloc_success",
    HtlbBuddyAllocFail = "htlb_buddy_alloc_fail",
    UnevictablePgsCulled = "unevictable_pgs_culled",
    UnevictablePgsRescued = "unevictable_pgs_rescued",
    UnevictablePgsMlocked = "unevictable_pgs_mlocked",
    UnevictablePgsMunlocked = "unevictable_pgs_munlocked",
    ThpFaultAlloc = "thp_fault_alloc",
    ThpFaultFallback = "thp_fault_fallback",
    ThpFaultFallbackCharge = "thp_fault_fallback_charge",
    ThpFileAlloc = "thp_file_alloc",
    ThpFileFallback = "thp_file_fallback",
    ThpFileFallbackCharge = "thp_file_fallback_charge",
    ThpFileMapped = "thp_file_mapped",
    ThpSplitPage = "thp_split_page",
    ThpSplitPageFailed = "thp_split_page_failed",
    ThpDeferredSplitPage = "thp_deferred_split_page",
    ThpUnderusedSplitPage = "thp_underused_split_page",
    ThpSplitPmd = "thp_split_pmd",
    ThpSwpout = "thp_swpout",
    ThpSwpoutFallback = "thp_swpout_fallback",
    SwapRa = "swap_ra",
    SwapRaHit = "swap_ra_hit",
    SlabsScanned = "slabs_scanned",
    SwpinZero = "swpin_zero",
    SwpoutZero = "swpout_zero",
    Zswpin = "zswpin",
    Zswpout = "zswpout",
    Zswpwb = "zswpwb",
    /// Pages that reclaim scanned and did not take. Groups have it, and only where costs are read from counters (`balance/cost.rs`).
    PgrotateAnon = "pgrotate_anon",
    PgrotateFile = "pgrotate_file",
    /// Pages of kernel memory. Groups only.
    Kernel = "kernel",
    /// Bytes of objects that share pages. Groups only.
    SlabReclaimable = "slab_reclaimable",
    /// Bytes of compressed pages, and how many those were. Groups only.
    Zswap = "zswap",
    Zswapped = "zswapped",
}

impl Stat {
    /// Returns whether it is one of `/proc/vmstat`. The others are of groups only.
    pub fn is_in_vmstat(self) -> bool {
        let is_of_groups = matches!(
            self,
            Stat::PgrotateAnon
                | Stat::PgrotateFile
                | Stat::Kernel
                | Stat::SlabReclaimable
                | Stat::Zswap
                | Stat::Zswapped
        );
        !is_of_groups
    }

    /// Returns whether it says how much there is, and so goes up and down. The others count events, and never go down.
    pub fn is_gauge(self) -> bool {
        let is_event = matches!(
            self,
            Stat::NrDirtied | Stat::NrWritten | Stat::NrVmscanWrite | Stat::NrVmscanImmediateReclaim
        );
        let is_named_so = self.name().starts_with("nr_") || self == Stat::WorkingsetNodes;
        !self.is_in_vmstat() || is_named_so && !is_event
    }
}

/// The number of counters.
pub const STATS: usize = Stat::ALL.len();

/// One value a counter.
pub type Counters = [i64; STATS];

/// The counter of a pair that belongs to this type of memory.
pub trait ByType {
    /// The counter of a type.
    fn of(self, kind: LruType) -> Stat;
}

impl ByType for [Stat; 2] {
    fn of(self, kind: LruType) -> Stat {
        self[kind as usize]
    }
}

/// Evicted pages that came back, by type.
pub const REFAULT: [Stat; 2] = [Stat::WorkingsetRefaultAnon, Stat::WorkingsetRefaultFile];
/// Pages that came back and were activated, by type.
pub const ACTIVATE: [Stat; 2] = [Stat::WorkingsetActivateAnon, Stat::WorkingsetActivateFile];
/// Pages that came back and had been in the workingset, by type.
pub const RESTORE: [Stat; 2] = [Stat::WorkingsetRestoreAnon, Stat::WorkingsetRestoreFile];
/// Pages that reclaim looked at, by type.
pub const PGSCAN: [Stat; 2] = [Stat::PgscanAnon, Stat::PgscanFile];
/// Pages that reclaim freed, by type.
pub const PGSTEAL: [Stat; 2] = [Stat::PgstealAnon, Stat::PgstealFile];
/// Pages that reclaim looked at and left, by type.
pub const PGROTATE: [Stat; 2] = [Stat::PgrotateAnon, Stat::PgrotateFile];
/// Pages that reclaim holds off their lists, by type.
pub const ISOLATED: [Stat; 2] = [Stat::NrIsolatedAnon, Stat::NrIsolatedFile];

/// Requests that had to reclaim for themselves, by zone.
pub const ALLOCSTALL: [Stat; ZoneType::COUNT] =
    [Stat::AllocstallDma, Stat::AllocstallDma32, Stat::AllocstallNormal, Stat::AllocstallMovable];
/// Pages given out, by zone.
pub const PGALLOC: [Stat; ZoneType::COUNT] =
    [Stat::PgallocDma, Stat::PgallocDma32, Stat::PgallocNormal, Stat::PgallocMovable];
/// Pages that reclaim skipped as they were of no use to the request, by zone.
pub const PGSKIP: [Stat; ZoneType::COUNT] =
    [Stat::PgskipDma, Stat::PgskipDma32, Stat::PgskipNormal, Stat::PgskipMovable];

/// Updates that a CPU collects before it reports them to the group, and per CPU before a reader's flush is worth its cost.
pub const UPDATES_BATCH: u64 = 64;

/// Updates of one group that a CPU has counted without passing them on to the group and its ancestors, which would cost more than the counting. They
/// are pushed before any of those would have collected a batch, so the difference is invisible.
#[derive(Default)]
pub struct Updates {
    /// The group whose updates they are.
    pub memcg: MemcgId,
    /// The number of changes that were made and not passed on.
    pub made: u64,
    /// The number of changes that complete the first batch, of a group or of all groups. 0: no group has any.
    pub room: u64,
    /// Updates of all groups together since they last completed a batch.
    pub of_all_groups: u64,
    /// The number of batches that they completed since all groups were flushed; Linux 6.1 uses these.
    pub batches: u64,
}
