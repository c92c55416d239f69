//! Rules of MGLRU that differ from kernel to kernel, as data. They cover the place of new, refaulted, rejected and protected pages, the condition for
//! eviction to age, and the commands of `lru_gen`. [reclaim 4; reclaim-6.12 4.1 to 4.9; mglru-2026 2]

use super::{Gauges, PassRules, References, Switching};
use crate::choice::{Values, choice};
use crate::declare::rules;
use crate::workingset::{RefaultActivate, Restore, ShadowCount};

choice! {
    /// What eviction does with a page of a file at the old end that is dirty or being written. It can't be freed either way.
    DirtyAtTail {
        /// Eviction takes it like any other page. Reclaim activates it, and the end of its write brings it back
        /// to the old end.
        Isolate = "isolate",
        /// Eviction moves it to the next generation, where it soon is at the old end again. The page goes to
        /// and fro between the two as long as its write takes.
        NextGeneration = "next_generation",
        /// Eviction takes it as [`DirtyAtTail::Isolate`] does. Reclaim's mark, by which the end of the write
        /// brings the page back, stays when the page leaves its list.
        Reactivate = "reactivate",
    }
}

choice! {
    /// Where a page goes that was added inside a fault, and so is known to be in use.
    FaultIn {
        /// The page goes to the youngest generation.
        Youngest = "youngest",
        /// The page goes to the second youngest generation, or to the youngest if it was in use when it was
        /// evicted.
        SecondYoungest = "second_youngest",
        /// The page goes where a read page goes, because readahead may have mapped it and it may never be used.
        /// Barry Song's proposal of 2026.
        LikeRead = "like_read",
        /// The page goes where a page goes that was read once, unless it was in use when it was evicted.
        /// Otherwise pages that readahead brings and no task touches push out pages in use.
        Reference = "reference",
    }
}

choice! {
    /// Where a page goes that reclaim had isolated and could not free.
    Rejected {
        /// The page goes to the youngest generation, out of the way for as long as possible.
        Youngest = "youngest",
        /// The page goes to the second youngest generation.
        SecondYoungest = "second_youngest",
    }
}

choice! {
    /// Treatment of the access count of a page that reclaim could not free.
    RejectedUse {
        /// The count is lost, and the page goes to a young generation, unless the page waits for a write.
        Lost = "lost",
        /// The count stays, unless the page would be in the oldest generation again: then it is lost, and the
        /// page goes to a young one. Dirty pages come this way, too, if eviction isolates them.
        Keep = "keep",
        /// The count is lost, wherever the page goes: a move to a younger generation is a promotion, and the
        /// count begins anew.
        Clear = "clear",
    }
}

choice! {
    /// Treatment of the access count of a page that joins a generation as active, because a fault brings it in or a look-around finds it used.
    ActiveUse {
        /// The count stays, and with it the page's tier.
        Keep = "keep",
        /// The count is lost, because it has moved the page to a younger generation.
        Lost = "lost",
    }
}

choice! {
    /// What a young page-table entry that the reverse map finds does to a page's count, with
    /// [`References::Linux6_16`].
    RmapPromote {
        /// A page found used for the second time is in use.
        SecondSeen = "second_seen",
        /// A page is in use only if it was accessed more than once before. Another page is activated, and its
        /// count goes up by one. Pages that a fault brought in begin with one.
        RefsOverOne = "refs_over_one",
    }
}

choice! {
    /// Which pages of a batch are judged a second time, because they may have become free while reclaim had
    /// them isolated.
    SecondLook {
        /// Clean pages that no task maps, and that no look around has found used: REFERENCED is cleared when
        /// they are isolated.
        Unreferenced = "unreferenced",
        /// Clean pages that no task maps. REFERENCED may be from long before.
        Unmapped = "unmapped",
    }
}

choice! {
    /// Where a new page goes that no task has mapped: one read through a file descriptor.
    NewFile {
        /// The page goes to the oldest generation.
        Oldest = "oldest",
        /// The page goes to the second oldest generation while the window is full, so that the feedback loop
        /// has time to see its refault.
        SecondOldest = "second_oldest",
        /// The page goes to the oldest generation, or to the second oldest if it was in use when it was
        /// evicted.
        ByWorkingset = "by_workingset",
        /// The page goes to the oldest generation, or to the second oldest if it was in use when it was evicted
        /// or was accessed as it came in.
        ByUse = "by_use",
        /// The page goes to the oldest generation, or to the second oldest if two accesses are counted.
        /// MGLRU-FG.
        ByCount = "by_count",
    }
}

