//! Binary page lists: bare page numbers, u32 or u64 little-endian, of one object, and nothing says which accesses write.

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

    fn next_page(&mut self) -> Result<Option<u64>, TraceError> {
        if self.is_u64 {
            let mut page = [0; 8];
            Ok(self.source.read_record(&mut page)?.then(|| u64::from_le_bytes(page)))
        } else {
            let mut page = [0; 4];
            Ok(self.source.read_record(&mut page)?.then(|| u32::from_le_bytes(page).into()))
        }
    }
}

impl RecordReader for PageList {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let Some(page) = self.next_page()? else { return Ok(None) };
        self.source.count_records(1);
        let target = Target::Place(page);
        Ok(Some(Record { object: 0, target, pages: 1, is_write: false, time: None, bytes: 0, removes: 0 }))
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn tells_writes(&self) -> bool {
        false
    }
}
