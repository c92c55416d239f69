//! CLOCK-Pro: LIRS by the means of CLOCK: accessed bits and three hands.
//!
//! ```text
//!   one ring, by the time of the last visit; new pages stand right behind the hand `hot`
//!     H  hot page         hand `hot`:  a page without use becomes cold; ends the trials that it passes
//!     C  cold page        hand `cold`: a page without use is evicted; its name stays up to the end of its trial
//!     x  name             hand `test`: ends trials, and drops names, if there are too many
//! ```
//! *What.* A new page is cold and on trial. A use during its trial makes it hot, even after its eviction: it has returned sooner than the coldest
//! hot page. Each such use gives cold pages one page more of memory, and each trial without one gives them one page less.
//!
//! *Why.* As LIRS it keeps most of a loop that is larger than memory, and a hit sets a bit.
//!
//! *How.* Hands `cold` and `test` would pass many pages that are not theirs. So cold pages, and trials with names, have rings of their own, in the
//! order of the ring of all.
//!
//! *When not to use it:* where the hot set moves: hot pages leave only as fast as the hand goes round.
//!
//! Source: S. Jiang, F. Chen and X. Zhang, *CLOCK-Pro: An Effective Improvement of the CLOCK Replacement*, USENIX ATC 2005,
//! <https://www.usenix.org/conference/2005-usenix-annual-technical-conference/clock-pro-effective-improvement-clock-replacement>.
//!
//! *Choices of pageout.* The first pages are hot until their share is full; the share that cold pages begin with is a parameter. A used cold page
//! without a trial begins one. A hand that passes a used page on trial ends the trial, but does not count it as a failure. A page that returns is not
//! forgotten to make space for itself.

use crate::Simulation;
use crate::simulation::part;

/// No page.
const NONE: u32 = u32::MAX;
/// All pages and names; the front is under the hand `hot`.
const ALL: usize = 0;
/// Cold pages in memory, on trial or not; the hand is `cold`.
const COLD: usize = 1;
/// Pages and names on trial; the hand is `test`.
const TRIAL: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Is {
    #[default]
    Unknown,
    Hot,
    Cold,
    /// A cold page that is on trial.
    Trial,
    /// A name: a cold page on trial that has left.
    Left,
}

impl Is {
    /// Returns true if such a page is in a ring.
    fn is_in(self, ring: usize) -> bool {
        match ring {
            ALL => self != Is::Unknown,
            COLD => matches!(self, Is::Cold | Is::Trial),
            _ => matches!(self, Is::Trial | Is::Left),
        }
    }

    fn is_there(self) -> bool {
        matches!(self, Is::Hot | Is::Cold | Is::Trial)
    }
}

/// Some of the pages, in the order of the ring of all.
struct Ring {
    /// By page: the one before it and the one behind it.
    links: Vec<[u32; 2]>,
    /// The first page from the hand `hot` on. New pages stand right behind that hand, so before this page.
    front: u32,
    /// The page under the hand of this ring.
    hand: u32,
    len: u32,
}

impl Ring {
    fn insert(&mut self, page: u32) {
        self.len += 1;
        if self.front == NONE {
            (self.front, self.hand) = (page, page);
            self.links[page as usize] = [page; 2];
            return;
        }
        let [before, _] = self.links[self.front as usize];
        self.links[page as usize] = [before, self.front];
        self.links[before as usize][1] = page;
        self.links[self.front as usize][0] = page;
    }

    fn next(&self, page: u32) -> u32 {
        self.links[page as usize][1]
    }

    /// The hand `hot` passes a page.
    fn pass(&mut self, page: u32) {
        if self.front == page {
            self.front = self.next(page);
        }
    }

    /// Takes a page out. A hand that is at it moves on.
    fn remove(&mut self, page: u32) {
        let [before, behind] = self.links[page as usize];
        let next = if behind == page { NONE } else { behind };
        for at in [&mut self.front, &mut self.hand] {
            if *at == page {
                *at = next;
            }
        }
        self.links[before as usize][1] = behind;
        self.links[behind as usize][0] = before;
        self.len -= 1;
    }

    /// Reports a link that does not lead back, or a page that is not in this ring.
    fn check(&self, is_in: impl Fn(u32) -> bool) -> Result<(), String> {
        let (mut at, mut len) = (self.front, 0);
        while at != NONE && len <= self.len && (len == 0 || at != self.front) {
            if !is_in(at) || self.links[self.next(at) as usize][0] != at {
                return Err(format!("page {at} is in a ring that is not its own, or is linked wrong"));
            }
            (at, len) = (self.next(at), len + 1);
        }
        match len == self.len {
            true => Ok(()),
            false => Err(format!("{len} pages are in a ring, but {} are counted", self.len)),
        }
    }
}

pub(crate) struct ClockPro {
    capacity: u32,
    left_max: u32,
    cold_max: u32,
    /// Names of pages that have left.
    left: u32,
    rings: [Ring; 3],
    /// By page: what it is, and whether it was used.
    pages: Vec<(Is, bool)>,
}

