//! From the bytes of a trace to events: which lines are of reclaim, and how many could not be read, why, and where the first was.
//!
//! A line that cannot be read is counted and passed over. Only bytes without any line of a trace in them, 64 MiB in a row, end the
//! reading: the input is not a trace, and may have no end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read};

use super::event::{self, Dialect, Event, Unreadable};
use super::line::{self, Form, Head, number};
use super::order::Window;

/// A trace has no longer lines.
const LINE_MAX: u64 = 64 << 10;

/// So many bytes in a row without a line of a trace are none.
const STRANGE_MAX: u64 = 64 << 20;

/// Names of unknown events, and CPUs, that are remembered.
const NAMES_MAX: usize = 16;
const CPUS_MAX: usize = 8192;

/// An event of reclaim.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The time. Unit: nanoseconds of the trace's clock.
    pub time_ns: u64,
    /// The task whose event it is.
    pub task: Task,
    /// The event.
    pub event: Event,
}

/// A task as the trace names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// The task's number.
    pub pid: u32,
    comm: [u8; COMM_MAX],
}

/// The kernel's names have 15 bytes at most; longer ones of later kernels fit as well.
const COMM_MAX: usize = 31;

impl Task {
    /// A task; at most 31 bytes of the name are kept.
    pub fn new(comm: &[u8], pid: u32) -> Task {
        let mut task = Task { pid, comm: [0; COMM_MAX] };
        let length = comm.len().min(COMM_MAX);
        task.comm[..length].copy_from_slice(&comm[..length]);
        task
    }

    /// The task's name, as text that no terminal obeys.
    pub fn comm(&self) -> String {
        let end = self.comm.iter().position(|&byte| byte == 0).unwrap_or(COMM_MAX);
        let text = String::from_utf8_lossy(&self.comm[..end]);
        text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
    }
}

/// Totals of a reading: lines, events, and lines that could not be read.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Bytes, decompressed.
    pub bytes: u64,
    /// Lines, also empty ones.
    pub lines: u64,
    /// Reclaim events that were read.
    pub events: u64,
    /// Events that are about something else, and functions.
    pub others: u64,
    /// Events whose name says reclaim, and that are not known, by name; the first few names.
    pub unknown: BTreeMap<String, u64>,
    /// Events that the kernel reports as lost.
    pub lost: u64,
    /// Reports of lost events without a number.
    pub losses: u64,
    /// Events that came after a later one, and took their place by time.
    pub displaced: u64,
    /// Those that came too late for that.
    pub late: u64,
    /// The largest step back in time from one event of reclaim to the next, and its line.
    pub back: Option<(u64, u64)>,
    /// The times of the first and the last event of any kind.
    pub span_ns: Option<(u64, u64)>,
    /// The number of CPUs with events; 0 if no line has a CPU.
    pub cpus: usize,
    /// The text is that of `perf script`.
    pub is_perf: bool,
    /// The number of events that show each dialect: 2010, modern.
    pub dialects: [u64; 2],
    /// The text begins as the kernel begins one, `# tracer: nop`.
    pub is_headed: bool,
    /// Lines that could not be read.
    pub skipped: Skipped,
    /// Reading ended early: nothing in the last 64 MiB was a line of a trace.
    pub gave_up: bool,
}

impl Totals {
    /// The dialect, where events show one: `2010`, `modern` or `mixed`.
    pub fn dialect(&self) -> Option<&'static str> {
        match self.dialects {
            [0, 0] => None,
            [_, 0] => Some(Dialect::Early.name()),
            [0, _] => Some(Dialect::Modern.name()),
            _ => Some("mixed"),
        }
    }

    /// Returns true if it is the text of a trace; one without events is, too.
    pub fn is_trace(&self) -> bool {
        self.events + self.others + self.lost + self.losses > 0 || !self.unknown.is_empty() || self.is_headed
    }
}

/// Lines that could not be read, by reason.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    reasons: BTreeMap<&'static str, (u64, u64)>,
}

impl Skipped {
    const CUT: &str = "truncated: the end of the line is missing";
    const BINARY: &str = "binary";
    const LONG: &str = "longer than 64 KiB";
    const STRANGE: &str = "not in the form of a trace";
    const FIELDS: &str = "an event with missing or damaged fields";

