//! Pages that are probably stored next: a host that compresses takes its time for them before reclaim asks, while others use the engine.
//!
//! They are the coldest anonymous pages of the group that was reclaimed from last, at first of the root, without those that have been used since or need
//! no write. They are named when reclaim is near, or in progress: a page that is named long before is often used again first. The answer decides
//! nothing. A page that was left out is compressed when reclaim asks, and a page too many was compressed in vain.

use crate::access::engine::Engine;
use crate::lru::lruvec::LruvecId;
use crate::memory::folio::FolioFlags;
use crate::memory::list::{Links, NONE};
use crate::page_alloc::watermark::Watermark;
use crate::state::State;
use crate::units::{LruType, MemcgId, NodeId, Pfn, ZoneType};

/// Pages that are passed for each that is found.
const PASSED: usize = 7;
/// Reclaim is near if a group can charge fewer pages.
const NEAR: u64 = 8;

impl Engine {
    /// Adds the pages that zswap will probably be asked to store next to `pages`, at most this many, the first one first. It adds none if no reclaim is
    /// near, or the pool accepts no page. `is_reclaiming`: the caller is in the middle of reclaim, which goes on however much it has freed by now.
    pub fn swapped_next(&self, most: usize, is_reclaiming: bool, pages: &mut Vec<Pfn>) {
        let mm = &self.core.mm;
        let lruvec = self.core.last_swapped.unwrap_or_else(|| mm.lruvecs.id(MemcgId::ROOT, NodeId(0)));
        let kswapd = &self.core.kswapds[mm.lruvecs[lruvec].node.index()];
        let is_near = is_reclaiming || kswapd.is_balancing() || mm.is_reclaim_near(lruvec);
        if !is_near || !mm.zswap_accepts_soon() {
            return;
        }
        let found = mm.coldest_anon(lruvec).take(most * (1 + PASSED)).filter(|&pfn| mm.is_swapped_soon(pfn));
        pages.extend(found.take(most));
    }
}

impl State {
    /// Returns true if the group, or its node, is about to be reclaimed from, or the group is over its limit.
    fn is_reclaim_near(&self, lruvec: LruvecId) -> bool {
        let (memcg, node) = (self.lruvecs[lruvec].memcg, self.lruvecs[lruvec].node);
        let stocks = self.cpus.iter().filter(|cpu| cpu.stock.memcg == memcg).map(|cpu| cpu.stock.pages);
        let margin = self.memcgs.ancestors(memcg).map(|memcg| self.memcgs.margin(memcg)).min();
        margin.is_some_and(|margin| margin.saturating_add(stocks.sum()) < NEAR)
            || self.memcgs.is_over_high(memcg)
            || !self.memory.zones.is_beyond(node, ZoneType::Movable, Watermark::High, 0)
    }

    /// The anonymous pages of a group's coldest lists, from the coldest on.
    fn coldest_anon(&self, lruvec: LruvecId) -> impl Iterator<Item = Pfn> {
        let folios = &self.memory.folios;
        let next = |pfn: &Pfn| Some(folios.links(pfn.0).0).filter(|&next| next != NONE).map(Pfn);
        let lists = self.coldest_lists(lruvec, LruType::Anon);
        lists.flat_map(move |tail| std::iter::successors(Some(tail), next))
    }

    /// Returns true if reclaim would write the page if it met it now.
    fn is_swapped_soon(&self, pfn: Pfn) -> bool {
        let folio = &self.memory.folios[pfn];
        let busy = FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::MLOCKED | FolioFlags::PINNED;
        if folio.order > 0 || folio.refs > 0 || folio.flags().intersects(busy) {
            return false;
        }
        let mut is_dirty = folio.has(FolioFlags::DIRTY) || !folio.has(FolioFlags::SWAPCACHE);
        for at in 0..self.memory.rmap_len(folio) {
            let (mm, page) = self.rmap_entry(folio, at);
            let table = &self.memory.mm(mm).table;
            let word = table.word_if_any(page);
            if word.is_present() && word.pfn() == pfn {
                if table.is_entry_young(page) {
                    return false;
                }
                is_dirty |= word.is_dirty();
            }
        }
        is_dirty
    }
}