impl ClockPro {
    pub(crate) fn new(capacity: u32, cold: f64, ghost: f64) -> ClockPro {
        let (left_max, cold_max) = (part(ghost, capacity), part(cold, capacity).clamp(1, capacity));
        let rings = [(); 3].map(|()| Ring { links: Vec::new(), front: NONE, hand: NONE, len: 0 });
        ClockPro { capacity, left_max, cold_max, left: 0, rings, pages: Vec::new() }
    }

    fn is(&self, page: u32) -> Is {
        self.pages[page as usize].0
    }

    fn is_used(&mut self, page: u32) -> &mut bool {
        &mut self.pages[page as usize].1
    }

    fn hot(&self) -> u32 {
        self.rings[ALL].len - self.left - self.rings[COLD].len
    }

    fn there(&self) -> u32 {
        self.rings[ALL].len - self.left
    }

    /// Changes what a page is. Its place stays in the rings that it stays in; in others it enters at the head.
    fn make(&mut self, page: u32, is: Is) {
        let was = std::mem::replace(&mut self.pages[page as usize].0, is);
        self.left = self.left + u32::from(is == Is::Left) - u32::from(was == Is::Left);
        for (number, ring) in self.rings.iter_mut().enumerate() {
            match (was.is_in(number), is.is_in(number)) {
                (true, false) => ring.remove(page),
                (false, true) => ring.insert(page),
                _ => {}
            }
        }
    }

    fn forget(&mut self, page: u32) {
        self.make(page, Is::Unknown);
        *self.is_used(page) = false;
    }

    /// Ends the trial of a page, if it is on one, and drops a name.
    fn end_trial(&mut self, page: u32) {
        let is = self.is(page);
        if is.is_in(TRIAL) && !*self.is_used(page) {
            self.cold_max = (self.cold_max - 1).max(1);
        }
        match is {
            Is::Left => self.forget(page),
            Is::Trial => self.make(page, Is::Cold),
            Is::Unknown | Is::Hot | Is::Cold => {}
        }
    }

    /// The hand `hot` visits a page, and goes on.
    fn turn(&mut self) {
        let page = self.rings[ALL].front;
        let is_hot = self.is(page) == Is::Hot;
        let is_cooled = is_hot && !std::mem::take(self.is_used(page));
        if !is_hot {
            self.end_trial(page);
        }
        self.rings.iter_mut().for_each(|ring| ring.pass(page));
        if is_cooled {
            self.make(page, Is::Cold);
        }
    }

    /// A page that is not in the ring was used during its trial.
    fn promote(&mut self, page: u32) {
        self.cold_max = (self.cold_max + 1).min(self.capacity);
        self.make(page, Is::Hot);
        while self.hot() > self.capacity - self.cold_max {
            self.turn();
        }
    }

    fn evict(&mut self) {
        while self.there() == self.capacity {
            if self.rings[COLD].len == 0 {
                self.turn();
                continue;
            }
            let page = self.rings[COLD].hand;
            let (is, is_used) = self.pages[page as usize];
            match (is, is_used) {
                (Is::Trial, true) => {
                    self.forget(page);
                    self.promote(page);
                }
                (_, true) => {
                    self.forget(page);
                    self.make(page, Is::Trial);
                }
                (Is::Trial, false) => {
                    self.make(page, Is::Left);
                    while self.left > self.left_max {
                        let tested = self.rings[TRIAL].hand;
                        self.end_trial(tested);
                    }
                }
                (_, false) => self.forget(page),
            }
        }
    }
}

impl Simulation for ClockPro {
    fn reserve(&mut self, pages: u32) {
        if self.pages.len() < pages as usize {
            self.pages.resize(pages as usize, (Is::Unknown, false));
            self.rings.iter_mut().for_each(|ring| ring.links.resize(pages as usize, [NONE; 2]));
        }
    }

    fn access(&mut self, page: u32) -> bool {
        let is = self.is(page);
        if is.is_there() {
            *self.is_used(page) = true;
            return true;
        }
        self.forget(page);
        let was_full = self.there() == self.capacity;
        self.evict();
        if is == Is::Left {
            self.promote(page);
        } else {
            let is_hot = !was_full && self.hot() < self.capacity - self.cold_max;
            self.make(page, if is_hot { Is::Hot } else { Is::Trial });
        }
        false
    }

    fn remove(&mut self, page: u32) {
        self.forget(page);
    }

    fn check(&self) -> Result<(), String> {
        let (there, left) = (self.there(), self.left);
        if there > self.capacity || left > self.left_max {
            return Err(format!("{there} pages and {left} names are too many"));
        }
        for (number, ring) in self.rings.iter().enumerate() {
            ring.check(|page| self.is(page).is_in(number))?;
            let known = self.pages.iter().filter(|(is, _)| is.is_in(number)).count();
            if known != ring.len as usize {
                return Err(format!("{known} pages belong to ring {number}, but {} are in it", ring.len));
            }
        }
        Ok(())
    }
}
