//! Regions: anonymous memory by page, its address spaces, and how it is freed. [live-3 2.2, 3]
//!
//! ```text
//!   region   an anonymous mapping, alone in an address space whose pages are charged to its group
//!   read     W ─▶ the gate ─▶ the bytes                                      as for a file, without the lock
//!            else: lock ─▶ start: the swap cache, or a slot is read ─▶ the gate opens ─▶ pin ─▶ unlock
//!   write    W is dirty ─▶ the gate ─▶ the bytes ─▶ the gate                 without the lock
//!            else: lock ─▶ start: dirty, and a frame ─▶ the gate ─▶ unlock ─▶ the bytes, and zeroes around them if the frame is new ─▶ the gate
//!   evict    W names a slot ─▶ the gate: no thread writes to the page ─▶ the slot is written ─▶ the frame is free
//!   drop     no access is left ─▶ pages and slots are freed in batches ─▶ the address space waits for the next region of its group
//! ```
//! Address spaces are reused, as the engine never reuses their numbers. A writer has the gate of its page until it has written the bytes. So a page that
//! is being written to is not swapped out. A write to a page whose slot is being written makes the page dirty again.
//!
//! If a slot can't be read, each access to its page fails until the page is written completely or discarded. A write of the complete page first discards
//! the old contents. Until the new bytes are written, the page counts as unreadable (`unreadable`), and not as zeroes.

mod resize; // the length of a region

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pageout_engine::{
    Access, AccessError, Advice, ConfigError, CpuId, HugeAdvice, MemPolicy, MemcgId, MmId, Nanos, ObjectId,
    PAGE_SIZE, Pfn, Step, TaskId, Touched, WordReader,
};

use super::locked::{Locked, Miss, Outcome};
use super::writes::{Begun, Owed, Writable};
use super::{LiveMachine, PageOwner, Place};
use crate::counts::{Counts, Sum};
use crate::error::Error;
use crate::length::Length;
use crate::local;
use crate::region::{Inner as Region, RegionAdvice};
use crate::ring::Read;
use crate::sync::{Instant, thread};

/// Pages that a call changes before it releases the lock for others.
const AT_ONCE: u64 = 64;
/// The same for pages that are read or written by the call.
const MOVED_AT_ONCE: u64 = 32;
/// A thread that reads a page without a guard has ended its read by then.
const LOOK_IS_LONG: Duration = Duration::from_millis(100);
/// How often a thread that frees a page checks whether a device has read it.
const LOOK_AT_DEVICE: Duration = Duration::from_micros(100);

/// All regions.
#[derive(Default)]
pub(crate) struct Regions {
    /// By number.
    open: Vec<Option<OpenRegion>>,
    /// Address spaces without a region.
    idle: Vec<Space>,
    /// Regions without handles, which the engine's own thread frees.
    dropped: Vec<usize>,
    /// Pages were discarded while writes of slots were in flight. Each is freed when its write has ended, and is in no batch.
    discarded_in_flight: bool,
    /// Time of the next check for a scan, and the region that was scanned last, by its place among those that exist.
    pub(super) scans_at: Nanos,
    pub(super) scanned_last: usize,
}

/// The machine's state of a region.
struct OpenRegion {
    serial: u64,
    name: PathBuf,
    space: Space,
    length: Arc<Length>,
    /// Bytes that count towards the limit of regions.
    reserved: u64,
    /// Accesses in progress.
    busy: u32,
    /// Its length is being changed: no access begins.
    is_resizing: bool,
    is_dropped: bool,
    /// A thread waits for the last access in progress, to drop it.
    is_ending: bool,
    /// Its user accesses pages by plain pointers.
    is_mapped: bool,
    /// Pages whose slots could not be read, and that were discarded before a write of the complete page.
    unreadable: BTreeSet<u64>,
    /// The group that it was made in.
    group: usize,
    counts: Counts,
}

/// An address space with one anonymous mapping.
#[derive(Clone, Copy)]
struct Space {
    /// The group that has its tasks.
    group: usize,
    /// The cgroup that its pages are charged to.
    memcg: MemcgId,
    /// The task that has the mapping. Hits are reported to the engine in its name.
    owner: TaskId,
    object: ObjectId,
}

