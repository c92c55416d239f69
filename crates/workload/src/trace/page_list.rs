//! Bare page numbers, u32 or u64 little-endian: one object, all reads.

use super::error::TraceError;
use super::record::{Record, RecordReader, Target};
use super::source::Source;

pub(super) struct PageList {
    source: Source,
    is_u64: bool,
}

impl PageList {
    pub(super) fn of_u32(source: Source) -> PageList {
        PageList { source, is_u64: false }
    }

    pub(super) fn of_u64(source: Source) -> PageList {
        PageList { source, is_u64: true }
    }
}

impl RecordReader for PageList {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let mut bytes = [0; 8];
        let width = if self.is_u64 { 8 } else { 4 };
        if !self.source.read_record(&mut bytes[..width])? {
            return Ok(None);
        }
        self.source.count_records(1);
        let target = Target::Place(u64::from_le_bytes(bytes));
        Ok(Some(Record { object: 0, target, pages: 1, is_write: false, time: None, bytes: 0 }))
    }

    fn source(&self) -> &Source {
        &self.source
    }
}
