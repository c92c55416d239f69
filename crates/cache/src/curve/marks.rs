//! LRU at some sizes, exactly, in one pass: a single stack in order of use, with a mark where each memory ends.
//!
//! ```text
//!   newest ─ ─ ─ ─|─ ─ ─ ─ ─ ─ ─ ─|─ ─ ─ oldest that the largest memory holds
//!     segment 0   │   segment 1   │   segment 2
//!            mark of the     of the second
//!            smallest size   smallest
//! ```
//! *How.* A page stores its segment: the number of the smallest memory that holds it. A hit in segment `g` is one in memories `g` and larger. The
//! page moves to the top, so each of the `g` marks above moves by one page towards the top. The page that a mark leaves is one segment further down.
//! A hit near the top costs the same as in a plain LRU.
//!
//! Future accesses are known. So a page's entry is prefetched, and then those of its neighbours and the next place of a mark, before their turn.
//! Otherwise a fifth of the time would be waiting.

use prefetch_index::prefetch_index;

/// No page.
const NONE: u32 = u32::MAX;
/// Accesses by which a page's entry is prefetched.
const ENTRY_AHEAD: usize = 16;
/// Accesses by which the entries of its neighbours are prefetched.
const NEIGHBOURS_AHEAD: usize = 8;

#[derive(Clone, Copy)]
struct Page {
    newer: u32,
    older: u32,
    /// The number of its segment, or of sizes where no memory holds it.
    segment: u32,
}

/// LRU's stack with a mark at each of some sizes.
pub struct Marks {
    /// In rising order.
    sizes: Vec<u32>,
    /// By size: the last page that it holds; `NONE` as long as it is not full.
    marks: Vec<u32>,
    /// By page.
    pages: Vec<Page>,
    newest: u32,
    oldest: u32,
    len: u32,
    /// By segment: hits.
    hits: Vec<u64>,
}

impl Marks {
    /// An empty stack for these sizes, each one page at least, in rising order and no two the same.
    pub fn new(sizes: &[u32]) -> Marks {
        assert!(sizes.first().is_some_and(|&least| least > 0), "a memory has room for a page");
        assert!(sizes.is_sorted_by(|one, next| one < next), "sizes rise");
        let (marks, hits) = (vec![NONE; sizes.len()], vec![0; sizes.len() + 1]);
        let (pages, sizes) = (Vec::new(), sizes.to_vec());
        Marks { sizes, marks, pages, newest: NONE, oldest: NONE, len: 0, hits }
    }

    /// Pages are accessed in this order.
    pub fn run(&mut self, pages: &[u32]) {
        if let Some(&most) = pages.iter().max()
            && self.pages.len() <= most as usize
        {
            assert_ne!(most, NONE, "page numbers are dense");
            let absent = Page { newer: NONE, older: NONE, segment: self.sizes.len() as u32 };
            self.pages.resize(most as usize + 1, absent);
        }
        for (at, &page) in pages.iter().enumerate() {
            if let Some(&soon) = pages.get(at + ENTRY_AHEAD) {
                prefetch_index(&self.pages, soon as usize);
            }
            if let Some(&next) = pages.get(at + NEIGHBOURS_AHEAD) {
                let Page { newer, older, .. } = self.pages[next as usize];
                prefetch_index(&self.pages, newer as usize);
                prefetch_index(&self.pages, older as usize);
            }
            self.access(page);
        }
    }

    /// Misses at each size.
    pub fn misses(&self) -> Vec<u64> {
        let mut left = self.hits.iter().sum();
        let misses = self.hits[..self.sizes.len()].iter().map(|hits| {
            left -= hits;
            left
        });
        misses.collect()
    }

    #[inline]
    fn access(&mut self, page: u32) {
        let segment = self.pages[page as usize].segment;
        self.hits[segment as usize] += 1;
        if page == self.newest {
            return;
        }
        if (segment as usize) < self.sizes.len() {
            self.unlink(page, segment as usize);
        } else {
            self.enter();
        }
        self.put_on_top(page);
        // The marks above move towards the top, each by a page.
        for (at, mark) in self.marks[..segment as usize].iter_mut().enumerate() {
            if *mark != NONE {
                let left = &mut self.pages[*mark as usize];
                left.segment = at as u32 + 1;
                *mark = left.newer;
                prefetch_index(&self.pages, *mark as usize);
            } else if self.len == self.sizes[at] {
                *mark = self.oldest;
            }
        }
        if self.len > self.sizes[self.sizes.len() - 1] {
            self.drop_oldest();
        }
    }

    /// Takes a page out of the stack. A mark that it carries goes to the next newer page.
    fn unlink(&mut self, page: u32, segment: usize) {
        let Page { newer, older, .. } = self.pages[page as usize];
        if self.marks[segment] == page {
            self.marks[segment] = newer;
        }
        self.pages[newer as usize].older = older;
        match older {
            NONE => self.oldest = newer,
            older => self.pages[older as usize].newer = newer,
        }
    }

    fn enter(&mut self) {
        self.len += 1;
    }

    fn put_on_top(&mut self, page: u32) {
        self.pages[page as usize] = Page { newer: NONE, older: self.newest, segment: 0 };
        match self.newest {
            NONE => self.oldest = page,
            newest => self.pages[newest as usize].newer = page,
        }
        self.newest = page;
    }

    /// No memory holds the last page any more, and its segment says so already.
    fn drop_oldest(&mut self) {
        let page = self.oldest;
        self.oldest = self.pages[page as usize].newer;
        self.pages[self.oldest as usize].older = NONE;
        self.len -= 1;
    }

    /// Looks whether every page is in the segment where it stands, and says which is not.
    pub fn check(&self) -> Result<(), String> {
        let (mut at, mut depth) = (self.newest, 0);
        while at != NONE {
            depth += 1;
            let Page { older, segment, .. } = self.pages[at as usize];
            let should_be = self.sizes.partition_point(|&size| size < depth);
            if segment as usize != should_be {
                return Err(format!("page {at} at {depth} is in segment {segment} instead of {should_be}"));
            }
            if self.sizes[should_be] == depth && self.marks[should_be] != at {
                return Err(format!("page {at} at {depth} does not carry the mark of that size"));
            }
            at = older;
        }
        if depth != self.len {
            return Err(format!("{depth} pages are in the stack, but {} are counted", self.len));
        }
        Ok(())
    }
}
