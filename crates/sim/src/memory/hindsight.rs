//! What placement could have been at best: which pages were accessed when, and the placement that knew all of it beforehand.
//!
//! ```text
//!   an access ─▶ of a page that is followed? ─▶ counted in its window: 32 of them at most, which grow as the run does
//!   at the end ─▶ for every page: fast or slow in each window, a price for being fast in it, and a price for each promotion
//!              ─▶ prices go up where too many pages are fast or promoted, and down where there is room
//! ```
//! Whatever the prices, the best placement at these prices is worth at least what the best one with so much fast memory and so many promotions
//! is worth (Lagrangian relaxation). So each round gives a bound, and the least of them is told. Each page has a choice of its own, a walk
//! along its windows. A page begins where it likes, and leaves fast memory for nothing.
//!
//! Of more pages than are worth following, one in so many is, by a hash; capacity and promotions are then as much smaller (Waldspurger et al.,
//! Efficient MRC Construction with SHARDS, FAST 2015). Within a window nothing moves, so a run whose pages move back and forth faster than
//! that may come a little above its bound.

use pageout_engine::Nanos;

/// Windows at most.
const WINDOWS: usize = 32;
/// The first ones are so long.
const SPAN: u64 = 1_000_000;
/// Pages that are followed, at most.
const PAGES: usize = 1 << 14;
/// Places for them, a power of two.
const SLOTS: usize = PAGES * 2;
/// Rounds of prices.
const ROUNDS: u32 = 48;

/// What a page saw in a window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Seen {
    accesses: u32,
    /// It was found in fast memory after it had been found in slow memory.
    promoted: bool,
}

#[derive(Clone, Debug)]
struct Page {
    key: u64,
    seen: Vec<Seen>,
    was_slow: bool,
}

/// Accesses page by page and window by window.
#[derive(Clone, Debug)]
pub(crate) struct Hindsight {
    pages: Vec<Page>,
    /// Numbers of pages by the hash of their keys, plus one.
    slots: Vec<u16>,
    /// One page in two to the power of this is followed.
    shift: u32,
    span: u64,
    /// The window under way.
    window: usize,
}

/// Accesses by address and time, for a picture.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HeatMap {
    /// How long a window is.
    pub span: Nanos,
    /// Pages of a row, as far as they were accessed at all.
    pub row_pages: u64,
    /// Accesses of each row, lowest addresses first, by window.
    pub accesses: Vec<Vec<u64>>,
    /// Pages of each row that were promoted, by window.
    pub promoted: Vec<Vec<u64>>,
}

