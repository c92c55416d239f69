//! SLRU, segmented LRU: pages that were used once more are protected from those that were not.
//!
//! ```text
//!   new ──► probation ──┬── used: protected ──┬── used: to its head
//!               ▲       └── tail: evicted     └── too many: its tail, back to probation
//!               └────────────────────────────────────┘
//! ```
//! *What.* There are two LRU lists. The protected one has at most a share of memory. With more `segments` than two, the protected part is several
//! lists of the same size. Each use moves a page one list up, and pages beyond its size move one list down. With `fill`, new pages enter the lowest
//! segment with free space while memory is not full, as in libCacheSim.
//!
//! *Why.* A scan goes through probation and leaves what is protected alone.
//!
//! *When not to use it:* where the second use comes later than probation is long: then nothing is ever protected, and it is a small LRU.
//!
//! Source: R. Karedla, J. S. Love and B. G. Wherry, *Caching Strategies to Improve Disk System Performance*, IEEE Computer 27(3), 1994,
//! <https://doi.org/10.1109/2.268884>.

use crate::Simulation;
use crate::simulation::{Place, Queues, part};

/// The most segments that there may be.
pub(crate) const SEGMENTS_MAX: usize = 8;

/// The number of a segment, from 1 on, which is probation; 0 is nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Segment(u8);

const PROBATION: Segment = Segment(1);

impl Place for Segment {
    #[inline]
    fn number(self) -> usize {
        usize::from(self.0).wrapping_sub(1)
    }
}

pub(crate) struct Slru {
    capacity: u32,
    top: Segment,
    /// Most pages of each segment but probation.
    segment_max: u32,
    /// While memory is not full, new pages enter the lowest segment with free space.
    fills: bool,
    len: u32,
    lists: Queues<Segment, SEGMENTS_MAX>,
}

impl Slru {
    /// Creates a memory with this capacity, a protected share, and this number of segments including probation, at least two.
    pub(crate) fn new(capacity: u32, protected: f64, segments: u32) -> Slru {
        let segment_max = part(protected / f64::from(segments - 1), capacity);
        Slru {
            capacity,
            top: Segment(segments as u8),
            segment_max,
            fills: false,
            len: 0,
            lists: Queues::new(),
        }
    }

    /// The same, but new pages enter the lowest segment with free space while memory is not full.
    pub(crate) fn filling(self) -> Slru {
        Slru { fills: true, ..self }
    }

    /// Where a new page enters.
    fn entrance(&self) -> Segment {
        if !self.fills || self.len == self.capacity {
            return PROBATION;
        }
        let probation_max = self.capacity - self.segment_max * u32::from(self.top.0 - 1);
        let has_room = |segment: &Segment| {
            let most = if *segment == PROBATION { probation_max } else { self.segment_max };
            self.lists.len(*segment) < most
        };
        (PROBATION.0..=self.top.0).map(Segment).find(has_room).unwrap_or(PROBATION)
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// A page is used; false where it is not here.
    pub(crate) fn is_hit(&mut self, page: u32) -> bool {
        let Segment(from) = self.lists.place(page);
        if from == 0 {
            return false;
        }
        let mut to = Segment((from + 1).min(self.top.0));
        self.lists.move_to(page, to);
        while to != PROBATION && self.lists.len(to) > self.segment_max {
            let oldest = self.lists.tail(to).expect("there is one more than may be");
            to = Segment(to.0 - 1);
            self.lists.move_to(oldest, to);
        }
        true
    }

    /// A page comes. A slot is free for it.
    pub(crate) fn add(&mut self, page: u32) {
        self.lists.push(page, self.entrance());
        self.len += 1;
    }

    /// Returns the next page to evict, if there is a page.
    pub(crate) fn victim(&self) -> Option<u32> {
        (PROBATION.0..=self.top.0).find_map(|segment| self.lists.tail(Segment(segment)))
    }

    /// Takes a page that is here out.
    pub(crate) fn take(&mut self, page: u32) {
        self.lists.remove(page);
        self.len -= 1;
    }
}

impl Simulation for Slru {
    fn reserve(&mut self, pages: u32) {
        self.lists.reserve(pages);
    }

    fn access(&mut self, page: u32) -> bool {
        if self.is_hit(page) {
            return true;
        }
        if self.len == self.capacity {
            self.take(self.victim().expect("memory is full"));
        }
        self.add(page);
        false
    }

    fn remove(&mut self, page: u32) {
        if self.lists.place(page) != Segment::default() {
            self.take(page);
        }
    }

    fn check(&self) -> Result<(), String> {
        let segments = (PROBATION.0..=self.top.0).map(|segment| self.lists.len(Segment(segment)));
        let all: u32 = segments.clone().sum();
        if all != self.len || all > self.capacity {
            return Err(format!("{all} pages are in segments, but {} are counted", self.len));
        }
        if let Some(len) = segments.skip(1).find(|len| *len > self.segment_max) {
            return Err(format!("{len} pages are in a segment of {}", self.segment_max));
        }
        self.lists.check()
    }
}
