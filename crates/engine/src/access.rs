//! Hits: what an access to a resident page writes.
//!
//! An access through a mapping sets the accessed bit (and the dirty bit) in the page-table word, as hardware does; reclaim
//! has to come and look. An access through a file descriptor marks the page at once, in the word of the page-cache index.
//! The two channels stay apart, because all that reclaim knows of a page depends on which of them it came through.
//! [6.12 M; reclaim 9, rows 1 to 5]
//!
//! A run of hits touches one word each: no list, no hash, no allocation. Where the policy itself demands more (the classic
//! LRU queues a page for activation at its second access), the slow path does it and the run goes on.

use crate::engine::Engine;
use crate::folio::Heat;
use crate::mm::Mm;
use crate::step::{Access, AccessError};
use crate::table::{Mark, Word};
use crate::units::{FileId, MmId, TaskId};

/// Something a task accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    /// An open file: read(2) and write(2) of whole pages.
    File {
        file: FileId,
        pages: u64,
        is_tmpfs: bool,
        /// Page read or written last through this descriptor.
        last_page: u64,
    },
    /// A mapping: loads and stores.
    Mapping {
        mm: MmId,
        vma: usize,
        start: u64,
        pages: u64,
        /// Stores reach a regular file, which needs writeback.
        is_regular_file: bool,
    },
}

/// No page has been read yet.
pub(crate) const NO_PAGE: u64 = u64::MAX;

impl Object {
    pub(crate) fn pages(&self) -> u64 {
        match *self {
            Object::File { pages, .. } | Object::Mapping { pages, .. } => pages,
        }
    }

    fn refuses_writes(&self) -> bool {
        matches!(self, Object::File { is_tmpfs: false, .. } | Object::Mapping { is_regular_file: true, .. })
    }
}

/// How far a run of hits went.
struct Hits {
    served: usize,
    /// The next access isn't a hit; else the run has ended.
    stopped: bool,
}

/// Records a file access where the word alone says how; false where the order has to be told.
#[inline]
fn mark_in_word(word: &mut Word) -> bool {
    if word.mark() == Mark::EveryAccess {
        return false;
    }
    let heat = word.heat();
    if heat.contains(Heat::REFERENCED) {
        // The second access activates, which takes more than this word; once active, there is nothing to do.
        return heat.contains(Heat::ACTIVE);
    }
    *word = word.with_heat(heat | Heat::REFERENCED);
    true
}

fn mapped_hits(
    mm: &mut Mm,
    start: u64,
    pages: u64,
    refuses_writes: bool,
    run: impl Iterator<Item = Access>,
) -> Hits {
    let mut served = 0;
    for access in run {
        if access.page >= pages {
            return Hits { served, stopped: true };
        }
        match mm.table.walk_mut(start + access.page) {
            Some(word) if word.is_present() && !(access.write && (refuses_writes || word.is_zero_page())) => {
                word.touch(access.write);
            }
            _ => return Hits { served, stopped: true },
        }
        served += 1;
    }
    Hits { served, stopped: false }
}

impl Engine {
    /// Serves accesses as long as they are hits; returns how many were.
    ///
    /// The access after the last one served is for [`Engine::start`], which serves it or says what is wrong with it.
    /// `decode` turns the machine's own form of an access into the engine's; it is called once an access.
    pub fn run_hits<A: Copy>(&mut self, task: TaskId, accesses: &[A], decode: impl Fn(A) -> Access) -> usize {
        self.enter(task);
        let mut done = 0;
        while let Some(&first) = accesses.get(done) {
            let object_id = decode(first).object;
            let Some(&object) = self.tasks[task.index()].objects.get(object_id.index()) else { break };
            let run = accesses[done..].iter().map(|&access| decode(access));
            let run = run.take_while(|access| access.object == object_id);
            let hits = match object {
                Object::Mapping { mm, start, pages, is_regular_file, .. } => {
                    mapped_hits(self.memory.mm_mut(mm), start, pages, is_regular_file, run)
                }
                Object::File { file, pages, is_tmpfs, mut last_page } => {
                    let hits = self.file_hits(file, pages, is_tmpfs, &mut last_page, run);
                    if let Object::File { last_page: saved, .. } =
                        &mut self.tasks[task.index()].objects[object_id.index()]
                    {
                        *saved = last_page;
                    }
                    hits
                }
            };
            done += hits.served;
            if hits.stopped {
                break;
            }
        }
        done
    }

    #[inline]
    fn file_hits(
        &mut self,
        file: FileId,
        pages: u64,
        is_tmpfs: bool,
        last_page: &mut u64,
        run: impl Iterator<Item = Access>,
    ) -> Hits {
        let mut served = 0;
        for access in run {
            let page = access.page;
            if page >= pages || (access.write && !is_tmpfs) {
                return Hits { served, stopped: true };
            }
            let Some(word) = self.memory.files[file.index()].index.word_mut(page) else {
                return Hits { served, stopped: true };
            };
            if !word.is_plain() {
                return Hits { served, stopped: true };
            }
            // A second read of the same page in a row is most likely the rest of the same request, so it says nothing
            // about the page's use. tmpfs makes no such difference. [6.12 M2, M3]
            if is_tmpfs || page != *last_page {
                *last_page = page;
                if !mark_in_word(word) {
                    let pfn = word.pfn();
                    self.mark_accessed(pfn);
                }
            }
            served += 1;
        }
        Hits { served, stopped: false }
    }

    /// Checks what can be wrong with an access before anything is done for it.
    pub(crate) fn check_access(&self, task: TaskId, access: Access) -> Result<Object, AccessError> {
        let objects = &self.tasks[task.index()].objects;
        let object = *objects
            .get(access.object.index())
            .ok_or(AccessError::NoObject { object: access.object, objects: objects.len() })?;
        if access.page >= object.pages() {
            return Err(AccessError::BeyondObject { page: access.page, pages: object.pages() });
        }
        if access.write && object.refuses_writes() {
            return Err(AccessError::FileWrite);
        }
        Ok(object)
    }
}
