//! From a trace to its cells: misses of each policy at each size.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use pageout_cache::curve::distances::Distances;
use pageout_cache::curve::marks::Marks;
use pageout_cache::curve::sampling::{Estimate, PAGES_MIN, Refused, SALTS, Sampler, Samples};
use pageout_cache::{Choice, Opt, OptMemory, Simulation};
use pageout_policy::Fault;
use pageout_workload::TraceError;
use pageout_workload::trace::{DenseReader, Removal};

use super::Trace;
use crate::result::parallel;
use crate::{Stage, Watcher};

/// Accesses between two looks at whether the runs are to end.
const BLOCK: usize = 1 << 16;
/// From so many sizes on, stack distances at all sizes cost less than a mark at each.
pub(super) const MARKS_MAX: usize = 250;
/// Blocks on their way to the simulations of a thread.
const WAITING: usize = 4;

/// The question about a trace.
pub struct Question<'a> {
    /// The name for progress output.
    pub name: String,
    /// Textbook policies.
    pub policies: &'a [Choice],
    /// Sizes of memory in pages, one at least each, rising.
    pub sizes: &'a [u32],
    /// Number of accesses before the first that counts.
    pub warm_up: u64,
    /// Seed of policies that draw.
    pub seed: u64,
    /// Simulations at the same time; 0 is one a CPU.
    pub jobs: usize,
    /// The watcher, which can end the simulations early.
    pub watcher: &'a dyn Watcher,
}

/// The result of a policy at a size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell {
    /// So many misses, counted.
    Misses(u64),
    /// So many misses, counted, of the first so many accesses that count: an interruption came then.
    Partial {
        /// Misses.
        misses: u64,
        /// Accesses.
        accesses: u64,
    },
    /// A share of misses, from samples.
    Estimate(Estimate),
    /// It was not run: an interruption came before.
    NotRun,
    /// It takes all accesses in memory, and they are past the budget.
    NoRoom,
    /// Its policy broke the contract: [`Answer::broken`] says how.
    Broken,
}

/// A policy that broke the contract.
#[derive(Clone, PartialEq, Debug)]
pub struct Broken {
    /// Its number in the question.
    pub policy: usize,
    /// The number of the size.
    pub size: usize,
    /// The error, with its call.
    pub fault: Fault,
}

/// A figure that a policy reports.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its number in the question.
    pub policy: usize,
    /// The number of the size.
    pub size: usize,
    /// Its name for the figure.
    pub name: String,
    /// The figure.
    pub value: f64,
}

/// The answer to a question.
pub struct Answer {
    /// By policy, by size.
    pub cells: Vec<Vec<Cell>>,
    /// Policies that broke the contract.
    pub broken: Vec<Broken>,
    /// Figures that policies report, those of a cell one after the other.
    pub figures: Vec<Figure>,
    /// The signal that ended it, if one did.
    pub interrupted: Option<&'static str>,
}

/// Samples of a trace, for estimates.
pub struct Sampled(Samples);

/// The reason why there are no samples.
#[derive(Debug)]
pub enum NotSampled {
    /// They would say too little.
    Refused(Refused),
    /// The trace could not be read again.
    Trace(TraceError),
    /// It was to end early.
    Stopped,
}

impl From<Refused> for NotSampled {
    fn from(refused: Refused) -> NotSampled {
        NotSampled::Refused(refused)
    }
}

impl From<TraceError> for NotSampled {
    fn from(error: TraceError) -> NotSampled {
        NotSampled::Trace(error)
    }
}

impl Sampled {
    /// Samples of a trace at a rate. It is read once more where it is not in memory.
    pub fn of(trace: &Trace, rate: f64, warm_up: u64, watcher: &dyn Watcher) -> Result<Sampled, NotSampled> {
        if let Some(pages) = &trace.pages {
            return Ok(Sampled(Samples::new(pages, rate, warm_up)?));
        }
        let mut sampler = Sampler::new(rate, warm_up)?;
        let bytes = trace.path.metadata().map_or(0, |file| file.len());
        watcher.begin(&Stage::Decoding { path: &trace.path, bytes });
        let read = trace.each_block(watcher, &mut |pages| sampler.add(pages));
        watcher.end();
        match read? {
            true => Ok(Sampled(sampler.finish()?)),
            false => Err(NotSampled::Stopped),
        }
    }

