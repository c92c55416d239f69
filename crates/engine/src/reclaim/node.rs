//! One pass over a node at one priority (`shrink_node`): which memcgs are reclaimed from, in which order.
//!
//! ```text
//!   full      every group, parents first: kswapd, and who has found nothing otherwise
//!   shared    what is left of a round that all reclaimers of a subtree make together, until the target is reached
//!   by age    the memcg LRU: groups that were not aged for long, until there is enough
//! ```
//! Full and shared walks are how the tree of groups is reclaimed; by age is how the whole machine is where the root keeps
//! generations. Whichever it is, a protected group is passed by. In cgroup v1 groups above their soft limits give first (`soft_limit.rs`).
//! [machine 3.5; reclaim 2.10, 4.11]

use crate::core::Core;
use crate::kmem::{ZspoolShrink, ZspoolShrinkStep};
use crate::lru::GenerationsPass;
use crate::lru::lruvec::{LruList, Lruvec, LruvecId};
use crate::machine::step::Wait;
use crate::memcg::lru::{MemcgLruWalk, Move, Segment};
use crate::memcg::{MemcgEvent, Protection, SharedWalk};
use crate::page_alloc::compact::compact_gap;
use crate::page_alloc::request::Rights;
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::reclaim::shrink_lruvec::{Pass, Round};
use crate::reclaim::soft_limit::SoftLimits;
use crate::reclaim::{PRIORITY_DEFAULT, ScanControl, Tally};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{LruType, MemcgId, NodeId};
use crate::zswap::{ZswapShrink, ZswapShrinkStep};
use pageout_rules::lru::{AbortScope, Lru};
use pageout_rules::reclaim::{CompactGap, InitialPriority, KswapdReset, ProtectionRule, TreeWalk};

/// How often a walk of the memcg LRU restarts without having freed a page. Nothing in the source bounds it. If nothing can be freed and
/// each group is aged again, the walk would go on forever.
const RESTARTS_IN_VAIN: u32 = 16;
/// Free pages beyond the high watermark at which reclaim by kswapd stops within a pass over generations.
const ENOUGH_BEYOND_HIGH: u64 = crate::lru::MIN_LRU_BATCH;

/// A pass in progress.
pub(crate) struct NodePass {
    id: NodeId,
    /// Soft-limit reclaim, which comes before the walk of groups.
    soft_limits: Option<SoftLimits>,
    walk: GroupWalk,
    /// What the call had reclaimed when it began.
    reclaimed_before: u64,
    /// The pages that it had reclaimed at the last restart of the walk, and the number of restarts that freed nothing since.
    reclaimed_at_restart: u64,
    restarts_in_vain: u32,
    /// The pass over a group's lists.
    pass: Option<(MemcgId, Pass)>,
    /// Conclusions are drawn from what it has met.
    is_noted: bool,
    /// The pass has waited for pages to be written after that.
    has_waited: bool,
    /// The shrinkers that follow it, with the group. True if its lists were aged.
    shrinkers: Option<(MemcgId, bool, Shrinkers)>,
}

/// Shrinkers whose calls take several steps, in the order in which they are asked.
enum Shrinkers {
    Zspool(ZspoolShrink),
    Zswap(ZswapShrink),
}

enum GroupWalk {
    /// The groups, and how many were visited.
    Full(Vec<MemcgId>, usize),
    Shared(SharedWalk),
    ByAge(MemcgLruWalk),
    /// There is enough, or nothing may be done.
    Over,
}

/// The outcome of one step of a pass over a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeStep {
    /// A round is over that did something.
    Again,
    /// The reclaimer has to wait for others.
    Wait(Wait),
    Over,
}

