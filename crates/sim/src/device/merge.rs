//! Requests that wait for a slot, and which of them a new one becomes part of.
//!
//! A disk with one queue has a scheduler in front of it, and that looks among the requests that wait for a neighbour of a new one:
//! tasks that read side by side, and a flusher between them, ask for pieces of the same stretch, one after the other. As one request
//! they cost one seek. What a device serves already is out of its reach, and so a device that is never short of slots merges nothing.
//!
//! ```text
//!   waiting   A: 0 to 31     B: 900 to 907     A: 32 to 47  ◀── new: it ends with the first A, and takes no slot
//! ```
//! When each of those that wait will be done has been told. It stays so: the new one ends when what it joins was to end, and its own
//! transfer later. The bus, and the slot that is free next, are held for longer by this transfer, at the expense of whoever comes
//! from now on. So a device is as fast as it would be; those between the two are told a time too early by the transfer, which is
//! little where seeks are long.
//!
//! Each is judged by itself when it comes to failures. Not modelled: two that wait and become neighbours by a third stay two.

use pageout_engine::Nanos;

use super::{Completion, Device, Direction, Request};

/// A request that waits for a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) request: Request,
    /// When it gets its slot: from then on the device has it.
    pub(super) slot_free: Nanos,
    /// When it is done, with all that is part of it.
    pub(super) at: Nanos,
    /// Which CPU handles its end, as in [`Completion`].
    pub(super) remote: Option<u32>,
}

impl Waiting {
    /// Both as one request, if they are neighbours.
    fn with(&self, other: Request) -> Option<Request> {
        let Request { direction, area, block, blocks } = self.request;
        let are_neighbours = (direction, area) == (other.direction, other.area)
            && (self.request.end() == other.block || other.end() == block);
        are_neighbours.then(|| Request {
            block: block.min(other.block),
            blocks: blocks.saturating_add(other.blocks),
            ..other
        })
    }
}

impl Device {
    /// Makes a request part of one that waits, if there is a neighbour and the two are no more than a request may be.
    #[inline(never)]
    pub(super) fn merge(&mut self, now: Nanos, request: Request) -> Option<Completion> {
        self.forget_served(now);
        let most = self.spec.request_pages_max;
        // The last one first: who reads or writes a stretch goes on where he was.
        let joined = |(place, waiting): (usize, &Waiting)| {
            waiting.with(request).filter(|whole| whole.blocks <= most).map(|whole| (place, whole))
        };
        let (place, whole) = self.waiting.iter().enumerate().rev().find_map(joined)?;
        let longer = Nanos(self.occupancy(whole).0 - self.occupancy(self.waiting[place].request).0);
        let is_last = place + 1 == self.waiting.len();
        let waiting = &mut self.waiting[place];
        waiting.request = whole;
        waiting.at += longer;
        let Waiting { slot_free, at, remote, .. } = *waiting;
        if is_last {
            self.head = Some((whole.area, whole.end()));
        }
        self.bus_free += longer;
        let mut slot = self.slots.peek_mut().expect("who waits, waits for a slot in use");
        slot.0 += longer;
        let busy_until = at.max(slot.0);
        drop(slot);

        let failed = self.faults.strike(request);
        self.note_busy(slot_free, busy_until);
        let stats = &mut self.stats;
        stats.merged += 1;
        stats.errors += u64::from(failed);
        match request.direction {
            Direction::Read => stats.blocks_read += u64::from(request.blocks),
            Direction::Write => stats.blocks_written += u64::from(request.blocks),
        }
        Some(Completion { at, failed, admitted: now, remote })
    }
}
