//! `trace info`: accesses, pages and reuse gaps of a trace, counted in one pass over it.
//!
//! Memory grows with the distinct pages (40 to 80 bytes each), whatever the format.

use std::path::Path;
use std::sync::atomic::Ordering;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::error::TraceError;
use super::interpretation::Interpretation;
use super::open::open_reader;
use super::options::ReadOptions;
use super::replay::TraceReader;
use super::requests::Requests;
use crate::{Access, AccessStream};

const CHUNK: usize = 1 << 16;

/// Counts of a trace: accesses, pages, objects, reuse gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceInfo {
    /// The interpretation of the trace's bytes.
    pub interpretation: Interpretation,
    /// Records in the trace.
    pub records: u64,
    /// The records that are not accesses; `None` in a `.pgt`, which does not keep them.
    pub requests: Option<Requests>,
    /// Records that access no page, such as syncs, trims and sizes of 0; `None` in a `.pgt`, which does not keep them.
    pub records_without_access: Option<u64>,
    /// Accesses: records split into pages, less those that access none.
    pub accesses: u64,
    /// Objects accessed.
    pub objects: u64,
    /// Distinct pages accessed, over all objects.
    pub distinct_pages: u64,
    /// Accesses that write; `None` where the trace does not say which do.
    pub writes: Option<u64>,
    /// Bytes of the file as it is stored.
    pub file_bytes: u64,
    /// Bytes asked for in total, where the format says.
    pub request_bytes: Option<u64>,
    /// First and last time, where the format has times.
    pub time_span: Option<TimeSpan>,
    /// Share of the accesses that go to the most popular 1 % of the pages (rounded up to whole pages); 0 to 1.
    pub share_of_top_1_percent: f64,
    /// Share of the accesses that go to the most popular 10 % of the pages; 0 to 1.
    pub share_of_top_10_percent: f64,
    /// Pages accessed only once: no cache can hit them.
    pub pages_accessed_once: u64,
    /// The number of re-accesses by the gap to the previous access of the same page, in accesses: entry k counts gaps of
    /// 2^k to 2^(k+1) - 1.
    pub reuse_gaps_log2: Vec<u64>,
}

/// First and last time of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSpan {
    /// The earliest time.
    pub first: f64,
    /// The latest time.
    pub last: f64,
    /// The unit of the times; empty where the trace does not say.
    pub unit: &'static str,
}

/// Reads the complete trace at `path` and counts. It calls `progress` now and then with the bytes of the file that have been read.
pub fn info(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<TraceInfo, TraceError> {
    let (mut reader, bytes_read) = open_reader(path, options)?;
    let mut counts = Counts::default();
    let mut chunk = Vec::with_capacity(CHUNK);
    while reader.fill(&mut chunk, CHUNK)? > 0 {
        chunk.drain(..).for_each(|access| counts.add(access));
        progress(bytes_read.load(Ordering::Relaxed));
    }
    let file_bytes = bytes_read.load(Ordering::Relaxed);
    progress(file_bytes);
    let time_span = reader.time_span().map(|(first, last, unit)| TimeSpan { first, last, unit });
    Ok(counts.summary(&*reader, file_bytes, time_span))
}

#[derive(Default)]
struct Counts {
    pages: HashMap<(u32, u64), PageCount, FixedState>,
    objects: Vec<bool>,
    accesses: u64,
    writes: u64,
    reuse_gaps_log2: Vec<u64>,
}

struct PageCount {
    accesses: u64,
    last: u64,
}

impl Counts {
    fn add(&mut self, access: Access) {
        let now = self.accesses;
        self.accesses += 1;
        self.writes += u64::from(access.is_write());
        let object = access.object() as usize;
        if object >= self.objects.len() {
            self.objects.resize(object + 1, false);
        }
        self.objects[object] = true;
        let key = (access.object(), access.page());
        let page = self.pages.entry(key).or_insert(PageCount { accesses: 0, last: now });
        page.accesses += 1;
        if page.accesses > 1 {
            let slot = (now - page.last).ilog2() as usize;
            if slot >= self.reuse_gaps_log2.len() {
                self.reuse_gaps_log2.resize(slot + 1, 0);
            }
            self.reuse_gaps_log2[slot] += 1;
            page.last = now;
        }
    }

    fn summary(self, reader: &dyn TraceReader, file_bytes: u64, time_span: Option<TimeSpan>) -> TraceInfo {
        // Sorted, so that the table's order does not show.
        let mut by_popularity: Vec<u64> = self.pages.values().map(|page| page.accesses).collect();
        by_popularity.sort_unstable_by(|a, b| b.cmp(a));
        let share = |part: usize| {
            let head: u64 = by_popularity[..by_popularity.len().div_ceil(part)].iter().sum();
            head as f64 / (self.accesses.max(1)) as f64
        };
        TraceInfo {
            interpretation: Interpretation::of(reader),
            records: reader.records_read(),
            requests: reader.requests(),
            records_without_access: reader.records_without_access(),
            accesses: self.accesses,
            objects: self.objects.iter().filter(|&&is_accessed| is_accessed).count() as u64,
            distinct_pages: by_popularity.len() as u64,
            writes: reader.tells_writes().then_some(self.writes),
            file_bytes,
            request_bytes: reader.request_bytes(),
            time_span,
            share_of_top_1_percent: share(100),
            share_of_top_10_percent: share(10),
            pages_accessed_once: by_popularity.iter().filter(|&&accesses| accesses == 1).count() as u64,
            reuse_gaps_log2: self.reuse_gaps_log2,
        }
    }
}
