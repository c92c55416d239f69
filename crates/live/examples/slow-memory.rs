//! Page-cache promotion on real memory: `cargo run --release -p pageout --example slow-memory [FOLDER [NANOSECONDS]]`.
//!
//! The five columns and the ten passes of "Promotion of Unmapped Page Cache Folios"
//! (<https://lore.kernel.org/linux-mm/20250107000346.1338481-1-gourry@gourry.net/>): a file is read from front to back again and again. Then pages of
//! a file that does not fit in fast memory are read by Zipf's law. Slow memory is *emulated*: each access to a page there has a delay, 60 ns without
//! an argument. So times show the cost and gain of the engine's decisions at this delay, and do not describe any hardware.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that measures, and ends where it can't"
)]

#[path = "measured/head.rs"]
mod measured;

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use measured::{Made, PAGE, cpu, draws, middle, print_lock};
use pageout::{Delay, File, Limits, Memory, Node, Open, Stats};

/// Size of the file, and pages of it that a call reads.
const MIB: u64 = measured::MIB as u64;
const BYTES: u64 = 96 * MIB;
const CALL: usize = 64;
/// Passes, and the last of them, which are as all later ones would be.
const PASSES: usize = 30;
const LAST: usize = 20;
const ROUNDS: usize = 5;
const READS: usize = 400_000;
const PROMOTION: &str = "/sys/kernel/mm/numa/pagecache_promotion_enabled";

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

/// A cache with the file in one of its memories.
struct Reader {
    open: Option<(Memory, File)>,
    buf: Vec<u8>,
    last: Stats,
    passes: Vec<Pass>,
}

impl Reader {
    fn new(made: &Made, column: &Column, delay: Duration) -> Reader {
        let slow = Node::slow(BYTES + 16 * MIB).emulated(Delay::per_page(delay));
        let builder = Memory::builder().budget(2 * BYTES + 48 * MIB).policy("classic@6.12").node(slow);
        let balances = if column.balances { 2 } else { 0 };
        let memory = builder.sysctl("kernel.numa_balancing", balances).build().unwrap();
        // As in the cover letter, where so much of the fast memory was free that the time between two reads of a page had no effect.
        memory.write("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms", "1000000").unwrap();
        memory.write(PROMOTION, if column.promotes { "1" } else { "0" }).unwrap();
        let group = memory.group("reader", Limits::NONE).unwrap();
        let open = || memory.open(&made.0, Open::read().group(&group)).unwrap();
        let mut buf = vec![0; CALL * PAGE];
        // Once on the other node: who first touches memory has the system find it.
        for node in [if column.node == "0" { "1" } else { "0" }, column.node] {
            group.write("cpuset.mems", node).unwrap();
            let file = open();
            read_all(&file, &mut buf);
            if node != column.node {
                file.forget().unwrap();
            }
        }
        let (file, last) = (open(), memory.stats().unwrap());
        Reader { open: Some((memory, file)), buf, last, passes: Vec::new() }
    }

    /// What it has measured.
    fn without_memory(&mut self) -> Reader {
        Reader {
            open: None,
            buf: Vec::new(),
            last: self.last.clone(),
            passes: std::mem::take(&mut self.passes),
        }
    }

    fn pass(&mut self) {
        let (memory, file) = self.open.as_ref().unwrap();
        let ms = cpu(|| read_all(file, &mut self.buf)) / 1e6;
        let stats = memory.stats().unwrap();
        let (hits, slow) = (stats.hits - self.last.hits, stats.slow_hits - self.last.slow_hits);
        let promoted = stats.promoted - self.last.promoted;
        self.last = stats;
        self.passes.push(Pass { ms, fast: hits - slow, slow, promoted });
    }
}

fn read_all(file: &File, buf: &mut [u8]) {
    for offset in (0..BYTES).step_by(buf.len()) {
        file.read_at(black_box(buf), offset).unwrap();
    }
}

fn five_columns(made: &Made, delay: Duration) {
    // Whether memory is in huge pages differs from cache to cache.
    let rounds: Vec<[Reader; COLUMNS.len()]> = (0..ROUNDS)
        .map(|_| {
            let mut readers = COLUMNS.each_ref().map(|column| Reader::new(made, column, delay));
            // Pass by pass, so that whatever else the machine does meets all of them alike.
            (0..PASSES).for_each(|_| readers.iter_mut().for_each(Reader::pass));
            readers.each_mut().map(Reader::without_memory)
        })
        .collect();
    let of = |column: usize, passes: std::ops::Range<usize>| {
        let all = rounds.iter().flat_map(|readers| &readers[column].passes[passes.clone()]);
        middle(&all.map(|pass| pass.ms).collect::<Vec<_>>())
    };
    let last = rounds.last().unwrap();
    println!(
        "\nA pass over {} MiB once all is where it stays; slow memory emulated: {delay:?} more per page",
        BYTES / MIB
    );
    println!(
        "                              ms of CPU   (min to max)       of 1    hits: fast     slow   promoted"
    );
    let beside = of(0, PASSES - LAST..PASSES).0;
    for (at, column) in COLUMNS.iter().enumerate() {
        let (median, least, most) = of(at, PASSES - LAST..PASSES);
        let Pass { fast, slow, .. } = last[at].passes[PASSES - 1];
        println!(
            "  {:<24} {median:>12.2}   ({least:.2} to {most:.2}) {:>8.2} {fast:>13} {slow:>8} {:>10}",
            column.name,
            median / beside,
            last[at].last.promoted
        );
    }
    println!(
        "\nThe first passes of columns 4 and 5, after the one that has brought the file in; slow memory emulated: {delay:?} more per page"
    );
    println!("  read        4: ms    5: ms    hits: fast     slow   promoted");
    for (at, Pass { fast, slow, promoted, .. }) in last[4].passes.iter().enumerate().take(10) {
        let [off, on] = [3, 4].map(|column| of(column, at..at + 1).0);
        println!("  {:>4} {off:>12.2} {on:>8.2} {fast:>13} {slow:>8} {promoted:>10}", at + 2);
    }
    rounds.iter().for_each(|readers| print_lock(&readers[4].last));
}

fn read(file: &File, pages: &[u64]) {
    let mut buf = vec![0; PAGE];
    for &page in pages {
        file.read_at(black_box(&mut buf), page * PAGE as u64).unwrap();
    }
}

/// Fast memory holds a third of the file, and slow memory the rest.
fn no_room(made: &Made, delay: Duration) {
    let pages = draws(BYTES as usize / PAGE, Some(0.99), READS);
    println!(
        "\n{READS} reads by Zipf's law (0.99) of a file three times fast memory; slow memory emulated: {delay:?} more per page"
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
            // The first pages in fast memory are not those that are needed later.
            read(&file, &(0..BYTES / PAGE as u64).rev().collect::<Vec<_>>());
            read(&file, &pages);
            let before = memory.stats().unwrap();
            let nanos = cpu(|| read(&file, &pages));
            let stats = memory.stats().unwrap();
            let (hits, slow) = (stats.hits - before.hits, stats.slow_hits - before.slow_hits);
            println!(
                "  {:<32} {:>17.0} {:>12} {slow:>9} {:>9} {:>10} {:>10}",
                format!("{policy}, {name}"),
                nanos / READS as f64,
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
    let made = Made::new(&folder, BYTES as usize);
    five_columns(&made, Duration::from_nanos(delay));
    no_room(&made, Duration::from_nanos(delay));
}
