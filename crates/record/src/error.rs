//! How recording can fail.

use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// The reason why there is no recording, or none to read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the kernel's, or of the recording, can't be read or written.
    #[error("{what} {path}: {source}{help}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: String,
        /// Why it failed.
        source: io::Error,
        /// What may help, as the rest of the sentence.
        help: &'static str,
    },
    /// A text has not the form that it should have.
    #[error("{0}")]
    Form(String),
    /// What was asked for makes no sense here.
    #[error("{0}")]
    Asked(String),
    /// The result could not be written.
    #[error(
        "cannot write {path}: {source}; there is no recording in {dir}\nhelp: name another folder by --into, new or empty"
    )]
    Write {
        /// The file.
        path: String,
        /// The folder of the recording.
        dir: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// Reading `path` failed.
    pub(crate) fn reading(path: &Path, source: io::Error) -> Error {
        Error::File { what: "cannot read", path: path.display().to_string(), help: help(&source), source }
    }

    /// Writing a file of the kernel's failed.
    #[cfg(target_os = "linux")]
    pub(crate) fn setting(path: &Path, source: io::Error) -> Error {
        Error::File { what: "cannot write", path: path.display().to_string(), help: help(&source), source }
    }
}

/// What helps against an error of tracefs.
fn help(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "\nhelp: events need root and the host's tracefs; `pageout record --check` lists the ways that are open, \
             such as `--events none`"
        }
        io::ErrorKind::NotFound => "\nhelp: `pageout record --check` lists the ways that are open",
        _ => "",
    }
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::reading(path, source))
}

/// The text of a file of tracefs that gives all of it at the first read and nothing afterwards, however little was asked for.
#[cfg(target_os = "linux")]
pub(crate) fn read_at_once(path: &Path) -> Result<String, Error> {
    use std::io::Read;
    let read = || {
        let mut bytes = vec![0; 1 << 16];
        let length = std::fs::File::open(path)?.read(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    };
    read().map_err(|source| Error::reading(path, source))
}

/// The text of a file without blanks around it, if it can be read.
#[cfg(target_os = "linux")]
pub(crate) fn read_if_there(path: impl Into<PathBuf>) -> Option<String> {
    std::fs::read_to_string(path.into()).ok().map(|text| text.trim().to_string())
}
