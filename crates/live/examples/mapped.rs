//! Mapped regions next to other memory: `cargo run --release -p pageout --example mapped [FOLDER [ACCESSES]]`. Three tables:
//!
//! - the cost of asking which pages were used;
//! - a loop over a resident region, next to anonymous memory of the system with pages of 4 KiB;
//! - pages that come from swap on one stream of loads and stores, next to an explicit region: the memory is half of it.
//!
//! Each has five interleaved rounds. A second argument is the number of accesses. The swap file is in the folder, whose default is the system's for temporary
//! files. It takes minutes, and needs a system that permits userfaultfd and PAGEMAP_SCAN.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example that ends on an error")]

use std::path::{Path, PathBuf};

use measured::{MIB, PAGE, cpu, draws, middle, process_time};
use pageout::{Error, MapOptions, MappedRegion, Memory, RegionOptions};

#[path = "measured/head.rs"]
mod measured;

const ROUNDS: usize = 5;
const RESIDENT: usize = 64 * MIB;
const STREAM: usize = 64 * MIB;

fn memory(folder: &Path, budget: usize, policy: &str) -> Result<Memory, Error> {
    let build = |is_buffered: bool| {
        let builder = Memory::builder().budget(budget as u64).files(4 * STREAM as u64).policy(policy);
        builder.swap_file(folder, 2 * STREAM as u64).swap_buffered(is_buffered).build()
    };
    match build(false) {
        Err(Error::DirectRefused { .. }) => build(true),
        built => built,
    }
}

/// Anonymous memory of the system, without huge pages.
struct Anonymous(*mut u8);

impl Anonymous {
    fn new(bytes: usize) -> Anonymous {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the system chooses, which is advised before its first use.
        let at = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE);
            at
        };
        Anonymous(at.cast())
    }
}

/// The words at an address, which no other code uses.
fn words<'a>(at: *mut u8, bytes: usize) -> &'a mut [u64] {
    // SAFETY: `at` is the beginning of a region or of a mapping, which has this length and is aligned to a page. It exists
    // longer than the slice is used. Only one such slice is used at a time.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), bytes / 8) }
}

/// Nanoseconds of a pass over a page.
fn pass(words: &[u64]) -> f64 {
    const PASSES: usize = 8;
    let time = cpu(|| {
        for _ in 0..PASSES {
            let sum = std::hint::black_box(words).iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
            std::hint::black_box(sum);
        }
    });
    time / (PASSES * words.len() * 8 / PAGE) as f64
}

fn row(name: &str, unit: &str, figures: &[f64]) {
    let (median, least, most) = middle(figures);
    println!("  {name:34} {median:10.2} ({least:.2}-{most:.2}) {unit}");
}

fn resident(folder: &Path) -> Result<(), Error> {
    let memory = memory(folder, 2 * RESIDENT, "mglru@6.12")?;
    let map = memory.map_region(RESIDENT as u64, MapOptions::new())?;
    let anonymous = Anonymous::new(RESIDENT);
    let (mapped, other) = (words(map.as_mut_ptr(), RESIDENT), words(anonymous.0, RESIDENT));
    mapped.fill(1);
    other.fill(1);
    let rounds: Vec<_> = (0..2 * ROUNDS).map(|_| [pass(mapped), pass(other)]).collect();
    println!("a loop over {} MiB:", RESIDENT / MIB);
    row("mapped region", "ns per page", &rounds.iter().map(|of| of[0]).collect::<Vec<_>>());
    row("anonymous memory, 4 KiB pages", "ns per page", &rounds.iter().map(|of| of[1]).collect::<Vec<_>>());
    row("ratio (at most 1.02)", "", &rounds.iter().map(|of| of[0] / of[1]).collect::<Vec<_>>());
    Ok(())
}

/// Pages that have come from swap.
fn swapped_in(memory: &Memory) -> f64 {
    let vmstat = memory.read("/proc/vmstat").unwrap();
    let line = vmstat.lines().find_map(|line| line.strip_prefix("pswpin ")).unwrap();
    line.parse::<f64>().unwrap()
}

/// Pages from swap, and microseconds of the process's CPU time, per access of a stream.
fn play(memory: &Memory, stream: &[u64], mut access: impl FnMut(u64, bool)) -> (f64, f64) {
    // All pages have contents: an explicit region has no frame for a page that was never written.
    (0..(STREAM / PAGE) as u64).for_each(|page| access(page, true));
    let (half, mut figures) = (stream.len() / 2, (0.0, 0.0));
    for (at, &page) in stream.iter().enumerate() {
        if at == half {
            figures = (swapped_in(memory), process_time());
        }
        access(page, at % 4 == 0);
    }
    let accesses = (stream.len() - half) as f64;
    let figures = (swapped_in(memory) - figures.0, process_time() - figures.1);
    (figures.0 / accesses, figures.1 / accesses / 1e3)
}

