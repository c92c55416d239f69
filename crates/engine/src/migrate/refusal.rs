//! Failure injection: a test can make a migration fail at each of its steps, to see what is left behind.
//!
//! ```text
//!   prepare ─▶ isolate ─▶ allocate ─▶ unmap ─▶ copy ─▶ remap ─▶ put back
//! ```
//! In a kernel all steps except the last can fail. In the engine no other task runs between the steps of a move. So from `unmap` on nothing
//! fails by itself, and a refusal there undoes the steps already done. Putting back can't fail in either; there the folio's batch is
//! emptied immediately.
//!
//! A program that is built to run scenarios has none of it: the question is answered with no before anyone asks.

use crate::core::Core;

/// A step of a migration that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateStep {
    /// The check whether the folio may move, and whether the destination has free memory.
    Prepare,
    /// Taking it off its list.
    Isolate,
    /// A frame on the node where it goes.
    Allocate,
    /// Before any page-table entry is changed.
    Unmap,
    /// When page tables lead to the new frame, and its file's index or the swap cache still to the old one.
    Copy,
    /// When everything leads to the new frame.
    Remap,
    /// The folio's way back to a list: the per-CPU batch is emptied immediately.
    PutBack,
}

impl MigrateStep {
    /// All of them, in their order.
    pub const ALL: [MigrateStep; 7] = [
        MigrateStep::Prepare,
        MigrateStep::Isolate,
        MigrateStep::Allocate,
        MigrateStep::Unmap,
        MigrateStep::Copy,
        MigrateStep::Remap,
        MigrateStep::PutBack,
    ];
}

/// Which of the next migrations fail at which step.
#[cfg(any(test, feature = "fault-injection"))]
#[derive(Default)]
pub(crate) struct Refusals {
    /// By step: the lowest bit is the next one's, and goes round.
    pub(crate) patterns: [u8; MigrateStep::ALL.len()],
    /// By step: how many have failed.
    #[cfg(test)]
    pub(crate) failed: [u64; MigrateStep::ALL.len()],
}

impl Core {
    /// Returns true if a migration is to fail at this step now.
    #[cfg(any(test, feature = "fault-injection"))]
    pub(crate) fn is_refused(&mut self, step: MigrateStep) -> bool {
        let pattern = &mut self.refusals.patterns[step as usize];
        *pattern = pattern.rotate_right(1);
        let is_refused = pattern.leading_zeros() == 0;
        #[cfg(test)]
        {
            self.refusals.failed[step as usize] += u64::from(is_refused);
        }
        is_refused
    }

    /// Returns true if a migration is to fail at this step now: never, but in tests.
    #[cfg(not(any(test, feature = "fault-injection")))]
    #[inline(always)]
    pub(crate) fn is_refused(&self, _: MigrateStep) -> bool {
        false
    }
}
