//! One replay by two machines: the live page cache on real files, and the simulated one.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use pageout_engine::PAGE_SIZE;
use pageout_live::{Group, Limits, Memory, Open, Region, RegionOptions};
use pageout_sim::{LoneReader, Observer, Progress};
use pageout_workload::trace::{self, Loaded};
use pageout_workload::{Access, AccessStream, ReadOptions, TraceError};

use super::OnRegion;
use super::files::{Files, OnFile};
use crate::error::{Error, Failed, told};
use crate::figures;
use crate::live_run::buffered;
use crate::replay::ask::Ask;
use crate::watch::Watcher;

/// The group whose limit is the memory asked about.
const GROUP: &str = "replay";
/// Accesses between two looks at whether a signal has come.
const AT_ONCE: usize = 1 << 12;

/// One replay, of which both machines know the same.
pub(super) struct Replay<'a> {
    pub(super) ask: &'a Ask,
    pub(super) trace: &'a Path,
    pub(super) options: &'a ReadOptions,
    pub(super) loaded: &'a Loaded,
    pub(super) files: &'a [OnFile],
    /// What is accessed in place of files.
    pub(super) region: Option<OnRegion<'a>>,
    pub(super) profile: &'a str,
    pub(super) limit_pages: u64,
    pub(super) watcher: &'a dyn Watcher,
}

/// The result of one of the two machines.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Name and value, in the order of the kernel's files.
    pub(super) counters: Vec<(String, u64)>,
    pub(super) pages_read: u64,
    pub(super) elapsed_ns: u64,
    pub(super) remark: Option<String>,
}

/// An error of what was given, with its causes.
fn wrong(error: impl std::error::Error + 'static) -> Error {
    Error::asked(told(&error))
}

