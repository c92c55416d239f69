//! Rings: reads of a thread that the engine was not notified of yet.
//!
//! ```text
//!   the thread ─▶ head [ access ][ access ] ... tail ─▶ whoever has the engine's lock ─▶ Engine::run_hits
//! ```
//! A hit that must be recorded goes into the ring of its thread, without waiting. The thread itself empties it when it is full or next has the lock,
//! and others do before they reclaim. So the actions of one thread reach the engine in order and before any decision based on them. Each
//! of several threads is late by one ring at most.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64};

use pageout_engine::{ObjectId, PAGE_SIZE};

use crate::atomic::{AtomicU64, AtomicUsize, Ordering};

/// As many as a CPU collects before it takes the lock of a list.
const ACCESSES_MAX: usize = 31;

const PAGE_BITS: u32 = 30;
const WANTED_BITS: u32 = 13;

/// A read of a page through a handle of its file, by the owner's number of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Read(u64);

impl Read {
    /// Limit of numbered file handles, and of regions. With more, a read would not fit into a word.
    pub(crate) const HANDLES_MAX: u32 = 1 << (64 - PAGE_BITS - WANTED_BITS - 1);

    /// `wanted`: bytes that the call still wants from the beginning of the page on. That there are more pages is all that matters where
    /// it does not end there.
    #[inline(always)]
    pub(crate) fn new(object: ObjectId, page: u64, wanted: u64) -> Read {
        let wanted = wanted.min(PAGE_SIZE + 1);
        Read(u64::from(object.0) << (PAGE_BITS + WANTED_BITS) | page << WANTED_BITS | wanted)
    }

    /// A read of a page of the region with this number.
    #[inline(always)]
    pub(crate) fn of_region(region: usize, page: u64) -> Read {
        Read::new(ObjectId(Read::HANDLES_MAX | region as u32), page, PAGE_SIZE)
    }

    /// The number of the region, if it is a read of a region.
    pub(crate) fn region(self) -> Option<usize> {
        self.object().0.checked_sub(Read::HANDLES_MAX).map(|region| region as usize)
    }

    pub(crate) fn object(self) -> ObjectId {
        ObjectId((self.0 >> (PAGE_BITS + WANTED_BITS)) as u32)
    }

    pub(crate) fn page(self) -> u64 {
        self.0 >> WANTED_BITS & ((1 << PAGE_BITS) - 1)
    }

    pub(crate) fn wanted(self) -> u32 {
        (self.0 & ((1 << WANTED_BITS) - 1)) as u32
    }

    /// Returns true if its call is over with this page.
    #[inline(always)]
    pub(crate) fn ends_call(self) -> bool {
        u64::from(self.wanted()) <= PAGE_SIZE
    }
}

/// Pages that were read without the engine's lock.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Hits {
    pub(crate) all: u64,
    /// Those in slow memory among them.
    pub(crate) slow: u64,
}

impl std::ops::AddAssign for Hits {
    fn add_assign(&mut self, more: Hits) {
        self.all += more.all;
        self.slow += more.slow;
    }
}

/// The ring of a thread, and what it counts by itself.
#[derive(Default)]
pub(crate) struct Ring {
    /// The line where its thread publishes its holds, if any.
    pub(crate) line: Option<usize>,
    reads: [AtomicU64; ACCESSES_MAX + 1],
    /// Read by all, written by the thread alone, as the next three.
    head: AtomicUsize,
    hits: AtomicU64,
    /// Those of slow memory among them.
    slow_hits: AtomicU64,
    /// Its thread is gone.
    is_over: AtomicBool,
    /// Pins that it has taken, less those that it has given back: a guard may go in another thread.
    pins: AtomicI64,
    /// Written by the holder of the engine's lock.
    tail: AtomicUsize,
}

impl Ring {
    pub(crate) fn new(line: Option<usize>) -> Ring {
        Ring { line, ..Ring::default() }
    }

    /// Appends a read; false if the ring is full.
    #[inline]
    pub(crate) fn push(&self, read: Read) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        // Acquire: the place is only written again after it was read.
        if head.wrapping_sub(self.tail.load(Ordering::Acquire)) == ACCESSES_MAX {
            return false;
        }
        self.reads[head % self.reads.len()].store(read.0, Ordering::Relaxed);
        self.head.store(head.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes all out. To be called under the engine's lock.
    pub(crate) fn drain(&self, into: &mut VecDeque<Read>) {
        let (head, tail) = (self.head.load(Ordering::Acquire), self.tail.load(Ordering::Relaxed));
        let mut at = tail;
        while at != head {
            into.push_back(Read(self.reads[at % self.reads.len()].load(Ordering::Relaxed)));
            at = at.wrapping_add(1);
        }
        if at != tail {
            self.tail.store(head, Ordering::Release);
        }
    }

    /// Its thread has read a page without the engine's lock.
    #[inline(always)]
    pub(crate) fn count_hit(&self, is_slow: bool) {
        // One writer: no need for an instruction that keeps others out.
        let count = |of: &AtomicU64| of.store(of.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        count(&self.hits);
        if is_slow {
            count(&self.slow_hits);
        }
    }

    /// Hits, and those of slow memory among them.
    pub(crate) fn hits(&self) -> Hits {
        Hits { all: self.hits.load(Ordering::Relaxed), slow: self.slow_hits.load(Ordering::Relaxed) }
    }

    /// Its thread has so many more pins. Returns how many that are.
    #[inline(always)]
    pub(crate) fn count_pins(&self, more: i64) -> i64 {
        let pins = self.pins.load(Ordering::Relaxed) + more;
        self.pins.store(pins, Ordering::Relaxed);
        pins
    }

    pub(crate) fn pins(&self) -> i64 {
        self.pins.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Returns true if its thread is gone, and nothing comes any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_survives_packing() {
        for (object, page, wanted) in [(0, 0, 1), (7, (1 << 30) - 1, 4096), (Read::HANDLES_MAX - 1, 3, 4097)]
        {
            let read = Read::new(ObjectId(object), page, wanted);
            assert_eq!(
                (read.object(), read.page(), u64::from(read.wanted())),
                (ObjectId(object), page, wanted)
            );
        }
        assert_eq!(Read::new(ObjectId(1), 2, 1 << 40).wanted(), 4097, "more than this page");
        for (region, page) in [(0, 0), (Read::HANDLES_MAX as usize - 1, (1 << 30) - 1)] {
            let read = Read::of_region(region, page);
            assert_eq!((read.region(), read.page()), (Some(region), page));
        }
        assert_eq!(Read::new(ObjectId(Read::HANDLES_MAX - 1), 2, 1).region(), None);
    }

    #[test]
    fn reads_come_out_in_order_whatever_the_threads_do() {
        let ring = Ring::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for page in 0..10_000 {
                    while !ring.push(Read::new(ObjectId(1), page, 4096)) {
                        std::thread::yield_now();
                    }
                }
                ring.end();
            });
            let mut found = VecDeque::new();
            while found.len() < 10_000 {
                ring.drain(&mut found);
                std::thread::yield_now();
            }
            assert!(found.iter().map(|read| read.page()).eq(0..10_000));
        });
    }
}
