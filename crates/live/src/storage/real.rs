//! A file of the system, read and written by its descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use pageout_engine::{PAGE_SIZE, Pfn};

use super::{ByRing, Storage};
use crate::arena::Arena;

/// A file of the system.
pub(crate) struct Real {
    file: Arc<File>,
}

impl Real {
    pub(crate) fn new(file: impl Into<Arc<File>>) -> Real {
        Real { file: file.into() }
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

    fn flush(&self, is_all: bool) -> io::Result<()> {
        if is_all { self.file.sync_all() } else { self.file.sync_data() }
    }

    fn by_ring(&self) -> ByRing {
        ByRing::Descriptor(self.file.as_raw_fd())
    }
}
