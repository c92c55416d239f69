//! What was recorded of a kernel where its rules alone don't say what happens, for the access that begins next.
//!
//! - **Walks.** An aging passes by an address space that has not had the CPU since its last walk. Whether another thread ran between two agings
//!   of one call of reclaim is the scheduler's affair.
//! - **Mapped pages.** A fault maps what is cached around it. Which of these pages were still being read is the disk's affair.
//!
//! Without a recording both follow from the machine's own time.

use std::collections::VecDeque;
use std::ops::Range;

/// What the kernel did in the access that begins next, as far as it was recorded.
#[derive(Default, Debug)]
pub(crate) struct Recorded {
    /// Whether the next agings walk the address space they come to, the first one first. After the last, the rules say.
    pub(crate) walks: VecDeque<bool>,
    /// The only pages of the mapping that faults map around the accessed one; without it, all that the rules say.
    pub(crate) mapped: Option<Vec<Range<u64>>>,
}

impl Recorded {
    /// Whether it was recorded which pages are mapped; and whether this one was.
    pub(crate) fn is_mapped(&self, page: u64) -> Option<bool> {
        Some(self.mapped.as_ref()?.iter().any(|pages| pages.contains(&page)))
    }
}
