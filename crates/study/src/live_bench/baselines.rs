//! Third-party caches that are measured next to the live page cache. The program that asks brings them, so that no normal build compiles
//! them.

use std::io;
use std::path::Path;

/// A cache over one file, whose pages are 4 KiB.
pub trait Baseline: Sync {
    /// Copies a page.
    ///
    /// # Errors
    /// What reading the file says.
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()>;

    /// The first byte of a page, without a copy of it.
    ///
    /// # Errors
    /// As [`Baseline::copy`].
    fn byte(&self, page: u64) -> io::Result<u8>;
}

/// Makes a cache over a file that uses at most N bytes of memory.
pub type Open = fn(file: &Path, budget: u64) -> io::Result<Box<dyn Baseline>>;
