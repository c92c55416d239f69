//! CFQ, completely fair queuing: each task that waits for a disk has its time.
//!
//! ```text
//!   reads of task 1             ──●●●────────▶ ╲
//!   reads of task 2             ──●──────●───▶  ╲  turns, one after the other: up to 100 ms of the disk for a task,
//!   reads and fsync of task 3   ─────●───────▶  ╱  40 ms for writes
//!   all other writes            ──●●●●──●●───▶ ╱
//! ```
//! A task waits for each read, but mostly for no write. So reads wait in a queue of their task, and so do writes that a task waits for (fsync). All
//! other writes wait in one queue, however many there are, of all tasks. Each queue has its turn. If many tasks read, the turns of all fit into 300
//! ms. A turn is over when its time is, or when its queue is empty.
//!
//! **A read that arrives during the writes' turn** ends it, and is next. So if tasks read, writes get little more than a request at a time.
//!
//! **A task that reads in order is waited for.** Its next request comes right after the last one was done, and is close to it. Others would
//! send the head away and back. So the disk rests for up to 8 ms before the turn passes on. A task that reads here and there, or takes longer
//! than that between two requests, is not waited for by itself.
//!
//! **Such tasks are waited for together.** There is always more to write, but a task that reads asks for its next block only when it has the last
//! one. So writes yield to all of them as long as their turns may take together. After the last of their requests the disk rests for up to 8 ms
//! before it writes. Otherwise writes would have the disk whenever each of them thinks.
//!
//! Within a turn requests go in order of their places. A turn begins with the oldest one if that has waited for too long.
//!
//! Not modelled: priorities, groups, and the number of requests in a device with many slots (`quantum`, `slice_async_rq`). The rest of a turn that
//! was cut short, tasks that read in parallel, and shorter rests on media that don't seek are left out, too. So is the rest of the disk for tasks
//! with random reads before it turns to sequential ones. Slots in the queue are by direction, and not by task. Whether a task reads in order follows
//! from its last request, and not from a history of them.
//!
//! Sources: the [tunables of CFQ, and why it rests](https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git/tree/Documentation/block/cfq-iosched.txt?h=v4.19),
//! with their defaults. That document says that those who read here and there are rested for as a group, and that this keeps writes apart
//! from them. It does not say how long the group's time is: that it is the sum of its turns is our reading of `target_latency`. What CFQ is
//! for in general, and since when it was the default: [Wikipedia](https://en.wikipedia.org/wiki/CFQ).

use std::collections::{BTreeMap, VecDeque};

use pageout_engine::{Nanos, TaskId};

use super::queue::{Queue, Waiting};
use crate::device::{Area, Direction, Request, Ticket};

/// Time of the disk for a task, and for writes. `slice_sync`, `slice_async`.
const SLICE_SYNC: Nanos = Nanos(100_000_000);
const SLICE_ASYNC: Nanos = Nanos(40_000_000);
/// In which all tasks that read have had their turn. `target_latency`; `low_latency` is on.
const TARGET_LATENCY: Nanos = Nanos(300_000_000);
/// How long the next request of a task is waited for. `slice_idle`.
const SLICE_IDLE: Nanos = Nanos(8_000_000);
/// Maximum wait of a request, without congestion, before a turn begins with it. `fifo_expire_sync`, `fifo_expire_async`.
const FIFO_EXPIRE_SYNC: Nanos = Nanos(125_000_000);
const FIFO_EXPIRE_ASYNC: Nanos = Nanos(250_000_000);
/// A request further from the end of a task's last one is not sequential: 16 MiB, as far as it goes back for one (`back_seek_max`).
const CLOSE_BLOCKS: u64 = 4096;

/// Owners of queues. In order: waiters that are not tasks, tasks, background writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Owner {
    /// A task that waits for its requests; `None` for others.
    Task(Option<TaskId>),
    /// All who write and don't wait.
    Writes,
}

/// Requests of an owner, and a forecast of its next ones from the last.
#[derive(Default, Debug)]
struct Turns {
    queue: Queue,
    /// When its last request is done.
    done: Option<Nanos>,
    /// How long it takes from the end of a request to the next one, its last ones counting most.
    think_time: Nanos,
    /// True if the owner reads, and its last request was close to the end of the one before.
    reads_on: bool,
}

