//! The engine of a recorded group before the first access: its machine, its objects, and what else it holds.
//!
//! - **The add batch.** Other programs have left folios in the CPU's add batch, between none and all but one. Their number decides
//!   when a batch of the object's first pages is drained. So it decides which of them are activated in the batch and which on the
//!   list, and in what order. It was not recorded, no more than the phase of the statistics worker. Both vary from one simulation
//!   of an envelope to the next.
//! - **Kernel memory**, where it is charged: the program was started elsewhere and joined the group with its stack and its upper page
//!   tables, for which the group doesn't pay.

use anyhow::anyhow;
use pageout_engine::{
    Access, Advice, Bdi, Compressibility, Config, CpuId, Engine, FileId, FileKind, FileSpec, FullPlug,
    Lengths, MemcgId, MmId, ObjectId, StatFlush, SwapKind, SwapSpec, TaskId,
};
use pageout_sim::cost::Channel;

use super::super::object::{Kind, Object};
use super::super::recording::Run;
use super::super::script::Flags;
use super::access::serve;
use super::base_pages;
use super::{Playable, Unplayable, Unrecorded};

const GROUP: &str = "job";

/// An engine with the run's group, objects and base pages, before the first access.
pub(super) struct Stage {
    pub(super) engine: Engine,
    pub(super) group: MemcgId,
    pub(super) process: MmId,
    pub(super) task: TaskId,
    /// Position of the run's first object among the task's.
    pub(super) first: u32,
    pub(super) channels: Vec<Channel>,
    pub(super) files: Vec<FileId>,
    /// The program's own file.
    pub(super) program: FileId,
    pub(super) program_pages: u64,
    /// The mapping of its text, after its creation.
    pub(super) text: Option<ObjectId>,
    pub(super) swap: Option<pageout_engine::SwapId>,
    pub(super) hole: Option<u32>,
    pub(super) flags: Option<Flags>,
    /// By object of the run, the flag of its first page, if it is anonymous.
    pub(super) first_flags: Vec<Option<u64>>,
    /// Some object is read ahead, with windows of N pages.
    pub(super) is_read_ahead: bool,
    pub(super) ra_pages: u32,
    /// Files that several objects may have in common, by their paths.
    pub(super) shared: Vec<(String, FileId)>,
}

/// Pages of the recording machine's files.
const FILES: &[(&str, u64)] = &[("/mnt/f", 65_536), ("/mnt/g", 16_384), ("/mnt/s", 1000)];

/// What a page of the recording program comes to, half of it random and half constant: the mean of the recorded pools, by lzo.
const COMPRESSED_BYTES: u16 = 2213;

/// A disk that wins so many of a hundred races against the rest of the batch in whose middle it was given a full plug.
fn disk(writes_won: u8) -> FullPlug {
    let mut fillings = 0;
    let won = move |fillings: u64| fillings * u64::from(writes_won) / 100;
    Box::new(move |writes| {
        fillings += 1;
        let has_won = won(fillings) > won(fillings - 1);
        vec![Ok(()); if has_won { writes.len() } else { 0 }]
    })
}

