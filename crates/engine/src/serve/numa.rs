//! NUMA balancing as a task has it: scans on its way back to user space, hint faults in the middle of its accesses.

use crate::numa_balancing::ThreadScan;
use crate::serve::access::Object;
use crate::serve::engine::Engine;
use crate::serve::task::Task;
use crate::units::{Nanos, TaskId};

impl Engine {
    /// The CPU time of a task beyond which its next timer tick is worth an [`Engine::scan_tick`]; `None` as long as nothing is scanned,
    /// which a write to a kernel file may change.
    pub fn scan_due(&self, task: TaskId) -> Option<Nanos> {
        let Task { scan, mm, .. } = &self.tasks[task.index()];
        mm.and_then(|_| self.core.scan_due(scan))
    }

    /// A timer tick of a task that has used so much CPU time and is between two accesses. It may mark entries of its page table, which
    /// is work like any other; then [`Engine::scan_took`] wants to know how long it took.
    pub fn scan_tick(&mut self, task: TaskId, runtime: Nanos) -> bool {
        self.enter(task);
        let mm = self.mm_of(task);
        self.with_scan(task, |engine, scan| engine.core.scan_tick(mm, scan, task, runtime))
    }

    /// The scan of a task took so much CPU time, as a clock of timer ticks has it.
    pub fn scan_took(&mut self, task: TaskId, billed: Nanos) {
        self.with_scan(task, |engine, scan| engine.core.scan_took(scan, billed));
    }

    /// The access that begins may meet a marked entry. That is all of the fault: nothing is read ahead or mapped around it.
    #[cold]
    pub(super) fn take_hint_fault(&mut self, task: TaskId) {
        let Object::Mapping { mm, vma, start, .. } = *self.tasks[task.index()].accessed() else { return };
        let (page, write) =
            (start + self.tasks[task.index()].attempt.page, self.tasks[task.index()].attempt.write);
        if self.with_scan(task, |engine, scan| engine.core.hint_fault((mm, vma), page, write, scan, task)) {
            self.tasks[task.index()].attempt.was_hint_fault();
        }
    }

    fn with_scan<T>(&mut self, task: TaskId, then: impl FnOnce(&mut Engine, &mut ThreadScan) -> T) -> T {
        let mut scan = self.tasks[task.index()].scan;
        let result = then(self, &mut scan);
        self.tasks[task.index()].scan = scan;
        result
    }
}
