//! Rules of a reclaim call that have a default and an alternative. They cover the update of statistics, writes of dirty pages, requests to the
//! flushers, waits for them, and the last attempts before a call gives up.
//!
//! **Writers.** In 2010 every task that met a dirty page at the end of a list wrote it, one page at a time, deep in the stack of its allocation.
//! Later kernels stopped this for tasks first, then for kswapd except for pages that it met a second time, and then for reclaim altogether. The
//! flusher writes better: in the order of the file rather than in that of the list. Reclaim now only asks for it in time, and waits if nothing else
//! is left. [reclaim 5.1 to 5.5; machine 9.4]
//!
//! **Old statistics.** Linux 6.12 gives up too early where a group's anonymous pages turn over faster than its statistics are flushed. All listed
//! pages have become active since the last flush, reclaim's statistics do not show it, and a pass looks at nothing. One of these
//! rules was lost between 6.1 and 6.12. The others are remedies that no kernel has. The drain only puts the end off; each of the
//! others prevents it. `docs/results/premature-oom.md` shows what each does, and what it costs where nothing was wrong.

use crate::choice::choice;
use crate::declare::rules;

choice! {
    /// When statistics of groups are brought up to date before a decision that rests on them.
    FlushRule {
        /// The task that decides flushes them if the periodic worker is late by a whole period.
        WorkerLate = "6.12",
        /// The task that decides flushes them if the CPUs have reported enough updates of the group, its own
        /// and those below.
        GroupUpdates = "6.8",
        /// The task that decides flushes them if the CPUs have reported enough updates of the machine,
        /// whichever groups they are of.
        Updates = "6.1",
    }
}

choice! {
    /// Which groups a call visits that reclaims for a limit, or for a task that needs a page, if it walks a
    /// tree of groups.
    TreeWalk {
        /// A call visits a part: reclaimers share one walk. A call that found nothing in its part visits all
        /// groups before it gives up.
        Shared = "shared",
        /// A call visits all groups at every priority.
        Full = "full",
        /// A call visits its part, and nothing more before it gives up.
        SharedOnly = "shared_only",
    }
}

choice! {
    /// Which reclaimers write a dirty page of a file that they meet.
    FileWriteback {
        /// All reclaimers that may enter a file system.
        Any = "any",
        /// All reclaimers except tasks that reclaim for the machine. Such a task skips dirty pages, has the
        /// flusher write as many, and waits. The series "avoid overflowing of stack during page reclaim" of
        /// 2010.
        NotDirect = "not_direct",
        /// kswapd alone, once its priority is below 10.
        KswapdOnly = "kswapd_only",
        /// kswapd alone, a page that it meets a second time when nothing but dirty pages came to the end of the
        /// lists. The file system has to write single pages.
        SeenTwice = "seen_twice",
        /// No reclaimer: reclaim does not write files, or the file system can't write a single page, as later
        /// ext4 and XFS.
        Never = "never",
    }
}

choice! {
    /// Which ancestors' settings protect a group that reclaim for the machine visits in the order of the memcg
    /// LRU.
    ProtectionRule {
        /// The settings that they have now, worked out from the top down, as in a walk of the tree of groups.
        TopDown = "top_down",
        /// What was worked out for the parent when reclaim last visited it. Before its first visit, nothing.
        AsVisited = "as_visited",
        /// What kswapd worked out before its last pass over the node. Before its first pass, nothing: other
        /// reclaimers for the machine work nothing out. This rule came with the fix of
        /// [`ProtectionRule::AsVisited`]. It was found in September 2026, and its fix is
        /// [`ProtectionRule::TopDown`] again.
        KswapdOnly = "kswapd_only",
    }
}

choice! {
    /// Which reclaimers write pages to swap.
    AnonWriteback {
        /// All reclaimers.
        Any = "any",
        /// All reclaimers except tasks that reclaim for the machine, as in the third posting of the series of
        /// 2010.
        NotDirect = "not_direct",
    }
}

choice! {
    /// What a request to `memory.reclaim` with `swappiness=max` does, which asks for anonymous memory only.
    AnonOnly {
        /// The file does not accept such a request.
        Absent = "absent",
        /// The request takes file memory if no anonymous page can be swapped or demoted: reclaim does not
        /// distinguish a lack of swap from a swappiness of 0.
        OrFile = "or_file",
        /// The request takes nothing if no anonymous page can be swapped or demoted.
        Strict = "strict",
    }
}

