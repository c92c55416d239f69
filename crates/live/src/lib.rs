//! A page cache that you link: one budget for the process, the reclaim policies of Linux, direct I/O, and no runtime.
//!
//! ```no_run
//! use pageout::{Limits, Memory, Open};
//!
//! let memory = Memory::builder().budget(256 << 20).build()?;
//! let tenant = memory.group("tenant-7", Limits { max: Some(64 << 20), ..Limits::NONE })?;
//! let file = memory.open("segment.bin", Open::read().random().group(&tenant))?;
//!
//! let mut buf = [0; 512];
//! file.read_at(&mut buf, 8192)?; // all of it, or an error
//! let page = file.page(17)?; // in place, and held until it is dropped
//! assert_eq!(page.len(), 4096);
//! println!("{}", tenant.read("memory.stat")?);
//! # Ok::<(), pageout::Error>(())
//! ```
//! Memory of the process itself can be larger than the budget, too: a [`Region`] is anonymous memory that the same policy evicts to a swap file.
//!
//! ```no_run
//! # use pageout::{Memory, RegionOptions};
//! let memory = Memory::builder().budget(256 << 20).swap_file("/var/tmp", 4 << 30).build()?;
//! let region = memory.region(1 << 30, RegionOptions::new())?; // reads as zeroes, and uses no memory yet
//! region.write_at(b"spilled", 512 << 20)?;
//! let mut page = region.page_mut(17)?; // in place, and held until it is dropped
//! page[..5].copy_from_slice(b"bytes");
//! # Ok::<(), pageout::Error>(())
//! ```
//! The simulator's engine decides which pages stay in memory and when dirty pages are written. This crate acts: it reads, writes, copies, and waits.
//! A page is 4 KiB; a read across several pages is several pages in one request. No other process may write a file while it is open here.
#![allow(clippy::disallowed_methods, reason = "a machine has a clock, threads and files")]
#![deny(clippy::undocumented_unsafe_blocks)]

mod memory; // the cache, and its groups
mod builder; // how it is built
mod file; // reading through it
mod reader; // reading for one thread
mod pending; // reads that are under way
mod write; // writing through it
mod batch; // several writes
mod later; // syncs and writes that are awaited
mod works; // threads for calls that wait
mod region; // anonymous memory
mod map; // anonymous memory by plain pointers
mod paged; // accesses to pages without the engine
mod guard; // a page that is read or written in place
mod owned; // guards without a borrow
mod cursor; // std::io's traits
mod node; // of which memory a cache is made
mod error; // what can go wrong, and what to do
mod stats; // what it counts
mod prometheus; // figures as text

mod budget; // how many frames a budget allows
mod cgroup; // the memory limit of the process
mod machine; // the engine under its lock, and who waits for what
mod local; // what a thread keeps
mod number; // numbers of threads
mod counts; // hits by handle
mod ring; // hits that the engine has not heard of
mod atomic; // what gates and rings are made of
mod sync; // what threads meet at
mod gate; // how readers and the engine keep clear of each other
mod holds; // what threads say they look at
mod storage; // a file on its device
mod swap; // the swap file of regions
mod zswap; // pages compressed in memory
mod guards; // who holds which page, and waits that can't end
mod length; // how long a file is, and how it gets shorter
mod stat; // what the file system says of a file
mod queue; // what the system says of a device's queue
mod arena; // memory of all frames
mod mmap; // memory that the process maps
mod tables; // memory of the engine's tables
mod copy; // a copy out of memory that others may write
mod cpu_time; // how long a thread has run
mod numa; // memory on a node of the machine
mod resident; // what the system caches of a file
#[cfg(feature = "rivals")]
mod mapped; // a file as the system maps it, to compare with
#[cfg(feature = "rivals")]
mod batches; // reads by io_uring alone, to compare with

/// Its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use bytemuck; // plain data, for values in regions ([`Region::typed`])
pub use pageout_engine as engine; // what errors and configurations are made of

#[cfg(feature = "rivals")]
pub use batches::Batches;
pub use builder::Builder;
pub use cursor::Cursor;
pub use error::Error;
pub use file::{Advice, File, Open, ReadAt, WriteAt};
pub use guard::{PageMut, PageRef};
pub use later::{PendingSync, PendingWrites};
pub use machine::Backend;
#[doc(hidden)]
pub use map::MapEvent;
pub use map::{MapOptions, MappedRegion};
#[cfg(feature = "rivals")]
pub use mapped::Mapped;
pub use memory::{Group, Limits, Memory};
pub use node::{Delay, Node};
pub use owned::{OwnedPageMut, OwnedPageRef};
pub use pending::Pending;
pub use reader::{FileReader, RegionReader};
pub use region::{Region, RegionAdvice, RegionOptions, Typed, TypedMut, TypedRef};
pub use resident::resident;
pub use stats::{FileStats, GroupStats, LockHeld, Stats};
pub use storage::EmulatedDisk;
pub use zswap::Zswap;
#[doc(hidden)]
pub use zswap::ZswapAnswer;
