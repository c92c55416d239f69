//! From file names to machines: which files are dumps of which machine, and in which order.
//!
//! ```text
//!   web1@2026-11-22T10:00.lru_gen   machine web1, one of its dumps      in order of the file names, digits as numbers
//!   web1.lru_gen                    machine web1
//!   web1/lru_gen                    machine web1: the kernel's own name says nothing
//!   web1/2026-11-22T10:00.lru_gen   machine web1: a time says nothing of the machine either
//!   fleet/                          the machines of all files in it, each by these rules
//!   -                               machine stdin
//! ```
//! So files of different names are different machines, wherever they lie, unless the names are times. A dump itself doesn't say
//! whose it is: group numbers and generations of two machines look alike. Names give the order of dumps. Times of files don't,
//! since copies lose them; nor does the order of arguments, since `find` has none.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::scenario::diagnostic::{Diagnostic, Diagnostics, Excerpt, Origin};
use pageout_kerneltext::lru_gen::{Dump, ParseError, parse};

use crate::error::{During, Error, bail, ensure};

/// What a dump on standard input is called.
const STDIN: &str = "stdin";

/// Longer than the dump of any machine; what is not a dump may have no end.
const LENGTH_MAX: u64 = 1 << 28;

/// A line longer than this is not shown.
const LINE_MAX: usize = 300;

/// A machine with its dumps, the latest last; at least one.
#[derive(Debug)]
pub struct DumpedMachine {
    /// Its name.
    pub name: String,
    /// Its dumps.
    pub dumps: Vec<Reading>,
}

/// One dump and where it came from.
#[derive(Debug)]
pub struct Reading {
    /// The file.
    pub file: String,
    /// The generations in the dump.
    pub dump: Dump,
}

/// A file that was left out.
#[derive(Debug)]
pub struct Skipped {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: String,
}

/// A file to be read.
#[derive(Debug, PartialEq)]
struct Input {
    machine: String,
    path: PathBuf,
}

impl Input {
    /// The name that orders a machine's dumps.
    fn file_name(&self) -> String {
        lossy(self.path.file_name().unwrap_or_default())
    }
}

/// Reads all dumps, of machines that keep at most N generations. Errors: a duplicate file, or one without a machine; an unreadable file or
/// one that is not a dump, unless bad ones are skipped; no file is left.
pub(super) fn read(
    files: &[PathBuf],
    generations_max: usize,
    skip_bad: bool,
) -> Result<(Vec<DumpedMachine>, Vec<Skipped>), Error> {
    let mut inputs = Vec::new();
    let mut known = BTreeSet::new();
    for file in files {
        for input in inputs_of(file)? {
            let path = input.path.canonicalize().unwrap_or_else(|_| input.path.clone());
            ensure!(known.insert(path), "{}: found twice, expected once", input.path.display());
            inputs.push(input);
        }
    }
    inputs.sort_by(|a, b| {
        let by_machine =
            natural(&a.machine).cmp(&natural(&b.machine)).then_with(|| a.machine.cmp(&b.machine));
        by_machine.then_with(|| natural(&a.file_name()).cmp(&natural(&b.file_name())))
    });

    let mut machines: Vec<DumpedMachine> = Vec::new();
    let (mut skipped, mut problems) = (Vec::new(), Vec::new());
    for Input { machine: name, path } in inputs {
        let file = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
        let text = match bytes(&path) {
            Ok(bytes) => readable(&bytes),
            Err(error) if skip_bad => {
                skipped.push(Skipped { file, problem: error.to_string() });
                continue;
            }
            Err(error) => return Err(error),
        };
        match parse(&text, generations_max) {
            Err(fault) => {
                let problem = diagnostic(&file, &text, fault);
                skipped.push(Skipped { file, problem: problem.to_string() });
                problems.push(problem);
            }
            Ok(dump) => match machines.last_mut().filter(|machine| machine.name == name) {
                Some(machine) => machine.dumps.push(Reading { file, dump }),
                None => machines.push(DumpedMachine { name, dumps: vec![Reading { file, dump }] }),
            },
        }
    }
    if !problems.is_empty() && (!skip_bad || machines.is_empty()) {
        return Err(Error::Scenario(Diagnostics(problems)));
    }
    ensure!(!machines.is_empty(), "cannot read any file: {}", skipped[0].problem);
    Ok((machines, skipped))
}