choice! {
    /// What a signal does to a request to `memory.reclaim` that is in progress.
    OnSignal {
        /// Nothing: the request continues until it has what it asked for or gives up, and the signal is handled
        /// after that.
        GoesOn = "goes_on",
        /// The request ends after the current call of reclaim, and its write fails (EINTR). A call is for a
        /// quarter of what is left.
        BetweenCalls = "between_calls",
        /// The request ends after its batch, and its write fails (EINTR). The source describes MGLRU alone. A
        /// request knows no lists, so classic LRU does so here, too.
        Ends = "ends",
    }
}

choice! {
    /// When reclaim asks the flushers to write all dirty pages.
    FlusherWake {
        /// Reclaim never asks.
        Never = "never",
        /// Reclaim asks after a pass over a group's lists that met nothing but dirty pages.
        Pass = "pass",
        /// Reclaim asks after a batch of nothing but dirty pages.
        Batch = "batch",
        /// Reclaim asks after a call has scanned one and a half times the pages that it must free.
        Scanned = "scanned",
    }
}

choice! {
    /// Waits of reclaim for a group of cgroup v1 after it has asked the flushers to write. In v1, tasks
    /// that dirty pages of a group are not slowed down before the group is full of them.
    V1Throttle {
        /// Reclaim doesn't wait.
        Off = "off",
        /// Reclaim waits after a pass.
        AfterPass = "after_pass",
        /// Reclaim waits after a batch.
        Batch = "batch",
    }
}

choice! {
    /// How reclaimers wait for pages under writeback.
    Stalls {
        /// A reclaimer waits for a reason, as briefly as the reason allows, and until it is gone.
        Throttle = "throttle",
        /// A reclaimer waits for a tenth of a second, or until a device is no longer congested, whatever the
        /// reason.
        CongestionWait = "congestion_wait",
    }
}

choice! {
    /// What a reclaimer does with a dirty page of a file if the request queue of the device is nearly full.
    CongestedQueue {
        /// The reclaimer submits the write, and sleeps until a request is free.
        Waits = "waits",
        /// The reclaimer keeps the page. kswapd writes all the same, and so does a task in the middle of its
        /// own write.
        Keeps = "keeps",
    }
}

choice! {
    /// What a file system does with a page that reclaim hands it to write (`writepage`).
    Writepage {
        /// The file system writes it.
        Obeys = "obeys",
        /// The file system marks the page dirty again and leaves it to the flusher, because a reclaimer's stack
        /// may be deep. The counters and tracepoints of reclaim show a write all the same. XFS and btrfs of
        /// mid-2010 did so for every reclaimer, and ext4 mostly.
        Redirties = "redirties",
    }
}

choice! {
    /// How a reclaimer that may do no I/O treats anonymous memory on the active and inactive lists.
    NoioAnon {
        /// The reclaimer scans it like any other, and keeps all pages that are not in the swap cache already.
        Scan = "scan",
        /// The reclaimer leaves it alone if less than a 64th of it is in the swap cache. Without that, one
        /// reported pass scanned 93,000 pages and freed none.
        SkipLowSwapcache = "skip_low_swapcache",
    }
}

choice! {
    /// What makes kswapd try a node again after sixteen runs for nothing.
    KswapdReset {
        /// A page that any reclaimer frees there. kswapd then runs without end next to a group whose
        /// `memory.high` makes it reclaim.
        AnyProgress = "any_progress",
        /// A page that any reclaimer frees there, but only once enough is free. A run for a watermark boost
        /// doesn't count as failed.
        Balanced = "balanced",
    }
}

choice! {
    /// Treatment of pages that should be demoted while slower memory is full.
    DemotionFull {
        /// Pages that can't be demoted are swapped out or dropped, while colder pages stay in the slower memory.
        ReclaimHere = "reclaim_here",
        /// A batch of the slower memory's coldest pages goes first, and then they are tried once more.
        ReclaimTarget = "reclaim_target",
    }
}

