//! [`Core`]: all of reclaim's state in one struct, of which the mechanisms of the other folders are methods.
//!
//! ```text
//!   state    plain data with invariants of its own: memory, groups, lists, counters         a crate of its own, `pageout_mm`
//!   core     every mechanism: `impl Core` in its room; they call each other, as in mm/       never sees a task
//!   engine   core and tasks: accesses, waits, kernel files (`serve/`, `kernfs/`)              what a machine holds
//! ```

use crate::config::{Config, ConfigError};
use crate::io::Transfers;
use crate::kmem::KernelMemory;
use crate::kthread::{KernelThread, Sleepers};
use crate::lru::GuestFault;
use crate::lru::lruvec::{LruvecId, Lruvecs, PoolId};
use crate::machine::op::FullPlug;
use crate::memcg::Memcgs;
use crate::memory::Memory;
use crate::memory::folio::Folio;
use crate::migrate::{Kcompactd, KcompactdThread};
use crate::numa_balancing::NumaBalancing;
use crate::oom::OomKills;
use crate::pghot::{KlruscandThread, KmigratedThread, Pghot};
use crate::promotion::LowerTierFrames;
use crate::reclaim::{Kswapd, KswapdThread, NodeWrites, Pageouts, ThrottleReason};
use crate::serve::out::Out;
use crate::stat::{Counters, STATS, StaleDecision, StaleDecisions};
use crate::tiers::MemoryTiers;
use crate::units::{CpuId, MemcgId, Nanos, NodeId, Pfn, TaskId};
use crate::workingset::ShadowNodes;
use crate::writeback::Writeback;
use crate::zswap::{Zswap, ZswapThread};
use pageout_mm::cpu::Cpu;

/// On whose behalf a call runs, when and where. The engine sets it when a call begins; no mechanism changes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behalf {
    /// A task is no more than a name here.
    pub(crate) task: TaskId,
    pub(crate) cpu: CpuId,
    pub(crate) now: Nanos,
    pub(crate) is_real_time: bool,
}

/// The state of one machine's memory, and all that is decided about it.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) memory: Memory,
    pub(crate) tiers: MemoryTiers,
    pub(crate) memcgs: Memcgs,
    pub(crate) lruvecs: Lruvecs,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) io: Transfers,
    pub(crate) kmem: KernelMemory,
    pub(crate) zswap: Zswap,
    pub(crate) writeback: Writeback,
    pub(crate) shadow_nodes: ShadowNodes,
    pub(crate) numa_balancing: NumaBalancing,
    /// Counters of `/proc/vmstat`, by node.
    pub(crate) vmstat: Vec<Counters>,
    pub(crate) last_root_flush: Nanos,
    /// `min_ttl_ms`: kswapd rather has a process killed than takes generations younger than this. 0: it does not care.
    pub(crate) min_ttl_ms: u64,
    /// What was last written to `lru_gen/enabled`.
    pub(crate) lru_gen_enabled: Option<u32>,
    /// Processes that were killed, and that the machine has not heard of.
    pub(crate) oom_kills: OomKills,
    pub(crate) pghot: Pghot,
    pub(crate) lower_tiers: LowerTierFrames,
    /// By node: what its kswapd is asked for.
    pub(crate) kswapds: Vec<Kswapd>,
    /// By node: what its kcompactd is asked for.
    pub(crate) kcompactds: Vec<Kcompactd>,
    /// By node: what reclaim knows of its dirty pages.
    pub(crate) writes_of: Vec<NodeWrites>,
    /// By reason: how often a reclaimer waited for writes.
    pub(crate) throttled: [u64; ThrottleReason::ALL.len()],
    /// How often reclaimers have waited for a device's queue, as in 2010.
    pub(crate) congestion_waits: u64,
    /// Whether decisions by old statistics are made a second time by live ones.
    pub(crate) compares_live: bool,
    /// How decisions by old statistics went, by kind.
    pub(crate) outdated: [StaleDecisions; StaleDecision::ALL.len()],
    /// Pages that reclaim has begun to write.
    pub(crate) pageouts: Pageouts,
    /// State of the draws among nodes that pages may be demoted to.
    pub(crate) demotion_draws: u64,
    /// Folios and upper page-table entries that reclaim has come by: a round that came by none has not taken a turn.
    pub(crate) looked_at: u64,
    /// On whose behalf the present call runs.
    pub(crate) by: Behalf,
    /// What a machine collects; nobody here can read it.
    pub(crate) out: Out,
    /// Whom to ask what has become of a full plug when its batch is over; none: nothing has.
    pub(crate) full_plug: Option<FullPlug>,
    /// Tasks that wait to be woken by someone.
    pub(crate) sleepers: Sleepers,
    /// Kernel threads that the machine has yet to start.
    pub(crate) threads_to_start: Vec<Box<dyn KernelThread>>,
    /// What a guest has done wrong first: the machine ends the run.
    pub(crate) guest_fault: Option<Box<GuestFault>>,
    /// Buffer of the batch in reclaim's hands; kept so that a batch allocates nothing.
    pub(crate) isolated: Vec<Pfn>,
    #[cfg(test)]
    pub(crate) mutant: Option<crate::testing::Mutant>,
    /// Migrations that are to fail.
    #[cfg(any(test, feature = "fault-injection"))]
    pub(crate) refusals: crate::migrate::Refusals,
}

