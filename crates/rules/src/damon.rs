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
        [false => "..6.12" "A B", true => "7.2.." "C D"],
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
        [false => "..6.12" "A B", true => "7.2.." "C D"],
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
}
