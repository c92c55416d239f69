//! What is under the engine's lock, in parts: the engine and the effects of its calls, files, transfers, hits, and what waits.

use std::collections::VecDeque;
use std::sync::Arc;

use pageout_engine::{CpuId, Engine, MemcgId, MmId, Nanos, ObjectId, Op, Pfn, TaskId, Wait};

use super::device::Devices;
use super::driven::Driven;
use super::frames::Spare;
use super::groups::Removed;
use super::moves::Move;
use super::open_file::OpenFile;
use super::regions::Regions;
use super::transfer::Transfer;
use crate::counts::Sum;
use crate::ring::{Hits, Read, Ring};
use crate::storage::Storage;
use crate::sync::Mutex;
use crate::sync::thread::Thread;
use crate::works::Sleeper;

/// State under the lock.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(super) effects: Effects,
    pub(crate) files: Files,
    pub(crate) regions: Regions,
    pub(crate) transfers: Transfers,
    pub(crate) hits: HitLog,
    pub(super) waiting: Waiting,
    /// The engine's time.
    pub(super) now: Nanos,
    /// Times that the lock was taken by [`super::LiveMachine::lock`].
    pub(crate) holds: u64,
    /// The cache is being dropped.
    pub(super) stops: bool,
}

/// Decisions of the engine's calls, and the actions that they need.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) ops: Vec<Op>,
    pub(super) woken: Vec<TaskId>,
    /// Copies of pages that have moved, to be made when the lock is free.
    pub(super) moves: Vec<Move>,
    /// Frames to fill with zeroes before the lock is released, unless their writer fills them.
    pub(super) zeroes: Vec<Pfn>,
    /// Pages of mapped regions that leave memory, to be freed before the lock is released.
    pub(super) holes: Vec<(MmId, u64)>,
    /// Threads and tasks to be woken when the lock is free.
    pub(super) to_wake: Vec<Sleeper>,
}

/// The files of the cache, and the groups on whose behalf they are accessed.
pub(crate) struct Files {
    /// By the number of a file; nothing for one that is forgotten.
    pub(crate) open: Vec<Option<OpenFile>>,
    pub(crate) groups: Vec<Group>,
    /// Groups that were removed, and what the engine still has of them.
    pub(super) removed: Removed,
    /// The task that has all files open, and never accesses any.
    pub(crate) owner: TaskId,
    /// Objects of handles that are gone.
    pub(super) to_close: Vec<ObjectId>,
    /// Handles of files that there have been.
    pub(super) serials: u64,
    /// Handles that are gone.
    pub(crate) closed: u64,
    /// Time of the last check of closed files.
    pub(super) tended_at: Nanos,
}

/// Reads and writes of devices: those to begin, and their counts.
#[derive(Default)]
pub(crate) struct Transfers {
    /// Reads that were asked for, and not begun.
    pub(super) reads: Vec<Transfer>,
    /// Reads for the threads that read.
    pub(super) queue: VecDeque<Transfer>,
    pub(super) devices: Devices,
    pub(super) spare: Spare,
    pub(super) swap: Option<Swap>,
    /// Since when none of the transfers that there are could begin.
    pub(super) held_up_since: Option<Nanos>,
    /// Accesses whose page was missing.
    pub(crate) misses: u64,
    pub(crate) device_reads: u64,
    pub(crate) device_bytes: u64,
    pub(crate) device_writes: u64,
    pub(crate) device_bytes_written: u64,
}

/// The swap file.
pub(super) struct Swap {
    pub(super) disk: Arc<dyn Storage>,
    pub(super) device: usize,
    /// The last error of a read of a slot.
    pub(super) read_error: i32,
}

/// Hits of all threads, on their way to the engine.
pub(crate) struct HitLog {
    /// The task that hits are attributed to.
    pub(super) hitter: TaskId,
    /// The task is in the middle of promoting what was read in a call.
    pub(super) is_promoting: bool,
    pub(crate) rings: Vec<Arc<Ring>>,
    /// Hits that have left the rings, and that the engine was not notified of, in order.
    pub(super) untold: VecDeque<Read>,
    /// Counts of rings whose threads are gone.
    pub(super) of_ended: Hits,
    /// Pins of threads that are gone.
    pub(crate) pins_of_ended: i64,
}

