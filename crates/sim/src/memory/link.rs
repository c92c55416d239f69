//! Links between sockets: which accesses go over one, over which, and the time that they take there.
//!
//! ```text
//!   CPUs of node 0 ── memory of node 0        beside them
//!        │  ▲   └──── memory without CPUs     beside whichever CPUs are nearest to it
//!  stores│  │loads
//!        ▼  │
//!   CPUs of node 1 ── memory of node 1        another socket: over the link
//! ```
//! Memory of a node with CPUs is behind that node's socket. Memory of a node without any is behind the nearest one, or behind each of several equally
//! near ones. An access to memory behind another socket goes over a link. The link has a latency, and its own bandwidth in each direction, in
//! addition to those of the memory.
//!
//! What is not modelled: sockets that only a third one connects, which are a link apart here, too.

use pageout_engine::{Nanos, NodeId};

use super::MemorySpec;
use super::load::{Asked, Channel};

/// The link between two sockets: latency and bandwidth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSpec {
    /// Additional nanoseconds of a line with no other access in flight.
    pub latency: u64,
    /// Bandwidth in each direction. Unit: bytes per second.
    pub bandwidth: u64,
    /// The distance of each node from each.
    pub distances: Vec<Vec<u8>>,
    /// For each node, true if it has CPUs.
    pub has_cpus: Vec<bool>,
}

impl LinkSpec {
    /// Nanoseconds: additional latency of the other socket's memory compared with that next to the CPU.
    pub const LATENCY: u64 = super::preset::REMOTE_SOCKET.spec().read_latency - MemorySpec::DRAM.read_latency;
    /// Bytes a second that a link can carry one way.
    pub const BANDWIDTH: u64 = super::preset::REMOTE_SOCKET.spec().read_bandwidth;

    /// The socket behind which a CPU of one node finds the memory of another, if it is not its own.
    fn other_socket(&self, from: NodeId, memory: NodeId) -> Option<NodeId> {
        if self.has_cpus[memory.index()] {
            return (from != memory).then_some(memory);
        }
        let sockets = (0..self.has_cpus.len()).filter(|&node| self.has_cpus[node]);
        let distance = |node: usize| self.distances[node][memory.index()];
        let nearest = sockets.min_by_key(|&node| distance(node))?;
        (distance(from.index()) > distance(nearest)).then_some(NodeId(nearest as u8))
    }
}

/// How busy the links are.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// By node of the CPU and node of the memory: the socket at the other end, if that is not its own.
    over: Vec<Vec<Option<NodeId>>>,
    /// By socket from which bytes come, and socket to which they go.
    flows: Vec<Vec<Channel>>,
}

impl Links {
    pub(super) fn new(spec: &LinkSpec, asked: Asked) -> Links {
        let nodes = spec.has_cpus.len();
        let ids = || (0..nodes).map(|node| NodeId(node as u8));
        let local = MemorySpec::DRAM.read_latency;
        let flow = Channel::new(local + spec.latency, local, spec.bandwidth, asked);
        Links {
            over: ids().map(|from| ids().map(|memory| spec.other_socket(from, memory)).collect()).collect(),
            flows: vec![vec![flow; nodes]; nodes],
        }
    }

    /// The direction in which an access moves its bytes, if it goes over a link.
    #[inline]
    fn flow(&mut self, from: NodeId, memory: NodeId, is_write: bool) -> Option<&mut Channel> {
        let socket = self.over[from.index()][memory.index()]?;
        let (source, sink) = if is_write { (from, socket) } else { (socket, from) };
        Some(&mut self.flows[source.index()][sink.index()])
    }

    /// Additional time of a line compared with equally loaded memory next to the CPU.
    pub(super) fn longer(&mut self, at: Nanos, from: NodeId, memory: NodeId, is_write: bool) -> u64 {
        self.flow(from, memory, is_write).map_or(0, |flow| flow.longer(at))
    }

    /// Maximum additional time of a line compared with memory next to the CPU, over links in use.
    pub(super) fn longest(&mut self, at: Nanos) -> u64 {
        self.flows.iter_mut().flatten().map(|flow| flow.longer_if_used(at)).max().unwrap_or(0)
    }

    /// So many bytes of a node are asked for within `span` from `at` on. Returns how much longer than that it takes until all have come.
    pub(super) fn book(
        &mut self,
        at: Nanos,
        bytes: u64,
        span: Nanos,
        from: NodeId,
        memory: NodeId,
        is_write: bool,
    ) -> u64 {
        self.flow(from, memory, is_write).map_or(0, |flow| flow.book(at, bytes, span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets, and memory without CPUs that is as far as `far` from the second.
    fn spec(far: u8) -> LinkSpec {
        LinkSpec {
            latency: LinkSpec::LATENCY,
            bandwidth: LinkSpec::BANDWIDTH,
            distances: vec![vec![10, 32, 50], vec![32, 10, far], vec![50, far, 10]],
            has_cpus: vec![true, true, false],
        }
    }

    #[test]
    fn memory_without_cpus_is_behind_the_nearest_socket_and_behind_both_if_they_are_as_near() {
        let over = |far| {
            let links = Links::new(&spec(far), Asked::MOST);
            links.over[..2].to_vec()
        };
        let [here, there] = [NodeId(0), NodeId(1)];
        assert_eq!(over(50), [[None, Some(there), None], [Some(here), None, None]]);
        assert_eq!(over(60), [[None, Some(there), None], [Some(here), None, Some(here)]]);
        assert_eq!(over(40), [[None, Some(there), Some(there)], [Some(here), None, None]]);
    }

    #[test]
    fn a_link_adds_what_the_other_socket_takes_longer_and_its_load_slows_one_direction() {
        const WINDOW: u64 = 100_000;
        let (here, there) = (NodeId(0), NodeId(1));
        let mut links = Links::new(&spec(50), Asked::MOST);
        assert_eq!(links.longer(Nanos(0), here, here, false), 0);
        assert_eq!(links.longer(Nanos(0), here, there, false), 62);
        // Two thirds of what it can carry.
        let lines = LinkSpec::BANDWIDTH / 64 * 2 / 3 / 10_000;
        for window in 0..20 {
            assert_eq!(links.book(Nanos(window * WINDOW), lines * 64, Nanos(WINDOW), here, there, false), 0);
        }
        let at = Nanos(20 * WINDOW);
        assert_eq!(links.longer(at, here, there, false), 62 + 78 * 665 / 670);
        assert_eq!(links.longer(at, here, there, true), 62, "stores go the other way");
        assert_eq!(links.longer(at, there, here, true), 62 + 78 * 665 / 670, "as what they store does");
        assert_eq!(links.longest(at), 62 + 78 * 665 / 670);
        assert!(links.book(at, 15 * lines * 64, Nanos(WINDOW), here, there, false) > 8 * WINDOW);
    }
}
