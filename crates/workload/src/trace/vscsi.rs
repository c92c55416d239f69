//! Block traces of virtual disks as VMware's vscsi tracer writes them, both versions: packed little-endian records, as those that CloudPhysics
//! published.
//!
//! ```text
//!   1   32 bytes   u32 serial | u32 bytes | u32 segments | u16 command | u16 version | u64 sector | u64 time (us)
//!   2   40 bytes   u16 command | u16 version | u32 serial | u32 bytes | u32 segments | u64 sector | u64 time (us) | u64 response time
//! ```
//!
//! The upper byte of `version` is 1 or 2 in every record, which distinguishes the versions and finds a file that lost a byte. Commands are SCSI's:
//! those that read or write data access the pages of their range, others none. A request is below the page cache of the virtual machine: what hit
//! there is not in the trace.
//!
//! libCacheSim 0.3.5 (<https://pypi.org/project/libcachesim/>) reads the same requests of such files.

use super::error::TraceError;
use super::options::ReadOptions;
use super::record::{Record, RecordReader, Target, pages_of_range};
use super::source::Source;

const SECTOR: u64 = 512;

pub(super) struct Vscsi {
    source: Source,
    page_size: u64,
    is_second: bool,
}

/// A request as either version tells it.
struct Request {
    command: u16,
    version: u16,
    bytes: u32,
    sector: u64,
    time_us: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("it is two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("it is four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("it is eight bytes"))
}

impl Vscsi {
    /// Errors: its first record is of neither version.
    pub(super) fn new(mut source: Source, options: &ReadOptions) -> Result<Vscsi, TraceError> {
        let start = source.peek(16)?;
        let has = |at: usize, version: u16| start.len() >= at + 2 && u16_at(&start, at) >> 8 == version;
        let is_second = match (has(14, 1), has(2, 2)) {
            // Read as the second, such a record would have more than 16 million segments.
            (true, _) => false,
            (false, true) => true,
            (false, false) => {
                return Err(source.error("its first record matches neither version of a vscsi trace"));
            }
        };
        let page_size = options.page_bytes().into();
        Ok(Vscsi { source, page_size, is_second })
    }

    fn request(&mut self) -> Result<Option<Request>, TraceError> {
        if self.is_second {
            let mut bytes = [0; 40];
            let is_there = self.source.read_record(&mut bytes)?;
            return Ok(is_there.then(|| Request {
                command: u16_at(&bytes, 0),
                version: u16_at(&bytes, 2) >> 8,
                bytes: u32_at(&bytes, 8),
                sector: u64_at(&bytes, 16),
                time_us: u64_at(&bytes, 24),
            }));
        }
        let mut bytes = [0; 32];
        let is_there = self.source.read_record(&mut bytes)?;
        Ok(is_there.then(|| Request {
            command: u16_at(&bytes, 12),
            version: u16_at(&bytes, 14) >> 8,
            bytes: u32_at(&bytes, 4),
            sector: u64_at(&bytes, 16),
            time_us: u64_at(&bytes, 24),
        }))
    }
}

impl RecordReader for Vscsi {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let Some(request) = self.request()? else { return Ok(None) };
        if request.version != 1 + u16::from(self.is_second) {
            return Err(self.source.error("a record of another version: the file has lost or gained bytes"));
        }
        let time = Some(request.time_us as f64);
        // read(6), (10), (12), (16), and write likewise; write and verify.
        let is_write = match request.command {
            0x08 | 0x28 | 0xa8 | 0x88 => false,
            0x0a | 0x2a | 0xaa | 0x8a | 0x2e => true,
            _ => {
                self.source.count_records(1);
                return Ok(Some(Record::without_access(time)));
            }
        };
        let bytes = u64::from(request.bytes);
        let range = request
            .sector
            .checked_mul(SECTOR)
            .and_then(|offset| pages_of_range(offset, bytes, self.page_size));
        let Some((first, pages)) = range else {
            return Err(self.source.error(format!("sector {} exceeds the number range", request.sector)));
        };
        self.source.count_records(1);
        Ok(Some(Record { object: 0, target: Target::Place(first), pages, is_write, time, bytes, removes: 0 }))
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn time_unit(&self) -> &'static str {
        "us"
    }

    fn has_times(&self) -> bool {
        true
    }

    fn doubts(&self) -> Vec<String> {
        vec!["disk requests are below the page cache: its hits are missing, so the trace does not show the effect of less memory than the recorded machine had".to_string()]
    }
}
