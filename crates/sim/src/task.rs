//! A task: a stream of accesses, a pace, and a clock of its own.
//!
//! How it takes its turns: see `runner`. Here: what it accesses, at what price, and what is to happen before certain accesses.

use std::collections::VecDeque;

use pageout_engine::{self as engine, Advice, CpuId, KernelBlock, Nanos, ObjectId, TaskId};
use pageout_workload::trace::FileCall;
use pageout_workload::{Access, AccessStream, TraceError};

use crate::access_time::{AccessTimes, Cause};
use crate::calls::{Calls, decode_call};
use crate::commits::Commits;
use crate::cost::{Channel, Costs};
use crate::event::NEVER;
use crate::memory::Moves;
use crate::pace::{Lines, Pace, PaceError, Timetable};
use crate::reclaim_time::ReclaimTime;
use crate::runner::{Runner, Spent};
use crate::scenario::Lifetime;
use crate::turns::Turn;

/// Makes the stream of one loop of a task; the argument is the number of the loop, from 0.
pub type StreamSource = Box<dyn FnMut(u32) -> Result<Box<dyn AccessStream>, TraceError> + Send>;

/// A task to run. The engine must know it already, with its objects open or mapped.
pub struct TaskSpec {
    /// The task as the engine knows it.
    pub task: TaskId,
    /// Named in reports and errors.
    pub name: String,
    /// Path of its memcg, such as `/job/web`: where its reclaim latencies are counted.
    pub memcg: String,
    /// The CPU it is bound to, or begins on if it `migrates`; the one given to the engine.
    pub cpu: CpuId,
    /// True if the task may run on any CPU; default false.
    pub migrates: bool,
    /// -20 to 19: the lower, the more of its CPU it gets while others want it. Default 0.
    pub nice: i8,
    /// The task's real-time priority, 1 to 99: it runs before all that have none or a lower one. Default 0: none.
    pub rt_priority: u8,
    /// The channel of each of its objects, in the engine's order; it decides the cost of a hit.
    pub channels: Vec<Channel>,
    /// By how large calls each of its objects is accessed, in the engine's order; those that are missing by single pages. Default:
    /// none.
    pub calls: Vec<Calls>,
    /// Its hints about open files before its first access, and again after each restart of its program. Default:
    /// nothing.
    pub advice: Vec<(ObjectId, Advice)>,
    /// The objects whose beginning it has read ahead at the same times, by `POSIX_FADV_WILLNEED`. Default: none.
    pub will_need: Vec<ObjectId>,
    /// The source of the task's accesses. Object numbers are the engine's.
    pub source: StreamSource,
    /// The number of times that it repeats its accesses; default 1.
    pub loops: u32,
    /// The time of its start; if it waits for others, the time after the last of them has ended.
    pub start: Nanos,
    /// Positions of the tasks that must have ended before it starts. They need not have been added yet.
    pub after: Vec<usize>,
    /// Position of the task whose figures its own are added to in reports: the first thread of its process.
    pub thread_of: Option<usize>,
    /// The lifetime of its memory.
    pub lifetime: Lifetime,
    /// CPU time it spends on its own after each access.
    pub think_time: Nanos,
    /// Accesses that each of its own stands for, to as many other pages. Default 1.
    pub weight: u32,
    /// The rule by which the task's accesses start.
    pub pace: Pace,
    /// Does not keep the run going: the run is over when all other tasks have ended.
    pub background: bool,
    /// Objects whose files the task has on their device before it ends: fsync(2), one after the other.
    pub end_fsync: Vec<ObjectId>,
    /// Objects whose files the task syncs by fsync(2) after every N of its writes to them. Default: none.
    pub fsync_every: Vec<(ObjectId, u32)>,
    /// Objects whose files it truncates to nothing after every N of its accesses to them, before its next access. Default: none.
    pub truncate_every: Vec<(ObjectId, u32)>,
    /// Objects whose files the task deletes and recreates after every N of its accesses to them. Default: none.
    pub delete_every: Vec<(ObjectId, u32)>,
    /// The calls for whole files before these of its accesses, counted over all of its loops. In order. Default: none.
    pub file_calls: Vec<(u64, ObjectId, FileCall)>,
    /// Accesses before which the engine's statistics are flushed, for replaying recorded flushes. In any order.
    pub flush_before: Vec<u64>,
    /// Accesses before which a kernel file is read for the sake of its side effects; costs nothing, the text is dropped.
    pub stat_reads_at: Vec<(u64, String)>,
    /// The task takes the memory for that, too, and reclaims for it if there is none. Default false.
    pub opens_files: bool,
    /// The memory that the kernel takes for itself and frees, in order, for replaying recorded machines: before the task's first access from that time on.
    /// Default: nothing.
    pub kernel_blocks: Vec<(Nanos, BlockCall)>,
}

