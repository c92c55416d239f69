//! The command line of `pageout`, and the help that teaches it.

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use super::Command;
use crate::own::OwnOptions;

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the result is complete
  1  the simulated workload failed: out of memory, an I/O error, a page beyond the file
  2  the input is no good: the command line, a scenario, a trace, a dump, a recording, a policy of one's own
  3  the result could not be written: disk full, no permission, no such directory
  4  the result is not what the scenario expects, or not what the real kernel did (validate)
  130, 143  interrupted (SIGINT, SIGTERM): simulations under way have ended, and what there is so far is printed
Of several runs that fail, one that was interrupted makes it 130 or 143, or else one with bad input 2.
A reader that goes away early (`pageout ... | head`) is no error.

With --json the first key of the result, or of each object of a list, is `format_version`: 1. It rises when a key goes or
means something else; keys that are added change nothing.";

const START: &str = "\
Start with:
  pageout run scenarios/zipf-under-limit.toml
  # five publications, their tables beside ours
  pageout tour --report tour.html
  pageout replay mytrace.csv --memory 10%,30%,50%
  pageout replay mytrace.csv --memory 1%..100%/50log --policy lru,s3-fifo,opt
  # what a scenario may contain
  pageout keys

More, with examples: `pageout help COMMAND`";

/// Which program this is: figures of speed mean nothing without its profile, nor bug reports without its commit.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (profile ",
    env!("PAGEOUT_PROFILE"),
    ", commit ",
    env!("PAGEOUT_COMMIT"),
    ")"
);

/// Linux page reclaim, out of the kernel.
///
/// Plays the kernel's reclaim rules (the LRU lists, direct reclaim, refaults, cgroup limits, swap) on a simulated machine
/// of any shape: deterministic, observable, in seconds. Results carry the kernel's own counter names.
#[derive(Debug, Parser)]
#[command(
    name = "pageout",
    version = VERSION,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(
    after_help = START
)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) own: OwnOptions,
}

impl Cli {
    /// Parses the words of a command line, of which the first is the program's name.
    pub(crate) fn parse_with_matches(words: &[OsString]) -> clap::error::Result<(Cli, ArgMatches)> {
        let matches = Cli::command().try_get_matches_from(words)?;
        Ok((Cli::from_arg_matches(&matches)?, matches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
