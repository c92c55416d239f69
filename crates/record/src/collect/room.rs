//! Room for files: how much of a group's memory they had, over time.
//!
//! When a reclaim call begins, the group is at its limit, so files then have the memory that other memory leaves them. If files have a
//! maximum before the next call, this memory was already available when they began to grow. From call to call this shows the changes of the
//! programs' memory. More memory of files than before means that the group was below its limit until the next call.

use crate::manifest::ROOM_STEP;

/// Pages of files, and the pages available to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    /// Pages that came in since the begin, less those that left.
    balance: i64,
    /// The same when the last call of reclaim began, or more if more have come since.
    most: Option<i64>,
    /// The accesses that were made before more came.
    grows_from: Option<u64>,
    /// How that changed, with its place among the accesses.
    told: Vec<(u64, i64)>,
}

impl Room {
    /// Pages came in after N accesses.
    pub(super) fn came(&mut self, pages: u64, accesses: u64) {
        self.balance += pages as i64;
        if self.most.is_some_and(|most| self.balance > most) {
            self.most = Some(self.balance);
            self.grows_from.get_or_insert(accesses);
        }
    }

    /// Pages left.
    pub(super) fn left(&mut self, pages: u64) {
        self.balance -= pages as i64;
    }

    /// A reclaim call begins after N accesses: the group is full.
    pub(super) fn is_full(&mut self, accesses: u64) {
        let has_grown = self.end_growth();
        self.most = Some(self.balance);
        let is_told = |&(_, last): &(u64, i64)| last.abs_diff(self.balance) < ROOM_STEP;
        if has_grown || !self.told.last().is_some_and(is_told) {
            self.tell(accesses, self.balance);
        }
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self) {
        self.end_growth();
    }

    /// From which access on files may have how many pages more than at the begin.
    pub(super) fn told(&self) -> &[(u64, i64)] {
        &self.told
    }

    /// Accesses have been taken out of the trace: each place is another.
    pub(super) fn move_places(&mut self, place: impl Fn(u64) -> u64) {
        self.told.iter_mut().for_each(|(access, _)| *access = place(*access));
    }

    /// Files had more than the known available memory: other memory was freed before they began to grow. Returns whether the change is
    /// large enough to be recorded.
    fn end_growth(&mut self) -> bool {
        let Some((access, pages)) = self.grows_from.take().zip(self.most) else { return false };
        let has_grown = self.told.last().is_some_and(|(_, last)| pages - last >= ROOM_STEP as i64);
        if has_grown {
            self.tell(access, pages);
        }
        has_grown
    }

    fn tell(&mut self, access: u64, pages: i64) {
        match self.told.last_mut() {
            Some((before, last)) if *before >= access => *last = pages,
            _ => self.told.push((access, pages)),
        }
    }
}
