//! A file as the machine reads and writes it: its handles, how long it is here and on its device, and what of it could not be written.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pageout_engine::{FileId, Nanos, ObjectId, PAGE_SIZE, Pfn};

use super::locked::Locked;
use super::transfer::{Failed, Target};
use super::writes::Part;
use crate::counts::{Counts, Sum};
use crate::error::Error;
use crate::file::Inner as File;
use crate::length::Length;
use crate::pending::Flight;
use crate::stat::Identity;
use crate::storage::Storage;

/// Interval of the checks of closed files.
const TENDED_EVERY: Nanos = Nanos::SECOND;

/// A file as the machine reads and writes it.
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) disk: Arc<dyn Storage>,
    /// The device that it is on.
    pub(super) device: usize,
    /// Bytes that it has to callers.
    pub(crate) length: Arc<Length>,
    /// Bytes that it has on its device: up to a page more where a write has not been followed by a sync, or less.
    pub(super) on_disk: u64,
    /// Bytes that fit into its tables.
    pub(crate) reserved: u64,
    /// Its attributes after the last check or write of this cache.
    pub(crate) identity: Identity,
    /// The file that `disk` reads and writes.
    pub(crate) file: Arc<std::fs::File>,
    /// Another program has written the file, so it must be read again.
    pub(crate) is_suspect: bool,
    /// Its earlier descriptors, if the callers have their own locks.
    pub(crate) formers: Vec<Arc<std::fs::File>>,
    /// It has the exclusive lock of the file.
    pub(crate) lock: Option<Arc<std::fs::File>>,
    pub(crate) is_direct: bool,
    /// Its file system keeps it in the system's page cache in any case.
    pub(crate) is_in_memory: bool,
    /// When its last handle was closed, in the order of all.
    pub(crate) idle_since: u64,
    /// Reads that were submitted and may never be polled.
    flights: Vec<Weak<Flight>>,
    /// It may have been written by another process.
    pub(crate) is_written: bool,
    /// A page that is being written is not to be written to.
    pub(crate) is_stable: bool,
    /// Its length on its device is being changed, and no write of it begins.
    pub(super) is_cut: bool,
    /// Its device has not been made as short as the file: what it has behind the end must not come back.
    pub(super) is_uncut: bool,
    /// Writes of it that were begun and have not ended.
    pub(super) writing: u32,
    /// Something was written since its device was flushed last.
    pub(super) needs_flush: bool,
    /// Its device is being flushed.
    pub(super) is_flushing: bool,
    /// Flushes that have failed.
    pub(super) flushes_failed: u64,
    /// Pages whose last write has failed, or that a failed flush was to keep.
    pub(super) unwritten: BTreeSet<u64>,
    /// Pages of a failed flush that had left memory, as long as the failure is not acknowledged.
    pub(super) lost: BTreeSet<u64>,
    /// Why one could not be written, last.
    pub(super) write_error: Option<i32>,
    /// Its device has not flushed its cache, and the failure is not acknowledged.
    pub(super) flush_error: Option<i32>,
    handles: Vec<Handle>,
    /// Accesses through handles that are gone.
    of_closed: Sum,
    /// Requests to its device.
    pub(super) requests: Requests,
    /// A call is about to forget it, or it is being taken as it is on its device. One at a time does.
    pub(crate) is_ending: bool,
    /// Its pages are being dropped: none may be brought in.
    pub(crate) is_going: bool,
    /// Accesses in progress.
    pub(super) busy: u32,
    /// Why a page could not be read, last.
    pub(super) failed: Option<(u64, Failed)>,
}

/// Requests to a device, and their bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Requests {
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
    pub(crate) writes: u64,
    pub(crate) bytes_written: u64,
}

/// A handle of a file.
struct Handle {
    serial: u64,
    /// The group that is charged for pages that it brings in.
    group: usize,
    counts: Counts,
    /// The owner's object of the file.
    object: ObjectId,
    /// Accesses through it in progress: it may be dropped before those of pending reads have ended.
    under_way: u32,
    is_dropped: bool,
}

impl OpenFile {
    /// A file that is not open yet.
    pub(crate) fn new(
        path: PathBuf,
        (file, disk, device): (Arc<std::fs::File>, Arc<dyn Storage>, usize),
        identity: Identity,
        is_direct: bool,
    ) -> OpenFile {
        let bytes = identity.bytes();
        OpenFile {
            path,
            disk,
            device,
            is_in_memory: crate::stat::is_in_memory(&file),
            file,
            is_suspect: false,
            formers: Vec::new(),
            lock: None,
            idle_since: 0,
            flights: Vec::new(),
            length: Arc::new(Length::new(bytes)),
            on_disk: bytes,
            reserved: bytes,
            identity,
            is_direct,
            is_written: false,
            is_stable: false,
            is_cut: false,
            is_uncut: false,
            writing: 0,
            needs_flush: false,
            is_flushing: false,
            flushes_failed: 0,
            unwritten: BTreeSet::new(),
            lost: BTreeSet::new(),
            write_error: None,
            flush_error: None,
            handles: Vec::new(),
            of_closed: Sum::default(),
            requests: Requests::default(),
            is_ending: false,
            is_going: false,
            busy: 0,
            failed: None,
        }
    }

