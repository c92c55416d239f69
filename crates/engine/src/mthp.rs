//! Events of large folios by their order, as the kernel counts them since boot in the files `stats/` of
//! `/sys/kernel/mm/transparent_hugepage/hugepages-<N>kB`. [folios 4.1]
//!
//! Large folios of regular files have counters for splits alone; only tracepoints report how they come.

use crate::core::Core;
use crate::memory::folio::HUGE_PAGE_ORDER;
use crate::stat::Stat;
use crate::units::NodeId;

/// What happened to a folio of an order, or how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MthpStat {
    /// A fault created an anonymous folio (`anon_fault_alloc`).
    AnonFaultAlloc,
    /// A fault asked for one, and there was no block, or its group refused to pay for it (`anon_fault_fallback`).
    AnonFaultFallback,
    /// As far as the group refused (`anon_fault_fallback_charge`).
    AnonFaultFallbackCharge,
    /// zswap stored a folio page by page (`zswpout`).
    Zswpout,
    /// A folio was swapped in as a whole (`swpin`).
    Swpin,
    /// A swap-in asked for one, and there was no block, or its group refused to pay for it (`swpin_fallback`).
    SwpinFallback,
    /// As far as the group refused (`swpin_fallback_charge`).
    SwpinFallbackCharge,
    /// A folio went to a swap device as a whole (`swpout`).
    Swpout,
    /// A folio was split, because no slots in a row were free (`swpout_fallback`).
    SwpoutFallback,
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
    /// A folio became partly mapped, and may be split later (`split_deferred`).
    SplitDeferred,
    /// A gauge: anonymous folios (`nr_anon`).
    NrAnon,
    /// A gauge: those of them that are partly mapped (`nr_anon_partially_mapped`).
    NrAnonPartlyMapped,
}

impl MthpStat {
    /// All of them, in their order.
    pub const ALL: [MthpStat; 17] = [
        MthpStat::AnonFaultAlloc,
        MthpStat::AnonFaultFallback,
        MthpStat::AnonFaultFallbackCharge,
        MthpStat::Zswpout,
        MthpStat::Swpin,
        MthpStat::SwpinFallback,
        MthpStat::SwpinFallbackCharge,
        MthpStat::Swpout,
        MthpStat::SwpoutFallback,
        MthpStat::ShmemAlloc,
        MthpStat::ShmemFallback,
        MthpStat::ShmemFallbackCharge,
        MthpStat::Split,
        MthpStat::SplitFailed,
        MthpStat::SplitDeferred,
        MthpStat::NrAnon,
        MthpStat::NrAnonPartlyMapped,
    ];

    /// Returns the name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            MthpStat::AnonFaultAlloc => "anon_fault_alloc",
            MthpStat::AnonFaultFallback => "anon_fault_fallback",
            MthpStat::AnonFaultFallbackCharge => "anon_fault_fallback_charge",
            MthpStat::Zswpout => "zswpout",
            MthpStat::Swpin => "swpin",
            MthpStat::SwpinFallback => "swpin_fallback",
            MthpStat::SwpinFallbackCharge => "swpin_fallback_charge",
            MthpStat::Swpout => "swpout",
            MthpStat::SwpoutFallback => "swpout_fallback",
            MthpStat::ShmemAlloc => "shmem_alloc",
            MthpStat::ShmemFallback => "shmem_fallback",
            MthpStat::ShmemFallbackCharge => "shmem_fallback_charge",
            MthpStat::Split => "split",
            MthpStat::SplitFailed => "split_failed",
            MthpStat::SplitDeferred => "split_deferred",
            MthpStat::NrAnon => "nr_anon",
            MthpStat::NrAnonPartlyMapped => "nr_anon_partially_mapped",
        }
    }

    /// Returns what its file counts.
    pub const fn doc(self) -> &'static str {
        match self {
            MthpStat::AnonFaultAlloc => "Folios of this size that a fault created.",
            MthpStat::AnonFaultFallback => {
                "Folios of this size that a fault could not create: no free block, or a refused charge."
            }
            MthpStat::AnonFaultFallbackCharge => "Refused charges of folios of this size at a fault.",
            MthpStat::Zswpout => "Folios of this size that zswap stored.",
            MthpStat::Swpin => "Folios of this size that were swapped in as a whole.",
            MthpStat::SwpinFallback => {
                "Folios of this size that could not be swapped in as a whole: no free block, or a refused charge."
            }
            MthpStat::SwpinFallbackCharge => "Refused charges of folios of this size at a swap-in.",
            MthpStat::Swpout => "Folios of this size that were written to a swap device as a whole.",
            MthpStat::SwpoutFallback => {
                "Folios of this size that were split for swap, because no slots in a row were free."
            }
            MthpStat::ShmemAlloc => "Folios of this size that tmpfs created.",
            MthpStat::ShmemFallback => {
                "Folios of this size that tmpfs could not create: no free block, or a refused charge."
            }
            MthpStat::ShmemFallbackCharge => "Refused charges of folios of this size of tmpfs.",
            MthpStat::Split => "Folios of this size that were split.",
            MthpStat::SplitFailed => "Folios of this size that were in use and could not be split.",
            MthpStat::SplitDeferred => {
                "Folios of this size that became partly mapped, so that pressure may split them."
            }
            MthpStat::NrAnon => "Anonymous folios of this size.",
            MthpStat::NrAnonPartlyMapped => {
                "Anonymous folios of this size of which some pages are not mapped any more."
            }
        }
    }

    /// The counter of `/proc/vmstat` that counts it for huge pages, if there is one.
    const fn of_huge(self) -> Option<Stat> {
        Some(match self {
            MthpStat::AnonFaultAlloc => Stat::ThpFaultAlloc,
            MthpStat::AnonFaultFallback => Stat::ThpFaultFallback,
            MthpStat::AnonFaultFallbackCharge => Stat::ThpFaultFallbackCharge,
            MthpStat::Swpout => Stat::ThpSwpout,
            MthpStat::SwpoutFallback => Stat::ThpSwpoutFallback,
            MthpStat::ShmemAlloc => Stat::ThpFileAlloc,
            MthpStat::ShmemFallback => Stat::ThpFileFallback,
            MthpStat::ShmemFallbackCharge => Stat::ThpFileFallbackCharge,
            MthpStat::Split => Stat::ThpSplitPage,
            MthpStat::SplitFailed => Stat::ThpSplitPageFailed,
            MthpStat::SplitDeferred => Stat::ThpDeferredSplitPage,
            MthpStat::Zswpout
            | MthpStat::Swpin
            | MthpStat::SwpinFallback
            | MthpStat::SwpinFallbackCharge
            | MthpStat::NrAnon
            | MthpStat::NrAnonPartlyMapped => return None,
        })
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

    /// A folio of an order is one of those that a gauge counts, or no longer is.
    pub(crate) fn gauge(&mut self, order: u8, stat: MthpStat, sign: i64) {
        let count = &mut self.0[stat as usize][usize::from(order)];
        *count = count.checked_add_signed(sign).expect("a folio that leaves a gauge was counted there");
    }
}

impl Core {
    /// Counts an event of a large folio on a node. Huge pages also have counters of their own.
    #[doc(alias = "count_mthp_stat")]
    #[cold]
    pub(crate) fn count_mthp(&mut self, node: NodeId, order: u8, stat: MthpStat) {
        self.mm.mthp.0[stat as usize][usize::from(order)] += 1;
        if order == HUGE_PAGE_ORDER
            && let Some(of_huge) = stat.of_huge()
        {
            self.mm.count_node(node, of_huge, 1);
        }
    }
}
