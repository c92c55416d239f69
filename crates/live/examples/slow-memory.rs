//! Page-cache promotion on real memory: `cargo run --release -p pageout --example slow-memory [FOLDER [NANOSECONDS]]`.
//!
//! The five columns and the ten passes of "Promotion of Unmapped Page Cache Folios"
//! (<https://lore.kernel.org/linux-mm/20250107000346.1338481-1-gourry@gourry.net/>): a file is read from front to back again and again. Then pages
//! by Zipf's law of a file that fast memory has no room for. Slow memory is *emulated*: whoever comes to a page there waits so long more, 60 ns
//! without an argument. So times say what the engine's decisions cost and gain at this delay, and nothing of any hardware.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that measures, and ends where it can't"
)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pageout::{Delay, File, Limits, Memory, Node, Open, Stats};

const PAGE: usize = 4096;
const MIB: u64 = 1 << 20;
/// Of the file, and pages of it that a call reads.
const BYTES: u64 = 96 * MIB;
const CALL: usize = 64;
const ROUNDS: usize = 5;
/// Passes of a round, the first of which brings the file in, and the last of which are as all later ones would be.
const PASSES: usize = 14;
const LAST: usize = 5;
const READS: usize = 400_000;
const PROMOTION: &str = "/sys/kernel/mm/numa/pagecache_promotion_enabled";

/// A file that goes with this value.
struct Made(PathBuf);

impl Made {
    fn new(folder: &Path) -> Made {
        let path = folder.join(format!("pageout-slow-memory-{}", std::process::id()));
        let page: Vec<u8> = (0..PAGE).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, page.repeat(BYTES as usize / PAGE)).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        Made(path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Milliseconds of this thread's CPU time.
fn cpu(act: impl FnOnce()) -> f64 {
    let before = thread_time();
    act();
    (thread_time() - before) / 1e6
}

fn thread_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one place that it is given, which lives until it returns.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "threads have a clock");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn middle(figures: &[f64]) -> (f64, f64, f64) {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    (figures[figures.len() / 2], figures[0], figures[figures.len() - 1])
}

/// Where a file is brought in, and what is on.
struct Column {
    name: &'static str,
    node: &'static str,
    balances: bool,
    promotes: bool,
}

const COLUMNS: [Column; 5] = [
    Column { name: "1 fast, all off", node: "0", balances: false, promotes: false },
    Column { name: "2 fast, balancing on", node: "0", balances: true, promotes: false },
    Column { name: "3 fast, promotion on", node: "0", balances: true, promotes: true },
    Column { name: "4 slow, all off", node: "1", balances: false, promotes: false },
    Column { name: "5 slow, promotion on", node: "1", balances: true, promotes: true },
];

/// One pass over the file.
struct Pass {
    ms: f64,
    fast: u64,
    slow: u64,
    promoted: u64,
}

fn passes(made: &Made, column: &Column, delay: Duration) -> (Vec<Pass>, Stats) {
    let slow = Node::slow(BYTES + 16 * MIB).emulated(Delay::per_page(delay));
    let builder = Memory::builder().budget(2 * BYTES + 48 * MIB).policy("classic@6.12").node(slow);
    let memory =
        builder.sysctl("kernel.numa_balancing", if column.balances { 2 } else { 0 }).build().unwrap();
    memory.write(PROMOTION, if column.promotes { "1" } else { "0" }).unwrap();
    let group = memory.group("reader", Limits::NONE).unwrap();
    group.write("cpuset.mems", column.node).unwrap();
    let file = memory.open(&made.0, Open::read().group(&group)).unwrap();
    let mut buf = vec![0; CALL * PAGE];
    let mut last = memory.stats().unwrap();
    let mut pass = || {
        let ms = cpu(|| {
            for offset in (0..BYTES).step_by(buf.len()) {
                file.read_at(black_box(&mut buf), offset).unwrap();
            }
        });
        let stats = memory.stats().unwrap();
        let (hits, slow) = (stats.hits - last.hits, stats.slow_hits - last.slow_hits);
        let promoted = stats.promoted - last.promoted;
        last = stats;
        Pass { ms, fast: hits - slow, slow, promoted }
    };
    let passes = (0..PASSES).map(|_| pass()).collect();
    (passes, last)
}

fn five_columns(made: &Made, delay: Duration) {
    let mut rows: [Vec<f64>; COLUMNS.len()] = Default::default();
    let mut kept = Vec::new();
    for _ in 0..ROUNDS {
        kept = COLUMNS.iter().map(|column| passes(made, column, delay)).collect();
        for (row, (passes, _)) in rows.iter_mut().zip(&kept) {
            row.push(middle(&passes[PASSES - LAST..].iter().map(|pass| pass.ms).collect::<Vec<_>>()).0);
        }
    }
    println!(
        "\nA pass over {} MiB once all is where it stays; slow memory emulated: {delay:?} more a page",
        BYTES / MIB
    );
    println!(
        "                              ms of CPU   (least to most)    of 1    hits: fast     slow   promoted"
    );
    let beside = middle(&rows[0]).0;
    for ((column, row), (passes, stats)) in COLUMNS.iter().zip(&rows).zip(&kept) {
        let (median, least, most) = middle(row);
        let Pass { fast, slow, .. } = passes[PASSES - 1];
        println!(
            "  {:<24} {median:>12.2}   ({least:.2} to {most:.2}) {:>8.2} {fast:>13} {slow:>8} {:>10}",
            column.name,
            median / beside,
            stats.promoted
        );
    }
    println!("\nThe passes of column 5; slow memory emulated: {delay:?} more a page");
    println!("  pass    ms of CPU    hits: fast     slow   promoted");
    let (passes, stats) = kept.last().unwrap();
    for (at, Pass { ms, fast, slow, promoted }) in passes.iter().enumerate().skip(1).take(10) {
        println!("  {at:>4} {ms:>12.2} {fast:>13} {slow:>8} {promoted:>10}");
    }
    print_lock(stats);
}

fn print_lock(stats: &Stats) {
    let held = &stats.lock_held;
    println!(
        "  the lock was held {} times: half of them up to {:?}, 99 % up to {:?}, at most {:?}",
        held.times(),
        held.quantile(0.5),
        held.quantile(0.99),
        held.quantile(1.0)
    );
}

/// Pages by Zipf's law, hot ones scattered over the file.
fn draws(pages: usize) -> Vec<u64> {
    let mut state = 1_u64;
    let sums: Vec<f64> = (1..=pages)
        .scan(0.0, |sum, rank| {
            *sum += (rank as f64).powf(-0.99);
            Some(*sum)
        })
        .collect();
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = (state >> 11) as f64 / (1_u64 << 53) as f64 * sums[pages - 1];
        let rank = sums.partition_point(|&sum| sum < wanted).min(pages - 1);
        (rank * 2_654_435_761 % pages) as u64
    };
    (0..READS).map(|_| draw()).collect()
}

