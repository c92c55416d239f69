//! Errors of an engine's configuration: a value, name or size that can't be built or set, and the two checks that make most of them.

use std::fmt;

/// The reason why a configuration, or a change of a setting, is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A number outside its range.
    OutOfRange {
        /// Name of the number.
        what: &'static str,
        /// The number that was given.
        value: u64,
        /// The smallest number allowed.
        min: u64,
        /// The largest number allowed.
        max: u64,
    },
    /// A number below another one that it must reach.
    Below {
        /// Name of the number.
        what: &'static str,
        /// The number that was given.
        value: u64,
        /// Name of the other number.
        of: &'static str,
        /// The other number.
        least: u64,
    },
    /// A number that has to be a power of two, or 0.
    NoPowerOfTwo {
        /// Name of the number.
        what: &'static str,
        /// The number that was given.
        value: u64,
    },
    /// No such group, task, object or file.
    Unknown(String),
    /// Something that can't end yet, and why.
    InUse(String),
    /// A group of this path exists.
    Exists(String),
    /// A name that can't be one path component, or that looks like a file of a group.
    BadName(String),
    /// Free memory that no zone can have, or lists that no group can.
    NotAsFound(String),
    /// Intervals or limits that no kdamond can have, in words.
    BadKdamond(String),
    /// Memory that has no latency or no bandwidth.
    NoPerformance {
        /// The node whose memory it is.
        node: usize,
    },
    /// Tables that the system grants no address space for.
    NoRoom {
        /// The object whose tables do not fit.
        what: &'static str,
        /// The pages that the tables are for.
        pages: u64,
        /// Bytes that the tables take.
        bytes: u64,
    },
}

/// Refuses a number outside its range by its name.
pub fn check_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(ConfigError::OutOfRange { what, value, min, max }) }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { what, value, min, max } => {
                write!(f, "{what}: {value} is not in the range {min} to {max}")
            }
            Self::Below { what, value, of, least } => {
                write!(f, "{what}: found {value}, expected at least {least}, which is {of}")
            }
            Self::NoRoom { what, pages, bytes } => write!(
                f,
                "{what} of {pages} pages takes {} MiB of address space for its tables, and the system grants no more; help: raise `ulimit -v`",
                bytes >> 20
            ),
            Self::NoPerformance { node } => {
                write!(f, "node {node}: latency and bandwidth must be above 0 to determine its memory tier")
            }
            Self::NoPowerOfTwo { what, value } => write!(f, "{what}: found {value}, expected a power of two"),
            Self::Unknown(what) => write!(f, "there is no {what}"),
            Self::InUse(what) => write!(f, "{what}"),
            Self::Exists(what) => write!(f, "{what} exists already"),
            Self::BadKdamond(what) => write!(f, "{what}"),
            Self::NotAsFound(what) => write!(f, "this state is impossible on a machine: {what}"),
            Self::BadName(name) => write!(
                f,
                "`{name}` is not a valid name: it is empty, one or two dots, contains a slash, or begins like the files of a group (memory., cgroup., cpuset.)"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}
