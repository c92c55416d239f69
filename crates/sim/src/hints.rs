//! Hardware hints (IBS, PEBS, counters of CXL devices): which accesses hardware sees, what it keeps of them, and what is lost. [tiering 5]
//!
//! ```text
//!   accesses of a CPU  ─▶ every so many: a sample ─▶ filters ─▶ ring of the CPU ──┐   full: dropped
//!                                                                                 ├─▶ emptied a little later ─▶ the engine
//!   accesses of a node ─▶ counters of the device ─▶ hot enough ─▶ ring of the device ─┘
//! ```
//! A sampler (`sampler.rs`) sees few accesses of all pages, and knows the processor of each. It is off in the kernel, so pages that read(2) and
//! write(2) copy are never sampled. A device that counts (`counters.rs`) sees all accesses to its own memory, from any processor, as long as it has a
//! counter for them, but not their source. Both are deterministic: the variation between two samples is a function of the seed, the CPU and the
//! number of its samples.
//!
//! What is not modelled: processor caches. Every access of the simulator reaches memory, so filters for misses of caches pass all.

mod counters; // devices that count
mod preset; // classes of hardware: every figure with its source
mod sampler; // processors that sample

pub(crate) use counters::Counters;
pub use preset::{PRESETS, Preset};
pub(crate) use sampler::Sampler;

use pageout_engine::Nanos;

/// Hardware that reports accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintSpec {
    /// Each processor samples its own accesses.
    Samples(SampleSpec),
    /// The memory of each node of a lower tier counts accesses to it.
    Counts(CountSpec),
}

/// A processor that samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleSpec {
    /// Accesses from one sample to the next; a sixteenth of it varies.
    pub period: u32,
    /// Stores are not counted.
    pub loads_only: bool,
    /// Samples of accesses that took less are dropped.
    pub min_latency: Nanos,
    /// CPU time that a sample takes on the CPU that it is taken on.
    pub overhead: Nanos,
    /// Samples that a CPU keeps until they are read.
    pub ring: u32,
    /// Time from the first of them until they are read.
    pub drain: Nanos,
}

/// Memory that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountSpec {
    /// Pages that share a counter, a power of two.
    pub unit_pages: u32,
    /// Counters. If two units need the same counter, each access to one unit takes back an access of the other, as in a majority vote.
    pub counters: u32,
    /// Accesses that make a unit hot.
    pub threshold: u32,
    /// Time after which hot units are reported and all counters restart at 0. 0: a unit is reported as soon as it is hot, and its
    /// counter is free.
    pub epoch: Nanos,
    /// Hot units that the device keeps until they are read.
    pub ring: u32,
    /// Time from the first of them until they are read.
    pub drain: Nanos,
}

impl Default for HintSpec {
    fn default() -> HintSpec {
        PRESETS[0].spec
    }
}

impl HintSpec {
    /// The hardware of this name.
    pub fn preset(name: &str) -> Option<HintSpec> {
        PRESETS.iter().find(|preset| preset.name == name).map(|preset| preset.spec)
    }

    /// The names of all.
    pub const NAMES: &[&str] = preset::NAMES;
}
