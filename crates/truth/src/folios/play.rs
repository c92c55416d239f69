//! The operations of a recorded run, replayed to the engine. Each begins when the transfers of the one before have ended.
//!
//! - **Machine.** 24 GiB, no memory limit, one task. Nothing reclaims, and no flusher writes: the runs are shorter than its period.
//! - **File.** As long as recorded and not cached. The engine knows pages; the length in bytes decides which parts of a page are new.
//! - **Transfers** take no time: the recording program waits after each access to a mapping, so that what was read ahead has come.

use anyhow::{Context, anyhow};
use pageout_engine::{
    Access, Advice, Bdi, Config, CpuId, Engine, FileId, FileKind, FileSpec, IoId, MemcgId, ObjectId, Op as EngineOp,
    PAGE_SIZE, PageCacheEvent, Policy, Served, Step, TaskId,
};

use super::op::{Hint, Op};
use super::{Asked, Change};

/// Pages of the recording machine.
const MEMORY_PAGES: u64 = (24 << 30) / PAGE_SIZE;

/// The changes of a run.
pub(super) fn play(run: &Asked, ops: &[Op]) -> anyhow::Result<Vec<Change>> {
    let mut replay = Replay::new(run)?;
    let mut changes = Vec::new();
    let mut events = Vec::new();
    for (operation, &op) in ops.iter().enumerate() {
        replay.perform(op).with_context(|| format!("operation {operation}, `{}`", run.ops[operation]))?;
        replay.engine.take_page_cache_events(&mut events);
        let file = replay.file;
        changes.extend(events.drain(..).filter(|event| event.file == file).map(|event| {
            let PageCacheEvent { page, removed, .. } = event;
            Change { operation, removed, index: page, order: 0 }
        }));
    }
    Ok(changes)
}

struct Replay {
    engine: Engine,
    task: TaskId,
    file: FileId,
    descriptors: Vec<ObjectId>,
    map: Option<ObjectId>,
    /// The length of the file.
    bytes: u64,
}

impl Replay {
    fn new(run: &Asked) -> anyhow::Result<Replay> {
        let name = format!("classic@{}", run.kernel);
        let policy = Policy::by_name(&name).ok_or_else(|| anyhow!("kernel `{}` is not known", run.kernel))?;
        let config = Config { node_pages: vec![MEMORY_PAGES], policy, ..Config::default() };
        let mut engine = Engine::builder(config)?.build();
        let process = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(process, CpuId(0));
        let pages = |kb: u64| u32::try_from(kb * 1024 / PAGE_SIZE);
        let bdi =
            Bdi { ra_pages: pages(run.read_ahead_kb)?, io_pages: pages(run.max_sectors_kb)?, ..Bdi::default() };
        let file = engine.file_create(FileSpec {
            name: "file".to_owned(),
            pages: run.file_bytes.div_ceil(PAGE_SIZE).max(1),
            kind: FileKind::Regular,
            bdi,
        })?;
        let descriptors = (0..run.descriptors).map(|_| engine.open(task, file)).collect::<Result<_, _>>()?;
        engine.record_page_cache_events();
        Ok(Replay { engine, task, file, descriptors, map: None, bytes: run.file_bytes })
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
            Op::Fadvise { fd, offset, bytes, hint } => self.fadvise(self.descriptor(fd)?, offset, bytes, hint),
            Op::Sync { fd } => {
                let step = self.engine.fsync(self.task, self.descriptor(fd)?)?;
                self.serve(step).map(|_| ())
            }
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
            Op::Sleep | Op::ReadStat => Ok(()),
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
            let wanted = u32::try_from(end - first)?;
            self.access(Access { wanted, ..Access::new(object, page, true) })?;
        }
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
        let whole = offset.div_ceil(PAGE_SIZE)..end / PAGE_SIZE;
        if whole.is_empty() {
            return Ok(());
        }
        let object = self.descriptor(0)?;
        let step = self.engine.truncate(self.task, object, whole)?;
        self.serve(step).map(|_| ())
    }

    fn truncate(&mut self, bytes: u64) -> anyhow::Result<()> {
        let pages = bytes.div_ceil(PAGE_SIZE).max(1);
        if bytes >= self.bytes {
            self.engine.file_grow(self.file, pages)?;
        } else {
            let object = self.descriptor(0)?;
            let step = self.engine.file_shrink(self.task, object, pages)?;
            self.serve(step)?;
        }
        self.bytes = bytes;
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
        let behind = if end >= self.bytes { self.bytes.div_ceil(PAGE_SIZE) } else { end / PAGE_SIZE };
        for page in offset.div_ceil(PAGE_SIZE)..behind {
            self.engine.fadvise_dontneed(self.task, self.file, page)?;
        }
        Ok(())
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
            Hint::HugePage => return Ok(()),
            Hint::DontNeed => return Err(anyhow!("madvise(MADV_DONTNEED) is not replayed")),
        };
        Ok(self.engine.madvise(self.task, map, advice)?)
    }

    /// Serves a call to its end; transfers take no time.
    fn serve(&mut self, mut step: Step) -> anyhow::Result<Served> {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for io in ops.iter().filter_map(transfer_of) {
                self.engine.io_done(io, CpuId(0), Ok(()));
            }
            self.engine.take_woken(&mut Vec::new());
            step = match step {
                Step::Done(Served::Failed(error)) => return Err(anyhow!("{error}")),
                Step::Done(served) => return Ok(served),
                Step::Again | Step::Wait(_) => self.engine.resume(self.task),
            };
        }
    }
}

fn transfer_of(op: &EngineOp) -> Option<IoId> {
    match *op {
        EngineOp::ReadFile { io, .. } | EngineOp::WriteFile { io, .. } => Some(io),
        _ => None,
    }
}
