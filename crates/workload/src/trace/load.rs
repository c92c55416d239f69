//! Loaded traces: a trace is read once, for its footprint, and its accesses stay in memory as far as they fit.

use std::path::Path;
use std::sync::Arc;

use super::ahead::Ahead;
use super::error::TraceError;
use super::file_calls::PlacedCall;
use super::footprint::{Footprint, SeenPages};
use super::open::{header, open_to_look};
use super::options::ReadOptions;
use super::packed::{Packed, Packer};
use super::requests::Requests;
use crate::{Access, AccessStream};

const CHUNK: usize = 1 << 16;

/// A trace that was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The footprint of the trace.
    pub footprint: Footprint,
    /// The trace's accesses; `None` if they are past the budget, and have to be read again.
    pub accesses: Option<Packed>,
    /// True if the numbers of its pages are places, so that adjacent numbers are neighbours.
    pub has_neighbours: bool,
    /// The records that are not accesses; `None` if the trace has no records, or was not read to its end.
    pub requests: Option<Requests>,
    /// Pages that deletes end, each before the access of that number.
    pub removals: Arc<[PlacedCall]>,
}

impl Loaded {
    /// Information about places of which only the footprint was read.
    pub fn of(footprint: Footprint, accesses: Option<Packed>) -> Loaded {
        Loaded { footprint, accesses, has_neighbours: true, requests: None, removals: Arc::default() }
    }
}

/// Reads the trace at `path`, and keeps its accesses if they take no more than `bytes_max`. It calls `progress` with the number of accesses read so
/// far. Beyond that size, a file is read to its end only if it has no summary of its footprint.
pub fn load(
    path: &Path,
    options: &ReadOptions,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Loaded, TraceError> {
    let mut packer = Packer::new(bytes_max);
    let loaded = read(path, options, progress, &mut packer, true)?;
    Ok(Loaded { accesses: packer.finish(), ..loaded })
}

/// Loads a trace for a caller that cannot use its footprint alone: `None` as soon as the accesses are past the budget.
pub fn load_within(
    path: &Path,
    options: &ReadOptions,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Loaded>, TraceError> {
    let mut packer = Packer::new(bytes_max);
    let loaded = read(path, options, progress, &mut packer, false)?;
    Ok(packer.finish().map(|accesses| Loaded { accesses: Some(accesses), ..loaded }))
}

/// Keeps what a stream gives, all of it.
pub fn keep(stream: &mut dyn AccessStream) -> Result<Loaded, TraceError> {
    let (mut footprint, mut seen, mut packer) =
        (Footprint::default(), SeenPages::new(), Packer::new(u64::MAX));
    let mut chunk: Vec<Access> = Vec::with_capacity(CHUNK);
    while stream.fill(&mut chunk, CHUNK)? > 0 {
        footprint.count(&chunk, &mut seen);
        packer.pack(&chunk);
        chunk.clear();
    }
    Ok(Loaded::of(footprint, packer.finish()))
}

/// Reads to the end, or until the accesses are past the budget. `counts`: also beyond, if else it is not known what they touch.
fn read(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
    packer: &mut Packer,
    counts: bool,
) -> Result<Loaded, TraceError> {
    // A `.pgt` says what it touches. Its reader holds it to that.
    let said = header(path, options)?.and_then(|header| header.footprint);
    let reader = open_to_look(path, options)?;
    let has_neighbours = reader.has_neighbours();
    let mut stream = Ahead::new(reader);
    let mut removals = Vec::new();
    let (mut counted, mut seen) = (Footprint::default(), SeenPages::new());
    let mut accesses = 0;
    let mut chunk: Vec<Access> = Vec::with_capacity(CHUNK);
    while stream.fill(&mut chunk, CHUNK)? > 0 {
        if said.is_none() {
            counted.count(&chunk, &mut seen);
        }
        let is_kept = packer.pack(&chunk);
        if !is_kept && (said.is_some() || !counts) {
            break;
        }
        accesses += chunk.len() as u64;
        removals.extend(stream.take_removals());
        chunk.clear();
        progress(accesses);
    }
    removals.extend(stream.take_removals());
    Ok(Loaded {
        footprint: said.unwrap_or(counted),
        accesses: None,
        has_neighbours,
        requests: stream.requests(),
        removals: removals.into(),
    })
}