impl Core {
    /// Begins a pass: decides, by the target's lruvec of the node, what it may do.
    #[doc(alias = "shrink_node")]
    pub(crate) fn node_pass(&mut self, id: NodeId, sc: &mut ScanControl) -> NodePass {
        let target = self.mm.lruvecs.id(sc.by.target, id);
        let keeps_generations = self.mm.keeps_generations(sc);
        let by_age = keeps_generations && self.mm.config.policy.machine.memcg_lru;
        if keeps_generations && sc.by.is_for_machine() {
            self.mm.set_initial_priority(target, sc);
        }
        if !sc.by.is_for_soft_limit() {
            self.mm.stop_sparing_disk(sc);
        }
        // Only if the worker is late; see `stat/flush.rs`.
        self.flush_stats_ratelimited();
        sc.plan.cost = self.mm.running_cost(target);
        sc.tally = Tally::default();
        self.prepare_scan_control(target, sc);
        let walk = if keeps_generations && !(sc.may_write_now() && sc.means.may_unmap) {
            // A pass over pages that may not be written or not be unmapped would be useless.
            GroupWalk::Over
        } else if by_age {
            GroupWalk::ByAge(self.mm.memcgs.lrus[id.index()].walk())
        } else if sc.effort.all_groups
            || self.mm.memcgs[sc.by.target].policy.reclaim.tree_walk == TreeWalk::Full
        {
            GroupWalk::Full(self.mm.memcgs.begin_walk(sc.by.target), 0)
        } else {
            GroupWalk::Shared(self.mm.memcgs.join_walk(sc.by.target, id))
        };
        NodePass {
            id,
            soft_limits: self.mm.soft_limits(sc),
            walk,
            reclaimed_before: sc.nr_reclaimed,
            reclaimed_at_restart: sc.nr_reclaimed,
            restarts_in_vain: 0,
            pass: None,
            shrinkers: None,
            is_noted: false,
            has_waited: false,
        }
    }

    /// Takes a pass up to the end of a round that did something.
    pub(crate) fn node_step(&mut self, node: &mut NodePass, sc: &mut ScanControl) -> NodeStep {
        if let Some(mut soft) = node.soft_limits.take()
            && let Some(step) = self.soft_limit_step(&mut soft, node.id, sc)
        {
            node.soft_limits = Some(soft);
            return step;
        }
        loop {
            if let Some((memcg, has_aged, shrinkers)) = node.shrinkers.take() {
                let lruvec = self.mm.lruvecs.id(memcg, node.id);
                match self.shrinkers_step(lruvec, shrinkers, sc) {
                    Some((shrinkers, has_worked)) => {
                        node.shrinkers = Some((memcg, has_aged, shrinkers));
                        if has_worked {
                            return NodeStep::Again;
                        }
                    }
                    None => self.mm.end_group(node, memcg, has_aged, sc),
                }
                continue;
            }
            if let Some((memcg, pass)) = &mut node.pass {
                let memcg = *memcg;
                let lruvec = self.mm.lruvecs.id(memcg, node.id);
                let looked_at_before = self.looked_at;
                sc.waits.must_wait = false;
                if self.pass_round(lruvec, pass, sc) == Round::Last {
                    self.unplug(&mut sc.hands.plug);
                    self.note_pass(lruvec, sc);
                    if !self.mm.deferred_splits.is_empty() {
                        self.shrink_deferred_splits(lruvec, sc.priority);
                    }
                    self.shrink_shadow_nodes(lruvec, sc.priority);
                    self.shrink_zram_pools(memcg, node.id, sc);
                    let has_aged = pass.has_aged();
                    node.pass = None;
                    let zspool = self.zspool_shrink_begin(memcg, node.id, sc).map(Shrinkers::Zspool);
                    let shrinkers =
                        zspool.or_else(|| self.zswap_shrink_begin(lruvec, sc).map(Shrinkers::Zswap));
                    match shrinkers {
                        Some(shrinkers) => node.shrinkers = Some((memcg, has_aged, shrinkers)),
                        None => self.mm.end_group(node, memcg, has_aged, sc),
                    }
                }
                if sc.waits.must_wait {
                    self.mm.release_isolated(sc);
                    // The reclaimers that this one waits for may themselves wait for writes that it has begun.
                    self.unplug(&mut sc.hands.plug);
                    return NodeStep::Wait(self.isolated_wait(self.mm.lruvecs[lruvec].node, sc));
                }
                if let Some(wait) = self.take_stall(sc) {
                    if sc.hands.held_blocks.is_none() {
                        self.mm.release_isolated(sc);
                    }
                    return NodeStep::Wait(wait);
                }
                if self.looked_at > looked_at_before {
                    return NodeStep::Again;
                }
                continue;
            }
            let Some(memcg) = self.mm.next_group(node, sc) else {
                // Whatever it may wait for now, it holds no isolated pages.
                self.mm.release_isolated(sc);
                let target = self.mm.lruvecs.id(sc.by.target, node.id);
                if !std::mem::replace(&mut node.is_noted, true)
                    && let Some(wait) = self.note_node(target, sc)
                {
                    return NodeStep::Wait(wait);
                }
                if self.is_too_much_written(sc) && (sc.by.may_wait_for_writeout() || !node.has_waited) {
                    node.has_waited = true;
                    sc.waits.has_stalled = true;
                    return NodeStep::Wait(self.congestion_wait());
                }
                if sc.nr_reclaimed > 0 {
                    self.note_hope(self.mm.lruvecs[target].node, sc);
                }
                self.mm.end_walk(node);
                if sc.by.order > 0 && self.mm.should_continue_reclaim(node, sc) {
                    *node = self.node_pass(node.id, sc);
                    continue;
                }
                return NodeStep::Over;
            };
            self.begin_group(node, memcg, sc);
        }
    }

