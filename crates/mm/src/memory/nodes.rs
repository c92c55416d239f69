//! The nodes that a kernel allocates for a page-cache index or a page table: which of them exist, in which frame, and who is charged.
//!
//! ```text
//!   level 2                     [ node ]                       index: slots of 64, as many levels as its last page needs
//!   level 1        [ node ]                [ node ]            page table: slots of 512, three levels (PTE, PMD, PUD)
//!   level 0   [ node ][ node ]        [ node ]                 one for each run of pages of which something is there
//! ```
//! The words of a table lie in one array whatever is in use (`table.rs`). Here is only which nodes there would be, where each
//! lies, and who pays for it. A node is made when something below it is, and freed with the last of that. An index grows upwards
//! when a page beyond its top is stored. It loses its levels when it is empty; a kernel also takes away a top that leads to one
//! node only, which saves a node or two. [machine 7]
//!
//! Page 0 needs no node while it is alone: the head of the index holds it, or its shadow, which no shrinker finds there. The next page that
//! is stored moves it into a node. So small files are remembered as long as their inodes.

use crate::memory::sparse::Sparse;
use crate::memory::table_memory::TableMemory;
use crate::units::{MemcgId, Pfn};
use std::ops::Range;

/// The kind of tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// The index of a page cache.
    Index,
    /// A page table.
    PageTable,
}

impl NodeKind {
    /// Slots of a node, as a power of two.
    const fn bits(self) -> u32 {
        match self {
            NodeKind::Index => 6,
            NodeKind::PageTable => 9,
        }
    }

    /// The tree's levels, where their number doesn't depend on what is in it: the one page above a PUD belongs to every address space.
    const fn fixed_height(self) -> Option<usize> {
        match self {
            NodeKind::Index => None,
            NodeKind::PageTable => Some(3),
        }
    }
}

/// A node's page, and the group that pays for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The frame that holds it.
    pub pfn: Pfn,
    /// The group that it was charged to when it was made; the root for none.
    pub memcg: MemcgId,
}

/// A node in eight bytes that begin as zeroes, so that a large table costs what is used of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Packed(u64);

impl Packed {
    const NONE: Packed = Packed(0);

    fn new(node: Node) -> Packed {
        Packed((u64::from(node.pfn.0) + 1) << 16 | u64::from(node.memcg.0))
    }

    fn node(self) -> Option<Node> {
        let pfn = (self.0 >> 16).checked_sub(1)?;
        Some(Node { pfn: Pfn(pfn as u32), memcg: MemcgId(self.0 as u16) })
    }
}

struct Level {
    nodes: Sparse<Packed>,
    /// By node, number of its children in the level below; empty for the lowest level.
    children: Sparse<u16>,
}

/// The nodes of one table.
pub struct Nodes {
    kind: NodeKind,
    levels: Vec<Level>,
    /// Levels in use, from the lowest.
    height: usize,
    /// Page 0 of an index lies in its head, and nothing else is stored.
    has_head: bool,
    memory: TableMemory,
}

impl Nodes {
    /// The nodes of an empty table of this size.
    pub fn new(kind: NodeKind, pages: u64, memory: &TableMemory) -> Nodes {
        let height = kind.fixed_height().unwrap_or(0);
        let levels = Vec::new();
        let mut nodes = Nodes { kind, levels, height, has_head: false, memory: memory.clone() };
        nodes.grow(pages);
        nodes
    }

    /// Grows to a table of this size.
    pub fn grow(&mut self, pages: u64) {
        let mut below = pages;
        let mut at = 0;
        while pages > 0 && self.kind.fixed_height().map_or(at == 0 || below > 1, |height| at < height) {
            let count = below.div_ceil(1 << self.kind.bits()) as usize;
            if at == self.levels.len() {
                let children = Sparse::new(if at == 0 { 0 } else { count }, &self.memory);
                self.levels.push(Level { nodes: Sparse::new(count, &self.memory), children });
            } else {
                let level = &mut self.levels[at];
                // A table that was longer before still has its nodes.
                let count = count.max(level.nodes.len());
                level.nodes.resize(count);
                level.children.resize(if at == 0 { 0 } else { count });
            }
            (below, at) = (count as u64, at + 1);
        }
    }

