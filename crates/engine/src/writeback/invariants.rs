//! Invariants of dirty pages: all places that call a page dirty agree, and every counter is the sum over the pages.

use crate::core::Core;
use crate::memory::file::InodeList;
use crate::memory::folio::FolioFlags;
use crate::stat::Stat;
use crate::units::{FileId, MemcgId, NodeId, Pfn};
use crate::writeback::Wb;
use crate::writeback::foreign::REMEMBERED;
use std::collections::BTreeMap;

impl Core {
    /// Panics unless folios, index words, tags, lists of files and counters agree. `users` has all folios that are in an index.
    pub(crate) fn check_writeback<'a>(&self, users: impl Iterator<Item = &'a Pfn>) {
        let mut dirty_of: BTreeMap<(MemcgId, NodeId), i64> = BTreeMap::new();
        let (mut dirty_in_wb, mut writeback_in_wb) =
            (vec![0; self.writeback.wbs.len()], vec![0; self.writeback.wbs.len()]);
        let mut dirty_in_file: BTreeMap<FileId, u64> = BTreeMap::new();
        let mut written_in_file: BTreeMap<FileId, u64> = BTreeMap::new();
        for &pfn in users {
            let folio = &self.mm.memory.folios[pfn];
            if !folio.has(FolioFlags::INDEXED) || folio.has(FolioFlags::SWAPBACKED) {
                continue;
            }
            let (file, pages) = (FileId(folio.owner), folio.pages());
            let of = self.mm.memory.file(file);
            let is_dirty = folio.has(FolioFlags::DIRTY);
            for page in folio.file_pages() {
                assert_eq!(of.index.word(page).is_dirty(), is_dirty, "{pfn:?}: its word and DIRTY differ");
                assert_eq!(
                    of.inode.dirty.contains(page),
                    is_dirty,
                    "{pfn:?}: its file's tags and DIRTY differ"
                );
            }
            assert!(
                is_dirty || !self.mm.is_mapped_dirty(pfn),
                "{pfn:?} is clean, but an entry that maps it is dirty"
            );
            if is_dirty {
                *dirty_in_file.entry(file).or_default() += pages;
                *dirty_of.entry((folio.memcg, folio.node)).or_default() += pages as i64;
                dirty_in_wb[of.inode.wb.expect("a dirty file has a wb").index()] += pages;
            }
            let is_written = folio.has(FolioFlags::WRITEBACK);
            for page in folio.file_pages() {
                assert_eq!(
                    of.inode.writeback.contains(page),
                    is_written,
                    "{pfn:?}: its file's tags and WRITEBACK differ"
                );
            }
            if is_written {
                *written_in_file.entry(file).or_default() += pages;
                writeback_in_wb[of.inode.wb.expect("a written file has a wb").index()] += pages;
            }
        }
        for lruvec in self.mm.lruvecs.iter() {
            let dirty = dirty_of.remove(&(lruvec.memcg, lruvec.node)).unwrap_or(0);
            assert_eq!(
                lruvec.stat_local[Stat::NrDirty as usize],
                dirty,
                "dirty pages of {}",
                self.mm.memcgs.path(lruvec.memcg)
            );
        }
        for (at, file) in self.mm.memory.files.iter().enumerate() {
            let id = FileId(at as u32);
            let dirty = dirty_in_file.remove(&id).unwrap_or(0);
            assert_eq!(file.inode.dirty.count(), dirty, "dirty pages of {}", file.name);
            let written = written_in_file.remove(&id).unwrap_or(0);
            assert_eq!(file.inode.writeback.count(), written, "pages of {} under writeback", file.name);
            assert!(
                dirty == 0 || file.inode.on != InodeList::None,
                "{} is dirty, but no flusher knows it",
                file.name
            );
            self.check_unflushed(id);
            let places = self.writeback.wbs.iter().map(|wb| places(wb, id)).sum::<usize>();
            assert_eq!(
                places,
                usize::from(file.inode.on != InodeList::None),
                "places of {} with its flusher",
                file.name
            );
        }
        self.check_stuck();
        for (&memcg, domain) in &self.writeback.by_memcg {
            assert!(domain.foreign.len() <= REMEMBERED, "{} remembers too many", self.mm.memcgs.path(memcg));
            for (at, foreign) in domain.foreign.iter().enumerate() {
                assert_ne!(self.writeback.wb(foreign.wb).memcg, memcg, "what is its own is not another's");
                assert!(foreign.at <= self.by.now, "dirtied in the future");
                let is_twice = domain.foreign[..at].iter().any(|other| other.wb == foreign.wb);
                assert!(!is_twice, "{} remembers a wb twice", self.mm.memcgs.path(memcg));
            }
        }
        for (at, wb) in self.writeback.wbs.iter().enumerate() {
            assert_eq!(
                (wb.nr_dirty, wb.nr_writeback),
                (dirty_in_wb[at], writeback_in_wb[at]),
                "pages of wb {at}"
            );
        }
    }
}

/// How often a wb has a file on its lists or in its current work.
fn places(wb: &Wb, file: FileId) -> usize {
    let lists = [&wb.b_dirty, &wb.b_io, &wb.b_more_io].into_iter().flatten();
    lists.filter(|&&listed| listed == file).count() + usize::from(wb.worker.file() == Some(file))
}