impl Replay<'_> {
    /// The accesses as both machines make them.
    fn stream(&self) -> Result<Box<dyn AccessStream>, TraceError> {
        let stream = self.recorded()?;
        Ok(match self.region {
            Some(region) => Box::new(Filled::new(stream, region.pages, self.ask.writes)),
            None => Box::new(Reads(stream)),
        })
    }

    fn recorded(&self) -> Result<Box<dyn AccessStream>, TraceError> {
        match &self.loaded.accesses {
            Some(packed) => Ok(Box::new(packed.stream())),
            None => Ok(Box::new(trace::open(self.trace, self.options)?)),
        }
    }

    fn is_random(&self) -> bool {
        self.ask.window_kb(self.loaded.has_neighbours) == 0
    }

    /// A page cache in which the group's limit is what is short.
    fn memory(&self) -> Result<Memory, Error> {
        let region = self.region.map_or(0, |region| region.pages * PAGE_SIZE);
        let bytes = Files::bytes(self.files) + region;
        let limit = self.limit_pages * PAGE_SIZE;
        // Words of the files' pages, and twice the limit with the records of its frames.
        let budget = (limit * 2)
            .saturating_add(limit / 16)
            .saturating_add((bytes + 3 * region) / 400)
            .saturating_add(16 << 20);
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available = text.lines().find_map(|line| {
            line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
        let too_little = available.map(|kib| kib << 10).filter(|available| budget - limit > *available);
        if let Some(available) = too_little {
            return Err(Error::asked(format!(
                "--memory: {} of pages and the records of all file pages need more than the {} that this machine has available",
                figures::bytes(limit),
                figures::bytes(available)
            )));
        }
        // The thread that waits for a page reads it: another thread would read at a different time in each run.
        let read_ahead = u64::from(self.ask.window_kb(self.loaded.has_neighbours)) << 10;
        let builder = Memory::builder().budget(budget).files(bytes).policy(self.profile);
        let builder = builder.io_threads(0).read_ahead(read_ahead);
        let built = match self.region {
            None => builder.build(),
            Some(of) => match builder.clone().swap_file(of.folder, of.swap_bytes()).build() {
                Err(pageout_live::Error::DirectRefused { .. }) => {
                    builder.swap_file(of.folder, of.swap_bytes()).swap_buffered(true).build()
                }
                built => built,
            },
        };
        built.map_err(|error| match error {
            pageout_live::Error::Config(_) => Error::asked(format!("--policy {}: {error}", self.profile)),
            error => wrong(error),
        })
    }

    /// The region, if the accesses are made on one.
    fn map(&self, memory: &Memory, tenant: &Group) -> Result<Option<Region>, Error> {
        let map = |of: OnRegion<'_>| {
            let region =
                memory.region(of.pages * PAGE_SIZE, RegionOptions::new().group(tenant).name("replay"));
            region.map_err(wrong)
        };
        self.region.map(map).transpose()
    }

    /// Makes the accesses on real files. Nothing where a signal has come.
    pub(super) fn live(&self) -> Result<Option<(Memory, Counted)>, Error> {
        let memory = self.memory()?;
        let limits = Limits { max: Some(self.limit_pages * PAGE_SIZE), ..Limits::NONE };
        let tenant = memory.group(GROUP, limits).map_err(wrong)?;
        let mut remark = None;
        let mut open = |file: &OnFile| {
            let how = Open::read().group(&tenant);
            let how = if self.is_random() { how.random() } else { how };
            match memory.open(&file.path, how.clone()) {
                Err(pageout_live::Error::DirectRefused { .. }) => {
                    remark = Some(buffered(&file.path));
                    memory.open(&file.path, how.buffered(true))
                }
                opened => opened,
            }
        };
        let files = self.files.iter().map(&mut open).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let region = self.map(&memory, &tenant)?;
        let mut stream = self.stream().map_err(wrong)?;
        let (mut accesses, mut buf) = (Vec::<Access>::new(), vec![0; PAGE_SIZE as usize]);
        let began = Instant::now();
        while stream.fill(&mut accesses, AT_ONCE).map_err(wrong)? > 0 {
            self.watcher.advance(accesses.len() as u64);
            for access in accesses.drain(..) {
                if let Some(region) = &region {
                    let made = access_region(region, access, &mut buf);
                    made.map_err(|message| Error::Failed(Failed { is_input: false, message }))?;
                    continue;
                }
                let file = &files[access.object() as usize];
                let offset = access.page() * PAGE_SIZE;
                let len = file.len().saturating_sub(offset).min(PAGE_SIZE) as usize;
                let read = file.read_at(&mut buf[..len], offset);
                read.map_err(|error| Failed { is_input: false, message: told(&error) })
                    .map_err(Error::Failed)?;
            }
            if self.watcher.stop().is_some() {
                return Ok(None);
            }
        }
        let elapsed_ns = began.elapsed().as_nanos() as u64;
        let read = |path: &str| memory.read(path).map_err(wrong);
        let counters = counters(read)?;
        let stats = memory.stats().map_err(wrong)?;
        let pages_read = stats.device_bytes.div_ceil(PAGE_SIZE);
        Ok(Some((memory.clone(), Counted { counters, pages_read, elapsed_ns, remark })))
    }

    /// The same of a simulated machine that is built as the live one is.
    pub(super) fn simulated(&self, memory: &Memory) -> Result<Option<Counted>, Error> {
        let swap = self.region.map_or(0, |region| region.swap_bytes() / PAGE_SIZE);
        let mut reader = LoneReader::with_swap(memory.config(), GROUP, swap).map_err(wrong)?;
        let (path, limit) = (format!("/sys/fs/cgroup/{GROUP}/memory.max"), self.limit_pages * PAGE_SIZE);
        reader.write(&path, &limit.to_string()).map_err(wrong)?;
        for file in self.files {
            let pages = file.bytes.div_ceil(PAGE_SIZE);
            reader.open(pages, self.is_random()).map_err(wrong)?;
        }
        if let Some(region) = self.region {
            reader.map(region.pages, []).map_err(wrong)?;
        }
        let (packed, path, options) =
            (self.loaded.accesses.clone(), self.trace.to_path_buf(), self.options.clone());
        let (region, writes) = (self.region.map(|region| region.pages), self.ask.writes);
        let source = move |_| -> Result<Box<dyn AccessStream>, TraceError> {
            let stream: Box<dyn AccessStream> = match &packed {
                Some(packed) => Box::new(packed.stream()),
                None => Box::new(trace::open(&path, &options)?),
            };
            Ok(match region {
                Some(pages) => Box::new(Filled::new(stream, pages, writes)),
                None => Box::new(Reads(stream)),
            })
        };
        let began = Instant::now();
        let ended = reader.run(Box::new(source), &mut Watching { watcher: self.watcher, told: 0 });
        let mut machine = ended.map_err(|error| {
            Error::Failed(Failed { is_input: false, message: format!("simulated: {error}") })
        })?;
        if self.watcher.stop().is_some() {
            return Ok(None);
        }
        let elapsed_ns = began.elapsed().as_nanos() as u64;
        let pages_read = machine.report().devices.iter().map(|device| device.pages_read).sum();
        let counters = counters(|path| machine.engine_mut().read_file(path).map_err(wrong))?;
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

/// A trace on a region: the first access to each page writes it, as a page that was never written has no contents.
struct Filled {
    stream: Box<dyn AccessStream>,
    /// Pages that were accessed.
    filled: Vec<bool>,
    /// Writes of the trace are writes.
    writes: bool,
}

impl Filled {
    fn new(stream: Box<dyn AccessStream>, pages: u64, writes: bool) -> Filled {
        Filled { stream, filled: vec![false; pages as usize], writes }
    }
}

impl AccessStream for Filled {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let had = out.len();
        let count = self.stream.fill(out, max)?;
        for access in &mut out[had..] {
            let is_first = !std::mem::replace(&mut self.filled[access.page() as usize], true);
            let is_write = is_first || self.writes && access.is_write();
            *access = Access::new(access.object(), access.page(), is_write);
        }
        Ok(count)
    }

    fn len_hint(&self) -> Option<u64> {
        self.stream.len_hint()
    }
}

/// Makes an access on a region, and checks that the page is the one that was written. Errors: why it failed.
fn access_region(region: &Region, access: Access, buf: &mut [u8]) -> Result<(), String> {
    let (page, number) = (access.page(), (access.page() + 1).to_le_bytes());
    let offset = page * PAGE_SIZE;
    if access.is_write() {
        buf.fill(0);
        buf[..8].copy_from_slice(&number);
        return region.write_at(buf, offset).map_err(|error| told(&error));
    }
    region.read_at(buf, offset).map_err(|error| told(&error))?;
    match buf[..8] == number {
        true => Ok(()),
        false => Err(format!("page {page}: found the bytes {:?}, expected {number:?}", &buf[..8])),
    }
}

impl OnRegion<'_> {
    /// Bytes of the swap file: all pages, and a batch of slots of the CPU.
    fn swap_bytes(self) -> u64 {
        self.pages * PAGE_SIZE + (1 << 20)
    }
}

/// Reports the progress of the simulated machine, and ends it when a signal comes.
struct Watching<'a> {
    watcher: &'a dyn Watcher,
    /// Accesses reported to the watcher.
    told: u64,
}

impl Observer for Watching<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.watcher.advance(progress.accesses - self.told);
        self.told = progress.accesses;
        if self.watcher.stop().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The counters of both machines: all of the group's `memory.stat`, the counters of reclaim and files in `/proc/vmstat`, and pages by
/// generation.
fn counters(mut read: impl FnMut(&str) -> Result<String, Error>) -> Result<Vec<(String, u64)>, Error> {
    const OF_MACHINE: [&str; 15] = [
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
        "nr_anon_pages",
        "pswp",
        "pgrotated",
        "nr_swapcached",
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
    let current = current.trim().parse();
    let current = current.map_err(|error| Error::asked(format!("memory.current: {error}")))?;
    all.push(("memory.current".to_string(), current));
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
