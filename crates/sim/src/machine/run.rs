//! A runner's turn: what happens from getting a CPU to giving it up.

use std::ops::ControlFlow;

use pageout_engine::{CpuId, Engine, Nanos, ObjectId, Served, Step, TaskId};
use pageout_workload::trace::FileCall;

use super::agenda::Event;
use super::carry::Settled;
use super::threads::{THREAD, Thread};
use super::{Machine, RunError};
use crate::access_time::Cause;
use crate::calls::decode_call;
use crate::event::NEVER;
use crate::observe::{Observer, PROGRESS_EVERY, Progress};
use crate::runner::{Next, Runner, State};
use crate::scenario::Lifetime;
use crate::sched::{Rotated, TaskIndex, Turn};
use crate::task::{BlockCall, Price, Refill, Task, decode};
use crate::turns::Comes;

/// The state of a task's action: a step of the engine, which must be settled; or the next action is already known.
pub(super) enum Begun {
    Step(Step),
    Next(Next),
}

impl Machine {
    /// The runner is ready now. If its CPU is free it goes on until it sleeps, ends, or something else is due first.
    pub(super) fn turn(
        &mut self,
        index: TaskIndex,
        stop: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<(), Box<RunError>> {
        let Machine { agenda, engine, sched, psi, tasks, threads, .. } = self;
        let now = agenda.now();
        let runner = runner_of(tasks, threads, index);
        if runner.was_cut_off(now) {
            return Ok(());
        }
        let id = runner.id;
        let cpu = match sched.ready(id, now) {
            Turn::Now(cpu) => cpu,
            Turn::At(cpu, at) => {
                self.waits_for_cpu(index, cpu, Some(at));
                return Ok(());
            }
            Turn::Waits(cpu) => {
                self.waits_for_cpu(index, cpu, None);
                return Ok(());
            }
        };
        psi.tell(now, now, id, cpu, runner.runs(true));
        runner.begin_turn(now);
        if runner.cpu != cpu {
            runner.cpu = cpu;
            engine.set_cpu(id, cpu);
        }
        loop {
            if self.sched.is_yielding(cpu, self.agenda.now()) && self.makes_room(index, cpu) {
                return Ok(());
            }
            let next = if index >= THREAD {
                self.thread_step(index, observer)?
            } else {
                self.task_step(index as usize, stop, observer)?
            };
            let runner = runner_of(&mut self.tasks, &mut self.threads, index);
            let clock = runner.clock;
            let free_at = match next {
                Next::GoOn => {
                    let is_stopped = clock > stop
                        || self.is_interrupted
                        || clock >= self.sample_at.min(self.pause_at)
                        || self.engine.guest_fault().is_some();
                    if !is_stopped && self.agenda.advance(clock) {
                        self.engine.set_now(clock);
                        continue;
                    }
                    self.push_run(clock, index);
                    return Ok(());
                }
                Next::ComeBack(from) => from,
                Next::Nap(_) | Next::Stop => clock,
            };
            self.psi.tell(self.agenda.now(), free_at, id, cpu, runner.sleeps(&next));
            if let Some(first) = self.sched.pass_on(cpu, free_at) {
                self.goes_to(first, cpu, free_at);
            }
            if next != Next::Stop {
                self.come_back(index, &next);
            }
            return Ok(());
        }
    }

    /// A runner that is ready waits for its CPU, which is its own at `from` if that is known.
    #[inline(never)]
    fn waits_for_cpu(&mut self, index: TaskIndex, cpu: CpuId, from: Option<Nanos>) {
        self.runs(index, cpu, false, self.agenda.now());
        if let Some(at) = from {
            self.runs(index, cpu, true, at);
            let id = self.runner_mut(index).id;
            self.hand_over(id, at);
        }
    }

    /// A runner that is on no CPU comes back when the time that it has named has come, if it has named one.
    #[inline(never)]
    pub(super) fn come_back(&mut self, index: TaskIndex, next: &Next) {
        let runner = self.runner_mut(index);
        match *next {
            Next::GoOn | Next::ComeBack(_) => {
                let clock = runner.clock;
                self.push_run(clock, index);
            }
            Next::Nap(until) => {
                let wait = runner.waits();
                self.agenda.push(until, Event::Alarm { task: index, wait });
            }
            Next::Stop => {}
        }
    }

    /// Lets those run that wait for the runner's CPU; false if it is still its turn.
    #[inline(never)]
    fn makes_room(&mut self, index: TaskIndex, cpu: CpuId) -> bool {
        let now = self.agenda.now();
        let Rotated { next, leaves } = self.sched.rotate(cpu, now);
        if next == self.runner_mut(index).id {
            return false;
        }
        self.runs(index, cpu, false, now);
        self.goes_to(next, cpu, now);
        if leaves {
            self.push_run(now, index);
        }
        true
    }

    /// A CPU goes to a task that has waited for it.
    #[inline(never)]
    fn goes_to(&mut self, task: TaskId, cpu: CpuId, at: Nanos) {
        self.runs(self.index_of(task), cpu, true, at);
        self.hand_over(task, at);
    }

    /// The CPU that a task waits for is its own at `at`.
    fn hand_over(&mut self, task: TaskId, at: Nanos) {
        let index = self.index_of(task);
        self.push_run(at + Nanos(self.costs.context_switch), index);
    }

    pub(super) fn runner_mut(&mut self, index: TaskIndex) -> &mut Runner {
        runner_of(&mut self.tasks, &mut self.threads, index)
    }

    /// One step of a task, at its clock, which is the present: a run of hits, or one engine call.
    fn task_step(
        &mut self,
        index: usize,
        stop: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<Next, Box<RunError>> {
        let runner = &self.tasks[index].runner;
        let step = if runner.state == State::Resuming {
            self.engine.resume(runner.id)
        } else {
            match self.begin_step(index, stop, observer)? {
                Begun::Step(step) => step,
                Begun::Next(next) => return Ok(next),
            }
        };
        self.finish_step(index, step, observer)
    }

    /// Begins what comes next for a task that is in the middle of nothing.
    #[inline]
    fn begin_step(
        &mut self,
        index: usize,
        stop: Nanos,
        observer: &mut dyn Observer,
    ) -> Result<Begun, Box<RunError>> {
        if self.tasks[index].has_more_to_do()
            && let Some(begun) = self.before_access(index, observer)?
        {
            return Ok(begun);
        }
        if let Some(next) = self.run_hits(index, stop, observer) {
            return Ok(Begun::Next(next));
        }
        let task = &mut self.tasks[index];
        task.is_miss_next = false;
        task.access_began = task.runner.clock;
        let access = task.accesses.pending()[0];
        let access = match task.calls {
            None => decode(access),
            Some(_) => task.decode_call(access),
        };
        Ok(Begun::Step(self.engine.start(task.runner.id, access)))
    }

    /// Gets the next accesses of a task that has made the buffered ones; or returns its next action, if a loop or all of them are over.
    fn refill(&mut self, index: usize) -> Result<Option<Begun>, Box<RunError>> {
        let task = &mut self.tasks[index];
        Ok(match task.accesses.refill() {
            Ok(Refill::Pending) => None,
            Ok(Refill::LoopOver) => Some(Begun::Step(self.engine.task_exec(task.runner.id))),
            Ok(Refill::End) if let Some(object) = task.syncs_left.pop() => Some(self.fsync(index, object)),
            Ok(Refill::End) if task.lifetime == Lifetime::Run => Some(Begun::Next(self.end_task(index))),
            Ok(Refill::End) => Some(Begun::Step(self.engine.task_exit(task.runner.id))),
            Err(source) => {
                let (task, index) = (task.name.clone(), task.accesses.index);
                return Err(RunError::Stream { task, index, source }.into());
            }
        })
    }

    fn fsync(&mut self, index: usize, object: ObjectId) -> Begun {
        let step = self.engine.fsync(self.tasks[index].runner.id, object);
        Begun::Step(step.expect("the object is one of the task's"))
    }

    /// A task calls for a whole file, or for a range of its pages.
    fn file_call(&mut self, index: usize, object: ObjectId, call: FileCall) -> Begun {
        let task = self.tasks[index].runner.id;
        let step = match call {
            FileCall::Sync => return self.fsync(index, object),
            FileCall::Delete => self.engine.unlink(task, object),
            FileCall::Forget => self.engine.inode_reclaim(task, object),
            FileCall::Truncate { first, end } => {
                let pages = self.engine.figures().object_pages(task, object);
                let end = end.min(pages.expect("the object is one of the task's"));
                self.engine.truncate(task, object, first..end)
            }
            FileCall::Evict { first, end } => {
                let pages = self.engine.figures().object_pages(task, object);
                let end = end.min(pages.expect("the object is one of the task's"));
                self.engine.evict(task, object, first..end)
            }
            FileCall::Read { .. } | FileCall::Write { .. } => unreachable!("what accesses are is no call"),
        };
        Begun::Step(step.expect("the object is a file, and the pages are its own"))
    }

    /// The action or wait of a task before its next access; `None` if that can begin.
    #[cold]
    pub(super) fn before_access(
        &mut self,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<Option<Begun>, Box<RunError>> {
        if self.tasks[index].turn.is_some() && !self.has_turn(index) {
            return Ok(Some(Begun::Next(Next::Stop)));
        }
        while let Some(commits) = &mut self.tasks[index].commits
            && let Some((object, call)) = commits.take_due()
        {
            if !call.is_of_accesses() {
                return Ok(Some(self.file_call(index, object, call)));
            }
            self.tasks[index].begin_call(object, call);
        }
        if self.tasks[index].accesses.pending().is_empty()
            && let Some(begun) = self.refill(index)?
        {
            return Ok(Some(begun));
        }
        let task = &mut self.tasks[index];
        if let Some(timetable) = &mut task.timetable {
            let start = timetable.start_of(task.accesses.index);
            if start > task.runner.clock {
                // What it has lost so far, it has lost to nothing: it would have waited.
                task.runner.lost.clear();
                task.times.ready_at = start;
                return Ok(Some(Begun::Next(task.runner.idle_until(start))));
            }
            if timetable.has_arrivals() {
                task.has_arrived(start);
            }
        }
        if self.tasks[index].begin.next.is_some()
            && let Some(step) = self.begin_program(index)
        {
            return Ok(Some(Begun::Step(step)));
        }
        if let Some(step) = self.play_kernel_blocks(index, observer) {
            return Ok(Some(Begun::Step(step)));
        }
        if self.tasks[index].is_marked() {
            let task = &self.tasks[index];
            if task.opens_files && !task.has_opened {
                return Ok(Some(Begun::Step(self.engine.open_proc_file(task.runner.id))));
            }
            self.pass_marks(index, observer)?;
        }
        if self.tasks[index].runner.memstall.is_some() {
            self.end_memstall(index as TaskIndex);
        }
        let task = &self.tasks[index];
        if task.scan_due != NEVER && task.scan_clock(self.engine.figures().hz()) <= task.runner.clock {
            return Ok(Some(Begun::Next(self.scan_tick(index, observer))));
        }
        Ok(None)
    }

    /// Returns true if a task that takes turns continues: to its next access, if that is the next of all, or to its end. Otherwise it must stop until it is
    /// woken. The task with the next access is woken now.
    fn has_turn(&mut self, index: usize) -> bool {
        let Machine { tasks, turns, .. } = self;
        let task = &mut tasks[index];
        let turn = task.turn.as_mut().expect("it takes turns");
        let comes = turns.comes(index as TaskIndex, turn, task.accesses.index);
        let clock = task.runner.clock;
        let Comes::PassesOn { woken, parks } = comes else { return true };
        if let Some(woken) = woken {
            let other = &mut self.tasks[woken as usize];
            let at = clock.max(other.runner.clock);
            other.runner.waited.idle += Nanos(at.0 - other.runner.clock.0);
            other.runner.clock = at;
            other.times.ready_at = at;
            self.push_run(at, woken);
        }
        !parks
    }

    /// Serves hits as far as they go and the horizon allows; `None` if the next access is not one.
    fn run_hits(&mut self, index: usize, stop: Nanos, observer: &mut dyn Observer) -> Option<Next> {
        let Machine { engine, agenda, sched, memory, tasks, .. } = self;
        let mut task = &mut tasks[index];
        if task.is_miss_next {
            return None;
        }
        let now = task.runner.clock;
        // Until the next event the lead of the task is unknown. A task that waits for the CPU has no event.
        let undisturbed = if sched.is_contended(task.runner.cpu) { now } else { agenda.next_at().min(stop) };
        let mut horizon = undisturbed.max(now + self.quantum);
        if task.scan_due != NEVER {
            horizon = horizon.min(task.scan_clock(engine.figures().hz()));
        }
        let longest = memory.as_mut().map_or(0, |memory| memory.longest(now));
        let allowed = task.hits_allowed(now, horizon, longest);
        let hits = match task.calls {
            None => engine.run_hits(task.runner.id, &task.accesses.pending()[..allowed], decode),
            Some(_) => run_hits_of_calls(engine, task, allowed),
        };
        if hits == 0 {
            return None;
        }
        task.is_miss_next = hits < allowed;
        let is_timed = task.runner.is_timed;
        let late = if is_timed { Nanos(now.0 - task.times.ready_at.0) } else { Nanos::ZERO };
        let is_told = is_timed && (memory.is_some() || task.calls.is_some());
        let pending = &task.accesses.pending()[..hits];
        let Price { all: work, user: mut in_user_space } =
            if is_timed && !is_told { task.hit_price.of_hits(pending) } else { task.hit_price.of(pending) };
        let (begun, ended) = task.span_of_hits(now, hits, work);
        task.runner.waited.idle += Nanos(begun.0 - now.0);
        task.runner.clock = begun;
        let mut span = Nanos(ended.0 - begun.0);
        if memory.is_some() {
            let longer = self.take_longer(index, hits, begun, span, begun);
            in_user_space = longer_in(in_user_space, span, longer);
            span += longer;
            task = &mut self.tasks[index];
        }
        if is_told || late > Nanos::ZERO {
            task.hits_done(hits, late, self.memory.as_deref().map(|memory| memory.spans()));
        }
        task.runner.access(span, in_user_space);
        task.times.ready_at = task.runner.clock;
        task.last_accesses = hits as u64;
        task.hits += hits as u64;
        if self.heat.is_some() {
            self.note_heat(index, hits, begun);
            task = &mut self.tasks[index];
        }
        let first = task.accesses.index;
        task.advance(hits);
        observer.hits(index, first..first + hits as u64);
        self.count_accesses(hits as u64, observer);

        // Hits may still fill a per-CPU batch, whose draining is work.
        if self.engine.has_work() {
            self.settle_hits(index, observer);
        }
        Some(Next::GoOn)
    }

    /// Settles hits that were more than a look at words. On its own, so that settling stands only once in the way of a miss.
    #[inline(never)]
    fn settle_hits(&mut self, index: usize, observer: &mut dyn Observer) {
        let Runner { id, cpu, .. } = self.tasks[index].runner;
        let settled = self.settle(Some(id), cpu, observer);
        self.tasks[index].runner.work(settled.spent);
        self.wake();
    }

    /// Settles an engine call of a task and takes in the answer.
    fn finish_step(
        &mut self,
        index: usize,
        step: Step,
        observer: &mut dyn Observer,
    ) -> Result<Next, Box<RunError>> {
        let Runner { id, cpu, clock: began, .. } = self.tasks[index].runner;
        let settled = self.settle(Some(id), cpu, observer);
        let mut task = &mut self.tasks[index];
        task.runner.work(settled.spent);
        // What a call that goes on is in the middle of is asked of the engine; one that is done is in the middle of nothing.
        if settled.reclaim_calls > 0
            || (!task.reclaim_time.is_under_way()
                && !matches!(step, Step::Done(_))
                && self.engine.in_reclaim(id))
        {
            self.note_reclaim(index, began, settled.reclaim_calls);
            task = &mut self.tasks[index];
        }
        let mut reclaims = false;
        if task.runner.is_timed {
            let still_reclaims = task.reclaim_time.is_under_way();
            reclaims = task.runner.reclaims | still_reclaims | (settled.reclaim_calls > 0);
            task.runner.reclaims = still_reclaims;
            if reclaims | (settled.decompressed.0 | settled.compaction.0 > 0) {
                task.runner.lose_work(reclaims, &settled);
            }
        }
        if let Some(stalled) = task.runner.end_step(&step, &settled, &self.engine) {
            self.tell_memstall(index as TaskIndex, began, &stalled);
            task = &mut self.tasks[index];
        }
        let mut next = match task.runner.take_step(step) {
            Ok(served) => self.finish_access(index, served, observer)?,
            Err(next) => next,
        };
        if next == Next::GoOn {
            next = self.tasks[index].runner.queue_until(settled.admitted, reclaims);
        }
        self.wake();
        Ok(next)
    }

    fn finish_access(
        &mut self,
        index: usize,
        served: Served,
        observer: &mut dyn Observer,
    ) -> Result<Next, Box<RunError>> {
        let mut task = &mut self.tasks[index];
        if !task.count_served(&served) {
            return self.finish_other(index, served, observer);
        }
        observer.access(index, task.accesses.index, &served);
        // Whatever it took to get the page, the access itself comes on top.
        let Price { all: mut span, user: mut in_user_space } =
            task.hit_price.of(&task.accesses.pending()[..1]);
        if self.memory.is_some() {
            let (at, began) = (task.runner.clock, task.access_began);
            let longer = self.take_longer(index, 1, at, span, began);
            in_user_space = longer_in(in_user_space, span, longer);
            span += longer;
            task = &mut self.tasks[index];
        }
        if task.runner.is_timed {
            task.access_done(span);
        }
        task.runner.access(span, in_user_space);
        task.times.ready_at = task.runner.clock;
        task.last_accesses = 1;
        if self.heat.is_some() {
            let at = task.access_began;
            self.note_heat(index, 1, at);
            task = &mut self.tasks[index];
        }
        task.advance(1);
        self.count_accesses(1, observer);
        Ok(Next::GoOn)
    }

    /// The engine has served a call that was not an access, or has failed.
    #[cold]
    pub(super) fn finish_other(
        &mut self,
        index: usize,
        served: Served,
        observer: &mut dyn Observer,
    ) -> Result<Next, Box<RunError>> {
        let task = &mut self.tasks[index];
        if matches!(served, Served::Synced(_)) {
            task.times.record_sync(Nanos(task.runner.clock.0.saturating_sub(task.times.ready_at.0)));
        }
        // It was not an access, and the next one begins where it has ended.
        task.times.ready_at = task.runner.clock;
        task.runner.lost.clear();
        match served {
            Served::Exited => {
                task.begin.again();
                let has_exited = self.engine.has_exited(task.runner.id);
                Ok(if has_exited { self.end_task(index) } else { Next::GoOn })
            }
            Served::Advised | Served::Truncated | Served::Synced(Ok(())) => Ok(Next::GoOn),
            Served::Synced(Err(_)) => {
                self.failed_at = task.runner.clock;
                Err(RunError::Sync { task: task.name.clone(), at: task.runner.clock }.into())
            }
            Served::Opened => {
                task.has_opened = task.opens_files;
                Ok(Next::GoOn)
            }
            Served::Failed(_) => {
                observer.access(index, task.accesses.index, &served);
                let Served::Failed(source) = served else { unreachable!("it has failed") };
                let (name, index, at) = (task.name.clone(), task.accesses.index, task.runner.clock);
                self.failed_at = at;
                Err(RunError::Access { task: name, index, at, source }.into())
            }
            Served::Hit(_)
            | Served::Minor(_)
            | Served::Major(_)
            | Served::Written { .. }
            | Served::Interrupted { .. }
            | Served::Refused(_) => unreachable!("a task makes accesses and writes no kernel file"),
        }
    }

    /// What a program does before its first access: says how it will read its files, and has read what it will need. `None` when
    /// it is done.
    #[cold]
    fn begin_program(&mut self, index: usize) -> Option<Step> {
        let task = &mut self.tasks[index];
        let (id, done) = (task.runner.id, task.begin.next?);
        if done == 0 {
            for &(object, advice) in &task.begin.advice {
                self.engine.fadvise(id, object, advice).expect("the object is an open file of the task");
            }
        }
        let object = task.begin.will_need.get(done).copied();
        task.begin.next = object.map(|_| done + 1);
        let object = object?;
        let pages = self.engine.figures().object_pages(id, object).unwrap_or(0);
        let step = self.engine.readahead(id, object, 0, pages);
        Some(step.expect("the object is an open file of the task"))
    }

    /// Measures the reclaim calls that have ended in a task's step.
    #[cold]
    fn note_reclaim(&mut self, index: usize, began: Nanos, calls: u64) {
        let task = &mut self.tasks[index];
        let is_in_one = self.engine.in_reclaim(task.runner.id);
        let span = task.reclaim_time.step(began, task.runner.clock, calls, is_in_one);
        let (.., histogram) = &mut self.reclaim_by_memcg[task.group];
        for _ in 0..calls {
            self.reclaim.record(span);
            histogram.record(span);
        }
    }

    /// Does what is to be done before the next access.
    fn pass_marks(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), Box<RunError>> {
        let number = self.tasks[index].accesses.index;
        while let Some(mark) = self.tasks[index].take_mark() {
            match mark.read {
                None => self.engine.flush_stats(),
                Some(path) => {
                    let at = self.agenda.now();
                    self.read_file(&path).map_err(|source| RunError::File { at, source })?;
                }
            }
        }
        observer.marked(index, number, self);
        if std::mem::take(&mut self.tasks[index].has_opened) {
            self.engine.close_proc_file(self.tasks[index].runner.id);
        }
        let cpu = self.tasks[index].runner.cpu;
        self.after_kernel_work(cpu, observer);
        Ok(())
    }

    /// The kernel gives blocks back, up to the next one that it takes.
    fn play_kernel_blocks(&mut self, index: usize, observer: &mut dyn Observer) -> Option<Step> {
        while let Some(call) = self.tasks[index].take_block_call() {
            let Runner { id, cpu, .. } = self.tasks[index].runner;
            match call {
                BlockCall::Take(number, block) => {
                    return Some(self.engine.take_kernel_block(id, number, block));
                }
                BlockCall::Give(number) => self.engine.give_kernel_block(id, number),
            }
            self.after_kernel_work(cpu, observer);
        }
        None
    }

    #[cold]
    fn end_task(&mut self, index: usize) -> Next {
        let task = &mut self.tasks[index];
        task.runner.state = State::Ended;
        if task.at_rest.is_some() {
            // It was killed in its sleep.
            return Next::Stop;
        }
        self.foreground_left -= usize::from(!task.background);
        let ended = task.runner.clock;
        for follower in std::mem::take(&mut task.followers) {
            let task = &mut self.tasks[follower];
            task.waits_for -= 1;
            if task.waits_for == 0 {
                let start = ended + task.start;
                task.started = start;
                task.runner.clock = start;
                task.times.ready_at = start;
                self.push_run(start, follower as TaskIndex);
            }
        }
        Next::Stop
    }

    pub(super) fn count_accesses(&mut self, count: u64, observer: &mut dyn Observer) {
        self.accesses += count;
        if self.accesses >= self.progress_at {
            self.tell_progress(observer);
        }
    }

    /// Not inlined, as it comes once in very many hits.
    #[inline(never)]
    pub(super) fn tell_progress(&mut self, observer: &mut dyn Observer) {
        self.progress_at = self.accesses + PROGRESS_EVERY;
        let progress = Progress { accesses: self.accesses, now: self.agenda.now() };
        self.is_interrupted |= observer.progress(progress) == ControlFlow::Break(());
    }
}

impl Task {
    /// Counts the next access by how it was served. Returns false if it failed, or another call was served.
    #[inline(always)]
    pub(super) fn count_served(&mut self, served: &Served) -> bool {
        match served {
            Served::Hit(_) => self.hits += 1,
            Served::Minor(_) if self.is_next_mapped() => self.minor += 1,
            Served::Major(_) if self.is_next_mapped() => self.major += 1,
            Served::Minor(_) => self.read_misses += 1,
            Served::Major(_) => {
                self.read_misses += 1;
                self.read_misses_io += 1;
            }
            _ => return false,
        }
        true
    }

    /// An access in the engine's terms, of a task that makes larger calls.
    #[inline(never)]
    pub(super) fn decode_call(&self, access: pageout_workload::Access) -> pageout_engine::Access {
        decode_call(access, self.calls.as_deref().unwrap_or_default())
    }
}

impl Runner {
    /// A step has worked on what its access would not have to do with more memory, or in larger blocks.
    #[inline(never)]
    fn lose_work(&mut self, reclaims: bool, settled: &Settled) {
        let Settled { spent, decompressed, compaction, .. } = *settled;
        let compaction = match (reclaims, compaction) {
            (_, Nanos::ZERO) => Nanos::ZERO,
            (true, counted) => counted.min(spent),
            (false, _) => spent,
        };
        self.lost.add(Cause::Compaction, compaction);
        if reclaims {
            self.lost.add(Cause::DirectReclaim, Nanos(spent.0 - compaction.0));
        } else if compaction == Nanos::ZERO {
            self.lost.add(Cause::SwapIn, decompressed);
        }
    }
}

fn runner_of<'a>(tasks: &'a mut [Task], threads: &'a mut [Thread], index: TaskIndex) -> &'a mut Runner {
    match index.checked_sub(THREAD) {
        Some(thread) => &mut threads[thread as usize].runner,
        None => &mut tasks[index as usize].runner,
    }
}

/// A run of hits of a task that makes larger calls.
#[inline(never)]
pub(super) fn run_hits_of_calls(engine: &mut Engine, task: &Task, allowed: usize) -> usize {
    let calls = task.calls.as_deref().unwrap_or_default();
    engine.run_hits(task.runner.id, &task.accesses.pending()[..allowed], |access| decode_call(access, calls))
}

/// The part of a span in user space when all of it takes this much longer.
fn longer_in(in_user_space: Nanos, span: Nanos, longer: Nanos) -> Nanos {
    let share = u128::from(longer.0) * u128::from(in_user_space.0) / u128::from(span.0.max(1));
    in_user_space + Nanos(share as u64)
}
