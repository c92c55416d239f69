//! A read of a file into frames, or a write of frames to a file.
//!
//! ```text
//!   request ─▶ answer ─▶ all is there                                    it has ended
//!                     ─▶ short, or interrupted                           a request for the rest
//!                     ─▶ a write of several pages has failed             a request for each page
//! ```
//! The meaning of an answer is decided here, for threads and rings alike: a thread makes one request after the other, and a ring begins each when the
//! last has ended.

use std::sync::Arc;

use pageout_engine::{FileId, IoId, PAGE_SIZE, Pfn};

use super::frames::Frames;
use crate::arena::Arena;
use crate::storage::Storage;

/// Maximum number of pages per write request: long enough for a device, and short enough for concurrent readers.
pub(super) const WRITTEN_TOGETHER: usize = 64;

/// A device that answers so often without a whole page more will not give or take it.
const PARTS_MAX: u8 = 8;

/// A page, in the units of a transfer.
pub(super) const PAGE_BYTES: u32 = PAGE_SIZE as u32;

/// The source or target of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    File(FileId),
    /// The swap file, whose pages are slots.
    Swap,
}

/// A read or a write of a file that is in flight, or will be.
pub(super) struct Transfer {
    pub(super) io: IoId,
    pub(super) target: Target,
    pub(super) device: u32,
    pub(super) disk: Arc<dyn Storage>,
    pub(super) page: u64,
    pub(super) frames: Frames,
    /// Bytes that are to be read, zeroes behind them; of a write all. These numbers are short, as a transfer of more than 128 bytes is moved by a call.
    pub(super) bytes: u32,
    /// It is a write. The engine sees one write per page.
    pub(super) writes: Option<Written>,
    pub(super) progress: Progress,
    /// It is a write, and its frames may not be written to until it has ended: each has a pin for that.
    pub(super) is_stable: bool,
}

/// How far a transfer is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Progress {
    /// The page, from the first of the transfer on, with which its next request begins.
    first: u32,
    /// Bytes that are read.
    done: u32,
    /// A write has failed for several pages, and each is written by itself.
    is_each: bool,
    /// Answers in a row without a page more.
    parts: u8,
}

/// Additional state of a write.
pub(super) struct Written {
    /// One a page.
    pub(super) ios: Vec<IoId>,
    /// Pages that could not be written, from the first of the transfer on, and why.
    pub(super) failed: Vec<(usize, i32)>,
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
    pub(super) fn is_write(&self) -> bool {
        self.writes.is_some()
    }

    /// Returns true if a device has a part in it. It has none in a read of pages behind the end of the file there: they are zeroes, and
    /// [`Transfer::perform`] fills them in.
    pub(super) fn needs_device(&self) -> bool {
        self.is_write() || self.bytes > 0
    }

    /// Splits off the part of an unstarted write that is beyond this number of pages, if any.
    pub(super) fn split_off(&mut self, pages: usize) -> Option<Transfer> {
        if self.frames.len() <= pages {
            return None;
        }
        let written = self.writes.as_mut().expect("it is a write");
        let (frames, ios) = (self.frames.split_off(pages), written.ios.split_off(pages));
        self.bytes = self.frames.len() as u32 * PAGE_BYTES;
        Some(Transfer {
            io: ios[0],
            target: self.target,
            device: self.device,
            disk: Arc::clone(&self.disk),
            page: self.page + pages as u64,
            bytes: frames.len() as u32 * PAGE_BYTES,
            frames,
            writes: Some(Written { ios, failed: Vec::new() }),
            progress: Progress::default(),
            is_stable: self.is_stable,
        })
    }

    /// The frames of its next request: all that are left, or one page of a write that has failed for several.
    pub(super) fn frames_of_request(&self) -> &[Pfn] {
        let Progress { first, is_each, .. } = self.progress;
        let first = first as usize;
        &self.frames[first..if is_each { first + 1 } else { self.frames.len() }]
    }

    /// From which byte of its file on its next request reads or writes.
    pub(super) fn offset_of_request(&self) -> u64 {
        (self.page + u64::from(self.progress.first)) * PAGE_SIZE
    }

    /// Notifies the storage of a write that begins now.
    pub(super) fn announce(&self) {
        if self.is_write() {
            self.disk.expect_write((self.page + self.frames.len() as u64) * PAGE_SIZE);
        }
    }

    /// Makes it, request after request.
    pub(super) fn perform(&mut self, arena: &Arena) -> Result<(), Failed> {
        if !self.needs_device() {
            self.fill_up(arena);
            return Ok(());
        }
        self.announce();
        loop {
            let (frames, offset) = (self.frames_of_request(), self.offset_of_request());
            let made = match self.is_write() {
                true => self.disk.write(arena, frames, offset),
                false => self.disk.read(arena, frames, 0, offset),
            };
            if let Some(result) = self.answered(arena, answer_of(made)) {
                return result;
            }
        }
    }

