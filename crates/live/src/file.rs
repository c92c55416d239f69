//! [`File`]: opening it, and reading pages through the cache. Writing is in `write.rs`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_engine::{Bdi, FileId, ObjectId, PAGE_SIZE, Pfn, Word};

use crate::arena::Pin;
use crate::error::Error;
use crate::guard::PageRef;
use crate::length::Length;
use crate::local;
use crate::machine::{Opened, Unwritten, Want};
use crate::memory::{Group, Shared};
use crate::pending::{Flight, Pending, TOGETHER_MAX};
use crate::ring::Read;
use crate::stat::Identity;
use crate::storage::{self, Storage};

/// How often a page is copied without a pin before it is pinned for that.
pub(crate) const TRIES: u32 = 2;

/// How a file is to be opened.
#[derive(Clone, Debug)]
#[must_use]
pub struct Open {
    pub(crate) is_buffered: bool,
    is_random: bool,
    pub(crate) is_writable: bool,
    pub(crate) creates: bool,
    /// The caller locks the file for itself.
    pub(crate) has_own_locks: bool,
    /// As the system says where nobody has.
    is_stable: Option<bool>,
    group: Option<Group>,
    #[cfg(test)]
    faults: Option<Arc<dyn storage::failing::Faults>>,
    #[cfg(test)]
    device: Option<u64>,
}

impl Open {
    /// For reading: nobody but this cache writes it as long as it is open. Its pages are read past the system's own cache, read ahead where reads
    /// follow each other, and charged to the group of all.
    pub fn read() -> Open {
        Open {
            is_buffered: false,
            is_random: false,
            is_writable: false,
            creates: false,
            has_own_locks: false,
            is_stable: None,
            group: None,
            #[cfg(test)]
            faults: None,
            #[cfg(test)]
            device: None,
        }
    }

    /// For reading and writing. From then on the file is this cache's, until it is forgotten: what others write to it is not noticed.
    pub fn read_write() -> Open {
        Open { is_writable: true, ..Open::read() }
    }

    /// Makes the file if there is none. Of those that are written. Default: no.
    pub fn create(mut self, creates: bool) -> Open {
        self.creates = creates;
        self
    }

    /// The callers see to it that nobody else writes the file meanwhile, by locks of their own. If not, a file that is opened for writing gets an exclusive
    /// flock(2) until nobody has it open and all is written: another [`crate::Memory`], of this process or another one, that would write it
    /// gets [`Error::Locked`]. Another handle opens no descriptor if the file has one that serves, as to close one would end all POSIX locks of the
    /// process on the file; it is closed when the file is forgotten, or nobody has it open. Default: no.
    pub fn own_locks(mut self, has_own_locks: bool) -> Open {
        self.has_own_locks = has_own_locks;
        self
    }

    pub(crate) fn takes_lock(&self) -> bool {
        self.is_writable && !self.has_own_locks
    }

    /// Whoever writes to a page waits while its device has it: for devices and file systems that compute a checksum before they have read all of it. If
    /// not, such a page is written once more. Default: on btrfs, and on devices that ask for it (`queue/stable_writes` in /sys/block), if the file is not
    /// `buffered`. A file system that lies over another hides what that one wants.
    pub fn stable_writes(mut self, is_stable: bool) -> Open {
        self.is_stable = Some(is_stable);
        self
    }

    /// With what can go wrong on a device.
    #[cfg(test)]
    pub(crate) fn faults(mut self, faults: Arc<dyn storage::failing::Faults>) -> Open {
        self.faults = Some(faults);
        self
    }

    /// As if the file were on the device with this number.
    #[cfg(test)]
    pub(crate) fn device(mut self, number: u64) -> Open {
        self.device = Some(number);
        self
    }

    /// The number of the device that the file is on.
    pub(crate) fn device_of(&self, identity: Identity) -> u64 {
        #[cfg(test)]
        if let Some(number) = self.device {
            return number;
        }
        identity.device()
    }

