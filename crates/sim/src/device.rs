//! When a transfer is done: block devices as queue-depth servers, and which transfers fail.
//!
//! ```text
//!   submit ──▶ waits for one of N slots ──▶ waits for the bus ──▶ transfer ──▶ latency ──▶ done
//!              (scheduler, queue_depth)     (one, shared by all)  (bandwidth)  (drawn)
//! ```
//! A device serves `queue_depth` requests at a time; the others wait. It holds at most `nr_requests`, served and waiting. A task that submits one
//! more sleeps until a slot is free. So reclaim can't run far ahead of the device with scattered writes. (Neighbouring writes are one request, so the
//! limit matters little to them.)
//!
//! **Without a scheduler** they wait in order of arrival, and none overtakes another on its way to a slot. So the time of completion is
//! known at submission, and nothing is simulated in between.
//!
//! **Under a scheduler** (`elevator/`) they are sorted and merged, and reads go before writes. A later request can go first, so the completion of a
//! waiting request is unknown before it has its slot. The caller comes back when a slot is free ([`Device::next_dispatch`]). There are `nr_requests`
//! slots for each direction, so reads don't wait for writes to be admitted. A task that has to sleep until a slot is free gets an estimate of the
//! time immediately, by the recent completion rate of that direction.
//!
//! Every request occupies a bus shared by all, for `bytes / bandwidth` or for `1 / iops_max`, whichever is longer. This bounds
//! throughput, however deep the queue. Then comes a latency drawn from the device's distribution.
//!
//! The median of a distribution is the time of a single 4 KiB request on an idle device, transfer included: devices are measured
//! that way ([`DeviceSpec::latency_covers`]).
//!
//! A device with [`DeviceSpec::seek`] has a head: a request that does not follow the previous one takes longer, the further away it is. Blocks of a
//! file are as far from each other as their numbers, and two files are as far apart as can be.
//!
//! Not modelled: reordering within the device, caches, garbage collection, and any difference between a busy and an
//! idle device other than its queue.
//!
//! The end of a request is handled on the CPU that submitted it, or, where a device has fewer interrupts than the machine CPUs, by
//! chance on another ([`DeviceSpec::remote_completions`]).
//!
//! Randomness: each device has its own generators, seeded from the scenario's seed and the device's number. Failures and
//! CPUs of completions have generators of their own, so switching them on does not move the latencies.

mod draw;
mod elevator;
mod fault;
mod preset;
mod remote;
mod spec;

pub use draw::{Latency, Tail};
pub use fault::{Fault, FaultRule};
pub use preset::{Figure, PRESETS, Preset};
pub use spec::{DeviceError, DeviceSpec, IoScheduler, Seek};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pageout_engine::{FileId, Nanos, SwapId, TaskId};
use pageout_workload::rng::SplitMix64;

use crate::latency::{LatencyHistogram, LatencySummary};
use draw::Draw;
use elevator::{Elevator, Waiting};
use fault::Faults;
use remote::Remote;

/// The direction of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the device to memory.
    Read,
    /// From memory to the device.
    Write,
}

/// The file or swap area that a block belongs to. Blocks of one area lie one behind the other; two areas lie far apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Area {
    /// A file; blocks are its pages.
    File(FileId),
    /// A swap area; blocks are its slots.
    Swap(SwapId),
}

/// One transfer of consecutive blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The direction of the request.
    pub direction: Direction,
    /// The file or swap area.
    pub area: Area,
    /// First block within the area, in 4 KiB pages.
    pub block: u64,
    /// Length in 4 KiB pages.
    pub blocks: u32,
    /// A write that a task waits for. (Who reads waits in any case.)
    pub is_awaited: bool,
}

impl Request {
    fn bytes(&self) -> u64 {
        u64::from(self.blocks) * spec::BLOCK_BYTES
    }

    /// The block behind it.
    fn end(&self) -> u64 {
        self.block + u64::from(self.blocks)
    }
}

/// A number by which the submitter of a request knows it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub u32);

/// A request that begins to wait under an I/O scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queuing {
    /// True if it will fail.
    pub failed: bool,
    /// Until when the one who submitted the request sleeps, as in [`Completion`].
    pub admitted: Nanos,
}

/// A request that has waited under a scheduler, and is the device's now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatched {
    /// The time of completion.
    pub at: Nanos,
    /// Tickets of all requests that were merged into this one.
    pub tickets: Vec<Ticket>,
    /// The other CPU that handles the end of the request, as in [`Completion`].
    pub remote: Option<u32>,
}

