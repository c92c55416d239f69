//! The machine: pops events in order of time, lets tasks run, carries out what the engine asks for.
//!
//! ```text
//!                    ┌───────────────────────────── event queue ◀───────────────────────┐
//!                    ▼                                                                  │ completions, wake-ups
//!   Run(task) ─▶ hits on the task's clock ─▶ start/resume ─▶ ops ─▶ devices ────────────┤
//!   IoDone ────▶ engine.io_done ────────────────▶ woken tasks ──────────────────────────┤
//!   FlushStats ▶ engine.flush_stats                                                     │
//!   Alarm ─────▶ a wait for a wake has lasted as long as it may ────────────────────────┤
//!   Timed ─────▶ a kernel file is read or written; one that reclaims is a control task ─┘
//! ```
//! The engine is called at event-queue time only, and that never goes back. A task that meets only hits runs ahead of it, by at
//! most [`MachineSpec::quantum`], or as far as it likes while no event is due. Its first access that is not a plain hit is an
//! event at the task's own time. If nothing else is due before, it goes on inline.
//!
//! The work of an engine call is priced, and the task's clock moves on by the price. Transfers are submitted to the device at the time of the call
//! and complete later by the same amount. So a device sees requests in order of time, and a task neither gains nor loses. Work without a task
//! (completions, the statistics worker) is counted on the CPU where it is done ([`CpuReport::kernel`]) and takes no CPU time from tasks: the
//! latencies of devices and the costs of accesses are measured with it.
//!
//! Neighbours: `task` and `runner` are the running tasks. Parts: `run` is a task's turn, `threads` are those that run no workload, `carry` turns
//! operations into device requests. `queued` keeps requests that wait under a scheduler, `pressure` tracks stalls, and `timed` handles events at
//! given times. `tracing` puts tracepoints in order, `tiers` prices accesses by their node, `hints` is hardware that reports them. `readings` and
//! `sequences` collect figures for the report.

mod agenda;
mod arrivals;
mod balancing;
mod carry;
mod condition;
mod error;
mod heat;
mod hints;
mod oom;
mod pressure;
mod queued;
mod readings;
mod run;
mod sample;
mod sequences;
mod shares;
mod threads;
mod tiers;
mod timed;
mod tracing;
mod untimed;

pub use condition::When;
pub use error::{BuildError, RunError};
pub use pressure::PRESSURE_FILES;
pub use timed::{Repeat, TimedAction, TimedEvent, Value};
pub use tracing::TraceRecord;

use std::collections::BTreeMap;

use pageout_engine::{
    CpuId, Engine, FileId, IoError, IoId, MemcgId, Nanos, NodeId, Op, PageCacheEvent, StoryEvent,
    StoryFilter, SwapId, TaskId,
};

use crate::access_time::AccessTimes;
use crate::account::{Account, Carried};
use crate::cost::Costs;
use crate::device::{Device, DeviceError, DeviceSpec};
use crate::event::NEVER;
use crate::hints::HintSpec;
use crate::latency::LatencyHistogram;
use crate::memory::{Asked, LinkSpec, MemorySpec};
use crate::observe::{Observer, PROGRESS_EVERY, PROGRESS_EVERY_EVENTS};
use crate::psi::Psi;
use crate::report::{CpuReport, Ended, Kill, Report, TaskReport};
use crate::runner::State;
use crate::sched::{CpuRow, Placement, SchedRules, Scheduler, TaskIndex};
use crate::task::{Task, TaskSpec};
use crate::turns::Turns;
use agenda::{Agenda, Event};
use hints::Hints;
use sequences::Sequences;
use threads::Thread;

