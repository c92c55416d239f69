//! Device faults: which requests fail; at random, one in so many, or in a range of blocks.

use std::ops::Range;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

use super::draw::generator;
use super::{Area, Direction, Request};

/// A reason for requests of one direction to fail.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The direction of the requests.
    pub direction: Direction,
    /// The requests that fail.
    pub rule: FaultRule,
}

/// A rule for the requests that fail.
#[derive(Clone, PartialEq, Debug)]
pub enum FaultRule {
    /// Each request fails with this probability, 0 to 1.
    Random(f64),
    /// Every nth request of the direction fails, counted from 1.
    EveryNth(u64),
    /// Requests that touch these blocks fail: a bad spot that stays bad.
    Blocks {
        /// The file or swap area.
        area: Area,
        /// Blocks in 4 KiB pages.
        blocks: Range<u64>,
    },
}

/// One more than the greatest draw.
const TWO_TO_32: f64 = 4_294_967_296.0;

/// The rules of a device and their state.
#[derive(Debug)]
pub(super) struct Faults {
    rules: Vec<Fault>,
    generator: Pcg32,
    reads: u64,
    writes: u64,
}

impl Faults {
    pub(super) fn new(rules: Vec<Fault>, seed: u64) -> Faults {
        Faults { rules, generator: generator(seed), reads: 0, writes: 0 }
    }

    /// Returns true if this request fails.
    #[inline]
    pub(super) fn strike(&mut self, request: Request) -> bool {
        !self.rules.is_empty() && self.apply_rules(request)
    }

    #[inline(never)]
    fn apply_rules(&mut self, request: Request) -> bool {
        let count = match request.direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        };
        *count += 1;
        let count = *count;
        let mut failed = false;
        for fault in self.rules.iter().filter(|fault| fault.direction == request.direction) {
            failed |= match &fault.rule {
                // Every random rule draws for every request, so that one rule's hit does not shift another's sequence.
                FaultRule::Random(probability) => {
                    f64::from(self.generator.next_u32()) < probability * TWO_TO_32
                }
                FaultRule::EveryNth(nth) => count.is_multiple_of(*nth),
                FaultRule::Blocks { area, blocks } => {
                    *area == request.area
                        && request.block < blocks.end
                        && request.block + u64::from(request.blocks) > blocks.start
                }
            };
        }
        failed
    }
}
