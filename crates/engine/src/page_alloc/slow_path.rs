//! The slow path of the page allocator: kswapd, compaction, direct reclaim and the OOM killer, for a request that no zone can serve
//! above its low watermark.
//!
//! ```text
//!   near nodes, if vm.zone_reclaim_mode has them reclaimed before others are used (`reclaim/node_reclaim.rs`)
//!   wake kswapd ─▶ at the minimum ─▶ a large block, or kernel memory of order > 0: compaction, gently ───▶ a page
//!                                  ▼
//!           ┌─▶ wake kswapd ─▶ with reserves, for who has the right ─▶ direct reclaim ─▶ again ─────────▶ a page
//!           │                                                               │ order > 0
//!           │                                                          compaction, harder each time ────▶ a page
//!           │                                                               │
//!           └── something may still be had: once more ◀─────────────────────┤ one round is enough: nothing
//!                                                                           ▼
//!                                                      above the high mark, or else the OOM killer
//! ```
//! An allocation is a state of the caller that needs the page. It ends with a page, with nothing for a caller that can handle that,
//! or with a report of the resource that the machine is short of.
//!
//! A request of order > 0 fails for one of two reasons. If too few pages are free, reclaim frees more. If enough are free but not contiguous,
//! compaction moves them; the fragmentation index decides which of the two. Above order 3 a block is worth one round, and no OOM kill.
//! [machine 2.9]

use crate::core::Core;
use crate::io::{Hope, SeenWrites};
use crate::machine::step::{DelayReason, OomReport, Unrelieved, Wait};
use crate::migrate::{CompactMode, Compacted, DirectCompactStep, DirectCompaction};
use crate::oom::{OomCause, Relief};
use crate::page_alloc::request::{Gfp, MigrateType, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::reclaim::{DirectReclaim, NearFirst, NearStep, ReclaimStep};
use crate::stat::Stat;
use crate::state::State;
use crate::units::ZoneType;
use crate::units::{MemcgId, MmId, Nanos, NodeId, Nodemask, Pfn};
use pageout_rules::reclaim::GivesUp;

/// Rounds without progress before the OOM killer is asked.
const RETRIES: u32 = 16;
/// How often compaction may make a block that the request does not get.
const COMPACT_RETRIES: u32 = 16;
/// The number of retries, a tenth of a second apart, of a request that must not fail but must not invoke the OOM killer. The kernel retries
/// indefinitely, as such a round counts as progress. Here the run ends after ten seconds with an error: if no task frees memory, it would never end.
const INSISTENCE_MAX: u32 = 100;

/// An allocation that takes more than a look at the free lists.
pub(crate) struct Allocation {
    pub(crate) request: Request,
    memcg: MemcgId,
    /// Whose page it is to be; not that of a process whose tasks may be killed if `None`.
    mm: Option<MmId>,
    stage: Stage,
    rounds_in_vain: u32,
    /// Pages scanned on its nodes when the last round was over.
    looked_at: i64,
    /// How hard compaction tries in this round, and how often it has succeeded in vain.
    compact_mode: CompactMode,
    compacted_in_vain: u32,
    seen_writes: SeenWrites,
    /// For a request that must not fail: the number of retries without an OOM kill.
    insistence: Option<u32>,
    /// It is for a page in swap, which may have a frame of the reserve while swap is full.
    exchanges: bool,
    pub(crate) outcome: AllocationOutcome,
}

/// The stage of an allocation in the slow path.
enum Stage {
    /// Node by node, each of the near ones reclaimed before the next is used.
    Near(NearFirst),
    Begin,
    /// Direct compaction before the first round.
    Compact(Box<DirectCompaction>),
    Round,
    Reclaim(DirectReclaim),
    /// After direct reclaim of this number of pages.
    CompactAfter(Box<DirectCompaction>, u64),
}

/// What an allocation has cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct AllocationOutcome {
    pub(crate) reclaim_calls: u32,
    pub(crate) reclaimed: u64,
}

/// The outcome of one step of an allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Allocated {
    Page(Pfn),
    /// A batch of reclaim is over; call again.
    Again,
    Wait(Wait),
    /// Every attempt found only pages whose write is in flight; try again when one is written.
    WaitForWriteback,
    /// Nothing, and the caller said that it can bear that.
    Nothing,
    /// The task is to die, and even what is kept for that is gone.
    Dying,
    Oom(Box<OomReport>),
}

