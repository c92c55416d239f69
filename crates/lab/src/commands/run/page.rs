//! The page: where the time of the tasks went, the machine over time, what the terminal says, and the scenario.

use pageout_engine::Stat;
use pageout_sim::Resource;
use pageout_sim::scenario::Scenario;

use crate::cli::RunArgs;
use crate::print::figures;
use crate::print::summary::summary;
use crate::report::{Axis, Bar, Bars, Chart, Colour, Line, Page, Part, Shape, Unit, scenario};
use crate::result::run_result::{RunResult, TaskResult};
use crate::result::samples::{Sampled, Samples};
use crate::scenario::source::Source;

/// Tasks in the picture.
const TASKS: usize = 12;

pub(super) fn page(
    source: &Source,
    args: &RunArgs,
    of: &Scenario,
    result: &RunResult,
    samples: &Samples,
) -> Page {
    let name = args.scenario.display().to_string();
    let variant = args.variant.as_ref().map_or(String::new(), |variant| format!(", variant {variant}"));
    let title = if result.question.is_empty() { name.clone() } else { result.question.clone() };
    let text = summary(of, result);
    let mut parts = vec![Part::Bars(waits(&result.tasks))];
    parts.extend(over_time(samples));
    parts.push(Part::Text { title: "All figures".to_string(), text, is_open: true });
    parts.push(scenario(source, &args.options, &[]));
    Page {
        title,
        of: format!(
            "{name}{variant}: {} accesses in {} of simulated time, {}, seed {}",
            figures::count(result.accesses),
            figures::time(result.end_ns),
            result.profile,
            result.seed
        ),
        story: story(of, result),
        parts,
    }
}

/// Who waited longest, and for what; then what the scenario wants to be looked at.
fn story(of: &Scenario, result: &RunResult) -> Vec<String> {
    let look_at = (!of.look_at.is_empty()).then(|| format!("Look at: {}", of.look_at));
    std::iter::once(longest_wait(result)).chain(look_at).collect()
}

fn longest_wait(result: &RunResult) -> String {
    let waited = |task: &TaskResult| task.reclaim_time_ns.saturating_add(task.io_wait_ns);
    let Some(worst) = result.tasks.iter().max_by_key(|task| waited(task)).filter(|task| waited(task) > 0)
    else {
        return "No task waited for memory or devices.".to_string();
    };
    let share = |ns: u64| figures::percent(figures::share(ns, worst.thread_time_ns));
    format!(
        "{} waited longest: of {} it was {} in direct reclaim ({}) and {} waiting for devices ({}). {} of its {} accesses \
         missed.",
        worst.name,
        figures::time(worst.thread_time_ns),
        figures::time(worst.reclaim_time_ns),
        share(worst.reclaim_time_ns),
        figures::time(worst.io_wait_ns),
        share(worst.io_wait_ns),
        figures::count(worst.misses()),
        figures::count(worst.accesses),
    )
}

/// What tasks waited for, as shares of their time.
fn waits(tasks: &[TaskResult]) -> Bars {
    let mut bars = Vec::new();
    for task in tasks.iter().take(TASKS) {
        for (what, ns) in [
            ("in direct reclaim", task.reclaim_time_ns),
            ("waiting for devices", task.io_wait_ns),
            ("waiting for a CPU", task.cpu_wait_ns),
            ("slowed by memory.high", task.delayed_ns),
        ] {
            if ns > 0 {
                let share = figures::share(ns, task.thread_time_ns);
                bars.push(Bar {
                    name: format!("{}, {what}", task.name),
                    percent: share * 100.0,
                    half_width: None,
                    is_noise: false,
                    text: format!("{} of {}", figures::percent(share), figures::time(task.thread_time_ns)),
                });
            }
        }
    }
    let more = tasks.len().saturating_sub(TASKS);
    let more = if more > 0 { format!(" {more} more tasks are in the table.") } else { String::new() };
    Bars {
        title: "What tasks waited for".to_string(),
        says: format!("Shares of each task's time. Reclaim may itself wait for devices and CPUs.{more}"),
        bars,
    }
}

/// The whole machine over time.
fn over_time(samples: &Samples) -> Vec<Part> {
    let xs = samples.times();
    // Two rows make a step.
    if xs.len() < 2 {
        return Vec::new();
    }
    let chart = |title: &str, says: &str, unit: Unit, lines: Vec<(&str, Colour, Vec<f64>)>| {
        let lines = lines.into_iter().filter(|(.., ys)| ys.iter().any(|y| *y != 0.0));
        let lines = lines.map(|(name, colour, ys)| {
            let ys = ys.into_iter().map(|y| Some((y * 1e4).round() / 1e4)).collect();
            Line { name: name.to_string(), colour, ys }
        });
        let lines: Vec<Line> = lines.collect();
        (!lines.is_empty()).then(|| {
            Part::Chart(Chart {
                title: title.to_string(),
                says: says.to_string(),
                x: Axis::linear("time (s)", Unit::Seconds),
                y: Axis::linear("", unit),
                xs: xs.clone(),
                lines,
                shape: Shape::Stacked,
            })
        })
    };
    let rate = |stat: Stat| samples.rates(Sampled::Vmstat(stat));
    let share =
        |resource: Resource| samples.rates(Sampled::Pressure(resource)).iter().map(|ns| ns / 1e9).collect();
    let charts = [
        chart(
            "What memory holds",
            "The lists of the whole machine, on top of each other.",
            Unit::Bytes,
            vec![
                ("active anon", Colour::nth(0), samples.bytes(Stat::NrActiveAnon)),
                ("inactive anon", Colour::nth(4), samples.bytes(Stat::NrInactiveAnon)),
                ("active file", Colour::nth(1), samples.bytes(Stat::NrActiveFile)),
                ("inactive file", Colour::nth(5), samples.bytes(Stat::NrInactiveFile)),
            ],
        ),
        chart(
            "Memory pressure",
            "The share of time in which some task waited for memory; 1 is always.",
            Unit::Number,
            vec![("some task waits for memory", Colour::DIRECT, share(Resource::Memory))],
        ),
        chart(
            "I/O pressure",
            "The share of time in which some task waited for a device.",
            Unit::Number,
            vec![("some task waits for I/O", Colour::nth(6), share(Resource::Io))],
        ),
        chart(
            "Pages looked at a second, by whom",
            "High while few are freed: reclaim works hard for little.",
            Unit::Count,
            vec![
                ("tasks", Colour::DIRECT, rate(Stat::PgscanDirect)),
                ("kswapd", Colour::KSWAPD, rate(Stat::PgscanKswapd)),
            ],
        ),
        chart(
            "Pages freed a second, by whom",
            "What kswapd frees, no task waits for.",
            Unit::Count,
            vec![
                ("tasks", Colour::DIRECT, rate(Stat::PgstealDirect)),
                ("kswapd", Colour::KSWAPD, rate(Stat::PgstealKswapd)),
            ],
        ),
        chart(
            "Refaults a second",
            "Pages that came back soon after they were evicted.",
            Unit::Count,
            vec![
                ("anon", Colour::nth(0), rate(Stat::WorkingsetRefaultAnon)),
                ("file", Colour::nth(1), rate(Stat::WorkingsetRefaultFile)),
            ],
        ),
        chart(
            "Pages swapped out a second",
            "",
            Unit::Count,
            vec![("swapped out", Colour::nth(3), rate(Stat::Pswpout))],
        ),
    ];
    charts.into_iter().flatten().collect()
}
