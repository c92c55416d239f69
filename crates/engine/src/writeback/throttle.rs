//! `balance_dirty_pages`: a task that dirties pages sleeps, so that no more are dirtied than are written. [machine 5.3, 5.4]
//!
//! ```text
//!   pages dirtied since the last look < limit ─► go on            (32 at first, then as the last look says)
//!        │
//!        ▼ rounds
//!   free run: everything below (thresh + background) / 2 ─► go on, and look again after ~sqrt(room) pages
//!        │
//!        ▼ rate = dirty_ratelimit x position             of the machine or of the group, whichever is the slower
//!   pages / rate = the time that they should have taken; what of it is left is slept, 200 ms at most
//! ```
//! The check comes before the next write, not after the one that dirtied too much: no task has to wait for a write that it
//! does not make any more. A hit on a page that is dirty already dirties nothing and is not checked.
//!
//! A device with a strict limit has its own free run, below its share of what may be dirty. Its writers are throttled beyond it even
//! if the machine is below its limit. That keeps a slow or untrusted device from filling memory with what it will not write soon.
//!
//! A group may have a floor (`memory.dirty_min`, proposed in 2026). While it has fewer dirty pages than that, only its own limits throttle
//! its tasks, not what others have dirtied.
//!
//! A writer to a device whose writes fail may get an error instead (`failing.rs`).
//!
//! A real-time task has limits of its own, a quarter and more above those of others: it shall not wait for what they have dirtied. So they are
//! held up before it is.

use crate::core::Core;
use crate::stat::{StaleDecision, Stat};
use crate::state::State;
use crate::units::{CpuId, FileId, MemcgId, Nanos, WbId};
use crate::writeback::failing::StuckPages;
use crate::writeback::limits::Limits;
use crate::writeback::rates::{ONE, Position, TINY};
use crate::writeback::writer::Writer;
use pageout_rules::writeback::DirtyRule;

/// The dirty throttle of a task: its counts and pauses. Ticks are the machine's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirtyThrottle {
    /// Pages dirtied since the last look, and after how many the next is due.
    pub(super) nr_dirtied: u64,
    nr_dirtied_pause: u64,
    /// When its last sleep was over, or should have been.
    paused_when: i64,
    /// The task's limits are higher.
    pub(crate) is_real_time: bool,
    /// The next access of the task waits for no limit.
    pub(crate) is_spared: bool,
    /// The last check ended with an error: the next write is checked, however little the task has dirtied.
    is_refused: bool,
    /// In 2010: what it has written of what it is to write.
    pub(super) writer: Option<Writer>,
    /// The task sleeps for a number of ticks, and is checked again after a number of pages. `leaves`: that
    /// was all.
    asleep: Option<Asleep>,
}

#[derive(Clone, Copy, Debug)]
struct Asleep {
    now: i64,
    pause: i64,
    next_look: u64,
    leaves: bool,
}

/// The outcome of one round of `balance_dirty_pages`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThrottleStep {
    Leave,
    /// Sleep, then look again.
    Sleep(Nanos),
    /// The device does not take what is dirty: the write fails. (`failing.rs`)
    Fail,
}

/// Pages between two looks, at first and at least when a device has more than its share.
const LOOK_AT_FIRST: u64 = 32;
const LOOK_WHEN_EXCEEDED: u64 = 8;
/// The minimum number of pages that a sleep should cover.
const PAUSE_PAGES: u64 = 32;

impl DirtyThrottle {
    /// Pages since the last look, after how many the next is due, and ticks since the last sleep.
    pub(super) fn traced(&self, now: i64) -> (u64, u64, i64) {
        let think = if self.paused_when == 0 { 0 } else { now - self.paused_when };
        (self.nr_dirtied, self.nr_dirtied_pause, think)
    }

    /// The task gets an error instead of a pause.
    pub(super) fn refuse(&mut self) -> ThrottleStep {
        self.is_refused = true;
        ThrottleStep::Fail
    }
}

impl Default for DirtyThrottle {
    fn default() -> DirtyThrottle {
        DirtyThrottle {
            nr_dirtied: 0,
            nr_dirtied_pause: LOOK_AT_FIRST,
            paused_when: 0,
            is_real_time: false,
            is_spared: false,
            is_refused: false,
            writer: None,
            asleep: None,
        }
    }
}

/// The sleeps that make sense at a rate. Unit: ticks, and pages for the next look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pauses {
    least: i64,
    most: i64,
    next_look: u64,
}

