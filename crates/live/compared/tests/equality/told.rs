//! Decisions on pages and counters as text, for a comparison of two hosts.

use pageout_engine::{Nanos, StoryEvent};
use pageout_sim::Observer;

/// The decisions on the followed pages, without times, and without the numbers of tasks and address spaces, which differ between hosts.
#[derive(Default)]
pub(crate) struct Story(pub(crate) Vec<String>);

impl Observer for Story {
    fn story(&mut self, event: &StoryEvent) {
        let mut told = format!("{:?}", StoryEvent { at: Nanos::ZERO, ..event.clone() });
        for number in ["TaskId(", "MmId("] {
            let parts = told.split(number).map(|part| part.trim_start_matches(char::is_numeric));
            told = parts.collect::<Vec<_>>().join(number);
        }
        self.0.push(told);
    }
}

/// The lines of `/proc/vmstat` that are the same on two hosts: all but free memory, and the dirty limits, which are shares of it. Free memory depends on the
/// other memory of the host, and a CPU gives back the free pages that it keeps once a second, by the real clock of a live host.
pub(crate) fn comparable(vmstat: &str) -> impl Iterator<Item = &str> {
    vmstat.lines().filter(|line| !["nr_free", "nr_dirty_"].iter().any(|prefix| line.starts_with(prefix)))
}
