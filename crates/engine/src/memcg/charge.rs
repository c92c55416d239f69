//! Charging a page to its memcg and all ancestors: the per-CPU charge stock, reclaim at `memory.max`, retries, and the OOM killer.
//!
//! Charging walks the counters of all ancestors. So each CPU charges 64 pages ahead, if they fit, and hands them out one by
//! one. At a limit, the task that needs the page reclaims for itself: 32 pages, so that it doesn't hit the limit again at the
//! next page. [reclaim 2.10; reclaim-6.12 2.10]

use crate::audit::{Paid, Transition};
use crate::core::Core;
use crate::io::{Hope, SeenWrites};
use crate::lru::lruvec::LruList;
use crate::machine::step::{OomReport, Wait};
use crate::memcg::MemcgEvent;
use crate::memory::folio::FolioFlags;
use crate::oom::{OomCause, Relief};
use crate::page_alloc::request::Gfp;
use crate::reclaim::{Reclaim, ReclaimStep, Reclaimer, ScanControl, Why};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{CpuId, MemcgId, MmId, Nanos, Pfn};
use crate::writeback::WritebackReason;
use pageout_rules::balance::SwappinessZero;
use pageout_rules::lru::Lru;

/// Reclaim attempts for one charge before it fails (MAX_RECLAIM_RETRIES).
pub(crate) const RETRIES: u32 = 16;

/// Pages by which those read from full swap may exceed a limit ([`crate::Engine::exchange_full_swap`]). Several threads read at the same time, and each frees its slot only when it has read the page.
const EXCHANGED_MAX: u64 = 8;

/// A charge that did not fit without reclaim.
pub(crate) struct Charge {
    memcg: MemcgId,
    /// One, or those of a huge page, for which a single page is the fallback.
    pages: u64,
    /// Whose page it is to be.
    mm: MmId,
    attempts: u32,
    drained: bool,
    /// Reclaim at the limit of this group.
    reclaim: Option<(MemcgId, Box<Reclaim>)>,
    gfp: Gfp,
    seen_writes: SeenWrites,
    /// It is for a page in swap, which may exceed the limits while swap is full.
    exchanges: bool,
    /// Pages charged while an ancestor was above its `memory.high`: who asked for them reclaims as many before it returns.
    pub(crate) over_high: u64,
    pub(crate) outcome: ChargeOutcome,
}

/// The reclaim that a charge has cost its task.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ChargeOutcome {
    pub(crate) reclaim_calls: u32,
    pub(crate) reclaimed: u64,
}

impl Charge {
    pub(crate) fn in_reclaim(&self) -> bool {
        self.reclaim.is_some()
    }

    /// The page is in swap, and the host lets such pages be exchanged.
    pub(crate) fn set_exchanges(&mut self, exchanges: bool) {
        self.exchanges = exchanges;
    }

    /// The charge's task is to die: reclaim for it ends as soon as it may.
    pub(crate) fn cut_short(&mut self) {
        if let Some((_, call)) = &mut self.reclaim {
            call.cut_short();
        }
    }
}

/// The outcome of one step of a charge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Charged {
    Yes,
    /// A reclaim batch is over; call again.
    Again,
    /// It does not fit, and the charge was not forced.
    No,
    /// Reclaim has to wait for others.
    Wait(Wait),
    /// Every attempt found only pages whose write is in flight; try again when one is written.
    WaitForWriteback,
    /// The task is to die, and needs no page any more.
    Dying,
    Oom(Box<OomReport>),
}

impl Core {
    /// Begins to make room for a page that [`Core::try_charge`] found none for.
    pub(crate) fn charge_begin(&self, memcg: MemcgId, pages: u64, mm: MmId, gfp: Gfp) -> Charge {
        Charge {
            memcg,
            pages,
            mm,
            attempts: 0,
            drained: false,
            reclaim: None,
            gfp: self.mm.gfp_of(mm, gfp),
            seen_writes: self.io.seen_writes(),
            exchanges: false,
            over_high: 0,
            outcome: ChargeOutcome::default(),
        }
    }

