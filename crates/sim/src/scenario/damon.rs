//! `[[damon]]`: kdamonds with their schemes. Keys have the names that the files of sysfs have. [access-aware 3.1]
//!
//! ```text
//!   damon ──┬── intervals, nr_regions      how it samples
//!           ├── region 0, 1, ...           which physical addresses
//!           └── scheme 0, 1, ...           access_pattern, action, quotas with goals, watermarks, filters
//! ```

use super::Size;
use super::keys::{Accepts, SIZE_MAX};
use super::section::{from_nothing, section, words};

/// The largest number in a file of sysfs that a key here takes.
const MOST: i64 = i64::MAX;
/// Samples and windows are counted in 32 bits.
const COUNT: Accepts = Accepts::Integer(0, u32::MAX as i64);
/// Microseconds of an interval.
const US: Accepts = Accepts::Integer(1, 1_000_000_000_000);
/// Microseconds of an interval that may be absent.
const UP_TO_US: Accepts = Accepts::Integer(0, 1_000_000_000_000);
const WHOLE: Accepts = Accepts::Integer(0, MOST);

section! {
    /// A kdamond with one context.
    pub struct Damon {
        state: DamonState, [default DamonState::On] in Accepts::Choice(DamonState::WORDS) => Same,
            "Whether the kdamond runs. off: it has no thread. Its thread is kdamond.N, and N counts those that are on. No kdamond may be on if a module of DAMON (kernel.damon_reclaim, damon_lru_sort, damon_stat) is enabled, because a module runs alone.";
        operations: Operations, [default Operations::Paddr] in Accepts::Choice(Operations::WORDS) => Same,
            "Addresses that it monitors. paddr: physical memory, in which a page counts as accessed if any mapping of it was used, or if a file page was read. vaddr: the address spaces of the tasks in `target`, in which only accesses through mappings count. fvaddr is not modelled.";
        target: Vec<String>, [unless Vec::new()] in Accepts::Texts => Same,
            "With vaddr: names of the tasks whose processes are monitored. Each copy of a task is a target. A process that has ended is monitored no more, nor is the next one of a task with lifetime = \"loop\". sysfs has a process number (pid_target) per target.";
        intervals: Intervals, [unless Intervals::default()] table Intervals,
            "Intervals of monitoring.";
        nr_regions: NrRegions, [unless NrRegions::default()] table NrRegions,
            "Limits of the number of regions.";
        numa_node: Option<u8>, [absent "all nodes"] in Accepts::Integer(0, 63) => Same,
            "Monitor the memory of this node. In sysfs, its addresses are a region; /proc/zoneinfo has them. Not with region.";
        region: Vec<AddressRange>, [unless Vec::new()] each AddressRange,
            "Ranges of addresses to monitor, in order. Without any, all memory is monitored. Both ends are multiples of a page.";
        scheme: Vec<Scheme>, [unless Vec::new()] each Scheme,
            "What is done with regions of an access pattern. Without any, the kdamond only monitors.";
    }
}

words! {
    /// Whether a kdamond runs.
    pub enum DamonState {
        /// It runs.
        On = "on",
        /// It does not exist.
        Off = "off",
    }
}

words! {
    /// The addresses that a kdamond monitors.
    pub enum Operations {
        /// Those of physical memory.
        Paddr = "paddr",
        /// Those of processes.
        Vaddr = "vaddr",
    }
}

section! {
    /// Intervals of a kdamond, and the goal by which they are tuned.
    pub struct Intervals {
        sample_us: u64, [default 5_000] in US => Same,
            "Microseconds between preparing a page of each region and testing whether it was accessed. At most aggr_us. The kernel's default.";
        aggr_us: u64, [default 100_000] in US => Same,
            "Microseconds of a window, at whose end regions merge and split. nr_accesses is at most aggr_us / sample_us. The kernel's default.";
        update_us: u64, [default 60_000_000] in UP_TO_US => Same,
            "Microseconds after which address ranges are looked up again. The ranges of physical memory stay the same. The kernel's default.";
        access_bp: u64, [unless 0] in Accepts::Integer(0, 10_000) => Same,
            "Goal of the intervals: share of samples that find an access, over all bytes, in 1/10000. aggrs needs it. The file is intervals_goal/access_bp (since 6.15). 400 is recommended.";
        aggrs: u64, [unless 0] in WHOLE => Same,
            "Windows after which the intervals are tuned to the goal. 0: they stay. 3 is recommended.";
        min_sample_us: u64, [unless 0] in UP_TO_US => Same,
            "The shortest tuned sample interval. With aggrs, at least 1.";
        max_sample_us: u64, [unless 0] in UP_TO_US => Same,
            "The longest tuned sample interval, at least min_sample_us.";
    }
}