impl Allocation {
    /// The caller's other way has to succeed.
    pub(crate) fn insist(&mut self) {
        self.request.gfp = if self.request.gfp.contains(Gfp::IO) { Gfp::KERNEL } else { Gfp::NOIO };
        self.insistence.get_or_insert(0);
        self.stage = Stage::Begin;
    }

    /// The page is in swap, and the host lets such pages be exchanged ([`crate::Engine::exchange_full_swap`]).
    pub(crate) fn set_exchanges(&mut self, exchanges: bool) {
        self.exchanges = exchanges;
    }

    /// Returns true if it is inside a reclaim call.
    pub(crate) fn in_reclaim(&self) -> bool {
        match &self.stage {
            Stage::Near(near) => near.in_reclaim(),
            Stage::Reclaim(direct) => direct.in_reclaim(),
            Stage::Begin | Stage::Compact(_) | Stage::Round | Stage::CompactAfter(..) => false,
        }
    }

    /// The task that allocates is to die: reclaim for it ends as soon as it may.
    pub(crate) fn cut_short(&mut self) {
        match &mut self.stage {
            Stage::Near(near) => near.cut_short(),
            Stage::Reclaim(DirectReclaim::Reclaiming(call)) => call.cut_short(),
            _ => {}
        }
    }

    /// Reclaim or compaction has isolated folios: it has to run to its end.
    fn is_bound(&self) -> bool {
        matches!(&self.stage, Stage::Compact(_) | Stage::CompactAfter(..)) || self.in_reclaim()
    }
}

impl Core {
    pub(crate) fn allocation(&self, request: Request, memcg: MemcgId, mm: Option<MmId>) -> Allocation {
        let gfp = mm.map_or(request.gfp, |mm| self.mm.gfp_of(mm, request.gfp));
        let request = Request { gfp, ..request };
        let stage = if self.mm.reclaims_near(&request) {
            Stage::Near(self.mm.near_first(&request))
        } else {
            Stage::Begin
        };
        Allocation {
            request,
            memcg,
            mm,
            stage,
            rounds_in_vain: 0,
            looked_at: 0,
            compact_mode: CompactMode::SyncLight,
            compacted_in_vain: 0,
            seen_writes: self.io.seen_writes(),
            insistence: None,
            exchanges: false,
            outcome: AllocationOutcome::default(),
        }
    }

    /// A page for a caller that can't wait, if there is any left: reclaim itself may need one, and frees more than
    /// it takes.
    pub(crate) fn alloc_pages_now(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        self.alloc_anywhere(request, memcg).or_else(|| {
            self.wake_kswapds(request);
            let at_min = self.try_alloc(request, Watermark::Min, self.slow_rights(request), memcg);
            let from_reserve =
                at_min.or_else(|| self.try_alloc(request, Watermark::Min, Rights::NO_WATERMARKS, memcg));
            from_reserve.or_else(|| {
                self.mm.memory.drain_all_pages();
                self.try_alloc(request, Watermark::Min, Rights::NO_WATERMARKS, memcg)
            })
        })
    }

