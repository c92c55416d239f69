//! How a machine talks to the engine: an access goes in, steps come out.
//!
//! ```text
//!   start(task, access) ─► Done                       the access is complete
//!                      └─► Again ── price the work ──► resume(task)      one reclaim batch is over
//!                      └─► Wait  ── it ended ────────► resume(task)      a device read, a throttle
//! ```
//! What waits is a state; what doesn't is plain code. Reclaim runs in steps of one batch, so that other tasks and device
//! completions can come in between, as they do on a real machine.

use crate::kernfs::FileError;
use crate::units::{MemcgId, Nanos, ObjectId};
use std::fmt;

/// One access of a task to one page of one of its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Which open file or mapping.
    pub object: ObjectId,
    /// Page within the object.
    pub page: u64,
    /// A store or write(2) of the whole page, else a load or read(2).
    pub write: bool,
}

/// What became of a call that advances a task.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Step {
    /// The access is complete.
    Done(Served),
    /// One batch of reclaim is over: price the work, let other events happen, call `resume`.
    Again,
    /// Call `resume` when the wait is over.
    Wait(Wait),
}

/// How an access was served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Served {
    /// The page was there; nothing but its word was written, or its policy was told.
    Hit,
    /// A page fault or a read without device I/O of its own; it may have waited for someone else's.
    Minor,
    /// It read from a device.
    Major,
    /// A write to a kernel file ended, having reclaimed so many pages.
    Reclaimed(u64),
    /// A write of several commands ended at one that was refused; those before it are done.
    Refused(Box<FileError>),
    /// The access failed.
    Failed(AccessError),
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A device transfer; the task appears in [`crate::Engine::take_woken`] when it is over.
    Io,
    /// A span of time.
    Delay(Nanos, DelayReason),
}

/// Why a task is made to wait although no device is involved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayReason {
    /// The group is above `memory.high`.
    MemoryHigh,
}

/// Why an access failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessError {
    /// The task has no such object.
    NoObject {
        /// The object asked for.
        object: ObjectId,
        /// How many the task has.
        objects: usize,
    },
    /// The page lies beyond the object's end.
    BeyondObject {
        /// The page asked for.
        page: u64,
        /// Pages in the object.
        pages: u64,
    },
    /// A write to a file on a block device, which needs writeback.
    FileWrite,
    /// The device failed to read the page (EIO, SIGBUS).
    Io,
    /// No memory, and none to be had.
    Oom(Box<OomReport>),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject { object, objects } => {
                write!(f, "access to object {} of a task that has {objects}", object.0)
            }
            Self::BeyondObject { page, pages } => {
                write!(
                    f,
                    "access to page {page}, but the object has {pages} pages (0 to {})",
                    pages.saturating_sub(1)
                )
            }
            Self::FileWrite => write!(
                f,
                "write to a regular file: file writes need writeback, which is not modelled; \
                 use an anonymous or tmpfs object, or a read-only workload"
            ),
            Self::Io => write!(f, "the device failed to read the page (EIO)"),
            Self::Oom(report) => report.fmt(f),
        }
    }
}

impl std::error::Error for AccessError {}

/// Why a page could not be had: the state of the group at its limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OomReport {
    /// The group whose limit was hit, or the root when the machine has no free frame.
    pub memcg: MemcgId,
    /// Its path.
    pub path: String,
    /// Pages charged.
    pub usage: u64,
    /// Its limit in pages; `None` when it was the machine that had no frame.
    pub max: Option<u64>,
    /// Pages on its lists: inactive anon, active anon, inactive file, active file, unevictable.
    pub lists: [u64; 5],
    /// Free swap pages it may use.
    pub free_swap: u64,
    /// Reclaim attempts made before giving up.
    pub attempts: u32,
}

impl fmt::Display for OomReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [inactive_anon, active_anon, inactive_file, active_file, unevictable] = self.lists;
        match self.max {
            Some(max) => write!(f, "out of memory in {}: {} of {max} pages charged", self.path, self.usage)?,
            None => write!(
                f,
                "out of memory: no free frame on any node, and whole-machine reclaim is not modelled \
                 (give the groups memory.max limits that fit the machine together)"
            )?,
        }
        if self.attempts > 0 {
            write!(f, "; {} reclaim attempts freed too little", self.attempts)?;
        }
        write!(
            f,
            "; lists: anon {inactive_anon} inactive + {active_anon} active, \
             file {inactive_file} inactive + {active_file} active, {unevictable} unevictable; free swap {} pages",
            self.free_swap
        )?;
        let anon = inactive_anon + active_anon;
        if anon > 0 && self.free_swap == 0 && inactive_file + active_file == 0 {
            write!(f, " (anonymous memory can't be reclaimed without swap: add swap or raise memory.max)")?;
        }
        Ok(())
    }
}