    /// Bytes of address space for the nodes of a table of this size.
    pub fn bytes_for(kind: NodeKind, pages: u64) -> u64 {
        // A level above has a fraction of the nodes of the one below; two bytes more for its children.
        2 * pages.div_ceil(1 << kind.bits()) * size_of::<Packed>() as u64
    }

    /// Bytes that they take when all of the table is used.
    pub fn bytes(&self) -> usize {
        let level = |level: &Level| level.nodes.bytes() + level.children.bytes();
        self.levels.iter().map(level).sum()
    }

    /// The number of the node of a level that a page is below.
    fn number(&self, level: usize, page: u64) -> usize {
        (page >> (self.kind.bits() * (level as u32 + 1))) as usize
    }

    /// The node of the lowest level that a page is in.
    #[inline]
    pub fn leaf(&self, page: u64) -> Option<Node> {
        self.levels[0].nodes.get(self.number(0, page)).node()
    }

    /// Returns true if there is a node of the lowest level that this page is in.
    #[inline(always)]
    pub fn has_leaf(&self, page: u64) -> bool {
        self.levels[0].nodes.get(self.number(0, page)) != Packed::NONE
    }

    /// Returns the first page of the first node of a page table's lowest level that has pages of a range. Node above node that is not there is skipped.
    pub fn next_leaf(&self, pages: Range<u64>) -> Option<u64> {
        let bits = self.kind.bits();
        let mut page = pages.start >> bits << bits;
        while page < pages.end {
            if self.levels[1].nodes.get(self.number(1, page)) == Packed::NONE {
                page = ((page >> (2 * bits)) + 1) << (2 * bits);
            } else if self.has_leaf(page) {
                return Some(page);
            } else {
                page += 1 << bits;
            }
        }
        None
    }

    /// Returns whether all that is stored is page 0, for which an index needs no node.
    #[inline]
    pub fn has_head(&self) -> bool {
        self.has_head
    }

    /// Returns true if this page can be stored without a node.
    #[inline]
    fn is_for_head(&self, page: u64) -> bool {
        page == 0 && self.height == 0
    }

    fn height_for(&self, page: u64) -> usize {
        let grown =
            || (1..).find(|&height| self.number(height - 1, page) == 0).expect("a page has a last level");
        self.kind.fixed_height().unwrap_or_else(grown)
    }

    /// Returns how many nodes have to be made before something can be stored at this page.
    #[inline]
    pub fn missing(&self, page: u64) -> u64 {
        if self.leaf(page).is_some() || self.is_for_head(page) {
            return 0;
        }
        let height = self.height_for(page).max(self.height);
        // The nodes on the way down, and the tops above the former one that lead to it. The two are the same if the page is below the first node of a
        // level.
        let absent = (0..height)
            .filter(|&level| self.levels[level].nodes.get(self.number(level, page)) == Packed::NONE);
        let tops = match (self.height, self.has_head) {
            (0, false) => 0..0,
            (from, _) => from..height,
        };
        let aside = tops.filter(|&level| self.number(level, page) != 0);
        (absent.count() + aside.count()) as u64
    }

    /// Makes those nodes, each by a call of `make`.
    pub fn add(&mut self, page: u64, mut make: impl FnMut() -> Node) {
        self.add_by(page, &mut make);
    }

    fn add_by(&mut self, page: u64, make: &mut dyn FnMut() -> Node) {
        let height = self.height_for(page);
        assert!(height <= self.levels.len(), "page {page} is beyond the end of its table");
        if self.is_for_head(page) {
            self.has_head = true;
            return;
        }
        if self.height == 0 {
            self.height = height;
            if std::mem::take(&mut self.has_head) {
                self.add_by(0, make);
            }
        }
        while self.height < height {
            let level = &mut self.levels[self.height];
            assert!(level.nodes.get(0) == Packed::NONE, "a top is put over a table twice");
            level.nodes.set(0, Packed::new(make()));
            level.children.set(0, 1);
            self.assert_children(self.height, 0);
            self.height += 1;
        }
        for level in (0..self.height).rev() {
            let number = self.number(level, page);
            if self.levels[level].nodes.get(number) == Packed::NONE {
                self.levels[level].nodes.set(number, Packed::new(make()));
                if level + 1 < self.height {
                    let above = self.number(level + 1, page);
                    let parents = &mut self.levels[level + 1];
                    assert!(
                        parents.nodes.get(above) != Packed::NONE,
                        "nothing leads to a new node of level {level}"
                    );
                    let children = parents.children.get(above) + 1;
                    parents.children.set(above, children);
                    assert!(children <= 1 << self.kind.bits(), "a node leads to more than it has slots");
                    self.assert_children(level + 1, above);
                }
            }
        }
    }

