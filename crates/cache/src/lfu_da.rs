//! LFU-DA: LFU with dynamic aging. A page enters with the age of the memory, so that pages that were popular long ago leave.
//!
//! ```text
//!   priority = uses + age            age = priority of the page that was evicted last
//! ```
//! *What.* The page with the lowest priority is evicted, and the age becomes its priority. Each use adds one to the uses of a page, and
//! computes its priority again with the present age.
//!
//! *Why.* LFU keeps what was popular once. Here the age rises until it passes the priority of pages that are not used any more.
//!
//! *When not to use it:* for scans of new pages: each one raises the age as far as popular pages do.
//!
//! Source: M. Arlitt, L. Cherkasova, J. Dilley, R. Friedrich and T. Jin, *Evaluating Content Management Techniques for Web Proxy Caches*, ACM
//! SIGMETRICS Performance Evaluation Review 27(4), 2000, <https://doi.org/10.1145/346000.346003>.
//!
//! *Choices of pageout.* Among equals, the least recently used page is evicted. All pages have one size and one cost.

use crate::Simulation;
use crate::heap::Heap;

pub(crate) struct LfuDa {
    capacity: u32,
    now: u64,
    age: u64,
    /// By page in memory.
    uses: Vec<u64>,
    /// By priority, then by the time of the last use.
    pages: Heap<(u64, u64)>,
}

impl LfuDa {
    pub(crate) fn new(capacity: u32) -> LfuDa {
        LfuDa { capacity, now: 0, age: 0, uses: Vec::new(), pages: Heap::new() }
    }
}

impl Simulation for LfuDa {
    fn reserve(&mut self, pages: u32) {
        self.pages.reserve(pages);
        if self.uses.len() < pages as usize {
            self.uses.resize(pages as usize, 0);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.now += 1;
        let is_there = self.pages.has(page);
        if !is_there && self.pages.len() == self.capacity {
            let ((priority, _), victim) = self.pages.first().expect("memory is full");
            self.pages.remove(victim);
            (self.age, self.uses[victim as usize]) = (priority, 0);
        }
        self.uses[page as usize] += 1;
        self.pages.set(page, (self.uses[page as usize] + self.age, self.now));
        is_there
    }

    fn remove(&mut self, page: u32) {
        self.pages.remove(page);
        self.uses[page as usize] = 0;
    }

    fn check(&self) -> Result<(), String> {
        if self.pages.len() > self.capacity {
            return Err(format!("{} pages are more than {}", self.pages.len(), self.capacity));
        }
        if self.pages.first().is_some_and(|((priority, _), _)| priority < self.age) {
            return Err("a page has a lower priority than the age of the memory".to_owned());
        }
        self.pages.check()
    }
}
