//! S3-FIFO: a small queue that most new pages leave unused, a main one, and names of who left the small one.
//!
//! [`pageout_policy::S3Fifo`] has the diagram and the reasons. It is the same policy for a machine: over slots, with names in a map, and with spared
//! pages. This one is for page numbers alone: names are in an array, which takes a fifth of the time, and its shares are parameters. With the default
//! parameters the two miss the same pages if memory divides by ten, which a test checks.
//!
//! *What.* A use counts up to three. The small queue has a share of memory, and is evicted from while it has that or more; otherwise the main queue
//! is. A page at the small queue's tail with `promote` uses moves to the main queue, without them; another page is evicted and its name kept. A page
//! that returns while its name is known enters the main queue. That queue goes round as long as its tail has uses, and takes one each time. With
//! `fill`, new pages enter the main queue, too, while memory is not full and the small queue has its share.
//!
//! *When not to use it:* where pages are used a second time after the small queue has turned over, and not again.
//!
//! Source: J. Yang and others, *FIFO Queues are All You Need for Cache Eviction*, SOSP 2023, <https://dl.acm.org/doi/10.1145/3600006.3613147>.

use crate::Simulation;
use crate::simulation::{Queues, part, places};

places!(
    /// Where a page is. One in `Left` is a name.
    In { Small, Main, Left }
);

/// The most uses that are counted.
const USES_MAX: u8 = 3;

pub(crate) struct S3Fifo {
    capacity: u32,
    small_share: u32,
    left_max: u32,
    promote: u8,
    fills_main: bool,
    queues: Queues<In, 3>,
    /// By page in memory.
    uses: Vec<u8>,
}

impl S3Fifo {
    pub(crate) fn new(capacity: u32, small: f64, ghost: f64, promote: u32, fills_main: bool) -> S3Fifo {
        let small_share = part(small, capacity).max(1);
        let left_max = part(ghost, capacity);
        let (queues, uses, promote) = (Queues::new(), Vec::new(), promote as u8);
        S3Fifo { capacity, small_share, left_max, promote, fills_main, queues, uses }
    }

    fn len(&self) -> u32 {
        self.queues.len(In::Small) + self.queues.len(In::Main)
    }

    fn make_room(&mut self) {
        if self.len() < self.capacity {
            return;
        }
        loop {
            let is_small_full = self.queues.len(In::Small) >= self.small_share;
            if let Some(page) = self.queues.tail(In::Small)
                && (is_small_full || self.queues.len(In::Main) == 0)
            {
                if std::mem::take(&mut self.uses[page as usize]) >= self.promote {
                    self.queues.move_to(page, In::Main);
                    continue;
                }
                self.queues.move_to(page, In::Left);
                if self.queues.len(In::Left) > self.left_max {
                    self.queues.remove(self.queues.tail(In::Left).expect("there is one more than may be"));
                }
                return;
            }
            let page = self.queues.tail(In::Main).expect("memory is full");
            if self.uses[page as usize] == 0 {
                self.queues.remove(page);
                return;
            }
            self.uses[page as usize] -= 1;
            self.queues.move_to(page, In::Main);
        }
    }
}

impl Simulation for S3Fifo {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        if self.uses.len() < pages as usize {
            self.uses.resize(pages as usize, 0);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        if matches!(self.queues.place(page), In::Small | In::Main) {
            let uses = &mut self.uses[page as usize];
            *uses = (*uses + 1).min(USES_MAX);
            return true;
        }
        let is_filling = self.fills_main && self.len() < self.capacity;
        self.make_room();
        // The name of an evicted page may have been forgotten for it.
        let is_known = self.queues.place(page) == In::Left;
        if is_known {
            self.queues.remove(page);
        }
        let is_small_full = self.queues.len(In::Small) >= self.small_share;
        self.queues.push(page, if is_known || is_filling && is_small_full { In::Main } else { In::Small });
        false
    }

    fn remove(&mut self, page: u32) {
        self.uses[page as usize] = 0;
        self.queues.forget(page);
    }

    fn check(&self) -> Result<(), String> {
        let (small, main, left) =
            (self.queues.len(In::Small), self.queues.len(In::Main), self.queues.len(In::Left));
        if small + main > self.capacity || left > self.left_max {
            return Err(format!("{small} small, {main} in the main queue and {left} names are too many"));
        }
        self.queues.check()
    }
}
