//! Threads that read and write slots of shared files, each slot a register.
//!
//! ```text
//!   slot     (file, slot, version, writer, body, checksum), 64 to 4096 bytes within one page; each has one thread that writes it
//!   history  of each slot: its writes and cuts, with the times at which each began and ended
//!   a read   sees an event of the history that had begun when the read ended, and that no other event had followed when it began
//! ```
//! A cut is a `set_len` that takes the slot away: zeroes, or no bytes at all. The last third of each file is cut and grows again all the time. Threads forget
//! files and open them again, reload them, change limits, and drop handles below reads in flight. Now and then the device is full for a moment. From time to
//! time all stop: then all slots, the length, and the file on its device are compared.

mod regions; // slots of anonymous memory
mod registers; // what a slot says, and what a read may see of it

use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pageout::{Advice, Backend, Error, File, Group, Memory, Open, ReadAt, RegionOptions};

use regions::Space;
use registers::{History, What, parse, slot_bytes};

use crate::draw::Draw;
use crate::folder::{self, Folder};
use crate::full;
use crate::memory::Setup;
use crate::model::{PAGE, compare};
use crate::settings::{self, Avoid, avoids};
use crate::watch::{self, Counts, Watch, Worker};

/// How long the threads of one cache run.
const OF_ONE_CACHE: Duration = Duration::from_millis(1250);
/// How long threads run until all stop.
const OF_ONE_ROUND: Duration = Duration::from_millis(250);
/// How long a device is full: mostly too short for a writer to be refused, and now and then long enough.
const FULL: [Duration; 6] = {
    let mut all = [Duration::from_millis(50); 6];
    all[0] = Duration::from_millis(1200);
    all
};
/// The number of the first region: slots name the file or region that they are of.
const FIRST_REGION: usize = 100;
/// The first sync after that may meet writes that were under way.
const TRIES: u32 = 3;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change of a file's length.
#[derive(Clone, Copy, Debug)]
enum Length {
    Set(u64),
    /// By a call that has failed.
    Perhaps(u64),
    Extend(u64),
}

/// A file, its slots, and what happened to them.
struct Shared {
    number: usize,
    path: PathBuf,
    slot_bytes: u64,
    slots: Vec<History>,
    /// Slots from this on may be cut.
    tail: usize,
    /// The handle to use; another one after it was forgotten.
    file: Mutex<File>,
    /// A thread that reloads the file excludes the threads that write to it.
    writers: RwLock<()>,
    /// Since all threads stopped last: lengths, and when each began and ended.
    lengths: Mutex<Vec<(Length, u64, u64)>>,
    /// `set_len` is one thread's at a time, as far as this test makes it.
    is_cut: Mutex<()>,
    how: Open,
}

/// What all threads share.
struct World {
    clock: AtomicU64,
    memory: Memory,
    groups: Vec<Group>,
    files: Vec<Shared>,
    /// In caches with swap.
    spaces: Vec<Space>,
    /// A device was full since all threads stopped last.
    was_full: AtomicBool,
    failed: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Shared {
    fn offset(&self, slot: usize) -> u64 {
        slot as u64 * self.slot_bytes
    }

    fn page_of(&self, slot: usize) -> u64 {
        self.offset(slot) / PAGE
    }

    fn handle(&self) -> File {
        lock(&self.file).clone()
    }

    fn most(&self) -> u64 {
        self.offset(self.slots.len())
    }
}

/// Returns true if an operation may fail so, as others forget its file.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Forgotten { .. } | Error::CutMeanwhile { .. } => true,
        Error::Shortened { .. } => avoids(Avoid::Shortened),
        _ => false,
    }
}

/// One thread.
struct Actor<'w> {
    world: &'w World,
    number: usize,
    threads: usize,
    draw: Draw,
    versions: u64,
    worker: Worker,
    counts: Counts,
    /// When it makes the device full, and for how long.
    full_at: Option<(Instant, Duration)>,
}

type Outcome = Result<(), String>;

