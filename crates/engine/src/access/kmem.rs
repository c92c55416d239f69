//! Kernel memory that an access can't do without: the task's stack, the page tables that lead to its page, and nodes of a file's
//! index.
//!
//! A fault allocates the stack and the page tables before it looks for the page. A page of a file is charged first, and the nodes after
//! it. Each allocation may reclaim at a limit, so at each the access may pause and then continue from the start. It keeps the frames and
//! charges that it has got until then. [machine 7]

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::miss::{Source, Stop};
use crate::access::task::Current;
use crate::config::ConfigError;
use crate::kmem::{IndexRoom, STACK_PAGES};
use crate::machine::step::Step;
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::stat::Stat;
use crate::units::{FileId, MemcgId, MmId, Pfn, TaskId};
use std::ops::Range;

/// What a frame of the kernel's own is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Stack,
    PageTables(MmId, u64),
}

impl Purpose {
    fn gauge(self) -> Stat {
        match self {
            Purpose::Stack => Stat::NrKernelStack,
            Purpose::PageTables(..) => Stat::NrPageTablePages,
        }
    }
}

impl Source {
    /// The page of a file that it becomes.
    fn indexed(self) -> Option<(FileId, u64)> {
        match self {
            Source::File(file, page) | Source::Overwritten(file, page) | Source::NewTmpfs(file, page) => {
                Some((file, page))
            }
            // What comes back from swap finds its node kept by the swap entry.
            Source::NewAnon | Source::Swap(_) => None,
        }
    }
}

impl Engine {
    /// Takes pages of the machine permanently: memory that a kernel holds from its start, in addition to the memory that the engine tracks
    /// piece by piece. The pages can't be moved, and they are charged to no group.
    pub fn hold_kernel_memory(&mut self, pages: u64) -> Result<(), ConfigError> {
        self.core.hold_kernel_memory(pages)
    }

    /// Resizes the balloon: frames of the fast node that the host has back, at the end of memory. Their pages move or are evicted first, and
    /// zones manage the rest. It stays smaller than was asked for if pages can be neither moved nor evicted now. The host must not
    /// use [`Engine::balloon_frames`] before the last operations of the task are carried out.
    pub fn balloon_resize(&mut self, task: TaskId, pages: u64) -> Step {
        self.assert_idle(task);
        let mut current = self.enter(task);
        let node = current.core.current_node();
        let resize = current.core.balloon_resize(node, usize::try_from(pages).unwrap_or(usize::MAX));
        current.balloon(Box::new(resize))
    }

    /// Returns the frames that the host has back, the first taken first.
    pub fn balloon_frames(&self) -> &[Pfn] {
        self.core.mm.kmem.balloon.frames()
    }

    /// Moves a process to another group, as a write to `cgroup.procs` does. Its existing charges stay with the old group. None of its
    /// tasks may be in the middle of anything.
    pub fn process_move(&mut self, mm: MmId, memcg: MemcgId) {
        assert!(self.core.mm.memcgs.contains(memcg), "there is no memcg {}", memcg.0);
        assert!(self.core.mm.memcgs[memcg].is_online, "memcg {} was removed", memcg.0);
        for task in 0..self.tasks.len() {
            if self.tasks[task].mm == Some(mm) && !self.has_exited(TaskId(task as u32)) {
                self.assert_idle(TaskId(task as u32));
            }
        }
        self.core.mm.lru_gen_migrate_mm(mm, memcg);
    }
}

