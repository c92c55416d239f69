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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use super::*;

    const PAGE: usize = PAGE_SIZE as usize;
    const BYTES: usize = 3 * PAGE - 77;

    fn byte(at: usize) -> u8 {
        (at / PAGE * 100 + at % 97) as u8
    }

    /// A read of a file of nearly three pages into frames that don't follow each other.
    fn transfer(name: &str) -> (Arena, Transfer) {
        let path = std::env::temp_dir().join(format!("pageout-transfer-{name}-{}", std::process::id()));
        std::fs::write(&path, (0..BYTES).map(byte).collect::<Vec<u8>>()).unwrap();
        let from = Arc::new(std::fs::File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let frames = [7, 2, 5].map(Pfn).to_vec();
        let transfer = Transfer { io: IoId(0), file: FileId(0), from, page: 0, frames, bytes: BYTES as u64 };
        (Arena::new(std::slice::from_ref(&(0..8)), None).unwrap(), transfer)
    }

    fn check(arena: &Arena, transfer: &Transfer) {
        for (page, &pfn) in transfer.frames.iter().enumerate() {
            arena.gate(pfn).open();
            let pin = arena.pin(pfn).ok().unwrap();
            let wanted = (page * PAGE..(page + 1) * PAGE).map(|at| if at < BYTES { byte(at) } else { 0 });
            assert!(pin.bytes().iter().copied().eq(wanted), "page {page}");
        }
    }

    #[test]
    fn a_read_that_ends_short_goes_on_where_it_ended() {
        for got in [1, PAGE - 1, PAGE, PAGE + 100, 2 * PAGE, BYTES - 1, BYTES] {
            let (arena, transfer) = transfer("short");
            // So much is there, and nothing behind it.
            let there = arena.read_into(&transfer.frames, 0, transfer.from.as_raw_fd(), 0).unwrap();
            assert_eq!(there, BYTES);
            for (page, &pfn) in transfer.frames.iter().enumerate() {
                arena.zero(pfn, got.saturating_sub(page * PAGE).min(PAGE));
            }
            assert_eq!(transfer.answered(&arena, got as i32), Ok(()));
            check(&arena, &transfer);
        }
    }

    #[test]
    fn behind_the_end_of_a_file_its_last_page_is_zeroes_whatever_the_frame_had() {
        let (arena, transfer) = transfer("behind");
        for (page, &pfn) in transfer.frames.iter().enumerate() {
            // What another page has left there: the file itself, from another place on.
            arena.read_into(&[pfn], 0, transfer.from.as_raw_fd(), page as u64 + 1).unwrap();
        }
        assert_eq!(transfer.perform(&arena), Ok(()));
        check(&arena, &transfer);
    }

    #[test]
    fn a_read_that_was_broken_off_is_made_again() {
        for errno in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
            let (arena, transfer) = transfer("broken-off");
            assert_eq!(transfer.answered(&arena, -errno), Ok(()));
            check(&arena, &transfer);
        }
    }

    #[test]
    fn a_read_that_fails_says_why() {
        let (arena, mut transfer) = transfer("fails");
        assert_eq!(transfer.answered(&arena, -libc::EIO), Err(Failed::Errno(libc::EIO)));
        assert_eq!(transfer.answered(&arena, 0), Err(Failed::Shortened));
        // A file that ends before it did.
        transfer.bytes += 100;
        assert_eq!(transfer.answered(&arena, BYTES as i32), Err(Failed::Shortened));
        assert_eq!(transfer.perform(&arena), Err(Failed::Shortened));
    }
}
