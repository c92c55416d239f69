//! Memory tiers: which nodes are as fast as each other, which are the fastest, and the demotion targets of each node.
//!
//! ```text
//!   memory_tier4     node 0 (CPUs)   node 1 (CPUs)          top tier: where pages are promoted to
//!                       │   preferred: the nearest of the next tier
//!                       ▼
//!   memory_tier19    node 2          node 3
//!                       │                                   allowed: all nodes of all slower tiers
//!                       ▼
//!   memory_tier22    node 4                                 the slowest tier has no target
//! ```
//! A tier is all nodes whose abstract distances lie in the same chunk of 128 (`distance.rs`). The top tier begins at the fastest memory and
//! ends with the slowest tier that has CPUs. So memory without CPUs that is faster than what CPUs have of their own is top tier, too, and
//! nothing is promoted into it. All of that changes only when a node comes or goes. [tiering 1.1 to 1.3]
//!
//! Demotion itself is reclaim's (`reclaim/demote.rs`); the marks up to which a node frees pages for promotion are `page_alloc/watermark.rs`.

mod distance; // latency and bandwidth as one number

use crate::config::{Config, ConfigError, MemoryType};
use crate::page_alloc::zonelist::{distance, node_order};
use crate::units::AccessCoordinate;
use crate::units::{NodeId, Nodemask};
use distance::{CHUNK, differs, tier_of};

pub use distance::{ADISTANCE_DAX_KMEM, ADISTANCE_DRAM, adistance};

/// A node as the tiers see it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Node {
    adistance: u32,
    has_cpus: bool,
    is_online: bool,
    /// Nodes of the next slower tier that are nearest.
    preferred: Vec<NodeId>,
    /// All nodes of all slower tiers.
    allowed: Vec<NodeId>,
}

/// A memory tier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryTier {
    /// The tier's number, as in `memory_tier4`. Less is faster.
    pub id: u32,
    /// The tier's nodes, in order.
    pub nodes: Vec<NodeId>,
}

/// All tiers of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryTiers {
    nodes: Vec<Node>,
    /// How far nodes are from each other, as the firmware says.
    distances: Vec<Vec<u8>>,
    /// From the fastest.
    tiers: Vec<MemoryTier>,
    /// The largest distance of the top tier.
    top_tier_adistance: u32,
}

impl MemoryTiers {
    /// The tiers of a machine with all its nodes online.
    pub fn new(config: &Config) -> Result<MemoryTiers, ConfigError> {
        let count = config.node_pages.len();
        let mut has_cpus = vec![false; count];
        for cpu in 0..config.cpus {
            has_cpus[config.layout.node_of_cpu(cpu).index()] = true;
        }
        let adistances = adistances(&config.layout.memory_types, &has_cpus)?;
        let node = |(adistance, has_cpus)| Node {
            adistance,
            has_cpus,
            is_online: true,
            preferred: Vec::new(),
            allowed: Vec::new(),
        };
        let mut tiers = MemoryTiers {
            nodes: adistances.into_iter().zip(has_cpus).map(node).collect(),
            distances: config.layout.distances.clone(),
            tiers: Vec::new(),
            top_tier_adistance: 0,
        };
        tiers.recompute();
        Ok(tiers)
    }

    /// All tiers, from the fastest.
    pub fn iter(&self) -> impl Iterator<Item = &MemoryTier> {
        self.tiers.iter()
    }

    /// Returns whether there is a slower tier than the top one: what demotion and promotion need.
    pub fn has_lower_tier(&self) -> bool {
        self.tiers.last().is_some_and(|slowest| slowest.id * CHUNK > self.top_tier_adistance)
    }

    /// Returns whether a node is as fast as any with CPUs. A node that is in no tier counts as one, so that nothing of it is promoted.
    #[doc(alias = "node_is_toptier")]
    #[inline]
    pub fn node_is_top_tier(&self, node: NodeId) -> bool {
        let Node { adistance, is_online, .. } = self.nodes[node.index()];
        !is_online || tier_of(adistance) * CHUNK <= self.top_tier_adistance
    }

