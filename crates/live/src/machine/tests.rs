//! What a panic, a failing device and a move leave of the cache.

#![allow(clippy::unwrap_used, reason = "tests, which make files")]

use std::path::Path;

use pageout_engine::PAGE_SIZE;

use super::*;
use crate::paged::Paged;
use crate::storage::Real;
use crate::{Memory, Open, ReadAt};

const PAGE: usize = PAGE_SIZE as usize;

/// A cache, and a file with `pages` pages in it.
fn cache(name: &str, pages: usize) -> (Memory, crate::File) {
    let path = std::env::temp_dir().join(format!("pageout-machine-{name}-{}", std::process::id()));
    std::fs::write(&path, vec![7; pages * PAGE]).unwrap();
    let memory = Memory::builder().budget(8 << 20).io_threads(1).build().unwrap();
    let file = memory.open(&path, Open::read_write().random().buffered(true)).unwrap();
    std::fs::remove_file(&path).unwrap();
    (memory, file)
}

/// Reads of a file give an error of the device from now on.
fn break_device(memory: &Memory) {
    // Nothing is mapped at the address zero.
    let broken = std::fs::File::open(Path::new("/proc/self/mem")).unwrap();
    memory.0.machine.lock().unwrap().files.open[0].as_mut().unwrap().disk = Arc::new(Real::new(broken));
}

fn reads_of(bufs: &mut [[u8; 9]]) -> Vec<ReadAt<'_>> {
    (0..).zip(bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE_SIZE }).collect()
}

fn idle(memory: &Memory) -> usize {
    memory.0.machine.lock().unwrap().files.groups[0].idle.lock().unwrap().len()
}

#[test]
fn whatever_fails_the_pool_has_all_its_tasks_afterwards() {
    let (memory, file) = cache("pool", 64);
    file.read_at(&mut [0; 9], 0).unwrap();
    let tasks = idle(&memory);
    assert!(tasks > 0);
    break_device(&memory);
    for page in 1..20 {
        let error = file.read_at(&mut [0; 9], page * PAGE_SIZE).unwrap_err();
        assert!(
            matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(libc::EIO)),
            "{error}"
        );
    }
    let mut bufs = [[0; 9]; 40];
    let reads = bufs.iter_mut().zip(20..).map(|(buf, page)| ReadAt { buf, offset: page * PAGE_SIZE });
    assert!(file.read_batch(&mut reads.collect::<Vec<_>>()).is_err());
    let hired = idle(&memory);
    assert!(hired >= tasks, "a batch hires more");
    let tasks = hired;
    assert!(file.page(62).is_err());
    assert!(memory.write("/proc/sys/vm/swappiness", "-5").is_err());
    let guard = file.page(0).unwrap();
    assert!(matches!(file.clone().forget(), Err(Error::Pinned { .. })));
    drop(guard);
    // A task that cannot be lent the file has lost nothing else.
    let (id, object) = (file.0.id, file.0.object);
    let mut locked = memory.0.machine.lock().unwrap();
    let owner = locked.files.owner;
    locked.engine.close(owner, object).unwrap();
    drop(locked);
    assert!(file.page(30).is_err());
    assert_eq!(idle(&memory), tasks);
    let locked = memory.0.machine.lock().unwrap();
    assert!(!locked.files.open[id.0 as usize].as_ref().unwrap().is_going);
}

#[test]
fn the_words_of_a_file_that_is_forgotten_go_from_each_thread_at_its_next_miss() {
    let (memory, file) = cache("words", 64);
    let (_, other) = cache("words-other", 64);
    let machine = &memory.0.machine;
    file.read_at(&mut [0; 9], 0).unwrap();
    let read = file.clone();
    let (next, is_forgotten) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let read = read;
            read.read_at(&mut [0; 9], 0).unwrap();
            assert_eq!(local::kept(machine), 1);
            next.wait();
            is_forgotten.wait();
            assert!(matches!(read.page(0).map(drop), Err(Error::Forgotten { .. })));
            assert_eq!(local::kept(machine), 0);
        });
        next.wait();
        file.forget().unwrap();
        assert_eq!(local::kept(machine), 0, "who forgets it keeps nothing");
        is_forgotten.wait();
    });
    drop(other);
}

