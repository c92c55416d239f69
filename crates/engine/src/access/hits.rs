//! Hits: which bits an access to a resident page sets, and where.
//!
//! An access through a mapping sets the accessed bit (and the dirty bit) in the page-table word, as hardware does. No software is
//! notified: reclaim has to read the bit. An access through a file descriptor marks the page immediately, in the word of the page-cache
//! index. The two channels stay separate, because reclaim learns different things from them. [reclaim-6.12 M; reclaim 9 rows 1 to 5]
//!
//! A run of hits touches one word per access: no list, no hash, no allocation. If the policy itself needs more (the classic LRU queues a
//! page for activation at its second access), the slow path does it and the run continues.

use crate::access::engine::Engine;
use crate::access::task::{Current, Task};
use crate::core::Core;
use crate::machine::step::{Access, AccessError, Touched};
use crate::memory::Memory;
use crate::memory::mm::{Backing, Mm};
use crate::memory::open_file::OpenFile;
use crate::memory::table::{Entry, MappedWords, Marked, Table};
use crate::numa_balancing::is_asked_when_read;
use crate::pghot::Source;
use crate::promotion::{LowerTierFrames, WatchedReads};
use crate::story::PageName;
use crate::units::{FileId, MmId, NodeId, ObjectId, OpenFileId, PAGE_SIZE, Pfn, TaskId};

/// Something a task accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    /// An open file: read(2) and write(2).
    File {
        open: OpenFileId,
        file: FileId,
        pages: u64,
        is_tmpfs: bool,
        /// The object's writes are shorter than a page, so that an absent page has to be read first.
        partial_writes: bool,
    },
    /// A mapping: loads and stores.
    Mapping {
        /// What was mapped, unless it is anonymous memory.
        open: Option<OpenFileId>,
        mm: MmId,
        vma: usize,
        start: u64,
        pages: u64,
        /// Stores reach a regular file, and make its pages dirty.
        is_regular_file: bool,
    },
}

impl Object {
    pub(crate) fn pages(&self) -> u64 {
        match *self {
            Object::File { pages, .. } | Object::Mapping { pages, .. } => pages,
        }
    }

    /// The object was closed or unmapped. Until its number is used again, it names an open file and a file that may be others by now.
    pub(crate) fn is_closed(&self) -> bool {
        self.pages() == 0
    }

    /// The open file that it shares, if any.
    pub(super) fn open(&self) -> Option<OpenFileId> {
        match *self {
            _ if self.is_closed() => None,
            Object::File { open, .. } => Some(open),
            Object::Mapping { open, .. } => open,
        }
    }

    /// Both are one open file, or one mapping.
    pub(super) fn is_same(&self, other: &Object) -> bool {
        match (*self, *other) {
            _ if self.is_closed() || other.is_closed() => false,
            (Object::File { open, .. }, Object::File { open: of, .. }) => open == of,
            (Object::Mapping { mm, vma, .. }, Object::Mapping { mm: of, vma: at, .. }) => {
                (mm, vma) == (of, at)
            }
            _ => false,
        }
    }

    /// Nothing is left that could be reached.
    pub(super) fn vacate(&mut self) {
        let (Object::File { pages, .. } | Object::Mapping { pages, .. }) = self;
        *pages = 0;
    }

    /// The page that is reached through it.
    pub(super) fn page_name(self, page: u64, memory: &Memory) -> PageName {
        match self {
            Object::File { file, .. } => PageName::File { file, page },
            Object::Mapping { mm, vma, start, .. } => match memory.mm(mm).vmas[vma].backing {
                Backing::Anon => PageName::Anon { mm, page: start + page },
                Backing::File(file) => PageName::File { file, page },
            },
        }
    }
}

/// The number of accesses by which a prefetch is ahead: the word of a later access is fetched early enough even if no cache of the
/// processor has it.
const AHEAD: usize = 12;

