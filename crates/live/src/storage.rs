//! [`Storage`]: what the machine asks of a file on its device.
//!
//! ```text
//!   machine ─▶ Storage ─┬─ real      a file of the system                           the product
//!                       ├─ emulated  the same, but requests take a disk's times      experiments
//!                       └─ failing   the same, but requests fail, are short or late  tests, feature `failing`
//! ```
//! No method has a default, and the failing device matches on every kind of request. So a new kind of request does not compile before the failing device
//! answers for it. A request costs one virtual call, and takes 20 us or more.

mod emulated; // a disk with a head
#[cfg(any(test, feature = "failing"))]
pub(crate) mod failing; // a device on which requests fail
mod real; // a file of the system

use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;

use pageout_engine::Pfn;

use crate::arena::Arena;
use crate::error::Error;
pub use emulated::EmulatedDisk;
pub(crate) use real::Real;

/// A file that pages are read from and written to.
pub(crate) trait Storage: Send + Sync {
    /// Bytes of the file as other processes see it.
    fn len(&self) -> io::Result<u64>;

    /// Sets the length of the file.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Reads into frames, which are closed: into those from byte `skip` of all of them on, which begins a frame, from this offset of the file. Returns how many bytes
    /// were read.
    fn read(&self, arena: &Arena, frames: &[Pfn], skip: usize, offset: u64) -> io::Result<usize>;

    /// Writes frames from this offset of the file on. Returns how many bytes were written.
    fn write(&self, arena: &Arena, frames: &[Pfn], offset: u64) -> io::Result<usize>;

    /// A write up to this byte begins next. A swap file asks its device for space here. It has no answer: a write that finds no space fails itself.
    fn expect_write(&self, end: u64);

    /// Makes everything written so far, and the length, survive a loss of power; the file's times too, if `is_all`.
    fn flush(&self, is_all: bool) -> io::Result<()>;

    /// How a ring begins a read or a write.
    fn by_ring(&self) -> ByRing;
}

/// How a ring begins a read or a write of a [`Storage`].
pub(crate) enum ByRing {
    /// The kernel reads and writes this descriptor.
    Descriptor(RawFd),
    /// A thread calls [`Storage::read`] or [`Storage::write`], and the ring is notified when it returns.
    Call,
}

/// The storage of a file that was just opened. `is_swap`: it is the swap file, which grows by its writes.
///
/// # Errors
/// With the feature `failing`: [`Error::Io`] if `PAGEOUT_FAILING` is malformed.
pub(crate) fn of(file: Arc<File>, path: &Path, is_swap: bool) -> Result<Arc<dyn Storage>, Error> {
    let real = if is_swap { Real::of_swap(file) } else { Real::new(file) };
    #[cfg(any(test, feature = "failing"))]
    if let Some(plan) = failing::plan_from_environment(path)? {
        return Ok(Arc::new(failing::Failing::new(real, Arc::new(plan))));
    }
    #[cfg(not(any(test, feature = "failing")))]
    let _ = path;
    Ok(Arc::new(real))
}
