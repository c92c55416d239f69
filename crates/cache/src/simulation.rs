//! What a policy is here: an access goes in, hit or miss comes out.

use pageout_policy::check::Random;
use pageout_policy::queue::{Links, Queue};
use pageout_policy::{Fault, Slot};

/// A memory of fixed capacity under one policy.
pub trait Simulation: Send {
    /// Page numbers below this one may come from now on.
    fn reserve(&mut self, pages: u32);

    /// Accesses a page; returns whether it was in memory. Afterwards it is in memory. Its number was reserved.
    fn access(&mut self, page: u32) -> bool;

    /// A page is deleted: it leaves, its place is free, and nothing is remembered of it. Its number was reserved; it need not be there.
    fn remove(&mut self, page: u32);

    /// Looks whether all of it fits together, and says what does not.
    fn check(&self) -> Result<(), String>;

    /// What a policy that was brought has done wrong: misses mean nothing from then on.
    fn fault(&self) -> Option<&Fault> {
        None
    }

    /// Tells figures of the policy's own by their names.
    fn figures(&self, _tell: &mut dyn FnMut(&str, f64)) {}

    /// Pages are accessed in this order; says how many were not in memory. No page has the number `u32::MAX`.
    fn run(&mut self, pages: &[u32]) -> u64 {
        if let Some(&most) = pages.iter().max() {
            self.reserve(most.checked_add(1).expect("page numbers are dense"));
        }
        pages.iter().map(|&page| u64::from(!self.access(page))).sum()
    }
}

/// So large a part of a memory, in whole pages, rounded down.
pub(crate) fn part(share: f64, capacity: u32) -> u32 {
    // A share such as 0.29 of 100 is a hair below 29 in binary.
    (share * f64::from(capacity) + 1e-9) as u32
}

/// A random number from 0, below 1.
pub(crate) fn fraction(draws: &mut Random) -> f64 {
    (draws.draw() >> 11) as f64 / (1u64 << 53) as f64
}

/// Queues of pages that share links: each page is in one of them, or in none. `T` names the queues, and where a page is.
pub(crate) struct Queues<T, const N: usize> {
    links: Links,
    queues: [Queue; N],
    /// By page.
    places: Vec<T>,
}

/// Names of queues, with a number for each, and one for none.
pub(crate) trait Place: Copy + Eq + Default + Send + std::fmt::Debug {
    /// Which queue it is; `usize::MAX` for none, the default.
    fn number(self) -> usize;
}

impl<T: Place, const N: usize> Queues<T, N> {
    pub(crate) fn new() -> Queues<T, N> {
        Queues { links: Links::default(), queues: [Queue::default(); N], places: Vec::new() }
    }

    pub(crate) fn reserve(&mut self, pages: u32) {
        if self.places.len() < pages as usize {
            self.places.resize(pages as usize, T::default());
        }
    }

    /// Where a page is.
    #[inline]
    pub(crate) fn place(&self, page: u32) -> T {
        self.places[page as usize]
    }

    /// How many pages are in a queue.
    #[inline]
    pub(crate) fn len(&self, queue: T) -> u32 {
        self.queues[queue.number()].len()
    }

    /// The page that has been in a queue for longest.
    #[inline]
    pub(crate) fn tail(&self, queue: T) -> Option<u32> {
        self.queues[queue.number()].tail().map(|slot| slot.0)
    }

    /// Puts a page that is in no queue at the head of one.
    #[inline]
    pub(crate) fn push(&mut self, page: u32, to: T) {
        self.places[page as usize] = to;
        self.queues[to.number()].push_head(&mut self.links, Slot(page));
    }

    /// Takes a page out of the queue that it is in.
    #[inline]
    pub(crate) fn remove(&mut self, page: u32) {
        let from = std::mem::take(&mut self.places[page as usize]);
        self.queues[from.number()].remove(&mut self.links, Slot(page));
    }

    /// Takes a page out of the queue that it is in, if it is in one.
    pub(crate) fn forget(&mut self, page: u32) {
        if self.place(page) != T::default() {
            self.remove(page);
        }
    }

    /// Puts a page that is in a queue at the head of one: of the same, or of another.
    #[inline]
    pub(crate) fn move_to(&mut self, page: u32, to: T) {
        if self.places[page as usize] == to {
            self.queues[to.number()].move_head(&mut self.links, Slot(page));
        } else {
            self.remove(page);
            self.push(page, to);
        }
    }

    /// Says what is wrong with the queues, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        for queue in &self.queues {
            queue.check(&self.links)?;
            let number = |page: usize| self.places[page].number();
            let mut at = queue.iter_from_tail(&self.links).map(|slot| number(slot.index()));
            let first = queue.tail().map(|slot| number(slot.index()));
            if !at.all(|number| Some(number) == first && std::ptr::eq(&self.queues[number], queue)) {
                return Err("a page is in another queue than the one that it records".to_owned());
            }
        }
        let somewhere = self.places.iter().filter(|place| place.number() < N).count() as u32;
        let queued: u32 = self.queues.iter().map(Queue::len).sum();
        if somewhere != queued {
            return Err(format!("{somewhere} pages record that they are in a queue, but {queued} are"));
        }
        Ok(())
    }
}

/// Names queues: an enum with `Nowhere` in front.
macro_rules! places {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $queue:ident),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        #[repr(u8)]
        enum $name {
            #[default]
            Nowhere,
            $($(#[$of])* $queue),+
        }

        impl crate::simulation::Place for $name {
            #[inline]
            fn number(self) -> usize {
                (self as usize).wrapping_sub(1)
            }
        }
    };
}
pub(crate) use places;
