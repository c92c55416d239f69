//! Migration to another node: which folios may go, which frames they get, and which gauges move along. [tiering 6]
//!
//! ```text
//!   folio ─▶ shared code? ─▶ dirty page of a file? ─▶ room above the high mark there? ─▶ off its list ─▶ batch
//!              never          later                     later                              later, if someone else has it
//!   batch ─▶ a frame of exactly that node, without any reclaim ─▶ moved, or back on its list where it was
//! ```
//! Its callers are promotion and demotion between tiers of memory.
//!
//! A node's counters of its folios move along: a folio is subtracted here, and added there, gauge by gauge.

use crate::accessed::mapped_stat;
use crate::core::Core;
use crate::memory::folio::{Folio, FolioFlags, HUGE_PAGE_ORDER};
use crate::migrate::MigrateStep;
use crate::page_alloc::request::{Gfp, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::stat::{ByType, ISOLATED, Stat};
use crate::state::State;
use crate::story::{GfpFlags, MigrateReason, MigrateRefusal, PageEvent};
use crate::units::ZoneType;
use crate::units::{MmId, NodeId, Pfn};
use pageout_rules::damon::MigrateFallback;
use pageout_rules::migrate::MisplacedHuge;

/// Folios of a batch at most; further ones are another.
pub(crate) const BATCH_MAX: usize = 512;

/// Why a folio does not go to another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotMigrated {
    /// The folio never moves: several processes run this code, and no node is the right one.
    AccessDenied,
    /// The folio may move later.
    Again,
}

impl Core {
    /// Takes a folio off its list for a move to another node, if it may move there now. `vma`: the mapping on whose behalf; without one, shared code
    /// can't be recognised.
    pub(crate) fn migrate_prepare(
        &mut self,
        pfn: Pfn,
        vma: Option<(MmId, usize)>,
        to: NodeId,
    ) -> Result<(), NotMigrated> {
        if self.is_refused(MigrateStep::Prepare) {
            return Err(NotMigrated::Again);
        }
        let folio = self.mm.memory.folios[pfn];
        let is_file = !folio.has(FolioFlags::ANON) && !folio.has(FolioFlags::SWAPBACKED);
        let is_code = |(mm, vma): (MmId, usize)| self.mm.memory.mm(mm).vmas[vma].executable;
        if is_file && folio.mapped > 1 && vma.is_some_and(is_code) {
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::SharedCode });
            return Err(NotMigrated::AccessDenied);
        }
        // It would most likely be written in the middle of it.
        if is_file && (folio.has(FolioFlags::DIRTY) || self.mm.is_mapped_dirty(pfn)) {
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::DirtyFile });
            return Err(NotMigrated::Again);
        }
        if !self.mm.has_room_for(to, folio.pages()) {
            self.wake_for_room(to);
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::NoRoom });
            return Err(NotMigrated::Again);
        }
        if !self.migrate_isolate(pfn) {
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::NotOnList });
            return Err(NotMigrated::Again);
        }
        Ok(())
    }

    /// A node that pages are promoted to is full: its kswapd demotes others to make room. [tiering-zswap-6.12 3.5]
    pub(crate) fn wake_for_room(&mut self, node: NodeId) {
        let highest = self
            .mm
            .memory
            .zones
            .of_node(node)
            .iter()
            .filter(|zone| zone.managed > 0)
            .map(|zone| zone.kind)
            .max();
        if let Some(class) = highest.filter(|_| self.mm.config.is_memory_tiering()) {
            self.wake_kswapd(node, 0, class, GfpFlags::None);
        }
    }

    /// Moves prepared folios, [`BATCH_MAX`] at most, to another node. Folios that can't move are back on their lists afterwards. Returns how many
    /// pages have moved; fewer than there were is a reason to try again later.
    pub(crate) fn migrate_to_node(&mut self, folios: &[Pfn], to: NodeId, why: MigrateReason) -> u64 {
        self.migrate_near(folios, to, MigrateFallback::Nothing, why)
    }

    /// Moves folios that a scheme of DAMON has chosen, a batch at most, to a node. Folios that are on no list stay. No mark of the node is asked, except
    /// by the allocation. Returns how many pages have moved. [access-aware 2.2]
    pub(crate) fn migrate_for_scheme(&mut self, mut folios: Vec<Pfn>, to: NodeId) -> u64 {
        folios.retain(|&pfn| self.migrate_isolate(pfn));
        let fallback = self.mm.config.policy.machine.damon.migrate_fallback;
        self.migrate_near(&folios, to, fallback, MigrateReason::Damon)
    }

    /// Moves isolated folios to a node, or near it.
    fn migrate_near(
        &mut self,
        folios: &[Pfn],
        to: NodeId,
        fallback: MigrateFallback,
        why: MigrateReason,
    ) -> u64 {
        assert!(folios.len() <= BATCH_MAX, "a batch has {BATCH_MAX} folios at most");
        let mut moved = 0;
        for &pfn in folios {
            let folio = self.mm.memory.folios[pfn];
            self.mm.assert_isolated(pfn);
            let mut target = self.frame_near(pfn, to, fallback);
            let mut tails = Vec::new();
            if target.is_none()
                && folio.is_large_anon()
                && self.mm.config.misplaced_huge == MisplacedHuge::Split
                && self.split_large_anon(pfn, &mut tails)
            {
                self.mm.count_migration_split(&folio);
                target = self.frame_near(pfn, to, fallback);
            }
            moved += self.migrate_into(pfn, target, to, why);
            for tail in tails {
                let target = self.frame_near(tail, to, fallback);
                moved += self.migrate_into(tail, target, to, why);
            }
        }
        moved
    }

    /// A free frame for a folio on exactly that node.
    fn frame_there(&mut self, pfn: Pfn, to: NodeId) -> Option<Pfn> {
        if self.is_refused(MigrateStep::Allocate) {
            return None;
        }
        let folio = self.mm.memory.folios[pfn];
        let gfp = Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN | Gfp::NOMEMALLOC;
        let there =
            self.alloc_pages(&Request { order: folio.order, ..Request::movable(gfp, to) }, folio.memcg);
        assert!(
            there.is_none_or(|there| self.mm.memory.folios[there].node == to),
            "a page that must go to a node gets a frame of another"
        );
        there
    }

    /// A free frame for a folio on that node, or else on another one that may serve.
    fn frame_near(&mut self, pfn: Pfn, to: NodeId, fallback: MigrateFallback) -> Option<Pfn> {
        let there = self.frame_there(pfn, to);
        if there.is_some() || fallback == MigrateFallback::Nothing {
            return there;
        }
        let folio = self.mm.memory.folios[pfn];
        let gfp = Gfp::NORETRY | Gfp::NOWARN | Gfp::NOMEMALLOC;
        self.alloc_pages(&Request { order: folio.order, ..Request::movable(gfp, to) }, folio.memcg)
    }

    /// Moves a folio to the frame that was found for it. Returns how many pages have moved.
    fn migrate_into(&mut self, pfn: Pfn, target: Option<Pfn>, to: NodeId, why: MigrateReason) -> u64 {
        let folio = self.mm.memory.folios[pfn];
        let Some(target) = target else {
            self.mm.count_unmoved(&folio);
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::NoFrame });
            self.migrate_put_back(pfn);
            return 0;
        };
        if self.migrate_folio_or_free(pfn, target, why) { folio.pages() } else { 0 }
    }

    /// Moves folios that were found on the wrong node. Returns how many pages have moved.
    pub(crate) fn migrate_misplaced(&mut self, folios: &[Pfn], to: NodeId, why: MigrateReason) -> u64 {
        let moved = self.migrate_to_node(folios, to, why);
        self.mm.count_node(to, Stat::NumaPagesMigrated, moved as i64);
        moved
    }
}

