//! A file that gets its name when it is complete, and is removed otherwise.
//!
//! It grows next to its final place under a temporary name. It is removed by an error, and by a signal that ends the program ([`crate::signals`]).

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use tempfile::TempPath;

use crate::signals;

/// The file, open for writing.
pub(crate) struct Unfinished {
    file: File,
    name: Name,
}

/// What it is called meanwhile, and what removes it: nothing once it has its own name.
#[derive(Clone, Default)]
struct Name(Arc<Mutex<Option<TempPath>>>);

impl Name {
    fn lock(&self) -> MutexGuard<'_, Option<TempPath>> {
        self.0.lock().expect("who holds the lock renames or removes a file and does not panic")
    }
}

impl Unfinished {
    /// Creates it in `directory`. Others may read it once it has its name, as far as the umask lets them.
    pub(crate) fn new_in(directory: &Path) -> io::Result<Unfinished> {
        if !directory.is_dir() {
            let reason = format!("no such directory: `{}`", directory.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let name = Name::default();
        // Held meanwhile, so that a signal either comes before there is a file or finds it.
        let mut none_yet = name.lock();
        signals::remove_if_one_comes(Arc::clone(&name.0))?;
        // The system's error names the temporary file, which the user does not know.
        let cannot = |error: io::Error| {
            let why = format!("no file can be made in {}: {}", directory.display(), error.kind());
            io::Error::new(error.kind(), why)
        };
        let (file, path) = builder.tempfile_in(directory).map_err(cannot)?.into_parts();
        *none_yet = Some(path);
        drop(none_yet);
        Ok(Unfinished { file, name })
    }

    /// Writes over what it has at `at`; what is written next comes at its end, as before.
    pub(crate) fn write_over(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.file.seek(SeekFrom::End(0)).map(|_| ())
    }

    /// Makes sure that it is on the disk, and gives it its name; a file that had that name is gone.
    pub(crate) fn finish(self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let mut name = self.name.lock();
        let path = name.take().expect("only a signal takes it before, which ends the program");
        path.persist(to).map_err(|error| error.error)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The waiting thread has the name as well, so that it would outlive the file.
        self.name.lock().take();
    }
}

impl Write for Unfinished {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
