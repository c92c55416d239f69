//! Which files there are: how one is met again when it is opened, how many may be open, and how one is forgotten.
//!
//! ```text
//!   open      the system opens it ─▶ its inode is known? share its pages, else it gets a number          one object an inode, whoever opens it and how
//!                                    └ another program has written it: no handle: forget it; dirty pages: an error; else reload it
//!   idle      the last handle goes ─▶ pages stay ─▶ forgotten: for others' bytes, for a descriptor, when it is deleted, when there are too many
//!   forget    is_ending ─▶ what is dirty is written ─▶ is_going: no access is under way, and none begins ─▶ no page is held ─▶ its pages and number go
//! ```

use std::fmt;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pageout_engine::{Bdi, FileId, FileKind, FileSpec, PAGE_SIZE, Served};

use super::LiveMachine;
use super::locked::Locked;
use super::open_file::OpenFile;
use super::writes::Flush;
use crate::error::Error;
use crate::file::{Inner as File, Open};
use crate::local;
use crate::stat::Identity;
use crate::storage::Storage;
use crate::sync::thread;
use crate::tables::Tables;

/// Treatment of dirty data of a file that is forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unwritten {
    IsWritten,
    IsLost,
}

/// A file that may have unwritten data on its way to the device, although no handle is left to write it.
#[derive(Debug)]
pub(crate) struct Unsaved {
    path: PathBuf,
    /// Dirty pages.
    pages: u64,
    why: Error,
}

impl fmt::Display for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsaved { path, pages, why } = self;
        write!(f, "{}: ", path.display())?;
        match pages {
            // What failed has been written since, or has left memory.
            0 => f.write_str("a sync failed, and the error is not acknowledged")?,
            1 => f.write_str("1 dirty page was not written")?,
            _ => write!(f, "{pages} dirty pages were not written")?,
        }
        match why {
            // Its help is for those who still have the file open.
            Error::Sync { lost: 0, source, .. } => write!(f, ": {source}"),
            Error::Sync { lost, source, .. } => {
                write!(f, ", and {lost} that the device failed to store may be lost: {source}")
            }
            other => write!(f, ": {other}"),
        }
    }
}

/// How much of files a cache may have open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLimits {
    /// Bytes of files and regions, if they were declared.
    pub(crate) bytes: Option<u64>,
    pub(crate) handles: u32,
    /// Closed files that keep their descriptors.
    pub(crate) idle: usize,
    /// Pages of a file that are read ahead at a time, whatever its device says; none: as many as that says.
    pub(crate) ra_pages: Option<u32>,
    /// And at most so many then.
    pub(crate) ra_pages_max: u32,
}

/// A file of the system, and what reads and writes it.
type Descriptor = (Arc<std::fs::File>, Arc<dyn Storage>);

/// A file that the system has opened for a handle.
pub(crate) struct Opened<'a> {
    pub(crate) path: &'a Path,
    pub(crate) how: &'a Open,
    pub(crate) file: Arc<std::fs::File>,
    pub(crate) disk: Arc<dyn Storage>,
    pub(crate) identity: Identity,
    pub(crate) is_stable: bool,
}