/// Why a run of hits on one object ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopped {
    /// No more accesses to this object in a row.
    RunOver,
    /// The next access isn't a hit.
    NoHit,
    /// The last access was a hit, but it must be reported to its page's LRU.
    Mark(Pfn),
    /// The last access was one, to a page of slow memory.
    Slow {
        pfn: Pfn,
        /// The page had been in use already.
        is_in_use: bool,
        /// The access must be reported to the page's LRU, too.
        marks: bool,
    },
}

/// What reads look for where pages of slow memory are promoted by them, or reported.
struct Watch<'a> {
    lower_tiers: &'a LowerTierFrames,
    /// Pages that are in use already are isolated for promotion, up to the limit.
    sets_aside: bool,
    /// True if each page is reported to hot-page tracking.
    reports: bool,
    /// Some pages say how soon they are used.
    asks: bool,
    /// The task has isolated pages for promotion, so the end of its call must be handled.
    has_aside: bool,
    /// The run ends before an access after which there is something to do.
    stops_at_call_end: bool,
    /// Pages in use whose tier was looked up.
    looked_up: u64,
}

impl Watch<'_> {
    /// Returns true if the run ends before this access.
    fn stops_before(&self, access: &Access, found: Option<(Pfn, bool)>) -> bool {
        self.stops_at_call_end
            && access.ends_call()
            && (self.has_aside || self.is_slow(access.page, found).is_some())
    }

    /// Returns the page if it must be checked closely after its access.
    fn is_slow(&self, page: u64, found: Option<(Pfn, bool)>) -> Option<(Pfn, bool)> {
        let (pfn, is_in_use) = found?;
        let is_wanted =
            self.reports || (self.sets_aside && is_in_use) || (self.asks && is_asked_when_read(page));
        (is_wanted && self.lower_tiers.holds(pfn)).then_some((pfn, is_in_use))
    }
}

impl Engine {
    /// Serves accesses as long as they are hits; returns how many were.
    ///
    /// The access after the last one served is for [`Engine::start`], which serves it or says what is wrong with it.
    /// `decode` turns the machine's own form of an access into the engine's; it must give the same each time.
    pub fn run_hits<A: Copy>(&mut self, task: TaskId, accesses: &[A], decode: impl Fn(A) -> Access) -> usize {
        self.hits(task, accesses, decode, true)
    }

    /// The hits of [`Engine::run_hits`]. `stops`: also before an access at whose end the task has pages to promote.
    #[inline(always)]
    pub(super) fn hits<A: Copy>(
        &mut self,
        task: TaskId,
        accesses: &[A],
        decode: impl Fn(A) -> Access,
        stops: bool,
    ) -> usize {
        self.enter(task).use_mm();
        self.has_work = self.core.mm.config.is_memory_tiering();
        let mut done = 0;
        while let Some(&next) = accesses.get(done) {
            let id = decode(next).object;
            let Some(&object) = self.tasks[task.index()].objects.get(id.index()) else { break };
            let (hits, stopped) = match object {
                Object::Mapping { mm, start, pages, is_regular_file, .. } => {
                    let Mm { table, tlb, .. } = &mut self.core.mm.memory.mms[mm.index()];
                    let mut words = table.mapped_words(start, pages);
                    let rest = &accesses[done..];
                    match tlb {
                        None if is_regular_file => {
                            let touch =
                                |words: &mut MappedWords, page, write| words.touch_shared(page, write);
                            mapped_hits(&mut words, touch, id, rest, &decode)
                        }
                        None => {
                            let touch = |words: &mut MappedWords, page, write| words.touch(page, write);
                            mapped_hits(&mut words, touch, id, rest, &decode)
                        }
                        Some(tlb) => {
                            let touch = |words: &mut MappedWords, page, write| {
                                words.touch_through(tlb, start, page, write, is_regular_file)
                            };
                            mapped_hits(&mut words, touch, id, rest, &decode)
                        }
                    }
                }
                Object::File { open, file, is_tmpfs, .. } => {
                    let marks = self.file_marks(is_tmpfs);
                    let watches = self.core.mm.watches_reads() || !self.tasks[task.index()].aside.is_empty();
                    let rest = &accesses[done..];
                    let hits = match watches {
                        false => {
                            let index = &mut self.core.mm.memory.files[file.index()].index;
                            let open = &mut self.core.mm.memory.open_files[open.index()];
                            file_hits::<false, A>(index, marks, open, id, rest, &decode, None)
                        }
                        true => self.watched_hits(task, (open, file, marks), id, rest, &decode, stops),
                    };
                    if self.core.mm.config.is_memory_tiering() {
                        self.core.out.count.marked_with_tiering(hits.0 as u64);
                    }
                    hits
                }
            };
            done += hits;
            match stopped {
                Stopped::RunOver => {}
                Stopped::NoHit => break,
                Stopped::Mark(pfn) => {
                    self.has_work = true;
                    self.core.mark_accessed(pfn);
                }
                Stopped::Slow { pfn, is_in_use, marks } => {
                    self.has_work = true;
                    if marks {
                        self.core.mark_accessed(pfn);
                    }
                    self.current(task).read_slow_page(pfn, is_in_use);
                }
            }
        }
        done
    }

