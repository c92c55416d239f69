//! Policies that are wrong, each in its own way: the check must reject them, and say how.

use super::check;
use crate::{Arrival, End, Fifo, Lru, PageId, Policy, S3Fifo, Sieve, Slot, Uses};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a mutant does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    NominatesNothing,
    NominatesTwice,
    NominatesMoreThanWanted,
    NominatesBeyondMemory,
    ForgetsThatPagesGo,
    NamesTheSparedPageAlone,
    QueuesSparedPagesTwice,
    QueuesColdPagesTwice,
    GoesByTheNumberOfCalls,
    GoesByMoreThanItsSeed,
    FindsItselfWrong,
    HasRoomForItsFirstSizeOnly,
}

/// FIFO, except the behaviour of its mutant.
struct Wrong {
    mutant: Mutant,
    queue: VecDeque<Slot>,
    calls: u64,
    capacity: u32,
    first_capacity: u32,
}

static CHANCE: AtomicU64 = AtomicU64::new(0);

fn make(mutant: Mutant) -> Box<dyn Policy> {
    Box::new(Wrong { mutant, queue: VecDeque::new(), calls: 0, capacity: 0, first_capacity: 0 })
}

impl Policy for Wrong {
    fn resized(&mut self, capacity: u32) {
        self.capacity = capacity;
        if self.first_capacity == 0 {
            self.first_capacity = capacity;
        }
    }

    fn added(&mut self, arrival: &Arrival) {
        let has_room = arrival.slot.0 < self.first_capacity;
        assert!(has_room || self.mutant != Mutant::HasRoomForItsFirstSizeOnly, "no room for it");
        self.queue.push_back(arrival.slot);
    }

    fn used(&mut self, _slots: &[Slot]) {
        self.calls += 1;
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        let want = want as usize;
        match self.mutant {
            Mutant::NominatesNothing => {}
            Mutant::NominatesTwice => {
                victims.extend(self.queue.front().into_iter().chain(self.queue.front()))
            }
            Mutant::NominatesMoreThanWanted => victims.extend(self.queue.iter().take(want + 1)),
            Mutant::NamesTheSparedPageAlone => victims.extend(self.queue.front()),
            Mutant::NominatesBeyondMemory => victims.push(Slot(self.capacity)),
            Mutant::GoesByTheNumberOfCalls if self.calls % 2 == 1 => victims.extend(self.queue.back()),
            Mutant::GoesByMoreThanItsSeed if CHANCE.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) => {
                victims.extend(self.queue.back());
            }
            _ => victims.extend(self.queue.iter().take(want)),
        }
    }

    fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
        if end == End::Gone && self.mutant == Mutant::ForgetsThatPagesGo
            || end == End::Spared && self.mutant == Mutant::NamesTheSparedPageAlone
        {
            return;
        }
        self.queue.retain(|&other| other != slot);
        if end == End::Spared {
            self.queue.push_back(slot);
            if self.mutant == Mutant::QueuesSparedPagesTwice {
                self.queue.push_back(slot);
            }
        }
    }

    fn cold(&mut self, slot: Slot) {
        if self.mutant == Mutant::QueuesColdPagesTwice {
            self.queue.push_front(slot);
        }
    }

    fn check(&self) -> Result<(), String> {
        let is_wrong = self.mutant == Mutant::FindsItselfWrong && self.queue.len() > 3;
        if is_wrong { Err(format!("slot {} is where it does not belong", self.queue[3].0)) } else { Ok(()) }
    }
}

#[test]
fn each_mutant_is_rejected_with_what_it_did() {
    let expected = [
        (Mutant::NominatesNothing, "nominate(1): nothing is nominated, but there are"),
        (Mutant::NominatesTwice, "is nominated twice"),
        (Mutant::NominatesMoreThanWanted, "nominate(1): 2 slots are nominated"),
        (Mutant::NominatesBeyondMemory, "nominate(1): slot 1 is nominated, but holds no page"),
        (Mutant::ForgetsThatPagesGo, "is nominated, but holds no page"),
        (Mutant::NamesTheSparedPageAlone, "questions in a row have nominated no evictable page"),
        (Mutant::QueuesSparedPagesTwice, "is nominated twice"),
        (Mutant::QueuesColdPagesTwice, "is nominated"),
        (Mutant::GoesByTheNumberOfCalls, "if uses are reported in batches of 256 instead of one by one"),
        (Mutant::GoesByMoreThanItsSeed, "in a second run, other pages are in memory from step"),
        (Mutant::FindsItselfWrong, "check(): slot 3 is where it does not belong"),
        (Mutant::HasRoomForItsFirstSizeOnly, "panicked: no room for it"),
    ];
    for (mutant, message) in expected {
        let broken = check(&|_| make(mutant)).expect_err("it is wrong").to_string();
        assert!(broken.contains(message), "{mutant:?}: {broken}");
    }
}

/// Pages by their uses, the fewest first, without a thought of spared ones.
#[derive(Default)]
struct ByPriority {
    order: BTreeSet<(u64, Slot)>,
    uses: Vec<u64>,
}

impl Policy for ByPriority {
    fn resized(&mut self, capacity: u32) {
        self.uses.resize(self.uses.len().max(capacity as usize), 0);
    }

    fn added(&mut self, arrival: &Arrival) {
        self.uses[arrival.slot.index()] = 1;
        self.order.insert((1, arrival.slot));
    }

    fn used(&mut self, slots: &[Slot]) {
        for &slot in slots {
            let uses = &mut self.uses[slot.index()];
            self.order.remove(&(*uses, slot));
            *uses += 1;
            self.order.insert((*uses, slot));
        }
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        victims.extend(self.order.iter().take(want as usize).map(|(_, slot)| *slot));
    }

    fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
        if end != End::Spared {
            self.order.remove(&(self.uses[slot.index()], slot));
        }
    }
}

#[test]
fn policy_that_ignores_spared_pages_keeps_the_contract() {
    assert_eq!(check(&|_| Box::new(ByPriority::default())), Ok(()));
}

/// A policy that declares fewer uses than its decisions depend on.
struct Deaf<P> {
    policy: P,
    uses: Uses,
}

impl<P: Policy> Policy for Deaf<P> {
    fn uses(&self) -> Uses {
        self.uses
    }

    fn resized(&mut self, capacity: u32) {
        self.policy.resized(capacity);
    }

    fn added(&mut self, arrival: &Arrival) {
        self.policy.added(arrival);
    }

    fn used(&mut self, slots: &[Slot]) {
        self.policy.used(slots);
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.policy.nominate(want, victims);
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        self.policy.ended(slot, page, end);
    }

    fn cold(&mut self, slot: Slot) {
        self.policy.cold(slot);
    }
}

#[test]
fn who_hears_less_of_uses_than_it_goes_by_is_rejected() {
    let late = check(&|_| Box::new(Deaf { policy: S3Fifo::default(), uses: Uses::Late }));
    let late = late.expect_err("it counts uses").to_string();
    assert!(late.contains("if uses are reported when their page is nominated"), "{late}");
    let lru = check(&|_| Box::new(Deaf { policy: Lru::default(), uses: Uses::Never }));
    let sieve = check(&|_| Box::new(Deaf { policy: Sieve::default(), uses: Uses::Never }));
    for never in [lru, sieve] {
        let never = never.expect_err("it goes by uses").to_string();
        assert!(never.contains("if no uses are reported"), "{never}");
    }
    let fifo = check(&|_| Box::new(Deaf { policy: Fifo::default(), uses: Uses::Each }));
    assert_eq!(fifo, Ok(()), "to hear more is no fault");
}
