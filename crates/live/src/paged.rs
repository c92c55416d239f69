//! [`Paged`]: accesses to pages of a file or a region without the engine, and the way to it.
//!
//! ```text
//!   look      the word ─▶ the gate ─▶ the bytes ─▶ is the word the same, and long enough? ─▶ a note of the hit
//!   copy      the gate before and after: a page that was written or moved meanwhile is copied again
//!   hold      a place of this thread names the frame; if that needs more than a look, the gate has a pin
//!   write     the gate, for the writer alone ─▶ is the page still dirty, and in this frame?
//!   else      the engine brings the page in
//! ```
//! A file and a region differ in which words are hits, in how a hit is noted, and in pages of zeroes, which only regions have.

use std::path::Path;
use std::sync::Arc;

use pageout_engine::{PAGE_SIZE, Pfn, Word};

use crate::arena::{Held, Pin, Writing};
use crate::error::Error;
use crate::file::{Piece, ReadAt};
use crate::gate::Unpinned;
use crate::guard::PageRef;
use crate::length::Length;
use crate::local::{self, LocalFile, Readable};
use crate::machine::{Accessed, Brought, LiveMachine, Want, has_lock};
use crate::memory::Shared;
use crate::pending::TOGETHER_MAX;
use crate::ring::{Read, Ring};

/// Looks at a page that changes, before the engine is called.
const TRIES: u32 = 2;

/// The machine, this thread's ring, and this thread's data of a file or region.
pub(crate) type OfThread<'a, 'b> = (&'a LiveMachine, &'b Ring, &'b mut LocalFile);

/// A page that a thread has pinned without the engine.
pub(crate) enum Pinned<'a> {
    /// The pin, and the number of pins of the thread.
    Page(Pin<'a>, i64),
    /// A page of a region that was never written.
    Zeroes,
}

/// The parts of a range of bytes, one per page.
#[inline(always)]
pub(crate) fn parts(len: usize, offset: u64) -> impl Iterator<Item = Piece> + use<> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (rest, at) = (len - done, offset + done as u64);
        let (page, skip) = (at / PAGE_SIZE, (at % PAGE_SIZE) as usize);
        let here = rest.min(PAGE_SIZE as usize - skip);
        let to = done..done + here;
        done += here;
        (rest > 0).then_some(Piece { want: Want { page, bytes: (skip + rest) as u64 }, skip, to })
    })
}

/// A file or a region.
pub(crate) trait Paged: Readable + Sized {
    fn memory(&self) -> &Arc<Shared>;

    fn length(&self) -> &Length;

    /// Its path, or its name.
    fn name(&self) -> &Path;

    fn accessed(&self) -> Accessed<'_>;

    /// Returns true if a page with this word can be read without the engine.
    fn is_hit(word: Word) -> bool;

    /// Returns true if a page with this word was never written, and reads as zeroes.
    fn is_zeroes(word: Word) -> bool;

    /// Returns true if a page with this word can be written without the engine.
    fn is_overwritten_freely(word: Word) -> bool;

    /// Notes a hit that reads this page, and that is wanted up to a byte of it. Returns `None` if the engine can't be notified any more.
    fn note(&self, of: OfThread<'_, '_>, page: u64, wanted: u64, word: Word) -> Option<()>;

    /// Notes a hit that writes.
    fn note_write(&self, of: OfThread<'_, '_>, page: u64, word: Word) -> Option<()>;

    /// Notifies the engine of what it must know before it is called for a page.
    fn before_miss<T>(&self, ring: &Ring, local: &mut LocalFile) -> Option<T>;

    /// The error of a call up to a byte, which has checked the length before.
    fn error_up_to(&self, end: u64, error: Error) -> Error;

    #[cold]
    fn beyond_end(&self, end: u64) -> Error {
        let (path, bytes) = (self.name().to_owned(), self.length().bytes());
        // It was shorter a moment ago.
        if end <= bytes { Error::CutMeanwhile { path } } else { Error::BeyondEnd { path, end, bytes } }
    }

