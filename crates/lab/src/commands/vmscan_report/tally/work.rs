//! The work of a reclaim call: pages scanned, freed and written, and what became of those it kept.

use crate::commands::vmscan_report::ftrace::{CallKind, Event, KEPT, Lru};

/// Who reclaims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands::vmscan_report) enum Class {
    /// A task, since the machine is short of memory.
    Direct,
    /// A task, since its cgroup is at its limit.
    Memcg,
    /// A task or kswapd, from cgroups above their soft limit.
    SoftLimit,
    /// A task, since its node is short of memory.
    Node,
    /// kswapd.
    Kswapd,
    /// Anything that the trace does not show the begin of.
    Outside,
}

impl Class {
    pub(in crate::commands::vmscan_report) const ALL: [Class; 6] =
        [Class::Direct, Class::Memcg, Class::SoftLimit, Class::Node, Class::Kswapd, Class::Outside];

    /// The name of the class in results.
    pub(in crate::commands::vmscan_report) fn name(self) -> &'static str {
        match self {
            Class::Direct => "direct",
            Class::Memcg => "memcg",
            Class::SoftLimit => "memcg_softlimit",
            Class::Node => "node",
            Class::Kswapd => "kswapd",
            Class::Outside => "outside",
        }
    }
}

impl From<CallKind> for Class {
    fn from(kind: CallKind) -> Class {
        match kind {
            CallKind::Direct => Class::Direct,
            CallKind::Memcg => Class::Memcg,
            CallKind::SoftLimit => Class::SoftLimit,
            CallKind::Node => Class::Node,
        }
    }
}

/// A count by type of page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::commands::vmscan_report) struct ByType {
    pub(in crate::commands::vmscan_report) anon: u64,
    pub(in crate::commands::vmscan_report) file: u64,
    /// The type was not told.
    pub(in crate::commands::vmscan_report) untold: u64,
}

impl ByType {
    pub(in crate::commands::vmscan_report) fn total(self) -> u64 {
        self.anon + self.file + self.untold
    }

    fn count(&mut self, lru: Option<Lru>, pages: u64) {
        *match lru {
            Some(Lru::Anon) => &mut self.anon,
            Some(Lru::File) => &mut self.file,
            None => &mut self.untold,
        } += pages;
    }

    fn add(&mut self, other: ByType) {
        self.anon += other.anon;
        self.file += other.file;
        self.untold += other.untold;
    }
}

/// Work of a call, of a task, or of all tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::commands::vmscan_report) struct Work {
    /// Pages looked at on inactive lists.
    pub(in crate::commands::vmscan_report) scanned: ByType,
    /// Pages taken to be judged. Generations look at more than they take.
    taken: ByType,
    /// Pages judged in batches.
    pub(super) judged: ByType,
    /// Isolations that did not say how many pages they took.
    pub(super) takes_untold: u64,
    /// Pages freed.
    pub(in crate::commands::vmscan_report) reclaimed: ByType,
    /// Whether anything was said about freeing: the dialect of 2010 says it at the end of a call only.
    pub(in crate::commands::vmscan_report) batches: u64,
    /// Pages written and waited for.
    pub(in crate::commands::vmscan_report) written_sync: ByType,
    /// Pages written and not waited for.
    pub(in crate::commands::vmscan_report) written_async: ByType,
    /// Dirty pages taken along for a high order.
    pub(in crate::commands::vmscan_report) contig_dirty: u64,
    /// Pages kept because they were dirty.
    pub(in crate::commands::vmscan_report) dirty: u64,
    /// Pages kept because they were under writeback.
    pub(in crate::commands::vmscan_report) writeback: u64,
    /// Pages kept because they were under writeback, to be freed at its end.
    pub(in crate::commands::vmscan_report) immediate: u64,
    /// Pages made active.
    pub(in crate::commands::vmscan_report) activated: u64,
    /// Pages kept because they were used.
    pub(in crate::commands::vmscan_report) referenced: u64,
    /// Pages kept because they were mapped.
    pub(in crate::commands::vmscan_report) unmap_failed: u64,
    /// Time throttled, in microseconds.
    pub(in crate::commands::vmscan_report) throttled_us: u64,
    /// Time throttled by reason, in microseconds; a wait for two reasons counts with both.
    pub(in crate::commands::vmscan_report) throttled_for_us: [u64; 4],
    /// Which of the reasons to keep a page any event told, a bit each in the order of `KEPT`.
    pub(in crate::commands::vmscan_report) told: u8,
    /// The hardest that reclaim tried: the lowest priority.
    pub(in crate::commands::vmscan_report) priority: Option<u8>,
}

impl Work {
    /// The work of one event.
    pub(in crate::commands::vmscan_report) fn of(event: Event) -> Work {
        let mut work = Work::default();
        match event {
            Event::Isolate(isolated) => {
                work.contig_dirty = isolated.contig_dirty;
                if !isolated.is_active {
                    work.scanned.count(isolated.lru, isolated.scanned);
                    work.taken.count(isolated.lru, isolated.taken.unwrap_or(0));
                    work.takes_untold = u64::from(isolated.taken.is_none());
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
                work.told = shrunk.told;
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

    /// Pages kept for each reason, in the order of `KEPT`; `None` where events were there and none told it.
    pub(in crate::commands::vmscan_report) fn kept(&self) -> [Option<u64>; KEPT.len()] {
        let pages =
            [self.activated, self.referenced, self.dirty, self.writeback, self.immediate, self.unmap_failed];
        std::array::from_fn(|at| Some(pages[at]).filter(|_| self.batches == 0 || self.told >> at & 1 == 1))
    }

    /// No isolation was recorded: the batches say what was looked at.
    pub(super) fn count_judged_as_scanned(&mut self) {
        (self.scanned, self.taken) = (self.judged, self.judged);
    }

    /// Pages taken to be judged, if every isolation said it.
    pub(in crate::commands::vmscan_report) fn taken(&self) -> Option<ByType> {
        Some(self.taken).filter(|_| self.takes_untold == 0)
    }

    /// Pages written.
    pub(in crate::commands::vmscan_report) fn written(&self) -> u64 {
        self.written_sync.total() + self.written_async.total()
    }

    pub(in crate::commands::vmscan_report) fn add(&mut self, other: &Work) {
        self.scanned.add(other.scanned);
        self.taken.add(other.taken);
        self.judged.add(other.judged);
        self.takes_untold += other.takes_untold;
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
        self.told |= other.told;
        self.priority = [self.priority, other.priority].into_iter().flatten().min();
    }
}
