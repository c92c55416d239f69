//! Misses: the way of a page from absent to accessed.
//!
//! ```text
//!   find ──► Ready ───────────────────────────────────────────────► finish: map or mark, Done
//!    ▲  └──► InFlight ── wait for the transfer ──┐
//!    │  └──► Absent, or marked ── read_ahead ────┤                  (regular files)
//!    │  └──► Absent ── allocate ── charge (reclaims at a limit) ── fill: cache, refault, add batch, start reading
//!    └───────────────────────────────────────────┴───────────────────────┘
//! ```
//! After every wait the task looks for the page again from the start. While it slept, another task may have read the page in, or reclaim
//! may have evicted it. A task that reads a page in holds a reference until it has used the page. So no other task evicts the page before
//! that. [reclaim-6.12 M]

use crate::access::hits::Object;
use crate::access::huge::LargeFault;
use crate::access::task::{Current, Task};
use crate::audit::{Paid, Transition};
use crate::core::Core;
use crate::lru::AddedFor;
use crate::machine::step::{Access, AccessError, IoWait, OomReport, Served, Step, Wait};
use crate::memcg::charge::{Charge, ChargeOutcome, Charged};
use crate::memory::folio::FolioFlags;
use crate::memory::mm::Backing;
use crate::memory::open_file::NO_PAGE;
use crate::memory::table::{Entry, SwapEntry};
use crate::mthp::MthpStat;
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::slow_path::{Allocated, Allocation, AllocationOutcome};
use crate::page_cache::nodes_of;
use crate::page_cache::readahead::Readahead;
use crate::state::State;
use crate::story::{Filled, PageEvent};
use crate::swap::readahead::SwapReadahead;
use crate::units::{FileId, MemcgId, MmId, ObjectId, PAGE_SIZE, Pfn};
use std::ops::Range;

/// An access in progress.
#[derive(Default)]
pub(crate) struct Attempt {
    pub(super) object: ObjectId,
    pub(super) page: u64,
    pub(super) write: bool,
    /// Bytes that its call wants, from the beginning of the page.
    pub(super) wanted: u32,
    /// Bytes of them before the first that it really wants.
    pub(super) offset: u16,
    /// The charge of its page, while that takes more than one step.
    pub(super) charge: Option<Box<Charge>>,
    /// The allocation of a frame, likewise.
    pub(super) allocation: Option<Box<Allocation>>,
    /// A frame for the page, until the page has contents. It is charged before everything else that the page needs is present.
    pub(super) frame: Option<Pfn>,
    pub(super) charged: ChargeOutcome,
    /// Frames of the kernel's own, until there are as many as the access needs.
    pub(super) kernel_pages: Vec<Pfn>,
    /// Pages to be read ahead before anything else.
    pub(super) readahead: Option<Readahead>,
    /// Swapped pages to be read ahead before anything else.
    pub(super) swap_readahead: Option<SwapReadahead>,
    /// The page that this task has had read in.
    pub(super) held: Option<Pfn>,
    pub(super) progress: Progress,
}

/// How far an access has come, and what has happened on its way. It is another with each access.
#[derive(Default)]
pub(crate) struct Progress {
    /// Readahead has had its chance to bring the page in: from now on it is read by itself.
    pub(super) has_read_ahead: bool,
    /// The mark of the page has been seen to.
    pub(super) has_seen_mark: bool,
    /// The page is held while those that its mark announces are read.
    pub(super) holds_marked: bool,
    /// The cached pages around the page have been mapped.
    pub(super) has_faulted_around: bool,
    /// If the page comes with others around it as a large folio of anonymous memory.
    pub(super) large: LargeFault,
    /// The order of the large folio that a swap-in is getting; 0: none any more.
    pub(super) swap_in_order: Option<u8>,
    /// The attempt is to dirty a page of a file, and its task may have dirtied too many.
    pub(super) is_throttled: bool,
    /// A read submitted for the access has refaulted pages, which would still be in memory with a little more memory.
    pub(super) submits_refault: bool,
    pub(super) started_read: bool,
    /// This very write has created the page, so the write counts as its first use.
    pub(super) created: bool,
    /// The order of the folio that a write is about to create; smaller ones are tried after it.
    pub(super) write_order: Option<u8>,
    /// A write through a descriptor, to a page that was there when it began.
    pub(super) was_there: bool,
    /// The page is in swap, and its slot may be exchanged for that of another ([`crate::Engine::exchange_full_swap`]).
    exchanges: bool,
    /// What the allocation of a frame has cost.
    paid: AllocationOutcome,
}

