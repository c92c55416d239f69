//! A sweep: the product of traces or scenarios, policies, sizes and seeds, too much for one sitting or one machine.
//!
//! ```text
//!   plan.toml ─▶ cells, each with a key ─┬─ key is in a part of the folder: done
//!                                        └─ run, with all others of the same trace ─▶ rows ─▶ a part, whole or not there
//! ```
//! A cell's key is a hash of all that its result depends on. So the order of the plan does not matter, whoever starts again goes on, and several
//! machines share a folder without talking to each other: each takes the cells of its shard and writes parts of its own.

mod plan; // from a file to cells
mod parts; // rows on disk

pub use parts::{Parts, Row, rows};
pub use plan::{Cell, Input, InputKind, Plan, content_hash};
