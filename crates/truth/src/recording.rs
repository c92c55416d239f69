//! The inputs of each recorded run, as the kernel got them, and nothing of its answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use pageout_study::Watcher;
use pageout_study::scenario::nearest;
use pageout_workload::Access;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::class::Class;
use super::files::{self, read_json, read_runs, read_words, words_path};
use crate::input::Input;

/// A folder of recorded runs.
#[derive(Debug)]
pub(crate) struct Recording {
    dir: PathBuf,
    runs: Vec<Run>,
    /// By run, when the kernel flushed its memcg statistics.
    flushes: BTreeMap<String, Vec<Flush>>,
    /// What is not to be replayed, though it was recorded.
    without: Vec<Input>,
}

/// When the kernel flushed its memcg statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flush {
    /// Before this access.
    pub(crate) before: u64,
    /// In the access before it, after N pages had entered and left the page cache since the start of the run. Without it, after that
    /// access.
    pub(crate) entries: Option<u64>,
}

/// One run, with the settings that its recorder chose.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) workload: String,
    /// `classic` or `mglru`, of the kernel's era; or a profile's name.
    pub(crate) policy: String,
    pub(crate) rep: String,
    /// The version of the recorded kernel.
    pub(crate) kernel: Option<String>,
    pub(crate) sequence: String,
    /// Pages that fit; 0 for no limit.
    pub(crate) limit_pages: u64,
    /// `kind:pages[:path[:request]]`.
    pub(crate) objects: Vec<String>,
    pub(crate) swap: String,
    #[serde(default = "swap_pages")]
    pub(crate) swap_pages: u64,
    pub(crate) swappiness: u8,
    #[serde(default)]
    pub(crate) zswap: u8,
    #[serde(default)]
    pub(crate) zswap_shrinker: u8,
    pub(crate) cmdline: String,
    #[serde(default)]
    pub(crate) wl_options: String,
    pub(crate) mem_total_kb: u64,
    pub(crate) cpus: u16,
    #[serde(default = "hz")]
    pub(crate) hz: u32,
    #[serde(default)]
    pub(crate) read_ahead_kb: u64,
    /// A page or less: off.
    #[serde(default)]
    pub(crate) fault_around_bytes: u64,
    /// Translations that the recording's processor held; those of the recording program's emulator if absent.
    pub(crate) tlb_entries: Option<u32>,
    /// Memory of the group other than the objects, oldest first; `base_pages` if absent.
    pub(super) group_at_start: Option<Vec<BasePage>>,
    /// The same, declared rather than observed; by kind of run if absent.
    pub(super) base_pages: Option<Vec<BasePage>>,
    /// The access, and how many address spaces were walked in it: each time that the youngest generation was to be aged.
    pub(crate) agings: Option<Vec<(u64, u64)>>,
    /// Which pages each fault mapped.
    pub(crate) mapped_file: Option<PathBuf>,
    /// When each access began.
    pub(crate) access_times: Option<PathBuf>,
    /// The machine's allocator and LRU lists before the first access.
    pub(crate) start_state: Option<PathBuf>,
    /// Events of a whole machine's kernel.
    pub(crate) trace_file: Option<PathBuf>,
    /// Pages that the program charged on its way out, before `lru_gen` was read.
    #[serde(default = "exit_pages")]
    pub(crate) exit_pages: u64,
    /// Seconds since the boot at the first access.
    #[serde(default)]
    pub(crate) start_s: f64,
    /// Free memory before the first access.
    pub(crate) state_at_start: Option<StartState>,
    /// Another program at the same time.
    pub(crate) second: Option<Second>,
    pub(crate) ops: u64,
    pub(crate) windows: Vec<Window>,
}

/// A second program.
#[derive(Debug, Deserialize)]
pub(crate) struct Second {
    pub(crate) sequence: String,
    pub(crate) objects: Vec<String>,
    pub(crate) ops: u64,
    pub(crate) start_s: f64,
    pub(crate) state_at_start: Option<StartState>,
    pub(crate) windows: Vec<Window>,
}

