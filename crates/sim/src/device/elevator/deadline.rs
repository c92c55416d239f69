//! mq-deadline: reads before writes, in short batches.
//!
//! ```text
//!   reads    ──●────●──●─────────●──▶ places     each direction in order of its places, and of its arrivals
//!   writes   ────●●●────●──●───●────▶
//!
//!   batch over? ─▶ reads, unless writes have stood back twice ─▶ is the oldest overdue? ─▶ it; else the next behind the last one
//!        └ no ───▶ the next in this direction behind the last one
//! ```
//! A task waits for each read, but mostly for no write. So reads go first. Writes yield to two batches, and have the next one in any case. Within a
//! batch requests go in order of their places, which saves seeks. It is short, and expired requests are checked between two of them.
//!
//! Sources: the [tunables of the deadline scheduler](https://docs.kernel.org/block/deadline-iosched.html), which say what each is for, and
//! its defaults.

use pageout_engine::Nanos;

use super::queue::{Queue, Waiting};
use crate::device::{Direction, Request, Ticket};

/// Maximum wait of a request, without congestion, before a batch begins with it. `read_expire`, `write_expire`.
const READ_EXPIRE: Nanos = Nanos(500_000_000);
const WRITE_EXPIRE: Nanos = Nanos(5_000_000_000);
/// Requests of a batch. `fifo_batch`.
const FIFO_BATCH: u32 = 16;
/// Batches of reads for which writes stand back. `writes_starved`.
const WRITES_STARVED: u32 = 2;

/// The requests that wait for a device.
#[derive(Default, Debug)]
pub(in crate::device) struct Deadline {
    reads: Queue,
    writes: Queue,
    /// Which direction the batch is of, and how much of it is left.
    batch: Option<(Direction, u32)>,
    /// Batches of reads that writes have stood back for.
    starved: u32,
}

impl Deadline {
    /// The number of requests of a direction that wait.
    pub(super) fn waiting(&self, direction: Direction) -> usize {
        self.queue(direction).len()
    }

    /// Makes a request part of a neighbour that waits, if there is one and the two are `most` blocks at most.
    pub(super) fn merge(&mut self, request: Request, ticket: Ticket, most: u32) -> bool {
        self.queue_mut(request.direction).merge(request, ticket, most)
    }

    /// A request waits in its own right.
    pub(super) fn add(&mut self, waiting: Waiting) {
        self.queue_mut(waiting.request.direction).add(waiting);
    }

    /// Whose turn it is.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Waiting> {
        if let Some((direction, left)) = self.batch
            && left > 0
            && let Some(waiting) = self.queue_mut(direction).next_behind()
        {
            self.batch = Some((direction, left - 1));
            return Some(waiting);
        }
        let direction = self.choose()?;
        self.batch = Some((direction, FIFO_BATCH - 1));
        self.queue_mut(direction).next_unless_overdue(now, expiry(direction))
    }

    /// The direction of the next batch.
    fn choose(&mut self) -> Option<Direction> {
        let (reads, writes) = (!self.reads.is_empty(), !self.writes.is_empty());
        if reads && (!writes || self.starved < WRITES_STARVED) {
            self.starved += u32::from(writes);
            return Some(Direction::Read);
        }
        self.starved = 0;
        writes.then_some(Direction::Write)
    }

    fn queue(&self, direction: Direction) -> &Queue {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    fn queue_mut(&mut self, direction: Direction) -> &mut Queue {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }
}

fn expiry(direction: Direction) -> Nanos {
    match direction {
        Direction::Read => READ_EXPIRE,
        Direction::Write => WRITE_EXPIRE,
    }
}

#[cfg(test)]
mod tests {
    use pageout_engine::FileId;
    use pageout_workload::rng::SplitMix64;

    use super::*;
    use crate::device::Area;

    /// The rule of mq-deadline over one list, in order of arrival.
    #[derive(Default)]
    struct Model {
        waiting: Vec<Waiting>,
        batch: Option<(Direction, u32)>,
        starved: u32,
        passed: [Option<(Area, u64)>; 2],
    }

    impl Model {
        fn of(&self, direction: Direction) -> impl Iterator<Item = usize> {
            (0..self.waiting.len()).filter(move |&at| self.waiting[at].request.direction == direction)
        }