/// A turn of an owner: for how long its requests alone are served.
#[derive(Clone, Copy, Debug)]
struct Turn {
    owner: Owner,
    /// When its time is over; it begins with its first request.
    ends: Option<Nanos>,
    /// Until when its next request is waited for.
    idles_until: Option<Nanos>,
}

/// The requests that wait for a device.
#[derive(Default, Debug)]
pub(in crate::device) struct Cfq {
    owners: BTreeMap<Owner, Turns>,
    /// Owners whose requests wait for their turn, the next one in front.
    round: VecDeque<Owner>,
    turn: Option<Turn>,
    reads: usize,
    writes: usize,
    /// Owners who read here and there, once they have had a turn since the last one of writes.
    scattered: Option<Scattered>,
}

/// Tasks with random reads, to which writes yield.
#[derive(Clone, Copy, Debug)]
struct Scattered {
    /// When their time together is over.
    ends: Nanos,
    /// When the last of their requests is done.
    done: Nanos,
    /// Until when their next request is awaited, while none reads.
    idles_until: Option<Nanos>,
}

impl Cfq {
    /// The number of requests of a direction that wait.
    pub(super) fn waiting(&self, direction: Direction) -> usize {
        match direction {
            Direction::Read => self.reads,
            Direction::Write => self.writes,
        }
    }

    /// Makes a request part of a neighbour of the same owner that waits, if there is one and the two are `most` blocks at most.
    pub(super) fn merge(&mut self, request: Request, by: Option<TaskId>, ticket: Ticket, most: u32) -> bool {
        let owner = Owner::of(&request, by);
        self.owners.get_mut(&owner).is_some_and(|turns| turns.queue.merge(request, ticket, most))
    }

    /// A request waits in its own right.
    pub(super) fn add(&mut self, waiting: Waiting, by: Option<TaskId>) {
        let owner = Owner::of(&waiting.request, by);
        let turns = self.owners.entry(owner).or_default();
        turns.note(&waiting);
        let is_first = turns.queue.is_empty();
        let direction = waiting.request.direction;
        turns.queue.add(waiting);
        *self.count(direction) += 1;
        let waits = owner != Owner::Writes;
        let has_turn = |owner| self.turn.is_some_and(|turn| turn.owner == owner);
        if waits && has_turn(Owner::Writes) {
            self.end_turn();
            self.round.retain(|&other| other != owner);
            self.round.push_front(owner);
        } else if is_first && !has_turn(owner) {
            self.round.push_back(owner);
        }
    }

    fn count(&mut self, direction: Direction) -> &mut usize {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// The owner of the current turn; none if none waits, or the next request of a task is awaited.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Waiting> {
        loop {
            let Some(turn) = self.turn else {
                let owner = self.choose(now)?;
                self.turn = Some(Turn { owner, ends: None, idles_until: None });
                continue;
            };
            let slice = self.slice(turn.owner);
            let turns = self.owners.get_mut(&turn.owner).expect("whoever has a turn has had requests");
            let is_over = turn.ends.is_some_and(|end| end <= now);
            if !is_over && !turns.queue.is_empty() {
                let waiting = match turn.ends {
                    None => turns.queue.next_unless_overdue(now, turn.owner.fifo_expire()),
                    Some(_) => turns.queue.next_in_order(),
                };
                let ends = turn.ends.or(Some(now + slice));
                self.turn = Some(Turn { ends, idles_until: None, ..turn });
                if let Some(Waiting { request, .. }) = &waiting {
                    *self.count(request.direction) -= 1;
                }
                return waiting;
            }
            let until = turns.expects_until().min(turn.ends);
            if is_over || until.is_none_or(|until| until <= now) {
                self.end_turn();
                continue;
            }
            self.turn = Some(Turn { idles_until: until, ..turn });
            return None;
        }
    }

