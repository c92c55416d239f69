//! A recording, played to the simulator: each recorded run becomes the machine that its README describes.
//!
//! What the recording machine had besides the objects is declared here by kind of run, and the same for all runs of a kind:
//!
//! - **Clock.** An access happens at the time interpolated between the recorded windows. Work costs nothing and the disk is
//!   infinitely fast, so that time passes only between accesses; what the timing decides is when statistics are flushed, and
//!   those times are inputs. A swap write thus ends between two rounds of the reclaim call that started it, if not earlier, as
//!   on the recording machine, whose (emulated) CPU was slow and whose disk was a file in memory.
//! - **Base pages.** A handful of foreign pages is charged to the group. What they are can be told from the page-cache
//!   streams, where each of them takes up room until it is evicted: a mapped page of data that was touched once (it gets a
//!   second round), a page of program text touched once (executable, so it is activated and leaves one round later), and for
//!   files a busy block-device page that was marked twice while it was read (active from the start, and activated again each
//!   time reclaim meets it). Where the objects are mapped, the data page is not young when reclaim first comes. Runs with
//!   anonymous memory have one page of it more than the object, as the last `memory.stat` of the group counts: a page of the
//!   program's flags, which `script` tells of.
//! - **The add batch.** Other programs have left folios in the CPU's add batch, between none and all but one. How many decides
//!   when a batch of the object's first pages is drained, and so which of them are activated in the batch and which on the list,
//!   in what order. It is as little recorded as the statistics worker's phase, and varies with it from one simulation of
//!   an envelope to the next.
//! - **Races with the disk.** Where a plug is full in the middle of a batch, the disk may have written it before the CPU, which is
//!   emulated, is through with the batch. How often it wins differs from none to all from one simulation of an envelope to the
//!   next: the recorded repeats differ by a factor of four.
//! - **The end.** `lru_gen` was read when the process had ended: what it had mapped is gone, and so are the two pages of its
//!   program. On its way out it took a few pages more: in `fr-twophase`, which ends a page below its limit, the lists are shorter
//!   by then than in the last `memory.stat`, so that there was another batch of reclaim. Two pages are the fewest that ask for
//!   one; the other exact runs have room for more than any program takes to end.

use std::fmt;

use anyhow::anyhow;
use pageout_engine::{
    Access, Advice, Config, CpuId, Engine, FileId, FileKind, FileSpec, GenerationInfo, IoId, MemcgId, MmId,
    Nanos, NodeId, ObjectId, Op, PageCacheEvent, Policy, Served, Stat, StatFlush, Step, SwapKind, SwapSpec,
    TaskId,
};
use pageout_sim::cost::{Channel, Costs};
use pageout_sim::device::DeviceSpec;
use pageout_sim::{Machine, MachineSpec, Observer, Pace, TaskSpec};
use pageout_workload as workload;

use super::answers::REMOVED;
use super::recording::{Recording, Run};
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
    /// The group's generations after the process has ended, oldest first.
    pub(crate) generations: Vec<GenerationInfo>,
    /// The sequence it played.
    pub(crate) sequence: Vec<workload::Access>,
    /// The object whose file has a hole at page 0: reading it misses, but needs no block.
    pub(crate) hole: Option<u32>,
}

/// Why a run could not be played.
#[derive(Debug)]
pub(crate) struct Unplayable(anyhow::Error);

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(&self.0))
    }
}

impl<E: Into<anyhow::Error>> From<E> for Unplayable {
    fn from(error: E) -> Unplayable {
        Unplayable(error.into())
    }
}

const GROUP: &str = "job";
const GROUP_PATH: &str = "/job";
const STAT_FILE: &str = "/sys/fs/cgroup/job/memory.stat";
const HZ: u32 = 250;
const SWAP_PAGES: u64 = 131_072;
const PROGRAM_PAGES: u64 = 2;
const LAST_PAGES: u64 = 2;

/// A kind of object of the recordings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Tmpfs,
    Mapped,
    MappedRandom,
    Anon,
}

struct Object {
    kind: Kind,
    pages: u64,
}

impl Object {
    fn parse(text: &str) -> Result<Object, Unplayable> {
        let mut parts = text.splitn(3, ':');
        let (kind, pages, path) = (parts.next(), parts.next(), parts.next());
        let pages = pages.and_then(|pages| pages.parse().ok());
        let kind = match (kind, path) {
            (Some("read"), Some(path)) if path.starts_with("/tmpfs/") => Some(Kind::Tmpfs),
            (Some("read"), _) => Some(Kind::Read),
            (Some("mmap"), _) => Some(Kind::Mapped),
            (Some("mrand"), _) => Some(Kind::MappedRandom),
            (Some("anon"), _) => Some(Kind::Anon),
            _ => None,
        };
        match (kind, pages) {
            (Some(kind), Some(pages)) => Ok(Object { kind, pages }),
            _ => Err(Unplayable(anyhow!("object `{text}` is no `kind:pages[:path]` of a known kind"))),
        }
    }
}

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
}

