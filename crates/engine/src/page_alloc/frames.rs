//! Which frames are free: a stack a node and order, over frames never used so far.
//!
//! Nodes begin at section boundaries, so that a frame number tells its node. A freed block goes back to the stack of its
//! order and is handed out first, as the kernel's per-CPU lists do, because its cache lines are warm. A buddy allocator
//! with coalescing can take the place of the stacks behind the same two calls.

use crate::units::{MAX_ORDER, NodeId, Pfn, SECTION_FRAMES};

struct Node {
    start: u32,
    end: u32,
    /// First frame never handed out.
    fresh: u32,
    free_blocks: [Vec<u32>; MAX_ORDER as usize + 1],
    free_pages: u64,
}

/// Free frames of all nodes.
pub(crate) struct Frames {
    nodes: Vec<Node>,
}

impl Frames {
    pub(crate) fn new(node_pages: &[u64]) -> Frames {
        let mut start = 0;
        let mut nodes = Vec::new();
        for &pages in node_pages {
            let pages = u32::try_from(pages).expect("Config::check bounds the frames");
            let end = start + pages;
            nodes.push(Node {
                start,
                end,
                fresh: start,
                free_blocks: Default::default(),
                free_pages: pages.into(),
            });
            start = end.next_multiple_of(SECTION_FRAMES);
        }
        Frames { nodes }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len()).map(|node| NodeId(node as u8))
    }

    /// A block of 2^order frames, from the lowest-numbered node that has one.
    pub(crate) fn alloc(&mut self, order: u8) -> Option<(NodeId, Pfn)> {
        let (id, pfn) =
            self.nodes.iter_mut().enumerate().find_map(|(id, node)| node.take(order).map(|pfn| (id, pfn)))?;
        self.nodes[id].free_pages -= 1 << order;
        Some((NodeId(id as u8), Pfn(pfn)))
    }

    pub(crate) fn free(&mut self, node: NodeId, pfn: Pfn, order: u8) {
        let node = &mut self.nodes[node.index()];
        debug_assert!((node.start..node.fresh).contains(&pfn.0), "frame {} was never handed out", pfn.0);
        node.free_blocks[order as usize].push(pfn.0);
        node.free_pages += 1 << order;
    }

    pub(crate) fn free_pages(&self, node: NodeId) -> u64 {
        self.nodes[node.index()].free_pages
    }

    /// Every frame in use or freed since, for checkers.
    pub(crate) fn handed_out(&self, node: NodeId) -> impl Iterator<Item = Pfn> {
        let node = &self.nodes[node.index()];
        (node.start..node.fresh).map(Pfn)
    }

    /// Free blocks, for checkers.
    pub(crate) fn free_blocks(&self, node: NodeId) -> impl Iterator<Item = (Pfn, u8)> {
        let blocks = &self.nodes[node.index()].free_blocks;
        blocks
            .iter()
            .enumerate()
            .flat_map(|(order, stack)| stack.iter().map(move |&pfn| (Pfn(pfn), order as u8)))
    }
}

impl Node {
    fn take(&mut self, order: u8) -> Option<u32> {
        if let Some(pfn) = self.free_blocks[order as usize].pop() {
            return Some(pfn);
        }
        let size = 1 << order;
        let aligned = self.fresh.next_multiple_of(size);
        if aligned + size <= self.end {
            while self.fresh < aligned {
                self.free_blocks[0].push(self.fresh);
                self.fresh += 1;
            }
            self.fresh = aligned + size;
            return Some(aligned);
        }
        if order == 0 && self.fresh < self.end {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        self.split(order)
    }

    /// Takes the first half of a larger block again and again until one of this order is left.
    fn split(&mut self, order: u8) -> Option<u32> {
        let larger = (order + 1..=MAX_ORDER).find(|&larger| !self.free_blocks[larger as usize].is_empty())?;
        let pfn = self.free_blocks[larger as usize].pop()?;
        for half in order..larger {
            self.free_blocks[half as usize].push(pfn + (1 << half));
        }
        Some(pfn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_frame_is_handed_out_once_and_nodes_begin_at_sections() {
        let mut frames = Frames::new(&[10, 7]);
        let taken: BTreeSet<u32> = std::iter::from_fn(|| frames.alloc(0).map(|(_, pfn)| pfn.0)).collect();
        let expected: BTreeSet<u32> = (0..10).chain(SECTION_FRAMES..SECTION_FRAMES + 7).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn the_frame_freed_last_is_reused_first() {
        let mut frames = Frames::new(&[8]);
        let (_, first) = frames.alloc(0).unwrap();
        let (node, second) = frames.alloc(0).unwrap();
        frames.free(node, first, 0);
        frames.free(node, second, 0);
        assert_eq!(frames.alloc(0), Some((node, second)));
    }

    #[test]
    fn large_blocks_are_aligned_and_leave_no_frame_behind() {
        let mut frames = Frames::new(&[16]);
        frames.alloc(0).unwrap();
        let (node, block) = frames.alloc(3).unwrap();
        assert_eq!(block, Pfn(8));
        assert_eq!(frames.free_pages(node), 7);
        frames.free(node, block, 3);
        let singles = std::iter::from_fn(|| frames.alloc(0)).count();
        assert_eq!(singles, 15, "the block must split when only it is left");
    }
}
