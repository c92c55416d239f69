//! Isolation: taking a batch off the cold end of a list, so that nobody else finds its folios while they are judged.

use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::{Folio, FolioFlags};
use crate::reclaim::{ScanControl, Why};
use crate::stat::Stat;
use crate::story::{Contig, PageEvent, Tracepoint};
use crate::units::{LruType, MemcgId, Pfn};

impl Core {
    /// Takes folios of up to `n` pages from the tail of a list, coldest first; returns the pages taken.
    pub(crate) fn isolate_from(
        &mut self,
        lruvec: LruvecId,
        list: usize,
        n: u64,
        into: &mut Vec<Pfn>,
        sc: &ScanControl,
    ) -> u64 {
        debug_assert!(into.is_empty());
        let active = LruList::EVICTABLE[list].is_active();
        let mut taken = [0; 2];
        while taken[0] + taken[1] < n {
            let coldest = &mut self.lruvecs[lruvec].lists[list];
            let Some(pfn) = coldest.pop_tail(&mut self.memory.folios).map(Pfn) else { break };
            if let Some(next) = coldest.tail() {
                self.memory.folios.prefetch(Pfn(next));
            }
            self.tell(pfn, |_| PageEvent::Isolated);
            let folio = &mut self.memory.folios[pfn];
            folio.clear(FolioFlags::LRU);
            let folio = *folio;
            taken[folio.lru_type() as usize] += folio.pages();
            into.push(pfn);
            self.prefetch_words(&folio);
        }
        for kind in LruType::BOTH {
            if taken[kind as usize] > 0 {
                self.update_size(lruvec, LruList::new(kind, active), -(taken[kind as usize] as i64));
            }
        }
        let taken = taken[0] + taken[1];
        self.rare_work().scanned += taken;
        self.looked_at += taken;
        self.work.list_moves += into.len() as u64;
        self.trace_isolated(lruvec, LruList::EVICTABLE[list], [n, taken, taken], sc);
        taken
    }

    /// Pages were taken off a list: wanted, looked at, taken.
    #[inline]
    pub(crate) fn trace_isolated(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        pages: [u64; 3],
        sc: &ScanControl,
    ) {
        self.trace_isolated_blocks(lruvec, list, pages, Contig::default(), sc);
    }

    /// The same where blocks around them were taken, too.
    #[inline]
    pub(crate) fn trace_isolated_blocks(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        [nr_requested, nr_scanned, nr_taken]: [u64; 3],
        contig: Contig,
        sc: &ScanControl,
    ) {
        let (zone, order) = (sc.by.class, sc.by.order);
        let (kind, is_active, nr_skipped) = (list.kind(), list.is_active(), 0);
        self.trace(self.lruvecs[lruvec].node, |_| Tracepoint::LruIsolate {
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

    /// Asks for a folio's words in its index and page table, so that the cache misses that judging the batch would take one
    /// after the other overlap with each other and with those of the walk down the list.
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

    /// Counts scanned pages, by reclaimer and by type.
    pub(crate) fn count_scanned(&mut self, lruvec: LruvecId, by_type: Stat, pages: u64, sc: &ScanControl) {
        let reclaimer = match sc.by.why {
            Why::Kswapd => Stat::PgscanKswapd,
            _ if self.is_counted_proactive(lruvec, sc) => Stat::PgscanProactive,
            _ => Stat::PgscanDirect,
        };
        self.count_reclaim(lruvec, reclaimer, pages, sc);
        self.count_node(self.lruvecs[lruvec].node, by_type, pages as i64);
    }

    /// Counts reclaimed pages, likewise.
    pub(crate) fn count_stolen(&mut self, lruvec: LruvecId, by_type: Stat, pages: u64, sc: &ScanControl) {
        let reclaimer = match sc.by.why {
            Why::Kswapd => Stat::PgstealKswapd,
            _ if self.is_counted_proactive(lruvec, sc) => Stat::PgstealProactive,
            _ => Stat::PgstealDirect,
        };
        self.count_reclaim(lruvec, reclaimer, pages, sc);
        self.count_node(self.lruvecs[lruvec].node, by_type, pages as i64);
    }

    /// Counts in `memory.stat`; in `/proc/vmstat` only what is reclaimed for the whole machine, and not for a group. [6.12 2.6]
    pub(crate) fn count_reclaim(&mut self, lruvec: LruvecId, stat: Stat, pages: u64, sc: &ScanControl) {
        if sc.by.is_global() || self.memcgs[sc.by.target].policy.reclaim.machine_counts {
            self.count(lruvec, stat, pages as i64);
        } else {
            self.count_memcg(lruvec, stat, pages as i64);
        }
    }

    fn is_counted_proactive(&self, lruvec: LruvecId, sc: &ScanControl) -> bool {
        sc.by.why == Why::Requested && self.memcgs[self.lruvecs[lruvec].memcg].policy.proactive_counters
    }
}
