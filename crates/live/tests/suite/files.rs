//! Which file is which, and what files give back that nobody has open.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that makes files, and looks at the clock"
)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::made::{Made, PAGE};
use pageout::{Advice, Backend, Error, File, Memory, Open, ReadAt};

fn memory() -> Memory {
    Memory::builder().budget(8 << 20).files(64 << 20).build().unwrap()
}

/// All the ways in which a file may be opened; some file systems have no direct I/O.
fn ways() -> [Open; 4] {
    [Open::read(), Open::read_write(), Open::read().buffered(true), Open::read_write().buffered(true)]
}

#[test]
fn handle_dropped_beside_its_pending_reads_poisons_nothing() {
    let (read, written) = (Made::new("pending-read", 2000 * PAGE), Made::new("pending-written", PAGE));
    for round in 0..60 {
        let backend = if round % 2 == 0 { Backend::Any } else { Backend::Threads };
        let memory = Memory::builder().budget(8 << 20).files(64 << 20).backend(backend).build().unwrap();
        let other = memory.open(&written.0, Open::read_write().buffered(true)).unwrap();
        other.write_at(b"what was written", 0).unwrap();
        let file = memory.open(&read.0, Open::read().random().buffered(true)).unwrap();
        let mut bufs = vec![[0; PAGE]; 32];
        let offset = |at: usize| ((at * 61 + round) % 2000 * PAGE) as u64;
        let reads = bufs.iter_mut().enumerate().map(|(at, buf)| ReadAt { buf, offset: offset(at) });
        let pending = file.submit(reads.collect()).unwrap();
        drop(pending);
        match round % 3 {
            0 => drop(file),
            1 => file.forget().unwrap(),
            _ => file.reload().unwrap(),
        }
        other.sync_data().unwrap();
    }
}

#[test]
fn file_forgotten_by_two_at_once_is_forgotten_once() {
    let (made, other) = (Made::new("twice", 80 * PAGE), Made::new("twice-other", PAGE));
    for _ in 0..60 {
        let memory = memory();
        let other = memory.open(&other.0, Open::read_write().buffered(true)).unwrap();
        other.write_at(b"not synced", 0).unwrap();
        let open = || memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
        let (one, two) = (open(), open());
        one.write_at(&[1; 300_000], 0).unwrap();
        let outcomes = std::thread::scope(|scope| {
            [scope.spawn(|| one.forget()), scope.spawn(|| two.forget_and_discard())]
                .map(|thread| thread.join().unwrap())
        });
        let forgotten = outcomes.iter().filter(|of| matches!(of, Err(Error::Forgotten { .. }))).count();
        assert!(outcomes.iter().any(Result::is_ok) && forgotten <= 1, "{outcomes:?}");
        other.sync_data().unwrap();
    }
}

#[test]
fn call_beside_a_forget_that_fails_is_not_told_forgotten() {
    let made = Made::new("stays", 8 * PAGE);
    let memory = memory();
    let file = memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
    let is_over = AtomicBool::new(false);
    let guard = file.page(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                assert!(matches!(file.clone().forget(), Err(Error::Pinned { .. })));
            }
        });
        type Call = fn(&File) -> Result<(), Error>;
        let calls: [(&str, Call); 14] = [
            ("acknowledge", |file| file.acknowledge()),
            ("advise", |file| file.advise(Advice::DontNeed, PAGE as u64..8 * PAGE as u64)),
            ("advise Random", |file| file.advise(Advice::Random, 0..1)),
            ("advise WillNeed", |file| file.advise(Advice::WillNeed, PAGE as u64..2 * PAGE as u64)),
            ("describe", |file| file.describe().map(drop)),
            ("prefetch", |file| file.prefetch(PAGE as u64..8 * PAGE as u64)),
            ("read_at", |file| file.read_at(&mut [0; PAGE], PAGE as u64)),
            ("page", |file| file.page(2).map(drop)),
            ("with_page", |file| file.with_page(3, |_| ())),
            ("page_mut", |file| file.page_mut(4).map(drop)),
            ("write_at", |file| file.write_at(&[1; PAGE], 5 * PAGE as u64)),
            ("set_len", |file| file.set_len(8 * PAGE as u64)),
            ("sync_data", |file| file.sync_data()),
            ("submit", |file| {
                let mut buf = [0; PAGE];
                file.submit(vec![ReadAt { buf: &mut buf, offset: 6 * PAGE as u64 }])?.wait()
            }),
        ];
        let until = Instant::now() + Duration::from_millis(400);
        let mut wrong = Vec::new();
        while Instant::now() < until {
            for (name, call) in calls {
                wrong.extend(call(&file).err().map(|error| format!("{name}: {error}")));
            }
        }
        is_over.store(true, Relaxed);
        wrong.sort();
        wrong.dedup();
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
    drop(guard);
    file.forget().unwrap();
}

