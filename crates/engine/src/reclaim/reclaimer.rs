//! Who reclaims: on whose behalf, for what reason, where, and what it may do meanwhile.

use crate::units::{MemcgId, NodeId};

/// Why someone reclaims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// A page does not fit under a limit, or a limit was set below what is in use.
    Limit,
    /// A task has charged pages above `memory.high` and pays for them.
    High,
    /// A user asks for pages back: `memory.reclaim`.
    Requested,
    /// A user asks for generations to be evicted: `lru_gen`.
    Generations,
}

/// On whose behalf a reclaim call runs, and what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reclaimer {
    /// The group, with its descendants, that gives the pages.
    pub(crate) target: MemcgId,
    pub(crate) why: Why,
    /// The only node to take from; `None` is all of them.
    pub(crate) node: Option<NodeId>,
    pub(crate) swappiness: u8,
    /// The caller may do I/O through a file system. Reclaim from inside a file read may not: the file system might be
    /// waiting for the caller. Swap devices need no file system.
    pub(crate) may_enter_fs: bool,
}

impl Reclaimer {
    pub(crate) fn new(target: MemcgId, why: Why, swappiness: u8) -> Reclaimer {
        Reclaimer { target, why, node: None, swappiness, may_enter_fs: true }
    }

    /// On behalf of the whole machine rather than of a group.
    pub(crate) fn is_global(&self) -> bool {
        self.target == MemcgId::ROOT
    }

    /// A walk's buffer is at hand: for whatever a user asked for, but not at a limit, where the stack is deep already. [6.12 4.8]
    pub(crate) fn has_table_walk_buffer(&self) -> bool {
        matches!(self.why, Why::Requested | Why::Generations)
    }
}
