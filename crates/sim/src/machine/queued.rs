//! Transfers that wait under the scheduler of a device, until all requests that they are part of have been dispatched.
//!
//! ```text
//!   submit_gathered ─▶ queue_transfers ─▶ a ticket, and a request or some ─▶ the device's scheduler
//!                      dispatch_queued ─▶ what has a slot at once ─▶ when it is done ─▶ IoDone
//!   SlotFree ────────▶ slot_free ───────▶ what has one now
//! ```
//! One event a device says when it has the next slot, as long as anything waits for it.

use std::ops::Range;

use pageout_engine::{CpuId, IoId, Nanos, TaskId};

use super::Machine;
use super::agenda::Event;
use super::carry::{Settled, pieces};
use crate::device::{Dispatched, Queuing, Request, Ticket};

/// All requests that wait for a slot in a device.
#[derive(Debug)]
pub(super) struct Queued {
    /// By ticket; unused ones are in `free`.
    transfers: Vec<Transfers>,
    free: Vec<Ticket>,
    /// Devices that were given something since they were asked last what they dispatch.
    touched: Vec<usize>,
    /// By device: when it is asked next, if anything waits for it.
    asked_next: Vec<Option<Nanos>>,
}

/// Transfers side by side that were submitted as one.
#[derive(Default, Debug)]
struct Transfers {
    ios: Vec<IoId>,
    cpu: CpuId,
    /// They end so much later, as what was submitted in the middle of work.
    later: Nanos,
    /// True if any piece fails.
    failed: bool,
    /// Pieces that wait, and when the last of those that don't is done.
    waiting: u32,
    done: Nanos,
}

impl Queued {
    pub(super) fn new(devices: usize) -> Queued {
        Queued {
            transfers: Vec::new(),
            free: Vec::new(),
            touched: Vec::new(),
            asked_next: vec![None; devices],
        }
    }

    fn add(&mut self, transfers: Transfers) -> Ticket {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(Transfers::default());
            Ticket(self.transfers.len() as u32 - 1)
        });
        self.transfers[ticket.0 as usize] = transfers;
        ticket
    }

    /// A piece is done at `at`. The transfers, if it was the last that waited.
    fn piece_dispatched(&mut self, ticket: Ticket, at: Nanos) -> Option<Transfers> {
        let transfers = &mut self.transfers[ticket.0 as usize];
        transfers.waiting -= 1;
        transfers.done = transfers.done.max(at);
        if transfers.waiting > 0 {
            return None;
        }
        self.free.push(ticket);
        Some(std::mem::take(transfers))
    }
}

impl Machine {
    /// Hands a request to a device's scheduler, in pieces where it is larger than the device takes.
    #[inline(never)]
    pub(super) fn queue_transfers(
        &mut self,
        device: usize,
        request: Request,
        ios: Range<usize>,
        (task, cpu): (Option<TaskId>, CpuId),
        settled: &mut Settled,
    ) {
        let now = self.agenda.now();
        let ios = self.ios[ios].to_vec();
        let ticket = self.queued.add(Transfers { ios, cpu, later: settled.spent, ..Transfers::default() });
        if !self.queued.touched.contains(&device) {
            self.queued.touched.push(device);
        }
        let most = self.devices[device].request_pages_max();
        for piece in pieces(request, most) {
            let Queuing { failed, admitted } = self.devices[device].queue(now, piece, task, ticket);
            let transfers = &mut self.queued.transfers[ticket.0 as usize];
            transfers.waiting += 1;
            transfers.failed |= failed;
            settled.admitted = settled.admitted.max(admitted + settled.spent);
        }
    }

    /// Devices begin with what they were given, as far as they have slots.
    pub(super) fn dispatch_queued(&mut self) {
        while let Some(device) = self.queued.touched.pop() {
            self.dispatch(device);
        }
    }

    /// A device has a slot.
    pub(super) fn slot_free(&mut self, device: usize) {
        // An event that an earlier one has replaced has no effect any more.
        if self.queued.asked_next[device] == Some(self.agenda.now()) {
            self.queued.asked_next[device] = None;
            self.dispatch(device);
        }
    }

    #[inline(never)]
    fn dispatch(&mut self, device: usize) {
        let now = self.agenda.now();
        while let Some(Dispatched { at, tickets, remote }) = self.devices[device].dispatch(now) {
            for ticket in tickets {
                let Some(transfers) = self.queued.piece_dispatched(ticket, at) else { continue };
                let Transfers { ios, cpu, later, failed, done, .. } = transfers;
                let cpu = self.completion_cpu(cpu, remote);
                for io in ios {
                    self.agenda.push(done + later, Event::IoDone { io, cpu, failed });
                }
            }
        }
        let asked_next = &mut self.queued.asked_next[device];
        if let Some(at) = self.devices[device].next_dispatch()
            && asked_next.is_none_or(|next| at < next)
        {
            *asked_next = Some(at);
            self.agenda.push(at, Event::SlotFree { device: device as u32 });
        }
    }
}
