//! The commands of `pageout`: one row and one module a command, with its arguments, its text and its page.

pub(crate) mod command_line; // all of them, and the help

pub(crate) mod run; // one scenario
pub(crate) mod compare; // variants side by side
pub(crate) mod predict; // a page with what a kernel will do
pub(crate) mod expectations; // what a scenario expects of its variants
pub(crate) mod ablate; // each mechanism alone
pub(crate) mod coverletter; // what a change helps and hurts over all scenarios
pub(crate) mod bisect; // which rule changed the result between two versions
pub(crate) mod advise_tier; // how much of its memory may be slower
pub(crate) mod crossover; // the families' mechanisms exchanged
pub(crate) mod reproduce; // published tables beside ours
pub(crate) mod tour; // an experiment of each of several chapters
pub(crate) mod replay; // from a trace to an answer
pub(crate) mod bench; // the live page cache beside what else reads files
pub(crate) mod sweep; // very many answers, in a folder
pub(crate) mod new_policy; // a project for a policy of one's own
pub(crate) mod check_policy; // whether it keeps the contract
pub(crate) mod record; // what a real machine does, for its twin
pub(crate) mod import; // what other tools recorded, as a trace
pub(crate) mod twin; // a recorded machine, simulated
pub(crate) mod explain; // why a page is where it is
pub(crate) mod play; // a page with a machine in it
pub(crate) mod working_set; // lru_gen dumps of machines
pub mod vmscan_report; // reclaim in traces of a real kernel
pub(crate) mod diff; // what happened between two snapshots of a kernel's counters
pub(crate) mod trace; // `trace info` and `trace convert`
pub(crate) mod keys; // the reference of a scenario's keys
pub(crate) mod validate; // against a real kernel
pub(crate) mod completions; // completions for shells
pub(crate) mod man; // the manual page

use std::sync::Arc;

use clap::Subcommand;
use pageout_study::Watcher;
use serde_json::Value;

use crate::asked::{self, Asked, Question, UserPolicyOptions};
use crate::context::Context;
use crate::failure::Outcome;
use crate::program::Program;
use crate::user_policy;

/// The properties of a command that other modules need.
#[derive(Clone, Copy)]
pub struct Row {
    /// The command's module, which has its name with `_` for `-`.
    pub module: &'static str,
    /// The heading of its chapter in `docs/reference/commands.md`.
    pub chapter: &'static str,
    /// The purpose that it shares with others, for `pageout -h`.
    pub purpose: &'static str,
    /// The study that programs ask, and the Python package's function.
    pub question: Option<Question>,
}

