//! The hot threshold and the rate limit of promotion: which pages of slow memory are hot, and how many may go. [tiering 2.3, 2.4;
//! tiering-zswap-6.12 3.2, 3.4]
//!
//! ```text
//!   marked ──── latency ────▶ hint fault        hot: latency < threshold
//!
//!   a node's threshold, once a scan_period_max:
//!     candidates > 1.1 of what the rate limit lets through   a sixteenth of 2 x hot_threshold less
//!     candidates < 0.9 of it                                 as much more
//!   or, once a second:
//!     what has been seen in it, by age     the oldest that still fit into what is free or inactive there
//! ```
//! The time at which a page was marked is stored in as many bits as the kernel has for it. So a page that is idle for a multiple of their range looks
//! hot at its next access. Candidates are counted before the rate limit is asked: the threshold follows the demand, not the grants. A page that was
//! rejected and asks again counts once.

/// Steps over the range of a threshold.
const STEPS: u64 = 16;
/// How long ages are counted for a threshold that fits.
const FIT_MS: u64 = 1000;
/// Bits that hold milliseconds for long enough.
const MILLISECOND_BITS: u8 = 12;

/// The time of an access, kept with a page: in the bits that otherwise hold the last user (`LAST_CPUPID_SHIFT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessTime {
    bits: u8,
}

impl AccessTime {
    /// A clock that is kept in so many bits.
    pub fn new(bits: u8) -> AccessTime {
        AccessTime { bits }
    }

    /// Fewer bits than that hold coarser times, so that the range is the same.
    fn bucket_bits(self) -> u8 {
        MILLISECOND_BITS.saturating_sub(self.bits)
    }

    /// Returns the stored bits of a time.
    pub fn stored(self, now_ms: u64) -> u32 {
        (now_ms >> self.bucket_bits()) as u32 & ((1 << self.bits) - 1)
    }

    /// Milliseconds from what was kept to now, modulo the range.
    pub fn latency(self, stored: u32, now_ms: u64) -> u64 {
        let range = u64::from(u32::MAX >> (32 - self.bits));
        let bucket = self.bucket_bits();
        ((now_ms >> bucket).wrapping_sub(u64::from(stored)) & range) << bucket
    }
}

/// Promotion knobs that an administrator sets: hot threshold and rate limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PromotionKnobs {
    /// The longest time to an access of a page that is hot. Unit: milliseconds.
    pub hot_threshold_ms: u64,
    /// The interval between changes of the threshold, in milliseconds.
    pub period_ms: u64,
    /// Pages that may be promoted to a node, a second.
    pub rate_limit: u64,
}

/// Start of an age: the two kinds have different lengths, and therefore their own thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Since {
    /// The mark of a page-table entry, to the hint fault that it leads to.
    Mark,
    /// A page's last report to hot-page tracking, until its promotion.
    Report,
}

/// State of promotion to a node of the top tier.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PromotionControl {
    /// The hot thresholds, by what the age of a page is counted from ([`Since`]).
    thresholds: [HotThreshold; 2],
    /// The rate limit of promotion.
    pub rate: RateLimit,
}

impl PromotionControl {
    /// The threshold for times counted from here.
    pub fn threshold_mut(&mut self, since: Since) -> &mut HotThreshold {
        &mut self.thresholds[since as usize]
    }

    /// Back to the administrator's value: there is free memory for all.
    pub fn reset_thresholds(&mut self) {
        self.thresholds.iter_mut().for_each(|threshold| threshold.threshold = 0);
    }

    /// Balancing has been turned on.
    pub fn restart(&mut self, candidates: u64, now_ms: u64) {
        let begun = HotThreshold { since: now_ms, candidates_then: candidates, ..HotThreshold::default() };
        self.thresholds = [begun; 2];
    }
}

/// The age that is hot, and the counts since the last decision about it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct HotThreshold {
    /// In milliseconds; 0: as the administrator has it.
    threshold: u64,
    since: u64,
    /// Pages seen since then, by the sixteenth of the range in which their age was, for a threshold that fits.
    ages: [u64; STEPS as usize],
    candidates_then: u64,
}

impl HotThreshold {
    /// The hot threshold in force, in milliseconds.
    pub fn get(&self, knobs: &PromotionKnobs) -> u64 {
        if self.threshold == 0 { knobs.hot_threshold_ms } else { self.threshold }
    }

