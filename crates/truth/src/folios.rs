//! Recordings of folios: every folio that a kernel added to the page cache or removed from it, in order, for each operation of a program.
//!
//! ```text
//!   KIND.jsonl.zst ─▶ Asked: file, device, operations ──▶ play ─▶ changes, operation by operation ──┐
//!                 └─▶ Recorded: changes ────────────────────────────────────────────────────────────┴─▶ judge
//! ```
//! A run without a memory limit passes if all changes are equal: the operation, the direction, the index and the order of each folio, in the kernel's
//! order. There is no tolerance, as the kernel repeats itself exactly. With a limit it does not. Then the pages brought in must be within 1 % of
//! those of one of the repeats, or between them. On tmpfs no event shows a new folio: figures that the program read must be equal,
//! too. The format of the folder is described in `docs/reference/recordings.md`.
//!
//! As with the other recordings, inputs and answers are read apart.

mod figures; // what is compared of a run on tmpfs
mod op; // what the recording program did
mod play; // the operations, replayed to the engine

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use pageout_study::result::parallel;
use pageout_study::{Stage, Watcher};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::files::read_compressed;
use crate::recording::select;
use crate::validate::Ask;
pub use figures::Figure;
use figures::Snapshot;
use op::Op;
use pageout_engine::TmpfsHuge;

/// The end of the name of a file of runs, one a line.
const SUFFIX: &str = ".jsonl.zst";

/// Kinds of runs that are compared.
const COMPARED: [&str; 7] =
    ["a-sequential", "b-mixed-order", "c-mapped", "d-writes", "e-pressure", ANON, "g-tmpfs"];

/// The kind of runs on anonymous memory.
pub const ANON: &str = "f-anonymous";

/// How far the pages brought in under a limit may be from those of the repeats, as a fraction.
const PAGES_IN: f64 = 0.01;

/// What was asked of the kernel.
#[derive(Debug, Clone, Deserialize)]
struct Asked {
    id: String,
    repeat: u32,
    kernel: String,
    #[serde(default)]
    fs: String,
    #[serde(default)]
    file_bytes: u64,
    #[serde(default)]
    read_ahead_kb: u64,
    #[serde(default)]
    max_sectors_kb: u64,
    limit_bytes: Option<u64>,
    #[serde(default)]
    descriptors: usize,
    /// Options of the mount: of tmpfs, which pages may be in large folios.
    #[serde(default)]
    mount: String,
    /// Limits that are set in the middle of a run.
    #[serde(default)]
    limit_after_snapshot: BTreeMap<String, u64>,
    /// Settings of a run on anonymous memory or tmpfs.
    #[serde(default)]
    knobs: Knobs,
    /// Operations; a further repeat has those of the first.
    #[serde(default)]
    ops: Vec<String>,
}

/// Settings of the machine, as its files have them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Knobs {
    /// `hugepages-<N>kB/enabled` by N; others are never.
    hugepages_kb: BTreeMap<String, String>,
    enabled: String,
    defrag: String,
    swap: Option<String>,
    swap_mib: u64,
    rotational: Option<u64>,
    swappiness: u8,
    page_cluster: u8,
}

impl Asked {
    /// The kind of the run: the first part of its id.
    fn kind(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// Why a run is not compared; `None` if it is.
    fn skipped(&self) -> Option<String> {
        if !COMPARED.contains(&self.kind()) {
            return Some(format!("runs of kind `{}` are not compared", self.kind()));
        }
        None
    }

    /// A run on anonymous memory.
    fn is_anon(&self) -> bool {
        self.kind() == ANON
    }

    /// Some size is for all memory, so that counters include that of other programs.
    fn is_for_all(&self) -> bool {
        self.knobs.hugepages_kb.values().any(|enabled| enabled == "always")
    }

    /// The option `huge=` of its mount.
    fn tmpfs_huge(&self) -> anyhow::Result<TmpfsHuge> {
        let word = self.mount.split(',').find_map(|option| option.strip_prefix("huge="));
        word.and_then(TmpfsHuge::by_name).ok_or_else(|| {
            let words = TmpfsHuge::NAMES.join(", ");
            anyhow!("{}: mount: found `{}`, expected huge= with one of {words}", self.id, self.mount)
        })
    }
}

/// What the kernel did.
#[derive(Debug, Deserialize)]
struct Recorded {
    id: String,
    repeat: u32,
    #[serde(default)]
    events: Vec<Vec<Value>>,
    /// The repeat that has the same events.
    events_as: Option<u32>,
    /// Figures of a run on tmpfs.
    #[serde(default)]
    snapshots: Vec<Snapshot>,
    /// Figures of a run on anonymous memory, from its start to its end.
    #[serde(default)]
    mthp: BTreeMap<String, Value>,
    #[serde(default)]
    vmstat: BTreeMap<String, Value>,
    #[serde(default)]
    folios_at_end: Vec<(String, u64)>,
    /// By operation: minor and major faults.
    #[serde(default)]
    faults: Vec<Vec<u64>>,
    /// The repeat that has the same faults.
    faults_as: Option<u32>,
}

/// A folio entered the page cache of the file, or left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The operation in which it did, counted from 0.
    pub operation: usize,
    /// The folio left.
    pub removed: bool,
    /// First page of the folio.
    pub index: u64,
    /// The folio has 2 to the power of this many pages.
    pub order: u8,
}

