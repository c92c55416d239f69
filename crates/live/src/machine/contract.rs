//! The contract on what lasts, a test a sentence, over a device that fails, lies and loses power; and caches that break it, which must be noticed.

#![allow(clippy::unwrap_used, reason = "tests, which make files")]

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pageout_engine::PAGE_SIZE;

use super::{Backend, Bug};
use crate::storage::failing::{Fate, Faults, Request};
use crate::{Error, File, Limits, Memory, Open};

mod flush; // a flush that fails, or waits for another
mod full; // a device that takes no more
mod lengths; // a device whose length changes next to other calls
mod power; // it is lost while several write

const PAGE: usize = PAGE_SIZE as usize;
const SECTOR: usize = 512;

struct Draw(u64);

impl Draw {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What a device has done, in order.
#[derive(Clone)]
enum Done {
    Write(u64, Vec<u8>),
    SetLen(u64),
    /// A write of which it has kept nothing, as a flush of it has failed. Lengths are the file system's to keep.
    Lost,
}

/// A device that is controlled by the test, remembers all its actions, and knows which of them survive a loss of power.
#[derive(Default)]
struct Device {
    log: Mutex<Log>,
    fate: Mutex<Option<Decide>>,
}

type Decide = Box<dyn FnMut(Request) -> Fate + Send>;

#[derive(Default)]
struct Log {
    done: Vec<Done>,
    /// The number of actions when the current flush began, and when the last successful one did.
    flushing: Option<usize>,
    flushed: usize,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Device")
    }
}

impl Faults for Device {
    fn fate(&self, request: Request) -> Fate {
        if request == Request::Flush {
            let mut log = self.log.lock().unwrap();
            let done = log.done.len();
            assert_eq!(log.flushing.replace(done), None, "two flushes of a file at the same time");
        }
        let fate = self.fate.lock().unwrap().as_mut().map_or(Fate::Well, |fate| fate(request));
        if request == Request::Flush && fate != Fate::Well {
            let mut log = self.log.lock().unwrap();
            let taken = log.flushed..log.flushing.take().unwrap();
            let writes = log.done[taken].iter_mut().filter(|done| matches!(done, Done::Write(..)));
            writes.for_each(|done| *done = Done::Lost);
        }
        fate
    }

    fn done(&self, request: Request, file: &std::fs::File) {
        let mut log = self.log.lock().unwrap();
        match request {
            Request::Write { offset, bytes } => {
                let mut written = vec![0; bytes];
                // Another write may have been cut off meanwhile.
                let there = file.read_at(&mut written, offset).unwrap();
                written.truncate(there);
                log.done.push(Done::Write(offset, written));
            }
            Request::SetLen(bytes) => log.done.push(Done::SetLen(bytes)),
            Request::Flush => log.flushed = log.flushing.take().unwrap(),
            Request::Read { .. } | Request::Len => {}
        }
    }
}

impl Device {
    fn set(&self, fate: impl FnMut(Request) -> Fate + Send + 'static) {
        *self.fate.lock().unwrap() = Some(Box::new(fate));
    }

    fn heal(&self) {
        *self.fate.lock().unwrap() = None;
    }

    /// What is there after a loss of power: all that was flushed, and of the rest what is drawn, down to a sector.
    fn after_power_loss(&self, draw: &mut Draw) -> Vec<u8> {
        let log = self.log.lock().unwrap();
        let mut image = Vec::new();
        for (at, done) in log.done.iter().enumerate() {
            let is_flushed = at < log.flushed;
            match done {
                Done::SetLen(bytes) if is_flushed || draw.below(2) == 0 => image.resize(*bytes as usize, 0),
                Done::SetLen(_) | Done::Lost => {}
                Done::Write(offset, bytes) => {
                    let kind = if is_flushed { 0 } else { draw.below(3) };
                    for (sector, bytes) in bytes.chunks(SECTOR).enumerate() {
                        if kind == 0 || kind == 1 && draw.below(2) == 0 {
                            let start = *offset as usize + sector * SECTOR;
                            image.resize(image.len().max(start + bytes.len()), 0);
                            image[start..start + bytes.len()].copy_from_slice(bytes);
                        }
                    }
                }
            }
        }
        image
    }
}

