//! A policy that keeps a group's pages and breaks its contract ends the run.

use super::rig::{Rig, pages};
use pageout_engine::{Lru, Nanos, Policy};
use pageout_policy::{Arrival, End, Listed, PageId, Slot};

/// Says nothing when it is asked.
struct Silent;

impl pageout_policy::Policy for Silent {
    fn resized(&mut self, _capacity: u32) {}
    fn added(&mut self, _arrival: &Arrival) {}
    fn used(&mut self, _slots: &[Slot]) {}
    fn nominate(&mut self, _want: u32, _victims: &mut Vec<Slot>) {}
    fn ended(&mut self, _slot: Slot, _page: PageId, _end: End) {}
}

static SILENT: Listed =
    Listed { name: "silent", doc: "", source: "", make: &|_| Box::new(Silent), hash: None };

#[test]
fn a_guest_that_nominates_nothing_ends_the_run_with_its_call() {
    let mut policy = Policy::of("classic@6.12");
    policy.group.lru = Lru::Guest(&SILENT);
    let mut rig = Rig::of(policy);
    rig.limit("/job", 1_000);
    let file = rig.file(2_000);
    rig.reader("loop", "/job", file, pages(0..2_000), 3);
    let (machine, result) = rig.start();
    let error = result.unwrap_err().to_string();
    assert!(error.contains("into the run: policy silent of cgroup /job: call "), "{error}");
    assert!(error.contains(": nothing is nominated, but there are "), "{error}");
    let report = machine.report();
    assert!(report.tasks[0].accesses < 1_100 && report.end > Nanos::ZERO, "{report:?}");
}
