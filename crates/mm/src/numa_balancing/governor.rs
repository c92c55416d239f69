//! The thrash governor: promotion slows down where as many pages leave fast memory as come. No kernel has it. [tiering 9.3]
//!
//! ```text
//!   is there room?  yes ─▶ a page may come: nobody leaves for it
//!                   no  ─▶ is a gain shown (gain.rs)? yes ─▶ it may come, and nothing is governed
//!                   no  ─▶ so all room that was made has been taken. Twice what kswapd makes room for, or more, in a window or more:
//!       made >= 0.8 promoted      exchange    three windows of it are a habit: what may leave in a window is halved, and is halved again
//!                                             after each window that refuses anyone (a 64th of what came before at least)
//!       made <  0.5 promoted      room        no habit any more, and an eighth more
//!     may others leave for it? ── what has left is not paid off by what may ─▶ refused
//!   a window that refused nobody              an eighth more, until nothing is governed
//! ```
//! A node whose pages are all in use gains nothing from an exchange: each promotion costs two copies, its own and that of the demoted page. A hot set
//! that moves has the same traffic while it moves. The difference is how soon demoted pages are used again. Until enough of them are known, two
//! windows are free.
//!
//! The governor limits how often memory is freed, not which page uses it. kswapd frees a thousand pages in one run. If they were not used, they would
//! lie idle for minutes: fast memory that serves no access. Traffic is judged when the freed memory is used up. Otherwise memory that appears between
//! two runs of kswapd would count as freed. Demotion frees memory, and earlier demotions did so, too: their pages lie unused on lists of CPUs, a
//! thousand and more. When promotion takes those, other pages have still left for it. So unused pages that are gone count as freed memory.
//!
//! If the governor has nothing to limit, a run with it equals the run without it, byte for byte.
//!
//! *When not to use it:* if scans of slow memory are so rare that a hot set has moved on before its gain is shown. An example is balancing alone,
//! whose scans are a minute apart.

/// Memory that was freed for promotions, in tenths of them: this share is an exchange, and less than that is memory that others freed.
const EXCHANGE_TENTHS: u64 = 8;
const ROOM_TENTHS: u64 = 5;
/// So many windows of exchange in a row are a habit.
const HABIT: u32 = 3;
/// What may leave falls to this part at most.
const FLOOR: u64 = 64;
/// Or grows by this part.
const GROWTH: u64 = 8;

/// Pages that have come to a node from slower ones, and those that have left it for them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Pages that have come.
    pub promoted: u64,
    /// Pages that have left.
    pub demoted: u64,
}

/// Pages that should be promoted to a node, and the free memory for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Current time. Unit: milliseconds.
    pub now_ms: u64,
    /// Promoted and demoted since the beginning.
    pub traffic: Traffic,
    /// Unused pages, those that CPUs hold among them.
    pub unused: u64,
    /// For how many kswapd makes room, at least.
    pub at_once: u64,
    /// No page has to leave for them.
    pub has_room: bool,
    /// True if pages that leave for them are used less.
    pub gains: bool,
}

/// Admission of pages to a node of the top tier.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Governor {
    /// Time of the last judgement of traffic, the totals of arrivals and departures until then, and the unused pages.
    judged_ms: u64,
    before: Traffic,
    unused_before: u64,
    /// The judged amounts: promotions, and the memory that was freed for them.
    promoted: u64,
    made: u64,
    /// The current window, and whether it has rejected a page.
    window_ms: u64,
    has_refused: bool,
    /// Windows of exchange in a row.
    exchanges: u32,
    budget: Option<Budget>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Budget {
    /// Pages that may leave in a window.
    pages: u64,
    /// How many came in one before it was first cut.
    uncut: u64,
    /// Departures minus the permitted ones: in pages times the length of a window. With its time and its demotions.
    owed: u64,
    paid_ms: u64,
    demoted: u64,
}

impl Budget {
    fn pay(&mut self, window_ms: u64, arrival: &Arrival) {
        self.owed = self.owed.saturating_sub(self.pages * (arrival.now_ms - self.paid_ms));
        self.owed += (arrival.traffic.demoted - self.demoted) * window_ms;
        (self.paid_ms, self.demoted) = (arrival.now_ms, arrival.traffic.demoted);
    }
}

