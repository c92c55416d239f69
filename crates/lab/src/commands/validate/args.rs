//! Arguments of `pageout validate`.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use pageout_truth::input::Input;

use crate::cli::options::{OutputOptions, ParallelOptions};

/// Check the simulator against counters recorded on a real kernel.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The directory with the recorded runs
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Only these runs, by id or pattern (`fr-*.classic.*`); all of them without any
    pub(crate) run: Vec<String>,

    /// A run known to fall short: it is shown, but is no failure. If it passes, that is one, so no list grows stale
    #[arg(long, value_name = "RUN")]
    pub(crate) expect_short: Vec<String>,

    /// How close is close enough; the directory's tolerances.toml if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tolerances: Option<PathBuf>,

    /// Leave these recorded inputs out, as if nobody had recorded them, so that the figures show what each is worth
    #[arg(long, value_name = "INPUT", value_delimiter = ',')]
    pub(crate) without: Vec<InputArg>,

    /// How often to simulate a run where something was not recorded, each time with another value of it, spread evenly; as often as its class says
    /// if absent
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) simulations: Option<u16>,

    /// Name the first access at which simulation and kernel part, and tell what the simulator did with a page that it is about
    #[arg(long)]
    pub(crate) first_difference: bool,

    /// Show every figure of the runs that pass, too
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// An input by its name on the command line: the name of its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputArg(pub(crate) Input);

/// Every input, as the command line wants them.
const INPUTS: [InputArg; Input::ALL.len()] = {
    let mut inputs = [InputArg(Input::ALL[0]); Input::ALL.len()];
    let mut at = 0;
    while at < inputs.len() {
        inputs[at] = InputArg(Input::ALL[at]);
        at += 1;
    }
    inputs
};

impl ValueEnum for InputArg {
    fn value_variants<'a>() -> &'a [InputArg] {
        &INPUTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.field()).help(self.0.told()))
    }
}
