//! A file as the machine reads and writes it: its handles, how long it is here and on its device, and what of it could not be written.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageout_engine::{FileId, ObjectId, PAGE_SIZE};

use super::locked::Locked;
use super::transfer::Failed;
use super::writes::Part;
use crate::error::Error;
use crate::file::Inner as File;
use crate::storage::Storage;

/// A file as the machine reads and writes it.
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) disk: Arc<dyn Storage>,
    /// The device that it is on.
    pub(super) device: usize,
    /// Bytes that it has to whoever reads it.
    pub(crate) length: Arc<AtomicU64>,
    /// Bytes that it has on its device: up to a page more where a write has not been followed by a sync, or less.
    pub(super) on_disk: u64,
    /// Bytes that there is room for.
    pub(crate) reserved: u64,
    pub(crate) identity: Identity,
    pub(crate) is_direct: bool,
    /// Somebody may have written it.
    pub(crate) is_written: bool,
    /// A page that is being written is not to be written to.
    pub(crate) is_stable: bool,
    /// Its length on its device is being changed, and no write of it begins.
    pub(super) is_cut: bool,
    /// Its length is being changed, and nobody writes behind its end.
    pub(super) is_resized: bool,
    /// Writes of it that were begun and have not ended.
    pub(super) writing: u32,
    /// Who is about to write behind its end.
    pub(super) extending: u32,
    /// Something was written since its device was flushed last.
    pub(super) needs_flush: bool,
    /// Its device is being flushed.
    pub(super) is_flushing: bool,
    /// Flushes that have failed.
    pub(super) flushes_failed: u64,
    /// Pages whose last write has failed, or that a failed flush was to keep.
    pub(super) unwritten: BTreeSet<u64>,
    /// Pages that a failed flush was to keep and that had left memory, as long as nobody has said to know of it.
    pub(super) lost: BTreeSet<u64>,
    /// Why one could not be written, last.
    pub(super) write_error: Option<i32>,
    /// Its device has not flushed what it had, and nobody has said to know of it.
    pub(super) flush_error: Option<i32>,
    /// Its handles, each with the owner's object of it.
    handles: Vec<(u64, ObjectId)>,
    /// Its pages are going: nobody may bring in any.
    pub(crate) is_going: bool,
    /// Accesses that are under way.
    pub(super) busy: u32,
    /// Why a page could not be read, last.
    pub(super) failed: Option<(u64, Failed)>,
}

/// By which a file is known to be the same, and not to have been written meanwhile: device, inode, and when it was last written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity(u64, u64, (i64, i64));

impl Identity {
    /// Whether it is the same file, perhaps written meanwhile.
    pub(crate) fn is_same_file(self, other: Identity) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }

    /// The number of the device that it is on.
    pub(crate) fn device(self) -> u64 {
        self.0
    }

    pub(crate) fn of(metadata: &std::fs::Metadata) -> Identity {
        Identity(metadata.dev(), metadata.ino(), (metadata.mtime(), metadata.mtime_nsec()))
    }
}

impl OpenFile {
    /// A file that nobody has open yet.
    pub(crate) fn new(
        path: PathBuf,
        (disk, device): (Arc<dyn Storage>, usize),
        bytes: u64,
        identity: Identity,
        is_direct: bool,
    ) -> OpenFile {
        OpenFile {
            path,
            disk,
            device,
            length: Arc::new(AtomicU64::new(bytes)),
            on_disk: bytes,
            reserved: bytes,
            identity,
            is_direct,
            is_written: false,
            is_stable: false,
            is_cut: false,
            is_resized: false,
            writing: 0,
            extending: 0,
            needs_flush: false,
            is_flushing: false,
            flushes_failed: 0,
            unwritten: BTreeSet::new(),
            lost: BTreeSet::new(),
            write_error: None,
            flush_error: None,
            handles: Vec::new(),
            is_going: false,
            busy: 0,
            failed: None,
        }
    }

    /// Bytes that it has to whoever reads it.
    pub(crate) fn bytes(&self) -> u64 {
        self.length.load(Relaxed)
    }

    /// Whether a handle of this number is of it.
    pub(super) fn has(&self, serial: u64) -> bool {
        self.handles.iter().any(|&(of, _)| of == serial)
    }

    /// Whether somebody changes its length, or is about to by writing behind its end.
    pub(super) fn is_growing(&self) -> bool {
        self.is_resized || self.extending > 0
    }

    /// Whether there is something of it that could not be written.
    pub(crate) fn is_unwritten(&self) -> bool {
        !self.unwritten.is_empty() || self.flush_error.is_some()
    }

    /// Whether no handle of it is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.handles.is_empty()
    }

    /// Whether a page that is not in memory has something on the device that a write leaves there.
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
    /// A file that somebody has open, or an access to which is under way.
    pub(crate) fn file_mut(&mut self, file: FileId) -> &mut OpenFile {
        self.files[file.0 as usize].as_mut().expect("nobody forgets it before")
    }

    /// A handle of a file has this object of the owner's. Returns a number that no other handle has.
    pub(crate) fn opened(&mut self, file: FileId, object: ObjectId) -> u64 {
        self.serials += 1;
        let serial = self.serials;
        let of = self.files[file.0 as usize].as_mut().expect("it was just opened");
        of.handles.push((serial, object));
        serial
    }

    /// A handle is gone; the object that is to be closed with it.
    pub(crate) fn drop_handle(&mut self, file: FileId, serial: u64) -> Option<ObjectId> {
        let of = self.files.get_mut(file.0 as usize)?.as_mut()?;
        let at = of.handles.iter().position(|&(of, _)| of == serial)?;
        let object = of.handles.swap_remove(at).1;
        self.closed += 1;
        Some(object)
    }

    /// Whether there is a handle of this number.
    pub(crate) fn is_open(&self, serial: u64) -> bool {
        self.files.iter().flatten().any(|of| of.has(serial))
    }

    /// All objects of a file, which are to be closed.
    pub(crate) fn take_objects(&mut self, file: FileId) -> Vec<ObjectId> {
        let of = self.files[file.0 as usize].as_mut();
        let handles = of.map_or_else(Vec::new, |of| std::mem::take(&mut of.handles));
        self.closed += handles.len() as u64;
        handles.into_iter().map(|(_, object)| object).collect()
    }

    /// Nobody may bring in pages of a file, or anybody again.
    pub(crate) fn set_going(&mut self, file: FileId, is_going: bool) {
        if let Some(of) = &mut self.files[file.0 as usize] {
            of.is_going = is_going;
        }
    }

    /// Whether pages of a file may be brought in through a handle.
    pub(crate) fn is_reachable(&self, file: &File) -> bool {
        let of = self.files.get(file.id.0 as usize).and_then(Option::as_ref);
        of.is_some_and(|of| !of.is_going && of.has(file.serial))
    }
}
