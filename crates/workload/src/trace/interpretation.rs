//! The interpretation of a trace: how its bytes are understood, told to the user who must believe the result.
//!
//! A trace seldom documents itself. A column left out merges disks. A sector interpreted as a byte shrinks a disk. A number with high bits set is a
//! page or a word. So a reader reports how it has read each column, and its warnings.

use std::path::Path;

use super::column::Column;
use super::error::TraceError;
use super::format::Format;
use super::open::open_to_look;
use super::options::ReadOptions;
use super::replay::TraceReader;

/// Accesses of a text whose units are checked.
const LOOKED_AT: usize = 1 << 12;

/// The interpretation of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Interpretation {
    /// The format it is read as.
    pub format: Format,
    /// Bytes per page: as defined by the trace, or else by the read options.
    pub page_size: u32,
    /// True if it says which accesses write; where it does not, all are taken for reads.
    pub tells_writes: bool,
    /// True if the numbers of its pages are places, so that adjacent numbers are neighbours. Opaque ids have none, nor have renumbered pages.
    pub has_neighbours: bool,
    /// The columns of a text that has them, in their order.
    pub columns: Vec<Column>,
    /// Columns or values that may have been meant otherwise, each with what to do then.
    pub doubts: Vec<String>,
}

/// Returns how the trace at `path` is interpreted. It is read only as far as that needs, which is to its end only if its bytes can mean two things.
pub fn interpretation(path: &Path, options: &ReadOptions) -> Result<Interpretation, TraceError> {
    let mut reader = open_to_look(path, options)?;
    let mut chunk = Vec::new();
    while reader.is_ambiguous() && reader.fill(&mut chunk, 1 << 16)? > 0 {
        chunk.clear();
    }
    if !reader.columns().is_empty() {
        // Units that don't fit show in the values. The next reader reports bytes that can't be read.
        _ = reader.fill(&mut chunk, LOOKED_AT);
    }
    Ok(Interpretation::of(&*reader))
}

impl Interpretation {
    /// What `reader` can say, as far as it has read.
    pub(super) fn of(reader: &dyn TraceReader) -> Interpretation {
        Interpretation {
            format: reader.format(),
            page_size: reader.page_size(),
            tells_writes: reader.tells_writes(),
            has_neighbours: reader.has_neighbours(),
            columns: reader.columns().to_vec(),
            doubts: reader.doubts(),
        }
    }
}