    /// Returns whether pages may be promoted to a node: one that there is, whose memory is in use, and in the top tier.
    pub fn is_promotion_target(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(|known| known.is_online) && self.node_is_top_tier(node)
    }

    /// All such nodes.
    pub fn promotion_targets(&self) -> Nodemask {
        Nodemask::of(self.online().filter(|&node| self.node_is_top_tier(node)))
    }

    /// The nodes that pages of a node are demoted to first: all that are equally near. Empty for the slowest tier.
    pub fn preferred_targets(&self, node: NodeId) -> &[NodeId] {
        &self.nodes[node.index()].preferred
    }

    /// The nodes that pages of a node may be demoted to at all, the faster tiers first.
    pub fn allowed_targets(&self, node: NodeId) -> &[NodeId] {
        &self.nodes[node.index()].allowed
    }

    /// Returns whether a node's memory is in use.
    pub fn is_online(&self, node: NodeId) -> bool {
        self.nodes[node.index()].is_online
    }

    /// The node itself if it has CPUs, otherwise the nearest one that has.
    pub fn nearest_with_cpus(&self, node: NodeId) -> Option<NodeId> {
        let order = node_order(&self.distances, node, self.nodes.len());
        order.into_iter().find(|near| self.nodes[near.index()].has_cpus)
    }

    /// Switches a node's memory on or off, and recomputes everything.
    pub fn set_online(&mut self, node: NodeId, is_online: bool) {
        self.nodes[node.index()].is_online = is_online;
        self.recompute();
    }

    fn online(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len()).map(|node| NodeId(node as u8)).filter(|node| self.nodes[node.index()].is_online)
    }

    #[doc(alias = "establish_demotion_targets")]
    fn recompute(&mut self) {
        let mut ids: Vec<u32> =
            self.online().map(|node| tier_of(self.nodes[node.index()].adistance)).collect();
        ids.sort_unstable();
        ids.dedup();
        let of_tier =
            |id| self.online().filter(|node| tier_of(self.nodes[node.index()].adistance) == id).collect();
        self.tiers = ids.into_iter().map(|id| MemoryTier { id, nodes: of_tier(id) }).collect();
        let has_cpus = |tier: &&MemoryTier| tier.nodes.iter().any(|node| self.nodes[node.index()].has_cpus);
        // Without any CPU, no node would be near to one.
        let cut = self.tiers.iter().rev().find(has_cpus).or(self.tiers.last());
        self.top_tier_adistance = cut.map_or(0, |tier| tier.id * CHUNK + CHUNK - 1);
        for at in 0..self.nodes.len() {
            let (preferred, allowed) = self.targets(NodeId(at as u8));
            self.nodes[at].preferred = preferred;
            self.nodes[at].allowed = allowed;
        }
    }

    fn targets(&self, from: NodeId) -> (Vec<NodeId>, Vec<NodeId>) {
        if !self.nodes[from.index()].is_online {
            return (Vec::new(), Vec::new());
        }
        let own = tier_of(self.nodes[from.index()].adistance);
        let slower = || self.tiers.iter().filter(|tier| tier.id > own);
        let next = slower().next().map_or(&[][..], |tier| &tier.nodes);
        let to = |node: &NodeId| distance(&self.distances, from, *node);
        let nearest = next.iter().map(to).min();
        let preferred = next.iter().filter(|node| Some(to(node)) == nearest).copied().collect();
        (preferred, slower().flat_map(|tier| &tier.nodes).copied().collect())
    }
}

