//! Kernel memory that a task has taken for itself: buffers of an open file of `/proc`, and blocks that a replay of a recording names.
//!
//! Buffers of a page come from a slab of eight, which the reader either finds in one piece or does without. The reader asks for the other
//! two pages one by one, and reclaims for them if necessary.
//!
//! That is not much memory, but it can't be moved. If all free pages are among movable ones, taking it raises the watermarks: a process
//! that monitors a machine short of memory makes memory a little shorter. [machine 8.1]
//!
//! A replay of a kernel's trace has each block that the kernel took and gave back. Nodes of indexes, page tables and stacks are among
//! them, and then come from frames that the allocator never had.

use crate::access::engine::Engine;
use crate::access::task::{Current, Stage};
use crate::machine::step::{IoWait, Served, Step, Wait};
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::page_alloc::slow_path::{Allocated, Allocation};
use crate::units::{MemcgId, Pfn, TaskId};

/// Pages that a read of a file takes in addition to the slab.
const PAGES: usize = 2;

/// A task that is getting blocks for the kernel.
pub(crate) struct Opening {
    request: Request,
    allocation: Option<Allocation>,
    left: usize,
    /// The number of a block that is given back by number; other blocks are freed when the file is closed.
    number: Option<u64>,
}

/// A block of pages that the kernel takes for itself, as its trace records it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelBlock {
    /// It has 2^order pages.
    pub order: u8,
    /// The pageblocks that it lies in.
    pub kind: MigrateType,
    /// The effort if memory is short.
    pub effort: BlockEffort,
}

/// The work done for a block if memory is short. No process is ever killed for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEffort {
    /// Nothing.
    Nothing,
    /// kswapd is woken.
    WakesKswapd,
    /// And the task reclaims.
    Reclaims,
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
            self.current(task).hold_buffer(pfn, None);
        }
        let request = Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, self.core.current_node());
        let opening = Opening { request, allocation: None, left: PAGES, number: None };
        self.current(task).open_proc_file_step(Box::new(opening))
    }

    /// The task has read the file: its buffers are free again.
    pub fn close_proc_file(&mut self, task: TaskId) {
        self.enter(task);
        for pfn in std::mem::take(&mut self.tasks[task.index()].buffers) {
            self.core.kernel_page_free(pfn);
        }
    }

    /// The kernel takes a block for itself, on a task's CPU. It does without where there is none. The task must not be in the middle of anything
    /// else.
    pub fn take_kernel_block(&mut self, task: TaskId, number: u64, block: KernelBlock) -> Step {
        self.enter(task);
        self.assert_idle(task);
        assert!(!self.core.mm.kmem.blocks.contains_key(&number), "block {number} is taken twice");
        let effort = match block.effort {
            BlockEffort::Nothing => Gfp::empty(),
            BlockEffort::WakesKswapd => Gfp::NOWAIT,
            BlockEffort::Reclaims => Gfp::KERNEL,
        };
        let gfp = effort | Gfp::NOWARN | Gfp::NORETRY;
        let node = self.core.current_node();
        let request = Request { order: block.order, ..Request::kernel(block.kind, gfp, node) };
        let opening = Opening { request, allocation: None, left: 1, number: Some(number) };
        self.current(task).open_proc_file_step(Box::new(opening))
    }

    /// The kernel gives a block back, on a task's CPU. A block that it did not get is ignored.
    pub fn give_kernel_block(&mut self, task: TaskId, number: u64) {
        self.enter(task);
        if let Some(pfn) = self.core.mm.kmem.blocks.remove(&number) {
            self.core.kernel_page_free(pfn);
        }
    }
}

impl Current<'_> {
    pub(crate) fn open_proc_file_step(&mut self, mut opening: Box<Opening>) -> Step {
        let Opening { request, number, .. } = *opening;
        while opening.left > 0 {
            if let Some(pfn) =
                opening.allocation.is_none().then(|| self.core.alloc_pages(&request, MemcgId::ROOT)).flatten()
            {
                self.hold_buffer(pfn, number);
                opening.left -= 1;
                continue;
            }
            let mut allocation = opening
                .allocation
                .take()
                .unwrap_or_else(|| self.core.allocation(request, MemcgId::ROOT, None));
            let wait = match self.core.allocation_step(&mut allocation) {
                Allocated::Page(pfn) => {
                    self.hold_buffer(pfn, number);
                    opening.left -= 1;
                    continue;
                }
                // Then the task continues with fewer of them.
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

    fn hold_buffer(&mut self, pfn: Pfn, number: Option<u64>) {
        self.core.mm.kernel_page_new(pfn, MemcgId::ROOT);
        match number {
            None => self.task.buffers.push(pfn),
            Some(number) => drop(self.core.mm.kmem.blocks.insert(number, pfn)),
        }
    }
}
