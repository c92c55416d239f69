//! Calls that are mixed as a hostile caller mixes them: each test is of a defect that was found so.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that makes files, and looks at the clock"
)]

use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::made::{Made, PAGE, draws};
use pageout::{Backend, Builder, Error, Limits, Memory, Open, ReadAt};

const P: u64 = PAGE as u64;

fn builder() -> Builder {
    Memory::builder().budget(8 << 20).files(64 << 20)
}

/// A cache whose flusher writes at once.
fn fast() -> Memory {
    let [writeback, expire] = ["vm.dirty_writeback_centisecs", "vm.dirty_expire_centisecs"];
    builder().sysctl(writeback, 1).sysctl(expire, 1).build().unwrap()
}

fn written() -> Open {
    Open::read_write().create(true).buffered(true)
}

fn for_a_while(act: impl Fn(&AtomicBool)) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(1500));
            is_over.store(true, Relaxed);
        });
        act(&is_over);
    });
}

#[test]
fn page_written_above_memory_high_is_never_seen_unfilled() {
    let (made, other) = (Made::empty("high"), Made::empty("high-other"));
    fs::write(&made.0, vec![0xaa; 64 * PAGE]).unwrap();
    fs::write(&other.0, vec![0x55; 2000 * PAGE]).unwrap();
    let memory = fast();
    // What frames may have in them that nobody has filled.
    memory
        .open(&other.0, Open::read().buffered(true))
        .unwrap()
        .read_at(&mut vec![0; 1900 * PAGE], 0)
        .unwrap();
    let high = memory.group("high", Limits { high: Some(8 * P), ..Limits::NONE }).unwrap();
    let writer = memory.open(&made.0, written().random().group(&high)).unwrap();
    let reader = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
    let is_right = |bytes: &[u8]| bytes.iter().all(|byte| [0xaa, 0xbb].contains(byte));
    for_a_while(|is_over| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut draw = draws(5);
                while !is_over.load(Relaxed) {
                    writer.write_at(&[0xbb; PAGE], draw(64) * P).unwrap();
                    memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
                }
            });
            scope.spawn(|| {
                let (mut draw, mut buf) = (draws(6), [0; PAGE]);
                while !is_over.load(Relaxed) {
                    reader.read_at(&mut buf, draw(64) * P).unwrap();
                    assert!(is_right(&buf), "a read sees a frame that nobody has filled");
                }
            });
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    assert!(is_right(&fs::read(&made.0).unwrap()), "the device got such a frame");
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        });
    });
}

#[test]
fn kernel_files_written_beside_close_and_forget_poison_nothing() {
    let (made, memory) = (Made::new("kernel-files", 400 * PAGE), builder().build().unwrap());
    let group = memory.group("tenant", Limits::NONE).unwrap();
    for_a_while(|is_over| {
        std::thread::scope(|scope| {
            for at in 0..2 {
                let (made, memory, group) = (&made, &memory, &group);
                scope.spawn(move || {
                    let mut draw = draws(at);
                    while !is_over.load(Relaxed) {
                        let how = Open::read().random().buffered(true).group(group);
                        let file = memory.open(&made.0, how).unwrap();
                        for _ in 0..40 {
                            let _ = file.read_at(&mut [0; 99], draw(399) * P);
                        }
                        if draw(4) == 0 {
                            let _ = file.forget();
                        }
                    }
                });
            }
            while !is_over.load(Relaxed) {
                for (name, value) in
                    [("memory.max", "500K"), ("memory.max", "max"), ("memory.reclaim", "100K")]
                {
                    let _ = group.write(name, value);
                }
            }
        });
    });
    memory.stats().unwrap();
}

type Reads = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A task that nobody polls again: what it has goes with its waker. `true`: the waker panics.
struct Task(Mutex<Option<Reads>>, bool);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        assert!(!self.1, "an executor's trouble");
    }
}

/// Polls reads of a file once.
fn poll_once(memory: Memory, made: &Made, panics: bool) -> Arc<Task> {
    let file = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
    drop(memory);
    let reads = async move {
        let mut bufs = vec![[0; PAGE]; 60];
        let offsets = (0..60).map(|at| at * 4 * P);
        let reads = bufs.iter_mut().zip(offsets).map(|(buf, offset)| ReadAt { buf, offset });
        file.submit(reads.collect())?.await
    };
    let task = Arc::new(Task(Mutex::new(Some(Box::pin(reads))), panics));
    let waker = Waker::from(Arc::clone(&task));
    let polled = task.0.lock().unwrap().as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending() || polled.is_ready());
    task
}

#[test]
fn last_handle_dropped_by_a_waker_panics_nowhere() {
    let made = Made::new("waker", 400 * PAGE);
    let has_panicked = Arc::new(AtomicBool::new(false));
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new({
        let has_panicked = Arc::clone(&has_panicked);
        move |panic| {
            let is_of_a_cache =
                std::thread::current().name().is_some_and(|name| name.starts_with("pageout-"));
            has_panicked.fetch_or(is_of_a_cache && !panic.to_string().contains("an executor"), Relaxed);
            before(panic);
        }
    }));
    for _ in 0..10 {
        drop(poll_once(builder().io_threads(2).build().unwrap(), &made, false));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!has_panicked.load(Relaxed), "a thread of a cache has joined itself");
}