impl Actor<'_> {
    fn now(&self) -> u64 {
        self.world.clock.fetch_add(1, SeqCst)
    }

    /// What is seen of a slot is one of what may be seen.
    fn check(
        &self,
        of: &Shared,
        slot: usize,
        bytes: Option<&[u8]>,
        begin: u64,
        end: u64,
        how: &str,
    ) -> Outcome {
        let told = |text: String| {
            let (number, offset) = (of.number, of.offset(slot));
            format!(
                "{how}: slot {slot} of file {number} ({} bytes at {offset}, page {} + {}): {text}",
                of.slot_bytes,
                offset / PAGE,
                offset % PAGE
            )
        };
        let seen = match bytes {
            Some(bytes) => parse(of.number, slot, bytes).map_err(told)?,
            None if slot < of.tail => return Err(told("is behind the end, and nobody cuts it".to_owned())),
            None => What::Cut,
        };
        of.slots[slot].allows(seen, begin, end).map_err(told)
    }

    /// An error that is none of those that may be.
    fn wrong(&self, what: &str, error: &Error) -> String {
        match error {
            Error::Poisoned => {
                format!("{what}: the cache has panicked: {}", watch::panics().join("\n    "))
            }
            error => format!("{what}: {error} ({error:?})"),
        }
    }

    /// Counts an operation that has failed as it may.
    fn passes(&mut self, kind: &'static str, error: Error) -> Outcome {
        if is_passing(&error) {
            self.counts.count(kind, false);
        } else if self.is_full(&error) {
            self.counts.count_full(kind);
        } else {
            return Err(self.wrong(kind, &error));
        }
        Ok(())
    }

    /// Returns true if an operation may fail so, as a device is full, or was a moment ago.
    fn is_full(&self, error: &Error) -> bool {
        let may_be = match error {
            Error::Io { source, .. } | Error::Sync { source, lost: 0, .. } => {
                source.raw_os_error() == Some(libc::EFBIG)
            }
            // Pages that can't be written may be all that a group has.
            Error::OutOfMemory(_) => true,
            _ => false,
        };
        may_be && self.world.was_full.load(SeqCst)
    }

    /// A slot that this thread writes.
    fn own_slot(&mut self, of: &Shared) -> usize {
        let count = of.slots.len() / self.threads;
        // Often one of few, which others read as well.
        let most = if self.draw.once_in(2) { count.min(8) } else { count };
        let at = self.draw.below(most as u64) as usize;
        let at = if self.draw.once_in(2) { count - 1 - at } else { at };
        at * self.threads + self.number
    }

    fn slot(&mut self, of: &Shared) -> usize {
        let count = of.slots.len();
        let most = if self.draw.once_in(2) { count.min(8 * self.threads) } else { count };
        let at = self.draw.below(most as u64) as usize;
        if self.draw.once_in(2) { count - 1 - at } else { at }
    }

    /// One operation.
    fn act(&mut self) -> Outcome {
        let world = self.world;
        if let Some((_, span)) = self.full_at.take_if(|(at, _)| *at <= Instant::now()) {
            return self.fill_up(span);
        }
        let spaces = world.spaces.len() as u64;
        if spaces > 0 && self.draw.once_in(2) {
            let of = &world.spaces[self.draw.below(spaces) as usize];
            return self.act_on_region(of);
        }
        let of = &world.files[self.draw.below(world.files.len() as u64) as usize];
        match self.draw.below(100) {
            0..=24 => self.write(of),
            25..=36 => self.write_in_place(of),
            37..=56 => self.read(of),
            57..=66 => self.look(of),
            67..=72 => self.batch(of),
            73..=80 => self.pending(of),
            81..=85 => self.cut(of),
            86..=87 => self.sync(of),
            88 => self.forget(of),
            89 => self.reload(of),
            90..=94 => self.limits(),
            _ => self.advise(of),
        }
    }

    fn write(&mut self, of: &Shared) -> Outcome {
        let slot = self.own_slot(of);
        let _writes = of.writers.read().unwrap_or_else(PoisonError::into_inner);
        self.versions += 1;
        let version = self.versions;
        let buf = slot_bytes(of.number, slot, version, self.number as u64, of.slot_bytes as usize);
        let offset = of.offset(slot);
        self.worker
            .begins(format!("write_at of file {}, slot {slot} at {offset}, version {version}", of.number));
        let file = of.handle();
        let begin = self.now();
        of.slots[slot].begins(What::Write(version), begin);
        let result = file.write_at(&buf, offset);
        let end = self.now();
        match result {
            Ok(()) => {
                of.slots[slot].ends(begin, end);
                lock(&of.lengths).push((Length::Extend(offset + of.slot_bytes), begin, end));
                self.counts.count("write_at", true);
            }
            Err(error) => {
                if matches!(error, Error::Io { .. }) {
                    // A page whose write is refused stays as it is, and so does the length.
                    of.slots[slot].is_void(begin);
                } else {
                    of.slots[slot].fails(begin, end);
                    lock(&of.lengths).push((Length::Extend(offset + of.slot_bytes), begin, u64::MAX));
                }
                self.passes("write_at", error)?;
            }
        }
        Ok(())
    }

    /// The device is full for a moment.
    fn fill_up(&mut self, span: Duration) -> Outcome {
        let most = self.world.files.iter().map(Shared::most).max().unwrap_or(0);
        let bytes = if self.draw.once_in(2) { 0 } else { self.draw.below(most) / PAGE * PAGE };
        self.worker.begins(format!("the device is full from byte {bytes} of each file on, for {span:?}"));
        self.world.was_full.store(true, SeqCst);
        full::limit(Some(bytes));
        std::thread::sleep(span);
        full::limit(None);
        self.counts.count("device is full", true);
        Ok(())
    }

    /// Writes a slot in place, and looks at the others of its page.
    fn write_in_place(&mut self, of: &Shared) -> Outcome {
        let slot = self.own_slot(of);
        let _writes = of.writers.read().unwrap_or_else(PoisonError::into_inner);
        self.versions += 1;
        let (version, tries) = (self.versions, self.draw.once_in(4));
        let kind = if tries { "try_page_mut" } else { "page_mut" };
        let page = of.page_of(slot);
        self.worker.begins(format!("{kind}({page}) of file {}, slot {slot}, version {version}", of.number));
        let file = of.handle();
        let begin = self.now();
        let result = if tries { file.try_page_mut(page) } else { file.page_mut(page).map(Some) };
        let mut guard = match result {
            Ok(Some(guard)) => guard,
            Ok(None) => {
                self.counts.count(kind, false);
                return Ok(());
            }
            Err(Error::BeyondEnd { .. }) => return self.check_end(of, slot, begin, kind),
            Err(error) => return self.passes(kind, error),
        };
        let skip = (of.offset(slot) % PAGE) as usize;
        let len = of.slot_bytes as usize;
        self.check_page(of, page, &guard, begin, kind)?;
        if guard.len() >= skip + len {
            let write = self.now();
            of.slots[slot].begins(What::Write(version), write);
            let buf = slot_bytes(of.number, slot, version, self.number as u64, len);
            // In two parts, for others to see one of them if they can.
            let half = self.draw.below(len as u64) as usize;
            guard[skip..skip + half].copy_from_slice(&buf[..half]);
            if self.draw.once_in(3) {
                std::thread::yield_now();
            }
            guard[skip + half..skip + len].copy_from_slice(&buf[half..]);
            drop(guard);
            of.slots[slot].ends(write, self.now());
            self.counts.count(kind, true);
        }
        Ok(())
    }

    /// A slot is said to be behind the end.
    fn check_end(&mut self, of: &Shared, slot: usize, begin: u64, kind: &'static str) -> Outcome {
        let end = self.now();
        self.counts.count(kind, false);
        self.check(of, slot, None, begin, end, &format!("{kind}, which is BeyondEnd"))
    }

    /// All slots of a page, of which there are so many bytes.
    fn check_page(&mut self, of: &Shared, page: u64, bytes: &[u8], begin: u64, how: &str) -> Outcome {
        let end = self.now();
        let len = of.slot_bytes as usize;
        let first = (page * PAGE / of.slot_bytes) as usize;
        for (at, slot) in (first..of.slots.len()).take(PAGE as usize / len).enumerate() {
            let there = bytes.get(at * len..(at + 1) * len);
            self.check(of, slot, there, begin, end, how)?;
        }
        Ok(())
    }

    fn read(&mut self, of: &Shared) -> Outcome {
        let slot = self.slot(of);
        self.worker.begins(format!("read_at of file {}, slot {slot}", of.number));
        let mut buf = vec![0xa5; of.slot_bytes as usize];
        let file = of.handle();
        let begin = self.now();
        match file.read_at(&mut buf, of.offset(slot)) {
            Ok(()) => {
                let end = self.now();
                self.counts.count("read_at", true);
                self.check(of, slot, Some(&buf), begin, end, "read_at")
            }
            Err(Error::BeyondEnd { .. }) => self.check_end(of, slot, begin, "read_at"),
            Err(error) => self.passes("read_at", error),
        }
    }

    fn look(&mut self, of: &Shared) -> Outcome {
        let slot = self.slot(of);
        let page = of.page_of(slot);
        self.worker.begins(format!("page({page}) of file {}", of.number));
        let file = of.handle();
        let begin = self.now();
        match file.page(page) {
            Ok(guard) => {
                self.check_page(of, page, &guard, begin, "page")?;
                if self.draw.once_in(4) {
                    std::thread::yield_now();
                }
                let seen = guard.to_vec();
                self.check_page(of, page, &seen, begin, "page, later")?;
                drop(guard);
                self.counts.count("page", true);
                Ok(())
            }
            Err(Error::BeyondEnd { .. }) => self.check_end(of, slot, begin, "page"),
            Err(error) => self.passes("page", error),
        }
    }

    /// Several slots in one call.
    fn several(&mut self, of: &Shared) -> (Vec<usize>, Vec<Vec<u8>>) {
        let count = self.draw.pick(&[1, 2, 5, 12, 40]);
        let slots: Vec<usize> = (0..count).map(|_| self.slot(of)).collect();
        let bufs = slots.iter().map(|_| vec![0xa5; of.slot_bytes as usize]).collect();
        (slots, bufs)
    }

    fn check_several(
        &mut self,
        of: &Shared,
        slots: &[usize],
        bufs: &[Vec<u8>],
        begin: u64,
        kind: &'static str,
    ) -> Outcome {
        let end = self.now();
        self.counts.count(kind, true);
        slots.iter().zip(bufs).try_for_each(|(&slot, buf)| self.check(of, slot, Some(buf), begin, end, kind))
    }

    fn batch(&mut self, of: &Shared) -> Outcome {
        let (slots, mut bufs) = self.several(of);
        self.worker.begins(format!("read_batch of file {}, slots {slots:?}", of.number));
        let file = of.handle();
        let begin = self.now();
        let reads = bufs.iter_mut().zip(&slots).map(|(buf, &slot)| ReadAt { buf, offset: of.offset(slot) });
        match file.read_batch(&mut reads.collect::<Vec<_>>()) {
            Ok(()) => self.check_several(of, &slots, &bufs, begin, "read_batch"),
            Err(Error::BeyondEnd { .. }) if slots.iter().any(|&slot| slot >= of.tail) => {
                self.counts.count("read_batch", false);
                Ok(())
            }
            Err(error) => self.passes("read_batch", error),
        }
    }

    fn pending(&mut self, of: &Shared) -> Outcome {
        let (slots, mut bufs) = self.several(of);
        self.worker.begins(format!("submit of file {}, slots {slots:?}", of.number));
        let own = self.draw.once_in(4);
        let file = if own {
            match folder::open(&self.world.memory, &of.path, of.how.clone()) {
                Ok(file) => file,
                Err(error) => return Err(self.wrong("open", &error)),
            }
        } else {
            of.handle()
        };
        let begin = self.now();
        let reads = bufs.iter_mut().zip(&slots).map(|(buf, &slot)| ReadAt { buf, offset: of.offset(slot) });
        let result = file.submit(reads.collect());
        // The last handle, perhaps.
        drop(file);
        let result = result.and_then(|mut pending| {
            for _ in 0..self.draw.below(4) {
                if pending.is_ready() {
                    break;
                }
                std::thread::yield_now();
            }
            if self.draw.once_in(5) {
                while avoids(Avoid::PendingDrop) && !pending.is_ready() {
                    std::thread::yield_now();
                }
                drop(pending);
                return Ok(false);
            }
            pending.wait().map(|()| true)
        });
        match result {
            Ok(true) => self.check_several(of, &slots, &bufs, begin, "submit, wait"),
            Ok(false) => {
                self.counts.count("submit, drop", true);
                Ok(())
            }
            Err(Error::BeyondEnd { .. }) if slots.iter().any(|&slot| slot >= of.tail) => {
                self.counts.count("submit, wait", false);
                Ok(())
            }
            Err(error) => self.passes("submit, wait", error),
        }
    }

    /// Another length, which cuts slots, or lets the file grow.
    fn cut(&mut self, of: &Shared) -> Outcome {
        if avoids(Avoid::SetLenRaces) {
            return Ok(());
        }
        let Ok(_one) = of.is_cut.try_lock() else { return Ok(()) };
        let slot = of.tail + self.draw.below((of.slots.len() - of.tail + 1) as u64) as usize;
        let bytes = of.offset(slot);
        self.worker.begins(format!("set_len({bytes}) of file {}", of.number));
        let file = of.handle();
        let begin = self.now();
        of.slots[slot..].iter().for_each(|slot| slot.begins(What::Cut, begin));
        let result = file.set_len(bytes);
        let end = self.now();
        match result {
            Ok(()) => {
                of.slots[slot..].iter().for_each(|slot| slot.ends(begin, end));
                lock(&of.lengths).push((Length::Set(bytes), begin, end));
                self.counts.count("set_len", true);
                Ok(())
            }
            Err(Error::Pinned { .. } | Error::Forgotten { .. }) => {
                of.slots[slot..].iter().for_each(|slot| slot.is_void(begin));
                self.counts.count("set_len", false);
                Ok(())
            }
            Err(error) => {
                // A file that gets shorter is so before its device has its length.
                of.slots[slot..].iter().for_each(|slot| slot.fails(begin, end));
                lock(&of.lengths).push((Length::Perhaps(bytes), begin, end));
                self.passes("set_len", error)
            }
        }
    }

    fn sync(&mut self, of: &Shared) -> Outcome {
        self.worker.begins(format!("sync_data of file {}", of.number));
        match of.handle().sync_data() {
            Ok(()) => {
                self.counts.count("sync_data", true);
                Ok(())
            }
            Err(error) => self.passes("sync_data", error),
        }
    }

    fn forget(&mut self, of: &Shared) -> Outcome {
        if avoids(Avoid::ForgetOpen) || avoids(Avoid::Forgets) && self.number != 0 {
            return Ok(());
        }
        self.worker.begins(format!("forget of file {}, and open", of.number));
        match of.handle().forget() {
            Ok(()) => {
                let file = folder::open(&self.world.memory, &of.path, of.how.clone());
                *lock(&of.file) = file.map_err(|error| self.wrong("open after forget", &error))?;
                self.counts.count("forget, open", true);
            }
            Err(Error::Pinned { .. } | Error::Forgotten { .. }) => self.counts.count("forget, open", false),
            Err(error) => return self.passes("forget, open", error),
        }
        Ok(())
    }

    /// Excludes writers, and syncs first: contents do not change.
    fn reload(&mut self, of: &Shared) -> Outcome {
        let _alone = of.writers.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(_one) = of.is_cut.try_lock() else { return Ok(()) };
        self.worker.begins(format!("sync_data and reload of file {}", of.number));
        let file = of.handle();
        match file.sync_data().and_then(|()| file.reload()) {
            Ok(()) => self.counts.count("reload", true),
            Err(Error::Pinned { .. } | Error::Forgotten { .. }) => self.counts.count("reload", false),
            Err(error) => return self.passes("reload", error),
        }
        Ok(())
    }

    fn limits(&mut self) -> Outcome {
        let pages = |count: u64| (count * PAGE).to_string();
        let (group, file, value) = match self.draw.below(8) {
            0..=1 => (true, "memory.max", pages(80 + self.draw.below(200))),
            2 => (true, "memory.high", pages(300 + self.draw.below(300))),
            3 => (true, "memory.low", pages(self.draw.below(200))),
            4 => (true, "memory.reclaim", pages(1 + self.draw.below(60))),
            5 => (false, "/proc/sys/vm/dirty_ratio", self.draw.pick(&[2, 20, 60]).to_string()),
            6 => (false, "/proc/sys/vm/dirty_background_ratio", self.draw.pick(&[0, 1, 10]).to_string()),
            _ => (false, "/proc/sys/vm/drop_caches", "1".to_owned()),
        };
        self.worker.begins(format!("echo {value} > {file}"));
        let world = self.world;
        let result = if group {
            match world.groups.len() {
                0 => return Ok(()),
                groups => world.groups[self.draw.below(groups as u64) as usize].write(file, &value),
            }
        } else {
            world.memory.write(file, &value)
        };
        match result {
            Ok(()) => self.counts.count("kernel file", true),
            Err(Error::File(_)) => self.counts.count("kernel file", false),
            Err(error) => return Err(self.wrong(file, &error)),
        }
        Ok(())
    }

    fn advise(&mut self, of: &Shared) -> Outcome {
        let file = of.handle();
        let bytes = file.len();
        let (one, other) = (self.draw.below(bytes + 1), self.draw.below(bytes + 1));
        let range = one.min(other)..one.max(other);
        let kind = self.draw.pick(&["DontNeed", "DontNeed", "WillNeed", "prefetch", "Random", "Normal"]);
        self.worker.begins(format!("{kind} of file {}, {range:?}", of.number));
        let result = match kind {
            "DontNeed" => file.advise(Advice::DontNeed, range),
            "WillNeed" => file.advise(Advice::WillNeed, range),
            "Random" => file.advise(Advice::Random, range),
            "Normal" => file.advise(Advice::Normal, range),
            _ => file.prefetch(range),
        };
        match result {
            Ok(()) => self.counts.count("advise, prefetch", true),
            Err(Error::BeyondEnd { .. } | Error::Forgotten { .. } | Error::CutMeanwhile { .. }) => {
                self.counts.count("advise, prefetch", false)
            }
            Err(error) => return Err(self.wrong(kind, &error)),
        }
        Ok(())
    }
}

