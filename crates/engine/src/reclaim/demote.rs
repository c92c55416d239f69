//! Demotion: folios that reclaim would evict from a fast node move to a node of a slower tier instead. [tiering 1.4;
//! tiering-zswap-6.12 3.7]
//!
//! ```text
//!   judged: nobody uses it ─▶ demotion on, and a slower tier? ─▶ demote list ─▶ at the end of the batch, each:
//!       the nearest node of the next tier, from that node only, without reclaim ─▶ moved
//!       else any node of any slower tier, the nearest first                      ─▶ moved
//!       else a huge page becomes single ones, each of which tries the same
//!       else it is judged again with demotion off: to swap, dropped, or activated
//! ```
//! The nearest node comes first and alone, so that a full one demotes in its turn, and pages don't skip a tier. Slower memory counts as space for
//! anonymous pages, just as swap does: without either, they are not even scanned.
//!
//! Pages that were demoted count as reclaimed. They keep their young and dirty bits, which move along.
//!
//! Linux 6.12 asks neither the cpuset nor the memory policy of a page's users; newer kernels ask the nodes of its memcg
//! (`reclaim.demotion_mems`). A full slow tier turns the order of memory around:
//! fast memory is swapped out while colder pages stay on the slow node. [tiering 1.4]

use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::migrate::MigrateStep;
use crate::page_alloc::request::{Gfp, Request};
use crate::reclaim::shrink::ReclaimStat;
use crate::reclaim::shrink_lruvec::Round;
use crate::reclaim::{Reclaimer, ScanControl, Why};
use crate::stat::Stat;
use crate::state::State;
use crate::story::{MigrateReason, MigrateRefusal, PageEvent};
use crate::units::ZoneType;
use crate::units::{LruType, MemcgId, NodeId, Nodemask, Pfn};
use pageout_rules::reclaim::{DemotionFull, DemotionMems};
use std::borrow::Cow;

impl Core {
    /// Demotes folios of a batch. Leaves in `folios` those that found no free page, unchanged.
    #[doc(alias = "demote_folio_list")]
    pub(super) fn demote_folios(
        &mut self,
        lruvec: LruvecId,
        folios: &mut Vec<Pfn>,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) {
        let from = self.mm.lruvecs[lruvec].node;
        let memcg = self.mm.lruvecs[lruvec].memcg;
        let (preferred, allowed) = self.mm.demotion_targets(from, memcg);
        let (preferred, allowed) = (preferred.into_owned(), allowed.into_owned());
        let target = self.next_demotion_node(&preferred);
        let mut moved = self.demote_to(target, &allowed, folios, sc);
        if !folios.is_empty()
            && self.mm.memcgs[memcg].policy.reclaim.demotion_full == DemotionFull::ReclaimTarget
        {
            let wanted = folios.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
            self.reclaim_for_demotion(self.mm.lruvecs.id(memcg, target), wanted, sc);
            moved += self.demote_to(target, &allowed, folios, sc);
        }
        let failed: u64 = folios.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
        self.mm.count_node(from, Stat::PgmigrateFail, failed as i64);
        let counter = match sc.by.why {
            Why::Kswapd => Stat::PgdemoteKswapd,
            Why::Requested => Stat::PgdemoteProactive,
            Why::Limit | Why::High | Why::Generations | Why::Direct | Why::Node => Stat::PgdemoteDirect,
        };
        self.count(lruvec, counter, moved as i64);
        stat.reclaimed += moved;
    }

    /// Moves the folios that find a free page, and returns how many pages those were.
    fn demote_to(
        &mut self,
        target: NodeId,
        allowed: &[NodeId],
        folios: &mut Vec<Pfn>,
        sc: &mut ScanControl,
    ) -> u64 {
        let mut moved = 0;
        let mut single = Vec::new();
        folios.retain(|&pfn| !self.demote_folio(target, allowed, pfn, &mut single, &mut moved, sc));
        // Single pages of huge ones for which no block was free there.
        single.retain(|&pfn| !self.demote_folio(target, allowed, pfn, &mut Vec::new(), &mut moved, sc));
        folios.append(&mut single);
        moved
    }

    /// Moves a folio, if it finds free memory: as one, or a huge page as single pages, all except the first of which are added to `single`.
    fn demote_folio(
        &mut self,
        target: NodeId,
        allowed: &[NodeId],
        pfn: Pfn,
        single: &mut Vec<Pfn>,
        moved: &mut u64,
        sc: &mut ScanControl,
    ) -> bool {
        if self.is_held(&self.mm.memory.folios[pfn]) {
            return false;
        }
        self.mm.assert_isolated(pfn);
        let mut to = self.alloc_demote_folio(target, allowed, pfn);
        let folio = self.mm.memory.folios[pfn];
        if to.is_none() && folio.is_large_anon() && self.split_large_anon(pfn, single) {
            self.mm.count_migration_split(&folio);
            to = self.alloc_demote_folio(target, allowed, pfn);
        }
        let Some(to) = to else {
            self.tell(pfn, |_| PageEvent::NotMigrated { to: target, why: MigrateRefusal::NoFrame });
            return false;
        };
        let folio = self.mm.memory.folios[pfn];
        let slower = self.mm.memory.folios[to].node;
        assert_ne!(slower, folio.node, "a page is demoted to the node that it is on");
        assert!(
            slower == target || allowed.contains(&slower),
            "a page is demoted to {slower:?}, which is not a target"
        );
        let (kind, others) = (folio.lru_type() as usize, self.mm.isolated_by_others(folio.node, sc));
        let free = self.mm.memory.zones.all_free(slower);
        if !self.move_folio(pfn, to, MigrateReason::Demotion) {
            self.free_folio(to);
            debug_assert_eq!(
                self.mm.memory.zones.all_free(slower),
                free + folio.pages(),
                "free pages of {slower:?}, and {to:?}, to which no folio has moved"
            );
            return false;
        }
        self.note_departure(to, folio.node);
        // Its new node counts it as isolated until it is on a list there; this call gives back what is left.
        let isolated = &mut sc.hands.isolated[kind];
        assert!(*isolated >= folio.pages(), "{} pages are demoted of {isolated} in hand", folio.pages());
        *isolated -= folio.pages();
        debug_assert_eq!(
            self.mm.isolated_by_others(folio.node, sc),
            others,
            "pages isolated by others before and after {pfn:?} leaves this call's node"
        );
        self.migrate_put_back(to);
        *moved += folio.pages();
        true
    }