#[test]
fn waker_that_panics_poisons_nothing() {
    let made = Made::new("waker-panics", 400 * PAGE);
    for _ in 0..10 {
        let memory = builder().build().unwrap();
        let task = poll_once(memory.clone(), &made, true);
        std::thread::sleep(Duration::from_millis(20));
        drop(task);
        memory.stats().unwrap();
    }
}

#[test]
fn closed_file_is_not_cut_when_another_cache_has_it() {
    for way in 0..3 {
        let made = Made::empty("closed");
        let (one, two) = (fast(), fast());
        let file = one.open(&made.0, written()).unwrap();
        file.write_at(&[1; 5000], 0).unwrap();
        drop(file);
        // It waits for the lock of the first.
        let other = two.open(&made.0, written()).unwrap();
        assert_eq!(other.len(), 5000, "way {way}");
        other.write_at(&[2; 20_000], 5000).unwrap();
        other.sync_all().unwrap();
        match way {
            0 => drop(one),
            1 => drop(one.open(&made.0, Open::read().buffered(true)).unwrap()),
            _ => {
                drop(other);
                assert_eq!(one.open(&made.0, written()).unwrap().len(), 25_000);
            }
        }
        assert_eq!(fs::metadata(&made.0).unwrap().len(), 25_000, "way {way}");
    }
}

#[test]
fn cache_that_waited_for_the_lock_sees_what_the_other_wrote() {
    let (made, one, two) =
        (Made::new("waited", PAGE), builder().build().unwrap(), builder().build().unwrap());
    let known = one.open(&made.0, Open::read().buffered(true)).unwrap();
    known.read_at(&mut [0; PAGE], 0).unwrap();
    let other = two.open(&made.0, written()).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| one.open(&made.0, written()).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        other.write_at(&[2; 5000], 0).unwrap();
        other.sync_all().unwrap();
        drop(other);
        let file = waits.join().unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, 0).unwrap();
        assert_eq!((file.len(), byte), (5000, [2]));
    });
}

#[test]
fn leaked_guard_of_one_file_keeps_no_other_from_opening() {
    let memory = builder().files(4 << 20).build().unwrap();
    let files: Vec<_> = (0..12).map(|at| Made::new(&format!("leaked-{at}"), 100 * PAGE)).collect();
    for made in &files {
        let file = memory.open(&made.0, Open::read().buffered(true)).unwrap();
        if std::ptr::eq(made, &files[0]) {
            // Its handle goes, and its page stays held.
            let file: &'static pageout::File = Box::leak(Box::new(file.clone()));
            std::mem::forget(file.page(0).unwrap());
        }
        file.read_at(&mut [0; 99], 50 * P).unwrap();
    }
}

#[test]
fn neighbours_of_a_held_page_are_written() {
    for backend in [Backend::Any, Backend::Threads] {
        let made = Made::empty("neighbours");
        let memory = builder().backend(backend).guard_wait(Duration::from_millis(200)).build().unwrap();
        let file = memory.open(&made.0, written()).unwrap();
        file.set_len(100 * P).unwrap();
        file.write_at(&[7; 100 * PAGE], 0).unwrap();
        let held = file.page_mut(50).unwrap();
        assert!(matches!(file.sync_data(), Err(Error::Pinned { page: Some(50), .. })));
        let bytes = fs::read(&made.0).unwrap();
        let there = bytes.chunks(PAGE).filter(|page| page.iter().all(|&byte| byte == 7)).count();
        assert!(there >= 99, "{there} of 99 are there");
        drop(held);
        file.sync_data().unwrap();
    }
}

#[test]
fn pending_read_of_a_page_held_to_write_ends() {
    let made = Made::new("pending-held", 10 * PAGE);
    let memory = builder().guard_wait(Duration::from_millis(200)).build().unwrap();
    let file = memory.open(&made.0, written()).unwrap();
    let held = file.page_mut(3).unwrap();
    let mut buf = [0; 9];
    let pending = file.submit(vec![ReadAt { buf: &mut buf, offset: 3 * P }]).unwrap();
    assert!(matches!(pending.wait(), Err(Error::Pinned { page: Some(3), .. })));
    drop(held);
    file.read_at(&mut buf, 3 * P).unwrap();
}

#[test]
fn set_len_beside_device_writes_that_keep_still_is_no_guard() {
    let (made, memory) = (Made::empty("stable"), fast());
    let file = memory.open(&made.0, written().stable_writes(true)).unwrap();
    for round in 0..300 {
        file.write_at(&[1; 30 * PAGE], round % 7 * P).unwrap();
        file.set_len(round % 20 * P + 77).unwrap();
    }
}
