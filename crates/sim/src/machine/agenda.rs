//! The kinds of event in a machine's queue, and their packed form.

use pageout_engine::{CpuId, IoId, Nanos};

use crate::event::EventQueue;
use crate::runner::WAITS;
use crate::sched::TaskIndex;

/// Something that happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A task may run, if it gets its CPU.
    Run(TaskIndex),
    /// A transfer is over.
    IoDone { io: IoId, cpu: CpuId, failed: bool },
    /// The statistics worker runs.
    FlushStats,
    /// A timed event is due.
    Timed(u32),
    /// A wait for a wake has lasted as long as it may, if it is still a task's last one: which of its waits it is.
    Alarm { task: TaskIndex, wait: u32 },
    /// The samples in a ring of hardware hints are collected.
    EmptyRing { ring: u16 },
    /// A device has a slot for a request that waits.
    SlotFree { device: u32 },
    /// A shell has done what kept it busy.
    ShellGoesOn(u32),
    /// The time that a write may take is over: which of all writes it is.
    Timeout { entry: u32 },
}

impl Event {
    /// One word, built in registers. An enum is written field by field, and the queue, which moves it as one value, would wait for the stores at
    /// every push and pop. Four bits of kind, then 60 of content.
    fn pack(self) -> u64 {
        let (kind, content) = match self {
            Event::Run(task) => (0, u64::from(task)),
            Event::IoDone { io, cpu, failed } => {
                (1, u64::from(io.0) | u64::from(cpu.0) << 32 | u64::from(failed) << 48)
            }
            Event::FlushStats => (2, 0),
            Event::Timed(index) => (3, u64::from(index)),
            Event::Alarm { task, wait } => (4, u64::from(task) | u64::from(wait) << 32),
            Event::EmptyRing { ring } => (5, u64::from(ring)),
            Event::SlotFree { device } => (6, u64::from(device)),
            Event::ShellGoesOn(shell) => (7, u64::from(shell)),
            Event::Timeout { entry } => (8, u64::from(entry)),
        };
        kind << 60 | content
    }

    fn unpack(word: u64) -> Event {
        let content = word as u32;
        match word >> 60 {
            0 => Event::Run(content),
            1 => Event::IoDone {
                io: IoId(content),
                cpu: CpuId((word >> 32) as u16),
                failed: word >> 48 & 1 == 1,
            },
            2 => Event::FlushStats,
            3 => Event::Timed(content),
            5 => Event::EmptyRing { ring: content as u16 },
            6 => Event::SlotFree { device: content },
            7 => Event::ShellGoesOn(content),
            8 => Event::Timeout { entry: content },
            _ => Event::Alarm { task: content, wait: (word >> 32) as u32 & (WAITS - 1) },
        }
    }

    /// Returns true if a task may go on because of it.
    fn is_driving(self) -> bool {
        matches!(self, Event::Run(_) | Event::IoDone { .. } | Event::Alarm { .. } | Event::SlotFree { .. })
    }
}

/// The events to come.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    queue: EventQueue<u64>,
    driving: usize,
}

impl Agenda {
    pub(super) fn now(&self) -> Nanos {
        self.queue.now()
    }

    pub(super) fn next_at(&self) -> Nanos {
        self.queue.next_at()
    }

    #[must_use]
    pub(super) fn advance(&mut self, to: Nanos) -> bool {
        self.queue.advance(to)
    }

    /// Returns true if any event to come can make a task go on; without one, nothing ever will.
    pub(super) fn is_driving(&self) -> bool {
        self.driving > 0
    }

    pub(super) fn push(&mut self, at: Nanos, event: Event) {
        self.driving += usize::from(event.is_driving());
        self.queue.push(at, event.pack());
    }

    pub(super) fn pop(&mut self) -> Option<(Nanos, Event)> {
        let (at, word) = self.queue.pop()?;
        let event = Event::unpack(word);
        self.driving -= usize::from(event.is_driving());
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_packing_at_their_limits() {
        for event in [
            Event::Run(TaskIndex::MAX),
            Event::IoDone { io: IoId(u32::MAX), cpu: CpuId(u16::MAX), failed: true },
            Event::IoDone { io: IoId(0), cpu: CpuId(0), failed: false },
            Event::FlushStats,
            Event::Timed(u32::MAX),
            Event::Alarm { task: TaskIndex::MAX, wait: WAITS - 1 },
            Event::Alarm { task: 0, wait: 0 },
            Event::EmptyRing { ring: u16::MAX },
            Event::SlotFree { device: u32::MAX },
            Event::ShellGoesOn(u32::MAX),
            Event::Timeout { entry: u32::MAX },
        ] {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn only_runs_and_what_leads_to_completions_drive() {
        let mut agenda = Agenda::default();
        agenda.push(Nanos(1), Event::FlushStats);
        agenda.push(Nanos(2), Event::Timed(0));
        assert!(!agenda.is_driving());
        agenda.push(Nanos(0), Event::Run(7));
        assert!(agenda.is_driving());
        assert_eq!(agenda.pop(), Some((Nanos(0), Event::Run(7))));
        assert!(!agenda.is_driving());
    }
}
