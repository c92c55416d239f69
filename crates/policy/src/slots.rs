//! The table of slots that every host of a policy needs. It assigns slots, keeps uses until they are reported, asks for victims, and checks the
//! answer.
//!
//! ```text
//!   host: a frame, a page number ... ──► slot ──► policy
//!           │ used                                  ▲
//!           └──► uses, up to a batch ──► told in order before any other call
//! ```
//! *Spared pages.* A policy may name the same page again and again, although the host can't evict it. So the table leaves out of each answer what was
//! spared since the last eviction ([`crate::Policy`], rule 6). It forgets that when a page is evicted, and when all pages have been spared.
//!
//! A slot is the lowest that was never used, or the one that was given back last. So a policy's arrays by slot are as large as what was in
//! memory at one time.

use crate::{Arrival, Cause, End, PageId, Policy, Slot, Uses};
use std::fmt;

/// The slot is empty.
const NOBODY: u32 = u32::MAX;

/// A policy with the slots of one memory.
pub struct SlotTable {
    policy: Box<dyn Policy>,
    uses: Uses,
    /// By slot: its holder in the host, and whether the policy has nominated it and the result is pending.
    places: Vec<Place>,
    free: Vec<Slot>,
    /// Uses that have not been reported to the policy, in order.
    untold: Vec<Slot>,
    batch: usize,
    capacity: u32,
    nominated: u32,
    /// By slot: the name of its page.
    pages: Vec<PageId>,
    /// Slots that were spared since the last eviction; some have left since, or have become cold, and are not left out any more.
    spared: Vec<Slot>,
    /// Slots that are left out of answers.
    left_out: u32,
    calls: u64,
    last: Call,
}

#[derive(Clone, Copy)]
struct Place {
    holder: u32,
    is_nominated: bool,
    /// It was spared, and is left out of answers.
    is_left_out: bool,
}

/// A page that comes, for [`SlotTable::add`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newcomer {
    /// The page.
    pub page: PageId,
    /// The reason why it was brought in.
    pub cause: Cause,
    /// It has been written to.
    pub write: bool,
    /// Time of arrival, in nanoseconds since the beginning.
    pub at_ns: u64,
}

/// A call of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// [`Policy::resized`], to this number of pages.
    Resized(u32),
    /// [`Policy::added`].
    Added(Slot),
    /// [`Policy::used`], from this slot on.
    Used(Slot),
    /// [`Policy::nominate`] of so many.
    Nominate(u32),
    /// [`Policy::ended`].
    Ended(Slot, End),
    /// [`Policy::cold`].
    Cold(Slot),
    /// [`Policy::check`]; the number is that of the call before, as with all that only look.
    Check,
    /// [`Policy::figures`].
    Figures,
    /// [`Policy::why`].
    Why(Slot),
    /// The file that its code is in is loaded.
    Load,
    /// The program ends, and with it the file that its code is in.
    Unload,
    /// It is made.
    Make,
    /// [`Policy::uses`].
    Uses,
    /// It is dropped.
    Drop,
}

/// An error of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The number of the call, from 1.
    pub number: u64,
    /// The call.
    pub call: Call,
    /// The error.
    pub wrong: Wrong,
}

/// Kind of an error of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// It nominated nothing of this number of pages.
    Nothing(u32),
    /// It nominated more than were wanted.
    TooMany(usize),
    /// It nominated a slot twice.
    Twice(Slot),
    /// It nominated a slot in which there is no page.
    NotThere(Slot),
    /// Its own check found something.
    Check(String),
    /// It named pages that can't be evicted, and never others: so many questions without one that can.
    Stuck(u64),
    /// It panicked.
    Panicked(String),
}

impl SlotTable {
    /// Creates a table of `capacity` slots. It reports uses in batches of `batch`, unless another call comes before.
    pub fn new(policy: Box<dyn Policy>, capacity: u32, batch: usize) -> SlotTable {
        let mut table = SlotTable {
            uses: policy.uses(),
            policy,
            places: Vec::new(),
            free: Vec::new(),
            untold: Vec::with_capacity(batch),
            batch: batch.max(1),
            capacity: 0,
            nominated: 0,
            pages: Vec::new(),
            spared: Vec::new(),
            left_out: 0,
            calls: 0,
            last: Call::Check,
        };
        table.resize(capacity);
        table
    }

