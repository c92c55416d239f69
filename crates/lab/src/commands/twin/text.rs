//! What a recording is of, and what its counters tell without a simulation, in sentences.

use pageout_record::ProcessRecord;
use pageout_study::basis::{Verdict, verdict};
use pageout_study::twin::{By, Counted, Need, Recording, TwinMachine};

use crate::print::figures;

/// What the twin is of.
pub(super) fn heading(recording: &Recording) -> String {
    let manifest = &recording.manifest;
    let limit = match manifest.group.limit_bytes {
        Some(limit) => format!("a limit of {}", figures::bytes(limit)),
        None => "no limit".to_string(),
    };
    let what = match manifest.recording.sample {
        0 | 1 => "a recording".to_string(),
        sample => format!("a sample of one page in {sample}"),
    };
    format!(
        "{}: {what} of {}, {} accesses in {}, Linux {} as {}, {limit}\n",
        recording.folder.display(),
        manifest.recording.target,
        figures::count(manifest.recording.accesses),
        figures::time(manifest.recording.duration_ns),
        manifest.kernel.release,
        TwinMachine::of(recording).profile,
    )
}

/// What processes read, without an event.
fn by_processes(of: &ProcessRecord) -> String {
    let hits = match of.rchar.checked_sub(of.read_bytes).filter(|_| of.rchar > 0) {
        Some(hits) => {
            format!("at most {} of the bytes were hits", figures::percent(figures::share(hits, of.rchar)))
        }
        None => "faults of mapped files and readahead read more than calls".to_string(),
    };
    format!(
        "By /proc/PID/io: calls read {}, pipes and sockets included; disks delivered {}, readahead and faults included: {hits}.",
        figures::bytes(of.rchar),
        figures::bytes(of.read_bytes)
    )
}

/// What is known without a twin: how many pages have to come in.
pub(super) fn counters(counted: &Verdict<Counted>, recording: &Recording) -> Vec<String> {
    let mut lines = vec![match counted {
        Err(unknown) => format!("The floor, pages that no memory can save: {unknown}."),
        Ok(counted) => {
            let count = figures::count;
            let (insertions, again, distinct) =
                (count(counted.insertions), count(counted.again), count(counted.distinct()));
            let share = figures::percent(figures::share(counted.again, counted.insertions));
            match counted.by {
                By::Events => format!(
                    "By first insertions: {insertions} pages came in, {again} of them again. So {distinct} distinct pages did, which no memory can save; more memory saves at most {share} of what comes in."
                ),
                By::Counters => format!(
                    "By counters alone: {insertions} pages came in, {again} of them again. So {distinct} distinct pages did, which no memory can save; more memory saves at most {share} of what comes in."
                ),
                By::Remembered => format!(
                    "By counters alone: {insertions} pages came in, at least {again} of them ({share}) again, as the kernel counts those that it remembers. So at most {distinct} distinct pages did; the floor, and what more memory saves at most: {}.",
                    verdict(recording, [Need::FirstInsertions, Need::NothingForgotten], |_| String::new())
                        .unwrap_or_else(|unknown| unknown.to_string())
                ),
            }
        }
    }];
    if recording.header.is_none() {
        lines.extend(recording.manifest.processes.as_ref().map(by_processes));
        let floor = match counted {
            Ok(counted) if counted.is_floor() => ", the floor",
            _ => "",
        };
        lines.extend([
            format!("Identified: refaults at this limit{floor}, what else the group holds. One more point (a lower memory.high for two minutes) gives the slope there."),
            "Never identified by counters: the curve beyond its points, which policy would do better, who of several readers causes misses, scans against reuse. Record accesses for these.".to_string(),
        ]);
    }
    lines
}
