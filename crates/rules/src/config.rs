//! Parameters of the engine besides the policy: sizes, sysctls, batches, periods of statistics. Defaults are Linux 6.12's unless a reason says
//! otherwise.
//!
//! Each parameter is one row: its field, default and range, and its words in the reference of scenarios. The check below and
//! the reader of scenarios go through [`PARAMETERS`], as `ablate` goes through the switches.

mod backing;
mod damon;
mod error;
mod layout;
mod parameter;

use crate::choice::{Values, choice};
use crate::folio::{AnonOrders, SizeEnabled};
use crate::migrate::MisplacedHuge;
use crate::numa_balancing::PromotionThreshold;
use crate::pghot::{
    DefaultTarget, HintFaultRule, HotWalk, PghotPosting, PghotQuirks, RecordSize, RefusedPage, TargetFull,
    ThresholdRule,
};
use crate::policy::Policy;
use crate::promotion::{PromotionOrder, PromotionTarget, PromotionWhen};
use crate::units::{CpuId, Nanos, NodeId, SECTION_FRAMES};
use std::ops::Range;

pub use backing::{Bdi, FileKind, FileSpec, FileSystem, SwapKind, SwapSpec};
pub use error::{ConfigError, check_range};
pub use layout::{Layout, MemoryType};
pub use parameter::{Mechanism, Parameter, Section, Shown};

choice! {
    /// How old the memcg statistics are that reclaim's decisions read.
    StatFlush {
        /// As the kernel does: as of the last flush, by the periodic worker or a reader of `memory.stat`.
        Periodic = "periodic",
        /// Always up to date, at the cost of updating every ancestor on every event.
        Live = "live",
        /// Flushed only by `Engine::flush_stats` and by readers: for replaying recorded flush points.
        Manual = "manual",
    }
}

choice! {
    /// Which anonymous memory uses huge pages if possible: `/sys/kernel/mm/transparent_hugepage/enabled`.
    TransparentHugepage {
        /// No mapping has huge pages.
        Never = "never",
        /// Mappings that ask for it by `madvise(MADV_HUGEPAGE)`.
        Madvise = "madvise",
        /// All mappings except those that ask for none by `madvise(MADV_NOHUGEPAGE)`.
        Always = "always",
    }
}

choice! {
    /// Action of a fault for a huge page if no block is free: `/sys/kernel/mm/transparent_hugepage/defrag`.
    HugepageDefrag {
        /// It uses single pages.
        Never = "never",
        /// It reclaims and compacts in mappings that ask for huge pages by `madvise(MADV_HUGEPAGE)`, and uses single pages in others.
        Madvise = "madvise",
        /// It reclaims and compacts in mappings that ask for them. In others it asks kswapd and kcompactd for blocks and uses single pages.
        DeferMadvise = "defer+madvise",
        /// It asks kswapd and kcompactd for blocks, and uses single pages.
        Defer = "defer",
        /// It reclaims and compacts for every mapping; for one that did not ask, a single round.
        Always = "always",
    }
}

