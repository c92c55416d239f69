//! What a trace of a real kernel says about reclaim: who reclaimed, how long tasks were stalled by it, and what it came to.
//!
//! ```text
//!   file, .zst, stdin, trace.dat ──input──▶ text ──kerneltext::ftrace──▶ events by time ──kerneltext::vmscan──▶ sums ──▶ Answer
//! ```
//! The questions are those of the series "Avoid overflowing of stack during page reclaim" of 2010, which introduced these events and the
//! script that reads them. They are: pages that direct reclaim and kswapd scan, free and write, and the time that tasks wait for it. Here
//! calls at a cgroup's limit are a third kind, which that script does not have.
//!
//! A trace of any length is read once, in constant memory. Lines that cannot be read are counted by reason and never end the report; but
//! then it is not complete, which the answer says.

mod input; // from a file to bytes
pub mod summary; // the sums in rows
pub mod story; // sentences
pub mod why; // where the time of one call went
mod json; // the answer as data

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pageout_kerneltext::ftrace::{Reader, Totals};
use pageout_kerneltext::vmscan::{Options, Reclaimer, Sums, Tally};
use serde::{Deserialize, Serialize};

use self::input::Input;
use crate::error::{Error, bail, ensure};
use crate::figures;
use crate::watch::{Stage, Watcher};

/// The traces to analyse.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// Texts of traces, or `-` for standard input. One or more.
    pub traces: Vec<PathBuf>,
    /// Tasks of one name are one row. Default false.
    pub ignore_pid: bool,
    /// User and system CPU time of what was traced, in seconds above 0: one for each trace, or none.
    pub cpu_time: Vec<f64>,
    /// The elapsed time of each trace in seconds, above 0; empty for the time from the first event to the last.
    pub elapsed: Vec<f64>,
    /// Single calls of each trace that are kept, of the first ones. Default 0.
    pub items_max: usize,
}

/// The result for the traces.
pub struct Answer {
    /// Each trace.
    pub readings: Vec<Reading>,
    /// Tasks of one name are one row.
    pub ignore_pid: bool,
}

/// The result for one trace.
pub struct Reading {
    /// The file's name.
    pub name: String,
    /// The totals of the reading.
    pub totals: Totals,
    /// The sums of the events.
    pub sums: Sums,
    /// The times that the trace does not contain.
    pub times: Times,
    /// The reasons why the figures are incomplete.
    pub faults: Vec<String>,
    /// A description of work outside of any call.
    pub outside: &'static str,
    /// True if it is a real machine's, on which other events can be recorded.
    pub is_recorded: bool,
}

/// Times that a trace does not contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The duration.
    pub elapsed_s: Option<f64>,
    /// The CPU time of what was traced.
    pub cpu_s: Option<f64>,
}

/// What a trace shows of work whose begin it doesn't: `memory.reclaim`, madvise, a call that began before it.
const OUTSIDE: &str = "outside of any call";

/// Reads the traces. Errors: an invalid option; an unreadable file, or one that is not a trace. Unreadable lines are part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let times = times(ask)?;
    let options = Options { ignore_pid: ask.ignore_pid, items_max: ask.items_max, has_all_events: false };
    let readings = ask.traces.iter().zip(times).map(|(path, times)| read(path, options, times, watcher));
    let readings = readings.collect::<Result<Vec<Reading>, Error>>()?;
    let answer = Answer { readings, ignore_pid: ask.ignore_pid };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// Checks that the answer agrees with itself. Errors: the sum that does not.
    pub fn check(&self) -> Result<(), String> {
        for Reading { totals, sums, .. } in &self.readings {
            if totals.events + totals.others + totals.skipped.total() > totals.lines {
                return Err("found more events than lines".to_string());
            }
            if totals.late > totals.displaced {
                return Err("found more late events than displaced events".to_string());
            }
            for class in Reclaimer::ALL {
                let over_time = sums.timeline.steps.iter().map(|step| step[class as usize]);
                let (scanned, written) = over_time
                    .fold((0, 0), |(scanned, written), of| (scanned + of.scanned, written + of.written));
                let work = sums.work(class);
                if (scanned, written) != (work.scanned.total(), work.written()) {
                    return Err(format!(
                        "the work of {} over time differs from the work of its tasks",
                        class.name()
                    ));
                }
            }
            if sums.stalls.iter().any(|stall| stall.process >= sums.processes.len()) {
                return Err("a call belongs to an unknown task".to_string());
            }
        }
        Ok(())
    }
}

/// Reads bytes as a trace, for fuzzers.
#[doc(hidden)]
pub fn read_bytes(bytes: &[u8]) -> Answer {
    let options = Options { ignore_pid: bytes.len() % 2 == 1, items_max: 100, has_all_events: false };
    let (totals, sums, _) = read_text(bytes, options);
    assert!(totals.bytes <= bytes.len() as u64);
    let faults = faults(&totals);
    let (name, times) = ("fuzzed".to_string(), Times::default());
    let reading = Reading { name, totals, sums, times, faults, outside: OUTSIDE, is_recorded: true };
    let answer = Answer { readings: vec![reading], ignore_pid: false };
    assert_eq!(answer.check(), Ok(()));
    answer
}

