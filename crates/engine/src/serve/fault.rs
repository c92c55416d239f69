//! Misses: the way of a page from absent to accessed.
//!
//! ```text
//!   find ──► Ready ───────────────────────────────────────────────► finish: map or mark, Done
//!    ▲  └──► InFlight ── wait for the transfer ──┐
//!    │  └──► Absent ── charge (reclaims at a limit) ── fill: frame, cache, refault, add batch, start reading
//!    └───────────────────────────────────────────┴───────────────────────┘
//! ```
//! After every wait the page is looked for again from the start: while this task slept, another one may have read the page
//! in or reclaim may have taken it away. A task that reads a page in holds a reference to it until it has used it, so its
//! own page can't be taken from under it. [6.12 M]

use crate::config::SwapKind;
use crate::machine::op::Op;
use crate::machine::step::{Access, AccessError, OomReport, Served, Step, Wait};
use crate::memcg::charge::{Charge, Charged};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::mm::Backing;
use crate::memory::table::{Entry, SwapEntry, Word};
use crate::serve::access::Object;
use crate::serve::engine::Engine;
use crate::stat::Stat;
use crate::story::PageEvent;
use crate::units::{FileId, MemcgId, MmId, ObjectId, Pfn, TaskId};

/// An access under way.
#[derive(Default)]
pub(crate) struct Attempt {
    object: ObjectId,
    page: u64,
    write: bool,
    /// The charge of its page, while that takes more than one step.
    charge: Option<Box<Charge>>,
    /// The page that this task has had read in.
    held: Option<Pfn>,
    started_read: bool,
    /// The page was created by this very write, which therefore counts as its first use.
    created: bool,
}

impl Attempt {
    /// Begins an access where the last one was.
    pub(crate) fn begin(&mut self, access: Access) {
        debug_assert!(self.charge.is_none());
        self.object = access.object;
        self.page = access.page;
        self.write = access.write;
        self.held = None;
        self.started_read = false;
        self.created = false;
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.object
    }

    pub(crate) fn page(&self) -> u64 {
        self.page
    }

    pub(crate) fn in_reclaim(&self) -> bool {
        self.charge.as_ref().is_some_and(|charge| charge.in_reclaim())
    }
}

/// Where the accessed page is.
enum Found {
    /// In memory: all that is left is to map or mark it.
    Ready(Pfn),
    /// The page of zeroes serves a first read.
    Zeroes,
    /// In the hands of a device.
    InFlight(Pfn),
    Absent(Source),
}

/// What an absent page is filled from.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// A block of a regular file.
    File(FileId, u64),
    /// Nothing: new memory.
    NewAnon,
    NewTmpfs(FileId, u64),
    Swap(SwapEntry),
}

/// Until when an access pauses.
enum Pause {
    /// A batch of reclaim is over, and others may have their turn.
    Reclaim,
    Io,
}

/// Why a page can't be brought in at once.
enum Stop {
    Pause(Pause),
    Oom(Box<OomReport>),
}

impl Engine {
    /// Takes a task's access as far as it goes without waiting.
    pub(crate) fn attempt(&mut self, task: TaskId) -> Step {
        if std::mem::take(&mut self.tasks[task.index()].read_failed) {
            self.let_go(task);
            return Step::Done(Served::Failed(AccessError::Io));
        }
        loop {
            let is_charging = self.tasks[task.index()].attempt.charge.is_some();
            let brought_in = match self.find(task) {
                Found::Absent(source) => self.bring_in(task, Some(source)),
                // Another task has brought the page in since this one began to reclaim for it. There is no way out of a
                // reclaim call but its end.
                _ if is_charging => self.bring_in(task, None),
                found @ (Found::Ready(_) | Found::Zeroes) => return self.finish(task, found),
                Found::InFlight(pfn) => {
                    self.wait_for_folio(pfn, task);
                    Err(Stop::Pause(Pause::Io))
                }
            };
            let pause = match brought_in {
                Ok(()) => continue,
                Err(Stop::Pause(pause)) => pause,
                Err(Stop::Oom(report)) => return Step::Done(Served::Failed(AccessError::Oom(report))),
            };
            self.tasks[task.index()].suspend_access();
            return match pause {
                Pause::Reclaim => Step::Again,
                Pause::Io => Step::Wait(Wait::Io),
            };
        }
    }

