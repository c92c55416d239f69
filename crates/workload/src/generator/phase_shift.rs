//! Phase shift: a program that changes its working set, in phases of different sizes and places.
//!
//! Each phase has its own range and accesses it at random or in order. A policy that keeps the last phase loses here; one that forgets it immediately
//! loses when a phase comes back. The random phases use one generator, so that a phase that comes back accesses its pages in another order.

use serde::Deserialize;

use super::PatternError;
use super::error::{check_pages, check_ratio};
use super::paged::{PageGenerator, Paged};
use super::writes::Writes;
use crate::AccessStream;
use crate::rng::SplitMix64;

/// A working set that changes in phases: `pattern = "phase_shift"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseShift {
    /// The phases in turn; at least one. Required.
    pub phases: Vec<Phase>,
    /// Share of the accesses that write; 0 to 1. Default 0.
    #[serde(default)]
    pub write_ratio: f64,
    /// Seed of pages and writes. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

/// One phase of a [`PhaseShift`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Pages of the phase; 1 to 2^40. Required.
    pub pages: u64,
    /// Accesses of the phase. Required.
    pub ops: u64,
    /// First page of the phase. Default 0.
    #[serde(default)]
    pub offset: u64,
    /// The order of the phase's accesses. Default `uniform`.
    #[serde(default)]
    pub order: PhaseOrder,
}

/// The order of the accesses of a [`Phase`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseOrder {
    /// Every page with the same probability.
    #[default]
    Uniform,
    /// In ascending order, round and round.
    Looping,
}

impl PhaseShift {
    /// Accesses of all phases.
    pub fn ops(&self) -> u64 {
        self.phases.iter().fold(0, |sum, phase| phase.ops.saturating_add(sum))
    }

    /// One more than the highest page that can be accessed.
    pub fn pages_end(&self) -> u64 {
        self.phases.iter().map(|phase| phase.offset.saturating_add(phase.pages)).max().unwrap_or(0)
    }

    /// Checks whether a stream can be made.
    pub fn validate(&self) -> Result<(), PatternError> {
        if self.phases.is_empty() {
            return Err(PatternError::new("phase_shift", "phases", "must name at least one phase"));
        }
        for (index, phase) in self.phases.iter().enumerate() {
            let name = format!("phase_shift.phases[{index}]");
            check_pages(&name, "pages", phase.offset, phase.pages)?;
        }
        check_ratio("phase_shift", "write_ratio", self.write_ratio)
    }

    pub(super) fn stream(&self, object: u32, seed: u64) -> Box<dyn AccessStream> {
        let seed = self.seed.unwrap_or(seed);
        let generator =
            Phases { rng: SplitMix64::new(seed), phases: self.phases.clone(), current: 0, done: 0 };
        Box::new(Paged::new(generator, object, self.ops(), Writes::new(self.write_ratio, seed)))
    }
}

struct Phases {
    rng: SplitMix64,
    phases: Vec<Phase>,
    current: usize,
    /// Accesses done in the current phase.
    done: u64,
}

impl PageGenerator for Phases {
    fn next_page(&mut self) -> u64 {
        while self.done == self.phases[self.current].ops {
            self.current += 1;
            self.done = 0;
        }
        let phase = &self.phases[self.current];
        let within = match phase.order {
            PhaseOrder::Uniform => self.rng.below(phase.pages),
            PhaseOrder::Looping => self.done % phase.pages,
        };
        self.done += 1;
        phase.offset + within
    }
}
