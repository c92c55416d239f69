//! Textbook policies over page numbers, and their curves: misses by the size of memory. Nothing here knows of time, devices or a kernel.
//!
//! Pages are *dense* numbers: 0 for the first page of a trace, 1 for the second one that is another, and so on. So what is known of a page
//! is in an array at its number, and no access hashes anything. What is *remembered* of pages that have left stands in the same arrays.
//!
//! ```
//! use pageout_cache::Choice;
//!
//! let accesses = [0, 1, 2, 0, 1, 3, 0, 1, 2, 3];
//! let lru: Choice = "lru".parse().unwrap();
//! let s3_fifo: Choice = "s3-fifo:small=0.25,promote=1".parse().unwrap();
//! let opt: Choice = "opt".parse().unwrap();
//! assert_eq!(lru.misses(&accesses, 3, 0), 6);
//! assert!(opt.misses(&accesses, 3, 0) <= s3_fifo.misses(&accesses, 3, 0));
//! ```
//!
//! # Another policy here
//!
//! A policy is one file next to `clock.rs`, with its `mod` line below, and one row of [`POLICIES`]. The random tests find it there, and need a naive
//! model of it in `tests/suite/models.rs`. A policy that must also run in a simulated machine is written once, over slots, in [`pageout_policy`];
//! [`Bare`] runs it here.

#![forbid(unsafe_code)]

mod simulation; // the trait of a policy: accesses in, hits out
mod list; // all policies, by name, with their parameters
mod choice; // a policy with values for its parameters, from text
mod bare; // policies over slots, without a machine: FIFO, SIEVE
mod lru; // the page that was not used for longest goes first
mod mru; // the page that was used last goes first
mod random; // any page goes
mod clock; // in order of arrival, and a second chance
mod slru; // a list for pages used once, one for others
mod lfu; // the page with the fewest uses goes first
mod lru_k; // the page whose K-th last use is longest ago goes first
mod lfu_da; // uses, and the age of the memory at the time of the last one
mod mq; // LRU lists by the number of uses, and a lifetime
mod two_q; // a queue for new pages, a list for those that came back
mod arc; // two lists with an adaptive split
mod lirs; // by the distance between the last two uses
mod s3_fifo; // two queues, and names of evicted pages
mod w_tinylfu; // the more frequent of two stays
mod qd_lp; // a small queue for new pages, a CLOCK behind it
mod clock_pro; // LIRS by accessed bits and three hands
mod sampled; // pages in no order, and the lowest of a random sample
mod hyperbolic; // uses per time in memory, of a random sample
mod lhd; // expected hits per time in memory, of a random sample
mod lecar; // LRU or LFU, drawn by weights that are learned
mod cacheus; // the same with experts that resist scans and churn
mod heap; // pages by a key, the smallest first
mod opt; // the page used again last goes first: the bound
pub mod curve; // misses at many sizes

pub use bare::Bare;
pub use choice::{Choice, Wrong};
pub use list::{Make, POLICIES, Parameter, Row};
pub use opt::{Opt, OptMemory};
pub use simulation::Simulation;
