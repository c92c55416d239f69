//! Rules of a reclaim call that have a default and an alternative: when it brings statistics up to date, who writes dirty pages,
//! who is asked to, who waits for that, and what a call tries before it gives up.
//!
//! **Who writes.** In 2010 whoever met a dirty page at the end of a list wrote it, one page at a time, deep in the stack of
//! whatever it was that needed memory. Writing was taken from tasks first, then from kswapd but for pages that it met a second
//! time, and then from reclaim altogether. The flusher writes better: in the order of the file rather than in that of the list.
//! What is left to reclaim is to ask for it in time, and to wait where nothing else is left. [reclaim 5.1 to 5.5; machine 9.4]
//!
//! **Old statistics.** Linux 6.12 gives up too early where a group's anonymous pages turn over faster than its statistics are flushed. All listed
//! pages have become active since the last flush, reclaim's statistics do not show it, and a pass looks at nothing. One of these
//! rules was lost between 6.1 and 6.12. The others are remedies that no kernel has. The drain only puts the end off; each of the
//! others prevents it. `docs/results/premature-oom.md` shows what each does, and what it costs where nothing was wrong.

use crate::choice::choice;

choice! {
    /// When a pass over two lists brings the statistics of all groups up to date before it decides by them.
    FlushRule {
        /// When the periodic worker is late by a whole period. Linux 6.12.
        WorkerLate = "6.12",
        /// When the CPUs have told the machine of enough updates. Linux 6.1.
        Updates = "6.1",
    }
}

choice! {
    /// Which groups a call looks at that reclaims for a limit, or for a task that needs a page, where a tree of groups is walked.
    TreeWalk {
        /// A part: reclaimers share one walk, and a call that found nothing in its part looks at all groups before it gives up.
        /// Since Linux 6.10.
        Shared = "shared",
        /// All groups at every priority. Linux 5.19 to 6.9.
        Full = "full",
        /// A part, and nothing more before it gives up. Before Linux 5.19.
        SharedOnly = "shared_only",
    }
}

choice! {
    /// Which reclaimers write a dirty page of a file that they meet.
    FileWriteback {
        /// All that may enter a file system. Linux up to 3.1.
        Any = "any",
        /// All but tasks that reclaim for the machine: they pass dirty pages by, have the flusher write as many, and wait. The
        /// series "avoid overflowing of stack during page reclaim" of 2010.
        NotDirect = "not_direct",
        /// kswapd, once it is in earnest. Linux 3.2 to 4.10.
        KswapdOnly = "kswapd_only",
        /// kswapd, a page that it meets a second time, where nothing but dirty pages came to the end of the lists. Linux 4.11 to
        /// 6.15, on file systems that write single pages at all.
        SeenTwice = "seen_twice",
        /// Nobody. Linux since 6.16, and before that on ext4 and XFS, which have no way to write a single page.
        Never = "never",
    }
}

choice! {
    /// By which settings of the groups above a group is protected that reclaim for the machine comes by in the order of the memcg LRU.
    ProtectionRule {
        /// By those that they have now, worked out from the top down: where groups are walked by their tree, and queued for the
        /// release after 7.3.
        TopDown = "top_down",
        /// By what was worked out for its parent when reclaim last came by that, which is nothing before. Linux 6.1 to 6.10.
        AsVisited = "as_visited",
        /// By what kswapd has worked out before its last pass over the node, which is nothing before its first: who else reclaims for
        /// the machine works nothing out. 6.11 to 7.3: it came with the mending of the second rule, was found in September 2026, and
        /// mended it is the first one again.
        KswapdOnly = "kswapd_only",
    }
}

choice! {
    /// Which reclaimers write pages to swap.
    AnonWriteback {
        /// All reclaimers.
        Any = "any",
        /// All but tasks that reclaim for the machine, as the third posting of the series of 2010 had it.
        NotDirect = "not_direct",
    }
}

choice! {
    /// What a request to `memory.reclaim` with `swappiness=max` means: anonymous memory only.
    AnonOnly {
        /// There is no such request. Up to 6.14.
        Absent = "absent",
        /// File memory instead, where no anonymous page can be swapped or demoted: no swap is told from a swappiness of 0. 6.15 to
        /// 7.1.
        OrFile = "or_file",
        /// Nothing is taken there. Since 7.2.
        Strict = "strict",
    }
}

choice! {
    /// What a signal does to a request to `memory.reclaim` that is under way.
    OnSignal {
        /// Nothing: the request goes on until it has what it was asked for or gives up, and the signal is answered after that. Up to
        /// 7.0, as we infer: our source tells of the change alone.
        GoesOn = "goes_on",
        /// The request ends after its batch, and its write fails (EINTR). Since 7.1 or 7.2; which of them, our source leaves open.
        /// It tells of generations. A request knows no lists, so two lists of 2026 have it too.
        Ends = "ends",
    }
}