impl Core {
    /// The counters of a folio that has left its node are moved to the new node. The folio is isolated by the moving task.
    pub(super) fn move_gauges(&mut self, pfn: Pfn, old: &Folio) {
        let folio = self.mm.memory.folios[pfn];
        assert_ne!(folio.node, old.node, "gauges move to the node that they are on");
        assert_eq!(folio.memcg, old.memcg, "a folio that has moved is another group's");
        assert_eq!(folio.mapped, old.mapped, "a folio that has moved is mapped by others");
        assert!(!folio.has(FolioFlags::WRITEBACK), "{pfn:?} has moved while it was being written");
        let pages = folio.pages() as i64;
        let is_shmem = folio.has(FolioFlags::SWAPBACKED) && !folio.has(FolioFlags::ANON);
        let mut gauges = Vec::new();
        if folio.has(FolioFlags::INDEXED) {
            gauges.push(Stat::NrFilePages);
            if is_shmem {
                gauges.push(Stat::NrShmem);
            }
            if folio.has(FolioFlags::DIRTY) && !is_shmem {
                gauges.push(Stat::NrDirty);
            }
        }
        if folio.has(FolioFlags::SWAPCACHE) {
            gauges.push(Stat::NrSwapcached);
        }
        let from = self.mm.lruvecs.id(folio.memcg, old.node);
        let to = self.mm.lruvec_of(pfn);
        for gauge in gauges {
            self.count(from, gauge, -pages);
            self.count(to, gauge, pages);
        }
        if folio.mapped > 0 {
            let mapped = self.mm.mapped_pages(&folio, pfn) as i64;
            self.count(from, mapped_stat(&folio), -mapped);
            self.count(to, mapped_stat(&folio), mapped);
        }
        if self.mm.memory.is_mapped_by_one(&folio) {
            self.count(from, Stat::NrAnonThps, -1);
            self.count(to, Stat::NrAnonThps, 1);
        }
        // The machine counts these alone.
        if folio.has(FolioFlags::SWAPCACHE) {
            self.mm.move_node_gauge(Stat::NrFilePages, old.node, folio.node, pages);
        }
        if folio.has(FolioFlags::MLOCKED) {
            self.mm.move_node_gauge(Stat::NrMlock, old.node, folio.node, pages);
        }
        let isolated = ISOLATED.of(folio.lru_type());
        self.mm.move_node_gauge(isolated, old.node, folio.node, pages);
    }
}

impl State {
    /// Returns true if a node stays balanced if it receives this many pages: some zone of it is above its high watermark then.
    pub(crate) fn has_room_for(&self, node: NodeId, pages: u64) -> bool {
        let zones = self.memory.zones.of_node(node);
        zones.iter().any(|zone| {
            let mark = zone.mark(Watermark::High) + pages;
            zone.watermark_ok(0, mark, ZoneType::Movable, Rights::empty())
        })
    }

    /// A folio was split to be migrated page by page.
    pub(crate) fn count_migration_split(&mut self, folio: &Folio) {
        if folio.order == HUGE_PAGE_ORDER {
            self.count_node(folio.node, Stat::ThpMigrationSplit, 1);
        }
    }

    fn move_node_gauge(&mut self, gauge: Stat, from: NodeId, to: NodeId, pages: i64) {
        self.count_node(from, gauge, -pages);
        self.count_node(to, gauge, pages);
    }
}
