//! Columns of a CSV trace: the meaning of each, as the read options choose, else by its name.
//!
//! Names are compared by their letters and digits alone, so `obj_id` and `ObjId` are equal. Each column is selected independently: if only the offset
//! is selected, sizes, operations and volumes are still found by their names. The container of a place matters most, since without it pages of
//! different volumes would become one. So a column that is left out, but has a name like an id, is reported.
//!
//! **Units.** An offset and a size that are in different units show in their values: [`Units`] looks at all of them.
//!
//! **Sectors.** Columns with names of sector numbers (`lba`, `blkno`) count 512 bytes, as in Linux, in DiskSim (www.pdl.cmu.edu/DiskSim) and in the
//! block traces of SNIA's repository (iotta.snia.org). Only the name suggests it, so it is reported as a guess.

use super::super::column::{Column, ColumnUse};
use super::super::options::CsvOptions;
use super::line::FIELDS_MAX;
use super::published::is_number;

/// Names that are understood without being told, by what they hold.
const USUAL_TIME: &[&str] = &["time", "timestamp", "ts", "clocktime"];
const USUAL_ID: &[&str] = &[
    "id",
    "objid",
    "objectid",
    "key",
    "cachekey",
    "anonymizedkey",
    "hash",
    "keyhash",
    "objhash",
    "objecthash",
    "url",
    "urlhash",
    "block",
];
const USUAL_PAGE: &[&str] = &["page", "pageid", "pagenumber"];
const USUAL_OFFSET: &[&str] = &["offset", "byteoffset", "address"];
const USUAL_SIZE: &[&str] =
    &["size", "objsize", "iosize", "length", "len", "bytes", "nbytes", "reqsize", "requestsize", "sizebytes"];
const USUAL_OP: &[&str] =
    &["op", "operation", "opcode", "type", "iotype", "rw", "rwbs", "rwflag", "optype", "readwrite"];

/// Requests that a line stands for.
const USUAL_COUNT: &[&str] = &["opcount", "opscount", "numops", "nops", "repeat", "repeats", "repeatcount"];
/// Names that may say so, and may say something else.
const LIKE_COUNT: &[&str] = &[
    "count",
    "counts",
    "cnt",
    "freq",
    "frequency",
    "weight",
    "hits",
    "times",
    "requests",
    "requestcount",
    "reqcount",
    "numrequests",
    "nrequests",
    "accesses",
    "accesscount",
    "multiplicity",
    "ops",
    "occurrences",
    "samples",
];
const USUAL_TTL: &[&str] = &[
    "ttl",
    "ttls",
    "ttlsec",
    "ttlseconds",
    "timetolive",
    "exptime",
    "expiry",
    "expiration",
    "expires",
    "lifetime",
];

/// Offsets and sizes that are counted in sectors.
const SECTOR: u64 = 512;
const USUAL_SECTOR: &[&str] = &[
    "lba",
    "lbn",
    "sector",
    "sectorno",
    "sectornumber",
    "startsector",
    "startlba",
    "lbastart",
    "blkno",
    "blknr",
    "blocknumber",
    "blockno",
    "blocknr",
];
const USUAL_SECTORS: &[&str] =
    &["sectors", "nsectors", "nrsectors", "numsectors", "sectorcount", "bcount", "blkcount", "nblocks"];

/// What a place can be within. Each is known alone and with the endings below.
const CONTAINERS: &[&str] = &[
    "object",
    "volume",
    "vol",
    "device",
    "dev",
    "disk",
    "drive",
    "lun",
    "asu",
    "partition",
    "namespace",
    "nsid",
    "host",
    "server",
    "machine",
    "vm",
    "file",
    "path",
    "inode",
    "ino",
];
const ENDINGS: &[&str] = &["", "id", "no", "nr", "num", "number", "name"];

/// A device in two columns, as Linux numbers them: neither tells anything without the other.
const DEVICE_NUMBER: [&[&str]; 2] =
    [&["major", "majornumber", "majordevicenumber"], &["minor", "minornumber", "minordevicenumber"]];