choice! {
    /// When reclaim asks the flushers to write all that is dirty.
    FlusherWake {
        /// Never: generations as of 6.1 to 6.9.
        Never = "never",
        /// A pass over a group's lists has met nothing but dirty pages. Generations as of 6.12.
        Pass = "pass",
        /// A batch holds nothing but dirty pages. Two lists, and generations since 7.2.
        Batch = "batch",
        /// A call has looked at half as many pages again as it wants to free. Linux up to 3.x.
        Scanned = "scanned",
    }
}

choice! {
    /// Whether reclaim for a group of cgroup v1 waits where it has asked the flushers to write. There, nobody who dirties pages of
    /// a group is slowed down before the group is full of them.
    V1Throttle {
        /// Reclaim doesn't wait. Generations before 7.1.
        Off = "off",
        /// After a pass. Generations as of 7.1.
        AfterPass = "after_pass",
        /// After a batch. Two lists, and generations since 7.2.
        Batch = "batch",
    }
}

choice! {
    /// How reclaimers wait for pages that are being written.
    Stalls {
        /// For a reason, as short as that asks for, and until it is gone. Linux since 5.16.
        Throttle = "throttle",
        /// For a tenth of a second, or until a device is no longer congested, whatever the reason. 2010.
        CongestionWait = "congestion_wait",
    }
}

choice! {
    /// What a reclaimer does with a dirty page of a file whose device has as many requests as it takes, but for a few.
    CongestedQueue {
        /// The reclaimer submits the write, and sleeps until there is room.
        Waits = "waits",
        /// The reclaimer keeps the page. kswapd writes all the same, and so does a task in the middle of a write of its own. 2010.
        Keeps = "keeps",
    }
}

choice! {
    /// What a file system does with a page that reclaim hands it to write (`writepage`).
    Writepage {
        /// The file system writes it.
        Obeys = "obeys",
        /// The file system marks the page dirty again and leaves it to the flusher, because a reclaimer's stack may be deep. Reclaim has begun a write all the
        /// same, by its counters and tracepoints. XFS and btrfs of mid-2010, and most of ext4, whoever reclaims.
        Redirties = "redirties",
    }
}

choice! {
    /// What anonymous memory is to a reclaimer of two lists that may do no I/O.
    NoioAnon {
        /// Scanned like any other, and all of it kept that is not in the swap cache already. Up to 7.3.
        Scan = "scan",
        /// Left alone where less than a 64th of it is in the swap cache: a pass over it had looked at 93,000 pages and freed none. Queued
        /// for the release after 7.3.
        SkipLowSwapcache = "skip_low_swapcache",
    }
}

choice! {
    /// What makes a hopeless node hopeful again, whose kswapd has run sixteen times for nothing.
    KswapdReset {
        /// A page that anyone reclaims there. Then kswapd runs and runs beside a group that its `memory.high` makes reclaim. Up to 6.19.
        AnyProgress = "any_progress",
        /// A page that anyone reclaims there, but only once enough is free. A run for a boost doesn't count as failed. Since 7.0.
        Balanced = "balanced",
    }
}

choice! {
    /// What becomes of pages that are to be demoted while slower memory is full.
    DemotionFull {
        /// Pages that can't be demoted are swapped out or dropped, while colder pages stay in the slower memory.
        ReclaimHere = "reclaim_here",
        /// A batch of the slower memory's coldest pages goes first, and then they are tried once more.
        ReclaimTarget = "reclaim_target",
    }
}

choice! {
    /// Whether demotion keeps to the nodes of the group whose pages it moves (`cpuset.mems`).
    DemotionMems {
        /// Demotion does not ask. Up to 6.18.
        Ignored = "ignored",
        /// Demotion asks for the nearest nodes of the next tier only: where the group has none of them, its pages stay.
        NearestOnly = "nearest_only",
        /// Any slower node of the group will do, the nearest first. Since 2026.
        Respected = "respected",
    }
}

choice! {
    /// Whose the pages of a removed group are.
    OfflinePages {
        /// The removed group's own: they stay on its lists until they are reclaimed there. Up to 7.0.
        Keep = "keep",
        /// The parent's, at the cold end of its lists. Since 7.1.
        Reparent = "reparent",
    }
}

choice! {
    /// How many pages reclaim for a block frees before it leaves the rest to compaction.
    CompactGap {
        /// Twice the block. Up to 7.1.
        TwiceTheBlock = "twice_the_block",
        /// Twice the block, but no more than a reclaimer's batch of 32: for a huge page it had freed 1024, which tore holes without making
        /// one. Since 7.2.
        Capped = "capped",
    }
}