    /// Advances an allocation until it succeeds, fails, or has done a batch of reclaim or compaction.
    #[doc(alias = "__alloc_pages_slowpath")]
    pub(crate) fn allocation_step(&mut self, allocation: &mut Allocation) -> Allocated {
        let (request, memcg) = (allocation.request, allocation.memcg);
        let rights = self.slow_rights(&request);
        loop {
            if self.mm.is_for_victim(allocation) && !allocation.is_bound() {
                // Whatever it has waited for is of no use to it any more: it dies, or takes a page that is kept for that.
                self.leave_gate(&request);
                self.wake_kswapds_for(&request);
                let page = self.try_alloc(&request, Watermark::Min, rights | Rights::OOM, memcg);
                return page.map_or(Allocated::Dying, Allocated::Page);
            }
            match &mut allocation.stage {
                Stage::Near(near) => match self.near_step(near, &request, memcg) {
                    NearStep::Page(pfn) => return Allocated::Page(pfn),
                    NearStep::Again => return Allocated::Again,
                    NearStep::Wait(wait) => return Allocated::Wait(wait),
                    NearStep::Over => allocation.stage = Stage::Begin,
                },
                Stage::Begin => {
                    self.wake_kswapds_for(&request);
                    if let Some(pfn) = self.try_alloc(&request, Watermark::Min, rights, memcg) {
                        return Allocated::Page(pfn);
                    }
                    allocation.stage = match self.mm.compacts_first(&request) {
                        true => {
                            Stage::Compact(Box::new(self.mm.direct_compaction(&request, CompactMode::Async)))
                        }
                        false => Stage::Round,
                    };
                }
                Stage::Compact(direct) => match self.direct_compact_step(&request, rights, memcg, direct) {
                    DirectCompactStep::Again => return Allocated::Again,
                    DirectCompactStep::Page(pfn) => return Allocated::Page(pfn),
                    DirectCompactStep::Failed(result) => {
                        // A large block that one round is enough for is not worth reclaiming.
                        let is_hopeless = matches!(result, Compacted::Skipped | Compacted::Deferred);
                        if is_hopeless && request.is_costly() && request.gfp.contains(Gfp::NORETRY) {
                            return Allocated::Nothing;
                        }
                        allocation.stage = Stage::Round;
                    }
                },
                Stage::Round => {
                    self.wake_kswapds_for(&request);
                    if allocation.exchanges
                        && self.mm.memory.swap.free_pages() == 0
                        && let Some(pfn) = self.alloc_pages_now(&request, memcg)
                    {
                        return Allocated::Page(pfn);
                    }
                    if request.gfp.contains(Gfp::MEMALLOC) {
                        let page = self.try_alloc(&request, Watermark::Min, Rights::NO_WATERMARKS, memcg);
                        return page.map_or(Allocated::Nothing, Allocated::Page);
                    }
                    if !request.gfp.contains(Gfp::DIRECT_RECLAIM) {
                        return Allocated::Nothing;
                    }
                    allocation.stage = Stage::Reclaim(DirectReclaim::AtGate);
                }
                Stage::Reclaim(direct) => {
                    let reclaimed = match self.direct_reclaim_step(&request, direct) {
                        ReclaimStep::Again => return Allocated::Again,
                        ReclaimStep::Wait(wait) => return Allocated::Wait(wait),
                        ReclaimStep::Done(reclaimed) => reclaimed,
                    };
                    if let Stage::Reclaim(DirectReclaim::Reclaiming(call)) =
                        std::mem::replace(&mut allocation.stage, Stage::Round)
                    {
                        self.spare_reclaim = Some(call);
                    }
                    allocation.outcome.reclaim_calls += 1;
                    allocation.outcome.reclaimed += reclaimed;
                    if let Some(pfn) = self.alloc_after_reclaim(allocation, reclaimed) {
                        return Allocated::Page(pfn);
                    }
                    if request.order > 0 && !self.mm.makes_blocks_by_reclaim() {
                        let direct = self.mm.direct_compaction(&request, allocation.compact_mode);
                        allocation.stage = Stage::CompactAfter(Box::new(direct), reclaimed);
                    } else if let Some(end) = self.end_round(allocation, reclaimed, None) {
                        return end;
                    }
                }
                Stage::CompactAfter(direct, reclaimed) => {
                    let reclaimed = *reclaimed;
                    let result = match self.direct_compact_step(&request, rights, memcg, direct) {
                        DirectCompactStep::Again => return Allocated::Again,
                        DirectCompactStep::Page(pfn) => return Allocated::Page(pfn),
                        DirectCompactStep::Failed(result) => result,
                    };
                    allocation.stage = Stage::Round;
                    if let Some(end) = self.end_round(allocation, reclaimed, Some(result)) {
                        return end;
                    }
                }
            }
        }
    }

    /// Asks the kswapds for more, on behalf of a request that may wake them.
    fn wake_kswapds_for(&mut self, request: &Request) {
        if request.gfp.contains(Gfp::KSWAPD_RECLAIM) {
            self.wake_kswapds(request);
        }
    }

