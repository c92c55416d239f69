//! The operations of a recorded run, replayed to the engine. Each begins when the transfers of the one before have ended.
//!
//! - **Machine.** 24 GiB, one task, a group of cgroup v1 with the recorded limit.
//! - **Kernel threads.** The flusher writes what reclaim asks it for; the runs are shorter than its period. It works while the task waits, one batch after
//!   the other until the task is woken, and after each operation until nothing is left. In the recordings it had a CPU of its own.
//! - **Charges.** Pages, and index nodes, which the machine charged too. Buffer heads, which it also charged, have no counterpart.
//! - **Statistics** are flushed where the program reads them, and not by a timer.
//! - **File.** As long as recorded and not cached. The engine knows pages; the length in bytes decides which parts of a page are new.
//! - **Transfers** take no time: the recording program waits after each access to a mapping, so that what was read ahead has come. The clock moves by
//!   the delays that nothing ends.

use anyhow::{Context, anyhow, bail};
use pageout_engine::{
    Access, Advice, Bdi, Config, CpuId, Engine, FileId, FileKind, FileSpec, FileSystem, HugeAdvice, IoId,
    MemcgId, Nanos, ObjectId, Op as EngineOp, PAGE_SIZE, PageCacheEvent, Policy, Served, StatFlush, Step,
    TaskId, ThreadInfo, Wait,
};

use super::figures::{self, Figures};
use super::op::{Hint, Op};
use super::{Asked, Change};

/// Pages of the recording machine.
const MEMORY_PAGES: u64 = (24 << 30) / PAGE_SIZE;

/// The changes of a run, and its figures where it reads them.
pub(super) fn play(run: &Asked, ops: &[Op]) -> anyhow::Result<(Vec<Change>, Figures)> {
    let mut replay = Replay::new(run)?;
    let (mut changes, mut read) = (Vec::new(), Figures::new());
    let mut events = Vec::new();
    for (operation, &op) in ops.iter().enumerate() {
        replay.perform(op).with_context(|| format!("operation {operation}, `{}`", run.ops[operation]))?;
        replay.engine.take_page_cache_events(&mut events);
        if op == Op::Snapshot {
            let map = replay.map.map(|map| (replay.task, map));
            figures::simulated(&mut replay.engine, replay.group, map, operation, &mut read)?;
        }
        let file = replay.file;
        changes.extend(events.drain(..).filter(|event| event.file == file).map(|event| {
            let PageCacheEvent { page, order, removed, .. } = event;
            Change { operation, removed, index: page, order }
        }));
    }
    Ok((changes, read))
}

/// Steps after which an operation that waits for nothing is not going to end.
const STEPS_MAX: usize = 1_000_000;

/// A kernel thread.
struct Thread {
    task: TaskId,
    /// It can go on.
    is_runnable: bool,
    /// When it goes on, unless it is woken before.
    due: Option<Nanos>,
}

struct Replay {
    engine: Engine,
    now: Nanos,
    threads: Vec<Thread>,
    task: TaskId,
    group: MemcgId,
    /// The task has been woken since it began to wait.
    is_woken: bool,
    file: FileId,
    descriptors: Vec<ObjectId>,
    map: Option<ObjectId>,
    /// The length of the file.
    bytes: u64,
    /// How much of it has been on the device.
    on_device: u64,
    file_system: FileSystem,
    is_tmpfs: bool,
}