/// Free memory of the machine at a moment, by zone.
#[derive(Debug, Deserialize)]
pub(crate) struct StartState {
    zones: BTreeMap<String, StartZone>,
}

#[derive(Debug, Deserialize)]
struct StartZone {
    free: u64,
    min: u64,
    /// What is on top of the marks.
    #[serde(default)]
    boost: u64,
    #[serde(default)]
    per_cpu: Vec<u64>,
}

impl StartState {
    /// Free pages, and those that CPUs hold.
    pub(crate) fn spare_pages(&self) -> u64 {
        self.zones
            .values()
            .map(|zone| zone.per_cpu.iter().fold(zone.free, |sum, &pages| sum.saturating_add(pages)))
            .sum()
    }

    /// The marks below which who allocates reclaims first, without a boost.
    pub(crate) fn min_pages(&self) -> u64 {
        self.zones.values().map(|zone| zone.min.saturating_sub(zone.boost)).sum()
    }
}

/// A page of the group's that belongs to none of the objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum BaseKind {
    /// The program's flags of first touches, anonymous.
    Flags,
    /// Program data, mapped and touched once.
    Data,
    /// Program text, the same.
    Text,
    /// A busy page of the block device: active from the start, and never dropped.
    Device,
}

/// The kind of page, with its number if a kind has several: `text`, or `text:34` by its number in the program's file. `device:active:batch`
/// also marks it as active and not yet on a list, which is how it is always simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct BasePage {
    pub(crate) kind: BaseKind,
    pub(crate) page: Option<u64>,
}

impl TryFrom<String> for BasePage {
    type Error = String;

    fn try_from(text: String) -> Result<BasePage, String> {
        const KINDS: &[(&str, BaseKind)] = &[
            ("flags", BaseKind::Flags),
            ("data", BaseKind::Data),
            ("text", BaseKind::Text),
            ("device", BaseKind::Device),
        ];
        let mut parts = text.split(':').filter(|part| !["active", "batch"].contains(part));
        let (name, page) = (parts.next().unwrap_or_default(), parts.next());
        let known = KINDS.iter().find(|(known, _)| *known == name).filter(|_| parts.next().is_none());
        let page = page
            .map(|page| page.parse().ok().filter(|&page: &u64| page < BASE_PAGES_MAX))
            .map_or(Some(None), |page| page.map(Some));
        match (known, page) {
            (Some(&(_, kind)), Some(page)) if page.is_none() || kind != BaseKind::Flags => {
                Ok(BasePage { kind, page })
            }
            _ => Err(format!(
                "found page `{text}`, expected `flags`, `data`, `text` or `device`, the last three \
                 optionally with a number below {BASE_PAGES_MAX}, for example `text:34`"
            )),
        }
    }
}

/// Pages of a program's file, or of a block device, that can be named.
const BASE_PAGES_MAX: u64 = 1 << 28;

/// A point on the run's clock.
#[derive(Debug, Deserialize)]
pub(crate) struct Window {
    /// First access after the window.
    pub(crate) op: u64,
    /// Seconds since the first access.
    pub(crate) t: f64,
}

/// What `ground-truth.json` says of a run: inputs, answers, and what is for people to read.
const FIELDS: &[&str] = &[
    "id",
    "workload",
    "policy",
    "rep",
    "kernel",
    "sequence",
    "limit_pages",
    "objects",
    "swap",
    "swap_pages",
    "swappiness",
    "zswap",
    "zswap_shrinker",
    "cmdline",
    "wl_options",
    "mem_total_kb",
    "cpus",
    "hz",
    "read_ahead_kb",
    "fault_around_bytes",
    "tlb_entries",
    "group_at_start",
    "base_pages",
    "agings",
    "mapped_file",
    "access_times",
    "exit_pages",
    "second",
    "ops",
    "windows",
    "vmstat_delta",
    "memcg_delta",
    "lru_gen",
    "misses_file",
    "page_cache_stream",
    "events_file",
    "ops_missed",
    "task",
    "disk",
    "vmstat_end",
    "memcg_end",
    "memcg_events",
    "runtime_s",
    "start_s",
    "traced",
    "ftrace_file",
    "state_at_start",
    "start_state",
    "end_state",
    "trace_file",
    "page_cache_log",
    "page_cache_times",
    "wl_options_all",
    "inputs",
];