    /// Moves the threshold by a step, if one is due.
    #[doc(alias = "numa_promotion_adjust_threshold")]
    pub fn adjust(&mut self, knobs: &PromotionKnobs, candidates: u64, now_ms: u64) {
        if now_ms.saturating_sub(self.since) <= knobs.period_ms {
            return;
        }
        self.since = now_ms;
        let wanted = candidates - self.candidates_then;
        let granted = knobs.rate_limit * knobs.period_ms / 1000;
        let most = 2 * knobs.hot_threshold_ms;
        let unit = most / STEPS;
        let threshold = self.get(knobs);
        self.threshold = if wanted > granted * 11 / 10 {
            threshold.saturating_sub(unit).max(unit)
        } else if wanted < granted * 9 / 10 {
            most.min(threshold + unit)
        } else {
            threshold
        };
        self.candidates_then = candidates;
    }

    /// Counts pages of an age, and once a second moves the threshold so that the pages below it fit into the free memory. One step of the range is
    /// always hot, as long as it has no rival.
    pub fn fit(&mut self, knobs: &PromotionKnobs, age_ms: u64, pages: u64, room: u64, now_ms: u64) {
        let unit = (2 * knobs.hot_threshold_ms / STEPS).max(1);
        if let Some(ages) = self.ages.get_mut((age_ms / unit) as usize) {
            *ages += pages;
        }
        if now_ms.saturating_sub(self.since) <= FIT_MS {
            return;
        }
        let mut hot = 0;
        let mut fits = |&&pages: &&u64| {
            hot += pages;
            hot <= room
        };
        let steps = self.ages.iter().take_while(|pages| fits(pages)).count() as u64;
        self.threshold = unit * steps.max(1);
        self.since = now_ms;
        self.ages = [0; STEPS as usize];
    }
}

/// The amount of a second. It counts requests: a page that was rejected and asks again is not a new candidate, but needs its share again.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// Pages that have asked, of all time.
    asked: u64,
    /// The current second.
    second_since: u64,
    asked_before: u64,
}

