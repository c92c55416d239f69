//! A file as the system maps it, to measure this cache beside: feature `rivals`, nothing here uses it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

use crate::copy::copy_out;

/// A file that is mapped, with `mmap`. Where somebody shortens it, a look at what is not there any more ends the process (SIGBUS): that is what
/// mapping a file means.
#[derive(Debug)]
pub struct Mapped {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is the only owner of what it has mapped, which any thread may read or unmap.
unsafe impl Send for Mapped {}
// SAFETY: by a shared reference bytes are only copied out, by a copy that races with nothing.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps a file; `is_random`: the system is told that nothing should be read ahead.
    ///
    /// # Errors
    /// What the system says; a file without a byte can't be mapped.
    pub fn open(path: &Path, is_random: bool) -> io::Result<Mapped> {
        let file = File::open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // Private: nothing that is written here would reach the file. Nothing is written.
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_NORESERVE);
        // SAFETY: a new mapping at an address that the system chooses: nothing that was there before changes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped = Mapped { at: NonNull::new(at.cast()).expect("the system maps nothing at zero"), bytes };
        if is_random {
            // SAFETY: the range is this mapping, and the advice changes only what is read ahead.
            unsafe { libc::madvise(at, bytes, libc::MADV_RANDOM) };
        }
        Ok(mapped)
    }

    /// Copies bytes from an offset on.
    ///
    /// # Panics
    /// When the file had not so many.
    #[inline]
    pub fn copy(&self, offset: usize, to: &mut [u8]) {
        assert!(offset.saturating_add(to.len()) <= self.bytes, "a copy ends within the file");
        // SAFETY: the bytes lie in the mapping, by the line above, which lives as long as `self`, may be written, and is no part of `to`, as no
        // reference leads there. Others may write the file meanwhile, and the copy allows for that.
        unsafe { copy_out(self.at.as_ptr().add(offset), to) };
    }

    /// The byte at an offset.
    ///
    /// # Panics
    /// When the file had none there.
    #[inline]
    pub fn byte(&self, offset: usize) -> u8 {
        assert!(offset < self.bytes, "a byte within the file");
        // SAFETY: it lies in the mapping, by the line above, which lives as long as `self`. Whoever writes the file races with nothing: the load
        // is volatile, so that the compiler takes it for what comes from outside.
        unsafe { self.at.as_ptr().add(offset).read_volatile() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever copies from it borrows it.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
