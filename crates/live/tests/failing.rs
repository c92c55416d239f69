//! The environment variable `PAGEOUT_FAILING`, which a library built with the feature `failing` reads: files fail as it says, in any program.
//!
//! The test starts itself with the variable set (`child`), and the child says how its reads and writes ended.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that make files")]

use std::path::PathBuf;
use std::process::Command;

use pageout::{Backend, Error, Memory, Open};

const PAGE: usize = 4096;

/// Runs `child` with a value of the variable, and returns what it says.
fn said_by_child(name: &str, value: &str) -> String {
    let path = path(name);
    let (path, healed) = (path.to_str().unwrap(), path.with_extension("healed"));
    let value = value.replace("HEALED", healed.to_str().unwrap());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env("PAGEOUT_FAILING", value)
        .env("PAGEOUT_TEST_FILE", path)
        .output()
        .unwrap();
    let _ = (std::fs::remove_file(path), std::fs::remove_file(healed));
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let said = said.lines().filter_map(|line| line.split_once("said: ")).map(|(_, said)| said);
    said.collect::<Vec<_>>().join(", ")
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("pageout-env-{name}-{}", std::process::id()))
}

fn in_words(outcome: Result<(), Error>) -> String {
    match outcome {
        Ok(()) => "well".to_owned(),
        Err(Error::Io { source, .. } | Error::Sync { source, .. }) => match source.raw_os_error() {
            Some(errno) => errno.to_string(),
            None => source.to_string(),
        },
        Err(error) => format!("{error:?}"),
    }
}

/// Writes 1 MiB, syncs, lets the fault end, syncs again, and reads.
#[test]
fn child() {
    let Some(path) = std::env::var_os("PAGEOUT_TEST_FILE").map(PathBuf::from) else { return };
    for backend in [Backend::Threads, Backend::Uring] {
        let healed = path.with_extension("healed");
        let _ = (std::fs::remove_file(&path), std::fs::remove_file(&healed));
        let memory = Memory::builder().budget(32 << 20).files(64 << 20).backend(backend).build().unwrap();
        let file = match memory.open(&path, Open::read_write().create(true).buffered(true)) {
            Ok(file) => file,
            Err(error) => {
                println!("said: {}", in_words(Err(error)));
                continue;
            }
        };
        let written = vec![5; 1 << 20];
        let outcome = file.write_at(&written, 0).and_then(|()| file.sync_data());
        println!("said: {}", in_words(outcome));
        std::fs::write(&healed, "").unwrap();
        let _ = file.sync_data();
        file.acknowledge().unwrap();
        println!("said: {}", in_words(file.sync_data()));
        memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
        let mut read = vec![0; 64 * PAGE];
        let outcome = (0..4).try_for_each(|at| file.read_at(&mut read, at * 64 * PAGE as u64));
        println!("said: {}", in_words(outcome));
        assert!(std::fs::read(&path).unwrap() == written);
    }
}

#[test]
fn writes_fail_until_the_file_exists() {
    let said = said_by_child("full", "write=ENOSPC after=256K until-file=HEALED");
    let enospc = libc::ENOSPC;
    assert_eq!(said, format!("{enospc}, well, well, {enospc}, well, well"));
}

#[test]
fn reads_fail_behind_the_first_bytes() {
    let said = said_by_child("eio", "read=EIO after=64K; match=pageout-env-eio");
    assert_eq!(said, format!("well, well, {0}, well, well, {0}", libc::EIO));
}

#[test]
fn file_that_does_not_match_does_not_fail() {
    let said = said_by_child("other", "read=EIO; write=EIO; flush=EIO; match=pageout-env-another");
    assert_eq!(said, "well, well, well, well, well, well");
}

#[test]
fn late_and_short_requests_change_no_byte() {
    let said = said_by_child("short", "seed=7 short=30 delay_ms=1 reorder=10");
    assert_eq!(said, "well, well, well, well, well, well");
}

#[test]
fn malformed_value_is_an_error_of_open() {
    let said = said_by_child("malformed", "write=ENOSPACE");
    let wrong = "unknown error `ENOSPACE` in `write=ENOSPACE`";
    assert_eq!(said, format!("{wrong}, {wrong}"));
}
