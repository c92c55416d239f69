//! How much of a machine a scenario touches: the sizes of traces, and what percentages of a limit are percentages of.

use std::collections::BTreeMap;
use std::path::Path;

use pageout_workload::{Access, ReadOptions, TraceError, trace};

use super::{Channel, Scenario};

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

impl Scenario {
    /// Pages that the tasks in the cgroup `path` and below can touch: each file once, anonymous memory once a copy. What
    /// percentages in its limits are percentages of.
    pub fn touchable_pages(&self, path: &str) -> u64 {
        let is_inside = |memcg: &str| {
            path == "/"
                || memcg.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut files: Vec<&str> = Vec::new();
        let mut pages = 0;
        for task in self.task.iter().filter(|task| is_inside(&task.memcg)) {
            for (at, object) in task.object.iter().enumerate() {
                let times = match (&object.file, object.channel) {
                    (Some(name), _) if files.contains(&name.as_str()) => 0,
                    (Some(name), _) => {
                        files.push(name);
                        1
                    }
                    (None, Channel::Anonymous) => u64::from(task.copies),
                    (None, _) => 1,
                };
                pages += times * self.pages_of(task, at).unwrap_or(0);
            }
        }
        pages
    }
}