/// Tasks that wait, and what runs when they go on.
#[derive(Default)]
pub(super) struct Waiting {
    /// By task.
    pub(super) waiters: Vec<Waiter>,
    pub(super) threads: Vec<KernelThread>,
    /// The one among them that ran last.
    pub(super) ran_last: usize,
    /// The thread that runs the kernel threads is waiting.
    pub(super) service_sleeps: bool,
    /// Misses that no thread waits for, and that may go on.
    pub(super) due: VecDeque<TaskId>,
    /// Misses that no thread waits for, and when they may go on.
    pub(super) timed: Vec<(Nanos, TaskId)>,
}

/// An address space, to which pages are charged, and tasks that access on its behalf.
pub(crate) struct Group {
    pub(crate) mm: MmId,
    /// The cgroup that the pages are charged to.
    pub(crate) memcg: MemcgId,
    pub(super) idle: Arc<Mutex<Vec<TaskId>>>,
    /// Distinguishes it from earlier and later groups with the same number; 0 for one without a name.
    pub(super) serial: u64,
    /// Its name, if callers have given it one.
    pub(super) name: Option<String>,
    /// Accesses through handles that are gone, and to regions.
    pub(super) of_closed: Sum,
}

impl Group {
    pub(super) fn new(mm: MmId, memcg: MemcgId) -> Group {
        Group { mm, memcg, idle: Arc::default(), serial: 0, name: None, of_closed: Sum::default() }
    }
}

/// A task, and who waits for it.
#[derive(Default)]
pub(super) struct Waiter {
    pub(super) is_woken: bool,
    pub(super) thread: Option<Thread>,
    /// No thread does.
    pub(super) driven: Option<Box<Driven>>,
}

pub(super) struct KernelThread {
    pub(super) task: TaskId,
    pub(super) runs: Runs,
}

/// When a kernel thread continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Runs {
    Now,
    /// As soon as this device accepts more writes.
    WithRoom(usize),
    WhenWoken,
    /// At this time, or when it is woken.
    At(Nanos),
}

impl Inner {
    /// State of an engine that has no task yet.
    pub(super) fn new(mut engine: Engine, swap: Option<Arc<dyn Storage>>) -> Inner {
        let mut transfers = Transfers::default();
        transfers.swap = swap.map(|disk| {
            let device = transfers.devices.add_swap();
            Swap { disk, device, read_error: libc::EIO }
        });
        let mm = engine.process_create(MemcgId::ROOT);
        let [owner, hitter] = [(); 2].map(|()| engine.task_create(mm, CpuId(0)));
        let threads = engine.start_kernel_threads();
        let threads = threads
            .into_iter()
            .map(|thread| KernelThread { task: thread.task, runs: Runs::after(thread.wait, Nanos::ZERO) });
        Inner {
            engine,
            effects: Effects::default(),
            files: Files {
                open: Vec::new(),
                groups: vec![Group::new(mm, MemcgId::ROOT)],
                removed: Removed::default(),
                owner,
                to_close: Vec::new(),
                serials: 0,
                closed: 0,
                tended_at: Nanos::ZERO,
            },
            transfers,
            regions: Regions::default(),
            hits: HitLog {
                hitter,
                is_promoting: false,
                rings: Vec::new(),
                untold: VecDeque::new(),
                of_ended: Hits::default(),
                pins_of_ended: 0,
            },
            waiting: Waiting { threads: threads.collect(), ..Waiting::default() },
            now: Nanos::ZERO,
            holds: 0,
            stops: false,
        }
    }
}

impl Runs {
    /// State of a kernel thread that waits from now on.
    pub(super) fn after(wait: Wait, now: Nanos) -> Runs {
        match wait {
            Wait::Io(_) | Wait::Woken => Runs::WhenWoken,
            Wait::Delay(span, _) | Wait::WokenOr(span, _) => Runs::At(now + span),
        }
    }
}
