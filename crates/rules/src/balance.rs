//! Rules of balance: how much to take from anonymous and how much from file memory. [reclaim 2.3, 4.9]

use crate::choice::choice;
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

/// How much to take of each type, and how the controller learns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Balance {
    /// How the types are weighed.
    pub rule: BalanceRule,
    /// Refaults feed back: into the choice of the type (under [`BalanceRule::Feedback`]) and into which tiers are protected.
    pub controller: bool,
    /// The controller remembers what it has seen in former generations, half as much for each; else only the present one
    /// counts.
    pub smoothing: bool,
    /// How the type is chosen.
    pub type_rule: TypeRule,
    /// When running costs are brought up to date.
    pub cost: CostRule,
    /// What a swappiness of 0 means to running costs.
    pub swappiness_zero: SwappinessZero,
    /// When a tier is protected.
    pub ref_tier_gains: RefTierGains,
    /// The tier that a tier's refaults are compared with.
    pub tier_reference: TierReference,
}

impl Balance {
    pub(crate) fn cost() -> Balance {
        Balance { rule: BalanceRule::Cost, ..Balance::feedback_6_12() }
    }

    pub(crate) fn feedback_6_12() -> Balance {
        Balance {
            rule: BalanceRule::Feedback,
            controller: true,
            smoothing: true,
            type_rule: TypeRule::Linux6_12,
            cost: CostRule::Events,
            swappiness_zero: SwappinessZero::Never,
            ref_tier_gains: RefTierGains::OneToTwo,
            tier_reference: TierReference::Lowest,
        }
    }

    /// The balance of MGLRU-FG.
    pub(crate) fn frequency_guided() -> Balance {
        Balance {
            ref_tier_gains: RefTierGains::OneToTwo,
            tier_reference: TierReference::AllBelow,
            ..Balance::feedback_6_16()
        }
    }

    pub(crate) fn feedback_6_16() -> Balance {
        Balance {
            type_rule: TypeRule::Linux6_16,
            ref_tier_gains: RefTierGains::TwoToThree,
            ..Balance::feedback_6_12()
        }
    }
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