/// Declares the commands by purpose, a row each, in the order of `pageout --help`: variant and arguments, module,
/// chapter, and the study that programs ask.
macro_rules! commands {
    ($($purpose:literal { $($(#[$attribute:meta])* $variant:ident($args:path) => $module:ident, chapter $chapter:literal $(, asks $($study:ident)::+ $(with $context:ident)?)?;)* })*) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($($(#[$attribute])* $variant($args),)*)*
        }

        impl Command {
            /// Does it.
            pub(crate) fn run(&self, cx: &Context) -> Outcome {
                match self {
                    $($(Command::$variant(args) => $module::run(args, cx),)*)*
                }
            }
        }

        /// The rows of all commands.
        pub const ROWS: &[Row] = &[
            $($(Row { module: stringify!($module), chapter: $chapter, purpose: $purpose, question: commands!(@question $module $($($study)::+ $(with $context)?)?) },)*)*
        ];
    };
    (@question $module:ident) => { None };
    // This study uses the custom policies of the context.
    (@question $module:ident $($study:ident)::+ with context) => {
        commands!(@question $module, $($study)::+, |cx, question, watcher| {
            asked::ask(question, watcher, |ask, watcher| $($study)::+::ask(ask, cx, watcher))
        })
    };
    (@question $module:ident $($study:ident)::+) => {
        commands!(@question $module, $($study)::+, |_, question, watcher| {
            asked::ask(question, watcher, $($study)::+::ask)
        })
    };
    (@question $module:ident, $($study:ident)::+, $ask:expr) => {
        Some(Question {
            python: stringify!($module),
            ask: $ask,
            default: asked::default::<$($study)::+::Ask>,
        })
    };
}

commands! {
    "Simulate" {
        Run(run::args::RunArgs) => run, chapter "run", asks pageout_study::run;
        Compare(compare::args::CompareArgs) => compare, chapter "compare", asks pageout_study::compare;
        Explain(explain::args::ExplainArgs) => explain, chapter "explain", asks pageout_study::explain;
        Play(play::PlayArgs) => play, chapter "play";
        Predict(predict::args::PredictArgs) => predict, chapter "predict";
        Crossover(crossover::args::CrossoverArgs) => crossover, chapter "crossover", asks pageout_study::ablate::crossover;
        AdviseTier(advise_tier::args::AdviseTierArgs) => advise_tier, chapter "advise-tier", asks pageout_study::advise_tier;
    }
    "Kernel changes" {
        Ablate(ablate::args::AblateArgs) => ablate, chapter "ablate", asks pageout_study::ablate;
        Bisect(bisect::args::BisectArgs) => bisect, chapter "bisect", asks pageout_study::bisect;
        Coverletter(coverletter::args::CoverletterArgs) => coverletter, chapter "coverletter";
        Reproduce(reproduce::args::ReproduceArgs) => reproduce, chapter "reproduce";
        Tour(tour::args::TourArgs) => tour, chapter "tour";
    }
    "Replay traces" {
        Replay(replay::args::ReplayArgs) => replay, chapter "replay", asks pageout_study::replay;
        Sweep(sweep::args::SweepArgs) => sweep, chapter "sweep", asks sweep with context;
        Bench(bench::args::BenchArgs) => bench, chapter "bench";
        Trace(trace::args::TraceArgs) => trace, chapter "trace";
        Import(import::args::ImportArgs) => import, chapter "import";
    }
    "Write policies" {
        NewPolicy(new_policy::args::NewPolicyArgs) => new_policy, chapter "new-policy and check-policy";
        CheckPolicy(check_policy::args::CheckPolicyArgs) => check_policy, chapter "new-policy and check-policy", asks check_policy with context;
    }
    "Real machines" {
        Record(record::args::RecordArgs) => record, chapter "record";
        Twin(twin::args::TwinArgs) => twin, chapter "twin", asks pageout_study::twin;
        Diff(diff::args::DiffArgs) => diff, chapter "diff";
        VmscanReport(vmscan_report::args::VmscanReportArgs) => vmscan_report, chapter "vmscan-report";
        WorkingSet(working_set::args::WorkingSetArgs) => working_set, chapter "working-set";
        Validate(validate::args::ValidateArgs) => validate, chapter "validate", asks pageout_truth::validate;
    }
    "Reference" {
        Keys(keys::args::KeysArgs) => keys, chapter "keys, completions and man";
        Completions(completions::CompletionsArgs) => completions, chapter "keys, completions and man";
        #[command(hide = true)]
        Man(man::ManArgs) => man, chapter "keys, completions and man";
    }
}

/// The questions that there are, in the order of the commands.
pub fn questions() -> impl Iterator<Item = Question> {
    ROWS.iter().filter_map(|row| row.question)
}

/// Answers the question of a function of the Python package. `watcher` receives the remarks, and can end the study early. Runs in separate processes
/// start `program`.
pub fn answer(
    python: &str,
    question: Value,
    user_policies: UserPolicyOptions,
    program: Program,
    watcher: &dyn Watcher,
) -> Asked {
    let Some(found) = questions().find(|question| question.python == python) else {
        let known: Vec<&str> = questions().map(|question| question.python).collect();
        let why = format!("unknown study `{python}`; known: {}", known.join(", "));
        return Asked { failure: Some((user_policy::EXIT_CODE, why)), ..Asked::default() };
    };
    let cx = Context::new(Arc::default(), user_policies.into(), program);
    let mut asked = (found.ask)(&cx, question, watcher);
    user_policy::fallbacks().iter().for_each(|told| watcher.remark(told));
    if let Some((_, told)) = &mut asked.failure {
        cx.user_policies.unsaid(told).iter().for_each(|why| watcher.remark(why));
    }
    asked
}
