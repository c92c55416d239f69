//! Isolation: a batch of folios is taken off the cold end of an LRU list, so that no other reclaimer finds them while they are judged.
//!
//! A list has folios of all zones of its node. A reclaimer that needs a page of a lower zone (for kernel memory, say, where there is
//! zone Movable) has no use for folios of the zones above. Isolation sets these aside on its way down the list, and puts them back
//! at the hot end. [reclaim 2.5]

use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::{Nominated, page_of};
use crate::memory::folio::{Folio, FolioFlags};
use crate::reclaim::{ScanControl, Why};
use crate::stat::{PGSKIP, Stat};
use crate::state::State;
use crate::story::{Contig, PageEvent, Tracepoint};
use crate::units::{LruType, MemcgId, Pfn};
use pageout_rules::reclaim::ZoneSkip;

/// Pages of other zones that a bounded way down a list passes by (`SWAP_CLUSTER_MAX_SKIPPED`).
const SKIPPED_MAX: u64 = 32 << 10;

/// What of a node is of use to a reclaimer.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// Zones from this rank down.
    first_rank: usize,
    /// Pages of others that it passes by on the way to a batch.
    most: u64,
}

impl Reach {
    /// Returns true if it skips a folio of a zone of this rank, after this many skipped pages.
    pub(crate) fn passes_by(self, passed_by: u64, rank: usize) -> bool {
        passed_by < self.most && rank < self.first_rank
    }
}

/// Folios of other zones that were met on the way to a batch, the coldest first.
struct PassedBy {
    reach: Reach,
    folios: Vec<Pfn>,
    pages: u64,
}

impl Core {
    /// Takes folios of up to `n` pages from the tail of a list, coldest first. Returns the taken pages, and those that were skipped because they are
    /// mapped and may not be unmapped.
    #[doc(alias = "isolate_lru_folios")]
    pub(crate) fn isolate_from(
        &mut self,
        lruvec: LruvecId,
        list: usize,
        n: u64,
        into: &mut Vec<Pfn>,
        sc: &ScanControl,
    ) -> u64 {
        debug_assert!(into.is_empty(), "a batch is isolated while another is in hand");
        let listed = self.mm.lruvecs[lruvec].lists[list].len();
        let active = LruList::EVICTABLE[list].is_active();
        let mut taken = [0; 2];
        let mut passed_by =
            self.mm.out_of_reach(lruvec, sc).map(|reach| PassedBy { reach, folios: Vec::new(), pages: 0 });
        let mut mapped = Vec::new();
        while taken[0] + taken[1] + (mapped.len() as u64) < n {
            let coldest = &mut self.mm.lruvecs[lruvec].lists[list];
            let Some(pfn) = coldest.pop_tail(&mut self.mm.memory.folios).map(Pfn) else { break };
            if let Some(next) = coldest.tail() {
                self.mm.memory.folios.prefetch(Pfn(next));
            }
            if let Some(others) = &mut passed_by
                && others.reach.passes_by(others.pages, self.mm.rank_in(lruvec, pfn))
            {
                others.pages += self.mm.memory.folios[pfn].pages();
                others.folios.push(pfn);
                continue;
            }
            if !sc.means.may_unmap && self.mm.memory.folios[pfn].mapped > 0 {
                mapped.push(pfn);
                continue;
            }
            self.tell(pfn, |_| PageEvent::Isolated);
            debug_assert!(
                self.mm.lruvec_of(pfn) == lruvec,
                "{pfn:?} is on the list of another group or node"
            );
            let folio = &mut self.mm.memory.folios[pfn];
            debug_assert!(folio.has(FolioFlags::LRU), "{pfn:?} is on a list, but is isolated: {folio:?}");
            debug_assert!(
                !folio.has(FolioFlags::UNEVICTABLE),
                "{pfn:?} is on a list, but counts as unevictable"
            );
            folio.clear(FolioFlags::LRU);
            let folio = *folio;
            self.mm.assert_isolated(pfn);
            taken[folio.lru_type() as usize] += folio.pages();
            into.push(pfn);
            self.mm.prefetch_words(&folio);
        }
        self.note_isolation(lruvec, active, taken, into);
        let taken = taken[0] + taken[1];
        let mapped = self.give_back_mapped(lruvec, list, &mapped);
        let skipped = passed_by.map_or(0, |others| self.give_back_passed_by(lruvec, list, others));
        debug_assert_eq!(
            self.mm.lruvecs[lruvec].lists[list].len() + into.len() as u64,
            listed,
            "folios on a list, and those that were taken off it"
        );
        self.mm.assert_counted(lruvec, LruList::EVICTABLE[list]);
        let looked_at = taken + mapped + skipped;
        self.note_looked_at(looked_at, into.len());
        self.trace_isolated(lruvec, LruList::EVICTABLE[list], [n, looked_at, skipped, taken], sc);
        taken + mapped
    }

