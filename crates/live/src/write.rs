//! Writing pages through the cache.

use crate::arena::Writing;
use crate::error::Error;
use crate::file::{File, Inner, Piece, TRIES};
use crate::gate::Unpinned;
use crate::guard::PageMut;
use crate::local;
use crate::machine::{Part, Writable};

use pageout_engine::PAGE_SIZE;

impl File {
    /// Writes bytes from an offset on: all of them, or an error, after which some may be written. They are in memory, and dirty, when this returns; a sync
    /// has them on the device. Behind the end the file gets longer, and what was never written in between is zeroes. Where more is dirty than may be
    /// (`vm.dirty_ratio`), the writer is made to wait, and where a guard holds a page, too.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::TooManyFiles`] where the file would get too long; [`Error::Io`], [`Error::Shortened`], [`Error::OutOfMemory`] where the
    /// rest of a page can't be read, or there is no room for it.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> Result<(), Error> {
        let file = &*self.0;
        file.writable()?;
        let end = offset.checked_add(buf.len() as u64).ok_or_else(|| file.beyond_end(u64::MAX))?;
        if buf.is_empty() || end <= file.bytes() {
            return Inner::parts(buf.len(), offset).try_for_each(|piece| file.write_piece(&piece, buf));
        }
        file.memory.guarded(|machine| machine.extend(file, end))?;
        let written = Inner::parts(buf.len(), offset).try_for_each(|piece| file.write_piece(&piece, buf));
        file.memory.machine.has_extended(file);
        written
    }

    /// Has all that was written before on the device, with what it takes to find it there: fdatasync(2).
    ///
    /// # Errors
    /// [`Error::Sync`] where some of it could not be written. It stays dirty and readable, is tried again, and each sync of the file says so until
    /// [`File::acknowledge`].
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
        self.0.memory.guarded(|machine| machine.set_len(&self.0, self.0.group, bytes))
    }

    /// Takes the file as it is on its device, where somebody else has written it: all pages are dropped, and read again when they are wanted, and its length is
    /// that on the device. What was written here and was not synced is lost. Handles go on, and its descriptor stays open: to close one would end all POSIX locks
    /// of the process on the file.
    ///
    /// # Errors
    /// [`Error::Pinned`] where a guard holds one of its pages, and nothing has changed; [`Error::TooManyFiles`]; [`Error::Io`].
    pub fn reload(&self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.reload(&self.0))
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
    fn write_piece(&self, piece: &Piece, buf: &[u8]) -> Result<(), Error> {
        let (page, skip, from) = (piece.want.page, piece.skip, &buf[piece.to.clone()]);
        let end = page * PAGE_SIZE + (skip + from.len()) as u64;
        if let Some(mut writing) = self.try_overwrite(page, end, true) {
            writing.bytes_mut()[skip..skip + from.len()].copy_from_slice(from);
            return Ok(());
        }
        let part = Part { page, skip, len: from.len() };
        let begun = self.memory.guarded(|machine| machine.begin_write(self, self.group, part, true))?;
        let Writable { mut writing, is_new } = begun.expect("it waits for whoever has it");
        let bytes = writing.bytes_mut();
        if is_new {
            bytes[..skip].fill(0);
            bytes[skip + from.len()..].fill(0);
        }
        bytes[skip..skip + from.len()].copy_from_slice(from);
        // Before anybody else, a device included, can see the page: its end is behind these bytes.
        self.has_grown_to(end);
        Ok(())
    }

    /// A page that is dirty already, to be written to up to a byte of the file; nothing where the engine has to hear of it.
    #[inline]
    fn try_overwrite(&self, page: u64, end: u64, waits: bool) -> Option<Writing<'_>> {
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
                        // Between the two it may have been written to its device, or the frame may have become another page's.
                        let now = local.words.get(page);
                        if now.is_overwritten_freely() && now.pfn() == pfn && end <= self.bytes() {
                            ring.count_hit(arena.is_slow(pfn));
                            return Some(writing);
                        }
                    }
                    Err(Unpinned::Closed) if machine.awaits_move(pfn) => {}
                    Err(Unpinned::Closed) => break,
                    Err(_) if waits => machine.await_others(pfn),
                    Err(_) => break,
                }
            }
            self.before_miss(ring, local)
        })
    }

    fn write_page(&self, page: u64, waits: bool) -> Result<Option<PageMut<'_>>, Error> {
        self.writable()?;
        let len = self.bytes_of_page(page)? as usize;
        let end = page * PAGE_SIZE + len as u64;
        if let Some(writing) = self.try_overwrite(page, end, waits) {
            return PageMut::new(self, writing, len).map(Some);
        }
        // All of it may stay as it is.
        let part = Part { page, skip: PAGE_SIZE as usize, len: 0 };
        let begun = self.memory.guarded(|machine| machine.begin_write(self, self.group, part, waits))?;
        let Some(Writable { mut writing, is_new }) = begun else { return Ok(None) };
        if is_new {
            writing.bytes_mut().fill(0);
        }
        PageMut::new(self, writing, len).map(Some)
    }
}
