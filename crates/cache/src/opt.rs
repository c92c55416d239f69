//! OPT: the page that is used again last goes first. It knows the future, so it is a bound and no policy.
//!
//! ```text
//!   accesses      a b c a d b a        backward: when is each page used next?
//!   next use      3 5 - 6 - - -        forward: of those in memory, the latest next use goes
//! ```
//! *How.* One pass from the end finds the next use of each access. A heap has the next uses of the pages in memory. The page is given by the access
//! at that time, so the heap holds times alone. Pages that are never used again are not in it, but counted: any of them is evicted before all others.
//! A hit leaves the past time in the heap. It lies below all future times, and is removed when half of the heap is past.
//!
//! *Cost.* Four bytes per access for the next uses, for any number of sizes.
//!
//! *When not to use it:* as a bound where misses differ in cost: dirty pages, readahead, devices. It counts misses alone. A policy that may leave a
//! page out of memory could have fewer; every policy here takes it in.
//!
//! Source: L. A. Belady, *A Study of Replacement Algorithms for a Virtual-Storage Computer*, IBM Systems Journal 5(2), 1966,
//! <https://doi.org/10.1147/sj.52.0078>; that it is best: R. L. Mattson and others, IBM Systems Journal 9(2), 1970,
//! <https://doi.org/10.1147/sj.92.0078>.

use std::collections::BinaryHeap;

/// The page is not used again.
const NEVER: u32 = u32::MAX;
/// A heap smaller than this is not swept.
const SWEEP_MIN: usize = 1024;

/// Accesses with their future.
pub struct Opt<'a> {
    accesses: &'a [u32],
    /// By access: when its page is used next.
    next: Vec<u32>,
    pages: usize,
}

impl<'a> Opt<'a> {
    /// Looks for the next use of each access. There are fewer than `u32::MAX` accesses.
    pub fn new(accesses: &'a [u32]) -> Opt<'a> {
        assert!(accesses.len() < NEVER as usize, "an access has a number of 32 bits");
        let pages = accesses.iter().max().map_or(0, |&most| most as usize + 1);
        let mut comes = vec![NEVER; pages];
        let mut next = vec![NEVER; accesses.len()];
        for (at, (&page, next)) in accesses.iter().zip(&mut next).enumerate().rev() {
            *next = std::mem::replace(&mut comes[page as usize], at as u32);
        }
        Opt { accesses, next, pages }
    }

    /// Returns the minimum number of misses with this capacity, at least one page.
    pub fn misses(&self, capacity: u32) -> u64 {
        self.memory(capacity).run(self.accesses.len())
    }

    /// Creates an empty memory with this capacity, at least one page.
    pub fn memory(&self, capacity: u32) -> OptMemory<'_> {
        assert!(capacity > 0, "a memory has room for a page");
        OptMemory {
            opt: self,
            capacity,
            at: 0,
            is_there: vec![false; self.pages],
            times: BinaryHeap::new(),
            len: 0,
            spent: 0,
        }
    }
}

/// A memory that knows the future, some way through its accesses.
pub struct OptMemory<'a> {
    opt: &'a Opt<'a>,
    capacity: u32,
    at: usize,
    is_there: Vec<bool>,
    /// When pages in memory are used next.
    times: BinaryHeap<u32>,
    /// Pages in memory, and those of them that are never used again.
    len: u32,
    spent: u32,
}

impl OptMemory<'_> {
    /// So many accesses more, or all that are left; says how many were not in memory.
    pub fn run(&mut self, accesses: usize) -> u64 {
        let end = self.at.saturating_add(accesses).min(self.opt.accesses.len());
        let mut misses = 0;
        for at in self.at..end {
            let (page, next) = (self.opt.accesses[at], self.opt.next[at]);
            if !self.is_there[page as usize] {
                misses += 1;
                if self.len < self.capacity {
                    self.len += 1;
                } else if self.spent > 0 {
                    self.spent -= 1;
                } else {
                    let latest = self.times.pop().expect("memory is full of pages that are used again");
                    self.is_there[self.opt.accesses[latest as usize] as usize] = false;
                }
            }
            self.is_there[page as usize] = next != NEVER;
            if next == NEVER {
                self.spent += 1;
                continue;
            }
            if self.times.len() == self.times.capacity() && self.times.len() >= SWEEP_MIN {
                self.times.retain(|&time| time as usize > at);
                self.times.reserve(self.times.len());
            }
            self.times.push(next);
        }
        self.at = end;
        misses
    }
}
