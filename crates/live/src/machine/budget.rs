//! A change of the budget: the engine's balloon takes frames or gives some, and the system gets their memory.
//!
//! ```text
//!   less   guards and regions are limited ─▶ the balloon takes frames, in steps between which the lock is free ─▶ their memory goes to the system
//!                     │ too many are held           │ too few can be had: it gives them back
//!                     └────────── an error, and the budget is as before ─────────┘
//!   more   the balloon gives frames, in steps ─▶ guards and regions may use more          each takes memory when it is used first
//! ```
//! Tables of files take frames the same way, when they outgrow what is set aside for them:
//!
//! ```text
//!   an access begins ─▶ too little slack ─▶ the balloon takes frames, 64 or more ─▶ the access      more than enough: it gives frames
//!                                                 │ too few can be had, and no slack is left ─▶ an error
//! ```
//! A thread that follows a cgroup's limit reads it once a second, and does the same.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use pageout_engine::{Engine, PAGE_SIZE, Pfn, Served, Step, TaskId};

use super::LiveMachine;
use super::locked::Locked;
use crate::budget::Budget;
use crate::cgroup;
use crate::error::Error;
use crate::sync::{thread, wait_at_most};

/// Runs of the balloon that take no frame before the rest counts as unavailable. Between them are waits, which take 94 ms together.
const IN_VAIN_MAX: u32 = 16;

impl LiveMachine {
    /// Makes a task do something that may take several steps.
    pub(crate) fn with_task(
        &self,
        begin: impl FnOnce(&mut Engine, TaskId) -> Result<Step, Error>,
    ) -> Result<Served, Error> {
        let mut locked: Locked<'_> = self.drain(self.lock()?)?;
        let hired = locked.hire(0);
        // It may take long, and others may close the file that was last lent to the task.
        locked.engine.take_back(hired.task);
        let step = begin(&mut locked.engine, hired.task)?;
        let served;
        (locked, served) = self.see_through(locked, hired.task, step)?;
        drop(self.read(locked, 0)?);
        Ok(served)
    }

    /// Changes the budget. It is unchanged after an error.
    pub(crate) fn set_budget(&self, bytes: u64) -> Result<(), Error> {
        if self.budget.due_to_tables(0).is_some_and(|due| due < self.budget.of_tables()) {
            // Frames that tables no longer need are not missing.
            self.resize_tables(0)?;
        }
        let _changes = self.budget.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = self.budget.plan.frames(bytes)?;
        let (before, of_tables) = (self.budget.allowed(), self.budget.of_tables());
        if of_tables > self.budget.of_tables_max(frames) {
            // Pages would have too few frames next to the tables.
            let least = before - self.budget.of_tables_max(before) + of_tables;
            return Err(Error::BudgetTooSmall { least: self.budget.plan.bytes(least) });
        }
        if frames < before {
            self.limit(frames)?;
            if let Err(error) = self.shrink(frames - of_tables) {
                self.grow(before - of_tables)?;
                let _locked = self.lock()?;
                self.budget.set_frames(before);
                return Err(error);
            }
        } else {
            self.grow(frames - of_tables)?;
            let _locked = self.lock()?;
            self.budget.set_frames(frames);
        }
        self.budget.set_bytes(bytes);
        Ok(())
    }

