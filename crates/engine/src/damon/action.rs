//! Actions of schemes on the folios of a region, a batch per step. [access-aware 2.2, 2.6]

use super::flags::Look;
use super::paddr::frame_of;
use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::memory::folio::UseBits;
use crate::units::{MemcgId, MmId, NodeId, PAGE_SIZE, Pfn};
use pageout_damon::{Action, Applied, Apply, Filter, FilterOrder, OpsFilter, SchemeSpec, ops_passes};
use pageout_rules::damon::LruPrio;

/// Frames that one step looks at.
pub(super) const FRAMES_PER_STEP: u64 = 512;
/// Folios that one step reclaims or migrates.
pub(super) const FOLIOS_PER_STEP: usize = 32;

/// An action in progress.
pub(super) struct Acting {
    pub(super) action: Action,
    pub(super) filters: Vec<Filter<OpsFilter>>,
    pub(super) filter_order: FilterOrder,
    /// The process that the region is of; none in physical memory.
    process: Option<MmId>,
    /// The region, and the next address in it.
    pub(super) start: u64,
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) is_done: bool,
    pub(super) applied: Applied,
}

impl Acting {
    pub(super) fn new(
        apply: &Apply,
        scheme: &SchemeSpec,
        filter_order: FilterOrder,
        process: Option<MmId>,
    ) -> Acting {
        let filters = if apply.asks_ops_filters { scheme.ops_filters.clone() } else { Vec::new() };
        Acting {
            action: scheme.action,
            filters,
            filter_order,
            process,
            start: apply.range.start,
            at: apply.range.start,
            end: apply.range.end,
            is_done: false,
            applied: Applied::default(),
        }
    }
}

impl Core {
    /// Goes on with an action. Returns true when the region is done.
    pub(super) fn damos_step(&mut self, acting: &mut Acting) -> bool {
        if acting.action == Action::Stat && acting.filters.is_empty() {
            return true;
        }
        if let Some(mm) = acting.process {
            return self.damos_process_step(acting, mm);
        }
        let mut taken = Vec::new();
        let mut frames = 0;
        while acting.at < acting.end && frames < FRAMES_PER_STEP && taken.len() < FOLIOS_PER_STEP {
            frames += 1;
            let frame = frame_of(acting.at);
            acting.at += PAGE_SIZE;
            let Some(pfn) = self.damon_folio(Look::Scheme, frame) else { continue };
            let pages = self.mm.memory.folios[pfn].pages();
            // The walk goes on behind the folio, which may have begun before the region.
            acting.at = acting.at.max((u64::from(pfn.0) + pages) * PAGE_SIZE);
            let order = acting.filter_order;
            if !ops_passes(order, &acting.filters, |filter| self.damos_matches(filter, pfn)) {
                continue;
            }
            let bytes = pages * PAGE_SIZE;
            acting.applied.passed_bytes += bytes;
            match acting.action {
                Action::Pageout if self.is_spared_by_pageout(pfn) => {}
                Action::Pageout => taken.push(pfn),
                Action::MigrateHot(to) | Action::MigrateCold(to) => {
                    if self.mm.memory.folios[pfn].node != NodeId(to) {
                        taken.push(pfn);
                    }
                }
                Action::LruPrio => {
                    match self.mm.config.policy.machine.damon.lru_prio {
                        LruPrio::MarkAccessed => self.mark_accessed(pfn),
                        LruPrio::Activate => self.lru_activate(pfn),
                    }
                    acting.applied.bytes += bytes;
                }
                Action::LruDeprio => {
                    self.lru_deactivate(pfn);
                    acting.applied.bytes += bytes;
                }
                // Physical memory has no action `cold`.
                Action::Stat | Action::Cold => {}
            }
        }
        let pages = match acting.action {
            Action::MigrateHot(to) | Action::MigrateCold(to) => self.migrate_for_scheme(taken, NodeId(to)),
            _ => {
                let ignores_use = !self.mm.config.policy.machine.damon.pageout_references;
                self.reclaim_pages(MemcgId::ROOT, taken, ignores_use)
            }
        };
        acting.applied.bytes += pages * PAGE_SIZE;
        acting.at >= acting.end
    }

    /// Returns true if the filter that `pageout` adds rejects a folio: one that was accessed since the last look, which makes it old. What goes on loses
    /// the record of its use.
    fn is_spared_by_pageout(&mut self, pfn: Pfn) -> bool {
        if !self.mm.config.policy.machine.damon.pageout_references
            && self.damos_matches(OpsFilter::Young, pfn)
        {
            return true;
        }
        self.damos_forget_use(pfn);
        false
    }

    pub(super) fn damos_matches(&mut self, filter: OpsFilter, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        match filter {
            OpsFilter::Anon => folio.has(FolioFlags::ANON),
            OpsFilter::Memcg(memcg) => folio.memcg == MemcgId(memcg),
            OpsFilter::Young => {
                let is_young = self.damon_is_young(Look::Scheme, pfn);
                if is_young {
                    self.damon_make_old(Look::Scheme, pfn);
                }
                is_young
            }
            OpsFilter::HugepageSize(min, max) => (min..=max).contains(&(folio.pages() * PAGE_SIZE)),
            OpsFilter::Unmapped => folio.mapped == 0,
            OpsFilter::Active => self.mm.memory.has_use(pfn, UseBits::ACTIVE),
        }
    }
}
