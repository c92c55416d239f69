//! Segments read by tenants: one tenant scans while another serves, and limits protect the one from the other. `cargo run --release -p pageout
//! --example tenants [FOLDER]`.
//!
//! ```text
//!   search   8 segments of 4 MiB, records of 1 KiB by Zipf's law      what its users wait for
//!   export   20 segments of 8 MiB, from front to back, for ever       the noisy one
//!   rare     2 segments of 4 MiB, a record now and then
//! ```
//! All have one budget of 48 MiB. A tenant is a group with the kernel's own files: `memory.min`, `memory.low`, `memory.max`, `memory.stat`. Segments
//! are written once and then only read. When two are merged, the old ones are forgotten, and their memory is immediately free.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that makes files, and ends where it can't"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pageout::{File, Group, Limits, Memory, Open};

const MIB: u64 = 1 << 20;
const RECORD: usize = 1 << 10;
/// Reads of the tenant that serves.
const READS: usize = 60_000;

/// A segment on disk, which goes with this value.
struct Segment(PathBuf);

impl Segment {
    fn new(folder: &Path, name: &str, bytes: u64) -> Segment {
        let path = folder.join(format!("pageout-tenants-{}-{name}", std::process::id()));
        let segment = Segment(path);
        let records = (0..bytes / RECORD as u64).flat_map(|record| {
            let mut bytes = [0x5e; RECORD];
            bytes[..8].copy_from_slice(&record.to_le_bytes());
            bytes
        });
        std::fs::write(&segment.0, records.collect::<Vec<u8>>()).unwrap();
        segment
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A tenant: its segments, open in its group.
struct Tenant {
    group: Group,
    segments: Vec<File>,
}

impl Tenant {
    fn new(memory: &Memory, name: &str, limits: Limits, segments: &[Segment], is_random: bool) -> Tenant {
        let group = memory.group(name, limits).unwrap();
        let how = Open::read().group(&group);
        let how = if is_random { how.random() } else { how };
        let segments = segments.iter().map(|segment| memory.open(&segment.0, how.clone()).unwrap()).collect();
        Tenant { group, segments }
    }

    /// Reads a record of all segments' records, and looks whether it is that one.
    fn read(&self, record: u64) {
        let each = self.segments[0].len() / RECORD as u64;
        let (segment, record) = ((record / each) as usize, record % each);
        let mut buf = [0; RECORD];
        self.segments[segment].read_at(&mut buf, record * RECORD as u64).unwrap();
        assert_eq!(buf[..8], record.to_le_bytes(), "a record is read as another");
    }

    fn records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len() / RECORD as u64).sum()
    }

    /// A counter of its `memory.stat`.
    fn stat(&self, name: &str) -> u64 {
        let stat = self.group.read("memory.stat").unwrap();
        let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap().parse().unwrap()
    }
}

/// Numbers that look like chance, from 0 up to 1.
fn draws(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How long reads took, at a share of them.
fn at(spans: &mut [Duration], share: f64) -> Duration {
    spans.sort_unstable();
    spans[((spans.len() - 1) as f64 * share) as usize]
}

/// Makes all three read in parallel, until the one that serves has made its reads.
fn run(name: &str, segments: &[Vec<Segment>; 3], limits: [Limits; 3]) {
    let memory = Memory::builder().budget(48 * MIB).build().unwrap();
    let [search, export, rare] = [("search", true), ("export", false), ("rare", true)]
        .iter()
        .zip(limits)
        .zip(segments)
        .map(|(((name, is_random), limits), segments)| {
            Tenant::new(&memory, name, limits, segments, *is_random)
        })
        .collect::<Vec<_>>()
        .try_into()
        .ok()
        .unwrap();
    let is_over = AtomicBool::new(false);
    let (mut spans, exported, rarely) = std::thread::scope(|scope| {
        let exports = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(Relaxed) {
                export.read(reads % export.records());
                reads += 1;
            }
            reads
        });
        let rares = scope.spawn(|| {
            let (mut draw, mut reads) = (draws(3), 0);
            while !is_over.load(Relaxed) {
                rare.read((draw() * rare.records() as f64) as u64);
                reads += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            reads
        });
        // Records by Zipf's law, the popular ones anywhere.
        let (mut draw, records) = (draws(7), search.records());
        let spans: Vec<Duration> = (0..READS)
            .map(|_| {
                let rank = ((records as f64).powf(draw()) as u64).min(records - 1);
                let began = Instant::now();
                search.read(rank.wrapping_mul(2_654_435_761) % records);
                began.elapsed()
            })
            .collect();
        is_over.store(true, Relaxed);
        (spans, exports.join().unwrap(), rares.join().unwrap())
    });
    println!("\n{name}");
    println!("  {:<8} {:>9} {:>10} {:>10} {:>10}", "", "reads", "in memory", "refaults", "per 1,000");
    for (tenant, reads) in [(&search, READS as u64), (&export, exported), (&rare, rarely)] {
        let refaults = tenant.stat("workingset_refault_file");
        let name = format!("{:?}", tenant.group);
        println!(
            "  {:<8} {reads:>9} {:>6} MiB {refaults:>10} {:>10.1}",
            name.trim_start_matches("Group(").trim_end_matches(')'),
            tenant.stat("file") / MIB,
            1e3 * refaults as f64 / reads as f64
        );
    }
    println!(
        "  search waited {:?} for the middle read, {:?} for one of 100",
        at(&mut spans, 0.5),
        at(&mut spans, 0.99)
    );
}

/// Merges two segments of a tenant: the new one is read, and the old ones are forgotten.
fn merge(folder: &Path, segments: &[Segment]) {
    let memory = Memory::builder().budget(48 * MIB).build().unwrap();
    let mut tenant = Tenant::new(&memory, "search", Limits::NONE, &segments[..2], true);
    (0..tenant.records()).for_each(|record| tenant.read(record));
    let before = memory.stats().unwrap().resident;
    let merged = Segment::new(folder, "merged", 2 * tenant.segments[0].len());
    let old = std::mem::replace(
        &mut tenant.segments,
        vec![memory.open(&merged.0, Open::read().random().group(&tenant.group)).unwrap()],
    );
    old.into_iter().for_each(|segment| segment.forget().unwrap());
    println!(
        "\ntwo segments merged: {before} pages in memory before, {} when they are forgotten",
        memory.stats().unwrap().resident
    );
    tenant.read(tenant.records() - 1);
}

fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let make = |name: &str, count: usize, bytes| {
        (0..count).map(|at| Segment::new(&folder, &format!("{name}-{at}"), bytes)).collect::<Vec<_>>()
    };
    let segments = [make("search", 8, 4 * MIB), make("export", 20, 8 * MIB), make("rare", 2, 4 * MIB)];
    println!("search serves, export scans, rare asks now and then; one budget of 48 MiB");
    run("no protection and no limits", &segments, [Limits::NONE; 3]);
    let low = |bytes| Limits { low: Some(bytes), ..Limits::NONE };
    run("memory.low of 34 MiB for search", &segments, [low(34 * MIB), Limits::NONE, Limits::NONE]);
    let min = Limits { min: Some(34 * MIB), ..Limits::NONE };
    let max = Limits { max: Some(8 * MIB), ..Limits::NONE };
    run(
        "memory.min of 34 MiB for search, memory.max of 8 MiB for export",
        &segments,
        [min, max, Limits::NONE],
    );
    merge(&folder, &segments[0]);
}