/// A block that the kernel takes, or gives back, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockCall {
    /// It takes a block.
    Take(u64, KernelBlock),
    /// It gives back the block of this number, if it has got it.
    Give(u64),
}

impl TaskSpec {
    /// A task that starts immediately, runs through its accesses once and as fast as it can.
    pub fn new(
        task: TaskId,
        name: &str,
        memcg: &str,
        channels: Vec<Channel>,
        source: StreamSource,
    ) -> TaskSpec {
        TaskSpec {
            task,
            name: name.to_string(),
            memcg: memcg.to_string(),
            cpu: CpuId(0),
            migrates: false,
            nice: 0,
            rt_priority: 0,
            channels,
            calls: Vec::new(),
            advice: Vec::new(),
            will_need: Vec::new(),
            source,
            loops: 1,
            start: Nanos::ZERO,
            after: Vec::new(),
            thread_of: None,
            lifetime: Lifetime::Run,
            think_time: Nanos::ZERO,
            weight: 1,
            pace: Pace::Costed,
            background: false,
            end_fsync: Vec::new(),
            fsync_every: Vec::new(),
            truncate_every: Vec::new(),
            delete_every: Vec::new(),
            file_calls: Vec::new(),
            flush_before: Vec::new(),
            stat_reads_at: Vec::new(),
            opens_files: false,
            kernel_blocks: Vec::new(),
        }
    }
}

/// Accesses pulled from a stream at a time: 32 KiB of words, which stay in the first-level cache.
const CHUNK: usize = 4096;

/// A task at work.
pub(crate) struct Task {
    pub(crate) name: String,
    /// The task's memcg, by position among those whose reclaim calls are measured.
    pub(crate) group: usize,
    pub(crate) background: bool,
    pub(crate) thread_of: Option<usize>,
    pub(crate) lifetime: Lifetime,
    pub(crate) after: Vec<usize>,
    /// Tasks that have to end before this one begins and have not.
    pub(crate) waits_for: usize,
    /// Tasks that wait for this one.
    pub(crate) followers: Vec<usize>,
    pub(crate) runner: Runner,
    /// The time of the kill.
    pub(crate) killed: Option<Nanos>,
    /// When a task that was killed in its sleep had made all its accesses, and where its time had gone by then.
    pub(crate) at_rest: Option<(Nanos, Spent)>,
    pub(crate) hit_price: HitPrice,
    think_time: Nanos,
    /// Accesses that each of its own stands for.
    pub(crate) weight: u32,
    pub(crate) timetable: Option<Timetable>,
    /// It takes turns with others.
    pub(crate) turn: Option<Turn>,
    pub(crate) accesses: Accesses,
    /// `None`: each access is a call for its page.
    pub(crate) calls: Option<Box<[Calls]>>,
    pub(crate) begin: Begin,
    /// Objects that it has yet to sync when it has made its accesses, the last of them first.
    pub(crate) syncs_left: Vec<ObjectId>,
    /// Files that the task syncs meanwhile.
    pub(crate) commits: Option<Box<Commits>>,
    /// What is to be done before certain accesses, in order.
    marks: VecDeque<Mark>,
    /// The task takes memory for what it reads before accesses, and has done so for the next one.
    pub(crate) opens_files: bool,
    pub(crate) has_opened: bool,
    kernel_blocks: VecDeque<(Nanos, BlockCall)>,
    /// The next access is known not to be a hit: don't try it as one again.
    pub(crate) is_miss_next: bool,
    /// The CPU time beyond which its next timer tick may bring a scan of its memory; never, while scans are off.
    pub(crate) scan_due: Nanos,
    pub(crate) reclaim_time: ReclaimTime,
    /// Span from the end of what it waits for to its start.
    pub(crate) start: Nanos,
    /// When it started or will; at the end of time while it waits for others.
    /// How many accesses the last piece of work made.
    pub(crate) last_accesses: u64,
    pub(crate) started: Nanos,
    pub(crate) hits: u64,
    pub(crate) minor: u64,
    pub(crate) major: u64,
    pub(crate) read_misses: u64,
    pub(crate) read_misses_io: u64,
    /// By object: whether it is a mapping.
    mapped: Vec<bool>,
    /// When its last access began that was not a plain hit.
    pub(crate) access_began: Nanos,
    /// How long its accesses took. Hits that nothing held up are not among them where all memory is alike and each page is a call.
    pub(crate) times: AccessTimes,
}

