//! [`Node`]: the memory that a cache is made of, of one kind or of two.
//!
//! Fast memory is the budget without slow memory. The location of slow memory must be given. It is on a node of the machine, which may be CXL or
//! persistent memory, or it is emulated: then each page that is read from there has a delay. Such figures describe the engine's decisions, and not
//! any hardware. Reports of them must state *emulated*, and the delay.

use std::fmt;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::error::Error;
use crate::numa;

/// Memory of one kind: [`crate::Builder::node`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Node {
    /// Bytes of frames; for the fast node, the rest of the budget.
    pub(crate) slow_bytes: Option<u64>,
    pub(crate) place: Place,
}

/// Location of a node's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On any node that the system chooses.
    Anywhere,
    /// On this node of the machine only.
    NumaNode(u32),
    /// On any node that the system chooses, with a delay for each page.
    Emulated(Delay),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Anywhere => f.write_str("on any node that the system chooses"),
            Place::NumaNode(node) => write!(f, "on NUMA node {node}"),
            Place::Emulated(Delay(time)) => write!(f, "emulated: {time:?} more per page"),
        }
    }
}

/// Additional latency of emulated slow memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay(pub(crate) Duration);

impl Delay {
    /// Delay for each page that is copied from, completely or in part, and for each guard.
    pub const fn per_page(time: Duration) -> Delay {
        Delay(time)
    }
}

impl Node {
    /// Returns fast memory on a node of the machine. Without this, the system chooses the node.
    pub const fn bound_to(numa_node: u32) -> Node {
        Node { slow_bytes: None, place: Place::NumaNode(numa_node) }
    }

    /// Returns slow memory of this many bytes of frames. Its location must be set: [`Node::on_numa_node`] or [`Node::emulated`].
    pub const fn slow(bytes: u64) -> Node {
        Node { slow_bytes: Some(bytes), place: Place::Anywhere }
    }

    /// Places it on this node of the machine.
    pub const fn on_numa_node(self, numa_node: u32) -> Node {
        Node { place: Place::NumaNode(numa_node), ..self }
    }

    /// Emulates it: it is ordinary memory, and each reader waits for this delay.
    pub const fn emulated(self, delay: Delay) -> Node {
        Node { place: Place::Emulated(delay), ..self }
    }
}

/// The nodes of a cache: fast memory, and slow memory if any.
pub(crate) struct Nodes {
    pub(crate) fast: Place,
    pub(crate) slow: Option<(u64, Place)>,
}

impl Nodes {
    /// Memory for the frames of each node.
    pub(crate) fn arena(&self, frames: &[Range<u32>]) -> Result<Arena, Error> {
        let io = |source| Error::Io { op: "mapping memory", path: "the arena".into(), page: None, source };
        let delay = match self.slow {
            Some((_, Place::Emulated(Delay(time)))) => Some(Spin::calibrated(time)),
            _ => None,
        };
        let arena = Arena::new(frames, delay).map_err(io)?;
        let places = [Some(self.fast), self.slow.map(|(_, place)| place)];
        for (frames, place) in frames.iter().zip(places.into_iter().flatten()) {
            if let Place::NumaNode(node) = place {
                numa::bind(arena.addresses(frames), node).map_err(|error| match error.raw_os_error() {
                    Some(libc::EINVAL) => Error::NoSuchNode { node, nodes: numa::nodes() },
                    _ => Error::Io {
                        op: "binding memory",
                        path: format!("NUMA node {node}").into(),
                        page: None,
                        source: error,
                    },
                })?;
            }
        }
        Ok(arena)
    }

    /// The requested node, if it is possible.
    pub(crate) fn of(asked: &[Node]) -> Result<Nodes, Error> {
        let mut nodes = Nodes { fast: Place::Anywhere, slow: None };
        let (mut fast, mut slow) = (0, 0);
        for node in asked {
            match (node.slow_bytes, node.place) {
                (None, place) => {
                    nodes.fast = place;
                    fast += 1;
                }
                (Some(_), Place::Anywhere) => {
                    return Err(Error::Nodes(
                        "slow memory must be `on_numa_node` of the machine, or `emulated`",
                    ));
                }
                (Some(bytes), place) => {
                    nodes.slow = Some((bytes, place));
                    slow += 1;
                }
            }
        }
        match (fast, slow, nodes.fast) {
            (_, _, Place::Emulated(_)) => {
                Err(Error::Nodes("fast memory can't be emulated; help: emulate slow memory"))
            }
            (0..=1, 0..=1, _) => Ok(nodes),
            _ => Err(Error::Nodes(
                "a cache has exactly one node of fast memory, and at most one of slow memory",
            )),
        }
    }
}

/// A wait that is too short for any clock: this many steps of a computation, each of which needs the previous one. Nothing is read before the last
/// step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    steps: u32,
}

impl Spin {
    /// The number of steps that take this long on this machine.
    pub(crate) fn calibrated(time: Duration) -> Spin {
        if time.is_zero() {
            return Spin { steps: 0 };
        }
        const FEW: u32 = 1;
        const MANY: u32 = 401;
        let [few, many] = [FEW, MANY].map(|steps| Spin { steps }.nanos());
        let step = ((many - few) / f64::from(MANY - FEW)).max(1e-3);
        let steps = (time.as_nanos() as f64 - few) / step + f64::from(FEW);
        Spin { steps: steps.max(1.0) as u32 }
    }

    /// Its duration, as the shortest of some samples: interruptions only make one longer.
    fn nanos(self) -> f64 {
        const WAITS: u32 = 200;
        const SAMPLES: u32 = 20;
        let sample = || {
            let began = Instant::now();
            (0..WAITS).for_each(|_| self.wait());
            began.elapsed()
        };
        let fastest = (0..SAMPLES).map(|_| sample()).min().unwrap_or_default();
        fastest.as_nanos() as f64 / f64::from(WAITS)
    }

    #[inline(never)]
    pub(crate) fn wait(self) {
        if self.steps == 0 {
            return;
        }
        // Processors execute code before and after this at the same time, unless each part must be visible to others before the next one begins.
        let state_of_all = AtomicU64::new(1);
        fence(Ordering::SeqCst);
        let mut state = black_box(&state_of_all).load(Ordering::Relaxed);
        for _ in 0..self.steps {
            // No compiler can combine several of these.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(&state_of_all).store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_is_told() {
        let delay = Delay::per_page(Duration::from_nanos(60));
        let why = |nodes: &[Node]| Nodes::of(nodes).err().map(|error| error.to_string());
        assert_eq!(why(&[]), None);
        assert_eq!(why(&[Node::slow(1 << 20).emulated(delay), Node::bound_to(0)]), None);
        for (nodes, told) in [
            (vec![Node::slow(1 << 20)], "`on_numa_node`"),
            (vec![Node::bound_to(0).emulated(delay)], "emulate slow memory"),
            (vec![Node::bound_to(0), Node::bound_to(1)], "at most"),
            (vec![Node::slow(1 << 20).on_numa_node(0), Node::slow(1 << 20).on_numa_node(1)], "at most"),
        ] {
            assert!(why(&nodes).is_some_and(|why| why.contains(told)), "{nodes:?}");
        }
    }

    #[test]
    fn a_longer_delay_is_more_steps_and_none_is_none() {
        let steps = [0, 60, 600, 60_000].map(|nanos| Spin::calibrated(Duration::from_nanos(nanos)).steps);
        assert_eq!(steps[0], 0);
        assert!(steps.is_sorted() && steps[3] > steps[0], "{steps:?}");
    }
}