    /// A page, if reclaim has freed what the request lacked.
    fn alloc_after_reclaim(&mut self, allocation: &Allocation, reclaimed: u64) -> Option<Pfn> {
        if reclaimed == 0 {
            return None;
        }
        let (request, memcg) = (allocation.request, allocation.memcg);
        let rights = self.slow_rights(&request);
        self.try_alloc(&request, Watermark::Min, rights, memcg).or_else(|| {
            // The pages that it has freed may be on lists of CPUs, where no test sees them.
            self.mm.memory.release_highatomic(&request, false);
            self.mm.memory.drain_all_pages();
            self.try_alloc(&request, Watermark::Min, rights, memcg)
        })
    }

    /// How a round ends that has given nothing; `None` where another makes sense. `compacted`: what its compaction came to.
    fn end_round(
        &mut self,
        allocation: &mut Allocation,
        reclaimed: u64,
        compacted: Option<Compacted>,
    ) -> Option<Allocated> {
        let request = allocation.request;
        let may_retry = !request.is_costly() || request.gfp.contains(Gfp::RETRY_MAYFAIL);
        if request.gfp.contains(Gfp::NORETRY) || !may_retry {
            return Some(Allocated::Nothing);
        }
        if request.order > 0 && self.mm.makes_blocks_by_reclaim() {
            if self.mm.is_block_worth_more(&request, reclaimed, allocation.outcome.reclaimed) {
                allocation.rounds_in_vain = 0;
                return None;
            }
            if request.is_costly() {
                return Some(Allocated::Nothing);
            }
        }
        let is_released = |core: &mut Core| core.mm.memory.release_highatomic(&request, true);
        if self.should_reclaim_retry(allocation, reclaimed > 0) || is_released(self) {
            return None;
        }
        if reclaimed > 0
            && let Some(compacted) = compacted
            && self.mm.should_compact_retry(allocation, compacted)
        {
            return None;
        }
        if !request.may_kill() {
            let rights = self.slow_rights(&request);
            let page = self.try_alloc(&request, Watermark::High, rights, allocation.memcg);
            return Some(page.map_or(Allocated::Nothing, Allocated::Page));
        }
        match self.io.hope(&mut allocation.seen_writes, self.io.has_hopeful_writes()) {
            Hope::Wait => {
                allocation.rounds_in_vain = 0;
                Some(Allocated::WaitForWriteback)
            }
            // Pages that were written during the attempts were perhaps scanned too early.
            Hope::Look => {
                allocation.rounds_in_vain = 0;
                None
            }
            Hope::None if self.io.may_wait_for_failing(&mut allocation.seen_writes) => {
                allocation.rounds_in_vain = RETRIES;
                Some(Allocated::WaitForWriteback)
            }
            Hope::None if self.may_try_failing(&mut allocation.seen_writes) => {
                allocation.rounds_in_vain = RETRIES;
                None
            }
            Hope::None => self.last_resort(allocation),
        }
    }

    /// How deep a request may reach into the reserves, now that no zone is above its low watermark. Types of memory may
    /// mix.
    pub(crate) fn slow_rights(&self, request: &Request) -> Rights {
        let mut rights = self.mm.memory.zones.first_rights(request) - Rights::NOFRAGMENT;
        // A real-time task shall not wait for reclaim while there is a page at all.
        rights.set(Rights::MIN_RESERVE, request.gfp.contains(Gfp::HIGH) || self.by.is_real_time);
        let can_wait = request.gfp.intersects(Gfp::DIRECT_RECLAIM | Gfp::NOMEMALLOC);
        rights.set(Rights::NON_BLOCK, !can_wait);
        rights.set(
            Rights::HIGHATOMIC,
            request.order > 0 && rights.contains(Rights::MIN_RESERVE | Rights::NON_BLOCK),
        );
        rights
    }