impl Attempt {
    /// Begins an access where the last one was.
    pub(crate) fn begin(&mut self, access: Access) {
        debug_assert!(self.charge.is_none() && self.allocation.is_none());
        debug_assert!(self.frame.is_none() && self.readahead.is_none());
        debug_assert!(self.held.is_none(), "the last access has let go of its page");
        Access {
            object: self.object,
            page: self.page,
            write: self.write,
            wanted: self.wanted,
            offset: self.offset,
        } = access;
        self.progress = Progress::default();
    }

    /// A fault that has waited for its page is taken again, and finds more pages around it.
    pub(super) fn will_retry(&mut self) {
        self.progress.has_faulted_around = false;
        self.progress.has_seen_mark = true;
    }

    /// The fault of the attempt was one on a page that is mapped (a NUMA hint fault).
    pub(super) fn was_hint_fault(&mut self) {
        self.progress.has_faulted_around = true;
        self.progress.has_seen_mark = true;
    }

    /// Begins advice: pages are read ahead, and none of them is accessed.
    pub(super) fn begin_advice(&mut self, object: ObjectId, readahead: Option<Readahead>) {
        self.begin(Access::new(object, NO_PAGE, false));
        self.readahead = readahead;
    }

    /// Begins advice on swapped pages.
    pub(super) fn begin_swap_advice(&mut self, object: ObjectId, pages: SwapReadahead) {
        self.begin(Access::new(object, NO_PAGE, false));
        self.swap_readahead = Some(pages);
    }

    /// Pages that its call still wants, this one included.
    pub(super) fn pages_wanted(&self) -> u64 {
        u64::from(self.wanted).div_ceil(PAGE_SIZE)
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.object
    }

    /// Returns true if its page takes reclaim: from the first batch until it is had and charged, between reclaim calls, too. Whatever has
    /// become of the page by then, this is brought to its end.
    pub(super) fn is_reclaiming(&self) -> bool {
        self.charge.is_some() || self.allocation.is_some()
    }

    /// Returns true if it is in the middle of getting a page, or of what it reads ahead.
    #[inline]
    fn is_under_way(&self) -> bool {
        self.is_reclaiming() || self.readahead.is_some() || self.swap_readahead.is_some()
    }

    /// The task of the attempt is to die: reclaim for it ends as soon as it may.
    pub(super) fn cut_short(&mut self) {
        self.charge.iter_mut().for_each(|charge| charge.cut_short());
        self.allocation.iter_mut().for_each(|allocation| allocation.cut_short());
    }

    pub(crate) fn in_reclaim(&self) -> bool {
        self.charge.as_ref().is_some_and(|charge| charge.in_reclaim())
            || self.allocation.as_ref().is_some_and(|allocation| allocation.in_reclaim())
    }
}

/// Where the accessed page is.
pub(super) enum Found {
    /// In memory: all that is left is to map or mark it.
    Ready(Pfn),
    /// The page of zeroes serves a first read.
    Zeroes,
    /// In a device's queue: its read or write is in flight.
    InFlight(Pfn),
    Absent(Source),
}

/// The source of an absent page's contents.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A block of a regular file.
    File(FileId, u64),
    /// A write of the whole page of a regular file, so that nothing need be read.
    Overwritten(FileId, u64),
    /// New anonymous memory, filled from nothing.
    NewAnon,
    NewTmpfs(FileId, u64),
    Swap(SwapEntry),
}

/// Until when an access pauses.
pub(super) enum Pause {
    /// A batch of reclaim is over, and others may have their turn.
    Reclaim,
    Io(IoWait),
    /// Reclaim waits for others.
    Wait(Wait),
}

/// Why a page can't be brought in immediately.
pub(super) enum Stop {
    Pause(Pause),
    Oom(Box<OomReport>),
    /// There is no free memory for a page that is not needed immediately.
    NoRoom,
    /// The task was killed, and needs no page any more.
    Dying,
}

