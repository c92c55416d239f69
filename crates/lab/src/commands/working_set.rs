//! `pageout working-set`: how much memory machines have in use ([`pageout_study::working_set`]), as tables and JSON.

pub(crate) mod args; // what can be asked
mod report; // tables

use pageout_study::working_set::{self, Ask};

use crate::context::Context;
use crate::failure::Outcome;
use crate::print::Terminal;
use args::WorkingSetArgs;
use report::Report;

/// Reads the dumps and prints the working sets, or the machines in the order in which a job should land on them.
pub(crate) fn run(args: &WorkingSetArgs, cx: &Context) -> Outcome {
    let ask = Ask {
        files: args.files.clone(),
        within: args.within.clone(),
        job: args.job.clone(),
        memory: args.memory.clone(),
        reserve: args.reserve.clone(),
        skip_bad: args.skip_bad,
        no_swap: args.no_swap,
        page_size: args.page_size.clone(),
        generations: args.generations,
    };
    let answer = working_set::ask(&ask, &Terminal::new(&cx.output))?;
    if cx.output.is_data() {
        return cx.output.print_json(&answer);
    }
    cx.output.print_text(&Report { answer: &answer, all: args.all, layout: cx.layout() }.to_text())
}