/// The purpose of an access to a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Read,
    Write,
    /// All bytes of the page are written.
    Overwrite,
    /// Pages are requested in advance.
    Advice,
}

impl Regions {
    fn get(&self, region: usize) -> Option<&OpenRegion> {
        self.open.get(region)?.as_ref()
    }

    /// A region that has a handle or an access in progress.
    fn of(&self, region: usize) -> &OpenRegion {
        self.get(region).expect("it exists until its last access has ended")
    }

    fn of_mut(&mut self, region: usize) -> &mut OpenRegion {
        self.open[region].as_mut().expect("it exists until its last access has ended")
    }

    pub(super) fn set_mapped(&mut self, region: usize) {
        self.of_mut(region).is_mapped = true;
    }

    pub(super) fn is_mapped(&self, region: usize) -> bool {
        self.of(region).is_mapped
    }

    /// Bytes of all regions that count towards the limit.
    pub(super) fn reserved(&self) -> u64 {
        self.open.iter().flatten().map(|of| of.reserved).fold(0, u64::saturating_add)
    }

    /// Returns true if a call changes the length of a region.
    pub(crate) fn is_resizing(&self, region: usize) -> bool {
        self.get(region).is_some_and(|of| of.is_resizing)
    }

    /// Counts an access again that has stood aside. Returns false if the length of the region still changes, and `None` if the region has no handle.
    pub(super) fn access_again(&mut self, region: usize, serial: u64) -> Option<bool> {
        let of = self.open.get_mut(region)?.as_mut().filter(|of| of.serial == serial && !of.is_dropped)?;
        of.busy += u32::from(!of.is_resizing);
        Some(!of.is_resizing)
    }

    /// The task in whose name hits on a region are reported to the engine, and its object.
    pub(super) fn hitter_of(&self, region: usize) -> Option<(TaskId, ObjectId)> {
        self.get(region).map(|of| (of.space.owner, of.space.object))
    }

    /// The tasks that have a region each.
    pub(super) fn owners(&self) -> Vec<TaskId> {
        self.open.iter().flatten().map(|of| of.space.owner).collect()
    }

    pub(super) fn name_of(&self, region: usize) -> Option<PathBuf> {
        self.get(region).map(|of| of.name.clone())
    }

    pub(super) fn length_of(&self, region: usize) -> &Length {
        &self.of(region).length
    }

    /// Accesses to the regions of a group. `None` if it has no region.
    pub(super) fn accesses_of(&self, group: usize) -> Option<Sum> {
        let of_group = self.open.iter().flatten().filter(|of| of.group == group);
        of_group.map(|of| of.counts.sum()).reduce(|mut sum, more| {
            sum += more;
            sum
        })
    }

    /// Address spaces without a region that are charged to this group are charged to another.
    pub(super) fn take_idle_of(&mut self, memcg: MemcgId, other: MemcgId) -> Vec<usize> {
        let idle = self.idle.iter_mut().filter(|space| space.memcg == memcg);
        idle.map(|space| {
            space.memcg = other;
            space.group
        })
        .collect()
    }
}

/// A new region.
pub(crate) struct Made {
    pub(crate) number: usize,
    pub(crate) serial: u64,
    pub(crate) length: Arc<Length>,
}

fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_SIZE).max(1)
}

