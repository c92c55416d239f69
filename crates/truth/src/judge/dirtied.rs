//! Figures of a run that writes to files: misses, refaults and stolen pages, and what becomes of its dirty pages.
//!
//! When the statistics worker ran was not recorded, and whether a writer has to wait depends on it: a group's limits of dirty pages
//! are judged by statistics as of their last flush. So the run is simulated several times, and the median of each figure is judged. One
//! flush before a threshold rather than behind it is a second of writing, so a single simulation says little of how many dirty pages
//! reclaim met. What lies between two repeats of the kernel passes in any case. [machine 5.2; reclaim 5]

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
