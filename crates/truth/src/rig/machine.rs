//! A run of a complete machine: no group has a limit, and memory runs short for all. kswapd and allocating tasks reclaim at the same time,
//! on separate CPUs, so time matters.
//!
//! - **Memory.** The machine has the recorded pages and watermarks, and the recorded number of free pages at the first access. According to
//!   the README of the recordings, the other pages were anonymous memory of other programs and kernel memory.
//! - **Clock.** An access happens at the time interpolated between the recorded windows, or later if reclaim has held its task up.
//! - **Prices.** Those of an emulated processor and its disk, a file in memory. How fast the emulator was differed from run to run
//!   by a factor of four, with the load of its host. What a run's accesses took in the mean says how fast, for all work alike.
//! - **The recorder** brings statistics up to date at each window, which trims the pages that CPUs hold, and reads `/proc/vmstat`. What the
//!   kernel takes for that can't be moved. It raises the marks where all free pages lie among movable ones.
//! - **Pageblocks.** How the kernel's own memory lay among them is in a snapshot (`found.rs`), or was not recorded. Then it lies dense here.
//! - **Not modelled:** shrinkers of inodes and dentries; later accesses of the recorder to its buffers.

use std::sync::Arc;

use pageout_engine::{
    Access, Advice, Bdi, Compressibility, Config, CpuId, Engine, FileId, FileKind, FileSpec, Lengths,
    MemcgId, Nanos, NodeId, PAGE_SIZE, PageCacheEvent, Served, SwapKind, SwapSpec, TaskId,
};
use pageout_sim::cost::{Channel, Costs};
use pageout_sim::device::{DeviceSpec, Latency};
use pageout_sim::{Machine, MachineSpec, Observer, Pace, Stall, TaskSpec};
use pageout_workload as workload;

use super::super::object::{Kind, Object};
use super::super::recording::{Run, StartState, Window};
use super::super::script::Script;
use super::access::serve;
use super::group::instant_disk;
use super::snapshot::Snapshot;
use super::stage::{fault_around_bytes, file_pages, first_flags, has_kmem, ra_pages};
use super::start_state;
use super::{OfMachine, Playable, Played, Unplayable, Unrecorded};

/// The marks of the recording machine, where a run doesn't tell: `min_free_kbytes` that gives 331, 413 and 495 pages.
const MIN_PAGES: u64 = 331;
/// Pages free before the first access, where a run doesn't tell; those that CPUs held among them.
const FREE_PAGES: u64 = 22_100;
/// Anonymous pages of others: init, the shell, what they run from (a file system in memory), and the recorder's buffers.
const OTHERS_PAGES: u64 = 2805;
/// Foreign memory, if pressure and zones were recorded, by the number of anonymous pages at the start of each kind of run. It has pages of
/// other processes, with one program and with two, and a program's buffers, which it fills with zeroes and leaves. In addition each access
/// needs a word of the sequence and a byte of the results.
const OTHERS_PAGES_NOTED: [u64; 2] = [920, 1295];
const BUFFER_PAGES: u64 = 2017;
/// What the kernel held itself then: 3696 to 3970 pages, and more where it traced. A program that begins later than the other has not all
/// of its buffers yet when the machine's state is noted.
const KERNEL_PAGES_NOTED: u64 = 3850;

/// Time of a mean access at which the emulator was as fast as `qemu-tcg` has it.
const MEAN_ACCESS: Nanos = Nanos(72_000);
/// Its disk, a virtual one whose file is in the host's memory: what tasks lost to I/O, by the recorded pressure, over the pages read.
const DISK_READ: u64 = 50_000;

/// Page contents: half of each page is pseudo-random, the other half a constant. LZ4 makes 2082 bytes of it, so that 8 pages hold 15.
/// What the recorded shrinker of the pool could free is always a multiple of 8 pages.
const COMPRESSIBILITY: Compressibility =
    Compressibility { zero_filled: 0, same_filled: 0, lengths: Lengths::Even { least: 2082, most: 2082 } };
