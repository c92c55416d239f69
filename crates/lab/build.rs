//! The build data of `pageout --version`: the profile, and the commit of a profile for measurements.
//!
//! A development build does not read the commit, because each commit would rebuild the program.

// Cargo's output folder.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::process::Command;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // For its built-in profiles Cargo reports only the base profile; the folder has the name.
    let directory = variable("OUT_DIR");
    let name = Path::new(&directory).ancestors().nth(3).and_then(Path::file_name);
    let profile = match name.map(|name| name.to_string_lossy().into_owned()) {
        Some(name) if name != "debug" => name,
        _ => "dev".to_string(),
    };
    let commit = if variable("PROFILE") == "release" { commit() } else { None };
    println!("cargo::rustc-env=PAGEOUT_PROFILE={profile}");
    println!("cargo::rustc-env=PAGEOUT_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rerun-if-changed=build.rs");
}

/// The commit of the working tree, with a mark if the sources differ from it. It is unknown without git, or outside of a repository with this file.
fn commit() -> Option<String> {
    const SOURCES: [&str; 10] = [
        "src",
        "../policy/src",
        "../rules/src",
        "../mm/src",
        "../engine/src",
        "../sim/src",
        "../workload/src",
        "../study/src",
        "../truth/src",
        "../../Cargo.lock",
    ];
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    // Whatever the answer depends on: where HEAD is, and the sources.
    let heads = ["HEAD", "logs/HEAD"].iter().filter_map(|name| git(&["rev-parse", "--git-path", name]));
    for path in heads.chain(SOURCES.map(str::to_string)).filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}
