//! A run that writes to files of one group: its pages are dirty until the flusher has written them, and who dirties too many waits.
//!
//! - **Clock.** How long the program waited until pages were written is what the simulation is to find, and the recorded clock contains it.
//!   So no window begins before it was recorded, but within one the program goes at a pace of its own. It is that of the window in
//!   which the program was fastest, as nothing held it up then.
//! - **The flusher** had the same CPU, an emulated one, and took most of the time that a write took: 61 us a page in the median where
//!   the same workload was traced (32 to 160 us over 24 turns of 100 pages or more). The disk, a file in memory, had written a page
//!   before the next one was there: `nr_writeback` was 3 at most whenever it was read.
//! - **Writes** are of whole pages by write(2), so that nothing is read for them, or stores to a mapping.

use pageout_engine::Nanos;
use pageout_sim::cost::Costs;

use super::super::recording::Run;

/// Time that the flusher takes for a page.
const WRITE_PAGE: u64 = 61_000;

pub(super) fn costs() -> Costs {
    Costs { write_page: WRITE_PAGE, ..Costs::free() }
}

/// What an access takes where nothing holds the program up.
pub(super) fn pace(run: &Run) -> Nanos {
    let mut before = (0, 0.0);
    let mut fastest = f64::INFINITY;
    for window in &run.windows {
        let (op, t) = std::mem::replace(&mut before, (window.op, window.t));
        fastest = fastest.min((window.t - t) / (window.op - op) as f64);
    }
    Nanos((fastest * Nanos::SECOND.0 as f64) as u64)
}

/// A timetable by which only the first access of each window has to wait for its time. `points`: these accesses, and the end.
pub(super) fn window_starts(points: &[(u64, Nanos)]) -> Vec<(u64, Nanos)> {
    let mut starts = Vec::with_capacity(2 * points.len());
    for pair in points.windows(2) {
        let (first, next) = (pair[0], pair[1]);
        starts.push(first);
        if next.0 > first.0 + 1 {
            starts.push((next.0 - 1, first.1));
        }
    }
    starts.extend(points.last());
    starts
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_fastest_window() {
        let windows =
            serde_json::json!([{ "op": 10, "t": 1.0 }, { "op": 30, "t": 1.5 }, { "op": 40, "t": 9.0 }]);
        assert_eq!(pace(&run(serde_json::json!({ "windows": windows }))), Nanos(25_000_000));
    }

    #[test]
    fn only_the_first_access_of_a_window_waits_for_the_clock() {
        let points = [(0, Nanos(0)), (10, Nanos(700)), (11, Nanos(900))];
        let expected = [(0, Nanos(0)), (9, Nanos(0)), (10, Nanos(700)), (11, Nanos(900))];
        assert_eq!(window_starts(&points), expected);
    }
}
