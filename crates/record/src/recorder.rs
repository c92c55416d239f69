//! A recording, from begin to end.
//!
//! ```text
//!   begin   instance, filters, tasks to follow; counters; the command waits stopped
//!   loop    empty all buffers ─▶ merge ─▶ collect ─▶ accesses.pgt.part
//!           now and then: counters of the group, names of files, new tasks
//!   end     switch off, empty once more; counters; before.pgt; the name accesses.pgt; recording.toml last
//! ```
//! It ends when the command has, or the tasks, or the time, or its size is reached, or when asked to. Whatever happens, the instance goes.

mod end; // why it ends, names of files, the manifest
mod set_up; // events behind their filters
mod tasks; // tasks that are followed

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use pageout_workload::Access;
use pageout_workload::trace::PgtWriter;

use crate::cgroup::Cgroup;
use crate::collect::Collector;
use crate::cost::Probe;
use crate::cut::cut;
use crate::error::Error;
use crate::event::{Decoder, FileKey, KNOWN, Kind, Kinds};
use crate::folder::{Samples, write_before, write_calls, write_error, write_rooms};
use crate::host;
use crate::manifest::{
    ACCESSES, BEFORE, BEGIN_GENERATIONS, Channel, CostRecord, END_GENERATIONS, EVICTIONS, FILE_CALLS,
    FORMAT_VERSION, FileRecord, GroupRecord, MANIFEST, Manifest, MappedAdvice, PROCESSES, ProcessRecord,
    REGIONS, RESIDENT, ROOMS, Recorded, SAMPLES, SourceRecord,
};
use crate::merge::Merge;
use crate::processes::{self, Names};
use crate::root::Root;
use crate::started::{PATIENCE, Started, exit_code, told};
use crate::tracefs::Instance;
use crate::usage::{self, Usage};
use crate::watch::{Resident, Watch};
use crate::ways::need_host_pids;
use end::{Outcome, cpu_time};

/// Between two rounds over the buffers, if they are not filling fast.
const PAUSE: Duration = Duration::from_millis(20);
/// A round that found this number of events is followed by the next without a pause.
const BUSY_BYTES: u64 = 1 << 20;
/// How often at most it is looked what processes have mapped. The first looks follow each other faster.
const MAPPINGS_EVERY: Duration = Duration::from_secs(5);
/// Why a recording ends whose command has.
const COMMAND_ENDED: &str = "the command has ended";

/// The target of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every task but the recorder.
    Machine,
    /// The tasks of a cgroup, and those that they make.
    Cgroup(String),
    /// These processes, and those that they make.
    Pids(Vec<u32>),
    /// A command that is started for it, in a cgroup if one is named.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The group that it is to run in.
        cgroup: Option<String>,
    },
}

/// The options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the recording, which has to be new or empty.
    pub into: PathBuf,
    /// The target.
    pub target: Target,
    /// Kinds of events.
    pub kinds: Kinds,
    /// Patterns of files; without any, all.
    pub files: Vec<String>,
    /// One page of so many, a power of two; 1 is every page.
    pub sample: u64,
    /// The maximum duration.
    pub duration: Option<Duration>,
    /// Bytes of accesses at which to end.
    pub max_size: Option<u64>,
    /// The interval between readings of the group's counters.
    pub stat_every: Duration,
    /// Leave names out.
    pub anonymize: bool,
    /// Have DAMON watch the address ranges of a process. It needs [`Kinds::NONE`].
    pub regions: bool,
    /// Reports which pages of a file are in memory. Without it and with events, files are not looked at.
    pub resident: Option<Resident>,
    /// Remarks for readers of the recording.
    pub remarks: Vec<String>,
    /// The machine.
    pub root: Root,
}

/// The progress of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// Accesses so far.
    pub accesses: u64,
    /// Bytes of the trace so far.
    pub bytes: u64,
    /// Events lost so far.
    pub lost: u64,
}

