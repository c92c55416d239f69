//! The reclaim policy: every rule's value, for groups and for the machine; and the names that bundle them.
//!
//! A policy is plain data. Choices per group are in [`GroupRules`]: one at each of the four seams, and the rules of a reclaim call for the group.
//! Choices of the machine are in [`MachineRules`]. All rules always exist: a rule of MGLRU has no effect while a group uses the classic LRU. So
//! mechanisms can be exchanged one by one, whichever version they came from. [`crate::switch`] gives each its name: scenarios set it, and `ablate`
//! goes through all of them.
//!
//! A name is a version with its lists, `mglru@6.12` ([`Kernel`]), or one of [`PROFILES`].

use crate::accessed::AccessedBits;
use crate::balance::{Balance, BalanceRule};
use crate::config::{ConfigError, check_range};
use crate::damon::DamonRules;
use crate::declare::rules;
use crate::era::Lists;
use crate::folio::{
    AnonOrders, DeferredQueue, SplitFirst, SwapClusters, SwapInLarge, TmpfsOrders, TmpfsSwapIn, TmpfsSwapOut,
    TruncateSplit, WriteOrder, ZswapLarge,
};
use crate::kernel::Kernel;
use crate::lru::{GenerationRules, Interface, Lru};
use crate::numa_balancing::NumaBalancingRules;
use crate::readahead::{HugeAdviceFiles, ReadaheadExec, ReadaheadOrder, ReadaheadWindow};
use crate::reclaim::{
    AwakeNodes, CompactGap, GivesUp, InitialPriority, KswapdReset, LaptopMode, ProtectionRule, ReclaimRules,
};
use crate::switch::Switch;
use crate::workingset::{RefaultCounters, SwapRoom, Workingset};
use crate::writeback::WritebackRules;
use crate::zswap::ZswapRules;
use pageout_policy::{Listed, POLICIES};
use std::sync::{Mutex, PoisonError};

rules! {
    /// Rules that groups may differ in: a choice at each of the four seams, and what a reclaim call for the group does.
    GroupRules at group as GROUP {
        /// How accessed bits are found.
        harvest: AccessedBits,
        /// How generations are kept, where [`GroupRules::lru`] says that they are.
        generations: GenerationRules,
        /// How much to take of each type.
        balance: Balance,
        /// Rules of a reclaim call.
        reclaim: ReclaimRules,
    }
    "lru.lists": lru: Lru = Lru::TwoLists,
        (crate::lru::LISTS),
        Some(("mechanisms.toml", "two_lists")),
        "Which LRU keeps the pages: the classic lists or MGLRU. The other three seams are independent of it.";
    "lru.executable_protection": executable_protection: bool = true,
        [true => "two_lists .." "A B C D", true => "generations 6.1..6.13" "A B",
            false => "generations 6.14..7.2" "C", true => "generations 7.3.." "D"],
        Some(("program-code.toml", "false")),
        "An executable page of a program stays active after one use. For a time MGLRU had no such rule, because used pages were young anyway. It has the rule again, because a page now has to be found used twice to be young.";
    "reclaim.proactive_counters": proactive_counters: bool = false,
        [false => "..6.14" "A B", true => "6.15.." "M C"],
        Some(("proactive-reclaim.toml", "true")),
        "Pages that memory.reclaim scans and reclaims are counted as pgscan_proactive and pgsteal_proactive. Without it, as direct reclaim.";
    "workingset.swap_room": swap_room: SwapRoom = SwapRoom::Evictor,
        [SwapRoom::Reader => "..6.7" "A m", SwapRoom::Evictor => "6.8.." "B m"],
        Some(("regressions/c13-room-that-a-page-could-not-have-had.toml", "reader")),
        "Whose free swap decides whether a refault distance includes the anonymous lists. `reader`: that of the group that reads the page in. `evictor`: that of the group whose limit evicted it. With reader, a page can look near because the reader's group may swap, although the evicting group could not reclaim anonymous memory. The reverse also happens.";
    "workingset.counters": refault_counters: RefaultCounters = RefaultCounters::Refaults,
        [RefaultCounters::Refaults => "two_lists .." "A B C D", RefaultCounters::Protected => "generations 6.1..6.4" "A h m",
            RefaultCounters::Refaults => "generations 6.5.." "B C D h m"],
        Some(("tiers-of-read-pages.toml", "protected")),
        "How refaults under MGLRU are counted. `protected`: workingset_refault counts only recent refaults and workingset_activate counts pages that eviction protects, so that there are activations without refaults. `refaults`: workingset_refault counts each refault, and workingset_activate the recent ones.";
    "workingset.recency": workingset: Workingset = Workingset::Distance,
        [Workingset::CountOnly => "two_lists ..3.14" "S", Workingset::Distance => "two_lists 3.15.." "S",
            Workingset::OldestGeneration => "generations 6.1..6.13" "A B",
            Workingset::AnyGeneration => "generations 6.14.." "C D"],
        Some(("regressions/m13-no-refault-distance.toml", "distance")),
        "Which refaults show that a page was evicted too early: by distance (distance), by the oldest generation (oldest_generation), by any generation (any_generation), or none (count_only).";
}

