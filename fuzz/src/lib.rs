//! The fuzz targets: one function a target, from bytes to nothing, that panics when a promise is broken.
//!
//! ```text
//!   targets/NAME.rs ─ libFuzzer ─┐
//!                                ├─▶ run(NAME, bytes) ─▶ TARGETS
//!   cargo test ─ regressions/ ───┘
//! ```
//! The functions know nothing of libFuzzer, so that whatever it finds is replayed by a plain `cargo test`, and can be
//! looked at in a debugger.
#![forbid(unsafe_code)]

mod scenario; // scenario files: read, checked, built, and run for a moment
mod pgt; // the project's own trace format, with checksums that are right
mod lru_gen; // dumps of lru_gen: read, printed, read again

use pageout_lab::commands::vmscan_report;
use pageout_workload::fuzz_entry;

/// A target: must neither panic nor run away, whatever the bytes.
pub type Target = fn(&[u8]);

/// All targets. The binary in `targets/`, the seeds in `corpus/` and the former failures in `regressions/` have their names.
pub const TARGETS: &[(&str, Target)] = &[
    ("engine", pageout_conformance::run),
    ("scenario", scenario::run),
    ("pgt", pgt::run),
    ("lru_gen", lru_gen::run),
    ("ftrace", vmscan_report::drain),
    ("oracle_general", fuzz_entry::oracle_general),
    ("lcs", fuzz_entry::lcs),
    ("vscsi", fuzz_entry::vscsi),
    ("csv", fuzz_entry::csv),
    ("fio_iolog", fuzz_entry::fio_iolog),
    ("words", fuzz_entry::words),
    ("pages_text", fuzz_entry::pages_text),
    ("pages_u32", fuzz_entry::pages_u32),
    ("pages_u64", fuzz_entry::pages_u64),
    ("detected", fuzz_entry::detected),
];

/// Runs the target of this name.
pub fn run(name: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = found.unwrap_or_else(|| panic!("there is no target {name}"));
    target(bytes);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs everything in a folder of `folder/TARGET/`.
    fn replay(folder: &str) {
        for (name, target) in super::TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
            let Ok(inputs) = std::fs::read_dir(folder) else { continue };
            for input in inputs {
                let path = input.expect("the folder can be read").path();
                // What the harness says of a failing test is only what is printed.
                println!("{}", path.display());
                target(&std::fs::read(path).expect("the input can be read"));
            }
        }
    }

    #[test]
    fn what_failed_once_passes_now() {
        replay("regressions");
    }

    #[test]
    fn every_seed_passes() {
        replay("corpus");
    }
}
