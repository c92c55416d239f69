//! Rules of DAMON and its schemes that differ from kernel to kernel. [access-aware 1, 2]

use crate::choice::choice;
use crate::declare::rules;

choice! {
    /// The end of an aggregation window.
    WindowEnd {
        /// When its time is over, so that samples which take long make a window shorter in samples.
        Time = "time",
        /// After the number of samples that fit into it.
        Samples = "samples",
    }
}

choice! {
    /// The count of accesses that schemes see.
    AccessCount {
        /// That of the finished window.
        Finished = "finished",
        /// A moving sum of the last window's samples.
        MovingSum = "moving_sum",
        /// The count so far, and the last window's in proportion to the samples that are left.
        Weighted = "weighted",
    }
}

choice! {
    /// The regions that are split when there are more than half of the allowed number.
    SplitOverHalf {
        /// None.
        Nothing = "none",
        /// Some, others each time.
        Rotating = "rotating",
    }
}

choice! {
    /// The time at which regions above the size limit are cut.
    MinRegions {
        /// At the start, of processes only.
        AtStart = "at_start",
        /// At the start and in each window.
        EachWindow = "each_window",
    }
}

choice! {
    /// The limit of a quota before its first window is over.
    FirstWindow {
        /// That of its settings.
        Computed = "computed",
        /// None.
        Unlimited = "unlimited",
    }
}

choice! {
    /// The point at which a quota is full.
    QuotaFull {
        /// When all of it is charged.
        Charged = "charged",
        /// When less than the smallest region is left.
        BelowRegion = "below_region",
    }
}

choice! {
    /// The effect of `lru_prio` on a page.
    LruPrio {
        /// It is marked as accessed once, which takes two to activate it.
        MarkAccessed = "mark_accessed",
        /// It is activated.
        Activate = "activate",
    }
}

choice! {
    /// How the filters of a scheme combine.
    FilterOrder {
        /// Each filter that fits rejects.
        AnyRejects = "any_rejects",
        /// The first filter that fits decides, by what it allows.
        FirstFit = "first_fit",
    }
}

choice! {
    /// The nodes that a migrated folio may go to when its target is full.
    MigrateFallback {
        /// None: the folio stays.
        Nothing = "none",
        /// Any, the nearest to the target first.
        AnyNode = "any_node",
    }
}