    /// Nothing is left in the lowest node of a page: takes it away, and those above that have led to nothing else. Each goes to
    /// `free`.
    pub fn remove(&mut self, page: u64, mut free: impl FnMut(Node)) {
        if std::mem::take(&mut self.has_head) {
            return;
        }
        for level in 0..self.height {
            let number = self.number(level, page);
            if level > 0 {
                let children = self.levels[level].children.get(number);
                assert!(children > 0, "a node of level {level} that leads to nothing loses what it leads to");
                self.levels[level].children.set(number, children - 1);
                if children > 1 {
                    self.assert_children(level, number);
                    return;
                }
            }
            let node = self.levels[level].nodes.get(number);
            self.levels[level].nodes.set(number, Packed::NONE);
            free(node.node().expect("a node that leads to something is there"));
        }
        self.height = self.kind.fixed_height().unwrap_or(0);
    }

    /// Hands what a group owns to another.
    pub fn reassign(&mut self, from: MemcgId, to: MemcgId) {
        for level in &mut self.levels {
            let of_group = |(at, packed): (usize, Packed)| {
                let node = packed.node().filter(|node| node.memcg == from)?;
                Some((at, Packed::new(Node { memcg: to, ..node })))
            };
            let moved: Vec<_> = level.nodes.iter().filter_map(of_group).collect();
            moved.into_iter().for_each(|(at, packed)| level.nodes.set(at, packed));
        }
    }

    /// A child node was added to this one, or removed: it counts its children.
    #[inline]
    #[track_caller]
    fn assert_children(&self, level: usize, number: usize) {
        if cfg!(debug_assertions) {
            let (counted, there) =
                (self.levels[level].children.get(number), self.children_there(level, number));
            assert_eq!(usize::from(counted), there, "nodes below node {number} of level {level}");
        }
    }

    /// How many nodes there are below a node.
    fn children_there(&self, level: usize, number: usize) -> usize {
        let below = &self.levels[level - 1].nodes;
        let slots = number << self.kind.bits()..(number + 1) << self.kind.bits();
        let slots = slots.start..slots.end.min(below.len());
        slots.filter(|&slot| below.get(slot) != Packed::NONE).count()
    }

    /// All nodes, for checkers.
    pub fn iter(&self) -> impl Iterator<Item = Node> {
        self.levels.iter().flat_map(|level| level.nodes.iter().filter_map(|(_, packed)| packed.node()))
    }

