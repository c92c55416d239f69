//! Tasks of the byte machine: what each is doing, how it goes on, and what its accesses find.

use super::{ByteMachine, Checks};
use crate::testing::actions::{Kind, PAGES, TASKS};
use crate::testing::model::Page;
use crate::*;
use pageout_rules::lru::Switching;
use std::collections::BTreeMap;

/// The current action of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Access(Kind, Access),
    Reclaim,
    Exec,
    Fsync,
    /// Truncation of an open file, from this page to before that one.
    Truncate(Kind, u64, u64),
    /// Swapped pages are being read in advance.
    Advice,
    Sync,
    Syncfs,
    /// The task was killed while it did nothing.
    Exit,
    /// The task is a kernel thread.
    Thread,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Idle,
    Runnable(Doing),
    Sleeping(Doing),
    /// The task's access is done, and it holds the frame until what the queue has for that is carried out.
    Copying(Kind, Access, Pfn),
    /// Waits for another task's wake, or until a time if there is one.
    Waiting(Doing, Option<Nanos>),
    /// The page was gone again when the access had been made: the access restarts, as a faulting instruction
    /// does.
    Repeat(Doing),
    /// The task was killed, and has ended.
    Gone,
}

pub(super) struct Task {
    pub(super) state: State,
    pub(super) objects: BTreeMap<usize, ObjectId>,
    /// A read that it waited for has failed.
    pub(super) must_fail: bool,
    /// The task was killed, and is resumed until it is gone.
    pub(super) is_killed: bool,
}

impl Task {
    pub(super) fn new(state: State) -> Task {
        Task { state, objects: BTreeMap::new(), must_fail: false, is_killed: false }
    }

    /// Returns true if nothing is left to do for a user.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Idle | State::Gone | State::Waiting(Doing::Thread, _))
    }
}

impl ByteMachine {
    pub(super) fn is_runnable(&self, task: usize) -> bool {
        matches!(self.tasks[task].state, State::Runnable(_) | State::Repeat(_))
    }

    /// Returns true if a task is runnable, or its wait may come to its own end.
    pub(super) fn can_go_on(&self, task: usize) -> bool {
        self.is_runnable(task) || matches!(self.tasks[task].state, State::Waiting(_, Some(_)))
    }

    /// The sleeper whose wait ends first by itself.
    pub(super) fn next_to_end_its_wait(&self) -> Option<usize> {
        let end = |&task: &usize| match self.tasks[task].state {
            State::Waiting(_, until) => until,
            _ => None,
        };
        (0..self.tasks.len()).filter(|task| end(task).is_some()).min_by_key(end)
    }

    /// Goes on with a task, and with transfers in order while it sleeps, for so many steps or until it is idle.
    pub(super) fn help(&mut self, task: TaskId, steps: usize) {
        for _ in 0..steps {
            self.keep_up();
            match self.tasks[task.index()].state {
                State::Idle | State::Gone => return,
                State::Runnable(_) | State::Repeat(_) => self.resume(task),
                _ if !self.queue.is_empty() => self.carry_out_youngest(),
                State::Copying(..) => unreachable!("it waits for an operation"),
                // The page that it waits for may still be isolated by a reclaimer that submits it at the end of a
                // pass.
                State::Sleeping(_) | State::Waiting(..) if self.transfers.is_empty() => {
                    let runnable = (0..self.tasks.len()).find(|&task| self.is_runnable(task));
                    let reclaimer = runnable.or(self.next_to_end_its_wait());
                    self.resume(TaskId(reclaimer.expect("somebody goes on") as u32));
                }
                State::Sleeping(_) | State::Waiting(..) => self.complete(0, false, false),
            }
        }
    }

    pub(super) fn idle(&self, task: usize) -> Option<TaskId> {
        (self.tasks[task].state == State::Idle).then_some(TaskId(task as u32))
    }

    pub(super) fn start(&mut self, task: TaskId, doing: Doing) {
        let Doing::Access(_, access) = doing else { unreachable!("only accesses are started anew") };
        let step = self.engine.start(task, access);
        self.advanced(task, doing, step, false);
    }

