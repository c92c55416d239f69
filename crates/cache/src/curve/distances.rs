//! LRU at all sizes, exactly, in one pass: how many other pages were used since a page's last use.
//!
//! ```text
//!   time     0 1 2 3 4 5 6 7 ...                1: some page's last use was then
//!   live     0 1 0 1 | 1 0 0 1 | . . . .        a bitmap, in blocks of 512
//!   blocks      2    |    2    |    0           sums over blocks, as a Fenwick tree
//! ```
//! *How.* The distance of an access is the number of live times since its page's last use: sums over the blocks behind, and bits within one.
//! Then the old time is dead, and the present one live. When all times are used up, the live ones are renumbered from 0 on.
//!
//! *Why blocks.* A tree over single times is as deep, but does not fit into a processor's cache: that takes twice the time.
//!
//! Source: the sums: P. M. Fenwick, *A New Data Structure for Cumulative Frequency Tables*, Software: Practice and Experience 24(3), 1994,
//! <https://doi.org/10.1002/spe.4380240306>; distances by trees: B. T. Bennett and V. J. Kruskal, *LRU Stack Processing*, IBM Journal of
//! Research and Development 19(4), 1975, <https://doi.org/10.1147/rd.194.0353>.

/// No time: the page was not used yet.
const NEVER: u32 = u32::MAX;
/// Times in a block.
const BLOCK: usize = 512;
/// Words of a block.
const WORDS: usize = BLOCK / 64;
/// Blocks at first.
const BLOCKS_MIN: usize = 128;

/// Distances between uses.
pub struct Distances {
    /// By page: the time of its last use.
    last: Vec<u32>,
    /// By time: the page that was used then.
    pages: Vec<u32>,
    live: Vec<u64>,
    /// The tree over blocks, from 1 on; the block of the present is added when it is over.
    sums: Vec<u32>,
    now: usize,
    /// Pages used so far.
    len: u32,
    accesses: u64,
    /// By distance: accesses.
    counts: Vec<u64>,
}

impl Default for Distances {
    fn default() -> Distances {
        Distances {
            last: Vec::new(),
            pages: vec![0; BLOCKS_MIN * BLOCK],
            live: vec![0; BLOCKS_MIN * WORDS],
            sums: vec![0; BLOCKS_MIN + 1],
            now: 0,
            len: 0,
            accesses: 0,
            counts: Vec::new(),
        }
    }
}

impl Distances {
    /// Pages are accessed in this order.
    pub fn run(&mut self, pages: &[u32]) {
        if let Some(&most) = pages.iter().max()
            && self.last.len() <= most as usize
        {
            assert_ne!(most, NEVER, "page numbers are dense");
            self.last.resize(most as usize + 1, NEVER);
        }
        self.accesses += pages.len() as u64;
        pages.iter().for_each(|&page| self.access(page));
    }

    /// Returns the misses with a capacity of one page, of two, and so on, up to the number of pages.
    pub fn misses(&self) -> Vec<u64> {
        let mut left = self.accesses;
        let misses = self.counts.iter().map(|count| {
            left -= count;
            left
        });
        misses.collect()
    }

    #[inline]
    fn access(&mut self, page: u32) {
        if self.now == self.pages.len() {
            self.renumber();
        }
        let now = self.now;
        let then = std::mem::replace(&mut self.last[page as usize], now as u32);
        if then == NEVER {
            self.len += 1;
            self.counts.push(0);
        } else {
            let distance = self.live_after(then as usize);
            self.counts[distance as usize] += 1;
            self.live[then as usize / 64] &= !(1 << (then % 64));
            if then as usize / BLOCK < now / BLOCK {
                self.add(then as usize / BLOCK, u32::MAX); // one less
            }
        }
        self.pages[now] = page;
        self.live[now / 64] |= 1 << (now % 64);
        self.now += 1;
        if self.now.is_multiple_of(BLOCK) {
            self.close(now / BLOCK);
        }
    }

    /// Live times after this one, which is live.
    fn live_after(&self, then: usize) -> u32 {
        let block = then / BLOCK;
        let word = then / 64;
        let up_to_then: u64 = self.live[word] & (u64::MAX >> (63 - then % 64));
        let before = &self.live[block * WORDS..word];
        let within = up_to_then.count_ones() + before.iter().map(|word| word.count_ones()).sum::<u32>();
        let mut sum = within;
        let mut at = block;
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        self.len - sum
    }

    /// Adds to the sum of a block, and wraps where it is to be less.
    fn add(&mut self, block: usize, what: u32) {
        let mut at = block + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(what);
            at += at & at.wrapping_neg();
        }
    }

    /// The block of the present is over.
    fn close(&mut self, block: usize) {
        let live = self.live[block * WORDS..][..WORDS].iter().map(|word| word.count_ones()).sum();
        self.add(block, live);
    }

    /// All times are used up: the live ones become 0, 1, 2 and so on, and there are four times as many as those at least.
    fn renumber(&mut self) {
        let mut next = 0;
        for time in 0..self.pages.len() {
            if self.live[time / 64] >> (time % 64) & 1 == 1 {
                let page = self.pages[time];
                self.pages[next] = page;
                self.last[page as usize] = next as u32;
                next += 1;
            }
        }
        let blocks = (4 * next).div_ceil(BLOCK).max(self.pages.len() / BLOCK);
        self.pages.resize(blocks * BLOCK, 0);
        self.live.clear();
        self.live.resize(blocks * WORDS, 0);
        for time in 0..next {
            self.live[time / 64] |= 1 << (time % 64);
        }
        self.sums.clear();
        self.sums.resize(blocks + 1, 0);
        for block in 0..next / BLOCK {
            self.close(block);
        }
        self.now = next;
    }
}
