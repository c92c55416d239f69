//! How long reads wait beside a heavy writer: alone, beside direct writes of the same bytes without the cache, and beside a writer through the cache, by who
//! may write the dirty pages that reclaim meets. Without a rate writers through the cache are as fast as they can be.
//!
//! `cargo run --release -p pageout --example beside-a-writer [FOLDER [POLICY [DIRTY_RATIO [MIB_A_SECOND]]]]`
//!
//! Two files of 256 MiB are made in the folder, by default the system's for temporary files, and removed. Its file system has to do direct I/O.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that measures, and ends where it can't"
)]

#[path = "measured/head.rs"]
mod measured;

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use measured::{MIB, Made, PAGE, cpu, draws, middle};
use pageout::{Memory, Open};

const ROUNDS: usize = 5;
const BYTES: usize = 256 * MIB;
const CHUNK: usize = 64 << 10;
const RUN: Duration = Duration::from_millis(2500);

/// Who writes, and by which rule. The first through the cache says how many bytes the direct writer writes.
#[derive(Clone, Copy, PartialEq)]
enum Writer {
    Nobody,
    Cache(Option<&'static str>),
    Direct,
}

const WRITERS: [(&str, Writer); 5] = [
    ("nobody", Writer::Nobody),
    ("cache, the policy's rule", Writer::Cache(None)),
    ("O_DIRECT, the same bytes", Writer::Direct),
    ("cache, kswapd_only", Writer::Cache(Some("kswapd_only"))),
    ("cache, any", Writer::Cache(Some("any"))),
];

const COLUMNS: [&str; 10] = [
    "p50 us",
    "p99 us",
    "p99.9 us",
    "longest ms",
    "reads/s",
    "misses %",
    "MiB/s written",
    "writer waits %",
    "by reclaim",
    "direct reclaims",
];

/// What a run comes to: the columns above.
type Row = [f64; COLUMNS.len()];

struct Machine<'a> {
    read: &'a Made,
    written: &'a Made,
    policy: &'a str,
    dirty_ratio: u32,
    /// Bytes a second of writers through the cache; `None`: as many as they can.
    rate: Option<f64>,
    pages: Vec<u64>,
}

/// Chunks of a file, one after the other and over again, until it is told to stop. The share of its time that it waited.
fn write_over(stop: &AtomicBool, per_second: Option<f64>, mut write: impl FnMut(u64)) -> f64 {
    let began = Instant::now();
    let mut written = 0;
    let ran = cpu(|| {
        while !stop.load(Relaxed) {
            let due =
                per_second.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(written as f64 / rate));
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            write(written % BYTES as u64);
            written += CHUNK as u64;
        }
    });
    100.0 * (1.0 - ran / began.elapsed().as_nanos() as f64)
}

