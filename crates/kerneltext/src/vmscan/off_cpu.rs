//! Time of a reclaim call off the CPU, asleep or runnable, by the events of the scheduler.
//!
//! ```text
//!   begin ── runs ── switch, asleep ───── wakeup ─── switch ── runs ── switch, runnable ── switch ── runs ── end
//!                           └── asleep ─────┘└ waits ─┘                        └── waits ────┘
//! ```
//! Without wake-ups all of a sleep counts as asleep, also what the task then waited for a CPU.

use std::collections::BTreeMap;

/// Tasks with an open call that are followed.
const CALLERS_MAX: usize = 4096;

/// Time off the CPU, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffCpu {
    /// Asleep: for a transfer, a lock, a timeout.
    pub asleep_ns: u64,
    /// Runnable, while other tasks ran.
    pub waiting_ns: u64,
}

impl OffCpu {
    /// Asleep or runnable.
    pub fn total_ns(self) -> u64 {
        self.asleep_ns.saturating_add(self.waiting_ns)
    }

    pub(super) fn add(&mut self, other: OffCpu) {
        self.asleep_ns = self.asleep_ns.saturating_add(other.asleep_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
    }
}

/// The tasks that are in a call of reclaim.
#[derive(Debug, Default)]
pub(super) struct Callers {
    by_pid: BTreeMap<u32, Caller>,
    /// The trace has switches: a task without one stayed on its CPU.
    has_switches: bool,
}

#[derive(Debug, Default)]
struct Caller {
    off: OffCpu,
    /// Off the CPU since, and whether it is ready to run.
    since: Option<(u64, bool)>,
}

impl Caller {
    /// What it has been since it left the CPU, or since it changed there, ends.
    fn count(&mut self, time_ns: u64) {
        let Some((since_ns, is_runnable)) = self.since.take() else { return };
        let time_ns = time_ns.saturating_sub(since_ns);
        let off = &mut self.off;
        *(if is_runnable { &mut off.waiting_ns } else { &mut off.asleep_ns }) += time_ns;
    }
}

impl Callers {
    /// A call begins that is within no other.
    pub(super) fn begin(&mut self, pid: u32) {
        if self.by_pid.len() < CALLERS_MAX {
            self.by_pid.insert(pid, Caller::default());
        }
    }

    /// The outermost call ends: the time off the CPU, if the trace has the scheduler's events.
    pub(super) fn end(&mut self, pid: u32, time_ns: u64) -> Option<OffCpu> {
        let mut caller = self.by_pid.remove(&pid)?;
        caller.count(time_ns);
        self.has_switches.then_some(caller.off)
    }

    pub(super) fn switch(&mut self, prev: u32, is_runnable: bool, next: u32, time_ns: u64) {
        self.has_switches = true;
        if let Some(caller) = self.by_pid.get_mut(&prev) {
            caller.count(time_ns);
            caller.since = Some((time_ns, is_runnable));
        }
        if let Some(caller) = self.by_pid.get_mut(&next) {
            caller.count(time_ns);
        }
    }

    pub(super) fn wakeup(&mut self, pid: u32, time_ns: u64) {
        if let Some(caller) = self.by_pid.get_mut(&pid).filter(|caller| caller.since.is_some()) {
            caller.count(time_ns);
            caller.since = Some((time_ns, true));
        }
    }

    pub(super) fn has_switches(&self) -> bool {
        self.has_switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_off_the_cpu_is_split_into_asleep_and_runnable() {
        let mut callers = Callers::default();
        callers.begin(7);
        assert_eq!(callers.end(7, 5), None, "nothing tells");
        callers.begin(7);
        callers.switch(7, false, 0, 10);
        callers.wakeup(7, 40);
        callers.switch(0, true, 7, 45);
        callers.wakeup(7, 46);
        callers.switch(7, true, 8, 50);
        assert_eq!(callers.end(7, 60), Some(OffCpu { asleep_ns: 30, waiting_ns: 15 }));
        assert_eq!(callers.end(7, 60), None);
        callers.begin(8);
        assert_eq!(callers.end(8, 61), Some(OffCpu::default()));
    }
}