/// The parts of a machine besides its engine: CPUs, devices, costs, memory.
#[derive(Clone, PartialEq, Debug)]
pub struct MachineSpec {
    /// Seed of everything random; devices derive theirs from it.
    pub seed: u64,
    /// Prices of work. Default: `xeon-vm`.
    pub costs: Costs,
    /// The time that a task may run ahead through hits while other events are due. Default 100 us: some hundred hits, and about a
    /// device's latency. 0 puts every hit in its place between the events, at the cost of speed where tasks are many.
    pub quantum: Nanos,
    /// The rules by which tasks share CPUs.
    pub sched: SchedRules,
    /// The first run of the statistics worker; from then on every [`Engine::stat_flush_period`]. The kernel's phase is that
    /// of its boot, so anything below the period is as good as anything else. Default 0.
    pub stat_flush_phase: Nanos,
    /// The times from waking kswapd to its first instruction, in order, and then from the first on again: a measure of how busy a machine
    /// was. Default: none, what costs say.
    pub kswapd_wake_ups: Vec<Nanos>,
    /// The block devices.
    pub devices: Vec<DeviceSpec>,
    /// The device of each regular file, by position in `devices`.
    pub files: Vec<(FileId, usize)>,
    /// The device of each asynchronous swap area, by position in `devices`.
    pub swaps: Vec<(SwapId, usize)>,
    /// The number of pages that each page represents; prices and devices here already include it. Default 1.
    pub page_stands_for: u64,
    /// The memory of each node, of all of them or of none. Default: none, memory that takes what costs say however busy it is.
    pub memory: Vec<MemorySpec>,
    /// The links between sockets. Default: none that takes longer.
    pub links: Option<LinkSpec>,
    /// True if a run finds out what placement could have been at best. Default: yes.
    pub hindsight: bool,
    /// True if a run measures how long accesses took, what delayed them, and which decisions used statistics that were out of date. Default: no, as
    /// it takes some instructions at each miss.
    pub times_accesses: bool,
    /// Hardware hints of accesses, which matter only where hot-page tracking listens and memory is not all alike. Default: `ibs`.
    pub hints: HintSpec,
}

impl Default for MachineSpec {
    fn default() -> MachineSpec {
        MachineSpec {
            seed: 1,
            page_stands_for: 1,
            costs: Costs::xeon_vm(),
            quantum: Nanos(100_000),
            sched: SchedRules::default(),
            stat_flush_phase: Nanos::ZERO,
            kswapd_wake_ups: Vec::new(),
            devices: Vec::new(),
            files: Vec::new(),
            swaps: Vec::new(),
            memory: Vec::new(),
            links: None,
            hindsight: true,
            times_accesses: false,
            hints: HintSpec::default(),
        }
    }
}

/// A simulated machine with its engine, tasks and devices.
pub struct Machine {
    engine: Engine,
    costs: Costs,
    quantum: Nanos,
    times_accesses: bool,
    stat_flush_phase: Nanos,
    agenda: Agenda,
    sched: Scheduler,
    psi: Psi,
    devices: Vec<Device>,
    /// Transfers that wait under a scheduler of one.
    queued: queued::Queued,
    /// Where it is not all alike.
    memory: Option<Box<tiers::TieredMemory>>,
    /// Pages that are followed for the heat map alone.
    heat: Option<Box<heat::Followed>>,
    /// Device of each file and swap area, by number.
    file_device: Vec<Option<usize>>,
    swap_device: Vec<Option<usize>>,
    tasks: Vec<Task>,
    /// Where those are that take turns.
    turns: Turns,
    /// Which of `tasks` an engine's task is.
    task_index: Vec<Option<TaskIndex>>,
    foreground_left: usize,
    /// Events, each with the shell that does it.
    timed: Vec<(TimedEvent, usize)>,
    shells: Vec<timed::Shell>,
    timed_left: usize,
    threads: Vec<Thread>,
    /// Kdamonds with a goal that measures memory stalls.
    stall_readers: Vec<TaskIndex>,
    ended: Ended,
    /// When the access failed that ended the run: its task may have been ahead of the agenda.
    failed_at: Nanos,
    accesses: u64,
    progress_at: u64,
    /// Time between two samples, and the next one; far away if none is requested.
    sample_period: Nanos,
    sample_at: Nanos,
    /// A run stops before what is due then; far away if none is requested.
    pause_at: Nanos,
    is_interrupted: bool,
    /// By CPU: work that no task pays for.
    kernel_time: Vec<Nanos>,
    /// Time of the engine's work so far, for any task, and its ended reclaim calls.
    priced: Nanos,
    /// As much of it as units of work took that are rarely counted.
    priced_rarely: Nanos,
    reclaim_calls: u64,
    /// Frames that compaction had looked at, and entries of pages that had moved.
    compacted: (u64, u64),
    /// Operations carried out that took time of a CPU.
    carried: Carried,
    reclaim: LatencyHistogram,
    /// How long shells reclaimed for their writes to kernel files.
    reclaim_for_writes: LatencyHistogram,
    /// By memcg of a task, in order of the first task of each, and where in it each is.
    reclaim_by_memcg: Vec<(String, LatencyHistogram)>,
    group_of: BTreeMap<MemcgId, usize>,
    outcome: timed::Outcome,
    kills: Vec<Kill>,
    sequences: Sequences,
    /// Wake-ups of tasks by another, which take time.
    wake_ups: u64,
    kswapd_wake_ups: Vec<Nanos>,
    /// How often kswapd was woken from sleep.
    kswapd_woken: usize,
    /// Buffers that engine calls fill, reused.
    ops: Vec<Op>,
    ios: Vec<IoId>,
    gathered: Vec<carry::Gathered>,
    woken: Vec<TaskId>,
    page_cache_events: Vec<PageCacheEvent>,
    records_page_cache: bool,
    story: Vec<StoryEvent>,
    tells_story: bool,
    tracing: tracing::Tracing,
}