impl Opened<'_> {
    /// The exclusive lock of a file that is written, which no two caches have.
    fn lock(&self) -> Result<Arc<std::fs::File>, Error> {
        match self.file.try_lock() {
            Ok(()) => Ok(Arc::clone(&self.file)),
            Err(std::fs::TryLockError::WouldBlock) => Err(Error::Locked { path: self.path.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => {
                Err(Error::Io { op: "locking, by flock(2),", path: self.path.to_owned(), page: None, source })
            }
        }
    }
}

/// Returns true if all that a file has is on its device.
fn is_clean(locked: &Locked<'_>, id: FileId) -> bool {
    locked.engine.figures().file_dirty(id) == (0, 0)
}

impl LiveMachine {
    /// Makes the system open a file. If the process has no descriptor left, closed files give theirs.
    pub(crate) fn open_descriptor(&self, path: &Path, how: &Open) -> Result<std::fs::File, Error> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(how.is_writable).create(how.is_writable && how.creates);
        if !how.is_buffered {
            options.custom_flags(libc::O_DIRECT);
        }
        loop {
            let error = match options.open(path) {
                Ok(file) => return Ok(file),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINVAL) if !how.is_buffered => {
                    return Err(Error::DirectRefused { path: path.to_owned() });
                }
                Some(libc::EMFILE | libc::ENFILE) if self.forget_an_idle_file()? => {}
                _ => {
                    return Err(Error::Io {
                        op: "opening",
                        path: path.to_owned(),
                        page: None,
                        source: error,
                    });
                }
            }
        }
    }

    /// The descriptor of a file that this cache knows, if it serves to open the file so.
    pub(crate) fn known(&self, path: &Path, how: &Open) -> Result<Option<Descriptor>, Error> {
        let Ok(identity) = Identity::of_path(path) else { return Ok(None) };
        let serves = |of: &&OpenFile| {
            of.identity.is_same_file(identity)
                && (of.is_written || !how.is_writable)
                && (of.is_written || of.is_direct || how.is_buffered)
        };
        let locked = self.lock()?;
        let known = locked.files.open.iter().flatten().find(serves);
        Ok(known.map(|of| (Arc::clone(&of.file), Arc::clone(&of.disk))))
    }

    /// See [`LiveMachine::meet`]. A process that was killed keeps its locks until the kernel has ended its calls.
    pub(crate) fn meet_in_time(&self, opened: &Opened<'_>) -> Result<(Locked<'_>, FileId, bool), Error> {
        const TRIES: u32 = 100;
        const PAUSE: Duration = Duration::from_millis(10);
        let mut tries = 0;
        loop {
            match self.meet(self.drain(self.lock()?)?, opened) {
                Err(Error::Locked { .. }) if tries < TRIES => {
                    tries += 1;
                    thread::sleep(PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    /// The number of a file that was just opened: each inode has one. Also whether another program has written it since this cache has looked at it, and
    /// others have it open.
    fn meet<'a>(
        &'a self,
        mut locked: Locked<'a>,
        opened: &Opened<'_>,
    ) -> Result<(Locked<'a>, FileId, bool), Error> {
        let &Opened { path, how, identity, .. } = opened;
        loop {
            let is_it =
                |of: &Option<OpenFile>| of.as_ref().is_some_and(|of| of.identity.is_same_file(identity));
            let known = locked.files.open.iter().position(is_it);
            let Some(at) = known else {
                let lock = if how.takes_lock() { Some(opened.lock()?) } else { None };
                // An earlier owner of the lock may have written it.
                let identity = self.look_at(opened)?;
                locked = self.make_room_for(locked, identity.bytes())?;
                if locked.files.open.iter().any(is_it) {
                    continue;
                }
                let device = locked.device_numbered(how.device_of(identity))?;
                let spec = FileSpec {
                    name: path.display().to_string(),
                    pages: identity.bytes().div_ceil(PAGE_SIZE).max(1),
                    kind: FileKind::Regular,
                    bdi: Bdi { ra_pages: locked.transfers.devices[device].ra_pages, ..Bdi::default() },
                };
                let bdi = locked.transfers.devices[device].bdi;
                let id = locked.engine.file_create_on(spec, bdi)?;
                let at = id.0 as usize;
                if locked.files.open.len() <= at {
                    locked.files.open.resize_with(at + 1, || None);
                }
                let files = (Arc::clone(&opened.file), Arc::clone(&opened.disk), device);
                let mut of = OpenFile::new(path.to_owned(), files, identity, !how.is_buffered);
                of.lock = lock;
                (of.is_written, of.is_stable) = (how.is_writable, opened.is_stable);
                locked.files.open[at] = Some(of);
                return Ok((locked, id, false));
            };
            let id = FileId(at as u32);
            let of = locked.file_mut(id);
            if of.is_going || of.is_ending || of.length.is_changing() {
                locked = self.wait_while(locked, |inner| {
                    let of = inner.files.open.get(at).and_then(Option::as_ref);
                    of.is_some_and(|of| of.is_going || of.is_ending || of.length.is_changing())
                })?;
                continue;
            }
            if how.takes_lock() && of.lock.is_none() {
                of.lock = Some(opened.lock()?);
            }
            // An earlier owner of the lock may have written it.
            let identity = self.look_at(opened)?;
            let has_changed;
            (locked, has_changed) = self.has_changed_outside(locked, id, (opened, identity))?;
            // Others may have had the lock.
            if !locked.files.open.get(at).is_some_and(is_it) {
                continue;
            }
            let is_dirty = !is_clean(&locked, id);
            let of = locked.file_mut(id);
            if has_changed && is_dirty {
                return Err(Error::ChangedOutside { path: path.to_owned() });
            }
            if has_changed && of.is_idle() {
                // Nothing of it is dirty, and its length here is not to come to the device.
                locked = self.forget(locked, id, Unwritten::IsLost)?;
                continue;
            }
            if how.is_writable && !of.is_written || !how.is_buffered && !of.is_direct && !of.is_written {
                // The earlier descriptor is for reading only, or uses the system's page cache. It stays open for locks of the callers.
                let former = Arc::clone(&of.file);
                of.formers.extend(how.has_own_locks.then_some(former));
                (of.disk, of.file) = (Arc::clone(&opened.disk), Arc::clone(&opened.file));
                of.is_direct = !how.is_buffered;
            }
            if how.is_writable && !of.is_written {
                of.is_written = true;
                of.copy_pins();
            }
            of.is_stable |= opened.is_stable;
            return Ok((locked, id, has_changed));
        }
    }

    fn look_at(&self, opened: &Opened<'_>) -> Result<Identity, Error> {
        let path = || opened.path.to_owned();
        Identity::of(&opened.file).map_err(|source| Error::Io {
            op: "opening",
            path: path(),
            page: None,
            source,
        })
    }

    /// True with the lock if another program has written a file since this cache last checked it.
    fn has_changed_outside<'a>(
        &'a self,
        mut locked: Locked<'a>,
        id: FileId,
        (opened, identity): (&Opened<'_>, Identity),
    ) -> Result<(Locked<'a>, bool), Error> {
        let of = locked.file_mut(id);
        if of.identity == identity && !of.is_suspect {
            return Ok((locked, false));
        }
        // Writes of this cache may be in flight, which change it as well.
        let (seen, known);
        (locked, (seen, known)) =
            self.look_beside_no_write(locked, id, |of| (self.look_at(opened), of.identity))?;
        let seen = seen?;
        let is_dirty = !is_clean(&locked, id);
        let of = locked.file_mut(id);
        // Names change the inode as well. If nothing would be lost by it, the file is read again in any case.
        let is_renamed = is_dirty && !Identity::of_path(&of.path).is_ok_and(|there| there.is_same_file(seen));
        let has_changed = of.is_suspect
            || match is_dirty {
                true => !seen.has_its_contents(known, is_renamed),
                false => seen != known,
            };
        // A later write of this cache would hide it.
        of.is_suspect = has_changed;
        if !has_changed && of.identity == known {
            of.identity = seen;
        }
        Ok((locked, has_changed))
    }

    /// Drops pages of closed files, until a further file of this size fits under the limit of open files.
    pub(super) fn make_room_for<'a>(
        &'a self,
        mut locked: Locked<'a>,
        bytes: u64,
    ) -> Result<Locked<'a>, Error> {
        let Some(most) = self.limits.bytes else { return self.make_room_for_tables(locked, bytes) };
        let mut stays = Vec::new();
        loop {
            let reserved = locked.files.open.iter().flatten().map(|of| of.reserved);
            let of_regions = locked.regions.reserved();
            let sum = reserved.fold(bytes.saturating_add(of_regions), u64::saturating_add);
            if sum <= most {
                return Ok(locked);
            }
            // A size that is impossible in any case evicts no file.
            let mut is_gone = false;
            if bytes <= most {
                (locked, is_gone) =
                    self.forget_oldest(locked, &mut stays, Unwritten::IsWritten, |_, _| true)?;
            }
            if !is_gone {
                return Err(Error::TooManyFiles { bytes: sum, most });
            }
        }
    }

    /// Gives tables frames for a further file of this size, and drops pages of closed files if there are too few. The frames are the tables' until the
    /// caller releases the lock.
    fn make_room_for_tables<'a>(&'a self, mut locked: Locked<'a>, bytes: u64) -> Result<Locked<'a>, Error> {
        let more = Tables::of_empty(bytes);
        let mut stays = Vec::new();
        while !self.budget.has_slack_for_tables(more) {
            drop(locked);
            let outcome = self.tend_tables(more);
            locked = self.lock()?;
            match outcome {
                Ok(()) if self.budget.has_room_for_tables(more) => break,
                Ok(()) => {}
                Err(Error::NoRoomForTables { .. }) => {
                    let mut is_gone = false;
                    if more <= self.budget.tables_max() {
                        (locked, is_gone) =
                            self.forget_oldest(locked, &mut stays, Unwritten::IsWritten, |_, _| true)?;
                    }
                    if !is_gone {
                        return Err(self.no_room_for_tables(more));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(locked)
    }

    /// Forgets the file that has been closed for the longest time, among those that can be forgotten. Returns whether there was one. A file that
    /// can't be forgotten, because its writes fail or a guard of it was leaked, goes to `stays`, and the next one is tried.
    fn forget_oldest<'a>(
        &'a self,
        mut locked: Locked<'a>,
        stays: &mut Vec<FileId>,
        unwritten: Unwritten,
        may_go: impl Fn(&Locked<'_>, FileId) -> bool,
    ) -> Result<(Locked<'a>, bool), Error> {
        loop {
            locked = self.drain(locked)?;
            let oldest = self.oldest_idle(&locked, |id| !stays.contains(&id) && may_go(&locked, id));
            let Some(oldest) = oldest else { return Ok((locked, false)) };
            match self.forget(locked, oldest, unwritten) {
                Ok(locked) => return Ok((locked, true)),
                Err(Error::Poisoned) => return Err(Error::Poisoned),
                Err(_) => {
                    stays.push(oldest);
                    locked = self.lock()?;
                }
            }
        }
    }

    /// Returns the file that has been closed for the longest time, among closed files whose writes do not fail.
    fn oldest_idle(&self, locked: &Locked<'_>, may_go: impl Fn(FileId) -> bool) -> Option<FileId> {
        let idle = |of: &OpenFile| {
            of.is_idle() && of.busy() == 0 && !of.is_going && !of.is_ending && !of.is_unwritten()
        };
        let files = locked
            .files
            .open
            .iter()
            .enumerate()
            .filter_map(|(at, of)| Some((FileId(at as u32), of.as_ref()?)));
        let idle = files.filter(|&(id, of)| idle(of) && may_go(id));
        idle.min_by_key(|(_, of)| of.idle_since).map(|(id, _)| id)
    }

    /// Makes a closed file give its descriptor back, a clean one if there is one. Returns whether there was any.
    fn forget_an_idle_file(&self) -> Result<bool, Error> {
        let mut stays = Vec::new();
        let locked = self.lock()?;
        let (locked, is_gone) = self.forget_oldest(locked, &mut stays, Unwritten::IsWritten, is_clean)?;
        if is_gone {
            return Ok(true);
        }
        let (_locked, is_gone) = self.forget_oldest(locked, &mut stays, Unwritten::IsWritten, |_, _| true)?;
        Ok(is_gone)
    }

    /// Closed files give back their locks, the descriptors and the disk space of deleted ones, and the descriptors of the oldest, if there are too
    /// many. A dirty file keeps everything: it may get a name again, or be read by its descriptor.
    pub(crate) fn tend_idle_files(&self) -> Result<(), Error> {
        let mut locked = self.lock()?;
        // The engine's own thread, which may be this one, completes reads that have no waiting thread any more.
        let is_idle = |of: &OpenFile| {
            of.is_idle() && of.busy() == 0 && !of.is_going && !of.is_ending && of.writing == 0
        };
        let idle: Vec<_> = (0..)
            .zip(&locked.files.open)
            .filter_map(|(at, of)| of.as_ref().filter(|of| is_idle(of)).map(|of| (at, Arc::clone(&of.file))))
            .collect();
        let mut many = idle.len().saturating_sub(self.limits.idle);
        for (at, file) in idle {
            let id = FileId(at);
            let is_done = |locked: &Locked<'_>| {
                let is_it = |of: &OpenFile| is_idle(of) && Arc::ptr_eq(&of.file, &file);
                locked.files.open[at as usize].as_ref().is_some_and(is_it) && is_clean(locked, id)
            };
            if !is_done(&locked) {
                continue;
            }
            // The lock goes when the file is as long on its device as it is here, and not before: another cache may have it then.
            locked.file_mut(id).busy += 1;
            let _cut;
            (locked, _cut) = self.set_len_on_device(locked, id)?;
            locked.file_mut(id).busy -= 1;
            self.wake_idle();
            locked.unlock_if_done(id);
            drop(locked);
            let is_deleted = Identity::known(&file).is_ok_and(Identity::is_deleted);
            locked = self.drain(self.lock()?)?;
            if is_deleted && is_done(&locked) {
                locked = match self.forget(locked, id, Unwritten::IsLost) {
                    Err(Error::Poisoned) => return Err(Error::Poisoned),
                    // A guard of it was leaked.
                    Err(_) => self.lock()?,
                    Ok(locked) => locked,
                };
            }
        }
        let mut stays = Vec::new();
        while many > 0 {
            let is_gone;
            (locked, is_gone) = self.forget_oldest(locked, &mut stays, Unwritten::IsLost, is_clean)?;
            if !is_gone {
                break;
            }
            many -= 1;
        }
        Ok(())
    }

    /// Makes an open file large enough for a byte that is about to be written.
    pub(super) fn reserve_room<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: &File,
        end: u64,
    ) -> Result<Locked<'a>, Error> {
        let more = end.saturating_sub(locked.file_mut(file.id).reserved);
        if more > 0 {
            // Tables grow by a quarter at least, and are there twice meanwhile.
            let reserved = locked.file_mut(file.id).reserved;
            let more = if self.limits.bytes.is_some() { more } else { more.max(reserved / 2) };
            locked = self.make_room_for(locked, more)?;
            if !locked.is_reachable(file) {
                return Err(file.forgotten());
            }
            let of = locked.file_mut(file.id);
            of.reserved = of.reserved.max(end);
        }
        let pages = end.div_ceil(PAGE_SIZE).max(1);
        if pages > locked.engine.figures().file_pages(file.id) {
            locked.engine.file_grow(file.id, pages)?;
        }
        Ok(locked)
    }

    /// Has all that is dirty of a file on its device.
    fn write_back<'a>(&'a self, mut locked: Locked<'a>, id: FileId) -> Result<Locked<'a>, Error> {
        let owner = locked.files.owner;
        let object = locked.engine.open(owner, id)?;
        let outcome;
        (locked, outcome) = self.sync_object(locked, id, object, Flush::Data)?;
        locked = self.drain(locked)?;
        locked.engine.close(owner, object)?;
        outcome.map(|()| locked)
    }

    /// Writes unsynced data to the devices when the cache ends, as far as they accept it. Returns the files for which this is not certain.
    pub(crate) fn write_all_back(&self) -> Result<Vec<Unsaved>, Error> {
        let mut unsaved = Vec::new();
        let files = self.lock()?.files.open.len();
        for at in 0..files {
            let locked = self.lock()?;
            let id = FileId(at as u32);
            let is_dirty = locked.files.open[at].is_some() && !is_clean(&locked, id);
            // A file that is closed and equals its device is finished: another cache may have it.
            let is_left = |of: &OpenFile| {
                of.is_written && !of.is_going && (is_dirty || !of.is_idle() || of.is_rounded())
            };
            if !locked.files.open[at].as_ref().is_some_and(is_left) {
                continue;
            }
            let Err(error) = self.write_back(locked, id) else { continue };
            let locked = self.lock()?;
            let of = locked.files.open[at].as_ref().expect("nobody forgets it any more");
            let (dirty, writing) = locked.engine.figures().file_dirty(id);
            if (dirty, writing) == (0, 0) && !of.is_unwritten() && !of.is_rounded() {
                // Only an earlier failure of a write is not acknowledged.
                continue;
            }
            unsaved.push(Unsaved { path: of.path.clone(), pages: dirty.max(writing), why: error });
        }
        Ok(unsaved)
    }

    /// Files of a cache that can't be used any more with pages that their devices have not got.
    pub(crate) fn unsaved_after_panic(&self) -> Vec<Unsaved> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let look = || {
            let files = inner.files.open.iter().enumerate().filter_map(|(at, of)| Some((at, of.as_ref()?)));
            let unsaved = files.map(|(at, of)| {
                let (dirty, writing) = inner.engine.figures().file_dirty(FileId(at as u32));
                Unsaved { path: of.path.clone(), pages: dirty.max(writing), why: Error::Poisoned }
            });
            unsaved.filter(|unsaved| unsaved.pages > 0).collect()
        };
        // The engine may be in the middle of anything.
        catch_unwind(AssertUnwindSafe(look)).unwrap_or_default()
    }

    /// Takes all pages of a file away, and its number.
    ///
    /// # Errors
    /// [`Error::Forgotten`] if another call has forgotten it meanwhile; [`Error::Sync`], [`Error::Pinned`]: the file is unchanged.
    pub(crate) fn forget<'a>(
        &'a self,
        mut locked: Locked<'a>,
        id: FileId,
        unwritten: Unwritten,
    ) -> Result<Locked<'a>, Error> {
        let of = locked.file_mut(id);
        let (length, path) = (Arc::clone(&of.length), of.path.clone());
        // The number may be another file's when this has waited.
        let is_it = |of: &OpenFile| Arc::ptr_eq(&of.length, &length);
        let there = |inner: &super::Inner| inner.files.open[id.0 as usize].as_ref().is_some_and(is_it);
        locked = self.wait_while(locked, |inner| {
            inner.files.open[id.0 as usize].as_ref().is_some_and(|of| is_it(of) && of.is_ending)
        })?;
        if !there(&locked) {
            return Err(Error::Forgotten { path });
        }
        locked.file_mut(id).is_ending = true;
        match self.forget_alone(locked, id, unwritten) {
            Ok(locked) => {
                self.settled();
                Ok(locked)
            }
            Err(error) => {
                let mut locked = self.lock()?;
                if let Some(of) = &mut locked.files.open[id.0 as usize] {
                    // A call that takes bytes away may have narrowed it, too, if no other call has come so far here.
                    if of.is_going {
                        of.length.widen();
                    }
                    (of.is_ending, of.is_going) = (false, false);
                }
                self.settled();
                Err(error)
            }
        }
    }

    /// The same for a file that no other call forgets.
    fn forget_alone<'a>(
        &'a self,
        mut locked: Locked<'a>,
        id: FileId,
        unwritten: Unwritten,
    ) -> Result<Locked<'a>, Error> {
        let owner = locked.files.owner;
        let is_to_be_written = |locked: &Locked<'_>| {
            unwritten == Unwritten::IsWritten
                && locked.files.open[id.0 as usize].as_ref().is_some_and(|of| of.is_written)
        };
        if is_to_be_written(&locked) {
            locked = self.write_back(locked, id)?;
        }
        locked = self.close_off(locked, id)?;
        while is_to_be_written(&locked) && !is_clean(&locked, id) {
            // It was written meanwhile.
            locked.set_going(id, false);
            self.settled();
            locked = self.write_back(locked, id)?;
            locked = self.close_off(locked, id)?;
        }
        if locked.file_mut(id).is_rounded() {
            // Pages are lost, and not the end of the file. A device that fails keeps its own.
            let _cut;
            (locked, _cut) = self.set_len_on_device(locked, id)?;
        }
        // New accesses to a page are impossible, and existing ones hold it.
        let of = locked.file_mut(id);
        of.copy_pins();
        of.length.narrow(0);
        drop(locked);
        self.await_unpinned(id, 0..u64::MAX)?;
        locked = self.drain(self.lock()?)?;
        if is_to_be_written(&locked) && !is_clean(&locked, id) {
            // A thread was in the middle of it.
            return Err(locked.pinned_file(id));
        }
        let object = locked.engine.open(owner, id)?;
        let path = locked.file_mut(id).path.clone();
        let hired = locked.hire(0);
        let lent = locked.engine.lend((owner, object), hired.task);
        let unlinked = match lent.and_then(|lent| locked.engine.unlink(hired.task, lent)) {
            Ok(step) => {
                let served;
                (locked, served) = self.see_through(locked, hired.task, step)?;
                locked = self.read(locked, 0)?;
                Ok(served)
            }
            Err(error) => Err(error),
        };
        // Hits meanwhile are not reported through a handle that is closing.
        locked = self.drain(locked)?;
        locked.engine.close(owner, object)?;
        if !matches!(unlinked?, Served::Truncated) {
            return Err(locked.pinned_file(id));
        }
        // Its open handles still find it forgotten.
        for object in locked.take_objects(id) {
            locked.engine.close(owner, object)?;
        }
        locked.close_gone()?;
        if let Some(mut of) = locked.files.open[id.0 as usize].take() {
            // The child of a fork may have its descriptor.
            of.unlock();
        }
        local::give_back(self, &locked);
        locked.engine.file_forget(id).map_err(|error| Error::Io {
            op: "forgetting",
            path,
            page: None,
            source: std::io::Error::other(error),
        })?;
        Ok(locked)
    }

    /// A handle of a file is gone.
    pub(crate) fn close(&self, id: FileId, serial: u64) -> Result<(), Error> {
        // The engine is notified of all hits through it before it is closed.
        let mut locked = self.drain(self.lock()?)?;
        locked.drop_handle(id, serial);
        locked.close_gone()?;
        local::give_back(self, &locked);
        let is_idle = locked.becomes_idle(id);
        drop(locked);
        if is_idle { self.tend_idle_files() } else { Ok(()) }
    }
}