choice! {
    /// How many pages of zones that are no use to it a reclaimer passes by on its way to a batch from a list.
    ZoneSkip {
        /// 32,768; then it takes whatever comes. The sources have that of 6.16; 6.12 is taken to be the same.
        Bounded = "bounded",
        /// As many as there are, with the list locked: over 150 million, as was reported of 6.x in 2024.
        Unbounded = "unbounded",
    }
}

choice! {
    /// What the first try of a request makes of nodes whose kswapd is awake.
    AwakeNodes {
        /// They are used like others, down to their low mark. Up to 6.17.
        Used = "used",
        /// They are passed by where another node has room. Since 6.18.
        PassedBy = "passed_by",
    }
}

choice! {
    /// When a request that finds no page asks for someone's end.
    GivesUp {
        /// After 16 rounds without any page, or when all that could be taken would not do. Since 4.7.
        AfterRetries = "after_retries",
        /// When six times as many pages were looked at as there are on the lists, and none was freed meanwhile. 2010.
        Unreclaimable = "unreclaimable",
    }
}

choice! {
    /// What laptop mode (`vm.laptop_mode`) is to reclaim.
    LaptopMode {
        /// The reclaimer writes nothing above priority 9. Up to 7.x.
        Priority = "priority",
        /// The reclaimer writes nothing until it has looked at half as many pages again as it wants, and then asks for all that is
        /// dirty. 2010.
        Scanned = "scanned",
        /// Nothing. By 7.3.
        Ignored = "ignored",
    }
}

/// What a reclaim call does about old statistics and dirty pages, which groups it comes by, and what it does before it gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimRules {
    /// When a pass over two lists flushes.
    pub stat_flush: FlushRule,
    /// Which groups a call comes by.
    pub tree_walk: TreeWalk,
    /// Which protection counts in the order of the memcg LRU.
    pub protection: ProtectionRule,
    /// A reclaimer waits, once, while others have more of a type in their hands than an eighth of what is on the list. Without it,
    /// the few pages left on the list look like all there are (before Linux 2.6.32).
    pub isolation_limit: bool,
    /// Whether memory of a node that is short is asked for while another node has room. It is one for the machine: that of the root group.
    pub awake_nodes: AwakeNodes,
    /// How many pages of other zones are passed by.
    pub zone_skip: ZoneSkip,
    /// A call that found nothing empties the batches of its CPU and starts over, because a page that waits there is on no
    /// list. Batches of other CPUs stay: to ask those would interrupt them.
    pub drain_before_giving_up: bool,
    /// Forced deactivation reaches active anonymous pages where a pass has nothing else to scan.
    pub force_active_anon: bool,
    /// A call that reclaimed nothing leaves fresh statistics of its group to the next attempt.
    pub flush_after_failure: bool,
    /// Who writes dirty pages of files.
    pub file_writeback: FileWriteback,
    /// Who writes pages to swap.
    pub anon_writeback: AnonWriteback,
    /// What a request for anonymous memory only takes.
    pub anon_only: AnonOnly,
    /// Whether a signal ends a request.
    pub on_signal: OnSignal,
    /// When flushers are asked to write.
    pub flusher_wake: FlusherWake,
    /// Dirty pages and pages under writeback that batches of generations meet add up to what reclaim of a group goes by when it is through with
    /// a node, as that of two lists does (since 7.2): it waits while devices have too much to do. Reclaim for the machine does not.
    pub batch_tallies: bool,
    /// Whether reclaim for a group of cgroup v1 waits then.
    pub v1_throttle: V1Throttle,
    /// How reclaimers wait for pages under writeback.
    pub stalls: Stalls,
    /// Who writes files to a device that has much to do.
    pub congested_queue: CongestedQueue,
    /// What file systems do with what reclaim has them write.
    pub writepage: Writepage,
    /// When it writes in laptop mode.
    pub laptop_mode: LaptopMode,
    /// Tasks wait for kswapd where it has next to nothing free to work with.
    pub gate: bool,
    /// How much is freed for a block.
    pub compact_gap: CompactGap,
    /// Reclaim for a block of pages takes whole blocks, and leaves compaction alone.
    pub lumpy: bool,
    /// When a request that finds no page asks for someone's end.
    pub gives_up: GivesUp,
    /// What becomes of a page of a file that was read once before and is not used now: it is taken only if it needs no write (up to 7.2),
    /// or like any other. Where reclaim writes no files both come to the same.
    pub clean_only: bool,
    /// What anonymous memory is to who may do no I/O.
    pub noio_anon: NoioAnon,
    /// A page read back from a synchronous swap device passes by the swap cache (4.15 to 6.19).
    pub swap_cache_bypass: bool,
    /// When kswapd tries again where it had given up.
    pub kswapd_reset: KswapdReset,
    /// What is scanned and taken for a group counts in `/proc/vmstat`, too (since 7.1 to 7.3); before, only what is for the machine.
    pub machine_counts: bool,
    /// Readahead from swap ends with the CPU's batches emptied, so that what was read is found on its list at once (up to 7.1).
    pub swap_ahead_drain: bool,
    /// Whether pages of files are demoted; without, they are dropped as if there were no slower memory.
    pub demote_file: bool,
    /// What becomes of pages that find no room in slower memory.
    pub demotion_full: DemotionFull,
    /// Whether pages stay on nodes of their group.
    pub demotion_mems: DemotionMems,
    /// Whose the pages of a removed group are.
    pub offline: OfflinePages,
}

