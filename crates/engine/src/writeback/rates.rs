//! How fast a device writes, and how fast its writers may dirty pages. [machine 5.5, 5.6]
//!
//! A task that dirties should be as fast as the device, divided by the tasks that dirty. The number of these tasks is not
//! counted. Instead each wb has a rate that all of its writers get (`dirty_ratelimit`). If pages are dirtied faster than they
//! are written, the rate is too high by just that factor. Such a rule alone would keep any number of dirty pages. So the
//! *position* of that number between free run and limit multiplies the rate: by 2 where writers are let run, by 0 at the limit.
//!
//! A rate is learnt when a writer is slowed down or a flusher works. A writer of a group updates the rate twice, for the machine and for the
//! group. Each update is based on the balanced rate that the one before has found. So if the machine slows a writer down, and its group is
//! below its limit, the writer keeps about the rate at which its wb writes. Without the second update its rate would sink to a page a
//! second, and stay. *Where it differs:* recorded kernels also learn 200 ms after a wb has begun or ended to have something in flight. With
//! that, recorded runs are met less well: docs/results/data/fidelity.md has the figures.
//!
//! Rates are pages per second, times are ticks, positions are fixed point (1024 is 1.0).

/// 1.0 of a position.
pub(super) const ONE: i64 = 1 << 10;
/// Dirty pages of a device that are too few to wait for: what the counters of its CPUs may be off by.
pub(super) const TINY: u64 = 8;
/// What a device is taken to write, and a task allowed to dirty, before anything is known: 100 MiB a second.
const RATE_AT_FIRST: u64 = 25_600;

/// The rates of a wb, and what they are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Pages dirtied and written since the beginning.
    pub(super) dirtied: u64,
    pub(super) written: u64,
    /// Pages dirtied and written by the last update, and its tick.
    dirtied_then: u64,
    written_then: u64,
    updated_at: u64,
    /// What the device writes.
    bandwidth: u64,
    /// What the device writes, smoothed.
    pub(super) average: u64,
    /// What each writer may dirty.
    pub(super) ratelimit: u64,
    /// The last value by which each of them would have got an equal part.
    balanced: u64,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates {
            dirtied: 0,
            written: 0,
            dirtied_then: 0,
            written_then: 0,
            updated_at: 0,
            bandwidth: RATE_AT_FIRST,
            average: RATE_AT_FIRST,
            ratelimit: RATE_AT_FIRST,
            balanced: RATE_AT_FIRST,
        }
    }
}

/// Where the dirty pages of a domain and of one of its wbs stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) freerun: u64,
    pub(super) thresh: u64,
    /// The hard limit, no less than `thresh`.
    pub(super) limit: u64,
    pub(super) dirty: u64,
    /// The wb's share of `thresh`, and its own dirty pages.
    pub(super) wb_thresh: u64,
    pub(super) wb_dirty: u64,
    /// If the device has a strict limit: up to here no writer of the device is throttled.
    pub(super) wb_freerun: Option<u64>,
}

impl Position {
    /// Returns the setpoint of dirty pages.
    pub(super) fn setpoint(&self) -> u64 {
        (self.freerun + self.limit) / 2
    }

    /// By how much the rate is to be multiplied. `average`: what the device writes.
    pub(super) fn ratio(&self, average: u64) -> i64 {
        if self.dirty >= self.limit {
            return 0;
        }
        let (dirty, limit, setpoint) = (self.dirty as i64, self.limit as i64, self.setpoint() as i64);
        let ratio = flat_in_the_middle(setpoint, dirty, limit);
        if let Some(freerun) = self.wb_freerun {
            return self.strict_ratio(ratio, freerun as i64);
        }
        // A device that writes a small share of all shall not have all of the dirty pages.
        let thresh = self.thresh as i64;
        let wb_thresh = (self.wb_thresh as i64).min(thresh).max((limit - dirty) / 8);
        let share = (wb_thresh << 16) / (thresh | 1);
        let own_setpoint = (setpoint * share) >> 16;
        // A share may be above a threshold that has just come down, while the limit follows slowly: then there is no room to fall in.
        let span = (((thresh - wb_thresh + 8 * average as i64) * share) >> 16).max(0);
        let (wb_dirty, zero) = (self.wb_dirty as i64, own_setpoint + span);
        let ratio = if wb_dirty < zero - span / 4 {
            ratio * (zero - wb_dirty) / ((zero - own_setpoint) | 1)
        } else {
            ratio / 4
        };
        // Nor shall it run dry.
        let half = wb_thresh / 2;
        if wb_dirty >= half {
            ratio
        } else if wb_dirty > half / 8 {
            ratio * half / wb_dirty
        } else {
            ratio * 8
        }
    }
}

