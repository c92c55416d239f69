//! Policies over slots, without a machine: page numbers go in, and nominated pages are evicted.
//!
//! *What.* FIFO and SIEVE are written once, in [`pageout_policy`], and run here and in a simulated machine: `fifo` and `sieve` are those. So
//! would any policy that is written over slots.
//!
//! *Why not all of them.* LRU is a stack that the curves have already, and takes half of the time there. What a policy remembers of pages that have left, it keeps there by names, in a map. Here names are dense, and
//! memories of them are arrays: S3-FIFO takes a fifth of the time. That is why it stands here once more, with parameters.
//!
//! The host is [`SlotTable`], which checks every answer: a policy that breaks the contract ends the run with the call and the slot
//! ([`Simulation::fault`]).

use crate::Simulation;
use pageout_policy::{Cause, End, Fault, Newcomer, PageId, Policy, Slot, SlotTable, Uses};

/// Not in memory.
const ABSENT: u32 = u32::MAX;
/// Uses per report.
const BATCH: usize = 256;
/// Accesses for which the state that a policy keeps between calls is held ([`Policy::held`]).
const STINT: usize = 1024;

/// A memory under a policy over slots.
pub struct Bare {
    table: SlotTable,
    capacity: u32,
    is_told: bool,
    /// By page: its slot.
    slots: Vec<u32>,
    victims: Vec<Slot>,
    /// The error of the policy. It is not called any more, and pages that are not in memory stay out.
    fault: Option<Fault>,
}

impl Bare {
    /// Creates an empty memory with this capacity, at least one page.
    pub fn new(policy: Box<dyn Policy>, capacity: u32) -> Bare {
        let table = SlotTable::new(policy, capacity, BATCH);
        let is_told = table.uses() != Uses::Never;
        Bare { table, capacity, is_told, slots: Vec::new(), victims: Vec::new(), fault: None }
    }

    /// Returns whether a slot is free now.
    fn make_room(&mut self) -> bool {
        if self.fault.is_some() {
            return false;
        }
        self.victims.clear();
        if let Err(fault) = self.table.nominate(1, &mut self.victims) {
            self.is_told = false;
            self.fault = Some(fault);
            return false;
        }
        let slot = self.victims[0];
        let page = self.table.holder(slot).expect("what was nominated is there");
        self.slots[page as usize] = ABSENT;
        self.table.end(slot, PageId(page.into()), End::Evicted);
        true
    }
}

impl Simulation for Bare {
    fn reserve(&mut self, pages: u32) {
        if self.slots.len() < pages as usize {
            self.slots.resize(pages as usize, ABSENT);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let slot = self.slots[page as usize];
        if slot != ABSENT {
            if self.is_told {
                self.table.used(Slot(slot));
            }
            return true;
        }
        if self.table.len() == self.capacity && !self.make_room() {
            return false;
        }
        let newcomer = Newcomer { page: PageId(page.into()), cause: Cause::Demand, write: false, at_ns: 0 };
        self.slots[page as usize] = self.table.add(page, newcomer).0;
        false
    }

    fn run(&mut self, pages: &[u32]) -> u64 {
        if let Some(&most) = pages.iter().max() {
            self.reserve(most.checked_add(1).expect("page numbers are dense"));
        }
        let stint = |pages: &[u32]| {
            let _held = self.table.policy().held();
            pages.iter().map(|&page| u64::from(!self.access(page))).sum::<u64>()
        };
        pages.chunks(STINT).map(stint).sum()
    }

    fn remove(&mut self, page: u32) {
        let slot = std::mem::replace(&mut self.slots[page as usize], ABSENT);
        if slot != ABSENT && self.fault.is_none() {
            self.table.end(Slot(slot), PageId(page.into()), End::Gone);
        }
    }

    fn check(&self) -> Result<(), String> {
        let there = self.slots.iter().filter(|&&slot| slot != ABSENT).count();
        let is_so = self.table.iter().all(|(slot, page)| self.slots[page as usize] == slot.0);
        if !is_so || there != self.table.len() as usize || self.table.len() > self.capacity {
            return Err(format!("{there} pages have a slot, but {} slots have a page", self.table.len()));
        }
        self.table.policy().check()
    }

    fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        self.table.policy().figures(tell);
    }
}
