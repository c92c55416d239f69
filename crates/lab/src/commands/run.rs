//! `pageout run`: one scenario, one result.

pub(crate) mod args; // what can be asked
mod page; // where the tasks' time went, and the machine over time, as pictures

use std::path::Path;

use pageout_engine::Nanos;
use pageout_sim::Observer;
use pageout_sim::scenario::{Object, Scenario, TimeSpan};
use pageout_study::result::notes;
use pageout_study::result::run_result::RunResult;
use pageout_study::result::samples::Samples;
use pageout_study::result::simulate::{Stopped, accesses, simulate, simulate_on};
use pageout_study::scenario::diagnostic::Diagnostics;
use pageout_study::scenario::interpretation;
use pageout_study::scenario::own_variants;
use pageout_study::scenario::source::Source;
use pageout_study::{Error, Stage, Watcher};
use serde_json::json;

use crate::cli::load;
use crate::commands::vmscan_report::Listener;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::progress::name_of;
use crate::print::summary::summary;
use crate::print::timeline::Timeline;
use crate::print::{Layout, Output, Terminal, outputs};
use crate::report::{Picture, check_name};
use crate::tracing::Tracing;
use args::RunArgs;
use page::Seen;

/// As often as an event may recur.
const TIMELINE_EVERY_MIN: TimeSpan = TimeSpan(1_000);

/// Runs the scenario and prints what happened. How far a run came that fails is told on standard error, above the error; with
/// `--json` standard output says so too.
pub(crate) fn run(args: &RunArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::None)?;
    }
    let source = Source::read(&args.scenario)?;
    let terminal = Terminal::new(&cx.output);
    let mut scenario = load(&source, &args.options, &[], &terminal)?;
    remark_traces(&scenario, &cx.output)?;
    if args.check {
        own_variants::all(&source, &args.options.changes(), &scenario, &terminal)?;
        let notes = notes::of_scenario(&scenario);
        if cx.output.is_data() {
            return cx
                .output
                .print_json(&json!({ "scenario": args.scenario.to_string_lossy(), "notes": notes }));
        }
        let told = cx.layout().notes(&notes);
        return cx.output.print_text(&format!("{}: nothing wrong with it\n{told}", args.scenario.display()));
    }
    scenario = args.variant.of(&source, &args.options, scenario, &[], &terminal)?;
    check_outputs(args, &scenario)?;
    let accesses = terminal.is_seen().then(|| accesses(&scenario)).flatten();
    terminal.begin(&Stage::Running { name: &name_of(&args.scenario), runs: 1, accesses });
    let mut seen = None;
    let result = match (&args.timeline, &args.page.report, &args.trace) {
        (None, None, None) => simulate(&scenario, &terminal),
        _ => over_time(args, &scenario, &terminal, cx, &mut seen)?,
    };
    terminal.end();
    if let (Some(path), Ok(result), Some(seen)) = (&args.page.report, &result, &seen) {
        page::page(&source, args, &scenario, result, seen, cx.layout()).write(path, &cx.output)?;
    }
    match result {
        Ok(result) if cx.output.is_data() => cx.output.print_json(&result),
        Ok(result) if is_on_stdout(args) => {
            cx.output.remark(&summary(&scenario, &result, cx.layout()));
            Ok(())
        }
        Ok(result) => cx.output.print_text(&summary(&scenario, &result, cx.layout())),
        Err(stopped) => fail(&source, &scenario, stopped, cx),
    }
}

/// What a run writes would take the place of a file that has its name.
fn check_outputs(args: &RunArgs, scenario: &Scenario) -> anyhow::Result<()> {
    let written = [("--timeline", &args.timeline), ("--trace", &args.trace), ("--report", &args.page.report)];
    let written: Vec<(&str, &Path)> =
        written.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))).collect();
    let traces = traces(scenario).map(|(_, path)| path);
    outputs::check(&written, &traces.chain([args.scenario.as_path()]).collect::<Vec<_>>())
}

/// The recorded traces that it plays.
fn traces(scenario: &Scenario) -> impl Iterator<Item = (&Object, &Path)> {
    let objects = scenario.task.iter().flat_map(|task| &task.object);
    objects.filter_map(|object| Some((object, object.trace.as_ref()?.path.as_path())))
}

