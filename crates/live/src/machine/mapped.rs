//! Mapped regions: faults of their users, and tokens of their pages. [live-3 2.3]
//!
//! ```text
//!   fault    lock ─▶ start: the swap cache, or a slot is read into a staging page ─▶ the gate, for the handler alone ─▶ unlock
//!            ─▶ the user gets the page, write-protected unless it is dirty ─▶ the gate opens
//!   store    to a clean page: a fault ─▶ start: dirty ─▶ the gate ─▶ unlock ─▶ stores are permitted ─▶ the gate opens
//!   evict    the gate closes ─▶ stores are faults ─▶ the page is compressed, or its slot is written ─▶ the frame is free ─▶ a hole in the memfd
//!   write    while a device reads a page, its gate has a pin: a store waits, and mostly finds the page missing then
//!   keep     the engine changes its mind, or a write fails: the next store is a fault, and makes the page dirty
//! ```
//! The user's loads and stores are not seen. So a store is permitted only while the engine knows that the page is dirty. It is permitted by a handler that has
//! the page's gate, and prohibited whenever the engine closes that. Between the two the engine can't call the page clean. A load during eviction reads what
//! is being written.
//!
//! A page without contents gets a frame for a load, too: the system would give the memfd a page of its own.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pageout_engine::{AccessedBits, MmId, Pfn, Step};

use super::LiveMachine;
use super::inner::Inner;
use super::locked::{Locked, Outcome};
use super::regions::Purpose;
use super::writes::Owed;
use crate::arena::{Arena, Writing};
use crate::error::Error;
use crate::map::{Done, Fault, MapEvent, Mapping, Pagemap};
use crate::sync::thread;

/// The engine's questions about pages that users have touched.
pub(crate) struct Samples(pub(crate) Arc<Arena>);

impl AccessedBits for Samples {
    fn gather(&mut self, mm: MmId, pages: Range<u64>, accessed: &mut Vec<u64>) {
        let Some(mapping) = self.0.tokens.mapping(mm) else { return };
        let existing = pages.start..pages.end.min(mapping.pages());
        let pagemap: &Pagemap = self.0.tokens.pagemap();
        // What was permitted when the region was mapped may be prohibited by now: then its pages count as unused.
        let _ = pagemap.sample(&mapping, existing, accessed);
        self.0.tokens.record.note(|| MapEvent::Sample { pages, used: accessed.clone() });
    }
}

/// The outcome of a fault under the lock.
enum Begun<'a> {
    /// The page's frame, for the caller alone. `may_write`: the engine knows that the page is dirty.
    Taken { writing: Writing<'a>, may_write: bool, owed: Option<Owed<'a>> },
    /// Another handler or a device has the frame.
    Held(Pfn),
    /// The page has no contents, or lost them meanwhile.
    Again,
}

impl Locked<'_> {
    /// Returns true if a page of a region was never written, or was discarded.
    fn is_without_contents(&mut self, region: usize, page: u64) -> Result<bool, Error> {
        let (owner, object) = self.regions.hitter_of(region).expect("it has a handle");
        Ok(self.engine.is_anon_empty(owner, object, page)?)
    }
}

impl Inner {
    /// The operation fills a new frame. If its page is one of a mapped region, the frame is a token from now on.
    pub(super) fn note_filled(&mut self, arena: &Arena, pfn: Pfn, is_zeroes: bool) {
        if !arena.tokens.is_used() {
            return;
        }
        let Some((mm, page)) = self.engine.anon_page_of(pfn) else { return };
        if arena.tokens.mapping(mm).is_some() && arena.tokens.make(pfn, (mm, page), is_zeroes) {
            arena.release_place(pfn);
        }
    }

    /// A frame is free. If it was a token, its page leaves the memfd before the lock is free.
    pub(super) fn note_freed(&mut self, arena: &Arena, pfn: Pfn) {
        if arena.tokens.is_token(pfn) {
            self.effects.holes.extend(arena.tokens.end(pfn));
        }
    }

    /// Pages of a mapped region were discarded: their frames have stopped being tokens, even where a write of one is still in flight.
    pub(super) fn detach(&mut self, arena: &Arena, frames: impl Iterator<Item = Pfn>) {
        self.effects.holes.extend(frames.filter_map(|pfn| arena.tokens.detach(pfn)));
    }