/// The first place where recorded and simulated changes differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The number of equal changes before it.
    pub equal: usize,
    /// The text of the operation.
    pub operation: String,
    /// What the kernel did; nothing if it was done.
    pub recorded: Option<Change>,
    /// What the simulation did; nothing if it was done.
    pub simulated: Option<Change>,
}

/// A run compared with its simulation.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// The run, by its id.
    pub run: String,
    /// Why it is not compared.
    pub skipped: Option<String>,
    /// Changes recorded.
    pub recorded: usize,
    /// Changes simulated.
    pub simulated: usize,
    /// Where they part; nothing if they are equal.
    pub first_difference: Option<Parting>,
    /// Pages brought in under a memory limit: minimum and maximum of the repeats, and simulated.
    pub pages_in: Option<[u64; 3]>,
    /// Calls of reclaim under a memory limit, likewise. They do not decide whether the run passes.
    pub reclaim_calls: Option<[u64; 3]>,
    /// Figures of a run on tmpfs or anonymous memory that differ.
    pub figures: Vec<Figure>,
    /// Figures that differ and do not decide whether the run passes: what swap did.
    pub others: Vec<Figure>,
}

impl Judged {
    /// Returns true if all changes and figures are equal, or with a memory limit about as many pages came in.
    pub fn passes(&self) -> bool {
        let is_equal = match self.pages_in {
            None => self.first_difference.is_none(),
            Some([least, most, simulated]) => {
                let range = least as f64 * (1.0 - PAGES_IN)..=most as f64 * (1.0 + PAGES_IN);
                range.contains(&(simulated as f64))
            }
        };
        self.skipped.is_none() && is_equal && self.figures.is_empty()
    }

    /// The kind of the run.
    pub fn kind(&self) -> &str {
        self.run.split('/').next().unwrap_or_default()
    }

    /// Checks what a result satisfies. Errors: the first that is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.first_difference {
            None if self.skipped.is_none() && self.recorded != self.simulated => {
                Err(format!("{}: {} changes and {} count as equal", self.run, self.recorded, self.simulated))
            }
            Some(parting) if parting.recorded == parting.simulated => {
                Err(format!("{}: the first difference is none", self.run))
            }
            _ => Ok(()),
        }
    }
}

/// How many of the compared runs of each kind pass, and how many there are.
pub fn by_kind(judged: &[Judged]) -> BTreeMap<&str, (usize, usize)> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for run in judged.iter().filter(|run| run.skipped.is_none()) {
        let kind = kinds.entry(run.kind()).or_default();
        kind.0 += usize::from(run.passes());
        kind.1 += 1;
    }
    kinds
}

/// The files of runs of a folder, in order of their names.
fn files_of(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX)))
        .collect();
    files.sort();
    files
}

/// Returns true if a folder holds recordings of folios.
pub(crate) fn are_in(dir: &Path) -> bool {
    !files_of(dir).is_empty()
}

/// All lines of a folder's files.
fn read<T: DeserializeOwned>(dir: &Path) -> anyhow::Result<Vec<T>> {
    let mut all = Vec::new();
    for path in files_of(dir) {
        let text = read_compressed(&path)?;
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        for (number, line) in lines.enumerate() {
            let what = || format!("{}: line {} is malformed", path.display(), number + 1);
            all.push(serde_json::from_slice(line).with_context(what)?);
        }
    }
    Ok(all)
}