choice! {
    /// How demotion treats the nodes of the group whose pages it moves (`cpuset.mems`).
    DemotionMems {
        /// Demotion does not check them.
        Ignored = "ignored",
        /// Demotion checks the nearest nodes of the next tier only: if the group has none of them, its pages
        /// stay.
        NearestOnly = "nearest_only",
        /// Demotion uses any slower node of the group, the nearest first.
        Respected = "respected",
    }
}

choice! {
    /// Which group owns the pages of a removed group.
    OfflinePages {
        /// The removed group owns them: they stay on its lists until they are reclaimed there.
        Keep = "keep",
        /// The parent owns them, at the cold end of its lists.
        Reparent = "reparent",
    }
}

choice! {
    /// How many pages reclaim for a block frees before it leaves the rest to compaction.
    CompactGap {
        /// Reclaim frees twice the block.
        TwiceTheBlock = "twice_the_block",
        /// Reclaim frees twice the block, but no more than a reclaimer's batch of 32. For a huge page, twice
        /// the block is 1024 pages: freeing them tore holes without making a block.
        Capped = "capped",
    }
}

choice! {
    /// How many pages of zones that it can't use a reclaimer skips on its way to a batch from a list.
    ZoneSkip {
        /// A reclaimer skips 32,768 pages, and then takes any.
        Bounded = "bounded",
        /// A reclaimer skips any number of pages, with the list locked. Over 150 million were reported in 2024.
        Unbounded = "unbounded",
    }
}

choice! {
    /// How the first try of a request treats nodes whose kswapd is awake.
    AwakeNodes {
        /// The request uses them like others, down to their low watermark.
        Used = "used",
        /// The request skips them if another node has free memory.
        PassedBy = "passed_by",
    }
}

choice! {
    /// How much of a request to `memory.reclaim` one call of reclaim is for.
    RequestPart {
        /// A call is for all that is left of the request.
        Whole = "whole",
        /// A call is for a quarter of what is left, at least a batch.
        Quarter = "quarter",
    }
}

choice! {
    /// The priority at which reclaim for the machine begins if groups keep generations.
    InitialPriority {
        /// The priority of other calls, 12.
        Default = "12",
        /// A stronger priority, down to 6, the larger the wanted share of the inactive lists is.
        BySize = "by_size",
    }
}

choice! {
    /// When a request that finds no page invokes the OOM killer.
    GivesUp {
        /// The request does so after 16 rounds without any page, or when all that could be taken would not be
        /// enough.
        AfterRetries = "after_retries",
        /// The request does so after reclaim has scanned six times as many pages as the lists hold, and none
        /// was freed meanwhile.
        Unreclaimable = "unreclaimable",
    }
}

choice! {
    /// What laptop mode (`vm.laptop_mode`) means to reclaim.
    LaptopMode {
        /// Reclaim writes nothing above priority 9.
        Priority = "priority",
        /// Reclaim writes nothing until it has scanned one and a half times the pages that it must free. It then asks the
        /// flushers to write all dirty pages.
        Scanned = "scanned",
        /// Laptop mode means nothing to reclaim.
        Ignored = "ignored",
    }
}

