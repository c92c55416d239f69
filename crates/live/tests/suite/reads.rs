//! Real files through the cache: every byte is the file's, whatever is evicted meanwhile, and what goes wrong is told.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use crate::made::{Made, PAGE, byte, check, draws};
use pageout::{Error, File, Limits, Memory, Open, Pending, ReadAt};
use pageout_engine::Switch;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn read_some(file: &File, seed: u64, reads: u64) {
    let mut draw = draws(seed);
    let mut buf = vec![0; 3 * PAGE];
    for _ in 0..reads {
        let len = file.len();
        let offset = draw(len);
        if draw(3) == 0 {
            let page = offset / PAGE as u64;
            let guard = file.page(page).unwrap();
            check(&guard, page as usize * PAGE);
            continue;
        }
        let wanted = (draw(buf.len() as u64) + 1).min(len - offset) as usize;
        file.read_at(&mut buf[..wanted], offset).unwrap();
        check(&buf[..wanted], offset as usize);
    }
}

#[test]
fn every_byte_is_the_files_whatever_threads_read_and_reclaim_takes() {
    let made = Made::new("threads", (32 << 20) + 123);
    for policy in ["mglru@6.12", "classic@6.12", "lru", "sieve"] {
        let memory = Memory::builder().budget(8 << 20).policy(policy).build().unwrap();
        let tenant = memory.group("tenant", Limits { max: Some(2 << 20), ..Limits::NONE }).unwrap();
        let files = [
            memory.open(&made.0, Open::read()).unwrap(),
            memory.open(&made.0, Open::read().random()).unwrap(),
            memory.open(&made.0, Open::read().random().group(&tenant)).unwrap(),
        ];
        std::thread::scope(|scope| {
            for (seed, file) in (1..).zip(&files) {
                scope.spawn(move || read_some(file, seed, 3000));
            }
        });
        let stats = memory.stats().unwrap();
        assert!(
            stats.misses > 1000 && stats.hits > 1000 && stats.resident < stats.frames,
            "{policy}: {stats:?}"
        );
        assert_eq!(stats.pinned, 0);
        let current: u64 = tenant.read("memory.current").unwrap().trim().parse().unwrap();
        assert!(current <= 2 << 20, "{policy}: {current} bytes");
    }
}

#[test]
fn a_page_under_a_guard_stays_where_it_is() {
    let made = Made::new("guard", 16 << 20);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read()).unwrap();
    let guards: Vec<_> = (0..40).map(|page| file.page(page * 7).unwrap()).collect();
    read_some(&file, 9, 6000);
    for (page, guard) in (0..).zip(&guards) {
        check(guard, page * 7 * PAGE);
    }
    assert_eq!(memory.stats().unwrap().pinned, 40);
    assert!(matches!(file.clone().forget(), Err(Error::Pinned { .. })));
    drop(guards);
    file.forget().unwrap();
    assert_eq!(memory.stats().unwrap().resident, 0);
}

#[test]
fn guards_hold_a_quarter_of_the_frames_at_most() {
    let made = Made::new("pins", 16 << 20);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let mut guards = Vec::new();
    let refused = (0..4000).find_map(|page| match file.page(page) {
        Ok(guard) => {
            guards.push(guard);
            None
        }
        Err(error) => Some(error),
    });
    let Some(Error::Pinned { pinned, most, .. }) = refused else { panic!("{refused:?}") };
    assert!(pinned > most && pinned <= most + 16, "{pinned} of {most}");
    guards.clear();
    read_some(&file, 4, 500);
}

#[test]
fn a_group_whose_pages_are_all_held_says_that_it_has_no_memory_whatever_others_read() {
    let made = Made::new("held", 16 << 20);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let small = memory.group("small", Limits { max: Some(16 * PAGE as u64), ..Limits::NONE }).unwrap();
    let file = memory.open(&made.0, Open::read().random().group(&small)).unwrap();
    let other = memory.open(&made.0, Open::read().random()).unwrap();
    let guards: Vec<_> = (0..16).map(|page| file.page(page).unwrap()).collect();
    let is_told = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut draw = draws(3);
            while !is_told.load(Relaxed) {
                other.read_at(&mut [0; 9], (1024 + draw(3072)) * PAGE as u64).unwrap();
            }
        });
        for page in 100..104 {
            let mut buf = [0; 9];
            let reads = vec![ReadAt { buf: &mut buf, offset: page * PAGE as u64 }];
            let outcomes = [
                file.submit(reads).and_then(Pending::wait),
                file.read_at(&mut [0; 9], page * PAGE as u64),
                file.page(page).map(drop),
            ];
            let is_told = |told: &_| matches!(told, Err(Error::OutOfMemory(_)));
            assert!(outcomes.iter().all(is_told), "page {page}: {outcomes:?}");
        }
        is_told.store(true, Relaxed);
    });
    drop(guards);
    file.read_at(&mut [0; 9], 200 * PAGE as u64).unwrap();
}