impl Locked<'_> {
    /// The swap file's device, if there is one.
    pub(super) fn swap_device(&self) -> Option<usize> {
        self.transfers.swap.as_ref().map(|swap| swap.device)
    }

    /// The words of a region, for a thread that reads them.
    pub(crate) fn words_of_region(&mut self, region: usize) -> Option<WordReader> {
        let (owner, object) = self.regions.hitter_of(region)?;
        Some(self.engine.words_of(owner, object))
    }

    /// Where accesses to a region are counted.
    pub(crate) fn counts_of_region(&mut self, region: usize) -> Option<&mut Counts> {
        self.regions.open.get_mut(region)?.as_mut().map(|of| &mut of.counts)
    }

    /// The address space that a region is in.
    pub(crate) fn mm_of_region(&self, region: usize) -> Option<MmId> {
        let space = self.regions.get(region)?.space;
        Some(self.files.groups[space.group].mm)
    }

    /// The mapped region in an address space, if it has a handle.
    pub(super) fn mapped_region_of(&self, mm: MmId) -> Option<usize> {
        let is_mapped = |of: &OpenRegion| of.is_mapped && !of.is_dropped && !of.is_resizing;
        let of = |of: &OpenRegion| is_mapped(of) && self.files.groups[of.space.group].mm == mm;
        self.regions.open.iter().position(|open| open.as_ref().is_some_and(of))
    }

    /// An address space for a region of this many pages.
    fn take_space(&mut self, memcg: MemcgId, pages: u64) -> Result<Space, Error> {
        let known = self.regions.idle.iter().position(|space| space.memcg == memcg);
        // One of a removed group.
        let known = known.or_else(|| self.regions.idle.iter().position(|space| !self.is_named(space.memcg)));
        let space = match known {
            Some(at) => {
                let space = Space { memcg, ..self.regions.idle.swap_remove(at) };
                self.move_group(space.group, memcg);
                space
            }
            None => {
                let group = self.add_group(memcg);
                let mm = self.files.groups[group].mm;
                // A new address space does not know the `cpuset.mems` of its group.
                self.engine.set_mempolicy(mm, MemPolicy::Default)?;
                let owner = self.engine.task_create(mm, CpuId(0));
                let object = self.engine.map_anon(owner, 1, Advice::Normal)?;
                // Guards and words are by page.
                self.engine.madvise_hugepage(owner, object, HugeAdvice::NoHugepage)?;
                Space { group, memcg, owner, object }
            }
        };
        match self.engine.resize_anon(space.owner, space.object, pages) {
            Ok(()) => Ok(space),
            Err(error) => {
                self.regions.idle.push(space);
                Err(error.into())
            }
        }
    }

    /// Prepares an access to a page of a region: a task, the object, and the count of accesses.
    pub(super) fn begin_region_access(
        &mut self,
        region: usize,
        page: u64,
        purpose: Purpose,
    ) -> Result<Miss, Error> {
        let of = self.regions.of(region);
        let (space, serial) = (of.space, of.serial);
        let is_readable = matches!(purpose, Purpose::Overwrite | Purpose::Advice);
        if !is_readable && of.unreadable.contains(&page) {
            return Err(self.region_failure(region, page, &AccessError::Io));
        }
        let hired = self.hire(space.group);
        let object = self.engine.lend((space.owner, space.object), hired.task)?;
        let access = Access::new(object, page, matches!(purpose, Purpose::Write | Purpose::Overwrite));
        let of = self.regions.of_mut(region);
        let is_of_resizer = purpose == Purpose::Write;
        debug_assert!(
            is_of_resizer || !of.is_resizing || of.busy > 0,
            "an access begins while the length changes"
        );
        of.busy += 1;
        of.counts.misses += u64::from(purpose != Purpose::Advice);
        let reads_before = self.transfers.device_reads;
        Ok(Miss::new((PageOwner::Region(region), serial), hired, access, reads_before))
    }

    /// Notes that an access to a region has ended.
    pub(super) fn region_access_ends(&mut self, region: usize) {
        let of = self.regions.of_mut(region);
        of.busy -= 1;
        if of.busy > 0 {
            return;
        }
        if of.is_dropped {
            self.regions.dropped.push(region);
            self.wake_service();
        } else if of.is_resizing || of.is_ending {
            self.machine().wake_idle();
        }
    }

    /// The error for the caller of a failed access to a region.
    pub(super) fn region_failure(&self, region: usize, page: u64, error: &AccessError) -> Error {
        let path = self.path_of(PageOwner::Region(region));
        match error {
            AccessError::BeyondObject { .. } => {
                let bytes = self.regions.length_of(region).bytes();
                Error::BeyondEnd { path, end: (page + 1) * PAGE_SIZE, bytes }
            }
            _ => {
                let errno = self.transfers.swap.as_ref().map_or(libc::EIO, |swap| swap.read_error);
                Error::SwapIo { region: path, page, source: io::Error::from_raw_os_error(errno) }
            }
        }
    }

    /// Frees pages of a region, up to the first one that a thread is reading, which is returned. Pages whose slots are being written follow when the writes have
    /// ended.
    fn discard_pages(
        &mut self,
        (owner, object): (TaskId, ObjectId),
        pages: Range<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let is_written = self.swap_device().is_some_and(|device| self.transfers.devices[device].is_busy());
        self.regions.discarded_in_flight |= is_written;
        let arena = &self.machine().arena;
        if !arena.tokens.is_used() {
            return self.engine.madvise_dontneed(owner, object, pages);
        }
        let frames = self.engine.anon_frames(owner, object, pages.clone())?;
        arena.tokens.set_discarding(true);
        let held = self.engine.madvise_dontneed(owner, object, pages.clone());
        arena.tokens.set_discarding(false);
        let end = held.clone()?.unwrap_or(pages.end);
        let discarded = frames.into_iter().filter(|&(page, _)| page < end).map(|(_, pfn)| pfn);
        self.detach(arena, discarded);
        held
    }

    /// Returns the first of these pages of a region that may be in use, their end, or where the caller goes on after it has released the lock. Pages before it are
    /// empty.
    fn skip_unused(&mut self, region: usize, pages: Range<u64>) -> Result<u64, Error> {
        /// It looks at one in 512.
        const AT_ONCE: u64 = 1 << 24;
        let Space { owner, object, .. } = self.regions.of(region).space;
        let end = pages.end.min(pages.start + AT_ONCE);
        Ok(self.engine.skip_empty(owner, object, pages.start..end)?)
    }

    /// A slot was written. A page that was discarded meanwhile may have gone to a batch, where nothing would look for it.
    pub(super) fn slot_was_written(&mut self, device: usize) {
        if self.regions.discarded_in_flight {
            self.engine.drain_batches();
            self.regions.discarded_in_flight = self.transfers.devices[device].is_busy();
        }
    }

    /// Takes the next region without handles, to be freed.
    pub(super) fn next_dropped(&mut self) -> Option<usize> {
        self.regions.dropped.pop()
    }
}

