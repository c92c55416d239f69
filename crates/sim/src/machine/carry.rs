//! Carrying out what the engine asked for: operations become device requests or CPU time.
//!
//! Transfers of one engine call that lie side by side on a device become one request, as with plugging in the block layer. A
//! batch of swap writes to neighbouring slots seeks once. If a request fails, all its transfers fail. A transfer that is larger than
//! a request may be is split; it is over when all its requests are, and fails if one of them does.

use pageout_engine::{CpuId, IoId, Nanos, Op, TaskId, Work};

use super::Machine;
use super::agenda::Event;
use crate::device::{Area, Completion, Device, Direction, Request};
use crate::observe::Observer;

/// What an engine call came to.
pub(super) struct Settled {
    /// CPU time of its work and operations.
    pub(super) spent: Nanos,
    /// Reclaim calls that ended in it.
    pub(super) reclaim_calls: u64,
    /// As much of that as pages took that were decompressed to be read, and those of the working set among them.
    pub(super) decompressed: Nanos,
    pub(super) refaults: Nanos,
    /// What compaction counts, priced; nothing where none has looked at any frame.
    pub(super) compaction: Nanos,
    /// Until when the submitter sleeps because a device has no free slot for more requests; the past if all have.
    pub(super) admitted: Nanos,
}

/// A request, and how many transfers it is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    request: Request,
    ios: usize,
}

impl Gathered {
    pub(super) fn request(&self) -> Request {
        self.request
    }
}