/// Something to do before an access.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Mark {
    pub(crate) index: u64,
    /// The file to read; `None` is a flush, which comes first.
    pub(crate) read: Option<String>,
}

impl Task {
    /// The number of its objects.
    pub(crate) fn objects(&self) -> usize {
        self.mapped.len()
    }

    pub(crate) fn new(spec: TaskSpec, group: usize, costs: &Costs) -> Result<Task, PaceError> {
        let (timetable, turn) = match spec.pace {
            Pace::Costed => (None, None),
            Pace::Timetable(points) => (Some(Timetable::Lines(Lines::new(points)?)), None),
            Pace::Arrivals(times) => (Some(Timetable::Arrivals(spec.start, times)), None),
            Pace::Turns(own, order) => (None, Some(Turn::new(own, order))),
        };
        let flushes = spec.flush_before.into_iter().map(|index| Mark { index, read: None });
        let reads = spec.stat_reads_at.into_iter().map(|(index, path)| Mark { index, read: Some(path) });
        let mut marks: Vec<Mark> = flushes.chain(reads).collect();
        marks.sort();
        let has_recorded_calls = spec.file_calls.iter().any(|(_, _, call)| call.is_of_accesses());
        let makes_calls = has_recorded_calls || spec.calls.iter().any(|calls| calls.pages > 1);
        // A task that waits for others has no time yet.
        let started = if spec.after.is_empty() { spec.start } else { Nanos(u64::MAX) };
        Ok(Task {
            name: spec.name,
            group,
            background: spec.background,
            thread_of: spec.thread_of,
            lifetime: spec.lifetime,
            waits_for: spec.after.len(),
            after: spec.after,
            followers: Vec::new(),
            runner: Runner::new(spec.task, spec.cpu, started),
            killed: None,
            at_rest: None,
            start: spec.start,
            hit_price: HitPrice::new(&spec.channels, spec.think_time, spec.weight, costs),
            think_time: spec.think_time,
            weight: spec.weight,
            timetable,
            turn,
            accesses: Accesses::new(spec.source, spec.loops, spec.lifetime == Lifetime::Loop),
            calls: makes_calls.then(|| spec.calls.into()),
            begin: Begin::new(spec.advice, spec.will_need),
            syncs_left: spec.end_fsync.into_iter().rev().collect(),
            commits: Commits::new(
                &[
                    (FileCall::Sync, &spec.fsync_every),
                    (FileCall::TRUNCATE_ALL, &spec.truncate_every),
                    (FileCall::Delete, &spec.delete_every),
                ],
                spec.file_calls,
            ),
            marks: marks.into(),
            opens_files: spec.opens_files,
            has_opened: false,
            kernel_blocks: spec.kernel_blocks.into(),
            is_miss_next: false,
            scan_due: NEVER,
            last_accesses: 0,
            reclaim_time: ReclaimTime::default(),
            started,
            hits: 0,
            minor: 0,
            major: 0,
            read_misses: 0,
            read_misses_io: 0,
            access_began: Nanos::ZERO,
            times: AccessTimes::new(started),
            mapped: spec.channels.iter().map(|&channel| channel == Channel::Mapped).collect(),
        })
    }

    /// Returns true if the current access is one through a mapping.
    pub(crate) fn is_next_mapped(&self) -> bool {
        self.is_mapped(self.accesses.pending()[0].object())
    }

    /// Returns true if an object is a mapping.
    pub(crate) fn is_mapped(&self, object: u32) -> bool {
        self.mapped.get(object as usize).is_some_and(|&is_mapped| is_mapped)
    }

    /// What an access to this object moves.
    pub(crate) fn moves(&self, object: u32) -> Moves {
        if self.is_mapped(object) { Moves::Line } else { Moves::Page }
    }

