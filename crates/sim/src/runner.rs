//! Whatever has a clock of its own and calls the engine in steps: a task, a kernel thread, or a control task that writes a file.
//!
//! A runner runs ahead on its own clock while it meets hits: others can't notice these too early. Everything else that it does is
//! an event at its own time. Between two engine calls it is in one of these states:
//!
//! ```text
//!            ┌──────────── hits, accesses done ────────────┐
//!            ▼                                             │
//!   start ─▶ Ready ──▶ Again / Delay ───────▶ Resuming ────┤
//!              │                               ▲  ▲        │
//!              ├─────▶ Wait(Io) ──▶ Asleep ────┘  │        └──▶ Ended
//!              └─────▶ Woken(Or) ─▶ Waiting ──────┘ a wake, or its alarm
//! ```

use pageout_engine::{CpuId, DelayReason, IoWait, Memstall, Nanos, Served, Step, TaskId, Wait};

use crate::access_time::{Cause, Lost};
use crate::report::Delays;

/// Numbers of waits start over after this many, which is the maximum in an event: the alarm of a wait goes off long before.
pub(crate) const WAITS: u32 = 1 << 28;

/// Where a runner stands between two engine calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The next access may begin.
    Ready,
    /// An access is in progress and the engine must be asked to continue it.
    Resuming,
    /// An access is in progress and waits for a transfer; the engine will name the task.
    Asleep,
    /// An access is in progress and waits for another task's wake, or for its own alarm if it has set one.
    Waiting,
    /// There is nothing left to do.
    Ended,
}

/// What a runner does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Go on at its clock, on its CPU.
    GoOn,
    /// Leave the CPU at this time, and come back at its clock.
    ComeBack(Nanos),
    /// Leave the CPU at its clock, and wait to be named, until this time at most.
    Nap(Nanos),
    /// Leave the CPU at its clock, and wait to be named or end.
    Stop,
}

/// The clock of a runner and where its time went.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    pub(crate) id: TaskId,
    pub(crate) cpu: CpuId,
    pub(crate) state: State,
    /// Where its last piece of work ended, or when it will come back.
    pub(crate) clock: Nanos,
    pub(crate) waited: Waited,
    /// The memstall section that its last step left it in.
    pub(crate) memstall: Option<Memstall>,
    /// True if its losses are recorded.
    pub(crate) is_timed: bool,
    /// Time lost since its last access was done, by cause.
    pub(crate) lost: Lost,
    /// It is in a reclaim call: what it waits for now is part of that.
    pub(crate) reclaims: bool,
    pause: Pause,
    /// The reason of its last wait for a wake or a transfer.
    awaits: Why,
    /// How often it has waited for a wake, as far as an event can hold that.
    waits: u32,
    /// The runner's alarm has gone off, and it has not had its turn since.
    is_alarmed: bool,
    /// The runner was killed: the engine is to be asked to go on with it until it has ended.
    is_killed: bool,
    /// When it should have come back from a pause that the kill has ended: that event is still to come.
    cut_off: Option<Nanos>,
    /// Not next to the clock: the two would be read as one word for [`Runner::work`], which would then wait until the clock, often set on its own
    /// just before, has reached the cache.
    pub(crate) cpu_time: Nanos,
    /// Part of it that was spent in user space.
    user_time: Nanos,
    /// The last accesses: how long they took, and how much of that in user space.
    accesses: (Nanos, Nanos),
}

/// The last time that it was to wait for a given span, which need not be over.
#[derive(Clone, Copy, Default, Debug)]
struct Pause {
    from: Nanos,
    until: Nanos,
    why: Why,
}

/// What it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Why {
    /// The task waits for its timetable.
    #[default]
    Idle,
    /// The engine made it wait.
    Delay(DelayReason),
    /// A device has no free slot for the requests that it has submitted.
    Queue,
    /// The task waits for a transfer.
    Transfer(IoWait),
    /// The task waits for a CPU.
    Cpu,
}

impl Why {
    /// The cause to which an access loses that time; `reclaims`: in a reclaim call.
    fn cause(self, reclaims: bool) -> Option<Cause> {
        Some(match self {
            Why::Cpu => Cause::Cpu,
            Why::Delay(DelayReason::MemoryHigh) => Cause::MemoryHigh,
            Why::Delay(DelayReason::DirtyPages) => Cause::DirtyLimits,
            Why::Delay(DelayReason::Oom) => Cause::Oom,
            Why::Delay(DelayReason::Reclaim) => Cause::DirectReclaim,
            Why::Queue | Why::Transfer(_) if reclaims => Cause::DirectReclaim,
            Why::Queue | Why::Transfer(IoWait::FileRead) => Cause::DeviceRead,
            Why::Transfer(IoWait::SwapRead) => Cause::SwapIn,
            Why::Transfer(IoWait::OthersRead) => Cause::OthersRead,
            Why::Transfer(IoWait::Writeback) => Cause::Writeback,
            Why::Idle | Why::Delay(DelayReason::Nap) => return None,
        })
    }
}

