//! What other tools wrote, as a trace to replay.

mod damo; // recordings of DAMON
mod losses; // what a tool says that it lost
mod sources; // from a line to accesses, one reader a format

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use pageout_workload::trace::PgtWriter;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use self::damo::{Recording, Stream};
use self::sources::Source;
use crate::error::{During, Error, bail, ensure};
use crate::watch::{Stage, Watcher};

pub use losses::Losses;

/// The file to import.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The file to read.
    pub from: PathBuf,
    /// The source of the file. Default: events of the kernel.
    pub format: Format,
    /// The pattern of a line, for [`Format::Lines`] alone.
    pub pattern: Option<String>,
    /// The time between two samples of a recording that does not have it, for [`Format::Damo`] alone. Unit: microseconds.
    pub sample_us: Option<u64>,
}

/// Formats of other tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Events of the kernel as text: ftrace, `trace-cmd report`, `perf script`.
    #[default]
    Events,
    /// `blkparse`: requests as they were queued.
    Blkparse,
    /// Valgrind's lackey: every access of a program's memory.
    Lackey,
    /// Lines of a pattern.
    Lines,
    /// `damo record`: what DAMON found of each region.
    Damo,
}

/// The result of an import.
#[derive(Debug)]
pub struct Answer {
    /// Lines that are a record.
    pub records: u64,
    /// Accesses of the trace.
    pub accesses: u64,
    /// Its objects.
    pub objects: usize,
    /// Lines that could not be read, and the first of them with its number.
    pub skipped: Skipped,
    /// The losses that the tool reports.
    pub losses: Losses,
    /// The gaps of the source.
    pub remarks: Vec<String>,
}

/// Lines that could not be read.
#[derive(Debug, Default)]
pub struct Skipped {
    /// The number of lines.
    pub lines: u64,
    /// The first one, with its number from 1.
    pub first: Option<(u64, String)>,
}

