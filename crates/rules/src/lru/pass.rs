//! How each era makes a pass over generations: how much it scans, when it ages, when it stops.
//!
//! ```text
//!   up to 7.1                                       since 7.2
//!   count ─► age, and the pass is over              count, once
//!        └─► evict up to 4096, isolate up to 64     ┌► age?  evict up to 64 of what is left
//!            count again                            └─ until the count is used up
//! ```
//! The loop of 7.2 does what its numbers say. Before, a group of a few thousand pages was to give one page at the first priority, and
//! gave 64; its reclaim never got to the second one, at which generations age. Each rule is a switch of its own, because the
//! series that brought them argues for each of them alone. [mglru-2026 2.1 to 2.5, 2.8]

use crate::choice::choice;
use crate::switch::rules;

choice! {
    /// When a pass counts how much it may scan.
    ScanBudget {
        /// Before each round, by the sizes of that moment. Up to 7.1.
        Recompute = "recompute",
        /// Once, as it begins: pages of all generations less what protection takes away. With nothing to scan it doesn't age either.
        /// Since 7.2.
        Pinned = "pinned",
    }
}

choice! {
    /// How many pages a round may look at.
    RoundSize {
        /// 4096, whatever the pass still wants. Up to 7.1.
        Most4096 = "4096_pages",
        /// 64, and no more than the pass still wants. Since 7.2.
        Most64 = "64_folios",
    }
}

choice! {
    /// What a round says that it has scanned.
    ScanReturn {
        /// A round reports what it looked at, if it isolated any or looked at all that it may. Else 1 where a generation was closed, or nothing, and
        /// the pass ends. Up to 7.1.
        IsolatedOrExhausted = "isolated_or_exhausted",
        /// A round reports what it looked at. Since 7.2.
        Exact = "exact",
    }
}

choice! {
    /// When a round closes generations that are empty.
    CloseEmpty {
        /// When it has isolated. Up to 7.1.
        After = "after",
        /// Also before it does, because pages are freed by others, too. Since 7.2.
        BeforeAndAfter = "before_and_after",
    }
}

choice! {
    /// Whether the first priority ages where only the generations are left that eviction spares.
    AgeAtDefault {
        /// No: nothing is scanned there, and the next priority ages. Up to 7.1.
        Never = "never",
        /// Yes: to scan would find nothing. Since 7.2.
        WhenForced = "when_forced",
    }
}

choice! {
    /// What a pass does once it has aged.
    AfterAging {
        /// The pass is over: what is young now is left to the next priority. Up to 7.1.
        Stop = "stop",
        /// The pass goes on to evict. Reclaim for the machine makes one more round. Since 7.2.
        Continue = "continue",
    }
}

choice! {
    /// Whether the generations of a removed group age.
    OfflineAging {
        /// Only where nothing else is left to evict. Up to 7.1.
        LastResort = "last_resort",
        /// As those of any other. Since 7.2.
        Normal = "normal",
    }
}

choice! {
    /// When a round changes to the other type.
    TypeFallback {
        /// The type that was chosen gave nothing to isolate. Up to 7.1.
        NoIsolation = "no_isolation",
        /// There was nothing of it to look at. Where pages were looked at and spared, it is tried once more: to change would
        /// overrule the controller. Since 7.2.
        EmptyScan = "empty_scan",
    }
}

choice! {
    /// Whose passes end as soon as the target is reached.
    AbortScope {
        /// By rules of its own: a pass for a group ends when two generations were opened in it, or when the target is reached and anonymous pages
        /// were taken. 6.1 and 6.2.
        TwoAgings = "6.1",
        /// Passes for the machine. Reclaim for a group goes on to the end of its count. Up to 7.0.
        Root = "root",
        /// All passes. Since 7.1.
        All = "all",
    }
}