impl Current<'_> {
    /// Takes a task's access as far as it goes without waiting.
    pub(crate) fn attempt(&mut self) -> Step {
        let Task { read_failed, attempt, .. } = &*self.task;
        if (*read_failed || attempt.page == NO_PAGE || attempt.progress.is_throttled)
            && let Some(step) = self.hold_up()
        {
            return step;
        }
        loop {
            let Task { attempt, stack, .. } = &*self.task;
            let (is_under_way, mut lacks_kernel_pages) = (attempt.is_under_way(), stack.is_none());
            if matches!(self.task.accessed(), Object::Mapping { .. }) {
                lacks_kernel_pages |= self.lacks_page_tables();
                if !lacks_kernel_pages {
                    self.fault_around();
                }
            }
            let brought_in = if lacks_kernel_pages || is_under_way {
                self.go_on(lacks_kernel_pages)
            } else {
                match self.task.find(self.core) {
                    Found::Absent(source @ Source::File(..)) => match self.begin_readahead() {
                        Some(batch) => self.read_ahead(batch),
                        None => self.bring_in(Some(source)),
                    },
                    Found::Absent(Source::Swap(entry))
                        if self.core.mm.config.page_cluster > 0 && self.begin_swap_readahead(entry) =>
                    {
                        Ok(())
                    }
                    Found::Absent(Source::NewAnon) if self.wants_large_anon() => self.bring_in_large_anon(),
                    Found::Absent(Source::Swap(entry)) if self.wants_large_swap_in(entry) => {
                        self.bring_in_large_swap()
                    }
                    Found::Absent(source) => self.bring_in(Some(source)),
                    Found::Ready(pfn) | Found::InFlight(pfn) if self.meets_mark(pfn) => Ok(()),
                    found @ (Found::Ready(_) | Found::Zeroes) => return self.finish(found),
                    Found::InFlight(pfn) => {
                        self.hold_awaited(pfn);
                        let awaited = self.core.wait_for_folio(pfn, self.id);
                        self.task.attempt.will_retry();
                        Err(Stop::Pause(Pause::Io(awaited)))
                    }
                }
            };
            let pause = match brought_in {
                Ok(()) => continue,
                Err(Stop::Pause(pause)) => pause,
                Err(stop) => return self.end_without(stop),
            };
            return self.suspend(pause);
        }
    }

    /// What comes before an access, if anything: its read has failed, it is none, or its task may have to wait for having dirtied too
    /// many pages.
    #[cold]
    fn hold_up(&mut self) -> Option<Step> {
        if std::mem::take(&mut self.task.read_failed) {
            self.let_go();
            return Some(Step::Done(Served::Failed(AccessError::Io)));
        }
        let attempt = &self.task.attempt;
        if attempt.page == NO_PAGE {
            return Some(self.advise());
        }
        if attempt.progress.is_throttled { self.throttle() } else { None }
    }

    /// Goes on with what the access has begun, or needs before anything else.
    #[inline(never)]
    fn go_on(&mut self, lacks_kernel_pages: bool) -> Result<(), Stop> {
        let attempt = &self.task.attempt;
        if lacks_kernel_pages {
            return self.provide_kernel_pages();
        }
        if self.is_large_fault() {
            return self.bring_in_large_anon();
        }
        if attempt.progress.swap_in_order.is_some_and(|order| order > 0) {
            return self.bring_in_large_swap();
        }
        if attempt.readahead.is_some() {
            return self.go_on_reading_ahead();
        }
        if attempt.swap_readahead.is_some() {
            return self.swap_ahead();
        }
        match self.task.find(self.core) {
            Found::Absent(source) => self.bring_in(Some(source)),
            // Another task has brought the page in since this one began to reclaim for it. There is no way out of a
            // reclaim call but its end.
            Found::Ready(_) | Found::Zeroes | Found::InFlight(_) => self.bring_in(None),
        }
    }

    /// An access can't have its page.
    #[cold]
    fn end_without(&mut self, stop: Stop) -> Step {
        match stop {
            Stop::Oom(report) => {
                self.abandon_access();
                Step::Done(Served::Failed(AccessError::Oom(report)))
            }
            Stop::Dying => self.die(),
            Stop::NoRoom => unreachable!("a page that is needed is charged as long as that helps"),
            Stop::Pause(_) => unreachable!("a pause is no end"),
        }
    }

    /// Goes on with advice.
    #[cold]
    fn advise(&mut self) -> Step {
        let attempt = &self.task.attempt;
        let access = Access::new(attempt.object, 0, false);
        if attempt.readahead.is_some()
            && let Err(Stop::Pause(pause)) = self.go_on_reading_ahead()
        {
            return self.suspend(pause);
        }
        if self.task.attempt.swap_readahead.is_some()
            && let Err(Stop::Pause(pause)) = self.swap_ahead()
        {
            return self.suspend(pause);
        }
        self.return_to_user(access, Served::Advised)
    }

    fn suspend(&mut self, pause: Pause) -> Step {
        self.task.suspend_access();
        match pause {
            Pause::Reclaim => Step::Again,
            Pause::Io(awaited) => Step::Wait(Wait::Io(awaited)),
            Pause::Wait(wait) => self.wait(wait),
        }
    }

    /// Allocates a page and charges it, and if it is absent still, starts filling it.
    #[inline(never)]
    fn bring_in(&mut self, source: Option<Source>) -> Result<(), Stop> {
        let memcg = self.memcg();
        let gfp = if self.task.attempt.write { self.gfp_to_write() } else { Gfp::KERNEL };
        if let Some(source) = source
            && self.may_create_large(source)
        {
            return self.bring_in_large(source, gfp);
        }
        self.task.attempt.progress.exchanges =
            self.core.mm.exchanges_full_swap && matches!(source, Some(Source::Swap(_)));
        let Some(pfn) = self.prepare(memcg, source, gfp)? else { return Ok(()) };
        let Some(source) = source else {
            self.give_back();
            return Ok(());
        };
        // The charge may have reclaimed, which takes pages away but brings none in.
        debug_assert!(matches!(self.task.find(self.core), Found::Absent(_)));
        let Attempt { frame, charged, .. } = &mut self.task.attempt;
        let charged = *charged;
        *frame = None;
        if self.core.is_telling() {
            self.tell_filled(pfn, source, charged);
        }
        self.fill(pfn, source);
        if self.core.mm.memory.folios[pfn].has(FolioFlags::LOCKED) {
            self.task.attempt.will_retry();
            let is_swapped = matches!(source, Source::Swap(_));
            Err(Stop::Pause(Pause::Io(if is_swapped { IoWait::SwapRead } else { IoWait::FileRead })))
        } else {
            Ok(())
        }
    }

    /// Gets what a page needs: a frame, its charge, and nodes of the index that will hold it. Returns `None` if other tasks have used
    /// these up meanwhile. Without a source, it completes the work in progress.
    #[inline(always)]
    pub(super) fn prepare(
        &mut self,
        memcg: MemcgId,
        source: Option<Source>,
        gfp: Gfp,
    ) -> Result<Option<Pfn>, Stop> {
        match source {
            Some(source) => self.provide_slab(memcg, source)?,
            None if self.task.attempt.allocation.is_some() => {
                let (pfn, _) = self.allocate_slowly()?;
                self.core.free_folio(pfn);
                return Ok(None);
            }
            None => {}
        }
        let mut request = Request::movable(gfp, self.core.current_node());
        if self.core.mm.memory.mm(self.task.mm()).placement.is_some() {
            self.place_request(&mut request);
        }
        let pfn = self.allocate(memcg, &request)?;
        if !self.core.mm.memory.folios[pfn].has(FolioFlags::CHARGED) {
            // The group to charge is decided when the charge begins: while the charge continues, a slot that is read ahead may get another
            // owner.
            if self.task.attempt.charge.is_none() {
                self.core.mm.memory.folios[pfn].memcg = memcg;
            }
            let payer = self.core.mm.memory.folios[pfn].memcg;
            let charged = self.charge_page(payer, gfp);
            let charged = charged.map_err(|stop| self.give_up(stop))?;
            self.task.attempt.charged = charged;
            self.core.folio_charged(pfn);
            self.core.note_updates(payer, 1);
        }
        let has_room = self.provide_bytes(memcg, source, gfp);
        if !has_room.map_err(|stop| self.give_up(stop))? {
            self.give_back();
            return Ok(None);
        }
        Ok(Some(pfn))
    }

    /// Gets what a large folio of a file needs: a block of frames, its charge, and nodes of the index. Returns `None` if other tasks have used these up
    /// meanwhile. Errors: `NoRoom` without effect, as smaller folios do; and true if the charge was refused.
    #[doc(alias = "filemap_alloc_folio")]
    #[cold]
    pub(super) fn prepare_large(
        &mut self,
        memcg: MemcgId,
        file: FileId,
        pages: Range<u64>,
        gfp: Gfp,
    ) -> Result<Option<Pfn>, (Stop, bool)> {
        let order = (pages.end - pages.start).ilog2() as u8;
        self.provide_slab_of(memcg, file, pages.clone()).map_err(|stop| (stop, false))?;
        let mut request = Request { order, ..Request::movable(gfp, self.core.current_node()) };
        if self.core.mm.memory.mm(self.task.mm()).placement.is_some() {
            self.place_request(&mut request);
        }
        let pfn = self.allocate(memcg, &request).map_err(|stop| (stop, false))?;
        if !self.core.mm.memory.folios[pfn].has(FolioFlags::CHARGED) {
            if self.task.attempt.charge.is_none() {
                self.core.mm.memory.folios[pfn].memcg = memcg;
            }
            let payer = self.core.mm.memory.folios[pfn].memcg;
            let charged = self.charge_slowly(payer, 1 << order, gfp);
            if matches!(charged, Err(Stop::NoRoom)) && self.core.mm.memory.file(file).is_tmpfs() {
                self.core.count_mthp(self.core.current_node(), order, MthpStat::ShmemFallbackCharge);
            }
            let charged = charged.map_err(|stop| (self.give_up(stop), true))?;
            self.task.attempt.charged = charged;
            self.core.folio_charged(pfn);
            self.core.note_updates(payer, 1);
        }
        for page in nodes_of(&pages) {
            let has_room = self.provide_bytes(memcg, Some(Source::File(file, page)), gfp);
            if !has_room.map_err(|stop| (self.give_up(stop), false))? {
                self.give_back();
                return Ok(None);
            }
        }
        if !self.core.mm.index_has_slab_for(file, &pages) {
            self.give_back();
            return Ok(None);
        }
        Ok(Some(pfn))
    }

    /// Takes a frame, which stays in the task's hands until something is in it.
    #[inline(always)]
    pub(super) fn allocate(&mut self, memcg: MemcgId, request: &Request) -> Result<Pfn, Stop> {
        let attempt = &mut self.task.attempt;
        if let Some(pfn) = attempt.frame {
            return Ok(pfn);
        }
        if attempt.allocation.is_none()
            && let Some(pfn) = self.core.alloc_pages(request, memcg)
        {
            self.core.mm.memory.folios[pfn].refs = 1;
            attempt.frame = Some(pfn);
            return Ok(pfn);
        }
        self.allocate_with_effort(memcg, request)
    }

    /// Takes a frame where no zone has a page to spare, or goes on with such an allocation.
    #[cold]
    fn allocate_with_effort(&mut self, memcg: MemcgId, request: &Request) -> Result<Pfn, Stop> {
        let mut pfn = None;
        if self.task.attempt.allocation.is_some() {
            match self.allocate_slowly() {
                Ok((allocated, is_for)) if is_for.is_like(request) => pfn = Some(allocated),
                // Others have provided what it was for.
                Ok((allocated, _)) => self.core.free_folio(allocated),
                Err(Stop::NoRoom) if !request.may_fail() => {}
                Err(stop) => return Err(stop),
            }
            pfn = pfn.or_else(|| self.core.alloc_pages(request, memcg));
        }
        let pfn = match pfn {
            Some(pfn) => pfn,
            None => {
                self.begin_allocation(memcg, request);
                self.allocate_slowly()?.0
            }
        };
        self.core.mm.memory.folios[pfn].refs = 1;
        self.task.attempt.frame = Some(pfn);
        Ok(pfn)
    }

    /// No zone has a page to spare: an allocation begins that may take some time.
    #[cold]
    fn begin_allocation(&mut self, memcg: MemcgId, request: &Request) {
        let mut allocation = self.core.allocation(*request, memcg, Some(self.task.mm()));
        allocation.set_exchanges(self.task.attempt.progress.exchanges);
        self.task.attempt.allocation = Some(match self.core.spare_allocation.take() {
            Some(mut spare) => {
                *spare = allocation;
                spare
            }
            None => Box::new(allocation),
        });
    }

    /// Goes on with an allocation, and returns what it got and for what.
    #[cold]
    fn allocate_slowly(&mut self) -> Result<(Pfn, Request), Stop> {
        let begun = self.task.attempt.allocation.take();
        let mut allocation = begun.expect("it was begun");
        let pause = loop {
            break match self.core.allocation_step(&mut allocation) {
                Allocated::Page(pfn) => {
                    self.task.attempt.progress.paid = allocation.outcome;
                    let request = allocation.request;
                    self.core.spare_allocation = Some(allocation);
                    return Ok((pfn, request));
                }
                Allocated::Oom(report) => return Err(Stop::Oom(report)),
                Allocated::Dying => return Err(Stop::Dying),
                Allocated::Nothing if allocation.request.may_fail() => {
                    return Err(Stop::NoRoom);
                }
                Allocated::Nothing => {
                    // There is no alternative: the task needs the memory, whatever reclaim has to enter for it.
                    allocation.insist();
                    continue;
                }
                Allocated::Again => Pause::Reclaim,
                Allocated::Wait(wait) => Pause::Wait(wait),
                Allocated::WaitForWriteback => {
                    self.core.wait_for_any_write(self.id);
                    Pause::Io(IoWait::Writeback)
                }
            };
        };
        self.task.attempt.allocation = Some(allocation);
        Err(Stop::Pause(pause))
    }

    /// The page is not needed, or can't be paid for.
    #[inline]
    pub(super) fn give_back(&mut self) {
        let Attempt { frame, kernel_pages, .. } = &self.task.attempt;
        if frame.is_some() || !kernel_pages.is_empty() {
            self.give_back_what_is_left();
        }
    }

    #[cold]
    fn give_back_what_is_left(&mut self) {
        if let Some(pfn) = self.task.attempt.frame.take() {
            let folio = &mut self.core.mm.memory.folios[pfn];
            folio.refs -= 1;
            if folio.has(FolioFlags::CHARGED) {
                folio.clear(FolioFlags::CHARGED);
                let (memcg, pages) = (folio.memcg, folio.pages());
                let charges = self.core.open_charges(Transition::GiveBack, memcg);
                self.core.charge_cancel(memcg, pages);
                self.core.close_charges(charges, Paid::pages(-(pages as i64)));
            }
            self.core.free_folio(pfn);
        }
        if !self.task.attempt.kernel_pages.is_empty() {
            self.give_kernel_pages_back();
        }
    }

    /// Gives back all that an access has got so far, if it ends here.
    pub(super) fn give_up(&mut self, stop: Stop) -> Stop {
        if matches!(stop, Stop::Oom(_) | Stop::NoRoom | Stop::Dying) {
            self.give_back();
        }
        stop
    }

    #[inline]
    pub(super) fn charge_page(&mut self, memcg: MemcgId, gfp: Gfp) -> Result<ChargeOutcome, Stop> {
        let Task { attempt, high_debt, .. } = &mut *self.task;
        if attempt.charge.is_none()
            && let Ok(over_high) = self.core.try_charge(memcg)
        {
            *high_debt += over_high;
            return Ok(ChargeOutcome::default());
        }
        self.charge_slowly(memcg, 1, gfp)
    }

    /// Begins a charge that takes reclaim, or goes on with it.
    #[cold]
    pub(super) fn charge_slowly(
        &mut self,
        memcg: MemcgId,
        pages: u64,
        gfp: Gfp,
    ) -> Result<ChargeOutcome, Stop> {
        let (begun, mm) = (self.task.attempt.charge.take(), self.task.mm());
        let mut charge = begun.unwrap_or_else(|| {
            let mut charge = self.core.charge_begin(memcg, pages, mm, gfp);
            charge.set_exchanges(self.task.attempt.progress.exchanges);
            Box::new(charge)
        });
        let pause = match self.core.charge_step(&mut charge) {
            Charged::Yes => {
                self.task.high_debt += charge.over_high;
                return Ok(charge.outcome);
            }
            Charged::No => return Err(Stop::NoRoom),
            Charged::Oom(report) => return Err(Stop::Oom(report)),
            Charged::Dying => return Err(Stop::Dying),
            Charged::Again => Pause::Reclaim,
            Charged::Wait(wait) => Pause::Wait(wait),
            Charged::WaitForWriteback => {
                self.core.wait_for_any_write(self.id);
                Pause::Io(IoWait::Writeback)
            }
        };
        self.task.attempt.charge = Some(charge);
        Err(Stop::Pause(pause))
    }

    #[cold]
    pub(super) fn tell_filled(&mut self, pfn: Pfn, source: Source, charged: ChargeOutcome) {
        let with = match source {
            Source::File(..) => Filled::File,
            Source::Overwritten(..) => Filled::Overwritten,
            Source::NewAnon => Filled::Anon,
            Source::NewTmpfs(..) => Filled::Tmpfs,
            Source::Swap(_) => Filled::Swap,
        };
        let Task { attempt, .. } = &*self.task;
        let page = self.task.accessed().page_name(attempt.page, &self.core.mm.memory);
        let reclaim_calls = charged.reclaim_calls + attempt.progress.paid.reclaim_calls;
        let reclaimed = charged.reclaimed + attempt.progress.paid.reclaimed;
        self.core.tell_filled(pfn, page, PageEvent::Filled { with, task: self.id, reclaim_calls, reclaimed });
    }

    /// Returns true if a fault in a mapping says that the page will be used again.
    #[inline(always)]
    fn is_fault_a_use(&self, mm: MmId, vma: usize) -> bool {
        let space = self.core.mm.memory.mm(mm);
        let recency = self.core.mm.memcgs[space.memcg].policy.harvest.recency;
        space.vmas[vma].has_recency(&self.core.mm.memory.open_files, recency)
    }

    /// What the page is brought in for: a fault says that it will be used again, where its mapping has recency.
    #[inline(always)]
    pub(super) fn added_for(&self) -> AddedFor {
        match *self.task.accessed() {
            Object::Mapping { mm, vma, .. } if self.is_fault_a_use(mm, vma) => AddedFor::Fault,
            Object::Mapping { .. } | Object::File { .. } => AddedFor::Other,
        }
    }
}

