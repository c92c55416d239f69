//! Changes between two snapshots: what each counter grew by, and what each gauge stands at. Their names tell which is which.

use std::collections::BTreeMap;

use super::snapshot::{Kind, Snapshot};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// It only grows.
    Counter,
    /// What there is, in a unit.
    Gauge(Unit),
    /// Nobody here knows.
    Unknown,
}

/// What a gauge is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Pages,
    Bytes,
    Kibibytes,
    /// Things: huge pages, nodes.
    Things,
    /// Hundredths of a percent of time.
    Hundredths,
}

impl Unit {
    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Pages => "pages",
            Unit::Bytes => "bytes",
            Unit::Kibibytes => "KiB",
            Unit::Things => "number",
            Unit::Hundredths => "0.01 %",
        }
    }

    /// Bytes in one of it, if it is memory.
    pub(super) fn bytes(self, page_size: u64) -> Option<u64> {
        match self {
            Unit::Pages => Some(page_size),
            Unit::Bytes => Some(1),
            Unit::Kibibytes => Some(1024),
            Unit::Things | Unit::Hundredths => None,
        }
    }
}

/// Counters of `/proc/vmstat` that are called like gauges.
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

/// How counters begin, in either file.
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

/// Whether a file of this kind has the name, as far as is known here.
pub(super) fn is_of(kind: Kind, name: &str) -> bool {
    holds(kind, name) != Holds::Unknown
}

/// Whether the name is a counter's in a file of this kind.
pub(super) fn is_counter_of(kind: Kind, name: &str) -> bool {
    holds(kind, name) == Holds::Counter
}

/// Whether the name is a counter's, in whatever file.
pub(super) fn is_counter(name: &str) -> bool {
    COUNTERS.iter().any(|begin| name.starts_with(begin))
}

fn holds(kind: Kind, name: &str) -> Holds {
    // The only one of its family that does not count events.
    if name == "workingset_nodes" {
        return Holds::Gauge(Unit::Things);
    }
    if kind == Kind::Pressure {
        return if name.ends_with("_total_us") { Holds::Counter } else { Holds::Gauge(Unit::Hundredths) };
    }
    match kind {
        Kind::Vmstat if COUNTERS_NR.contains(&name) => Holds::Counter,
        Kind::Vmstat if THINGS.contains(&name) => Holds::Gauge(Unit::Things),
        Kind::Vmstat if name == "nr_kernel_stack" || name == "nr_shadow_call_stack" => {
            Holds::Gauge(Unit::Kibibytes)
        }
        Kind::Vmstat if name.starts_with("nr_") => Holds::Gauge(Unit::Pages),
        Kind::MemoryStat if BYTES.contains(&name) => Holds::Gauge(Unit::Bytes),
        Kind::MemoryStatV1 if BYTES_V1.contains(&name.strip_prefix("total_").unwrap_or(name)) => {
            Holds::Gauge(Unit::Bytes)
        }
        Kind::MemoryStatV1 if name.strip_prefix("total_").is_some_and(is_counter) => Holds::Counter,
        _ if is_counter(name) => Holds::Counter,
        _ => Holds::Unknown,
    }
}

/// A name with its values in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) before: u64,
    pub(super) after: u64,
}

impl Pair {
    pub(super) fn change(&self) -> i128 {
        i128::from(self.after) - i128::from(self.before)
    }

    /// Whether a gauge was below zero. The kernel prints that as a number close to 2^64.
    pub(super) fn is_below_zero(&self) -> bool {
        self.before.cast_signed() < 0 || self.after.cast_signed() < 0
    }

    /// The change of a gauge that may be below zero.
    pub(super) fn signed_change(&self) -> i128 {
        i128::from(self.after.cast_signed()) - i128::from(self.before.cast_signed())
    }
}

/// What is known of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// By how much it grew.
    Grew(u64),
    WentBack,
    InOneFile,
    Absent,
}

