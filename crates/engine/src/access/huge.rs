//! Large folios at a fault: a folio of the largest allowed size whose range is empty. Smaller ones and then a single page follow if no block is
//! free or the charge is refused. [machine 2.6; folios 2.2]
//!
//! ```text
//!   a first write ─▶ which orders? ─▶ a block of frames ─▶ charge of all pages ─▶ zeroes, entries, one place on the lists
//!                      │ none            │ none               │ no room
//!                      │                 └────── fallback ────┴─▶ the next smaller order
//!                      └─▶ a single page
//! ```
//! A huge page (2 MiB) is tried only if nothing of its range was ever used. Its entry is one; smaller folios have an entry per page.
//!
//! The setting `defrag` decides how much work such a page is worth. By the kernel's default, `madvise`, a mapping with the hint
//! `madvise(MADV_HUGEPAGE)` reclaims and compacts for it as any large request does; other mappings take a free block or none. Only `defer`
//! and `defer+madvise` wake kswapd and kcompactd for it.

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::miss::{Source, Stop};
use crate::access::task::Current;
use crate::config::{ConfigError, HugepageDefrag, check_range};
use crate::machine::op::Op;
use crate::memcg::charge::ChargeOutcome;
use crate::memory::folio::{FolioFlags, HUGE_PAGE_ORDER};
use crate::memory::mm::HugeAdvice;
use crate::mthp::MthpStat;
use crate::page_alloc::request::{Gfp, Request};
use crate::units::{MemcgId, ObjectId, Pfn, TaskId};
use std::ops::Range;

/// How far a fault has come with its large folio.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LargeFault {
    #[default]
    Untried,
    /// The task is getting what a folio of this order needs, whatever happens to the page meanwhile.
    UnderWay(u8),
    /// The fault has a large folio, or does without.
    Over,
}

/// Returns the allocation flags for a large folio at a fault, by the `defrag` setting and the mapping's hint.
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
    /// mapping of a regular file then read 2 MiB at a time [folios 1.4]. On one of tmpfs they create huge pages if its mount allows that for advice.
    pub fn madvise_hugepage(
        &mut self,
        task: TaskId,
        object: ObjectId,
        advice: HugeAdvice,
    ) -> Result<(), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        let vma = &mut self.core.mm.memory.mm_mut(mm).vmas[vma];
        vma.advise_huge(vma.range(), advice);
        Ok(())
    }

    /// The same of some pages of a mapping. No large folio lies across the border of pages with different advice.
    ///
    /// # Errors
    /// [`ConfigError`]: the mapping has no such pages.
    pub fn madvise_hugepage_pages(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
        advice: HugeAdvice,
    ) -> Result<(), ConfigError> {
        let (mm, vma) = self.mapping(task, object)?;
        let vma = &mut self.core.mm.memory.mm_mut(mm).vmas[vma];
        check_range("end of a range in a mapping", pages.end, pages.start, vma.pages)?;
        vma.advise_huge(vma.start + pages.start..vma.start + pages.end, advice);
        Ok(())
    }
}

