//! The files of `scenarios/` as they were when the program was built: it has them wherever it is run.

/// Their paths below `scenarios/`, in order, and their texts.
pub(crate) const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The text of one.
pub(crate) fn shipped(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, text)| *text)
}
