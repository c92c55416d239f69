//! Details of accesses: when each was, and whose. A replay in a closed loop asks for neither.
//!
//! *Whose.* A text's column distinguishes tenants, whatever else it is used for: a volume, a process, a user. Other formats have objects.
//!
//! *Times.* They are counted from the first access on, in nanoseconds. If they go back, an access has the same time as the previous one.

use std::collections::VecDeque;
use std::path::Path;

use super::error::{Place, TraceError};
use super::file_calls::PlacedCall;
use super::open::open_to_look;
use super::options::ReadOptions;
use super::record::TENANTS_MAX;
use super::replay::{Told, TraceReader};
use super::requests::Requests;
use crate::{Access, AccessStream};

/// Accesses that are read at a time.
const CHUNK: usize = 1 << 16;

/// Details of an access besides its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Number of its tenant, in order of first appearance; of objects, the object's.
    pub tenant: u32,
    /// Time of the access; 0 if not requested.
    pub time_ns: u64,
}

/// Reads accesses with their details.
pub struct DetailReader {
    file: String,
    reader: Box<dyn TraceReader>,
    /// Tenants are objects; else what a column holds, if anything.
    by_object: bool,
    clock: Option<Clock>,
    /// Attributes of the records of future accesses; those of the first pages are left.
    told: VecDeque<Told>,
}

/// Turns times into nanoseconds since the first.
struct Clock {
    unit_ns: f64,
    first: Option<f64>,
    latest: u64,
    went_back: u64,
    /// True if any record had a time.
    is_told: bool,
}

impl DetailReader {
    /// Opens a trace: for tenants, which are distinguished `by` a column or by object, and for times. Errors: also that it has neither.
    pub fn open(
        path: &Path,
        options: &ReadOptions,
        by: Option<&str>,
        wants_times: bool,
    ) -> Result<DetailReader, TraceError> {
        let mut reader = open_to_look(path, options)?;
        let file = path.to_string_lossy().into_owned();
        // The error has no place in the file.
        let fail = |reason: String| TraceError::new(&file, None, Place::default(), reason);
        let clock = match wants_times {
            true => Some(Clock::new(reader.time_unit()).map_err(fail)?),
            false => None,
        };
        let titles = reader.object_titles();
        let is_object = |by: &str| titles.iter().any(|title| title.eq_ignore_ascii_case(by));
        // A column is found by its own name first.
        let by_column = reader.keep_told(by);
        let by_object = by.is_some_and(|by| !by_column && is_object(by));
        if let Some(by) = by.filter(|_| !by_column && !by_object) {
            let columns = reader.columns().iter().map(|column| match column.name.as_str() {
                "" => format!("#{}", column.place),
                name => name.to_string(),
            });
            let titles = reader.tenant_title().into_iter().chain(titles.iter().copied()).map(str::to_string);
            let there: Vec<String> = columns.chain(titles).collect();
            let there = match there.is_empty() {
                true => "it has no field for tenants; a CSV can have a column for them".to_string(),
                false => format!("there are {}", there.join(", ")),
            };
            return Err(fail(format!("it has no column `{by}`: {there}")));
        }
        Ok(DetailReader { file, reader, by_object, clock, told: VecDeque::new() })
    }

    /// Appends the next accesses, and as many details; false at the end.
    pub fn read(
        &mut self,
        accesses: &mut Vec<Access>,
        details: &mut Vec<Detail>,
    ) -> Result<bool, TraceError> {
        let before = accesses.len();
        let filled = self.reader.fill(accesses, CHUNK)?;
        self.told.extend(self.reader.take_told());
        for access in &accesses[before..] {
            let told = self.next_told();
            let tenant = if self.by_object { access.object() } else { told.tenant };
            if tenant >= TENANTS_MAX {
                return Err(self.error(format!(
                    "more than {TENANTS_MAX} values: objects of this kind do not identify tenants"
                )));
            }
            let time_ns = self.clock.as_mut().map_or(0, |clock| clock.at(told.time));
            details.push(Detail { tenant, time_ns });
        }
        if filled == 0 && self.clock.as_ref().is_some_and(|clock| !clock.is_told) {
            return Err(self.error("none of its records has a time".to_string()));
        }
        Ok(filled > 0)
    }

    /// Attributes of the record of the next access. Formats without records have none.
    fn next_told(&mut self) -> Told {
        let Some(told) = self.told.front_mut() else { return Told::default() };
        told.pages -= 1;
        let told = *told;
        if told.pages == 0 {
            self.told.pop_front();
        }
        told
    }

    /// The name of a tenant, once it was read.
    pub fn tenant_name(&self, tenant: u32) -> String {
        let names = if self.by_object { self.reader.object_names() } else { self.reader.tenant_names() };
        match names.get(tenant as usize).map(String::as_str) {
            Some("") => "(empty)".to_string(),
            Some(name) => name.to_string(),
            None => format!("object-{tenant}"),
        }
    }

    /// Pages that deletes ended among what was read, each before the access of that number of all tenants.
    pub(super) fn take_removals(&mut self) -> Vec<PlacedCall> {
        self.reader.take_removals()
    }

    /// Returns true if the numbers of its pages are places.
    pub(super) fn has_neighbours(&self) -> bool {
        self.reader.has_neighbours()
    }

    /// What its records said so far besides.
    pub(super) fn requests(&self) -> Option<Requests> {
        self.reader.requests()
    }

    /// Accesses so far whose time was before that of an earlier one.
    pub fn went_back(&self) -> u64 {
        self.clock.as_ref().map_or(0, |clock| clock.went_back)
    }

    fn error(&self, reason: String) -> TraceError {
        TraceError::new(&self.file, None, Place::default(), reason)
    }
}

impl Clock {
    fn new(unit: Option<&'static str>) -> Result<Clock, String> {
        let Some(unit) = unit else {
            return Err("its accesses have no times: .pgt files and page lists do not store them; for a CSV select the column: --read csv.time=NAME"
                .to_string());
        };
        let unit_ns = match unit {
            "s" => 1e9,
            "ms" => 1e6,
            "us" => 1e3,
            "x 100 ns" => 100.0,
            "ns" => 1.0,
            _ => {
                return Err(
                    "the unit of its times is unknown: --read csv.time_unit=s, or ms, us, ns".to_string()
                );
            }
        };
        Ok(Clock { unit_ns, first: None, latest: 0, went_back: 0, is_told: false })
    }

    /// A record without a time is of the time of the one before.
    fn at(&mut self, time: Option<f64>) -> u64 {
        self.is_told |= time.is_some();
        let Some(time) = time else { return self.latest };
        let first = *self.first.get_or_insert(time);
        let since = ((time - first) * self.unit_ns).round();
        // A value above the number range becomes its maximum.
        let since = if since < 0.0 { 0 } else { since as u64 };
        self.went_back += u64::from(time < first || since < self.latest);
        self.latest = self.latest.max(since);
        self.latest
    }
}
