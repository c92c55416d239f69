//! [`File`]: opening it, and reading pages through the cache. Writing is in `write.rs`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_engine::{Bdi, FileId, ObjectId, PAGE_SIZE, Word};

use crate::error::Error;
use crate::guard::PageRef;
use crate::length::Length;
use crate::local::LocalFile;
use crate::machine::{Accessed, Opened, Place, Unwritten, Want};
use crate::memory::{Group, Shared};
use crate::paged::{OfThread, Paged};
use crate::pending::{Pending, Reader};
use crate::reader::FileReader;
use crate::ring::{Read, Ring};
use crate::stat::Identity;
use crate::stats::FileStats;
use crate::storage::{self, EmulatedDisk, Storage};

/// Options for opening a file.
#[derive(Clone, Debug)]
#[must_use]
pub struct Open {
    pub(crate) is_buffered: bool,
    is_random: bool,
    pub(crate) is_writable: bool,
    pub(crate) creates: bool,
    /// The caller locks the file itself.
    pub(crate) has_own_locks: bool,
    /// The system's setting, if none was given.
    is_stable: Option<bool>,
    group: Option<Group>,
    disk: Option<EmulatedDisk>,
    #[cfg(test)]
    faults: Option<Arc<dyn storage::failing::Faults>>,
    #[cfg(test)]
    device: Option<u64>,
}

impl Open {
    /// Opens for reading: only this cache may write the file while it is open. Its pages bypass the system's own cache, are read ahead if reads
    /// follow each other, and are charged to the root group.
    pub fn read() -> Open {
        Open {
            is_buffered: false,
            is_random: false,
            is_writable: false,
            creates: false,
            has_own_locks: false,
            is_stable: None,
            group: None,
            disk: None,
            #[cfg(test)]
            faults: None,
            #[cfg(test)]
            device: None,
        }
    }

    /// Opens for reading and writing. From then on the file is this cache's, until it is forgotten: the cache does not notice writes of others.
    pub fn read_write() -> Open {
        Open { is_writable: true, ..Open::read() }
    }

    /// Creates the file if it does not exist. For files opened for writing. Default: no.
    pub fn create(mut self, creates: bool) -> Open {
        self.creates = creates;
        self
    }

    /// The callers guarantee by their own locks that no other process writes the file meanwhile. Without this, a file that is opened for writing gets
    /// an exclusive flock(2) until it is closed and all its pages are written. Another [`crate::Memory`], of this process or another one, that wants
    /// to write the file gets [`Error::Locked`]. With it, another handle opens no further descriptor if the file has a suitable one, because closing
    /// a descriptor ends all POSIX locks of the process on the file. The descriptor is closed when the file is forgotten or closed. Default: no.
    pub fn own_locks(mut self, has_own_locks: bool) -> Open {
        self.has_own_locks = has_own_locks;
        self
    }

    pub(crate) fn takes_lock(&self) -> bool {
        self.is_writable && !self.has_own_locks
    }

    /// Makes writers of a page wait while its device reads it. For devices and file systems that compute a checksum before they have read the
    /// complete page. Without this, such a page is written once more. Default: on btrfs, and on devices that ask for it (`queue/stable_writes` in
    /// /sys/block), if the file is not `buffered`. A stacked file system hides this need of the lower one.
    pub fn stable_writes(mut self, is_stable: bool) -> Open {
        self.is_stable = Some(is_stable);
        self
    }

    /// Adds a model of failures on a device.
    #[cfg(test)]
    pub(crate) fn faults(mut self, faults: Arc<dyn storage::failing::Faults>) -> Open {
        self.faults = Some(faults);
        self
    }

    /// Pretends that the file is on the device with this number.
    #[cfg(test)]
    pub(crate) fn device(mut self, number: u64) -> Open {
        self.device = Some(number);
        self
    }

    /// The number of the file's device.
    pub(crate) fn device_of(&self, identity: Identity) -> u64 {
        #[cfg(test)]
        if let Some(number) = self.device {
            return number;
        }
        self.disk.as_ref().map_or_else(|| identity.device(), EmulatedDisk::device)
    }

