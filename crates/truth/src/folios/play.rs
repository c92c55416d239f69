//! The operations of a recorded run, replayed to the engine. Each begins when the transfers of the one before have ended.
//!
//! - **Machine.** 24 GiB, one task, a group of cgroup v1 with the recorded limit.
//! - **Kernel threads.** The flusher writes what reclaim asks it for; the runs are shorter than its period. It works while the task waits, one batch after
//!   the other until the task is woken, and after each operation until nothing is left. In the recordings it had a CPU of its own.
//! - **Charges.** Pages, and index nodes, which the machine charged too. Buffer heads, which it also charged, have no counterpart.
//! - **Statistics** are flushed where the program reads them, and not by a timer.
//! - **File.** As long as recorded and not cached. The engine knows pages; the length in bytes decides which parts of a page are new.
//! - **Anonymous memory.** Pages that were written hold random words, all others zeroes. Groups pay for page tables, and not for the stack of the task, which
//!   was started elsewhere.
//! - **Transfers** take no time: the recording program waits after each access to a mapping, so that what was read ahead has come. The clock moves by
//!   the delays that nothing ends.

use anyhow::{Context, anyhow, bail};
use pageout_engine::{
    Access, Advice, Bdi, Config, CpuId, Engine, FileId, FileKind, FileSpec, FileSystem, HugeAdvice,
    HugepageDefrag, IoId, MemcgId, Nanos, ObjectId, Op as EngineOp, PAGE_SIZE, PageCacheEvent, PageContents,
    Pfn, Policy, Served, SizeEnabled, StatFlush, Step, SwapKind, SwapSpec, TaskId, ThreadInfo, Touched,
    TransparentHugepage, Wait,
};

use super::figures::{self, Figures};
use super::op::{Hint, Op, Touch};
use super::{Asked, Change, Knobs};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Pages of the recording machine.
const MEMORY_PAGES: u64 = (24 << 30) / PAGE_SIZE;

/// Pages to which a page of the second level of a page table leads.
const TABLES_PAGES: u64 = (1 << 30) / PAGE_SIZE;

/// The size of a page of random words in its first half, when it is compressed.
const HALF_RANDOM_BYTES: u16 = 2100;

/// The changes of a run, and its figures where it reads them; of anonymous memory, at its end.
pub(super) fn play(run: &Asked, ops: &[Op]) -> anyhow::Result<(Vec<Change>, Figures)> {
    let mut replay = Replay::new(run)?;
    let (mut changes, mut read) = (Vec::new(), Figures::new());
    let (mut events, mut snapshots) = (Vec::new(), 0);
    for (operation, &op) in ops.iter().enumerate() {
        replay.perform(op).with_context(|| format!("operation {operation}, `{}`", run.ops[operation]))?;
        replay.engine.take_page_cache_events(&mut events);
        if op == Op::Snapshot {
            if !run.is_anon() {
                let map = replay.map.map(|map| (replay.task, map));
                figures::simulated(&mut replay.engine, replay.group, map, operation, &mut read)?;
            }
            let limit = run.limit_after_snapshot.get(&snapshots.to_string());
            snapshots += 1;
            if let Some(&bytes) = limit {
                replay.set_limit(bytes).with_context(|| format!("limit after operation {operation}"))?;
            }
        }
        let file = replay.file;
        // No event of tmpfs says that a folio goes to swap.
        let is_shown = !replay.is_tmpfs || matches!(op, Op::Truncate { .. } | Op::Hole { .. });
        changes.extend(events.drain(..).filter(|event| event.file == file && is_shown).map(|event| {
            let PageCacheEvent { page, order, removed, .. } = event;
            Change { operation, removed, index: page, order }
        }));
    }
    if run.limit_bytes.is_some() && !run.is_anon() {
        figures::put_reclaim_calls(&replay.engine, replay.group, &mut read);
    }
    if run.is_anon() {
        let map = replay.map.map(|map| (replay.task, map));
        figures::simulated_anon(&replay.engine, map, replay.faults, &mut read);
    }
    Ok((changes, read))
}

/// What pages of anonymous memory and of swap hold: random words, or else zeroes.
#[derive(Default)]
struct Filled {
    frames: BTreeSet<Pfn>,
    slots: BTreeSet<u32>,
}

/// The same, as the engine asks it.
struct Contents(Arc<Mutex<Filled>>);

impl PageContents for Contents {
    fn repeated_word(&mut self, pfn: Pfn) -> Option<u64> {
        let filled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!filled.frames.contains(&pfn)).then_some(0)
    }

    fn compressed_bytes(&mut self, _: Pfn) -> u16 {
        HALF_RANDOM_BYTES
    }
}