    /// Charges a page if it fits without reclaim: from the stock, with a new stock if one fits, or else as a single page. Returns
    /// the number of pages to reclaim for `memory.high`, or the group that is at its limit.
    #[inline]
    pub(crate) fn try_charge(&mut self, memcg: MemcgId) -> Result<u64, MemcgId> {
        if self.stock_take(memcg) {
            return Ok(0);
        }
        self.charge_pages(memcg, self.mm.config.charge_stock, 1)
    }

    /// Charges `used` pages for immediate use, and the rest of `most` for the stock, if all these fit.
    #[inline]
    fn charge_pages(&mut self, memcg: MemcgId, most: u64, used: u64) -> Result<u64, MemcgId> {
        let charges = self.open_charges(Transition::Charge, memcg);
        let charged = self.mm.memcgs.charge(memcg, most, used);
        let Ok(pages) = charged else {
            self.close_charges(charges, Paid::pages(0));
            return charged;
        };
        debug_assert!(pages == most || pages == used, "{pages} pages are charged of {used} to {most}");
        debug_assert!(
            self.mm.memcgs[memcg].usage <= self.mm.memcgs[memcg].max,
            "a group is charged beyond its limit: {} pages of {}",
            self.mm.memcgs[memcg].usage,
            self.mm.memcgs[memcg].max
        );
        self.out.count.charges(1);
        let over_high = if self.mm.memcgs.is_over_high(memcg) { pages } else { 0 };
        if pages > used {
            self.stock_refill(memcg, pages - used);
        }
        self.close_charges(charges, Paid::pages(used as i64));
        self.note_paid(memcg, used);
        Ok(over_high)
    }

    /// Advances a charge until it succeeds, fails, or has done a batch of reclaim.
    #[doc(alias = "try_charge_memcg")]
    pub(crate) fn charge_step(&mut self, charge: &mut Charge) -> Charged {
        loop {
            if let Some((limited, mut call)) = charge.reclaim.take() {
                match self.reclaim_step(&mut call) {
                    ReclaimStep::Again => {
                        charge.reclaim = Some((limited, call));
                        return Charged::Again;
                    }
                    ReclaimStep::Wait(wait) => {
                        charge.reclaim = Some((limited, call));
                        return Charged::Wait(wait);
                    }
                    ReclaimStep::Done(reclaimed) => {
                        charge.outcome.reclaim_calls += 1;
                        charge.outcome.reclaimed += reclaimed;
                        if let Some(end) = self.charge_after_reclaim(charge, limited, reclaimed) {
                            return end;
                        }
                    }
                }
            }
            if self.stock_take_pages(charge.memcg, charge.pages) {
                return Charged::Yes;
            }
            // A single page comes here when no stock fits.
            let is_first = charge.pages > 1 && charge.outcome.reclaim_calls == 0;
            let most = if is_first { self.mm.config.charge_stock.max(charge.pages) } else { charge.pages };
            match self.charge_pages(charge.memcg, most, charge.pages) {
                Ok(over_high) => {
                    charge.over_high = over_high;
                    return Charged::Yes;
                }
                Err(_) if self.mm.is_oom_victim(charge.mm) => return Charged::Dying,
                Err(_) if !charge.gfp.contains(Gfp::DIRECT_RECLAIM) => return Charged::No,
                Err(limited) => {
                    self.mm.memcgs.event(limited, MemcgEvent::Max);
                    if charge.exchanges && self.mm.may_exchange(charge.memcg) {
                        self.charge_beyond_limits(charge.memcg);
                        return Charged::Yes;
                    }
                    let target = self.mm.config.reclaim_batch.max(charge.pages);
                    let by = Reclaimer {
                        may_enter_fs: charge.gfp.contains(Gfp::FS),
                        may_do_io: charge.gfp.contains(Gfp::IO),
                        writes_file: charge.gfp.contains(Gfp::WRITE),
                        ..Reclaimer::new(limited, Why::Limit, self.mm.config.swappiness)
                    };
                    charge.reclaim = Some((limited, Reclaim::new(ScanControl::new(by, target))));
                }
            }
        }
    }