rules! {
    /// Rules that are one for the machine: what they decide belongs to no group.
    MachineRules at machine as MACHINE {
        /// Rules of writeback.
        writeback: WritebackRules,
        /// Rules of zswap.
        zswap: ZswapRules,
        /// Rules of DAMON.
        damon: DamonRules,
        /// Rules of NUMA balancing.
        numa_balancing: NumaBalancingRules,
    }
    "readahead.window": readahead_window: ReadaheadWindow = ReadaheadWindow::TwoFunctions,
        [ReadaheadWindow::OneFunction => "6.1..6.10" "A m", ReadaheadWindow::TwoFunctions => "6.12.." "B C D m"],
        Some(("mapped-or-read.toml", "one_function")),
        "How a read decides on readahead: a miss and a marked page each in their own way (two_functions), or both alike (one_function). With one function, a miss just behind the last window immediately continues with the next two windows. Otherwise a new window starts. Readers that skip pages then get more readahead.";
    "folio.xfs": xfs_large_folios: bool = true,
        [false => "..5.17" "m", true => "5.18.." "A B C D"],
        Some(("large-folios.toml", "false")),
        "XFS keeps files in folios of up to 512 pages. Only files on a device with file_system = xfs: without one, all pages are single.";
    "folio.ext4": ext4_large_folios: bool = false,
        [false => "..6.15" "A B", true => "6.16.." "C D M"],
        Some(("large-folios.toml", "true")),
        "ext4 keeps regular files in folios of up to 512 pages. Only files on a device with file_system = ext4.";
    "folio.btrfs": btrfs_large_folios: bool = false,
        [false => "..7.1" "A B", true => "7.2.." "C D M"],
        Some(("large-folios.toml", "true")),
        "btrfs keeps files in folios of up to 64 pages, outside of experimental builds. Only files on a device with file_system = btrfs.";
    "folio.order_one": order_one: bool = true,
        [false => "..6.9" "A", true => "6.10.." "B C D"],
        Some(("large-folios.toml", "false")),
        "The page cache has folios of two pages. Without it, what would be one is two single pages, because a record of the second page was needed for three.";
    "folio.write_order": write_order: WriteOrder = WriteOrder::Length,
        [WriteOrder::Single => "..6.5" "A", WriteOrder::Length => "6.6.." "B C D"],
        Some(("large-folios.toml", "single")),
        "The folios in which write(2) creates pages, if the file system has large ones: single pages (single), or as large as the rest of the call (length).";
    "folio.truncate_split": truncate_split: TruncateSplit = TruncateSplit::All,
        [TruncateSplit::All => "..6.14" "A B", TruncateSplit::AtCut => "6.16.." "C D M"],
        None,
        "The parts of a large folio that a truncation or a hole cuts: single pages (all), or the largest folios on both sides of the cut (at_cut). No shipped scenario cuts a large folio.";
    "folio.tmpfs": tmpfs_orders: TmpfsOrders = TmpfsOrders::Huge,
        [TmpfsOrders::Huge => "..6.13" "A B", TmpfsOrders::Length => "6.14..6.16" "m", TmpfsOrders::Highest => "6.17.." "C D"],
        Some(("large-folios.toml", "highest")),
        "The folios in which write(2) creates pages of tmpfs, if its mount option (`file.huge`) allows large ones. huge: 2 MiB or single pages. length: at most as large as the rest of the call. highest: as large as allowed around the page. A fault has 2 MiB or a single page in each.";
    "folio.anon": anon_orders: AnonOrders = AnonOrders::All,
        [AnonOrders::Huge => "..6.7" "A", AnonOrders::All => "6.8.." "B C D"],
        Some(("anonymous-folios.toml", "huge")),
        "The sizes of anonymous folios. huge: 2 MiB or single pages, by kernel.transparent_hugepage. all: 16 KiB to 2 MiB, each by its own key (`kernel.hugepages_64kB`).";
    "folio.swap_in": swap_in_large: SwapInLarge = SwapInLarge::Synchronous,
        [SwapInLarge::Never => "..6.11" "A m", SwapInLarge::Synchronous => "6.12..6.13" "B m", SwapInLarge::SameGroup => "6.14.." "C D"],
        Some(("anonymous-folios.toml", "never")),
        "Which swapped pages come back as a large folio. never: none. sync: pages of a zram device whose slots are aligned and follow each other, if zswap was never enabled. sync_same_group: the same if one group pays for all slots.";
    "folio.swap_clusters": swap_clusters: SwapClusters = SwapClusters::ByOrder,
        [SwapClusters::HugeOnly => "..6.9" "A M", SwapClusters::FreeOnly => "6.10..6.11" "M", SwapClusters::ByOrder => "6.12..6.17" "B M", SwapClusters::NonfullFirst => "6.18.." "C D M"],
        Some(("regressions/f2-swap-out-of-mixed-orders.toml", "free_only")),
        "How a large folio finds swap slots in a row. huge_only: huge pages in clusters without any page, and smaller folios not at all. free_only: in clusters without any page. by_order: there first, and then in clusters of its order. nonfull_first: in clusters of its order first. Without a row, the folio is split.";
    "folio.swap_rotational": swap_rotational: bool = false,
        [false => "..6.13" "B m", true => "6.14.." "C D m"],
        Some(("predictions/13-huge-pages-to-disk.toml", "true")),
        "A large folio is swapped as a whole to a device that seeks, too. Without it, the folio is split.";
    "folio.zswap": zswap_large: ZswapLarge = ZswapLarge::Device,
        [ZswapLarge::Device => "..6.12" "A B", ZswapLarge::Pages => "6.13.." "C D"],
        Some(("regressions/f7-zswap-passes-large-folios-by.toml", "pages")),
        "What zswap does with a large folio. device: the folio is written to the device, uncompressed. pages: zswap stores it page by page; if it refuses one, all go to the device.";
    "folio.tmpfs_swap": tmpfs_swap_out: TmpfsSwapOut = TmpfsSwapOut::Whole,
        [TmpfsSwapOut::Split => "..6.11" "A m", TmpfsSwapOut::Whole => "6.12.." "B C D"],
        Some(("anonymous-folios.toml", "split")),
        "How a large folio of tmpfs is swapped out: as single pages (split), or as a whole if slots in a row are free (whole).";
    "folio.tmpfs_swap_in": tmpfs_swap_in: TmpfsSwapIn = TmpfsSwapIn::Single,
        [TmpfsSwapIn::Single => "..6.13" "A B", TmpfsSwapIn::Whole => "6.14.." "D K m"],
        None,
        "How pages of tmpfs come back that went to swap as a large folio. single: as single pages. whole: as a large folio again, from zram and if zswap was never enabled. If a group at its limit refuses the folio, one page comes alone, and the others stay together in smaller parts. In the shipped scenarios a group at its limit refuses each.";
    "folio.tmpfs_reads_once": tmpfs_reads_once: bool = false,
        [false => "..6.13" "m", true => "6.14.." "K m"],
        None,
        "A read of tmpfs marks a large folio as used only if it reads its first page. Without it, each page that is read marks its folio. No shipped scenario reads large folios of tmpfs.";
    "folio.split_first": split_first: SplitFirst = SplitFirst::PartlyMapped,
        [SplitFirst::ByEntries => "..6.7" "A", SplitFirst::PartlyMapped => "6.8.." "B C D m"],
        None,
        "Which anonymous folios reclaim splits before it looks for slots. by_entries: all but huge pages that one entry maps, of which there were none but what a partial unmapping had left. partly_mapped: those of which some pages are not mapped.";
    "folio.deferred_queue": deferred_queue: DeferredQueue = DeferredQueue::Group,
        [DeferredQueue::Group => "..7.1" "A B", DeferredQueue::GroupAndNode => "7.2.." "C D M"],
        None,
        "Whose the queues of partly mapped folios are, which a shrinker splits: of a group over all nodes (group), or of a group on a node (group_and_node). With group, pressure on one node splits folios on others.";
    "folio.pageout": pageout_large: bool = true,
        [false => "..6.9" "A m", true => "6.10.." "B C D"],
        None,
        "MADV_PAGEOUT takes a large folio as a whole if the advice is for all of its pages. Without it, the folio is split first. No shipped scenario advises on large folios.";
    "folio.underused": underused: bool = true,
        [false => "..6.11" "A m", true => "6.12.." "B C D"],
        Some(("regressions/f10-underused-huge-pages.toml", "false")),
        "Under pressure, huge pages are split of which more than khugepaged/max_ptes_none pages are zeroes.";
    "readahead.order": readahead_order: ReadaheadOrder = ReadaheadOrder::MarkedFolio,
        [ReadaheadOrder::MarkedFolio => "..6.16" "A B", ReadaheadOrder::Stored => "6.17.." "C D M"],
        Some(("large-folios.toml", "stored")),
        "How readahead knows the order of its last folios, which the next window exceeds by 2: from the folio with the mark (marked_folio), or from the open file (stored). With marked_folio, the alignment of one folio limits all later ones, and reading around a fault already has folios of order 2.";
    "readahead.huge_advice": huge_advice_files: HugeAdviceFiles = HugeAdviceFiles::Any,
        [HugeAdviceFiles::Any => "..7.1" "A B", HugeAdviceFiles::LargeFolios => "7.2.." "C D M"],
        Some(("large-folios.toml", "large_folio_files")),
        "Which files MADV_HUGEPAGE on a mapping reads 2 MiB of at a time: any_file, or large_folio_files, where misses that nothing follows stop it.";
    "readahead.exec": readahead_exec: ReadaheadExec = ReadaheadExec::Around,
        [ReadaheadExec::Around => "..6.16" "A B", ReadaheadExec::Ahead => "6.17.." "C D M"],
        Some(("large-folios.toml", "ahead")),
        "Pages that a fault on an executable mapping of a file reads: those around it (around), or those from there on (ahead). The latter also with MADV_RANDOM.";
    "folio.fault_around": fault_around_whole: bool = false,
        [false => "..6.17" "A B", true => "6.18.." "C D M"],
        Some(("large-folios.toml", "true")),
        "A fault maps all of each large folio that it finds cached around its page. Without it, only those pages of it that lie in the 64 KiB around.";
    "lru.memcg_lru": memcg_lru: bool = true,
        [false => "6.1..6.2" "A", true => "6.3.." "M E B C"],
        Some(("groups-by-age.toml", "false")),
        "Machine-wide reclaim visits groups under MGLRU in the order of the memcg LRU: groups that were aged or had nothing to reclaim come last. Without it, reclaim walks the tree of groups, as with the classic LRU.";
    "lru.memcg_lru_restart": memcg_lru_restart: bool = false,
        [true => "rests ..6.2" "A", true => "6.3..6.6.7" "M", false => "6.6.8.." "M E B"],
        Some(("groups-by-age.toml", "true")),
        "If reclaim has emptied a group's old generation, it continues with the next one. It also ages groups again that it has just aged.";
    "reclaim.protection": protection: ProtectionRule = ProtectionRule::TopDown,
        [ProtectionRule::TopDown => "..6.2" "A", ProtectionRule::AsVisited => "6.3..6.10" "h m",
            ProtectionRule::KswapdOnly => "6.11..7.3.3" "B C h m",
            ProtectionRule::TopDown => "7.3.4.." "D"],
        Some(("regressions/m9-protection-of-grandchildren.toml", "as_visited")),
        "Which protection counts when machine-wide reclaim visits groups in the order of the memcg LRU. `top_down`: what the settings say now. `as_visited`: the value computed when reclaim last visited the parent, so that a group below a group is not protected before that. `kswapd_only`: the value that kswapd computed last, for all reclaimers.";
    "reclaim.awake_nodes": awake_nodes: AwakeNodes = AwakeNodes::Used,
        [AwakeNodes::Used => "..6.17" "S", AwakeNodes::PassedBy => "6.18.." "S"],
        Some(("regressions/n1-a-node-that-others-keep-short.toml", "passed_by")),
        "How the first allocation attempt of a request treats a node whose kswapd is awake. `used`: it takes memory there down to the low watermark. `passed_by`: it skips the node if another has free memory. The rule is the machine's.";
    "reclaim.laptop_mode": laptop_mode: LaptopMode = LaptopMode::Priority,
        [LaptopMode::Scanned => "..2.6.35" "S", LaptopMode::Priority => "6.1..6.19" "A B",
            LaptopMode::Ignored => "7.2.." "C"],
        Some(("laptop-mode.toml", "ignored")),
        "How vm.laptop_mode affects reclaim. `priority`: it writes nothing above priority 9. `scanned`: it writes nothing until it has scanned half as many pages again as it needs. Then it has all dirty pages written. `ignored`: it has no effect.";
    "reclaim.gate": gate: bool = true,
        [false => "..3.5" "m", true => "3.6.." "A B C D m"],
        Some(("regressions/c1-a-walk-of-all-groups.toml", "false")),
        "Tasks that need a page wait for kswapd while less than half of the minimum is free. Without it they go on to direct reclaim, and may use up the memory that kswapd needs for its own work.";
    "reclaim.compact_gap": compact_gap: CompactGap = CompactGap::TwiceTheBlock,
        [CompactGap::TwiceTheBlock => "..7.1" "A B", CompactGap::Capped => "7.2.." "C D"],
        Some(("huge-pages-under-load.toml", "capped")),
        "How many pages reclaim for a block frees before it leaves the rest to compaction: twice the block (twice_the_block), or at most 32 (capped).";
    "reclaim.lumpy": lumpy: bool = false,
        [true => "..3.4" "S", false => "3.5.." "S"],
        Some(("huge-pages-under-load.toml", "true")),
        "A task that needs a block of pages reclaims whole blocks around the oldest pages, used or not, and waits for their writeback. Only with the classic LRU. Without it, single pages are reclaimed and compaction moves the other pages away.";
    "reclaim.gives_up": gives_up: GivesUp = GivesUp::AfterRetries,
        [GivesUp::Unreclaimable => "..4.6" "S", GivesUp::AfterRetries => "4.7.." "S"],
        None,
        "When a request that finds no page invokes the OOM killer. `after_retries`: after 16 rounds without any page. `unreclaimable`: when six times as many pages were scanned as the lists hold, and none was freed meanwhile. It matters if tasks may not write the dirty pages that they meet and wait for kswapd, as in the series of 2010: 16 rounds are soon over then. No shipped scenario's counters change.";
    "reclaim.trim_retry": trim_retry: bool = true,
        [false => "..6.8" "A m", true => "6.10.." "B m"],
        Some(("regressions/c12-dirty-pages-seen-twice.toml", "false")),
        "If a complete run of kswapd has freed nothing and spared anonymous memory because of idle page cache, kswapd runs once more without sparing it. Without it, the run has failed.";
    "reclaim.initial_priority": initial_priority: InitialPriority = InitialPriority::BySize,
        [InitialPriority::Default => "generations 6.1..6.2" "A m", InitialPriority::BySize => "generations 6.11.." "B m"],
        Some(("groups-by-age.toml", "12")),
        "The priority at which machine-wide reclaim under MGLRU begins. 12: as in other calls. by_size: the larger the requested share of the inactive lists, the stronger the priority. Kernels in between had other formulas, which are not modelled.";
    "reclaim.kswapd_reset": kswapd_reset: KswapdReset = KswapdReset::AnyProgress,
        [KswapdReset::AnyProgress => "..6.19" "A B", KswapdReset::Balanced => "7.0.." "C"],
        Some(("regressions/k1-kswapd-that-never-gives-up.toml", "balanced")),
        "When kswapd retries a node that it has given up: when any reclaimer frees a page there (any_progress), or only once enough is free (balanced). With any_progress, a group above its memory.high keeps kswapd awake for nothing.";
}

