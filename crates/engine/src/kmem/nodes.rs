//! Memory of page-cache nodes and page tables, allocated and freed with the pages that they lead to: index nodes are objects of a slab,
//! page tables are pages. [machine 7]

use crate::core::Core;
use crate::kmem::INDEX_NODE_BYTES;
use crate::memory::mm::Mm;
use crate::memory::nodes::Node;
use crate::memory::table::{LEAF_PAGES, Word};
use crate::page_alloc::request::{Gfp, Request};
use crate::page_cache::nodes_of;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{FileId, MemcgId, MmId, Pfn};
use crate::workingset::IndexNode;
use std::ops::Range;

/// The kernel memory that is missing before a page can be stored in an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IndexRoom {
    /// Nothing is missing: the index can hold the page.
    Ready,
    /// A page charged to the group, for its stock of bytes.
    Charge,
    /// A frame, for more nodes.
    Frame,
}

impl Core {
    /// The first thing that an index lacks before a page of a file can be stored in it on behalf of this group.
    pub(crate) fn index_room(&self, memcg: MemcgId, file: FileId, page: u64) -> IndexRoom {
        let missing = self.mm.memory.file(file).nodes.missing(page);
        if missing == 0 {
            return IndexRoom::Ready;
        }
        let payer = self.mm.kmem_payer(memcg);
        if payer != MemcgId::ROOT && self.objcg_stock(payer) < missing * INDEX_NODE_BYTES {
            return IndexRoom::Charge;
        }
        if self.mm.kmem.index_nodes.room() < missing { IndexRoom::Frame } else { IndexRoom::Ready }
    }

    /// Makes the nodes that lead to a page of a file, on behalf of a group. A caller that can wait does so until
    /// [`Core::index_room`] returns ready. For others the charge may exceed limits, and a frame must be free.
    #[inline(never)]
    pub(crate) fn index_nodes_make(&mut self, memcg: MemcgId, file: FileId, page: u64) {
        let missing = self.mm.memory.file(file).nodes.missing(page);
        let payer = self.mm.kmem_payer(memcg);
        if payer != MemcgId::ROOT && missing > 0 {
            self.objcg_charge_now(payer, missing * INDEX_NODE_BYTES);
        }
        while self.mm.kmem.index_nodes.room() < missing {
            let kind = self.mm.kmem.index_nodes_kind();
            let request = Request::kernel(kind, Gfp::NOWAIT, self.current_node());
            let pfn = self
                .mm
                .frame_aside()
                .or_else(|| self.alloc_pages_now(&request, MemcgId::ROOT))
                .expect("who can't wait has seen to free frames");
            self.mm.index_nodes_grow(pfn);
        }
        let owner = self.mm.kmem_owner(memcg);
        let before = self.mm.nodes_counted(owner);
        let slab = &mut self.mm.kmem.index_nodes;
        let mut made = Vec::new();
        let of = &mut self.mm.memory.files[file.index()];
        let had_head = of.nodes.has_head();
        of.nodes.add(page, || {
            let node = Node { pfn: slab.take(), memcg: owner };
            made.push(node);
            node
        });
        // A shadow that the head held lies in a node from here on, and can be reclaimed with it.
        let is_moved = had_head && !of.nodes.has_head() && of.index.word(0).is_shadow();
        assert_eq!(made.len() as u64, missing, "nodes that were made, and those that were missing");
        for node in made {
            self.index_node_count(node, 1);
        }
        self.mm.assert_nodes_counted(owner, before, missing as i64);
        if is_moved {
            self.queue_shadow_node(IndexNode::of_page(file, 0));
        }
    }

    /// Frees the node of an index in which nothing is left, with those above that lead to nothing else.
    #[cold]
    pub(crate) fn index_nodes_free(&mut self, file: FileId, page: u64) {
        let mut freed = Vec::new();
        self.mm.memory.files[file.index()].nodes.remove(page, |node| freed.push(node));
        for node in freed {
            let before = self.mm.nodes_counted(node.memcg);
            self.index_node_count(node, -1);
            if self.mm.config.kmem && node.memcg != MemcgId::ROOT {
                self.objcg_uncharge_bytes(self.mm.memcgs.online(node.memcg), INDEX_NODE_BYTES);
            }
            if self.mm.kmem.index_nodes.give(node.pfn) {
                self.mm.count_node(self.mm.memory.folios[node.pfn].node, Stat::NrSlabReclaimable, -1);
                self.kernel_page_free(node.pfn);
            }
            self.mm.assert_nodes_counted(node.memcg, before, -1);
        }
    }