impl Core {
    /// Another policy, for the machine and its root group.
    #[cfg(test)]
    pub(crate) fn set_policy(&mut self, policy: crate::policy::Policy) {
        self.config.policy = policy;
        self.memcgs[MemcgId::ROOT].policy = policy.group;
    }

    /// A machine without files, swap or processes, and with the root memcg only.
    pub(crate) fn new(config: Config) -> Result<Core, ConfigError> {
        config.check()?;
        config.policy.group.check()?;
        let nodes = config.node_pages.len();
        let (memory, tiers) = (Memory::new(&config), MemoryTiers::new(&config)?);
        let zones = memory.nodes().map(|node| memory.zones.of_node(node).len()).collect();
        let mut lruvecs = Lruvecs::new(zones, config.node_pages.clone());
        lruvecs.add_memcg(MemcgId::ROOT, &config.policy.group, Nanos::ZERO);
        let threads_to_start = threads_at_start(&config, &tiers);
        let mut core = Core {
            by: Behalf { task: TaskId(0), cpu: CpuId(0), now: Nanos::ZERO, is_real_time: false },
            memcgs: Memcgs::new(config.policy.group, nodes, usize::from(config.cpus)),
            lruvecs,
            cpus: (0..config.cpus).map(|_| Cpu::default()).collect(),
            io: Transfers::default(),
            kmem: KernelMemory::default(),
            zswap: Zswap::default(),
            writeback: Writeback::default(),
            shadow_nodes: ShadowNodes::default(),
            numa_balancing: NumaBalancing::new(nodes),
            vmstat: vec![[0; STATS]; nodes],
            last_root_flush: Nanos::ZERO,
            min_ttl_ms: 0,
            lru_gen_enabled: None,
            oom_kills: OomKills::default(),
            pghot: Pghot::new(&config),
            lower_tiers: LowerTierFrames::new(&memory.zones, &tiers, memory.nodes()),
            memory,
            tiers,
            kswapds: (0..nodes).map(|_| Kswapd::default()).collect(),
            kcompactds: (0..nodes).map(|_| Kcompactd::default()).collect(),
            writes_of: (0..nodes).map(|_| NodeWrites::default()).collect(),
            throttled: [0; ThrottleReason::ALL.len()],
            congestion_waits: 0,
            compares_live: false,
            outdated: Default::default(),
            pageouts: Pageouts::default(),
            demotion_draws: 0,
            looked_at: 0,
            out: Out::default(),
            full_plug: None,
            sleepers: Sleepers::default(),
            threads_to_start,
            guest_fault: None,
            isolated: Vec::new(),
            #[cfg(test)]
            mutant: None,
            #[cfg(any(test, feature = "fault-injection"))]
            refusals: crate::migrate::Refusals::default(),
            config,
        };
        #[cfg(any(test, feature = "fault-injection"))]
        core.pghot.records.watch();
        core.hold_scattered_pages();
        Ok(core)
    }

    #[inline]
    pub(crate) fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        self.lruvec_of_folio(&self.memory.folios[pfn])
    }

    /// The lruvec of a folio whose record is at hand.
    #[inline]
    pub(crate) fn lruvec_of_folio(&self, folio: &Folio) -> LruvecId {
        self.lruvecs.id(folio.memcg, PoolId::of_node(folio.node))
    }

    /// The node of the CPU on which the present call runs.
    #[inline]
    pub(crate) fn current_node(&self) -> NodeId {
        self.config.layout.node_of_cpu(self.by.cpu.0)
    }
}

/// The kernel threads of so many nodes, those of a kind together.
fn threads_at_start(config: &Config, tiers: &MemoryTiers) -> Vec<Box<dyn KernelThread>> {
    let ids = || (0..config.node_pages.len()).map(|node| NodeId(node as u8));
    let kswapds = ids().map(|node| Box::new(KswapdThread::new(node)) as _);
    let kcompactds = ids().map(|node| Box::new(KcompactdThread::new(node)) as _);
    let zswap = config.zswap_enabled.then(|| Box::new(ZswapThread::default()) as _);
    let lower = ids().filter(|&node| !tiers.node_is_top_tier(node));
    let kmigrateds = lower.map(|node| Box::new(KmigratedThread::new(node)) as _);
    let klruscand = tiers.has_lower_tier().then(|| Box::new(KlruscandThread::new()) as _);
    kswapds.chain(kcompactds).chain(zswap).chain(kmigrateds).chain(klruscand).collect()
}