/// Every rule's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Rules of groups without their own policy.
    pub group: GroupRules,
    /// Rules of the machine.
    pub machine: MachineRules,
}

impl Policy {
    /// The policy of a version or profile; `None` where there is none of this name.
    pub fn by_name(name: &str) -> Option<Policy> {
        match Profile::by_name(name) {
            Some(profile) => Some(profile.policy()),
            None => Kernel::parse(name).map(Kernel::policy),
        }
    }

    /// The policy of a name that exists.
    pub fn of(name: &str) -> Policy {
        Policy::by_name(name).expect("it is the name of a version or a profile")
    }
}

impl Policy {
    /// The kind of lists that it has, if refaults and balance are those that came with them in Linux: then rules of the other kind are not read.
    pub fn natural_lists(&self) -> Option<Lists> {
        let GroupRules { lru, workingset, balance, .. } = self.group;
        match (lru, workingset, balance.rule) {
            (Lru::TwoLists, Workingset::Distance | Workingset::CountOnly, BalanceRule::Cost) => {
                Some(Lists::Classic)
            }
            (
                Lru::Generations,
                Workingset::OldestGeneration | Workingset::AnyGeneration,
                BalanceRule::Feedback,
            ) => Some(Lists::Mglru),
            _ => None,
        }
    }
}