    /// What each of its accesses moves, if that is the same for all.
    pub(crate) fn moves_alike(&self) -> Option<Moves> {
        let (first, others) = self.mapped.split_first()?;
        others.iter().all(|other| other == first).then(|| self.moves(0))
    }

    /// Nanoseconds that a hit of an object, and all it stands for, take in ordinary memory without the thinking that follows them.
    pub(crate) fn access_price(&self, object: u32) -> u64 {
        self.hit_price.of_object(object).all.0.saturating_sub(self.think_time.0 * u64::from(self.weight))
    }

    /// What hits of these accesses take together in ordinary memory, all they stand for included and the thinking left out.
    pub(crate) fn access_prices(&self, accesses: &[Access]) -> u64 {
        let thinking = self.think_time.0 * u64::from(self.weight) * accesses.len() as u64;
        self.hit_price.of(accesses).all.0.saturating_sub(thinking)
    }

    /// Share of one access in the time of all that it stands for, including the thinking after each.
    #[inline]
    fn one_of(&self, all: Nanos) -> Nanos {
        // A division takes long, and hardly any task stands for others.
        let one = if self.weight == 1 { all.0 } else { all.0 / u64::from(self.weight) };
        Nanos(one.saturating_sub(self.think_time.0))
    }

    /// A page was accessed in so much time since the task was ready for it: with it the access is done, unless its call wants more pages.
    #[inline]
    fn page_done(&mut self, took: Nanos, ends_call: bool) {
        let times = &mut self.times;
        if ends_call {
            let took = took + std::mem::take(&mut times.call);
            times.record(took, &mut self.runner.lost);
        } else {
            times.call += took;
        }
    }

    /// The next access, which was not a plain hit, is done except for its own time, including all that it stands for.
    #[inline]
    pub(crate) fn access_done(&mut self, price: Nanos) {
        let took = Nanos(self.runner.clock.0 - self.times.ready_at.0) + self.one_of(price);
        let ends_call = self.calls.is_none() || self.ends_call(self.accesses.pending()[0]);
        self.page_done(took, ends_call);
    }

    #[inline(never)]
    fn ends_call(&self, access: Access) -> bool {
        decode_call(access, self.calls.as_deref().unwrap_or_default()).ends_call()
    }

    /// The next accesses are hits, the first of which could have been made this much earlier. In memory of several kinds they have taken these times,
    /// each with its count. Only for accesses whose time is not their price: elsewhere the report knows it.
    #[inline(never)]
    pub(crate) fn hits_done(&mut self, hits: usize, late: Nanos, spans: Option<&[(Nanos, u64)]>) {
        if self.calls.is_some() {
            return self.hits_of_calls_done(hits, late, spans);
        }
        let Some(spans) = spans else {
            let first = self.accesses.pending()[0];
            let price = self.one_of(self.hit_price.of_object(first.object()).all);
            self.hit_price.forget_hit(first.object());
            return self.page_done(late + price, true);
        };
        let mut late = late;
        for &(span, count) in spans {
            let mut count = count / u64::from(self.weight);
            if late > Nanos::ZERO && count > 0 {
                self.page_done(std::mem::take(&mut late) + span, true);
                count -= 1;
            }
            self.times.record_hits(span, count);
        }
    }

    /// The next accesses are hits that larger calls ask for. Which page of a call was where is not known: each has taken what all have in the mean.
    fn hits_of_calls_done(&mut self, hits: usize, late: Nanos, spans: Option<&[(Nanos, u64)]>) {
        let sums = spans.into_iter().flatten();
        let (sum, count) = sums.fold((0, 0), |(sum, all), (span, count)| (sum + span.0 * count, all + count));
        let mut took = late;
        for at in 0..hits {
            let access = self.accesses.pending()[at];
            took += match spans {
                Some(_) => Nanos(sum / count.max(1)),
                None => self.one_of(self.hit_price.of_object(access.object()).all),
            };
            let ends_call = self.ends_call(access);
            self.page_done(std::mem::take(&mut took), ends_call);
        }
    }

    /// How long its accesses took, including those that were only counted; nothing if it is not measured.
    pub(crate) fn access_times(&self) -> Option<AccessTimes> {
        if !self.runner.is_timed {
            return None;
        }
        let mut times = self.times.clone();
        match &self.hit_price {
            HitPrice::Uniform(price) if self.calls.is_none() => {
                let told = times.count();
                times.record_hits(self.one_of(price.all), self.accesses.index.saturating_sub(told));
            }
            HitPrice::Uniform(_) => {}
            HitPrice::ByObject { objects, .. } => {
                for object in objects {
                    times.record_hits(self.one_of(object.price.all), object.hits);
                }
            }
        }
        Some(times)
    }

