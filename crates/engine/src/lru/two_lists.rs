//! The classic LRU: an active and an inactive list for each type of memory.
//!
//! ```text
//!   new pages ─► head [ inactive ] tail ─► reclaim        a page accessed twice while inactive, or refaulting soon
//!                   ▲      │ activate                     enough (`workingset/distance.rs`), becomes active
//!        deactivate │      ▼
//!   active list aged ◄─ tail [ active ] head              active pages age only while the inactive list is too short
//! ```
//! A pass over an lruvec takes from each list the number of pages that the balance sets. It takes 32 folios of each list per round, so
//! that the types are drained side by side rather than one after the other. Rotation is the second chance: reclaim never compares two
//! pages. It only checks whether each page was referenced since its last check. [reclaim 2.2 to 2.8; reclaim-6.12 2.3, 2.4, 2.6, 2.7]
//!
//! **A guest of reclaim.** The code here sees one lruvec, through a view, and calls no other part. It returns how many pages of each list
//! reclaim judges or ages next ([`Ask`]), and the meaning of a reference. Reclaim (`reclaim/shrink_lruvec.rs`) takes the batch, finds the
//! references, frees the pages that it can, and reports the result.
//!
//! **With a page-table walk**, which Linux does not do here: once the inactive lists have turned over since the last walk, the next pass
//! begins with a walk. So a walk visits each page once while the page is inactive. A walk touches no list. If it or a look-around finds a
//! page young, that counts as a use, kept with the folio until reclaim asks. One use gives the page the same extra round as the accessed
//! bit would, two uses a place on the active list.
//!
//! Neighbours: `balance` (how much of each type), `harvest` (was it referenced), `reclaim/shrink_list.rs` (the verdict on each inactive
//! folio). *When not to use it:* if a working set is a little larger than memory and read in a loop, it keeps nothing of it.

use super::view::{LruvecView, LruvecViewMut};
use super::{Arrival, FolioReferences, PlaceRule};
use crate::accessed::Referenced;
use crate::lru::lruvec::LruList;
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::stat::{ACTIVATE, ByType, Stat};
use crate::story::{Because, PageEvent};
use crate::units::{LruType, PAGE_SHIFT, Pfn};

/// The lists that keep a pass going as long as pages of them are left to scan.
const KEEPS_GOING: [LruList; 3] = [LruList::InactiveAnon, LruList::ActiveFile, LruList::InactiveFile];

/// The reasons why an active list is aged: one of three is enough.
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
    /// The maximum ratio of active to inactive pages.
    pub ratio: u64,
}

impl Deactivation {
    fn new(forced: bool, refaults: [u64; 2], [inactive, active]: [u64; 2]) -> Deactivation {
        let gib = (inactive + active) >> (30 - PAGE_SHIFT);
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        Deactivation { forced, refaults, inactive, active, ratio }
    }

    /// What speaks for aging the active list of a type, by sizes as of the last statistics flush.
    pub(crate) fn of(view: LruvecView, kind: LruType, forced: bool) -> Deactivation {
        let sizes = [LruList::inactive(kind), LruList::active(kind)].map(|list| view.stale(list.stat()));
        let refaults = [view.stale(ACTIVATE.of(kind)), view.lruvec().refaults[kind as usize]];
        Deactivation::new(forced, refaults, sizes)
    }

    /// The same from unchanged numbers: inactive and active pages of the type, and activations by refaults.
    pub(crate) fn live(view: LruvecView, kind: LruType, forced: bool, numbers: [u64; 3]) -> Deactivation {
        let [inactive, active, refaults] = numbers;
        let before = view.lruvec().refaults_live[kind as usize];
        Deactivation::new(forced, [refaults, before], [inactive, active])
    }

    /// The inactive list is too short to give its pages a fair chance of a second access. The larger the memory, the smaller the
    /// share that needs to be inactive, because the list lasts longer.
    pub fn inactive_is_low(&self) -> bool {
        self.inactive * self.ratio < self.active
    }

    /// Returns true if the list is to be aged.
    pub fn is_due(&self) -> bool {
        self.forced || self.refaults[0] != self.refaults[1] || self.inactive_is_low()
    }
}