impl GroupRules {
    /// Refuses a number of generations outside its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_range("lru.generations", self.generations.count_max.into(), 2, 64)
    }

    /// Returns the policy that a group gets when `lru_gen/enabled` first switches it: the other family's lists, refaults and balance, of the era
    /// whose interface it has. The way to find accessed bits stays, except the look-around, which only MGLRU has. The rules of a call stay, too,
    /// except the condition for asking the flushers to write.
    pub fn with_generations(self, enabled: bool) -> GroupRules {
        if enabled == (self.lru == Lru::Generations) {
            return self;
        }
        let other = match (enabled, self.generations.interface) {
            (false, _) => Policy::of("classic@6.12").group,
            (true, Interface::Linux6_12) => Policy::of("mglru@6.12").group,
            (true, Interface::Linux6_16) => Policy::of("mglru@6.16").group,
        };
        let harvest = AccessedBits { look_around: other.harvest.look_around, ..self.harvest };
        let ReclaimRules { flusher_wake, batch_tallies, v1_throttle, .. } = other.reclaim;
        let reclaim = ReclaimRules { flusher_wake, batch_tallies, v1_throttle, ..self.reclaim };
        GroupRules { harvest, generations: self.generations, reclaim, swap_room: self.swap_room, ..other }
    }
}