/// The statistics of a group that its limits depend on: as of the last flush, and live.
type StaleAndLive = [(Stat, u64, u64); 4];

impl Core {
    /// A task has dirtied a page.
    pub(crate) fn note_dirtied(&mut self, throttle: &mut DirtyThrottle, cpu: CpuId) {
        throttle.nr_dirtied += 1;
        *self.writeback.dirtied_by_cpu.entry(cpu.0).or_default() += 1;
    }

    /// A task exits. The pages that it has dirtied since its last check are left to the next writer on its CPU, or short-lived tasks would
    /// never be checked.
    pub(crate) fn dirtier_exits(&mut self, throttle: &mut DirtyThrottle, cpu: CpuId) {
        let left = std::mem::take(&mut throttle.nr_dirtied);
        if left > 0 {
            *self.writeback.left_by_cpu.entry(cpu.0).or_default() += left;
        }
    }

    /// Returns true if a task is due for a check before it dirties another page of this file.
    #[doc(alias = "balance_dirty_pages_ratelimited")]
    pub(crate) fn is_look_due(&mut self, throttle: &mut DirtyThrottle, file: FileId, cpu: CpuId) -> bool {
        if std::mem::take(&mut throttle.is_refused) {
            return true;
        }
        let exceeded =
            self.mm.memory.file(file).inode.wb.is_some_and(|wb| self.writeback.wb(wb).dirty_exceeded);
        let most = if exceeded { LOOK_WHEN_EXCEEDED } else { u64::MAX };
        let mut limit = throttle.nr_dirtied_pause.min(most);
        if self.writeback.ratelimit_pages == 0 {
            self.set_ratelimit();
        }
        if self.mm.dirty_rule() == DirtyRule::Writes {
            let look = self.mm.writer_look(exceeded);
            let by_cpu = self.writeback.dirtied_by_cpu.entry(cpu.0).or_default();
            let is_due = *by_cpu >= look;
            if is_due {
                *by_cpu = 0;
            }
            return is_due;
        }
        let by_cpu = self.writeback.dirtied_by_cpu.entry(cpu.0).or_default();
        if throttle.nr_dirtied >= limit {
            // The task will be checked for its own pages.
            *by_cpu = 0;
        } else if *by_cpu >= self.writeback.ratelimit_pages {
            *by_cpu = 0;
            limit = 0;
        }
        if throttle.nr_dirtied < limit
            && let Some(left) = self.writeback.left_by_cpu.get_mut(&cpu.0)
        {
            let taken = (*left).min(limit - throttle.nr_dirtied);
            *left -= taken;
            throttle.nr_dirtied += taken;
        }
        throttle.nr_dirtied >= limit
    }

    /// An administrator has set a threshold.
    pub(crate) fn dirty_limits_changed(&mut self) {
        self.writeback.ratelimit_pages = 0;
    }

    /// Sets the number of dirtied pages after which a CPU checks the current writer. So many tasks that dirty a few
    /// pages each are noticed, too.
    fn set_ratelimit(&mut self) {
        let cpus = u64::from(self.mm.config.cpus);
        self.writeback.ratelimit_pages = (self.mm.global_limits().thresh / (32 * cpus)).max(16);
    }