    /// Takes folios that a guest has nominated, and notes their names. Those that are of no use to the reclaimer are spared.
    pub(super) fn isolate_nominated(
        &mut self,
        lruvec: LruvecId,
        nominated: &mut Nominated,
        n: u64,
        into: &mut Vec<Pfn>,
        sc: &ScanControl,
    ) {
        let reach = self.mm.out_of_reach(lruvec, sc);
        let (mut taken, mut skipped, mut mapped) = ([0; 2], 0, 0);
        let slots = &self.mm.lruvecs[lruvec].guest.as_ref().expect("the LRU is a guest").slots;
        for pfn in nominated.slots.iter().filter_map(|&slot| slots.holder(slot)) {
            self.mm.memory.folios.prefetch(Pfn(pfn));
        }
        for &slot in &nominated.slots {
            let holder = self.mm.guest(lruvec).slots.holder(slot).expect("its slots has checked that");
            let pfn = Pfn(holder);
            let folio = self.mm.memory.folios[pfn];
            let (page, pages) = (page_of(&folio), folio.pages());
            nominated.names.push(page);
            let is_out_of_reach =
                reach.is_some_and(|reach| reach.passes_by(skipped, self.mm.rank_in(lruvec, pfn)));
            if is_out_of_reach {
                skipped += pages;
                self.mm.note_skipped(lruvec, self.mm.rank_in(lruvec, pfn), pages);
            } else if !sc.means.may_unmap && folio.mapped > 0 {
                mapped += pages;
            } else {
                if self.is_telling()
                    && let Some(why) = self.mm.guest(lruvec).slots.policy().why(slot)
                {
                    self.tell(pfn, |_| PageEvent::Nominated { why });
                }
                self.tell(pfn, |_| PageEvent::Isolated);
                self.mm.memory.folios[pfn].clear(FolioFlags::LRU);
                taken[folio.lru_type() as usize] += pages;
                into.push(pfn);
                self.mm.prefetch_words(&folio);
                continue;
            }
            self.guest_spare(lruvec, slot, page);
        }
        self.note_isolation(lruvec, false, taken, into);
        let list =
            LruList::inactive(if taken[LruType::File as usize] > 0 { LruType::File } else { LruType::Anon });
        let taken: u64 = taken.iter().sum();
        let looked_at = taken + mapped + skipped;
        self.note_looked_at(looked_at, into.len());
        self.trace_isolated(lruvec, list, [n, looked_at, skipped, taken], sc);
    }