/// The end of a request: when, on which CPU, and whether it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The time of completion.
    pub at: Nanos,
    /// True if the device reported an error. A failed request takes as long as a good one.
    pub failed: bool,
    /// Time until which the submitter sleeps because no slot is free; the past if one is.
    pub admitted: Nanos,
    /// The other CPU that handles its end, random over all numbers; `None`: the one that submitted it.
    pub remote: Option<u32>,
}

/// A device at work.
#[derive(Debug)]
pub struct Device {
    spec: DeviceSpec,
    read_draw: Draw,
    write_draw: Draw,
    read_rate: Rate,
    write_rate: Rate,
    faults: Faults,
    /// Which ends are handled elsewhere; `None` where none is.
    remote: Option<Remote>,
    /// Ends of the requests in service, earliest first; never more than `queue_depth`.
    slots: BinaryHeap<Reverse<Nanos>>,
    /// When those that wait for a slot will have it, in this order. Without a scheduler.
    slots_to_come: VecDeque<Nanos>,
    /// Requests that wait under a scheduler, where there is one.
    elevator: Option<Elevator>,
    /// How fast they leave, by direction.
    paces: [Pace; 2],
    bus_free: Nanos,
    /// Where the previous request ended: the next block of its area.
    head: Option<(Area, u64)>,
    busy_until: Nanos,
    submitted_last: Nanos,
    stats: Stats,
}

/// Times on the bus that nearly every request needs, computed once because divisions are slow.
#[derive(Debug)]
struct Rate {
    /// Time on the bus of one block.
    block: Nanos,
    /// Time on the bus of what [`DeviceSpec::latency_covers`].
    covered: Nanos,
}

impl Rate {
    fn new(spec: &DeviceSpec, direction: Direction) -> Rate {
        Rate {
            block: spec.occupancy(direction, spec::BLOCK_BYTES),
            covered: spec.occupancy(direction, spec.latency_covers),
        }
    }
}

/// How fast requests of a direction leave a scheduler while others of it wait.
#[derive(Debug, Default)]
struct Pace {
    /// Since when some wait, or when the last one left.
    since: Nanos,
    /// Requests that left others behind, and the time between them.
    left: u64,
    time: Nanos,
}

impl Pace {
    /// One leaves, and others stay.
    fn leaves(&mut self, now: Nanos) {
        self.left += 1;
        self.time += Nanos(now.0 - self.since.0);
        self.since = now;
    }

    /// Time from one to the next, if any has left.
    fn each(&self) -> Option<Nanos> {
        self.time.0.checked_div(self.left).map(Nanos)
    }
}

#[derive(Debug, Default)]
struct Stats {
    errors: u64,
    busy: Nanos,
    queue_wait: Nanos,
    merged: u64,
    blocks_read: u64,
    blocks_written: u64,
    read: LatencyHistogram,
    write: LatencyHistogram,
}

/// Statistics of a device in a run.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceReport {
    /// The device's name.
    pub name: String,
    /// Read requests and how long they took from submission to completion.
    pub read: LatencySummary,
    /// Write requests, likewise.
    pub write: LatencySummary,
    /// Pages read.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that became part of one that waited, and are none of those above.
    pub merged: u64,
    /// Time during which at least one request was in service.
    pub busy: Nanos,
    /// Time that requests spent waiting for a slot or the bus, summed over requests.
    pub queue_wait: Nanos,
}

impl Device {
    /// Builds device number `index` of a machine seeded with `seed`.
    pub fn new(spec: DeviceSpec, seed: u64, index: u32) -> Result<Device, DeviceError> {
        spec.validate()?;
        let seed_of = |part: u64| SplitMix64::derive_seed(seed, u64::from(index) * 4 + part);
        Ok(Device {
            read_draw: Draw::new(spec.read, spec.tail, seed_of(0)),
            write_draw: Draw::new(spec.write, spec.tail, seed_of(1)),
            read_rate: Rate::new(&spec, Direction::Read),
            write_rate: Rate::new(&spec, Direction::Write),
            faults: Faults::new(spec.faults.clone(), seed_of(2)),
            remote: Remote::new(spec.remote_completions, seed_of(3)),
            elevator: Elevator::of(spec.scheduler),
            paces: Default::default(),
            spec,
            slots: BinaryHeap::new(),
            slots_to_come: VecDeque::new(),
            bus_free: Nanos::ZERO,
            head: None,
            busy_until: Nanos::ZERO,
            submitted_last: Nanos::ZERO,
            stats: Stats::default(),
        })
    }

    /// Returns true if requests wait under a scheduler: then they are given to [`Device::queue`], and otherwise to [`Device::serve_in_turn`].
    pub fn has_scheduler(&self) -> bool {
        self.elevator.is_some()
    }