#[test]
fn what_a_batch_owes_for_its_groups_high_limit_costs_none_of_its_pages() {
    let made = Made::new("high", 4 << 20);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let limits = Limits { high: Some(4 * PAGE as u64), max: Some(20 * PAGE as u64), ..Limits::NONE };
    let small = memory.group("small", limits).unwrap();
    let file = memory.open(&made.0, Open::read().random().group(&small)).unwrap();
    for round in 0..6 {
        let offset = |at: u64| (round * 100 + at * 8) * PAGE as u64;
        let mut buffers = [[0; 100]; 10];
        let (batch, submitted) = buffers.split_at_mut(5);
        let mut batch: Vec<_> =
            (0..).zip(batch).map(|(at, buf)| ReadAt { buf, offset: offset(at) }).collect();
        file.read_batch(&mut batch).unwrap();
        let submitted = (5..).zip(submitted).map(|(at, buf)| ReadAt { buf, offset: offset(at) }).collect();
        file.submit(submitted).unwrap().wait().unwrap();
        for (buffer, at) in buffers.iter().zip(0..) {
            check(buffer, offset(at) as usize);
        }
    }
    let stats = memory.stats().unwrap();
    assert!(stats.device_reads <= 60, "of 60 pages: {stats:?}");
    assert!(
        small
            .read("memory.events")
            .unwrap()
            .lines()
            .any(|line| line.starts_with("high ") && line != "high 0")
    );
}

#[test]
fn a_batch_reads_all_that_it_is_of() {
    let made = Made::new("batch", 4 << 20);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    for _ in 0..2 {
        let mut buffers = vec![[0; 700]; 64];
        let offsets: Vec<u64> = (0..64).map(|at| at * 60_000 + 11).collect();
        let mut batch: Vec<ReadAt> =
            buffers.iter_mut().zip(&offsets).map(|(buf, &offset)| ReadAt { buf, offset }).collect();
        file.read_batch(&mut batch).unwrap();
        for (buffer, &offset) in buffers.iter().zip(&offsets) {
            check(buffer, offset as usize);
        }
    }
    assert!(memory.stats().unwrap().hits >= 64, "the second time all are in memory");
}

#[test]
fn a_batch_is_read_whole_whatever_it_is_of_and_whoever_else_reads() {
    let made = Made::new("batches", 16 << 20);
    for io_threads in [0, 1, 8] {
        let memory = Memory::builder().budget(8 << 20).io_threads(io_threads).build().unwrap();
        // Fewer pages than a batch has: not all can be in flight together.
        let small = memory.group("small", Limits { max: Some(16 * PAGE as u64), ..Limits::NONE }).unwrap();
        let files = [
            memory.open(&made.0, Open::read()).unwrap(),
            memory.open(&made.0, Open::read().random()).unwrap(),
            memory.open(&made.0, Open::read().random().group(&small)).unwrap(),
        ];
        std::thread::scope(|scope| {
            for (seed, file) in (1..).zip(&files) {
                scope.spawn(move || {
                    let mut draw = draws(seed);
                    for _ in 0..20 {
                        let mut buffers: Vec<_> = (0..70).map(|_| vec![0; draw(9000) as usize]).collect();
                        // Some of them overlap.
                        let near = draw(file.len() - 300_000);
                        let offsets: Vec<u64> = buffers
                            .iter()
                            .map(
                                |_| if draw(3) == 0 { near + draw(200_000) } else { draw(file.len() - 9000) },
                            )
                            .collect();
                        let mut batch: Vec<ReadAt> = buffers
                            .iter_mut()
                            .zip(&offsets)
                            .map(|(buf, &offset)| ReadAt { buf, offset })
                            .collect();
                        file.read_batch(&mut batch).unwrap();
                        for (buffer, &offset) in buffers.iter().zip(&offsets) {
                            check(buffer, offset as usize);
                        }
                    }
                });
            }
        });
        assert_eq!(memory.stats().unwrap().pinned, 0);
    }
}