    /// What marks the pages of an open file as used.
    #[inline]
    fn file_marks(&self, is_tmpfs: bool) -> FileMarks {
        FileMarks { is_tmpfs, tmpfs_reads_once: self.core.mm.config.policy.machine.tmpfs_reads_once }
    }

    /// Hits of an open file where reads of slow memory are watched.
    #[inline(never)]
    fn watched_hits<A: Copy>(
        &mut self,
        task: TaskId,
        (open, file, marks): (OpenFileId, FileId, FileMarks),
        id: ObjectId,
        accesses: &[A],
        decode: &impl Fn(A) -> Access,
        stops_at_call_end: bool,
    ) -> (usize, Stopped) {
        let aside = &self.tasks[task.index()].aside;
        let promotes = self.core.mm.promotes_page_cache();
        let mut watch = Watch {
            sets_aside: promotes && self.core.mm.may_set_aside(aside),
            reports: Source::MarkAccessed.is_heard(&self.core.mm.config),
            asks: self.core.mm.is_governed(),
            has_aside: !aside.is_empty(),
            stops_at_call_end,
            looked_up: 0,
            lower_tiers: &self.core.mm.lower_tiers,
        };
        let index = &mut self.core.mm.memory.files[file.index()].index;
        let open = &mut self.core.mm.memory.open_files[open.index()];
        let hits = file_hits::<true, A>(index, marks, open, id, accesses, decode, Some(&mut watch));
        if promotes && watch.looked_up > 0 {
            self.has_work = true;
            self.core.out.count.tiers_looked_up(watch.looked_up);
        }
        hits
    }
}

/// Never inlined, and so compiled with all registers to itself.
#[inline(never)]
fn mapped_hits<A: Copy>(
    words: &mut MappedWords,
    mut touch: impl FnMut(&mut MappedWords, u64, bool) -> bool,
    id: ObjectId,
    accesses: &[A],
    decode: &impl Fn(A) -> Access,
) -> (usize, Stopped) {
    for (hits, &access) in accesses.iter().enumerate() {
        if let Some(&ahead) = accesses.get(hits + AHEAD) {
            words.prefetch(decode(ahead).page);
        }
        let Access { object, page, write, .. } = decode(access);
        if object != id {
            return (hits, Stopped::RunOver);
        }
        if !touch(words, page, write) {
            return (hits, Stopped::NoHit);
        }
    }
    (accesses.len(), Stopped::RunOver)
}

/// What marks the pages of an open file as used: reads, and on tmpfs writes, too.
#[derive(Clone, Copy)]
struct FileMarks {
    is_tmpfs: bool,
    /// A read of tmpfs marks a large folio at its first page alone.
    tmpfs_reads_once: bool,
}

