//! A demonstration of five minutes. It reads one trace over a file four times the memory, through `pread`, `mmap` and this crate. It repeats the
//! trace in the simulator, whose counters are the same, and shows the results of other policies. `cargo run --release
//! -p pageout-compared --example five-minutes [FOLDER]`.
//!
//! A file of 256 MiB is made in the folder, by default the system's for temporary files, and removed. `pread` and `mmap` have all the memory of the
//! machine for their pages, without a limit here. `pageout bench` gives them as little as this crate has.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that measures, and ends where it can't"
)]

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pageout::{Limits, Memory, Open};
use pageout_sim::LoneReader;
use pageout_workload::{Access, AccessStream, InMemory};

const PAGE: usize = 4096;
const MIB: u64 = 1 << 20;
const FILE_PAGES: u64 = 65_536;
const LIMIT: u64 = 64 * MIB;
const POLICY: &str = "mglru@6.12";
/// Samples of memory in a run.
const SAMPLES: usize = 8;

/// A file that goes with this value.
struct Made(PathBuf);

impl Made {
    fn new(folder: &Path) -> Made {
        let made = Made(folder.join(format!("pageout-five-minutes-{}", std::process::id())));
        let file = File::create(&made.0).unwrap();
        let mut bytes = vec![0x5e; PAGE];
        for page in 0..FILE_PAGES {
            bytes[..8].copy_from_slice(&page.to_le_bytes());
            file.write_all_at(&bytes, page * PAGE as u64).unwrap();
        }
        file.sync_all().unwrap();
        made
    }

