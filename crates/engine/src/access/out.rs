//! The output of a machine: operations, counts of work, tasks whose wait is over, and traced events.
//!
//! Mechanisms push, count and trace; they can't read any of it, since only this folder may. So no decision depends on earlier output.

use crate::lru::batch::{Rotations, Unrotated};
use crate::machine::op::Op;
use crate::machine::work::{Work, WorkFor, units_of_work};
use crate::page_cache::PageCacheEvent;
use crate::story::Story;
use crate::units::TaskId;

/// What goes out.
#[derive(Default)]
pub(crate) struct Out {
    pub(super) ops: Vec<Op>,
    /// Tasks whose wait has ended. A task is no more than a name here.
    pub(super) woken: Vec<TaskId>,
    /// Work, counted where it is done.
    pub(crate) count: Meter,
    work_for: WorkFor,
    rotations: Rotations,
    pub(super) page_cache_events: Option<Vec<PageCacheEvent>>,
    /// The consumer of page events. Only its own folder knows what a story contains.
    pub(crate) story: Option<Box<Story>>,
}

macro_rules! note_if_rare {
    ($meter:ident, rarely) => {
        $meter.has_rare_work = true
    };
    ($meter:ident) => {};
}

macro_rules! meter {
    ($($(#[$doc:meta])* $field:ident $(: $how:ident)?,)*) => {
        impl Meter {
            $(
                $(#[$doc])*
                #[inline(always)]
                pub(crate) fn $field(&mut self, by: u64) {
                    self.work.$field += by;
                    note_if_rare!(self $(, $how)?);
                }
            )*
        }
    };
}

/// Counts work: a method a unit.
#[derive(Default)]
pub(crate) struct Meter {
    work: Work,
    /// Units that are rarely counted have grown since a machine asked.
    has_rare_work: bool,
}

units_of_work!(meter);

/// All the work when something began whose work is counted by purpose.
pub(crate) struct Begun(Work);

impl Out {
    /// Asks the machine for something.
    #[inline(always)]
    pub(crate) fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// A bug that the byte machine must find: the last two operations change places.
    #[cfg(test)]
    pub(crate) fn swap_last_two(&mut self) {
        let last = self.ops.len() - 1;
        self.ops.swap(last - 1, last);
    }

    /// Names a task that goes on.
    #[inline]
    pub(crate) fn wake(&mut self, task: TaskId) {
        self.woken.push(task);
    }

    /// Names tasks that go on.
    #[inline]
    pub(crate) fn wake_all(&mut self, tasks: impl IntoIterator<Item = TaskId>) {
        self.woken.extend(tasks);
    }

    /// From here on work is for a purpose.
    #[inline]
    pub(crate) fn begin(&self) -> Begun {
        Begun(self.count.work)
    }

    /// The work since `begun` has moved pages in use to younger lists.
    pub(crate) fn end_marking(&mut self, begun: Begun) {
        self.work_for.marking += self.count.work - begun.0;
    }

    /// The work since `begun` has aged lists.
    pub(crate) fn end_aging(&mut self, begun: Begun) {
        self.work_for.aging += self.count.work - begun.0;
    }

    /// A folio that reclaim wanted next is queued for the cold end.
    pub(crate) fn rotation_queued(&mut self) {
        self.rotations.queued += 1;
    }

    /// It was dropped from memory instead.
    pub(crate) fn rotation_dropped(&mut self) {
        self.rotations.dropped += 1;
    }

    /// It does not go to the cold end.
    pub(crate) fn not_rotated(&mut self, why: Unrotated) {
        match why {
            Unrotated::NotListed => self.rotations.not_listed += 1,
            Unrotated::Unfit => self.rotations.unfit += 1,
            Unrotated::Active => self.rotations.active += 1,
        }
    }

    /// A page enters or leaves a page cache: records the event if a consumer has asked for such events.
    #[inline(always)]
    pub(crate) fn page_cache_changed(&mut self, event: impl FnOnce() -> PageCacheEvent) {
        if let Some(events) = &mut self.page_cache_events {
            events.push(event());
        }
    }

    #[inline]
    pub(super) fn work(&self) -> &Work {
        &self.count.work
    }

    #[inline]
    pub(super) fn take_rare_work(&mut self) -> bool {
        std::mem::take(&mut self.count.has_rare_work)
    }

    pub(super) fn work_for(&self) -> &WorkFor {
        &self.work_for
    }

    pub(super) fn rotations(&self) -> Rotations {
        self.rotations
    }
}
