//! The address space of a process as a kdamond sees it. [access-aware 1.3, 1.7, 2.2]
//!
//! One entry of one page table is asked, where physical memory asks all mappings. Page cache that no mapping shows is not seen.
//!
//! Differences: mappings here lie side by side, so most processes have no two gaps; all of their mappings are then one range. In Linux they are code,
//! heap and stack with gaps between, and a process without two gaps has no region. A scheme that would take a part of a large folio leaves all of it.

use super::action::{Acting, FOLIOS_PER_STEP, FRAMES_PER_STEP};
use super::flags::Look;
use crate::core::Core;
use crate::memory::folio::UseBits;
use crate::state::State;
use crate::units::{MmId, NodeId, PAGE_SIZE, Pfn};
use pageout_damon::{Action, Range, ops_passes, three_ranges};

impl Core {
    /// The folio that a page of an address space shows.
    fn damon_entry(&mut self, look: Look, mm: MmId, page: u64) -> Option<Pfn> {
        self.count_damon_page(look);
        let table = &self.mm.memory.mm(mm).table;
        let word = if page < table.pages() { table.word_if_any(page) } else { return None };
        (word.is_present() && !word.is_zero_page()).then(|| word.pfn())
    }

    /// Clears the accessed bit of an entry, and makes its folio idle.
    pub(super) fn damon_make_entry_old(&mut self, mm: MmId, address: u64) {
        let page = address / PAGE_SIZE;
        let Some(pfn) = self.damon_entry(Look::Sample, mm, page) else { return };
        let table = &mut self.mm.memory.mm_mut(mm).table;
        let was_young = table.is_entry_young(page);
        if was_young {
            table.clear_entry_young(page);
        }
        self.mm.damon.has_flags = true;
        self.mm.memory.set_idle(pfn, was_young);
    }

    /// Returns true if a page was accessed since it was made old.
    pub(super) fn damon_is_entry_young(&mut self, mm: MmId, address: u64) -> bool {
        let page = address / PAGE_SIZE;
        let Some(pfn) = self.damon_entry(Look::Sample, mm, page) else { return false };
        self.mm.memory.mm(mm).table.is_entry_young(page) || !self.mm.memory.is_idle(pfn)
    }

    /// Goes on with an action on a range of an address space. Returns true when the range is done.
    pub(super) fn damos_process_step(&mut self, acting: &mut Acting, mm: MmId) -> bool {
        // An action that is a call of madvise asks no filter by folio.
        let is_advice = matches!(acting.action, Action::Pageout | Action::Cold);
        let (mut taken, mut entries): (Vec<Pfn>, u64) = (Vec::new(), 0);
        while acting.at < acting.end && entries < FRAMES_PER_STEP && taken.len() < FOLIOS_PER_STEP {
            entries += 1;
            let page = acting.at / PAGE_SIZE;
            acting.at += PAGE_SIZE;
            let Some(pfn) = self.damon_entry(Look::Scheme, mm, page) else { continue };
            let word = self.mm.memory.mm(mm).table.word_if_any(page);
            let (folio, first) = (self.mm.memory.folios[pfn], word.head(page));
            let last = first + folio.pages();
            // The walk goes on behind the folio, which may have begun before the range.
            acting.at = acting.at.max(last * PAGE_SIZE);
            let is_whole = acting.start <= first * PAGE_SIZE && last * PAGE_SIZE <= acting.end;
            let is_shared = u64::from(folio.mapped) != folio.pages();
            if is_advice && (is_shared || !is_whole) {
                continue;
            }
            if !is_advice {
                let (order, filters) = (acting.filter_order, std::mem::take(&mut acting.filters));
                let passes = ops_passes(order, &filters, |filter| self.damos_matches(filter, pfn));
                acting.filters = filters;
                if !passes {
                    continue;
                }
                acting.applied.passed_bytes += folio.pages() * PAGE_SIZE;
            }
            match acting.action {
                Action::MigrateHot(to) | Action::MigrateCold(to) if folio.node == NodeId(to) => {}
                Action::MigrateHot(_) | Action::MigrateCold(_) => taken.push(pfn),
                Action::Pageout => {
                    self.damos_forget_use(pfn);
                    taken.push(pfn);
                }
                Action::Cold => {
                    self.mm.memory.mm_mut(mm).table.clear_entry_young(page);
                    self.damos_forget_use(pfn);
                    self.lru_deactivate(pfn);
                }
                Action::Stat | Action::LruPrio | Action::LruDeprio => {}
            }
        }
        let moved = self.damos_take(acting.action, taken, mm);
        if matches!(acting.action, Action::MigrateHot(_) | Action::MigrateCold(_)) {
            acting.applied.bytes += moved * PAGE_SIZE;
        }
        let is_done = acting.at >= acting.end;
        if is_done && is_advice {
            // The call has returned 0, so all of its range counts.
            acting.applied.bytes = acting.end - acting.start;
        }
        is_done
    }

    fn damos_take(&mut self, action: Action, taken: Vec<Pfn>, mm: MmId) -> u64 {
        match action {
            Action::MigrateHot(to) | Action::MigrateCold(to) => self.migrate_for_scheme(taken, NodeId(to)),
            _ => {
                let memcg = self.mm.memory.mm(mm).memcg;
                let ignores_use = !self.mm.config.policy.machine.damon.pageout_references;
                self.reclaim_pages(memcg, taken, ignores_use)
            }
        }
    }

    /// A folio loses the record of its use.
    pub(crate) fn damos_forget_use(&mut self, pfn: Pfn) {
        self.mm.memory.remove_use(pfn, UseBits::REFERENCED);
        let _ = self.mm.memory.take_seen_young(pfn);
    }
}

impl State {
    /// The ranges of an address space: three of them, without the two largest gaps, or one with all of its mappings.
    pub(super) fn ranges_of_process(&self, mm: MmId) -> Vec<Range> {
        let mapped = self.memory.mm(mm).vmas.iter().filter(|vma| vma.mapped);
        let mut mappings: Vec<Range> =
            mapped.map(|vma| vma.start * PAGE_SIZE..(vma.start + vma.pages) * PAGE_SIZE).collect();
        mappings.sort_by_key(|mapping| mapping.start);
        match three_ranges(&mappings) {
            Some(ranges) => ranges.into(),
            None => mappings.first().zip(mappings.last()).map(|(a, z)| a.start..z.end).into_iter().collect(),
        }
    }
}
