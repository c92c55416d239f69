//! Pages in memory in no order, of which an eviction draws a sample: the part that policies of random samples have in common.
//!
//! ```text
//!   there   7 2 9 4 1       the places of a sample are drawn, each of all; the lowest key goes; a new page takes its place
//! ```

use pageout_policy::check::Random;

/// The page is not in memory.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Page<T> {
    /// Its place among those in memory.
    at: u32,
    of: T,
}

/// Pages in memory, and a record of each page, in memory or not.
pub(crate) struct Sampled<T> {
    capacity: usize,
    there: Vec<u32>,
    pages: Vec<Page<T>>,
    pub(crate) draws: Random,
}

impl<T: Copy + Default> Sampled<T> {
    pub(crate) fn new(capacity: u32, seed: u64) -> Sampled<T> {
        let (there, pages, draws) = (Vec::new(), Vec::new(), Random::new(seed));
        Sampled { capacity: capacity as usize, there, pages, draws }
    }

    pub(crate) fn reserve(&mut self, pages: u32) {
        if self.pages.len() < pages as usize {
            self.pages.resize(pages as usize, Page { at: ABSENT, of: T::default() });
        }
    }

    /// The record of a page that is in memory.
    #[inline]
    pub(crate) fn get_mut(&mut self, page: u32) -> Option<&mut T> {
        let page = &mut self.pages[page as usize];
        (page.at != ABSENT).then_some(&mut page.of)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.there.len() == self.capacity
    }

    /// The page with the lowest key among so many that are drawn, with repetitions; the first one drawn of equal ones. Memory has a page.
    pub(crate) fn lowest<K>(
        &mut self,
        sample: u32,
        mut key: impl FnMut(&T) -> K,
        is_below: impl Fn(&K, &K) -> bool,
    ) -> u32 {
        let mut lowest = None;
        for _ in 0..sample {
            let page = self.there[self.draws.below(self.there.len() as u64) as usize];
            let of = key(&self.pages[page as usize].of);
            if lowest.as_ref().is_none_or(|(_, before)| is_below(&of, before)) {
                lowest = Some((page, of));
            }
        }
        lowest.expect("a sample has a page").0
    }

    /// A page comes to memory that is not full.
    pub(crate) fn add(&mut self, page: u32, of: T) {
        self.pages[page as usize] = Page { at: self.there.len() as u32, of };
        self.there.push(page);
    }

    /// A page comes in place of another.
    pub(crate) fn replace(&mut self, victim: u32, page: u32, of: T) {
        let at = std::mem::replace(&mut self.pages[victim as usize].at, ABSENT);
        self.there[at as usize] = page;
        self.pages[page as usize] = Page { at, of };
    }

    pub(crate) fn remove(&mut self, page: u32) {
        let at = std::mem::replace(&mut self.pages[page as usize].at, ABSENT);
        if at != ABSENT {
            self.there.swap_remove(at as usize);
            if let Some(&moved) = self.there.get(at as usize) {
                self.pages[moved as usize].at = at;
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let there = self.pages.iter().filter(|page| page.at != ABSENT).count();
        let is_so = (0..).zip(&self.there).all(|(at, &page)| self.pages[page as usize].at == at);
        if !is_so || there != self.there.len() || there > self.capacity {
            return Err(format!("{there} pages are present, but {} are in the array", self.there.len()));
        }
        Ok(())
    }
}