fn hash(key: u64) -> u64 {
    let mixed = (key ^ (key >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl Hindsight {
    pub(crate) fn new() -> Hindsight {
        Hindsight { pages: Vec::new(), slots: vec![0; SLOTS], shift: 0, span: SPAN, window: 0 }
    }

    fn is_followed(&self, hash: u64) -> bool {
        self.shift == 0 || hash >> (u64::BITS - self.shift) == 0
    }

    /// A page was accessed, in fast memory or not.
    pub(crate) fn note(&mut self, key: u64, at: Nanos, is_fast: bool) {
        let hash = hash(key);
        if !self.is_followed(hash) {
            return;
        }
        let window = (at.0 / self.span) as usize;
        if window > self.window {
            self.turn(at);
        }
        let number = self.number(key, hash);
        let (window, page) = (self.window, &mut self.pages[number]);
        page.seen.resize(page.seen.len().max(window + 1), Seen::default());
        let seen = &mut page.seen[window];
        seen.accesses = seen.accesses.saturating_add(1);
        seen.promoted |= is_fast && page.was_slow;
        page.was_slow = !is_fast;
        if self.pages.len() > PAGES {
            self.follow_fewer();
        }
    }

    fn turn(&mut self, at: Nanos) {
        while (at.0 / self.span) as usize >= WINDOWS {
            self.span *= 2;
            for page in &mut self.pages {
                let merge = |pair: &[Seen]| Seen {
                    accesses: pair.iter().fold(0, |sum, seen| sum.saturating_add(seen.accesses)),
                    promoted: pair.iter().any(|seen| seen.promoted),
                };
                page.seen = page.seen.chunks(2).map(merge).collect();
            }
        }
        self.window = (at.0 / self.span) as usize;
    }

    fn number(&mut self, key: u64, hash: u64) -> usize {
        let mut at = hash as usize % SLOTS;
        loop {
            match self.slots[at] {
                0 => break,
                number if self.pages[usize::from(number) - 1].key == key => return usize::from(number) - 1,
                _ => at = (at + 1) % SLOTS,
            }
        }
        self.pages.push(Page { key, seen: Vec::new(), was_slow: false });
        self.slots[at] = self.pages.len() as u16;
        self.pages.len() - 1
    }

    fn follow_fewer(&mut self) {
        self.shift += 1;
        let pages = std::mem::take(&mut self.pages);
        self.slots.fill(0);
        for page in pages {
            let hash = hash(page.key);
            if self.is_followed(hash) {
                let number = self.number(page.key, hash);
                self.pages[number] = page;
            }
        }
    }

    /// Which part of all accesses the best placement would have served from so many pages of fast memory, with so many promotions.
    pub(crate) fn best_share(&self, capacity: u64, promotions: u64) -> Option<f64> {
        let all: f64 =
            self.pages.iter().flat_map(|page| &page.seen).map(|seen| f64::from(seen.accesses)).sum();
        if all == 0.0 {
            return None;
        }
        let (capacity, promotions) =
            ((capacity >> self.shift) as f64, (promotions as f64) / f64::from(1u32 << self.shift.min(31)));
        let mut prices = Prices { fast: self.thresholds(capacity), promotion: 0.0 };
        let mean = all / self.pages.len() as f64;
        let mut best = f64::INFINITY;
        for round in 1..=ROUNDS {
            let found = self.placed(&prices);
            let bound =
                found.worth + capacity * prices.fast.iter().sum::<f64>() + promotions * prices.promotion;
            best = best.min(bound);
            let step = 1.0 / f64::from(round).sqrt();
            for (price, &fast) in prices.fast.iter_mut().zip(&found.fast) {
                let unit = price.max(mean / (4.0 * WINDOWS as f64));
                *price = (*price + step * unit * (fast - capacity) / capacity.max(1.0)).max(0.0);
            }
            let excess = (found.promotions - promotions) / found.promotions.max(promotions).max(1.0);
            let unit = prices.promotion.max(mean / 16.0);
            prices.promotion = (prices.promotion + step * unit * excess).max(0.0);
        }
        Some((best / all).min(1.0))
    }

    /// In each window the number of accesses of the last page that fast memory has room for: the prices where moving costs nothing.
    fn thresholds(&self, capacity: f64) -> Vec<f64> {
        let of_window = |window: usize| {
            let seen = self.pages.iter().filter_map(|page| page.seen.get(window));
            let mut accesses: Vec<u32> = seen.map(|seen| seen.accesses).collect();
            accesses.sort_unstable_by(|a, b| b.cmp(a));
            accesses.get(capacity as usize).copied().map_or(0.0, f64::from)
        };
        (0..=self.window).map(of_window).collect()
    }

    /// The best placement of every page at these prices.
    fn placed(&self, prices: &Prices) -> Placed {
        let mut placed = Placed { worth: 0.0, promotions: 0.0, fast: vec![0.0; prices.fast.len()] };
        self.pages.iter().for_each(|page| page.place(prices, &mut placed));
        placed
    }

    /// Accesses by address and time, in so many rows at most.
    pub(crate) fn heat_map(&self, rows: usize) -> HeatMap {
        let mut pages: Vec<&Page> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|page| page.key);
        let of_row = pages.len().div_ceil(rows).max(1);
        let sum = |value: fn(&Seen) -> u64| {
            let row = |pages: &[&Page]| {
                let of_window = |window| {
                    let seen = pages.iter().filter_map(|page| page.seen.get(window));
                    seen.map(value).sum::<u64>() << self.shift
                };
                (0..=self.window).map(of_window).collect()
            };
            pages.chunks(of_row).map(row).collect()
        };
        HeatMap {
            span: Nanos(self.span),
            row_pages: (of_row as u64) << self.shift,
            accesses: sum(|seen| seen.accesses.into()),
            promoted: sum(|seen| u64::from(seen.promoted)),
        }
    }
}

/// What a page pays for each window in fast memory, and for each promotion, in accesses.
struct Prices {
    fast: Vec<f64>,
    promotion: f64,
}

/// What placement at these prices comes to.
struct Placed {
    /// Accesses in fast memory less what they cost.
    worth: f64,
    promotions: f64,
    /// Fast pages of each window.
    fast: Vec<f64>,
}

impl Page {
    fn place(&self, prices: &Prices, placed: &mut Placed) {
        let Some(first) = self.seen.iter().position(|seen| seen.accesses > 0) else { return };
        let last = self.seen.len();
        // A bit a window: being fast there is best reached by a promotion, being slow by a demotion.
        let (mut by_promotion, mut by_demotion) = (0u32, 0u32);
        let (mut fast, mut slow) = (f64::from(self.seen[first].accesses) - prices.fast[first], 0.0f64);
        for window in first + 1..last {
            let gain = f64::from(self.seen[window].accesses) - prices.fast[window];
            let (stays, comes) = (fast, slow - prices.promotion);
            by_promotion |= u32::from(comes > stays) << window;
            by_demotion |= u32::from(fast > slow) << window;
            (fast, slow) = (gain + stays.max(comes), slow.max(fast));
        }
        placed.worth += fast.max(slow);
        let mut is_fast = fast > slow;
        for window in (first..last).rev() {
            if is_fast {
                placed.fast[window] += 1.0;
            }
            let changes = if is_fast { by_promotion } else { by_demotion } >> window & 1 == 1;
            if window > first && changes {
                placed.promotions += f64::from(u8::from(is_fast));
                is_fast = !is_fast;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hot pages, a hundred accesses each in every window, that are others from half of the run on; and cold ones with one each.
    fn moving(pages: u64, hot: u64) -> Hindsight {
        let mut hindsight = Hindsight::new();
        for window in 0..32 {
            let first = if window < 16 { 0 } else { hot };
            for page in 0..pages {
                let accesses = if (first..first + hot).contains(&page) { 100 } else { 1 };
                (0..accesses).for_each(|_| hindsight.note(page, Nanos(window * SPAN), false));
            }
        }
        hindsight
    }

    #[test]
    fn with_promotions_enough_the_hot_set_is_fast_wherever_it_is() {
        let hindsight = moving(1000, 100);
        let whole = 100.0 * 100.0 / (100.0 * 100.0 + 900.0);
        let share = hindsight.best_share(100, 100).unwrap();
        assert!((whole - 1e-9..whole + 0.01).contains(&share), "{share} {whole}");
        assert!(hindsight.best_share(100, 1_000_000).unwrap() <= share + 0.01);
    }

    #[test]
    fn without_promotions_it_is_fast_half_of_the_time() {
        let share = moving(1000, 100).best_share(100, 0).unwrap();
        let half = (50.0 * 100.0 + 50.0) / (100.0 * 100.0 + 900.0);
        assert!((half - 1e-9..half + 0.03).contains(&share), "{share} {half}");
    }

    #[test]
    fn all_that_fits_is_fast_and_a_bound_is_never_above_all() {
        assert_eq!(moving(200, 20).best_share(200, 0), Some(1.0));
        assert_eq!(Hindsight::new().best_share(10, 0), None);
    }

    #[test]
    fn a_sample_of_many_pages_says_the_same() {
        let share = moving(40_000, 4_000).best_share(4_000, 4_000).unwrap();
        let whole = 100.0 / 109.0;
        assert!((share - whole).abs() < 0.03, "{share} {whole}");
    }

    #[test]
    fn the_map_shows_the_hot_set_move_and_what_was_promoted() {
        let mut hindsight = moving(1000, 100);
        hindsight.note(0, Nanos(31 * SPAN), true);
        let map = hindsight.heat_map(10);
        assert_eq!((map.accesses.len(), map.row_pages), (10, 100));
        assert!(map.accesses[0][0] == 10_000 && map.accesses[0][31] == 101 && map.accesses[1][31] == 10_000);
        assert_eq!(map.promoted[0][31], 1);
        assert_eq!(map.promoted.iter().flatten().sum::<u64>(), 1);
    }
}
