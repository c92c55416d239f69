//! Writing pages through the cache.

use crate::arena::Writing;
use crate::error::Error;
use crate::file::{File, Inner, Piece, TRIES};
use crate::gate::Unpinned;
use crate::guard::PageMut;
use crate::local;
use crate::machine::{BYTES_MAX, Begun, Part, Writable};

use pageout_engine::{PAGE_SIZE, Pfn};

impl File {
    /// Writes bytes from an offset on: all of them, or an error, after which some may be written. They are in memory, and dirty, when this returns; a sync
    /// has them on the device. Behind the end the file gets longer, and what was never written in between is zeroes. Where more is dirty than may be
    /// (`vm.dirty_ratio`), the writer is made to wait, and where a guard holds a page, too.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::TooManyFiles`], [`Error::TooLong`] if the file would get too long; [`Error::Io`], [`Error::Shortened`],
    /// [`Error::OutOfMemory`] if the rest of a page can't be read, or there is no memory for it. [`Error::Pinned`] if a guard keeps a page for too long,
    /// and [`Error::CutMeanwhile`] if the file was made shorter while this waited for one.
    ///
    /// [`Error::Io`] with ENOSPC, EDQUOT, EFBIG or EIO, within a second, if the device takes none of what is dirty and too much is to accept more. If it takes
    /// some, each page of the call may wait as long. What was
    /// accepted before stays in memory, dirty, and is tried again. Make space, or discard it by [`File::set_len`] or [`File::forget_and_discard`]. A file size
    /// limit (RLIMIT_FSIZE) also sends SIGXFSZ, which ends a process that does not ignore it.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> Result<(), Error> {
        let file = &*self.0;
        file.writable()?;
        if buf.is_empty() {
            return Ok(());
        }
        let end = file.end_of_write(buf.len(), offset)?;
        let mut pieces = Inner::parts(buf.len(), offset);
        let (Some(first), None) = (pieces.next(), pieces.next()) else {
            return file.write_span(buf, offset, end, false);
        };
        match file.try_overwrite(first.want.page, end) {
            Some(mut writing) => {
                writing.bytes_mut()[first.skip..first.skip + buf.len()].copy_from_slice(buf);
                Ok(())
            }
            None => file.write_span(buf, offset, end, true),
        }
    }

    /// Has all that was written before on the device, with what it takes to find it there: fdatasync(2).
    ///
    /// # Errors
    /// [`Error::Sync`] where some of it could not be written. It stays dirty and readable, is tried again, and each sync of the file says so until
    /// [`File::acknowledge`]. [`Error::Pinned`] where a guard holds a page to be written to, for too long or of this thread; [`Error::Forgotten`].
    pub fn sync_data(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.sync(&self.0, false))
    }

    /// The same, with the file's times: fsync(2).
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub fn sync_all(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.sync(&self.0, true))
    }

    /// Says that it is known that writes of the file have failed: from now on a sync tells of what fails later. What could not be written stays dirty, so the next
    /// sync tries it again. Where it was the flush that failed, the device may have lost what it had taken since the last one that went well: that is dirty again, as far
    /// as it is in memory. What had left it (`lost` of [`Error::Sync`]) may be lost, and only who wrote it can write it again.
    ///
    /// # Errors
    /// [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn acknowledge(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.acknowledge(&self.0))
    }

    /// Makes the file so many bytes long. What is behind a new end is gone, in memory and on the device, and is not written any more; what is new is zeroes.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Pinned`] where a guard holds a page behind the new end, or that of the end, and nothing has changed;
    /// [`Error::TooManyFiles`]; [`Error::Io`].
    pub fn set_len(&self, bytes: u64) -> Result<(), Error> {
        self.0.writable()?;
        self.0.check_length(bytes)?;
        self.0.memory.guarded(|machine| machine.set_len(&self.0, self.0.group, bytes))
    }

    /// Takes the file as it is on its device, where somebody else has written it: all pages are dropped, and read again when they are wanted, and its length is
    /// that on the device. What was written here and was not synced is lost. Handles go on, and its descriptor stays open: to close one would end all POSIX locks
    /// of the process on the file.
    ///
    /// # Errors
    /// [`Error::Pinned`] where a guard holds one of its pages, and nothing has changed; [`Error::TooManyFiles`]; [`Error::Io`].
    pub fn reload(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.reload(&self.0, true))
    }

    /// Holds a page, to be read and written in place: it is dirty from now on. Who reads it or writes to it waits until the guard is gone, and so does a sync of
    /// its file. This waits for the guards of others: a thread that has one of the same page waits for itself, and for ever.
    ///
    /// # Errors
    /// As [`File::write_at`]; [`Error::BeyondEnd`]; [`Error::Pinned`] where guards hold a quarter of all frames.
    pub fn page_mut(&self, page: u64) -> Result<PageMut<'_>, Error> {
        let held = self.0.write_page(page, true)?;
        Ok(held.expect("it waits for whoever has it"))
    }

    /// The same where nobody holds it; `None` where somebody does.
    ///
    /// # Errors
    /// As [`File::page_mut`].
    pub fn try_page_mut(&self, page: u64) -> Result<Option<PageMut<'_>>, Error> {
        self.0.write_page(page, false)
    }
}

