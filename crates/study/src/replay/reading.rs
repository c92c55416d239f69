//! Reading the traces of a replay: how often each is read, which of its accesses are kept, and when they start.

use std::path::Path;
use std::sync::Arc;

use pageout_sim::Pace;
use pageout_workload::trace::{self, Footprint, Interpretation, Loaded, Outlier, Part, Parted, Requests};
use pageout_workload::{ReadOptions, TraceError};

use super::ask::Ask;
use super::setup::Accesses;
use crate::error::Error;
use crate::scenario::interpretation::{self, remark_on};
use crate::scenario::traces::reading;
use crate::watch::Watcher;
use crate::{bench, figures};

/// True if pages of a trace have neighbours. Pages of a program's memory have. Errors: it can't be read.
pub(super) fn has_neighbours(ask: &Ask, trace: &Path) -> Result<bool, Error> {
    if bench::kept(trace).is_some() {
        return Ok(true);
    }
    Ok(trace::has_neighbours(trace, &ask.read_options()?)?)
}

/// Remarks on how a trace is understood. Errors: it can't be read.
pub(super) fn interpreted(
    trace: &Path,
    options: &ReadOptions,
    watcher: &dyn Watcher,
) -> Result<Interpretation, Error> {
    interpretation::remark(trace, options, watcher).map_err(|error| Error::asked(error.to_string()))
}

/// Remarks on what only the rest of a trace has shown.
pub(super) fn remark_later(
    trace: &Path,
    interpretation: &Interpretation,
    requests: Option<&Requests>,
    watcher: &dyn Watcher,
) {
    let later = requests.into_iter().flat_map(|of| of.doubts.iter().skip(interpretation.doubts.len()));
    later.for_each(|doubt| remark_on(trace, doubt, watcher));
}

/// Possible other interpretations, as far as the trace was read.
pub(super) fn doubts<'a>(interpretation: &'a Interpretation, requests: Option<&'a Requests>) -> &'a [String] {
    let of_all = requests.map(|of| &of.doubts).filter(|doubts| !doubts.is_empty());
    of_all.unwrap_or(&interpretation.doubts)
}

/// Accesses of a trace that warm up. Errors: none is left that counts.
pub(super) fn warm_up(ask: &Ask, path: &Path, accesses: u64) -> Result<u64, Error> {
    let warm_up = ask.warm_up.map_or(0, |warm_up| warm_up.of(accesses));
    if warm_up < accesses {
        return Ok(warm_up);
    }
    Err(Error::asked(format!(
        "--warm-up {warm_up}: {} has only {accesses} accesses, so none is left to count",
        path.display()
    )))
}

/// The pages of the trace, and its accesses if it is replayed more than once. A `.pgt` contains the number of its pages, so one replay can
/// begin immediately and read while it runs.
pub(super) fn loaded(
    ask: &Ask,
    path: &Path,
    replays: usize,
    options: &ReadOptions,
    watcher: &dyn Watcher,
) -> Result<Loaded, TraceError> {
    let replays = if ask.print_scenario { 0 } else { replays };
    if replays <= 1
        && let Some(footprint) = trace::header(path, options)?.and_then(|header| header.footprint)
    {
        return Ok(Loaded {
            has_neighbours: trace::has_neighbours(path, options)?,
            ..Loaded::of(footprint, None)
        });
    }
    reading(path, watcher, |tell| trace::load(path, options, ask.trace_memory.0, tell))
}

/// What is replayed, with its times in an open loop. Nothing if a signal came meanwhile.
pub(super) fn accesses(
    ask: &Ask,
    path: &Path,
    replays: usize,
    options: &ReadOptions,
    watcher: &dyn Watcher,
) -> Result<Option<Accesses>, Error> {
    let Some(speed) = ask.timed else {
        let loaded = loaded(ask, path, replays, options, watcher)?;
        return Ok(Some(Accesses { loaded: Arc::new(loaded), pace: None }));
    };
    let Some(parted) = parted(ask, path, options, None, watcher)? else { return Ok(None) };
    if parted.went_back > 0 {
        let back = figures::counted(parted.went_back, "access");
        let text = format!("the timestamps of {back} go back; these accesses start with the access before");
        remark_on(path, &text, watcher);
    }
    let Some(Part { loaded, times, .. }) = parted.parts.into_iter().next() else {
        let loaded = Loaded::of(Footprint::default(), None);
        return Ok(Some(Accesses { loaded: Arc::new(loaded), pace: None }));
    };
    let times = times.expect("times were asked for");
    let loaded = Loaded { requests: parted.requests, ..(*loaded).clone() };
    Ok(Some(Accesses { loaded: Arc::new(loaded), pace: Some(Pace::arrivals(&times, speed)) }))
}

/// A trace by tenant, or as a whole with its times. Nothing if a signal came meanwhile.
pub(super) fn parted(
    ask: &Ask,
    path: &Path,
    options: &ReadOptions,
    by: Option<&str>,
    watcher: &dyn Watcher,
) -> Result<Option<Parted>, Error> {
    let mut is_read = true;
    let parted = reading(path, watcher, |tell| {
        let mut go_on = |accesses| {
            tell(accesses);
            is_read = watcher.stop().is_none();
            is_read
        };
        trace::load_parted(path, options, by, ask.timed.is_some(), ask.trace_memory.0, &mut go_on)
    })?;
    // Before it runs: the run waits for the gap, and what waits may be the reader.
    if let Some(Outlier { gap_ns, rest_ns, behind }) = parted.as_ref().and_then(Parted::outlier) {
        let text = format!(
            "a gap of {} before the last {} accesses is longer than all other gaps together ({}); is a \
             timestamp damaged? A run with --timed waits through this gap",
            figures::time(gap_ns),
            figures::count(behind),
            figures::time(rest_ns)
        );
        remark_on(path, &text, watcher);
    }
    if parted.is_none() && is_read {
        let option = if by.is_some() { "--by" } else { "--timed" };
        return Err(Error::asked(format!(
            "{option} keeps the trace in memory, but {} needs more than --trace-memory {}\nhelp: use a larger --trace-memory",
            path.display(),
            ask.trace_memory
        )));
    }
    Ok(parted)
}