    /// Takes the shrinkers of a group one step further; `None` if they are over. True if the step did something.
    fn shrinkers_step(
        &mut self,
        lruvec: LruvecId,
        shrinkers: Shrinkers,
        sc: &ScanControl,
    ) -> Option<(Shrinkers, bool)> {
        match shrinkers {
            Shrinkers::Zspool(mut shrink) => {
                let step = self.zspool_shrink_step(&mut shrink, self.mm.lruvecs[lruvec].node);
                match step {
                    ZspoolShrinkStep::Again => Some((Shrinkers::Zspool(shrink), true)),
                    ZspoolShrinkStep::Over => {
                        self.zswap_shrink_begin(lruvec, sc).map(|shrink| (Shrinkers::Zswap(shrink), false))
                    }
                }
            }
            Shrinkers::Zswap(mut shrink) => match self.zswap_shrink_step(&mut shrink) {
                ZswapShrinkStep::Again => Some((Shrinkers::Zswap(shrink), true)),
                ZswapShrinkStep::Over => None,
            },
        }
    }

    /// Pages of a node were reclaimed: its kswapd may try again where it had given up.
    fn note_hope(&mut self, node: NodeId, sc: &ScanControl) {
        let is_hopeful = match self.mm.config.policy.machine.kswapd_reset {
            KswapdReset::AnyProgress => true,
            KswapdReset::Balanced => self.mm.memory.zones.is_balanced(node, sc.by.order, sc.by.class),
        };
        if is_hopeful {
            self.kswapds[node.index()].failures = 0;
        }
    }

