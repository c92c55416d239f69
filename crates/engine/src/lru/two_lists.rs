//! The classic LRU: an active and an inactive list for each type of memory.
//!
//! ```text
//!   new pages ─► head [ inactive ] tail ─► reclaim        a page accessed twice while inactive, or refaulting soon
//!                   ▲      │ activate                     enough (`workingset/distance.rs`), becomes active
//!        deactivate │      ▼
//!   shrink_active ◄─ tail [ active ] head                 active pages age only while the inactive list is too short
//! ```
//! A pass over an lruvec takes from each list what the balance says, 32 folios of each list a round, so that the types
//! are drained side by side rather than one after the other. Rotation is the second chance: reclaim never compares two
//! pages, it only asks of each whether it was referenced since it last looked. [reclaim 2.2 to 2.8; reclaim-6.12 2.3, 2.4, 2.6, 2.7]
//!
//! **With a page-table walk**, which Linux does not do here: once the inactive lists have turned over since the last walk, the
//! next pass begins with a walk. So each page is walked by once while it is inactive. A walk touches no list. What it or a
//! look-around finds young counts as a use, kept with the folio until reclaim asks. One use earns the round that the accessed
//! bit would have earned, two earn the active list.
//!
//! Neighbours: `balance` (how much of each type), `harvest` (was it referenced), `reclaim/shrink_list.rs` (the verdict on
//! each inactive folio). *When not to use it:* where a working set is a little larger than memory and read in a loop, it
//! keeps nothing of it.

use super::Round;
use crate::core::Core;
use crate::harvest::{Referenced, Walk, Walked};
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::reclaim::{FolioReferences, PRIORITY_DEFAULT, ScanControl};
use crate::stat::{ACTIVATE, ByType, StaleDecision, Stat};
use crate::state::State;
use crate::story::{Because, ListsEvent, PageEvent, Tracepoint, Verdict};
use crate::units::{LruType, MemcgId, NodeId, PAGE_SHIFT, Pfn};
use pageout_rules::lru::Lru;

/// The lists that keep a pass going as long as pages of them are left to scan.
const KEEPS_GOING: [LruList; 3] = [LruList::InactiveAnon, LruList::ActiveFile, LruList::InactiveFile];

/// What is left to do of a pass.
pub(crate) struct TwoListsPass {
    /// What goes before: a walk of page tables, where it is time for one.
    walk: Option<Walk>,
    /// Pages still to scan, by list.
    remaining: [u64; 4],
    /// Pages to scan at the start.
    targets: [u64; 4],
    /// Pages reclaimed by this pass.
    reclaimed: u64,
}

/// Why an active list is aged: one of three reasons is enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deactivation {
    /// The call has found nothing in any other way.
    pub forced: bool,
    /// Activations by refaults, as of the last flush, and as the last reclaim call left them: a difference says that some
    /// inactive pages deserve the place of some active ones.
    pub refaults: [u64; 2],
    /// Inactive pages of the type, as of the last flush.
    pub inactive: u64,
    /// Pages on the active list.
    pub active: u64,
    /// How many times as many pages may be active as inactive.
    pub ratio: u64,
}

impl Deactivation {
    fn new(forced: bool, refaults: [u64; 2], [inactive, active]: [u64; 2]) -> Deactivation {
        let gib = (inactive + active) >> (30 - PAGE_SHIFT);
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        Deactivation { forced, refaults, inactive, active, ratio }
    }

    /// The inactive list is too short to give its pages a fair chance of a second access. The larger the memory, the smaller the
    /// share that needs to be inactive, because the list lasts longer.
    pub fn inactive_is_low(&self) -> bool {
        self.inactive * self.ratio < self.active
    }

    /// Whether the list is to be aged.
    pub fn is_due(&self) -> bool {
        self.forced || self.refaults[0] != self.refaults[1] || self.inactive_is_low()
    }
}

impl Core {
    /// What speaks for aging the active list of a type, by sizes as they are, where these are at hand.
    fn live_deactivation(&self, lruvec: LruvecId, kind: LruType, forced: bool) -> Option<Deactivation> {
        let live = self.live_stats(lruvec)?;
        let sizes = [LruList::inactive(kind), LruList::active(kind)].map(|list| live.get(list.stat()));
        let before = self.mm.lruvecs[lruvec].refaults_live[kind as usize];
        Some(Deactivation::new(forced, [live.get(ACTIVATE.of(kind)), before], sizes))
    }