impl World {
    fn fails(&self, text: String) {
        lock(&self.failure).get_or_insert(text);
        self.failed.store(true, SeqCst);
    }

    /// All threads have stopped: everything is as one order of what they did has left it.
    fn compare(&self, main: &mut Actor<'_>) -> Outcome {
        if self.was_full.load(SeqCst) {
            self.heal(main)?;
            self.was_full.store(false, SeqCst);
        }
        for of in &self.files {
            main.worker.begins(format!("all threads have stopped: file {} is compared", of.number));
            let file = of.handle();
            let len = file.len();
            let mut bytes = vec![0xa5; len as usize];
            let begin = main.now();
            file.read_at(&mut bytes, 0).map_err(|error| main.wrong("read_at of all", &error))?;
            let end = main.now();
            let slot_len = of.slot_bytes as usize;
            for slot in 0..of.slots.len() {
                let there = bytes.get(slot * slot_len..(slot + 1) * slot_len);
                main.check(of, slot, there, begin, end, "after all threads have stopped")?;
            }
            self.compare_length(of, len)?;
            file.sync_data().map_err(|error| main.wrong("sync_data", &error))?;
            let outside = std::fs::File::open(&of.path).unwrap();
            let mut device = vec![0; outside.metadata().unwrap().len() as usize];
            outside.read_exact_at(&mut device, 0).unwrap();
            compare(&device, &bytes, 0)
                .map_err(|error| format!("file {} on its device after a sync: {error}", of.number))?;
            file.reload().map_err(|error| main.wrong("reload", &error))?;
            let mut again = vec![0xa5; len as usize];
            file.read_at(&mut again, 0).map_err(|error| main.wrong("read_at after reload", &error))?;
            compare(&again, &bytes, 0)
                .map_err(|error| format!("file {} after a reload: {error}", of.number))?;
        }
        self.spaces.iter().try_for_each(|of| main.compare_region(of))?;
        main.worker.ends();
        Ok(())
    }