    /// Takes a request and says when it will be done and whether it fails.
    ///
    /// # Panics
    /// When `now` is before an earlier submission, or it has a scheduler.
    pub fn serve_in_turn(&mut self, now: Nanos, request: Request) -> Completion {
        assert!(self.elevator.is_none(), "its scheduler is passed by");
        self.submitted(now);
        let slot_free = self.take_slot(now);
        let at = self.serve(now, slot_free, request);
        let failed = self.strike(request);
        let remote = self.remote.as_mut().and_then(Remote::draw);
        let admitted = if slot_free <= now { now } else { self.wait_in_turn(now, slot_free) };
        Completion { at, failed, admitted, remote }
    }

    /// Takes a request of `by` that waits under the scheduler, even if a slot is free: those that are submitted with it may become part of it.
    ///
    /// # Panics
    /// When `now` is before an earlier submission, or it has no scheduler.
    pub fn queue(&mut self, now: Nanos, request: Request, by: Option<TaskId>, ticket: Ticket) -> Queuing {
        self.submitted(now);
        let failed = self.strike(request);
        let elevator = self.elevator.as_mut().expect("it has a scheduler");
        if elevator.merge(request, by, ticket, self.spec.request_pages_max) {
            self.stats.merged += 1;
            return Queuing { failed, admitted: now };
        }
        let remote = self.remote.as_mut().and_then(Remote::draw);
        elevator.add(Waiting { request, since: now, tickets: vec![ticket], remote }, by);
        let waiting = elevator.waiting(request.direction);
        if waiting == 1 {
            self.paces[request.direction as usize].since = now;
        }
        let excess = waiting.saturating_sub(self.room());
        let admitted = if excess == 0 { now } else { self.expect_dispatches(now, request.direction, excess) };
        Queuing { failed, admitted }
    }

    /// Gives the device the next request that waits under the scheduler, if it has a slot.
    pub fn dispatch(&mut self, now: Nanos) -> Option<Dispatched> {
        let has_slot = self.next_slot().is_none_or(|end| end <= now);
        let elevator = self.elevator.as_mut().filter(|_| has_slot)?;
        let waiting = elevator.next(now)?;
        let direction = waiting.request.direction;
        if elevator.waiting(direction) > 0 {
            self.paces[direction as usize].leaves(now);
        }
        let slot_free = self.take_slot(now);
        let at = self.serve(waiting.since, slot_free, waiting.request);
        self.elevator.as_mut()?.served(at);
        Some(Dispatched { at, tickets: waiting.tickets, remote: waiting.remote })
    }

    /// Returns the time to ask again for a request that waits under the scheduler, after [`Device::dispatch`] had none. The device then has a slot, or the
    /// scheduler has waited long enough for another; `None` if none waits.
    pub fn next_dispatch(&self) -> Option<Nanos> {
        let elevator = self.elevator.as_ref().filter(|elevator| !elevator.is_empty())?;
        elevator.idles_until().max(self.next_slot())
    }

    /// When the device has a slot; `None`: it has one.
    fn next_slot(&self) -> Option<Nanos> {
        let is_full = self.slots.len() >= self.spec.queue_depth as usize;
        self.slots.peek().filter(|_| is_full).map(|&Reverse(end)| end)
    }

    /// Counts a request that is answered without a clock, in pieces as large as the device accepts.
    pub(crate) fn answer_now(&mut self, request: Request) {
        let (requests, blocks) = match request.direction {
            Direction::Read => (&mut self.stats.read, &mut self.stats.blocks_read),
            Direction::Write => (&mut self.stats.write, &mut self.stats.blocks_written),
        };
        requests.record_many(Nanos::ZERO, request.blocks.div_ceil(self.spec.request_pages_max).into());
        *blocks += u64::from(request.blocks);
    }

    /// Blocks in one request at most.
    pub(crate) fn request_pages_max(&self) -> u32 {
        self.spec.request_pages_max
    }

    /// Statistics of the device up to `now`; a request in service counts with its time in service so far.
    pub fn report(&self, now: Nanos) -> DeviceReport {
        let ahead = Nanos(self.busy_until.0.saturating_sub(now.0));
        DeviceReport {
            name: self.spec.name.clone(),
            read: self.stats.read.summary(),
            write: self.stats.write.summary(),
            pages_read: self.stats.blocks_read,
            pages_written: self.stats.blocks_written,
            errors: self.stats.errors,
            merged: self.stats.merged,
            busy: Nanos(self.stats.busy.0.saturating_sub(ahead.0)),
            queue_wait: self.stats.queue_wait,
        }
    }