/// Sequences: LZ4 makes 3400 bytes and more of a page of such words, which is kept as it is then. So are pages of others, as far as the
/// recorded sizes of the pool tell.
pub(super) const INCOMPRESSIBLE: Compressibility =
    Compressibility { zero_filled: 0, same_filled: 0, lengths: Lengths::Even { least: 4096, most: 4096 } };
const SAME_FILLED: Compressibility = Compressibility { same_filled: 1000, ..COMPRESSIBILITY };

const REFRESH: &str = "/proc/sys/vm/stat_refresh";

/// One of the recorded programs.
struct Program<'a> {
    objects: &'a [Object],
    sequence: &'a Arc<[workload::Access]>,
    windows: &'a [Window],
    /// When it began, from the first of them on.
    start: Nanos,
}

impl Program<'_> {
    /// Its memory other than its objects: pages of its sequence, and pages of zeroes.
    fn own_pages(&self) -> [u64; 2] {
        let accesses = self.sequence.len() as u64;
        [(accesses * 4).div_ceil(PAGE_SIZE), BUFFER_PAGES + accesses.div_ceil(PAGE_SIZE)]
    }
}

/// What is seen of the machine while it runs.
#[derive(Default)]
struct Watcher {
    /// Misses by program and access of its script. A program that reads ahead misses when it has a page read, even if another program needs
    /// the page.
    missed: Vec<Vec<bool>>,
    /// The file that each program reads ahead, and whether pages have come into it since its last access.
    reads_ahead: Vec<Option<FileId>>,
    has_read: Vec<bool>,
    /// How far each program has come.
    done: Vec<u64>,
    /// Free pages, each time the first program noted them.
    free: Vec<u64>,
    /// The machine when it did so last.
    end: Option<(Snapshot, [Stall; 3])>,
}

impl Observer for Watcher {
    fn access(&mut self, task: usize, index: u64, served: &Served) {
        let has_read = std::mem::take(&mut self.has_read[task]);
        let misses = match self.reads_ahead[task] {
            Some(_) => has_read,
            None => matches!(served, Served::Major(_)),
        };
        self.missed[task][index as usize] = misses;
        self.done[task] = index;
    }

    fn page_cache(&mut self, _now: Nanos, event: PageCacheEvent) {
        let reader = self.reads_ahead.iter().position(|&file| file == Some(event.file));
        if let Some(reader) = reader.filter(|_| !event.removed) {
            self.has_read[reader] = true;
        }
    }

    fn marked(&mut self, task: usize, _index: u64, machine: &Machine) {
        if task > 0 {
            return;
        }
        self.free.push(free_pages(machine.engine()));
        let pressure = machine.report().pressure;
        let root = pressure.first().expect("the machine comes first");
        let stalls = [root.memory, root.io, root.cpu];
        self.end = Some((Snapshot::take(machine.engine(), MemcgId::ROOT), stalls));
    }
}

fn free_pages(engine: &Engine) -> u64 {
    engine.figures().zones().map(|zone| zone.free).sum()
}

/// Free pages, and those that CPUs hold.
fn spare_pages(engine: &Engine) -> u64 {
    engine
        .figures()
        .zones()
        .map(|zone| zone.free + zone.pagesets.iter().map(|set| u64::from(set.count)).sum::<u64>())
        .sum()
}