/// All that differs, and all that does not.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) kind: Kind,
    /// In the order of the later file, without those that went back.
    pub(super) counters: Vec<Pair>,
    pub(super) gauges: Vec<(Pair, Unit)>,
    /// Names that are not known.
    pub(super) unknown: Vec<Pair>,
    /// Counters that are lower in the later file.
    pub(super) went_back: Vec<Pair>,
    /// Names that only one of the files has.
    pub(super) only_before: Vec<String>,
    pub(super) only_after: Vec<String>,
}

impl Change {
    /// Of two snapshots of `kind`.
    pub(super) fn of(kind: Kind, before: &Snapshot, after: &Snapshot) -> Change {
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
            went_back: Vec::new(),
            only_before: missing(before, &later),
            only_after: missing(after, &earlier),
        };
        for (name, value) in &after.values {
            let Some(&before) = earlier.get(name.as_str()) else { continue };
            let pair = Pair { name: name.clone(), before, after: *value };
            match holds(kind, name) {
                Holds::Counter if pair.change() < 0 => change.went_back.push(pair),
                Holds::Counter => change.counters.push(pair),
                Holds::Gauge(unit) => change.gauges.push((pair, unit)),
                Holds::Unknown => change.unknown.push(pair),
            }
        }
        change
    }

    /// What is known of the counter of this name.
    pub(super) fn state(&self, name: &str) -> State {
        if let Some(counter) = self.counters.iter().find(|counter| counter.name == name) {
            return State::Grew(u64::try_from(counter.change()).unwrap_or(0));
        }
        if self.went_back.iter().any(|counter| counter.name == name) {
            State::WentBack
        } else if self.only_before.iter().chain(&self.only_after).any(|known| known == name) {
            State::InOneFile
        } else {
            State::Absent
        }
    }

    /// All counters that either file has, and names that one of them has alone.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let pairs = self.counters.iter().chain(&self.went_back).map(|pair| pair.name.as_str());
        pairs.chain(self.only_before.iter().chain(&self.only_after).map(String::as_str))
    }

    /// Gauges that were below zero.
    pub(super) fn below_zero(&self) -> impl Iterator<Item = &Pair> {
        self.gauges.iter().map(|(gauge, _)| gauge).filter(|gauge| gauge.is_below_zero())
    }

    /// Whether as many counters fell as grew: no counter tells what happened then.
    pub(super) fn is_started_anew(&self) -> bool {
        let grown = self.counters.iter().filter(|counter| counter.change() > 0).count();
        !self.went_back.is_empty() && self.went_back.len() >= grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_counters_from_gauges() {
        for (kind, name, expected) in [
            (Kind::Vmstat, "nr_free_pages", Holds::Gauge(Unit::Pages)),
            (Kind::Vmstat, "nr_dirtied", Holds::Counter),
            (Kind::Vmstat, "nr_kernel_stack", Holds::Gauge(Unit::Kibibytes)),
            (Kind::Vmstat, "nr_anon_transparent_hugepages", Holds::Gauge(Unit::Things)),
            (Kind::Vmstat, "workingset_nodes", Holds::Gauge(Unit::Things)),
            (Kind::Vmstat, "workingset_refault_file", Holds::Counter),
            (Kind::Vmstat, "allocstall_movable", Holds::Counter),
            (Kind::Vmstat, "of_tomorrow", Holds::Unknown),
            (Kind::MemoryStat, "anon", Holds::Gauge(Unit::Bytes)),
            (Kind::MemoryStat, "pgscan", Holds::Counter),
            (Kind::MemoryStat, "nr_something", Holds::Unknown),
            (Kind::MemoryStatV1, "total_cache", Holds::Gauge(Unit::Bytes)),
            (Kind::MemoryStatV1, "total_pgpgin", Holds::Counter),
        ] {
            assert_eq!(holds(kind, name), expected, "{name}");
        }
    }
}