    /// Folios were taken off lists, this many pages of each type: they are not counted there any more.
    #[inline]
    pub(crate) fn note_isolation(&mut self, lruvec: LruvecId, active: bool, taken: [u64; 2], folios: &[Pfn]) {
        let sizes = |core: &Core| {
            let of = &core.mm.lruvecs[lruvec];
            (LruType::BOTH.map(|kind| of.size(LruList::new(kind, active))), of.evictable())
        };
        let before = cfg!(debug_assertions).then(|| sizes(self));
        for kind in LruType::BOTH {
            if taken[kind as usize] > 0 {
                self.update_size(lruvec, LruList::new(kind, active), -(taken[kind as usize] as i64));
            }
        }
        debug_assert_eq!(
            Some(sizes(self)),
            before.map(|(of, all)| ([of[0] - taken[0], of[1] - taken[1]], all - taken[0] - taken[1])),
            "pages that are taken are not counted any more, and no others"
        );
        if !self.mm.lruvecs[lruvec].by_zone.is_empty() {
            for &pfn in folios {
                let folio = &self.mm.memory.folios[pfn];
                let (gauge, pages) = (LruList::new(folio.lru_type(), active), folio.pages() as i64);
                self.mm.count_in_zone(lruvec, gauge, pfn, -pages);
            }
        }
    }

    /// Reclaim has scanned this many pages, and taken this many folios.
    #[inline]
    pub(crate) fn note_looked_at(&mut self, pages: u64, folios: usize) {
        self.out.count.scanned(pages);
        self.looked_at += pages;
        self.out.count.list_moves(folios as u64);
    }

    /// Puts pages of other zones back at the hot end of their list, so that the next reclaimer is not in their way; says how many.
    fn give_back_passed_by(&mut self, lruvec: LruvecId, list: usize, others: PassedBy) -> u64 {
        for &pfn in &others.folios {
            debug_assert!(
                self.mm.memory.folios[pfn].has(FolioFlags::LRU),
                "{pfn:?} was skipped, but is isolated"
            );
            self.mm.lruvecs[lruvec].lists[list].push_head(&mut self.mm.memory.folios, pfn.0);
            self.mm.note_skipped(lruvec, self.mm.rank_in(lruvec, pfn), self.mm.memory.folios[pfn].pages());
        }
        self.out.count.list_moves(others.folios.len() as u64);
        others.pages
    }

    /// Puts pages that may not be unmapped back at the hot end of their list, likewise; says how many.
    fn give_back_mapped(&mut self, lruvec: LruvecId, list: usize, folios: &[Pfn]) -> u64 {
        for &pfn in folios {
            debug_assert!(
                self.mm.memory.folios[pfn].mapped > 0,
                "{pfn:?} was skipped as mapped, but is not mapped"
            );
            self.mm.lruvecs[lruvec].lists[list].push_head(&mut self.mm.memory.folios, pfn.0);
        }
        self.out.count.list_moves(folios.len() as u64);
        folios.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum()
    }

    /// Pages were taken off a list: wanted, looked at, passed by, taken.
    #[inline]
    pub(crate) fn trace_isolated(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        pages: [u64; 4],
        sc: &ScanControl,
    ) {
        self.trace_isolated_blocks(lruvec, list, pages, Contig::default(), sc);
    }

    /// Traces an isolation where blocks around the pages were taken, too.
    #[inline]
    pub(crate) fn trace_isolated_blocks(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        [nr_requested, nr_scanned, nr_skipped, nr_taken]: [u64; 4],
        contig: Contig,
        sc: &ScanControl,
    ) {
        let (zone, order) = (sc.by.class, sc.by.order);
        let (kind, is_active) = (list.kind(), list.is_active());
        self.trace(self.mm.lruvecs[lruvec].node, |_| Tracepoint::LruIsolate {
            zone,
            order,
            nr_requested,
            nr_scanned,
            nr_skipped,
            nr_taken,
            kind,
            is_active,
            is_of_group: sc.by.target != MemcgId::ROOT,
            contig,
        });
    }

    /// Counts scanned pages, by reclaimer and by type.
    pub(crate) fn count_scanned(&mut self, lruvec: LruvecId, by_type: Stat, pages: u64, sc: &ScanControl) {
        let reclaimer = match sc.by.why {
            Why::Kswapd => Stat::PgscanKswapd,
            _ if self.mm.is_counted_proactive(lruvec, sc) => Stat::PgscanProactive,
            _ => Stat::PgscanDirect,
        };
        self.count_judged(lruvec, [reclaimer, by_type], pages, sc);
    }

