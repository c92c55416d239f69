//! Waits: for a copy, for a writer, for a page that another thread reads, for a file without accesses.
//!
//! ```text
//!   with the lock      a copy into a frame: it is short, and begun    await_move
//!   without it         a copy of a page                               awaits_move, await_copy
//!                      a guard, and no longer than is worth it        await_guard
//!                      a read, where a group has no other pages       await_room_beside
//!                      a page that another has asked for              wait          parked, until the engine wakes the task
//!                      a file that others are in, cut, or forget      close_off, await_change
//!                      a condition of all of the cache                wait_while
//! ```
//! The thread that would have woken others may have panicked: no wait is endless, and each checks whether the cache is poisoned.

use std::time::Duration;

use pageout_engine::{FileId, Pfn, TaskId};

use super::locked::{Crowded, Miss};
use super::moves::Move;
use super::{Accessed, Inner, LOOK_AGAIN, LiveMachine, Locked, OpenFile, PageOwner};
use crate::error::Error;
use crate::file::Inner as File;
use crate::guards::GuardWait;
use crate::sync::{Instant, thread, wait_at_most};

impl LiveMachine {
    /// Copies a frame that is needed under the lock, if it is part of a move: moves of this thread, which has not begun them, are made.
    pub(super) fn await_move(&self, own: &mut Vec<Move>, pfn: Pfn) {
        if own.iter().any(|one| one.names(pfn)) {
            own.drain(..).for_each(|one| one.make(&self.arena));
        }
        self.await_moves_of_others(pfn);
    }

    /// The same where this thread's own come before it in any case.
    pub(super) fn await_moves_of_others(&self, pfn: Pfn) {
        while self.moves.names(pfn) {
            assert!(!self.is_poisoned(), "who copies {pfn:?} has panicked");
            thread::yield_now();
        }
    }

    /// Waits for a closed frame, without the lock, if its page is being copied there, or is being written by a copy. Returns whether that was the
    /// reason, and is over: a writer in place may stay for long.
    #[cold]
    pub(crate) fn awaits_move(&self, pfn: Pfn) -> bool {
        let mut has_waited = false;
        while self.moves.names(pfn) && !self.is_poisoned() {
            has_waited = true;
            thread::yield_now();
        }
        let is_written = || self.arena.gate(pfn).is_written();
        if is_written() {
            self.await_copy(|| !is_written());
            has_waited = !is_written();
        }
        has_waited
    }

    /// Waits for a thread that copies to a page or from it, without the lock, and no longer than that takes.
    pub(crate) fn await_copy(&self, is_free: impl Fn() -> bool) {
        const YIELDS: u32 = 64;
        for _ in 0..YIELDS {
            if is_free() || self.is_poisoned() {
                return;
            }
            thread::yield_now();
        }
    }

    /// Waits for the holder of a page without the lock: mostly a thread that copies and is done, but a guard may stay for long.
    ///
    /// # Errors
    /// [`Error::Pinned`] where the guard is this thread's own, or this wait is too long.
    pub(crate) fn await_guard(
        &self,
        wait: &mut GuardWait<'_>,
        of: impl Into<PageOwner>,
        page: u64,
        pfn: Pfn,
        is_free: impl Fn() -> bool,
    ) -> Result<(), Error> {
        const LONGEST: Duration = Duration::from_millis(1);
        self.await_copy(&is_free);
        let (of, mut span) = (of.into(), Duration::from_micros(20));
        while !is_free() && !self.is_poisoned() {
            if !wait.may_go_on(pfn) {
                return Err(self.lock()?.pinned_page(of, page));
            }
            thread::sleep(span);
            span = (2 * span).min(LONGEST);
        }
        Ok(())
    }

