//! Errors: why a study can't be begun or has no result, and failures of single runs, which are part of one.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use pageout_sim::RunError;
use pageout_sim::scenario::{Problem, SEED_MAX};
use pageout_workload::TraceError;
use serde::{Serialize, Serializer};

use crate::scenario::diagnostic::Diagnostics;

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A scenario file can't be read.
    #[error("cannot read scenario {}: {}", path.display(), told(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What reading it says.
        source: io::Error,
    },
    /// A scenario says something that is wrong, each with its place.
    #[error(transparent)]
    Scenario(#[from] Diagnostics),
    /// What was asked for makes no sense; the text says why, and what would.
    #[error("{0}")]
    Asked(String),
    /// The seeds exceed the largest seed.
    #[error(
        "{repeat} seeds from {first} exceed the largest seed, {SEED_MAX}\nhelp: start with a smaller seed"
    )]
    SeedsPastLargest {
        /// The first one.
        first: u64,
        /// So many were asked for.
        repeat: u32,
    },
    /// A scenario passes all checks, and its machine can't be built nevertheless.
    #[error("{}: {}", .0.key, .0.message)]
    NotBuilt(Problem),
    /// The simulated workload failed.
    #[error("{}", told(.0))]
    Run(#[source] RunError),
    /// A trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The run that all others were to be compared with has no result.
    #[error("{0}")]
    Failed(Failed),
    /// The watcher ended the runs ([`crate::Watcher::stop`]).
    #[error("{0}")]
    Interrupted(String),
    /// A result can't be written.
    #[error("{0}")]
    Write(io::Error),
    /// Runs failed, each for its reason.
    #[error("{heading}{}", lines(failures))]
    Runs {
        /// How many, or what that means.
        heading: String,
        /// The reasons.
        failures: Vec<Failed>,
    },
}

impl Error {
    /// What was asked for makes no sense.
    pub(crate) fn asked(why: impl Into<String>) -> Error {
        Error::Asked(why.into())
    }

    /// The error with each of its causes, for one input among several.
    pub(crate) fn in_full(&self) -> String {
        told(self)
    }

    /// Returns true if what was given is at fault, rather than the simulated workload: a scenario, a trace, a setting.
    pub fn is_input(&self) -> bool {
        match self {
            Error::Read { .. }
            | Error::Scenario(_)
            | Error::Asked(_)
            | Error::SeedsPastLargest { .. }
            | Error::Trace(_)
            | Error::NotBuilt(_) => true,
            // A trace that can't be read to its end, an event on a file that does not exist and a policy that lies are faults of what was given.
            Error::Run(error) => matches!(
                error,
                RunError::Stream { .. }
                    | RunError::File { .. }
                    | RunError::Removed { .. }
                    | RunError::Guest { .. }
                    | RunError::NeedsClock { .. }
            ),
            Error::Failed(failed) => failed.is_input,
            Error::Interrupted(_) | Error::Write(_) => false,
            // One run's bad input makes it a fault of the input, as it is where that run is alone.
            Error::Runs { failures, .. } => failures.iter().any(|failure| failure.is_input),
        }
    }
}

/// Says what was to be done when something failed.
pub(crate) trait During<T> {
    /// An error of the input: what was to be done, and why it can't be where that is known.
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: StdError + 'static> During<T> for Result<T, E> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::Asked(format!("{}: {}", what(), told(&error))))
    }
}

impl<T> During<T> for Option<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.ok_or_else(|| Error::Asked(what()))
    }
}

/// Returns the formatted text as an error of what was asked for.
macro_rules! bail {
    ($($said:tt)*) => { return Err($crate::error::Error::Asked(format!($($said)*))) };
}
pub(crate) use bail;

/// Returns the formatted text as an error of what was asked for, unless a condition is true.
macro_rules! ensure {
    ($is_so:expr, $($said:tt)*) => {
        if !$is_so {
            $crate::error::bail!($($said)*);
        }
    };
}
pub(crate) use ensure;

/// The reason why a run has no result. The other runs of the study have theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// True if what was given is at fault, rather than the simulated workload.
    pub is_input: bool,
    /// The reason of the failure.
    pub message: String,
}

impl Failed {
    /// The failure with words in front that say whose it is.
    pub fn of(&self, whose: &str) -> Failed {
        Failed { is_input: self.is_input, message: format!("{whose}: {}", self.message) }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { is_input: error.is_input(), message: error.to_string() }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Serialize for Failed {
    /// As a text: a result has it where a run's figures would be.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn lines(failures: &[Failed]) -> String {
    failures.iter().map(|failure| format!("\n  {failure}")).collect()
}

/// An error with what could not be done in front.
#[cfg(target_os = "linux")]
pub(crate) fn cannot<E: StdError + 'static>(what: impl fmt::Display) -> impl FnOnce(E) -> Error {
    move |error| Error::Asked(format!("{what}: {}", told(&error)))
}

/// Returns the text of an error and its causes, and what to do about an error of the file system. Many errors of the
/// lower crates repeat the text of their cause; it is printed once.
pub fn told(error: &(dyn StdError + 'static)) -> String {
    let (mut told, mut help) = (String::new(), String::new());
    for cause in causes(error) {
        let cause = cause.to_string();
        // The help of a cause comes last, once.
        let (cause, more) = cause.split_once("\nhelp: ").unwrap_or((&cause, ""));
        if help.is_empty() && !more.is_empty() {
            help = format!("\nhelp: {more}");
        }
        if !told.contains(cause) {
            let between = if told.is_empty() { "" } else { ": " };
            told += &format!("{between}{cause}");
        }
    }
    if help.is_empty() && !told.contains("help: ") {
        let system = causes(error).find_map(|cause| cause.downcast_ref()).and_then(system_help);
        help = system.unwrap_or_default().to_string();
    }
    told + &help
}

fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// What to do about an error of the file system.
fn system_help(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Some("\nhelp: check the path; a relative path starts at the current folder")
        }
        io::ErrorKind::PermissionDenied => Some("\nhelp: check the permissions of the file and its folders"),
        io::ErrorKind::IsADirectory => Some("\nhelp: name a file; this is a folder"),
        io::ErrorKind::NotADirectory => Some("\nhelp: name a folder; a part of this path is a file"),
        io::ErrorKind::InvalidData => Some("\nhelp: this is not a text in UTF-8; check which file is named"),
        io::ErrorKind::UnexpectedEof => Some("\nhelp: the file is truncated; copy it again"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("\nhelp: free space on this device, or use another one")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pageout_workload::ReadOptions;

    use super::*;
    use crate::bench::Trace;

    #[test]
    fn cause_that_an_error_has_told_is_not_repeated() {
        let missing = Trace::load(Path::new("nowhere.txt"), &ReadOptions::default(), u64::MAX, &());
        let full = Error::from(missing.err().unwrap()).in_full();
        assert_eq!(full.matches("os error 2").count(), 1, "{full}");
    }

    #[test]
    fn missing_file_is_reported_with_help_once() {
        let missing = std::fs::read("nowhere.txt").during(|| "nowhere.txt".to_string());
        let full = missing.unwrap_err().in_full();
        assert_eq!(full.matches("help: ").count(), 1, "{full}");
    }
}