/// Time that a runner has waited, by what for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Waited {
    pub(crate) cpu: Nanos,
    pub(crate) io: Nanos,
    pub(crate) delays: Delays,
    pub(crate) idle: Nanos,
}

impl Waited {
    fn of(&mut self, why: Why) -> &mut Nanos {
        match why {
            Why::Cpu => &mut self.cpu,
            Why::Queue | Why::Transfer(_) => &mut self.io,
            Why::Delay(DelayReason::MemoryHigh) => &mut self.delays.memory_high,
            Why::Delay(DelayReason::DirtyPages) => &mut self.delays.dirty_pages,
            Why::Delay(DelayReason::Reclaim | DelayReason::Oom) => &mut self.delays.reclaim,
            Why::Idle | Why::Delay(DelayReason::Nap) => &mut self.idle,
        }
    }
}

/// Where a runner's time went up to some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spent {
    pub(crate) cpu_time: Nanos,
    pub(crate) user_time: Nanos,
    pub(crate) waited: Waited,
}

impl Runner {
    pub(crate) fn new(id: TaskId, cpu: CpuId, start: Nanos) -> Runner {
        let zero = Nanos::ZERO;
        Runner {
            id,
            cpu,
            state: State::Ready,
            clock: start,
            cpu_time: zero,
            user_time: zero,
            accesses: (zero, zero),
            waited: Waited::default(),
            memstall: None,
            is_timed: false,
            lost: Lost::default(),
            reclaims: false,
            pause: Pause::default(),
            awaits: Why::default(),
            waits: 0,
            is_alarmed: false,
            is_killed: false,
            cut_off: None,
        }
    }

    /// The runner has its CPU at `now`, having been ready since its clock.
    pub(crate) fn begin_turn(&mut self, now: Nanos) {
        if now > self.clock {
            self.has_waited(Nanos(now.0 - self.clock.0), Why::Cpu);
            self.clock = now;
        }
    }

    /// So much time was spent waiting.
    #[inline]
    fn has_waited(&mut self, span: Nanos, why: Why) {
        *self.waited.of(why) += span;
        if self.is_timed
            && let Some(cause) = why.cause(self.reclaims)
        {
            self.lost.add(cause, span);
        }
    }

    /// Time passes while it makes accesses, a part of it in user space.
    #[inline]
    pub(crate) fn access(&mut self, span: Nanos, in_user_space: Nanos) {
        self.work(span);
        self.user_time += in_user_space;
        self.accesses = (span, in_user_space);
    }

    /// Time passes while it works.
    pub(crate) fn work(&mut self, span: Nanos) {
        self.clock += span;
        self.cpu_time += span;
    }

    /// How many of its last accesses it has made by `now`, of so many that were counted when they began.
    pub(crate) fn accesses_by(&self, now: Nanos, count: u64) -> u64 {
        let ahead = self.clock.0.saturating_sub(now.0).min(self.accesses.0.0);
        let to_come = u128::from(count) * u128::from(ahead) / u128::from(self.accesses.0.0.max(1));
        count - to_come as u64
    }

    /// The runner has nothing to do before `until`.
    pub(crate) fn idle_until(&mut self, until: Nanos) -> Next {
        self.pause_until(until, Why::Idle)
    }

    /// It would continue, but a device may have no free slot before `until` for its requests: then it comes back when there is one. `reclaims`: it
    /// has submitted them in a reclaim call.
    pub(crate) fn queue_until(&mut self, until: Nanos, reclaims: bool) -> Next {
        if until <= self.clock { Next::GoOn } else { self.queue(until, reclaims) }
    }

    #[cold]
    fn queue(&mut self, until: Nanos, reclaims: bool) -> Next {
        let still_reclaims = std::mem::replace(&mut self.reclaims, reclaims);
        let next = self.pause_until(until, Why::Queue);
        self.reclaims = still_reclaims;
        next
    }

    fn pause_until(&mut self, until: Nanos, why: Why) -> Next {
        let from = self.clock;
        self.has_waited(Nanos(until.0 - from.0), why);
        self.clock = until;
        self.pause = Pause { from, until, why };
        Next::ComeBack(from)
    }

