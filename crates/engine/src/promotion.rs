//! Promotion of unmapped page cache: pages that are read through file descriptors again and again leave slow memory. [tiering 7]
//!
//! ```text
//!   read(2) of a page that is referenced and active (or whose count is full) already
//!        │ in a lower tier? ─▶ has the task set aside few enough? ─▶ has it no memory policy?
//!        │                                                           ─▶ may it go, by the rules of tiers? ─▶ off its list
//!        ▼
//!   the task's own list, at its tail ── the call is over ──▶ a batch at a time to the node where the task runs
//! ```
//! Neither hint faults nor walks of page tables see such a page, as nothing maps it. So the access itself is the hint. The page does
//! not move there and then, as the access may be made with locks held. It moves when the task is about to return to user space, and
//! the task pays for it. Each isolated page has moved, or is back on its list, before the task runs again.
//!
//! *When not to use it:* where all of a working set that is larger than fast memory is hot. Then each page pushes another one out.
//!
//! Source: "Promotion of Unmapped Page Cache Folios", third posting (January 2025,
//! <https://lore.kernel.org/linux-mm/20250107000346.1338481-1-gourry@gourry.net/>); for generations the fourth (April 2025,
//! <https://lore.kernel.org/linux-mm/20250411221111.493193-1-gourry@gourry.net/>). [tiering 7] Off by default. The same accesses can be reported to hot-page tracking instead, which promotes without the reader (`pghot/`).

mod page_cache; // what is set aside, and what becomes of it

pub(crate) use page_cache::Promoting;
pub(crate) use pageout_mm::promotion::*;