fn swap_pages() -> u64 {
    131_072
}

fn hz() -> u32 {
    250
}

fn exit_pages() -> u64 {
    13
}

#[derive(Deserialize)]
struct GroundTruth {
    runs: Vec<Run>,
}

/// The recording as JSON, for the names of its fields.
#[derive(Deserialize)]
struct Fields {
    runs: Vec<BTreeMap<String, IgnoredAny>>,
}

/// An entry of `flush-ops.json`.
#[derive(Debug, Deserialize)]
struct FlushOps {
    flush_before_access: Vec<u64>,
}

/// A row of `flushes.json`: the access in which the flush came (or after it, before the next), the number of pages that had entered and
/// left the page cache by then, and the caller.
type FlushRow = (u64, u64, u64);

impl Run {
    /// Returns true if the recording program noted each access in the kernel's trace.
    pub(crate) fn is_marked(&self) -> bool {
        self.wl_options.split_whitespace().any(|option| option == "-m")
    }

    /// Nothing but the machine's memory limits it.
    pub(crate) fn is_of_machine(&self) -> bool {
        self.limit_pages == 0
    }

    /// Returns true if the memory is on the slow node of two when the run begins, and NUMA balancing promotes it.
    pub(crate) fn is_of_balancing(&self) -> bool {
        let begins_slow = self.wl_options.split_whitespace().any(|option| option == "-S");
        let is_anon = matches!(&self.objects[..], [object] if object.starts_with("anon:"));
        begins_slow && self.is_of_machine() && is_anon && self.second.is_none()
    }

    /// How often it goes through its sequence.
    pub(crate) fn loops(&self) -> u64 {
        if !self.is_of_balancing() {
            return 1;
        }
        let mut words = self.wl_options.split_whitespace().skip_while(|&option| option != "-l");
        words.nth(1).and_then(|loops| loops.parse().ok()).unwrap_or(1).max(1)
    }

    /// Refuses what no simulation could make sense of.
    fn check(&self) -> anyhow::Result<()> {
        check_clock(&self.id, self.ops, self.start_s, &self.windows)?;
        let Some(second) = &self.second else { return Ok(()) };
        check_clock(&format!("{}, `second`", self.id), second.ops, second.start_s, &second.windows)
    }
}

fn check_clock(run: &str, ops: u64, start_s: f64, windows: &[Window]) -> anyhow::Result<()> {
    ensure!(ops > 0, "run {run}: `ops`: found 0, expected 1 or more");
    ensure!(
        start_s.is_finite() && start_s >= 0.0,
        "run {run}: `start_s`: found {start_s}, expected a number from 0"
    );
    ensure!(!windows.is_empty(), "run {run}: missing `windows`, which set its clock");
    let mut before = Window { op: 0, t: 0.0 };
    for (at, window) in windows.iter().enumerate() {
        let which = format!("run {}: `windows[{at}]`", run);
        ensure!(
            window.op > before.op && window.op <= ops,
            "{which}: `op`: found {}, expected more than {} and at most `ops`, {}",
            window.op,
            before.op,
            ops
        );
        ensure!(
            window.t.is_finite() && window.t >= before.t,
            "{which}: `t`: found {} s, expected at least {} s",
            window.t,
            before.t
        );
        before = Window { op: window.op, t: window.t };
    }
    Ok(())
}

/// Repeats have numbers. A recording by another method has a letter first: its tracing disturbs the run, so it is not a repeat.
pub(crate) fn is_repeat(rep: &str) -> bool {
    rep.starts_with(|first: char| first.is_ascii_digit())
}

impl Recording {
    /// Returns true if a folder holds one.
    pub(super) fn is_in(dir: &Path) -> bool {
        files::runs_are_in(dir)
    }