impl Stage {
    pub(super) fn build(playable: &Playable, unrecorded: Unrecorded) -> Result<Stage, Unplayable> {
        let &Playable { run, ref objects, base_pages, ref inputs, .. } = playable;
        let config = Config {
            node_pages: vec![run.mem_total_kb.saturating_mul(1024) / pageout_engine::PAGE_SIZE],
            hz: run.hz,
            swappiness: run.swappiness,
            stat_flush: if inputs.flushes.is_some() { StatFlush::Manual } else { StatFlush::Periodic },
            tlb_entries: tlb_entries(run),
            interruptions: unrecorded.interruptions(run),
            fault_around_bytes: fault_around_bytes(run),
            kmem: has_kmem(run),
            page_cluster: 0,
            zswap_enabled: run.zswap != 0,
            zswap_shrinker_enabled: run.zswap_shrinker != 0,
            ..playable.config()
        };
        let queued = unrecorded.queued_folios(config.folio_batch);
        let mut builder = Engine::builder(config)?;
        builder.set_full_plug(disk(unrecorded.writes_won()));
        let mut swap_on = |kind| builder.swap_on(SwapSpec { pages: run.swap_pages, kind });
        let swap = match run.swap.as_str() {
            "none" => None,
            "disk" => Some(swap_on(SwapKind::Device)?),
            "zram" => Some(swap_on(SwapKind::Synchronous)?),
            other => return Err(anyhow!("found swap `{other}`, expected none, disk or zram").into()),
        };
        if let Some(swap) = swap.filter(|_| run.zswap != 0) {
            let lengths = Lengths::Even { least: COMPRESSED_BYTES, most: COMPRESSED_BYTES };
            let contents = Compressibility { zero_filled: 0, same_filled: 0, lengths };
            builder.swap_compressibility(swap, contents)?;
        }
        let mut engine = builder.build();
        leave_queued(&mut engine, queued)?;
        let group = engine.memcg_create(MemcgId::ROOT, GROUP)?;
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let mut channels = Vec::new();
        if has_kmem(run) {
            channels.push(Channel::Mapped);
            live_elsewhere(&mut engine, task)?;
        }
        engine.process_move(mm, group);
        let limit = run.limit_pages.saturating_mul(pageout_engine::PAGE_SIZE).to_string();
        let _ = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit)?;
        let base_pages = base_pages::of(base_pages, run, objects)?;
        let program_pages = base_pages::program_pages(&base_pages);
        let program = FileSpec {
            name: "program".to_string(),
            pages: program_pages,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        };
        let program = engine.file_create(program)?;
        let mut stage = Stage {
            engine,
            group,
            process: mm,
            task,
            first: 0,
            channels,
            files: vec![program],
            program,
            program_pages,
            text: None,
            swap,
            hole: objects.iter().position(|object| object.kind == Kind::Read).map(|at| at as u32),
            flags: None,
            first_flags: first_flags(objects),
            is_read_ahead: playable.is_read_ahead(),
            ra_pages: ra_pages(run),
            shared: Vec::new(),
        };
        for (kind, page) in base_pages {
            stage.add_base_page(kind, page, objects)?;
        }
        stage.first = stage.channels.len() as u32;
        for object in objects {
            stage.add_object(object)?;
        }
        Ok(stage)
    }

    pub(super) fn add_file(&mut self, name: &str, pages: u64, kind: FileKind) -> Result<FileId, Unplayable> {
        let file = self.engine.file_create(FileSpec {
            name: name.to_string(),
            pages,
            kind,
            bdi: Bdi::NO_READAHEAD,
        })?;
        self.files.push(file);
        Ok(file)
    }

    /// The file of an object. Objects that are read ahead may have it in common, and can be smaller than it.
    fn file_at(&mut self, object: &Object) -> Result<FileId, Unplayable> {
        if !self.is_read_ahead {
            return self.add_file("/mnt/f", object.pages, FileKind::Regular);
        }
        if let Some(&(_, file)) = self.shared.iter().find(|(path, _)| *path == object.path) {
            return Ok(file);
        }
        let pages = file_pages(object);
        let bdi = Bdi { ra_pages: self.ra_pages, ..Bdi::default() };
        let spec = FileSpec { name: object.path.clone(), pages, kind: FileKind::Regular, bdi };
        let file = self.engine.file_create(spec)?;
        self.files.push(file);
        self.shared.push((object.path.clone(), file));
        Ok(file)
    }

    fn add_object(&mut self, object: &Object) -> Result<(), Unplayable> {
        let (task, pages) = (self.task, object.pages);
        let channel = match object.kind {
            Kind::Read => {
                let file = self.file_at(object)?;
                let opened = self.engine.open(task, file)?;
                self.engine.fadvise(task, opened, Advice::Random)?;
                Channel::File
            }
            Kind::Tmpfs => {
                let file = self.add_file("/tmpfs/f", pages, FileKind::Tmpfs)?;
                self.engine.open(task, file)?;
                Channel::File
            }
            Kind::Mapped | Kind::MappedRandom => {
                let advice = if object.kind == Kind::Mapped { Advice::Normal } else { Advice::Random };
                let file = self.add_file("/mnt/f", pages, FileKind::Regular)?;
                self.engine.map_file(task, file, advice, false)?;
                Channel::Mapped
            }
            Kind::Anon => {
                self.engine.map_anon(task, pages, Advice::Normal)?;
                Channel::Mapped
            }
            Kind::Readahead | Kind::Half | Kind::ReadaheadSequential | Kind::WillNeed => {
                let opened = match object.shares {
                    Some(other) => self.engine.open_same(task, (task, ObjectId(self.first + other)))?,
                    None => {
                        let file = self.file_at(object)?;
                        self.engine.open(task, file)?
                    }
                };
                if object.kind == Kind::ReadaheadSequential {
                    self.engine.fadvise(task, opened, Advice::Sequential)?;
                }
                Channel::File
            }
            Kind::MappedReadahead(advice) => {
                match object.shares {
                    Some(other) => {
                        self.engine.map_same(task, (task, ObjectId(self.first + other)), advice, false)?;
                    }
                    None => {
                        let file = self.file_at(object)?;
                        self.engine.map_file(task, file, advice, false)?;
                    }
                }
                Channel::Mapped
            }
        };
        self.channels.push(channel);
        Ok(())
    }
}

