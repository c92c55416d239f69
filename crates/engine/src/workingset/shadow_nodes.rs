//! Index nodes that hold nothing but shadows: memory spent on the past. Reclaim takes it back when it grows too much.
//!
//! A node has 64 slots, and its shadows stay while it holds a page as well. When it loses its last page, it goes to the end of a queue.
//! Beyond an eighth of the group's pages, the first in the queue can be freed. Since their pages were evicted, the cache has turned over
//! several times, and their shadows have no value any more. A call of reclaim offers to free half of the excess, and does so in chunks of
//! 128: the excess grows to 256 nodes, and falls by 128. The swap cache has such nodes, too, by slot. [reclaim 3.3]

use crate::core::Core;
use crate::lru::lruvec::{LruList, Lruvec, LruvecId};
use crate::memory::table::{NODE_SLOTS, NodeChange, SwapEntry, Word};
use crate::reclaim::ShrinkerCall;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{FileId, MemcgId, NodeId, PAGE_SIZE, Pfn};
use crate::workingset::{IndexNode, Indexed};

impl Core {
    /// Keeps the queue right after a word of a file's index was replaced on behalf of a folio. Entries in the head are in no node.
    pub(crate) fn index_changed(&mut self, pfn: Pfn, change: NodeChange) {
        if change != NodeChange::None {
            self.index_changed_at(pfn, self.mm.memory.folios[pfn].index.into(), change);
        }
    }

    /// The same, where that was the word of this page of the folio.
    pub(crate) fn index_changed_at(&mut self, pfn: Pfn, page: u64, change: NodeChange) {
        if change != NodeChange::None {
            let file = FileId(self.mm.memory.folios[pfn].owner);
            if !self.mm.memory.file(file).nodes.has_head() {
                self.node_changed(pfn, IndexNode::of_page(file, page), change);
            }
        }
    }

    /// What an index knows of a page that is not in memory goes: a shadow, or where it is in swap.
    pub(crate) fn index_forget(&mut self, file: FileId, page: u64) {
        let of = self.mm.memory.file_mut(file);
        let (_, change) = of.index.replace(page, Word::EMPTY);
        let (is_empty, has_head) = (of.index.is_node_empty(page), of.nodes.has_head());
        debug_assert_ne!(change, NodeChange::ShadowOnly, "pages in swap have their shadows there");
        if change == NodeChange::Mixed && !has_head {
            self.forget_shadow_node(IndexNode::of_page(file, page));
        }
        if is_empty {
            self.index_nodes_free(file, page);
        }
    }

    /// Keeps the queue right after a word of the swap cache was replaced on behalf of a folio.
    pub(crate) fn swap_index_changed(&mut self, pfn: Pfn, entry: SwapEntry, change: NodeChange) {
        self.node_changed(pfn, IndexNode::of_slot(entry), change);
    }

    fn node_changed(&mut self, pfn: Pfn, index_node: IndexNode, change: NodeChange) {
        match change {
            NodeChange::None => {}
            NodeChange::ShadowOnly => match index_node.of {
                Indexed::File(_) => self.queue_shadow_node(index_node),
                // No group pays for a node of a swap cache, and its place isn't recorded; the page that leaves it last is a fair guess.
                Indexed::Swap(_) => self.queue_at(index_node, MemcgId::ROOT, self.mm.memory.folios[pfn].node),
            },
            NodeChange::Mixed => self.forget_shadow_node(index_node),
        }
    }

    /// A node of a file holds nothing but shadows: it waits where it lies, at who owns it.
    pub(crate) fn queue_shadow_node(&mut self, index_node: IndexNode) {
        let Indexed::File(file) = index_node.of else { unreachable!("the node is one of a file") };
        let node = self.mm.memory.file(file).nodes.leaf(index_node.number * NODE_SLOTS);
        let node = node.expect("a node with shadows in it is there");
        self.queue_at(index_node, self.mm.memcgs.online(node.memcg), self.mm.memory.folios[node.pfn].node);
    }

    fn queue_at(&mut self, index_node: IndexNode, memcg: MemcgId, node: NodeId) {
        let lruvec = self.mm.lruvecs.id(memcg, node);
        self.mm.shadow_nodes.insert(index_node, lruvec);
        self.count(lruvec, Stat::WorkingsetNodes, 1);
        self.mm.assert_shadow_nodes_counted(lruvec);
    }

    /// A node holds a page again, or nothing at all.
    pub(crate) fn forget_shadow_node(&mut self, index_node: IndexNode) {
        let owner = self.mm.shadow_nodes.remove(index_node).expect("a shadow-only node is queued");
        self.count(owner, Stat::WorkingsetNodes, -1);
        self.mm.assert_shadow_nodes_counted(owner);
    }

