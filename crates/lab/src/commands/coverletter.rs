//! `pageout coverletter`: what a change helps, what it hurts and what is noise over many scenarios ([`pageout_study::cover_letter`]), as the cover letter
//! of a patch has it.

pub(crate) mod args; // what can be asked
mod text; // the letter

use pageout_study::cover_letter::{self, Answer, Ask};
use pageout_study::{Error, figures};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::Terminal;
use crate::signals;
use args::CoverletterArgs;

/// Runs every scenario without the change and with it, and prints the cover letter. It lists runs that are not comparable, and the exit code
/// reports them.
pub(crate) fn run(args: &CoverletterArgs, cx: &Context) -> Outcome {
    let ask = Ask {
        paths: args.paths.clone(),
        switches: args.switches.clone(),
        changes: args.options.changes(),
        against: args.against.clone(),
        repeat: args.repeat(),
        jobs: args.parallel.jobs,
        fast: args.fast,
    };
    // Between two stages as well: a signal leaves what there is.
    let listening = signals::listen();
    let answer = cover_letter::ask(&ask, &Terminal::new(&cx.output))?;
    drop(listening);
    if cx.output.is_data() {
        cx.output.print_json(&answer)?;
    } else {
        cx.output.print(&text::text(&answer, args, cx.layout()))?;
    }
    verdict(&answer)
}

fn verdict(answer: &Answer) -> Outcome {
    let failures = answer.failures();
    let heading = format!("{} not compared:", figures::counted(failures.len() as u64, "side"));
    let failed = Error::Runs { heading, failures: failures.clone() };
    match answer.interrupted() {
        Some(told) if failures.is_empty() => Err(Error::Interrupted(told).into()),
        Some(told) => Err(Error::Interrupted(format!("{told}; {failed}")).into()),
        None if failures.is_empty() => Ok(()),
        None => Err(Failure::from(failed)),
    }
}
