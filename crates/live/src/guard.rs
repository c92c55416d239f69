//! [`PageRef`]: a page that is read in place, and [`PageMut`]: one that is written there.

use std::ops::{Deref, DerefMut};

use crate::arena::{Pin, Writing};
use crate::error::Error;
use crate::file::Inner as File;
use crate::local;

/// Further pins that a thread counts before it checks the number of all threads.
const COUNTED_AT_ONCE: i64 = 16;

/// Too many pages that can't be evicted would leave no memory for others.
#[cold]
fn check_pins(file: &File) -> Result<(), Error> {
    let machine = &file.memory.machine;
    let (pinned, most) = (machine.lock()?.pinned(), machine.pins_max);
    if pinned <= most {
        Ok(())
    } else {
        Err(Error::Pinned { path: file.path().to_owned(), page: None, pinned, most })
    }
}

/// A page of a file, held in memory: [`crate::File::page`].
pub struct PageRef<'a> {
    file: &'a File,
    pin: Pin<'a>,
    len: usize,
}

impl<'a> PageRef<'a> {
    /// Pins of a thread, if a place defines what it holds: places are counted only on request.
    pub(crate) const UNCOUNTED: i64 = 1;

    /// Takes over a pin of a frame that holds this many bytes of a page, the last of this many pins of this thread.
    #[inline(always)]
    pub(crate) fn new(file: &'a File, pin: Pin<'a>, len: usize, pins: i64) -> Result<PageRef<'a>, Error> {
        if pins % COUNTED_AT_ONCE == 0
            && let Err(error) = check_pins(file)
        {
            drop(PageRef { file, pin, len });
            return Err(error);
        }
        // Made in its final place: one that is moved is written in words and read in pairs of them, for which the processor waits.
        Ok(PageRef { file, pin, len })
    }

    /// The same for a pin that is not counted yet.
    pub(crate) fn counted(file: &'a File, pin: Pin<'a>, len: usize) -> Result<PageRef<'a>, Error> {
        let machine = &file.memory.machine;
        machine.guards.taken(pin.pfn());
        let pins = local::count_pins(machine, 1).unwrap_or_else(|| {
            machine.count_pins(1);
            0
        });
        PageRef::new(file, pin, len, pins)
    }
}

impl Deref for PageRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.pin.bytes()[..self.len]
    }
}

impl Drop for PageRef<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.pin.is_hold() {
            return;
        }
        let machine = &self.file.memory.machine;
        machine.let_go_of_guard(self.pin.pfn());
        if local::count_pins(machine, -1).is_none() {
            machine.count_pins(-1);
        }
    }
}

/// A page of a file, held in memory for writing: [`crate::File::page_mut`].
pub struct PageMut<'a> {
    file: &'a File,
    writing: Writing<'a>,
    len: usize,
}

impl<'a> PageMut<'a> {
    /// Takes over a frame that holds this many bytes of a page, which is dirty.
    pub(crate) fn new(file: &'a File, writing: Writing<'a>, len: usize) -> Result<PageMut<'a>, Error> {
        let machine = &file.memory.machine;
        machine.guards.taken(writing.pfn());
        let pins = local::count_pins(machine, 1).unwrap_or_else(|| {
            machine.count_pins(1);
            0
        });
        let page = PageMut { file, writing, len };
        if pins % COUNTED_AT_ONCE == 0 {
            check_pins(file)?;
        }
        Ok(page)
    }
}

impl Deref for PageMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.writing.bytes()[..self.len]
    }
}

impl DerefMut for PageMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.writing.bytes_mut()[..self.len]
    }
}

impl Drop for PageMut<'_> {
    fn drop(&mut self) {
        let machine = &self.file.memory.machine;
        machine.let_go_of_guard(self.writing.pfn());
        if local::count_pins(machine, -1).is_none() {
            machine.count_pins(-1);
        }
    }
}
