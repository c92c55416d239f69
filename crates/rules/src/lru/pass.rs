//! How each era makes a pass over generations: how much it scans, when it ages, when it stops.
//!
//! ```text
//!   up to 7.1                                       since 7.2
//!   count ─► age, and the pass is over              count, once
//!        └─► evict up to 4096, isolate up to 64     ┌► age?  evict up to 64 of what is left
//!            count again                            └─ until the count is used up
//! ```
//! The loop of 7.2 does what its numbers say. Before, a group of a few thousand pages had a target of one page at the first priority, and gave 64.
//! Its reclaim never got to the second priority, at which generations age. Each rule is a switch of its own, because the series that brought them
//! argues for each of them alone. [mglru-2026 2.1 to 2.5, 2.8]

use crate::choice::choice;
use crate::declare::rules;

choice! {
    /// When a pass counts how many pages it may scan.
    ScanBudget {
        /// A pass counts before each round, by the sizes at that moment.
        Recompute = "recompute",
        /// A pass counts once, as it begins: pages of all generations less what protection takes away. With
        /// nothing to scan it doesn't age either.
        Pinned = "pinned",
    }
}

choice! {
    /// How many pages a round may scan.
    RoundSize {
        /// A round may scan 4096 pages, however few the pass still needs.
        Most4096 = "4096_pages",
        /// A round may scan 64 pages, and no more than the pass still needs.
        Most64 = "64_folios",
    }
}

choice! {
    /// How many pages a round reports as scanned.
    ScanReturn {
        /// A round reports what it scanned if it isolated any page or scanned all that it may. Otherwise it
        /// reports 1 if it closed a generation, or nothing, which ends the pass.
        IsolatedOrExhausted = "isolated_or_exhausted",
        /// A round reports what it scanned.
        Exact = "exact",
    }
}

choice! {
    /// When a round closes empty generations.
    CloseEmpty {
        /// A round closes them after it has isolated.
        After = "after",
        /// A round closes them also before it isolates, because other reclaimers free pages, too.
        BeforeAndAfter = "before_and_after",
    }
}

choice! {
    /// Aging at the first priority, if only the generations are left that eviction spares.
    AgeAtDefault {
        /// It does not: nothing is scanned there, and the next priority ages.
        Never = "never",
        /// It does, because a scan would find nothing.
        WhenForced = "when_forced",
    }
}

choice! {
    /// The next step of a pass that has aged.
    AfterAging {
        /// The pass is over: pages that are young now are left to the next priority.
        Stop = "stop",
        /// The pass goes on to evict. Reclaim for the machine makes one more round.
        Continue = "continue",
    }
}

choice! {
    /// Aging of the generations of a removed group.
    OfflineAging {
        /// They age only if nothing else is left to evict.
        LastResort = "last_resort",
        /// They age like those of any other group.
        Normal = "normal",
    }
}

choice! {
    /// When a round changes to the other type.
    TypeFallback {
        /// A round changes if the type that was chosen gave nothing to isolate.
        NoIsolation = "no_isolation",
        /// A round changes if there was nothing of the chosen type to scan. If its pages were scanned and
        /// spared, it is tried once more, because a change would overrule the controller.
        EmptyScan = "empty_scan",
    }
}

choice! {
    /// Which passes end as soon as the target is reached.
    AbortScope {
        /// Passes that took anonymous pages. A pass of a task also ends when it has opened two generations.
        TwoAgings = "6.1",
        /// Passes for the machine. Reclaim for a group goes on to the end of its count.
        Root = "root",
        /// All passes.
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
        "When a pass counts how many pages it may scan: before each round (recompute), or once, without what is protected (pinned). A pinned pass that has nothing to scan does not age either.";
    "lru.round": round: RoundSize = RoundSize::Most4096,
        [RoundSize::Most4096 => "6.1..7.1" "A E B", RoundSize::Most64 => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "4096_pages")),
        "How many pages a round of eviction may scan: 4096 (4096_pages), or 64 and no more than the pass still needs (64_folios). With 4096, a pass over a small group whose target is one page takes 64.";
    "lru.scan_return": scan_return: ScanReturn = ScanReturn::IsolatedOrExhausted,
        [ScanReturn::IsolatedOrExhausted => "6.1..7.1" "A E B", ScanReturn::Exact => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "isolated_or_exhausted")),
        "What a round counts as if it spares all pages that it scans: nothing, and the pass ends (isolated_or_exhausted), or the scanned pages (exact).";
    "lru.close_empty": close_empty: CloseEmpty = CloseEmpty::After,
        [CloseEmpty::After => "6.1..7.1" "A E B", CloseEmpty::BeforeAndAfter => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "after")),
        "Whether a round closes empty generations only after it has isolated (after), or also before it does (before_and_after).";
    "lru.age_at_default": age_at_default: AgeAtDefault = AgeAtDefault::Never,
        [AgeAtDefault::Never => "6.1..7.1" "S", AgeAtDefault::WhenForced => "7.2.." "C"],
        None,
        "Whether the first priority ages if only the generations are left that eviction spares. `never`: it leaves aging to the next priority. `when_forced`: it ages, which saves a priority. No shipped scenario's counters change.";
    "lru.after_aging": after_aging: AfterAging = AfterAging::Stop,
        [AfterAging::Continue => "6.1..6.2" "A", AfterAging::Stop => "6.3..7.1" "E B",
            AfterAging::Continue => "7.2.." "C"],
        Some(("mechanisms-2026.toml", "stop")),
        "A pass that has aged ends (stop), or continues with eviction (continue).";
    "lru.offline_aging": offline_aging: OfflineAging = OfflineAging::LastResort,
        [OfflineAging::Normal => "6.1..6.2" "A", OfflineAging::LastResort => "6.11..7.1" "B I",
            OfflineAging::Normal => "7.2.." "C"],
        None,
        "When the pages left in a removed group age: only if nothing else can be evicted (last_resort), or as in any other group (normal). All pages of such a group should be scanned from the first priority on. Most are gone before they could age, and no shipped scenario's counters change.";
    "lru.type_fallback": type_fallback: TypeFallback = TypeFallback::NoIsolation,
        [TypeFallback::NoIsolation => "6.1..7.1" "A E B", TypeFallback::EmptyScan => "7.2.." "C D"],
        Some(("mechanisms-2026.toml", "no_isolation")),
        "When a round changes to the other type: if the type that the controller chose gave nothing to isolate (no_isolation), or only if that type had nothing to scan (empty_scan).";
    "lru.isolate_io_check": isolate_io_check: bool = true,
        [true => "6.1..7.1" "A E B", false => "7.2.." "C"],
        Some(("noio-isolation.toml", "false")),
        "A reclaimer that may do no I/O skips anonymous pages that are dirty or not in the swap cache, among them pages that could be dropped. Without it, the reclaimer takes them like others and keeps those that it can't free.";
    "lru.abort_scope": abort_scope: AbortScope = AbortScope::Root,
        [AbortScope::TwoAgings => "6.1..6.2" "A", AbortScope::Root => "6.6.8..7.0" "M E B", AbortScope::All => "7.1.." "C"],
        Some(("mechanisms-2026.toml", "root")),
        "Which MGLRU passes end once the target is reached. `6.1`: those that took anonymous pages; a pass of a task that has opened two generations ends, too. `root`: those for the machine. `all`: all passes. With root, a group of 2 million pages gave 640 pages when 32 were requested.";
}
