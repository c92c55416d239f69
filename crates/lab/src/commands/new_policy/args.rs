//! Arguments of `pageout new-policy`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const EXAMPLES: &str = "\
Examples:
  # Rust; run: cargo run --release -- replay TRACE --policy mine,s3-fifo
  pageout new-policy mine
  # Rust, with another folder of pageout's sources
  pageout new-policy mine --pageout ~/src/pageout
  # C; run: make check
  pageout new-policy mine --c
  # Python; run: python mine.py
  pageout new-policy mine --python";

/// Write a project for a custom policy
///
/// The project has a FIFO policy to change, a test of the contract, and a README. In Rust it is a program with all commands of pageout, in C
/// a shared library for this program, in Python a class for the package `pageout`. The policy runs in replay, in sweep and in the simulated
/// machine, next to the others.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct NewPolicyArgs {
    /// Name of policy and folder: a-z, 0-9, - and _, a letter first
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Write a shared library in C
    #[arg(long, conflicts_with = "python")]
    pub(crate) c: bool,

    /// Write a class in Python
    #[arg(long)]
    pub(crate) python: bool,

    /// Sources of pageout [default: those of this program]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["c", "python"])]
    pub(crate) pageout: Option<PathBuf>,
}