impl Governor {
    /// Returns true if more pages may come.
    pub fn admits(&mut self, window_ms: u64, arrival: &Arrival) -> bool {
        let windows = arrival.now_ms.saturating_sub(self.window_ms) / window_ms;
        if windows > 0 {
            if self.has_refused && self.exchanges >= HABIT {
                self.cut();
            }
            // No page asked in the windows after the current one.
            let calm = windows - u64::from(self.has_refused);
            (0..calm.min(u64::from(u64::BITS) * GROWTH)).for_each(|_| self.grow());
            if windows > 1 {
                // No page has come for a while: the judged period begins now.
                self.judge_from(arrival);
            }
            (self.window_ms, self.has_refused) = (arrival.now_ms, false);
        }
        if arrival.has_room {
            return true;
        }
        if arrival.gains {
            self.judge_from(arrival);
            (self.promoted, self.made) = (0, 0);
            (self.budget, self.exchanges) = (None, 0);
            return true;
        }
        self.judge(window_ms, arrival);
        let Some(budget) = &mut self.budget else { return true };
        budget.pay(window_ms, arrival);
        let admits = budget.owed == 0;
        self.has_refused |= !admits;
        admits
    }

    /// Returns whether fewer may come than would.
    pub fn governs(&self) -> bool {
        self.budget.is_some()
    }

    /// The judged period begins now.
    fn judge_from(&mut self, arrival: &Arrival) {
        (self.judged_ms, self.before, self.unused_before) = (arrival.now_ms, arrival.traffic, arrival.unused);
    }

    /// All freed memory has been used.
    fn judge(&mut self, window_ms: u64, arrival: &Arrival) {
        let Arrival { now_ms, traffic, at_once, .. } = *arrival;
        let came = traffic.promoted - self.before.promoted;
        if came == 0 {
            self.judge_from(arrival);
            return;
        }
        let windows = now_ms.saturating_sub(self.judged_ms) / window_ms;
        if windows == 0 || came < 2 * at_once {
            return;
        }
        let left = traffic.demoted - self.before.demoted;
        self.promoted = self.promoted / 2 + came;
        self.made = self.made / 2 + (left + self.unused_before).saturating_sub(arrival.unused);
        self.judge_from(arrival);
        if 10 * self.made >= EXCHANGE_TENTHS * self.promoted {
            self.exchanges = self.exchanges.saturating_add(u32::try_from(windows).unwrap_or(u32::MAX));
            if self.exchanges >= HABIT && self.budget.is_none() {
                let rate = came / windows;
                // What has left for those who came last is still to be paid.
                let owed = left * window_ms;
                let (pages, paid_ms, demoted) = (rate, now_ms, traffic.demoted);
                self.budget = Some(Budget { pages, uncut: rate, owed, paid_ms, demoted });
                self.cut();
            }
        } else if 10 * self.made < ROOM_TENTHS * self.promoted {
            self.exchanges = 0;
            self.grow();
        }
    }

