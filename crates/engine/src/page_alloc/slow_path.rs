//! The slow path: what a request does that no zone can serve above its low mark.
//!
//! ```text
//!   wake kswapd ─▶ at the minimum ─┬──────────────────────────────────────────────────────────────▶ a page
//!                                  ▼
//!           ┌─▶ wake kswapd ─▶ with reserves, for who has the right ─▶ direct reclaim ─▶ again ────▶ a page
//!           │                                                               │
//!           └── something may still be had: once more ◀─────────────────────┤ one round is enough: nothing
//!                                                                           ▼
//!                                                      above the high mark, or else the OOM killer
//! ```
//! An allocation is a state of whoever needs the page: it ends in a page, in nothing for a caller that can bear that, or in a report
//! of what the machine is short of. [machine 2.9]

use crate::core::Core;
use crate::machine::step::{OomReport, Wait};
use crate::page_alloc::request::{Gfp, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::reclaim::{DirectReclaim, ReclaimStep};
use crate::stat::Stat;
use crate::units::{MemcgId, NodeId, Pfn};

/// Rounds without progress before the OOM killer is asked.
const RETRIES: u32 = 16;

/// An allocation that takes more than a look at the free lists.
pub(crate) struct Allocation {
    pub(crate) request: Request,
    memcg: MemcgId,
    reclaim: Option<DirectReclaim>,
    has_begun: bool,
    rounds_in_vain: u32,
    /// Writes that had ended when the attempts began.
    writes_ended: u64,
    pub(crate) outcome: AllocationOutcome,
}

/// What an allocation has cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct AllocationOutcome {
    pub(crate) reclaim_calls: u32,
    pub(crate) reclaimed: u64,
}

/// What a step of an allocation came to.
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
    Oom(Box<OomReport>),
}

impl Allocation {
    /// The caller's other way has to succeed.
    pub(crate) fn insist(&mut self) {
        self.request.gfp = Gfp::KERNEL;
        self.has_begun = false;
    }

    pub(crate) fn in_reclaim(&self) -> bool {
        self.reclaim.as_ref().is_some_and(DirectReclaim::in_reclaim)
    }
}

impl Core {
    pub(crate) fn allocation(&self, request: Request, memcg: MemcgId) -> Allocation {
        Allocation {
            request,
            memcg,
            reclaim: None,
            has_begun: false,
            rounds_in_vain: 0,
            writes_ended: self.io.writes_ended(),
            outcome: AllocationOutcome::default(),
        }
    }

    /// A page for who can't wait, if there is any left: reclaim itself may need one, and frees more than it takes.
    pub(crate) fn alloc_pages_now(&mut self, request: &Request, memcg: MemcgId) -> Option<Pfn> {
        self.alloc_pages(request, memcg).or_else(|| {
            self.wake_kswapds(request);
            let at_min = self.try_alloc(request, Watermark::Min, self.slow_rights(request), memcg);
            let from_reserve =
                at_min.or_else(|| self.try_alloc(request, Watermark::Min, Rights::NO_WATERMARKS, memcg));
            from_reserve.or_else(|| {
                self.memory.drain_all_pages();
                self.try_alloc(request, Watermark::Min, Rights::NO_WATERMARKS, memcg)
            })
        })
    }

    /// Advances an allocation until it succeeds, fails, or has done a batch of reclaim.
    pub(crate) fn allocation_step(&mut self, allocation: &mut Allocation) -> Allocated {
        let (request, memcg) = (allocation.request, allocation.memcg);
        let rights = self.slow_rights(&request);
        if !allocation.has_begun {
            allocation.has_begun = true;
            self.wake_kswapds(&request);
            if let Some(pfn) = self.try_alloc(&request, Watermark::Min, rights, memcg) {
                return Allocated::Page(pfn);
            }
        }
        loop {
            let Some(direct) = &mut allocation.reclaim else {
                self.wake_kswapds(&request);
                if request.gfp.contains(Gfp::MEMALLOC) {
                    let page = self.try_alloc(&request, Watermark::Min, Rights::NO_WATERMARKS, memcg);
                    return page.map_or(Allocated::Nothing, Allocated::Page);
                }
                if !request.gfp.contains(Gfp::DIRECT_RECLAIM) {
                    return Allocated::Nothing;
                }
                allocation.reclaim = Some(DirectReclaim::AtGate);
                continue;
            };
            let reclaimed = match self.direct_reclaim_step(&request, direct) {
                ReclaimStep::Again => return Allocated::Again,
                ReclaimStep::Wait(wait) => return Allocated::Wait(wait),
                ReclaimStep::Done(reclaimed) => reclaimed,
            };
            allocation.reclaim = None;
            allocation.outcome.reclaim_calls += 1;
            allocation.outcome.reclaimed += reclaimed;
            if let Some(end) = self.allocation_after_reclaim(allocation, reclaimed) {
                return end;
            }
        }
    }

