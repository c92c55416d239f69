//! [`Memory`]: the complete cache, its builder, and its groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pageout_engine::{
    ADISTANCE_DAX_KMEM, Bdi, Config, ConfigError, Engine, FailedWrite, Layout, MemoryType, NodeId, PAGE_SIZE,
    PageName, Policy, Served, Stat, Step, StoryEvent, StoryFilter, SwapKind, SwapSpec, Switch, TaskId,
    kernel_bool,
};

use crate::budget::{Budget, FRAMES_MIN, Plan, Records};
use crate::cgroup::Share;
use crate::error::Error;
use crate::file::{File, Open};
use crate::later::Later;
use crate::machine::{Backend, Doors, FileLimits, LiveMachine, Zpool};
use crate::node::{Node, Nodes, Place};
use crate::region::{Region, RegionOptions};
use crate::ring::Read;
use crate::stats::{GroupStats, Stats};
use crate::storage::{self, Storage};
use crate::swap::SwapFile;
use crate::sync::thread::JoinHandle;
use crate::sync::{Mutex, thread};
use crate::zswap::{Zswap, ZswapAnswer};

/// More threads do not read faster, and a wrong number could use all that the system has.
const IO_THREADS_MAX: usize = 1024;
/// Bytes per compressed page in addition to the pool: its record, and its part of the pool's tables.
const ZSWAP_PAGE_BYTES: u64 = 96;
/// Accessing a page takes less time.
const GUARD_WAIT: Duration = Duration::from_secs(10);
/// Part of a budget for each closed file: its name, its tables, and the data about its pages.
const IDLE_FILE_SHARE: u64 = 64 << 10;
/// Memory that one scan for hint faults marks, under the lock: some 100 microseconds.
const SCAN_MIB: u32 = 16;
/// Pages that one step moves between nodes, under the lock: some 20 microseconds.
const STEP_MOVES: u64 = 32;

/// A page cache with a budget. Clones share it.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<Shared>);

/// Builds a [`Memory`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    budget: u64,
    budget_max: Option<u64>,
    /// The share of a cgroup's limit that is the budget.
    cgroup_share: Option<f64>,
    files: Option<u64>,
    policy: String,
    rules: Vec<(String, String)>,
    sysctls: Vec<(String, String)>,
    nodes: Vec<Node>,
    backend: Backend,
    io_threads: usize,
    holds_by_cpu: bool,
    guard_wait: Duration,
    read_ahead: Option<u64>,
    swap: Option<SwapFile>,
    zswap: Option<Zswap>,
    records_zswap: bool,
    pub(crate) handles_max: u32,
    #[cfg(test)]
    swap_faults: Option<Arc<dyn storage::failing::Faults>>,
    /// The folder that has the system's files.
    #[cfg(test)]
    root: Option<std::path::PathBuf>,
}

/// Limits and protection of a group, in bytes; `None`: the kernel's default, which is unlimited or unprotected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// `memory.max`: the hard limit of its memory. With the classic LRU, reads of a group of 64 KiB fail with [`Error::OutOfMemory`]: up to 15 pages
    /// wait in a batch of the CPU, and reclaim does not find them there.
    pub max: Option<u64>,
    /// `memory.high`: above it, the group reclaims and is throttled.
    pub high: Option<u64>,
    /// `memory.low`: below it, other groups are reclaimed first.
    pub low: Option<u64>,
    /// `memory.min`: below it, the group is never reclaimed.
    pub min: Option<u64>,
}

impl Limits {
    /// Unlimited and unprotected.
    pub const NONE: Limits = Limits { max: None, high: None, low: None, min: None };
}

/// A group: a tenant, whose pages are counted, limited and protected together.
#[derive(Clone)]
pub struct Group {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: crate::machine::Place,
    name: String,
}

/// The machine and its threads.
pub(crate) struct Shared {
    pub(crate) machine: Arc<LiveMachine>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Syncs and writes that no caller waits for.
    pub(crate) later: Later,
    /// Frames of slow memory, and their location.
    slow: Option<(u64, Place)>,
    /// Bytes of the swap file, if there is one.
    swap_bytes: Option<u64>,
    zswap: Option<Zswap>,
    policy: String,
    config: Config,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            budget: 256 << 20,
            budget_max: None,
            cgroup_share: None,
            files: None,
            policy: "mglru@6.12".to_owned(),
            rules: Vec::new(),
            sysctls: Vec::new(),
            nodes: Vec::new(),
            backend: Backend::Any,
            io_threads: 8,
            holds_by_cpu: false,
            guard_wait: GUARD_WAIT,
            read_ahead: None,
            swap: None,
            zswap: None,
            records_zswap: false,
            handles_max: Read::HANDLES_MAX,
            #[cfg(test)]
            swap_faults: None,
            #[cfg(test)]
            root: None,
        }
    }
}

impl Builder {
    /// Sets the memory by which the process grows at most, in bytes: frames, data about pages, and threads. Default: 256 MiB.
    pub fn budget(mut self, bytes: u64) -> Builder {
        self.budget = bytes;
        self
    }