    /// Reads a folder's inputs.
    pub(crate) fn open(dir: &Path, without: &[Input], watcher: &dyn Watcher) -> anyhow::Result<Recording> {
        let path = files::runs_path(dir)?;
        let truth: GroundTruth = read_runs(&path)?;
        if truth.runs.is_empty() {
            bail!("{}: found no runs, expected [[run]] entries", path.display());
        }
        let mut ids = std::collections::BTreeSet::new();
        for run in &truth.runs {
            run.check().with_context(|| path.display().to_string())?;
            ensure!(ids.insert(&run.id), "{}: duplicate run {}", path.display(), run.id);
        }
        tell_of_unknown_fields(&path, watcher)?;
        let flushes = read_flushes(dir, &truth.runs)?;
        Ok(Recording { dir: dir.to_owned(), runs: truth.runs, flushes, without: without.to_owned() })
    }

    /// The runs named (by id, or as a glob such as `fr-*.classic.*`), or all.
    pub(crate) fn select(&self, names: &[String]) -> anyhow::Result<Vec<&Run>> {
        select(&self.dir, &self.runs, |run| &run.id, names)
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns true if an input is replayed where it was recorded.
    pub(crate) fn plays(&self, input: Input) -> bool {
        !self.without.contains(&input)
    }

    /// What is known of the pages that a run's group held before the first access.
    pub(crate) fn base_pages<'a>(&self, run: &'a Run) -> Option<&'a [BasePage]> {
        let all = [(Input::GroupAtStart, &run.group_at_start), (Input::BasePages, &run.base_pages)];
        all.into_iter().filter(|&(input, _)| self.plays(input)).find_map(|(_, pages)| pages.as_deref())
    }

    /// When the kernel flushed its statistics, where it is known.
    pub(crate) fn flushes(&self, run: &Run) -> Option<&[Flush]> {
        self.flushes.get(&run.id).map(Vec::as_slice)
    }

    /// A run that is simulated once, by a policy that decides by flushed statistics, is nothing without them.
    pub(crate) fn require_flushes(&self, run: &Run, class: &Class) -> anyhow::Result<()> {
        let is_played = !Recording::needs_flushes(run) || !self.plays(Input::Flushes);
        if class.simulations() > 1 || is_played || self.flushes(run).is_some() {
            return Ok(());
        }
        let exists = |name: &&&str| self.dir.join(name).exists();
        let missing = match FLUSH_FILES.iter().filter(exists).copied().collect::<Vec<&str>>()[..] {
            [] => format!("{}: missing, one of them is needed", FLUSH_FILES.join(" or ")),
            ref files => format!("{}: missing entry", files.join(", ")),
        };
        bail!(
            "{}/{missing} for {}; class `{}` needs its statistics flushes",
            self.dir.display(),
            run.id,
            class.name
        );
    }

    /// Its policy decides by flushed statistics.
    pub(super) fn needs_flushes(run: &Run) -> bool {
        run.policy.starts_with("classic")
    }

    /// How many simulations a run of a class takes: what was left out is open, and is spread over several.
    pub(crate) fn simulations(&self, run: &Run, class: &Class) -> usize {
        let is_open =
            Recording::needs_flushes(run) && !self.plays(Input::Flushes) && self.flushes(run).is_some();
        if is_open { class.simulations().max(WITHOUT_FLUSHES) } else { class.simulations() }
    }

    /// Returns true if another repeat of a run shows the kernel's own variation.
    pub(crate) fn is_repeated(&self, run: &Run) -> bool {
        let same = |other: &&Run| other.workload == run.workload && other.policy == run.policy;
        self.runs.iter().filter(same).any(|other| other.id != run.id && is_repeat(&other.rep))
    }

    /// The accesses of a run's program, in order.
    pub(crate) fn sequence(&self, run: &str, sequence: &str, ops: u64) -> anyhow::Result<Arc<[Access]>> {
        let accesses = read_words(&self.dir, sequence)?;
        if accesses.len() as u64 != ops {
            let path = words_path(&self.dir, sequence);
            bail!("{}: found {} accesses, but {run} made {ops}", path.display(), accesses.len());
        }
        Ok(accesses.into())
    }
}

