//! `pageout run`: one scenario, one result.

pub(crate) mod args; // arguments
mod page; // report: tasks' time, and the machine over time

use std::path::Path;

use pageout_engine::Nanos;
use pageout_sim::scenario::{Scenario, TimeSpan};
use pageout_sim::{Machine, Observer};
use pageout_study::result::run_result::RunResult;
use pageout_study::result::samples::Samples;
use pageout_study::run::{self, Answer, Ask};
use serde_json::json;

use crate::commands::vmscan_report::Listener;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::summary::summary;
use crate::print::timeline::Timeline;
use crate::print::{Layout, Terminal, outputs};
use crate::report::{Picture, check_name};
use crate::tracing::Tracing;
use args::RunArgs;
use page::Seen;

/// The shortest interval of --timeline-every: that of a recurring event.
const TIMELINE_EVERY_MIN: TimeSpan = TimeSpan(1_000);

/// Runs the scenario and prints a summary. If the run fails, the figures so far are printed on standard error, above the error; with
/// `--json` they are in the result.
pub(crate) fn run(args: &RunArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::None)?;
    }
    let terminal = Terminal::new(&cx.output);
    let ask = Ask {
        scenario: args.scenario.clone(),
        changes: args.options.changes(),
        variant: args.variant.name.clone(),
    };
    if args.check {
        let notes = run::check(&ask, &terminal)?;
        if cx.output.is_data() {
            return cx
                .output
                .print_json(&json!({ "scenario": args.scenario.to_string_lossy(), "notes": notes }));
        }
        let noted = cx.layout().notes(&notes);
        return cx.output.print_text(&format!("{}: nothing wrong with it\n{noted}", args.scenario.display()));
    }
    let ready = run::ready(&ask, &terminal)?;
    check_outputs(args, &ready.scenario, cx)?;
    let mut over_time = None;
    let Answer { result, failed } = ready.ask_with(&terminal, |machine| {
        let over_time = over_time.insert(OverTime::begin(args, machine)?);
        Ok::<_, Failure>(over_time.observers())
    })?;
    let seen = over_time.map_or(Ok(None), |over_time| over_time.finish(&result))?;
    if let (Some(path), None, Some(seen)) = (&args.page.report, &failed, &seen) {
        page::page(&ready.source, args, &ready.scenario, &result, seen, cx.layout())
            .write(path, &cx.output)?;
    }
    match failed {
        Some(error) => {
            cx.output.remark(&incomplete(&ready.scenario, &result, cx.layout()));
            cx.output.no_result(error.into(), json!(result))
        }
        None if cx.output.is_data() => cx.output.print_json(&result),
        None if is_on_stdout(args) => {
            cx.output.remark(&summary(&ready.scenario, &result, cx.layout()));
            Ok(())
        }
        None => cx.output.print_text(&summary(&ready.scenario, &result, cx.layout())),
    }
}

/// Rejects outputs that would replace a file of the run, that share standard output, and rows without time between them.
fn check_outputs(args: &RunArgs, scenario: &Scenario, cx: &Context) -> anyhow::Result<()> {
    let written = [("--timeline", &args.timeline), ("--trace", &args.trace), ("--report", &args.page.report)];
    let written: Vec<(&str, &Path)> =
        written.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))).collect();
    outputs::check(&written, &traces(scenario).chain([args.scenario.as_path()]).collect::<Vec<_>>())?;
    let users = [("--timeline -", args.timeline.as_deref()), ("--trace -", args.trace.as_deref())];
    let mut users: Vec<&str> =
        users.into_iter().filter(|(_, path)| *path == Some(Path::new("-"))).map(|(user, _)| user).collect();
    users.extend(cx.output.is_data().then_some("--json"));
    anyhow::ensure!(
        users.len() < 2,
        "{}: only one of them can use standard output\nhelp: write the others to files",
        users.join(" and ")
    );
    let every = args.timeline_every;
    anyhow::ensure!(
        every >= TIMELINE_EVERY_MIN,
        "--timeline-every: too short: found `{every}`, expected at least {TIMELINE_EVERY_MIN}\nhelp: for example --timeline-every 10ms"
    );
    Ok(())
}

/// The recorded traces that a scenario replays.
fn traces(scenario: &Scenario) -> impl Iterator<Item = &Path> {
    let objects = scenario.task.iter().flat_map(|task| &task.object);
    objects.filter_map(|object| Some(object.trace.as_ref()?.path.as_path()))
}

/// Returns true if a timeline or a trace uses standard output.
fn is_on_stdout(args: &RunArgs) -> bool {
    [&args.timeline, &args.trace].into_iter().any(|path| path.as_deref() == Some(Path::new("-")))
}

/// The outputs that grow while the run lasts. If it fails, they end there.
struct OverTime {
    timeline: Option<Timeline>,
    tracing: Option<Tracing>,
    /// For the report.
    picture: Option<(Samples, Listener)>,
}

impl OverTime {
    /// Opens the outputs, and requests what they need from the machine.
    fn begin(args: &RunArgs, machine: &mut Machine) -> Result<OverTime, Failure> {
        let timeline = args
            .timeline
            .as_ref()
            .map(|path| Timeline::new(path, &args.timeline_columns, machine))
            .transpose();
        let mut timeline = timeline?;
        let tracing = args.trace.as_ref().map(|path| {
            let (events, dialect, cpus) =
                (&args.trace_events, args.trace_dialect, machine.engine().figures().cpus());
            Tracing::new(path, events, dialect, args.trace_nanoseconds, cpus)
        });
        let mut tracing = tracing.transpose()?;
        if let Some(tracing) = &mut tracing {
            tracing.begin();
        }
        let has_report = args.page.report.is_some();
        if tracing.is_some() || has_report {
            machine.tell_tracepoints();
        }
        if has_report {
            machine.watch_heat();
        }
        if timeline.is_some() || has_report || tracing.as_ref().is_some_and(Tracing::wants_samples) {
            machine.sample_every(Nanos(args.timeline_every.0));
        }
        if let Some(timeline) = &mut timeline {
            timeline.begin();
        }
        let picture = has_report.then(|| (Samples::new(machine), Listener::new()));
        Ok(OverTime { timeline, tracing, picture })
    }

    fn observers(&mut self) -> Vec<&mut dyn Observer> {
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        observers.extend(self.timeline.as_mut().map(|timeline| timeline as _));
        observers.extend(self.tracing.as_mut().map(|tracing| tracing as _));
        if let Some((samples, listener)) = &mut self.picture {
            observers.extend([samples as &mut dyn Observer, listener]);
        }
        observers
    }

    /// Completes the files, and returns the content of the report.
    fn finish(self, result: &RunResult) -> Result<Option<Seen>, Failure> {
        let seen =
            self.picture.map(|(samples, listener)| Seen { samples, heard: listener.finish(result.end_ns) });
        self.timeline.map_or(Ok(()), Timeline::finish)?;
        self.tracing.map_or(Ok(()), Tracing::finish)?;
        Ok(seen)
    }
}

fn incomplete(scenario: &Scenario, partial: &RunResult, layout: Layout) -> String {
    let mut scenario = scenario.clone();
    scenario.look_at.clear();
    let text = summary(&scenario, &RunResult { question: String::new(), ..partial.clone() }, layout);
    let text: String = text.lines().map(|line| format!("| {line}").trim_end().to_string() + "\n").collect();
    format!("The run is not complete. How far it came:\n{text}")
}
