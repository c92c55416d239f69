//! [`Memory`]: the cache as a whole, how it is built, and its groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pageout_engine::{
    ADISTANCE_DAX_KMEM, Bdi, Config, ConfigError, Engine, FailedWrite, Layout, MemcgId, MemoryType, NodeId,
    PAGE_SIZE, PageName, Policy, Served, Stat, Step, StoryEvent, StoryFilter, Switch, TaskId,
};

use crate::error::Error;
use crate::file::{File, Open};
use crate::machine::{Backend, Doors, FileLimits, LiveMachine, Locked};
use crate::node::{Node, Nodes, Place};
use crate::ring::Read;
use crate::stats::Stats;
use crate::sync::thread::JoinHandle;
use crate::sync::{Mutex, thread};

/// More read no faster, and a number of another kind would take all that the system has.
const IO_THREADS_MAX: usize = 1024;
/// What the engine takes beside what grows with frames and files: its code, its counters, and the stacks of threads.
const FIXED_BYTES: u64 = 3 << 19;
/// What a frame takes beside its page: its record, its links and place on lists, its gate.
const FRAME_BYTES: u64 = 72;
/// What a page of a file takes whether it is in memory or not: its word, and a share of what tells of its neighbours. Words may move, and
/// are there twice for a moment.
const FILE_PAGE_BYTES: u64 = 9;
/// A look at a page takes less.
const GUARD_WAIT: Duration = Duration::from_secs(10);
/// Of a budget, for each file that nobody has open: its name, its tables, and what is known of its pages.
const IDLE_FILE_SHARE: u64 = 64 << 10;
/// Fewer frames of a node would not do for the marks of free memory.
const FRAMES_MIN: u64 = 1024;
/// Pages that one step moves between nodes, under the lock: some 20 microseconds.
const STEP_MOVES: u64 = 32;

/// A page cache with a budget. Clones share it.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<Shared>);

/// How a [`Memory`] is to be built.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    budget: u64,
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
    pub(crate) handles_max: u32,
}

/// What a group may have, in bytes; `None`: the kernel's default, which is no limit or no protection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// `memory.max`: more than that is never in memory for it. With the classic lists, reads of a group of 64 KiB fail with [`Error::OutOfMemory`]: up to 15 pages
    /// wait in a batch of the CPU, where reclaim does not find them.
    pub max: Option<u64>,
    /// `memory.high`: beyond that it reclaims, and is slowed down.
    pub high: Option<u64>,
    /// `memory.low`: up to that others are reclaimed first.
    pub low: Option<u64>,
    /// `memory.min`: up to that nothing is taken from it.
    pub min: Option<u64>,
}

impl Limits {
    /// As much as there is, and no protection.
    pub const NONE: Limits = Limits { max: None, high: None, low: None, min: None };
}

/// A group: a tenant, whose pages are counted, limited and protected together.
#[derive(Clone)]
pub struct Group {
    pub(crate) shared: Arc<Shared>,
    pub(crate) number: usize,
    name: String,
}

/// The machine and its threads.
pub(crate) struct Shared {
    pub(crate) machine: Arc<LiveMachine>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    frames: u64,
    /// Frames of slow memory, and where they are.
    slow: Option<(u64, Place)>,
    policy: String,
    config: Config,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            budget: 256 << 20,
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
            handles_max: Read::HANDLES_MAX,
        }
    }
}

impl Builder {
    /// Bytes that the process grows by at most: frames, what is known of pages, and threads. Default: 256 MiB.
    pub fn budget(mut self, bytes: u64) -> Builder {
        self.budget = bytes;
        self
    }

    /// Bytes of files that are open at once at most. 9 bytes of the budget are set aside for each 4 KiB of them. Default: 16 times
    /// the budget.
    pub fn files(mut self, bytes: u64) -> Builder {
        self.files = Some(bytes);
        self
    }

