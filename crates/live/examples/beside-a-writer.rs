//! How long reads wait during heavy writes. It compares reads alone, with direct writes of the same bytes without the cache, and with a writer
//! through the cache. The last case is run for each rule of which reclaimers may write dirty pages.
//!
//! `cargo run --release -p pageout --example beside-a-writer [FOLDER [POLICY [DIRTY_RATIO [MIB_A_SECOND [scattered]]]]]`
//!
//! One writer writes a file in calls of 64 KiB. `scattered`: two write single pages anywhere, so that reclaim meets dirty pages before the flusher,
//! which follows the order of the file. Without a rate, or with 0, writers through the cache are as fast as possible.
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

use measured::{MIB, Made, PAGE, cpu, draws, middle, process_time};
use pageout::{Memory, Open};

const ROUNDS: usize = 5;
const BYTES: usize = 256 * MIB;
/// Bytes of a call of who writes over a file.
const CHUNK: usize = 64 << 10;
const RUN: Duration = Duration::from_millis(2500);

/// The writer, and its rule. The first one through the cache determines the bytes of the direct writer.
#[derive(Clone, Copy, PartialEq)]
enum Writer {
    Nobody,
    Cache(Option<&'static str>),
    Direct,
    /// Direct, with threads that compute for as long as the cache and its writers did.
    Busy,
}

const WRITERS: [(&str, Writer); 6] = [
    ("nobody", Writer::Nobody),
    ("cache, the policy's rule", Writer::Cache(None)),
    ("O_DIRECT, the same bytes", Writer::Direct),
    ("O_DIRECT, the same bytes, and as much CPU", Writer::Busy),
    ("cache, kswapd_only", Writer::Cache(Some("kswapd_only"))),
    ("cache, any", Writer::Cache(Some("any"))),
];

const COLUMNS: [&str; 11] = [
    "p50 us",
    "p99 us",
    "p99.9 us",
    "longest ms",
    "reads/s",
    "misses %",
    "MiB/s written",
    "writer waits %",
    "CPUs busy",
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
    /// Bytes a second of writers through the cache, all together; `None`: as many as they can.
    rate: Option<f64>,
    pages: Vec<u64>,
    is_scattered: bool,
}

/// Writes a file, again and again, until it is stopped: its chunks in order, or random pages by a seed. Returns the share of its time that it waited.
fn write_on(
    stop: &AtomicBool,
    per_second: Option<f64>,
    scattered: Option<usize>,
    mut write: impl FnMut(&[u8], u64),
) -> f64 {
    let mut room = vec![7_u8; CHUNK + PAGE];
    let aligned = room.as_ptr().align_offset(PAGE);
    let bytes = &mut room[aligned..aligned + if scattered.is_some() { PAGE } else { CHUNK }];
    let mut places = scattered.map(|seed| draws(BYTES / PAGE, None, 100_000).into_iter().cycle().skip(seed));
    let began = Instant::now();
    let mut written = 0;
    let ran = cpu(|| {
        while !stop.load(Relaxed) {
            let due =
                per_second.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(written as f64 / rate));
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            let place = places.as_mut().and_then(Iterator::next);
            write(bytes, place.map_or(written % BYTES as u64, |page| page * PAGE as u64));
            written += bytes.len() as u64;
        }
    });
    100.0 * (1.0 - ran / began.elapsed().as_nanos() as f64)
}

