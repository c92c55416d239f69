//! Figures of a run that writes to files: misses, refaults, stolen pages and dirty pages.
//!
//! The times of the statistics worker were not recorded, but they decide whether a writer must wait: a group's limits of dirty pages use
//! statistics as of their last flush. The run is therefore simulated several times, and the median of each figure is judged. One flush
//! before a threshold instead of after it is one second of writing, so a single simulation does not show how many dirty pages reclaim met.
//! A value between two repeats of the kernel always passes. [machine 5.2; reclaim 5]

use super::super::class::Single;
use super::median::{Identity, equal, middle};
use super::{Comparison, Row, counter, group_of};

const IDENTITIES: &[Identity] =
    &[equal("dirtied, gone unwritten", &["nr_dirtied"], &["nr_written", "nr_dirty", "nr_writeback"])];

impl Comparison<'_> {
    pub(super) fn dirtied(&self, limits: &Single) -> anyhow::Result<Vec<Row>> {
        let mut rows = self.median(limits)?;
        for row in rows.iter_mut().filter(|row| group_of(row.name).is_some()) {
            row.simulated = middle(self.played.iter().map(|played| counter(played, row.name)));
            row.passes = row.limit.map(|[least, most]| (least..=most).contains(&row.simulated));
        }
        rows.extend(self.identities(IDENTITIES));
        Ok(rows)
    }
}