/// Reads a file line by line, and writes what it accesses to `out`, as a `.pgt`. Errors: an option that makes no sense; the file can't be read,
/// or none of its lines; the trace can't be written. Lines that can't be read are part of the answer.
pub fn ask(ask: &Ask, out: &mut dyn Write, watcher: &dyn Watcher) -> Result<Answer, Error> {
    if ask.format == Format::Damo {
        return of_damo(ask, out, watcher);
    }
    ensure!(ask.sample_us.is_none(), "--sample-interval: found one, expected --source damo");
    let mut source = source(ask)?;
    let mut writer = PgtWriter::new(out, 4096, source.tells_writes()).map_err(Error::Write)?;
    let bytes = ask.from.metadata().map_or(0, |file| file.len());
    watcher.begin(&Stage::Decoding { path: &ask.from, bytes });
    let (mut accesses, mut records, mut skipped) = (Vec::new(), 0, Skipped::default());
    let mut losses = Losses::default();
    let read = for_each_line(&ask.from, |number, line| {
        let is_read = source.line(line, &mut accesses)?;
        records += u64::from(is_read == Some(true));
        // Lines of a pattern or a format are not reports of a tool, whatever their names are.
        if is_read != Some(true) && losses.add(line) {
            return Ok(());
        }
        if is_read == Some(false) {
            skipped.lines += 1;
            skipped.first.get_or_insert_with(|| (number, line.to_string()));
        }
        watcher.advance(line.len() as u64 + 1);
        if accesses.len() >= 1 << 16 {
            writer.write(&accesses).map_err(Error::Write)?;
            accesses.clear();
        }
        Ok(())
    });
    watcher.end();
    read?;
    writer.write(&accesses).map_err(Error::Write)?;
    if records == 0 {
        let hint = match skipped.first {
            Some((number, line)) => {
                format!("; line {number} is `{}`", line.chars().take(80).collect::<String>())
            }
            None => String::new(),
        };
        let other = other_text(&ask.from).map_or(String::new(), |other| format!("\n{other}"));
        bail!("{}: {}{hint}{other}", ask.from.display(), source.nothing());
    }
    let header = writer.finish(&source.names(), None, records).map_err(Error::Write)?;
    let (accesses, objects, remarks) = (header.accesses, header.objects.len(), source.remarks());
    let answer = Answer { records, accesses, objects, skipped, losses, remarks };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// Makes the trace that stands for a recording of DAMON.
fn of_damo(ask: &Ask, out: &mut dyn Write, watcher: &dyn Watcher) -> Result<Answer, Error> {
    check_pattern(ask)?;
    let Recording { targets, left_out, skipped, losses } = damo::read(&ask.from, ask.sample_us)?;
    let stream = Stream::new(&ask.from.display().to_string(), targets)?;
    watcher.begin(&Stage::Named { what: "making accesses", steps: None });
    let mut writer = PgtWriter::new(out, 4096, false).map_err(Error::Write)?;
    let written = stream.write(|accesses| {
        watcher.advance(accesses.len() as u64);
        writer.write(accesses).map_err(Error::Write)
    });
    watcher.end();
    written?;
    let records = stream.snapshots();
    let header = writer.finish(&stream.names(), None, records).map_err(Error::Write)?;
    let remarks = [left_out.remarks(), stream.remarks()].concat();
    let (accesses, objects) = (header.accesses, header.objects.len());
    let answer = Answer { records, accesses, objects, skipped, losses, remarks };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// Checks that the answer agrees with itself. Errors: the sum that does not.
    pub fn check(&self) -> Result<(), String> {
        if self.skipped.first.is_some() != (self.skipped.lines > 0) {
            return Err("skipped lines without a first one, or a first one without skipped lines".to_string());
        }
        if self.records == 0 {
            return Err("a trace without a record".to_string());
        }
        if self.accesses > 0 && self.objects == 0 {
            return Err("the trace has accesses but no object".to_string());
        }
        Ok(())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = json!({
            "complete": !self.losses.are_there(),
            "lost_events": self.losses.events,
            "uncounted_losses": self.losses.uncounted,
            "records": self.records,
            "accesses": self.accesses,
            "objects": self.objects,
            "lines_skipped": self.skipped.lines,
            "remarks": self.remarks,
        });
        json.serialize(serializer)
    }
}

/// What a file is that is none of another tool's lines, and which command reads it.
fn other_text(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = [0; 16];
    let length = File::open(path).ok()?.read(&mut start).ok()?;
    let path = path.display();
    Some(match &start[..length] {
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => {
            format!(
                "this is a perf.data file\nhelp: convert it to text by `perf script -i {path} > trace.txt`"
            )
        }
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => {
            format!(
                "this is a trace.dat file\nhelp: convert it to text by `trace-cmd report -i {path} > trace.txt`"
            )
        }
        _ => format!(
            "help: `pageout replay {path}` reads access traces (.pgt, .csv, .lis, .oracleGeneral and \
             others); `perf script` and `trace-cmd report` convert their recordings to text"
        ),
    })
}

fn check_pattern(ask: &Ask) -> Result<(), Error> {
    if ask.format != Format::Lines && ask.pattern.is_some() {
        bail!("--pattern: found without --source lines, which it needs\nhelp: add --source lines");
    }
    Ok(())
}

fn source(ask: &Ask) -> Result<Source, Error> {
    check_pattern(ask)?;
    Ok(match ask.format {
        Format::Events => {
            let mut tells_reads = false;
            for_each_line(&ask.from, |_, line| {
                tells_reads |= line.contains("mm_filemap_get_pages");
                Ok(())
            })?;
            Source::events(tells_reads)?
        }
        Format::Blkparse => Source::blkparse(),
        Format::Lackey => Source::lackey(),
        Format::Damo => unreachable!("it is read as a whole"),
        Format::Lines => {
            let pattern = ask.pattern.as_deref().ok_or_else(|| {
                Error::asked(
                    "--source lines: found no --pattern, expected one\nhelp: for example --pattern '{op} {file} {offset} {bytes}'",
                )
            })?;
            Source::lines(pattern)?
        }
    })
}

/// Hands each line to `take`, by its number from 1.
fn for_each_line(path: &Path, mut take: impl FnMut(u64, &str) -> Result<(), Error>) -> Result<(), Error> {
    let file = File::open(path).during(|| format!("cannot read {}", path.display()))?;
    ensure!(
        !path.is_dir(),
        "{}: found a folder, expected a file\nhelp: name the file with the text of one tool",
        path.display()
    );
    let (mut input, mut bytes, mut number) = (BufReader::new(file), Vec::new(), 0);
    loop {
        bytes.clear();
        let length =
            input.read_until(b'\n', &mut bytes).during(|| format!("cannot read {}", path.display()))?;
        if length == 0 {
            return Ok(());
        }
        number += 1;
        take(number, String::from_utf8_lossy(&bytes).trim_end())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that is broken, and what breaks it.
    type Mutant = (&'static str, fn(&mut Answer));

    fn answer(text: &str) -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("lines");
        std::fs::write(&from, text).unwrap();
        let pattern = Some("{file} {page}".to_string());
        ask(&Ask { from, format: Format::Lines, pattern, sample_us: None }, &mut Vec::new(), &()).unwrap()
    }

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        let answer = || answer("a 1\nb 2\nwhat is this\n");
        assert_eq!(answer().check(), Ok(()));
        assert_eq!((answer().records, answer().objects, answer().skipped.lines), (2, 2, 1));
        let mutants: [Mutant; 3] = [
            ("skipped lines without a first one", |answer| answer.skipped.first = None),
            ("a trace without a record", |answer| answer.records = 0),
            ("accesses but no object", |answer| answer.objects = 0),
        ];
        for (sum, mutate) in mutants {
            let mut answer = answer();
            mutate(&mut answer);
            let wrong = answer.check().unwrap_err();
            assert!(wrong.contains(sum), "{sum}: {wrong}");
        }
    }
}
