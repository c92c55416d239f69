//! Watching a study: how far it has come, and whether it is to end before its time.

use std::path::Path;

/// Watches a study, from several threads at a time.
pub trait Watcher: Sync {
    /// Returns true if anyone watches the progress. Otherwise the length of a stage is not computed beforehand.
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

    /// Simulations begin that take long. `make` estimates their outcome in a fraction of that time, for a watcher that shows it. It returns
    /// nothing if too few pages can be sampled.
    fn estimate(&self, make: &mut dyn FnMut() -> Option<Estimate>) {
        let _ = make;
    }

    /// The study asks [`Watcher::stop`] from now on until its end, between two stages as well, and returns what it has by then. A study that
    /// does not say so asks while scenarios run ([`Stage::Running`]).
    fn heed_stop(&self) {}

    /// What is still to come of a study, and about how many seconds it will take.
    fn announce(&self, text: &str, seconds: f64) {
        let _ = (text, seconds);
    }

    /// The reason to end the runs, if there is one, such as "SIGINT". The caller asks some hundred times a second during runs. A reason
    /// stays: runs that have not begun do not start.
    fn stop(&self) -> Option<&'static str> {
        None
    }
}

/// Miss ratios of textbook policies, estimated before their simulations begin.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// Names of the policies.
    pub policies: Vec<String>,
    /// Sizes of memory in pages.
    pub sizes: Vec<u32>,
    /// By policy, by size: mean, minimum and maximum miss ratio of the samples; nothing for a policy that failed.
    pub miss_ratios: Vec<Vec<Option<[f64; 3]>>>,
    /// Share of the pages that a sample has.
    pub rate: f64,
    /// Pages of the smallest sample.
    pub pages: u32,
}

/// Watches nothing.
impl Watcher for () {}

/// A stage of a study that takes time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage<'a> {
    /// A trace is read.
    Reading(&'a Path),
    /// Reading of a trace, in bytes of its file.
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
