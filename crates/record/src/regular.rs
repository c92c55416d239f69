//! Files of a folder from an unknown writer: they must be regular and within a limit. A pipe in their place never ends, and a device has no
//! size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that a text of such a folder has at most: more is none of this program's.
pub const TEXT_MAX: u64 = 1 << 30;

/// Errors: there is no such file, it is not a regular one, or it is larger than `most` bytes.
pub fn check(path: &Path, most: u64) -> io::Result<()> {
    let metadata = path.metadata()?;
    let wrong = |told: String| Err(io::Error::new(io::ErrorKind::InvalidInput, told));
    if metadata.is_dir() {
        wrong("found a directory, expected a regular file".to_string())
    } else if !metadata.is_file() {
        wrong("found a pipe, a socket or a device, expected a regular file".to_string())
    } else if metadata.len() > most {
        wrong(format!("found {} bytes, expected {most} at most", metadata.len()))
    } else {
        Ok(())
    }
}

/// Returns the text of a regular file. Errors: as of [`check`], it is unreadable, or it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    check(path, most)?;
    let mut text = String::new();
    // It may grow meanwhile.
    File::open(path)?.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let told = format!("found more than {most} bytes, expected {most} at most");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, told));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_is_no_regular_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "four");
        let refused = |path: &Path, most| read_text(path, most).unwrap_err().to_string();
        assert_eq!(refused(&file, 3), "found 4 bytes, expected 3 at most");
        assert!(refused(directory.path(), 3).contains("found a directory"));
        #[cfg(unix)]
        {
            let link = directory.path().join("link");
            std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
            assert!(refused(&link, u64::MAX).contains("expected a regular file"));
        }
    }
}
