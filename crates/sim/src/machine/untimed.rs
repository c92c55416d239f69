//! A run without a clock: one task reads files, and the device answers each request before the task goes on.
//!
//! ```text
//!   hits ─▶ start ─▶ ops ─▶ transfers end ─▶ woken kernel threads run ─▶ resume ─▶ ... ─▶ the next access
//! ```
//! For misses and counters. There is no event queue, no price and no latency; the time is 0 throughout. The engine gets the same calls in the same
//! order as in a timed run of the same machine. So its decisions are the same, except those that go by time:
//!
//! - **Statistics of groups.** A timed run flushes them every two seconds (`memcg.stat_flush = periodic`), and reclaim reads the last flush. Without a
//!   clock there is no right moment. So statistics are either always up to date (`live`) or flushed before given accesses
//!   ([`TaskSpec::flush_before`](crate::TaskSpec::flush_before), with `manual`). `periodic` is refused. A timed run with the same setting
//!   has the same counters.
//! - **Readahead in flight.** In a timed run a reader catches up with a page that is still being read. It then waits, and the access counts as a miss
//!   that found its page. Here such a page is up to date before the reader comes, so the access is a hit. Without readahead (a window of 0) no
//!   read is in flight when an access begins, and nothing differs.
//! - **kswapd.** A kernel thread that is woken runs to its next wait before the task goes on. In a timed run it starts after a delay and shares
//!   the CPU. Replays of a cgroup at its limit never wake it.
//! - **Timers** never expire: the nap of a kernel thread lasts until it is woken, and nothing becomes old (`lru_gen.min_ttl_ms`, proactive
//!   compaction). A task that reclaim sends to sleep goes on immediately. The vmstat worker, which gives the free pages of a CPU back each second, does
//!   not run. So `nr_free_pages` and the two dirty thresholds, which follow it, differ.
//!
//! Writes are refused, as flushers go by time. So is all else that needs a clock: several tasks, events, a pace, memory of several speeds.

use pageout_engine::{Nanos, Served, Step, TaskId, Wait};

use super::run::{Begun, run_hits_of_calls};
use super::{Machine, RunError, carry};
use crate::observe::Observer;
use crate::report::Ended;
use crate::runner::State;
use crate::task::decode;

/// The position of the only task.
const ALONE: usize = 0;

impl Machine {
    /// Runs the only task to its end without a clock. An interrupted run can go on with another call.
    ///
    /// # Errors
    /// [`RunError::NeedsClock`] if the machine has something that only a timed run has a meaning for, and as [`Machine::run`].
    ///
    /// # Panics
    /// When an earlier call returned an error.
    pub fn run_untimed(&mut self, observer: &mut dyn Observer) -> Result<Ended, RunError> {
        assert_ne!(self.ended, Ended::Failed, "a failed run does not go on");
        if self.ended == Ended::NotYet {
            self.refuse_what_needs_a_clock()?;
            self.follow_groups();
            self.start_kernel_threads();
        }
        self.ended = Ended::Failed;
        let ended = self.serve_accesses(observer);
        let ended = self.check_guests().and(ended);
        self.ended = ended.map_err(|error| *error)?;
        Ok(self.ended)
    }

    fn refuse_what_needs_a_clock(&self) -> Result<(), RunError> {
        let needs = |found: &str, expected| Err(RunError::NeedsClock { found: found.to_string(), expected });
        let [task] = &self.tasks[..] else {
            return needs(&format!("{} tasks", self.tasks.len()), "one task");
        };
        if !self.timed.is_empty() {
            return needs("events", "none");
        }
        if task.has_pace() {
            return needs("accesses with times", "accesses one after the other");
        }
        if self.memory.is_some() {
            return needs("memory of several speeds", "one node");
        }
        if self.engine.stat_flush_period().is_some() {
            return needs("`memcg.stat_flush` = periodic", "live or manual");
        }
        Ok(())
    }

    fn serve_accesses(&mut self, observer: &mut dyn Observer) -> Result<Ended, Box<RunError>> {
        while self.tasks[ALONE].runner.state != State::Ended {
            if std::mem::take(&mut self.is_interrupted) {
                return Ok(Ended::Interrupted);
            }
            if self.engine.guest_fault().is_some() {
                // The caller records its meaning.
                return Ok(Ended::Failed);
            }
            if self.tasks[ALONE].has_more_to_do()
                && let Some(begun) = self.before_access(ALONE, observer)?
            {
                if let Begun::Step(step) = begun {
                    let served = self.serve(step, observer)?;
                    self.finish_other(ALONE, served, observer)?;
                }
                continue;
            }
            if !self.serve_hits(observer) {
                self.serve_miss(observer)?;
            }
        }
        Ok(Ended::Complete)
    }

