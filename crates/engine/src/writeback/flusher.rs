//! The flusher: one thread a device that has the device's dirty pages written; what it writes, and when. [machine 5.7]
//!
//! ```text
//!   woken ─► cycle: what others asked for ─► requests of reclaim ─► periodic, if due ─► background, if over ──────┐
//!              ▲                                                                                                  │
//!              └──────────────────────────── something was written ◄──────────────────────────────────────────────┤
//!                                                                                    nothing: sleep ◄────────────┘
//! ```
//! Background work is there to get below the threshold and stops there. Periodic work bounds what a crash costs: pages are
//! written half a minute after they were dirtied. Whatever works on behalf of someone goes first. How a piece of work goes over files
//! is in `work.rs`.
//!
//! In laptop mode a timer of the device asks for all that it has (`laptop.rs`).
//!
//! Reclaim asks for all that is dirty, so one request is enough. In 2010 it asked for a number of pages, and requests waited in a
//! queue.
//!
//! A step of the thread is one plug of writes, so that others may run, and transfers may end, in between.

use std::collections::VecDeque;

use crate::config::{ConfigError, check_range};
use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::memory::errors::WriteErrors;
use crate::state::State;
use crate::story::WritebackTracepoint;
use crate::units::{BdiId, FileId, Nanos, NodeId, TaskId, WbId};
use crate::writeback::sync::Orders;
use crate::writeback::work::{Asked, ENDLESS, Work, WorkStep};
use crate::writeback::{Wb, Writeback, WritebackReason};
use pageout_rules::writeback::FlusherRequests;

/// Devices at most.
const BDIS_MAX: u64 = 1024;

/// The thread of a device.
pub(super) struct Flusher {
    name: String,
    bdi: BdiId,
    /// The wb whose turn it is.
    turn: usize,
    first_wait: Wait,
}

/// What the thread is doing for a wb.
#[derive(Default, Debug)]
pub(super) struct Worker {
    /// The worker has been woken, and goes through the kinds of work from this one on.
    stage: Option<Stage>,
    /// Something was written since the cycle began.
    has_written: bool,
    /// Pages that it has begun to write since it was woken.
    written: u64,
    /// Pieces of work that someone has asked for, in the order in which they came.
    pub(super) asked: VecDeque<Asked>,
    /// Requests to write everything, or a number of pages, each with its reason, in the order in which they
    /// came.
    requests: VecDeque<(WritebackReason, u64)>,
    work: Option<Work>,
    /// Tasks that wait for work that was asked for, and the page whose write the worker itself waits for.
    pub(super) orders: Orders,
    pub(super) waits_for: Option<(FileId, u64)>,
    /// When periodic work ran last, or its wb came to be, and when to look for some again.
    last_periodic: Nanos,
    timer: Option<Nanos>,
}

impl Worker {
    /// The worker of a wb that comes to be.
    pub(super) fn new(now: Nanos) -> Worker {
        Worker { last_periodic: now, ..Worker::default() }
    }

    /// A file is in the middle of being written.
    pub(super) fn holds_a_file(&self) -> bool {
        self.file().is_some()
    }

    /// The file whose pages are being written now.
    pub(super) fn file(&self) -> Option<FileId> {
        self.work.as_ref()?.file()
    }

    fn is_at_work(&self) -> bool {
        self.stage.is_some()
    }

    /// Begins a cycle, unless it is in one, which comes by all kinds of work again while there is some.
    fn begin(&mut self) -> bool {
        let begins = !self.is_at_work();
        if begins {
            self.stage = Some(Stage::FIRST);
            self.has_written = false;
        }
        begins
    }

    /// Someone waits for a piece of work that it has not begun.
    fn is_asked(&self) -> bool {
        !self.asked.is_empty() || !self.requests.is_empty()
    }
}

/// The kinds of work, in the order in which a cycle comes by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Work that others have asked for.
    Asked,
    Requests,
    Periodic,
    Background,
    End,
}

impl Stage {
    const FIRST: Stage = Stage::Asked;
}

impl KernelThread for Flusher {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn first_wait(&self) -> Wait {
        self.first_wait
    }

