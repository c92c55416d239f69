//! From records of a trace to accesses: one access a page of the record, under the number that the page has for the simulator.

use super::column::Column;
use super::error::TraceError;
use super::file_calls::{FileCall, PlacedCall};
use super::format::Format;
use super::intern::{Interner, OriginalId, PageName};
use super::options::{PageIds, ReadOptions};
use super::record::{Record, RecordReader, Target};
use super::requests::Requests;
use crate::{Access, AccessStream};

/// A stream that comes from a trace and can say more about it than its accesses.
pub(super) trait TraceReader: AccessStream {
    fn format(&self) -> Format;

    /// Bytes of a page of the trace.
    fn page_size(&self) -> u32;

    /// Records read so far.
    fn records_read(&self) -> u64;

    /// Bytes asked for so far, where the format says.
    fn request_bytes(&self) -> Option<u64>;

    /// First and last time so far and their unit, where the format has times.
    fn time_span(&self) -> Option<(f64, f64, &'static str)>;

    /// Names of the objects seen so far; objects beyond have none.
    fn object_names(&self) -> &[String];

    /// Original names of the pages, by object, if they must be kept.
    fn originals(&self) -> Option<&[Vec<OriginalId>]>;

    /// Returns true if the trace says which accesses write; where it does not, all are taken for reads.
    fn tells_writes(&self) -> bool;

    /// Returns true if the numbers of its pages are places, so that adjacent numbers are neighbours.
    fn has_neighbours(&self) -> bool;

    /// Records so far that access no page, such as syncs and trims; `None` where that is not known any more.
    fn records_without_access(&self) -> Option<u64>;

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

    /// The records' times are in this unit, where they have times.
    fn time_unit(&self) -> Option<&'static str> {
        None
    }

    /// Name of an object, for callers that ask for accesses by it; nothing if there is only one.
    fn object_titles(&self) -> &'static [&'static str] {
        &[]
    }

    /// The field that identifies the owner of a record, in a format without text columns.
    fn tenant_title(&self) -> Option<&'static str> {
        None
    }

    /// From now on it keeps what each record says besides its pages, with what this column holds; false if there is no such column.
    fn keep_told(&mut self, _column: Option<&str>) -> bool {
        false
    }

    /// What the records that were read since say, in their order, of those that access a page.
    fn take_told(&mut self) -> Vec<Told> {
        Vec::new()
    }

    /// Names of what the column held so far.
    fn tenant_names(&self) -> &[String] {
        &[]
    }
}

/// What a record says besides its pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// The number of pages.
    pub(super) pages: u64,
    /// When it was, in the format's own unit.
    pub(super) time: Option<f64>,
    /// Number of what the column that was asked for holds.
    pub(super) tenant: u32,
}

/// Replays the records of a foreign format.
pub(super) struct Replay<R> {
    reader: R,
    page_size: u32,
    page_ids: PageIds,
    interner: Interner,
    keep_ids: bool,
    /// What is left of the record being replayed: its next page and how many more.
    current: Record,
    next_index: u64,
    /// Ids of records that are a page each.
    ids: Vec<u64>,
    /// Pages being numbered, and which of the accesses theirs are.
    names: Vec<PageName>,
    places: Vec<usize>,
    numbers: Vec<u64>,
    request_bytes: u64,
    /// Pages of all records so far.
    pages: u64,
    /// Records so far that have none.
    without_access: u64,
    /// Records so far that access pages; one that counts for several is several.
    requests: u64,
    /// Records so far that delete what they name.
    deletes: u64,
    /// The delete that was read last and is still to be made.
    deleting: Option<Record>,
    /// Pages that deletes have ended and that were not taken yet, and their number.
    removals: Vec<PlacedCall>,
    pages_deleted: u64,
    /// Accesses handed out.
    accesses: u64,
    implausible_ok: bool,
    time_span: Option<(f64, f64)>,
    /// What records say besides, where it is kept.
    told: Option<Vec<Told>>,
}

impl<R: RecordReader> Replay<R> {
    pub(super) fn new(reader: R, options: &ReadOptions) -> Replay<R> {
        Replay {
            reader,
            page_size: options.page_bytes(),
            page_ids: options.page_ids,
            interner: Interner::new(options.keep_ids),
            keep_ids: options.keep_ids,
            current: Record::without_access(None),
            next_index: 0,
            ids: Vec::new(),
            names: Vec::new(),
            places: Vec::new(),
            numbers: Vec::new(),
            request_bytes: 0,
            pages: 0,
            without_access: 0,
            requests: 0,
            deletes: 0,
            deleting: None,
            removals: Vec::new(),
            pages_deleted: 0,
            accesses: 0,
            implausible_ok: options.implausible_ok,
            time_span: None,
            told: None,
        }
    }

