//! Eviction policies of a memory. A trait without dependencies, policies that implement it, and a check of the contract.
//!
//! A policy sees slots and nothing of its host. The same one therefore runs over bare page numbers ([`Cache`]) and as a guest in a machine that
//! reclaims memory. There it serves one group on one node, for file pages and anonymous pages alike.
//!
//! # A custom policy
//!
//! A first version of FIFO, and the check that it keeps the contract:
//!
//! ```
//! use pageout_policy::{Arrival, End, PageId, Policy, Slot, Uses, check::check};
//! use std::collections::VecDeque;
//!
//! /// Pages in order of arrival, the oldest first.
//! #[derive(Default)]
//! struct Mine(VecDeque<Slot>);
//!
//! impl Policy for Mine {
//!     fn uses(&self) -> Uses {
//!         Uses::Never // a hit changes nothing here
//!     }
//!
//!     fn resized(&mut self, _capacity: u32) {}
//!
//!     fn added(&mut self, arrival: &Arrival) {
//!         self.0.push_back(arrival.slot);
//!     }
//!
//!     fn used(&mut self, _slots: &[Slot]) {}
//!
//!     fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
//!         victims.extend(self.0.iter().take(want as usize));
//!     }
//!
//!     fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
//!         self.0.retain(|&other| other != slot);
//!         if end == End::Spared {
//!             self.0.push_back(slot); // it can't go now: the others are next
//!         }
//!     }
//! }
//!
//! check(&|_seed| Box::new(Mine::default())).unwrap();
//! ```
//!
//! The check is a test as well: `check(&make).unwrap()` in a `#[test]` reports the wrong call, its slot, and how to reproduce it.
//!
//! # A policy by priority
//!
//! LFU, LHD and other policies give each page a number. Three rules make such a policy keep the contract:
//! 1. Keep an order by `(priority, slot)`: the slot makes each key unique, and equal priorities deterministic. Keep the priority of each slot, too:
//!    `used` and `ended` get only the slot.
//! 2. `nominate` names as many slots as requested, the lowest first, and removes none.
//! 3. `ended` removes the slot unless it was spared. A spared page keeps its priority: the host leaves it out until another page has been evicted.
//!
//! ```
//! use pageout_policy::{Arrival, End, PageId, Policy, Slot, check::check};
//! use std::collections::BTreeSet;
//!
//! /// The pages with the fewest uses first.
//! #[derive(Default)]
//! struct Lfu {
//!     order: BTreeSet<(u64, Slot)>,
//!     uses: Vec<u64>, // by slot
//! }
//!
//! impl Policy for Lfu {
//!     fn resized(&mut self, capacity: u32) {
//!         self.uses.resize(self.uses.len().max(capacity as usize), 0);
//!     }
//!
//!     fn added(&mut self, arrival: &Arrival) {
//!         self.uses[arrival.slot.index()] = 1;
//!         self.order.insert((1, arrival.slot));
//!     }
//!
//!     fn used(&mut self, slots: &[Slot]) {
//!         for &slot in slots {
//!             let uses = &mut self.uses[slot.index()];
//!             self.order.remove(&(*uses, slot));
//!             *uses += 1;
//!             self.order.insert((*uses, slot));
//!         }
//!     }
//!
//!     fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
//!         victims.extend(self.order.iter().take(want as usize).map(|(_, slot)| *slot));
//!     }
//!
//!     fn ended(&mut self, slot: Slot, _page: PageId, end: End) {
//!         if end != End::Spared {
//!             self.order.remove(&(self.uses[slot.index()], slot));
//!         }
//!     }
//! }
//!
//! check(&|_seed| Box::new(Lfu::default())).unwrap();
//! ```
//!
//! A random sample instead of an order is a policy, too: draw from the seed, and name the lowest of the sample. Name several pages if several are
//! requested.
//!
//! A custom policy needs no fork. [`Listed::bring`] registers it by a name, for the textbook policies and for the machine alike. `pageout new-policy
//! NAME` writes a project whose program has all commands of `pageout`, with that policy in addition to the others.
//!
//! # Adding a policy here
//!
//! A policy is one file next to `fifo.rs`, with its `mod` line below, and one row of [`POLICIES`]. Scenarios, `--policy` and the random tests find it
//! there.

#![forbid(unsafe_code)]

mod contract; // the trait, and the duties of both sides
mod list; // all policies, by name
pub mod queue; // queues of slots
mod fifo; // in order of arrival
mod lru; // in order of use
mod s3_fifo; // a small queue, a main one, names of evicted pages
mod sieve; // order of arrival, and a hand that spares used pages
mod slots; // slots, uses, questions and answers of every host
mod cache; // a bare host
mod user_policy; // custom policies: names, checks, broken contracts
mod fallback; // the replacement of invalid answers, counted
pub mod check; // the contract as a test

pub use cache::{Cache, Telling};
pub use contract::{Arrival, Cause, End, PageId, Policy, Slot, Uses};
pub use fallback::{FALLBACKS, Fallback};
pub use fifo::Fifo;
pub use list::{Listed, Make, POLICIES};
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use slots::{Call, Fault, Newcomer, SlotTable, Wrong};
pub use user_policy::{
    Doing, doing, doing_here, fall_back, fallbacks, find_with, is_file, loading, unloading,
};