    /// Bytes of a page that are within it.
    #[inline(always)]
    #[expect(clippy::manual_div_ceil, reason = "5 instructions less of a hit's 290, and no file is as long")]
    fn bytes_of_page(&self, page: u64) -> Result<u64, Error> {
        let bytes = self.length().bytes();
        if page >= (bytes + PAGE_SIZE - 1) / PAGE_SIZE {
            return Err(self.beyond_end(page.saturating_add(1).saturating_mul(PAGE_SIZE)));
        }
        Ok((bytes - page * PAGE_SIZE).min(PAGE_SIZE))
    }

    /// The parts of a call for these bytes, one per page.
    #[inline(always)]
    fn pieces(&self, len: usize, offset: u64) -> Result<impl Iterator<Item = Piece> + use<Self>, Error> {
        let end = offset.saturating_add(len as u64);
        if end > self.length().bytes() {
            return Err(self.beyond_end(end));
        }
        Ok(parts(len, offset))
    }

    /// Copies those parts of several reads that are in memory. Returns the others: the read, and the part of it.
    fn copy_what_is_there(&self, reads: &mut [ReadAt<'_>]) -> Result<Vec<(usize, Piece)>, Error> {
        let mut missing = Vec::new();
        for (at, read) in reads.iter_mut().enumerate() {
            for piece in self.pieces(read.buf.len(), read.offset)? {
                if !self.try_copy(&piece, read.buf) {
                    missing.push((at, piece));
                }
            }
        }
        Ok(missing)
    }

    /// Makes several reads. Pages that are not in memory are in flight together.
    fn read_together(&self, reads: &mut [ReadAt<'_>]) -> Result<(), Error> {
        let missing = self.copy_what_is_there(reads)?;
        for missing in missing.chunks(TOGETHER_MAX) {
            let brought = self.memory().guarded(|machine| {
                let wants = missing.iter().map(|(_, piece)| piece.want);
                machine.bring_in_all(self.accessed(), wants, |at, page| {
                    let (read, piece) = &missing[at];
                    self.show(piece, page, reads[*read].buf)
                })
            });
            // A small group may not have enough memory for all of them together. Then they are read one after the other, or return the error.
            if brought.is_err() {
                for (read, piece) in missing {
                    self.read_piece(piece, reads[*read].buf)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn read_piece(&self, piece: &Piece, buf: &mut [u8]) -> Result<(), Error> {
        if self.try_copy(piece, buf) { Ok(()) } else { self.read_slowly(piece, buf) }
    }

    #[cold]
    fn read_slowly(&self, piece: &Piece, buf: &mut [u8]) -> Result<(), Error> {
        loop {
            // It waits while another call changes the length.
            let brought = match self.bring_in(piece.want) {
                Err(Error::BeyondEnd { .. }) => return Err(self.beyond_end(piece.end())),
                brought => brought?,
            };
            match self.show(piece, brought.bytes(), buf) {
                Err(Error::CutMeanwhile { .. }) if piece.end() <= self.length().bytes() => {}
                Err(Error::CutMeanwhile { .. }) => return Err(self.beyond_end(piece.end())),
                shown => return shown,
            }
        }
    }

    /// Copies from a pinned page, if it is still long enough.
    #[inline]
    fn show(&self, piece: &Piece, page: &[u8], buf: &mut [u8]) -> Result<(), Error> {
        if !self.length().reaches(piece.end()) {
            return Err(Error::CutMeanwhile { path: self.name().to_owned() });
        }
        let machine = &self.memory().machine;
        debug_assert!(
            !machine.arena.tokens.is_used() || !has_lock(),
            "a caller's buffer is touched under the lock"
        );
        piece.copy(page, buf);
        Ok(())
    }

    /// Copies from a page in memory, or one that was never written. Returns false if the access needs the engine.
    #[inline(always)]
    fn try_copy(&self, piece: &Piece, buf: &mut [u8]) -> bool {
        let machine = &*self.memory().machine;
        local::with(machine, self, |ring, local| self.try_copy_by((machine, ring, local), piece, buf))
            .is_some()
    }

    /// The same with the data of this thread.
    #[inline(always)]
    fn try_copy_by(
        &self,
        (machine, ring, local): OfThread<'_, '_>,
        piece: &Piece,
        buf: &mut [u8],
    ) -> Option<()> {
        let arena = &*machine.arena;
        let (want, to) = (piece.want, &mut buf[piece.to.clone()]);
        for _ in 0..TRIES {
            let word = local.words.get(want.page);
            if Self::is_zeroes(word) {
                if !self.length().reaches(piece.end()) {
                    break;
                }
                to.fill(0);
                return self.note((machine, ring, local), want.page, want.bytes, word);
            }
            if !Self::is_hit(word) {
                break;
            }
            let pfn = word.pfn();
            let gate = arena.gate(pfn);
            let Some(seen) = gate.begin() else {
                if machine.awaits_move(pfn) {
                    continue;
                }
                break;
            };
            if !self.length().reaches(piece.end()) {
                break;
            }
            arena.copy_out(pfn, piece.skip, to);
            let now = local.words.get(want.page);
            if Self::is_hit(now) && now.pfn() == pfn && gate.is_still(seen) {
                return self.note((machine, ring, local), want.page, want.bytes, now);
            }
        }
        self.before_miss(ring, local)
    }

    /// The frame of a page that is being written to, in place or by a copy.
    fn written_frame(&self, page: u64) -> Option<Pfn> {
        let machine = &*self.memory().machine;
        local::with(machine, self, |_, local| {
            let word = local.words.get(page);
            (Self::is_hit(word) && machine.arena.gate(word.pfn()).is_written()).then(|| word.pfn())
        })
    }

    /// Holds a page in memory by a place of this thread, if it is still long enough. `None` if that needs more than a look at it.
    #[inline(always)]
    fn try_hold(&self, page: u64, wanted: u64) -> Option<Held<'_>> {
        let machine = &*self.memory().machine;
        local::with(machine, self, |ring, local| self.try_hold_by((machine, ring, local), page, wanted))
    }

    /// The same with the data of this thread.
    #[inline(always)]
    fn try_hold_by<'a>(
        &self,
        (machine, ring, local): OfThread<'a, '_>,
        page: u64,
        wanted: u64,
    ) -> Option<Held<'a>> {
        let word = local.words.get(page);
        if !Self::is_hit(word) {
            return None;
        }
        let pfn = word.pfn();
        // All threads must see a hold before this one looks at anything else; data behind it is fetched at the same time.
        machine.arena.fetch(pfn);
        let held = machine.arena.hold_by_place(pfn, ring.line?)?;
        // Between the two the frame may have become another page's.
        let now = local.words.get(page);
        if !Self::is_hit(now) || now.pfn() != pfn || !self.length().reaches(page * PAGE_SIZE + wanted) {
            return None;
        }
        self.note((machine, ring, local), page, wanted, now)?;
        Some(held)
    }

    /// Pins a page in memory, if it is still long enough, after more than one look if need be.
    fn try_pin(&self, page: u64, wanted: u64) -> Option<Pinned<'_>> {
        let machine = &*self.memory().machine;
        local::with(machine, self, |ring, local| self.try_pin_by((machine, ring, local), page, wanted))
    }

    /// The same with the data of this thread.
    fn try_pin_by<'a>(
        &self,
        (machine, ring, local): OfThread<'a, '_>,
        page: u64,
        wanted: u64,
    ) -> Option<Pinned<'a>> {
        let reaches = || self.length().reaches(page * PAGE_SIZE + wanted);
        for _ in 0..TRIES {
            let word = local.words.get(page);
            if Self::is_zeroes(word) && reaches() {
                return self.note((machine, ring, local), page, wanted, word).map(|()| Pinned::Zeroes);
            }
            if !Self::is_hit(word) {
                break;
            }
            let pfn = word.pfn();
            // All threads must see a hold before this one looks at anything else; data behind it is fetched at the same time.
            machine.arena.fetch(pfn);
            let pin = match machine.arena.hold(pfn, ring.line) {
                Ok(pin) => pin,
                Err(_) if machine.awaits_move(pfn) => continue,
                Err(_) => break,
            };
            // Between the two the frame may have become another page's.
            let now = local.words.get(page);
            if !Self::is_hit(now) || now.pfn() != pfn {
                continue;
            }
            if !reaches() {
                break;
            }
            self.note((machine, ring, local), page, wanted, now)?;
            if pin.is_hold() {
                return Some(Pinned::Page(pin, PageRef::UNCOUNTED));
            }
            machine.guards.taken(pfn);
            return Some(Pinned::Page(pin, ring.count_pins(1)));
        }
        self.before_miss(ring, local)
    }