/// Whether the rows of a timeline or the lines of a trace go where results go otherwise.
fn is_on_stdout(args: &RunArgs) -> bool {
    [&args.timeline, &args.trace].into_iter().any(|path| path.as_deref() == Some(Path::new("-")))
}

/// Runs it with its figures over time, which of a run that fails go as far as that came.
fn over_time(
    args: &RunArgs,
    scenario: &Scenario,
    watcher: &dyn Watcher,
    cx: &Context,
    seen: &mut Option<Seen>,
) -> Result<Result<RunResult, Stopped>, Failure> {
    let takers = [("--timeline -", args.timeline.as_deref()), ("--trace -", args.trace.as_deref())];
    let mut takers: Vec<&str> = takers
        .into_iter()
        .filter(|(_, path)| *path == Some(Path::new("-")))
        .map(|(taker, _)| taker)
        .collect();
    takers.extend(cx.output.is_data().then_some("--json"));
    if takers.len() > 1 {
        let both = format!("{} both want standard output: give one of them a file", takers.join(" and "));
        return Err(Failure::Input(anyhow::anyhow!(both)));
    }
    if args.timeline_every < TIMELINE_EVERY_MIN {
        let every = args.timeline_every;
        return Err(Failure::Input(anyhow::anyhow!(
            "--timeline-every {every}: rows need time between them, {TIMELINE_EVERY_MIN} at least"
        )));
    }
    let mut machine = match scenario.build() {
        Ok(machine) => machine,
        Err(problem) => return Ok(Err(Stopped::NotBuilt(problem))),
    };
    let timeline =
        args.timeline.as_ref().map(|path| Timeline::new(path, &args.timeline_columns, &machine)).transpose();
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
    if tracing.is_some() || args.page.report.is_some() {
        machine.tell_tracepoints();
    }
    if timeline.is_some()
        || args.page.report.is_some()
        || tracing.as_ref().is_some_and(Tracing::wants_samples)
    {
        machine.sample_every(Nanos(args.timeline_every.0));
    }
    if let Some(timeline) = &mut timeline {
        timeline.begin();
    }
    let mut picture = args.page.report.is_some().then(|| (Samples::new(&machine), Listener::new()));
    let mut listeners: Vec<&mut dyn Observer> = Vec::new();
    listeners.extend(timeline.as_mut().map(|timeline| timeline as _));
    listeners.extend(tracing.as_mut().map(|tracing| tracing as _));
    if let Some((samples, listener)) = &mut picture {
        listeners.extend([samples as &mut dyn Observer, listener]);
    }
    let result = simulate_on(machine, scenario, watcher, &mut listeners);
    if let (Some((samples, listener)), Ok(result)) = (picture, &result) {
        *seen = Some(Seen { samples, heard: listener.finish(result.end_ns) });
    }
    timeline.map_or(Ok(()), Timeline::finish)?;
    tracing.map_or(Ok(()), Tracing::finish)?;
    Ok(result)
}

fn remark_traces(scenario: &Scenario, output: &Output) -> anyhow::Result<()> {
    for (object, path) in traces(scenario) {
        let read = object.read_options().map_err(|error| anyhow::anyhow!("{error}"))?;
        interpretation::remark(path, &read, output)?;
    }
    Ok(())
}

/// Tells the failure, with the place in the file or the state the run was in.
fn fail(source: &Source, scenario: &Scenario, stopped: Stopped, cx: &Context) -> Outcome {
    match stopped {
        Stopped::NotBuilt(problem) => Err(Failure::Input(Diagnostics(vec![source.locate(problem)]).into())),
        Stopped::Failed(_, ref partial) | Stopped::Interrupted(_, ref partial) => {
            cx.output.remark(&incomplete(scenario, partial, cx.layout()));
            let so_far = json!(partial);
            cx.output.no_result(Error::from(stopped).into(), so_far)
        }
    }
}

fn incomplete(scenario: &Scenario, partial: &RunResult, layout: Layout) -> String {
    let mut scenario = scenario.clone();
    scenario.look_at.clear();
    let text = summary(&scenario, &RunResult { question: String::new(), ..partial.clone() }, layout);
    let text: String = text.lines().map(|line| format!("| {line}").trim_end().to_string() + "\n").collect();
    format!("The run is not complete. How far it came:\n{text}")
}
