//! A device that is full, or fails permanently. Its writers get an error within a second, and those of other devices continue. Each call returns, and
//! no accepted data is lost until it is discarded explicitly.

use std::time::Instant;

use super::*;
use crate::storage::failing::When;

/// Pages that a file of each test may have on the device.
const ROOM: u64 = 100;
/// An error comes within a second, and the calls of a busy machine take longer.
const IN_TIME: Duration = Duration::from_secs(20);
/// A longer time counts as endless: a disk that others write to sometimes needs half a minute to truncate a file.
const LONG: Duration = Duration::from_secs(120);

/// Writes from the `ROOM`th page of a file on fail.
fn full(errno: i32) -> impl FnMut(Request) -> Fate + Send {
    move |request| match request {
        Request::Write { offset, .. } if offset >= ROOM * PAGE_SIZE => Fate::Fails(errno),
        Request::Write { offset, bytes } if offset + bytes as u64 > ROOM * PAGE_SIZE => {
            Fate::Short((ROOM * PAGE_SIZE - offset) as usize)
        }
        _ => Fate::Well,
    }
}

/// A cache with two devices, of which the first is full.
struct Two {
    memory: Memory,
    full: File,
    other: File,
    device: Arc<Device>,
    made: [Made; 2],
}

fn two((backend, io_threads): (Backend, usize), errno: i32) -> Two {
    let memory = Memory::builder().budget(8 << 20).files(64 << 20).backend(backend).io_threads(io_threads);
    let memory = memory.build().unwrap();
    flush_soon(&memory);
    let (made, device) = ([Made::new("full"), Made::new("other")], Arc::new(Device::default()));
    let how = || Open::read_write().create(true).buffered(true);
    let faults = Arc::clone(&device) as Arc<dyn Faults>;
    let full_file = memory.open(&made[0].0, how().device(1).faults(faults)).unwrap();
    let other = memory.open(&made[1].0, how().device(2)).unwrap();
    device.set(full(errno));
    Two { memory, full: full_file, other, device, made }
}

fn errno_of(error: &Error) -> Option<i32> {
    match error {
        Error::Io { source, .. } | Error::Sync { source, .. } => source.raw_os_error(),
        _ => None,
    }
}

/// Writes page after page until that is refused; returns how many were accepted. Each call is over in time.
fn fill(file: &File, errno: i32) -> u64 {
    for page in 0.. {
        let began = Instant::now();
        let outcome = file.write_at(&version(page, 1), page * PAGE_SIZE);
        assert!(began.elapsed() < IN_TIME, "a write takes {:?}: {outcome:?}", began.elapsed());
        if let Err(error) = outcome {
            assert_eq!(errno_of(&error), Some(errno), "{error}");
            return page;
        }
        assert!(page < 4000, "a full device accepts all");
    }
    unreachable!()
}

fn check(file: &File, pages: u64) {
    let mut buf = vec![0; PAGE];
    for page in 0..pages {
        file.read_at(&mut buf, page * PAGE_SIZE).unwrap();
        assert!(buf == version(page, 1), "page {page} was accepted");
    }
}

/// A call that returns, whatever the device does.
fn returns<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = call();
    assert!(began.elapsed() < LONG, "{what} takes {:?}", began.elapsed());
    outcome
}

#[test]
fn writer_of_a_full_device_is_refused_and_loses_nothing() {
    let all: &[i32] = &[libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EIO];
    for (backend, errnos) in backends().into_iter().zip([&all[..1], all, &all[..1]]) {
        for &errno in errnos {
            let two = two(backend, errno);
            let accepted = fill(&two.full, errno);
            assert!(accepted > ROOM);
            let told = returns("sync", || two.full.sync_data()).unwrap_err();
            assert_eq!(errno_of(&told), Some(errno), "{told}");
            returns("acknowledge", || two.full.acknowledge()).unwrap();
            fill(&two.full, errno);
            check(&two.full, accepted);
            // There is space again, and only the writer notices it.
            two.device.heal();
            let began = Instant::now();
            while let Err(error) = two.full.write_at(&version(accepted, 1), accepted * PAGE_SIZE) {
                assert!(began.elapsed() < IN_TIME, "there is space, and a write says {error}");
            }
            two.full.acknowledge().unwrap();
            two.full.sync_data().unwrap();
            check(&two.full, accepted + 1);
            let bytes = two.made[0].bytes();
            assert!((0..=accepted).all(|page| bytes[page as usize * PAGE..][..PAGE] == version(page, 1)));
        }
    }
}

