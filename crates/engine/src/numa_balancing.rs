//! NUMA balancing, with two purposes (`kernel.numa_balancing`). They share scans and hint faults.
//!
//! - 2, tiers: pages of slow memory that are used again soon are promoted to the fast node of their task. [tiering 2;
//!   tiering-zswap-6.12 3]
//! - 1, CPUs: pages move to the node of the thread that uses them (`place.rs`). [access-aware 6]
//!
//! ```text
//!   a task's CPU time ─▶ scan due ─▶ entries that lead to slow memory are marked (PROT_NONE), the time is kept with the folio
//!                                            │
//!   the next access of such a page ─▶ hint fault: how long has it been? ─ too long ─▶ stays, and is accessible again
//!                                            │ hot, and the rate limit has room
//!                                            ▼
//!                                  migrate/promote.rs: room there? off its list? ─▶ moved by the task itself
//! ```
//! The scanner sees an address space a window at a time, less and less often while its faults keep promoting (`period.rs`). Which pages
//! are hot, and how many may go, is `threshold.rs`. Marking is the scanner's (`scan.rs`), the fault's answer is `fault.rs`.
//!
//! *When not to use it:* an access that faults pays for finding out, and a promotion runs in the middle of it. Memory that is hot for
//! longer than a scan period is found this way; a hot set that moves faster is not.

mod departure; // what has left fast memory is used again
mod fault; // an access meets a marked entry
mod place; // a page moves to the node of its user
mod scan; // whose entries are marked, and when

pub(crate) use departure::is_asked_when_read;
pub(crate) use fault::Asks;
pub(crate) use pageout_mm::numa_balancing::*;
