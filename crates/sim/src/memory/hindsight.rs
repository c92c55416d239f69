//! Hindsight, a bound on placement: the share of accesses that fast memory could have served, had all accesses been known beforehand.
//!
//! ```text
//!   an access ─▶ of a page that is followed? ─▶ counted in its window: 32 of them at most, which grow as the run does
//!   a frame copied or freed ─▶ its page is still there, or will be read again
//!   at the end ─▶ for every page: fast or slow in each window, a price for being fast in it, and a price for each promotion
//!              ─▶ prices go up where too many pages are fast or promoted, and down where there is room
//! ```
//! For any prices, the best placement at these prices is worth at least as much as the best one with this much fast memory and this many promotions
//! (Lagrangian relaxation). So each round gives a bound, and the minimum of them is reported. Each page has its own choice, a walk along its windows.
//! A page begins at the same place as in the run, each time that it is read again, and leaves fast memory at no cost. It uses capacity while it is in
//! memory and fast: from one access to another. So without any promotion the bound covers pages that came to fast memory by themselves, and stay
//! there as long as it has capacity.
//!
//! If there are more pages than are worth following, one in N is followed, chosen by a hash; capacity and promotions are then as much smaller
//! (Waldspurger et al., Efficient MRC Construction with SHARDS, FAST 2015). Within a window nothing migrates, so a run whose pages migrate faster
//! than that may be above this. The caller takes the larger of the two, as the run is a placement, too.
//!
//! How long a page is in memory is counted in ticks, 62,500 of a window, so that 32 windows of a page are 384 bytes. A stay is from tick
//! to tick: it may be a tick longer or shorter than it was, and however many accesses it is counted by, no more than that.
//!
//! Nothing is followed unless it is requested: `machine.hindsight`.

use std::collections::BTreeMap;

use pageout_engine::{Nanos, Pfn};
use pageout_workload::rng::SplitMix64;

/// Windows at most.
const WINDOWS: usize = 32;
/// The first ones are so long.
const SPAN: u64 = 1_000_000;
/// Ticks of a window: nearly as many as 16 bits count, and each is an integer number of nanoseconds.
const TICKS: u64 = 62_500;
/// Pages that are followed, at most.
const PAGES: usize = 1 << 14;
/// Places for them, a power of two.
const SLOTS: usize = PAGES * 2;
/// Bits of a page's key that number it within its file or address space.
const OBJECT_SHIFT: u32 = 36;
/// Rounds of prices.
const ROUNDS: u32 = 48;

bitflags::bitflags! {
    /// What happened to a page in a window.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    struct Was: u8 {
        /// The page was found in fast memory after it had been found in slow memory, without being read again.
        const PROMOTED = 1 << 0;
        /// The page was read again, or for the first time, into fast memory.
        const CAME_FAST = 1 << 1;
        /// The first access found the page read again into slow memory: where it had been before is of no use.
        const CAME_SLOW = 1 << 2;
    }
}

/// What a page saw in a window. Times are in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Seen {
    accesses: u32,
    /// How long it is in memory: from the access that brings it to the last before it is dropped.
    there: u16,
    /// How long of that before its first access here, and after its last one.
    head: u16,
    tail: u16,
    was: Was,
}

#[derive(Clone, Debug)]
struct Page {
    key: u64,
    seen: Vec<Seen>,
    was_slow: bool,
    /// Where it is, unless it has left memory since.
    frame: Option<Pfn>,
    /// The tick of its last access.
    last: u64,
}

/// Accesses page by page and window by window.
#[derive(Clone, Debug)]
pub(crate) struct Hindsight {
    pages: Vec<Page>,
    /// Numbers of pages by the hash of their keys, plus one.
    slots: Vec<u16>,
    /// Numbers of pages by the frames they are in.
    frames: BTreeMap<Pfn, u16>,
    /// One page in two to the power of this is followed.
    shift: u32,
    span: u64,
    /// The current window.
    window: usize,
}

/// Accesses by address and time, for a chart.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HeatMap {
    /// The length of a window.
    pub span: Nanos,
    /// Pages of a row, as far as they were accessed at all.
    pub row_pages: u64,
    /// The first page of each row, by the name of its object.
    pub rows: Vec<String>,
    /// Accesses of each row, lowest addresses first, by window.
    pub accesses: Vec<Vec<u64>>,
    /// Pages of each row that were promoted, by window.
    pub promoted: Vec<Vec<u64>>,
}

