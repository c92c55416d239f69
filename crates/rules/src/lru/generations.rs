//! Rules of generations that differ from kernel to kernel, as data: where new, refaulted, rejected and protected pages go, when eviction
//! ages, and what `lru_gen` takes. [reclaim 4; reclaim-6.12 4.1 to 4.9; mglru-2026 2]

use super::{Gauges, PassRules, References, Switching};
use crate::choice::choice;
use crate::workingset::{RefaultActivate, Restore, ShadowCount};

choice! {
    /// What eviction does with a page of a file at the old end that is dirty or being written. It can't be freed either way.
    DirtyAtTail {
        /// Takes it as any other; reclaim activates it, and the end of its write brings it back to the old end. Linux up to 6.13,
        /// and since 7.2.
        Isolate = "isolate",
        /// Moves it to the next generation, where it soon is at the old end again: the page goes to and fro between the two as long
        /// as its write takes. Linux 6.14 to 7.1.
        NextGeneration = "next_generation",
        /// As the first, and reclaim's wish for the page, by which the end of its write brings it back, outlives that it is taken off
        /// its list. Linux since 7.2.
        Reactivate = "reactivate",
    }
}

choice! {
    /// Where a page goes that was added inside a fault, and so is known to be in use.
    FaultIn {
        /// 6.12: to the youngest generation.
        Youngest = "youngest",
        /// 6.16: to the second youngest; to the youngest only if it was in use when it was evicted.
        SecondYoungest = "second_youngest",
        /// Nowhere special: it may have been mapped by readahead and never be used (Barry Song's proposal of 2026).
        LikeRead = "like_read",
        /// Since 7.2: where a page goes that was read once, unless it was in use when it was evicted. Readahead brings pages that
        /// nobody touches; they pushed out those that are in use.
        Reference = "reference",
    }
}

choice! {
    /// Where a page goes that reclaim had in its hands and could not free.
    Rejected {
        /// 6.12: to the youngest generation, out of the way for as long as possible.
        Youngest = "youngest",
        /// 6.16: to the second youngest.
        SecondYoungest = "second_youngest",
    }
}

choice! {
    /// What becomes of the count of accesses of a page that reclaim could not free.
    RejectedUse {
        /// The count is lost, and the page goes to a young generation, unless that waits for a write. 6.12.
        Lost = "lost",
        /// The count stays, unless the page would be in the oldest generation again; then it is lost, and the page goes to a young one.
        /// 6.16 to 7.3; from 7.2 on dirty pages come this way, too.
        Keep = "keep",
        /// The count is lost, wherever the page goes: to move to a younger generation is a promotion, and the count begins anew. Queued for
        /// the release after 7.3.
        Clear = "clear",
    }
}

choice! {
    /// What a young page-table entry that the reverse map finds makes of a page's count, by the references of 6.16.
    RmapPromote {
        /// A page found used for the second time is in use. 6.16 to 7.1.
        SecondSeen = "second_seen",
        /// Only one that was accessed more than once before is. Another one is activated and counts one access more. Since 7.2, where
        /// pages that a fault brought in begin with one.
        RefsOverOne = "refs_over_one",
    }
}

choice! {
    /// Where a new page goes that nobody has mapped: one read through a file descriptor.
    NewFile {
        /// Before 6.7: to the oldest generation.
        Oldest = "oldest",
        /// 6.7 to 6.12: to the second oldest while the window is full, so that the feedback loop has time to see its refault.
        SecondOldest = "second_oldest",
        /// 6.16: to the oldest, but to the second oldest if it was in use when it was evicted.
        ByWorkingset = "by_workingset",
        /// Since 7.2: to the oldest, but to the second oldest if it was in use when it was evicted, or was accessed as it came in.
        ByUse = "by_use",
        /// To the oldest, but to the second oldest if two accesses are counted. MGLRU-FG.
        ByCount = "by_count",
    }
}