/// Kernel memory is charged unless the command line of the kernel says that it is not.
pub(super) fn has_kmem(run: &Run) -> bool {
    !run.cmdline.contains("cgroup.memory=nokmem")
}

/// The program was started by a shell and joined the group afterwards. Its stack and upper page tables already exist, and are not charged
/// to the group. (`kernel_stack` of the recorded groups is 0, and `pagetables` is one page per 2 MiB of the object.)
fn live_elsewhere(engine: &mut Engine, task: TaskId) -> Result<(), Unplayable> {
    let object = engine.map_anon(task, 1, Advice::Normal)?;
    serve(engine, task, Access::new(object, 0, true))
}

/// Most recordings flush translations every 32 accesses, so that the accessed bits are ideal. Those that say `-f 0` don't: there
/// the emulator's own cache of translations shows, direct-mapped with 256 entries as it starts out.
fn tlb_entries(run: &Run) -> u32 {
    let is_flushed = !run.wl_options.contains("-f 0");
    run.tlb_entries.unwrap_or(if is_flushed { 0 } else { 256 })
}

/// Pages of a readahead window.
pub(super) fn ra_pages(run: &Run) -> u32 {
    u32::try_from(run.read_ahead_kb / 4).unwrap_or(u32::MAX).min(Bdi::PAGES_MAX)
}

/// An object may be smaller than its file.
pub(super) fn file_pages(object: &Object) -> u64 {
    let known = FILES.iter().find(|(path, _)| *path == object.path).map_or(0, |&(_, pages)| pages);
    known.max(object.pages)
}

/// A run that doesn't say maps each page by itself.
pub(super) fn fault_around_bytes(run: &Run) -> u32 {
    run.fault_around_bytes.clamp(pageout_engine::PAGE_SIZE, 2 << 20) as u32
}
pub(super) fn first_flags(objects: &[Object]) -> Vec<Option<u64>> {
    let mut next = 0;
    let first = |object: &Object| {
        let is_anon = object.kind == Kind::Anon;
        let first = next;
        next += u64::from(is_anon) * object.pages;
        is_anon.then_some(first)
    };
    objects.iter().map(first).collect()
}

/// Another program's first touches, outside the group: so many folios wait in the CPU's add batch.
fn leave_queued(engine: &mut Engine, folios: u64) -> Result<(), Unplayable> {
    if folios == 0 {
        return Ok(());
    }
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, CpuId(0));
    let object = engine.map_anon(task, folios, Advice::Normal)?;
    (0..folios).try_for_each(|page| serve(engine, task, Access::new(object, page, true)))
}
