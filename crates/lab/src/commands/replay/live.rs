//! `replay --live`: a trace's accesses made on real files by the live page cache, and its counters beside those of a simulated machine.
//!
//! One thread reads, and nothing is read by others, so that the outcome is always the same. The simulated machine is built from the same configuration, its
//! work costs nothing and its device has no latency: what then differs is a fault of one of the two.

use std::cell::Cell;
use std::fmt::Write;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use pageout_engine::PAGE_SIZE;
use pageout_live::{Limits, Memory, Open};
use pageout_sim::scenario::Device;
use pageout_sim::{LoneReader, Observer, Progress};
use pageout_study::bench::Policy;
use pageout_workload::trace::{self, Loaded};
use pageout_workload::{Access, AccessStream, ReadOptions, TraceError};
use serde_json::{Value, json};

use super::{PAGES_MIN, loaded, pages};
use crate::commands::replay::args::{ChannelArg, ReplayArgs, SwapArg};
use crate::commands::trace::{read_options, remark_interpretation};
use crate::failure::{Failure, Outcome};
use crate::print::progress::name_of;
use crate::print::{figures, output, progress, signals, table};

/// The group whose limit is the memory asked about.
const GROUP: &str = "replay";
/// Accesses between two looks at whether a signal has come.
const AT_ONCE: usize = 1 << 12;

/// A file that the accesses of one object of the trace are made on.
struct OnFile {
    path: PathBuf,
    bytes: u64,
    /// Whether it was made for this, and goes where this fails.
    is_made: bool,
}

/// Replays on real files.
pub(super) fn replay(
    args: &ReplayArgs,
    policies: &[Policy],
    limits: &[pageout_sim::scenario::keys::Limit],
) -> Outcome {
    let [trace] = &args.traces[..] else {
        return Err(Failure::Input(anyhow!("--live replays one trace, and these are {}", args.traces.len())));
    };
    refuse(args)?;
    let ([Policy::Machine { name, profile }], [limit]) = (policies, limits) else {
        return Err(Failure::Input(anyhow!(
            "--live replays one policy of the machine (--policy classic@6.12, mglru@6.12) with one size of --memory"
        )));
    };
    let options = read_options(&args.reading)?;
    remark_interpretation(trace, &options).map_err(|error| anyhow!("{error}"))?;
    let loaded = loaded(args, trace, usize::MAX, &options).map_err(anyhow::Error::from)?;
    ensure_accesses(trace, &loaded)?;
    let limit_pages = pages(*limit, loaded.footprint.distinct_pages(), PAGES_MIN)?;
    let files = Files::open(args, trace, &loaded)?;
    let replay =
        Replay { args, trace, options: &options, loaded: &loaded, files: &files.all, profile, limit_pages };
    let _listening = signals::listen();
    let (memory, live) = match replay.live()? {
        Some(done) => done,
        None => return interrupted(args),
    };
    let Some(simulated) = replay.simulated(&memory)? else { return interrupted(args) };
    files.keep();
    let both = Both { replay: &replay, policy: name, live, simulated };
    let differing = both.rows().iter().filter(|row| row.live != row.simulated).count();
    if args.output.is_data() {
        output::print_json(&both.json())?;
    } else {
        output::print_text(&both.text())?;
    }
    match differing {
        0 => Ok(()),
        differing => Err(Failure::Unexpected(anyhow!(
            "{} live than simulated",
            match differing {
                1 => "1 counter is another".to_string(),
                differing => format!("{differing} counters are others"),
            }
        ))),
    }
}

fn interrupted(args: &ReplayArgs) -> Outcome {
    let signal = signals::to_end().unwrap_or(2);
    let told = anyhow!("{} before the end: half of a replay compares with nothing", signals::name(signal));
    output::no_result(&args.output, Failure::Interrupted(signal, told), Value::Null)
}

fn ensure_accesses(trace: &Path, loaded: &Loaded) -> anyhow::Result<()> {
    ensure!(loaded.footprint.accesses > 0, "{} has no accesses to replay", trace.display());
    Ok(())
}

