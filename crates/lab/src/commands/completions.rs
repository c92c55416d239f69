//! `pageout completions`: completions for shells, made from the definition of the command line.

use clap::Args;

use crate::commands::command_line::definition;
use crate::context::Context;
use crate::failure::Outcome;

const EXAMPLES: &str = "\
Examples:
  # for bash
  pageout completions bash > ~/.local/share/bash-completion/completions/pageout
  # for zsh, into a folder of fpath
  pageout completions zsh > ~/.zfunc/_pageout
  # for fish
  pageout completions fish > ~/.config/fish/completions/pageout.fish";

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints completions for a shell.
pub(crate) fn run(args: &CompletionsArgs, cx: &Context) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut definition(), "pageout", &mut text);
    cx.output.print(&String::from_utf8_lossy(&text))
}
