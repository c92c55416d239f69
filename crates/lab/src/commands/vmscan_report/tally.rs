//! Events of reclaim added up by task: its calls, how long they took, and the pages that they scanned, freed and wrote.
//!
//! ```text
//!   begin ─┬─ isolate, shrink, write, throttled … ─┬─ end         the call's work, and the time the task was stalled
//!   wake ──┴───────────────────────────────────────┴─ sleep       kswapd's work, and the time it was awake
//! ```
//! What a task does between begin and end is its call's; what kswapd does is kswapd's; anything else was done outside of a call that
//! the trace shows (`memory.reclaim`, madvise, a call that began before the trace). A call within a call counts as one, and its work
//! belongs to the outer one.
//!
//! Memory does not grow with the trace: figures by task up to so many tasks, times in histograms, the longest calls, and a timeline
//! whose steps double when it is full.

mod process; // one task: its calls, and kswapd's waking hours
mod off_cpu; // the time of calls that was spent off the CPU
mod seen; // which kinds of events there were
mod refaults; // whether what was removed came back
mod stall; // the longest calls, and why they took long
mod timeline; // reclaim by whom over time
mod work; // pages looked at, freed, written, and what became of the rest

use std::collections::BTreeMap;

use pageout_sim::latency::LatencyHistogram;

use off_cpu::Callers;
pub(super) use off_cpu::OffCpu;
pub(super) use process::{ByOrder, Item, Process};
pub(super) use refaults::Refaults;
pub(super) use seen::{Need, Seen};
pub(super) use stall::{Absence, Stall};
pub(super) use timeline::Slice;
use timeline::Timeline;
pub(super) use work::{ByType, Class, Work};

use super::ftrace::{Dialect, Event, Record, Task, Totals};
use process::Ended;
use stall::Stalls;

/// Tasks that have figures of their own. More of a name share a row, as all of a name do with `--ignore-pid`.
const PROCESSES_MAX: usize = 4096;

/// Larger folios than those of 2 MiB there are none in the page cache.
const PAGE_CACHE_ORDER_MAX: u8 = 9;

/// What is to be kept beyond sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Tasks of one name are one.
    pub(super) ignore_pid: bool,
    /// Keep so many single calls for the kernel script's list of latencies.
    pub(super) items_max: usize,
    /// The events are those of a run here, and not a record that may lack some.
    pub(super) is_run: bool,
}

/// The sums of a trace: work of calls, tasks and kswapds.
pub(super) struct Tally {
    options: Options,
    processes: Vec<Process>,
    /// By pid and name; without a pid all tasks of the name.
    index: BTreeMap<(Option<u32>, String), usize>,
    /// Where events of the task seen last go: most lines are of the task before.
    last: Option<(Task, usize)>,
    stalls: Stalls,
    /// kswapd's longest times awake.
    awake: Stalls,
    /// How long calls took, by [`Class`].
    latencies: [LatencyHistogram; Class::ALL.len()],
    timeline: Timeline,
    callers: Callers,
    /// Time off the CPU in calls, by [`Class`].
    off_cpu: [OffCpu; Class::ALL.len()],
    refaults: Refaults,
    /// Events tell what was done, and not only by whom and how long.
    tells_work: bool,
    seen: Seen,
    end_ns: u64,
    /// Calls that the list of latencies had no room for.
    items_left_out: u64,
    items: usize,
}

impl Tally {
    pub(super) fn new(options: Options) -> Tally {
        Tally {
            options,
            processes: Vec::new(),
            index: BTreeMap::new(),
            last: None,
            stalls: Stalls::default(),
            awake: Stalls::default(),
            latencies: Default::default(),
            timeline: Timeline::default(),
            callers: Callers::default(),
            off_cpu: Default::default(),
            refaults: Refaults::default(),
            tells_work: false,
            seen: Seen::new(options.is_run),
            end_ns: 0,
            items_left_out: 0,
            items: 0,
        }
    }