/// What a file that is only read has no use for.
fn refuse(args: &ReplayArgs) -> anyhow::Result<()> {
    let given = [
        ("--channel", args.channel != ChannelArg::File, "a live file is read"),
        ("--writes", args.writes, "a live file is only read; without it writes are replayed as reads"),
        ("--by", args.by.is_some(), "one group reads"),
        ("--timed", args.timed.is_some(), "accesses follow each other"),
        ("--warm-up", args.warm_up.is_some(), "the counters begin with the first access"),
        ("--sample", args.sample.is_some(), "every access is made"),
        ("--device", args.device != "nvme", "the device is that of the file"),
        ("--swap", args.swap != SwapArg::None, "pages of files are not swapped"),
        ("--think-time", args.think_time != "0s", "accesses follow each other"),
        (
            "--print-scenario",
            args.print_scenario,
            "the simulated machine is built from the live one's configuration",
        ),
        ("--report", args.page.report.is_some(), "there is a table only"),
    ];
    for (option, is_given, why) in given {
        ensure!(!is_given, "{option} can't be with --live: {why}");
    }
    let window_kb = args.window_kb(true);
    ensure!(
        [0, Device::READ_AHEAD_KB].contains(&window_kb),
        "--read-ahead-kb {} can't be with --live: files are read ahead as the kernel does by itself ({}), or not at all (0)",
        window_kb,
        Device::READ_AHEAD_KB
    );
    Ok(())
}

/// Files, of which those that were made go again unless they are kept.
struct Files {
    all: Vec<OnFile>,
    are_kept: Cell<bool>,
}

impl Files {
    /// One for each object of the trace.
    fn open(args: &ReplayArgs, trace: &Path, loaded: &Loaded) -> anyhow::Result<Files> {
        let objects = &loaded.footprint.objects;
        ensure!(
            args.live.len() == objects.len(),
            "{} has {}, and --live names {}: say --live once for each, in their order{}",
            trace.display(),
            figures::counted(objects.len() as u64, "object"),
            figures::counted(args.live.len() as u64, "file"),
            if args.live.len() < objects.len() { "; --read csv.object=[] makes one of them" } else { "" }
        );
        let mut files = Files { all: Vec::new(), are_kept: Cell::new(false) };
        for ((at, path), object) in (0..).zip(&args.live).zip(objects) {
            let needed = object.pages * PAGE_SIZE;
            let name = path.display();
            let is_made = args.make && std::fs::symlink_metadata(path).is_err();
            if is_made {
                let file = File::create_new(path).with_context(|| format!("{name} can't be made"))?;
                files.all.push(OnFile { path: path.clone(), bytes: needed, is_made });
                file.set_len(needed)
                    .with_context(|| format!("{name} can't be made {} long", figures::bytes(needed)))?;
                continue;
            }
            let metadata = std::fs::metadata(path).with_context(|| match args.make {
                false => format!("{name}; --make makes a file that is not there"),
                true => name.to_string(),
            })?;
            ensure!(metadata.is_file(), "{name} is no regular file: only such a file is read here");
            ensure!(
                metadata.len().div_ceil(PAGE_SIZE) >= object.pages,
                "{} reaches to page {} of object {at}, which takes {}, and {name} has {}",
                trace.display(),
                figures::count(object.pages.saturating_sub(1)),
                figures::bytes(needed),
                figures::bytes(metadata.len())
            );
            files.all.push(OnFile { path: path.clone(), bytes: metadata.len(), is_made });
        }
        Ok(files)
    }

    fn bytes(files: &[OnFile]) -> u64 {
        files.iter().map(|file| file.bytes.next_multiple_of(PAGE_SIZE)).sum()
    }

    /// Leaves what was made where it is.
    fn keep(&self) {
        self.are_kept.set(true);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in self.all.iter().filter(|file| file.is_made && !self.are_kept.get()) {
            let _ = std::fs::remove_file(&file.path);
        }
    }
}

/// One replay, of which both machines know the same.
struct Replay<'a> {
    args: &'a ReplayArgs,
    trace: &'a Path,
    options: &'a ReadOptions,
    loaded: &'a Loaded,
    files: &'a [OnFile],
    profile: &'a str,
    limit_pages: u64,
}