    /// Takes the next record; `false` at the end.
    #[inline]
    fn advance(&mut self) -> Result<bool, TraceError> {
        let Some(record) = self.reader.next_record()? else { return Ok(false) };
        if let Some(time) = record.time {
            self.note_time(time);
        }
        self.request_bytes += record.bytes;
        self.pages += record.pages;
        self.without_access += u64::from(record.pages == 0);
        self.requests += u64::from(record.pages > 0);
        if record.removes > 0 {
            self.deletes += 1;
            self.deleting = Some(record);
        }
        if !self.implausible_ok {
            self.check_pages(record)?;
        }
        if let Some(told) = &mut self.told
            && record.pages > 0
        {
            told.push(Told { pages: record.pages, time: record.time, tenant: self.reader.tenant() });
        }
        self.current = record;
        self.next_index = 0;
        Ok(true)
    }

    #[inline]
    fn note_time(&mut self, time: f64) {
        let (first, last) = self.time_span.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
        if time < first || time > last {
            self.time_span = Some((first.min(time), last.max(time)));
        }
    }

    /// Refuses sizes that are hardly any, before their pages are counted one by one.
    #[inline]
    fn check_pages(&self, record: Record) -> Result<(), TraceError> {
        match self.pages <= record.pages_believed(self.reader.source().records_read()) {
            true => Ok(()),
            false => Err(self.unbelieved(record)),
        }
    }

    #[cold]
    fn unbelieved(&self, record: Record) -> TraceError {
        let source = self.reader.source();
        let (pages, records) = (self.pages, source.records_read());
        let remedy = match record.target {
            Target::Id { .. } => {
                "`ignore_size` makes one page per id, a larger `page_size` makes fewer pages per id"
            }
            Target::Place(_) => "a larger `page_size` makes fewer pages",
        };
        source.error_in_last(format!(
            "the sizes of {records} records make {pages} pages, which is implausible: {remedy}, and the read option `implausible_ok` accepts it"
        ))
    }

    /// What the current record says of its page `index`.
    #[inline]
    fn page(&self, index: u64) -> Result<Page, TraceError> {
        let object = self.current.object;
        let given = match (self.current.target, self.page_ids) {
            (Target::Place(first), PageIds::Dense) => {
                let Some(place) = first.checked_add(index) else {
                    return Err(self.reader.source().error_in_last("the last page exceeds the number range"));
                };
                return Ok(Page::Named(PageName::new(object, place, 0, false)));
            }
            (Target::Id { id, was_text }, PageIds::Auto | PageIds::Dense) => {
                if was_text && self.keep_ids {
                    let reason = "`keep_ids` needs numeric ids, this one is text";
                    return Err(self.reader.source().error_in_last(reason));
                }
                return Ok(Page::Named(PageName::new(object, id, index, was_text)));
            }
            (Target::Id { was_text: true, .. }, PageIds::AsGiven) => {
                let reason = "a text id can't be kept as a page number";
                return Err(self.reader.source().error_in_last(reason));
            }
            (Target::Place(id) | Target::Id { id, .. }, _) => id,
        };
        match given.checked_add(index) {
            Some(page) if page < Access::PAGES_MAX => Ok(Page::Numbered(page)),
            _ => Err(self.reader.source().error_in_last(format!(
                "page number {given} + {index} is not below 2^40; help: set the read option `page_ids = \"dense\"` to renumber pages"
            ))),
        }
    }

    /// Appends up to `max` accesses and returns how many. Pages that are to be numbered are page 0 as yet.
    fn gather(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let start = out.len();
        while out.len() - start < max {
            if self.next_index == self.current.pages {
                if self.gather_ids(out, start + max) {
                    continue;
                }
                // Pages before a delete are numbered first: it ends those that are known.
                if !self.advance()? || self.deleting.is_some() {
                    break;
                }
                continue;
            }
            let page = match self.page(self.next_index)? {
                Page::Numbered(page) => page,
                Page::Named(name) => {
                    self.names.push(name);
                    self.places.push(out.len());
                    0
                }
            };
            out.push(Access::new(self.current.object, page, self.current.is_write));
            self.next_index += 1;
        }
        Ok(out.len() - start)
    }

    /// Appends accesses of records that are a page each, as long as nothing else comes, until there are `until`; says whether there were any.
    #[inline]
    fn gather_ids(&mut self, out: &mut Vec<Access>, until: usize) -> bool {
        if self.page_ids == PageIds::AsGiven {
            return false;
        }
        self.ids.clear();
        let run = self.reader.next_ids(&mut self.ids, until - out.len());
        let count = self.ids.len();
        if let Some((first, last)) = run.times {
            self.note_time(first);
            self.note_time(last);
        }
        self.request_bytes += run.bytes;
        self.pages += count as u64;
        self.requests += count as u64;
        self.names.extend(self.ids.iter().map(|&id| PageName::new(0, id, 0, false)));
        self.places.extend(out.len()..out.len() + count);
        out.extend(std::iter::repeat_n(Access::new(0, 0, false), count));
        count > 0
    }

