//! Zipf: the page of rank k comes with probability proportional to k^-alpha; ranks are scattered over the pages.
//!
//! ```text
//!   unit() ──▶ rank ──▶ page
//!          │        └── up to 2^24 pages a shuffled table, above it a bijection computed on the fly
//!          └── up to 2^24 pages the inverse of the summed-up distribution (exact, 16 to 24 bytes a page),
//!              above it rejection-inversion (exact distribution, constant memory, another sequence)
//! ```
//!
//! Up to [`TABLE_PAGES_MAX`] pages the sequence is the ground truth's, bit for bit. It uses sums of `1 / k^alpha` in double precision in order of
//! rank, and the first sum above `unit() * total`. The rank is looked up in a permutation that the same generator makes before the samples. `pow` is
//! `libm`'s, so the sums are the same on every machine. It may differ from the C library's in the last bit. That would move a sample only if it fell
//! between the two sums. In the published sequences none does: the test allows no difference at all.
//!
//! When not to use it: popularity is fixed for the whole run, so frequency counts look better here than they are in the field. Add a `phase_shift` or
//! a moving `hot_set`.

mod popular; // from ranks to pages, with the sampler that suits the size
mod rejection; // rank by rejection-inversion
mod scatter; // a bijection of pages without a table
mod table; // rank by looking up the summed distribution

use serde::Deserialize;

use super::PatternError;
use super::error::{check_alpha, check_pages, check_ratio};
use super::paged::Paged;
use super::writes::Writes;
use crate::AccessStream;

pub(super) use popular::PopularPages;
pub use rejection::RejectionInversion;
pub use table::{ZipfTable, ZipfTables};

/// Largest number of pages sampled from a table; above it, rejection-inversion. There the tables take 320 MiB.
pub(super) const TABLE_PAGES_MAX: u64 = 1 << 24;

/// Pages at random, by Zipf's law: `pattern = "zipf"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zipf {
    /// Pages to choose from, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Accesses in total. Required.
    pub ops: u64,
    /// Exponent; 0 (uniform) to 100. Default 0.99, as in YCSB.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Share of the accesses that write; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of popularity, pages and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

pub(super) fn default_alpha() -> f64 {
    0.99
}

impl Zipf {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("zipf", "pages", 0, self.pages)?;
        check_alpha("zipf", self.alpha)?;
        check_ratio("zipf", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64, tables: &ZipfTables) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let popular = PopularPages::new(self.pages, self.alpha, seed, tables);
        Box::new(Paged::new(popular, object, self.ops, Writes::new(self.write_ratio, seed)))
    }
}
