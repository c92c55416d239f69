//! Memory of a group other than files, as it changes over time: compilers that start and end, a heap that grows and shrinks.
//!
//! A call of reclaim begins when the group is full, so what files have then is what all else leaves them. The recording tells it from call to
//! call:
//!
//! ```text
//!   limit  ┬ ─────────┬──┐    ┌──┐    ┌────     ┐
//!          │ beside   │  │    │  │    │         │ constant: left out of the twin's limit
//!          │          │  └────┘  └────┘         ┘ what moves: pages of a tmpfs file, written and truncated
//!          │ files    │
//!          ┴ ─────────┴─▶ accesses
//! ```
//! The twin changes this memory at the recorded places. Its pages are charged like those of programs: they evict files, cannot be evicted
//! without swap, and are freed together. If files have more memory than at the previous call, the group was below its limit from there to
//! the next call. The amount of other memory in this time is not recorded. The twin uses the minimum of all samples, so that nothing is
//! reclaimed in this time, as on the machine.

use pageout_workload::Access;
use pageout_workload::trace::{FileCall, PlacedCall};

use super::recording::Recording;

/// Pages that others may have evicted, as a share of the files' pages: beyond it the events do not show the memory of files.
const UNTOLD: u64 = 32;

/// Pages that a CPU charges in one batch. Some of them are still free when the group counts as full, so the memory of files varies by this
/// amount without a cause.
const CHARGED_AHEAD: i64 = 64;

/// Pages of a folio that may be the largest of a recording that does not say it.
const LARGEST: u64 = 512;

/// Pages that files have in any case: two calls of reclaim find something.
const LEFT: u64 = 64;

/// Pages of the group other than pages of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// Pages that files can have when all else is least.
    pub(super) files_most: u64,
    /// From which access on the group held N pages more than its minimum, in order.
    levels: Vec<(u64, u64)>,
}

/// Pages by which the memory of files varies without a cause. A group counts as full, too, if it has no space for all pages of a folio.
fn charged_ahead(recording: &Recording) -> i64 {
    let sums = &recording.manifest.sums;
    let largest = match sums.charged_largest {
        0 if sums.insertions_large > 0 => LARGEST,
        largest => largest,
    };
    CHARGED_AHEAD.max(largest as i64)
}

impl Beside {
    /// That of a recording; none if it was never full, or others evicted pages, too, which no event told.
    pub(super) fn of(recording: &Recording) -> Option<Beside> {
        let page = recording.manifest.recording.page_size.max(1);
        let most = recording.rooms.iter().map(|(_, pages)| *pages).max()?;
        let at_begin = recording.samples.first()?.file_bytes / page;
        let files_most = u64::try_from(at_begin as i64 + most).ok()?;
        let untold = recording.vanished()?.unsigned_abs();
        let limit = recording.limit() / page;
        if untold > (files_most / UNTOLD).max(64) || files_most >= limit {
            return None;
        }
        let end = recording.header.as_ref()?.accesses;
        let rooms: Vec<(u64, i64)> =
            recording.rooms.iter().copied().take_while(|(access, _)| *access < end).collect();
        let ahead = charged_ahead(recording);
        let grows = |pair: &[(u64, i64)]| pair[1].1 - pair[0].1 > ahead;
        // When the group was not full, as little was held as at any time.
        let least =
            recording.samples.iter().map(|sample| (sample.anon_bytes + sample.kernel_bytes) / page).min();
        let free = least
            .filter(|_| rooms.windows(2).any(grows))
            .map_or(0, |least| (limit - files_most).saturating_sub(least));
        let level = |pages: i64| {
            let less = if ahead > CHARGED_AHEAD && most - pages <= ahead { 0 } else { (most - pages) as u64 };
            free + less.min(files_most.saturating_sub(LEFT))
        };
        // The amount before the first call is not recorded: it is taken as equal to that of the first call.
        let mut levels: Vec<(u64, u64)> =
            rooms.first().map(|(_, pages)| (0, level(*pages))).into_iter().collect();
        levels.extend(rooms.windows(2).map(|pair| match grows(pair) {
            true => (pair[1].0, 0),
            false => (pair[1].0, level(pair[1].1)),
        }));
        Some(Beside { files_most: files_most + free, levels })
    }

    /// The most that moves.
    pub(super) fn moving(&self) -> u64 {
        self.levels.iter().map(|(_, pages)| *pages).max().unwrap_or(0)
    }

    /// The mean of what moves, over accesses until `end`.
    pub(super) fn mean(&self, end: u64) -> u64 {
        let until = self.levels.iter().skip(1).map(|(access, _)| *access).chain([end]);
        let sum =
            |sum: u64, ((from, pages), until): (&(u64, u64), u64)| sum + until.saturating_sub(*from) * pages;
        self.levels.iter().zip(until).fold(0, sum).checked_div(end).unwrap_or(0)
    }

    /// Pages that come, with how many accesses of the trace are before: writes to `object`.
    pub(super) fn writes(&self, object: u32) -> Vec<(u64, Access)> {
        let mut writes = Vec::new();
        let mut held = 0;
        for &(access, pages) in &self.levels {
            writes.extend((held..pages).map(|page| (access, Access::new(object, page, true))));
            held = pages;
        }
        writes
    }

    /// Pages that go, of `object`.
    pub(super) fn truncations(&self, object: u32) -> Vec<PlacedCall> {
        let pairs = self.levels.windows(2).filter(|pair| pair[1].1 < pair[0].1);
        let call = |pair: &[(u64, u64)]| {
            let (access, first) = pair[1];
            PlacedCall { access, object, call: FileCall::Truncate { first, end: u64::MAX } }
        };
        pairs.map(call).collect()
    }

    /// How many pages come, of all levels.
    pub(super) fn count(&self) -> u64 {
        let rises = self.levels.windows(2).map(|pair| pair[1].1.saturating_sub(pair[0].1));
        self.levels.first().map_or(0, |(_, pages)| *pages) + rises.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_written_where_it_came_and_truncated_where_it_went() {
        let beside = Beside { files_most: 9, levels: vec![(0, 1), (5, 3), (8, 0), (9, 2)] };
        let writes: Vec<(u64, u64)> =
            beside.writes(4).iter().map(|(place, access)| (*place, access.page())).collect();
        assert_eq!(writes, [(0, 0), (5, 1), (5, 2), (9, 0), (9, 1)]);
        assert_eq!(beside.count(), 5);
        let gone: Vec<String> = beside.truncations(4).iter().map(PlacedCall::line).collect();
        assert_eq!(gone, ["8,4,truncate,0"]);
        assert_eq!((beside.moving(), beside.mean(10)), (3, (5 + 9 + 2) / 10));
    }
}