    /// One round of looking at a task of `memcg` that dirties pages of a file (`balance_dirty_pages`).
    #[doc(alias = "balance_dirty_pages")]
    pub(crate) fn throttle_step(
        &mut self,
        throttle: &mut DirtyThrottle,
        file: FileId,
        memcg: MemcgId,
    ) -> ThrottleStep {
        if let Some(Asleep { now, pause, next_look, leaves }) = throttle.asleep.take() {
            throttle.paused_when = now + pause;
            throttle.nr_dirtied = 0;
            throttle.nr_dirtied_pause = next_look;
            if leaves {
                return ThrottleStep::Leave;
            }
        }
        if self.mm.dirty_rule() == DirtyRule::Writes {
            let wb = self.wb_for(self.mm.memory.file(file).inode.bdi, memcg);
            return self.writer_step(throttle, wb, file);
        }
        let wb = self.wb_for(self.mm.memory.file(file).inode.bdi, memcg);
        self.flush_before_limits(self.writeback.wb(wb).memcg);
        let now = self.ticks() as i64;
        let left_out = self.left_out(wb, Some(file));
        let global = self.mm.global_limits_without(left_out.machine);
        let own = (self.writeback.wb(wb).memcg != MemcgId::ROOT)
            .then(|| self.mm.memcg_limits(memcg, &global, left_out.group));
        let of_task = |limits| if throttle.is_real_time { self.for_real_time(limits) } else { limits };
        let live = own.and_then(|_| self.live_limits(memcg, &global, left_out.group));
        let live = live.map(|(limits, numbers)| (of_task(limits), numbers));
        let (global, own) = (of_task(global), own.map(of_task));
        self.trace_global_dirty_state(&global);
        if global.nr_dirty > global.background && !self.mm.is_laptop_mode() {
            self.start_background(wb);
        }
        let is_strict = self.bdi_limits(wb).strict_limit;
        let counts = |memcg, limits: Limits| match is_strict {
            true => self.own_limits(wb, memcg, &limits, left_out.wb),
            false => limits,
        };
        let (free, own_free) = (counts(MemcgId::ROOT, global), own.map(|own| counts(memcg, own)));
        // A floor applies to the machine's limit. No group may fill a strict device.
        let floor = if own.is_some() && !is_strict { self.mm.room_below_floor(memcg) } else { 0 };
        let machine_lets_go = free.is_free_run() || floor > 0;
        let by_live =
            live.map(|(limits, numbers)| (machine_lets_go && counts(memcg, limits).is_free_run(), numbers));
        if machine_lets_go && own_free.is_none_or(|own| own.is_free_run()) {
            self.note_throttle(memcg, None, by_live);
            let look = |limits: &Limits| look_after(limits.thresh, limits.dirty);
            let by_machine = if free.is_free_run() { look(&free) } else { look_after(floor, 0) };
            throttle.paused_when = now;
            throttle.nr_dirtied = 0;
            throttle.nr_dirtied_pause = by_machine.min(own_free.as_ref().map_or(u64::MAX, look));
            return ThrottleStep::Leave;
        }
        self.start_background(wb);
        if let Some(step) = self.failing_step(throttle, file) {
            return step;
        }
        self.flush_foreign(self.writeback.wb(wb).memcg);
        let of_machine = (floor == 0).then(|| self.position(wb, MemcgId::ROOT, &global, left_out.wb));
        let of_group = own.map(|own| self.position(wb, memcg, &own, left_out.wb));
        let domains = [of_machine, of_group];
        let exceeds =
            |(at, _): &(Position, i64)| at.wb_dirty > at.wb_thresh && (is_strict || at.dirty > at.thresh);
        self.writeback.wb_mut(wb).dirty_exceeded = domains.iter().flatten().any(exceeds);
        self.update_bandwidth(wb, domains);
        let slower = domains.into_iter().flatten().min_by_key(|&(_, ratio)| ratio);
        let (position, ratio) = slower.expect("only a group has a floor, and it has limits of its own");
        let step = self.pause(throttle, wb, &position, ratio, now);
        if let ThrottleStep::Sleep(span) = step {
            self.note_throttle(memcg, Some(span), by_live);
        }
        step
    }

    /// A group's limits by live statistics, if these are known, and the statistics as of the last flush and live.
    fn live_limits(
        &self,
        memcg: MemcgId,
        global: &Limits,
        left_out: StuckPages,
    ) -> Option<(Limits, StaleAndLive)> {
        const STATS: [Stat; 4] = [Stat::NrDirty, Stat::NrWriteback, Stat::NrInactiveFile, Stat::NrActiveFile];
        let mut numbers = STATS.map(|stat| (stat, self.mm.memcg_stat(memcg, stat).max(0) as u64, 0));
        for (stat, _, live) in &mut numbers {
            *live = self.memcg_live(memcg, *stat)?.max(0) as u64;
        }
        let live = |stat| numbers.iter().find(|(of, ..)| *of == stat).map_or(0, |&(.., live)| live);
        Some((self.mm.memcg_limits_by(memcg, global, left_out, live), numbers))
    }

    /// A writer of a group sleeps for so long, or goes on; by live statistics it might be in free run.
    fn note_throttle(
        &mut self,
        memcg: MemcgId,
        sleeps: Option<Nanos>,
        by_live: Option<(bool, StaleAndLive)>,
    ) {
        let Some((is_free_run, numbers)) = by_live else { return };
        let decision = StaleDecision::DirtyThrottle;
        // The dirty pages are the numbers of interest; the sizes of the lists come second.
        let (dirty, lists) = numbers.split_at(2);
        let numbers = if dirty.iter().any(|(_, stale, live)| stale != live) { dirty } else { lists };
        self.note_decision(decision, memcg, sleeps.is_some(), !is_free_run, numbers);
        if let Some(span) = sleeps.filter(|_| is_free_run) {
            self.outdated[decision as usize].slept += span;
        }
    }