impl LiveMachine {
    /// Creates a region of this many bytes, charged to this group.
    pub(crate) fn make_region(
        &self,
        group: Place,
        bytes: u64,
        frames: u64,
        name: PathBuf,
    ) -> Result<Made, Error> {
        let mut locked = self.drain(self.lock()?)?;
        locked = self.reserve_for_region(locked, bytes, frames)?;
        locked.check_group(group)?;
        let memcg = locked.files.groups[group.number].memcg;
        let number = locked.regions.open.iter().position(Option::is_none);
        let number = number.unwrap_or(locked.regions.open.len());
        if number >= Read::HANDLES_MAX as usize {
            return Err(Error::TooManyHandles { most: Read::HANDLES_MAX });
        }
        let space = locked.take_space(memcg, pages_of(bytes))?;
        if number == locked.regions.open.len() {
            locked.regions.open.push(None);
        }
        locked.files.serials += 1;
        let (serial, length) = (locked.files.serials, Arc::new(Length::new(bytes)));
        locked.regions.open[number] = Some(OpenRegion {
            serial,
            name,
            space,
            length: Arc::clone(&length),
            reserved: bytes,
            busy: 0,
            is_resizing: false,
            is_dropped: false,
            is_ending: false,
            is_mapped: false,
            unreadable: BTreeSet::new(),
            group: group.number,
            counts: Counts::default(),
        });
        // The engine's thread scans regions of slow memory.
        locked.wake_service();
        Ok(Made { number, serial, length })
    }

