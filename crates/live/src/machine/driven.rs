//! Misses that no thread waits for: the engine's own thread sees them through, whenever one may go on.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pageout_engine::{Nanos, PAGE_SIZE, Step, TaskId, Wait};

use super::locked::{Crowded, Locked, Miss, Outcome};
use super::{Accessed, Brought, LiveMachine, PageOwner, Want};
use crate::error::Error;
use crate::local;
use crate::pending::{Flight, Held};

/// A miss that no thread waits for.
pub(super) struct Driven {
    miss: Miss,
    flight: Arc<Flight>,
    /// Its place among those of its flight.
    at: usize,
    /// It is alone in its flight, whose other pages would stay until the next poll.
    is_alone: bool,
    /// It has come to nothing, and is to be made again.
    starts_again: bool,
    /// Time since when its page has a writer in place.
    taken_since: Option<Nanos>,
    /// It does not count as an access, because the length of its region changes.
    is_aside: bool,
    /// Its result, once it only has to pay.
    found: Option<Result<Held, Error>>,
}

/// Maximum time until a retry if its page has a writer in place.
const TAKEN_LONG: Nanos = Nanos(2_000_000);
/// How long it takes to write to a page, except in place.
const WRITTEN_SOON: Nanos = Nanos(50_000);
/// Minimum time until a retry if it has found no free memory because of others' reads and holds.
const ROOM_SOON: Nanos = Nanos(200_000);

impl LiveMachine {
    /// Begins to bring pages in, for reads that are pending: one without others, or several.
    pub(crate) fn begin_all(
        &self,
        of: Accessed<'_>,
        wants: impl Iterator<Item = (usize, Want)>,
        is_alone: bool,
        flight: &Arc<Flight>,
    ) -> Result<(), Error> {
        let (mut locked, mut outcome) = (self.lock_for_page()?, Ok(()));
        local::give_back(self, &locked);
        locked = self.await_change_of(locked, of)?;
        if let Accessed::File(file, _) = of {
            locked.file_mut(file.id).flies(flight);
        }
        for (at, want) in wants {
            let miss = match locked.begin(of, want) {
                Ok(miss) => miss,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            let (task, access) = (miss.hired.task, miss.access);
            let driven = Driven {
                miss,
                flight: Arc::clone(flight),
                at,
                is_alone,
                starts_again: false,
                taken_since: None,
                is_aside: false,
                found: None,
            };
            locked.waiter(task).driven = Some(Box::new(driven));
            flight.begins();
            let mut step = locked.engine.start(task, access);
            // A thread that brings pages in frees memory for them: if others did, there would be as many reclaimers as misses.
            while step == Step::Again {
                locked.settle();
                drop(locked);
                locked = self.drain(self.lock()?)?;
                step = locked.engine.resume(task);
            }
            locked.drive_on(task, step);
        }
        drop(if self.readers.threads == 0 {
            self.read_together(locked, of.owner())?
        } else {
            self.read(locked, 0)?
        });
        outcome
    }

    /// These misses have no thread to complete them any more: waiting threads get an error.
    pub(super) fn fail_driven(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let driven: Vec<_> =
            inner.waiting.waiters.iter_mut().filter_map(|waiter| waiter.driven.take()).collect();
        drop(inner);
        let woken =
            driven.into_iter().filter_map(|driven| driven.flight.ends(driven.at, Err(Error::Poisoned)));
        woken.for_each(|sleeper| self.wakers.wake(sleeper));
    }
}

impl Locked<'_> {
    /// Has a miss go on that can. Returns whether there was one.
    pub(super) fn drive(&mut self) -> bool {
        let now = self.now;
        while let Some(at) = self.waiting.timed.iter().position(|&(time, _)| time <= now) {
            let task = self.waiting.timed.swap_remove(at).1;
            self.go_on_later(task);
        }
        let Some(task) = self.waiting.due.pop_front() else { return false };
        // It may have been woken twice, or be another's miss by now.
        let waiter = self.waiter(task);
        if waiter.driven.is_some() && std::mem::take(&mut waiter.is_woken) {
            self.waiting.timed.retain(|&(_, of)| of != task);
            if !self.is_back(task) {
                return true;
            }
            let driven = self.waiter(task).driven.as_mut().expect("it is driven");
            let step = match std::mem::take(&mut driven.starts_again) {
                true => self.start_again(task),
                false => self.engine.resume(task),
            };
            self.drive_on(task, step);
        }
        true
    }

    /// Time until the next one continues by itself.
    pub(super) fn next_driven(&self) -> Option<Duration> {
        let next = self.waiting.timed.iter().map(|&(time, _)| time).min()?;
        Some(Duration::from_nanos(next.0.saturating_sub(self.now.0)))
    }

    /// A miss that no thread waits for may go on: not here, as this may be in the middle of something else.
    pub(super) fn go_on_later(&mut self, task: TaskId) {
        self.waiter(task).is_woken = true;
        self.waiting.due.push_back(task);
        self.wake_service();
    }

