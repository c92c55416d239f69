//! Counters under the kernel's names, and how old a reader's copy of them is.
//!
//! Every event is counted on its node at once (`/proc/vmstat`) and on the lruvec of its memcg. What reclaim reads of a
//! memcg's statistics is not that live value but the one of the last *flush*, which also sums up the descendants: a
//! periodic worker flushes every two seconds, a reader of `memory.stat` when enough updates are pending, reclaim itself
//! only when the worker is late. In between, the activation counter seems to stand still and lists seem to have their old
//! length, so active lists grow larger than live counters would let them. Measured on 6.12 this rule alone moves misses
//! by up to 8 %. [reclaim 2.15 and its 6.12 form]

use crate::engine::Engine;
use crate::lruvec::{Lruvec, LruvecId};
use crate::units::{LruType, MemcgId, Nanos, NodeId};

macro_rules! stats {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A counter of `/proc/vmstat` or `memory.stat`, under the kernel's name. Unit: pages or events.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)] // the kernel's names say it
        pub enum Stat {
            $($(#[$doc])* $variant,)*
        }

        impl Stat {
            /// All counters, in the order of `/proc/vmstat`.
            pub const ALL: &[Stat] = &[$(Stat::$variant),*];

            /// The kernel's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Stat::$variant => $name,)*
                }
            }
        }
    };
}

stats! {
    NrFreePages = "nr_free_pages",
    NrInactiveAnon = "nr_inactive_anon",
    NrActiveAnon = "nr_active_anon",
    NrInactiveFile = "nr_inactive_file",
    NrActiveFile = "nr_active_file",
    NrUnevictable = "nr_unevictable",
    NrMlock = "nr_mlock",
    NrIsolatedAnon = "nr_isolated_anon",
    NrIsolatedFile = "nr_isolated_file",
    WorkingsetNodes = "workingset_nodes",
    WorkingsetRefaultAnon = "workingset_refault_anon",
    WorkingsetRefaultFile = "workingset_refault_file",
    WorkingsetActivateAnon = "workingset_activate_anon",
    WorkingsetActivateFile = "workingset_activate_file",
    WorkingsetRestoreAnon = "workingset_restore_anon",
    WorkingsetRestoreFile = "workingset_restore_file",
    WorkingsetNodereclaim = "workingset_nodereclaim",
    NrAnonPages = "nr_anon_pages",
    NrMapped = "nr_mapped",
    NrFilePages = "nr_file_pages",
    NrDirty = "nr_dirty",
    NrWriteback = "nr_writeback",
    NrShmem = "nr_shmem",
    NrVmscanWrite = "nr_vmscan_write",
    NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
    NrDirtied = "nr_dirtied",
    NrWritten = "nr_written",
    NrSwapcached = "nr_swapcached",
    Pgpgin = "pgpgin",
    Pgpgout = "pgpgout",
    Pswpin = "pswpin",
    Pswpout = "pswpout",
    PgallocNormal = "pgalloc_normal",
    Pgfree = "pgfree",
    Pgactivate = "pgactivate",
    Pgdeactivate = "pgdeactivate",
    Pglazyfree = "pglazyfree",
    Pgfault = "pgfault",
    Pgmajfault = "pgmajfault",
    Pglazyfreed = "pglazyfreed",
    Pgrefill = "pgrefill",
    PgstealDirect = "pgsteal_direct",
    PgstealProactive = "pgsteal_proactive",
    PgscanDirect = "pgscan_direct",
    PgscanProactive = "pgscan_proactive",
    PgscanAnon = "pgscan_anon",
    PgscanFile = "pgscan_file",
    PgstealAnon = "pgsteal_anon",
    PgstealFile = "pgsteal_file",
    Pgrotated = "pgrotated",
    OomKill = "oom_kill",
    UnevictablePgsCulled = "unevictable_pgs_culled",
    UnevictablePgsRescued = "unevictable_pgs_rescued",
    UnevictablePgsMlocked = "unevictable_pgs_mlocked",
    UnevictablePgsMunlocked = "unevictable_pgs_munlocked",
}

/// How many counters there are.
pub(crate) const STATS: usize = Stat::ALL.len();

/// One value a counter.
pub(crate) type Counters = [i64; STATS];

/// The counter of a pair that belongs to this type of memory.
pub(crate) trait ByType {
    fn of(self, kind: LruType) -> Stat;
}

impl ByType for [Stat; 2] {
    fn of(self, kind: LruType) -> Stat {
        self[kind as usize]
    }
}

pub(crate) const REFAULT: [Stat; 2] = [Stat::WorkingsetRefaultAnon, Stat::WorkingsetRefaultFile];
pub(crate) const ACTIVATE: [Stat; 2] = [Stat::WorkingsetActivateAnon, Stat::WorkingsetActivateFile];
pub(crate) const RESTORE: [Stat; 2] = [Stat::WorkingsetRestoreAnon, Stat::WorkingsetRestoreFile];
pub(crate) const PGSCAN: [Stat; 2] = [Stat::PgscanAnon, Stat::PgscanFile];
pub(crate) const PGSTEAL: [Stat; 2] = [Stat::PgstealAnon, Stat::PgstealFile];
pub(crate) const ISOLATED: [Stat; 2] = [Stat::NrIsolatedAnon, Stat::NrIsolatedFile];

/// Updates that a CPU gathers before it tells the group of them, and per CPU before a reader's flush is worth it.
const UPDATES_BATCH: u64 = 64;

impl Engine {
    /// Counts an event of a memcg: in its statistics and on the node.
    pub(crate) fn count(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        self.count_memcg(lruvec, stat, n);
        self.count_node(self.lruvecs[lruvec].node, stat, n);
    }

