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
use crate::switch::rules;

choice! {
    /// When who decides by the statistics of groups brings them up to date before.
    FlushRule {
        /// When the periodic worker is late by a whole period. Linux 6.12.
        WorkerLate = "6.12",
        /// When the CPUs have told the group of enough updates, its own and those below. Since Linux 6.8.
        GroupUpdates = "6.8",
        /// When the CPUs have told the machine of enough updates, whichever groups'. Linux 5.16 to 6.7.
        Updates = "6.1",
    }
}

choice! {
    /// Which groups a call looks at that reclaims for a limit, or for a task that needs a page, where a tree of groups is walked.
    TreeWalk {
        /// A part: reclaimers share one walk, and a call that found nothing in its part looks at all groups before it gives up.
        /// Since Linux 6.10.
        Shared = "shared",
        /// All groups at every priority. Linux 5.4 to 6.9.
        Full = "full",
        /// A part, and nothing more before it gives up. Before Linux 5.4.
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
        /// By what was worked out for its parent when reclaim last came by that, which is nothing before. Linux 6.3 to 6.10.
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
        /// There is no such request. Up to 6.15.
        Absent = "absent",
        /// File memory instead, where no anonymous page can be swapped or demoted: no swap is told from a swappiness of 0. 6.16 to
        /// 7.2.
        OrFile = "or_file",
        /// Nothing is taken there. Since 7.3.
        Strict = "strict",
    }
}