impl Inner {
    /// Where a write ends, if a file can be so long.
    #[inline(always)]
    fn end_of_write(&self, len: usize, offset: u64) -> Result<u64, Error> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= BYTES_MAX => Ok(end),
            end => Err(self.too_long(end.unwrap_or(u64::MAX))),
        }
    }

    #[cold]
    fn too_long(&self, bytes: u64) -> Error {
        Error::TooLong { path: self.path().to_owned(), bytes, most: BYTES_MAX }
    }

    /// An error for a length that no file can have.
    fn check_length(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= BYTES_MAX { Ok(()) } else { Err(self.too_long(bytes)) }
    }

    /// Writes bytes while no byte of the file is taken away. `was_tried`: they are of one page, which the engine has to hear of.
    fn write_span(&self, buf: &[u8], offset: u64, end: u64, was_tried: bool) -> Result<(), Error> {
        let machine = &*self.memory.machine;
        let mut span = Span::up_to(self, end)?;
        let mut wait = machine.guard_wait();
        for piece in Inner::parts(buf.len(), offset) {
            if !was_tried && self.try_write_piece(&piece, buf) {
                continue;
            }
            while let Some(held) = self.write_piece(&piece, buf)? {
                // Who has the page may be about to make the file shorter.
                let cuts = self.length.cuts();
                drop(span);
                machine.await_guard(&mut wait, self, piece.want.page, held, || {
                    machine.arena.is_free_to_write(held)
                })?;
                span = Span::up_to(self, end)?;
                if piece.to.start > 0 && self.length.cuts() != cuts {
                    return Err(Error::CutMeanwhile { path: self.path().to_owned() });
                }
            }
        }
        drop(span);
        Ok(())
    }

    /// Writes to a page that is dirty already.
    #[inline]
    fn try_write_piece(&self, piece: &Piece, buf: &[u8]) -> bool {
        let Some(mut writing) = self.try_overwrite(piece.want.page, piece.end()) else { return false };
        let from = &buf[piece.to.clone()];
        writing.bytes_mut()[piece.skip..piece.skip + from.len()].copy_from_slice(from);
        true
    }

    /// Writes to a page, within a span; returns its frame where somebody holds it.
    fn write_piece(&self, piece: &Piece, buf: &[u8]) -> Result<Option<Pfn>, Error> {
        let (page, skip, from) = (piece.want.page, piece.skip, &buf[piece.to.clone()]);
        let end = piece.end();
        let part = Part { page, skip, len: from.len() };
        let begun = self.memory.guarded(|machine| machine.begin_write(self, self.group, part))?;
        let Writable { mut writing, is_new, owed } = match begun {
            Begun::Writable(writable) => writable,
            Begun::Held(pfn) => return Ok(Some(pfn)),
        };
        let bytes = writing.bytes_mut();
        if is_new {
            bytes[..skip].fill(0);
            bytes[skip + from.len()..].fill(0);
        }
        bytes[skip..skip + from.len()].copy_from_slice(from);
        // Before anybody else, a device included, can see the page: its end is behind these bytes.
        self.length.grow_to(end);
        drop(writing);
        if let Some(owed) = owed {
            self.memory.guarded(|_| owed.pay())?;
        }
        Ok(None)
    }

    /// A page that is dirty already, to be written to up to a byte of the file; nothing where the engine has to hear of it, or somebody holds the page.
    #[inline]
    fn try_overwrite(&self, page: u64, end: u64) -> Option<Writing<'_>> {
        let machine = &*self.memory.machine;
        let arena = &*machine.arena;
        local::with(machine, self, |ring, local| {
            for _ in 0..TRIES {
                let word = local.words.get(page);
                if !word.is_overwritten_freely() {
                    break;
                }
                let pfn = word.pfn();
                match arena.begin_write(pfn) {
                    Ok(writing) => {
                        // Between the two it may have been written to its device, or the frame may have become another page's; and the file may be shorter.
                        let now = local.words.get(page);
                        if now.is_overwritten_freely() && now.pfn() == pfn && self.length.reaches(end) {
                            ring.count_hit(arena.is_slow(pfn));
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

    fn write_page(&self, page: u64, waits: bool) -> Result<Option<PageMut<'_>>, Error> {
        self.writable()?;
        let machine = &*self.memory.machine;
        let mut wait = machine.guard_wait();
        loop {
            let len = self.bytes_of_page(page)?;
            if let Some(writing) = self.try_overwrite(page, page * PAGE_SIZE + len) {
                return PageMut::new(self, writing, len as usize).map(Some);
            }
            // No byte is taken away before the page is in hand, and a call that does so afterwards sees that.
            let span = Span::up_to(self, 0)?;
            let len = self.bytes_of_page(page)?;
            // All of it may stay as it is.
            let part = Part { page, skip: PAGE_SIZE as usize, len: 0 };
            match self.memory.guarded(|machine| machine.begin_write(self, self.group, part))? {
                Begun::Writable(Writable { mut writing, is_new, owed }) => {
                    if is_new {
                        writing.bytes_mut().fill(0);
                    }
                    drop(span);
                    if let Some(owed) = owed {
                        self.memory.guarded(|_| owed.pay())?;
                    }
                    return PageMut::new(self, writing, len as usize).map(Some);
                }
                Begun::Held(_) if !waits => return Ok(None),
                Begun::Held(pfn) => {
                    drop(span);
                    machine
                        .await_guard(&mut wait, self, page, pfn, || machine.arena.is_free_to_write(pfn))?;
                }
            }
        }
    }
}

/// A call beside which no byte of a file is taken away.
struct Span<'a>(&'a Inner);

impl<'a> Span<'a> {
    /// One that may write up to a byte of the file, behind its end, too.
    fn up_to(file: &'a Inner, end: u64) -> Result<Span<'a>, Error> {
        if !file.length.enter() {
            file.memory.guarded(|machine| machine.enter(file, end))?;
            return Ok(Span(file));
        }
        let span = Span(file);
        if end > file.bytes() {
            drop(span);
            file.memory.guarded(|machine| machine.enter(file, end))?;
            return Ok(Span(file));
        }
        Ok(span)
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if self.0.length.leave() {
            self.0.memory.machine.wake_after_span();
        }
    }
}
