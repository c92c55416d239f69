//! Scattering of Zipf ranks over pages: a bijection without a table, for ranges too large to shuffle.
//!
//! A Feistel network permutes the numbers of an even count of bits. A result outside the range is permuted again until it falls inside (cycle
//! walking), which keeps the permutation a bijection of the range. The bits are at most two more than the range needs, so a number takes fewer than
//! four tries on average.

const ROUNDS: usize = 4;

/// A seeded bijection of `0..pages`.
pub(super) struct Scatter {
    pages: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Scatter {
    pub(super) fn new(pages: u64, seed: u64) -> Scatter {
        let bits = 64 - (pages.max(2) - 1).leading_zeros();
        let mut rng = crate::rng::SplitMix64::new(seed);
        Scatter { pages, half_bits: bits.div_ceil(2), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// The page of a rank; both are below `pages`.
    pub(super) fn page(&self, rank: u64) -> u64 {
        let mut page = self.permute(rank);
        while page >= self.pages {
            page = self.permute(page);
        }
        page
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 32)) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_hit_exactly_once() {
        for pages in [1u64, 2, 3, 100, 1024, 1025, 40_000] {
            let scatter = Scatter::new(pages, 77);
            let mut seen = vec![false; pages as usize];
            for rank in 0..pages {
                let page = scatter.page(rank) as usize;
                assert!(!seen[page]);
                seen[page] = true;
            }
        }
    }
}