impl Replay {
    fn new(run: &Asked) -> anyhow::Result<Replay> {
        let name = format!("classic@{}", run.kernel);
        let policy = Policy::by_name(&name).ok_or_else(|| anyhow!("kernel `{}` is not known", run.kernel))?;
        let config = Config {
            node_pages: vec![MEMORY_PAGES],
            cpus: 2,
            policy,
            kmem: true,
            stat_flush: StatFlush::Manual,
            cgroup_version: 1,
            ..Config::default()
        };
        let mut engine = Engine::builder(config)?.build();
        engine.writes_whole_calls();
        let group = engine.memcg_create(MemcgId::ROOT, "job")?;
        // The program was started elsewhere: its own memory is not the group's.
        let process = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(process, CpuId(0));
        let pages = |kb: u64| u32::try_from(kb * 1024 / PAGE_SIZE);
        let file_system = match run.fs.as_str() {
            "tmpfs" => FileSystem::None,
            "ext4" => FileSystem::Ext4,
            "xfs" => FileSystem::Xfs,
            "btrfs" => FileSystem::Btrfs,
            other => bail!("file system `{other}` is not modelled"),
        };
        let bdi =
            Bdi { ra_pages: pages(run.read_ahead_kb)?, io_pages: pages(run.max_sectors_kb)?, file_system };
        let file = engine.file_create(FileSpec {
            name: "file".to_owned(),
            pages: run.file_bytes.div_ceil(PAGE_SIZE).max(1),
            kind: if run.fs == "tmpfs" { FileKind::Tmpfs } else { FileKind::Regular },
            bdi,
        })?;
        if run.fs == "tmpfs" {
            engine.set_tmpfs_huge(file, run.tmpfs_huge()?)?;
        }
        let descriptors =
            (0..run.descriptors.max(1)).map(|_| engine.open(task, file)).collect::<Result<_, _>>()?;
        if let Some(bytes) = run.limit_bytes {
            let _ = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &bytes.to_string())?;
        }
        engine.process_move(process, group);
        engine.record_page_cache_events();
        let mut threads: Vec<Thread> = engine
            .start_kernel_threads()
            .into_iter()
            .map(|ThreadInfo { task, wait, .. }| Thread::waiting(task, wait, Nanos::ZERO))
            .collect();
        threads.sort_by_key(|thread| thread.task);
        Ok(Replay {
            engine,
            now: Nanos::ZERO,
            threads,
            task,
            group,
            is_woken: false,
            file,
            descriptors,
            map: None,
            bytes: run.file_bytes,
            on_device: run.file_bytes,
            file_system,
            is_tmpfs: run.fs == "tmpfs",
        })
    }

    fn descriptor(&self, fd: usize) -> anyhow::Result<ObjectId> {
        self.descriptors.get(fd).copied().ok_or_else(|| anyhow!("there is no descriptor {fd}"))
    }

    fn mapping(&self) -> anyhow::Result<ObjectId> {
        self.map.ok_or_else(|| anyhow!("nothing is mapped"))
    }

    fn perform(&mut self, op: Op) -> anyhow::Result<()> {
        match op {
            Op::Read { fd, offset, bytes } => self.read(self.descriptor(fd)?, offset, bytes),
            Op::Write { fd, offset, bytes } => self.write(self.descriptor(fd)?, offset, bytes),
            Op::Readahead { fd, offset, bytes } => self.read_ahead(self.descriptor(fd)?, offset, bytes),
            Op::Hole { offset, bytes } => self.punch(offset, bytes),
            Op::Truncate { bytes } => self.truncate(bytes),
            Op::Fadvise { fd, offset, bytes, hint } => {
                self.fadvise(self.descriptor(fd)?, offset, bytes, hint)
            }
            Op::Sync { fd } => self.sync(self.descriptor(fd)?),
            Op::Map { fd, is_executable } => {
                let of = (self.task, self.descriptor(fd)?);
                self.map = Some(self.engine.map_same(self.task, of, Advice::Normal, is_executable)?);
                Ok(())
            }
            Op::Unmap => {
                let map = self.map.take().ok_or_else(|| anyhow!("nothing is mapped"))?;
                Ok(self.engine.munmap(self.task, map)?)
            }
            Op::Madvise { offset, bytes, hint } => self.madvise(self.mapping()?, offset, bytes, hint),
            Op::Touch { offset, is_store } => {
                let access = Access::new(self.mapping()?, offset / PAGE_SIZE, is_store);
                self.access(access)
            }
            Op::Populate => {
                let (map, pages) = (self.mapping()?, self.bytes.div_ceil(PAGE_SIZE));
                (0..pages).try_for_each(|page| self.access(Access::new(map, page, false)))
            }
            Op::Sleep | Op::Snapshot => Ok(()),
            Op::ReadStat => {
                self.engine.flush_stats();
                Ok(())
            }
        }
    }

    fn access(&mut self, access: Access) -> anyhow::Result<()> {
        let step = self.engine.start(self.task, access);
        self.serve(step).map(|_| ())
    }

    /// A read that begins behind the end asks for nothing. One that goes beyond it asks for all that it was called for.
    fn read(&mut self, object: ObjectId, offset: u64, bytes: u64) -> anyhow::Result<()> {
        let end = offset + bytes;
        for page in offset / PAGE_SIZE..end.min(self.bytes).div_ceil(PAGE_SIZE) {
            let wanted = u32::try_from(end - page * PAGE_SIZE)?;
            self.access(Access { wanted, ..Access::new(object, page, false) })?;
        }
        Ok(())
    }

    /// A page is read before it is written if a part of it that is in the file is not written.
    fn write(&mut self, object: ObjectId, offset: u64, bytes: u64) -> anyhow::Result<()> {
        let (old, end) = (self.bytes, offset + bytes);
        if end > self.bytes {
            self.engine.file_grow(self.file, end.div_ceil(PAGE_SIZE))?;
            self.bytes = end;
        }
        for page in offset / PAGE_SIZE..end.div_ceil(PAGE_SIZE) {
            let (first, behind) = (page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
            let is_partial = first < old && (offset > first || end < behind.min(old));
            self.engine.set_partial_writes(self.task, object, is_partial)?;
            let (wanted, offset) = (u32::try_from(end - first)?, offset.saturating_sub(first) as u16);
            self.access(Access { wanted, offset, ..Access::new(object, page, true) })?;
        }
        Ok(())
    }

    fn sync(&mut self, object: ObjectId) -> anyhow::Result<()> {
        let step = self.engine.fsync(self.task, object)?;
        self.serve(step)?;
        self.on_device = self.bytes;
        Ok(())
    }

    fn read_ahead(&mut self, object: ObjectId, offset: u64, bytes: u64) -> anyhow::Result<()> {
        let first = offset / PAGE_SIZE;
        let pages = (offset + bytes).div_ceil(PAGE_SIZE) - first;
        let step = self.engine.readahead(self.task, object, first, pages)?;
        self.serve(step).map(|_| ())
    }

    /// The length stays, so what is behind the end of the file is not part of the hole.
    fn punch(&mut self, offset: u64, bytes: u64) -> anyhow::Result<()> {
        let end = (offset + bytes).min(self.bytes);
        let object = self.descriptor(0)?;
        let mut range = offset..end;
        if self.file_system == FileSystem::Xfs {
            // XFS has the range on the device, drops all pages that it touches, and reads those again of which a part stays.
            self.sync(object)?;
            range = offset / PAGE_SIZE * PAGE_SIZE..end.next_multiple_of(PAGE_SIZE);
        }
        let step = self.engine.truncate_bytes(self.task, object, range)?;
        self.serve(step)?;
        [offset, end].into_iter().try_for_each(|at| self.zero_around(object, at))
    }

    /// A range of zeroes begins or ends within a page, which stays: its part is written. tmpfs does that where the page is.
    fn zero_around(&mut self, object: ObjectId, at: u64) -> anyhow::Result<()> {
        if self.is_tmpfs || at.is_multiple_of(PAGE_SIZE) || at >= self.bytes {
            return Ok(());
        }
        self.engine.set_partial_writes(self.task, object, true)?;
        self.access(Access::new(object, at / PAGE_SIZE, true))
    }

    fn truncate(&mut self, bytes: u64) -> anyhow::Result<()> {
        if bytes >= self.bytes {
            self.engine.file_grow(self.file, bytes.div_ceil(PAGE_SIZE).max(1))?;
        } else {
            let object = self.descriptor(0)?;
            if self.file_system == FileSystem::Xfs
                && bytes.is_multiple_of(PAGE_SIZE)
                && self.on_device < self.bytes
            {
                // Data that was never on the device is written first.
                self.sync(object)?;
            } else if self.file_system == FileSystem::Xfs && !bytes.is_multiple_of(PAGE_SIZE) {
                self.zero_around(object, bytes)?;
            }
            let step = self.engine.file_shrink_to(self.task, object, bytes.max(1))?;
            self.serve(step)?;
            if self.file_system != FileSystem::Xfs {
                self.zero_around(object, bytes)?;
            }
        }
        self.bytes = bytes;
        self.on_device = self.on_device.min(bytes);
        Ok(())
    }

    fn fadvise(&mut self, object: ObjectId, offset: u64, bytes: u64, hint: Hint) -> anyhow::Result<()> {
        let advice = match hint {
            Hint::Normal => Advice::Normal,
            Hint::Random => Advice::Random,
            Hint::Sequential => Advice::Sequential,
            Hint::WillNeed => return self.read_ahead(object, offset, bytes),
            Hint::DontNeed => return self.drop_pages(offset, bytes),
            Hint::HugePage | Hint::PopulateRead => return Err(anyhow!("fadvise has no such advice")),
        };
        Ok(self.engine.fadvise(self.task, object, advice)?)
    }

    /// Drops the pages that are wholly in a range: 0 bytes is all from there on. A last page that ends the file counts as whole.
    fn drop_pages(&mut self, offset: u64, bytes: u64) -> anyhow::Result<()> {
        let end = if bytes == 0 { u64::MAX } else { offset + bytes };
        let behind = if end >= self.bytes { u64::MAX } else { end / PAGE_SIZE };
        let pages = offset.div_ceil(PAGE_SIZE)..behind;
        if pages.is_empty() {
            return Ok(());
        }
        Ok(self.engine.fadvise_dontneed(self.task, self.file, pages)?)
    }

    fn madvise(&mut self, map: ObjectId, offset: u64, bytes: u64, hint: Hint) -> anyhow::Result<()> {
        let advice = match hint {
            Hint::Normal => Advice::Normal,
            Hint::Random => Advice::Random,
            Hint::Sequential => Advice::Sequential,
            Hint::WillNeed => return self.read_ahead(map, offset, bytes),
            Hint::PopulateRead => {
                let pages = offset / PAGE_SIZE..(offset + bytes).min(self.bytes).div_ceil(PAGE_SIZE);
                return pages.into_iter().try_for_each(|page| self.access(Access::new(map, page, false)));
            }
            Hint::HugePage => {
                return Ok(self.engine.madvise_hugepage(self.task, map, HugeAdvice::Hugepage)?);
            }
            Hint::DontNeed => return Err(anyhow!("madvise(MADV_DONTNEED) is not replayed")),
        };
        Ok(self.engine.madvise(self.task, map, advice)?)
    }

    /// Serves a call to its end.
    fn serve(&mut self, mut step: Step) -> anyhow::Result<Served> {
        for _ in 0..STEPS_MAX {
            self.settle();
            match step {
                Step::Done(Served::Failed(error)) => return Err(anyhow!("{error}")),
                Step::Done(served) => {
                    self.run_threads(|_| false)?;
                    return Ok(served);
                }
                Step::Again => {}
                Step::Wait(wait) => self.wait(wait)?,
            }
            self.is_woken = false;
            step = self.engine.resume(self.task);
        }
        Err(anyhow!("found no end after {STEPS_MAX} steps"))
    }

    /// Ends all transfers, and notes who was woken.
    fn settle(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        for io in ops.iter().filter_map(transfer_of) {
            self.engine.io_done(io, CpuId(0), Ok(()));
        }
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        self.is_woken |= woken.contains(&self.task);
        for thread in self.threads.iter_mut().filter(|thread| woken.contains(&thread.task)) {
            (thread.is_runnable, thread.due) = (true, None);
        }
    }

    /// The task waits, and kernel threads work: until it is woken, or they have nothing to do and its time is up.
    fn wait(&mut self, wait: Wait) -> anyhow::Result<()> {
        let can_be_woken = !matches!(wait, Wait::Delay(..));
        self.run_threads(|replay| can_be_woken && replay.is_woken)?;
        if can_be_woken && self.is_woken {
            return Ok(());
        }
        let (Wait::Delay(span, _) | Wait::WokenOr(span, _)) = wait else {
            return Err(anyhow!("waits for {wait:?}, which nothing ends"));
        };
        self.now += span;
        self.engine.set_now(self.now);
        for thread in self.threads.iter_mut().filter(|thread| thread.due.is_some_and(|due| due <= self.now)) {
            (thread.is_runnable, thread.due) = (true, None);
        }
        Ok(())
    }

    /// Runs kernel threads in their order, each a step at a time, until the task has what it waits for or none can go on.
    fn run_threads(&mut self, is_over: impl Fn(&Replay) -> bool) -> anyhow::Result<()> {
        for _ in 0..STEPS_MAX {
            if is_over(self) {
                return Ok(());
            }
            let Some(at) = self.threads.iter().position(|thread| thread.is_runnable) else { return Ok(()) };
            let task = self.threads[at].task;
            if let Step::Wait(wait) = self.engine.resume(task) {
                self.threads[at] = Thread::waiting(task, wait, self.now);
            }
            self.settle();
        }
        Err(anyhow!("kernel threads found no end after {STEPS_MAX} steps"))
    }
}

impl Thread {
    /// One that begins to wait.
    fn waiting(task: TaskId, wait: Wait, now: Nanos) -> Thread {
        let due = match wait {
            Wait::Delay(span, _) | Wait::WokenOr(span, _) => Some(now + span),
            Wait::Io(_) | Wait::Woken => None,
        };
        Thread { task, is_runnable: false, due }
    }
}

fn transfer_of(op: &EngineOp) -> Option<IoId> {
    match *op {
        EngineOp::ReadFile { io, .. } | EngineOp::WriteFile { io, .. } => Some(io),
        _ => None,
    }
}