choice! {
    /// Where a page goes that needs a write before it can be freed: anonymous and not in the swap cache, or waiting for its
    /// writeback.
    NewAnon {
        /// The page goes to the second oldest generation, which eviction may take next if the window is full.
        SecondOldest = "second_oldest",
        /// The page goes to the second youngest generation, which eviction spares.
        SecondYoungest = "second_youngest",
    }
}

choice! {
    /// Which end of the next generation protected pages go to.
    ProtectTo {
        /// The pages go to the tail, so that eviction scans them first when that generation is the oldest. They
        /// were spared, not used, and have to be used again to be spared again.
        Tail = "tail",
        /// The pages go to the head, behind all pages that the generation holds already.
        Head = "head",
    }
}

choice! {
    /// The commands that `lru_gen` accepts, and their meaning.
    Interface {
        /// `+` for a generation that exists already does nothing. Without force it is rejected while the window
        /// is full.
        Linux6_12 = "6.12",
        /// `+` opens a generation after the youngest, and fails if another task did so first. Swappiness may be
        /// `max`.
        Linux6_16 = "6.16",
    }
}

choice! {
    /// When eviction stops to age instead.
    AgingRule {
        /// Eviction ages only when nothing but the generations that eviction spares is left of either type, as
        /// posted in 2021.
        V4_2021 = "v4-2021",
        /// Eviction ages always when only the generations that eviction spares are left, and never while the
        /// window is full. In between (three of Linux's four) it ages in two cases. The youngest holds more
        /// than half of all pages, so that ages say little. Or the youngest that may be evicted holds less than
        /// a quarter, so that soon there is nothing to choose from.
        Linux6_12 = "6.12",
        /// Eviction ages unless the window is full.
        Linux6_16 = "6.16",
    }
}

