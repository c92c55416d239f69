//! Layout of the nodes' memory: zones, distances, CPUs and kinds of memory, as boot parameters and the hardware's tables have them.

use super::error::{ConfigError, check_range};
use crate::units::{AccessCoordinate, CpuId, NodeId, PAGEBLOCK_PAGES, ZoneType};
use std::ops::Range;

/// The layout of the nodes' memory. A node that a list has no entry for is as by default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// True if the first 16 MiB are a zone of their own (CONFIG_ZONE_DMA).
    pub zone_dma: bool,
    /// Pages at the end of each node that only movable memory may use (`movablecore`, or memory added as movable). Default: none.
    pub movable_pages: Vec<u64>,
    /// Pages of each node that the allocator never gets, in addition to those of [`Config::node_pages`](super::Config::node_pages): page structures,
    /// the kernel itself. Default: none.
    pub reserved_pages: Vec<u64>,
    /// Pageblocks of each node, evenly spread, that contain an unmovable page of the kernel from the start. They model long-lived objects on a
    /// machine that has been up for a while. The rest of such a block is free, but the complete block never is. Default: none.
    pub unmovable_blocks: Vec<u64>,
    /// Pages of the first node that the kernel's initialisation still holds when marks are computed. Default: 0.
    pub init_pages: u64,
    /// `lowmem_reserve_ratio` by zone: a lower zone keeps one page for each N pages above it. 0: nothing.
    pub lowmem_reserve_ratio: [u32; ZoneType::COUNT],
    /// The distance of each node's memory from each node, as `/sys/devices/system/node/node*/distance` has it. Default: 10 for itself, 20 for
    /// others.
    pub distances: Vec<Vec<u8>>,
    /// The node that each CPU belongs to. Default: the first.
    pub cpu_nodes: Vec<NodeId>,
    /// Pages that weighted interleaving takes from each node in a row. Default: 1.
    pub interleave_weights: Vec<u8>,
    /// The kind of each node's memory. Default: DRAM.
    pub memory_types: Vec<MemoryType>,
}

/// The kind of a node's memory, which decides its memory tier.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MemoryType {
    /// Ordinary memory.
    #[default]
    Dram,
    /// Memory of this performance. With CPUs of its own it is DRAM, and what others are compared with.
    Measured(AccessCoordinate),
    /// Memory that its driver says is so far away.
    Adistance(u32),
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            zone_dma: false,
            movable_pages: Vec::new(),
            reserved_pages: Vec::new(),
            unmovable_blocks: Vec::new(),
            init_pages: 0,
            lowmem_reserve_ratio: [256, 256, 32, 0],
            distances: Vec::new(),
            cpu_nodes: Vec::new(),
            interleave_weights: Vec::new(),
            memory_types: Vec::new(),
        }
    }
}

impl Layout {
    /// The node that a CPU belongs to.
    #[inline]
    pub fn node_of_cpu(&self, cpu: u16) -> NodeId {
        self.cpu_nodes.get(usize::from(cpu)).copied().unwrap_or_default()
    }

    /// The CPUs of a node, of so many, which follow each other; none if memory is all it has.
    #[inline]
    pub fn cpus_of_node(&self, node: NodeId, cpus: u16) -> Range<CpuId> {
        let is_here = |&cpu: &u16| self.node_of_cpu(cpu) == node;
        let first = (0..cpus).find(is_here).unwrap_or(cpus);
        CpuId(first)..CpuId((first..cpus).find(|cpu| !is_here(cpu)).unwrap_or(cpus))
    }

    pub(super) fn check(&self, node_pages: &[u64]) -> Result<(), ConfigError> {
        for (&pages, &movable) in node_pages.iter().zip(&self.movable_pages) {
            check_range("movable pages of a node", movable, 0, pages)?;
        }
        for &reserved in &self.reserved_pages {
            check_range("reserved pages of a node", reserved, 0, u64::from(u32::MAX))?;
        }
        for (node, &blocks) in self.unmovable_blocks.iter().enumerate() {
            let movable = self.movable_pages.get(node).copied().unwrap_or(0);
            let most =
                node_pages.get(node).map_or(0, |&pages| pages.saturating_sub(movable) / PAGEBLOCK_PAGES);
            check_range("unmovable pageblocks of a node", blocks, 0, most)?;
        }
        check_range("pages of initialisation", self.init_pages, 0, node_pages[0] - 1)?;
        let last = node_pages.len() as u64 - 1;
        self.cpu_nodes.iter().try_for_each(|node| check_range("node of a CPU", node.0.into(), 0, last))
    }
}
