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
    /// From which byte of its file on it reads.
    pub(super) fn offset(&self) -> u64 {
        self.page * PAGE_SIZE
    }

    /// Reads what it is of.
    pub(super) fn perform(&self, arena: &Arena) -> Result<(), Failed> {
        self.read_on(arena, 0)
    }

    /// The kernel has answered a request for all of it: with so many bytes, or the number of an error below zero.
    pub(super) fn answered(&self, arena: &Arena, answer: i32) -> Result<(), Failed> {
        match answer {
            0 => Err(Failed::Shortened),
            1.. => self.read_on(arena, answer as u64),
            // The thread that had begun it has ended, or got a signal: another one reads.
            _ if [libc::ECANCELED, libc::EINTR, libc::EAGAIN].contains(&-answer) => self.perform(arena),
            _ => Err(Failed::Errno(-answer)),
        }
    }

    /// Reads what is left where so many bytes are there. The last page is filled up with zeroes.
    fn read_on(&self, arena: &Arena, mut done: u64) -> Result<(), Failed> {
        while done < self.bytes {
            // A read that ends within a page begins at that page again: direct I/O is by whole blocks.
            let skip = done / PAGE_SIZE * PAGE_SIZE;
            match arena.read_into(&self.frames, skip as usize, self.from.as_raw_fd(), self.offset() + skip) {
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
