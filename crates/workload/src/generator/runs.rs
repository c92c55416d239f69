//! Runs: whole files of a tree, each read from its start to its end, some more often than others.
//!
//! ```text
//!   page 0 │ run 0 │ run 1 │ run 2 │ ...            a run has probability proportional to k^-alpha, k its scattered rank,
//!                      └──▶ its pages in order      and is finished before the next one is drawn
//! ```
//!
//! Compilers read headers and sources this way, a database a range of its rows, and `grep -r` a tree. Drawn from the
//! descriptions of kernel builds (<https://lkml.rescloud.iu.edu/2603.2/04304.html>) and of range scans in
//! <https://dl.acm.org/doi/10.1145/3731569.3764820>. What it leaves out: files of different lengths, which are one length here; and
//! what belongs together, such as a header and those it includes.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_alpha, check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use super::zipf::{PopularPages, ZipfTables};
use crate::AccessStream;

/// `pattern = "runs"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Total number of pages, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Accesses in total; the last run may be cut short. Required.
    pub ops: u64,
    /// Pages of a run, at least 1; the last of the range may have fewer. Default 4: the 16 KiB of a typical source file.
    #[serde(default = "four")]
    pub length: u64,
    /// Exponent of the popularity of runs; 0 (all alike) to 100. Default 0.99, as of `zipf`.
    #[serde(default = "super::zipf::default_alpha")]
    pub alpha: f64,
    /// Share of the accesses that write; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of popularity, runs and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

fn four() -> u64 {
    4
}

impl Runs {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("runs", "pages", 0, self.pages)?;
        if self.length == 0 {
            return Err(PatternError::new("runs", "length", "must be at least 1, got 0"));
        }
        check_alpha("runs", self.alpha)?;
        check_ratio("runs", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64, tables: &ZipfTables) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let generator = PopularRuns {
            runs: PopularPages::new(self.pages.div_ceil(self.length), self.alpha, seed, tables),
            pages: self.pages,
            length: self.length,
            next: 0,
            end: 0,
        };
        Box::new(Paged::new(generator, object, self.ops, Writes::new(self.write_ratio, seed)))
    }
}

struct PopularRuns {
    runs: PopularPages,
    pages: u64,
    length: u64,
    /// The rest of the current run.
    next: u64,
    end: u64,
}

impl PageGenerator for PopularRuns {
    fn next_page(&mut self) -> u64 {
        if self.next == self.end {
            self.next = self.runs.next_page() * self.length;
            self.end = self.next.saturating_add(self.length).min(self.pages);
        }
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: u64, length: u64, alpha: f64, ops: u64) -> Vec<u64> {
        let pattern = Runs { pages, ops, length, alpha, write_ratio: 0.0, seed: None };
        pattern.validate().unwrap();
        let mut out = Vec::new();
        pattern.stream(0, 5, &ZipfTables::default()).fill(&mut out, usize::MAX).unwrap();
        out.iter().map(|access| access.page()).collect()
    }

    #[test]
    fn each_run_is_read_whole_and_in_order_and_the_last_of_the_range_is_shorter() {
        let pages = pages(1003, 10, 0.0, 100_000);
        let mut at = 0;
        let mut short = 0;
        while at + 10 <= pages.len() {
            let start = pages[at];
            assert_eq!(start % 10, 0);
            let length = if start == 1000 { 3 } else { 10 };
            short += usize::from(start == 1000);
            assert!(pages[at..at + length].iter().copied().eq(start..start + length as u64));
            at += length;
        }
        assert!(short > 50, "one run in 101 is the short one: {short}");
    }

    #[test]
    fn the_most_popular_run_has_its_share() {
        let pages = pages(4000, 4, 1.0, 400_000);
        let mut runs: Vec<u64> = pages.iter().step_by(4).map(|page| page / 4).collect();
        runs.sort_unstable();
        let most = runs.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap() as f64;
        // The harmonic number of 1000 is 7.4855.
        let expected = runs.len() as f64 / 7.4855;
        assert!((most - expected).abs() < 4.0 * expected.sqrt(), "{most}, expected {expected}");
    }

    #[test]
    fn a_run_longer_than_the_range_is_the_range() {
        assert_eq!(pages(3, u64::MAX, 0.99, 7), [0, 1, 2, 0, 1, 2, 0]);
    }
}