    /// The end of a charge after a reclaim call; `None` if another attempt makes sense.
    fn charge_after_reclaim(
        &mut self,
        charge: &mut Charge,
        limited: MemcgId,
        reclaimed: u64,
    ) -> Option<Charged> {
        if self.mm.memcgs.margin(limited) >= charge.pages || self.mm.is_oom_victim(charge.mm) {
            return None;
        }
        if !charge.drained {
            // Pages may sit charged but unused in the stocks of other CPUs.
            charge.drained = true;
            self.stock_drain_below(limited);
            return None;
        }
        if charge.gfp.contains(Gfp::NORETRY) {
            // The read goes on page by page in a way that may enter the file system, and tmpfs pages can be swapped out for
            // it. [reclaim-6.12 2.10]
            return Some(Charged::No);
        }
        // A single page is sure to fit sooner or later while reclaim makes progress.
        if reclaimed > 0 && charge.pages == 1 {
            return None;
        }
        charge.attempts += 1;
        if charge.attempts <= RETRIES {
            return None;
        }
        if charge.pages > 1 {
            return Some(Charged::No);
        }
        // Killing while written pages are about to become free would be a false OOM. In a group of cgroup v1 that happens on real
        // machines where only files are being written, so it happens here.
        let waits_for_files = self.mm.config.cgroup_version == 2;
        let are_awaited = match waits_for_files {
            true => self.io.has_hopeful_writes() || self.is_flushing(),
            false => self.io.has_hopeful_swap_writes(),
        };
        match self.io.hope(&mut charge.seen_writes, are_awaited) {
            Hope::Wait => {
                charge.attempts = 0;
                return Some(Charged::WaitForWriteback);
            }
            // Pages that were written during the attempts were perhaps scanned too early.
            Hope::Look => {
                charge.attempts = 0;
                return None;
            }
            Hope::None if self.io.may_wait_for_failing(&mut charge.seen_writes) => {
                charge.attempts = RETRIES;
                return Some(Charged::WaitForWriteback);
            }
            Hope::None if self.may_try_failing(&mut charge.seen_writes) => {
                charge.attempts = RETRIES;
                return None;
            }
            Hope::None => {}
        }
        // Dirty pages that reclaim has met among others are no reason for a kill either.
        if waits_for_files
            && !self.io.are_held_up
            && self.mm.memcg_stat_now(limited, Stat::NrDirty) > 0
            && (!self.keeps_failed_writes() || self.io.may_wait(&mut charge.seen_writes))
        {
            self.wakeup_flusher_threads(WritebackReason::Vmscan);
            if self.is_flushing() {
                charge.attempts = 0;
                return Some(Charged::WaitForWriteback);
            }
        }
        self.mm.memcgs.event(limited, MemcgEvent::Oom);
        let (max, attempts) = (self.mm.memcgs[limited].max, charge.attempts - 1);
        let report = |core: &Core| core.oom_report(limited, Some(max), attempts);
        if !self.mm.config.oom_kill {
            // The access fails, which is this machine's form of the kill.
            self.mm.memcgs.event(limited, MemcgEvent::OomKill);
            self.mm.count_node(self.current_node(), Stat::OomKill, 1);
            return Some(Charged::Oom(Box::new(report(self))));
        }
        assert!(
            self.mm.memcgs.is_below(charge.memcg, limited),
            "a group's limit has a process of another killed"
        );
        match self.out_of_memory(limited, |core| OomCause::Allocation(Box::new(report(core)))) {
            Relief::Coming if self.mm.is_oom_victim(charge.mm) => Some(Charged::Dying),
            Relief::Coming => {
                charge.attempts = 0;
                Some(Charged::Wait(self.mm.oom_wait()))
            }
            Relief::None(why) => {
                let report = OomReport { unrelieved: Some(why), ..report(self) };
                Some(Charged::Oom(Box::new(report)))
            }
        }
    }

