//! OPT: the page that is used again last goes first. It knows the future, so it is a bound and no policy.
//!
//! ```text
//!   accesses      a b c a d b a        backward: when is each page used next?
//!   next use      3 5 - 6 - - -        forward: of those in memory, the latest next use goes
//! ```
//! *How.* One pass from the end finds the next use of each access. A heap has the next uses of the pages in memory; the page is whoever is
//! accessed then, so the heap holds times alone. Pages that are never used again are not in it, but counted: any of them goes before all
//! others. A hit leaves the time that has come in the heap; it lies below all times to come, and is swept out when half of it is such.
//!
//! *What it costs.* Four bytes an access for the next uses, whatever the number of sizes.
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

    /// The least misses with room for so many pages, one at least.
    pub fn misses(&self, capacity: u32) -> u64 {
        assert!(capacity > 0, "a memory has room for a page");
        let mut is_there = vec![false; self.pages];
        let mut times: BinaryHeap<u32> = BinaryHeap::new();
        // Pages in memory, and those of them that are never used again.
        let (mut len, mut spent, mut misses) = (0, 0, 0);
        for (at, (&page, &next)) in self.accesses.iter().zip(&self.next).enumerate() {
            if !is_there[page as usize] {
                misses += 1;
                if len < capacity {
                    len += 1;
                } else if spent > 0 {
                    spent -= 1;
                } else {
                    let latest = times.pop().expect("memory is full of pages that are used again");
                    is_there[self.accesses[latest as usize] as usize] = false;
                }
            }
            is_there[page as usize] = next != NEVER;
            if next == NEVER {
                spent += 1;
                continue;
            }
            if times.len() == times.capacity() && times.len() >= SWEEP_MIN {
                times.retain(|&time| time as usize > at);
                times.reserve(times.len());
            }
            times.push(next);
        }
        misses
    }
}
