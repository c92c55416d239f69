//! A region behind a compressed pool: `cargo run --release -p pageout --example compressed [FOLDER]` makes the same accesses without zswap, with lz4 and with
//! zstd, and prints what each has read from the swap file. The region has twice the memory of its group, and its pages are records of text. Each page is
//! checked whenever it is read.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example that ends on an error")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use pageout::{Error, Limits, Memory, RegionOptions, Zswap};

const PAGE: u64 = 4096;
const BUDGET: u64 = 64 << 20;
const REGION_BYTES: u64 = 32 << 20;
const LIMIT: u64 = 16 << 20;
const ACCESSES: u64 = 40_000;

/// The records of a page: its number and version, and numbers as a log has them.
fn records(page: u64, version: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(2 * PAGE as usize);
    let mut word = page << 20 | version;
    while text.len() < PAGE as usize {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (user, micros) = (word >> 40 & 0xffff, word >> 20 & 0xfffff);
        text.extend(
            format!("page={page} version={version} user={user} GET /api/items status=200 took={micros}us\n")
                .bytes(),
        );
    }
    text.truncate(PAGE as usize);
    text
}

/// Makes the accesses, and prints a line about them.
fn run(folder: &Path, zswap: Option<Zswap>, is_buffered: bool) -> Result<(), Error> {
    let builder = Memory::builder().budget(BUDGET).files(REGION_BYTES);
    let builder = builder.swap_file(folder, REGION_BYTES).swap_buffered(is_buffered);
    let memory = match zswap {
        Some(zswap) => builder.zswap(zswap).build()?,
        None => builder.build()?,
    };
    let group = memory.group("job", Limits { max: Some(LIMIT), ..Limits::NONE })?;
    let region = memory.region(REGION_BYTES, RegionOptions::new().group(&group))?;
    let pages = REGION_BYTES / PAGE;
    let mut versions = vec![1; pages as usize];
    for page in 0..pages {
        region.write_at(&records(page, 1), page * PAGE)?;
    }
    let (began, mut word) = (Instant::now(), 7_u64);
    for _ in 0..ACCESSES {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Low numbers are more frequent.
        let page = ((word >> 33) % pages * (word >> 17 & 0xffff)) >> 16;
        let version = &mut versions[page as usize];
        assert!(*region.page(page)? == records(page, *version), "page {page} is not at version {version}");
        if word >> 60 == 0 {
            *version += 1;
            region.write_at(&records(page, *version), page * PAGE)?;
        }
    }
    let (stats, name) = (memory.stats()?, zswap.map_or_else(|| "none".to_owned(), |zswap| zswap.to_string()));
    println!(
        "{name:16} {:5} pages compressed in {:4} frames, {:6} requests read {:3} MiB from the swap file, {:?}",
        stats.zswapped,
        stats.zswap_frames,
        stats.device_reads,
        stats.device_bytes >> 20,
        began.elapsed(),
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for zswap in [None, Some(Zswap::lz4()), Some(Zswap::zstd(1))] {
        match run(&folder, zswap, false) {
            Err(Error::DirectRefused { .. }) => run(&folder, zswap, true)?,
            ran => ran?,
        }
    }
    Ok(())
}