impl RateLimit {
    /// Returns true if the current second has used its share when this many more pages ask.
    #[doc(alias = "numa_promotion_rate_limit")]
    pub fn refuses(&mut self, knobs: &PromotionKnobs, pages: u64, now_ms: u64) -> bool {
        self.asked += pages;
        if now_ms.saturating_sub(self.second_since) > 1000 {
            self.second_since = now_ms;
            self.asked_before = self.asked;
        }
        self.asked - self.asked_before >= knobs.rate_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own: 64 GiB a second.
    const DEFAULT: PromotionKnobs =
        PromotionKnobs { hot_threshold_ms: 1000, period_ms: 60_000, rate_limit: 65_536 << 8 };

    #[test]
    fn ten_bits_hold_4096_ms_in_steps_of_four_and_a_page_beyond_that_looks_hot() {
        let time = AccessTime::new(10);
        let latency = |marked, now| time.latency(time.stored(marked), now);
        assert_eq!(latency(1000, 1000), 0);
        assert_eq!(latency(1003, 1004), 4, "1003 is kept as 1000");
        assert_eq!(latency(5000, 5999), 996);
        assert_eq!(latency(5000, 5000 + 4095), 4092);
        assert_eq!(latency(5000, 5000 + 4096), 0, "over the range");
        assert_eq!(latency(5000, 5000 + 4096 + 500), 500);
        assert_eq!(latency(4095, 4097), 4, "across the wrap");
        let wide = AccessTime::new(21);
        assert_eq!(wide.latency(wide.stored(5000), 5000 + 4096), 4096);
        assert_eq!(wide.latency(wide.stored(7), 7 + (1 << 21)), 0);
    }

    #[test]
    fn the_threshold_moves_by_a_sixteenth_of_its_range_once_a_period() {
        let mut control = PromotionControl::default();
        let node = control.threshold_mut(Since::Mark);
        let mut now = 0;
        let mut after = |node: &mut HotThreshold, candidates| {
            now += 60_001;
            node.adjust(&DEFAULT, candidates, now);
            node.adjust(&DEFAULT, candidates, now + 60_000);
            node.get(&DEFAULT)
        };
        // Nothing is near the limit, so it rises to twice the reference and stays there.
        let risen: Vec<u64> = (0..10).map(|_| after(node, 0)).collect();
        assert_eq!(risen, [1125, 1250, 1375, 1500, 1625, 1750, 1875, 2000, 2000, 2000]);
        let a_period = DEFAULT.rate_limit * 60;
        let mut total = 0;
        let mut with = |node: &mut HotThreshold, candidates: u64| {
            total += candidates;
            after(node, total)
        };
        assert_eq!(with(node, a_period), 2000, "as many as the limit lets through");
        assert_eq!(with(node, a_period * 11 / 10), 2000, "the band ends here");
        assert_eq!(with(node, a_period * 9 / 10), 2000, "and here");
        assert_eq!(with(node, a_period * 11 / 10 + 1), 1875);
        assert_eq!(with(node, a_period * 9 / 10 - 1), 2000);
        let fallen: Vec<u64> = (0..17).map(|_| with(node, 2 * a_period)).collect();
        assert_eq!(fallen[14..], [125, 125, 125], "never below a step");
        control.reset_thresholds();
        assert_eq!(control.threshold_mut(Since::Mark).get(&DEFAULT), 1000);
    }

    /// The one is of a fault's latency, the other of a report's age, which is three times as long by default.
    #[test]
    fn faults_and_reports_have_thresholds_of_their_own() {
        let mut control = PromotionControl::default();
        let reports = PromotionKnobs { hot_threshold_ms: 3000, ..DEFAULT };
        control.threshold_mut(Since::Report).adjust(&reports, 0, 60_001);
        assert_eq!(control.threshold_mut(Since::Report).get(&reports), 3375);
        assert_eq!(control.threshold_mut(Since::Mark).get(&DEFAULT), 1000);
        control.threshold_mut(Since::Mark).adjust(&DEFAULT, 0, 60_002);
        assert_eq!(control.threshold_mut(Since::Mark).get(&DEFAULT), 1125);
        assert_eq!(control.threshold_mut(Since::Report).get(&reports), 3375);
    }

    #[test]
    fn a_threshold_that_fits_is_where_the_hottest_fill_the_room() {
        let mut node = HotThreshold::default();
        let mut see = |ages: &[u64], room, now| {
            ages.iter().for_each(|&age| node.fit(&DEFAULT, age, 1, room, now));
            node.get(&DEFAULT)
        };
        let ages: Vec<u64> = (0..2000).collect();
        assert_eq!(see(&ages, 700, 500), 1000, "no second has passed");
        assert_eq!(see(&[5000], 700, 1001), 625, "125 pages to a step: five fit");
        assert_eq!(see(&[0, 1999], 700, 2002), 2000, "there is room for all");
        assert_eq!(see(&ages, 1, 2500), 2000);
        assert_eq!(see(&[5000], 1, 3003), 125, "one step at least");
    }

    #[test]
    fn a_period_is_over_only_when_more_than_it_has_passed() {
        let mut control = PromotionControl::default();
        let node = control.threshold_mut(Since::Mark);
        node.adjust(&DEFAULT, 0, 60_000);
        assert_eq!(node.get(&DEFAULT), 1000);
        node.adjust(&DEFAULT, 0, 60_001);
        assert_eq!(node.get(&DEFAULT), 1125);
        control.restart(0, 70_000);
        let node = control.threshold_mut(Since::Mark);
        node.adjust(&DEFAULT, 0, 130_000);
        assert_eq!(node.get(&DEFAULT), 1000, "balancing began anew");
    }

    #[test]
    fn a_second_begins_when_more_than_the_last_has_passed_and_grants_its_share() {
        let knobs = PromotionKnobs { rate_limit: 256, ..DEFAULT };
        let mut rate = RateLimit::default();
        let mut granted = |now, asked: u64| (0..asked).filter(|_| !rate.refuses(&knobs, 1, now)).count();
        // The first second is that of the boot; the page that opens one is its measure, and free.
        assert_eq!(granted(1000, 300), 255);
        assert_eq!(granted(1001, 300), 256);
        assert_eq!(granted(2001, 300), 0, "a second later it is the same second still");
        assert_eq!(granted(2002, 300), 256);
        assert_eq!(granted(900_000, 1), 1, "idle for long");
    }

    #[test]
    fn a_limit_of_nothing_refuses_all() {
        let knobs = PromotionKnobs { rate_limit: 0, ..DEFAULT };
        let mut rate = RateLimit::default();
        assert!((1..100).all(|second| rate.refuses(&knobs, 1, second * 10_000)));
    }
}