impl Machine {
    /// After every engine call: prices its work and carries out its operations, on behalf of `cpu`, and of `task` if
    /// it is its own call. Returns the CPU time they take together, which goes on
    /// the machine's account. The observer hears what the call did to page caches.
    ///
    /// Inlined: most calls ask for nothing, and their pricing is hardly longer than a call of it.
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        task: Option<TaskId>,
        cpu: CpuId,
        observer: &mut dyn Observer,
    ) -> Settled {
        let mut compaction = Nanos::ZERO;
        if self.engine.take_rare_work() {
            self.priced_rarely = self.costs.price_rarely(self.engine.work());
            compaction = self.price_compaction();
        }
        let work = self.engine.work();
        let priced = self.costs.price_often(work) + self.priced_rarely;
        debug_assert_eq!(priced, self.costs.price(work), "work that is counted rarely is noted");
        let mut settled = Settled {
            spent: Nanos(priced.0 - self.priced.0),
            reclaim_calls: work.reclaim_calls - self.reclaim_calls,
            decompressed: Nanos::ZERO,
            refaults: Nanos::ZERO,
            compaction,
            admitted: Nanos::ZERO,
        };
        (self.priced, self.reclaim_calls) = (priced, work.reclaim_calls);
        self.engine.take_ops(&mut self.ops);
        if !self.ops.is_empty() {
            self.carry_out(task, cpu, &mut settled);
        }
        if self.records_page_cache || self.tells_story && self.engine.has_story() {
            self.tell_observer(task, cpu, &settled, observer);
        }
        settled
    }

    /// What compaction has counted since the last time, priced: frames looked at, and the entries that led to pages it has moved. The
    /// copies are among the operations.
    fn price_compaction(&mut self) -> Nanos {
        let &Work { compact_scanned, entries_migrated, .. } = self.engine.work();
        let before = std::mem::replace(&mut self.compacted, (compact_scanned, entries_migrated));
        match compact_scanned - before.0 {
            0 => Nanos::ZERO,
            scanned => Nanos(
                scanned * self.costs.compact_scan + (entries_migrated - before.1) * self.costs.migrate_entry,
            ),
        }
    }

    /// Tells the observer what an engine call did.
    #[cold]
    fn tell_observer(
        &mut self,
        task: Option<TaskId>,
        cpu: CpuId,
        settled: &Settled,
        observer: &mut dyn Observer,
    ) {
        if self.records_page_cache {
            self.engine.take_page_cache_events(&mut self.page_cache_events);
            for event in self.page_cache_events.drain(..) {
                observer.page_cache(self.agenda.now(), event);
            }
        }
        if self.tells_story && self.engine.has_story() {
            self.hand_over_story(task, cpu, settled.spent, settled.reclaim_calls, observer);
        }
    }

    /// Carries out the operations of an engine call. Its transfers complete later by the CPU time that goes before them.
    #[inline(never)]
    fn carry_out(&mut self, task: Option<TaskId>, cpu: CpuId, settled: &mut Settled) {
        let mut ops = std::mem::take(&mut self.ops);
        for op in &ops {
            match transfer(op) {
                Some((io, request)) => self.gather(io, request),
                // Freed frames and slots cause no work of a device or a CPU that would take time.
                None if op.gives_up() => {}
                None => self.carry_in_memory(op, settled),
            }
        }
        if let Some(memory) = &mut self.memory {
            let (now, spent, by) = (self.agenda.now(), settled.spent, self.engine.figures().node_of_cpu(cpu));
            settled.spent += memory.carry_out(&ops, now, spent, by, |pfn| self.engine.node_of(pfn));
        }
        ops.clear();
        self.ops = ops;
        if !self.gathered.is_empty() {
            self.submit_gathered(task, cpu, settled);
        }
    }

    /// Carries out what happens in memory and takes time of the CPU.
    #[inline(never)]
    fn carry_in_memory(&mut self, op: &Op, settled: &mut Settled) {
        let took = self.carried.add(op, &self.costs);
        settled.spent += took;
        match *op {
            Op::ReadSwapNow { pfn, .. } | Op::ZswapLoad { pfn, .. } => {
                settled.decompressed += took;
                settled.refaults += if self.engine.is_refault(pfn) { took } else { Nanos::ZERO };
            }
            Op::Copy { .. } if settled.compaction > Nanos::ZERO => settled.compaction += took,
            _ => {}
        }
    }

    /// Makes a transfer part of the request before it, or a new one.
    #[inline]
    pub(super) fn gather(&mut self, io: IoId, request: Request) {
        if let (Area::File(file), Direction::Read) = (request.area, request.direction) {
            self.sequences.note(file, request.block, request.blocks);
        }
        self.ios.push(io);
        if self.gathered.is_empty() || !self.absorb(&request) {
            self.gathered.push(Gathered { request, ios: 0 });
        }
        self.gathered.last_mut().expect("there is a request").ios += 1;
    }

    /// Makes a transfer part of the last request gathered, if it continues that and the two are not too much for its device.
    #[inline(never)]
    fn absorb(&mut self, next: &Request) -> bool {
        let most = self.devices[self.device_of(next.area)].request_pages_max();
        self.gathered.last_mut().is_some_and(|last| absorb(&mut last.request, next, most))
    }

    /// Submits the requests that transfers have become.
    fn submit_gathered(&mut self, task: Option<TaskId>, cpu: CpuId, settled: &mut Settled) {
        let now = self.agenda.now();
        let mut first = 0;
        for at in 0..self.gathered.len() {
            let Gathered { request, ios } = self.gathered[at];
            let ios = first..first + ios;
            first = ios.end;
            let device = self.device_of(request.area);
            if self.devices[device].has_scheduler() {
                self.queue_transfers(device, request, ios, (task, cpu), settled);
                continue;
            }
            let completion = submit_in_pieces(&mut self.devices[device], now, request);
            settled.admitted = settled.admitted.max(completion.admitted + settled.spent);
            let cpu = self.completion_cpu(cpu, completion.remote);
            for &io in &self.ios[ios] {
                let done = Event::IoDone { io, cpu, failed: completion.failed };
                self.agenda.push(completion.at + settled.spent, done);
            }
        }
        self.gathered.clear();
        self.ios.clear();
        // All of them are there to be sorted before the first one goes.
        self.dispatch_queued();
    }

    /// Where the end of a request is handled that was submitted on `cpu`: there, or elsewhere, where `remote` is any number.
    pub(super) fn completion_cpu(&self, cpu: CpuId, remote: Option<u32>) -> CpuId {
        remote.map_or(cpu, |which| self.other_cpu(cpu, which))
    }

    /// A CPU other than this one, where there is one; `which` is any number.
    #[cold]
    fn other_cpu(&self, cpu: CpuId, which: u32) -> CpuId {
        let cpus = self.kernel_time.len() as u64;
        let step = 1 + ((u64::from(which) * (cpus - 1)) >> 32);
        CpuId(((u64::from(cpu.0) + step) % cpus) as u16)
    }

    pub(super) fn device_of(&self, area: Area) -> usize {
        let device = match area {
            Area::File(file) => self.file_device.get(file.0 as usize),
            Area::Swap(swap) => self.swap_device.get(usize::from(swap.0)),
        };
        device.copied().flatten().unwrap_or_else(|| panic!("a transfer of {area:?}, which is on no device"))
    }
}

