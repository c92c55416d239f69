//! The queue of an I/O scheduler: waiting requests in order of their places and of their arrivals. Neighbours are merged into one.
//!
//! Not modelled: two that wait and become neighbours by a third stay two.

use std::collections::BTreeMap;

use pageout_engine::Nanos;

use crate::device::{Area, Request, Ticket};

/// Where a request is, and which of those it is.
type Place = (Area, u64, u64);

/// A request that waits, with all that has become part of it.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::device) struct Waiting {
    pub(in crate::device) request: Request,
    /// When the request came.
    pub(in crate::device) since: Nanos,
    /// Whose requests it is made of.
    pub(in crate::device) tickets: Vec<Ticket>,
    /// Which CPU handles its end, as in [`crate::device::Completion`].
    pub(in crate::device) remote: Option<u32>,
}

/// Requests of a kind that wait.
#[derive(Default, Debug)]
pub(super) struct Queue {
    by_place: BTreeMap<Place, Waiting>,
    /// Where each is, the one that came first in front.
    by_arrival: BTreeMap<u64, Place>,
    arrived: u64,
    /// Where the last one that went ended.
    passed: Option<(Area, u64)>,
}

impl Queue {
    /// The number of requests that wait.
    pub(super) fn len(&self) -> usize {
        self.by_place.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// Where the last one that went ended.
    pub(super) fn passed(&self) -> Option<(Area, u64)> {
        self.passed
    }

    /// Makes a request part of a neighbour that waits, if there is one and the two are `most` blocks at most.
    pub(super) fn merge(&mut self, request: Request, ticket: Ticket, most: u32) -> bool {
        let Some(place) = self.neighbour(request, most) else { return false };
        let mut waiting = self.take(place);
        waiting.request.block = waiting.request.block.min(request.block);
        waiting.request.blocks += request.blocks;
        waiting.request.is_awaited |= request.is_awaited;
        waiting.tickets.push(ticket);
        self.put(place.2, waiting);
        true
    }

    /// A request waits in its own right.
    pub(super) fn add(&mut self, waiting: Waiting) {
        let arrival = self.arrived;
        self.arrived += 1;
        self.put(arrival, waiting);
    }

    /// The next one behind the last that went.
    pub(super) fn next_behind(&mut self) -> Option<Waiting> {
        self.following().map(|place| self.go(place))
    }

    /// The next one behind the last that went, and the oldest if there is none.
    pub(super) fn next_in_order(&mut self) -> Option<Waiting> {
        self.following().or_else(|| self.oldest()).map(|place| self.go(place))
    }

    /// The oldest if it has waited for `longest`; otherwise the next in order.
    pub(super) fn next_unless_overdue(&mut self, now: Nanos, longest: Nanos) -> Option<Waiting> {
        let oldest = self.oldest()?;
        let is_overdue = self.by_place[&oldest].since + longest <= now;
        if is_overdue { Some(self.go(oldest)) } else { self.next_in_order() }
    }

    /// One that `request` continues, or that continues it, with which it is small enough.
    fn neighbour(&self, request: Request, most: u32) -> Option<Place> {
        let Request { direction, area, block, .. } = request;
        let before = self.by_place.range(..(area, block, 0)).next_back();
        let behind = self.by_place.range((area, request.end(), 0)..).next();
        let touches = |waiting: &Waiting| {
            let other = waiting.request;
            (other.direction, other.area) == (direction, area)
                && (other.end() == block || request.end() == other.block)
        };
        let is_small = |waiting: &Waiting| waiting.request.blocks.saturating_add(request.blocks) <= most;
        before
            .into_iter()
            .chain(behind)
            .find(|(_, waiting)| touches(waiting) && is_small(waiting))
            .map(|(&place, _)| place)
    }

    /// The first one behind the last that went.
    fn following(&self) -> Option<Place> {
        let (area, block) = self.passed?;
        self.by_place.range((area, block, 0)..).next().map(|(&place, _)| place)
    }

    fn oldest(&self) -> Option<Place> {
        self.by_arrival.first_key_value().map(|(_, &place)| place)
    }

    fn put(&mut self, arrival: u64, waiting: Waiting) {
        let place = (waiting.request.area, waiting.request.block, arrival);
        self.by_arrival.insert(arrival, place);
        self.by_place.insert(place, waiting);
    }

    fn take(&mut self, place: Place) -> Waiting {
        self.by_arrival.remove(&place.2);
        self.by_place.remove(&place).expect("it waits there")
    }

    /// Takes a request whose turn has come.
    fn go(&mut self, place: Place) -> Waiting {
        let waiting = self.take(place);
        self.passed = Some((waiting.request.area, waiting.request.end()));
        waiting
    }
}