impl Default for Intervals {
    fn default() -> Intervals {
        from_nothing()
    }
}

section! {
    /// Limits of the number of regions.
    pub struct NrRegions {
        min: u64, [default 10] in Accepts::Integer(3, 1 << 20) => Same,
            "Minimum number of regions: none is larger than all addresses divided by it. The kernel's default.";
        max: u64, [default 1_000] in Accepts::Integer(3, 1 << 20) => Same,
            "Maximum number of regions, at least min. The work of sampling grows with the number. The kernel's default.";
    }
}

impl Default for NrRegions {
    fn default() -> NrRegions {
        from_nothing()
    }
}

section! {
    /// A range of addresses.
    pub struct AddressRange {
        start: Size, [required] in Accepts::Size(0, SIZE_MAX - 4096) => Twice,
            "First address.";
        end: Size, [required] in Accepts::Size(4096, SIZE_MAX) => Twice,
            "The address behind the last one.";
    }
}

section! {
    /// A scheme: what is done with regions of an access pattern, and how much of it.
    pub struct Scheme {
        action: SchemeAction, [default SchemeAction::Stat] in Accepts::Choice(SchemeAction::WORDS) => Same,
            "stat: count only. pageout: reclaim. cold: deactivate, as madvise(MADV_COLD), with vaddr only. lru_prio and lru_deprio move pages towards the hot or the cold end of their lists, with paddr only. migrate_hot and migrate_cold move pages to the node target_nid (since 6.11; with vaddr since 6.17). The hottest or the coldest regions come first. The other actions of vaddr are not modelled: willneed, hugepage, nohugepage, collapse.";
        target_nid: Option<u8>, [absent "none"] in Accepts::Integer(0, 63) => Same,
            "The node that migrate_hot and migrate_cold move pages to.";
        apply_interval_us: u64, [unless 0] in Accepts::Integer(0, 1_000_000_000_000) => Same,
            "Microseconds between two applications of the scheme. 0: one in each window. Up to 6.6 all schemes are applied in each window.";
        access_pattern: AccessPattern, [unless AccessPattern::default()] table AccessPattern,
            "The regions that the scheme is for.";
        quotas: Quotas, [unless Quotas::default()] table Quotas,
            "How much the scheme may do.";
        watermarks: Watermarks, [unless Watermarks::default()] table Watermarks,
            "Free memory within which the scheme is active.";
        filter: Vec<Filter>, [unless Vec::new()] each Filter,
            "Pages that the scheme spares, or that it is limited to. Filters by address or target come first, then the others, each kind in order.";
        max_nr_snapshots: u64, [unless 0] in WHOLE => Same,
            "Number of applications after which the scheme does nothing more. 0: no limit. The file is stats/max_nr_snapshots (since 7.0).";
    }
}

words! {
    /// What a scheme does.
    pub enum SchemeAction {
        /// Nothing: it counts.
        Stat = "stat",
        /// Reclaims.
        Pageout = "pageout",
        /// Deactivates pages of a process.
        Cold = "cold",
        /// Moves to the hot end of a list.
        LruPrio = "lru_prio",
        /// Moves to the cold end of a list.
        LruDeprio = "lru_deprio",
        /// Moves hot pages to a node.
        MigrateHot = "migrate_hot",
        /// Moves cold pages to a node.
        MigrateCold = "migrate_cold",
    }
}

section! {
    /// The regions that a scheme is for. All limits are included.
    pub struct AccessPattern {
        sz: SizeBounds, [unless SizeBounds::default()] table SizeBounds,
            "Size of a region.";
        nr_accesses: CountBounds, [unless CountBounds::default()] table CountBounds,
            "Samples of a window that found an access.";
        age: CountBounds, [unless CountBounds::default()] table CountBounds,
            "Windows without a notable change.";
    }
}

impl Default for AccessPattern {
    fn default() -> AccessPattern {
        from_nothing()
    }
}

section! {
    /// Limits of a size.
    pub struct SizeBounds {
        min: Size, [default Size(0)] in Accepts::Size(0, SIZE_MAX) => Twice,
            "The smallest size.";
        max: Option<Size>, [absent "any (sysfs: 0, with which a new scheme matches nothing)"] in Accepts::Size(0, SIZE_MAX) => Twice,
            "The largest size.";
    }
}

