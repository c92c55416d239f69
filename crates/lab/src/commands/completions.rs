//! `pageout completions`: completions for shells, made from the definition of the command line.

use clap::{Args, CommandFactory};

use crate::commands::command_line::Cli;
use crate::context::Context;
use crate::failure::Outcome;

const EXAMPLES: &str = "\
Examples:
  pageout completions bash > ~/.local/share/bash-completion/completions/pageout
  # into a folder of fpath
  pageout completions zsh > ~/.zfunc/_pageout
  pageout completions fish > ~/.config/fish/completions/pageout.fish";

/// Print shell completions.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Prints completions for a shell.
pub(crate) fn run(args: &CompletionsArgs, cx: &Context) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pageout", &mut text);
    cx.output.print(&String::from_utf8_lossy(&text))
}