    /// The storage that the file is read from and written to.
    fn storage(&self, file: Arc<std::fs::File>, path: &Path) -> Result<Arc<dyn Storage>, Error> {
        #[cfg(test)]
        if let Some(faults) = &self.faults {
            let real = storage::Real::new(file);
            return Ok(Arc::new(storage::failing::Failing::new(real, Arc::clone(faults))));
        }
        let storage = storage::of(file, path, false)?;
        Ok(match &self.disk {
            Some(disk) => Arc::new(disk.file(storage)),
            None => storage,
        })
    }

    /// Uses the system's page cache if `is_buffered`: for file systems without direct I/O. Pages may then be in memory twice, and the system's copy
    /// is not part of the budget. Default: no.
    pub fn buffered(mut self, is_buffered: bool) -> Open {
        self.is_buffered = is_buffered;
        self
    }

    /// Puts the file on an emulated disk: its reads and writes take as long as that needs. A file that is open already stays on the disk where it is. Default: the
    /// file's own device.
    pub fn on_disk(mut self, disk: &EmulatedDisk) -> Open {
        self.disk = Some(disk.clone());
        self
    }

    /// Declares that reads have no order: there is no readahead.
    pub fn random(mut self) -> Open {
        self.is_random = true;
        self
    }

    /// Charges pages that are read through this handle to a group.
    pub fn group(mut self, group: &Group) -> Open {
        self.group = Some(group.clone());
        self
    }
}

/// A file whose pages are read and written through the cache. Clones share it. It is closed with the last one, and its pages stay in memory until
/// they are evicted.
#[derive(Clone)]
pub struct File(pub(crate) Arc<Inner>);

/// State that the clones of a file share.
pub(crate) struct Inner {
    pub(crate) memory: Arc<Shared>,
    pub(crate) id: FileId,
    pub(crate) object: ObjectId,
    /// Distinguishes it from all files that have its number before or after.
    pub(crate) serial: u64,
    pub(crate) group: usize,
    pub(crate) length: Arc<Length>,
    is_writable: bool,
    path: PathBuf,
}

/// One read of a batch ([`File::read_batch`]).
#[derive(Debug)]
pub struct ReadAt<'a> {
    /// The buffer; its length is the length of the read.
    pub buf: &'a mut [u8],
    /// Offset of the read in the file, in bytes.
    pub offset: u64,
}

/// One write of a batch ([`File::write_batch`]).
#[derive(Clone, Copy, Debug)]
pub struct WriteAt<'a> {
    /// The bytes.
    pub buf: &'a [u8],
    /// Offset of the write in the file or region, in bytes.
    pub offset: u64,
}

/// The part of a read that is on one page.
pub(crate) struct Piece {
    pub(crate) want: Want,
    /// Offset of the part in the page, in bytes.
    pub(crate) skip: usize,
    /// Position of the part in the buffer.
    pub(crate) to: Range<usize>,
}

impl Piece {
    /// The end of the part in the file, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.want.page * PAGE_SIZE + (self.skip + self.to.len()) as u64
    }

    /// Copies it from its page.
    pub(crate) fn copy(&self, page: &[u8], buf: &mut [u8]) {
        let to = &mut buf[self.to.clone()];
        to.copy_from_slice(&page[self.skip..][..to.len()]);
    }
}

/// The expected order of reads of a file ([`File::advise`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// No particular order: pages are read ahead if reads follow each other. Applies to all reads through the handle.
    Normal,
    /// From front to back: readahead goes twice as far. Applies to all reads through the handle.
    Sequential,
    /// In random order: no readahead. Applies to all reads through the handle.
    Random,
    /// Once: a read does not count as a use. Applies to all reads through the handle.
    NoReuse,
    /// Soon: reads as much as the kernel does on `POSIX_FADV_WILLNEED`, which is one request. [`File::prefetch`] reads the complete range.
    WillNeed,
    /// Not soon: drops pages that are not in use.
    DontNeed,
}