#[test]
fn a_device_that_fails_is_told_whoever_reads_it() {
    for backend in [Backend::Any, Backend::Threads] {
        let path = std::env::temp_dir().join(format!("pageout-machine-eio-{}", std::process::id()));
        std::fs::write(&path, vec![7; 64 * PAGE]).unwrap();
        let memory = Memory::builder().budget(8 << 20).backend(backend).build().unwrap();
        let file = memory.open(&path, Open::read().random().buffered(true)).unwrap();
        break_device(&memory);
        let is_told = |told: Result<(), Error>| {
            let Err(Error::Io { source, page: Some(_), .. }) = &told else { panic!("{told:?}") };
            assert_eq!(source.raw_os_error(), Some(libc::EIO), "{told:?}");
        };
        let mut bufs = [[0; 9]; 40];
        is_told(file.read_batch(&mut reads_of(&mut bufs)));
        is_told(file.submit(reads_of(&mut bufs)).unwrap().wait());
        is_told(file.page(50).map(drop));
        // Nobody waits for what is read ahead: who reads it later is told.
        file.prefetch(0..64 * PAGE_SIZE).unwrap();
        is_told(file.read_at(&mut [0; 9], 60 * PAGE_SIZE));
        // The device is well again, and nothing of it is left.
        memory.0.machine.lock().unwrap().files.open[0].as_mut().unwrap().disk =
            Arc::new(Real::new(std::fs::File::open(&path).unwrap()));
        file.read_batch(&mut reads_of(&mut bufs)).unwrap();
        assert_eq!(bufs, [[7; 9]; 40]);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_frame_of_a_read_that_failed_was_never_open() {
    let (memory, file) = cache("never-open", 64);
    let frames = memory.stats().unwrap().frames as u32;
    let versions = || (0..frames).map(|pfn| memory.0.machine.arena.gate(Pfn(pfn)).0.load(Relaxed));
    break_device(&memory);
    let before: Vec<u64> = versions().collect();
    let mut bufs = [[0; 9]; 40];
    assert!(file.read_at(&mut [0; 9], 50 * PAGE_SIZE).is_err());
    assert!(file.read_batch(&mut reads_of(&mut bufs)).is_err());
    assert!(file.submit(reads_of(&mut bufs)).unwrap().wait().is_err());
    assert!(versions().eq(before), "who opens a gate counts its version up");
}

#[test]
fn more_handles_than_have_a_number_are_an_error() {
    let path = std::env::temp_dir().join(format!("pageout-machine-handles-{}", std::process::id()));
    std::fs::write(&path, [7; 100]).unwrap();
    let mut builder = Memory::builder().budget(8 << 20);
    builder.handles_max = 3;
    let memory = builder.build().unwrap();
    let open = || memory.open(&path, Open::read().buffered(true));
    let files = [(); 3].map(|()| open().unwrap());
    for _ in 0..2 {
        let Err(error @ Error::TooManyHandles { most: 3 }) = open() else { panic!("there are three") };
        assert!(error.to_string().contains("drop some"), "{error}");
    }
    let clone = files[2].clone();
    drop(files);
    let (one, two) = (open().unwrap(), open().unwrap());
    assert!(open().is_err());
    [&clone, &one, &two].iter().for_each(|file| file.read_at(&mut [0; 100], 0).unwrap());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn who_awaits_a_read_is_told_of_a_panic() {
    let (memory, file) = cache("panic-pending", 4096);
    let arena = &memory.0.machine.arena;
    let gates = (0..memory.stats().unwrap().frames as u32).map(|pfn| arena.gate(Pfn(pfn)));
    // One move is in progress, the other begins it.
    let mut buf = [0; 9];
    let before = file.submit(vec![ReadAt { buf: &mut buf, offset: 7 * PAGE_SIZE }]).unwrap();
    // Each gate opens after its page was checked: that of the first read opens meanwhile.
    gates.filter(|gate| !gate.is_open()).for_each(|gate| gate.open());
    let mut other = [0; 9];
    let told = file.submit(vec![ReadAt { buf: &mut other, offset: 9 * PAGE_SIZE }]).and_then(|it| it.wait());
    assert!(matches!(told, Err(Error::Poisoned)), "{told:?}");
    assert!(matches!(before.wait(), Err(Error::Poisoned) | Ok(())));
}

#[test]
fn a_panic_of_a_read_is_told_to_all_who_wait_and_to_all_who_come() {
    let (memory, file) = cache("panic", 4096);
    // A free frame with an open gate: a read into it notices that.
    let arena = &memory.0.machine.arena;
    let frames = 0..memory.stats().unwrap().frames as u32;
    let free = frames.map(Pfn).filter(|&pfn| !arena.gate(pfn).is_open());
    free.collect::<Vec<_>>().into_iter().for_each(|pfn| arena.gate(pfn).open());
    let outcomes = std::thread::scope(|scope| {
        let read = || file.read_at(&mut [0; 9], 5 * PAGE_SIZE);
        [scope.spawn(read), scope.spawn(read)].map(|reader| reader.join().unwrap())
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Poisoned))), "{outcomes:?}");
    assert!(matches!(memory.stats(), Err(Error::Poisoned)));
    assert!(matches!(file.page(6).map(drop), Err(Error::Poisoned)));
    assert!(matches!(memory.read("/proc/vmstat"), Err(Error::Poisoned)));
}

/// A cache with slow memory, and a file with `pages` pages there.
fn slow_cache(name: &str, pages: usize) -> (Memory, crate::File) {
    let path = std::env::temp_dir().join(format!("pageout-machine-{name}-{}", std::process::id()));
    std::fs::write(&path, (0..pages).flat_map(|page| [page as u8; PAGE]).collect::<Vec<_>>()).unwrap();
    let slow = crate::Node::slow(8 << 20).emulated(crate::Delay::per_page(Duration::ZERO));
    let builder = Memory::builder().budget(24 << 20).policy("classic@6.12").node(slow);
    let memory = builder.build().unwrap();
    let group = memory.group("slow", crate::Limits::NONE).unwrap();
    group.write("cpuset.mems", "1").unwrap();
    let file = memory.open(&path, Open::read().random().buffered(true).group(&group)).unwrap();
    std::fs::remove_file(&path).unwrap();
    for page in 0..pages {
        file.with_page(page as u64, |bytes| assert_eq!(bytes[0], page as u8)).unwrap();
    }
    group.write("cpuset.mems", "0-1").unwrap();
    (memory, file)
}

#[test]
fn whatever_moves_the_engine_holds_what_it_must() {
    let (memory, file) = slow_cache("moves", 6000);
    std::thread::scope(|scope| {
        let readers = [1_u64, 2, 3].map(|seed| {
            let file = &file;
            scope.spawn(move || {
                let (mut state, mut buf) = (seed, vec![0; 2 * PAGE]);
                for _ in 0..15_000 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
                    let page = (state >> 33) % if state >> 32 & 1 == 0 { 5999 } else { 700 };
                    file.read_at(&mut buf, page * PAGE_SIZE).unwrap();
                    assert!(buf[..PAGE].iter().all(|&byte| byte == page as u8), "page {page}");
                    assert!(buf[PAGE..].iter().all(|&byte| byte == (page + 1) as u8), "page {page}");
                }
            })
        });
        while readers.iter().any(|reader| !reader.is_finished()) {
            std::thread::sleep(Duration::from_millis(40));
            memory.0.machine.lock().unwrap().engine.check_invariants();
        }
    });
    let stats = memory.stats().unwrap();
    assert!(stats.promoted > 100 && stats.demoted > 100, "{stats:?}");
}

