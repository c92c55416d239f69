//! Tracepoints as ftrace prints them: a line each, in the words of a kernel of 2010 or of Linux 6.12.
//!
//! ```text
//!             dd-1003    [001] d....   207.727380: mm_vmscan_lru_isolate: classzone=2 order=0 nr_requested=32 ...     modern
//!             dd-1003  [001]   207.727380: mm_vmscan_lru_isolate: isolate_mode=0 order=0 nr_requested=32 ...          2010
//! ```
//! The text is that of `trace`. Today's says at its top how many lines follow, which is known at the end, and is put there then. What can't be
//! written over, a pipe or a compressed file, has it not. Events that a kernel of 2010 does not have are left out. [machine 9.5; reclaim 8.1]

use clap::ValueEnum;
use pageout_engine::{Nanos, Tracepoint, WritebackTracepoint};
use pageout_sim::TraceRecord;

use super::Task;
use super::fields::{self, Text};
use super::text::{Lasting, Left, Right, Zeros, text};

/// The dialect of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// The text of the first kernels with these events, which the kernel's trace-vmscan-postprocess of that time reads
    #[value(name = "2010")]
    Early,
    /// The text of Linux 6.12
    Modern,
}

/// A text of lines.
pub(super) struct Ftrace {
    pub(super) dialect: Dialect,
    /// Times have nine decimals.
    pub(super) nanoseconds: bool,
    /// The head of the text will be written over with the number of its lines.
    pub(super) counts: bool,
    /// Lines so far, and how many CPUs they are of.
    pub(super) entries: u64,
    pub(super) cpus: u16,
    /// Task, CPU and time, in the units of the text.
    pub(super) who: Lasting<(u32, u16)>,
    pub(super) when: Lasting<u64>,
}

/// What stands before the line that is written over.
const TRACER: &str = "# tracer: nop\n#\n";

const HEADER_MODERN: &str = "\
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

/// Bytes of the line that says how many follow and of the empty one behind it: as many as with the largest numbers.
const ENTRIES_BYTES: usize = "# entries-in-buffer/entries-written: /   #P:\n#\n".len() + 2 * 20 + 5;

impl Ftrace {
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        match self.dialect {
            Dialect::Early => text!(out, "" => HEADER_2010),
            Dialect::Modern => {
                text!(out, "" => TRACER);
                if self.counts {
                    self.put_entries(out);
                }
                text!(out, "" => HEADER_MODERN);
            }
        }
    }

    /// What is to be written over when all lines are written, and at which byte.
    pub(super) fn at_end(&self) -> Option<(u64, Vec<u8>)> {
        let mut head = Vec::new();
        self.put_entries(&mut head);
        (self.counts && self.dialect == Dialect::Modern).then_some((TRACER.len() as u64, head))
    }

    /// The line with the number of lines, and an empty one. Blanks reserve space for the digits of the final number.
    fn put_entries(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let Ftrace { entries, cpus, .. } = *self;
        text!(
            out, "# entries-in-buffer/entries-written: " => entries, "/" => entries, "   #P:" => cpus; "\n#"
        );
        out.resize(begin + ENTRIES_BYTES - 1, b' ');
        out.push(b'\n');
    }

    /// Adds a line, if the dialect has that event.
    pub(super) fn add(&mut self, record: &TraceRecord, task: &Task, out: &mut Vec<u8>) {
        let Some(name) = name(&record.event, self.dialect) else { return };
        self.entries += 1;
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
        | Tracepoint::Writeback(
            WritebackTracepoint::DirtyFolio { .. } | WritebackTracepoint::MarkInodeWriteback { .. },
        ) => "d....",
        Tracepoint::Writeback(WritebackTracepoint::ClearInodeWriteback { .. }) => "d.h..",
        _ => ".....",
    }
}
