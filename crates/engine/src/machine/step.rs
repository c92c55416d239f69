//! How a machine talks to the engine: an access goes in, steps come out.
//!
//! ```text
//!   start(task, access) ─► Done                       the access is complete
//!                      └─► Again ── price the work ──► resume(task)      one reclaim batch is over
//!                      └─► Wait  ── it ended ────────► resume(task)      a device read, a throttle, another task's wake
//! ```
//! Waits are states; the rest is plain code. Reclaim runs in steps of one batch, so that other tasks and device completions can come in between, as
//! they do on a real machine.

use crate::kernfs::error::FileError;
use crate::memory::errors::IoError;
use crate::units::{MemcgId, Nanos, Nodemask, ObjectId, PAGE_SIZE, Pfn};
use std::fmt;

/// One access of a task to one page of one of its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The open file or mapping that is accessed.
    pub object: ObjectId,
    /// Page within the object.
    pub page: u64,
    /// A store or write(2) of the whole page, else a load or read(2).
    pub write: bool,
    /// Bytes that the current call still needs, counted from the beginning of this page. A call for several pages is an access to each, in
    /// order: the first page of three has `3 * PAGE_SIZE`, the last `PAGE_SIZE`, or less if the call ends within it. Readahead uses it, and the size of
    /// the folios that a write creates; a mapping's accesses have none.
    pub wanted: u32,
    /// Bytes of the page before the first one that the call needs; 0 for all pages of a call except the first.
    pub offset: u16,
}

impl Access {
    /// A load or store, or a call that reads or writes one whole page.
    pub const fn new(object: ObjectId, page: u64, write: bool) -> Access {
        Access { object, page, write, wanted: PAGE_SIZE as u32, offset: 0 }
    }

    /// Returns true if its call is over with this page. A load or store is its own.
    #[inline]
    pub fn ends_call(&self) -> bool {
        u64::from(self.wanted) <= PAGE_SIZE
    }
}

/// The outcome of a call that advances a task: it is done, waits, or is to be called again.
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

/// The frame in which an access finds its page: valid until the engine is called again, or as long as the frame is held
/// ([`crate::Engine::hold`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touched {
    /// The page is in this frame.
    Frame(Pfn),
    /// Nowhere, and it reads as zeroes: the zero page, or a hole of a file.
    Zeroes,
    /// Nowhere: reclaim that the task did for `memory.high` on its way back took the page, or another truncated it meanwhile. A load
    /// or store runs again.
    Gone,
}

/// The way in which an access was served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Served {
    /// The page was in memory; only its word was written, or its policy was notified. Or write(2) made it dirty.
    Hit(Touched),
    /// A page fault or a read without device I/O of its own; it may have waited for someone else's.
    Minor(Touched),
    /// The access read from a device.
    Major(Touched),
    /// A write to a kernel file ended.
    Written {
        /// Pages that it has reclaimed.
        reclaimed: u64,
    },
    /// A file of `/proc` is open: the kernel's memory for its reader is allocated, or a block that it takes for itself.
    Opened,
    /// Reads requested by [`crate::Engine::readahead`] are in flight, as far as there is memory for them.
    Advised,
    /// A task has ended, or restarted its program; memory that only it used is free.
    Exited,
    /// fsync(2), sync(2) or syncfs(2) is over: the device has all that was dirty, or has failed to write some of it since this was last asked.
    Synced(Result<(), IoError>),
    /// The requested pages of the file are gone.
    Truncated,
    /// A write to a kernel file ended at a signal (EINTR).
    Interrupted {
        /// Pages that it has reclaimed until then.
        reclaimed: u64,
    },
    /// A write of several commands ended at one that was refused; those before it are done.
    Refused(Box<FileError>),
    /// The access failed.
    Failed(AccessError),
}

/// The event that a waiting task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A device transfer; the task appears in [`crate::Engine::take_woken`] when it is over.
    Io(IoWait),
    /// A span of time.
    Delay(Nanos, DelayReason),
    /// Another task; this one appears in [`crate::Engine::take_woken`] when that has come to it.
    Woken,
    /// Another task, but no longer than a span of time: resume this one when that is over, unless it was named before.
    WokenOr(Nanos, DelayReason),
}

