//! Which policy suits which load? `cargo run --release -p pageout --example policies -- FOLDER [NAME=READS.u32 ...]`
//! prints the bytes that each policy reads from the device, and its CPU time, per read of a page.
//!
//! FOLDER is on a file system with direct I/O. Two files are made in it and removed. READS.u32 is a list of pages, 32
//! bits each, little-endian; `ci/figures/default-policy.py` records such lists. Memory holds about a quarter of the
//! pages. Each cell is the median of three seeds; a list has no seed and is read three times.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that ends where it can't measure"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pageout::{Error, File, Limits, Memory, Open};

const PAGE: usize = 4096;
/// Pages of the files of synthetic loads.
const PAGES: u64 = 16_384;
/// Reads of a synthetic load: those that count, and those before them.
const READS: usize = 120_000;
const WARM_UP: usize = 40_000;
/// Pages of one read of a scan, and other reads from one to the next.
const RUN: u64 = 16;
const SCAN_EVERY: usize = 64;
const SEEDS: [u64; 3] = [1, 2, 3];
const POLICIES: [&str; 10] = [
    "mglru@6.1",
    "mglru@6.12",
    "mglru@7.3",
    "classic@6.1",
    "classic@6.12",
    "classic@7.3",
    "lru",
    "fifo",
    "sieve",
    "s3-fifo",
];

/// A load: the pages of the first file, and whether a second one is scanned meanwhile.
struct Load {
    name: String,
    /// By seed, given the number of frames.
    pages: Box<dyn Fn(u64, u64) -> Vec<u64>>,
    file_pages: u64,
    is_beside_scan: bool,
    /// True if the scan belongs to another group.
    has_groups: bool,
}

/// A sequence of random numbers below 2^31.
fn drawn(seed: u64) -> impl Iterator<Item = u64> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(next(&seed), next).map(|state| state >> 33)
}

/// Pages by Zipf's law, with the frequent ones all over the file.
fn zipf(exponent: f64, seed: u64) -> Vec<u64> {
    let mut sum = 0.0;
    let sums: Vec<f64> =
        (1..=PAGES).map(|rank| (rank as f64).powf(-exponent)).map(|weight| (sum += weight, sum).1).collect();
    let page = |drawn: u64| {
        let part = drawn as f64 / (1_u64 << 31) as f64 * sum;
        sums.partition_point(|&sum| sum < part) as u64 * 7919 % PAGES
    };
    drawn(seed).take(WARM_UP + READS).map(page).collect()
}

/// Pages of a hot set of 60 % of memory, which moves on by `step` pages every 20,000 reads.
fn hot(frames: u64, step: u64, seed: u64) -> Vec<u64> {
    let page = |(read, drawn): (usize, u64)| {
        (drawn % (frames * 6 / 10) + read as u64 / 20_000 * step) * 7919 % PAGES
    };
    drawn(seed).take(WARM_UP + READS).enumerate().map(page).collect()
}

/// A loop over a quarter more pages than memory holds.
fn looped(frames: u64, seed: u64) -> Vec<u64> {
    (0..(WARM_UP + READS) as u64).map(|read| (read + seed * 1000) % (frames * 5 / 4)).collect()
}

fn loads(lists: &[(String, PathBuf)]) -> Vec<Load> {
    let of = |name: &str, pages: fn(u64, u64) -> Vec<u64>, is_beside_scan, has_groups| Load {
        name: name.to_string(),
        pages: Box::new(pages),
        file_pages: PAGES,
        is_beside_scan,
        has_groups,
    };
    let mut loads = vec![
        of("Zipf 0.8", |_, seed| zipf(0.8, seed), false, false),
        of("Zipf 1.1", |_, seed| zipf(1.1, seed), false, false),
        of("scan and a hot set", |frames, seed| hot(frames, 0, seed), true, false),
        of("loop", looped, false, false),
        of("hot set that shifts", |frames, seed| hot(frames, 1500, seed), false, false),
        of("two groups, one scans", |frames, seed| hot(frames, 0, seed), true, true),
    ];
    loads.extend(lists.iter().map(|(name, path)| {
        let bytes = std::fs::read(path).unwrap();
        let ids: Vec<u32> =
            bytes.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().unwrap())).collect();
        // Numbers without gaps, in the order of the ids, so that neighbours stay neighbours.
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let numbers: BTreeMap<u32, u64> = distinct.iter().copied().zip(0..).collect();
        let pages: Vec<u64> = ids.iter().map(|id| numbers[id]).collect();
        Load {
            name: name.clone(),
            pages: Box::new(move |_, _| pages.clone()),
            file_pages: distinct.len() as u64,
            is_beside_scan: false,
            has_groups: false,
        }
    }));
    loads
}

