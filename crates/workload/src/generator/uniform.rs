//! Uniform: every page with the same probability at every access.
//!
//! Past accesses tell nothing of future ones, so every policy without foresight has the same expected hit ratio: good
//! to measure a policy's cost, useless to compare policies' choices.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use crate::AccessStream;
use crate::rng::SplitMix64;

/// Pages at random, all equally likely: `pattern = "uniform"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// Pages to choose from, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Accesses in total. Required.
    pub ops: u64,
    /// Share of the accesses that write; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of pages and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

impl Uniform {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("uniform", "pages", 0, self.pages)?;
        check_ratio("uniform", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let generator = Draw { rng: SplitMix64::new(seed), pages: self.pages };
        Box::new(Paged::new(generator, object, self.ops, Writes::new(self.write_ratio, seed)))
    }
}

struct Draw {
    rng: SplitMix64,
    pages: u64,
}

impl PageGenerator for Draw {
    fn next_page(&mut self) -> u64 {
        self.rng.below(self.pages)
    }
}