    pub(crate) fn oom_report(&self, memcg: MemcgId, max: Option<u64>, attempts: u32) -> OomReport {
        let subtree = self.mm.memcgs.subtree(memcg);
        let (mut lists, mut protected) = ([0; 5], 0);
        for &id in &subtree {
            let mut reclaimable = 0;
            for node in self.mm.lruvecs.nodes() {
                let lruvec = &self.mm.lruvecs[self.mm.lruvecs.id(id, node)];
                lists.iter_mut().zip(LruList::ALL).for_each(|(sum, list)| *sum += lruvec.size(list));
                reclaimable += lruvec.evictable();
            }
            protected += self.mm.memcgs.protection(memcg, id).min.min(reclaimable);
        }
        let being_read = self.transfers().filter(|&(pfn, is_write)| {
            !is_write && self.mm.memcgs.is_below(self.mm.memory.folios[pfn].memcg, memcg)
        });
        let is_full = |id: &MemcgId| self.mm.memcgs[*id].swap_usage >= self.mm.memcgs[*id].swap_max;
        let policy = &self.mm.memcgs[memcg].policy;
        let spares_anon = self.mm.config.swappiness == 0
            && (policy.lru == Lru::Generations
                || max.is_some() && policy.balance.swappiness_zero == SwappinessZero::Never);
        let full = self.mm.memcgs.ancestors(memcg).chain(subtree).find(is_full);
        OomReport {
            memcg,
            path: self.mm.memcgs.path(memcg),
            usage: self.mm.memcgs[memcg].usage,
            max,
            bound: None,
            lists,
            page_tables: self.page_tables(max.map(|_| memcg)),
            being_read: being_read.count() as u64,
            held: 0,
            protected,
            has_swap: self.mm.memory.swap.total_pages() > 0,
            free_swap: self.mm.memcgs.free_swap(memcg, self.mm.memory.swap.free_pages()),
            spares_anon,
            swap_max: full.map(|id| (self.mm.memcgs.path(id), self.mm.memcgs[id].swap_max)),
            failed_writes: self.io.writes_failed(),
            swap_fails: self.io.swap_fails(),
            stale: self
                .mm
                .is_active_list_out_of_reach(memcg)
                .then(|| Nanos(self.by.now.0 - self.mm.last_root_flush.0)),
            attempts,
            unrelieved: None,
        }
    }

    /// Pages of page tables of a group and its descendants, or of the machine.
    fn page_tables(&self, memcg: Option<MemcgId>) -> u64 {
        let pages = match memcg {
            Some(memcg) => self.mm.memcg_stat_now(memcg, Stat::NrPageTablePages),
            None => self.mm.vmstat(Stat::NrPageTablePages),
        };
        pages as u64
    }

    /// Charges a page on behalf of who can't wait: at a limit it is passed over, which still counts as having met it.
    pub(crate) fn charge_now(&mut self, memcg: MemcgId) {
        if let Err(limited) = self.try_charge(memcg) {
            debug_assert!(
                self.mm.memcgs.is_below(memcg, limited),
                "a charge meets the limit of a group that it does not concern"
            );
            self.mm.memcgs.event(limited, MemcgEvent::Max);
            self.charge_beyond_limits(memcg);
        }
    }

    /// Charges a page whatever the limits are.
    fn charge_beyond_limits(&mut self, memcg: MemcgId) {
        self.out.count.charges(1);
        let charges = self.open_charges(Transition::Charge, memcg);
        self.mm.memcgs.charge_beyond_limits(memcg, 1);
        self.close_charges(charges, Paid::pages(1));
        self.note_paid(memcg, 1);
    }

    /// Takes one of the pages charged ahead for a group, if there is one.
    #[doc(alias = "consume_stock")]
    pub(crate) fn stock_take(&mut self, memcg: MemcgId) -> bool {
        self.stock_take_pages(memcg, 1)
    }

    /// Takes several of them, if there are as many.
    #[inline]
    fn stock_take_pages(&mut self, memcg: MemcgId, pages: u64) -> bool {
        let charges = self.open_charges(Transition::Charge, memcg);
        let stock = &mut self.mm.cpus[self.by.cpu.index()].stock;
        let has = stock.memcg == memcg && stock.pages >= pages;
        let taken = if has { pages } else { 0 };
        stock.pages -= taken;
        self.close_charges(charges, Paid::pages(taken as i64));
        if has {
            self.note_paid(memcg, pages);
        }
        has
    }