/// A time as a part of a window.
fn of_window(ticks: u16) -> f64 {
    f64::from(ticks) / TICKS as f64
}

/// Times in two windows as one of both together, whose ticks are twice as long.
fn of_both((one, other): (u16, u16)) -> u16 {
    one.midpoint(other)
}

fn hash(key: u64) -> u64 {
    SplitMix64::new(key).next_u64()
}

impl Hindsight {
    pub(crate) fn new() -> Hindsight {
        Hindsight {
            // One more than there may be: the one that is too many.
            pages: Vec::with_capacity(PAGES + 1),
            slots: vec![0; SLOTS],
            frames: BTreeMap::new(),
            shift: 0,
            span: SPAN,
            window: 0,
        }
    }

    fn is_followed(&self, hash: u64) -> bool {
        self.shift == 0 || hash >> (u64::BITS - self.shift) == 0
    }

    /// A page was accessed in this frame, of fast memory or not. `has_moved`: it came to this tier from another since it is in memory.
    pub(crate) fn note(
        &mut self,
        key: u64,
        pfn: Pfn,
        at: Nanos,
        is_fast: bool,
        has_moved: impl FnOnce() -> bool,
    ) {
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
        // Clocks of tasks are not quite alike.
        let now = (at.0 / (self.span / TICKS)).max(window as u64 * TICKS).max(page.last);
        let comes = page.frame != Some(pfn);
        if comes {
            page.frame = Some(pfn);
            self.frames.insert(pfn, number as u16);
        } else {
            page.was_there(now);
        }
        page.last = now;
        let seen = &mut page.seen[window];
        if comes {
            let began_fast = is_fast != has_moved();
            if began_fast {
                seen.was |= Was::CAME_FAST;
            } else if seen.accesses == 0 {
                seen.was |= Was::CAME_SLOW;
            }
        }
        seen.accesses = seen.accesses.saturating_add(1);
        if is_fast && page.was_slow && !comes {
            seen.was |= Was::PROMOTED;
        }
        page.was_slow = !is_fast;
        if self.pages.len() > PAGES {
            self.follow_fewer();
        }
    }

    /// The page of a frame goes on in another.
    pub(crate) fn note_copy(&mut self, from: Pfn, to: Pfn) {
        if let Some(number) = self.frames.remove(&from) {
            self.pages[usize::from(number)].frame = Some(to);
            self.frames.insert(to, number);
        }
    }

    /// A frame holds no page any more.
    pub(crate) fn note_free(&mut self, pfn: Pfn) {
        if let Some(number) = self.frames.remove(&pfn) {
            self.pages[usize::from(number)].frame = None;
        }
    }

