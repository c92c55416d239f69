//! Writing pages through the cache.

use crate::error::Error;
use crate::file::{File, Inner, Piece};
use crate::guard::PageMut;
use crate::machine::{BYTES_MAX, Begun, Flush, Part, Writable};
use crate::paged::{Paged, parts};

use pageout_engine::{PAGE_SIZE, Pfn};

impl File {
    /// Writes bytes from an offset on: either all of them, or an error, after which some may be written. When the call returns, the bytes are in
    /// memory, and dirty; a sync stores them on the device. A write beyond the end extends the file, and a gap reads as zeroes. The writer is
    /// throttled if more pages are dirty than allowed (`vm.dirty_ratio`), and waits if a guard holds a page.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::TooManyFiles`], [`Error::TooLong`] if the file would get too long. [`Error::Io`], [`Error::Shortened`],
    /// [`Error::OutOfMemory`] if the rest of a page can't be read, or there is no memory for it. [`Error::Pinned`] if a guard keeps a page for too
    /// long, and [`Error::CutMeanwhile`] if the file was shortened while this waited for one.
    ///
    /// [`Error::Io`] with ENOSPC, EDQUOT, EFBIG or EIO, within a second, if the device accepts no dirty page and too many are dirty to accept more.
    /// If it accepts some, each page of the call may wait as long. Bytes that were accepted before stay in memory, dirty, and are retried. Make
    /// space, or discard them by [`File::set_len`] or [`File::forget_and_discard`]. A file size limit (RLIMIT_FSIZE) also sends SIGXFSZ, which ends a
    /// process that does not ignore it.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> Result<(), Error> {
        let file = &*self.0;
        file.writable()?;
        if buf.is_empty() {
            return Ok(());
        }
        let end = file.end_of_write(buf.len(), offset)?;
        let mut pieces = parts(buf.len(), offset);
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

    /// Waits until the device has all earlier writes, with the metadata needed to find them: fdatasync(2).
    ///
    /// # Errors
    /// [`Error::Sync`] if some of them could not be written. These stay dirty and readable, and are retried. Each sync of the file fails until
    /// [`File::acknowledge`]. [`Error::Pinned`] if a guard of this thread, or one held for too long, holds a page that must be written;
    /// [`Error::Forgotten`].
    pub fn sync_data(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.sync(&self.0, Flush::Data))
    }

    /// Writes all dirty pages without a flush of the device's cache: after a return without error the data survives the process, but not a loss of power.
    ///
    /// # Errors
    /// The same as [`File::sync_data`].
    pub fn write_back(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.sync(&self.0, Flush::Nothing))
    }

    /// The same, with the file's times: fsync(2).
    ///
    /// # Errors
    /// The same as [`File::sync_data`].
    pub fn sync_all(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.sync(&self.0, Flush::All))
    }

    /// Acknowledges that writes of the file have failed: from now on a sync reports only later failures. Pages that could not be written stay dirty,
    /// so the next sync tries them again. If the flush itself failed, the device may have lost all data since its last successful flush. Those pages
    /// become dirty again if they are in memory. Pages that had left memory (`lost` of [`Error::Sync`]) may be lost, and only their writer can write
    /// them again.
    ///
    /// # Errors
    /// [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn acknowledge(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.acknowledge(&self.0))
    }

    /// Sets the length of the file, in bytes. Pages beyond a new end are dropped from memory and from the device, and are not written any more. A new
    /// range reads as zeroes.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Pinned`] if a guard holds the page of the new end or one beyond it (nothing has changed then);
    /// [`Error::TooManyFiles`]; [`Error::Io`].
    pub fn set_len(&self, bytes: u64) -> Result<(), Error> {
        self.0.writable()?;
        self.0.check_length(bytes)?;
        self.0.memory.guarded(|machine| machine.set_len(&self.0, self.0.group, bytes))
    }

    /// Reloads the file from its device, after another process has written it. All pages are dropped and read again on demand, and the length is that
    /// on the device. Data that was written here and not synced is lost. Handles stay valid, and the descriptor stays open, because closing one would
    /// end all POSIX locks of the process on the file.
    ///
    /// # Errors
    /// [`Error::Pinned`] if a guard holds one of its pages (nothing has changed then); [`Error::TooManyFiles`]; [`Error::Io`].
    pub fn reload(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.reload(&self.0, true))
    }

    /// Returns a guard that holds a page, to read and write it in place; the page is dirty from now on. Readers and writers of the page wait until
    /// the guard is dropped, and so does a sync of its file. This call waits for other guards: a thread that has a guard of the same page would wait
    /// for itself.
    ///
    /// # Errors
    /// The same as [`File::write_at`]; [`Error::BeyondEnd`]; [`Error::Pinned`] if guards hold a quarter of all frames.
    pub fn page_mut(&self, page: u64) -> Result<PageMut<'_>, Error> {
        let held = self.0.write_page(page, true)?;
        Ok(held.expect("it waits for whoever has it"))
    }

    /// The same if no guard holds it; `None` if one does.
    ///
    /// # Errors
    /// The same as [`File::page_mut`].
    pub fn try_page_mut(&self, page: u64) -> Result<Option<PageMut<'_>>, Error> {
        self.0.write_page(page, false)
    }
}