    /// The kernel whose reclaim decides, by the name of a profile (`pageout keys` lists them): `mglru@6.12`, `classic@6.12`, `lru` ...
    /// Default: `mglru@6.12`; docs/results/data/live-speed.md compares loads.
    pub fn policy(mut self, profile: &str) -> Builder {
        profile.clone_into(&mut self.policy);
        self
    }

    /// Has one rule of the policy be another than the profile's, by its name and value in `pageout keys`: `reclaim.file_writeback`, `any`. Only that what
    /// could not be written stays dirty is no rule to choose (`writeback.failed_write`), as syncs rely on it.
    pub fn rule(mut self, name: &str, value: impl ToString) -> Builder {
        self.rules.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds slow memory ([`Node::slow`]), or binds the fast memory ([`Node::bound_to`]). Default: fast memory alone, wherever the system puts it.
    ///
    /// With slow memory, pages that would be evicted from the fast one are demoted instead, and those that are read there again and again are
    /// promoted. `/sys/kernel/mm/numa/demotion_enabled`, `/sys/kernel/mm/numa/pagecache_promotion_enabled` and `kernel.numa_balancing` (2) say so, and can
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

    /// Sets a sysctl, as `vm.swappiness`, when the cache is built.
    pub fn sysctl(mut self, name: &str, value: impl ToString) -> Builder {
        self.sysctls.push((name.to_owned(), value.to_string()));
        self
    }

    /// By what files are read that no thread waits for alone: pages ahead, batches, and pending reads. Default: io_uring where the system lets
    /// the process have it, else threads; [`Memory::describe`] says which, and why not the other.
    pub fn backend(mut self, backend: Backend) -> Builder {
        self.backend = backend;
        self
    }

    /// Threads that read what is asked for beside the page that a thread waits for, where io_uring does not: pages ahead, and the rest of a
    /// batch. 0: whoever causes such a read makes it, with io_uring, too, so that what one thread does has always the same outcome. At most 1024. Default: 8,
    /// which keep as many requests at a device.
    pub fn io_threads(mut self, threads: usize) -> Builder {
        self.io_threads = threads;
        self
    }

    /// Has [`Stats::lock_held`] be the CPU time of who held the lock. By the clock, as it is without this, a hold goes on while its thread does not run. It
    /// takes two system calls more for each.
    pub fn lock_held_by_cpu(mut self, by_cpu: bool) -> Builder {
        self.holds_by_cpu = by_cpu;
        self
    }

    /// The longest that a call waits for a guard ([`crate::PageRef`], [`crate::PageMut`]) of another thread, before it is [`Error::Pinned`]. So a guard
    /// that is leaked holds nobody up for ever. A call that waits for a guard of its own thread, or for a thread that waits for it, gets the error
    /// after a tenth of a second. Default: 10 s, as a guard is for a look.
    pub fn guard_wait(mut self, longest: Duration) -> Builder {
        self.guard_wait = longest;
        self
    }

    /// How far files are read ahead at a time, in bytes. 0: nothing is read ahead. Beside a group with a small `memory.max`, choose an eighth of that at
    /// most: else what is read ahead drives itself out. Default: as far as the system reads ahead on the file's device (`queue/read_ahead_kb` in
    /// /sys/block), and at most a 64th of the budget or 128 KiB, whichever is more.
    pub fn read_ahead(mut self, bytes: u64) -> Builder {
        self.read_ahead = Some(bytes);
        self
    }

    /// The least budget that would do for these files beside so many frames of slow memory.
    fn least(files: u64, slow: u64) -> u64 {
        let frames = FRAMES_MIN.saturating_add(slow).saturating_mul(PAGE_SIZE + FRAME_BYTES);
        frames.saturating_add(FIXED_BYTES + files / PAGE_SIZE * FILE_PAGE_BYTES)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`]; [`Error::UringRefused`] where io_uring is demanded; [`Error::Nodes`] and [`Error::NoSuchNode`] for memory that
    /// can't be had so; [`Error::Config`] and [`Error::File`] for what the engine doesn't know; [`Error::Io`] where the system gives no memory or
    /// no threads.
    pub fn build(self) -> Result<Memory, Error> {
        if self.io_threads > IO_THREADS_MAX {
            let (value, max) = (self.io_threads as u64, IO_THREADS_MAX as u64);
            return Err(ConfigError::OutOfRange { what: "threads that read", value, min: 0, max }.into());
        }
        let memory = machine_bytes();
        if self.budget > memory {
            return Err(Error::BudgetTooLarge { budget: self.budget, memory });
        }
        let nodes = Nodes::of(&self.nodes)?;
        let files_max = self.files.unwrap_or(self.budget.saturating_mul(16));
        let set_aside = FIXED_BYTES + files_max / PAGE_SIZE * FILE_PAGE_BYTES;
        let frames = self.budget.saturating_sub(set_aside) / (PAGE_SIZE + FRAME_BYTES);
        let slow = nodes.slow.map_or(0, |(bytes, _)| bytes / PAGE_SIZE);
        if nodes.slow.is_some() && slow < FRAMES_MIN {
            return Err(Error::Nodes("the minimum of slow memory is 4 MiB"));
        }
        if frames < FRAMES_MIN.saturating_add(slow) {
            return Err(Error::BudgetTooSmall { least: Builder::least(files_max, slow) });
        }
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
        // What could not be written is the host's to give up, and not a kernel's.
        policy.machine.writeback.failed_write = FailedWrite::Dirty;
        let config = match slow {
            0 => Config { node_pages: vec![frames], policy, ..config() },
            _ => Config { node_pages: vec![frames - slow, slow], policy, ..config_of_tiers() },
        };
        let mut builder = Engine::builder(config.clone())?;
        let arena = Arc::new(nodes.arena(&builder.frames())?);
        // Files are on it, whatever device each is on: one thread writes them back.
        builder.bdi_register("0")?;
        builder.set_frame_gate(Box::new(Doors(Arc::clone(&arena))));
        let io = (self.backend, self.io_threads);
        let pages = |bytes: u64| (bytes / PAGE_SIZE).try_into().unwrap_or(u32::MAX);
        let limits = FileLimits {
            bytes: files_max,
            handles: self.handles_max,
            idle: (self.budget / IDLE_FILE_SHARE).min(descriptors_max() / 2) as usize,
            ra_pages: self.read_ahead.map(pages),
            // Two windows are in memory at a time, and several files may be read.
            ra_pages_max: pages(self.budget / 64).max(Bdi::default().ra_pages),
        };
        let machine = LiveMachine::new(
            builder.build(),
            arena,
            io,
            limits,
            (frames / 4, self.guard_wait),
            self.holds_by_cpu,
        )?;
        let shared = Shared {
            machine: Arc::new(machine),
            threads: Mutex::default(),
            frames,
            slow: nodes.slow.map(|(_, place)| (slow, place)),
            policy: self.policy.clone(),
            config,
        };
        let memory = Memory(Arc::new(shared));
        for (name, value) in &self.sysctls {
            memory.write(&format!("/proc/sys/{}", name.replace('.', "/")), value)?;
        }
        memory.0.start_threads()?;
        Ok(memory)
    }
}

/// What an engine is like that decides for a process: nothing is set aside to spare a lock, to have large blocks, or for stacks that threads have
/// elsewhere, and statistics are as they are now.
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
        ..config()
    }
}

/// Bytes of memory of the machine.
fn machine_bytes() -> u64 {
    // SAFETY: the call takes a number and returns one.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).map_or(u64::MAX, |pages| pages.saturating_mul(PAGE_SIZE))
}

/// Descriptors that the process may have.
fn descriptors_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the one place that it is given.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if result == 0 { limit.rlim_cur } else { 1024 }
}

impl Memory {
    /// Begins to build one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens a file, or another handle of one that is open.
    ///
    /// # Errors
    /// [`Error::DirectRefused`], [`Error::NoRegularFile`], [`Error::Io`]: the file can't be opened so. [`Error::TooManyFiles`], [`Error::TooManyHandles`]: too much is open.
    /// [`Error::Locked`]: another cache has it open for writing, after a second of tries. [`Error::ChangedOutside`]: another program has written it (or changed its
    /// times, or an attribute and changed that back, which looks the same) while pages of it wait here to be written. [`Error::Pinned`]: it has to be read anew, and a guard
    /// holds one of its pages. [`Error::Config`]: the group is another cache's.
    pub fn open(&self, path: impl AsRef<Path>, how: Open) -> Result<File, Error> {
        self.0.guarded(|_| File::open(&self.0, path.as_ref(), &how))
    }

    /// Makes a group. It lasts as long as the cache. Groups are not in the budget: each takes some 5 KB more.
    ///
    /// # Errors
    /// [`Error::Config`] where there is one of this name, or the name leads elsewhere or looks like a file of a group.
    pub fn group(&self, name: &str, limits: Limits) -> Result<Group, Error> {
        let number = self.0.guarded(|machine| {
            let mut locked = machine.lock()?;
            let memcg = locked.engine.memcg_create(MemcgId::ROOT, name)?;
            Ok(locked.add_group(memcg))
        })?;
        let group = Group { shared: Arc::clone(&self.0), number, name: name.to_owned() };
        let Limits { max, high, low, min } = limits;
        for (file, bytes) in
            [("memory.max", max), ("memory.high", high), ("memory.low", low), ("memory.min", min)]
        {
            if let Some(bytes) = bytes {
                group.write(file, &bytes.to_string())?;
            }
        }
        Ok(group)
    }

    /// The text of a kernel file, by its path: `/proc/vmstat`, `/proc/meminfo`, `/sys/kernel/debug/lru_gen` ...
    ///
    /// # Errors
    /// [`Error::File`] where there is none, or it can't be read.
    pub fn read(&self, path: &str) -> Result<String, Error> {
        self.0.guarded(|machine| {
            let mut locked = machine.drain(machine.lock()?)?;
            Ok(locked.engine.read_file(path)?)
        })
    }

    /// Writes a kernel file, as a shell's `echo` does, and waits until that is done.
    ///
    /// # Errors
    /// [`Error::File`] where there is none, it can't be written, or not this.
    pub fn write(&self, path: &str, value: &str) -> Result<(), Error> {
        self.0.with_task(|engine, task| Ok(engine.write_file(task, path, value)?)).and_then(|served| {
            match served {
                Served::Refused(error) => Err(Error::File(*error)),
                _ => Ok(()),
            }
        })
    }

    /// Figures beside the kernel's own.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn stats(&self) -> Result<Stats, Error> {
        let machine = &self.0.machine;
        let locked = machine.lock()?;
        let figures = locked.engine.figures();
        let vmstat = |stat| figures.vmstat(stat) as u64;
        let (slow_frames, slow_resident) = match self.0.slow {
            Some((frames, _)) => (frames, figures.node_stat(NodeId(1), Stat::NrFilePages) as u64),
            None => (0, 0),
        };
        const DEMOTIONS: [Stat; 4] =
            [Stat::PgdemoteKswapd, Stat::PgdemoteDirect, Stat::PgdemoteKhugepaged, Stat::PgdemoteProactive];
        let hits = locked.hits();
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
            resident: vmstat(Stat::NrFilePages),
            frames: self.0.frames,
            slow_frames,
            slow_resident,
            promoted: vmstat(Stat::PgpromoteSuccess),
            demoted: DEMOTIONS.into_iter().map(vmstat).sum(),
            moves_failed: vmstat(Stat::PgmigrateFail),
            kept_by_pins: machine.arena.kept_by_pins(),
            pinned: locked.pinned(),
            lock_held: machine.held.read(),
        })
    }

    /// Has each decision on some pages of a file told from now on, with the numbers by which it was taken, as `pageout explain` tells them of a simulated
    /// machine. What was followed before is not any more.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn follow(&self, file: &File, pages: impl IntoIterator<Item = u64>) -> Result<(), Error> {
        let names = pages.into_iter().map(|page| PageName::File { file: file.0.id, page });
        self.0.machine.lock()?.engine.tell_story(StoryFilter::Pages(names.collect()));
        Ok(())
    }

    /// What was told of them since this was last asked. It is kept until then.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn take_story(&self) -> Result<Vec<StoryEvent>, Error> {
        let mut events = Vec::new();
        let machine = &self.0.machine;
        machine.drain(machine.lock()?)?.engine.take_story(&mut events);
        Ok(events)
    }

    /// What its engine is built from. A simulated machine that is built from the same takes the same decisions.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// By what files are read that no thread waits for alone: [`Backend::Uring`], or [`Backend::Threads`].
    pub fn backend(&self) -> Backend {
        self.0.machine.backend()
    }

    /// What it is, in a line: policy, frames, and how it reads.
    pub fn describe(&self) -> String {
        let Shared { policy, frames, slow, .. } = &*self.0;
        let slow =
            slow.map_or_else(String::new, |(frames, place)| format!(", {frames} of them slow, {place}"));
        let readers = self.0.machine.describe_readers();
        format!("{policy}, {frames} frames of {PAGE_SIZE} bytes{slow}; reads {readers}")
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({})", self.describe())
    }
}

impl Group {
    /// The text of one of its kernel files: `memory.stat`, `memory.events` ...
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn read(&self, file: &str) -> Result<String, Error> {
        Memory(Arc::clone(&self.shared)).read(&self.path(file))
    }

    /// Writes one of its kernel files: `memory.high`, `memory.reclaim` ...
    ///
    /// # Errors
    /// As [`Memory::write`].
    pub fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        Memory(Arc::clone(&self.shared)).write(&self.path(file), value)
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
    fn start_threads(&self) -> Result<(), Error> {
        /// Deep enough for a step of reclaim, and little of it is ever touched.
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
        (0..self.machine.io_threads()).try_for_each(|_| start("pageout-read", LiveMachine::run_reader))
    }

    /// Does what takes the engine. A panic of that is told to whoever calls, and to all who call later.
    pub(crate) fn guarded<'a, T>(
        &'a self,
        act: impl FnOnce(&'a LiveMachine) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // Nobody gets the lock after that, so nobody sees what it has left behind.
        catch_unwind(AssertUnwindSafe(|| act(&self.machine))).unwrap_or_else(|_| {
            self.machine.poison();
            Err(Error::Poisoned)
        })
    }

    /// Has a task do something that may take steps.
    fn with_task(
        &self,
        begin: impl FnOnce(&mut Engine, TaskId) -> Result<Step, Error>,
    ) -> Result<Served, Error> {
        self.guarded(|machine| {
            let mut locked: Locked<'_> = machine.drain(machine.lock()?)?;
            let hired = locked.hire(0);
            // It may take long, and others may close the file that the task was last lent.
            locked.engine.take_back(hired.task);
            let step = begin(&mut locked.engine, hired.task)?;
            let served;
            (locked, served) = machine.see_through(locked, hired.task, step)?;
            drop(machine.read(locked, 0)?);
            Ok(served)
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.machine.arena.is_of_this_process() {
            // The threads are the parent's, and so are the files.
            return;
        }
        let unsaved = self.guarded(LiveMachine::write_all_back);
        for unsaved in unsaved.unwrap_or_else(|_| self.machine.unsaved_after_panic()) {
            // Nobody is left to whom an error could be returned.
            eprintln!("pageout: {unsaved}");
        }
        self.machine.stop();
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        // A waker that drops the last handle is called by one of them, which ends when it is back.
        let others = threads.into_iter().filter(|thread| thread.thread().id() != thread::current().id());
        others.for_each(|thread| _ = thread.join());
    }
}