/// Which active lists a call's passes age.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AgingPlan {
    /// By type: whether active pages may move to the inactive list.
    pub(crate) may_deactivate: [bool; 2],
    /// The numbers behind that decision, where the target's LRU had to make one.
    pub(crate) why: [Option<Deactivation>; 2],
    /// They are aged whatever the numbers say: nothing else has helped.
    pub(crate) is_forced: bool,
    /// A pass has left an active list alone.
    pub(crate) has_skipped: bool,
}

impl AgingPlan {
    /// Decides by the target's lruvec whether active pages may be aged. They may if the inactive list is short, or if refaults since the
    /// last cycle show that some inactive pages should replace some active ones.
    pub(crate) fn decide(&mut self, target: LruvecView) {
        for kind in LruType::BOTH {
            let why = Deactivation::of(target, kind, self.is_forced);
            self.may_deactivate[kind as usize] = why.is_due();
            self.why[kind as usize] = Some(why);
        }
    }

    /// Both may be aged: the target's LRU has no opinion.
    pub(crate) fn allow(&mut self) {
        (self.may_deactivate, self.why) = ([true; 2], [None; 2]);
    }
}

/// What a pass knows of the call that it is made for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// Pages to look at in one go.
    pub(crate) batch: u64,
    /// Pages to reclaim.
    pub(crate) pages: u64,
    /// At its first priority, reclaim for the whole machine goes on to the end of its small share, so that each group gives
    /// something. Reclaim for a group stops when it has enough.
    pub(crate) is_proportional: bool,
    /// A signal ends it.
    pub(crate) is_interrupted: bool,
}

/// The next work of the core for a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Judge up to `n` pages from the cold end of an inactive list, free what it can, and say how many ([`TwoListsPass::judged`]).
    Shrink { list: LruList, n: u64 },
    /// Look whether up to `n` pages from the cold end of an active list are in use ([`stays_active`]), and put them back.
    Age { list: LruList, n: u64, why: Option<Deactivation> },
    /// The round is over: others may run before the next.
    Rest,
    /// The pass is over.
    End,
}

/// What is left to do of a pass. Unit: pages.
pub(crate) struct TwoListsPass {
    /// To scan at the start, by list.
    targets: [u64; 4],
    /// Still to scan.
    remaining: [u64; 4],
    reclaimed: u64,
    /// The list whose turn it is in the present round.
    turn: usize,
}

impl TwoListsPass {
    /// Returns a pass that scans `targets` pages of each list.
    pub(crate) fn new(targets: [u64; 4]) -> TwoListsPass {
        TwoListsPass { targets, remaining: targets, reclaimed: 0, turn: 0 }
    }

    /// Returns the number of pages that this pass has reclaimed.
    pub(crate) fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    /// The next thing to do. A round takes up to a batch from each list.
    pub(crate) fn ask(&mut self, view: LruvecView, plan: &mut AgingPlan, wanted: Wanted) -> Ask {
        if self.turn == 0 {
            // The active anonymous list alone doesn't keep a pass going: nothing would be reclaimed.
            let is_over = KEEPS_GOING.iter().all(|&list| self.remaining[list as usize] == 0);
            if is_over && !self.forces_active_anon(view, plan) {
                return Ask::End;
            }
        }
        while let Some(&list) = LruList::EVICTABLE.get(self.turn) {
            self.turn += 1;
            let (n, kind) = (self.remaining[list as usize].min(wanted.batch), list.kind() as usize);
            if n == 0 {
                continue;
            }
            self.remaining[list as usize] -= n;
            if !list.is_active() {
                return Ask::Shrink { list, n };
            }
            if plan.may_deactivate[kind] {
                return Ask::Age { list, n, why: plan.why[kind] };
            }
            plan.has_skipped = true;
        }
        self.turn = 0;
        let has_enough = self.reclaimed >= wanted.pages && !wanted.is_proportional;
        if wanted.is_interrupted || has_enough && !self.trim_to_proportion() { Ask::End } else { Ask::Rest }
    }

    /// The request for an inactive list is done: `reclaimed` pages were reclaimed.
    pub(crate) fn judged(&mut self, reclaimed: u64) {
        self.reclaimed += reclaimed;
    }