#[test]
fn file_that_grew_after_handles_closed_is_forgotten() {
    let (made, memory) = (Made::new("grew", PAGE), memory());
    for _ in 0..20 {
        let open = || memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
        let (file, one, two) = (open(), open(), open());
        drop((one, two));
        file.set_len(20 << 20).unwrap();
        file.write_at(b"two", (20 << 20) - 3).unwrap();
        file.forget().unwrap();
        fs::OpenOptions::new().write(true).open(&made.0).unwrap().set_len(PAGE as u64).unwrap();
    }
}

#[test]
fn one_inode_is_one_file_however_it_is_opened() {
    for first in 0..4 {
        for second in 0..4 {
            let (made, memory) = (Made::new("one-inode", 2 * PAGE), memory());
            let open = |way: usize| memory.open(&made.0, ways()[way].clone());
            let files = [first, 1, second, 3].map(open);
            if files.iter().any(|file| matches!(file, Err(Error::DirectRefused { .. }))) {
                continue;
            }
            let files = files.map(Result::unwrap);
            files[1].write_at(b"1111", 0).unwrap();
            files[3].write_at(b"2222", 8).unwrap();
            files[1].sync_data().unwrap();
            files[3].sync_data().unwrap();
            for (at, file) in files.iter().enumerate() {
                let mut seen = [0; 12];
                file.read_at(&mut seen, 0).unwrap();
                assert_eq!((&seen[..4], &seen[8..]), (&b"1111"[..], &b"2222"[..]), "{first}, {second}: {at}");
            }
            let disk = fs::read(&made.0).unwrap();
            assert_eq!((&disk[..4], &disk[8..12]), (&b"1111"[..], &b"2222"[..]), "{first}, {second}");
        }
    }
}

#[test]
fn file_written_outside_is_fresh_when_opened_again() {
    for is_written in [false, true] {
        for is_open in [false, true] {
            let (made, memory) = (Made::new("outside", 2 * PAGE), memory());
            let how = if is_written { Open::read_write() } else { Open::read() }.buffered(true);
            let file = memory.open(&made.0, how.clone()).unwrap();
            let mut byte = [0];
            file.read_at(&mut byte, 0).unwrap();
            if is_written {
                file.write_at(b"o", 1).unwrap();
                file.sync_data().unwrap();
            }
            let kept = is_open.then_some(file);
            std::thread::sleep(Duration::from_millis(20));
            // The time is put back: that of the inode is not.
            let time = fs::metadata(&made.0).unwrap().modified().unwrap();
            let other = fs::OpenOptions::new().write(true).open(&made.0).unwrap();
            other.write_all_at(b"z", 0).unwrap();
            other.set_modified(time).unwrap();
            let again = memory.open(&made.0, how).unwrap();
            for file in kept.iter().chain([&again]) {
                file.read_at(&mut byte, 0).unwrap();
                assert_eq!(byte, *b"z", "written: {is_written}, open: {is_open}");
            }
        }
    }
}

#[test]
fn own_writes_do_not_make_a_file_another_one() {
    for how in [Open::read_write().buffered(true), Open::read_write()] {
        let (made, memory) = (Made::new("own-writes", 64 * PAGE), memory());
        let file = match memory.open(&made.0, how.clone()) {
            Err(Error::DirectRefused { .. }) => continue,
            file => file.unwrap(),
        };
        for round in 0..40_u64 {
            file.write_at(&[round as u8; 3 * PAGE], round * PAGE as u64).unwrap();
            match round % 4 {
                0 => file.sync_data().unwrap(),
                1 => file.set_len((round + 50) * PAGE as u64).unwrap(),
                2 => std::thread::sleep(Duration::from_millis(5)),
                _ => {}
            }
            let misses = memory.stats().unwrap().device_reads;
            let again = memory.open(&made.0, how.clone()).unwrap();
            let mut byte = [0];
            again.read_at(&mut byte, round * PAGE as u64).unwrap();
            assert_eq!(byte, [round as u8]);
            assert_eq!(memory.stats().unwrap().device_reads, misses, "its pages are there: round {round}");
        }
    }
}

#[test]
fn file_written_outside_beside_dirty_pages_is_refused() {
    let (made, memory) = (Made::new("both", 2 * PAGE), memory());
    memory.write("/proc/sys/vm/dirty_writeback_centisecs", "0").unwrap();
    let file = memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
    file.write_at(b"ours", 0).unwrap();
    // A name is not its contents.
    let renamed = Made::empty("renamed");
    fs::rename(&made.0, &renamed.0).unwrap();
    let mut seen = [0; 4];
    memory.open(&renamed.0, Open::read().buffered(true)).unwrap().read_at(&mut seen, 0).unwrap();
    assert_eq!(seen, *b"ours");
    std::thread::sleep(Duration::from_millis(20));
    fs::OpenOptions::new().write(true).open(&renamed.0).unwrap().write_all_at(b"theirs", 100).unwrap();
    let refused = memory.open(&renamed.0, Open::read().buffered(true)).unwrap_err();
    assert!(matches!(refused, Error::ChangedOutside { .. }), "{refused}");
    file.reload().unwrap();
    let again = memory.open(&renamed.0, Open::read().buffered(true)).unwrap();
    let mut seen = [0; 6];
    again.read_at(&mut seen, 100).unwrap();
    assert_eq!(seen, *b"theirs");
}

