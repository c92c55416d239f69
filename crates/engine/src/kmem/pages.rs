//! Frames for the kernel's own use, and their charge where one is paid by the page. [machine 7]

use crate::config::ConfigError;
use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::stat::Stat;
use crate::state::State;
use crate::units::{MemcgId, NodeId, PAGE_SIZE, Pfn};

impl Core {
    /// Gives a frame of the kernel's back.
    pub(crate) fn kernel_page_free(&mut self, pfn: Pfn) {
        assert!(
            self.mm.memory.folios[pfn].has(FolioFlags::KERNEL),
            "{pfn:?} is freed as the kernel's, but is not"
        );
        if self.mm.kmem.aside.give(pfn) {
            return;
        }
        self.mm.memory.folios[pfn].clear(FolioFlags::KERNEL);
        self.free_folio(pfn);
    }

    /// Takes this many pages permanently, for memory that is not modelled page by page. Only pages above the low watermark are used.
    pub(crate) fn hold_kernel_memory(&mut self, pages: u64) -> Result<(), ConfigError> {
        let request = Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, self.current_node());
        for held in 0..pages {
            let Some(pfn) = self.alloc_anywhere(&request, MemcgId::ROOT) else {
                let what = "pages that the kernel holds";
                return Err(ConfigError::OutOfRange { what, value: pages, min: 0, max: held });
            };
            self.mm.kernel_page_new(pfn, MemcgId::ROOT);
        }
        // Pages beyond that, which CPUs had fetched, are free for others.
        self.mm.memory.drain_all_pages();
        Ok(())
    }

    /// Makes an allocated frame a page-table page or part of a stack. If a group pays for it, it has been charged.
    pub(crate) fn kmem_page_new(&mut self, pfn: Pfn, payer: MemcgId, gauge: Stat) {
        self.mm.kernel_page_new(pfn, payer);
        if payer != MemcgId::ROOT {
            self.objcg_charged(payer, 1);
        }
        self.kmem_page_count(pfn, gauge, 1);
    }

    /// Gives such a page back, and its charge.
    pub(crate) fn kmem_page_free(&mut self, pfn: Pfn, gauge: Stat) {
        let payer = self.mm.memory.folios[pfn].memcg;
        self.kmem_page_count(pfn, gauge, -1);
        self.kernel_page_free(pfn);
        if payer != MemcgId::ROOT {
            self.objcg_uncharge_pages(self.mm.memcgs.online(payer), 1);
        }
    }

    fn kmem_page_count(&mut self, pfn: Pfn, gauge: Stat, sign: i64) {
        let folio = self.mm.memory.folios[pfn];
        let lruvec = self.mm.lruvecs.id(self.mm.memcgs.online(folio.memcg), folio.node);
        // Stacks are counted in KiB, as a stack need not be a number of pages.
        let unit = if gauge == Stat::NrKernelStack { (PAGE_SIZE / 1024) as i64 } else { 1 };
        let before = self.mm.node_stat(folio.node, gauge);
        self.count(lruvec, gauge, sign * unit);
        debug_assert_eq!(
            self.mm.node_stat(folio.node, gauge),
            before + sign * unit,
            "{} of the node of {pfn:?}",
            gauge.name()
        );
    }
}

impl State {
    /// The memcg that is charged for kernel memory of a task of this group; the root means no charge.
    pub(crate) fn kmem_payer(&self, memcg: MemcgId) -> MemcgId {
        if self.config.kmem { memcg } else { MemcgId::ROOT }
    }

    /// The memcg that is charged for the bytes of a page of this group in zswap; the root means no charge.
    pub(crate) fn zswap_payer(&self, memcg: MemcgId) -> MemcgId {
        if self.config.kmem_of_zswap { memcg } else { self.kmem_payer(memcg) }
    }

    /// The memcg that nodes of an index are accounted to, whether or not it is charged for them.
    pub(crate) fn kmem_owner(&self, memcg: MemcgId) -> MemcgId {
        if self.config.kmem || self.config.kmem_counted { memcg } else { MemcgId::ROOT }
    }

    /// A frame for the kernel's own use that is no matter of the allocator's, where there are such.
    pub(crate) fn frame_aside(&mut self) -> Option<Pfn> {
        let pfn = self.kmem.aside.take()?;
        self.memory.folios[pfn].clear(FolioFlags::KERNEL);
        Some(pfn)
    }

    /// Makes an allocated frame the kernel's own. Nothing a machine knows of is in it.
    pub(crate) fn kernel_page_new(&mut self, pfn: Pfn, payer: MemcgId) {
        let folio = &mut self.memory.folios[pfn];
        assert!(!folio.has(FolioFlags::KERNEL), "{pfn:?} becomes the kernel's, and is");
        assert!(!folio.has(FolioFlags::CHARGED), "{pfn:?} becomes the kernel's, and a group pays for it");
        assert!(
            folio.refs <= 1 && folio.mapped == 0,
            "{pfn:?} becomes the kernel's while it is in use: {folio:?}"
        );
        folio.refs = 0;
        folio.memcg = payer;
        folio.set(FolioFlags::KERNEL);
    }

    /// Takes the pages of the kernel that lie scattered in each node from the start.
    pub(crate) fn hold_scattered_pages(&mut self) {
        for (node, blocks) in (0..).map(NodeId).zip(self.config.layout.unmovable_blocks.clone()) {
            for pfn in self.memory.take_scattered(node, blocks) {
                self.kernel_page_new(pfn, MemcgId::ROOT);
            }
        }
    }
}
