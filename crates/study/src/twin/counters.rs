//! What counters alone tell of a group's files.
//!
//! A page that comes in for the first time leaves no shadow, and one that comes back does. So *pages brought in - refaults = distinct pages
//! brought in*, for files that are neither deleted nor truncated, whose shadows are not reclaimed and were none when it began. As many have to come in whatever the
//! memory: it is the floor of the curve of misses over memory, and refaults are all that any amount of memory can save.
//!
//! The curve between is not identified by one point, nor which policy would do better, nor who of several readers causes misses, nor scans
//! against reuse.

use super::recording::Recording;

/// What counters tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Pages brought in at this limit, and how that is known.
    pub insertions: u64,
    /// Whether tracepoints counted them; else `memory.stat` did, in which memory of programs is charged as well.
    pub is_exact: bool,
    /// Of these, pages that had been there: what memory can save.
    pub refaults: u64,
}

impl Counted {
    /// Of a recording; none if its kernel does not count what it needs.
    pub fn of(recording: &Recording) -> Option<Counted> {
        let refaults = recording.rose("workingset_refault_file")?;
        let sums = &recording.manifest.sums;
        if sums.insertions > 0 {
            // What came in for the first time may be known from before the recording: that is a refault, and came in once all the same.
            let again = sums.insertions - sums.insertions_first.min(sums.insertions);
            return Some(Counted {
                insertions: sums.insertions,
                is_exact: true,
                refaults: refaults.min(again),
            });
        }
        // In the first version of cgroups every page that is charged counts; memory of programs is what faults did not find.
        let charged = recording.rose("pgpgin");
        let of_programs =
            recording.rose("pgfault").unwrap_or(0).saturating_sub(recording.rose("pgmajfault").unwrap_or(0));
        let evicted = recording
            .rose("pgsteal")
            .or_else(|| Some(recording.rose("pgsteal_kswapd")? + recording.rose("pgsteal_direct")?));
        let insertions = match (charged, evicted) {
            (Some(charged), _) => charged.saturating_sub(of_programs.min(charged)),
            // What came in has been evicted, or is there.
            (None, Some(evicted)) => (evicted as i64 + recording.file_growth() / 4096).max(0) as u64,
            (None, None) => return None,
        };
        Some(Counted { insertions: insertions.max(refaults), is_exact: false, refaults })
    }

    /// Distinct pages that came in: the floor.
    pub fn distinct(&self) -> u64 {
        self.insertions.saturating_sub(self.refaults)
    }
}
