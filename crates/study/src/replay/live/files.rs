//! Real files that a live replay reads, one for each object of the trace.

use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

use pageout_engine::PAGE_SIZE;
use pageout_workload::trace::Loaded;

use crate::error::Error;
use crate::figures;
use crate::replay::ask::Ask;

/// A file that the accesses of one object of the trace are made on.
#[derive(Debug, Clone)]
pub struct OnFile {
    /// The file.
    pub path: PathBuf,
    /// Its length, in bytes.
    pub bytes: u64,
    /// True if it was made for this, and goes where this fails.
    pub is_made: bool,
}

/// Files, of which those that were made go again unless they are kept.
pub(super) struct Files {
    pub(super) all: Vec<OnFile>,
    are_kept: Cell<bool>,
}

impl Files {
    /// No file: the accesses are made on a region.
    pub(super) fn none() -> Files {
        Files { all: Vec::new(), are_kept: Cell::new(false) }
    }

    /// One for each object of the trace.
    pub(super) fn open(ask: &Ask, trace: &Path, loaded: &Loaded) -> Result<Files, Error> {
        let objects = &loaded.footprint.objects;
        if ask.live.len() != objects.len() {
            return Err(Error::asked(format!(
                "{} has {}, but --live names {}\nhelp: repeat --live for each object, in their order{}",
                trace.display(),
                figures::counted(objects.len() as u64, "object"),
                figures::counted(ask.live.len() as u64, "file"),
                if ask.live.len() < objects.len() {
                    "; --read csv.object=[] joins all objects into one"
                } else {
                    ""
                }
            )));
        }
        let mut files = Files { all: Vec::new(), are_kept: Cell::new(false) };
        for ((at, path), object) in (0..).zip(&ask.live).zip(objects) {
            let needed = object.pages * PAGE_SIZE;
            let name = path.display();
            let is_made = ask.make && std::fs::symlink_metadata(path).is_err();
            if is_made {
                let cannot = |what: &str, error| Error::asked(format!("cannot create {name}{what}: {error}"));
                let file = File::create_new(path).map_err(|error| cannot("", error))?;
                files.all.push(OnFile { path: path.clone(), bytes: needed, is_made });
                let long = format!(" {} long", figures::bytes(needed));
                file.set_len(needed).map_err(|error| cannot(&long, error))?;
                continue;
            }
            let metadata = std::fs::metadata(path).map_err(|error| match ask.make {
                false => Error::asked(format!("{name}: {error}\nhelp: --make creates missing files")),
                true => Error::asked(format!("{name}: {error}")),
            })?;
            if !metadata.is_file() {
                return Err(Error::asked(format!("{name}: found a folder or a device, expected a file")));
            }
            if metadata.len().div_ceil(PAGE_SIZE) < object.pages {
                return Err(Error::asked(format!(
                    "{} reads page {} of object {at}, which needs a file of {}, but {name} has {}",
                    trace.display(),
                    figures::count(object.pages.saturating_sub(1)),
                    figures::bytes(needed),
                    figures::bytes(metadata.len())
                )));
            }
            files.all.push(OnFile { path: path.clone(), bytes: metadata.len(), is_made });
        }
        Ok(files)
    }

    /// Bytes of all of them, in whole pages.
    pub(super) fn bytes(files: &[OnFile]) -> u64 {
        files.iter().map(|file| file.bytes.next_multiple_of(PAGE_SIZE)).sum()
    }

    /// Leaves what was made where it is.
    pub(super) fn keep(&self) {
        self.are_kept.set(true);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in self.all.iter().filter(|file| file.is_made && !self.are_kept.get()) {
            let _ = std::fs::remove_file(&file.path);
        }
    }
}
