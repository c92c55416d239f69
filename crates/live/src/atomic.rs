//! What gates are made of: std's atomics here, and in `tests/gate.rs` those of loom, which tries all orders of what threads do with them.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