    /// Sets the largest budget that [`Memory::set_budget`] can set later. Addresses for it are reserved, and the data about its frames is part of the budget
    /// from the start: 72 bytes per 4 KiB, so 18 MiB per GiB. Default: the budget.
    pub fn budget_max(mut self, bytes: u64) -> Builder {
        self.budget_max = Some(bytes);
        self
    }

    /// Makes the budget this share (0 to 1) of the memory limit of the process's cgroup, and lets it follow the limit. The limit is `memory.max`, or
    /// `memory.limit_in_bytes` of version 1, and the least one of the group and all groups above it. Without a limit, the machine's memory counts.
    /// [`Builder::budget`] is ignored.
    ///
    /// The limit is read when the cache is built, and then by a thread once a second. The budget grows at most to [`Builder::budget_max`]. It is not smaller
    /// than the minimum. If guards or other contents prevent a smaller budget, the thread tries again each second; [`Memory::budget`] returns the current one.
    ///
    /// ```no_run
    /// let memory = pageout::Memory::builder().budget_of_cgroup(0.5).budget_max(8 << 30).build()?;
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn budget_of_cgroup(mut self, share: f64) -> Builder {
        self.cgroup_share = Some(share);
        self
    }

    /// Sets the folder that has the system's files.
    #[cfg(test)]
    pub(crate) fn root(mut self, root: &Path) -> Builder {
        self.root = Some(root.to_owned());
        self
    }

    /// The limit that the budget follows, if it follows one.
    fn follows(&self, memory: u64) -> Result<Option<Share>, Error> {
        #[cfg(not(test))]
        let root = Path::new("/");
        #[cfg(test)]
        let root = self.root.as_deref().unwrap_or(Path::new("/"));
        self.cgroup_share.map(|share| Share::new(share, root, memory)).transpose()
    }

    /// Sets the total size of files and regions that can be open at the same time, in bytes. 9 bytes of the budget are reserved for each 4 KiB of
    /// them. Default: 16 times the budget.
    pub fn files(mut self, bytes: u64) -> Builder {
        self.files = Some(bytes);
        self
    }

    /// Sets the kernel whose reclaim decides, by the name of a profile (`pageout keys` lists them): `mglru@6.12`, `classic@6.12`, `lru` ... Default:
    /// `mglru@6.12`; docs/results/live-speed.md compares loads.
    pub fn policy(mut self, profile: &str) -> Builder {
        profile.clone_into(&mut self.policy);
        self
    }