    /// Waits until there may be free memory for the page of a miss that has found none because of others' reads and holds.
    #[cold]
    pub(super) fn await_room_beside<'a>(
        &'a self,
        mut locked: Locked<'a>,
        miss: &Miss,
        crowded: Crowded,
    ) -> Result<Locked<'a>, Error> {
        locked = self.read(locked, 0)?;
        let (mut waited, mut span) = (Duration::ZERO, crowded.least);
        loop {
            drop(locked);
            thread::sleep(span);
            locked = self.lock()?;
            waited += span;
            // Any read that has ended may have been of its group.
            if waited >= crowded.most || locked.transfers.device_reads != miss.reads_before {
                return Ok(locked);
            }
            span = (2 * span).min(Duration::from_millis(1));
        }
    }

    /// Releases the lock until a task is woken, or for this duration.
    pub(super) fn wait<'a>(
        &'a self,
        mut locked: Locked<'a>,
        task: TaskId,
        span: Option<Duration>,
    ) -> Result<Locked<'a>, Error> {
        match span {
            Some(span) => Ok(self.wait_for(locked, task, span)?.0),
            None => loop {
                let is_woken;
                (locked, is_woken) = self.wait_for(locked, task, LOOK_AGAIN)?;
                if is_woken {
                    return Ok(locked);
                }
            },
        }
    }

    /// The same, and whether the task was woken.
    pub(super) fn wait_for<'a>(
        &'a self,
        mut locked: Locked<'a>,
        task: TaskId,
        span: Duration,
    ) -> Result<(Locked<'a>, bool), Error> {
        // A thread that waits for its own read is already woken, and needs no timeout.
        let mut until = None;
        loop {
            let waiter = locked.waiter(task);
            let is_woken = std::mem::take(&mut waiter.is_woken);
            if is_woken || until.is_some_and(|until| until <= Instant::now()) {
                waiter.thread = None;
                return Ok((locked, is_woken));
            }
            let until = *until.get_or_insert_with(|| Instant::now() + span);
            waiter.thread = Some(thread::current());
            drop(locked);
            let left = until.saturating_duration_since(Instant::now());
            thread::park_timeout(left.min(LOOK_AGAIN));
            locked = self.lock()?;
        }
    }

    /// Stops new accesses to a file, and waits for all earlier ones.
    ///
    /// # Errors
    /// [`Error::Pinned`] where they wait for a guard: who holds it may wait for this.
    pub(crate) fn close_off<'a>(&'a self, mut locked: Locked<'a>, file: FileId) -> Result<Locked<'a>, Error> {
        /// Longer than a device takes, mostly.
        const IS_LONG: Duration = Duration::from_millis(200);
        let began = Instant::now();
        let of = |inner: &'_ Inner, is: fn(&OpenFile) -> bool| {
            inner.files.open[file.0 as usize].as_ref().is_some_and(is)
        };
        loop {
            let waits = if of(&locked, |of| of.is_going) {
                of(&locked, |of| of.busy > 0)
            } else {
                let is_growing = of(&locked, OpenFile::is_growing);
                if !is_growing {
                    locked.set_going(file, true);
                    continue;
                }
                is_growing
            };
            if !waits {
                return Ok(locked);
            }
            if began.elapsed() > IS_LONG
                && let Some(page) = locked.held_page(file)
            {
                locked.set_going(file, false);
                self.settled();
                return Err(locked.pinned_page(file, page));
            }
            let inner = locked.into_inner();
            wait_at_most(&self.idle, inner, IS_LONG);
            locked = self.lock()?;
        }
    }

    /// Waits until the file or region can be accessed.
    ///
    /// # Errors
    /// [`Error::Forgotten`].
    pub(super) fn await_change_of<'a>(
        &'a self,
        locked: Locked<'a>,
        of: Accessed<'_>,
    ) -> Result<Locked<'a>, Error> {
        match of {
            Accessed::File(file, _) => self.await_change(locked, file),
            Accessed::Region(region) => self.await_resized(locked, region),
        }
    }

    /// Waits until no call takes bytes of a file away or forgets it: then the reach of an access is known. Whether it is forgotten in the end is
    /// known only then, as guards may hold its pages.
    ///
    /// # Errors
    /// [`Error::Forgotten`].
    pub(crate) fn await_change<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: &File,
    ) -> Result<Locked<'a>, Error> {
        if !file.length.is_changing() && locked.is_reachable(file) {
            return Ok(locked);
        }
        locked = self.wait_while(locked, |inner| {
            inner.files.open[file.id.0 as usize]
                .as_ref()
                .is_some_and(|of| (of.is_going || of.length.is_changing()) && of.has(file.serial))
        })?;
        if locked.is_reachable(file) { Ok(locked) } else { Err(file.forgotten()) }
    }

    /// Waits until no call is about to take all pages of a file away.
    ///
    /// # Errors
    /// [`Error::Forgotten`].
    pub(crate) fn wait_if_going<'a>(
        &'a self,
        mut locked: Locked<'a>,
        file: &File,
    ) -> Result<Locked<'a>, Error> {
        if locked.is_reachable(file) {
            return Ok(locked);
        }
        locked = self.wait_while(locked, |locked| {
            locked.files.open[file.id.0 as usize]
                .as_ref()
                .is_some_and(|of| of.is_going && of.has(file.serial))
        })?;
        if locked.is_reachable(file) { Ok(locked) } else { Err(file.forgotten()) }
    }

    /// It is known of a file that was going.
    pub(crate) fn settled(&self) {
        self.idle.notify_all();
    }

    /// Threads that wait for a file, or for free memory, check again.
    pub(crate) fn wake_idle(&self) {
        self.idle.notify_all();
    }

    pub(crate) fn wait_while<'a>(
        &'a self,
        mut locked: Locked<'a>,
        holds: impl Fn(&Inner) -> bool,
    ) -> Result<Locked<'a>, Error> {
        while holds(&locked) {
            let inner = locked.into_inner();
            wait_at_most(&self.idle, inner, LOOK_AGAIN);
            locked = self.lock()?;
        }
        Ok(locked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use std::fs::OpenOptions;
    use std::sync::{Arc, Condvar, Mutex};

    use pageout_engine::PAGE_SIZE;

    use super::*;
    use crate::storage::Real;
    use crate::storage::failing::{Failing, Fate, Faults, Request};
    use crate::{Backend, Limits, Memory, Open, ReadAt};

    /// A device that answers no read of a file's first pages before it may.
    #[derive(Debug)]
    struct Late {
        bytes: u64,
        may_answer: Mutex<bool>,
        changed: Condvar,
    }

    impl Faults for Late {
        fn fate(&self, request: Request) -> Fate {
            if matches!(request, Request::Read { offset, .. } if offset < self.bytes) {
                let may_answer = self.may_answer.lock().unwrap();
                drop(self.changed.wait_while(may_answer, |may_answer| !*may_answer).unwrap());
            }
            Fate::Well
        }
    }

    /// A way to read or write.
    type Way = fn(&crate::File) -> Result<(), Error>;

    fn reads_of(first: u64, bufs: &mut [[u8; 9]]) -> Vec<ReadAt<'_>> {
        (first..).zip(bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE_SIZE }).collect()
    }

    /// What one comes to, with room for 16 pages, all of which are being read when it begins; and whether it waits for that.
    fn crowded(one: Way) -> (Result<(), Error>, bool) {
        const MAX: u64 = 16 * PAGE_SIZE;
        let path = std::env::temp_dir().join(format!("pageout-waits-{}", std::process::id()));
        std::fs::write(&path, vec![7; 16 * MAX as usize]).unwrap();
        let memory =
            Memory::builder().budget(8 << 20).backend(Backend::Threads).io_threads(2).build().unwrap();
        let small = memory.group("small", Limits { max: Some(MAX), ..Limits::NONE }).unwrap();
        let file = memory.open(&path, Open::read_write().random().buffered(true).group(&small)).unwrap();
        let late = Arc::new(Late { bytes: MAX, may_answer: Mutex::new(false), changed: Condvar::new() });
        let real = Real::new(OpenOptions::new().read(true).write(true).open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        memory.0.machine.lock().unwrap().files.open[0].as_mut().unwrap().disk =
            Arc::new(Failing::new(real, Arc::clone(&late) as Arc<dyn Faults>));
        file.prefetch(0..MAX).unwrap();
        assert_eq!(small.read("memory.current").unwrap().trim(), MAX.to_string());
        let outcome = std::thread::scope(|scope| {
            let one = scope.spawn(|| one(&file));
            let has_met_the_limit = || !small.read("memory.events").unwrap().contains("\noom 0\n");
            while !has_met_the_limit() && !one.is_finished() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(10));
            let waits = !one.is_finished();
            *late.may_answer.lock().unwrap() = true;
            late.changed.notify_all();
            (one.join().unwrap(), waits)
        });
        let events = small.read("memory.events").unwrap();
        assert!(events.contains("\noom_kill 0\n"), "{events}");
        outcome
    }

    #[test]
    fn who_finds_all_pages_of_his_group_still_being_read_waits_for_one() {
        let all: [Way; 7] = [
            |file| file.read_at(&mut [0; 9], 30 * PAGE_SIZE),
            |file| file.write_at(&[8; 9], 30 * PAGE_SIZE + 77),
            |file| file.submit(reads_of(30, &mut [[0; 9]; 1]))?.wait(),
            // Fewer than there is room for, and more.
            |file| file.read_batch(&mut reads_of(30, &mut [[0; 9]; 3])),
            |file| file.read_batch(&mut reads_of(30, &mut [[0; 9]; 40])),
            |file| file.submit(reads_of(30, &mut [[0; 9]; 3]))?.wait(),
            |file| file.submit(reads_of(30, &mut [[0; 9]; 40]))?.wait(),
        ];
        for (way, one) in all.into_iter().enumerate() {
            let (outcome, waits) = crowded(one);
            assert!(outcome.is_ok() && waits, "way {way}: {outcome:?}, waits: {waits}");
        }
    }

    #[test]
    fn deleted_file_is_forgotten_after_its_last_read() {
        let [deleted, other] = ["deleted", "other"]
            .map(|name| std::env::temp_dir().join(format!("pageout-waits-{name}-{}", std::process::id())));
        for path in [&deleted, &other] {
            std::fs::write(path, vec![7; 16 * PAGE_SIZE as usize]).unwrap();
        }
        // Where this fails, its end would not come.
        let memory = Memory::builder().budget(8 << 20).backend(Backend::Threads).io_threads(2).build();
        let memory = std::mem::ManuallyDrop::new(memory.unwrap());
        let late =
            Arc::new(Late { bytes: PAGE_SIZE, may_answer: Mutex::new(false), changed: Condvar::new() });
        let how = || Open::read().random().buffered(true);
        let file = memory.open(&deleted, how().faults(Arc::clone(&late) as Arc<dyn Faults>)).unwrap();
        drop(file.submit(reads_of(0, &mut [[0; 9]; 1])).unwrap());
        drop(file);
        std::fs::remove_file(&deleted).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let file = memory.open(&other, how()).unwrap();
        std::thread::spawn(move || {
            // Files that nobody has open are looked at once a second, by the thread that sees these reads through.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(1500) {
                file.submit(reads_of(3, &mut [[0; 9]; 1])).unwrap().wait().unwrap();
                file.advise(crate::Advice::DontNeed, 0..file.len()).unwrap();
                thread::sleep(Duration::from_millis(10));
            }
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(Duration::from_secs(60)).expect("reads of another file hang");
        *late.may_answer.lock().unwrap() = true;
        late.changed.notify_all();
        let began = Instant::now();
        while memory.0.machine.lock().unwrap().files.open[0].is_some() {
            assert!(began.elapsed() < Duration::from_secs(60), "the deleted file keeps its space");
            thread::sleep(Duration::from_millis(10));
        }
        std::fs::remove_file(&other).unwrap();
        drop(std::mem::ManuallyDrop::into_inner(memory));
    }

    #[test]
    fn read_that_lands_after_a_reload_holds_no_writer_up() {
        let path = std::env::temp_dir().join(format!("pageout-waits-lands-{}", std::process::id()));
        std::fs::write(&path, vec![7; 4 * PAGE_SIZE as usize]).unwrap();
        let builder = Memory::builder().budget(8 << 20).guard_wait(Duration::from_millis(300));
        let memory = builder.backend(Backend::Threads).io_threads(2).build().unwrap();
        let late =
            Arc::new(Late { bytes: PAGE_SIZE, may_answer: Mutex::new(false), changed: Condvar::new() });
        let faults = Arc::clone(&late) as Arc<dyn Faults>;
        let file = memory.open(&path, Open::read().random().buffered(true).faults(faults)).unwrap();
        let mut bufs = [[0; 9]; 1];
        let pending = file.submit(reads_of(0, &mut bufs)).unwrap();
        // As a reload does, which may be refused then.
        memory.0.machine.lock().unwrap().files.open[0].as_mut().unwrap().copy_pins();
        *late.may_answer.lock().unwrap() = true;
        late.changed.notify_all();
        while memory.stats().unwrap().pinned == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let writer = memory.open(&path, Open::read_write().buffered(true)).unwrap();
        std::fs::remove_file(&path).unwrap();
        writer.write_at(&[9; 9], 0).unwrap();
        pending.wait().unwrap();
        assert_eq!(bufs, [[7; 9]]);
    }
}
