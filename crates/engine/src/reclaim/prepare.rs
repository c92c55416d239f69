//! Before a pass over a node: what it may do, by the state of the target's lruvec there (`prepare_scan_control`). [reclaim 2.2, 2.3]

use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::two_lists::Deactivation;
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::reclaim::ScanControl;
use crate::stat::{ACTIVATE, ByType, StaleDecision, Stat};
use crate::state::State;
use crate::units::{LruType, MemcgId, NodeId};
use pageout_rules::lru::Lru;

impl Core {
    /// Decides whether active pages may be aged, and whether there is so much idle cache that nothing else need be touched.
    pub(super) fn prepare_scan_control(&mut self, target: LruvecId, sc: &mut ScanControl) {
        match self.mm.lru_of(target) {
            Lru::TwoLists => self.prepare_by_lists(target, sc),
            // They have no opinion on how a descendant with other lists should age its pages.
            Lru::Generations | Lru::Guest(_) => {
                sc.plan.aging.allow();
                sc.plan.cache_trim_mode = false;
            }
        }
    }

    fn prepare_by_lists(&mut self, target: LruvecId, sc: &mut ScanControl) {
        self.flush_stats_by(self.mm.memcgs[sc.by.target].policy.reclaim.stat_flush, sc.by.target);
        sc.plan.aging.decide(self.mm.view(target));
        let inactive_file = self.mm.stale(target, LruList::InactiveFile.stat());
        sc.plan.cache_trim_mode = inactive_file >> sc.priority > 0
            && !sc.plan.aging.may_deactivate[LruType::File as usize]
            && !sc.effort.no_cache_trim_mode;
        self.compare_with_live(target, sc);
        sc.plan.file_is_tiny = sc.by.is_for_machine()
            && !sc.plan.aging.may_deactivate[LruType::Anon as usize]
            && self.mm.node_stat(self.mm.lruvecs[target].node, Stat::NrInactiveAnon).max(0) >> sc.priority
                > 0
            && self.mm.is_file_tiny(self.mm.lruvecs[target].node);
    }

    /// Looks whether sizes as they are would have led to other decisions on the lists of a target.
    fn compare_with_live(&mut self, target: LruvecId, sc: &ScanControl) {
        let memcg = self.mm.lruvecs[target].memcg;
        let has_room = self.mm.memcgs.free_swap(memcg, self.mm.memory.swap.free_pages()) > 0;
        let takes_anon =
            sc.means.may_swap && sc.by.swappiness > 0 && (has_room || self.mm.can_demote_from(target));
        let mut may_deactivate_file = false;
        for kind in LruType::BOTH.into_iter().filter(|&kind| takes_anon || kind == LruType::File) {
            let stats = [LruList::inactive(kind).stat(), LruList::active(kind).stat(), ACTIVATE.of(kind)];
            let Some(live) = self.live_stats(target).map(|live| stats.map(|stat| live.get(stat))) else {
                return;
            };
            let live = Deactivation::live(self.mm.view(target), kind, sc.plan.aging.is_forced, live);
            let Some(stale) = sc.plan.aging.why[kind as usize] else { return };
            may_deactivate_file = kind == LruType::File && live.is_due();
            let numbers = [
                (LruList::inactive(kind).stat(), stale.inactive, live.inactive),
                (LruList::active(kind).stat(), stale.active, live.active),
                (ACTIVATE.of(kind), stale.refaults[0], live.refaults[0]),
            ];
            self.note_decision(StaleDecision::Aging, memcg, stale.is_due(), live.is_due(), &numbers);
        }
        if !takes_anon {
            return;
        }
        let inactive_file = LruList::InactiveFile.stat();
        let Some(live) = self.live_stats(target).map(|live| live.get(inactive_file)) else { return };
        let is_enough = live >> sc.priority > 0 && !may_deactivate_file && !sc.effort.no_cache_trim_mode;
        let numbers = [(inactive_file, self.mm.stale(target, inactive_file), live)];
        self.note_decision(StaleDecision::CacheTrim, memcg, sc.plan.cache_trim_mode, is_enough, &numbers);
    }
}

impl State {
    /// Returns whether a node would be below its high watermarks if all of its file pages were free.
    fn is_file_tiny(&self, node: NodeId) -> bool {
        let zones = self.memory.zones.of_node(node);
        let free: u64 = zones.iter().map(Zone::free_pages).sum();
        let high: u64 = zones.iter().map(|zone| zone.mark(Watermark::High)).sum();
        let file = self.node_stat(node, Stat::NrActiveFile) + self.node_stat(node, Stat::NrInactiveFile);
        file.max(0) as u64 + free <= high
    }

    /// Returns true if a group's anonymous pages are all active and stay so, because the statistics are from before they were.
    pub(crate) fn is_active_list_out_of_reach(&self, memcg: MemcgId) -> bool {
        let lruvecs = || self.lruvecs.nodes().map(|node| self.lruvecs.id(memcg, node));
        let size = |list: LruList| lruvecs().map(|id| self.lruvecs[id].size(list)).sum::<u64>();
        let is_due = |id: LruvecId| Deactivation::of(self.view(id), LruType::Anon, false).is_due();
        self.memcgs[memcg].policy.lru == Lru::TwoLists
            && size(LruList::InactiveAnon) == 0
            && size(LruList::ActiveAnon) > 0
            && !lruvecs().any(is_due)
    }
}