impl File {
    pub(crate) fn open(memory: &Arc<Shared>, path: &Path, how: &Open) -> Result<File, Error> {
        let io = |op, source| Error::Io { op, path: path.to_owned(), page: None, source };
        // Opening a pipe would wait until its other end is opened, and a device has no usable length.
        if let Ok(there) = std::fs::metadata(path)
            && !there.is_file()
        {
            return Err(Error::NoRegularFile { path: path.to_owned() });
        }
        let group = match &how.group {
            Some(group) if Arc::ptr_eq(&group.shared, memory) => group.place,
            Some(_) => {
                return Err(
                    pageout_engine::ConfigError::Unknown("such group in this cache".to_owned()).into()
                );
            }
            None => Place::ROOT,
        };
        // Closing a descriptor ends all POSIX locks of the process on the file: callers with their own locks get no second one.
        let known =
            if how.has_own_locks { memory.guarded(|machine| machine.known(path, how))? } else { None };
        let (file, disk) = match known {
            Some((file, disk)) => (file, Some(disk)),
            None => (Arc::new(memory.guarded(|machine| machine.open_descriptor(path, how))?), None),
        };
        if group != Place::ROOT {
            // Before the file is known: the group is checked again when the handle is in it.
            memory.guarded(|machine| machine.lock()?.check_group(group))?;
        }
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
            locked.check_group(group)?;
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
            let group = group.number;
            let serial = locked.opened(id, object, group);
            drop(locked);
            let (memory, path, is_writable) = (Arc::clone(memory), path.to_owned(), how.is_writable);
            let file = File(Arc::new(Inner { memory, id, object, serial, group, length, is_writable, path }));
            if has_changed {
                // Another program has written it while other handles had it open: all see its current contents.
                machine.reload(&file.0, false)?;
            }
            Ok(file)
        })
    }

    /// Returns the length of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.0.bytes()
    }

    /// Returns whether the file has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes from an offset on. Either all of them are read, or the call fails and the contents of the buffer are undefined.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`] if the file ends before; [`Error::Io`], [`Error::Shortened`], [`Error::OutOfMemory`] if a page is unavailable.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        self.0.read_at(buf, offset)
    }

    /// Returns a guard that holds a page, to read it in place. The page stays in memory as long as the guard exists.
    ///
    /// # Errors
    /// The same as [`File::read_at`]; and [`Error::Pinned`] if guards hold a quarter of all frames.
    #[inline]
    pub fn page(&self, page: u64) -> Result<PageRef<'_>, Error> {
        let file = &*self.0;
        let len = file.bytes_of_page(page)?;
        match file.try_hold(page, len) {
            Some(held) => Ok(PageRef::held(held, len as usize)),
            None => file.page_slowly(page, len),
        }
    }

    /// Returns a reader of this thread. It holds and copies pages in memory faster than the file itself, as it does not look up the thread's data
    /// of the file.
    ///
    /// # Errors
    /// [`Error::Forgotten`], [`Error::Poisoned`].
    ///
    /// ```no_run
    /// # let memory = pageout::Memory::builder().build()?;
    /// let file = memory.open("index.bin", pageout::Open::read().random())?;
    /// let reader = file.reader()?;
    /// let sum: u64 = (0..1000).map(|page| Ok(u64::from(reader.page(page)?[0]))).sum::<Result<_, pageout::Error>>()?;
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn reader(&self) -> Result<FileReader<'_>, Error> {
        FileReader::new(&self.0)
    }

    /// Reads a page without a lasting copy: `look` gets its bytes under a guard.
    ///
    /// # Errors
    /// The same as [`File::page`].
    #[inline]
    pub fn with_page<T>(&self, page: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        let file = &*self.0;
        let len = file.bytes_of_page(page)?;
        match file.try_hold(page, len) {
            Some(held) => Ok(look(&held.bytes()[..len as usize])),
            None => file.page_slowly(page, len).map(|page| look(&page)),
        }
    }

    /// Makes several reads, in any order. Pages in memory are copied immediately, and the rest is in flight together, 32 pages at most.
    ///
    /// # Errors
    /// The same as [`File::read_at`], for any of them; the others may have been made.
    pub fn read_batch(&self, reads: &mut [ReadAt<'_>]) -> Result<(), Error> {
        self.0.read_batch(reads).map_err(|error| self.0.error_of_reads(reads, error))
    }

    /// Starts several reads, and waits for none of them. Pages in memory are copied immediately, and the rest is in flight together, 32 pages at
    /// most. The thread may wait for the reads later, or await them if it has an executor.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Forgotten`], [`Error::Poisoned`]; other errors are returned by the wait.
    pub fn submit<'a>(&self, mut reads: Vec<ReadAt<'a>>) -> Result<Pending<'a>, Error> {
        let cuts = self.0.length.cuts();
        let missing = self.0.copy_what_is_there(&mut reads)?;
        Pending::new(Reader::File(self.clone()), reads, missing, cuts)
    }

    /// Starts reading bytes of the file that are needed soon, as far as memory is free, and does not wait for them.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn prefetch(&self, bytes: Range<u64>) -> Result<(), Error> {
        let Bdi { ra_pages, io_pages, .. } = Bdi::default();
        let pages = self.0.pages_of(&bytes)?;
        let outcome = self.0.read_ahead(pages, ra_pages.max(io_pages).into());
        outcome.map_err(|error| self.0.error_up_to(bytes.end, error))
    }

    /// Announces how bytes of the file will be read, as posix_fadvise(2).
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn advise(&self, advice: Advice, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.0.pages_of(&bytes)?;
        self.advise_pages(advice, pages).map_err(|error| self.0.error_up_to(bytes.end, error))
    }

    fn advise_pages(&self, advice: Advice, pages: Range<u64>) -> Result<(), Error> {
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

    /// Writes the file's dirty pages, drops all its pages, and forgets it: no handle of it can read any more. Each other thread that has read the
    /// file remembers the places of its pages until its next miss or its end. This takes 8 bytes for each page that was in memory.
    ///
    /// # Errors
    /// [`Error::Pinned`] if a guard holds one of its pages. [`Error::Sync`] if a page could not be written: the file is unchanged, and
    /// [`File::forget_and_discard`] still forgets it. [`Error::Forgotten`] if another call has forgotten it.
    pub fn forget(self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| {
            let locked = machine.wait_if_going(machine.lock()?, &self.0)?;
            machine.forget(locked, self.0.id, Unwritten::IsWritten).map(drop)
        })
    }

    /// The same, but unwritten data is lost: a way out if a device fails permanently.
    ///
    /// # Errors
    /// The same as [`File::forget`], except [`Error::Sync`].
    pub fn forget_and_discard(self) -> Result<(), Error> {
        self.0.memory.guarded(|machine| {
            let locked = machine.wait_if_going(machine.lock()?, &self.0)?;
            machine.forget(locked, self.0.id, Unwritten::IsLost).map(drop)
        })
    }

    /// Returns what the file's handles have counted, and what its pages did.
    ///
    /// # Errors
    /// [`Error::Forgotten`], [`Error::Poisoned`].
    pub fn stats(&self) -> Result<FileStats, Error> {
        self.0.memory.guarded(|machine| machine.file_stats(&self.0))
    }

    /// Describes in one line how the file is read and written: bypassing the system's page cache, or through it, so that its pages may be in memory
    /// twice.
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
    #[cold]
    pub(crate) fn forgotten(&self) -> Error {
        Error::Forgotten { path: self.path.clone() }
    }

    /// The error of several reads up to the end of each ([`Paged::error_up_to`]).
    #[cold]
    pub(crate) fn error_of_reads(&self, reads: &[ReadAt<'_>], error: Error) -> Error {
        let mut ends = reads.iter().map(|read| read.offset.saturating_add(read.buf.len() as u64));
        match ends.find(|&end| end > self.bytes()) {
            Some(end) => self.error_up_to(end, error),
            None => error,
        }
    }

    #[cold]
    pub(crate) fn io_error(&self, op: &'static str, source: std::io::Error) -> Error {
        Error::Io { op, path: self.path.clone(), page: None, source }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// The error of a write through a handle for reading.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        if self.is_writable { Ok(()) } else { Err(Error::ReadOnly { path: self.path.clone() }) }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        self.read_by(buf, offset, |piece, buf| self.read_piece(piece, buf))
    }

    fn read_batch(&self, reads: &mut [ReadAt<'_>]) -> Result<(), Error> {
        let cuts = self.length.cuts();
        self.read_together(reads)?;
        if !self.length.is_uncut_since(cuts) {
            // Pages of one read may be of different points in time.
            let several = reads.iter_mut().filter(|read| Inner::is_of_several(read));
            for read in several {
                self.read_at(read.buf, read.offset)?;
            }
        }
        Ok(())
    }

    /// Reads bytes, each part by a function.
    #[inline(always)]
    pub(crate) fn read_by(
        &self,
        buf: &mut [u8],
        offset: u64,
        read: impl Fn(&Piece, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let end = offset.saturating_add(buf.len() as u64);
        self.read_all_by(buf, offset, read).map_err(|error| self.error_up_to(end, error))
    }

    #[inline(always)]
    fn read_all_by(
        &self,
        buf: &mut [u8],
        offset: u64,
        read: impl Fn(&Piece, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        /// If the file is shortened again and again, a read of several pages may never see a single point in time.
        const TRIES: u32 = 16;
        let mut pieces = self.pieces(buf.len(), offset)?;
        let Some(first) = pieces.next() else { return Ok(()) };
        let Some(mut piece) = pieces.next() else { return read(&first, buf) };
        let cuts = self.length.cuts();
        read(&first, buf)?;
        loop {
            read(&piece, buf)?;
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
            self.pieces(buf.len(), offset)?.try_for_each(|piece| read(&piece, buf))?;
            if self.length.is_uncut_since(cuts) {
                return Ok(());
            }
        }
        Err(Error::CutMeanwhile { path: self.path.clone() })
    }

    /// Returns true if a read is of several pages.
    pub(crate) fn is_of_several(read: &ReadAt<'_>) -> bool {
        read.offset % PAGE_SIZE + read.buf.len() as u64 > PAGE_SIZE
    }

    /// The pages of a range of bytes.
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
}

impl Paged for Inner {
    #[inline(always)]
    fn memory(&self) -> &Arc<Shared> {
        &self.memory
    }

    #[inline(always)]
    fn length(&self) -> &Length {
        &self.length
    }

    fn name(&self) -> &Path {
        &self.path
    }

    fn accessed(&self) -> Accessed<'_> {
        Accessed::File(self, self.group)
    }

    #[inline(always)]
    fn is_hit(word: Word) -> bool {
        word.is_hit()
    }

    #[inline(always)]
    fn is_zeroes(_: Word) -> bool {
        false
    }

    #[inline(always)]
    fn is_overwritten_freely(word: Word) -> bool {
        word.is_overwritten_freely()
    }

    /// The engine is notified of the hit, or only of which page was read last.
    #[inline(always)]
    fn note(
        &self,
        (machine, ring, local): OfThread<'_, '_>,
        page: u64,
        wanted: u64,
        word: Word,
    ) -> Option<()> {
        let read = Read::new(self.object, page, wanted);
        let is_slow = machine.arena.is_slow(word.pfn());
        ring.count_hit(is_slow);
        local.hits.count(is_slow);
        let is_watched = is_slow && machine.watched_reads.holds(word.pfn());
        if word.is_settled() && !is_watched && !(local.is_watched && read.ends_call()) {
            local.last = Some(read);
            return Some(());
        }
        // Pages that are promoted at the end of a call need a notification of that end.
        local.is_watched = (local.is_watched || is_watched) && !read.ends_call();
        if let Some(last) = local.last.take() {
            self.push(ring, last)?;
        }
        self.push(ring, read)
    }

    #[inline(always)]
    fn note_write(&self, (machine, ring, local): OfThread<'_, '_>, _: u64, word: Word) -> Option<()> {
        let is_slow = machine.arena.is_slow(word.pfn());
        ring.count_hit(is_slow);
        local.hits.count(is_slow);
        Some(())
    }

    /// The engine must know which page was read last before it decides on readahead. That page is not one of the requested ones.
    #[cold]
    fn before_miss<T>(&self, ring: &Ring, local: &mut LocalFile) -> Option<T> {
        if let Some(last) = local.last.take() {
            self.push(ring, last)?;
        }
        None
    }

    /// If the file was shortened since the length was checked, and forgotten after that, the call has the error of a later one, which checks the length
    /// first.
    #[cold]
    fn error_up_to(&self, end: u64, error: Error) -> Error {
        match error {
            Error::Forgotten { .. } if end > self.bytes() => self.beyond_end(end),
            error => error,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // After a panic, no task needs this information.
        let _ = self.memory.guarded(|machine| machine.close(self.id, self.serial));
    }
}
