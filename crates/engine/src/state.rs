//! [`State`]: the state of memory of one machine, as one value. [`Core`](crate::core::Core) holds it as `mm`.
//!
//! Its methods are in the modules that use them: a method that needs only `State` can't send an operation, count for a machine, or trace.

use crate::config::{Config, ConfigError};
use crate::damon::Damon;
use crate::kmem::KernelMemory;
use crate::lru::lruvec::{LruvecId, Lruvecs};
use crate::memcg::Memcgs;
use crate::memory::Memory;
use crate::memory::deferred::DeferredSplits;
use crate::memory::folio::Folio;
use crate::mthp::MthpCounts;
use crate::numa_balancing::NumaBalancing;
use crate::pghot::Pghot;
use crate::promotion::LowerTierFrames;
use crate::recorded::Recorded;
use crate::stat::{Counters, STATS};
use crate::tiers::MemoryTiers;
use crate::units::{MemcgId, Nanos, Pfn};
use crate::workingset::ShadowNodes;
use crate::zswap::Zswap;
use pageout_mm::cpu::Cpu;

/// The state of one machine's memory. Work in progress (transfers, requested threads, waits) is the engine's.
pub(crate) struct State {
    /// What the machine was built with, and the rules that hold on it.
    pub(crate) config: Config,
    /// Frames, folios, free memory, files, address spaces, swap.
    pub(crate) memory: Memory,
    /// Which nodes are fast.
    pub(crate) tiers: MemoryTiers,
    /// The tree of groups.
    pub(crate) memcgs: Memcgs,
    /// The lists, by group and node.
    pub(crate) lruvecs: Lruvecs,
    /// What each CPU holds.
    pub(crate) cpus: Vec<Cpu>,
    /// What the kernel holds for itself.
    pub(crate) kmem: KernelMemory,
    /// Compressed pages.
    pub(crate) zswap: Zswap,
    /// Index nodes that hold shadows alone.
    pub(crate) shadow_nodes: ShadowNodes,
    /// When pages of slow memory were marked.
    pub(crate) numa_balancing: NumaBalancing,
    /// Counters of `/proc/vmstat`, by node.
    pub(crate) vmstat: Vec<Counters>,
    /// When the root's statistics were flushed last.
    pub(crate) last_root_flush: Nanos,
    /// `min_ttl_ms`: kswapd rather has a process killed than takes generations younger than this. 0: it does not care.
    pub(crate) min_ttl_ms: u64,
    /// What was last written to `lru_gen/enabled`.
    pub(crate) lru_gen_enabled: Option<u32>,
    /// Which pages of slow memory are in use.
    pub(crate) pghot: Pghot,
    /// What DAMON has left in memory, and what its modules have done.
    pub(crate) damon: Damon,
    /// Sections of frames below the top tier.
    pub(crate) lower_tiers: LowerTierFrames,
    /// What a kernel did where rules alone don't say.
    pub(crate) recorded: Recorded,
    /// The host writes all pages of a call without a break ([`crate::Engine::writes_whole_calls`]).
    pub(crate) writes_whole_calls: bool,
    /// Pages in full swap can be read ([`crate::Engine::exchange_full_swap`]).
    pub(crate) exchanges_full_swap: bool,
    /// Events of large folios.
    pub(crate) mthp: MthpCounts,
    /// Orders of large folios that some mapping of anonymous memory may have, a bit each: by all switches.
    pub(crate) anon_orders: u16,
    /// Anonymous folios that pressure may split.
    pub(crate) deferred_splits: DeferredSplits,
}

impl State {
    /// A machine without files, swap or processes, and with the root memcg only.
    ///
    /// # Errors
    ///
    /// Where the configuration contradicts itself.
    pub(crate) fn new(config: Config) -> Result<State, ConfigError> {
        config.check()?;
        config.policy.group.check()?;
        let nodes = config.node_pages.len();
        let (memory, tiers) = (Memory::new(&config), MemoryTiers::new(&config)?);
        let zones = memory.nodes().map(|node| memory.zones.of_node(node).len()).collect();
        let mut lruvecs = Lruvecs::new(zones, config.node_pages.clone());
        lruvecs.add_memcg(MemcgId::ROOT, &config.policy.group, Nanos::ZERO);
        let state = State {
            memcgs: Memcgs::new(config.policy.group, nodes, usize::from(config.cpus)),
            lruvecs,
            cpus: (0..config.cpus).map(|_| Cpu::default()).collect(),
            kmem: KernelMemory::default(),
            zswap: Zswap::new(config.zswap_enabled),
            shadow_nodes: ShadowNodes::default(),
            numa_balancing: NumaBalancing::new(nodes),
            vmstat: vec![[0; STATS]; nodes],
            last_root_flush: Nanos::ZERO,
            min_ttl_ms: 0,
            lru_gen_enabled: None,
            recorded: Recorded::default(),
            writes_whole_calls: false,
            exchanges_full_swap: false,
            mthp: MthpCounts::default(),
            anon_orders: config.anon_folio_orders(true),
            deferred_splits: DeferredSplits::default(),
            damon: Damon::default(),
            pghot: Pghot::new(&config),
            lower_tiers: LowerTierFrames::new(&memory.zones, &tiers, memory.nodes()),
            memory,
            tiers,
            config,
        };
        state.watch_reads();
        Ok(state)
    }

    /// The lruvec that a folio's frame belongs to.
    #[inline]
    pub(crate) fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        self.lruvec_of_folio(&self.memory.folios[pfn])
    }

    /// The lruvec of a folio with an available record.
    #[inline]
    pub(crate) fn lruvec_of_folio(&self, folio: &Folio) -> LruvecId {
        self.lruvecs.id(folio.memcg, folio.node)
    }
}
