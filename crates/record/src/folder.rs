//! Files of a recording's folder other than its accesses: pages in memory before, calls on complete files, counters.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pageout_workload::Access;
use pageout_workload::trace::{FILE_CALL_COLUMNS, PgtWriter};

use crate::collect::Collector;
use crate::error::Error;
use crate::manifest::{
    BEFORE, EVICTION_COLUMNS, EVICTIONS, FILE_CALLS, ROOM_COLUMNS, ROOMS, SAMPLES, Sample,
};

/// A file of the folder can't be written.
pub(crate) fn write_error(folder: &Path, path: &Path, source: io::Error) -> Error {
    Error::Write { path: path.display().to_string(), dir: folder.display().to_string(), source }
}

/// Writes what was in memory before, as a trace.
pub(crate) fn write_before(
    folder: &Path,
    collector: &Collector,
    names: &[String],
    page_size: u32,
) -> Result<(), Error> {
    let path = folder.join(BEFORE);
    let write = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(&path)?);
        let mut writer = PgtWriter::new(&mut out, page_size, true)?;
        let before: Vec<Access> = collector.before().collect();
        writer.write(&before)?;
        writer.finish(names, None, before.len() as u64)?;
        out.flush()
    };
    write().map_err(|source| write_error(folder, &path, source))
}

/// Writes calls on whole files, and since when pages of faults were missing.
pub(crate) fn write_calls(folder: &Path, collector: &Collector) -> Result<(), Error> {
    let path = folder.join(FILE_CALLS);
    let mut text = format!("{FILE_CALL_COLUMNS}\n");
    for call in collector.calls() {
        text += &call.line();
        text.push('\n');
    }
    std::fs::write(&path, text).map_err(|source| write_error(folder, &path, source))?;
    let path = folder.join(EVICTIONS);
    let mut text = format!("{EVICTION_COLUMNS}\n");
    for (fault, evicted) in collector.faults() {
        let _ = writeln!(text, "{fault},{evicted}");
    }
    std::fs::write(&path, text).map_err(|source| write_error(folder, &path, source))
}

/// Writes how much files had when the group was full.
pub(crate) fn write_rooms(folder: &Path, collector: &Collector) -> Result<(), Error> {
    let path = folder.join(ROOMS);
    let mut text = format!("{ROOM_COLUMNS}\n");
    for (access, pages) in collector.rooms() {
        let _ = writeln!(text, "{access},{pages}");
    }
    std::fs::write(&path, text).map_err(|source| write_error(folder, &path, source))
}

/// `samples.csv`, as it is written.
pub(crate) struct Samples {
    path: PathBuf,
    folder: PathBuf,
    out: BufWriter<File>,
}

impl Samples {
    pub(crate) fn new(folder: &Path) -> Result<Samples, Error> {
        let path = folder.join(SAMPLES);
        let write = || {
            let mut out = BufWriter::new(File::create(&path)?);
            writeln!(out, "{}", Sample::COLUMNS)?;
            Ok(out)
        };
        let out = write().map_err(|source| write_error(folder, &path, source))?;
        Ok(Samples { path, folder: folder.to_path_buf(), out })
    }

    pub(crate) fn push(&mut self, sample: &Sample) -> Result<(), Error> {
        let line = sample.line();
        self.out.write_all(line.as_bytes()).map_err(|source| write_error(&self.folder, &self.path, source))
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.out.flush().map_err(|source| write_error(&self.folder, &self.path, source))
    }
}