choice! {
    /// Where a page goes that needs a write before it can be freed: anonymous and not in the swap cache, or waiting for its
    /// writeback.
    NewAnon {
        /// Before 6.7: to the second oldest generation, which of a full window may be evicted next.
        SecondOldest = "second_oldest",
        /// Since 6.7: to the second youngest, which eviction spares.
        SecondYoungest = "second_youngest",
    }
}

choice! {
    /// Which end of the next generation protected pages go to.
    ProtectTo {
        /// 6.12: to the tail, so that they are looked at first when that generation is the oldest: they were spared, not used, and
        /// have to earn it again.
        Tail = "tail",
        /// 6.16: to the head, behind whatever that generation holds already.
        Head = "head",
    }
}

choice! {
    /// What commands written to `lru_gen` may say and what they mean.
    Interface {
        /// 6.12: `+` of a generation that is there already does nothing; without force it is refused while the window is full.
        Linux6_12 = "6.12",
        /// 6.16: `+` opens a generation after whichever is the youngest, and fails if someone else did; swappiness may be `max`.
        Linux6_16 = "6.16",
    }
}

choice! {
    /// When eviction stops to age instead.
    AgingRule {
        /// As posted in 2021: only when nothing but the generations that eviction spares is left of either type.
        V4_2021 = "v4-2021",
        /// 6.1 to 6.13: always when only the generations that eviction spares are left; never while the window is full; between
        /// the two (three of Linux's four) if the youngest holds more than half of all pages, so that ages say little, or the
        /// youngest that may be evicted less than a quarter, so that soon there is nothing to choose from.
        Linux6_12 = "6.12",
        /// 6.16: always unless the window is full.
        Linux6_16 = "6.16",
    }
}

/// A swappiness for which only anonymous memory is evicted: what 6.16 takes for `max` in a command.
pub const SWAPPINESS_ANON_ONLY: u8 = 201;

/// How generations are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GenerationRules {
    /// At most so many exist. Range 2 to 64, default 4.
    pub count_max: u8,
    /// Pages that were read repeatedly are spared where the controller says so; else all pages of a generation are alike.
    pub tiers: bool,
    /// How accesses are counted.
    pub references: References,
    /// Where a page goes that was added inside a fault.
    pub fault_in: FaultIn,
    /// Where a page goes that could not be freed.
    pub rejected: Rejected,
    /// A page that is read so often moves to the next generation, rather than when the controller spares it. Only with
    /// [`References::Frequency`].
    pub read_promotion: bool,
    /// Which pages the gauges call active.
    pub gauges: Gauges,
    /// What becomes of the count of accesses of a page that could not be freed.
    pub rejected_use: RejectedUse,
    /// What reclaim makes of a young page-table entry.
    pub rmap_promote: RmapPromote,
    /// Which refaults in a fault count as activations.
    pub refault_activate: RefaultActivate,
    /// How much of its count a shadow holds.
    pub shadow_count: ShadowCount,
    /// Where a page goes that was read.
    pub new_file: NewFile,
    /// Where a page goes that needs a write first.
    pub new_anon: NewAnon,
    /// A page whose count is full is spared whatever the controller says, for a further access could not show; else its tier
    /// decides, as for all others.
    pub full_count: bool,
    /// What a page that comes back soon is given of the count that it had.
    pub restore: Restore,
    /// Where a protected page goes.
    pub protect_to: ProtectTo,
    /// What eviction does with a page at the old end that is dirty or being written.
    pub dirty: DirtyAtTail,
    /// When eviction ages.
    pub aging: AgingRule,
    /// How a pass is made.
    pub pass: PassRules,
    /// Reclaim for the whole machine comes by groups in the order of the memcg LRU (since 6.2); else it walks their tree.
    pub memcg_lru: bool,
    /// Who comes by the groups of the memcg LRU goes on with the next generation of them when it has emptied one (before 6.8), and so
    /// comes by groups again that it has just aged; else it stays in the one that was old when it began.
    pub memcg_lru_restart: bool,
    /// What `lru_gen` takes and shows.
    pub interface: Interface,
    /// What reclaim walks while the group is switched between generations and two lists.
    pub switching: Switching,
}