    /// Checks that regions can have this many more bytes.
    fn reserve_for_region<'a>(
        &'a self,
        mut locked: Locked<'a>,
        more: u64,
        frames: u64,
    ) -> Result<Locked<'a>, Error> {
        locked = self.make_room_for(locked, more)?;
        let bytes = locked.regions.reserved().saturating_add(more);
        // The budget may have changed since the caller looked.
        let most = frames.min(self.budget.frames()) * PAGE_SIZE;
        if locked.transfers.swap.is_none() && bytes > most {
            return Err(Error::NoSwap { bytes, most });
        }
        Ok(locked)
    }

    /// Waits until no call changes the length of a region.
    pub(super) fn await_resized<'a>(
        &'a self,
        locked: Locked<'a>,
        region: &Region,
    ) -> Result<Locked<'a>, Error> {
        let number = region.number;
        self.wait_while(locked, |inner| inner.regions.of(number).is_resizing)
    }

    /// Prepares a write to a page of a region: returns its frame for the caller alone, or the held frame that the caller has to wait for.
    pub(crate) fn begin_region_write(
        &self,
        region: &Region,
        page: u64,
        purpose: Purpose,
    ) -> Result<Begun<'_>, Error> {
        let mut locked = self.lock_for_page()?;
        local::give_back(self, &locked);
        locked = self.await_resized(locked, region)?;
        let begun;
        (locked, begun) = self.write_to_region(locked, region.number, page, purpose)?;
        drop(self.read(locked, 0)?);
        begun
    }

    fn write_to_region<'a>(
        &'a self,
        mut locked: Locked<'a>,
        region: usize,
        page: u64,
        purpose: Purpose,
    ) -> Result<(Locked<'a>, Result<Begun<'a>, Error>), Error> {
        locked.transfers.misses += 1;
        let mut miss = match locked.begin_region_access(region, page, purpose) {
            Ok(miss) => miss,
            Err(error) => return Ok((locked, Err(error))),
        };
        loop {
            locked.start(&mut miss);
            let (task, step) = (miss.hired.task, std::mem::replace(&mut miss.step, Step::Again));
            let served;
            (locked, served) = self.see_through(locked, task, step)?;
            if let Some(crowded) = locked.crowded(&mut miss, &served) {
                locked = self.await_room_beside(locked, &miss, crowded)?;
                continue;
            }
            let Outcome::Found(found) = locked.frame_of(miss.owner(), page, served) else { continue };
            let mut begun = match found {
                Ok(pfn) => self.take_frame_of_region(&mut locked, pfn.expect("what is written has a frame")),
                Err(error) => {
                    locked.ended(&miss);
                    return Ok((locked, Err(error)));
                }
            };
            if purpose == Purpose::Overwrite && matches!(begun, Begun::Writable(_)) {
                // The writer has the gate, so no reader sees the page before its bytes are written.
                locked.regions.of_mut(region).unreadable.remove(&page);
            }
            let step = locked.engine.pay(task, miss.access);
            locked.settle();
            match (&mut begun, step) {
                (_, Step::Done(_)) => locked.ended(&miss),
                (Begun::Writable(writable), step) => {
                    miss.step = step;
                    writable.owed = Some(Owed::new(self, miss));
                }
                (Begun::Held(_), step) => {
                    (locked, _) = self.see_through(locked, task, step)?;
                    locked.ended(&miss);
                }
            }
            return Ok((locked, Ok(begun)));
        }
    }

    /// The frame of a dirty page, for the caller alone, unless it is held. A new frame has no contents until the caller fills it.
    fn take_frame_of_region(&self, locked: &mut Locked<'_>, pfn: Pfn) -> Begun<'_> {
        if locked.take_zeroes(pfn) {
            return Begun::Writable(Writable { writing: self.arena.fill(pfn), is_new: true, owed: None });
        }
        match self.arena.begin_write(pfn) {
            Ok(writing) => Begun::Writable(Writable { writing, is_new: false, owed: None }),
            Err(_) => Begun::Held(pfn),
        }
    }

    /// Frees the slot of a page that can't be read, before a write of the complete page. Until that write, the page counts as unreadable.
    pub(crate) fn give_up_slot(&self, region: &Region, page: u64) -> Result<(), Error> {
        let mut locked = self.await_resized(self.drain(self.lock()?)?, region)?;
        let Space { owner, object, .. } = locked.regions.of(region.number).space;
        if !locked.engine.anon_frames(owner, object, page..page + 1)?.is_empty() {
            // The page has been read meanwhile.
            return Ok(());
        }
        locked.regions.of_mut(region.number).unreadable.insert(page);
        let held = locked.discard_pages((owner, object), page..page + 1)?;
        locked.settle();
        debug_assert_eq!(held, None, "no thread reads a page that is not in memory");
        Ok(())
    }

    /// Requests reads of pages of a region, and waits for none of them.
    pub(crate) fn read_region_ahead(&self, region: &Region, pages: Range<u64>) -> Result<(), Error> {
        let mut page = pages.start;
        loop {
            let mut locked = self.await_resized(self.lock_for_page()?, region)?;
            let end = pages.end.min(region.pages());
            if page >= end {
                return Ok(());
            }
            let used = locked.skip_unused(region.number, page..end)?;
            if used > page {
                page = used;
                continue;
            }
            let miss = locked.begin_region_access(region.number, page, Purpose::Advice)?;
            let (task, access) = (miss.hired.task, miss.access);
            let next = end.min(page + MOVED_AT_ONCE);
            let step = match locked.engine.madvise_willneed(task, access.object, page..next) {
                Ok(step) => step,
                Err(error) => {
                    locked.ended(&miss);
                    return Err(error.into());
                }
            };
            (locked, _) = self.see_through(locked, task, step)?;
            let step = locked.engine.pay(task, access);
            (locked, _) = self.see_through(locked, task, step)?;
            locked.ended(&miss);
            drop(self.read(locked, 0)?);
            page = next;
        }
    }

    /// Applies advice to bytes of a region, up to its end.
    pub(crate) fn advise_region(
        &self,
        region: &Region,
        advice: RegionAdvice,
        bytes: &Range<u64>,
    ) -> Result<(), Error> {
        let first = advice.pages(bytes, region.bytes()).start;
        let mut page = first;
        let mut wait = self.guard_wait();
        loop {
            let mut locked = self.await_resized(self.drain(self.lock()?)?, region)?;
            // The length may have changed since the last hold of the lock.
            if page == first {
                region.check(bytes)?;
            }
            let end = advice.pages(bytes, region.bytes()).end;
            if page >= end {
                return Ok(());
            }
            let Space { owner, object, .. } = locked.regions.of(region.number).space;
            let is_mapped = locked.regions.is_mapped(region.number);
            let used = locked.skip_unused(region.number, page..end)?;
            if used > page && !is_mapped {
                if advice == RegionAdvice::DontNeed {
                    locked.regions.of_mut(region.number).unreadable.retain(|at| !(page..used).contains(at));
                }
                page = used;
                continue;
            }
            let mut next = end.min(page + AT_ONCE);
            let mut held = None;
            match advice {
                RegionAdvice::Cold => {
                    self.forget_uses(&locked, region.number, page..next);
                    (page..next).try_for_each(|page| locked.engine.madvise_cold(owner, object, page))?;
                }
                RegionAdvice::Free => {
                    self.forget_uses(&locked, region.number, page..next);
                    for page in page..next {
                        self.free_lazily(&mut locked, (owner, object), page)?;
                    }
                }
                RegionAdvice::PageOut => {
                    next = next.min(page + MOVED_AT_ONCE);
                    locked.engine.madvise_pageout(owner, object, page..next)?;
                }
                RegionAdvice::DontNeed => {
                    let is_at = locked.discard_pages((owner, object), page..next)?;
                    next = is_at.unwrap_or(next);
                    self.find_lost(&locked, region.number, page..next);
                    locked.regions.of_mut(region.number).unreadable.retain(|at| !(page..next).contains(at));
                    held = is_at.map(|at| (at, self.frame_of_region(&mut locked, (owner, object), at)));
                }
            }
            locked.settle();
            locked = self.await_room(locked)?;
            drop(self.read(locked, 0)?);
            match held {
                // A device reads it, and ends.
                Some((_, Some(pfn))) if is_mapped => self.await_gate(pfn)?,
                Some((at, Some(pfn))) => {
                    let is_free = || self.arena.is_free_to_write(pfn);
                    self.await_guard(&mut wait, PageOwner::Region(region.number), at, pfn, is_free)?;
                }
                Some((_, None)) => thread::yield_now(),
                None => {}
            }
            page = next;
        }
    }

    /// Lets reclaim drop the contents of a page unless it is written again. Skips a page that is in use: the user may be writing to it.
    fn free_lazily(
        &self,
        locked: &mut Locked<'_>,
        (owner, object): (TaskId, ObjectId),
        page: u64,
    ) -> Result<(), Error> {
        let Touched::Frame(pfn) = locked.engine.touched(owner, Access::new(object, page, false)) else {
            return Ok(());
        };
        // A later writer finds the page clean, and calls the engine.
        if self.arena.close(pfn) {
            let advised = locked.engine.madvise_free(owner, object, page);
            self.arena.gate(pfn).open();
            advised?;
        }
        Ok(())
    }

    /// The frame of a page of a region that is in memory.
    fn frame_of_region(
        &self,
        locked: &mut Locked<'_>,
        (owner, object): (TaskId, ObjectId),
        page: u64,
    ) -> Option<Pfn> {
        locked.engine.anon_frames(owner, object, page..page + 1).ok()?.first().map(|&(_, pfn)| pfn)
    }

    /// Frees pages of a region without accesses, and their slots, in batches. Returns the number of pages that stay because their guard was leaked.
    fn discard(&self, region: usize, pages: Range<u64>) -> Result<u64, Error> {
        /// A compressed page takes one or two microseconds.
        const AT_ONCE: u64 = 64;
        let (mut page, mut leaked, mut held_since) = (pages.start, 0, None);
        let is_mapped = self.lock()?.regions.is_mapped(region);
        while page < pages.end {
            let mut locked = self.drain(self.lock()?)?;
            let Space { owner, object, .. } = locked.regions.of(region).space;
            let used = locked.skip_unused(region, page..pages.end)?;
            if used > page {
                page = used;
                continue;
            }
            let next = pages.end.min(page + AT_ONCE);
            let held = locked.discard_pages((owner, object), page..next)?;
            locked.settle();
            drop(locked);
            match held {
                None => (page, held_since) = (next, None),
                // A device that reads a page ends, and there are no guards that could be leaked.
                Some(at) if is_mapped => {
                    page = at;
                    drop(self.read(self.lock()?, 0)?);
                    thread::sleep(LOOK_AT_DEVICE);
                }
                // A thread with an outdated word soon ends its read.
                Some(at) if held_since.get_or_insert_with(Instant::now).elapsed() < LOOK_IS_LONG => {
                    page = at;
                    thread::yield_now();
                }
                Some(at) => (page, leaked, held_since) = (at + 1, leaked + 1, None),
            }
        }
        Ok(leaked)
    }

    /// Frees the page tables of a region that lead only to pages from `kept` on, which are empty, in batches. No access to it may be in progress.
    fn free_page_tables(&self, region: usize, kept: u64) -> Result<(), Error> {
        loop {
            let mut locked = self.lock()?;
            let Space { owner, object, .. } = locked.regions.of(region).space;
            let are_more = locked.engine.free_page_tables(owner, object, kept, AT_ONCE as usize)?;
            locked.settle();
            if !are_more {
                return Ok(());
            }
        }
    }

    /// Drops the last handle of a region. Its pages and slots are free when this returns, or when the last access in progress has ended. Accesses to a mapped
    /// region that may be in progress are the cache's own, and this waits for them.
    pub(crate) fn drop_region(&self, region: usize) -> Result<(), Error> {
        // All hits on it are reported to the engine before it is freed.
        let mut locked = self.drain(self.lock()?)?;
        if locked.regions.is_mapped(region) {
            locked.regions.of_mut(region).is_ending = true;
            locked = self.wait_while(locked, |inner| inner.regions.of(region).busy > 0)?;
        }
        let of = locked.regions.of_mut(region);
        of.is_dropped = true;
        if of.busy > 0 {
            return Ok(());
        }
        drop(locked);
        self.free_region(region)
    }

    /// Frees a region without handles and accesses.
    pub(super) fn free_region(&self, region: usize) -> Result<(), Error> {
        let pages = pages_of(self.lock()?.regions.of(region).length.bytes());
        if self.discard(region, 0..pages)? > 0 {
            // A page under a leaked guard is unchanged, and keeps its place in the region.
            return Ok(());
        }
        self.free_page_tables(region, 0)?;
        let mut locked = self.drain(self.lock()?)?;
        let Some(of) = locked.regions.open[region].take() else { return Ok(()) };
        locked.files.groups[of.group].of_closed += of.counts.sum();
        drop(of.counts);
        locked.files.closed += 1;
        local::give_back(self, &locked);
        if of.is_mapped {
            let mm = locked.files.groups[of.space.group].mm;
            locked.engine.sample_accessed_bits(mm, false);
            self.arena.tokens.remove(mm);
        }
        locked.engine.resize_anon(of.space.owner, of.space.object, 1)?;
        locked.regions.idle.push(of.space);
        Ok(())
    }
}
