//! [`Region`]: anonymous memory that may be larger than the budget, by copies and by guards. [live-3 2.2]
//!
//! A hit is like a hit on a file: the page's word, its frame's gate, the bytes, and no lock (`gate.rs`). Regions have one more case: a page that was never
//! written reads as zeroes, and no frame holds it.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use pageout_engine::{ConfigError, PAGE_SIZE, Word};

use crate::error::Error;
use crate::file::{Piece, ReadAt};
use crate::guard::{PageMut, PageRef};
use crate::length::Length;
use crate::local::LocalFile;
use crate::machine::{Accessed, BYTES_MAX, Begun, Place, Purpose, Writable};
use crate::memory::{Group, Shared};
use crate::paged::{OfThread, Paged};
use crate::pending::{Pending, Reader};
use crate::reader::RegionReader;
use crate::ring::{Read, Ring};

const PAGE: usize = PAGE_SIZE as usize;
/// How often one write frees a slot that can't be read: other threads may read the slot again.
const GIVEN_UP_MAX: u32 = 16;

/// Options of a region ([`crate::Memory::region`]).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RegionOptions {
    group: Option<Group>,
    name: Option<String>,
}

impl RegionOptions {
    /// Returns the defaults: pages are charged to the root group.
    pub fn new() -> RegionOptions {
        RegionOptions::default()
    }

    /// Charges its pages to a group, independent of the group of an access.
    pub fn group(mut self, group: &Group) -> RegionOptions {
        self.group = Some(group.clone());
        self
    }

    /// Sets the name of the region in errors. Default: `region`.
    pub fn name(mut self, name: &str) -> RegionOptions {
        self.name = Some(name.to_owned());
        self
    }
}

/// The expected use of pages of a region ([`Region::advise`]), with the names of madvise(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RegionAdvice {
    /// The pages are not used soon: they are evicted before others.
    Cold,
    /// The pages are not used soon: they are swapped out now.
    PageOut,
    /// The contents may be lost: pages are freed when memory is short, and then read as zeroes. A write keeps its page. Held pages are unchanged.
    Free,
    /// The contents are not needed: pages and their slots are free when the call returns, and read as zeroes. Page tables stay until the region is made
    /// shorter, or dropped.
    DontNeed,
}

impl RegionAdvice {
    /// The pages of a region of this length that it applies to, if it is given for these bytes. The last page of the region is complete even if the region
    /// ends within it.
    pub(crate) fn pages(self, bytes: &Range<u64>, len: u64) -> Range<u64> {
        let up_to = |end: u64| end.div_ceil(PAGE_SIZE);
        match self {
            RegionAdvice::Cold | RegionAdvice::PageOut => bytes.start / PAGE_SIZE..up_to(bytes.end.min(len)),
            RegionAdvice::Free | RegionAdvice::DontNeed if bytes.end >= len => up_to(bytes.start)..up_to(len),
            RegionAdvice::Free | RegionAdvice::DontNeed => up_to(bytes.start)..bytes.end / PAGE_SIZE,
        }
    }
}

/// Anonymous memory that may be larger than the budget: used pages stay in memory, and the others are swapped out. Clones share the region. When the last
/// clone is dropped, its pages and slots are free. Nothing of it outlives the process.
///
/// Pages that were never written read as zeroes and use no memory. A call is atomic within a page only: other calls on the same bytes can run between two
/// pages.
#[derive(Clone)]
pub struct Region(pub(crate) Arc<Inner>);

/// What the clones of a region share.
pub(crate) struct Inner {
    pub(crate) memory: Arc<Shared>,
    pub(crate) number: usize,
    /// Distinguishes it from earlier and later regions with the same number.
    pub(crate) serial: u64,
    pub(crate) length: Arc<Length>,
    name: PathBuf,
}

impl Region {
    pub(crate) fn make(memory: &Arc<Shared>, bytes: u64, options: &RegionOptions) -> Result<Region, Error> {
        let name = PathBuf::from(options.name.as_deref().unwrap_or("region"));
        let group = match &options.group {
            Some(group) if Arc::ptr_eq(&group.shared, memory) => group.place,
            Some(_) => return Err(ConfigError::Unknown("such group in this cache".to_owned()).into()),
            None => Place::ROOT,
        };
        if bytes > BYTES_MAX {
            return Err(Error::TooLong { path: name, bytes, most: BYTES_MAX });
        }
        let frames = memory.frames();
        let made = memory.guarded(|machine| machine.make_region(group, bytes, frames, name.clone()))?;
        let (memory, number, serial, length) = (Arc::clone(memory), made.number, made.serial, made.length);
        Ok(Region(Arc::new(Inner { memory, number, serial, length, name })))
    }