impl Inner {
    /// Returns the end of a write, or an error if a file can't be that long.
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

    /// The error of a length beyond the maximum.
    fn check_length(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= BYTES_MAX { Ok(()) } else { Err(self.too_long(bytes)) }
    }

    /// Writes bytes while no byte of the file is taken away. `was_tried`: they are on one page, and the engine must be notified.
    fn write_span(&self, buf: &[u8], offset: u64, end: u64, was_tried: bool) -> Result<(), Error> {
        let machine = &*self.memory.machine;
        let mut span = Span::up_to(self, end)?;
        let mut wait = machine.guard_wait();
        for piece in parts(buf.len(), offset) {
            if !was_tried && self.try_write_piece(&piece, buf) {
                continue;
            }
            while let Some(held) = self.write_piece(&piece, buf)? {
                // The task that holds the page may be about to shorten the file.
                let cuts = self.length.cuts();
                drop(span);
                machine.await_guard(&mut wait, self.id, piece.want.page, held, || {
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

    /// Makes a write to one page if it can be made without the engine: the page is in memory and dirty, and not held.
    pub(crate) fn try_write(&self, buf: &[u8], offset: u64) -> bool {
        let Ok(mut pieces) = self.pieces(buf.len(), offset) else { return false };
        match (pieces.next(), pieces.next()) {
            (Some(piece), None) => self.is_writable() && self.try_write_piece(&piece, buf),
            _ => false,
        }
    }

    /// Writes to a page, within a span; returns its frame if a guard holds it.
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
        // Before another task or a device can see the page: its end is behind these bytes.
        self.length.grow_to(end);
        drop(writing);
        if let Some(owed) = owed {
            self.memory.guarded(|_| owed.pay())?;
        }
        Ok(None)
    }

    fn write_page(&self, page: u64, waits: bool) -> Result<Option<PageMut<'_>>, Error> {
        self.writable()?;
        let machine = &*self.memory.machine;
        let mut wait = machine.guard_wait();
        loop {
            let len = self.bytes_of_page(page)?;
            if let Some(writing) = self.try_overwrite(page, page * PAGE_SIZE + len) {
                return PageMut::new((machine, self.path()), writing, len as usize).map(Some);
            }
            // No byte is taken away before the page is held, and a call that does so afterwards sees that.
            let end = page * PAGE_SIZE + len;
            let span = Span::up_to(self, 0).map_err(|error| self.error_up_to(end, error))?;
            let len = self.bytes_of_page(page)?;
            // All of it may stay unchanged.
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
                    return PageMut::new((machine, self.path()), writing, len as usize).map(Some);
                }
                Begun::Held(_) if !waits => return Ok(None),
                Begun::Held(pfn) => {
                    drop(span);
                    machine
                        .await_guard(&mut wait, self.id, page, pfn, || machine.arena.is_free_to_write(pfn))?;
                }
            }
        }
    }
}

/// A call during which no byte of a file is taken away.
struct Span<'a>(&'a Inner);

impl<'a> Span<'a> {
    /// One that may write up to a byte of the file, also beyond its end.
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
