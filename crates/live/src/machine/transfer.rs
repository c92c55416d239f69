//! A read of a file into frames, or a write of frames to a file.

use std::sync::Arc;

use pageout_engine::{FileId, IoId, PAGE_SIZE, Pfn};

use crate::arena::Arena;
use crate::storage::Storage;

/// Pages that are written by one request at most: long enough for a device, and short enough for who reads beside it.
pub(super) const WRITTEN_TOGETHER: usize = 64;

/// A device that answers so often without a whole page more will not give or take it.
const PARTS_MAX: u32 = 8;

/// A read or a write of a file that is in flight, or will be.
pub(super) struct Transfer {
    pub(super) io: IoId,
    pub(super) file: FileId,
    pub(super) device: usize,
    pub(super) disk: Arc<dyn Storage>,
    pub(super) page: u64,
    pub(super) frames: Vec<Pfn>,
    /// Bytes that are to be read, zeroes behind them; of a write all.
    pub(super) bytes: u64,
    /// It is a write. To the engine each page is one of its own.
    pub(super) writes: Option<Written>,
}

/// What a write has beside.
pub(super) struct Written {
    /// One a page.
    pub(super) ios: Vec<IoId>,
    /// Pages that could not be written, from the first of the transfer on, and why.
    pub(super) failed: Vec<(usize, i32)>,
    /// Nobody may write to its frames until it has ended, and each has a pin that says so.
    pub(super) is_stable: bool,
}

/// Why a page could not be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    Shortened,
    Errno(i32),
}

/// The request is made again: a thread that had begun it has ended, or got a signal, or the kernel was short of something.
fn is_passing(errno: i32) -> bool {
    [libc::ECANCELED, libc::EINTR, libc::EAGAIN].contains(&errno)
}

impl Transfer {
    /// From which byte of its file on it reads or writes.
    pub(super) fn offset(&self) -> u64 {
        self.page * PAGE_SIZE
    }

    pub(super) fn is_write(&self) -> bool {
        self.writes.is_some()
    }

    /// Whether a device has a part in it. It has none in a read of pages behind the end of the file there: they are zeroes, and [`Transfer::perform`] fills them in.
    pub(super) fn needs_device(&self) -> bool {
        self.is_write() || self.bytes > 0
    }

    /// Splits off what a write that nobody has begun has behind so many pages, if it has.
    pub(super) fn split_off(&mut self, pages: usize) -> Option<Transfer> {
        if self.frames.len() <= pages {
            return None;
        }
        let written = self.writes.as_mut().expect("it is a write");
        let (frames, ios) = (self.frames.split_off(pages), written.ios.split_off(pages));
        self.bytes = self.frames.len() as u64 * PAGE_SIZE;
        Some(Transfer {
            io: ios[0],
            file: self.file,
            device: self.device,
            disk: Arc::clone(&self.disk),
            page: self.page + pages as u64,
            bytes: frames.len() as u64 * PAGE_SIZE,
            frames,
            writes: Some(Written { ios, failed: Vec::new(), is_stable: written.is_stable }),
        })
    }

    /// Makes it.
    pub(super) fn perform(&mut self, arena: &Arena) -> Result<(), Failed> {
        if self.is_write() { self.write_on(arena, 0) } else { self.read_on(arena, 0) }
    }

    /// The kernel has answered a request for all of it: with so many bytes, or the number of an error below zero.
    pub(super) fn answered(&mut self, arena: &Arena, answer: i32) -> Result<(), Failed> {
        match (answer, self.is_write()) {
            (done @ 0.., true) => self.write_on(arena, done as u64),
            (done @ 0.., false) => self.read_on(arena, done as u64),
            _ if is_passing(-answer) => self.perform(arena),
            // Which of its pages can't be written, if not all?
            (_, true) => self.write_each(arena, 0),
            (_, false) => Err(Failed::Errno(-answer)),
        }
    }

    /// Reads what is left where so many bytes are there. The last page is filled up with zeroes, and all behind it.
    fn read_on(&self, arena: &Arena, mut done: u64) -> Result<(), Failed> {
        let mut parts = 0;
        while done < self.bytes {
            // A read that ends within a page begins at that page again: direct I/O is by whole blocks.
            let skip = done / PAGE_SIZE * PAGE_SIZE;
            match self.disk.read(arena, &self.frames, skip as usize, self.offset() + skip) {
                Ok(read) if skip + read as u64 > done => done = skip + read as u64,
                // A short answer may end where the one before it did. The end of a file always does.
                Ok(_) if parts < PARTS_MAX => parts += 1,
                Ok(_) => return Err(Failed::Shortened),
                Err(error) if error.raw_os_error().is_some_and(is_passing) => {}
                Err(error) => return Err(Failed::Errno(error.raw_os_error().unwrap_or(libc::EIO))),
            }
        }
        for (page, &pfn) in (0_u64..).zip(&self.frames).skip((self.bytes / PAGE_SIZE) as usize) {
            arena.zero(pfn, self.bytes.saturating_sub(page * PAGE_SIZE).min(PAGE_SIZE) as usize);
        }
        Ok(())
    }

