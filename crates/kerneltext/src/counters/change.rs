//! Changes between two snapshots: the difference of each counter, and both values of each gauge. The type of a value follows from its name.

use std::collections::BTreeMap;

use super::snapshot::{FileKind, Snapshot};

/// Type of the value of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// It only grows.
    Counter,
    /// A current value.
    Gauge(Unit),
    /// The name is not known here.
    Unknown,
}

/// Unit of a gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Base pages.
    Pages,
    /// Bytes.
    Bytes,
    /// KiB.
    Kibibytes,
    /// A number of objects, such as huge pages.
    Count,
    /// Hundredths of a percent of time.
    HundredthsOfPercent,
}

impl Unit {
    /// Short name of the unit.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Pages => "pages",
            Unit::Bytes => "bytes",
            Unit::Kibibytes => "KiB",
            Unit::Count => "number",
            Unit::HundredthsOfPercent => "0.01 %",
        }
    }

    /// Bytes of one unit; `None` if it does not measure memory.
    pub fn bytes(self, page_size: u64) -> Option<u64> {
        match self {
            Unit::Pages => Some(page_size),
            Unit::Bytes => Some(1),
            Unit::Kibibytes => Some(1024),
            Unit::Count | Unit::HundredthsOfPercent => None,
        }
    }
}

/// Counters of `/proc/vmstat` that have names of gauges.
const COUNTERS_NR: &[&str] = &[
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_tlb_remote_flush",
    "nr_tlb_remote_flush_received",
    "nr_tlb_local_flush_all",
    "nr_tlb_local_flush_one",
];

/// Gauges of `/proc/vmstat` that are not in pages.
const THINGS: &[&str] = &[
    "nr_anon_transparent_hugepages",
    "nr_shmem_hugepages",
    "nr_shmem_pmdmapped",
    "nr_file_hugepages",
    "nr_file_pmdmapped",
];

/// Prefixes of counters, in any file.
const COUNTERS: &[&str] = &[
    "pg",
    "pswp",
    "swpin",
    "swpout",
    "swap_ra",
    "zswp",
    "thp_",
    "compact_",
    "workingset_",
    "allocstall",
    "kswapd_",
    "oom_kill",
    "drop_",
    "numa_",
    "balloon_",
    "htlb_",
    "unevictable_pgs_",
    "slabs_scanned",
    "pageoutrun",
    "zone_reclaim_",
    "ksm_",
    "cow_ksm",
    "direct_map_",
    "vma_lock_",
    "kstack_",
    "memory_promote",
];

/// Gauges of `memory.stat`, in bytes.
const BYTES: &[&str] = &[
    "anon",
    "file",
    "kernel",
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "percpu",
    "sock",
    "vmalloc",
    "shmem",
    "zswap",
    "zswapped",
    "file_mapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "anon_thp",
    "file_thp",
    "shmem_thp",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "slab",
    "hugetlb",
];

/// Gauges of `memory.stat` of cgroup v1, in bytes; also behind `total_`.
const BYTES_V1: &[&str] = &[
    "cache",
    "rss",
    "rss_huge",
    "shmem",
    "mapped_file",
    "dirty",
    "writeback",
    "swap",
    "swapcached",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "hierarchical_memory_limit",
    "hierarchical_memsw_limit",
];

/// Returns true if a file of this kind has the name, as far as is known here.
pub(super) fn is_of(kind: FileKind, name: &str) -> bool {
    holds(kind, name) != Holds::Unknown
}

/// Returns true if the name is a counter in a file of this kind.
pub(super) fn is_counter_of(kind: FileKind, name: &str) -> bool {
    holds(kind, name) == Holds::Counter
}

/// Returns true if the name is a counter in any file.
pub(super) fn is_counter(name: &str) -> bool {
    COUNTERS.iter().any(|begin| name.starts_with(begin))
}

fn holds(kind: FileKind, name: &str) -> Holds {
    // The only one of its family that does not count events.
    if name == "workingset_nodes" {
        return Holds::Gauge(Unit::Count);
    }
    if kind == FileKind::Pressure {
        return if name.ends_with("_total_us") {
            Holds::Counter
        } else {
            Holds::Gauge(Unit::HundredthsOfPercent)
        };
    }
    match kind {
        FileKind::Vmstat if COUNTERS_NR.contains(&name) => Holds::Counter,
        FileKind::Vmstat if THINGS.contains(&name) => Holds::Gauge(Unit::Count),
        FileKind::Vmstat if name == "nr_kernel_stack" || name == "nr_shadow_call_stack" => {
            Holds::Gauge(Unit::Kibibytes)
        }
        FileKind::Vmstat if name.starts_with("nr_") => Holds::Gauge(Unit::Pages),
        FileKind::MemoryStat if BYTES.contains(&name) => Holds::Gauge(Unit::Bytes),
        FileKind::MemoryStatV1 if BYTES_V1.contains(&name.strip_prefix("total_").unwrap_or(name)) => {
            Holds::Gauge(Unit::Bytes)
        }
        FileKind::MemoryStatV1 if name.strip_prefix("total_").is_some_and(is_counter) => Holds::Counter,
        _ if is_counter(name) => Holds::Counter,
        _ => Holds::Unknown,
    }
}

/// A name with its values in both snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The name.
    pub name: String,
    /// Value in the earlier snapshot.
    pub before: u64,
    /// Value in the later snapshot.
    pub after: u64,
}