impl ReclaimRules {
    /// The rules of 6.12 for two lists.
    pub(crate) fn linux_6_12() -> ReclaimRules {
        ReclaimRules {
            stat_flush: FlushRule::WorkerLate,
            tree_walk: TreeWalk::Shared,
            protection: ProtectionRule::TopDown,
            isolation_limit: true,
            awake_nodes: AwakeNodes::Used,
            zone_skip: ZoneSkip::Bounded,
            drain_before_giving_up: false,
            force_active_anon: false,
            flush_after_failure: false,
            file_writeback: FileWriteback::Never,
            anon_writeback: AnonWriteback::Any,
            anon_only: AnonOnly::Absent,
            on_signal: OnSignal::GoesOn,
            flusher_wake: FlusherWake::Batch,
            batch_tallies: true,
            v1_throttle: V1Throttle::Batch,
            stalls: Stalls::Throttle,
            congested_queue: CongestedQueue::Waits,
            writepage: Writepage::Obeys,
            laptop_mode: LaptopMode::Priority,
            gate: true,
            compact_gap: CompactGap::TwiceTheBlock,
            lumpy: false,
            gives_up: GivesUp::AfterRetries,
            clean_only: true,
            noio_anon: NoioAnon::Scan,
            swap_cache_bypass: true,
            kswapd_reset: KswapdReset::AnyProgress,
            machine_counts: false,
            swap_ahead_drain: true,
            demote_file: true,
            demotion_full: DemotionFull::ReclaimHere,
            demotion_mems: DemotionMems::Ignored,
            offline: OfflinePages::Keep,
        }
    }

    /// The rules of 2.6.35, which the series against deep stacks (third posting) keeps. [machine 9.3, 9.4]
    pub(crate) fn linux_2_6_35() -> ReclaimRules {
        ReclaimRules {
            zone_skip: ZoneSkip::Unbounded,
            file_writeback: FileWriteback::Any,
            flusher_wake: FlusherWake::Scanned,
            v1_throttle: V1Throttle::Off,
            stalls: Stalls::CongestionWait,
            congested_queue: CongestedQueue::Keeps,
            laptop_mode: LaptopMode::Scanned,
            gate: false,
            lumpy: true,
            gives_up: GivesUp::Unreclaimable,
            ..ReclaimRules::linux_6_12()
        }
    }

    /// The rules of 7.3 for two lists.
    pub(crate) fn linux_7_3() -> ReclaimRules {
        ReclaimRules { protection: ProtectionRule::TopDown, ..ReclaimRules::generations_7_3() }
    }

    /// The rules of 7.3 for generations.
    pub(crate) fn generations_7_3() -> ReclaimRules {
        ReclaimRules {
            awake_nodes: AwakeNodes::PassedBy,
            anon_only: AnonOnly::Strict,
            on_signal: OnSignal::Ends,
            compact_gap: CompactGap::Capped,
            flusher_wake: FlusherWake::Batch,
            batch_tallies: true,
            v1_throttle: V1Throttle::Batch,
            kswapd_reset: KswapdReset::Balanced,
            machine_counts: true,
            swap_ahead_drain: false,
            clean_only: false,
            swap_cache_bypass: false,
            laptop_mode: LaptopMode::Ignored,
            offline: OfflinePages::Reparent,
            ..ReclaimRules::generations_6_12()
        }
    }

    /// The rules of 6.12 for generations.
    pub(crate) fn generations_6_12() -> ReclaimRules {
        ReclaimRules {
            flusher_wake: FlusherWake::Pass,
            batch_tallies: false,
            v1_throttle: V1Throttle::Off,
            protection: ProtectionRule::KswapdOnly,
            ..ReclaimRules::linux_6_12()
        }
    }
}
