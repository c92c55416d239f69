//! What the kernel holds for itself: objects that share pages, and pools of huge pages. [machine 7]

pub mod slab; // objects that share pages

use crate::page_alloc::request::MigrateType;
use crate::units::{MAX_BLOCK_ORDER, Pfn};
use slab::Slab;
use std::collections::BTreeMap;

/// Bytes that a memcg is charged for a node of an index: the object, and a pointer to its memcg.
pub const INDEX_NODE_BYTES: u64 = 576 + 8;
/// Nodes of an index in a page.
pub const INDEX_NODES_PER_PAGE: u16 = 7;
/// Pages of a kernel stack.
pub const STACK_PAGES: usize = 4;

/// The frames of a task's kernel stack.
pub type Stack = Box<[Pfn]>;

/// The blocks that are held, by order.
#[derive(Default)]
pub struct HugePools(pub [Vec<Pfn>; MAX_BLOCK_ORDER as usize + 1]);

impl HugePools {
    /// Huge pages in the pool of an order.
    pub fn len(&self, order: u8) -> usize {
        self.0[order as usize].len()
    }

    /// All blocks with their orders.
    pub fn iter(&self) -> impl Iterator<Item = (Pfn, u8)> {
        (0..).zip(&self.0).flat_map(|(order, pool)| pool.iter().map(move |&pfn| (pfn, order)))
    }
}

/// The slab caches of the kernel's own objects. Page tables and stacks are counted with their owners.
pub struct KernelMemory {
    /// Nodes of page-cache indexes.
    pub index_nodes: Slab,
    /// The kernel was built with small slabs (`CONFIG_SLUB_TINY`).
    pub has_tiny_slabs: bool,
    /// Pools of huge pages, by order.
    pub huge_pools: HugePools,
    /// Frames that the host has back.
    pub balloon: Balloon,
    /// Blocks that are given back by number: those of a kernel's trace.
    pub blocks: BTreeMap<u64, Pfn>,
    /// If they are all that the kernel takes from the allocator.
    pub aside: Aside,
}

/// Frames that the host has back: it gives their memory to others. In the order in which they were taken.
#[derive(Default)]
pub struct Balloon {
    frames: Vec<Pfn>,
}

impl Balloon {
    /// The frames, first taken first.
    pub fn frames(&self) -> &[Pfn] {
        &self.frames
    }

    /// Adds a frame.
    pub fn push(&mut self, pfn: Pfn) {
        self.frames.push(pfn);
    }

    /// Removes the frame that was taken last.
    pub fn pop(&mut self) -> Option<Pfn> {
        self.frames.pop()
    }
}

/// Frames that the allocator never had, for nodes, page tables and stacks that are accounted elsewhere.
#[derive(Default)]
pub struct Aside {
    all: Vec<Pfn>,
    spare: Vec<Pfn>,
}

impl Aside {
    /// These, which are in the kernel's hands, and stay in them.
    pub fn new(mut frames: Vec<Pfn>) -> Aside {
        frames.sort_unstable();
        Aside { spare: frames.clone(), all: frames }
    }

    /// One of them, if there is one left.
    pub fn take(&mut self) -> Option<Pfn> {
        self.spare.pop()
    }

    /// Takes one back; false if it is none of them.
    #[must_use]
    pub fn give(&mut self, pfn: Pfn) -> bool {
        let is_own = self.all.binary_search(&pfn).is_ok();
        if is_own {
            self.spare.push(pfn);
        }
        is_own
    }
}

impl Default for KernelMemory {
    fn default() -> KernelMemory {
        KernelMemory {
            index_nodes: Slab::new(INDEX_NODES_PER_PAGE),
            has_tiny_slabs: false,
            huge_pools: HugePools::default(),
            balloon: Balloon::default(),
            blocks: BTreeMap::new(),
            aside: Aside::default(),
        }
    }
}

impl KernelMemory {
    /// The pageblocks that contain nodes of indexes. They can be freed, so they are kept apart from unmovable memory, except for tiny slabs.
    pub fn index_nodes_kind(&self) -> MigrateType {
        if self.has_tiny_slabs { MigrateType::Unmovable } else { MigrateType::Reclaimable }
    }

    /// The order of a slab of buffers of a page: eight of them, or two.
    pub fn buffers_order(&self) -> u8 {
        if self.has_tiny_slabs { 1 } else { 3 }
    }
}
