//! The end of a miss: the page is in memory, and the access is made.

use crate::machine::step::{Access, Served, Step, Touched};
use crate::memory::folio::FolioFlags;
use crate::memory::table::Entry;
use crate::serve::access::Object;
use crate::serve::engine::Engine;
use crate::serve::miss::{Attempt, Found};
use crate::units::{Pfn, TaskId};

impl Engine {
    /// The page is in memory: makes the access.
    #[inline]
    pub(super) fn finish(&mut self, task: TaskId, found: Found) -> Step {
        let attempt = &mut self.tasks[task.index()].attempt;
        // It was still being charged for when another task brought the page in.
        attempt.charge = None;
        let Attempt { object, page, write, held, started_read, created, .. } = *attempt;
        if let Found::Ready(pfn) = found
            && self.core.memory.folios[pfn].has(FolioFlags::SWAPCACHE)
            && !self.core.memory.folios[pfn].has(FolioFlags::ANON)
        {
            self.tmpfs_from_swap_cache(pfn);
        }
        match *self.tasks[task.index()].accessed() {
            Object::File { is_tmpfs, last_page, .. } => {
                self.core.work.file_calls += 1;
                let is_reread = !is_tmpfs && page == last_page;
                if let Found::Ready(pfn) = found
                    && !created
                {
                    let mark = self.core.mark_of(self.core.lruvec_of(pfn));
                    if mark.counts(held == Some(pfn), is_reread) {
                        self.core.mark_accessed_by(pfn, mark);
                    }
                }
                if let Object::File { last_page, .. } = &mut self.tasks[task.index()].objects[object.index()]
                {
                    *last_page = page;
                }
            }
            Object::Mapping { mm, start, .. } => {
                let pfn = if let Found::Ready(pfn) = found { Some(pfn) } else { None };
                self.core.finish_fault(mm, start + page, write, pfn, started_read);
            }
        }
        self.let_go(task);
        let touched = if let Found::Ready(pfn) = found { Touched::Frame(pfn) } else { Touched::Zeroes };
        let access = Access { object, page, write };
        let served = if started_read { Served::Major(touched) } else { Served::Minor(touched) };
        self.return_to_user(task, access, served)
    }

    /// A tmpfs folio that was swapped in goes back to its file's index; nothing but it has the data then.
    fn tmpfs_from_swap_cache(&mut self, pfn: Pfn) {
        self.core.swap_cache_remove(pfn, None);
        self.core.memory.folios[pfn].set(FolioFlags::DIRTY);
        let found = self.core.page_cache_insert(pfn);
        let Entry::Swap(entry) = found.decode() else { unreachable!("the slot held the swap entry") };
        self.core.free_slot(entry);
    }

    /// Keeps the page for the task until the access is over: the reference is the one it was allocated with.
    pub(super) fn hold_for(&mut self, task: TaskId, pfn: Pfn) {
        debug_assert_eq!(self.core.memory.folios[pfn].refs, 1, "nobody else can know the page yet");
        self.tasks[task.index()].attempt.held = Some(pfn);
    }

    pub(super) fn let_go(&mut self, task: TaskId) {
        if let Some(pfn) = self.tasks[task.index()].attempt.held.take() {
            self.core.memory.folios[pfn].refs -= 1;
            self.core.release_if_unused(pfn);
        }
    }
}
