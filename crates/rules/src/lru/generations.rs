//! Rules of generations that differ from kernel to kernel, as data: where new, refaulted, rejected and protected pages go, when eviction
//! ages, and what `lru_gen` takes. [reclaim 4; reclaim-6.12 4.1 to 4.9; mglru-2026 2]

use super::{Gauges, PassRules, References, Switching};
use crate::choice::{Values, choice};
use crate::switch::rules;
use crate::workingset::{RefaultActivate, Restore, ShadowCount};

choice! {
    /// What eviction does with a page of a file at the old end that is dirty or being written. It can't be freed either way.
    DirtyAtTail {
        /// Takes it as any other; reclaim activates it, and the end of its write brings it back to the old end. Late versions of
        /// 6.12 alone.
        Isolate = "isolate",
        /// Moves it to the next generation, where it soon is at the old end again: the page goes to and fro between the two as long
        /// as its write takes. Linux 6.1 to 7.1.
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
    /// What becomes of the count of accesses of a page that comes to a generation as active: one that a fault brings in, or a look around finds used.
    ActiveUse {
        /// The count stays, and with it the page's tier. 6.1, and since 6.14.
        Keep = "keep",
        /// The count is lost: the page has moved to a younger generation by it. 6.12.
        Lost = "lost",
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
    /// What of a batch is judged a second time, because it may have become free while it was in reclaim's hands.
    SecondLook {
        /// Clean pages that nobody maps, and that no look around has found used: REFERENCED is cleared when they are isolated. Up to 6.13.
        Unreferenced = "unreferenced",
        /// Clean pages that nobody maps. REFERENCED may be from long before. Since 6.14.
        Unmapped = "unmapped",
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

rules! {
    /// How generations are kept, where a group keeps them.
    GenerationRules at group.generations as GENERATIONS {
        /// How a pass is made.
        pass: PassRules,
    }
    "lru.tiers": tiers: bool = true,
        [true => "6.1.." "A B C D", false => "never" ""],
        Some(("tiers-of-read-pages.toml", "false")),
        "Pages read repeatedly through file descriptors are spared if their tier refaults more. Without it, use through a descriptor counts for nothing.";
    "lru.full_count": full_count: bool = true,
        [false => "6.1.0..6.1.67" "M m", true => "6.1.68..6.1" "A m", false => "6.2..6.6.7" "M m",
            true => "6.6.8.." "M A B"],
        Some(("tiers-of-read-pages.toml", "false")),
        "Pages with a full count of reads are spared whatever the controller says (since 6.7). Without it their tier decides. If the controller is off, nothing else spares a page.";
    "lru.references": references: References = References::Linux6_12,
        [References::Linux6_12 => "6.1..6.13" "A E B", References::Linux6_16 => "6.14.." "C D",
            References::Frequency => "posted" ""],
        Some(("mechanisms.toml", "6.16")),
        "How accesses are counted and what a young entry does: the ladder and the walk's steps of 6.12 or 6.16, or one count for reads and mapped use alike that promotes pages by itself (fg3, the proposal of 2026).";
    "lru.read_promotion": read_promotion: bool = true,
        [true => "posted" "", false => "never" ""],
        Some(("gets-among-scans.toml", "false")),
        "A page read twice leaves the oldest generation, and one read so often that its count is full moves to the next. Without it only the controller can spare a page that is read. Only with the references of fg3.";
    "lru.gauges": gauges: Gauges = Gauges::Generations,
        [Gauges::Generations => "6.1.." "A B C D", Gauges::Count => "posted" ""],
        Some(("gets-among-scans.toml", "generations")),
        "Which pages count as active: those of the two youngest generations, so that the gauges jump when one is opened, or those accessed three times (fg3, and only with its references). Reclaim for the machine begins the more gently the more is inactive.";
    "lru.fault_in": fault_in: FaultIn = FaultIn::Youngest,
        [FaultIn::Youngest => "6.1..6.13" "A B", FaultIn::SecondYoungest => "6.14..7.1" "S",
            FaultIn::Reference => "7.2.." "C D", FaultIn::LikeRead => "posted" ""],
        Some(("mechanisms.toml", "like_read")),
        "A fault brings a page in, and it goes to the youngest generation (6.12), the second youngest (6.16), where read pages go, or where pages go that were read once unless it was in use when it was evicted (since 7.2).";
    "lru.rejected": rejected: Rejected = Rejected::Youngest,
        [Rejected::Youngest => "6.1..6.13" "A B", Rejected::SecondYoungest => "6.14.." "C"],
        Some(("mechanisms.toml", "second_youngest")),
        "Reclaim could not free a page, and it goes to the youngest generation (6.12) or the second youngest (6.16).";
    "lru.rejected_use": rejected_use: RejectedUse = RejectedUse::Lost,
        [RejectedUse::Lost => "6.1..6.13" "A B", RejectedUse::Keep => "6.14.." "C D",
            RejectedUse::Clear => "posted" ""],
        Some(("mechanisms-2026.toml", "lost")),
        "Reclaim could not free a page, and what was counted of its use is lost (6.12), stays unless it would be in the oldest generation again (6.16), or is lost in any case (queued for the release after 7.3).";
    "lru.active_use": active_use: ActiveUse = ActiveUse::Lost,
        [ActiveUse::Keep => "6.1..6.1" "A", ActiveUse::Lost => "6.12..6.13" "B m", ActiveUse::Keep => "6.14.." "S D"],
        Some(("mechanisms.toml", "keep")),
        "A page comes to a generation as active, from a fault or because a look around has found it used. What was counted of its use stays, so that its tier may spare it when it is oldest again (6.1, and since 6.14), or is lost (6.12).";
    "lru.second_look": second_look: SecondLook = SecondLook::Unreferenced,
        [SecondLook::Unreferenced => "6.1..6.13" "A B", SecondLook::Unmapped => "6.14.." "S"],
        Some(("mechanisms-2026.toml", "unreferenced")),
        "Reclaim judges pages of a batch a second time that are clean and unmapped by then, as their write or their wait in a batch of the CPU has ended meanwhile: those that were not referenced (up to 6.13), or all (since 6.14, where a page carries its reference along).";
    "lru.rmap_promote": rmap_promote: RmapPromote = RmapPromote::SecondSeen,
        [RmapPromote::SecondSeen => "rests ..6.13" "S", RmapPromote::SecondSeen => "6.14..7.1" "S", RmapPromote::RefsOverOne => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "second_seen")),
        "Reclaim finds a mapped page used that was seen used before: it is in use (6.16), or only if it was accessed more than once, and is activated with one access more otherwise (since 7.2). Only with the references of 6.16.";
    "lru.new_file": new_file: NewFile = NewFile::SecondOldest,
        [NewFile::Oldest => "6.1.0..6.1.67" "M m", NewFile::SecondOldest => "6.1.68..6.1" "A m",
            NewFile::Oldest => "6.2..6.6.7" "M m", NewFile::SecondOldest => "6.6.8..6.13" "M B",
            NewFile::ByWorkingset => "6.14..7.1" "S", NewFile::ByUse => "7.2.." "C D",
            NewFile::ByCount => "posted" ""],
        Some(("regressions/m6-files-used-twice.toml", "oldest")),
        "A read brings a page in, and it goes to the oldest generation (before 6.7) or to the second oldest while the window is full (6.12). In 6.16 it matters whether it was in use when evicted, since 7.2 also whether it was accessed before it is on a list, with fg3 whether it was twice.";
    "lru.new_anon": new_anon: NewAnon = NewAnon::SecondYoungest,
        [NewAnon::SecondOldest => "6.1.0..6.1.67" "M m", NewAnon::SecondYoungest => "6.1.68..6.1" "A m",
            NewAnon::SecondOldest => "6.2..6.6.7" "M m", NewAnon::SecondYoungest => "6.6.8.." "M B C"],
        Some(("mechanisms.toml", "second_oldest")),
        "A page that needs a write before it can be freed goes to the second oldest generation (before 6.7) or the second youngest. With only three generations both are the same.";
    "lru.protect_to": protect_to: ProtectTo = ProtectTo::Tail,
        [ProtectTo::Tail => "6.1..6.13" "A E B", ProtectTo::Head => "6.14.." "C"],
        Some(("mechanisms.toml", "head")),
        "Which end of the next generation a protected page goes to: tail (6.12) or head (6.16).";
    "lru.dirty": dirty: DirtyAtTail = DirtyAtTail::Isolate,
        [DirtyAtTail::NextGeneration => "6.1..6.12.0" "A E M",
            DirtyAtTail::Isolate => "6.12.117..6.12" "B",
            DirtyAtTail::NextGeneration => "6.13..7.1" "M S", DirtyAtTail::Reactivate => "7.2.." "C"],
        Some(("regressions/m3-dirty-pages-of-cgroup-v1.toml", "isolate")),
        "A page at the old end that is dirty or being written is moved to the next generation, where it is soon met again (6.1 to 7.1), or isolated and activated (late versions of 6.12, and since 7.2, where it is not forgotten meanwhile that it is to come back when it is written).";
    "lru.aging": aging: AgingRule = AgingRule::Linux6_12,
        [AgingRule::Linux6_12 => "6.1..6.13" "A E B", AgingRule::Linux6_16 => "6.14.." "C D",
            AgingRule::V4_2021 => "posted" ""],
        Some(("regressions/m12-idle-memory-out-of-reach.toml", "6.16")),
        "When eviction stops to age: by sizes, while the window is neither full nor used up (6.1 to 6.13), whenever it isn't full (6.16), or only when it is used up (as posted in 2021).";
    "lru.interface": interface: Interface = Interface::Linux6_12,
        [Interface::Linux6_12 => "6.1..6.14" "A B", Interface::Linux6_16 => "6.16.." "S C"],
        None,
        "How commands written to lru_gen are read. 6.12: `+` of a generation that exists already succeeds and does nothing. 6.16: it opens the next, and swappiness `max` is allowed. Reclaim itself decides the same, so no shipped scenario's counters change.";
    "lru.switching": switching: Switching = Switching::Both,
        [Switching::NewOnly => "6.1..7.0" "A B", Switching::Both => "7.1.." "S C"],
        Some(("regressions/m5-switch-at-the-limit.toml", "new_only")),
        "/sys/kernel/mm/lru_gen/enabled moves pages between generations and two lists. Meanwhile reclaim walks both, or the new ones only: this ends in a false OOM at a limit.";
    "workingset.restore": restore: Restore = Restore::NearlyFull,
        [Restore::Full => "6.1.0..6.1.67" "M m", Restore::NearlyFull => "6.1.68..6.1" "A m",
            Restore::Full => "6.2..6.6.7" "M m", Restore::NearlyFull => "6.6.8..6.13" "M B", Restore::NearlyFull => "rests 6.14.." "C D"],
        Some(("tiers-of-read-pages.toml", "full")),
        "Pages that come back soon can get their use restored. Before 6.7: pages with a full count, as in use. 6.12: also those with one use less, and their count is full again. Only with the references of 6.12.";
    "workingset.refault_activate": refault_activate: RefaultActivate = RefaultActivate::Fault,
        [RefaultActivate::Fault => "rests ..6.13" "S", RefaultActivate::Fault => "6.14..7.1" "S", RefaultActivate::FaultOfWorkingset => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "fault")),
        "Which pages that a fault brings back soon count as activated: all (6.16 to 7.1), or those that were in use when they were evicted (since 7.2). Only with the references of 6.16, where it is a counter and decides nothing.";
    "workingset.shadow_count": shadow_count: ShadowCount = ShadowCount::Full,
        [ShadowCount::Full => "posted" "", ShadowCount::Four => "never" ""],
        Some(("gets-among-scans.toml", "four")),
        "What a shadow remembers of a page's count: all of it, or 4 at most, so that the controller takes refaults of the uppermost tier for those of the next. Only with the references of fg3, whose count goes to 7.";
    "lru.generations": count_max: u8 in (Values::Number(2, 64)) = 4,
        [4 => "6.1.." "A B C D", 7 => "posted" ""],
        Some(("tiers-of-read-pages.toml", "8")),
        "At most so many generations exist. Linux: 4. More tell ages apart more finely and age more often.";
}

impl GenerationRules {
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
