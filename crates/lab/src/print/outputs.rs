//! Checks of the files that a command writes: a result never replaces an input or another result.

use std::path::{Path, PathBuf};

use anyhow::bail;

/// Rejects outputs, each named by its option, that are the same file as an input or another output, by any name.
pub(crate) fn check(outputs: &[(&str, &Path)], inputs: &[&Path]) -> anyhow::Result<()> {
    for (at, &(option, path)) in outputs.iter().enumerate() {
        if let Some(input) = inputs.iter().find(|input| is_same_file(input, path)) {
            let read = if *input == path { String::new() } else { format!(" (as {})", input.display()) };
            bail!(
                "{option} {}: this file is an input{read}, and would be lost\nhelp: write to another file",
                path.display()
            );
        }
        if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| will_be_same_file(other, path)) {
            bail!("{option} {}: {other} writes to the same file\nhelp: use two files", path.display());
        }
    }
    Ok(())
}

/// Returns true if both are one regular file, by whatever names.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let (Ok(metadata), Ok(others)) = (one.metadata(), other.metadata()) else { return false };
    #[cfg(unix)]
    let is_same = {
        use std::os::unix::fs::MetadataExt;
        (metadata.dev(), metadata.ino()) == (others.dev(), others.ino())
    };
    #[cfg(not(unix))]
    let is_same = one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other));
    is_same && metadata.is_file() && others.is_file()
}

/// Returns true if both will be one file; they need not be there yet. Standard output, pipes and devices take more than one result.
fn will_be_same_file(one: &Path, other: &Path) -> bool {
    let is_replaced =
        |path: &Path| path != Path::new("-") && path.metadata().is_ok_and(|data| data.is_file());
    match (one.exists(), other.exists()) {
        (true, true) => is_replaced(one) && is_same_file(one, other),
        (false, false) => place(one).is_some_and(|place_of_one| place(other) == Some(place_of_one)),
        _ => false,
    }
}

/// The future path of a missing file, if its folder exists.
fn place(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize().ok()?;
    (path != Path::new("-")).then(|| path.file_name().map(|name| directory.join(name)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_to_be_are_one() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("x.csv");
        let around = directory.path().join(".").join("x.csv");
        assert!(will_be_same_file(&plain, &around));
        assert!(!will_be_same_file(&plain, &directory.path().join("y.csv")));
        std::fs::write(&plain, "").unwrap();
        assert!(will_be_same_file(&plain, &around));
        assert!(!will_be_same_file(Path::new("-"), Path::new("-")));
    }
}