    /// Returns the sample rate at which all accesses fit into `bytes` of memory: a tenth at most. Errors: samples that fit would have
    /// too few pages.
    pub fn rate_within(trace: &Trace, bytes: u64) -> Result<f64, Refused> {
        // The page and the next use of each access, in all samples.
        let each = trace.accesses.max(1) as f64 * 8.0 * SALTS as f64;
        let rate = (bytes as f64 / each).min(0.1);
        let pages = f64::from(trace.distinct_pages) * rate;
        // Some samples have fewer pages than others.
        let least = 1.1 * f64::from(PAGES_MIN) / f64::from(trace.distinct_pages.max(1));
        match rate >= least {
            true => Ok(rate),
            false => Err(Refused::Pages { pages: pages as u32, rate: least }),
        }
    }

    /// Pages of the smallest sample.
    pub fn pages(&self) -> u32 {
        self.0.samples().iter().map(|sample| sample.pages).min().unwrap_or(0)
    }
}

/// The data that an estimate is based on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SampledFrom {
    /// The share of pages that a sample has.
    pub rate: f64,
    /// Pages of the smallest sample.
    pub pages: u32,
}

/// One simulation, or several that cost one.
#[derive(Clone, Copy)]
enum Job {
    /// LRU at all sizes.
    Curve { policy: usize },
    /// A policy at a size.
    One { policy: usize, size: usize },
}