impl Position {
    /// The slower of the machine's ratio and the device's own. A few pages are always let through.
    fn strict_ratio(&self, ratio: i64, freerun: i64) -> i64 {
        match (self.wb_dirty, self.wb_thresh) {
            (0..TINY, _) => (2 * ratio).min(2 * ONE),
            (dirty, thresh) if dirty >= thresh => 0,
            (dirty, thresh) => ratio.min(flat_in_the_middle(freerun, dirty as i64, thresh as i64)),
        }
    }
}

/// The factor for a rate: 1 at the setpoint, 2 far below, 0 at the limit; flat around the setpoint, steep towards both ends.
fn flat_in_the_middle(setpoint: i64, dirty: i64, limit: i64) -> i64 {
    let x = (setpoint - dirty) * ONE / ((limit - setpoint) | 1);
    (x * x / ONE * x / ONE + ONE).clamp(0, 2 * ONE)
}

impl Rates {
    /// The rates of a wb that is created at this tick: the time before is not a measure of the device.
    pub(super) fn since(ticks: u64) -> Rates {
        Rates { updated_at: ticks, ..Rates::default() }
    }

    /// A wb that had nothing under writeback begins to write: its idle time is not a measure of the device.
    pub(super) fn begin_writeback(&mut self, ticks: u64, hz: u64) {
        if ticks > self.updated_at + hz {
            self.restart(ticks);
        }
    }

    /// The next update is measured from this tick on.
    pub(super) fn restart(&mut self, ticks: u64) {
        (self.dirtied_then, self.written_then, self.updated_at) = (self.dirtied, self.written, ticks);
    }

    /// Returns true if an update is due.
    pub(super) fn is_due(&self, ticks: u64, interval: u64) -> bool {
        ticks >= self.updated_at + interval
    }

    /// Sets the rate of the writers from the position in one of their domains, before the other values are updated. A task that is slowed
    /// down does so for each of its domains, and the last update counts. But each update starts from the balanced rate of the one before.
    /// So a full domain lowers the rate in small steps while the other is below its limit. [recorded: ground truth `ft-dirty`]
    pub(super) fn learn_ratelimit(&mut self, ticks: u64, hz: u64, position: &Position, ratio: i64) {
        let elapsed = self.elapsed(ticks).max(1);
        self.update_ratelimit(position, ratio, (self.dirtied - self.dirtied_then) * hz / elapsed);
    }

    /// Learns from what was written since the last update.
    pub(super) fn update(&mut self, ticks: u64, hz: u64) {
        let elapsed = self.elapsed(ticks);
        if elapsed == 0 {
            return;
        }
        self.update_bandwidth((self.written - self.written_then) * hz, elapsed, hz);
        self.restart(ticks);
    }

    /// The rates at which pages were dirtied since the last update, and a task may dirty them, as the next update sees them.
    pub(super) fn traced(&self, ratio: i64, hz: u64, elapsed: u64) -> (u64, u64) {
        let dirty_rate = (self.dirtied - self.dirtied_then) * hz / elapsed.max(1);
        (dirty_rate, (self.ratelimit as i64 * ratio / ONE) as u64 + 1)
    }

    /// What was written lately, and the balanced rate.
    pub(super) fn traced_now(&self) -> [u64; 2] {
        [self.bandwidth, self.balanced]
    }

    /// Ticks since the last update.
    pub(super) fn elapsed(&self, ticks: u64) -> u64 {
        ticks.saturating_sub(self.updated_at)
    }