    /// Charges a page, and if it is absent still, gives it a folio and starts filling it.
    fn bring_in(&mut self, task: TaskId, source: Option<Source>) -> Result<(), Stop> {
        let memcg = self.memory.mm(self.tasks[task.index()].mm).memcg;
        self.charge_page(task, memcg)?;
        let Some(source) = source else {
            self.untell_reclaimed();
            self.charge_cancel(memcg);
            return Ok(());
        };
        // The charge may have reclaimed, which takes pages away but brings none in.
        debug_assert!(matches!(self.find(task), Found::Absent(_)));
        let Some(pfn) = self.memory.alloc(0, memcg) else {
            self.charge_cancel(memcg);
            return Err(Stop::Oom(Box::new(self.oom_report(MemcgId::ROOT, None, 0))));
        };
        self.count_node(self.memory.folios[pfn].node, Stat::PgallocNormal, 1);
        self.in_lru_fault = self.is_fault_with_recency(task);
        self.tell_filled(pfn, source);
        self.fill(task, pfn, source);
        self.in_lru_fault = false;
        if self.memory.folios[pfn].has(FolioFlags::LOCKED) { Err(Stop::Pause(Pause::Io)) } else { Ok(()) }
    }

    fn charge_page(&mut self, task: TaskId, memcg: MemcgId) -> Result<(), Stop> {
        let mut charge = match self.tasks[task.index()].attempt.charge.take() {
            Some(charge) => *charge,
            None if self.stock_take(memcg) => return Ok(()),
            None => {
                // A read of a regular file may hold what its file system's own reclaim would wait for. tmpfs holds nothing.
                let object = self.tasks[task.index()].accessed();
                let may_enter_fs = !matches!(object, Object::File { is_tmpfs: false, .. });
                self.charge_begin(memcg, may_enter_fs)
            }
        };
        let pause = match self.charge_step(&mut charge) {
            Charged::Yes => return Ok(()),
            Charged::Oom(report) => return Err(Stop::Oom(report)),
            Charged::Again => Pause::Reclaim,
            Charged::WaitForWriteback => {
                self.wait_for_any_write(task);
                Pause::Io
            }
        };
        self.tasks[task.index()].attempt.charge = Some(Box::new(charge));
        Err(Stop::Pause(pause))
    }

    /// Whether the page is wanted by a fault that says it will be used again.
    fn is_fault_with_recency(&self, task: TaskId) -> bool {
        match *self.tasks[task.index()].accessed() {
            Object::File { .. } => false,
            Object::Mapping { mm, vma, .. } => self.memory.mm(mm).vmas[vma].advice.has_recency(),
        }
    }

    fn find(&self, task: TaskId) -> Found {
        let task = &self.tasks[task.index()];
        let Attempt { page, write, .. } = task.attempt;
        match *task.accessed() {
            Object::File { file, .. } => self.find_cached(file, page, write),
            Object::Mapping { mm, vma, start, .. } => {
                let entry = self.memory.mm(mm).table.word(start + page);
                if entry.is_zero_page() && !write {
                    return Found::Zeroes;
                }
                match (entry.decode(), self.memory.mm(mm).vmas[vma].backing) {
                    (Entry::Present(pfn), _) if !entry.is_zero_page() => Found::Ready(pfn),
                    (Entry::Swap(entry), _) => self.find_swapped(entry, false),
                    (_, Backing::File(file)) => self.find_cached(file, page, true),
                    (_, Backing::Anon) if write => Found::Absent(Source::NewAnon),
                    (_, Backing::Anon) => Found::Zeroes,
                }
            }
        }
    }

    /// `creates`: a hole of a tmpfs file becomes a page; else it reads as zeroes.
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

    /// A swapped page may still, or again, be in the swap cache. tmpfs has to move it out of there, which a write in
    /// flight forbids.
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