    /// Looks whether sizes as they are would have led to other decisions on the lists of a target.
    fn compare_with_live(&mut self, target: LruvecId, sc: &ScanControl) {
        let memcg = self.mm.lruvecs[target].memcg;
        let has_room = self.mm.memcgs.free_swap(memcg, self.mm.memory.swap.free_pages()) > 0;
        let takes_anon = sc.may_swap && sc.by.swappiness > 0 && (has_room || self.mm.can_demote_from(target));
        let mut may_deactivate_file = false;
        for kind in LruType::BOTH.into_iter().filter(|&kind| takes_anon || kind == LruType::File) {
            let Some(live) = self.live_deactivation(target, kind, sc.force_deactivate) else { return };
            let Some(stale) = sc.deactivation[kind as usize] else { return };
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
        let is_enough = live >> sc.priority > 0 && !may_deactivate_file && !sc.no_cache_trim_mode;
        let numbers = [(inactive_file, self.mm.stale(target, inactive_file), live)];
        self.note_decision(StaleDecision::CacheTrim, memcg, sc.cache_trim_mode, is_enough, &numbers);
    }

    /// Decides whether active pages may be aged, and whether there is so much idle cache that nothing else need be touched.
    #[doc(alias = "prepare_scan_control")]
    pub(super) fn two_lists_prepare(&mut self, target: LruvecId, sc: &mut ScanControl) {
        self.flush_stats_by(self.mm.memcgs[sc.by.target].policy.reclaim.stat_flush, sc.by.target);
        for kind in LruType::BOTH {
            // They may if the inactive list is short, or if refaults since the last cycle show that some inactive pages
            // deserve the place of some active ones.
            let why = self.mm.deactivation(target, kind, sc.force_deactivate);
            sc.may_deactivate[kind as usize] = why.is_due();
            sc.deactivation[kind as usize] = Some(why);
        }
        let inactive_file = self.mm.stale(target, LruList::InactiveFile.stat());
        sc.cache_trim_mode = inactive_file >> sc.priority > 0
            && !sc.may_deactivate[LruType::File as usize]
            && !sc.no_cache_trim_mode;
        self.compare_with_live(target, sc);
        sc.file_is_tiny = sc.by.is_for_machine()
            && !sc.may_deactivate[LruType::Anon as usize]
            && self.mm.node_stat(self.mm.lruvecs[target].node, Stat::NrInactiveAnon).max(0) >> sc.priority
                > 0
            && self.mm.is_file_tiny(self.mm.lruvecs[target].node);
    }

    /// Ages a batch of a group's active anonymous pages, where it has too few inactive ones.
    pub(crate) fn age_anon(&mut self, lruvec: LruvecId, sc: &mut ScanControl) {
        let why = self.mm.deactivation(lruvec, LruType::Anon, false);
        if why.inactive_is_low() {
            self.shrink_active(lruvec, LruList::ActiveAnon, self.mm.config.reclaim_batch, Some(why), sc);
        }
    }

    pub(super) fn two_lists_begin(&mut self, lruvec: LruvecId, sc: &mut ScanControl) -> TwoListsPass {
        let balance = self.mm.scan_balance(lruvec, sc);
        let targets = self.mm.scan_count(lruvec, balance, sc);
        let priority = sc.priority;
        self.tell_lists(lruvec, |_| ListsEvent::PassBegun { balance, priority, targets });
        TwoListsPass { walk: self.mm.two_lists_walk(lruvec, sc), remaining: targets, targets, reclaimed: 0 }
    }

    /// One round: up to a batch of each list.
    #[doc(alias = "shrink_lruvec")]
    pub(super) fn two_lists_round(
        &mut self,
        lruvec: LruvecId,
        pass: &mut TwoListsPass,
        sc: &mut ScanControl,
    ) -> Round {
        if let Some(walk) = &mut pass.walk {
            if self.walk_step(lruvec, walk) != Walked::More {
                pass.walk = None;
            }
            return Round::More;
        }
        if let Some(held) = sc.held_blocks.take() {
            pass.reclaimed += self.shrink_held_blocks(held, sc);
            return Round::More;
        }
        // The active anonymous list alone doesn't keep a pass going: nothing would be reclaimed.
        let is_over = KEEPS_GOING.iter().all(|&list| pass.remaining[list as usize] == 0);
        if is_over && !self.mm.forces_active_anon(lruvec, pass, sc) {
            return self.two_lists_end(lruvec, pass, sc);
        }
        for list in LruList::EVICTABLE {
            let n = pass.remaining[list as usize].min(self.mm.config.reclaim_batch);
            if n > 0 {
                pass.remaining[list as usize] -= n;
                pass.reclaimed += self.shrink_list(lruvec, list, n, sc);
                if sc.must_wait {
                    pass.remaining[list as usize] += n;
                    return Round::More;
                }
                if sc.held_blocks.is_some() {
                    return Round::More;
                }
            }
        }
        if sc.is_interrupted {
            return self.two_lists_end(lruvec, pass, sc);
        }
        // At its first priority, reclaim for the whole machine goes on to the end of its small share, so that each group gives
        // something. Reclaim for a group stops when it has enough.
        let is_proportional = sc.by.is_global() && !sc.by.is_kswapd() && sc.priority == PRIORITY_DEFAULT;
        if pass.reclaimed >= sc.nr_to_reclaim && !is_proportional && !pass.trim_to_proportion() {
            return self.two_lists_end(lruvec, pass, sc);
        }
        Round::More
    }

    fn two_lists_end(&mut self, lruvec: LruvecId, pass: &TwoListsPass, sc: &mut ScanControl) -> Round {
        sc.nr_reclaimed += pass.reclaimed;
        // Even where anonymous pages are not reclaimed now they must age, or the first swap-out would meet a list in
        // order of allocation. Done after each pass, whatever the deactivation bits say.
        if self.mm.memory.swap.devices() > 0 || self.mm.can_demote_from(lruvec) {
            self.age_anon(lruvec, sc);
        }
        Round::Last
    }

    /// A walk or a look-around found an entry that maps the folio young, and cleared it. The use is kept in the counter, which
    /// two lists don't need otherwise. A second use activates.
    pub(super) fn two_lists_young(&mut self, pfn: Pfn) {
        let use_bits = self.mm.memory.use_bits(pfn);
        let is_second = use_bits.counter() > 0 || use_bits.contains(UseBits::REFERENCED);
        if is_second && !use_bits.contains(UseBits::ACTIVE) {
            self.mm.memory.set_use_bits(pfn, (use_bits - UseBits::REFERENCED).with_counter(0));
            self.lru_activate(pfn);
        } else {
            self.mm.memory.set_use_bits(pfn, use_bits.with_counter(1));
        }
    }

    /// One access through a mapping earns another round, two (two rounds running, or two mappings) the active list:
    /// a page that is mapped once and touched once is no better than one read once. Executable file pages need only one.
    pub(super) fn two_steps(&mut self, pfn: Pfn, referenced: Referenced) -> FolioReferences {
        let folio = self.mm.memory.folios[pfn];
        let kind = folio.lru_type();
        let use_bits = self.mm.memory.use_bits_of(&folio);
        let (was_referenced, is_young) = (use_bits.contains(UseBits::REFERENCED), referenced.young > 0);
        if was_referenced != is_young {
            let use_bits =
                if is_young { use_bits | UseBits::REFERENCED } else { use_bits - UseBits::REFERENCED };
            self.mm.memory.set_use_bits(pfn, use_bits);
        }
        if is_young {
            let protects_executables = self.mm.memcgs[folio.memcg].policy.executable_protection;
            let executable = referenced.executable && protects_executables && kind == LruType::File;
            let because = Because::Used { young: referenced.young, was_referenced, executable };
            if was_referenced || referenced.young > 1 || executable {
                self.verdict(pfn, Verdict::Activate, because);
                return FolioReferences::Activate;
            }
            self.verdict(pfn, Verdict::Keep, because);
            return FolioReferences::Keep;
        }
        if was_referenced && kind == LruType::File && self.mm.memcgs[folio.memcg].policy.reclaim.clean_only {
            return FolioReferences::ReclaimClean;
        }
        FolioReferences::Reclaim
    }

    fn shrink_list(&mut self, lruvec: LruvecId, list: LruList, n: u64, sc: &mut ScanControl) -> u64 {
        if !list.is_active() {
            return self.shrink_inactive(lruvec, list, n, sc);
        }
        if sc.may_deactivate[list.kind() as usize] {
            self.shrink_active(lruvec, list, n, sc.deactivation[list.kind() as usize], sc);
        } else {
            sc.skipped_deactivate = true;
        }
        0
    }

    /// Looks at up to `n` pages from the cold end of an inactive list and reclaims what it can.
    #[doc(alias = "shrink_inactive_list")]
    fn shrink_inactive(&mut self, lruvec: LruvecId, list: LruList, n: u64, sc: &mut ScanControl) -> u64 {
        let kind = list.kind();
        if self.too_many_isolated(self.mm.lruvecs[lruvec].node, kind, sc) {
            return 0;
        }
        self.lru_add_drain();
        if self.mm.is_lumpy(sc) {
            return self.shrink_blocks(lruvec, list, n, sc);
        }
        let mut folios = std::mem::take(&mut self.isolated);
        let taken = self.isolate_from(lruvec, list as usize, n, &mut folios, sc);
        if taken == 0 {
            self.isolated = folios;
            return 0;
        }
        self.mm.lruvecs[lruvec].walk.scanned_since += taken;
        let stat = self.shrink_batch(Lru::TwoLists, lruvec, kind, &mut folios, taken, sc);
        assert!(folios.is_empty(), "folios of a batch are neither freed nor on a list");
        self.isolated = folios;
        self.note_cost(lruvec, kind, stat.written, stat.taken - stat.reclaimed);
        stat.reclaimed
    }

    /// Moves up to `n` pages from the cold end of an active list to the inactive one.
    ///
    /// A page that was merely referenced is deactivated all the same: the inactive list is its second chance. Only executable
    /// file pages stay, because a program whose code was paged out can't even wait well. `why` goes into the story.
    #[doc(alias = "shrink_active_list")]
    fn shrink_active(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        n: u64,
        why: Option<Deactivation>,
        sc: &mut ScanControl,
    ) {
        let (kind, node) = (list.kind(), self.mm.lruvecs[lruvec].node);
        self.lru_add_drain();
        let begun = self.out.begin();
        let mut folios = std::mem::take(&mut self.isolated);
        let taken = self.isolate_from(lruvec, list as usize, n, &mut folios, sc);
        self.mm.note_isolated(node, kind, taken, sc);
        self.count_reclaim(lruvec, Stat::Pgrefill, taken, sc);
        let protects_executables = self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.executable_protection;
        let mut rotated = 0;
        for &pfn in &folios {
            if self.mm.memory.folios[pfn].has(FolioFlags::MLOCKED) {
                continue;
            }
            let Referenced { young, executable, .. } = self.folio_referenced(pfn, false);
            let pages = self.mm.memory.folios[pfn].pages();
            if young > 0 && executable && kind == LruType::File && protects_executables {
                rotated += pages;
                self.tell(pfn, |_| PageEvent::KeptActive);
                continue;
            }
            self.tell(pfn, |_| PageEvent::Deactivated { young, why });
            self.mm
                .memory
                .change_use_bits(pfn, |use_bits| (use_bits - UseBits::ACTIVE) | UseBits::WORKINGSET);
            self.count(lruvec, Stat::Pgdeactivate, pages as i64);
        }
        // Kept and deactivated folios alike go to the head of their list in the order in which they were taken.
        for pfn in folios.drain(..) {
            self.put_back(pfn);
        }
        self.isolated = folios;
        self.out.end_aging(begun);
        self.note_cost(lruvec, kind, 0, rotated);
        let priority = sc.priority;
        self.trace(node, |_| Tracepoint::LruShrinkActive {
            kind,
            nr_taken: taken,
            nr_active: rotated,
            nr_deactivated: taken - rotated,
            nr_referenced: rotated,
            priority,
        });
    }
}

impl State {
    /// What speaks for aging the active list of a type, by sizes as of the last statistics flush.
    fn deactivation(&self, lruvec: LruvecId, kind: LruType, forced: bool) -> Deactivation {
        let sizes =
            [LruList::inactive(kind), LruList::active(kind)].map(|list| self.stale(lruvec, list.stat()));
        let refaults = [self.stale(lruvec, ACTIVATE.of(kind)), self.lruvecs[lruvec].refaults[kind as usize]];
        Deactivation::new(forced, refaults, sizes)
    }