    /// Starts a pass over a group's lists unless the group is protected.
    #[doc(alias = "shrink_node_memcgs")]
    fn begin_group(&mut self, node: &mut NodePass, memcg: MemcgId, sc: &mut ScanControl) {
        let rule = self.mm.config.policy.machine.protection;
        let protection = match (&node.walk, rule) {
            (GroupWalk::ByAge(_), ProtectionRule::AsVisited) => self.mm.memcgs.visit_protection(memcg),
            _ => self.mm.protection_from(memcg, sc),
        };
        let usage = self.mm.memcgs[memcg].usage;
        if memcg != sc.by.target && protection.min > 0 && protection.min >= usage {
            self.mm.pass_by(node, memcg, Move::Young);
            return;
        }
        if memcg != sc.by.target && protection.low > 0 && protection.low >= usage {
            let spares = match node.walk {
                // Those who are spared come last: then it is their turn all the same.
                GroupWalk::ByAge(_) => self.mm.memcgs.lrus[node.id.index()].segment(memcg) != Segment::Tail,
                _ => !sc.effort.low_reclaim,
            };
            if spares {
                sc.effort.low_skipped = true;
                self.mm.pass_by(node, memcg, Move::Tail);
                return;
            }
            self.mm.memcgs.event(memcg, MemcgEvent::Low);
        }
        let lruvec = self.mm.lruvecs.id(memcg, node.id);
        let pass = self.begin_pass(lruvec, sc);
        node.pass = Some((memcg, pass));
    }

    /// Ages the anonymous lists of all groups if the machine's are short of inactive pages. A group that does not swap now would otherwise
    /// meet a list in order of allocation when it begins to swap.
    pub(crate) fn age_active_anon(&mut self, node: NodeId, sc: &mut ScanControl) {
        if self.mm.memory.swap.devices() == 0
            || !self.mm.is_inactive_anon_low(self.mm.lruvecs.id(MemcgId::ROOT, node))
        {
            return;
        }
        for memcg in self.mm.memcgs.subtree(MemcgId::ROOT) {
            let lruvec = self.mm.lruvecs.id(memcg, node);
            if self.mm.memcgs[memcg].policy.lru == Lru::TwoLists {
                self.age_anon(lruvec, sc);
            }
        }
    }
}

impl State {
    /// Returns true if the whole machine is reclaimed, and its root keeps generations: then groups give by their age, in all eras but the first.
    pub(super) fn keeps_generations(&self, sc: &ScanControl) -> bool {
        sc.by.is_global() && self.memcgs[MemcgId::ROOT].policy.lru == Lru::Generations
    }

    /// How a group is protected from a reclaimer.
    pub(crate) fn protection_from(&self, memcg: MemcgId, sc: &ScanControl) -> Protection {
        match self.config.policy.machine.protection {
            ProtectionRule::KswapdOnly if self.keeps_generations(sc) => self.memcgs.visited_protection(memcg),
            _ => self.memcgs.protection(sc.by.target, memcg),
        }
    }

    /// Returns whether another pass for a block must follow immediately. It must if this one has freed something, compaction still has too
    /// little to work with, and there are enough pages to take.
    fn should_continue_reclaim(&self, node: &NodePass, sc: &ScanControl) -> bool {
        if !sc.by.is_for_machine()
            || !sc.is_in_earnest_for_block()
            || self.makes_blocks_by_reclaim()
            || self.keeps_generations(sc)
            || sc.nr_reclaimed == node.reclaimed_before
        {
            return false;
        }
        let block = sc.by.block();
        let mut zones = self.memory.zones.of_node(node.id).iter().filter(|zone| zone.kind <= block.class);
        let is_enough = |zone: &Zone| {
            let min = zone.mark(Watermark::Min);
            zone.watermark_ok(block.order, min, block.class, Rights::empty()) || zone.is_suitable(&block)
        };
        if zones.any(is_enough) {
            return false;
        }
        let mut inactive = self.node_stat(node.id, Stat::NrInactiveFile).max(0) as u64;
        if self.memory.swap.free_pages() > 0 || self.can_demote(node.id, MemcgId::ROOT) {
            inactive += self.node_stat(node.id, Stat::NrInactiveAnon).max(0) as u64;
        }
        inactive > self.compact_gap(block.order)
    }

