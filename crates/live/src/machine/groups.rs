//! Groups of the cache: made, removed, counted.
//!
//! ```text
//!   remove    no handle and no region is in it ─▶ its address spaces wait in the root group ─▶ the engine's rmdir: its pages stay charged, or are the root's
//!   make      a removed group that nothing is charged to any more? the engine reuses its number; an address space waits? it moves to the new group
//! ```

use std::collections::VecDeque;

use pageout_engine::{FileError, FileId, MemcgId, PAGE_SIZE, Stat};

use super::LiveMachine;
use super::inner::Group;
use super::locked::Locked;
use super::open_file::OpenFile;
use crate::counts::Sum;
use crate::error::Error;
use crate::stats::{FileStats, GroupStats};

/// A group by its number, and which one of those that have had it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) number: usize,
    serial: u64,
}

impl Place {
    /// The root group, which is never removed.
    pub(crate) const ROOT: Place = Place { number: 0, serial: 0 };
}

/// What is left of removed groups.
#[derive(Default)]
pub(crate) struct Removed {
    /// Numbers of groups whose address spaces wait.
    spare: Vec<usize>,
    /// Groups that the engine has not forgotten: pages or slots may be charged to them.
    charged: VecDeque<MemcgId>,
    /// Calls that may reclaim from any group.
    calls: u32,
}

/// Removed groups that are checked when a group is made or removed.
const FORGOTTEN_AT_ONCE: usize = 8;

impl Locked<'_> {
    /// A group of its own address space.
    pub(crate) fn add_group(&mut self, memcg: MemcgId) -> usize {
        if let Some(number) = self.files.removed.spare.pop() {
            self.move_group(number, memcg);
            return number;
        }
        let mm = self.engine.process_create(memcg);
        self.files.groups.push(Group::new(mm, memcg));
        self.files.groups.len() - 1
    }

    /// Charges an address space to another group from now on. None of its tasks does anything.
    pub(super) fn move_group(&mut self, number: usize, memcg: MemcgId) {
        let mm = self.files.groups[number].mm;
        if self.files.groups[number].memcg != memcg {
            self.engine.process_move(mm, memcg);
            self.files.groups[number].memcg = memcg;
        }
    }

    /// Returns true if a group has a name, and was not removed.
    pub(super) fn is_named(&self, memcg: MemcgId) -> bool {
        self.files.groups.iter().any(|of| of.memcg == memcg && of.name.is_some())
    }

    /// Checks that a group was not removed.
    ///
    /// # Errors
    /// [`FileError::NoSuchGroup`].
    pub(crate) fn check_group(&self, place: Place) -> Result<(), Error> {
        let of = self.files.groups.get(place.number);
        if of.is_some_and(|of| of.serial == place.serial) {
            return Ok(());
        }
        Err(Error::Config(pageout_engine::ConfigError::Unknown("such group: it was removed".to_owned())))
    }

    /// A call begins, or ends, that may reclaim from any group.
    pub(crate) fn kernel_file_call(&mut self, begins: bool) {
        let calls = &mut self.files.removed.calls;
        *calls = if begins { *calls + 1 } else { *calls - 1 };
    }

    /// Has the engine forget removed groups that nothing is charged to any more, and that no call of another thread reclaims from.
    fn forget_removed(&mut self) {
        if self.files.removed.calls > 0 {
            return;
        }
        for _ in 0..self.files.removed.charged.len().min(FORGOTTEN_AT_ONCE) {
            let Some(memcg) = self.files.removed.charged.pop_front() else { return };
            if !self.engine.memcg_forget(memcg) {
                self.files.removed.charged.push_back(memcg);
            }
        }
    }

    /// Accesses of a group.
    fn accesses_of(&self, number: usize) -> Sum {
        let mut sum = self.files.groups[number].of_closed;
        let of_files = self.files.open.iter().flatten().filter_map(|of| of.accesses_of(number));
        of_files.chain(self.regions.accesses_of(number)).for_each(|more| sum += more);
        sum
    }

    fn stats_of_group(&self, number: usize) -> GroupStats {
        let memcg = self.files.groups[number].memcg;
        let figures = self.engine.figures();
        let count = |stat| figures.memcg_stat_now(memcg, stat).max(0) as u64;
        const STEALS: [Stat; 4] =
            [Stat::PgstealKswapd, Stat::PgstealDirect, Stat::PgstealKhugepaged, Stat::PgstealProactive];
        let Sum { hits, misses } = self.accesses_of(number);
        GroupStats {
            hits: hits.all,
            slow_hits: hits.slow,
            misses,
            refaults: count(Stat::WorkingsetRefaultFile),
            refaults_anon: count(Stat::WorkingsetRefaultAnon),
            evictions: STEALS.into_iter().map(count).sum(),
            charged: figures.memcg_usage(memcg),
            resident: count(Stat::NrFilePages).saturating_sub(count(Stat::NrSwapcached)),
            anon: count(Stat::NrAnonPages),
            swapped: figures.memcg_swap_usage(memcg),
            dirty: count(Stat::NrDirty),
            writeback: count(Stat::NrWriteback),
        }
    }

    fn stats_of_file(&self, file: FileId, of: &OpenFile) -> FileStats {
        let figures = self.engine.figures();
        let Sum { hits, misses } = of.accesses();
        let counts = figures.file_counts(file);
        let (dirty, writeback) = figures.file_dirty(file);
        FileStats {
            hits: hits.all,
            slow_hits: hits.slow,
            misses,
            refaults: counts.refaulted,
            evictions: counts.evicted,
            resident: counts.cached,
            dirty,
            writeback,
            device_reads: of.requests.reads,
            device_bytes: of.requests.bytes,
            device_writes: of.requests.writes,
            device_bytes_written: of.requests.bytes_written,
        }
    }
}

