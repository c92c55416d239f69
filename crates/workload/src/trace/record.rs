//! A record of a foreign format, before it is known which pages it means.

use super::column::Column;
use super::error::TraceError;
use super::requests::Requests;
use super::source::Source;

/// Tenants that a trace has at most: a column of more values distinguishes something else.
pub const TENANTS_MAX: u32 = 1_000;

/// A request of at most this many bytes is believed; a larger one is a corrupt size, and would replay for hours.
pub(super) const REQUEST_BYTES_MAX: u64 = 4 << 30;

/// Pages that are believed of any trace, and of each of its records, by whether it names an id (4 MiB on average) or a range
/// (64 MiB). Most traces stay far below; beyond, a damaged size makes hours and gigabytes of a few bytes.
const PAGES_BELIEVED: u64 = 1 << 20;
const PAGES_OF_ID: u64 = 1 << 10;
const PAGES_OF_RANGE: u64 = 1 << 14;

/// A record of a trace: what is accessed, when, and whether it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    /// Number of the object, in order of first appearance.
    pub(super) object: u32,
    /// Which pages of it.
    pub(super) target: Target,
    /// How many pages, in order; 0 for a record that accesses none (a sync, an open).
    pub(super) pages: u64,
    pub(super) is_write: bool,
    /// When, in the format's own unit.
    pub(super) time: Option<f64>,
    /// Bytes asked for, where the format says.
    pub(super) bytes: u64,
    /// Pages that leave, from the target's first on; `u64::MAX` for all that the id has.
    pub(super) removes: u64,
}

/// Location of a record's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// From this page of the object on.
    Place(u64),
    /// The pages of an opaque id. Ids that were text are counted apart from those that were numbers.
    Id { id: u64, was_text: bool },
}

impl Record {
    /// Pages that so many records like this one can be believed to have in total.
    pub(super) fn pages_believed(&self, records: u64) -> u64 {
        let each = match self.target {
            Target::Id { .. } => PAGES_OF_ID,
            Target::Place(_) => PAGES_OF_RANGE,
        };
        PAGES_BELIEVED.saturating_add(each.saturating_mul(records))
    }

    /// A record that accesses nothing.
    pub(super) fn without_access(time: Option<f64>) -> Record {
        Record { object: 0, target: Target::Place(0), pages: 0, is_write: false, time, bytes: 0, removes: 0 }
    }

    /// A record that deletes this many pages from the target on.
    pub(super) fn delete(object: u32, target: Target, removes: u64, time: Option<f64>) -> Record {
        Record { object, target, removes, ..Record::without_access(time) }
    }
}

/// Attributes that some records share, in addition to their ids.
#[derive(Default)]
pub(super) struct Run {
    /// Times of the first and the last one, in the format's own unit; times never go back within it.
    pub(super) times: Option<(f64, f64)>,
    /// Bytes asked for.
    pub(super) bytes: u64,
}

/// Reads the records of one format.
pub(super) trait RecordReader: Send {
    /// The next record, `None` at a clean end.
    fn next_record(&mut self) -> Result<Option<Record>, TraceError>;

    /// Appends the ids of the next records as long as each is a read of a single page of an id of the first object, up to `max`. It appends none if
    /// the next record is different or hard to classify; `next_record` then has it. Only for speed.
    fn next_ids(&mut self, _ids: &mut Vec<u64>, _max: usize) -> Run {
        Run::default()
    }

    /// Where the bytes come from, for errors and positions.
    fn source(&self) -> &Source;

    /// Names of the objects seen so far; objects beyond have none.
    fn object_names(&self) -> &[String] {
        &[]
    }

    /// Returns true if adjacent page numbers are not neighbours, as with opaque ids.
    fn has_ids(&self) -> bool {
        false
    }

    /// Adds what it has counted itself: times to live, skipped operations, doubts.
    fn count_in(&self, _requests: &mut Requests) {}

    /// Unit of the records' times.
    fn time_unit(&self) -> &'static str {
        ""
    }

    /// Returns true if the trace says which accesses write; where it does not, all are taken for reads.
    fn tells_writes(&self) -> bool {
        true
    }

    /// Returns true if the records have times.
    fn has_times(&self) -> bool {
        false
    }

    /// Name of an object, for callers that ask for accesses by it; nothing if there is only one.
    fn object_titles(&self) -> &'static [&'static str] {
        &[]
    }

    /// The field that identifies the owner of a record, in a format without text columns.
    fn tenant_title(&self) -> Option<&'static str> {
        None
    }

    /// Has [`tenant`](RecordReader::tenant) say what this column holds, from the first record on; false if there is no such column.
    fn note_tenants(&mut self, _column: &str) -> bool {
        false
    }

    /// Number of the last record's tenant, in order of first appearance.
    fn tenant(&self) -> u32 {
        0
    }

    /// Names of the tenants so far.
    fn tenant_names(&self) -> &[String] {
        &[]
    }

    /// The columns of a text that has them.
    fn columns(&self) -> &[Column] {
        &[]
    }

    /// Warnings about possible other meanings, as far as it is read.
    fn doubts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if the bytes can mean two things, so that a warning may need all of them.
    fn is_ambiguous(&self) -> bool {
        false
    }
}

/// The pages that `bytes` bytes from byte `offset` on touch: the first and how many. No bytes touch no page.
pub(super) fn pages_of_range(offset: u64, bytes: u64, page_size: u64) -> Option<(u64, u64)> {
    let first = offset / page_size;
    if bytes == 0 {
        return Some((first, 0));
    }
    let last = offset.checked_add(bytes - 1)? / page_size;
    Some((first, last - first + 1))
}

/// The pages that lie within `bytes` bytes from byte `offset` on: the first and how many. What is deleted in part stays.
pub(super) fn whole_pages_of_range(offset: u64, bytes: u64, page_size: u64) -> Option<(u64, u64)> {
    let (first, end) = (offset.div_ceil(page_size), offset.checked_add(bytes)? / page_size);
    Some((first, end.saturating_sub(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_range_is_split_at_page_borders() {
        let pages = |offset, bytes| pages_of_range(offset, bytes, 4096).unwrap();
        assert_eq!(pages(0, 1), (0, 1));
        assert_eq!(pages(0, 4096), (0, 1));
        assert_eq!(pages(0, 4097), (0, 2));
        assert_eq!(pages(4095, 1), (0, 1));
        assert_eq!(pages(4095, 2), (0, 2));
        assert_eq!(pages(4096, 4096), (1, 1));
        assert_eq!(pages(512, 69_632), (0, 18));
        assert_eq!(pages(8192, 0), (2, 0));
        assert_eq!(pages_of_range(u64::MAX, 2, 4096), None);
    }

    #[test]
    fn whole_pages_of_range_leave_parts_of_pages_out() {
        assert_eq!(whole_pages_of_range(0, 8192, 4096), Some((0, 2)));
        assert_eq!(whole_pages_of_range(1, 8192, 4096), Some((1, 1)));
        assert_eq!(whole_pages_of_range(1, 4096, 4096), Some((1, 0)));
        assert_eq!(whole_pages_of_range(u64::MAX, 2, 4096), None);
    }
}