/// A swappiness for which only anonymous memory is evicted: what [`Interface::Linux6_16`] reads for `max` in a command.
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
        "Pages read repeatedly through file descriptors are spared if their tier refaults more. Without it, use through a descriptor does not count.";
    "lru.full_count": full_count: bool = true,
        [false => "6.1.0..6.1.67" "M m", true => "6.1.68..6.1" "A m", false => "6.2..6.6.7" "M m",
            true => "6.6.8.." "M A B"],
        Some(("tiers-of-read-pages.toml", "false")),
        "Pages with a full count of reads are spared regardless of the controller. Without it their tier decides. If the controller is off, nothing else spares a page.";
    "lru.references": references: References = References::Linux6_12,
        [References::Linux6_12 => "6.1..6.13" "A E B", References::Linux6_16 => "6.14.." "C D",
            References::Frequency => "posted" ""],
        Some(("mechanisms.toml", "6.16")),
        "How accesses are counted and what a young entry does. `6.12` and `6.16`: each has its own flags for reads and its own steps of the walk. `fg3`: one count for reads and mapped use alike, which promotes pages by itself (the proposal of 2026).";
    "lru.read_promotion": read_promotion: bool = true,
        [true => "posted" "", false => "never" ""],
        Some(("gets-among-scans.toml", "false")),
        "A page read twice leaves the oldest generation. A page whose count of reads is full moves to the next generation. Without it only the controller can spare a page that is read. Only with the references of fg3.";
    "lru.gauges": gauges: Gauges = Gauges::Generations,
        [Gauges::Generations => "6.1.." "A B C D", Gauges::Count => "posted" ""],
        Some(("gets-among-scans.toml", "generations")),
        "Which pages count as active: those of the two youngest generations, so that the gauges jump when a generation is opened, or those accessed three times (fg3, and only with its references). The more memory is inactive, the more gently machine-wide reclaim begins.";
    "lru.fault_in": fault_in: FaultIn = FaultIn::Youngest,
        [FaultIn::Youngest => "6.1..6.13" "A B", FaultIn::SecondYoungest => "6.14..7.1" "S",
            FaultIn::Reference => "7.2.." "C D", FaultIn::LikeRead => "posted" ""],
        Some(("mechanisms.toml", "like_read")),
        "Where a page goes that a fault brings in. `youngest`, `second_youngest`: to that generation. `like_read`: to the same place as read pages. `reference`: to the place of pages that were read once, unless it was in use when it was evicted.";
    "lru.rejected": rejected: Rejected = Rejected::Youngest,
        [Rejected::Youngest => "6.1..6.13" "A B", Rejected::SecondYoungest => "6.14.." "C"],
        Some(("mechanisms.toml", "second_youngest")),
        "Where a page goes that reclaim could not free: to the youngest generation or the second youngest.";
    "lru.rejected_use": rejected_use: RejectedUse = RejectedUse::Lost,
        [RejectedUse::Lost => "6.1..6.13" "A B", RejectedUse::Keep => "6.14.." "C D",
            RejectedUse::Clear => "posted" ""],
        Some(("mechanisms-2026.toml", "lost")),
        "What happens to the access count of a page that reclaim could not free. `lost`: it is lost, unless the page waits for a write. `keep`: it stays, unless the page would be in the oldest generation again. `clear`: it is lost in any case.";
    "lru.active_use": active_use: ActiveUse = ActiveUse::Lost,
        [ActiveUse::Keep => "6.1..6.1" "A", ActiveUse::Lost => "6.12..6.13" "B m", ActiveUse::Keep => "6.14.." "S D"],
        Some(("mechanisms.toml", "keep")),
        "A page joins a generation as active, from a fault or because a look-around has found it used. Its access count stays (keep), so that its tier may spare it when it is oldest again, or is lost (lost).";
    "lru.second_look": second_look: SecondLook = SecondLook::Unreferenced,
        [SecondLook::Unreferenced => "6.1..6.13" "A B", SecondLook::Unmapped => "6.14.." "S"],
        Some(("mechanisms-2026.toml", "unreferenced")),
        "Which pages of a batch reclaim judges a second time if they are clean and unmapped by then, because their write or their wait in a CPU's batch has ended. `unreferenced`: those that were not referenced. `unmapped`: all, because a page carries its reference along.";
    "lru.rmap_promote": rmap_promote: RmapPromote = RmapPromote::SecondSeen,
        [RmapPromote::SecondSeen => "rests ..6.13" "S", RmapPromote::SecondSeen => "6.14..7.1" "S", RmapPromote::RefsOverOne => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "second_seen")),
        "When a mapped page that reclaim finds used again is in use. `second_seen`: always. `refs_over_one`: only if it was accessed more than once; otherwise it is activated and its count goes up by one. Only with lru.references = 6.16.";
    "lru.new_file": new_file: NewFile = NewFile::SecondOldest,
        [NewFile::Oldest => "6.1.0..6.1.67" "M m", NewFile::SecondOldest => "6.1.68..6.1" "A m",
            NewFile::Oldest => "6.2..6.6.7" "M m", NewFile::SecondOldest => "6.6.8..6.13" "M B",
            NewFile::ByWorkingset => "6.14..7.1" "S", NewFile::ByUse => "7.2.." "C D",
            NewFile::ByCount => "posted" ""],
        Some(("regressions/m6-files-used-twice.toml", "oldest")),
        "Where a page goes that a read brings in. `oldest`: to the oldest generation. `second_oldest`: to the second oldest while the window is full. The others send it to the second oldest for a reason. `by_workingset`: it was in use when evicted. `by_use`: that, or it was accessed before it was on a list. `by_count`: it was accessed twice.";
    "lru.new_anon": new_anon: NewAnon = NewAnon::SecondYoungest,
        [NewAnon::SecondOldest => "6.1.0..6.1.67" "M m", NewAnon::SecondYoungest => "6.1.68..6.1" "A m",
            NewAnon::SecondOldest => "6.2..6.6.7" "M m", NewAnon::SecondYoungest => "6.6.8.." "M B C"],
        Some(("mechanisms.toml", "second_oldest")),
        "A page that needs a write before it can be freed goes to the second oldest generation or the second youngest. With only three generations both are the same.";
    "lru.protect_to": protect_to: ProtectTo = ProtectTo::Tail,
        [ProtectTo::Tail => "6.1..6.13" "A E B", ProtectTo::Head => "6.14.." "C"],
        Some(("mechanisms.toml", "head")),
        "Which end of the next generation a protected page goes to: tail or head.";
    "lru.dirty": dirty: DirtyAtTail = DirtyAtTail::Isolate,
        [DirtyAtTail::NextGeneration => "6.1..6.12.0" "A E M",
            DirtyAtTail::Isolate => "6.12.117..6.12" "B",
            DirtyAtTail::NextGeneration => "6.13..7.1" "M S", DirtyAtTail::Reactivate => "7.2.." "C"],
        Some(("regressions/m3-dirty-pages-of-cgroup-v1.toml", "isolate")),
        "What eviction does with a page at the old end that is dirty or being written. `next_generation`: it moves the page to the next generation, where it soon meets the page again. `isolate`: it isolates the page, and reclaim activates it. `reactivate`: the same, and reclaim's mark to bring the page back after the write is not lost.";
    "lru.aging": aging: AgingRule = AgingRule::Linux6_12,
        [AgingRule::Linux6_12 => "6.1..6.13" "A E B", AgingRule::Linux6_16 => "6.14.." "C D",
            AgingRule::V4_2021 => "posted" ""],
        Some(("regressions/m12-idle-memory-out-of-reach.toml", "6.16")),
        "When eviction stops to age. `6.12`: by sizes, while the window is neither full nor used up. `6.16`: whenever the window is not full. `v4-2021`: only when it is used up, as posted in 2021.";
    "lru.interface": interface: Interface = Interface::Linux6_12,
        [Interface::Linux6_12 => "6.1..6.14" "A B", Interface::Linux6_16 => "6.16.." "S C"],
        None,
        "How commands written to lru_gen are parsed. `6.12`: `+` for an existing generation succeeds and does nothing. `6.16`: it opens the next one, and swappiness `max` is allowed. Reclaim itself decides the same, so no shipped scenario's counters change.";
    "lru.switching": switching: Switching = Switching::Both,
        [Switching::NewOnly => "6.1..7.0" "A B", Switching::Both => "7.1.." "S C"],
        Some(("regressions/m5-switch-at-the-limit.toml", "new_only")),
        "/sys/kernel/mm/lru_gen/enabled moves pages between MGLRU and the classic lists. Meanwhile reclaim walks both, or the new ones only, which ends in a false OOM at a limit.";
    "workingset.restore": restore: Restore = Restore::NearlyFull,
        [Restore::Full => "6.1.0..6.1.67" "M m", Restore::NearlyFull => "6.1.68..6.1" "A m",
            Restore::Full => "6.2..6.6.7" "M m", Restore::NearlyFull => "6.6.8..6.13" "M B", Restore::NearlyFull => "rests 6.14.." "C D"],
        Some(("tiers-of-read-pages.toml", "full")),
        "Which pages that refault soon get their use restored. `full`: pages with a full count, as in use. `nearly_full`: also those with one use fewer, and their count is full again. Only with lru.references = 6.12.";
    "workingset.refault_activate": refault_activate: RefaultActivate = RefaultActivate::Fault,
        [RefaultActivate::Fault => "rests ..6.13" "S", RefaultActivate::Fault => "6.14..7.1" "S", RefaultActivate::FaultOfWorkingset => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "fault")),
        "Which pages that a fault brings back soon count as activated: all (fault), or those that were in use when they were evicted (fault_of_workingset). Only with lru.references = 6.16, where it is a counter and decides nothing.";
    "workingset.shadow_count": shadow_count: ShadowCount = ShadowCount::Full,
        [ShadowCount::Full => "posted" "", ShadowCount::Four => "never" ""],
        Some(("gets-among-scans.toml", "four")),
        "What a shadow remembers of a page's count: all of it, or 4 at most, so that the controller counts refaults of the top tier in the next tier. Only with the references of fg3, whose count goes to 7.";
    "lru.generations": count_max: u8 in (Values::Number(2, 64)) = 4,
        [4 => "6.1.." "A B C D", 7 => "posted" ""],
        Some(("tiers-of-read-pages.toml", "8")),
        "Maximum number of generations. Linux has 4. With more, ages are distinguished more finely and aging happens more often.";
}

impl GenerationRules {
    /// Returns whether the gauges go by counts of accesses.
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