/// Records. `stop` names what asks it to end, once something does. `progress` is called when the recording begins, and twice a second. Errors: what was asked for can't be done here, or the result can't be
/// written; then nothing is left in the folder.
pub fn record(
    options: &Options,
    stop: &dyn Fn() -> Option<&'static str>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Manifest, Error> {
    prepare_folder(&options.into)?;
    let made = Recorder::begin(options).and_then(|recorder| recorder.run(stop, progress));
    if made.is_err() {
        let part = format!("{ACCESSES}.part");
        let files = [ACCESSES, BEFORE, FILE_CALLS, EVICTIONS, ROOMS, SAMPLES, MANIFEST];
        let without_events = [PROCESSES, RESIDENT, REGIONS, BEGIN_GENERATIONS, END_GENERATIONS];
        for name in files.into_iter().chain(without_events).chain([part.as_str()]) {
            let _ = std::fs::remove_file(options.into.join(name));
        }
        // Only if nothing else is in it.
        let _ = std::fs::remove_dir(&options.into);
    }
    made
}

/// Makes the folder. Another recording is never overwritten.
fn prepare_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| write_error(folder, folder, source))?;
    let is_empty =
        std::fs::read_dir(folder).map_err(|source| Error::reading(folder, source))?.next().is_none();
    if !is_empty {
        return Err(Error::Asked(format!(
            "{}: the folder is not empty\nhelp: use a new folder for each recording",
            folder.display()
        )));
    }
    Ok(())
}