    /// Writes what is left where so many bytes are there.
    fn write_on(&mut self, arena: &Arena, done: u64) -> Result<(), Failed> {
        // A write that ends within a page begins at that page again: direct I/O is by whole blocks.
        let mut first = (done / PAGE_SIZE) as usize;
        while first < self.frames.len() {
            match self.write_from(arena, first, self.frames.len()) {
                Ok(written) => first += written,
                Err(_) => return self.write_each(arena, first),
            }
        }
        Ok(())
    }

    /// Where a request has failed for several pages, some of them may be written yet: each by itself, from one on.
    fn write_each(&mut self, arena: &Arena, first: usize) -> Result<(), Failed> {
        let mut outcome = Ok(());
        for page in first..self.frames.len() {
            if let Err(errno) = self.write_from(arena, page, page + 1) {
                outcome = Err(Failed::Errno(errno));
                self.writes.as_mut().expect("it is a write").failed.push((page, errno));
            }
        }
        outcome
    }

    /// Writes some of its pages; returns how many are written, which is one at least.
    fn write_from(&self, arena: &Arena, first: usize, end: usize) -> Result<usize, i32> {
        let mut parts = 0;
        loop {
            let offset = self.offset() + first as u64 * PAGE_SIZE;
            match self.disk.write(arena, &self.frames[first..end], offset) {
                Ok(written) if written as u64 >= PAGE_SIZE => return Ok(written / PAGE_SIZE as usize),
                Ok(_) if parts < PARTS_MAX => parts += 1,
                Ok(_) => return Err(libc::EIO),
                Err(error) if error.raw_os_error().is_some_and(is_passing) => {}
                Err(error) => return Err(error.raw_os_error().unwrap_or(libc::EIO)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use super::*;
    use crate::storage::Real;

    const PAGE: usize = PAGE_SIZE as usize;
    const BYTES: usize = 3 * PAGE - 77;

    fn byte(at: usize) -> u8 {
        (at / PAGE * 100 + at % 97) as u8
    }

    /// A read of a file of nearly three pages into frames that don't follow each other.
    fn transfer(name: &str) -> (Arena, Transfer) {
        let path = std::env::temp_dir().join(format!("pageout-transfer-{name}-{}", std::process::id()));
        std::fs::write(&path, (0..BYTES).map(byte).collect::<Vec<u8>>()).unwrap();
        let disk = Arc::new(Real::new(std::fs::File::open(&path).unwrap()));
        std::fs::remove_file(&path).unwrap();
        let frames = [7, 2, 5].map(Pfn).to_vec();
        let (io, file, bytes) = (IoId(0), FileId(0), BYTES as u64);
        let transfer = Transfer { io, file, device: 0, disk, page: 0, frames, bytes, writes: None };
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
            let (arena, mut transfer) = transfer("short");
            // So much is there, and nothing behind it.
            let there = transfer.disk.read(&arena, &transfer.frames, 0, 0).unwrap();
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
        let (arena, mut transfer) = transfer("behind");
        for (page, &pfn) in transfer.frames.iter().enumerate() {
            // What another page has left there: the file itself, from another place on.
            transfer.disk.read(&arena, &[pfn], 0, page as u64 + 1).unwrap();
        }
        assert_eq!(transfer.perform(&arena), Ok(()));
        check(&arena, &transfer);
    }

    #[test]
    fn read_of_nothing_is_zeroes_whatever_the_answer() {
        for answer in [None, Some(0), Some(77)] {
            let (arena, mut transfer) = transfer("nothing");
            transfer.disk.read(&arena, &transfer.frames, 0, 0).unwrap();
            (transfer.page, transfer.bytes) = (3, 0);
            assert!(!transfer.needs_device());
            let result = match answer {
                None => transfer.perform(&arena),
                Some(bytes) => transfer.answered(&arena, bytes),
            };
            assert_eq!(result, Ok(()));
            for &pfn in &transfer.frames {
                arena.gate(pfn).open();
                assert!(arena.pin(pfn).ok().unwrap().bytes().iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn a_read_that_was_broken_off_is_made_again() {
        for errno in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
            let (arena, mut transfer) = transfer("broken-off");
            assert_eq!(transfer.answered(&arena, -errno), Ok(()));
            check(&arena, &transfer);
        }
    }

    #[test]
    fn a_read_that_fails_says_why() {
        let (arena, mut transfer) = transfer("fails");
        assert_eq!(transfer.answered(&arena, -libc::EIO), Err(Failed::Errno(libc::EIO)));
        transfer.page = 3;
        assert_eq!(transfer.answered(&arena, 0), Err(Failed::Shortened));
        transfer.page = 0;
        // A file that ends before it did.
        transfer.bytes += 100;
        assert_eq!(transfer.answered(&arena, BYTES as i32), Err(Failed::Shortened));
        assert_eq!(transfer.perform(&arena), Err(Failed::Shortened));
    }
}