pub(super) fn perform(playable: &Playable, unrecorded: Unrecorded) -> Result<Played, Unplayable> {
    let run = playable.run;
    let slowness = slowness(run);
    let mut builder = Engine::builder(config(playable, unrecorded))?;
    match run.swap.as_str() {
        "none" => {}
        "zram" => {
            let swap = builder.swap_on(SwapSpec { pages: run.swap_pages, kind: SwapKind::Synchronous })?;
            builder.swap_compressibility(swap, COMPRESSIBILITY)?;
        }
        other => {
            return Err(
                anyhow::anyhow!("found swap `{other}`, expected none or zram on a complete machine").into()
            );
        }
    }
    let mut engine = builder.build();
    let programs = programs(playable);
    let mut tasks = Vec::new();
    let mut files: Vec<(String, FileId)> = Vec::new();
    let found = playable.inputs.found.as_ref();
    // Others were there before the programs, so walks come by their address spaces first.
    let mm = engine.process_create(MemcgId::ROOT);
    let others = engine.task_create(mm, CpuId(0));
    if found.is_none() {
        add_foreign(&mut engine, run, others, &programs)?;
    }
    for (at, program) in programs.iter().enumerate() {
        tasks.push(add_program(&mut engine, run, program, CpuId(at as u16 % run.cpus), &mut files)?);
    }
    if let Some(found) = found {
        let of_programs =
            programs.iter().zip(&tasks).map(|(program, &(task, _))| (task, own_memory(program)));
        start_state::restore(&mut engine, found, others, &of_programs.collect::<Vec<_>>())?;
        for (at, &(task, _)) in tasks.iter().enumerate() {
            engine.set_cpu(task, CpuId(at as u16 % run.cpus));
        }
        if !playable.inputs.kernel_blocks.is_empty() {
            engine.take_kernel_memory_aside(found.reserved.clone());
        }
    } else {
        let free = state_at_start(run).map_or(FREE_PAGES, StartState::spare_pages);
        let free = free.saturating_sub(foreign_to_come(run, &programs, free));
        let spare = spare_pages(&engine);
        engine.hold_kernel_memory(spare.saturating_sub(free))?;
    }

    let mut spec = MachineSpec {
        costs: Costs::qemu_tcg().scaled((slowness * 1000.0) as u64, 1000),
        devices: vec![disk(slowness)],
        files: files.iter().map(|&(_, file)| (file, 0)).collect(),
        kswapd_wake_ups: unrecorded.turned(&playable.inputs.kswapd_wakes),
        ..MachineSpec::default()
    };
    if let Some(period) = engine.stat_flush_period() {
        let due = found.and_then(|found| found.flush_due);
        spec.stat_flush_phase = due.unwrap_or_else(|| unrecorded.flush_phase(period));
    }
    let before = Snapshot::take(&engine, MemcgId::ROOT);
    let mut machine = Machine::new(engine, spec)?;
    machine.record_page_cache_events();
    let mut watcher = Watcher::default();
    let mut scripts = Vec::new();
    for (program, (task, channels)) in programs.iter().zip(tasks) {
        let first_flags = first_flags(program.objects);
        let flag_of = |access: &workload::Access| {
            first_flags[access.object() as usize].map(|first| first + access.page())
        };
        let script = Script::new(program.sequence, 0, None, flag_of);
        let stream = script.stream();
        let source = Box::new(move |_| Ok(Box::new(stream.clone()) as Box<dyn workload::AccessStream>));
        let mut spec = TaskSpec::new(task, &run.workload, "", channels, source);
        spec.cpu = CpuId(scripts.len() as u16 % run.cpus);
        spec.migrates = true;
        spec.start = program.start;
        let mut points = vec![(0, program.start)];
        let clock = program
            .windows
            .iter()
            .map(|window| (script.start_of(window.op), program.start + Nanos((window.t * 1e9) as u64)));
        points.extend(clock);
        points.dedup_by_key(|&mut (index, _)| index);
        spec.pace = Pace::Timetable(points);
        // Figures after the last access are recorded before it: then the first program has ended, and so has the run.
        let last = script.len() as u64 - 1;
        let notes = program.windows.iter().map(|window| script.start_of(window.op).min(last));
        spec.stat_reads_at = notes.map(|at| (at, REFRESH.to_string())).collect();
        let blocks = &playable.inputs.kernel_blocks;
        spec.opens_files = blocks.is_empty();
        if scripts.is_empty() {
            spec.kernel_blocks.clone_from(blocks);
        }
        spec.background = !scripts.is_empty();
        machine.task_add(spec)?;
        watcher.missed.push(vec![false; script.len()]);
        watcher.reads_ahead.push(file_read_ahead(program, &files));
        watcher.has_read.push(false);
        watcher.done.push(0);
        scripts.push(script);
    }
    machine.run(&mut watcher)?;
    let (after, pressure) = watcher.end.expect("a run has windows");
    // Where the second program has not come to its end, the first one has.
    let mut missed = scripts.iter().zip(&watcher.missed).map(|(script, marks)| script.fold(marks));
    let first = missed.next().expect("there is a first program");
    let missed_by_second = missed.next().map(|mut missed| {
        let done = scripts[1].accesses_done(watcher.done[1]);
        missed.truncate(done);
        missed
    });
    Ok(Played {
        vmstat: before.to(&after, |snapshot| &snapshot.vmstat),
        memcg: before.to(&after, |snapshot| &snapshot.memcg),
        missed: first,
        stream: Vec::new(),
        reads: Vec::new(),
        generations: machine.engine().figures().lru_gen(MemcgId::ROOT, NodeId(0)),
        sequence: playable.sequence.clone(),
        hole: None,
        whole_writes: playable.whole_writes(),
        machine: Some(OfMachine { free: watcher.free, pressure, missed_by_second }),
        moved_to_fast_node: None,
    })
}