/// A name for rules that no version has as a whole, or for a version that is known by another name.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name of the profile in scenarios.
    pub name: &'static str,
    /// Description in one sentence.
    pub doc: &'static str,
    /// The version that it begins with.
    pub kernel: &'static str,
    is_version: bool,
    /// Rules in which it differs from that.
    pub rules: &'static [(&'static str, &'static str)],
    /// Parameters in which it differs from that.
    pub parameters: &'static [(&'static str, &'static str)],
}

impl Profile {
    /// The profile of this name.
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|profile| profile.name == name).or_else(|| of_own(name))
    }

    /// The version that it begins with.
    pub fn kernel(&self) -> Kernel {
        Kernel::parse(self.kernel).expect("a profile begins with a version")
    }

    /// Returns whether it is a version under another name, and not rules that no version has or a reference.
    pub fn is_version(&self) -> bool {
        self.is_version
    }

    /// Its rules.
    pub fn policy(&self) -> Policy {
        let mut policy = self.kernel().policy();
        for (name, value) in self.rules {
            let is_set = Switch::by_name(name).is_some_and(|switch| switch.set(&mut policy, value));
            assert!(is_set, "{}: no rule {name} takes {value}", self.name);
        }
        policy
    }
}

/// The parameters of a version or profile that are others than the newest: their names and values.
pub fn parameters_of(name: &str) -> Vec<(&'static str, &'static str)> {
    match Profile::by_name(name) {
        Some(profile) => {
            let mut parameters = profile.kernel().parameters();
            parameters.retain(|(name, _)| !profile.parameters.iter().any(|(own, _)| own == name));
            parameters.extend(profile.parameters);
            parameters
        }
        None => Kernel::parse(name).map_or_else(Vec::new, Kernel::parameters),
    }
}

