//! Watching a study: how far it has come, and whether it is to end before its time.

use std::path::Path;

/// Watches a study, from several threads at a time.
pub trait Watcher: Sync {
    /// Whether anyone sees how far it comes. Where nobody does, nobody finds out beforehand how long a stage will be.
    fn is_seen(&self) -> bool {
        false
    }

    /// A stage begins. One begins after the other has ended.
    fn begin(&self, stage: &Stage<'_>) {
        let _ = stage;
    }

    /// So many steps of the stage more are done: of most stages, accesses that were read or simulated.
    fn advance(&self, steps: u64) {
        let _ = steps;
    }

    /// The stage has ended.
    fn end(&self) {}

    /// What who asked should know and no figure says: an input that is ignored, a folder that is left out.
    fn remark(&self, text: &str) {
        let _ = text;
    }

    /// Why runs are to end, if they are, such as "SIGINT". It is asked while runs are under way, some hundred times a second. Once there is a
    /// reason it stays: runs that have not begun then don't.
    fn stop(&self) -> Option<&'static str> {
        None
    }
}

/// Watches nothing.
impl Watcher for () {}

/// What is done for some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage<'a> {
    /// A trace is read.
    Reading(&'a Path),
    /// A trace is read, told in bytes of its file.
    Decoding {
        /// The trace.
        path: &'a Path,
        /// How long its file is.
        bytes: u64,
    },
    /// Recorded runs are simulated; a simulation is a step.
    Playing {
        /// How many simulations there are.
        simulations: usize,
    },
    /// Something else is done. If it is stopped, there is no result of it.
    Named {
        /// What it is called, such as `measuring`.
        what: &'a str,
        /// How many steps it has, where that is known.
        steps: Option<u64>,
    },
    /// Scenarios are simulated.
    Running {
        /// What the plan is called.
        name: &'a str,
        /// How many runs there are.
        runs: usize,
        /// Accesses of all of them, where that is known.
        accesses: Option<u64>,
    },
}

/// What a study of a file is called where its progress is shown: the file's name without its folder.
pub(crate) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