    /// Frees the pages of tokens that have ended.
    pub(super) fn make_holes(&mut self, arena: &Arena) {
        let holes = &mut self.effects.holes;
        if holes.is_empty() {
            return;
        }
        holes.sort_unstable_by_key(|&(mm, page)| (mm.0, page));
        for run in holes.chunk_by(|&(mm, page), &(other, next)| mm == other && page + 1 == next) {
            let (mm, first) = run[0];
            let mapping = arena.tokens.mapping(mm).expect("a mapping stays as long as it has tokens");
            let punched = mapping.punch(first..first + run.len() as u64);
            // The memfd would have pages that are not counted, and show them instead of later contents.
            punched.expect("a hole in a memfd needs nothing that the system can be short of");
        }
        holes.clear();
    }
}

impl LiveMachine {
    /// Makes a region that was just made a mapped one.
    pub(crate) fn map_pages(&self, region: usize, mapping: &Arc<Mapping>) -> Result<(), Error> {
        let mut locked = self.lock()?;
        let mm = locked.mm_of_region(region).expect("it was just made");
        if mm.0 >= crate::map::SPACES_MAX {
            return Err(Error::TooManyHandles { most: crate::map::SPACES_MAX });
        }
        self.arena.tokens.add(mm, mapping);
        locked.engine.sample_accessed_bits(mm, true);
        locked.regions.set_mapped(region);
        Ok(())
    }

    /// Serves a fault on a page of a mapped region.
    ///
    /// # Errors
    /// Those of an access to a region; [`Error::Io`] if the system does not accept the page.
    pub(crate) fn serve_fault(
        &self,
        (region, name): (usize, &Path),
        mapping: &Mapping,
        fault: Fault,
    ) -> Result<(), Error> {
        let page = mapping.page_at(fault.address);
        loop {
            let mut locked = self.use_touched(self.lock_for_page()?)?;
            let begun;
            (locked, begun) = self.begin_fault(locked, region, page, fault.is_write)?;
            drop(self.read(locked, 0)?);
            match begun {
                Begun::Taken { writing, may_write, owed } => {
                    let mapped = self.arena.map_page(&writing, mapping, fault, may_write);
                    drop(writing);
                    owed.map_or(Ok(()), Owed::pay)?;
                    let io =
                        |source| Error::Io { op: "mapping", path: name.to_owned(), page: Some(page), source };
                    if mapped.map_err(io)? == Done::Gone {
                        mapping.note_gone();
                    }
                    return Ok(());
                }
                Begun::Held(pfn) => self.await_gate(pfn)?,
                Begun::Again => {}
            }
        }
    }

    /// A fault can't be served: its page is lost, unless another handler has brought it in meanwhile.
    pub(crate) fn lose_page(&self, region: usize, mapping: &Mapping, page: u64) {
        // As long as this has the lock, the page gets no frame. Without the engine, no page gets one.
        let Ok(mut locked) = self.lock() else { return mapping.lose(page) };
        let is_missing = locked.regions.hitter_of(region).is_none_or(|(owner, object)| {
            locked.engine.anon_frames(owner, object, page..page + 1).is_ok_and(|frames| frames.is_empty())
        });
        if is_missing { mapping.lose(page) } else { mapping.retry(page) }
    }