/// All profiles: those of kernels, and one for each policy that is a guest.
pub const PROFILES: &[Profile] = &ALL;

static ALL: [Profile; OF_KERNELS.len() + POLICIES.len()] = {
    let mut all = [OF_KERNELS[0]; OF_KERNELS.len() + POLICIES.len()];
    let mut at = 1;
    while at < all.len() {
        all[at] = match at < OF_KERNELS.len() {
            true => OF_KERNELS[at],
            false => of_guest(at - OF_KERNELS.len()),
        };
        at += 1;
    }
    all
};

/// By guest: the rules that its profile has besides those of a kernel. A refault is counted, and means nothing to it that it does not
/// remember itself.
static OF_GUESTS: [[(&str, &str); 2]; POLICIES.len()] = {
    let mut rules = [[("lru.lists", ""), ("workingset.recency", "count_only")]; POLICIES.len()];
    let mut at = 0;
    while at < rules.len() {
        rules[at][0].1 = POLICIES[at].name;
        at += 1;
    }
    rules
};

const fn of_guest(at: usize) -> Profile {
    let Listed { name, doc, .. } = POLICIES[at];
    Profile { name, is_version: false, doc, kernel: "classic@6.12", rules: &OF_GUESTS[at], parameters: &[] }
}

/// The profile of a policy that was brought: what a guest's is.
fn of_own(name: &str) -> Option<&'static Profile> {
    static OF_OWN: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());
    let Listed { name, doc, .. } = *Listed::own(name)?;
    let mut all = OF_OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(profile) = all.iter().find(|profile| profile.name == name) {
        return Some(profile);
    }
    let rules: &'static [_] = Box::leak(Box::new([("lru.lists", name), OF_GUESTS[0][1]]));
    let profile = Profile { name, is_version: false, doc, kernel: "classic@6.12", rules, parameters: &[] };
    let profile: &'static Profile = Box::leak(Box::new(profile));
    all.push(profile);
    Some(profile)
}