    fn count(&mut self, reason: &'static str, line: u64) {
        self.reasons.entry(reason).or_insert((0, line)).0 += 1;
    }

    /// Returns the total number.
    pub fn total(&self) -> u64 {
        self.reasons.values().map(|(count, _)| count).sum()
    }

    /// Reason, how many, and the number of the first such line.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64, u64)> + '_ {
        self.reasons.iter().map(|(reason, (count, first))| (*reason, *count, *first))
    }
}

/// Reads events out of bytes.
pub struct Reader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    window: Window<Record>,
    cpus: BTreeSet<u32>,
    totals: Totals,
    /// Bytes since the last line of a trace.
    strange: u64,
    is_over: bool,
    fault: Option<io::Error>,
}

impl<R: Read> Reader<R> {
    /// Reads from `input`, which is decompressed already.
    pub fn new(input: R) -> Reader<R> {
        Reader {
            input: BufReader::with_capacity(256 << 10, input),
            line: Vec::new(),
            window: Window::new(),
            cpus: BTreeSet::new(),
            totals: Totals::default(),
            strange: 0,
            is_over: false,
            fault: None,
        }
    }

    /// The totals of the reading, and the error that ended it, if one did.
    pub fn finish(mut self) -> (Totals, Option<io::Error>) {
        self.totals.displaced = self.window.displaced();
        self.totals.cpus = self.cpus.len();
        (self.totals, self.fault)
    }

    /// Reads the next line. Errors end the reading; what was read before them counts.
    fn read_line(&mut self) {
        self.line.clear();
        let mut bounded = (&mut self.input).take(LINE_MAX);
        let count = match bounded.read_until(b'\n', &mut self.line) {
            Ok(0) => {
                self.is_over = true;
                return;
            }
            Ok(count) => count as u64,
            Err(fault) => {
                self.fault = Some(fault);
                self.is_over = true;
                return;
            }
        };
        let before = self.totals.lines;
        self.totals.lines += 1;
        self.totals.bytes += count;
        let seen = self.totals.events + self.totals.others;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            self.sort_line();
        } else if count == LINE_MAX {
            self.skip(Skipped::LONG);
            self.pass_line();
        } else {
            // Half a number still looks like a number.
            self.skip(Skipped::CUT);
        }
        if self.totals.events + self.totals.others > seen || before == 0 {
            self.strange = 0;
        } else {
            self.strange += count;
        }
        if self.strange > STRANGE_MAX {
            (self.totals.gave_up, self.is_over) = (true, true);
        }
    }

    /// Passes over the rest of a long line.
    fn pass_line(&mut self) {
        while !self.is_over {
            let (passed, is_end) = match self.input.fill_buf() {
                Ok(buffer) => match buffer.iter().position(|&byte| byte == b'\n') {
                    Some(at) => (at + 1, true),
                    None => (buffer.len(), buffer.is_empty()),
                },
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => (0, false),
                Err(fault) => {
                    self.fault = Some(fault);
                    (0, true)
                }
            };
            self.input.consume(passed);
            self.totals.bytes += passed as u64;
            self.strange += passed as u64;
            if is_end {
                return;
            }
            if self.strange > STRANGE_MAX {
                (self.totals.gave_up, self.is_over) = (true, true);
            }
        }
    }

    fn skip(&mut self, reason: &'static str) {
        self.totals.skipped.count(reason, self.totals.lines);
    }

    /// Classifies and counts the current line.
    fn sort_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        match line::parse(&line) {
            Some(head) => self.take(head),
            None if self.totals.is_perf && is_frame(&line) => {}
            None if is_heading(&line) => self.totals.is_headed |= line.starts_with(b"# tracer:"),
            None => match lost(&line) {
                Some(Some(lost)) => self.totals.lost = self.totals.lost.saturating_add(lost),
                Some(None) => self.totals.losses += 1,
                None if is_text(&line) => self.skip(Skipped::STRANGE),
                None => self.skip(Skipped::BINARY),
            },
        }
        self.line = line;
    }

    fn take(&mut self, head: Head<'_>) {
        let Head { comm, pid, cpu, time_ns, event, fields, form } = head;
        self.totals.is_perf |= form == Form::Perf;
        match event::parse(event, fields) {
            Ok((event, dialect)) => {
                if event.is_reclaim() {
                    self.totals.events += 1;
                } else {
                    self.totals.others += 1;
                }
                if let Some(dialect) = dialect {
                    self.totals.dialects[dialect as usize] += 1;
                }
                let last_ns = self.totals.span_ns.map_or(0, |(_, last)| last);
                if last_ns.saturating_sub(time_ns) > self.totals.back.map_or(0, |(ns, _)| ns) {
                    self.totals.back = Some((last_ns - time_ns, self.totals.lines));
                }
                let task = Task::new(comm, pid);
                let is_late = self.window.push(time_ns, Record { time_ns, task, event });
                self.totals.late += u64::from(is_late);
            }
            Err(Unreadable::Other) => self.totals.others += 1,
            Err(Unreadable::Fields) => return self.skip(Skipped::FIELDS),
            Err(Unreadable::Unknown) => {
                let unknown = &mut self.totals.unknown;
                let name = String::from_utf8_lossy(event).into_owned();
                let is_listed = unknown.len() < NAMES_MAX || unknown.contains_key(&name);
                *unknown.entry(if is_listed { name } else { "others".to_string() }).or_default() += 1;
            }
        }
        if self.cpus.len() < CPUS_MAX {
            self.cpus.extend(cpu);
        }
        let (first, last) = self.totals.span_ns.unwrap_or((time_ns, time_ns));
        self.totals.span_ns = Some((first.min(time_ns), last.max(time_ns)));
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            if let Some(record) = self.window.pop(!self.is_over) {
                return Some(record);
            }
            if self.is_over {
                return None;
            }
            self.read_line();
        }
    }
}