/// Compares the recorded runs of a folder with simulated ones. The first of equal repeats is compared.
pub(crate) fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Vec<Judged>, Error> {
    let all: Vec<Asked> = read(&ask.dir)?;
    let first: Vec<Asked> = all.into_iter().filter(|run| run.repeat == 1).collect();
    let runs = select(&ask.dir, &first, |run| &run.id, &ask.runs)?;
    ask.check_expected(runs.iter().map(|run| run.id.as_str()))?;
    let mut plays = Vec::new();
    for &run in runs.iter().filter(|run| run.skipped().is_none()) {
        let ops: anyhow::Result<Vec<Op>> = run.ops.iter().map(|text| Op::parse(text)).collect();
        plays.push((run, ops.with_context(|| format!("{} cannot be simulated", run.id))?));
    }
    watcher.begin(&Stage::Playing { simulations: plays.len() });
    let played = parallel::map(&plays, ask.jobs, |(run, ops)| {
        let played = play::play(run, ops).with_context(|| format!("{} cannot be simulated", run.id));
        watcher.advance(1);
        played
    });
    watcher.end();
    let played = played.into_iter().collect::<anyhow::Result<Vec<_>>>()?;

    // From here on the answers are known.
    let recorded: Vec<Recorded> = read(&ask.dir)?;
    let mut played = played.into_iter();
    runs.iter()
        .map(|&run| match run.skipped() {
            Some(why) => Ok(Judged {
                run: run.id.clone(),
                skipped: Some(why),
                recorded: 0,
                simulated: 0,
                first_difference: None,
                pages_in: None,
                reclaim_calls: None,
                figures: Vec::new(),
                others: Vec::new(),
            }),
            None if run.is_anon() => {
                let (_, figures) = played.next().expect("each compared run was simulated");
                Ok(judge_anon(&recorded, run, &figures)?)
            }
            None => {
                let (mut simulated, figures) = played.next().expect("each compared run was simulated");
                if run.fs == "tmpfs" {
                    // No event says that a folio of tmpfs comes.
                    simulated.retain(|change| change.removed);
                }
                let mut judged = judge(run, &changes(&recorded, run, run.repeat)?, &simulated);
                if run.fs == "tmpfs" {
                    judged.figures = figures::differing(&figures_of(&recorded, run)?, &figures);
                }
                if run.limit_bytes.is_some() {
                    judged.pages_in = Some(pages_in_of(&recorded, run, &simulated)?);
                    judged.reclaim_calls = reclaim_calls_of(&recorded, run, &figures)?;
                }
                Ok(judged)
            }
        })
        .collect()
}

/// The recorded figures of a run on tmpfs.
fn figures_of(recorded: &[Recorded], run: &Asked) -> anyhow::Result<figures::Figures> {
    let own = recorded.iter().find(|other| other.id == run.id && other.repeat == run.repeat);
    let own = own.ok_or_else(|| anyhow!("{}: no recorded figures", run.id))?;
    figures::recorded(&own.snapshots).with_context(|| run.id.clone())
}

/// Pages that came in: the minimum and the maximum of a run's repeats, and of the simulation.
fn pages_in_of(recorded: &[Recorded], run: &Asked, simulated: &[Change]) -> anyhow::Result<[u64; 3]> {
    let pages_in = |changes: &[Change]| {
        changes.iter().filter(|change| !change.removed).map(|change| 1 << change.order).sum::<u64>()
    };
    let repeats = recorded.iter().filter(|other| other.id == run.id).map(|other| other.repeat);
    let real = repeats.map(|repeat| Ok(pages_in(&changes(recorded, run, repeat)?)));
    let real = real.collect::<anyhow::Result<Vec<u64>>>()?;
    let (least, most) = (real.iter().min().copied(), real.iter().max().copied());
    Ok([least.unwrap_or_default(), most.unwrap_or_default(), pages_in(simulated)])
}