    /// Records the present state of the file in the file system.
    pub(crate) fn look(&mut self) {
        self.identity = Identity::known(&self.file).unwrap_or(self.identity);
    }

    /// Pages of these reads may be pinned until the next poll.
    pub(super) fn flies(&mut self, flight: &Arc<Flight>) {
        self.flights.retain(|of| of.strong_count() > 0);
        if !self.flights.iter().any(|of| std::ptr::eq(of.as_ptr(), Arc::as_ptr(flight))) {
            self.flights.push(Arc::downgrade(flight));
        }
    }

    /// Reads that may never be polled hold no page of it any more: its writers wait only for guards.
    pub(crate) fn copy_pins(&mut self) {
        // They stay noted: what lands later may be pinned again.
        self.flights.iter().filter_map(Weak::upgrade).for_each(|flight| flight.copy_pins());
    }

    /// Gives up its lock.
    pub(crate) fn unlock(&mut self) {
        if let Some(file) = self.lock.take() {
            // A lock that can't be given up goes with the descriptor.
            let _ = file.unlock();
        }
    }

    /// Bytes that it has to callers.
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes()
    }

    /// Accesses to it through all handles.
    pub(super) fn accesses(&self) -> Sum {
        let mut sum = self.of_closed;
        self.handles.iter().for_each(|handle| sum += handle.counts.sum());
        sum
    }

    /// Accesses through its handles of a group. `None` if there is no such handle.
    pub(super) fn accesses_of(&self, group: usize) -> Option<Sum> {
        let handles = self.handles.iter().filter(|handle| handle.group == group);
        handles.map(|handle| handle.counts.sum()).reduce(|mut sum, more| {
            sum += more;
            sum
        })
    }

    /// Returns true if a handle of this number is of it.
    pub(super) fn has(&self, serial: u64) -> bool {
        self.handles.iter().any(|of| of.serial == serial && !of.is_dropped)
    }

    /// Returns true if its length is being changed, or a call is in progress during which it may not be.
    pub(super) fn is_growing(&self) -> bool {
        self.length.is_changing() || self.length.has_spans()
    }

    /// Returns true if there is something of it that could not be written.
    pub(crate) fn is_unwritten(&self) -> bool {
        !self.unwritten.is_empty() || self.flush_error.is_some()
    }

    /// Accesses in progress.
    pub(crate) fn busy(&self) -> u32 {
        self.busy
    }

    /// Returns true if it is longer on its device than it is, as pages are written whole, or shorter.
    pub(super) fn is_rounded(&self) -> bool {
        self.is_written && self.on_disk != self.bytes()
    }

    /// Returns true if no handle of it is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.handles.iter().all(|of| of.is_dropped)
    }

    /// Returns true if a page that is not in memory has something on the device that a write leaves there.
    pub(super) fn has_more_than(&self, part: Part) -> bool {
        let start = part.page * PAGE_SIZE;
        let end = self.on_disk.min(self.bytes()).min(start + PAGE_SIZE);
        start < end && (part.skip > 0 || start + (part.len as u64) < end)
    }

    pub(super) fn sync_error(&self, errno: i32) -> Error {
        Error::Sync {
            path: self.path.clone(),
            failed: self.unwritten.len() as u64,
            lost: self.lost.len() as u64,
            source: std::io::Error::from_raw_os_error(errno),
        }
    }
}