    /// What the file is read and written by.
    fn storage(&self, file: Arc<std::fs::File>, path: &Path) -> Result<Arc<dyn Storage>, Error> {
        #[cfg(test)]
        if let Some(faults) = &self.faults {
            let real = storage::Real::new(file);
            return Ok(Arc::new(storage::failing::Failing::new(real, Arc::clone(faults))));
        }
        storage::of(file, path)
    }

    /// Through the system's page cache where `is_buffered`: for file systems without direct I/O. Pages may be in memory twice then, and what the
    /// system keeps is not in the budget. Default: no.
    pub fn buffered(mut self, is_buffered: bool) -> Open {
        self.is_buffered = is_buffered;
        self
    }

    /// Reads follow no order: nothing is read ahead.
    pub fn random(mut self) -> Open {
        self.is_random = true;
        self
    }

    /// Charges what is read through this handle to a group.
    pub fn group(mut self, group: &Group) -> Open {
        self.group = Some(group.clone());
        self
    }
}

/// A file whose pages are read and written through the cache. Clones share it; it is closed with the last one, and its pages stay as long as they are
/// worth it.
#[derive(Clone)]
pub struct File(pub(crate) Arc<Inner>);

/// What the clones of a file share.
pub(crate) struct Inner {
    pub(crate) memory: Arc<Shared>,
    pub(crate) id: FileId,
    pub(crate) object: ObjectId,
    /// Tells it from all files that have its number before or after.
    pub(crate) serial: u64,
    pub(crate) group: usize,
    pub(crate) length: Arc<Length>,
    is_writable: bool,
    path: PathBuf,
}

/// One read of a batch ([`File::read_batch`]).
#[derive(Debug)]
pub struct ReadAt<'a> {
    /// Where to, and how much.
    pub buf: &'a mut [u8],
    /// From which byte of the file on.
    pub offset: u64,
}

/// The part of a read that is of one page.
pub(crate) struct Piece {
    pub(crate) want: Want,
    /// From which byte of the page on.
    pub(crate) skip: usize,
    /// Where it is in the buffer.
    pub(crate) to: Range<usize>,
}

impl Piece {
    /// The byte of the file before which it ends.
    pub(crate) fn end(&self) -> u64 {
        self.want.page * PAGE_SIZE + (self.skip + self.to.len()) as u64
    }

    /// Copies it out of its page.
    pub(crate) fn copy(&self, page: &[u8], buf: &mut [u8]) {
        let to = &mut buf[self.to.clone()];
        to.copy_from_slice(&page[self.skip..][..to.len()]);
    }
}

/// How pages of a file will be read ([`File::advise`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing is known of it: pages are read ahead where reads follow each other. It is about all that is read through the handle.
    Normal,
    /// From front to back: twice as far ahead. It is about all that is read through the handle.
    Sequential,
    /// In no order: nothing is read ahead. It is about all that is read through the handle.
    Random,
    /// Once: a read is no use that counts. It is about all that is read through the handle.
    NoReuse,
    /// Soon: as much is read as the kernel reads on `POSIX_FADV_WILLNEED`, a request's worth. [`File::prefetch`] asks for all of it.
    WillNeed,
    /// Not soon: pages go that nobody uses.
    DontNeed,
}