struct Made(PathBuf);

impl Made {
    fn new(name: &str) -> Made {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        Made(std::env::temp_dir().join(format!("pageout-contract-{name}-{}-{number}", std::process::id())))
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A cache with a small group, and a file in it over a device.
fn cache(backend: Backend, io_threads: usize, made: &Made, device: &Arc<Device>) -> (Memory, File) {
    let memory = Memory::builder().budget(8 << 20).backend(backend).io_threads(io_threads).build().unwrap();
    let group = memory.group("tenant", Limits { max: Some(64 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let how = Open::read_write().create(true).buffered(true).group(&group);
    let file = memory.open(&made.0, how.faults(Arc::clone(device) as Arc<dyn Faults>)).unwrap();
    (memory, file)
}

fn backends() -> [(Backend, usize); 3] {
    [(Backend::Threads, 0), (Backend::Threads, 2), (Backend::Any, 8)]
}

/// The flusher writes what is older than a hundredth of a second.
fn flush_soon(memory: &Memory) {
    memory.write("/proc/sys/vm/dirty_writeback_centisecs", "1").unwrap();
    memory.write("/proc/sys/vm/dirty_expire_centisecs", "1").unwrap();
}

fn is_noticed(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

/// A version of a page in each of its sectors.
fn version(page: u64, version: u64) -> Vec<u8> {
    [page, version].map(u64::to_le_bytes).concat().repeat(PAGE / 16)
}

/// Writes and syncs, and loses power this often in between: synced data is present, and no data that was never written.
fn lose_power(backend: (Backend, usize), seed: u64, cuts: u64, bug: Option<Bug>) {
    const PAGES: u64 = 100;
    let (made, device) = (Made::new("power"), Arc::new(Device::default()));
    let (memory, file) = cache(backend.0, backend.1, &made, &device);
    *memory.0.machine.bug.lock().unwrap() = bug;
    let (mut written, mut synced) = (BTreeMap::new(), BTreeMap::new());
    let (mut draw, mut last) = (Draw(seed), 0);
    for _ in 0..cuts {
        for _ in 0..draw.below(60) + 1 {
            let page = draw.below(PAGES);
            last += 1;
            file.write_at(&version(page, last), page * PAGE_SIZE).unwrap();
            written.insert(page, last);
        }
        if draw.below(2) == 0 {
            file.sync_data().unwrap();
            synced.clone_from(&written);
        }
        let image = device.after_power_loss(&mut draw);
        for (&page, &version) in &synced {
            let start = page as usize * PAGE;
            assert!(image.len() >= start + PAGE, "page {page} was synced, and is not there");
            for words in image[start..start + PAGE].chunks(16) {
                let [of, found] =
                    [&words[..8], &words[8..]].map(|word| u64::from_le_bytes(word.try_into().unwrap()));
                assert!(
                    of == page && (version..=written[&page]).contains(&found),
                    "page {page}: {found} of {of}"
                );
            }
        }
    }
}

#[test]
fn what_was_written_before_a_sync_survives_a_loss_of_power() {
    for (seed, backend) in (1..).zip(backends()) {
        lose_power(backend, seed, 50, None);
    }
}

#[test]
fn a_sync_that_does_not_flush_the_device_is_noticed() {
    assert!(is_noticed(|| lose_power((Backend::Threads, 0), 1, 50, Some(Bug::DoesNotFlush))));
}

#[test]
fn a_sync_that_forgets_pages_under_writeback_is_noticed() {
    // As long as the device takes.
    let forget = || {
        let (made, device) = (Made::new("forgets"), Arc::new(Device::default()));
        let (memory, file) = cache(Backend::Threads, 4, &made, &device);
        *memory.0.machine.bug.lock().unwrap() = Some(Bug::ForgetsWriteback);
        sync_beside_the_flusher(&memory, &file, &made, &device);
    };
    assert!(is_noticed(forget));
}

#[test]
fn a_sync_waits_for_what_the_flusher_has_begun() {
    let (made, device) = (Made::new("waits"), Arc::new(Device::default()));
    let (memory, file) = cache(Backend::Threads, 4, &made, &device);
    sync_beside_the_flusher(&memory, &file, &made, &device);
}

/// The device is slow, and others have it write by the time of the sync.
fn sync_beside_the_flusher(memory: &Memory, file: &File, made: &Made, device: &Device) {
    // Only its contents are to be written then: a length would be waited for in any case.
    file.set_len(8 * PAGE_SIZE).unwrap();
    file.sync_data().unwrap();
    flush_soon(memory);
    file.write_at(&[7; 8 * PAGE], 0).unwrap();
    let has_begun = Arc::new(AtomicBool::new(false));
    device.set({
        let has_begun = Arc::clone(&has_begun);
        move |request| {
            if matches!(request, Request::Write { .. }) {
                has_begun.store(true, Relaxed);
                std::thread::sleep(Duration::from_millis(30));
            }
            Fate::Well
        }
    });
    for _ in 0..2000 {
        if has_begun.load(Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(has_begun.load(Relaxed), "the flusher writes what is old");
    file.sync_data().unwrap();
    assert!(made.bytes() == [7; 8 * PAGE], "a sync has returned before the device had all");
}

#[test]
fn a_write_that_was_held_up_begins_soon_after_whoever_has_ended_another_meanwhile() {
    for backend in [(Backend::Threads, 2), (Backend::Any, 8)] {
        let (made, slow_made, slow) = (Made::new("held-up"), Made::new("slow"), Arc::new(Device::default()));
        let (memory, file) = cache(backend.0, backend.1, &made, &Arc::new(Device::default()));
        let how = Open::read_write().create(true).buffered(true);
        let slow_file = memory.open(&slow_made.0, how.faults(Arc::clone(&slow) as Arc<dyn Faults>)).unwrap();
        flush_soon(&memory);
        file.write_at(&[1; PAGE], 0).unwrap();
        file.sync_data().unwrap();
        // The flusher has a page of another file written, which takes long, and has nothing to do by itself after that.
        let begun = Arc::new(AtomicU64::new(0));
        slow.set({
            let begun = Arc::clone(&begun);
            move |request| {
                if matches!(request, Request::Write { .. }) {
                    begun.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_millis(60));
                }
                Fate::Well
            }
        });
        slow_file.write_at(&[2], 0).unwrap();
        while begun.load(Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        memory.write("/proc/sys/vm/dirty_writeback_centisecs", "0").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let mut guard = file.page_mut(0).unwrap();
        guard[0] = 3;
        std::thread::scope(|scope| {
            let sync = scope.spawn(|| {
                let began = std::time::Instant::now();
                file.sync_data().unwrap();
                began.elapsed()
            });
            // The other write ends before the guard goes.
            std::thread::sleep(Duration::from_millis(100));
            drop(guard);
            let took = sync.join().unwrap();
            assert!(took < Duration::from_millis(900), "{backend:?}: {took:?}");
        });
        assert_eq!(made.bytes()[0], 3);
    }
}

#[test]
fn however_many_reads_wait_a_write_begins_among_them() {
    for io_threads in [1, 4] {
        let (made, device) = (Made::new("among-reads"), Arc::<Device>::default());
        let (memory, file) = cache(Backend::Threads, io_threads, &made, &device);
        file.write_at(&vec![7; 2048 * PAGE], 0).unwrap();
        file.sync_data().unwrap();
        device.set(|_| {
            std::thread::sleep(Duration::from_micros(200));
            Fate::Well
        });
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..2 * io_threads as u64 {
                let (file, is_over) = (&file, &is_over);
                scope.spawn(move || {
                    let mut draw = Draw(seed);
                    while !is_over.load(Relaxed) {
                        let mut bufs = [[0; 9]; 32];
                        let reads = bufs
                            .iter_mut()
                            .map(|buf| crate::ReadAt { buf, offset: draw.below(2048) * PAGE_SIZE })
                            .collect();
                        file.submit(reads).unwrap().wait().unwrap();
                    }
                });
            }
            // No thread waits for these writes.
            flush_soon(&memory);
            (0..40).for_each(|page| file.write_at(&[8; 9], page * 50 * PAGE_SIZE).unwrap());
            let is_clean = || {
                let stats = memory.stats().unwrap();
                stats.dirty + stats.writeback == 0
            };
            let tries =
                (0..4000).take_while(|_| !is_clean()).map(|_| std::thread::sleep(Duration::from_millis(5)));
            let tries = tries.count();
            is_over.store(true, Relaxed);
            assert!(tries < 4000, "after 20 s pages are not written while others read");
        });
    }
}

#[test]
fn beside_reads_a_part_of_a_long_write_is_under_way_that_nobody_waits_for_or_several_short_ones_and_else_eight()
 {
    let made = Made::new("beside");
    let memory = Memory::builder().budget(10 << 20).sysctl("vm.dirty_ratio", 90);
    let memory = memory.sysctl("vm.dirty_background_ratio", 80).build().unwrap();
    let file = memory.open(&made.0, Open::read_write().create(true).buffered(true)).unwrap();
    flush_soon(&memory);
    let machine = &memory.0.machine;
    // Nothing begins by itself as long as the file is cut.
    let asks = |pages: &mut dyn Iterator<Item = u64>| {
        machine.lock().unwrap().file_mut(file.0.id).is_cut = true;
        // All are dirty when the flusher comes: neighbours are one write.
        let expire = |after| memory.write("/proc/sys/vm/dirty_expire_centisecs", after).unwrap();
        expire("100000");
        let wanted = pages.map(|page| file.write_at(&[7; PAGE], page * PAGE_SIZE).unwrap()).count();
        expire("1");
        let asked = || {
            machine.lock().unwrap().transfers.devices[0]
                .writes
                .iter()
                .map(|write| write.frames.len())
                .sum::<usize>()
        };
        while asked() < wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let begins = |is_read: bool| {
        let mut locked = machine.lock().unwrap();
        locked.file_mut(file.0.id).is_cut = false;
        locked.transfers.devices[0].read_at = is_read.then_some(locked.now);
        let mut writes: Vec<_> =
            std::iter::from_fn(|| locked.next_write(&machine.arena, 0, super::writes::AT_ONCE)).collect();
        locked.file_mut(file.0.id).is_cut = true;
        drop(locked);
        writes.iter_mut().for_each(|write| write.perform(&machine.arena).unwrap());
        let pages = writes.iter().map(|write| write.frames.len()).sum();
        let begun = (writes.len(), pages);
        let mut locked = machine.lock().unwrap();
        writes.into_iter().for_each(|write| locked.write_done(write));
        assert_eq!((locked.transfers.devices[0].writing, locked.transfers.devices[0].writing_pages), (0, 0));
        begun
    };
    let ends = || machine.lock().unwrap().file_mut(file.0.id).is_cut = false;
    asks(&mut (0..1024));
    assert_eq!(begins(false), (8, 512));
    assert_eq!([begins(true), begins(true)], [(1, 16); 2]);
    // The remaining time is its rest.
    let next = machine.lock().unwrap().transfers.devices[0]
        .writes
        .front()
        .map(|write| (write.page % 64, write.frames.len()));
    assert_eq!(next, Some((32, 32)));
    ends();
    file.sync_data().unwrap();
    asks(&mut (0..40).map(|page| 2 * page));
    assert_eq!(begins(true), (8, 8));
    ends();
    file.sync_data().unwrap();
    // A short one does not pass a long one that is too long yet: it would have to wait forever.
    asks(&mut [200].into_iter().chain(202..266).chain([300]));
    assert_eq!([begins(true), begins(true)], [(1, 1), (1, 16)]);
    ends();
    file.sync_data().unwrap();
    // The request claims to be a read.
    memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
    machine.lock().unwrap().transfers.devices[0].read_at = None;
    file.read_at(&mut [0; 9], 0).unwrap();
    assert!(machine.lock().unwrap().transfers.devices[0].read_at.is_some());
    assert!(made.bytes()[..1024 * PAGE].iter().all(|byte| *byte == 7));
}

/// Writes of these pages fail.
fn fails(pages: std::ops::Range<u64>, errno: i32) -> impl FnMut(Request) -> Fate + Send {
    move |request| match request {
        Request::Write { offset, bytes } => {
            let written = offset / PAGE_SIZE..(offset + bytes as u64).div_ceil(PAGE_SIZE);
            if written.start < pages.end && pages.start < written.end {
                Fate::Fails(errno)
            } else {
                Fate::Well
            }
        }
        _ => Fate::Well,
    }
}

fn stays_dirty(backend: (Backend, usize), errno: i32, bug: Option<Bug>) {
    let (made, device) = (Made::new("dirty"), Arc::new(Device::default()));
    let (memory, file) = cache(backend.0, backend.1, &made, &device);
    *memory.0.machine.bug.lock().unwrap() = bug;
    file.write_at(&[1; 10 * PAGE], 0).unwrap();
    file.sync_data().unwrap();
    device.set(fails(3..5, errno));
    file.write_at(&[2; 10 * PAGE], 0).unwrap();
    let is_told = |pages: u64| match file.sync_data() {
        Err(Error::Sync { failed, source, .. }) => {
            assert_eq!((failed, source.raw_os_error()), (pages, Some(errno)));
        }
        other => panic!("{other:?}"),
    };
    // Its neighbours are on the device.
    is_told(2);
    is_told(2);
    let bytes = made.bytes();
    for (page, bytes) in (0..10).zip(bytes.chunks(PAGE)) {
        assert!((3..5).contains(&page) || bytes.iter().all(|&byte| byte == 2), "page {page}");
    }
    // It is readable, and stays, whatever reclaim is asked to take.
    let mut buf = vec![0; 10 * PAGE];
    let _ = memory.write("/sys/fs/cgroup/tenant/memory.reclaim", "1M");
    file.read_at(&mut buf, 0).unwrap();
    assert!(buf.iter().all(|&byte| byte == 2));
    is_told(2);
    // To know of it is one thing, and to have it written another.
    file.acknowledge().unwrap();
    is_told(2);
    assert!(matches!(file.clone().forget(), Err(Error::Sync { .. })), "it is not forgotten either");
    device.heal();
    // A later try succeeds, and a caller that has not seen the error still gets it.
    is_told(0);
    is_told(0);
    assert!(made.bytes()[..10 * PAGE].iter().all(|&byte| byte == 2), "nothing is lost");
    file.acknowledge().unwrap();
    file.sync_data().unwrap();
    assert_eq!(memory.stats().unwrap().dirty, 0);
}

#[test]
fn a_page_that_could_not_be_written_stays_dirty_and_readable_and_each_sync_fails_until_acknowledged() {
    for backend in backends() {
        for errno in [libc::EIO, libc::ENOSPC] {
            stays_dirty(backend, errno, None);
        }
    }
}

#[test]
fn an_error_that_is_told_once_only_is_noticed() {
    assert!(is_noticed(|| stays_dirty((Backend::Threads, 0), libc::EIO, Some(Bug::TellsOnce))));
}

/// What the cache prints of files when it is dropped.
fn printed_at_the_end(memory: &Memory) -> Vec<String> {
    let unsaved = memory.0.machine.write_all_back().unwrap();
    // Files are in the temporary folder.
    unsaved.iter().map(|of| of.to_string().split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn what_failed_is_tried_again_without_anybody_asking() {
    let (made, device) = (Made::new("again"), Arc::new(Device::default()));
    let (memory, file) = cache(Backend::Any, 4, &made, &device);
    flush_soon(&memory);
    let tries = Arc::new(AtomicU64::new(0));
    device.set({
        let tries = Arc::clone(&tries);
        move |request| match request {
            Request::Write { .. } if tries.fetch_add(1, Relaxed) < 2 => Fate::Fails(libc::EIO),
            _ => Fate::Well,
        }
    });
    file.write_at(&[3; PAGE], 0).unwrap();
    for _ in 0..4000 {
        if memory.stats().unwrap().dirty == 0 && tries.load(Relaxed) > 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(made.bytes() == [3; PAGE]);
    assert!(matches!(file.sync_data(), Err(Error::Sync { failed: 0, .. })), "it is told nevertheless");
}

#[test]
fn nothing_is_written_after_forget_or_behind_set_len() {
    for backend in backends() {
        let (made, device) = (Made::new("after"), Arc::new(Device::default()));
        let (memory, file) = cache(backend.0, backend.1, &made, &device);
        file.write_at(&[1; 40 * PAGE], 0).unwrap();
        file.set_len(10 * PAGE_SIZE + 7).unwrap();
        let done = device.log.lock().unwrap().done.len();
        file.write_at(&[2; 3], 5).unwrap();
        file.sync_all().unwrap();
        for one in &device.log.lock().unwrap().done[done..] {
            if let Done::Write(offset, bytes) = one {
                assert!(offset + bytes.len() as u64 <= 11 * PAGE_SIZE, "a write behind the end");
                let behind = (10 * PAGE_SIZE + 7).saturating_sub(*offset) as usize;
                assert!(bytes.iter().skip(behind).all(|&byte| byte == 0));
            }
        }
        assert_eq!(made.bytes().len(), 10 * PAGE + 7);
        file.write_at(&[3; PAGE], 2 * PAGE_SIZE).unwrap();
        file.clone().forget().unwrap();
        assert!(made.bytes()[2 * PAGE..3 * PAGE] == [3; PAGE], "what was written before is there");
        let done = device.log.lock().unwrap().done.len();
        assert!(matches!(file.write_at(&[4], 0), Err(Error::Forgotten { .. })));
        drop((file, memory));
        assert_eq!(device.log.lock().unwrap().done.len(), done);
    }
}

#[test]
fn bytes_never_reach_another_file() {
    let (one, other) = (Made::new("one"), Made::new("other"));
    let device = Arc::new(Device::default());
    let (memory, file) = cache(Backend::Any, 4, &one, &device);
    let second = memory.open(&other.0, Open::read_write().create(true).buffered(true)).unwrap();
    std::thread::scope(|scope| {
        for (file, byte) in [(&file, 1_u8), (&second, 2)] {
            scope.spawn(move || {
                let mut draw = Draw(byte.into());
                let mut buf = vec![0; PAGE];
                for _ in 0..1500 {
                    let at = draw.below(200 * PAGE_SIZE);
                    let len = draw.below(PAGE_SIZE) as usize + 1;
                    file.write_at(&vec![byte; len], at).unwrap();
                    let page = draw.below(file.len() / PAGE_SIZE + 1) * PAGE_SIZE;
                    let len = (file.len() - page).min(PAGE_SIZE) as usize;
                    file.read_at(&mut buf[..len], page).unwrap();
                    assert!(buf[..len].iter().all(|&found| found == byte || found == 0), "another's byte");
                }
                file.sync_all().unwrap();
            });
        }
    });
    for (made, byte) in [(&one, 1), (&other, 2)] {
        assert!(
            made.bytes().iter().all(|&found| found == byte || found == 0),
            "another's byte on the device"
        );
    }
}

#[test]
fn the_length_on_the_device_is_rounded_up_at_most_with_zeroes_behind_the_end() {
    let (made, device) = (Made::new("length"), Arc::new(Device::default()));
    let (memory, file) = cache(Backend::Any, 4, &made, &device);
    flush_soon(&memory);
    let mut draw = Draw(5);
    for _ in 0..60 {
        let (at, len) = (file.len() + draw.below(300) * draw.below(2), draw.below(3000) as usize + 1);
        file.write_at(&vec![8; len], at).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let bytes = made.bytes();
        let end = file.len() as usize;
        assert!(bytes.len() <= end.next_multiple_of(PAGE), "{} bytes, where there are {end}", bytes.len());
        assert!(bytes.iter().skip(end).all(|&byte| byte == 0));
        if draw.below(4) == 0 {
            file.sync_data().unwrap();
            assert_eq!(made.bytes().len(), end);
        }
    }
}

/// A device on which all goes wrong now and then, and each time another way.
fn goes_wrong(seed: u64, of_100: u64) -> impl FnMut(Request) -> Fate + Send {
    let mut draw = Draw(seed);
    move |request| {
        let bytes = match request {
            Request::Write { bytes, .. } => bytes,
            Request::Read { .. } if draw.below(100) < of_100 / 2 => return Fate::Fails(libc::EINTR),
            _ => return Fate::Well,
        };
        if draw.below(4) == 0 {
            // Others overtake it.
            std::thread::sleep(Duration::from_micros(draw.below(300)));
        }
        if draw.below(100) >= of_100 {
            return Fate::Well;
        }
        match draw.below(6) {
            0 => Fate::Fails(libc::EIO),
            1 => Fate::Fails(libc::ENOSPC),
            2 => Fate::Fails(libc::EINTR),
            3 => Fate::Torn(draw.below(bytes as u64) as usize / SECTOR * SECTOR, libc::EIO),
            _ => Fate::Short(draw.below(bytes as u64) as usize),
        }
    }
}

#[test]
fn whatever_goes_wrong_below_is_told_and_nothing_is_lost() {
    for (seed, backend) in (1..).zip(backends()) {
        let (made, device) = (Made::new("wrong"), Arc::new(Device::default()));
        let (memory, file) = cache(backend.0, backend.1, &made, &device);
        // A file whose writes fail rests for seconds, and a group without free memory would wait for it.
        memory.write("/sys/fs/cgroup/tenant/memory.max", "max").unwrap();
        device.set(goes_wrong(seed, 30));
        let (mut bytes, mut draw) = (vec![0_u8; 150 * PAGE], Draw(seed + 50));
        file.set_len(bytes.len() as u64).unwrap();
        let (mut told, mut well) = (0, 0);
        for step in 0..400_u64 {
            let (at, len) = (draw.below(149 * PAGE_SIZE), draw.below(PAGE_SIZE) + 1);
            let range = at as usize..(at + len) as usize;
            file.write_at(&vec![step as u8; len as usize], at).unwrap();
            bytes[range].fill(step as u8);
            let (at, len) = (draw.below(149 * PAGE_SIZE) as usize, draw.below(PAGE_SIZE) as usize);
            let mut buf = vec![0; len];
            file.read_at(&mut buf, at as u64).unwrap();
            assert!(buf == bytes[at..at + len], "step {step}: {len} bytes from {at}");
            if step % 10 == 0 {
                match file.sync_data() {
                    Ok(()) => {
                        well += 1;
                        assert!(made.bytes() == bytes, "step {step}: a sync has said that all is there");
                    }
                    Err(Error::Sync { .. }) => {
                        told += 1;
                        file.acknowledge().unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert!(told > 2, "{backend:?}: {told} syncs of {} were told", told + well);
        device.heal();
        let _ = file.sync_data();
        file.acknowledge().unwrap();
        file.sync_data().unwrap();
        assert!(made.bytes() == bytes, "nothing is lost");
        memory.0.machine.lock().unwrap().engine.check_invariants();
    }
}