    fn turn(&mut self, at: Nanos) {
        while (at.0 / self.span) as usize >= WINDOWS {
            self.span *= 2;
            for page in &mut self.pages {
                // In its place: memory of many sizes, taken and given back, would be twice as much.
                let merged = page.seen.len().div_ceil(2);
                for window in 0..merged {
                    let second = page.seen.get(2 * window + 1).copied().unwrap_or_default();
                    page.seen[window] = page.seen[2 * window].then(second);
                }
                page.seen.truncate(merged);
                page.last /= 2;
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
        self.pages.push(Page {
            key,
            seen: Vec::with_capacity(WINDOWS),
            was_slow: false,
            frame: None,
            last: 0,
        });
        self.slots[at] = self.pages.len() as u16;
        self.pages.len() - 1
    }

    fn follow_fewer(&mut self) {
        self.shift += 1;
        // In their place, as in `turn`.
        let mut pages = std::mem::take(&mut self.pages);
        pages.retain(|page| self.is_followed(hash(page.key)));
        self.slots.fill(0);
        self.frames.clear();
        for (page, number) in pages.iter().zip(0u16..) {
            let mut at = hash(page.key) as usize % SLOTS;
            while self.slots[at] != 0 {
                at = (at + 1) % SLOTS;
            }
            self.slots[at] = number + 1;
            self.frames.extend(page.frame.map(|pfn| (pfn, number)));
        }
        self.pages = pages;
    }

    /// The share of all accesses that the best placement would have served from this many pages of fast memory, with this many promotions.
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

    /// In each window the number of accesses of the last page that fits in fast memory: the prices if moving costs nothing.
    fn thresholds(&self, capacity: f64) -> Vec<f64> {
        let threshold = |window: usize| {
            let seen = self.pages.iter().filter_map(|page| page.seen.get(window));
            let there = seen.filter(|seen| seen.accesses > 0 && seen.there > 0);
            let mut worth: Vec<(f64, f64)> = there
                .map(|seen| (f64::from(seen.accesses), of_window(seen.there)))
                .map(|(accesses, room)| (accesses / room, room))
                .collect();
            worth.sort_unstable_by(|(one, _), (other, _)| other.total_cmp(one));
            let mut taken = 0.0;
            let last = worth.iter().find(|(_, room)| {
                taken += room;
                taken > capacity
            });
            last.map_or(0.0, |&(worth, _)| worth)
        };
        (0..=self.window).map(threshold).collect()
    }

    /// The best placement of every page at these prices.
    fn placed(&self, prices: &Prices) -> Placed {
        let mut placed = Placed { worth: 0.0, promotions: 0.0, fast: vec![0.0; prices.fast.len()] };
        self.pages.iter().for_each(|page| page.place(prices, &mut placed));
        placed
    }

    /// The number of a page in its file or address space ([`pageout_engine::Figures::page_key`]).
    pub(crate) fn page_of(key: u64) -> u64 {
        key & ((1 << OBJECT_SHIFT) - 1)
    }

    /// Returns true if two pages are of one file or address space.
    pub(crate) fn is_same_object(one: u64, other: u64) -> bool {
        one >> OBJECT_SHIFT == other >> OBJECT_SHIFT
    }

    /// Accesses by address and time, in so many rows at most. `name`: what the page of a key is called.
    pub(crate) fn heat_map(&self, rows: usize, name: impl Fn(u64) -> String) -> HeatMap {
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
            rows: pages.chunks(of_row).map(|row| name(row[0].key)).collect(),
            accesses: sum(|seen| seen.accesses.into()),
            promoted: sum(|seen| u64::from(seen.was.contains(Was::PROMOTED))),
        }
    }
}

/// What a page pays for each window in fast memory, and for each promotion, in accesses.
struct Prices {
    fast: Vec<f64>,
    promotion: f64,
}

/// The value of placement at these prices.
struct Placed {
    /// Accesses in fast memory less what they cost.
    worth: f64,
    promotions: f64,
    /// Fast pages of each window.
    fast: Vec<f64>,
}

impl Seen {
    /// Promotions that being fast from its first access on takes, of a page that was in slow memory before, or in fast.
    fn promotions(self, was_fast: bool) -> f64 {
        let came = |how| self.was.contains(how);
        f64::from(u8::from(!came(Was::CAME_FAST) && (came(Was::CAME_SLOW) || !was_fast)))
    }

    /// This window and the next one, as one.
    fn then(self, next: Seen) -> Seen {
        let (is_used, is_used_next) = (self.accesses > 0, next.accesses > 0);
        let head = if is_used { (self.head, 0) } else { (self.there, next.head) };
        let tail = if is_used_next { (next.tail, 0) } else { (self.tail, next.there) };
        // Where it came to later on is not where its first access found it.
        let was_next = if is_used { next.was - Was::CAME_SLOW } else { next.was };
        Seen {
            accesses: self.accesses.saturating_add(next.accesses),
            there: of_both((self.there, next.there)),
            head: of_both(head),
            tail: of_both(tail),
            was: self.was | was_next,
        }
    }
}

impl Page {
    /// The page has been in memory since its last access.
    fn was_there(&mut self, now: u64) {
        let mut from = self.last;
        while from < now {
            let (window, next) = ((from / TICKS) as usize, (from / TICKS + 1) * TICKS);
            let to = now.min(next);
            let (seen, ticks) = (&mut self.seen[window], (to - from) as u16);
            seen.there += ticks;
            if seen.accesses == 0 {
                seen.head = ticks;
            } else if to == next {
                seen.tail = ticks;
            }
            from = to;
        }
    }