impl File {
    pub(crate) fn open(memory: &Arc<Shared>, path: &Path, how: &Open) -> Result<File, Error> {
        let io = |op, source| Error::Io { op, path: path.to_owned(), page: None, source };
        // Who opens a pipe waits until somebody has its other end, and a device has no length to go by.
        if let Ok(there) = std::fs::metadata(path)
            && !there.is_file()
        {
            return Err(Error::NoRegularFile { path: path.to_owned() });
        }
        let group = match &how.group {
            Some(group) if Arc::ptr_eq(&group.shared, memory) => group.number,
            Some(_) => {
                return Err(
                    pageout_engine::ConfigError::Unknown("such group in this cache".to_owned()).into()
                );
            }
            None => 0,
        };
        // A descriptor that is closed ends all POSIX locks of the process on the file: callers with locks of their own get no second one.
        let known =
            if how.has_own_locks { memory.guarded(|machine| machine.known(path, how))? } else { None };
        let (file, disk) = match known {
            Some((file, disk)) => (file, Some(disk)),
            None => (Arc::new(memory.guarded(|machine| machine.open_descriptor(path, how))?), None),
        };
        let identity = Identity::of(&file).map_err(|error| io("opening", error))?;
        let is_stable = how.is_writable
            && how.is_stable.unwrap_or_else(|| !how.is_buffered && crate::queue::wants_stable_pages(&file));
        let disk = match disk {
            Some(disk) => disk,
            None => how.storage(Arc::clone(&file), path)?,
        };
        memory.guarded(|machine| {
            let opened = Opened { path, how, file, disk, identity, is_stable };
            let (mut locked, id, has_changed) = machine.meet_in_time(&opened)?;
            let length = Arc::clone(&locked.file_mut(id).length);
            let owner = locked.files.owner;
            let object = locked.engine.open(owner, id)?;
            let most = machine.limits.handles;
            if object.0 >= most {
                locked.engine.close(owner, object)?;
                return Err(Error::TooManyHandles { most });
            }
            if how.is_random {
                locked.engine.fadvise(owner, object, pageout_engine::Advice::Random)?;
            }
            let serial = locked.opened(id, object);
            drop(locked);
            let (memory, path, is_writable) = (Arc::clone(memory), path.to_owned(), how.is_writable);
            let file = File(Arc::new(Inner { memory, id, object, serial, group, length, is_writable, path }));
            if has_changed {
                // Another program has written it while other handles had it open: all see it as it is now.
                machine.reload(&file.0, false)?;
            }
            Ok(file)
        })
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.0.bytes()
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes from an offset on: all of them, or none that count.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`] where the file ends before; [`Error::Io`], [`Error::Shortened`], [`Error::OutOfMemory`] where a page can't be had.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        self.0.read_at(buf, offset)
    }

    /// Holds a page, to be read in place. It stays in memory as long as the guard is there.
    ///
    /// # Errors
    /// As [`File::read_at`]; and [`Error::Pinned`] where guards hold a quarter of all frames.
    #[inline]
    pub fn page(&self, page: u64) -> Result<PageRef<'_>, Error> {
        let file = &*self.0;
        let mut len = file.bytes_of_page(page)?;
        if let Some((pin, pins)) = file.try_pin(page, len) {
            return PageRef::new(file, pin, len as usize, pins);
        }
        loop {
            let pin = file.bring_in(Want { page, bytes: len })?;
            if file.length.reaches(page * PAGE_SIZE + len) {
                return PageRef::counted(file, pin, len as usize);
            }
            drop(pin);
            len = file.bytes_of_page(page)?;
        }
    }

    /// Looks at a page without copying it for good: `look` gets its bytes under a guard.
    ///
    /// # Errors
    /// As [`File::page`].
    pub fn with_page<T>(&self, page: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        Ok(look(&self.page(page)?))
    }

    /// Makes several reads, in any order. What is in memory is copied at once, and the rest is in flight together, 32 pages at most.
    ///
    /// # Errors
    /// As [`File::read_at`], of any of them; the others may have been made.
    pub fn read_batch(&self, reads: &mut [ReadAt<'_>]) -> Result<(), Error> {
        let file = &*self.0;
        let cuts = file.length.cuts();
        let missing = file.copy_what_is_there(reads)?;
        for missing in missing.chunks(TOGETHER_MAX) {
            let brought = file.memory.guarded(|machine| {
                let wants = missing.iter().map(|(_, piece)| piece.want);
                machine.bring_in_all(file, file.group, wants, |at, pin| {
                    let (read, piece) = &missing[at];
                    file.show(piece, pin, reads[*read].buf)
                })
            });
            // A small group may have no room for all of them at once: one after the other has, or says why not.
            if brought.is_err() {
                for (read, piece) in missing {
                    file.read_piece(piece, reads[*read].buf)?;
                }
            }
        }
        if !file.length.is_uncut_since(cuts) {
            // Pages of one read may be of different moments.
            let several = reads.iter_mut().filter(|read| Inner::is_of_several(read));
            for read in several {
                file.read_at(read.buf, read.offset)?;
            }
        }
        Ok(())
    }

    /// Begins several reads, and waits for none of them: what is in memory is copied at once, and the rest is in flight together, 32 pages at most.
    /// The thread may wait for them later, or await them where it has an executor.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Forgotten`], [`Error::Poisoned`]; what else goes wrong is told to who waits.
    pub fn submit<'a>(&self, mut reads: Vec<ReadAt<'a>>) -> Result<Pending<'a>, Error> {
        let cuts = self.0.length.cuts();
        let missing = self.0.copy_what_is_there(&mut reads)?;
        Pending::new(self.clone(), reads, missing, cuts)
    }

    /// Has bytes of the file read that are wanted soon, all of them as far as there is room, and waits for none of them.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn prefetch(&self, bytes: Range<u64>) -> Result<(), Error> {
        let Bdi { ra_pages, io_pages, .. } = Bdi::default();
        let pages = self.0.pages_of(&bytes)?;
        self.0.read_ahead(pages, ra_pages.max(io_pages).into())
    }

    /// Says how bytes of the file will be read, as posix_fadvise(2).
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn advise(&self, advice: Advice, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.0.pages_of(&bytes)?;
        let of_handle = match advice {
            Advice::Normal => pageout_engine::Advice::Normal,
            Advice::Sequential => pageout_engine::Advice::Sequential,
            Advice::Random => pageout_engine::Advice::Random,
            Advice::NoReuse => pageout_engine::Advice::NoReuse,
            Advice::WillNeed => return self.0.read_ahead(pages.clone(), (pages.end - pages.start).max(1)),
            Advice::DontNeed => return self.0.memory.guarded(|machine| machine.let_go(&self.0, pages)),
        };
        self.0.memory.guarded(|machine| {
            let mut locked = machine.drain(machine.lock()?)?;
            locked = machine.wait_if_going(locked, &self.0)?;
            let owner = locked.files.owner;
            Ok(locked.engine.fadvise(owner, self.0.object, of_handle)?)
        })
    }

    /// Writes what is dirty of the file, drops all its pages, and forgets it: no handle of it reads any more. Where its pages were is known to each other thread
    /// that has read it until that next misses a page or ends, which takes 8 bytes for each that was in memory.
    ///
    /// # Errors
    /// [`Error::Pinned`] where a guard holds one of its pages; [`Error::Sync`] where a page could not be written: the file is as it was, and
    /// [`File::forget_and_discard`] forgets it all the same. [`Error::Forgotten`] where another call has forgotten it.
    pub fn forget(self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| {
            let locked = machine.wait_if_going(machine.lock()?, &self.0)?;
            machine.forget(locked, self.0.id, Unwritten::IsWritten).map(drop)
        })
    }

    /// The same, and what could not be written, or was not yet, is lost: a way out where a device fails for good.
    ///
    /// # Errors
    /// As [`File::forget`], but for [`Error::Sync`].
    pub fn forget_and_discard(self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| {
            let locked = machine.wait_if_going(machine.lock()?, &self.0)?;
            machine.forget(locked, self.0.id, Unwritten::IsLost).map(drop)
        })
    }

    /// How the file is read and written, in a line: past the system's page cache, or through it, so that its pages may be in memory twice.
    ///
    /// # Errors
    /// [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn describe(&self) -> Result<String, Error> {
        let machine = &self.0.memory.machine;
        let mut locked = machine.wait_if_going(machine.lock()?, &self.0)?;
        let of = locked.file_mut(self.0.id);
        Ok(match (of.is_in_memory, of.is_direct) {
            (true, _) => "its file system is in memory, so each page here is in memory twice",
            (false, true) => "direct I/O, bypassing the system's page cache",
            (false, false) => "through the system's page cache: pages may be in memory twice",
        }
        .to_owned())
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("path", &self.0.path).field("bytes", &self.len()).finish_non_exhaustive()
    }
}

