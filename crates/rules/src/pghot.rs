//! Rules of hot-page tracking: those that each posting of the series had, and remedies that none of them has. [tiering 3.3, 3.6]

use crate::choice::choice;

choice! {
    /// Which posting of hot-page tracking to follow in all that a key can choose.
    PghotPosting {
        /// None: each key is as its own default has it.
        None = "none",
        /// The third, November 2025, slips included.
        V3 = "v3",
        /// The fifth, January 2026, with records of a byte.
        V5 = "v5",
        /// The sixth, March 2026, with records of a byte.
        V6 = "v6",
        /// The seventh, May 2026, with records of a byte.
        V7 = "v7",
        /// The eighth, July 2026, with records of a byte.
        V8 = "v8",
    }
}

/// Keys and their values.
type Values = &'static [(&'static str, &'static str)];

impl PghotPosting {
    /// The choices of a posting that differ from the defaults. Between the third and the fifth posting, a hot section got a flag, and a report of
    /// another node no longer began a new window. A threshold was then reached rather than exceeded. No posting forgets the record of a freed frame's
    /// page, and none tries again.
    pub fn parameters(self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        const V3: Values = &[
            ("pghot.record", "u64"),
            ("pghot.quirks", "v3"),
            ("pghot.threshold", "exceeded"),
            ("pghot.window_by_node", "true"),
            ("pghot.hint_faults", "counted"),
            ("pghot.default_target", "knob"),
            ("pghot.walk", "all"),
            ("pghot.refused", "forget"),
            ("pghot.target_full", "nap"),
            ("pghot.clear_stale", "false"),
            ("pghot.age_sweep", "false"),
        ];
        const SINCE_V5: Values = &[
            ("pghot.hint_faults", "counted"),
            ("pghot.default_target", "knob"),
            ("pghot.walk", "sections"),
            ("pghot.refused", "forget"),
            ("pghot.target_full", "nap"),
            ("pghot.batch_over", "true"),
            ("pghot.batch_by_memcg", "true"),
            ("pghot.clear_stale", "false"),
            ("pghot.age_sweep", "false"),
        ];
        // More than the clock of a byte can tell, 3968 ms: the window never ends. It was 4000 ms at first and 3000 ms later, and these are the
        // first records of a byte.
        const V5: Values = &[("vm.pghot_promote_freq_window_ms", "4000")];
        // Hint faults report by default.
        const V8: Values = &[("vm.pghot_record_hintfaults_enable", "1")];
        let (shared, own): (Values, Values) = match self {
            PghotPosting::None => (&[], &[]),
            PghotPosting::V3 => (V3, &[]),
            PghotPosting::V5 => (SINCE_V5, V5),
            // What changed between them is who can report, and that is for a scenario to say.
            PghotPosting::V6 | PghotPosting::V7 => (SINCE_V5, &[]),
            PghotPosting::V8 => (SINCE_V5, V8),
        };
        shared.iter().chain(own)
    }
}

choice! {
    /// How large a hotness record is.
    RecordSize {
        /// Two bits of count, 128 ms a step, no node.
        U8 = "u8",
        /// Three bits of count, milliseconds, and the node that accessed.
        U32 = "u32",
        /// Three bits of count, a longer clock of milliseconds, and the node, as the third posting had it.
        U64 = "u64",
    }
}

choice! {
    /// The bugs of a posting that are included.
    PghotQuirks {
        /// No slips: what the posting's text says.
        None = "none",
        /// The behaviour of the third posting's code.
        V3 = "v3",
    }
}

choice! {
    /// How many reports make a page hot.
    ThresholdRule {
        /// Exactly `vm.pghot_freq_threshold`, since the fourth posting.
        Reached = "reached",
        /// One more, in the third.
        Exceeded = "exceeded",
    }
}

choice! {
    /// What a hint fault says of its page.
    HintFaultRule {
        /// A hint fault says that the page was accessed once, as any other report does (all postings).
        Counted = "counted",
        /// A hint fault says that the page is hot, if it is used soon after it was marked: what balancing without tracking goes by.
        Timed = "timed",
    }
}

choice! {
    /// Where a hot page goes if no report named the accessing node.
    DefaultTarget {
        /// A page whose node is not known goes to `vm.pghot_target_nid`.
        Knob = "knob",
        /// To the top-tier node that is nearest.
        Nearest = "nearest",
        /// To the node from which its block of 2 MiB was reported last; without one, to the nearest.
        Block = "block",
    }
}

choice! {
    /// What kmigrated looks at.
    HotWalk {
        /// Every page of its node, when there is anything hot (third posting).
        All = "all",
        /// Sections of 128 MiB in which something became hot (since the fifth).
        Sections = "sections",
        /// Blocks of 2 MiB of these in which something became hot.
        Blocks = "blocks",
    }
}

choice! {
    /// Treatment of a hot page that kmigrated may not move now.
    RefusedPage {
        /// The page is forgotten, and must become hot again.
        Forget = "forget",
        /// The page stays hot, and is tried the next time.
        Requeue = "requeue",
    }
}

choice! {
    /// When kmigrated comes back to hot pages whose node was full.
    TargetFull {
        /// After its sleep. Pages of a batch that find no free memory when they are moved are forgotten. All postings.
        Nap = "nap",
        /// As soon as kswapd has made room. A batch is no larger than that, and what does not move after all stays hot.
        Room = "room",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, PARAMETERS, Parameter};

    /// Whatever a posting says of a key is one of its values, and another than the default: else it would say nothing.
    #[test]
    fn what_a_posting_had_are_values_of_keys_other_than_their_defaults() {
        for posting in
            [PghotPosting::V3, PghotPosting::V5, PghotPosting::V6, PghotPosting::V7, PghotPosting::V8]
        {
            let mut config = Config::default();
            for (name, value) in posting.parameters() {
                let parameter = Parameter::by_name(name).expect("a parameter");
                assert_ne!(parameter.get(&config), *value, "{posting:?}: {name}");
                assert!(parameter.set(&mut config, value), "{posting:?}: {name} = {value}");
            }
            assert_eq!(config.check(), Ok(()));
            let changed =
                PARAMETERS.iter().filter(|known| known.get(&config) != known.get(&Config::default()));
            assert_eq!(changed.count(), posting.parameters().count());
        }
        assert_eq!(PghotPosting::None.parameters().count(), 0);
    }
}
