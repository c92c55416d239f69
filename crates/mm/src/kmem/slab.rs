//! A slab cache: kernel objects smaller than a page, several of which share one, whichever memcgs are charged for them. [machine 7]
//!
//! A page is allocated when no page in use has a free place for another object, and freed with its last object. Among those with free places, the one
//! with the lowest number is filled first. A kernel holds a page for each CPU and keeps a few empty ones, which makes a difference of no more than a
//! few pages.

use crate::units::Pfn;
use std::collections::{BTreeMap, BTreeSet};

/// The pages of one kind of object.
pub struct Slab {
    per_page: u16,
    /// The number of objects in each page of the slab.
    objects: BTreeMap<Pfn, u16>,
    /// Pages with a free place.
    partial: BTreeSet<Pfn>,
    /// Objects that fit into the pages in use.
    room: u64,
}

impl Slab {
    /// A cache of objects of which so many share a page.
    pub fn new(per_page: u16) -> Slab {
        Slab { per_page, objects: BTreeMap::new(), partial: BTreeSet::new(), room: 0 }
    }

    /// Objects that fit without another page.
    #[inline]
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Objects that there are.
    pub fn len(&self) -> u64 {
        self.objects.len() as u64 * u64::from(self.per_page) - self.room
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pages that they lie in.
    pub fn len_pages(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Adds an empty page.
    pub fn add_page(&mut self, pfn: Pfn) {
        let known = self.objects.insert(pfn, 0);
        assert_eq!(known, None, "{pfn:?} is added twice");
        self.partial.insert(pfn);
        self.room += u64::from(self.per_page);
    }

    /// Makes an object; returns its page. A free place must exist.
    pub fn take(&mut self) -> Pfn {
        let pfn = *self.partial.first().expect("room was made before");
        let objects = self.objects.get_mut(&pfn).expect("a page with room is one of the slab's");
        assert!(*objects < self.per_page, "{pfn:?} has room and {objects} objects");
        assert!(self.room > 0, "{pfn:?} has room, and the slab has none");
        *objects += 1;
        if *objects == self.per_page {
            self.partial.remove(&pfn);
        }
        self.room -= 1;
        pfn
    }

    /// Frees an object. True if it was the last one of its page, which is the slab's no more.
    #[must_use]
    pub fn give(&mut self, pfn: Pfn) -> bool {
        let objects = self.objects.get_mut(&pfn).expect("an object lies in one of the slab's pages");
        assert!(*objects > 0, "an object of {pfn:?} is freed twice");
        *objects -= 1;
        self.room += 1;
        let is_empty = *objects == 0;
        if is_empty {
            self.objects.remove(&pfn);
            self.partial.remove(&pfn);
            assert!(self.room >= u64::from(self.per_page), "the slab has less room than its empty page");
            self.room -= u64::from(self.per_page);
        } else {
            self.partial.insert(pfn);
        }
        is_empty
    }

    /// The slab's pages and the objects in each, for checkers.
    pub fn pages(&self) -> impl Iterator<Item = (Pfn, u16)> {
        self.objects.iter().map(|(&pfn, &objects)| (pfn, objects))
    }

    /// Panics unless partial pages and objects agree.
    pub fn check_invariants(&self) {
        let mut room = 0;
        for (pfn, objects) in self.pages() {
            assert!(objects <= self.per_page, "{objects} objects in {pfn:?}");
            assert_eq!(self.partial.contains(&pfn), objects < self.per_page, "{pfn:?} has room");
            room += u64::from(self.per_page - objects);
        }
        assert_eq!(self.room, room, "room for objects");
        assert!(
            self.partial.iter().all(|pfn| self.objects.contains_key(pfn)),
            "pages with free objects are the slab's"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shared_by_its_objects_and_goes_with_the_last_one() {
        let mut slab = Slab::new(3);
        slab.add_page(Pfn(9));
        slab.add_page(Pfn(4));
        let taken: Vec<Pfn> = (0..4).map(|_| slab.take()).collect();
        assert_eq!(taken, [Pfn(4), Pfn(4), Pfn(4), Pfn(9)]);
        assert_eq!(slab.room(), 2);
        assert!(!slab.give(Pfn(4)));
        assert_eq!(slab.take(), Pfn(4), "the lowest with room");
        assert!(slab.give(Pfn(9)));
        slab.check_invariants();
        assert_eq!((slab.room(), slab.pages().count()), (0, 1));
    }
}
