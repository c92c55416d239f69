//! Arguments of `pageout keys`.

use clap::Args;

use super::options::OutputOptions;

/// Arguments of `keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// Only keys whose path contains this
    pub(crate) filter: Option<String>,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
