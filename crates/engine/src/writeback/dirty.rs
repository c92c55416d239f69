//! The life of a dirty page: it is dirtied, its write starts, its write ends.
//!
//! ```text
//!             folio_mark_dirty           start_file_write              file_written
//!   clean ──────────────────► DIRTY ──────────────────► WRITEBACK ──────────────────► clean
//!                               ▲                          │ written again meanwhile
//!                               └──────────────────────────┘ DIRTY as well: stays so when the write ends
//! ```
//! The dirty state is kept at three places, which change together: the folio's flags, its word in the file's index, and the
//! file's tags. A hit that writes a dirty page checks only the word. The flusher finds pages in order by the tags. A
//! page-table entry of a regular file is dirty only while its page is. When a write starts, entries are write-protected, so
//! that the next store faults and is counted. [machine 5.1]
//!
//! A write that fails leaves a clean page: its contents are in memory until the page is reclaimed, and then lost. The file
//! remembers the error for the next fsync. [machine 5.7] `writeback.failed_write=dirty` keeps the page dirty (`retry.rs`,
//! `failing.rs`).

use crate::audit::Transition;
use crate::core::Core;
use crate::memory::errors::IoError;
use crate::memory::file::InodeList;
use crate::memory::folio::FolioFlags;
#[cfg(test)]
use crate::memory::table::Entry;
use crate::memory::table::Word;
use crate::stat::Stat;
use crate::story::{PageEvent, WritebackTracepoint};
use crate::units::{BdiId, FileId, MemcgId, PAGE_SIZE, Pfn, WbId};
use crate::writeback::WritebackReason;

/// Wbs whose pages an assertion adds up, at most.
const WBS_SUMMED: usize = 8;