    /// Returns true if any zone would pass if all of its pages that reclaim can take were free, and reclaim still takes some now and then. In 2010:
    /// whether reclaim takes any, or has not yet looked long enough to know that it can't.
    fn should_reclaim_retry(&mut self, allocation: &mut Allocation, has_progress: bool) -> bool {
        // Reclaim for a large block reports progress where compaction could begin, again and again. That is no reason to go on.
        let progress_counts = has_progress && !allocation.request.is_costly();
        if self.mm.config.policy.machine.gives_up == GivesUp::Unreclaimable {
            return progress_counts || self.may_find_more(allocation);
        }
        if progress_counts {
            allocation.rounds_in_vain = 0;
        } else {
            allocation.rounds_in_vain += 1;
        }
        if allocation.rounds_in_vain > RETRIES {
            return false;
        }
        let request = &allocation.request;
        let rights = self.slow_rights(request);
        self.mm.memory.zones.zonelist(request.node, request.class, request.allowed).any(|zone| {
            let in_use = zone.managed.saturating_sub(zone.free_pages());
            let available = zone.free_pages() + self.mm.zone_reclaimable_pages(zone).min(in_use);
            let min = zone.mark(Watermark::Min);
            zone.watermark_ok_with(available, request.order, min, request.class, rights)
        })
    }

    /// As of 2010: whether reclaim has not yet scanned all reclaimable pages often enough. Pages that it can't scan do not count for long.
    fn may_find_more(&mut self, allocation: &mut Allocation) -> bool {
        let Request { node, class, allowed, .. } = allocation.request;
        let mut nodes: Vec<NodeId> =
            self.mm.memory.zones.zonelist(node, class, allowed).map(|zone| zone.node).collect();
        nodes.dedup();
        let looked_at = nodes.iter().map(|&node| self.mm.looked_at_on(node)).sum();
        let has_looked = allocation.looked_at != looked_at;
        allocation.looked_at = looked_at;
        allocation.rounds_in_vain = if has_looked { 0 } else { allocation.rounds_in_vain + 1 };
        allocation.rounds_in_vain <= RETRIES && !nodes.into_iter().all(|node| self.is_unreclaimable(node))
    }

    /// The last resort: a check of the high watermark, in case others have freed much meanwhile, and then an OOM kill.
    fn last_resort(&mut self, allocation: &mut Allocation) -> Option<Allocated> {
        let (request, memcg) = (allocation.request, allocation.memcg);
        let rights = self.slow_rights(&request);
        if let Some(pfn) = self.try_alloc(&request, Watermark::High, rights, memcg) {
            return Some(Allocated::Page(pfn));
        }
        // The limits of groups may keep the free slots from being used.
        if allocation.exchanges
            && let Some(pfn) = self.alloc_pages_now(&request, memcg)
        {
            return Some(Allocated::Page(pfn));
        }
        // Much of what is reclaimable may be out of its reach: no reason to end anyone. Nor is a block that may never come together
        // again, or memory of a kind that only few may have.
        let kills_nobody = !request.gfp.contains(Gfp::FS)
            || request.gfp.intersects(Gfp::RETRY_MAYFAIL | Gfp::THISNODE)
            || request.order > 3
            || request.class < ZoneType::Normal;
        let reclaim_calls = allocation.outcome.reclaim_calls;
        let report = |core: &Core| OomReport {
            bound: core.mm.bound_nodes(&request),
            ..core.oom_report(MemcgId::ROOT, None, reclaim_calls)
        };
        if kills_nobody {
            return Some(match &mut allocation.insistence {
                None => Allocated::Nothing,
                Some(rounds) if *rounds < INSISTENCE_MAX => {
                    *rounds += 1;
                    allocation.rounds_in_vain = 0;
                    Allocated::Wait(self.mm.insistence_wait())
                }
                Some(_) => {
                    let unrelieved = Some(Unrelieved::KillsNobody);
                    Allocated::Oom(Box::new(OomReport { unrelieved, ..report(self) }))
                }
            });
        }
        if !self.mm.config.oom_kill {
            self.mm.count_node(self.current_node(), Stat::OomKill, 1);
            return Some(Allocated::Oom(Box::new(report(self))));
        }
        match self.out_of_memory(MemcgId::ROOT, |core| OomCause::Allocation(Box::new(report(core)))) {
            Relief::Coming => {
                allocation.rounds_in_vain = 0;
                (!self.mm.is_for_victim(allocation)).then(|| Allocated::Wait(self.mm.oom_wait()))
            }
            Relief::None(why) => {
                let report = OomReport { unrelieved: Some(why), ..report(self) };
                Some(Allocated::Oom(Box::new(report)))
            }
        }
    }
}

