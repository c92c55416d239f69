//! How much of a machine a scenario touches: the sizes of traces, and what percentages of a limit are percentages of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;

use pageout_workload::{Access, ReadOptions, TraceError, trace};

use super::{Channel, Scenario, Task};

/// What a trace touches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footprint {
    /// One more than the highest page, of each object.
    pub object_pages: Vec<u64>,
    /// Distinct pages over all objects.
    pub distinct_pages: u64,
    /// Accesses.
    pub accesses: u64,
    /// Those that write.
    pub writes: u64,
}

/// Pages that share an entry of the bitmap.
const BITMAP_PAGES: u64 = 512;

impl Footprint {
    /// Reads the trace at `path` to its end. `progress` is told the accesses read so far.
    pub fn of_trace(
        path: &Path,
        options: &ReadOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Footprint, TraceError> {
        let mut stream = trace::open(path, options)?;
        let mut footprint = Footprint::default();
        // A sparse bitmap: traces name pages anywhere in a disk of terabytes.
        let mut seen: BTreeMap<(u32, u64), Box<[u64; (BITMAP_PAGES / 64) as usize]>> = BTreeMap::new();
        let mut chunk: Vec<Access> = Vec::new();
        while stream.fill(&mut chunk, 1 << 16)? > 0 {
            for access in chunk.drain(..) {
                let (object, page) = (access.object(), access.page());
                if footprint.object_pages.len() <= object as usize {
                    footprint.object_pages.resize(object as usize + 1, 0);
                }
                let pages = &mut footprint.object_pages[object as usize];
                *pages = (*pages).max(page + 1);
                let bitmap = seen.entry((object, page / BITMAP_PAGES)).or_default();
                let (word, bit) = ((page % BITMAP_PAGES / 64) as usize, 1 << (page % 64));
                footprint.distinct_pages += u64::from(bitmap[word] & bit == 0);
                bitmap[word] |= bit;
                footprint.accesses += 1;
                footprint.writes += u64::from(access.is_write());
            }
            progress(footprint.accesses);
        }
        Ok(footprint)
    }
}

/// The tasks of a scenario by cgroup, for what they can touch.
pub(super) struct Touchable<'a> {
    scenario: &'a Scenario,
    by_memcg: BTreeMap<&'a str, Vec<&'a Task>>,
}

impl Touchable<'_> {
    pub(super) fn of(scenario: &Scenario) -> Touchable<'_> {
        let mut by_memcg: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for task in &scenario.task {
            by_memcg.entry(&task.memcg).or_default().push(task);
        }
        Touchable { scenario, by_memcg }
    }

    /// Pages that the tasks in the cgroup `path` and below can touch: each file once, anonymous memory once a copy. What
    /// percentages in its limits are percentages of.
    pub(super) fn pages(&self, path: &str) -> u64 {
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
                    (None, _) => 1,
                };
                pages += times * self.scenario.pages_of(task, at).unwrap_or(0);
            }
        }
        pages
    }
}
