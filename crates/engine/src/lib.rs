//! The reclaim engine: it decides which page goes where, and carries out nothing.
//!
//! It has no I/O, clock, threads, or ambient randomness. Accesses and completions come in, operations on pages go out ([`Op`]), and counts of work
//! ([`Work`]) tell the machine what to charge for. The map, in reading order:
#![forbid(unsafe_code)]

/// A place with an optional bug, for tests that must notice it (`testing/mutant.rs`): `mutant!(self, BUG if CONDITION => EFFECT)`, or `mutant!(self,
/// BUG)` for whether the bug is on. Other builds have none of it.
macro_rules! mutant {
    ($core:expr, $bug:ident $(if $condition:expr)? => $does:expr) => {
        #[cfg(test)]
        if $core.mutant == Some(crate::testing::Mutant::$bug) $(&& $condition)? {
            $does;
        }
    };
    ($core:expr, $bug:ident) => {{
        #[cfg(test)]
        let is_there = $core.mutant == Some(crate::testing::Mutant::$bug);
        #[cfg(not(test))]
        let is_there = false;
        is_there
    }};
}

use pageout_mm::{memory, tiers}; // state: a crate of its own. A room below that has state there passes it on under its own name
use pageout_rules::{config, policy, units}; // what can be chosen, and what everything is counted in
mod machine; // the protocol with a machine: accesses, steps, operations, work

mod core; // all state; mechanisms are its methods
mod state; // places of pages: questions and changes without a mechanism
mod audit; // the share of each folio in each counter, computed again
mod recorded; // decisions of a recorded kernel that no rule makes
mod page_alloc; // a request for free memory
mod swap; // pages of zeroes, writes held back, readahead
mod zswap; // into the pool of compressed pages, and out of it
mod kmem; // the kernel's own memory: nodes of tables, stacks
mod memcg; // charging, removal, memory.high
mod stat; // writers of counters, and the age of a reader's copy
mod mapping; // page-table entries over folios: faults, mlock
mod zap; // entries that user space removes: munmap, exit
mod huge_memory; // huge pages of anonymous memory, and single pages of them
mod mthp; // events of large folios, by their order
mod migrate; // a folio moves to another frame; compaction
mod numa_balancing; // pages of slow memory that are in use are found, and promoted
mod damon; // regions by access, and schemes on them
mod pghot; // hot pages of slow memory, promoted by a thread
mod promotion; // pages of slow memory that are read again, promoted by their reader
mod page_cache; // folios by their content
mod io; // reads and writes in flight, and their waiters
mod writeback; // dirty pages of files, and their flushers
mod kthread; // kernel threads, and waits that someone else ends

mod oom; // the process to kill when nothing is reclaimable

mod reclaim; // the core of reclaim, for any LRU
pub mod accessed; // seam 1: the search for accessed bits
pub mod lru; // seam 2: lists, positions of folios, the next victims
pub mod workingset; // seam 3: the meaning of a refault
pub mod balance; // seam 4: anonymous against file

mod access; // tasks and their accesses: hits, misses, advice; the facade
mod kernfs; // the kernel's text files, read and written
mod story; // decisions about a page, and tracepoints, for listeners
mod invariants; // conditions that always hold, checked from outside

#[cfg(test)]
mod testing; // a machine that really holds bytes, and the tests that drive it

pub use pageout_rules::config::{
    Bdi, Config, ConfigError, FileKind, FileSpec, FileSystem, HugepageDefrag, Layout, Mechanism, MemoryType,
    PARAMETERS, Parameter, Section, Shown, StatFlush, SwapKind, SwapSpec, TransparentHugepage,
};
pub use pageout_rules::era::{Era, GENERATIONS_SINCE, Held, Known, Lists, TREES, When, between_trees, held};
pub use pageout_rules::folio::{SizeEnabled, TmpfsHuge};
pub use pageout_rules::lru::Lru;
pub use pageout_rules::migrate::MisplacedHuge;
pub use pageout_rules::numa_balancing::PromotionThreshold;
pub use pageout_rules::pghot::{
    DefaultTarget, HintFaultRule, HotWalk, PghotPosting, PghotQuirks, RecordSize, RefusedPage, TargetFull,
    ThresholdRule,
};
pub use pageout_rules::policy::{GroupRules, MachineRules, PROFILES, Policy, Profile, parameters_of};
pub use pageout_rules::promotion::{PromotionOrder, PromotionTarget, PromotionWhen};
pub use pageout_rules::reclaim::{
    AnonOnly, AnonWriteback, DemotionFull, DemotionMems, FileWriteback, FlushRule, FlusherWake, OfflinePages,
    ProtectionRule, ReclaimRules, Stalls, TreeWalk, V1Throttle,
};
pub use pageout_rules::switch::{SWITCHES, Switch};
pub use pageout_rules::units::{
    AccessCoordinate, BdiId, CpuId, FileId, IoId, LruType, MemcgId, MmId, Nanos, NodeId, Nodemask, ObjectId,
    OpenFileId, PAGE_SIZE, Pfn, SwapId, TaskId, ZoneType,
};
pub use pageout_rules::unmodelled::{UNMODELLED, Unmodelled};
pub use pageout_rules::writeback::{DirtyRule, FailedWrite, FlusherChunk, FlusherRequests, WritebackRules};
pub use pageout_rules::zswap::{Incompressible, WorkerWalk, WritebackRotation, ZswapProtection, ZswapRules};
pub use pageout_rules::{Kernel, Series, Values, Version};