impl State {
    /// The rights of a process's request for memory. The kernel sets this restriction per task
    /// (memalloc_noio).
    pub(crate) fn gfp_of(&self, mm: MmId, gfp: Gfp) -> Gfp {
        if self.memory.mm(mm).is_io_flusher { gfp - (Gfp::IO | Gfp::FS) } else { gfp }
    }

    /// Returns true if a request compacts before it reclaims: where single pages are no use to it, and what lies in its way can be moved.
    fn compacts_first(&self, request: &Request) -> bool {
        let can_wait = request.gfp.contains(Gfp::DIRECT_RECLAIM) && !request.gfp.contains(Gfp::MEMALLOC);
        can_wait
            && !self.makes_blocks_by_reclaim()
            && (request.is_costly() || request.order > 0 && request.migrate_type != MigrateType::Movable)
    }

    /// Returns true if the process that needs the page is an OOM victim.
    fn is_for_victim(&self, allocation: &Allocation) -> bool {
        allocation.mm.is_some_and(|mm| self.is_oom_victim(mm))
    }

    /// Returns true if compaction may make the block after all: with more free pages, at another time, or if it tries harder.
    fn should_compact_retry(&self, allocation: &mut Allocation, compacted: Compacted) -> bool {
        let request = &allocation.request;
        match compacted {
            Compacted::Skipped => {
                let wanted = request.wanted();
                self.memory.zones.zonelist(request.node, request.class, request.allowed).any(|zone| {
                    let reclaimable = self.zone_reclaimable_pages(zone) / u64::from(request.order);
                    zone.has_room_to_compact(zone.free_pages() + reclaimable, &wanted)
                })
            }
            Compacted::Success => {
                // Others have been faster. The larger the block, the less it is worth.
                let most = if request.is_costly() { COMPACT_RETRIES / 4 } else { COMPACT_RETRIES };
                allocation.compacted_in_vain += 1;
                allocation.compacted_in_vain <= most
            }
            Compacted::Deferred | Compacted::Complete => {
                match allocation.compact_mode.harder(request.order) {
                    Some(harder) => allocation.compact_mode = harder,
                    None => return false,
                }
                true
            }
        }
    }

    /// Pages of a node that reclaim may take: those on the lists of files, and on the others if there is swap for them.
    pub(crate) fn node_reclaimable(&self, node: NodeId) -> u64 {
        let of = |stats: [Stat; 2]| stats.map(|stat| self.node_stat(node, stat)).iter().sum();
        let anon = of([Stat::NrInactiveAnon, Stat::NrActiveAnon]);
        self.reclaimable_of(node, [anon, of([Stat::NrInactiveFile, Stat::NrActiveFile])])
    }

    /// Pages of a zone that reclaim may take.
    pub(crate) fn zone_reclaimable_pages(&self, zone: &Zone) -> u64 {
        match self.memory.zones.of_node(zone.node).len() {
            1 => self.node_reclaimable(zone.node),
            _ => self.reclaimable_of(zone.node, zone.listed),
        }
    }

    fn reclaimable_of(&self, node: NodeId, [anon, file]: [i64; 2]) -> u64 {
        let has_room = self.memory.swap.free_pages() > 0 || self.can_demote(node, MemcgId::ROOT);
        (file.max(0) + if has_room { anon.max(0) } else { 0 }) as u64
    }

    /// The wait before the next retry of a request that must not fail and may not kill: others may have freed pages by then.
    fn insistence_wait(&self) -> Wait {
        Wait::WokenOr(
            Nanos::from_ticks(u64::from(self.config.hz / 10).max(1), self.config.hz),
            DelayReason::Reclaim,
        )
    }

    /// The nodes that a request is confined to, if it is, and those of them that are offline.
    fn bound_nodes(&self, request: &Request) -> Option<(Nodemask, Nodemask)> {
        let all = Nodemask::of(self.memory.nodes());
        let nodes = request.allowed & all;
        let offline = nodes.iter().filter(|&node| !self.tiers.is_online(node));
        (nodes != all).then(|| (nodes, Nodemask::of(offline)))
    }
}
