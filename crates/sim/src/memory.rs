//! Performance of memory: latency and bandwidth of a node, by preset and with sources.

mod preset; // classes of memory: every figure with its source
mod link; // what goes over a link between sockets
mod load; // what an access takes, by how far its node is and how busy
mod hindsight; // the placement that knew all accesses beforehand

pub use hindsight::HeatMap;
pub(crate) use hindsight::Hindsight;
pub use link::LinkSpec;
pub(crate) use load::{Asked, Delays, LINE, MemoryLoad, Moves, Touches};
pub use preset::{PRESETS, Preset};

use pageout_engine::AccessCoordinate;

/// The memory of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySpec {
    /// Nanoseconds that a load of a cache line takes with no other access in flight.
    pub read_latency: u64,
    /// Nanoseconds that a store takes that has to reach memory.
    pub write_latency: u64,
    /// Bytes a second that all loads together can have.
    pub read_bandwidth: u64,
    /// Bytes a second that all stores together can have.
    pub write_bandwidth: u64,
}

impl MemorySpec {
    /// Ordinary memory next to the CPU, the subject of the cost table.
    pub const DRAM: MemorySpec = preset::DRAM.spec();

    /// The name of the preset of ordinary memory.
    pub const DRAM_NAME: &str = preset::DRAM.name;

    /// Names of all presets.
    pub const PRESETS: &[&str] = preset::NAMES;

    /// The memory of a preset.
    pub fn preset(name: &str) -> Option<MemorySpec> {
        PRESETS.iter().find(|preset| preset.name == name).map(Preset::spec)
    }

    /// Latencies and bandwidths in the units of the firmware's tables (HMAT).
    pub fn coordinate(&self) -> AccessCoordinate {
        let clamped = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).max(1);
        AccessCoordinate {
            read_latency: clamped(self.read_latency),
            write_latency: clamped(self.write_latency),
            read_bandwidth: clamped(self.read_bandwidth / 1_000_000),
            write_bandwidth: clamped(self.write_bandwidth / 1_000_000),
        }
    }
}
