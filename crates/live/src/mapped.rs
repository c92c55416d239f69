//! A file as the system maps it, for comparison with this cache: feature `rivals`, not used here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

use crate::copy::copy_out;

/// A file that is mapped, with `mmap`. If another process shortens it, an access to a missing page ends the process (SIGBUS): that is inherent to
/// mapping a file.
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
    /// Maps a file; `is_random`: advises the system against readahead.
    ///
    /// # Errors
    /// The system's error; an empty file can't be mapped.
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
    /// If the file has fewer bytes.
    #[inline]
    pub fn copy(&self, offset: usize, to: &mut [u8]) {
        assert!(offset.saturating_add(to.len()) <= self.bytes, "a copy ends within the file");
        // SAFETY: by the line above, the bytes lie in the mapping, which lives as long as `self`. The mapping is writable, and is disjoint from `to`,
        // as no reference leads there. Others may write the file meanwhile, and the copy allows for that.
        unsafe { copy_out(self.at.as_ptr().add(offset), to) };
    }

    /// The byte at an offset.
    ///
    /// # Panics
    /// If the file has no byte there.
    #[inline]
    pub fn byte(&self, offset: usize) -> u8 {
        assert!(offset < self.bytes, "a byte within the file");
        // SAFETY: it lies in the mapping, by the line above, which lives as long as `self`. A writer of the file does not race with this: the load is
        // volatile, so that the compiler treats the value as external.
        unsafe { self.at.as_ptr().add(offset).read_volatile() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and a task that copies from it borrows it.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
