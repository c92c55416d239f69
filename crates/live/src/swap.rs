//! The swap file, which holds evicted pages of regions. [live-3 3]
//!
//! It has no name, so no other process can open it, and nothing of it is left when the process ends. It is made with O_TMPFILE. If the file system does not
//! support O_TMPFILE, the file is unlinked before anything is written to it. Its length is that of all slots, and it uses space as slots are written (`storage/real.rs`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Only its owner may read or write it while it has a name.
const MODE: u32 = 0o600;
/// Names that are tried: other threads may use some, and killed processes may have left files.
const TRIES: u32 = 100;

/// Place and size of a cache's swap file.
#[derive(Clone, Debug)]
pub(crate) struct SwapFile {
    pub(crate) folder: PathBuf,
    pub(crate) bytes: u64,
    /// True if it is read and written through the system's page cache.
    pub(crate) is_buffered: bool,
}

impl SwapFile {
    /// Creates the file.
    pub(crate) fn open(&self) -> Result<File, Error> {
        let io =
            |source| Error::Io { op: "making a swap file", path: self.folder.clone(), page: None, source };
        let flags = if self.is_buffered { 0 } else { libc::O_DIRECT };
        let opened = match open_unnamed(&self.folder, flags) {
            // The kernel or the file system does not support O_TMPFILE.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT)) =>
            {
                open_unlinked(&self.folder, flags)
            }
            opened => opened,
        };
        let file = match opened {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && !self.is_buffered => {
                return Err(Error::DirectRefused { path: self.folder.clone() });
            }
            opened => opened.map_err(io)?,
        };
        file.set_len(self.bytes).map_err(io)?;
        Ok(file)
    }
}

fn options(flags: libc::c_int) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(MODE).custom_flags(flags);
    options
}

fn open_unnamed(folder: &Path, flags: libc::c_int) -> io::Result<File> {
    // O_EXCL: the file can't get a name later.
    options(flags | libc::O_TMPFILE | libc::O_EXCL).open(folder)
}

fn open_unlinked(folder: &Path, flags: libc::c_int) -> io::Result<File> {
    for number in 0..TRIES {
        let path = folder.join(format!(".pageout-swap-{}-{number}", std::process::id()));
        match options(flags).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                // A file system that refuses O_DIRECT may still have created the file.
                let _ = std::fs::remove_file(&path);
                return Err(error);
            }
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn swap_file_has_no_name_and_its_length() {
        let folder = std::env::temp_dir().join(format!("pageout-swap-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        for open in [open_unnamed, open_unlinked] {
            let file = open(&folder, 0).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (0, MODE));
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        }
        let swap = SwapFile { folder: folder.clone(), bytes: 1 << 20, is_buffered: true };
        assert_eq!(swap.open().unwrap().metadata().unwrap().len(), 1 << 20);
        std::fs::remove_dir(&folder).unwrap();
        let error = swap.open().unwrap_err();
        assert!(error.to_string().starts_with("making a swap file of /"), "{error}");
    }
}
