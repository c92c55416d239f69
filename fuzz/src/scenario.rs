//! Scenario files, as the command handles them: read, changed by `--set`, and checked, with every error at its place. A small
//! scenario that passes the checks is built and run briefly.
//!
//! Bytes are the file. Its lines that begin with `#set ` are the options, so that every scenario file is a seed.

use std::path::Path;

use pageout_engine::Nanos;
use pageout_sim::RunError;
use pageout_sim::scenario::Scenario;

use pageout_study::Error;
use pageout_study::scenario::source::{Setting, Source};

/// How long a scenario runs; time enough for limits to be hit, on devices that take 100 us.
const RUN: Nanos = Nanos(3_000_000);

const PAGES_MAX: u64 = 1 << 18;
const COUNT_MAX: usize = 32;

/// Reads bytes as a scenario file.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let settings = text.lines().filter_map(|line| line.strip_prefix("#set "));
    let settings: Vec<Setting> = settings.filter_map(|setting| setting.parse().ok()).collect();
    let source = match Source::parse(Path::new("fuzz.toml"), text.to_string()) {
        Ok(source) => source,
        Err(error) => return shown(&error),
    };
    let scenario = match source.scenario(&settings) {
        Ok(scenario) => scenario,
        Err(error) => return shown(&error),
    };
    if !is_small(&scenario) {
        return;
    }
    let mut machine = match scenario.build() {
        Ok(machine) => machine,
        Err(problem) => {
            assert!(!source.locate(problem).to_string().is_empty());
            return;
        }
    };
    if let Err(error) = machine.run_until(RUN, &mut ()) {
        assert!(!matches!(error, RunError::Stalled { .. }), "{error}");
    }
    machine.engine().check_invariants();
    let _ = machine.report();
}

/// A message that can't be printed, or is empty, is a bug too.
fn shown(error: &Error) {
    assert!(!error.to_string().is_empty());
}

/// Returns true if a scenario can be built and run in milliseconds, without reading other files.
fn is_small(scenario: &Scenario) -> bool {
    let memory: u64 =
        scenario.machine.node_sizes().iter().map(|size| size.pages_ceil()).fold(0, u64::saturating_add);
    let copies: u64 = scenario.task.iter().map(|task| u64::from(task.copies)).sum();
    let objects = || scenario.task.iter().flat_map(|task| &task.object);
    let sizes = scenario.file.iter().map(|file| file.size).chain(objects().filter_map(|object| object.size));
    let files = scenario.files();
    let reached = objects().filter_map(|object| {
        let pattern = files.pattern_of(object)?.ok()?;
        let requests = pattern.object_pages(0).into_values().max().unwrap_or(0);
        Some(requests.saturating_mul(object.request_pages()))
    });
    let counts = [
        scenario.file.len(),
        scenario.memcg.len(),
        scenario.task.len(),
        scenario.event.len(),
        objects().count(),
    ];
    memory <= PAGES_MAX
        && scenario.machine.cpus <= 64
        && copies <= COUNT_MAX as u64
        && counts.iter().all(|&count| count <= COUNT_MAX)
        && sizes.map(|size| size.pages_ceil()).chain(reached).all(|pages| pages <= PAGES_MAX)
        && objects().all(|object| object.trace.is_none())
}
