//! Index nodes that hold nothing but shadows: memory spent on the past, which reclaim takes back when it grows too much.
//!
//! Shadows are kept as long as their node has a page to hold as well. A node of 64 slots without a page is remembered in
//! the order in which it lost its last one, and the oldest beyond an eighth of the group's pages are freed: a page that was
//! evicted so long ago that the cache has turned over several times has nothing to tell any more. [reclaim 3.3]

use crate::engine::Engine;
use crate::lruvec::LruvecId;
use crate::stat::Stat;
use crate::table::{NODE_SLOTS, NodeChange};
use crate::units::{FileId, MemcgId, NodeId, Pfn};
use std::collections::BTreeMap;

type IndexNode = (FileId, u64);

/// The shadow-only nodes of all files, each queued at the lruvec it is accounted to.
#[derive(Default)]
pub(crate) struct ShadowNodes {
    owners: BTreeMap<IndexNode, (LruvecId, u64)>,
    /// By owner and order of becoming shadow-only.
    queues: BTreeMap<(LruvecId, u64), IndexNode>,
    next: u64,
}

impl ShadowNodes {
    fn insert(&mut self, node: IndexNode, owner: LruvecId) {
        self.next += 1;
        self.owners.insert(node, (owner, self.next));
        self.queues.insert((owner, self.next), node);
    }

    fn remove(&mut self, node: IndexNode) -> Option<LruvecId> {
        let (owner, order) = self.owners.remove(&node)?;
        self.queues.remove(&(owner, order));
        Some(owner)
    }

    fn of(&self, owner: LruvecId) -> impl Iterator<Item = IndexNode> + '_ {
        self.queues.range((owner, 0)..=(owner, u64::MAX)).map(|(_, &node)| node)
    }

    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }
}

impl Engine {
    /// Keeps the queue right after a word of a file's index was replaced on behalf of a folio.
    pub(crate) fn index_changed(&mut self, pfn: Pfn, change: NodeChange) {
        if change == NodeChange::None {
            return;
        }
        let folio = self.memory.folios[pfn];
        self.index_node_changed(FileId(folio.owner), folio.index.into(), folio.memcg, change);
    }

    /// The same where no folio is involved: a slot was emptied or given a swap entry.
    pub(crate) fn index_node_changed(&mut self, file: FileId, page: u64, memcg: MemcgId, change: NodeChange) {
        let node = (file, page / NODE_SLOTS);
        match change {
            NodeChange::None => {}
            NodeChange::ShadowOnly => {
                // Index nodes are kernel memory: where that isn't accounted to groups, they are the root's.
                let owner = if self.config.kernel_memory { memcg } else { MemcgId::ROOT };
                let owner = self.lruvecs.id(owner, NodeId(0));
                self.shadow_nodes.insert(node, owner);
                self.count(owner, Stat::WorkingsetNodes, 1);
            }
            NodeChange::Mixed => {
                let owner = self.shadow_nodes.remove(node).expect("a shadow-only node is queued");
                self.count(owner, Stat::WorkingsetNodes, -1);
            }
        }
    }

    /// Frees the oldest shadow-only nodes of an lruvec beyond what its size justifies.
    pub(crate) fn shrink_shadow_nodes(&mut self, lruvec: LruvecId) {
        let nodes = self.shadow_nodes.of(lruvec).count() as u64;
        if nodes == 0 {
            return;
        }
        self.flush_stats_ratelimited();
        let pages: u64 =
            crate::lruvec::LruList::EVICTABLE.iter().map(|list| self.stale(lruvec, list.stat())).sum();
        let excess = nodes.saturating_sub(pages >> 3);
        let doomed: Vec<IndexNode> = self.shadow_nodes.of(lruvec).take(excess as usize).collect();
        for (file, node) in doomed {
            for page in node * NODE_SLOTS..(node + 1) * NODE_SLOTS {
                let index = &mut self.memory.file_mut(file).index;
                if page < index.pages() && index.word(page).is_shadow() {
                    let (_, change) = index.replace(page, crate::table::Word::EMPTY);
                    self.index_node_changed(file, page, MemcgId::ROOT, change);
                }
            }
            self.count(lruvec, Stat::WorkingsetNodereclaim, 1);
        }
    }
}
