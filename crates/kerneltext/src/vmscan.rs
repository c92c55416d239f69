//! Sums of reclaim events by task: its calls, their durations, and the pages that they scanned, freed and wrote.
//!
//! ```text
//!   begin ─┬─ isolate, shrink, write, throttled … ─┬─ end         the call's work, and the time the task was stalled
//!   wake ──┴───────────────────────────────────────┴─ sleep       kswapd's work, and the time it was awake
//! ```
//! An event of a task between begin and end is work of that call. An event of kswapd is kswapd's work. Any other event is outside of a
//! call that the trace shows: `memory.reclaim`, madvise, or a call that began before the trace. A call within a call counts as one, and
//! its work belongs to the outer one.
//!
//! Memory does not grow with the trace. At most 4096 tasks have figures of their own, durations are in histograms, and the 200 longest
//! calls are kept. The steps of the timeline double in length when it is full.

mod coverage; // which kinds of events the trace has, and so which figures are known
mod process; // one task: its calls, and kswapd's times awake
mod work; // pages scanned, freed, written, and kept by reason
mod stall; // the longest calls, and where their time went
mod off_cpu; // time of calls off the CPU
mod refaults; // reclaimed pages of files that came back
mod timeline; // work over time
mod durations; // durations as a histogram
mod sums; // sums over all tasks

use std::collections::BTreeMap;

pub use coverage::{Coverage, EventKind, NotRecorded};
pub use durations::{DurationSummary, Durations};
pub use off_cpu::OffCpu;
pub use process::{ByOrder, Calls, Item, Kswapd, Process};
pub use refaults::Refaults;
pub use stall::{OffCpuTime, Stall};
pub use sums::{AllCalls, AllKswapds, Sums};
pub use timeline::{Slice, Step, Timeline};
pub use work::{ByType, Reclaimer, Work};

use off_cpu::Callers;
use process::Ended;
use stall::Stalls;

use crate::ftrace::{Dialect, Event, Record, Task, Totals};

/// Tasks that have figures of their own. Further tasks share one entry per name, as with `Options::ignore_pid`.
const PROCESSES_MAX: usize = 4096;

/// The page cache has no folios larger than 2 MiB.
const PAGE_CACHE_ORDER_MAX: u8 = 9;

/// Options of a [`Tally`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Counts all tasks of one name as one.
    pub ignore_pid: bool,
    /// Number of single calls to keep in [`Process::items`].
    pub items_max: usize,
    /// All kinds of events are known to be recorded, as in a simulated run: a kind without events did not happen.
    pub has_all_events: bool,
}

/// Adds up events. [`Tally::finish`] returns the sums.
pub struct Tally {
    options: Options,
    processes: Vec<Process>,
    /// By pid and name; without a pid all tasks of the name.
    index: BTreeMap<(Option<u32>, String), usize>,
    /// The entry of the last event's task: the next event is mostly of the same task.
    last: Option<(Task, usize)>,
    stalls: Stalls,
    /// kswapd's longest times awake.
    awake: Stalls,
    /// Durations of calls, by [`Reclaimer`].
    latencies: [Durations; Reclaimer::ALL.len()],
    timeline: Timeline,
    callers: Callers,
    /// Time off the CPU in calls, by [`Reclaimer`].
    off_cpu: [OffCpu; Reclaimer::ALL.len()],
    refaults: Refaults,
    /// True if there are events of work, not only of calls.
    has_work_events: bool,
    coverage: Coverage,
    end_ns: u64,
    /// Calls beyond `Options::items_max`.
    items_left_out: u64,
    items: usize,
}

impl Tally {
    /// A tally without events.
    pub fn new(options: Options) -> Tally {
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
            has_work_events: false,
            coverage: Coverage::new(options.has_all_events),
            end_ns: 0,
            items_left_out: 0,
            items: 0,
        }
    }

    /// Adds one event. Events are in order of time, as [`crate::ftrace::Reader`] returns them; a few late ones do no harm.
    pub fn add(&mut self, record: Record) {
        let Record { time_ns, task, event } = record;
        self.end_ns = self.end_ns.max(time_ns);
        if !event.is_reclaim() {
            self.aside(record);
            return;
        }
        self.coverage.count(&event);
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
                self.has_work_events = true;
                let (reclaimer, work) = process.work(task.pid, event);
                self.timeline.work(reclaimer, time_ns, &work);
            }
        }
        if let Some(ended) = ended {
            self.ended(at, task.pid, ended);
        }
    }

    /// Adds an event that is not one of reclaim.
    fn aside(&mut self, Record { time_ns, task, event }: Record) {
        match event {
            Event::Switch { prev, is_runnable, next } => {
                self.callers.switch(prev, is_runnable, next, time_ns);
            }
            Event::Wakeup { pid } => self.callers.wakeup(pid, time_ns),
            Event::Refault => self.refaults.refault_events += 1,
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
        let Ended { reclaimer, span_ns, order, call } = ended;
        self.timeline.busy(reclaimer, span_ns);
        if self.options.items_max > 0 && matches!(reclaimer, Reclaimer::Direct | Reclaimer::Kswapd) {
            if self.items < self.options.items_max {
                self.items += 1;
                self.processes[at].keep_item(reclaimer, Item { order, span_ns });
            } else {
                self.items_left_out += 1;
            }
        }
        self.latencies[reclaimer as usize].record(span_ns.1.saturating_sub(span_ns.0));
        match call {
            Some(call) => {
                let off_cpu = self.callers.end(pid, span_ns.1);
                self.off_cpu[reclaimer as usize].add(off_cpu.unwrap_or_default());
                self.stalls.add(Stall { off_cpu, ..Stall::of(at, reclaimer, span_ns, true, call) });
            }
            None if reclaimer == Reclaimer::Kswapd => self.awake.add(Stall::awake(at, order, span_ns, true)),
            None => {}
        }
    }

    /// The entry of a task that has reclaimed.
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

    /// Returns the sums. Calls without an end are counted as unfinished at the end of the trace.
    pub fn finish(mut self, totals: &Totals) -> Sums {
        self.coverage.is_early = totals.dialect() == Some(Dialect::Early.name());
        let end_ns = totals.span_ns.map_or(self.end_ns, |(_, last)| last.max(self.end_ns));
        for (at, process) in self.processes.iter_mut().enumerate() {
            for (reclaimer, since_ns, call) in process.unfinished(&self.coverage) {
                self.timeline.busy(reclaimer, (since_ns, end_ns));
                match call {
                    Some(call) => self.stalls.add(Stall::of(at, reclaimer, (since_ns, end_ns), false, call)),
                    None => self.awake.add(Stall::awake(at, 0, (since_ns, end_ns), false)),
                }
            }
        }
        if self.coverage.scans_by_batches() {
            self.processes.iter_mut().for_each(Process::count_judged_as_scanned);
            self.timeline.count_judged_as_scanned();
        }
        let items_left_out = self.items_left_out;

        // By name and pid, with the indices that stalls refer to.
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
            stall.has_work_events = self.has_work_events;
            if self.coverage.scans_by_batches() {
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
            off_cpu: self.callers.has_switches().then_some(self.off_cpu),
            refaults: self.refaults,
            has_work_events: self.has_work_events,
            coverage: self.coverage,
            end_ns,
            items_left_out,
        }
    }
}
