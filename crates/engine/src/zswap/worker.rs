//! zswap's limit worker: a kernel thread that writes entries back until a full pool takes pages again.
//!
//! Up to 6.4 it took a page of the pool for each page that found the pool at its limit, and no more. Since then a full pool is emptied down to the
//! threshold. It visits all groups in turn, and takes little of each at a time. A group without entries costs nothing. If no entry of a group could
//! be written, or a complete round found none, the worker counts a failure, and gives up at 16. [reclaim 6.5]

use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::Wait;
use crate::state::State;
use crate::units::{MemcgId, TaskId};
use pageout_rules::zswap::WorkerWalk;

const NAME: &str = "zswap-shrink";
/// Failures at which it gives up (MAX_RECLAIM_RETRIES).
const FAILURES_MAX: u32 = 16;
/// Entries of a node that newer kernels take at a time.
const BATCH: u64 = 32;
/// Entries that a page of the pool held at most, which kernels up to 6.4 take of a node. [kernels 2.6]
const OF_A_PAGE: u64 = 2;

/// The thread.
#[derive(Default)]
pub(crate) struct ZswapThread {
    failures: u32,
    /// Groups with entries that it has met in this round.
    met: u32,
    is_busy: bool,
}

impl KernelThread for ZswapThread {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        core.mm.zswap.worker.task = Some(task);
    }

    fn step(&mut self, core: &mut Core, _woken: bool) -> ThreadStep {
        if !self.is_busy {
            if !std::mem::take(&mut core.mm.zswap.worker.is_asked) {
                return ThreadStep::Wait(Wait::Woken);
            }
            *self = ZswapThread { is_busy: true, ..ZswapThread::default() };
            if core.mm.config.policy.machine.zswap.worker == WorkerWalk::Restart {
                core.mm.zswap.worker.last = None;
            }
        }
        // Groups that give nothing take no time.
        let written = core.mm.zswap.stat.written_back_pages;
        while self.is_busy && core.mm.zswap.stat.written_back_pages == written {
            self.is_busy = self.shrink_next(core);
        }
        ThreadStep::Again
    }
}

impl ZswapThread {
    /// Comes by one group; false when it is done, or gives up.
    #[doc(alias = "shrink_worker")]
    fn shrink_next(&mut self, core: &mut Core) -> bool {
        let walk = core.mm.config.policy.machine.zswap.worker;
        let batch = match walk {
            WorkerWalk::OnePage => OF_A_PAGE,
            WorkerWalk::Restart | WorkerWalk::Cursor => 1,
            WorkerWalk::Batch => BATCH,
        };
        let Some(memcg) = core.mm.zswap_next_group() else {
            self.failures += u32::from(self.met == 0);
            self.met = 0;
            return self.failures < FAILURES_MAX;
        };
        if !core.mm.memcgs[memcg].is_online {
            // Older kernels end here; others go past it.
            return walk != WorkerWalk::Restart;
        }
        let written = core.zswap_shrink_by(memcg, batch);
        if walk == WorkerWalk::OnePage && written.is_some_and(|written| written > 0) {
            return false;
        }
        match written {
            None => self.failures += u32::from(walk == WorkerWalk::Restart),
            Some(written) => {
                self.met += 1;
                self.failures += u32::from(written == 0);
            }
        }
        self.failures < FAILURES_MAX && core.mm.zswap.pool.pages() > core.mm.zswap_pages(0)
    }
}

impl Core {
    /// Has the worker started where zswap is turned on while the machine runs.
    pub(crate) fn zswap_start_worker(&mut self) {
        let is_there = self.mm.zswap.worker.task.is_some();
        let will_be = self.threads_to_start.iter().any(|thread| thread.name() == NAME);
        self.mm.zswap.was_enabled |= self.mm.config.zswap_enabled;
        if self.mm.config.zswap_enabled && !is_there && !will_be {
            self.threads_to_start.push(Box::new(ZswapThread::default()));
        }
    }

    /// Asks the worker to make room in the pool.
    pub(super) fn zswap_wake_worker(&mut self) {
        if let Some(task) = self.mm.zswap.worker.task {
            self.mm.zswap.worker.is_asked = true;
            self.wake(task);
        }
    }
}

impl State {
    /// The group after the one that the worker was at last; `None` at the end of a round.
    fn zswap_next_group(&mut self) -> Option<MemcgId> {
        let order = self.memcgs.subtree(MemcgId::ROOT);
        let last = self.zswap.worker.last;
        // A group that is gone was behind those that are numbered below it.
        let at = last.map_or(Some(0), |last| order.iter().position(|&id| id == last).map(|at| at + 1));
        let next = order.get(at.unwrap_or(order.len())).copied();
        self.zswap.worker.last = next;
        next
    }
}