    /// The reclaimer has to wait with the folios that it has isolated: the next round begins with the first list.
    pub(crate) fn break_round(&mut self) {
        self.turn = 0;
    }

    /// The reclaimer has to wait before it may take what was asked of a list: that is left to the next round.
    pub(crate) fn put_off(&mut self, list: LruList, n: u64) {
        self.remaining[list as usize] += n;
        self.break_round();
    }

    /// Returns true if the active anonymous list keeps a pass going after all. The policy must allow it, there was nothing else to scan
    /// from the start, and deactivation is forced. If it is not forced yet and the inactive list is empty, the call learns that
    /// something was held back.
    fn forces_active_anon(&self, view: LruvecView, plan: &mut AgingPlan) -> bool {
        if !view.rules().reclaim.force_active_anon
            || self.remaining[LruList::ActiveAnon as usize] == 0
            || KEEPS_GOING.iter().any(|&list| self.targets[list as usize] > 0)
        {
            return false;
        }
        plan.has_skipped |= view.lruvec().size(LruList::InactiveAnon) == 0;
        plan.is_forced
    }

    /// The target is reached. The pass continues only with the type that has more left, and only as far as this keeps the proportion in
    /// which the two types were to be scanned. Returns false when nothing is left to do.
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

/// Returns whether a pass must begin with a walk of page tables: the inactive lists have been turned over since the last one.
pub(crate) fn wants_walk(view: LruvecView) -> bool {
    let lruvec = view.lruvec();
    let inactive = || LruType::BOTH.iter().map(|&kind| lruvec.size(LruList::inactive(kind))).sum::<u64>();
    view.rules().harvest.page_table_walk && lruvec.walk.scanned_since >= inactive()
}

/// The list of the two that a folio's use bits put it on.
#[inline(always)]
pub(crate) fn list_of(folio: &Folio, use_bits: UseBits) -> LruList {
    LruList::new(folio.lru_type(), use_bits.contains(UseBits::ACTIVE))
}

/// Puts a folio that is on no list on the one that its ACTIVE bit names.
#[inline(always)]
pub(crate) fn place(view: &mut LruvecViewMut, pfn: Pfn, folio: &Folio, arrival: Arrival) -> PlaceRule {
    let list = list_of(folio, view.use_bits_of(folio));
    match arrival {
        Arrival::Added | Arrival::PutBack => view.push_head(list, pfn, folio.pages()),
        Arrival::Rotated => view.push_tail(list, pfn, folio.pages()),
    }
    PlaceRule::ByState
}

/// Takes a folio off the list that it is on.
#[inline]
pub(crate) fn unlink(view: &mut LruvecViewMut, pfn: Pfn, folio: &Folio) {
    let list = list_of(folio, view.use_bits_of(folio));
    view.remove(list, pfn, folio.pages());
}

/// The page of a type that is most likely to be taken next.
#[inline]
pub(crate) fn coldest(view: LruvecView, kind: LruType) -> Option<Pfn> {
    tails(view, kind)[0]
}

/// The tails of the inactive and of the active list of a type.
#[inline]
pub(crate) fn tails(view: LruvecView, kind: LruType) -> [Option<Pfn>; 2] {
    [LruList::inactive(kind), LruList::active(kind)]
        .map(|list| view.lruvec().lists[list as usize].tail().map(Pfn))
}

/// An access through a file descriptor: the first of a page sets REFERENCED, the second activates it. A page that is read once thus
/// never pushes out one that is used again. Whether the page is asked to become active, which advances the age of nonresident ones: a
/// folio can be queued twice and ages twice, although it moves once. [reclaim-6.12 1.2]
#[inline(always)]
pub(crate) fn accessed(view: &mut LruvecViewMut, pfn: Pfn) -> bool {
    let before = view.change_use_bits(pfn, |use_bits| use_bits | UseBits::REFERENCED);
    if !before.contains(UseBits::REFERENCED)
        || before.contains(UseBits::ACTIVE)
        || view.folio(pfn).has(FolioFlags::UNEVICTABLE)
    {
        return false;
    }
    view.tell_second_access(pfn);
    if view.folio(pfn).has(FolioFlags::LRU) {
        view.activate(pfn);
    } else if view.is_in_add_batch(pfn) {
        // Not on a list yet: it will enter on the right one. This is no `pgactivate`.
        view.change_use_bits(pfn, |use_bits| use_bits | UseBits::ACTIVE);
    }
    view.change_use_bits(pfn, |use_bits| use_bits - UseBits::REFERENCED);
    true
}

/// A walk or a look-around found an entry that maps the folio young, and cleared it. The use is kept in the counter, which
/// two lists don't need otherwise. A second use activates.
pub(crate) fn found_young(view: &mut LruvecViewMut, pfn: Pfn) {
    let use_bits = view.use_bits_of(&view.folio(pfn));
    let is_second = use_bits.counter() > 0 || use_bits.contains(UseBits::REFERENCED);
    if is_second && !use_bits.contains(UseBits::ACTIVE) {
        view.change_use_bits(pfn, |use_bits| (use_bits - UseBits::REFERENCED).with_counter(0));
        view.activate(pfn);
    } else {
        view.change_use_bits(pfn, |use_bits| use_bits.with_counter(1));
    }
}

/// Hands the use that [`found_young`] has kept to reclaim, which asks for it once.
#[cold]
pub(crate) fn take_use_seen(view: &mut LruvecViewMut, pfn: Pfn) -> bool {
    view.change_use_bits(pfn, |use_bits| use_bits.with_counter(0)).counter() > 0
}

/// One access through a mapping gives a page another round. Two accesses (two rounds running, or two mappings) give it a place on the
/// active list. A page that is mapped once and touched once is not better than one read once. Executable file pages need only one access.
pub(crate) fn referenced(view: &mut LruvecViewMut, pfn: Pfn, referenced: Referenced) -> FolioReferences {
    let folio = view.folio(pfn);
    let (kind, use_bits) = (folio.lru_type(), view.use_bits_of(&folio));
    let (was_referenced, is_young) = (use_bits.contains(UseBits::REFERENCED), referenced.young > 0);
    if was_referenced != is_young {
        view.change_use_bits(pfn, |use_bits| match is_young {
            true => use_bits | UseBits::REFERENCED,
            false => use_bits - UseBits::REFERENCED,
        });
    }
    if is_young {
        let protects_executables = view.read().rules().executable_protection;
        let executable = referenced.executable && protects_executables && kind == LruType::File;
        let because = Because::Used { young: referenced.young, was_referenced, executable };
        return match was_referenced || referenced.young > 1 || executable {
            true => FolioReferences::Activate(because),
            false => FolioReferences::Keep(because),
        };
    }
    if was_referenced && kind == LruType::File && view.read().rules().reclaim.clean_only {
        return FolioReferences::ReclaimClean;
    }
    FolioReferences::Reclaim
}

/// An active page is to be aged, with the references found: whether it stays active; else it is inactive from now on, and `why` goes into
/// the story.
///
/// A page that was merely referenced is deactivated all the same: the inactive list is its second chance. Only executable
/// file pages stay, because a program whose code was paged out can't even wait well.
pub(crate) fn stays_active(
    view: &mut LruvecViewMut,
    pfn: Pfn,
    Referenced { young, executable, .. }: Referenced,
    why: Option<Deactivation>,
) -> bool {
    let folio = view.folio(pfn);
    let is_code = young > 0 && executable && folio.lru_type() == LruType::File;
    if is_code && view.read().rules().executable_protection {
        view.tell(pfn, || PageEvent::KeptActive);
        return true;
    }
    view.tell(pfn, || PageEvent::Deactivated { young, why });
    view.change_use_bits(pfn, |use_bits| (use_bits - UseBits::ACTIVE) | UseBits::WORKINGSET);
    view.count(Stat::Pgdeactivate, folio.pages());
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_side_is_trimmed_to_the_share_that_the_smaller_one_has_done() {
        let mut pass = TwoListsPass {
            targets: [99, 0, 1000, 200],
            remaining: [60, 0, 800, 100],
            reclaimed: 40,
            turn: 0,
        };
        assert!(pass.trim_to_proportion());
        assert_eq!(pass.remaining, [0, 0, 1000 * 40 / 100 - 200, 0]);
        assert!(!pass.trim_to_proportion());
    }
}
