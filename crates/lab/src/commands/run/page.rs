//! The page: where the time of the tasks went, what the terminal says, and the scenario.

use pageout_sim::scenario::Scenario;

use crate::cli::RunArgs;
use crate::print::figures;
use crate::print::summary::summary;
use crate::report::{Bar, Bars, Page, Part, scenario};
use crate::result::run_result::{RunResult, TaskResult};
use crate::scenario::source::Source;

/// Tasks in the picture.
const TASKS: usize = 12;

pub(super) fn page(source: &Source, args: &RunArgs, of: &Scenario, result: &RunResult) -> Page {
    let name = args.scenario.display().to_string();
    let variant = args.variant.as_ref().map_or(String::new(), |variant| format!(", variant {variant}"));
    let title = if result.question.is_empty() { name.clone() } else { result.question.clone() };
    let text = summary(of, result);
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
        parts: vec![
            Part::Bars(waits(&result.tasks)),
            Part::Text { title: "All figures".to_string(), text, is_open: true },
            scenario(source, &args.options, &[]),
        ],
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
