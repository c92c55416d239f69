//! kcompactd: one thread a node, which makes large blocks for requests to come.
//!
//! ```text
//!   kswapd naps: it has freed pages for a block, or worked off a boost ──▶ blocks of that order, a pageblock for a boost
//!   twice a second, if free pages lie too far apart                    ──▶ until they lie a little closer
//! ```
//! The second is proactive compaction. A node has a fragmentation score: the share of its free pages, in percent, that are in no free
//! pageblock. `vm.compaction_proactiveness` sets which score is too high: at its default of 20 a run begins above 90 and ends at 80. If a
//! run does not lower the score, the next 63 are skipped.
//!
//! It first checks the score when kswapd has been woken once. As long as memory is not short, most free memory was never used, and
//! lies in the largest blocks. So a machine that is never short of memory runs as without proactive compaction. [machine 2.11]

use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::migrate::{CompactMode, CompactStep, Compacted, Compaction, Goal};
use crate::page_alloc::compact::{Deferral, Wanted};
use crate::page_alloc::request::MigrateType;
use crate::stat::Stat;
use crate::units::ZoneType;
use crate::units::{Nanos, NodeId, TaskId};

/// How often it looks how far free pages lie apart.
const PROACTIVE_PERIOD: Nanos = Nanos(500_000_000);
/// How far above its aim the score has to be for a run, in percent.
const PROACTIVE_MARGIN: u64 = 10;

/// The requests to a node's kcompactd. Without a task the machine has not started it, and there are no
/// requests.
#[derive(Default)]
pub(crate) struct Kcompactd {
    task: Option<TaskId>,
    /// The largest block wanted since it last looked, and the highest zone that would have done.
    order: u8,
    class: Option<ZoneType>,
    /// kswapd was woken once, so that free pages may lie apart.
    looks_around: bool,
}

/// The kcompactd thread of a node.
#[doc(alias = "kcompactd")]
pub(crate) struct KcompactdThread {
    node: NodeId,
    doing: Doing,
    /// When it looks next at how far free pages lie apart.
    proactive_at: Nanos,
    /// So many looks are left out.
    proactive_skips: u32,
}

enum Doing {
    Resting,
    /// For requests to come: the zones still to compact, last first.
    Blocks(Compactions),
    /// To lower the score, which was so much when the run began.
    Score(Compactions, u64),
}

/// Runs over zones, one after the other.
struct Compactions {
    runs: Vec<Compaction>,
}

impl KcompactdThread {
    pub(crate) fn new(node: NodeId) -> KcompactdThread {
        KcompactdThread { node, doing: Doing::Resting, proactive_at: Nanos::ZERO, proactive_skips: 0 }
    }

    /// Looks at what there is to do, and does nothing but wait where that is nothing.
    fn look_around(&mut self, core: &mut Core) -> Option<Wait> {
        let asked = &mut core.kcompactds[self.node.index()];
        let (order, class) = (std::mem::take(&mut asked.order), asked.class.take());
        if let Some(class) = class {
            core.mm.count_node(self.node, Stat::CompactDaemonWake, 1);
            let wanted = Wanted { order, migrate_type: MigrateType::Movable, class };
            self.doing = Doing::Blocks(self.runs(core, class, Goal::Block(wanted)));
            return None;
        }
        let proactiveness = core.mm.config.compaction_proactiveness;
        if proactiveness == 0 || !core.kcompactds[self.node.index()].looks_around {
            return Some(Wait::Woken);
        }
        if core.by.now >= self.proactive_at {
            self.proactive_at = Nanos((core.by.now.0 / PROACTIVE_PERIOD.0 + 1) * PROACTIVE_PERIOD.0);
            let aim = 100 - u64::from(proactiveness);
            let score = core.mm.memory.zones.fragmentation_score(self.node);
            if self.proactive_skips > 0 {
                self.proactive_skips -= 1;
            } else if score > (aim + PROACTIVE_MARGIN).min(100) {
                self.doing = Doing::Score(self.runs(core, ZoneType::Movable, Goal::Score(aim)), score);
                return None;
            }
        }
        Some(Wait::WokenOr(Nanos(self.proactive_at.0 - core.by.now.0), DelayReason::Nap))
    }