    /// Its number in the cache.
    pub(crate) fn number(&self) -> usize {
        self.0.number
    }

    /// Returns the length of the region in bytes.
    pub fn len(&self) -> u64 {
        self.0.bytes()
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes at an offset: all of them, or an error, after which the buffer may be partly filled.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`]; [`Error::SwapIo`] if a slot can't be read; [`Error::OutOfMemory`] if there is no memory for a page that is in swap.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        self.0.pieces(buf.len(), offset)?.try_for_each(|piece| self.0.read_piece(&piece, buf))
    }

    /// Writes bytes at an offset: all of them, or an error, after which some may be written. A write does not extend the region
    /// ([`Region::set_len`]). If a guard holds a page, the writer waits.
    ///
    /// # Errors
    /// - [`Error::BeyondEnd`].
    /// - [`Error::OutOfMemory`] if there is no memory for a page, and none can be evicted because swap is full.
    /// - [`Error::SwapIo`] if the rest of a page can't be read.
    /// - [`Error::Pinned`] if a guard holds a page for too long.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> Result<(), Error> {
        self.0.pieces(buf.len(), offset)?.try_for_each(|piece| self.0.write_piece(&piece, buf))
    }

    /// Holds a page for reading in place. The page stays in memory until the guard is dropped. The guard of a page that was never written shows zeroes until
    /// it is dropped, and writers of that page do not wait.
    ///
    /// # Errors
    /// As [`Region::read_at`]; and [`Error::Pinned`] if guards hold a quarter of all frames.
    #[inline]
    pub fn page(&self, page: u64) -> Result<PageRef<'_>, Error> {
        let region = &*self.0;
        let len = region.bytes_of_page(page)?;
        match region.try_hold(page, len) {
            Some(held) => Ok(PageRef::held(held, len as usize)),
            None => region.page_slowly(page, len),
        }
    }

    /// Returns a reader of this thread. It holds and copies pages in memory faster than the region itself, as it does not look up the thread's data
    /// of the region.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    ///
    /// ```no_run
    /// # let memory = pageout::Memory::builder().build()?;
    /// let region = memory.region(1 << 20, pageout::RegionOptions::new())?;
    /// let reader = region.reader()?;
    /// assert_eq!(reader.page(17)?[0], 0);
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn reader(&self) -> Result<RegionReader<'_>, Error> {
        RegionReader::new(&self.0)
    }

