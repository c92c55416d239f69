//! Rules of balance: how much to take from anonymous and how much from file memory. [reclaim 2.3, 4.9]

use crate::choice::choice;
use crate::switch::rules;
use std::ops::Range;

choice! {
    /// How the types are weighed against each other.
    BalanceRule {
        /// By swappiness and what reclaiming each type has cost lately: classic.
        Cost = "cost",
        /// By swappiness and refaults per eviction: MGLRU.
        Feedback = "feedback",
        /// By swappiness alone.
        Swappiness = "swappiness",
    }
}

choice! {
    /// When the running costs of [`BalanceRule::Cost`] are brought up to date.
    CostRule {
        /// At each event, as with `events`, and only I/O costs: a page written or read back is one. 5.8 to 6.1.
        Io = "io",
        /// At each event, for the group and all above it. A burst of one type has halved itself away by the time of the next pass if
        /// one of the other type follows. Up to 7.2.
        Events = "events",
        /// As a pass begins, from counters that are kept anyway, as of their last flush: for the target alone, and the order of events
        /// between two passes does not matter. Since 7.3.
        Counters = "counters",
    }
}

choice! {
    /// What a swappiness of 0 asks of the cost model.
    SwappinessZero {
        /// No anonymous memory is taken for a group's own limit. For the machine it is only where file memory is nearly gone.
        /// Since Linux 3.5.
        Never = "never",
        /// One part of 201: every swappiness counts as one more. Before Linux 3.5.
        OnePart = "one_part",
    }
}

choice! {
    /// How MGLRU's controller chooses the type to evict.
    TypeRule {
        /// The type with the older oldest generation; at equal age, refaults of one tier 0 against those of the other, and
        /// the tier index against the other type. Linux 6.1 to 6.13.
        Linux6_12 = "6.12",
        /// Refaults of all tiers of one type against those of the other, whatever their age; the tier index within the type.
        Linux6_16 = "6.16",
    }
}

choice! {
    /// How much worse a tier may fare than tier 0 before it is protected.
    RefTierGains {
        /// Linux 6.12: twice as many refaults per eviction. Sparing a tier costs all others room, so it has to fare clearly
        /// worse, not a little.
        OneToTwo = "1:2",
        /// Linux 6.16: half as many again, so that read pages are spared sooner.
        TwoToThree = "2:3",
    }
}

choice! {
    /// What a tier is compared with, where that is a tier of its own type.
    TierReference {
        /// Tier 0. Up to 7.3.
        Lowest = "tier_0",
        /// A tier is compared with the tier below it.
        Neighbour = "tier_below",
        /// All tiers below, taken together: what its pages would have to make room for. MGLRU-FG.
        AllBelow = "all_below",
    }
}

rules! {
    /// How much to take of each type, and how the controller learns.
    Balance at group.balance as BALANCE {
    }
    "balance.rule": rule: BalanceRule = BalanceRule::Cost,
        [BalanceRule::Cost => "two_lists .." "A B C D",
            BalanceRule::Feedback => "generations 6.1.." "A B C D",
            BalanceRule::Swappiness => "never" ""],
        Some(("mechanisms.toml", "cost")),
        "How anonymous memory is weighed against file memory: by running costs (classic), by the refault controller (MGLRU), by swappiness alone.";
    "balance.cost": cost: CostRule = CostRule::Events,
        [CostRule::Io => "5.8..6.1" "A", CostRule::Events => "6.2..7.2" "B h", CostRule::Counters => "7.3.." "D M"],
        Some(("swappiness.toml", "counters")),
        "What costs, and when running costs are brought up to date: pages written and read back (io, up to 6.1), or these 32 times and pages scanned in vain once (since 6.2), so that a type most of whose pages are in use is scanned less; at each event, for a group and all above it (up to 7.2), or as a pass begins, from counters as of their last flush (since 7.3), which takes no lock and does not forget an early burst for a later one.";
    "balance.swappiness_zero": swappiness_zero: SwappinessZero = SwappinessZero::Never,
        [SwappinessZero::OnePart => "..3.4" "S", SwappinessZero::Never => "3.5.." "S"],
        Some(("regressions/c9-swappiness-zero.toml", "one_part")),
        "What a swappiness of 0 means to running costs: a group never swaps for its own limit, and the machine does only when it is short of file memory (since 3.5), or a small part of the pressure is anonymous memory's all the same.";
    "balance.controller": controller: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("tiers-of-read-pages.toml", "false")),
        "Refaults decide which tiers are protected and which type is taken. Without it swappiness alone decides, and only pages with a full count are spared.";
    "balance.smoothing": smoothing: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("mechanisms.toml", "false")),
        "The controller remembers earlier generations, each half as much as the next. Without it only the present one counts.";
    "balance.type_rule": type_rule: TypeRule = TypeRule::Linux6_12,
        [TypeRule::Linux6_12 => "6.1..6.13" "A E B", TypeRule::Linux6_16 => "6.14.." "C"],
        Some(("mechanisms.toml", "6.16")),
        "How the controller picks the type: the one with the older generation first, then tier 0 against tier 0 (6.12), or all tiers by refaults alone (6.16).";
    "balance.ref_tier_gains": ref_tier_gains: RefTierGains = RefTierGains::OneToTwo,
        [RefTierGains::OneToTwo => "6.1..6.13" "A B", RefTierGains::TwoToThree => "6.14.." "C"],
        Some(("tiers-of-read-pages.toml", "2:3")),
        "How much worse than tier 0 a tier may fare before it is protected: 1:2 (6.12, and fg3) or 2:3 (6.16).";
    "balance.tier_reference": tier_reference: TierReference = TierReference::Lowest,
        [TierReference::Lowest => "6.1.." "S", TierReference::Neighbour => "posted" "",
            TierReference::AllBelow => "posted" ""],
        Some(("gets-among-scans.toml", "tier_0")),
        "What a tier is compared with before it is protected: tier 0 (up to 7.3), the tier below, or all tiers below together (fg3). What is posted of fg3 leaves open which of the last two.";
}

impl TierReference {
    /// The tiers that `tier` is compared with.
    #[inline]
    pub fn tiers(self, tier: usize) -> Range<usize> {
        match self {
            TierReference::Lowest => 0..1,
            TierReference::Neighbour => tier - 1..tier,
            TierReference::AllBelow => 0..tier,
        }
    }
}

impl RefTierGains {
    /// The gains of tier 0 and of all other tiers.
    #[inline]
    pub fn pair(self) -> (u64, u64) {
        match self {
            RefTierGains::OneToTwo => (1, 2),
            RefTierGains::TwoToThree => (2, 3),
        }
    }
}
