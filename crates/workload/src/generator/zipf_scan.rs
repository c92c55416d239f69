//! Zipf with a periodic scan: a server with a popular set, and a backup that comes by.
//!
//! ```text
//!   0 ........ pages | pages ............................................. scan_end
//!   Zipf, scattered  | scan 1 ──▶| scan 2 ──▶| scan 3 ──▶ ... then from the left again
//! ```
//!
//! The scanned pages lie above the popular ones and are cold: each is read once a round. A policy is scan-resistant as
//! far as the popular pages survive.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_alpha, check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use super::zipf::{PopularPages, ZipfTables};
use crate::{Access, AccessStream};

/// Zipf accesses with regular scans: `pattern = "zipf_scan"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZipfScan {
    /// Popular pages, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Zipf accesses in total; those of the scans come on top. Required.
    pub ops: u64,
    /// Zipf exponent; 0 (uniform) to 100. Default 0.99, as in YCSB.
    #[serde(default = "super::zipf::default_alpha")]
    pub alpha: f64,
    /// Zipf accesses from one scan to the next; at least 1. Required. A scan also follows the last full stretch.
    pub scan_every: u64,
    /// Pages of one scan; at least 1. Required.
    pub scan_length: u64,
    /// Pages of the scanned range, which lies above the popular pages and which the scans go round in; at least
    /// `scan_length`. Default: as many as all scans together, so that no page is scanned twice.
    pub scan_pages: Option<u64>,
    /// Share of the accesses that write, scans included; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of pages and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

impl ZipfScan {
    fn scanned(&self) -> u64 {
        (self.ops / self.scan_every.max(1)).saturating_mul(self.scan_length)
    }

    fn scan_pages(&self) -> u64 {
        self.scan_pages.unwrap_or_else(|| self.scanned().max(1))
    }

    /// Accesses in total, those of the scans included.
    pub fn ops_with_scans(&self) -> u64 {
        self.ops.saturating_add(self.scanned())
    }

    /// One more than the highest page that can be accessed.
    pub fn pages_end(&self) -> u64 {
        self.pages.saturating_add(self.scan_pages())
    }

    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        let error = |key, reason: String| Err(PatternError::new("zipf_scan", key, reason));
        check_pages("zipf_scan", "pages", 0, self.pages)?;
        check_alpha("zipf_scan", self.alpha)?;
        if self.scan_every == 0 {
            return error("scan_every", "must be at least 1, got 0".to_string());
        }
        if self.scan_length == 0 {
            return error("scan_length", "must be at least 1, got 0".to_string());
        }
        if let Some(scan_pages) = self.scan_pages.filter(|&scan_pages| scan_pages < self.scan_length) {
            let reason = format!("must be at least `scan_length` ({}), got {scan_pages}", self.scan_length);
            return error("scan_pages", reason);
        }
        check_pages("zipf_scan", "scan_pages", self.pages, self.scan_pages())?;
        check_ratio("zipf_scan", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64, tables: &ZipfTables) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let generator = PopularPagesAndScan {
            popular: PopularPages::new(self.pages, self.alpha, seed, tables),
            pages: self.pages,
            scan_every: self.scan_every,
            scan_length: self.scan_length,
            scan_pages: self.scan_pages(),
            popular_left: self.scan_every,
            scan_left: self.scan_length,
            scan_next: 0,
        };
        Box::new(Paged::new(generator, object, self.ops_with_scans(), Writes::new(self.write_ratio, seed)))
    }
}

struct PopularPagesAndScan {
    popular: PopularPages,
    pages: u64,
    scan_every: u64,
    scan_length: u64,
    scan_pages: u64,
    /// What is left of the present stretch: Zipf accesses before the scan, then pages of the scan.
    popular_left: u64,
    scan_left: u64,
    /// Next page of the scan, counted from the start of the scanned range.
    scan_next: u64,
}

impl PopularPagesAndScan {
    fn next_scanned(&mut self) -> u64 {
        let page = self.pages + self.scan_next;
        self.scan_next = (self.scan_next + 1) % self.scan_pages;
        self.scan_left -= 1;
        if self.scan_left == 0 {
            self.popular_left = self.scan_every;
            self.scan_left = self.scan_length;
        }
        page
    }
}

impl PageGenerator for PopularPagesAndScan {
    fn next_page(&mut self) -> u64 {
        if self.popular_left == 0 {
            return self.next_scanned();
        }
        self.popular_left -= 1;
        self.popular.next_page()
    }

    fn append(&mut self, object: u32, count: usize, out: &mut Vec<Access>) {
        let mut left = count;
        while left > 0 {
            if self.popular_left == 0 {
                let page = self.next_scanned();
                out.push(Access::new(object, page, false));
                left -= 1;
            } else {
                let batch = usize::try_from(self.popular_left).unwrap_or(usize::MAX).min(left);
                self.popular.append(object, batch, out);
                self.popular_left -= batch as u64;
                left -= batch;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_go_round_in_their_range() {
        let pattern = ZipfScan {
            pages: 10,
            ops: 12,
            alpha: 0.9,
            scan_every: 4,
            scan_length: 3,
            scan_pages: Some(5),
            write_ratio: 0.0,
            seed: None,
        };
        pattern.validate().unwrap();
        let mut out = Vec::new();
        pattern.stream(0, 1, &ZipfTables::default()).fill(&mut out, usize::MAX).unwrap();
        let scanned: Vec<u64> = out.iter().map(|access| access.page()).filter(|&page| page >= 10).collect();
        assert_eq!(scanned, [10, 11, 12, 13, 14, 10, 11, 12, 13]);
        assert_eq!(out.len() as u64, pattern.ops_with_scans());
        assert!(out[4].page() == 10 && out[3].page() < 10);
    }
}