    /// Whether a group's anonymous pages are all active and stay so, because the statistics are from before they were.
    pub(crate) fn is_active_list_out_of_reach(&self, memcg: MemcgId) -> bool {
        let lruvecs = || self.lruvecs.pools().map(|pool| self.lruvecs.id(memcg, pool));
        let size = |list: LruList| lruvecs().map(|id| self.lruvecs[id].size(list)).sum::<u64>();
        let is_due = |id: LruvecId| self.deactivation(id, LruType::Anon, false).is_due();
        self.memcgs[memcg].policy.lru == Lru::TwoLists
            && size(LruList::InactiveAnon) == 0
            && size(LruList::ActiveAnon) > 0
            && !lruvecs().any(is_due)
    }

    /// Whether a node would be below its high marks if all of its file pages were free.
    fn is_file_tiny(&self, node: NodeId) -> bool {
        let zones = self.memory.zones.of_node(node);
        let free: u64 = zones.iter().map(Zone::free_pages).sum();
        let high: u64 = zones.iter().map(|zone| zone.mark(Watermark::High)).sum();
        let file = self.node_stat(node, Stat::NrActiveFile) + self.node_stat(node, Stat::NrInactiveFile);
        file.max(0) as u64 + free <= high
    }

    /// Whether a group has too few inactive anonymous pages, by its statistics.
    pub(crate) fn is_inactive_anon_low(&self, lruvec: LruvecId) -> bool {
        self.deactivation(lruvec, LruType::Anon, false).inactive_is_low()
    }

