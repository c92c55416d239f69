//! A recording, played to the simulator: each recorded run becomes the machine that its README describes.
//!
//! What the recording machine had besides the objects is declared here by kind of run, and the same for all runs of a kind:
//!
//! - **Clock.** An access happens at the time interpolated between the recorded windows. Work costs nothing and the disk is
//!   infinitely fast, so time passes only between accesses. Timing decides when statistics are flushed, and those times are
//!   inputs. A swap write ends between two rounds of the reclaim call that started it, if not earlier. So it did on the recording
//!   machine: its CPU was emulated and slow, and its disk was a file in memory.
//! - **Base pages.** A handful of foreign pages is charged to the group. The page-cache streams tell what they are, because each
//!   takes up room until it is evicted. A mapped page of data, touched once, gets a second round. A page of program text, touched
//!   once, is executable: it is activated and leaves one round later. For files there is a busy block-device page, marked twice
//!   while it was read: it is active from the start and activated again each time reclaim meets it. Where the objects are mapped,
//!   the data page is not young when reclaim first comes. Runs with anonymous memory have one such page more than the object, by
//!   the group's last `memory.stat`: a page of the program's flags (`script`). Where the program marks each access in the kernel's
//!   trace, the block-device page is the only one.
//! - **The add batch.** Other programs have left folios in the CPU's add batch, between none and all but one. Their number decides
//!   when a batch of the object's first pages is drained. So it decides which of them are activated in the batch and which on the
//!   list, and in what order. It was not recorded, no more than the phase of the statistics worker. Both vary from one simulation
//!   of an envelope to the next.
//! - **Races with the disk.** When a plug is full in the middle of a batch, the disk may write it before the emulated CPU is through
//!   with the batch. How often it wins varies from none to all over the simulations of an envelope: the recorded repeats differ by
//!   a factor of four.
//! - **Interruptions.** MGLRU passes by an address space that has not had the CPU since its last walk. Two agings within one
//!   reclaim call show that, unless another thread ran in between. Where swap is synchronous, compression gives the scheduler
//!   time for it, and the recorded repeats did both. In an envelope a hash decides on each would-be skip, from the number of the
//!   simulation and of the skip. Where swap is a disk, and in a single simulation, nothing else ever runs.
//! - **Kernel memory**, where it is charged: the program was started elsewhere and joined the group with its stack and its upper page
//!   tables, for which the group doesn't pay.
//! - **The end.** `lru_gen` was read when the process had ended: its mappings are gone, and so are the pages of its program. On
//!   its way out it took a few pages more. Runs that end 1, 9 or 11 pages below their limit show one more batch of reclaim than the
//!   last `memory.stat`; those that end 13 or 24 below show none. Thirteen pages do that, as do twelve.

use std::fmt;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use pageout_engine::{
    Access, Advice, Bdi, Config, CpuId, Engine, FileId, FileKind, FileSpec, GenerationInfo, IoId, MemcgId,
    MmId, Nanos, NodeId, ObjectId, Op, PROFILES, PageCacheEvent, Policy, Served, Stat, StatFlush, Step,
    SwapKind, SwapSpec, TaskId,
};
use pageout_sim::cost::{Channel, Costs};
use pageout_sim::device::DeviceSpec;
use pageout_sim::{Machine, MachineSpec, Observer, Pace, TaskSpec};
use pageout_workload as workload;

use super::answers::REMOVED;
use super::missing;
use super::object::{Kind, Object};
use super::reads::Reads;
use super::recording::{BasePage, Recording, Run};
use super::script::{Flags, Script};
use crate::failure::told;

