//! `pageout man`: the manual page, made from the definition of the command line.

use clap::Args;

use crate::commands::command_line::{definition, is_shared, shared_options};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// Print the manual page (for packagers)
#[derive(Debug, Args)]
pub(crate) struct ManArgs {}

/// Prints the manual page. It has a section per command, and one for the options that all commands share.
pub(crate) fn run(_: &ManArgs, cx: &Context) -> Outcome {
    let mut command = definition();
    command.build();
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone());
    page.render(&mut text).map_err(Failure::writing)?;
    text.extend_from_slice(b".SH OPTIONS OF ALL COMMANDS\n");
    clap_mangen::Man::new(shared_options()).render_options_section(&mut text).map_err(Failure::writing)?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let is_hidden = |arg: &clap::Arg| arg.is_hide_set() || is_shared(arg);
        let own = subcommand.clone().mut_args(|arg| {
            let is_hidden = is_hidden(&arg);
            arg.hide(is_hidden)
        });
        let page = clap_mangen::Man::new(own);
        let title = format!(".SH COMMAND {}\n", subcommand.get_name().to_uppercase());
        text.extend_from_slice(title.as_bytes());
        page.render_description_section(&mut text).map_err(Failure::writing)?;
        page.render_options_section(&mut text).map_err(Failure::writing)?;
    }
    cx.output.print(&String::from_utf8_lossy(&text))
}
