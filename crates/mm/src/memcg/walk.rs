//! Walks of a subtree by reclaimers, each alone or in a round that they share.

use super::Memcgs;
use crate::units::{MemcgId, NodeId};

/// Where a shared walk stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WalkPosition {
    /// The group that was visited last; none before the first of a round.
    pub(super) last: Option<MemcgId>,
    /// Rounds that the walk has completed.
    round: u64,
}

/// A reclaimer's part in the round of a shared walk.
#[derive(Clone, Debug)]
pub struct SharedWalk {
    root: MemcgId,
    node: NodeId,
    /// The groups of the subtree, parents first.
    order: Vec<MemcgId>,
    /// The place in the order where this reclaimer was last.
    at: usize,
    round: u64,
    has_visited: bool,
}

impl SharedWalk {
    /// The order of a walk that is over.
    pub fn into_order(self) -> Vec<MemcgId> {
        self.order
    }
}

impl Memcgs {
    /// The order of [`Memcgs::subtree`], for a walk that ends with [`Memcgs::end_walk`].
    pub fn begin_walk(&mut self, root: MemcgId) -> Vec<MemcgId> {
        let mut stack = std::mem::take(&mut self.spare_stack);
        let mut order = self.spare_orders.pop().unwrap_or_default();
        self.order_into(root, &mut order, &mut stack);
        self.spare_stack = stack;
        order
    }

    /// A walk in this order is over.
    pub fn end_walk(&mut self, mut order: Vec<MemcgId>) {
        /// Orders of walks that are made at the same time, and the most groups of one that is kept.
        const SPARE_MAX: (usize, usize) = (8, 1024);
        if self.spare_orders.len() < SPARE_MAX.0 && order.capacity() <= SPARE_MAX.1 {
            order.clear();
            self.spare_orders.push(order);
        }
    }

    /// Joins the walk of a subtree that several reclaimers share. It ends with [`Memcgs::end_walk`].
    pub fn join_walk(&mut self, root: MemcgId, node: NodeId) -> SharedWalk {
        let round = self[root].walks[node.index()].round;
        SharedWalk { root, node, order: self.begin_walk(root), at: 0, round, has_visited: false }
    }

    /// The group to visit next, after the one that any reclaimer has visited last. A walk is over for all when its round is, but
    /// who joins at the end of one sees at least one group: the first of the next.
    #[doc(alias = "mem_cgroup_iter")]
    pub fn walk_next(&mut self, walk: &mut SharedWalk) -> Option<MemcgId> {
        let position = &mut self[walk.root].walks[walk.node.index()];
        if position.round != walk.round {
            return None;
        }
        let next = position.last.map_or(0, |last| {
            let from = walk.order[walk.at..].iter().position(|&id| id == last);
            // Others may have gone on from groups that are newer than this walk.
            from.map_or(walk.order.len(), |from| walk.at + from + 1)
        });
        if next == walk.order.len() {
            *position = WalkPosition { last: None, round: position.round + 1 };
            walk.round += u64::from(!walk.has_visited);
            walk.at = 0;
            return if walk.has_visited { None } else { self.walk_next(walk) };
        }
        walk.at = next;
        walk.has_visited = true;
        position.last = Some(walk.order[next]);
        position.last
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    fn visited(memcgs: &mut Memcgs, walk: &mut SharedWalk, most: usize) -> Vec<MemcgId> {
        std::iter::from_fn(|| memcgs.walk_next(walk)).take(most).collect()
    }

    #[test]
    fn a_shared_walk_goes_on_after_the_last_group_visited_and_ends_with_the_round() {
        let (mut memcgs, [top, a, b]) = tree(1, 1);
        let node = NodeId(0);
        let mut walk = memcgs.join_walk(top, node);
        assert_eq!(visited(&mut memcgs, &mut walk, 2), [top, a]);
        let mut rest = memcgs.join_walk(top, node);
        assert_eq!(visited(&mut memcgs, &mut rest, 9), [b]);
        assert_eq!(visited(&mut memcgs, &mut walk, 9), [], "another has ended the round");
        let mut whole = memcgs.join_walk(top, node);
        assert_eq!(visited(&mut memcgs, &mut whole, 9), [top, a, b]);
    }

    #[test]
    fn who_joins_a_walk_at_the_end_of_its_round_sees_the_next_one() {
        let (mut memcgs, [top, a, b]) = tree(1, 1);
        let node = NodeId(0);
        let mut walk = memcgs.join_walk(top, node);
        assert_eq!(visited(&mut memcgs, &mut walk, 3), [top, a, b]);
        let mut late = memcgs.join_walk(top, node);
        assert_eq!(visited(&mut memcgs, &mut late, 9), [top, a, b]);
    }
}