    pub(super) fn run(&mut self, task: TaskId, kinds: [Kind; 2], pages: std::ops::Range<u64>, write: bool) {
        let access = |(kind, page)| (kind, Access::new(self.object(task, kind), page, write));
        let both = |page| kinds.map(|kind| (kind, page));
        let accesses: Vec<(Kind, Access)> = pages.flat_map(both).map(access).collect();
        let hits = self.engine.run_hits(task, &accesses, |(_, access)| access);
        self.take_ops();
        for &(kind, access) in &accesses[..hits] {
            self.touch(task, kind, access, self.engine.touched(task, access));
        }
    }

    pub(super) fn resume(&mut self, task: TaskId) {
        match self.tasks[task.index()].state {
            State::Repeat(doing) => self.start(task, doing),
            State::Runnable(doing) => {
                let step = self.engine.resume(task);
                self.advanced(task, doing, step, true);
            }
            State::Waiting(doing, Some(until)) => {
                self.now = self.now.max(until);
                self.engine.set_now(self.now);
                let step = self.engine.resume(task);
                self.advanced(task, doing, step, true);
            }
            state => unreachable!("{task:?} can't go on: {state:?}"),
        }
    }

    /// Takes note of how far a call has got.
    pub(super) fn advanced(&mut self, task: TaskId, doing: Doing, step: Step, resumed: bool) {
        self.take_ops();
        let must_fail = std::mem::take(&mut self.tasks[task.index()].must_fail);
        let is_killed = self.tasks[task.index()].is_killed;
        if step == Step::Done(Served::Exited) && self.engine.has_exited(task) {
            assert!(is_killed, "{task:?} has ended, and nobody has asked for that");
            self.tasks[task.index()].state = State::Gone;
            self.model.forgotten(task);
            return self.release_killed();
        }
        if !is_killed && (must_fail || step == Step::Done(Served::Failed(AccessError::Io))) {
            assert!(must_fail, "{task:?} failed though no read of it did");
            assert_eq!(
                step,
                Step::Done(Served::Failed(AccessError::Io)),
                "{task:?} used what could not be read"
            );
        }
        self.tasks[task.index()].state = match step {
            Step::Again => State::Runnable(doing),
            Step::Wait(Wait::Io(_)) => State::Sleeping(doing),
            Step::Wait(Wait::Woken) => State::Waiting(doing, None),
            Step::Wait(Wait::WokenOr(span, _)) => State::Waiting(doing, Some(self.now + span)),
            Step::Wait(Wait::Delay(span, _)) => State::Waiting(doing, Some(self.now + span)),
            Step::Done(served) => match doing {
                Doing::Thread => panic!("a kernel thread has ended: {served:?}"),
                Doing::Exit => panic!("a killed task goes on: {served:?}"),
                Doing::Advice => {
                    assert_eq!(served, Served::Advised);
                    State::Idle
                }
                Doing::Reclaim => {
                    assert!(
                        matches!(
                            served,
                            Served::Written { .. } | Served::Interrupted { .. } | Served::Refused(_)
                        ),
                        "{served:?}"
                    );
                    State::Idle
                }
                Doing::Fsync | Doing::Sync | Doing::Syncfs => {
                    let Served::Synced(result) = served else { panic!("{served:?}") };
                    self.check_synced(task, doing, result);
                    State::Idle
                }
                Doing::Truncate(kind, first, end) => {
                    assert_eq!(served, Served::Truncated);
                    self.truncated(task, kind, first..end);
                    State::Idle
                }
                Doing::Exec => {
                    assert_eq!(served, Served::Exited);
                    State::Idle
                }
                Doing::Access(kind, access) => match served {
                    Served::Failed(error) => {
                        self.check_failure(access, &error);
                        State::Idle
                    }
                    Served::Written { .. }
                    | Served::Interrupted { .. }
                    | Served::Synced(_)
                    | Served::Truncated
                    | Served::Refused(_)
                    | Served::Exited
                    | Served::Opened
                    | Served::Advised => {
                        panic!("an access ended as {served:?}")
                    }
                    Served::Hit(Touched::Gone)
                    | Served::Minor(Touched::Gone)
                    | Served::Major(Touched::Gone) => {
                        assert!(
                            resumed && self.high_used,
                            "{access:?} of {task:?} is done, but the page isn't there"
                        );
                        State::Repeat(doing)
                    }
                    Served::Hit(Touched::Frame(pfn))
                    | Served::Minor(Touched::Frame(pfn))
                    | Served::Major(Touched::Frame(pfn))
                        if (!access.write || kind.is_written_later()) && self.queue.names(pfn) =>
                    {
                        self.engine.hold(pfn);
                        State::Copying(kind, access, pfn)
                    }
                    Served::Hit(at) | Served::Minor(at) | Served::Major(at) => {
                        self.touch(task, kind, access, at);
                        State::Idle
                    }
                },
            },
        };
        if is_killed && matches!(self.tasks[task.index()].state, State::Idle | State::Repeat(_)) {
            self.tasks[task.index()].state = State::Runnable(Doing::Exit);
        }
        self.release_killed();
    }