impl Wait {
    /// Returns true if another task may end it.
    pub(crate) fn is_for_wake(self) -> bool {
        matches!(self, Wait::Woken | Wait::WokenOr(..))
    }
}

/// The transfers that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoWait {
    /// A read of a file that it has asked for itself, now or as it read ahead.
    FileRead,
    /// A read from swap, likewise.
    SwapRead,
    /// A page that another task has asked for.
    OthersRead,
    /// Pages under writeback.
    Writeback,
}

/// The reason why a task waits although no device is involved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayReason {
    /// The group is above `memory.high`.
    MemoryHigh,
    /// Reclaim waits for others: too many pages are in reclaimers' hands, or kswapd has to free some first.
    Reclaim,
    /// The OOM killer has been called, and a process that ends will free memory.
    Oom,
    /// The task has dirtied pages faster than they are written.
    DirtyPages,
    /// A kernel thread has nothing to do for a while, or until someone has work for it.
    Nap,
}

/// The reason why a task makes no progress for lack of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memstall {
    /// The task reclaims, or waits in between: for a while or for pages under writeback, which is no I/O of its own.
    Reclaim,
    /// The task waits for a page to be read that was in the working set when it was evicted.
    Refault,
}

/// The reason why an access failed.
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
    /// The device failed to read the page (EIO, SIGBUS).
    Io,
    /// The page's device accepts no dirty pages: its writes fail, and as many pages wait for it as may be dirty (ENOSPC, EIO). The page is unchanged,
    /// and nothing is lost. Only if failed writes stay dirty (`writeback.failed_write=dirty`). The access may be repeated: soon after the device
    /// accepts writes, it succeeds.
    Writeback,
    /// A page of a file can't be removed: it is in use ([`crate::FrameGate`]).
    Held {
        /// The page.
        page: u64,
    },
    /// No memory is free, and none can be reclaimed.
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
            Self::Io => write!(f, "the device failed to read the page (EIO)"),
            Self::Writeback => {
                write!(f, "the device fails to write dirty pages (ENOSPC, EIO): nothing was changed")
            }
            Self::Held { page } => write!(f, "page {page} can't be removed while it is in use"),
            Self::Oom(report) => report.fmt(f),
        }
    }
}

impl std::error::Error for AccessError {}

/// The reason why a page could not be allocated: the state of the group at its limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OomReport {
    /// The group whose limit was hit, or the root when the machine has no page to spare.
    pub memcg: MemcgId,
    /// The group's path.
    pub path: String,
    /// Pages charged.
    pub usage: u64,
    /// The group's limit in pages; `None` when it was the machine.
    pub max: Option<u64>,
    /// The only nodes whose memory would have done, where not any would, and those of them that are offline.
    pub bound: Option<(Nodemask, Nodemask)>,
    /// Pages on its lists: inactive anon, active anon, inactive file, active file, unevictable.
    pub lists: [u64; 5],
    /// Pages of page tables, which lead to pages in memory and in swap.
    pub page_tables: u64,
    /// Its pages that are being read, which can't be reclaimed before that has ended.
    pub being_read: u64,
    /// Pages of the whole machine that guards and unpolled reads hold. The engine knows of none: a machine that has them fills it in.
    pub held: u64,
    /// Pages on these lists that `memory.min` of descendants holds back.
    pub protected: u64,
    /// True if there is any swap.
    pub has_swap: bool,
    /// Free swap pages it may use.
    pub free_swap: u64,
    /// True if `vm.swappiness` is 0 and its lists then swap nothing for it: MGLRU never does, the classic lists not for a limit.
    pub spares_anon: bool,
    /// A reached `memory.swap.max`, its own, an ancestor's, or a descendant's: the group, and its pages.
    pub swap_max: Option<(String, u64)>,
    /// Writes of the whole machine that have failed; what they wrote is still in memory.
    pub failed_writes: u64,
    /// The pages among these since the last one that was written, if the device fails each write.
    pub swap_fails: u64,
    /// The age of the statistics, if all anonymous pages are active, and reclaim with live statistics would make some of them inactive.
    pub stale: Option<Nanos>,
    /// Reclaim attempts made before giving up.
    pub attempts: u32,
    /// The reason why no process was killed for it, if that was tried.
    pub unrelieved: Option<Unrelieved>,
}