/// How long the test took and what CPU time it used, for each trace.
fn times(ask: &Ask) -> Result<Vec<Times>, Error> {
    let list = |option: &str, values: &[f64]| -> Result<Vec<Option<f64>>, Error> {
        let traces = ask.traces.len();
        ensure!(
            values.is_empty() || values.len() == traces,
            "{option}: found {} values, expected one for each of {traces} traces, separated by commas",
            values.len()
        );
        if let Some(bad) = values.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
            bail!("{option} {bad}: expected seconds above 0");
        }
        Ok((0..traces).map(|at| values.get(at).copied()).collect())
    };
    let (elapsed, cpu) = (list("--elapsed", &ask.elapsed)?, list("--cpu-time", &ask.cpu_time)?);
    Ok(elapsed.into_iter().zip(cpu).map(|(elapsed_s, cpu_s)| Times { elapsed_s, cpu_s }).collect())
}

/// A file whose bytes are reported while it is read.
struct Counted<'a> {
    file: File,
    watcher: &'a dyn Watcher,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.watcher.advance(count as u64);
        Ok(count)
    }
}

fn read(path: &Path, options: Options, times: Times, watcher: &dyn Watcher) -> Result<Reading, Error> {
    let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    watcher.begin(&bytes.map_or(Stage::Reading(path), |bytes| Stage::Decoding { path, bytes }));
    let reading = read_input(path, options, times, watcher);
    watcher.end();
    reading
}

fn read_input(path: &Path, options: Options, times: Times, watcher: &dyn Watcher) -> Result<Reading, Error> {
    let mut input = Input::open(path, |file| Box::new(Counted { file, watcher }))?;
    let (totals, sums, fault) = read_text(&mut input.text, options);
    let name = input.name.clone();
    let mut faults = faults(&totals);
    if let Some(fault) = fault {
        faults.push(format!("it ends after {}: {fault}", figures::bytes(totals.bytes)));
    }
    let closed = if totals.gave_up { Ok(()) } else { input.close(totals.bytes) };
    if let Err(error) = closed {
        faults.push(error.to_string());
    }
    if !totals.is_trace() {
        return Err(no_trace(&name, &totals, &faults));
    }
    Ok(Reading { name, totals, sums, times, faults, outside: OUTSIDE, is_recorded: true })
}

/// Sums up a text, as far as it can be read, and says why not further.
fn read_text(text: impl Read, options: Options) -> (Totals, Sums, Option<io::Error>) {
    let mut tally = Tally::new(options);
    let mut reader = Reader::new(text);
    for record in reader.by_ref() {
        tally.add(record);
    }
    let (totals, fault) = reader.finish();
    let sums = tally.finish(&totals);
    (totals, sums, fault)
}

/// What of a trace was not counted, and why.
fn faults(totals: &Totals) -> Vec<String> {
    let lines = |count: u64| if count == 1 { "line".to_string() } else { "lines".to_string() };
    let skipped = totals.skipped.reasons().map(|(reason, count, first)| {
        format!(
            "{} {} skipped, {reason} (first: line {})",
            figures::count(count),
            lines(count),
            figures::count(first)
        )
    });
    let mut faults: Vec<String> = skipped.collect();
    if totals.late > 0 {
        faults.push(format!(
            "{} events far out of order: they are counted, but calls that begin or end with them can be \
             missing. Was the trace joined from traces of single CPUs? /sys/kernel/tracing/trace and \
             `trace-cmd report` print events in order",
            figures::count(totals.late)
        ));
    }
    if totals.gave_up {
        faults.push(format!(
            "stopped after {}: the last 64 MiB had no line of a trace",
            figures::bytes(totals.bytes)
        ));
    }
    faults
}

/// Why a file is none.
fn no_trace(name: &str, totals: &Totals, faults: &[String]) -> Error {
    if totals.bytes == 0 && faults.is_empty() {
        return Error::Asked(format!(
            "{name}: found an empty file, expected the text of a trace\nhelp: write it by `cat /sys/kernel/tracing/trace`, `trace-cmd report` or `perf script`"
        ));
    }
    let mut text = format!(
        "{name}: not the text of a trace; expected lines such as\n  dd-160 [001] ..... 207.727380: \
         mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL\n  dd 160 [001] 207.727380: \
         vmscan:mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL"
    );
    for fault in faults {
        text += &format!("\n  {fault}");
    }
    text += "\nhelp: `pageout import` reads text that lists accesses, `pageout replay` reads access traces";
    Error::Asked(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that is broken, and what breaks it.
    type Mutant = (&'static str, fn(&mut Reading));

    const TRACE: &str = "\
dd-160 [001] ..... 1.000000: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
dd-160 [001] ..... 1.000100: mm_vmscan_lru_isolate: classzone=2 order=0 nr_requested=32 nr_scanned=32 nr_skipped=0 nr_taken=32 lru=inactive_file
dd-160 [001] ..... 1.000200: mm_vmscan_direct_reclaim_end: nr_reclaimed=32
";

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        let answer = || read_bytes(TRACE.as_bytes());
        let sums = &answer().readings[0].sums;
        assert!(sums.work(Reclaimer::Direct).scanned.total() == 32 && sums.stalls.len() == 1);
        let mutants: [Mutant; 4] = [
            ("found more events than lines", |reading| reading.totals.lines = 1),
            ("more late events than displaced events", |reading| reading.totals.late = 1),
            ("differs from the work of its tasks", |reading| {
                reading.sums.processes.clear();
                reading.sums.stalls.clear();
            }),
            ("a call belongs to an unknown task", |reading| reading.sums.stalls[0].process = 7),
        ];
        for (sum, mutate) in mutants {
            let mut answer = answer();
            mutate(&mut answer.readings[0]);
            let wrong = answer.check().unwrap_err();
            assert!(wrong.contains(sum), "{sum}: {wrong}");
        }
    }
}