/// What one of the two machines has come to.
#[derive(Default)]
struct Counted {
    /// Name and value, in the order of the kernel's files.
    counters: Vec<(String, u64)>,
    pages_read: u64,
    elapsed_ns: u64,
    remark: Option<String>,
}

impl Replay<'_> {
    fn stream(&self) -> Result<Box<dyn AccessStream>, TraceError> {
        match &self.loaded.accesses {
            Some(packed) => Ok(Box::new(packed.stream())),
            None => Ok(Box::new(trace::open(self.trace, self.options)?)),
        }
    }

    fn is_random(&self) -> bool {
        self.args.window_kb(self.loaded.has_neighbours) == 0
    }

    /// A page cache in which the group's limit is what is short.
    fn memory(&self) -> anyhow::Result<Memory> {
        let bytes = Files::bytes(self.files);
        let limit = self.limit_pages * PAGE_SIZE;
        // Words of the files' pages, and twice the limit with the records of its frames.
        let budget =
            (limit * 2).saturating_add(limit / 16).saturating_add(bytes / 400).saturating_add(16 << 20);
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available = text.lines().find_map(|line| {
            line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
        if let Some(available) = available.map(|kib| kib << 10) {
            ensure!(
                budget - limit <= available,
                "--memory: {} for pages, with records of all pages of the files, are more than the {} that this machine has available",
                figures::bytes(limit),
                figures::bytes(available)
            );
        }
        // Whoever waits for a page reads it: who else would, would come at another time each time.
        let read_ahead = u64::from(self.args.window_kb(self.loaded.has_neighbours)) << 10;
        let builder = Memory::builder().budget(budget).files(bytes).policy(self.profile);
        let built = builder.io_threads(0).read_ahead(read_ahead).build();
        built.map_err(|error| match error {
            pageout_live::Error::Config(_) => anyhow!("--policy {}: {error}", self.profile),
            error => error.into(),
        })
    }

    /// Makes the accesses on real files. Nothing where a signal has come.
    fn live(&self) -> Result<Option<(Memory, Counted)>, Failure> {
        let memory = self.memory()?;
        let limits = Limits { max: Some(self.limit_pages * PAGE_SIZE), ..Limits::NONE };
        let tenant = memory.group(GROUP, limits).map_err(anyhow::Error::from)?;
        let mut remark = None;
        let mut open = |file: &OnFile| {
            let how = Open::read().group(&tenant);
            let how = if self.is_random() { how.random() } else { how };
            match memory.open(&file.path, how.clone()) {
                Err(pageout_live::Error::DirectRefused { .. }) => {
                    remark = Some(format!(
                        "{} is read through the kernel's page cache, as its file system does not read past it (O_DIRECT)",
                        file.path.display()
                    ));
                    memory.open(&file.path, how.buffered(true))
                }
                opened => opened,
            }
        };
        let files =
            self.files.iter().map(&mut open).collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::from)?;
        let bar = progress::bar(&self.args.output, Some(self.loaded.footprint.accesses), "live");
        let mut stream = self.stream().map_err(anyhow::Error::from)?;
        let (mut accesses, mut buf) = (Vec::<Access>::new(), vec![0; PAGE_SIZE as usize]);
        let began = Instant::now();
        while stream.fill(&mut accesses, AT_ONCE).map_err(anyhow::Error::from)? > 0 {
            for access in accesses.drain(..) {
                let file = &files[access.object() as usize];
                let offset = access.page() * PAGE_SIZE;
                let len = file.len().saturating_sub(offset).min(PAGE_SIZE) as usize;
                file.read_at(&mut buf[..len], offset).map_err(|error| Failure::Workload(error.into()))?;
                bar.inc(1);
            }
            if signals::to_end().is_some() {
                bar.finish_and_clear();
                return Ok(None);
            }
        }
        let elapsed_ns = began.elapsed().as_nanos() as u64;
        bar.finish_and_clear();
        let read = |path: &str| memory.read(path).map_err(anyhow::Error::from);
        let counters = counters(read)?;
        let stats = memory.stats().map_err(anyhow::Error::from)?;
        let pages_read = stats.device_bytes.div_ceil(PAGE_SIZE);
        Ok(Some((memory.clone(), Counted { counters, pages_read, elapsed_ns, remark })))
    }

    /// The same of a simulated machine that is built as the live one is.
    fn simulated(&self, memory: &Memory) -> Result<Option<Counted>, Failure> {
        let mut reader = LoneReader::new(memory.config(), GROUP).map_err(anyhow::Error::from)?;
        let (path, limit) = (format!("/sys/fs/cgroup/{GROUP}/memory.max"), self.limit_pages * PAGE_SIZE);
        reader.write(&path, &limit.to_string()).map_err(anyhow::Error::from)?;
        for file in self.files {
            let pages = file.bytes.div_ceil(PAGE_SIZE);
            reader.open(pages, self.is_random()).map_err(anyhow::Error::from)?;
        }
        let (packed, path, options) =
            (self.loaded.accesses.clone(), self.trace.to_path_buf(), self.options.clone());
        let source = move |_| -> Result<Box<dyn AccessStream>, TraceError> {
            let stream: Box<dyn AccessStream> = match &packed {
                Some(packed) => Box::new(packed.stream()),
                None => Box::new(trace::open(&path, &options)?),
            };
            Ok(Box::new(Reads(stream)))
        };
        let bar = progress::bar(&self.args.output, Some(self.loaded.footprint.accesses), "simulated");
        let began = Instant::now();
        let ended = reader.run(Box::new(source), &mut Watching(&bar));
        bar.finish_and_clear();
        let mut machine = ended.map_err(|error| Failure::Workload(anyhow!("simulated: {error}")))?;
        if signals::to_end().is_some() {
            return Ok(None);
        }
        let elapsed_ns = began.elapsed().as_nanos() as u64;
        let pages_read = machine.report().devices.iter().map(|device| device.pages_read).sum();
        let counters = counters(|path| machine.engine_mut().read_file(path).map_err(anyhow::Error::from))?;
        Ok(Some(Counted { counters, pages_read, elapsed_ns, remark: None }))
    }
}