    /// Adds one event; they come in the order of time, but for some that are too late.
    pub(super) fn add(&mut self, record: Record) {
        let Record { time_ns, task, event } = record;
        self.end_ns = self.end_ns.max(time_ns);
        if !event.is_reclaim() {
            self.aside(record);
            return;
        }
        self.seen.count(&event);
        self.timeline.begin(time_ns);
        let at = self.process_of(task);
        let process = &mut self.processes[at];
        let mut ended = None;
        match event {
            Event::WakeupKswapd { order } => process.wake_requests.count(order),
            Event::KswapdWake { order } => process.kswapd().wake(time_ns, order),
            Event::KswapdSleep => ended = process.kswapd().sleep(time_ns),
            Event::Begin { kind, order } => {
                if process.begin(task.pid, kind, order, time_ns) {
                    self.callers.begin(task.pid);
                }
            }
            Event::End { kind, reclaimed } => ended = process.end(task.pid, kind, reclaimed, time_ns),
            Event::Uncounted
            | Event::ShrinkSlab { .. }
            | Event::PageCache { .. }
            | Event::Refault
            | Event::Switch { .. }
            | Event::Wakeup { .. } => {}
            Event::Isolate(_) | Event::ShrinkInactive(_) | Event::Write(_) | Event::Throttled { .. } => {
                self.tells_work = true;
                let (class, work) = process.work(task.pid, event);
                self.timeline.work(class, time_ns, &work);
            }
        }
        if let Some(ended) = ended {
            self.ended(at, task.pid, ended);
        }
    }

