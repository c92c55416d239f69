//! Removed memcgs: what an offline memcg leaves behind when its directory is removed, and when the last of that is released.
//!
//! ```text
//!   online ── rmdir: no tasks, no children ──► offline ── last page and last swap slot are gone ──► released
//!                     │                           │                                                 │
//!                     │ charged ahead: given back │ its pages stay charged to it, on its own lists   │ its counters join
//!                     │ kernel memory: the        │ reclaim comes by, and takes at least a batch     │ its parent's
//!                     ▼ parent's from now on      ▼ where an online one would be spared              ▼
//! ```
//! A removed group has no name: its path is free for another group. Its pages keep it until they are reclaimed by an ancestor at its
//! limit or by the machine. With `reclaim.offline` (`lru/reparent.rs`) they move to its parent immediately, and only swap keeps the
//! group. Files and slots that outlive it may do so for long, which `nr_dying_descendants` shows. Objects on shared pages of the
//! kernel can't wait for that, so they are charged to the parent. Objects name the group that paid; [`crate::memcg::Memcgs::online`]
//! is the group that pays now. [reclaim 2.3, 4.4, 4.9; machine 7]
//!
//! *Where no source says more:* `memory.min` and `memory.low` of a removed group protect nothing, since it has no task to
//! protect. A shadow whose clock was that of a removed group gives no distance: the refault counts and has no consequence.

use crate::audit::{Paid, Transition};
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::memcg::Protection;
use crate::memcg::lru::Move;
use crate::stat::Stat;
use crate::units::{CpuId, MemcgId, NodeId, PAGE_SIZE};
use pageout_rules::reclaim::OfflinePages;

/// Gauges of kernel memory, which moves to the parent.
const KMEM_GAUGES: [Stat; 6] = [
    Stat::Kernel,
    Stat::SlabReclaimable,
    Stat::NrKernelStack,
    Stat::NrPageTablePages,
    Stat::Zswap,
    Stat::Zswapped,
];

impl Core {
    /// Removes a group that has no task and no child group.
    #[doc(alias = "mem_cgroup_css_offline")]
    pub(crate) fn memcg_offline(&mut self, memcg: MemcgId) {
        let parent = self.mm.memcgs[memcg].parent.expect("the root is never removed");
        assert!(self.mm.memcgs[memcg].is_online, "a group is removed twice");
        assert!(self.mm.memcgs[memcg].mms.is_empty(), "a group is removed while processes are in it");
        for cpu in (0..self.mm.config.cpus).map(CpuId) {
            if self.mm.cpus[cpu.index()].bytes.memcg == memcg {
                self.objcg_drain(cpu);
            }
        }
        self.mm.memcgs.set_protection(memcg, Protection::default());
        self.objcg_reparent(memcg, parent);
        for cpu in (0..self.mm.config.cpus).map(CpuId) {
            if self.mm.cpus[cpu.index()].stock.memcg == memcg {
                self.mm.stock_drain(cpu);
            }
        }
        if self.mm.memcgs[memcg].policy.reclaim.offline == OfflinePages::Reparent {
            let pages = self.lru_reparent(memcg, parent);
            assert_eq!(
                self.mm.memcgs[memcg].usage, pages,
                "pages that a removed group pays for, and its folios'"
            );
            self.mm.memcgs.reparent_pages(memcg, pages);
            assert_eq!(self.mm.memcgs[memcg].usage, 0, "pages of a removed group that are its parent's");
            for node in self.mm.lruvecs.nodes() {
                self.join_counters(memcg, parent, node);
            }
        }
        self.mm.memcgs.lrus.iter_mut().for_each(|lru| lru.rotate(memcg, Move::Old));
        self.mm.memcgs.unlink_name(memcg);
        self.release_empty_memcgs();
    }

    /// The parent takes over the group's charges for kernel memory, and the nodes of shadows that reclaim looks for.
    #[doc(alias = "memcg_reparent_objcgs")]
    fn objcg_reparent(&mut self, memcg: MemcgId, parent: MemcgId) {
        let charges = self.open_charges(Transition::Reparent, parent);
        let (pages, rest) = (self.mm.memcgs[memcg].kmem, self.mm.memcgs[memcg].kmem_rest);
        self.mm.memcgs.reparent_kmem(memcg, parent);
        self.close_charges(charges, Paid::bytes((pages * PAGE_SIZE - rest) as i64));
        for node in self.mm.lruvecs.nodes() {
            let (from, to) = (self.mm.lruvecs.id(memcg, node), self.mm.lruvecs.id(parent, node));
            self.mm.zswap_reparent(from, to);
            let nodes = self.mm.shadow_nodes.reparent(from, to) as i64;
            self.move_local(from, to, Stat::WorkingsetNodes, nodes);
            for gauge in KMEM_GAUGES {
                let value = self.mm.lruvecs[from].stat_local[gauge as usize];
                self.move_local(from, to, gauge, value);
            }
        }
        self.objcg_uncharge_rest(parent);
        if !self.mm.config.kmem && self.mm.config.kmem_counted {
            // No charge keeps the group's number from being another's next.
            self.mm.memory.files.iter_mut().for_each(|file| file.nodes.reassign(memcg, parent));
        }
    }

    /// Whole pages of what no object has go back.
    fn objcg_uncharge_rest(&mut self, memcg: MemcgId) {
        let pages = self.mm.memcgs[memcg].kmem_rest / PAGE_SIZE;
        self.mm.memcgs[memcg].kmem_rest %= PAGE_SIZE;
        self.objcg_uncharge_pages(memcg, pages);
    }

    fn move_local(&mut self, from: LruvecId, to: LruvecId, stat: Stat, n: i64) {
        assert!(from != to, "a group's counters join themselves");
        if n != 0 {
            self.count_memcg_bytes(from, stat, -n);
            self.count_memcg_bytes(to, stat, n);
        }
    }

    /// Frees removed groups that nothing is charged to any more. A reclaimer that has one selected finds it empty.
    pub(crate) fn release_empty_memcgs(&mut self) {
        while let Some(memcg) = self.mm.memcgs.take_empty() {
            let parent = self.mm.memcgs[memcg].parent.expect("the root is never removed");
            for node in self.mm.lruvecs.nodes() {
                let listed = self.mm.lruvecs[self.mm.lruvecs.id(memcg, node)].evictable();
                assert_eq!(listed, 0, "a group is released that has pages on its lists");
                self.join_counters(memcg, parent, node);
            }
            self.mm.memcgs.release(memcg);
        }
    }

    /// Adds the counters of a removed group to its parent's, so that its events stay counted.
    fn join_counters(&mut self, memcg: MemcgId, parent: MemcgId, node: NodeId) {
        let (from, to) = (self.mm.lruvecs.id(memcg, node), self.mm.lruvecs.id(parent, node));
        let counted = self.mm.lruvecs[from].stat_local;
        for &stat in Stat::ALL {
            self.move_local(from, to, stat, counted[stat as usize]);
        }
    }
}
