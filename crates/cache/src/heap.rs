//! A heap of pages by a key, in which a page can change its key and leave from any position.
//!
//! The smallest key is at the front. The position of each page is in an array at its number, so a change costs a few exchanges with neighbours above
//! or below, and needs no search.

/// The page is not in the heap.
const NOWHERE: u32 = u32::MAX;

pub(crate) struct Heap<K> {
    entries: Vec<(K, u32)>,
    /// By page: its position among the entries.
    at: Vec<u32>,
}

impl<K: Ord + Copy> Heap<K> {
    pub(crate) fn new() -> Heap<K> {
        Heap { entries: Vec::new(), at: Vec::new() }
    }

    pub(crate) fn reserve(&mut self, pages: u32) {
        if self.at.len() < pages as usize {
            self.at.resize(pages as usize, NOWHERE);
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(crate) fn has(&self, page: u32) -> bool {
        self.at[page as usize] != NOWHERE
    }

    /// Returns the page with the smallest key, and the key.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// Adds a page with a key, or changes the key of one that is in the heap.
    pub(crate) fn set(&mut self, page: u32, key: K) {
        let at = match self.at[page as usize] {
            NOWHERE => {
                self.entries.push((key, page));
                self.entries.len() - 1
            }
            at => {
                self.entries[at as usize].0 = key;
                at as usize
            }
        };
        self.settle(at);
    }

    /// Removes a page; returns whether it was in the heap.
    pub(crate) fn remove(&mut self, page: u32) -> bool {
        let at = std::mem::replace(&mut self.at[page as usize], NOWHERE);
        if at == NOWHERE {
            return false;
        }
        self.entries.swap_remove(at as usize);
        if (at as usize) < self.entries.len() {
            self.settle(at as usize);
        }
        true
    }

    /// Moves an entry up or down until the order holds again.
    fn settle(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while at > 0 && entry.0 < self.entries[(at - 1) / 2].0 {
            self.put((at - 1) / 2, at);
            at = (at - 1) / 2;
        }
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let key = |of: usize| self.entries.get(of).map(|(key, _)| *key);
            let Some(mut least) = key(left).map(|_| left) else { break };
            if key(right).is_some_and(|right| Some(right) < key(left)) {
                least = right;
            }
            if key(least) >= Some(entry.0) {
                break;
            }
            self.put(least, at);
            at = least;
        }
        self.entries[at] = entry;
        self.at[entry.1 as usize] = at as u32;
    }

    /// Moves the entry at one position to another.
    fn put(&mut self, from: usize, to: usize) {
        self.entries[to] = self.entries[from];
        self.at[self.entries[to].1 as usize] = to as u32;
    }

    /// Reports the first entry that is not where it belongs.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (at, (key, page)) in self.entries.iter().enumerate() {
            if self.at[*page as usize] as usize != at {
                return Err(format!("page {page} records another position in the heap than {at}"));
            }
            if at > 0 && *key < self.entries[(at - 1) / 2].0 {
                return Err(format!("page {page} has a smaller key than the entry above it"));
            }
        }
        let there = self.at.iter().filter(|&&at| at != NOWHERE).count();
        if there != self.entries.len() {
            return Err(format!("{there} pages record a position, but the heap has {}", self.entries.len()));
        }
        Ok(())
    }
}
