//! The tasks of a scenario as threads. Each makes the accesses that the simulated task makes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use pageout_sim::scenario::Task;
use pageout_workload::Access;

use super::place::{ALL_NODES, Place, Target, on_node};
use crate::error::{During as _, Error, Failed};
use crate::watch::Watcher;

/// Accesses between two looks at whether a task is to end.
const AT_ONCE: usize = 1 << 10;

/// Time between two looks whether only background tasks are left.
const LOOK: Duration = Duration::from_millis(1);

/// What a task did.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    pub(super) accesses: u64,
    pub(super) runtime_ns: u64,
    pub(super) cpu_ns: u64,
    /// Time of each access, the shortest first, if they were timed.
    times_ns: Vec<u64>,
}

impl Ended {
    /// The time within which this part of the accesses ended, if they were timed.
    pub(super) fn percentile_ns(&self, part: f64) -> Option<u64> {
        let last = self.times_ns.len().checked_sub(1)?;
        Some(self.times_ns[(part * last as f64).round() as usize])
    }
}

/// Names of tasks that have ended, and who waits for one.
#[derive(Default)]
struct Order {
    ended: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Order {
    fn wait_for(&self, name: &str) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |ended: &mut Vec<String>| !ended.iter().any(|other| other == name);
        drop(self.changed.wait_while(ended, is_missing).unwrap_or_else(PoisonError::into_inner));
    }
}

/// A task that has begun. When it goes, by a panic too, those that wait for the task begin.
struct Begun<'a>(&'a Order, &'a str);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).push(self.1.to_string());
        self.0.changed.notify_all();
    }
}

/// What the tasks did, and what they hold to the end of the run, as tasks of the simulator do.
pub(super) type Done = (Ended, Vec<Target>);

/// Runs all tasks. Nothing if a signal came.
pub(super) fn run(place: &Place<'_>, watcher: &dyn Watcher) -> Result<Option<Vec<Done>>, Error> {
    let tasks = &place.plan.scenario.task;
    let (order, is_over) = (Order::default(), AtomicBool::new(false));
    let done = thread::scope(|scope| {
        let begin = |(at, task)| {
            let (order, is_over) = (&order, &is_over);
            scope.spawn(move || {
                let task: &Task = task;
                let _begun = Begun(order, &task.name);
                if let Some(first) = &task.after {
                    order.wait_for(first);
                }
                let done = one(place, at, task, is_over, watcher);
                if done.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
                done
            })
        };
        let threads: Vec<_> = tasks.iter().enumerate().map(begin).collect();
        // Background tasks end with the last of the others.
        let is_running =
            |(thread, task): (&ScopedJoinHandle<'_, _>, &Task)| !task.background && !thread.is_finished();
        while threads.iter().zip(tasks).any(is_running) {
            thread::sleep(LOOK);
        }
        is_over.store(true, Ordering::Relaxed);
        let done = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.collect::<Result<Vec<Done>, Error>>()
    })?;
    Ok(watcher.stop().is_none().then_some(done))
}

fn one(
    place: &Place<'_>,
    at: usize,
    task: &Task,
    is_over: &AtomicBool,
    watcher: &dyn Watcher,
) -> Result<Done, Error> {
    if let (Some(node), Some(group)) = (task.preferred_node, place.group(&task.memcg)) {
        on_node(group, &node.to_string())?;
    }
    let targets =
        task.object.iter().enumerate().map(|(object_at, object)| place.target(at, object_at, object));
    let mut targets = targets.collect::<Result<Vec<Target>, Error>>()?;
    let (began, cpu) = (Instant::now(), cpu_ns()?);
    let (mut accesses, mut chunk) = (0, Vec::<Access>::new());
    let (is_timed, mut times_ns) = (place.plan.disk.is_some(), Vec::new());
    'loops: for _ in 0..task.loops {
        let stream = place.plan.scenario.accesses(at);
        let mut stream =
            stream.map_err(|problem| Error::Asked(format!("{}: {}", problem.key, problem.message)))?;
        while stream.fill(&mut chunk, AT_ONCE).during(|| task.name.clone())? > 0 {
            for access in chunk.drain(..) {
                let target = &mut targets[access.object() as usize];
                let began = is_timed.then(Instant::now);
                target
                    .access(access.page(), access.is_write())
                    .map_err(|error| failed(&task.name, &error))?;
                accesses += target.call_pages();
                times_ns.extend(began.map(|began| began.elapsed().as_nanos() as u64));
                if is_timed && is_over.load(Ordering::Relaxed) {
                    // A chunk of such accesses takes seconds.
                    break 'loops;
                }
            }
            if is_over.load(Ordering::Relaxed) || watcher.stop().is_some() {
                break 'loops;
            }
        }
    }
    let runtime_ns = began.elapsed().as_nanos() as u64;
    times_ns.sort_unstable();
    let ended = Ended { accesses, runtime_ns, cpu_ns: cpu_ns()? - cpu, times_ns };
    if let (Some(_), Some(group)) = (task.preferred_node, place.group(&task.memcg)) {
        on_node(group, ALL_NODES)?;
    }
    Ok((ended, targets))
}

/// An access failed, or found the wrong bytes: the input is not at fault.
fn failed(task: &str, error: &Error) -> Error {
    Error::Failed(Failed { is_input: false, message: format!("{task}: {error}") })
}

/// CPU time of this thread.
fn cpu_ns() -> Result<u64, Error> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).during(|| format!("cannot read {path}"))?;
    text.split(' ').next().and_then(|text| text.parse().ok()).during(|| format!("{path}: found no time"))
}
