//! The idioms of the standard library: cursors, errors, guards without a borrow, and futures.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

use crate::made::{Made, PAGE, check, draws};
use pageout::{
    Cursor, Error, File, Memory, Open, OwnedPageMut, OwnedPageRef, PendingSync, PendingWrites, RegionOptions,
};
use std::future::Future;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

fn memory() -> Memory {
    Memory::builder().budget(8 << 20).guard_wait(Duration::from_millis(200)).build().unwrap()
}

fn writable(memory: &Memory, made: &Made) -> File {
    memory.open(&made.0, Open::read_write().create(true).buffered(true)).unwrap()
}

/// Awaits a future on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(60)),
        }
    }
}

/// Does the same with a cursor of ours and with one of std.
fn same<T: Read + Write + Seek, U: Read + Write + Seek>(mut ours: T, mut model: U, len: u64, seed: u64) {
    let mut draw = draws(seed);
    for step in 0..2_000 {
        match draw(4) {
            0 => {
                let to = match draw(3) {
                    0 => SeekFrom::Start(draw(len)),
                    1 => SeekFrom::End(draw(len) as i64 - len as i64 / 2),
                    _ => SeekFrom::Current(draw(len) as i64 - len as i64 / 2),
                };
                let (found, expected) = (ours.seek(to), model.seek(to));
                assert_eq!(found.as_ref().ok(), expected.as_ref().ok(), "step {step}: {to:?}");
                assert_eq!(
                    found.err().map(|error| error.kind()),
                    expected.err().map(|error| error.kind()),
                    "step {step}: {to:?}"
                );
            }
            1 => {
                let bytes = vec![draw(256) as u8; draw(2 * PAGE as u64) as usize];
                assert_eq!(ours.write(&bytes).unwrap(), model.write(&bytes).unwrap(), "step {step}");
            }
            _ => {
                let mut buffers = [(); 2].map(|()| vec![0; 3 * PAGE]);
                let bytes = draw(3 * PAGE as u64) as usize;
                let [ours_at, model_at] = &mut buffers;
                let found = ours.read(&mut ours_at[..bytes]).unwrap();
                assert_eq!(found, model.read(&mut model_at[..bytes]).unwrap(), "step {step}");
                assert!(buffers[0] == buffers[1], "step {step}: other bytes");
            }
        }
        assert_eq!(ours.stream_position().unwrap(), model.stream_position().unwrap(), "step {step}");
    }
}

#[test]
fn file_cursor_behaves_like_a_std_cursor() {
    let (memory, made) = (memory(), Made::empty("cursor"));
    let file = writable(&memory, &made);
    same(file.cursor(), io::Cursor::new(Vec::new()), 40 * PAGE as u64, 7);
}

#[test]
fn region_cursor_behaves_like_a_std_cursor() {
    let memory = memory();
    let bytes = 20 * PAGE + 100;
    let region = memory.region(bytes as u64, RegionOptions::new()).unwrap();
    same(region.cursor(), io::Cursor::new(vec![0; bytes].into_boxed_slice()), bytes as u64, 8);
}