    /// Returns which uses the policy must be notified of.
    #[inline]
    pub fn uses(&self) -> Uses {
        self.uses
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The pages in memory.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.places.len() - self.free.len()) as u32
    }

    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether there has ever been one.
    pub fn had_pages(&self) -> bool {
        !self.places.is_empty()
    }

    /// Capacity, in pages.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The number of calls so far, and the last one.
    pub fn last_call(&self) -> (u64, Call) {
        (self.calls, self.last)
    }

    /// The holder of a slot.
    #[inline]
    pub fn holder(&self, slot: Slot) -> Option<u32> {
        let holder = self.places.get(slot.index())?.holder;
        (holder != NOBODY).then_some(holder)
    }

    /// Returns whether the policy has nominated a slot and not heard what became of it.
    #[inline]
    pub fn is_nominated(&self, slot: Slot) -> bool {
        self.places.get(slot.index()).is_some_and(|place| place.is_nominated)
    }

    /// The slots with pages, and their holders.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, u32)> {
        let places = (0..).map(Slot).zip(&self.places);
        places.filter(|(_, place)| place.holder != NOBODY).map(|(slot, place)| (slot, place.holder))
    }

    fn begin(&mut self, call: Call) {
        self.tell_uses();
        (self.calls, self.last) = (self.calls + 1, call);
    }

    /// Sets the capacity, in pages.
    pub fn resize(&mut self, capacity: u32) {
        if capacity != self.capacity {
            self.begin(Call::Resized(capacity));
            self.capacity = capacity;
            self.policy.resized(capacity);
        }
    }

    /// Assigns a slot to a page, and notifies the policy. The holder is the host's number of it, below `u32::MAX`. A host with more pages than the
    /// capacity has the capacity raised.
    pub fn add(&mut self, holder: u32, newcomer: Newcomer) -> Slot {
        assert_ne!(holder, NOBODY, "this number stands for nobody");
        let slot = self.free.pop().unwrap_or(Slot(self.places.len() as u32));
        if slot.0 >= self.capacity {
            self.resize(slot.0 + 1);
        }
        let place = Place { holder, is_nominated: false, is_left_out: false };
        match self.places.get_mut(slot.index()) {
            Some(free) => {
                *free = place;
                self.pages[slot.index()] = newcomer.page;
            }
            None => {
                self.places.push(place);
                self.pages.push(newcomer.page);
            }
        }
        self.begin(Call::Added(slot));
        let Newcomer { page, cause, write, at_ns } = newcomer;
        self.policy.added(&Arrival { slot, page, cause, write, at_ns });
        slot
    }

    /// A page was used.
    #[inline]
    pub fn used(&mut self, slot: Slot) {
        debug_assert!(self.holder(slot).is_some(), "{slot:?} is free");
        self.untold.push(slot);
        if self.untold.len() >= self.batch {
            self.tell_uses();
        }
    }

    /// Reports all pending uses to the policy.
    pub fn tell_uses(&mut self) {
        if let Some(&first) = self.untold.first() {
            (self.calls, self.last) = (self.calls + 1, Call::Used(first));
            self.policy.used(&self.untold);
            self.untold.clear();
        }
    }

    /// Asks for victims, adds the answer to `victims`, which is empty, and checks it. Only while there is a page.
    pub fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) -> Result<(), Fault> {
        debug_assert!(want > 0 && victims.is_empty() && !self.is_empty());
        debug_assert_eq!(self.nominated, 0, "what was nominated has ended before the next question");
        self.ask(want, victims)?;
        if self.left_out == self.len() {
            self.leave_none_out();
        }
        if self.left_out == 0 {
            return Ok(());
        }
        let is_left_out = |table: &SlotTable, slot: &Slot| table.places[slot.index()].is_left_out;
        self.keep(want, victims, &is_left_out);
        if victims.is_empty() {
            // It named nothing else, and may do so if it is asked for more.
            self.ask(want.saturating_add(self.left_out).min(self.len()), victims)?;
            let is_all = victims.iter().all(|slot| is_left_out(self, slot));
            self.keep(want, victims, &|table, slot| !is_all && is_left_out(table, slot));
        }
        Ok(())
    }

    fn ask(&mut self, want: u32, victims: &mut Vec<Slot>) -> Result<(), Fault> {
        self.begin(Call::Nominate(want));
        self.policy.nominate(want, victims);
        let wrong = self.note_nominated(want, victims);
        wrong.map_or(Ok(()), |wrong| Err(self.fault(wrong)))
    }

    /// Keeps the first `want` slots of an answer without those that are left out. The others are reported as spared.
    fn keep(&mut self, want: u32, victims: &mut Vec<Slot>, is_left_out: &dyn Fn(&SlotTable, &Slot) -> bool) {
        let mut kept = 0;
        victims.retain(|slot| {
            let is_kept = kept < want && !is_left_out(self, slot);
            kept += u32::from(is_kept);
            if !is_kept {
                self.begin(Call::Ended(*slot, End::Spared));
                self.places[slot.index()].is_nominated = false;
                self.nominated -= 1;
                self.policy.ended(*slot, self.pages[slot.index()], End::Spared);
            }
            is_kept
        });
    }

    fn set_left_out(&mut self, slot: Slot, is_left_out: bool) {
        let was = std::mem::replace(&mut self.places[slot.index()].is_left_out, is_left_out);
        self.left_out = self.left_out + u32::from(is_left_out) - u32::from(was);
        if is_left_out && !was {
            self.spared.push(slot);
        }
    }

    fn leave_none_out(&mut self) {
        while let Some(slot) = self.spared.pop() {
            self.set_left_out(slot, false);
        }
    }

    fn note_nominated(&mut self, want: u32, victims: &[Slot]) -> Option<Wrong> {
        if victims.is_empty() {
            return Some(Wrong::Nothing(self.len()));
        }
        let mut absent = None;
        for &slot in victims {
            match self.places.get_mut(slot.index()) {
                Some(place) if place.is_nominated => return Some(Wrong::Twice(slot)),
                Some(place) if place.holder != NOBODY => {
                    place.is_nominated = true;
                    self.nominated += 1;
                }
                _ => absent = absent.or(Some(slot)),
            }
        }
        if victims.len() > want as usize {
            return Some(Wrong::TooMany(victims.len()));
        }
        absent.map(Wrong::NotThere)
    }

    /// Tells the policy what became of a page.
    pub fn end(&mut self, slot: Slot, page: PageId, end: End) {
        self.begin(Call::Ended(slot, end));
        let place = &mut self.places[slot.index()];
        debug_assert_ne!(place.holder, NOBODY, "{slot:?} is free");
        debug_assert!(place.is_nominated || end != End::Evicted, "{slot:?} was not nominated");
        let was_nominated = std::mem::take(&mut place.is_nominated);
        self.nominated -= u32::from(was_nominated);
        match end {
            End::Spared if was_nominated => self.set_left_out(slot, true),
            End::Spared => {}
            End::Evicted | End::Gone => {
                place.holder = NOBODY;
                self.free.push(slot);
                self.set_left_out(slot, false);
            }
        }
        if end == End::Evicted {
            self.leave_none_out();
        }
        self.policy.ended(slot, page, end);
    }

    /// Tells the policy that a page may go next.
    pub fn cold(&mut self, slot: Slot) {
        self.begin(Call::Cold(slot));
        self.set_left_out(slot, false);
        self.policy.cold(slot);
    }

    /// Has the policy look whether all of it fits together.
    pub fn check(&self) -> Result<(), Fault> {
        let wrong = |found| Fault { number: self.calls, call: Call::Check, wrong: Wrong::Check(found) };
        self.policy.check().map_err(wrong)
    }

    /// Returns the error of the last call.
    pub fn fault(&self, wrong: Wrong) -> Fault {
        Fault { number: self.calls, call: self.last, wrong }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Resized(capacity) => write!(f, "resized({capacity})"),
            Call::Added(slot) => write!(f, "added(slot {})", slot.0),
            Call::Used(slot) => write!(f, "used(slot {} ...)", slot.0),
            Call::Nominate(want) => write!(f, "nominate({want})"),
            Call::Ended(slot, end) => write!(f, "ended(slot {}, {end:?})", slot.0),
            Call::Cold(slot) => write!(f, "cold(slot {})", slot.0),
            Call::Check => write!(f, "check()"),
            Call::Figures => write!(f, "figures()"),
            Call::Why(slot) => write!(f, "why(slot {})", slot.0),
            Call::Load => write!(f, "load()"),
            Call::Unload => write!(f, "unload()"),
            Call::Make => write!(f, "make()"),
            Call::Uses => write!(f, "uses()"),
            Call::Drop => write!(f, "drop()"),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Nothing(pages) => write!(f, "nothing is nominated, but there are {pages} pages"),
            Wrong::TooMany(slots) => write!(f, "{slots} slots are nominated"),
            Wrong::Twice(slot) => write!(f, "slot {} is nominated twice", slot.0),
            Wrong::NotThere(slot) => write!(f, "slot {} is nominated, but holds no page", slot.0),
            Wrong::Check(found) => write!(f, "{found}"),
            Wrong::Stuck(questions) => {
                write!(
                    f,
                    "{questions} questions in a row have nominated no evictable page, although there is one: name as many pages as requested, or others after `ended` with `spared`"
                )
            }
            Wrong::Panicked(message) => write!(f, "panicked: {message}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}, {}: {}", self.number, self.call, self.wrong)
    }
}

impl std::error::Error for Fault {}