/// The file, or those of a directory.
fn inputs_of(path: &Path) -> Result<Vec<Input>, Error> {
    if path == Path::new("-") {
        return Ok(vec![Input { machine: STDIN.into(), path: path.into() }]);
    }
    let cannot_read = || format!("cannot read {}", path.display());
    if !path.metadata().during(cannot_read)?.is_dir() {
        return Ok(vec![Input { machine: machine_of(path)?, path: path.into() }]);
    }
    let mut inputs = Vec::new();
    for entry in path.read_dir().during(cannot_read)? {
        let path = entry.during(cannot_read)?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        ensure!(!path.is_dir(), "{}: found a directory, expected dumps of lru_gen", path.display());
        inputs.push(Input { machine: machine_of(&path)?, path });
    }
    ensure!(
        !inputs.is_empty(),
        "{}: found an empty directory, expected dumps of lru_gen\nhelp: write one by `cat /sys/kernel/debug/lru_gen > DIR/MACHINE`",
        path.display()
    );
    // Files with the same natural order have a fixed order.
    inputs.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(inputs)
}

/// The machine that a file's name names.
fn machine_of(path: &Path) -> Result<String, Error> {
    let name = lossy(path.file_name().unwrap_or_default());
    if let Some((machine, _)) = name.split_once('@') {
        ensure!(!machine.is_empty(), "{}: missing name of the machine before the @", path.display());
        return Ok(machine.to_string());
    }
    let endings = [".lru_gen", ".lru_gen_full", ".txt"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    if ["lru_gen", "lru_gen_full"].contains(&name.as_str()) || is_time(stem) {
        return directory_name(
            path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")),
        );
    }
    ensure!(!stem.is_empty(), "{}: missing name of the machine", path.display());
    Ok(stem.to_string())
}

/// Returns true if a name is a time as scripts write them: `2026-11-22`, `20261122T100000Z`, `10:00`, or seconds since 1970.
fn is_time(name: &str) -> bool {
    // Digits as 0, so that shapes can be compared.
    let shape = name.replace(|c: char| c.is_ascii_digit(), "0");
    let is_clock = |text: &str| {
        let is_part = |part: &str| ["0", "00", "000", "000000"].contains(&part);
        let (text, zone) = text.split_at(text.find(['Z', '+']).unwrap_or(text.len()));
        let zone = zone.trim_start_matches(['Z', '+']);
        let separated = text.split([':', '-', '.', '_']).all(is_part) && text.contains([':', '-', '.', '_']);
        let zone_is_one = ["", "00", "0000", "00:00"].contains(&zone);
        (separated || ["0000", "000000"].contains(&text)) && zone_is_one
    };
    let date = ["0000-00-00", "00000000"].iter().find_map(|date| shape.strip_prefix(date));
    match date {
        Some("") => true,
        Some(rest) => rest.strip_prefix(['T', '_', '-', ' ']).is_some_and(is_clock) || is_epoch(&shape),
        None => shape.contains(':') && is_clock(&shape),
    }
}

/// Seconds since 1970, or a smaller unit.
fn is_epoch(shape: &str) -> bool {
    shape.len() >= 10 && shape.bytes().all(|byte| byte == b'0')
}

fn directory_name(path: &Path) -> Result<String, Error> {
    let whole = path.canonicalize().during(|| format!("cannot read {}", path.display()))?;
    match whole.file_name() {
        Some(name) => Ok(lossy(name)),
        None => bail!("{}: missing name of the machine", path.display()),
    }
}

fn lossy(name: &OsStr) -> String {
    readable(name.as_encoded_bytes())
}

/// Text that can be shown on a terminal: control characters other than tabs and line breaks are replaced.
fn readable(bytes: &[u8]) -> String {
    let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    String::from_utf8_lossy(bytes).replace(|c| !is_shown(c), "\u{fffd}")
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(LENGTH_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LENGTH_MAX + 1).read_to_end(&mut bytes))
    };
    read.during(|| format!("cannot read {}", path.display()))?;
    let is_dump = bytes.len() as u64 <= LENGTH_MAX;
    ensure!(
        is_dump,
        "{}: too large for a dump of lru_gen: found more than {LENGTH_MAX} bytes",
        path.display()
    );
    Ok(bytes)
}

