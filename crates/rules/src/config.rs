//! Parameters of the engine beside the policy: sizes, sysctls, batches, periods of statistics. Defaults are Linux 6.12's unless a reason
//! says otherwise.
//!
//! Each parameter is one row: its field, default and range, and its words in the reference of scenarios. The check below and
//! the reader of scenarios go through [`PARAMETERS`], as `ablate` goes through the switches.

mod backing;
mod error;
mod layout;
mod parameter;

use crate::choice::{Values, choice};
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

pub use backing::{Bdi, FileKind, FileSpec, SwapKind, SwapSpec};
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
    /// Whose anonymous memory is of huge pages where it can be: `/sys/kernel/mm/transparent_hugepage/enabled`.
    TransparentHugepage {
        /// Nobody's.
        Never = "never",
        /// That of mappings that ask for it by `madvise(MADV_HUGEPAGE)`.
        Madvise = "madvise",
        /// All of it, but that of mappings that ask for none by `madvise(MADV_NOHUGEPAGE)`.
        Always = "always",
    }
}

choice! {
    /// What a fault does for a huge page where no block is free: `/sys/kernel/mm/transparent_hugepage/defrag`.
    HugepageDefrag {
        /// It takes what there is.
        Never = "never",
        /// It reclaims and compacts in mappings that ask for huge pages by `madvise(MADV_HUGEPAGE)`, and takes what there is in others.
        Madvise = "madvise",
        /// It reclaims and compacts in mappings that ask for them. In others it asks kswapd and kcompactd for blocks and takes what there is.
        DeferMadvise = "defer+madvise",
        /// It asks kswapd and kcompactd for blocks, and takes what there is.
        Defer = "defer",
        /// It reclaims and compacts, whoever's memory it is; one round in mappings that did not ask.
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
        /// When memory can't be had in any other way, a process is killed, as Linux does it; else the access fails that needs it.
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
        /// What an access owes for `memory.high` is paid when the machine says so (`Engine::pay`), and not before the access is over. read(2) has copied
        /// the page by then, too; a machine that looks at pages itself can hold on to it meanwhile.
        pays_on_request: bool = false,
        /// Policy of groups that name none.
        policy: Policy = Policy::of("classic@6.12"),
    }
    Machine "cpus": cpus: u16 = 1, Values::Number(1, 4096), "CPUs",
        "Processors. Tasks and kernel threads compete for them; each has its own folio batches and charge stock."
        "One: what runs alone is easiest to follow.";
    Machine "hz": hz: u32 = 250, Values::Number(1, 1000), "ticks a second",
        "Timer ticks a second (CONFIG_HZ). The statistics flush and the throttles count in ticks."
        "250 is what Debian builds.";
    Machine "tlb_entries": tlb_entries: u32 = 0, Values::Number(0, TLB_ENTRIES_MAX), "translations",
        "Translations that a processor holds for an address space, direct-mapped, a power of two. An access through one of them leaves no accessed bit."
        "0: every access shows, as with a small cache that is flushed often.";
    Kernel "folio_batch": folio_batch: usize = 31, Values::Number(1, 255), "folios",
        "Folios a CPU collects before it takes the lruvec lock."
        "31 is the kernel's."
        eras ["14" => "..4.14" "I", "15" => "4.15..6.8" "A", "31" => "6.9.." "B C"];
    Kernel "charge_stock": charge_stock: u64 = 64, Values::Number(1, 4096), "pages",
        "Pages a CPU charges to a cgroup ahead of use."
        "The kernel's MEMCG_CHARGE_BATCH."
        eras ["32" => "..6.0" "h", "64" => "6.1.." "A B C D h"];
    Kernel "reclaim_batch": reclaim_batch: u64 = 32, Values::Number(1, 4096), "folios",
        "Folios isolated at a time, and the least a reclaim call wants."
        "The kernel's SWAP_CLUSTER_MAX.";
    Kernel "plug_requests": plug_requests: u32 = 32, Values::Number(1, 65_536), "requests",
        "Requests of swap writes that reclaim holds back before it submits them. Neighbours are one request. What is left goes at the end of a pass."
        "The kernel's BLK_MAX_REQUEST_COUNT.";
    Kernel "swap.zero_map": zero_map: bool = true, Values::Bool, "",
        "A page of zeroes that is swapped out is a bit of its slot: nothing is written or compressed, and nothing is read when it comes back."
        "true is the kernel's. Without it, zswap and zram have to find such pages."
        eras ["false" => "..6.11" "A", "true" => "6.12.." "B C D"];
    Kernel "zswap.enabled": zswap_enabled: bool = false, Values::Bool, "",
        "Pages that are swapped out are compressed into memory first, in front of the swap device."
        "false is the kernel's own; some distributions turn it on.";
    Kernel "zswap.max_pool_percent": zswap_max_pool_percent: u8 = 20, Values::Number(0, 100), "%",
        "How much of memory the pool may take. Beyond it pages go to the device."
        "20 is the kernel's.";
    Kernel "zswap.accept_threshold_percent": zswap_accept_threshold_percent: u8 = 90, Values::Number(0, 100), "%",
        "A pool that was full takes pages again when it has shrunk to this share of what it may take. 100: at once."
        "90 is the kernel's.";
    Kernel "zswap.shrinker_enabled": zswap_shrinker_enabled: bool = false, Values::Bool, "",
        "Reclaim writes the oldest compressed pages back to the device, beside what it takes from lists. For groups that pay for kernel memory (kernel.memcg.kmem)."
        "false is the kernel's own (CONFIG_ZSWAP_SHRINKER_DEFAULT_ON).";
    Kernel "memcg.stat_flush": stat_flush: StatFlush = StatFlush::Periodic, Values::Choice(StatFlush::NAMES), "",
        "How old the statistics are that reclaim decides by."
        "periodic: as of the last flush, every two seconds or when memory.stat is read, as the kernel does. live: always exact. manual: only when memory.stat is read.";
    Kernel "hugetlb.repeat": hugetlb_repeat: bool = true, Values::Bool, "",
        "Who asks for a huge page of a pool goes on as long as that frees something (__GFP_REPEAT, later __GFP_RETRY_MAYFAIL). Without it a request ends with its first call of reclaim, like any large one that doesn't ask for more."
        "true is the kernel's.";
    Kernel "memcg.kmem": kmem: bool = true, Values::Bool, "",
        "Whether cgroups pay for kernel memory: nodes of page-cache indexes, page tables, kernel stacks. It takes memory of the machine in any case."
        "true is the kernel's. The boot parameter cgroup.memory=nokmem turns it off.";
    Kernel "memcg.kmem_counted": kmem_counted: bool = false, Values::Bool, "",
        "Whether cgroups that pay for no kernel memory (kernel.memcg.kmem = false) own their nodes of page-cache indexes all the same, so that their reclaim frees nodes that hold only shadows. For a group whose limit leaves kernel memory out."
        "false: without charges a kernel has one list of such nodes for the machine. The twin of a recording sets it.";
    Kernel "memcg.cgroup_version": cgroup_version: u8 = 2, Values::Number(1, 2), "",
        "Version of the cgroup hierarchy. In version 1 a group has no dirty limits of its own and no writeback of its own: only the machine's limits slow down who dirties its pages, and reclaim at its limit waits for writes instead."
        "2, as every distribution mounts it.";
    Kernel "transparent_hugepage": transparent_hugepage: TransparentHugepage = TransparentHugepage::Never, Values::Choice(TransparentHugepage::NAMES), "",
        "Whose anonymous memory is of huge pages of 2 MiB where it can be: that of mappings which ask for them (`task.object.hugepage`), or all. While it runs: /sys/kernel/mm/transparent_hugepage/enabled. But for never, the marks of zones leave room for them, too: min_free_kbytes is raised to 11 pageblocks a zone, or 5 % of memory."
        "never: folios are single pages, as on the machines whose recordings this is compared with. Distributions differ: most have madvise or always, and so keep up to 67584 kB free.";
    Kernel "transparent_hugepage_defrag": hugepage_defrag: HugepageDefrag = HugepageDefrag::Madvise, Values::Choice(HugepageDefrag::NAMES), "",
        "What a fault does for a huge page where no block is free: it reclaims and compacts, which stalls its task (always); it asks kswapd and kcompactd for blocks and takes single pages meanwhile (defer); it takes single pages (never); or it stalls in mappings that ask for huge pages (`task.object.hugepage`), and defers (defer+madvise) or does nothing (madvise) in others. While it runs: /sys/kernel/mm/transparent_hugepage/defrag."
        "madvise is the kernel's. Which distributions change it is not known here."
        eras ["always" => "..4.5" "m", "madvise" => "4.6.." "m"];
    Kernel "sched.numa_balancing.scan_delay_ms": scan_delay_ms: u32 = 1000, Values::Number(0, 1_000_000), "ms",
        "CPU time of a new thread before memory tiering looks at its memory, and time that a new mapping is left alone."
        "1000 is the kernel's; debugfs has it as a file.";
    Kernel "sched.numa_balancing.scan_period_min_ms": scan_period_min_ms: u32 = 1000, Values::Number(1, 1_000_000), "ms",
        "How often all of a thread's memory is looked at most: its page-table entries that lead to slow memory are marked, so that the next access through them faults. A thread with more than a scan size of memory is scanned as much more often."
        "1000 is the kernel's.";
    Kernel "sched.numa_balancing.scan_period_max_ms": scan_period_max_ms: u32 = 60_000, Values::Number(1, 1_000_000), "ms",
        "How often at least, and how often the threshold of what is hot moves."
        "60000 is the kernel's.";
    Kernel "sched.numa_balancing.scan_size_mb": scan_size_mb: u32 = 256, Values::Number(1, 1 << 20), "MiB",
        "How much memory a scan marks."
        "256 is the kernel's.";
    Kernel "sched.numa_balancing.hot_threshold_ms": hot_threshold_ms: u32 = 1000, Values::Number(0, 1_000_000), "ms",
        "A page of slow memory is hot if it is accessed so soon after it was marked. It is where the threshold begins, which then follows the rate limit: up to twice as long, down to an eighth."
        "1000 is the kernel's.";
    Kernel "last_cpupid_bits": last_cpupid_bits: u8 = 10, Values::Number(9, 21), "bits",
        "Bits of a page in which memory tiering keeps when it was marked: 8, and as many as CPU numbers have (CONFIG_NR_CPUS). Up to 12 they hold 4096 ms, and each bit more twice that; a page that is accessed later than that looks hot."
        "10: a kernel for up to 4 CPUs, which the recorded runs had. One for 8192 has 21.";
    Sysctl "kernel.numa_balancing": numa_balancing: u8 = 0, Values::Number(0, 3), "",
        "What the kernel does to have pages near those who use them, in bits. 1: pages would follow the CPUs of their tasks; accepted, and without effect here: nothing is marked, counted or moved, and the result says so. 2: pages of slow tiers of memory that are in use are promoted, and kswapd of every node keeps free what lies between its high and its promo mark besides, for pages to come."
        "0: nothing, as on a machine with one node.",
        Mechanism::shown("mechanisms-tiers.toml", None, "0").trying(&["0", "2"]);
    Sysctl "kernel.numa_balancing_promote_rate_limit_MBps": promote_rate_limit_mbps: u32 = 65_536, Values::Number(0, u32::MAX), "MiB/s",
        "How much a node of the top tier takes by promotion."
        "65536, which is no limit, is the kernel's.";
    Kernel "numa.promotion_threshold": promotion_threshold: PromotionThreshold = PromotionThreshold::RateLimit, Values::Choice(PromotionThreshold::NAMES), "",
        "What decides how recently a page of slow memory must have been used to be promoted where fast memory is short. rate_limit: a step more or less in a scan_period_max, by how much the rate limit refuses. capacity: once a second, so that what is hot is no more than what is free or inactive there. active: not when, but whether it is on an active list; one that is not becomes active, as TPP has it. The last two are in no kernel."
        "rate_limit, as all kernels have it.",
        Mechanism::shown("mechanisms-tiers.toml", None, "capacity");
    Kernel "numa.promotion_governor_ms": promotion_governor_ms: u32 = 0, Values::Number(0, 60_000), "ms",
        "The thrash governor: in windows of this length it compares what is promoted to a node with what is demoted from it. Where as many leave as come for three windows, room is made half as often, and half as often again, down to a 64th; calm windows give it back by eighths. What is free is taken all the same. Pages that have left and are marked by a scan afterwards say how soon they are used: where that is less than half as often as others of slow memory, an exchange gains, and nothing is governed. No page is marked for it: without anything to govern, a run with it is the run without it. 1000 is what it is made for. 0: off. In no kernel."
        "0: no kernel has it.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1000").trying(&["0", "1000"]);
    Kernel "numa.misplaced_huge": misplaced_huge: MisplacedHuge = MisplacedHuge::Whole, Values::Choice(MisplacedHuge::NAMES), "",
        "What becomes of a huge page that is to be promoted where no block of 2 MiB is free: it stays where it is (whole), or goes page by page (split). One that is demoted is split in any case."
        "whole: what is only in the wrong place is not worth its translations.",
        Mechanism::shown("mechanisms-tiers.toml", Some("huge"), "split");
    Kernel "numa.demotion_enabled": demotion_enabled: bool = false, Values::Bool, "",
        "Whether reclaim moves pages of a node to a slower tier of memory rather than dropping them or writing them to swap. For machines with such a tier."
        "false is the kernel's; /sys/kernel/mm/numa has it as a file.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "numa.pagecache_promotion_enabled": pagecache_promotion_enabled: bool = false, Values::Bool, "",
        "Whether pages of files that are read by read(2) again and again leave slow memory. With bit 2 of kernel.numa_balancing, for readers without a memory policy (task.membind and its like). Proposed in 2025, in no kernel."
        "false, as posted; /sys/kernel/mm/numa has it as a file.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "numa.pagecache_promote_pages_per_work": pagecache_promote_pages_per_work: u32 = 65_536, Values::Number(0, u32::MAX), "pages",
        "Pages that a task promotes at most when it returns from a system call. The posting takes kernel.numa_balancing_promote_rate_limit_MBps for it, which counts MiB and not pages."
        "65536, 256 MiB, is that number's default.",
        Mechanism::shown("mechanisms-tiers.toml", None, "64").trying(&["64", "65536", "4294967295"]);
    Kernel "numa.pagecache_promotion_order": pagecache_promotion_order: PromotionOrder = PromotionOrder::Tail, Values::Choice(PromotionOrder::NAMES), "",
        "Whether pages are promoted in the order in which they were read (tail), or the last one first (head), which is dearer."
        "tail, since the third posting.",
        Mechanism::shown("mechanisms-tiers.toml", None, "head");
    Kernel "numa.pagecache_promotion_when": pagecache_promotion_when: PromotionWhen = PromotionWhen::Return, Values::Choice(PromotionWhen::NAMES), "",
        "When pages that are read again are promoted: when their reader returns from its system call (return), or in the middle of the access (access). Who reads a page holds it, so that none moves in the middle of an access."
        "return: the postings put promotion off because who marks a page accessed may hold locks that promotion needs, too.",
        Mechanism::shown("mechanisms-tiers.toml", None, "access");
    Kernel "numa.pagecache_promotion_target": pagecache_promotion_target: PromotionTarget = PromotionTarget::Chosen, Values::Choice(PromotionTarget::NAMES), "",
        "Whether each page goes to the node that was chosen when it was read, or all go to the node where the task then runs."
        "chosen: the posting has local, and moves pages to a node that nobody chose where a task changes its node in the middle of a call.",
        Mechanism::shown("mechanisms-tiers.toml", None, "local");
    Kernel "numa.pagecache_promotion_mglru": pagecache_promotion_mglru: bool = true, Values::Bool, "",
        "Whether pages among generations are promoted, too, from their sixth read on."
        "true, since the fourth posting; the third left it open.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "pghot.posting": pghot_posting: PghotPosting = PghotPosting::None, Values::Choice(PghotPosting::NAMES), "",
        "Which posting of hot-page tracking gives the other keys of kernel.pghot that are not given themselves. v3: the third, with its slips (kernel.pghot.quirks). v5 to v8: as posted with records of a byte; built for precision they had u32. They differ little: in v5 a window never ends, as vm.pghot_promote_freq_window_ms is 4000 (5000 with u32); v6 had hint faults alone and v7 hardware again, which are sysctls and not set here; v8 has vm.pghot_record_hintfaults_enable = 1. All have vm.pghot_freq_threshold = 2."
        "none: each key as its own default has it, which takes the best of all postings.",
        Mechanism::shown("mechanisms-tiers.toml", None, "v6");
    Kernel "pghot.record": pghot_record: RecordSize = RecordSize::U8, Values::Choice(RecordSize::NAMES), "",
        "Size of a hotness record, one a page of a lower tier. u8: a byte, which counts to 3 and knows no node. u32: counts to 7 and knows who accessed. u64: the same with a longer clock."
        "u8, as the later postings of pghot have it unless they are built for precision; the third had u64.",
        Mechanism::shown("mechanisms-tiers.toml", None, "u32");
    Kernel "pghot.quirks": pghot_quirks: PghotQuirks = PghotQuirks::None, Values::Choice(PghotQuirks::NAMES), "",
        "v3: these slips of the third posting are there, too. Fields of the 8-byte record overlap, so that there is no node and nearly every second report makes a page hot; an age is computed so that nothing is promoted where the top tier is short of room, once the machine has run for more than the 8 seconds that its time can tell; reports of pages that can't be promoted are counted with the others. With pghot.record = u64, as it had no other."
        "none: what its text says.",
        Mechanism::shown("mechanisms-tiers.toml", Some("posted"), "none");
    Kernel "pghot.threshold": pghot_threshold: ThresholdRule = ThresholdRule::Reached, Values::Choice(ThresholdRule::NAMES), "",
        "How many reports within the window make a page hot: as many as vm.pghot_freq_threshold (reached), or one more (exceeded, third posting)."
        "reached, since the fourth posting.",
        Mechanism::shown("mechanisms-tiers.toml", None, "exceeded");
    Kernel "pghot.window_by_node": pghot_window_by_node: bool = false, Values::Bool, "",
        "A report from another node than the last begins a new window (up to the fourth posting). Without it the newest node simply overwrites. For records that know nodes."
        "false, since the fifth posting.",
        Mechanism::shown("mechanisms-tiers.toml", Some("counted"), "true");
    Kernel "pghot.hint_faults": pghot_hint_faults: HintFaultRule = HintFaultRule::Timed, Values::Choice(HintFaultRule::NAMES), "",
        "What a hint fault says of its page. counted: that it was accessed once, as any other report does (all postings). timed: that it is hot, if it comes soon after the page was marked, by the threshold of balancing itself, or if there is plenty of free memory; else that it was accessed once."
        "timed: faults of a page lie seconds apart, so a second one comes late, and balancing without tracking needs one. The postings' own tables have vm.pghot_freq_threshold = 1 for this source since the fifth.",
        Mechanism::shown("mechanisms-tiers.toml", None, "counted");
    Kernel "pghot.hint_faults_in_any_window": pghot_hint_faults_in_any_window: bool = true, Values::Bool, "",
        "A hint fault counts however long ago the last report was, as faults of a page lie seconds apart. With pghot.hint_faults = counted."
        "true, as the third posting has it; else no page would be hot by hint faults alone.",
        Mechanism::shown("mechanisms-tiers.toml", Some("counted"), "false");
    Kernel "pghot.default_target": pghot_default_target: DefaultTarget = DefaultTarget::Block, Values::Choice(DefaultTarget::NAMES), "",
        "Where a hot page goes if its record names no node: to vm.pghot_target_nid (knob), to the nearest top-tier node (nearest), or to the node from which its block of 2 MiB was reported last (block), which takes a byte a block."
        "block: with records of a byte and two sockets, everything else lands on one of them. The postings have knob.",
        Mechanism::shown("mechanisms-tiers.toml", None, "knob");
    Kernel "pghot.walk": pghot_walk: HotWalk = HotWalk::Blocks, Values::Choice(HotWalk::NAMES), "",
        "What kmigrated looks at: all pages of its node (third posting), sections of 128 MiB in which something became hot (since the fifth), or blocks of 2 MiB."
        "blocks: it costs what is hot, and a bit a block.",
        Mechanism::shown("mechanisms-tiers.toml", None, "all");
    Kernel "pghot.refused": pghot_refused: RefusedPage = RefusedPage::Requeue, Values::Choice(RefusedPage::NAMES), "",
        "What becomes of a hot page that may not move now: it is forgotten (all postings), or tried again the next time."
        "requeue: a page that was refused by the rate limit is as hot as before.",
        Mechanism::shown("mechanisms-tiers.toml", None, "forget");
    Kernel "pghot.target_full": pghot_target_full: TargetFull = TargetFull::Room, Values::Choice(TargetFull::NAMES), "",
        "When kmigrated comes back to hot pages whose node was full: after its nap (nap, all postings), or as soon as kswapd has made room (room)."
        "room: kswapd makes it within a millisecond, and a nap takes a hundred. Tasks that promote at their faults come by again at once, too.",
        Mechanism::shown("mechanisms-tiers.toml", None, "nap");
    Kernel "pghot.clear_stale": pghot_clear_stale: bool = true, Values::Bool, "",
        "A record is cleared when its frame is freed. Without it, whoever gets the frame next inherits what was said (all postings)."
        "true: heat belongs to a page.",
        Mechanism::shown("regressions/t5-stale-hotness.toml", None, "false");
    Kernel "pghot.age_sweep": pghot_age_sweep: bool = true, Values::Bool, "",
        "kmigrated forgets records that are older than half a turn of their clock, where it comes by. Without it they look new after a whole turn (all postings)."
        "true: 4 seconds are no long rest.",
        Mechanism::shown("mechanisms-tiers.toml", None, "false");
    Kernel "pghot.coalesce": pghot_coalesce: bool = false, Values::Bool, "",
        "Where three quarters of the pages of an aligned block of 64 KiB are hot, kmigrated takes the others with them."
        "false, as in all postings.",
        Mechanism::shown("mechanisms-tiers.toml", None, "true");
    Kernel "pghot.batch_over": pghot_batch_over: bool = false, Values::Bool, "",
        "kmigrated moves a batch when it exceeds kmigrated_batch_nr, so by one more (since the fourth posting)."
        "false: what the knob says.",
        Mechanism::shown("mechanisms-tiers.toml", None, "true");
    Kernel "pghot.batch_by_memcg": pghot_batch_by_memcg: bool = false, Values::Bool, "",
        "A batch of kmigrated ends where a page of another cgroup follows, as what moves is counted for one cgroup a batch then (since the fifth posting). Smaller batches of the same pages, so no shipped scenario's counters change."
        "false: here each page is counted for its own.",
        Mechanism::UNSEEN;
    Kernel "pghot.kmigrated_sleep_ms": kmigrated_sleep_ms: u32 = 100, Values::Number(50, 1000), "ms",
        "How long kmigrated sleeps before it looks again whether something is hot."
        "100 ms in all postings; debugfs has it as a file in the later ones.";
    Kernel "pghot.kmigrated_batch_nr": kmigrated_batch_nr: u32 = 512, Values::Number(64, 1024), "folios",
        "Folios that kmigrated moves at a time."
        "512 in all postings; debugfs has it as a file in the later ones.";
    Kernel "pghot.klruscand_interval_ms": klruscand_interval_ms: u32 = 500, Values::Number(50, 60_000), "ms",
        "From the beginning of a round of klruscand, which looks at accessed bits of pages on lower tiers, to that of the next."
        "500 in the third posting of pghot; klruscand's own had 2000.";
    Kernel "pghot.klruscand_buffer": klruscand_buffer: u32 = 131_072, Values::Number(32_768, 1 << 24), "pages",
        "Pages that klruscand remembers before it reports them. It scans up to 32768 entries in one go."
        "131072 in the third posting.";
    Sysctl "vm.pghot_record_hwhints_enable": pghot_record_hwhints_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether hot pages are tracked by hardware that samples or counts accesses; which, and how often, is the machine's."
        "0: no source is on unless someone asks.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["0", "1"]);
    Sysctl "vm.pghot_record_pgtscans_enable": pghot_record_pgtscans_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether hot pages are tracked by klruscand, a thread that looks at accessed bits in page tables. It sees groups whose policy walks page tables: those of generations."
        "0: no source is on unless someone asks.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["0", "1"]);
    Sysctl "vm.pghot_record_hintfaults_enable": pghot_record_hintfaults_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether hot pages are tracked by hint faults, which then move nothing themselves."
        "0: no source is on unless someone asks.",
        Mechanism::shown("mechanisms-tiers.toml", None, "0").trying(&["0", "1"]);
    Sysctl "vm.pghot_record_fma_enable": pghot_record_fma_enable: u8 = 0, Values::Number(0, 1), "",
        "Whether hot pages are tracked by read(2) of pages that are in use already (folio_mark_accessed), which no other source sees. In no posting; an unposted branch has it."
        "0, as above.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["0", "1"]);
    Sysctl "vm.pghot_freq_threshold": pghot_freq_threshold: u8 = 2, Values::Number(1, 7), "",
        "Reports within the window that make a page hot, or as many as a record can count if that is less."
        "2 in all postings.",
        Mechanism::shown("mechanisms-tiers.toml", None, "1").trying(&["1", "2", "3", "7"]);
    Sysctl "vm.pghot_promote_freq_window_ms": pghot_promote_freq_window_ms: u32 = 0, Values::Number(0, 524_287), "ms",
        "Reports of a page further apart than that begin anew. More than its record's clock can tell never is. 0: 3000 with records of 1 byte, 5000 with larger ones."
        "What suits the record: a window of 4000 ms would never end on a clock of 3968.";
    Sysctl "vm.pghot_target_nid": pghot_target_nid: u8 = 0, Values::Number(0, 63), "",
        "Where a hot page goes if nobody said who uses it, with pghot.default_target = knob."
        "0 in all postings.";
    Sysctl "vm.min_free_kbytes": min_free_kbytes: u32 = 0, Values::Number(0, 1 << 30), "kB",
        "Free memory below which who allocates has to reclaim first; zones share it by their size. 0: computed from the size of memory."
        "Computed, as at boot.";
    Sysctl "vm.watermark_scale_factor": watermark_scale_factor: u32 = 10, Values::Number(1, 3000), "1/10000",
        "Least distance between the marks min, low and high of a zone, as a share of its memory: how much kswapd frees in advance."
        "10, a thousandth, is the kernel's.";
    Sysctl "vm.watermark_boost_factor": watermark_boost_factor: u32 = 15_000, Values::Number(0, 1 << 20), "1/10000",
        "How far the marks of a zone rise at most where kernel memory and movable pages have to share a pageblock, as a share of the high mark. 0: not at all."
        "15000 is the kernel's."
        eras ["0" => "..4.20" "m", "15000" => "5.0.." "m"];
    Sysctl "vm.percpu_pagelist_high_fraction": percpu_pagelist_high_fraction: u32 = 0, Values::Number(0, 1 << 20), "",
        "Free pages of a zone that all CPUs together may hold for themselves: one in so many, always. 0: adapted to how each CPU allocates and frees."
        "0 is the kernel's, which takes no number below 8.";
    Sysctl "vm.compaction_proactiveness": compaction_proactiveness: u8 = 20, Values::Number(0, 100), "",
        "How far free pages may lie apart before kcompactd moves others out of the way, unasked. It begins 10 above 100 less this, as a percentage of free pages that are in no free pageblock. 0: it does so only when asked."
        "20 is the kernel's.";
    Sysctl "vm.zone_reclaim_mode": zone_reclaim_mode: u8 = 0, Values::Number(0, 7), "",
        "Whether a node that is short is reclaimed before memory of another is used, in bits. 1: it is, with clean pages of files that nobody maps. 2: what is dirty may be written for that. 4: what is mapped may be taken, and swapped. Without 1 the others do nothing."
        "0 is the kernel's: a file is read from another node's memory a thousand times faster than from a disk.";
    Sysctl "vm.min_unmapped_ratio": min_unmapped_ratio: u8 = 1, Values::Number(0, 100), "%",
        "A node is reclaimed so only while more than this share of it is pages that vm.zone_reclaim_mode lets go: of files and not mapped, or with 4 all pages of files, tmpfs and the swap cache."
        "1 is the kernel's.";
    Kernel "fault_around_bytes": fault_around_bytes: u32 = 65_536, Values::Number(4096, 2 << 20), "bytes",
        "A load that faults on a mapped file maps what is cached in the aligned block of this size around it, in powers of two of a page. A page: it alone."
        "The kernel's own; debugfs has it as a file.";
    Kernel "swap.vma_ra_enabled": vma_ra_enabled: bool = true, Values::Bool, "",
        "Whether swap readahead goes by address: what is read with a swapped page are its neighbours in the mapping, unless some swap device seeks. false: always its neighbours on the device."
        "true is the kernel's; /sys/kernel/mm/swap has it as a file.";
    Sysctl "vm.page-cluster": page_cluster: u8 = 3, Values::Number(0, 31), "",
        "Swapped pages that are read with one that is wanted: 2 to the power of this at most, that one included. By address it counts as 5 at most. zram reads no more than what is wanted."
        "3 is the kernel's, on any machine with 16 MiB or more. 0: one page at a time.";
    Sysctl "vm.swappiness": swappiness: u8 = 60, Values::Number(0, 200), "",
        "Cost of file against anonymous I/O when reclaim divides its effort: 0 spares anonymous memory, 100 treats both alike, 200 takes anonymous memory only."
        "60 is the kernel's.";
    Sysctl "vm.dirty_ratio": dirty_ratio: u8 = 20, Values::Number(0, 100), "%",
        "How much of the memory that could hold dirty pages of files may do so (free memory and page cache). Writers are slowed down on the way there, from halfway between this and the background threshold."
        "20 is the kernel's.";
    Sysctl "vm.dirty_background_ratio": dirty_background_ratio: u8 = 10, Values::Number(0, 100), "%",
        "Above this, dirty pages are written in the background. At half of vm.dirty_ratio if it isn't less than that."
        "10 is the kernel's.";
    Sysctl "vm.dirty_bytes": dirty_bytes: u32 = 0, Values::Number(0, u32::MAX), "bytes",
        "The same as vm.dirty_ratio in bytes, which are rounded up to pages. 0: vm.dirty_ratio decides."
        "0 is the kernel's.";
    Sysctl "vm.dirty_background_bytes": dirty_background_bytes: u32 = 0, Values::Number(0, u32::MAX), "bytes",
        "The same as vm.dirty_background_ratio in bytes. 0: vm.dirty_background_ratio decides."
        "0 is the kernel's.";
    Sysctl "vm.dirty_expire_centisecs": dirty_expire_centisecs: u32 = 3000, Values::Number(0, 8_640_000), "1/100 s",
        "Pages that have been dirty for so long are written however few there are."
        "30 s is the kernel's.";
    Sysctl "vm.dirty_writeback_centisecs": dirty_writeback_centisecs: u32 = 500, Values::Number(0, 8_640_000), "1/100 s",
        "How often the flusher looks for such pages. 0: never."
        "5 s is the kernel's.";
    Sysctl "vm.laptop_mode": laptop_mode: u32 = 0, Values::Number(0, 86_400), "s",
        "Laptop mode: so long after the last read from a device all dirty pages of its files are written at once, because it is awake. And the flusher begins by itself only when a writer is held up, and reclaim writes nothing at first. Pages that have been dirty for vm.dirty_expire_centisecs are written all the same. 0: off."
        "0 is the kernel's: it is for disks that are to sleep. 5 is what its documentation calls sensible.";
    Recording "interruptions": interruptions: u32 = 0, Values::Number(0, u32::MAX), "",
        "Another thread may run in the middle of a reclaim call. An address space then counts as used since its last walk, so the next walk doesn't skip it. The seed decides which half of the would-be skips are walks."
        "0: never. A synchronous device that computes for long, as zram does, gives the scheduler time for it.";
}