    /// Files of a device that was registered while the machine runs may be dirty before its flusher is started.
    fn started(&mut self, core: &mut Core, task: TaskId) {
        let of = &mut core.writeback.bdis[self.bdi.index()];
        of.flusher = Some(task);
        if core.keeps_failed_writes() && core.writeback.has_work(self.bdi) {
            self.first_wait = Wait::WokenOr(Nanos::ZERO, DelayReason::Nap);
        }
    }

    fn step(&mut self, core: &mut Core, _woken: bool) -> ThreadStep {
        core.laptop_timer(self.bdi.index());
        let wbs = core.writeback.bdis[self.bdi.index()].wbs.len();
        for _ in 0..wbs {
            let wb = core.writeback.bdis[self.bdi.index()].wbs[self.turn % wbs];
            self.turn = (self.turn + 1) % wbs;
            core.begin_cycle_if_due(wb);
            if core.worker_step(wb) {
                return ThreadStep::Again;
            }
        }
        let of = &core.writeback.bdis[self.bdi.index()];
        let timers = of.wbs.iter().filter_map(|&wb| core.writeback.wb(wb).worker.timer);
        let next = timers.chain(of.laptop_timer).min();
        ThreadStep::Wait(match next {
            Some(at) => Wait::WokenOr(Nanos(at.0.saturating_sub(core.by.now.0)), DelayReason::Nap),
            None => Wait::Woken,
        })
    }
}

impl Core {
    /// Makes a device known to which files are written back, with its thread. An error where there are too many.
    pub(crate) fn bdi_register_checked(&mut self, name: &str) -> Result<BdiId, ConfigError> {
        check_range("backing devices", self.writeback.bdis() as u64 + 1, 1, BDIS_MAX)?;
        Ok(self.bdi_register(name))
    }

    /// The same of the first.
    pub(crate) fn bdi_register(&mut self, name: &str) -> BdiId {
        let bdi = self.writeback.add_bdi();
        self.mm.memory.fs_errors.push(WriteErrors::default());
        let (name, first_wait) = (format!("flush-{name}"), Wait::Woken);
        self.threads_to_start.push(Box::new(Flusher { name, bdi, turn: 0, first_wait }));
        bdi
    }

    /// A clean wb has got a dirty file: its worker has to check when periodic work may be due.
    pub(super) fn arm_periodic(&mut self, wb: WbId) {
        if let Some(interval) = self.mm.periodic_interval() {
            self.writeback.wb_mut(wb).worker.timer = Some(self.by.now + interval);
            // It counts the time from now on.
            self.wake_flusher(wb);
        }
    }

    /// A wb has got a dirty file. If that is the only one, its time counts from now on.
    pub(super) fn assert_periodic_armed(&self, wb: WbId) {
        if cfg!(debug_assertions) {
            let of = self.writeback.wb(wb);
            let files = of.b_dirty.len() + of.b_io.len() + of.b_more_io.len();
            if files == 1 && !of.worker.holds_a_file() {
                let due = self.mm.periodic_interval().map(|interval| self.by.now + interval);
                assert!(
                    due.is_none() || of.worker.timer == due,
                    "a wb has got its first dirty file, and looks for periodic work at {:?}, not at {due:?}",
                    of.worker.timer
                );
            }
        }
    }

    /// Has a wb written in the background as far as it is over the threshold.
    pub(super) fn start_background(&mut self, wb: WbId) {
        let worker = &mut self.writeback.wb_mut(wb).worker;
        if worker.begin() {
            self.trace(NodeId(0), |core| WritebackTracepoint::WakeBackground { wb: core.traced_wb(wb) });
            self.wake_flusher(wb);
        }
    }

    /// Has everything written that is dirty now, on all devices.
    pub(crate) fn wakeup_flusher_threads(&mut self, reason: WritebackReason) {
        self.wakeup_flusher_threads_for(reason, u64::MAX);
    }

    /// Has so many pages written on each device, if that many are dirty: what reclaim asked for in 2010.
    pub(crate) fn wakeup_flusher_threads_for(&mut self, reason: WritebackReason, pages: u64) {
        self.writeback.wakeups += u64::from(reason == WritebackReason::Vmscan);
        for at in 0..self.writeback.wbs.len() {
            self.request_writeback(WbId(at as u32), reason, pages);
        }
    }