    /// Counts an event in `/proc/vmstat` only.
    pub(crate) fn count_node(&mut self, node: NodeId, stat: Stat, n: i64) {
        self.vmstat[node.index()][stat as usize] += n;
    }

    /// Counts an event in `memory.stat` only, as memcg reclaim does with `pgscan_direct` and its like.
    pub(crate) fn count_memcg(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        let counters = &mut self.lruvecs[lruvec];
        counters.stat_local[stat as usize] += n;
        let mut level = Some(counters.memcg);
        if self.config.stat_flush == crate::StatFlush::Live {
            return self.count_flushed(lruvec, stat, n);
        }
        while let Some(id) = level {
            let group = &mut self.memcgs[id];
            let gathered = &mut group.updates_by_cpu[self.cpu.index()];
            *gathered += n.unsigned_abs();
            if *gathered >= UPDATES_BATCH {
                group.updates_pending += std::mem::take(gathered);
            }
            level = group.parent;
        }
    }

    /// Counts an event in what readers see of the group and its ancestors, where that is never stale.
    #[cold]
    fn count_flushed(&mut self, lruvec: LruvecId, stat: Stat, n: i64) {
        let Lruvec { memcg, node, .. } = self.lruvecs[lruvec];
        for id in self.memcgs.ancestors(memcg) {
            let lruvec = self.lruvecs.id(id, node);
            self.lruvecs[lruvec].stat_flushed[stat as usize] += n;
        }
    }

    /// What reclaim reads of a counter: its value at the last flush, descendants included, never negative.
    pub(crate) fn stale(&self, lruvec: LruvecId, stat: Stat) -> u64 {
        self.lruvecs[lruvec].stat_flushed[stat as usize].max(0) as u64
    }

    /// The periodic worker: brings every group's statistics up to date.
    pub fn flush_stats(&mut self) {
        self.flush_memcg_stats(MemcgId::ROOT);
        self.last_root_flush = self.now;
    }

    /// How often the machine must call [`Engine::flush_stats`]; `None` where it need not.
    pub fn stat_flush_period(&self) -> Option<Nanos> {
        (self.config.stat_flush == crate::StatFlush::Periodic).then(|| self.config.stat_flush_period())
    }

    /// Flushes from inside reclaim and refaults: only if the worker is late by a whole period, because flushing on every
    /// call costs more than stale numbers do.
    pub(crate) fn flush_stats_ratelimited(&mut self) {
        let Some(period) = self.stat_flush_period() else { return };
        if self.now > self.last_root_flush + period + period {
            self.flush_stats();
        }
    }

    /// A reader of `memory.stat` gets fresh numbers, but only pays for a flush when enough has changed.
    pub(crate) fn flush_for_reader(&mut self, memcg: MemcgId) {
        if self.memcgs[memcg].updates_pending > UPDATES_BATCH * u64::from(self.config.cpus) {
            self.flush_memcg_stats(memcg);
        }
    }

    /// Sums up a subtree, children before parents. Groups are numbered in order of creation, so a child comes after its
    /// parent.
    fn flush_memcg_stats(&mut self, root: MemcgId) {
        if self.config.stat_flush == crate::StatFlush::Live {
            return;
        }
        let subtree = self.memcgs.subtree(root);
        for &id in subtree.iter().rev() {
            for node in 0..self.config.node_pages.len() {
                let lruvec = self.lruvecs.id(id, NodeId(node as u8));
                let mut sum = self.lruvecs[lruvec].stat_local;
                for &child in &self.memcgs[id].children {
                    let child = &self.lruvecs[self.lruvecs.id(child, NodeId(node as u8))];
                    sum.iter_mut().zip(&child.stat_flushed).for_each(|(sum, &part)| *sum += part);
                }
                self.lruvecs[lruvec].stat_flushed = sum;
            }
            let group = &mut self.memcgs[id];
            group.updates_pending = 0;
            group.updates_by_cpu.fill(0);
        }
        self.work.stat_flushes += subtree.len() as u64;
    }

    /// A group's counter as of the last flush, over all nodes.
    pub fn memcg_stat(&self, memcg: MemcgId, stat: Stat) -> i64 {
        let nodes = self.memory.nodes();
        nodes.map(|node| self.lruvecs[self.lruvecs.id(memcg, node)].stat_flushed[stat as usize]).sum()
    }

    /// A group's counter as it is, descendants included: what a flush would make of it.
    pub fn memcg_stat_now(&self, memcg: MemcgId, stat: Stat) -> i64 {
        let subtree = self.memcgs.subtree(memcg);
        let of_group = |&id: &MemcgId| {
            let nodes = self.memory.nodes();
            nodes.map(|node| self.lruvecs[self.lruvecs.id(id, node)].stat_local[stat as usize]).sum::<i64>()
        };
        subtree.iter().map(of_group).sum()
    }

    /// A machine-wide counter, always up to date.
    pub fn vmstat(&self, stat: Stat) -> i64 {
        match stat {
            Stat::NrFreePages => {
                self.memory.nodes().map(|node| self.memory.frames.free_pages(node) as i64).sum()
            }
            _ => self.vmstat.iter().map(|node| node[stat as usize]).sum(),
        }
    }

    /// A node's counter, always up to date.
    pub fn node_stat(&self, node: NodeId, stat: Stat) -> i64 {
        match stat {
            Stat::NrFreePages => self.memory.frames.free_pages(node) as i64,
            _ => self.vmstat[node.index()][stat as usize],
        }
    }
}