    /// A walk, where the inactive lists have been turned over since the last one.
    fn two_lists_walk(&mut self, lruvec: LruvecId, sc: &ScanControl) -> Option<Walk> {
        if !self.memcgs[self.lruvecs[lruvec].memcg].policy.harvest.page_table_walk {
            return None;
        }
        let inactive: u64 =
            LruType::BOTH.iter().map(|&kind| self.lruvecs[lruvec].size(LruList::inactive(kind))).sum();
        let state = &mut self.lruvecs[lruvec].walk;
        if state.scanned_since < inactive {
            return None;
        }
        state.scanned_since = 0;
        Some(self.walk_begin(lruvec, sc.by.swappiness, false))
    }

    /// Whether the active anonymous list keeps a pass going after all. The policy must allow it, there was nothing else to scan
    /// from the start, and deactivation is forced. If it is not forced yet and the inactive list is empty, the call learns that
    /// something was held back.
    fn forces_active_anon(&self, lruvec: LruvecId, pass: &TwoListsPass, sc: &mut ScanControl) -> bool {
        if !self.memcgs[self.lruvecs[lruvec].memcg].policy.reclaim.force_active_anon
            || pass.remaining[LruList::ActiveAnon as usize] == 0
            || KEEPS_GOING.iter().any(|&list| pass.targets[list as usize] > 0)
        {
            return false;
        }
        sc.skipped_deactivate |= self.lruvecs[lruvec].size(LruList::InactiveAnon) == 0;
        sc.force_deactivate
    }

