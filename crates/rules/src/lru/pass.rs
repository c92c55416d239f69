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
        /// Passes for the machine. Reclaim for a group goes on to the end of its count. Up to 7.0.
        Root = "root",
        /// All passes. Since 7.1.
        All = "all",
    }
}

/// How passes over generations are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassRules {
    /// When a pass counts how much it may scan.
    pub scan_budget: ScanBudget,
    /// How much a round looks at.
    pub round: RoundSize,
    /// What a round reports as scanned.
    pub scan_return: ScanReturn,
    /// When a pass closes empty generations.
    pub close_empty: CloseEmpty,
    /// Whether the first priority ages.
    pub age_at_default: AgeAtDefault,
    /// What a pass does once it has aged.
    pub after_aging: AfterAging,
    /// Whether removed groups age.
    pub offline_aging: OfflineAging,
    /// When the type is changed.
    pub type_fallback: TypeFallback,
    /// A reclaimer that may do no I/O passes anonymous pages by that are dirty or in no swap cache (up to 7.1); else it takes them like
    /// others, and reclaim keeps what it can't free. So it finds those whose contents may be forgotten.
    pub isolate_io_check: bool,
    /// Whose passes stop when the target is reached.
    pub abort_scope: AbortScope,
}

impl PassRules {
    pub(crate) fn linux_6_12() -> PassRules {
        PassRules {
            scan_budget: ScanBudget::Recompute,
            round: RoundSize::Most4096,
            scan_return: ScanReturn::IsolatedOrExhausted,
            close_empty: CloseEmpty::After,
            age_at_default: AgeAtDefault::Never,
            after_aging: AfterAging::Stop,
            offline_aging: OfflineAging::LastResort,
            type_fallback: TypeFallback::NoIsolation,
            isolate_io_check: true,
            abort_scope: AbortScope::Root,
        }
    }

    pub(crate) fn linux_7_3() -> PassRules {
        PassRules {
            scan_budget: ScanBudget::Pinned,
            round: RoundSize::Most64,
            scan_return: ScanReturn::Exact,
            close_empty: CloseEmpty::BeforeAndAfter,
            age_at_default: AgeAtDefault::WhenForced,
            after_aging: AfterAging::Continue,
            offline_aging: OfflineAging::Normal,
            type_fallback: TypeFallback::EmptyScan,
            isolate_io_check: false,
            abort_scope: AbortScope::All,
        }
    }
}
