//! Files: a page-cache index each, and the mappings through which its pages may be found.
//!
//! The index is a [`Table`]. A slot holds the resident page's word, or a shadow if reclaim took the page. For tmpfs it may also hold the swap entry
//! of a page that was swapped out.

use crate::config::{Bdi, FileKind, FileSpec};
use crate::memory::errors::{Rest, WriteErrors};
use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::memory::nodes::{NodeKind, Nodes};
use crate::memory::table::{LEAF_PAGES, Table};
use crate::memory::table_memory::TableMemory;
use crate::memory::tags::PageTags;
use crate::memory::unflushed::Unflushed;
use crate::swap::contents::Compressibility;
use crate::units::{BdiId, MmId, Nanos, WbId};
use crate::votes::ForeignHistory;
use pageout_rules::folio::TmpfsHuge;

/// A file: its page-cache index, and its inode.
pub struct File {
    /// The name by which results know it.
    pub name: String,
    /// The place of its content: a device, memory, or swap.
    pub kind: FileKind,
    /// The readahead of the device.
    pub bdi: Bdi,
    /// Which pages of tmpfs may be in large folios ([`File::allow_large`]).
    huge: TmpfsHuge,
    /// The page-cache index: one word per page that the file has, or had before it was shortened.
    pub index: Table,
    pages: u64,
    /// The compressibility of pages of tmpfs; `None`: that of the device.
    pub compressibility: Option<Compressibility>,
    /// The nodes of the index.
    pub nodes: Nodes,
    /// The reverse map of a file page starts here.
    pub mappings: Vec<FileMapping>,
    /// The file's state as an inode to write back; of a regular file only.
    pub inode: Inode,
    /// The counts of its pages.
    pub counts: FileCounts,
}

/// Counts of a file's pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FileCounts {
    /// Pages in the page cache.
    pub cached: u64,
    /// Pages that reclaim has evicted.
    pub evicted: u64,
    /// Evicted pages that were read again, as far as `workingset_refault_file` counts them.
    pub refaulted: u64,
}

/// A mapping of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileMapping {
    /// The address space.
    pub mm: MmId,
    /// Position among the mappings there.
    pub vma: usize,
    /// First page in the address space.
    pub start: u64,
}

/// A flusher's state of a regular file. [machine 5.7]
pub struct Inode {
    /// The device that it lives on.
    pub bdi: BdiId,
    /// The worker that writes the file back, from its first dirty page on: the device's worker of the group that dirtied it, or later of another that did
    /// most.
    pub wb: Option<WbId>,
    /// The flusher's list that it is on.
    pub on: InodeList,
    /// Time at which it became dirty, or was put back for a later write.
    pub dirtied_when: Nanos,
    /// The file's times, or pages of it, are to be written, as far as its flusher has looked: for tracepoints.
    pub has_dirty_times: bool,
    /// Pages of it are to be written, as far as its flusher has looked.
    pub has_dirty_pages: bool,
    /// The tick of its last write, which its times say.
    pub times_of: Option<u64>,
    /// The file's dirty pages, and those under writeback.
    pub dirty: PageTags,
    /// The file's pages under writeback.
    pub writeback: PageTags,
    /// The groups that have dirtied the file recently.
    pub foreign: ForeignHistory,
    /// The page at which the last round of writing the file ended, and the next one begins.
    pub writeback_index: u64,
    /// Writes of it that have failed.
    pub errors: WriteErrors,
    /// The pause after that.
    pub rest: Rest,
    /// Data that its device has accepted but may not have stored; nothing if a failed write leaves a clean page.
    pub unflushed: Option<Box<Unflushed>>,
}

/// Position of a file in its flusher's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InodeList {
    /// Clean, as far as the flusher has looked.
    None,
    /// The file is on `b_dirty`, `b_io` or `b_more_io`.
    Dirty,
    /// On `b_io`, to be written in this round.
    Io,
    /// On `b_more_io`, to be written in the next round.
    MoreIo,
    /// The file's pages are being written now.
    Sync,
}

impl Inode {
    /// Neither its times nor pages of it are to be written, as far as its flusher has looked.
    pub fn is_clean(&self) -> bool {
        !self.has_dirty_times && !self.has_dirty_pages
    }

    fn new(pages: u64, memory: &TableMemory) -> Inode {
        Inode {
            bdi: BdiId(0),
            wb: None,
            on: InodeList::None,
            dirtied_when: Nanos::ZERO,
            has_dirty_times: false,
            has_dirty_pages: false,
            times_of: None,
            dirty: PageTags::new(pages, memory),
            writeback: PageTags::new(pages, memory),
            foreign: ForeignHistory::default(),
            writeback_index: 0,
            errors: WriteErrors::default(),
            rest: Rest::default(),
            unflushed: None,
        }
    }
}

impl File {
    /// A file of which nothing is cached, with tables in this memory.
    pub fn new(spec: FileSpec, memory: &TableMemory) -> File {
        let FileSpec { name, pages, kind, bdi } = spec;
        let nodes = Nodes::new(NodeKind::Index, pages, memory);
        File {
            name,
            kind,
            bdi,
            huge: TmpfsHuge::Never,
            index: Table::new_in(pages, memory),
            pages,
            nodes,
            compressibility: None,
            mappings: Vec::new(),
            inode: Inode::new(pages, memory),
            counts: FileCounts::default(),
        }
    }

    /// Returns how long the file is, in pages.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Makes the file longer; no new page is cached. Its tables move when they grow, so they grow by a quarter at least. Otherwise a file that is
    /// written to its end page by page would move them with each page. The range beyond the end takes address space alone.
    pub fn grow(&mut self, pages: u64) {
        debug_assert!(pages >= self.pages, "a file grows to fewer pages");
        self.pages = pages;
        self.make_room(pages);
    }

    /// Mount option `huge=` of tmpfs. A large folio may go beyond the end of the file.
    pub fn allow_large(&mut self, huge: TmpfsHuge) {
        self.huge = huge;
        if huge != TmpfsHuge::Never {
            self.make_room(self.pages.next_multiple_of(HUGE_PAGE_PAGES));
        }
    }

    /// Returns which pages of tmpfs may be in large folios.
    #[inline]
    pub fn huge(&self) -> TmpfsHuge {
        self.huge
    }

    fn make_room(&mut self, pages: u64) {
        if pages > self.index.pages() {
            let room = pages.max(self.index.pages() + self.index.pages() / 4).next_multiple_of(LEAF_PAGES);
            self.index.grow(room - self.index.pages());
            self.nodes.grow(room);
            self.inode.dirty.grow(room);
            self.inode.writeback.grow(room);
            if let Some(unflushed) = &mut self.inode.unflushed {
                unflushed.grow(room);
            }
        }
    }

    /// Makes the file shorter; what is cached of the rest is still to go.
    pub fn shrink(&mut self, pages: u64) {
        debug_assert!(pages <= self.pages, "a file shrinks to more pages");
        self.pages = pages;
    }

    /// Returns whether it is none: its number is free.
    pub fn is_forgotten(&self) -> bool {
        self.index.pages() == 0
    }

    /// Returns whether its pages live in memory and swap only.
    pub fn is_tmpfs(&self) -> bool {
        self.kind == FileKind::Tmpfs
    }
}
