//! Figures of a run whose pages are compressed on their way to swap.
//!
//! The duration of writes to its disk was not recorded, so the run is simulated several times. The median simulation is judged like a
//! single one, but a value between two repeats of the kernel always passes: their scan counts differ by up to 1.8 %. Some sums of counters
//! are equal whatever the machine did. They must hold exactly in every simulation. [tiering-zswap-6.12 1.7, 4]

use super::super::class::Single;
use super::median::{Identity, equal, identity};
use super::{Comparison, Row, counter, misses};

const WRITTEN_BACK: &str = "zswpwb";

const IDENTITIES: &[Identity] = &[
    equal("swapped in, not missed", &["zswpin", "pswpin"], &["pgmajfault"]),
    equal("refaults without a cause", &["workingset_refault_anon"], &["pgmajfault", WRITTEN_BACK]),
    equal("written, not from zswap", &["pswpout"], &[WRITTEN_BACK]),
    equal("stores without a write", &["zswpout"], &["nr_vmscan_write"]),
    // A page that came from the pool is dirty, so that it is stored again.
    equal("stolen, not stored", &["pgsteal_anon"], &["zswpout"]).unless(WRITTEN_BACK),
];

impl Comparison<'_> {
    pub(super) fn compressed(&self, limits: &Single) -> anyhow::Result<Vec<Row>> {
        let mut rows = self.median(limits)?;
        let missed_and_not = self.played.iter().map(|played| {
            let missed = played.missed.iter().filter(|&&missed| missed).count() as f64;
            missed - counter(played, "pgmajfault")
        });
        let real = self.real_map.as_ref().map_or(f64::NAN, misses);
        let real = real - self.real_counter(self.answer, "pgmajfault");
        rows.push(identity("missed, not a major fault", missed_and_not, real));
        rows.extend(self.identities(IDENTITIES));
        Ok(rows)
    }
}
