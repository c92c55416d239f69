//! libCacheSim's oracleGeneral: packed little-endian records of 24 bytes.
//!
//! ```text
//!   u32 time (s)   u64 id   u32 size (bytes)   i64 next access (in records, negative: none)
//! ```
//!
//! An id is opaque: neighbouring ids need not be neighbouring blocks, and in most traces they are not. So all ids live in one object, and an id of
//! `size` bytes is its own pages (id, 0), (id, 1), ..., accessed in order. An id requested with size 0 is still one page. The format has no
//! operation, so all accesses are interpreted as reads. The next-access field is foreknowledge for libCacheSim's own Belady, counted from 0 or from
//! 1; 0 if it was not filled in.
//!
//! Nothing marks the start of a record, so a file that lost or gained a byte reads as well as any other. But then times jump about,
//! and next accesses lie in the past or beyond all reckoning. Both are refused.
//!
//! Source: libCacheSim, `libCacheSim/traceReader/customizedReader/oracle/oracleGeneralBin.h`.

use super::error::TraceError;
use super::options::ReadOptions;
use super::record::{Record, RecordReader, Run, Target};
use super::source::Source;

const RECORD_BYTES: usize = 24;

/// No trace has so many records.
const RECORDS_MAX: i64 = 1 << 40;

/// What stands for no next access, and for an unknown one.
const NO_NEXT: [i64; 4] = [-1, -2, i64::MAX, 0];

pub(super) struct OracleGeneral {
    source: Source,
    page_size: u64,
    ignore_size: bool,
    implausible_ok: bool,
    last_time: u32,
}

/// A record as its bytes have it.
#[derive(Clone, Copy)]
struct Fields {
    time: u32,
    id: u64,
    size: u32,
    next: i64,
}

impl Fields {
    #[inline]
    fn of(bytes: &[u8; RECORD_BYTES]) -> Fields {
        let [t0, t1, t2, t3, i0, i1, i2, i3, i4, i5, i6, i7, s0, s1, s2, s3, next @ ..] = *bytes;
        Fields {
            time: u32::from_le_bytes([t0, t1, t2, t3]),
            id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            size: u32::from_le_bytes([s0, s1, s2, s3]),
            next: i64::from_le_bytes(next),
        }
    }

    /// Returns true if a record is possible after this many others, the last of them at this time.
    #[inline]
    fn is_plausible(self, records_before: u64, last_time: u32) -> bool {
        let is_later = u64::try_from(self.next).is_ok_and(|next| next > records_before);
        self.time >= last_time && (is_later && self.next < RECORDS_MAX || NO_NEXT.contains(&self.next))
    }
}

impl OracleGeneral {
    pub(super) fn new(source: Source, options: &ReadOptions) -> OracleGeneral {
        OracleGeneral {
            source,
            page_size: options.page_bytes().into(),
            ignore_size: options.ignore_size,
            implausible_ok: options.implausible_ok,
            last_time: 0,
        }
    }

    /// Pages of an id of so many bytes.
    #[inline]
    fn pages(&self, size: u32) -> u64 {
        if self.ignore_size { 1 } else { u64::from(size).div_ceil(self.page_size).max(1) }
    }

    /// Why the record being read can hardly be one.
    #[cold]
    fn implausible(&self, Fields { time, next, .. }: Fields) -> TraceError {
        let fault = if time < self.last_time {
            format!("the time goes back from {} s to {time} s", self.last_time)
        } else {
            format!(
                "the next access to its id is given as record {next}, expected a later record, or -1 for none"
            )
        };
        self.source.error(format!(
            "{fault}: the file may have lost or gained bytes, or have another format (the read option `implausible_ok` accepts it)"
        ))
    }
}

impl RecordReader for OracleGeneral {
    #[inline]
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let mut bytes = [0; RECORD_BYTES];
        if !self.source.read_record(&mut bytes)? {
            return Ok(None);
        }
        let fields = Fields::of(&bytes);
        if !self.implausible_ok && !fields.is_plausible(self.source.records_read(), self.last_time) {
            return Err(self.implausible(fields));
        }
        self.last_time = fields.time;
        self.source.count_records(1);
        Ok(Some(Record {
            object: 0,
            target: Target::Id { id: fields.id, was_text: false },
            pages: self.pages(fields.size),
            is_write: false,
            time: Some(fields.time.into()),
            bytes: fields.size.into(),
            removes: 0,
        }))
    }

    fn next_ids(&mut self, ids: &mut Vec<u64>, max: usize) -> Run {
        let (records, _) = self.source.buffered().as_chunks();
        let (mut last_time, mut bytes, before) = (self.last_time, 0, ids.len());
        for (at, record) in (self.source.records_read()..).zip(records.iter().take(max)) {
            let fields = Fields::of(record);
            if !fields.is_plausible(at, last_time) || self.pages(fields.size) != 1 {
                break;
            }
            last_time = fields.time;
            bytes += u64::from(fields.size);
            ids.push(fields.id);
        }
        let count = ids.len() - before;
        let times = records
            .first()
            .filter(|_| count > 0)
            .map(|first| (Fields::of(first).time.into(), last_time.into()));
        self.source.take_records(count, RECORD_BYTES);
        self.last_time = last_time;
        Run { times, bytes }
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn has_ids(&self) -> bool {
        true
    }

    fn tells_writes(&self) -> bool {
        false
    }

    fn time_unit(&self) -> &'static str {
        "s"
    }

    fn has_times(&self) -> bool {
        true
    }
}