    /// Holds a page for reading and writing in place. Other readers and writers of the page wait until the guard is dropped. The call waits for other guards
    /// of the page.
    ///
    /// # Errors
    /// As [`Region::write_at`]; and [`Error::Pinned`] if guards hold a quarter of all frames, or a guard of this thread holds the page.
    pub fn page_mut(&self, page: u64) -> Result<PageMut<'_>, Error> {
        let held = self.0.write_page(page, true)?;
        Ok(held.expect("it waits for other holders"))
    }

    /// The same without waiting: returns `None` if the page is held.
    ///
    /// # Errors
    /// As [`Region::page_mut`].
    pub fn try_page_mut(&self, page: u64) -> Result<Option<PageMut<'_>>, Error> {
        self.0.write_page(page, false)
    }

    /// Makes several reads, in any order. Pages in memory are copied immediately. The others are in flight together, 32 pages at most.
    ///
    /// # Errors
    /// As [`Region::read_at`], for any of the reads; the others may have been made.
    pub fn read_batch(&self, reads: &mut [ReadAt<'_>]) -> Result<(), Error> {
        self.0.read_together(reads)
    }

    /// Starts several reads, and waits for none of them: see [`crate::File::submit`].
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Poisoned`]; other errors are reported by [`Pending`].
    pub fn submit<'a>(&self, mut reads: Vec<ReadAt<'a>>) -> Result<Pending<'a>, Error> {
        let cuts = self.0.length.cuts();
        let missing = self.0.copy_what_is_there(&mut reads)?;
        Pending::new(Reader::Region(self.clone()), reads, missing, cuts)
    }

    /// Starts to read bytes from swap that are needed soon, and waits for none of them.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Poisoned`].
    pub fn prefetch(&self, bytes: Range<u64>) -> Result<(), Error> {
        self.0.check(&bytes)?;
        let pages = bytes.start / PAGE_SIZE..bytes.end.div_ceil(PAGE_SIZE);
        self.0.memory.guarded(|machine| machine.read_region_ahead(&self.0, pages))
    }

    /// States the expected use of bytes of the region, like madvise(2). [`RegionAdvice::Free`] and [`RegionAdvice::DontNeed`] apply to the pages that are
    /// completely in the range; the others apply to each page with a byte in the range. If the region gets shorter after the first pages, the call ends at
    /// its new end.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`]; [`Error::Pinned`] if a guard holds a page of [`RegionAdvice::DontNeed`] for too long: the pages before it are then freed.
    pub fn advise(&self, advice: RegionAdvice, bytes: Range<u64>) -> Result<(), Error> {
        self.0.memory.guarded(|machine| machine.advise_region(&self.0, advice, &bytes))
    }

    /// Changes the length of the region. Bytes behind a new end are discarded, and their memory and slots are free. New bytes read as zeroes.
    ///
    /// # Errors
    /// The length is unchanged after an error.
    ///
    /// - [`Error::Pinned`] if a guard holds the page of the new end, or one behind it.
    /// - [`Error::NoSwap`], [`Error::TooManyFiles`], [`Error::TooLong`].
    /// - The errors of [`Region::write_at`], because the rest of the last page is written.
    pub fn set_len(&self, bytes: u64) -> Result<(), Error> {
        if bytes > BYTES_MAX {
            return Err(Error::TooLong { path: self.0.name.clone(), bytes, most: BYTES_MAX });
        }
        let frames = self.0.memory.frames();
        self.0.memory.guarded(|machine| machine.set_region_len(&self.0, bytes, frames))
    }

    /// Returns the region as an array of plain data. No value crosses a page boundary: each page has as many values as fit.
    ///
    /// # Errors
    /// [`Error::Config`] if the size of a value is 0 or more than a page.
    ///
    /// ```no_run
    /// # let memory = pageout::Memory::builder().build()?;
    /// let counts = memory.region(1 << 20, pageout::RegionOptions::new())?.typed::<u64>()?;
    /// *counts.get_mut(7)? += 1;
    /// assert_eq!(*counts.get(7)?, 1);
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn typed<T: Pod>(&self) -> Result<Typed<T>, Error> {
        if size_of::<T>() == 0 || size_of::<T>() > PAGE {
            let (value, max) = (size_of::<T>() as u64, PAGE_SIZE);
            return Err(ConfigError::OutOfRange { what: "bytes of a value", value, min: 1, max }.into());
        }
        Ok(Typed { region: self.clone(), value: PhantomData })
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region")
            .field("name", &self.0.name)
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}

/// A region as an array of values ([`Region::typed`]).
#[derive(Clone, Debug)]
pub struct Typed<T> {
    region: Region,
    value: PhantomData<T>,
}

/// A value held for reading in place ([`Typed::get`]).
pub struct TypedRef<'a, T> {
    page: PageRef<'a>,
    at: usize,
    value: PhantomData<T>,
}

/// A value held for writing in place ([`Typed::get_mut`]).
pub struct TypedMut<'a, T> {
    page: PageMut<'a>,
    at: usize,
    value: PhantomData<T>,
}

impl<T: Pod> Typed<T> {
    const IN_A_PAGE: u64 = (PAGE / size_of::<T>()) as u64;

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        let (bytes, size) = (self.region.len(), size_of::<T>() as u64);
        bytes / PAGE_SIZE * Self::IN_A_PAGE + (bytes % PAGE_SIZE / size).min(Self::IN_A_PAGE)
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The place of a value: its page, and its first byte there.
    fn place(&self, index: u64) -> Result<(u64, usize), Error> {
        let (page, at) = (index / Self::IN_A_PAGE, (index % Self::IN_A_PAGE) as usize * size_of::<T>());
        if index < self.len() {
            return Ok((page, at));
        }
        Err(self
            .region
            .0
            .beyond_end(page.saturating_mul(PAGE_SIZE).saturating_add((at + size_of::<T>()) as u64)))
    }