    /// Adds an event that is none of reclaim.
    fn aside(&mut self, Record { time_ns, task, event }: Record) {
        match event {
            Event::Switch { prev, is_runnable, next } => {
                self.callers.switch(prev, is_runnable, next, time_ns);
            }
            Event::Wakeup { pid } => self.callers.wakeup(pid, time_ns),
            Event::Refault => self.refaults.told += 1,
            Event::ShrinkSlab { is_begin } => {
                if let Some(at) = self.known(task) {
                    self.processes[at].shrink_slab(task.pid, is_begin, time_ns);
                }
            }
            Event::PageCache { is_added, file, page, order } => {
                let by_reclaim =
                    self.known(task).is_some_and(|at| self.processes[at].is_reclaiming(task.pid));
                for page in page..page + (1 << order.min(PAGE_CACHE_ORDER_MAX)) {
                    match is_added {
                        true => self.refaults.added((file, page), time_ns),
                        false => self.refaults.removed((file, page), time_ns, by_reclaim),
                    }
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, at: usize, pid: u32, ended: Ended) {
        let Ended { class, span_ns, order, call } = ended;
        self.timeline.busy(class, span_ns);
        if self.options.items_max > 0 && matches!(class, Class::Direct | Class::Kswapd) {
            if self.items < self.options.items_max {
                self.items += 1;
                self.processes[at].keep_item(class, Item { order, span_ns });
            } else {
                self.items_left_out += 1;
            }
        }
        process::record(&mut self.latencies[class as usize], span_ns.1.saturating_sub(span_ns.0));
        match call {
            Some(call) => {
                let off_cpu = self.callers.end(pid, span_ns.1);
                self.off_cpu[class as usize].add(off_cpu.unwrap_or_default());
                self.stalls.add(Stall { off_cpu, ..Stall::of(at, class, span_ns, true, call) });
            }
            None if class == Class::Kswapd => self.awake.add(Stall::awake(at, order, span_ns, true)),
            None => {}
        }
    }

    /// The place of a task that has reclaimed.
    fn known(&self, task: Task) -> Option<usize> {
        if let Some((_, at)) = self.last.filter(|(last, _)| *last == task) {
            return Some(at);
        }
        let pid = Some(task.pid).filter(|_| !self.options.ignore_pid);
        self.index.get(&(pid, task.comm())).copied()
    }

    fn process_of(&mut self, task: Task) -> usize {
        if let Some((_, at)) = self.last.filter(|(last, _)| *last == task) {
            return at;
        }
        let comm = task.comm();
        let own = (Some(task.pid).filter(|_| !self.options.ignore_pid), comm.clone());
        let at = match self.index.get(&own) {
            Some(&at) => at,
            None => {
                let is_full = self.index.len() >= PROCESSES_MAX;
                let shared = if self.index.len() >= 2 * PROCESSES_MAX { String::new() } else { comm };
                let key = if is_full { (None, shared) } else { own };
                let next = self.processes.len();
                let at = *self.index.entry(key.clone()).or_insert(next);
                if at == next {
                    self.processes.push(Process::new(key.1, key.0));
                }
                at
            }
        };
        self.last = Some((task, at));
        at
    }

    /// The sums, with what is still going on up to the end of the trace.
    pub(super) fn finish(mut self, totals: &Totals) -> Sums {
        self.seen.is_early = totals.dialect() == Some(Dialect::Early.name());
        let end_ns = totals.span_ns.map_or(self.end_ns, |(_, last)| last.max(self.end_ns));
        for (at, process) in self.processes.iter_mut().enumerate() {
            for (class, since_ns, call) in process.unfinished(&self.seen) {
                self.timeline.busy(class, (since_ns, end_ns));
                match call {
                    Some(call) => self.stalls.add(Stall::of(at, class, (since_ns, end_ns), false, call)),
                    None => self.awake.add(Stall::awake(at, 0, (since_ns, end_ns), false)),
                }
            }
        }
        if self.seen.scans_by_batches() {
            self.processes.iter_mut().for_each(Process::count_judged_as_scanned);
            self.timeline.count_judged_as_scanned();
        }
        let items_left_out = self.items_left_out;

        // By name and number, with the places that stalls refer to.
        let mut order: Vec<usize> = (0..self.processes.len()).collect();
        order.sort_by_key(|&at| {
            let process = &self.processes[at];
            (process.comm.clone(), process.pid)
        });
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        let placed = |stalls: Vec<Stall>| -> Vec<Stall> {
            stalls.into_iter().map(|stall| Stall { process: place[stall.process], ..stall }).collect()
        };
        let (mut stalls, awake) = (placed(self.stalls.longest()), placed(self.awake.longest()));
        for stall in &mut stalls {
            stall.tells_work = self.tells_work;
            if self.seen.scans_by_batches() {
                stall.work.count_judged_as_scanned();
            }
        }
        let mut processes: Vec<Option<Process>> = self.processes.into_iter().map(Some).collect();
        let processes =
            order.iter().map(|&old| processes[old].take().expect("each place is taken once")).collect();
        Sums {
            processes,
            stalls,
            awake,
            latencies: self.latencies,
            timeline: self.timeline,
            off_cpu: self.callers.is_told().then_some(self.off_cpu),
            refaults: self.refaults,
            tells_work: self.tells_work,
            seen: self.seen,
            end_ns,
            items_left_out,
        }
    }
}

/// All of it, when the trace is read.
pub(super) struct Sums {
    /// By name, then number.
    pub(super) processes: Vec<Process>,
    /// The longest calls, the longest first.
    pub(super) stalls: Vec<Stall>,
    /// kswapd's longest times awake.
    pub(super) awake: Vec<Stall>,
    latencies: [LatencyHistogram; Class::ALL.len()],
    pub(super) timeline: Timeline,
    /// Time off the CPU in calls, by [`Class`], if the scheduler's events are there.
    off_cpu: Option<[OffCpu; Class::ALL.len()]>,
    /// Whether events tell what was done, and not only by whom and how long.
    pub(super) tells_work: bool,
    /// Which kinds of events there were.
    pub(super) seen: Seen,
    /// What became of the pages of files that were freed.
    pub(super) refaults: Refaults,
    /// When the trace ends.
    pub(super) end_ns: u64,
    /// Calls that are missing in the processes' items.
    pub(super) items_left_out: u64,
}

impl Sums {
    /// How long calls of one class took; of kswapd, times awake.
    pub(super) fn latency(&self, class: Class) -> &LatencyHistogram {
        &self.latencies[class as usize]
    }

    /// Time off the CPU in calls of one class, if the scheduler's events are there.
    pub(super) fn off_cpu(&self, class: Class) -> Option<OffCpu> {
        self.off_cpu.map(|off_cpu| off_cpu[class as usize])
    }

    /// The work of all tasks of one class.
    pub(super) fn work(&self, class: Class) -> Work {
        let mut sum = Work::default();
        self.processes.iter().for_each(|process| sum.add(process.work_of(class)));
        sum
    }
}
