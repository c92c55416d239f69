//! The failing device below a cache: for any source of a request, a thread or a ring, its answer is the device's.

#![allow(clippy::unwrap_used, reason = "tests, which make files")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pageout_engine::PAGE_SIZE;

use super::*;
use crate::{Backend, Error, File, Memory, Open, ReadAt};

const PAGE: usize = PAGE_SIZE as usize;
const PAGES: usize = 64;
const BACKENDS: [(Backend, usize); 4] =
    [(Backend::Threads, 0), (Backend::Threads, 2), (Backend::Uring, 0), (Backend::Uring, 2)];

/// The script of a test, and what it was asked for.
struct Script {
    fate: Box<dyn Fn(Request) -> Fate + Send + Sync>,
    when: Box<dyn Fn(Request) -> When + Send + Sync>,
    requests: Mutex<Vec<Request>>,
    /// In the order in which they were done.
    done: Mutex<Vec<Request>>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl Faults for Script {
    fn fate(&self, request: Request) -> Fate {
        (self.fate)(request)
    }

    fn when(&self, request: Request) -> When {
        self.requests.lock().unwrap().push(request);
        (self.when)(request)
    }

    fn done(&self, request: Request, _: &std::fs::File) {
        self.done.lock().unwrap().push(request);
    }
}

fn script(fate: impl Fn(Request) -> Fate + Send + Sync + 'static) -> Arc<Script> {
    late_script(fate, |_| When::Now)
}

fn late_script(
    fate: impl Fn(Request) -> Fate + Send + Sync + 'static,
    when: impl Fn(Request) -> When + Send + Sync + 'static,
) -> Arc<Script> {
    let (requests, done) = (Mutex::default(), Mutex::default());
    Arc::new(Script { fate: Box::new(fate), when: Box::new(when), requests, done })
}

struct Made(PathBuf);

impl Made {
    fn new() -> Made {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let path = std::env::temp_dir().join(format!("pageout-failing-{}-{number}", std::process::id()));
        std::fs::write(&path, contents()).unwrap();
        Made(path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn contents() -> Vec<u8> {
    (0..PAGES * PAGE).map(|at| (at / PAGE * 7 + at % 251) as u8 | 1).collect()
}

fn open((backend, io_threads): (Backend, usize), made: &Made, faults: Arc<dyn Faults>) -> (Memory, File) {
    let memory = Memory::builder().budget(8 << 20).backend(backend).io_threads(io_threads).build().unwrap();
    let how = Open::read_write().random().buffered(true).faults(faults);
    let file = memory.open(&made.0, how).unwrap();
    (memory, file)
}

/// Reads of every other page, which no two are one request of.
fn reads_of(bufs: &mut [[u8; PAGE]]) -> Vec<ReadAt<'_>> {
    (0..).zip(bufs).map(|(at, buf)| ReadAt { buf, offset: 2 * at * PAGE_SIZE }).collect()
}

fn check(bufs: &[[u8; PAGE]]) {
    let contents = contents();
    for (at, buf) in bufs.iter().enumerate() {
        assert!(buf[..] == contents[2 * at * PAGE..][..PAGE], "page {}", 2 * at);
    }
}

fn is_read(request: Request) -> bool {
    matches!(request, Request::Read { .. })
}

#[test]
fn read_error_reaches_every_kind_of_reader() {
    for backend in BACKENDS {
        let made = Made::new();
        let (_memory, file) = open(
            backend,
            &made,
            script(|request| match request {
                Request::Read { .. } => Fate::Fails(libc::ENODEV),
                _ => Fate::Well,
            }),
        );
        let mut bufs = [[0; PAGE]; 8];
        let told = [
            file.read_at(&mut [0; 9], 0),
            file.read_batch(&mut reads_of(&mut bufs)),
            file.submit(reads_of(&mut bufs)).unwrap().wait(),
            file.prefetch(0..PAGES as u64 * PAGE_SIZE)
                .and_then(|()| file.read_at(&mut [0; 9], 50 * PAGE_SIZE)),
        ];
        for told in told {
            let Err(Error::Io { source, .. }) = &told else { panic!("{backend:?}: {told:?}") };
            assert_eq!(source.raw_os_error(), Some(libc::ENODEV), "{backend:?}");
        }
    }
}

#[test]
fn read_that_is_held_holds_back_no_other_in_a_ring() {
    let (made, held) = (Made::new(), Arc::new(Held::default()));
    let released = Arc::clone(&held);
    let script = late_script(
        |_| Fate::Well,
        move |request| match request {
            Request::Read { offset: 0, .. } => When::Released(Arc::clone(&released)),
            _ => When::Now,
        },
    );
    let (_memory, file) = open((Backend::Uring, 2), &made, Arc::clone(&script) as Arc<dyn Faults>);
    let mut bufs = [[0; PAGE]; 8];
    let mut pending = file.submit(reads_of(&mut bufs)).unwrap();
    let mut last = [0; PAGE];
    file.submit(vec![ReadAt { buf: &mut last, offset: 63 * PAGE_SIZE }]).unwrap().wait().unwrap();
    while script.done.lock().unwrap().len() < 8 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(held.waiting(), 1);
    assert!(!pending.is_ready(), "its first page is not there");
    held.release();
    pending.wait().unwrap();
    let last = *script.done.lock().unwrap().last().unwrap();
    assert_eq!(last, Request::Read { offset: 0, bytes: PAGE }, "the first to begin is the last to end");
    check(&bufs);
}

#[test]
fn read_that_is_to_be_overtaken_ends_behind_a_later_one() {
    let made = Made::new();
    let script = late_script(
        |_| Fate::Well,
        |request| match request {
            Request::Read { offset: 0, .. } => When::Overtaken(Duration::from_secs(10)),
            _ => When::Now,
        },
    );
    let (_memory, file) = open((Backend::Uring, 0), &made, Arc::clone(&script) as Arc<dyn Faults>);
    let mut bufs = [[0; PAGE]; 2];
    file.read_batch(&mut reads_of(&mut bufs)).unwrap();
    let done = script.done.lock().unwrap();
    assert_eq!(done[1], Request::Read { offset: 0, bytes: PAGE });
    check(&bufs);
}

#[test]
fn device_in_a_ring_is_asked_once_for_each_read() {
    let (made, script) = (Made::new(), script(|_| Fate::Well));
    let (_memory, file) = open((Backend::Uring, 2), &made, Arc::clone(&script) as Arc<dyn Faults>);
    let mut bufs = [[0; PAGE]; 30];
    file.submit(reads_of(&mut bufs)).unwrap().wait().unwrap();
    assert_eq!(script.requests.lock().unwrap().iter().filter(|&&request| is_read(request)).count(), 30);
    check(&bufs);
}

#[test]
fn torn_write_stays_dirty_and_the_errno_is_reported() {
    for backend in BACKENDS {
        for errno in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG] {
            let made = Made::new();
            let is_full = Arc::new(std::sync::atomic::AtomicBool::new(true));
            let full = Arc::clone(&is_full);
            let script = script(move |request| match request {
                Request::Write { .. } if full.load(Relaxed) => Fate::Torn(1536, errno),
                _ => Fate::Well,
            });
            let (_memory, file) = open(backend, &made, script);
            file.write_at(&[9; 4 * PAGE], 0).unwrap();
            let Err(Error::Sync { failed: 4, source, .. }) = file.sync_data() else { panic!("{backend:?}") };
            assert_eq!(source.raw_os_error(), Some(errno), "{backend:?}");
            let there = std::fs::read(&made.0).unwrap();
            assert!(there[..1536] == [9; 1536] && there[1536] == contents()[1536]);
            is_full.store(false, Relaxed);
            let _ = file.sync_data();
            file.acknowledge().unwrap();
            file.sync_data().unwrap();
            assert!(std::fs::read(&made.0).unwrap()[..4 * PAGE] == [9; 4 * PAGE]);
        }
    }
}

#[test]
fn length_errors_are_those_of_the_device() {
    let made = Made::new();
    let (_memory, file) = open(
        BACKENDS[0],
        &made,
        script(|request| match request {
            Request::SetLen(_) => Fate::Fails(libc::EFBIG),
            Request::Len => Fate::Fails(libc::EIO),
            _ => Fate::Well,
        }),
    );
    for (outcome, errno) in [(file.set_len(1 << 20), libc::EFBIG), (file.reload(), libc::EIO)] {
        let Err(Error::Io { source, .. }) = &outcome else { panic!("{outcome:?}") };
        assert_eq!(source.raw_os_error(), Some(errno));
    }
}

#[test]
fn page_behind_the_device_end_is_zeroes_without_a_request() {
    const END: u64 = 4 << 20;
    for backend in BACKENDS {
        let (made, script) = (Made::new(), script(|_| Fate::Well));
        let (memory, file) = open(backend, &made, Arc::clone(&script) as Arc<dyn Faults>);
        // The device ends with page 64, and the file behind page 1024: the part in between was never written.
        memory.write("/proc/sys/vm/dirty_writeback_centisecs", "0").unwrap();
        file.write_at(b"x", END).unwrap();
        let mut bufs = [[9; PAGE]; 40];
        let of = |first: u64, bufs: &mut [[u8; PAGE]]| -> Result<(), Error> {
            let reads = (first..).zip(bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE_SIZE });
            file.submit(reads.collect())?.wait()
        };
        of(64, &mut bufs).unwrap();
        assert!(bufs.as_flattened().iter().all(|&byte| byte == 0), "{backend:?}: submitted");
        bufs = [[9; PAGE]; 40];
        let mut reads: Vec<_> =
            (200..).zip(&mut bufs).map(|(page, buf)| ReadAt { buf, offset: 2 * page * PAGE_SIZE }).collect();
        file.read_batch(&mut reads).unwrap();
        assert!(bufs.as_flattened().iter().all(|&byte| byte == 0), "{backend:?}: in a batch");
        file.prefetch(600 * PAGE_SIZE..700 * PAGE_SIZE).unwrap();
        let mut buf = vec![9; 150 * PAGE];
        file.read_at(&mut buf, 590 * PAGE_SIZE).unwrap();
        assert!(buf.iter().all(|&byte| byte == 0), "{backend:?}: read ahead");
        assert_eq!(script.requests.lock().unwrap()[..], [], "{backend:?}");
        // Half of it is on the device.
        let mut buf = vec![9; 20 * PAGE];
        file.read_at(&mut buf, 54 * PAGE_SIZE).unwrap();
        assert!(
            buf[..10 * PAGE] == contents()[54 * PAGE..] && buf[10 * PAGE..].iter().all(|&byte| byte == 0)
        );
        let mut bufs = [[9; PAGE]; 20];
        of(44, &mut bufs).unwrap();
        assert!(bufs.as_flattened()[..] == contents()[44 * PAGE..64 * PAGE]);
    }
}

/// What a cache answers to a sequence of operations that a seed draws, over a device that is short, late and interrupted.
fn bytes_of_operations(backend: (Backend, usize), seed: u64) {
    let mut state = seed;
    let mut below = move |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let made = Made::new();
    let text = format!("read=EINTR every=5; write=EAGAIN every=4; seed={seed} short=40 reorder=2");
    let plan = plan::Plan::parse(&text, &made.0).unwrap().unwrap();
    let (memory, file) = open(backend, &made, Arc::new(plan));
    let mut model = contents();
    for step in 0..300 {
        let pages = (model.len() / PAGE) as u64;
        match below(10) {
            0 => {
                let bytes = below(200 * PAGE_SIZE);
                model.resize(bytes as usize, 0);
                file.set_len(bytes).unwrap();
            }
            // Behind the end, mostly: there is a hole between.
            1 => {
                let at = below(250 * PAGE_SIZE) as usize;
                let len = below(3 * PAGE_SIZE) as usize + 1;
                model.resize(model.len().max(at + len), 0);
                model[at..at + len].fill(step as u8);
                file.write_at(&vec![step as u8; len], at as u64).unwrap();
            }
            2 => file.sync_data().unwrap(),
            3 => memory.write("/proc/sys/vm/drop_caches", "1").unwrap(),
            4 => file.prefetch(below(pages + 1) * PAGE_SIZE..model.len() as u64).unwrap(),
            kind => {
                let count = below(12) as usize + 1;
                let mut places: Vec<_> = (0..count).map(|_| below(model.len() as u64 + 1)).collect();
                let mut bufs: Vec<Vec<u8>> = places
                    .iter()
                    .map(|&at| vec![0xee; below(9000).min(model.len() as u64 - at) as usize])
                    .collect();
                let mut reads: Vec<_> =
                    bufs.iter_mut().zip(&places).map(|(buf, &offset)| ReadAt { buf, offset }).collect();
                match kind {
                    5 | 6 => file.read_batch(&mut reads).unwrap(),
                    7 | 8 => file.submit(reads).unwrap().wait().unwrap(),
                    _ => reads.iter_mut().for_each(|read| file.read_at(read.buf, read.offset).unwrap()),
                }
                for (at, buf) in places.drain(..).zip(bufs) {
                    assert!(
                        buf == model[at as usize..][..buf.len()],
                        "{backend:?}, seed {seed}, step {step}"
                    );
                }
            }
        }
    }
    file.sync_all().unwrap();
    assert!(std::fs::read(&made.0).unwrap() == model, "{backend:?}, seed {seed}");
}

#[test]
fn every_backend_answers_with_the_bytes_of_the_model() {
    for seed in 1..=4 {
        BACKENDS.into_iter().for_each(|backend| bytes_of_operations(backend, seed));
    }
}

#[test]
fn request_whose_end_overflows_is_an_error() {
    for backend in BACKENDS {
        let made = Made::new();
        let (_memory, file) = open(backend, &made, script(|_| Fate::Well));
        for offset in
            [u64::MAX, u64::MAX - 8, u64::MAX - PAGE_SIZE, i64::MAX as u64, i64::MAX as u64 - 8, 1 << 60]
        {
            let mut buf = [0; 9];
            let errors = [
                file.read_at(&mut buf, offset),
                file.read_batch(&mut [ReadAt { buf: &mut buf, offset }]),
                file.submit(vec![ReadAt { buf: &mut buf, offset }]).and_then(|read| read.wait()),
                file.write_at(&buf, offset),
                file.set_len(offset),
                file.page(offset).map(drop),
                file.prefetch(offset..u64::MAX),
            ];
            for (at, error) in errors.iter().enumerate() {
                assert!(error.is_err(), "{backend:?}: way {at}, offset {offset}");
            }
        }
        assert_eq!(file.len(), contents().len() as u64);
    }
}
