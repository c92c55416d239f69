//! The tasks of a scenario as threads. Each makes the accesses that the simulated task makes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use pageout_sim::scenario::Task;
use pageout_workload::Access;

use super::place::{ALL_NODES, Place, Target, on_node};
use crate::error::{During as _, Error};
use crate::watch::Watcher;

/// Accesses between two looks at whether a task is to end.
const AT_ONCE: usize = 1 << 10;

/// What a task did.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    pub(super) accesses: u64,
    pub(super) runtime_ns: u64,
    pub(super) cpu_ns: u64,
}

/// Names of tasks that have ended, and who waits for one.
#[derive(Default)]
struct Order {
    ended: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Order {
    fn end(&self, name: &str) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_string());
        self.changed.notify_all();
    }

    fn wait_for(&self, name: &str) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |ended: &mut Vec<String>| !ended.iter().any(|other| other == name);
        drop(self.changed.wait_while(ended, is_missing).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Runs all tasks. Nothing if a signal came.
pub(super) fn run(place: &Place<'_>, watcher: &dyn Watcher) -> Result<Option<Vec<Ended>>, Error> {
    let tasks = &place.plan.scenario.task;
    let (order, is_over) = (Order::default(), AtomicBool::new(false));
    let ended = thread::scope(|scope| {
        let threads: Vec<_> = (0..tasks.len())
            .map(|at| {
                let (order, is_over) = (&order, &is_over);
                scope.spawn(move || {
                    let task = &tasks[at];
                    if let Some(first) = &task.after {
                        order.wait_for(first);
                    }
                    let ended = one(place, at, task, is_over, watcher);
                    if ended.is_err() {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    order.end(&task.name);
                    ended
                })
            })
            .collect();
        // Background tasks end with the last of the others.
        let mut ended: Vec<_> = threads.into_iter().map(Some).collect();
        let mut results: Vec<Option<Result<Ended, Error>>> = tasks.iter().map(|_| None).collect();
        for is_background in [false, true] {
            for (at, task) in tasks.iter().enumerate().filter(|(_, task)| task.background == is_background) {
                let thread = ended[at].take().expect("each is joined once");
                results[at] = Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                _ = task;
            }
            is_over.store(true, Ordering::Relaxed);
        }
        results.into_iter().flatten().collect::<Result<Vec<Ended>, Error>>()
    })?;
    Ok(watcher.stop().is_none().then_some(ended))
}

fn one(
    place: &Place<'_>,
    at: usize,
    task: &Task,
    is_over: &AtomicBool,
    watcher: &dyn Watcher,
) -> Result<Ended, Error> {
    if let (Some(node), Some(group)) = (task.preferred_node, place.group(&task.memcg)) {
        on_node(group, &node.to_string())?;
    }
    let targets =
        task.object.iter().enumerate().map(|(object_at, object)| place.target(at, object_at, object));
    let mut targets = targets.collect::<Result<Vec<Target>, Error>>()?;
    let (began, cpu) = (Instant::now(), cpu_ns()?);
    let (mut accesses, mut chunk) = (0, Vec::<Access>::new());
    'loops: for _ in 0..task.loops {
        let stream = place.plan.scenario.accesses(at);
        let mut stream =
            stream.map_err(|problem| Error::Asked(format!("{}: {}", problem.key, problem.message)))?;
        while stream.fill(&mut chunk, AT_ONCE).during(|| task.name.clone())? > 0 {
            for access in chunk.drain(..) {
                let target = &mut targets[access.object() as usize];
                target.access(access.page(), access.is_write()).map_err(|error| error.of(&task.name))?;
                accesses += target.call_pages();
            }
            if is_over.load(Ordering::Relaxed) || watcher.stop().is_some() {
                break 'loops;
            }
        }
    }
    let ended = Ended { accesses, runtime_ns: began.elapsed().as_nanos() as u64, cpu_ns: cpu_ns()? - cpu };
    if let (Some(_), Some(group)) = (task.preferred_node, place.group(&task.memcg)) {
        on_node(group, ALL_NODES)?;
    }
    Ok(ended)
}

/// CPU time of this thread.
fn cpu_ns() -> Result<u64, Error> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).during(|| format!("cannot read {path}"))?;
    text.split(' ').next().and_then(|text| text.parse().ok()).during(|| format!("{path}: found no time"))
}