/// The reason why no process could be killed for lack of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unrelieved {
    /// No process has anything there.
    NoProcess,
    /// Every process there is exempt: its `oom_score_adj` is -1000.
    AllExempt {
        /// The number of processes.
        processes: usize,
    },
    /// The request may not enter file systems, so no process is killed for it; nor has any task freed memory for long.
    KillsNobody,
}

impl fmt::Display for OomReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [inactive_anon, active_anon, inactive_file, active_file, unevictable] = self.lists;
        match self.max {
            Some(max) => write!(f, "out of memory in {}: {} of {max} pages charged", self.path, self.usage)?,
            None => write!(f, "out of memory: the machine has no free page above its reserve")?,
        }
        if let Some((nodes, offline)) = self.bound {
            write!(f, " on node {nodes}, where the task is bound (membind, cpuset.mems)")?;
            match offline {
                offline if offline.is_empty() => {}
                offline if offline == nodes => write!(f, " and which is offline")?,
                offline => write!(f, "; node {offline} of these is offline")?,
            }
        }
        if self.attempts > 0 {
            write!(f, "; {} reclaim attempts freed too little", self.attempts)?;
        }
        write!(
            f,
            "; lists: anon {inactive_anon} inactive + {active_anon} active, \
             file {inactive_file} inactive + {active_file} active, {unevictable} unevictable"
        )?;
        let unlisted = self.usage.saturating_sub(self.lists.iter().sum());
        if self.max.is_some() && unlisted > 0 {
            write!(f, ", {unlisted} on no list (in a CPU's batch, or isolated by a reclaimer)")?;
        }
        if self.page_tables > self.lists.iter().sum() {
            write!(f, ", {} pages of page tables", self.page_tables)?;
        }
        if self.being_read > 0 {
            write!(f, ", {} of these still being read", self.being_read)?;
        }
        if self.held > 0 {
            write!(f, "; guards and unpolled reads hold {} pages in all groups; help: drop some", self.held)?;
        }
        write!(f, "; free swap {} pages", self.free_swap)?;
        if self.failed_writes > 0 {
            write!(f, "; {} page writes failed", self.failed_writes)?;
        }
        let place = if self.max.is_some() { &self.path } else { "the machine" };
        match self.unrelieved {
            None => {}
            Some(Unrelieved::NoProcess) => write!(
                f,
                "; {place} has no process left to kill: its memory belongs to files or to no process"
            )?,
            Some(Unrelieved::AllExempt { processes: 1 }) => {
                write!(f, "; the only process in {place} may not be killed: its oom_score_adj is -1000")?;
            }
            Some(Unrelieved::AllExempt { processes }) => {
                write!(
                    f,
                    "; none of the {processes} processes in {place} may be killed: their oom_score_adj is -1000"
                )?;
            }
            Some(Unrelieved::KillsNobody) => write!(
                f,
                "; no process is killed for a task that may not enter file systems (io_flusher), and no other task has freed anything for ten seconds"
            )?,
        }
        let causes = self.causes();
        if !causes.is_empty() {
            write!(f, " ({})", causes.join("; "))?;
        }
        Ok(())
    }
}

