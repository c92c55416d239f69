//! QD-LP-FIFO: quick demotion by a small queue of new pages, and lazy promotion by a CLOCK behind it.
//!
//! ```text
//!   new ──► probation, a tenth ──┬── used ──► main: CLOCK of 2 bits ── no uses left: evicted
//!                                └── not used: evicted, its name is kept
//!   known by name, and back ────────────────► main
//! ```
//! *What.* Probation and the main part have fixed shares of memory. A page that would overflow probation moves to the main part if it was
//! used, and is evicted otherwise. A page that would overflow the main part has its CLOCK evict one.
//!
//! *Why.* Most pages are used once, and leave early. The others cost no work at a hit: they move only when they would be evicted.
//!
//! *When not to use it:* where pages are used a second time after probation has turned over, and not again.
//!
//! Source: J. Yang, Z. Qiu, Y. Zhang, Y. Yue and K. V. Rashmi, *FIFO Can Be Better than LRU: the Power of Lazy Promotion and Quick Demotion*,
//! HotOS 2023, <https://doi.org/10.1145/3593856.3595887>.
//!
//! *Choices of pageout.* Until memory is full, nothing is evicted, and probation may exceed its share. S3-FIFO is the successor; it evicts from the part
//! that has too much at the time.

use crate::Simulation;
use crate::simulation::{Queues, part, places};

places!(
    /// Where a page is. One in `Left` is a name.
    In { Probation, Main, Left }
);

pub(crate) struct QdLp {
    capacity: u32,
    probation_max: u32,
    left_max: u32,
    uses_max: u8,
    queues: Queues<In, 3>,
    /// By page in memory.
    uses: Vec<u8>,
}

impl QdLp {
    pub(crate) fn new(capacity: u32, probation: f64, ghost: f64, bits: u32) -> QdLp {
        let probation_max = part(probation, capacity).clamp(1, capacity);
        let (left_max, uses_max) = (part(ghost, capacity), (1u32 << bits) as u8 - 1);
        QdLp { capacity, probation_max, left_max, uses_max, queues: Queues::new(), uses: Vec::new() }
    }

    fn len(&self) -> u32 {
        self.queues.len(In::Probation) + self.queues.len(In::Main)
    }

    /// Evicts a page for a newcomer to one of the two parts.
    fn make_room(&mut self, to: In) {
        let main_max = self.capacity - self.probation_max;
        while self.len() == self.capacity {
            let main = self.queues.len(In::Main);
            let probation = self.queues.len(In::Probation);
            // The part that the newcomer would overflow gives a page; with a full memory one of the two does.
            let main_gives = match to {
                In::Main => main >= main_max,
                _ => probation < self.probation_max,
            };
            let is_main_over = main > main_max;
            if main > 0 && (main_gives || is_main_over) || probation == 0 {
                self.evict_from_main();
            } else {
                self.demote();
            }
        }
    }

    /// The oldest page on probation moves to the main part, or is evicted.
    fn demote(&mut self) {
        let page = self.queues.tail(In::Probation).expect("it has pages");
        if std::mem::take(&mut self.uses[page as usize]) > 0 {
            self.queues.move_to(page, In::Main);
            return;
        }
        self.queues.move_to(page, In::Left);
        if self.queues.len(In::Left) > self.left_max {
            self.queues.remove(self.queues.tail(In::Left).expect("there is one more than may be"));
        }
    }

    fn evict_from_main(&mut self) {
        loop {
            let page = self.queues.tail(In::Main).expect("it has pages");
            if self.uses[page as usize] == 0 {
                return self.queues.remove(page);
            }
            self.uses[page as usize] -= 1;
            self.queues.move_to(page, In::Main);
        }
    }
}

impl Simulation for QdLp {
    fn reserve(&mut self, pages: u32) {
        self.queues.reserve(pages);
        if self.uses.len() < pages as usize {
            self.uses.resize(pages as usize, 0);
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let place = self.queues.place(page);
        if matches!(place, In::Probation | In::Main) {
            let uses = &mut self.uses[page as usize];
            *uses = (*uses + 1).min(self.uses_max);
            return true;
        }
        // A page that returns is not forgotten to make space for itself.
        self.queues.forget(page);
        let to = if place == In::Left { In::Main } else { In::Probation };
        self.make_room(to);
        self.queues.push(page, to);
        false
    }

    fn remove(&mut self, page: u32) {
        self.uses[page as usize] = 0;
        self.queues.forget(page);
    }

    fn check(&self) -> Result<(), String> {
        let left = self.queues.len(In::Left);
        if self.len() > self.capacity || left > self.left_max {
            return Err(format!("{} pages and {left} names are too many", self.len()));
        }
        self.queues.check()
    }
}