impl Core {
    /// A page of a regular file differs from its block from now on; false if it did already, which counts nothing.
    pub(crate) fn folio_mark_dirty(&mut self, pfn: Pfn) -> bool {
        let folio = &mut self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} becomes dirty, and is in no file");
        debug_assert!(!folio.has(FolioFlags::SWAPBACKED), "{pfn:?} becomes dirty, and no device has it");
        debug_assert!(!folio.has(FolioFlags::LOCKED), "{pfn:?} becomes dirty while it is being read");
        if folio.has(FolioFlags::DIRTY) {
            return false;
        }
        self.make_dirty(pfn, true);
        true
    }

    /// Marks a clean page as dirty. `is_news`: a task has changed it, which counts for the rates at which pages are dirtied.
    pub(super) fn make_dirty(&mut self, pfn: Pfn, is_news: bool) {
        let books = self.open_audit(Transition::Dirty, [pfn]);
        let folio = &mut self.mm.memory.folios[pfn];
        folio.set(FolioFlags::DIRTY);
        // Reclaim's wish and the mark of readahead are one bit. On a dirty page the bit is the wish.
        folio.clear(FolioFlags::RECLAIM);
        let folio = *folio;
        let (file, page, pages) = (FileId(folio.owner), u64::from(folio.index), folio.pages());
        // One byte makes all of a folio's pages dirty [folios 1.10].
        self.count(self.mm.lruvec_of(pfn), Stat::NrDirty, pages as i64);
        if is_news {
            self.out.count.dirtied(1);
            self.mm.count_node(folio.node, Stat::NrDirtied, pages as i64);
        }
        let now = self.by.now;
        let of = self.mm.memory.file_mut(file);
        for page in folio.file_pages() {
            of.index.update(page, |word| {
                word.set_dirty();
                word.set_readahead(false);
            });
            of.inode.dirty.set(page);
        }
        let wb = self.inode_wb(file, folio.memcg);
        let inode = &mut self.mm.memory.file_mut(file).inode;
        let becomes_dirty = inode.on == InodeList::None;
        if becomes_dirty {
            inode.on = InodeList::Dirty;
            inode.dirtied_when = now;
        }
        let had_dirty_files = self.writeback.wb(wb).has_dirty_files();
        let of = self.writeback.wb_mut(wb);
        of.nr_dirty += pages;
        of.rates.dirtied += if is_news { pages } else { 0 };
        if becomes_dirty {
            of.b_dirty.push_front(file);
            if !had_dirty_files {
                self.arm_periodic(wb);
            }
            self.assert_inode_listed(file);
            self.assert_periodic_armed(wb);
        }
        if is_news && self.writeback.wb(wb).memcg != folio.memcg {
            self.track_foreign_dirty(folio.memcg, wb);
        }
        self.tell(pfn, |_| PageEvent::Dirtied);
        self.trace(folio.node, |core| WritebackTracepoint::DirtyFolio {
            folio: core.mm.traced_page(file, page),
        });
        self.mark_inode_pages(file);
        self.assert_dirty_counted(wb, file);
        self.close_audit(books);
    }

    /// A page of a file became dirty or clean: its wb and the nodes count it as the file does.
    #[inline]
    fn assert_dirty_counted(&self, wb: WbId, file: FileId) {
        if cfg!(debug_assertions) {
            let (of, inode) = (self.writeback.wb(wb), &self.mm.memory.file(file).inode);
            assert!(inode.wb == Some(wb), "a file's pages count for a wb that is not its own");
            assert!(
                of.nr_dirty >= inode.dirty.count(),
                "a wb has {} dirty pages, a file of it {}",
                of.nr_dirty,
                inode.dirty.count()
            );
            // Machines with many groups have many.
            if self.writeback.wbs.len() <= WBS_SUMMED {
                let counted: i64 =
                    self.mm.vmstat.iter().map(|counters| counters[Stat::NrDirty as usize]).sum();
                let of_all: u64 = self.writeback.wbs.iter().map(|wb| wb.nr_dirty).sum();
                assert_eq!(counted, of_all as i64, "dirty pages of all nodes, and of all wbs");
            }
        }
    }

    /// The wb that a file's dirty pages count for.
    fn inode_wb(&mut self, file: FileId, memcg: MemcgId) -> WbId {
        let (wb, bdi) = (self.mm.memory.file(file).inode.wb, self.mm.memory.file(file).inode.bdi);
        if let Some(wb) = wb {
            return wb;
        }
        let wb = self.wb_for(bdi, memcg);
        self.mm.memory.file_mut(file).inode.wb = Some(wb);
        wb
    }

    /// The wb of who dirties pages as this group: its own, or in cgroup v1 the machine's.
    pub(super) fn wb_for(&mut self, bdi: BdiId, memcg: MemcgId) -> WbId {
        let memcg = if self.mm.config.cgroup_version == 1 { MemcgId::ROOT } else { memcg };
        let ticks = self.ticks();
        self.writeback.wb_of(bdi, memcg, self.by.now, ticks)
    }

    /// Starts to write a dirty page. It is clean from now on, until a task changes it again.
    pub(crate) fn start_file_write(&mut self, pfn: Pfn, reason: WritebackReason) {
        debug_assert!(
            !self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK),
            "{pfn:?} is written while it is being written"
        );
        self.clear_dirty(pfn);
        let books = self.open_audit(Transition::BeginWrite, [pfn]);
        let folio = &mut self.mm.memory.folios[pfn];
        folio.set(FolioFlags::WRITEBACK);
        let folio = *folio;
        let (file, pages) = (FileId(folio.owner), folio.pages());
        let of = self.mm.memory.file_mut(file);
        let is_first = of.inode.writeback.is_empty();
        folio.file_pages().for_each(|page| of.inode.writeback.set(page));
        let wb = of.inode.wb.expect("a dirty file has a wb");
        let ticks = self.ticks();
        let of = self.writeback.wb_mut(wb);
        if of.nr_writeback == 0 {
            of.rates.begin_writeback(ticks, u64::from(self.mm.config.hz));
        }
        of.nr_writeback += pages;
        let (of_wb, of_file) = (of.nr_writeback, self.mm.memory.file(file).inode.writeback.count());
        debug_assert!(of_wb >= of_file, "a wb has {of_wb} pages under writeback, a file of it {of_file}");
        self.writeback.written_by[reason as usize] += pages;
        self.out.count.written(pages);
        let lruvec = self.mm.lruvec_of(pfn);
        self.count(lruvec, Stat::NrWriteback, pages as i64);
        self.mm.count_node(folio.node, Stat::Pgpgout, (pages * PAGE_SIZE / 1024) as i64);
        if is_first {
            self.trace(folio.node, |core| WritebackTracepoint::MarkInodeWriteback {
                inode: core.mm.listed_inode(file),
            });
        }
        self.tell(pfn, |_| PageEvent::FileWriteBegun { reason });
        self.start_write_file(pfn, reason);
        self.close_audit(books);
        self.assert_writeback_counted();
    }

    /// The write of a page has ended.
    pub(crate) fn file_written(&mut self, pfn: Pfn, result: Result<(), IoError>) {
        let folio = self.mm.memory.folios[pfn];
        let (file, now) = (FileId(folio.owner), self.by.now);
        debug_assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} was written, and has left its file meanwhile");
        let inode = &mut self.mm.memory.file_mut(file).inode;
        folio.file_pages().for_each(|page| inode.writeback.clear(page));
        let is_last = inode.writeback.is_empty();
        let is_lost = mutant!(self, WriteErrorLost);
        let bdi = inode.bdi;
        if result.is_err() && !is_lost {
            inode.errors.note();
            self.mm.memory.fs_errors[bdi.index()].note();
        }
        self.writeback.failed += u64::from(result.is_err());
        self.note_tried(file, result);
        self.note_outcome(file, result);
        if result.is_ok() {
            folio.file_pages().for_each(|page| self.note_taken(file, page));
        }
        let wb = self.mm.memory.file(file).inode.wb.expect("a file under writeback has a wb");
        self.flusher_goes_on(wb, file, folio.file_pages());
        let of_file = self.mm.memory.file(file).inode.writeback.count();
        let of = self.writeback.wb_mut(wb);
        let pages = folio.pages();
        assert!(
            of.nr_writeback >= of_file + pages,
            "a wb has {} pages under writeback, a file of it {of_file} and {pages} more",
            of.nr_writeback
        );
        of.nr_writeback -= pages;
        self.assert_wb_counted(wb);
        // A page that is dirty again was not written.
        if result.is_ok() || !self.keeps_failed_writes() {
            let of = self.writeback.wb_mut(wb);
            of.rates.written += pages;
            of.completions.add(now, pages);
            of.completions_in_memcg.add(now, pages);
            let memcg = of.memcg;
            self.writeback.global.completions.add(now, pages);
            if memcg != MemcgId::ROOT {
                self.writeback.domain_mut(memcg).completions.add(now, pages);
            }
        }
        if is_last {
            self.trace(folio.node, |core| WritebackTracepoint::ClearInodeWriteback {
                inode: core.mm.listed_inode(file),
            });
        }
        mutant!(self, CleanAfterRewrite if folio.has(FolioFlags::DIRTY) => self.clear_dirty(pfn));
    }

    /// A write has ended: what a wb has under writeback is what its files have.
    fn assert_wb_counted(&self, wb: WbId) {
        if cfg!(debug_assertions) {
            let inodes =
                self.mm.memory.files.iter().map(|file| &file.inode).filter(|inode| inode.wb == Some(wb));
            let of_files: u64 = inodes.map(|inode| inode.writeback.count()).sum();
            assert_eq!(
                self.writeback.wb(wb).nr_writeback,
                of_files,
                "pages under writeback of a wb and of its files"
            );
        }
    }

    /// A page of a file leaves the cache if it is not held, even if it is dirty.
    #[cfg(test)]
    pub(crate) fn drop_although_dirty(&mut self, file: FileId, page: u64) {
        let Entry::Present(pfn) = self.mm.memory.file(file).index.word(page).decode() else { return };
        let folio = self.mm.memory.folios[pfn];
        let busy = FolioFlags::WRITEBACK | FolioFlags::LOCKED | FolioFlags::PINNED;
        if folio.has(FolioFlags::DIRTY)
            && folio.mapped == 0
            && folio.refs == 0
            && !folio.flags().intersects(busy)
        {
            self.clear_dirty(pfn);
            self.page_cache_remove(pfn, Word::EMPTY);
            self.release_if_unused(pfn);
        }
    }

    /// A dirty page counts as clean from now on: its write begins, or its file does not have it any more.
    #[doc(alias = "folio_cancel_dirty")]
    pub(crate) fn clear_dirty(&mut self, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::DIRTY), "{pfn:?} becomes clean, and is");
        debug_assert!(folio.has(FolioFlags::INDEXED), "{pfn:?} becomes clean, and is in no file");
        debug_assert!(!folio.has(FolioFlags::SWAPBACKED), "{pfn:?} becomes clean, and no device has it");
        let books = self.open_audit(Transition::Clean, [pfn]);
        self.page_mkclean(pfn);
        debug_assert!(
            !self.mm.is_mapped_dirty(pfn),
            "{pfn:?} becomes clean, and an entry that maps it is dirty"
        );
        self.mm.memory.folios[pfn].clear(FolioFlags::DIRTY);
        let of = self.mm.memory.file_mut(FileId(folio.owner));
        for page in folio.file_pages() {
            of.index.update(page, Word::clear_dirty);
            of.inode.dirty.clear(page);
        }
        let wb = of.inode.wb.expect("a dirty file has a wb");
        let of_wb = &mut self.writeback.wb_mut(wb).nr_dirty;
        debug_assert!(*of_wb >= folio.pages(), "pages become clean, and their wb has fewer dirty ones");
        *of_wb -= folio.pages();
        self.count(self.mm.lruvec_of(pfn), Stat::NrDirty, -(folio.pages() as i64));
        self.assert_dirty_counted(wb, FileId(folio.owner));
        self.close_audit(books);
    }
}
