//! `pageout man`: the manual page, made from the definition of the command line.

use clap::{Args, CommandFactory};

use crate::commands::command_line::Cli;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// Print the manual page (for packagers).
#[derive(Debug, Args)]
pub(crate) struct ManArgs {}

/// Prints the manual page with all commands in it.
pub(crate) fn run(_: &ManArgs, cx: &Context) -> Outcome {
    let mut command = Cli::command();
    command.build();
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone());
    page.render(&mut text).map_err(Failure::writing)?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let page = clap_mangen::Man::new(subcommand.clone());
        let title = format!(".SH COMMAND {}\n", subcommand.get_name().to_uppercase());
        text.extend_from_slice(title.as_bytes());
        page.render_description_section(&mut text).map_err(Failure::writing)?;
        page.render_options_section(&mut text).map_err(Failure::writing)?;
    }
    cx.output.print(&String::from_utf8_lossy(&text))
}
