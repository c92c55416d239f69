//! A process without descriptors left: no ring can be made, and everything is read and written all the same.
//!
//! The test starts itself with a limit (`child`), opens files until no more can be opened, and has more threads read and sync than there are rings.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that make files")]

use std::path::PathBuf;
use std::process::Command;

use pageout::{Backend, Memory, Open, ReadAt};

const PAGE: usize = 4096;
const PAGES: u64 = 4096;
const THREADS: u64 = 6;

fn run_child(failing: &str) {
    let path =
        std::env::temp_dir().join(format!("pageout-descriptors-{}{}", std::process::id(), failing.len()));
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" --exact child --nocapture --test-threads=1"])
        .arg(std::env::current_exe().unwrap())
        .env("PAGEOUT_TEST_FILE", &path)
        .env("PAGEOUT_FAILING", failing)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&path);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("said: well"), "{output:?}");
}

#[test]
fn child() {
    let Some(path) = std::env::var_os("PAGEOUT_TEST_FILE").map(PathBuf::from) else { return };
    std::fs::write(&path, (0..PAGES).flat_map(|page| [page as u8; PAGE]).collect::<Vec<_>>()).unwrap();
    let memory = Memory::builder().budget(8 << 20).backend(Backend::Uring).build().unwrap();
    let file = memory.open(&path, Open::read_write().random().buffered(true)).unwrap();
    let mut held = Vec::new();
    while let Ok(null) = std::fs::File::open("/dev/null") {
        held.push(null);
    }
    assert!(held.len() < 64);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let file = &file;
            scope.spawn(move || {
                for round in 0..50 {
                    // Each thread has its own pages.
                    let pages = (0..30).map(|at| (at * 50 + round) % (PAGES / THREADS) * THREADS + thread);
                    let mut bufs = [[0; PAGE]; 30];
                    let reads = bufs.iter_mut().zip(pages.clone());
                    let mut reads: Vec<_> =
                        reads.map(|(buf, page)| ReadAt { buf, offset: page * PAGE as u64 }).collect();
                    file.read_batch(&mut reads).unwrap();
                    for (page, buf) in pages.zip(bufs) {
                        assert!(buf == [page as u8; PAGE], "page {page}");
                        file.write_at(&buf, page * PAGE as u64).unwrap();
                    }
                    if round % 10 == 0 {
                        file.sync_data().unwrap();
                    }
                }
            });
        }
    });
    assert!(std::fs::File::open("/dev/null").is_err(), "there was one left all the time");
    println!("said: well");
}

#[test]
fn process_without_descriptors_reads_and_writes_well() {
    run_child("");
}

#[cfg(feature = "failing")]
#[test]
fn failing_device_without_descriptors_reads_and_writes_well() {
    run_child("short=20");
}
