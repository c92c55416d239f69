//! Tracepoints of writeback: each event's wb and page, and the limits and pauses of `balance_dirty_pages`. [machine 9.5]

use super::limits::Limits;
use super::rates::{Position, Rates};
use super::throttle::DirtyThrottle;
use crate::core::Core;
use crate::stat::Stat;
use crate::state::State;
use crate::story::{FilePage, TracedPause, TracedWb, WritebackTracepoint};
use crate::units::{FileId, MemcgId, Nanos, NodeId, WbId};

impl Core {
    pub(super) fn traced_wb(&self, wb: WbId) -> TracedWb {
        let of = self.writeback.wb(wb);
        TracedWb { bdi: of.bdi, memcg: of.memcg }
    }

    /// What is dirty in the whole machine, and how much may be.
    pub(super) fn trace_global_dirty_state(&mut self, limits: &Limits) {
        let Limits { background, thresh, nr_dirty, dirty, .. } = *limits;
        self.trace(NodeId(0), |core| {
            let stat = |stat| core.mm.vmstat(stat).max(0) as u64;
            WritebackTracepoint::GlobalDirtyState {
                dirty: nr_dirty,
                writeback: dirty - nr_dirty,
                bg_thresh: background,
                thresh,
                limit: core
                    .writeback
                    .domain(MemcgId::ROOT)
                    .map_or(thresh, |domain| domain.dirty_limit.max(thresh)),
                dirtied: stat(Stat::NrDirtied),
                written: stat(Stat::NrWritten),
            }
        });
    }

    /// A look has ended in a sleep, or in none: `pause` and `period` are ticks.
    pub(super) fn trace_pause(
        &mut self,
        throttle: &DirtyThrottle,
        wb: WbId,
        position: &Position,
        rate: i64,
        (pause, period): (i64, i64),
    ) {
        let (tick_ms, now) = (1000 / i64::from(self.mm.config.hz).clamp(1, 1000), self.ticks() as i64);
        let Position { freerun, dirty, wb_thresh, wb_dirty, thresh, .. } = *position;
        // The tracepoint shows a group's own figures with the limit of the machine.
        let limit = self
            .writeback
            .domain(MemcgId::ROOT)
            .map_or(position.limit, |machine| machine.dirty_limit.max(position.limit));
        let setpoint = (limit + freerun) / 2;
        let (dirtied, dirtied_pause, think) = throttle.traced(now);
        self.trace(NodeId(0), |core| WritebackTracepoint::BalanceDirtyPages {
            wb: core.traced_wb(wb),
            pause: TracedPause {
                limit,
                setpoint,
                dirty,
                wb_setpoint: setpoint * wb_thresh / (thresh + 1),
                wb_dirty,
                dirty_ratelimit: core.writeback.wb(wb).rates.ratelimit,
                task_ratelimit: rate.max(0) as u64,
                dirtied,
                dirtied_pause,
                pause_ms: pause * tick_ms,
                period_ms: period * tick_ms,
                think_ms: think * tick_ms,
            },
        });
    }

    /// A wb's rates were recalculated, from what they were `before`.
    pub(super) fn trace_ratelimit(&mut self, wb: WbId, before: &Rates, ratio: i64, elapsed: u64) {
        let hz = u64::from(self.mm.config.hz);
        let (dirty_rate, task_ratelimit) = before.traced(ratio, hz, elapsed);
        self.trace(NodeId(0), |core| {
            let rates = &core.writeback.wb(wb).rates;
            let [write_bw, balanced_dirty_ratelimit] = rates.traced_now();
            WritebackTracepoint::BdiDirtyRatelimit {
                wb: core.traced_wb(wb),
                write_bw,
                awrite_bw: rates.average,
                dirty_rate,
                dirty_ratelimit: rates.ratelimit,
                task_ratelimit,
                balanced_dirty_ratelimit,
            }
        });
    }
}

impl State {
    pub(super) fn traced_page(&self, file: FileId, index: u64) -> FilePage {
        FilePage { bdi: self.memory.file(file).inode.bdi, file, index }
    }

    pub(super) fn ticks_of(&self, time: Nanos) -> u64 {
        time.0 / Nanos::from_ticks(1, self.config.hz).0
    }
}
