//! `pageout validate`: recorded runs compared with simulated ones ([`pageout_truth::validate`]), as tables and JSON.

pub(crate) mod args; // what can be asked
mod folios; // a line for each run whose folios differ
mod outcomes; // a line for each recorded outcome
mod report; // the tables of runs with counters

use pageout_truth::validate::{self, Ask, Compared};

use crate::commands::explain;
use crate::context::Context;
use crate::failure::Outcome;
use crate::print::Terminal;
use args::ValidateArgs;

/// Compares the recorded runs of a folder with simulated ones. Errors: a run fails, or cannot be simulated.
pub(crate) fn run(args: &ValidateArgs, cx: &Context) -> Outcome {
    let ask = Ask {
        dir: args.dir.clone(),
        runs: args.run.clone(),
        expect_short: args.expect_short.clone(),
        tolerances: args.tolerances.clone(),
        without: args.without.iter().map(|input| input.0).collect(),
        simulations: args.simulations,
        first_difference: args.first_difference,
        jobs: args.parallel.jobs,
    };
    let mut answer = validate::ask(&ask, &Terminal::new(&cx.output))?;
    if let Compared::Runs(judged) = &mut answer.compared {
        for difference in judged.iter_mut().filter_map(|run| run.first_difference.as_mut()) {
            difference.story = difference
                .told
                .as_ref()
                .map_or_else(String::new, |told| explain::in_words(told, cx.layout()));
        }
    }
    if cx.output.is_data() {
        cx.output.print_json(&answer)?;
    } else {
        cx.output.print_text(&match &answer.compared {
            Compared::Runs(judged) => report::text(judged, args.verbose, cx.layout()),
            Compared::Outcomes(judged) => outcomes::text(judged, cx.layout()),
            Compared::Folios(judged) => folios::text(judged, args.verbose, cx.layout()),
        })?;
    }
    Ok(answer.verdict()?)
}