    /// Overrides one rule of the profile, by its name and value in `pageout keys`: `reclaim.file_writeback`, `any`. The exception is
    /// `writeback.failed_write`: pages whose write failed always stay dirty, as syncs rely on it.
    pub fn rule(mut self, name: &str, value: impl ToString) -> Builder {
        self.rules.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds slow memory ([`Node::slow`]), or binds the fast memory ([`Node::bound_to`]). Default: fast memory alone, on any node that the system
    /// chooses.
    ///
    /// With slow memory, pages that would be evicted from fast memory are demoted instead. Pages of files that are read there repeatedly are promoted, and so
    /// are pages of regions that are accessed soon after a scan has marked them (hint faults).
    /// `/sys/kernel/mm/numa/demotion_enabled`, `/sys/kernel/mm/numa/pagecache_promotion_enabled` and `kernel.numa_balancing` (2) show this. They can
    /// be written ([`Memory::write`]).
    ///
    /// ```no_run
    /// use pageout::{Delay, Memory, Node};
    /// use std::time::Duration;
    ///
    /// let cxl = Memory::builder().budget(3 << 30).node(Node::bound_to(0)).node(Node::slow(2 << 30).on_numa_node(1)).build()?;
    /// let delay = Delay::per_page(Duration::from_nanos(60));
    /// let tried = Memory::builder().budget(3 << 30).node(Node::slow(2 << 30).emulated(delay)).build()?;
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn node(mut self, node: Node) -> Builder {
        self.nodes.push(node);
        self
    }

    /// Sets a sysctl, such as `vm.swappiness`, or a parameter of zswap, such as `zswap.max_pool_percent`, when the cache is built.
    pub fn sysctl(mut self, name: &str, value: impl ToString) -> Builder {
        self.sysctls.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets the backend of reads that no single thread waits for: readahead, batches, and pending reads. Default: io_uring if the system permits it,
    /// otherwise threads; [`Memory::describe`] reports which one, and why.
    pub fn backend(mut self, backend: Backend) -> Builder {
        self.backend = backend;
        self
    }

    /// Sets the number of threads that read pages no thread waits for, if io_uring does not: readahead, and the rest of a batch. With 0, the thread
    /// that causes such a read makes it, also with io_uring, so that the actions of one thread always have the same outcome. At most 1024. Default:
    /// 8, which keep 8 requests at a device.
    pub fn io_threads(mut self, threads: usize) -> Builder {
        self.io_threads = threads;
        self
    }

    /// Makes [`Stats::lock_held`] count the CPU time of the lock's holder, for each hold. By default it counts the wall-clock time of one hold in eight, and a
    /// hold continues while its thread does not run. CPU time needs two more system calls per hold.
    pub fn lock_held_by_cpu(mut self, by_cpu: bool) -> Builder {
        self.holds_by_cpu = by_cpu;
        self
    }

    /// Sets the maximum time that a call waits for a guard ([`crate::PageRef`], [`crate::PageMut`]) of another thread, before it returns
    /// [`Error::Pinned`]. A leaked guard therefore blocks no thread forever. A call that waits for a guard of its own thread, or for a thread that
    /// waits for it, gets the error after a tenth of a second. Default: 10 s, as guards are meant for short accesses.
    pub fn guard_wait(mut self, longest: Duration) -> Builder {
        self.guard_wait = longest;
        self
    }

    /// Sets the readahead window, in bytes. 0: no readahead. If a group has a small `memory.max`, choose at most an eighth of that: otherwise
    /// readahead evicts its own pages. Default: the system's readahead on the file's device (`queue/read_ahead_kb` in /sys/block), and at most a 64th
    /// of the budget or 128 KiB, whichever is more.
    pub fn read_ahead(mut self, bytes: u64) -> Builder {
        self.read_ahead = Some(bytes);
        self
    }

    /// Sets the swap file, which holds pages of regions ([`Memory::region`]) that are evicted. It is a file without a name in this folder, has at most
    /// this many bytes, and takes space on the device as it is used. 32 bytes of the budget are reserved for each 4 KiB of it. Default: no swap file,
    /// so regions stay in memory.
    ///
    /// Reads and writes bypass the system's page cache. `vm.swappiness` and `memory.swap.max` are as in the kernel.
    pub fn swap_file(mut self, folder: impl AsRef<Path>, bytes: u64) -> Builder {
        let is_buffered = self.swap.as_ref().is_some_and(|swap| swap.is_buffered);
        self.swap = Some(SwapFile { folder: folder.as_ref().to_owned(), bytes, is_buffered });
        self
    }

    /// Reads and writes the swap file through the system's page cache, for file systems without direct I/O. The budget does not include what the system
    /// caches of it. Call it after [`Builder::swap_file`]. Default: no.
    pub fn swap_buffered(mut self, is_buffered: bool) -> Builder {
        if let Some(swap) = &mut self.swap {
            swap.is_buffered = is_buffered;
        }
        self
    }

    /// Compresses pages of regions into memory when they are evicted, in front of the swap file, which is required ([`Builder::swap_file`]). The compressed
    /// pages are in frames of the budget, and are charged to the groups of their regions. Default: no compression. It pays if pages shrink to less than
    /// half, or if the device is slow.
    ///
    /// The settings have the kernel's names. `zswap.max_pool_percent` (20), `zswap.accept_threshold_percent` (90), `zswap.shrinker_enabled` (1, where the
    /// kernel has 0) and `zswap.enabled` (1) are set by [`Builder::sysctl`], or at run time in `/sys/module/zswap/parameters` by [`Memory::write`]. A group has
    /// `memory.zswap.max`, `memory.zswap.writeback` and `memory.zswap.current`. The pool holds three compressed pages per two frames at most. 4
    /// bytes of the budget are reserved for each slot, and 96 bytes for each page that the pool can hold.
    ///
    /// ```no_run
    /// use pageout::{Memory, Zswap};
    ///
    /// let builder = Memory::builder().budget(256 << 20).swap_file("/var/tmp", 4 << 30);
    /// let memory = builder.zswap(Zswap::lz4()).sysctl("zswap.max_pool_percent", 30).build()?;
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn zswap(mut self, zswap: Zswap) -> Builder {
        self.zswap = Some(zswap);
        self
    }

    /// Records the answers to the engine's questions about compressed pages ([`Memory::zswap_answers`]).
    #[doc(hidden)]
    pub fn record_zswap_answers(mut self) -> Builder {
        self.records_zswap = true;
        self
    }

    /// Sets the faults of the swap file's device.
    #[cfg(test)]
    pub(crate) fn swap_faults(mut self, faults: Arc<dyn storage::failing::Faults>) -> Builder {
        self.swap_faults = Some(faults);
        self
    }

    /// Creates the swap file, if one is set.
    fn swap_storage(&self) -> Result<Option<Arc<dyn Storage>>, Error> {
        let Some(swap) = &self.swap else { return Ok(None) };
        let file = Arc::new(swap.open()?);
        #[cfg(test)]
        if let Some(faults) = &self.swap_faults {
            let real = storage::Real::new(file);
            return Ok(Some(Arc::new(storage::failing::Failing::new(real, Arc::clone(faults)))));
        }
        storage::of(file, &swap.folder.join("pageout-swap")).map(Some)
    }

    /// What pages, files of this many bytes and this many slots need of a budget in addition to frames.
    fn records(&self, files: u64, slots: u64) -> Records {
        let of_page = self.zswap.map_or(0, |_| zswap_pages(2) * ZSWAP_PAGE_BYTES / 2);
        Records { files, slots, zswap: self.zswap.map(Zswap::bytes), of_page }
    }

    /// Builds the cache.
    ///
    /// # Errors
    /// - [`Error::BudgetTooSmall`].
    /// - [`Error::Io`] and [`Error::DirectRefused`] if the swap file can't be created.
    /// - [`Error::Zswap`] if there is no swap file for [`Builder::zswap`].
    /// - [`Error::UringRefused`] if io_uring is required.
    /// - [`Error::Nodes`] and [`Error::NoSuchNode`] for unavailable memory.
    /// - [`Error::Config`] and [`Error::File`] for settings that the engine does not know.
    /// - [`Error::Io`] if the system gives no memory or no threads.
    pub fn build(self) -> Result<Memory, Error> {
        if self.io_threads > IO_THREADS_MAX {
            let (value, max) = (self.io_threads as u64, IO_THREADS_MAX as u64);
            return Err(ConfigError::OutOfRange { what: "threads that read", value, min: 0, max }.into());
        }
        if let Some(zswap) = self.zswap {
            zswap.check()?;
            if self.swap.is_none() {
                return Err(Error::Zswap(
                    "zswap compresses what goes to a swap file; help: call `swap_file`",
                ));
            }
        }
        let memory = machine_bytes();
        let follows = self.follows(memory)?;
        let budget = follows.as_ref().map_or(self.budget, Share::bytes);
        let most = self.budget_max.map_or(budget, |most| most.max(budget));
        if most > memory {
            return Err(Error::BudgetTooLarge { budget: most, memory });
        }
        let nodes = Nodes::of(&self.nodes)?;
        let files_max = self.files.unwrap_or(budget.saturating_mul(16));
        let slots = self.swap.as_ref().map_or(0, |swap| swap.bytes / PAGE_SIZE);
        let slow = nodes.slow.map_or(0, |(bytes, _)| bytes / PAGE_SIZE);
        if nodes.slow.is_some() && slow < FRAMES_MIN {
            return Err(Error::Nodes("the minimum of slow memory is 4 MiB"));
        }
        let plan = Plan::new(most, &self.records(files_max, slots), slow)?;
        plan.frames(budget)?;
        let frames = plan.frames_max;
        let mut policy = Policy::by_name(&self.policy).ok_or_else(|| {
            ConfigError::Unknown(format!(
                "policy `{}` (`pageout keys kernel.profile` lists the policies)",
                self.policy
            ))
        })?;
        for (name, value) in &self.rules {
            let rule = Switch::by_name(name).ok_or_else(|| ConfigError::Unknown(format!("rule {name}")))?;
            if !rule.set(&mut policy, value) {
                let refused =
                    format!("value {value} of the rule {name} (`pageout keys {name}` lists the values)");
                return Err(ConfigError::Unknown(refused).into());
            }
        }
        // The host, and not a kernel, decides whether to drop pages whose write failed.
        policy.machine.writeback.failed_write = FailedWrite::Dirty;
        let config = match slow {
            0 => Config { node_pages: vec![frames], policy, ..config() },
            _ => Config { node_pages: vec![frames - slow, slow], policy, ..config_of_tiers() },
        };
        let config = match self.zswap {
            Some(_) => Config {
                zswap_enabled: true,
                // A group is charged for its part of the pool, which would otherwise fill its limit.
                zswap_shrinker_enabled: true,
                zero_map: true,
                kmem_of_zswap: true,
                zswap_pages_max: zswap_pages(frames),
                ..config
            },
            None => config,
        };
        let mut builder = Engine::builder(config.clone())?;
        let arena = Arc::new(nodes.arena(&builder.frames())?);
        // All files use it, whatever their devices: one thread writes them back.
        builder.bdi_register("0")?;
        builder.set_frame_gate(Box::new(Doors(Arc::clone(&arena))));
        if self.swap.is_some() {
            builder.swap_on(SwapSpec { pages: slots, kind: SwapKind::Device })?;
        }
        let finds_words = config.policy.machine.zswap.same_filled;
        let zpool =
            self.zswap.map(|zswap| Zpool::new(zswap, &arena, finds_words, self.records_zswap)).transpose()?;
        zpool.iter().for_each(|zpool| builder.set_page_contents(zpool.answers()));
        let io = (self.backend, self.io_threads);
        let pages = |bytes: u64| (bytes / PAGE_SIZE).try_into().unwrap_or(u32::MAX);
        let limits = FileLimits {
            bytes: files_max,
            handles: self.handles_max,
            idle: (budget / IDLE_FILE_SHARE).min(descriptors_max() / 2) as usize,
            ra_pages: self.read_ahead.map(pages),
            // Two windows are in memory at a time, and several files may be read.
            ra_pages_max: pages(budget / 64).max(Bdi::default().ra_pages),
        };
        let machine = LiveMachine::new(
            builder.build(),
            arena,
            io,
            limits,
            (Budget::new(plan, follows), self.guard_wait),
            self.holds_by_cpu,
            (self.swap_storage()?, zpool),
        )?;
        let shared = Shared {
            machine: Arc::new(machine),
            threads: Mutex::default(),
            later: Later::default(),
            slow: nodes.slow.map(|(_, place)| (slow, place)),
            swap_bytes: self.swap.as_ref().map(|swap| swap.bytes),
            zswap: self.zswap,
            policy: self.policy.clone(),
            config,
        };
        let memory = Memory(Arc::new(shared));
        for (name, value) in &self.sysctls {
            memory.write(&path_of_sysctl(name), value)?;
        }
        if budget < most {
            memory.set_budget(budget)?;
        }
        memory.0.start_threads()?;
        Ok(memory)
    }
}

/// Compressed pages that a pool can hold at most in a cache with this many frames: as many as a fifth of memory has if pages shrink to 13 %.
fn zswap_pages(frames: u64) -> u64 {
    frames + frames / 2
}

/// The file of a sysctl, or of a parameter of zswap.
fn path_of_sysctl(name: &str) -> String {
    match name.strip_prefix("zswap.") {
        Some(parameter) => format!("/sys/module/zswap/parameters/{parameter}"),
        None => format!("/proc/sys/{}", name.replace('.', "/")),
    }
}

/// The engine's configuration for a process. It reserves nothing for large blocks, for avoided locking, or for stacks, which threads have elsewhere.
/// Statistics are always current.
fn config() -> Config {
    Config {
        cpus: 1,
        kmem: false,
        stat_flush: pageout_engine::StatFlush::Live,
        oom_kill: false,
        pays_on_request: true,
        kernel_stacks: false,
        compaction_proactiveness: 0,
        watermark_boost_factor: 0,
        page_cluster: 0,
        // The engine does not know the contents of pages.
        zero_map: false,
        step_busy_pages: 256,
        ..Config::default()
    }
}

/// The same with a second node, of slow memory: pages are demoted to it and promoted from it, few at a time.
fn config_of_tiers() -> Config {
    let memory_types = vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)];
    Config {
        layout: Layout { memory_types, ..Layout::default() },
        numa_balancing: 2,
        demotion_enabled: true,
        pagecache_promotion_enabled: true,
        step_moves: STEP_MOVES,
        scan_size_mb: SCAN_MIB,
        ..config()
    }
}