    /// Has `pages` pages of a wb written, unless nothing of it is dirty.
    pub(super) fn request_writeback(&mut self, wb: WbId, reason: WritebackReason, pages: u64) {
        let rule = self.mm.config.policy.machine.writeback.flusher_requests;
        if !self.writeback.wb(wb).has_dirty_files() {
            return;
        }
        let worker = &mut self.writeback.wb_mut(wb).worker;
        if rule == FlusherRequests::One && !worker.requests.is_empty() {
            return;
        }
        worker.requests.push_back((reason, pages));
        worker.begin();
        self.wake_flusher(wb);
    }

    /// Has all of a wb's dirty pages written for someone who waits for that.
    pub(super) fn ask_for_sync(&mut self, wb: WbId) {
        let worker = &mut self.writeback.wb_mut(wb).worker;
        worker.begin();
        worker.asked.push_back(Asked::Sync);
        let work = Work::asked(Asked::Sync, ENDLESS, self.by.now);
        self.trace(NodeId(0), |core| WritebackTracepoint::WritebackQueue {
            work: core.traced_work(wb, &work),
        });
        self.wake_flusher(wb);
    }

    /// Has all of a wb's dirty pages written for another group that has dirtied some of them.
    pub(super) fn ask_for_foreign_flush(&mut self, wb: WbId) {
        let worker = &mut self.writeback.wb_mut(wb).worker;
        worker.begin();
        if !worker.asked.contains(&Asked::Foreign) {
            worker.asked.push_back(Asked::Foreign);
            let work = Work::asked(Asked::Foreign, self.writeback.wb(wb).nr_dirty, self.by.now);
            self.trace(NodeId(0), |core| WritebackTracepoint::WritebackQueue {
                work: core.traced_work(wb, &work),
            });
        }
        self.wake_flusher(wb);
    }

    /// Returns true if writes of file pages are to be expected although none is in flight.
    pub(crate) fn is_flushing(&self) -> bool {
        let is_at_work = |wb: &Wb| wb.nr_dirty > 0 && wb.worker.is_at_work();
        let has_thread = |wb: &Wb| self.writeback.bdis[wb.bdi.index()].flusher.is_some();
        self.writeback.wbs.iter().any(|wb| is_at_work(wb) && has_thread(wb))
    }

    pub(super) fn wake_flusher(&mut self, wb: WbId) {
        let bdi = self.writeback.wb(wb).bdi;
        if let Some(task) = self.writeback.bdis[bdi.index()].flusher {
            self.wake(task);
        }
    }

    fn begin_cycle_if_due(&mut self, wb: WbId) {
        let now = self.by.now;
        let worker = &mut self.writeback.wb_mut(wb).worker;
        if worker.timer.is_some_and(|timer| timer <= now) {
            worker.timer = None;
            worker.begin();
        }
    }

    /// Goes on with a wb until a plug of writes is full; false when there is nothing left to do, or to be done yet.
    pub(super) fn worker_step(&mut self, wb: WbId) -> bool {
        loop {
            let work = self.writeback.wb_mut(wb).worker.work.take();
            let Some(mut work) = work.or_else(|| self.next_work(wb)) else { return false };
            let step = self.work_step(wb, &mut work);
            self.update_bandwidth(wb, [None, None]);
            let worker = &mut self.writeback.wb_mut(wb).worker;
            match step {
                WorkStep::Begun(written) => {
                    worker.has_written |= written > 0;
                    worker.written += written;
                    worker.work = Some(work);
                    if written > 0 {
                        return true;
                    }
                }
                WorkStep::Waits => {
                    worker.work = Some(work);
                    return false;
                }
                WorkStep::Over if work.is_sync => self.sync_is_done(wb),
                WorkStep::Over => {}
            }
        }
    }