    /// Hands the use that `two_lists_young` has kept to reclaim, which asks for it once.
    #[cold]
    pub(crate) fn take_use_seen(&mut self, pfn: Pfn) -> bool {
        self.memory.change_use_bits(pfn, |use_bits| use_bits.with_counter(0)).counter() > 0
    }
}

impl TwoListsPass {
    /// The target is reached. Goes on only with the type that has more left, and only as far as keeps the proportion in
    /// which the two were to be scanned; false when nothing is left to do.
    fn trim_to_proportion(&mut self) -> bool {
        let left = |kind: LruType| {
            self.remaining[LruList::inactive(kind) as usize] + self.remaining[LruList::active(kind) as usize]
        };
        let (anon, file) = (left(LruType::Anon), left(LruType::File));
        if anon == 0 || file == 0 {
            return false;
        }
        let (smaller, larger, left) = if file > anon {
            (LruType::Anon, LruType::File, anon)
        } else {
            (LruType::File, LruType::Anon, file)
        };
        let target = self.targets[LruList::inactive(smaller) as usize]
            + self.targets[LruList::active(smaller) as usize]
            + 1;
        let percent_left = left * 100 / target;
        for list in [LruList::inactive(smaller), LruList::active(smaller)] {
            self.remaining[list as usize] = 0;
        }
        for list in [LruList::inactive(larger), LruList::active(larger)] {
            let (target, remaining) = (self.targets[list as usize], &mut self.remaining[list as usize]);
            let done = target - *remaining;
            let goal = target * (100 - percent_left) / 100;
            *remaining = goal - goal.min(done);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_side_is_trimmed_to_the_share_that_the_smaller_one_has_done() {
        let mut pass = TwoListsPass {
            walk: None,
            remaining: [60, 0, 800, 100],
            targets: [99, 0, 1000, 200],
            reclaimed: 40,
        };
        assert!(pass.trim_to_proportion());
        assert_eq!(pass.remaining, [0, 0, 1000 * 40 / 100 - 200, 0]);
        assert!(!pass.trim_to_proportion());
    }
}
