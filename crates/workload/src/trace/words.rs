//! The ground truth's words: u32 little-endian, bit 31 write, bits 30..28 object, bits 27..0 page.

use super::error::TraceError;
use super::record::{Record, RecordReader, Target};
use super::source::Source;

pub(super) struct Words {
    source: Source,
}

impl Words {
    pub(super) fn new(source: Source) -> Words {
        Words { source }
    }
}

impl RecordReader for Words {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let mut bytes = [0; 4];
        if !self.source.read_record(&mut bytes)? {
            return Ok(None);
        }
        self.source.count_records(1);
        let word = u32::from_le_bytes(bytes);
        Ok(Some(Record {
            object: (word >> 28) & 7,
            target: Target::Place((word & ((1 << 28) - 1)).into()),
            pages: 1,
            is_write: word >> 31 != 0,
            time: None,
            bytes: 0,
        }))
    }

    fn source(&self) -> &Source {
        &self.source
    }
}