    /// Ends the pages that a record deletes, before the access that comes next.
    fn delete(&mut self, record: Record) {
        let mut end = |first: u64, end: u64| {
            self.pages_deleted += end - first;
            let (access, object) = (self.accesses, record.object);
            match self.removals.last_mut() {
                Some(PlacedCall { access: of, object: on, call: FileCall::Truncate { end: last, .. } })
                    if (*of, *on, *last) == (access, object, first) =>
                {
                    *last = end;
                }
                _ => {
                    self.removals.push(PlacedCall { access, object, call: FileCall::Truncate { first, end } })
                }
            }
        };
        match (record.target, self.page_ids) {
            (Target::Id { id, .. }, PageIds::AsGiven) => end(id, id + 1),
            (Target::Place(first), PageIds::Auto | PageIds::AsGiven) => {
                let last = first.saturating_add(record.removes).min(Access::PAGES_MAX);
                if first < last {
                    end(first, last);
                }
            }
            (Target::Id { id, was_text }, PageIds::Auto | PageIds::Dense) => {
                // An id's pages are accessed from its first on.
                let known = (0..)
                    .map_while(|at| self.interner.known(&PageName::new(record.object, id, at, was_text)));
                known.for_each(|page| end(page, page + 1));
            }
            (Target::Place(first), PageIds::Dense) => {
                let places = first..first.saturating_add(record.removes);
                let known = places
                    .filter_map(|place| self.interner.known(&PageName::new(record.object, place, 0, false)));
                known.for_each(|page| end(page, page + 1));
            }
        }
    }

    /// Numbers the pages of accesses gathered.
    fn number(&mut self, out: &mut [Access]) -> Result<(), TraceError> {
        if self.interner.number(&self.names, &mut self.numbers).is_none() {
            return Err(self.reader.source().error_in_last("more than 2^32 distinct pages"));
        }
        for ((&place, &page), name) in self.places.iter().zip(&self.numbers).zip(&self.names) {
            out[place] = Access::new(name.object, page, out[place].is_write());
        }
        self.names.clear();
        self.places.clear();
        self.numbers.clear();
        Ok(())
    }
}

/// A page as its record has it.
enum Page {
    /// By its number.
    Numbered(u64),
    /// By a name that is to be numbered.
    Named(PageName),
}

/// Accesses whose pages are numbered at a time: enough to wait for memory together, few enough to stay in the cache.
const BATCH: usize = 256;

impl<R: RecordReader> AccessStream for Replay<R> {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < max {
            let gathered = self.gather(out, BATCH.min(max - filled));
            // Accesses that were read before an error have their numbers.
            self.number(out)?;
            let count = gathered?;
            filled += count;
            self.accesses += count as u64;
            match self.deleting.take() {
                Some(record) => self.delete(record),
                None if count == 0 => break,
                None => {}
            }
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        None
    }

    fn requests(&self) -> Option<Requests> {
        let mut requests = Requests {
            requests: self.requests,
            pages: self.accesses,
            bytes: self.request_bytes,
            has_ids: self.reader.has_ids(),
            deletes: self.deletes,
            pages_deleted: self.pages_deleted,
            ..Requests::default()
        };
        self.reader.count_in(&mut requests);
        Some(requests)
    }

    fn take_removals(&mut self) -> Vec<PlacedCall> {
        std::mem::take(&mut self.removals)
    }
}

impl<R: RecordReader> TraceReader for Replay<R> {
    fn format(&self) -> Format {
        self.reader.source().format().expect("the source learns its format before a reader is made of it")
    }

    fn page_size(&self) -> u32 {
        self.page_size
    }

    fn records_read(&self) -> u64 {
        self.reader.source().records_read()
    }

    fn request_bytes(&self) -> Option<u64> {
        (self.request_bytes > 0).then_some(self.request_bytes)
    }

    fn time_span(&self) -> Option<(f64, f64, &'static str)> {
        self.time_span.map(|(first, last)| (first, last, self.reader.time_unit()))
    }

    fn object_names(&self) -> &[String] {
        self.reader.object_names()
    }

    fn originals(&self) -> Option<&[Vec<OriginalId>]> {
        self.interner.originals()
    }

    fn tells_writes(&self) -> bool {
        self.reader.tells_writes()
    }

    fn has_neighbours(&self) -> bool {
        !self.reader.has_ids() && self.page_ids != PageIds::Dense
    }

    fn records_without_access(&self) -> Option<u64> {
        Some(self.without_access)
    }

    fn columns(&self) -> &[Column] {
        self.reader.columns()
    }

    fn doubts(&self) -> Vec<String> {
        self.reader.doubts()
    }

    fn is_ambiguous(&self) -> bool {
        self.reader.is_ambiguous()
    }

    fn time_unit(&self) -> Option<&'static str> {
        self.reader.has_times().then(|| self.reader.time_unit())
    }

    fn object_titles(&self) -> &'static [&'static str] {
        self.reader.object_titles()
    }

    fn tenant_title(&self) -> Option<&'static str> {
        self.reader.tenant_title()
    }

    fn keep_told(&mut self, column: Option<&str>) -> bool {
        self.told = Some(Vec::new());
        column.is_none_or(|column| self.reader.note_tenants(column))
    }

    fn take_told(&mut self) -> Vec<Told> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn tenant_names(&self) -> &[String] {
        self.reader.tenant_names()
    }
}
