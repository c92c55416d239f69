//! Arguments of `pageout check-policy`.

use clap::Args;

use super::options::OutputOptions;

pub(super) const EXAMPLES: &str = "\
Examples:
  # a shared library, which runs with your rights
  pageout check-policy ./libmine.so --allow-plugins
  # of a program that `pageout new-policy` has written
  mine check-policy mine
  pageout check-policy sieve";

/// Arguments of `check-policy`.
#[derive(Debug, Args)]
pub(crate) struct CheckPolicyArgs {
    /// A shared library, or the name of a policy that this program knows
    #[arg(value_name = "FILE|NAME")]
    pub(crate) policy: String,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
