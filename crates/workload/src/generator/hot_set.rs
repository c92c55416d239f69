//! Hot set: a fraction of the pages gets a fraction of the accesses, and the hot range may move.
//!
//! ```text
//!   page 0 ........ |#### hot ####| .................... pages - 1
//!                    every `move_every` accesses ──▶ on by its own length, round the end
//! ```
//!
//! The hot pages are neighbours, as a hot index or arena is; what scatters them is Zipf. A hot set that moves is the
//! plainest test of how fast a policy forgets.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use crate::AccessStream;
use crate::rng::SplitMix64;

/// A hot set within a larger range: `pattern = "hot_set"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotSet {
    /// Total number of pages, hot and cold, from page 0; 1 to 2^40. Required.
    pub pages: u64,
    /// Accesses in total. Required.
    pub ops: u64,
    /// Share of the pages that is hot; 0 to 1, rounded to at least one page. Default 0.2, with the next key the
    /// 80-20 rule.
    #[serde(default = "fifth")]
    pub hot_pages_fraction: f64,
    /// Share of the accesses that go to hot pages; 0 to 1. Default 0.8.
    #[serde(default = "four_fifths")]
    pub hot_access_fraction: f64,
    /// Accesses after which the hot range moves on by its own length. Default 0: it never moves.
    #[serde(default)]
    pub move_every: u64,
    /// Share of the accesses that write; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of pages and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

fn fifth() -> f64 {
    0.2
}

fn four_fifths() -> f64 {
    0.8
}

impl HotSet {
    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        check_pages("hot_set", "pages", 0, self.pages)?;
        check_ratio("hot_set", "hot_pages_fraction", self.hot_pages_fraction)?;
        check_ratio("hot_set", "hot_access_fraction", self.hot_access_fraction)?;
        check_ratio("hot_set", "write_ratio", self.write_ratio)
    }

    /// Returns how many pages are hot at any moment.
    pub fn hot_pages(&self) -> u64 {
        (libm::round(self.pages as f64 * self.hot_pages_fraction) as u64).clamp(1, self.pages)
    }

    pub(super) fn stream(&self, object: u32, seed: u64) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let generator = MovingHotRange {
            rng: SplitMix64::new(seed),
            pages: self.pages,
            hot_pages: self.hot_pages(),
            hot_access_fraction: self.hot_access_fraction,
            move_every: self.move_every,
            until_move: self.move_every,
            hot_start: 0,
        };
        Box::new(Paged::new(generator, object, self.ops, Writes::new(self.write_ratio, seed)))
    }
}

struct MovingHotRange {
    rng: SplitMix64,
    pages: u64,
    hot_pages: u64,
    hot_access_fraction: f64,
    move_every: u64,
    until_move: u64,
    hot_start: u64,
}

impl PageGenerator for MovingHotRange {
    fn next_page(&mut self) -> u64 {
        if self.move_every > 0 {
            if self.until_move == 0 {
                self.hot_start = (self.hot_start + self.hot_pages) % self.pages;
                self.until_move = self.move_every;
            }
            self.until_move -= 1;
        }
        let has_use = self.rng.unit() < self.hot_access_fraction;
        let cold_pages = self.pages - self.hot_pages;
        let from_hot_start = if has_use || cold_pages == 0 {
            self.rng.below(self.hot_pages)
        } else {
            self.hot_pages + self.rng.below(cold_pages)
        };
        (self.hot_start + from_hot_start) % self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pattern: &HotSet) -> Vec<u64> {
        let mut out = Vec::new();
        pattern.stream(0, 1).fill(&mut out, usize::MAX).unwrap();
        out.iter().map(|access| access.page()).collect()
    }

    fn pattern(move_every: u64) -> HotSet {
        HotSet {
            pages: 1000,
            ops: 100_000,
            hot_pages_fraction: 0.1,
            hot_access_fraction: 0.9,
            move_every,
            write_ratio: 0.0,
            seed: None,
        }
    }

    #[test]
    fn hot_pages_get_their_share() {
        let hot = pages(&pattern(0)).iter().filter(|&&page| page < 100).count();
        assert!((89_000..91_000).contains(&hot), "{hot}");
    }

    #[test]
    fn the_hot_range_moves_on_by_its_own_length() {
        let all = pages(&pattern(10_000));
        let in_third = all[20_000..30_000].iter().filter(|&&page| (200..300).contains(&page)).count();
        assert!((8_800..9_200).contains(&in_third), "{in_third}");
    }
}
