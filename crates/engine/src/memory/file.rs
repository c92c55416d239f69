//! Files: a page-cache index each, and the mappings through which its pages may be found.
//!
//! The index is a [`Table`]: a slot holds the resident page's word, a shadow where reclaim took the page, or, for tmpfs, the
//! swap entry of a page that was swapped out.

use crate::config::{Bdi, FileKind, FileSpec};
use crate::memory::errors::WriteErrors;
use crate::memory::nodes::{NodeKind, Nodes};
use crate::memory::table::Table;
use crate::memory::tags::PageTags;
use crate::swap::contents::Compressibility;
use crate::units::{BdiId, MmId, Nanos, WbId};
use crate::writeback::votes::ForeignHistory;

/// A file: its page-cache index, and its inode.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    pub(crate) bdi: Bdi,
    pub(crate) index: Table,
    /// How well pages of tmpfs compress; `None`: as the device says.
    pub(crate) compressibility: Option<Compressibility>,
    /// What the index consists of.
    pub(crate) nodes: Nodes,
    /// The reverse map of a file page starts here.
    pub(crate) mappings: Vec<FileMapping>,
    /// The file's state as an inode to write back; of a regular file only.
    pub(crate) inode: Inode,
}

/// Where a file is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileMapping {
    pub(crate) mm: MmId,
    /// Position among the mappings there.
    pub(crate) vma: usize,
    /// First page in the address space.
    pub(crate) start: u64,
}

/// What a flusher knows of a regular file. [machine 5.7]
pub(crate) struct Inode {
    /// The device that it lives on.
    pub(crate) bdi: BdiId,
    /// The worker that writes the file back, from its first dirty page on: the device's worker of the group that dirtied it, or later of another that did
    /// most.
    pub(crate) wb: Option<WbId>,
    pub(crate) on: InodeList,
    /// When it became dirty, or was put back to be written later.
    pub(crate) dirtied_when: Nanos,
    /// The file's times, or pages of it, are to be written, as far as its flusher has looked: for tracepoints.
    pub(crate) has_dirty_times: bool,
    pub(crate) has_dirty_pages: bool,
    /// The tick of its last write, which its times say.
    pub(crate) times_of: Option<u64>,
    /// The file's dirty pages, and those under writeback.
    pub(crate) dirty: PageTags,
    pub(crate) writeback: PageTags,
    /// Which groups have dirtied the file of late.
    pub(crate) foreign: ForeignHistory,
    /// The page at which the last round of writing the file ended, and the next one begins.
    pub(crate) writeback_index: u64,
    /// Writes of it that have failed.
    pub(crate) errors: WriteErrors,
}

/// Where a file stands with its flusher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InodeList {
    /// Clean, as far as the flusher has looked.
    None,
    /// The file is on `b_dirty`, `b_io` or `b_more_io`.
    Dirty,
    Io,
    MoreIo,
    /// The file's pages are being written now.
    Sync,
}

impl Inode {
    /// Neither its times nor pages of it are to be written, as far as its flusher has looked.
    pub(crate) fn is_clean(&self) -> bool {
        !self.has_dirty_times && !self.has_dirty_pages
    }

    fn new(pages: u64) -> Inode {
        Inode {
            bdi: BdiId(0),
            wb: None,
            on: InodeList::None,
            dirtied_when: Nanos::ZERO,
            has_dirty_times: false,
            has_dirty_pages: false,
            times_of: None,
            dirty: PageTags::new(pages),
            writeback: PageTags::new(pages),
            foreign: ForeignHistory::default(),
            writeback_index: 0,
            errors: WriteErrors::default(),
        }
    }
}

impl File {
    pub(crate) fn new(spec: FileSpec) -> File {
        let FileSpec { name, pages, kind, bdi } = spec;
        let nodes = Nodes::new(NodeKind::Index, pages);
        File {
            name,
            kind,
            bdi,
            index: Table::new(pages),
            nodes,
            compressibility: None,
            mappings: Vec::new(),
            inode: Inode::new(pages),
        }
    }

    pub(crate) fn is_tmpfs(&self) -> bool {
        self.kind == FileKind::Tmpfs
    }
}