impl Pair {
    /// Later minus earlier value.
    pub fn change(&self) -> i128 {
        i128::from(self.after) - i128::from(self.before)
    }

    /// Returns true if a gauge was negative in either snapshot. The kernel prints a negative gauge as a number close to 2^64.
    pub fn is_below_zero(&self) -> bool {
        self.before.cast_signed() < 0 || self.after.cast_signed() < 0
    }

    /// Later minus earlier value, of a gauge that may be negative.
    pub fn signed_change(&self) -> i128 {
        i128::from(self.after.cast_signed()) - i128::from(self.before.cast_signed())
    }
}

/// State of a counter in two snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterState {
    /// It grew by this much, or by 0.
    Grew(u64),
    /// It is lower in the later snapshot.
    Fell,
    /// Only one of the snapshots has it.
    InOneFile,
    /// Neither snapshot has it.
    Absent,
}

/// Two snapshots compared, name by name.
#[derive(Debug)]
pub struct Change {
    /// Kind of both files.
    pub kind: FileKind,
    /// Counters in the order of the later snapshot, without those that fell.
    pub counters: Vec<Pair>,
    /// Gauges in the order of the later snapshot, with their units.
    pub gauges: Vec<(Pair, Unit)>,
    /// Values whose names are not known here.
    pub unknown: Vec<Pair>,
    /// Counters that are lower in the later snapshot: they were reset in between, or the order is wrong.
    pub fell: Vec<Pair>,
    /// Names that only the earlier snapshot has.
    pub only_before: Vec<String>,
    /// Names that only the later snapshot has.
    pub only_after: Vec<String>,
}

impl Change {
    /// Compares two snapshots; `kind` is that of [`FileKind::of_both`].
    pub fn of(kind: FileKind, before: &Snapshot, after: &Snapshot) -> Change {
        let earlier: BTreeMap<&str, u64> =
            before.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let later: BTreeMap<&str, u64> =
            after.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let missing = |of: &Snapshot, known: &BTreeMap<&str, u64>| {
            let names = of.values.iter().map(|(name, _)| name.clone());
            names.filter(|name| !known.contains_key(name.as_str())).collect()
        };
        let mut change = Change {
            kind,
            counters: Vec::new(),
            gauges: Vec::new(),
            unknown: Vec::new(),
            fell: Vec::new(),
            only_before: missing(before, &later),
            only_after: missing(after, &earlier),
        };
        for (name, value) in &after.values {
            let Some(&before) = earlier.get(name.as_str()) else { continue };
            let pair = Pair { name: name.clone(), before, after: *value };
            match holds(kind, name) {
                Holds::Counter if pair.change() < 0 => change.fell.push(pair),
                Holds::Counter => change.counters.push(pair),
                Holds::Gauge(unit) => change.gauges.push((pair, unit)),
                Holds::Unknown => change.unknown.push(pair),
            }
        }
        change
    }

    /// State of the counter of this name.
    pub fn state(&self, name: &str) -> CounterState {
        if let Some(counter) = self.counters.iter().find(|counter| counter.name == name) {
            return CounterState::Grew(u64::try_from(counter.change()).unwrap_or(0));
        }
        if self.fell.iter().any(|counter| counter.name == name) {
            CounterState::Fell
        } else if self.only_before.iter().chain(&self.only_after).any(|known| known == name) {
            CounterState::InOneFile
        } else {
            CounterState::Absent
        }
    }

    /// All counters of both snapshots, and all names that only one snapshot has.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let pairs = self.counters.iter().chain(&self.fell).map(|pair| pair.name.as_str());
        pairs.chain(self.only_before.iter().chain(&self.only_after).map(String::as_str))
    }

    /// Gauges that were negative in either snapshot.
    pub fn below_zero(&self) -> impl Iterator<Item = &Pair> {
        self.gauges.iter().map(|(gauge, _)| gauge).filter(|gauge| gauge.is_below_zero())
    }

    /// Returns true if at least as many counters fell as grew: the snapshots are in the wrong order, or of different boots.
    pub fn is_restarted(&self) -> bool {
        let grown = self.counters.iter().filter(|counter| counter.change() > 0).count();
        !self.fell.is_empty() && self.fell.len() >= grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_counters_from_gauges() {
        for (kind, name, expected) in [
            (FileKind::Vmstat, "nr_free_pages", Holds::Gauge(Unit::Pages)),
            (FileKind::Vmstat, "nr_dirtied", Holds::Counter),
            (FileKind::Vmstat, "nr_kernel_stack", Holds::Gauge(Unit::Kibibytes)),
            (FileKind::Vmstat, "nr_anon_transparent_hugepages", Holds::Gauge(Unit::Count)),
            (FileKind::Vmstat, "workingset_nodes", Holds::Gauge(Unit::Count)),
            (FileKind::Vmstat, "workingset_refault_file", Holds::Counter),
            (FileKind::Vmstat, "allocstall_movable", Holds::Counter),
            (FileKind::Vmstat, "of_tomorrow", Holds::Unknown),
            (FileKind::MemoryStat, "anon", Holds::Gauge(Unit::Bytes)),
            (FileKind::MemoryStat, "pgscan", Holds::Counter),
            (FileKind::MemoryStat, "nr_something", Holds::Unknown),
            (FileKind::MemoryStatV1, "total_cache", Holds::Gauge(Unit::Bytes)),
            (FileKind::MemoryStatV1, "total_pgpgin", Holds::Counter),
        ] {
            assert_eq!(holds(kind, name), expected, "{name}");
        }
    }
}