    /// Returns true if something is to be done before the next access.
    pub(crate) fn is_marked(&self) -> bool {
        self.marks.front().is_some_and(|mark| mark.index <= self.accesses.index)
    }

    /// What is to be done before the next access, each thing once.
    pub(crate) fn take_mark(&mut self) -> Option<Mark> {
        self.marks.pop_front_if(|mark| mark.index <= self.accesses.index)
    }

    /// Returns true if anything but the buffered accesses decides its next action.
    #[inline]
    pub(crate) fn has_more_to_do(&self) -> bool {
        self.accesses.pending().is_empty()
            || self.timetable.is_some()
            || self.turn.is_some()
            || self.begin.next.is_some()
            || !self.marks.is_empty()
            || !self.kernel_blocks.is_empty()
            || self.runner.memstall.is_some()
            || self.scan_due != NEVER
            || self.commits.as_ref().is_some_and(|commits| commits.is_due())
    }

    /// The next accesses to an object are those of a recorded call.
    pub(crate) fn begin_call(&mut self, ObjectId(object): ObjectId, call: FileCall) {
        if let Some(calls) = self.calls.as_mut().and_then(|calls| calls.get_mut(object as usize)) {
            *calls = Calls::recorded(call);
        }
    }

    /// What the kernel has taken or given back next, if it has by now.
    pub(crate) fn take_block_call(&mut self) -> Option<BlockCall> {
        let &(at, call) = self.kernel_blocks.front()?;
        if at > self.runner.clock {
            return None;
        }
        self.kernel_blocks.pop_front();
        Some(call)
    }

    /// The next access has arrived at `at`, which is past: what it has waited for its turn counts as part of it.
    pub(crate) fn has_arrived(&mut self, at: Nanos) {
        let Runner { clock, is_timed, lost, .. } = &mut self.runner;
        if *is_timed {
            if at > self.times.ready_at {
                // The one before was done by then: since it has arrived, it has waited for a CPU.
                lost.clear();
                lost.add(Cause::Cpu, Nanos(clock.0 - at.0));
            } else {
                lost.add(Cause::Turn, Nanos(self.times.ready_at.0 - at.0));
            }
        }
        self.times.ready_at = at;
    }

    /// The task's next accesses are made: one behind the other, of which the last may have made a file due.
    #[inline]
    pub(crate) fn advance(&mut self, accesses: usize) {
        if self.commits.is_some() {
            self.note_writes(accesses);
        }
        self.accesses.advance(accesses);
    }

    #[cold]
    fn note_writes(&mut self, accesses: usize) {
        let commits = self.commits.as_mut().expect("it makes files durable");
        commits.note(&self.accesses.pending()[..accesses]);
    }

    /// Number of hits from the next access on that may be served in one go, among the buffered ones. The limits are the next mark or fsync, and that
    /// the task's clock does not pass `horizon` by more than one hit, if each takes this much longer than its price.
    pub(crate) fn hits_allowed(&self, now: Nanos, horizon: Nanos, longer: u64) -> usize {
        let pending = self.accesses.pending().len() as u64;
        let span = horizon.0.saturating_sub(now.0);
        let each = self.hit_price.dearest() + longer * u64::from(self.weight);
        // Hits without a price take no time, so nothing bounds them.
        let within = if each.saturating_mul(pending) <= span { pending } else { (span / each).max(1) };
        let index = self.accesses.index;
        let mark = self.marks.front().map_or(u64::MAX, |mark| mark.index - index);
        let pace =
            self.timetable.as_ref().map_or(u64::MAX, |timetable| timetable.starting_by(index, horizon));
        let turn = self.turn.as_ref().map_or(u64::MAX, |turn| turn.granted);
        let allowed = pending.min(within).min(mark).min(pace).min(turn) as usize;
        match &self.commits {
            None => allowed,
            Some(commits) => commits.until_due(&self.accesses.pending()[..allowed]),
        }
    }

