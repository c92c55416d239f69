//! The commands for programs: the words of a command line go in, and what it would print as JSON comes out. So both say the same.
//!
//! A call takes nothing of the process but a thread: no signal, no standard output. What there is to remark is handed back, and whoever calls says by a flag
//! that it is to end.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::CommandFactory;

use crate::commands::command_line::Cli;
use crate::context::Context;
use crate::own;
use crate::print::Output;
use crate::program::Program;

/// What a command came to.
#[derive(Debug, Default)]
pub struct Called {
    /// What it would print with `--json`: there may be some of it where it has failed.
    pub result: Option<String>,
    /// What it would remark on standard error.
    pub remarks: Vec<String>,
    /// Why it has failed, with the exit code.
    pub failure: Option<(u8, String)>,
}

/// Does what the words of a command line ask for, of which the first is the program's name. It ends soon once `stop` is set. It starts
/// `program` for runs in separate processes.
pub fn call(words: &[OsString], program: Program, stop: &Arc<AtomicBool>) -> Called {
    let (cli, matches) = match Cli::parse_with_matches(words) {
        Ok(parsed) => parsed,
        Err(error) => {
            let failure = Some((2, error.render().to_string().trim_end().to_string()));
            return Called { failure, ..Called::default() };
        }
    };
    let cx = Context::new(Arc::new(Output::of_a_call(&matches, stop)), cli.own, program);
    let done = cli.command.run(&cx);
    own::fallbacks().iter().for_each(|told| cx.output.remark(told));
    let kept = cx.output.take_kept();
    let mut called = Called { result: kept.result, remarks: kept.remarks, failure: None };
    if let Err(failure) = done {
        let mut told = failure.to_string();
        called.remarks.extend(cx.own.unsaid(&told));
        told.truncate(told.trim_end().len());
        called.failure = Some((failure.code(), told));
    }
    called
}

/// The definition of the command line: names, options and help.
pub fn command_line() -> clap::Command {
    Cli::command()
}