    /// Gives an absent page a folio and starts reading it in, where there is something to read.
    fn fill(&mut self, task: TaskId, pfn: Pfn, source: Source) {
        self.hold(task, pfn);
        match source {
            Source::File(file, page) => {
                self.memory.folios[pfn].flags |= FolioFlags::LOCKED;
                self.page_cache_add(pfn, file, page);
                self.lru_add(pfn);
                self.start_read_file(pfn, task);
                self.tasks[task.index()].attempt.started_read = true;
            }
            Source::NewTmpfs(file, page) => {
                self.memory.folios[pfn].flags |= FolioFlags::SWAPBACKED | FolioFlags::DIRTY;
                self.ops.push(Op::Zero { pfn, pages: 1 });
                self.page_cache_add(pfn, file, page);
                self.lru_add(pfn);
                if matches!(self.tasks[task.index()].accessed(), Object::File { .. }) {
                    // Written through a descriptor: the write itself may be the first of the two accesses that activate.
                    if self.mark_of(self.lruvec_of(pfn)).counts(true, false) {
                        self.memory.add_use(pfn, UseBits::REFERENCED);
                    }
                    self.tasks[task.index()].attempt.created = true;
                }
            }
            Source::NewAnon => {
                let (mm, page) = self.accessed_address(task).expect("anonymous memory is mapped");
                let folio = &mut self.memory.folios[pfn];
                folio.flags |= FolioFlags::ANON | FolioFlags::SWAPBACKED | FolioFlags::DIRTY;
                folio.owner = mm.0;
                folio.index = page as u32;
                self.ops.push(Op::Zero { pfn, pages: 1 });
                self.map(mm, page, pfn, true);
                self.lru_add(pfn);
            }
            Source::Swap(entry) => self.swap_in(task, pfn, entry),
        }
    }

    /// Brings a swapped page back. Its folio stands in the swap cache while it is read, so that nobody reads it twice.
    fn swap_in(&mut self, task: TaskId, pfn: Pfn, entry: SwapEntry) {
        self.name_swapped_owner(task, pfn);
        let shadow = self.memory.swap.shadow(entry);
        self.memory.folios[pfn].flags |= FolioFlags::SWAPBACKED;
        self.tasks[task.index()].attempt.started_read = true;
        if self.memory.swap.kind(entry.swap) == SwapKind::Synchronous {
            self.swap_in_now(task, pfn, entry, shadow);
            return;
        }
        self.memory.folios[pfn].flags |= FolioFlags::LOCKED;
        self.swap_cache_insert(pfn, entry);
        self.workingset_refault(pfn, shadow);
        self.lru_add(pfn);
        self.start_read_swap(pfn, entry, task);
        #[cfg(test)]
        if self.mutant == Some(crate::testing::Mutant::SlotFreedBeforeRead) {
            self.ops.push(Op::FreeSlot { swap: entry.swap, slot: entry.slot });
        }
    }

    /// From a synchronous device an anonymous page comes back without the swap cache, and its slot is freed at once: the
    /// compressed copy would only be a second one in memory. [6.12 M9]
    fn swap_in_now(&mut self, task: TaskId, pfn: Pfn, entry: SwapEntry, shadow: Word) {
        let node = self.memory.folios[pfn].node;
        self.count_node(node, Stat::Pswpin, 1);
        self.count_node(node, Stat::Pgpgin, (crate::PAGE_SIZE / 1024) as i64);
        let is_anon = self.memory.folios[pfn].has(FolioFlags::ANON);
        if !is_anon {
            self.swap_cache_insert(pfn, entry);
        }
        self.workingset_refault(pfn, shadow);
        self.lru_add(pfn);
        self.ops.push(Op::ReadSwapNow { swap: entry.swap, slot: entry.slot, pfn });
        if let Some((mm, page)) = self.accessed_address(task)
            && is_anon
        {
            self.memory.folios[pfn].flags |= FolioFlags::DIRTY;
            self.map(mm, page, pfn, self.tasks[task.index()].attempt.write);
            self.free_slot(entry);
        }
    }

    /// Records whose page a swapped-in folio is.
    fn name_swapped_owner(&mut self, task: TaskId, pfn: Pfn) {
        let task = &self.tasks[task.index()];
        let page = task.attempt.page;
        let (owner, index, anon) = match *task.accessed() {
            Object::File { file, .. } => (file.0, page, false),
            Object::Mapping { mm, vma, start, .. } => match self.memory.mm(mm).vmas[vma].backing {
                Backing::Anon => (mm.0, start + page, true),
                Backing::File(file) => (file.0, page, false),
            },
        };
        let folio = &mut self.memory.folios[pfn];
        folio.owner = owner;
        folio.index = index as u32;
        folio.flags.set(FolioFlags::ANON, anon);
    }

    /// The address space and the page of it that are accessed, where that is through a mapping.
    fn accessed_address(&self, task: TaskId) -> Option<(MmId, u64)> {
        let task = &self.tasks[task.index()];
        match *task.accessed() {
            Object::File { .. } => None,
            Object::Mapping { mm, start, .. } => Some((mm, start + task.attempt.page)),
        }
    }

