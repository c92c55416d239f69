//! [`PageRef`]: a page that is read in place, and [`PageMut`]: one that is written there.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use pageout_engine::{PAGE_SIZE, Pfn};

use crate::arena::{Pin, Writing};
use crate::error::Error;
use crate::local;
use crate::machine::LiveMachine;

/// Further pins that a thread, or all owned guards, count before it checks the number of all threads.
pub(crate) const COUNTED_AT_ONCE: i64 = 16;

/// Too many pages that can't be evicted would leave no memory for others.
#[cold]
pub(crate) fn check_pins(machine: &LiveMachine, path: &Path) -> Result<(), Error> {
    let (pinned, most) = (machine.lock()?.pinned(), machine.budget.pins_max());
    if pinned <= most {
        Ok(())
    } else {
        Err(Error::Pinned { path: path.to_owned(), page: None, pinned, most })
    }
}

/// The contents of a page that was never written.
pub(crate) static ZEROES: Zeroes = Zeroes([0; PAGE_SIZE as usize]);

/// Aligned like a frame, because values are read from it.
#[repr(align(4096))]
pub(crate) struct Zeroes([u8; PAGE_SIZE as usize]);

impl Deref for Zeroes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A page of a file or a region, held in memory: [`crate::File::page`], [`crate::Region::page`].
pub struct PageRef<'a> {
    machine: &'a LiveMachine,
    /// `None` for a page that was never written: no frame holds it, and it reads as zeroes.
    pin: Option<Pin<'a>>,
    len: usize,
}

impl<'a> PageRef<'a> {
    /// Pins of a thread, if a place defines what it holds: places are counted only on request.
    pub(crate) const UNCOUNTED: i64 = 1;

    /// Takes over a pin of a frame that holds this many bytes of a page, the last of this many pins of this thread.
    #[inline(always)]
    pub(crate) fn new(
        (machine, path): (&'a LiveMachine, &Path),
        pin: Pin<'a>,
        len: usize,
        pins: i64,
    ) -> Result<PageRef<'a>, Error> {
        let pin = Some(pin);
        if pins % COUNTED_AT_ONCE == 0
            && let Err(error) = check_pins(machine, path)
        {
            drop(PageRef { machine, pin, len });
            return Err(error);
        }
        // Made in its final place: one that is moved is written in words and read in pairs of them, for which the processor waits.
        Ok(PageRef { machine, pin, len })
    }

    /// A page of this many zeroes, which no frame holds.
    pub(crate) fn zeroes(machine: &'a LiveMachine, len: usize) -> PageRef<'a> {
        PageRef { machine, pin: None, len }
    }

    /// The pin, unless no frame holds the page; and the bytes of the page.
    pub(crate) fn parts(&self) -> (Option<&Pin<'a>>, usize) {
        (self.pin.as_ref(), self.len)
    }

    /// The same for a pin that is not counted yet.
    pub(crate) fn counted(
        (machine, path): (&'a LiveMachine, &Path),
        pin: Pin<'a>,
        len: usize,
    ) -> Result<PageRef<'a>, Error> {
        machine.guards.taken(pin.pfn());
        let pins = local::count_pins(machine, 1).unwrap_or_else(|| {
            machine.count_pins(1);
            0
        });
        PageRef::new((machine, path), pin, len, pins)
    }
}

impl Deref for PageRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes = self.pin.as_ref().map_or(&ZEROES[..], |pin| pin.bytes());
        &bytes[..self.len]
    }
}

impl Drop for PageRef<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some(pin) = self.pin.as_ref().filter(|pin| !pin.is_hold()) else { return };
        let machine = self.machine;
        machine.let_go_of_guard(pin.pfn());
        if local::count_pins(machine, -1).is_none() {
            machine.count_pins(-1);
        }
    }
}

/// A page of a file or a region, held in memory for writing: [`crate::File::page_mut`], [`crate::Region::page_mut`].
pub struct PageMut<'a> {
    counted: Counted<'a>,
    writing: Writing<'a>,
    len: usize,
}

/// A guard for writing as others count it: with its thread.
struct Counted<'a> {
    machine: &'a LiveMachine,
    pfn: Pfn,
}

impl<'a> PageMut<'a> {
    /// Takes over a frame that holds this many bytes of a page, which is dirty.
    pub(crate) fn new(
        (machine, path): (&'a LiveMachine, &Path),
        writing: Writing<'a>,
        len: usize,
    ) -> Result<PageMut<'a>, Error> {
        let pfn = writing.pfn();
        machine.guards.taken(pfn);
        let pins = local::count_pins(machine, 1).unwrap_or_else(|| {
            machine.count_pins(1);
            0
        });
        let page = PageMut { counted: Counted { machine, pfn }, writing, len };
        if pins % COUNTED_AT_ONCE == 0 {
            check_pins(machine, path)?;
        }
        Ok(page)
    }
}

impl<'a> PageMut<'a> {
    /// The frame, which no guard of a thread holds any more, and the bytes of its page.
    pub(crate) fn into_writing(self) -> (Writing<'a>, usize) {
        let PageMut { counted, writing, len } = self;
        drop(counted);
        (writing, len)
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

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let machine = self.machine;
        machine.let_go_of_guard(self.pfn);
        if local::count_pins(machine, -1).is_none() {
            machine.count_pins(-1);
        }
    }
}
