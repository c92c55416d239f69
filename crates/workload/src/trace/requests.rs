//! What the records of a trace say besides the accesses that come of them: requests, bytes, deletes, times to live.
//!
//! A cache of objects is judged by its requests, and here a request has one access per page of its object. So a figure over the accesses of such a
//! trace is shown next to its source.

use std::collections::BTreeMap;

/// Names of skipped operations that are kept one by one; the rest is counted together.
const NAMES_MAX: usize = 32;
/// The name under which operations beyond those are counted.
const OTHERS: &str = "(others)";

/// Counts over the records of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that access pages. A record that counts for several is several.
    pub requests: u64,
    /// Accesses that came of them.
    pub pages: u64,
    /// Bytes they ask for; 0 where the trace does not say.
    pub bytes: u64,
    /// True if they name opaque ids, so that a size is that of an object.
    pub has_ids: bool,
    /// Records that delete what they name.
    pub deletes: u64,
    /// Pages that deletes name: of an id those that were accessed before, of a range all.
    pub pages_deleted: u64,
    /// Records with a time to live, which is not modelled.
    pub ttls: u64,
    /// Records of operations that are skipped because an option says so, by operation.
    pub skipped: BTreeMap<String, u64>,
    /// Doubts that arose while the records were read.
    pub doubts: Vec<String>,
}

impl Requests {
    /// Returns whether a request is another number of accesses than one.
    pub fn has_sizes(&self) -> bool {
        self.has_ids && self.pages != self.requests
    }

    /// Skipped records, over all operations.
    pub fn skipped(&self) -> u64 {
        self.skipped.values().sum()
    }

    /// Counts a skipped record.
    pub(super) fn skip(&mut self, operation: &str) {
        let is_known = self.skipped.contains_key(operation);
        let name = if is_known || self.skipped.len() < NAMES_MAX { operation } else { OTHERS };
        *self.skipped.entry(name.to_string()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_operations_beyond_the_most_are_counted_together() {
        let mut requests = Requests::default();
        (0..100).for_each(|at| requests.skip(&format!("op{at}")));
        assert_eq!(requests.skipped.len(), NAMES_MAX + 1);
        assert_eq!((requests.skipped(), requests.skipped[OTHERS]), (100, 68));
    }
}
