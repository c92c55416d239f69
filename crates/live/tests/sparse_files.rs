//! Files of 1 TiB, of which nothing was declared, in a budget of 64 MiB: pages all over them are read and written, and the process stays in its budget. A
//! test of its own process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and reads /proc")]

mod made;
#[path = "made/memory.rs"]
mod memory;

use made::Made;
use memory::Growth;
use pageout::{File, Memory, Open};

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;
const PAGE: u64 = 4096;
const BUDGET: u64 = 64 * MIB;

/// Checks the peak since the growth began.
fn check(growth: &Growth, what: &str, memory: &Memory) {
    let (grown, stats) = (growth.peak(), memory.stats().unwrap());
    println!(
        "{what}: grown by {:.2} of {} MiB; {} frames for pages, {} for tables of {:.2} MiB; {} pages in memory, {} refaults; {}",
        grown as f64 / MIB as f64,
        BUDGET / MIB,
        stats.frames,
        stats.table_frames,
        stats.table_bytes as f64 / MIB as f64,
        stats.resident,
        stats.refaults,
        growth.describe_parts(),
    );
    assert!(grown <= BUDGET + MIB, "{what}: grown by {grown} bytes");
}

/// A number without a pattern for each access.
fn draws(seed: u64, count: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    (0..count).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 24
    })
}

/// Two threads access random pages of files of this size. A page that was written has its number.
fn access(files: &[File], bytes: u64, count: u64, writes: bool) {
    let pages = bytes / PAGE;
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            scope.spawn(move || {
                let mut buf = [0; 64];
                for draw in draws(thread, count) {
                    let (file, page) = (&files[(draw % files.len() as u64) as usize], draw % pages);
                    if writes {
                        file.write_at(&(page + 1).to_le_bytes(), page * PAGE).unwrap();
                    } else {
                        file.read_at(&mut buf, page * PAGE).unwrap();
                        assert!(
                            buf[..8] == [0; 8] || buf[..8] == (page + 1).to_le_bytes(),
                            "page {page}: {buf:?}"
                        );
                    }
                }
            });
        }
    });
}

#[test]
fn terabyte_of_files_stays_in_a_budget_of_64_mebibytes() {
    let accesses: u64 = 25_000;
    for (policy, count) in [("classic@6.12", 1), ("mglru@6.12", 200)] {
        let bytes = TIB / count;
        let made: Vec<Made> = (0..count).map(|at| Made::empty(&format!("sparse-{at}"))).collect();
        made.iter().for_each(|made| std::fs::File::create(&made.0).unwrap().set_len(bytes).unwrap());
        let growth = Growth::begin();
        let memory = Memory::builder().budget(BUDGET).policy(policy).build().unwrap();
        let frames = memory.stats().unwrap().frames;
        let open = |made: &Made| memory.open(&made.0, Open::read_write().random().buffered(true)).unwrap();
        let files: Vec<File> = made.iter().map(open).collect();
        let what = |load: &str| format!("{policy}, {count} files of 1 TiB together, {load}");
        check(&growth, &what("opened"), &memory);
        access(&files, bytes, accesses, false);
        check(&growth, &what("read"), &memory);
        let stats = memory.stats().unwrap();
        assert!(stats.table_frames > frames / 4, "pages far apart cost tables a page each");
        access(&files, bytes, accesses / 5, true);
        files.iter().for_each(|file| file.sync_all().unwrap());
        check(&growth, &what("written"), &memory);
        access(&files, bytes, accesses / 5, false);
        let far_apart = memory.stats().unwrap().frames;
        // Pages side by side: tables give frames back.
        for _ in 0..2 {
            (0..frames).for_each(|page| files[0].read_at(&mut [0; 64], page * PAGE).unwrap());
        }
        check(&growth, &what("then its first pages"), &memory);
        let stats = memory.stats().unwrap();
        assert!(4 * stats.frames > 5 * far_apart, "{} of {frames} frames are for pages again", stats.frames);
        memory.look_at_engine(|engine| engine.check_invariants()).unwrap();
        files.into_iter().for_each(|file| file.forget().unwrap());
        let left = memory.stats().unwrap().table_bytes;
        assert!(left + 4 * MIB < stats.table_bytes, "words of forgotten files take {left} bytes");
    }
}
