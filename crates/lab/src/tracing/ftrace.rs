//! Tracepoints as ftrace prints them: a line each, in the words of a kernel of 2010 or of Linux 6.12.
//!
//! ```text
//!             dd-1003    [001] d....   207.727380: mm_vmscan_lru_isolate: classzone=2 order=0 nr_requested=32 ...     modern
//!             dd-1003  [001]   207.727380: mm_vmscan_lru_isolate: isolate_mode=0 order=0 nr_requested=32 ...          2010
//! ```
//! The text is that of `trace_pipe`. `trace` has one more line at its top, with the number of lines that follow. A stream does not know it. Events
//! that a kernel of 2010 does not have are left out. [machine 9.5; reclaim 8.1]

use clap::ValueEnum;
use pageout_engine::{Nanos, Tracepoint};
use pageout_sim::TraceRecord;

use super::Task;
use super::fields::{self, Text};
use super::text::{Lasting, Left, Right, Zeros, text};

/// Whose words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// Of the first kernels with these events, as the kernel's own trace-vmscan-postprocess of then reads them
    #[value(name = "2010")]
    Early,
    /// Of Linux 6.12
    Modern,
}

/// A text of lines.
pub(super) struct Ftrace {
    pub(super) dialect: Dialect,
    /// Times have nine digits behind the point.
    pub(super) nanoseconds: bool,
    /// Who runs on which CPU, and when, in the units of the text.
    pub(super) who: Lasting<(u32, u16)>,
    pub(super) when: Lasting<u64>,
}

const HEADER_MODERN: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

const HEADER_2010: &str = "\
# tracer: nop
#
#           TASK-PID    CPU#    TIMESTAMP  FUNCTION
#              | |       |          |         |
";

impl Ftrace {
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.dialect {
            Dialect::Early => HEADER_2010.as_bytes(),
            Dialect::Modern => HEADER_MODERN.as_bytes(),
        });
    }

    /// Adds a line, if the dialect has that event.
    pub(super) fn add(&mut self, record: &TraceRecord, task: &Task, out: &mut Vec<u8>) {
        let Some(name) = name(&record.event, self.dialect) else { return };
        let (dialect, cpu) = (self.dialect, record.cpu.0);
        let Task { comm, pid } = task;
        self.who.put((*pid, cpu), out, |out| {
            let pid = Left(*pid, if dialect == Dialect::Early { 5 } else { 7 });
            text!(out, "" => Right(comm, 16), "-" => pid, " [" => Zeros(cpu.into(), 3); "] ");
        });
        if dialect == Dialect::Modern {
            text!(out, "" => flags(&record.event); " ");
        }
        let (unit, digits) = if self.nanoseconds { (1, 9) } else { (1000, 6) };
        self.when.put(record.at.0 / unit, out, |out| {
            let (seconds, nanos) = (record.at.0 / Nanos::SECOND.0, record.at.0 % Nanos::SECOND.0);
            text!(out, "" => Right(seconds, 5), "." => Zeros(nanos / unit, digits); ": ");
        });
        text!(out, "" => name; ":");
        match self.dialect {
            Dialect::Early => fields::early(record, out),
            Dialect::Modern => fields::modern::<Text>(record, out),
        }
        out.push(b'\n');
    }
}

/// What a dialect calls it, if it has it.
fn name(event: &Tracepoint, dialect: Dialect) -> Option<&'static str> {
    match (dialect, event) {
        (Dialect::Early, Tracepoint::WriteFolio { .. }) => Some("mm_vmscan_writepage"),
        (Dialect::Early, Tracepoint::LruIsolate { is_of_group: true, .. }) => Some("mm_vmscan_memcg_isolate"),
        (Dialect::Early, Tracepoint::LruShrinkActive { .. } | Tracepoint::Throttled { .. }) => None,
        // Those of shrinkers came in 2011.
        (Dialect::Early, _) if !event.name().starts_with("mm_vmscan_") => None,
        _ => Some(event.name()),
    }
}

/// The state of the CPU: interrupts are off under the lock of a list, and a device interrupts when its writes have ended.
fn flags(event: &Tracepoint) -> &'static str {
    match event {
        Tracepoint::LruIsolate { .. }
        | Tracepoint::DirtyFolio { .. }
        | Tracepoint::MarkInodeWriteback { .. } => "d....",
        Tracepoint::ClearInodeWriteback { .. } => "d.h..",
        _ => ".....",
    }
}