impl Machine {
    /// Puts a machine around an engine whose memcgs, files and swap areas exist.
    pub fn new(mut engine: Engine, spec: MachineSpec) -> Result<Machine, BuildError> {
        engine.compare_with_live(spec.times_accesses);
        let devices = (0..).zip(spec.devices).map(|(index, device)| Device::new(device, spec.seed, index));
        let devices = devices.collect::<Result<Vec<Device>, DeviceError>>()?;
        let count = devices.len();
        let files = spec.files.iter().map(|&(file, device)| (file.0 as usize, device));
        let swaps = spec.swaps.iter().map(|&(swap, device)| (usize::from(swap.0), device));
        let nodes = (0..spec.memory.len()).map(|node| NodeId(node as u8));
        let is_top_tier = nodes.map(|node| engine.figures().tiers().node_is_top_tier(node)).collect();
        let hints = Hints::new(spec.hints, spec.seed, engine.figures().cpus().into(), spec.memory.len());
        let cpus = u64::from(engine.figures().cpus());
        let asked = Asked {
            bandwidth: spec.costs.bandwidth(spec.page_stands_for).map(|each| each.saturating_mul(cpus)),
            stands_for: spec.page_stands_for,
        };
        let memory = tiers::TieredMemory::new(
            &spec.memory,
            spec.links.as_ref(),
            asked,
            is_top_tier,
            hints,
            spec.hindsight,
        );
        Ok(Machine {
            memory,
            file_device: device_table(files, count, "file")?,
            swap_device: device_table(swaps, count, "swap area")?,
            kernel_time: vec![Nanos::ZERO; usize::from(engine.figures().cpus())],
            sched: Scheduler::new(engine.figures().cpus(), spec.sched),
            psi: Psi::new(engine.figures().cpus(), engine.figures().hz()),
            engine,
            costs: spec.costs,
            quantum: spec.quantum,
            times_accesses: spec.times_accesses,
            stat_flush_phase: spec.stat_flush_phase,
            kswapd_wake_ups: spec.kswapd_wake_ups,
            kswapd_woken: 0,
            agenda: Agenda::default(),
            queued: queued::Queued::new(devices.len()),
            devices,
            tasks: Vec::new(),
            turns: Turns::default(),
            task_index: Vec::new(),
            foreground_left: 0,
            timed: Vec::new(),
            shells: Vec::new(),
            timed_left: 0,
            threads: Vec::new(),
            stall_readers: Vec::new(),
            ended: Ended::NotYet,
            failed_at: Nanos::ZERO,
            accesses: 0,
            progress_at: PROGRESS_EVERY,
            sample_period: Nanos::ZERO,
            sample_at: Nanos(u64::MAX),
            pause_at: Nanos(u64::MAX),
            is_interrupted: false,
            priced: Nanos::ZERO,
            priced_rarely: Nanos::ZERO,
            reclaim_calls: 0,
            compacted: (0, 0),
            carried: Carried::default(),
            reclaim: LatencyHistogram::default(),
            reclaim_for_writes: LatencyHistogram::default(),
            reclaim_by_memcg: Vec::new(),
            group_of: BTreeMap::new(),
            outcome: timed::Outcome::default(),
            kills: Vec::new(),
            sequences: Sequences::default(),
            wake_ups: 0,
            ops: Vec::new(),
            gathered: Vec::new(),
            ios: Vec::new(),
            woken: Vec::new(),
            page_cache_events: Vec::new(),
            records_page_cache: false,
            story: Vec::new(),
            tells_story: false,
            tracing: tracing::Tracing::default(),
            heat: None,
        })
    }

