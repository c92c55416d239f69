//! `pageout coverletter`: what a change helps, what it hurts and what is noise over many scenarios ([`pageout_study::letter`]), as the cover letter
//! of a patch has it.

mod gather; // which scenarios, and what the change makes of each
mod build; // another build of this program, run as a process
mod text; // the letter
mod data; // the same as JSON

use pageout_study::letter::judge::Judged;
use pageout_study::letter::{self, Found, Side};
use pageout_study::result::simulate::{self, Stopped};
use pageout_study::{Error, Failed, Watcher, figures};
use serde_json::to_value;

use crate::cli::CoverletterArgs;
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::{output, signals};
use build::Build;
use gather::{Gathered, Left};
use letter::figures::Outcome as Figures;
use pageout_sim::scenario::Scenario;

/// All that was found out.
struct Letter<'a> {
    args: &'a CoverletterArgs,
    /// The build that is the base, where that is another one.
    build: Option<&'a Build>,
    found: Found,
    /// Scenarios that were not run, and why.
    left: Vec<Left>,
    /// Cases whose scenario knows that it fails as it is.
    fails_as_known: Vec<(String, String)>,
    /// What --fast goes by: accesses of all runs that it lets in, if it does.
    accesses: Option<u64>,
}

/// What runs with a seed.
enum Runner<'a> {
    Here(Box<Scenario>),
    There { build: &'a Build, scenario: gather::Written, accesses: Option<u64> },
}

impl Side for Runner<'_> {
    fn run(&self, nth: u32, watcher: &dyn Watcher) -> Option<Result<Figures, Failed>> {
        match self {
            Runner::Here(scenario) => {
                let seed = scenario.seed + u64::from(nth);
                let scenario = Scenario { seed, ..(**scenario).clone() };
                match simulate::simulate(&scenario, watcher) {
                    Ok(result) => Some(Ok(Figures::of(&to_value(&result).expect("a result is data")))),
                    Err(Stopped::Interrupted(..)) => None,
                    Err(stopped) => Some(Err(Failed::from(Error::from(stopped)))),
                }
            }
            Runner::There { build, scenario, accesses } => {
                let ended = build.run(scenario, nth, watcher);
                watcher.advance(accesses.unwrap_or(0));
                ended
            }
        }
    }

    fn accesses(&self) -> Option<u64> {
        match self {
            Runner::Here(scenario) => simulate::accesses(scenario),
            Runner::There { accesses, .. } => *accesses,
        }
    }
}

/// Runs every scenario without the change and with it, and prints the letter. What can't be compared is named in it, and the exit code says so.
pub(crate) fn coverletter(args: &CoverletterArgs) -> Outcome {
    let build = args.against.as_deref().map(Build::find).transpose()?;
    let terminal = Terminal::new(&args.options.output);
    let Gathered { cases, left, fails_as_known, accesses } = gather::gather(args, build.as_ref(), &terminal)?;
    // Between two stages as well: a signal leaves what there is.
    let listening = signals::listen();
    let found = letter::run(&cases, args.repeat(), args.parallel.jobs, &terminal);
    drop(listening);
    let letter = Letter { args, build: build.as_ref(), found, left, fails_as_known, accesses };
    if args.options.output.is_data() {
        output::print_json(&data::json(&letter))?;
    } else {
        output::print(&text::text(&letter))?;
    }
    letter.verdict()
}

impl Letter<'_> {
    /// Runs that failed although their scenario does not know that they do, saying whose they are.
    fn failures(&self) -> Vec<Failed> {
        let unknown = self.found.cases.iter().filter(|case| !self.is_known_to_fail(case));
        let told = unknown.flat_map(|case| {
            let of_side = |side: usize| {
                let side_name = ["base", "patched"][side];
                case.failed[side].first().map(|failed| failed.of(&format!("{}, {side_name}", case.name)))
            };
            [of_side(0), of_side(1)].into_iter().flatten()
        });
        let unreadable =
            self.left.iter().filter_map(|left| left.failed.as_ref().map(|failed| failed.of(&left.name)));
        told.chain(unreadable).collect()
    }

    /// Whether a scenario fails as it is, and says so, and the change makes that no worse.
    fn is_known_to_fail(&self, case: &Judged) -> bool {
        let is_known =
            self.fails_as_known.iter().any(|(group, name)| *group == case.group && *name == case.name);
        is_known && case.failed[1].len() <= case.failed[0].len()
    }

    /// `interrupted by SIGINT after 3 of 10 runs`.
    fn interrupted(&self) -> Option<String> {
        let (by, asked) = self.found.interruption?;
        let [made, asked] = [self.found.made, asked].map(|runs| figures::count(runs as u64));
        Some(format!("interrupted by {by} after {made} of {asked} runs"))
    }

    fn verdict(&self) -> Outcome {
        let failures = self.failures();
        let heading = format!("{} not compared:", figures::counted(failures.len() as u64, "side"));
        let failed = Error::Runs { heading, failures: failures.clone() };
        match self.interrupted() {
            Some(told) if failures.is_empty() => Err(Error::Interrupted(told).into()),
            Some(told) => Err(Error::Interrupted(format!("{told}; {failed}")).into()),
            None if failures.is_empty() => Ok(()),
            None => Err(Failure::from(failed)),
        }
    }
}