    /// Has the system forget what it has of the file.
    fn forget(&self) {
        let file = File::open(&self.0).unwrap();
        // SAFETY: the call takes a file that is open, and numbers.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file as the system maps it.
struct Mapped(*const u8);

impl Mapped {
    fn new(made: &Made) -> Mapped {
        let file = File::open(&made.0).unwrap();
        let bytes = FILE_PAGES as usize * PAGE;
        // SAFETY: a new mapping at an address that the system chooses; the file is as long, and no other code knows of it.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        assert_ne!(at, libc::MAP_FAILED, "the file can't be mapped");
        Mapped(at.cast())
    }

    fn copy(&self, page: u64, to: &mut [u8]) {
        assert!(page < FILE_PAGES && to.len() == PAGE);
        // SAFETY: the page lies in the mapping, which is never written and which lives as long as `self`.
        unsafe { std::ptr::copy_nonoverlapping(self.0.add(page as usize * PAGE), to.as_mut_ptr(), PAGE) };
    }

    /// Pages of the file that the system has in its page cache.
    fn cached(&self) -> u64 {
        let mut there = vec![0_u8; FILE_PAGES as usize];
        // SAFETY: the range is the mapping, and there is a byte for each of its pages to write to.
        unsafe { libc::mincore(self.0.cast_mut().cast(), FILE_PAGES as usize * PAGE, there.as_mut_ptr()) };
        there.iter().map(|byte| u64::from(byte & 1)).sum()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and a copy from it borrows it.
        unsafe { libc::munmap(self.0.cast_mut().cast(), FILE_PAGES as usize * PAGE) };
    }
}

/// Pages of lookups by Zipf's law, and of runs from front to back, as a backup or a report makes them.
fn trace() -> Vec<u64> {
    let mut state = 1_u64;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut pages = Vec::new();
    while pages.len() < 300_000 {
        if unit() < 0.001 {
            let first = (unit() * (FILE_PAGES - 512) as f64) as u64;
            pages.extend(first..first + 512);
        }
        // The inverse of the sums of 1 / rank, nearly.
        let rank = ((FILE_PAGES as f64).powf(unit()) as u64).min(FILE_PAGES - 1);
        pages.push(rank.wrapping_mul(2_654_435_761) % FILE_PAGES);
    }
    pages
}

/// A line of a file of /proc/self, as a number.
fn own(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one place that it is given, which lives until it returns.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads the trace in one way, and prints what that took.
fn run(name: &str, made: &Made, pages: &[u64], mut read: impl FnMut(u64, &mut [u8])) {
    let looked_at = Mapped::new(made);
    let mut buf = vec![0; PAGE];
    let (before, device, cpu, began) =
        (own("status", "VmRSS:"), own("io", "read_bytes:"), cpu_ns(), Instant::now());
    let (mut resident, mut cached) = (Vec::new(), 0);
    for part in pages.chunks(pages.len().div_ceil(SAMPLES)) {
        for &page in part {
            read(page, &mut buf);
            assert_eq!(black_box(&buf)[..8], page.to_le_bytes(), "page {page} is read as another");
        }
        resident.push(own("status", "VmRSS:").saturating_sub(before) >> 10);
        cached = looked_at.cached() * PAGE as u64 / MIB;
    }
    let (took, cpu) = (began.elapsed(), cpu_ns() - cpu);
    let line: Vec<String> = resident.iter().map(u64::to_string).collect();
    println!(
        "{name:<9} {:>9.0} {:>10.2} us {:>12} MiB   {:<36} {cached:>8} MiB",
        pages.len() as f64 / took.as_secs_f64(),
        cpu as f64 / 1e3 / pages.len() as f64,
        (own("io", "read_bytes:") - device) / MIB,
        line.join(" "),
    );
}

/// The group's `memory.stat` of a simulated machine that is built as the live one, after the same trace; and pages that its device has read.
fn simulated(config: &pageout_engine::Config, pages: &[u64]) -> (String, u64) {
    let mut reader = LoneReader::new(config, "reader").unwrap();
    reader.write("/sys/fs/cgroup/reader/memory.max", &LIMIT.to_string()).unwrap();
    reader.open(FILE_PAGES, false).unwrap();
    let accesses: Arc<[Access]> = pages.iter().map(|&page| Access::new(0, page, false)).collect();
    let source = move |_| Ok(Box::new(InMemory::new(Arc::clone(&accesses))) as Box<dyn AccessStream>);
    let mut machine = reader.run(Box::new(source), &mut ()).unwrap();
    let read = machine.report().devices[0].pages_read;
    (machine.engine_mut().read_file("/sys/fs/cgroup/reader/memory.stat").unwrap(), read)
}

fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let (made, pages) = (Made::new(&folder), trace());
    println!("{} reads of 4 KiB over 256 MiB: lookups by Zipf's law, and runs of 2 MiB\n", pages.len());
    println!(
        "{:<9} {:>9} {:>13} {:>16}   {:<36} {:>12}",
        "", "reads/s", "CPU a read", "from the device", "MiB of RSS more, in eighths", "system cache"
    );
    made.forget();
    let system = File::open(&made.0).unwrap();
    run("pread", &made, &pages, |page, buf| system.read_exact_at(buf, page * PAGE as u64).unwrap());
    made.forget();
    let mapped = Mapped::new(&made);
    run("mmap", &made, &pages, |page, buf| mapped.copy(page, buf));
    drop(mapped);
    made.forget();
    // One thread, without background readahead at varying times: so the simulator can be compared.
    let memory = Memory::builder().budget(LIMIT + 16 * MIB).policy(POLICY).io_threads(0).build().unwrap();
    let group = memory.group("reader", Limits { max: Some(LIMIT), ..Limits::NONE }).unwrap();
    let file = memory.open(&made.0, Open::read().group(&group)).unwrap();
    run("pageout", &made, &pages, |page, buf| file.read_at(buf, page * PAGE as u64).unwrap());
    println!(
        "\npread and mmap end with the whole file in memory, if it fits; pageout has 64 MiB of it, and reports it:"
    );
    println!("{}, memory.max of 64 MiB", memory.describe());

    let live = group.read("memory.stat").unwrap();
    let (stat, _) = simulated(memory.config(), &pages);
    let differing: Vec<_> =
        live.lines().zip(stat.lines()).filter(|(live, simulated)| live != simulated).collect();
    println!(
        "\nthe same trace in the simulator: of {} lines of memory.stat {} differ",
        live.lines().count(),
        differing.len()
    );
    differing.iter().for_each(|(live, simulated)| println!("  {live} live, {simulated} simulated"));

    println!("\npages that would have been read from the device, by policy:");
    for policy in ["lru", "fifo", "sieve", "s3-fifo", "classic@6.12", "mglru@6.12", "mglru@7.1"] {
        let Ok(other) = Memory::builder().budget(LIMIT + 16 * MIB).policy(policy).io_threads(0).build()
        else {
            continue;
        };
        println!("  {policy:<14} {:>9}", simulated(other.config(), &pages).1);
    }
}
