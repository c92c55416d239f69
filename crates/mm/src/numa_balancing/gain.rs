//! The gain of promotion on a full node: are pages of slow memory used sooner than pages that were demoted to make room?
//! No kernel has it. [tiering 9.3]
//!
//! ```text
//!   of pages that are marked in a window, how many are used before the next one ends?
//!       they have left fast memory, and the scanner comes by ───────▶ left ┐
//!       other pages of slow memory: the scanner marks them, or a read ▶ stay ┴▶ compared when both have had their time
//! ```
//! Pages that are all hot give the same answer, wherever they are. If a hot set has moved, the demoted pages are cold, and the promoted ones are not.
//! An exchange gains if pages that stay are used in time twice as often as demoted pages. A page that is never used again gives no sign, and that
//! counts.
//!
//! Demoted pages are remembered for some tens of windows, as the governor lets hardly any leave. Pages demoted by then may have been hot: memory that
//! fills up demotes hot and cold pages alike. So there is a second sign. If pages that stay are used in time twice as often as when the governor
//! started, other pages are hot by now, and everything restarts.

/// Fewer uses than that may be chance.
const ENOUGH: u64 = 32;
/// Known marks are halved when there are so many, so that new ones count.
const REMEMBERED: u64 = 4096;
/// Marks of pages that have left are halved each time so many windows are over: they grow old where few leave.
const FORGET_WINDOWS: u64 = 32;
/// A move costs two copies. Pages used so many times as often are worth it.
const SOONER: u64 = 2;

/// Whose mark it is: of a page that has left fast memory, for the first time since, or of another page of slow memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// A page that has left fast memory.
    Left,
    /// Another page of slow memory.
    Stays,
}

/// Pages that were marked, and how many of them were used in time.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Marks {
    marked: u64,
    used: u64,
}

impl Marks {
    /// How many of so many others would be used if they were used like these.
    fn expected(&self, marked: u64) -> u64 {
        marked * self.used / self.marked.max(1)
    }

    fn halve(&mut self, times: u32) {
        self.marked = self.marked.checked_shr(times).unwrap_or(0);
        self.used = self.used.checked_shr(times).unwrap_or(0);
    }
}

/// Marks of one kind of pages.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Answers {
    /// Marks of windows whose marks have had their time.
    known: Marks,
    /// Marks of the window before the current one.
    last: Marks,
    /// Marks of the current window.
    this: Marks,
}

impl Answers {
    /// Turns to the next window: the current one is over.
    fn turn(&mut self) {
        self.known.marked += self.last.marked;
        self.known.used += self.last.used;
        while self.known.marked >= REMEMBERED {
            self.known.halve(1);
        }
        self.last = std::mem::take(&mut self.this);
    }
}

/// State of a node of the top tier about demoted pages, and about candidates for promotion.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Gain {
    left: Answers,
    stay: Answers,
    /// Marks of pages that stay, of the last window with enough of them that had its time.
    latest: Marks,
    /// Value of `latest` when the governor started, or the first since then; nothing if it is not active.
    governed: Marks,
    /// The number of the current window.
    window: u64,
}

impl Gain {
    fn answers(&mut self, whose: Whose, window: u64) -> &mut Answers {
        // After two windows, none is in progress any more.
        for _ in 0..window.saturating_sub(self.window).min(2) {
            if self.stay.last.marked >= ENOUGH {
                self.latest = self.stay.last;
            }
            self.left.turn();
            self.stay.turn();
        }
        let forgotten = (window / FORGET_WINDOWS).saturating_sub(self.window / FORGET_WINDOWS);
        self.left.known.halve(forgotten.try_into().unwrap_or(u32::MAX));
        self.window = window;
        match whose {
            Whose::Left => &mut self.left,
            Whose::Stays => &mut self.stay,
        }
    }

    /// Pages are marked in a window, by its number.
    pub fn marked(&mut self, whose: Whose, window: u64, pages: u64) {
        self.answers(whose, window).this.marked += pages;
    }

    /// Pages are used that were marked so many windows ago.
    pub fn used(&mut self, whose: Whose, window: u64, windows_ago: u16, pages: u64) {
        let answers = self.answers(whose, window);
        match windows_ago {
            0 => answers.this.used += pages,
            1 => answers.last.used += pages,
            _ => {}
        }
    }