    /// Counts reclaimed pages, likewise.
    pub(crate) fn count_stolen(&mut self, lruvec: LruvecId, by_type: Stat, pages: u64, sc: &ScanControl) {
        let reclaimer = match sc.by.why {
            Why::Kswapd => Stat::PgstealKswapd,
            _ if self.mm.is_counted_proactive(lruvec, sc) => Stat::PgstealProactive,
            _ => Stat::PgstealDirect,
        };
        self.count_judged(lruvec, [reclaimer, by_type], pages, sc);
    }

    /// Counts pages by reclaimer and by type.
    fn count_judged(
        &mut self,
        lruvec: LruvecId,
        [reclaimer, by_type]: [Stat; 2],
        pages: u64,
        sc: &ScanControl,
    ) {
        let local = |core: &Core| core.mm.lruvecs[lruvec].stat_local[reclaimer as usize];
        let node = self.mm.lruvecs[lruvec].node;
        let before = (local(self), self.mm.node_stat(node, by_type));
        self.count_reclaim(lruvec, reclaimer, pages, sc);
        self.mm.count_node(node, by_type, pages as i64);
        debug_assert_eq!(
            (local(self), self.mm.node_stat(node, by_type)),
            (before.0 + pages as i64, before.1 + pages as i64),
            "{} of a group, and {} of its node",
            reclaimer.name(),
            by_type.name()
        );
    }

    /// Counts in `memory.stat`; in `/proc/vmstat` only what is reclaimed for the whole machine, and not for a group. [reclaim-6.12 2.6]
    pub(crate) fn count_reclaim(&mut self, lruvec: LruvecId, stat: Stat, pages: u64, sc: &ScanControl) {
        if sc.by.is_global() || self.mm.memcgs[sc.by.target].policy.reclaim.machine_counts {
            self.count(lruvec, stat, pages as i64);
        } else {
            self.count_memcg(lruvec, stat, pages as i64);
        }
    }
}

impl State {
    /// The zones of an lruvec's node that are of no use to a reclaimer. `None`: all are of use.
    pub(crate) fn out_of_reach(&self, lruvec: LruvecId, sc: &ScanControl) -> Option<Reach> {
        let first_rank = self.first_rank_in_reach(lruvec, sc);
        let rule = self.memcgs[sc.by.target].policy.reclaim.zone_skip;
        let most = if rule == ZoneSkip::Bounded { SKIPPED_MAX } else { u64::MAX };
        (first_rank > 0).then_some(Reach { first_rank, most })
    }

    /// From the highest zone of an lruvec's node down, the first that is of use to a reclaimer. Where none is, it has come for the node's
    /// memory as a whole.
    pub(crate) fn first_rank_in_reach(&self, lruvec: LruvecId, sc: &ScanControl) -> usize {
        let of = &self.lruvecs[lruvec];
        match of.zones() {
            1 => 0,
            _ => self.memory.zones.first_rank(of.node, sc.by.class).unwrap_or(0),
        }
    }

    /// Pages of a zone of this rank were passed by.
    pub(crate) fn note_skipped(&mut self, lruvec: LruvecId, rank: usize, pages: u64) {
        let node = self.lruvecs[lruvec].node;
        let zone = self.memory.zones.of_node(node)[rank].kind;
        self.count_node(node, PGSKIP[zone as usize], pages as i64);
    }

    /// Prefetches a folio's words in its index and page table. The cache misses of judging the batch then overlap with each other and with those of
    /// the walk down the list.
    #[inline]
    pub(crate) fn prefetch_words(&self, folio: &Folio) {
        if folio.mapped > 0 {
            let (mm, page) = self.rmap_entry(folio, 0);
            self.memory.mm(mm).table.prefetch(page);
        }
        if folio.has(FolioFlags::INDEXED) {
            self.memory.files[folio.owner as usize].index.prefetch(folio.index.into());
        }
    }

    fn is_counted_proactive(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        sc.by.why == Why::Requested && self.memcgs[self.lruvecs[lruvec].memcg].policy.proactive_counters
    }
}