    /// Whether there is a page now, or another round makes sense; `None` for that.
    fn allocation_after_reclaim(&mut self, allocation: &mut Allocation, reclaimed: u64) -> Option<Allocated> {
        let (request, memcg) = (allocation.request, allocation.memcg);
        let rights = self.slow_rights(&request);
        if reclaimed > 0 {
            if let Some(pfn) = self.try_alloc(&request, Watermark::Min, rights, memcg) {
                return Some(Allocated::Page(pfn));
            }
            // What it has freed may be on lists of CPUs, where no test sees it.
            self.memory.release_highatomic(&request, false);
            self.memory.drain_all_pages();
            if let Some(pfn) = self.try_alloc(&request, Watermark::Min, rights, memcg) {
                return Some(Allocated::Page(pfn));
            }
        }
        if request.gfp.contains(Gfp::NORETRY) {
            return Some(Allocated::Nothing);
        }
        let is_released = |core: &mut Core| core.memory.release_highatomic(&request, true);
        if self.should_reclaim_retry(allocation, reclaimed > 0) || is_released(self) {
            return None;
        }
        // On a real machine the swap device's full request queue would have stopped the reclaimer long before; killing while written
        // pages are about to become free would be a false OOM.
        if self.io.has_writes() {
            allocation.rounds_in_vain = 0;
            return Some(Allocated::WaitForWriteback);
        }
        // What was written while the attempts went on may have been looked at too early.
        if self.io.writes_ended() != allocation.writes_ended {
            allocation.writes_ended = self.io.writes_ended();
            allocation.rounds_in_vain = 0;
            return None;
        }
        self.out_of_memory(allocation)
    }

    /// How deep a request may reach into the reserves, now that no zone is above its low mark. Types of memory may mix.
    fn slow_rights(&self, request: &Request) -> Rights {
        let mut rights = self.memory.zones.first_rights(request) - Rights::NOFRAGMENT;
        if request.gfp.contains(Gfp::HIGH) {
            rights |= Rights::MIN_RESERVE;
            rights.set(Rights::NON_BLOCK, !request.gfp.contains(Gfp::DIRECT_RECLAIM));
        }
        rights
    }

    /// Whether any zone would pass if all of its pages that reclaim can take were free, and reclaim still takes some now and then.
    fn should_reclaim_retry(&self, allocation: &mut Allocation, has_progress: bool) -> bool {
        if has_progress && allocation.request.order <= 3 {
            allocation.rounds_in_vain = 0;
        } else {
            allocation.rounds_in_vain += 1;
        }
        if allocation.rounds_in_vain > RETRIES {
            return false;
        }
        let request = &allocation.request;
        let rights = self.slow_rights(request);
        self.memory.zones.zonelist(request.node, request.class).any(|zone| {
            let in_use = zone.managed.saturating_sub(zone.free_pages());
            let available = zone.free_pages() + self.zone_reclaimable(zone.node).min(in_use);
            let min = zone.mark(Watermark::Min);
            zone.watermark_ok_with(available, request.order, min, request.class, rights)
        })
    }

    /// Pages of a node that reclaim may take: those on the lists of files, and on the others if there is swap for them.
    pub(crate) fn zone_reclaimable(&self, node: NodeId) -> u64 {
        let of =
            |stats: &[Stat]| stats.iter().map(|&stat| self.node_stat(node, stat).max(0) as u64).sum::<u64>();
        let file = of(&[Stat::NrInactiveFile, Stat::NrActiveFile]);
        let has_swap = self.memory.swap.free_pages() > 0;
        file + if has_swap { of(&[Stat::NrInactiveAnon, Stat::NrActiveAnon]) } else { 0 }
    }

    /// The last resort: a look at the high mark, in case others have freed much meanwhile, and then the end of someone.
    fn out_of_memory(&mut self, allocation: &mut Allocation) -> Option<Allocated> {
        let (request, memcg) = (allocation.request, allocation.memcg);
        let rights = self.slow_rights(&request);
        if let Some(pfn) = self.try_alloc(&request, Watermark::High, rights, memcg) {
            return Some(Allocated::Page(pfn));
        }
        if !request.gfp.contains(Gfp::FS) {
            // Much of what is reclaimable may be out of its reach: no reason to end anyone.
            return Some(Allocated::Nothing);
        }
        self.count_node(self.current_node(), Stat::OomKill, 1);
        Some(Allocated::Oom(Box::new(self.oom_report(MemcgId::ROOT, None, allocation.outcome.reclaim_calls))))
    }
}