/// A simulation in progress.
enum Running<'a> {
    Marks { marks: Marks, before: Vec<u64> },
    Distances { distances: Distances, sizes: &'a [u32], before: Vec<u64> },
    One { simulation: Box<dyn Simulation>, misses: u64 },
    Opt { memory: OptMemory<'a>, misses: u64 },
}

impl Running<'_> {
    /// Its final result.
    fn done(&self) -> Done {
        if let Some(fault) = self.fault() {
            return Done::Broken(fault.clone());
        }
        let mut figures = Vec::new();
        if let Running::One { simulation, .. } = self {
            simulation.figures(&mut |name, value| figures.push((name.to_owned(), value)));
        }
        Done::Misses(self.misses(), figures)
    }

    /// Invalid answers of its policy.
    fn fault(&self) -> Option<&Fault> {
        match self {
            Running::One { simulation, .. } => simulation.fault(),
            _ => None,
        }
    }

    /// Makes these accesses, the first of which has the number `begins`, and the removals among them.
    fn run_with(&mut self, pages: &[u32], begins: u64, removals: &[Removal]) {
        let ends = begins + pages.len() as u64;
        let first = removals.partition_point(|removal| removal.access < begins);
        let mut at = 0;
        for removal in removals[first..].iter().take_while(|removal| removal.access < ends) {
            let until = (removal.access - begins) as usize;
            self.run(&pages[at..until]);
            at = until;
            if let Running::One { simulation, .. } = self {
                simulation.remove(removal.page);
            }
        }
        self.run(&pages[at..]);
    }

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
        let jobs = self.all_jobs(trace.has_removals());
        let work = trace.accesses.saturating_mul(jobs.len() as u64);
        self.watcher.begin(&Stage::Running { name: &self.name, runs: jobs.len(), accesses: Some(work) });
        let done = match &trace.pages {
            Some(pages) => Ok(self.in_memory(&jobs, pages, trace)),
            None => self.streaming(&jobs, trace),
        };
        self.watcher.end();
        let cells = vec![vec![Cell::NotRun; self.sizes.len()]; self.policies.len()];
        let mut answer = Answer { cells, broken: Vec::new(), figures: Vec::new(), interrupted: None };
        for (job, done) in jobs.iter().zip(done?) {
            answer.enter(*job, done);
        }
        Ok(self.interrupted(answer))
    }

    /// Estimates the same from samples.
    pub fn estimated(&self, sampled: &Sampled) -> Result<Answer, Refused> {
        let Sampled(samples) = sampled;
        let scaled =
            self.sizes.iter().map(|&size| samples.size(size)).collect::<Result<Vec<u32>, Refused>>()?;
        let mut distinct = scaled.clone();
        distinct.dedup();
        let small = Question { sizes: &distinct, name: self.name.clone(), warm_up: 0, ..*self };
        let jobs = small.all_jobs(false);
        let accesses: usize = samples.samples().iter().map(|sample| sample.accesses.len()).sum();
        let work = (accesses * jobs.len()) as u64;
        self.watcher.begin(&Stage::Running { name: &self.name, runs: jobs.len(), accesses: Some(work) });
        let futures: Vec<OnceLock<Opt>> = samples.samples().iter().map(|_| OnceLock::new()).collect();
        let done = parallel::map_while(jobs.len(), self.jobs, |at| {
            let of = |number: usize| {
                let sample = &samples.samples()[number];
                let future = || Some(futures[number].get_or_init(|| Opt::new(&sample.accesses)));
                match small.job(jobs[at], &sample.accesses, &[], future, sample.warm_up) {
                    Done::Misses(misses, _) => Some(Ok(misses)),
                    Done::Broken(fault) => Some(Err(fault)),
                    _ => None,
                }
            };
            (0..futures.len()).map(of).collect::<Option<Result<Vec<Vec<u64>>, Fault>>>()
        });
        self.watcher.end();
        let mut of_distinct = vec![vec![Cell::NotRun; distinct.len()]; self.policies.len()];
        let mut broken = Vec::new();
        for (at, by_sample) in done {
            let (policy, first) = jobs[at].place();
            match by_sample {
                Ok(by_sample) => {
                    for size in 0..by_sample[0].len() {
                        let estimate = samples.estimate(by_sample.iter().map(|misses| misses[size]));
                        of_distinct[policy][first + size] = Cell::Estimate(estimate);
                    }
                }
                Err(fault) => {
                    of_distinct[policy][first] = Cell::Broken;
                    broken.push(Broken { policy, size: first, fault });
                }
            }
        }
        let at = |size: &u32| distinct.binary_search(size).expect("sizes rise, and so do their shares");
        let cells = of_distinct.iter().map(|row| scaled.iter().map(|size| row[at(size)]).collect());
        for broken in &mut broken {
            // The first of those that have this size of a sample.
            broken.size = scaled.iter().position(|size| at(size) == broken.size).expect("it is one of them");
        }
        let answer = Answer { cells: cells.collect(), broken, figures: Vec::new(), interrupted: None };
        Ok(self.interrupted(answer))
    }

    /// Estimates all of it from samples at a rate.
    pub fn sampled(&self, trace: &Trace, rate: f64) -> Result<(Answer, SampledFrom), NotSampled> {
        let sampled = Sampled::of(trace, rate, self.warm_up, self.watcher)?;
        let from = SampledFrom { rate, pages: sampled.pages() };
        Ok((self.estimated(&sampled)?, from))
    }

    /// Estimates bounds that did not fit in memory, from samples of at most `bytes_max`. If even the samples are too small for that, the
    /// bounds stay missing.
    pub fn sample_bounds(
        &self,
        trace: &Trace,
        bytes_max: u64,
        answer: &mut Answer,
    ) -> Result<Option<SampledFrom>, TraceError> {
        let is_bound = |at: &usize| answer.cells[*at].contains(&Cell::NoRoom);
        let bounds: Vec<usize> = (0..self.policies.len()).filter(is_bound).collect();
        let Ok(rate) = Sampled::rate_within(trace, bytes_max) else { return Ok(None) };
        if bounds.is_empty() || self.watcher.stop().is_some() {
            return Ok(None);
        }
        let policies: Vec<Choice> = bounds.iter().map(|&at| self.policies[at].clone()).collect();
        let question = Question { policies: &policies, name: self.name.clone(), ..*self };
        match question.sampled(trace, rate) {
            Ok((of_bounds, from)) => {
                for (at, cells) in bounds.into_iter().zip(of_bounds.cells) {
                    answer.cells[at] = cells;
                }
                answer.interrupted = answer.interrupted.or(of_bounds.interrupted);
                Ok(Some(from))
            }
            Err(NotSampled::Trace(error)) => Err(error),
            Err(NotSampled::Refused(_)) => Ok(None),
            Err(NotSampled::Stopped) => {
                for at in bounds {
                    answer.cells[at].fill(Cell::NotRun);
                }
                answer.interrupted = answer.interrupted.or(self.watcher.stop());
                Ok(None)
            }
        }
    }

    /// Says what has ended it, where something has.
    fn interrupted(&self, answer: Answer) -> Answer {
        let is_left = |cell: &Cell| matches!(cell, Cell::NotRun | Cell::Partial { .. });
        let is_whole = !answer.cells.iter().flatten().any(is_left);
        Answer { interrupted: self.watcher.stop().filter(|_| !is_whole), ..answer }
    }

    /// The long ones first, so that none is left over at the end.
    /// Deletes take pages out of the middle of a stack, so LRU is run at each size then.
    fn all_jobs(&self, has_removals: bool) -> Vec<Job> {
        let is_curve = |policy: &Choice| policy.name() == "lru" && self.sizes.len() > 1 && !has_removals;
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

    /// Misses of one job over accesses in memory.
    fn job<'a>(
        &'a self,
        job: Job,
        pages: &'a [u32],
        removals: &[Removal],
        future: impl FnOnce() -> Option<&'a Opt<'a>>,
        warm_up: usize,
    ) -> Done {
        let Some(mut running) = self.begin(job, future) else {
            return Done::NoRoom;
        };
        let (warming, counted) = pages.split_at(warm_up.min(pages.len()));
        for (at, block) in warming.chunks(BLOCK).enumerate() {
            if self.watcher.stop().is_some() {
                return Done::NotRun;
            }
            running.run_with(block, (at * BLOCK) as u64, removals);
            if let Some(fault) = running.fault() {
                return Done::Broken(fault.clone());
            }
            self.watcher.advance(block.len() as u64);
        }
        if !warming.is_empty() {
            running.begin_to_count();
        }
        for (at, block) in counted.chunks(BLOCK).enumerate() {
            if self.watcher.stop().is_some() {
                return Done::of_first(&running, (at * BLOCK) as u64);
            }
            running.run_with(block, (warming.len() + at * BLOCK) as u64, removals);
            if let Some(fault) = running.fault() {
                return Done::Broken(fault.clone());
            }
            self.watcher.advance(block.len() as u64);
        }
        running.done()
    }

    fn in_memory(&self, jobs: &[Job], pages: &[u32], trace: &Trace) -> Vec<Done> {
        let has_bound = self.policies.iter().any(Choice::is_bound);
        let renamed = if has_bound && !trace.removals.is_empty() { trace.renamed() } else { None };
        let futured = renamed.as_deref().unwrap_or(pages);
        let future = OnceLock::new();
        let warm_up = usize::try_from(self.warm_up).unwrap_or(usize::MAX);
        let done = parallel::map_while(jobs.len(), self.jobs, |at| {
            let has_begun = self.watcher.stop().is_none();
            let future = || Some(future.get_or_init(|| Opt::new(futured)));
            has_begun.then(|| self.job(jobs[at], pages, &trace.removals, future, warm_up))
        });
        let mut all: Vec<Done> = jobs.iter().map(|_| Done::NotRun).collect();
        done.into_iter().for_each(|(at, done)| all[at] = done);
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
        let (is_whole, accesses) = read?;
        if !is_whole {
            let seen = accesses.saturating_sub(self.warm_up);
            all.iter_mut().for_each(|done| *done = std::mem::replace(done, Done::NotRun).cut_off(seen));
        }
        Ok(all)
    }

    /// True if all of the trace was handed out, and the number of accesses that were.
    fn hand_out(
        &self,
        reader: &mut DenseReader,
        to: &[SyncSender<Block>],
    ) -> Result<(bool, u64), TraceError> {
        let mut at = 0;
        loop {
            let (mut pages, mut removals) = (Vec::with_capacity(BLOCK), Vec::new());
            if !reader.read_with(&mut pages, &mut removals)? {
                return Ok((true, at));
            }
            let begins = at;
            at += pages.len() as u64;
            let warm_up = self.warm_up.clamp(begins, at) - begins;
            let block = Block {
                warm_up: warm_up as usize,
                begins_to_count: begins < self.warm_up && self.warm_up <= at,
                pages: pages.into(),
                begins,
                removals: removals.into(),
            };
            to.iter().for_each(|send| _ = send.send(block.clone()));
            if self.watcher.stop().is_some() {
                return Ok((false, at));
            }
        }
    }

    /// Runs some of the jobs over blocks as they come.
    fn follow(&self, jobs: &[Job], own: &[usize], blocks: &Receiver<Block>) -> Vec<(usize, Done)> {
        let mut running: Vec<Option<Running>> = own.iter().map(|&at| self.begin(jobs[at], || None)).collect();
        for block in blocks {
            let (warming, counted) = block.pages.split_at(block.warm_up);
            for running in running.iter_mut().flatten() {
                running.run_with(warming, block.begins, &block.removals);
                if block.begins_to_count {
                    running.begin_to_count();
                }
                running.run_with(counted, block.begins + warming.len() as u64, &block.removals);
            }
            self.watcher.advance((block.pages.len() * own.len()) as u64);
        }
        let done = running.iter().map(|running| running.as_ref().map_or(Done::NoRoom, Running::done));
        own.iter().copied().zip(done).collect()
    }
}

