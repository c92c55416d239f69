//! Machines whose memory is not all alike: what accesses and copies take there, and what came of it.
//!
//! A machine of ordinary memory has none of this, and pays nothing for it.

use pageout_engine::{Access, Nanos, NodeId, Op, Touched};

use super::Machine;
use crate::calls::decode_call;
use crate::latency::LatencyHistogram;
use crate::memory::{MemoryLoad, MemorySpec, Moves, Touches};
use crate::report::{NodeReport, TierReport};
use crate::task::decode;

/// The memory of the nodes, and who has used it.
pub(super) struct TieredMemory {
    load: MemoryLoad,
    /// By node.
    is_top_tier: Vec<bool>,
    /// By node: accesses of tasks so far.
    accessed: Vec<Touches>,
    /// What each access took, from its beginning to its end.
    latency: LatencyHistogram,
    /// Pages that went from one node to another, by both.
    moved: Vec<Vec<u64>>,
    /// Buffer, by node.
    touches: Vec<Touches>,
}

impl TieredMemory {
    /// `None` where all memory is alike.
    pub(super) fn new(nodes: &[MemorySpec], is_top_tier: Vec<bool>) -> Option<Box<TieredMemory>> {
        let load = MemoryLoad::new(nodes)?;
        let count = nodes.len();
        Some(Box::new(TieredMemory {
            load,
            is_top_tier,
            accessed: vec![Touches::default(); count],
            latency: LatencyHistogram::default(),
            moved: vec![vec![0; count]; count],
            touches: vec![Touches::default(); count],
        }))
    }

    /// What of these operations takes longer than in ordinary memory. A copy between nodes was priced by one between memories of two kinds,
    /// so only its bandwidth is to be had; zeroes are written as far away as the page is.
    pub(super) fn carry_out(
        &mut self,
        ops: &[Op],
        at: Nanos,
        span: Nanos,
        node_of: impl Fn(pageout_engine::Pfn) -> NodeId,
    ) -> Nanos {
        self.touches.fill(Touches::default());
        let (mut longer, mut is_any) = (0, false);
        for op in ops {
            match *op {
                Op::Zero { pfn, pages } => {
                    let node = node_of(pfn);
                    longer += u64::from(pages) * self.load.longer(at, node, Moves::Page, true);
                    self.touches[node.index()].pages[1] += u64::from(pages);
                }
                Op::Copy { from, to, pages } => {
                    let (from, to) = (node_of(from), node_of(to));
                    self.touches[from.index()].pages[0] += u64::from(pages);
                    self.touches[to.index()].pages[1] += u64::from(pages);
                    if from != to {
                        self.moved[from.index()][to.index()] += u64::from(pages);
                    }
                }
                _ => continue,
            }
            is_any = true;
        }
        if !is_any {
            return Nanos::ZERO;
        }
        let span = Nanos(span.0 + longer);
        Nanos(longer) + self.load.transfer(at, span, &self.touches)
    }

    pub(super) fn report(&self) -> TierReport {
        let nodes = self.accessed.iter().zip(&self.is_top_tier).map(|(accessed, &is_top_tier)| NodeReport {
            is_top_tier,
            accesses: accessed.count(),
            bytes: accessed.bytes(),
        });
        TierReport { nodes: nodes.collect(), moved: self.moved.clone(), latency: self.latency.summary() }
    }
}

impl Machine {
    /// How much longer than in ordinary memory an access may take now, at most.
    pub(super) fn longest(&mut self, at: Nanos) -> u64 {
        let Some(memory) = &mut self.memory else { return 0 };
        let nodes = (0..memory.accessed.len()).map(|node| NodeId(node as u8));
        nodes.map(|node| memory.load.longer(at, node, Moves::Line, false)).max().unwrap_or(0)
    }

    /// The next `count` accesses of a task have found their pages: how much longer they take than `span`, their price in ordinary memory,
    /// where that is. `began`: when the first of them began, if it did so before `at`.
    pub(super) fn take_longer(
        &mut self,
        task: usize,
        count: usize,
        at: Nanos,
        span: Nanos,
        began: Nanos,
    ) -> Nanos {
        let Some(memory) = &mut self.memory else { return Nanos::ZERO };
        let task = &self.tasks[task];
        memory.touches.fill(Touches::default());
        for &access in &task.accesses.pending()[..count] {
            let is_mapped = task.is_mapped(access.object());
            let access: Access =
                task.calls.as_deref().map_or_else(|| decode(access), |calls| decode_call(access, calls));
            if let Touched::Frame(pfn) = self.engine.touched(task.runner.id, access) {
                let moves = if is_mapped { Moves::Line } else { Moves::Page };
                memory.touches[self.engine.node_of(pfn).index()].add(moves, access.write);
            }
        }
        let longer = memory.load.access(at, span, &memory.touches);
        for (sum, touches) in memory.accessed.iter_mut().zip(&memory.touches) {
            *sum += *touches;
        }
        let waited = at.0 - began.0;
        memory.latency.record_many(Nanos(waited + (span.0 + longer.0) / count as u64), count as u64);
        longer
    }
}
