//! Files that are written through the cache: what is read is what was written last, and what was synced is on the device.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that make files")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pageout::{Advice, Backend, Error, File, Limits, Memory, Open, ReadAt};

const PAGE: u64 = 4096;

/// A path at which no file is, and none is left.
struct Made(PathBuf);

impl Made {
    fn new(name: &str) -> Made {
        let name = format!("writes-{name}-{}", std::process::id());
        Made(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn on_device(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn memory(backend: Backend, io_threads: usize) -> Memory {
    Memory::builder().budget(8 << 20).backend(backend).io_threads(io_threads).build().unwrap()
}

fn open(memory: &Memory, made: &Made) -> File {
    memory.open(&made.0, Open::read_write().create(true).buffered(true)).unwrap()
}

/// Numbers that look drawn.
struct Draw(u64);

impl Draw {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// All kinds of writes, reads, lengths and syncs, beside a vector of bytes to which the same is done. The file is larger than what its group may have.
fn compare(name: &str, memory: &Memory, how: Open, seed: u64, steps: u64) {
    const MOST: u64 = 200 * PAGE;
    let made = Made::new(name);
    let group = memory.group(name, Limits { max: Some(64 * PAGE), ..Limits::NONE }).unwrap();
    let file = memory.open(&made.0, how.create(true).group(&group)).unwrap();
    let (mut bytes, mut draw) = (Vec::<u8>::new(), Draw(seed));
    for step in 0..steps {
        let (at, len) = (draw.below(MOST), draw.below(3 * PAGE) + 1);
        let len = if draw.below(3) == 0 { len.next_multiple_of(PAGE) } else { len };
        let at = if draw.below(3) == 0 { at / PAGE * PAGE } else { at };
        match draw.below(20) {
            0..=9 => {
                let buf: Vec<u8> = (0..len).map(|byte| (step + byte) as u8 | 1).collect();
                // Mostly not far behind the end.
                let at = at.min(bytes.len() as u64 + draw.below(5000) * draw.below(2));
                file.write_at(&buf, at).unwrap();
                let end = (at + len) as usize;
                bytes.resize(bytes.len().max(end), 0);
                bytes[at as usize..end].copy_from_slice(&buf);
            }
            10..=15 => {
                let at = at.min(bytes.len() as u64);
                let mut buf = vec![0; len.min(bytes.len() as u64 - at) as usize];
                if draw.below(2) == 0 {
                    file.read_at(&mut buf, at).unwrap();
                } else {
                    file.submit(vec![ReadAt { buf: &mut buf, offset: at }]).unwrap().wait().unwrap();
                }
                assert!(buf == bytes[at as usize..][..buf.len()], "step {step}: {len} bytes from {at}");
            }
            16 if !bytes.is_empty() => {
                let page = draw.below((bytes.len() as u64).div_ceil(PAGE));
                let mut guard = file.page_mut(page).unwrap();
                let start = (page * PAGE) as usize;
                let end = bytes.len().min(start + PAGE as usize);
                assert!(guard[..] == bytes[start..end], "step {step}: page {page} in place");
                let last = guard.len() - 1;
                (guard[0], guard[last]) = (7, 9);
                (bytes[start], bytes[end - 1]) = (7, 9);
                if start == end - 1 {
                    bytes[start] = 9;
                }
            }
            17 if draw.below(3) == 0 => {
                file.set_len(at).unwrap();
                bytes.resize(at as usize, 0);
            }
            18 => {
                file.sync_data().unwrap();
                assert!(made.on_device() == bytes, "step {step}: after a sync");
            }
            19 => file.advise(Advice::DontNeed, 0..bytes.len() as u64).unwrap(),
            _ => {}
        }
        assert_eq!(file.len(), bytes.len() as u64, "step {step}");
    }
    assert_eq!(memory.stats().unwrap().pinned, 0);
    file.forget().unwrap();
    assert!(made.on_device() == bytes, "what was written is there when the file is forgotten");
}

#[test]
fn what_is_read_is_what_was_written_last_whoever_carries_it() {
    std::thread::scope(|scope| {
        for (name, backend, io_threads) in
            [("alone", Backend::Threads, 0), ("threads", Backend::Threads, 3), ("uring", Backend::Any, 8)]
        {
            scope.spawn(move || {
                for (seed, policy) in
                    [(1, "mglru@6.12"), (2, "classic@6.12"), (3, "lru"), (4, "classic@2010")]
                {
                    let builder = Memory::builder().budget(8 << 20).policy(policy).backend(backend);
                    let memory = builder.io_threads(io_threads).build().unwrap();
                    let name = format!("model-{name}-{seed}");
                    compare(&name, &memory, Open::read_write().buffered(true), seed, 400);
                    let how = Open::read_write().buffered(true).random().stable_writes(true);
                    compare(&format!("{name}-stable"), &memory, how, seed + 10, 200);
                }
            });
        }
    });
}

#[test]
fn a_file_that_is_written_past_the_systems_cache_is_as_long_as_it_is_after_each_sync() {
    let memory = memory(Backend::Any, 8);
    let made = Made::new("direct");
    let file = match memory.open(&made.0, Open::read_write().create(true)) {
        Ok(file) => file,
        Err(Error::DirectRefused { .. }) => return eprintln!("LEFT OUT: no direct I/O here"),
        Err(error) => panic!("{error}"),
    };
    let mut bytes = Vec::new();
    for record in 0..300_u64 {
        let record = vec![record as u8 | 1; 100 + record as usize];
        file.write_at(&record, bytes.len() as u64).unwrap();
        bytes.extend(record);
        if bytes.len() % 7 == 0 {
            file.sync_data().unwrap();
            assert!(made.on_device() == bytes);
        }
    }
    file.sync_all().unwrap();
    assert!(made.on_device() == bytes);
    let mut read = vec![0; bytes.len()];
    file.advise(Advice::DontNeed, 0..file.len()).unwrap();
    file.read_at(&mut read, 0).unwrap();
    assert!(read == bytes);
}

#[test]
fn dirty_limits_make_writers_wait_and_never_fail() {
    let made = Made::new("limits");
    let memory = Memory::builder().budget(8 << 20).sysctl("vm.dirty_ratio", 10).build().unwrap();
    let file = open(&memory, &made);
    let buf = [5; 8 * PAGE as usize];
    for at in (0..40 << 20).step_by(buf.len()) {
        file.write_at(&buf, at).unwrap();
        let stats = memory.stats().unwrap();
        assert!(stats.dirty + stats.writeback < stats.frames / 2, "{stats:?}");
    }
    file.sync_data().unwrap();
    let stats = memory.stats().unwrap();
    assert_eq!((stats.dirty, stats.writeback), (0, 0));
    assert!(stats.device_bytes_written >= 40 << 20, "{stats:?}");
    assert!(made.on_device().len() == 40 << 20 && made.on_device().iter().all(|&byte| byte == 5));
}

#[test]
fn who_may_only_read_a_file_does_not_write_it() {
    let made = Made::new("read-only");
    std::fs::write(&made.0, [1; 100]).unwrap();
    let memory = memory(Backend::Any, 1);
    let file = memory.open(&made.0, Open::read().buffered(true)).unwrap();
    assert!(matches!(file.write_at(&[2], 0), Err(Error::ReadOnly { .. })));
    assert!(matches!(file.set_len(3), Err(Error::ReadOnly { .. })));
    assert!(matches!(file.page_mut(0).map(drop), Err(Error::ReadOnly { .. })));
    file.sync_data().unwrap();
}

#[test]
fn who_opens_a_file_again_sees_what_is_not_on_its_device_yet() {
    let made = Made::new("again");
    std::fs::write(&made.0, [1; 100]).unwrap();
    let memory = memory(Backend::Any, 1);
    let before = memory.open(&made.0, Open::read().buffered(true)).unwrap();
    before.read_at(&mut [0; 100], 0).unwrap();
    let file = open(&memory, &made);
    file.write_at(&[2; 50], 80).unwrap();
    let after = memory.open(&made.0, Open::read().buffered(true)).unwrap();
    drop(file);
    for file in [before, after] {
        let mut buf = [0; 130];
        file.read_at(&mut buf, 0).unwrap();
        assert!(buf[..80] == [1; 80] && buf[80..] == [2; 50]);
    }
    let file = open(&memory, &made);
    assert_eq!(file.len(), 130);
    drop((file, memory));
    assert_eq!(made.on_device().len(), 130, "what was not synced goes with the cache");
}

#[test]
fn a_guard_keeps_writers_of_its_page_waiting_and_one_that_writes_readers_and_sync_too() {
    let made = Made::new("guards");
    let memory = memory(Backend::Any, 2);
    let file = open(&memory, &made);
    file.write_at(&[1; 3 * PAGE as usize], 0).unwrap();
    let (is_over, begins) = (AtomicBool::new(false), Barrier::new(2));
    let wait_for = |guard: &mut dyn FnMut(), act: &(dyn Fn() + Sync)| {
        is_over.store(false, Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begins.wait();
                act();
                is_over.store(true, Relaxed);
            });
            begins.wait();
            std::thread::sleep(Duration::from_millis(20));
            assert!(!is_over.load(Relaxed), "it has not waited");
            guard();
        });
        assert!(is_over.load(Relaxed));
    };
    let mut guard = Some(file.page(1).unwrap());
    assert!(file.try_page_mut(1).unwrap().is_none());
    wait_for(&mut || drop(guard.take()), &|| file.write_at(&[2], PAGE + 5).unwrap());
    let mut guard = Some(file.page_mut(1).unwrap());
    guard.as_mut().unwrap()[6] = 3;
    wait_for(&mut || drop(guard.take()), &|| {
        let mut buf = [0; 3];
        file.read_at(&mut buf, PAGE + 4).unwrap();
        assert_eq!(buf, [1, 2, 3]);
    });
    let mut guard = Some(file.page_mut(2).unwrap());
    guard.as_mut().unwrap()[0] = 4;
    assert!(file.try_page_mut(2).unwrap().is_none());
    wait_for(&mut || drop(guard.take()), &|| file.sync_data().unwrap());
    assert_eq!(made.on_device()[2 * PAGE as usize], 4);
    assert!(file.try_page_mut(2).unwrap().is_some());
}

#[test]
fn a_file_is_not_cut_below_a_page_that_somebody_holds_and_is_as_it_was() {
    let made = Made::new("pinned");
    let memory = memory(Backend::Any, 1);
    let file = open(&memory, &made);
    let bytes: Vec<u8> = (0..10 * PAGE).map(|at| (at / PAGE + 1) as u8).collect();
    file.write_at(&bytes, 0).unwrap();
    let guard = file.page(7).unwrap();
    for len in [7 * PAGE + 5, 3 * PAGE, 0] {
        assert!(matches!(file.set_len(len), Err(Error::Pinned { .. })), "{len}");
        assert_eq!(file.len(), 10 * PAGE);
    }
    file.set_len(8 * PAGE + 1).unwrap();
    assert_eq!(guard[..], [8; PAGE as usize]);
    drop(guard);
    let mut buf = vec![0; 8 * PAGE as usize + 1];
    file.read_at(&mut buf, 0).unwrap();
    assert!(buf == bytes[..buf.len()]);
    file.set_len(0).unwrap();
    file.set_len(2 * PAGE).unwrap();
    file.read_at(&mut buf[..2 * PAGE as usize], 0).unwrap();
    assert!(buf[..2 * PAGE as usize].iter().all(|&byte| byte == 0));
}

#[test]
fn many_write_and_read_the_same_pages_and_nobody_sees_half_a_write() {
    for is_stable in [false, true] {
        let made = Made::new(if is_stable { "many-stable" } else { "many" });
        let memory = memory(Backend::Any, 4);
        let group = memory.group("many", Limits { max: Some(48 * PAGE), ..Limits::NONE }).unwrap();
        let how = Open::read_write().create(true).buffered(true).stable_writes(is_stable).group(&group);
        let file = memory.open(&made.0, how).unwrap();
        const PAGES: u64 = 100;
        file.set_len(PAGES * PAGE).unwrap();
        let last: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for writer in 0..2_u64 {
                let (file, last) = (&file, &last);
                scope.spawn(move || {
                    let mut draw = Draw(writer);
                    for turn in 1..1500 {
                        // Each page has one writer.
                        let page = draw.below(PAGES / 2) * 2 + writer;
                        let buf = [turn; PAGE as usize / 8].map(u64::to_le_bytes).concat();
                        last[page as usize].store(turn, Relaxed);
                        file.write_at(&buf, page * PAGE).unwrap();
                        if turn % 300 == 0 {
                            file.sync_data().unwrap();
                        }
                    }
                });
            }
            let file = &file;
            scope.spawn(move || {
                let (mut draw, mut buf) = (Draw(9), vec![0; PAGE as usize]);
                for _ in 0..3000 {
                    file.read_at(&mut buf, draw.below(PAGES) * PAGE).unwrap();
                    assert!(buf.chunks(8).all(|word| word == &buf[..8]), "half a write");
                }
            });
        });
        file.sync_all().unwrap();
        let bytes = made.on_device();
        for (page, last) in bytes.chunks(PAGE as usize).zip(&last) {
            assert!(page.chunks(8).all(|word| word == last.load(Relaxed).to_le_bytes()));
        }
    }
}