impl GenerationRules {
    /// The fourth posting, of August 2021. What is not known of it is as in 6.12 ([`crate::policy::Policy::mglru_v4_2021`]).
    pub(crate) fn v4_2021() -> GenerationRules {
        GenerationRules {
            count_max: 7,
            new_file: NewFile::ByWorkingset,
            new_anon: NewAnon::SecondOldest,
            full_count: false,
            restore: Restore::Full,
            aging: AgingRule::V4_2021,
            memcg_lru: false,
            ..GenerationRules::linux_6_12()
        }
    }

    pub(crate) fn linux_6_12() -> GenerationRules {
        GenerationRules {
            count_max: 4,
            tiers: true,
            references: References::Linux6_12,
            read_promotion: true,
            gauges: Gauges::Generations,
            fault_in: FaultIn::Youngest,
            rejected: Rejected::Youngest,
            rejected_use: RejectedUse::Lost,
            rmap_promote: RmapPromote::SecondSeen,
            refault_activate: RefaultActivate::Fault,
            shadow_count: ShadowCount::Full,
            new_file: NewFile::SecondOldest,
            new_anon: NewAnon::SecondYoungest,
            full_count: true,
            restore: Restore::NearlyFull,
            protect_to: ProtectTo::Tail,
            dirty: DirtyAtTail::Isolate,
            aging: AgingRule::Linux6_12,
            pass: PassRules::linux_6_12(),
            memcg_lru: true,
            memcg_lru_restart: false,
            interface: Interface::Linux6_12,
            switching: Switching::Both,
        }
    }

    pub(crate) fn linux_6_16() -> GenerationRules {
        GenerationRules {
            count_max: 4,
            tiers: true,
            references: References::Linux6_16,
            read_promotion: true,
            gauges: Gauges::Generations,
            fault_in: FaultIn::SecondYoungest,
            rejected: Rejected::SecondYoungest,
            rejected_use: RejectedUse::Keep,
            rmap_promote: RmapPromote::SecondSeen,
            refault_activate: RefaultActivate::Fault,
            shadow_count: ShadowCount::Full,
            new_file: NewFile::ByWorkingset,
            new_anon: NewAnon::SecondYoungest,
            full_count: true,
            restore: Restore::NearlyFull,
            protect_to: ProtectTo::Head,
            dirty: DirtyAtTail::NextGeneration,
            aging: AgingRule::Linux6_16,
            pass: PassRules::linux_6_12(),
            memcg_lru: true,
            memcg_lru_restart: false,
            interface: Interface::Linux6_16,
            switching: Switching::Both,
        }
    }

    pub(crate) fn linux_7_3() -> GenerationRules {
        GenerationRules {
            fault_in: FaultIn::Reference,
            rmap_promote: RmapPromote::RefsOverOne,
            refault_activate: RefaultActivate::FaultOfWorkingset,
            new_file: NewFile::ByUse,
            dirty: DirtyAtTail::Reactivate,
            pass: PassRules::linux_7_3(),
            ..GenerationRules::linux_6_16()
        }
    }

    /// The rules of 7.3 with frequency guided promotion as posted for the third time, and a count that begins anew wherever reclaim puts
    /// a page back.
    pub(crate) fn frequency_guided() -> GenerationRules {
        GenerationRules {
            references: References::Frequency,
            gauges: Gauges::Count,
            fault_in: FaultIn::LikeRead,
            new_file: NewFile::ByCount,
            rejected_use: RejectedUse::Clear,
            ..GenerationRules::linux_7_3()
        }
    }

    /// Whether the gauges go by counts of accesses.
    #[inline]
    pub fn gauges_count(self) -> bool {
        self.gauges == Gauges::Count && self.references == References::Frequency
    }

    /// Youngest generations that eviction leaves alone.
    #[inline]
    pub fn spared(self) -> u64 {
        spared(u64::from(self.count_max))
    }
}

/// Youngest generations that eviction leaves alone where there can be so many.
#[inline]
pub fn spared(most: u64) -> u64 {
    (most - 1).min(2)
}
