//! A run that writes to files of one group: its pages are dirty until the flusher has written them, and who dirties too many waits.
//!
//! - **Clock.** The simulation computes how long the program waited until pages were written, but the recorded clock contains this wait. A
//!   window therefore begins no earlier than recorded, but within a window the program has its own pace. It is that of the fastest window,
//!   in which nothing delayed the program.
//! - **The flusher** had the same CPU, an emulated one, and took most of the time of a write. A traced run of the same workload took 61 us
//!   per page (median; 32 to 160 us over 24 turns of 100 pages or more). The disk, a file in memory, had written each page before the next
//!   one came: `nr_writeback` was at most 3 in every reading.
//! - **Writes** are of whole pages by write(2), so that nothing is read for them, or stores to a mapping.

use pageout_engine::Nanos;
use pageout_sim::cost::Costs;

use super::super::recording::Run;

/// Time that the flusher takes for a page.
const WRITE_PAGE: u64 = 61_000;

pub(super) fn costs() -> Costs {
    Costs { write_page: WRITE_PAGE, ..Costs::free() }
}

/// The duration of an access without delays.
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
