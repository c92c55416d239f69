//! libCacheSim's `lcs`, versions 1 to 8: a header that says how many records there are, and packed little-endian records.
//!
//! ```text
//!   header   8192 bytes   magic u64 | version u64 | unused u64 | records u64 | ... statistics ... | magic u64
//!   1        24 bytes     u32 time (s)   u64 id   u32 size                                       i64 next access
//!   2        28 bytes     u32 time       u64 id   u32 size   u8 operation   u24 tenant            i64 next access
//!   3        36 bytes     u32 time       u64 id   i64 size   u8 operation   u24 tenant   u32 ttl  i64 next access
//!   4 to 8                as 3, with 1, 2, 4, 8 or 16 features of 32 bits behind
//! ```
//!
//! An id is opaque, as in oracleGeneral: it is its own pages (id, 0), (id, 1), ..., and one of size 0 is one page. All ids are one object, as in
//! libCacheSim; times to live, features and next accesses are ignored, and tenants unless they are requested. Operations exist only from version 2
//! on. A delete of an id accesses nothing, and ends its pages.
//!
//! Layouts are those of the files that libCacheSim 0.3.5 (<https://pypi.org/project/libcachesim/>) writes; its own reader gives the same accesses.

use super::error::TraceError;
use super::format::Format;
use super::intern::Names;
use super::options::ReadOptions;
use super::record::{Record, RecordReader, TENANTS_MAX, Target};
use super::requests::Requests;
use super::source::Source;

const HEADER_BYTES: usize = 8192;
/// Bytes of a record, by version from 1 on.
const RECORD_BYTES: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];

pub(super) struct Lcs {
    source: Source,
    page_size: u64,
    ignore_size: bool,
    version: usize,
    /// Records that the header counts.
    records: u64,
    /// Tenants as they are numbered here, if they are asked for, and that of the last record.
    tenants: Option<Names>,
    tenant: u32,
    /// Records so far with a time to live.
    ttls: u64,
}

impl Lcs {
    pub(super) fn new(mut source: Source, options: &ReadOptions) -> Result<Lcs, TraceError> {
        let mut header = [0; HEADER_BYTES];
        source.read_rest(&mut header)?;
        let word = |at: usize| {
            let bytes = header[at..at + 8].try_into().expect("it is eight bytes");
            u64::from_le_bytes(bytes)
        };
        let magic = Format::Lcs.magic();
        if header[..8] != *magic || header[HEADER_BYTES - 8..] != *magic {
            return Err(source.error("not an lcs file: its header has the wrong start or end"));
        }
        let version = word(8);
        if !(1..=RECORD_BYTES.len() as u64).contains(&version) {
            return Err(source.error(format!(
                "unsupported lcs version: found {version}, expected 1 to {}\nhelp: convert it with libCacheSim",
                RECORD_BYTES.len()
            )));
        }
        Ok(Lcs {
            records: word(24),
            version: version as usize,
            page_size: options.page_bytes().into(),
            ignore_size: options.ignore_size,
            tenants: None,
            tenant: 0,
            ttls: 0,
            source,
        })
    }
}

/// What an operation does, by libCacheSim's number of it.
enum Operation {
    Read,
    Write,
    Delete,
}

impl Operation {
    fn of(number: u8) -> Option<Operation> {
        match number {
            // nop stands in traces that don't say; get, gets and read.
            0 | 1 | 2 | 12 => Some(Operation::Read),
            // set, add, cas, replace, append, prepend; incr, decr; write, update.
            3..=8 | 10 | 11 | 13 | 14 => Some(Operation::Write),
            9 => Some(Operation::Delete),
            _ => None,
        }
    }
}

impl RecordReader for Lcs {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let mut start = [0; 20];
        if !self.source.read_record(&mut start)? {
            let read = self.source.records_read();
            if read < self.records {
                let why = format!(
                    "the file is truncated: its header counts {} records, found {read}",
                    self.records
                );
                return Err(self.source.error(why).help(TraceError::TRUNCATED));
            }
            return Ok(None);
        }
        let mut rest = [0; RECORD_BYTES[7] - 20];
        let rest = &mut rest[..RECORD_BYTES[self.version - 1] - 20];
        self.source.read_rest(rest)?;
        let [t0, t1, t2, t3, i0, i1, i2, i3, i4, i5, i6, i7, s0, s1, s2, s3, more @ ..] = start;
        let time = u32::from_le_bytes([t0, t1, t2, t3]);
        let id = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        let mut size = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
        let [operation, tenant @ ..] = match self.version {
            1 => [0; 4],
            2 => more,
            _ => {
                size |= u64::from(u32::from_le_bytes(more)) << 32;
                let ttl = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]);
                self.ttls += u64::from(ttl > 0 && ttl != u32::MAX);
                [rest[0], rest[1], rest[2], rest[3]]
            }
        };
        if let Some(tenants) = &mut self.tenants {
            let [t0, t1, t2] = tenant;
            let name = u32::from_le_bytes([t0, t1, t2, 0]).to_string();
            let number = tenants.number(name.as_bytes(), TENANTS_MAX);
            self.tenant =
                number.ok_or_else(|| self.source.error(format!("more than {TENANTS_MAX} tenants")))?;
        }
        if size > i64::MAX as u64 {
            return Err(self.source.error("its size is negative"));
        }
        let Some(operation) = Operation::of(operation) else {
            return Err(self.source.error(format!("{operation} is not an operation of libCacheSim")));
        };
        self.source.count_records(1);
        let is_delete = matches!(operation, Operation::Delete);
        let pages = match operation {
            Operation::Delete => 0,
            _ if self.ignore_size => 1,
            _ => size.div_ceil(self.page_size).max(1),
        };
        Ok(Some(Record {
            object: 0,
            target: Target::Id { id, was_text: false },
            pages,
            is_write: matches!(operation, Operation::Write),
            time: Some(time.into()),
            bytes: if is_delete { 0 } else { size },
            removes: if is_delete { u64::MAX } else { 0 },
        }))
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn has_ids(&self) -> bool {
        true
    }

    fn count_in(&self, requests: &mut Requests) {
        requests.ttls += self.ttls;
    }

    fn tells_writes(&self) -> bool {
        self.version > 1
    }

    fn time_unit(&self) -> &'static str {
        "s"
    }

    fn has_times(&self) -> bool {
        true
    }

    fn tenant_title(&self) -> Option<&'static str> {
        (self.version > 1).then_some("tenant")
    }

    fn note_tenants(&mut self, column: &str) -> bool {
        let is_there = self.tenant_title().is_some_and(|title| title.eq_ignore_ascii_case(column));
        self.tenants = is_there.then(Names::listed);
        is_there
    }

    fn tenant(&self) -> u32 {
        self.tenant
    }

    fn tenant_names(&self) -> &[String] {
        self.tenants.as_ref().map_or(&[], Names::names)
    }

    fn doubts(&self) -> Vec<String> {
        let told = "tenants are ignored: an id names the same pages for all tenants";
        if self.version > 1 { vec![told.to_string()] } else { Vec::new() }
    }
}
