//! Simulating a scenario: its machine is built, run, and turned into figures; or into an error with the figures so far.

use std::ops::ControlFlow;

use indicatif::ProgressBar;
use pageout_engine::Nanos;
use pageout_sim::scenario::{Problem, Scenario};
use pageout_sim::{Ended, Machine, Observer, Progress, RunError, TraceRecord};

use crate::failure::Failure;
use crate::print::signals;
use crate::result::run_result::RunResult;
use crate::result::samples::Samples;
use crate::result::timeline::Timeline;
use crate::result::trail::Trail;
use crate::tracing::Tracing;

/// Why there is no complete result.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The machine could not be built.
    NotBuilt(Problem),
    /// The workload failed; the figures are those up to then.
    Failed(RunError, Box<RunResult>),
    /// A signal has ended it, and likewise.
    Interrupted(i32, Box<RunResult>),
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Failure {
        match stopped {
            Stopped::NotBuilt(problem) => {
                Failure::Input(anyhow::anyhow!("{}: {}", problem.key, problem.message))
            }
            Stopped::Failed(error, _) => error.into(),
            Stopped::Interrupted(signal, _) => Failure::interrupted(signal),
        }
    }
}

/// Runs `scenario` to its end; `bar` advances by accesses.
pub(crate) fn simulate(scenario: &Scenario, bar: &ProgressBar) -> Result<RunResult, Stopped> {
    let machine = scenario.build().map_err(Stopped::NotBuilt)?;
    simulate_on(machine, scenario, bar, OverTime::default())
}

/// Runs `scenario` likewise, and notes how far it has come by when.
pub(crate) fn simulate_with_trail(scenario: &Scenario, bar: &ProgressBar) -> Result<RunResult, Stopped> {
    let machine = scenario.build().map_err(Stopped::NotBuilt)?;
    let mut trail = Trail::default();
    let over_time = OverTime { trail: Some(&mut trail), ..OverTime::default() };
    let result = simulate_on(machine, scenario, bar, over_time)?;
    Ok(RunResult { trail: Some(trail), ..result })
}

/// Who is told the figures of a run over time.
#[derive(Default)]
pub(crate) struct OverTime<'a> {
    pub(crate) timeline: Option<&'a mut Timeline>,
    pub(crate) samples: Option<&'a mut Samples>,
    pub(crate) tracing: Option<&'a mut Tracing>,
    pub(crate) trail: Option<&'a mut Trail>,
    /// Who hears tracepoints besides.
    pub(crate) listener: Option<&'a mut Listener<'a>>,
}

/// Hears a tracepoint, and sees the machine as it is then.
pub(crate) type Listener<'a> = dyn FnMut(&TraceRecord, &Machine) + 'a;

/// Simulates on a machine that is built already, with its figures over time.
pub(crate) fn simulate_on<'a>(
    mut machine: Machine,
    scenario: &Scenario,
    bar: &'a ProgressBar,
    mut over_time: OverTime<'a>,
) -> Result<RunResult, Stopped> {
    let _listening = signals::listen();
    let trail = over_time.trail.take();
    let mut observer = Watcher { bar, seen: 0, over_time };
    let until = scenario.until.map_or(Nanos(u64::MAX), |until| Nanos(until.0));
    let ended = match (signals::came(), trail) {
        (Some(_), _) => Ok(Ended::Interrupted),
        (None, Some(trail)) => trail.follow(&mut machine, until, &mut observer),
        (None, None) => machine.run_until(until, &mut observer),
    };
    let result = RunResult::of(scenario, &mut machine);
    match ended {
        Ok(Ended::Interrupted) => {
            let signal = signals::came().expect("only a signal has it end before its time");
            Err(Stopped::Interrupted(signal, Box::new(result)))
        }
        Ok(_) => Ok(result),
        Err(error) => Err(Stopped::Failed(error, Box::new(result))),
    }
}

/// Accesses of all tasks, when the scenario tells: for a bar that knows its end.
pub(crate) fn accesses(scenario: &Scenario) -> Option<u64> {
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

/// Moves a bar, which several runs may share, and adds rows to a timeline.
struct Watcher<'a> {
    bar: &'a ProgressBar,
    seen: u64,
    over_time: OverTime<'a>,
}

impl Observer for Watcher<'_> {
    fn sample(&mut self, at: Nanos, machine: &Machine) {
        if let Some(timeline) = &mut self.over_time.timeline {
            timeline.add(at, machine);
        }
        if let Some(samples) = &mut self.over_time.samples {
            samples.add(at, machine);
        }
        if let Some(tracing) = &mut self.over_time.tracing {
            tracing.sample(at, machine);
        }
    }

    fn tracepoint(&mut self, record: &TraceRecord, machine: &Machine) {
        if let Some(tracing) = &mut self.over_time.tracing {
            tracing.add(record, machine);
        }
        if let Some(samples) = &mut self.over_time.samples {
            samples.hear(record.at, &record.event);
        }
        if let Some(listener) = &mut self.over_time.listener {
            listener(record, machine);
        }
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.bar.inc(progress.accesses - self.seen);
        self.seen = progress.accesses;
        match signals::came() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}
