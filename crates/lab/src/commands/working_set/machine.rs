//! Which files are dumps of which machine, in which order.
//!
//! ```text
//!   web1@2026-11-22T10:00.lru_gen   machine web1, one of its dumps      in order of the file names, digits as numbers
//!   web1.lru_gen                    machine web1
//!   web1/lru_gen                    machine web1: the kernel's own name says nothing
//!   web1/                           machine web1: all files in it, whatever their names
//!   -                               machine stdin
//! ```
//! Names, not times of files, since copies lose those; and not the order of arguments, since `find` has none.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::dump::{self, Dump, Fault};
use crate::scenario::diagnostic::{Diagnostic, Diagnostics, Excerpt, Origin};

/// What a dump on standard input is called.
const STDIN: &str = "stdin";

/// Longer than the dump of any machine; what is not a dump may have no end.
const LENGTH_MAX: u64 = 1 << 28;

/// A line longer than this is not shown.
const LINE_MAX: usize = 300;

/// A machine with its dumps, the latest last; at least one.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) dumps: Vec<Reading>,
}

/// One dump and where it came from.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) file: String,
    pub(super) dump: Dump,
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

/// Reads all dumps, of machines that keep so many generations at most. Errors: one can't be read or is no dump, is given twice, has no machine.
pub(super) fn read(files: &[PathBuf], generations_max: usize) -> anyhow::Result<Vec<Machine>> {
    let mut inputs = Vec::new();
    let mut known = BTreeSet::new();
    for file in files {
        for input in inputs_of(file)? {
            let path = input.path.canonicalize().unwrap_or_else(|_| input.path.clone());
            ensure!(known.insert(path), "{} is given twice", input.path.display());
            inputs.push(input);
        }
    }
    inputs.sort_by(|a, b| {
        let by_machine =
            natural(&a.machine).cmp(&natural(&b.machine)).then_with(|| a.machine.cmp(&b.machine));
        by_machine.then_with(|| natural(&a.file_name()).cmp(&natural(&b.file_name())))
    });

    let mut machines: Vec<Machine> = Vec::new();
    let mut problems = Vec::new();
    for Input { machine: name, path } in inputs {
        let text = readable(&bytes(&path)?);
        let file = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
        match dump::parse(&text, generations_max) {
            Err(fault) => problems.push(diagnostic(&file, &text, fault)),
            Ok(dump) => match machines.last_mut().filter(|machine| machine.name == name) {
                Some(machine) => machine.dumps.push(Reading { file, dump }),
                None => machines.push(Machine { name, dumps: vec![Reading { file, dump }] }),
            },
        }
    }
    if problems.is_empty() { Ok(machines) } else { Err(Diagnostics(problems).into()) }
}

/// The file, or those of a directory.
fn inputs_of(path: &Path) -> anyhow::Result<Vec<Input>> {
    if path == Path::new("-") {
        return Ok(vec![Input { machine: STDIN.into(), path: path.into() }]);
    }
    let cannot_read = || format!("cannot read {}", path.display());
    if !path.metadata().with_context(cannot_read)?.is_dir() {
        return Ok(vec![Input { machine: machine_of(path)?, path: path.into() }]);
    }
    let machine = directory_name(path)?;
    let mut inputs = Vec::new();
    for entry in path.read_dir().with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        ensure!(
            !path.is_dir(),
            "{} is a directory; expected: dumps of the machine {machine}",
            path.display()
        );
        inputs.push(Input { machine: machine.clone(), path });
    }
    ensure!(!inputs.is_empty(), "{} is empty; expected: dumps of the machine {machine}", path.display());
    // What has the same natural order comes in some fixed one.
    inputs.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(inputs)
}

/// The machine that a file's name names.
fn machine_of(path: &Path) -> anyhow::Result<String> {
    let name = lossy(path.file_name().unwrap_or_default());
    if let Some((machine, _)) = name.split_once('@') {
        ensure!(!machine.is_empty(), "{} names no machine before the @", path.display());
        return Ok(machine.to_string());
    }
    if ["lru_gen", "lru_gen_full"].contains(&name.as_str()) {
        return directory_name(
            path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")),
        );
    }
    let endings = [".lru_gen", ".lru_gen_full", ".txt"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    ensure!(!stem.is_empty(), "{} names no machine", path.display());
    Ok(stem.to_string())
}

fn directory_name(path: &Path) -> anyhow::Result<String> {
    let whole = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    match whole.file_name() {
        Some(name) => Ok(lossy(name)),
        None => bail!("{} names no machine", path.display()),
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

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(LENGTH_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LENGTH_MAX + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let is_dump = bytes.len() as u64 <= LENGTH_MAX;
    ensure!(is_dump, "{} is larger than any dump of lru_gen: more than {LENGTH_MAX} bytes", path.display());
    Ok(bytes)
}

/// The fault with its place; a line that is no text for people is not shown.
fn diagnostic(file: &str, text: &str, fault: Fault) -> Diagnostic {
    let Fault { message, span, help } = fault;
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
        "this is no text of lru_gen".to_string()
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
        ] {
            assert_eq!(machine_of(Path::new(path)).unwrap(), machine, "{path}");
        }
        for bad in ["@10:00.lru_gen", ".lru_gen"] {
            assert!(
                machine_of(Path::new(bad)).unwrap_err().to_string().contains("names no machine"),
                "{bad}"
            );
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
