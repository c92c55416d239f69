//! The table of regions [live-3 11]: `cargo run --release -p pageout-compared --example regions [FOLDER [ACCESSES]]`. One row per question, with the limit that
//! it must keep:
//!
//! - a copy out of a resident region, next to memcpy and to a cache of copies;
//! - zswap on, next to off: device reads and time for text, CPU time for pages that do not shrink, and compressions per stored page;
//! - the CPU time per fault of a region of twice its memory, with the swap file on a tmpfs and in the folder;
//! - the longest hold of the engine's lock.
//!
//! Each row has five interleaved rounds. Swap files are in the folder, whose default is the system's for temporary files. The rows of mapped regions are in
//! the example `mapped` of the package `pageout`. The kernel's own swap is not measured: that needs a cgroup, and privileges.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that measures, and ends on an error"
)]

#[path = "../../examples/measured/head.rs"]
mod measured;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use measured::{MIB, PAGE, cpu, draws, middle, process_time};
use pageout::{Builder, Error, Memory, Region, RegionOptions, Zswap};
use quick_cache::sync::Cache;

const ROUNDS: usize = 5;
const RESIDENT: usize = 128 * MIB;
const REGION: usize = 256 * MIB;

/// A row: median, range, and the limit of the median.
fn row(name: &str, unit: &str, figures: &[f64], limit: Option<f64>) {
    let (median, least, most) = middle(figures);
    let limit = limit.map_or_else(String::new, |limit| {
        let verdict = if median <= limit { "holds" } else { "does not hold" };
        format!("at most {limit}: {verdict}")
    });
    println!("  {name:44} {median:9.2} ({least:.2}-{most:.2}) {unit:12} {limit}");
}

fn of<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> Vec<f64> {
    rounds.iter().map(figure).collect()
}

/// The contents of a page: phrases and numbers, which lz4 shrinks to 1 / 2.8, or bytes that do not shrink.
fn contents(page: u64, is_text: bool) -> Vec<u8> {
    const PHRASES: [&str; 16] = [
        "static inline ",
        "struct page *",
        "struct folio ",
        "return -ENOMEM",
        "if (unlikely(",
        ") {\n\t\t",
        "->flags & ",
        "unsigned long ",
        "int nr = ",
        "= NULL;\n\t",
        "lruvec->lists[",
        "mem_cgroup_",
        "for (i = 0; ",
        "++;\n\t}\n",
        "/* Pages of ",
        "spin_lock(&",
    ];
    let mut state = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut bytes = Vec::with_capacity(PAGE + 64);
    while bytes.len() < PAGE {
        match is_text {
            true => {
                bytes.extend_from_slice(PHRASES[(next() % 16) as usize].as_bytes());
                if next() % 8 == 0 {
                    bytes.extend_from_slice(format!("{:x}", next()).as_bytes());
                }
            }
            false => bytes.extend_from_slice(&next().to_le_bytes()[..4]),
        }
    }
    bytes.truncate(PAGE);
    bytes[..8].copy_from_slice(&page.to_le_bytes());
    bytes
}

fn resident(accesses: usize) -> Result<(), Error> {
    let memory = Memory::builder().budget((RESIDENT + RESIDENT / 8 + 8 * MIB) as u64).build()?;
    let region = memory.region(RESIDENT as u64, RegionOptions::new())?;
    let mut plain = vec![0; RESIDENT];
    let cache: Cache<u64, Arc<[u8]>> = Cache::new(2 * RESIDENT / PAGE);
    for (page, bytes) in plain.chunks_mut(PAGE).enumerate() {
        bytes.copy_from_slice(&contents(page as u64, false));
        region.write_at(bytes, (page * PAGE) as u64)?;
        cache.insert(page as u64, Arc::from(&*bytes));
    }
    let pages = draws(RESIDENT / PAGE, Some(0.8), accesses);
    let each = |act: &mut dyn FnMut(usize, &mut [u8])| {
        let mut buf = vec![0; PAGE];
        let time = cpu(|| pages.iter().for_each(|&page| act(page as usize, &mut buf)));
        std::hint::black_box(buf);
        time / pages.len() as f64
    };
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|_| {
            [
                each(&mut |page, buf| buf.copy_from_slice(&plain[page * PAGE..][..PAGE])),
                each(&mut |page, buf| region.read_at(buf, (page * PAGE) as u64).unwrap()),
                each(&mut |page, buf| buf.copy_from_slice(&cache.get(&(page as u64)).unwrap())),
            ]
        })
        .collect();
    println!("resident, {} MiB, Zipf 0.8:", RESIDENT / MIB);
    row("memcpy", "ns per page", &of(&rounds, |round| round[0]), None);
    row("region, copy", "ns per page", &of(&rounds, |round| round[1]), None);
    row("quick_cache, get and copy", "ns per page", &of(&rounds, |round| round[2]), None);
    row("region / memcpy", "", &of(&rounds, |round| round[1] / round[0]), Some(1.25));
    row("region / quick_cache", "", &of(&rounds, |round| round[1] / round[2]), Some(1.3));
    Ok(())
}