    fn place(&self, prices: &Prices, placed: &mut Placed) {
        let Some(first) = self.seen.iter().position(|seen| seen.accesses > 0) else { return };
        let last = self.seen.len();
        let room = |window: usize| of_window(self.seen[window].there);
        // Savings in a window from arriving at the first access or leaving after the last.
        let head = |window: usize| of_window(self.seen[window].head);
        let tail = |window: usize| of_window(self.seen[window].tail);
        let gain = |window: usize| f64::from(self.seen[window].accesses) - room(window) * prices.fast[window];
        let promotion = |window: usize, was_fast| self.seen[window].promotions(was_fast) * prices.promotion;
        // A bit a window: being fast there is best reached from slow memory, being slow by a demotion.
        let (mut by_coming, mut by_demotion) = (0u32, 0u32);
        let (mut fast, mut slow) = (gain(first) - promotion(first, false), 0.0f64);
        for window in first + 1..last {
            let stays = fast - promotion(window, true);
            let comes = slow - promotion(window, false) + head(window) * prices.fast[window];
            let leaves = fast + tail(window - 1) * prices.fast[window - 1];
            by_coming |= u32::from(comes > stays) << window;
            by_demotion |= u32::from(leaves > slow) << window;
            (fast, slow) = (gain(window) + stays.max(comes), slow.max(leaves));
        }
        placed.worth += fast.max(slow);
        let mut is_fast = fast > slow;
        for window in (first..last).rev() {
            let changes = window > first && if is_fast { by_coming } else { by_demotion } >> window & 1 == 1;
            if is_fast {
                placed.fast[window] += room(window) - if changes { head(window) } else { 0.0 };
                let was_fast = window > first && !changes;
                placed.promotions += self.seen[window].promotions(was_fast);
            } else if changes {
                placed.fast[window - 1] -= tail(window - 1);
            }
            is_fast ^= changes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hot pages, a hundred accesses each in every window, that are others from half of the run on; and cold ones with one each.
    fn moving(pages: u64, hot: u64, is_fast: impl Fn(u64) -> bool) -> Hindsight {
        let mut hindsight = Hindsight::new();
        for window in 0..32 {
            let first = if window < 16 { 0 } else { hot };
            for page in 0..pages {
                let accesses = if (first..first + hot).contains(&page) { 100 } else { 1 };
                for access in 0..accesses {
                    let at = Nanos(window * SPAN + access * SPAN / accesses);
                    hindsight.note(page, Pfn(page as u32), at, is_fast(page), || false);
                }
            }
        }
        hindsight
    }

    #[test]
    fn with_promotions_enough_the_hot_set_is_fast_wherever_it_is() {
        let hindsight = moving(1000, 100, |_| true);
        let whole = 100.0 * 100.0 / (100.0 * 100.0 + 900.0);
        let share = hindsight.best_share(100, 100).unwrap();
        assert!((whole - 1e-9..whole + 0.01).contains(&share), "{share} {whole}");
        // A page that is hardly used may come for an access, and leave.
        assert!(hindsight.best_share(100, 1_000_000).unwrap() >= share);
    }

    #[test]
    fn without_promotions_it_is_fast_half_of_the_time() {
        let share = moving(1000, 100, |_| true).best_share(100, 0).unwrap();
        let half = (50.0 * 100.0 + 50.0) / (100.0 * 100.0 + 900.0);
        assert!((half - 1e-9..half + 0.03).contains(&share), "{share} {half}");
    }

    /// The hot pages of the first half are 0 to 99, and those of the second 100 to 199.
    #[test]
    fn a_page_that_begins_on_slow_memory_is_fast_from_a_promotion_on_and_no_sooner() {
        let (all, hot, cold) = (100.0 * 100.0 + 900.0, 100.0 * 100.0, 900.0);
        let share = |is_fast: fn(u64) -> bool, capacity, promotions| {
            moving(1000, 100, is_fast).best_share(capacity, promotions).unwrap()
        };
        let about =
            |share: f64, of: f64| assert!((of - 1e-9..of + 0.03).contains(&share), "{share}, not {of}");
        assert_eq!(share(|_| false, 1000, 0), 0.0, "nothing was in fast memory, and nothing came");
        about(share(|_| false, 100, 200), hot / all);
        about(share(|_| false, 1000, 200), (hot + (800.0 * 0.0 + 200.0 - 100.0)) / all);
        about(share(|_| false, 100, 100), hot / 2.0 / all);
        about(share(|page| page < 100, 100, 0), (hot / 2.0 + 50.0) / all);
        about(share(|page| page < 100, 100, 100), hot / all);
        about(share(|page| page >= 200, 1000, 0), (cold - 100.0) / all);
    }

    #[test]
    fn a_page_that_was_promoted_before_its_first_access_began_on_slow_memory() {
        let share = |has_moved: bool, promotions| {
            let mut hindsight = Hindsight::new();
            (0..100).for_each(|at| hindsight.note(1, Pfn(1), Nanos(at * SPAN), true, || has_moved));
            hindsight.best_share(1, promotions).unwrap()
        };
        assert_eq!([share(false, 0), share(true, 0), share(true, 1)], [1.0, 0.0, 1.0]);
    }

    /// A page that is dropped and comes back to slow memory has to be promoted again.
    #[test]
    fn what_is_read_anew_into_slow_memory_is_slow() {
        let mut hindsight = Hindsight::new();
        for visit in 0..32u64 {
            let is_fast = visit % 2 == 0;
            hindsight.note(1, Pfn(1), Nanos(visit * SPAN), is_fast, || false);
            hindsight.note_free(Pfn(1));
        }
        assert_eq!(hindsight.best_share(1, 0), Some(0.5));
        assert_eq!(hindsight.best_share(1, 16), Some(1.0));
        let some = hindsight.best_share(1, 4).unwrap();
        assert!((0.625..0.66).contains(&some), "four of sixteen: {some}");
    }

    #[test]
    fn all_that_fits_is_fast_and_a_bound_is_never_above_all() {
        assert_eq!(moving(200, 20, |_| true).best_share(200, 0), Some(1.0));
        assert_eq!(Hindsight::new().best_share(10, 0), None);
    }

    #[test]
    fn what_a_page_saw_in_a_window_takes_12_bytes() {
        assert_eq!(size_of::<Seen>(), 12);
    }

    /// Steps of a third of a tick, and windows that have been merged five times.
    #[test]
    fn however_short_its_steps_a_stay_is_known_within_a_tick_of_a_window() {
        let mut hindsight = Hindsight::new();
        let (step, from, to) = (5, SPAN + SPAN / 3, 3 * SPAN - SPAN / 7);
        (from / step..=to / step).for_each(|at| hindsight.note(1, Pfn(1), Nanos(at * step), true, || false));
        let within_a_tick = |seen: &Seen, ns: u64, span: u64| {
            let exact = (ns * TICKS) as f64 / span as f64;
            assert!((f64::from(seen.there) - exact).abs() <= 1.0, "{seen:?}, not {exact}");
        };
        within_a_tick(&hindsight.pages[0].seen[1], 2 * SPAN - from, SPAN);
        within_a_tick(&hindsight.pages[0].seen[2], to - 2 * SPAN, SPAN);
        hindsight.note(2, Pfn(2), Nanos(WINDOWS as u64 * 31 * SPAN), true, || false);
        assert_eq!(hindsight.span, 32 * SPAN);
        within_a_tick(&hindsight.pages[0].seen[0], to - from, 32 * SPAN);
    }

    #[test]
    fn a_sample_of_many_pages_says_the_same() {
        let share = moving(40_000, 4_000, |_| true).best_share(4_000, 4_000).unwrap();
        let whole = 100.0 / 109.0;
        assert!((share - whole).abs() < 0.03, "{share} {whole}");
    }

    #[test]
    fn the_map_shows_the_hot_set_move_and_what_was_promoted() {
        let mut hindsight = moving(1000, 100, |_| false);
        hindsight.note(0, Pfn(0), Nanos(31 * SPAN), true, || false);
        let map = hindsight.heat_map(10, |key| format!("page {key}"));
        assert_eq!((map.accesses.len(), map.row_pages), (10, 100));
        assert!(map.accesses[0][0] == 10_000 && map.accesses[0][31] == 101 && map.accesses[1][31] == 10_000);
        assert_eq!(map.promoted[0][31], 1);
        assert_eq!(map.promoted.iter().flatten().sum::<u64>(), 1);
    }

    /// Pages that are read again each time are where they are put; others have to be promoted.
    #[test]
    fn what_is_read_anew_needs_no_promotion_and_takes_room_while_it_is_there() {
        let share = |leaves: bool| {
            let mut hindsight = Hindsight::new();
            for visit in 0..3200 {
                let (page, at) = (visit % 1600, visit * SPAN / 100);
                let (here, there) = (Pfn(page as u32), Pfn(page as u32 + 1600));
                (0..4).for_each(|access| hindsight.note(page, here, Nanos(at + access), true, || false));
                if leaves {
                    hindsight.note_free(here);
                } else {
                    hindsight.note_copy(here, there);
                    hindsight.note_copy(there, here);
                }
            }
            hindsight.best_share(1, 0).unwrap()
        };
        assert!(share(true) > 0.99);
        let stays = share(false);
        assert!((0.5..0.55).contains(&stays), "each is fast once, and few twice: {stays}");
    }
}