    /// `pages`: written since the last update, times the ticks in a second.
    fn update_bandwidth(&mut self, pages: u64, elapsed: u64, hz: u64) {
        let period = (3 * hz).next_power_of_two();
        let old = self.bandwidth;
        if elapsed > period {
            self.bandwidth = pages / elapsed;
            self.average = self.bandwidth;
        } else {
            self.bandwidth = (pages + old * (period - elapsed)) / period;
            // Follows only where both the last value and this one lie on the same side of it.
            if self.average > old && old >= self.bandwidth {
                self.average -= (self.average - old) / 8;
            } else if self.average < old && old <= self.bandwidth {
                self.average += (old - self.average) / 8;
            }
        }
        self.average = self.average.max(1);
    }

    fn update_ratelimit(&mut self, position: &Position, ratio: i64, dirty_rate: u64) {
        let task_rate = (self.ratelimit as i64 * ratio / ONE) as u64 + 1;
        let balanced = (task_rate * self.average / dirty_rate.max(1)).min(self.average);
        let of_three = [balanced, self.balanced, task_rate];
        let step = if position.dirty < position.setpoint() {
            of_three.into_iter().min().unwrap_or(0).saturating_sub(self.ratelimit)
        } else {
            self.ratelimit.saturating_sub(of_three.into_iter().max().unwrap_or(0))
        };
        // Small steps are mostly noise.
        let shift = self.ratelimit / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.ratelimit = if self.ratelimit < balanced {
            self.ratelimit + step
        } else {
            self.ratelimit.saturating_sub(step)
        };
        self.ratelimit = self.ratelimit.max(1);
        self.balanced = balanced;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine's position where the wb has all of it.
    fn at(dirty: u64) -> Position {
        let (freerun, thresh, limit) = (15_000, 20_000, 20_000);
        Position { freerun, thresh, limit, dirty, wb_thresh: 20_000, wb_dirty: dirty, wb_freerun: None }
    }

    #[test]
    fn the_ratio_is_two_at_free_run_one_at_the_setpoint_and_none_at_the_limit() {
        // The factor of the device is 1 at its own setpoint.
        let ratio = |dirty| at(dirty).ratio(1 << 20);
        assert!((2 * ONE - 8..=2 * ONE + 8).contains(&ratio(15_000)), "{}", ratio(15_000));
        assert!((ONE - 1..=ONE).contains(&ratio(17_500)), "{}", ratio(17_500));
        assert!(ratio(19_900) < ONE / 8, "{}", ratio(19_900));
        assert_eq!([20_000, 30_000].map(ratio), [0, 0]);
    }

    #[test]
    fn a_device_far_above_its_share_gets_a_quarter_and_one_that_runs_dry_eight_times() {
        let position = Position { wb_thresh: 5_000, wb_dirty: 17_500, ..at(17_500) };
        assert_eq!(position.ratio(1), ONE / 4);
        let dry = Position { wb_dirty: 100, ..position };
        let full = Position { wb_dirty: 2_500, ..position };
        assert!(dry.ratio(1) > 7 * full.ratio(1), "{} {}", dry.ratio(1), full.ratio(1));
    }

    #[test]
    fn a_ratio_is_never_negative_even_where_the_threshold_has_come_down_to_a_fraction_of_the_limit() {
        for (thresh, wb_dirty, average) in
            [(40, 10, 1), (40, 30, 1), (1, 0, 1), (0, 0, 1), (40, 5_000, 1), (40, 10, 60)]
        {
            let fallen = Position {
                freerun: thresh / 2,
                thresh,
                limit: 8_000,
                dirty: 5_000,
                wb_thresh: thresh,
                wb_dirty,
                wb_freerun: None,
            };
            let ratio = fallen.ratio(average);
            assert!((0..1 << 40).contains(&ratio), "{ratio}: {fallen:?}");
        }
    }

    #[test]
    fn a_strict_device_is_held_to_its_own_share_whatever_the_machine_has() {
        let at = |wb_dirty| {
            let own = Position { wb_thresh: 1_000, wb_dirty, wb_freerun: Some(750), ..at(0) };
            own.ratio(1 << 20)
        };
        assert_eq!([at(0), at(7), at(8)], [2 * ONE; 3], "nothing is dirty on other devices");
        assert!((ONE + 900..2 * ONE).contains(&at(500)), "{}", at(500));
        assert_eq!([at(750), at(1_000), at(5_000)], [ONE, 0, 0]);
        assert!((1..ONE / 2).contains(&at(980)), "{}", at(980));
        let others =
            Position { wb_thresh: 1_000, wb_dirty: 500, wb_freerun: Some(750), ..super::tests::at(19_000) };
        assert!(others.ratio(1 << 20) < ONE, "others have dirtied too much");
    }

    #[test]
    fn a_steady_device_is_known_after_some_seconds() {
        let mut rates = Rates::default();
        for tick in 1..=8000 {
            rates.written += 20;
            if rates.is_due(tick, 50) {
                rates.update(tick, 250);
            }
        }
        assert!((4_900..=5_100).contains(&rates.bandwidth), "{}", rates.bandwidth);
        assert!((4_900..=5_600).contains(&rates.average), "{}", rates.average);
    }

    /// Of `ft-dirty.classic.t`, at 464.249 s and at 466.217 s: one line of the trace for the machine, which has room, and one for the group.
    #[test]
    fn a_rate_falls_as_recorded_where_a_group_is_full_and_the_machine_is_not() {
        // (average, rate, balanced by the group before, pages dirtied in 51 ticks, rate times the machine's ratio), and what is expected:
        // the rate after the group's update, and the balanced rates of both.
        let recorded = [
            ((22_704, 25_598, 614, 24, 494_561), (25_575, [22_704, 194])),
            ((14_655, 23_234, 399, 24, 491_362), (22_697, [14_655, 125])),
        ];
        for ((average, ratelimit, balanced, dirtied, task_rate), (after, of_both)) in recorded {
            let mut rates = Rates { average, ratelimit, balanced, dirtied, ..Rates::default() };
            let full = Position { dirty: 30_000, ..at(0) };
            rates.learn_ratelimit(51, 250, &at(5_000), task_rate * ONE / ratelimit as i64);
            assert_eq!((rates.ratelimit, rates.balanced), (ratelimit, of_both[0]), "the machine has room");
            rates.learn_ratelimit(51, 250, &full, 0);
            assert_eq!((rates.ratelimit, rates.balanced), (after, of_both[1]));
        }
    }

    #[test]
    fn a_writer_whose_group_has_room_keeps_the_rate_of_its_device_where_the_machine_has_none() {
        let rate_after = |group: Option<&Position>| {
            let mut rates = Rates { average: 40, bandwidth: 40, ..Rates::default() };
            for update in 1..=500 {
                rates.dirtied += 1;
                rates.written += 8;
                rates.learn_ratelimit(update * 50, 250, &at(19_990), 0);
                if let Some(group) = group {
                    rates.learn_ratelimit(update * 50, 250, group, 2 * ONE);
                }
                rates.update(update * 50, 250);
            }
            rates.ratelimit
        };
        assert!((40..=50).contains(&rate_after(Some(&at(100)))), "{}", rate_after(Some(&at(100))));
        assert!(
            rate_after(None) <= 10,
            "by the machine alone it sinks to what is dirtied: {}",
            rate_after(None)
        );
    }

    #[test]
    fn a_wb_that_comes_to_be_late_has_not_been_slow_until_then() {
        let learnt = |mut rates: Rates| {
            rates.written += 64;
            rates.update(15_064, 250);
            rates.average
        };
        assert_eq!(learnt(Rates::since(15_000)), RATE_AT_FIRST, "one interval moves no average");
        assert_eq!(learnt(Rates::since(0)), 1);
    }

    #[test]
    fn a_pause_longer_than_the_period_leaves_only_what_came_after() {
        let mut rates = Rates { written: 4_000, ..Rates::default() };
        rates.update(2_000, 250);
        assert_eq!((rates.bandwidth, rates.average), (500, 500));
    }

    #[test]
    fn writers_who_dirty_four_times_what_is_written_are_slowed_to_a_quarter() {
        let mut rates =
            Rates { average: 1_000, bandwidth: 1_000, ratelimit: 1_000, balanced: 1_000, ..Rates::default() };
        let position = at(19_500);
        for update in 1..=200 {
            // Four writers, each at its rate, and a device that writes 1,000 a second.
            let ratio = position.ratio(rates.average);
            rates.dirtied += 4 * (rates.ratelimit * ratio as u64 / ONE as u64) / 5;
            rates.written += 200;
            rates.learn_ratelimit(update * 50, 250, &position, ratio);
            rates.update(update * 50, 250);
        }
        assert!((225..=325).contains(&rates.ratelimit), "{}", rates.ratelimit);
    }
}
