//! Where the text of a trace comes from: a file, standard input, a compressed file, or `trace-cmd report` of a binary one.
//!
//! The first bytes of a file say which of these it is, not its name.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::{During, Error, bail, ensure};

const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";
const PERF_DATA: &[u8] = b"PERFILE2";

/// Compressed by what we don't read, and the program that does.
const COMPRESSED: [(&[u8], &str, &str); 4] = [
    (&[0x1F, 0x8B], "gzip", "zcat"),
    (&[0xFD, b'7', b'z', b'X', b'Z'], "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
    (&[0x04, 0x22, 0x4D, 0x18], "lz4", "lz4cat"),
];

/// An open trace.
pub(super) struct Input<'a> {
    /// What it is called in results.
    pub(super) name: String,
    /// The text of the trace.
    pub(super) text: Box<dyn Read + 'a>,
    /// What converts it meanwhile.
    converter: Option<Converter>,
}

#[cfg(not(target_family = "wasm"))]
fn decompressed<'a>(whole: impl Read + 'a, name: &str) -> Result<Box<dyn Read + 'a>, Error> {
    Ok(Box::new(zstd::stream::read::Decoder::new(whole).during(|| format!("cannot read {name}"))?))
}

/// A WebAssembly build has no zstd, which is C.
#[cfg(target_family = "wasm")]
fn decompressed<'a>(_: impl Read + 'a, name: &str) -> Result<Box<dyn Read + 'a>, Error> {
    bail!("{name}: found a file compressed with zstd, expected text\nhelp: zstdcat {name}");
}

/// A running `trace-cmd`.
struct Converter {
    child: Child,
    messages: File,
}

impl<'a> Input<'a> {
    /// Opens `path`; `counted` sees the bytes of the file as they are read.
    pub(super) fn open(
        path: &Path,
        counted: impl FnOnce(File) -> Box<dyn Read + 'a>,
    ) -> Result<Input<'a>, Error> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".to_string() } else { path.display().to_string() };
        let mut bytes: Box<dyn Read + 'a> = if is_stdin {
            Box::new(io::stdin().lock())
        } else {
            let cannot_read = || format!("cannot read {name}");
            let file = File::open(path).during(cannot_read)?;
            let is_directory = file.metadata().during(cannot_read)?.is_dir();
            ensure!(
                !is_directory,
                "{name}: found a directory, expected a file with the text of a trace\nhelp: name the files in it"
            );
            counted(file)
        };
        let mut start = Vec::new();
        (&mut bytes).take(16).read_to_end(&mut start).during(|| format!("cannot read {name}"))?;
        if start.starts_with(TRACE_DAT) {
            ensure!(
                !is_stdin,
                "standard input: found a trace.dat, expected text\nhelp: give the name of the file, or pipe the output of `trace-cmd report`"
            );
            let (text, converter) = converted(path)?;
            return Ok(Input { name, text, converter: Some(converter) });
        }
        if start.starts_with(PERF_DATA) {
            bail!(
                "{name}: found a perf.data file, expected text\nhelp: perf script -i {name} | pageout vmscan-report -"
            );
        }
        if let Some((_, kind, program)) = COMPRESSED.iter().find(|(magic, ..)| start.starts_with(magic)) {
            bail!(
                "{name}: found a file compressed with {kind}, expected text\nhelp: {program} {name} | pageout vmscan-report -"
            );
        }
        let is_zstd = start.starts_with(ZSTD);
        let whole = Cursor::new(start).chain(bytes);
        let text = if is_zstd { decompressed(whole, &name)? } else { Box::new(whole) };
        Ok(Input { name, text, converter: None })
    }

    /// Ends the conversion, if there is one; `bytes` came from it. Errors: it failed, or came to nothing.
    pub(super) fn close(self, bytes: u64) -> Result<(), Error> {
        let Input { name, text, converter } = self;
        // A converter that is not read any more ends with a broken pipe.
        drop(text);
        let Some(Converter { mut child, mut messages }) = converter else { return Ok(()) };
        let status = child.wait().during(|| format!("trace-cmd report -i {name}"))?;
        if status.success() {
            // It does not report a file that ends in its header.
            ensure!(bytes > 0, "trace-cmd report -i {name} printed nothing: the file is truncated or empty");
            return Ok(());
        }
        let mut told = String::new();
        io::Seek::rewind(&mut messages).during(|| "cannot read the messages of trace-cmd".to_string())?;
        messages.take(2000).read_to_string(&mut told).unwrap_or_default();
        bail!("trace-cmd report -i {name} failed, {status}: {}", told.trim());
    }
}

/// The text that `trace-cmd report` makes of a trace.dat.
fn converted(path: &Path) -> Result<(Box<dyn Read>, Converter), Error> {
    let messages = tempfile::tempfile()
        .during(|| "cannot create a temporary file for the messages of trace-cmd".to_string())?;
    let mut command = Command::new("trace-cmd");
    command.arg("report").arg("-i").arg(path).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(
        messages
            .try_clone()
            .during(|| "cannot create a temporary file for the messages of trace-cmd".to_string())?,
    );
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "{0}: found a trace.dat file, but `trace-cmd`, which converts it to text, is missing\nhelp: \
             install it (`apt-get install trace-cmd`, `dnf install trace-cmd`), or convert the file on \
             another machine: trace-cmd report -i {0} > trace.txt",
            path.display()
        ),
        Err(error) => bail!(
            "cannot run trace-cmd: {error}\nhelp: install trace-cmd, or convert the file where it is: trace-cmd report -i FILE > trace.txt"
        ),
    };
    let text = child.stdout.take().expect("it was asked for");
    Ok((Box::new(text), Converter { child, messages }))
}
