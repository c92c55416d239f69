//! The command `pageout`, as a library with a thin program: scenarios and traces in, tables and JSON out.
//!
//! Everything that decides or simulates is in other crates, and what runs scenarios and compares their figures in `study`; here are the command
//! line, files, terminals and words. Read it in this order:
#![forbid(unsafe_code)]
// The bans on clocks, threads and files keep the engine and the simulator deterministic. This crate is the place they
// are banned to: it writes results, measures progress and waits for signals.
#![allow(clippy::disallowed_methods)]

mod signals; // cleanup before a signal ends the program
mod failure; // failures and exit codes
mod program; // the start of the program again
mod print; // results as people read them
mod report; // a result as a page to look at
mod tracing; // events of a run, in the formats of real traces
mod user_policy; // custom policies in this process
mod cli; // options that commands share
mod context; // inputs of a command besides its arguments
pub mod baselines; // caches of others, to measure beside the live one
mod asked; // questions for programs
pub mod commands; // one row and one module per command
pub mod api; // commands for programs

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;

use commands::command_line::{self, Cli};
use context::Context;
use failure::Failure;
use print::output::Output;

pub use asked::{Asked, Question, Rows, UserPolicyOptions};
pub use commands::{answer, questions};
pub use program::Program;
pub use user_policy::{MakePolicy, Watchdog, end_with_fault};

/// Runs the command line.
pub fn main() -> ExitCode {
    main_with(&[])
}

/// Runs the command line with custom policies, by name. `pageout new-policy NAME` writes a program that does this.
pub fn main_with(policies: &[(&str, MakePolicy)]) -> ExitCode {
    ExitCode::from(run(&std::env::args_os().collect::<Vec<_>>(), policies, Program::default()))
}

/// Runs the command line of `pageout bench` with additional third-party caches, by name.
pub fn bench_with(others: &[(&'static str, baselines::Open)]) -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_none_or(|word| word != "bench") {
        words.insert(words.len().min(1), "bench".into());
    }
    ExitCode::from(run_with(&words, Program::default(), others))
}

/// Runs the words of a command line, of which the first is the program's name, and returns the exit code. The process has to end after it: this function handles
/// signals and panics of the process, and treats what a loaded library does from now on as its unloading.
pub fn run(words: &[OsString], policies: &[(&str, MakePolicy)], program: Program) -> u8 {
    match user_policy::register(policies) {
        Ok(()) => run_with(words, program, &[]),
        Err(why) => user_policy::bad_input(&why),
    }
}

fn run_with(words: &[OsString], program: Program, baselines: &[(&'static str, baselines::Open)]) -> u8 {
    let (cli, matches) = match Cli::parse_with_matches(words) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error, &command_line::named(words)),
    };
    let (output, done) = match Output::asked(&matches) {
        Ok(output) => (Arc::new(output), Ok(())),
        Err(error) => (Arc::default(), Err(Failure::from(error))),
    };
    signals::take_over();
    let cx = Context { baselines: baselines.to_vec(), ..Context::new(output, cli.user_policies, program) };
    if cx.user_policies.are_there() {
        cx.user_policies.guard(&cx.output);
    }
    let done = done.and_then(|()| {
        let done = cli.command.run(&cx);
        user_policy::fallbacks().iter().for_each(|told| cx.output.remark(told));
        // The complete part of a result is written in any case. The first failure is reported.
        let written = cx.output.finish();
        done.and(written)
    });
    if let Err(failure) = &done
        && !matches!(failure, Failure::ReaderGone)
    {
        let told = failure.with_help(&command_line::named(words));
        cx.output.remark(&format!("error: {told}"));
        cx.user_policies.unsaid(&told).iter().for_each(|why| cx.output.remark(&format!("note: {why}")));
    }
    cx.user_policies.before_the_end();
    done.map_or_else(|failure| failure.code(), |()| 0)
}

/// Prints help or an error of clap. Help is a result and goes to standard output; an error goes to standard error.
fn usage(error: &clap::Error, command: &str) -> u8 {
    let output = Output::default();
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_help {
        output.remark(&format!("error: {}", cli::usage::told(error, command)));
        return 2;
    }
    // Not clap's own print: it would not notice a full disk, and sends the help of a bare `pageout` to standard error.
    let text = error.render();
    let is_styled =
        std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let text = if is_styled { text.ansi().to_string() } else { text.to_string() };
    match output.write(text.as_bytes()) {
        Ok(()) => 0,
        Err(failure) => {
            output.remark(&format!("error: {}", failure.with_help(command)));
            failure.code()
        }
    }
}
