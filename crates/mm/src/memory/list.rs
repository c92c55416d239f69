//! Doubly linked lists over indexes: the links live in the items' own records, so that moving a folio allocates nothing.
//!
//! Head is the hot end, tail the cold end, as in the kernel. Index 0 is a valid item; [`NONE`] ends a list.

/// The index that names no item.
pub const NONE: u32 = u32::MAX;

/// The links of an item on no list, as far as builds with debug assertions keep track: no list has one item on both sides of another. They are
/// zeroes, so that an unused record is on no list.
pub const UNLISTED: (u32, u32) = (0, 0);

/// Access to the (previous, next) links of the items.
pub trait Links {
    /// An item's neighbours, the one before it and the one behind it.
    fn links(&self, item: u32) -> (u32, u32);
    /// An item's neighbours, to be changed.
    fn links_mut(&mut self, item: u32) -> &mut (u32, u32);
}

/// A doubly linked list whose links lie in an array elsewhere ([`Links`]).
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    len: u64,
}

impl Default for List {
    fn default() -> List {
        List { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    /// The item at the head.
    pub fn head(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// The item at the tail.
    pub fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Returns whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts another list behind the last item.
    pub fn append(&mut self, links: &mut impl Links, other: List) {
        if other.head == NONE {
            assert_eq!(other.len, 0, "a list without a head has items");
            return;
        }
        debug_assert_eq!(links.links(other.head).0, NONE, "the list behind begins in the middle of another");
        links.links_mut(other.head).0 = self.tail;
        match self.tail {
            NONE => self.head = other.head,
            tail => links.links_mut(tail).1 = other.head,
        }
        self.tail = other.tail;
        self.len += other.len;
        self.assert_ends(links);
    }

    /// The number of items, which need not be that of pages.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Adds an item, which is on no list, at the head.
    pub fn push_head(&mut self, links: &mut impl Links, item: u32) {
        self.assert_unlisted(links, item);
        *links.links_mut(item) = (NONE, self.head);
        match self.head {
            NONE => self.tail = item,
            head => links.links_mut(head).0 = item,
        }
        self.head = item;
        self.len += 1;
        self.assert_ends(links);
    }

    /// Adds an item, which is on no list, at the tail.
    pub fn push_tail(&mut self, links: &mut impl Links, item: u32) {
        self.assert_unlisted(links, item);
        *links.links_mut(item) = (self.tail, NONE);
        match self.tail {
            NONE => self.head = item,
            tail => links.links_mut(tail).1 = item,
        }
        self.tail = item;
        self.len += 1;
        self.assert_ends(links);
    }

    /// Adds an item, which is on no list, on the head's side of another one.
    pub fn insert_before(&mut self, links: &mut impl Links, item: u32, next: u32) {
        self.assert_unlisted(links, item);
        self.assert_listed(links, next);
        let (prev, _) = links.links(next);
        *links.links_mut(item) = (prev, next);
        links.links_mut(next).0 = item;
        match prev {
            NONE => self.head = item,
            prev => links.links_mut(prev).1 = item,
        }
        self.len += 1;
        self.assert_ends(links);
    }

    /// Takes an item off.
    pub fn remove(&mut self, links: &mut impl Links, item: u32) {
        let (prev, next) = links.links(item);
        self.assert_listed(links, item);
        match prev {
            NONE => self.head = next,
            prev => links.links_mut(prev).1 = next,
        }
        match next {
            NONE => self.tail = prev,
            next => links.links_mut(next).0 = prev,
        }
        self.len -= 1;
        self.left(links, item);
    }

    /// Takes the item at the tail off.
    pub fn pop_tail(&mut self, links: &mut impl Links) -> Option<u32> {
        let item = self.tail()?;
        self.assert_listed(links, item);
        self.tail = links.links(item).0;
        match self.tail {
            NONE => self.head = NONE,
            tail => links.links_mut(tail).1 = NONE,
        }
        self.len -= 1;
        self.left(links, item);
        Some(item)
    }

    /// Takes the item at the head off.
    pub fn pop_head(&mut self, links: &mut impl Links) -> Option<u32> {
        let item = self.head()?;
        self.assert_listed(links, item);
        self.head = links.links(item).1;
        match self.head {
            NONE => self.tail = NONE,
            head => links.links_mut(head).0 = NONE,
        }
        self.len -= 1;
        self.left(links, item);
        Some(item)
    }

    /// An item is about to be added.
    #[inline(always)]
    fn assert_unlisted(&self, links: &impl Links, item: u32) {
        debug_assert_ne!(item, NONE, "what names no item is added to a list");
        debug_assert_eq!(
            links.links(item),
            UNLISTED,
            "item {item} is added to a list while it is on another"
        );
    }

    /// An item is about to be taken off.
    #[inline(always)]
    fn assert_listed(&self, links: &impl Links, item: u32) {
        if cfg!(debug_assertions) {
            let (prev, next) = links.links(item);
            assert_ne!((prev, next), UNLISTED, "item {item} is taken off a list and is on none");
            assert!(self.len > 0, "item {item} is taken off an empty list");
            match prev {
                NONE => assert_eq!(self.head, item, "item {item} is at the head of another list"),
                prev => assert_eq!(
                    links.links(prev).1,
                    item,
                    "item {prev} does not lead to item {item} behind it"
                ),
            }
            match next {
                NONE => assert_eq!(self.tail, item, "item {item} is at the tail of another list"),
                next => assert_eq!(
                    links.links(next).0,
                    item,
                    "item {next} does not lead to item {item} before it"
                ),
            }
        }
    }

    /// An item has been taken off.
    #[inline(always)]
    fn left(&self, links: &mut impl Links, item: u32) {
        if cfg!(debug_assertions) {
            *links.links_mut(item) = UNLISTED;
            self.assert_ends(links);
        }
    }

    /// The list has changed: its ends and its length say the same.
    #[inline(always)]
    fn assert_ends(&self, links: &impl Links) {
        if cfg!(debug_assertions) {
            assert_eq!(
                self.len == 0,
                self.head == NONE,
                "a list of {} items begins with {}",
                self.len,
                self.head
            );
            assert_eq!(
                self.len == 0,
                self.tail == NONE,
                "a list of {} items ends with {}",
                self.len,
                self.tail
            );
            assert_eq!(
                self.len == 1,
                self.len > 0 && self.head == self.tail,
                "a list of {} items has one end",
                self.len
            );
            if self.len > 0 {
                assert_eq!(links.links(self.head).0, NONE, "something is before the head of a list");
                assert_eq!(links.links(self.tail).1, NONE, "something is behind the tail of a list");
            }
        }
    }

    /// From the cold end to the hot end.
    pub fn iter_from_tail<'a>(&self, links: &'a impl Links) -> impl Iterator<Item = u32> + 'a {
        let mut next = self.tail;
        std::iter::from_fn(move || {
            let item = next;
            (item != NONE).then(|| {
                next = links.links(item).0;
                item
            })
        })
    }

    /// Panics unless the links lead from tail to head over exactly `len` items, both ways.
    pub fn check_invariants(&self, links: &impl Links) {
        let mut count = 0;
        let mut expected_next = NONE;
        for item in self.iter_from_tail(links) {
            assert_eq!(links.links(item).1, expected_next, "item {item}: the next link doesn't lead back");
            expected_next = item;
            count += 1;
            assert!(count <= self.len, "list of {} items has a cycle or a stranger", self.len);
        }
        assert_eq!(self.head, expected_next, "walking from the tail must end at the head");
        assert_eq!(count, self.len, "length differs from the items found");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    impl Links for Vec<(u32, u32)> {
        fn links(&self, item: u32) -> (u32, u32) {
            self[item as usize]
        }
        fn links_mut(&mut self, item: u32) -> &mut (u32, u32) {
            &mut self[item as usize]
        }
    }

    proptest! {
        #[test]
        fn a_list_behaves_as_a_deque(operations in prop::collection::vec((0u8..5, 0u32..8), 1..200)) {
            let mut links = vec![UNLISTED; 8];
            let mut list = List::default();
            let mut model: VecDeque<u32> = VecDeque::new();
            for (operation, item) in operations {
                match (operation, model.contains(&item)) {
                    (0, false) => { list.push_head(&mut links, item); model.push_front(item); }
                    (1, false) => { list.push_tail(&mut links, item); model.push_back(item); }
                    (2, true) => { list.remove(&mut links, item); model.retain(|&other| other != item); }
                    (3, _) => prop_assert_eq!(list.pop_tail(&mut links), model.pop_back()),
                    (4, _) => prop_assert_eq!(list.pop_head(&mut links), model.pop_front()),
                    _ => continue,
                }
                list.check_invariants(&links);
                prop_assert!(list.iter_from_tail(&links).eq(model.iter().rev().copied()));
                prop_assert_eq!((list.head(), list.tail()), (model.front().copied(), model.back().copied()));
            }
        }
    }
}