    /// Number of buffered accesses before the next mark, fsync or other call for a file.
    #[inline]
    pub(crate) fn accesses_until_mark(&self) -> usize {
        let pending = self.accesses.pending();
        let mark = self.marks.front().map_or(u64::MAX, |mark| mark.index - self.accesses.index);
        let allowed = mark.min(pending.len() as u64) as usize;
        self.commits.as_ref().map_or(allowed, |commits| commits.until_due(&pending[..allowed]))
    }

    /// Returns true if anything but the end of the access before decides when its accesses begin.
    pub(crate) fn has_pace(&self) -> bool {
        self.timetable.is_some() || self.turn.is_some() || !self.kernel_blocks.is_empty()
    }

    /// Start and end of the next `hits` accesses, which take this much `work`. The first may start now. Time between the two ends that is not work
    /// counts as idling before the first.
    pub(crate) fn span_of_hits(&mut self, now: Nanos, hits: usize, work: Nanos) -> (Nanos, Nanos) {
        match self.timetable {
            None => (now, now + work),
            Some(_) => self.timed_span_of_hits(now, hits, work),
        }
    }

    #[cold]
    fn timed_span_of_hits(&mut self, now: Nanos, hits: usize, work: Nanos) -> (Nanos, Nanos) {
        let timetable = self.timetable.as_mut().expect("its accesses have times");
        // Starts lie on one line, so the latest end comes either from the first access pushing all others, or from the last
        // one starting on time.
        let last = timetable.start_of(self.accesses.index + hits as u64 - 1)
            + self.hit_price.of(&self.accesses.pending()[hits - 1..hits]).all;
        let ended = last.max(now + work);
        (Nanos(ended.0 - work.0), ended)
    }
}

/// What a program does before its first access.
pub(crate) struct Begin {
    pub(crate) advice: Vec<(ObjectId, Advice)>,
    pub(crate) will_need: Vec<ObjectId>,
    /// How much of `will_need` is done; `None`: all of it.
    pub(crate) next: Option<usize>,
}

impl Begin {
    fn new(advice: Vec<(ObjectId, Advice)>, will_need: Vec<ObjectId>) -> Begin {
        let mut begin = Begin { advice, will_need, next: None };
        begin.again();
        begin
    }

    /// The program restarts.
    pub(crate) fn again(&mut self) {
        self.next = (!self.advice.is_empty() || !self.will_need.is_empty()).then_some(0);
    }
}

/// What hits of a task cost: CPU time of the channel and thinking.
#[derive(Clone, Debug)]
pub(crate) enum HitPrice {
    /// Every object costs the same, as nearly always.
    Uniform(Price),
    /// The price of a hit, by object.
    ByObject {
        objects: Vec<Priced>,
        /// Nanoseconds of the most expensive hit of any object.
        dearest: u64,
    },
}

/// What hits of one object cost, and how many there were that nothing held up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Priced {
    price: Price,
    hits: u64,
}

/// What hits cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Price {
    pub(crate) all: Nanos,
    /// Part of it in user space: thinking, and loads and stores; the rest is a system call.
    pub(crate) user: Nanos,
}

impl Price {
    fn and(self, other: Price) -> Price {
        Price { all: self.all + other.all, user: self.user + other.user }
    }

    fn new(channel: Channel, think_time: Nanos, weight: u32, costs: &Costs) -> Price {
        let hit = costs.hit(channel).0;
        let in_user_space = if channel == Channel::Mapped { hit } else { 0 };
        let weight = u64::from(weight);
        let (all, user) = ((hit + think_time.0) * weight, (in_user_space + think_time.0) * weight);
        Price { all: Nanos(all), user: Nanos(user) }
    }
}

impl HitPrice {
    fn new(channels: &[Channel], think_time: Nanos, weight: u32, costs: &Costs) -> HitPrice {
        let prices: Vec<Price> =
            channels.iter().map(|&channel| Price::new(channel, think_time, weight, costs)).collect();
        match prices.split_first() {
            None => HitPrice::Uniform(Price { all: think_time, user: think_time }),
            Some((first, rest)) if rest.iter().all(|price| price == first) => HitPrice::Uniform(*first),
            _ => HitPrice::ByObject {
                dearest: prices.iter().map(|price| price.all.0).max().unwrap_or(0),
                objects: prices.into_iter().map(|price| Priced { price, hits: 0 }).collect(),
            },
        }
    }