/// Declares [`Config`], its default and [`PARAMETERS`]: each parameter once.
macro_rules! parameters {
    (
        $(#[$config_doc:meta])*
        $config:ident {
            $($(#[$plain_doc:meta])* $plain:ident: $plain_type:ty = $plain_default:expr,)*
        }
        $($section:ident $name:literal: $field:ident: $type:tt = $default:expr, $values:expr, $unit:literal,
            $doc:literal $reason:literal $(eras [$($era:literal => $span:literal $marks:literal),+])?
            $(, $mechanism:expr)?;)*
    ) => {
        $(#[$config_doc])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $config {
            $($(#[$plain_doc])* pub $plain: $plain_type,)*
            $(#[doc = $doc] #[doc = ""] #[doc = $reason] $(#[doc = concat!("\n\nVersions:\n", $("\n- `", $era, "`: ", $span),+)])? pub $field: $type,)*
        }

        impl Default for $config {
            fn default() -> $config {
                $config { $($plain: $plain_default,)* $($field: $default,)* }
            }
        }

        /// All parameters that are a number or a word.
        pub const PARAMETERS: &[Parameter] = &[$(Parameter {
            section: Section::$section,
            name: $name,
            values: $values,
            unit: $unit,
            doc: $doc,
            reason: $reason,
            eras: &[$($($crate::era::Era::new($era, $span, $marks)),+)?],
            mechanism: parameters!(@mechanism $($mechanism)?),
            get: |config| parameters!(@text config.$field, $type),
            set: |config, value| {
                config.$field = parameters!(@read value, $type);
                Some(())
            },
        },)*];
    };
    (@mechanism) => { None };
    (@mechanism $mechanism:expr) => { Some($mechanism) };
    (@text $value:expr, u8) => { $value.to_string() };
    (@text $value:expr, u16) => { $value.to_string() };
    (@text $value:expr, u32) => { $value.to_string() };
    (@text $value:expr, u64) => { $value.to_string() };
    (@text $value:expr, usize) => { $value.to_string() };
    (@text $value:expr, bool) => { $value.to_string() };
    (@text $value:expr, $choice:tt) => { $value.name().to_owned() };
    (@read $value:expr, u8) => { $value.parse().ok()? };
    (@read $value:expr, u16) => { $value.parse().ok()? };
    (@read $value:expr, u32) => { $value.parse().ok()? };
    (@read $value:expr, u64) => { $value.parse().ok()? };
    (@read $value:expr, usize) => { $value.parse().ok()? };
    (@read $value:expr, bool) => { $value.parse().ok()? };
    (@read $value:expr, $choice:tt) => { $choice::by_name($value)? };
}

parameters! {
    /// What an engine is built from.
    Config {
        /// Frames of each NUMA node, in pages: at least one node of at least one page. By default one node of 1 GiB.
        node_pages: Vec<u64> = vec![(1 << 30) / crate::units::PAGE_SIZE],
        /// How that memory lies.
        layout: Layout = Layout::default(),
        /// If memory can't be allocated in any other way, a process is killed, as in Linux. Otherwise the access that needs the memory fails.
        oom_kill: bool = false,
        /// Each task has a kernel stack of four pages, from when it first needs memory. A machine whose tasks run on stacks of their process has none.
        kernel_stacks: bool = true,
        /// Pages of a file that one step of a truncation, of fsync(2) or of a write to `drop_caches` takes at most: between two steps others have
        /// their turn. 256 take some 50 microseconds.
        step_pages: u64 = 256,
        /// The same of pages that were busy when a truncation came by first, and that it has waited for. No bound by default, as a kernel has none.
        step_busy_pages: u64 = u64::MAX,
        /// Folios that one step of a promotion moves at most, of a reader's or of kmigrated's. No bound but a batch's, 512, by default, as a kernel has
        /// none.
        step_moves: u64 = u64::MAX,
        /// The debt of an access for `memory.high` is paid when the machine calls for it (`Engine::pay`), and not before the access has ended.
        /// read(2) has copied the page by then, too. A machine that scans pages itself can keep the page meanwhile.
        pays_on_request: bool = false,
        /// Groups pay for their pages in zswap even if they pay for no other kernel memory (`memcg.kmem`). A machine whose page tables and slabs are
        /// not part of its memory needs this, as reclaim of a group writes only pages back that the group pays for.
        kmem_of_zswap: bool = false,
        /// Pages that zswap stores at most, whatever they shrink to: with more, the pool counts as full. A kernel has no such bound. A machine in a process
        /// has a budget for the records of these pages.
        zswap_pages_max: u64 = u64::MAX,
        /// Policy of groups that name none.
        policy: Policy = Policy::of("classic@6.12"),
    }
    Machine "cpus": cpus: u16 = 1, Values::Number(1, 4096), "CPUs",
        "Processors. Tasks and kernel threads compete for them. Each has its own folio batches and charge stock."
        "One CPU makes a run easiest to follow.";
    Machine "hz": hz: u32 = 250, Values::Number(1, 1000), "ticks a second",
        "Timer ticks per second (CONFIG_HZ). The statistics flush and throttling count in ticks."
        "Debian builds its kernels with 250.";
    Machine "tlb_entries": tlb_entries: u32 = 0, Values::Number(0, TLB_ENTRIES_MAX), "translations",
        "Translations that a processor holds for an address space: direct-mapped, a power of two. An access through one of them sets no accessed bit."
        "0: every access sets the bit, as with a small cache that is flushed often.";
    Kernel "folio_batch": folio_batch: usize = 31, Values::Number(1, 255), "folios",
        "Folios a CPU collects before it takes the lruvec lock."
        "31 is the kernel's."
        eras ["14" => "..4.14" "I", "15" => "4.15..6.8" "A", "31" => "6.9.." "B C"];
    Kernel "charge_stock": charge_stock: u64 = 64, Values::Number(1, 4096), "pages",
        "Pages a CPU charges to a cgroup ahead of use."
        "The kernel's MEMCG_CHARGE_BATCH."
        eras ["32" => "..6.0" "h", "64" => "6.1.." "A B C D h"];
    Kernel "reclaim_batch": reclaim_batch: u64 = 32, Values::Number(1, 4096), "folios",
        "Folios isolated at a time; also the smallest target of a reclaim call."
        "The kernel's SWAP_CLUSTER_MAX.";
    Kernel "plug_requests": plug_requests: u32 = 32, Values::Number(1, 65_536), "requests",
        "Swap write requests that reclaim holds back before it submits them. Adjacent pages form one request. The rest is submitted at the end of a pass."
        "The kernel's BLK_MAX_REQUEST_COUNT.";
    Kernel "swap.zero_map": zero_map: bool = true, Values::Bool, "",
        "A page of zeroes that is swapped out becomes a bit of its slot. It is neither written nor compressed, and nothing is read when it is swapped in."
        "true is the kernel's. Without it, zswap and zram have to find such pages."
        eras ["false" => "..6.11" "A", "true" => "6.12.." "B C D"];
    Kernel "zswap.enabled": zswap_enabled: bool = false, Values::Bool, "",
        "Pages that are swapped out are first compressed into memory, in front of the swap device."
        "false is the kernel's own default; some distributions turn it on.";
    Kernel "zswap.max_pool_percent": zswap_max_pool_percent: u8 = 20, Values::Number(0, 100), "%",
        "How much of memory the pool may use. Above this limit, pages go to the device."
        "20 is the kernel's.";
    Kernel "zswap.accept_threshold_percent": zswap_accept_threshold_percent: u8 = 90, Values::Number(0, 100), "%",
        "A full pool accepts pages again when it has shrunk to this share of its limit. 100: it accepts them immediately."
        "90 is the kernel's.";
    Kernel "zswap.shrinker_enabled": zswap_shrinker_enabled: bool = false, Values::Bool, "",
        "Reclaim writes the oldest compressed pages back to the device, in addition to what it takes from the lists. For groups that pay for kernel memory (kernel.memcg.kmem)."
        "false is the kernel's own (CONFIG_ZSWAP_SHRINKER_DEFAULT_ON).";
    Kernel "memcg.stat_flush": stat_flush: StatFlush = StatFlush::Periodic, Values::Choice(StatFlush::NAMES), "",
        "How old the statistics may be that reclaim bases its decisions on."
        "periodic: as of the last flush, every two seconds or when memory.stat is read, as the kernel does. live: always exact. manual: only when memory.stat is read.";
    Kernel "hugetlb.repeat": hugetlb_repeat: bool = true, Values::Bool, "",
        "A request for a huge page of a pool continues as long as reclaim frees something (__GFP_REPEAT, later __GFP_RETRY_MAYFAIL). Without it, the request ends with its first reclaim call, like any large request without the flag."
        "true is the kernel's.";
    Kernel "memcg.kmem": kmem: bool = true, Values::Bool, "",
        "Whether cgroups pay for kernel memory: nodes of page-cache indexes, page tables, kernel stacks. The machine's memory is used in either case."
        "true is the kernel's. The boot parameter cgroup.memory=nokmem turns it off.";
    Kernel "memcg.kmem_counted": kmem_counted: bool = false, Values::Bool, "",
        "Whether cgroups that pay for no kernel memory (kernel.memcg.kmem = false) still own their nodes of page-cache indexes. Their reclaim then frees nodes that hold only shadows. For a group whose limit does not include kernel memory."
        "false: without charges, a kernel has one list of such nodes for the whole machine. The twin of a recording sets it to true.";
    Kernel "memcg.cgroup_version": cgroup_version: u8 = 2, Values::Number(1, 2), "",
        "Version of the cgroup hierarchy. In version 1 a group has no dirty limits and no writeback of its own. Only the machine's limits slow down tasks that dirty its pages, and reclaim at its limit waits for writes instead."
        "2, as every distribution mounts it.";
    Kernel "transparent_hugepage": transparent_hugepage: TransparentHugepage = TransparentHugepage::Never, Values::Choice(TransparentHugepage::NAMES), "",
        "Which anonymous memory uses huge pages of 2 MiB if possible: mappings that ask for them (`task.object.hugepage`), or all. At run time: /sys/kernel/mm/transparent_hugepage/enabled. Except with never, the watermarks leave space for huge pages: min_free_kbytes is raised to 11 pageblocks per zone, at most 5 % of memory."
        "never: folios are single pages, as on the recorded machines that this is compared with. Distributions differ: most use madvise or always, and therefore keep up to 67584 kB free.";
    Kernel "transparent_hugepage_defrag": hugepage_defrag: HugepageDefrag = HugepageDefrag::Madvise, Values::Choice(HugepageDefrag::NAMES), "",
        "What a fault does for a huge page if no block is free. always: it reclaims and compacts, which stalls its task. defer: it asks kswapd and kcompactd for blocks and uses single pages meanwhile. never: it uses single pages. defer+madvise and madvise: it stalls in mappings that ask for huge pages (`task.object.hugepage`); in other mappings it defers (defer+madvise) or does nothing (madvise). At run time: /sys/kernel/mm/transparent_hugepage/defrag."
        "madvise is the kernel's. It is not known here which distributions change it."
        eras ["always" => "..4.5" "m", "madvise" => "4.6.." "m"];
    Kernel "hugepages_16kB": hugepages_16kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 16 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-16kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_32kB": hugepages_32kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 32 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-32kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_64kB": hugepages_64kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 64 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_128kB": hugepages_128kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 128 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-128kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_256kB": hugepages_256kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 256 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-256kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_512kB": hugepages_512kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 512 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-512kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_1024kB": hugepages_1024kb: SizeEnabled = SizeEnabled::Never, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 1024 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-1024kB/enabled."
        "never, as in every kernel.";
    Kernel "hugepages_2048kB": hugepages_2048kb: SizeEnabled = SizeEnabled::Inherit, Values::Choice(SizeEnabled::NAMES), "",
        "Which anonymous memory may have folios of 2048 KiB: none (never), mappings that ask for huge pages (madvise), all (always), or what kernel.transparent_hugepage says (inherit). A size's always holds even if that key is never. Only if `kernel.folio.anon` is all. At run time: /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled."
        "inherit, as in every kernel.";
    Kernel "khugepaged.max_ptes_none": max_ptes_none: u16 = 511, Values::Number(0, 511), "pages",
        "Pages of 2 MiB that may be unused or zeroes. Huge pages with more zeroes are underused: pressure splits them (`kernel.folio.underused`). With 511, none is. Pages are not collapsed here. At run time: /sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none."
        "511 is the kernel's.";
    Kernel "shrink_underused": shrink_underused: bool = true, Values::Bool, "",
        "Whether new huge pages are remembered, so that pressure can split underused ones (`kernel.folio.underused`). At run time: /sys/kernel/mm/transparent_hugepage/shrink_underused."
        "true is the kernel's.";
    Kernel "sched.numa_balancing.scan_delay_ms": scan_delay_ms: u32 = 1000, Values::Number(0, 1_000_000), "ms",
        "CPU time of a new thread before NUMA balancing scans its memory. A new mapping is left alone for the same time."
        "1000 is the kernel's; debugfs has it as a file.";
    Kernel "sched.numa_balancing.scan_period_min_ms": scan_period_min_ms: u32 = 1000, Values::Number(1, 1_000_000), "ms",
        "Shortest period between two scans of all memory of a thread. A scan marks page-table entries that lead to slow memory, or with bit 1 of kernel.numa_balancing to any, so that the next access through them faults. A thread with more than one scan size of memory is scanned proportionally more often."
        "1000 is the kernel's.";
    Kernel "sched.numa_balancing.scan_period_max_ms": scan_period_max_ms: u32 = 60_000, Values::Number(1, 1_000_000), "ms",
        "Longest period between two scans, and the period after which the hot threshold is adjusted."
        "60000 is the kernel's.";
    Kernel "sched.numa_balancing.scan_size_mb": scan_size_mb: u32 = 256, Values::Number(1, 1 << 20), "MiB",
        "How much memory a scan marks."
        "256 is the kernel's.";
    Kernel "sched.numa_balancing.hot_threshold_ms": hot_threshold_ms: u32 = 1000, Values::Number(0, 1_000_000), "ms",
        "A page of slow memory is hot if it is accessed within this time after it was marked. This is the initial threshold. It then follows the rate limit, up to twice and down to an eighth of this value."
        "1000 is the kernel's.";
    Kernel "last_cpupid_bits": last_cpupid_bits: u8 = 10, Values::Number(9, 21), "bits",
        "Bits of a page in which memory tiering stores the time of the mark: 8, plus the bits of a CPU number (CONFIG_NR_CPUS). Up to 12 bits hold 4096 ms, and each further bit doubles that. A page that is accessed later than that looks hot."
        "10: a kernel for up to 4 CPUs, as in the recorded runs. A kernel for 8192 CPUs has 21.";
    Sysctl "kernel.numa_balancing": numa_balancing: u8 = 0, Values::Number(0, 3), "",
        "How the kernel places pages near their users, as a bit mask. 1: pages move to the node of the task that uses them, at the first or second hint fault after a scan has marked them. Tasks stay on their CPUs: the scheduler does not move them to their memory, and threads form no groups. 2: pages of slow memory tiers that are in use are promoted. kswapd of every node then also keeps the pages between its high and its promo watermark free for promoted pages."
        "0: off, as on a machine with one node.",
        Mechanism::shown("mechanisms-tiers.toml", None, "0").trying(&["0", "2"]);
    Sysctl "kernel.numa_balancing_promote_rate_limit_MBps": promote_rate_limit_mbps: u32 = 65_536, Values::Number(0, u32::MAX), "MiB/s",
        "How much memory per second a node of the top tier accepts by promotion."
        "65536, which is no limit, is the kernel's.";
    Kernel "numa.promotion_threshold": promotion_threshold: PromotionThreshold = PromotionThreshold::RateLimit, Values::Choice(PromotionThreshold::NAMES), "",
        "How the kernel decides how recently a page of slow memory must have been used to be promoted when fast memory is short. rate_limit: one step more or less per scan_period_max, by how much the rate limit rejects. capacity: once a second, so that hot memory does not exceed what is free or inactive in fast memory. active: by whether the page is on an active list, and not by time; a page that is not becomes active, as in TPP. The last two are in no kernel."
        "rate_limit, as in all kernels.",
        Mechanism::shown("mechanisms-tiers.toml", None, "capacity");
    Kernel "numa.promotion_governor_ms": promotion_governor_ms: u32 = 0, Values::Number(0, 60_000), "ms",
        "The thrash governor. In windows of this length it compares promotions to a node with demotions from it. If demotions match promotions for three windows, space is made half as often, and half as often again, down to a 64th. Calm windows restore it by eighths. Free memory is used in any case. Demoted pages that a later scan marks show how soon they are used again. If that is less than half as often as for other pages of slow memory, an exchange gains and nothing is governed. No page is marked only for this: if there is nothing to govern, a run with it equals the run without it. 1000 is the intended value. 0: off. In no kernel."
        "0: no kernel has it.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1000").trying(&["0", "1000"]);
    Kernel "numa.misplaced_huge": misplaced_huge: MisplacedHuge = MisplacedHuge::Whole, Values::Choice(MisplacedHuge::NAMES), "",
        "What happens to a huge page that should be promoted when no block of 2 MiB is free. whole: it stays. split: it is promoted page by page. A huge page that is demoted is always split."
        "whole: a misplaced page is not worth the loss of its huge translation.",
        Mechanism::shown("mechanisms-tiers.toml", Some("huge"), "split");
    Kernel "numa.demotion_enabled": demotion_enabled: bool = false, Values::Bool, "",
        "Whether reclaim moves pages of a node to a slower memory tier instead of dropping them or writing them to swap. For machines with such a tier."
        "false is the kernel's; /sys/kernel/mm/numa has it as a file.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "numa.pagecache_promotion_enabled": pagecache_promotion_enabled: bool = false, Values::Bool, "",
        "Whether file pages that are read repeatedly by read(2) leave slow memory. Needs bit 2 of kernel.numa_balancing, and readers without a memory policy (task.membind and similar keys). Proposed in 2025, in no kernel."
        "false, as posted; /sys/kernel/mm/numa has it as a file.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "numa.pagecache_promote_pages_per_work": pagecache_promote_pages_per_work: u32 = 65_536, Values::Number(0, u32::MAX), "pages",
        "Pages that a task promotes at most when it returns from a system call. The posting uses kernel.numa_balancing_promote_rate_limit_MBps for it, which counts MiB and not pages."
        "65536, which is 256 MiB, is the default of that sysctl.",
        Mechanism::shown("mechanisms-tiers.toml", None, "64").trying(&["64", "65536", "4294967295"]);
    Kernel "numa.pagecache_promotion_order": pagecache_promotion_order: PromotionOrder = PromotionOrder::Tail, Values::Choice(PromotionOrder::NAMES), "",
        "Whether pages are promoted in the order in which they were read (tail), or the last one first (head), which costs more."
        "tail, since the third posting.",
        Mechanism::shown("mechanisms-tiers.toml", None, "head");
    Kernel "numa.pagecache_promotion_when": pagecache_promotion_when: PromotionWhen = PromotionWhen::Return, Values::Choice(PromotionWhen::NAMES), "",
        "When pages that are read again are promoted: when the reader returns from its system call (return), or in the middle of the access (access). A reader holds the page that it reads, so no page moves in the middle of an access."
        "return: the postings defer promotion because a task that marks a page accessed may hold locks that promotion also needs.",
        Mechanism::shown("mechanisms-tiers.toml", None, "access");
    Kernel "numa.pagecache_promotion_target": pagecache_promotion_target: PromotionTarget = PromotionTarget::Chosen, Values::Choice(PromotionTarget::NAMES), "",
        "Whether each page goes to the node that was chosen when it was read, or all pages go to the node on which the task runs at promotion."
        "chosen: the posting has local. If a task changes its node in the middle of a call, local moves pages to a node that was never chosen.",
        Mechanism::shown("mechanisms-tiers.toml", None, "local");
    Kernel "numa.pagecache_promotion_mglru": pagecache_promotion_mglru: bool = true, Values::Bool, "",
        "Whether pages under MGLRU are promoted, too, from their sixth read on."
        "true, since the fourth posting; the third left it open.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "pghot.posting": pghot_posting: PghotPosting = PghotPosting::None, Values::Choice(PghotPosting::NAMES), "",
        "Which posting of hot-page tracking sets those keys of kernel.pghot that are not given themselves. v3: the third posting, with its bugs (kernel.pghot.quirks). v5 to v8: as posted, with records of one byte; built for precision they had u32. They differ little. In v5 a window never ends, because vm.pghot_promote_freq_window_ms is 4000 (5000 with u32). v6 had hint faults alone and v7 hardware again, which are sysctls and not set here. v8 has vm.pghot_record_hintfaults_enable = 1. All have vm.pghot_freq_threshold = 2."
        "none: each key has its own default, which combines the best choices of all postings.",
        Mechanism::shown("mechanisms-tiers.toml", None, "v6");
    Kernel "pghot.record": pghot_record: RecordSize = RecordSize::U8, Values::Choice(RecordSize::NAMES), "",
        "Size of a hotness record; each page of a lower tier has one. u8: one byte, which counts to 3 and stores no node. u32: counts to 7 and stores the accessing node. u64: the same with a longer clock."
        "u8, as in the later postings of pghot unless they are built for precision; the third had u64.",
        Mechanism::shown("mechanisms-tiers.toml", None, "u32");
    Kernel "pghot.quirks": pghot_quirks: PghotQuirks = PghotQuirks::None, Values::Choice(PghotQuirks::NAMES), "",
        "v3: include the bugs of the third posting. Fields of the 8-byte record overlap, so that it stores no node and nearly every second report makes a page hot. The computed age prevents all promotion when the top tier is short of free memory and the machine has run longer than 8 seconds, the range of its clock. Reports of pages that can't be promoted are counted with the others. With pghot.record = u64, as it had no other."
        "none: the behaviour that the text of the posting describes.",
        Mechanism::shown("mechanisms-tiers.toml", Some("posted"), "none");
    Kernel "pghot.threshold": pghot_threshold: ThresholdRule = ThresholdRule::Reached, Values::Choice(ThresholdRule::NAMES), "",
        "How many reports within the window make a page hot: as many as vm.pghot_freq_threshold (reached), or one more (exceeded, third posting)."
        "reached, since the fourth posting.",
        Mechanism::shown("mechanisms-tiers.toml", None, "exceeded");
    Kernel "pghot.window_by_node": pghot_window_by_node: bool = false, Values::Bool, "",
        "A report from another node than the last one begins a new window (up to the fourth posting). Without it the newest node replaces the older one. For records that store nodes."
        "false, since the fifth posting.",
        Mechanism::shown("mechanisms-tiers.toml", Some("counted"), "true");
    Kernel "pghot.hint_faults": pghot_hint_faults: HintFaultRule = HintFaultRule::Timed, Values::Choice(HintFaultRule::NAMES), "",
        "How a hint fault is interpreted. counted: the page was accessed once, as with any other report (all postings). timed: the page is hot if the fault comes soon after the mark, by the threshold of balancing itself, or if much memory is free. Otherwise the page was accessed once."
        "timed: faults of a page are seconds apart, so a second fault comes late, and balancing without tracking needs only one. The postings' own tables have vm.pghot_freq_threshold = 1 for this source since the fifth.",
        Mechanism::shown("mechanisms-tiers.toml", None, "counted");
    Kernel "pghot.hint_faults_in_any_window": pghot_hint_faults_in_any_window: bool = true, Values::Bool, "",
        "A hint fault counts however long ago the last report was, because faults of a page are seconds apart. With pghot.hint_faults = counted."
        "true, as in the third posting; otherwise hint faults alone would make no page hot.",
        Mechanism::shown("mechanisms-tiers.toml", Some("counted"), "false");
    Kernel "pghot.default_target": pghot_default_target: DefaultTarget = DefaultTarget::Block, Values::Choice(DefaultTarget::NAMES), "",
        "Where a hot page goes if its record names no node. knob: to vm.pghot_target_nid. nearest: to the nearest top-tier node. block: to the node that last reported its block of 2 MiB, which costs one byte per block."
        "block: with records of one byte and two sockets, the other choices move all pages to one of the sockets. The postings have knob.",
        Mechanism::shown("mechanisms-tiers.toml", None, "knob");
    Kernel "pghot.walk": pghot_walk: HotWalk = HotWalk::Blocks, Values::Choice(HotWalk::NAMES), "",
        "What kmigrated scans: all pages of its node (third posting), sections of 128 MiB with hot pages (since the fifth), or blocks of 2 MiB."
        "blocks: the cost depends on the hot pages only, plus one bit per block.",
        Mechanism::shown("mechanisms-tiers.toml", None, "all");
    Kernel "pghot.refused": pghot_refused: RefusedPage = RefusedPage::Requeue, Values::Choice(RefusedPage::NAMES), "",
        "What happens to a hot page that may not move now. It is forgotten (all postings), or tried again next time."
        "requeue: a page that the rate limit rejected is as hot as before.",
        Mechanism::shown("mechanisms-tiers.toml", None, "forget");
    Kernel "pghot.target_full": pghot_target_full: TargetFull = TargetFull::Room, Values::Choice(TargetFull::NAMES), "",
        "When kmigrated returns to hot pages whose node was full: after its sleep (nap, all postings), or as soon as kswapd has freed memory (room)."
        "room: kswapd needs about a millisecond, and a sleep takes a hundred. Tasks that promote at their faults also retry immediately.",
        Mechanism::shown("mechanisms-tiers.toml", None, "nap");
    Kernel "pghot.clear_stale": pghot_clear_stale: bool = true, Values::Bool, "",
        "A record is cleared when its frame is freed. Without it, the next owner of the frame inherits the record (all postings)."
        "true: heat belongs to a page, not to a frame.",
        Mechanism::shown("regressions/t5-stale-hotness.toml", None, "false");
    Kernel "pghot.age_sweep": pghot_age_sweep: bool = true, Values::Bool, "",
        "kmigrated forgets records older than half a turn of their clock when it visits them. Without it they look new after a whole turn (all postings)."
        "true: 4 seconds without access are enough.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "pghot.coalesce": pghot_coalesce: bool = false, Values::Bool, "",
        "If three quarters of the pages of an aligned block of 64 KiB are hot, kmigrated also moves the other pages of the block."
        "false, as in all postings.",
        Mechanism::shown("mechanisms-tiers.toml", None, "true");
    Kernel "pghot.batch_over": pghot_batch_over: bool = false, Values::Bool, "",
        "kmigrated moves a batch when it exceeds kmigrated_batch_nr, which is one page more (since the fourth posting)."
        "false: the number in the knob.",
        Mechanism::shown("mechanisms-tiers.toml", None, "true");
    Kernel "pghot.batch_by_memcg": pghot_batch_by_memcg: bool = false, Values::Bool, "",
        "A batch of kmigrated ends where a page of another cgroup follows, because a batch is then counted for one cgroup (since the fifth posting). The same pages move in smaller batches, so no shipped scenario's counters change."
        "false: here each page is counted for its own cgroup.",
        Mechanism::UNSEEN;
    Kernel "pghot.kmigrated_sleep_ms": kmigrated_sleep_ms: u32 = 100, Values::Number(50, 1000), "ms",
        "How long kmigrated sleeps before it checks again for hot pages."
        "100 ms in all postings; debugfs has it as a file in the later ones.";
    Kernel "pghot.kmigrated_batch_nr": kmigrated_batch_nr: u32 = 512, Values::Number(64, 1024), "folios",
        "Folios that kmigrated moves at a time."
        "512 in all postings; debugfs has it as a file in the later ones.";
    Kernel "pghot.klruscand_interval_ms": klruscand_interval_ms: u32 = 500, Values::Number(50, 60_000), "ms",
        "Time from the start of one round of klruscand to the start of the next. A round scans the accessed bits of pages on lower tiers."
        "500 in the third posting of pghot; klruscand's own had 2000.";
    Kernel "pghot.klruscand_buffer": klruscand_buffer: u32 = 131_072, Values::Number(32_768, 1 << 24), "pages",
        "Pages that klruscand collects before it reports them. It scans up to 32768 entries in one go."
        "131072 in the third posting.";
    Sysctl "vm.pghot_record_hwhints_enable": pghot_record_hwhints_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether hardware that samples or counts accesses tracks hot pages. The machine defines which hardware, and how often it samples."
        "0: no source is on by default.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["0", "1"]);
    Sysctl "vm.pghot_record_pgtscans_enable": pghot_record_pgtscans_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether klruscand tracks hot pages. This thread scans accessed bits in page tables. It sees groups whose policy walks page tables, which is MGLRU."
        "0: no source is on by default.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["0", "1"]);
    Sysctl "vm.pghot_record_hintfaults_enable": pghot_record_hintfaults_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether hint faults track hot pages. The faults then move nothing themselves."
        "0: no source is on by default.",
        Mechanism::shown("mechanisms-tiers.toml", None, "0").trying(&["0", "1"]);
    Sysctl "vm.pghot_record_fma_enable": pghot_record_fma_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether read(2) of pages that are already in use tracks hot pages (folio_mark_accessed). No other source sees these. In no posting; an unposted branch has it."
        "0, as above.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["0", "1"]);
    Sysctl "vm.pghot_freq_threshold": pghot_freq_threshold: u8 = 2, Values::Number(1, 7), "",
        "Reports within the window that make a page hot. If a record cannot count that far, its largest count is used."
        "2 in all postings.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["1", "2", "3", "7"]);
    Sysctl "vm.pghot_promote_freq_window_ms": pghot_promote_freq_window_ms: u32 = 0, Values::Number(0, 524_287), "ms",
        "Reports of a page that are further apart than this start a new count. The limit has no effect if the record's clock cannot measure it. 0: 3000 with records of 1 byte, 5000 with larger ones."
        "The value that fits the record: a window of 4000 ms would never end on a clock of 3968.";
    Sysctl "vm.pghot_target_nid": pghot_target_nid: u8 = 0, Values::Number(0, 63), "",
        "Where a hot page goes if no report named the accessing node, with pghot.default_target = knob."
        "0 in all postings.";
    Kernel "damon_reclaim.enabled": damon_reclaim: bool = false, Values::Bool, "",
        "Whether DAMON_RECLAIM runs. Its thread, kdamond.0, samples which physical memory is accessed and reclaims memory that was not for damon_reclaim.min_age. It sees huge pages as a whole, and no access whose translation stays in the TLB. Results: /sys/module/damon_reclaim/parameters. Only one module of DAMON can run."
        "false is the kernel's; a module parameter.",
        Mechanism::shown("damon-reclaim.toml", None, "false");
    Kernel "damon_reclaim.min_age": damon_reclaim_min_age: u32 = 120_000_000, Values::Number(0, u32::MAX), "us",
        "Time without an access after which DAMON_RECLAIM reclaims a region."
        "120 s is the kernel's.";
    Kernel "damon_reclaim.quota_ms": damon_reclaim_quota_ms: u32 = 10, Values::Number(0, u32::MAX), "ms",
        "CPU time that DAMON_RECLAIM may use for reclaim per damon_reclaim.quota_reset_interval_ms. 0: any."
        "10 is the kernel's.";
    Kernel "damon_reclaim.quota_sz": damon_reclaim_quota_sz: u32 = 128 << 20, Values::Number(0, u32::MAX), "bytes",
        "Memory that DAMON_RECLAIM may try to reclaim per damon_reclaim.quota_reset_interval_ms. 0: any."
        "128 MiB is the kernel's.";
    Kernel "damon_reclaim.quota_reset_interval_ms": damon_reclaim_quota_reset_interval_ms: u32 = 1000, Values::Number(1, u32::MAX), "ms",
        "Time after which the quota of DAMON_RECLAIM starts again."
        "1000 is the kernel's.";
    Kernel "damon_reclaim.wmarks_interval": damon_reclaim_wmarks_interval: u32 = 5_000_000, Values::Number(1, u32::MAX), "us",
        "Time between two checks of the watermarks while DAMON_RECLAIM is inactive."
        "5 s is the kernel's.";
    Kernel "damon_reclaim.wmarks_high": damon_reclaim_wmarks_high: u32 = 500, Values::Number(0, 1000), "1/1000",
        "Share of free memory above which DAMON_RECLAIM is inactive."
        "500 is the kernel's: it does nothing while half of the memory is free.";
    Kernel "damon_reclaim.wmarks_mid": damon_reclaim_wmarks_mid: u32 = 400, Values::Number(0, 1000), "1/1000",
        "Share of free memory below which DAMON_RECLAIM becomes active. At most wmarks_high."
        "400 is the kernel's.";
    Kernel "damon_reclaim.wmarks_low": damon_reclaim_wmarks_low: u32 = 200, Values::Number(0, 1000), "1/1000",
        "Share of free memory below which DAMON_RECLAIM is inactive, and leaves the work to kswapd. At most wmarks_mid."
        "200 is the kernel's. A server that uses nearly all memory for page cache never runs it; 0 makes it run there.";
    Kernel "damon_reclaim.skip_anon": damon_reclaim_skip_anon: bool = false, Values::Bool, "",
        "Whether DAMON_RECLAIM leaves anonymous memory alone."
        "false is the kernel's.",
        Mechanism::shown("damon-reclaim.toml", None, "true");
    Kernel "damon_lru_sort.enabled": damon_lru_sort: bool = false, Values::Bool, "",
        "Whether DAMON_LRU_SORT runs. Its thread, kdamond.0, moves pages of hot regions towards the hot end of their lists, and pages of cold regions towards the cold end. Only one module of DAMON can run."
        "false is the kernel's; a module parameter.",
        Mechanism::shown("damon-lru-sort.toml", None, "false");
    Kernel "damon_lru_sort.hot_thres_access_freq": damon_lru_sort_hot: u32 = 500, Values::Number(0, 1000), "1/1000",
        "Share of samples with an access from which on DAMON_LRU_SORT counts a region as hot."
        "500 is the kernel's.";
    Kernel "damon_lru_sort.cold_min_age": damon_lru_sort_cold_min_age: u32 = 120_000_000, Values::Number(0, u32::MAX), "us",
        "Time without an access after which DAMON_LRU_SORT counts a region as cold."
        "120 s is the kernel's.";
    Kernel "damon_lru_sort.quota_ms": damon_lru_sort_quota_ms: u32 = 10, Values::Number(0, u32::MAX), "ms",
        "CPU time that DAMON_LRU_SORT may use per damon_lru_sort.quota_reset_interval_ms, half of it for hot and half for cold regions. 0: any."
        "10 is the kernel's.";
    Kernel "damon_lru_sort.quota_reset_interval_ms": damon_lru_sort_quota_reset_interval_ms: u32 = 1000, Values::Number(1, u32::MAX), "ms",
        "Time after which the quotas of DAMON_LRU_SORT start again."
        "1000 is the kernel's.";
    Kernel "damon_lru_sort.wmarks_interval": damon_lru_sort_wmarks_interval: u32 = 5_000_000, Values::Number(1, u32::MAX), "us",
        "Time between two checks of the watermarks while DAMON_LRU_SORT is inactive."
        "5 s is the kernel's.";
    Kernel "damon_lru_sort.wmarks_high": damon_lru_sort_wmarks_high: u32 = 200, Values::Number(0, 1000), "1/1000",
        "Share of free memory above which DAMON_LRU_SORT is inactive."
        "200 is the kernel's.";
    Kernel "damon_lru_sort.wmarks_mid": damon_lru_sort_wmarks_mid: u32 = 150, Values::Number(0, 1000), "1/1000",
        "Share of free memory below which DAMON_LRU_SORT becomes active. At most wmarks_high."
        "150 is the kernel's.";
    Kernel "damon_lru_sort.wmarks_low": damon_lru_sort_wmarks_low: u32 = 50, Values::Number(0, 1000), "1/1000",
        "Share of free memory below which DAMON_LRU_SORT is inactive. At most wmarks_mid."
        "50 is the kernel's.";
    Kernel "damon_stat.enabled": damon_stat: bool = false, Values::Bool, "",
        "Whether DAMON_STAT runs: it estimates the memory bandwidth in use and how long memory is idle, by the intervals that it tunes. It changes nothing but accessed bits. Only one module of DAMON can run."
        "false: distributions differ, and it takes CPU time.";
    Kernel "damon.sample_interval": damon_sample_interval: u32 = 5_000, Values::Number(1, u32::MAX), "us",
        "Time between preparing and testing a page in DAMON_RECLAIM and DAMON_LRU_SORT, which both have this module parameter."
        "5 ms is the kernel's.";
    Kernel "damon.aggr_interval": damon_aggr_interval: u32 = 100_000, Values::Number(1, u32::MAX), "us",
        "Time of an aggregation window of DAMON_RECLAIM and DAMON_LRU_SORT, after which regions merge and split. Patterns count in windows. At least damon.sample_interval."
        "100 ms is the kernel's. Memory in moderate use shows no access within it.";
    Kernel "damon.min_nr_regions": damon_min_nr_regions: u32 = 10, Values::Number(3, 1 << 20), "",
        "Minimum number of regions of DAMON_RECLAIM and DAMON_LRU_SORT: none is larger than all memory over this number."
        "10 is the kernel's.";
    Kernel "damon.max_nr_regions": damon_max_nr_regions: u32 = 1000, Values::Number(3, 1 << 20), "",
        "Maximum number of regions of DAMON_RECLAIM and DAMON_LRU_SORT, at least damon.min_nr_regions."
        "1000 is the kernel's. A machine with machine.page_stands_for = 64 has 64 times as many regions per byte.";
    Sysctl "vm.min_free_kbytes": min_free_kbytes: u32 = 0, Values::Number(0, 1 << 30), "kB",
        "Free memory below which an allocating task has to reclaim first. Zones share it by their size. 0: computed from the size of memory."
        "Computed, as at boot.";
    Sysctl "vm.watermark_scale_factor": watermark_scale_factor: u32 = 10, Values::Number(1, 3000), "1/10000",
        "Minimum distance between the watermarks min, low and high of a zone, as a share of its memory. It determines how much kswapd frees in advance."
        "10, a thousandth, is the kernel's.";
    Sysctl "vm.watermark_boost_factor": watermark_boost_factor: u32 = 15_000, Values::Number(0, 1 << 20), "1/10000",
        "How far the watermarks of a zone rise at most when kernel memory and movable pages have to share a pageblock, as a share of the high watermark. 0: not at all."
        "15000 is the kernel's."
        eras ["0" => "..4.20" "m", "15000" => "5.0.." "m"];
    Sysctl "vm.percpu_pagelist_high_fraction": percpu_pagelist_high_fraction: u32 = 0, Values::Number(0, 1 << 20), "",
        "Share of a zone's pages that all CPUs together may keep free for themselves: one in N, fixed. 0: the number follows how each CPU allocates and frees."
        "0 is the kernel's, which accepts no number below 8.";
    Sysctl "vm.compaction_proactiveness": compaction_proactiveness: u8 = 20, Values::Number(0, 100), "",
        "How fragmented free memory may be before kcompactd moves pages unasked. It starts when the percentage of free pages outside free pageblocks is 10 above 100 minus this value. 0: it compacts only when asked."
        "20 is the kernel's.";
    Sysctl "vm.zone_reclaim_mode": zone_reclaim_mode: u8 = 0, Values::Number(0, 7), "",
        "Whether a node that is short of memory is reclaimed before another node's memory is used, as a bit mask. 1: yes, with clean file pages that are not mapped. 2: dirty pages may be written for it. 4: mapped pages may be reclaimed, and swapped. Without 1 the others have no effect."
        "0 is the kernel's: reading a file from another node's memory is a thousand times faster than from a disk.";
    Sysctl "vm.min_unmapped_ratio": min_unmapped_ratio: u8 = 1, Values::Number(0, 100), "%",
        "A node is reclaimed by vm.zone_reclaim_mode only while the eligible pages exceed this share of it. Eligible are unmapped file pages, or with bit 4 all pages of files, tmpfs and the swap cache."
        "1 is the kernel's.";
    Kernel "fault_around_bytes": fault_around_bytes: u32 = 65_536, Values::Number(4096, 2 << 20), "bytes",
        "A load that faults on a mapped file maps all cached pages of the aligned block of this size around it, in powers of two of a page. A page: only that page."
        "The kernel's own; debugfs has it as a file.";
    Kernel "swap.vma_ra_enabled": vma_ra_enabled: bool = true, Values::Bool, "",
        "Whether swap readahead follows addresses: the pages read with a swapped page are its neighbours in the mapping, unless a swap device seeks. false: always its neighbours on the device."
        "true is the kernel's; /sys/kernel/mm/swap has it as a file.";
    Sysctl "vm.page-cluster": page_cluster: u8 = 3, Values::Number(0, 31), "",
        "Maximum number of swapped pages per read, as a power of two, including the requested page. By address it counts as 5 at most. zram reads only the requested page."
        "3 is the kernel's, on any machine with 16 MiB or more. 0: one page at a time.";
    Sysctl "vm.swappiness": swappiness: u8 = 60, Values::Number(0, 200), "",
        "Cost of file I/O relative to anonymous I/O when reclaim divides its effort. 0 spares anonymous memory, 100 treats both alike, 200 takes anonymous memory only."
        "60 is the kernel's.";
    Sysctl "vm.dirty_ratio": dirty_ratio: u8 = 20, Values::Number(0, 100), "%",
        "Maximum share of memory that could hold dirty file pages (free memory and page cache) that may be dirty. Writers are slowed down before that, from halfway between this and the background threshold."
        "20 is the kernel's.";
    Sysctl "vm.dirty_background_ratio": dirty_background_ratio: u8 = 10, Values::Number(0, 100), "%",
        "Above this share, dirty pages are written in the background. If it is not less than vm.dirty_ratio, half of that applies."
        "10 is the kernel's.";
    Sysctl "vm.dirty_bytes": dirty_bytes: u32 = 0, Values::Number(0, u32::MAX), "bytes",
        "The same as vm.dirty_ratio, in bytes, rounded up to pages. 0: vm.dirty_ratio decides."
        "0 is the kernel's.";
    Sysctl "vm.dirty_background_bytes": dirty_background_bytes: u32 = 0, Values::Number(0, u32::MAX), "bytes",
        "The same as vm.dirty_background_ratio, in bytes. 0: vm.dirty_background_ratio decides."
        "0 is the kernel's.";
    Sysctl "vm.dirty_expire_centisecs": dirty_expire_centisecs: u32 = 3000, Values::Number(0, 8_640_000), "1/100 s",
        "Pages that have been dirty for this long are written, however few they are."
        "30 s is the kernel's.";
    Sysctl "vm.dirty_writeback_centisecs": dirty_writeback_centisecs: u32 = 500, Values::Number(0, 8_640_000), "1/100 s",
        "How often the flusher checks for such pages. 0: never."
        "5 s is the kernel's.";
    Sysctl "vm.laptop_mode": laptop_mode: u32 = 0, Values::Number(0, 86_400), "s",
        "Laptop mode: seconds after the last read from a device until all dirty pages of its files are written, because the disk is spinning. The flusher starts by itself only when a writer is throttled, and reclaim writes nothing at first. Pages that have been dirty for vm.dirty_expire_centisecs are still written. 0: off."
        "0 is the kernel's: the mode is for disks that spin down. Its documentation recommends 5.";
    Recording "interruptions": interruptions: u32 = 0, Values::Number(0, u32::MAX), "",
        "Another thread may run in the middle of a reclaim call. An address space then counts as used since its last walk, so the next walk does not skip it. The seed decides which half of the skips become walks."
        "0: never. A synchronous device that computes for long, such as zram, gives the scheduler time for it.";
}

/// The bit of `kernel.numa_balancing` by which pages follow the CPUs of their tasks.
const NUMA_BALANCING_NORMAL: u8 = 1;
/// The bit of `kernel.numa_balancing` that stands for tiers of memory.
const NUMA_BALANCING_MEMORY_TIERING: u8 = 2;

/// The largest translation buffer, a power of two as all of them are.
const TLB_ENTRIES_MAX: u32 = 65_536;

impl Config {
    /// The switch of a size of anonymous folios; `None` for orders that have none.
    pub fn size_enabled(&mut self, order: u8) -> Option<&mut SizeEnabled> {
        Some(match order {
            2 => &mut self.hugepages_16kb,
            3 => &mut self.hugepages_32kb,
            4 => &mut self.hugepages_64kb,
            5 => &mut self.hugepages_128kb,
            6 => &mut self.hugepages_256kb,
            7 => &mut self.hugepages_512kb,
            8 => &mut self.hugepages_1024kb,
            9 => &mut self.hugepages_2048kb,
            _ => return None,
        })
    }

    /// The orders of anonymous folios that a mapping may have, a bit each: one that asks for huge pages (`is_advised`), or one without advice.
    /// [folios 2.1]
    pub fn anon_folio_orders(&self, is_advised: bool) -> u16 {
        let by_machine = match self.transparent_hugepage {
            TransparentHugepage::Never => false,
            TransparentHugepage::Madvise => is_advised,
            TransparentHugepage::Always => true,
        };
        if self.policy.machine.anon_orders == AnonOrders::Huge {
            return u16::from(by_machine) << 9;
        }
        let sizes = [
            self.hugepages_16kb,
            self.hugepages_32kb,
            self.hugepages_64kb,
            self.hugepages_128kb,
            self.hugepages_256kb,
            self.hugepages_512kb,
            self.hugepages_1024kb,
            self.hugepages_2048kb,
        ];
        let is_allowed = |enabled| match enabled {
            SizeEnabled::Never => false,
            SizeEnabled::Madvise => is_advised,
            SizeEnabled::Inherit => by_machine,
            SizeEnabled::Always => true,
        };
        (2..).zip(sizes).map(|(order, enabled)| u16::from(is_allowed(enabled)) << order).sum()
    }

    /// Period of the statistics worker: two seconds, rounded up to the 8-tick granularity that timers of that length have.
    ///
    /// At 250 Hz that is 504 ticks, 2.016 s, as the ground truth shows. At 1000 Hz a timer of 2000 ticks falls into the band of 64 ticks: 2.048 s.
    pub fn stat_flush_period(&self) -> Nanos {
        let ticks = 2 * u64::from(self.hz);
        let granularity = timer_granularity(ticks);
        Nanos::from_ticks(ticks.div_ceil(granularity) * granularity, self.hz)
    }

    /// The CPUs of a node, if it has any; all of them for a node without, or for no node.
    #[inline]
    pub fn cpus_of(&self, node: Option<NodeId>) -> Range<CpuId> {
        let of_node = node.map(|node| self.layout.cpus_of_node(node, self.cpus));
        of_node.filter(|cpus| !cpus.is_empty()).unwrap_or(CpuId(0)..CpuId(self.cpus))
    }

    /// `vm.pghot_promote_freq_window_ms`, or what suits the record.
    pub fn pghot_window_ms(&self) -> u64 {
        match (self.pghot_promote_freq_window_ms, self.pghot_record) {
            (0, RecordSize::U8) => 3000,
            (0, _) => 5000,
            (window, _) => window.into(),
        }
    }

    /// Returns whether pages of slow tiers are promoted.
    #[inline]
    pub fn is_memory_tiering(&self) -> bool {
        self.numa_balancing & NUMA_BALANCING_MEMORY_TIERING != 0
    }

    /// Returns whether pages follow the CPUs of their tasks.
    #[inline]
    pub fn is_cpu_balancing(&self) -> bool {
        self.numa_balancing & NUMA_BALANCING_NORMAL != 0
    }

    /// Refuses a value outside its range, and memory of a size that there is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_range("nodes", self.node_pages.len() as u64, 1, 64)?;
        self.check_damon()?;
        // The last section is kept back so that a frame number always fits 32 bits, with one value left for "none".
        let frames_max = u64::from(u32::MAX - SECTION_FRAMES);
        for &pages in &self.node_pages {
            check_range("pages of a node", pages, 1, frames_max)?;
        }
        // One more per node for the reserve between its zones.
        let sections: u64 =
            self.node_pages.iter().map(|pages| pages.div_ceil(u64::from(SECTION_FRAMES)) + 1).sum();
        check_range("pages of all nodes", sections * u64::from(SECTION_FRAMES), 1, frames_max)?;
        self.layout.check(&self.node_pages)?;
        let least = self.step_pages.min(self.step_busy_pages).min(self.step_moves);
        check_range("pages of a step", least, 1, u64::MAX)?;
        if self.percpu_pagelist_high_fraction > 0 {
            let fraction = self.percpu_pagelist_high_fraction.into();
            check_range("vm.percpu_pagelist_high_fraction, unless it is 0", fraction, 8, 1 << 20)?;
        }
        PARAMETERS.iter().try_for_each(|parameter| parameter.check(self))?;
        if self.tlb_entries > 0 && !self.tlb_entries.is_power_of_two() {
            return Err(ConfigError::NoPowerOfTwo { what: "tlb_entries", value: self.tlb_entries.into() });
        }
        Ok(())
    }
}

/// Granularity of a timer of so many ticks: one tick up to 63, then eight times coarser with each eightfold length.
fn timer_granularity(ticks: u64) -> u64 {
    let mut granularity = 1;
    while ticks > 63 * granularity {
        granularity *= 8;
    }
    granularity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_its_own_cpus_and_one_without_any_has_all() {
        let cpu_nodes = [0, 0, 1, 1].map(NodeId).to_vec();
        let config =
            Config { cpus: 4, layout: Layout { cpu_nodes, ..Layout::default() }, ..Config::default() };
        assert_eq!(config.cpus_of(Some(NodeId(1))), CpuId(2)..CpuId(4));
        for node in [Some(NodeId(2)), None] {
            assert_eq!(config.cpus_of(node), CpuId(0)..CpuId(4), "{node:?}");
        }
    }

    #[test]
    fn the_flush_period_is_two_seconds_rounded_up_to_the_timer_wheels_granularity() {
        let period = |hz| Config { hz, ..Config::default() }.stat_flush_period();
        assert_eq!(period(250), Nanos(2_016_000_000));
        assert_eq!(period(1000), Nanos(2_048_000_000));
    }

    #[test]
    fn a_config_out_of_range_is_refused_by_name() {
        let config = Config { folio_batch: 0, ..Config::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "folio_batch: 0 is not in the range 1 to 255");
        let config = Config { tlb_entries: 3, ..Config::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "tlb_entries: found 3, expected a power of two");
    }

    #[test]
    fn every_parameter_takes_what_its_range_says_and_nothing_beyond() {
        for parameter in PARAMETERS {
            let takes = |value: &str| {
                let mut config = Config::default();
                let is_set = parameter.set(&mut config, value);
                assert!(!is_set || parameter.get(&config) == value, "{} = {value}", parameter.name);
                assert!(is_set || config == Config::default(), "{} = {value}", parameter.name);
                assert_eq!(config.check(), Ok(()), "{} = {value}", parameter.name);
                is_set
            };
            for value in parameter.values.ends() {
                assert!(takes(&value), "{} = {value}", parameter.name);
            }
            if let Values::Number(least, most) = parameter.values {
                assert!(!takes(&(u64::from(most) + 1).to_string()), "{}", parameter.name);
                assert!(!takes(&(i64::from(least) - 1).to_string()), "{}", parameter.name);
            }
            assert!(!takes("perhaps"), "{}", parameter.name);
        }
    }
}
