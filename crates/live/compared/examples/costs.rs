//! The cost of a read here and elsewhere, measured in one run: `cargo run --release -p pageout-compared --example costs [FOLDER]`.
//!
//! Files are made in the folder, by default the system's for temporary files, and removed. Its file system should do direct I/O.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example that measures, and ends where it can't"
)]

#[path = "../../examples/measured/head.rs"]
mod measured;

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Instant;

use measured::{MIB, Made, PAGE, cpu, draws, middle, print_lock, process_time};
use pageout::{Memory, Open, ReadAt};
use quick_cache::sync::Cache;

const ROUNDS: usize = 5;
const READS: usize = 200_000;

/// Nanoseconds of this thread's CPU time for each of so many reads.
fn each(reads: usize, act: impl FnOnce()) -> f64 {
    cpu(act) / reads as f64
}

/// The same for two threads in parallel, on average.
fn each_of_two(act: impl Fn() + Sync) -> f64 {
    let run = || each(READS, &act);
    std::thread::scope(|scope| [scope.spawn(run), scope.spawn(run)].map(|one| one.join().unwrap()))
        .iter()
        .sum::<f64>()
        / 2.0
}

fn print_row(name: &str, figures: &[f64], beside: f64) {
    let (median, least, most) = middle(figures);
    println!("  {name:<28} {median:>8.1} ns   ({least:.1} to {most:.1})   {:>6.2}", median / beside);
}

/// What a read of a page costs that is in memory.
fn hits(made: &Made, bytes: usize, exponent: Option<f64>) {
    let pages = draws(bytes / PAGE, exponent, READS);
    let memory = Memory::builder().budget((bytes + bytes / 8 + 8 * MIB) as u64).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let system = File::open(&made.0).unwrap();
    let plain = std::fs::read(&made.0).unwrap();
    let cache: Cache<u64, std::sync::Arc<[u8]>> = Cache::new(2 * bytes / PAGE);
    for (page, bytes) in (0..).zip(plain.chunks(PAGE)) {
        cache.insert(page, bytes.into());
    }
    let mut buf = vec![0; PAGE];
    for page in 0..(bytes / PAGE) as u64 {
        for _ in 0..3 {
            file.read_at(&mut buf, page * PAGE as u64).unwrap();
        }
    }
    let misses = memory.stats().unwrap().misses;
    const ROWS: [&str; 16] = [
        "memcpy",
        "pageout, copy",
        "quick_cache, get and copy",
        "pread",
        "a word of a slice",
        "pageout, guard, one word",
        "quick_cache, get, one word",
        "copy, each of two threads",
        "guard, each of two threads",
        "guard of one page, again",
        "pread of one page, again",
        "reader's guard, one word",
        "reader's guard, one page again",
        "reader, copy",
        "reader's with_page, one word",
        "reader's with_page, again",
    ];
    let mut rows: [Vec<f64>; ROWS.len()] = Default::default();
    for _ in 0..ROUNDS {
        rows[0].push(each(READS, || {
            for &page in &pages {
                buf.copy_from_slice(black_box(&plain[page as usize * PAGE..][..PAGE]));
                black_box(&mut buf);
            }
        }));
        rows[1].push(each(READS, || {
            for &page in &pages {
                file.read_at(&mut buf, page * PAGE as u64).unwrap();
                black_box(&mut buf);
            }
        }));
        rows[2].push(each(READS, || {
            for page in &pages {
                buf.copy_from_slice(&cache.get(page).unwrap());
                black_box(&mut buf);
            }
        }));
        rows[3].push(each(READS, || {
            for &page in &pages {
                system.read_exact_at(&mut buf, page * PAGE as u64).unwrap();
                black_box(&mut buf);
            }
        }));
        rows[4].push(each(READS, || {
            for &page in &pages {
                black_box(black_box(&plain)[page as usize * PAGE + 8]);
            }
        }));
        rows[5].push(each(READS, || {
            for &page in &pages {
                black_box(file.page(page).unwrap()[8]);
            }
        }));
        rows[6].push(each(READS, || {
            for page in &pages {
                black_box(cache.get(page).unwrap()[8]);
            }
        }));
        rows[7].push(each_of_two(|| {
            let mut buf = vec![0; PAGE];
            for &page in &pages {
                file.read_at(&mut buf, page * PAGE as u64).unwrap();
                black_box(&mut buf);
            }
        }));
        rows[8].push(each_of_two(|| {
            for &page in &pages {
                black_box(file.page(page).unwrap()[8]);
            }
        }));
        // All that it looks at is in the first cache of the processor: what is left are instructions.
        rows[9].push(each(READS, || {
            for _ in &pages {
                black_box(file.page(black_box(7)).unwrap()[8]);
            }
        }));
        rows[10].push(each(READS, || {
            for _ in &pages {
                system.read_exact_at(&mut buf, black_box(7) * PAGE as u64).unwrap();
                black_box(&mut buf);
            }
        }));
        let reader = file.reader().unwrap();
        rows[11].push(each(READS, || {
            for &page in &pages {
                black_box(reader.page(page).unwrap()[8]);
            }
        }));
        rows[12].push(each(READS, || {
            for _ in &pages {
                black_box(reader.page(black_box(7)).unwrap()[8]);
            }
        }));
        rows[14].push(each(READS, || {
            for &page in &pages {
                black_box(reader.with_page(page, |page| page[8]).unwrap());
            }
        }));
        rows[15].push(each(READS, || {
            for _ in &pages {
                black_box(reader.with_page(black_box(7), |page| page[8]).unwrap());
            }
        }));
        rows[13].push(each(READS, || {
            for &page in &pages {
                reader.read_at(&mut buf, page * PAGE as u64).unwrap();
                black_box(&mut buf);
            }
        }));
    }
    let of = exponent.map_or("uniform".to_owned(), |exponent| format!("Zipf {exponent}"));
    println!("\nHits, {} MiB, {of}: CPU a read, and times that of a memcpy", bytes / MIB);
    let beside = middle(&rows[0]).0;
    for (name, figures) in ROWS.iter().zip(&rows) {
        print_row(name, figures, beside);
    }
    assert_eq!(memory.stats().unwrap().misses, misses, "all of them are hits");
}

