//! Zipf pages: the sampler of ranks and the scattering of ranks over pages that suit the number of pages.

use std::sync::Arc;

use super::TABLE_PAGES_MAX;
use super::rejection::RejectionInversion;
use super::scatter::Scatter;
use super::table::{ZipfTable, ZipfTables};
use crate::Access;
use crate::generator::paged::PageGenerator;
use crate::rng::SplitMix64;

/// How many samples are worked on together. Their table look-ups don't depend on each other, so their cache misses
/// overlap; the ranks of a batch fit the first-level cache many times over.
const BATCH: usize = 128;

/// Pages by popularity, popularity scattered over the range.
pub(in crate::generator) struct PopularPages {
    rng: SplitMix64,
    ranks: Ranks,
}

enum Ranks {
    /// The page of each rank, parallel to the sampler.
    Table { table: Arc<ZipfTable>, page_of_rank: Vec<u32> },
    /// No memory at all.
    Computed { sampler: RejectionInversion, scatter: Scatter },
}

impl PopularPages {
    /// The parameters are checked by the patterns that use this.
    pub(in crate::generator) fn new(pages: u64, alpha: f64, seed: u64, tables: &ZipfTables) -> PopularPages {
        let mut rng = SplitMix64::new(seed);
        let ranks = if pages <= TABLE_PAGES_MAX {
            let mut page_of_rank: Vec<u32> = (0..pages as u32).collect();
            rng.shuffle(&mut page_of_rank);
            Ranks::Table { table: tables.get(pages as u32, alpha), page_of_rank }
        } else {
            let scatter = Scatter::new(pages, rng.next_u64());
            Ranks::Computed { sampler: RejectionInversion::new(pages, alpha), scatter }
        };
        PopularPages { rng, ranks }
    }
}

impl PageGenerator for PopularPages {
    fn next_page(&mut self) -> u64 {
        match &self.ranks {
            Ranks::Table { table, page_of_rank } => {
                u64::from(page_of_rank[table.rank(self.rng.mantissa()) as usize])
            }
            Ranks::Computed { sampler, scatter } => scatter.page(sampler.rank(&mut self.rng)),
        }
    }

    fn append(&mut self, object: u32, count: usize, out: &mut Vec<Access>) {
        let Ranks::Table { table, page_of_rank } = &self.ranks else {
            out.extend((0..count).map(|_| Access::new(object, self.next_page(), false)));
            return;
        };
        let mut mantissas = [0u64; BATCH];
        let mut ranks = [0u32; BATCH];
        out.reserve(count);
        let mut left = count;
        while left > 0 {
            let batch = left.min(BATCH);
            mantissas[..batch].fill_with(|| self.rng.mantissa());
            table.ranks(&mantissas[..batch], &mut ranks[..batch]);
            let page = |&rank: &u32| u64::from(page_of_rank[rank as usize]);
            out.extend(ranks[..batch].iter().map(|rank| Access::new(object, page(rank), false)));
            left -= batch;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_table_limit_the_most_popular_page_has_its_share() {
        let pages = TABLE_PAGES_MAX + 1;
        let mut popular = PopularPages::new(pages, 1.2, 9, &ZipfTables::default());
        let mut out = Vec::new();
        popular.append(0, 100_000, &mut out);
        assert!(out.iter().all(|access| access.page() < pages));
        let mut sorted: Vec<u64> = out.iter().map(|access| access.page()).collect();
        sorted.sort_unstable();
        let longest_run = sorted.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap();
        // 1 / zeta-like sum: sum of k^-1.2 up to 2^24 is about 5.41, so the first rank has some 18.5 %.
        assert!((17_800..19_200).contains(&longest_run), "{longest_run}");
    }
}
