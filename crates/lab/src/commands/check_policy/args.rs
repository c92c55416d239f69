//! Arguments of `pageout check-policy`.

use clap::Args;

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  # a shared library, which runs with your rights
  pageout check-policy ./libmine.so --allow-plugins
  # the program that `pageout new-policy` wrote
  mine check-policy mine
  # a built-in policy
  pageout check-policy sieve";

/// Check that a policy keeps the contract
///
/// The check replays random traces with several sizes of memory, which change during the run. The policy must return a resident page, once. It
/// must decide the same in two runs, with uses reported one by one or 256 at a time. It must pass its own check, and miss at least as often as
/// OPT. The error names the call and the slot.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckPolicyArgs {
    /// A shared library, or the name of a built-in policy
    #[arg(value_name = "FILE|NAME")]
    pub(crate) policy: String,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
