//! The work of a reclaim call: pages scanned, freed and written, and what became of those it kept.

use crate::ftrace::{CallKind, Event, KEPT, Lru};

/// Kind of reclaimer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reclaimer {
    /// A task in direct reclaim: the machine is short of memory.
    Direct,
    /// A task in memcg reclaim: its cgroup is at its limit.
    Memcg,
    /// A task or kswapd that reclaims from cgroups above their soft limit (cgroup v1).
    SoftLimit,
    /// A task in node reclaim: its node is short of memory.
    Node,
    /// kswapd.
    Kswapd,
    /// A task outside of any call whose begin the trace has.
    Outside,
}

impl Reclaimer {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Reclaimer; 6] = [
        Reclaimer::Direct,
        Reclaimer::Memcg,
        Reclaimer::SoftLimit,
        Reclaimer::Node,
        Reclaimer::Kswapd,
        Reclaimer::Outside,
    ];

    /// Short name: `direct`, `memcg`, `kswapd` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Reclaimer::Direct => "direct",
            Reclaimer::Memcg => "memcg",
            Reclaimer::SoftLimit => "memcg_softlimit",
            Reclaimer::Node => "node",
            Reclaimer::Kswapd => "kswapd",
            Reclaimer::Outside => "outside",
        }
    }
}

impl From<CallKind> for Reclaimer {
    fn from(kind: CallKind) -> Reclaimer {
        match kind {
            CallKind::Direct => Reclaimer::Direct,
            CallKind::Memcg => Reclaimer::Memcg,
            CallKind::SoftLimit => Reclaimer::SoftLimit,
            CallKind::Node => Reclaimer::Node,
        }
    }
}

/// Pages by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByType {
    /// Anonymous pages and tmpfs.
    pub anon: u64,
    /// Pages of files.
    pub file: u64,
    /// Pages whose type the event does not have.
    pub unknown: u64,
}

impl ByType {
    /// Pages of all types.
    pub fn total(self) -> u64 {
        self.anon + self.file + self.unknown
    }

    fn count(&mut self, lru: Option<Lru>, pages: u64) {
        *match lru {
            Some(Lru::Anon) => &mut self.anon,
            Some(Lru::File) => &mut self.file,
            None => &mut self.unknown,
        } += pages;
    }

    fn add(&mut self, other: ByType) {
        self.anon += other.anon;
        self.file += other.file;
        self.unknown += other.unknown;
    }
}

/// Work of a call, of a task, or of all tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Pages scanned on inactive lists.
    pub scanned: ByType,
    /// Pages isolated. MGLRU scans more than it isolates.
    taken: ByType,
    /// Pages judged in batches.
    pub(super) judged: ByType,
    /// Isolation events without a count of isolated pages.
    pub(super) isolations_without_taken: u64,
    /// Pages freed.
    pub reclaimed: ByType,
    /// Number of batch events (`mm_vmscan_lru_shrink_inactive`). Without them, only the ends of calls have pages freed.
    pub batches: u64,
    /// Pages written and waited for.
    pub written_sync: ByType,
    /// Pages written and not waited for.
    pub written_async: ByType,
    /// Dirty pages isolated for a high order (lumpy reclaim, 2010).
    pub contig_dirty: u64,
    /// Pages kept because they were dirty.
    pub dirty: u64,
    /// Pages kept because they were under writeback.
    pub writeback: u64,
    /// Pages kept because they were under writeback, to be freed at its end.
    pub immediate: u64,
    /// Pages made active.
    pub activated: u64,
    /// Pages kept because they were used.
    pub referenced: u64,
    /// Pages kept because they were mapped.
    pub unmap_failed: u64,
    /// Time throttled, in microseconds.
    pub throttled_us: u64,
    /// Time throttled by reason, in microseconds; a wait for two reasons counts with both.
    pub throttled_for_us: [u64; 4],
    /// Reasons for keeping pages that any batch event had, one bit each in the order of [`KEPT`].
    pub known: u8,
    /// The lowest priority (12 is the gentlest, 0 scans everything).
    pub priority: Option<u8>,
}

impl Work {
    /// The work of one event.
    pub fn of(event: Event) -> Work {
        let mut work = Work::default();
        match event {
            Event::Isolate(isolated) => {
                work.contig_dirty = isolated.contig_dirty;
                if !isolated.is_active {
                    work.scanned.count(isolated.lru, isolated.scanned);
                    work.taken.count(isolated.lru, isolated.taken.unwrap_or(0));
                    work.isolations_without_taken = u64::from(isolated.taken.is_none());
                }
            }
            Event::ShrinkInactive(shrunk) => {
                work.batches = 1;
                work.judged.count(shrunk.lru, shrunk.scanned);
                work.reclaimed.count(shrunk.lru, shrunk.reclaimed);
                work.dirty = shrunk.dirty;
                work.writeback = shrunk.writeback;
                work.immediate = shrunk.immediate;
                work.activated = shrunk.activated;
                work.referenced = shrunk.referenced;
                work.unmap_failed = shrunk.unmap_failed;
                work.known = shrunk.known;
                work.priority = shrunk.priority;
            }
            Event::Write(write) if write.is_sync => work.written_sync.count(write.lru, 1),
            Event::Write(write) => work.written_async.count(write.lru, 1),
            Event::Throttled { delayed_us, reasons } => {
                work.throttled_us = delayed_us;
                for (bit, time) in work.throttled_for_us.iter_mut().enumerate() {
                    *time = if reasons >> bit & 1 == 1 { delayed_us } else { 0 };
                }
            }
            _ => {}
        }
        work
    }

    /// Pages kept by reason, in the order of [`KEPT`]; `None` if batch events do not have the reason.
    pub fn kept(&self) -> [Option<u64>; KEPT.len()] {
        let pages =
            [self.activated, self.referenced, self.dirty, self.writeback, self.immediate, self.unmap_failed];
        std::array::from_fn(|at| Some(pages[at]).filter(|_| self.batches == 0 || self.known >> at & 1 == 1))
    }

    /// No isolation was recorded, so the batches have the scanned pages.
    pub(super) fn count_judged_as_scanned(&mut self) {
        (self.scanned, self.taken) = (self.judged, self.judged);
    }

    /// Pages isolated; `None` if an isolation event lacks the count.
    pub fn taken(&self) -> Option<ByType> {
        Some(self.taken).filter(|_| self.isolations_without_taken == 0)
    }

    /// Pages written, waited for or not.
    pub fn written(&self) -> u64 {
        self.written_sync.total() + self.written_async.total()
    }

    /// Adds the work of another task or call.
    pub fn add(&mut self, other: &Work) {
        self.scanned.add(other.scanned);
        self.taken.add(other.taken);
        self.judged.add(other.judged);
        self.isolations_without_taken += other.isolations_without_taken;
        self.reclaimed.add(other.reclaimed);
        self.batches += other.batches;
        self.written_sync.add(other.written_sync);
        self.written_async.add(other.written_async);
        self.contig_dirty += other.contig_dirty;
        self.dirty += other.dirty;
        self.writeback += other.writeback;
        self.immediate += other.immediate;
        self.activated += other.activated;
        self.referenced += other.referenced;
        self.unmap_failed += other.unmap_failed;
        self.throttled_us += other.throttled_us;
        for (time, more) in self.throttled_for_us.iter_mut().zip(other.throttled_for_us) {
            *time += more;
        }
        self.known |= other.known;
        self.priority = [self.priority, other.priority].into_iter().flatten().min();
    }
}
