//! Hot-page tracking (pghot): which pages of lower tiers are in use, whoever noticed, and their promotion by a thread. [tiering 3]
//!
//! ```text
//!   hint fault ─────┐  record_accesses ─▶ a record a page: how often, when, by whom (`record.rs`, `sections.rs`)
//!   read(2) ────────┤                          │ hot: ready, and its section and block are flagged
//!   klruscand ──────┤                          │
//!   hardware ───────┘                          ▼
//!                                kmigrated, one a node of a lower tier: takes what is ready, asks whether it may go, moves batches
//! ```
//! Noticing and moving are apart: who notices writes a record and goes on, whatever it is in the middle of. The price is delay: a page
//! moves when kmigrated comes by next.
//!
//! A record belongs to a frame. When its page goes, what was said of it is forgotten (`report.rs: pghot_forget`); the postings let whoever
//! gets the frame next inherit it.
//!
//! Source: "mm: Hot page tracking and promotion infrastructure", third posting (November 2025,
//! <https://lore.kernel.org/linux-mm/20251110052343.208768-1-bharata@amd.com/>), and what later ones changed. Off by default: no source
//! reports. [tiering 3]

mod hotness; // when a page is hot, as configured
mod hardware; // what becomes of a sample
mod klruscand; // the thread that looks at accessed bits
mod kmigrated; // the thread that promotes
mod record; // a record's layouts, and what a report makes of it
mod report; // who says that a page was accessed
mod sections; // where records are
#[cfg(any(test, feature = "fault-injection"))]
mod watch; // what must hold whenever a record changes

#[cfg(test)]
mod model; // the same, written a second time

pub(crate) use klruscand::KlruscandThread;
pub(crate) use kmigrated::KmigratedThread;
pub(crate) use record::Hotness;
pub use report::Source;
pub(crate) use sections::Records;

use crate::config::Config;
use crate::units::{NodeId, TaskId};

/// What is known of hot pages.
pub(crate) struct Pghot {
    pub(crate) records: Records,
    /// klruscand, and kmigrated of all nodes that have one, once the machine has started them.
    pub(crate) threads: Vec<TaskId>,
    /// kmigrated of nodes whose hot pages find no room, each with the node that is full.
    waiting_for_room: Vec<(NodeId, TaskId)>,
}

impl Pghot {
    pub(crate) fn new(config: &Config) -> Pghot {
        Pghot {
            records: Records::new(Hotness::of(config).layout),
            threads: Vec::new(),
            waiting_for_room: Vec::new(),
        }
    }
}
