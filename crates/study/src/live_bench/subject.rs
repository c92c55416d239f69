//! The file that is read: the user's file, which is only read, or a temporary file. A temporary file has no name, so it disappears with the
//! program, however that ends.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fstatfs, statvfs};

use super::Ask;
use super::load::{Load, PAGES_MAX};
use crate::error::{Error, cannot, ensure};
use crate::figures;
use crate::watch::{Stage, Watcher};

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

/// A file, open.
pub(super) struct Subject {
    file: File,
    /// By which other processes open it.
    pub(super) path: PathBuf,
    /// Name in messages.
    pub(super) name: String,
    /// Whole pages of it.
    pub(super) pages: u64,
    /// True if each page begins with [`mark`] of its number.
    pub(super) is_made: bool,
}

/// What a page of a file that was made begins with.
pub(super) fn mark(page: u64) -> [u8; 8] {
    (page ^ 0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

impl Subject {
    /// A file for a load.
    pub(super) fn new(ask: &Ask, load: &Load, watcher: &dyn Watcher) -> Result<Subject, Error> {
        let subject = match &ask.file {
            Some(path) => Subject::given(path)?,
            None => Subject::made(ask, load, watcher)?,
        };
        ensure!(
            subject.pages >= load.least,
            "{}: found {}, but {} reads page {}; expected a file of at least {}",
            subject.name,
            figures::counted(subject.pages, "whole page"),
            load.name,
            figures::count(load.least - 1),
            figures::bytes(load.least * PAGE as u64)
        );
        subject.forget()?;
        Ok(subject)
    }

    /// An existing file.
    fn given(path: &Path) -> Result<Subject, Error> {
        let name = path.display().to_string();
        // This check comes before the open, which would block on a pipe without a writer.
        let metadata = std::fs::metadata(path).map_err(cannot(&name))?;
        ensure!(
            metadata.is_file(),
            "{name}: found a folder or a device, expected a file\nhelp: name a file, or none to create one"
        );
        let file = File::open(path).map_err(cannot(&name))?;
        let bytes = metadata.len();
        let pages = bytes / PAGE as u64;
        ensure!(
            pages > 0,
            "{name}: found {}, expected at least one page of 4 KiB\nhelp: name a larger file, or none to create one",
            figures::counted(bytes, "byte")
        );
        let most = figures::bytes(PAGES_MAX * PAGE as u64);
        ensure!(
            pages <= PAGES_MAX,
            "{name}: found {}, expected at most {most}\nhelp: name a smaller file, or none to create one",
            figures::bytes(bytes)
        );
        let path = std::path::absolute(path).map_err(cannot(&name))?;
        Ok(Subject { file, path, name, pages, is_made: false })
    }

    /// A file without a name.
    fn made(ask: &Ask, load: &Load, watcher: &dyn Watcher) -> Result<Subject, Error> {
        let folder = ask.folder.clone().unwrap_or_else(std::env::temp_dir);
        let size = ask
            .size
            .map_or_else(|| ask.budget.0.saturating_mul(4).max(load.least * PAGE as u64), |size| size.0);
        let pages = size / PAGE as u64;
        let bytes = pages * PAGE as u64;
        let mut file = room(&folder, pages, bytes)?;
        let name = format!("a temporary file in {}", folder.display());
        let cannot = |error: std::io::Error| {
            Error::asked(format!(
                "cannot write {} in {}: {error}\nhelp: use a smaller --size or another --folder",
                figures::bytes(bytes),
                folder.display()
            ))
        };
        watcher.begin(&Stage::Named { what: "making a file, MiB", steps: Some(bytes >> 20) });
        let mut chunk = vec![0_u8; 256 * PAGE];
        let mut noise = 1_u64;
        for first in (0..pages).step_by(256) {
            for (page, bytes) in (first..pages).zip(chunk.chunks_exact_mut(PAGE)) {
                for word in bytes.chunks_exact_mut(8) {
                    noise =
                        noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    word.copy_from_slice(&noise.to_le_bytes());
                }
                bytes[..8].copy_from_slice(&mark(page));
            }
            let of_file = 256.min(pages - first) as usize * PAGE;
            file.write_all(&chunk[..of_file]).map_err(cannot)?;
            // 256 pages are 1 MiB.
            watcher.advance(1);
            if let Some(signal) = watcher.stop() {
                watcher.end();
                return Err(Error::Interrupted(format!("{signal} while creating the file")));
            }
        }
        file.sync_all().map_err(cannot)?;
        watcher.end();
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Subject { file, path, name, pages, is_made: true })
    }

    /// Returns true if the file is the system's page cache, and on no device.
    pub(super) fn is_in_memory(&self) -> bool {
        const TMPFS: i128 = 0x0102_1994;
        fstatfs(&self.file).is_ok_and(|there| i128::from(there.f_type) == TMPFS)
    }

    /// Has the system drop cached pages of the file, unless another process uses it: earlier pages would be charged to no reader.
    fn forget(&self) -> Result<(), Error> {
        fadvise(&self.file, 0, None, Advice::DontNeed).map_err(cannot(&self.name))
    }
}

/// Creates an empty file in a folder with enough free space.
fn room(folder: &Path, pages: u64, bytes: u64) -> Result<File, Error> {
    let place = folder.display();
    ensure!(pages > 0, "--size: expected at least one page of 4 KiB\nhelp: for example --size 256MiB");
    ensure!(pages <= PAGES_MAX, "--size: expected at most {}", figures::bytes(PAGES_MAX * PAGE as u64));
    ensure!(
        folder.is_dir(),
        "--folder {place}: no such folder\nhelp: create it first; the bench writes its file there"
    );
    let there = statvfs(folder).map_err(cannot(&place))?;
    let free = there.f_bavail.saturating_mul(there.f_frsize);
    ensure!(
        bytes <= free,
        "the file needs {}, but {place} has {} free\nhelp: use a smaller --size or another --folder",
        figures::bytes(bytes),
        figures::bytes(free)
    );
    tempfile::tempfile_in(folder).map_err(cannot(format!("cannot create a file in {place}")))
}