impl Inner {
    #[inline(always)]
    pub(crate) fn number(&self) -> usize {
        self.object.0 as usize
    }

    #[cold]
    pub(crate) fn forgotten(&self) -> Error {
        Error::Forgotten { path: self.path.clone() }
    }

    #[cold]
    pub(crate) fn beyond_end(&self, end: u64) -> Error {
        let (path, bytes) = (self.path.clone(), self.bytes());
        // It was shorter a moment ago.
        if end <= bytes { Error::CutMeanwhile { path } } else { Error::BeyondEnd { path, end, bytes } }
    }

    #[cold]
    pub(crate) fn io_error(&self, op: &'static str, source: std::io::Error) -> Error {
        Error::Io { op, path: self.path.clone(), page: None, source }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error for who may only read it.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        if self.is_writable { Ok(()) } else { Err(Error::ReadOnly { path: self.path.clone() }) }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes()
    }

    /// Bytes that the file has of a page.
    #[inline(always)]
    #[expect(clippy::manual_div_ceil, reason = "5 instructions less of a hit's 290, and no file is as long")]
    pub(crate) fn bytes_of_page(&self, page: u64) -> Result<u64, Error> {
        let bytes = self.bytes();
        if page >= (bytes + PAGE_SIZE - 1) / PAGE_SIZE {
            return Err(self.beyond_end(page.saturating_add(1).saturating_mul(PAGE_SIZE)));
        }
        Ok((bytes - page * PAGE_SIZE).min(PAGE_SIZE))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        /// Whoever makes the file shorter all the time lets no read of several pages be of one moment.
        const TRIES: u32 = 16;
        let mut pieces = self.pieces(buf.len(), offset)?;
        let Some(first) = pieces.next() else { return Ok(()) };
        let Some(mut piece) = pieces.next() else { return self.read_piece(&first, buf) };
        let cuts = self.length.cuts();
        self.read_piece(&first, buf)?;
        loop {
            self.read_piece(&piece, buf)?;
            match pieces.next() {
                Some(next) => piece = next,
                None => break,
            }
        }
        if self.length.is_uncut_since(cuts) {
            return Ok(());
        }
        for _ in 0..TRIES {
            let cuts = self.length.cuts();
            self.pieces(buf.len(), offset)?.try_for_each(|piece| self.read_piece(&piece, buf))?;
            if self.length.is_uncut_since(cuts) {
                return Ok(());
            }
        }
        Err(Error::CutMeanwhile { path: self.path.clone() })
    }

