//! Errors of reading and writing kernel files, each with its errno.

use std::fmt;

/// The kernel's name of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errno {
    /// Malformed, or out of what it may be.
    Einval,
    /// A number that doesn't fit; a window that is full.
    Erange,
    /// Someone else has done it.
    Eexist,
    /// EBUSY: someone holds what the write is about.
    Ebusy,
    /// The process has ended.
    Esrch,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Einval => "EINVAL",
            Errno::Erange => "ERANGE",
            Errno::Eexist => "EEXIST",
            Errno::Ebusy => "EBUSY",
            Errno::Esrch => "ESRCH",
        })
    }
}

/// The reason why a file could not be read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileError {
    /// There is no such file (ENOENT).
    NoSuchFile(String),
    /// There is no cgroup of this path, or not any more, and so no file of it (ENOENT).
    NoSuchGroup {
        /// The path of the file.
        path: String,
        /// The cgroup.
        group: String,
    },
    /// The file exists but not for reading or not for writing (EACCES).
    NotPermitted(String),
    /// The value is malformed or out of range (EINVAL).
    Invalid {
        /// The path of the file.
        path: String,
        /// The value written.
        value: String,
        /// What the file takes.
        expected: String,
    },
    /// The directory can't be removed now (EBUSY).
    Busy {
        /// The path of the directory.
        path: String,
        /// The obstacle that has to be removed first.
        why: String,
    },
    /// A write of the file system has failed since this was last asked (EIO).
    Io(String),
    /// A command written to the file was refused; those before it are done.
    Refused {
        /// The path of the file.
        path: String,
        /// Number of the command among those written, from 1.
        number: usize,
        /// The command.
        command: String,
        /// The kernel's name of it.
        errno: Errno,
        /// What the file takes.
        expected: String,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchFile(path) => write!(f, "{path}: no such file (ENOENT)"),
            Self::NoSuchGroup { path, group } => {
                write!(
                    f,
                    "{path}: no such file (ENOENT): there is no cgroup `{group}`, or it has been removed"
                )
            }
            Self::NotPermitted(path) => write!(f, "{path}: does not permit this access (EACCES)"),
            Self::Invalid { path, value, expected } => {
                write!(f, "{path}: invalid value `{value}` (EINVAL): expected {expected}")
            }
            Self::Busy { path, why } => write!(f, "{path}: can't be removed (EBUSY): {why}"),
            Self::Io(call) => write!(f, "{call}: a write has failed (EIO)"),
            Self::Refused { path, number, command, errno, expected } => {
                write!(f, "{path}: command {number}, `{command}`, is rejected ({errno}): expected {expected}")
            }
        }
    }
}

impl std::error::Error for FileError {}