    /// Adds a task; returns its position, by which observers and reports name it.
    ///
    /// # Panics
    /// When the machine has run, or the task is a thread of one that was not added before.
    pub fn task_add(&mut self, spec: TaskSpec) -> Result<usize, BuildError> {
        assert_eq!(self.ended, Ended::NotYet, "a task is added to a machine that has run");
        assert!(
            spec.thread_of.is_none_or(|first| first < self.tasks.len()),
            "the first thread is added first"
        );
        let name = spec.name.clone();
        let Some(memcg) = self.engine.figures().memcg_by_path(&spec.memcg) else {
            return Err(BuildError::NoSuchMemcg { task: name, path: spec.memcg });
        };
        let next = self.reclaim_by_memcg.len();
        let group = *self.group_of.entry(memcg).or_insert(next);
        if group == next {
            self.reclaim_by_memcg.push((spec.memcg.clone(), LatencyHistogram::default()));
        }
        let allowed = if spec.migrates { self.sched.all_cpus() } else { CpuRow::single(spec.cpu) };
        let placement = Placement { cpu: spec.cpu, allowed, nice: spec.nice, rt_priority: spec.rt_priority };
        self.engine.set_real_time(spec.task, spec.rt_priority > 0);
        let mut task =
            Task::new(spec, group, &self.costs).map_err(|source| BuildError::Pace { task: name, source })?;
        task.runner.is_timed = self.times_accesses;
        self.foreground_left += usize::from(!task.background);
        let index = self.tasks.len();
        self.enlist(task.runner.id, memcg, placement, index as TaskIndex);
        self.tasks.push(task);
        Ok(index)
    }

    /// The engine's work so far took no task's time.
    pub(crate) fn forgive_work(&mut self) {
        self.priced_rarely = self.costs.price_rarely(self.engine.work());
        self.priced = self.costs.price(self.engine.work());
    }

