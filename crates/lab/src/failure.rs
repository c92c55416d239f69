//! How a command can fail, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use serde::{Serialize, Serializer};

use crate::print::signals;

/// A failure sorted by whose business it is; the exit codes are part of the documented interface.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The simulated workload failed.
    Workload(anyhow::Error),
    /// The input is no good.
    Input(anyhow::Error),
    /// The result could not be written.
    Output(std::io::Error),
    /// Whoever read our output has gone: nothing to complain about.
    ReaderGone,
    /// The result is not what was expected of it: by the scenario, or by those who recorded a real kernel.
    Unexpected(anyhow::Error),
    /// A signal, of this number, has ended what was to be done.
    Interrupted(i32, anyhow::Error),
}

impl Failure {
    /// The code the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match *self {
            Failure::ReaderGone => 0,
            Failure::Workload(_) => 1,
            Failure::Input(_) => 2,
            Failure::Output(_) => 3,
            Failure::Unexpected(_) => 4,
            // As shells have it.
            Failure::Interrupted(signal, _) => 128 + u8::try_from(signal).unwrap_or(0),
        })
    }

    /// A run was told to end by a signal.
    pub(crate) fn interrupted(signal: i32) -> Failure {
        Failure::Interrupted(signal, anyhow::anyhow!("interrupted by {}", signals::name(signal)))
    }

    /// This failure in other words.
    pub(crate) fn told_as(&self, message: String) -> Failure {
        let error = anyhow::anyhow!(message);
        match self {
            Failure::Input(_) => Failure::Input(error),
            Failure::Unexpected(_) => Failure::Unexpected(error),
            &Failure::Interrupted(signal, _) => Failure::Interrupted(signal, error),
            _ => Failure::Workload(error),
        }
    }

    /// Failures of several runs as one. One run's bad input makes it a fault of the input, as it is where that run is alone.
    pub(crate) fn several(heading: &str, failures: &[Failure]) -> Failure {
        let told: Vec<String> = failures.iter().map(Failure::to_string).collect();
        let error = anyhow::anyhow!("{heading}\n  {}", told.join("\n  "));
        match failures.iter().any(|failure| matches!(failure, Failure::Input(_))) {
            true => Failure::Input(error),
            false => Failure::Workload(error),
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

/// An error with its causes. Many errors of the crates below say what their cause says; it is told once.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !told.contains(&cause) {
            let between = if told.is_empty() { "" } else { ": " };
            told += &format!("{between}{cause}");
        }
    }
    told
}

impl From<anyhow::Error> for Failure {
    /// What is not said to be anything else is a fault of the input: everything a command reads comes before it runs.
    fn from(error: anyhow::Error) -> Failure {
        Failure::Input(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Workload(error)
            | Failure::Input(error)
            | Failure::Unexpected(error)
            | Failure::Interrupted(_, error) => f.write_str(&told(error)),
            Failure::Output(error) => {
                write!(f, "cannot write the result: {error}; what was written is not complete")
            }
            Failure::ReaderGone => f.write_str("the reader of the output has gone"),
        }
    }
}

impl From<pageout_sim::RunError> for Failure {
    /// A trace that can't be read to its end and an event on a file that does not exist are faults of the input.
    fn from(error: pageout_sim::RunError) -> Failure {
        use pageout_sim::RunError;
        match error {
            RunError::Stream { .. } | RunError::File { .. } | RunError::Removed { .. } => {
                Failure::Input(error.into())
            }
            _ => Failure::Workload(error.into()),
        }
    }
}

impl Serialize for Failure {
    /// As a text: a result has it where a run's figures would be.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What commands return.
pub(crate) type Outcome = Result<(), Failure>;