/// Bytes of memory of the machine.
fn machine_bytes() -> u64 {
    // SAFETY: the call takes a number and returns one.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).map_or(u64::MAX, |pages| pages.saturating_mul(PAGE_SIZE))
}

/// Maximum number of descriptors of the process.
fn descriptors_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the one place that it is given.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if result == 0 { limit.rlim_cur } else { 1024 }
}

impl Memory {
    /// Returns a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Changes the budget, and returns when the process has the new one. With a smaller budget, pages at the end of the arena move or are evicted, in steps between
    /// which other threads continue, and the system gets the memory. With a larger one, up to [`Builder::budget_max`], frames take memory when they are first
    /// used. The limit of pages that guards may hold is a quarter of the frames, and [`Builder::files`] is unchanged. Slow memory is unchanged, too.
    ///
    /// # Errors
    /// The budget is unchanged after an error. Pages that were evicted stay evicted.
    ///
    /// - [`Error::Pinned`] if guards hold more than a quarter of the frames that the budget allows.
    /// - [`Error::BudgetTooSmall`] if it is below the minimum, or if dirty pages that can't be written need more.
    /// - [`Error::BudgetBeyondArena`] if it is above [`Builder::budget_max`].
    /// - [`Error::NoSwap`] if regions are larger, and there is no swap file.
    /// - [`Error::Io`] if the system does not take memory back, as of a process whose memory is locked.
    ///
    /// ```no_run
    /// let memory = pageout::Memory::builder().budget(1 << 30).build()?;
    /// memory.set_budget(256 << 20)?; // another part of the program needs the rest
    /// memory.set_budget(1 << 30)?;
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn set_budget(&self, bytes: u64) -> Result<(), Error> {
        self.0.guarded(|machine| machine.set_budget(bytes))
    }