    /// Notes who was killed.
    pub(super) fn note_kills(&mut self) {
        let mut kills = Vec::new();
        self.engine.take_oom_kills(&mut kills);
        for task in kills.into_iter().flat_map(|kill| kill.tasks) {
            assert!(task.index() < TASKS, "{task:?} was killed, which nobody may kill");
            self.tasks[task.index()].is_killed = true;
            self.killed.push(task);
        }
    }

    /// Lets them go on to their ends, as soon as it is known what the task of the present step does.
    pub(super) fn release_killed(&mut self) {
        for task in std::mem::take(&mut self.killed) {
            let state = &mut self.tasks[task.index()].state;
            *state = match *state {
                State::Idle | State::Repeat(_) => State::Runnable(Doing::Exit),
                State::Sleeping(doing) | State::Waiting(doing, _) => State::Runnable(doing),
                State::Runnable(_) | State::Copying(..) | State::Gone => *state,
            };
        }
    }

    /// Lets those go on whose frame is as they need it.
    pub(super) fn finish_copies(&mut self) {
        for at in 0..self.tasks.len() {
            let State::Copying(kind, access, pfn) = self.tasks[at].state else { continue };
            if self.queue.names(pfn) {
                continue;
            }
            self.touch(TaskId(at as u32), kind, access, Touched::Frame(pfn));
            let task = &mut self.tasks[at];
            task.state = if task.is_killed { State::Runnable(Doing::Exit) } else { State::Idle };
            self.engine.release(pfn);
            self.take_ops();
        }
    }

    /// fsync, sync or syncfs is over. If it reports no error, the device has all pages that were written before it began. The first and
    /// the last have their own errors to report, and no unreported one is left then.
    fn check_synced(&mut self, task: TaskId, by: Doing, result: Result<(), IoError>) {
        let below = self.synced_below.remove(&task).expect("it had begun");
        if self.keeps_failed_writes && by == Doing::Fsync && result.is_err() {
            // Half of the tasks that get an error act on it.
            if self.next_value.is_multiple_of(2) {
                self.engine.acknowledge_write_errors(task, self.object(task, Kind::OpenRegular)).unwrap();
                self.has_untold_error = false;
            }
            return;
        }
        let untold = match by {
            Doing::Fsync => Some(&mut self.has_untold_error),
            Doing::Syncfs => Some(&mut self.has_untold_fs_error),
            _ => None,
        };
        if result.is_err() {
            *untold.expect("sync tells of no errors") = false;
            return;
        }
        assert!(
            !untold.is_some_and(|untold| *untold),
            "{by:?} of {task:?} is well, but a page reads as a failed write left it"
        );
        // sync(2) reports no page that it could not write.
        let is_missing = |page| by == Doing::Sync && self.not_on_device.contains(&(self.regular, page));
        for page in (0..PAGES).filter(|&page| !is_missing(page)) {
            let on_device = self.block(self.regular, page);
            self.model.check_synced(Page::Regular(self.regular, page), on_device, below);
        }
    }