/// The file of a program that reads ahead.
fn file_read_ahead(program: &Program, files: &[(String, FileId)]) -> Option<FileId> {
    let object = program.objects.iter().find(|object| object.is_read_ahead())?;
    files.iter().find(|(path, _)| *path == object.path).map(|&(_, file)| file)
}

/// The state before the first access of whichever program began first.
fn state_at_start(run: &Run) -> Option<&StartState> {
    let second = run.second.as_ref().filter(|second| second.start_s < run.start_s);
    second.map_or(run.state_at_start.as_ref(), |second| second.state_at_start.as_ref())
}

/// How much slower the emulator was than the table of prices has it.
fn slowness(run: &Run) -> f64 {
    let end = run.windows.last().expect("a run has windows");
    end.t * 1e9 / end.op as f64 / MEAN_ACCESS.0 as f64
}

fn programs<'a>(playable: &'a Playable) -> Vec<Program<'a>> {
    let Playable { run, objects, sequence, second, .. } = playable;
    let starts = [run.start_s, run.second.as_ref().map_or(run.start_s, |second| second.start_s)];
    let begin = starts[0].min(starts[1]);
    let [start, start_of_second] = starts.map(|start| Nanos(((start - begin) * 1e9) as u64));
    let first = Program { objects, sequence, windows: &run.windows, start };
    let second = second.as_ref().zip(run.second.as_ref()).map(|((objects, sequence), second)| Program {
        objects,
        sequence,
        windows: &second.windows,
        start: start_of_second,
    });
    [Some(first), second].into_iter().flatten().collect()
}

/// Pages of the machine.
fn managed(run: &Run) -> u64 {
    run.mem_total_kb.saturating_mul(1024) / PAGE_SIZE
}

fn config(playable: &Playable, unrecorded: Unrecorded) -> Config {
    let run = playable.run;
    let found = playable.inputs.found.as_ref();
    let min = state_at_start(run).map_or(MIN_PAGES, StartState::min_pages);
    let min = found.map_or(min, |found| found.min);
    Config {
        node_pages: vec![found.map_or_else(|| managed(run), |found| found.frames)],
        cpus: run.cpus,
        hz: run.hz,
        swappiness: run.swappiness,
        min_free_kbytes: u32::try_from(min * PAGE_SIZE / 1024).unwrap_or(u32::MAX),
        fault_around_bytes: fault_around_bytes(run),
        interruptions: unrecorded.interruptions(run),
        kmem: has_kmem(run),
        page_cluster: 0,
        ..playable.config()
    }
}

fn disk(slowness: f64) -> DeviceSpec {
    let latency = Latency::Constant(Nanos((DISK_READ as f64 * slowness) as u64));
    DeviceSpec { read: latency, write: latency, latency_covers: PAGE_SIZE, ..instant_disk() }
}