impl Locked<'_> {
    /// A file that is open, or has an access in progress.
    pub(crate) fn file_mut(&mut self, file: FileId) -> &mut OpenFile {
        self.files.open[file.0 as usize].as_mut().expect("nobody forgets it before")
    }

    /// Where accesses through a handle are counted.
    pub(crate) fn counts_of_handle(&mut self, file: FileId, serial: u64) -> Option<&mut Counts> {
        let of = self.files.open.get_mut(file.0 as usize)?.as_mut()?;
        of.handles.iter_mut().find(|of| of.serial == serial).map(|of| &mut of.counts)
    }

    /// A handle of a file has this object of the owner's. Returns a number that no other handle has.
    pub(crate) fn opened(&mut self, file: FileId, object: ObjectId, group: usize) -> u64 {
        self.files.serials += 1;
        let serial = self.files.serials;
        let of = self.files.open[file.0 as usize].as_mut().expect("it was just opened");
        let counts = Counts::default();
        of.handles.push(Handle { serial, group, counts, object, under_way: 0, is_dropped: false });
        serial
    }

    /// A handle is gone. Its object is closed with it, or after the last access through it.
    pub(crate) fn drop_handle(&mut self, file: FileId, serial: u64) {
        self.with_handle(file, serial, |handle| handle.is_dropped = true);
    }

    /// An access through a handle begins.
    pub(super) fn access_begins(&mut self, file: FileId, serial: u64) {
        self.file_mut(file).busy += 1;
        self.with_handle(file, serial, |handle| {
            handle.under_way += 1;
            handle.counts.misses += 1;
        });
    }

    /// An access through a handle has ended.
    pub(super) fn access_ends(&mut self, file: FileId, serial: u64) {
        let of = self.file_mut(file);
        of.busy -= 1;
        if of.is_going && of.busy == 0 {
            self.machine().wake_idle();
        }
        self.with_handle(file, serial, |handle| handle.under_way -= 1);
    }

    /// Changes a handle. Its object must be closed if it is not needed any more.
    fn with_handle(&mut self, file: FileId, serial: u64, change: impl FnOnce(&mut Handle)) {
        let Some(of) = self.files.open.get_mut(file.0 as usize).and_then(Option::as_mut) else { return };
        let Some(at) = of.handles.iter().position(|of| of.serial == serial) else { return };
        let handle = &mut of.handles[at];
        change(handle);
        if handle.is_dropped && handle.under_way == 0 {
            let Handle { object, group, counts, .. } = of.handles.swap_remove(at);
            of.of_closed += counts.sum();
            self.files.groups[group].of_closed += counts.sum();
            self.files.closed += 1;
            self.files.to_close.push(object);
            self.wake_service();
        }
    }

    /// A closed file has no lock once all of it is written. Whether only its length on its device must still be set.
    pub(super) fn unlock_if_done(&mut self, file: FileId) -> bool {
        let Some(of) = &self.files.open[file.0 as usize] else { return false };
        let is_done = of.is_idle() && self.engine.figures().file_dirty(file) == (0, 0);
        if of.lock.is_none() || !is_done || of.writing > 0 {
            return false;
        }
        let is_long = of.on_disk != of.bytes();
        if !is_long {
            self.file_mut(file).unlock();
        }
        is_long
    }

    /// Returns true if a file is closed, which is noted.
    pub(crate) fn becomes_idle(&mut self, file: FileId) -> bool {
        self.files.serials += 1;
        let now = self.files.serials;
        let Some(of) = self.files.open.get_mut(file.0 as usize).and_then(Option::as_mut) else {
            return false;
        };
        of.idle_since = now;
        let is_idle = of.is_idle();
        self.unlock_if_done(file);
        is_idle
    }

    /// Returns true if closed files must be checked again: one may have been deleted.
    pub(super) fn is_time_to_tend(&mut self) -> bool {
        let now = self.now;
        let is_due = self.files.tended_at + TENDED_EVERY <= now;
        if is_due {
            self.files.tended_at = now;
        }
        is_due && self.files.open.iter().flatten().any(OpenFile::is_idle)
    }

    /// Time until the next check, if there is any.
    pub(super) fn next_tending(&self) -> Option<Duration> {
        let has_idle = self.files.open.iter().flatten().any(OpenFile::is_idle);
        has_idle
            .then(|| Duration::from_nanos((self.files.tended_at + TENDED_EVERY).0.saturating_sub(self.now.0)))
    }

    /// Closes unneeded objects. The engine was notified of all hits: otherwise it may be in the middle of one.
    pub(crate) fn close_gone(&mut self) -> Result<(), Error> {
        let owner = self.files.owner;
        while let Some(object) = self.files.to_close.pop() {
            self.engine.close(owner, object)?;
        }
        Ok(())
    }

    /// A page of a file that a guard holds, or that is being copied from.
    pub(super) fn held_page(&self, file: FileId) -> Option<u64> {
        let arena = &self.machine().arena;
        let mut pages = self.engine.figures().cached_pages(file, 0..u64::MAX);
        pages.find(|&(_, pfn)| !arena.is_free_to_write(pfn)).map(|(page, _)| page)
    }

    /// A page of a file whose write can't begin, because it has a writer in place.
    pub(super) fn held_write(&self, file: FileId) -> Option<(u64, Pfn)> {
        let arena = &self.machine().arena;
        let device = self.files.open[file.0 as usize].as_ref()?.device;
        let of_file =
            self.transfers.devices[device].writes.iter().filter(|write| write.target == Target::File(file));
        let mut pages = of_file.flat_map(|write| (write.page..).zip(write.frames.iter().copied()));
        pages.find(|&(_, pfn)| arena.gate(pfn).is_written())
    }

    /// All objects of a file, which are to be closed.
    pub(crate) fn take_objects(&mut self, file: FileId) -> Vec<ObjectId> {
        let of = self.files.open[file.0 as usize].as_mut();
        let handles = of.map_or_else(Vec::new, |of| std::mem::take(&mut of.handles));
        self.files.closed += handles.len() as u64;
        for handle in &handles {
            self.files.groups[handle.group].of_closed += handle.counts.sum();
        }
        handles.into_iter().map(|of| of.object).collect()
    }

    /// Stops or permits bringing in pages of a file.
    pub(crate) fn set_going(&mut self, file: FileId, is_going: bool) {
        if let Some(of) = &mut self.files.open[file.0 as usize] {
            of.is_going = is_going;
        }
    }

    /// Returns true if pages of a file may be brought in through a handle.
    pub(crate) fn is_reachable(&self, file: &File) -> bool {
        let of = self.files.open.get(file.id.0 as usize).and_then(Option::as_ref);
        of.is_some_and(|of| !of.is_going && of.has(file.serial))
    }
}
