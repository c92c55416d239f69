//! A trace in the form that simulations need: dense page numbers, in memory as far as they fit.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use pageout_workload::trace::{DenseReader, Loaded, Removal, Requests};
use pageout_workload::{ReadOptions, TraceError};
use serde::{Deserialize, Serialize};

use super::memory::{self, InMemory};
use crate::{Stage, Watcher};

/// A trace that was read to its end.
pub struct Trace {
    /// The path.
    pub path: PathBuf,
    /// The options of the reader.
    pub options: ReadOptions,
    /// The page of each access; none if they are past the budget, and have to be read again.
    pub pages: Option<Pages>,
    /// Accesses in total.
    pub accesses: u64,
    /// Those of them that write.
    pub writes: u64,
    /// Distinct pages.
    pub distinct_pages: u32,
    /// True if page numbers are places, so that consecutive numbers are neighbours.
    pub has_neighbours: bool,
    /// The records that are not accesses; `None` if the trace has no records.
    pub requests: Option<Requests>,
    /// Pages that deletes end, in order; none of a trace that has to be read again, which has them as it is read.
    pub removals: Vec<Removal>,
}

/// The page of each access.
pub enum Pages {
    /// Read from a file.
    Read(Vec<u32>),
    /// Accesses of a program that has them in its memory.
    Kept(InMemory),
}

impl Deref for Pages {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Pages::Read(pages) => pages,
            Pages::Kept(kept) => kept.pages(),
        }
    }
}

/// The start of each trace that is simulated but not counted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "WarmUpText", into = "String")]
pub enum WarmUp {
    /// A number of accesses.
    Accesses(u64),
    /// A percentage of a trace's accesses.
    Percent(f64),
}

impl WarmUp {
    /// In accesses.
    pub fn of(self, accesses: u64) -> u64 {
        match self {
            WarmUp::Accesses(warm_up) => warm_up,
            WarmUp::Percent(percent) => (accesses as f64 * percent / 100.0).round() as u64,
        }
    }
}

impl std::str::FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse::<f64>().ok().filter(|percent| (0.0..100.0).contains(percent));
            return percent
                .map(WarmUp::Percent)
                .ok_or(format!("found `{text}`, expected a percentage from 0 to below 100"));
        }
        let accesses = text.replace('_', "").parse();
        accesses
            .map(WarmUp::Accesses)
            .map_err(|_| format!("found `{text}`, expected a number or a percentage of accesses"))
    }
}

/// A warm-up as data: a text, or a number of accesses.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of accesses, or a text such as \"20%\"")]
enum WarmUpText {
    Accesses(u64),
    Text(String),
}

impl TryFrom<WarmUpText> for WarmUp {
    type Error = String;

    fn try_from(text: WarmUpText) -> Result<WarmUp, String> {
        match text {
            WarmUpText::Accesses(accesses) => Ok(WarmUp::Accesses(accesses)),
            WarmUpText::Text(text) => text.parse(),
        }
    }
}

impl From<WarmUp> for String {
    fn from(warm_up: WarmUp) -> String {
        match warm_up {
            WarmUp::Accesses(accesses) => accesses.to_string(),
            WarmUp::Percent(percent) => format!("{percent}%"),
        }
    }
}

impl Trace {
    /// Reads the trace at `path`, and keeps its page numbers if they take no more than `bytes_max`; nothing if it is to end early.
    pub fn load(
        path: &Path,
        options: &ReadOptions,
        bytes_max: u64,
        watcher: &dyn Watcher,
    ) -> Result<Option<Trace>, TraceError> {
        if let Some(kept) = memory::kept(path) {
            return Ok(Some(Trace {
                path: path.to_path_buf(),
                options: options.clone(),
                accesses: kept.pages().len() as u64,
                writes: 0,
                distinct_pages: kept.distinct_pages,
                pages: Some(Pages::Kept(kept)),
                has_neighbours: true,
                requests: None,
                removals: Vec::new(),
            }));
        }
        let bytes = path.metadata().map_or(0, |file| file.len());
        watcher.begin(&Stage::Decoding { path, bytes });
        let reader = DenseReader::open(path, options);
        let trace = reader.and_then(|reader| read(path, options, reader, bytes_max, watcher));
        watcher.end();
        trace
    }

