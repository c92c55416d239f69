//! Hot-page tracking (pghot): which pages of lower tiers are in use, from any source, and their promotion by a thread. [tiering 3]
//!
//! ```text
//!   hint fault ─────┐  record_accesses ─▶ a record a page: how often, when, by whom (`pageout_mm::pghot`)
//!   read(2) ────────┤                          │ hot: ready, and its section and block are flagged
//!   klruscand ──────┤                          │
//!   hardware ───────┘                          ▼
//!                                kmigrated, one a node of a lower tier: takes what is ready, asks whether it may go, moves batches
//! ```
//! Noticing and moving are apart: who notices writes a record and goes on, whatever it is in the middle of. The price is delay: a page
//! moves when kmigrated comes by next.
//!
//! A record belongs to a frame. When its page is freed, its record is dropped (`report.rs: pghot_forget`); in the postings the frame's
//! next user inherits it.
//!
//! Source: "mm: Hot page tracking and promotion infrastructure", third posting (November 2025,
//! <https://lore.kernel.org/linux-mm/20251110052343.208768-1-bharata@amd.com/>), and what later ones changed. Off by default: no source
//! reports. [tiering 3]

mod hardware; // what becomes of a sample
mod klruscand; // the thread that looks at accessed bits
mod kmigrated; // the thread that promotes
mod report; // who says that a page was accessed
#[cfg(any(test, feature = "fault-injection"))]
mod watch; // what must hold whenever a record changes

#[cfg(test)]
mod model; // the same, written a second time

pub(crate) use klruscand::KlruscandThread;
pub(crate) use kmigrated::KmigratedThread;
pub(crate) use pageout_mm::pghot::*;
pub use report::Source;