impl Current<'_> {
    /// Returns true if the access lacks page tables.
    #[inline]
    pub(super) fn lacks_page_tables(&self) -> bool {
        match *self.task.accessed() {
            Object::File { .. } => false,
            Object::Mapping { mm, start, .. } => {
                !self.core.mm.memory.mm(mm).nodes.has_leaf(start + self.task.attempt.page)
            }
        }
    }

    fn purpose(&self) -> (Purpose, usize) {
        match *self.task.accessed() {
            Object::Mapping { mm, start, .. } if self.task.stack.is_some() => {
                let page = start + self.task.attempt.page;
                (Purpose::PageTables(mm, page), self.core.mm.memory.mm(mm).nodes.missing(page) as usize)
            }
            _ => (Purpose::Stack, if self.core.mm.config.kernel_stacks { STACK_PAGES } else { 0 }),
        }
    }

    /// Gets them, frame by frame.
    #[doc(alias = "pte_alloc")]
    #[cold]
    pub(super) fn provide_kernel_pages(&mut self) -> Result<(), Stop> {
        let memcg = self.memcg();
        let payer = self.core.mm.kmem_payer(memcg);
        let (purpose, count) = self.purpose();
        // Stack and page tables are present before the access looks for its page, and no other task frees them during an access.
        debug_assert!(self.task.attempt.readahead.is_none(), "a batch is begun on a stack");
        while self.task.attempt.kernel_pages.len() < count {
            let request = Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, self.core.current_node());
            let pfn = match self.core.mm.frame_aside() {
                Some(pfn) => pfn,
                None => self.allocate(memcg, &request).map_err(|stop| self.give_up(stop))?,
            };
            if payer != MemcgId::ROOT {
                let charged = self.charge_page(memcg, Gfp::KERNEL);
                charged.map_err(|stop| self.give_up(stop))?;
            }
            let attempt = &mut self.task.attempt;
            attempt.frame = None;
            attempt.kernel_pages.push(pfn);
            self.core.kmem_page_new(pfn, payer, purpose.gauge());
        }
        let mut pages = std::mem::take(&mut self.task.attempt.kernel_pages);
        // Another thread may have made some of the tables meanwhile.
        for pfn in pages.drain(count..) {
            self.core.kmem_page_free(pfn, purpose.gauge());
        }
        match purpose {
            Purpose::Stack => {
                self.task.stack = Some(pages.into());
                let mm = self.task.mm();
                self.core.mm.memory.mm_mut(mm).is_running = true;
            }
            Purpose::PageTables(mm, page) => self.core.mm.page_tables_make(mm, page, pages, payer),
        }
        Ok(())
    }

    /// The access does without them.
    pub(super) fn give_kernel_pages_back(&mut self) {
        let pages = std::mem::take(&mut self.task.attempt.kernel_pages);
        let gauge = match self.task.stack {
            None => Stat::NrKernelStack,
            Some(_) => Stat::NrPageTablePages,
        };
        for pfn in pages {
            self.core.kmem_page_free(pfn, gauge);
        }
    }

    /// The task has ended, and with it what it ran on.
    pub(super) fn free_stack(&mut self) {
        for pfn in self.task.stack.take().into_iter().flatten() {
            self.core.kmem_page_free(pfn, Stat::NrKernelStack);
        }
    }

    /// Makes sure that there are frames for the nodes of an index, before there is one for the page.
    #[inline(always)]
    pub(super) fn provide_slab(&mut self, memcg: MemcgId, source: Source) -> Result<(), Stop> {
        match source.indexed() {
            Some((file, page)) if !self.core.mm.index_has_node(file, page) => {
                self.grow_slab(memcg, file, page)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn grow_slab(&mut self, memcg: MemcgId, file: FileId, page: u64) -> Result<(), Stop> {
        let is_first = self.task.attempt.frame.is_none();
        if is_first && !self.core.mm.index_has_slab(file, page) {
            let kind = self.core.mm.kmem.index_nodes_kind();
            let request = Request::kernel(kind, Gfp::NOFS, self.core.current_node());
            let pfn = match self.core.mm.frame_aside() {
                Some(pfn) => pfn,
                None => self.allocate(memcg, &request)?,
            };
            self.task.attempt.frame = None;
            self.core.mm.index_nodes_grow(pfn);
        }
        Ok(())
    }

    /// Makes sure that there are frames for the nodes of an index that a large folio of these pages needs, before there is one for the folio.
    #[cold]
    pub(super) fn provide_slab_of(
        &mut self,
        memcg: MemcgId,
        file: FileId,
        pages: Range<u64>,
    ) -> Result<(), Stop> {
        while self.task.attempt.frame.is_none()
            && self.task.attempt.charge.is_none()
            && !self.core.mm.index_has_slab_for(file, &pages)
        {
            let kind = self.core.mm.kmem.index_nodes_kind();
            let request = Request::kernel(kind, Gfp::NOFS, self.core.current_node());
            let pfn = match self.core.mm.frame_aside() {
                Some(pfn) => pfn,
                None => self.allocate(memcg, &request)?,
            };
            self.task.attempt.frame = None;
            self.core.mm.index_nodes_grow(pfn);
        }
        Ok(())
    }

    /// Makes sure that the bytes of nodes of an index are charged. False if others have used up the frames meanwhile.
    #[doc(alias = "xas_nomem")]
    #[inline(always)]
    pub(super) fn provide_bytes(
        &mut self,
        memcg: MemcgId,
        source: Option<Source>,
        gfp: Gfp,
    ) -> Result<bool, Stop> {
        // A charge in progress is for these nodes: the page has been paid for.
        let is_charging = self.task.attempt.charge.is_some();
        let indexed = source.and_then(Source::indexed);
        match indexed {
            None if !is_charging => Ok(true),
            Some((file, page)) if !is_charging && self.core.mm.index_has_node(file, page) => Ok(true),
            _ => self.charge_bytes(memcg, indexed, is_charging, gfp),
        }
    }

    #[cold]
    fn charge_bytes(
        &mut self,
        memcg: MemcgId,
        indexed: Option<(FileId, u64)>,
        is_charging: bool,
        gfp: Gfp,
    ) -> Result<bool, Stop> {
        let mut must_charge = is_charging;
        loop {
            if must_charge {
                self.charge_page(memcg, gfp)?;
                self.core.objcg_stock_page(memcg);
            }
            let Some((file, page)) = indexed else { return Ok(true) };
            match self.core.index_room(memcg, file, page) {
                IndexRoom::Ready => return Ok(true),
                IndexRoom::Charge => must_charge = true,
                IndexRoom::Frame => return Ok(false),
            }
        }
    }
}