/// Plays a run.
pub(crate) fn play(recording: &Recording, run: &Run, unrecorded: Unrecorded) -> Result<Played, Unplayable> {
    let objects = run.objects.iter().map(|text| Object::parse(text)).collect::<Result<Vec<Object>, _>>()?;
    refuse_what_is_not_modelled(run, &objects)?;
    let sequence = recording.sequence(run)?;
    check_sequence(run, &objects, &sequence)?;
    let flushes = recording.flushes(run);
    let stage = Stage::build(run, &objects, flushes.is_some(), unrecorded)?;
    stage.perform(run, sequence, flushes, unrecorded)
}

fn refuse_what_is_not_modelled(run: &Run, objects: &[Object]) -> Result<(), Unplayable> {
    let refuse = |what: &str| Err(Unplayable(anyhow!("{what} is not modelled")));
    if run.limit_pages == 0 {
        return refuse("a machine without a group limit (kswapd, watermarks)");
    }
    if run.zswap != 0 {
        return refuse("zswap");
    }
    if !run.cmdline.contains("cgroup.memory=nokmem") {
        return refuse("charging kernel memory to the group");
    }
    if !["", "-f 0"].contains(&run.wl_options.as_str()) {
        return Err(Unplayable(anyhow!("the program's options `{}` are not modelled", run.wl_options)));
    }
    if run.cpus != 1 {
        return refuse("a recording of more than one CPU");
    }
    if objects.is_empty() {
        return Err(Unplayable(anyhow!("the run has no objects")));
    }
    Ok(())
}

