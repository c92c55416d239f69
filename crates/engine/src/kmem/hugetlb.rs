//! hugetlb pools: blocks of pages that an administrator takes out of free memory (`nr_hugepages`) and holds for later use.
//!
//! ```text
//!   echo 64 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
//!     ─▶ block after block, each by the allocator's slow path if need be ─┬─ there: into the pool
//!                                                                        └─ not to be had: the pool stays as it is
//! ```
//! This is the usual test for the success of large requests: fill memory, request all of it in huge pages, and count the pages in the pool.
//! Each request tries as long as that makes progress, unless `hugetlb.repeat` is off, and never invokes the OOM killer. A smaller number frees
//! blocks.
//!
//! *Where it differs:* there is a pool for each order that the allocator has, not only for those that page tables can map. No task
//! maps a block of a pool.

use crate::core::Core;
use crate::machine::step::Wait;
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::slow_path::{Allocated, Allocation};
use crate::stat::Stat;
use crate::units::MemcgId;

/// A write to `nr_hugepages` in progress.
pub(crate) struct PoolResize {
    order: u8,
    wanted: usize,
    allocation: Option<Box<Allocation>>,
}

/// The outcome of one step of resizing a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PoolResizeStep {
    Again,
    Wait(Wait),
    WaitForWriteback,
    /// The pool is as large as was asked for, or as it can be.
    Done,
}

impl PoolResize {
    pub(crate) fn new(order: u8, wanted: usize) -> PoolResize {
        PoolResize { order, wanted, allocation: None }
    }

    /// Returns true if it is inside a reclaim call.
    pub(crate) fn in_reclaim(&self) -> bool {
        self.allocation.as_ref().is_some_and(|allocation| allocation.in_reclaim())
    }

    /// Returns true if it makes room for a block.
    pub(crate) fn is_stalled(&self) -> bool {
        self.allocation.is_some()
    }
}

impl Core {
    /// Takes a write up to the next block, or to the end of a batch of what has to be done for it.
    pub(crate) fn pool_resize_step(&mut self, resize: &mut PoolResize) -> PoolResizeStep {
        // Another write may have made the pool large enough meanwhile. But there is no way out of reclaim and compaction but their end.
        if resize.allocation.is_none() {
            while self.mm.kmem.huge_pools.len(resize.order) > resize.wanted {
                let pfn =
                    self.mm.kmem.huge_pools.0[resize.order as usize].pop().expect("it holds more than that");
                self.kernel_page_free(pfn);
            }
            if self.mm.kmem.huge_pools.len(resize.order) == resize.wanted {
                return PoolResizeStep::Done;
            }
        }
        let repeat = if self.mm.config.hugetlb_repeat { Gfp::RETRY_MAYFAIL } else { Gfp::empty() };
        let gfp = Gfp::KERNEL | Gfp::NOWARN | repeat;
        let request = Request { order: resize.order, ..Request::movable(gfp, self.current_node()) };
        let allocated = match &mut resize.allocation {
            Some(allocation) => self.allocation_step(allocation),
            None => match self.alloc_pages(&request, MemcgId::ROOT) {
                Some(pfn) => Allocated::Page(pfn),
                None => {
                    resize.allocation = Some(Box::new(self.allocation(request, MemcgId::ROOT, None)));
                    return PoolResizeStep::Again;
                }
            },
        };
        match allocated {
            Allocated::Page(pfn) => {
                resize.allocation = None;
                self.mm.kernel_page_new(pfn, MemcgId::ROOT);
                self.mm.kmem.huge_pools.0[resize.order as usize].push(pfn);
                self.mm.count_node(request.node, Stat::HtlbBuddyAllocSuccess, 1);
                PoolResizeStep::Again
            }
            Allocated::Again => PoolResizeStep::Again,
            Allocated::Wait(wait) => PoolResizeStep::Wait(wait),
            Allocated::WaitForWriteback => PoolResizeStep::WaitForWriteback,
            Allocated::Nothing => {
                resize.allocation = None;
                self.mm.count_node(request.node, Stat::HtlbBuddyAllocFail, 1);
                PoolResizeStep::Done
            }
            Allocated::Dying => unreachable!("it is no process's"),
            Allocated::Oom(report) => unreachable!("nobody is killed for a block that may fail: {report}"),
        }
    }
}