    /// Whether a read is of several pages.
    pub(crate) fn is_of_several(read: &ReadAt<'_>) -> bool {
        read.offset % PAGE_SIZE + read.buf.len() as u64 > PAGE_SIZE
    }

    /// What a read is made of, a page each.
    #[inline(always)]
    fn pieces(&self, len: usize, offset: u64) -> Result<impl Iterator<Item = Piece> + use<>, Error> {
        let end = offset.saturating_add(len as u64);
        if end > self.bytes() {
            return Err(self.beyond_end(end));
        }
        Ok(Inner::parts(len, offset))
    }

    /// What so many bytes from an offset on are made of, a page each.
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

    /// Which pages bytes are of.
    fn pages_of(&self, bytes: &Range<u64>) -> Result<Range<u64>, Error> {
        if bytes.end > self.bytes() {
            return Err(self.beyond_end(bytes.end));
        }
        if bytes.start > bytes.end {
            let what = format!("range {}..{}: it ends before it begins", bytes.start, bytes.end);
            return Err(pageout_engine::ConfigError::Unknown(what).into());
        }
        Ok(bytes.start / PAGE_SIZE..bytes.end.div_ceil(PAGE_SIZE))
    }

    fn read_ahead(&self, pages: Range<u64>, at_once: u64) -> Result<(), Error> {
        self.memory.guarded(|machine| machine.read_ahead(self, self.group, pages, at_once))
    }