/// What stands above, between and below events: comments, what `trace-cmd report` begins with, stacks.
fn is_heading(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let is_stack = || text.starts_with(b"=> ") || text == b"<stack trace>";
    let empty_cpu = || text.starts_with(b"CPU ") && text.ends_with(b" is empty");
    text.is_empty()
        || text[0] == b'#'
        || text.starts_with(b"cpus=")
        || text.starts_with(b"version = ")
        || is_stack()
        || empty_cpu()
}

/// A frame of a stack below an event, as `perf script` prints it: an address, perhaps a symbol and its file.
fn is_frame(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    let is_address = (4..=16).contains(&end) && text[..end].iter().all(u8::is_ascii_hexdigit);
    is_address && line[0].is_ascii_whitespace() && (end == text.len() || text.ends_with(b")"))
}

/// `CPU:1 [LOST 33 EVENTS]`, where a buffer was full; without the number where the kernel did not count them. `trace-cmd report` writes
/// `CPU:1 [33 EVENTS DROPPED]`, `perf script` a line that ends in `PERF_RECORD_LOST lost 33`.
fn lost(line: &[u8]) -> Option<Option<u64>> {
    const PERF: &[u8] = b"PERF_RECORD_LOST";
    if let Some(at) = line.windows(PERF.len()).position(|part| part == PERF) {
        let rest = line[at + PERF.len()..].strip_prefix(b"_SAMPLES").unwrap_or(&line[at + PERF.len()..]);
        return Some(rest.trim_ascii().strip_prefix(b"lost ").and_then(number).map(|(lost, _)| lost));
    }
    let text = line.trim_ascii().strip_prefix(b"CPU:")?;
    let (_, text) = number(text)?;
    let text = text.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    if text == b"LOST EVENTS" || text == b"EVENTS DROPPED" {
        return Some(None);
    }
    let (lost, rest) = number(text.strip_prefix(b"LOST ").unwrap_or(text))?;
    (rest == b" EVENTS" || rest == b" EVENTS DROPPED").then_some(Some(lost))
}

fn is_text(line: &[u8]) -> bool {
    std::str::from_utf8(line)
        .is_ok_and(|text| !text.chars().any(|c| c.is_control() && c != '\t' && c != '\r'))
}
