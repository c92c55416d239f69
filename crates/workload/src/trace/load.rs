//! A trace read once: what it touches, and its accesses in memory as far as there is room for them.

use std::path::Path;

use super::error::TraceError;
use super::footprint::{Footprint, SeenPages};
use super::open::open;
use super::options::ReadOptions;
use super::packed::{Packed, Packer};
use crate::{Access, AccessStream};

const CHUNK: usize = 1 << 16;

/// A trace that was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What it touches.
    pub footprint: Footprint,
    /// Its accesses; `None` if they are past the budget, and have to be read anew.
    pub accesses: Option<Packed>,
}

/// Reads the trace at `path` to its end, and keeps its accesses if they take no more than `bytes_max`. `progress` is told
/// the accesses read so far.
pub fn load(
    path: &Path,
    options: &ReadOptions,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Loaded, TraceError> {
    let mut packer = Packer::new(bytes_max);
    let footprint = read(path, options, progress, &mut |accesses| {
        packer.pack(accesses);
        true
    })?;
    Ok(Loaded { footprint, accesses: packer.finish() })
}

/// The same, for who has no use for what it touches alone: `None` as soon as the accesses are past the budget.
pub fn load_within(
    path: &Path,
    options: &ReadOptions,
    bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Loaded>, TraceError> {
    let mut packer = Packer::new(bytes_max);
    let footprint = read(path, options, progress, &mut |accesses| packer.pack(accesses))?;
    Ok(packer.finish().map(|accesses| Loaded { footprint, accesses: Some(accesses) }))
}

/// Reads to the end, or until `take` says that it is enough. What has been read touches what is returned.
fn read(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(&[Access]) -> bool,
) -> Result<Footprint, TraceError> {
    let mut stream = open(path, options)?;
    let (mut footprint, mut seen) = (Footprint::default(), SeenPages::new());
    let mut chunk: Vec<Access> = Vec::with_capacity(CHUNK);
    while stream.fill(&mut chunk, CHUNK)? > 0 {
        footprint.count(&chunk, &mut seen);
        if !take(&chunk) {
            break;
        }
        chunk.clear();
        progress(footprint.accesses);
    }
    Ok(footprint)
}
