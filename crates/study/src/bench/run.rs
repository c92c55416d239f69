//! From a trace to its cells: misses of each policy at each size.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use pageout_cache::curve::distances::Distances;
use pageout_cache::curve::marks::Marks;
use pageout_cache::curve::sampling::{Estimate, Refused, Samples};
use pageout_cache::{Choice, Opt, OptMemory, Simulation};
use pageout_workload::TraceError;
use pageout_workload::trace::DenseReader;

use super::Trace;
use crate::result::parallel;
use crate::{Stage, Watcher};

/// Accesses between two looks at whether the runs are to end.
const BLOCK: usize = 1 << 16;
/// From so many sizes on, stack distances at all sizes cost less than a mark at each.
const MARKS_MAX: usize = 250;
/// Blocks on their way to the simulations of a thread.
const WAITING: usize = 4;

/// What is asked of a trace.
pub struct Question<'a> {
    /// What it is called where progress is shown.
    pub name: String,
    /// Textbook policies.
    pub policies: &'a [Choice],
    /// Sizes of memory in pages, one at least each, rising.
    pub sizes: &'a [u32],
    /// So many accesses come before those that count.
    pub warm_up: u64,
    /// Seed of policies that draw.
    pub seed: u64,
    /// Simulations at the same time; 0 is one a CPU.
    pub jobs: usize,
    /// Who watches, and may have it end early.
    pub watcher: &'a dyn Watcher,
}

/// What came of a policy at a size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell {
    /// So many misses, counted.
    Misses(u64),
    /// A share of misses, from samples.
    Estimate(Estimate),
    /// It was not run: an interruption came before.
    NotRun,
    /// It takes all accesses in memory, and they are past the budget.
    NoRoom,
}

/// What came of a question.
pub struct Answer {
    /// By policy, by size.
    pub cells: Vec<Vec<Cell>>,
    /// The signal that ended it, if one did.
    pub interrupted: Option<&'static str>,
}

/// Samples of a trace, for estimates.
pub struct Sampled(Samples);

impl Sampled {
    /// Samples of a trace at a rate. Errors: why there are none.
    pub fn new(pages: &[u32], rate: f64, warm_up: u64) -> Result<Sampled, Refused> {
        Samples::new(pages, rate, usize::try_from(warm_up).unwrap_or(usize::MAX)).map(Sampled)
    }

    /// Pages of the smallest sample.
    pub fn pages(&self) -> u32 {
        self.0.samples().iter().map(|sample| sample.pages).min().unwrap_or(0)
    }
}

/// One simulation, or several that cost one.
#[derive(Clone, Copy)]
enum Job {
    /// LRU at all sizes.
    Curve { policy: usize },
    /// A policy at a size.
    One { policy: usize, size: usize },
}

/// A simulation under way.
enum Running<'a> {
    Marks { marks: Marks, before: Vec<u64> },
    Distances { distances: Distances, sizes: &'a [u32], before: Vec<u64> },
    One { simulation: Box<dyn Simulation>, misses: u64 },
    Opt { memory: OptMemory<'a>, misses: u64 },
}

impl Running<'_> {
    fn run(&mut self, pages: &[u32]) {
        match self {
            Running::Marks { marks, .. } => marks.run(pages),
            Running::Distances { distances, .. } => distances.run(pages),
            Running::One { simulation, misses } => *misses += simulation.run(pages),
            Running::Opt { memory, misses } => *misses += memory.run(pages.len()),
        }
    }

    /// From now on misses count.
    fn begin_to_count(&mut self) {
        let so_far = self.misses();
        match self {
            Running::Marks { before, .. } | Running::Distances { before, .. } => *before = so_far,
            Running::One { misses, .. } | Running::Opt { misses, .. } => *misses = 0,
        }
    }

    /// Misses that counted, at each size that it is about.
    fn misses(&self) -> Vec<u64> {
        let (all, before) = match self {
            Running::Marks { marks, before } => (marks.misses(), before),
            Running::Distances { distances, sizes, before } => {
                let all = distances.misses();
                // What is larger than all pages misses each of them once.
                let at = |&size: &u32| *all.get(size as usize - 1).or(all.last()).unwrap_or(&0);
                (sizes.iter().map(at).collect(), before)
            }
            Running::One { misses, .. } | Running::Opt { misses, .. } => return vec![*misses],
        };
        let before = before.iter().copied().chain(std::iter::repeat(0));
        all.into_iter().zip(before).map(|(all, before)| all - before).collect()
    }
}

