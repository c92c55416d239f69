//! Files: a page-cache index each, and the mappings through which its pages may be found.
//!
//! The index is a [`Table`]: a slot holds the resident page's word, a shadow where reclaim took the page, or, for tmpfs, the
//! swap entry of a page that was swapped out.

use crate::config::{Bdi, FileKind, FileSpec};
use crate::memory::nodes::{NodeKind, Nodes};
use crate::memory::table::Table;
use crate::units::MmId;

/// One file.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    pub(crate) bdi: Bdi,
    pub(crate) index: Table,
    /// What the index consists of.
    pub(crate) nodes: Nodes,
    /// Mappings of it, as (address space, position among its mappings): the reverse map of a file page starts here.
    pub(crate) mappings: Vec<(MmId, usize)>,
}

impl File {
    pub(crate) fn new(spec: FileSpec) -> File {
        let FileSpec { name, pages, kind, bdi } = spec;
        let nodes = Nodes::new(NodeKind::Index, pages);
        File { name, kind, bdi, index: Table::new(pages), nodes, mappings: Vec::new() }
    }

    pub(crate) fn is_tmpfs(&self) -> bool {
        self.kind == FileKind::Tmpfs
    }
}
