//! Events sorted by time: each CPU writes a buffer of its own, and what merges the buffers may be late.
//!
//! Whose call a batch belongs to is known from what came before it, so the order matters. A window of events waits here; the
//! earliest leaves when the window is full. An event older than one that has left is reported as late.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events that wait: some 100 ms of a machine in deep reclaim, and a few MiB.
const WINDOW: usize = 16_384;

/// Sorts what nearly is in order.
pub(super) struct Window<T> {
    waiting: BinaryHeap<Waiting<T>>,
    arrived: u64,
    /// The time of the last that left.
    left_ns: u64,
    latest_ns: u64,
    displaced: u64,
}

struct Waiting<T> {
    time_ns: u64,
    arrival: u64,
    what: T,
}

impl<T> Window<T> {
    pub(super) fn new() -> Window<T> {
        Window { waiting: BinaryHeap::new(), arrived: 0, left_ns: 0, latest_ns: 0, displaced: 0 }
    }

    /// Takes one, and says whether it is too late.
    pub(super) fn push(&mut self, time_ns: u64, what: T) -> bool {
        self.displaced += u64::from(time_ns < self.latest_ns);
        self.latest_ns = self.latest_ns.max(time_ns);
        self.arrived += 1;
        self.waiting.push(Waiting { time_ns, arrival: self.arrived, what });
        time_ns < self.left_ns
    }

    /// The earliest, if the window is full or nothing more is `to_come`.
    pub(super) fn pop(&mut self, to_come: bool) -> Option<T> {
        if to_come && self.waiting.len() <= WINDOW {
            return None;
        }
        let Waiting { time_ns, what, .. } = self.waiting.pop()?;
        self.left_ns = self.left_ns.max(time_ns);
        Some(what)
    }

    /// How many came after a later one.
    pub(super) fn displaced(&self) -> u64 {
        self.displaced
    }
}

// The heap has its greatest at the top, so the earliest is the greatest.
impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Waiting<T>) -> Ordering {
        (other.time_ns, other.arrival).cmp(&(self.time_ns, self.arrival))
    }
}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Waiting<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Waiting<T>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Waiting<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_within_the_window_leaves_by_time_and_equals_leave_as_they_came() {
        let mut window = Window::new();
        for (at, time) in [3, 1, 2, 1, 3].into_iter().enumerate() {
            assert!(!window.push(time, (time, at)));
        }
        assert_eq!(window.pop(true), None);
        let left: Vec<(u64, usize)> = std::iter::from_fn(|| window.pop(false)).collect();
        assert_eq!(left, [(1, 1), (1, 3), (2, 2), (3, 0), (3, 4)]);
        assert_eq!(window.displaced(), 3);
    }

    #[test]
    fn what_is_older_than_one_that_has_left_is_too_late() {
        let mut window = Window::new();
        for time in 10..=10 + WINDOW as u64 {
            assert!(!window.push(time, time));
        }
        assert_eq!(window.pop(true), Some(10));
        assert_eq!(window.pop(true), None);
        assert!(window.push(9, 9) && !window.push(10, 10));
    }
}