    /// Begins an access that may bring a page in: tables have frames for what it adds to them.
    pub(crate) fn lock_for_page(&self) -> Result<Locked<'_>, Error> {
        self.tend_tables(0)?;
        self.drain(self.lock()?)
    }

    /// Gives tables the frames that they need before they grow, or takes those that they no longer need. `more`: bytes that are about to be added.
    /// The caller has no lock.
    ///
    /// # Errors
    /// [`Error::NoRoomForTables`].
    #[inline]
    pub(crate) fn tend_tables(&self, more: u64) -> Result<(), Error> {
        match self.budget.due_to_tables(more) {
            Some(_) => self.resize_tables(more),
            None if self.budget.has_room_for_tables(more) => Ok(()),
            None => Err(self.no_room_for_tables(more)),
        }
    }

    #[cold]
    fn resize_tables(&self, more: u64) -> Result<(), Error> {
        let _changes = self.budget.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, allowed) = (self.budget.of_tables(), self.budget.allowed());
        let has_room = self.budget.has_room_for_tables(more);
        // Another thread may have done it.
        let Some(due) = self.budget.due_to_tables(more) else { return Ok(()) };
        if due < before {
            self.grow(allowed - due)?;
            self.budget.set_of_tables(due);
            return Ok(());
        }
        // Pages have fewer frames from now on. As long as there is slack, an access does not wait for them.
        self.budget.set_of_tables(due);
        let begins_with = self.balloon_frames()?;
        self.inflate(allowed - due, if has_room { 1 } else { IN_VAIN_MAX })?;
        self.budget.set_of_tables(self.balloon_frames()? - (self.budget.plan.frames_max - allowed));
        self.give_taken(begins_with as usize)?;
        match self.budget.has_room_for_tables(more) {
            true => Ok(()),
            false => Err(self.no_room_for_tables(more)),
        }
    }

    #[cold]
    pub(crate) fn no_room_for_tables(&self, more: u64) -> Error {
        let bytes = self.budget.tables.bytes_with(more);
        Error::NoRoomForTables { bytes, most: self.budget.tables_max() }
    }

    fn balloon_frames(&self) -> Result<u64, Error> {
        Ok(self.lock()?.engine.balloon_frames().len() as u64)
    }

    /// Limits guards and regions to what so many frames can hold, unless there is more.
    fn limit(&self, frames: u64) -> Result<(), Error> {
        let locked = self.lock()?;
        let (pinned, most) = (locked.pinned(), Budget::pins_of(frames - self.budget.of_tables()));
        if pinned > most {
            return Err(Error::Pinned { path: PathBuf::new(), page: None, pinned, most });
        }
        let (bytes, most) = (locked.regions.reserved(), (frames - self.budget.of_tables()) * PAGE_SIZE);
        if locked.transfers.swap.is_none() && bytes > most {
            return Err(Error::NoSwap { bytes, most });
        }
        self.budget.set_frames(frames);
        Ok(())
    }

    /// Takes frames until only so many are left, and gives their memory to the system.
    fn shrink(&self, frames: u64) -> Result<(), Error> {
        let begins_with = self.balloon_frames()?;
        let taken = self.inflate(frames, IN_VAIN_MAX)?;
        if taken < self.budget.plan.frames_max - frames {
            return Err(self.cannot_shrink(taken, frames));
        }
        self.give_taken(begins_with as usize)
    }

    /// Makes the balloon take frames until only so many are left, or runs have taken none. Returns the largest number that it had.
    fn inflate(&self, frames: u64, in_vain_max: u32) -> Result<u64, Error> {
        const LONGEST: Duration = Duration::from_millis(8);
        let wanted = self.budget.plan.frames_max - frames;
        let (mut taken, mut in_vain, mut span) = (self.balloon_frames()?, 0, Duration::from_micros(250));
        loop {
            self.with_task(|engine, task| Ok(engine.balloon_resize(task, wanted)))?;
            let now = self.balloon_frames()?;
            if now == wanted {
                return Ok(wanted);
            }
            if now > taken {
                (in_vain, span) = (0, Duration::from_micros(250));
            } else {
                in_vain += 1;
            }
            taken = taken.max(now);
            if in_vain == in_vain_max {
                return Ok(taken);
            }
            // Pages that are being read or written can go when that has ended.
            thread::sleep(span);
            span = (2 * span).min(LONGEST);
        }
    }

    /// Gives the memory of frames to the system that the balloon has taken behind its first ones.
    fn give_taken(&self, begins_with: usize) -> Result<(), Error> {
        let mut locked = self.lock()?;
        let taken: Vec<Pfn> = locked.engine.balloon_frames()[begins_with..].to_vec();
        for &pfn in &taken {
            let inner = &mut *locked;
            self.await_move(&mut inner.effects.moves, pfn);
        }
        // They are the balloon's until the next change.
        drop(locked);
        self.arena.give_to_system(&runs(taken)).map_err(|source| Error::Io {
            op: "giving memory back",
            path: "the arena".into(),
            page: None,
            source,
        })
    }

    /// Why the frames that are left can't be taken.
    #[cold]
    fn cannot_shrink(&self, taken: u64, frames: u64) -> Error {
        let pinned = match self.lock() {
            Ok(locked) => locked.pinned(),
            Err(error) => return error,
        };
        let most = Budget::pins_of(frames);
        if pinned > most {
            return Error::Pinned { path: PathBuf::new(), page: None, pinned, most };
        }
        Error::BudgetTooSmall { least: self.budget.plan.bytes(self.budget.plan.frames_max - taken) }
    }

    /// Gives frames until so many can be used.
    fn grow(&self, frames: u64) -> Result<(), Error> {
        let balloon = self.budget.plan.frames_max - frames;
        let given: Vec<Pfn> =
            self.lock()?.engine.balloon_frames().iter().skip(balloon as usize).copied().collect();
        // Only who has `changes` gives them away.
        self.arena.take_from_system(&runs(given));
        self.with_task(|engine, task| Ok(engine.balloon_resize(task, balloon)))?;
        Ok(())
    }

    /// Has the budget follow the limit of a cgroup until all is to stop.
    pub(crate) fn follow_cgroup(&self) {
        let Some(share) = &self.budget.follows else { return };
        let stops = || self.budget.stops.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stopped = stops();
        while !*stopped && !self.is_poisoned() {
            wait_at_most(&self.budget.wake, stopped, cgroup::READ_EVERY);
            stopped = stops();
            if *stopped {
                return;
            }
            drop(stopped);
            let plan = &self.budget.plan;
            let bytes = share.bytes().clamp(plan.least(), plan.most);
            if bytes != self.budget.bytes() {
                // Guards of now may be gone when the limit is read again.
                let _ = self.set_budget(bytes);
            }
            stopped = stops();
        }
    }

    /// Has the thread that follows a limit end.
    pub(super) fn stop_following(&self) {
        *self.budget.stops.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.budget.wake.notify_all();
    }
}

