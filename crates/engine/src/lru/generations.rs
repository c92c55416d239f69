//! Generations: each holds pages of about the same age, and there are as many as are worth distinguishing.
//!
//! ```text
//!   seq      min_seq                              max_seq
//!            oldest ─────────────────────────────► youngest        each generation: a list a type, a birth
//!              │  ▲  protected (tiers)                  ▲
//!              ▼  └── tail of the next          young ──┘          page-table walk (aging), look-around (eviction)
//!           evicted
//! ```
//! *Aging* (`aging.rs`): a walk of page tables moves young pages to the youngest generation, then opens a younger one. *Eviction*
//! (`eviction.rs`) takes from the oldest generation, and closes it when it is empty. A page found young gets its new generation in its
//! record immediately. It stays on the old list until the evictor meets it there and moves it. So a hit or a walk never touches a list,
//! and promotion takes no lock.
//!
//! Both types share `max_seq`; each has its own `min_seq`. At most `lru.generations` generations exist (4 in
//! Linux), and eviction leaves the two youngest alone: a page must have the time between two agings to be used again.
//!
//! **Other numbers of generations.** Linux has four, and its rules are read as follows for any other number. A 4 means *the
//! window is full*. The 3 (whether to age, by sizes) means *neither full nor used up*. Eviction spares the two youngest; of only
//! two it spares one, or nothing would be left to evict. So 2 generations are an inactive list without a second chance for what
//! is mapped, and aging happens as soon as the old one is used up. [reclaim 4.1 to 4.9; reclaim-6.12 4.1 to 4.9]
//!
//! *When not to use it:* where reuse distances exceed memory, all file pages pass through the oldest generation alike.

mod frequency; // how often it was used, and where that moves it
mod min_ttl; // a working set that is not to be thrashed
mod place; // which generation a folio belongs to
mod aging; // a new youngest generation
mod eviction; // the oldest one
mod splice; // those of a removed group
mod user; // what user space asks for

pub(crate) use aging::Aging;
pub(crate) use eviction::{GenerationsNext, GenerationsPass, MIN_LRU_BATCH};
pub(crate) use frequency::AccessBy;
pub(crate) use pageout_mm::lru::generations::*;
pub use user::GenerationInfo;
pub(crate) use user::{GenerationRequest, GenerationWork, Refused, Requested, WorkStep};