#[test]
fn pages_written_by_a_later_try_are_not_reported_at_the_end() {
    for backend in backends() {
        let two = two(backend, libc::ENOSPC);
        two.full.write_at(&version(ROOM, 1), ROOM * PAGE_SIZE).unwrap();
        two.full.sync_data().unwrap_err();
        let errno = std::io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(printed_at_the_end(&two.memory), [format!("1 dirty page was not written: {errno}")]);
        two.device.heal();
        two.full.sync_data().expect_err("the error is not acknowledged");
        assert!(printed_at_the_end(&two.memory).is_empty());
    }
}

#[test]
fn writers_of_another_device_go_on_beside_a_full_one() {
    for backend in backends() {
        let two = two(backend, libc::ENOSPC);
        fill(&two.full, libc::ENOSPC);
        let began = Instant::now();
        // More than the cache holds.
        for page in 0..4000 {
            two.other.write_at(&version(page, 1), page * PAGE_SIZE).unwrap();
        }
        two.other.sync_data().unwrap();
        assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
        check(&two.other, 4000);
        assert_eq!(two.made[1].bytes().len(), 4000 * PAGE);
        assert!(two.full.sync_data().is_err());
        assert!(two.memory.stats().unwrap().dirty > 0);
    }
}

#[test]
fn each_way_out_of_a_full_device_returns() {
    for backend in backends() {
        for way in 0..5 {
            let two = two(backend, libc::ENOSPC);
            fill(&two.full, libc::ENOSPC);
            let file = two.full.clone();
            let is_kept = returns("a way out", || match way {
                0 => file.set_len(0).map(|()| true),
                1 => file.set_len(50 * PAGE_SIZE + 99).map(|()| true),
                2 => file.reload().map(|()| true),
                3 => {
                    assert!(matches!(file.clone().forget(), Err(Error::Sync { .. })));
                    file.forget_and_discard().map(|()| false)
                }
                _ => {
                    drop(file);
                    Ok(true)
                }
            })
            .unwrap();
            if way < 4 {
                assert_eq!(two.memory.stats().unwrap().dirty, u64::from(way == 1), "way {way}");
            }
            if is_kept && way < 3 {
                two.full.acknowledge().unwrap();
                two.full.write_at(&version(3, 1), 3 * PAGE_SIZE).unwrap();
                two.full.sync_data().unwrap();
            }
            returns("the end of the cache", || drop(two));
        }
    }
}

#[test]
fn writers_that_wait_when_the_device_fills_up_are_refused_too() {
    for backend in backends() {
        let two = two(backend, libc::ENOSPC);
        let refused = std::thread::scope(|scope| {
            let writers = [0, 1, 2, 3].map(|at| {
                let file = &two.full;
                scope.spawn(move || {
                    let mut longest = Duration::ZERO;
                    for page in (at..).step_by(4) {
                        let began = Instant::now();
                        let outcome = file.write_at(&version(page, 1), page * PAGE_SIZE);
                        longest = longest.max(began.elapsed());
                        if outcome.is_err() {
                            return longest;
                        }
                    }
                    unreachable!()
                })
            });
            returns("a cut beside writers", || two.full.set_len(ROOM * PAGE_SIZE)).unwrap();
            writers.map(|writer| writer.join().unwrap())
        });
        assert!(refused.iter().all(|&longest| longest < 2 * IN_TIME), "{refused:?}");
    }
}

/// A device on which each write takes long.
#[derive(Debug)]
struct Slow;

impl Faults for Slow {
    fn fate(&self, _: Request) -> Fate {
        Fate::Well
    }

    fn when(&self, request: Request) -> When {
        match request {
            Request::Write { .. } => When::After(Duration::from_millis(40)),
            _ => When::Now,
        }
    }
}

#[test]
fn writer_of_a_slow_device_waits_and_is_not_refused() {
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let made = Made::new("slow-device");
    let how = Open::read_write().create(true).buffered(true).faults(Arc::new(Slow));
    let file = memory.open(&made.0, how).unwrap();
    for page in 0..1500 {
        file.write_at(&version(page, 1), page * PAGE_SIZE).unwrap();
    }
    file.sync_data().unwrap();
}
