//! What NUMA balancing knows: of threads, address spaces, mappings and folios, and its knobs with what they steer. [tiering 2; tiering-zswap-6.12 3]

pub mod gain; // whether those that come are used more than those that leave
pub mod governor; // slower, where as many pages leave as come
pub mod period; // how often memory is scanned
pub mod threshold; // what is hot, and how many go
pub mod users; // who used a page last, and where a thread's pages are

use crate::config::Config;
use crate::memory::largest::LargestBlocks;
use crate::memory::per_frame::PerFrame;
use crate::units::{CpuId, Nanos, Pfn, TaskId};
use gain::Gain;
use governor::Governor;
use period::{Faults, ScanKnobs};
use threshold::{AccessTime, PromotionControl, PromotionKnobs};
use users::{LastUser, NodeFaults};

/// State of balancing for the machine.
#[derive(Default)]
pub struct NumaBalancing {
    /// Threshold and rate limit of promotion, by node.
    pub nodes: Vec<PromotionControl>,
    /// The thrash governors, by node.
    pub governors: Vec<Governor>,
    /// Gain of promotion, by node.
    pub gains: Vec<Gain>,
    /// Time at which each folio of slow memory was marked or last faulted upon, as far as the kernel has bits for it. Nothing where nothing was ever
    /// marked.
    pub access_times: PerFrame<u32>,
    /// The last user of each folio at whose hint faults that was asked. A free frame has none.
    pub last_users: PerFrame<LastUser>,
    /// The governor's window in which that was, by its lowest bits. A read of a page for the first time looks at what its frame was marked for
    /// before, so these say something of free frames, too, and stay.
    pub mark_windows: PerFrame<u16>,
    /// Some entry has been marked: from then on who misses has to look.
    pub has_marked: bool,
}

impl NumaBalancing {
    /// Nothing is known of so many nodes.
    pub fn new(nodes: usize) -> NumaBalancing {
        NumaBalancing {
            nodes: vec![PromotionControl::default(); nodes],
            governors: vec![Governor::default(); nodes],
            gains: vec![Gain::default(); nodes],
            ..NumaBalancing::default()
        }
    }

    /// Returns whether an entry may be marked anywhere.
    #[inline(always)]
    pub fn has_marked(&self) -> bool {
        self.has_marked
    }

    /// Makes room for what is known of so many frames.
    pub fn reserve(&mut self, frames: usize) {
        self.access_times.reserve(frames);
        self.last_users.reserve(frames);
        self.mark_windows.reserve(frames);
    }

    /// Frees the times of free blocks. A time is stored whenever an entry is marked, and goes with its page. Only the task that finds the mark reads
    /// it.
    pub fn give_back(&mut self, blocks: &LargestBlocks) {
        self.access_times.give_back(blocks);
        self.last_users.give_back(blocks);
    }

    /// Keeps the user of a folio; returns the one before.
    pub fn exchange_user(&mut self, pfn: Pfn, cpu: CpuId, thread: TaskId) -> LastUser {
        self.last_users.populate(pfn);
        std::mem::replace(&mut self.last_users[pfn], LastUser::new(cpu, thread))
    }

    /// A folio has moved to another frame, or is now one of its own: its last user stays known.
    pub fn copy_user(&mut self, from: Pfn, to: Pfn) {
        let user = self.last_users.get(from);
        if user != LastUser::default() {
            self.last_users.populate(to);
            self.last_users[to] = user;
        }
    }

    /// A frame is free: its next page has had no user.
    #[inline]
    pub fn forget_user(&mut self, pfn: Pfn) {
        if self.last_users.get(pfn) != LastUser::default() {
            self.last_users[pfn] = LastUser::default();
        }
    }

    /// Keeps a time with a folio; returns what was kept before.
    pub fn exchange_access_time(&mut self, pfn: Pfn, stored: u32) -> u32 {
        self.access_times.populate(pfn);
        std::mem::replace(&mut self.access_times[pfn], stored)
    }
}

impl NumaBalancing {
    /// Copies the access time of a marked page that has moved to another frame, or is now a folio of its own.
    pub fn copy_access_time(&mut self, from: Pfn, to: Pfn) {
        let stored = self.access_times.get(from);
        if stored != self.access_times.get(to) {
            self.exchange_access_time(to, stored);
        }
    }
}

impl ScanKnobs {
    /// The knobs of scans, as configured.
    pub fn of(config: &Config) -> ScanKnobs {
        ScanKnobs {
            period_min_ms: config.scan_period_min_ms.into(),
            period_max_ms: config.scan_period_max_ms.into(),
            size_mb: config.scan_size_mb.into(),
        }
    }
}

impl PromotionKnobs {
    /// The knobs of promotion, as configured.
    pub fn of(config: &Config) -> PromotionKnobs {
        PromotionKnobs {
            hot_threshold_ms: config.hot_threshold_ms.into(),
            period_ms: config.scan_period_max_ms.into(),
            rate_limit: u64::from(config.promote_rate_limit_mbps) << 8,
        }
    }
}

impl AccessTime {
    /// The clock of access times, as configured.
    pub fn of(config: &Config) -> AccessTime {
        AccessTime::new(config.last_cpupid_bits)
    }
}

/// Time of the next scan of a thread's memory, as far as the thread determines it.
#[derive(Clone, Default, Debug)]
pub struct ThreadScan {
    /// The thread is the one that its address space began with.
    pub is_first: bool,
    /// The CPU time up to which its periods have been counted.
    pub stamp: Nanos,
    /// `None`: nothing has set it, and it is the delay of a new thread.
    pub period_ms: Option<u64>,
    /// The pass over its memory in which its period was last adapted.
    pub seq: u32,
    /// Not adapted again before this.
    pub retry_at: Nanos,
    /// Hint faults since its period was adapted.
    pub faults: Faults,
    /// The nodes of the pages at which it had hint faults, if pages follow CPUs.
    pub nodes: Option<Box<NodeFaults>>,
}

impl ThreadScan {
    /// The scan of a new thread in an address space with this many others.
    pub fn beside(others: u32) -> ThreadScan {
        ThreadScan { is_first: others == 0, ..ThreadScan::default() }
    }
}

/// The progress of the scan of an address space.
#[derive(Clone, Copy, Default, Debug)]
pub struct MmScan {
    /// No scan before this; zero: none has been asked for yet.
    pub next: Nanos,
    /// Passes over all of it.
    pub seq: u32,
    /// The page at which the next scan goes on.
    pub offset: u64,
}

/// State of scans of a mapping.
#[derive(Clone, Copy, Debug)]
pub struct VmaScan {
    /// The pass in which it was first seen.
    pub start_seq: u32,
    /// The last pass that has seen all of it, if any.
    pub prev_seq: Option<u32>,
    /// A new mapping is left alone until then.
    pub next: Nanos,
    /// Time at which the older set of its users is forgotten.
    pub forget_at: Nanos,
    /// Threads that took hint faults in it, by a bit: those before the last time something was forgotten, and those since.
    pub threads: [u64; 2],
}