rules! {
    /// What a reclaim call of a group does about old statistics and dirty pages, which groups it comes by, and what it does before it gives up.
    ReclaimRules at group.reclaim as RECLAIM {
    }
    "reclaim.stat_flush": stat_flush: FlushRule = FlushRule::WorkerLate,
        [FlushRule::WorkerLate => "5.15..5.15" "I", FlushRule::Updates => "5.16..6.7" "A", FlushRule::GroupUpdates => "6.8..6.11" "M m",
            FlushRule::WorkerLate => "6.12.." "B C D"],
        Some(("regressions/premature-oom.toml", "6.1")),
        "When a pass over the classic LRU flushes the statistics that it uses. `6.12`: if the periodic worker is late by a whole period. `6.1`: if the CPUs have counted enough updates of all groups since the last flush, which is far more often. `6.8`: if they have counted enough updates of the reclaimed group and its descendants, and only these are flushed.";
    "reclaim.tree_walk": tree_walk: TreeWalk = TreeWalk::Shared,
        [TreeWalk::SharedOnly => "..5.3" "h", TreeWalk::Full => "5.4..6.9" "h A E",
            TreeWalk::Shared => "6.10.." "B C m"],
        Some(("regressions/c1-a-walk-of-all-groups.toml", "full")),
        "Which groups a call visits. `shared`: its part of a walk that reclaimers share, and all groups if that freed nothing. `full`: all groups each time. `shared_only`: its part only.";
    "reclaim.isolation_limit": isolation_limit: bool = true,
        [true => ".." "S", false => "never" ""],
        Some(("regressions/c6-too-many-isolated.toml", "false")),
        "A task that is about to reclaim waits once while other tasks have isolated a large part of a type. Without it, the pages left on the lists look like all there are.";
    "reclaim.zone_skip": zone_skip: ZoneSkip = ZoneSkip::Bounded,
        [ZoneSkip::Unbounded => "..6.13" "A B", ZoneSkip::Bounded => "6.14.." "M C D"],
        Some(("regressions/c2-passing-by-other-zones.toml", "bounded")),
        "How many pages of higher zones a reclaimer skips on a list when it needs a page of a lower zone, as the kernel does for itself. `unbounded`: any number, with the list locked all the time. `bounded`: 32,768 per batch, after which it takes any page.";
    "reclaim.drain_before_giving_up": drain_before_giving_up: bool = false,
        [false => ".." "A B C D", true => "never" ""],
        Some(("regressions/premature-oom.toml", "true")),
        "A call that found nothing drains the batches of its CPU and starts over. No kernel does this. Pages in a batch are on no list, so reclaim can't find them. The drain only delays the failure until the pages in the batch are active, too.";
    "reclaim.force_active_anon": force_active_anon: bool = false,
        [false => ".." "A B C D", true => "never" ""],
        Some(("regressions/premature-oom.toml", "true")),
        "If a pass has only active anonymous pages to scan, and the call found nothing else, forced deactivation reaches them. No kernel does this: there a pass begins only with inactive or file pages.";
    "reclaim.flush_after_failure": flush_after_failure: bool = false,
        [false => ".." "A B C D", true => "never" ""],
        Some(("regressions/premature-oom.toml", "true")),
        "A call that reclaimed nothing flushes its group's statistics, so that the next attempt uses fresh ones. No kernel does this.";
    "reclaim.demote_file": demote_file: bool = true,
        [true => ".." "A B C D", false => "never" ""],
        Some(("demotion.toml", "false")),
        "File pages are demoted to slower memory like others. All kernels do this. With false, reclaim drops file pages as if there were no slower memory. It is for users who prefer to read a file again rather than keep it in slow memory.";
    "reclaim.demotion_full": demotion_full: DemotionFull = DemotionFull::ReclaimHere,
        [DemotionFull::ReclaimHere => ".." "A B C D", DemotionFull::ReclaimTarget => "never" ""],
        Some(("demotion.toml", "reclaim_target")),
        "What happens to pages that should be demoted while slower memory is full. They are swapped out or dropped, although colder pages stay there (all kernels), or the coldest pages of the slower memory are reclaimed first.";
    "reclaim.offline": offline: OfflinePages = OfflinePages::Keep,
        [OfflinePages::Keep => "..7.0" "A B", OfflinePages::Reparent => "7.1.." "C"],
        Some(("removed-groups.toml", "keep")),
        "Which group owns the pages of a removed group: they stay on its own lists until they are reclaimed there (keep), or move to the cold end of the parent's lists immediately (reparent).";
    "reclaim.demotion_mems": demotion_mems: DemotionMems = DemotionMems::Ignored,
        [DemotionMems::Ignored => "..6.15" "A B", DemotionMems::NearestOnly => "6.16..6.18" "M m",
            DemotionMems::Respected => "7.2.." "C"],
        Some(("regressions/t1-demotion-out-of-the-cpuset.toml", "nearest_only")),
        "Whether demotion respects the nodes of a cgroup (cpuset.mems). `ignored`: it does not check them. `nearest_only`: it checks the nearest nodes alone, so that a group without them is not demoted at all. `respected`: it uses any slower node of the group.";
    "reclaim.file_writeback": file_writeback: FileWriteback = FileWriteback::Never,
        [FileWriteback::Any => "..3.1" "S", FileWriteback::KswapdOnly => "3.2..4.10" "S",
            FileWriteback::SeenTwice => "4.11..6.2" "A", FileWriteback::Never => "6.3.." "B C M",
            FileWriteback::SeenTwice => "beside 6.3..6.15" "B", FileWriteback::NotDirect => "posted" ""],
        Some(("writeback-from-reclaim.toml", "any")),
        "Which reclaimers write dirty file pages that they meet. `any`: all that may enter a file system. `not_direct`: all except tasks in machine-wide reclaim (the series of 2010 against deep stacks). `kswapd_only`: kswapd, once its priority is below 10. `seen_twice`: kswapd, if it meets a page twice among dirty pages only, on file systems that write single pages. `never`: no reclaimer. With any and not_direct, a page that may not be written is kept; otherwise it is activated.";
    "reclaim.anon_writeback": anon_writeback: AnonWriteback = AnonWriteback::Any,
        [AnonWriteback::Any => ".." "A B C D", AnonWriteback::NotDirect => "posted" ""],
        Some(("writeback-from-reclaim.toml", "not_direct")),
        "Which reclaimers write pages to swap: any, or all except tasks in machine-wide reclaim, as in the third posting of the series of 2010.";
    "reclaim.anon_only": anon_only: AnonOnly = AnonOnly::Absent,
        [AnonOnly::Absent => "..6.15" "A B m", AnonOnly::OrFile => "6.16..7.2" "C m",
            AnonOnly::Strict => "7.3.." "D"],
        Some(("regressions/anon-only-takes-files.toml", "or_file")),
        "How memory.reclaim treats swappiness=max, which asks for anonymous memory only. `absent`: it does not accept the word. `or_file`: it takes file memory if no anonymous page can be swapped or demoted. `strict`: it takes nothing then.";
    "reclaim.on_signal": on_signal: OnSignal = OnSignal::GoesOn,
        [OnSignal::GoesOn => "..5.18" "S", OnSignal::BetweenCalls => "5.19..7.1" "A B", OnSignal::Ends => "7.2.." "C D"],
        Some(("regressions/reclaim-past-its-timeout.toml", "goes_on")),
        "What a signal does to a request to memory.reclaim. `goes_on`: the request continues until it has everything or gives up, however long that takes; kernels without the file count as this. `between_calls`: it ends after the current reclaim call. `ends`: it ends after its batch. A write that ends early fails with EINTR, and pages reclaimed by then stay reclaimed. A signal arrives when the `timeout` of an event is over.";
    "reclaim.request": request: RequestPart = RequestPart::Quarter,
        [RequestPart::Whole => "..6.7" "A m", RequestPart::Quarter => "6.9.." "B m"],
        Some(("proactive-reclaim.toml", "whole")),
        "How much of a request to memory.reclaim one reclaim call is for. `whole`: all that is left, so that one pass goes through the lists in its initial proportions. `quarter`: a quarter of it, at least a batch, so that each call weighs the lists anew.";
    "reclaim.flusher_wake": flusher_wake: FlusherWake = FlusherWake::Batch,
        [FlusherWake::Scanned => "two_lists ..2.6.35" "S",
            FlusherWake::Batch => "two_lists 6.1.." "A B C D",
            FlusherWake::Never => "generations 6.1..6.12.0" "A E M",
            FlusherWake::Pass => "generations 6.12.117..7.1" "B M",
            FlusherWake::Batch => "generations 7.2.." "C"],
        Some(("writeback-from-reclaim.toml", "never")),
        "When reclaim asks the flushers to write all dirty pages. `never`: it does not ask. `pass`: after a pass that met nothing but dirty file pages. `batch`: after such a batch. `scanned`: when a call has scanned half as many pages again as it needs, and for that many pages only.";
    "reclaim.batch_tallies": batch_tallies: bool = true,
        [true => "two_lists .." "A B C D", false => "generations 6.1..7.1" "A B",
            true => "generations 7.2.." "C"],
        None,
        "Reclaim sums up the pages in its MGLRU batches that are dirty or under writeback. It uses the sums at the end of a node, as with the classic LRU. If every dirty page that it met was met before, it waits one tick. Without it, reclaim under MGLRU never waits for writeback. It matters only if most reclaimable pages of a node are dirty or under writeback. No shipped scenario's counters change.";
    "reclaim.v1_throttle": v1_throttle: V1Throttle = V1Throttle::Batch,
        [V1Throttle::Off => "two_lists ..6.1.0" "h",
            V1Throttle::Batch => "two_lists 6.1.192.." "h A B C D",
            V1Throttle::Off => "generations 6.1..6.12.0" "A E M",
            V1Throttle::AfterPass => "generations 6.12.117..6.12" "B",
            V1Throttle::Off => "generations 6.13..7.0" "M",
            V1Throttle::AfterPass => "generations 7.1..7.1" "M",
            V1Throttle::Batch => "generations 7.2.." "C"],
        Some(("regressions/m3-dirty-pages-of-cgroup-v1.toml", "after_pass")),
        "Whether reclaim for a group of cgroup v1 waits for writeback when it has asked for it: no (off), after the pass (after_pass), or after the batch (batch).";
    "reclaim.stalls": stalls: Stalls = Stalls::Throttle,
        [Stalls::CongestionWait => "..2.6.35" "S", Stalls::Throttle => "5.16.." "A B C D m"],
        Some(("writeback-from-reclaim.toml", "congestion_wait")),
        "How reclaimers wait for pages under writeback. `throttle`: for a reason and until it is gone. `congestion_wait`: for a tenth of a second or until a device's queue is no longer congested, whatever the reason.";
    "reclaim.congested_queue": congested_queue: CongestedQueue = CongestedQueue::Waits,
        [CongestedQueue::Keeps => "..2.6.35" "S", CongestedQueue::Waits => "6.1.." "A B C D"],
        None,
        "What a reclaimer does with a dirty file page if the request queue of the device is nearly full. `waits`: it submits the write and sleeps until a request is free. `keeps`: it keeps the page, unless it is kswapd or in the middle of its own write. It matters only if tasks write the pages that they meet (reclaim.file_writeback = any). No shipped scenario's counters change in profiles other than those of 2010.";
    "reclaim.writepage": writepage: Writepage = Writepage::Obeys,
        [Writepage::Obeys => ".." "I", Writepage::Redirties => "beside 2.6.35..2.6.35" "S"],
        None,
        "What a file system does with a page that reclaim hands it to write. `obeys`: it writes the page. `redirties`: it marks the page dirty again and leaves it to the flusher, while reclaim counts it as written (XFS and btrfs of mid-2010, and most of ext4). It matters only if reclaim writes files at all (reclaim.file_writeback = any, not_direct, kswapd_only or seen_twice). No shipped scenario's counters change by it alone.";
    "reclaim.clean_only": clean_only: bool = true,
        [true => "..7.2" "A B C", false => "7.3.." "D"],
        None,
        "With the classic LRU, a file page that was read once before and is not used now is reclaimed only if it needs no write. If reclaim writes no files, such a page is kept for the flusher in any case. No shipped scenario's counters change.";
    "reclaim.noio_anon": noio_anon: NoioAnon = NoioAnon::Scan,
        [NoioAnon::Scan => ".." "A B C D", NoioAnon::SkipLowSwapcache => "posted" ""],
        Some(("regressions/noio-scans-anon.toml", "skip_low_swapcache")),
        "How a reclaimer that may do no I/O treats anonymous memory with the classic LRU. `scan`: it scans that memory although it can free none of it. `skip_low_swapcache`: it skips that memory while less than a 64th of it is in the swap cache.";
    "reclaim.swap_cache_bypass": swap_cache_bypass: bool = true,
        [false => "..4.14" "S", true => "4.15..6.19" "A B S", false => "7.0.." "C S"],
        Some(("mechanisms-2026.toml", "true")),
        "An anonymous page is read back from a synchronous swap device without the swap cache, and its slot is freed immediately. Without it, the page stays in the swap cache until it is mapped. Meanwhile its group's lists count it as a page that could be freed.";
    "reclaim.machine_counts": machine_counts: bool = false,
        [false => "..7.0" "A B", true => "7.1.." "M C I"],
        None,
        "Pages that are scanned and reclaimed for a group also count in /proc/vmstat. Without it, they count only in memory.stat. It decides nothing, so no group's counters change.";
    "reclaim.swap_ahead_drain": swap_ahead_drain: bool = true,
        [true => "..7.2" "A B C", false => "7.3.." "D"],
        None,
        "A task that has read ahead from swap drains its CPU's batches, so that the pages are on their lists immediately. The drain takes locks for pages that may never be used. Without it, the pages reach their lists a little later. No shipped scenario's counters change.";
}
