//! Misses that no thread waits for: the engine's own thread sees them through, whenever one may go on.

use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use pageout_engine::{FileId, Nanos, Step, TaskId, Wait};

use super::locked::{Locked, Miss, Outcome};
use super::{Machine, Want};
use crate::arena::Pin;
use crate::error::Error;
use crate::file::Inner as File;
use crate::local;
use crate::pending::{Flight, Held};

/// A miss that no thread waits for.
pub(super) struct Driven {
    miss: Miss,
    file: FileId,
    flight: Arc<Flight>,
    /// Its place among those of its flight.
    at: usize,
    /// It has come to nothing, and is to be made again.
    starts_again: bool,
}

/// How long it takes to write to a page, unless somebody does in place.
const WRITTEN_SOON: Nanos = Nanos(50_000);
/// How soon one is made again that has found no room beside reads.
const READ_SOON: Nanos = Nanos(200_000);

impl Machine {
    /// Begins to bring pages of a file in, for reads that are pending.
    pub(crate) fn begin_all(
        &self,
        file: &File,
        group: usize,
        wants: impl Iterator<Item = (usize, Want)>,
        flight: &Arc<Flight>,
    ) -> Result<(), Error> {
        let (mut locked, mut outcome) = (self.drain(self.lock()?)?, Ok(()));
        local::give_back(self, &locked);
        for (at, want) in wants {
            let miss = match locked.begin(file, group, want) {
                Ok(miss) => miss,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            let (task, access) = (miss.hired.task, miss.access);
            let driven = Driven { miss, file: file.id, flight: Arc::clone(flight), at, starts_again: false };
            locked.waiter(task).driven = Some(Box::new(driven));
            flight.begins();
            let mut step = locked.engine.start(task, access);
            // Who brings pages in makes room for them: were it left to others, there would be as many reclaimers as misses.
            while step == Step::Again {
                locked.settle();
                drop(locked);
                locked = self.drain(self.lock()?)?;
                step = locked.engine.resume(task);
            }
            locked.drive_on(task, step);
        }
        drop(if self.readers.threads == 0 { self.read_together(locked)? } else { self.read(locked, 0)? });
        outcome
    }

    /// Nobody sees these misses through any more: whoever waits for one is told.
    pub(super) fn fail_driven(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let driven: Vec<_> = inner.waiters.iter_mut().filter_map(|waiter| waiter.driven.take()).collect();
        drop(inner);
        let wakers =
            driven.into_iter().filter_map(|driven| driven.flight.ends(driven.at, Err(Error::Poisoned)));
        wakers.for_each(Waker::wake);
    }
}

impl Locked<'_> {
    /// Has a miss go on that can. Returns whether there was one.
    pub(super) fn drive(&mut self) -> bool {
        let now = self.now;
        while let Some(at) = self.timed.iter().position(|&(time, _)| time <= now) {
            let task = self.timed.swap_remove(at).1;
            self.go_on_later(task);
        }
        let Some(task) = self.due.pop_front() else { return false };
        // It may have been woken twice, or be another's miss by now.
        let waiter = self.waiter(task);
        if waiter.driven.is_some() && std::mem::take(&mut waiter.is_woken) {
            self.timed.retain(|&(_, of)| of != task);
            let driven = self.waiter(task).driven.as_mut().expect("it is driven");
            let step = match std::mem::take(&mut driven.starts_again) {
                true => self.start_again(task),
                false => self.engine.resume(task),
            };
            self.drive_on(task, step);
        }
        true
    }

    /// When the next one goes on by itself.
    pub(super) fn next_driven(&self) -> Option<Duration> {
        let next = self.timed.iter().map(|&(time, _)| time).min()?;
        Some(Duration::from_nanos(next.0.saturating_sub(self.now.0)))
    }

    /// A miss that no thread waits for may go on: not here, as this may be in the middle of something else.
    pub(super) fn go_on_later(&mut self, task: TaskId) {
        self.waiter(task).is_woken = true;
        self.due.push_back(task);
        self.wake_service();
    }

    /// A miss has taken a step.
    fn drive_on(&mut self, task: TaskId, mut step: Step) {
        loop {
            self.settle();
            match step {
                Step::Done(served) => {
                    let reads = self.device_reads;
                    let driven = self.waiter(task).driven.as_mut().expect("it is driven");
                    let (file, page) = (driven.file, driven.miss.access.page);
                    // Others of its flight keep their pages until somebody polls: room for it may come after that alone.
                    if driven.flight.is_of_one() && driven.miss.is_crowded(&served, reads) {
                        return self.start_again_in(task, READ_SOON);
                    }
                    match self.outcome(file, page, served) {
                        Outcome::Found(found) => return self.land(task, found),
                        Outcome::Again => step = self.start_again(task),
                        Outcome::Taken(_) => return self.start_again_in(task, WRITTEN_SOON),
                    }
                }
                Step::Again => {
                    // First of all: one reclaimer at a time does.
                    self.waiter(task).is_woken = true;
                    self.due.push_front(task);
                    return self.wake_service();
                }
                Step::Wait(Wait::Io(_) | Wait::Woken) => return,
                Step::Wait(Wait::WokenOr(span, _) | Wait::Delay(span, _)) => {
                    let at = self.now + span;
                    self.timed.push((at, task));
                    return self.wake_service();
                }
            }
        }
    }

    /// Makes a miss again.
    fn start_again(&mut self, task: TaskId) -> Step {
        let mut driven = self.waiter(task).driven.take().expect("it is driven");
        self.start(&mut driven.miss);
        let step = std::mem::replace(&mut driven.miss.step, Step::Again);
        self.waiter(task).driven = Some(driven);
        step
    }

    /// A miss has come to nothing for now.
    fn start_again_in(&mut self, task: TaskId, span: Nanos) {
        let at = self.now + span;
        self.waiter(task).driven.as_mut().expect("it is driven").starts_again = true;
        self.timed.push((at, task));
        self.wake_service();
    }

    /// A miss is over.
    fn land(&mut self, task: TaskId, found: Result<Pin<'_>, Error>) {
        let driven = self.waiter(task).driven.take().expect("it is driven");
        self.ended(driven.file, &driven.miss.hired);
        let is_written = self.files[driven.file.0 as usize].as_ref().is_some_and(|of| of.is_written);
        let found = match found {
            Ok(pin) if is_written => Ok(Held::Copy(pin.bytes().into())),
            found => found.and_then(|pin| self.keep(pin)).map(Held::Pin),
        };
        let waker = driven.flight.ends(driven.at, found);
        self.to_wake.extend(waker);
    }
}
