//! Guests: the calls that a policy for a group's pages receives, and what happens if it breaks its contract.

#![allow(clippy::unwrap_used)] // tests: failing is what they are for

use crate::reader::Reader;
use pageout_engine::{Config, Lru, Policy};
use pageout_policy::{Arrival, Cause, End, Fifo, Listed, Make, PageId, Slot};
use std::sync::Mutex;

fn config(lru: &'static Listed) -> Config {
    let mut policy = Policy::of("lru");
    policy.group.lru = Lru::Guest(lru);
    Config { policy, folio_batch: 1, charge_stock: 1, reclaim_batch: 1, ..Config::default() }
}

/// FIFO with a nomination of its own.
struct Liar {
    fifo: Fifo,
    nominate: fn(&mut Vec<Slot>),
}

impl pageout_policy::Policy for Liar {
    fn resized(&mut self, capacity: u32) {
        self.fifo.resized(capacity);
    }

    fn added(&mut self, arrival: &Arrival) {
        self.fifo.added(arrival);
    }

    fn used(&mut self, _slots: &[Slot]) {}

    fn nominate(&mut self, _want: u32, victims: &mut Vec<Slot>) {
        (self.nominate)(victims);
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        self.fifo.ended(slot, page, end);
    }
}

const fn liar(make: &'static Make) -> Listed {
    Listed { name: "liar", doc: "", source: "", make, hash: None }
}

static SILENT: Listed = liar(&|_| Box::new(Liar { fifo: Fifo::default(), nominate: |_| () }));
static TWICE: Listed = liar(&|_| {
    Box::new(Liar { fifo: Fifo::default(), nominate: |victims| victims.extend([Slot(3), Slot(3)]) })
});
static ABSENT: Listed =
    liar(&|_| Box::new(Liar { fifo: Fifo::default(), nominate: |victims| victims.push(Slot(70)) }));

#[test]
fn a_guest_that_lies_is_told_with_call_and_slot_and_never_asked_again() {
    let expected = [
        (&SILENT, "nothing is nominated, but there are 10 pages"),
        (&TWICE, "slot 3 is nominated twice"),
        (&ABSENT, "slot 70 is nominated, but holds no page"),
    ];
    for (lru, wrong) in expected {
        let mut reader = Reader::new(config(lru), 10, 100);
        for page in 0..10 {
            reader.read(page);
            assert_eq!(reader.engine.guest_fault(), None);
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.read(10)));
        assert!(outcome.is_err(), "there is no room for it");
        let fault = reader.engine.guest_fault().unwrap();
        let told = fault.to_string();
        assert!(told.starts_with("policy liar of cgroup /job: call 13, nominate(1): "), "{told}");
        assert!(told.ends_with(wrong), "{told}");
    }
}

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// FIFO that records its calls.
struct Listener(Fifo);

impl pageout_policy::Policy for Listener {
    fn resized(&mut self, capacity: u32) {
        TOLD.lock().unwrap().push(format!("resized {capacity}"));
    }

    fn added(&mut self, arrival: &Arrival) {
        let cause = match arrival.cause {
            Cause::Demand => "demand".to_owned(),
            Cause::Readahead => "readahead".to_owned(),
            Cause::Refault { distance } => format!("refault {distance}"),
        };
        TOLD.lock().unwrap().push(format!("added {} of page {} by {cause}", arrival.slot.0, arrival.page.0));
        self.0.added(arrival);
    }

    fn used(&mut self, slots: &[Slot]) {
        slots.iter().for_each(|slot| TOLD.lock().unwrap().push(format!("used {}", slot.0)));
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.0.nominate(want, victims);
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        TOLD.lock().unwrap().push(format!("ended {} of page {}: {end:?}", slot.0, page.0));
        self.0.ended(slot, page, end);
    }
}

static LISTENER: Listed = liar(&|_| Box::new(Listener(Fifo::default())));

#[test]
fn a_guest_is_told_of_room_arrivals_uses_and_ends_in_their_order() {
    let mut reader = Reader::new(config(&LISTENER), 2, 100);
    TOLD.lock().unwrap().retain(|told| told == "resized 2");
    for page in [7, 8, 7, 8, 9, 7] {
        reader.read(page);
    }
    let told = std::mem::take(&mut *TOLD.lock().unwrap());
    let expected = [
        "resized 2",
        "added 0 of page 7 by demand",
        "added 1 of page 8 by demand",
        "used 0",
        "used 1",
        "ended 0 of page 7: Evicted",
        "added 0 of page 9 by demand",
        "ended 1 of page 8: Evicted",
        "added 1 of page 7 by refault 2",
    ];
    assert_eq!(told, expected);
    reader.engine.check_invariants();
}