    /// Returns the current budget in bytes.
    pub fn budget(&self) -> u64 {
        self.0.machine.budget.bytes()
    }

    /// Returns the address and the length in bytes of the memory that holds all pages. Both are fixed for the life of the cache, and each guard
    /// ([`crate::PageRef`], [`crate::PageMut`]) points into it. So a program can register it once with a driver, and transfer pages from or to devices while
    /// guards hold them.
    ///
    /// A driver that registers memory usually pins it: then all of the arena takes memory. A cache whose budget changes must not be registered: the
    /// driver would keep the memory that the system took back. With slow memory, there may be addresses without memory between the two nodes.
    pub fn arena(&self) -> (*const u8, usize) {
        self.0.machine.arena.place()
    }

    /// Opens a file, or another handle of one that is open.
    ///
    /// # Errors
    /// [`Error::DirectRefused`], [`Error::NoRegularFile`], [`Error::Io`]: the file can't be opened this way. [`Error::TooManyFiles`],
    /// [`Error::TooManyHandles`]: too much is open. [`Error::Locked`]: another cache has it open for writing, after a second of retries.
    /// [`Error::ChangedOutside`]: another program has written it while this cache has dirty pages of it. A change of its times, or of an attribute
    /// and back, looks the same. [`Error::Pinned`]: it must be read again, and a guard holds one of its pages. [`Error::Config`]: the group belongs
    /// to another cache.
    pub fn open(&self, path: impl AsRef<Path>, how: Open) -> Result<File, Error> {
        self.0.guarded(|_| File::open(&self.0, path.as_ref(), &how))
    }