    /// The group of a folio was charged for it: the folio says so, and is uncharged when it goes.
    #[inline(always)]
    pub(crate) fn folio_charged(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        self.assert_paid(folio.memcg, folio.pages());
        self.mm.memory.folios[pfn].set(FolioFlags::CHARGED);
    }

    /// A CPU keeps the stock of one group only, and no more than a batch of it.
    #[doc(alias = "refill_stock")]
    pub(crate) fn stock_refill(&mut self, memcg: MemcgId, pages: u64) {
        let charges = self.open_charges(Transition::Refill, memcg);
        if self.mm.cpus[self.by.cpu.index()].stock.memcg != memcg {
            self.mm.stock_drain(self.by.cpu);
        }
        let stock = &mut self.mm.cpus[self.by.cpu.index()].stock;
        debug_assert!(stock.memcg == memcg || stock.pages == 0, "a CPU holds pages of two groups");
        stock.memcg = memcg;
        stock.pages += pages;
        let held = stock.pages;
        debug_assert!(
            held <= self.mm.memcgs[memcg].usage,
            "a CPU holds {held} pages that a group has paid for, which pays for {}",
            self.mm.memcgs[memcg].usage
        );
        if held > self.mm.config.charge_stock {
            self.mm.stock_drain(self.by.cpu);
        }
        self.close_charges(charges, Paid::pages(-(pages as i64)));
        debug_assert!(
            self.mm.cpus[self.by.cpu.index()].stock.pages <= self.mm.config.charge_stock,
            "a CPU holds more than its stock"
        );
    }

    /// Gives back what all CPUs have charged ahead to a group or its descendants; no other stock counts towards its limit.
    pub(crate) fn stock_drain_below(&mut self, memcg: MemcgId) {
        for cpu in (0..self.mm.config.cpus).map(CpuId) {
            // Whole pages of bytes go to the pages first.
            if self.mm.memcgs.is_below(self.mm.cpus[cpu.index()].bytes.memcg, memcg) {
                self.objcg_drain(cpu);
            }
            if self.mm.memcgs.is_below(self.mm.cpus[cpu.index()].stock.memcg, memcg) {
                self.mm.stock_drain(cpu);
            }
        }
    }

    /// Undoes a charge that turned out not to be needed.
    pub(crate) fn charge_cancel(&mut self, memcg: MemcgId, pages: u64) {
        let charges = self.open_charges(Transition::Uncharge, memcg);
        match pages {
            1 => self.stock_refill(memcg, 1),
            _ => self.mm.memcgs.uncharge(memcg, pages),
        }
        self.close_charges(charges, Paid::pages(-(pages as i64)));
    }
}

impl State {
    /// Returns true if a page in swap may exceed the limits of a group: it can't have the place of another page, which would need a slot.
    fn may_exchange(&self, memcg: MemcgId) -> bool {
        let fits = |id| self.memcgs[id].usage < self.memcgs[id].max.saturating_add(EXCHANGED_MAX);
        self.memcgs.free_swap(memcg, self.memory.swap.free_pages()) == 0
            && self.memcgs.ancestors(memcg).all(fits)
    }

    /// A page was uncharged: a group pays for what is on its lists still, and for its kernel memory.
    #[inline]
    pub(crate) fn assert_lists_paid(&self, memcg: MemcgId) {
        if cfg!(debug_assertions) {
            let group = &self.memcgs[memcg];
            let of_node = |node| {
                let lruvec = &self.lruvecs[self.lruvecs.id(memcg, node)];
                lruvec.evictable() + lruvec.size(LruList::Unevictable)
            };
            let listed: u64 = self.lruvecs.nodes().map(of_node).sum();
            assert!(
                group.usage >= listed + group.kmem,
                "{} pays for {} pages, and has {listed} on lists and {} of the kernel's",
                group.name,
                group.usage,
                group.kmem
            );
        }
    }

    #[doc(alias = "drain_all_stock")]
    pub(crate) fn stock_drain(&mut self, cpu: CpuId) {
        let stock = &mut self.cpus[cpu.index()].stock;
        let (memcg, pages) = (stock.memcg, std::mem::take(&mut stock.pages));
        if pages > 0 {
            self.memcgs.uncharge(memcg, pages);
            self.assert_lists_paid(memcg);
        }
    }
}