/// Calls of reclaim at the limit, likewise; nothing if they were not recorded. Calls of other tasks are left out.
fn reclaim_calls_of(
    recorded: &[Recorded],
    run: &Asked,
    simulated: &figures::Figures,
) -> anyhow::Result<Option<[u64; 3]>> {
    let is_begin = |event: &&Vec<Value>| {
        event.get(1).and_then(Value::as_str) == Some("B") && event.last().is_none_or(|last| !last.is_string())
    };
    let repeats = recorded.iter().filter(|other| other.id == run.id).map(|other| other.repeat);
    let real =
        repeats.map(|repeat| Ok(events(recorded, run, repeat)?.iter().filter(is_begin).count() as u64));
    let real = real.collect::<anyhow::Result<Vec<u64>>>()?;
    let (Some(&least), Some(&most)) = (real.iter().min(), real.iter().max()) else { return Ok(None) };
    let ours = simulated.get(figures::RECLAIM_CALLS).and_then(|calls| calls.parse().ok());
    Ok(ours.filter(|_| most > 0).map(|ours| [least, most, ours]))
}

/// The recorded events of a repeat of a run.
fn events<'a>(recorded: &'a [Recorded], run: &Asked, repeat: u32) -> anyhow::Result<&'a [Vec<Value>]> {
    let of = |repeat| recorded.iter().find(|other| other.id == run.id && other.repeat == repeat);
    let own = of(repeat).ok_or_else(|| anyhow!("{}: no recorded events", run.id))?;
    Ok(match own.events_as {
        Some(repeat) => {
            &of(repeat).ok_or_else(|| anyhow!("{}: no repeat {repeat}, whose events it has", run.id))?.events
        }
        None => &own.events,
    })
}

/// The recorded changes of a repeat of a run.
fn changes(recorded: &[Recorded], run: &Asked, repeat: u32) -> anyhow::Result<Vec<Change>> {
    let events = events(recorded, run, repeat)?;
    let is_change = |event: &&Vec<Value>| matches!(event.get(1).and_then(Value::as_str), Some("A" | "D"));
    events
        .iter()
        .filter(is_change)
        .map(|event| {
            let number = |at: usize| event.get(at).and_then(Value::as_u64);
            let what = || anyhow!("{}: event {event:?}, expected [operation, kind, index, order]", run.id);
            Ok(Change {
                operation: number(0).ok_or_else(what)? as usize,
                removed: event[1] == "D",
                index: number(2).ok_or_else(what)?,
                order: number(3).and_then(|order| u8::try_from(order).ok()).ok_or_else(what)?,
            })
        })
        .collect()
}

fn judge(run: &Asked, recorded: &[Change], simulated: &[Change]) -> Judged {
    let equal = recorded.iter().zip(simulated).take_while(|(recorded, simulated)| recorded == simulated);
    let equal = equal.count();
    let (real, ours) = (recorded.get(equal).copied(), simulated.get(equal).copied());
    let first = real.into_iter().chain(ours).map(|change| change.operation).min();
    let first_difference = first.map(|operation| Parting {
        equal,
        operation: run.ops.get(operation).cloned().unwrap_or_default(),
        recorded: real,
        simulated: ours,
    });
    Judged {
        run: run.id.clone(),
        skipped: None,
        recorded: recorded.len(),
        simulated: simulated.len(),
        first_difference,
        pages_in: None,
        reclaim_calls: None,
        figures: Vec::new(),
        others: Vec::new(),
    }
}