#[test]
fn file_that_another_cache_writes_is_refused() {
    let (made, one, two) = (Made::new("locked", 2 * PAGE), memory(), memory());
    let how = || Open::read_write().buffered(true);
    let file = one.open(&made.0, how()).unwrap();
    let again = one.open(&made.0, how()).unwrap();
    let refused = two.open(&made.0, how()).unwrap_err();
    assert!(
        matches!(refused, Error::Locked { .. }) && refused.to_string().contains("own_locks"),
        "{refused}"
    );
    two.open(&made.0, Open::read().buffered(true)).unwrap();
    two.open(&made.0, how().own_locks(true)).unwrap();
    // Another process would be refused as well.
    assert!(fs::File::open(&made.0).unwrap().try_lock().is_err());
    file.write_at(b"x", 0).unwrap();
    file.sync_data().unwrap();
    drop((file, again));
    two.open(&made.0, how()).unwrap();
    let refused = one.open(&made.0, how()).err();
    assert!(refused.is_none(), "nobody has it open there: {refused:?}");
}

#[test]
fn deleted_file_that_nobody_has_open_gives_its_space_back() {
    use std::os::unix::fs::MetadataExt;
    let (made, memory) = (Made::new("deleted", 100 * PAGE), memory());
    let (watch, path) = (fs::File::open(&made.0).unwrap(), made.0.canonicalize().unwrap());
    // This one's, and the cache's: other tests of the process open files as well.
    let descriptors = || {
        let of_process = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let paths = of_process.filter_map(|of| fs::read_link(of.path()).ok());
        paths.filter(|of| of.to_string_lossy().starts_with(&*path.to_string_lossy())).count()
    };
    let file = memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
    file.write_at(&[1; 100 * PAGE], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(descriptors(), 2);
    drop(file);
    assert_eq!(watch.metadata().unwrap().nlink(), 1);
    fs::remove_file(&made.0).unwrap();
    let began = Instant::now();
    while descriptors() > 1 {
        assert!(began.elapsed() < Duration::from_secs(60), "its descriptor stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(memory.stats().unwrap().resident, 0, "its pages stay");
}

#[test]
fn calls_in_any_order_from_many_threads_poison_nothing() {
    let (made, memory) = (Made::new("any-order", 300 * PAGE), memory());
    let (memory, made, is_over) = (&memory, &made, &AtomicBool::new(false));
    std::thread::scope(|scope| {
        for seed in 0..6 {
            scope.spawn(move || {
                let mut draw = crate::made::draws(seed);
                while !is_over.load(Relaxed) {
                    let how = ways()[2 + draw(2) as usize].clone();
                    let file = memory.open(&made.0, how).unwrap();
                    let mut bufs = [[0; 100]; 8];
                    for _ in 0..draw(4) {
                        let end = file.len().max(200) - 200;
                        let outcome = match draw(9) {
                            0 => file.set_len(draw(300) * PAGE as u64 + draw(PAGE as u64)),
                            1 => file.reload(),
                            2 => file.clone().forget(),
                            3 => file.write_at(&[2; 9000], draw(250) * PAGE as u64 + draw(4000)),
                            4 => file.prefetch(0..draw(end + 1)),
                            5 => file.sync_data(),
                            6 => file.clone().forget_and_discard(),
                            _ => {
                                let read = |buf| ReadAt { buf, offset: draw(end + 1) };
                                let pending =
                                    file.submit(bufs.iter_mut().map(|buf| &mut buf[..]).map(read).collect());
                                match draw(2) {
                                    0 => pending.map(drop),
                                    _ => pending.and_then(|pending| pending.wait()),
                                }
                            }
                        };
                        assert!(
                            !matches!(
                                outcome,
                                Err(Error::Poisoned | Error::Config(_) | Error::Shortened { .. })
                            ),
                            "{outcome:?}"
                        );
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_secs(2));
        is_over.store(true, Relaxed);
    });
    memory.stats().unwrap();
}

#[test]
fn second_handle_with_own_locks_keeps_posix_locks() {
    use std::os::fd::AsRawFd;
    let (made, memory) = (Made::new("posix", 2 * PAGE), memory());
    let how = || Open::read_write().buffered(true).own_locks(true);
    let reader = memory.open(&made.0, Open::read().buffered(true).own_locks(true)).unwrap();
    let caller = fs::OpenOptions::new().read(true).write(true).open(&made.0).unwrap();
    let mut lock = libc::flock { l_type: libc::F_WRLCK as _, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    assert_eq!(unsafe { libc::fcntl(caller.as_raw_fd(), libc::F_SETLK, &raw mut lock) }, 0);
    let one = memory.open(&made.0, how()).unwrap();
    drop(memory.open(&made.0, how()).unwrap());
    drop((reader, one));
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&made.0).unwrap());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let is_held = locks.lines().any(|line| line.contains("POSIX") && line.contains(&format!(":{inode} ")));
    assert!(is_held, "{locks}");
}