    /// The next piece of work of the cycle; at its end, whether there is another cycle.
    #[doc(alias = "wb_workfn")]
    fn next_work(&mut self, wb: WbId) -> Option<Work> {
        loop {
            let now = self.by.now;
            let worker = &mut self.writeback.wb_mut(wb).worker;
            let stage = worker.stage?;
            let mut most = u64::MAX;
            let (next, reason) = match stage {
                Stage::Asked if let Some(asked) = worker.asked.pop_front() => {
                    return Some(self.begin_asked(wb, asked));
                }
                Stage::Asked => (Some(Stage::Requests), None),
                Stage::Requests => {
                    let request = worker.requests.pop_front();
                    most = request.map_or(most, |(_, pages)| pages);
                    let next = if worker.requests.is_empty() { Stage::Periodic } else { Stage::Requests };
                    (Some(next), request.map(|(reason, _)| reason))
                }
                Stage::Periodic => {
                    let is_due = self.periodic_is_due(wb);
                    (Some(Stage::Background), is_due.then_some(WritebackReason::Periodic))
                }
                Stage::Background => {
                    let is_over = self.writeback.wb(wb).has_dirty_files() && self.is_over_background(wb);
                    (Some(Stage::End), is_over.then_some(WritebackReason::Background))
                }
                Stage::End if std::mem::take(&mut worker.has_written) || worker.is_asked() => {
                    (Some(Stage::FIRST), None)
                }
                Stage::End => (None, None),
            };
            self.writeback.wb_mut(wb).worker.stage = next;
            if let Some(reason) = reason {
                // What is dirty now; in the background, as far as it takes.
                let budget = match reason {
                    WritebackReason::Background => ENDLESS,
                    _ => self.mm.global_limits().nr_dirty.min(most),
                };
                return Some(Work::new(reason, budget, now));
            }
            if next.is_none() {
                self.go_to_sleep(wb);
                return None;
            }
        }
    }

    /// Takes up what someone has asked for.
    fn begin_asked(&mut self, wb: WbId, asked: Asked) -> Work {
        let budget = match asked {
            Asked::Foreign => self.writeback.wb(wb).nr_dirty,
            Asked::Sync => ENDLESS,
        };
        let work = Work::asked(asked, budget, self.by.now);
        self.trace(NodeId(0), |core| WritebackTracepoint::WritebackExec {
            work: core.traced_work(wb, &work),
        });
        work
    }

    fn periodic_is_due(&mut self, wb: WbId) -> bool {
        let (now, interval) = (self.by.now, self.mm.periodic_interval());
        let worker = &mut self.writeback.wb_mut(wb).worker;
        let is_due = interval.is_some_and(|interval| now >= worker.last_periodic + interval);
        if is_due {
            worker.last_periodic = now;
        }
        is_due
    }

    /// A cycle has found nothing to do.
    fn go_to_sleep(&mut self, wb: WbId) {
        let timer = self.mm.periodic_interval().map(|interval| self.by.now + interval);
        let pages = std::mem::take(&mut self.writeback.wb_mut(wb).worker.written);
        self.trace(NodeId(0), |_| WritebackTracepoint::PagesWritten { pages });
        let of = self.writeback.wb_mut(wb);
        assert!(of.worker.work.is_none(), "a flusher goes to sleep in the middle of its work");
        assert!(
            of.has_dirty_files() || of.nr_dirty == 0,
            "no file of a wb is dirty, and {} pages are",
            of.nr_dirty
        );
        of.worker.timer = timer.filter(|_| of.has_dirty_files());
        // Those who hoped for a write look for themselves.
        self.wake_write_waiters();
    }
}

impl Writeback {
    /// Returns true if a device's flusher has something to do, now or at a time.
    fn has_work(&self, bdi: BdiId) -> bool {
        let mut workers = self.bdis[bdi.index()].wbs.iter().map(|&wb| &self.wb(wb).worker);
        workers.any(|worker| worker.is_at_work() || worker.timer.is_some())
    }
}

impl State {
    fn periodic_interval(&self) -> Option<Nanos> {
        let centisecs = u64::from(self.config.dirty_writeback_centisecs);
        (centisecs > 0).then_some(Nanos(centisecs * (Nanos::SECOND.0 / 100)))
    }
}

#[cfg(test)]
mod tests {
    use crate::writeback::work::CHUNK_PAGES;
    use crate::*;

