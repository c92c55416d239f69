//! [`Memory`]: the complete cache, and its groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use pageout_engine::{
    Config, Engine, NodeId, PAGE_SIZE, PageName, Served, Stat, Step, StoryEvent, StoryFilter, TaskId,
    kernel_bool,
};

use crate::error::Error;
use crate::file::{File, Open};
use crate::later::Later;
use crate::machine::{Backend, LiveMachine, Zpool};
use crate::map::{MapOptions, MappedRegion};
use crate::node::Place;
use crate::region::{Region, RegionOptions};
use crate::stats::{GroupStats, Stats};
use crate::sync::thread::JoinHandle;
use crate::sync::{Mutex, thread};
use crate::zswap::{Zswap, ZswapAnswer};

/// A page cache with a budget. Clones share it.
#[derive(Clone)]
pub struct Memory(pub(crate) Arc<Shared>);

/// Limits and protection of a group, in bytes; `None`: the kernel's default, which is unlimited or unprotected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// `memory.max`: the hard limit of its memory. While swap is full, pages read from it may exceed the limit by 8 pages.
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
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    /// Syncs and writes that no caller waits for.
    pub(crate) later: Later,
    /// Frames of slow memory, and their location.
    pub(crate) slow: Option<(u64, Place)>,
    /// Bytes of the swap file, if there is one.
    pub(crate) swap_bytes: Option<u64>,
    pub(crate) zswap: Option<Zswap>,
    pub(crate) policy: String,
    pub(crate) config: Config,
}

impl Memory {
    /// Changes the budget, and returns when the process has the new one. With a smaller budget, pages at the end of the arena move or are evicted, in steps between
    /// which other threads continue, and the system gets the memory. With a larger one, up to [`crate::Builder::budget_max`], frames take memory when they are first
    /// used. The limit of pages that guards may hold is a quarter of the frames, and [`crate::Builder::files`] is unchanged. Slow memory is unchanged, too.
    ///
    /// # Errors
    /// The budget is unchanged after an error. Pages that were evicted stay evicted.
    ///
    /// - [`Error::Pinned`] if guards hold more than a quarter of the frames that the budget allows.
    /// - [`Error::BudgetTooSmall`] if it is below the minimum, or if dirty pages that can't be written need more.
    /// - [`Error::BudgetBeyondArena`] if it is above [`crate::Builder::budget_max`].
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
    /// than the budget if there is a swap file ([`crate::Builder::swap_file`]).
    ///
    /// # Errors
    /// - [`Error::NoSwap`] if all regions together are larger than memory and there is no swap file.
    /// - [`Error::TooManyFiles`] if files and regions would exceed [`crate::Builder::files`]; [`Error::NoRoomForTables`] if it is not set.
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

    /// Creates a mapped region: anonymous memory of this many bytes that any code accesses by plain pointers. It may be larger than the budget if there is a swap
    /// file. Its pages are in the budget, and are evicted like those of [`Memory::region`]. Threads of the region serve faults.
    ///
    /// From the first mapped region on, the cache uses no further huge pages.
    ///
    /// # Errors
    /// - [`Error::FaultsRefused`] if the system does not permit a call that is needed. [`Memory::region`] needs none of them.
    /// - [`Error::Nodes`] if the cache has slow memory.
    /// - [`Error::Config`] if the number of threads is invalid, or the group is another cache's.
    /// - [`Error::Io`] if the system gives no threads.
    /// - Those of [`Memory::region`].
    ///
    /// ```no_run
    /// use pageout::{MapOptions, Memory};
    ///
    /// let memory = Memory::builder().budget(256 << 20).swap_file("/var/tmp", 4 << 30).build()?;
    /// let map = memory.map_region(1 << 30, MapOptions::new())?;
    /// // SAFETY: the byte is in the region, which exists until the end of the block, and no other code uses it.
    /// unsafe { map.as_mut_ptr().add(512 << 20).write(7) };
    /// println!("{}", map.describe());
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn map_region(&self, bytes: u64, options: MapOptions) -> Result<MappedRegion, Error> {
        MappedRegion::make(&self.0, bytes, &options)
    }

    /// Creates a group. It lasts until it is removed ([`Group::remove`]), or as long as the cache. Groups are not part of the budget: each takes some 5 KB,
    /// and so does a removed one as long as pages or slots are charged to it. At most 65,534 groups exist at the same time.
    ///
    /// # Errors
    /// [`Error::Config`] if a group of this name exists, or the name leads elsewhere or looks like a file of a group.
    pub fn group(&self, name: &str, limits: Limits) -> Result<Group, Error> {
        // It may lie in a mapped region, whose faults need the engine.
        let name = name.to_owned();
        let place = self.0.guarded(|machine| machine.make_group(&name))?;
        let group = Group { shared: Arc::clone(&self.0), place, name };
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
        // It may lie in a mapped region, whose faults need the engine.
        let path = path.to_owned();
        self.0.guarded(|machine| {
            let mut locked = machine.drain(machine.lock()?)?;
            Ok(locked.engine.read_file(&path)?)
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
        // They may lie in a mapped region, whose faults need the engine.
        let (path, value) = (path.to_owned(), value.to_owned());
        self.0.with_task(|engine, task| Ok(engine.write_file(task, &path, &value)?)).and_then(|served| {
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
            table_bytes: machine.budget.tables.bytes(),
            table_frames: machine.budget.of_tables(),
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

    /// Starts the cache's own threads.
    pub(crate) fn start_threads(&self) -> Result<(), Error> {
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

/// The file of a sysctl, or of a parameter of zswap.
pub(crate) fn path_of_sysctl(name: &str) -> String {
    match name.strip_prefix("zswap.") {
        Some(parameter) => format!("/sys/module/zswap/parameters/{parameter}"),
        None => format!("/proc/sys/{}", name.replace('.', "/")),
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
        drop(self.machine.wakers.stop());
    }
}