/// The device request of a transfer; `None` for what happens in memory.
pub(super) fn transfer(op: &Op) -> Option<(IoId, Request)> {
    let is_awaited = matches!(op, Op::WriteFile { is_awaited: true, .. });
    let (io, direction, area, block, blocks) = match *op {
        Op::ReadFile { io, file, page, pages, .. } => (io, Direction::Read, Area::File(file), page, pages),
        Op::WriteFile { io, file, page, pages, .. } => (io, Direction::Write, Area::File(file), page, pages),
        Op::ReadSwap { io, swap, slot, .. } => (io, Direction::Read, Area::Swap(swap), u64::from(slot), 1),
        Op::WriteSwap { io, swap, slot, pages, .. } => {
            (io, Direction::Write, Area::Swap(swap), u64::from(slot), pages)
        }
        Op::Zero { .. }
        | Op::Clear { .. }
        | Op::ReadSwapNow { .. }
        | Op::WriteSwapNow { .. }
        | Op::ZswapStore { .. }
        | Op::ZswapLoad { .. }
        | Op::ZswapMove { .. }
        | Op::ZswapFree { .. }
        | Op::Copy { .. }
        | Op::FreeFrame { .. }
        | Op::PunchHole { .. }
        | Op::FreeSlot { .. } => return None,
    };
    Some((io, Request { direction, area, block, blocks, is_awaited }))
}

/// Submits a request to a device without a scheduler. One that is larger than it takes is over when all its pieces are, and fails if
/// one of them does.
#[inline]
fn submit_in_pieces(device: &mut Device, now: Nanos, request: Request) -> Completion {
    let most = device.request_pages_max();
    match request.blocks <= most {
        true => device.serve_in_turn(now, request),
        false => submit_pieces(device, now, request, most),
    }
}

#[cold]
fn submit_pieces(device: &mut Device, now: Nanos, request: Request, most: u32) -> Completion {
    let pieces = pieces(request, most).map(|piece| device.serve_in_turn(now, piece));
    let all = pieces.reduce(|before, last| Completion {
        at: before.at.max(last.at),
        failed: before.failed | last.failed,
        admitted: before.admitted.max(last.admitted),
        remote: last.remote,
    });
    all.expect("a transfer has blocks")
}

/// The requests of `most` blocks at most that a transfer, or neighbours together, become.
pub(super) fn pieces(whole: Request, most: u32) -> impl Iterator<Item = Request> {
    (0..whole.blocks).step_by(most as usize).map(move |from| Request {
        block: whole.block + u64::from(from),
        blocks: (whole.blocks - from).min(most),
        ..whole
    })
}

/// Makes `next` part of `request` if it continues it, and the two are no more than `most` blocks.
fn absorb(request: &mut Request, next: &Request, most: u32) -> bool {
    let continues = request.direction == next.direction
        && request.area == next.area
        && request.block + u64::from(request.blocks) == next.block
        && request.blocks + next.blocks <= most;
    if continues {
        request.blocks += next.blocks;
        request.is_awaited |= next.is_awaited;
    }
    continues
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_engine::{FileId, Pfn, SwapId};

    /// Blocks of the requests that swap writes to these slots become.
    fn requests(slots: &[u32]) -> Vec<(u64, u32)> {
        let write = |&slot| Op::WriteSwap { io: IoId(slot), swap: SwapId(0), slot, pfn: Pfn(0), pages: 1 };
        let ops: Vec<Op> = slots.iter().map(write).collect();
        let mut requests: Vec<Request> = Vec::new();
        for (_, next) in ops.iter().filter_map(transfer) {
            if !requests.last_mut().is_some_and(|last| absorb(last, &next, 320)) {
                requests.push(next);
            }
        }
        requests.iter().map(|request| (request.block, request.blocks)).collect()
    }

    #[test]
    fn a_read_larger_than_a_request_is_split() {
        let whole = Request {
            direction: Direction::Read,
            area: Area::File(FileId(0)),
            block: 7,
            blocks: 700,
            is_awaited: false,
        };
        let pieces: Vec<(u64, u32)> = pieces(whole, 320).map(|piece| (piece.block, piece.blocks)).collect();
        assert_eq!(pieces, [(7, 320), (327, 320), (647, 60)]);
    }

    #[test]
    fn neighbours_become_one_request_up_to_its_greatest_size() {
        assert_eq!(requests(&[5, 6, 7, 9, 8]), [(5, 3), (9, 1), (8, 1)]);
        let many: Vec<u32> = (0..400).collect();
        assert_eq!(requests(&many), [(0, 320), (320, 80)]);
    }
}
