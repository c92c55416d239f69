//! Traces of a command's scenarios: each is read once, however many variants replay it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_sim::scenario::Size;
use pageout_workload::trace::{self, Loaded};
use pageout_workload::{ReadOptions, TraceError};

use crate::cli::OutputOptions;
use crate::print::progress;

/// Memory for traces that are read once: a quarter of a thousand million accesses of four bytes.
pub(crate) const TRACE_MEMORY: Size = Size(1 << 30);

/// Traces that have been read.
#[derive(Debug, Default)]
pub(crate) struct Traces(RefCell<Vec<(PathBuf, ReadOptions, Arc<Loaded>)>>);

impl Traces {
    /// What the trace at `path` holds. Its accesses are kept as long as those of all traces are within [`TRACE_MEMORY`].
    pub(crate) fn load(
        &self,
        path: &Path,
        read: &ReadOptions,
        options: &OutputOptions,
    ) -> Result<Arc<Loaded>, TraceError> {
        let known = self
            .0
            .borrow()
            .iter()
            .find(|known| known.0 == path && known.1 == *read)
            .map(|known| Arc::clone(&known.2));
        if let Some(known) = known {
            return Ok(known);
        }
        let bar = progress::bar(options, None, &format!("reading {}", path.display()));
        let room = TRACE_MEMORY.0.saturating_sub(self.bytes());
        let loaded = trace::load(path, read, room, &mut |accesses| bar.set_position(accesses));
        bar.finish_and_clear();
        let loaded = Arc::new(loaded?);
        self.0.borrow_mut().push((path.to_path_buf(), read.clone(), Arc::clone(&loaded)));
        Ok(loaded)
    }

    fn bytes(&self) -> u64 {
        let kept = |(.., loaded): &(PathBuf, ReadOptions, Arc<Loaded>)| {
            loaded.accesses.as_ref().map_or(0, |kept| kept.bytes())
        };
        self.0.borrow().iter().map(kept).sum()
    }
}