rules! {
    /// How passes over generations are made.
    PassRules at group.generations.pass as PASS {
    }
    "lru.scan_budget": scan_budget: ScanBudget = ScanBudget::Recompute,
        [ScanBudget::Recompute => "6.1..7.1" "S", ScanBudget::Pinned => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "recompute")),
        "When a pass counts what it may scan: before each round (up to 7.1), or once, less what is protected (since 7.2). A pass that has nothing to scan then doesn't age either.";
    "lru.round": round: RoundSize = RoundSize::Most4096,
        [RoundSize::Most4096 => "6.1..7.1" "A E B", RoundSize::Most64 => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "4096_pages")),
        "How many pages a round of eviction may look at: 4096 (up to 7.1), or 64 and no more than the pass still wants (since 7.2). With 4096, a pass over a small group that was to take one page takes 64.";
    "lru.scan_return": scan_return: ScanReturn = ScanReturn::IsolatedOrExhausted,
        [ScanReturn::IsolatedOrExhausted => "6.1..7.1" "A E B", ScanReturn::Exact => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "isolated_or_exhausted")),
        "What a round that spares all it looks at counts as: nothing, and the pass ends (up to 7.1), or what it looked at (since 7.2).";
    "lru.close_empty": close_empty: CloseEmpty = CloseEmpty::After,
        [CloseEmpty::After => "6.1..7.1" "A E B", CloseEmpty::BeforeAndAfter => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "after")),
        "Whether a round closes empty generations only when it has isolated (up to 7.1), or also before it does (since 7.2).";
    "lru.age_at_default": age_at_default: AgeAtDefault = AgeAtDefault::Never,
        [AgeAtDefault::Never => "6.1..7.1" "S", AgeAtDefault::WhenForced => "7.2.." "C"],
        None,
        "Where only the generations are left that eviction spares, the first priority leaves aging to the next (up to 7.1), or ages at once (since 7.2). It saves a priority, and no shipped scenario's counters change.";
    "lru.after_aging": after_aging: AfterAging = AfterAging::Stop,
        [AfterAging::Continue => "6.1..6.2" "A", AfterAging::Stop => "6.3..7.1" "E B",
            AfterAging::Continue => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "stop")),
        "A pass that has aged is over (6.3 to 7.1), or goes on to evict (up to 6.2, and since 7.2).";
    "lru.offline_aging": offline_aging: OfflineAging = OfflineAging::LastResort,
        [OfflineAging::Normal => "6.1..6.2" "A", OfflineAging::LastResort => "6.11..7.1" "B I",
            OfflineAging::Normal => "7.2.." "C"],
        None,
        "What a removed group has left ages only where nothing else can be evicted (6.12 to 7.1), or as any other (up to 6.2, and since 7.2). All that such a group has is to be scanned from the first priority on, so it is mostly gone before it could age, and no shipped scenario's counters change.";
    "lru.type_fallback": type_fallback: TypeFallback = TypeFallback::NoIsolation,
        [TypeFallback::NoIsolation => "6.1..7.1" "A E B", TypeFallback::EmptyScan => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "no_isolation")),
        "A round changes to the other type where the one that the controller chose gave nothing to isolate (up to 7.1), or only where there was nothing of it to look at (since 7.2).";
    "lru.isolate_io_check": isolate_io_check: bool = true,
        [true => "6.1..7.1" "A E B", false => "7.2.." "C"],
        Some(("noio-isolation.toml", "false")),
        "A reclaimer that may do no I/O passes by anonymous pages that are dirty or in no swap cache, among them those that could be forgotten (up to 7.1), or takes them like others and keeps what it can't free (since 7.2).";
    "lru.abort_scope": abort_scope: AbortScope = AbortScope::Root,
        [AbortScope::TwoAgings => "6.1..6.2" "A", AbortScope::Root => "6.6.8..7.0" "M E B", AbortScope::All => "7.1.." "C"],
        Some(("mechanisms-2026.toml", "root")),
        "Whose passes over generations end once the target is reached: those that took anonymous pages, or in which two generations were opened (6.1), those for the machine (up to 7.0), or all (since 7.1). Before, a group of 2 million pages gave 640 for 32.";
}