    /// Holds a value for reading in place.
    ///
    /// # Errors
    /// As [`Region::page`].
    #[inline]
    pub fn get(&self, index: u64) -> Result<TypedRef<'_, T>, Error> {
        let (page, at) = self.place(index)?;
        let page = self.region.page(page)?;
        self.whole(at, page.len(), index)?;
        Ok(TypedRef { page, at, value: PhantomData })
    }

    /// Holds a value for reading and writing in place. Calls that need a value of the same page wait.
    ///
    /// # Errors
    /// As [`Region::page_mut`].
    pub fn get_mut(&self, index: u64) -> Result<TypedMut<'_, T>, Error> {
        let (page, at) = self.place(index)?;
        let page = self.region.page_mut(page)?;
        self.whole(at, page.len(), index)?;
        Ok(TypedMut { page, at, value: PhantomData })
    }

    /// Returns a copy of a value.
    ///
    /// # Errors
    /// As [`Region::read_at`].
    pub fn read(&self, index: u64) -> Result<T, Error> {
        let ((page, at), mut value) = (self.place(index)?, T::zeroed());
        self.region.read_at(bytemuck::bytes_of_mut(&mut value), page * PAGE_SIZE + at as u64)?;
        Ok(value)
    }

    /// Writes a value.
    ///
    /// # Errors
    /// As [`Region::write_at`].
    pub fn write(&self, index: u64, value: &T) -> Result<(), Error> {
        let (page, at) = self.place(index)?;
        self.region.write_at(bytemuck::bytes_of(value), page * PAGE_SIZE + at as u64)
    }

    /// Checks that the value is complete: the region may have become shorter since its place was computed.
    fn whole(&self, at: usize, len: usize, index: u64) -> Result<(), Error> {
        if at + size_of::<T>() <= len { Ok(()) } else { self.place(index).map(drop) }
    }
}

impl<T: Pod> Deref for TypedRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        bytemuck::from_bytes(&self.page[self.at..self.at + size_of::<T>()])
    }
}

impl<T: Pod> Deref for TypedMut<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        bytemuck::from_bytes(&self.page[self.at..self.at + size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for TypedMut<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        bytemuck::from_bytes_mut(&mut self.page[self.at..self.at + size_of::<T>()])
    }
}

impl Inner {
    pub(crate) fn path(&self) -> &Path {
        &self.name
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes()
    }

    /// Pages with at least one byte of the region.
    pub(crate) fn pages(&self) -> u64 {
        self.bytes().div_ceil(PAGE_SIZE)
    }

    /// Returns an error unless the bytes are in the region.
    pub(crate) fn check(&self, bytes: &Range<u64>) -> Result<(), Error> {
        if bytes.end > self.bytes() {
            return Err(self.beyond_end(bytes.end));
        }
        if bytes.start > bytes.end {
            let what = format!("range {}..{}: it ends before it begins", bytes.start, bytes.end);
            return Err(ConfigError::Unknown(what).into());
        }
        Ok(())
    }

    /// The frame of a page that is in memory.
    #[cfg(test)]
    pub(crate) fn frame_of(&self, page: u64) -> Option<pageout_engine::Pfn> {
        crate::local::with(&self.memory.machine, self, |_, local| {
            let word = local.words.get(page);
            word.is_mapped_plainly().then(|| word.pfn())
        })
    }

    /// Makes a write to one page if it can be made without the engine: the page is in memory and dirty, and not held.
    pub(crate) fn try_write(&self, buf: &[u8], offset: u64) -> bool {
        let Ok(mut pieces) = self.pieces(buf.len(), offset) else { return false };
        match (pieces.next(), pieces.next()) {
            (Some(piece), None) => self.try_write_piece(&piece, buf),
            _ => false,
        }
    }

    /// Writes to a page.
    fn write_piece(&self, piece: &Piece, buf: &[u8]) -> Result<(), Error> {
        if self.try_write_piece(piece, buf) {
            return Ok(());
        }
        self.write_slowly(piece, &buf[piece.to.clone()])
    }

