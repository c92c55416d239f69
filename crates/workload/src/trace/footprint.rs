//! The footprint of a trace: the sizes of its objects, and how many distinct pages it touches.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::Access;

/// The objects and distinct pages that a trace touches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footprint {
    /// The objects, by number.
    pub objects: Vec<ObjectFootprint>,
    /// Accesses of the trace.
    pub accesses: u64,
}

/// The pages of one object that a trace touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectFootprint {
    /// One more than the highest page.
    pub pages: u64,
    /// Distinct pages.
    pub distinct_pages: u64,
    /// Accesses that write.
    pub writes: u64,
}

impl Footprint {
    /// Distinct pages over all objects.
    pub fn distinct_pages(&self) -> u64 {
        self.objects.iter().map(|object| object.distinct_pages).sum()
    }

    /// Accesses that write, over all objects.
    pub fn writes(&self) -> u64 {
        self.objects.iter().map(|object| object.writes).sum()
    }

    /// Takes accesses in. `seen` is what was taken in before.
    pub(super) fn count(&mut self, accesses: &[Access], seen: &mut SeenPages) {
        for run in accesses.chunk_by(|one, next| one.object() == next.object()) {
            let object = run[0].object();
            let at = object as usize;
            if self.objects.len() <= at {
                self.objects.resize(at + 1, ObjectFootprint::default());
            }
            let of = &mut self.objects[at];
            of.pages = run.iter().fold(of.pages, |pages, access| pages.max(access.page() + 1));
            of.writes += run.iter().map(|access| u64::from(access.is_write())).sum::<u64>();
            of.distinct_pages += seen.count_first(object, run.iter().map(|access| access.page()));
        }
        self.accesses += accesses.len() as u64;
    }
}

/// Pages that share a piece of the bitmap.
const PIECE_PAGES: u64 = 4096;
const PIECE_WORDS: usize = PIECE_PAGES as usize / 64;
const RECENT: usize = 1024;

/// Which pages were touched. Pages that a reader has numbered appear in the order of their numbers, so that a count says it. Others
/// take a bit each, in pieces that appear when something in them is touched: traces name pages anywhere in a disk of terabytes. A
/// piece is found without hashing as long as no other of the recent ones has its place.
pub(super) struct SeenPages {
    /// By object: all pages below it were touched.
    in_order: Vec<u64>,
    pieces: Vec<[u64; PIECE_WORDS]>,
    /// Where the piece of an object and a page number without its low bits is.
    places: HashMap<u64, usize, FixedState>,
    recent: Box<[(u64, usize); RECENT]>,
}

impl SeenPages {
    pub(super) fn new() -> SeenPages {
        SeenPages {
            in_order: Vec::new(),
            pieces: Vec::new(),
            places: HashMap::with_hasher(FixedState::default()),
            // No piece is called this: object and page number take 51 bits together.
            recent: Box::new([(u64::MAX, 0); RECENT]),
        }
    }

    /// How many of these pages of an object were not touched before, in their order; now they are.
    fn count_first(&mut self, object: u32, mut pages: impl Iterator<Item = u64>) -> u64 {
        let at = object as usize;
        if self.in_order.len() <= at {
            self.in_order.resize(at + 1, 0);
        }
        let (before, mut in_order) = (self.in_order[at], self.in_order[at]);
        // As soon as one page is out of order, no other is taken to be in order: its bit may be set.
        let may_go_on = self.pieces.is_empty();
        let out_of_order = pages.find(|&page| {
            let is_next = page == in_order && may_go_on;
            in_order += u64::from(is_next);
            page >= in_order
        });
        self.in_order[at] = in_order;
        let rest = out_of_order.into_iter().chain(pages.filter(|&page| page >= in_order));
        (in_order - before) + rest.map(|page| u64::from(self.is_first_bit(object, page))).sum::<u64>()
    }

    #[inline]
    fn is_first_bit(&mut self, object: u32, page: u64) -> bool {
        let name = (u64::from(object) << 28) | (page / PIECE_PAGES);
        let slot = (name ^ (name >> 28)) as usize % RECENT;
        let (known, mut place) = self.recent[slot];
        if known != name {
            place = self.find(name);
            self.recent[slot] = (name, place);
        }
        let word = &mut self.pieces[place][(page % PIECE_PAGES / 64) as usize];
        let bit = 1 << (page % 64);
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    #[cold]
    fn find(&mut self, name: u64) -> usize {
        *self.places.entry(name).or_insert_with(|| {
            self.pieces.push([0; PIECE_WORDS]);
            self.pieces.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The first pages in order, as readers number them; then some of them again, and any.
        #[test]
        fn the_footprint_is_that_of_a_set_of_pages(
            numbered in 0..300u64,
            accesses in proptest::collection::vec((0..3u32, prop_oneof![0..9000u64, 0..Access::PAGES_MAX], any::<bool>()), 0..500)
        ) {
            let in_order = (0..numbered).flat_map(|page| [(1, page, false), (0, page / 2, true)]);
            let accesses: Vec<Access> =
                in_order.chain(accesses).map(|(object, page, write)| Access::new(object, page, write)).collect();
            let (mut footprint, mut seen) = (Footprint::default(), SeenPages::new());
            accesses.chunks(64).for_each(|chunk| footprint.count(chunk, &mut seen));
            let set: BTreeSet<(u32, u64)> =
                accesses.iter().map(|access| (access.object(), access.page())).collect();
            prop_assert_eq!(footprint.distinct_pages(), set.len() as u64);
            prop_assert_eq!(footprint.accesses, accesses.len() as u64);
            prop_assert_eq!(footprint.writes(), accesses.iter().filter(|access| access.is_write()).count() as u64);
            for (object, of) in (0..).zip(&footprint.objects) {
                let pages: Vec<u64> = set.iter().filter(|page| page.0 == object).map(|page| page.1).collect();
                prop_assert_eq!(of.distinct_pages, pages.len() as u64);
                prop_assert_eq!(of.pages, pages.last().map_or(0, |last| last + 1));
            }
        }
    }
}
