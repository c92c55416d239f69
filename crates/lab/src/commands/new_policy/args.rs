//! Arguments of `pageout new-policy`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const EXAMPLES: &str = "\
Examples:
  # in Rust; then: cd mine && cargo run --release -- replay TRACE --policy mine,s3-fifo
  pageout new-policy mine
  # where pageout's sources are, if not where this program was built
  pageout new-policy mine --pageout ~/src/pageout
  # in C; then: cd mine && make check
  pageout new-policy mine --c
  # in Python; then: cd mine && python mine.py
  pageout new-policy mine --python";

/// Write a project for a policy of your own, which runs without a fork: beside the others in replay and sweep, and in the machine.
///
/// It has a first-in-first-out policy to change, a test of the contract, and a README. In Rust it is a program of its own that has every command of
/// pageout; in C a shared library for this one; in Python a class for the package `pageout`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct NewPolicyArgs {
    /// The policy's name, and that of the folder: lower-case letters, digits, - and _, a letter first
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// A shared library in C, which this program loads
    #[arg(long, conflicts_with = "python")]
    pub(crate) c: bool,

    /// A class in Python, for the package `pageout`
    #[arg(long)]
    pub(crate) python: bool,

    /// The folder of pageout's sources that a project in Rust is built with; without it the one that this program was built from
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["c", "python"])]
    pub(crate) pageout: Option<PathBuf>,
}
