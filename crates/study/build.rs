//! Lists the bundled scenarios: all files of `scenarios/`, with their texts. The folder is a link, so that a package of this crate has them.

// A build script writes files for Cargo.
#![allow(clippy::disallowed_methods)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = std::env::var("OUT_DIR").unwrap_or_default();
    bring_scenarios(&Path::new(&directory).join("scenarios.rs"));
}

/// Writes a list of all files of `scenarios/`: the path of each there, and its text.
fn bring_scenarios(list: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = files_below(&folder);
    files.sort();
    let mut text = "&[\n".to_string();
    for file in files.iter().filter(|file| file.extension().is_some_and(|suffix| suffix == "toml")) {
        let name = file.strip_prefix(&folder).expect("it is below").to_string_lossy().replace('\\', "/");
        let _ = writeln!(text, "    ({name:?}, include_str!({:?})),", file.to_string_lossy());
    }
    std::fs::write(list, text + "]\n").expect("cargo has made the directory");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .expect("the repository has it")
        .map(|entry| entry.expect("it can be read").path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