    /// Returns true if it comes back when a device has a free slot for its requests, or has written its dirty pages: that is a wait for I/O.
    pub(crate) fn waits_for_device(&self) -> bool {
        matches!(self.pause.why, Why::Queue | Why::Delay(DelayReason::DirtyPages))
            && self.pause.until == self.clock
    }

    /// Takes an engine's answer: either the access is served, or this is how it goes on.
    pub(crate) fn take_step(&mut self, step: Step) -> Result<Served, Next> {
        self.is_alarmed = false;
        match step {
            Step::Done(served) => {
                self.state = if self.is_killed { State::Resuming } else { State::Ready };
                Ok(served)
            }
            Step::Again => {
                self.state = State::Resuming;
                Err(Next::GoOn)
            }
            Step::Wait(Wait::Io(awaited)) => {
                self.state = State::Asleep;
                self.awaits = Why::Transfer(awaited);
                Err(Next::Stop)
            }
            Step::Wait(wait) => Err(self.wait(wait)),
        }
    }

    /// The runner waits for something that no miss has to wait for.
    #[cold]
    fn wait(&mut self, wait: Wait) -> Next {
        match wait {
            Wait::Io(_) => unreachable!("a transfer is waited for asleep"),
            // A task that may have to wait without an end is one that kswapd has to free pages for.
            Wait::Woken => {
                self.begin_wait(DelayReason::Reclaim);
                Next::Stop
            }
            Wait::WokenOr(span, reason) => {
                self.begin_wait(reason);
                Next::Nap(self.clock + span)
            }
            Wait::Delay(span, reason) => self.delay(span, reason),
        }
    }

    /// The engine makes it wait for so long.
    fn delay(&mut self, span: Nanos, reason: DelayReason) -> Next {
        self.state = State::Resuming;
        self.pause_until(self.clock + span, Why::Delay(reason))
    }

    /// Where its time went up to `now`, to the nanosecond. Work and delays are counted when they begin: what of them lies behind
    /// the end of a run has not happened. Waits for a transfer and for the CPU are counted when they end, and have.
    pub(crate) fn spent_by(&self, now: Nanos) -> Spent {
        let Pause { from, until, why } = self.pause;
        let ahead = self.clock.0.saturating_sub(now.0);
        let pausing = if until == self.clock { ahead.min(until.0 - from.0) } else { 0 };
        let behind = Nanos(now.0.saturating_sub(self.clock.0));
        let less = |span: Nanos, ahead: u64| Nanos(span.0.saturating_sub(ahead));
        let mut waited = self.waited;
        let paused = waited.of(why);
        *paused = less(*paused, pausing);
        *waited.of(match self.state {
            State::Asleep | State::Waiting => self.awaits,
            State::Ready | State::Resuming | State::Ended => Why::Cpu,
        }) += behind;
        // Accesses are the last thing done, and as much of each part of them in user space.
        let (span, in_user_space) = self.accesses;
        let accesses_ahead = (ahead - pausing).min(span.0);
        let user_ahead = u128::from(accesses_ahead) * u128::from(in_user_space.0) / u128::from(span.0.max(1));
        Spent {
            cpu_time: less(self.cpu_time, ahead - pausing),
            user_time: less(self.user_time, user_ahead as u64),
            waited,
        }
    }

    fn begin_wait(&mut self, reason: DelayReason) {
        self.state = State::Waiting;
        self.awaits = Why::Delay(reason);
        self.waits = (self.waits + 1) % WAITS;
    }

    /// Which of its waits for a wake the last one is.
    pub(crate) fn waits(&self) -> u32 {
        self.waits
    }

    /// Its wait has ended. Returns when it is ready, which is later than `now` if it had yet to finish the work it did before it slept; `None` if its
    /// alarm has gone off before: it has its turn anyway, and the engine knows that it was woken.
    #[inline]
    pub(crate) fn wake(&mut self, now: Nanos) -> Option<Nanos> {
        let waited = Nanos(now.0.saturating_sub(self.clock.0));
        match self.state {
            State::Asleep | State::Waiting => self.has_waited(waited, self.awaits),
            State::Resuming if self.is_alarmed => return None,
            state => panic!("{:?} is woken but does not sleep: {state:?}", self.id),
        }
        self.state = State::Resuming;
        self.clock = self.clock.max(now);
        Some(self.clock)
    }

