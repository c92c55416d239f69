//! Huge pages at a fault: a page of 2 MiB if none of its small pages is in use yet, or else a single page. [machine 2.6]
//!
//! ```text
//!   a first write ─▶ may it be huge? ─▶ a block of 512 frames ─▶ charge of 512 pages ─▶ zeroes, one entry, one place on the lists
//!                      no │                no │ none                no │ no room
//!                         └───────────────────┴───── fallback ─────────┴─▶ a single page, and so is all that follows in these 2 MiB
//! ```
//! The setting `defrag` decides how much work such a page is worth. By the kernel's default, `madvise`, a mapping with the hint
//! `madvise(MADV_HUGEPAGE)` reclaims and compacts for it as any large request does; other mappings take a free block or none. Only `defer`
//! and `defer+madvise` wake kswapd and kcompactd for it.

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::miss::{Source, Stop};
use crate::access::task::Current;
use crate::config::{ConfigError, HugepageDefrag, TransparentHugepage};
use crate::machine::op::Op;
use crate::memcg::charge::ChargeOutcome;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES};
use crate::memory::mm::HugeAdvice;
use crate::memory::table::LEAF_PAGES;
use crate::page_alloc::request::{Gfp, Request};
use crate::stat::Stat;
use crate::units::{ObjectId, Pfn, TaskId};

/// How far a fault has come with its huge page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum HugeFault {
    #[default]
    Untried,
    /// The task is getting what a huge page needs, whatever happens to the page meanwhile.
    UnderWay,
    /// The fault has a huge page, or does without.
    Over,
}

/// Returns the allocation flags for a huge page at a fault, by the `defrag` setting and the mapping's hint.
#[doc(alias = "vma_thp_gfp_mask")]
pub(super) fn huge_gfp(defrag: HugepageDefrag, is_advised: bool) -> Gfp {
    match defrag {
        HugepageDefrag::Always if is_advised => Gfp::HUGE,
        HugepageDefrag::Always => Gfp::HUGE | Gfp::NORETRY,
        HugepageDefrag::Madvise | HugepageDefrag::DeferMadvise if is_advised => Gfp::HUGE,
        HugepageDefrag::Defer | HugepageDefrag::DeferMadvise => Gfp::HUGE_LIGHT | Gfp::KSWAPD_RECLAIM,
        HugepageDefrag::Madvise | HugepageDefrag::Never => Gfp::HUGE_LIGHT,
    }
}

impl Engine {
    /// Sets whether a mapping is worth huge pages (`madvise(MADV_HUGEPAGE)` and its opposite). Pages that are in memory stay unchanged. Faults on a
    /// mapping of a regular file then read 2 MiB at a time [folios 1.4]; to tmpfs it is nothing.
    pub fn madvise_hugepage(
        &mut self,
        task: TaskId,
        object: ObjectId,
        advice: HugeAdvice,
    ) -> Result<(), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        self.core.mm.memory.mm_mut(mm).vmas[vma].huge_advice = advice;
        Ok(())
    }
}

impl Current<'_> {
    /// Returns true if the page that the access lacks may come as part of a huge one.
    #[inline]
    pub(super) fn wants_huge_page(&self) -> bool {
        self.core.mm.config.transparent_hugepage != TransparentHugepage::Never && self.may_be_huge()
    }

    #[cold]
    fn may_be_huge(&self) -> bool {
        let Object::Mapping { mm, vma, start, .. } = *self.task.accessed() else { return false };
        self.task.attempt.progress.huge == HugeFault::Untried
            && self.core.mm.may_map_huge(mm, vma, start + self.task.attempt.page)
    }

    /// Returns true if it is on its way to one.
    #[cold]
    pub(super) fn is_huge_fault(&self) -> bool {
        self.task.attempt.progress.huge == HugeFault::UnderWay
    }

    /// Brings in a huge page, or finds out that a single one has to do.
    #[doc(alias = "do_huge_pmd_anonymous_page")]
    #[cold]
    pub(super) fn bring_in_huge(&mut self) -> Result<(), Stop> {
        self.task.attempt.progress.huge = HugeFault::UnderWay;
        let prepared = self.prepare_huge();
        if matches!(prepared, Err(Stop::Pause(_))) {
            return prepared.map(|_| ());
        }
        // Another thread may have used these 2 MiB meanwhile.
        self.task.attempt.progress.huge = HugeFault::Untried;
        let is_needed = self.may_be_huge();
        self.task.attempt.progress.huge = HugeFault::Over;
        match prepared {
            Ok((pfn, charged)) if is_needed => self.fill_huge(pfn, charged),
            Ok(_) => self.give_back(),
            Err(Stop::NoRoom) => {
                let node = self.core.current_node();
                self.core.mm.count_node(node, Stat::ThpFaultFallback, 1);
            }
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    /// Gets a block of frames and the charge of it.
    fn prepare_huge(&mut self) -> Result<(Pfn, ChargeOutcome), Stop> {
        let memcg = self.memcg();
        let Object::Mapping { mm, vma, .. } = *self.task.accessed() else {
            unreachable!("anonymous memory is mapped")
        };
        let is_advised = self.core.mm.memory.mm(mm).vmas[vma].huge_advice == HugeAdvice::Hugepage;
        let gfp = huge_gfp(self.core.mm.config.hugepage_defrag, is_advised);
        let movable = Request::movable(gfp, self.core.current_node());
        let mut request = Request { order: HUGE_PAGE_ORDER, ..movable };
        if self.core.mm.memory.mm(mm).placement.is_some() {
            self.place_request(&mut request);
        }
        let pfn = self.allocate(memcg, &request)?;
        if self.task.attempt.charge.is_none() {
            self.core.mm.memory.folios[pfn].memcg = memcg;
        }
        let payer = self.core.mm.memory.folios[pfn].memcg;
        let charged = self.charge_slowly(payer, HUGE_PAGE_PAGES, gfp);
        if matches!(charged, Err(Stop::NoRoom)) {
            let node = self.core.current_node();
            self.core.mm.count_node(node, Stat::ThpFaultFallbackCharge, 1);
        }
        let charged = charged.map_err(|stop| self.give_up(stop))?;
        self.core.folio_charged(pfn);
        Ok((pfn, charged))
    }

    /// Fills it with zeroes and maps it.
    fn fill_huge(&mut self, pfn: Pfn, charged: ChargeOutcome) {
        let Object::Mapping { mm, start, .. } = *self.task.accessed() else {
            unreachable!("anonymous memory is mapped")
        };
        let page = start + self.task.attempt.page;
        self.task.attempt.frame = None;
        if self.core.is_telling() {
            self.tell_filled(pfn, Source::NewAnon, charged);
        }
        self.hold_for(pfn);
        let folio = &mut self.core.mm.memory.folios[pfn];
        folio.set(FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::DIRTY);
        folio.owner = mm.0;
        folio.index = (page & !(LEAF_PAGES - 1)) as u32;
        self.core.out.push(Op::Zero { pfn, pages: HUGE_PAGE_PAGES as u32 });
        self.core.map_huge(mm, page, pfn);
        self.core.lru_add(pfn, self.added_for());
        self.core.count(self.core.mm.lruvec_of(pfn), Stat::ThpFaultAlloc, 1);
    }
}
