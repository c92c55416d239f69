//! Simulating a scenario: its machine is built, run, and turned into figures; or into an error with the figures so far.

use std::ops::ControlFlow;

use pageout_engine::Nanos;
use pageout_sim::scenario::{Problem, Scenario};
use pageout_sim::{Ended, Machine, Observer, Progress, RunError, TraceRecord};

use crate::Watcher;
use crate::error::Error;
use crate::result::run_result::RunResult;
use crate::result::trail::Trail;

/// The reason why there is no complete result.
#[derive(Debug)]
pub enum Stopped {
    /// The machine could not be built.
    NotBuilt(Problem),
    /// The workload failed; the figures are those up to then.
    Failed(RunError, Box<RunResult>),
    /// The watcher has ended it, for this reason, and likewise.
    Interrupted(&'static str, Box<RunResult>),
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Error {
        match stopped {
            Stopped::NotBuilt(problem) => Error::NotBuilt(problem),
            Stopped::Failed(error, _) => Error::Run(error),
            Stopped::Interrupted(by, _) => Error::Interrupted(format!("interrupted by {by}")),
        }
    }
}

/// Runs `scenario` to its end. The watcher is notified of accesses; the caller has the stage that they are part of.
pub fn simulate(scenario: &Scenario, watcher: &dyn Watcher) -> Result<RunResult, Stopped> {
    let machine = scenario.build().map_err(Stopped::NotBuilt)?;
    simulate_on(machine, scenario, watcher, &mut [])
}

/// Runs `scenario` likewise without a clock ([`Machine::run_untimed`]): of the result, only counts have a meaning.
pub fn simulate_untimed(scenario: &Scenario, watcher: &dyn Watcher) -> Result<RunResult, Stopped> {
    let machine = scenario.build().map_err(Stopped::NotBuilt)?;
    play(machine, scenario, watcher, &mut [], How::Untimed)
}

/// Runs `scenario` likewise, and notes how far it has come by when.
pub fn simulate_with_trail(scenario: &Scenario, watcher: &dyn Watcher) -> Result<RunResult, Stopped> {
    let machine = scenario.build().map_err(Stopped::NotBuilt)?;
    let mut trail = Trail::default();
    let result = play(machine, scenario, watcher, &mut [], How::Followed(&mut trail))?;
    Ok(RunResult { trail: Some(trail), ..result })
}

/// Simulates on an existing machine. Listeners get samples and tracepoints, as far as the machine was set up to report them.
pub fn simulate_on(
    machine: Machine,
    scenario: &Scenario,
    watcher: &dyn Watcher,
    listeners: &mut [&mut dyn Observer],
) -> Result<RunResult, Stopped> {
    play(machine, scenario, watcher, listeners, How::Timed)
}

/// How a machine is run.
enum How<'a> {
    /// To its end.
    Timed,
    /// With a trail.
    Followed(&'a mut Trail),
    /// Without a clock.
    Untimed,
}

fn play(
    mut machine: Machine,
    scenario: &Scenario,
    watcher: &dyn Watcher,
    listeners: &mut [&mut dyn Observer],
    how: How,
) -> Result<RunResult, Stopped> {
    let mut observer = Listening { watcher, seen: 0, listeners };
    let until = scenario.until.map_or(Nanos(u64::MAX), |until| Nanos(until.0));
    let ended = match (watcher.stop(), how) {
        (Some(_), _) => Ok(Ended::Interrupted),
        (None, How::Followed(trail)) => trail.follow(&mut machine, until, &mut observer),
        (None, How::Timed) => machine.run_until(until, &mut observer),
        (None, How::Untimed) => machine.run_untimed(&mut observer),
    };
    let result = RunResult::of(scenario, &mut machine);
    match ended {
        Ok(Ended::Interrupted) => {
            let by = watcher.stop().expect("only the watcher has it end before its time");
            Err(Stopped::Interrupted(by, Box::new(result)))
        }
        Ok(_) => Ok(result),
        Err(error) => Err(Stopped::Failed(error, Box::new(result))),
    }
}

/// Accesses of all tasks, when the scenario tells: for a bar that knows its end.
pub fn accesses(scenario: &Scenario) -> Option<u64> {
    let files = scenario.files();
    let mut sum = 0u64;
    for task in scenario.task.iter().filter(|task| !task.background) {
        for object in &task.object {
            let accesses = match &object.trace {
                Some(trace) => trace.loaded.as_ref()?.footprint.accesses,
                None => {
                    let Some(pattern) = files.pattern_of(object) else { continue };
                    let requests = pattern.ok()?.stream(0, scenario.seed).ok()?.len_hint()?;
                    requests.checked_mul(object.request_pages())?
                }
            };
            sum = sum
                .checked_add(accesses.checked_mul(
                    u64::from(task.copies) * u64::from(task.threads) * u64::from(task.loops),
                )?)?;
        }
    }
    Some(sum)
}

/// Notifies the watcher, which several runs can share, and all listeners of this run.
struct Listening<'a, 'b> {
    watcher: &'a dyn Watcher,
    seen: u64,
    listeners: &'a mut [&'b mut dyn Observer],
}

impl Observer for Listening<'_, '_> {
    fn sample(&mut self, at: Nanos, machine: &Machine) {
        self.listeners.iter_mut().for_each(|listener| listener.sample(at, machine));
    }

    fn tracepoint(&mut self, record: &TraceRecord, machine: &Machine) {
        self.listeners.iter_mut().for_each(|listener| listener.tracepoint(record, machine));
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.watcher.advance(progress.accesses - self.seen);
        self.seen = progress.accesses;
        match self.watcher.stop() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}