rules! {
    /// What DAMON does.
    DamonRules at machine.damon as DAMON {
    }
    "damon.window": window: WindowEnd = WindowEnd::Samples,
        [WindowEnd::Time => "..6.6" "A S", WindowEnd::Samples => "6.7.." "B C D S"],
        None,
        "When DAMON ends an aggregation window: when its time is over (time), or after the samples that fit into it (samples). With samples, a window lasts longer by the time of the checks, which is too little to change the counters of a shipped scenario.";
    "damon.accesses": accesses: AccessCount = AccessCount::MovingSum,
        [AccessCount::Finished => "..6.6" "A S", AccessCount::MovingSum => "6.7..7.2" "B C S", AccessCount::Weighted => "7.3.." "D"],
        None,
        "The count of accesses that DAMON's schemes see: that of the finished window (finished), a moving sum (moving_sum), or the count so far with the last window's share (weighted). At the end of a window all three are equal. The modules here apply their schemes only then, so no shipped scenario's counters change.";
    "damon.age_zero": age_zero: bool = false,
        [false => "..6.12" "A B", true => "6.18.." "C D S"],
        Some(("damon-reclaim.toml", "true")),
        "A region's age restarts when it begins or ceases to be idle, however small the change is. Without it, a region that a few samples found in use keeps the age that it had while idle.";
    "damon.split_over_half": split_over_half: SplitOverHalf = SplitOverHalf::Nothing,
        [SplitOverHalf::Nothing => "..7.2" "A B C", SplitOverHalf::Rotating => "7.3.." "D"],
        Some(("damon-reclaim.toml", "rotating")),
        "Which regions DAMON splits when there are more than half of the allowed number. none: borders stay until regions merge. rotating: some in each window, others each time.";
    "damon.min_regions": min_regions: MinRegions = MinRegions::AtStart,
        [MinRegions::AtStart => "..7.0" "A B S", MinRegions::EachWindow => "7.1.." "C D S"],
        Some(("damon-reclaim.toml", "each_window")),
        "When DAMON cuts regions that are larger than all memory over the minimum number of regions. at_start: at the start, of processes only; physical memory begins as one region. each_window: at the start and in each window.";
    "damon.first_window": first_window: FirstWindow = FirstWindow::Unlimited,
        [FirstWindow::Computed => "..6.1" "A", FirstWindow::Unlimited => "6.12..6.12" "B", FirstWindow::Computed => "7.2.." "C D"],
        Some(("regressions/x2-quota-without-limit.toml", "computed")),
        "The limit of a quota in its first window: that of its settings (computed), or none (unlimited).";
    "damon.quota_full": quota_full: QuotaFull = QuotaFull::Charged,
        [QuotaFull::Charged => "..6.12" "A B", QuotaFull::BelowRegion => "7.2.." "C D"],
        Some(("damon-reclaim.toml", "below_region")),
        "When the quota of a scheme is full: when all of it is charged (charged), or when less than a page is left (below_region). It matters if a quota is not a multiple of a page.";
    "damon.join_pieces": join_pieces: bool = false,
        [false => "..6.18" "A B S", true => "7.2.." "C D"],
        Some(("damon-reclaim.toml", "true")),
        "A part that a scheme has cut off a region is joined to its left neighbour after the action, if both are alike. Without it, cuts stay until the end of the window.";
    "damon.lru_prio": lru_prio: LruPrio = LruPrio::MarkAccessed,
        [LruPrio::MarkAccessed => "..6.19" "A B S", LruPrio::Activate => "7.0.." "C D S"],
        Some(("damon-lru-sort.toml", "activate")),
        "What the action lru_prio of DAMON_LRU_SORT does with a page: it marks the page as accessed, which activates it the second time (mark_accessed), or activates it (activate).";
    "damon.lru_sort_age": lru_sort_age: bool = false,
        [false => "..6.12" "A B", true => "7.2.." "C D"],
        Some(("damon-lru-sort.toml", "true")),
        "The age of a region counts for the priorities of DAMON_LRU_SORT, as much as its accesses.";
    "damon.pageout_references": pageout_references: bool = false,
        [true => "..6.1" "A", false => "6.12.." "B C D"],
        Some(("damon-reclaim.toml", "true")),
        "The action pageout asks reclaim's reference test before it takes a page. Without it, the action itself skips pages that were accessed since the last look, and reclaim ignores references.";
    "damon.cut_copies_count": cut_copies_count: bool = true,
        [false => "..6.1" "A", true => "6.12.." "B C D"],
        Some(("damon-schemes.toml", "false")),
        "The right part of a cut region has the count of accesses of the left part. Without it, that count is 0 until the end of the window, and the next scheme takes the part for idle.";
    "damon.filter_order": filter_order: FilterOrder = FilterOrder::AnyRejects,
        [FilterOrder::AnyRejects => "..6.13" "B S", FilterOrder::FirstFit => "6.14.." "C D S"],
        Some(("damon-schemes.toml", "first_fit")),
        "How the filters of a scheme of `[[damon]]` combine. any_rejects: each filter whose condition fits rejects, whatever its `allow` is. first_fit: the first filter that fits decides by its `allow`; without a fit, the opposite of the last filter's `allow` holds.";
    "damon.rejected_fill_quota": rejected_fill_quota: bool = true,
        [true => "..7.0" "A B S", false => "7.1.." "C D S"],
        Some(("damon-schemes.toml", "false")),
        "Regions that a filter by address rejects count when a scheme with a quota chooses the lowest priority. They then starve the other regions.";
    "damon.psi_since_boot": psi_since_boot: bool = true,
        [true => "..7.2" "B C", false => "7.3.." "D"],
        Some(("damon-schemes.toml", "false")),
        "The first value of the goal some_mem_psi_us is all stall since boot. Without it, the first value equals the goal's target.";
    "damon.migrate_fallback": migrate_fallback: MigrateFallback = MigrateFallback::Nothing,
        [MigrateFallback::Nothing => "..6.12" "B", MigrateFallback::AnyNode => "7.2..7.2" "C", MigrateFallback::Nothing => "7.3.." "D"],
        Some(("damon-tiering.toml", "any_node")),
        "Where migrate_hot and migrate_cold get a page when the target node is full. none: nowhere, and the folio stays. any_node: on the nearest other node, which can be the folio's own.";
}