/// Counts what is written.
struct Counted<W> {
    out: W,
    bytes: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes.set(self.bytes.get() + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A recording in progress.
struct Recorder<'a> {
    options: &'a Options,
    instance: Option<Instance>,
    decoder: Option<Decoder>,
    group: Cgroup,
    child: Option<Started>,
    source: SourceRecord,
    /// Tasks that are followed.
    tasks: BTreeSet<u32>,
    process_of: BTreeMap<u32, u32>,
    names: Names,
    near: BTreeSet<PathBuf>,
    limits: BTreeMap<String, String>,
    events_begin: BTreeMap<String, u64>,
    stat_begin: BTreeMap<String, u64>,
    stalled_begin: Option<u64>,
    disks: host::DiskCounts,
    watch: Option<Watch>,
    /// Reads of children of this process that ended before.
    children_begin: Option<[u64; 4]>,
    /// CPU time of one event, if it could be measured.
    event_ns: u64,
    /// Events so far.
    events: u64,
    cpu_begin: Duration,
    began: Instant,
}

/// What a recording has without a memory controller.
const SUM_OF_PROCESSES: &str = "no memory controller: memory is the sum over the recorded processes (smaps_rollup); limits, refaults and reclaim are not recorded";
const WHOLE_MACHINE: &str =
    "no memory controller: memory and counters are the machine's (/proc/meminfo, /proc/vmstat)";

/// The group, or none with a remark.
fn or_none(found: Result<Cgroup, Error>, remark: &str, remarks: &mut Vec<String>) -> Cgroup {
    found.unwrap_or_else(|_| {
        remarks.push(remark.to_string());
        Cgroup::none()
    })
}

/// The counters of the group; for the machine without a memory controller those of `/proc/vmstat`, which have the same names.
fn stat(options: &Options, group: &Cgroup) -> Result<BTreeMap<String, u64>, Error> {
    match group.is_there() || options.target != Target::Machine {
        true => group.stat(),
        false => Ok(host::vmstat(&options.root)),
    }
}

impl<'a> Recorder<'a> {
    fn begin(options: &'a Options) -> Result<Recorder<'a>, Error> {
        if !options.sample.is_power_of_two() {
            return Err(Error::Asked(format!(
                "--sample 1/{}: expected a power of two\nhelp: for example --sample 1/8",
                options.sample
            )));
        }
        let root = &options.root;
        let mut child = None;
        let mut source = SourceRecord { accesses: "none".to_string(), ..SourceRecord::default() };
        source.remarks.clone_from(&options.remarks);
        let (group, tasks) = match &options.target {
            Target::Machine => {
                (or_none(Cgroup::find(root, "/"), WHOLE_MACHINE, &mut source.remarks), Vec::new())
            }
            Target::Cgroup(path) => {
                let group = Cgroup::find(root, path)?;
                let tasks = group.tasks();
                (group, tasks)
            }
            Target::Pids(pids) => {
                if let Some(gone) = pids.iter().find(|pid| !root.has(&format!("/proc/{pid}"))) {
                    return Err(Error::Asked(format!(
                        "--pid {gone}: no such process\nhelp: `ps -e` lists the processes"
                    )));
                }
                let group = or_none(Cgroup::of_pid(root, pids[0]), SUM_OF_PROCESSES, &mut source.remarks);
                (group, pids.iter().flat_map(|&pid| processes::threads(root, pid)).collect())
            }
            Target::Command { argv, cgroup } => {
                let group = cgroup.as_deref().map(|path| Cgroup::find(root, path)).transpose()?;
                let started = Started::new(argv)?;
                let pid = started.pid();
                // From here on dropping it ends it.
                let started = child.insert(started);
                started.wait_stopped()?;
                let group = match group {
                    Some(group) => {
                        group.enter(pid)?;
                        group
                    }
                    None => or_none(Cgroup::of_pid(root, pid), SUM_OF_PROCESSES, &mut source.remarks),
                };
                (group, vec![pid])
            }
        };
        let near = match &options.target {
            Target::Command { .. } => std::env::current_dir().ok(),
            Target::Pids(pids) => std::fs::read_link(root.path(format!("/proc/{}/cwd", pids[0]))).ok(),
            _ => None,
        };
        let mut recorder = Recorder {
            options,
            instance: None,
            decoder: None,
            child,
            source,
            tasks: BTreeSet::new(),
            process_of: BTreeMap::new(),
            names: Names::default(),
            near: near.into_iter().collect(),
            watch: None,
            children_begin: usage::of_children(&Root::machine()),
            event_ns: 0,
            events: 0,
            cpu_begin: cpu_time(),
            limits: group.limits(),
            events_begin: group.events(),
            stat_begin: stat(options, &group)?,
            stalled_begin: host::stalled_us(root),
            disks: host::disk_counts(root),
            began: Instant::now(),
            group,
        };
        if options.kinds != Kinds::NONE {
            recorder.set_up()?;
        }
        recorder.follow(&tasks)?;
        Ok(recorder)
    }

    /// Begins to look at what a recording without events has.
    fn begin_watch(&mut self) -> Result<(), Error> {
        let options = self.options;
        if options.kinds != Kinds::NONE {
            return Ok(());
        }
        let (_, files) = self.files()?;
        let regions = match (&options.target, &self.child) {
            _ if !options.regions => None,
            (Target::Pids(pids), _) => pids.first().copied(),
            (_, Some(child)) => Some(child.pid()),
            _ => None,
        };
        if options.regions && regions.is_none() {
            return Err(Error::Asked(
                "--events regions: found no process, expected one that DAMON watches\nhelp: name it by --pid, or start it as the command".to_string(),
            ));
        }
        let mut watch = Watch::new(&options.root, &options.into, options.resident, regions)?;
        watch.add(files.iter().map(PathBuf::as_path));
        self.watch = Some(watch);
        self.look_at_names(true);
        Ok(())
    }

    /// Reads the counters of the group, and without events those of processes and files.
    fn take_counters(
        &mut self,
        samples: &mut Samples,
        elapsed: Duration,
        is_last: bool,
    ) -> Result<(), Error> {
        let time_ns = elapsed.as_nanos() as u64;
        let has_group = self.group.is_there();
        let is_machine = self.options.target == Target::Machine;
        let needs_processes = self.watch.is_some() || (!has_group && !is_machine);
        let pids = if needs_processes { self.processes() } else { BTreeSet::new() };
        let of: BTreeMap<u32, Usage> = match &mut self.watch {
            Some(watch) => watch.take(elapsed, &pids, is_last)?,
            None => BTreeMap::new(),
        };
        let sample = match (has_group, is_machine) {
            (true, _) => self.group.sample(time_ns)?,
            (false, true) => host::sample(&self.options.root, time_ns),
            (false, false) => {
                let root = &self.options.root;
                let with_memory = |pid: &u32| (*pid, Usage::of(root, *pid, true));
                // Those of the watch lack memory if it was too soon for it.
                let is_whole = !of.is_empty() && of.values().all(|usage| usage.memory.is_some());
                let read = || pids.iter().map(with_memory).collect();
                usage::sample(&if is_whole { of } else { read() }, time_ns)
            }
        };
        samples.push(&sample)
    }

    fn run(
        mut self,
        stop: &dyn Fn() -> Option<&'static str>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, Error> {
        let options = self.options;
        let folder = options.into.clone();
        let part = folder.join(format!("{ACCESSES}.part"));
        let fail = |source| write_error(&folder, &part, source);
        let bytes = std::rc::Rc::new(std::cell::Cell::new(0));
        let file = File::create(&part).map_err(fail)?;
        let mut out = Counted { out: BufWriter::new(file), bytes: std::rc::Rc::clone(&bytes) };
        let page_size = rustix::param::page_size() as u64;
        let mut writer = PgtWriter::new(&mut out, page_size as u32, options.kinds.writes).map_err(fail)?;
        let mut samples = Samples::new(&folder)?;
        progress(Progress::default());

        let insertions_alone = self.source.accesses == "insertions";
        let mut collector = Collector::new(insertions_alone, options.sample);
        let (kswapd, damon) = processes::reclaimers(&options.root);
        if options.target == Target::Machine {
            collector.reclaim_always(&kswapd, &damon);
        } else {
            let others = [kswapd, damon].concat();
            collector.reclaim_always(&[], &others);
            if let Some(instance) = &self.instance {
                instance.follow(&others)?;
            }
        }
        let mut merge = Merge::new(self.instance.as_ref().map_or(0, Instance::cpus));
        let mut accesses: Vec<Access> = Vec::new();
        let (mut count, mut rounds_since) = (0, Duration::ZERO);

        let began_s =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.begin_watch()?;
        self.began = Instant::now();
        self.take_counters(&mut samples, Duration::ZERO, false)?;
        if let Some(instance) = &self.instance {
            instance.set("tracing_on", "1")?;
        }
        if let Some(child) = &self.child {
            child.go_on()?;
        }
        let (mut next_stat, mut next_mappings, mut mappings_pause) =
            (options.stat_every, Duration::from_millis(50), Duration::from_millis(50));
        let ended = loop {
            let elapsed = self.began.elapsed();
            // Before the buffers are emptied: what ends now has told all by then.
            let mut ending = self.ending(elapsed, bytes.get(), stop);
            let mut found = 0;
            if let Some(instance) = &mut self.instance {
                if ending.is_some() {
                    instance.set("tracing_on", "0")?;
                }
                found = take_round(
                    instance,
                    self.decoder.as_ref().expect("an instance has one"),
                    &mut merge,
                    &mut self.source,
                    &mut self.events,
                )?;
                match ending {
                    Some(_) => merge.finish(|event| collector.take(event, &mut accesses)),
                    None => merge.end_round(|event| collector.take(event, &mut accesses)),
                }
                count += accesses.len() as u64;
                writer.write(&accesses).map_err(fail)?;
                accesses.clear();
            }
            if ending.is_none() && elapsed >= next_stat {
                next_stat = elapsed + options.stat_every;
                self.take_counters(&mut samples, elapsed, false)?;
                if !self.look_at_tasks()? && matches!(options.target, Target::Pids(_)) {
                    ending = Some("the processes have ended".to_string());
                }
            }
            if ending.is_none() && elapsed >= next_mappings {
                mappings_pause = (mappings_pause * 2).min(MAPPINGS_EVERY);
                next_mappings = elapsed + mappings_pause;
                self.look_at_names(true);
            }
            if elapsed >= rounds_since + Duration::from_millis(500) || ending.is_some() {
                rounds_since = elapsed;
                let lost = self.instance.as_ref().map_or(0, Instance::lost_events);
                progress(Progress { elapsed, accesses: count, bytes: bytes.get(), lost });
            }
            if let Some(ending) = ending {
                break ending;
            }
            if found < BUSY_BYTES {
                std::thread::sleep(PAUSE);
            }
        };
        let duration_ns = self.began.elapsed().as_nanos() as u64;
        self.take_counters(&mut samples, Duration::from_nanos(duration_ns), true)?;
        samples.finish()?;
        let stat_end = stat(options, &self.group)?;
        self.look_at_names(true);
        if let Some(instance) = self.instance.take() {
            self.source.lost_events = instance.lost_events();
        }
        self.source.clock_went_back = merge.backwards;
        self.source.out_of_order = merge.late;
        if let Some(remark) = self.end_child()? {
            self.source.remarks.push(remark);
        }
        let status = self.child.as_mut().and_then(Started::ended);
        let (ended, command_code) = match status.filter(|_| ended == COMMAND_ENDED) {
            Some(status) => (told(status), exit_code(status)),
            None => (ended, 0),
        };

        collector.finish();
        let ends = self.settle_files(&mut collector, page_size);
        let named = self.file_records(&collector);
        let names: Vec<String> = collector
            .objects
            .iter()
            .map(|&(file, channel)| match channel {
                Channel::File => named[file].name.clone(),
                Channel::Mapped => format!("{} (mapped)", named[file].name),
            })
            .collect();
        writer.finish(&names, None, collector.sums.requests).map_err(fail)?;
        out.out.into_inner().map_err(|error| fail(error.into_error()))?.sync_all().map_err(fail)?;
        let (cut_part, form) = (
            folder.join(format!("{ACCESSES}.cut")),
            (page_size as u32, options.kinds.writes, collector.sums.requests),
        );
        let beyond = cut(&part, &cut_part, &ends, &names, form)
            .inspect_err(|_| _ = std::fs::remove_file(&cut_part))
            .map_err(fail)?;
        if beyond.count() > 0 {
            std::fs::rename(&cut_part, &part).map_err(fail)?;
            collector.cut(&beyond);
            count -= beyond.count();
        }
        let files = self.file_records(&collector);
        write_before(&folder, &collector, &names, page_size as u32)?;
        write_calls(&folder, &collector)?;
        // With some files or some pages only, the memory of all of them is unknown.
        if options.kinds.insertions && options.files.is_empty() && options.sample == 1 {
            write_rooms(&folder, &collector)?;
        }

        let watched = self.watch.take().map(|watch| watch.finish(options.anonymize)).transpose()?;
        let (processes, files) = match watched {
            Some((mut processes, looked_at, remarks)) => {
                self.source.remarks.extend(remarks);
                self.add_children(&mut processes);
                (Some(processes), looked_at)
            }
            None => (None, files),
        };
        let manifest = self.manifest(
            &collector,
            Outcome {
                began_s,
                duration_ns,
                ended,
                command_code,
                accesses: count,
                stat_end,
                processes,
                files,
            },
        );
        let text = manifest.text()?;
        std::fs::rename(&part, folder.join(ACCESSES)).map_err(fail)?;
        let path = folder.join(MANIFEST);
        std::fs::write(&path, text).map_err(|source| write_error(&folder, &path, source))?;
        Ok(manifest)
    }
}

/// Takes what all buffers hold. Returns its bytes.
fn take_round(
    instance: &mut Instance,
    decoder: &Decoder,
    merge: &mut Merge,
    source: &mut SourceRecord,
    events: &mut u64,
) -> Result<u64, Error> {
    let mut bytes = 0;
    for cpu in 0..instance.cpus() {
        bytes += instance.drain(cpu, |layout, page| {
            source.lost_before_pages += u64::from(layout.has_missed(page));
            layout.events(page, |raw| {
                *events += 1;
                match decoder.event(raw.time_ns, raw.bytes) {
                    Some(event) => merge.take(cpu, event),
                    None => source.unread_events += 1,
                }
            })
        })?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_holds_something_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x"), "").unwrap();
        assert!(prepare_folder(folder.path()).unwrap_err().to_string().contains("not empty"));
        assert!(prepare_folder(&folder.path().join("new")).is_ok());
    }
}
