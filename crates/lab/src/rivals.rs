//! Caches of others that `pageout bench` measures beside this one: a program of its own brings them along ([`crate::bench_with`]), so that no normal
//! build compiles them.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// A cache over one file, whose pages are 4 KiB.
pub trait Rival: Sync {
    /// Copies a page.
    ///
    /// # Errors
    /// What reading the file says.
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()>;

    /// The first byte of a page, without a copy of it.
    ///
    /// # Errors
    /// As [`Rival::copy`].
    fn byte(&self, page: u64) -> io::Result<u8>;
}

/// Makes a cache over a file that takes so many bytes of memory at most.
pub type Open = fn(file: &Path, budget: u64) -> io::Result<Box<dyn Rival>>;

static BROUGHT: OnceLock<Vec<(&'static str, Open)>> = OnceLock::new();

/// Makes caches known by their names.
pub(crate) fn bring(rivals: &[(&'static str, Open)]) {
    let _ = BROUGHT.set(rivals.to_vec());
}

/// Their names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BROUGHT.get().into_iter().flatten().map(|(name, _)| *name)
}

/// How one of them is made.
pub(crate) fn by_name(wanted: &str) -> Option<Open> {
    BROUGHT.get()?.iter().find(|(name, _)| *name == wanted).map(|(_, open)| *open)
}