    fn dearest(&self) -> u64 {
        match self {
            HitPrice::Uniform(price) => price.all.0,
            HitPrice::ByObject { dearest, .. } => *dearest,
        }
    }

    /// The price of a hit of this object. One without a channel is one the engine will refuse; it costs nothing here.
    fn of_object(&self, object: u32) -> Price {
        match self {
            HitPrice::Uniform(price) => *price,
            HitPrice::ByObject { objects, .. } => {
                objects.get(object as usize).copied().unwrap_or_default().price
            }
        }
    }

    /// The price of these accesses if they are all hits.
    pub(crate) fn of(&self, accesses: &[Access]) -> Price {
        match self {
            HitPrice::Uniform(price) => {
                let count = accesses.len() as u64;
                Price { all: Nanos(price.all.0 * count), user: Nanos(price.user.0 * count) }
            }
            HitPrice::ByObject { objects, .. } => {
                accesses.iter().map(|access| priced(objects, access).price).fold(Price::default(), Price::and)
            }
        }
    }

    /// The price of accesses that are all hits: they are counted where their price depends on the object.
    pub(crate) fn of_hits(&mut self, accesses: &[Access]) -> Price {
        match self {
            HitPrice::Uniform(_) => self.of(accesses),
            HitPrice::ByObject { objects, .. } => count_by_object(objects, accesses),
        }
    }

    /// A hit that was counted is reported in another way.
    fn forget_hit(&mut self, object: u32) {
        if let HitPrice::ByObject { objects, .. } = self
            && let Some(object) = objects.get_mut(object as usize)
        {
            object.hits -= 1;
        }
    }
}

/// An object without a channel is one the engine will refuse; it costs nothing here.
fn priced(objects: &[Priced], access: &Access) -> Priced {
    objects.get(access.object() as usize).copied().unwrap_or_default()
}

#[inline(never)]
fn count_by_object(objects: &mut [Priced], accesses: &[Access]) -> Price {
    let mut count = |access: &Access| {
        let Some(object) = objects.get_mut(access.object() as usize) else { return Price::default() };
        object.hits += 1;
        object.price
    };
    accesses.iter().fold(Price::default(), |sum, access| sum.and(count(access)))
}

/// What is left of a task's accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refill {
    /// At least one is pending.
    Pending,
    /// A loop has ended and another follows. Told once, and only where something happens in between.
    LoopOver,
    /// No accesses are left.
    End,
}

/// The accesses of a task, pulled in chunks, loop after loop.
pub(crate) struct Accesses {
    source: StreamSource,
    stream: Option<Box<dyn AccessStream>>,
    loops_left: u32,
    loops_begun: u32,
    /// Something happens between two loops.
    stops_between: bool,
    chunk: Vec<Access>,
    position: usize,
    /// Number of the next access, across loops.
    pub(crate) index: u64,
}

impl Accesses {
    fn new(source: StreamSource, loops: u32, stops_between: bool) -> Accesses {
        Accesses {
            source,
            stream: None,
            loops_left: loops,
            loops_begun: 0,
            stops_between,
            chunk: Vec::new(),
            position: 0,
            index: 0,
        }
    }

    /// The buffered accesses.
    pub(crate) fn pending(&self) -> &[Access] {
        &self.chunk[self.position..]
    }

    /// Makes sure that at least one access is pending, unless a loop has ended that something follows on.
    pub(crate) fn refill(&mut self) -> Result<Refill, TraceError> {
        while self.pending().is_empty() {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None if self.loops_left == 0 => return Ok(Refill::End),
                None => {
                    self.loops_left -= 1;
                    self.loops_begun += 1;
                    self.stream.insert((self.source)(self.loops_begun - 1)?)
                }
            };
            self.chunk.clear();
            self.position = 0;
            if stream.fill(&mut self.chunk, CHUNK)? == 0 {
                self.stream = None;
                if self.stops_between && self.loops_left > 0 {
                    return Ok(Refill::LoopOver);
                }
            }
        }
        Ok(Refill::Pending)
    }

    /// `count` pending accesses are done.
    pub(crate) fn advance(&mut self, count: usize) {
        self.position += count;
        self.index += count as u64;
    }
}

/// An access in the engine's terms.
#[inline]
pub(crate) fn decode(access: Access) -> engine::Access {
    engine::Access::new(ObjectId(access.object()), access.page(), access.is_write())
}
