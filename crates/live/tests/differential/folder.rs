//! The files of a run, and the one place where the tester opens files through the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageout::{Error, File, Memory, Open};

use crate::settings;

/// A folder that goes with its files.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let name = format!("pageout-differential-{}-{}", std::process::id(), NUMBERS.fetch_add(1, Relaxed));
        let path = settings::folder().unwrap_or_else(std::env::temp_dir).join(name);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns true if the folder's file system has direct I/O.
pub(crate) fn has_direct() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let folder = Folder::new();
        let path = folder.path("probe");
        fs::write(&path, [7; 4096]).unwrap();
        let memory = Memory::builder().budget(8 << 20).io_threads(0).build().unwrap();
        !matches!(memory.open(&path, Open::read()), Err(Error::DirectRefused { .. }))
    })
}

/// Opens a file through the cache.
pub(crate) fn open(memory: &Memory, path: &Path, how: Open) -> Result<File, Error> {
    memory.open(path, how)
}