/// Simulations of a run whose flushes were recorded and are not replayed: as many phases of the statistics worker.
const WITHOUT_FLUSHES: usize = 16;

/// When statistics were flushed: `FlushOps` by run, and rows by run.
const FLUSH_FILES: &[&str] = &["flush-ops.json", "flushes.json"];

/// A flush in an access, or after it, comes before the next.
fn read_flushes(dir: &Path, runs: &[Run]) -> anyhow::Result<BTreeMap<String, Vec<Flush>>> {
    let [fitted, traced] = [FLUSH_FILES[0], FLUSH_FILES[1]].map(|name| dir.join(name));
    let mut flushes: BTreeMap<String, Vec<Flush>> = BTreeMap::new();
    if fitted.exists() {
        let by_run: BTreeMap<String, FlushOps> = read_json(&fitted)?;
        let of = |before| Flush { before, entries: None };
        flushes.extend(
            by_run.into_iter().map(|(run, ops)| (run, ops.flush_before_access.into_iter().map(of).collect())),
        );
    }
    if traced.exists() {
        let by_run: BTreeMap<String, Vec<FlushRow>> = read_json(&traced)?;
        for (run, rows) in by_run {
            let of = |(access, entries, _): FlushRow| Flush {
                before: access.saturating_add(1),
                entries: Some(entries),
            };
            ensure!(
                flushes.insert(run.clone(), rows.into_iter().map(of).collect()).is_none(),
                "{}: the flushes of {run} are also in {}",
                traced.display(),
                fitted.display()
            );
        }
    }
    for (run, flushes) in &flushes {
        if let Some(pair) = flushes.windows(2).find(|pair| pair[1].before < pair[0].before) {
            bail!(
                "{}: the flushes of {run} go back from access {} to {}",
                dir.display(),
                pair[0].before,
                pair[1].before
            );
        }
    }
    for run in runs {
        let beyond =
            flushes.get(&run.id).and_then(|flushes| flushes.iter().find(|flush| flush.before > run.ops));
        if let Some(Flush { before: beyond, .. }) = beyond {
            bail!(
                "{}: found a flush of {} before access {beyond}, but the run has {} accesses",
                dir.display(),
                run.id,
                run.ops
            );
        }
    }
    Ok(flushes)
}

/// A misspelt optional field would be silently left out.
fn tell_of_unknown_fields(path: &Path, watcher: &dyn Watcher) -> anyhow::Result<()> {
    let fields: Fields = read_json(path)?;
    let names: std::collections::BTreeSet<&String> = fields.runs.iter().flat_map(BTreeMap::keys).collect();
    for name in names.into_iter().filter(|name| !FIELDS.contains(&name.as_str())) {
        let hint = nearest::nearest(name, FIELDS.iter().copied());
        let hint = hint.map_or(String::new(), |known| format!("; did you mean `{known}`?"));
        watcher.remark(&format!("{}: the field `{name}` of runs is ignored{hint}", path.display()));
    }
    Ok(())
}

/// The runs of a folder that are named (by id, or as a glob such as `fr-*.classic.*`), or all.
pub(super) fn select<'a, R>(
    dir: &Path,
    runs: &'a [R],
    id: impl Fn(&R) -> &str,
    names: &[String],
) -> anyhow::Result<Vec<&'a R>> {
    if names.is_empty() {
        return Ok(runs.iter().collect());
    }
    let mut selected = vec![false; runs.len()];
    for name in names {
        let pattern = glob::Pattern::new(name)
            .with_context(|| format!("`{name}` is not a run and not a valid pattern"))?;
        let mut any = false;
        for (run, selected) in runs.iter().zip(&mut selected) {
            if pattern.matches(id(run)) {
                *selected = true;
                any = true;
            }
        }
        if !any {
            let hint = nearest::nearest(name, runs.iter().map(&id))
                .map_or(String::new(), |id| format!(" (did you mean `{id}`?)"));
            bail!("{}: no run `{name}`{hint}", dir.display());
        }
    }
    Ok(runs.iter().zip(selected).filter(|(_, selected)| *selected).map(|(run, _)| run).collect())
}