    /// Reads a trace again that is not in memory, and hands each block on; whether that was to its end.
    pub(super) fn each_block(
        &self,
        watcher: &dyn Watcher,
        each: &mut dyn FnMut(&[u32]),
    ) -> Result<bool, TraceError> {
        let mut reader = DenseReader::open(&self.path, &self.options)?;
        let (mut pages, mut told) = (Vec::new(), 0);
        while reader.read(&mut pages)? {
            each(&pages);
            pages.clear();
            let bytes = reader.bytes_read();
            watcher.advance(bytes - told);
            told = bytes;
            if watcher.stop().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same of a trace that was loaded already; nothing if its accesses are not in memory.
    pub fn of(
        path: &Path,
        options: &ReadOptions,
        loaded: &Loaded,
        bytes_max: u64,
    ) -> Result<Option<Trace>, TraceError> {
        let Some(reader) = DenseReader::of_loaded(path, loaded) else { return Ok(None) };
        let trace = read(path, options, reader, bytes_max, &())?;
        Ok(trace.map(|trace| Trace { requests: loaded.requests.clone(), ..trace }))
    }

    /// Sizes in pages as a question takes them: rising, each once. A memory that holds more than all pages is one that holds all.
    pub(crate) fn rising(&self, sizes: impl Iterator<Item = u64>) -> Vec<u32> {
        let mut rising: Vec<u32> = sizes.map(|pages| self.held(pages)).collect();
        rising.sort_unstable();
        rising.dedup();
        rising
    }

    /// The place of a size among [`Self::rising`] ones that it is one of.
    pub(crate) fn place(&self, pages: u64, rising: &[u32]) -> usize {
        rising.binary_search(&self.held(pages)).expect("each size is among them")
    }

    fn held(&self, pages: u64) -> u32 {
        pages.min(self.distinct_pages.into()) as u32
    }

    /// Returns true if deletes end pages of it.
    pub fn has_removals(&self) -> bool {
        !self.removals.is_empty() || self.requests.as_ref().is_some_and(|requests| requests.pages_deleted > 0)
    }

    /// The page of each access. A deleted page is another page from then on, as OPT (Belady) needs it. `None` if the accesses are not in
    /// memory.
    pub(super) fn renamed(&self) -> Option<Vec<u32>> {
        let pages = self.pages.as_deref()?;
        let mut next = self.distinct_pages;
        let mut names: Vec<u32> = (0..next).collect();
        let mut removals = self.removals.iter().peekable();
        let mut renamed = Vec::with_capacity(pages.len());
        for (at, &page) in (0u64..).zip(pages) {
            while let Some(removal) = removals.next_if(|removal| removal.access <= at) {
                names[removal.page as usize] = next;
                next = next.checked_add(1)?;
            }
            renamed.push(names[page as usize]);
        }
        Some(renamed)
    }
}

pub(super) fn read(
    path: &Path,
    options: &ReadOptions,
    mut reader: DenseReader,
    bytes_max: u64,
    watcher: &dyn Watcher,
) -> Result<Option<Trace>, TraceError> {
    let most = usize::try_from(bytes_max / 4).unwrap_or(usize::MAX);
    let (mut pages, mut is_kept, mut accesses, mut told) = (Vec::new(), true, 0, 0);
    let mut removals = Vec::new();
    loop {
        let before = pages.len();
        if !reader.read_with(&mut pages, &mut removals)? {
            break;
        }
        accesses += (pages.len() - before) as u64;
        is_kept &= pages.len() <= most;
        if !is_kept {
            // Frees the kept blocks: from now on only the current block takes memory.
            pages = Vec::new();
            removals = Vec::new();
        }
        if watcher.stop().is_some() {
            return Ok(None);
        }
        let bytes = reader.bytes_read();
        watcher.advance(bytes - told);
        told = bytes;
    }
    Ok(Some(Trace {
        path: path.to_path_buf(),
        options: options.clone(),
        pages: is_kept.then_some(Pages::Read(pages)),
        accesses,
        writes: reader.writes(),
        distinct_pages: reader.distinct_pages(),
        has_neighbours: reader.has_neighbours(),
        requests: reader.requests(),
        removals,
    }))
}