    /// Makes the access of a fault, and takes the gate of the page's frame.
    fn begin_fault<'a>(
        &'a self,
        mut locked: Locked<'a>,
        region: usize,
        page: u64,
        is_write: bool,
    ) -> Result<(Locked<'a>, Begun<'a>), Error> {
        locked.transfers.misses += 1;
        let may_write = is_write || locked.is_without_contents(region, page)?;
        let purpose = if may_write { Purpose::Write } else { Purpose::Read };
        let mut miss = locked.begin_region_access(region, page, purpose)?;
        self.arena.tokens.record.note(|| MapEvent::Access { page, write: may_write });
        let pfn = loop {
            locked.start(&mut miss);
            let (task, step) = (miss.hired.task, std::mem::replace(&mut miss.step, Step::Again));
            let served;
            (locked, served) = self.see_through(locked, task, step)?;
            if let Some(crowded) = locked.crowded(&mut miss, &served) {
                locked = self.await_room_beside(locked, &miss, crowded)?;
                continue;
            }
            match locked.frame_of(miss.owner(), page, served) {
                Outcome::Found(Ok(Some(pfn))) => break pfn,
                Outcome::Found(Ok(None)) => {
                    locked.ended(&miss);
                    return Ok((locked, Begun::Again));
                }
                Outcome::Found(Err(error)) => {
                    locked.ended(&miss);
                    return Err(error);
                }
                Outcome::Taken(_) | Outcome::Again => {}
            }
        };
        let taken = match locked.take_zeroes(pfn) {
            true => Some(self.arena.fill(pfn)),
            false => self.arena.begin_write(pfn).ok(),
        };
        let step = locked.engine.pay(miss.hired.task, miss.access);
        locked.settle();
        let begun = match (taken, step) {
            (Some(writing), Step::Done(_)) => {
                locked.ended(&miss);
                Begun::Taken { writing, may_write, owed: None }
            }
            (Some(writing), step) => {
                miss.step = step;
                Begun::Taken { writing, may_write, owed: Some(Owed::new(self, miss)) }
            }
            (None, step) => {
                let task = miss.hired.task;
                (locked, _) = self.see_through(locked, task, step)?;
                locked.ended(&miss);
                Begun::Held(pfn)
            }
        };
        Ok((locked, begun))
    }

    /// Notifies the engine of pages that were used while they were on their way out, as an access would: they are mapped again.
    pub(super) fn use_touched<'a>(&'a self, mut locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        for (mm, page) in self.arena.tokens.take_touched() {
            let Some(region) = locked.mapped_region_of(mm) else { continue };
            let (owner, object) = locked.regions.hitter_of(region).expect("it exists");
            let Some(&(_, pfn)) = locked.engine.anon_frames(owner, object, page..page + 1)?.first() else {
                continue;
            };
            // Its use is noted from here on.
            self.arena.tokens.stays(pfn);
            let mut miss = locked.begin_region_access(region, page, Purpose::Advice)?;
            self.arena.tokens.record.note(|| MapEvent::Access { page, write: false });
            locked.start(&mut miss);
            let (task, step) = (miss.hired.task, std::mem::replace(&mut miss.step, Step::Again));
            (locked, _) = self.see_through(locked, task, step)?;
            locked.ended(&miss);
        }
        Ok(locked)
    }

    /// The same for a caller without the lock.
    pub(crate) fn report_touched(&self) -> Result<(), Error> {
        let locked = self.use_touched(self.lock()?)?;
        drop(self.read(locked, 0)?);
        Ok(())
    }

    /// Earlier uses of pages count no more.
    pub(super) fn forget_uses(&self, locked: &Locked<'_>, region: usize, pages: Range<u64>) {
        let mapping = locked.mm_of_region(region).filter(|_| locked.regions.is_mapped(region));
        if let Some(mapping) = mapping.and_then(|mm| self.arena.tokens.mapping(mm)) {
            // It is advice. A page whose entry stays counts as used.
            let _ = mapping.unmap_entries(pages);
        }
    }

    /// Lost pages were discarded: accesses to them are faults again.
    pub(super) fn find_lost(&self, locked: &Locked<'_>, region: usize, pages: Range<u64>) {
        let mapping = locked.mm_of_region(region).filter(|_| locked.regions.is_mapped(region));
        if let Some(mapping) = mapping.and_then(|mm| self.arena.tokens.mapping(mm)) {
            mapping.find_again(pages);
        }
    }

    /// The frame of a page that is in memory.
    #[cfg(test)]
    pub(crate) fn frame_of_page(&self, region: usize, page: u64) -> Option<Pfn> {
        let mut locked = self.lock().ok()?;
        let (owner, object) = locked.regions.hitter_of(region)?;
        let frames = locked.engine.anon_frames(owner, object, page..page + 1).ok()?;
        frames.first().map(|&(_, pfn)| pfn)
    }

    /// Waits until a frame has no pin and no writer: a device or another handler, which end soon.
    pub(super) fn await_gate(&self, pfn: Pfn) -> Result<(), Error> {
        const LONGEST: Duration = Duration::from_millis(1);
        let (is_free, mut span) = (|| self.arena.is_free_to_write(pfn), Duration::from_micros(20));
        self.await_copy(is_free);
        while !is_free() {
            if self.is_poisoned() {
                return Err(Error::Poisoned);
            }
            thread::sleep(span);
            span = (2 * span).min(LONGEST);
        }
        Ok(())
    }
}
