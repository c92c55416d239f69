//! The reclaim engine: decides which page goes where, and can do nothing.
//!
//! No I/O, no clock, no threads, no ambient randomness: accesses and completions come in, operations on pages go out
//! ([`Op`]), and counts of work ([`Work`]) tell the machine what to charge for. The map, in reading order:
#![forbid(unsafe_code)]

mod units; // page frames, nodes, times: the newtypes everything is counted in
mod config; // what can be chosen beside the policy: sizes, batches, freshness
mod policy; // a choice at each of the four seams; the profiles that bundle them
mod switch; // every mechanism and every era's rule under a name
mod step; // how a machine talks to the engine: accesses, steps, waits, outcomes
mod op; // operations on pages that a machine carries out
mod work; // counts of work that a machine prices

mod folio; // a folio's record and its flags
mod frames; // which frames are free
mod list; // index-linked lists
mod table; // 512-entry tables of page words: page tables and page-cache indexes
mod file; // files: page-cache index, shadow entries
mod tlb; // translations that the processor holds, whose use leaves no trace
mod mm; // address spaces: mappings over a page table
mod swap; // swap devices: slots, swap cache, shadows of swapped pages
mod memory; // all of the above together: what is where, and how hot

mod stat; // counters under the kernel's names, and how old a reader's copy is
mod memcg; // the tree of memory groups: limits, protection, iteration
mod lruvec; // the lists of one memcg on one node, their costs and ages
mod batch; // per-CPU folio batches in front of the lists

mod page_cache; // where a folio is found by what it holds
mod task; // what each task is in the middle of
mod access; // hits: what an access to a resident page writes
mod fault; // misses: from the absent page to the mapped one
mod charge; // getting a page past the limits: stock, reclaim, retries, OOM
mod high; // memory.high: reclaim and delay before returning to user space
mod io; // reads and writes in flight, and who waits for them
mod plug; // swap writes held back, to be merged

mod reclaim; // the core of reclaim, which knows no LRU
pub mod harvest; // seam 1: how accessed bits are found
pub mod order; // seam 2: which lists, where a folio goes, who is next
pub mod workingset; // seam 3: what a refault means
pub mod balance; // seam 4: anonymous against file

mod story; // which rule sent a page where it is, told to those who ask
mod advice; // mlock, munmap, madvise, fadvise
mod kernfs; // the text files through which a kernel is watched and steered
mod engine; // the facade a machine holds
mod invariants; // what must always be true, checked from outside

#[cfg(test)]
mod testing; // a machine that really holds bytes, and the tests that drive it

pub use balance::{Position, ScanBalance, TierLimit, TypeReason};
pub use batch::Batch;
pub use config::{
    Config, ConfigError, FileKind, FileSpec, PARAMETERS, Parameter, Section, StatFlush, SwapKind, SwapSpec,
};
pub use engine::Engine;
pub use kernfs::{CGROUP_FILES, CgroupFile, Errno, FileError, Holds, MACHINE_FILES, MachineFile};
pub use mm::Advice;
pub use op::{IoError, Op};
pub use order::{Arrival, Deactivation, GenerationInfo, PlaceRule};
pub use page_cache::PageCacheEvent;
pub use policy::{PROFILES, Policy, Profile};
pub use stat::Stat;
pub use step::{Access, AccessError, DelayReason, OomReport, Served, Step, Wait};
pub use story::{
    Because, Filled, FoundBy, ListsEvent, PageEvent, PageName, PageState, RefaultRule, Stamp, StoryEvent,
    StoryFilter, Told, TypeChoice, Verdict, Whereabouts,
};
pub use switch::{SWITCHES, Switch, Values};
pub use units::{
    CpuId, FileId, IoId, LruType, MemcgId, MmId, Nanos, NodeId, ObjectId, PAGE_SIZE, Pfn, SwapId, TaskId,
};
pub use work::Work;
