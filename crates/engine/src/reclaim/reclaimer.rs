//! The reclaimer of a call: the memcg that is reclaimed from, the reason (kswapd, direct, a limit, `memory.reclaim` ...), the nodes, and
//! what the caller's gfp flags allow meanwhile. [reclaim 2.1, 2.13]

use crate::page_alloc::compact::Wanted;
use crate::page_alloc::request::{COSTLY_ORDER, MigrateType};
use crate::units::ZoneType;
use crate::units::{MemcgId, NodeId, Nodemask};

/// The reason of a reclaim call.
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
    /// No zone has a page for a task, which reclaims for the machine.
    Direct,
    /// No zone of a near node has a page for a task, which reclaims that before it uses a far one.
    Node,
    /// kswapd keeps the free pages of its node above the high watermark.
    Kswapd,
}

/// On whose behalf a reclaim call runs, and what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reclaimer {
    /// The group, with its descendants, that gives the pages.
    pub(crate) target: MemcgId,
    pub(crate) why: Why,
    /// The only node to take from; `None` is all of them.
    pub(crate) node: Option<NodeId>,
    /// For a task that needs a page: where it would have it first. It takes from all nodes that it may allocate from.
    pub(crate) from: Option<NodeId>,
    /// Nodes that the task may allocate from.
    pub(crate) allowed: Nodemask,
    pub(crate) swappiness: u8,
    /// The caller may do I/O through a file system. Reclaim from inside a file read may not: the file system might be
    /// waiting for the caller. Swap devices need no file system.
    pub(crate) may_enter_fs: bool,
    /// The caller may start I/O at all. A task that serves a device may not: the device would wait for that task.
    pub(crate) may_do_io: bool,
    /// The caller is in the middle of writing to a file.
    pub(crate) writes_file: bool,
    /// For the machine: the block that is wanted, 2^order pages, from this zone or a lower one.
    pub(crate) order: u8,
    pub(crate) class: ZoneType,
}

impl Reclaimer {
    pub(crate) fn new(target: MemcgId, why: Why, swappiness: u8) -> Reclaimer {
        Reclaimer {
            target,
            why,
            node: None,
            from: None,
            allowed: Nodemask::ALL,
            swappiness,
            may_enter_fs: true,
            may_do_io: true,
            writes_file: false,
            order: 0,
            class: ZoneType::Movable,
        }
    }

    /// From the whole machine rather than from a group.
    pub(crate) fn is_global(&self) -> bool {
        self.target == MemcgId::ROOT
    }

    /// Because the machine is short of free pages, and from all of it.
    pub(crate) fn is_for_machine(&self) -> bool {
        matches!(self.why, Why::Direct | Why::Node | Why::Kswapd) && self.is_global()
    }

    /// A task that needs a page, for the machine.
    pub(crate) fn is_task_for_machine(&self) -> bool {
        matches!(self.why, Why::Direct | Why::Node)
    }

    /// Because the machine is short of free pages, from a group that is above its soft limit.
    pub(crate) fn is_for_soft_limit(&self) -> bool {
        matches!(self.why, Why::Direct | Why::Kswapd) && !self.is_global()
    }

    /// The block that is wanted, where single pages are no use and failure is borne.
    pub(crate) fn costly_block(&self) -> Option<Wanted> {
        (self.order > COSTLY_ORDER).then(|| self.block())
    }

    /// The block that is wanted.
    pub(crate) fn block(&self) -> Wanted {
        Wanted { order: self.order, migrate_type: MigrateType::Movable, class: self.class }
    }

    /// Returns whether the caller may wait for writeout: no writer waits for the caller.
    pub(crate) fn may_wait_for_writeout(&self) -> bool {
        self.may_enter_fs && self.may_do_io
    }

    pub(crate) fn is_kswapd(&self) -> bool {
        self.why == Why::Kswapd
    }

    /// Returns whether a walk's buffer is available. A request of a user has one, and so has kswapd. A task that needs a page has none,
    /// because its stack is deep already. [reclaim-6.12 4.8]
    pub(crate) fn has_table_walk_buffer(&self) -> bool {
        matches!(self.why, Why::Requested | Why::Generations | Why::Kswapd)
    }
}
