//! A trace as the simulations want it: dense page numbers, in memory as far as there is room for them.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use pageout_workload::trace::{DenseReader, Packed};
use pageout_workload::{ReadOptions, TraceError};

use super::memory::{self, InMemory};
use crate::{Stage, Watcher};

/// A trace that was read to its end.
pub struct Trace {
    /// Where it is.
    pub path: PathBuf,
    /// How it is read.
    pub options: ReadOptions,
    /// The page of each access; none if they are past the budget, and have to be read anew.
    pub pages: Option<Pages>,
    /// Accesses in all.
    pub accesses: u64,
    /// Those of them that write.
    pub writes: u64,
    /// Distinct pages.
    pub distinct_pages: u32,
}

/// The page of each access.
pub enum Pages {
    /// Read from a file.
    Read(Vec<u32>),
    /// Of a program that has them in its memory.
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

/// What is simulated without being counted, from the start of each trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WarmUp {
    /// So many accesses.
    Accesses(u64),
    /// So many percent of a trace's accesses.
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
                .ok_or(format!("`{text}` is no percentage from 0 to below 100"));
        }
        let accesses = text.replace('_', "").parse();
        accesses
            .map(WarmUp::Accesses)
            .map_err(|_| format!("`{text}` is neither a number of accesses nor a percentage of them"))
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

    /// The same of accesses that were loaded already.
    pub fn of(
        path: &Path,
        options: &ReadOptions,
        packed: &Packed,
        bytes_max: u64,
    ) -> Result<Trace, TraceError> {
        let reader = DenseReader::of(path, packed.stream());
        read(path, options, reader, bytes_max, &()).map(|trace| trace.expect("nobody ends it"))
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
    loop {
        let before = pages.len();
        if !reader.read(&mut pages)? {
            break;
        }
        accesses += (pages.len() - before) as u64;
        is_kept &= pages.len() <= most;
        if !is_kept {
            // What was kept is given back, and only the next block takes memory.
            pages = Vec::new();
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
    }))
}
