//! Arguments of `pageout validate`.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use pageout_truth::input::Input;

use crate::cli::options::{OutputOptions, ParallelOptions};

const EXAMPLES: &str = "\
Examples:
  # all runs of a folder
  pageout validate ground-truth
  # runs by pattern, with all figures
  pageout validate ground-truth 'fr-*.classic.*' --verbose
  # where simulation and kernel differ first
  pageout validate ground-truth/misses loop-4002.mglru.1 --first-difference";

/// Compare the simulator with counters of a real kernel
///
/// The folder has recorded runs, with their inputs, counters and tolerances. Each run is simulated, and each counter is compared. If an
/// input was not recorded, the run is simulated with several values of it, and the counter must be in their range.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// Folder of the recorded runs
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,

    /// Runs by id or pattern [default: all]
    pub(crate) run: Vec<String>,

    /// Run that is expected to fail; repeatable
    ///
    /// If it passes, the exit code is 4
    #[arg(long, value_name = "RUN")]
    pub(crate) expect_short: Vec<String>,

    /// Tolerances [default: tolerances.toml of the folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tolerances: Option<PathBuf>,

    /// Recorded inputs to ignore, to measure their worth
    #[arg(long, value_name = "INPUT", value_delimiter = ',', hide_short_help = true)]
    pub(crate) without: Vec<InputArg>,

    /// Number of values of an input that was not recorded [default: that of the class]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(2..), hide_short_help = true)]
    pub(crate) simulations: Option<u16>,

    /// Print the first access that differs, and explain its page
    #[arg(long)]
    pub(crate) first_difference: bool,

    /// Print all figures of the runs that pass, too
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// An input, named by its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputArg(pub(crate) Input);

/// All inputs, as values of `--without`.
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