impl OomReport {
    /// What keeps most of the pages, as far as the figures tell, and what helps against it.
    fn causes(&self) -> Vec<String> {
        let [inactive_anon, active_anon, inactive_file, active_file, _] = self.lists;
        let (anon, file) = (inactive_anon + active_anon, inactive_file + active_file);
        let raise = if self.max.is_some() { "raise memory.max" } else { "give the machine more memory" };
        let mut causes = Vec::new();
        if self.bound.is_some_and(|(nodes, offline)| nodes == offline) {
            causes.push("bring that node online, or bind the task to others".to_string());
            return causes;
        }
        if self.protected > 0 && self.protected * 2 >= anon + file {
            causes.push(format!(
                "memory.min of groups below {} protects {} pages: lower it or {raise}",
                self.path, self.protected
            ));
        }
        if self.swap_fails > 0 {
            causes.push(format!(
                "the last {} page writes to swap failed, so pages stay in memory: free space on the swap device, or replace it",
                self.swap_fails
            ));
            return causes;
        }
        if anon == 0 || anon < file {
            return causes;
        }
        if self.has_swap
            && let Some((path, pages)) = &self.swap_max
        {
            causes
                .push(format!("{path} uses all {pages} pages of its memory.swap.max: raise it, or {raise}"));
        } else if self.has_swap && self.free_swap == 0 {
            causes.push(format!("all swap is used: add swap or {raise}"));
        } else if self.free_swap == 0 {
            causes.push(format!("anonymous memory can't be reclaimed without swap: add swap or {raise}"));
        } else if self.spares_anon {
            causes.push(format!(
                "vm.swappiness is 0, so anonymous memory is not swapped out although swap is free: raise it, or {raise}"
            ));
        } else if self.failed_writes > 0 {
            causes.push("pages whose write to swap failed stay in memory".to_string());
        } else if let Some(age) = self.stale {
            causes.push(format!(
                "all anonymous pages are active, but reclaim's statistics are {age} old and do not show it: Linux 6.12 also kills here; kernel.reclaim.stat_flush = \"6.1\" avoids it"
            ));
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::NodeId;

    #[test]
    fn pages_that_are_charged_and_on_no_list_are_told() {
        let report = OomReport {
            memcg: MemcgId::ROOT,
            path: "/job".to_string(),
            usage: 20,
            max: Some(20),
            bound: None,
            lists: [4, 5, 0, 0, 0],
            page_tables: 0,
            being_read: 0,
            held: 0,
            protected: 0,
            has_swap: true,
            free_swap: 0,
            spares_anon: false,
            swap_max: None,
            failed_writes: 0,
            swap_fails: 0,
            stale: None,
            attempts: 16,
            unrelieved: None,
        };
        let told = report.to_string();
        assert!(told.contains("0 unevictable, 11 on no list"), "{told}");
        assert!(told.ends_with("(all swap is used: add swap or raise memory.max)"), "{told}");
        let told = OomReport { free_swap: 7, spares_anon: true, ..report.clone() }.to_string();
        assert!(told.ends_with("although swap is free: raise it, or raise memory.max)"), "{told}");
        let told = OomReport { usage: 9, ..report.clone() }.to_string();
        assert!(!told.contains("on no list") && !told.contains("being read"), "{told}");
        assert!(!told.contains("guards"), "{told}");
        let told = OomReport { being_read: 3, held: 7, ..report }.to_string();
        assert!(told.contains("11 on no list (in a CPU's batch, or isolated by a reclaimer), 3 of these still being read; guards and unpolled reads hold 7 pages in all groups; help: drop some; free swap"), "{told}");
    }

    #[test]
    fn the_nodes_that_would_have_done_are_told_and_which_of_them_are_offline() {
        let [one, two] =
            [&[1][..], &[1, 2]].map(|nodes| Nodemask::of(nodes.iter().map(|&node| NodeId(node))));
        let told = |bound| {
            let report = OomReport {
                memcg: MemcgId::ROOT,
                path: "/".to_string(),
                usage: 9,
                max: None,
                bound,
                lists: [0, 9, 0, 0, 0],
                page_tables: 0,
                being_read: 0,
                held: 0,
                protected: 0,
                has_swap: false,
                free_swap: 0,
                spares_anon: false,
                swap_max: None,
                failed_writes: 0,
                swap_fails: 0,
                stale: None,
                attempts: 0,
                unrelieved: None,
            };
            report.to_string()
        };
        assert!(!told(None).contains("node"), "{}", told(None));
        let none = Nodemask::of([]);
        let all_there = told(Some((two, none)));
        assert!(
            all_there.contains("reserve on node 1-2, where the task is bound (membind, cpuset.mems); lists")
        );
        let some = told(Some((two, one)));
        assert!(some.contains("(membind, cpuset.mems); node 1 of these is offline; lists"), "{some}");
        let gone = told(Some((one, one)));
        assert!(
            gone.contains("on node 1, where the task is bound (membind, cpuset.mems) and which is offline")
        );
        assert!(gone.ends_with("(bring that node online, or bind the task to others)"), "{gone}");
    }
}
