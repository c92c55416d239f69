//! Page cache that its reader promotes: which folios of slow memory a read(2) isolates for promotion, and their moves when the
//! call is over. [tiering 7]

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::migrate::BATCH_MAX;
use crate::pghot::Source;
use crate::promotion::SetAside;
use crate::stat::Stat;
use crate::state::State;
use crate::story::{MigrateReason, PageEvent};
use crate::units::{MmId, NodeId, Pfn};
use pageout_rules::lru::Lru;
use pageout_rules::promotion::{PromotionOrder, PromotionTarget, PromotionWhen};

/// Folios of a task's list on their way, batch by batch.
pub(crate) struct Promoting {
    /// In the order in which they go; those that have gone are cut off.
    folios: std::vec::IntoIter<(Pfn, NodeId)>,
    order: PromotionOrder,
}

impl Promoting {
    /// Folios that have yet to move.
    pub(crate) fn folios(&self) -> impl Iterator<Item = Pfn> {
        self.folios.as_slice().iter().map(|&(pfn, _)| pfn)
    }
}

impl Core {
    /// A page of a lower tier that was in use already has been read again, by a task of `mm`: sets it aside if it may go.
    pub(crate) fn promotion_candidate(&mut self, pfn: Pfn, mm: MmId, aside: &mut SetAside) {
        let folio = self.mm.memory.folios[pfn];
        if self.mm.tiers.node_is_top_tier(folio.node) || folio.has(FolioFlags::UNEVICTABLE) {
            return;
        }
        let is_of_generations = self.mm.lru_of(self.mm.lruvec_of(pfn)) == Lru::Generations;
        if is_of_generations && !self.mm.config.pagecache_promotion_mglru || !self.mm.may_set_aside(aside) {
            return;
        }
        let here = self.current_node();
        let lruvec = self.mm.lruvec_of(pfn);
        self.count(lruvec, Stat::NumaHintPageCache, folio.pages() as i64);
        if folio.node == here {
            self.mm.count_node(here, Stat::NumaHintPageCacheLocal, folio.pages() as i64);
        }
        // The policy is the reader's own: that of a mapping, if there is any, is not asked. Nodes of its group (cpuset.mems) are not either.
        if self.mm.memory.mm(mm).has_mempolicy() || !self.should_promote(pfn, here) {
            return;
        }
        if self.migrate_prepare(pfn, None, here).is_err() {
            return;
        }
        self.mm.migrate_keep(pfn);
        if self.mm.config.pagecache_promotion_when == PromotionWhen::Access {
            // The page is its reader's as long as the access lasts, and so it stays where it is.
            self.promote_prepared(&[pfn], here, MigrateReason::PageCache);
            return self.mm.migrate_kept(pfn);
        }
        self.tell(pfn, |_| PageEvent::SetAside { to: here });
        aside.folios.push((pfn, here));
        aside.pages += folio.pages();
    }

    /// The call is over: the isolated pages are moved.
    pub(crate) fn begin_promoting(&mut self, aside: SetAside) -> Promoting {
        let (mut folios, order) = (aside.folios, self.mm.config.pagecache_promotion_order);
        if order == PromotionOrder::Head {
            folios.reverse();
        }
        if self.mm.config.pagecache_promotion_target == PromotionTarget::Local {
            let here = self.current_node();
            folios.iter_mut().for_each(|(_, to)| *to = here);
        }
        Promoting { folios: folios.into_iter(), order }
    }

    /// Moves the next batch, all to one node, or as many as a step may; false when none is left.
    pub(crate) fn promote_batch(&mut self, promoting: &mut Promoting) -> bool {
        let Some(&(_, to)) = promoting.folios.as_slice().first() else { return false };
        let most = self.mm.config.step_moves.min(BATCH_MAX as u64) as usize;
        let same = promoting.folios.as_slice().iter().take(most).take_while(|(_, node)| *node == to);
        let batch: Vec<Pfn> = same.map(|&(pfn, _)| pfn).collect();
        promoting.folios.nth(batch.len() - 1);
        batch.iter().for_each(|&pfn| self.mm.migrate_kept(pfn));
        if promoting.order == PromotionOrder::Head {
            self.out
                .count
                .migrated_backwards(batch.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum::<u64>());
        }
        self.promote_prepared(&batch, to, MigrateReason::PageCache);
        !promoting.folios.as_slice().is_empty()
    }

    /// The task ends before it could promote the pages that it has isolated.
    pub(crate) fn put_back_set_aside(&mut self, aside: SetAside) {
        for (pfn, _) in aside.folios {
            self.mm.migrate_kept(pfn);
            self.migrate_put_back(pfn);
        }
    }
}

impl State {
    /// Returns true if reads look for pages to promote.
    #[inline]
    pub(crate) fn promotes_page_cache(&self) -> bool {
        self.config.pagecache_promotion_enabled && self.config.is_memory_tiering()
    }

    /// Returns true if reads of slow memory matter to anyone.
    #[inline]
    pub(crate) fn watches_reads(&self) -> bool {
        self.lower_tiers.are_watched()
    }

    /// A setting may have changed whether they do.
    pub(crate) fn watch_reads(&self) {
        let are_watched = self.promotes_page_cache() || Source::MarkAccessed.is_heard(&self.config);
        self.lower_tiers.watch(are_watched);
    }

    /// Returns true if a task may isolate another page for promotion.
    #[inline]
    pub(crate) fn may_set_aside(&self, aside: &SetAside) -> bool {
        aside.pages() < self.config.pagecache_promote_pages_per_work.into()
    }
}