/// A file of the cache, for an exporter.
pub(crate) struct FileRow {
    pub(crate) path: String,
    pub(crate) inode: u64,
    pub(crate) device: u64,
    pub(crate) stats: FileStats,
}

fn directory(name: &str) -> String {
    format!("/sys/fs/cgroup/{name}")
}

impl LiveMachine {
    /// Makes a group.
    pub(crate) fn make_group(&self, name: &str) -> Result<Place, Error> {
        let mut locked = self.drain(self.lock()?)?;
        locked.forget_removed();
        let memcg = locked.engine.memcg_create(MemcgId::ROOT, name)?;
        let number = locked.add_group(memcg);
        locked.files.serials += 1;
        let serial = locked.files.serials;
        let of = &mut locked.files.groups[number];
        (of.serial, of.name, of.of_closed) = (serial, Some(name.to_owned()), Sum::default());
        Ok(Place { number, serial })
    }

    /// Removes a group without files and regions.
    pub(crate) fn remove_group(&self, place: Place, name: &str) -> Result<(), Error> {
        let mut locked = self.drain(self.lock()?)?;
        let Place { number, .. } = place;
        let path = directory(name);
        if locked.check_group(place).is_err() {
            return Err(FileError::NoSuchFile(path).into());
        }
        let busy = |why: String| Err(FileError::Busy { path: path.clone(), why }.into());
        // An object whose handle is gone closes with its last access.
        locked.close_gone()?;
        if let Some(of) = locked.files.open.iter().flatten().find(|of| of.accesses_of(number).is_some()) {
            return busy(format!("{} is open in it: drop the handle first", of.path.display()));
        }
        if locked.regions.accesses_of(number).is_some() {
            return busy("a region is in it: drop the region first".to_owned());
        }
        let memcg = locked.files.groups[number].memcg;
        for idle in locked.regions.take_idle_of(memcg, MemcgId::ROOT) {
            locked.move_group(idle, MemcgId::ROOT);
        }
        locked.move_group(number, MemcgId::ROOT);
        let removed = locked.engine.remove_directory(&path);
        locked.settle();
        if let Err(error) = removed {
            locked.move_group(number, memcg);
            return Err(error.into());
        }
        let of = &mut locked.files.groups[number];
        (of.serial, of.name) = (u64::MAX, None);
        locked.files.removed.spare.push(number);
        locked.files.removed.charged.push_back(memcg);
        locked.forget_removed();
        Ok(())
    }

    pub(crate) fn group_stats(&self, place: Place, name: &str) -> Result<GroupStats, Error> {
        let locked = self.drain(self.lock()?)?;
        match locked.check_group(place) {
            Ok(()) => Ok(locked.stats_of_group(place.number)),
            Err(_) => Err(FileError::NoSuchFile(directory(name)).into()),
        }
    }

    /// Stats of all groups that have a name.
    pub(crate) fn all_group_stats(&self) -> Result<Vec<(String, GroupStats)>, Error> {
        let mut rows = Vec::new();
        let mut next = 0;
        loop {
            let locked = self.lock()?;
            let Some(number) =
                (next..locked.files.groups.len()).find(|&at| locked.files.groups[at].name.is_some())
            else {
                return Ok(rows);
            };
            let name = locked.files.groups[number].name.clone().expect("it has one");
            rows.push((name, locked.stats_of_group(number)));
            next = number + 1;
        }
    }

    pub(crate) fn file_stats(&self, file: &crate::file::Inner) -> Result<FileStats, Error> {
        let locked = self.wait_if_going(self.lock()?, file)?;
        let of = locked.files.open[file.id.0 as usize].as_ref().expect("it is reachable");
        Ok(locked.stats_of_file(file.id, of))
    }

    /// Stats of all files.
    pub(crate) fn all_file_stats(&self) -> Result<Vec<FileRow>, Error> {
        /// The lock is free in between.
        const AT_ONCE: usize = 32;
        let mut rows = Vec::new();
        let mut next = 0;
        loop {
            let locked = self.lock()?;
            let files = locked.files.open.iter().enumerate().skip(next);
            let files = files.filter_map(|(at, of)| Some((at, of.as_ref()?))).take(AT_ONCE);
            let before = rows.len();
            for (at, of) in files {
                let (device, inode) = of.identity.numbers();
                let path = of.path.to_string_lossy().into_owned();
                let stats = locked.stats_of_file(FileId(at as u32), of);
                rows.push(FileRow { path, inode, device, stats });
                next = at + 1;
            }
            if rows.len() == before {
                return Ok(rows);
            }
        }
    }
}

/// Bytes of a number of pages.
pub(crate) fn bytes(pages: u64) -> u64 {
    pages * PAGE_SIZE
}