    fn pause(
        &mut self,
        throttle: &mut DirtyThrottle,
        wb: WbId,
        position: &Position,
        ratio: i64,
        now: i64,
    ) -> ThrottleStep {
        let (hz, rates) = (u64::from(self.mm.config.hz), self.writeback.wb(wb).rates);
        let rate = rates.ratelimit as i64 * ratio / ONE;
        let pauses = pauses(hz, position.wb_dirty, rates.average, rates.ratelimit, rate as u64);
        if rate == 0 {
            // A device with next to nothing left to write can't be the one that all others wait for; nor does any write what the machine can't begin.
            let leaves = position.wb_dirty <= TINY || self.io.are_held_up;
            self.trace_pause(throttle, wb, position, rate, (pauses.most, pauses.most));
            return self
                .sleep(throttle, Asleep { now, pause: pauses.most, next_look: pauses.next_look, leaves });
        }
        let period = hz as i64 * throttle.nr_dirtied as i64 / rate;
        let mut pause = period;
        if throttle.paused_when != 0 {
            pause -= now - throttle.paused_when;
        }
        if pause < pauses.least {
            self.trace_pause(throttle, wb, position, rate, (pause.min(0), period));
            if pause < -(hz as i64) {
                throttle.paused_when = now;
                throttle.nr_dirtied = 0;
            } else if period > 0 {
                throttle.paused_when += period;
                throttle.nr_dirtied = 0;
            } else if throttle.nr_dirtied_pause <= throttle.nr_dirtied {
                throttle.nr_dirtied_pause += throttle.nr_dirtied;
            }
            return ThrottleStep::Leave;
        }
        let shifted = now + (pause - pauses.most).clamp(0, pauses.most);
        let pause = pause.min(pauses.most);
        self.trace_pause(throttle, wb, position, rate, (pause, period));
        self.sleep(throttle, Asleep { now: shifted, pause, next_look: pauses.next_look, leaves: true })
    }

    fn sleep(&mut self, throttle: &mut DirtyThrottle, asleep: Asleep) -> ThrottleStep {
        throttle.asleep = Some(asleep);
        ThrottleStep::Sleep(until_tick_after(asleep.pause.max(1) as u64, self.by.now, self.mm.config.hz))
    }

    /// Where a wb stands in a domain without these pages of it, and what that makes of the rate.
    fn position(
        &mut self,
        wb: WbId,
        memcg: MemcgId,
        limits: &Limits,
        left_out: StuckPages,
    ) -> (Position, i64) {
        self.update_dirty_limit(memcg, limits);
        let is_strict = self.bdi_limits(wb).strict_limit;
        let of = self.writeback.wb(wb);
        let position = Position {
            freerun: limits.freerun(),
            thresh: limits.thresh,
            limit: self.hard_limit(memcg, limits),
            dirty: limits.dirty,
            wb_thresh: self.wb_share(wb, memcg, limits.thresh),
            wb_dirty: of.dirty() - left_out.all(),
            wb_freerun: is_strict.then(|| self.own_limits(wb, memcg, limits, left_out).freerun()),
        };
        (position, position.ratio(of.rates.average))
    }

    /// Updates the rates of a wb, where that is due; by where its domains stand, as far as a task is being slowed down.
    pub(super) fn update_bandwidth(&mut self, wb: WbId, domains: [Option<(Position, i64)>; 2]) {
        let (ticks, interval, hz) =
            (self.ticks(), self.mm.bandwidth_interval(), u64::from(self.mm.config.hz));
        if !self.writeback.wb(wb).rates.is_due(ticks, interval) {
            return;
        }
        if self.is_failing(wb) {
            return self.writeback.wb_mut(wb).rates.restart(ticks);
        }
        for (position, ratio) in domains.into_iter().flatten() {
            let rates = &mut self.writeback.wb_mut(wb).rates;
            let before = *rates;
            rates.learn_ratelimit(ticks, hz, &position, ratio);
            self.trace_ratelimit(wb, &before, ratio, before.elapsed(ticks));
        }
        self.writeback.wb_mut(wb).rates.update(ticks, hz);
    }
}

impl State {
    /// What happens to who dirties too much: one rule for all, as the limits are.
    pub(super) fn dirty_rule(&self) -> DirtyRule {
        self.config.policy.machine.writeback.dirty_throttle
    }
}