choice! {
    /// What a signal does to a request to `memory.reclaim` that is under way.
    OnSignal {
        /// Nothing: the request goes on until it has what it was asked for or gives up, and the signal is answered after that.
        GoesOn = "goes_on",
        /// The request ends after the call of reclaim that is under way, and its write fails (EINTR). A call is for a quarter of what is left.
        BetweenCalls = "between_calls",
        /// The request ends after its batch, and its write fails (EINTR). Our source tells of generations. A request knows no lists, so two
        /// lists have it too.
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
        /// Reclaim doesn't wait. Generations before 7.1, but for late versions of 6.12.
        Off = "off",
        /// After a pass. Generations of 7.1, and of 6.12.117.
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
        /// Demotion does not ask. Up to 6.15.
        Ignored = "ignored",
        /// Demotion asks for the nearest nodes of the next tier only: where the group has none of them, its pages stay.
        NearestOnly = "nearest_only",
        /// Any slower node of the group will do, the nearest first. By 7.2.
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
        /// 32,768; then it takes whatever comes. Since 6.14.
        Bounded = "bounded",
        /// As many as there are, with the list locked: over 150 million, as was reported of 6.x in 2024. Up to 6.13.
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
    /// How much of what memory.reclaim asks for a call of reclaim is for.
    RequestPart {
        /// All that is left of it. Up to 6.7.
        Whole = "whole",
        /// A quarter of what is left, a batch at least. Since 6.9.
        Quarter = "quarter",
    }
}

choice! {
    /// The priority at which reclaim for the machine begins where it keeps generations.
    InitialPriority {
        /// That of other calls, 12. Up to 6.2.
        Default = "12",
        /// A stronger one, down to 6, the more is wanted of the inactive lists. Since 6.11.
        BySize = "by_size",
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
        /// The reclaimer writes nothing above priority 9. Up to 6.19 or later.
        Priority = "priority",
        /// The reclaimer writes nothing until it has looked at half as many pages again as it wants, and then asks for all that is
        /// dirty. 2010.
        Scanned = "scanned",
        /// Nothing. By 7.2.
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
        "A pass over two lists decides by statistics. It flushes them first if the periodic worker is late by a whole period (6.12), or if the CPUs have counted enough updates since the last flush: of all groups (5.16 to 6.7, far more often), or of the group that is reclaimed and those below it (6.8 to 6.11), which alone are flushed.";
    "reclaim.tree_walk": tree_walk: TreeWalk = TreeWalk::Shared,
        [TreeWalk::SharedOnly => "..5.3" "h", TreeWalk::Full => "5.4..6.9" "h A E",
            TreeWalk::Shared => "6.10.." "B C m"],
        Some(("regressions/c1-a-walk-of-all-groups.toml", "full")),
        "Which groups a call looks at: its part of a walk that reclaimers share, and all of them if that gave nothing (since 6.10), all of them each time (5.4 to 6.9), or its part only (before).";
    "reclaim.isolation_limit": isolation_limit: bool = true,
        [true => ".." "S", false => "never" ""],
        Some(("regressions/c6-too-many-isolated.toml", "false")),
        "A task waits once that would reclaim while others have a large part of a type in their hands (since 2.6.32). Without it, what is left on the lists looks like all there is.";
    "reclaim.zone_skip": zone_skip: ZoneSkip = ZoneSkip::Bounded,
        [ZoneSkip::Unbounded => "..6.13" "A B", ZoneSkip::Bounded => "6.14.." "M C D"],
        Some(("regressions/c2-passing-by-other-zones.toml", "bounded")),
        "A reclaimer that needs a page of a lower zone, as the kernel does for itself, passes by pages of higher ones on its way down a list: without a bound, with the list locked all the time (up to 6.13), or 32,768 for a batch, after which it takes whatever comes (since 6.14).";
    "reclaim.drain_before_giving_up": drain_before_giving_up: bool = false,
        [false => ".." "A B C D", true => "never" ""],
        Some(("regressions/premature-oom.toml", "true")),
        "A call that found nothing empties the batches of its CPU and starts over. No kernel does so. Pages in a batch are on no list, so reclaim can't find them. This only puts the end off, until the pages in the batch are active too.";
    "reclaim.force_active_anon": force_active_anon: bool = false,
        [false => ".." "A B C D", true => "never" ""],
        Some(("regressions/premature-oom.toml", "true")),
        "If a pass has only active anonymous pages to scan, and the call found nothing in any other way, forced deactivation reaches them. No kernel does so: there a pass begins only with inactive or file pages.";
    "reclaim.flush_after_failure": flush_after_failure: bool = false,
        [false => ".." "A B C D", true => "never" ""],
        Some(("regressions/premature-oom.toml", "true")),
        "A call that reclaimed nothing brings its group's statistics up to date, so that the next attempt decides by fresh ones. No kernel does so.";
    "reclaim.demote_file": demote_file: bool = true,
        [true => ".." "A B C D", false => "never" ""],
        Some(("demotion.toml", "false")),
        "Pages of files are demoted to slower memory like others. No kernel has it otherwise; false is what those ask for who would read a file again rather than have it on slow memory: reclaim then drops them as if there were no slower memory.";
    "reclaim.demotion_full": demotion_full: DemotionFull = DemotionFull::ReclaimHere,
        [DemotionFull::ReclaimHere => ".." "A B C D", DemotionFull::ReclaimTarget => "never" ""],
        Some(("demotion.toml", "reclaim_target")),
        "What becomes of pages that are to be demoted while slower memory is full: they are swapped out or dropped, although colder pages stay there (all kernels), or the coldest of the slower memory goes first.";
    "reclaim.offline": offline: OfflinePages = OfflinePages::Keep,
        [OfflinePages::Keep => "..7.0" "A B", OfflinePages::Reparent => "7.1.." "C"],
        Some(("removed-groups.toml", "keep")),
        "The pages of a removed group stay on its own lists until they are reclaimed there (up to 7.0), or are its parent's at once, at the cold end of the lists (since 7.1).";
    "reclaim.demotion_mems": demotion_mems: DemotionMems = DemotionMems::Ignored,
        [DemotionMems::Ignored => "..6.15" "A B", DemotionMems::NearestOnly => "6.16..6.18" "M m",
            DemotionMems::Respected => "7.2.." "C"],
        Some(("regressions/t1-demotion-out-of-the-cpuset.toml", "nearest_only")),
        "Whether demotion keeps to the nodes of a cgroup (cpuset.mems): it does not ask (up to 6.15), it asks for the nearest ones alone, so that a group without them is not demoted at all (from 6.16), or any slower node of the group will do (by 7.2).";
    "reclaim.file_writeback": file_writeback: FileWriteback = FileWriteback::Never,
        [FileWriteback::Any => "..3.1" "S", FileWriteback::KswapdOnly => "3.2..4.10" "S",
            FileWriteback::SeenTwice => "4.11..6.2" "A", FileWriteback::Never => "6.3.." "B C M",
            FileWriteback::SeenTwice => "beside 6.3..6.15" "B", FileWriteback::NotDirect => "posted" ""],
        Some(("writeback-from-reclaim.toml", "any")),
        "Which reclaimers write dirty pages of files that they meet: any that may enter a file system (up to 3.1), all but tasks that reclaim for the machine (the series of 2010 against deep stacks), kswapd in earnest (3.2 to 4.10), kswapd where it meets a page twice among dirty ones only (4.11 to 6.15, on file systems that write single pages), nobody (since 6.16, and on ext4 and XFS before). With the first two a page that may not be written is kept, otherwise it is activated.";
    "reclaim.anon_writeback": anon_writeback: AnonWriteback = AnonWriteback::Any,
        [AnonWriteback::Any => ".." "A B C D", AnonWriteback::NotDirect => "posted" ""],
        Some(("writeback-from-reclaim.toml", "not_direct")),
        "Which reclaimers write pages to swap: any, or all but tasks that reclaim for the machine, as the third posting of the series of 2010 had it.";
    "reclaim.anon_only": anon_only: AnonOnly = AnonOnly::Absent,
        [AnonOnly::Absent => "..6.15" "A B m", AnonOnly::OrFile => "6.16..7.2" "C m",
            AnonOnly::Strict => "7.3.." "D"],
        Some(("regressions/anon-only-takes-files.toml", "or_file")),
        "What memory.reclaim does with swappiness=max, which asks for anonymous memory only: it does not know it (up to 6.15), takes file memory where no anonymous page can be swapped or demoted (6.16 to 7.2), or takes nothing there (since 7.3).";
    "reclaim.on_signal": on_signal: OnSignal = OnSignal::GoesOn,
        [OnSignal::GoesOn => "..5.18" "S", OnSignal::BetweenCalls => "5.19..7.1" "A B", OnSignal::Ends => "7.2.." "C D"],
        Some(("regressions/reclaim-past-its-timeout.toml", "goes_on")),
        "A signal comes for whoever has asked memory.reclaim: the request goes on until it has all or gives up, however long that takes (before there was such a file, 5.19), ends after the call of reclaim that is under way (5.19 to 7.1), or after its batch (since 7.2); its write then fails with EINTR. What was reclaimed by then stays reclaimed. A signal comes when the `timeout` of an event is over.";
    "reclaim.request": request: RequestPart = RequestPart::Quarter,
        [RequestPart::Whole => "..6.7" "A m", RequestPart::Quarter => "6.9.." "B m"],
        Some(("proactive-reclaim.toml", "whole")),
        "How much of a request to memory.reclaim a call of reclaim is for: all that is left (up to 6.7), so that one pass goes on over lists in the proportions with which it began, or a quarter of it, a batch at least (since 6.9), so that each call weighs the lists anew.";
    "reclaim.flusher_wake": flusher_wake: FlusherWake = FlusherWake::Batch,
        [FlusherWake::Scanned => "two_lists ..2.6.35" "S",
            FlusherWake::Batch => "two_lists 6.1.." "A B C D",
            FlusherWake::Never => "generations 6.1..6.12.0" "A E M",
            FlusherWake::Pass => "generations 6.12.117..7.1" "B M",
            FlusherWake::Batch => "generations 7.2.." "C"],
        Some(("writeback-from-reclaim.toml", "never")),
        "When reclaim asks the flushers to write all that is dirty: never (generations before 6.10), after a pass that met nothing but dirty pages of files (generations of 6.12), after such a batch (two lists), or when a call has looked at half as much again as it wants (2010; so many pages only).";
    "reclaim.batch_tallies": batch_tallies: bool = true,
        [true => "two_lists .." "A B C D", false => "generations 6.1..7.1" "A B",
            true => "generations 7.2.." "C"],
        None,
        "What batches of generations meet that is dirty or being written adds up to what reclaim of a group goes by when it is through with a node, as that of two lists does (since 7.2): it waits a tick while all dirty pages that it met were met before. Without it reclaim of generations waits for nobody who writes. It decides only where most of what could be reclaimed on a node is dirty or being written, and no shipped scenario's counters change by it.";
    "reclaim.v1_throttle": v1_throttle: V1Throttle = V1Throttle::Batch,
        [V1Throttle::Off => "two_lists ..6.1.0" "h",
            V1Throttle::Batch => "two_lists 6.1.192.." "h A B C D",
            V1Throttle::Off => "generations 6.1..6.12.0" "A E M",
            V1Throttle::AfterPass => "generations 6.12.117..6.12" "B",
            V1Throttle::Off => "generations 6.13..7.0" "M",
            V1Throttle::AfterPass => "generations 7.1..7.1" "M",
            V1Throttle::Batch => "generations 7.2.." "C"],
        Some(("regressions/m3-dirty-pages-of-cgroup-v1.toml", "after_pass")),
        "Whether reclaim for a group of cgroup v1 waits for writes when it has asked for them: no (generations before 7.1), after the pass (7.1, and 6.12.117), after the batch (two lists, and generations since 7.2).";
    "reclaim.stalls": stalls: Stalls = Stalls::Throttle,
        [Stalls::CongestionWait => "..2.6.35" "S", Stalls::Throttle => "5.16.." "A B C D m"],
        Some(("writeback-from-reclaim.toml", "congestion_wait")),
        "How reclaimers wait for pages under writeback: for a reason and until it is gone (since 5.16), or for a tenth of a second or until a device's queue is no longer congested, whatever the reason (2010).";
    "reclaim.congested_queue": congested_queue: CongestedQueue = CongestedQueue::Waits,
        [CongestedQueue::Keeps => "..2.6.35" "S", CongestedQueue::Waits => "6.1.." "A B C D"],
        None,
        "What a reclaimer does with a dirty page of a file whose device has nearly as many requests as it takes: it submits the write and sleeps until there is room (today, as far as reclaim writes at all), or keeps the page, unless it is kswapd or in the middle of a write of its own (2010). It decides only where tasks write what they meet (reclaim.file_writeback = any), and no shipped scenario's counters change in other profiles than those of 2010.";
    "reclaim.writepage": writepage: Writepage = Writepage::Obeys,
        [Writepage::Obeys => ".." "I", Writepage::Redirties => "beside 2.6.35..2.6.35" "S"],
        None,
        "What a file system does with a page that reclaim hands it to write: it writes it, or it marks it dirty again and leaves it to the flusher, while reclaim counts it as written (XFS and btrfs of mid-2010, and most of ext4). It decides only where reclaim writes files at all (reclaim.file_writeback = any, not_direct, kswapd_only or seen_twice), and no shipped scenario's counters change by it alone.";
    "reclaim.clean_only": clean_only: bool = true,
        [true => "..7.2" "A B C", false => "7.3.." "D"],
        None,
        "On two lists, a page of a file that was read once before and is not used now is taken only if it needs no write (up to 7.2). Where reclaim writes no files, such a page is kept for the flusher in any case, and no shipped scenario's counters change.";
    "reclaim.noio_anon": noio_anon: NoioAnon = NoioAnon::Scan,
        [NoioAnon::Scan => ".." "A B C D", NoioAnon::SkipLowSwapcache => "posted" ""],
        Some(("regressions/noio-scans-anon.toml", "skip_low_swapcache")),
        "A reclaimer that may do no I/O scans anonymous memory on two lists although it can free none of it (up to 7.3), or leaves it alone while less than a 64th of it is in the swap cache (queued for the release after).";
    "reclaim.swap_cache_bypass": swap_cache_bypass: bool = true,
        [false => "..4.14" "S", true => "4.15..6.19" "A B S", false => "7.0.." "C S"],
        Some(("mechanisms-2026.toml", "true")),
        "An anonymous page is read back from a synchronous swap device without the swap cache, and its slot is freed at once (4.15 to 6.19). Since 7.0 it stands in the swap cache until it is mapped: what its group's lists take it for meanwhile is a page that could be freed.";
    "reclaim.machine_counts": machine_counts: bool = false,
        [false => "..7.0" "A B", true => "7.1.." "M C I"],
        None,
        "What is scanned and taken for a group counts in /proc/vmstat, too (7.3), or only in memory.stat. It decides nothing, so no group's counters change.";
    "reclaim.swap_ahead_drain": swap_ahead_drain: bool = true,
        [true => "..7.2" "A B C", false => "7.3.." "D"],
        None,
        "Who has read ahead from swap empties its CPU's batches, so that what was read is found on its list at once (up to 7.2). It takes locks for pages that may never be used. Such pages are found a little later, and no shipped scenario's counters change.";
}