/// Frames that lie side by side.
fn runs(mut frames: Vec<Pfn>) -> Vec<Range<u32>> {
    frames.sort_unstable();
    let mut runs: Vec<Range<u32>> = Vec::new();
    for pfn in frames {
        match runs.last_mut() {
            Some(run) if run.end == pfn.0 => run.end += 1,
            _ => runs.push(pfn.0..pfn.0 + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which make files")]

    use std::sync::Arc;

    use super::*;
    use crate::cgroup::tests::Root;
    use crate::storage::failing::{Fate, Faults, Request};
    use crate::sync::Instant;
    use crate::{Memory, Open};

    const MIB: u64 = 1 << 20;

    #[test]
    fn frames_side_by_side_are_one_run() {
        assert_eq!(runs(Vec::new()), Vec::<Range<u32>>::new());
        let frames = [7, 3, 4, 9, 8, 5, 20].map(Pfn).to_vec();
        assert_eq!(runs(frames), [3..6, 7..10, 20..21]);
    }

    #[test]
    fn engine_is_sound_after_each_change() {
        let path = std::env::temp_dir().join(format!("pageout-budget-sound-{}", std::process::id()));
        std::fs::write(&path, vec![7; 16 << 20]).unwrap();
        let memory = Memory::builder().budget(12 * MIB).files(32 * MIB).build().unwrap();
        let file = memory.open(&path, Open::read().random().buffered(true)).unwrap();
        std::fs::remove_file(&path).unwrap();
        for budget in [9 * MIB, 12 * MIB, 8 * MIB, 10 * MIB] {
            let mut buf = [0; 9];
            for page in 0..4096 {
                file.read_at(&mut buf, page * PAGE_SIZE).unwrap();
            }
            memory.set_budget(budget).unwrap();
            memory.0.machine.lock().unwrap().engine.check_invariants();
        }
    }

    /// A device that accepts no write.
    #[derive(Debug)]
    struct Broken;

    impl Faults for Broken {
        fn fate(&self, request: Request) -> Fate {
            if matches!(request, Request::Write { .. }) { Fate::Fails(libc::EIO) } else { Fate::Well }
        }
    }

    #[test]
    fn pages_that_can_not_be_written_keep_the_budget() {
        let path = std::env::temp_dir().join(format!("pageout-budget-kept-{}", std::process::id()));
        std::fs::write(&path, vec![7; 16 << 20]).unwrap();
        let builder = Memory::builder().budget(12 * MIB).files(32 * MIB);
        let memory =
            builder.sysctl("vm.dirty_ratio", 95).sysctl("vm.dirty_background_ratio", 90).build().unwrap();
        let how = Open::read_write().random().buffered(true).faults(Arc::new(Broken) as Arc<dyn Faults>);
        let file = memory.open(&path, how).unwrap();
        std::fs::remove_file(&path).unwrap();
        let frames = memory.stats().unwrap().frames;
        for page in 0..frames * 3 / 4 {
            file.write_at(&page.to_le_bytes(), page * PAGE_SIZE).unwrap();
        }
        let error = memory.set_budget(8 * MIB).unwrap_err();
        assert!(
            matches!(error, Error::BudgetTooSmall { least } if (9 * MIB..12 * MIB).contains(&least)),
            "{error}"
        );
        assert_eq!((memory.budget(), memory.stats().unwrap().frames), (12 * MIB, frames));
        memory.0.machine.lock().unwrap().engine.check_invariants();
        for page in 0..frames * 3 / 4 {
            let mut buf = [0; 8];
            file.read_at(&mut buf, page * PAGE_SIZE).unwrap();
            assert_eq!(u64::from_le_bytes(buf), page, "a dirty page was lost");
        }
        file.forget_and_discard().unwrap();
        memory.set_budget(8 * MIB).unwrap();
    }

    #[test]
    fn tables_that_do_not_fit_are_refused_and_no_page_is_lost() {
        let path = std::env::temp_dir().join(format!("pageout-tables-{}", std::process::id()));
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let builder = Memory::builder().budget(12 * MIB);
        let memory =
            builder.sysctl("vm.dirty_ratio", 95).sysctl("vm.dirty_background_ratio", 90).build().unwrap();
        let how = Open::read_write().random().buffered(true).faults(Arc::new(Broken) as Arc<dyn Faults>);
        let file = memory.open(&path, how).unwrap();
        std::fs::remove_file(&path).unwrap();
        // Each page has a leaf of its own, and none can leave memory.
        let place = |number: u64| number * (4 << 20);
        let mut written = 0_u64;
        let error = loop {
            match file.write_at(&written.to_le_bytes(), place(written)) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, Error::NoRoomForTables { .. } | Error::OutOfMemory(_) | Error::Io { .. }),
            "{error}"
        );
        let stats = memory.stats().unwrap();
        assert!(written > 500 && stats.table_frames > 300, "{written} pages written: {stats:?}");
        memory.0.machine.lock().unwrap().engine.check_invariants();
        for number in 0..written {
            let mut buf = [0; 8];
            file.read_at(&mut buf, place(number)).unwrap();
            assert_eq!(u64::from_le_bytes(buf), number, "a dirty page was lost");
        }
        let error = memory.set_budget(8 * MIB).unwrap_err();
        assert!(matches!(error, Error::BudgetTooSmall { least } if least > 8 * MIB), "{error}");
        file.forget_and_discard().unwrap();
        memory.set_budget(9 * MIB).unwrap();
        memory.0.machine.lock().unwrap().engine.check_invariants();
    }

    #[test]
    fn budget_follows_the_limit_of_its_cgroup() {
        let root = Root::v2("followed");
        let limit = |bytes: u64| root.write("sys/fs/cgroup/a/memory.max", &format!("{bytes}\n"));
        limit(40 * MIB);
        let builder = Memory::builder().budget_of_cgroup(0.5).budget_max(24 * MIB).files(32 * MIB);
        let memory = builder.root(&root.0).build().unwrap();
        let await_budget = |bytes: u64| {
            let began = Instant::now();
            while memory.budget() != bytes {
                assert!(began.elapsed() < Duration::from_secs(60), "{} is not {bytes}", memory.budget());
                thread::sleep(Duration::from_millis(10));
            }
            let frames = memory.stats().unwrap().frames;
            assert_eq!(frames, memory.0.machine.budget.plan.frames(bytes).unwrap());
        };
        await_budget(20 * MIB);
        assert!(memory.describe().contains("0.5 of the limit of "), "{}", memory.describe());
        limit(30 * MIB);
        await_budget(15 * MIB);
        // No more than was reserved, and no less than is possible.
        limit(400 * MIB);
        await_budget(24 * MIB);
        limit(MIB);
        await_budget(memory.0.machine.budget.plan.least());
    }

    #[test]
    fn cgroup_without_room_for_a_cache_is_refused() {
        let root = Root::v2("tiny");
        root.write("sys/fs/cgroup/a/b/memory.max", "1048576\n");
        let error = Memory::builder().budget_of_cgroup(1.0).root(&root.0).build().unwrap_err();
        assert!(matches!(error, Error::BudgetTooSmall { .. }), "{error}");
    }
}