/// What the simulator made of a run.
pub(crate) struct Played {
    /// Changes of counters while the sequence ran: `/proc/vmstat`, and where it has none the group's live one.
    pub(crate) vmstat: Vec<(&'static str, i64)>,
    pub(crate) memcg: Vec<(&'static str, i64)>,
    /// By access of the sequence.
    pub(crate) missed: Vec<bool>,
    /// What entered and left the page cache of the run's last file, which in traced runs is the only one.
    pub(crate) stream: Vec<u32>,
    /// By access of the sequence, what it brought into the page cache; of runs that are played call by call.
    pub(crate) reads: Vec<Reads>,
    /// The group's generations after the process has ended, oldest first.
    pub(crate) generations: Vec<GenerationInfo>,
    /// The sequence it played.
    pub(crate) sequence: Arc<[workload::Access]>,
    /// The object whose file may have a hole at page 0: reading it misses, but needs no block.
    pub(crate) hole: Option<u32>,
}

/// Why a run could not be played.
#[derive(Debug)]
pub(crate) enum Unplayable {
    /// It needs mechanisms that are not modelled.
    Missing(Vec<String>),
    /// What was recorded of it makes no sense, or the simulator came to no end with it.
    Bad(anyhow::Error),
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unplayable::Missing(mechanisms) => write!(f, "not modelled: {}", mechanisms.join(", ")),
            Unplayable::Bad(error) => f.write_str(&told(error)),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Unplayable {
    fn from(error: E) -> Unplayable {
        Unplayable::Bad(error.into())
    }
}

const GROUP: &str = "job";
const GROUP_PATH: &str = "/job";
const STAT_FILE: &str = "/sys/fs/cgroup/job/memory.stat";
const PROGRAM_PAGES: u64 = 2;

/// What a recording leaves open. Each simulation of an envelope supposes something else, spread evenly over what can be.
#[derive(Clone, Copy)]
pub(crate) struct Unrecorded {
    /// From 0.
    pub(crate) simulation: usize,
    pub(crate) simulations: usize,
}

impl Unrecorded {
    /// When the statistics worker ran first: it counts from the boot.
    fn flush_phase(self, period: Nanos) -> Nanos {
        Nanos(period.0 * self.simulation as u64 / self.simulations as u64)
    }

    /// How many of a hundred races the disk wins against the rest of the batch in whose middle it was given a full plug:
    /// from none to all.
    fn writes_won(self) -> u8 {
        (100 * self.simulation / (self.simulations - 1).max(1)) as u8
    }

    /// Folios of other groups in the CPU's add batch, as earlier programs left it. The steps are wide so that this and the
    /// flush phase, which creeps, go through all combinations of early and late.
    fn queued_folios(self, capacity: usize) -> u64 {
        const STEP: usize = 7;
        (self.simulation * STEP % capacity) as u64
    }

    /// Seed of the interruptions of reclaim by other threads, where it is open whether there were any; 0 for none.
    fn interruptions(self, run: &Run) -> u32 {
        if self.simulations > 1 && run.swap == "zram" { self.simulation as u32 + 1 } else { 0 }
    }
}

/// A run that can be played, as often as is asked.
pub(crate) struct Playable<'a> {
    run: &'a Run,
    objects: Vec<Object>,
    policy: Policy,
    sequence: Arc<[workload::Access]>,
    flushes: Option<&'a [u64]>,
}

impl<'a> Playable<'a> {
    /// Reads what a run accesses, if everything that it needs is modelled.
    pub(crate) fn new(recording: &'a Recording, run: &'a Run) -> Result<Playable<'a>, Unplayable> {
        if run.objects.is_empty() {
            return Err(anyhow!("the run has no objects").into());
        }
        let objects =
            run.objects.iter().map(|text| Object::parse(text)).collect::<anyhow::Result<Vec<Object>>>()?;
        let missing = missing::mechanisms(run, &objects);
        if !missing.is_empty() {
            return Err(Unplayable::Missing(missing));
        }
        let policy = policy_of(run)?;
        let sequence = recording.sequence(run)?;
        check_sequence(&objects, &sequence)?;
        if let Some(missing) = missing::mechanisms_of_accesses(&objects, &sequence) {
            return Err(Unplayable::Missing(vec![missing]));
        }
        Ok(Playable { run, objects, policy, sequence, flushes: recording.flushes(run) })
    }

    pub(crate) fn play(&self, unrecorded: Unrecorded) -> Result<Played, Unplayable> {
        let stage = Stage::build(self, unrecorded)?;
        if self.is_read_ahead() { stage.perform_calls(self) } else { stage.perform(self, unrecorded) }
    }

    fn is_read_ahead(&self) -> bool {
        self.objects.iter().any(Object::is_read_ahead)
    }
}

fn check_sequence(objects: &[Object], sequence: &[workload::Access]) -> anyhow::Result<()> {
    for (number, access) in sequence.iter().enumerate() {
        match objects.get(access.object() as usize) {
            None => {
                bail!("access {number} is to object {}, but the run has {}", access.object(), objects.len())
            }
            Some(object) if access.page() >= object.units() => {
                bail!("access {number} is to page {} of {}", access.page(), object.text)
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A profile by its name, or the one of the kernel's version: `mglru` of 6.12.117 is `mglru@6.12`.
fn policy_of(run: &Run) -> anyhow::Result<Policy> {
    if let Some(policy) = Policy::by_name(&run.policy) {
        return Ok(policy);
    }
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    let known = known.join(", ");
    let Some(kernel) = &run.kernel else {
        bail!(
            "`kernel`, which says whose `{}` it is, is missing (or name a profile in `policy`: {known})",
            run.policy
        );
    };
    let era: Vec<&str> = kernel.split('.').take(2).collect();
    let name = format!("{}@{}", run.policy, era.join("."));
    Policy::by_name(&name).ok_or_else(|| {
        anyhow!("there is no profile `{name}`; the one to compare with can be named in `policy`: {known}")
    })
}

/// Kernel memory is charged unless the command line of the kernel says that it is not.
fn has_kmem(run: &Run) -> bool {
    !run.cmdline.contains("cgroup.memory=nokmem")
}

/// The program was started by a shell and joined the group afterwards: it has its stack and its upper page tables, and the group
/// doesn't pay for them. (`kernel_stack` of the recorded groups is 0, and `pagetables` is a page for 2 MiB of the object.)
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

/// A run that doesn't say maps each page by itself.
fn fault_around_bytes(run: &Run) -> u32 {
    run.fault_around_bytes.clamp(pageout_engine::PAGE_SIZE, 2 << 20) as u32
}

/// In the order in which they are charged. See the head of this file.
fn base_pages(run: &Run, objects: &[Object]) -> Vec<BasePage> {
    use BasePage::{Data, Device, Flags, Text};
    let has = |kinds: &[Kind]| objects.iter().any(|object| kinds.contains(&object.kind));
    let has_files =
        has(&[Kind::Read, Kind::Mapped, Kind::MappedRandom]) || objects.iter().any(Object::is_read_ahead);
    match &run.base_pages {
        Some(declared) => declared.clone(),
        None if run.is_marked() => vec![Device],
        None => {
            let kinds = [(has(&[Kind::Anon]), Flags), (true, Data), (true, Text), (has_files, Device)];
            kinds.into_iter().filter_map(|(is_there, page)| is_there.then_some(page)).collect()
        }
    }
}

/// An engine with the run's group, objects and base pages, before the first access.
struct Stage {
    engine: Engine,
    group: MemcgId,
    process: MmId,
    task: TaskId,
    /// Position of the run's first object among the task's.
    first: u32,
    channels: Vec<Channel>,
    files: Vec<FileId>,
    /// The program's own file.
    program: FileId,
    swap: Option<pageout_engine::SwapId>,
    hole: Option<u32>,
    flags: Option<Flags>,
    /// By object of the run, the flag of its first page, if it is anonymous.
    first_flags: Vec<Option<u64>>,
    /// Some object is read ahead, with windows of so many pages.
    is_read_ahead: bool,
    ra_pages: u32,
    /// Files that several objects may have in common, by their paths.
    shared: Vec<(String, FileId)>,
}

/// Pages of the recording machine's files.
const FILES: &[(&str, u64)] = &[("/mnt/f", 65_536), ("/mnt/g", 16_384), ("/mnt/s", 1000)];

/// Where the blocks of a file are in two pieces, the first page of the second one: no request goes across.
const BREAK: (&str, u64) = ("/mnt/f", 26_303);

impl Stage {
    fn build(playable: &Playable, unrecorded: Unrecorded) -> Result<Stage, Unplayable> {
        let &Playable { run, ref objects, policy, flushes, .. } = playable;
        let config = Config {
            node_pages: vec![run.mem_total_kb.saturating_mul(1024) / pageout_engine::PAGE_SIZE],
            hz: run.hz,
            swappiness: run.swappiness,
            stat_flush: if flushes.is_some() { StatFlush::Manual } else { StatFlush::Periodic },
            writes_won: unrecorded.writes_won(),
            tlb_entries: tlb_entries(run),
            interruptions: unrecorded.interruptions(run),
            fault_around_bytes: fault_around_bytes(run),
            kmem: has_kmem(run),
            policy,
            ..Config::default()
        };
        let queued = unrecorded.queued_folios(config.folio_batch);
        let mut engine = Engine::new(config)?;
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
        let mut swap_on = |kind| engine.swap_on(SwapSpec { pages: run.swap_pages, kind });
        let swap = match run.swap.as_str() {
            "none" => None,
            "disk" => Some(swap_on(SwapKind::Device)?),
            "zram" => Some(swap_on(SwapKind::Synchronous)?),
            other => return Err(anyhow!("swap is `{other}`, and must be none, disk or zram").into()),
        };
        let limit = run.limit_pages.saturating_mul(pageout_engine::PAGE_SIZE).to_string();
        let _ = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit)?;
        let program = FileSpec {
            name: "program".to_string(),
            pages: PROGRAM_PAGES,
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
            swap,
            hole: objects.iter().position(|object| object.kind == Kind::Read).map(|at| at as u32),
            flags: None,
            first_flags: first_flags(objects),
            is_read_ahead: playable.is_read_ahead(),
            ra_pages: u32::try_from(run.read_ahead_kb / 4).unwrap_or(u32::MAX).min(Bdi::PAGES_MAX),
            shared: Vec::new(),
        };
        for page in base_pages(run, objects) {
            stage.add_base_page(page, objects)?;
        }
        stage.first = stage.channels.len() as u32;
        for object in objects {
            stage.add_object(object)?;
        }
        Ok(stage)
    }

    fn add_file(&mut self, name: &str, pages: u64, kind: FileKind) -> Result<FileId, Unplayable> {
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
        let pages = FILES.iter().find(|(path, _)| *path == object.path).map_or(0, |&(_, pages)| pages);
        let pages = pages.max(object.pages);
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

    /// Charges a page before the first access.
    fn add_base_page(&mut self, page: BasePage, objects: &[Object]) -> Result<(), Unplayable> {
        match page {
            BasePage::Flags => {
                let object = self.channels.len() as u32;
                let flags = self.engine.map_anon(self.task, 1, Advice::Normal)?;
                self.channels.push(Channel::Mapped);
                let anon = objects.iter().filter(|object| object.kind == Kind::Anon);
                let pages = anon.map(|object| object.pages).sum();
                if pages == 0 {
                    return Err(anyhow!(
                        "`base_pages` has flags of first touches, but no object is anonymous"
                    )
                    .into());
                }
                self.flags = Some(Flags { object, pages });
                self.touch_for(flags, 0, true)
            }
            BasePage::Data => {
                let data = self.map_program(false)?;
                self.touch(data, 0)?;
                if objects.iter().any(Object::is_mapped_file) {
                    self.engine.mark_idle(self.task, data, 0)?;
                }
                Ok(())
            }
            BasePage::Text => {
                let text = self.map_program(true)?;
                self.touch(text, 1)
            }
            BasePage::Device => {
                let device = self.add_file("block device", 1, FileKind::Regular)?;
                for _ in 0..2 {
                    // Two descriptors: reading the same page twice through one of them would mark it once.
                    let opened = self.engine.open(self.task, device)?;
                    self.channels.push(Channel::File);
                    self.touch(opened, 0)?;
                }
                self.engine.pin(device, 0);
                Ok(())
            }
        }
    }

    fn map_program(&mut self, executable: bool) -> Result<ObjectId, Unplayable> {
        self.channels.push(Channel::Mapped);
        Ok(self.engine.map_file(self.task, self.program, Advice::Normal, executable)?)
    }

    /// An access before the clock starts.
    fn touch(&mut self, object: ObjectId, page: u64) -> Result<(), Unplayable> {
        self.touch_for(object, page, false)
    }

    fn touch_for(&mut self, object: ObjectId, page: u64, write: bool) -> Result<(), Unplayable> {
        serve(&mut self.engine, self.task, Access::new(object, page, write))
    }

    fn flag_of(&self, access: &workload::Access) -> Option<u64> {
        self.first_flags[access.object() as usize].map(|first| first + access.page())
    }

    fn perform(self, playable: &Playable, unrecorded: Unrecorded) -> Result<Played, Unplayable> {
        let &Playable { run, ref sequence, flushes, .. } = playable;
        let (group, process, task, program) = (self.group, self.process, self.task, self.program);
        let script = Script::new(sequence, self.first, self.flags, |access| self.flag_of(access));
        let clock = run.windows.iter().map(|window| (window.op, Nanos((window.t * 1e9) as u64)));
        let mut points = vec![(0, Nanos::ZERO)];
        points.extend(clock.filter(|&(op, _)| op > 0).map(|(op, at)| (script.start_of(op), at)));
        points.dedup_by_key(|&mut (index, _)| index);

        let mut spec =
            MachineSpec { costs: Costs::free(), devices: vec![instant_disk()], ..MachineSpec::default() };
        if let Some(period) = self.engine.stat_flush_period() {
            spec.stat_flush_phase = unrecorded.flush_phase(period);
        }
        spec.files = self.files.iter().map(|&file| (file, 0)).collect();
        if run.swap == "disk" {
            spec.swaps = self.swap.into_iter().map(|swap| (swap, 0)).collect();
        }
        let before = Snapshot::take(&self.engine, self.group);
        let stream = script.stream();
        let source = Box::new(move |_| Ok(Box::new(stream.clone()) as Box<dyn workload::AccessStream>));
        let mut player = TaskSpec::new(self.task, &run.workload, GROUP_PATH, self.channels, source);
        player.pace = Pace::Timetable(points);
        match flushes {
            Some(flushes) => {
                player.flush_before = flushes.iter().map(|&op| script.start_of(op)).collect();
            }
            // The program reads its group's memory.stat at the end of each window.
            None => {
                let reads = run.windows.iter().filter(|window| window.op < sequence.len() as u64);
                player.stat_reads_at =
                    reads.map(|window| (script.start_of(window.op), STAT_FILE.to_string())).collect();
            }
        }
        let mut machine = Machine::new(self.engine, spec)?;
        machine.record_page_cache_events();
        machine.task_add(player)?;
        let mut watcher = Watcher {
            missed: vec![false; script.len()],
            file: *self.files.last().expect("there are base pages"),
            stream: Vec::new(),
        };
        machine.run(&mut watcher)?;
        let Watcher { missed, stream, .. } = watcher;
        let after = Snapshot::take(machine.engine(), group);
        let engine = machine.engine_mut();
        if run.exit_pages > 0 {
            let last = engine.map_anon(task, run.exit_pages, Advice::Normal)?;
            for page in 0..run.exit_pages {
                serve(engine, task, Access::new(last, page, true))?;
            }
        }
        engine.process_exit(process);
        for page in 0..PROGRAM_PAGES {
            engine.fadvise_dontneed(task, program, page)?;
        }
        let generations = engine.lru_gen(group, NodeId(0));
        Ok(Played {
            vmstat: before.to(&after, |snapshot| &snapshot.vmstat),
            memcg: before.to(&after, |snapshot| &snapshot.memcg),
            missed: script.fold(&missed),
            stream,
            reads: Vec::new(),
            generations,
            sequence: sequence.clone(),
            hole: self.hole,
        })
    }

    /// Plays a run call by call: the next begins when the reads of the one before are over. Time stands still, as the statistics
    /// flushes are the recorded ones.
    fn perform_calls(mut self, playable: &Playable) -> Result<Played, Unplayable> {
        let Playable { objects, sequence, flushes, .. } = playable;
        self.engine.record_page_cache_events();
        self.engine.take_page_cache_events(&mut Vec::new());
        let before = Snapshot::take(&self.engine, self.group);
        let mut flushes = flushes.unwrap_or_default().iter().copied().peekable();
        let (mut reads, mut missed, mut stream) = (Vec::new(), Vec::new(), Vec::new());
        let mut events = Vec::new();
        for (number, access) in (0..).zip(sequence.iter()) {
            while flushes.next_if(|&before| before <= number).is_some() {
                self.engine.flush_stats();
            }
            let object = &objects[access.object() as usize];
            let requests = self.call(object, ObjectId(self.first + access.object()), access.page())?;
            events.clear();
            self.engine.take_page_cache_events(&mut events);
            events.retain(|event| self.shared.iter().any(|&(_, file)| file == event.file));
            let inserted = events.iter().filter(|event| !event.removed).map(|event| event.page as u32);
            reads.push(Reads { inserted: inserted.collect(), requests });
            missed.push(reads.last().is_some_and(|reads| !reads.requests.is_empty()));
            stream.extend(
                events.iter().map(|event| event.page as u32 | if event.removed { REMOVED } else { 0 }),
            );
        }
        let after = Snapshot::take(&self.engine, self.group);
        Ok(Played {
            vmstat: before.to(&after, |snapshot| &snapshot.vmstat),
            memcg: before.to(&after, |snapshot| &snapshot.memcg),
            missed,
            stream,
            reads,
            generations: self.engine.lru_gen(self.group, NodeId(0)),
            sequence: sequence.clone(),
            hole: None,
        })
    }

    /// One word of a sequence: a call of some pages, a load, or advice. Returns the requests that it caused.
    fn call(&mut self, object: &Object, id: ObjectId, at: u64) -> Result<Vec<(u32, u32)>, Unplayable> {
        let (size, unit) = (pageout_engine::PAGE_SIZE, object.unit());
        let mut requests = Vec::new();
        if object.kind == Kind::WillNeed {
            let step = self.engine.readahead(self.task, id, at, object.request)?;
            serve_step(&mut self.engine, self.task, step, |op| requests.extend(pieces(op, &self.shared)))?;
            return Ok(requests);
        }
        let end = (at + object.request).min(object.units()) * unit;
        for page in at * unit / size..end.div_ceil(size) {
            let wanted = u32::try_from(end - page * size).map_err(|_| anyhow!("a call for {end} bytes"))?;
            let access = Access { wanted, ..Access::new(id, page, false) };
            let step = self.engine.start(self.task, access);
            serve_step(&mut self.engine, self.task, step, |op| requests.extend(pieces(op, &self.shared)))?;
        }
        Ok(requests)
    }
}

/// The requests that a read of a file becomes.
fn pieces(op: &Op, shared: &[(String, FileId)]) -> Vec<(u32, u32)> {
    let Op::ReadFile { file, page, pages, .. } = *op else { return Vec::new() };
    let Some((path, _)) = shared.iter().find(|&&(_, known)| known == file) else { return Vec::new() };
    let end = page + u64::from(pages);
    let cut = if path == BREAK.0 { BREAK.1.clamp(page, end) } else { end };
    let pieces = [(page, cut), (cut, end)].into_iter().filter(|(first, end)| first < end);
    pieces.map(|(first, end)| (first as u32, (end - first) as u32)).collect()
}

fn first_flags(objects: &[Object]) -> Vec<Option<u64>> {
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

/// Serves an access to its end; transfers take no time.
fn serve(engine: &mut Engine, task: TaskId, access: Access) -> Result<(), Unplayable> {
    let step = engine.start(task, access);
    serve_step(engine, task, step, |_| {})
}

fn serve_step(
    engine: &mut Engine,
    task: TaskId,
    mut step: Step,
    mut on_op: impl FnMut(&Op),
) -> Result<(), Unplayable> {
    loop {
        let mut ops = Vec::new();
        engine.take_ops(&mut ops);
        ops.iter().for_each(&mut on_op);
        let transfers: Vec<IoId> = ops.iter().filter_map(transfer_of).collect();
        transfers.into_iter().for_each(|io| engine.io_done(io, CpuId(0), Ok(())));
        engine.take_woken(&mut Vec::new());
        step = match step {
            Step::Done(Served::Failed(error)) => return Err(error.into()),
            Step::Done(_) => return Ok(()),
            Step::Again | Step::Wait(_) => engine.resume(task),
        };
    }
}

pub(super) fn transfer_of(op: &Op) -> Option<IoId> {
    match *op {
        Op::ReadFile { io, .. } | Op::ReadSwap { io, .. } | Op::WriteSwap { io, .. } => Some(io),
        _ => None,
    }
}

/// Counters at a moment.
struct Snapshot {
    vmstat: Vec<i64>,
    memcg: Vec<i64>,
}

impl Snapshot {
    fn take(engine: &Engine, group: MemcgId) -> Snapshot {
        Snapshot {
            vmstat: Stat::ALL.iter().map(|&stat| engine.vmstat(stat)).collect(),
            memcg: Stat::ALL.iter().map(|&stat| engine.memcg_stat_now(group, stat)).collect(),
        }
    }

    fn to(&self, after: &Snapshot, of: impl Fn(&Snapshot) -> &Vec<i64>) -> Vec<(&'static str, i64)> {
        let names = Stat::ALL.iter().map(|stat| stat.name());
        names
            .zip(of(self).iter().zip(of(after)))
            .map(|(name, (before, after))| (name, after - before))
            .collect()
    }
}

/// Notes what missed and what came and went.
struct Watcher {
    missed: Vec<bool>,
    file: FileId,
    stream: Vec<u32>,
}

impl Observer for Watcher {
    fn access(&mut self, _task: usize, index: u64, served: &Served) {
        if matches!(served, Served::Major(_)) {
            self.missed[index as usize] = true;
        }
    }

    fn page_cache(&mut self, _now: Nanos, event: PageCacheEvent) {
        if event.file == self.file {
            self.stream.push(event.page as u32 | if event.removed { REMOVED } else { 0 });
        }
    }
}

/// See the head of this file.
fn instant_disk() -> DeviceSpec {
    use pageout_sim::device::Latency;
    DeviceSpec {
        name: "disk".to_string(),
        read: Latency::Constant(Nanos::ZERO),
        write: Latency::Constant(Nanos::ZERO),
        sequential: None,
        tail: None,
        read_bandwidth: u64::MAX,
        write_bandwidth: u64::MAX,
        iops_max: None,
        queue_depth: u32::MAX,
        nr_requests: u32::MAX,
        latency_covers: u64::MAX,
        faults: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BasePage::{Data, Device, Flags, Text};

    fn run(change: serde_json::Value) -> Run {
        let mut run = serde_json::json!({
            "id": "w.mglru.1", "workload": "w", "policy": "mglru", "rep": "1", "sequence": "s", "limit_pages": 100,
            "objects": [], "swap": "none", "swappiness": 60, "cmdline": "", "mem_total_kb": 4096, "cpus": 1,
            "ops": 1, "windows": [],
        });
        run.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn only_simulations_of_an_envelope_with_synchronous_swap_are_interrupted() {
        let seed = |swap: &str, simulation, simulations| {
            let run = run(serde_json::json!({ "swap": swap }));
            Unrecorded { simulation, simulations }.interruptions(&run)
        };
        assert_eq!(
            [seed("disk", 0, 16), seed("disk", 15, 16), seed("none", 3, 16), seed("zram", 0, 1)],
            [0; 4]
        );
        // Zero would be none, and two alike would be the same simulation twice.
        assert_eq!([seed("zram", 0, 16), seed("zram", 15, 16)], [1, 16]);
    }

    #[test]
    fn the_groups_foreign_pages_follow_from_the_kind_of_run_unless_they_are_declared() {
        let pages = |objects: &[&str], change| {
            let objects: Vec<Object> = objects.iter().map(|text| Object::parse(text).unwrap()).collect();
            base_pages(&run(change), &objects)
        };
        let plain = || serde_json::json!({});
        assert_eq!(pages(&["read:9:/mnt/f"], plain()), [Data, Text, Device]);
        assert_eq!(pages(&["mmap:9:/mnt/f"], plain()), [Data, Text, Device]);
        assert_eq!(pages(&["read:9:/tmpfs/f"], plain()), [Data, Text]);
        assert_eq!(pages(&["anon:9"], plain()), [Flags, Data, Text]);
        assert_eq!(pages(&["read:9:/mnt/f", "anon:9"], plain()), [Flags, Data, Text, Device]);
        let marked = serde_json::json!({ "wl_options": "-m -w 4" });
        assert_eq!(pages(&["read:9:/mnt/f"], marked), [Device]);
        let declared = serde_json::json!({ "wl_options": "-m", "base_pages": ["text", "data"] });
        assert_eq!(pages(&["read:9:/mnt/f"], declared), [Text, Data]);
    }
}