impl Machine<'_> {
    fn run(&self, writer: Writer, per_second: Option<f64>, busy: f64) -> Row {
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
        // Two writers begin at other places of the same draws.
        let seeds = if self.is_scattered { vec![Some(0), Some(50_000)] } else { vec![None] };
        let share = |rate: Option<f64>| rate.map(|rate| rate / seeds.len() as f64);
        let write = |seed: Option<usize>| match writer {
            Writer::Nobody => 100.0,
            Writer::Direct | Writer::Busy => {
                let mut options = std::fs::OpenOptions::new();
                let direct = options.write(true).custom_flags(0o40000).open(&self.written.0).unwrap();
                write_on(&stop, share(per_second), seed, |bytes, at| direct.write_all_at(bytes, at).unwrap())
            }
            Writer::Cache(_) => {
                let file = memory.open(&self.written.0, Open::read_write()).unwrap();
                let waited =
                    write_on(&stop, share(self.rate), seed, |bytes, at| file.write_at(bytes, at).unwrap());
                file.sync_data().unwrap();
                waited
            }
        };
        let (stop, write) = (&stop, &write);
        std::thread::scope(|scope| {
            let writing: Vec<_> = seeds.iter().map(|&seed| scope.spawn(move || write(seed))).collect();
            if writer == Writer::Busy {
                (0..2).for_each(|_| drop(scope.spawn(move || compute(stop, busy / 2.0))));
            }
            // Until as much is dirty as may be.
            let begins = Instant::now() + Duration::from_millis(500);
            while Instant::now() < begins {
                read();
            }
            let (before, vmstat) = (memory.stats().unwrap(), vmstat(&memory));
            let (began, ran) = (Instant::now(), process_time());
            let mut took = Vec::new();
            while began.elapsed() < RUN {
                let began = Instant::now();
                read();
                took.push(began.elapsed().as_nanos() as u32);
            }
            let seconds = began.elapsed().as_secs_f64();
            let ran = (process_time() - ran) / 1e9 / seconds;
            let (after, vmstat_after) = (memory.stats().unwrap(), self::vmstat(&memory));
            stop.store(true, Relaxed);
            let waited: f64 = writing.into_iter().map(|writing| writing.join().unwrap()).sum();
            took.sort_unstable();
            let quantile = |share: f64| f64::from(took[(share * (took.len() - 1) as f64) as usize]) / 1e3;
            let written = match writer {
                Writer::Direct | Writer::Busy => per_second.unwrap(),
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
                waited / seeds.len() as f64,
                ran,
                vmstat_after[0] - vmstat[0],
                vmstat_after[1] - vmstat[1],
            ]
        })
    }
}

/// Computes for a share of the time, until it is stopped.
fn compute(stop: &AtomicBool, share: f64) {
    const SPAN: Duration = Duration::from_micros(100);
    let (began, mut spans) = (Instant::now(), 0.0);
    while !stop.load(Relaxed) && share > 0.0 {
        std::thread::sleep(SPAN.mul_f64(spans / share.min(1.0)).saturating_sub(began.elapsed()));
        let until = Instant::now() + SPAN;
        while Instant::now() < until {}
        spans += 1.0;
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
    let rate = args.next().map(|rate| rate.parse::<f64>().unwrap() * MIB as f64).filter(|&rate| rate > 0.0);
    let is_scattered = args.next().is_some_and(|pattern| pattern == "scattered");
    let read = Made::new(&folder, BYTES);
    let written = Made(read.0.with_extension("written"));
    std::fs::copy(&read.0, &written.0).unwrap();
    std::fs::File::open(&written.0).unwrap().sync_all().unwrap();
    let pages = draws(BYTES / PAGE, Some(0.99), 1_000_000);
    let machine =
        Machine { read: &read, written: &written, policy: &policy, dirty_ratio, rate, pages, is_scattered };
    let mut rows = WRITERS.map(|_| Vec::<Row>::new());
    for _ in 0..ROUNDS {
        let (mut per_second, mut busy) = (None, 0.0);
        for ((_, writer), rows) in WRITERS.iter().zip(&mut rows) {
            let row = machine.run(*writer, per_second, busy);
            match writer {
                Writer::Cache(None) => (per_second, busy) = (Some(row[6] * MIB as f64), row[8]),
                Writer::Direct => busy -= row[8],
                _ => {}
            }
            rows.push(row);
        }
    }
    println!("{policy}, vm.dirty_ratio {dirty_ratio}, budget {} MiB, median (min to max)", BYTES / 4 / MIB);
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
        println!("p99.9 as a multiple of that with O_DIRECT {}, with `any` {}", beside(2), beside(5));
    }
}