/// Last words of names that identify objects.
const ID_WORDS: &[&str] =
    &["id", "ids", "uuid", "guid", "key", "name", "number", "num", "no", "nr", "hash", "handle", "fd", "ip"];
/// Names that would be taken for ids, of what accesses rather than of what is accessed.
const NO_IDS: &[&str] = &[
    "pid",
    "ppid",
    "tid",
    "tgid",
    "uid",
    "gid",
    "processid",
    "processname",
    "threadid",
    "cpuid",
    "coreid",
    "requestid",
    "requestnumber",
    "reqid",
    "ioid",
    "seqno",
    "sequencenumber",
    "lineno",
    "linenumber",
];

/// Indices of the columns that are read.
pub(super) struct Columns {
    pub(super) time: Option<usize>,
    pub(super) objects: Vec<usize>,
    pub(super) place: PlaceColumn,
    pub(super) offset_unit: u64,
    pub(super) size: Option<usize>,
    /// A second size, to be added to the first.
    pub(super) more_size: Option<usize>,
    pub(super) size_unit: u64,
    pub(super) op: Option<usize>,
    pub(super) count: Option<usize>,
    pub(super) ttl: Option<usize>,
    /// One more than the last column used.
    pub(super) needed: usize,
}

pub(super) enum PlaceColumn {
    Id(usize),
    Page(usize),
    Offset(usize),
}

impl Columns {
    /// The columns of a line by what they hold; exactly one of `columns` holds a place.
    pub(super) fn of(columns: &[Column]) -> Columns {
        let at = |is: fn(ColumnUse) -> bool| columns.iter().position(|column| is(column.holds));
        let id = at(|holds| holds == ColumnUse::Id).map(PlaceColumn::Id);
        let page = at(|holds| holds == ColumnUse::Page).map(PlaceColumn::Page);
        let offset = at(|holds| matches!(holds, ColumnUse::Offset { .. })).map(PlaceColumn::Offset);
        let size = at(|holds| matches!(holds, ColumnUse::Size { .. }));
        let unit_at = |at: Option<usize>| at.and_then(|at| columns[at].holds.unit()).unwrap_or(1);
        let is_object = |&at: &usize| columns[at].holds == ColumnUse::Object;
        let last_used = columns.iter().rposition(|column| column.holds != ColumnUse::Ignored);
        Columns {
            time: at(|holds| holds == ColumnUse::Time),
            objects: (0..columns.len()).filter(is_object).collect(),
            offset_unit: unit_at(offset.as_ref().map(PlaceColumn::at)),
            place: id.or(page).or(offset).expect("a place was required when the columns were found"),
            size_unit: unit_at(size),
            more_size: columns
                .iter()
                .rposition(|column| matches!(column.holds, ColumnUse::Size { .. }))
                .filter(|&last| Some(last) != size),
            size,
            op: at(|holds| holds == ColumnUse::Op),
            count: at(|holds| holds == ColumnUse::Count),
            ttl: at(|holds| holds == ColumnUse::Ttl),
            needed: last_used.map_or(0, |last| last + 1),
        }
    }
}

impl PlaceColumn {
    fn at(&self) -> usize {
        let (PlaceColumn::Id(at) | PlaceColumn::Page(at) | PlaceColumn::Offset(at)) = self;
        *at
    }
}

