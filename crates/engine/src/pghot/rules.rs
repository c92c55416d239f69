//! What can be chosen of hot-page tracking: what the postings did, one after the other, and what none of them does.

use crate::config::Config;
use crate::pghot::record::{Hotness, Layout};
use crate::switch::choice;

choice! {
    /// How large a hotness record is.
    RecordSize {
        /// Two bits of count, 128 ms a step, no node.
        U8 = "u8",
        /// Three bits of count, milliseconds, and the node that accessed.
        U32 = "u32",
        /// The same with a longer clock, as the third posting had it.
        U64 = "u64",
    }
}

choice! {
    /// Whether slips of a posting are there, too.
    PghotQuirks {
        /// What its text says.
        None = "none",
        /// What the code of the third posting does.
        V3 = "v3",
    }
}

choice! {
    /// How many reports make a page hot.
    ThresholdRule {
        /// As many as `vm.pghot_freq_threshold` says, since the fourth posting.
        Reached = "reached",
        /// One more, in the third.
        Exceeded = "exceeded",
    }
}

choice! {
    /// What a hint fault says of its page.
    HintFaultRule {
        /// That it was accessed once, as any other report does (all postings).
        Counted = "counted",
        /// That it is hot, if it is used soon after it was marked: what balancing without tracking goes by.
        Timed = "timed",
    }
}

choice! {
    /// Where a hot page goes if nobody said who uses it.
    DefaultTarget {
        /// To `vm.pghot_target_nid`.
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
    /// What becomes of a hot page that kmigrated may not move now.
    RefusedPage {
        /// It is forgotten, and has to earn it all again.
        Forget = "forget",
        /// It stays hot, and is tried the next time.
        Requeue = "requeue",
    }
}

choice! {
    /// When kmigrated comes back to hot pages whose node was full.
    TargetFull {
        /// After its nap. Of a batch, what finds no room any more when it is moved is forgotten. All postings.
        Nap = "nap",
        /// As soon as kswapd has made room. A batch is no larger than that, and what does not move after all stays hot.
        Room = "room",
    }
}

impl RecordSize {
    pub(crate) fn layout(self, quirks: PghotQuirks) -> Layout {
        match (self, quirks) {
            (RecordSize::U8, _) => Layout::Byte,
            (RecordSize::U32, _) => Layout::Word,
            (RecordSize::U64, PghotQuirks::None) => Layout::Long,
            (RecordSize::U64, PghotQuirks::V3) => Layout::LongAsPosted,
        }
    }
}

impl Config {
    /// When a page is hot, as configured. Of what a record can't hold it has as much as it can.
    pub(crate) fn hotness(&self) -> Hotness {
        let layout = self.pghot_record.layout(self.pghot_quirks);
        let more = u64::from(self.pghot_threshold == ThresholdRule::Exceeded);
        let reports = u64::from(self.pghot_freq_threshold) + more;
        Hotness {
            layout,
            window_ms: self.pghot_window_ms(),
            reports: reports.min(layout.freq_max().into()),
            by_node: self.pghot_window_by_node,
        }
    }

    /// `vm.pghot_promote_freq_window_ms`, or what suits the record.
    pub(crate) fn pghot_window_ms(&self) -> u64 {
        match (self.pghot_promote_freq_window_ms, self.pghot_record) {
            (0, RecordSize::U8) => 3000,
            (0, _) => 5000,
            (window, _) => window.into(),
        }
    }
}