#[test]
fn a_file_is_forgotten_while_others_read_it_and_they_are_told() {
    let made = Made::new("forgotten", 8 << 20);
    for round in 0..30 {
        let memory = Memory::builder().budget(8 << 20).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let file = file.clone();
                scope.spawn(move || {
                    let mut draw = draws(2 * round + thread);
                    loop {
                        let mut buffers = [[0; 100]; 40];
                        let mut batch: Vec<ReadAt> = buffers
                            .iter_mut()
                            .map(|buf| ReadAt { buf, offset: draw(2040) * PAGE as u64 })
                            .collect();
                        match file.read_batch(&mut batch) {
                            Ok(()) => batch.iter().for_each(|read| check(read.buf, read.offset as usize)),
                            Err(Error::Forgotten { .. }) => {
                                assert!(matches!(file.forget(), Err(Error::Forgotten { .. })), "it is");
                                return;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(3 + round));
            loop {
                match file.clone().forget() {
                    Ok(()) => return,
                    // Who copies out of a page holds it for that.
                    Err(Error::Pinned { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert_eq!(memory.stats().unwrap().resident, 0);
    }
}

#[test]
fn a_batch_of_which_a_part_fails_says_why() {
    let made = Made::new("batch-fails", 64 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    std::fs::OpenOptions::new().write(true).open(&made.0).unwrap().set_len(32 * PAGE as u64).unwrap();
    let mut buffers = [[0; 100]; 64];
    let mut batch: Vec<ReadAt> =
        (0..).zip(&mut buffers).map(|(page, buf)| ReadAt { buf, offset: page * PAGE as u64 }).collect();
    assert!(matches!(file.read_batch(&mut batch), Err(Error::Shortened { page: 32, .. })));
    let mut beyond = [ReadAt { buf: &mut [0; 9], offset: 64 * PAGE as u64 - 5 }];
    assert!(matches!(file.read_batch(&mut beyond), Err(Error::BeyondEnd { .. })));
    (0..32).for_each(|page| check(&buffers[page], page * PAGE));
    file.forget().unwrap();
    assert_eq!(memory.stats().unwrap().resident, 0);
}

#[test]
fn a_rule_is_another_than_the_profiles_where_it_may_be() {
    let builder =
        Memory::builder().budget(8 << 20).policy("classic@6.12").rule("reclaim.file_writeback", "any");
    let memory = builder.rule("writeback.failed_write", "clean").build().unwrap();
    let policy = &memory.config().policy;
    assert_eq!(Switch::by_name("reclaim.file_writeback").unwrap().get(policy), "any");
    assert_eq!(Switch::by_name("writeback.failed_write").unwrap().get(policy), "dirty");
}

#[test]
fn what_is_no_regular_file_is_refused_and_nobody_waits_for_its_other_end() {
    let pipe = Made::empty("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
    let memory = Memory::builder().build().unwrap();
    for path in [&*pipe.0, Path::new("/dev/null"), Path::new("/")] {
        for how in [Open::read(), Open::read().buffered(true), Open::read_write().create(true)] {
            let error = memory.open(path, how).unwrap_err();
            assert!(matches!(error, Error::NoRegularFile { .. }), "{error}");
            let told = format!("{} is not a regular file", path.display());
            assert!(error.to_string().starts_with(&told), "{error}");
        }
    }
}

#[test]
fn what_goes_wrong_says_what_to_do() {
    let made = Made::new("wrong", 40 * PAGE + 5);
    let least = match Memory::builder().budget(1 << 20).build() {
        Err(Error::BudgetTooSmall { least }) => least,
        other => panic!("{other:?}"),
    };
    // A declared size reserves less than is reserved by default.
    let memory = Memory::builder().budget(least).files(1 << 20).build().unwrap();
    assert!(Memory::builder().budget(least / 2).files(1 << 20).build().is_err());
    assert!(Memory::builder().policy("mglru@1.0").build().unwrap_err().to_string().contains("mglru@1.0"));
    let error = Memory::builder().io_threads(1025).build().unwrap_err().to_string();
    assert_eq!(error, "threads that read: 1025 is not in the range 0 to 1024");
    let error = Memory::builder().sysctl("vm.swapiness", 5).build().unwrap_err().to_string();
    assert!(error.contains("vm/swapiness"), "{error}");
    for (rule, value, told) in
        [("reclaim.file", "any", "rule reclaim.file"), ("reclaim.file_writeback", "some", "value some")]
    {
        let error = Memory::builder().rule(rule, value).build().unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }

    let file = memory.open(&made.0, Open::read()).unwrap();
    let error = file.read_at(&mut [0; 10], 40 * PAGE as u64).unwrap_err().to_string();
    assert!(error.contains("byte 163850 of ") && error.contains("the file has 163845 bytes"), "{error}");
    assert!(matches!(file.page(41), Err(Error::BeyondEnd { .. })));
    assert_eq!(file.page(40).unwrap().len(), 5, "the last page ends with its file");
    let missing = memory.open("/nonexistent/file", Open::read()).unwrap_err().to_string();
    assert!(missing.starts_with("opening of /nonexistent/file: "), "{missing}");
    let large = Made::new("large", 3 << 20);
    let error = memory.open(&large.0, Open::read()).unwrap_err();
    assert!(error.to_string().contains("files("), "{error}");

    std::fs::OpenOptions::new().write(true).open(&made.0).unwrap().set_len(8 * PAGE as u64).unwrap();
    let error = file.read_at(&mut [0; 10], 20 * PAGE as u64).unwrap_err();
    assert!(matches!(error, Error::Shortened { page: 20, .. }), "{error}");
    assert!(error.to_string().ends_with("help: call `reload`"), "{error}");
    let other = file.clone();
    file.forget().unwrap();
    assert!(matches!(other.read_at(&mut [0; 10], 0), Err(Error::Forgotten { .. })));
    let again = memory.open(&made.0, Open::read()).unwrap();
    let mut buf = [0; 10];
    again.read_at(&mut buf, 3 * PAGE as u64).unwrap();
    check(&buf, 3 * PAGE);
}

#[test]
fn files_that_nobody_has_open_make_room_for_others() {
    let memory = Memory::builder().budget(8 << 20).files(4 << 20).build().unwrap();
    for round in 0..20 {
        let made = Made::new(&format!("room{round}"), 1 << 20);
        let file = memory.open(&made.0, Open::read()).unwrap();
        read_some(&file, round, 50);
    }
}

#[test]
fn file_is_refused_if_its_tables_do_not_fit() {
    let made: Vec<Made> = (0..8).map(|at| Made::empty(&format!("huge-{at}"))).collect();
    made.iter().for_each(|made| std::fs::File::create(&made.0).unwrap().set_len(4 << 40).unwrap());
    let memory = Memory::builder().budget(12 << 20).build().unwrap();
    let open = |made: &Made| memory.open(&made.0, Open::read().buffered(true));
    let mut files = Vec::new();
    let refused = made.iter().find_map(|made| open(made).map(|file| files.push(file)).err());
    let Some(Error::NoRoomForTables { bytes, most }) = refused else {
        panic!("{refused:?}, {} open", files.len())
    };
    assert!(bytes > most && !files.is_empty(), "{bytes} of {most}");
    // One that goes makes room for another.
    files.pop();
    open(&made[7]).unwrap();
}

#[test]
fn the_child_of_a_fork_is_told_that_it_has_no_cache() {
    let made = Made::new("fork", 64 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let mut buf = [0; 10];
    file.read_at(&mut buf, 0).unwrap();
    let guard = file.page(0).unwrap();
    // SAFETY: the child uses nothing but the cache and its own stack, starts no thread, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(guard);
        let is_told = matches!(file.read_at(&mut buf, 0), Err(Error::Poisoned))
            && matches!(file.read_at(&mut buf, 9 * PAGE as u64), Err(Error::Poisoned))
            && matches!(file.page(0).map(drop), Err(Error::Poisoned))
            && matches!(memory.stats(), Err(Error::Poisoned))
            && matches!(
                memory.open(&*made.0, Open::read()).map(drop),
                Err(Error::Poisoned | Error::DirectRefused { .. })
            );
        // SAFETY: it ends the child and nothing else.
        unsafe { libc::_exit(i32::from(!is_told)) };
    }
    let mut status = -1;
    // SAFETY: the child is this process's, and the status a place of its own.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    check(&guard, 0);
    drop(guard);
    file.read_at(&mut buf, 9 * PAGE as u64).unwrap();
    check(&buf, 9 * PAGE);
}

#[test]
fn a_file_that_was_replaced_or_written_is_another_one_when_it_is_opened_again() {
    let made = Made::new("replaced", 8 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let old = memory.open(&made.0, Open::read().random()).unwrap();
    let mut buf = [0; 100];
    old.read_at(&mut buf, 0).unwrap();
    // Another file under the same name: who has the old one open goes on reading that.
    let other = Made::new("replacing", 8 * PAGE);
    std::fs::write(&other.0, vec![3; 8 * PAGE]).unwrap();
    std::fs::rename(&other.0, &made.0).unwrap();
    let new = memory.open(&made.0, Open::read().random()).unwrap();
    new.read_at(&mut buf, PAGE as u64).unwrap();
    assert_eq!(buf, [3; 100]);
    old.read_at(&mut buf, PAGE as u64).unwrap();
    check(&buf, PAGE);
    // The same file, as long as before, with something else in it.
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::fs::write(&made.0, vec![5; 8 * PAGE]).unwrap();
    let newer = memory.open(&made.0, Open::read().random()).unwrap();
    newer.read_at(&mut buf, PAGE as u64).unwrap();
    assert_eq!(buf, [5; 100]);
}

#[test]
fn who_forgets_a_file_beside_another_one_is_told_what_has_become_of_it() {
    let made = Made::new("forget-twice", 64 * PAGE);
    for round in 0..40 {
        let memory = Memory::builder().budget(8 << 20).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        let guard = (round % 2 == 0).then(|| file.page(round % 64).unwrap());
        let told = std::thread::scope(|scope| {
            let forget = || file.clone().forget();
            [scope.spawn(forget), scope.spawn(forget)].map(|one| one.join().unwrap())
        });
        if let Some(guard) = &guard {
            assert!(told.iter().all(|told| matches!(told, Err(Error::Pinned { .. }))), "{told:?}");
            check(guard, (round % 64) as usize * PAGE);
        } else {
            let forgotten = told.iter().filter(|told| matches!(told, Err(Error::Forgotten { .. }))).count();
            assert_eq!((forgotten, told.iter().filter(|told| told.is_ok()).count()), (1, 1), "{told:?}");
        }
    }
}

#[test]
fn a_file_system_without_direct_reads_is_named_and_read_when_it_is_said() {
    // Memory of the system's: kernels before 6.6 refuse direct reads of it, later ones do them.
    let path = Path::new("/dev/shm").join(format!("pageout-direct-{}", std::process::id()));
    if std::fs::write(&path, (0..9 * PAGE).map(byte).collect::<Vec<u8>>()).is_err() {
        return;
    }
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let file = memory.open(&path, Open::read()).or_else(|error| {
        assert!(matches!(error, Error::DirectRefused { .. }), "{error}");
        assert!(error.to_string().contains("buffered(true)"), "{error}");
        memory.open(&path, Open::read().buffered(true))
    });
    let mut buf = vec![0; 9 * PAGE];
    let read = file.and_then(|file| file.read_at(&mut buf, 0));
    std::fs::remove_file(&path).unwrap();
    read.unwrap();
    check(&buf, 0);
    // A file that no kernel reads so.
    let error = memory.open("/proc/self/status", Open::read()).unwrap_err();
    assert!(matches!(error, Error::DirectRefused { .. }), "{error}");
}

#[test]
fn as_much_is_read_ahead_as_the_builder_says() {
    const PAGES: u64 = 256;
    let made = Made::new("window", PAGES as usize * PAGE);
    let reads = |bytes: u64| {
        let memory = Memory::builder().budget(16 << 20).io_threads(0).read_ahead(bytes).build().unwrap();
        let file = memory.open(&made.0, Open::read().buffered(true)).unwrap();
        let mut buf = [0; PAGE];
        for page in 0..PAGES {
            file.read_at(&mut buf, page * PAGE as u64).unwrap();
        }
        memory.stats().unwrap().device_reads
    };
    assert_eq!(reads(0), PAGES);
    let (of_four, of_thirty_two) = (reads(4 * PAGE as u64), reads(32 * PAGE as u64));
    assert!(of_four >= PAGES / 4 && of_thirty_two < of_four, "{of_four} and {of_thirty_two} reads");
}