    /// The last dispatched request is done at `at`.
    pub(super) fn served(&mut self, at: Nanos) {
        let owner = self.turn.expect("what went had its turn").owner;
        let turns = self.owners.get_mut(&owner).expect("whoever has a turn has had requests");
        turns.done = turns.done.max(Some(at));
        if self.is_scattered(owner)
            && let Some(scattered) = &mut self.scattered
        {
            scattered.done = scattered.done.max(at);
        }
    }

    /// Until when the next request of a task, or of any that reads here and there, is waited for.
    pub(super) fn idles_until(&self) -> Option<Nanos> {
        match self.turn {
            Some(turn) => turn.idles_until,
            None => self.scattered?.idles_until,
        }
    }

    /// The owner of the next turn: the one that has waited longest for it, except writes, which yield. None if none waits, or tasks with random reads
    /// are awaited.
    fn choose(&mut self, now: Nanos) -> Option<Owner> {
        let mut at = 0;
        if let Some(scattered) = &mut self.scattered {
            scattered.idles_until = None;
            if *self.round.front()? == Owner::Writes && now < scattered.ends {
                let until = (scattered.done + SLICE_IDLE).min(scattered.ends);
                match self.round.iter().position(|&owner| owner != Owner::Writes) {
                    Some(reader) => at = reader,
                    None if now < until => {
                        scattered.idles_until = Some(until);
                        return None;
                    }
                    None => {}
                }
            }
        }
        let owner = self.round.remove(at)?;
        self.note_turn(owner, now);
        Some(owner)
    }

    /// The time of those who read here and there begins with the first one's turn, and is over for good with that of writes.
    fn note_turn(&mut self, owner: Owner, now: Nanos) {
        if owner == Owner::Writes {
            self.scattered = None;
            return;
        }
        let is_on = self
            .scattered
            .is_some_and(|scattered| now < scattered.ends || self.round.contains(&Owner::Writes));
        if is_on || !self.is_scattered(owner) {
            return;
        }
        let others = self.round.iter().filter(|&&other| self.is_scattered(other)).count() as u64;
        let ends = now + Nanos((1 + others) * self.slice(owner).0);
        self.scattered = Some(Scattered { ends, done: now, idles_until: None });
    }

    /// Returns true if it is a task that reads here and there, or takes long between two requests.
    fn is_scattered(&self, owner: Owner) -> bool {
        owner != Owner::Writes && self.owners.get(&owner).is_some_and(|turns| !turns.is_expected())
    }

    /// How long a turn is.
    fn slice(&self, owner: Owner) -> Nanos {
        if owner == Owner::Writes {
            return SLICE_ASYNC;
        }
        let readers = 1 + self.round.iter().filter(|&&other| other != Owner::Writes).count() as u64;
        SLICE_SYNC.min(Nanos(TARGET_LATENCY.0 / readers))
    }

    /// The turn passes on. An owner with more requests comes last.
    fn end_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        if !self.owners[&turn.owner].queue.is_empty() {
            self.round.push_back(turn.owner);
        }
    }
}

impl Owner {
    fn of(request: &Request, by: Option<TaskId>) -> Owner {
        match request.direction == Direction::Read || request.is_awaited {
            true => Owner::Task(by),
            false => Owner::Writes,
        }
    }

    fn fifo_expire(self) -> Nanos {
        if self == Owner::Writes { FIFO_EXPIRE_ASYNC } else { FIFO_EXPIRE_SYNC }
    }
}

impl Turns {
    /// Updates the forecast of the next requests by one that comes now.
    fn note(&mut self, waiting: &Waiting) {
        let Waiting { request, since, .. } = waiting;
        if let Some(done) = self.done.filter(|_| self.queue.is_empty()) {
            let thought = Nanos(since.0.saturating_sub(done.0)).min(Nanos(2 * SLICE_IDLE.0));
            self.think_time = Nanos((7 * self.think_time.0 + thought.0) / 8);
        }
        self.reads_on = request.direction == Direction::Read
            && self.queue.passed().is_some_and(|end| is_close(end, request));
    }

    /// Until when it is worthwhile to wait for the owner's next request, if at all.
    fn expects_until(&self) -> Option<Nanos> {
        self.done.filter(|_| self.is_expected()).map(|done| done + SLICE_IDLE)
    }

