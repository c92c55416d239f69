//! The answers of a recording: counters, misses and evictions that the kernel had. Read after the simulation is over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use pageout_workload::Access;
use serde::Deserialize;

use super::files::{self, read_json};
use super::reads::{self, Reads};
use super::recording::is_repeat;
use super::rig::Played;

/// The answers of a folder.
pub(crate) struct Answers {
    dir: PathBuf,
    runs: Vec<Answer>,
}

/// The recorded results of one run.
#[derive(Deserialize)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) workload: String,
    pub(crate) policy: String,
    pub(crate) rep: String,
    ops: usize,
    limit_pages: u64,
    pub(crate) vmstat_delta: BTreeMap<String, i64>,
    #[serde(default)]
    pub(crate) memcg_delta: BTreeMap<String, i64>,
    #[serde(default)]
    pub(crate) windows: Vec<WindowEnd>,
    state_at_start: Option<Noted>,
    second: Option<SecondAnswer>,
    misses_file: Option<PathBuf>,
    page_cache_stream: Option<PathBuf>,
    events_file: Option<PathBuf>,
    /// Lines of `lru_gen`, the group's own without its first; of classic runs a text that says so.
    #[serde(default)]
    lru_gen: serde_json::Value,
}

/// The machine at the end of a window, and what happened in it.
#[derive(Deserialize)]
pub(crate) struct WindowEnd {
    #[serde(default)]
    pub(crate) nr_free_pages: u64,
    #[serde(default)]
    pgscan_kswapd: u64,
    #[serde(default)]
    pgscan_direct: u64,
    pressure: Option<Pressure>,
}

impl WindowEnd {
    pub(crate) fn has_reclaimed(&self) -> bool {
        self.pgscan_kswapd + self.pgscan_direct > 0
    }
}

/// What was noted before the first access.
#[derive(Deserialize)]
struct Noted {
    pressure: Option<Pressure>,
}

/// `/proc/pressure`, a line each for some and full: three averages and the total in microseconds.
#[derive(Deserialize)]
struct Pressure {
    memory: Lines,
    io: Lines,
    cpu: Lines,
}

#[derive(Deserialize)]
struct Lines {
    some: [f64; 4],
    full: [f64; 4],
}

/// Microseconds lost because of a shortage of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    pub(crate) some: f64,
    pub(crate) full: f64,
}

/// The results of the second program.
#[derive(Deserialize)]
struct SecondAnswer {
    ops: usize,
    misses_file: Option<PathBuf>,
}

/// A row of `lru_gen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GenerationRow {
    pub(crate) seq: u64,
    pub(crate) age_ms: u64,
    pub(crate) anon: u64,
    pub(crate) file: u64,
}

#[derive(Deserialize)]
struct GroundTruth {
    runs: Vec<Answer>,
}

/// One miss map: a flag an access.
pub(crate) type MissMap = Vec<bool>;

/// Set in a word of a page-cache stream: the page was removed.
pub(crate) const REMOVED: u32 = 1 << 31;
/// A major fault, or a block read by the task.
const MISSED: u8 = 2 | 4;
/// A fault, minor or major.
const FAULTED: u8 = 1 | 2;

impl Answer {
    /// No group was limited, so there are no counters of one.
    fn is_of_machine(&self) -> bool {
        self.limit_pages == 0
    }

    /// Returns true if it was recorded which accesses missed.
    pub(crate) fn tells_of_accesses(&self) -> bool {
        self.misses_file.is_some() || self.page_cache_stream.is_some() || self.events_file.is_some()
    }

    /// Returns true if a miss map and a stream agree on the accesses that missed.
    pub(crate) fn has_both_maps(&self) -> bool {
        self.misses_file.is_some() && self.page_cache_stream.is_some()
    }

    /// The name of a field that is empty although it should not be. Unchanged counters are omitted, but not all counters are unchanged.
    pub(crate) fn blank(&self, misses: Option<&MissMap>) -> Option<&'static str> {
        let counters = [("vmstat_delta", &self.vmstat_delta), ("memcg_delta", &self.memcg_delta)];
        let is_asked = |field: &str| field == "vmstat_delta" || !self.is_of_machine();
        let field = counters
            .iter()
            .find(|(field, counters)| is_asked(field) && counters.is_empty())
            .map(|&(field, _)| field);
        let has_no_miss = misses.is_some_and(|map| !map.contains(&true));
        field.or(has_no_miss.then_some("misses_file"))
    }
}

impl Answers {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Answers> {
        let truth: GroundTruth = read_json(&files::runs_path(dir)?)?;
        Ok(Answers { dir: dir.to_owned(), runs: truth.runs })
    }

    pub(crate) fn of(&self, id: &str) -> &Answer {
        self.runs.iter().find(|answer| answer.id == id).expect("every run has its answer in the same object")
    }

    /// The repeats of the same run, this one included if it is one.
    pub(crate) fn repeats(&self, answer: &Answer) -> Vec<&Answer> {
        let same = |other: &&Answer| other.workload == answer.workload && other.policy == answer.policy;
        self.runs.iter().filter(same).filter(|other| is_repeat(&other.rep)).collect()
    }