    /// The page is in memory: makes the access.
    fn finish(&mut self, task: TaskId, found: Found) -> Step {
        let attempt = &mut self.tasks[task.index()].attempt;
        // It was still being charged for when another task brought the page in.
        attempt.charge = None;
        let Attempt { object, page, write, held, started_read, created, .. } = *attempt;
        if let Found::Ready(pfn) = found
            && self.memory.folios[pfn].has(FolioFlags::SWAPCACHE)
            && !self.memory.folios[pfn].has(FolioFlags::ANON)
        {
            self.tmpfs_from_swap_cache(pfn);
        }
        match *self.tasks[task.index()].accessed() {
            Object::File { is_tmpfs, last_page, .. } => {
                self.work.file_calls += 1;
                let is_reread = !is_tmpfs && page == last_page;
                if let Found::Ready(pfn) = found
                    && !created
                {
                    let mark = self.mark_of(self.lruvec_of(pfn));
                    if mark.counts(held == Some(pfn), is_reread) {
                        self.mark_accessed_by(pfn, mark);
                    }
                }
                if let Object::File { last_page, .. } = &mut self.tasks[task.index()].objects[object.index()]
                {
                    *last_page = page;
                }
            }
            Object::Mapping { mm, start, .. } => {
                self.finish_fault(mm, start + page, write, found, started_read);
            }
        }
        self.let_go(task);
        self.return_to_user(task, if started_read { Served::Major } else { Served::Minor })
    }

    fn finish_fault(&mut self, mm: MmId, page: u64, write: bool, found: Found, major: bool) {
        self.work.faults += 1;
        let lruvec = self.lruvecs.id(self.memory.mm(mm).memcg, self.current_node());
        self.count(lruvec, Stat::Pgfault, 1);
        if major {
            self.count(lruvec, Stat::Pgmajfault, 1);
        }
        let Found::Ready(pfn) = found else {
            self.memory.mm_mut(mm).table.replace(page, Word::ZERO_PAGE);
            return;
        };
        if self.memory.mm(mm).table.word(page).is_present()
            && !self.memory.mm(mm).table.word(page).is_zero_page()
        {
            // Mapped when it was filled.
            return;
        }
        let in_swap_cache = self.memory.folios[pfn].has(FolioFlags::SWAPCACHE);
        if in_swap_cache && write && !self.memory.folios[pfn].has(FolioFlags::LRU) {
            // The add batch's reference stands in the way of making the page exclusively ours.
            self.lru_add_drain();
        }
        self.map(mm, page, pfn, write);
        self.tell(pfn, |_| PageEvent::Mapped { write });
        // A page that is about to change doesn't need its copy in the slot, nor does one whose slot is needed.
        if in_swap_cache && (write || self.is_swap_full(self.memory.folios[pfn].memcg)) {
            self.free_swap(pfn);
        }
    }

    fn map(&mut self, mm: MmId, page: u64, pfn: Pfn, dirty: bool) {
        let space = self.memory.mm_mut(mm);
        space.table.replace(page, Word::mapping(pfn, dirty));
        if let Some(tlb) = &mut space.tlb {
            // The access that has faulted is made again, and finds the entry.
            tlb.access(page);
        }
        let locked = self.memory.mm(mm).vma_of(page).locked;
        self.memory.folios[pfn].mapped += 1;
        if self.memory.folios[pfn].mapped == 1 {
            let (stat, pages) = (self.mapped_stat(pfn), self.memory.folios[pfn].pages() as i64);
            self.count(self.lruvec_of(pfn), stat, pages);
        }
        if locked {
            self.mlock_folio(pfn);
        }
    }

    /// A tmpfs folio that was swapped in goes back to its file's index; nothing but it has the data then.
    fn tmpfs_from_swap_cache(&mut self, pfn: Pfn) {
        self.swap_cache_remove(pfn, None);
        self.memory.folios[pfn].flags |= FolioFlags::DIRTY;
        let found = self.page_cache_insert(pfn);
        let Entry::Swap(entry) = found.decode() else { unreachable!("the slot held the swap entry") };
        self.free_slot(entry);
    }

    fn hold(&mut self, task: TaskId, pfn: Pfn) {
        self.memory.folios[pfn].refs += 1;
        self.tasks[task.index()].attempt.held = Some(pfn);
    }

    fn let_go(&mut self, task: TaskId) {
        if let Some(pfn) = self.tasks[task.index()].attempt.held.take() {
            self.memory.folios[pfn].refs -= 1;
            self.release_if_unused(pfn);
        }
    }
}