    /// A miss has taken a step.
    fn drive_on(&mut self, task: TaskId, mut step: Step) {
        loop {
            self.settle();
            match step {
                Step::Done(served) => {
                    let mut driven = self.waiter(task).driven.take().expect("it is driven");
                    if let Some(found) = driven.found.take() {
                        return self.land(*driven, found);
                    }
                    let (of, access) = (driven.miss.owner(), driven.miss.access);
                    let (crowded, is_alone) = (self.crowded(&mut driven.miss, &served), driven.is_alone);
                    self.waiter(task).driven = Some(driven);
                    // If it is not alone, the polling thread repeats it, without the others of its flight.
                    if let Some(Crowded { least, .. }) = crowded
                        && is_alone
                    {
                        return self.start_again_in(task, ROOM_SOON.max(Nanos(least.as_nanos() as u64)));
                    }
                    match self.outcome(of, access.page, served) {
                        Outcome::Found(found) => {
                            let end = access.page * PAGE_SIZE + u64::from(access.wanted).min(PAGE_SIZE);
                            let found = found.and_then(|page| self.hand_out(of, end, page));
                            self.waiter(task).driven.as_mut().expect("it is driven").found = Some(found);
                            step = self.engine.pay(task, access);
                        }
                        Outcome::Again => step = self.start_again(task),
                        // The call that changes the length waits for accesses, and not for a guard.
                        Outcome::Taken(_) if self.stands_aside(task, of) => {
                            return self.start_again_in(task, TAKEN_LONG);
                        }
                        Outcome::Taken(_) => {
                            let (now, longest) = (self.now, self.machine().guard_wait);
                            let driven = self.waiter(task).driven.as_mut().expect("it is driven");
                            let waited = now.0 - driven.taken_since.get_or_insert(now).0;
                            if waited < longest.as_nanos() as u64 {
                                // A guard may be there for long.
                                return self
                                    .start_again_in(task, Nanos(waited.clamp(WRITTEN_SOON.0, TAKEN_LONG.0)));
                            }
                            let error = self.pinned_page(of, access.page);
                            self.waiter(task).driven.as_mut().expect("it is driven").found = Some(Err(error));
                            step = self.engine.pay(task, access);
                        }
                    }
                }
                Step::Again => {
                    // First of all: one reclaimer at a time does.
                    self.waiter(task).is_woken = true;
                    self.waiting.due.push_front(task);
                    return self.wake_service();
                }
                Step::Wait(Wait::Io(_) | Wait::Woken) => return,
                Step::Wait(Wait::WokenOr(span, _) | Wait::Delay(span, _)) => {
                    let at = self.now + span;
                    self.waiting.timed.push((at, task));
                    return self.wake_service();
                }
            }
        }
    }

    /// Does not count a miss as an access to its region while the length changes. Returns whether it changes.
    fn stands_aside(&mut self, task: TaskId, of: PageOwner) -> bool {
        let PageOwner::Region(region) = of else { return false };
        if !self.regions.is_resizing(region) {
            return false;
        }
        self.waiter(task).driven.as_mut().expect("it is driven").is_aside = true;
        self.region_access_ends(region);
        true
    }

    /// A miss that stood aside is an access again, unless the length still changes or the region is gone. Returns whether the miss may go on.
    fn is_back(&mut self, task: TaskId) -> bool {
        let driven = self.waiter(task).driven.as_mut().expect("it is driven");
        let (PageOwner::Region(region), serial) = driven.miss.of else { return true };
        if !driven.is_aside {
            return true;
        }
        match self.regions.access_again(region, serial) {
            Some(true) => {
                self.waiter(task).driven.as_mut().expect("it is driven").is_aside = false;
                true
            }
            Some(false) => {
                self.start_again_in(task, TAKEN_LONG);
                false
            }
            None => {
                // Its caller has given it up: a caller that waits has a handle.
                let driven = self.waiter(task).driven.take().expect("it is driven");
                let woken = driven.flight.ends(driven.at, Err(Error::Poisoned));
                self.effects.to_wake.extend(woken);
                false
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
        self.waiting.timed.push((at, task));
        self.wake_service();
    }

    /// The page of a miss, which is needed up to a byte of its file or region, for a thread that may poll at any time.
    fn hand_out(&self, of: PageOwner, end: u64, page: Brought<'_>) -> Result<Held, Error> {
        let (length, is_written) = match of {
            PageOwner::File(file) => {
                let of = self.files.open[file.0 as usize].as_ref().expect("an access to it is under way");
                (&*of.length, of.is_written)
            }
            PageOwner::Region(region) => (self.regions.length_of(region), true),
        };
        if !length.reaches(end) {
            return Err(Error::CutMeanwhile { path: self.path_of(of) });
        }
        match page {
            Brought::Zeroes => Ok(Held::Zeroes),
            Brought::Page(pin) if is_written => Ok(Held::Copy(pin.bytes().into())),
            Brought::Page(pin) => self.keep(of, pin).map(Held::Pin),
        }
    }

    /// A miss is over.
    fn land(&mut self, driven: Driven, found: Result<Held, Error>) {
        self.ended(&driven.miss);
        let woken = driven.flight.ends(driven.at, found);
        self.effects.to_wake.extend(woken);
    }
}
