//! The fuzz targets: one function a target, from bytes to nothing, that panics when a promise is broken.
//!
//! ```text
//!   bin/fuzz.rs ─ libFuzzer ───┐
//!                              ├─▶ targets()
//!   cargo test ─ regressions/ ─┘
//! ```
//! The functions don't depend on libFuzzer, so that a plain `cargo test` replays its findings, also in a debugger.
#![forbid(unsafe_code)]

mod scenario; // scenario files: read, checked, built, and run for a moment
mod pgt; // the project's own trace format, with checksums that are right
mod lru_gen; // dumps of lru_gen: read, printed, read again

use pageout_lab::commands::vmscan_report;
use pageout_workload::fuzz_entry;
use pageout_workload::trace::Format;

/// A target: must neither panic nor run away, whatever the bytes.
pub type Target = Box<dyn Fn(&[u8]) + Send + Sync>;

/// All targets. The seeds in `corpus/` and the former failures in `regressions/` have their names.
pub fn targets() -> Vec<(String, Target)> {
    const OTHERS: &[(&str, fn(&[u8]))] = &[
        ("engine", pageout_conformance::run),
        ("scenario", scenario::run),
        ("detected", fuzz_entry::detected),
        ("lru_gen", lru_gen::run),
        ("ftrace", vmscan_report::drain),
    ];
    let others = OTHERS.iter().map(|&(name, run)| (name.to_string(), Box::new(run) as Target));
    let formats = Format::ALL.iter().map(|&format| {
        let read: Target = match format {
            Format::Pgt => Box::new(pgt::run),
            _ => Box::new(move |bytes| fuzz_entry::read_as(format, bytes)),
        };
        (format.name().replace('-', "_"), read)
    });
    others.chain(formats).collect()
}

/// The target of this name.
pub fn by_name(name: &str) -> Option<Target> {
    targets().into_iter().find(|(known, _)| known == name).map(|(_, target)| target)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs everything in a folder of `folder/TARGET/`.
    fn replay(folder: &str) {
        for (name, target) in super::targets() {
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
