//! Arguments of `pageout validate`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::options::{OutputOptions, ParallelOptions};

/// Arguments of `validate`.
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

    /// Show every figure of the runs that pass, too
    #[arg(long, short)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) parallel: ParallelOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