    /// Returns true if it has been shown. `is_governed`: fewer may come than would.
    pub fn judge(&mut self, is_governed: bool) -> bool {
        if !is_governed {
            self.governed = Marks::default();
        } else if self.governed.marked == 0 {
            self.governed = self.latest;
        } else if self.is_hotter() {
            (self.governed, self.left.known) = (Marks::default(), Marks::default());
            return true;
        }
        let (left, stay) = (self.left.known, self.stay.known);
        let expected = stay.expected(left.marked);
        expected >= ENOUGH && SOONER * left.used <= expected
    }

    /// Returns true if pages that stay are hotter than when the governor set in.
    fn is_hotter(&self) -> bool {
        let Marks { marked, used } = self.governed;
        // Few marks say little: one more of them might have been used.
        let before = Marks { marked, used: used + 1 };
        self.latest.used >= ENOUGH && self.latest.used >= SOONER * before.expected(self.latest.marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In each of some windows so many pages are marked, and so many of these are used in the same one: first of those that have left,
    /// then of the others.
    fn windows(gain: &mut Gain, windows: std::ops::Range<u64>, left: (u64, u64), stay: (u64, u64)) {
        for window in windows {
            for (whose, (marked, used)) in [(Whose::Left, left), (Whose::Stays, stay)] {
                gain.marked(whose, window, marked);
                gain.used(whose, window, 0, used);
            }
        }
    }

    #[test]
    fn pages_that_are_all_hot_answer_alike_and_nothing_is_shown() {
        let mut gain = Gain::default();
        windows(&mut gain, 0..50, (400, 28), (2460, 172));
        assert!(!gain.judge(false), "{gain:?}");
    }

    #[test]
    fn those_that_have_left_and_are_silent_show_it_when_they_have_had_their_time() {
        let mut gain = Gain::default();
        windows(&mut gain, 7..9, (100, 0), (100, 90));
        assert!(!gain.judge(false), "both windows may still be answered: {gain:?}");
        windows(&mut gain, 9..10, (0, 0), (0, 0));
        assert!(gain.judge(false), "{gain:?}");
    }

    #[test]
    fn a_use_counts_up_to_the_end_of_the_window_after_its_mark() {
        for (windows_ago, is_alike) in [(0, true), (1, true), (2, false), (u16::MAX, false)] {
            let mut gain = Gain::default();
            windows(&mut gain, 10..11, (100, 0), (100, 90));
            gain.used(Whose::Left, 10 + u64::from(windows_ago.min(3)), windows_ago, 90);
            windows(&mut gain, 14..15, (0, 0), (0, 0));
            assert_eq!(!gain.judge(false), is_alike, "{windows_ago} windows ago: {gain:?}");
        }
    }

    #[test]
    fn chance_shows_nothing() {
        let mut gain = Gain::default();
        windows(&mut gain, 0..3, (ENOUGH - 1, 0), (10, 10));
        windows(&mut gain, 3..5, (0, 0), (0, 0));
        assert!(gain.judge(false), "three windows are enough: {gain:?}");
        let mut gain = Gain::default();
        windows(&mut gain, 0..1, (ENOUGH - 1, 0), (10, 10));
        windows(&mut gain, 1..5, (0, 0), (0, 0));
        assert!(!gain.judge(false), "one is not: {gain:?}");
    }

    #[test]
    fn those_that_have_left_are_remembered_while_none_leave_and_are_forgotten_in_the_end() {
        let mut gain = Gain::default();
        windows(&mut gain, 0..3, (200, 4), (1000, 20));
        assert!(!gain.judge(false));
        windows(&mut gain, 3..20, (0, 0), (0, 0));
        windows(&mut gain, 20..24, (0, 0), (2000, 1800));
        assert!(gain.judge(false), "the hot set has moved: {gain:?}");
        windows(&mut gain, 1000..1001, (0, 0), (0, 0));
        assert!(!gain.judge(false), "{gain:?}");
    }

    #[test]
    fn where_pages_that_stay_are_hotter_than_when_the_governor_set_in_all_begins_anew() {
        let mut gain = Gain::default();
        windows(&mut gain, 0..4, (500, 100), (1000, 50));
        assert!(!gain.judge(true), "those that have left are hot: {gain:?}");
        windows(&mut gain, 4..20, (0, 0), (1000, 70));
        assert!(!gain.judge(true), "as before, but for chance: {gain:?}");
        windows(&mut gain, 20..23, (0, 0), (1000, 120));
        assert!(gain.judge(true), "{gain:?}");
        assert_eq!(gain.left.known, Marks::default(), "who left before says nothing now");
        assert!(!gain.judge(false), "that was once");
    }
}