    /// The device was full and has space: each file can be written again.
    fn heal(&self, main: &mut Actor<'_>) -> Outcome {
        for of in &self.files {
            main.worker
                .begins(format!("all threads have stopped: file {} is acknowledged and synced", of.number));
            let file = of.handle();
            for tries in 1.. {
                match file.acknowledge().and_then(|()| file.sync_data()) {
                    Ok(()) => break,
                    Err(Error::Sync { .. }) if tries < TRIES => {}
                    Err(error) => return Err(main.wrong("sync_data of a file that has space", &error)),
                }
            }
            main.counts.count("acknowledge, sync", true);
        }
        Ok(())
    }

    /// The length is that of one order of writes and cuts.
    fn compare_length(&self, of: &Shared, len: u64) -> Outcome {
        let lengths = std::mem::take(&mut *lock(&of.lengths));
        let is_last = |&&(length, _, end): &&(Length, u64, u64)| {
            let is_set = !matches!(length, Length::Extend(_));
            is_set && !lengths.iter().any(|(other, begin, _)| matches!(other, Length::Set(_)) && *begin > end)
        };
        let fits = |&(length, begin, end): &(Length, u64, u64)| {
            let (Length::Set(bytes) | Length::Perhaps(bytes)) = length else { return false };
            let after = |from: &dyn Fn(u64, u64) -> bool| {
                let extends = lengths.iter().filter_map(|&(other, begin, end)| match other {
                    Length::Extend(to) if from(begin, end) => Some(to),
                    _ => None,
                });
                extends.collect::<Vec<u64>>()
            };
            let sure = after(&|other_begin, other_end| other_begin > end && other_end != u64::MAX);
            let least = sure.into_iter().chain([bytes]).max().unwrap_or(bytes);
            let perhaps = after(&|_, other_end| other_end >= begin);
            len == least || len > least && perhaps.contains(&len)
        };
        let is_one = lengths.iter().filter(is_last).any(fits);
        lock(&of.lengths).push((Length::Set(len), 0, 0));
        if is_one {
            return Ok(());
        }
        let last: Vec<_> = lengths.iter().filter(is_last).collect();
        Err(format!(
            "file {} has {len} bytes, which no order of its writes and cuts gives; the last cuts: {last:?}",
            of.number
        ))
    }
}