/// The abstract distance of each node. DRAM nodes, which have CPUs, are the reference. If two of them differ by more than a tenth, the performance of
/// DRAM is undefined, and no performance counts. Memory that is like none of them is then as far as the driver of added memory defines it, and so
/// stays in a slower tier. [tiering 1.1]
fn adistances(types: &[MemoryType], has_cpus: &[bool]) -> Result<Vec<u32>, ConfigError> {
    let type_of = |at: usize| types.get(at).copied().unwrap_or_default();
    let measured = |at: usize| match type_of(at) {
        MemoryType::Measured(performance) => Some(performance),
        MemoryType::Dram | MemoryType::Adistance(_) => None,
    };
    let nodes = 0..has_cpus.len();
    let dram: Vec<AccessCoordinate> = nodes.clone().filter(|&at| has_cpus[at]).filter_map(measured).collect();
    let reference = dram.first().filter(|first| !dram.iter().any(|other| differs(other, first)));
    nodes
        .map(|at| match (type_of(at), reference) {
            (MemoryType::Adistance(adistance), _) => Ok(adistance),
            (MemoryType::Measured(performance), _) if adistance(&performance, &performance).is_none() => {
                Err(ConfigError::NoPerformance { node: at })
            }
            (MemoryType::Measured(performance), Some(dram)) if !has_cpus[at] => {
                Ok(adistance(&performance, dram).expect("neither has a sum of zero"))
            }
            (MemoryType::Measured(performance), None)
                if !has_cpus[at] && dram.iter().all(|dram| differs(&performance, dram)) =>
            {
                Ok(ADISTANCE_DAX_KMEM)
            }
            (MemoryType::Dram | MemoryType::Measured(_), _) => Ok(ADISTANCE_DRAM),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layout;

    const DRAM: AccessCoordinate = AccessCoordinate {
        read_latency: 100,
        write_latency: 100,
        read_bandwidth: 200_000,
        write_bandwidth: 200_000,
    };

    /// A machine of so many nodes with CPUs, and the distances of its nodes.
    fn tiers(cpu_nodes: &[u8], memory_types: &[MemoryType], distances: &[&[u8]]) -> MemoryTiers {
        let layout = Layout {
            cpu_nodes: cpu_nodes.iter().map(|&node| NodeId(node)).collect(),
            memory_types: memory_types.to_vec(),
            distances: distances.iter().map(|row| row.to_vec()).collect(),
            ..Layout::default()
        };
        let config = Config {
            node_pages: vec![4096; memory_types.len()],
            cpus: cpu_nodes.len() as u16,
            layout,
            ..Config::default()
        };
        MemoryTiers::new(&config).unwrap()
    }

    fn text(tiers: &MemoryTiers) -> Vec<String> {
        let mut lines: Vec<String> = tiers
            .iter()
            .map(|tier| {
                let nodes: Vec<String> = tier.nodes.iter().map(|node| node.0.to_string()).collect();
                let top = if tiers.node_is_top_tier(tier.nodes[0]) { " top" } else { "" };
                format!("tier {}: {}{top}", tier.id, nodes.join(","))
            })
            .collect();
        let list =
            |nodes: &[NodeId]| nodes.iter().map(|node| node.0.to_string()).collect::<Vec<_>>().join(",");
        for node in (0..tiers.nodes.len()).map(|node| NodeId(node as u8)) {
            let (preferred, allowed) = (tiers.preferred_targets(node), tiers.allowed_targets(node));
            if !allowed.is_empty() {
                lines.push(format!("{} -> {} of {}", node.0, list(preferred), list(allowed)));
            }
        }
        lines
    }

    const SLOW: MemoryType = MemoryType::Adistance(ADISTANCE_DAX_KMEM);

    /// Two sockets, each with persistent memory beside it.
    #[test]
    fn each_socket_demotes_to_the_slow_memory_beside_it() {
        let distances: &[&[u8]] =
            &[&[10, 20, 17, 28], &[20, 10, 28, 17], &[17, 28, 10, 28], &[28, 17, 28, 10]];
        let tiers = tiers(&[0, 1], &[MemoryType::Dram, MemoryType::Dram, SLOW, SLOW], distances);
        assert_eq!(text(&tiers), ["tier 4: 0,1 top", "tier 22: 2,3", "0 -> 2 of 2,3", "1 -> 3 of 2,3"]);
        assert!(tiers.has_lower_tier());
    }

    /// Ordinary memory without CPUs is as good as any other.
    #[test]
    fn ordinary_memory_without_cpus_is_top_tier_and_no_target() {
        let tiers = tiers(&[0, 0], &[MemoryType::Dram, MemoryType::Dram], &[]);
        assert_eq!(text(&tiers), ["tier 4: 0,1 top"]);
        assert!(!tiers.has_lower_tier());
    }

    /// Fast memory without CPUs: pages leave it for DRAM, and nothing is promoted into it.
    #[test]
    fn memory_faster_than_that_of_cpus_is_top_tier_too() {
        let hbm = AccessCoordinate { read_bandwidth: 800_000, write_bandwidth: 800_000, ..DRAM };
        let types = [MemoryType::Measured(DRAM), MemoryType::Measured(hbm), SLOW];
        let tiers = tiers(&[0], &types, &[]);
        assert_eq!(
            text(&tiers),
            ["tier 1: 1 top", "tier 4: 0 top", "tier 22: 2", "0 -> 2 of 2", "1 -> 0 of 0,2"]
        );
    }

    #[test]
    fn equally_near_nodes_of_the_next_tier_are_all_preferred() {
        let tiers = tiers(&[0], &[MemoryType::Dram, SLOW, SLOW, MemoryType::Adistance(4000)], &[]);
        assert_eq!(
            text(&tiers),
            [
                "tier 4: 0 top",
                "tier 22: 1,2",
                "tier 31: 3",
                "0 -> 1,2 of 1,2,3",
                "1 -> 3 of 3",
                "2 -> 3 of 3"
            ]
        );
    }

    #[test]
    fn a_node_that_goes_leaves_its_tier_and_all_targets_and_comes_back() {
        let whole = tiers(&[0], &[MemoryType::Dram, SLOW, MemoryType::Adistance(4000)], &[]);
        let mut tiers = whole.clone();
        tiers.set_online(NodeId(1), false);
        assert_eq!(text(&tiers), ["tier 4: 0 top", "tier 31: 2", "0 -> 2 of 2"]);
        assert!(tiers.node_is_top_tier(NodeId(1)), "it has no tier");
        tiers.set_online(NodeId(1), true);
        assert_eq!(tiers, whole);
    }

    /// A socket that differs by a tenth is DRAM still; one that differs by more leaves nothing to compare with. Slow memory is slow all the
    /// same, and ordinary memory beside it is not.
    #[test]
    fn where_sockets_differ_memory_that_is_like_none_of_them_is_as_far_as_its_driver_has_it() {
        let cxl = AccessCoordinate { read_latency: 220, write_latency: 220, ..DRAM };
        let with = |read_latency| {
            let other = AccessCoordinate { read_latency, ..DRAM };
            let types = [DRAM, other, cxl, other].map(MemoryType::Measured);
            text(&tiers(&[0, 1], &types, &[]))
        };
        let two_tiers = |slow| {
            ["tier 4: 0,1,3 top".to_string(), format!("tier {slow}: 2")]
                .into_iter()
                .chain([0, 1, 3].map(|node| format!("{node} -> 2 of 2")))
                .collect::<Vec<_>>()
        };
        assert_eq!(with(110), two_tiers(9));
        assert_eq!(with(111), two_tiers(22));
    }

    #[test]
    fn a_node_without_latency_or_bandwidth_is_refused_by_its_number() {
        let none = AccessCoordinate { read_bandwidth: 0, write_bandwidth: 0, ..DRAM };
        let refused = adistances(&[DRAM, none].map(MemoryType::Measured), &[true, false]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "node 1: latency and bandwidth must be above 0 to determine its memory tier"
        );
    }
}