/// Bytes from the device, and CPU time in ns, per read.
fn measured(dir: &Path, load: &Load, policy: &str, seed: u64) -> Result<(f64, f64), Error> {
    // The page records are part of the budget.
    let budget = load.file_pages * (PAGE as u64 / 4 + 16) + (2 << 20);
    let files = (load.file_pages + PAGES) * PAGE as u64;
    let memory = Memory::builder().budget(budget).files(files).policy(policy).build()?;
    let (first, second) = (memory.group("first", Limits::NONE)?, memory.group("second", Limits::NONE)?);
    let open = |name: &str, how: Open, group| -> Result<File, Error> {
        memory.open(dir.join(name), if load.has_groups { how.group(group) } else { how })
    };
    let file = open("pageout-policies", Open::read().random(), &first)?;
    let scanned = open("pageout-policies-scan", Open::read(), &second)?;
    let pages = (load.pages)(memory.stats()?.frames, seed);
    let (mut buf, mut run, mut at) = (vec![0; PAGE], vec![0; RUN as usize * PAGE], 0);
    let warm_up = WARM_UP.min(pages.len() / 4);
    let (mut reads, mut bytes, mut cpu) = (0, 0, 0);
    for (read, &page) in pages.iter().enumerate() {
        if read == warm_up {
            (reads, bytes, cpu) = (0, memory.stats()?.device_bytes, cpu_time());
        }
        file.read_at(&mut buf, page * PAGE as u64)?;
        reads += 1;
        if load.is_beside_scan && read.is_multiple_of(SCAN_EVERY) {
            scanned.read_at(&mut run, at * PAGE as u64)?;
            at = (at + RUN) % PAGES;
            reads += RUN;
        }
    }
    let (bytes, cpu) = (memory.stats()?.device_bytes - bytes, cpu_time() - cpu);
    Ok((bytes as f64 / reads as f64, cpu as f64 / reads as f64))
}

/// CPU time of this thread, which does its own reads, in ns.
fn cpu_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn median(mut figures: [f64; SEEDS.len()]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[SEEDS.len() / 2]
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let lists: Vec<(String, PathBuf)> = args
        .map(|arg| arg.split_once('=').map(|(name, path)| (name.to_string(), path.into())).unwrap())
        .collect();
    let loads = loads(&lists);
    let row = |name: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!(" {cell} |")).collect();
        println!("| {name} |{cells}");
    };
    let names = POLICIES.map(str::to_string);
    let (mut bytes, mut cpu) = (Vec::new(), Vec::new());
    for load in &loads {
        eprintln!("{}", load.name);
        for (name, pages) in [("pageout-policies", load.file_pages), ("pageout-policies-scan", PAGES)] {
            std::fs::write(dir.join(name), vec![7; pages as usize * PAGE]).unwrap();
        }
        // Policies take turns, so that what else the machine does meets all of them.
        let mut cells = [[(0.0, 0.0); SEEDS.len()]; POLICIES.len()];
        for (at, seed) in SEEDS.into_iter().enumerate() {
            for (policy, cells) in POLICIES.iter().zip(&mut cells) {
                cells[at] = measured(&dir, load, policy, seed)?;
            }
        }
        bytes.push(cells.map(|cells| median(cells.map(|(bytes, _)| bytes))));
        cpu.push(cells.map(|cells| median(cells.map(|(_, cpu)| cpu))));
    }
    for (what, rows) in [("bytes from the device per read", &bytes), ("CPU time per read, ns", &cpu)] {
        row(what, &names);
        row("---", &names.each_ref().map(|_| "---:".to_string()));
        for (load, cells) in loads.iter().zip(rows) {
            row(&load.name, &cells.map(|cell| format!("{cell:.0}")));
        }
        // Each load counts the same, whatever its figures.
        let least = |cells: &[f64; POLICIES.len()]| cells.iter().copied().fold(f64::MAX, f64::min).max(1.0);
        let above = |at: usize| {
            let logs = rows.iter().map(|cells| (cells[at].max(1.0) / least(cells)).ln());
            (logs.sum::<f64>() / rows.len() as f64).exp()
        };
        let above: Vec<String> = (0..POLICIES.len()).map(|at| format!("{:.3}", above(at))).collect();
        row("geometric mean of the ratios to the least", &above);
        println!();
    }
    for name in ["pageout-policies", "pageout-policies-scan"] {
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    Ok(())
}