/// One cache with its files and threads.
fn of_one_cache(seed: u64, until: Instant, counts: &mut Counts) {
    let mut draw = Draw::new(seed);
    let mut setup = Setup::draw(&mut draw);
    if draw.once_in(2) {
        setup = Setup::draw_with_swap(&mut draw);
        // Otherwise a pool that is full leaves a group no memory.
        setup.swap.iter_mut().for_each(|swap| swap.shrinker = true);
    }
    let threads = 2 + draw.below(5) as usize;
    if avoids(Avoid::Holes) && !avoids(Avoid::SetLenRaces) {
        // Writes behind a new end leave holes.
        setup.backend = Backend::Threads;
    }
    let folder = Folder::new();
    let memory = setup.build().unwrap_or_else(|error| panic!("{setup}: {error}"));
    let groups: Vec<Group> =
        setup.limits().map(|(name, limits)| memory.group(&name, limits).unwrap()).collect();
    let count = 1 + draw.below(3) as usize;
    let files = (0..count).map(|number| {
        let slot_bytes = draw.pick(&[64, 128, 512, 1024, 4096]);
        let pages = draw.pick(&[4, 30, 200, 600]) / count as u64 + 2;
        let slots = ((pages * PAGE / slot_bytes) as usize).min(8000).next_multiple_of(threads);
        let path = folder.path(&format!("file-{number}"));
        let mut how = Open::read_write().create(true).buffered(!folder::has_direct());
        how = if draw.once_in(4) { how.stable_writes(true) } else { how };
        how = if draw.once_in(3) { how.random() } else { how };
        how = match groups.len() as u64 {
            0 => how,
            groups_len => how.group(&groups[draw.below(groups_len) as usize]),
        };
        let file = folder::open(&memory, &path, how.clone()).unwrap();
        let shared = Shared {
            number,
            path,
            slot_bytes,
            slots: (0..slots).map(|_| History::new()).collect(),
            tail: slots * 2 / 3,
            file: Mutex::new(file),
            writers: RwLock::new(()),
            lengths: Mutex::new(vec![(Length::Set(slot_bytes * slots as u64), 0, 0)]),
            is_cut: Mutex::new(()),
            how,
        };
        shared.handle().set_len(shared.most()).unwrap();
        shared
    });
    let files = files.collect();
    let count = if setup.swap.is_some() { 1 + draw.below(2) as usize } else { 0 };
    let spaces = (0..count)
        .map(|number| {
            let options = match groups.len() as u64 {
                0 => RegionOptions::new(),
                groups_len => RegionOptions::new().group(&groups[draw.below(groups_len) as usize]),
            };
            let region = memory.region(draw.pick(&[8, 100, 400]) * PAGE, options).unwrap();
            Space::new(FIRST_REGION + number, region, threads, &mut draw)
        })
        .collect();
    let world = World {
        clock: AtomicU64::new(1),
        memory,
        groups,
        files,
        spaces,
        was_full: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    // It goes before the cache, which writes what it has left.
    let _lifts = full::Lifts;
    let watch = Watch::default();
    let is_over = AtomicBool::new(false);
    let (watched, over) = (&watch, &is_over);
    std::thread::scope(|scope| {
        scope.spawn(move || watched.abort_on_hang(seed, || !over.load(SeqCst)));
        let actor = |number: usize, name: String, draw: Draw| Actor {
            world: &world,
            number,
            threads,
            draw,
            versions: number as u64,
            worker: watch.worker(name),
            counts: Counts::default(),
            full_at: None,
        };
        let mut actors: Vec<Actor<'_>> = (0..threads)
            .map(|number| actor(number, format!("thread {number}"), Draw::new(draw.next())))
            .collect();
        let mut main = actor(threads, "the thread that compares".to_owned(), Draw::new(seed));
        while !world.failed.load(SeqCst) && Instant::now() < until {
            let pause = (Instant::now() + OF_ONE_ROUND).min(until);
            let is_full = draw.once_in(3);
            let (at, span) = (draw.below(OF_ONE_ROUND.as_millis() as u64), draw.pick(&FULL));
            actors[0].full_at = is_full.then(|| (Instant::now() + Duration::from_millis(at), span));
            // Writers are refused while others go on.
            let pause = if is_full { pause + span } else { pause };
            std::thread::scope(|scope| {
                for actor in &mut actors {
                    let world = &world;
                    scope.spawn(move || {
                        while !world.failed.load(SeqCst) && Instant::now() < pause {
                            let outcome = catch_unwind(AssertUnwindSafe(|| actor.act()));
                            actor.worker.ends();
                            match outcome {
                                Ok(Ok(())) => {}
                                Ok(Err(text)) => world.fails(format!("thread {}: {text}", actor.number)),
                                Err(_) => world.fails(format!(
                                    "thread {}: a panic: {}",
                                    actor.number,
                                    watch::panics().join("\n")
                                )),
                            }
                        }
                    });
                }
            });
            if !world.failed.load(SeqCst)
                && let Err(text) = world.compare(&mut main)
            {
                world.fails(text);
            }
        }
        actors.iter().chain([&main]).for_each(|actor| counts.add(&actor.counts));
        is_over.store(true, SeqCst);
    });
    let failure = lock(&world.failure).take();
    if let Some(text) = failure {
        let files: Vec<String> = world
            .files
            .iter()
            .map(|of| {
                format!(
                    "file {} with {} slots of {} bytes: {:?}",
                    of.number,
                    of.slots.len(),
                    of.slot_bytes,
                    of.how
                )
            })
            .collect();
        panic!(
            "{text}\nsetup: {setup}, {threads} threads\n{}\n{}again: {}",
            files.join("\n"),
            watch.last(),
            settings::again(seed)
        );
    }
}

/// Runs threads for a half of the time that the settings say.
pub(crate) fn run() {
    let until = Instant::now() + settings::duration() / 2;
    let mut counts = Counts::default();
    let mut caches = 0;
    for seed in settings::seeds() {
        of_one_cache(seed, until.min(Instant::now() + OF_ONE_CACHE), &mut counts);
        caches += 1;
        if Instant::now() >= until {
            break;
        }
    }
    counts.print(&format!("many threads, {caches} caches"));
}