fn read(file: &File, pages: &[u64]) {
    let mut buf = vec![0; PAGE];
    for &page in pages {
        file.read_at(black_box(&mut buf), page * PAGE as u64).unwrap();
    }
}

/// Fast memory has room for a third of the file, and slow memory for the rest.
fn no_room(made: &Made, delay: Duration) {
    let pages = draws(BYTES as usize / PAGE);
    println!(
        "\n{READS} reads by Zipf's law (0.99) of a file three times fast memory; slow memory emulated: {delay:?} more a page"
    );
    println!(
        "                                   ns of CPU a read   hits: fast      slow    missed   promoted    demoted"
    );
    for policy in ["classic@6.12", "mglru@6.12"] {
        for (name, promotes) in [("no promotion", "0"), ("promotion", "1")] {
            let slow = Node::slow(BYTES).emulated(Delay::per_page(delay));
            let builder = Memory::builder().budget(BYTES / 3 + BYTES + 20 * MIB).policy(policy).node(slow);
            let memory = builder.build().unwrap();
            memory.write(PROMOTION, promotes).unwrap();
            let file = memory.open(&made.0, Open::read().random()).unwrap();
            // What fills fast memory first is not what will be wanted.
            read(&file, &(0..BYTES / PAGE as u64).rev().collect::<Vec<_>>());
            read(&file, &pages);
            let before = memory.stats().unwrap();
            let ms = cpu(|| read(&file, &pages));
            let stats = memory.stats().unwrap();
            let (hits, slow) = (stats.hits - before.hits, stats.slow_hits - before.slow_hits);
            println!(
                "  {:<32} {:>17.0} {:>12} {slow:>9} {:>9} {:>10} {:>10}",
                format!("{policy}, {name}"),
                ms * 1e6 / READS as f64,
                hits - slow,
                stats.misses - before.misses,
                stats.promoted,
                stats.demoted
            );
            print_lock(&stats);
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let delay =
        args.next().map_or(60, |nanos| nanos.parse().expect("nanoseconds that a slow page takes longer"));
    let made = Made::new(&folder);
    five_columns(&made, Duration::from_nanos(delay));
    no_room(&made, Duration::from_nanos(delay));
}
