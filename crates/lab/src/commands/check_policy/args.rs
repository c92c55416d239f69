//! Arguments of `pageout check-policy`.

use clap::Args;

use crate::cli::options::OutputOptions;

const EXAMPLES: &str = "\
Examples:
  # a shared library, which runs with your rights
  pageout check-policy ./libmine.so --allow-plugins
  # of a program that `pageout new-policy` has written
  mine check-policy mine
  pageout check-policy sieve";

/// Check that a policy of your own keeps the contract, and say with call and slot what is wrong.
///
/// Random traces with pages that go, stay, and cool down, in memories of one page, of two, and of all of them, which are resized. In each the policy must
/// nominate what is there, once; do the same in two runs, with uses told one by one or 256 at once; find nothing wrong with itself; and miss no less
/// often than who knows the future.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckPolicyArgs {
    /// A shared library, or the name of a policy that this program knows
    #[arg(value_name = "FILE|NAME")]
    pub(crate) policy: String,

    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
