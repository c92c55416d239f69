//! [`Node`]: the memory that a cache is made of, of one kind or of two.
//!
//! Fast memory takes what is left of the budget. Slow memory is its own part of it, and where it is has to be said: on a node of the machine, which
//! may be CXL or persistent memory, or nowhere, and then each page that is read from there is waited for. Such figures say how the engine decides, and
//! nothing of any hardware: who prints them says *emulated*, and the delay.

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
    /// Bytes of frames; of the fast one, what the others leave.
    pub(crate) slow_bytes: Option<u64>,
    pub(crate) place: Place,
}

/// Where the memory of a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Wherever the system puts it.
    Anywhere,
    /// On this node of the machine, and nowhere else.
    NumaNode(u32),
    /// Wherever the system puts it, and each page takes longer.
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

/// How much longer slow memory takes that is emulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delay(pub(crate) Duration);

impl Delay {
    /// For each page that is copied from, be it a byte or all of it, and for each guard.
    pub const fn per_page(time: Duration) -> Delay {
        Delay(time)
    }
}

impl Node {
    /// Fast memory on a node of the machine. Without this it is wherever the system puts it.
    pub const fn bound_to(numa_node: u32) -> Node {
        Node { slow_bytes: None, place: Place::NumaNode(numa_node) }
    }

    /// Slow memory of so many bytes of frames. Where it is has to be said: [`Node::on_numa_node`] or [`Node::emulated`].
    pub const fn slow(bytes: u64) -> Node {
        Node { slow_bytes: Some(bytes), place: Place::Anywhere }
    }

    /// It is on this node of the machine.
    pub const fn on_numa_node(self, numa_node: u32) -> Node {
        Node { place: Place::NumaNode(numa_node), ..self }
    }

    /// It is memory like any other, and whoever reads it waits so much longer.
    pub const fn emulated(self, delay: Delay) -> Node {
        Node { place: Place::Emulated(delay), ..self }
    }
}

/// The nodes of a cache: fast memory, and slow memory where there is any.
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

    /// What was asked for, if it can be.
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

/// A wait that is too short for any clock: so many steps of a computation, each of which needs the one before it, and nothing is read before the
/// last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    steps: u32,
}

impl Spin {
    /// As many steps as take so long here and now.
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

    /// How long it takes, by the shortest of some samples: whatever interrupts one makes it longer.
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
        // Processors do what comes before and after this at the same time, unless each part has to be seen by others before the next one begins.
        let state_of_all = AtomicU64::new(1);
        fence(Ordering::SeqCst);
        let mut state = black_box(&state_of_all).load(Ordering::Relaxed);
        for _ in 0..self.steps {
            // No compiler knows how to take several of these at once.
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
