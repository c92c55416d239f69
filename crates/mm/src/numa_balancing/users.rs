//! Users of memory, as hint faults show them: the last user of each page, and the nodes of a thread's pages. [access-aware 6.4, 6.5]
//!
//! ```text
//!   page     its last user: a CPU, and the low bits of a thread's number      written by each hint fault
//!   thread   pages of its hint faults, by node                                halved in each pass, plus those of the pass
//!              └── preferred node: the one with most of them; if it has no CPUs, the nearest that has
//! ```
//! The numbers of two threads may share their low bits. Then each takes the other's pages for its own, as in the kernel.

use crate::tiers::MemoryTiers;
use crate::units::{CpuId, NodeId, TaskId};
use bytemuck::Zeroable;

/// Bits of a thread's number that a page keeps.
const THREAD_BITS: u32 = 8;

/// The last user of a page. Zeroes: unknown.
#[derive(Clone, Copy, Default, PartialEq, Eq, Zeroable, Debug)]
#[repr(transparent)]
pub struct LastUser(u32);

impl LastUser {
    const IS_KNOWN: u32 = 1 << 31;

    /// A thread on a CPU.
    pub fn new(cpu: CpuId, thread: TaskId) -> LastUser {
        let low = thread.0 & ((1 << THREAD_BITS) - 1);
        LastUser(LastUser::IS_KNOWN | u32::from(cpu.0) << THREAD_BITS | low)
    }

    /// The CPU, if a user is known.
    pub fn cpu(self) -> Option<CpuId> {
        (self.0 & LastUser::IS_KNOWN != 0).then_some(CpuId((self.0 >> THREAD_BITS) as u16))
    }

    /// Returns true if a user is known whose number has the same low bits.
    pub fn is_thread(self, thread: TaskId) -> bool {
        let mask = (1 << THREAD_BITS) - 1;
        self.0 & LastUser::IS_KNOWN != 0 && self.0 & mask == thread.0 & mask
    }
}

/// Pages of a thread's hint faults, by the node where the page was after the fault.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct NodeFaults {
    /// In earlier passes, halved in each.
    past: Vec<u64>,
    /// In this pass.
    current: Vec<u64>,
    /// The node of most of them.
    pub preferred: Option<NodeId>,
}

impl NodeFaults {
    /// Counts pages of a fault.
    pub fn add(&mut self, node: NodeId, pages: u64) {
        if self.current.len() <= node.index() {
            self.current.resize(node.index() + 1, 0);
        }
        self.current[node.index()] += pages;
    }

    /// A pass over the thread's memory has ended: its faults decide which node is preferred.
    #[doc(alias = "task_numa_placement")]
    pub fn end_pass(&mut self, tiers: &MemoryTiers) {
        let nodes = self.past.len().max(self.current.len());
        self.past.resize(nodes, 0);
        self.current.resize(nodes, 0);
        for (past, current) in self.past.iter_mut().zip(&mut self.current) {
            *past = *past / 2 + std::mem::take(current);
        }
        // The first of several with as many.
        let most = (0..nodes).rev().max_by_key(|&node| self.past[node]).filter(|&node| self.past[node] > 0);
        self.preferred = most.and_then(|node| tiers.nearest_with_cpus(NodeId(node as u8)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Layout};

    #[test]
    fn last_user_of_zeroes_is_unknown() {
        let unknown = LastUser::default();
        assert_eq!((unknown.cpu(), unknown.is_thread(TaskId(0))), (None, false));
        let user = LastUser::new(CpuId(4095), TaskId(0x1_23));
        assert_eq!(user.cpu(), Some(CpuId(4095)));
        assert!(user.is_thread(TaskId(0x23)), "threads whose low bits agree are one");
        assert!(!user.is_thread(TaskId(0x24)));
    }

    #[test]
    fn faults_of_past_passes_halve_and_the_node_of_most_is_preferred() {
        let layout = Layout { cpu_nodes: vec![NodeId(0), NodeId(2)], ..Layout::default() };
        let config = Config { node_pages: vec![4096; 3], cpus: 2, layout, ..Config::default() };
        let tiers = MemoryTiers::new(&config).unwrap();
        let mut faults = NodeFaults::default();
        faults.end_pass(&tiers);
        assert_eq!(faults.preferred, None, "a pass without a fault");
        faults.add(NodeId(0), 10);
        faults.end_pass(&tiers);
        assert_eq!(faults.preferred, Some(NodeId(0)));
        faults.add(NodeId(2), 5);
        faults.end_pass(&tiers);
        assert_eq!(faults.preferred, Some(NodeId(0)), "5 and 5: the first");
        faults.end_pass(&tiers);
        faults.add(NodeId(2), 1);
        faults.end_pass(&tiers);
        assert_eq!((faults.past.clone(), faults.preferred), (vec![1, 0, 2], Some(NodeId(2))));
        faults.add(NodeId(1), 100);
        faults.end_pass(&tiers);
        assert_eq!(faults.preferred, Some(NodeId(2)), "node 1 has no CPUs, and node 2 comes after it");
    }
}