    fn cut(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.pages = (budget.pages / 2).max(budget.uncut / FLOOR).max(1);
        }
    }

    fn grow(&mut self) {
        let Some(budget) = &mut self.budget else { return };
        budget.pages += budget.pages.div_ceil(GROWTH);
        if budget.pages >= budget.uncut {
            (self.budget, self.exchanges) = (None, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node in whose windows of a second so many pages want to come. kswapd makes room for a number of them at a time.
    struct Node {
        governor: Governor,
        traffic: Traffic,
        second: u64,
        free: u64,
        bulk: u64,
        gains: bool,
    }

    impl Node {
        fn new(bulk: u64) -> Node {
            let (governor, traffic) = (Governor::default(), Traffic::default());
            Node { governor, traffic, second: 0, free: 0, bulk, gains: false }
        }

        /// How many of those that want to come in a second do. Where nobody need leave for them there is always room.
        fn second(&mut self, wanted: u64, leaves: bool) -> u64 {
            let before = self.traffic.promoted;
            for at in 0..wanted {
                let has_room = self.free > 0 || !leaves;
                let now_ms = 1000 * self.second + 1000 * at / wanted;
                let arrival = Arrival {
                    now_ms,
                    traffic: self.traffic,
                    unused: self.free,
                    at_once: 10,
                    has_room,
                    gains: self.gains,
                };
                if !self.governor.admits(1000, &arrival) {
                    continue;
                }
                if has_room {
                    self.traffic.promoted += 1;
                    self.free = self.free.saturating_sub(1);
                } else {
                    // Who finds no room comes again.
                    self.free += self.bulk;
                    self.traffic.demoted += self.bulk;
                }
            }
            self.second += 1;
            self.traffic.promoted - before
        }

        fn seconds(&mut self, count: u64, wanted: u64, leaves: bool) -> Vec<u64> {
            (0..count).map(|_| self.second(wanted, leaves)).collect()
        }
    }

    #[test]
    fn what_comes_as_fast_as_it_leaves_is_halved_from_the_third_window_on_down_to_a_64th() {
        let mut node = Node::new(1);
        let came = node.seconds(20, 3200, true);
        // Every other one finds no room, and what has come is judged by the first of these.
        assert!(came[..3].iter().all(|&came| came >= 1599), "{came:?}");
        assert!(came[3..10].iter().sum::<u64>() < 400, "those who came last are paid for: {came:?}");
        assert!(came[10..].iter().all(|&came| (20..=26).contains(&came)), "{came:?}");
    }

    #[test]
    fn two_windows_of_exchange_are_a_hot_set_that_moves_and_cost_nothing() {
        let mut node = Node::new(1);
        for _ in 0..20 {
            let came = node.seconds(2, 2000, true);
            assert!(came.iter().all(|&came| came >= 999), "{came:?}");
            assert_eq!(node.seconds(2, 2000, false), [2000, 2000]);
        }
    }

    #[test]
    fn what_is_free_is_taken_however_many_have_left_for_it() {
        let mut node = Node::new(1000);
        node.seconds(40, 400, true);
        assert!(node.governor.budget.is_some_and(|budget| budget.pages < 20), "{:?}", node.governor);
        assert_eq!(node.free, 0, "nothing that kswapd has freed lies idle");
        assert_eq!(node.second(400, false), 400);
    }

    #[test]
    fn room_is_made_no_more_often_than_it_may_be() {
        let mut node = Node::new(1000);
        node.seconds(60, 400, true);
        let before = node.traffic.demoted;
        node.seconds(1000, 400, true);
        let uncut = node.governor.budget.expect("it still is a habit").uncut;
        let most = 1000 * (uncut / FLOOR).max(1) + 1000;
        let left = node.traffic.demoted - before;
        assert!((most / 2..=most).contains(&left), "{left} pages have left, {most} might");
    }

    #[test]
    fn what_cpus_held_of_room_that_was_made_is_taken_for_an_exchange_and_what_others_have_left_is_not() {
        for (unused, is_exchange) in [(1000, true), (3000, false)] {
            let mut governor = Governor::default();
            let (traffic, has_room, gains) = (Traffic::default(), false, false);
            let begins = Arrival { now_ms: 0, traffic, unused: 3000, at_once: 1000, has_room, gains };
            assert!(governor.admits(1000, &begins));
            // Nobody has left for the 2000.
            let later =
                Arrival { now_ms: 4000, traffic: Traffic { promoted: 2000, demoted: 0 }, unused, ..begins };
            let taken = Arrival { now_ms: 3900, has_room: true, ..later };
            for at in (1000..4000).step_by(900) {
                assert!(governor.admits(1000, &Arrival { now_ms: at, ..taken }), "there is room");
            }
            governor.admits(1000, &later);
            assert_eq!(governor.governs(), is_exchange, "{unused} are unused, 3000 were");
        }
    }

    #[test]
    fn windows_that_refuse_nobody_give_back_an_eighth_each_until_nothing_is_governed() {
        let mut node = Node::new(1);
        node.seconds(14, 3200, true);
        node.seconds(8, 3200, false);
        assert!(node.governor.budget.is_some_and(|budget| budget.pages < 100), "{:?}", node.governor);
        node.seconds(40, 3200, false);
        assert_eq!(node.governor.budget, None);
    }

    #[test]
    fn who_is_used_sooner_than_those_who_leave_comes_at_once() {
        let mut node = Node::new(1);
        node.seconds(14, 3200, true);
        assert!(node.second(3200, true) <= 26);
        node.gains = true;
        assert!(node.second(3200, true) >= 1599);
        assert_eq!(node.governor.budget, None);
        node.gains = false;
        let came = node.seconds(2, 3200, true);
        assert!(came.iter().all(|&came| came >= 1599), "it has to become a habit again: {came:?}");
    }

    #[test]
    fn where_nobody_asks_for_long_it_is_forgotten() {
        let mut node = Node::new(1);
        node.seconds(14, 3200, true);
        node.second += 100;
        assert!(node.second(3200, true) >= 1599);
    }
}
