//! A file of the system, read and written by its descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageout_engine::{PAGE_SIZE, Pfn};

use super::{ByRing, Storage};
use crate::arena::Arena;

/// Bytes of a swap file that get space on the device together. If each write allocates its own blocks, writers and readers of the file wait for each other:
/// swapping took a third longer on ext4.
const ALLOCATED_TOGETHER: u64 = 16 << 20;

/// A file of the system.
pub(crate) struct Real {
    file: Arc<File>,
    /// The byte up to which space was requested, if it is a swap file. `u64::MAX` if the file system refused.
    allocated: Option<AtomicU64>,
}

impl Real {
    pub(crate) fn new(file: impl Into<Arc<File>>) -> Real {
        Real { file: file.into(), allocated: None }
    }

    /// The swap file, which is empty and has its final length.
    pub(crate) fn of_swap(file: Arc<File>) -> Real {
        Real { file, allocated: Some(AtomicU64::new(0)) }
    }

    /// Allocates the space of a write up to this byte, and of writes behind it.
    #[cold]
    fn allocate(&self, allocated: &AtomicU64, end: u64) {
        let Ok(bytes) = self.len() else { return };
        let behind = end.next_multiple_of(ALLOCATED_TOGETHER).min(bytes);
        // Another thread may have asked meanwhile. A gap stays if slots are skipped: a write there allocates its own blocks.
        let first = allocated.fetch_max(behind, Relaxed).max(end.saturating_sub(ALLOCATED_TOGETHER));
        if first >= behind {
            return;
        }
        let (file, first, bytes) =
            (self.file.as_raw_fd(), first as libc::off_t, (behind - first) as libc::off_t);
        // SAFETY: the call has no pointers, and the descriptor is open.
        let result = unsafe { libc::fallocate(file, libc::FALLOC_FL_KEEP_SIZE, first, bytes) };
        if result != 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // The disk is full, or the file system can't allocate. Writes still allocate their own blocks, or fail.
            allocated.store(u64::MAX, Relaxed);
        }
    }

    /// Writes the first `most` bytes of frames.
    pub(super) fn write_most(
        &self,
        arena: &Arena,
        frames: &[Pfn],
        most: usize,
        offset: u64,
    ) -> io::Result<usize> {
        arena.write_from(frames, most, self.file.as_raw_fd(), offset)
    }

    #[cfg(any(test, feature = "failing"))]
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Storage for Real {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn read(&self, arena: &Arena, frames: &[Pfn], skip: usize, offset: u64) -> io::Result<usize> {
        arena.read_into(frames, skip, self.file.as_raw_fd(), offset)
    }

    fn write(&self, arena: &Arena, frames: &[Pfn], offset: u64) -> io::Result<usize> {
        self.write_most(arena, frames, frames.len() * PAGE_SIZE as usize, offset)
    }

    fn expect_write(&self, end: u64) {
        if let Some(allocated) = &self.allocated
            && end > allocated.load(Relaxed)
        {
            self.allocate(allocated, end);
        }
    }

    fn flush(&self, is_all: bool) -> io::Result<()> {
        if is_all { self.file.sync_all() } else { self.file.sync_data() }
    }

    fn by_ring(&self) -> ByRing {
        ByRing::Descriptor(self.file.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use std::os::unix::fs::MetadataExt;

    use super::*;

    const PAGE: u64 = PAGE_SIZE;
    const BYTES: u64 = 3 * ALLOCATED_TOGETHER + PAGE;

    /// A storage over a file of `BYTES`, and the bytes of the device that it uses.
    fn made(real: impl Fn(Arc<File>) -> Real) -> (Real, impl Fn() -> u64) {
        let path = std::env::temp_dir().join(format!("pageout-real-{}-{:p}", std::process::id(), &real));
        let file = Arc::new(File::create_new(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        file.set_len(BYTES).unwrap();
        let used = Arc::clone(&file);
        (real(file), move || used.metadata().unwrap().blocks() * 512)
    }

    #[test]
    fn swap_file_gets_space_before_its_writes_begin() {
        let (real, used) = made(Real::of_swap);
        real.expect_write(PAGE);
        if used() == 0 {
            println!("LEFT OUT: {} can't allocate", std::env::temp_dir().display());
            return;
        }
        assert!((ALLOCATED_TOGETHER..2 * ALLOCATED_TOGETHER).contains(&used()), "{}", used());
        real.expect_write(ALLOCATED_TOGETHER);
        assert!(used() < 2 * ALLOCATED_TOGETHER, "there is space: {}", used());
        real.expect_write(BYTES);
        // The third part, and the page behind it. Slots between them were skipped.
        assert!((2 * ALLOCATED_TOGETHER..3 * ALLOCATED_TOGETHER).contains(&used()), "{}", used());
        assert_eq!(real.len().unwrap(), BYTES);
    }

    #[test]
    fn other_files_get_no_space_before_they_are_written() {
        let (real, used) = made(Real::new);
        real.expect_write(BYTES);
        assert_eq!(used(), 0);
    }

    #[test]
    fn refused_space_is_not_requested_again() {
        let real = Real::of_swap(Arc::new(File::open("/proc/self/status").unwrap()));
        let allocated = real.allocated.as_ref().unwrap();
        real.allocate(allocated, PAGE);
        assert_eq!(allocated.load(Relaxed), 0, "it has no bytes");
        let real = Real::of_swap(Arc::new(File::open(std::env::current_exe().unwrap()).unwrap()));
        real.expect_write(PAGE);
        assert_eq!(real.allocated.unwrap().load(Relaxed), u64::MAX, "it is open for reads only");
    }
}