    /// Serves hits up to the next access before which something is to be done. Returns false if the access that is next is not one.
    #[inline]
    fn serve_hits(&mut self, observer: &mut dyn Observer) -> bool {
        let Machine { engine, tasks, .. } = self;
        let task = &mut tasks[ALONE];
        let allowed = task.accesses_until_mark();
        debug_assert!(allowed > 0, "what is due was done");
        let hits = match task.calls {
            None => engine.run_hits(task.runner.id, &task.accesses.pending()[..allowed], decode),
            Some(_) => run_hits_of_calls(engine, task, allowed),
        };
        if hits > 0 {
            let first = task.accesses.index;
            task.hits += hits as u64;
            task.advance(hits);
            observer.hits(ALONE, first..first + hits as u64);
            self.count_accesses(hits as u64, observer);
            if self.engine.has_work() {
                self.answer(observer);
            }
        }
        hits == allowed
    }

    fn serve_miss(&mut self, observer: &mut dyn Observer) -> Result<(), Box<RunError>> {
        let task = &self.tasks[ALONE];
        let access = task.accesses.pending()[0];
        if access.is_write() {
            let found = format!("a write (access {} of task `{}`)", task.accesses.index, task.name);
            return Err(RunError::NeedsClock { found, expected: "reads only" }.into());
        }
        let access = match task.calls {
            None => decode(access),
            Some(_) => task.decode_call(access),
        };
        let step = self.engine.start(task.runner.id, access);
        let served = self.serve(step, observer)?;
        let task = &mut self.tasks[ALONE];
        if !task.count_served(&served) {
            self.finish_other(ALONE, served, observer)?;
            return Ok(());
        }
        observer.access(ALONE, task.accesses.index, &served);
        task.advance(1);
        self.count_accesses(1, observer);
        Ok(())
    }

    /// Takes a call of the task to its end.
    fn serve(&mut self, mut step: Step, observer: &mut dyn Observer) -> Result<Served, Box<RunError>> {
        let task = self.tasks[ALONE].runner.id;
        loop {
            let is_named = self.answer(observer);
            step = match step {
                Step::Done(served) => return Ok(served),
                Step::Wait(Wait::Io(_) | Wait::Woken) if !is_named => return Err(self.stalled().into()),
                Step::Again | Step::Wait(_) => self.engine.resume(task),
            }
        }
    }

    /// Carries out what an engine call has asked for, and lets the kernel threads run that it has woken. Returns whether the task was woken.
    #[inline]
    fn answer(&mut self, observer: &mut dyn Observer) -> bool {
        self.transfer();
        self.engine.take_woken(&mut self.woken);
        let is_named = match self.woken[..] {
            [] => false,
            [only] if only == self.tasks[ALONE].runner.id => {
                self.woken.clear();
                true
            }
            _ => self.run_woken(),
        };
        if self.records_page_cache {
            self.tell_page_cache(observer);
        }
        is_named
    }

    #[cold]
    fn tell_page_cache(&mut self, observer: &mut dyn Observer) {
        self.engine.take_page_cache_events(&mut self.page_cache_events);
        self.page_cache_events.drain(..).for_each(|event| observer.page_cache(Nanos::ZERO, event));
    }

    /// Transfers end in the order in which they were asked for; their ends may ask for more.
    #[inline]
    fn transfer(&mut self) {
        loop {
            self.engine.take_ops(&mut self.ops);
            if self.ops.is_empty() {
                return;
            }
            self.transfer_all();
        }
    }

    fn transfer_all(&mut self) {
        let cpu = self.tasks[ALONE].runner.cpu;
        let mut ops = std::mem::take(&mut self.ops);
        for op in &ops {
            match carry::transfer(op) {
                Some((io, request)) => self.gather(io, request),
                None if op.gives_up() => {}
                // It is counted, and its time is dropped.
                None => _ = self.carried.add(op, &self.costs),
            }
        }
        ops.clear();
        self.ops = ops;
        for at in 0..self.gathered.len() {
            let request = self.gathered[at].request();
            let device = self.device_of(request.area);
            self.devices[device].answer_now(request);
        }
        self.gathered.clear();
        for io in self.ios.drain(..) {
            self.engine.io_done(io, cpu, Ok(()));
        }
    }

    /// Runs the named kernel threads, and those that these wake. Returns whether the task was named among them.
    #[cold]
    fn run_woken(&mut self) -> bool {
        let task = self.tasks[ALONE].runner.id;
        let mut named = std::mem::take(&mut self.woken);
        let (mut at, mut is_named) = (0, false);
        while let Some(&id) = named.get(at) {
            at += 1;
            match id == task {
                true => is_named = true,
                false => self.run_thread(id, &mut named),
            }
        }
        named.clear();
        self.woken = named;
        if self.engine.has_oom_kills() {
            self.note_kills();
        }
        is_named
    }

    /// Runs a kernel thread until it waits for what has not come. Tasks that it wakes are added to `named`.
    fn run_thread(&mut self, thread: TaskId, named: &mut Vec<TaskId>) {
        loop {
            let step = self.engine.resume(thread);
            self.transfer();
            let first = named.len();
            self.engine.take_woken(named);
            let itself = named[first..].iter().position(|&id| id == thread);
            match step {
                Step::Again | Step::Wait(Wait::Delay(..)) => {}
                Step::Wait(_) if itself.is_some() => _ = named.remove(first + itself.expect("it is some")),
                Step::Wait(_) => return,
                Step::Done(served) => unreachable!("a kernel thread is served by {served:?}"),
            }
        }
    }
}
