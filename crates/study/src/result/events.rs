//! What events left behind: files that were read and written, conditions that were read.

use pageout_sim::scenario::{KernelFile, Size};
use pageout_sim::{FileRead, FileWrite, Thinned, Watched};
use serde::Serialize;

/// A file read by an event.
#[derive(Debug, Clone, Serialize)]
pub struct ReadResult {
    /// The time of the reading.
    pub at_ns: u64,
    /// The file's path.
    pub path: String,
    /// The text read.
    pub text: String,
}

/// The kept readings of one event.
#[derive(Debug, Clone, Serialize)]
pub struct ThinnedResult {
    /// The file's path.
    pub path: String,
    /// The number of readings.
    pub taken: u64,
    /// The number of readings that were kept.
    pub kept: u64,
    /// One in so many was.
    pub every: u64,
}

/// The condition of an event, and the number of readings at which it was true.
#[derive(Debug, Clone, Serialize)]
pub struct ConditionResult {
    /// The condition as the scenario has it.
    pub condition: String,
    /// The file that was read.
    pub path: String,
    /// Number of checks of the file.
    pub looks: u64,
    /// Looks at which the condition held.
    pub held: u64,
}

/// A file written by an event, or a sync. A write that has to reclaim, to `memory.reclaim` or of a limit below what is in use, takes
/// time; it may not be done when the run ends.
#[derive(Debug, Clone, Serialize)]
pub struct WriteResult {
    /// The time of the write.
    pub at_ns: u64,
    /// The file's path, or the kind of sync.
    pub path: String,
    /// The value written.
    pub value: String,
    /// Pages that the write had reclaimed, if it had to and is done.
    pub reclaimed_pages: Option<u64>,
    /// The duration, if it is done.
    pub took_ns: Option<u64>,
    /// After proactive reclaim: pages of its cgroups that refaulted between its end and the end of the run.
    pub refaulted_pages_since: Option<u64>,
    /// The reason why one of its commands was rejected, or that `memory.reclaim` reclaimed too little. The writer then gets EAGAIN, or EINTR if its timeout
    /// ended it.
    pub error: Option<String>,
}

impl WriteResult {
    /// Returns true if the entry is a sync, which reclaims nothing, and not a write.
    pub fn is_sync(&self) -> bool {
        self.path == "sync" || self.path.starts_with("syncfs ")
    }
}

impl From<FileRead> for ReadResult {
    fn from(FileRead { at, path, text }: FileRead) -> ReadResult {
        ReadResult { at_ns: at.0, path, text }
    }
}

impl From<Thinned> for ThinnedResult {
    fn from(Thinned { path, taken, kept, every }: Thinned) -> ThinnedResult {
        ThinnedResult { path, taken, kept, every }
    }
}

impl From<Watched> for ConditionResult {
    fn from(Watched { condition, path, looks, held }: Watched) -> ConditionResult {
        ConditionResult { condition, path, looks, held }
    }
}

impl From<FileWrite> for WriteResult {
    fn from(write: FileWrite) -> WriteResult {
        let error = write.error.as_ref().map(ToString::to_string).or_else(|| fell_short(&write));
        WriteResult {
            at_ns: write.at.0,
            path: write.path,
            value: write.value,
            reclaimed_pages: write.done.map(|(_, pages)| pages),
            took_ns: write.done.map(|(end, _)| end.0 - write.at.0),
            refaulted_pages_since: write.refaulted_since,
            error,
        }
    }
}

/// Returns the kernel's answer to a request for more than could be reclaimed, or to one that a signal ended early.
fn fell_short(write: &FileWrite) -> Option<String> {
    let is_request = matches!(KernelFile::parse(&write.path), Some(KernelFile::Memcg { file, .. }) if file == "memory.reclaim");
    let (_, reclaimed) = write.done.filter(|_| is_request)?;
    let asked = write.value.split_whitespace().next()?.parse::<Size>().ok()?.pages_floor();
    let errno = if write.is_interrupted { "EINTR: timeout" } else { "EAGAIN" };
    let is_short = write.is_interrupted || reclaimed < asked;
    is_short.then(|| format!("{}: {reclaimed} of {asked} pages reclaimed ({errno})", write.path))
}