const OF_KERNELS: &[Profile] = &[
    Profile {
        name: "classic@6.12",
        is_version: true,
        doc: "Classic LRU of Linux 6.12.",
        kernel: "classic@6.12",
        rules: &[],
        parameters: &[],
    },
    Profile {
        name: "classic@2026",
        is_version: true,
        doc: "Classic LRU of Linux 7.3, of October 2026.",
        kernel: "classic@7.3",
        rules: &[],
        parameters: &[],
    },
    Profile {
        name: "mglru@v4-2021",
        is_version: false,
        doc: "MGLRU as posted for the fourth time in August 2021, before it was merged (https://lore.kernel.org/linux-mm/20210818063107.2696454-1-yuzhao@google.com/). The following is known from descriptions of the postings around it [machine 9.1]. It keeps up to seven generations (the default of November 2021). A page that needs a write, or was in use when it was evicted, joins the second oldest. Aging happens only when both types are down to the two youngest. It has no Bloom filter, no memcg LRU and no map of zero pages, and batches hold 15. The rest is unknown and follows 6.12: which refaults are recent, the controller's constants, how many pages a round scans. zswap is that of 6.8, without its shrinker.",
        kernel: "mglru@6.12",
        rules: &[
            ("harvest.bloom_filter", "false"),
            ("lru.aging", "v4-2021"),
            ("lru.full_count", "false"),
            ("lru.generations", "7"),
            ("lru.memcg_lru", "false"),
            ("lru.new_anon", "second_oldest"),
            ("lru.new_file", "by_workingset"),
            ("reclaim.protection", "top_down"),
            ("reclaim.v1_throttle", "off"),
            ("workingset.restore", "full"),
            ("zswap.protection", "6.8"),
            ("zswap.same_filled", "true"),
            ("zswap.worker", "restart"),
        ],
        parameters: &[("folio_batch", "15"), ("swap.zero_map", "false")],
    },
    Profile {
        name: "mglru@6.12",
        is_version: true,
        doc: "Generations of Linux 6.12.",
        kernel: "mglru@6.12",
        rules: &[],
        parameters: &[],
    },
    Profile {
        name: "mglru@6.16",
        is_version: true,
        doc: "Generations of Linux 6.16.",
        kernel: "mglru@6.16",
        rules: &[],
        parameters: &[],
    },
    Profile {
        name: "mglru@7.1",
        is_version: true,
        doc: "MGLRU of Linux 7.1, of June 2026.",
        kernel: "mglru@7.1",
        rules: &[],
        parameters: &[],
    },
    Profile {
        name: "mglru@2026",
        is_version: true,
        doc: "MGLRU of Linux 7.3.0, of October 2026.",
        kernel: "mglru@7.3.0",
        rules: &[],
        parameters: &[],
    },
    Profile {
        name: "mglru@next",
        is_version: false,
        doc: "Linux 7.3 with the changes that are queued for the next release. A page that reclaim could not free restarts its access count. A reclaimer that may do no I/O leaves anonymous memory alone.",
        kernel: "mglru@7.3",
        rules: NEXT,
        parameters: &[],
    },
    Profile {
        name: "mglru-fg",
        is_version: false,
        doc: "mglru@next with frequency guided promotion, as posted for the third time in October 2026. Not merged. Its earlier postings also used the refault distance; this one does not.",
        kernel: "mglru@7.3",
        rules: &[
            ("balance.ref_tier_gains", "1:2"),
            ("balance.tier_reference", "all_below"),
            ("lru.fault_in", "like_read"),
            ("lru.gauges", "count"),
            ("lru.new_file", "by_count"),
            ("lru.references", "fg3"),
            NEXT[0],
            NEXT[1],
        ],
        parameters: &[],
    },
    Profile {
        name: "classic@2010",
        is_version: true,
        doc: "The LRU of mid-2010 with respect to dirty pages. Every reclaimer writes the dirty pages that it meets, and waits with congestion_wait. Reclaim alone makes blocks of pages. A task that dirties too much writes by itself, and refaults have no effect. Its file systems write the pages that reclaim hands them; XFS and btrfs of that summer did not (reclaim.writepage). Not modelled: lists per zone.",
        kernel: "classic@2.6.35",
        rules: OF_2010,
        parameters: &[("charge_stock", "64")],
    },
    Profile {
        name: "classic@2010-nodirect",
        is_version: false,
        doc: "Linux 2.6.35 with the series \"avoid overflowing of stack during page reclaim\", third posting of June 2010: a task in machine-wide reclaim writes nothing, not even to swap.",
        kernel: "classic@2.6.35",
        rules: &[
            ("reclaim.file_writeback", "not_direct"),
            ("reclaim.anon_writeback", "not_direct"),
            OF_2010[0],
            OF_2010[1],
            OF_2010[2],
            OF_2010[3],
            OF_2010[4],
            OF_2010[5],
        ],
        parameters: &[("charge_stock", "64")],
    },
    Profile {
        name: "classic@6.8",
        is_version: true,
        doc: "Classic LRU of Linux 6.8.",
        kernel: "classic@6.8",
        rules: &[],
        parameters: &[],
    },
];