    fn next_group(&mut self, node: &mut NodePass, sc: &ScanControl) -> Option<MemcgId> {
        match &mut node.walk {
            GroupWalk::Full(order, visited) => {
                *visited += 1;
                order.get(*visited - 1).copied()
            }
            GroupWalk::Shared(walk) => self.memcgs.walk_next(walk),
            GroupWalk::ByAge(walk) => {
                let restarts = self.config.policy.machine.memcg_lru_restart;
                let lru = &mut self.memcgs.lrus[node.id.index()];
                let next = lru.next(walk);
                if next.is_some() || !restarts || !lru.has_gone_on(walk) {
                    return next;
                }
                let is_in_vain = sc.nr_reclaimed == node.reclaimed_at_restart;
                node.restarts_in_vain = if is_in_vain { node.restarts_in_vain + 1 } else { 0 };
                node.reclaimed_at_restart = sc.nr_reclaimed;
                if node.restarts_in_vain > RESTARTS_IN_VAIN {
                    return None;
                }
                *walk = lru.walk();
                lru.next(walk)
            }
            GroupWalk::Over => None,
        }
    }

    /// No group is visited any more.
    fn end_walk(&mut self, node: &mut NodePass) {
        match std::mem::replace(&mut node.walk, GroupWalk::Over) {
            GroupWalk::Full(order, _) => self.memcgs.end_walk(order),
            GroupWalk::Shared(walk) => self.memcgs.end_walk(walk.into_order()),
            GroupWalk::ByAge(_) | GroupWalk::Over => {}
        }
    }

    /// A group gives nothing this time.
    fn pass_by(&mut self, node: &mut NodePass, memcg: MemcgId, to: Move) {
        if let GroupWalk::ByAge(walk) = &mut node.walk {
            let lru = &mut self.memcgs.lrus[node.id.index()];
            lru.visited(walk);
            lru.rotate(memcg, to);
        }
    }

    /// A group has given what it was to give.
    #[doc(alias = "shrink_many")]
    fn end_group(&mut self, node: &mut NodePass, memcg: MemcgId, has_aged: bool, sc: &ScanControl) {
        let lruvec = self.lruvecs.id(memcg, node.id);
        let is_over = match &mut node.walk {
            GroupWalk::ByAge(walk) => {
                let to = if has_aged {
                    Some(Move::Young)
                } else if self.evictable(lruvec) >> sc.priority > 0 {
                    None
                } else if self.memcgs.lrus[node.id.index()].segment(memcg) == Segment::Tail {
                    Some(Move::Young)
                } else {
                    Some(Move::Tail)
                };
                let lru = &mut self.memcgs.lrus[node.id.index()];
                lru.visited(walk);
                if let Some(to) = to {
                    lru.rotate(memcg, to);
                }
                self.is_enough(lruvec, sc)
            }
            // Reclaimers share the walk and stop when they have the pages that they need. Visiting every group of a large tree for a few
            // pages would cost more than the unfairness that this leaves to the next.
            GroupWalk::Shared(_) => sc.is_satisfied(),
            // A walk of all groups visits every group, unless no task waits for its end any more.
            GroupWalk::Full(..) => sc.is_interrupted,
            GroupWalk::Over => true,
        };
        if is_over {
            self.end_walk(node);
        }
        if has_aged && !sc.by.is_global() {
            self.memcgs.lrus[node.id.index()].rotate(memcg, Move::Young);
        }
    }

    /// Pages that reclaim might take from a group on a node.
    pub(crate) fn evictable(&self, lruvec: LruvecId) -> u64 {
        let lists = &self.lruvecs[lruvec];
        let is_anon_evictable = self.has_slots(lruvec);
        let of = |kind| lists.size(LruList::inactive(kind)) + lists.size(LruList::active(kind));
        of(LruType::File) + if is_anon_evictable { of(LruType::Anon) } else { 0 }
    }

