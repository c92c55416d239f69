//! A file, and what happened to it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::event::FileKey;
use crate::manifest::Channel;
use crate::seen::Seen;

/// Misses of a mapped file up to which faults read around.
const MISSES_MAX: usize = 100;

/// A file, and what happened to it.
#[derive(Clone, Debug)]
pub(crate) struct FileSums {
    pub(crate) key: FileKey,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) faults: u64,
    /// Faults that found their page, or brought it in,
    pub(super) mapped: u64,
    /// and of these, faults by which instructions were fetched.
    pub(super) fetches: u64,
    pub(crate) syncs: u64,
    pub(crate) insertions: u64,
    pub(crate) read_insertions: u64,
    pub(crate) read_ahead: u64,
    pub(super) requests: BTreeMap<u64, u64>,
    /// Pages whose first event was a fault that brought them in.
    pub(super) faulted_in: Vec<u64>,
    /// Pages that any event named.
    pub(super) seen: Seen,
    pub(super) resident: Seen,
    /// Pages that the tasks have brought in without a known removal. The rest may be charged to other groups.
    pub(super) brought_in: Seen,
    /// Pages around faults that found their own among them.
    pub(super) nearby: Seen,
    pub(crate) page_last: u64,
    /// The page behind the last one that came in since it was made, or since the begin.
    pub(super) inserted_end: u64,
    /// How often it was deleted, and another came in its place,
    pub(crate) deletions: u64,
    /// and how often truncated.
    pub(crate) truncations: u64,
    /// The object of each channel, if it has one.
    pub(crate) objects: [Option<u32>; 2],
    /// The pages of the last read or write of more than one.
    pub(super) last_call: Range<u64>,
}

impl FileSums {
    /// A file that no event has named.
    pub(super) fn new(key: FileKey) -> FileSums {
        FileSums {
            key,
            reads: 0,
            writes: 0,
            faults: 0,
            mapped: 0,
            fetches: 0,
            syncs: 0,
            insertions: 0,
            read_insertions: 0,
            read_ahead: 0,
            requests: BTreeMap::new(),
            faulted_in: Vec::new(),
            seen: Seen::default(),
            resident: Seen::default(),
            brought_in: Seen::default(),
            nearby: Seen::default(),
            page_last: 0,
            inserted_end: 0,
            deletions: 0,
            truncations: 0,
            objects: [None, None],
            last_call: 0..0,
        }
    }

    /// Pages of most requests.
    pub(crate) fn request_pages(&self) -> u64 {
        let most = self.requests.iter().max_by_key(|(pages, count)| (**count, u64::MAX - **pages));
        most.map_or(1, |(pages, _)| *pages)
    }

    /// Returns true if it is mostly run.
    pub(crate) fn is_executable(&self) -> bool {
        self.fetches * 2 > self.mapped
    }

    /// Its object when used in this way, if it is.
    pub(super) fn object_of(&self, channel: Channel) -> Option<u32> {
        self.objects[usize::from(channel == Channel::Mapped)]
    }

    /// Pages that were in memory when the recording began.
    pub(crate) fn resident(&self) -> u64 {
        self.resident.count()
    }

    /// A fault that reads, reads N pages around its own, as far as they are missing. A page among them without an insertion was in memory:
    /// for example most of a library that others use. So were pages near one that a fault found. Returns the number of these pages.
    pub(super) fn read_around(&mut self, window: u64) -> u64 {
        let mut found = 0;
        for page in std::mem::take(&mut self.nearby).pages().filter(|&page| self.seen.insert(page)) {
            self.resident.insert(page);
            found += 1;
        }
        let mut pages = std::mem::take(&mut self.faulted_in);
        // A file with this number of misses gets no read-around.
        if pages.len() > MISSES_MAX || self.deletions > 0 {
            return found;
        }
        pages.sort_unstable();
        let mut from = 0;
        for page in pages {
            let start = page.saturating_sub(window / 2);
            for page in start.max(from)..start + window {
                if self.seen.insert(page) {
                    self.resident.insert(page);
                    found += 1;
                }
            }
            from = from.max(start + window);
        }
        found
    }

    /// It has so many pages: reads that asked for more found none behind. Returns how many were taken for resident.
    pub(super) fn end_at(&mut self, pages: u64) -> u64 {
        self.resident.cut(pages)
    }
}
