//! `pageout advise-tier`: how much of its memory a workload can have on slower memory ([`pageout_study::advise_tier`]), as a page of advice.

pub(crate) mod args; // what can be asked
mod page; // the same as a page
mod sources; // all sources of hotness, compared

use std::fmt::Write;
use std::path::Path;

use pageout_study::Error;
use pageout_study::advise_tier::{self, Advice};
use serde_json::Value;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal};
use crate::report::{Picture, check_name};
use args::AdviseTierArgs;

/// Sweeps ratio, device and source, turns knobs at the best, and prints a page of advice.
pub(crate) fn run(args: &AdviseTierArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let scenario = match &args.scenario[..] {
        scenarios if args.every_source => return sources::run(args, scenarios, cx),
        [scenario] => scenario,
        several => {
            let message = format!("found {} scenarios, expected one", several.len());
            let help = "--every-source compares the sources of hotness in several";
            return Err(Failure::Input(anyhow::anyhow!("{message}\nhelp: {help}")));
        }
    };
    let answer = match advise_tier::ask(&args.ask(scenario), &Terminal::new(&cx.output)) {
        Err(error @ (Error::Failed(_) | Error::Interrupted(_) | Error::Runs { .. })) => {
            return cx.output.no_result(error.into(), Value::Null);
        }
        answer => answer?,
    };
    let advice = &answer.advice;
    if cx.output.is_data() {
        cx.output.print_json(&answer)?;
    } else {
        cx.output.print_text(&to_text(scenario, advice, cx.layout()))?;
    }
    if let Some(path) = &args.page.report {
        page::page(&answer.source, scenario, args, advice).write(path, &cx.output)?;
    }
    Ok(advice.extent.verdict(&advice.failures())?)
}

fn to_text(scenario: &Path, advice: &Advice, layout: Layout) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} of memory, a part of it slower, compared with all of it fast; {}\n",
        scenario.display(),
        advice.memory,
        advice.extent.seeds_from(advice.scenario.seed)
    );
    for says in advice.extent.warning().into_iter().chain(advice.story()) {
        text += &layout.wrap(&says, "  ");
    }
    let _ = write!(
        text,
        "\nHow much longer it takes, by the best source:\n\n{}",
        layout.table(&advice.overview(), 1)
    );
    if let (Some(title), Some(scales)) = (advice.scales_title(), advice.scales()) {
        let _ = write!(text, "\n{}\n{}", layout.wrap(&format!("{title}:"), ""), layout.table(&scales, 2));
    }
    let knobs = advice.knob_table();
    if knobs.len() > 1 {
        let at = advice.knobs_at();
        let _ = write!(text, "\nKnobs that change anything ({at}):\n\n{}", layout.table(&knobs, 2));
    }
    text + &layout.failed(advice.failures().iter().map(ToString::to_string))
}
