//! [`Core`]: a machine's memory and the work in progress, in one struct. The mechanisms of the other folders are its methods.
//!
//! ```text
//!   state    what is where (`core.mm`): parts from the crate `pageout_mm`, and questions to them   can't tell, send or wait
//!   core     every mechanism: `impl Core` in its room; they call each other, as in mm/            never sees a task
//!   engine   core and tasks: accesses, waits, kernel files (`access/`, `kernfs/`)                   what a machine holds
//! ```

use crate::access::out::Out;
use crate::audit::Transitions;
use crate::config::{Config, ConfigError};
use crate::damon::DamonThread;
use crate::io::Transfers;
use crate::kthread::{KernelThread, Sleepers};
use crate::lru::GuestFault;
use crate::lru::lruvec::LruvecId;
use crate::machine::accessed_bits::Sampler;
use crate::machine::gate::FrameGate;
use crate::machine::op::FullPlug;
use crate::migrate::{Kcompactd, KcompactdThread};
use crate::oom::OomKills;
use crate::page_alloc::slow_path::Allocation;
use crate::pghot::{KlruscandThread, KmigratedThread};
use crate::reclaim::{Kswapd, KswapdThread, NodeWrites, Pageouts, Reclaim, ThrottleReason};
use crate::stat::{StaleDecision, StaleDecisions};
use crate::state::State;
use crate::swap::contents::PageContents;
use crate::tiers::MemoryTiers;
use crate::units::{CpuId, Nanos, NodeId, Pfn, TaskId};
use crate::workingset::RefaultDistances;
use crate::writeback::Writeback;
use crate::zswap::ZswapThread;

/// On whose behalf a call runs, when and where. The engine sets it when a call begins; no mechanism changes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behalf {
    /// A task is no more than a name here.
    pub(crate) task: TaskId,
    pub(crate) cpu: CpuId,
    pub(crate) now: Nanos,
    pub(crate) is_real_time: bool,
}

/// One machine's memory, and all that is decided about it.
pub(crate) struct Core {
    /// The state of memory. It knows no mechanism.
    pub(crate) mm: State,
    /// On whose behalf the present call runs.
    pub(crate) by: Behalf,
    /// Data that a machine collects, and that the engine can't read.
    pub(crate) out: Out,

    // Work in progress: operations that have begun and are not over, and requested ones.
    pub(crate) io: Transfers,
    pub(crate) writeback: Writeback,
    /// Processes that were killed, and that the machine was not notified of.
    pub(crate) oom_kills: OomKills,
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
    /// True if decisions by old statistics are made a second time by live ones.
    pub(crate) compares_live: bool,
    /// How decisions by old statistics went, by kind.
    pub(crate) outdated: [StaleDecisions; StaleDecision::ALL.len()],
    /// Refaults whose distance is known, by the number of its bits.
    pub(crate) refault_distances: RefaultDistances,
    /// Pages that reclaim has begun to write.
    pub(crate) pageouts: Pageouts,
    /// State of the draws among nodes that pages may be demoted to.
    pub(crate) demotion_draws: u64,
    /// Folios and upper page-table entries that reclaim has come by: a round that came by none has not taken a turn.
    pub(crate) looked_at: u64,
    /// The callback for the outcome of a full plug when its batch is over; none: nothing has ended.
    pub(crate) full_plug: Option<FullPlug>,
    /// The callback before a page is taken from its users; none: pages have no users without a reference.
    pub(crate) gate: Option<Box<dyn FrameGate>>,
    /// The host's accessed bits; none: all uses of pages are accesses of tasks.
    pub(crate) sampler: Option<Sampler>,
    /// The host's answers about pages that leave memory; none: their contents are drawn.
    pub(crate) contents: Option<Box<dyn PageContents>>,
    /// The lists that the last page came from that was offered to zswap.
    pub(crate) last_swapped: Option<LruvecId>,
    /// Tasks that wait to be woken by someone.
    pub(crate) sleepers: Sleepers,
    /// Kernel threads that the machine has yet to start.
    pub(crate) threads_to_start: Vec<Box<dyn KernelThread>>,
    /// The first error of a guest: the machine ends the run.
    pub(crate) guest_fault: Option<Box<GuestFault>>,
    /// Buffer of the batch in reclaim's hands; kept so that a batch allocates nothing.
    pub(crate) isolated: Vec<Pfn>,
    /// The last allocation of the slow path and the last direct reclaim that are over; kept so that a miss allocates nothing.
    pub(crate) spare_allocation: Option<Box<Allocation>>,
    pub(crate) spare_reclaim: Option<Box<Reclaim>>,
    /// What has been done, where assertions are.
    pub(crate) transitions: Transitions,
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
        self.mm.config.policy = policy;
        self.mm.memcgs[crate::units::MemcgId::ROOT].policy = policy.group;
    }

    /// A machine without files, swap or processes, and with the root memcg only.
    pub(crate) fn new(config: Config) -> Result<Core, ConfigError> {
        let mm = State::new(config)?;
        let nodes = mm.config.node_pages.len();
        let mut core = Core {
            threads_to_start: threads_at_start(&mm.config, &mm.tiers),
            mm,
            by: Behalf { task: TaskId(0), cpu: CpuId(0), now: Nanos::ZERO, is_real_time: false },
            out: Out::default(),
            io: Transfers::default(),
            writeback: Writeback::default(),
            oom_kills: OomKills::default(),
            kswapds: (0..nodes).map(|_| Kswapd::default()).collect(),
            kcompactds: (0..nodes).map(|_| Kcompactd::default()).collect(),
            writes_of: (0..nodes).map(|_| NodeWrites::default()).collect(),
            throttled: [0; ThrottleReason::ALL.len()],
            congestion_waits: 0,
            compares_live: false,
            outdated: Default::default(),
            refault_distances: RefaultDistances::default(),
            pageouts: Pageouts::default(),
            demotion_draws: 0,
            looked_at: 0,
            full_plug: None,
            gate: None,
            sampler: None,
            contents: None,
            last_swapped: None,
            sleepers: Sleepers::default(),
            guest_fault: None,
            isolated: Vec::new(),
            spare_allocation: None,
            spare_reclaim: None,
            transitions: Transitions::default(),
            #[cfg(test)]
            mutant: None,
            #[cfg(any(test, feature = "fault-injection"))]
            refusals: crate::migrate::Refusals::default(),
        };
        #[cfg(any(test, feature = "fault-injection"))]
        core.mm.pghot.records.watch();
        core.mm.hold_scattered_pages();
        Ok(core)
    }

    /// The node of the CPU on which the present call runs.
    #[inline]
    pub(crate) fn current_node(&self) -> NodeId {
        self.mm.config.layout.node_of_cpu(self.by.cpu.0)
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
    let kdamond = DamonThread::of_module(config).map(|thread| Box::new(thread) as _);
    kswapds.chain(kcompactds).chain(zswap).chain(kmigrateds).chain(klruscand).chain(kdamond).collect()
}