    /// The accesses that missed, if recorded: in a map, or by pages that entered the page cache. A write that brings in a complete page
    /// reads nothing, so it is not a miss.
    pub(crate) fn misses(&self, answer: &Answer, played: &Played) -> anyhow::Result<Option<MissMap>> {
        let sequence = &played.sequence;
        if let Some(path) = &answer.misses_file {
            return self.miss_map(path, sequence.len()).map(Some);
        }
        let Some(stream) = self.stream(answer)? else { return Ok(None) };
        let missed = missed_by_stream(&stream, sequence).map(|mut missed| {
            let whole = sequence.iter().map(|access| played.is_written_whole(access));
            missed.iter_mut().zip(whole).for_each(|(missed, is_whole)| *missed &= !is_whole);
            Some(missed)
        });
        missed.with_context(|| {
            let path = answer.page_cache_stream.as_deref().unwrap_or(Path::new(""));
            let path = self.dir.join(path);
            format!("{}: damaged, or recorded from another run than {}", path.display(), answer.id)
        })
    }

    fn miss_map(&self, path: &Path, accesses: usize) -> anyhow::Result<MissMap> {
        self.flagged(path, accesses, MISSED)
    }

    /// By access, whether a file that has a byte of flags for each has one of these.
    fn flagged(&self, path: &Path, accesses: usize, flags: u8) -> anyhow::Result<Vec<bool>> {
        let bytes = files::read_compressed(&self.dir.join(path))?;
        if bytes.len() != accesses {
            bail!("{}: found {} accesses, expected {accesses}", path.display(), bytes.len());
        }
        Ok(bytes.iter().map(|byte| byte & flags != 0).collect())
    }

    /// By access, whether it faulted, where that was recorded.
    pub(crate) fn faults(&self, answer: &Answer, accesses: usize) -> anyhow::Result<Option<Vec<bool>>> {
        answer.misses_file.as_ref().map(|path| self.flagged(path, accesses, FAULTED)).transpose()
    }

    /// The misses according to the stream of a run. Errors: the stream does not cover all accesses.
    pub(crate) fn missed_by_stream(
        &self,
        answer: &Answer,
        sequence: &[Access],
    ) -> anyhow::Result<anyhow::Result<MissMap>> {
        Ok(missed_by_stream(&self.stream(answer)?.unwrap_or_default(), sequence))
    }

    /// Which accesses of the second program missed, where there was one.
    pub(crate) fn missed_by_second(&self, answer: &Answer) -> anyhow::Result<Option<MissMap>> {
        let Some(second) = &answer.second else { return Ok(None) };
        second.misses_file.as_ref().map(|path| self.miss_map(path, second.ops)).transpose()
    }

    /// Time lost because of a shortage of memory, I/O and CPUs between the first and the last access, if recorded.
    pub(crate) fn pressure(answer: &Answer) -> Option<[Stalls; 3]> {
        let before = answer.state_at_start.as_ref()?.pressure.as_ref()?;
        let after = answer.windows.last()?.pressure.as_ref()?;
        let lines = [(&before.memory, &after.memory), (&before.io, &after.io), (&before.cpu, &after.cpu)];
        Some(lines.map(|(before, after)| Stalls {
            some: after.some[3] - before.some[3],
            full: after.full[3] - before.full[3],
        }))
    }

    /// The rows of `lru_gen` when the run had ended, oldest first; none where generations were not used.
    pub(crate) fn generations(&self, answer: &Answer) -> Vec<GenerationRow> {
        let lines = answer.lru_gen.as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
        let rows = lines.map(|line| line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>());
        let rows = rows.filter_map(|row| match *row.ok()? {
            [seq, age_ms, anon, file] => Some(GenerationRow { seq, age_ms, anon, file }),
            _ => None,
        });
        rows.collect()
    }

    /// The recorded page-cache stream.
    pub(crate) fn stream(&self, answer: &Answer) -> anyhow::Result<Option<Vec<u32>>> {
        answer.page_cache_stream.as_ref().map(|path| files::read_u32s(&self.dir.join(path))).transpose()
    }

    /// What each access brought into the page cache, and what it read for that, where events of both were recorded.
    pub(crate) fn reads(&self, answer: &Answer) -> anyhow::Result<Option<Vec<Reads>>> {
        let Some((path, words)) = self.events(answer)? else { return Ok(None) };
        let reads = reads::of_events(&words).with_context(|| format!("{}: damaged", path.display()))?;
        let (told, accesses) = (reads.len(), answer.ops);
        ensure!(told == accesses, "{}: found {told} accesses, expected {accesses}", path.display());
        Ok(Some(reads))
    }

    /// How many flushes of statistics are among the recorded events.
    pub(crate) fn flushes(&self, answer: &Answer) -> anyhow::Result<Option<u64>> {
        Ok(self.events(answer)?.map(|(_, words)| reads::flushes_of_events(&words)))
    }

    fn events(&self, answer: &Answer) -> anyhow::Result<Option<(PathBuf, Vec<u32>)>> {
        let path = answer.events_file.as_ref().map(|path| self.dir.join(path));
        path.map(|path| files::read_u32s(&path).map(|words| (path, words))).transpose()
    }
}

/// The accesses to pages that were not in the page cache; the stream has to add them.
fn missed_by_stream(stream: &[u32], sequence: &[Access]) -> anyhow::Result<MissMap> {
    let mut resident = BTreeSet::new();
    let mut words = stream.iter().enumerate();
    let mut map = Vec::with_capacity(sequence.len());
    for (number, access) in sequence.iter().enumerate() {
        let page = access.page() as u32;
        let missed = !resident.contains(&page);
        map.push(missed);
        while missed && !resident.contains(&page) {
            match words.next() {
                Some((_, word)) if word & REMOVED != 0 => {
                    resident.remove(&(word & !REMOVED));
                }
                Some((_, &added)) if added == page => {
                    resident.insert(page);
                }
                Some((at, added)) => {
                    bail!("access {number} adds page {page}, but word {at} adds page {added}")
                }
                None => bail!("access {number} adds page {page}, but the stream ends before it"),
            }
        }
    }
    Ok(map)
}
