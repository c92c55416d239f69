//! [`OwnedPageRef`] and [`OwnedPageMut`]: guards without a borrow, for a task that holds a page over an await, or hands it on.
//!
//! A guard that borrows counts for the thread that has taken it, so that a wait of that thread for itself is found. An owned guard may be a task's that any
//! thread runs next. So it counts for no thread, and a wait for it ends after [`crate::Builder::guard_wait`] at the latest.

use std::ops::{Deref, DerefMut};

use pageout_engine::Pfn;

use crate::arena::{OwnedPin, OwnedWriting};
use crate::error::Error;
use crate::file::File;
use crate::gate::Unpinned;
use crate::guard::{COUNTED_AT_ONCE, PageMut, PageRef, ZEROES, check_pins};
use crate::machine::LiveMachine;
use crate::pending::Reader;
use crate::region::Region;
use crate::sync::thread;

/// A page of a file or a region, held in memory for reading, without a borrow: [`File::page_owned`], [`Region::page_owned`]. It keeps its file open.
///
/// It is `Send`, `Sync` and `'static`. As it is `AsRef<[u8]>`, `bytes::Bytes::from_owner` makes it a `Bytes` without a copy.
pub struct OwnedPageRef {
    /// `None` for a page of a region that was never written, which reads as zeroes.
    pin: Option<OwnedPin>,
    len: usize,
    /// Dropped after the pin: the cache may end with it.
    of: Reader,
}

/// A page of a file or a region, held in memory for writing, without a borrow: [`File::page_mut_owned`], [`Region::page_mut_owned`]. It keeps its file
/// open. It is `Send`, `Sync` and `'static`.
pub struct OwnedPageMut {
    writing: OwnedWriting,
    counted: Counted,
    len: usize,
}

/// A guard for writing as others count it, and what its page belongs to.
struct Counted(Reader);

impl File {
    /// The same as [`File::page`], with a guard that borrows nothing: a task may hold it over an await.
    ///
    /// # Errors
    /// The same as [`File::page`].
    pub fn page_owned(&self, page: u64) -> Result<OwnedPageRef, Error> {
        OwnedPageRef::new(&self.page(page)?, Reader::File(self.clone()), page)
    }

    /// The same as [`File::page_mut`], with a guard that borrows nothing. A task that holds it over an await must not wait for a sync of the file.
    ///
    /// # Errors
    /// The same as [`File::page_mut`].
    pub fn page_mut_owned(&self, page: u64) -> Result<OwnedPageMut, Error> {
        OwnedPageMut::new(self.page_mut(page)?, Reader::File(self.clone()))
    }

    /// The same if no guard holds the page; `None` if one does.
    ///
    /// # Errors
    /// The same as [`File::page_mut`].
    pub fn try_page_mut_owned(&self, page: u64) -> Result<Option<OwnedPageMut>, Error> {
        let held = self.try_page_mut(page)?;
        held.map(|held| OwnedPageMut::new(held, Reader::File(self.clone()))).transpose()
    }
}

impl Region {
    /// The same as [`Region::page`], with a guard that borrows nothing: a task may hold it over an await.
    ///
    /// # Errors
    /// The same as [`Region::page`].
    pub fn page_owned(&self, page: u64) -> Result<OwnedPageRef, Error> {
        OwnedPageRef::new(&self.page(page)?, Reader::Region(self.clone()), page)
    }

    /// The same as [`Region::page_mut`], with a guard that borrows nothing.
    ///
    /// # Errors
    /// The same as [`Region::page_mut`].
    pub fn page_mut_owned(&self, page: u64) -> Result<OwnedPageMut, Error> {
        OwnedPageMut::new(self.page_mut(page)?, Reader::Region(self.clone()))
    }

    /// The same if no guard holds the page; `None` if one does.
    ///
    /// # Errors
    /// The same as [`Region::page_mut`].
    pub fn try_page_mut_owned(&self, page: u64) -> Result<Option<OwnedPageMut>, Error> {
        let held = self.try_page_mut(page)?;
        held.map(|held| OwnedPageMut::new(held, Reader::Region(self.clone()))).transpose()
    }
}

/// Pins a frame that a guard of this thread holds, by its gate.
fn pin_too(machine: &LiveMachine, pfn: Pfn) -> Option<OwnedPin> {
    loop {
        match machine.arena.pin(pfn) {
            Ok(pin) => return Some(pin.into_owned(&machine.arena)),
            // Another thread has just looked whether it can have the frame, finds the guard, and opens the gate again.
            Err(Unpinned::Closed | Unpinned::Written) => thread::yield_now(),
            Err(Unpinned::Full | Unpinned::Held) => return None,
        }
    }
}

/// One more owned guard: an error if there are too many guards.
fn check(machine: &LiveMachine, of: &Reader, owned: u64) -> Result<(), Error> {
    if owned.is_multiple_of(COUNTED_AT_ONCE as u64) { check_pins(machine, of.path()) } else { Ok(()) }
}

impl OwnedPageRef {
    fn new(guard: &PageRef<'_>, of: Reader, page: u64) -> Result<OwnedPageRef, Error> {
        let machine = &*of.memory().machine;
        let (frame, len) = guard.parts(machine);
        let pin = match frame {
            None => None,
            Some(pfn) => match pin_too(machine, pfn) {
                None => return Err(machine.lock()?.pinned_page(of.owner(), page)),
                pin => pin,
            },
        };
        let is_counted = pin.is_some();
        let owned = OwnedPageRef { pin, len, of };
        if is_counted {
            let machine = &*owned.of.memory().machine;
            check(machine, &owned.of, machine.arena.owned_pins())?;
        }
        Ok(owned)
    }
}

impl Deref for OwnedPageRef {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes = self.pin.as_ref().map_or(&ZEROES[..], OwnedPin::bytes);
        &bytes[..self.len]
    }
}

impl AsRef<[u8]> for OwnedPageRef {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for OwnedPageRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedPageRef")
            .field("of", &self.of.path())
            .field("bytes", &self.len)
            .finish_non_exhaustive()
    }
}

impl OwnedPageMut {
    fn new(guard: PageMut<'_>, of: Reader) -> Result<OwnedPageMut, Error> {
        let arena = &of.memory().machine.arena;
        let (writing, len) = guard.into_writing();
        let (writing, count) = (writing.into_owned(arena), arena.count_owned_pins(1));
        let owned = OwnedPageMut { writing, counted: Counted(of), len };
        let of = &owned.counted.0;
        check(&of.memory().machine, of, count)?;
        Ok(owned)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.memory().machine.arena.count_owned_pins(-1);
    }
}

impl Deref for OwnedPageMut {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.writing.bytes()[..self.len]
    }
}

impl DerefMut for OwnedPageMut {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.writing.bytes_mut()[..self.len]
    }
}

impl AsRef<[u8]> for OwnedPageMut {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for OwnedPageMut {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl std::fmt::Debug for OwnedPageMut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedPageMut")
            .field("of", &self.counted.0.path())
            .field("bytes", &self.len)
            .finish_non_exhaustive()
    }
}
