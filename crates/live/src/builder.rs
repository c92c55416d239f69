//! [`Builder`]: how a cache is built, and what it is built from.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pageout_engine::{
    ADISTANCE_DAX_KMEM, Bdi, Config, ConfigError, Engine, FailedWrite, Layout, MemoryType, PAGE_SIZE, Policy,
    SwapKind, SwapSpec, Switch, TableHost,
};

use crate::budget::{Budget, FRAMES_MIN, Files, Plan, Records};
use crate::cgroup::Share;
use crate::error::Error;
use crate::later::Later;
use crate::machine::{Backend, Doors, FileLimits, LiveMachine, Samples, Zpool};
use crate::memory::{Memory, Shared, path_of_sysctl};
use crate::node::{Node, Nodes};
use crate::ring::Read;
use crate::storage::{self, Storage};
use crate::swap::SwapFile;
use crate::sync::Mutex;
use crate::tables::Tables;
use crate::zswap::Zswap;

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

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            budget: 256 << 20,
            budget_max: None,
            cgroup_share: None,
            files: None,
            policy: DEFAULT_POLICY.to_owned(),
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

impl Memory {
    /// Returns a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Sets the memory by which the process grows at most, in bytes: frames, data about pages, and threads. Default: 256 MiB.
    pub fn budget(mut self, bytes: u64) -> Builder {
        self.budget = bytes;
        self
    }

    /// Sets the largest budget that [`Memory::set_budget`] can set later. Addresses for it are reserved, and the data about its frames is part of the budget
    /// from the start: 104 bytes per 4 KiB, so 26 MiB per GiB. If [`Builder::files`] is set, it is 72 bytes. Default: the budget.
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

    /// Declares the total size of files and regions that can be open at the same time, in bytes, and limits it. 9 bytes of the budget are reserved for each
    /// 4 KiB of them, so the number of frames never changes.
    ///
    /// Default: any size, for example 1 TiB in a budget of 64 MiB. The budget then pays for tables as they are used:
    ///
    /// - A table takes 4 KiB for each 2 MiB of a file in which a page is in memory, or was evicted recently. Pages far apart cost twice their size.
    /// - Each region has page tables as well: 4 KiB for each 2 MiB and each 1 GiB in which a page was used, and 4 KiB. Its
    ///   pages far apart cost three times their size.
    /// - Evictions are remembered as in the kernel. Groups of 64 pages of which none is in memory are forgotten if they are more than an eighth of the
    ///   frames. So up to an eighth of the budget remembers evictions of pages far apart.
    /// - 512 KiB and 32 bytes for each frame are reserved. Beyond these, tables take frames from pages ([`crate::Stats::table_frames`]).
    /// - Not counted: the page tables that the system has for the process, up to 4 MiB for each TiB of files.
    ///
    /// A file is refused if its tables do not fit ([`Error::NoRoomForTables`]): each TiB takes at least 1 MiB.
    pub fn files(mut self, bytes: u64) -> Builder {
        self.files = Some(bytes);
        self
    }

    /// Sets the kernel whose reclaim decides, by the name of a profile (`pageout keys` lists them): `classic@6.12`, `mglru@7.3`, `lru` ... Default:
    /// `classic@6.12`; docs/results/policies.md compares loads.
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

    /// Makes [`crate::Stats::lock_held`] count the CPU time of the lock's holder, for each hold. By default it counts the wall-clock time of one hold in eight, and a
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

    /// Sets the swap file, which holds pages of regions ([`Memory::region`]) that are evicted. It is a file without a name in this folder, and has at most
    /// this many bytes. It uses space on the device as it grows, 16 MiB at a time. 32 bytes of the budget are reserved for each 4 KiB of it. Default: no
    /// swap file, so regions stay in memory.
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
            let real = storage::Real::of_swap(file);
            return Ok(Some(Arc::new(storage::failing::Failing::new(real, Arc::clone(faults)))));
        }
        storage::of(file, &swap.folder.join("pageout-swap"), true).map(Some)
    }

    /// What pages, files and this many slots need of a budget in addition to frames.
    fn records(&self, slots: u64) -> Records {
        let of_page = self.zswap.map_or(0, |_| zswap_pages(2) * ZSWAP_PAGE_BYTES / 2);
        let files = self.files.map_or(Files::Any, Files::Declared);
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
        let slots = self.swap.as_ref().map_or(0, |swap| swap.bytes / PAGE_SIZE);
        let slow = nodes.slow.map_or(0, |(bytes, _)| bytes / PAGE_SIZE);
        if nodes.slow.is_some() && slow < FRAMES_MIN {
            return Err(Error::Nodes("the minimum of slow memory is 4 MiB"));
        }
        let plan = Plan::new(most, &self.records(slots), slow)?;
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
                // A group is charged for its part of the pool. Without the shrinker a pool that fills its limit is never written back: then the group
                // can't read its pages, although slots are free.
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
        let tables = Arc::new(Tables::default());
        builder.reserve_records();
        builder.set_table_host(Arc::clone(&tables) as Arc<dyn TableHost>);
        builder.set_frame_gate(Box::new(Doors(Arc::clone(&arena))));
        builder.set_accessed_bits(Box::new(Samples(Arc::clone(&arena))));
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
            bytes: self.files,
            handles: self.handles_max,
            idle: (budget / IDLE_FILE_SHARE).min(descriptors_max() / 2) as usize,
            ra_pages: self.read_ahead.map(pages),
            // Two windows are in memory at a time, and several files may be read.
            ra_pages_max: pages(budget / 64).max(Bdi::default().ra_pages),
        };
        let mut engine = builder.build();
        engine.exchange_full_swap();
        let machine = LiveMachine::new(
            engine,
            arena,
            io,
            limits,
            (Budget::new(plan, follows, tables), self.guard_wait),
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

/// The policy that reads the fewest bytes of those that keep all promises: docs/results/policies.md.
const DEFAULT_POLICY: &str = "classic@6.12";
/// Memory that stays free, in KiB: one batch of reclaim. A kernel keeps 4 times the root of its memory in KiB for interrupts, which can't wait. Here all
/// callers can reclaim, and those pages would be 3 to 5 % of a budget of 16 MiB.
const MIN_FREE_KIB: u32 = 128;

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
        min_free_kbytes: MIN_FREE_KIB,
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
        // Promotion starts from the watermarks of the fast node.
        min_free_kbytes: 0,
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
