//! The end of a miss: the page is in memory, and the access maps it, or marks it, and is done.

use crate::access::hits::Object;
use crate::access::miss::{Attempt, Found, Progress};
use crate::access::task::Current;
use crate::machine::step::{Access, Served, Step, Touched};
use crate::memory::folio::FolioFlags;
use crate::memory::table::{Entry, SwapEntry};
use crate::units::{FileId, PAGE_SIZE, Pfn};

impl Current<'_> {
    /// The page is in memory: makes the access.
    #[inline]
    pub(super) fn finish(&mut self, found: Found) -> Step {
        let attempt = &self.task.attempt;
        let is_charging = attempt.charge.is_some();
        let Attempt { object, page, write, wanted, offset, held, .. } = *attempt;
        let Progress { started_read, created, was_there, .. } = attempt.progress;
        if is_charging {
            self.drop_charge();
        }
        if let Found::Ready(pfn) = found
            && self.core.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE)
            && !self.core.mm.memory.folios[pfn].has(FolioFlags::ANON)
        {
            self.tmpfs_from_swap_cache(pfn);
        }
        let mut is_new_file_page = false;
        if write
            && let Found::Ready(pfn) = found
            && self.core.mm.is_regular(pfn)
        {
            is_new_file_page = created;
            self.dirty(pfn);
        }
        match *self.task.accessed() {
            Object::File { open, file, is_tmpfs, .. } => {
                self.core.out.count.file_calls(1);
                let is_overwrite = write && !is_tmpfs;
                let of = &self.core.mm.memory.open_files[open.index()];
                let is_same = self.core.mm.memory.file(file).index.is_same_folio(page, of.last_page);
                let goes_on = || page == of.last_page.wrapping_add(1) && of.is_in_call();
                let reads_tail = || {
                    let is_once = self.core.mm.config.policy.machine.tmpfs_reads_once;
                    is_once && self.core.mm.memory.file(file).index.is_tail(page)
                };
                let is_reread = match (is_tmpfs, write) {
                    (true, true) => is_same && goes_on(),
                    (true, false) => reads_tail(),
                    (false, _) => is_same && !write,
                };
                self.core.mm.memory.file_mut(file).index.note_use(page);
                if self.core.mm.damon.has_flags
                    && let Found::Ready(pfn) = found
                {
                    self.core.mm.memory.clear_idle(pfn);
                }
                if let Found::Ready(pfn) = found
                    && !created
                {
                    let mark = self.core.mm.mark_of(pfn);
                    let counts = mark.counts(started_read && held == Some(pfn), is_reread);
                    if counts && (!is_overwrite || mark.counts_writes()) {
                        if self.core.mm.watches_reads() && !is_overwrite {
                            self.watch_read(pfn, file, page);
                        }
                        self.core.mark_accessed_by(pfn, mark);
                    }
                }
                if !is_overwrite {
                    let open = &mut self.core.mm.memory.open_files[open.index()];
                    open.last_page = page;
                    if u64::from(wanted) <= PAGE_SIZE {
                        open.prev_pos = page * PAGE_SIZE + u64::from(wanted);
                    }
                }
            }
            Object::Mapping { mm, start, .. } => {
                let pfn = if let Found::Ready(pfn) = found { Some(pfn) } else { None };
                self.core.finish_fault(mm, start + page, write, pfn, started_read);
            }
        }
        self.let_go();
        let access = Access { object, page, write, wanted, offset };
        let touched = match found {
            Found::Ready(pfn) if self.core.mm.memory.folios[pfn].order > 0 => {
                self.task.touched(self.core, access)
            }
            Found::Ready(pfn) => Touched::Frame(pfn),
            _ => Touched::Zeroes,
        };
        let served = match started_read {
            true => Served::Major(touched),
            // More than the page's word was written, but the writing task found the page present.
            false if was_there && held.is_none() => Served::Hit(touched),
            false => Served::Minor(touched),
        };
        if is_new_file_page {
            // Its contents come with the access. No other task may find the page without them, so the task pays what it owes next time.
            return Step::Done(served);
        }
        self.return_to_user(access, served)
    }

    /// The attempt's page was still being charged for when another task brought it in.
    #[cold]
    fn drop_charge(&mut self) {
        self.task.attempt.charge = None;
    }

    /// A page of a file has been read, and those of slow memory are of interest.
    #[cold]
    fn watch_read(&mut self, pfn: Pfn, file: FileId, page: u64) {
        if self.core.mm.lower_tiers.holds(pfn) {
            let index = &self.core.mm.memory.file(file).index;
            let is_in_use = index.frame_of_hit(page).is_some_and(|(_, is_in_use)| is_in_use);
            self.read_slow_page(pfn, is_in_use);
        }
    }

    /// A tmpfs folio that was swapped in goes back to its file's index; nothing but it has the data then.
    #[cold]
    fn tmpfs_from_swap_cache(&mut self, pfn: Pfn) {
        self.core.swap_cache_remove(pfn, None);
        self.core.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
        let folio = self.core.mm.memory.folios[pfn];
        if folio.order > 0 {
            self.core.page_cache_insert(pfn);
            folio.slots().for_each(|slot| self.core.free_slot(SwapEntry { swap: folio.swap, slot }));
            return;
        }
        let found = self.core.page_cache_insert(pfn);
        let Entry::Swap(entry) = found.decode() else { unreachable!("the slot held the swap entry") };
        self.core.free_slot(entry);
        debug_assert!(
            !self.core.mm.memory.swap.is_taken(entry),
            "{pfn:?} is back in its file, and its slot holds it, too"
        );
    }

    /// Keeps the page for the task until the access is over: the reference is the one it was allocated with.
    #[inline(always)]
    pub(super) fn hold_for(&mut self, pfn: Pfn) {
        debug_assert_eq!(self.core.mm.memory.folios[pfn].refs, 1, "nobody else can know the page yet");
        self.keep(pfn);
    }

    /// A reader holds the page that it waits for, whichever task reads it in.
    pub(super) fn hold_awaited(&mut self, pfn: Pfn) {
        let is_regular = matches!(self.task.accessed(), Object::File { is_tmpfs: false, .. });
        if is_regular && self.task.attempt.held != Some(pfn) {
            self.core.mm.memory.folios[pfn].refs += 1;
            self.keep(pfn);
        }
    }

    /// A task that has found a page with the mark holds it while the next ones are read: reclaim for these can't take it.
    pub(super) fn hold_marked(&mut self, pfn: Pfn) {
        self.core.mm.memory.folios[pfn].refs += 1;
        self.keep(pfn);
        self.task.attempt.progress.holds_marked = true;
    }

    /// The task takes over a reference. The page that it held before has been lost to a failed read.
    #[inline(always)]
    fn keep(&mut self, pfn: Pfn) {
        if self.task.attempt.held.is_some() {
            self.let_go_of_lost();
        }
        self.task.attempt.held = Some(pfn);
    }

    #[cold]
    fn let_go_of_lost(&mut self) {
        self.let_go();
    }

    /// The access has used its page, or is over without it.
    #[inline]
    pub(crate) fn let_go(&mut self) {
        if let Some(pfn) = self.task.attempt.held.take() {
            self.core.mm.memory.folios[pfn].refs -= 1;
            self.core.release_if_unused(pfn);
        }
    }
}