    /// Creates a region: anonymous memory of this many bytes, which is reserved, not resident, and reads as zeroes until it is written. It may be larger
    /// than the budget if there is a swap file ([`Builder::swap_file`]).
    ///
    /// # Errors
    /// - [`Error::NoSwap`] if all regions together are larger than memory and there is no swap file.
    /// - [`Error::TooManyFiles`] if files and regions would exceed [`Builder::files`].
    /// - [`Error::TooLong`].
    /// - [`Error::TooManyHandles`] if there are too many regions.
    /// - [`Error::Config`] if the group is another cache's.
    ///
    /// ```no_run
    /// use pageout::{Memory, RegionOptions};
    ///
    /// let memory = Memory::builder().budget(256 << 20).swap_file("/var/tmp", 4 << 30).build()?;
    /// let region = memory.region(2 << 30, RegionOptions::new())?;
    /// region.write_at(b"spilled", 1 << 30)?;
    /// assert_eq!(&region.page((1 << 30) / 4096)?[..7], b"spilled");
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn region(&self, bytes: u64, options: RegionOptions) -> Result<Region, Error> {
        Region::make(&self.0, bytes, &options)
    }

    /// Creates a group. It lasts until it is removed ([`Group::remove`]), or as long as the cache. Groups are not part of the budget: each takes some 5 KB,
    /// and so does a removed one as long as pages or slots are charged to it. At most 65,534 groups exist at the same time.
    ///
    /// # Errors
    /// [`Error::Config`] if a group of this name exists, or the name leads elsewhere or looks like a file of a group.
    pub fn group(&self, name: &str, limits: Limits) -> Result<Group, Error> {
        let place = self.0.guarded(|machine| machine.make_group(name))?;
        let group = Group { shared: Arc::clone(&self.0), place, name: name.to_owned() };
        let Limits { max, high, low, min } = limits;
        for (file, bytes) in
            [("memory.max", max), ("memory.high", high), ("memory.low", low), ("memory.min", min)]
        {
            if let Some(bytes) = bytes
                && let Err(error) = group.write(file, &bytes.to_string())
            {
                group.remove()?;
                return Err(error);
            }
        }
        Ok(group)
    }

    /// Returns the text of a kernel file, by its path: `/proc/vmstat`, `/proc/meminfo`, `/sys/kernel/debug/lru_gen` ...
    ///
    /// # Errors
    /// [`Error::File`] if it does not exist, or can't be read.
    pub fn read(&self, path: &str) -> Result<String, Error> {
        self.0.guarded(|machine| {
            let mut locked = machine.drain(machine.lock()?)?;
            Ok(locked.engine.read_file(path)?)
        })
    }

    /// Writes a kernel file, like a shell's `echo`, and waits until this is done.
    ///
    /// # Errors
    /// [`Error::File`] if it does not exist, can't be written, or the value is invalid. [`Error::Zswap`] if it turns zswap on in a cache without a
    /// compressor.
    pub fn write(&self, path: &str, value: &str) -> Result<(), Error> {
        let turns_zswap_on =
            path == path_of_sysctl("zswap.enabled") && kernel_bool(value.trim()) == Some(true);
        if turns_zswap_on && self.0.zswap.is_none() {
            return Err(Error::Zswap("there is no compressor; help: call `zswap` before the cache is built"));
        }
        self.0.with_task(|engine, task| Ok(engine.write_file(task, path, value)?)).and_then(|served| {
            match served {
                Served::Refused(error) => Err(Error::File(*error)),
                _ => Ok(()),
            }
        })
    }

