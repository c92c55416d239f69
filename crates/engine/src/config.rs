//! What can be chosen beside the policy: sizes, batches, freshness. Defaults are Linux 6.12's unless a field says otherwise.

use crate::policy::Policy;
use crate::units::{Nanos, SECTION_FRAMES};
use std::fmt;

/// How old the memcg statistics are that reclaim's decisions read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatFlush {
    /// As the kernel does: as of the last flush, by the periodic worker or a reader of `memory.stat`.
    Periodic,
    /// Always up to date, at the cost of updating every ancestor on every event.
    Live,
    /// Flushed only by [`crate::Engine::flush_stats`] and by readers: for replaying recorded flush points.
    Manual,
}

/// What an engine is built from.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Frames of each NUMA node. Unit: pages. At least one node of at least one page. Default: one node of 1 GiB.
    pub node_pages: Vec<u64>,
    /// CPUs, each with its own folio batches and charge stock. Range 1 to 4096, default 1.
    pub cpus: u16,
    /// Timer ticks a second; the statistics flush and the throttles count in ticks. Range 1 to 1000, default 250 (Debian's).
    pub hz: u32,
    /// `vm.swappiness`. Range 0 to 200, default 60.
    pub swappiness: u8,
    /// Folios in a per-CPU batch. Range 1 to 255, default 31 (6.12; 15 before 6.8 or so).
    pub folio_batch: usize,
    /// Pages a CPU charges ahead. Range 1 to 4096, default 64.
    pub charge_stock: u64,
    /// Pages of a reclaim batch and least target of a reclaim call (SWAP_CLUSTER_MAX). Range 1 to 4096, default 32.
    pub reclaim_batch: u64,
    /// Requests that a plug of swap writes holds before it is submitted, slots that follow each other being one (the block
    /// layer's BLK_MAX_REQUEST_COUNT). Range 1 to 65536, default 32.
    pub plug_requests: u32,
    /// How many of a hundred full plugs the device has written by the time that the batch is over in whose middle they were
    /// submitted. Range 0 to 100, default 0: a batch takes microseconds, a device longer. An emulated CPU is slow enough.
    /// Such writes are operations like those of a synchronous device, and a machine that prices them as such is wrong.
    pub writes_won: u8,
    /// Freshness of memcg statistics. Default: periodic.
    pub stat_flush: StatFlush,
    /// Whether kernel memory belongs to the group that uses it, as without `cgroup.memory=nokmem`. Today this decides whose
    /// list a shadow-only index node is on; the nodes themselves are not charged yet. Default: false (Linux's is true).
    pub kernel_memory: bool,
    /// Translations that a processor holds for an address space, direct-mapped: accesses through them set no accessed bit. A
    /// power of two up to 65536; 0: each access sets it. Default: 0.
    pub tlb_entries: u32,
    /// Policy of groups that name none. Default: `classic@6.12`.
    pub policy: Policy,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            node_pages: vec![(1 << 30) / crate::PAGE_SIZE],
            cpus: 1,
            hz: 250,
            swappiness: 60,
            folio_batch: 31,
            charge_stock: 64,
            reclaim_batch: 32,
            plug_requests: 32,
            writes_won: 0,
            stat_flush: StatFlush::Periodic,
            kernel_memory: false,
            tlb_entries: 0,
            policy: Policy::classic_6_12(),
        }
    }
}

