//! The contract between a policy, which decides which page of a memory to evict, and a host, which has the memory.
//!
//! ```text
//!   host                                              policy
//!   the number of pages that fit      ── resized ───► prepares that many slots
//!   a page has come                   ── added ─────► gives it a position
//!   pages were used, in order         ── used ──────► may change their positions
//!   a free slot is needed             ── nominate ──► returns one slot or more, at most as many as requested
//!   the end of each                   ── ended ─────► forgets it (evicted, gone), or keeps it (spared)
//! ```
//! The calls are those of cache_ext's hooks (T. Zussman and others, *cache_ext: Customizing the Page Cache with eBPF*, SOSP 2025,
//! <https://dl.acm.org/doi/10.1145/3731569.3764820>), so that one policy runs over bare page numbers and in the simulated machine.
//!
//! Rules for both sides:
//! 1. `resized` is the first call. A slot is a number below the largest capacity announced so far. It is reused for another page once its page has
//!    left.
//! 2. The host frees a slot first, and then calls `added`. After a reduction of the capacity, there may be more pages in memory than slots, until
//!    they have been evicted.
//! 3. The host reports all uses in their order before any other call. The number of uses per report therefore has no effect. Calls that only read
//!    (`figures`, `why`, `check`) may come at any time.
//! 4. `nominate` is called only while a page is in memory, and with an empty list. The answer has at least one slot and at most as many as requested,
//!    each of them in memory, and none twice.
//! 5. Nominated pages stay in memory until `ended` reports the result. The host does not ask again before all of them have ended. Pages may come
//!    meanwhile: the parts of a large one that was nominated and stays.
//! 6. A page that is spared stays. Until another page has been evicted, the host leaves it out of all answers. It reports a slot that it leaves out
//!    as spared again. If an answer has no other slot, the host asks once more, for as many further pages as are left out. So a policy that names as
//!    many pages as requested need not remember what was spared. One that names fewer must get past spared pages itself: after four questions per
//!    page, it has named an evictable one.
//! 7. A page may disappear at any time, nominated or not: its file was truncated, its process has ended, it was moved.
//! 8. The same calls get the same answers. The only randomness is the seed that a policy is made with: no clock, no address, no map with a random
//!    order.
//!
//! *A policy by priority* names the slots with the lowest priorities, as many as requested, and changes nothing when a page is spared
//! ([the recipe](crate#a-policy-by-priority)).
//!
//! *Differences from the hooks.* [`Policy::uses`]: a machine records a use in the page's own word, as a processor does, without a notification. CLOCK
//! and SIEVE only need to know whether a page was used before its eviction. They can be notified at that time, and a hit costs nothing.
//! [`Policy::cold`]: a page that was nominated while it was dirty can be evicted once it has been written, without another round.

use std::any::Any;

/// A place for one page in memory: a number from 0, below the capacity, reused once its page has left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)] // so a policy of another language reads a list of them as numbers
pub struct Slot(pub u32);

impl Slot {
    /// Returns the slot's number, as an index of an array.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of a page: the same page has the same number whenever it comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u64);

/// A page that has come into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its slot.
    pub slot: Slot,
    /// Its page.
    pub page: PageId,
    /// The reason for which it was brought in.
    pub cause: Cause,
    /// It has been written to.
    pub write: bool,
    /// Time of arrival, in nanoseconds since the beginning.
    pub at_ns: u64,
}

/// The reason why a page was brought into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It was accessed.
    Demand,
    /// It was read ahead, and has not been accessed yet.
    Readahead,
    /// It was accessed, and had been evicted before.
    Refault {
        /// Evictions from this memory since its own.
        distance: u64,
    },
}

/// The end of a nomination or of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was nominated and has left.
    Evicted,
    /// It has left for another reason. The policy need not remember it.
    Gone,
    /// The host has isolated it and keeps it: it is dirty, locked or pinned, or it was used.
    Spared,
}

/// The uses that a policy must be notified of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uses {
    /// Each of them, in order, before any other call.
    Each,
    /// Only that there was one. The host may delay the notification until the page is nominated: then it reports the use, and spares the page. It
    /// need not report more than one between two nominations.
    Late,
    /// None.
    Never,
}

/// A policy: decides which pages of one memory to evict. The module documents the guarantees and obligations.
pub trait Policy: Send {
    /// Returns the uses that it must be notified of. The value never changes.
    fn uses(&self) -> Uses {
        Uses::Each
    }

    /// Sets the number of pages that fit from now on.
    fn resized(&mut self, capacity: u32);

    /// A page has come into memory.
    fn added(&mut self, arrival: &Arrival);

    /// Pages in memory were used, in this order. The access that brings a page in does not count as a use.
    fn used(&mut self, slots: &[Slot]);

    /// Requests `want` pages to evict, one or more: adds them to `victims`, the first one first.
    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>);

    /// Reports the end of a page. Unless it was spared, its slot is free now.
    fn ended(&mut self, slot: Slot, page: PageId, end: End);

    /// A hint: the owner of the page does not need it any more, or the page was nominated before, and the reason to keep it is gone. A policy may
    /// take it next.
    fn cold(&mut self, _slot: Slot) {}

    /// Reports custom figures by name, which become columns of a table.
    fn figures(&self, _tell: &mut dyn FnMut(&str, f64)) {}

    /// Explains in words why a page is at its position.
    fn why(&self, _slot: Slot) -> Option<String> {
        None
    }

    /// Returns state worth keeping during many calls: the lock of the language that the policy is written in. A host drops it within some thousand
    /// calls, and before it waits for anything, as others may wait for that lock.
    fn held(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// Checks that its structures are consistent, and reports the first error.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
