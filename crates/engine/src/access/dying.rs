//! The end of a killed task: immediately if it holds nothing, and otherwise when its current work is over.
//!
//! ```text
//!   idle, or a wait of its access ───────────────▶ the access is given up ─▶ exit
//!   in a reclaim call ─▶ which ends early ─▶ no page: given up, or the page that it got ─▶ exit
//!   a kernel file that it writes, fsync, sync, truncation ▶ to its end ────────────────▶ exit
//! ```
//! The signal ends all waits of an access: for a page that is being read, for kswapd, for other reclaimers, for dirty pages to be written.
//! It also ends the delay of `memory.high`. The read continues, and its pages stay in the page cache. A reclaim call has isolated folios,
//! so it runs to its end, but stops at its current result.
//!
//! The machine learns of a kill by [`Engine::take_oom_kills`] and resumes each of the tasks, idle ones too.

use crate::access::engine::Engine;
use crate::access::task::{Current, Stage};
use crate::machine::step::{OomReport, Step};
use crate::memcg::MemcgEvent;
use crate::oom::{OOM_SCORE_ADJ_MAX, OOM_SCORE_ADJ_MIN, OomKill};
use crate::stat::Stat;
use crate::units::{MmId, TaskId};

impl Engine {
    /// Returns true if processes were killed since [`Engine::take_oom_kills`] was last called.
    #[inline]
    pub fn has_oom_kills(&self) -> bool {
        !self.core.oom_kills.pending.is_empty()
    }

    /// Hands over the processes that were killed, in order. Each of their tasks that is not exiting yet is to be resumed until it
    /// has exited, whatever it does or waits for: it gets no other wake. To be called after every call that may have run out of
    /// memory.
    pub fn take_oom_kills(&mut self, into: &mut Vec<OomKill>) {
        for mut kill in std::mem::take(&mut self.core.oom_kills.pending) {
            for task in (0..self.tasks.len()).map(|task| TaskId(task as u32)) {
                if self.tasks[task.index()].mm != Some(kill.victim) {
                    continue;
                }
                // A task that has run out of memory for itself has begun to end by now.
                if !self.has_exited(task) {
                    self.kill(task);
                    kill.tasks.push(task);
                } else if task == kill.invoked_by {
                    kill.tasks.push(task);
                }
            }
            into.push(kill);
        }
    }

    /// An access that found no memory is to be made again: what was counted as this machine's form of a kill was none.
    pub fn take_back_oom_kill(&mut self, report: &OomReport) {
        debug_assert!(!self.core.mm.config.oom_kill, "a process was killed for it");
        if report.unrelieved.is_some() {
            // No process would have been killed, so that nothing was counted.
            return;
        }
        if report.max.is_some() {
            self.core.mm.memcgs.take_back_event(report.memcg, MemcgEvent::OomKill);
        }
        let node = self.core.current_node();
        self.core.mm.count_node(node, Stat::OomKill, -1);
    }

    /// The machine can't begin any of its writes: until one ends, a task that finds no memory does not wait for that.
    pub fn writes_are_held_up(&mut self) {
        self.core.hold_up_writes();
    }

    /// Sets the preference to kill a process when memory runs out, from -1000 (never) to 1000.
    pub fn set_oom_score_adj(&mut self, mm: MmId, adj: i16) {
        assert!((OOM_SCORE_ADJ_MIN..=OOM_SCORE_ADJ_MAX).contains(&adj), "oom_score_adj {adj}");
        self.core.mm.memory.mm_mut(mm).oom_score_adj = adj;
    }

    /// Marks a process as an I/O flusher, for which other tasks' I/O may wait: reclaim for its memory starts no I/O, and enters no file
    /// system. This is `prctl(PR_SET_IO_FLUSHER)`, for user-space processes that serve a block device or a file system.
    pub fn set_io_flusher(&mut self, mm: MmId, is_io_flusher: bool) {
        self.core.mm.memory.mm_mut(mm).is_io_flusher = is_io_flusher;
    }

    /// A fatal signal: ends the waits that it may.
    fn kill(&mut self, task: TaskId) {
        self.tasks[task.index()].is_killed = true;
        self.core.sleepers.remove(task);
        self.core.stop_waiting_for_io(task);
    }
}

impl Current<'_> {
    /// A killed task goes on. `None`: it can't end yet, and goes on with what it does.
    #[cold]
    pub(super) fn die_where_it_can(&mut self) -> Option<Step> {
        let of_task = &mut *self.task;
        match &mut of_task.stage {
            Stage::Idle => Some(self.die()),
            Stage::Access if of_task.attempt.is_reclaiming() => {
                of_task.attempt.cut_short();
                None
            }
            Stage::Access => Some(self.die()),
            Stage::High(debt) => {
                debt.cut_short();
                None
            }
            Stage::UserReclaim(request) => {
                request.cut_short();
                None
            }
            Stage::Compact(_)
            | Stage::DropCaches(_)
            | Stage::ResizePool(_)
            | Stage::Balloon(_)
            | Stage::OpenProc(_)
            | Stage::LruGen(_)
            | Stage::Fsync(_)
            | Stage::Truncate(_)
            | Stage::Sync(_)
            | Stage::Madvise(_)
            | Stage::Switch
            | Stage::Promote(_)
            | Stage::Exit(_)
            | Stage::Exited
            | Stage::Thread(_) => None,
        }
    }

    /// A killed task ends here.
    pub(super) fn die(&mut self) -> Step {
        self.abandon_access();
        self.task.stage = Stage::Idle;
        self.exit()
    }

    /// Drops all that an access has got so far. The access is in no reclaim call.
    pub(super) fn abandon_access(&mut self) {
        self.give_back();
        let attempt = &mut self.task.attempt;
        debug_assert!(!attempt.is_reclaiming(), "there is no way out of reclaim but its end");
        attempt.swap_readahead = None;
        if let Some(mut batch) = attempt.readahead.take() {
            // Pages that others may wait for by now.
            self.core.submit_readahead(&mut batch);
        }
        self.task.read_failed = false;
        // It may have been read ahead, and lost to a failed read meanwhile.
        self.let_go();
    }
}
