//! From a line of another tool's text to accesses.
//!
//! ```text
//!   events     dd-7 [001] ..... 1.000001: mm_filemap_get_pages: dev=254:0 ino=1f ofs=0-4095
//!   blkparse     8,0  1  7  0.000000000  697  Q  R 223490 + 8 [dd]
//!   lackey      S 1ffefff8a0,8
//!   lines      what the pattern says
//! ```

use std::collections::BTreeMap;

#[cfg(target_os = "linux")]
use pageout_kerneltext::ftrace::parse_line;
use pageout_workload::Access;

use crate::error::{Error, bail, ensure};

const PAGE: u64 = 4096;
/// Pages of a program's memory that stay neighbours. Its address space has holes, which a trace does not.
const REGION: u64 = 512;

/// A reader of one format.
pub(super) enum Source {
    #[cfg(target_os = "linux")]
    Events {
        importer: Box<pageout_record::Importer>,
        tells_reads: bool,
    },
    Blkparse(Objects),
    Lackey {
        regions: BTreeMap<u64, u64>,
    },
    Lines {
        pattern: Vec<Piece>,
        objects: Objects,
        has_operation: bool,
    },
}

/// Objects by name, in order of appearance.
#[derive(Default)]
pub(super) struct Objects {
    by_name: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Objects {
    fn number(&mut self, name: &str) -> Result<u32, Error> {
        if let Some(&number) = self.by_name.get(name) {
            return Ok(number);
        }
        let number = self.names.len() as u32;
        ensure!(number < Access::OBJECTS_MAX, "too many files: a trace can have {}", Access::OBJECTS_MAX);
        self.names.push(name.to_string());
        self.by_name.insert(name.to_string(), number);
        Ok(number)
    }
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Field(String),
}

impl Source {
    #[cfg(target_os = "linux")]
    pub(super) fn events(tells_reads: bool) -> Result<Source, Error> {
        let importer = Box::new(pageout_record::Importer::new(!tells_reads));
        Ok(Source::Events { importer, tells_reads })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn events(_: bool) -> Result<Source, Error> {
        bail!("kernel events can be imported on Linux only")
    }

    pub(super) fn blkparse() -> Source {
        Source::Blkparse(Objects::default())
    }

    pub(super) fn lackey() -> Source {
        Source::Lackey { regions: BTreeMap::new() }
    }

    pub(super) fn lines(pattern: &str) -> Result<Source, Error> {
        let pattern = pieces(pattern)?;
        let has = |name: &str| pattern.contains(&Piece::Field(name.to_string()));
        ensure!(
            has("page") != has("offset"),
            "--pattern: found no {{page}} or {{offset}}, or both; expected one of them\nhelp: for example --pattern '{{op}} {{file}} {{offset}} {{bytes}}'"
        );
        let has_operation = has("op");
        Ok(Source::Lines { pattern, objects: Objects::default(), has_operation })
    }

    /// Reads a line. Returns whether it counts, or none for a line without data by design.
    pub(super) fn line(&mut self, line: &str, out: &mut Vec<Access>) -> Result<Option<bool>, Error> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        match self {
            #[cfg(target_os = "linux")]
            Source::Events { importer, .. } => {
                let Some(head) = parse_line(line.as_bytes()) else { return Ok(Some(false)) };
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (before, unread) = (out.len(), importer.unread);
                importer.take(head.time_ns, head.pid, &text(head.event), &text(head.fields), out);
                if importer.unread > unread {
                    return Ok(Some(false));
                }
                Ok((out.len() > before).then_some(true))
            }
            Source::Blkparse(objects) => blkparse(line, objects, out),
            Source::Lackey { regions } => Ok(lackey(line, regions, out)),
            Source::Lines { pattern, objects, .. } => match fields(pattern, line) {
                Some(found) => of_fields(&found, objects, out).map(Some),
                None => Ok(Some(false)),
            },
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        match self {
            #[cfg(target_os = "linux")]
            Source::Events { importer, .. } => importer.names(),
            Source::Blkparse(objects) | Source::Lines { objects, .. } => objects.names.clone(),
            Source::Lackey { .. } => vec!["memory".to_string()],
        }
    }

    pub(super) fn tells_writes(&self) -> bool {
        !matches!(self, Source::Lines { has_operation: false, .. })
    }

    /// Why there is nothing.
    pub(super) fn nothing(&self) -> &'static str {
        match self {
            #[cfg(target_os = "linux")]
            Source::Events { .. } => "found no event of the page cache; record filemap:mm_filemap_get_pages",
            Source::Blkparse(_) => "found no line of blkparse that queues a request (action Q)",
            Source::Lackey { .. } => "found no access; run valgrind with --tool=lackey --trace-mem=yes",
            Source::Lines { .. } => "no line matches --pattern",
        }
    }