    #[cold]
    fn write_slowly(&self, piece: &Piece, from: &[u8]) -> Result<(), Error> {
        let machine = &*self.memory.machine;
        let (page, skip) = (piece.want.page, piece.skip);
        let mut wait = machine.guard_wait();
        let mut given_up = 0;
        loop {
            let is_whole = skip == 0 && from.len() as u64 == self.bytes_of_page(page)?;
            let purpose = if is_whole { Purpose::Overwrite } else { Purpose::Write };
            let begun = match self.memory.guarded(|machine| machine.begin_region_write(self, page, purpose)) {
                // A write of the complete page does not need the slot. Other threads may read it again meanwhile, and fail.
                Err(Error::SwapIo { .. }) if is_whole && given_up < GIVEN_UP_MAX => {
                    given_up += 1;
                    self.memory.guarded(|machine| machine.give_up_slot(self, page))?;
                    continue;
                }
                Err(Error::BeyondEnd { .. }) => return Err(self.beyond_end(piece.end())),
                begun => begun?,
            };
            let (mut writing, is_new, owed) = match begun {
                Begun::Writable(Writable { writing, is_new, owed }) => (writing, is_new, owed),
                Begun::Held(pfn) => {
                    let is_free = || machine.arena.is_free_to_write(pfn);
                    machine.await_guard(&mut wait, Accessed::Region(self).owner(), page, pfn, is_free)?;
                    continue;
                }
            };
            let (bytes, reaches) = (writing.bytes_mut(), self.length.reaches(piece.end()));
            if is_new {
                bytes[..skip].fill(0);
                bytes[skip + from.len()..].fill(0);
                if !reaches {
                    bytes.fill(0);
                }
            }
            if reaches {
                bytes[skip..skip + from.len()].copy_from_slice(from);
            }
            drop(writing);
            if let Some(owed) = owed {
                self.memory.guarded(|_| owed.pay())?;
            }
            match reaches {
                true => return Ok(()),
                // The length is being changed: the next try waits for that call.
                false if piece.end() <= self.bytes() => {}
                false => return Err(self.beyond_end(piece.end())),
            }
        }
    }

    fn write_page(&self, page: u64, waits: bool) -> Result<Option<PageMut<'_>>, Error> {
        let machine = &*self.memory.machine;
        let mut wait = machine.guard_wait();
        loop {
            let len = self.bytes_of_page(page)?;
            let end = page * PAGE_SIZE + len;
            if let Some(writing) = self.try_overwrite(page, end) {
                return PageMut::new((machine, &self.name), writing, len as usize).map(Some);
            }
            match self.memory.guarded(|machine| machine.begin_region_write(self, page, Purpose::Write))? {
                Begun::Writable(Writable { mut writing, is_new, owed }) => {
                    if is_new {
                        writing.bytes_mut().fill(0);
                    }
                    // A later call that makes the region shorter sees that the page is held.
                    let reaches = self.length.reaches(end);
                    if let Some(owed) = owed {
                        self.memory.guarded(|_| owed.pay())?;
                    }
                    if reaches {
                        return PageMut::new((machine, &self.name), writing, len as usize).map(Some);
                    }
                }
                Begun::Held(_) if !waits => return Ok(None),
                Begun::Held(pfn) => {
                    let is_free = || machine.arena.is_free_to_write(pfn);
                    machine.await_guard(&mut wait, Accessed::Region(self).owner(), page, pfn, is_free)?;
                }
            }
        }
    }
}

impl Paged for Inner {
    #[inline(always)]
    fn memory(&self) -> &Arc<Shared> {
        &self.memory
    }

    #[inline(always)]
    fn length(&self) -> &Length {
        &self.length
    }

    fn name(&self) -> &Path {
        &self.name
    }

    fn accessed(&self) -> Accessed<'_> {
        Accessed::Region(self)
    }

    #[inline(always)]
    fn is_hit(word: Word) -> bool {
        word.is_mapped_plainly()
    }

    #[inline(always)]
    fn is_zeroes(word: Word) -> bool {
        word.is_zero_page()
    }

    #[inline(always)]
    fn is_overwritten_freely(word: Word) -> bool {
        word.is_mapped_plainly() && word.is_dirty()
    }

    /// The hit is reported to the engine if an accessed bit has to be set.
    #[inline(always)]
    fn note(&self, (machine, ring, local): OfThread<'_, '_>, page: u64, _: u64, word: Word) -> Option<()> {
        let is_slow = !word.is_zero_page() && machine.arena.is_slow(word.pfn());
        ring.count_hit(is_slow);
        local.hits.count(is_slow);
        if word.is_settled() { Some(()) } else { self.push(ring, Read::of_region(self.number, page)) }
    }

    #[inline(always)]
    fn note_write(&self, of: OfThread<'_, '_>, page: u64, word: Word) -> Option<()> {
        self.note(of, page, 0, word)
    }

    /// There is no readahead, and so nothing that the engine must know.
    #[inline(always)]
    fn before_miss<T>(&self, _: &Ring, _: &mut LocalFile) -> Option<T> {
        None
    }

    /// A region is not forgotten while it has a handle.
    fn error_up_to(&self, _: u64, error: Error) -> Error {
        error
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // After a panic the cache is poisoned, and nothing of it can be used.
        let _ = self.memory.guarded(|machine| machine.drop_region(self.number));
    }
}

#[cfg(test)]
mod tests; // against a model, over a failing device