/// A write to a regular file marks nothing in Linux's own lists. It is a hit where the page is dirty already.
///
/// Reading the same page twice in a row marks it once, as in Linux: the second read is most likely the rest of the same request
/// and no second use. On tmpfs it marks twice. [reclaim-6.12 M2, M3] Reading on within a large folio marks it once, too, however small the reads are.
/// One write(2) on tmpfs also marks a large folio once, and reads mark it at its first page. [folios 1.7, 2.6]
///
/// `WATCHED`: the engine reports or promotes pages of slow memory. A hit that is compiled without it has no cost for that.
///
/// Never inlined, and so compiled with all registers to itself.
#[doc(alias = "filemap_read")]
#[inline(never)]
fn file_hits<const WATCHED: bool, A: Copy>(
    index: &mut Table,
    FileMarks { is_tmpfs, tmpfs_reads_once }: FileMarks,
    open: &mut OpenFile,
    id: ObjectId,
    accesses: &[A],
    decode: &impl Fn(A) -> Access,
    mut watch: Option<&mut Watch>,
) -> (usize, Stopped) {
    let mut last = open.last_page;
    let mut hits = 0;
    let stopped = loop {
        if !WATCHED {
            // Most hits read pages with nothing to gain, for the first time or again: no more than a look at their words.
            let words = index.read_words();
            while let Some(&access) = accesses.get(hits) {
                if let Some(&ahead) = accesses.get(hits + AHEAD) {
                    words.prefetch(decode(ahead).page);
                }
                let Access { object, page, write, .. } = decode(access);
                if object != id || write || !words.is_settled(page) {
                    break;
                }
                last = page;
                hits += 1;
            }
        }
        let Some(&access) = accesses.get(hits) else { break Stopped::RunOver };
        let Access { object, page, write, .. } = decode(access);
        if object != id {
            break Stopped::RunOver;
        }
        let is_overwrite = write && !is_tmpfs;
        // On tmpfs every read of a first page marks, and a write marks each folio once.
        let is_reread = if is_tmpfs {
            let before = hits.checked_sub(1).map(|at| decode(accesses[at]));
            let goes_on = || before.map_or_else(|| open.is_in_call(), |before| !before.ends_call());
            match write {
                true => page == last.wrapping_add(1) && index.is_same_folio(page, last) && goes_on(),
                false => tmpfs_reads_once && index.is_tail(page),
            }
        } else {
            index.is_same_folio(page, last)
        };
        let mut slow = None;
        if WATCHED && let Some(watch) = &mut watch {
            let is_marked = !is_overwrite && !is_reread;
            let found = if is_marked { index.frame_of_hit(page) } else { None };
            if watch.stops_before(&decode(access), found) {
                break Stopped::NoHit;
            }
            watch.looked_up += u64::from(found.is_some_and(|(_, is_in_use)| is_in_use));
            slow = watch.is_slow(page, found);
        }
        let marked = if is_overwrite {
            index.overwrite(page)
        } else if is_reread {
            index.reread(page)
        } else {
            index.mark(page)
        };
        if marked == Marked::Absent {
            break Stopped::NoHit;
        }
        hits += 1;
        if !is_overwrite {
            last = page;
        }
        if WATCHED && let Some((pfn, is_in_use)) = slow {
            let marks = matches!(marked, Marked::Slow(_));
            break Stopped::Slow { pfn, is_in_use, marks };
        }
        if let Marked::Slow(pfn) = marked {
            break Stopped::Mark(pfn);
        }
    };
    open.last_page = last;
    // The position moves when a call is over. Only where the last such call ended matters, so hits needn't keep it.
    let ends_read = |access: &Access| (is_tmpfs || !access.write) && access.wanted <= PAGE_SIZE as u32;
    if let Some(read) = accesses[..hits].iter().rev().map(|&access| decode(access)).find(ends_read) {
        open.prev_pos = read.page * PAGE_SIZE + u64::from(read.wanted);
    }
    (hits, stopped)
}