    /// Holds a page that is not in memory, or not available at the first look: the first bytes of it, as many as there were.
    #[cold]
    fn page_slowly(&self, page: u64, mut len: u64) -> Result<PageRef<'_>, Error> {
        let machine = &*self.memory().machine;
        match self.try_pin(page, len) {
            Some(Pinned::Page(pin, pins)) => {
                return PageRef::new((machine, self.name()), pin, len as usize, pins);
            }
            Some(Pinned::Zeroes) => return Ok(PageRef::zeroes(len as usize)),
            None => {}
        }
        loop {
            let end = page * PAGE_SIZE + len;
            let want = Want { page, bytes: len };
            let brought = self.bring_in(want).map_err(|error| self.error_up_to(end, error))?;
            if self.length().reaches(end) {
                return match brought {
                    Brought::Page(pin) => PageRef::counted((machine, self.name()), pin, len as usize),
                    Brought::Zeroes => Ok(PageRef::zeroes(len as usize)),
                };
            }
            drop(brought);
            len = self.bytes_of_page(page)?;
        }
    }

    /// Brings a page in and pins it.
    #[cold]
    fn bring_in(&self, want: Want) -> Result<Brought<'_>, Error> {
        self.memory().guarded(|machine| machine.bring_in(self.accessed(), want))
    }

    /// A page that is already dirty, to be written to up to a byte. Nothing if the engine must be notified, or a guard holds the page.
    #[inline]
    fn try_overwrite(&self, page: u64, end: u64) -> Option<Writing<'_>> {
        let machine = &*self.memory().machine;
        let arena = &*machine.arena;
        local::with(machine, self, |ring, local| {
            for _ in 0..TRIES {
                let word = local.words.get(page);
                if !Self::is_overwritten_freely(word) {
                    break;
                }
                let pfn = word.pfn();
                match arena.begin_write(pfn) {
                    Ok(writing) => {
                        // Between the two it may have been written to its device, the frame may have become another page's, and there may be less.
                        let now = local.words.get(page);
                        if Self::is_overwritten_freely(now) && now.pfn() == pfn && self.length().reaches(end)
                        {
                            self.note_write((machine, ring, local), page, now)?;
                            return Some(writing);
                        }
                    }
                    Err(Unpinned::Closed) if machine.awaits_move(pfn) => {}
                    Err(Unpinned::Closed) => break,
                    Err(_) => machine.await_copy(|| arena.is_free_to_write(pfn)),
                }
            }
            self.before_miss(ring, local)
        })
    }

    /// Writes to a page that is already dirty.
    #[inline]
    fn try_write_piece(&self, piece: &Piece, buf: &[u8]) -> bool {
        let Some(mut writing) = self.try_overwrite(piece.want.page, piece.end()) else { return false };
        let from = &buf[piece.to.clone()];
        writing.bytes_mut()[piece.skip..piece.skip + from.len()].copy_from_slice(from);
        true
    }

    /// Notifies the engine of a hit, after those in the ring if that is full. Returns `None` if it can't be notified any more.
    #[inline]
    fn push(&self, ring: &Ring, read: Read) -> Option<()> {
        if ring.push(read) { Some(()) } else { self.drain_and_push(ring, read) }
    }

    #[cold]
    fn drain_and_push(&self, ring: &Ring, read: Read) -> Option<()> {
        self.memory().guarded(|machine| machine.drain(machine.lock()?).map(drop)).ok()?;
        let has_room = ring.push(read);
        debug_assert!(has_room, "a ring that was just emptied");
        Some(())
    }
}