#[test]
fn cursor_of_a_file_serves_the_traits_of_std() {
    let (memory, made) = (memory(), Made::empty("traits"));
    let mut log = writable(&memory, &made).cursor();
    (0..1_000).for_each(|line| writeln!(log, "line {line}").unwrap());
    log.flush().unwrap();
    log.rewind().unwrap();
    let lines: Vec<_> = io::BufReader::new(log.clone()).lines().map(Result::unwrap).collect();
    assert!(lines.iter().enumerate().all(|(at, line)| *line == format!("line {at}")));
    assert_eq!(lines.len(), 1_000);
    let error = log.seek(SeekFrom::Current(-1)).unwrap_err();
    assert_eq!((error.kind(), log.position()), (io::ErrorKind::InvalidInput, 0));
    log.set_position(u64::MAX);
    assert_eq!(log.read(&mut [0; 4]).unwrap(), 0);
    assert_eq!(log.write(&[0; 4]).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    let read = memory.open(&made.0, Open::read().buffered(true)).unwrap();
    assert_eq!(read.cursor().write(b"x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

fn is_of_tasks<T: Send + Sync + 'static>() {}

#[test]
fn owned_types_can_be_sent_and_shared() {
    is_of_tasks::<OwnedPageRef>();
    is_of_tasks::<OwnedPageMut>();
    is_of_tasks::<PendingSync>();
    is_of_tasks::<PendingWrites<Vec<u8>>>();
    is_of_tasks::<Cursor<File>>();
}

#[test]
fn owned_page_outlives_the_handles_of_its_file() {
    let (memory, made) = (memory(), Made::new("outlives", 64 * PAGE));
    let file = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
    // Missing, then in memory.
    let pages = [file.page_owned(7).unwrap(), file.page_owned(7).unwrap()];
    assert_eq!(memory.stats().unwrap().pinned, 2);
    drop((file, memory));
    let [page, other] = pages;
    let checked = std::thread::spawn(move || {
        check(&page, 7 * PAGE);
        // Without a copy.
        let bytes = bytes::Bytes::from_owner(page);
        check(&bytes.slice(100..), 7 * PAGE + 100);
    });
    checked.join().unwrap();
    check(&other, 7 * PAGE);
}

#[test]
fn owned_page_keeps_writers_out_until_it_goes() {
    let (memory, made) = (memory(), Made::new("keeps", 8 * PAGE));
    let file = writable(&memory, &made);
    let page = file.page_owned(3).unwrap();
    let error = file.write_at(&[1; 9], 3 * PAGE as u64).unwrap_err();
    assert!(matches!(error, Error::Pinned { page: Some(3), .. }), "{error}");
    assert!(file.try_page_mut_owned(3).unwrap().is_none());
    check(&page, 3 * PAGE);
    let sent = std::thread::spawn(move || drop(page));
    sent.join().unwrap();
    assert_eq!(memory.stats().unwrap().pinned, 0);
    let mut page = file.page_mut_owned(3).unwrap();
    page[..9].copy_from_slice(&[1; 9]);
    assert_eq!(memory.stats().unwrap().pinned, 1);
    let error = file.read_at(&mut [0; 9], 3 * PAGE as u64).unwrap_err();
    assert!(matches!(error, Error::Pinned { page: Some(3), .. }), "{error}");
    std::thread::spawn(move || drop(page)).join().unwrap();
    assert_eq!(memory.stats().unwrap().pinned, 0);
    file.sync_data().unwrap();
    assert_eq!(std::fs::read(&made.0).unwrap()[3 * PAGE..][..9], [1; 9]);
}

#[test]
fn owned_pages_beyond_a_quarter_of_memory_are_refused() {
    let (memory, made) = (memory(), Made::new("quarter", 4 << 20));
    let file = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
    let most = memory.stats().unwrap().frames / 4;
    let mut pages = Vec::new();
    let error = (0..1024).find_map(|page| file.page_owned(page).map(|page| pages.push(page)).err());
    assert!(matches!(error, Some(Error::Pinned { page: None, .. })), "{error:?}");
    let held = pages.len() as u64;
    assert!(most <= held && held < most + 16, "{held} guards, limit {most}");
    drop(pages);
    file.page_owned(1023).unwrap();
}

#[test]
fn owned_page_of_an_unwritten_region_is_zeroes() {
    let memory = memory();
    let region = memory.region(10 * PAGE as u64, RegionOptions::new()).unwrap();
    let page = region.page_owned(4).unwrap();
    assert!(page.iter().all(|&byte| byte == 0) && page.len() == PAGE);
    let mut written = region.page_mut_owned(4).unwrap();
    written[7] = 7;
    drop((written, region));
    assert_eq!(page[7], 0);
}

#[test]
fn awaited_writes_and_sync_reach_the_device() {
    let (memory, made) = (memory(), Made::new("awaited", 64 * PAGE));
    let file = writable(&memory, &made);
    let mut expected = std::fs::read(&made.0).unwrap();
    for round in 0..3 {
        // The first of these is made immediately from the second round on, and the last one extends the file.
        let at = [(10, 100), (5 * PAGE + 7, 2 * PAGE), (64 * PAGE, 77)];
        let writes: Vec<_> = at.iter().map(|&(at, len)| (vec![round + 5; len], at as u64)).collect();
        expected.resize(64 * PAGE + 77, 0);
        at.iter().for_each(|&(at, len)| expected[at..at + len].fill(round + 5));
        let (outcome, buffers) = block_on(file.submit_writes(writes));
        outcome.unwrap();
        assert_eq!(buffers.iter().map(Vec::len).collect::<Vec<_>>(), [100, 2 * PAGE, 77]);
        block_on(file.submit_sync_data()).unwrap();
        assert!(std::fs::read(&made.0).unwrap() == expected, "round {round}");
    }
    let (outcome, _) = block_on(file.submit_writes(vec![([1; 10], u64::MAX - 3)]));
    assert!(matches!(outcome, Err(Error::TooLong { .. })), "{outcome:?}");
    let read = memory.open(&made.0, Open::read().buffered(true)).unwrap();
    let (outcome, _) = read.submit_writes(vec![([1; 10], 0)]).wait();
    assert!(matches!(outcome, Err(Error::ReadOnly { .. })), "{outcome:?}");
}

#[test]
fn cache_ends_with_the_last_awaited_sync() {
    let made = Made::new("ends", 64 * PAGE);
    for _ in 0..20 {
        let memory = memory();
        let file = writable(&memory, &made);
        file.write_at(&[3; 100], 500).unwrap();
        let sync = file.submit_sync_data();
        drop((file, memory));
        // The thread that makes it may be the last one that has the cache.
        drop(sync);
    }
    let memory = memory();
    let file = writable(&memory, &made);
    assert_eq!(file.page(0).unwrap()[500..600], [3; 100]);
}