impl Engine {
    /// Returns the page of an access: through the page table for a mapping, through the page-cache index for an open file.
    /// A write of a regular file is over only where the page is still dirty. Panics where the task has no such object or the
    /// object no such page.
    pub fn touched(&self, task: TaskId, access: Access) -> Touched {
        self.tasks[task.index()].touched(&self.core, access)
    }

    /// Returns which reads a thread has to report that it makes without the engine, although they change nothing in the page's word
    /// ([`Engine::words_of`]).
    pub fn watched_reads(&self) -> WatchedReads {
        WatchedReads::of(&self.core.mm.lower_tiers)
    }

    /// The node that a frame is on.
    #[inline]
    pub fn node_of(&self, pfn: Pfn) -> NodeId {
        self.core.mm.memory.zones.node_of(pfn)
    }

    /// Keeps a frame that an access was served from, and what it holds, until [`Engine::release`]: reclaim finds it in use.
    pub fn hold(&mut self, pfn: Pfn) {
        let pfn = self.core.mm.memory.folio_of(pfn);
        self.core.mm.memory.folios[pfn].refs += 1;
    }

    /// Ends one [`Engine::hold`].
    pub fn release(&mut self, pfn: Pfn) {
        let pfn = self.core.mm.memory.folio_of(pfn);
        let folio = &mut self.core.mm.memory.folios[pfn];
        assert!(folio.refs > 0, "frame {} is not held", pfn.0);
        folio.refs -= 1;
        self.core.release_if_unused(pfn);
    }
}

impl Current<'_> {
    /// Returns whether an access is sure to miss, as its page is not in memory. This reads the word once; a run of hits begins with more
    /// work.
    #[inline]
    pub(super) fn is_sure_to_miss(&self, access: Access) -> bool {
        let word = match self.task.objects[access.object.index()] {
            Object::File { file, .. } => self.core.mm.memory.file(file).index.word(access.page),
            Object::Mapping { mm, start, .. } => self.core.mm.memory.mm(mm).table.word(start + access.page),
        };
        !word.is_present()
    }

    /// A task accesses its address space, which a scan for NUMA balancing wants to know.
    #[inline]
    pub(super) fn use_mm(&mut self) {
        let mm = self.task.mm();
        self.core.mm.memory.mms[mm.index()].used_on_nodes = !0;
    }
}

impl Task {
    /// Checks what can be wrong with an access before anything is done for it.
    pub(crate) fn check_access(&self, access: Access) -> Result<(), AccessError> {
        let object = self
            .objects
            .get(access.object.index())
            .ok_or(AccessError::NoObject { object: access.object, objects: self.objects.len() })?;
        if access.page >= object.pages() {
            return Err(AccessError::BeyondObject { page: access.page, pages: object.pages() });
        }
        Ok(())
    }

    /// See [`Engine::touched`].
    pub(super) fn touched(&self, core: &Core, access: Access) -> Touched {
        match self.objects[access.object.index()] {
            Object::Mapping { mm, start, is_regular_file, .. } => {
                let word = core.mm.memory.mm(mm).table.word(start + access.page);
                match word.decode() {
                    _ if is_regular_file && access.write && !word.is_dirty() => Touched::Gone,
                    Entry::Present(_) if word.is_zero_page() => Touched::Zeroes,
                    Entry::Present(_) => Touched::Frame(word.frame(start + access.page)),
                    _ => Touched::Gone,
                }
            }
            Object::File { file, is_tmpfs, .. } => {
                let word = core.mm.memory.file(file).index.word(access.page);
                match word.decode() {
                    _ if !is_tmpfs && access.write && !word.is_dirty() => Touched::Gone,
                    Entry::Present(_) if word.is_plain() => Touched::Frame(word.frame(access.page)),
                    // The written page was truncated before the writer was back.
                    Entry::Empty | Entry::Shadow(_) if is_tmpfs && !access.write => Touched::Zeroes,
                    _ => Touched::Gone,
                }
            }
        }
    }
}