    /// Returns the gaps of the source.
    pub(super) fn remarks(&self) -> Vec<String> {
        let told = match self {
            #[cfg(target_os = "linux")]
            Source::Events { tells_reads: false, .. } => {
                "the events include insertions but no hits: the trace does not cover less memory than the recording had"
            }
            #[cfg(target_os = "linux")]
            Source::Events { .. } => "the events do not include hits on mapped pages and reads with O_DIRECT",
            Source::Blkparse(_) => {
                "disk requests do not include hits in the page cache: the trace does not cover less memory than the recording had"
            }
            Source::Lackey { .. } => {
                "addresses are numbered by regions of 2 MiB in order of their first access; fetched instructions count as reads"
            }
            Source::Lines { has_operation: false, .. } => {
                "the lines do not mark writes: all accesses are treated as reads"
            }
            Source::Lines { .. } => return Vec::new(),
        };
        vec![told.to_string()]
    }
}

fn push(object: u32, first: u64, last: u64, write: bool, out: &mut Vec<Access>) -> bool {
    // A request of more than 4 GiB is a damaged size.
    if last >= Access::PAGES_MAX || last - first >= 1 << 20 {
        return false;
    }
    out.extend((first..=last).map(|page| Access::new(object, page, write)));
    true
}

fn blkparse(line: &str, objects: &mut Objects, out: &mut Vec<Access>) -> Result<Option<bool>, Error> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [device, _, _, _, _, action, kind, rest @ ..] = &words[..] else { return Ok(Some(false)) };
    let is_device = device
        .split_once(',')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok());
    if !is_device {
        // The summary at its end.
        return Ok(None);
    }
    let is_data = kind.contains('R') || kind.contains('W');
    if *action != "Q" || !is_data {
        return Ok(None);
    }
    let [sector, "+", sectors, ..] = rest else { return Ok(Some(false)) };
    let (Ok(sector), Ok(sectors)) = (sector.parse::<u64>(), sectors.parse::<u64>()) else {
        return Ok(Some(false));
    };
    if sectors == 0 {
        return Ok(None);
    }
    let Some(last) = sector.checked_add(sectors - 1) else { return Ok(Some(false)) };
    let object = objects.number(device)?;
    Ok(Some(push(object, sector / 8, last / 8, kind.contains('W'), out)))
}

fn lackey(line: &str, regions: &mut BTreeMap<u64, u64>, out: &mut Vec<Access>) -> Option<bool> {
    // Valgrind's own words.
    if line.starts_with("==") {
        return None;
    }
    let (kind, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let write = match kind {
        "I" | "L" => false,
        "S" | "M" => true,
        _ => return Some(false),
    };
    let place = rest.trim().split_once(',').and_then(|(address, bytes)| {
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).ok()?;
        Some((address, address.checked_add(bytes.parse::<u64>().ok()?.max(1) - 1)?))
    });
    let Some((from, to)) = place.filter(|(from, to)| to - from < 1 << 20) else { return Some(false) };
    for page in from / PAGE..=to / PAGE {
        let next = regions.len() as u64;
        let region = *regions.entry(page / REGION).or_insert(next);
        out.push(Access::new(0, region * REGION + page % REGION, write));
    }
    Some(true)
}

/// The pieces of a pattern. Errors: a field that is not known, or two without text between them.
fn pieces(pattern: &str) -> Result<Vec<Piece>, Error> {
    const FIELDS: [&str; 7] = ["file", "page", "offset", "bytes", "op", "pid", "time"];
    let (mut pieces, mut rest) = (Vec::new(), pattern);
    while let Some(at) = rest.find('{') {
        let Some(end) = rest[at..].find('}') else { bail!("--pattern {pattern}: missing `}}`") };
        let name = &rest[at + 1..at + end];
        ensure!(
            FIELDS.contains(&name),
            "--pattern {pattern}: unknown field `{name}`; known: {}",
            FIELDS.join(", ")
        );
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_string()));
        } else if matches!(pieces.last(), Some(Piece::Field(_))) {
            bail!("--pattern {pattern}: two fields need text between them");
        }
        pieces.push(Piece::Field(name.to_string()));
        rest = &rest[at + end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_string()));
    }
    Ok(pieces)
}

