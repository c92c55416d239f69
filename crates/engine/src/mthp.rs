//! Events of large folios by their order, as the kernel counts them since boot in the files `stats/` of
//! `/sys/kernel/mm/transparent_hugepage/hugepages-<N>kB`. [folios 4.1]
//!
//! Large folios of regular files have counters for splits alone; only tracepoints report how they come.

use crate::core::Core;
use crate::memory::folio::HUGE_PAGE_ORDER;
use crate::stat::Stat;
use crate::units::NodeId;

/// What happened to a folio of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MthpStat {
    /// A folio of tmpfs was created (`shmem_alloc`).
    ShmemAlloc,
    /// tmpfs asked for one, and there was no block, or its group refused to pay for it (`shmem_fallback`).
    ShmemFallback,
    /// As far as the group refused (`shmem_fallback_charge`).
    ShmemFallbackCharge,
    /// A folio was split (`split`).
    Split,
    /// A folio was to be split, but someone held it (`split_failed`).
    SplitFailed,
}

impl MthpStat {
    /// All of them, in their order.
    pub const ALL: [MthpStat; 5] = [
        MthpStat::ShmemAlloc,
        MthpStat::ShmemFallback,
        MthpStat::ShmemFallbackCharge,
        MthpStat::Split,
        MthpStat::SplitFailed,
    ];

    /// Returns the name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            MthpStat::ShmemAlloc => "shmem_alloc",
            MthpStat::ShmemFallback => "shmem_fallback",
            MthpStat::ShmemFallbackCharge => "shmem_fallback_charge",
            MthpStat::Split => "split",
            MthpStat::SplitFailed => "split_failed",
        }
    }

    /// Returns what its file counts.
    pub const fn doc(self) -> &'static str {
        match self {
            MthpStat::ShmemAlloc => "Folios of this size that tmpfs created.",
            MthpStat::ShmemFallback => {
                "Folios of this size that tmpfs could not create: no free block, or a refused charge."
            }
            MthpStat::ShmemFallbackCharge => "Refused charges of folios of this size of tmpfs.",
            MthpStat::Split => "Folios of this size that were split.",
            MthpStat::SplitFailed => "Folios of this size that were in use and could not be split.",
        }
    }

    /// The counter of `/proc/vmstat` that counts it for huge pages.
    const fn of_huge(self) -> Stat {
        match self {
            MthpStat::ShmemAlloc => Stat::ThpFileAlloc,
            MthpStat::ShmemFallback => Stat::ThpFileFallback,
            MthpStat::ShmemFallbackCharge => Stat::ThpFileFallbackCharge,
            MthpStat::Split => Stat::ThpSplitPage,
            MthpStat::SplitFailed => Stat::ThpSplitPageFailed,
        }
    }
}

/// Events by kind and order.
#[derive(Clone, Default, Debug)]
pub(crate) struct MthpCounts([[u64; HUGE_PAGE_ORDER as usize + 1]; MthpStat::ALL.len()]);

impl MthpCounts {
    /// How often it has happened to folios of an order.
    pub(crate) fn get(&self, order: u8, stat: MthpStat) -> u64 {
        self.0[stat as usize].get(usize::from(order)).copied().unwrap_or_default()
    }
}

impl Core {
    /// Counts an event of a large folio on a node. Huge pages also have counters of their own.
    #[doc(alias = "count_mthp_stat")]
    #[cold]
    pub(crate) fn count_mthp(&mut self, node: NodeId, order: u8, stat: MthpStat) {
        self.mm.mthp.0[stat as usize][usize::from(order)] += 1;
        if order == HUGE_PAGE_ORDER {
            self.mm.count_node(node, stat.of_huge(), 1);
        }
    }
}