#[test]
fn a_panic_in_the_middle_of_a_move_is_told_and_reaches_nobody() {
    let (memory, file) = slow_cache("panic-moves", 64);
    let arena = &memory.0.machine.arena;
    // Free frames with open gates: a move of a page there notices that.
    let fast = 0..4096 - 64;
    let free = fast.map(Pfn).filter(|&pfn| !arena.gate(pfn).is_open());
    free.collect::<Vec<_>>().into_iter().for_each(|pfn| arena.gate(pfn).open());
    let mut outcome = Ok(());
    for page in (0..64).cycle().take(64 * 8) {
        outcome = outcome.and_then(|()| file.read_at(&mut [0; 9], page * PAGE_SIZE));
    }
    assert!(matches!(outcome, Err(Error::Poisoned)), "{outcome:?}");
    assert!(matches!(memory.stats(), Err(Error::Poisoned)));
    assert!(matches!(memory.read("/proc/vmstat"), Err(Error::Poisoned)));
}

/// A file that is shortened and forgotten after a call has checked the length: the call fails as a later one would, which checks the length first.
#[test]
fn call_overtaken_by_set_len_and_forget_is_beyond_the_end() {
    type Call = fn(&crate::File, &dyn Fn());
    let calls: [(&str, Call); 6] = [
        ("read_at", |file, overtake| {
            let mut buf = [0; 9];
            let read = |piece: &crate::file::Piece, buf: &mut [u8]| {
                overtake();
                file.0.read_slowly(piece, buf)
            };
            assert_beyond("read_at", file.0.read_by(&mut buf, 5, read));
        }),
        ("page", |file, overtake| {
            let len = file.0.bytes_of_page(3).unwrap();
            overtake();
            assert_beyond("page", file.0.page_slowly(3, len).map(drop));
        }),
        ("submit", |file, overtake| {
            let mut buf = [0; 9];
            let mut reads = vec![ReadAt { buf: &mut buf, offset: 5 }];
            let (cuts, missing) = (file.0.length.cuts(), file.0.copy_what_is_there(&mut reads).unwrap());
            overtake();
            let reader = crate::pending::Reader::File(file.clone());
            assert_beyond("submit", crate::Pending::new(reader, reads, missing, cuts).map(drop));
        }),
        ("reads of a batch", |file, overtake| {
            let mut buf = [0; 9];
            let reads = [ReadAt { buf: &mut buf, offset: 5 }];
            overtake();
            assert_beyond("a batch", Err(file.0.error_of_reads(&reads, file.0.forgotten())));
        }),
        ("a range", |file, overtake| {
            overtake();
            assert_beyond("a range", Err(file.0.error_up_to(1, file.0.forgotten())));
        }),
        ("later calls", |file, overtake| {
            overtake();
            assert_beyond("a later read", file.read_at(&mut [0; 9], 5));
            assert_beyond("a later page", file.page_mut(3).map(drop));
            // Within the length, it is forgotten.
            assert!(matches!(file.0.error_up_to(0, file.0.forgotten()), Error::Forgotten { .. }));
        }),
    ];
    for (name, call) in calls {
        let (memory, file) = cache("overtaken", 64);
        let is_over = std::cell::Cell::new(false);
        call(&file, &|| {
            if !is_over.replace(true) {
                file.set_len(0).unwrap();
                file.clone().forget().unwrap();
            }
        });
        assert!(is_over.get(), "{name}");
        drop((memory, file));
    }
}

fn assert_beyond(what: &str, outcome: Result<(), Error>) {
    assert!(matches!(outcome, Err(Error::BeyondEnd { bytes: 0, .. })), "{what}: {outcome:?}");
}
