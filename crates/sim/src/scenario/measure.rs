//! The base of a limit in percent: the distinct pages that the tasks in the cgroup can touch.
//!
//! A workload can touch all pages of its object. A trace touches only the pages in it, perhaps few of a large disk. So it must
//! have been read before ([`TraceFile::loaded`](super::TraceFile::loaded)).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use pageout_engine::{CgroupFile, Holds};
use serde::Serialize;

use super::keys::Limit;
use super::{Channel, Event, Files, KernelFile, Scalar, Scenario, Task};

/// The tasks of a scenario by cgroup, for what they can touch.
pub(super) struct Touchable<'a> {
    files: Files<'a>,
    by_memcg: BTreeMap<&'a str, Vec<&'a Task>>,
}

impl Touchable<'_> {
    pub(super) fn of(scenario: &Scenario) -> Touchable<'_> {
        let mut by_memcg: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for task in &scenario.task {
            by_memcg.entry(&task.memcg).or_default().push(task);
        }
        Touchable { files: scenario.files(), by_memcg }
    }

    /// Returns the distinct pages that the tasks in the cgroup `path` and below can access. Pages of a file count once. Anonymous memory and files
    /// per copy count once per copy. `None` if a trace among them has not been read.
    pub(super) fn pages(&self, path: &str) -> Option<u64> {
        let parent = if path == "/" { "" } else { path };
        // Names below the group begin with a slash behind its own, and all of them stand together.
        let (below, beyond) = (format!("{parent}/"), format!("{parent}0"));
        let own = self.by_memcg.get(path).filter(|_| path != "/");
        let below = (Bound::Included(below.as_str()), Bound::Excluded(beyond.as_str()));
        let inside = own.into_iter().chain(self.by_memcg.range::<str, _>(below).map(|(_, tasks)| tasks));
        let mut files: BTreeSet<&str> = BTreeSet::new();
        let mut pages = 0;
        for task in inside.flatten() {
            for (at, object) in task.object.iter().enumerate() {
                let times = match (&object.file, object.channel) {
                    (Some(name), _) => u64::from(files.insert(name)),
                    (None, Channel::Anonymous) => u64::from(task.copies),
                    (None, _) => {
                        u64::from(object.copies_per_file().map_or(1, |each| task.copies.div_ceil(each)))
                    }
                };
                if times > 0 {
                    pages += times * self.touched(task, at)?;
                }
            }
        }
        Some(pages)
    }

    /// Distinct pages of a task's object that can be accessed. For a file that objects share, all pages: other tasks may access other ones.
    fn touched(&self, task: &Task, at: usize) -> Option<u64> {
        let whole = self.files.pages_of(task, at).unwrap_or(0);
        let is_shared = task.object[at].file.is_some();
        if is_shared || self.files.pages_reached(task, at).is_some() {
            return Some(whole);
        }
        let mut traced = None;
        for (before, object) in task.object[..=at].iter().enumerate() {
            let Some(trace) = &object.trace else { continue };
            if let Some(of) = trace.loaded.as_ref()?.footprint.objects.get(at - before) {
                *traced.get_or_insert(0) += of.distinct_pages;
            }
        }
        Some(traced.map_or(whole, |pages| whole.min(pages)))
    }
}

/// A percentage in a scenario's limits, and what it comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Percentage {
    /// Path of the cgroup.
    pub memcg: String,
    /// The file that it is written to, such as `memory.max`.
    pub file: String,
    /// The percentage.
    pub percent: f64,
    /// The base of the percentage: distinct pages that the cgroup's tasks can touch.
    pub distinct_pages: u64,
    /// The limit in pages that the percentage comes to.
    pub pages: u64,
}

impl Scenario {
    /// Percentages in limits, in the order of the scenario, those that events write behind those that cgroups have. Without
    /// those of what a trace touches that has not been read.
    pub fn percentages(&self) -> Vec<Percentage> {
        let touchable = Touchable::of(self);
        let percentage = |(path, file, percent): (String, String, f64)| {
            let distinct_pages = touchable.pages(&path)?;
            let pages = Limit::Percent(percent).pages(distinct_pages)?;
            Some(Percentage { memcg: path, file, percent, distinct_pages, pages })
        };
        self.percents().filter_map(percentage).collect()
    }

    /// Returns true if it has any, so that its traces have to be read before it can be built.
    pub fn has_percentages(&self) -> bool {
        self.percents().next().is_some()
    }

    fn percents(&self) -> impl Iterator<Item = (String, String, f64)> {
        let set = self.memcg.iter().flat_map(|memcg| {
            let percent = |(file, value)| Some((memcg.path.clone(), file, percent_of(file, value)?));
            memcg
                .files
                .iter()
                .filter_map(percent)
                .map(|(path, file, percent)| (path, file.to_string(), percent))
        });
        let written = |event: &Event| {
            let KernelFile::Memcg { path, file } = KernelFile::parse(event.write.as_deref()?)? else {
                return None;
            };
            let percent = percent_of(&file, event.value.as_ref()?)?;
            Some((path, file, percent))
        };
        set.chain(self.event.iter().filter_map(written))
    }
}

/// The percentage in what is written to a cgroup's file.
fn percent_of(file: &str, value: &Scalar) -> Option<f64> {
    let is_limit = CgroupFile::by_name(file).is_some_and(|file| matches!(file.holds, Holds::Limit(_)));
    match value.to_string().parse() {
        Ok(Limit::Percent(percent)) if is_limit => Some(percent),
        _ => None,
    }
}
