//! Sequential: one pass over the pages in ascending order, as a backup or a table scan reads.
//!
//! No page comes twice, so no policy can do anything for it: not a pattern to compare policies with by itself.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use crate::AccessStream;

/// One pass over the pages in order: `pattern = "sequential"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Pages passed over, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Pages from one access to the next; at least 1. Default 1: every page.
    #[serde(default = "one")]
    pub stride: u64,
    /// Share of the accesses that write; 0 to 1. Default 0: a scan reads.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of the choice of writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

fn one() -> u64 {
    1
}

impl Sequential {
    /// Accesses of the pass.
    pub fn ops(&self) -> u64 {
        self.pages.div_ceil(self.stride.max(1))
    }

    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("sequential", "pages", 0, self.pages)?;
        if self.stride == 0 {
            return Err(PatternError::new("sequential", "stride", "must be at least 1, got 0"));
        }
        check_ratio("sequential", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64) -> Box<dyn AccessStream> {
        let writes = Writes::new(self.write_ratio, self.seed.unwrap_or(seed));
        Box::new(Paged::new(Pass::new(self.stride), object, self.ops(), writes))
    }
}

/// Ascending pages from 0; the count of accesses ends the pass.
pub(super) struct Pass {
    next: u64,
    stride: u64,
}

impl Pass {
    pub(super) fn new(stride: u64) -> Pass {
        Pass { next: 0, stride }
    }
}

impl PageGenerator for Pass {
    fn next_page(&mut self) -> u64 {
        let page = self.next;
        self.next = page.saturating_add(self.stride);
        page
    }
}