    /// Takes as many pages from the cold end of a group on a slow node as will come, priority by priority.
    fn reclaim_for_demotion(&mut self, lruvec: LruvecId, pages: u64, for_call: &ScanControl) {
        let by = Reclaimer { node: Some(self.mm.lruvecs[lruvec].node), ..for_call.by };
        let mut sc = ScanControl::new(by, pages);
        self.prepare_scan_control(lruvec, &mut sc);
        loop {
            let mut pass = self.begin_pass(lruvec, &mut sc);
            while self.pass_round(lruvec, &mut pass, &mut sc) == Round::More && !sc.waits.must_wait {}
            self.unplug(&mut sc.hands.plug);
            if sc.waits.must_wait || sc.is_satisfied() || sc.priority == 0 {
                break;
            }
            sc.priority -= 1;
        }
        self.mm.release_isolated(&mut sc);
    }

    /// One of the nearest nodes of the next tier, each as often as the others.
    fn next_demotion_node(&mut self, targets: &[NodeId]) -> NodeId {
        self.demotion_draws = self.demotion_draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.demotion_draws ^ (self.demotion_draws >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        targets[((mixed >> 33) as usize) % targets.len()]
    }

    fn alloc_demote_folio(&mut self, target: NodeId, allowed: &[NodeId], pfn: Pfn) -> Option<Pfn> {
        if self.is_refused(MigrateStep::Allocate) {
            return None;
        }
        let folio = self.mm.memory.folios[pfn];
        // It neither reclaims nor has anyone reclaim, and leaves reserves alone: it is an opportunity, no need.
        let gfp = Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN | Gfp::NOMEMALLOC;
        let request = |node| Request { order: folio.order, ..Request::movable(gfp, node) };
        if let Some(to) = self.alloc_pages(&request(target), folio.memcg) {
            return Some(to);
        }
        let mut nodes: Vec<NodeId> = self
            .mm
            .memory
            .zones
            .zonelist(target, ZoneType::Movable, Nodemask::ALL)
            .map(|zone| zone.node)
            .collect();
        nodes.dedup();
        nodes.retain(|node| *node != target && allowed.contains(node));
        nodes.into_iter().find_map(|node| self.alloc_pages(&request(node), folio.memcg))
    }
}

impl State {
    /// Returns true if reclaim may move pages of a group from a node to slower memory.
    #[inline]
    pub(crate) fn can_demote(&self, node: NodeId, memcg: MemcgId) -> bool {
        self.config.demotion_enabled && !self.demotion_targets(node, memcg).0.is_empty()
    }

    #[inline]
    pub(crate) fn can_demote_from(&self, lruvec: LruvecId) -> bool {
        let lruvec = &self.lruvecs[lruvec];
        self.can_demote(lruvec.node, lruvec.memcg)
    }

    /// Demotion targets of a node for pages of a group: the preferred nodes, and all that are allowed.
    fn demotion_targets(&self, from: NodeId, memcg: MemcgId) -> (Cow<'_, [NodeId]>, Cow<'_, [NodeId]>) {
        let (preferred, allowed) = (self.tiers.preferred_targets(from), self.tiers.allowed_targets(from));
        let rule = self.memcgs[memcg].policy.reclaim.demotion_mems;
        if rule == DemotionMems::Ignored {
            return (preferred.into(), allowed.into());
        }
        let mems = self.memcgs.mems_allowed(memcg);
        let within = |nodes: &[NodeId]| -> Vec<NodeId> {
            nodes.iter().copied().filter(|&node| mems.contains(node)).collect()
        };
        let (near, all) = (within(preferred), within(allowed));
        match rule {
            // Only the nearest nodes are candidates; if they are excluded there is no demotion.
            DemotionMems::NearestOnly if near.is_empty() => (Cow::Owned(Vec::new()), Cow::Owned(Vec::new())),
            _ if near.is_empty() => (all.iter().copied().take(1).collect(), all.into()),
            _ => (near.into(), all.into()),
        }
    }

    /// Returns true if a folio that reclaim has chosen goes to slower memory, if that has a free page.
    pub(super) fn is_to_demote(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let rules = self.memcgs[folio.memcg].policy.reclaim;
        self.can_demote(folio.node, folio.memcg) && (rules.demote_file || folio.lru_type() == LruType::Anon)
    }
}
