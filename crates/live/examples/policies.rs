//! Which policy suits which load? `cargo run --release -p pageout --example policies [FOLDER]` prints the share of reads that waited for the device.
//!
//! Two files are made in the folder, by default the system's for temporary files, and removed. Memory holds some 4,000 of 16,384 pages of each.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that ends where it can't measure"
)]

use std::path::PathBuf;

use pageout::{Error, File, Limits, Memory, Open};

const PAGE: usize = 4096;
const PAGES: u64 = 16_384;
const READS: u64 = 120_000;
/// Reads before the first that counts.
const WARM_UP: u64 = 20_000;
const POLICIES: [&str; 5] = ["mglru@6.12", "mglru@7.3", "classic@6.12", "classic@7.3", "lru"];

/// A load: its reads, and its concurrent activity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Zipf,
    ZipfAndScan,
    ZipfAndWrites,
    HotAndScan,
    HotThatShifts,
    /// The scan is another group's.
    TwoGroups,
    /// The same, and the hot group has `low`.
    TwoGroupsAndLow,
    /// And `min`.
    TwoGroupsAndMin,
}

const LOADS: [(&str, Load); 8] = [
    ("Zipf 0.99", Load::Zipf),
    ("Zipf 0.99 and a scan", Load::ZipfAndScan),
    ("Zipf 0.99, a quarter writes", Load::ZipfAndWrites),
    ("hot 60 % and a scan", Load::HotAndScan),
    ("hot 60 % that shifts", Load::HotThatShifts),
    ("hot group, scan group", Load::TwoGroups),
    ("the same, low for the hot one", Load::TwoGroupsAndLow),
    ("the same, min for the hot one", Load::TwoGroupsAndMin),
];

/// Sums of the weights of a Zipf distribution.
fn zipf() -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=PAGES).map(|rank| (rank as f64).powf(-0.99));
    let sums: Vec<f64> = weights.map(|weight| (sum += weight, sum).1).collect();
    sums.iter().map(|part| part / sum).collect()
}

fn share(dir: &std::path::Path, load: Load, policy: &str, sums: &[f64]) -> Result<f64, Error> {
    let memory = Memory::builder().budget(18 << 20).files(256 << 20).policy(policy).build()?;
    let frames = memory.stats()?.frames;
    let protected = Some(frames * 7 / 10 * PAGE as u64);
    let limits = match load {
        Load::TwoGroupsAndLow => Limits { low: protected, ..Limits::NONE },
        Load::TwoGroupsAndMin => Limits { min: protected, ..Limits::NONE },
        _ => Limits::NONE,
    };
    let (hot, scan) = (memory.group("hot", limits)?, memory.group("scan", Limits::NONE)?);
    let is_grouped = matches!(load, Load::TwoGroups | Load::TwoGroupsAndLow | Load::TwoGroupsAndMin);
    let open = |name: &str, how: Open, group| -> Result<File, Error> {
        memory.open(dir.join(name), if is_grouped { how.group(group) } else { how })
    };
    let file = open("pageout-policies", Open::read_write().random(), &hot)?;
    let scanned = open("pageout-policies-scan", Open::read(), &scan)?;
    let (mut state, mut buf, mut run, mut at) = (1_u64, vec![0; PAGE], vec![0; 64 * PAGE], 0);
    let mut waited = 0;
    for read in 0..READS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = state >> 33;
        let rank = match load {
            Load::Zipf | Load::ZipfAndScan | Load::ZipfAndWrites => {
                let part = drawn as f64 / (1_u64 << 31) as f64;
                sums.partition_point(|&sum| sum < part) as u64
            }
            Load::HotThatShifts => drawn % (frames * 6 / 10) + read / WARM_UP * 1500,
            _ => drawn % (frames * 6 / 10),
        };
        let offset = rank * 7919 % PAGES * PAGE as u64;
        let before = memory.stats()?.device_reads;
        if load == Load::ZipfAndWrites && read % 4 == 0 {
            file.write_at(&buf, offset)?;
        } else {
            file.read_at(&mut buf, offset)?;
        }
        waited += u64::from(read >= WARM_UP && memory.stats()?.device_reads > before);
        let scans = !matches!(load, Load::Zipf | Load::ZipfAndWrites | Load::HotThatShifts);
        if scans && read % 64 == 0 {
            scanned.read_at(&mut run, at * PAGE as u64)?;
            at = (at + 64) % PAGES;
        }
    }
    Ok(waited as f64 / (READS - WARM_UP) as f64)
}

fn main() -> Result<(), Error> {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for name in ["pageout-policies", "pageout-policies-scan"] {
        std::fs::write(dir.join(name), vec![7; PAGES as usize * PAGE]).unwrap();
    }
    let sums = zipf();
    println!(
        "{:30} {}",
        "reads that wait for the device",
        POLICIES.map(|name| format!("{name:>13}")).concat()
    );
    for (name, load) in LOADS {
        let shares = POLICIES.map(|policy| share(&dir, load, policy, &sums).unwrap());
        println!("{name:30} {}", shares.map(|share| format!("{:>12.2}%", 100.0 * share)).concat());
    }
    for name in ["pageout-policies", "pageout-policies-scan"] {
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    Ok(())
}