impl Question<'_> {
    /// Simulates the trace under each policy at each size.
    pub fn exactly(&self, trace: &Trace) -> Result<Answer, TraceError> {
        let jobs = self.all_jobs();
        let work = trace.accesses.saturating_mul(jobs.len() as u64);
        self.watcher.begin(&Stage::Running { name: &self.name, runs: jobs.len(), accesses: Some(work) });
        let done = match &trace.pages {
            Some(pages) => Ok(self.in_memory(&jobs, pages)),
            None => self.streaming(&jobs, trace),
        };
        self.watcher.end();
        let mut cells = vec![vec![Cell::NotRun; self.sizes.len()]; self.policies.len()];
        for (job, done) in jobs.iter().zip(done?) {
            self.enter(&mut cells, *job, done);
        }
        Ok(self.answer(cells))
    }

    /// Estimates the same from samples.
    pub fn estimated(&self, sampled: &Sampled) -> Result<Answer, Refused> {
        let Sampled(samples) = sampled;
        let scaled =
            self.sizes.iter().map(|&size| samples.size(size)).collect::<Result<Vec<u32>, Refused>>()?;
        let mut distinct = scaled.clone();
        distinct.dedup();
        let small = Question { sizes: &distinct, name: self.name.clone(), warm_up: 0, ..*self };
        let jobs = small.all_jobs();
        let accesses: usize = samples.samples().iter().map(|sample| sample.accesses.len()).sum();
        let work = (accesses * jobs.len()) as u64;
        self.watcher.begin(&Stage::Running { name: &self.name, runs: jobs.len(), accesses: Some(work) });
        let futures: Vec<OnceLock<Opt>> = samples.samples().iter().map(|_| OnceLock::new()).collect();
        let done = parallel::map_while(jobs.len(), self.jobs, |at| {
            let of = |number: usize| {
                let sample = &samples.samples()[number];
                small.job(jobs[at], &sample.accesses, &futures[number], sample.warm_up)
            };
            (0..futures.len()).map(of).collect::<Option<Vec<Vec<u64>>>>()
        });
        self.watcher.end();
        let mut of_distinct = vec![vec![Cell::NotRun; distinct.len()]; self.policies.len()];
        for (at, by_sample) in done {
            let (policy, first) = jobs[at].place();
            for size in 0..by_sample[0].len() {
                let estimate = samples.estimate(by_sample.iter().map(|misses| misses[size]));
                of_distinct[policy][first + size] = Cell::Estimate(estimate);
            }
        }
        let at = |size: &u32| distinct.binary_search(size).expect("sizes rise, and so do their shares");
        let cells = of_distinct.iter().map(|row| scaled.iter().map(|size| row[at(size)]).collect());
        Ok(self.answer(cells.collect()))
    }

    fn answer(&self, cells: Vec<Vec<Cell>>) -> Answer {
        let is_whole = cells.iter().flatten().all(|cell| *cell != Cell::NotRun);
        Answer { cells, interrupted: self.watcher.stop().filter(|_| !is_whole) }
    }

    fn enter(&self, cells: &mut [Vec<Cell>], job: Job, done: Done) {
        let (policy, first) = job.place();
        match done {
            Done::Misses(misses) => {
                misses
                    .into_iter()
                    .enumerate()
                    .for_each(|(at, misses)| cells[policy][first + at] = Cell::Misses(misses));
            }
            Done::NotRun => {}
            Done::NoRoom => cells[policy][first] = Cell::NoRoom,
        }
    }

    /// The long ones first, so that none is left over at the end.
    fn all_jobs(&self) -> Vec<Job> {
        let is_curve = |policy: &Choice| policy.row().name == "lru" && self.sizes.len() > 1;
        let curves = (0..self.policies.len()).filter(|&at| is_curve(&self.policies[at]));
        let others = (0..self.policies.len()).filter(|&at| !is_curve(&self.policies[at]));
        let others =
            others.flat_map(|policy| (0..self.sizes.len()).map(move |size| Job::One { policy, size }));
        curves.map(|policy| Job::Curve { policy }).chain(others).collect()
    }

    fn begin<'a>(&'a self, job: Job, future: impl FnOnce() -> Option<&'a Opt<'a>>) -> Option<Running<'a>> {
        match job {
            Job::Curve { .. } if self.sizes.len() <= MARKS_MAX => {
                Some(Running::Marks { marks: Marks::new(self.sizes), before: Vec::new() })
            }
            Job::Curve { .. } => Some(Running::Distances {
                distances: Distances::default(),
                sizes: self.sizes,
                before: Vec::new(),
            }),
            Job::One { policy, size } => {
                match self.policies[policy].simulation(self.sizes[size], self.seed) {
                    Some(simulation) => Some(Running::One { simulation, misses: 0 }),
                    None => Some(Running::Opt { memory: future()?.memory(self.sizes[size]), misses: 0 }),
                }
            }
        }
    }

    /// Misses of one job over accesses in memory; nothing if it is to end early.
    fn job<'a>(
        &'a self,
        job: Job,
        pages: &'a [u32],
        future: &'a OnceLock<Opt<'a>>,
        warm_up: usize,
    ) -> Option<Vec<u64>> {
        let mut running = self.begin(job, || Some(future.get_or_init(|| Opt::new(pages))))?;
        let (warming, counted) = pages.split_at(warm_up.min(pages.len()));
        for (part, counts) in [(warming, false), (counted, true)] {
            if counts && !warming.is_empty() {
                running.begin_to_count();
            }
            for block in part.chunks(BLOCK) {
                if self.watcher.stop().is_some() {
                    return None;
                }
                running.run(block);
                self.watcher.advance(block.len() as u64);
            }
        }
        Some(running.misses())
    }

    fn in_memory(&self, jobs: &[Job], pages: &[u32]) -> Vec<Done> {
        let future = OnceLock::new();
        let warm_up = usize::try_from(self.warm_up).unwrap_or(usize::MAX);
        let done =
            parallel::map_while(jobs.len(), self.jobs, |at| self.job(jobs[at], pages, &future, warm_up));
        let mut all: Vec<Done> = jobs.iter().map(|_| Done::NotRun).collect();
        done.into_iter().for_each(|(at, misses)| all[at] = Done::Misses(misses));
        all
    }

    /// Reads the trace once more, and hands each block to all simulations.
    fn streaming(&self, jobs: &[Job], trace: &Trace) -> Result<Vec<Done>, TraceError> {
        let mut reader = DenseReader::open(&trace.path, &trace.options)?;
        let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if self.jobs == 0 { cpus } else { self.jobs }.clamp(1, jobs.len().max(1));
        let mut all: Vec<Done> = jobs.iter().map(|_| Done::NotRun).collect();
        let read = thread::scope(|scope| {
            let mut senders = Vec::new();
            let mut workers = Vec::new();
            for thread in 0..threads {
                let (send, blocks) = sync_channel(WAITING);
                senders.push(send);
                let own: Vec<usize> = (0..jobs.len()).skip(thread).step_by(threads).collect();
                workers.push(scope.spawn(move || self.follow(jobs, &own, &blocks)));
            }
            let read = self.hand_out(&mut reader, &senders);
            drop(senders);
            for worker in workers {
                let done = worker.join().expect("a simulation that panicked has ended the scope");
                done.into_iter().for_each(|(at, done)| all[at] = done);
            }
            read
        });
        if !read? {
            // What was seen of the trace is no result of it.
            all.iter_mut().for_each(|done| *done = Done::NotRun);
        }
        Ok(all)
    }

    /// Whether all of the trace was handed out.
    fn hand_out(&self, reader: &mut DenseReader, to: &[SyncSender<Block>]) -> Result<bool, TraceError> {
        let mut at = 0;
        loop {
            let mut pages = Vec::with_capacity(BLOCK);
            if !reader.read(&mut pages)? {
                return Ok(true);
            }
            let begins = at;
            at += pages.len() as u64;
            let warm_up = self.warm_up.clamp(begins, at) - begins;
            let block = Block {
                warm_up: warm_up as usize,
                begins_to_count: begins < self.warm_up && self.warm_up <= at,
                pages: pages.into(),
            };
            to.iter().for_each(|send| _ = send.send(block.clone()));
            if self.watcher.stop().is_some() {
                return Ok(false);
            }
        }
    }

    /// Runs some of the jobs over blocks as they come.
    fn follow(&self, jobs: &[Job], own: &[usize], blocks: &Receiver<Block>) -> Vec<(usize, Done)> {
        let mut running: Vec<Option<Running>> = own.iter().map(|&at| self.begin(jobs[at], || None)).collect();
        for block in blocks {
            let (warming, counted) = block.pages.split_at(block.warm_up);
            for running in running.iter_mut().flatten() {
                running.run(warming);
                if block.begins_to_count {
                    running.begin_to_count();
                }
                running.run(counted);
            }
            self.watcher.advance((block.pages.len() * own.len()) as u64);
        }
        let done = running
            .iter()
            .map(|running| running.as_ref().map_or(Done::NoRoom, |running| Done::Misses(running.misses())));
        own.iter().copied().zip(done).collect()
    }
}

impl Job {
    /// The policy, and the first size.
    fn place(self) -> (usize, usize) {
        match self {
            Job::Curve { policy } => (policy, 0),
            Job::One { policy, size } => (policy, size),
        }
    }
}

/// What came of a job.
enum Done {
    Misses(Vec<u64>),
    NotRun,
    NoRoom,
}

/// Accesses on their way to the simulations.
#[derive(Clone)]
struct Block {
    pages: Arc<[u32]>,
    /// So many of them come before those that count.
    warm_up: usize,
    /// Whether the first that counts is among them, or comes next.
    begins_to_count: bool,
}
