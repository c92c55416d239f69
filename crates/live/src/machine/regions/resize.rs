//! Changes of a region's length: bytes behind a new end are discarded, and accesses wait meanwhile.

use std::ops::Range;

use pageout_engine::{ObjectId, PAGE_SIZE, TaskId};

use super::{AT_ONCE, LiveMachine, Locked, Owed, PageOwner, Purpose, Region, Space, Writable, pages_of};
use crate::error::Error;
use crate::machine::writes::Begun;

impl LiveMachine {
    /// Changes the length of a region. Bytes behind a new end are discarded, and new bytes are zeroes.
    ///
    /// # Errors
    /// [`Error::Pinned`] if a guard holds the page of the new end, or one behind it; [`Error::NoSwap`], [`Error::TooManyFiles`]; the errors of a write
    /// to the page of the end. The length is then unchanged.
    pub(crate) fn set_region_len(&self, region: &Region, bytes: u64, frames: u64) -> Result<(), Error> {
        let mut locked = self.await_resized(self.drain(self.lock()?)?, region)?;
        let before = loop {
            let before = locked.regions.of(region.number).reserved;
            if bytes > before {
                locked = self.reserve_for_region(locked, bytes - before, frames)?;
            }
            // Another thread may have had the lock, and changed the length.
            let of = locked.regions.of(region.number);
            if !of.is_resizing && of.reserved == before {
                break before;
            }
            locked = self.await_resized(locked, region)?;
        };
        let of = locked.regions.of_mut(region.number);
        of.is_resizing = true;
        // Calls that check the limit meanwhile count the longer region.
        of.reserved = before.max(bytes);
        let outcome = self.resize_alone(locked, region, bytes);
        let mut locked = self.lock()?;
        let of = locked.regions.of_mut(region.number);
        match outcome {
            Ok(()) => of.reserved = bytes,
            Err(_) => {
                of.length.widen();
                of.reserved = before;
            }
        }
        of.is_resizing = false;
        self.wake_idle();
        outcome
    }

    /// The same while no other call begins an access or changes the length.
    fn resize_alone<'a>(&'a self, mut locked: Locked<'a>, region: &Region, bytes: u64) -> Result<(), Error> {
        let number = region.number;
        let (pages, before) = (pages_of(bytes), region.pages().max(1));
        let Space { owner, object, .. } = locked.regions.of(number).space;
        if bytes < region.bytes() {
            region.length.narrow(bytes);
            drop(locked);
            self.await_unheld(region, (owner, object), bytes / PAGE_SIZE..before)?;
            if !bytes.is_multiple_of(PAGE_SIZE) {
                self.zero_rest(region, bytes)?;
            }
            locked = self.lock()?;
        }
        locked = self.wait_while(locked, |inner| inner.regions.of(number).busy > 0)?;
        let kept = bytes.div_ceil(PAGE_SIZE);
        if kept < before {
            drop(locked);
            self.discard(number, kept..before)?;
            self.free_page_tables(number, kept)?;
            locked = self.drain(self.lock()?)?;
        }
        locked.engine.resize_anon(owner, object, pages)?;
        let of = locked.regions.of_mut(number);
        of.unreadable.retain(|&page| page < kept);
        of.length.settle(bytes);
        Ok(())
    }

    /// Waits until no guard holds any of these pages, which new accesses can't reach.
    fn await_unheld(
        &self,
        region: &Region,
        (owner, object): (TaskId, ObjectId),
        pages: Range<u64>,
    ) -> Result<(), Error> {
        let mut wait = self.guard_wait();
        let mut page = pages.start;
        while page < pages.end {
            let mut locked = self.drain(self.lock()?)?;
            let used = locked.skip_unused(region.number, page..pages.end)?;
            if used > page {
                page = used;
                continue;
            }
            let next = pages.end.min(page + AT_ONCE);
            let frames = locked.engine.anon_frames(owner, object, page..next)?;
            drop(locked);
            for (page, pfn) in frames {
                let is_free = || self.arena.is_free_to_write(pfn);
                self.await_guard(&mut wait, PageOwner::Region(region.number), page, pfn, is_free)?;
            }
            page = next;
        }
        Ok(())
    }

    /// Fills the rest of a page with zeroes, from the future end of the region.
    fn zero_rest(&self, region: &Region, end: u64) -> Result<(), Error> {
        let (page, skip) = (end / PAGE_SIZE, (end % PAGE_SIZE) as usize);
        let mut wait = self.guard_wait();
        loop {
            let mut locked = self.drain(self.lock()?)?;
            let word = locked.words_of_region(region.number).map(|mut words| words.get(page));
            // The page has only zeroes.
            if word.is_none_or(|word| word == pageout_engine::Word::EMPTY || word.is_zero_page()) {
                return Ok(());
            }
            let begun;
            (locked, begun) = self.write_to_region(locked, region.number, page, Purpose::Write)?;
            drop(self.read(locked, 0)?);
            match begun? {
                Begun::Writable(Writable { mut writing, is_new, owed }) => {
                    writing.bytes_mut()[if is_new { 0 } else { skip }..].fill(0);
                    drop(writing);
                    return owed.map_or(Ok(()), Owed::pay);
                }
                Begun::Held(pfn) => {
                    let is_free = || self.arena.is_free_to_write(pfn);
                    self.await_guard(&mut wait, PageOwner::Region(region.number), page, pfn, is_free)?;
                }
            }
        }
    }
}
