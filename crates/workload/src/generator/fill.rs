//! Fill: each page once in ascending order, written. What a program does to its memory before it starts to work.

use serde::Deserialize;

use super::PatternError;
use super::error::check_pages;
use super::paged::Paged;
use super::sequential::Pass;
use super::writes::Writes;
use crate::AccessStream;

/// Each page once, written: `pattern = "fill"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// Pages to write, from page 0; 1 to 2^40. Required.
    pub pages: u64,
}

impl Fill {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("fill", "pages", 0, self.pages)
    }

    pub(super) fn stream(&self, object: u32) -> Box<dyn AccessStream> {
        Box::new(Paged::new(Pass::new(1), object, self.pages, Writes::new(1.0, 0)))
    }
}
