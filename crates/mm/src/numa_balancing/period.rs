//! Scan periods of NUMA balancing: how often the scanner marks entries of a task's memory. [tiering 2.1, 2.2]
//!
//! ```text
//!   windows     = resident pages / scan size, at least one: so many turns see all of a task's memory once
//!   period      between scan_period_min / windows and scan_period_max / windows, and never so short that more than
//!               2560 MiB of page-table entries were marked in a second
//! ```
//! A task whose pages are where they should be is left alone more and more. One whose faults say otherwise is checked more often.
//!
//! Initial periods: the first thread of an address space computes its own when it is due for the first time [tiering-zswap-6.12 3.1]. A thread that
//! joins it keeps `scan_delay` as its period until faults adapt that. No source documents this; published runs of 64 threads show it. In the third
//! posting of pghot, mode 3, balancing promotes what it has scanned: 29.3 scans of 256 MiB in 29.8 s. In modes 1 and 2 a page that has to fault once
//! more costs a pass over 8 GiB. Time with and without that one fault gives the length of the pass and the gain of promotion: 35 and 34 s for 32
//! scans. That is one a second, three times, where a computed period is 100 ms or less. Single threads were recorded, too, but with so little memory
//! that both rules give 1000 ms (`docs/results/data/pghot.md`, "How often memory is scanned").

/// A second's worth of marking at most, in MiB.
const SCAN_MB_MAX: u64 = 2560;
/// A period changes by this number of steps of a tenth of it.
const SLOTS: u64 = 10;
/// From so many faults in ten on, memory is where it should be.
const THRESHOLD: u64 = 7;

/// Scan knobs that an administrator sets (`scan_period_min_ms` and its like).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanKnobs {
    /// The shortest period. Unit: milliseconds.
    pub period_min_ms: u64,
    /// The longest period. Unit: milliseconds.
    pub period_max_ms: u64,
    /// Memory that a scan marks. Unit: MiB.
    pub size_mb: u64,
}

impl ScanKnobs {
    /// Pages that one turn of a scan marks.
    pub fn pages(&self) -> u64 {
        self.size_mb << 8
    }

    /// Turns that see all of a task with this number of resident pages.
    fn windows(&self, rss: u64) -> u64 {
        rss.max(1).div_ceil(self.pages())
    }

    /// The shortest period of a task with this number of resident pages, in milliseconds.
    pub fn period_min(&self, rss: u64) -> u64 {
        let floor = 1000 / (SCAN_MB_MAX / self.size_mb).max(1);
        floor.max(self.period_min_ms / self.windows(rss))
    }

    /// The longest scan period of an address space of this size.
    pub fn period_max(&self, rss: u64) -> u64 {
        self.period_min(rss).max(self.period_max_ms / self.windows(rss))
    }

    /// The period after one in which a task's faults were these.
    #[doc(alias = "update_task_scan_period")]
    pub fn adapted(&self, period: u64, rss: u64, faults: &Faults) -> u64 {
        let (min, max) = (self.period_min(rss), self.period_max(rss));
        if faults.are_in_vain() {
            // It sleeps, or all that it does is where nothing is to be gained; or nodes are too full to take more.
            return max.min(2 * period);
        }
        let slot = period.div_ceil(SLOTS);
        let share = |of: u64, other: u64| SLOTS * of / (of + other).max(1);
        let local = share(faults.local, faults.remote);
        let private = share(faults.private, faults.shared);
        let by = |ratio: u64| (ratio - THRESHOLD).max(1) * slot;
        let adapted = if private >= THRESHOLD {
            period + by(private)
        } else if local >= THRESHOLD {
            period + by(local)
        } else {
            // Few of its faults are local and many of its pages are shared: the more so, the sooner they are checked again.
            period.saturating_sub((THRESHOLD - local.max(private)) * slot)
        };
        adapted.clamp(min, max)
    }
}