    /// Its request has been answered: with a number of bytes, or the number of an error below zero. None: it needs another request.
    pub(super) fn answered(&mut self, arena: &Arena, answer: i32) -> Option<Result<(), Failed>> {
        let ended = match answer {
            ..0 if is_passing(-answer) => None,
            _ if self.is_write() => self.write_answered(answer),
            0.. => self.has_read(arena, answer as u64),
            _ => Some(Err(Failed::Errno(-answer))),
        };
        if ended.is_some() && self.is_stable && self.target == Target::Swap {
            arena.forget_aliases(&self.frames);
        }
        ended
    }

    /// So many bytes more are read, from the page on with which the request began. The last page is filled up with zeroes, and all behind it.
    fn has_read(&mut self, arena: &Arena, bytes: u64) -> Option<Result<(), Failed>> {
        let Progress { first, done, parts, .. } = &mut self.progress;
        let there = u64::from(*first) * PAGE_SIZE + bytes;
        if there >= u64::from(self.bytes) {
            self.fill_up(arena);
            return Some(Ok(()));
        }
        if there > u64::from(*done) {
            // A read that ends within a page begins at that page again: direct I/O is by whole blocks.
            (*first, *done, *parts) = ((there / PAGE_SIZE) as u32, there as u32, 0);
            return None;
        }
        // A short answer may end where the one before it did. The end of a file always does.
        *parts += 1;
        (*parts > PARTS_MAX).then_some(Err(Failed::Shortened))
    }

    fn fill_up(&self, arena: &Arena) {
        for (page, &pfn) in (0_u64..).zip(self.frames.iter()).skip(self.bytes as usize / PAGE_SIZE as usize) {
            arena.zero(pfn, u64::from(self.bytes).saturating_sub(page * PAGE_SIZE).min(PAGE_SIZE) as usize);
        }
    }

    /// A request of a write has been answered. If it has failed for several pages, some of them may be written yet: each by itself.
    fn write_answered(&mut self, answer: i32) -> Option<Result<(), Failed>> {
        let Progress { first, is_each, parts, .. } = &mut self.progress;
        let failed = &mut self.writes.as_mut().expect("it is a write").failed;
        // A write that ends within a page begins at that page again: direct I/O is by whole blocks.
        let pages = u32::try_from(answer).unwrap_or(0) / PAGE_SIZE as u32;
        if pages > 0 {
            *first += pages;
            *parts = 0;
        } else if answer >= 0 && *parts < PARTS_MAX {
            *parts += 1;
        } else if *is_each {
            failed.push((*first as usize, if answer < 0 { -answer } else { libc::EIO }));
            *first += 1;
            *parts = 0;
        } else {
            (*is_each, *parts) = (true, 0);
        }
        if (*first as usize) < self.frames.len() {
            return None;
        }
        Some(failed.last().map_or(Ok(()), |&(_, errno)| Err(Failed::Errno(errno))))
    }
}

/// The system's answer, in the format of a ring.
pub(super) fn answer_of(made: std::io::Result<usize>) -> i32 {
    match made {
        Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
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
        let (io, target, bytes) = (IoId(0), Target::File(FileId(0)), BYTES as u64);
        let progress = Progress::default();
        let transfer = Transfer {
            io,
            target,
            device: 0,
            disk,
            page: 0,
            frames: Frames::Many(frames),
            bytes: bytes as u32,
            writes: None,
            progress,
            is_stable: false,
        };
        (Arena::new(std::slice::from_ref(&(0..8)), None).unwrap(), transfer)
    }

    /// How a transfer ends whose first request has this answer.
    fn ends(arena: &Arena, transfer: &mut Transfer, answer: i32) -> Result<(), Failed> {
        transfer.answered(arena, answer).unwrap_or_else(|| transfer.perform(arena))
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
            assert_eq!(ends(&arena, &mut transfer, got as i32), Ok(()));
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
                Some(bytes) => ends(&arena, &mut transfer, bytes),
            };
            assert_eq!(result, Ok(()));
            for &pfn in transfer.frames.iter() {
                arena.gate(pfn).open();
                assert!(arena.pin(pfn).ok().unwrap().bytes().iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn a_read_that_was_broken_off_is_made_again() {
        for errno in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
            let (arena, mut transfer) = transfer("broken-off");
            assert_eq!(ends(&arena, &mut transfer, -errno), Ok(()));
            check(&arena, &transfer);
        }
    }

    #[test]
    fn a_read_that_fails_says_why() {
        let (arena, mut transfer) = transfer("fails");
        assert_eq!(ends(&arena, &mut transfer, -libc::EIO), Err(Failed::Errno(libc::EIO)));
        transfer.page = 3;
        assert_eq!(ends(&arena, &mut transfer, 0), Err(Failed::Shortened));
        (transfer.page, transfer.progress) = (0, Progress::default());
        // A file that ends before it did.
        transfer.bytes += 100;
        assert_eq!(ends(&arena, &mut transfer, BYTES as i32), Err(Failed::Shortened));
        transfer.progress = Progress::default();
        assert_eq!(transfer.perform(&arena), Err(Failed::Shortened));
    }
}