/// What waits for the release after 7.3.
const NEXT: &[(&str, &str)] = &[("lru.rejected_use", "clear"), ("reclaim.noio_anon", "skip_low_swapcache")];

/// Rules of 2010 that are assumed to equal those of today.
const OF_2010: &[(&str, &str)] = &[
    ("balance.cost", "events"),
    ("balance.swappiness_zero", "never"),
    ("reclaim.swap_cache_bypass", "true"),
    ("reclaim.tree_walk", "shared"),
    ("zswap.same_filled", "false"),
    ("zswap.worker", "cursor"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::{FlushRule, FlusherWake};

    #[test]
    fn switching_the_lists_keeps_the_rules_of_a_reclaim_call() {
        let mut classic = Policy::of("classic@6.12").group;
        classic.reclaim.stat_flush = FlushRule::Updates;
        classic.reclaim.force_active_anon = true;
        let switched = classic.with_generations(true);
        assert_eq!(switched.lru, Lru::Generations);
        assert_eq!(switched.reclaim.stat_flush, FlushRule::Updates);
        // But for what two lists and generations do each in their own way.
        assert_eq!(switched.reclaim.flusher_wake, FlusherWake::Pass);
        assert_eq!(switched.with_generations(false), classic);
    }

    #[test]
    fn every_profile_begins_with_a_version_and_says_nothing_twice() {
        for profile in PROFILES {
            let (of_version, policy) = (profile.kernel().policy(), profile.policy());
            for (name, value) in profile.rules {
                let switch = Switch::by_name(name).expect("a profile names rules");
                assert_eq!(switch.get(&policy), *value, "{}: {name}", profile.name);
                assert_ne!(switch.get(&of_version), *value, "{}: {name} is so anyway", profile.name);
            }
        }
    }

    #[test]
    fn no_version_before_6_12_has_a_map_of_pages_of_zeroes() {
        for (name, has_one) in [("classic@6.11", false), ("classic@6.8", false), ("classic@6.12", true)] {
            let has_none = parameters_of(name).contains(&("swap.zero_map", "false"));
            assert_eq!(has_none, !has_one, "{name}");
        }
    }
}
