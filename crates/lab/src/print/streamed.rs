//! Results that are written while they grow: to a file that gets its name when it is complete, to a pipe or a device, or to standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::{Failure, Outcome, unwritten};
use crate::print::unfinished::Unfinished;

/// Bytes that wait to be written together.
const BUFFER: usize = 1 << 16;

/// Where it goes.
pub(crate) enum Streamed {
    File(BufWriter<Unfinished>, PathBuf),
    /// A pipe or a device, which cannot be replaced.
    Special(BufWriter<File>),
    Stdout(BufWriter<io::Stdout>),
}

impl Streamed {
    /// Opens `path`, where `-` is standard output; `option` is what asked for it.
    pub(crate) fn new(path: &Path, option: &str) -> anyhow::Result<Streamed> {
        if path == Path::new("-") {
            return Ok(Streamed::Stdout(BufWriter::with_capacity(BUFFER, io::stdout())));
        }
        let cannot = || format!("{option} {}", path.display());
        if path.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!(
                "{option}: found the folder `{}`, expected a file\nhelp: name a file in it",
                path.display()
            );
        }
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(unwritten).with_context(cannot)?;
            return Ok(Streamed::Special(BufWriter::with_capacity(BUFFER, file)));
        }
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let file = Unfinished::new_in(directory.unwrap_or(Path::new(".")))
            .map_err(unwritten)
            .with_context(cannot)?;
        Ok(Streamed::File(BufWriter::with_capacity(BUFFER, file), path.to_path_buf()))
    }

    /// Returns true if written bytes can be overwritten: not in a pipe or a device.
    pub(crate) fn can_go_back(&self) -> bool {
        matches!(self, Streamed::File(..))
    }

    /// Writes over what was written at `at`, where that can be.
    pub(crate) fn write_over(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let Streamed::File(file, _) = self else { return Ok(()) };
        file.flush()?;
        file.get_mut().write_over(at, bytes)
    }

    /// Everything is written: the file has its name from now on.
    pub(crate) fn finish(mut self) -> Outcome {
        self.flush().map_err(Failure::writing)?;
        if let Streamed::File(file, path) = self {
            let file = file.into_inner().map_err(|error| Failure::writing(error.into_error()))?;
            file.finish(&path).map_err(Failure::writing)?;
        }
        Ok(())
    }
}

impl Write for Streamed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Streamed::File(file, _) => file.write(buffer),
            Streamed::Special(file) => file.write(buffer),
            Streamed::Stdout(stdout) => stdout.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Streamed::File(file, _) => file.flush(),
            Streamed::Special(file) => file.flush(),
            Streamed::Stdout(stdout) => stdout.flush(),
        }
    }
}