impl Filled {
    /// Carries out an operation.
    fn carry_out(&mut self, op: &EngineOp) {
        let frames = |pfn: Pfn, pages: u32| (pfn.0..pfn.0 + pages).map(Pfn);
        match *op {
            EngineOp::Zero { pfn, pages }
            | EngineOp::Clear { pfn, pages }
            | EngineOp::FreeFrame { pfn, pages } => {
                frames(pfn, pages).for_each(|pfn| _ = self.frames.remove(&pfn));
            }
            EngineOp::Copy { from, to, pages } => {
                frames(from, pages).zip(frames(to, pages)).for_each(|(from, to)| {
                    let is_filled = self.frames.contains(&from);
                    self.set_frame(to, is_filled);
                });
            }
            EngineOp::WriteSwap { slot, pfn, pages, .. } => {
                frames(pfn, pages).zip(slot..).for_each(|(pfn, slot)| self.swap_out(pfn, slot));
            }
            EngineOp::WriteSwapNow { slot, pfn, .. } => self.swap_out(pfn, slot),
            EngineOp::ReadSwap { slot, pfn, .. } | EngineOp::ReadSwapNow { slot, pfn, .. } => {
                let is_filled = self.slots.contains(&slot);
                self.set_frame(pfn, is_filled);
            }
            _ => {}
        }
    }

    fn swap_out(&mut self, pfn: Pfn, slot: u32) {
        if self.frames.contains(&pfn) {
            self.slots.insert(slot)
        } else {
            self.slots.remove(&slot)
        };
    }

    fn set_frame(&mut self, pfn: Pfn, is_filled: bool) {
        if is_filled {
            self.frames.insert(pfn)
        } else {
            self.frames.remove(&pfn)
        };
    }
}

/// The settings of a run on anonymous memory.
fn apply(knobs: &Knobs, config: &mut Config) -> anyhow::Result<()> {
    let unknown = |what: &str, word: &str| anyhow!("knobs: {what}: found `{word}`");
    config.transparent_hugepage = TransparentHugepage::by_name(&knobs.enabled)
        .ok_or_else(|| unknown("enabled, expected always, madvise or never", &knobs.enabled))?;
    config.hugepage_defrag = HugepageDefrag::by_name(&knobs.defrag)
        .ok_or_else(|| unknown("defrag, expected a word of the file", &knobs.defrag))?;
    let sizes: BTreeMap<u64, SizeEnabled> = knobs
        .hugepages_kb
        .iter()
        .map(|(size, word)| {
            let enabled = SizeEnabled::by_name(word);
            let enabled = enabled
                .ok_or_else(|| unknown("hugepages_kb, expected always, inherit, madvise or never", word))?;
            Ok((
                size.parse::<u64>().with_context(|| format!("knobs: hugepages_kb: found `{size}`"))?,
                enabled,
            ))
        })
        .collect::<anyhow::Result<_>>()?;
    for order in 2..=9 {
        let enabled = sizes.get(&(4 << order)).copied().unwrap_or(SizeEnabled::Never);
        *config.size_enabled(order).expect("it is an order with a switch") = enabled;
    }
    config.swappiness = knobs.swappiness;
    config.page_cluster = knobs.page_cluster;
    config.kernel_stacks = false;
    Ok(())
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
    filled: Arc<Mutex<Filled>>,
    /// Minor and major faults on anonymous memory.
    faults: [u64; 2],
}