    /// Returns figures in addition to the kernel's own.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn stats(&self) -> Result<Stats, Error> {
        let machine = &self.0.machine;
        let locked = machine.lock()?;
        let figures = locked.engine.figures();
        let vmstat = |stat| figures.vmstat(stat) as u64;
        let (slow_frames, slow_resident) = match self.0.slow {
            Some((frames, _)) => {
                let slow = |stat| figures.node_stat(NodeId(1), stat);
                // A page of a region may be in the swap cache and mapped.
                let files = slow(Stat::NrFilePages) - slow(Stat::NrSwapcached);
                (frames, (files + slow(Stat::NrAnonPages)) as u64)
            }
            None => (0, 0),
        };
        const DEMOTIONS: [Stat; 4] =
            [Stat::PgdemoteKswapd, Stat::PgdemoteDirect, Stat::PgdemoteKhugepaged, Stat::PgdemoteProactive];
        let hits = locked.hits();
        let zpool = machine.zpool.as_ref().map(Zpool::counts).unwrap_or_default();
        Ok(Stats {
            hits: hits.all,
            slow_hits: hits.slow,
            misses: locked.transfers.misses,
            device_reads: locked.transfers.device_reads,
            device_bytes: locked.transfers.device_bytes,
            device_writes: locked.transfers.device_writes,
            device_bytes_written: locked.transfers.device_bytes_written,
            dirty: vmstat(Stat::NrDirty),
            writeback: vmstat(Stat::NrWriteback),
            refaults: vmstat(Stat::WorkingsetRefaultFile),
            resident: vmstat(Stat::NrFilePages) - vmstat(Stat::NrSwapcached),
            anon: vmstat(Stat::NrAnonPages),
            swapped: figures.swap_used(),
            refaults_anon: vmstat(Stat::WorkingsetRefaultAnon),
            zswapped: figures.zswap_pool().stored,
            zswap_frames: figures.zswap_pool().pages,
            zswap_stores: zpool.stores,
            zswap_compressions: zpool.compressions,
            zswap_compressions_locked: zpool.under_lock,
            frames: self.0.frames(),
            slow_frames,
            slow_resident,
            promoted: vmstat(Stat::PgpromoteSuccess),
            demoted: DEMOTIONS.into_iter().map(vmstat).sum(),
            moves_failed: vmstat(Stat::PgmigrateFail),
            kept_by_pins: machine.arena.kept_by_pins(),
            pinned: locked.pinned(),
            lock_held: machine.held.read(locked.holds),
        })
    }

    /// Returns figures of the engine that have no kernel file. `look` must not panic: that poisons the cache.
    #[doc(hidden)]
    pub fn look_at_engine<T>(&self, look: impl FnOnce(&Engine) -> T) -> Result<T, Error> {
        self.0.guarded(|machine| Ok(look(&machine.lock()?.engine)))
    }

    /// Starts recording each decision on some pages of a file, with the numbers behind it, as `pageout explain` prints them for a simulated machine.
    /// Pages that were followed before are not followed any more.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn follow(&self, file: &File, pages: impl IntoIterator<Item = u64>) -> Result<(), Error> {
        let names = pages.into_iter().map(|page| PageName::File { file: file.0.id, page });
        self.0.machine.lock()?.engine.tell_story(StoryFilter::Pages(names.collect()));
        Ok(())
    }

    /// The same as [`Memory::follow`] for pages of a region.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn follow_region(&self, region: &Region, pages: impl IntoIterator<Item = u64>) -> Result<(), Error> {
        let mut locked = self.0.machine.lock()?;
        let Some(mm) = locked.mm_of_region(region.0.number) else { return Ok(()) };
        let names = pages.into_iter().map(|page| PageName::Anon { mm, page });
        locked.engine.tell_story(StoryFilter::Pages(names.collect()));
        Ok(())
    }

    /// Returns the recorded decisions since the last call. They are kept until then.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn take_story(&self) -> Result<Vec<StoryEvent>, Error> {
        let mut events = Vec::new();
        let machine = &self.0.machine;
        machine.drain(machine.lock()?)?.engine.take_story(&mut events);
        Ok(events)
    }

    /// Returns the configuration of its engine. A simulated machine with the same configuration makes the same decisions.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the backend of reads that no single thread waits for: [`Backend::Uring`] or [`Backend::Threads`].
    pub fn backend(&self) -> Backend {
        self.0.machine.backend()
    }

    /// The recorded answers to the engine's questions about compressed pages, in order.
    #[doc(hidden)]
    pub fn zswap_answers(&self) -> Vec<ZswapAnswer> {
        self.0.machine.zpool.as_ref().map(Zpool::given_answers).unwrap_or_default()
    }

    /// Describes the cache in one line: policy, frames, swap, and reading threads.
    pub fn describe(&self) -> String {
        let Shared { policy, slow, swap_bytes, zswap, .. } = &*self.0;
        let frames = self.0.frames();
        let follows = self.0.machine.budget.follows.as_ref();
        let follows = follows.map_or_else(String::new, |share| format!(", {}", share.describe()));
        let slow =
            slow.map_or_else(String::new, |(frames, place)| format!(", {frames} of them slow, {place}"));
        let readers = self.0.machine.describe_readers();
        let swap = swap_bytes.map_or_else(String::new, |bytes| format!(", {} MiB of swap", bytes >> 20));
        let zswap = zswap.map_or_else(String::new, |zswap| format!(" behind zswap by {zswap}"));
        format!("{policy}, {frames} frames of {PAGE_SIZE} bytes{slow}{swap}{zswap}{follows}; reads {readers}")
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({})", self.describe())
    }
}

