//! ARC: a list of pages used once, and one of pages used more often. The pages that return decide how memory is split between them.
//!
//! ```text
//!      names that left        in memory            in memory        names that left
//!   [ once, left ] ◄── tail [ once ] ──used──► [ often ] tail ──► [ often, left ]
//!         └─ comes back: `once` is to be larger      `often` is to be larger: comes back ─┘
//! ```
//! *What.* `target` is the intended number of pages in `once`. A page that returns from the names of `once` raises it, and one from those of `often`
//! lowers it. The step is one, or the ratio of the other names if that is larger. A page that returns enters `often`. The number of names and pages
//! never exceeds twice the capacity.
//!
//! *Why.* It needs no parameter: after a scan it is a frequency policy, after a change of the hot set one of recency.
//!
//! *When not to use it:* in a loop larger than memory, where it keeps nothing, as LRU.
//!
//! Source: N. Megiddo and D. S. Modha, *ARC: A Self-Tuning, Low Overhead Replacement Cache*, FAST 2003,
//! <https://www.usenix.org/conference/fast-03/arc-self-tuning-low-overhead-replacement-cache>. The target is a real number, as there.

use crate::Simulation;
use crate::simulation::{Queues, places};

places!(
    /// Where a page is. The last two are names of pages that have left.
    In { Once, Often, OnceLeft, OftenLeft }
);

pub(crate) struct Arc {
    capacity: u32,
    target: f64,
    lists: Queues<In, 4>,
}

impl Arc {
    pub(crate) fn new(capacity: u32) -> Arc {
        Arc { capacity, target: 0.0, lists: Queues::new() }
    }

    fn share(&self, of: In, to: In) -> f64 {
        (f64::from(self.lists.len(of)) / f64::from(self.lists.len(to))).max(1.0)
    }

    /// A page leaves, and its name is kept.
    fn replace(&mut self, is_from_often: bool) {
        if self.lists.len(In::Once) + self.lists.len(In::Often) < self.capacity {
            // A deleted page leaves a free slot.
            return;
        }
        let once = f64::from(self.lists.len(In::Once));
        let gives = once > self.target || is_from_often && once == self.target;
        let once = self.lists.tail(In::Once).filter(|_| gives || self.lists.len(In::Often) == 0);
        match once {
            Some(page) => self.lists.move_to(page, In::OnceLeft),
            None => {
                let page = self.lists.tail(In::Often).expect("memory is full");
                self.lists.move_to(page, In::OftenLeft);
            }
        }
    }

    fn forget(&mut self, from: In) {
        self.lists.remove(self.lists.tail(from).expect("it is not empty"));
    }

    /// Room for a page whose name is not known.
    fn make_room(&mut self) {
        let len = |list| self.lists.len(list);
        let (once, once_left) = (len(In::Once), len(In::OnceLeft));
        let all = once + once_left + len(In::Often) + len(In::OftenLeft);
        if once == self.capacity {
            self.forget(In::Once);
        } else if once + once_left == self.capacity {
            self.forget(In::OnceLeft);
            self.replace(false);
        } else if all >= self.capacity {
            if all == 2 * self.capacity {
                self.forget(In::OftenLeft);
            }
            self.replace(false);
        }
    }
}

impl Simulation for Arc {
    fn reserve(&mut self, pages: u32) {
        self.lists.reserve(pages);
    }

    fn access(&mut self, page: u32) -> bool {
        match self.lists.place(page) {
            In::Once | In::Often => {
                self.lists.move_to(page, In::Often);
                return true;
            }
            In::OnceLeft => {
                let raised = self.target + self.share(In::OftenLeft, In::OnceLeft);
                self.target = raised.min(f64::from(self.capacity));
                self.replace(false);
                self.lists.move_to(page, In::Often);
            }
            In::OftenLeft => {
                let lowered = self.target - self.share(In::OnceLeft, In::OftenLeft);
                self.target = lowered.max(0.0);
                self.replace(true);
                self.lists.move_to(page, In::Often);
            }
            In::Nowhere => {
                self.make_room();
                self.lists.push(page, In::Once);
            }
        }
        false
    }

    fn remove(&mut self, page: u32) {
        self.lists.forget(page);
    }

    fn check(&self) -> Result<(), String> {
        let len = |list| self.lists.len(list);
        let (once, often) = (len(In::Once), len(In::Often));
        let (once_left, often_left) = (len(In::OnceLeft), len(In::OftenLeft));
        if once + often > self.capacity || once + once_left > self.capacity {
            return Err(format!("{once} and {often} pages and {once_left} names of the first: too many"));
        }
        if once + often + once_left + often_left > 2 * self.capacity {
            return Err(format!(
                "{once}, {often}, {once_left}, {often_left}: the sum is more than twice the memory"
            ));
        }
        self.lists.check()
    }
}