#[test]
fn what_others_have_appended_within_a_page_is_read_after_a_reload_whoever_read_the_page_meanwhile() {
    let made = Made::new("appended");
    let memory = memory(Backend::Threads, 2);
    let file = open(&memory, &made);
    let appended = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut buf = [0];
                while appended.load(Relaxed) < 2000 {
                    let _ = file.read_at(&mut buf, appended.load(Relaxed) / PAGE * PAGE);
                }
            });
        }
        let mut other = std::fs::File::options().append(true).open(&made.0).unwrap();
        let mut buf = [0; 9];
        for at in 0..2000 {
            other.write_all(&[7; 9]).unwrap();
            let read = file.reload().and_then(|()| file.read_at(&mut buf, 9 * at));
            if read.is_err() || buf != [7; 9] {
                appended.store(2000, Relaxed);
            }
            read.unwrap();
            assert_eq!(buf, [7; 9], "at {}", 9 * at);
            appended.fetch_max(9 * (at + 1), Relaxed);
            buf = [0; 9];
        }
        appended.store(2000, Relaxed);
    });
}

#[test]
fn what_others_have_written_is_read_after_a_reload_and_nothing_of_it_before() {
    let made = Made::new("reload");
    let builder = Memory::builder().budget(8 << 20).files(128 << 20);
    let memory = builder.backend(Backend::Threads).io_threads(2).build().unwrap();
    let file = open(&memory, &made);
    let (read, mut buf) = (AtomicBool::new(true), [0; 3]);
    file.write_at(&vec![1; 40 * PAGE as usize], 0).unwrap();
    file.sync_data().unwrap();
    std::fs::write(&made.0, vec![2; 50 * PAGE as usize + 3]).unwrap();
    file.read_at(&mut buf, 7 * PAGE).unwrap();
    assert_eq!((buf, file.len()), ([1; 3], 40 * PAGE));
    // Readers go on meanwhile, and read the one or the other.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = vec![0; PAGE as usize];
            while read.load(Relaxed) {
                for at in 0..40 {
                    file.read_at(&mut page, at * PAGE).unwrap();
                    assert!(page.iter().all(|byte| *byte == page[0]) && [1, 2].contains(&page[0]));
                }
            }
        });
        file.reload().unwrap();
        read.store(false, Relaxed);
    });
    for page in 0..50 {
        file.read_at(&mut buf, page * PAGE + 9).unwrap();
        assert_eq!(buf, [2; 3], "page {page}");
    }
    assert_eq!(file.len(), 50 * PAGE + 3);
    // Shorter than it was, and longer again: what was behind the end is zeroes.
    std::fs::write(&made.0, b"short").unwrap();
    file.reload().unwrap();
    assert_eq!(file.len(), 5);
    assert!(matches!(file.read_at(&mut buf, 4), Err(Error::BeyondEnd { .. })));
    file.write_at(b"end", 3 * PAGE).unwrap();
    file.read_at(&mut buf, 5).unwrap();
    assert_eq!(buf, [0; 3]);
    let guard = file.page(0).unwrap();
    assert!(matches!(file.reload(), Err(Error::Pinned { .. })));
    assert_eq!(&guard[..5], b"short");
    drop(guard);
    // What is dirty here is lost.
    file.reload().unwrap();
    assert_eq!(file.len(), 5);
    // Longer than files may be: it stays as long as it was here, and goes on being written.
    std::fs::File::options().write(true).open(&made.0).unwrap().set_len(1 << 40).unwrap();
    for _ in 0..2 {
        assert!(matches!(file.reload(), Err(Error::TooManyFiles { .. })));
    }
    file.write_at(b"end", 5).unwrap();
    file.set_len(6).unwrap();
    file.sync_data().unwrap();
    assert_eq!(std::fs::read(&made.0).unwrap(), b"shorte");
}