    /// It was killed at `now`: whatever it waits for, it goes on to its end. Returns when, unless it has its turn coming already.
    pub(crate) fn kill(&mut self, now: Nanos) -> Option<Nanos> {
        self.is_killed = true;
        match self.state {
            State::Asleep | State::Waiting => self.wake(now),
            State::Ended => {
                self.state = State::Resuming;
                self.clock = now;
                Some(now)
            }
            State::Ready | State::Resuming => {
                self.state = State::Resuming;
                let Pause { from, until, why } = self.pause;
                if until != self.clock || until <= now {
                    return None;
                }
                let at = from.max(now);
                let spared = Nanos(until.0 - at.0);
                let waited = self.waited.of(why);
                *waited = Nanos(waited.0 - spared.0);
                (self.clock, self.pause.until) = (at, at);
                self.cut_off = Some(until);
                Some(at)
            }
        }
    }

    /// Returns true if the event at `now` is the end of a pause that a kill has cut off.
    pub(crate) fn was_cut_off(&mut self, now: Nanos) -> bool {
        self.cut_off.take_if(|until| *until == now).is_some()
    }

    /// An alarm that it has set goes off; false if a wake has ended that wait.
    pub(crate) fn alarm(&mut self, wait: u32, now: Nanos) -> bool {
        if self.state != State::Waiting || self.waits != wait {
            return false;
        }
        self.wake(now);
        self.is_alarmed = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn napping(from: u64, span: u64) -> (Runner, u32) {
        let mut runner = Runner::new(TaskId(3), CpuId(0), Nanos(from));
        let nap = Step::Wait(Wait::WokenOr(Nanos(span), DelayReason::Reclaim));
        assert_eq!(runner.take_step(nap), Err(Next::Nap(Nanos(from + span))));
        let wait = runner.waits();
        (runner, wait)
    }

    #[test]
    fn an_alarm_ends_the_wait_it_was_set_for() {
        let (mut runner, wait) = napping(10, 100);
        assert!(runner.alarm(wait, Nanos(110)) && runner.state == State::Resuming);
        assert_eq!(runner.spent_by(Nanos(110)).waited.delays.reclaim, Nanos(100));
        assert!(!runner.alarm(wait, Nanos(110)), "it rings once");
    }

    #[test]
    fn an_alarm_of_a_wait_that_was_woken_is_silent() {
        let (mut runner, wait) = napping(10, 100);
        assert_eq!(runner.wake(Nanos(50)), Some(Nanos(50)));
        assert_eq!(runner.take_step(Step::Wait(Wait::Woken)), Err(Next::Stop));
        assert!(!runner.alarm(wait, Nanos(110)), "it waits again, for something else");
        assert_eq!(runner.spent_by(Nanos(130)).waited.delays.reclaim, Nanos(40 + 80));
        assert_eq!(runner.wake(Nanos(130)), Some(Nanos(130)));
    }

    #[test]
    fn a_wake_after_the_alarm_does_not_give_two_turns() {
        let (mut runner, wait) = napping(10, 100);
        assert!(runner.alarm(wait, Nanos(110)));
        assert_eq!(runner.wake(Nanos(111)), None);
    }

    #[test]
    fn a_wake_while_the_last_work_goes_on_is_kept_until_it_is_done() {
        let mut runner = Runner::new(TaskId(3), CpuId(0), Nanos(10));
        runner.work(Nanos(30));
        assert_eq!(runner.take_step(Step::Wait(Wait::Woken)), Err(Next::Stop));
        assert_eq!(runner.wake(Nanos(20)), Some(Nanos(40)));
    }

    #[test]
    fn each_delay_is_counted_by_its_reason_and_a_nap_is_none() {
        let mut runner = Runner::new(TaskId(3), CpuId(0), Nanos(10));
        for (span, reason) in
            [(1, DelayReason::MemoryHigh), (20, DelayReason::DirtyPages), (300, DelayReason::Nap)]
        {
            assert!(runner.take_step(Step::Wait(Wait::Delay(Nanos(span), reason))).is_err());
        }
        assert_eq!(runner.take_step(Step::Wait(Wait::Woken)), Err(Next::Stop));
        let Waited { delays, idle, .. } = runner.spent_by(Nanos(331 + 4_000)).waited;
        let by_reason = Delays { memory_high: Nanos(1), dirty_pages: Nanos(20), reclaim: Nanos(4_000) };
        assert_eq!((delays, idle), (by_reason, Nanos(300)));
    }

    #[test]
    fn a_kill_spares_a_writer_the_rest_of_its_pause() {
        let mut runner = Runner::new(TaskId(3), CpuId(0), Nanos(10));
        assert!(
            runner.take_step(Step::Wait(Wait::Delay(Nanos(200), DelayReason::DirtyPages))).is_err()
                && runner.waits_for_device()
        );
        assert_eq!(runner.kill(Nanos(60)), Some(Nanos(60)));
        assert_eq!(runner.waited.delays, Delays { dirty_pages: Nanos(50), ..Delays::default() });
    }
}
