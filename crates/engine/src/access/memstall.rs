//! Memstall sections of pressure stall information: which work and which waits of a task count as stalled on memory. [machine 4.2]
//!
//! Reclaim on a task's own behalf is a memstall section from its first batch to the end of its purpose, waits included. The reclaim that
//! `memory.high` makes a task do is one, too.
//!
//! Waiting for a page that is being read is a section if the page would still be in memory with a little more memory. WORKINGSET is set as
//! the page comes back. Submitting a read that contains such a page is a section, too. Submission takes time in two cases: the device's
//! queue is full, or submission is the complete read, because the page is decompressed. A first read is plain I/O.
//!
//! Reclaim that a user asked for (`memory.reclaim`, `lru_gen`, a lowered limit) is not a section: it delays no task that needs memory.

use crate::access::engine::Engine;
use crate::access::miss::Found;
use crate::access::task::{Stage, Task};
use crate::core::Core;
use crate::machine::step::Memstall;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::units::{Pfn, TaskId};

impl Engine {
    /// The memstall section that a task is in, between two steps.
    #[doc(alias = "psi_memstall_enter")]
    pub fn memstall(&self, task: TaskId) -> Option<Memstall> {
        let task = &self.tasks[task.index()];
        let Task { stage, attempt, .. } = task;
        let reclaims = match stage {
            Stage::Access if attempt.is_reclaiming() => true,
            Stage::Access => return task.waits_for_refault(&self.core).then_some(Memstall::Refault),
            Stage::High(_) => true,
            Stage::ResizePool(resize) => resize.is_stalled(),
            Stage::Balloon(resize) => resize.is_stalled(),
            Stage::Thread(thread) => thread.in_reclaim(),
            Stage::OpenProc(opening) => opening.in_reclaim(),
            // The task has made its access. The device's queue may still be full for the pages that are read ahead with it.
            Stage::Idle => return attempt.progress.submits_refault.then_some(Memstall::Refault),
            Stage::UserReclaim(_)
            | Stage::Compact(_)
            | Stage::DropCaches(_)
            | Stage::LruGen(_)
            | Stage::Fsync(_)
            | Stage::Truncate(_)
            | Stage::Sync(_)
            | Stage::Madvise(_)
            | Stage::Switch
            | Stage::Promote(_)
            | Stage::Exit(_)
            | Stage::Exited => false,
        };
        reclaims.then_some(Memstall::Reclaim)
    }

    /// Returns whether a page that has just been read was in the working set. If it was, submitting its read was a memstall section. If no
    /// device is waited for, that is the complete read.
    #[inline]
    pub fn is_refault(&self, pfn: Pfn) -> bool {
        self.core.mm.memory.has_use(pfn, UseBits::WORKINGSET)
    }
}

impl Task {
    /// Returns true if the page that an access waits for is being read, and was in the working set.
    fn waits_for_refault(&self, core: &Core) -> bool {
        let held = self.attempt.held;
        let Some(pfn) = held.or_else(|| self.in_flight(core)) else { return false };
        core.mm.memory.folios[pfn].has(FolioFlags::LOCKED) && core.mm.memory.has_use(pfn, UseBits::WORKINGSET)
    }

    /// The page that an access waits for, if another task has it read.
    #[inline(never)]
    fn in_flight(&self, core: &Core) -> Option<Pfn> {
        match self.find(core) {
            Found::InFlight(pfn) => Some(pfn),
            Found::Ready(_) | Found::Zeroes | Found::Absent(_) => None,
        }
    }
}