impl Answer {
    fn enter(&mut self, job: Job, done: Done) {
        let (policy, first) = job.place();
        let row = &mut self.cells[policy];
        match done {
            Done::Misses(misses, figures) => {
                misses.into_iter().zip(&mut row[first..]).for_each(|(of, cell)| *cell = Cell::Misses(of));
                let figure = |(name, value)| Figure { policy, size: first, name, value };
                self.figures.extend(figures.into_iter().map(figure));
            }
            Done::Partial(misses, accesses) => {
                for (misses, cell) in misses.into_iter().zip(&mut row[first..]) {
                    *cell = Cell::Partial { misses, accesses };
                }
            }
            Done::NotRun => {}
            Done::NoRoom => row[first] = Cell::NoRoom,
            Done::Broken(fault) => {
                row[first] = Cell::Broken;
                self.broken.push(Broken { policy, size: first, fault });
            }
        }
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

/// The result of a job.
enum Done {
    /// With figures that the policy reports.
    Misses(Vec<u64>, Vec<(String, f64)>),
    /// Misses of the first N counted accesses.
    Partial(Vec<u64>, u64),
    NotRun,
    NoRoom,
    Broken(Fault),
}

impl Done {
    /// Result of the first N counted accesses, if there were any.
    fn of_first(running: &Running, accesses: u64) -> Done {
        if accesses == 0 { Done::NotRun } else { Done::Partial(running.misses(), accesses) }
    }

    /// The same after an interruption, when so many accesses that count had come.
    fn cut_off(self, accesses: u64) -> Done {
        match self {
            Done::Misses(misses, _) if accesses > 0 => Done::Partial(misses, accesses),
            Done::Misses(..) => Done::NotRun,
            other => other,
        }
    }
}

/// Accesses on their way to the simulations.
#[derive(Clone)]
struct Block {
    pages: Arc<[u32]>,
    /// The number of the first.
    begins: u64,
    /// Pages that deletes end before one of them.
    removals: Arc<[Removal]>,
    /// So many of them come before those that count.
    warm_up: usize,
    /// True if the first that counts is among them, or comes next.
    begins_to_count: bool,
}
