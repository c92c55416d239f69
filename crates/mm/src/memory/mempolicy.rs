//! From which nodes the pages of a process come: its memory policy, within the nodes of its group (`cpuset.mems`).
//!
//! ```text
//!   policy        first from                              then from
//!   default       the node of the CPU                     any other, the nearest first
//!   preferred     one node                                any other
//!   bind          the nearest of some nodes               the others of them, and no more
//!   interleave    some nodes in turn                      any other
//!   weighted      the same, several pages each            any other
//! ```
//! All of that within the nodes of the group, as far as these leave a choice. A policy is a process's, as `numactl` sets it: of what it maps,
//! and of files that it is the first to read. Memory of the kernel itself comes from the node of the CPU.
//!
//! Source: `set_mempolicy(2)`, `cpuset(7)`.

use crate::units::{NodeId, Nodemask};

/// A memory policy.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MemPolicy {
    /// From the node of the CPU first.
    #[default]
    Default,
    /// From this node first (`numactl --preferred`).
    Preferred(NodeId),
    /// From these alone (`numactl --membind`).
    Bind(Nodemask),
    /// From each of these in turn (`numactl --interleave`).
    Interleave(Nodemask),
    /// From each of these in turn, as many pages from each as its weight (`numactl --weighted-interleave`).
    WeightedInterleave(Nodemask),
}

impl MemPolicy {
    /// The nodes that it names.
    pub fn nodes(self) -> Option<Nodemask> {
        match self {
            MemPolicy::Default => None,
            MemPolicy::Preferred(node) => Some(Nodemask::of([node])),
            MemPolicy::Bind(nodes) | MemPolicy::Interleave(nodes) | MemPolicy::WeightedInterleave(nodes) => {
                Some(nodes)
            }
        }
    }
}

/// Restriction of the nodes that a process's pages may come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Policy set by `set_mempolicy`.
    pub policy: MemPolicy,
    /// The nodes of its group.
    pub mems: Nodemask,
    /// The node that had the last turn, and how many more pages of it are due.
    turn: Option<(NodeId, u8)>,
}

impl Placement {
    /// `None` if it has no restriction.
    pub fn new(policy: MemPolicy, mems: Nodemask) -> Option<Box<Placement>> {
        let says_something = policy != MemPolicy::Default || mems != Nodemask::ALL;
        says_something.then(|| Box::new(Placement { policy, mems, turn: None }))
    }

    /// The nodes that a page may come from.
    #[doc(alias = "policy_nodemask")]
    pub fn allowed(&self) -> Nodemask {
        match self.policy {
            MemPolicy::Bind(nodes) if !(nodes & self.mems).is_empty() => nodes & self.mems,
            _ => self.mems,
        }
    }

    /// The node where a page is wanted, if that is not the node of the CPU. `takes`: it is one more page, so that the next has its turn.
    #[doc(alias = "interleave_nodes")]
    pub fn node(&mut self, weights: &[u8], takes: bool) -> Option<NodeId> {
        match self.policy {
            MemPolicy::Default | MemPolicy::Bind(_) => None,
            MemPolicy::Preferred(node) => self.mems.contains(node).then_some(node),
            MemPolicy::Interleave(nodes) => self.in_turn(nodes, &[], takes),
            MemPolicy::WeightedInterleave(nodes) => self.in_turn(nodes, weights, takes),
        }
    }

    fn in_turn(&mut self, nodes: Nodemask, weights: &[u8], takes: bool) -> Option<NodeId> {
        let nodes = nodes & self.mems;
        if takes {
            self.turn = match self.turn {
                Some((node, left)) if left > 0 && nodes.contains(node) => Some((node, left - 1)),
                turn => {
                    let next = nodes.after(turn.map(|(node, _)| node))?;
                    let weight = weights.get(next.index()).copied().unwrap_or(1);
                    Some((next, weight.max(1) - 1))
                }
            };
        }
        self.turn.map(|(node, _)| node).or(nodes.after(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(nodes: &[u8]) -> Nodemask {
        Nodemask::of(nodes.iter().map(|&node| NodeId(node)))
    }

    fn turns(policy: MemPolicy, mems: Nodemask, weights: &[u8]) -> Vec<u8> {
        let mut placement = Placement::new(policy, mems).unwrap();
        (0..8).map(|_| placement.node(weights, true).unwrap().0).collect()
    }

    #[test]
    fn interleaving_goes_round_and_weights_are_pages_in_a_row() {
        assert_eq!(
            turns(MemPolicy::Interleave(mask(&[0, 2])), Nodemask::ALL, &[3, 1, 1]),
            [0, 2, 0, 2, 0, 2, 0, 2]
        );
        let weighted = MemPolicy::WeightedInterleave(mask(&[0, 2]));
        assert_eq!(turns(weighted, Nodemask::ALL, &[3, 1, 1]), [0, 0, 0, 2, 0, 0, 0, 2]);
        assert_eq!(
            turns(weighted, Nodemask::ALL, &[0, 1, 0]),
            [0, 2, 0, 2, 0, 2, 0, 2],
            "a weight of nothing is one"
        );
        assert_eq!(turns(weighted, mask(&[1, 2]), &[3, 1, 2]), [2; 8]);
    }

    #[test]
    fn who_looks_again_for_the_same_page_has_had_its_turn() {
        let mut placement = Placement::new(MemPolicy::Interleave(mask(&[1, 3])), Nodemask::ALL).unwrap();
        assert_eq!(placement.node(&[], true), Some(NodeId(1)));
        assert_eq!(placement.node(&[], false), Some(NodeId(1)));
        assert_eq!(placement.node(&[], true), Some(NodeId(3)));
    }

    #[test]
    fn a_group_confines_what_a_policy_allows_and_replaces_what_it_excludes() {
        let allowed = |policy, mems| Placement::new(policy, mems).map(|placement| placement.allowed());
        assert_eq!(allowed(MemPolicy::Default, Nodemask::ALL), None);
        assert_eq!(allowed(MemPolicy::Bind(mask(&[0, 1])), mask(&[1, 2])), Some(mask(&[1])));
        assert_eq!(allowed(MemPolicy::Bind(mask(&[0])), mask(&[1, 2])), Some(mask(&[1, 2])));
        assert_eq!(allowed(MemPolicy::Preferred(NodeId(0)), mask(&[1])), Some(mask(&[1])));
        let mut elsewhere = Placement::new(MemPolicy::Preferred(NodeId(0)), mask(&[1])).unwrap();
        assert_eq!(elsewhere.node(&[], true), None);
    }
}
