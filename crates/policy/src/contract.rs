//! The contract between a policy, which says which page of a memory is to go, and a host, which has the memory.
//!
//! ```text
//!   host                                              policy
//!   there is room for so many pages   ── resized ───► which slots there may be
//!   a page has come                   ── added ─────► where it stands
//!   pages were used, in order         ── used ──────► what that makes of them
//!   room is needed                    ── nominate ──► so many slots at most, one at least
//!   what became of each               ── ended ─────► evicted, gone, or spared: it stays
//! ```
//! The calls are those of cache_ext's hooks (T. Zussman and others, *cache_ext: Customizing the Page Cache with eBPF*, SOSP 2025,
//! <https://dl.acm.org/doi/10.1145/3731569.3764820>), so that one policy runs over bare page numbers and in the simulated machine.
//!
//! What both sides keep:
//! 1. `resized` is the first call. A slot is a number below the largest capacity told so far. It is used again for another page once its
//!    page has left.
//! 2. Room is made first, then `added` is called. After a smaller capacity there may be more pages in memory than there is room for, until
//!    they have been evicted.
//! 3. All uses are told in their order before any other call. So it changes nothing how many the host tells at once. Calls that only look
//!    (`figures`, `why`, `check`) may come at any time.
//! 4. `nominate` is called only while a page is in memory, and with an empty list. The answer has one slot or more, at most as many as are
//!    wanted, each of them in memory, and none twice.
//! 5. What was nominated is in memory until `ended` says what became of it. Before all of it has ended, the host does not ask again. Pages
//!    may come meanwhile: the parts of a large one that was nominated and stays.
//! 6. A page that is spared stays, and may be nominated again. Asked again and again, a policy comes to every page: four times as many
//!    questions as there are pages, and it has named one that can go.
//! 7. A page may be gone at any time, nominated or not: its file was truncated, its process has ended, it was moved.
//! 8. The same calls get the same answers. The only chance in it is the seed that a policy is made with: no clock, no address, no map with
//!    a random order.
//!
//! *Where it is more than the hooks.* [`Policy::uses`]: a machine writes a use into the page's own word, as a processor does, and nobody
//! is told. CLOCK and SIEVE ask no more than whether a page was used before it goes; so they may be told as late as that, and a hit
//! costs nothing. [`Policy::cold`]: a page that was nominated while it was dirty can go once it has been written, without another round.

use std::any::Any;

/// A place for one page in memory: a number from 0, below the capacity, used again once its page has left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)] // so a policy of another language reads a list of them as numbers
pub struct Slot(pub u32);

impl Slot {
    /// The slot's number, to look into an array.
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
    /// Where it is.
    pub slot: Slot,
    /// Which page it is.
    pub page: PageId,
    /// Why it was brought in.
    pub cause: Cause,
    /// It has been written to.
    pub write: bool,
    /// When it came, in nanoseconds since the beginning.
    pub at_ns: u64,
}

/// Why a page was brought into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It was accessed.
    Demand,
    /// It was read ahead, and nobody has asked for it yet.
    Readahead,
    /// It was accessed, and had been evicted before.
    Refault {
        /// Evictions from this memory since its own.
        distance: u64,
    },
}

/// What became of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was nominated and has left.
    Evicted,
    /// It has left for another reason. There is nothing to remember of it.
    Gone,
    /// It was in the host's hands and stays: it is dirty, locked or pinned, or it was used.
    Spared,
}

/// What a policy has to hear of uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uses {
    /// Each of them, in order, before any other call.
    Each,
    /// Whether there was one. The host may keep it to itself until the page is nominated: then it tells the use, and spares the page. Nor has
    /// it to tell more than one between two nominations.
    Late,
    /// None.
    Never,
}

/// A policy: which pages of one memory are to go. The module says what it may rely on, and what is relied on.
pub trait Policy: Send {
    /// What it has to hear of uses. The same during all its life.
    fn uses(&self) -> Uses {
        Uses::Each
    }

    /// There is room for so many pages from now on.
    fn resized(&mut self, capacity: u32);

    /// A page has come into memory.
    fn added(&mut self, arrival: &Arrival);

    /// Pages in memory were used, in this order. The access that brings a page in is no use.
    fn used(&mut self, slots: &[Slot]);

    /// Room for `want` pages is needed, one or more: adds to `victims` whom to evict, the first one first.
    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>);

    /// Says what became of a page. Unless it was spared, its slot is free now.
    fn ended(&mut self, slot: Slot, page: PageId, end: End);

    /// A hint: the page is of no more use to whoever has it, or it was nominated before, and what kept it is over. A policy may take it next.
    fn cold(&mut self, _slot: Slot) {}

    /// Tells figures of its own by their names, to be columns of a table.
    fn figures(&self, _tell: &mut dyn FnMut(&str, f64)) {}

    /// Says in words why a page stands where it does, for who asks about it.
    fn why(&self, _slot: Slot) -> Option<String> {
        None
    }

    /// What is worth keeping while many calls follow each other: the lock of the language that the policy is written in. A host that has it drops it
    /// within some thousand calls, and before it waits for anything, as others may wait for that lock.
    fn held(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// Looks whether all of it fits together, and says what does not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
