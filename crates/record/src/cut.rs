//! Accesses behind the ends of files, taken out of a recorded trace.
//!
//! A read reports the range that it asks for: `read(fd, buffer, 98304)` of a file of 5 pages reports pages 0 to 23. The end of the file is
//! known when the file has a name, at the end of the recording. Accesses beyond it are removed and not counted. Places among the accesses
//! move with them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pageout_workload::trace::{self, PgtWriter};
use pageout_workload::{Access, ReadOptions};

/// What was taken out.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Number of accesses of each object.
    pub(crate) by_object: Vec<u64>,
    /// Runs of accesses, in order: the place of the first, how many were taken out before it, and how many it has.
    runs: Vec<(u64, u64, u64)>,
}

impl Cut {
    /// How many accesses were taken out.
    pub(crate) fn count(&self) -> u64 {
        self.runs.last().map_or(0, |(_, before, count)| before + count)
    }

    /// Where a place among all accesses is among those that are left.
    pub(crate) fn place(&self, access: u64) -> u64 {
        let behind = self.runs.partition_point(|(first, ..)| *first < access);
        let Some(&(first, before, count)) = behind.checked_sub(1).map(|at| &self.runs[at]) else {
            return access;
        };
        access - before - count.min(access - first)
    }

    fn take(&mut self, at: u64, object: u32) {
        self.by_object[object as usize] += 1;
        let before = self.count();
        match self.runs.last_mut() {
            Some((first, _, count)) if *first + *count == at => *count += 1,
            _ => self.runs.push((at, before, 1)),
        }
    }
}

/// Writes the accesses of the trace at `from` to `to`, without those behind the ends of objects, as far as these are known. Nothing is written if
/// there are none.
pub(crate) fn cut(
    from: &Path,
    to: &Path,
    ends: &[Option<u64>],
    names: &[String],
    (page_size, writes, requests): (u32, bool, u64),
) -> io::Result<Cut> {
    let failed = |error: pageout_workload::TraceError| io::Error::other(error.to_string());
    let is_behind = |access: Access| {
        ends.get(access.object() as usize).copied().flatten().is_some_and(|end| access.page() >= end)
    };
    let mut cut = Cut { by_object: vec![0; ends.len()], runs: Vec::new() };
    let mut at = 0;
    let mut chunk = Vec::new();
    let mut stream = trace::open(from, &ReadOptions::default()).map_err(failed)?;
    while stream.fill(&mut chunk, 1 << 16).map_err(failed)? > 0 {
        for access in chunk.drain(..) {
            if is_behind(access) {
                cut.take(at, access.object());
            }
            at += 1;
        }
    }
    if cut.count() == 0 {
        return Ok(cut);
    }
    let mut out = BufWriter::new(File::create(to)?);
    let mut writer = PgtWriter::new(&mut out, page_size, writes)?;
    let mut stream = trace::open(from, &ReadOptions::default()).map_err(failed)?;
    while stream.fill(&mut chunk, 1 << 16).map_err(failed)? > 0 {
        chunk.retain(|&access| !is_behind(access));
        writer.write(&chunk)?;
        chunk.clear();
    }
    writer.finish(names, None, requests)?;
    out.flush()?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_behind_the_end_of_a_file_are_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let access = |object, page| Access::new(object, page, false);
        // Two reads of eight pages: of a file of three, and of one whose end is not known.
        let all: Vec<Access> = (0..8)
            .map(|page| access(0, page))
            .chain((0..8).map(|page| access(1, page)))
            .chain([access(0, 1)])
            .collect();
        let names = ["a".to_string(), "b".to_string()];
        let mut out = File::create(&from).unwrap();
        let mut writer = PgtWriter::new(&mut out, 4096, false).unwrap();
        writer.write(&all).unwrap();
        writer.finish(&names, None, 3).unwrap();
        let whole = cut(&from, &to, &[Some(8), None], &names, (4096, false, 3)).unwrap();
        assert_eq!((whole.count(), whole.place(9), to.exists()), (0, 9, false));
        let taken = cut(&from, &to, &[Some(3), None], &names, (4096, false, 3)).unwrap();
        assert_eq!((taken.count(), &taken.by_object[..]), (5, &[5, 0][..]));
        let mut left = Vec::new();
        trace::open(&to, &ReadOptions::default()).unwrap().fill(&mut left, 100).unwrap();
        assert_eq!(left, [&all[..3], &all[8..]].concat());
        assert_eq!([0, 3, 5, 8, 9, 17].map(|place| taken.place(place)), [0, 3, 3, 3, 4, 12]);
    }
}