impl Replay {
    fn new(run: &Asked) -> anyhow::Result<Replay> {
        let name = format!("classic@{}", run.kernel);
        let policy = Policy::by_name(&name).ok_or_else(|| anyhow!("kernel `{}` is not known", run.kernel))?;
        let mut config = Config {
            node_pages: vec![MEMORY_PAGES],
            cpus: 2,
            policy,
            kmem: true,
            stat_flush: StatFlush::Manual,
            cgroup_version: 1,
            ..Config::default()
        };
        let is_anon = run.is_anon();
        if is_anon {
            apply(&run.knobs, &mut config)?;
        }
        let mut builder = Engine::builder(config)?;
        let filled = Arc::new(Mutex::new(Filled::default()));
        if is_anon {
            builder.set_page_contents(Box::new(Contents(Arc::clone(&filled))));
        }
        let kind = match run.knobs.swap.as_deref() {
            None => None,
            Some("zram") => Some(SwapKind::Synchronous),
            Some("device") => Some(SwapKind::Device),
            Some("file") => Some(SwapKind::File),
            Some(other) => bail!("knobs: swap: found `{other}`, expected zram, device or file"),
        };
        if let Some(kind) = kind {
            let swap = builder.swap_on(SwapSpec { pages: (run.knobs.swap_mib << 20) / PAGE_SIZE, kind })?;
            if run.knobs.rotational == Some(1) {
                builder.swap_rotational(swap)?;
            }
        }
        let mut engine = builder.build();
        engine.writes_whole_calls();
        let group = engine.memcg_create(MemcgId::ROOT, "job")?;
        // The program was started elsewhere: its own memory is not the group's.
        let process = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(process, CpuId(0));
        let pages = |kb: u64| u32::try_from(kb * 1024 / PAGE_SIZE);
        let file_system = match run.fs.as_str() {
            "tmpfs" | "" => FileSystem::None,
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
        if is_anon {
            // The upper levels of its page table were there before, up to what leads to 1 GiB.
            let elsewhere = engine.map_anon(task, TABLES_PAGES, Advice::Normal)?;
            let step = engine.start(task, Access::new(elsewhere, 0, true));
            if !matches!(step, Step::Done(_)) {
                bail!("found {step:?} for the first access, expected it to wait for nothing");
            }
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
            filled,
            faults: [0; 2],
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
            Op::MapAnon { bytes } => {
                self.map = Some(self.engine.map_anon(self.task, bytes / PAGE_SIZE, Advice::Normal)?);
                Ok(())
            }
            Op::MadviseAnon { offset, bytes, hint } => self.madvise_anon(offset, bytes, hint),
            Op::TouchAnon { offset, how } => self.touch_anon(offset / PAGE_SIZE, how),
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

    /// Limits of cgroup v1 are set by reclaiming down to them.
    fn set_limit(&mut self, bytes: u64) -> anyhow::Result<()> {
        let step = self.engine.write_file(self.task, "/sys/fs/cgroup/job/memory.max", &bytes.to_string())?;
        self.serve(step).map(|_| ())
    }

    fn touch_anon(&mut self, page: u64, how: Touch) -> anyhow::Result<()> {
        let step = self.engine.start(self.task, Access::new(self.mapping()?, page, how != Touch::Load));
        let served = self.serve(step)?;
        let (Served::Hit(touched) | Served::Minor(touched) | Served::Major(touched)) = served else {
            bail!("an access ends as {served:?}");
        };
        match served {
            Served::Minor(_) => self.faults[0] += 1,
            Served::Major(_) => self.faults[1] += 1,
            _ => {}
        }
        if let (Touched::Frame(pfn), Touch::Store) = (touched, how) {
            self.filled.lock().unwrap_or_else(PoisonError::into_inner).frames.insert(pfn);
        }
        Ok(())
    }

    fn madvise_anon(&mut self, offset: u64, bytes: u64, hint: Hint) -> anyhow::Result<()> {
        let (map, pages) = (self.mapping()?, offset / PAGE_SIZE..(offset + bytes) / PAGE_SIZE);
        match hint {
            Hint::HugePage => {
                self.engine.madvise_hugepage_pages(self.task, map, pages, HugeAdvice::Hugepage)?;
            }
            Hint::NoHugePage => {
                self.engine.madvise_hugepage_pages(self.task, map, pages, HugeAdvice::NoHugepage)?;
            }
            Hint::DontNeed => _ = self.engine.madvise_dontneed(self.task, map, pages)?,
            Hint::PageOut => {
                for part in by_table(pages) {
                    self.engine.madvise_pageout(self.task, map, part)?;
                    self.settle();
                }
            }
            other => bail!("advice {other:?} on anonymous memory is not replayed"),
        }
        self.settle();
        Ok(())
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
            Hint::HugePage | Hint::NoHugePage | Hint::PageOut | Hint::PopulateRead => {
                return Err(anyhow!("fadvise has no such advice"));
            }
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
                let pages = offset / PAGE_SIZE..(offset + bytes).div_ceil(PAGE_SIZE);
                return Ok(self.engine.madvise_hugepage_pages(
                    self.task,
                    map,
                    pages,
                    HugeAdvice::Hugepage,
                )?);
            }
            Hint::DontNeed | Hint::NoHugePage | Hint::PageOut => {
                return Err(anyhow!("advice {hint:?} on a file is not replayed"));
            }
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
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        ops.iter().for_each(|op| filled.carry_out(op));
        drop(filled);
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

/// A range of pages, by page table: the kernel pages the pages of one out together.
fn by_table(pages: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    const TABLE: u64 = 512;
    (pages.start / TABLE..pages.end.div_ceil(TABLE))
        .map(move |table| (table * TABLE).max(pages.start)..((table + 1) * TABLE).min(pages.end))
}

fn transfer_of(op: &EngineOp) -> Option<IoId> {
    match *op {
        EngineOp::ReadFile { io, .. }
        | EngineOp::WriteFile { io, .. }
        | EngineOp::ReadSwap { io, .. }
        | EngineOp::WriteSwap { io, .. } => Some(io),
        _ => None,
    }
}
