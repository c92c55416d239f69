//! LRU: the page that was not used for longest goes first.
//!
//! *What.* Pages are in order of their last use. When a slot is needed, the first of them is evicted.
//!
//! *How.* The order is a log of uses instead of a list. A page knows its last entry, and each entry has a bit: whether it is the last one of its page.
//!
//! ```text
//!   log    │ 7 │ 3 │ 7 │ 1 │ 3 │ 9 │ 1 │ ◀─ uses
//!   last   │ 0 │ 0 │ 1 │ 0 │ 1 │ 1 │ 1 │
//!                    ▲ who has to go
//! ```
//! A use clears the bit of the page's old entry and appends a new one. Eviction searches for the first bit from the old end on, 64 at a time. A list
//! waits for three places of memory at each use, one after the other. The log waits for one, and prefetches it: the bits fit into the processor's
//! cache. The log is a ring. When it is full, it is compacted; if that gains too little, it grows.
//!
//! *When not to use it:* for loops that are larger than memory, and for scans: it keeps what has just come by.
//!
//! Source: R. L. Mattson and others, *Evaluation techniques for storage hierarchies*, IBM Systems Journal 9(2), 1970,
//! <https://doi.org/10.1147/sj.92.0078>.

use crate::Simulation;
use prefetch_index::prefetch_index;

/// Not in memory: no place in the log.
const ABSENT: u32 = u32::MAX;
/// The limit of place numbers. After it numbering restarts at 0.
const PLACES: u32 = 1 << 31;
/// Accesses by which a page's last place is prefetched.
const AHEAD: usize = 16;
/// Places of a log at first.
const PLACES_MIN: usize = 1 << 12;
/// The first place. It is just below the limit, so that every longer trace passes the restart of numbering.
const FIRST: u32 = PLACES - 1000;

pub(crate) struct Lru {
    capacity: u32,
    len: u32,
    /// By page: the place of its last use in the log.
    last: Vec<u32>,
    log: Log,
    /// The place from which on entries may be last ones.
    oldest: u32,
    /// The place of the next use.
    next: u32,
}

/// Uses in their order, by place, in a ring of as many as a power of two.
struct Log {
    pages: Vec<u32>,
    /// By place, a bit: it is the last one of its page.
    is_last: Vec<u64>,
}

impl Log {
    fn new(places: usize) -> Log {
        Log { pages: vec![0; places], is_last: vec![0; places / 64] }
    }

    /// Where a place is in memory.
    #[inline]
    fn at(&self, place: u32) -> usize {
        place as usize & (self.pages.len() - 1)
    }

    #[inline]
    fn put(&mut self, place: u32, page: u32) {
        let at = self.at(place);
        self.pages[at] = page;
        self.is_last[at / 64] |= 1 << (at % 64);
    }

    /// A use is not the last one of its page any more, or the page goes; says which page it was of.
    #[inline]
    fn take(&mut self, place: u32) -> u32 {
        let at = self.at(place);
        self.is_last[at / 64] &= !(1 << (at % 64));
        self.pages[at]
    }

    /// The first last use at or behind a place. There is one.
    #[inline]
    fn first_from(&self, mut place: u32) -> u32 {
        loop {
            let at = self.at(place);
            let left = self.is_last[at / 64] >> (at % 64);
            if left != 0 {
                return place + left.trailing_zeros();
            }
            place = behind(place - place % 64, 64);
        }
    }
}

/// The place that is so many behind another.
#[inline]
fn behind(place: u32, by: u32) -> u32 {
    (place + by) % PLACES
}

impl Lru {
    pub(crate) fn new(capacity: u32) -> Lru {
        Lru { capacity, len: 0, last: Vec::new(), log: Log::new(PLACES_MIN), oldest: FIRST, next: FIRST }
    }

    /// The page that was not used for longest goes.
    #[inline]
    fn evict(&mut self) {
        let place = self.log.first_from(self.oldest);
        let page = self.log.take(place);
        self.last[page as usize] = ABSENT;
        self.oldest = behind(place, 1);
        self.len -= 1;
    }

    /// Puts last uses side by side, in a larger log if they take more than a quarter of this one.
    #[cold]
    fn close_up(&mut self) {
        let places = self.log.pages.len();
        let larger = if self.len as usize > places / 4 { (4 * places).min(PLACES as usize) } else { places };
        assert!((self.len as usize) < larger, "a log has a place for each page");
        let old = std::mem::replace(&mut self.log, Log::new(larger));
        let mut from = std::mem::replace(&mut self.oldest, self.next);
        for _ in 0..self.len {
            let place = old.first_from(from);
            from = behind(place, 1);
            self.put(old.pages[old.at(place)]);
        }
    }

    /// A page is used.
    #[inline]
    fn put(&mut self, page: u32) {
        self.log.put(self.next, page);
        self.last[page as usize] = self.next;
        self.next = behind(self.next, 1);
    }
}

impl Simulation for Lru {
    fn reserve(&mut self, pages: u32) {
        if self.last.len() < pages as usize {
            self.last.resize(pages as usize, ABSENT);
        }
    }

    #[inline]
    fn access(&mut self, page: u32) -> bool {
        let before = self.last[page as usize];
        let was_there = before != ABSENT;
        if was_there {
            self.log.take(before);
        } else {
            if self.len == self.capacity {
                self.evict();
            }
            self.len += 1;
        }
        self.put(page);
        if self.log.at(self.next) == self.log.at(self.oldest) {
            self.close_up();
        }
        was_there
    }

    fn run(&mut self, pages: &[u32]) -> u64 {
        if let Some(&most) = pages.iter().max() {
            self.reserve(most.checked_add(1).expect("page numbers are dense"));
        }
        let mut misses = 0;
        for (at, &page) in pages.iter().enumerate() {
            if let Some(&soon) = pages.get(at + AHEAD) {
                prefetch_index(&self.last, soon as usize);
            }
            misses += u64::from(!self.access(page));
        }
        misses
    }

    fn remove(&mut self, page: u32) {
        let place = std::mem::replace(&mut self.last[page as usize], ABSENT);
        if place != ABSENT {
            self.log.take(place);
            self.len -= 1;
        }
    }

    fn check(&self) -> Result<(), String> {
        let there = self.last.iter().filter(|&&last| last != ABSENT).count();
        let is_told = |(page, &last): (usize, &u32)| {
            let at = self.log.at(last);
            last != ABSENT
                && self.log.pages[at] as usize == page
                && self.log.is_last[at / 64] >> (at % 64) & 1 == 1
        };
        let told = self.last.iter().enumerate().filter(|&of| is_told(of)).count();
        let bits: u32 = self.log.is_last.iter().map(|bits| bits.count_ones()).sum();
        if there != told || bits != self.len || there != self.len as usize || self.len > self.capacity {
            return Err(format!(
                "{there} pages are present, the log records {told} by {bits} bits, {} are counted, and the capacity is {}",
                self.len, self.capacity
            ));
        }
        Ok(())
    }
}