impl Default for SizeBounds {
    fn default() -> SizeBounds {
        from_nothing()
    }
}

section! {
    /// Limits of a count.
    pub struct CountBounds {
        min: u32, [unless 0] in COUNT => Same,
            "The smallest number.";
        max: Option<u32>, [absent "any (sysfs: 0, with which a new scheme matches nothing)"] in COUNT => Same,
            "The largest number.";
    }
}

impl Default for CountBounds {
    fn default() -> CountBounds {
        from_nothing()
    }
}

section! {
    /// How much a scheme may do.
    pub struct Quotas {
        ms: u64, [unless 0] in Accepts::Integer(0, u32::MAX as i64) => Same,
            "CPU time of the action per reset_interval_ms, in ms. 0: any. The kernel's default.";
        bytes: Size, [default Size(0)] in Accepts::Size(0, SIZE_MAX) => Twice,
            "Memory that the scheme may try per reset_interval_ms. 0: any. The kernel's default.";
        reset_interval_ms: u64, [unless 0] in Accepts::Integer(0, u32::MAX as i64) => Same,
            "Interval of the quota, in ms. Required with ms, bytes or a goal, because a quota without an interval begins again at each application.";
        weights: QuotaWeights, [unless QuotaWeights::default()] table QuotaWeights,
            "What decides which regions come first when the quota is too small for all.";
        goal: Vec<QuotaGoal>, [unless Vec::new()] each QuotaGoal,
            "Goals that set the size of the quota (since 6.8). It starts at 1 byte, grows while all goals are missed, and shrinks when the best one is exceeded. ms and bytes limit it.";
        goal_tuner: GoalTuner, [unless GoalTuner::Consist] in Accepts::Choice(GoalTuner::WORDS) => Same,
            "How the size follows the goals. consist: by a share of itself. temporal: all that ms and bytes allow until a goal is reached, then nothing (since 7.1).";
        fail_charge_num: u64, [unless 0] in COUNT => Same,
            "Numerator of the share of a region that is charged where the action had no effect (since 7.2).";
        fail_charge_denom: u64, [unless 0] in COUNT => Same,
            "Denominator of this share. 0: all of the region is charged, as in versions up to 7.1.";
    }
}

impl Default for Quotas {
    fn default() -> Quotas {
        from_nothing()
    }
}

section! {
    /// What counts for the priority of a region.
    pub struct QuotaWeights {
        sz_permil: u32, [unless 0] in COUNT => Same,
            "Weight of the size. It has no effect in Linux.";
        nr_accesses_permil: u32, [unless 0] in COUNT => Same,
            "Weight of the number of accesses.";
        age_permil: u32, [unless 0] in COUNT => Same,
            "Weight of the age.";
    }
}

impl Default for QuotaWeights {
    fn default() -> QuotaWeights {
        from_nothing()
    }
}

section! {
    /// A goal of a quota.
    pub struct QuotaGoal {
        target_metric: GoalMetric, [default GoalMetric::UserInput] in Accepts::Choice(GoalMetric::WORDS) => Same,
            "What the goal measures: user_input is current_value. The metric some_mem_psi_us is the growth of the machine's `some` memory stall per interval, in us (since 6.9). The metrics node_mem_used_bp and node_mem_free_bp are used or free memory of the node nid, in 1/10000 of it (since 6.16). The metric node_memcg_used_bp is the share of the cgroup path, and node_memcg_free_bp the rest of the node (since 6.19). The metrics active_mem_bp and inactive_mem_bp are active or inactive pages, in 1/10000 of all on lists (since 7.0).";
        target_value: u64, [required] in Accepts::Integer(1, MOST) => Same,
            "The value to reach.";
        current_value: u64, [unless 0] in WHOLE => Same,
            "The present value of user_input. It stays the same for the whole run.";
        nid: Option<u8>, [absent "none"] in Accepts::Integer(0, 63) => Same,
            "The node of a metric of nodes.";
        path: Option<String>, [absent "none"] in Accepts::NameOf("memcg") => Same,
            "The cgroup of node_memcg_used_bp and node_memcg_free_bp.";
    }
}