/// The number of pages after which a task is checked again, by the distance to the threshold.
fn look_after(thresh: u64, dirty: u64) -> u64 {
    if thresh > dirty { 1 << ((thresh - dirty).ilog2() / 2) } else { 1 }
}

/// How long a timer of `ticks` ticks takes that is set now. It goes off at a tick, when as many complete ones have passed. So it takes up
/// to one tick more, and that full tick if the last tick woke the task, as is usual for a task that sleeps again and again. (Recorded
/// writers asked for one tick 2070 times, and slept for two 1884 times, for more 156 times.) [recorded: ground truth `ft-dirty`]
fn until_tick_after(ticks: u64, now: Nanos, hz: u32) -> Nanos {
    let passed = now.0 / Nanos::from_ticks(1, hz).0;
    Nanos(Nanos::from_ticks(passed + ticks + 1, hz).0 - now.0)
}

/// `rate`: what the task is to get now; `ratelimit`: what all get at the setpoint.
fn pauses(hz: u64, wb_dirty: u64, average: u64, ratelimit: u64, rate: u64) -> Pauses {
    // A device shall not fall idle while those sleep that feed it.
    let most = (hz / 5).max(1).min(1 + wb_dirty / (1 + average / (1 + hz / 8).next_power_of_two()));
    let mut least = hz / 100;
    let (fast, slow) = (average.max(1).ilog2(), ratelimit.max(1).ilog2());
    least += u64::from(fast.saturating_sub(slow)) * 10 * hz / 1024;
    least = least.min(1 + most / 2);
    let mut pages = ratelimit * least / hz.next_power_of_two();
    if pages < PAUSE_PAGES {
        least = most;
        pages = ratelimit * least / hz.next_power_of_two();
        if pages > PAUSE_PAGES {
            pages = PAUSE_PAGES;
            least = hz * PAUSE_PAGES / ratelimit.max(1);
        }
    }
    let takes = hz * pages / (rate + 1);
    if takes > most {
        least = most;
        pages = rate * least / hz.next_power_of_two();
    }
    let shortest = if pages >= PAUSE_PAGES { 1 + least / 2 } else { least };
    Pauses { least: shortest as i64, most: most as i64, next_look: pages }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bdi, Config, Engine, FileKind, FileSpec};

    #[test]
    fn what_exited_tasks_have_dirtied_brings_the_next_writer_of_their_cpu_to_a_look() {
        let mut engine =
            Engine::new(Config { cpus: 2, node_pages: vec![1 << 16], ..Config::default() }).unwrap();
        let (kind, bdi) = (FileKind::Regular, Bdi::NO_READAHEAD);
        let file = engine.file_create(FileSpec { name: "log".to_owned(), pages: 64, kind, bdi }).unwrap();
        let core = &mut engine.core;
        let look = |core: &mut Core, cpu: u16, dirtied: u64| {
            let mut throttle = DirtyThrottle { nr_dirtied: dirtied, ..DirtyThrottle::default() };
            let is_due = core.is_look_due(&mut throttle, file, CpuId(cpu));
            core.dirtier_exits(&mut throttle, CpuId(cpu));
            is_due
        };
        assert_eq!([0, 0, 1].map(|cpu| look(core, cpu, 15)), [false; 3]);
        assert!(!look(core, 1, 1), "on another CPU there are 16");
        assert!(look(core, 0, 2), "here are 32 with what the two have left");
    }

    #[test]
    fn the_next_look_comes_after_the_root_of_the_room() {
        assert_eq!([look_after(4_200, 100), look_after(101, 100), look_after(5, 9)], [64, 1, 1]);
    }

    #[test]
    fn a_sleep_of_some_ticks_ends_at_the_tick_after_them() {
        let (ms, hz) = (Nanos::SECOND.0 / 1000, 250);
        let sleeps = [(1, 0), (1, 1), (1, 3), (1, 4), (5, 7)]
            .map(|(ticks, now)| until_tick_after(ticks, Nanos(now * ms), hz).0 / ms);
        assert_eq!(sleeps, [8, 7, 5, 8, 21]);
    }

    #[test]
    fn no_sleep_is_longer_than_200_ms_or_than_the_device_has_work_for() {
        assert_eq!(pauses(250, 100_000, 5_000, 1_000, 500).most, 50);
        // 64 ticks' worth of the bandwidth is 79 pages a tick: 10 pages are less than one.
        assert_eq!(pauses(250, 10, 5_000, 1_000, 500).most, 1);
    }
}