/// The bit of `kernel.numa_balancing` that stands for tiers of memory.
const NUMA_BALANCING_MEMORY_TIERING: u8 = 2;

/// The largest translation buffer, a power of two as all of them are.
const TLB_ENTRIES_MAX: u32 = 65_536;

impl Config {
    /// Period of the statistics worker: two seconds, rounded up to the 8-tick granularity that timers of that length have.
    ///
    /// At 250 Hz that is 504 ticks, 2.016 s, which is what the ground truth shows; at 1000 Hz a timer of 2000 ticks falls
    /// into the band of 64 ticks: 2.048 s.
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

    /// Whether pages of slow tiers are promoted.
    #[inline]
    pub fn is_memory_tiering(&self) -> bool {
        self.numa_balancing & NUMA_BALANCING_MEMORY_TIERING != 0
    }

    /// Refuses a value outside its range, and memory of a size that there is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_range("nodes", self.node_pages.len() as u64, 1, 64)?;
        // The last section is kept back so that a frame number always fits 32 bits, with one value left for "none".
        let frames_max = u64::from(u32::MAX - SECTION_FRAMES);
        for &pages in &self.node_pages {
            check_range("pages of a node", pages, 1, frames_max)?;
        }
        // One more a node for the room between its zones.
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
        assert_eq!(config.check().unwrap_err().to_string(), "tlb_entries: 3 is no power of two");
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