    /// Offers the shadow-only nodes of an lruvec the pressure of a pass over its lists. Returns how many were freed.
    #[doc(alias = "scan_shadow_nodes")]
    pub(crate) fn shrink_shadow_nodes(&mut self, lruvec: LruvecId, priority: u8) -> u64 {
        let freeable = self.shadow_nodes_excess(lruvec);
        if freeable == 0 {
            return 0;
        }
        let deferred = &mut self.mm.lruvecs[lruvec].shadow_nodes_deferred;
        let mut call = ShrinkerCall::begin_costless(freeable, deferred, priority);
        let mut freed = 0;
        while let Some(chunk) = call.chunk() {
            let in_chunk = self.free_shadow_nodes(lruvec, chunk);
            if in_chunk == 0 {
                break;
            }
            freed += in_chunk;
            call.note(chunk);
        }
        self.mm.lruvecs[lruvec].shadow_nodes_deferred += call.left();
        let node = self.mm.lruvecs[lruvec].node;
        self.mm.count_node(node, Stat::SlabsScanned, call.scanned() as i64);
        freed
    }

    /// Shadow-only nodes of an lruvec beyond what its size justifies.
    #[doc(alias = "count_shadow_nodes")]
    fn shadow_nodes_excess(&mut self, lruvec: LruvecId) -> u64 {
        let nodes = self.mm.shadow_nodes.len_of(lruvec);
        if nodes == 0 {
            return 0;
        }
        self.flush_stats_ratelimited();
        let Lruvec { memcg, node, .. } = self.mm.lruvecs[lruvec];
        let pages: u64 = match memcg {
            // The whole machine's: as many as the node has pages, in use or not.
            MemcgId::ROOT => self.mm.config.node_pages[node.index()],
            _ => {
                let lists = LruList::EVICTABLE.into_iter().chain([LruList::Unevictable]);
                let listed: u64 = lists.map(|list| self.mm.stale(lruvec, list.stat())).sum();
                listed + self.mm.stale(lruvec, Stat::SlabReclaimable) / PAGE_SIZE
            }
        };
        nodes.saturating_sub(pages >> 3)
    }

    /// Frees the oldest shadow-only nodes of an lruvec, with what they remember.
    #[doc(alias = "shadow_lru_isolate")]
    fn free_shadow_nodes(&mut self, lruvec: LruvecId, count: u64) -> u64 {
        let doomed: Vec<IndexNode> = self.mm.shadow_nodes.of(lruvec).take(count as usize).collect();
        let freed = doomed.len() as u64;
        for index_node in doomed {
            let index = match index_node.of {
                Indexed::File(file) => &mut self.mm.memory.file_mut(file).index,
                Indexed::Swap(swap) => self.mm.memory.swap.cache_mut(swap),
            };
            let first = index_node.number * NODE_SLOTS;
            for slot in first..(first + NODE_SLOTS).min(index.pages()) {
                if index.word(slot).is_shadow() {
                    index.replace(slot, Word::EMPTY);
                }
            }
            debug_assert!(
                (first..first + NODE_SLOTS)
                    .all(|slot| slot >= index.pages() || index.word(slot) == Word::EMPTY),
                "an index node is freed with something in it, from {first} on"
            );
            self.forget_shadow_node(index_node);
            self.count(lruvec, Stat::WorkingsetNodereclaim, 1);
            if let Indexed::File(file) = index_node.of {
                self.index_nodes_free(file, first);
            }
        }
        freed
    }
}

