//! The files of `scenarios/` as they were when the program was built: it has them wherever it is run. Paths are below `scenarios/`.

/// Paths, in order, and texts.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The text of the file with this path.
pub fn shipped(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, text)| *text)
}
