//! The commands for programs: a call accepts the words of a command line, and returns what the command prints with `--json`.
//!
//! A call uses a thread of the process, but no signal and no standard output. It returns the remarks. The caller sets a flag to end it.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cli::usage;
use crate::commands::command_line::{self, Cli};
use crate::context::Context;
use crate::print::Output;
use crate::program::Program;
use crate::user_policy;

/// The outcome of a command.
#[derive(Debug, Default)]
pub struct Called {
    /// The output of `--json`. A failed command may have a part of it.
    pub result: Option<String>,
    /// The lines of standard error.
    pub remarks: Vec<String>,
    /// The exit code and the error of a failed command.
    pub failure: Option<(u8, String)>,
}

/// The help of a command.
#[derive(Debug)]
pub struct Help {
    /// The words before `--help`, for example `pageout trace info`.
    pub command: String,
    /// The line of the command in the help of its parent.
    pub summary: String,
    /// The output of `-h`; `pageout help output` has none.
    pub short: Option<String>,
    /// The output of `--help`.
    pub complete: String,
}

/// Runs the words of a command line, of which the first is the program's name. The command ends soon after `stop` is set. It starts
/// `program` for runs in separate processes.
pub fn call(words: &[OsString], program: Program, stop: &Arc<AtomicBool>) -> Called {
    let (cli, matches) = match Cli::parse_with_matches(words) {
        Ok(parsed) => parsed,
        Err(error) => {
            let failure = Some((2, usage::told(&error, &command_line::named(words))));
            return Called { failure, ..Called::default() };
        }
    };
    let cx = Context::new(Arc::new(Output::of_a_call(&matches, stop)), cli.user_policies, program);
    let done = cli.command.run(&cx);
    user_policy::fallbacks().iter().for_each(|told| cx.output.remark(told));
    let kept = cx.output.take_kept();
    let mut called = Called { result: kept.result, remarks: kept.remarks, failure: None };
    if let Err(failure) = done {
        let mut told = failure.to_string();
        called.remarks.extend(cx.user_policies.unsaid(&told));
        told.truncate(told.trim_end().len());
        called.failure = Some((failure.code(), told));
    }
    called
}

/// Returns the definition of the command line: names, options and the help of `-h`.
pub fn command_line() -> clap::Command {
    command_line::definition()
}

/// Returns the help of the program, of each command, and of `pageout help output`, for a terminal of `columns`.
pub fn helps(columns: usize) -> Vec<Help> {
    let built = |mut command: clap::Command| {
        command.build();
        command
    };
    let short = built(command_line::definition().term_width(columns));
    let mut helps = Vec::new();
    add_helps(
        "pageout",
        &short,
        &built(command_line::with_complete_help().term_width(columns)),
        columns,
        &mut helps,
    );
    let shared = command_line::shared_options().term_width(columns);
    helps.push(Help {
        command: shared.get_name().to_string(),
        summary: shared.get_about().map(ToString::to_string).unwrap_or_default(),
        short: None,
        complete: shared.clone().render_long_help().to_string(),
    });
    helps
}

/// Adds the help of a command and of those below it, from both definitions.
fn add_helps(
    name: &str,
    short: &clap::Command,
    complete: &clap::Command,
    columns: usize,
    helps: &mut Vec<Help>,
) {
    let render = |command: &clap::Command| command.clone().term_width(columns).render_help().to_string();
    helps.push(Help {
        command: name.to_string(),
        summary: short.get_about().map(ToString::to_string).unwrap_or_default(),
        short: Some(render(short)),
        complete: render(complete),
    });
    for (short, complete) in short.get_subcommands().zip(complete.get_subcommands()) {
        if short.get_name() != "help" {
            add_helps(&format!("{name} {}", short.get_name()), short, complete, columns, helps);
        }
    }
}
