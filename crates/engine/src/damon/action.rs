//! Actions of schemes on the folios of a region, a batch per step. [access-aware 2.2, 2.6]

use super::paddr::frame_of;
use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::memory::folio::UseBits;
use crate::units::{MemcgId, PAGE_SIZE, Pfn};
use pageout_damon::{Action, Applied, Apply, Filter, FilterOrder, OpsFilter, ops_passes};
use pageout_rules::damon::LruPrio;

/// Frames that one step looks at.
const FRAMES_PER_STEP: u64 = 512;
/// Folios that one step reclaims.
const FOLIOS_PER_STEP: usize = 32;

/// An action in progress.
pub(super) struct Acting {
    action: Action,
    filters: Vec<Filter<OpsFilter>>,
    /// The next address, and the end of the region.
    at: u64,
    end: u64,
    pub(super) is_done: bool,
    pub(super) applied: Applied,
}

impl Acting {
    pub(super) fn new(apply: &Apply, action: Action, filters: &[Filter<OpsFilter>]) -> Acting {
        let filters = if apply.asks_ops_filters { filters.to_vec() } else { Vec::new() };
        Acting {
            action,
            filters,
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
        let mut to_reclaim = Vec::new();
        let mut frames = 0;
        while acting.at < acting.end && frames < FRAMES_PER_STEP && to_reclaim.len() < FOLIOS_PER_STEP {
            frames += 1;
            let frame = frame_of(acting.at);
            acting.at += PAGE_SIZE;
            let Some(pfn) = self.damon_folio(frame) else { continue };
            let pages = self.mm.memory.folios[pfn].pages();
            // The walk goes on behind the folio, which may have begun before the region.
            acting.at = acting.at.max((u64::from(pfn.0) + pages) * PAGE_SIZE);
            let order = FilterOrder::FirstFit;
            if !ops_passes(order, &acting.filters, |filter| self.damos_matches(filter, pfn)) {
                continue;
            }
            let bytes = pages * PAGE_SIZE;
            acting.applied.passed_bytes += bytes;
            match acting.action {
                Action::Pageout if self.is_spared_by_pageout(pfn) => {}
                Action::Pageout => to_reclaim.push(pfn),
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
                Action::Stat | Action::Cold | Action::MigrateHot(_) | Action::MigrateCold(_) => {}
            }
        }
        let ignores_use = !self.mm.config.policy.machine.damon.pageout_references;
        let reclaimed = self.reclaim_pages(MemcgId::ROOT, to_reclaim, ignores_use);
        acting.applied.bytes += reclaimed * PAGE_SIZE;
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
        self.mm.memory.remove_use(pfn, UseBits::REFERENCED);
        let _ = self.mm.memory.take_seen_young(pfn);
        false
    }

    fn damos_matches(&mut self, filter: OpsFilter, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        match filter {
            OpsFilter::Anon => folio.has(FolioFlags::ANON),
            OpsFilter::Memcg(memcg) => folio.memcg == MemcgId(memcg),
            OpsFilter::Young => {
                let is_young = self.damon_is_young(pfn);
                if is_young {
                    self.damon_make_old(pfn);
                }
                is_young
            }
            OpsFilter::HugepageSize(min, max) => (min..=max).contains(&(folio.pages() * PAGE_SIZE)),
            OpsFilter::Unmapped => folio.mapped == 0,
            OpsFilter::Active => self.mm.memory.has_use(pfn, UseBits::ACTIVE),
        }
    }
}
