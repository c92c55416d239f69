//! A read of a file into frames.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use pageout_engine::{FileId, IoId, PAGE_SIZE, Pfn};

use crate::arena::Arena;

/// A read of a file that is in flight, or will be.
pub(super) struct Transfer {
    pub(super) io: IoId,
    pub(super) file: FileId,
    pub(super) from: Arc<std::fs::File>,
    pub(super) page: u64,
    pub(super) frames: Vec<Pfn>,
    /// Bytes that the file has there.
    pub(super) bytes: u64,
}

/// Why a page could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    Shortened,
    Errno(i32),
}

impl Transfer {
    /// Reads what it is of. The last page is filled up with zeroes.
    pub(super) fn perform(&self, arena: &Arena) -> Result<(), Failed> {
        let (offset, mut done) = (self.page * PAGE_SIZE, 0_u64);
        while done < self.bytes {
            // A read that ends within a page begins at that page again: direct I/O is by whole blocks.
            let skip = done / PAGE_SIZE * PAGE_SIZE;
            match arena.read_into(&self.frames, skip as usize, self.from.as_raw_fd(), offset + skip) {
                Ok(read) if skip + read as u64 > done => done = skip + read as u64,
                Ok(_) => return Err(Failed::Shortened),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failed::Errno(error.raw_os_error().unwrap_or(libc::EIO))),
            }
        }
        let last = self.bytes % PAGE_SIZE;
        if last > 0 {
            arena.zero(self.frames[(self.bytes / PAGE_SIZE) as usize], last as usize);
        }
        Ok(())
    }
}
