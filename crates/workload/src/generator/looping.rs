//! Looping: the pages in ascending order, round and round.
//!
//! The worst case of LRU as soon as the loop is a page larger than memory (every access misses), and the best case of
//! MRU. Real loops are rarely this strict; use it to see a policy's extreme, not its everyday.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use crate::AccessStream;

/// `pattern = "looping"` (or `"loop"`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looping {
    /// Pages in the loop, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Accesses in total; the last round may be cut short. Required.
    pub ops: u64,
    /// Share of the accesses that write; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of the choice of writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

impl Looping {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("looping", "pages", 0, self.pages)?;
        check_ratio("looping", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64) -> Box<dyn AccessStream> {
        let writes = Writes::new(self.write_ratio, self.seed.unwrap_or(seed));
        Box::new(Paged::new(Round { next: 0, pages: self.pages }, object, self.ops, writes))
    }
}

struct Round {
    next: u64,
    pages: u64,
}

impl PageGenerator for Round {
    fn next_page(&mut self) -> u64 {
        let page = self.next;
        self.next = if page + 1 == self.pages { 0 } else { page + 1 };
        page
    }
}
