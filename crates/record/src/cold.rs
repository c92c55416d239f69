//! Files whose pages leave the page cache before a recording, so that each run starts with the same files in memory.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};

use crate::error::Error;

/// Drops the pages of files, and of all files below folders, from memory. Dirty pages are written before. Pages that a program has mapped stay.
/// Returns the number of files. Errors: a pattern is invalid or names nothing; a file can't be read.
pub fn forget(patterns: &[String]) -> Result<u64, Error> {
    let mut files = 0;
    for pattern in patterns {
        let paths =
            glob::glob(pattern).map_err(|error| Error::Asked(format!("--cold {pattern}: {error}")))?;
        let mut left: Vec<PathBuf> = paths.flatten().collect();
        if left.is_empty() {
            return Err(Error::Asked(format!(
                "--cold {pattern}: found no such file, expected at least one\nhelp: quote a pattern, or the shell replaces it; a relative path starts at the current folder"
            )));
        }
        while let Some(path) = left.pop() {
            let kind = std::fs::symlink_metadata(&path).map_err(|source| Error::reading(&path, source))?;
            if kind.is_dir() {
                let entries = std::fs::read_dir(&path).map_err(|source| Error::reading(&path, source))?;
                left.extend(entries.flatten().map(|entry| entry.path()));
            } else if kind.is_file() {
                drop_pages(&path)?;
                files += 1;
            }
        }
    }
    Ok(files)
}

fn drop_pages(path: &Path) -> Result<(), Error> {
    let drop = || {
        let file = File::open(path)?;
        // Dirty pages stay otherwise.
        file.sync_data()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    };
    drop().map_err(|source| Error::reading(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_files_are_counted_below_folders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("deep/er")).unwrap();
        for name in ["a", "deep/b", "deep/er/c"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let all = folder.path().display().to_string();
        assert_eq!(forget(&[all.clone(), format!("{all}/a*")]).unwrap(), 4);
        let error = forget(&[format!("{all}/nothing*")]).unwrap_err().to_string();
        assert!(error.contains("--cold") && error.contains("found no such file"), "{error}");
    }
}
