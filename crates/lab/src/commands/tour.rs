//! `pageout tour`: five publications and what holds of them ([`pageout_study::tour`]), as a story, JSON and a page.

pub(crate) mod args; // what can be asked
mod page; // the tour as a page
mod text; // a stop as a terminal has it

use pageout_study::reproduce::place::LIVE_CHAPTERS;
use pageout_study::tour::{self, Ask};
use serde_json::Value;

use super::reproduce;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::Terminal;
use crate::report::{Picture, check_name};
use crate::signals;
use args::TourArgs;

/// Runs the stops one after the other, and prints each as soon as it is complete.
pub(crate) fn run(args: &TourArgs, cx: &Context) -> Outcome {
    if args.live {
        return live(args, cx);
    }
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let ask = Ask { file: args.file.clone(), only: args.only.clone(), jobs: args.parallel.jobs };
    // Between two stops a signal is meant for the tour as well.
    let listening = signals::listen();
    let answer =
        tour::ask(&ask, &Terminal::telling(&cx.output), |number, count, stop| match cx.output.is_data() {
            true => Ok::<(), Failure>(()),
            false => cx.output.print_text(&text::stop(number, count, stop, cx.layout())),
        })?;
    drop(listening);
    if answer.stops.is_empty() {
        let failure = answer.extent.nothing("every run failed", &answer.failures);
        return cx.output.no_result(failure.into(), Value::Null);
    }
    match cx.output.is_data() {
        true => cx.output.print_json(&answer)?,
        false => cx.output.print_text(&text::end(&answer, cx.layout()))?,
    }
    if let Some(path) = &args.page.report {
        page::page(&answer).write(path, &cx.output)?;
    }
    Ok(answer.extent.verdict(&answer.failures)?)
}

/// Runs the chapters for real memory one after the other.
fn live(args: &TourArgs, cx: &Context) -> Outcome {
    let chapters: Vec<&str> = match args.only.is_empty() {
        true => LIVE_CHAPTERS.iter().map(|(name, _)| *name).collect(),
        false => args.only.iter().map(String::as_str).collect(),
    };
    reproduce::on_real_memory(&chapters, &[], &args.live_options, args.parallel.jobs, cx)
}