impl Task {
    /// Looks for the page of the access in progress.
    #[inline(always)]
    pub(super) fn find(&self, core: &Core) -> Found {
        let Attempt { page, write, .. } = self.attempt;
        match *self.accessed() {
            Object::File { file, partial_writes, .. } => match core.mm.find_cached(file, page, write) {
                Found::Absent(Source::File(file, page)) if write && !partial_writes => {
                    Found::Absent(Source::Overwritten(file, page))
                }
                found => found,
            },
            Object::Mapping { mm, vma, start, .. } => {
                let space = core.mm.memory.mm(mm);
                let entry = space.table.word(start + page);
                if entry.is_zero_page() && !write {
                    return Found::Zeroes;
                }
                match entry.decode() {
                    Entry::Present(pfn) if !entry.is_zero_page() => Found::Ready(pfn),
                    Entry::Swap(entry) => core.mm.find_swapped(entry, false),
                    _ => match space.vmas[vma].backing {
                        Backing::File(file) => core.mm.find_cached(file, page, true),
                        Backing::Anon if write => Found::Absent(Source::NewAnon),
                        Backing::Anon => Found::Zeroes,
                    },
                }
            }
        }
    }
}

impl State {
    /// `creates`: a hole of a tmpfs file becomes a page; else it reads as zeroes.
    #[inline(always)]
    fn find_cached(&self, file: FileId, page: u64, creates: bool) -> Found {
        let is_tmpfs = self.memory.file(file).is_tmpfs();
        let word = self.memory.file(file).index.word(page);
        match word.decode() {
            Entry::Present(pfn) if word.is_plain() => Found::Ready(pfn),
            Entry::Present(pfn) => Found::InFlight(pfn),
            Entry::Swap(entry) => self.find_swapped(entry, true),
            _ if !is_tmpfs => Found::Absent(Source::File(file, page)),
            _ if creates => Found::Absent(Source::NewTmpfs(file, page)),
            _ => Found::Zeroes,
        }
    }

    /// A swapped page may still, or again, be in the swap cache. tmpfs has to move it out of there, and can't while a write is in
    /// flight.
    #[inline(never)]
    fn find_swapped(&self, entry: SwapEntry, is_tmpfs: bool) -> Found {
        match self.memory.swap.cached(entry) {
            None => Found::Absent(Source::Swap(entry)),
            Some(pfn) => {
                let folio = &self.memory.folios[pfn];
                let busy = folio.has(FolioFlags::LOCKED) || is_tmpfs && folio.has(FolioFlags::WRITEBACK);
                if busy { Found::InFlight(pfn) } else { Found::Ready(pfn) }
            }
        }
    }
}
