//! What memory groups pay, and what happens at their limits. The tree of groups itself is state (`pageout_mm::memcg`). [reclaim 2.10]

pub(crate) mod charge; // getting a page past the limits: stock, reclaim, retries, OOM
pub(crate) mod objcg; // kernel memory, by the page and by the byte
pub(crate) mod offline; // removal of groups
pub(crate) mod high; // memory.high: reclaim and delay before returning to user space

pub(crate) use pageout_mm::memcg::*;
