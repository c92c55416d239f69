//! What was asked of the kernel: the inputs of each recorded run, and nothing of what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pageout_workload::{Access, ReadOptions};
use serde::Deserialize;

use super::class::Class;
use crate::scenario::nearest;

/// A folder of recorded runs.
#[derive(Debug)]
pub(crate) struct Recording {
    dir: PathBuf,
    runs: Vec<Run>,
    /// For traced runs: the accesses before which the kernel flushed its memcg statistics. Nothing where the file is missing.
    flushes: Option<BTreeMap<String, FlushOps>>,
}

/// One run, as far as it was chosen by whoever recorded it.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) workload: String,
    pub(crate) policy: String,
    pub(crate) rep: String,
    pub(crate) sequence: String,
    /// Pages that fit; 0 for no limit.
    pub(crate) limit_pages: u64,
    /// `kind:pages[:path]`.
    pub(crate) objects: Vec<String>,
    pub(crate) swap: String,
    pub(crate) swappiness: u8,
    pub(crate) zswap: u8,
    pub(crate) cmdline: String,
    #[serde(default)]
    pub(crate) wl_options: String,
    pub(crate) mem_total_kb: u64,
    pub(crate) cpus: u16,
    pub(crate) ops: u64,
    pub(crate) windows: Vec<Window>,
}

/// A point on the run's clock.
#[derive(Debug, Deserialize)]
pub(crate) struct Window {
    /// First access after the window.
    pub(crate) op: u64,
    /// Seconds since the first access.
    pub(crate) t: f64,
}

#[derive(Deserialize)]
struct GroundTruth {
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct FlushOps {
    flush_before_access: Vec<u64>,
}

impl Run {
    /// Recorded with a page-cache trace.
    pub(crate) fn is_traced(&self) -> bool {
        self.rep == "t"
    }
}

impl Recording {
    /// Reads a folder's inputs.
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Recording> {
        let truth: GroundTruth = read_json(&dir.join("ground-truth.json"))?;
        if truth.runs.is_empty() {
            bail!("{}: holds no runs", dir.join("ground-truth.json").display());
        }
        let flushes = match dir.join("flush-ops.json") {
            path if path.exists() => Some(read_json(&path)?),
            _ => None,
        };
        Ok(Recording { dir: dir.to_owned(), runs: truth.runs, flushes })
    }

    /// The runs named (by id, or as a glob such as `fr-*.classic.*`), or all.
    pub(crate) fn select(&self, names: &[String]) -> anyhow::Result<Vec<&Run>> {
        if names.is_empty() {
            return Ok(self.runs.iter().collect());
        }
        let mut selected = vec![false; self.runs.len()];
        for name in names {
            let pattern =
                glob::Pattern::new(name).with_context(|| format!("`{name}` is no run and no pattern"))?;
            let mut any = false;
            for (run, selected) in self.runs.iter().zip(&mut selected) {
                if pattern.matches(&run.id) {
                    *selected = true;
                    any = true;
                }
            }
            if !any {
                let known = self.runs.iter().map(|run| run.id.as_str());
                let hint = nearest::nearest(name, known)
                    .map_or(String::new(), |id| format!(" (did you mean `{id}`?)"));
                bail!("{} holds no run `{name}`{hint}", self.dir.display());
            }
        }
        Ok(self.runs.iter().zip(selected).filter(|(_, selected)| *selected).map(|(run, _)| run).collect())
    }

    /// The accesses before which the kernel flushed its statistics, where they are known.
    pub(crate) fn flushes(&self, run: &Run) -> Option<&[u64]> {
        Some(&self.flushes.as_ref()?.get(&run.id)?.flush_before_access)
    }

    /// A run that is simulated once, by a policy that decides by flushed statistics, is nothing without them.
    pub(crate) fn require_flushes(&self, run: &Run, class: &Class) -> anyhow::Result<()> {
        if class.limits.phases.is_none() && run.policy == "classic" && self.flushes(run).is_none() {
            let path = self.dir.join("flush-ops.json");
            let missing = if self.flushes.is_some() {
                "there is no entry"
            } else {
                "the file is missing; it is needed"
            };
            bail!(
                "{}: {missing} for {}, which class `{}` simulates once, with the statistics flushes of the recording",
                path.display(),
                run.id,
                class.name
            );
        }
        Ok(())
    }

    /// The run's accesses, in order.
    pub(crate) fn sequence(&self, run: &Run) -> anyhow::Result<Vec<Access>> {
        let path = self.dir.join("sequences").join(format!("{}.u32.zst", run.sequence));
        let options =
            ReadOptions { format: Some(pageout_workload::trace::Format::Words), ..ReadOptions::default() };
        let mut stream = pageout_workload::trace::open(&path, &options)?;
        let mut accesses = Vec::new();
        while stream.fill(&mut accesses, 1 << 16)? > 0 {}
        if accesses.len() as u64 != run.ops {
            bail!("{}: holds {} accesses, but {} made {}", path.display(), accesses.len(), run.id, run.ops);
        }
        Ok(accesses)
    }
}

/// A JSON file of the folder.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is malformed", path.display()))
}
