//! The swap readahead window: how many pages are read around the wanted one, learnt from how many of the last ones were hit.
//!
//! | hits since the last window | size |
//! |---|---|
//! | none | 2 if this place is next to the last one, else 1 |
//! | some | the smallest power of two that is at least 4 and at least 2 more than the hits |
//!
//! Then at most the maximum, and at least half of the last window: one miss does not end a good run. Hits start at 4, so the first
//! window is 8 pages. [machine 1.11]

/// State of the last window of a mapping, or of all slots together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapWindow {
    /// The page or slot that was wanted, or found, last.
    previous: Option<u64>,
    size: u64,
    /// Pages of the window that were wanted since.
    hits: u32,
}

impl Default for SwapWindow {
    fn default() -> SwapWindow {
        SwapWindow { previous: None, size: 0, hits: 4 }
    }
}

impl SwapWindow {
    /// Hits of a mapping are counted so far: they have six bits in the kernel.
    pub const HITS_MAX: u32 = 63;

    /// The window for a miss on page `at` of a mapping, and where in it that page stands.
    pub fn around_page(&mut self, at: u64, most: u64) -> (u64, u64) {
        let size = self.next_size(at, most);
        let before = match self.previous {
            Some(previous) if at == previous + 1 => 0,
            Some(previous) if at + 1 == previous => size - 1,
            _ => (size - 1) / 2,
        };
        *self = SwapWindow { previous: Some(at), size, hits: 0 };
        (size, before)
    }

    /// The window for a miss on a slot: so many slots, aligned.
    pub fn around_slot(&mut self, at: u64, most: u64) -> u64 {
        let size = self.next_size(at, most);
        // While windows are of use it matters little where they are.
        if self.hits == 0 {
            self.previous = Some(at);
        }
        (self.size, self.hits) = (size, 0);
        size
    }

    /// Page `at` of a mapping was found: read ahead, or still there.
    pub fn found_page(&mut self, at: u64, was_read_ahead: bool) {
        self.previous = Some(at);
        self.hits = (self.hits + u32::from(was_read_ahead)).min(SwapWindow::HITS_MAX);
    }

    /// A slot that was read ahead was wanted.
    pub fn found_slot(&mut self) {
        self.hits = self.hits.saturating_add(1);
    }

    fn next_size(&self, at: u64, most: u64) -> u64 {
        let is_next = self.previous.is_some_and(|previous| at.abs_diff(previous) == 1);
        let size = match self.hits {
            0 if is_next => 2,
            0 => 1,
            hits => (u64::from(hits) + 2).next_power_of_two().max(4),
        };
        size.min(most).max(self.size / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a mapping whose pages are all swapped out, as first page and end, and what is found of them.
    #[test]
    fn windows_are_those_of_the_table() {
        let mut window = SwapWindow::default();
        let miss = |window: &mut SwapWindow, at: u64| {
            let (size, before) = window.around_page(at, 8);
            (at - before, at - before + size - 1)
        };
        let at = [10, 100, 300, 500, 700, 701].map(|at| miss(&mut window, at));
        assert_eq!(at, [(7, 14), (99, 102), (300, 301), (500, 500), (700, 700), (701, 702)]);
        window.found_page(702, true);
        assert_eq!(miss(&mut window, 703), (703, 706));
        (704..=706).for_each(|at| window.found_page(at, true));
        assert_eq!(miss(&mut window, 707), (707, 714));
    }

    #[test]
    fn a_reader_who_walks_backwards_gets_what_lies_before() {
        let mut window = SwapWindow::default();
        window.around_page(100, 8);
        (window.size, window.hits) = (1, 0);
        assert_eq!(window.around_page(99, 8), (2, 1));
    }

    #[test]
    fn a_window_is_at_most_the_maximum_and_at_least_half_of_the_last() {
        let mut window = SwapWindow::default();
        assert_eq!(window.around_slot(100, 4), 4);
        assert_eq!(window.around_slot(900, 4), 2);
        assert_eq!(window.around_slot(300, 4), 1);
        (0..40).for_each(|_| window.found_slot());
        assert_eq!(window.around_slot(7, 64), 64);
        let mut window = SwapWindow::default();
        (0..100).for_each(|at| window.found_page(at, true));
        assert_eq!(window.hits, SwapWindow::HITS_MAX);
    }
}