impl Current<'_> {
    /// Returns true if the page that the access lacks may come as part of a huge one.
    #[inline]
    pub(super) fn wants_large_anon(&self) -> bool {
        self.core.mm.anon_orders != 0
            && self.task.attempt.progress.large == LargeFault::Untried
            && self.new_orders() != 0
    }

    /// Orders of the folios that the page may come in, a bit each.
    #[cold]
    fn new_orders(&self) -> u16 {
        let Object::Mapping { mm, vma, start, .. } = *self.task.accessed() else { return 0 };
        self.core.mm.new_anon_orders(mm, vma, start + self.task.attempt.page)
    }

    /// Returns true if it is on its way to one.
    #[inline]
    pub(super) fn is_large_fault(&self) -> bool {
        matches!(self.task.attempt.progress.large, LargeFault::UnderWay(_))
    }

    /// Brings in a large folio, or finds out that a single page has to do.
    #[doc(alias = "do_huge_pmd_anonymous_page")]
    #[doc(alias = "alloc_anon_folio")]
    #[cold]
    pub(super) fn bring_in_large_anon(&mut self) -> Result<(), Stop> {
        loop {
            let order = match self.task.attempt.progress.large {
                LargeFault::UnderWay(order) => order,
                _ => self.new_orders().ilog2() as u8,
            };
            self.task.attempt.progress.large = LargeFault::UnderWay(order);
            let prepared = self.prepare_large_anon(order);
            if matches!(prepared, Err(Stop::Pause(_))) {
                return prepared.map(|_| ());
            }
            // Another thread may have used these pages meanwhile.
            let orders = self.new_orders();
            self.task.attempt.progress.large = LargeFault::Over;
            match prepared {
                Ok((pfn, charged)) if orders >> order & 1 == 1 => {
                    self.fill_large_anon(pfn, charged);
                    return Ok(());
                }
                Ok(_) => {
                    self.give_back();
                    return Ok(());
                }
                Err(Stop::NoRoom) => {
                    let node = self.core.current_node();
                    self.core.count_mthp(node, order, MthpStat::AnonFaultFallback);
                    let smaller = orders & ((1 << order) - 1);
                    if smaller == 0 {
                        return Ok(());
                    }
                    self.task.attempt.progress.large = LargeFault::UnderWay(smaller.ilog2() as u8);
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Gets a block of frames and the charge of it.
    fn prepare_large_anon(&mut self, order: u8) -> Result<(Pfn, ChargeOutcome), Stop> {
        let memcg = self.memcg();
        let gfp = self.large_anon_gfp();
        let prepared = self.prepare_block(memcg, order, gfp);
        if let Err((Stop::NoRoom, true)) = prepared {
            let node = self.core.current_node();
            self.core.count_mthp(node, order, MthpStat::AnonFaultFallbackCharge);
        }
        prepared.map_err(|(stop, _)| stop)
    }

    /// The allocation flags for large folios at the page of the access.
    pub(super) fn large_anon_gfp(&self) -> Gfp {
        let Object::Mapping { mm, vma, start, .. } = *self.task.accessed() else {
            unreachable!("anonymous memory is mapped")
        };
        let (_, advice) = self.core.mm.memory.mm(mm).vmas[vma].huge_at(start + self.task.attempt.page);
        huge_gfp(self.core.mm.config.hugepage_defrag, advice == HugeAdvice::Hugepage)
    }

    /// Gets a block of frames that a group pays for. Errors: whether it was the group that refused.
    pub(super) fn prepare_block(
        &mut self,
        memcg: MemcgId,
        order: u8,
        gfp: Gfp,
    ) -> Result<(Pfn, ChargeOutcome), (Stop, bool)> {
        let movable = Request::movable(gfp, self.core.current_node());
        let mut request = Request { order, ..movable };
        if self.core.mm.memory.mm(self.task.mm()).placement.is_some() {
            self.place_request(&mut request);
        }
        let pfn = self.allocate(memcg, &request).map_err(|stop| (stop, false))?;
        if self.task.attempt.charge.is_none() {
            self.core.mm.memory.folios[pfn].memcg = memcg;
        }
        let payer = self.core.mm.memory.folios[pfn].memcg;
        let charged = self.charge_slowly(payer, 1 << order, gfp);
        let charged = charged.map_err(|stop| (self.give_up(stop), true))?;
        self.core.folio_charged(pfn);
        Ok((pfn, charged))
    }

    /// Fills it with zeroes and maps it.
    fn fill_large_anon(&mut self, pfn: Pfn, charged: ChargeOutcome) {
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
        folio.index = (page & !(folio.pages() - 1)) as u32;
        let (order, pages) = (folio.order, folio.pages());
        self.core.out.push(Op::Zero { pfn, pages: pages as u32 });
        self.core.mm.mthp.gauge(order, MthpStat::NrAnon, 1);
        if order == HUGE_PAGE_ORDER {
            self.core.map_huge(mm, page, pfn);
            self.core.note_new_huge(pfn);
        } else {
            self.core.map_large_anon(mm, page, pfn, true);
        }
        self.core.lru_add(pfn, self.added_for());
        self.core.count_anon_fault(pfn);
    }
}