    /// Runs until every task but the background ones has ended.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<Ended, RunError> {
        self.run_until(Nanos(u64::MAX), observer)
    }

    /// Runs until every task but the background ones has ended, or `stop` is over, whichever comes first. Where all tasks are in the
    /// background it is over at `stop`. Unless it returned an error, a run that is not complete can go on with another call.
    ///
    /// # Panics
    /// When an earlier call returned an error, or the engine asks for a transfer of a file or swap area that
    /// [`MachineSpec`] puts on no device.
    pub fn run_until(&mut self, stop: Nanos, observer: &mut dyn Observer) -> Result<Ended, RunError> {
        assert_ne!(self.ended, Ended::Failed, "a failed run does not go on");
        if self.ended == Ended::NotYet {
            self.begin();
        }
        self.ended = Ended::Failed;
        let ended = self.handle_events(stop, observer);
        // Whatever else has ended it: that followed.
        let ended = self.check_guests().and(ended);
        self.release_tracepoints(Nanos(u64::MAX), observer);
        self.ended = ended.map_err(|error| *error)?;
        Ok(self.ended)
    }

    /// Has runs return [`Ended::Interrupted`] before the first step that is due at `at` or later; the run can go on with another call. Pauses
    /// are not events: a run with them is the same run. A step is a run of hits, or one call of the engine: a batch of reclaim at most.
    pub fn pause_at(&mut self, at: Nanos) {
        self.pause_at = at;
    }

    /// When the next step is due; `None` before the run, and if there is none.
    pub fn next_at(&self) -> Option<Nanos> {
        Some(self.agenda.next_at()).filter(|&at| at < NEVER)
    }

    /// The figures so far.
    pub fn report(&self) -> Report {
        let now = self.agenda.now().max(self.failed_at);
        let tasks = self.task_reports(now);
        let by_memcg = self.reclaim_by_memcg.iter();
        let end = tasks.iter().filter_map(|task| task.ended).fold(now, Nanos::max);
        Report {
            ended: self.ended,
            end,
            accesses: self.accesses,
            tasks,
            reclaim: self.reclaim.summary(),
            reclaim_for_writes: self.reclaim_for_writes.summary(),
            reclaim_by_memcg: by_memcg.map(|(path, histogram)| (path.clone(), histogram.summary())).collect(),
            accesses_by_memcg: self.accesses_by_memcg(),
            devices: self.devices.iter().map(|device| device.report(end)).collect(),
            threads: self.thread_reports(),
            cpus: self.cpu_reports(end),
            pressure: self.pressure(now),
            removed_groups: self.outcome.removed_groups.clone(),
            kernel_time: self.kernel_time.iter().fold(Nanos::ZERO, |sum, &time| sum + time),
            work: *self.engine.work(),
            spent: self.account().spent(&self.costs),
            spent_by_tasks: self.account_of_tasks().spent(&self.costs),
            context_switches: self.sched.switches(),
            by_call: self.costs.of_calls(&self.account_of_tasks().work, self.sched.switches(), self.wake_ups),
            file_pages_read: self.sequences.pages,
            file_pages_read_in_order: self.sequences.pages_in_order,
            readahead: self.engine.figures().readahead_stats(),
            heat: self.heat_map(),
            damon_maps: self.damon_maps(),
            tiers: self.tier_report(),
            kills: self.kills.clone(),
            reads: self.outcome.readings.kept(),
            reads_thinned: self.outcome.readings.thinned(),
            writes: self.timed_writes(),
            watched: self.outcome.watched.values().cloned().collect(),
            timed_left: self.timed_left,
            timed_left_out: self.outcome.left_out,
        }
    }

    /// The engine, for its counters.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for opening files and mapping memory before the run, and for reading kernel files after it.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Tells observers, from now on, which pages enter and leave page caches.
    pub fn record_page_cache_events(&mut self) {
        self.engine.record_page_cache_events();
        self.records_page_cache = true;
    }

    /// Tells observers, from now on, what `filter` names of the engine's decisions.
    pub fn tell_story(&mut self, filter: StoryFilter) {
        self.engine.tell_story(filter);
        self.tells_story = true;
    }

    /// The engine's task behind the task of this name.
    pub fn task_by_name(&self, name: &str) -> Option<TaskId> {
        self.tasks.iter().find(|task| task.name == name).map(|task| task.runner.id)
    }

    /// Queues what is known from the start. What is due at the same time happens in this order: settings, then tasks.
    fn begin(&mut self) {
        self.follow_groups();
        self.start_kernel_threads();
        self.follow_scans();
        for index in 0..self.timed.len() {
            self.agenda.push(self.timed[index].0.at, Event::Timed(index as u32));
        }
        if self.engine.stat_flush_period().is_some() {
            self.agenda.push(self.stat_flush_phase, Event::FlushStats);
        }
        for index in 0..self.tasks.len() {
            for before in self.tasks[index].after.clone() {
                assert!(before < self.tasks.len(), "a task waits for task {before}, which was never added");
                self.tasks[before].followers.push(index);
            }
            if self.tasks[index].waits_for == 0 {
                self.push_run(self.tasks[index].runner.clock, index as TaskIndex);
            }
        }
    }

    fn handle_events(&mut self, stop: Nanos, observer: &mut dyn Observer) -> Result<Ended, Box<RunError>> {
        let mut events = 0;
        let goes_on = stop < Nanos(u64::MAX) && self.tasks.iter().all(|task| task.background);
        while self.foreground_left > 0 || goes_on {
            events += 1;
            if events % PROGRESS_EVERY_EVENTS == 0 {
                // A task that only waits makes no access that would ask.
                self.tell_progress(observer);
            }
            if std::mem::take(&mut self.is_interrupted) {
                return Ok(Ended::Interrupted);
            }
            if self.engine.guest_fault().is_some() {
                // The caller records its meaning.
                return Ok(Ended::Failed);
            }
            if !self.agenda.is_driving() && self.has_tasks_left() {
                return Err(Box::new(self.stalled()));
            }
            let next = self.agenda.next_at();
            if self.sample_at <= next.min(stop) {
                self.take_samples(next.min(stop), observer);
            }
            if next >= self.pause_at && next <= stop {
                return Ok(Ended::Interrupted);
            }
            if next > stop {
                let is_over = stop <= self.agenda.now() || self.agenda.advance(stop);
                assert!(is_over, "the next event lies behind it");
                return Ok(Ended::TimeUp);
            }
            let (now, event) = self.agenda.pop().expect("a driving event is in the queue");
            self.engine.set_now(now);
            match event {
                Event::Run(task) => self.turn(task, stop, observer)?,
                Event::IoDone { io, cpu, failed } => {
                    self.engine.io_done(io, cpu, if failed { Err(IoError::Device) } else { Ok(()) });
                    if self.engine.has_work()
                        || self.records_page_cache
                        || self.tells_story && self.engine.has_story()
                    {
                        self.after_kernel_work(cpu, observer);
                    } else {
                        self.wake();
                    }
                }
                rare => self.rare_event(rare, observer)?,
            }
        }
        Ok(Ended::Complete)
    }

    /// Nothing means anything after a policy has said what can't be.
    fn check_guests(&self) -> Result<(), Box<RunError>> {
        match self.engine.guest_fault() {
            None => Ok(()),
            Some(fault) => Err(Box::new(RunError::Guest { at: self.agenda.now(), source: fault.clone() })),
        }
    }

    /// Not inlined, and so out of the way of what comes by at every miss.
    #[inline(never)]
    fn rare_event(&mut self, event: Event, observer: &mut dyn Observer) -> Result<(), Box<RunError>> {
        match event {
            Event::FlushStats => self.flush_stats(observer),
            Event::Alarm { task, wait } => self.alarm(task, wait),
            Event::EmptyRing { ring } => self.empty_ring(ring, observer),
            Event::SlotFree { device } => self.slot_free(device as usize),
            Event::Timeout { entry } => self.write_times_out(entry as usize),
            Event::ShellGoesOn(shell) => self.write_is_over(shell as usize, observer)?,
            Event::Timed(index) => self.timed_event(index as usize, observer)?,
            Event::Run(_) | Event::IoDone { .. } => unreachable!("every miss has these"),
        }
        Ok(())
    }

    /// The statistics worker runs.
    #[cold]
    fn flush_stats(&mut self, observer: &mut dyn Observer) {
        self.engine.flush_stats();
        self.after_kernel_work(CpuId(0), observer);
        if let Some(period) = self.engine.stat_flush_period() {
            self.agenda.push(self.agenda.now() + period, Event::FlushStats);
        }
    }

    /// The CPU time of all work by kind, for any task.
    fn account(&self) -> Account {
        Account {
            work: *self.engine.work(),
            work_for: *self.engine.figures().work_for(),
            carried: self.carried,
        }
    }

    /// Settles an engine call that no task made.
    #[inline(never)]
    fn after_kernel_work(&mut self, cpu: CpuId, observer: &mut dyn Observer) {
        let settled = self.settle(None, cpu, observer);
        self.kernel_time[usize::from(cpu.0)] += settled.spent;
        self.wake();
    }

    /// Gives every task that the engine names its turn, now or when its own clock has come.
    #[inline]
    fn wake(&mut self) {
        self.engine.take_woken(&mut self.woken);
        if !self.woken.is_empty() {
            self.wake_named();
        }
        if self.engine.has_oom_kills() {
            self.note_kills();
        }
    }

    /// Not inlined: most engine calls wake no task, and [`Machine::wake`] is on the way of each.
    #[inline(never)]
    fn wake_named(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        let now = self.agenda.now();
        for id in woken.drain(..) {
            let index = self.index_of(id);
            let recorded = self.recorded_wake_up(index);
            let wake_up = recorded.unwrap_or(Nanos(self.costs.wake_up));
            let runner = self.runner_mut(index);
            let is_asleep = runner.state == State::Asleep;
            let latency = if is_asleep { Nanos::ZERO } else { wake_up };
            if let Some(at) = runner.wake(now) {
                self.kswapd_woken += usize::from(recorded.is_some() && !is_asleep);
                self.wake_ups += u64::from(latency > Nanos::ZERO);
                self.push_run(at.max(now + latency), index);
            }
        }
        self.woken = woken;
    }

    /// A wait for a wake has lasted as long as it may, unless a wake came first.
    #[inline(never)]
    fn alarm(&mut self, index: TaskIndex, wait: u32) {
        let now = self.agenda.now();
        if self.runner_mut(index).alarm(wait, now) {
            self.push_run(now, index);
        }
    }

    fn push_run(&mut self, at: Nanos, task: TaskIndex) {
        self.agenda.push(at, Event::Run(task));
    }

    /// Which of its runners the engine's task is.
    fn index_of(&self, id: TaskId) -> TaskIndex {
        let index = self.task_index.get(id.0 as usize).copied().flatten();
        index.expect("the engine and the scheduler name tasks that the machine runs")
    }

    /// Makes an engine's task known under an index.
    fn enlist(&mut self, id: TaskId, memcg: MemcgId, placement: Placement, index: TaskIndex) {
        let slot = id.0 as usize;
        if self.task_index.len() <= slot {
            self.task_index.resize(slot + 1, None);
        }
        assert!(self.task_index[slot].is_none(), "{id:?} is added twice");
        self.task_index[slot] = Some(index);
        self.psi.task_add(id, memcg, placement.cpu);
        self.sched.add(id, placement);
    }

    /// What each process did up to `now`, in the order of their first threads.
    fn task_reports(&self, now: Nanos) -> Vec<TaskReport> {
        let mut reports: Vec<TaskReport> = Vec::new();
        let mut row_of: Vec<usize> = Vec::new();
        for task in &self.tasks {
            let report = self.task_report(task, now);
            match task.thread_of {
                Some(first) => {
                    reports[row_of[first]].add_thread(&report);
                    row_of.push(row_of[first]);
                }
                None => {
                    row_of.push(reports.len());
                    reports.push(report);
                }
            }
        }
        reports
    }

    /// How long accesses took of all tasks in each cgroup that has any, in it or below, in order of their paths.
    fn accesses_by_memcg(&self) -> BTreeMap<String, AccessTimes> {
        let mut groups: BTreeMap<&str, AccessTimes> = BTreeMap::new();
        for task in &self.tasks {
            let Some(times) = task.access_times() else { continue };
            let mut path = self.reclaim_by_memcg[task.group].0.as_str();
            while let Some((parent, _)) = path.rsplit_once('/').filter(|_| path != "/") {
                groups.entry(path).or_default().merge(&times);
                path = parent;
            }
        }
        groups.into_iter().map(|(path, times)| (path.to_string(), times)).collect()
    }

    /// What a task did up to `now`, if it has not ended before.
    fn task_report(&self, task: &Task, now: Nanos) -> TaskReport {
        let runner = &task.runner;
        let ended = (runner.state == State::Ended).then_some(runner.clock);
        let (ended, spent) = match task.at_rest {
            Some((at, spent)) => (Some(at), spent),
            None => (ended, runner.spent_by(ended.unwrap_or(now))),
        };
        let until = ended.unwrap_or(now);
        let runtime = Nanos(until.0.saturating_sub(task.started.0));
        TaskReport {
            name: task.name.clone(),
            memcg: self.reclaim_by_memcg[task.group].0.clone(),
            accesses: task.accesses.index,
            stands_for: task.weight,
            hits: task.hits,
            minor: task.minor,
            major: task.major,
            read_misses: task.read_misses,
            read_misses_io: task.read_misses_io,
            started: task.started.min(until),
            ended,
            is_finished: ended.is_some() && (task.killed.is_none() || task.at_rest.is_some()),
            killed: task.killed,
            runtime,
            threads: 1,
            thread_time: runtime,
            cpu_time: spent.cpu_time,
            user_time: spent.user_time,
            cpu_wait: spent.waited.cpu,
            reclaim_time: task.reclaim_time.by(until),
            io_wait: spent.waited.io,
            delays: spent.waited.delays,
            idle: spent.waited.idle,
            access: task.access_times(),
        }
    }

    fn cpu_reports(&self, now: Nanos) -> Vec<CpuReport> {
        let of_kernel = self.kernel_time.iter();
        self.sched.busy(now).zip(of_kernel).map(|(busy, &kernel)| CpuReport { busy, kernel }).collect()
    }

    /// Returns true if any task has not ended. With none in the foreground, others may all end before the run does.
    #[cold]
    fn has_tasks_left(&self) -> bool {
        self.tasks.iter().any(|task| task.runner.state != State::Ended)
    }

    #[cold]
    fn stalled(&self) -> RunError {
        let left = self.tasks.iter().filter(|task| task.runner.state != State::Ended);
        let tasks = left.map(|task| format!("`{}` ({:?})", task.name, task.runner.state)).collect();
        RunError::Stalled { at: self.agenda.now(), tasks }
    }
}

/// A table from numbers to devices, checked.
fn device_table(
    places: impl Iterator<Item = (usize, usize)>,
    devices: usize,
    what: &str,
) -> Result<Vec<Option<usize>>, BuildError> {
    let mut table = Vec::new();
    for (number, device) in places {
        if device >= devices {
            return Err(BuildError::NoSuchDevice { what: format!("{what} {number}"), device, devices });
        }
        if table.len() <= number {
            table.resize(number + 1, None);
        }
        table[number] = Some(device);
    }
    Ok(table)
}