    /// Begins to bring pages in for reads that are pending.
    pub(crate) fn begin_all(
        &self,
        wants: impl Iterator<Item = (usize, Want)>,
        is_alone: bool,
        flight: &Arc<Flight>,
    ) -> Result<(), Error> {
        self.memory.guarded(|machine| machine.begin_all(self, self.group, wants, is_alone, flight))
    }

    /// Nothing can be read any more.
    pub(crate) fn is_poisoned(&self) -> bool {
        let machine = &self.memory.machine;
        machine.is_poisoned() || !machine.arena.is_of_this_process()
    }

    /// Copies what is in memory of several reads; returns the rest: which read, and the part of it.
    pub(crate) fn copy_what_is_there(&self, reads: &mut [ReadAt<'_>]) -> Result<Vec<(usize, Piece)>, Error> {
        let mut missing = Vec::new();
        for (at, read) in reads.iter_mut().enumerate() {
            for piece in self.pieces(read.buf.len(), read.offset)? {
                let Piece { want, skip, to } = &piece;
                if !self.try_copy(want.page, *skip, &mut read.buf[to.clone()], want.bytes) {
                    missing.push((at, piece));
                }
            }
        }
        Ok(missing)
    }

    #[inline(always)]
    fn read_piece(&self, piece: &Piece, buf: &mut [u8]) -> Result<(), Error> {
        let Piece { want, skip, to } = piece;
        if self.try_copy(want.page, *skip, &mut buf[to.clone()], want.bytes) {
            return Ok(());
        }
        self.read_slowly(piece, buf)
    }

    #[cold]
    fn read_slowly(&self, piece: &Piece, buf: &mut [u8]) -> Result<(), Error> {
        loop {
            // It waits for whoever makes the file shorter.
            let pin = match self.bring_in(piece.want) {
                Err(Error::BeyondEnd { .. }) => return Err(self.beyond_end(piece.end())),
                brought => brought?,
            };
            match self.show(piece, &pin, buf) {
                Err(Error::CutMeanwhile { .. }) if piece.end() <= self.bytes() => {}
                Err(Error::CutMeanwhile { .. }) => return Err(self.beyond_end(piece.end())),
                shown => return shown,
            }
        }
    }

    /// Copies out of a page that somebody has pinned, if the file goes so far still.
    #[inline]
    fn show(&self, piece: &Piece, pin: &Pin<'_>, buf: &mut [u8]) -> Result<(), Error> {
        if !self.length.reaches(piece.end()) {
            return Err(Error::CutMeanwhile { path: self.path.clone() });
        }
        piece.copy(pin.bytes(), buf);
        Ok(())
    }

    /// Copies of a page that is in memory; false where it is not, or more than its word has to change.
    #[inline(always)]
    fn try_copy(&self, page: u64, skip: usize, to: &mut [u8], wanted: u64) -> bool {
        let machine = &*self.memory.machine;
        let arena = &*machine.arena;
        let copied = local::with(machine, self, |ring, local| {
            for _ in 0..TRIES {
                let word = local.words.get(page);
                if !word.is_hit() {
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
                if !self.length.reaches(page * PAGE_SIZE + (skip + to.len()) as u64) {
                    break;
                }
                arena.copy_out(pfn, skip, to);
                let now = local.words.get(page);
                if now.is_hit() && now.pfn() == pfn && gate.is_still(seen) {
                    return self.note(ring, local, Read::new(self.object, page, wanted), now);
                }
            }
            self.before_miss(ring, local)
        });
        copied.is_some()
    }

    /// The frame of a page that somebody writes to, in place or by copying to it.
    pub(crate) fn written_frame(&self, page: u64) -> Option<Pfn> {
        let machine = &*self.memory.machine;
        local::with(machine, self, |_, local| {
            let word = local.words.get(page);
            (word.is_hit() && machine.arena.gate(word.pfn()).is_written()).then(|| word.pfn())
        })
    }

    /// Pins a page that is in memory, if the file goes so far still. Returns how many pins this thread has, too.
    #[inline(always)]
    fn try_pin(&self, page: u64, wanted: u64) -> Option<(Pin<'_>, i64)> {
        let machine = &*self.memory.machine;
        local::with(machine, self, |ring, local| {
            for _ in 0..TRIES {
                let word = local.words.get(page);
                if !word.is_hit() {
                    break;
                }
                let pfn = word.pfn();
                // A hold has to be seen by all before anything else is looked at: what is behind it is fetched at the same time.
                machine.arena.fetch(pfn);
                let pin = match machine.arena.hold(pfn, ring.line) {
                    Ok(pin) => pin,
                    Err(_) if machine.awaits_move(pfn) => continue,
                    Err(_) => break,
                };
                // Between the two the frame may have become another page's.
                let now = local.words.get(page);
                if !now.is_hit() || now.pfn() != pfn {
                    continue;
                }
                if !self.length.reaches(page * PAGE_SIZE + wanted) {
                    break;
                }
                self.note(ring, local, Read::new(self.object, page, wanted), now)?;
                if pin.is_hold() {
                    return Some((pin, PageRef::UNCOUNTED));
                }
                machine.guards.taken(pfn);
                return Some((pin, ring.count_pins(1)));
            }
            self.before_miss(ring, local)
        })
    }

    /// Notes a hit: the engine has to hear of it, or only which page was read last. Nothing where it can't hear any more.
    #[inline(always)]
    fn note(
        &self,
        ring: &crate::ring::Ring,
        local: &mut local::LocalFile,
        read: Read,
        word: Word,
    ) -> Option<()> {
        let machine = &*self.memory.machine;
        let is_slow = machine.arena.is_slow(word.pfn());
        ring.count_hit(is_slow);
        let is_watched = is_slow && machine.watched_reads.holds(word.pfn());
        if word.is_settled() && !is_watched && !(local.is_watched && read.ends_call()) {
            local.last = Some(read);
            return Some(());
        }
        // What is promoted when its call is over has to be told of that.
        local.is_watched = (local.is_watched || is_watched) && !read.ends_call();
        if let Some(last) = local.last.take() {
            self.push(ring, last)?;
        }
        self.push(ring, read)
    }

    #[inline]
    fn push(&self, ring: &crate::ring::Ring, read: Read) -> Option<()> {
        if ring.push(read) { Some(()) } else { self.drain_and_push(ring, read) }
    }

    #[cold]
    fn drain_and_push(&self, ring: &crate::ring::Ring, read: Read) -> Option<()> {
        self.memory.guarded(|machine| machine.drain(machine.lock()?).map(drop)).ok()?;
        let has_room = ring.push(read);
        debug_assert!(has_room, "a ring that was just emptied");
        Some(())
    }

    /// The engine has to know which page was read last before it decides what to read ahead. It is none of what is wanted.
    #[cold]
    pub(crate) fn before_miss<T>(&self, ring: &crate::ring::Ring, local: &mut local::LocalFile) -> Option<T> {
        if let Some(last) = local.last.take() {
            self.push(ring, last)?;
        }
        None
    }

    /// Brings a page in and pins it.
    #[cold]
    fn bring_in(&self, want: Want) -> Result<Pin<'_>, Error> {
        self.memory.guarded(|machine| machine.bring_in(self, self.group, want))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Where something has panicked nobody needs to know.
        let _ = self.memory.guarded(|machine| machine.close(self.id, self.serial));
    }
}
