//! A contender: a process that fills its pages, accesses them, and prints its figures.

use std::path::Path;
use std::time::Instant;

use foyer::{BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCacheBuilder};
use pageout::{Error, Memory, Region, RegionOptions};

use crate::contents::{check, fill, page};
use crate::measured::{MIB, PAGE, draws, process_time};
use crate::{PAGES, kernel};

const COUNT: u64 = (PAGES / PAGE) as u64;

/// Measures the contender with this name, and prints a figure a line.
pub(crate) fn run(name: &str, folder: &Path, accesses: usize, cgroup: Option<&Path>) {
    match name {
        "region-tmpfs" => region(Path::new("/dev/shm"), accesses),
        "region" => region(folder, accesses),
        "region-quarter" => reads(folder, PAGES / 4, accesses),
        "region-as-foyer" => reads(folder, PAGES * 5 / 8, accesses),
        "kernel" => swapped(accesses, cgroup.expect("a cgroup")),
        "foyer" => hybrid(folder, accesses),
        other => panic!("there is no contender `{other}`"),
    }
}

fn tell(figures: &[(&str, f64)]) {
    figures.iter().for_each(|(key, value)| println!("{key} {value}"));
}

/// CPU time and time of accesses, in nanoseconds.
fn timed(pages: &[u64], mut access: impl FnMut(usize, u64)) -> (f64, f64) {
    let (cpu, began) = (process_time(), Instant::now());
    pages.iter().enumerate().for_each(|(at, &page)| access(at, page));
    (process_time() - cpu, began.elapsed().as_nanos() as f64)
}

/// Figures of accesses beyond memory.
fn tell_misses(pages: &[u64], (cpu, time): (f64, f64), misses: f64, bytes: f64) {
    let accesses = pages.len() as f64;
    tell(&[
        ("misses", misses / accesses),
        ("cpu", cpu / misses / 1e3),
        ("cpu-of-access", cpu / accesses / 1e3),
        ("time", time / accesses / 1e3),
        ("bytes", bytes / accesses),
    ]);
}

/// A region in a budget, with a swap file in the folder.
fn filled(folder: &Path, budget: usize) -> (Memory, Region) {
    let build = |is_buffered: bool| {
        let builder = Memory::builder().budget(budget as u64).files(PAGES as u64);
        builder.swap_file(folder, 2 * PAGES as u64).swap_buffered(is_buffered).build()
    };
    let memory = match build(false) {
        Err(Error::DirectRefused { .. }) => build(true),
        built => built,
    };
    let memory = memory.unwrap();
    let region = memory.region(PAGES as u64, RegionOptions::new()).unwrap();
    (0..COUNT).for_each(|number| region.write_at(&page(number), number * PAGE as u64).unwrap());
    (memory, region)
}

fn region(folder: &Path, accesses: usize) {
    let (memory, region) = filled(folder, PAGES / 2);
    let pages = draws(COUNT as usize, None, accesses);
    let (before, mut buf) = (memory.stats().unwrap(), vec![0; PAGE]);
    let times = timed(&pages, |at, page| {
        region.read_at(&mut buf, page * PAGE as u64).unwrap();
        check(&buf, page);
        if at % 8 == 0 {
            region.write_at(&buf[..8], page * PAGE as u64).unwrap();
        }
    });
    let after = memory.stats().unwrap();
    let bytes =
        after.device_bytes + after.device_bytes_written - before.device_bytes - before.device_bytes_written;
    tell_misses(&pages, times, (after.misses - before.misses) as f64, bytes as f64);
}

fn swapped(accesses: usize, cgroup: &Path) {
    kernel::join(cgroup);
    kernel::use_single_pages();
    let mut room = vec![0_u8; PAGES + PAGE];
    let at = room.as_ptr().align_offset(PAGE);
    let memory = &mut room[at..at + PAGES];
    (0..).zip(memory.chunks_mut(PAGE)).for_each(|(number, bytes)| fill(number, bytes));
    let pages = draws(COUNT as usize, None, accesses);
    let (before, mut buf) = (kernel::swapped(), vec![0; PAGE]);
    let times = timed(&pages, |at, page| {
        let bytes = &mut memory[page as usize * PAGE..][..PAGE];
        buf.copy_from_slice(bytes);
        check(&buf, page);
        if at % 8 == 0 {
            bytes[..8].copy_from_slice(&buf[..8]);
        }
    });
    let after = kernel::swapped();
    tell_misses(&pages, times, after.faults - before.faults, after.bytes - before.bytes);
}

/// Figures of reads from a quarter of the memory.
fn tell_reads(pages: &[u64], (cpu, time): (f64, f64), absent: u64) {
    let reads = pages.len() as f64;
    tell(&[
        ("rate", reads / time * 1e9),
        ("cpu", cpu / reads / 1e3),
        ("resident", kernel::resident_peak() / MIB as f64),
        ("absent", absent as f64),
    ]);
}

fn reads(folder: &Path, budget: usize, accesses: usize) {
    let (_memory, region) = filled(folder, budget);
    let pages = draws(COUNT as usize, Some(0.8), accesses);
    let mut buf = vec![0; PAGE];
    let times = timed(&pages, |_, page| {
        region.read_at(&mut buf, page * PAGE as u64).unwrap();
        check(&buf, page);
    });
    tell_reads(&pages, times, 0);
}

/// The hybrid cache with its defaults, and a weigher, as its pages are larger than its own measure of an entry. A lost page is inserted again.
fn hybrid(folder: &Path, accesses: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let of_disk = folder.join(format!("pageout-rivals-foyer-{}", std::process::id()));
    runtime.block_on(async {
        let device = FsDeviceBuilder::new(&of_disk).with_capacity(2 * PAGES).build().unwrap();
        let cache = HybridCacheBuilder::new()
            .memory(PAGES / 4)
            .with_weighter(|_: &u64, value: &Vec<u8>| value.len())
            .storage()
            .with_engine_config(BlockEngineConfig::new(device))
            .build()
            .await
            .unwrap();
        for number in 0..COUNT {
            cache.insert(number, page(number));
            if number % 256 == 0 {
                // Its queue of writes drops pages when it is full.
                cache.storage().wait().await;
            }
        }
        cache.storage().wait().await;
        let pages = draws(COUNT as usize, Some(0.8), accesses);
        let (cpu, began, mut absent) = (process_time(), Instant::now(), 0);
        let mut buf = vec![0; PAGE];
        for &number in &pages {
            match cache.get(&number).await.unwrap() {
                Some(entry) => buf.copy_from_slice(entry.value()),
                None => {
                    absent += 1;
                    buf = page(number);
                    cache.insert(number, buf.clone());
                }
            }
            check(&buf, number);
        }
        tell_reads(&pages, (process_time() - cpu, began.elapsed().as_nanos() as f64), absent);
        cache.close().await.unwrap();
    });
    std::fs::remove_dir_all(of_disk).unwrap();
}
