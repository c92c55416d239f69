//! How long files are: changed by a call, reloaded, and set on the device.
//!
//! ```text
//!   write      enter: nobody cuts the file ─▶ room for it ─▶ the bytes ─▶ the length grows ─▶ leave          (crate::length)
//!   set_len    alone: no call is within enter and leave ─▶ longer: the device first, then here
//!                                                       └ shorter: nobody holds a page behind ─▶ zeroes, the length, pages go ─▶ the device
//!   reload     alone ─▶ every page goes ─▶ the length is the device's
//! ```
//! Pages are written completely. So a file is longer on its device than its length, by less than a page, until a sync cuts it. While the device
//! changes its length, none of its writes is in flight: one that began later might be cut off, and its page would count as written.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pageout_engine::{AccessError, FileId, ObjectId, PAGE_SIZE, Pfn, Served, Step};

use super::LiveMachine;
use super::inner::Inner;
use super::locked::Locked;
use super::open_file::OpenFile;
use super::writes::{Begun, DirtyLimits, Owed, Part, Writable};
use crate::error::Error;
use crate::file::Inner as File;

impl LiveMachine {
    /// Gives a file its own length on its device. None of its writes is in flight meanwhile.
    pub(super) fn set_len_on_device<'a>(
        &'a self,
        locked: Locked<'a>,
        file: FileId,
    ) -> Result<(Locked<'a>, std::io::Result<()>), Error> {
        self.make_long_on_device(locked, file, OpenFile::bytes)
    }

    /// Gives a file a length on its device. None of its writes is in flight meanwhile.
    fn make_long_on_device<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: FileId,
        length: impl Fn(&OpenFile) -> u64,
    ) -> Result<(Locked<'a>, std::io::Result<()>), Error> {
        let is_cut = |inner: &Inner| inner.files.open[file.0 as usize].as_ref().is_some_and(|of| of.is_cut);
        locked = self.wait_while(locked, is_cut)?;
        let of = locked.file_mut(file);
        if length(of) == of.on_disk {
            of.is_uncut = false;
            return Ok((locked, Ok(())));
        }
        of.is_cut = true;
        locked = self.wait_while(locked, |inner| {
            inner.files.open[file.0 as usize].as_ref().is_some_and(|of| of.writing > 0)
        })?;
        let of = locked.file_mut(file);
        // Not before: what was written until then may have made it longer.
        let (bytes, was, disk) = (length(of), of.on_disk, Arc::clone(&of.disk));
        // Before: a read that begins meanwhile may be of a page that is about to be cut, and the file may have grown behind it.
        of.on_disk = was.min(bytes);
        drop(locked);
        let outcome = disk.set_len(bytes);
        locked = self.lock()?;
        let of = locked.file_mut(file);
        of.is_cut = false;
        match outcome {
            Ok(()) => {
                (of.on_disk, of.needs_flush, of.is_uncut) = (bytes, true, false);
                of.look();
            }
            Err(_) => (of.on_disk, of.is_uncut) = (was, bytes < was),
        }
        self.wake_idle();
        Ok((self.begin_writes(locked)?, outcome))
    }

    /// Asks the file system about a file while none of its writes is in flight.
    pub(crate) fn look_beside_no_write<'a, T>(
        &'a self,
        mut locked: Locked<'a>,
        file: FileId,
        look: impl FnOnce(&mut OpenFile) -> T,
    ) -> Result<(Locked<'a>, T), Error> {
        // A call that forgets the file waits for this.
        locked.file_mut(file).busy += 1;
        let is_cut = |inner: &Inner| inner.files.open[file.0 as usize].as_ref().is_some_and(|of| of.is_cut);
        locked = self.wait_while(locked, is_cut)?;
        locked.file_mut(file).is_cut = true;
        locked = self.wait_while(locked, |inner| {
            inner.files.open[file.0 as usize].as_ref().is_some_and(|of| of.writing > 0)
        })?;
        let of = locked.file_mut(file);
        let seen = look(of);
        of.is_cut = false;
        of.busy -= 1;
        self.wake_idle();
        Ok((self.begin_writes(locked)?, seen))
    }

    /// Begins a call during which no byte of a file is taken away, and which may write up to a byte of it. The caller reports its end
    /// ([`crate::length::Length::leave`]).
    pub(crate) fn enter(&self, file: &File, end: u64) -> Result<(), Error> {
        let mut locked = self.lock()?;
        loop {
            locked = self.await_change(locked, file)?;
            if end > file.bytes() {
                // Others may have the lock while files are forgotten for it.
                locked = self.reserve(locked, file, end)?;
            }
            if locked.is_reachable(file) && file.length.enter() {
                return Ok(());
            }
        }
    }

    /// A thread waits for a call that has ended ([`LiveMachine::enter`]).
    #[cold]
    pub(crate) fn wake_after_span(&self) {
        // With the lock: who has just looked sleeps by then.
        if let Ok(locked) = self.lock() {
            self.wake_idle();
            drop(locked);
        }
    }

    /// Room up to a byte of a file that is longer than the file is.
    fn reserve<'a>(&'a self, mut locked: Locked<'a>, file: &'a File, end: u64) -> Result<Locked<'a>, Error> {
        if locked.file_mut(file.id).is_uncut {
            // The device's data beyond the end would come back.
            let cut;
            (locked, cut) = self.set_len_on_device(locked, file.id)?;
            cut.map_err(|source| file.io_error("setting the length", source))?;
        }
        self.reserve_room(locked, file, end)
    }

    /// Changes a file's length, to at most this number of bytes: alone, and while no call needs the length to stay.
    fn change_length<'a, T>(
        &'a self,
        file: &'a File,
        bytes: u64,
        change: impl FnOnce(Locked<'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut locked = self.drain(self.lock()?)?;
        loop {
            locked = self.await_change(locked, file)?;
            if bytes > file.bytes() {
                locked = self.reserve(locked, file, bytes)?;
            }
            // Others may have had the lock.
            if locked.is_reachable(file) && !file.length.is_changing() {
                break;
            }
        }
        // A call that forgets the file waits for this, too.
        file.length.begin_change();
        locked = self.wait_while(locked, |_| file.length.has_spans())?;
        let outcome = change(locked);
        locked = self.lock()?;
        file.length.end_change();
        self.wake_idle();
        drop(locked);
        outcome
    }

    /// Makes a file so many bytes long.
    pub(crate) fn set_len<'a>(&'a self, file: &'a File, group: usize, bytes: u64) -> Result<(), Error> {
        self.change_length(file, bytes, |mut locked| {
            let was = file.bytes();
            if bytes > was {
                let longer;
                (locked, longer) = self.make_long_on_device(locked, file.id, |_| bytes)?;
                if let Err(source) = longer {
                    locked.file_mut(file.id).reserved = was;
                    return Err(file.io_error("setting the length", source));
                }
                file.length.grow_to(bytes);
            } else if bytes < was {
                drop(locked);
                self.cut(file, group, bytes, was)?;
                locked = self.lock()?;
                let of = locked.file_mut(file.id);
                of.reserved = bytes;
                of.unwritten.retain(|&page| page * PAGE_SIZE < bytes);
                of.lost.retain(|&page| page * PAGE_SIZE < bytes);
            }
            let (_, cut) = self.set_len_on_device(locked, file.id)?;
            cut.map_err(|source| file.io_error("setting the length", source))
        })
    }

    /// Takes all pages of a file away from a byte on, in memory; or reports that one of them is held.
    fn cut(&self, file: &File, group: usize, bytes: u64, was: u64) -> Result<(), Error> {
        let (first, behind) = (bytes / PAGE_SIZE, bytes.div_ceil(PAGE_SIZE));
        let end = was.div_ceil(PAGE_SIZE);
        self.await_unpinned(file.id, first..end)?;
        let skip = (bytes % PAGE_SIZE) as usize;
        let mut last = None;
        if skip > 0 {
            let part = Part { page: first, skip, len: PAGE_SIZE as usize - skip };
            last = Some(self.begin_cut(file, group, part)?);
        }
        file.length.narrow(bytes);
        if let Err(error) = self.await_unpinned(file.id, behind..end) {
            // A call came before that.
            file.length.widen();
            if let Some(Writable { mut writing, is_new: true, .. }) = last {
                writing.bytes_mut().fill(0);
            }
            return Err(error);
        }
        if let Some(Writable { writing, is_new, .. }) = &mut last {
            writing.bytes_mut()[if *is_new { 0 } else { skip }..].fill(0);
        }
        file.length.settle(bytes);
        if let Some(Writable { writing, owed, .. }) = last {
            drop(writing);
            owed.map_or(Ok(()), Owed::pay)?;
        }
        self.take_pages(file, |locked, task, object| locked.engine.file_shrink(task, object, behind.max(1)))?;
        if behind == 0 {
            self.take_pages(file, |locked, task, object| locked.engine.truncate(task, object, 0..1))?;
        }
        Ok(())
    }

    /// The last page of a file that is to be cut within it, for the caller alone. Dirty limits do not hold it up: to cut a file is a way out where a device
    /// takes no more.
    fn begin_cut(&self, file: &File, group: usize, part: Part) -> Result<Writable<'_>, Error> {
        loop {
            match self.begin_write_as(file, group, part, DirtyLimits::Spare)? {
                Begun::Writable(writable) => return Ok(writable),
                Begun::Held(_) => self.await_unpinned(file.id, part.page..part.page + 1)?,
            }
        }
    }

    /// Takes a file from its device: no page that is in memory now stays. `discards`: unwritten data is lost; otherwise there may be no such page.
    pub(crate) fn reload<'a>(&'a self, file: &'a File, discards: bool) -> Result<(), Error> {
        self.change_length(file, 0, |mut locked| {
            if !discards && locked.engine.figures().file_dirty(file.id) != (0, 0) {
                return Err(Error::ChangedOutside { path: file.path().to_owned() });
            }
            // In this order: what lands in between is not pinned.
            file.length.narrow(0);
            locked.file_mut(file.id).copy_pins();
            drop(locked);
            let outcome = self.take_as_on_device(file);
            file.length.widen();
            outcome
        })
    }

    /// Drops all pages of a file whose length no other call changes, and takes its length from its device.
    fn take_as_on_device(&self, file: &File) -> Result<(), Error> {
        /// If the file is appended to again and again, its end may never be seen.
        const CHANGES_MAX: u32 = 16;
        let pages = self.lock()?.engine.figures().file_pages(file.id);
        self.await_unpinned(file.id, 0..pages)?;
        let mut taken = None;
        for change in 1..=CHANGES_MAX {
            let mut locked = self.lock()?;
            let of = locked.file_mut(file.id);
            if of.on_disk > of.bytes() && of.disk.len().is_ok_and(|bytes| bytes == of.on_disk) {
                // Only this cache has made it longer, by a part of a page.
                let _cut;
                (locked, _cut) = self.set_len_on_device(locked, file.id)?;
            }
            let (seen, on_disk);
            (locked, (seen, on_disk)) =
                self.look_beside_no_write(locked, file.id, |of| (of.disk.len(), of.on_disk))?;
            let bytes = seen.map_err(|source| file.io_error("looking at the length", source))?;
            if taken == Some(bytes) {
                break;
            }
            locked = self.reserve_room(locked, file, bytes)?;
            let of = locked.file_mut(file.id);
            let is_longer_by_writes = bytes == on_disk && bytes > of.bytes() && !of.is_uncut;
            if change < CHANGES_MAX && (is_longer_by_writes || of.on_disk != on_disk) {
                // A write has ended since.
                continue;
            }
            // Before pages leave: an access in progress still may bring one in up to this length, and zeroes behind it.
            of.length.resize(bytes);
            (of.reserved, of.on_disk, of.is_uncut) = (bytes, bytes, false);
            drop(locked);
            self.take_pages(file, |locked, task, object| {
                let pages = locked.engine.figures().file_pages(file.id);
                locked.engine.truncate(task, object, 0..pages)
            })?;
            taken = Some(bytes);
        }
        let mut locked = self.lock()?;
        let of = locked.file_mut(file.id);
        of.unwritten.clear();
        of.lost.clear();
        of.look();
        of.is_suspect = false;
        Ok(())
    }

    /// Waits until no thread copies from pages or to them; an error if one of them is held.
    pub(crate) fn await_unpinned(&self, file: FileId, pages: Range<u64>) -> Result<(), Error> {
        /// A thread that stays longer holds the page, and does not just copy.
        const COPIED_WITHIN: u32 = 200;
        /// The lock is free in between.
        const AT_ONCE: usize = 1024;
        let mut rest = pages;
        loop {
            let locked = self.lock()?;
            let there: Vec<_> =
                locked.engine.figures().cached_pages(file, rest.clone()).take(AT_ONCE).collect();
            drop(locked);
            let Some(&(last, _)) = there.last() else { return Ok(()) };
            rest.start = last + 1;
            for (page, pfn) in there {
                let mut tries = 0;
                while !self.arena.is_free_to_write(pfn) {
                    // The frame may be another page's by now.
                    let locked = self.lock()?;
                    let is_there = |cached: &(u64, Pfn)| *cached == (page, pfn);
                    if !locked.engine.figures().cached_pages(file, page..page + 1).any(|at| is_there(&at)) {
                        break;
                    }
                    if tries == COPIED_WITHIN {
                        return Err(locked.pinned_page(file, page));
                    }
                    // A device that has the page may keep writers out as a guard does. It ends.
                    let of = locked.files.open[file.0 as usize].as_ref();
                    let is_written = of.is_some_and(|of| of.is_stable && of.writing > 0);
                    drop(locked);
                    tries += u32::from(!is_written);
                    crate::sync::thread::sleep(Duration::from_micros(5));
                }
            }
        }
    }

    /// Makes the engine take pages of a file away, until no earlier holder of one remains.
    fn take_pages(
        &self,
        file: &File,
        mut begin: impl FnMut(
            &mut Locked<'_>,
            pageout_engine::TaskId,
            ObjectId,
        ) -> Result<Step, pageout_engine::ConfigError>,
    ) -> Result<(), Error> {
        loop {
            let mut locked = self.drain(self.lock()?)?;
            if !locked.is_reachable(file) {
                return Err(file.forgotten());
            }
            let (hired, owner) = (locked.hire(0), locked.files.owner);
            let object = locked.engine.lend((owner, file.object), hired.task)?;
            let step = begin(&mut locked, hired.task, object)?;
            let served;
            (locked, served) = self.see_through(locked, hired.task, step)?;
            drop(self.read(locked, 0)?);
            match served {
                Served::Truncated => return Ok(()),
                Served::Failed(AccessError::Held { .. }) => {
                    crate::sync::thread::sleep(Duration::from_micros(50));
                }
                other => unreachable!("a truncation ends as {other:?}"),
            }
        }
    }
}