        fn merge(&mut self, request: Request, ticket: Ticket, most: u32) -> bool {
            let fits = |other: &Request| {
                (other.direction, other.area) == (request.direction, request.area)
                    && other.blocks + request.blocks <= most
            };
            // The one before it rather than the one behind; of several, the last of the former and the first of the latter.
            let before = |&at: &usize| self.waiting[at].request.end() == request.block;
            let behind = |&at: &usize| request.end() == self.waiting[at].request.block;
            let candidates: Vec<usize> =
                self.of(request.direction).filter(|&at| fits(&self.waiting[at].request)).collect();
            let Some(at) =
                candidates.iter().copied().find(before).or_else(|| candidates.iter().copied().find(behind))
            else {
                return false;
            };
            let waiting = &mut self.waiting[at];
            waiting.request.block = waiting.request.block.min(request.block);
            waiting.request.blocks += request.blocks;
            waiting.tickets.push(ticket);
            true
        }

        fn following(&self, direction: Direction) -> Option<usize> {
            let passed = self.passed[direction as usize]?;
            let place = |&at: &usize| (self.waiting[at].request.area, self.waiting[at].request.block);
            self.of(direction).filter(|at| place(at) >= passed).min_by_key(place)
        }

        fn next(&mut self, now: Nanos) -> Option<Waiting> {
            let (direction, left) = self.batch.unwrap_or((Direction::Read, 0));
            let (direction, at) = match self.following(direction).filter(|_| left > 0) {
                Some(at) => {
                    self.batch = Some((direction, left - 1));
                    (direction, at)
                }
                None => {
                    let (reads, writes) =
                        (self.of(Direction::Read).count(), self.of(Direction::Write).count());
                    let direction = match (reads, writes) {
                        (0, 0) => {
                            self.starved = 0;
                            return None;
                        }
                        (0, _) => Direction::Write,
                        (_, 0) => Direction::Read,
                        _ if self.starved < 2 => Direction::Read,
                        _ => Direction::Write,
                    };
                    self.starved = match direction {
                        Direction::Read => self.starved + u32::from(writes > 0),
                        Direction::Write => 0,
                    };
                    self.batch = Some((direction, 15));
                    let oldest = self.of(direction).next()?;
                    let waits = now.0 - self.waiting[oldest].since.0;
                    let longest = if direction == Direction::Read { 500_000_000 } else { 5_000_000_000 };
                    let following = self.following(direction).filter(|_| waits < longest);
                    (direction, following.unwrap_or(oldest))
                }
            };
            let waiting = self.waiting.remove(at);
            self.passed[direction as usize] = Some((waiting.request.area, waiting.request.end()));
            Some(waiting)
        }
    }

    #[test]
    fn it_serves_as_the_model_does() {
        for seed in 0..20 {
            let mut rng = SplitMix64::new(seed);
            let (mut elevator, mut model) = (Deadline::default(), Model::default());
            let mut now = Nanos::ZERO;
            for number in 0..5_000 {
                now += Nanos(rng.below(40_000_000));
                if rng.below(100) < 45 {
                    assert_eq!(elevator.next(now), model.next(now), "seed {seed}, step {number}");
                    continue;
                }
                let request = Request {
                    direction: if rng.below(2) == 0 { Direction::Read } else { Direction::Write },
                    area: Area::File(FileId(rng.below(2) as u32)),
                    // No block is asked for twice at a time, as by page caches.
                    block: 4 * number % 1_000 + 4 * (number / 250) * 1_000,
                    blocks: 1 + rng.below(4) as u32,
                    is_awaited: false,
                };
                let ticket = Ticket(number as u32);
                let is_merged = elevator.merge(request, ticket, 10);
                assert_eq!(is_merged, model.merge(request, ticket, 10), "seed {seed}, step {number}");
                if !is_merged {
                    let waiting = Waiting { request, since: now, tickets: vec![ticket], remote: None };
                    elevator.add(waiting.clone());
                    model.waiting.push(waiting);
                }
                for direction in [Direction::Read, Direction::Write] {
                    assert_eq!(elevator.waiting(direction), model.of(direction).count());
                }
            }
        }
    }
}
