//! Zonelists: a request tries its node's own zones, from the request's class down, then those of other nodes by distance.
//! [machine 2.6]

use crate::units::NodeId;

/// Distance of a node to itself, in the unit of the firmware's tables.
pub const LOCAL_DISTANCE: u8 = 10;
/// Distance to any other node, if the machine's description does not define it.
pub const REMOTE_DISTANCE: u8 = 20;

/// Returns how far one node's memory is from another's CPUs.
pub fn distance(distances: &[Vec<u8>], from: NodeId, to: NodeId) -> u8 {
    let given = distances.get(from.index()).and_then(|row| row.get(to.index())).copied();
    given.unwrap_or(if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE })
}

/// All nodes in the order in which `from` falls back to them, itself first. Nodes at the same distance follow it by their numbers and
/// around, so that not every node falls back to the same one.
pub fn node_order(distances: &[Vec<u8>], from: NodeId, nodes: usize) -> Vec<NodeId> {
    let mut order: Vec<NodeId> = (0..nodes).map(|at| NodeId(((from.index() + at) % nodes) as u8)).collect();
    order[1..].sort_by_key(|&to| distance(distances, from, to));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_nodes_come_first_and_equally_near_ones_in_turn() {
        let order = |distances: &[Vec<u8>], from| -> Vec<u8> {
            node_order(distances, NodeId(from), 4).into_iter().map(|node| node.0).collect()
        };
        assert_eq!(order(&[], 0), [0, 1, 2, 3]);
        assert_eq!(order(&[], 2), [2, 3, 0, 1]);
        let far = vec![vec![10, 31, 21, 21], vec![31, 10, 21, 12]];
        assert_eq!(order(&far, 0), [0, 2, 3, 1]);
        assert_eq!(order(&far, 1), [1, 3, 2, 0]);
    }
}