/// Pages of foreign memory that were not there yet when so many were free.
fn foreign_to_come(run: &Run, programs: &[Program], spare: u64) -> u64 {
    let foreign: u64 = foreign(run, programs).iter().map(|&(pages, _)| pages).sum();
    match state_at_start(run) {
        Some(_) => foreign.saturating_sub(managed(run).saturating_sub(KERNEL_PAGES_NOTED + spare)),
        None => 0,
    }
}

/// Memory of other processes, and of the programs other than their objects, in pages, and the total.
fn foreign(run: &Run, programs: &[Program]) -> Vec<(u64, Compressibility)> {
    if state_at_start(run).is_none() {
        return vec![(OTHERS_PAGES, Compressibility::default())];
    }
    let others = (OTHERS_PAGES_NOTED[programs.len() - 1], INCOMPRESSIBLE);
    [others].into_iter().chain(programs.iter().flat_map(own_memory)).collect()
}

/// Memory of a program other than its objects, and the total.
fn own_memory(program: &Program) -> [(u64, Compressibility); 2] {
    let [words, empty] = program.own_pages();
    [(words, INCOMPRESSIBLE), (empty, SAME_FILLED)]
}

/// Foreign memory is not accessed again.
fn add_foreign(engine: &mut Engine, run: &Run, task: TaskId, programs: &[Program]) -> Result<(), Unplayable> {
    for (pages, compressibility) in foreign(run, programs) {
        let memory = engine.map_anon(task, pages, Advice::Normal)?;
        engine.set_compressibility(task, memory, compressibility)?;
        (0..pages).try_for_each(|page| serve(engine, task, Access::new(memory, page, true)))?;
    }
    Ok(())
}

/// A task with its objects, and how it reaches each of them.
fn add_program(
    engine: &mut Engine,
    run: &Run,
    program: &Program,
    cpu: CpuId,
    files: &mut Vec<(String, FileId)>,
) -> Result<(TaskId, Vec<Channel>), Unplayable> {
    let mm = engine.process_create(MemcgId::ROOT);
    let task = engine.task_create(mm, cpu);
    let mut channels = Vec::new();
    for object in program.objects {
        if object.kind == Kind::Anon {
            engine.map_anon(task, object.pages, Advice::Normal)?;
            channels.push(Channel::Mapped);
            continue;
        }
        let file = file_at(engine, run, object, files)?;
        channels.push(match object.kind {
            Kind::Mapped => {
                engine.map_file(task, file, Advice::Normal, false)?;
                Channel::Mapped
            }
            Kind::MappedRandom | Kind::MappedReadahead(_) => {
                let advice =
                    if let Kind::MappedReadahead(advice) = object.kind { advice } else { Advice::Random };
                engine.map_file(task, file, advice, false)?;
                Channel::Mapped
            }
            _ => {
                let opened = engine.open(task, file)?;
                match object.kind {
                    Kind::Read => engine.fadvise(task, opened, Advice::Random)?,
                    Kind::ReadaheadSequential => engine.fadvise(task, opened, Advice::Sequential)?,
                    _ => {}
                }
                Channel::File
            }
        });
    }
    Ok((task, channels))
}

fn file_at(
    engine: &mut Engine,
    run: &Run,
    object: &Object,
    files: &mut Vec<(String, FileId)>,
) -> Result<FileId, Unplayable> {
    if let Some(&(_, file)) = files.iter().find(|(path, _)| *path == object.path) {
        return Ok(file);
    }
    let kind = if object.kind == Kind::Tmpfs { FileKind::Tmpfs } else { FileKind::Regular };
    let bdi = Bdi { ra_pages: ra_pages(run), ..Bdi::default() };
    let pages = file_pages(object);
    let file = engine.file_create(FileSpec { name: object.path.clone(), pages, kind, bdi })?;
    files.push((object.path.clone(), file));
    Ok(file)
}
