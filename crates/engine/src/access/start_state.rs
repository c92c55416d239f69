//! A machine in the state of a snapshot, before any task continues: for replays of recordings.

use crate::access::engine::Engine;
use crate::config::ConfigError;
use crate::kmem::Aside;
use crate::lru::StartLruvec;
use crate::memory::folio::FolioFlags;
use crate::units::{MemcgId, NodeId, Pfn, ZoneType};
use pageout_mm::page_alloc::free_memory::FreeMemory;

impl Engine {
    /// Makes this the free memory of a zone: blocks in the order of their lists, the types of pageblocks, the pages that CPUs hold, and
    /// the number of unmanaged frames. Memory that is free now and not part of it belongs to the kernel permanently.
    pub fn set_free_memory(
        &mut self,
        node: NodeId,
        zone: ZoneType,
        free: &FreeMemory,
    ) -> Result<(), ConfigError> {
        let mm = &mut self.core.mm;
        let has_zone = mm.memory.zones.info().any(|info| (info.node, info.zone) == (node, zone));
        if !has_zone {
            return Err(ConfigError::Unknown(format!("zone {} of node {}", zone.name(), node.0)));
        }
        let held = mm.memory.set_free(node, zone, free, &mm.config).map_err(ConfigError::NotAsFound)?;
        for pfn in held {
            mm.kernel_page_new(pfn, MemcgId::ROOT);
        }
        Ok(())
    }

    /// Puts all of a group's folios on a node on the lists on which they were found, in order, and gives its lruvec what belongs to them.
    pub fn set_lists(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        found: &StartLruvec,
    ) -> Result<(), ConfigError> {
        if !self.core.mm.memcgs.contains(memcg) {
            return Err(ConfigError::Unknown(format!("memcg {}", memcg.0)));
        }
        let lruvec = self.core.mm.lruvecs.id(memcg, node);
        self.core.set_lists(lruvec, found).map_err(ConfigError::NotAsFound)
    }

    /// Nodes of indexes, page tables and stacks take these frames, which belong to the kernel and not to the allocator. The allocator's
    /// blocks that the kernel takes are reported one by one ([`Engine::take_kernel_block`]). When these frames are used up, the
    /// allocator's are taken.
    pub fn take_kernel_memory_aside(&mut self, frames: Vec<Pfn>) {
        for &pfn in &frames {
            assert!(
                self.core.mm.memory.folios[pfn].has(FolioFlags::KERNEL),
                "{pfn:?} is set aside for the kernel, and is not the kernel's"
            );
        }
        self.core.mm.kmem.aside = Aside::new(frames);
    }

    /// The kernel takes as little as it can for slabs (`CONFIG_SLUB_TINY`): those that can be freed do not lie apart, and they are of fewer pages.
    pub fn use_tiny_slabs(&mut self) {
        self.core.mm.kmem.has_tiny_slabs = true;
    }
}
