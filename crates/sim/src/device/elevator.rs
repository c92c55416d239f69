//! I/O schedulers: in which order a disk gets the requests that wait for it.
//!
//! A new request that continues a waiting one, or ends where that begins, becomes part of it. It costs its transfer, and no slot and no
//! latency of its own. Tasks that read side by side, and a flusher between them, ask for pieces of the same stretch.
//!
//! Requests in service are out of reach. So a device that is never short of slots merges nothing, and accepts all requests in order.
//!
//! which request goes first
//! |---|---|---|
//! | `deadline.rs` | reads before writes, in batches | before disks with one queue by default today (mq-deadline) |
//! | `cfq.rs` | each task that waits for its requests in its turn, and all other writes together in theirs | the default from 2.6.18 of 2006 on, gone since 5.0 of 2019 |
//!
//! Source of `nr_requests`: the [description of queues](https://docs.kernel.org/admin-guide/abi-stable.html).

mod cfq;
mod deadline;
mod queue;

use pageout_engine::{Nanos, TaskId};

use super::{Direction, IoScheduler, Request, Ticket};
use cfq::Cfq;
use deadline::Deadline;
pub(super) use queue::Waiting;

/// The requests that wait for a device, and who puts them in order.
#[derive(Debug)]
pub(super) enum Elevator {
    Deadline(Deadline),
    Cfq(Cfq),
}

impl Elevator {
    /// The elevator of a scheduler; `None` where there is none.
    pub(super) fn of(scheduler: IoScheduler) -> Option<Elevator> {
        match scheduler {
            IoScheduler::None => None,
            IoScheduler::MqDeadline => Some(Elevator::Deadline(Deadline::default())),
            IoScheduler::Cfq => Some(Elevator::Cfq(Cfq::default())),
        }
    }

    /// The number of requests of a direction that wait.
    pub(super) fn waiting(&self, direction: Direction) -> usize {
        match self {
            Elevator::Deadline(deadline) => deadline.waiting(direction),
            Elevator::Cfq(cfq) => cfq.waiting(direction),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting(Direction::Read) + self.waiting(Direction::Write) == 0
    }

    /// Makes a request part of a neighbour that waits, if there is one and the two are `most` blocks at most.
    pub(super) fn merge(&mut self, request: Request, by: Option<TaskId>, ticket: Ticket, most: u32) -> bool {
        match self {
            Elevator::Deadline(deadline) => deadline.merge(request, ticket, most),
            Elevator::Cfq(cfq) => cfq.merge(request, by, ticket, most),
        }
    }

    /// A request waits in its own right.
    pub(super) fn add(&mut self, waiting: Waiting, by: Option<TaskId>) {
        match self {
            Elevator::Deadline(deadline) => deadline.add(waiting),
            Elevator::Cfq(cfq) => cfq.add(waiting, by),
        }
    }

    /// The task whose turn it is; none if none waits, or the next request of a task is awaited.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Waiting> {
        match self {
            Elevator::Deadline(deadline) => deadline.next(now),
            Elevator::Cfq(cfq) => cfq.next(now),
        }
    }

    /// The last dispatched request is done at `at`.
    pub(super) fn served(&mut self, at: Nanos) {
        match self {
            Elevator::Deadline(_) => {}
            Elevator::Cfq(cfq) => cfq.served(at),
        }
    }

    /// Until when the next request of a task is waited for, while others wait for the device.
    pub(super) fn idles_until(&self) -> Option<Nanos> {
        match self {
            Elevator::Deadline(_) => None,
            Elevator::Cfq(cfq) => cfq.idles_until(),
        }
    }
}