/// The fields of a line; none if it has not the pattern's form.
fn fields<'a>(pattern: &'a [Piece], line: &'a str) -> Option<BTreeMap<&'a str, &'a str>> {
    let (mut found, mut rest) = (BTreeMap::new(), line);
    for (at, piece) in pattern.iter().enumerate() {
        match piece {
            Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
            Piece::Field(name) => {
                let end = match pattern.get(at + 1) {
                    Some(Piece::Text(text)) => rest.find(text.as_str())?,
                    _ => rest.len(),
                };
                found.insert(name.as_str(), rest[..end].trim());
                rest = &rest[end..];
            }
        }
    }
    Some(found)
}

fn of_fields(
    found: &BTreeMap<&str, &str>,
    objects: &mut Objects,
    out: &mut Vec<Access>,
) -> Result<bool, Error> {
    let number = |name: &str| {
        let text = found.get(name)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse::<u64>().ok(),
        }
    };
    if found.contains_key("bytes") && number("bytes").is_none() {
        return Ok(false);
    }
    let bytes = number("bytes").unwrap_or(1).max(1);
    let range = match (number("page"), number("offset")) {
        (Some(page), _) => page.checked_add(bytes.div_ceil(PAGE) - 1).map(|last| (page, last)),
        (None, Some(offset)) => offset.checked_add(bytes - 1).map(|last| (offset / PAGE, last / PAGE)),
        (None, None) => None,
    };
    let Some((first, last)) = range else { return Ok(false) };
    let write = found.get("op").is_some_and(|op| op.starts_with(['w', 'W']));
    let object = objects.number(found.get("file").copied().unwrap_or("file"))?;
    Ok(push(object, first, last, write, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Object, page, and whether it is written.
    type Told = (u32, u64, bool);

    fn told(mut source: Source, text: &str) -> (Vec<Told>, Vec<Option<bool>>) {
        let mut out = Vec::new();
        let read = text.lines().map(|line| source.line(line, &mut out).unwrap()).collect();
        (out.iter().map(|access| (access.object(), access.page(), access.is_write())).collect(), read)
    }

    #[test]
    fn requests_are_told_once_where_they_are_queued() {
        let text = "  8,0    1        7     0.000000000   697  Q   R 223488 + 16 [dd]\n\
                    \x20 8,0    1        8     0.000000100   697  D   R 223488 + 16 [dd]\n\
                    \x20 8,16   1        9     0.000000200   697  Q  WS 8 + 8 [dd]\n\
                    \x20 8,0    1       10     0.000000300   697  Q   R broken [dd]\nCPU1 (8,0):\n Reads Queued: 1\n";
        let (pages, read) = told(Source::blkparse(), text);
        assert_eq!(pages, [(0, 27_936, false), (0, 27_937, false), (1, 1, true)]);
        assert_eq!(read[..4], [Some(true), None, Some(true), Some(false)]);
    }

    #[test]
    fn memory_keeps_neighbours_and_leaves_holes_out() {
        let text = "==1== Lackey\nI  04016ab0,3\n S 1ffefff8a0,8\n M 04016fff,2\n L zz,8\n";
        let (pages, read) = told(Source::lackey(), text);
        let (code, stack) = (0x4016 % 512, 512 + 0x01ff_efff % 512);
        assert_eq!(pages, [(0, code, false), (0, stack, true), (0, code, true), (0, code + 1, true)]);
        assert_eq!(read, [None, Some(true), Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn lines_are_read_by_their_pattern() {
        let source = Source::lines("{op} {file}:{offset} ({bytes})").unwrap();
        let (pages, read) = told(source, "read a b:4096 (8192)\nwrite c:0x1000 (1)\nread a b:x (1)\nother\n");
        assert_eq!(pages, [(0, 1, false), (0, 2, false), (1, 1, true)]);
        assert_eq!(read, [Some(true), Some(true), Some(false), Some(false)]);
        for bad in ["{file}", "{page}{file}", "{page", "{size} {page}", "{page} {offset}"] {
            assert!(Source::lines(bad).is_err(), "{bad}");
        }
    }
}
