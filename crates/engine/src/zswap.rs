//! zswap: compressed pages in memory, in front of a swap device.
//!
//! ```text
//!   pageout ─► store ──────────► pool (classes of sizes)        the page is freed at once; its group pays for the bytes
//!                │ rejected        │ index: by swap slot
//!                ▼                 │ lists: by group and node, oldest first ──► shrinker, limit, worker ─► writeback
//!              device ◄────────────┼───────────────────────────────────────────────────────────────────────┘
//!                │                 ▼
//!                └────────► swap-in: load takes the entry out again, and the page is dirty
//! ```
//! An entry has one owner: the slot. A page read back from its entry takes it along, so that nothing is twice in memory. So an
//! entry and the device's copy are never both right. [tiering-zswap-6.12 1, 4; reclaim 6]
//!
//! *Where it differs:* entries themselves cost nothing, and no compressor fails. The rules of an era are a machine's, so they are
//! taken from the policy of groups that name none.
//!
//! Source of the rule by which a page that was written back is reclaimed first (`zswap.writeback_rotation`): "mm/zswap: fix LRU reclaim
//! for zswap writeback folios" (February 2024, <https://lore.kernel.org/all/20240209115950.3885183-1-chengming.zhou@linux.dev/>). [reclaim 6.7]

mod store; // a page goes into the pool, and comes back
mod shrinker; // how much reclaim takes from the pool
mod writeback; // an entry goes to the device
mod worker; // a pool over its limit
mod next; // pages that a host may compress in advance

pub(crate) use pageout_mm::zswap::*;
pub(crate) use shrinker::{ZswapShrink, ZswapShrinkStep};
pub(crate) use worker::ZswapThread;
