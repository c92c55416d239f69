//! W-TinyLFU: a new page stays only if it was used more often than the page that would have to go for it.
//!
//! ```text
//!   new ──► window, 1 in 100 ──► candidate ──┐  who has more uses stays
//!                                            ├─────► main: SLRU, on probation
//!           main's next to go ──► victim ────┘
//! ```
//! *What.* A window, an LRU, takes each new page. A page that overflows it is compared with the next victim of the main part, an SLRU: the one with
//! more uses stays; at a tie, the older one. Uses are counted for each page, in memory or not, up to `count`. After `sample` accesses per page of
//! capacity, all counts are halved, and so is the number of accesses since: the next halving comes after half as many.
//!
//! *Why.* Popularity decides what stays, but only the popularity of late, and what is new has a window to become popular in.
//!
//! *When not to use it:* where pages are used in bursts longer than the window, by recency alone.
//!
//! *How.* The halving is put off until a page is checked: its count says at which halving it was right.
//!
//! Source: G. Einziger, R. Friedman and B. Manes, *TinyLFU: A Highly Efficient Cache Admission Policy*, ACM Transactions on Storage 13(4),
//! 2017, <https://doi.org/10.1145/3149371>. There a sketch of a few bits a page estimates the counts; with dense numbers they are exact.

use crate::Simulation;
use crate::simulation::{Queues, part, places};
use crate::slru::Slru;

places!(
    /// A page's place in the window, or none.
    In { Window }
);

#[derive(Clone, Copy, Default)]
struct Count {
    uses: u32,
    /// After this number of halvings.
    at: u32,
}

/// What can be chosen.
pub(crate) struct Shape {
    pub(crate) window: f64,
    pub(crate) protected: f64,
    pub(crate) segments: u32,
    pub(crate) sample: u32,
    pub(crate) count: u32,
    pub(crate) newer_wins_ties: bool,
}

pub(crate) struct WTinyLfu {
    capacity: u32,
    window_max: u32,
    /// Accesses from one halving to the next, and those that are left.
    sample: u64,
    left: u64,
    halvings: u32,
    uses_max: u32,
    newer_wins_ties: bool,
    /// By page.
    counts: Vec<Count>,
    window: Queues<In, 1>,
    main: Slru,
}

impl WTinyLfu {
    pub(crate) fn new(capacity: u32, shape: &Shape) -> WTinyLfu {
        let window_max = part(shape.window, capacity).clamp(1, capacity);
        let main = Slru::new(capacity - window_max, shape.protected, shape.segments);
        let sample = u64::from(shape.sample) * u64::from(capacity);
        WTinyLfu {
            capacity,
            window_max,
            sample,
            left: sample,
            halvings: 0,
            uses_max: shape.count,
            newer_wins_ties: shape.newer_wins_ties,
            counts: Vec::new(),
            window: Queues::new(),
            main,
        }
    }

    fn uses(&self, page: u32) -> u32 {
        let Count { uses, at } = self.counts[page as usize];
        uses.checked_shr(self.halvings - at).unwrap_or(0)
    }

    fn count(&mut self, page: u32) {
        let uses = (self.uses(page) + 1).min(self.uses_max);
        self.counts[page as usize] = Count { uses, at: self.halvings };
        self.left -= 1;
        if self.left == 0 {
            (self.left, self.halvings) = (self.sample.div_ceil(2), self.halvings + 1);
        }
    }

    /// What the window has too much goes, or someone for it.
    fn shrink_window(&mut self) {
        if self.window.len(In::Window) <= self.window_max {
            return;
        }
        let candidate = self.window.tail(In::Window).expect("there is one more than may be");
        self.window.remove(candidate);
        if self.window_max + self.main.len() == self.capacity {
            let wins =
                |victim: &u32| self.uses(candidate) + u32::from(self.newer_wins_ties) > self.uses(*victim);
            let Some(victim) = self.main.victim().filter(wins) else { return };
            self.main.take(victim);
        }
        self.main.add(candidate);
    }
}

impl Simulation for WTinyLfu {
    fn reserve(&mut self, pages: u32) {
        self.window.reserve(pages);
        self.main.reserve(pages);
        if self.counts.len() < pages as usize {
            self.counts.resize(pages as usize, Count::default());
        }
    }

    fn access(&mut self, page: u32) -> bool {
        self.count(page);
        if self.window.place(page) == In::Window {
            self.window.move_to(page, In::Window);
            return true;
        }
        if self.main.is_hit(page) {
            return true;
        }
        self.window.push(page, In::Window);
        self.shrink_window();
        false
    }

    fn remove(&mut self, page: u32) {
        self.counts[page as usize] = Count { uses: 0, at: self.halvings };
        self.window.forget(page);
        self.main.remove(page);
    }

    fn check(&self) -> Result<(), String> {
        let window = self.window.len(In::Window);
        if window > self.window_max || window + self.main.len() > self.capacity {
            return Err(format!("{window} pages in the window and {} others are too many", self.main.len()));
        }
        self.window.check()?;
        self.main.check()
    }
}
