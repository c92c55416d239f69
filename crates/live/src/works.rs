//! Threads for calls that wait, and for wakers.
//!
//! A thread starts when it is needed, and makes one call after the other, each from its beginning to its end. A thread that waits for a read is woken by the
//! thread that ends it. A waker is the code of an executor, which may call the cache, and wait. The thread that ends the read might be the one that it waits for.
//! So a thread for wakers calls it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use crate::sync::thread::{self, JoinHandle, Thread};
use crate::sync::{Condvar, Mutex, MutexGuard, wait_at_most};

/// Calls of a kind that are in progress at the same time: a few devices, and more would not make one faster.
pub(crate) const THREADS_MAX: usize = 4;
/// Deep enough for a step of reclaim; only a small part is ever touched.
const STACK_BYTES: usize = 512 << 10;
/// How long a thread without a call sleeps, unless it is woken.
const IDLE: Duration = Duration::from_secs(60);

type Job = Box<dyn FnOnce() + Send>;

/// A thread or a task that waits for the end of a call.
pub(crate) enum Sleeper {
    Thread(Thread),
    Task(Waker),
}

impl Sleeper {
    /// A task that polls. Not with a lock held: the clone of a waker is its executor's code, and so is its drop.
    pub(crate) fn of(context: &Context<'_>) -> Sleeper {
        Sleeper::Task(context.waker().clone())
    }

    /// Wakes it. A waker may do anything.
    pub(crate) fn wake(self) {
        let waker = match self {
            Sleeper::Thread(thread) => return thread.unpark(),
            Sleeper::Task(waker) => waker,
        };
        // A waker that panics is its executor's problem: other waiting threads, and later calls, are not affected.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // The drop of a payload may panic as well.
            std::mem::forget(payload);
        }
    }
}

/// A queue, and threads.
pub(crate) struct Works {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Threads that wait for a job.
    pub(crate) idle: usize,
    stops: bool,
}

impl Default for Works {
    fn default() -> Works {
        Works { queue: Mutex::default(), more: Condvar::new() }
    }
}

impl Works {
    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a thread do something. If there is no thread and the system gives none, this one does it.
    pub(crate) fn begin(self: &Arc<Works>, name: &str, job: Job) {
        let mut queue = self.queue();
        queue.jobs.push_back(job);
        if queue.jobs.len() > queue.idle && queue.threads.len() < THREADS_MAX {
            let works = Arc::clone(self);
            let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
            match builder.spawn(move || works.run()) {
                Ok(thread) => queue.threads.push(thread),
                Err(_) if queue.threads.is_empty() => {
                    let job = queue.jobs.pop_back();
                    drop(queue);
                    job.into_iter().for_each(|job| job());
                    return;
                }
                Err(_) => {}
            }
        }
        drop(queue);
        self.more.notify_one();
    }

    /// Wakes a thread, or has a thread of these call a waker.
    pub(crate) fn wake(self: &Arc<Works>, sleeper: Sleeper) {
        match sleeper {
            Sleeper::Thread(_) => sleeper.wake(),
            Sleeper::Task(_) => self.begin("pageout-wake", Box::new(|| sleeper.wake())),
        }
    }

    fn run(&self) {
        let mut queue = self.queue();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job();
                queue = self.queue();
            } else if queue.stops {
                return;
            } else {
                queue.idle += 1;
                wait_at_most(&self.more, queue, IDLE);
                queue = self.queue();
                queue.idle -= 1;
            }
        }
    }

    /// Has each thread end when it has nothing to do. Waits for none: what a waker waits for may be the caller's.
    pub(crate) fn stop(&self) -> Vec<JoinHandle<()>> {
        let mut queue = self.queue();
        queue.stops = true;
        let threads = std::mem::take(&mut queue.threads);
        drop(queue);
        self.more.notify_all();
        threads
    }

    /// Ends all threads. The calling one ends when it returns.
    pub(crate) fn end(&self) {
        let threads = self.stop();
        let others = threads.into_iter().filter(|thread| thread.thread().id() != thread::current().id());
        others.for_each(|thread| _ = thread.join());
    }
}