/// Pages of a task's hint faults since its period was last looked at. Those that leave a page on a slow tier count for nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Faults {
    /// On the node of the CPU that took the fault, or elsewhere.
    pub local: u64,
    /// Those of pages on another node.
    pub remote: u64,
    /// Used by this task alone, or by others as well.
    pub private: u64,
    /// Those of pages that several threads use.
    pub shared: u64,
    /// A page that was to move could not.
    pub has_failed: bool,
}

impl Faults {
    /// Returns true if a thread's next pass should come later: none was local or shared, or a page could not move.
    pub fn are_in_vain(&self) -> bool {
        self.local + self.shared == 0 || self.has_failed
    }

    /// Returns the faults and begins a new count. `keeps_places`: the counts of local, remote and failed ones go on.
    pub fn restart(&mut self, keeps_places: bool) -> Faults {
        let next = Faults { private: 0, shared: 0, ..*self };
        std::mem::replace(self, if keeps_places { next } else { Faults::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: ScanKnobs = ScanKnobs { period_min_ms: 1000, period_max_ms: 60_000, size_mb: 256 };

    #[test]
    fn the_shortest_period_is_that_of_one_window_and_falls_to_the_floor() {
        assert_eq!(DEFAULT.pages(), 65_536);
        let of = |rss| (DEFAULT.period_min(rss), DEFAULT.period_max(rss));
        assert_eq!(of(0), (1000, 60_000));
        assert_eq!(of(65_536), (1000, 60_000));
        assert_eq!(of(65_537), (500, 30_000), "two windows");
        assert_eq!(of(65_536 * 10), (100, 6000));
        assert_eq!(of(65_536 * 20), (100, 3000), "2560 MiB a second are enough");
        assert_eq!(of(65_536 * 1000), (100, 100));
        let large = ScanKnobs { size_mb: 4096, ..DEFAULT };
        assert_eq!(large.period_min(1), 1000, "a turn larger than a second's worth takes a second");
    }

    #[test]
    fn a_period_doubles_up_to_its_maximum_where_no_fault_was_local_or_shared() {
        let promoted = Faults { remote: 500, private: 500, ..Faults::default() };
        let mut period = 1000;
        let mut periods = Vec::new();
        for _ in 0..7 {
            period = DEFAULT.adapted(period, 1, &promoted);
            periods.push(period);
        }
        assert_eq!(periods, [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        let failed = Faults { local: 1, remote: 99, shared: 100, has_failed: true, ..Faults::default() };
        assert_eq!(DEFAULT.adapted(3000, 1, &failed), 6000);
    }

    /// The bug that 6.12.117 has fixed.
    #[test]
    fn period_stays_long_after_a_failure_unless_the_counts_restart() {
        let failed = Faults { local: 50, shared: 50, has_failed: true, ..Faults::default() };
        let later = |keeps: bool| {
            let (mut faults, mut period) = (failed, 1000);
            for _ in 0..3 {
                period = DEFAULT.adapted(period, 1, &faults.restart(keeps));
                faults.local += 50;
                faults.shared += 50;
            }
            period
        };
        assert_eq!((later(true), later(false)), (8000, 3380));
    }

    #[test]
    fn a_period_grows_with_private_or_local_faults_and_shrinks_without() {
        let after = |local, remote, private, shared| {
            DEFAULT.adapted(5000, 1, &Faults { local, remote, private, shared, has_failed: false })
        };
        assert_eq!(after(0, 100, 70, 30), 5500, "at the threshold: one slot");
        assert_eq!(after(0, 100, 99, 1), 6000, "9 in ten: two slots");
        assert_eq!(after(80, 20, 10, 90), 5500, "8 of ten are local");
        assert_eq!(after(50, 50, 10, 90), 4000, "5 of ten: two slots less");
        assert_eq!(after(0, 100, 0, 100), 1500, "seven slots less");
        assert_eq!(DEFAULT.adapted(1200, 1, &Faults { shared: 1, remote: 1, ..Faults::default() }), 1000);
    }
}
