//! Loaded traces: a trace is read once, for its footprint, and its accesses stay in memory as far as there is room for them.

use std::path::Path;

use super::error::TraceError;
use super::footprint::{Footprint, SeenPages};
use super::open::{header, open_ahead};
use super::options::ReadOptions;
use super::packed::{Packed, Packer};
use crate::{Access, AccessStream};

const CHUNK: usize = 1 << 16;

/// A trace that was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The footprint of the trace.
    pub footprint: Footprint,
    /// The trace's accesses; `None` if they are past the budget, and have to be read anew.
    pub accesses: Option<Packed>,
}

/// Reads the trace at `path`, and keeps its accesses if they take no more than `bytes_max`. `progress` is told the accesses
/// read so far. Past that many bytes only what does not say itself what it touches is read to its end.
pub fn load(
    path: &Path,
    options: &ReadOptions,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Loaded, TraceError> {
    let mut packer = Packer::new(bytes_max);
    let footprint = read(path, options, progress, &mut packer, true)?;
    Ok(Loaded { footprint, accesses: packer.finish() })
}

/// Loads a trace for who has no use for its footprint alone: `None` as soon as the accesses are past the budget.
pub fn load_within(
    path: &Path,
    options: &ReadOptions,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Loaded>, TraceError> {
    let mut packer = Packer::new(bytes_max);
    let footprint = read(path, options, progress, &mut packer, false)?;
    Ok(packer.finish().map(|accesses| Loaded { footprint, accesses: Some(accesses) }))
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
    Ok(Loaded { footprint, accesses: packer.finish() })
}

/// Reads to the end, or until the accesses are past the budget. `counts`: also beyond, if else it is not known what they touch.
fn read(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
    packer: &mut Packer,
    counts: bool,
) -> Result<Footprint, TraceError> {
    // A `.pgt` says what it touches. Its reader holds it to that.
    let said = header(path, options)?.and_then(|header| header.footprint);
    let mut stream = open_ahead(path, options)?;
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
        chunk.clear();
        progress(accesses);
    }
    Ok(said.unwrap_or(counted))
}
