//! [`FileReader`] and [`RegionReader`]: a file or a region for one thread, with the data that a hit needs.
//!
//! ```text
//!   File::page         the thread's table ─▶ its part of this cache ─▶ of this file ─▶ word ─▶ hold ─▶ gate ─▶ word
//!   FileReader::page                                                             └───▶ word ─▶ hold ─▶ gate ─▶ word
//! ```
//! A reader shares the ring and the line of its thread, so hits by both reach the engine in order. It has words of its own. It can't be sent to another
//! thread: only one thread may write a ring and a line.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::Error;
use crate::file::Inner as File;
use crate::guard::PageRef;
use crate::local::{self, LocalFile, OwnRing};
use crate::machine::LiveMachine;
use crate::paged::Paged;
use crate::region::Inner as Region;

/// A reader of a file for one thread ([`crate::File::reader`]). It is neither `Send` nor `Sync`:
///
/// ```compile_fail
/// fn sends(reader: pageout::FileReader<'static>) -> impl Send {
///     reader
/// }
/// ```
pub struct FileReader<'a> {
    file: &'a File,
    machine: &'a LiveMachine,
    ring: Rc<OwnRing>,
    local: RefCell<LocalFile>,
}

impl<'a> FileReader<'a> {
    pub(crate) fn new(file: &'a File) -> Result<FileReader<'a>, Error> {
        let machine = &*file.memory.machine;
        let (ring, local) = local::of_reader(machine, file).ok_or_else(|| match machine.lock() {
            Ok(_) => file.forgotten(),
            Err(error) => error,
        })?;
        Ok(FileReader { file, machine, ring, local: RefCell::new(local) })
    }

    /// Returns a guard that holds a page: the same as [`crate::File::page`].
    ///
    /// # Errors
    /// The same as [`crate::File::page`].
    #[inline]
    pub fn page(&self, page: u64) -> Result<PageRef<'_>, Error> {
        let len = self.file.bytes_of_page(page)?;
        let held = self.file.try_hold_by((self.machine, &self.ring, &mut self.local.borrow_mut()), page, len);
        match held {
            Some(held) => Ok(PageRef::held(held, len as usize)),
            None => self.page_slowly(page, len),
        }
    }

    /// Shows a page in place while it is held, the fastest way to a hit: the guard stays in registers.
    ///
    /// # Errors
    /// The same as [`crate::File::page`].
    #[inline]
    pub fn with_page<T>(&self, page: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        let len = self.file.bytes_of_page(page)?;
        let held = self.file.try_hold_by((self.machine, &self.ring, &mut self.local.borrow_mut()), page, len);
        match held {
            Some(held) => Ok(look(&held.bytes()[..len as usize])),
            None => self.page_slowly(page, len).map(|page| look(&page)),
        }
    }

    /// The engine must know first which page was read last through this.
    #[cold]
    fn page_slowly(&self, page: u64, len: u64) -> Result<PageRef<'_>, Error> {
        let _: Option<()> = self.file.before_miss(&self.ring, &mut self.local.borrow_mut());
        self.file.page_slowly(page, len)
    }

    /// Reads bytes from an offset on: the same as [`crate::File::read_at`].
    ///
    /// # Errors
    /// The same as [`crate::File::read_at`].
    #[inline]
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        self.file.read_by(buf, offset, |piece, buf| {
            let mut local = self.local.borrow_mut();
            let copied = self.file.try_copy_by((self.machine, &self.ring, &mut local), piece, buf);
            drop(local);
            if copied.is_some() { Ok(()) } else { self.file.read_slowly(piece, buf) }
        })
    }
}

impl std::fmt::Debug for FileReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileReader").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

/// A reader of a region for one thread ([`crate::Region::reader`]). It is neither `Send` nor `Sync`.
pub struct RegionReader<'a> {
    region: &'a Region,
    machine: &'a LiveMachine,
    ring: Rc<OwnRing>,
    local: RefCell<LocalFile>,
}

impl<'a> RegionReader<'a> {
    pub(crate) fn new(region: &'a Region) -> Result<RegionReader<'a>, Error> {
        let machine = &*region.memory.machine;
        let (ring, local) = local::of_reader(machine, region).ok_or(Error::Poisoned)?;
        Ok(RegionReader { region, machine, ring, local: RefCell::new(local) })
    }

    /// Returns a guard that holds a page: the same as [`crate::Region::page`].
    ///
    /// # Errors
    /// The same as [`crate::Region::page`].
    #[inline]
    pub fn page(&self, page: u64) -> Result<PageRef<'_>, Error> {
        let len = self.region.bytes_of_page(page)?;
        let held =
            self.region.try_hold_by((self.machine, &self.ring, &mut self.local.borrow_mut()), page, len);
        match held {
            Some(held) => Ok(PageRef::held(held, len as usize)),
            None => self.region.page_slowly(page, len),
        }
    }

    /// Shows a page in place while it is held, the fastest way to a hit: the guard stays in registers.
    ///
    /// # Errors
    /// The same as [`crate::Region::page`].
    #[inline]
    pub fn with_page<T>(&self, page: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        let len = self.region.bytes_of_page(page)?;
        let held =
            self.region.try_hold_by((self.machine, &self.ring, &mut self.local.borrow_mut()), page, len);
        match held {
            Some(held) => Ok(look(&held.bytes()[..len as usize])),
            None => self.region.page_slowly(page, len).map(|page| look(&page)),
        }
    }

    /// Reads bytes at an offset: the same as [`crate::Region::read_at`].
    ///
    /// # Errors
    /// The same as [`crate::Region::read_at`].
    #[inline]
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        self.region.pieces(buf.len(), offset)?.try_for_each(|piece| {
            let mut local = self.local.borrow_mut();
            let copied = self.region.try_copy_by((self.machine, &self.ring, &mut local), &piece, buf);
            drop(local);
            if copied.is_some() { Ok(()) } else { self.region.read_slowly(&piece, buf) }
        })
    }
}

impl std::fmt::Debug for RegionReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegionReader").field("region", &self.region.path()).finish_non_exhaustive()
    }
}