impl Group {
    /// Returns the text of one of its kernel files: `memory.stat`, `memory.events` ...
    ///
    /// # Errors
    /// The same as [`Memory::read`].
    pub fn read(&self, file: &str) -> Result<String, Error> {
        Memory(Arc::clone(&self.shared)).read(&self.path(file))
    }

    /// Writes one of its kernel files: `memory.high`, `memory.reclaim` ...
    ///
    /// # Errors
    /// The same as [`Memory::write`].
    pub fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        Memory(Arc::clone(&self.shared)).write(&self.path(file), value)
    }

    /// Removes the group, as rmdir(2) removes a cgroup. Its name is free for another group. Pages that are charged to it stay in memory until they are
    /// evicted; with the rule `reclaim.offline` = `reparent` they are charged to the root group from now on.
    ///
    /// ```no_run
    /// # use pageout::{Limits, Memory};
    /// # let memory = Memory::builder().build()?;
    /// let query = memory.group("query-17", Limits { max: Some(64 << 20), ..Limits::NONE })?;
    /// // ... files and regions of the query, which are dropped when it ends
    /// query.remove()?;
    /// # Ok::<(), pageout::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with [`crate::engine::FileError::Busy`] if a handle of a file, or a region, is in the group, and with
    /// [`crate::engine::FileError::NoSuchFile`] if it was removed before.
    pub fn remove(&self) -> Result<(), Error> {
        self.shared.guarded(|machine| machine.remove_group(self.place, &self.name))
    }

    /// Returns what the group's handles and regions have counted, and what is charged to the group.
    ///
    /// # Errors
    /// [`Error::File`] if the group was removed; [`Error::Poisoned`].
    pub fn stats(&self) -> Result<GroupStats, Error> {
        self.shared.guarded(|machine| machine.group_stats(self.place, &self.name))
    }

    fn path(&self, file: &str) -> String {
        format!("/sys/fs/cgroup/{}/{file}", self.name)
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({})", self.name)
    }
}

impl Shared {
    /// Frames of memory, fast and slow.
    pub(crate) fn frames(&self) -> u64 {
        self.machine.budget.frames()
    }

    fn start_threads(&self) -> Result<(), Error> {
        /// Deep enough for a step of reclaim; only a small part is ever touched.
        const STACK_BYTES: usize = 512 << 10;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = |name: &str, run: fn(&LiveMachine)| {
            let machine = Arc::clone(&self.machine);
            let run = move || {
                if catch_unwind(AssertUnwindSafe(|| run(&machine))).is_err() {
                    machine.poison();
                }
            };
            let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(run);
            let thread = thread.map_err(|source| Error::Io {
                op: "starting a thread",
                path: name.into(),
                page: None,
                source,
            })?;
            threads.push(thread);
            Ok(())
        };
        start("pageout-kernel", LiveMachine::run_kernel_threads)?;
        if self.machine.budget.follows.is_some() {
            start("pageout-budget", LiveMachine::follow_cgroup)?;
        }
        (0..self.machine.io_threads()).try_for_each(|_| start("pageout-read", LiveMachine::run_reader))
    }

    /// Runs code that needs the engine. If the engine panics, this call and all later calls return an error.
    pub(crate) fn guarded<'a, T>(
        &'a self,
        act: impl FnOnce(&'a LiveMachine) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // The lock is never acquired again after that, so no thread sees the state that it left behind.
        catch_unwind(AssertUnwindSafe(|| act(&self.machine))).unwrap_or_else(|_| {
            self.machine.poison();
            Err(Error::Poisoned)
        })
    }

    /// Makes a task do something that may take several steps.
    fn with_task(
        &self,
        begin: impl FnOnce(&mut Engine, TaskId) -> Result<Step, Error>,
    ) -> Result<Served, Error> {
        self.guarded(|machine| {
            // Made before the lock is taken, as its end takes the lock.
            let _call = KernelFileCall::begin(machine)?;
            machine.with_task(begin)
        })
    }
}

/// A call that writes a kernel file, and may reclaim from any group until it ends.
struct KernelFileCall<'a>(&'a LiveMachine);

impl<'a> KernelFileCall<'a> {
    fn begin(machine: &'a LiveMachine) -> Result<KernelFileCall<'a>, Error> {
        machine.lock()?.kernel_file_call(true);
        Ok(KernelFileCall(machine))
    }
}

impl Drop for KernelFileCall<'_> {
    fn drop(&mut self) {
        if let Ok(mut locked) = self.0.lock() {
            locked.kernel_file_call(false);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.machine.arena.is_of_this_process() {
            // The threads belong to the parent, and so do the files.
            return;
        }
        let unsaved = self.guarded(LiveMachine::write_all_back);
        for unsaved in unsaved.unwrap_or_else(|_| self.machine.unsaved_after_panic()) {
            // There is no caller left to return an error to.
            eprintln!("pageout: {unsaved}");
        }
        self.later.end();
        self.machine.stop();
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        // A waker that drops the last handle is called by one of them, which ends when it returns.
        let others = threads.into_iter().filter(|thread| thread.thread().id() != thread::current().id());
        others.for_each(|thread| _ = thread.join());
    }
}
