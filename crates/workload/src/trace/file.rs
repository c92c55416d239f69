//! Files of traces, opened. The one place of the crate that touches the file system.

use std::fs::File;
use std::io;
use std::path::Path;

use super::error::{Place, TraceError};

/// Any other kind can be read once, from its start to its end: the next reader would find nothing, or wait forever.
pub(super) fn require_regular(path: &Path) -> Result<(), TraceError> {
    let name = path.to_string_lossy();
    let metadata = path.metadata().map_err(|error| cannot_open(path, error))?;
    if metadata.is_file() || metadata.is_dir() {
        // Opening a directory has an error of its own.
        return Ok(());
    }
    let reason = "it is not a regular file, and must be read more than once\nhelp: write it to a file first, or convert it with `pageout trace convert`";
    Err(TraceError::new(&name, None, Place::default(), reason))
}

fn cannot_open(path: &Path, error: io::Error) -> TraceError {
    let name = path.to_string_lossy();
    if path == Path::new("-") && error.kind() == io::ErrorKind::NotFound {
        let reason = "no such file\nhelp: standard input is /dev/stdin; `trace convert` makes a file of it, with --trace-format because it has no file name";
        return TraceError::new(&name, None, Place::default(), reason);
    }
    TraceError::io(&name, None, Place::default(), error)
}

#[allow(clippy::disallowed_methods)] // Reading traces from files is what this module is for; the rest of the crate gets bytes.
pub(super) fn open_file(path: &Path) -> Result<File, TraceError> {
    File::open(path).map_err(|error| cannot_open(path, error))
}
