//! Writeback of regular files: which pages are dirty, who writes them and when, and who has to wait for that.
//!
//! ```text
//!   write(2), store ─► dirty.rs ─► the file is on its wb's b_dirty ─► flusher.rs: periodic, background, vmscan ───────► Op::WriteFile
//!          ▲             │ counts                                                                     │ its end: completions
//!          │ waits       ▼                                                                            ▼
//!       throttle.rs ◄── limits.rs: thresh, background thresh, free run                  rates.rs: how fast the device is
//! ```
//! A write to a file costs a copy now and a transfer later. No task would wait for the transfer if the pages did not pile up: a
//! dirty page can't be reclaimed. So the kernel starts to write early (in the background). Before memory is full of dirty pages,
//! it slows the writers down to the speed of the device, rather than stop them when it is full. [machine 5]
//!
//! A *wb* (`bdi_writeback`) is a device's writeback on behalf of one memory group. A file belongs to the wb of the group that
//! dirtied it first, until another dirties it most. One flusher thread a device serves all its wbs in turn.
//!
//! Not modelled: metadata and the journal (a file system writes more than the pages). Pages of tmpfs and anonymous memory are none of
//! this: they are not accounted as dirty.

mod dirty; // a page becomes dirty, under writeback, clean
mod retry; // writes that fail and are tried again
mod failing; // devices that fail, and who waits for them
mod device_flush; // what a device has taken, and loses
mod limits; // how much may be dirty
mod rates; // how fast a device writes, and a task may dirty
mod throttle; // who dirties waits
mod writer; // who dirties writes, in 2010
mod flusher; // the thread that writes, and when
mod work; // which files it writes, and how much of each at a time
mod whole; // work that someone waits for
mod laptop; // writes that wait for a disk that is awake
mod foreign; // files that another group dirties
mod fsync; // a task that waits until its file is written
mod sync; // a task that waits until all files are
mod inode; // what of a file is to be written, as tracepoints show it
mod traced; // all of that as tracepoints show it
mod invariants; // what must always be true

use crate::units::{BdiId, FileId, MemcgId, Nanos, TaskId, WbId};
use failing::Failures;
use flusher::Worker;
use foreign::ForeignWb;
use rates::Rates;
use std::collections::{BTreeMap, VecDeque};