    /// Whose pages the flusher writes, one after the other, where some files have become dirty, each with two chunks and a page more.
    fn files_in_turn(rules: WritebackRules, files: &[&str], wake: impl FnOnce(&mut Engine)) -> Vec<u32> {
        let pages = 2 * CHUNK_PAGES + 1;
        let mut policy = Policy::of("classic@6.12");
        policy.machine.writeback = rules;
        let mut engine =
            Engine::new(Config { node_pages: vec![1 << 18], policy, ..Config::default() }).unwrap();
        // A chunk is an eighth of the limit at most, which is set by who dirties more than these files are.
        let limits = engine.core.mm.global_limits();
        engine.core.update_dirty_limit(MemcgId::ROOT, &limits);
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let mut objects = Vec::new();
        for &name in files {
            let (kind, bdi) = (FileKind::Regular, Bdi::NO_READAHEAD);
            let file = engine.file_create(FileSpec { name: name.to_owned(), pages, kind, bdi }).unwrap();
            objects.push(engine.open(task, file).unwrap());
        }
        let mut threads = engine.start_kernel_threads();
        threads.retain(|thread| thread.name.starts_with("flush-"));
        for object in objects {
            for page in 0..pages {
                assert!(matches!(engine.start(task, Access::new(object, page, true)), Step::Done(_)));
            }
        }
        wake(&mut engine);
        let (mut ops, mut written) = (Vec::new(), Vec::new());
        loop {
            let step = engine.resume(threads[0].task);
            engine.take_ops(&mut ops);
            for op in ops.drain(..) {
                if let Op::WriteFile { io, file, .. } = op {
                    written.push(file.0);
                    engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            if step != Step::Again {
                break;
            }
        }
        written
    }

    #[test]
    fn the_first_periodic_work_comes_an_interval_after_the_start_or_after_its_wb_came_to_be() {
        let mut engine = Engine::new(Config { node_pages: vec![1 << 14], ..Config::default() }).unwrap();
        let bdi = engine.core.writeback.add_bdi();
        let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let second = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        engine.set_now(second(3));
        let [machines, groups] = [MemcgId::ROOT, group].map(|memcg| engine.core.wb_for(bdi, memcg));
        let mut is_due = |wb, seconds| {
            engine.set_now(second(seconds));
            engine.core.periodic_is_due(wb)
        };
        assert_eq!([4, 5, 9, 10].map(|seconds| is_due(machines, seconds)), [false, true, false, true]);
        assert!(is_due(groups, 10));
        assert!(!is_due(groups, 14));
    }

    #[test]
    fn in_2010_the_flusher_turns_to_the_next_file_after_1024_pages_and_later_after_half_a_second() {
        let turns = |flusher_chunk| {
            let rules =
                WritebackRules { flusher_chunk, ..crate::Policy::of("classic@6.12").machine.writeback };
            let half_a_minute_and_more = |engine: &mut Engine| engine.set_now(Nanos(60_000_000_000));
            let mut files = files_in_turn(rules, &["first", "second"], half_a_minute_and_more);
            assert_eq!(files.len() as u64, 2 * (2 * CHUNK_PAGES + 1));
            files.dedup();
            files
        };
        assert_eq!(turns(FlusherChunk::Pages1024), [0, 1, 0, 1, 0, 1]);
        assert_eq!(turns(FlusherChunk::HalfASecond), [0, 1]);
    }

    #[test]
    fn in_2010_each_request_for_some_pages_has_a_chunk_written_and_later_one_waits_for_all() {
        let written = |flusher_requests| {
            let rules =
                WritebackRules { flusher_requests, ..crate::Policy::of("classic@2010").machine.writeback };
            let ask_twice = |engine: &mut Engine| {
                // Periodic work goes on with a file that had its turn and is not clean.
                engine.core.mm.config.dirty_writeback_centisecs = 0;
                for pages in [1, 32] {
                    engine.core.wakeup_flusher_threads_for(WritebackReason::Vmscan, pages);
                }
            };
            files_in_turn(rules, &["file"], ask_twice).len() as u64
        };
        assert_eq!(written(FlusherRequests::Queue), 2 * CHUNK_PAGES);
        assert_eq!(written(FlusherRequests::One), CHUNK_PAGES);
    }
}
