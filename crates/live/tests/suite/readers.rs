//! Readers of one thread: the same bytes, the same errors, and the same decisions as of the file or region itself.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use crate::made::{Made, PAGE, check, draws};
use pageout::{Error, File, FileReader, Limits, Memory, Open, RegionOptions};

const PAGES: u64 = 600;
const BYTES: u64 = PAGES * PAGE as u64;

fn memory() -> Memory {
    Memory::builder().budget(8 << 20).io_threads(0).build().unwrap()
}

fn open(memory: &Memory, made: &Made, pages: u64) -> File {
    let max = Some(pages * PAGE as u64);
    let group = memory.group("tenant", Limits { max, ..Limits::NONE }).unwrap();
    memory.open(&made.0, Open::read_write().buffered(true).group(&group)).unwrap()
}

/// Reads pages by guards and copies.
fn read(reader: &FileReader<'_>, seed: u64, reads: u64) {
    let (mut draw, mut buf) = (draws(seed), vec![0; 3 * PAGE]);
    for _ in 0..reads {
        let page = draw(PAGES);
        match draw(3) {
            0 => check(&reader.page(page).unwrap(), page as usize * PAGE),
            1 => reader.with_page(page, |bytes| check(bytes, page as usize * PAGE)).unwrap(),
            _ => {
                let at = draw(BYTES - buf.len() as u64);
                reader.read_at(&mut buf, at).unwrap();
                check(&buf, at as usize);
            }
        }
    }
}

#[test]
fn readers_of_several_threads_read_the_bytes_of_the_file() {
    let made = Made::new("bytes", BYTES as usize);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = open(&memory, &made, 64);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let file = &file;
            scope.spawn(move || read(&file.reader().unwrap(), thread, 5000));
        }
    });
    let stats = memory.stats().unwrap();
    assert_eq!(stats.pinned, 0);
    assert!(stats.hits > 1000 && stats.misses > 1000, "{stats:?}");
}

/// Counters after the same reads, by a reader or by the file.
fn counters(by_reader: bool) -> (String, u64, u64) {
    let made = Made::new(if by_reader { "by-reader" } else { "by-file" }, BYTES as usize);
    let memory = memory();
    let file = open(&memory, &made, 200);
    let reader = file.reader().unwrap();
    let (mut draw, mut buf) = (draws(9), vec![0; 100]);
    for at in 0..20_000 {
        // Runs of pages, so that readahead has something to decide.
        let page = if at % 4 == 0 { draw(PAGES) } else { at % PAGES };
        match (by_reader, draw(3)) {
            (true, 0) => drop(reader.page(page).unwrap()),
            (true, _) => reader.read_at(&mut buf, page * PAGE as u64).unwrap(),
            (false, 0) => drop(file.page(page).unwrap()),
            (false, _) => file.read_at(&mut buf, page * PAGE as u64).unwrap(),
        }
    }
    let stats = memory.stats().unwrap();
    (memory.read("/sys/fs/cgroup/tenant/memory.stat").unwrap(), stats.hits, stats.misses)
}

#[test]
fn reader_leaves_the_counters_that_the_file_leaves() {
    assert_eq!(counters(true), counters(false));
}

#[test]
fn reads_by_both_reach_the_engine_in_order() {
    let made = Made::new("both", BYTES as usize);
    let memory = memory();
    let file = open(&memory, &made, 64);
    let reader = file.reader().unwrap();
    read(&reader, 1, 500);
    let before = memory.stats().unwrap();
    let mut buf = [0; 9];
    for page in [3, 3, 3, 4, 4, 4] {
        reader.read_at(&mut buf, page * PAGE as u64).unwrap();
        file.read_at(&mut buf, page * PAGE as u64).unwrap();
    }
    let after = memory.stats().unwrap();
    assert_eq!(after.hits + after.misses - before.hits - before.misses, 12);
    assert!(memory.read("/sys/fs/cgroup/tenant/memory.stat").unwrap().contains("\nworkingset_"));
}