pub use device_flush::Unkept;
pub(crate) use fsync::{Fsync, FsyncStep};
pub(crate) use sync::{SyncCall, SyncStep};
pub(crate) use throttle::{DirtyThrottle, ThrottleStep};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The reason why pages of files are written.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum WritebackReason {
            $($(#[$doc])* $variant,)*
        }

        impl WritebackReason {
            /// All of them.
            pub const ALL: &[WritebackReason] = &[$(WritebackReason::$variant),*];

            /// The kernel's name, as its tracepoints print it.
            pub fn name(self) -> &'static str {
                match self {
                    $(WritebackReason::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// More is dirty than the background threshold.
    Background = "background",
    /// Reclaim met dirty pages only, and asked for them to be written.
    Vmscan = "vmscan",
    /// A task has asked for all that is dirty to be written (sync, syncfs).
    Sync = "sync",
    /// A task waits for its file to be on the device, and starts the writes itself. The kernel's flusher is not involved.
    Fsync = "fsync",
    /// The disk is awake, because something was read (laptop mode).
    LaptopTimer = "laptop_timer",
    /// Pages have been dirty for long enough.
    Periodic = "periodic",
    /// Reclaim wrote them itself, one by one, where its era allows that.
    Pageout = "pageout",
    /// A group over its limits has dirtied files of others.
    Foreign = "foreign_flush",
    /// A task that dirtied too much wrote the pages itself (2010).
    Writer = "balance_dirty_pages",
}

/// All writeback of the machine.
#[derive(Default)]
pub(crate) struct Writeback {
    bdis: Vec<BackingDevice>,
    wbs: Vec<Wb>,
    global: Domain,
    by_memcg: BTreeMap<MemcgId, Domain>,
    /// Pages that each CPU's tasks have dirtied since one of them was last looked at.
    dirtied_by_cpu: BTreeMap<u16, u64>,
    /// Pages that exited tasks had dirtied on each CPU since they were last checked, and that no other task was
    /// checked for.
    left_by_cpu: BTreeMap<u16, u64>,
    /// A CPU checks the task that dirties after this number of pages. Derived from the threshold when the first page was
    /// dirtied, or when the threshold was set. 0: not known yet. [machine 5.3]
    ratelimit_pages: u64,
    written_by: [u64; WritebackReason::ALL.len()],
    failed: u64,
    /// Dirty pages that went with their files.
    cancelled: u64,
    /// How often reclaim has asked the flushers to write.
    wakeups: u64,
    /// Files whose last write has failed, and that have pages to be written: none but where such pages stay dirty.
    stuck: BTreeMap<FileId, Failures>,
}

/// A backing device.
struct BackingDevice {
    wbs: Vec<WbId>,
    /// The device's thread, once the machine has started it.
    flusher: Option<TaskId>,
    /// When all of its dirty pages are to be written, in laptop mode.
    laptop_timer: Option<Nanos>,
    /// Tasks that wait for all of its files.
    syncs: u32,
    limits: BdiLimits,
    /// Its writes fail, since the last one that succeeded.
    failing: Option<Failures>,
}

/// Limits of a device's share of the dirty pages (`/sys/class/bdi/<bdi>/`), however fast it is compared with
/// others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BdiLimits {
    /// The least share of the threshold that the device has. Unit: percent.
    pub min_ratio: u8,
    /// The greatest share of the threshold that the device has. Unit: percent.
    pub max_ratio: u8,
    /// The device's writers are held up by its own share, even while the machine has little that is dirty.
    pub strict_limit: bool,
}

impl Default for BdiLimits {
    fn default() -> BdiLimits {
        BdiLimits { min_ratio: 0, max_ratio: 100, strict_limit: false }
    }
}

/// A device's writeback on behalf of a group.
struct Wb {
    bdi: BdiId,
    memcg: MemcgId,
    /// Files with dirty pages, by the time when they became so: the newest first.
    b_dirty: VecDeque<FileId>,
    /// Files that are being served, from the last.
    b_io: VecDeque<FileId>,
    /// Files whose turn was over before they were clean.
    b_more_io: VecDeque<FileId>,
    /// The wb's dirty pages, and those under writeback.
    nr_dirty: u64,
    nr_writeback: u64,
    /// The wb has more than its share of the dirty pages, and there are too many: its writers are checked more often.
    dirty_exceeded: bool,
    rates: Rates,
    /// Pages written, among all of the machine and among those of its group.
    completions: Completions,
    completions_in_memcg: Completions,
    worker: Worker,
}

/// A domain of dirty limits: the machine, or a group.
#[derive(Default)]
struct Domain {
    completions: Completions,
    /// Follows the threshold: immediately when it rises, slowly when it falls. [machine 5.2]
    dirty_limit: u64,
    /// The tick of its last change.
    dirty_limit_at: u64,
    /// Wbs of other groups whose files this one has dirtied lately.
    foreign: Vec<ForeignWb>,
}

/// Pages written, of which those of the past count half as much with each period.
#[derive(Clone, Copy, Default, Debug)]
struct Completions {
    aged: u64,
    period: u64,
}

impl Completions {
    /// Period after which the counts of pages written are halved.
    const PERIOD: Nanos = Nanos(3 * Nanos::SECOND.0);
    /// Fractions of a page that are kept.
    const UNIT: u64 = 1 << 16;

    fn add(&mut self, now: Nanos, pages: u64) {
        self.aged = self.at(now) + pages * Self::UNIT;
        self.period = now.0 / Self::PERIOD.0;
    }

    fn at(&self, now: Nanos) -> u64 {
        let periods = now.0 / Self::PERIOD.0 - self.period;
        self.aged.checked_shr(u32::try_from(periods).unwrap_or(u32::MAX)).unwrap_or(0)
    }
}

impl Writeback {
    /// Makes a device known; its flusher thread is the caller's business.
    pub(crate) fn add_bdi(&mut self) -> BdiId {
        self.bdis.push(BackingDevice {
            wbs: Vec::new(),
            flusher: None,
            laptop_timer: None,
            syncs: 0,
            limits: BdiLimits::default(),
            failing: None,
        });
        BdiId((self.bdis.len() - 1) as u16)
    }

    pub(crate) fn set_bdi_limits(&mut self, bdi: BdiId, limits: BdiLimits) {
        self.bdis[bdi.index()].limits = limits;
    }

    pub(crate) fn bdis(&self) -> usize {
        self.bdis.len()
    }

    /// Pages whose write was begun for this reason.
    pub(crate) fn written_by(&self, reason: WritebackReason) -> u64 {
        self.written_by[reason as usize]
    }

    /// How often reclaim has asked the flushers to write.
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups
    }

    pub(crate) fn note_cancelled(&mut self, pages: u64) {
        self.cancelled += pages;
    }

    /// Dirty pages that went with their files, and were not written.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled
    }

    /// Pages whose write the device has failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// The wb of a group on a device, which comes to be `now` if there is none: the machine's was there from the start. (In cgroup
    /// v1 all are the root's: `Core::wb_for`.)
    fn wb_of(&mut self, bdi: BdiId, memcg: MemcgId, now: Nanos, ticks: u64) -> WbId {
        let wbs = &self.bdis[bdi.index()].wbs;
        let found = wbs.iter().copied().find(|wb| self.wbs[wb.index()].memcg == memcg);
        found.unwrap_or_else(|| {
            let wb = WbId(self.wbs.len() as u32);
            let (since, ticks) = if memcg == MemcgId::ROOT { (Nanos::ZERO, 0) } else { (now, ticks) };
            self.wbs.push(Wb::new(bdi, memcg, since, ticks));
            self.bdis[bdi.index()].wbs.push(wb);
            wb
        })
    }

    fn wb(&self, wb: WbId) -> &Wb {
        &self.wbs[wb.index()]
    }

    /// Pages of a wb that are dirty, and that are under writeback.
    pub(crate) fn pages_of(&self, wb: WbId) -> [u64; 2] {
        [self.wb(wb).nr_dirty, self.wb(wb).nr_writeback]
    }

    fn wb_mut(&mut self, wb: WbId) -> &mut Wb {
        &mut self.wbs[wb.index()]
    }

    fn domain(&self, memcg: MemcgId) -> Option<&Domain> {
        if memcg == MemcgId::ROOT { Some(&self.global) } else { self.by_memcg.get(&memcg) }
    }

    fn domain_mut(&mut self, memcg: MemcgId) -> &mut Domain {
        if memcg == MemcgId::ROOT { &mut self.global } else { self.by_memcg.entry(memcg).or_default() }
    }
}

impl Wb {
    fn new(bdi: BdiId, memcg: MemcgId, since: Nanos, ticks: u64) -> Wb {
        Wb {
            bdi,
            memcg,
            b_dirty: VecDeque::new(),
            b_io: VecDeque::new(),
            b_more_io: VecDeque::new(),
            nr_dirty: 0,
            nr_writeback: 0,
            dirty_exceeded: false,
            rates: Rates::since(ticks),
            completions: Completions::default(),
            completions_in_memcg: Completions::default(),
            worker: Worker::new(since),
        }
    }

    /// What counts as its dirty pages where someone is slowed down for them.
    fn dirty(&self) -> u64 {
        self.nr_dirty + self.nr_writeback
    }

    fn has_dirty_files(&self) -> bool {
        !(self.b_dirty.is_empty() && self.b_io.is_empty() && self.b_more_io.is_empty())
            || self.worker.holds_a_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_count_half_after_a_period() {
        let mut completions = Completions::default();
        completions.add(Nanos(5), 64);
        assert_eq!(completions.at(Nanos(5)), 64 * Completions::UNIT);
        assert_eq!(completions.at(Completions::PERIOD), 32 * Completions::UNIT);
        completions.add(Nanos(2 * Completions::PERIOD.0), 1);
        assert_eq!(completions.at(Nanos(2 * Completions::PERIOD.0)), 17 * Completions::UNIT);
        assert_eq!(completions.at(Nanos(u64::MAX)), 0);
    }
}