    /// A run over each zone up to a class, from the lowest up.
    fn runs(&self, core: &Core, class: ZoneType, goal: Goal) -> Compactions {
        let zones = core.mm.memory.zones.of_node(self.node).iter().filter(|zone| zone.kind <= class);
        let run = |zone: ZoneType| Compaction::new(self.node, zone, CompactMode::SyncLight, goal).by_daemon();
        Compactions { runs: zones.map(|zone| run(zone.kind)).collect() }
    }

    /// The score after a run that was to lower it.
    fn end_proactive(&mut self, core: &Core, before: u64) {
        if core.mm.memory.zones.fragmentation_score(self.node) >= before {
            self.proactive_skips = Deferral::LONGEST - 1;
        }
    }
}

impl Compactions {
    /// Takes them one batch further; false when all are done.
    fn step(&mut self, core: &mut Core) -> bool {
        let Some(run) = self.runs.last_mut() else { return false };
        if let CompactStep::Done(ended) = core.compact_step(run) {
            if ended == Compacted::Complete {
                // The pages that CPUs hold may be the missing ones.
                core.mm.memory.drain_all_pages();
            }
            self.runs.pop();
        }
        true
    }
}

impl KernelThread for KcompactdThread {
    fn name(&self) -> String {
        format!("kcompactd{}", self.node.0)
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        core.kcompactds[self.node.index()].task = Some(task);
    }

    fn step(&mut self, core: &mut Core, _: bool) -> ThreadStep {
        loop {
            match &mut self.doing {
                Doing::Resting => {
                    if let Some(wait) = self.look_around(core) {
                        return ThreadStep::Wait(wait);
                    }
                }
                Doing::Blocks(runs) => {
                    if runs.step(core) {
                        return ThreadStep::Again;
                    }
                    self.doing = Doing::Resting;
                }
                Doing::Score(runs, before) => {
                    if runs.step(core) {
                        return ThreadStep::Again;
                    }
                    let before = *before;
                    self.doing = Doing::Resting;
                    self.end_proactive(core, before);
                }
            }
        }
    }

    /// Compaction for others is a shortage of memory, as reclaim is. Proactive compaction is not.
    fn in_reclaim(&self) -> bool {
        matches!(self.doing, Doing::Blocks(_))
    }
}

impl Core {
    /// Asks a node's kcompactd for blocks, and wakes it if it rests and may be able to make one.
    pub(crate) fn wake_kcompactd(&mut self, node: NodeId, order: u8, class: ZoneType) {
        let Some(task) = self.kcompactds[node.index()].task else { return };
        if order == 0 || self.mm.makes_blocks_by_reclaim() {
            return;
        }
        let wanted = Wanted { order, migrate_type: MigrateType::Movable, class };
        let mut zones = self.mm.memory.zones.of_node(node).iter().filter(|zone| zone.kind <= class);
        if !zones.any(|zone| !zone.gives(&wanted) && zone.is_suitable(&wanted)) {
            return;
        }
        let asked = &mut self.kcompactds[node.index()];
        (asked.order, asked.class) = (asked.order.max(order), asked.class.max(Some(class)));
        self.wake(task);
    }

    /// kswapd begins to work: from now on free pages may lie apart.
    pub(crate) fn kcompactd_look_around(&mut self, node: NodeId) {
        if self.mm.makes_blocks_by_reclaim() {
            return;
        }
        let kcompactd = &mut self.kcompactds[node.index()];
        if let Some(task) = kcompactd.task
            && !std::mem::replace(&mut kcompactd.looks_around, true)
            && self.mm.config.compaction_proactiveness > 0
        {
            self.wake(task);
        }
    }

    /// How far free pages may lie apart is another question from now on.
    pub(crate) fn compaction_proactiveness_changed(&mut self) {
        let tasks: Vec<TaskId> = self.kcompactds.iter().filter_map(|kcompactd| kcompactd.task).collect();
        for task in tasks {
            self.wake(task);
        }
    }
}