impl Config {
    /// Period of the statistics worker: two seconds, rounded up to the 8-tick granularity that timers of that length have.
    ///
    /// At 250 Hz that is 504 ticks, 2.016 s, which is what the ground truth shows; at 1000 Hz a timer of 2000 ticks falls
    /// into the band of 64 ticks: 2.048 s.
    pub fn stat_flush_period(&self) -> Nanos {
        let ticks = 2 * u64::from(self.hz);
        let granularity = timer_granularity(ticks);
        Nanos::from_ticks(ticks.div_ceil(granularity) * granularity, self.hz)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        check_range("nodes", self.node_pages.len() as u64, 1, 64)?;
        // The last section is kept back so that a frame number always fits 32 bits, with one value left for "none".
        let frames_max = u64::from(u32::MAX - SECTION_FRAMES);
        for &pages in &self.node_pages {
            check_range("pages of a node", pages, 1, frames_max)?;
        }
        let sections: u64 =
            self.node_pages.iter().map(|pages| pages.div_ceil(u64::from(SECTION_FRAMES))).sum();
        check_range("pages of all nodes", sections * u64::from(SECTION_FRAMES), 1, frames_max)?;
        check_range("cpus", u64::from(self.cpus), 1, 4096)?;
        check_range("hz", u64::from(self.hz), 1, 1000)?;
        check_range("vm.swappiness", u64::from(self.swappiness), 0, 200)?;
        check_range("folio_batch", self.folio_batch as u64, 1, 255)?;
        check_range("charge_stock", self.charge_stock, 1, 4096)?;
        check_range("reclaim_batch", self.reclaim_batch, 1, 4096)?;
        check_range("plug_requests", u64::from(self.plug_requests), 1, 65_536)?;
        check_range("writes_won", u64::from(self.writes_won), 0, 100)?;
        if self.tlb_entries > 0 && !self.tlb_entries.is_power_of_two() {
            return Err(ConfigError::NoPowerOfTwo { what: "tlb_entries", value: self.tlb_entries.into() });
        }
        check_range("tlb_entries", u64::from(self.tlb_entries), 0, 65_536)
    }
}

/// Granularity of a timer of so many ticks: one tick up to 63, then eight times coarser with each eightfold length.
fn timer_granularity(ticks: u64) -> u64 {
    let mut granularity = 1;
    while ticks > 63 * granularity {
        granularity *= 8;
    }
    granularity
}

/// What kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// On a block device: read on a miss, dropped when clean.
    Regular,
    /// In memory only: anonymous type, always dirty, leaves memory by way of swap.
    Tmpfs,
}

/// A file to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// For messages.
    pub name: String,
    /// Its length in pages.
    pub pages: u64,
    /// Regular or tmpfs.
    pub kind: FileKind,
}

/// How a swap device completes its transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapKind {
    /// An ordinary block device: asynchronous, through the swap cache.
    Device,
    /// zram-like: done when the call returns; a swap-in skips the swap cache and frees the slot.
    Synchronous,
}

/// A swap device to enable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapSpec {
    /// Its size in pages.
    pub pages: u64,
    /// How it completes transfers.
    pub kind: SwapKind,
}

/// Why something could not be built or set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A number outside its range.
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// The value given.
        value: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A number that has to be a power of two, or 0.
    NoPowerOfTwo {
        /// Which number.
        what: &'static str,
        /// The value given.
        value: u64,
    },
    /// No such group, task, object or file.
    Unknown(String),
    /// A group of this path exists.
    Exists(String),
    /// A name that can't be one path component.
    BadName(String),
}

/// Refuses a number outside its range by its name.
pub(crate) fn check_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(ConfigError::OutOfRange { what, value, min, max }) }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { what, value, min, max } => {
                write!(f, "{what}: {value} is not in the range {min} to {max}")
            }
            Self::NoPowerOfTwo { what, value } => write!(f, "{what}: {value} is no power of two"),
            Self::Unknown(what) => write!(f, "there is no {what}"),
            Self::Exists(what) => write!(f, "{what} exists already"),
            Self::BadName(name) => write!(f, "`{name}` can't be a name: it is empty or holds a slash"),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flush_period_is_two_seconds_rounded_up_to_the_timer_wheels_granularity() {
        let period = |hz| Config { hz, ..Config::default() }.stat_flush_period();
        assert_eq!(period(250), Nanos(2_016_000_000));
        assert_eq!(period(1000), Nanos(2_048_000_000));
    }

    #[test]
    fn a_config_out_of_range_is_refused_by_name() {
        let config = Config { folio_batch: 0, ..Config::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "folio_batch: 0 is not in the range 1 to 255");
        let config = Config { tlb_entries: 3, ..Config::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "tlb_entries: 3 is no power of two");
    }
}