/// The error with its place; a binary line is not shown.
fn diagnostic(file: &str, text: &str, fault: ParseError) -> Diagnostic {
    let ParseError { message, span, help } = fault;
    let before = &text[..span.start];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let origin = if text.trim().is_empty() {
        Origin::Whole(file.to_string())
    } else if line.len() > LINE_MAX || line.contains('\u{fffd}') {
        Origin::Whole(format!("{file}:{}", before.matches('\n').count() + 1))
    } else {
        Origin::File(Excerpt::new(file, text, span))
    };
    let message = if message.len() > LINE_MAX || message.contains('\u{fffd}') {
        "not the text of lru_gen".to_string()
    } else {
        message
    };
    Diagnostic { message, origin, help }
}

/// A key that orders names as people do: numbers by their value.
fn natural(name: &str) -> Vec<(usize, &str)> {
    let mut key = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        // The longer of two numbers is the larger one; texts have no length.
        let piece = if is_number { piece.trim_start_matches('0') } else { piece };
        key.push((if is_number { piece.len() + 1 } else { 0 }, piece));
        rest = after;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_names_its_machine() {
        for (path, machine) in [
            ("web1@2026-11-22T10:00.lru_gen", "web1"),
            ("dumps/web1.example.com@x@y", "web1.example.com"),
            ("dumps/web1.example.com.lru_gen", "web1.example.com"),
            ("web1.lru_gen_full", "web1"),
            ("web1.txt", "web1"),
            ("web1", "web1"),
            ("fleet/10.0.0.7.lru_gen", "10.0.0.7"),
            ("fleet/0007.lru_gen", "0007"),
            ("fleet/web-2026", "web-2026"),
        ] {
            assert_eq!(machine_of(Path::new(path)).unwrap(), machine, "{path}");
        }
        for bad in ["@10:00.lru_gen", ".lru_gen"] {
            assert!(
                machine_of(Path::new(bad)).unwrap_err().to_string().contains("missing name of the machine"),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_time_names_no_machine() {
        for time in [
            "2026-11-22",
            "20261122",
            "2026-11-22T10:00",
            "2026-11-22T10:00:05+01:00",
            "20261122T100005Z",
            "2026-11-22_10-00-05",
            "10:00",
            "9:30",
            "1795428000",
            "1795428000123",
        ] {
            assert!(is_time(time), "{time}");
        }
        for name in
            ["", "web1", "1", "10.0.0.7", "192.168.100.200", "2026", "2026-11-22-web", "rack-7", "10-00"]
        {
            assert!(!is_time(name), "{name}");
        }
    }

    #[test]
    fn numbers_in_names_are_ordered_by_their_value() {
        let mut names = ["web10@9", "web2@10:00", "web2@9:30", "web2@010:01", "web", "db"];
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        assert_eq!(names, ["db", "web", "web2@9:30", "web2@10:00", "web2@010:01", "web10@9"]);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        assert_eq!(readable(b"a\x1b[2J\tb\r\n\xff"), "a\u{fffd}[2J\tb\r\n\u{fffd}");
    }
}