/// Finds what each of `count` columns holds. `header` has their names; it is empty where no line names them.
pub(super) fn find(header: &[String], count: usize, options: &CsvOptions) -> Result<Vec<Column>, String> {
    let offset = |unit| ColumnUse::Offset { unit: options.offset_unit.unwrap_or(unit) };
    let size = |unit| ColumnUse::Size { unit: options.size_unit.unwrap_or(unit) };
    let mut found = Found { header, uses: vec![ColumnUse::Ignored; count.max(header.len())] };
    for (choice, holds) in
        [(&options.id, ColumnUse::Id), (&options.page, ColumnUse::Page), (&options.offset, offset(1))]
    {
        found.choose(choice.as_deref(), holds)?;
    }
    if found.places().is_empty() {
        for (choice, names, holds) in [
            (&options.id, USUAL_ID, ColumnUse::Id),
            (&options.page, USUAL_PAGE, ColumnUse::Page),
            (&options.offset, USUAL_OFFSET, offset(1)),
            (&options.offset, USUAL_SECTOR, offset(SECTOR)),
        ] {
            if choice.is_none() {
                found.take_usual(names, holds)?;
            }
        }
    }
    let places = found.places();
    if places.len() != 1 {
        let names = if header.is_empty() { "none".to_string() } else { header.join(", ") };
        let got = match places.len() {
            0 => "0".to_string(),
            count => format!(
                "{count}: {}",
                places.iter().map(|&at| found.called(at)).collect::<Vec<_>>().join(", ")
            ),
        };
        return Err(format!(
            "exactly one column must be the `id`, the `page` or the `offset`, got {got}; select it by the read option `csv.id`, `csv.page` or `csv.offset` (columns named in the header: {names})"
        ));
    }
    for (choice, names, holds) in [
        (&options.time, USUAL_TIME, ColumnUse::Time),
        (&options.size, USUAL_SIZE, size(1)),
        (&options.op, USUAL_OP, ColumnUse::Op),
        (&options.count, USUAL_COUNT, ColumnUse::Count),
        (&options.ttl, USUAL_TTL, ColumnUse::Ttl),
    ] {
        if !found.choose(choice.as_deref(), holds)? && choice.is_none() {
            found.take_usual(names, holds)?;
        }
    }
    if options.size.is_none() && !found.uses.contains(&size(1)) {
        found.take_usual(USUAL_SECTORS, size(SECTOR))?;
    }
    match &options.object {
        Some(chosen) => {
            for name in &chosen.0 {
                found.choose(Some(name), ColumnUse::Object)?;
            }
        }
        None => found.take_containers()?,
    }
    found.count_sectors(options);
    let named = |(at, holds): (usize, ColumnUse)| Column {
        place: at + 1,
        name: header.get(at).cloned().unwrap_or_default(),
        holds,
    };
    Ok(found.uses.into_iter().enumerate().map(named).collect())
}

struct Found<'a> {
    header: &'a [String],
    uses: Vec<ColumnUse>,
}

