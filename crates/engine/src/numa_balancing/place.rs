//! Balancing of CPUs: at a hint fault, a page moves to the node of the thread that uses it. (`kernel.numa_balancing` = 1) [access-aware 6]
//!
//! ```text
//!   hint fault ─▶ the page's last user is exchanged for this one
//!        │ first fault on slow memory ─▶ stays
//!        │ a new thread, and the page is its own or has no user yet ─▶ belongs here
//!        │ the last fault was on another node ─▶ stays          two stages: a page must be used on a node twice in a row
//!        ▼
//!   belongs here ─▶ is it here? ─▶ room? off its list? ─▶ moved by the thread itself (migrate/promote.rs)
//!        └─▶ the fault is counted: local or remote, private or shared, by node ─▶ period.rs, users.rs
//! ```
//! Threads stay on their CPUs. The scheduler's part is left out: no thread moves to its memory, and threads form no groups. A shared page
//! follows the node whose threads meet it twice in a row, whatever the rest of a process does.
//!
//! The kernel keeps a page's last user and the time of its mark in the same bits. So while tiers are balanced, pages that change
//! tier have no last user (inferred).

use super::ThreadScan;
use super::period::ScanKnobs;
use super::users::LastUser;
use crate::core::Core;
use crate::story::{Locality, MigrateReason, PageEvent};
use crate::units::{CpuId, MmId, NodeId, Pfn, TaskId};
use pageout_rules::numa_balancing::SlowNode;

/// Passes over its memory for which a thread counts as new.
const NEW_PASSES: u32 = 4;

impl Core {
    /// A thread has met a marked entry of a page that balancing of CPUs may move. Moves the page if it belongs on the thread's node, and
    /// counts the fault.
    pub(super) fn place_page(&mut self, pfn: Pfn, vma: (MmId, usize), thread: &mut ThreadScan, id: TaskId) {
        // One entry is enough for all pages of a folio.
        let pfn = self.mm.memory.folio_of(pfn);
        let (from, to) = (self.mm.memory.folios[pfn].node, self.current_node());
        let pages = self.mm.memory.folios[pfn].pages();
        if self.mm.memory.zones.of_node(to).iter().all(|zone| zone.managed == 0) {
            return;
        }
        let last = self.mm.numa_balancing.exchange_user(pfn, self.by.cpu, id);
        let mut at = from;
        if from != to {
            let locality = self.locality(from, last, thread, id);
            self.tell(pfn, |_| PageEvent::LocalityJudged { to, locality });
            if locality.belongs_here() {
                match self.promote_folio(pfn, to, vma, MigrateReason::Misplaced) {
                    Ok(()) => at = to,
                    Err(_) => thread.faults.has_failed = true,
                }
            }
        }
        let is_unknown_on_slow = !self.mm.tiers.node_is_top_tier(at)
            && (self.mm.config.is_memory_tiering() || last.cpu().is_none());
        if is_unknown_on_slow {
            return;
        }
        let is_private = last.cpu().is_none() || last.is_thread(id);
        let faults = &mut thread.faults;
        *if from == to { &mut faults.local } else { &mut faults.remote } += pages;
        *if is_private { &mut faults.private } else { &mut faults.shared } += pages;
        thread.nodes.get_or_insert_default().add(at, pages);
        self.adapt_period(vma.0, thread);
    }

    /// The filter: whether a page on another node belongs on the node of the thread that uses it.
    fn locality(&self, from: NodeId, last: LastUser, thread: &ThreadScan, id: TaskId) -> Locality {
        let tiers_rest = !self.mm.tiers.node_is_top_tier(from) && !self.mm.config.is_memory_tiering();
        if tiers_rest && self.mm.config.policy.machine.numa_balancing.slow_node == SlowNode::Never {
            return Locality::SlowStays;
        }
        if tiers_rest && last.cpu().is_none() {
            return Locality::FirstOnSlow;
        }
        let is_settled = thread.nodes.as_ref().is_some_and(|nodes| nodes.preferred.is_some());
        let is_new = !is_settled || thread.seq <= NEW_PASSES;
        if is_new && (last.cpu().is_none() || last.is_thread(id)) {
            return Locality::OfNewThread;
        }
        match last.cpu().map(|cpu| self.mm.config.layout.node_of_cpu(cpu.0)) {
            Some(node) if node != self.current_node() => Locality::LastUsedOn(node),
            _ => Locality::UsedHere,
        }
    }

    /// Returns true if a page that moves from node to node keeps its last user.
    pub(crate) fn keeps_user(&self, from: NodeId, to: NodeId) -> bool {
        let tiers = &self.mm.tiers;
        !self.mm.config.is_memory_tiering() || tiers.node_is_top_tier(from) == tiers.node_is_top_tier(to)
    }

    /// A thread moves to another CPU. If it leaves its preferred node, or has not seen all of its memory yet, its scan period restarts.
    pub(crate) fn thread_moves(&self, mm: MmId, thread: &mut ThreadScan, from: CpuId, to: CpuId) {
        let [from, to] = [from, to].map(|cpu| self.mm.config.layout.node_of_cpu(cpu.0));
        let Some(period) = &mut thread.period_ms else { return };
        if from == to || !self.mm.config.is_cpu_balancing() {
            return;
        }
        let preferred = thread.nodes.as_ref().and_then(|nodes| nodes.preferred);
        let space = self.mm.memory.mm(mm);
        if space.scan.seq == 0 || preferred == Some(from) {
            *period = ScanKnobs::of(&self.mm.config).period_min(space.table.resident());
        }
    }
}