    /// Returns true if the owner reads in order, and its next request comes soon.
    fn is_expected(&self) -> bool {
        self.reads_on && self.think_time < SLICE_IDLE
    }
}

/// Returns true if a request lies next to where another ended.
fn is_close((area, end): (Area, u64), request: &Request) -> bool {
    request.area == area && request.block.abs_diff(end) < CLOSE_BLOCKS
}

#[cfg(test)]
mod tests {
    use pageout_engine::FileId;
    use pageout_workload::rng::SplitMix64;

    use super::*;

    const MS: u64 = 1_000_000;

    /// The rule of cfq over one list, in order of arrival. Owners are numbers: 0 for writes, and one more than that of a task.
    #[derive(Default)]
    struct Model {
        waiting: Vec<(usize, Waiting)>,
        round: Vec<usize>,
        /// Whose turn it is, until when, and until when it is waited for.
        turn: Option<(usize, Option<u64>)>,
        rests_until: Option<u64>,
        /// Until when writes stand back, and when the last request of those they stand back for is done.
        stands_back: Option<(u64, u64)>,
        /// By owner: where its last request ended, when it was done, its time to think, and whether it reads on.
        passed: [Option<(Area, u64)>; 5],
        done: [Option<u64>; 5],
        thinks: [u64; 5],
        reads_on: [bool; 5],
    }

    impl Model {
        fn has_more(&self, owner: usize) -> bool {
            self.waiting.iter().any(|&(of, _)| of == owner)
        }

        fn add(&mut self, owner: usize, waiting: Waiting) {
            let (now, block) = (waiting.since.0, waiting.request.block);
            if let Some(done) = self.done[owner].filter(|_| !self.has_more(owner)) {
                let thought = now.saturating_sub(done).min(16 * MS);
                self.thinks[owner] = (7 * self.thinks[owner] + thought) / 8;
            }
            let near = |(area, end): (Area, u64)| area == waiting.request.area && block.abs_diff(end) < 4096;
            self.reads_on[owner] =
                waiting.request.direction == Direction::Read && self.passed[owner].is_some_and(near);
            let is_first = !self.has_more(owner);
            self.waiting.push((owner, waiting));
            let at = self.turn.map(|(owner, _)| owner);
            if owner > 0 && at == Some(0) {
                self.end();
                self.round.retain(|&other| other != owner);
                self.round.insert(0, owner);
            } else if is_first && at != Some(owner) {
                self.round.push(owner);
            }
        }

        fn is_scattered(&self, owner: usize) -> bool {
            owner > 0 && !(self.reads_on[owner] && self.thinks[owner] < 8 * MS)
        }

        fn served(&mut self, at: u64) {
            let owner = self.turn.unwrap().0;
            self.done[owner] = self.done[owner].max(Some(at));
            if self.is_scattered(owner)
                && let Some((_, done)) = &mut self.stands_back
            {
                *done = at.max(*done);
            }
        }

        /// Whose turn it is, taken from the round, or until when nobody's.
        fn choose(&mut self, now: u64) -> Result<usize, u64> {
            let reader = self.round.iter().position(|&owner| owner > 0);
            let at = match self.stands_back {
                Some((ends, done)) if self.round[0] == 0 && now < ends => match reader {
                    None if now < ends.min(done + 8 * MS) => return Err(ends.min(done + 8 * MS)),
                    _ => reader.unwrap_or(0),
                },
                _ => 0,
            };
            let owner = self.round.remove(at);
            if owner == 0 {
                self.stands_back = None;
            } else if self.is_scattered(owner) {
                let is_over =
                    self.stands_back.is_none_or(|(ends, _)| ends <= now && !self.round.contains(&0));
                let readers = 1 + self.round.iter().filter(|&&other| other > 0).count() as u64;
                let scattered =
                    1 + self.round.iter().filter(|&&other| self.is_scattered(other)).count() as u64;
                if is_over {
                    self.stands_back = Some((now + scattered * (300 * MS / readers).min(100 * MS), now));
                }
            }
            Ok(owner)
        }

        fn end(&mut self) {
            let (owner, _) = self.turn.take().unwrap();
            if self.has_more(owner) {
                self.round.push(owner);
            }
        }