fn check_sequence(run: &Run, objects: &[Object], sequence: &[workload::Access]) -> Result<(), Unplayable> {
    for (number, access) in sequence.iter().enumerate() {
        match objects.get(access.object() as usize) {
            None => {
                return Err(Unplayable(anyhow!(
                    "access {number} is to object {}, but the run has {}",
                    access.object(),
                    objects.len()
                )));
            }
            Some(object) if access.page() >= object.pages => {
                return Err(Unplayable(anyhow!(
                    "access {number} is to page {} of {}",
                    access.page(),
                    run.objects[access.object() as usize]
                )));
            }
            Some(object) if access.is_write() && !matches!(object.kind, Kind::Tmpfs | Kind::Anon) => {
                return Err(Unplayable(anyhow!(
                    "access {number} writes to a file: file writeback is not modelled"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn policy_of(run: &Run) -> Result<Policy, Unplayable> {
    match run.policy.as_str() {
        "classic" => Ok(Policy::classic_6_12()),
        "mglru" => Ok(Policy::mglru_6_12()),
        other => Err(Unplayable(anyhow!("policy `{other}` is not modelled"))),
    }
}

/// Most recordings flush translations every 32 accesses, so that the accessed bits are ideal. Those that say `-f 0` don't: there
/// the emulator's own cache of translations shows, direct-mapped with 256 entries as it starts out.
fn tlb_entries(run: &Run) -> u32 {
    if run.wl_options == "-f 0" { 256 } else { 0 }
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
    swap: Option<pageout_engine::SwapId>,
    hole: Option<u32>,
    flags: Option<Flags>,
    /// By object of the run, the flag of its first page, if it is anonymous.
    first_flags: Vec<Option<u64>>,
}

impl Stage {
    fn build(
        run: &Run,
        objects: &[Object],
        flushes_known: bool,
        unrecorded: Unrecorded,
    ) -> Result<Stage, Unplayable> {
        let config = Config {
            node_pages: vec![run.mem_total_kb * 1024 / pageout_engine::PAGE_SIZE],
            hz: HZ,
            swappiness: run.swappiness,
            stat_flush: if flushes_known { StatFlush::Manual } else { StatFlush::Periodic },
            writes_won: unrecorded.writes_won(),
            tlb_entries: tlb_entries(run),
            policy: policy_of(run)?,
            ..Config::default()
        };
        let queued = unrecorded.queued_folios(config.folio_batch);
        let mut engine = Engine::new(config)?;
        leave_queued(&mut engine, queued)?;
        let group = engine.memcg_create(MemcgId::ROOT, GROUP)?;
        let mm = engine.process_create(group);
        let task = engine.task_create(mm, CpuId(0));
        let swap = match run.swap.as_str() {
            "none" => None,
            "disk" => Some(engine.swap_on(SwapSpec { pages: SWAP_PAGES, kind: SwapKind::Device })?),
            "zram" => Some(engine.swap_on(SwapSpec { pages: SWAP_PAGES, kind: SwapKind::Synchronous })?),
            other => return Err(Unplayable(anyhow!("swap `{other}` is not modelled"))),
        };
        let limit = (run.limit_pages * pageout_engine::PAGE_SIZE).to_string();
        let _ = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit)?;
        let mut stage = Stage {
            engine,
            group,
            process: mm,
            task,
            first: 0,
            channels: Vec::new(),
            files: Vec::new(),
            swap,
            hole: objects.iter().position(|object| object.kind == Kind::Read).map(|at| at as u32),
            flags: None,
            first_flags: first_flags(objects),
        };
        stage.add_base_pages(objects)?;
        stage.first = stage.channels.len() as u32;
        for object in objects {
            stage.add_object(object)?;
        }
        Ok(stage)
    }

    fn add_file(&mut self, name: &str, pages: u64, kind: FileKind) -> Result<FileId, Unplayable> {
        let file = self.engine.file_create(FileSpec { name: name.to_string(), pages, kind })?;
        self.files.push(file);
        Ok(file)
    }

    fn add_object(&mut self, object: &Object) -> Result<(), Unplayable> {
        let (task, pages) = (self.task, object.pages);
        let channel = match object.kind {
            Kind::Read => {
                let file = self.add_file("/mnt/f", pages, FileKind::Regular)?;
                self.engine.open(task, file)?;
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
        };
        self.channels.push(channel);
        Ok(())
    }

    /// See the head of this file.
    fn add_base_pages(&mut self, objects: &[Object]) -> Result<(), Unplayable> {
        let has = |kinds: &[Kind]| objects.iter().any(|object| kinds.contains(&object.kind));
        let program = self.add_file("program", PROGRAM_PAGES, FileKind::Regular)?;
        let are_mapped = has(&[Kind::Mapped, Kind::MappedRandom]);
        let data = self.engine.map_file(self.task, program, Advice::Normal, false)?;
        let text = self.engine.map_file(self.task, program, Advice::Normal, true)?;
        self.channels.extend([Channel::Mapped; 2]);
        if has(&[Kind::Tmpfs]) && objects.len() == 1 {
            return self.touch(data, 0);
        }
        if has(&[Kind::Anon]) {
            let object = self.channels.len() as u32;
            let flags = self.engine.map_anon(self.task, 1, Advice::Normal)?;
            self.channels.push(Channel::Mapped);
            self.touch_for(flags, 0, true)?;
            let anon = objects.iter().filter(|object| object.kind == Kind::Anon);
            self.flags = Some(Flags { object, pages: anon.map(|object| object.pages).sum() });
        }
        self.touch(data, 0)?;
        if are_mapped {
            self.engine.mark_idle(self.task, data, 0)?;
        }
        self.touch(text, 1)?;
        if has(&[Kind::Read, Kind::Mapped, Kind::MappedRandom]) {
            let device = self.add_file("block device", 1, FileKind::Regular)?;
            for _ in 0..2 {
                // Two descriptors: reading the same page twice through one of them would mark it once.
                let opened = self.engine.open(self.task, device)?;
                self.channels.push(Channel::File);
                self.touch(opened, 0)?;
            }
            self.engine.pin(device, 0);
        }
        Ok(())
    }

    /// An access before the clock starts.
    fn touch(&mut self, object: ObjectId, page: u64) -> Result<(), Unplayable> {
        self.touch_for(object, page, false)
    }

    fn touch_for(&mut self, object: ObjectId, page: u64, write: bool) -> Result<(), Unplayable> {
        serve(&mut self.engine, self.task, Access { object, page, write })
    }

    fn flag_of(&self, access: &workload::Access) -> Option<u64> {
        self.first_flags[access.object() as usize].map(|first| first + access.page())
    }

    fn perform(
        self,
        run: &Run,
        sequence: Vec<workload::Access>,
        flushes: Option<&[u64]>,
        unrecorded: Unrecorded,
    ) -> Result<Played, Unplayable> {
        let (group, process, task) = (self.group, self.process, self.task);
        let program = self.files[0];
        let script = Script::new(&sequence, self.first, self.flags, |access| self.flag_of(access));
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
        let last = engine.map_anon(task, LAST_PAGES, Advice::Normal)?;
        for page in 0..LAST_PAGES {
            serve(engine, task, Access { object: last, page, write: true })?;
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
            generations,
            sequence,
            hole: self.hole,
        })
    }
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
    (0..folios).try_for_each(|page| serve(engine, task, Access { object, page, write: true }))
}

/// Serves an access to its end; transfers take no time.
fn serve(engine: &mut Engine, task: TaskId, access: Access) -> Result<(), Unplayable> {
    let mut step = engine.start(task, access);
    loop {
        let mut ops = Vec::new();
        engine.take_ops(&mut ops);
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

fn transfer_of(op: &Op) -> Option<IoId> {
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
        if *served == Served::Major {
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