    /// Panics unless the nodes are those above the leaves that `is_used` names.
    pub fn check_invariants(&self, is_used: impl Fn(u64) -> bool) {
        let mut used: Vec<bool> = match self.levels.first() {
            Some(level) => (0..level.nodes.len() as u64).map(is_used).collect(),
            None => return,
        };
        if self.has_head {
            assert_eq!(self.height, 0, "an index with a page in its head has no levels");
            assert_eq!(used.iter().position(|&is_used| is_used), Some(0), "the head holds page 0");
            used[0] = false;
        }
        let is_low = self.kind.fixed_height().is_none() && !used.contains(&true);
        assert_eq!(self.height == 0, is_low, "an empty index has no levels");
        for (at, level) in self.levels.iter().enumerate() {
            let there: Vec<bool> =
                (0..level.nodes.len()).map(|at| level.nodes.get(at) != Packed::NONE).collect();
            let wanted = if at < self.height { used.clone() } else { vec![false; there.len()] };
            assert_eq!(there, wanted, "nodes of level {at}");
            for number in 0..level.children.len() {
                let children = level.children.get(number);
                let below = if at < self.height { self.children_there(at, number) } else { 0 };
                assert_eq!(usize::from(children), below, "nodes below node {number} of level {at}");
            }
            used = used.chunks(1 << self.kind.bits()).map(|below| below.contains(&true)).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn node() -> Node {
        Node { pfn: Pfn(0), memcg: MemcgId(1) }
    }

    fn added(nodes: &mut Nodes, page: u64) -> u64 {
        let (missing, mut made) = (nodes.missing(page), 0);
        nodes.add(page, || {
            made += 1;
            node()
        });
        assert_eq!(made, missing, "page {page}");
        made
    }

    /// As many as the formula says: a leaf for 64 pages, a node for 64 of those, and so on.
    #[test]
    fn a_dense_index_has_a_node_for_every_64_of_the_level_below() {
        let dense = |pages: u64| {
            let mut nodes = Nodes::new(NodeKind::Index, pages, &TableMemory::default());
            (0..pages).map(|page| added(&mut nodes, page)).sum::<u64>()
        };
        assert_eq!(dense(64), 1);
        assert_eq!(dense(65), 2 + 1);
        assert_eq!(dense(16_384), 256 + 4 + 1);
        assert_eq!(dense(300_000), 4688 + 74 + 2 + 1);
    }

    #[test]
    fn page_0_alone_lies_in_the_head() {
        let mut nodes = Nodes::new(NodeKind::Index, 300_000, &TableMemory::default());
        assert_eq!(added(&mut nodes, 0), 0);
        assert!(nodes.has_head() && nodes.leaf(0).is_none());
        nodes.remove(0, |_| panic!("there is no node"));
        assert!(!nodes.has_head());
        // What comes beside it moves it into a node: the leaves of both, and for a page so far away a path to each below one top.
        for (page, made) in [(1, 1), (64, 3), (64 * 64, 5)] {
            assert_eq!((added(&mut nodes, 0), added(&mut nodes, page)), (0, made), "page {page}");
            assert!(!nodes.has_head() && nodes.leaf(0).is_some());
            nodes.remove(page, |_| {});
            if page >= 64 {
                nodes.remove(0, |_| {});
            }
            assert_eq!(nodes.iter().count(), 0);
        }
        // A page table has a node in any case.
        assert_eq!(added(&mut Nodes::new(NodeKind::PageTable, 1, &TableMemory::default()), 0), 3);
    }

    #[test]
    fn a_page_table_has_three_levels_at_once_and_then_a_table_for_2_mib() {
        let mut nodes = Nodes::new(NodeKind::PageTable, 512 * 512 * 2, &TableMemory::default());
        assert_eq!(added(&mut nodes, 5), 3);
        assert_eq!(added(&mut nodes, 511), 0);
        assert_eq!(added(&mut nodes, 512), 1);
        assert_eq!(added(&mut nodes, 512 * 512), 2);
        let mut freed = 0;
        nodes.remove(5, |_| freed += 1);
        nodes.remove(512, |_| freed += 1);
        assert_eq!(freed, 3, "two page tables and the middle one above them");
        nodes.remove(512 * 512, |_| freed += 1);
        assert_eq!(freed, 6);
    }

    #[test]
    fn a_table_that_grows_keeps_its_nodes() {
        let mut nodes = Nodes::new(NodeKind::PageTable, 0, &TableMemory::default());
        nodes.grow(100);
        assert_eq!(added(&mut nodes, 7), 3);
        nodes.grow(512 * 512 * 3);
        assert_eq!(nodes.missing(7), 0);
        assert_eq!(added(&mut nodes, 512 * 512 * 2), 2);
        assert_eq!(nodes.iter().count(), 5);
    }

    proptest! {
        /// Against a set of leaves: whatever comes and goes, the nodes are those above what is there.
        #[test]
        fn the_nodes_are_those_above_what_is_there(
            pages in prop::collection::vec(0..300_000u64, 1..60),
            kind in prop::sample::select(&[NodeKind::Index, NodeKind::PageTable][..]),
        ) {
            let mut nodes = Nodes::new(kind, 300_000, &TableMemory::default());
            let mut there = BTreeSet::new();
            for page in pages {
                let leaf = page >> kind.bits();
                if there.remove(&leaf) {
                    nodes.remove(page, |_| {});
                } else {
                    // Page 0 alone needs none.
                    added(&mut nodes, page.max(1));
                    there.insert(leaf);
                }
                nodes.check_invariants(|leaf| there.contains(&leaf));
            }
        }
    }
}