fn by_pointer(map: &MappedRegion) -> impl FnMut(u64, bool) {
    let at = map.as_mut_ptr();
    move |page, is_store| {
        // SAFETY: the page is in the region, which is used by this thread alone and exists longer than this.
        unsafe {
            let word = at.add(page as usize * PAGE).cast::<u64>();
            match is_store {
                true => word.write_volatile(page + 1),
                false => assert!([0, page + 1].contains(&word.read_volatile())),
            }
        }
    }
}

fn stream(folder: &Path, accesses: usize) -> Result<(), Error> {
    println!(
        "pages from swap per access, {} MiB in half as much memory, a quarter stores, and CPU time (of the process, by both threads):",
        STREAM / MIB
    );
    for policy in ["mglru@6.12", "classic@6.12"] {
        for (name, exponent) in [("Zipf 0.8", Some(0.8)), ("Zipf 1.0", Some(1.0)), ("uniform", None)] {
            let stream = draws(STREAM / PAGE, exponent, accesses);
            let (mut mapped, mut explicit) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let of = memory(folder, STREAM / 2, policy)?;
                let map = of.map_region(STREAM as u64, MapOptions::new())?;
                mapped.push(play(&of, &stream, by_pointer(&map)));
                drop((map, of));
                let of = memory(folder, STREAM / 2, policy)?;
                let region = of.region(STREAM as u64, RegionOptions::new())?;
                explicit.push(play(&of, &stream, |page, is_store| {
                    let (at, mut value) = (page * PAGE as u64, [0; 8]);
                    match is_store {
                        true => region.write_at(&(page + 1).to_le_bytes(), at).unwrap(),
                        false => region.read_at(&mut value, at).unwrap(),
                    }
                }));
            }
            println!(" {policy}, {name}");
            let pages = |of: &[(f64, f64)]| of.iter().map(|of| of.0).collect::<Vec<_>>();
            let times = |of: &[(f64, f64)]| of.iter().map(|of| of.1).collect::<Vec<_>>();
            row("mapped region", "pages", &pages(&mapped));
            row("explicit region", "pages", &pages(&explicit));
            let ratios = mapped.iter().zip(&explicit);
            row("ratio (at most 1.25)", "", &ratios.map(|(one, other)| one.0 / other.0).collect::<Vec<_>>());
            row("mapped region", "us of CPU time", &times(&mapped));
            row("explicit region", "us of CPU time", &times(&explicit));
        }
    }
    Ok(())
}

/// The CPU time of a call that ages all pages, with a tenth of them used before.
fn sampling(folder: &Path) -> Result<(), Error> {
    let memory = memory(folder, 2 * RESIDENT, "mglru@6.12")?;
    let map = memory.map_region(RESIDENT as u64, MapOptions::new())?;
    let mapped = words(map.as_mut_ptr(), RESIDENT);
    mapped.fill(1);
    let pages = RESIDENT / PAGE;
    let gen_of = |text: &str| -> Option<(String, String)> {
        let memcg =
            text.lines().find_map(|line| line.strip_prefix("memcg"))?.split_whitespace().next()?.to_owned();
        let last = text
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
            .next_back()?;
        Some((memcg, last.to_string()))
    };
    let (mut aged, mut touched) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = process_time();
        (0..pages).step_by(10).for_each(|page| mapped[page * PAGE / 8] += 1);
        touched.push((process_time() - before) / (pages / 10) as f64 / 1e3);
        let text = memory.read("/sys/kernel/debug/lru_gen")?;
        let (memcg, last) = gen_of(&text).expect("MGLRU has generations");
        let before = process_time();
        memory.write("/sys/kernel/debug/lru_gen", &format!("+ {memcg} 0 {last}"))?;
        aged.push((process_time() - before) / pages as f64);
    }
    println!("aging of {} MiB, a tenth of it used:", RESIDENT / MIB);
    row("aging", "ns per page of the region", &aged);
    row("first use after that", "us per used page", &touched);
    let of_gib = |(aged, touched): (&f64, &f64)| {
        let pages = (1 << 30) as f64 / PAGE as f64;
        // Of a second.
        (aged * pages + touched * 1e3 * pages / 10.0) / 1e7
    };
    let shares = aged.iter().zip(&touched).map(of_gib).collect::<Vec<_>>();
    row("1 GiB, once a second (at most 10)", "% of a CPU", &shares);
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let accesses = args.next().map_or(100_000, |count| count.parse().expect("a number of accesses"));
    sampling(&folder)?;
    resident(&folder)?;
    stream(&folder, accesses)
}
