//! klruscand: the thread that walks page tables for accessed bits, and reports pages of lower tiers that it finds young. [tiering 4]
//!
//! ```text
//!   twice a second: nodes of lower tiers ─▶ groups ─▶ page tables (accessed/scan.rs): young? ─▶ remembered ─▶ enough, or all: reported
//! ```
//! It sees a page once a round, however often that is used, and cannot find out who used it or when: a report has its own time, and no
//! node. So a page that takes two reports is hot after two rounds, up to a second, at best. The thread does not catch up on rounds: after
//! one that takes longer than its interval, the next follows immediately.
//!
//! There is one set of accessed bits. The scanner that clears a bit informs the LRU, so reclaim sees the page as young as if it had
//! scanned itself. But a page that reclaim has found young since the last round is not seen here.
//!
//! *When not to use it:* unmapped page cache has no accessed bits. Groups without a walk of page tables (by default all without
//! MGLRU) have no walk to share, and are skipped.

use crate::accessed::{ENTRIES_PER_STEP, Scan};
use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::lru::lruvec::LruvecId;
use crate::machine::step::{DelayReason, Wait};
use crate::pghot::report::Source;
use crate::state::State;
use crate::units::{Nanos, Pfn, TaskId};

/// Reports between two steps.
const REPORTS_PER_STEP: usize = 4096;

/// The klruscand thread.
#[doc(alias = "klruscand")]
pub(crate) struct KlruscandThread {
    first_wait: Wait,
    /// When the current round began, or the next one is due.
    round: Nanos,
    /// What is still to be scanned in it, the last one first.
    lruvecs: Vec<LruvecId>,
    scan: Option<Scan>,
    /// Found, and to be reported, the last one first.
    found: Vec<Pfn>,
}

impl KlruscandThread {
    pub(crate) fn new() -> KlruscandThread {
        let (lruvecs, found) = (Vec::new(), Vec::new());
        KlruscandThread { first_wait: Wait::Woken, round: Nanos::ZERO, lruvecs, scan: None, found }
    }

    /// Between two rounds: what to wait for, unless it is time.
    fn rest(&mut self, core: &Core) -> Option<Wait> {
        if !Source::PageTableScan.is_heard(&core.mm.config) {
            self.round = Nanos::ZERO;
            return Some(Wait::Woken);
        }
        let left = self.round.0.saturating_sub(core.by.now.0);
        (left > 0).then_some(Wait::WokenOr(Nanos(left), DelayReason::Nap))
    }

    /// Scans some tables; false when the round is over.
    fn scan(&mut self, core: &mut Core) -> bool {
        let Some(scan) = &mut self.scan else {
            let Some(lruvec) = self.lruvecs.pop() else { return false };
            self.scan = core.mm.scan_begin(lruvec);
            return true;
        };
        let goes_on = core.scan_step(scan);
        let room = core.mm.config.klruscand_buffer as usize - scan.found();
        if !goes_on || room < ENTRIES_PER_STEP {
            self.found = scan.take_found();
            self.found.reverse();
        }
        if !goes_on {
            self.scan = None;
        }
        true
    }
}

impl KernelThread for KlruscandThread {
    fn name(&self) -> String {
        "klruscand".to_owned()
    }

    fn first_wait(&self) -> Wait {
        self.first_wait
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        // The source may have been turned on before the machine has started.
        self.first_wait = self.rest(core).unwrap_or(Wait::WokenOr(Nanos::ZERO, DelayReason::Nap));
        core.mm.pghot.threads.push(task);
    }

    fn step(&mut self, core: &mut Core, _: bool) -> ThreadStep {
        let is_resting = self.found.is_empty() && self.scan.is_none() && self.lruvecs.is_empty();
        if is_resting {
            if let Some(wait) = self.rest(core) {
                return ThreadStep::Wait(wait);
            }
            self.round = core.by.now + Nanos(u64::from(core.mm.config.klruscand_interval_ms) * 1_000_000);
            self.lruvecs = core.mm.lruvecs_of_lower_tiers();
        }
        if !self.found.is_empty() {
            let from = self.found.len().saturating_sub(REPORTS_PER_STEP);
            for pfn in self.found.split_off(from).into_iter().rev() {
                core.record_accesses(pfn, None, Source::PageTableScan, 1).expect("it names no node");
            }
        } else if !self.scan(core)
            && let Some(wait) = self.rest(core)
        {
            return ThreadStep::Wait(wait);
        }
        ThreadStep::Again
    }
}

impl State {
    /// The lists of all groups on nodes of lower tiers: node by node, the last one first.
    fn lruvecs_of_lower_tiers(&self) -> Vec<LruvecId> {
        let lower = self.memory.nodes().filter(|&node| !self.tiers.node_is_top_tier(node));
        let of_node = |node| {
            let groups = self.memcgs.ids();
            groups.map(move |memcg| self.lruvecs.id(memcg, node))
        };
        let mut lruvecs: Vec<_> = lower.flat_map(of_node).collect();
        lruvecs.reverse();
        lruvecs
    }
}
