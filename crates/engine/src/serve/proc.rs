//! Kernel memory of an open file of `/proc`: buffers for its text, and for what is gathered for it.
//!
//! Buffers of a page come from a slab of eight, which the reader finds in one piece or else does without; the other two pages are asked for
//! one by one, and their reader reclaims for them if need be. It is not much. But it is memory that can't be moved, and where all
//! free pages lie among movable ones, taking it raises the marks: whoever looks after a machine that is short of memory makes
//! it a little shorter. [machine 8.1]

use crate::machine::step::{IoWait, Served, Step, Wait};
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::page_alloc::slow_path::{Allocated, Allocation};
use crate::serve::engine::Engine;
use crate::serve::task::{Current, Stage};
use crate::units::{MemcgId, Pfn, TaskId};

/// Pages that a read of a file takes beside the slab.
const PAGES: usize = 2;

/// A reader who is getting its buffers.
pub(crate) struct Opening {
    allocation: Option<Allocation>,
    left: usize,
}

impl Opening {
    pub(crate) fn in_reclaim(&self) -> bool {
        self.allocation.as_ref().is_some_and(Allocation::in_reclaim)
    }
}

impl Engine {
    /// A task opens a file of `/proc`: it has its buffers when this is done, and holds them until
    /// [`Engine::close_proc_file`]. It must not be in the middle of anything else.
    pub fn open_proc_file(&mut self, task: TaskId) -> Step {
        self.enter(task);
        self.assert_idle(task);
        let slab = Request {
            order: self.core.mm.kmem.buffers_order(),
            ..Request::kernel(MigrateType::Unmovable, Gfp::NOWAIT | Gfp::NOWARN, self.core.current_node())
        };
        if let Some(pfn) = self.core.alloc_pages(&slab, MemcgId::ROOT) {
            self.current(task).hold_buffer(pfn);
        }
        self.current(task).open_proc_file_step(Box::new(Opening { allocation: None, left: PAGES }))
    }

    /// The task has read the file: its buffers are free again.
    pub fn close_proc_file(&mut self, task: TaskId) {
        self.enter(task);
        for pfn in std::mem::take(&mut self.tasks[task.index()].buffers) {
            self.core.kernel_page_free(pfn);
        }
    }
}

impl Current<'_> {
    pub(crate) fn open_proc_file_step(&mut self, mut opening: Box<Opening>) -> Step {
        let request = Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, self.core.current_node());
        while opening.left > 0 {
            if let Some(pfn) =
                opening.allocation.is_none().then(|| self.core.alloc_pages(&request, MemcgId::ROOT)).flatten()
            {
                self.hold_buffer(pfn);
                opening.left -= 1;
                continue;
            }
            let mut allocation = opening
                .allocation
                .take()
                .unwrap_or_else(|| self.core.allocation(request, MemcgId::ROOT, None));
            let wait = match self.core.allocation_step(&mut allocation) {
                Allocated::Page(pfn) => {
                    self.hold_buffer(pfn);
                    opening.left -= 1;
                    continue;
                }
                // Then it tells with fewer of them.
                Allocated::Nothing | Allocated::Dying | Allocated::Oom(_) => break,
                Allocated::Again => None,
                Allocated::Wait(wait) => Some(wait),
                Allocated::WaitForWriteback => {
                    self.core.wait_for_any_write(self.id);
                    Some(Wait::Io(IoWait::Writeback))
                }
            };
            opening.allocation = Some(allocation);
            self.task.stage = Stage::OpenProc(opening);
            return wait.map_or(Step::Again, |wait| self.wait(wait));
        }
        Step::Done(Served::Opened)
    }

    fn hold_buffer(&mut self, pfn: Pfn) {
        self.core.mm.kernel_page_new(pfn, MemcgId::ROOT);
        self.task.buffers.push(pfn);
    }
}
