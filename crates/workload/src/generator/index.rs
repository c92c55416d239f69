//! Index: lookups in a search tree, from its root down to a leaf.
//!
//! ```text
//!   page 0      root                       a lookup reads one page a level; the leaf is Zipf, scattered,
//!   1 ..        │ inner pages │            and all above it follow from it
//!      .. end   │ leaves                                    │
//! ```
//!
//! The upper levels are few pages that every lookup reads, and the leaves are many pages that are read by popularity. So the hottest and the coldest
//! pages of a database are in one file. The pattern follows the key-value loads of YCSB (Zipf, 0.99) on a database with tree indexes, as run for
//! reclaim in <https://lkml.rescloud.iu.edu/2603.2/04304.html>. Not modelled: pages that split and merge, and the database's own cache.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_alpha, check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use super::zipf::{PopularPages, ZipfTables};
use crate::AccessStream;

/// Lookups in a tree of pages: `pattern = "index"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Pages of the complete tree, from page 0; 1 to 2^40. Required. Pages that no full level can use are left unused.
    pub pages: u64,
    /// Accesses in total, one a level of each lookup; the last lookup may be cut short. Required.
    pub ops: u64,
    /// Pages that an inner page leads to, at least 2. Default 256: entries of 16 bytes.
    #[serde(default = "entries")]
    pub fanout: u64,
    /// Exponent of the popularity of leaves; 0 (all alike) to 100. Default 0.99, as in YCSB.
    #[serde(default = "super::zipf::default_alpha")]
    pub alpha: f64,
    /// Share of the accesses that write, inner pages included; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of popularity, lookups and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

fn entries() -> u64 {
    256
}

impl Index {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("index", "pages", 0, self.pages)?;
        if self.fanout < 2 {
            return Err(PatternError::new(
                "index",
                "fanout",
                format!("must be at least 2, got {}", self.fanout),
            ));
        }
        check_alpha("index", self.alpha)?;
        check_ratio("index", "write_ratio", self.write_ratio)
    }

    /// Pages of each level, root first.
    pub fn levels(&self) -> Vec<u64> {
        // Maximum number of leaves that leaves enough pages for all levels above.
        let (mut fits, mut too_many) = (1, self.pages + 1);
        while too_many - fits > 1 {
            let leaves = fits + (too_many - fits) / 2;
            let all: u64 = levels_above(leaves, self.fanout).iter().sum();
            if all <= self.pages { fits = leaves } else { too_many = leaves }
        }
        levels_above(fits, self.fanout)
    }

    pub(super) fn stream(&self, object: u32, seed: u64, tables: &ZipfTables) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let sizes = self.levels();
        let mut start = 0;
        let mut levels = Vec::new();
        for (depth, size) in sizes.iter().enumerate() {
            let below = (sizes.len() - 1 - depth) as u32;
            levels.push(Level { start, leaves_a_page: self.fanout.saturating_pow(below) });
            start += size;
        }
        let leaves = sizes[sizes.len() - 1];
        let generator = Lookups {
            leaves: PopularPages::new(leaves, self.alpha, seed, tables),
            levels,
            leaf: 0,
            depth: 0,
        };
        Box::new(Paged::new(generator, object, self.ops, Writes::new(self.write_ratio, seed)))
    }
}

/// Pages of each level of a tree with this many leaves, root first.
fn levels_above(leaves: u64, fanout: u64) -> Vec<u64> {
    let mut levels = vec![leaves];
    while levels[levels.len() - 1] > 1 {
        levels.push(levels[levels.len() - 1].div_ceil(fanout));
    }
    levels.reverse();
    levels
}

struct Level {
    start: u64,
    /// Leaves below one of its pages.
    leaves_a_page: u64,
}

struct Lookups {
    leaves: PopularPages,
    levels: Vec<Level>,
    /// Target of the current lookup, and the next level.
    leaf: u64,
    depth: usize,
}

impl PageGenerator for Lookups {
    fn next_page(&mut self) -> u64 {
        if self.depth == 0 {
            self.leaf = self.leaves.next_page();
        }
        let Level { start, leaves_a_page } = self.levels[self.depth];
        self.depth = (self.depth + 1) % self.levels.len();
        start + self.leaf / leaves_a_page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(pages: u64, fanout: u64) -> Index {
        Index { pages, ops: 300_000, fanout, alpha: 0.0, write_ratio: 0.0, seed: None }
    }

    fn pages(index: &Index) -> Vec<u64> {
        index.validate().unwrap();
        let mut out = Vec::new();
        index.stream(0, 9, &ZipfTables::default()).fill(&mut out, usize::MAX).unwrap();
        out.iter().map(|access| access.page()).collect()
    }

    #[test]
    fn levels_use_the_pages_there_are() {
        assert_eq!(index(1, 2).levels(), [1]);
        assert_eq!(index(2, 2).levels(), [1], "a root above one leaf would lead nowhere");
        assert_eq!(index(3, 2).levels(), [1, 2]);
        assert_eq!(index(111, 10).levels(), [1, 10, 100]);
        assert_eq!(index(112, 10).levels(), [1, 10, 100]);
        assert_eq!(index(1 << 20, 256).levels().iter().sum::<u64>(), 1 << 20);
    }

    #[test]
    fn a_lookup_goes_from_the_root_through_the_parents_of_its_leaf() {
        for lookup in pages(&index(111, 10)).chunks(3) {
            let [root, inner, leaf] = *lookup else { panic!("three levels") };
            assert_eq!((root, inner), (0, 1 + (leaf - 11) / 10));
        }
    }

    #[test]
    fn each_level_gets_its_share_spread_over_its_pages() {
        let accesses = pages(&index(111, 10));
        let share = |page: u64| accesses.iter().filter(|&&other| other == page).count();
        assert_eq!(share(0), 100_000);
        assert!((9_500..10_500).contains(&share(7)), "{}", share(7));
        assert!((850..1_150).contains(&share(60)), "{}", share(60));
    }
}