pub use pageout_mm::balance::{Position, RefTierLimit, TypeReason};
pub use pageout_mm::memcg::MEMORY_EVENTS;
pub use pageout_mm::memory::errors::IoError;
pub use pageout_mm::memory::file::FileCounts;
pub use pageout_mm::memory::mempolicy::MemPolicy;
pub use pageout_mm::memory::mm::{Advice, HugeAdvice};
pub use pageout_mm::memory::table::{Entry, ReadaheadStats, Word, WordReader};
pub use pageout_mm::memory::table_memory::{TableHost, WordArray};
pub use pageout_mm::page_alloc::free_memory::{FreeBlocks, FreeMemory, FreeOfCpu};
pub use pageout_mm::page_alloc::info::{PagesetInfo, ZoneInfo};
pub use pageout_mm::page_alloc::request::MigrateType;
pub use pageout_mm::promotion::WatchedReads;
pub use pageout_mm::stat::Stat;
pub use pageout_mm::swap::contents::{Compressibility, Contents, Lengths, PageContents};
pub use pageout_mm::swap::zspool::ObjectPlace;
pub use pageout_mm::tiers::{ADISTANCE_DAX_KMEM, ADISTANCE_DRAM, MemoryTier, MemoryTiers, adistance};
pub use pageout_mm::zswap::ZswapPool;

pub use access::builder::EngineBuilder;
pub use access::engine::Engine;
pub use access::figures::{Figures, GuestFigures, MappedFolio};
pub use access::page_map::{FolioFigures, ListName, ListPlace, PagePlace};
pub use access::proc::{BlockEffort, KernelBlock};
pub use balance::ScanBalance;
pub use damon::{KdamondFigures, KdamondSpec, SchemeFigures, WatchedRegion, WatchedWindow};
pub use kernfs::{
    CGROUP_FILES, CgroupFile, DamonFile, Errno, FileError, Holds, MACHINE_FILES, MachineFile, NODE_FILES,
    NodeFile, ZRAM_FILES, ZramFile, damon_files, kernel_bool,
};
pub use kthread::ThreadInfo;
pub use lru::batch::{Batch, Rotations, Unrotated};
pub use lru::{
    Arrival, Deactivation, GenerationInfo, GuestFault, PlaceRule, StartFolio, StartGenerations, StartList,
    StartLruvec,
};
pub use machine::accessed_bits::AccessedBits;
pub use machine::gate::FrameGate;
pub use machine::op::{Compressed, FullPlug, Op};
pub use machine::queue::OpQueue;
pub use machine::step::{
    Access, AccessError, DelayReason, IoWait, Memstall, OomReport, Served, Step, Touched, Unrelieved, Wait,
};
pub use machine::work::{Work, WorkFor};
pub use migrate::MigrateStep;
pub use mthp::MthpStat;
pub use oom::{Badness, OomCause, OomKill};
pub use page_cache::PageCacheEvent;
/// Attributes and schemes of kdamonds, as a host sets them.
pub use pageout_damon as damos;
pub use pghot::Source as HotSource;
pub use reclaim::{KswapdActivity, PageAdvice, Pageouts, ThrottleReason};
pub use stat::{StaleDecision, StaleDecisions, StaleNumber, Turned};
pub use story::{
    Because, Contig, FilePage, Filled, FoundBy, GfpFlags, Heat, InodeMark, InodeState, Kept, ListedInode,
    ListsEvent, Locality, MigrateReason, MigrateRefusal, PageEvent, PageName, PageState, RefaultRule,
    Shrinker, Stamp, StoryEvent, StoryFilter, Told, TracedInode, TracedPause, TracedRegion, TracedWb,
    TracedWork, Tracepoint, TypeChoice, Verdict, Whereabouts, WritebackTracepoint,
};
pub use writeback::{BdiLimits, Unkept, WritebackReason};