    /// When a slot is free for a request that arrives now; the caller fills it.
    fn take_slot(&mut self, now: Nanos) -> Nanos {
        match self.slots.peek() {
            Some(&Reverse(end)) if end <= now || self.slots.len() >= self.spec.queue_depth as usize => {
                self.slots.pop();
                end.max(now)
            }
            _ => now,
        }
    }

    /// Serves a request that has a slot from `slot_free` on, and was submitted at `since`: when it is done.
    #[inline]
    fn serve(&mut self, since: Nanos, slot_free: Nanos, request: Request) -> Nanos {
        let start = slot_free.max(self.bus_free);
        self.bus_free = start + self.occupancy(request);
        let at = self.bus_free + self.latency(request);
        self.slots.push(Reverse(at));
        self.head = Some((request.area, request.end()));
        self.account(since, start, at, request);
        at
    }

    fn submitted(&mut self, now: Nanos) {
        assert!(now >= self.submitted_last, "request at {now:?} after one at {:?}", self.submitted_last);
        self.submitted_last = now;
    }

    /// Returns true if a request fails.
    fn strike(&mut self, request: Request) -> bool {
        let failed = self.faults.strike(request);
        self.stats.errors += u64::from(failed);
        failed
    }

    /// A request waits for a slot: the time at which the queue can hold it.
    #[inline(never)]
    fn wait_in_turn(&mut self, now: Nanos, slot_free: Nanos) -> Nanos {
        // Those that have their slot by now wait no more.
        while self.slots_to_come.front().is_some_and(|&slot_free| slot_free <= now) {
            self.slots_to_come.pop_front();
        }
        self.slots_to_come.push_back(slot_free);
        // Once that one is served, a slot is free.
        let last_ahead = self.slots_to_come.len().checked_sub(self.room() + 1);
        last_ahead.map_or(now, |at| self.slots_to_come[at])
    }

    /// How many may wait.
    fn room(&self) -> usize {
        self.spec.nr_requests.saturating_sub(self.spec.queue_depth) as usize
    }

    /// When so many of those of a direction that wait under the scheduler will have been given to the device, as far as one can tell.
    fn expect_dispatches(&self, now: Nanos, direction: Direction, count: usize) -> Nanos {
        let slot = self.next_slot().unwrap_or(now);
        let pace = &self.paces[direction as usize];
        let (next, each) = match pace.each() {
            Some(each) => (slot.max(pace.since + each), each),
            None => {
                let served = self.stats.read.count() + self.stats.write.count();
                (slot, Nanos(self.stats.busy.0 / served.max(1)))
            }
        };
        next + Nanos(each.0 * (count as u64 - 1))
    }

    /// How long a request holds the bus.
    fn occupancy(&self, request: Request) -> Nanos {
        let rate = self.rate(request.direction);
        if request.blocks == 1 { rate.block } else { self.spec.occupancy(request.direction, request.bytes()) }
    }

    /// Time of a request in addition to its time on the bus.
    fn latency(&mut self, request: Request) -> Nanos {
        let follows = self.head == Some((request.area, request.block));
        let idle = match (self.spec.sequential, request.direction) {
            (Some(sequential), _) if follows => sequential,
            (_, Direction::Read) => self.read_draw.draw(),
            (_, Direction::Write) => self.write_draw.draw(),
        };
        let idle = match self.spec.seek {
            Some(seek) if !follows => idle + seek.time(self.distance(request)),
            _ => idle,
        };
        Nanos(idle.0.saturating_sub(self.rate(request.direction).covered.0))
    }

    /// Blocks between the head and a request; `None` if it is in another area.
    fn distance(&self, request: Request) -> Option<u64> {
        self.head.filter(|(area, _)| *area == request.area).map(|(_, block)| block.abs_diff(request.block))
    }

    fn rate(&self, direction: Direction) -> &Rate {
        match direction {
            Direction::Read => &self.read_rate,
            Direction::Write => &self.write_rate,
        }
    }

    fn account(&mut self, since: Nanos, start: Nanos, at: Nanos, request: Request) {
        let stats = &mut self.stats;
        let (latency, blocks) = match request.direction {
            Direction::Read => (&mut stats.read, &mut stats.blocks_read),
            Direction::Write => (&mut stats.write, &mut stats.blocks_written),
        };
        latency.record(Nanos(at.0 - since.0));
        *blocks += u64::from(request.blocks);
        stats.queue_wait += Nanos(start.0 - since.0);
        self.note_busy(start, at);
    }

    /// The device serves a request from `start` to `end`. Requests start in order, so the union of their times grows at its end only.
    fn note_busy(&mut self, start: Nanos, end: Nanos) {
        self.stats.busy += Nanos(end.0.saturating_sub(start.max(self.busy_until).0));
        self.busy_until = self.busy_until.max(end);
    }
}

#[cfg(test)]
mod tests;