impl State {
    /// A node was queued, or taken off its queue: an lruvec counts as many as are queued for it, and the machine all.
    fn assert_shadow_nodes_counted(&self, lruvec: LruvecId) {
        if cfg!(debug_assertions) {
            let counted = self.lruvecs[lruvec].stat_local[Stat::WorkingsetNodes as usize];
            let queued = self.shadow_nodes.len_of(lruvec);
            assert_eq!(counted, queued as i64, "workingset_nodes of a group, and those in its queue");
            let (counted, queued) = (self.vmstat(Stat::WorkingsetNodes), self.shadow_nodes.count());
            assert_eq!(counted, queued as i64, "workingset_nodes, and those in all queues");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::page_alloc::request::{Gfp, Request};
    use crate::stat::Stat;
    use crate::*;

    /// Files whose nodes are more than two chunks of the shrinker.
    const MANY: usize = 300;

    /// A group that has no charges of its own to count, and whose pages of these files, so many of each, have all been evicted. What its reclaim
    /// left of shadows, by file.
    fn remembered(config: Config, pages: &[u64]) -> (Engine, Vec<usize>) {
        remembered_of(config, pages, pages.iter().sum())
    }

    /// The same, with so many of the pages evicted, from the first.
    fn remembered_of(config: Config, pages: &[u64], evicted: u64) -> (Engine, Vec<usize>) {
        let mut engine = Engine::new(Config { node_pages: vec![4096], ..config }).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let request = Request::movable(Gfp::KERNEL, NodeId(0));
        let mut files = Vec::new();
        for (at, &pages) in pages.iter().enumerate() {
            let spec =
                FileSpec { name: format!("{at}"), pages, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
            let file = engine.file_create(spec).unwrap();
            files.push(file);
            for page in 0..pages {
                engine.core.mm.memcgs.charge(memcg, 1, 1).unwrap();
                let pfn = engine.core.alloc_pages(&request, memcg).unwrap();
                engine.core.mm.memory.folios[pfn].set(crate::memory::folio::FolioFlags::CHARGED);
                engine.core.page_cache_add(pfn, file, page, crate::lru::AddedFor::Other);
                engine.core.lru_add(pfn, crate::lru::AddedFor::Other);
            }
        }
        let bytes = (evicted * PAGE_SIZE).to_string();
        let mut step = engine.write_file(task, "/sys/fs/cgroup/job/memory.reclaim", &bytes).unwrap();
        while !matches!(step, Step::Done(_)) {
            step = engine.resume(task);
        }
        engine.check_invariants();
        let shadows = |file: &FileId| {
            let index = &engine.core.mm.memory.file(*file).index;
            index.iter().filter(|(_, word)| word.is_shadow()).count()
        };
        let shadows = files.iter().map(shadows).collect();
        (engine, shadows)
    }

    #[test]
    fn shadow_of_a_file_of_one_page_needs_no_node_and_stays() {
        let config = Config { kmem: false, kmem_counted: true, ..Config::default() };
        let (mut engine, shadows) = remembered(config, &[[1; MANY], [3; MANY]].concat());
        // The group has no pages left, and so no node of shadows.
        assert_eq!(shadows, [[1; MANY], [0; MANY]].concat());
        // With its inode a file is forgotten, but not while it has pages.
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        for (file, left) in [(0, 0), (2, 0)] {
            let object = engine.open(task, FileId(file)).unwrap();
            _ = engine.inode_reclaim(task, object).unwrap();
            let index = &engine.core.mm.memory.file(FileId(file)).index;
            assert_eq!(index.iter().count(), left);
        }
        engine.check_invariants();
    }

    #[test]
    fn shadow_nodes_are_freed_by_the_chunk() {
        let forgotten = |files: usize| {
            let config = Config { kmem: false, kmem_counted: true, ..Config::default() };
            let pages = [vec![3; files], vec![640]].concat();
            let (_, shadows) = remembered_of(config, &pages, 3 * files as u64);
            shadows[..files].iter().filter(|&&shadows| shadows == 0).count()
        };
        // By its counters, which were not brought up to date yet, the group has no pages that justify nodes.
        assert_eq!(forgotten(200), 0);
        assert_eq!(forgotten(300), 128);
    }

    #[test]
    fn nodes_of_a_group_are_its_own_only_if_counted() {
        let uncounted = Config { kmem: false, ..Config::default() };
        assert_eq!(remembered(uncounted, &[3; MANY]).1, [3; MANY], "the machine has few for its size");
        let charged = Config { kmem: true, ..Config::default() };
        assert_eq!(remembered(charged, &[3; MANY]).1, [0; MANY]);
    }

    #[test]
    fn a_node_of_shadows_is_accounted_and_freed_where_it_lies() {
        let small = 2 * crate::memory::table::NODE_SLOTS;
        let config = Config { node_pages: vec![small, 4096], kmem: true, ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let pages = 5 * crate::memory::table::NODE_SLOTS;
        let spec =
            FileSpec { name: "data".to_owned(), pages, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
        let file = engine.file_create(spec).unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let request = Request::movable(Gfp::KERNEL, NodeId(0));
        for page in 0..pages {
            engine.core.mm.memcgs.charge(memcg, 1, 1).unwrap();
            let pfn = engine.core.alloc_pages(&request, memcg).unwrap();
            engine.core.mm.memory.folios[pfn].set(crate::memory::folio::FolioFlags::CHARGED);
            engine.core.page_cache_add(pfn, file, page, crate::lru::AddedFor::Other);
            engine.core.lru_add(pfn, crate::lru::AddedFor::Other);
        }
        let all = (pages * PAGE_SIZE).to_string();
        let mut step = engine.write_file(task, "/sys/fs/cgroup/job/memory.reclaim", &all).unwrap();
        while !matches!(step, Step::Done(_)) {
            step = engine.resume(task);
        }
        // Too many for a group without pages. They lie on the first node, of whose lists reclaim is through when the last of
        // them loses its pages of the second node.
        let freed = |node| engine.figures().node_stat(NodeId(node), Stat::WorkingsetNodereclaim);
        assert_eq!((freed(0), freed(1)), (4, 0));
        assert_eq!(engine.figures().node_stat(NodeId(0), Stat::WorkingsetNodes), 1);
    }
}
