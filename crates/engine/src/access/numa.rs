//! A task's part in NUMA: the nodes of its pages by memory policy, NUMA-balancing scans on its way back to user space, hint faults.
//! [tiering 2; tiering-zswap-6.12 3]

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::task::{Current, Task};
use crate::config::{ConfigError, check_range};
use crate::memory::mempolicy::{MemPolicy, Placement};
use crate::page_alloc::request::Request;
use crate::units::{MmId, Nanos, TaskId};

impl Engine {
    /// Sets the memory policy of a process. Errors: it names a node that does not exist, or none.
    pub fn set_mempolicy(&mut self, mm: MmId, policy: MemPolicy) -> Result<(), ConfigError> {
        if let Some(nodes) = policy.nodes() {
            let count = self.core.mm.config.node_pages.len() as u64;
            check_range("nodes of a memory policy", nodes.iter().count() as u64, 1, count)?;
            nodes.iter().try_for_each(|node| check_range("node", node.0.into(), 0, count - 1))?;
        }
        let mems = self.core.mm.memcgs.mems_allowed(self.core.mm.memory.mm(mm).memcg);
        self.core.mm.memory.mm_mut(mm).placement = Placement::new(policy, mems);
        Ok(())
    }

    /// The CPU time of a task beyond which its next timer tick is worth an [`Engine::scan_tick`]; `None` while scans are off, which a write to a
    /// kernel file may change.
    pub fn scan_due(&self, task: TaskId) -> Option<Nanos> {
        let Task { scan, mm, .. } = &self.tasks[task.index()];
        mm.and_then(|_| self.core.mm.scan_due(scan))
    }

    /// A timer tick of a task that has used so much CPU time and is between two accesses. It may mark entries of its page table, which
    /// is work like any other; then [`Engine::scan_took`] wants to know how long it took.
    pub fn scan_tick(&mut self, task: TaskId, runtime: Nanos) -> bool {
        self.enter(task);
        let Current { core, task, id } = self.current(task);
        core.scan_tick(task.mm(), &mut task.scan, id, runtime)
    }

    /// The scan of a task took so much CPU time, as a clock of timer ticks has it.
    pub fn scan_took(&mut self, task: TaskId, billed: Nanos) {
        self.core.mm.scan_took(&mut self.tasks[task.index()].scan, billed);
    }
}

impl Current<'_> {
    /// Restricts a request to the nodes that the task's memory policy and its group's `cpuset.mems` allow.
    #[cold]
    #[inline(never)]
    pub(super) fn place_request(&mut self, request: &mut Request) {
        let attempt = &self.task.attempt;
        let takes = attempt.frame.is_none() && attempt.allocation.is_none();
        let mm = self.task.mm();
        let Some(placement) = &mut self.core.mm.memory.mm_mut(mm).placement else { return };
        let allowed = placement.allowed();
        let wanted = placement.node(&self.core.mm.config.layout.interleave_weights, takes);
        let wanted = wanted.unwrap_or(request.node);
        request.is_interleaved =
            matches!(placement.policy, MemPolicy::Interleave(_) | MemPolicy::WeightedInterleave(_));
        request.allowed = allowed;
        request.node = self.core.mm.memory.zones.nearest(wanted, allowed).unwrap_or(wanted);
    }

    /// The access that begins may meet a marked entry. That is all of the fault: nothing is read ahead or mapped around it.
    #[cold]
    pub(super) fn take_hint_fault(&mut self) {
        let Object::Mapping { mm, vma, start, .. } = *self.task.accessed() else { return };
        let (page, write) = (start + self.task.attempt.page, self.task.attempt.write);
        if self.core.hint_fault((mm, vma), page, write, &mut self.task.scan, self.id) {
            self.task.attempt.was_hint_fault();
        }
    }
}
