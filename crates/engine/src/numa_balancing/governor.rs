//! The thrash governor: promotion slows down where as many pages leave fast memory as come. [tiering 9.3, beyond all kernels]
//!
//! ```text
//!   so many promoted as kswapd makes room for twice, in a window or more, and with half of what was before:
//!     demoted >= 0.8 promoted   exchange    the third in a row, and each one after it, halves what a window lets in
//!                                           (a 64th of what came before at least)
//!     demoted <  0.5 promoted   room        an eighth more
//!   a window that refused nobody            an eighth more, until nothing is governed
//! ```
//! A node whose pages are all in use gains nothing by taking others in for them: each promotion is paid for twice, by its own copy and by that
//! of the page that leaves. A hot set that moves looks the same for as long as it moves, so two judgements are free.
//!
//! kswapd makes room for many pages at once. So traffic is judged by pages and not by time, or what comes between two of its runs would
//! look like room.
//!
//! *When not to use it:* where a hot set as large as fast memory moves all the time, and what moves it is worth more than copies cost.

/// Demotions that make an exchange, in tenths of promotions, and fewer than which are room.
const EXCHANGE_TENTHS: u64 = 8;
const ROOM_TENTHS: u64 = 5;
/// So many exchanges in a row are a habit.
const HABIT: u32 = 3;
/// What is let in falls to this part at most.
const FLOOR: u64 = 64;
/// Or grows by this part.
const GROWTH: u64 = 8;

/// Pages that have come to a node from slower ones, and those that have left it for them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Traffic {
    pub(crate) promoted: u64,
    pub(crate) demoted: u64,
}

/// What a node of the top tier lets in.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Governor {
    /// When traffic was judged last, what had come and gone of all time by then, and what was judged.
    judged_ms: u64,
    before: Traffic,
    judged: Traffic,
    /// The window under way: what it has let in, and whether it has refused anyone.
    window_ms: u64,
    granted: u64,
    has_refused: bool,
    /// Exchanges in a row.
    exchanges: u32,
    budget: Option<Budget>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Budget {
    /// Pages a window.
    pages: u64,
    /// How many came before it was first cut.
    uncut: u64,
}

impl Governor {
    /// Whether so many more pages may come. `at_once`: how many kswapd makes room for. `traffic`: of all time.
    pub(crate) fn admits(
        &mut self,
        window_ms: u64,
        at_once: u64,
        traffic: Traffic,
        pages: u64,
        now_ms: u64,
    ) -> bool {
        self.judge(window_ms, at_once, traffic, now_ms);
        let windows = now_ms.saturating_sub(self.window_ms) / window_ms;
        if windows > 0 {
            // Nobody asked in those after the one under way.
            let calm = windows - u64::from(self.has_refused);
            (0..calm.min(u64::from(u64::BITS) * GROWTH)).for_each(|_| self.grow());
            (self.window_ms, self.granted, self.has_refused) = (now_ms, 0, false);
        }
        let admits = self.budget.is_none_or(|budget| self.granted + pages <= budget.pages);
        self.granted += if admits { pages } else { 0 };
        self.has_refused |= !admits;
        admits
    }

    fn judge(&mut self, window_ms: u64, at_once: u64, traffic: Traffic, now_ms: u64) {
        let windows = now_ms.saturating_sub(self.judged_ms) / window_ms;
        let promoted = traffic.promoted - self.before.promoted;
        if windows == 0 || promoted == 0 || promoted < 2 * at_once {
            return;
        }
        self.judged.promoted = self.judged.promoted / 2 + promoted;
        self.judged.demoted = self.judged.demoted / 2 + traffic.demoted - self.before.demoted;
        (self.judged_ms, self.before) = (now_ms, traffic);
        let Traffic { promoted: came, demoted: left } = self.judged;
        if 10 * left >= EXCHANGE_TENTHS * came {
            self.exchanges += 1;
            self.cut(promoted / windows);
        } else if 10 * left < ROOM_TENTHS * came {
            self.exchanges = 0;
            self.grow();
        }
    }