/// The cost of a read if three quarters of the file do not fit in memory.
fn misses(made: &Made, bytes: usize, policy: &str) {
    let pages = draws(bytes / PAGE, Some(0.99), READS);
    let memory = Memory::builder().budget((bytes / 4) as u64).policy(policy).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let mut buf = vec![0; PAGE];
    let mut run = |reads: &[u64]| {
        for &page in reads {
            file.read_at(&mut buf, page * PAGE as u64).unwrap();
        }
    };
    run(&pages);
    let before = memory.stats().unwrap();
    let (began, cpu_here) = (Instant::now(), each(pages.len(), || run(&pages)));
    let took = began.elapsed();
    let stats = memory.stats().unwrap();
    let missed = (stats.misses - before.misses) as f64;
    assert!(missed > 0.0, "a quarter of the file holds all that was read");
    let all_missed = &pages[..missed as usize];
    let direct = std::fs::OpenOptions::new().read(true).custom_flags(0o40000).open(&made.0).unwrap();
    let mut room = vec![0; 2 * PAGE];
    let aligned = room.as_ptr().align_offset(PAGE);
    let cpu_direct = each(all_missed.len(), || {
        for &page in all_missed {
            direct.read_exact_at(&mut room[aligned..aligned + PAGE], page * PAGE as u64).unwrap();
        }
    });
    let per_miss = cpu_here * pages.len() as f64 / missed;
    println!("\nMisses, Zipf 0.99 over {} MiB with a budget of a quarter, {policy}", bytes / MIB);
    println!(
        "  {:.1} % of {} reads missed, {:.0} reads a second",
        100.0 * missed / pages.len() as f64,
        pages.len(),
        pages.len() as f64 / took.as_secs_f64()
    );
    println!(
        "  CPU of all reads for each miss {per_miss:.0} ns; of a bare pread with O_DIRECT {cpu_direct:.0} ns: {:.2}",
        per_miss / cpu_direct
    );
    print_lock(&stats);
    drop((file, memory));
    // The same once more, as the clock goes on while a thread that has the lock does not run.
    let builder = Memory::builder().budget((bytes / 4) as u64).policy(policy).lock_held_by_cpu(true);
    let memory = builder.build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    pages.iter().chain(&pages).for_each(|&page| file.read_at(&mut buf, page * PAGE as u64).unwrap());
    println!("  by CPU time:");
    print_lock(&memory.stats().unwrap());
}

/// What random reads cost of a file that is not in memory: one at a time, and in batches.
fn batches(made: &Made, bytes: usize) {
    const BATCH: usize = 32;
    let pages = draws(bytes / PAGE, None, 4096);
    let mut rows: [Vec<f64>; 4] = Default::default();
    let mut bufs = vec![[0; PAGE]; BATCH];
    for _ in 0..ROUNDS {
        for (at, together) in [1, BATCH].into_iter().enumerate() {
            let memory = Memory::builder().budget((bytes / 4) as u64).build().unwrap();
            let file = memory.open(&made.0, Open::read().random()).unwrap();
            let began = (Instant::now(), process_time());
            for pages in pages.chunks(together) {
                let reads = bufs.iter_mut().zip(pages);
                let mut reads: Vec<ReadAt> =
                    reads.map(|(buf, &page)| ReadAt { buf, offset: page * PAGE as u64 }).collect();
                file.read_batch(&mut reads).unwrap();
            }
            rows[at].push(began.0.elapsed().as_nanos() as f64 / pages.len() as f64);
            rows[2 + at].push((process_time() - began.1) / pages.len() as f64);
        }
    }
    println!("\n4,096 random pages, none in memory: time and CPU a read, and times that of one at a time");
    for (names, rows) in [["one at a time", "batches of 32"], ["its CPU", "batches of 32, its CPU"]]
        .iter()
        .zip(rows.chunks_mut(2))
    {
        let beside = middle(&rows[0]).0;
        names.iter().zip(rows).for_each(|(name, row)| print_row(name, row, beside));
    }
}

fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for bytes in [16 * MIB, 128 * MIB] {
        let made = Made::new(&folder, bytes);
        for exponent in [Some(0.99), None] {
            hits(&made, bytes, exponent);
        }
    }
    let made = Made::new(&folder, 256 * MIB);
    batches(&made, 256 * MIB);
    for policy in ["mglru@6.12", "classic@6.12"] {
        misses(&made, 256 * MIB, policy);
    }
}
