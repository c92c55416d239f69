//! `pageout advise-tier`: how much of its memory a workload can have on slower memory ([`pageout_study::advise_tier`]), as a page of advice.

pub(crate) mod args; // what can be asked
mod page; // the same as a page

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use pageout_study::Error;
use pageout_study::advise_tier::{Advice, Asked, Begun, Ratio, Ready};
use pageout_study::scenario::source::Source;
use serde_json::Value;

use crate::cli::load;
use crate::failure::{Failure, Outcome};
use crate::print::progress::{Terminal, is_seen};
use crate::print::{figures, output, table};
use crate::report::{Picture, check_name};
use crate::signals;
use args::AdviseTierArgs;

/// A command that takes as many seconds more says so, whoever looks.
const ANNOUNCED_S: f64 = 10.0;

/// Sweeps ratio, device and source, turns knobs at the best, and prints a page of advice.
pub(crate) fn run(args: &AdviseTierArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let asked = asked(args)?;
    let source = read(args)?;
    let scenario = load(&source, &args.options, &[])?;
    let ready = Ready::new(asked, &source, &args.options.changes().settings, scenario)?;
    let terminal = Terminal::new(&args.options.output);
    let plan = args.runs.plan(&args.scenario, &terminal);
    let began = Instant::now();
    // Between the sweeps a signal is meant for the command as well.
    let _listening = signals::listen();
    let begun = match ready.begin(&plan) {
        Ok(begun) => begun,
        Err(error @ (Error::Failed(_) | Error::Interrupted(_) | Error::Runs { .. })) => {
            return output::no_result(&args.options.output, error.into(), Value::Null);
        }
        Err(error) => return Err(error.into()),
    };
    announce(args, began.elapsed(), &begun);
    let advice = begun.finish(&plan)?;
    if args.options.output.is_data() {
        output::print_json(&advice.json(&args.scenario.to_string_lossy()))?;
    } else {
        output::print_text(&to_text(args, &advice))?;
    }
    if let Some(path) = &args.page.report {
        page::page(&source, args, &advice).write(path)?;
    }
    Ok(advice.extent.verdict(&advice.failures())?)
}

/// What is asked, as far as it is something.
fn asked(args: &AdviseTierArgs) -> Result<Asked, Failure> {
    let of = |option: &str, why: String| Failure::Input(anyhow!("{option} {why}"));
    let ratio = |text: &String| text.parse::<Ratio>().map_err(|why| of("--ratio", why));
    let memory = |text: &String| text.parse().map_err(|why| of("--memory", format!("{text}: {why}")));
    Ok(Asked {
        ratios: args.ratio.iter().map(ratio).collect::<Result<_, _>>()?,
        devices: args.device.clone(),
        loss: args.loss,
        prices: args.price.as_ref().map(|text| text.parse().map_err(|why| of("--price", why))).transpose()?,
        warm_up: args.warm_up.parse().map_err(|why| of("--warm-up", why))?,
        memory: args.memory.as_ref().map(memory).transpose()?,
        checks_scale: args.check_scale,
    })
}

/// Says how many runs are still to come and how long they may take, by how long the runs with all memory fast took.
fn announce(args: &AdviseTierArgs, took: Duration, begun: &Begun) {
    let [runs, knobs, half] = begun.ahead();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if args.runs.parallel.jobs == 0 { cpus } else { args.runs.parallel.jobs };
    // The first runs were as many at a time as there were seeds.
    let each = took.as_secs_f64() * jobs.min(args.runs.repeat as usize) as f64 / f64::from(args.runs.repeat);
    let seconds = each * (runs + knobs) as f64 / jobs as f64;
    let check = each * Begun::TIMES_AS_LONG * half as f64 / jobs as f64;
    if args.options.output.quiet || seconds + check < ANNOUNCED_S && !is_seen(&args.options.output) {
        return;
    }
    let shown = |seconds: f64| figures::time((seconds.max(1.0) * 1e9) as u64);
    let check = match args.check_scale {
        true => format!("; {half} more at half of the scale, each twice as long: about {}", shown(check)),
        false => String::new(),
    };
    eprintln!(
        "{runs} runs of ratios, devices and sources and at most {knobs} of knobs: about {}{check}",
        shown(seconds)
    );
}

/// A scenario, or one task that replays a trace.
fn read(args: &AdviseTierArgs) -> Result<Source, Failure> {
    let path = &args.scenario;
    if path.extension().is_none_or(|extension| extension == "toml") {
        return Ok(Source::read(path)?);
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{}: the name of a trace has to be text", path.display()))?;
    let text = format!(
        "[[task]]\nname = \"replay\"\n[[task.object]]\nchannel = \"file\"\ntrace = {}\n",
        Value::from(name)
    );
    Ok(Source::parse(path, text)?)
}

fn to_text(args: &AdviseTierArgs, advice: &Advice) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} of memory, a part of it slower, compared with all of it fast; {}\n",
        args.scenario.display(),
        advice.memory,
        advice.extent.seeds_from(advice.scenario.seed)
    );
    for says in advice.extent.warning().into_iter().chain(advice.story()) {
        text += &output::wrap(&says, output::width(), "  ");
    }
    let _ = write!(
        text,
        "\nHow much longer it takes, by the best source:\n\n{}",
        table::layout(&advice.overview(), 1)
    );
    if let (Some(title), Some(scales)) = (advice.scales_title(), advice.scales()) {
        let _ = write!(
            text,
            "\n{}\n{}",
            output::wrap(&format!("{title}:"), output::width(), ""),
            table::layout(&scales, 2)
        );
    }
    let knobs = advice.knob_table();
    if knobs.len() > 1 {
        let at = advice.knobs_at();
        let _ = write!(text, "\nKnobs that change anything ({at}):\n\n{}", table::layout(&knobs, 2));
    }
    text + &output::failed(advice.failures().iter().map(ToString::to_string))
}