    /// Returns true if anonymous pages of an lruvec can go to swap: there is a free slot, or, if the host has full swap exchanged, some of them have one.
    pub(crate) fn has_slots(&self, lruvec: LruvecId) -> bool {
        let Lruvec { memcg, stat_local, .. } = &self.lruvecs[lruvec];
        self.memcgs.free_swap(*memcg, self.memory.swap.free_pages()) > 0
            || self.exchanges_full_swap && stat_local[Stat::NrSwapcached as usize] > 0
    }

    /// Returns whether reclaim may stop in the middle of a pass over generations: the requested pages are free, or kswapd finds that
    /// others have freed enough. Up to 7.0 that was so of reclaim for the machine only. A signal that ends the call ends the pass, too.
    /// [mglru-2026 2.5]
    pub(crate) fn is_enough(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        if sc.is_interrupted {
            return true;
        }
        if !sc.by.is_global() && self.generation_rules(lruvec).pass.abort_scope == AbortScope::Root {
            return false;
        }
        if sc.nr_reclaimed >= sc.nr_to_reclaim.max(self.compact_gap(sc.by.order)) {
            return true;
        }
        let node = self.lruvecs[lruvec].node;
        sc.by.is_kswapd()
            && sc.by.order == 0
            && self.memory.zones.is_beyond(node, sc.by.class, Watermark::High, ENOUGH_BEYOND_HIGH)
    }

    /// Returns true if a pass over generations is over after a round that has found something.
    pub(super) fn ends_pass(&self, lruvec: LruvecId, pass: &GenerationsPass, sc: &ScanControl) -> bool {
        if self.generation_rules(lruvec).pass.abort_scope != AbortScope::TwoAgings {
            return self.is_enough(lruvec, sc) || pass.has_aged() && sc.by.is_global();
        }
        // What 6.1 does. [kernels 3.2]
        let has_target = sc.nr_reclaimed >= sc.nr_to_reclaim;
        let mark = if sc.by.is_kswapd() {
            if !has_target {
                return sc.is_interrupted;
            }
            Watermark::High
        } else {
            let has_aged_twice = pass.opened(self.generations(lruvec).max_seq) > 1;
            if sc.is_interrupted || has_aged_twice || has_target && pass.took_anon() {
                return true;
            }
            if !sc.by.is_global() {
                return false;
            }
            Watermark::Low
        };
        let is_gentle = sc.priority + 1 >= PRIORITY_DEFAULT;
        !is_gentle && self.memory.zones.is_beyond(self.lruvecs[lruvec].node, sc.by.class, mark, 0)
    }

    /// Pages that reclaim for a block frees before it leaves the rest to compaction, by the rule of the machine.
    pub(crate) fn compact_gap(&self, order: u8) -> u64 {
        let gap = compact_gap(order);
        match self.config.policy.machine.compact_gap {
            CompactGap::TwiceTheBlock => gap,
            CompactGap::Capped => gap.min(self.config.reclaim_batch),
        }
    }

    /// Generations would begin so gently at the usual priority that many passes would free nothing: the first one goes by how much
    /// there is and how much is wanted.
    fn set_initial_priority(&self, target: LruvecId, sc: &mut ScanControl) {
        if self.config.policy.machine.initial_priority == InitialPriority::Default {
            return;
        }
        if sc.priority != PRIORITY_DEFAULT || sc.nr_to_reclaim < crate::lru::MIN_LRU_BATCH {
            return;
        }
        let node: NodeId = self.lruvecs[target].node;
        let mut reclaimable = self.node_stat(node, Stat::NrInactiveFile).max(0) as u64;
        if self.effective_swappiness(target, sc) > 0 {
            reclaimable += self.node_stat(node, Stat::NrInactiveAnon).max(0) as u64;
        }
        let log2 = reclaimable.checked_ilog2().map_or(-1, |log| log as i32);
        let bits = (u64::BITS - (sc.nr_to_reclaim - 1).leading_zeros()) as i32;
        sc.priority = (log2 - bits).clamp(6, 12) as u8;
    }
}