#[test]
fn guard_of_a_reader_keeps_its_page() {
    let made = Made::new("kept", BYTES as usize);
    let memory = memory();
    let file = open(&memory, &made, 64);
    let reader = file.reader().unwrap();
    // More than a line has places.
    let guards: Vec<_> = (0..40).map(|page| (page, reader.page(page).unwrap())).collect();
    assert_eq!(memory.stats().unwrap().pinned, 40);
    let mut buf = [0; 9];
    (0..3).for_each(|_| (100..PAGES).for_each(|page| file.read_at(&mut buf, page * PAGE as u64).unwrap()));
    guards.iter().for_each(|(page, guard)| check(guard, *page as usize * PAGE));
    drop(guards);
    assert_eq!(memory.stats().unwrap().pinned, 0);
    let error = reader.page(PAGES).err().unwrap();
    assert!(matches!(error, Error::BeyondEnd { .. }), "{error}");
}

#[test]
fn reader_sees_writes_and_cuts_and_that_its_file_is_forgotten() {
    let made = Made::new("cut", BYTES as usize);
    let memory = memory();
    let file = open(&memory, &made, 200);
    let other = file.clone();
    let reader = file.reader().unwrap();
    let mut buf = [0; 5];
    reader.read_at(&mut buf, 7 * PAGE as u64).unwrap();
    file.write_at(b"other", 7 * PAGE as u64).unwrap();
    reader.read_at(&mut buf, 7 * PAGE as u64).unwrap();
    assert_eq!((&buf, &reader.page(7).unwrap()[..5]), (b"other", &b"other"[..]));
    file.set_len(7 * PAGE as u64 + 3).unwrap();
    assert!(matches!(reader.read_at(&mut buf, 7 * PAGE as u64), Err(Error::BeyondEnd { .. })));
    assert_eq!(&*reader.page(7).unwrap(), b"oth");
    other.forget().unwrap();
    assert!(matches!(reader.read_at(&mut buf, 0), Err(Error::Forgotten { .. })));
    assert!(matches!(reader.page(1).err(), Some(Error::Forgotten { .. })));
    assert!(matches!(file.reader().err(), Some(Error::Forgotten { .. })));
}

thread_local! {
    /// Outlives what the thread keeps of the cache, or goes before it.
    static KEPT: std::cell::RefCell<Option<FileReader<'static>>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn reader_may_be_the_last_that_a_thread_drops() {
    let made = Made::new("last", BYTES as usize);
    let memory = memory();
    let file: &'static File = Box::leak(Box::new(open(&memory, &made, 64)));
    for _ in 0..100 {
        std::thread::spawn(move || {
            KEPT.with_borrow_mut(|kept| {
                let reader = kept.insert(file.reader().unwrap());
                check(&reader.page(5).unwrap(), 5 * PAGE);
            });
        })
        .join()
        .unwrap();
    }
    assert_eq!(memory.stats().unwrap().pinned, 0);
    check(&file.page(5).unwrap(), 5 * PAGE);
}

#[test]
fn reader_of_a_region_reads_zeroes_writes_and_swapped_pages() {
    let builder = Memory::builder().budget(8 << 20).files(64 << 20);
    let memory = builder.swap_file(std::env::temp_dir(), 32 << 20).swap_buffered(true).build().unwrap();
    let region = memory.region(16 << 20, RegionOptions::new()).unwrap();
    let reader = region.reader().unwrap();
    let pages = region.len() / PAGE as u64;
    assert!(reader.page(17).unwrap().iter().all(|&byte| byte == 0));
    for page in (0..pages).filter(|page| page % 5 > 0) {
        region.write_at(&page.to_le_bytes(), page * PAGE as u64 + 1).unwrap();
    }
    for page in 0..pages {
        let wanted = if page % 5 > 0 { page } else { 0 };
        let mut buf = [0; 8];
        reader.read_at(&mut buf, page * PAGE as u64 + 1).unwrap();
        assert_eq!(u64::from_le_bytes(buf), wanted);
        assert_eq!(reader.page(page).unwrap()[1..9], wanted.to_le_bytes());
        reader.with_page(page, |bytes| assert_eq!(bytes[1..9], wanted.to_le_bytes())).unwrap();
    }
    assert!(memory.stats().unwrap().refaults_anon > 0 || memory.stats().unwrap().swapped > 0);
    assert!(matches!(reader.page(pages).err(), Some(Error::BeyondEnd { .. })));
}