/// A trace whose writes read.
struct Reads(Box<dyn AccessStream>);

impl AccessStream for Reads {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let had = out.len();
        let filled = self.0.fill(out, max)?;
        out[had..].iter_mut().for_each(|access| *access = access.as_read());
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        self.0.len_hint()
    }
}

/// Shows how far the simulated machine is, and ends it when a signal comes.
struct Watching<'a>(&'a indicatif::ProgressBar);

impl Observer for Watching<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.0.set_position(progress.accesses);
        if signals::to_end().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What both machines have to say: all of the group's `memory.stat`, what `/proc/vmstat` has of reclaim and files, and pages by generation.
fn counters(mut read: impl FnMut(&str) -> anyhow::Result<String>) -> anyhow::Result<Vec<(String, u64)>> {
    const OF_MACHINE: [&str; 11] = [
        "pgscan",
        "pgsteal",
        "workingset",
        "pgactivate",
        "pgdeactivate",
        "pgrefill",
        "nr_inactive",
        "nr_active",
        "nr_file_pages",
        "allocstall",
        "pgpromote",
    ];
    let named = |text: &str, file: &str, is_meant: &dyn Fn(&str) -> bool| {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let counters = lines.filter(|(name, _)| is_meant(name));
        counters
            .filter_map(|(name, value)| Some((format!("{file} {name}"), value.trim().parse().ok()?)))
            .collect()
    };
    let mut all: Vec<(String, u64)> =
        named(&read(&format!("/sys/fs/cgroup/{GROUP}/memory.stat"))?, "memory.stat", &|_| true);
    let current = read(&format!("/sys/fs/cgroup/{GROUP}/memory.current"))?;
    all.push(("memory.current".to_string(), current.trim().parse().context("memory.current")?));
    all.extend(named(&read("/proc/vmstat")?, "vmstat", &|name| {
        OF_MACHINE.iter().any(|of| name.starts_with(of))
    }));
    // A generation a line: its number, its age, pages of both kinds.
    let generations = read("/sys/kernel/debug/lru_gen")?;
    let mut group = String::new();
    for line in generations.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["memcg", _, path] => group = path.to_string(),
            [number, _, anon, file] => {
                for (kind, pages) in [("anon", anon), ("file", file)] {
                    let Ok(pages) = pages.parse() else { continue };
                    all.push((format!("lru_gen {group} {number} {kind}"), pages));
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

/// A counter as both machines have it; nothing where one has none.
#[derive(PartialEq, Eq)]
struct Row {
    name: String,
    live: Option<u64>,
    simulated: Option<u64>,
}

/// Both machines.
struct Both<'a> {
    replay: &'a Replay<'a>,
    policy: &'a str,
    live: Counted,
    simulated: Counted,
}

impl Both<'_> {
    /// All counters that one of the two has.
    fn rows(&self) -> Vec<Row> {
        let of = |counted: &Counted, name: &str| {
            counted.counters.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
        };
        let names = self.live.counters.iter().chain(&self.simulated.counters).map(|(name, _)| name);
        let mut rows: Vec<Row> = vec![Row {
            name: "pages read from the device".to_string(),
            live: Some(self.live.pages_read),
            simulated: Some(self.simulated.pages_read),
        }];
        for name in names {
            if rows.iter().all(|row| row.name != *name) {
                let (live, simulated) = (of(&self.live, name), of(&self.simulated, name));
                rows.push(Row { name: name.clone(), live, simulated });
            }
        }
        rows
    }

    fn json(&self) -> Value {
        let replay = self.replay;
        let rows = self.rows();
        json!({
            "trace": replay.trace.display().to_string(),
            "files": replay.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(),
            "accesses": replay.loaded.footprint.accesses,
            "policy": self.policy,
            "memory_bytes": replay.limit_pages * PAGE_SIZE,
            "equal": rows.iter().all(|row| row.live == row.simulated),
            "live_ns": self.live.elapsed_ns,
            "remark": self.live.remark,
            "counters": rows.iter().map(|row| json!({
                "name": row.name, "live": row.live, "simulated": row.simulated, "equal": row.live == row.simulated,
            })).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let replay = self.replay;
        let accesses = replay.loaded.footprint.accesses;
        let mut text = format!(
            "{} accesses of {} on real files, by one thread, with {} of memory (memory.max), {}: {}, {} each\n",
            figures::count(accesses),
            name_of(replay.trace),
            figures::bytes(replay.limit_pages * PAGE_SIZE),
            self.policy,
            figures::time(self.live.elapsed_ns),
            figures::time(self.live.elapsed_ns / accesses.max(1)),
        );
        for (at, file) in replay.files.iter().enumerate() {
            let made = if file.is_made { ", made for this: it reads as zeroes, and stays" } else { "" };
            let _ =
                writeln!(text, "object {at}: {}, {}{made}", file.path.display(), figures::bytes(file.bytes));
        }
        let rows = self.rows();
        let is_shown = |row: &&Row| {
            row.live.unwrap_or(0) > 0 || row.simulated.unwrap_or(0) > 0 || row.live != row.simulated
        };
        let show = |value: Option<u64>| value.map_or("-".to_string(), figures::count);
        let mut cells = vec![["", "live", "simulated", ""].map(str::to_string).to_vec()];
        cells.extend(rows.iter().filter(is_shown).map(|row| {
            let differs = if row.live == row.simulated { "" } else { "differs" };
            vec![row.name.clone(), show(row.live), show(row.simulated), differs.to_string()]
        }));
        let _ = writeln!(text, "\n{}", table::layout_by(&cells, |column| [1, 2].contains(&column)));
        let zero = rows.iter().filter(|row| !is_shown(row)).count();
        let differing = rows.iter().filter(|row| row.live != row.simulated).count();
        let _ = writeln!(
            text,
            "{} compared, {} of them zero in both: {}",
            figures::counted(rows.len() as u64, "counter"),
            zero,
            match differing {
                0 => "all are equal".to_string(),
                1 => "1 differs".to_string(),
                differing => format!("{differing} differ"),
            }
        );
        self.live.remark.iter().for_each(|remark| text += &format!("note: {remark}\n"));
        text
    }
}
