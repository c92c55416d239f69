//! What was recorded of a kernel where its rules alone don't say what happens, for the access that begins next.
//!
//! - **Walks.** An aging skips an address space that has not had the CPU since its last walk. Whether another thread ran between two agings of one
//!   call of reclaim is the scheduler's affair.
//! - **Mapped pages.** A fault maps what is cached around it. Which of these pages were still being read is the disk's affair.
//! - **Flushes.** The worker that flushes statistics runs when its time has come and the task lets it: in the middle of an access, too. The
//!   recording has its place as the number of pages that had come and gone by then.
//!
//! Without a recording both follow from the machine's own time.

use std::collections::VecDeque;
use std::ops::Range;

/// What the kernel did in the access that begins next, as far as it was recorded.
#[derive(Default, Debug)]
pub(crate) struct Recorded {
    /// For each of the next agings, the first one first: true if it walks the address space that it visits. After the last, the rules decide.
    pub(crate) walks: VecDeque<bool>,
    /// The only pages of the mapping that faults map around the accessed one; without it, all that the rules say.
    pub(crate) mapped: Option<Vec<Range<u64>>>,
    /// Flushes of statistics in the access, the next one first: how many pages of files have come and gone in it by then.
    pub(crate) flushes: VecDeque<u64>,
    /// Pages of files that have come and gone in the access, while a flush is still to come.
    pub(crate) changes: u64,
}

impl Recorded {
    /// True if this page was recorded as mapped; `None` if it was not recorded which pages are mapped.
    pub(crate) fn is_mapped(&self, page: u64) -> Option<bool> {
        Some(self.mapped.as_ref()?.iter().any(|pages| pages.contains(&page)))
    }

    /// Returns true if a flush comes here; it is taken.
    pub(crate) fn is_flush_due(&mut self) -> bool {
        let changes = self.changes;
        self.flushes.pop_front_if(|after| *after <= changes).is_some()
    }
}
