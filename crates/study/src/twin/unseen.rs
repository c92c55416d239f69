//! Hits on mapped pages, which have no events: as many as needed to keep a page in use as long as its faults show.
//!
//! A fault shows since when its page was missed. A task with random accesses, as `MADV_RANDOM` declares, accesses the page equally often
//! while the page is in memory. The time from its eviction to its fault is therefore a measure of the time from any moment to the next use:
//!
//! ```text
//!     fault           4    2  1                       1  2    4      evicted      fault
//!   ────┼─────────────┴────┴──┴─── ...  the middle ... ┴──┴────┴──────────┼───wait───┼───▶ accesses
//! ```
//! Accesses are added at distances of one, two, four ... waits from both ends. A twin that evicts a little earlier thus sees the page
//! return, and one that evicts later sees it still in use. With faults alone each small difference loses a miss. A page that the twin still
//! has when the machine missed it is a hit. A page that the twin lacks while the machine had it has no access.
//!
//! Mappings without this advice are left alone: each of their accesses marks the page as used, so the eviction shows that it had none for a
//! while.

use std::collections::BTreeMap;
use std::path::Path;

use pageout_record::{Channel, MappedAdvice};
use pageout_workload::trace;
use pageout_workload::{Access, ReadOptions, TraceError};

use super::recording::Recording;

/// Accesses put in, in order: how many of the trace are before, and which page.
#[derive(Clone, Debug, Default)]
pub(super) struct Unseen(Vec<(u64, Access)>);

/// What is known of a page.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Its last fault,
    fault: u64,
    /// how long it had been missed then, and had been there before that.
    times: Option<(u64, u64)>,
}

impl Unseen {
    /// Those of a recording; none if it has no mappings that are used at random.
    pub(super) fn of(recording: &Recording, accesses: &Path) -> Result<Unseen, TraceError> {
        let objects = recording.objects();
        let is_random = |&(file, channel): &(usize, Channel)| {
            let advice = recording.manifest.file[file].mapped_advice;
            channel == Channel::Mapped && advice == Some(MappedAdvice::Random)
        };
        let is_random: Vec<bool> = objects.iter().map(is_random).collect();
        if recording.evictions.is_empty() || !is_random.contains(&true) {
            return Ok(Unseen::default());
        }
        let mut stream = trace::open(accesses, &ReadOptions::default())?;
        let evictions = &recording.evictions[..];
        let mut finder = Finder { evictions, at: 0, pages: BTreeMap::new(), unseen: Vec::new() };
        let mut chunk = Vec::new();
        while stream.fill(&mut chunk, 1 << 16)? > 0 {
            for access in chunk.drain(..) {
                finder.take(access, is_random.get(access.object() as usize) == Some(&true));
            }
        }
        Ok(finder.finish())
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// They, in order.
    pub(super) fn accesses(&self) -> &[(u64, Access)] {
        &self.0
    }
}

/// Goes over the accesses of a trace.
struct Finder<'a> {
    /// What is left of the faults that found their page evicted.
    evictions: &'a [(u64, u64)],
    /// Accesses so far.
    at: u64,
    pages: BTreeMap<u64, Page>,
    unseen: Vec<(u64, Access)>,
}

impl Finder<'_> {
    fn take(&mut self, access: Access, is_random: bool) {
        let mut evicted = None;
        if let Some((&(fault, since), rest)) = self.evictions.split_first()
            && fault == self.at
        {
            (evicted, self.evictions) = (Some(since), rest);
        }
        let before = self.pages.get(&access.bits()).map(|page| page.fault);
        // An access that found the page in memory does not show how long the page was missed.
        if is_random && (evicted.is_some() || before.is_none()) {
            let times = before.zip(evicted).map(|(fault, since)| ((self.at - since).max(1), since - fault));
            self.pages.insert(access.bits(), Page { fault: self.at, times });
            if let (Some(fault), Some((wait, stay))) = (before, times) {
                self.between(access, fault, stay, wait);
            }
        }
        self.at += 1;
    }

    /// Uses of a page from its fault to its eviction.
    fn between(&mut self, access: Access, fault: u64, stay: u64, wait: u64) {
        let (middle, evicted) = (fault + stay / 2, fault + stay);
        self.after(access, fault, middle, wait);
        let places = doubling(wait).map_while(|wait| evicted.checked_sub(wait));
        let places = places.take_while(|place| *place > middle);
        self.unseen.extend(places.map(|place| (place, access)));
    }

    /// Uses of a page from its fault on.
    fn after(&mut self, access: Access, fault: u64, until: u64, wait: u64) {
        let places =
            doubling(wait).map(|wait| fault.saturating_add(wait)).take_while(|place| *place <= until);
        self.unseen.extend(places.map(|place| (place, access)));
    }

    /// The recording does not show the pages in memory at the end. They are taken as those that would remain if they stayed as long as
    /// before.
    fn finish(mut self) -> Unseen {
        for (bits, page) in std::mem::take(&mut self.pages) {
            let Some((wait, stay)) = page.times else { continue };
            let access = Access::from_bits(bits);
            match self.at.checked_sub(page.fault + stay) {
                // It has been missed longer than before.
                Some(since) => self.between(access, page.fault, stay, wait.max(since)),
                None => self.after(access, page.fault, self.at, wait),
            }
        }
        self.unseen.sort_by_key(|(place, _)| *place);
        Unseen(self.unseen)
    }
}

/// A wait, twice the wait, four times.
fn doubling(wait: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(wait), |wait| wait.checked_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(accesses: &[u64], evictions: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut finder = Finder { evictions, at: 0, pages: BTreeMap::new(), unseen: Vec::new() };
        accesses.iter().for_each(|&page| finder.take(Access::new(0, page, false), true));
        finder.finish().0.iter().map(|(place, access)| (*place, access.page())).collect()
    }

    #[test]
    fn a_page_is_in_use_as_often_as_its_fault_says() {
        // Page 7 comes at 0, is evicted at 20 and missed for two accesses, until 22.
        let accesses: Vec<u64> = [7].into_iter().chain(100..121).chain([7, 200, 201, 202, 203]).collect();
        let told = found(&accesses, &[(22, 20)]);
        assert_eq!(told, [(2, 7), (4, 7), (8, 7), (12, 7), (16, 7), (18, 7), (24, 7), (26, 7)]);
        // Nobody says how long others are missed.
        assert_eq!(found(&accesses, &[]), []);
    }
}
