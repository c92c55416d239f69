//! Rules of balance: how much to take from anonymous and how much from file memory. [reclaim 2.3, 4.9]

use crate::choice::choice;
use crate::declare::rules;
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
    /// What costs in [`BalanceRule::Cost`], and when running costs are brought up to date.
    CostRule {
        /// Each page written or read back costs one, at that moment, for its group and all groups above it.
        /// Scanned pages cost nothing.
        Io = "io",
        /// Each event costs at that moment, for its group and all groups above it. A burst of one type has
        /// halved itself away by the next pass if a burst of the other type follows.
        Events = "events",
        /// A pass adds costs as it begins, from counters that are kept anyway, as of their last flush. Only the
        /// target's costs count, and the order of events between two passes does not matter.
        Counters = "counters",
    }
}

choice! {
    /// What a swappiness of 0 means to the cost model.
    SwappinessZero {
        /// Reclaim takes no anonymous memory for a group's own limit. For the machine it takes some only when
        /// file memory is nearly gone.
        Never = "never",
        /// Anonymous memory gets one part of 201 of the pressure, because every swappiness counts as one more.
        OnePart = "one_part",
    }
}

choice! {
    /// How MGLRU's controller chooses the type to evict.
    TypeRule {
        /// The controller evicts the type with the older oldest generation. At equal age it compares the
        /// refaults of both tiers 0. It finds the tier index against the other type.
        Linux6_12 = "6.12",
        /// The controller compares the refaults of all tiers of both types, whatever their age. It finds the
        /// tier index within the type.
        Linux6_16 = "6.16",
    }
}

choice! {
    /// How much worse a tier may do than tier 0 before it is protected.
    RefTierGains {
        /// Twice as many refaults per eviction. Sparing a tier takes memory from all others, so the tier has to
        /// do clearly worse, not a little.
        OneToTwo = "1:2",
        /// Half as many refaults per eviction again, so that pages that are read are spared sooner.
        TwoToThree = "2:3",
    }
}

choice! {
    /// What a tier is compared with, if that is a tier of its own type.
    TierReference {
        /// A tier is compared with tier 0.
        Lowest = "tier_0",
        /// A tier is compared with the tier below it.
        Neighbour = "tier_below",
        /// A tier is compared with all tiers below it together, whose pages would have to make room for its
        /// own. MGLRU-FG does so.
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
        "How anonymous memory is weighed against file memory: by running costs (classic LRU), by the refault controller (MGLRU), or by swappiness alone.";
    "balance.cost": cost: CostRule = CostRule::Events,
        [CostRule::Io => "5.8..6.1" "A", CostRule::Events => "6.2..7.2" "B h", CostRule::Counters => "7.3.." "D M"],
        Some(("swappiness.toml", "counters")),
        "What costs, and when running costs are updated. `io`: each page written or read back costs one. `events`: it costs 32, and a page scanned in vain costs one, so that a type whose pages are mostly in use is scanned less. Both add the cost at each event, for a group and its ancestors. `counters`: a pass adds costs when it begins, from counters as of their last flush. This takes no lock and does not forget an early burst because of a later one.";
    "balance.swappiness_zero": swappiness_zero: SwappinessZero = SwappinessZero::Never,
        [SwappinessZero::OnePart => "..3.4" "S", SwappinessZero::Never => "3.5.." "S"],
        Some(("regressions/c9-swappiness-zero.toml", "one_part")),
        "How running costs treat a swappiness of 0. `never`: a group does not swap because of its own limit, and the machine swaps only when it is short of file memory. `one_part`: anonymous memory still gets a small part of the pressure.";
    "balance.controller": controller: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("tiers-of-read-pages.toml", "false")),
        "Refaults decide which tiers are protected and which type is evicted. Without the controller, swappiness alone decides, and only pages with a full count are spared.";
    "balance.smoothing": smoothing: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("mechanisms.toml", "false")),
        "The controller remembers earlier generations, each with half the weight of the next one. Without it only the present generation counts.";
    "balance.type_rule": type_rule: TypeRule = TypeRule::Linux6_12,
        [TypeRule::Linux6_12 => "6.1..6.13" "A E B", TypeRule::Linux6_16 => "6.14.." "C"],
        Some(("mechanisms.toml", "6.16")),
        "How the controller picks the type to evict. `6.12`: the type with the older generation first, then tier 0 is compared with tier 0. `6.16`: all tiers, by refaults alone.";
    "balance.ref_tier_gains": ref_tier_gains: RefTierGains = RefTierGains::OneToTwo,
        [RefTierGains::OneToTwo => "6.1..6.13" "A B", RefTierGains::TwoToThree => "6.14.." "C"],
        Some(("tiers-of-read-pages.toml", "2:3")),
        "How much worse than tier 0 a tier may perform before it is protected: 1:2, as also in the posting of fg3, or 2:3.";
    "balance.tier_reference": tier_reference: TierReference = TierReference::Lowest,
        [TierReference::Lowest => "6.1.." "S", TierReference::Neighbour => "posted" "",
            TierReference::AllBelow => "posted" ""],
        Some(("gets-among-scans.toml", "tier_0")),
        "What a tier is compared with before it is protected: tier 0, the tier below, or all tiers below together. The posting of fg3 does not say which of the last two it uses.";
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