impl Found<'_> {
    /// Columns that say which pages.
    fn places(&self) -> Vec<usize> {
        let is_place = |holds| matches!(holds, ColumnUse::Id | ColumnUse::Page | ColumnUse::Offset { .. });
        (0..self.uses.len()).filter(|&at| is_place(self.uses[at])).collect()
    }

    fn called(&self, at: usize) -> String {
        self.header.get(at).map_or_else(|| format!("#{}", at + 1), |name| format!("`{name}`"))
    }

    /// Columns that are chosen and called like sectors count them, unless the unit is chosen, too.
    fn count_sectors(&mut self, options: &CsvOptions) {
        for (holds, name) in self.uses.iter_mut().zip(self.header) {
            let name = plain(name);
            match holds {
                ColumnUse::Offset { unit }
                    if options.offset_unit.is_none() && USUAL_SECTOR.contains(&name.as_str()) =>
                {
                    *unit = SECTOR;
                }
                ColumnUse::Size { unit }
                    if options.size_unit.is_none() && USUAL_SECTORS.contains(&name.as_str()) =>
                {
                    *unit = SECTOR;
                }
                _ => {}
            }
        }
    }

    /// Gives the column that was chosen its use; `false` if none was.
    fn choose(&mut self, chosen: Option<&str>, holds: ColumnUse) -> Result<bool, String> {
        // An empty name says that there is none.
        let Some(name) = chosen.filter(|name| !name.trim().is_empty()) else { return Ok(false) };
        let at = find_chosen(self.header, name)?;
        if at >= self.uses.len() {
            self.uses.resize(at + 1, ColumnUse::Ignored);
        }
        self.set(at, holds)?;
        Ok(true)
    }

    /// Gives the first unused column of such a name its use; `false` if there is none.
    fn take_usual(&mut self, names: &[&str], holds: ColumnUse) -> Result<bool, String> {
        let is_free = |at: &usize| self.uses[*at] == ColumnUse::Ignored;
        let is_usual = |at: &usize| names.contains(&plain(&self.header[*at]).as_str());
        let Some(at) = (0..self.header.len()).filter(is_free).find(is_usual) else { return Ok(false) };
        self.set(the_only(self.header, at)?, holds)?;
        Ok(true)
    }

    /// Makes objects of the unused columns that identify the container of a place.
    fn take_containers(&mut self) -> Result<(), String> {
        let names: Vec<String> = self.header.iter().map(|name| plain(name)).collect();
        let numbers = DEVICE_NUMBER.map(|half| names.iter().position(|name| half.contains(&name.as_str())));
        let is_number = |at: usize| numbers.iter().all(Option::is_some) && numbers.contains(&Some(at));
        for (at, name) in names.iter().enumerate() {
            let is_taken = is_container(name) || is_number(at);
            if is_taken && self.uses[at] == ColumnUse::Ignored {
                self.set(the_only(self.header, at)?, ColumnUse::Object)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, at: usize, holds: ColumnUse) -> Result<(), String> {
        match self.uses[at] {
            ColumnUse::Ignored => self.uses[at] = holds,
            other => {
                let (first, second) = (other.name(), holds.name());
                return Err(format!("column #{} is selected as `{first}` and as `{second}`", at + 1));
            }
        }
        Ok(())
    }
}

fn find_chosen(header: &[String], name: &str) -> Result<usize, String> {
    let wanted = name.trim();
    if let Some(column) = header.iter().position(|column| column.eq_ignore_ascii_case(wanted)) {
        return the_only(header, column);
    }
    let by_place = wanted.strip_prefix('#').and_then(|place| place.parse::<usize>().ok());
    match by_place {
        Some(place) if (1..=FIELDS_MAX).contains(&place) => Ok(place - 1),
        _ if header.is_empty() => Err(format!(
            "there is no header line to find column `{name}` in: select it by position, such as `#1`"
        )),
        _ => Err(format!("there is no column `{name}`; the header names {}", header.join(", "))),
    }
}

/// A column found by its name, which must be unique: otherwise it is unknown which one is meant.
fn the_only(header: &[String], column: usize) -> Result<usize, String> {
    let name = &header[column];
    let is_same = |(at, other): (usize, &String)| at != column && other.eq_ignore_ascii_case(name);
    match header.iter().enumerate().position(is_same) {
        None => Ok(column),
        Some(other) => Err(format!(
            "two columns are called `{name}`: select one by position, as `#{}` or `#{}`",
            column.min(other) + 1,
            column.max(other) + 1
        )),
    }
}

/// What to ask about the columns: those that are not read, and units that only a name tells.
pub(super) fn doubts(columns: &[Column], options: &CsvOptions) -> Vec<String> {
    let mut doubts = Vec::new();
    for column in columns {
        let name = &column.name;
        match column.holds {
            ColumnUse::Ignored if options.object.is_none() && is_like_id(name) => doubts.push(format!(
                "the column `{name}` is ignored, but its name suggests volumes or files; if it identifies them, add `{name}` to the read option `csv.object`"
            )),
            ColumnUse::Ignored if options.count.is_none() && LIKE_COUNT.contains(&plain(name).as_str()) => doubts.push(format!(
                "the column `{name}` is ignored, but its name suggests the number of requests per line; if so, set the read option `csv.count` to it"
            )),
            ColumnUse::Offset { unit: SECTOR } if options.offset_unit.is_none() => doubts.push(format!(
                "the column `{name}` is read as a sector number, with {SECTOR} bytes per sector, because of its name; if that is wrong, set the read option `csv.offset_unit` to the bytes of one unit"
            )),
            ColumnUse::Size { unit: SECTOR } if options.size_unit.is_none() => doubts.push(format!(
                "the column `{name}` is read as a number of sectors of {SECTOR} bytes, because of its name; if that is wrong, set the read option `csv.size_unit` to the bytes of one unit"
            )),
            _ => {}
        }
    }
    doubts
}

/// Guesses from the first line of data: the meaning of its operations and sizes. A time that is not a number is ignored.
pub(super) fn doubts_of_data(
    columns: &mut [Column],
    options: &CsvOptions,
    field: impl Fn(usize) -> Option<String>,
) -> Vec<String> {
    let mut doubts = Vec::new();
    for (at, column) in columns.iter_mut().enumerate() {
        let Some(given) = field(at) else { continue };
        let name = if column.name.is_empty() { format!("#{}", at + 1) } else { format!("`{}`", column.name) };
        match column.holds {
            ColumnUse::Time if options.time.is_none() && !is_number(given.as_bytes()) => {
                column.holds = ColumnUse::Ignored;
                doubts.push(format!("the times in column {name} are not numbers and are ignored, such as `{given}`"));
            }
            ColumnUse::Op if options.names_op(&given) => {}
            ColumnUse::Op if matches!(given.as_str(), "0" | "1") => doubts.push(format!(
                "the operations in column {name} are numbers: 0 is interpreted as a read and 1 as a write"
            )),
            ColumnUse::Op if is_number(given.as_bytes()) || given.starts_with("2a") => doubts.push(format!(
                "the operations in column {name} are interpreted as SCSI codes in hexadecimal, such as 28 for a read and 2a for a write"
            )),
            _ => {}
        }
    }
    doubts
}

/// Values of offsets and sizes, and whether their units fit.
#[derive(Default)]
pub(super) struct Units {
    /// Lines with an offset and a size that is not 0.
    lines: u64,
    /// Lines whose offset in bytes, or size, is not a multiple of a sector, and the first such value.
    odd_offsets: u64,
    odd_sizes: u64,
    odd_offset: u64,
    odd_size: u64,
    /// The largest size, as it is written.
    size_max: u64,
    /// Sizes that are as far from the one offset as the next, as it is written: a request behind the other.
    adjacent_in_sectors: u64,
    adjacent: u64,
    last: Option<(u64, u64)>,
}

/// Number of lines after which a guess is possible.
const LINES_MIN: u64 = 2;

impl Units {
    /// Takes an offset and a size in, as they are written.
    pub(super) fn add(&mut self, offset: u64, offset_unit: u64, size: u64, size_unit: u64) {
        if size == 0 {
            return;
        }
        self.lines += 1;
        if !offset.wrapping_mul(offset_unit).is_multiple_of(SECTOR) {
            self.odd_offset = if self.odd_offsets == 0 { offset } else { self.odd_offset };
            self.odd_offsets += 1;
        }
        if !size.wrapping_mul(size_unit).is_multiple_of(SECTOR) {
            self.odd_size = if self.odd_sizes == 0 { size } else { self.odd_size };
            self.odd_sizes += 1;
        }
        self.size_max = self.size_max.max(size);
        if let Some((before, of_before)) = self.last
            && offset > before
        {
            let apart = offset - before;
            self.adjacent += u64::from(apart.checked_mul(offset_unit) == of_before.checked_mul(size_unit));
            let is_sectors =
                offset_unit == 1 && size_unit == 1 && apart.checked_mul(SECTOR) == Some(of_before);
            self.adjacent_in_sectors += u64::from(is_sectors);
        }
        self.last = Some((offset, size));
    }

    /// What does not fit, by the units that were read, with what to do.
    pub(super) fn doubts(&self, offset_unit: u64, size_unit: u64) -> Vec<String> {
        let mut doubts = Vec::new();
        let Units { lines, odd_offsets, odd_sizes, odd_offset, odd_size, size_max, .. } = *self;
        if offset_unit.is_multiple_of(SECTOR) && size_unit == 1 && odd_sizes > 0 {
            doubts.push(format!(
                "offsets are in units of {offset_unit} bytes and sizes in bytes, but {odd_sizes} of {lines} sizes are not a multiple of {SECTOR}, such as {odd_size}: if sizes are in sectors, too, set the read option `csv.size_unit = {SECTOR}`"
            ));
        }
        if size_unit.is_multiple_of(SECTOR) && offset_unit == 1 && odd_offsets > 0 {
            doubts.push(format!(
                "sizes are in units of {size_unit} bytes and offsets in bytes, but {odd_offsets} of {lines} offsets are not a multiple of {SECTOR}, such as {odd_offset}: if offsets are in sectors, too, set the read option `csv.offset_unit = {SECTOR}`"
            ));
        }
        if offset_unit == 1 && size_unit == 1 && lines >= LINES_MIN {
            let follows = self.adjacent_in_sectors > self.adjacent;
            if odd_offsets > 0 && odd_sizes == 0 || follows {
                let why = match follows {
                    true => "requests are adjacent if offsets are sectors".to_string(),
                    false => format!(
                        "{odd_offsets} of {lines} offsets are not a multiple of {SECTOR}, such as {odd_offset}, but all sizes are"
                    ),
                };
                doubts.push(format!(
                    "offsets are interpreted as bytes, but {why}: if offsets are in sectors, set the read option `csv.offset_unit = {SECTOR}`"
                ));
            } else if odd_sizes == lines && odd_offsets == 0 && size_max < SECTOR {
                doubts.push(format!(
                    "sizes are interpreted as bytes, but none is above {size_max} and all offsets are multiples of {SECTOR}: if sizes are in sectors, set the read option `csv.size_unit = {SECTOR}`"
                ));
            } else if odd_sizes == lines && odd_offsets * 2 > lines && size_max < SECTOR {
                doubts.push(format!(
                    "offsets and sizes are interpreted as bytes, but no size is above {size_max}: if both are in sectors or in blocks, set the read options `csv.offset_unit` and `csv.size_unit`, such as to {SECTOR}"
                ));
            }
        }
        doubts
    }
}

/// The first line, if it can't be one that names columns: a column that is used is called like a number.
pub(super) fn is_data(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.holds != ColumnUse::Ignored && is_number(column.name.as_bytes()))
}

