//! What an operation may come to, as far as several kinds of them have it in common.

use pageout::Error;

use super::{FEW_GUARDS, Handle, Run};
use crate::model::PAGE;
use crate::operations::{Known, Range};
use crate::settings::{Avoid, avoids};

impl Run<'_> {
    pub(super) fn is_forgotten(&self, handle: &Handle) -> bool {
        self.objects[handle.object].generation != handle.generation
    }

    /// What reads of ranges may come to; nothing where they are not to be made.
    pub(super) fn of_reads(&self, handle: &Handle, ranges: &[Range]) -> Option<Vec<&'static str>> {
        let object = &self.objects[handle.object];
        let bytes = object.len_of(handle.generation);
        if ranges.iter().any(|&(at, len)| at.saturating_add(len as u64) > bytes) {
            // What is before the first of them is read first.
            let mut may = vec!["BeyondEnd"];
            if self.is_forgotten(handle) && ranges.len() > 1 {
                may.push("Forgotten");
            }
            return Some(may);
        }
        if self.is_forgotten(handle) {
            let has_any = ranges.iter().any(|&(_, len)| len > 0);
            return Some(vec![if has_any { "Forgotten" } else { "ok" }]);
        }
        if self.meets_own(handle.object, ranges) {
            return self.may_wait_for_own().then(|| vec!["Pinned"]);
        }
        Some(vec!["ok"])
    }

    /// Returns true if this thread holds a page of these ranges to write it, so that reads of them would wait for it.
    pub(super) fn meets_own(&self, object: usize, ranges: &[Range]) -> bool {
        let held = &self.objects[object].held;
        let is_written = |(at, len): &Range| {
            let pages = at / PAGE..at.saturating_add(*len as u64).div_ceil(PAGE);
            held.range(pages).any(|(_, (_, writes))| *writes)
        };
        ranges.iter().filter(|(_, len)| *len > 0).any(is_written)
    }

    /// Returns true if an operation that waits for a guard of this thread is to be made. Few are, as each takes a tenth of a second.
    pub(super) fn may_wait_for_own(&self) -> bool {
        let left = self.own_waits.get();
        if left == 0 || avoids(Avoid::OwnGuard) {
            return false;
        }
        self.own_waits.set(left - 1);
        true
    }

    /// Returns true if so many guards may be too many, with the pages that reads in flight hold.
    pub(super) fn are_many(&self, guards: usize) -> bool {
        /// Pages of one pending read at a time.
        const OF_PENDING: usize = 32;
        let pendings: usize = self.objects.iter().map(|object| object.pendings).sum();
        guards + pendings * OF_PENDING + FEW_GUARDS > self.pins_max
    }

    /// The same of a guard: too many may be held.
    pub(super) fn of_guard(&self, handle: &Handle, page: u64) -> Option<Vec<&'static str>> {
        let mut allowed = self.of_reads(handle, &[(page.saturating_mul(PAGE), 1)])?;
        if allowed.contains(&"ok") && self.are_many(self.guards) {
            allowed.push("Pinned");
        }
        Some(allowed)
    }

    /// What a write of pages may come to.
    pub(super) fn of_writes(&self, handle: &Handle, first: u64, end: u64) -> Option<Vec<&'static str>> {
        let object = &self.objects[handle.object];
        if !handle.writes {
            return Some(vec!["ReadOnly"]);
        }
        if self.is_forgotten(handle) {
            return Some(vec!["Forgotten"]);
        }
        let mut allowed = vec!["ok"];
        if object.held.range(first..end.max(first)).next().is_some() {
            if !self.may_wait_for_own() {
                return None;
            }
            allowed = vec!["Pinned"];
        }
        if self.may_fail() {
            allowed.push("Io: EFBIG");
        }
        Some(allowed)
    }

    /// What a sync may come to, or what syncs first; nothing where it is not to be made.
    pub(super) fn of_sync(&self, handle: &Handle) -> Option<Vec<&'static str>> {
        if self.is_forgotten(handle) {
            return Some(vec!["Forgotten"]);
        }
        let mut allowed = vec!["ok"];
        if self.has_mut(handle) {
            if !self.may_wait_for_own() {
                return None;
            }
            allowed = vec!["Pinned"];
        }
        if self.objects[handle.object].is_suspect {
            allowed.push("Sync: EFBIG");
        }
        Some(allowed)
    }

    pub(super) fn has_mut(&self, handle: &Handle) -> bool {
        self.objects[handle.object].held.values().any(|(_, writes)| *writes)
    }

    /// Returns true if the device may hold a page of a file.
    pub(super) fn may_be_pinned(&self, handle: &Handle) -> bool {
        self.objects[handle.object].is_stable && avoids(Avoid::StablePinned)
    }

    /// What an operation may come to that needs all pages of a file to be let go of.
    pub(super) fn of_taking(&self, handle: &Handle) -> Vec<&'static str> {
        let object = &self.objects[handle.object];
        if self.is_forgotten(handle) {
            vec!["Forgotten"]
        } else if !object.held.is_empty() {
            vec!["Pinned"]
        } else if object.pendings > 0 || self.may_be_pinned(handle) {
            vec!["ok", "Pinned"]
        } else {
            vec!["ok"]
        }
    }
}

/// Makes an access again that meets a read that was in flight when its file was cut.
pub(super) fn again<T>(mut access: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    const TRIES: usize = 8;
    let mut result = access();
    for _ in 0..TRIES {
        if !(avoids(Avoid::Shortened) && matches!(result, Err(Error::Shortened { .. }))) {
            break;
        }
        result = access();
    }
    result
}
