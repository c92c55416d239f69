//! Traces of a study's scenarios: each is read once, however many variants replay it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_sim::scenario::{Scenario, Size};
use pageout_workload::trace::{self, Loaded, Packed};
use pageout_workload::{ReadOptions, TraceError};

use crate::{Stage, Watcher};

/// Memory for traces that are read once: a quarter of a thousand million accesses of four bytes.
pub const TRACE_MEMORY: Size = Size(1 << 30);

/// Traces that have been read.
#[derive(Debug, Default)]
pub struct Traces(RefCell<Vec<Known>>);

#[derive(Debug)]
struct Known {
    path: PathBuf,
    read: ReadOptions,
    /// Nothing if it was past the budget, or could not be read.
    loaded: Option<Arc<Loaded>>,
}

impl Traces {
    /// Returns the trace at `path`. Its accesses are kept as long as those of all traces are within [`TRACE_MEMORY`].
    pub fn load(
        &self,
        path: &Path,
        read: &ReadOptions,
        watcher: &dyn Watcher,
    ) -> Result<Arc<Loaded>, TraceError> {
        if let Some(known) = self.known(path, read).flatten() {
            return Ok(known);
        }
        let loaded = reading(path, watcher, |tell| trace::load(path, read, self.room(), tell));
        let loaded = self.remember(path, read, Some(loaded?));
        Ok(loaded.expect("what was loaded is what is remembered"))
    }

    /// Reads the traces that the scenario would read during its run, as far as all of their accesses fit in memory. The run reports
    /// unreadable traces.
    pub fn keep(&self, scenario: &mut Scenario, watcher: &dyn Watcher) {
        for object in scenario.task.iter_mut().flat_map(|task| &mut task.object) {
            let Ok(read) = object.read_options() else { continue };
            if let Some(trace) = object.trace.as_mut().filter(|trace| trace.loaded.is_none()) {
                trace.loaded = self.load_within(&trace.path, &read, watcher);
            }
        }
    }

    fn load_within(&self, path: &Path, read: &ReadOptions, watcher: &dyn Watcher) -> Option<Arc<Loaded>> {
        if let Some(known) = self.known(path, read) {
            return known;
        }
        let loaded = reading(path, watcher, |tell| trace::load_within(path, read, self.room(), tell));
        self.remember(path, read, loaded.ok().flatten())
    }

    fn known(&self, path: &Path, read: &ReadOptions) -> Option<Option<Arc<Loaded>>> {
        let known = self.0.borrow();
        known.iter().find(|known| known.path == path && known.read == *read).map(|known| known.loaded.clone())
    }

    fn remember(&self, path: &Path, read: &ReadOptions, loaded: Option<Loaded>) -> Option<Arc<Loaded>> {
        let loaded = loaded.map(Arc::new);
        self.0.borrow_mut().push(Known {
            path: path.to_path_buf(),
            read: read.clone(),
            loaded: loaded.clone(),
        });
        loaded
    }

    /// Bytes of memory for accesses that are left.
    fn room(&self) -> u64 {
        let known = self.0.borrow();
        let kept = known.iter().filter_map(|known| known.loaded.as_ref()?.accesses.as_ref());
        TRACE_MEMORY.0.saturating_sub(kept.map(Packed::bytes).sum())
    }
}

/// Reads a trace, and tells the watcher how many accesses have been read.
pub(crate) fn reading<R>(
    path: &Path,
    watcher: &dyn Watcher,
    read: impl FnOnce(&mut dyn FnMut(u64)) -> R,
) -> R {
    watcher.begin(&Stage::Reading(path));
    let mut told = 0;
    let read = read(&mut |accesses| {
        watcher.advance(accesses - told);
        told = accesses;
    });
    watcher.end();
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_once_for_all_runs_that_replay_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.u32");
        std::fs::write(&path, [7u32.to_le_bytes(), 9u32.to_le_bytes()].concat()).unwrap();
        let object = serde_json::json!({"channel": "file", "size": "20 pages", "trace": path});
        let task = serde_json::json!({"name": "t", "object": [object]});
        let scenario: Scenario = serde_json::from_value(serde_json::json!({"task": [task]})).unwrap();
        let traces = Traces::default();
        let loaded = |mut scenario: Scenario| {
            traces.keep(&mut scenario, &());
            scenario.task[0].object[0].trace.take().unwrap().loaded
        };
        let first = loaded(scenario.clone()).unwrap();
        assert_eq!(first.accesses.as_ref().unwrap().bytes(), 8);
        std::fs::remove_file(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &loaded(scenario.clone()).unwrap()));
        assert!(Arc::ptr_eq(&first, &traces.load(&path, &ReadOptions::default(), &()).unwrap()));
        let mut missing = scenario;
        missing.task[0].object[0].trace = Some(directory.path().join("none.u32").into());
        assert!(loaded(missing).is_none(), "the run tells what is wrong with it");
    }
}