words! {
    /// What a goal of a quota measures.
    pub enum GoalMetric {
        /// A value that the user gives.
        UserInput = "user_input",
        /// Memory stalls.
        SomeMemPsiUs = "some_mem_psi_us",
        /// Used memory of a node.
        NodeMemUsedBp = "node_mem_used_bp",
        /// Free memory of a node.
        NodeMemFreeBp = "node_mem_free_bp",
        /// Pages of a cgroup on a node.
        NodeMemcgUsedBp = "node_memcg_used_bp",
        /// Memory of a node except those pages.
        NodeMemcgFreeBp = "node_memcg_free_bp",
        /// Active pages.
        ActiveMemBp = "active_mem_bp",
        /// Inactive pages.
        InactiveMemBp = "inactive_mem_bp",
    }
}

words! {
    /// How the size of a quota follows its goals.
    pub enum GoalTuner {
        /// It changes by a share of itself.
        Consist = "consist",
        /// All, then nothing.
        Temporal = "temporal",
    }
}

section! {
    /// Free memory within which a scheme is active.
    pub struct Watermarks {
        metric: WatermarkMetric, [default WatermarkMetric::None] in Accepts::Choice(WatermarkMetric::WORDS) => Same,
            "none: the scheme is always active. free_mem_rate: its activity depends on free memory in 1/1000 of all memory. The kernel's default.";
        interval_us: u64, [unless 0] in Accepts::Integer(0, 1_000_000_000_000) => Same,
            "Microseconds between two checks while no scheme of the kdamond is active. Required with free_mem_rate.";
        high: u64, [unless 0] in Accepts::Integer(0, 1_000) => Same,
            "Above it the scheme is inactive.";
        mid: u64, [unless 0] in Accepts::Integer(0, 1_000) => Same,
            "Below it an inactive scheme becomes active. At most high.";
        low: u64, [unless 0] in Accepts::Integer(0, 1_000) => Same,
            "Below it the scheme is inactive. At most mid.";
    }
}

impl Default for Watermarks {
    fn default() -> Watermarks {
        from_nothing()
    }
}

words! {
    /// What watermarks are compared with.
    pub enum WatermarkMetric {
        /// Nothing.
        None = "none",
        /// Free memory.
        FreeMemRate = "free_mem_rate",
    }
}

section! {
    /// Pages that a scheme spares, or that it is limited to. `kind` is the file `type` of sysfs.
    pub struct Filter {
        kind: FilterKind, [required] in Accepts::Choice(FilterKind::WORDS) => Same,
            "What the filter matches; the file `type` of sysfs. anon: anonymous pages. memcg: pages that are charged to memcg_path itself (both since 6.3). addr: addresses from addr_start to addr_end. target: the target damon_target_idx (both since 6.6). young: pages that were accessed since the last look, which the filter makes old (since 6.10). hugepage_size: folios of min to max bytes. unmapped: pages without a mapping. active: pages on active lists (since 6.15).";
        matching: bool, [default true] in Accepts::Bool => Same,
            "The filter is about what matches; otherwise about what does not match. sysfs starts with N.";
        allow: bool, [default false] in Accepts::Bool => Same,
            "The filter lets these pages through, and not all others; otherwise it rejects them (since 6.14; before, see kernel.damon.filter_order).";
        memcg_path: Option<String>, [absent "none"] in Accepts::NameOf("memcg") => Same,
            "The cgroup of a filter of kind memcg.";
        addr_start: Option<Size>, [absent "none"] in Accepts::Size(0, SIZE_MAX) => Twice,
            "First address of a filter of kind addr.";
        addr_end: Option<Size>, [absent "none"] in Accepts::Size(0, SIZE_MAX) => Twice,
            "The address behind the last one of a filter of kind addr.";
        damon_target_idx: Option<u32>, [absent "none"] in Accepts::Integer(0, 9_999) => Same,
            "The target of a filter of kind target, counted from 0 in the order of `target` and its copies. Physical memory is target 0.";
        min: Option<Size>, [absent "none"] in Accepts::Size(0, SIZE_MAX) => Same,
            "The smallest folio of a filter of kind hugepage_size.";
        max: Option<Size>, [absent "none"] in Accepts::Size(0, SIZE_MAX) => Same,
            "The largest folio of a filter of kind hugepage_size.";
    }
}

words! {
    /// What a filter matches.
    pub enum FilterKind {
        /// Anonymous pages.
        Anon = "anon",
        /// Pages of a cgroup.
        Memcg = "memcg",
        /// Addresses of a range.
        Addr = "addr",
        /// A target.
        Target = "target",
        /// Pages that were accessed since the last look.
        Young = "young",
        /// Folios of a size.
        HugepageSize = "hugepage_size",
        /// Pages without a mapping.
        Unmapped = "unmapped",
        /// Pages on active lists.
        Active = "active",
    }
}