/// Figures of one run over a region of twice its memory.
struct Run {
    /// Pages that were missing.
    misses: f64,
    device_reads: f64,
    device_bytes: f64,
    /// Nanoseconds of the process's CPU time, and of the wall clock.
    cpu: f64,
    time: f64,
    compressions_per_store: f64,
    longest_hold: Duration,
}

fn with_swap(folder: &Path, configure: impl Fn(Builder) -> Builder) -> Result<Memory, Error> {
    let build = |is_buffered: bool| {
        let builder =
            Memory::builder().budget((REGION / 2) as u64).files(REGION as u64).lock_held_by_cpu(true);
        configure(builder.swap_file(folder, 2 * REGION as u64).swap_buffered(is_buffered)).build()
    };
    match build(false) {
        Err(Error::DirectRefused { .. }) => build(true),
        built => built,
    }
}

fn access(region: &Region, page: u64, is_write: bool, buf: &mut [u8]) {
    let at = page * PAGE as u64;
    region.read_at(buf, at).unwrap();
    assert_eq!(buf[..8], page.to_le_bytes(), "page {page}");
    if is_write {
        region.write_at(&buf[..8], at).unwrap();
    }
}

fn run(memory: &Memory, is_text: bool, pages: &[u64]) -> Run {
    let region = memory.region(REGION as u64, RegionOptions::new()).unwrap();
    for page in 0..(REGION / PAGE) as u64 {
        region.write_at(&contents(page, is_text), page * PAGE as u64).unwrap();
    }
    let before = memory.stats().unwrap();
    let (cpu_before, began, mut buf) = (process_time(), Instant::now(), vec![0; PAGE]);
    pages.iter().enumerate().for_each(|(at, &page)| access(&region, page, at % 8 == 0, &mut buf));
    let (cpu, time, after) = (process_time() - cpu_before, began.elapsed(), memory.stats().unwrap());
    let stores = (after.zswap_stores - before.zswap_stores).max(1);
    Run {
        misses: (after.misses - before.misses) as f64,
        device_reads: (after.device_reads - before.device_reads) as f64,
        device_bytes: (after.device_bytes + after.device_bytes_written
            - before.device_bytes
            - before.device_bytes_written) as f64,
        cpu,
        time: time.as_nanos() as f64,
        compressions_per_store: (after.zswap_compressions - before.zswap_compressions) as f64 / stores as f64,
        longest_hold: after.lock_held.quantile(1.0),
    }
}

fn compressed(folder: &Path, accesses: usize) -> Result<(), Error> {
    let pages = draws(REGION / PAGE, Some(0.8), accesses);
    for is_text in [true, false] {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let zswap = |builder: Builder| builder.zswap(Zswap::lz4()).sysctl("zswap.max_pool_percent", 50);
            let on = run(&with_swap(folder, zswap)?, is_text, &pages);
            let off = run(&with_swap(folder, |builder| builder)?, is_text, &pages);
            rounds.push((on, off));
        }
        let ratio = |figure: fn(&Run) -> f64| of(&rounds, |(on, off)| figure(on) / figure(off).max(1.0));
        let compressions = of(&rounds, |(on, _)| on.compressions_per_store);
        let holds = of(&rounds, |(on, _)| on.longest_hold.as_secs_f64() * 1e6);
        println!(
            "zswap (lz4) on / off, {}, {} MiB in half as much memory, half of it for the pool:",
            if is_text { "text" } else { "pages that do not shrink" },
            REGION / MIB
        );
        row("device reads", "", &ratio(|run| run.device_reads), is_text.then_some(0.5));
        row("wall-clock time", "", &ratio(|run| run.time), is_text.then_some(0.9));
        row("CPU time", "", &ratio(|run| run.cpu), (!is_text).then_some(1.3));
        if is_text {
            row("compressions per stored page", "", &compressions, Some(1.1));
        }
        row("longest hold of the lock", "us of CPU", &holds, Some(300.0));
    }
    Ok(())
}

fn faults(folder: &Path, accesses: usize) -> Result<(), Error> {
    let pages = draws(REGION / PAGE, None, accesses);
    for (name, folder) in [("/dev/shm", Path::new("/dev/shm")), ("the folder", folder)] {
        if !folder.is_dir() {
            continue;
        }
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|_| with_swap(folder, |builder| builder).map(|memory| run(&memory, false, &pages)))
            .collect::<Result<_, _>>()?;
        println!("faults, half the memory, uniform, swap file in {name}:");
        row("CPU time per miss", "us", &of(&rounds, |run| run.cpu / run.misses / 1e3), None);
        row(
            "device bytes per miss",
            "pages",
            &of(&rounds, |run| run.device_bytes / run.misses / PAGE as f64),
            None,
        );
        row(
            "longest hold of the lock",
            "us of CPU",
            &of(&rounds, |run| run.longest_hold.as_secs_f64() * 1e6),
            Some(300.0),
        );
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let accesses = args.next().map_or(200_000, |count| count.parse().expect("a number of accesses"));
    resident(accesses)?;
    compressed(&folder, accesses)?;
    faults(&folder, accesses)
}