/// The letters and digits of a name.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_container(plain: &str) -> bool {
    let ending = |container| plain.strip_prefix(container);
    CONTAINERS.iter().any(|&container| ending(container).is_some_and(|ending| ENDINGS.contains(&ending)))
}

fn is_like_id(name: &str) -> bool {
    let whole = plain(name);
    if NO_IDS.contains(&whole.as_str()) {
        return false;
    }
    let last = last_word(name);
    is_container(&whole)
        || is_container(&last)
        || ID_WORDS.contains(&last.as_str())
        || whole.ends_with("id") && whole != "valid"
}

/// The last word of a name: `number` of `DiskNumber` and `disk_number`.
fn last_word(name: &str) -> String {
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.trim_end().chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_lower {
            word.clear();
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_place_is_within_is_known_by_many_names() {
        for name in [
            "DiskNumber",
            "dev",
            "vol",
            "lun",
            "asu",
            "volume_id",
            "disk_id",
            "Hostname",
            "path",
            "volumeid",
            "device_id",
            "File Name",
            "LUN",
            "VM-ID",
        ] {
            assert!(is_container(&plain(name)), "{name}");
        }
        for name in ["ResponseTime", "latency", "pid", "size", "discard", "time", "development"] {
            assert!(!is_container(&plain(name)), "{name}");
        }
    }

    #[test]
    fn a_name_like_an_id_is_told_from_a_measure() {
        for name in
            ["shard_id", "shardid", "bucketName", "objectHash", "Tenant ID", "host_ip", "src_host", "fd"]
        {
            assert!(is_like_id(name), "{name}");
        }
        for name in
            ["ResponseTime", "latency_ns", "pid", "ProcessName", "ttl", "valid", "cpu", "hits", "file_size"]
        {
            assert!(!is_like_id(name), "{name}");
        }
    }
}