impl Machine<'_> {
    fn run(&self, writer: Writer, per_second: Option<f64>) -> Row {
        let mut builder = Memory::builder()
            .budget((BYTES / 4) as u64)
            .policy(self.policy)
            .sysctl("vm.dirty_ratio", self.dirty_ratio)
            .sysctl("vm.dirty_background_ratio", self.dirty_ratio - 10);
        if let Writer::Cache(Some(rule)) = writer {
            builder = builder.rule("reclaim.file_writeback", rule);
        }
        let memory = builder.build().unwrap();
        let file = memory.open(&self.read.0, Open::read().random()).unwrap();
        let mut buf = vec![0; PAGE];
        let mut pages = self.pages.iter().cycle();
        let mut read = || file.read_at(&mut buf, pages.next().unwrap() * PAGE as u64).unwrap();
        (0..200_000).for_each(|_| read());
        let stop = AtomicBool::new(false);
        let mut room = vec![7_u8; CHUNK + PAGE];
        let aligned = room.as_ptr().align_offset(PAGE);
        let bytes = &mut room[aligned..aligned + CHUNK];
        std::thread::scope(|scope| {
            let writing = match writer {
                Writer::Nobody => None,
                Writer::Direct => Some(scope.spawn(|| {
                    let mut options = std::fs::OpenOptions::new();
                    let direct = options.write(true).custom_flags(0o40000).open(&self.written.0).unwrap();
                    write_over(&stop, per_second, |at| direct.write_all_at(bytes, at).unwrap())
                })),
                Writer::Cache(_) => Some(scope.spawn(|| {
                    let file = memory.open(&self.written.0, Open::read_write()).unwrap();
                    let waited = write_over(&stop, self.rate, |at| file.write_at(bytes, at).unwrap());
                    file.sync_data().unwrap();
                    waited
                })),
            };
            // Until as much is dirty as may be.
            let begins = Instant::now() + Duration::from_millis(500);
            while Instant::now() < begins {
                read();
            }
            let (before, vmstat) = (memory.stats().unwrap(), vmstat(&memory));
            let began = Instant::now();
            let mut took = Vec::new();
            while began.elapsed() < RUN {
                let began = Instant::now();
                read();
                took.push(began.elapsed().as_nanos() as u32);
            }
            let seconds = began.elapsed().as_secs_f64();
            let (after, vmstat_after) = (memory.stats().unwrap(), self::vmstat(&memory));
            stop.store(true, Relaxed);
            let waited = writing.map_or(0.0, |writing| writing.join().unwrap());
            took.sort_unstable();
            let quantile = |share: f64| f64::from(took[(share * (took.len() - 1) as f64) as usize]) / 1e3;
            let written = match writer {
                Writer::Direct => per_second.unwrap(),
                _ => (after.device_bytes_written - before.device_bytes_written) as f64 / seconds,
            };
            [
                quantile(0.5),
                quantile(0.99),
                quantile(0.999),
                quantile(1.0) / 1e3,
                took.len() as f64 / seconds,
                100.0 * (after.device_bytes - before.device_bytes) as f64 / PAGE as f64 / took.len() as f64,
                written / MIB as f64,
                waited,
                vmstat_after[0] - vmstat[0],
                vmstat_after[1] - vmstat[1],
            ]
        })
    }
}

/// Pages that reclaim has begun to write, and how often a thread had to reclaim for itself.
fn vmstat(memory: &Memory) -> [f64; 2] {
    let text = memory.read("/proc/vmstat").unwrap();
    ["nr_vmscan_write", "allocstall"].map(|name| {
        let figures = text.lines().filter(|line| line.starts_with(name));
        figures.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    })
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let policy = args.next().unwrap_or_else(|| "classic@6.12".to_owned());
    let dirty_ratio = args.next().map_or(20, |ratio| ratio.parse().unwrap());
    let rate = args.next().map(|rate| rate.parse::<f64>().unwrap() * MIB as f64);
    let read = Made::new(&folder, BYTES);
    let written = Made(read.0.with_extension("written"));
    std::fs::copy(&read.0, &written.0).unwrap();
    std::fs::File::open(&written.0).unwrap().sync_all().unwrap();
    let pages = draws(BYTES / PAGE, Some(0.99), 1_000_000);
    let machine = Machine { read: &read, written: &written, policy: &policy, dirty_ratio, rate, pages };
    let mut rows = WRITERS.map(|_| Vec::<Row>::new());
    for _ in 0..ROUNDS {
        let mut per_second = None;
        for ((_, writer), rows) in WRITERS.iter().zip(&mut rows) {
            let row = machine.run(*writer, per_second);
            if *writer == Writer::Cache(None) {
                per_second = Some(row[6] * MIB as f64);
            }
            rows.push(row);
        }
    }
    println!(
        "{policy}, vm.dirty_ratio {dirty_ratio}, budget {} MiB, median (least to most)",
        BYTES / 4 / MIB
    );
    for (at, (name, _)) in WRITERS.iter().enumerate() {
        println!("{name}");
        for (column, title) in COLUMNS.iter().enumerate() {
            let (median, least, most) = middle(&rows[at].iter().map(|row| row[column]).collect::<Vec<_>>());
            println!("  {title:<16} {median:>10.1}   ({least:.1} to {most:.1})");
        }
        let beside = |with: usize| {
            let ratios = rows[at].iter().zip(&rows[with]).map(|(row, with)| row[2] / with[2]);
            let (median, least, most) = middle(&ratios.collect::<Vec<_>>());
            format!("{median:.2} ({least:.2} to {most:.2})")
        };
        println!("  p99.9, times that beside O_DIRECT {}, beside `any` {}", beside(2), beside(4));
    }
}
