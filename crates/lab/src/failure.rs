//! Failures of a command, and their exit codes.

use std::fmt;
use std::io::ErrorKind;

use pageout_sim::scenario::SEED_MAX;
use pageout_study::{Error, Failed};

use crate::signals;

/// A failure, by its cause. The exit codes are part of the documented interface.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The simulated workload failed.
    Workload(anyhow::Error),
    /// The input is invalid.
    Input(anyhow::Error),
    /// The result could not be written.
    Output(std::io::Error),
    /// The reader closed the pipe. This is not an error.
    ReaderGone,
    /// The result differs from the expectations of the scenario, or from a recorded kernel.
    Unexpected(anyhow::Error),
    /// The recorded program failed, with this exit code. The recording is complete.
    Recorded(u8, anyhow::Error),
    /// A signal with this number ended the command.
    Interrupted(i32, anyhow::Error),
}

impl Failure {
    /// The code the process ends with.
    pub(crate) fn code(&self) -> u8 {
        match *self {
            Failure::ReaderGone => 0,
            Failure::Workload(_) => 1,
            Failure::Input(_) => 2,
            Failure::Output(_) => 3,
            Failure::Unexpected(_) => 4,
            Failure::Recorded(code, _) => code,
            // The convention of shells.
            Failure::Interrupted(signal, _) => 128 + u8::try_from(signal).unwrap_or(0),
        }
    }

    /// The error with what to do about it. `command` has the names of the command, such as `trace info`.
    pub(crate) fn with_help(&self, command: &str) -> String {
        let told = self.to_string();
        let has_cause = matches!(self, Failure::Workload(_) | Failure::Input(_));
        match has_cause && !told.contains("help: ") {
            true => format!("{told}\nhelp: {}", more(command)),
            false => told,
        }
    }

    /// An error while writing to standard output.
    pub(crate) fn writing(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Failure::ReaderGone
        } else {
            Failure::Output(error)
        }
    }
}

/// Returns the help of last resort: the command that describes `command`, which is empty if none was recognised.
pub(crate) fn more(command: &str) -> String {
    match command {
        "" => "`pageout -h` lists the commands".to_string(),
        command => format!("`pageout help {command}` describes its arguments, with examples"),
    }
}

/// What to do if a result cannot be written.
fn to_write(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "create the folder first, or write to another one",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check the permissions of the file and its folder, or write to another folder"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space on this device, or write to another one"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "choose a name that is not in use",
        ErrorKind::IsADirectory => "name a file; this is a folder",
        _ => "write to another file or device",
    }
}

/// Returns an error with its causes, without repetitions.
pub(crate) fn told(error: &anyhow::Error) -> String {
    pageout_study::told(error.as_ref())
}

/// A result that cannot be created or written, among errors of the input.
#[derive(Debug)]
struct Unwritten(std::io::Error);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unwritten {}

/// Makes an error of creating or writing a result. It keeps its exit code if context is added.
pub(crate) fn unwritten(error: std::io::Error) -> anyhow::Error {
    anyhow::Error::new(Unwritten(error))
}

impl From<anyhow::Error> for Failure {
    /// An error without another type is an input error: a command reads all inputs before it runs.
    fn from(error: anyhow::Error) -> Failure {
        match error.downcast_ref::<Unwritten>() {
            Some(Unwritten(source)) => Failure::Output(std::io::Error::new(source.kind(), told(&error))),
            None => Failure::Input(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Workload(error)
            | Failure::Input(error)
            | Failure::Unexpected(error)
            | Failure::Recorded(_, error)
            | Failure::Interrupted(_, error) => f.write_str(&told(error)),
            Failure::Output(error) => {
                let told = error.to_string();
                let (told, help) = told.split_once("\nhelp: ").unwrap_or((&told, to_write(error.kind())));
                // The option whose file it is comes first, as in all errors.
                let (place, why) = match told.split_once(": ") {
                    Some((option, why)) if option.starts_with("--") => (format!("{option}: "), why),
                    _ => (String::new(), told),
                };
                write!(f, "{place}cannot write the result: {why}; the output is not complete\nhelp: {help}")
            }
            Failure::ReaderGone => f.write_str("the reader closed the output"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if let Error::Write(error) = error {
            return Failure::Output(error);
        }
        match (&error, signals::came()) {
            (Error::SeedsPastLargest { first, repeat }, _) => Failure::Input(anyhow::anyhow!(
                "--repeat: seeds exceed {SEED_MAX}: found {repeat} seeds from `{first}`\nhelp: use a smaller --seed"
            )),
            // Without a signal it was a program that calls that has ended it.
            (Error::Interrupted(_), signal) => Failure::Interrupted(signal.unwrap_or(2), error.into()),
            _ if error.is_input() => Failure::Input(error.into()),
            _ => Failure::Workload(error.into()),
        }
    }
}

impl From<pageout_truth::Error> for Failure {
    fn from(error: pageout_truth::Error) -> Failure {
        match error {
            pageout_truth::Error::Study(error) => error.into(),
            pageout_truth::Error::Write(error) => Failure::Output(error),
            error => Failure::Unexpected(error.into()),
        }
    }
}

impl From<Failed> for Failure {
    /// Converts the failure of a run into that of the command.
    fn from(failed: Failed) -> Failure {
        let error = anyhow::anyhow!(failed.message);
        if failed.is_input { Failure::Input(error) } else { Failure::Workload(error) }
    }
}

/// What commands return.
pub(crate) type Outcome = Result<(), Failure>;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn unwritten_result_has_place_reason_and_help() {
        let full = io::Error::new(ErrorKind::StorageFull, "--out a.json: No space left on device");
        assert_eq!(
            Failure::Output(full).with_help("run"),
            "--out a.json: cannot write the result: No space left on device; the output is not complete\nhelp: free space on this device, or write to another one"
        );
        let missing = io::Error::new(ErrorKind::NotFound, "--trace x/y: no such folder\nhelp: create it");
        assert_eq!(
            Failure::Output(missing).with_help("run"),
            "--trace x/y: cannot write the result: no such folder; the output is not complete\nhelp: create it"
        );
    }

    #[test]
    fn error_without_help_names_the_help_of_its_command() {
        let wrong = || Failure::Input(anyhow::anyhow!("--ratio 1: expected FAST:SLOW"));
        assert_eq!(
            wrong().with_help("advise-tier"),
            "--ratio 1: expected FAST:SLOW\nhelp: `pageout help advise-tier` describes its arguments, with examples"
        );
        let helped = Failure::Input(anyhow::anyhow!("--ratio 1: expected FAST:SLOW\nhelp: for example 1:2"));
        assert!(helped.with_help("advise-tier").ends_with("\nhelp: for example 1:2"));
    }
}