    fn index_node_count(&mut self, node: Node, sign: i64) {
        if node.memcg != MemcgId::ROOT {
            let on = self.mm.memory.folios[node.pfn].node;
            let lruvec = self.mm.lruvecs.id(self.mm.memcgs.online(node.memcg), on);
            self.count_memcg_bytes(lruvec, Stat::SlabReclaimable, sign * INDEX_NODE_BYTES as i64);
        }
    }

    /// Frees the page tables of empty pages that no mapping has any more, so many at most. Returns where others begin.
    #[doc(alias = "free_pgtables")]
    pub(crate) fn page_tables_free(&mut self, mm: MmId, pages: Range<u64>, most: usize) -> Option<u64> {
        let mut freed = Vec::new();
        let Mm { nodes, table, .. } = self.mm.memory.mm_mut(mm);
        let mut next = nodes.next_leaf(pages.clone());
        while let Some(page) = next
            && freed.len() < most
        {
            debug_assert!(
                table.words(page..pages.end.min(page + LEAF_PAGES)).all(|word| word == Word::EMPTY),
                "page table in use"
            );
            nodes.remove(page, |node| freed.push(node.pfn));
            table.leaf_freed(page);
            next = nodes.next_leaf(page + LEAF_PAGES..pages.end);
        }
        for pfn in freed {
            self.kmem_page_free(pfn, Stat::NrPageTablePages);
        }
        next
    }
}

impl State {
    /// The number of existing nodes, and the bytes of them that the paying group counts as its slab; for
    /// assertions.
    #[inline(always)]
    fn nodes_counted(&self, payer: MemcgId) -> [i64; 2] {
        if !cfg!(debug_assertions) {
            return [0; 2];
        }
        let payer = self.memcgs.online(payer);
        let of_node =
            |node| self.lruvecs[self.lruvecs.id(payer, node)].stat_local[Stat::SlabReclaimable as usize];
        [self.kmem.index_nodes.len() as i64, self.lruvecs.nodes().map(of_node).sum()]
    }

    /// So many nodes have come, or gone: the slab, its pages and the slab of who pays are larger by as much.
    #[inline(always)]
    fn assert_nodes_counted(&self, payer: MemcgId, before: [i64; 2], nodes: i64) {
        if cfg!(debug_assertions) {
            let bytes = if payer == MemcgId::ROOT { 0 } else { nodes * INDEX_NODE_BYTES as i64 };
            let after = self.nodes_counted(payer);
            assert_eq!(
                after,
                [before[0] + nodes, before[1] + bytes],
                "index nodes, and bytes of who pays for them"
            );
            let (counted, pages) = (self.vmstat(Stat::NrSlabReclaimable), self.kmem.index_nodes.len_pages());
            assert_eq!(counted, pages as i64, "nr_slab_reclaimable, and pages of the slab");
        }
    }

    /// Returns true if there is memory for the nodes that a page needs to be stored.
    pub(crate) fn index_has_slab(&self, file: FileId, page: u64) -> bool {
        self.memory.file(file).nodes.missing(page) <= self.kmem.index_nodes.room()
    }

    /// Returns true if there is memory for the nodes that a large folio of these pages needs, each node being counted with all above it.
    pub(crate) fn index_has_slab_for(&self, file: FileId, pages: &Range<u64>) -> bool {
        let nodes = &self.memory.file(file).nodes;
        nodes_of(pages).map(|page| nodes.missing(page)).sum::<u64>() <= self.kmem.index_nodes.room()
    }

    /// Returns true if the index has the leaf node for a page, and thus all nodes above it.
    ///
    /// Most misses find a node with entries. The counts of entries take a quarter of the memory, and the miss needs the count anyway.
    #[inline(always)]
    pub(crate) fn index_has_node(&self, file: FileId, page: u64) -> bool {
        let file = self.memory.file(file);
        let holds_something = !file.index.is_node_empty(page) && !file.nodes.has_head();
        debug_assert!(!holds_something || file.nodes.leaf(page).is_some(), "something is in no node");
        holds_something || file.nodes.missing(page) == 0
    }

    /// Takes a frame for more nodes.
    pub(crate) fn index_nodes_grow(&mut self, pfn: Pfn) {
        self.kernel_page_new(pfn, MemcgId::ROOT);
        self.kmem.index_nodes.add_page(pfn);
        self.count_node(self.memory.folios[pfn].node, Stat::NrSlabReclaimable, 1);
    }

    /// Makes frames the page tables that are missing on the way to a page.
    pub(crate) fn page_tables_make(&mut self, mm: MmId, page: u64, pfns: Vec<Pfn>, payer: MemcgId) {
        let mut pfns = pfns.into_iter();
        let next = || Node { pfn: pfns.next().expect("as many as are missing"), memcg: payer };
        self.memory.mm_mut(mm).nodes.add(page, next);
    }
}