    /// Exchange has become a habit, or not yet. `rate`: what has come in a window.
    fn cut(&mut self, rate: u64) {
        if self.exchanges < HABIT {
            return;
        }
        let Budget { pages, uncut } = self.budget.unwrap_or(Budget { pages: rate, uncut: rate });
        self.budget = Some(Budget { pages: (pages / 2).max(uncut / FLOOR).max(1), uncut });
        // The window in which that was seen was no calm one.
        self.has_refused = true;
    }

    fn grow(&mut self) {
        let Some(Budget { pages, uncut }) = self.budget else { return };
        let pages = pages + pages.div_ceil(GROWTH);
        self.budget = (pages < uncut).then_some(Budget { pages, uncut });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node in whose windows of a second so many pages want to come, and as many leave as come, or none.
    struct Node {
        governor: Governor,
        traffic: Traffic,
        second: u64,
    }

    impl Node {
        fn new() -> Node {
            Node { governor: Governor::default(), traffic: Traffic::default(), second: 0 }
        }

        /// How many of those that want to come in a second do.
        fn second(&mut self, wanted: u64, leaves: bool) -> u64 {
            let mut came = 0;
            for at in 0..wanted {
                let now_ms = 1000 * self.second + 1000 * at / wanted;
                if self.governor.admits(1000, 10, self.traffic, 1, now_ms) {
                    came += 1;
                    self.traffic.promoted += 1;
                    self.traffic.demoted += u64::from(leaves);
                }
            }
            self.second += 1;
            came
        }
    }

    #[test]
    fn what_comes_as_fast_as_it_leaves_is_halved_from_the_third_window_on_down_to_a_64th() {
        let mut node = Node::new();
        let came: Vec<u64> = (0..12).map(|_| node.second(1600, true)).collect();
        // What has come is judged when the next page asks.
        assert_eq!(came[..3], [1600, 1600, 1600]);
        assert_eq!(came[3..], [800, 400, 200, 100, 50, 25, 25, 25, 25]);
    }

    #[test]
    fn two_windows_of_exchange_are_a_hot_set_that_moves_and_cost_nothing() {
        let mut node = Node::new();
        for _ in 0..20 {
            assert_eq!([node.second(1000, true), node.second(1000, true)], [1000, 1000]);
            assert_eq!(node.second(1000, false), 1000);
        }
    }

    #[test]
    fn room_gives_back_an_eighth_each_time_until_nothing_is_governed() {
        let mut node = Node::new();
        (0..12).for_each(|_| {
            node.second(1600, true);
        });
        let came: Vec<u64> = (0..60).map(|_| node.second(1600, false)).collect();
        assert!(came.windows(2).all(|pair| pair[0] <= pair[1]), "{came:?}");
        assert_eq!(came[59], 1600);
        assert!(came[8] < 100, "it takes as long as it took others to leave: {came:?}");
    }

    #[test]
    fn where_nobody_asks_for_long_it_is_forgotten() {
        let mut node = Node::new();
        (0..12).for_each(|_| {
            node.second(1600, true);
        });
        node.second += 100;
        assert_eq!(node.second(1600, true), 1600);
    }

    /// kswapd makes room for a hundred at a time: windows without any demotion between are no calm.
    #[test]
    fn fewer_pages_than_kswapd_makes_room_for_are_judged_together() {
        let mut governor = Governor { budget: Some(Budget { pages: 5, uncut: 320 }), ..Governor::default() };
        let mut traffic = Traffic::default();
        for second in 1..400 {
            for at in 0..40 {
                let now_ms = 1000 * second + at;
                if governor.admits(1000, 20, traffic, 1, now_ms) {
                    traffic.promoted += 1;
                    traffic.demoted += if traffic.promoted % 20 == 0 { 20 } else { 0 };
                }
            }
        }
        assert!(governor.budget.is_some_and(|budget| budget.pages <= 10), "{governor:?}");
    }
}
