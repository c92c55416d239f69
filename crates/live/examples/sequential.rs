//! What does it cost to read a file once, from its beginning to its end? `cargo run --release -p pageout --example sequential [FOLDER [ROUNDS]]`
//! answers this for the page cache, and for read(2) through the system's page cache. It prints MiB per second and CPU time per GiB.
//!
//! A file of 1 GiB is made in the folder, by default the system's for temporary files, and removed. It is dropped from the system's page cache before each run.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that ends where it can't measure"
)]

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pageout::{Backend, Memory, Open};

const FILE_BYTES: u64 = 1 << 30;
const BUDGET: u64 = 64 << 20;

/// Seconds of CPU that the process has used.
fn cpu() -> f64 {
    // SAFETY: zeroes are a value of it, and the call writes to it alone.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn make_cold(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
}

/// MiB a second, and seconds of CPU per GiB.
fn measure(path: &Path, read_all: impl FnOnce()) -> (f64, f64) {
    make_cold(path);
    let (began, before) = (Instant::now(), cpu());
    read_all();
    let seconds = began.elapsed().as_secs_f64();
    (
        FILE_BYTES as f64 / seconds / f64::from(1 << 20),
        (cpu() - before) * (1 << 30) as f64 / FILE_BYTES as f64,
    )
}

fn by_cache(path: &Path, backend: Backend, buf: &mut [u8]) {
    let memory = Memory::builder().budget(BUDGET).backend(backend).build().unwrap();
    let file = memory.open(path, Open::read()).unwrap();
    for offset in (0..FILE_BYTES).step_by(buf.len()) {
        file.read_at(buf, offset).unwrap();
    }
}

fn by_system(path: &Path, buf: &mut [u8]) {
    let mut file = std::fs::File::open(path).unwrap();
    while file.read(buf).unwrap() > 0 {}
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds: usize = args.next().map_or(5, |text| text.parse().unwrap());
    let path = folder.join("pageout-sequential");
    let mut file = std::fs::File::create(&path).unwrap();
    for mib in 0..FILE_BYTES >> 20 {
        file.write_all(&vec![mib as u8; 1 << 20]).unwrap();
    }
    file.sync_all().unwrap();
    println!("reads of   what      MiB/s (min to max)        CPU s/GiB (min to max)");
    for bytes in [4096, 65_536] {
        let mut results = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            let mut buf = vec![0; bytes];
            results[0].push(measure(&path, || by_system(&path, &mut buf)));
            results[1].push(measure(&path, || by_cache(&path, Backend::Threads, &mut buf)));
            results[2].push(measure(&path, || by_cache(&path, Backend::Any, &mut buf)));
        }
        for (name, results) in ["read(2)", "threads", "io_uring"].iter().zip(&results) {
            let spread = |of: fn(&(f64, f64)) -> f64| {
                let mut all: Vec<f64> = results.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                (all[all.len() / 2], all[0], all[all.len() - 1])
            };
            let ((mib, mib_least, mib_most), (cpu, cpu_least, cpu_most)) =
                (spread(|of| of.0), spread(|of| of.1));
            println!(
                "{bytes:>8}   {name:<8} {mib:>6.0} ({mib_least:.0} to {mib_most:.0})          {cpu:.2} ({cpu_least:.2} to {cpu_most:.2})"
            );
        }
    }
    std::fs::remove_file(&path).unwrap();
}
