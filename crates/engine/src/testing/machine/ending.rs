//! The end of a run: everything comes to rest, every page is read back, and no unneeded page is left.

use super::tasks::Doing;
use super::{ByteMachine, Checks};
use crate::kmem::{PoolResize, PoolResizeStep};
use crate::memory::folio::FolioFlags;
use crate::testing::actions::{Kind, PAGES, TASKS};
use crate::testing::model::Page;
use crate::units::MAX_BLOCK_ORDER;
use crate::*;

impl ByteMachine {
    /// Ends a run: completes all transfers successfully, reads every page back, and frees everything.
    pub(crate) fn finish(mut self) {
        // First of all, or a task above `memory.high` may lose its page again each time before it gets to use it.
        for (group, file) in [(0, "memory.high"), (1, "memory.high"), (0, "memory.max"), (1, "memory.max")] {
            let path = format!("{}/{file}", self.groups[group]);
            assert_eq!(
                self.engine.write_file(self.administrator, &path, "max"),
                Ok(Step::Done(Served::Written { reclaimed: 0 }))
            );
        }
        self.settle();
        for task in (0..=TASKS as u32).map(TaskId) {
            let kinds = Kind::ALL
                .into_iter()
                .filter(|&kind| self.tasks[task.index()].objects.contains_key(&(kind as usize)));
            for (kind, page) in kinds
                .collect::<Vec<_>>()
                .into_iter()
                .flat_map(|kind| (0..PAGES).map(move |page| (kind, page)))
            {
                // Some are killed for what others have read back.
                if let Some(task) = self.idle(task.index()) {
                    let access = Access::new(self.object(task, kind), page, false);
                    self.start(task, Doing::Access(kind, access));
                    self.settle();
                }
            }
        }
        self.fsync(self.administrator);
        self.settle();
        for page in 0..PAGES {
            let on_device = self.block(self.regular, page);
            self.model.check_device(Page::Regular(self.regular, page), on_device);
        }
        if self.checks == Checks::Contents {
            return;
        }
        self.engine.check_invariants();
        for task in (0..TASKS).filter_map(|task| self.idle(task)).collect::<Vec<_>>() {
            for kind in Kind::ALL.into_iter().filter(|kind| kind.is_mapping()) {
                self.munmap(task, kind);
            }
        }
        // A thread that began a program of its own has left its heap behind in the address space of the others.
        for task in (0..=TASKS).filter_map(|task| self.idle(task)).collect::<Vec<_>>() {
            let mut step = self.engine.task_exit(task);
            while step == Step::Again {
                step = self.engine.resume(task);
            }
            assert_eq!(step, Step::Done(Served::Exited));
        }
        for order in 1..=MAX_BLOCK_ORDER {
            let step = self.engine.core.pool_resize_step(&mut PoolResize::new(order, 0));
            assert_eq!(step, PoolResizeStep::Done, "blocks are given back at once");
        }
        for cpu in 0..self.engine.core.mm.config.cpus {
            self.engine.core.by.cpu = crate::CpuId(cpu);
            self.engine.core.lru_add_drain();
        }
        self.take_ops();
        self.engine.check_invariants();
        let kernel = self.engine.core.mm.kernel_frames().len() as i64;
        let stacks = self.engine.figures().vmstat(Stat::NrKernelStack) * 1024 / PAGE_SIZE as i64;
        let slab = self.engine.figures().vmstat(Stat::NrSlabReclaimable);
        let compressed = self.engine.figures().vmstat(Stat::NrZspages);
        assert_eq!(kernel, stacks + slab + compressed, "no page table is left");
        if !self.has_room {
            // Pages that kswapd was writing to swap when their owner released them stay until the next reclaim. Pages of tmpfs that it compressed
            // while others were read back stay as well.
            return;
        }
        assert_eq!(compressed, 0, "every page was read back, so that none is compressed");
        for pfn in self.engine.used_folios() {
            let folio = &self.engine.core.mm.memory.folios[pfn];
            assert!(
                folio.has(FolioFlags::INDEXED),
                "{pfn:?} is left in memory although it is not in use: {folio:?}"
            );
        }
        assert_eq!(self.engine.used_folios().len(), self.cached.len(), "page-cache events and memory");
        assert_eq!(self.engine.used_slots(), 0, "every page was read back, so that no slot is needed");
    }

    /// Lets transfers end and tasks go on until all are idle.
    fn settle(&mut self) {
        // Reclaim of split huge pages takes some time, in batches of a few pages.
        for _ in 0..100_000 {
            self.keep_up();
            if let Some(task) = (0..self.tasks.len()).find(|&task| self.is_runnable(task)) {
                self.resume(TaskId(task as u32));
            } else if !self.queue.is_empty() {
                self.carry_out_youngest();
            } else if !self.transfers.is_empty() {
                self.complete(0, false, false);
            } else {
                let Some(sleeper) = self.tasks.iter().position(|task| !task.is_at_rest()) else { return };
                let Some(napping) = self.next_to_end_its_wait() else {
                    panic!("task {sleeper} sleeps, but nothing is under way that could wake it")
                };
                self.resume(TaskId(napping as u32));
            }
        }
        panic!("tasks go on for ever: {:?}", self.tasks.iter().map(|task| task.state).collect::<Vec<_>>());
    }
}
