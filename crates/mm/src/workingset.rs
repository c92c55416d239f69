//! Which index nodes hold nothing but shadows, queued by the lruvec that they are accounted to. [reclaim 3.3]

use crate::lru::lruvec::LruvecId;
use crate::memory::table::{NODE_SLOTS, SwapEntry};
use crate::units::{FileId, SwapId};
use std::collections::BTreeMap;

/// The object of an index: the pages of a file, or the slots of a swap device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Indexed {
    /// The pages of a file.
    File(FileId),
    /// The slots of a swap device.
    Swap(SwapId),
}

/// A node of an index, by its number in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct IndexNode {
    /// The index that holds the shadow.
    pub of: Indexed,
    /// Its number there: the first page divided by the slots of a node.
    pub number: u64,
}

impl IndexNode {
    /// The node that a page of a file lies in.
    pub fn of_page(file: FileId, page: u64) -> IndexNode {
        IndexNode { of: Indexed::File(file), number: page / NODE_SLOTS }
    }

    /// The node that a slot of a swap device lies in.
    pub fn of_slot(entry: SwapEntry) -> IndexNode {
        IndexNode { of: Indexed::Swap(entry.swap), number: u64::from(entry.slot) / NODE_SLOTS }
    }
}

/// The shadow-only nodes of all files and swap devices, each queued at the lruvec it is accounted to.
#[derive(Default)]
pub struct ShadowNodes {
    owners: BTreeMap<IndexNode, (LruvecId, u64)>,
    /// By owner and order of becoming shadow-only.
    queues: BTreeMap<(LruvecId, u64), IndexNode>,
    /// How long each owner's queue is.
    lengths: BTreeMap<LruvecId, u64>,
    next: u64,
}

impl ShadowNodes {
    /// Queues a node behind the others of its owner.
    pub fn insert(&mut self, node: IndexNode, owner: LruvecId) {
        self.next += 1;
        self.owners.insert(node, (owner, self.next));
        self.queues.insert((owner, self.next), node);
        *self.lengths.entry(owner).or_default() += 1;
    }

    /// Takes a node off its queue; returns the owner it was queued at.
    pub fn remove(&mut self, node: IndexNode) -> Option<LruvecId> {
        let (owner, order) = self.owners.remove(&node)?;
        self.queues.remove(&(owner, order));
        *self.lengths.get_mut(&owner)? -= 1;
        Some(owner)
    }

    /// From the oldest.
    pub fn of(&self, owner: LruvecId) -> impl Iterator<Item = IndexNode> + '_ {
        self.queues.range((owner, 0)..=(owner, u64::MAX)).map(|(_, &node)| node)
    }

    /// Nodes queued at an owner.
    pub fn len_of(&self, owner: LruvecId) -> u64 {
        self.lengths.get(&owner).copied().unwrap_or(0)
    }

    /// Hands an owner's nodes to another, behind those that it has; says how many.
    pub fn reparent(&mut self, from: LruvecId, to: LruvecId) -> u64 {
        let nodes: Vec<IndexNode> = self.of(from).collect();
        for &node in &nodes {
            self.remove(node);
            self.insert(node, to);
        }
        nodes.len() as u64
    }

    /// Nodes of all owners.
    pub fn count(&self) -> usize {
        self.owners.len()
    }
}