/// Compares a run on anonymous memory by its figures: the machine has no event for a folio that comes.
fn judge_anon(recorded: &[Recorded], run: &Asked, simulated: &figures::Figures) -> anyhow::Result<Judged> {
    let sizes: Vec<u64> = run.knobs.hugepages_kb.keys().filter_map(|size| size.parse().ok()).collect();
    let own: Vec<&Recorded> = recorded.iter().filter(|other| other.id == run.id).collect();
    let mut repeats = Vec::new();
    for &repeat in &own {
        let faults =
            own.iter().find(|other| Some(other.repeat) == repeat.faults_as).copied().unwrap_or(repeat);
        repeats.push(figures::recorded_anon(repeat, &faults.faults, &sizes, run.is_for_all())?);
    }
    if repeats.is_empty() {
        return Err(anyhow!("{}: no recorded figures", run.id));
    }
    let differing = figures::differing_anon(&repeats, simulated, run.is_for_all());
    let (figures, others) = differing.into_iter().partition(|figure| figures::is_at_fault(&figure.name));
    Ok(Judged {
        run: run.id.clone(),
        skipped: None,
        recorded: 0,
        simulated: 0,
        first_difference: None,
        pages_in: None,
        reclaim_calls: None,
        figures,
        others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ops: &[&str]) -> Asked {
        let ops = ops.iter().map(|op| op.to_string()).collect::<Vec<_>>();
        serde_json::from_value(serde_json::json!({
            "id": "a-sequential/ext4-x", "repeat": 1, "kernel": "6.18.44", "fs": "ext4", "file_bytes": 40960,
            "read_ahead_kb": 128, "max_sectors_kb": 1280, "limit_bytes": null, "descriptors": 1, "ops": ops,
        }))
        .expect("it has the form of a run")
    }

    fn recorded(events: Value) -> Vec<Recorded> {
        let of = |repeat: u32, more: Value| {
            let mut run = serde_json::json!({ "id": "a-sequential/ext4-x", "repeat": repeat });
            run.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            serde_json::from_value(run).expect("it has the form of a run")
        };
        vec![of(1, serde_json::json!({ "events_as": 2 })), of(2, serde_json::json!({ "events": events }))]
    }

    #[test]
    fn events_that_add_or_delete_are_changes() {
        let events =
            serde_json::json!([[0, "S", 0, 1, 0, 0, 0, 32, 0, -1], [0, "A", 4, 2], [3, "D", 4, 2, "kswapd"]]);
        let change = |operation, removed| Change { operation, removed, index: 4, order: 2 };
        let changes = changes(&recorded(events), &run(&[]), 1).expect("they are well formed");
        assert_eq!(changes, [change(0, false), change(3, true)]);
    }

    #[test]
    fn event_without_an_order_is_an_error() {
        let error = changes(&recorded(serde_json::json!([[0, "A", 4]])), &run(&[]), 1).unwrap_err();
        assert!(error.to_string().contains("expected [operation, kind, index, order]"), "{error}");
    }

    #[test]
    fn pages_in_under_a_limit_may_be_one_percent_off() {
        let judged =
            |simulated| Judged { pages_in: Some([1000, 1010, simulated]), ..judge(&run(&[]), &[], &[]) };
        let passes = |simulated| judged(simulated).passes();
        assert_eq!([989, 990, 1020, 1021].map(passes), [false, true, true, false]);
    }

    #[test]
    fn shipped_runs_are_equal_but_for_known_ones() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ground-truth/folios").into();
        let judged = ask(&Ask { dir, ..Ask::default() }, &()).expect("the folder is well formed");
        let failing: Vec<&str> = judged.iter().filter(|run| !run.passes()).map(|run| &*run.run).collect();
        // A dirty folio of ext4 is split if all of its dirty blocks are beyond the cut; XFS ends a folio where its preallocation does.
        let of_files = ["d-writes/ext4-huge-file-folio-dirty-truncated", "d-writes/xfs-append-131072b"];
        // That kernel refuses charges of 16 KiB although its group could reclaim.
        let anonymous = ["f-anonymous/limit-touch-in-order-16k-advised"];
        assert_eq!(failing, [&of_files[..], &anonymous].concat());
        let runs: Vec<usize> = by_kind(&judged).values().map(|&(_, runs)| runs).collect();
        assert_eq!(runs, [27, 19, 23, 21, 13, 19, 21]);
    }

    #[test]
    fn folio_of_another_order_is_the_first_difference() {
        let change = |operation, index, order| Change { operation, removed: false, index, order };
        let run = run(&["r 0 0 4096", "r 0 4096 4096"]);
        let real = [change(0, 0, 0), change(1, 4, 2)];
        let judged = judge(&run, &real, &[change(0, 0, 0), change(1, 4, 0), change(1, 5, 0)]);
        assert!(!judged.passes());
        let parting = judged.first_difference.expect("they differ");
        assert_eq!((parting.equal, parting.operation.as_str()), (1, "r 0 4096 4096"));
        assert_eq!(parting.recorded.map(|change| change.order), Some(2));
        assert!(judge(&run, &real, &real).passes());
        let short = judge(&run, &real, &real[..1]);
        assert_eq!(short.first_difference.expect("one is missing").simulated, None);
    }
}
