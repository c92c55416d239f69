//! The byte machine: a machine that really holds page contents, and the tests that drive the engine with it.
//!
//! The engine never learns what a page holds, so a rule that loses data looks like any other rule to it. This machine
//! carries every operation out on real contents (a `u64` a page) and compares what each access sees with a plain model.
//! [`mutant`] keeps the test honest: engines with a known bug that it must reject.

mod actions; // what a run consists of, and how to make random ones
mod balloon; // promises of the balloon
mod batches; // promises of the per-CPU batches that can't be seen from outside
mod compaction; // promises of compaction
mod congestion; // promises of how reclaimers stood back for devices in 2010
mod demotion; // promises of demotion to slower memory
mod huge_memory; // promises of huge pages
mod anon_folios; // promises of anonymous folios between single and huge pages
mod highatomic; // pageblocks for requests that can't wait, written a second time
mod high_order; // promises to requests for blocks of pages
mod lumpy; // promises of reclaim that takes whole blocks
mod migration; // promises of migration between nodes
mod numa_balancing; // promises of scans, hint faults and promotion
mod large; // promises of large folios, which no access makes yet
mod machine; // frames, slots, devices and tasks: carries out what the engine decides
mod model; // what each page must hold
mod mutant; // engines with a known bug
mod numa_placement; // promises of pages that follow their threads, and a naive model
mod placement; // promises of memory policies and of nodes that go
mod promotion; // promises of pages that are read again on slow memory
mod page_alloc; // the page allocator written a second time
mod tests; // random runs, with and without a bug
mod zones; // promises to who needs a page of a lower zone
mod view; // what the machine and the tests look up inside the engine

pub(crate) use mutant::Mutant;