        fn next(&mut self, now: u64) -> Option<Waiting> {
            self.rests_until = None;
            loop {
                let Some((owner, ends)) = self.turn else {
                    if self.round.is_empty() {
                        return None;
                    }
                    match self.choose(now) {
                        Ok(owner) => self.turn = Some((owner, None)),
                        Err(until) => {
                            self.rests_until = Some(until);
                            return None;
                        }
                    }
                    continue;
                };
                let is_over = ends.is_some_and(|ends| ends <= now);
                if !is_over && self.has_more(owner) {
                    let readers = 1 + self.round.iter().filter(|&&other| other > 0).count() as u64;
                    let slice = if owner == 0 { 40 * MS } else { (300 * MS / readers).min(100 * MS) };
                    let (wait, of) =
                        (if owner == 0 { 250 * MS } else { 125 * MS }, |&(of, _): &(usize, Waiting)| {
                            of == owner
                        });
                    let oldest = self.waiting.iter().position(of).unwrap();
                    let is_late = ends.is_none() && self.waiting[oldest].1.since.0 + wait <= now;
                    let place =
                        |&at: &usize| (self.waiting[at].1.request.area, self.waiting[at].1.request.block);
                    let ahead = (0..self.waiting.len())
                        .filter(|&at| {
                            of(&self.waiting[at])
                                && self.passed[owner].is_some_and(|passed| place(&at) >= passed)
                        })
                        .min_by_key(place)
                        .filter(|_| !is_late);
                    let (_, waiting) = self.waiting.remove(ahead.unwrap_or(oldest));
                    self.passed[owner] = Some((waiting.request.area, waiting.request.end()));
                    self.turn = Some((owner, ends.or(Some(now + slice))));
                    return Some(waiting);
                }
                let likely = self.reads_on[owner] && self.thinks[owner] < 8 * MS;
                let until =
                    self.done[owner].filter(|_| likely).map(|done| (done + 8 * MS).min(ends.unwrap()));
                if is_over || until.is_none_or(|until| until <= now) {
                    self.end();
                    continue;
                }
                self.rests_until = until;
                return None;
            }
        }
    }

    #[test]
    fn it_serves_as_the_model_does() {
        for seed in 0..20 {
            let mut rng = SplitMix64::new(seed);
            let (mut cfq, mut model) = (Cfq::default(), Model::default());
            let (mut now, mut rests) = (Nanos::ZERO, 0);
            for number in 0..5_000 {
                now += Nanos(rng.below(2 * MS));
                if rng.below(100) < 70 {
                    let served = cfq.next(now);
                    assert_eq!(served, model.next(now.0), "seed {seed}, step {number}");
                    assert_eq!(cfq.idles_until(), model.rests_until.map(Nanos));
                    rests += u64::from(cfq.idles_until().is_some());
                    if served.is_some() {
                        let done = now + Nanos(rng.below(8 * MS));
                        cfq.served(done);
                        model.served(done.0);
                    }
                    continue;
                }
                let owner = rng.below(5) as usize;
                let is_awaited = owner > 0 && rng.below(8) == 0;
                let request = Request {
                    direction: if owner == 0 || is_awaited { Direction::Write } else { Direction::Read },
                    area: Area::File(FileId(owner as u32 % 2)),
                    // Two tasks read in order, and two here and there.
                    block: if owner < 3 { 2 * number } else { 1_000_000 * rng.below(100) + 2 * number },
                    blocks: 1,
                    is_awaited,
                };
                let waiting =
                    Waiting { request, since: now, tickets: vec![Ticket(number as u32)], remote: None };
                let by = (owner > 0).then_some(TaskId(owner as u32));
                cfq.add(waiting.clone(), by);
                model.add(owner, waiting);
                let is_write =
                    |(_, waiting): &&(usize, Waiting)| waiting.request.direction == Direction::Write;
                let writes = model.waiting.iter().filter(is_write).count();
                assert_eq!(cfq.waiting(Direction::Write), writes);
                assert_eq!(cfq.waiting(Direction::Read), model.waiting.len() - writes);
            }
            assert!(rests > 50, "seed {seed}: the disk has rested {rests} times");
        }
    }
}