#[test]
fn who_holds_pages_to_write_and_finds_no_room_beside_them_is_told() {
    for pages in [1, 4, 16] {
        let made = Made::new("held-to-write");
        std::fs::write(&made.0, vec![7; 64 * PAGE as usize]).unwrap();
        let memory = memory(Backend::Threads, 2);
        let limit = |pages| Limits { max: Some(pages * PAGE), ..Limits::NONE };
        let (small, other) =
            (memory.group("small", limit(pages)).unwrap(), memory.group("other", limit(8)).unwrap());
        let opened = Open::read_write().random().buffered(true);
        let file = memory.open(&made.0, opened.clone().group(&small)).unwrap();
        let beside = memory.open(&made.0, opened.group(&other)).unwrap();
        let held: Vec<_> = (0..pages).map(|page| file.page_mut(page).unwrap()).collect();
        let mut buf = [0; 9];
        let reads = vec![ReadAt { buf: &mut buf, offset: 40 * PAGE }];
        let outcomes = [
            file.read_at(&mut [0; 9], 40 * PAGE),
            file.write_at(&[1; 9], 41 * PAGE),
            file.submit(reads).and_then(pageout::Pending::wait),
        ];
        for outcome in outcomes {
            let Err(error @ Error::OutOfMemory(_)) = outcome else { panic!("{outcome:?}") };
            assert!(error.to_string().contains(&format!("hold {pages} pages in all groups")), "{error}");
        }
        let kills = |group: &pageout::Group| {
            let events = group.read("memory.events").unwrap();
            events.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap().parse::<u64>().unwrap()
        };
        assert_eq!((kills(&small), kills(&other)), (3, 0), "as often as an error was told");
        // Nor do they keep another group waiting, all of whose pages are held.
        let guards: Vec<_> = (50..58).map(|page| beside.page(page).unwrap()).collect();
        let outcome = beside.read_at(&mut [0; 9], 60 * PAGE);
        assert!(matches!(outcome, Err(Error::OutOfMemory(_))), "{outcome:?}");
        drop((held, guards));
        file.write_at(&[1; 9], 41 * PAGE).unwrap();
        beside.read_at(&mut [0; 9], 60 * PAGE).unwrap();
        file.sync_data().unwrap();
    }
}

#[test]
fn a_writer_is_not_held_up_for_pages_that_nobody_can_write_yet() {
    let made = Made::new("throttled");
    std::fs::write(&made.0, vec![7; 256 * PAGE as usize]).unwrap();
    let memory = memory(Backend::Any, 2);
    let small = memory.group("small", Limits { max: Some(40 * PAGE), ..Limits::NONE }).unwrap();
    let file = memory.open(&made.0, Open::read_write().random().buffered(true).group(&small)).unwrap();
    let held: Vec<_> = (0..20).map(|page| file.page_mut(page).unwrap()).collect();
    for page in 50..90 {
        file.write_at(&[1; PAGE as usize], page * PAGE).unwrap();
    }
    drop(held);
    file.sync_data().unwrap();
}
