//! `pageout trace convert`: the output gets its name when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use pageout_study::result::requests::{self, Deletes};
use pageout_study::scenario::interpretation;
use pageout_workload::trace::{self, Format};

use super::info::file_length;
use super::read_options;
use crate::cli::ReadingOptions;
use crate::context::Context;
use crate::failure::{Failure, Outcome, unwritten};
use crate::print::figures::counted;
use crate::print::output::to_json;
use crate::print::outputs::is_same_file;
use crate::print::unfinished::Unfinished;
use crate::print::{figures, progress};

/// Converts `from` to the `.pgt` file `to`.
pub(crate) fn convert(
    from: &Path,
    to: &Path,
    force: bool,
    reading: &ReadingOptions,
    cx: &Context,
) -> Outcome {
    let read = read_options(reading)?;
    if to.exists() && !force {
        return Err(Failure::Input(anyhow::anyhow!(
            "{}: the file exists\nhelp: replace it with --force",
            to.display()
        )));
    }
    // The target of a link is written, for example of /dev/stdout.
    let place = to.canonicalize();
    // A pipe, a device or an unlinked file cannot be replaced: it receives the trace as it is written.
    let is_special = to.metadata().is_ok_and(|metadata| !metadata.is_file() || place.is_err());
    let place = place.unwrap_or_else(|_| to.to_path_buf());
    if is_same_file(from, to) {
        let (from, to) = (from.display(), to.display());
        return Err(Failure::Input(anyhow::anyhow!(
            "{to}: this file is the input {from}, and would be lost\nhelp: write to another file"
        )));
    }
    if from.is_file() {
        interpretation::remark_columns(from, &read, &*cx.output)
            .map_err(|error| Failure::Input(error.into()))?;
    }
    if !is_special {
        check_name(to)?;
    }
    let target = if is_special { Target::special(to) } else { Target::beside(&place) }?;
    let mut writer = Noting { inner: BufWriter::new(target), fault: None };
    let bar = progress::bar(&cx.output, file_length(from), &from.to_string_lossy());
    let converted = trace::convert(from, &read, &mut writer, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    // The exit code depends on whether reading or writing failed; the noted error distinguishes them.
    let header = match (converted, writer.fault.take()) {
        (_, Some(fault)) => return Err(Failure::Output(fault)),
        (Err(error), None) => return Err(Failure::Input(error.into())),
        (Ok(header), None) => header,
    };
    let target = writer.inner.into_inner().map_err(|error| Failure::Output(error.into_error()))?;
    target.finish(&place).map_err(Failure::Output)?;
    // The pipe or device may be standard output, where another line would damage the trace.
    let print = |text: &str| {
        if is_special {
            cx.output.remark(text.trim_end());
            return Ok(());
        }
        cx.output.print(text)
    };
    for says in header.requests.iter().flat_map(|of| requests::says(of, Deletes::Counted)) {
        cx.output.remark(&format!("note: {}: {says}; a .pgt does not keep this", from.display()));
    }
    if cx.output.is_data() {
        let json = serde_json::json!({
            "trace": to.to_string_lossy(),
            "page_bytes": header.page_size,
            "records": header.records,
            "accesses": header.accesses,
            "objects": header.objects.iter().map(|object| serde_json::json!({ "name": object.name, "pages": object.pages })).collect::<Vec<_>>(),
        });
        return match is_special {
            true => print(&to_json(&json)),
            false => cx.output.print_json(&json),
        };
    }
    let size = file_length(to).map(|size| format!(", {}", figures::bytes(size))).unwrap_or_default();
    print(&format!(
        "{}: {}, {} accesses, {}{size}\n",
        to.display(),
        counted(header.records, "record"),
        figures::count(header.accesses),
        counted(header.objects.len() as u64, "object"),
    ))
}

/// Refuses names that say something else than what is written.
fn check_name(to: &Path) -> anyhow::Result<()> {
    let name = to.display();
    let says = Format::of_name(to).filter(|&format| format != Format::Pgt);
    if let Some(format) = says {
        bail!("{name}: wrong suffix: found that of {format}, expected .pgt");
    }
    let is_compressed = to.extension().is_some_and(|suffix| suffix == "zst");
    ensure!(
        !is_compressed,
        "{name}: wrong suffix: found .zst, expected .pgt, which is not compressed further"
    );
    Ok(())
}

/// Where the output goes.
enum Target {
    /// A temporary file next to its final place.
    Unfinished(Unfinished),
    /// Straight to a pipe or device.
    Special(File),
}

impl Target {
    fn beside(to: &Path) -> anyhow::Result<Target> {
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = Unfinished::new_in(directory);
        Ok(Target::Unfinished(
            file.map_err(unwritten)
                .with_context(|| format!("cannot create a file in {}", directory.display()))?,
        ))
    }

    fn special(to: &Path) -> anyhow::Result<Target> {
        let file = File::options().write(true).open(to);
        Ok(Target::Special(
            file.map_err(unwritten).with_context(|| format!("cannot write to {}", to.display()))?,
        ))
    }

    /// Completes the output.
    fn finish(self, to: &Path) -> io::Result<()> {
        match self {
            Target::Unfinished(file) => file.finish(to),
            Target::Special(mut file) => file.flush(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Target::Unfinished(file) => file.write(buffer),
            Target::Special(file) => file.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Unfinished(file) => file.flush(),
            Target::Special(file) => file.flush(),
        }
    }
}

/// A writer that remembers its first fault.
struct Noting<W> {
    inner: W,
    fault: Option<io::Error>,
}

impl<W: Write> Noting<W> {
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let same = io::Error::new(error.kind(), error.to_string());
            self.fault.get_or_insert(error);
            same
        })
    }
}

impl<W: Write> Write for Noting<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(buffer);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.note(result)
    }
}