    /// Pages of a file are gone. A task that holds a frame of one has made its access before that.
    fn truncated(&mut self, task: TaskId, kind: Kind, pages: std::ops::Range<u64>) {
        let gone: Vec<Page> = pages.map(|page| self.page(task, kind, page)).collect();
        for at in 0..self.tasks.len() {
            let of = TaskId(at as u32);
            if let State::Copying(kind, access, pfn) = self.tasks[at].state
                && gone.contains(&self.page(of, kind, access.page))
            {
                let task = &mut self.tasks[at];
                task.state = if task.is_killed { State::Runnable(Doing::Exit) } else { State::Idle };
                self.engine.release(pfn);
            }
        }
        gone.into_iter().for_each(|page| self.model.is_gone(page));
        self.take_ops();
    }

    /// Makes an access that the engine says is done, where it says.
    fn touch(&mut self, task: TaskId, kind: Kind, access: Access, at: Touched) {
        let page = self.page(task, kind, access.page);
        // Its CPU is busy until its frame is as it needs it.
        while matches!(at, Touched::Frame(pfn) if self.queue.names(pfn)) {
            self.carry_out_youngest();
        }
        match at {
            Touched::Frame(pfn) if access.write => {
                self.next_value += 1;
                let name = self.engine.figures().page_name(task, access.object, access.page).unwrap();
                let value = if self.engine.figures().is_of_zeroes(name) { 0 } else { self.next_value };
                self.frames.insert(pfn, value);
                self.model.written(page, value);
            }
            Touched::Frame(pfn) => {
                let seen = self.frame(pfn);
                self.model.check_read(page, seen);
            }
            Touched::Zeroes if !access.write => self.model.check_read(page, 0),
            Touched::Zeroes | Touched::Gone => panic!("{access:?} of {task:?} is done, but at {at:?}"),
        }
    }

    fn check_failure(&self, access: Access, error: &AccessError) {
        match error {
            AccessError::Held { .. } => unreachable!("nobody looks at a frame without the engine"),
            AccessError::Io => {}
            AccessError::Writeback => {
                let fails = self.keeps_failed_writes && !self.not_on_device.is_empty();
                assert!(access.write && fails, "{access:?}: {error}");
            }
            // Pages may be left that reclaim can take, and still too few to be above the reserve.
            AccessError::Oom(report) if report.max.is_none() => assert!(!self.has_room, "{error}"),
            AccessError::Oom(report) => {
                // With numbers as of the last flush, reclaim may well not know what there is. Else only what a read has brought
                // in may have become reclaimable since it last looked.
                // The old rule of a switch is the bug that ends here.
                let mut groups = self.engine.core.mm.memcgs.ids();
                let is_bug = groups.any(|memcg| self.engine.figures().is_switching(memcg))
                    && self.engine.core.mm.config.policy.group.generations.switching == Switching::NewOnly;
                // Other tasks may have isolated so much that no task may isolate more.
                let isolated = [Stat::NrIsolatedAnon, Stat::NrIsolatedFile]
                    .map(|stat| self.engine.figures().vmstat(stat));
                if self.checks == Checks::All
                    && isolated == [0; 2]
                    && self.engine.core.mm.config.stat_flush == StatFlush::Live
                    && !is_bug
                {
                    let left = self.engine.reclaimable_pages(report.memcg);
                    assert!(
                        left <= TASKS as u64 * self.pages_a_read,
                        "{error}, but {left} pages can be reclaimed"
                    );
                }
            }
            AccessError::NoObject { .. } | AccessError::BeyondObject { .. } => panic!("{access:?}: {error}"),
        }
    }

    /// Makes those go on whose wait for a transfer is over; `must_fail`: they find that it failed.
    pub(super) fn wake(&mut self, must_fail: bool) {
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        for id in woken {
            let task = &mut self.tasks[id.index()];
            let doing = match task.state {
                State::Sleeping(doing) => {
                    // A task that removes a page has no use for the data read.
                    task.must_fail = must_fail && matches!(doing, Doing::Access(..));
                    doing
                }
                State::Waiting(doing, _) => doing,
                state => panic!("{id:?} is woken but doesn't sleep: {state:?}"),
            };
            task.state = State::Runnable(doing);
        }
    }
}
