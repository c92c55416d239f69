//! What a recording has for sentences to rest on: counters that its kernel has, and events that were recorded.

use pageout_record::Sums;

use super::recording::Recording;
use crate::basis::Evidence;

/// Reads of one page each: more than this share of further pages says that reads ask for several.
const FURTHER: f64 = 0.05;

/// A fact that a sentence about a recording can need.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// How much a counter of the group's `memory.stat` rose.
    Counter(&'static str),
    /// What events of this name add up to.
    Events(&'static str, fn(&Sums) -> u64),
    /// What events of writes add up to: each file system has its own.
    Writes(fn(&Sums) -> u64),
    /// Pages that came in for the first time.
    FirstInsertions,
    /// Every page of every file: no sample, and no choice of files.
    AllPages,
    /// A kernel that has forgotten no page that it evicted.
    NothingForgotten,
    /// Charges that count each page.
    PagesCharged,
    /// Reads that ask for one page each, so that each page brought in by one is an access that missed.
    ReadsOfOnePage,
    /// A load without writes: no event shows which writes hit.
    NoWrites,
    /// A group whose evicted pages are files' alone.
    NoSwap,
    /// Counters that agree: not more pages came back than came in.
    Agreeing,
    /// Accesses.
    Accesses,
    /// The duration. Unit: nanoseconds.
    Duration,
}

/// The needs that make the number of pages that came in.
pub(super) const INSERTIONS: Need = Need::Events("mm_filemap_add_to_page_cache", |sums| sums.insertions);

impl Evidence for Recording {
    type Need = Need;
    type Seen = u64;

    fn seen(&self, need: &Need) -> Result<u64, String> {
        let (source, sums) = (&self.manifest.source, &self.manifest.sums);
        let has = |event: &str| source.events.iter().any(|name| name.ends_with(event));
        let told = |is_told: bool, missing: &str| is_told.then_some(0).ok_or_else(|| missing.to_string());
        match *need {
            Need::Counter(name) => self.rose(name).ok_or_else(|| format!("no {name} in memory.stat")),
            Need::Events(event, sum) if has(event) => Ok(sum(sums)),
            Need::Events(event, _) => Err(format!("no {event} events")),
            Need::Writes(sum) => {
                let is_told = ["ext4:", "xfs:", "f2fs:"]
                    .iter()
                    .any(|system| source.events.iter().any(|name| name.starts_with(system)));
                if is_told { Ok(sum(sums)) } else { Err("no write events".to_string()) }
            }
            // Older recordings lack the sum, which is never zero where something came in.
            Need::FirstInsertions if sums.insertions > 0 && sums.insertions_first == 0 => {
                Err("no count of first insertions: record again".to_string())
            }
            Need::FirstInsertions => Ok(sums.insertions_first.min(sums.insertions)),
            Need::AllPages => told(
                source.only_files.is_empty() && self.manifest.recording.sample <= 1,
                "only some pages were recorded",
            ),
            Need::NothingForgotten => match self.rose("workingset_nodereclaim") {
                Some(0) => Ok(0),
                Some(nodes) => Err(format!(
                    "{} with shadow entries were freed, so their refaults count as new pages",
                    crate::figures::counted(nodes, "node")
                )),
                None => Err("no workingset_nodereclaim in memory.stat".to_string()),
            },
            Need::PagesCharged => told(
                self.manifest.group.version != 1,
                "memory.stat of cgroup v1 counts a large folio as one charge",
            ),
            Need::ReadsOfOnePage => {
                let further = sums.pages_read.saturating_sub(sums.requests) as f64;
                told(
                    further <= FURTHER * sums.requests as f64,
                    "reads ask for several pages, and the recording does not show the missing ones",
                )
            }
            Need::NoWrites => told(sums.pages_written == 0, "the recording does not show which writes hit"),
            Need::NoSwap => {
                told(!self.has_swap(), "swap was on, so the count includes evicted anonymous pages")
            }
            // If one side is missing, the need for that side reports it.
            Need::Agreeing => told(
                self.rose("pgsteal").or(self.rose("pgsteal_kswapd")).is_none()
                    || self.came_by_counters() >= self.rose("workingset_refault_file").unwrap_or(0),
                "memory.stat counts more refaults than insertions",
            ),
            Need::Accesses if self.header.is_some() => Ok(self.manifest.recording.accesses),
            Need::Accesses => Err("no accesses".to_string()),
            Need::Duration if self.manifest.recording.duration_ns > 0 => {
                Ok(self.manifest.recording.duration_ns)
            }
            Need::Duration => Err("no duration".to_string()),
        }
    }
}
