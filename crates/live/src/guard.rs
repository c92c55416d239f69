//! [`PageRef`]: a page that is read in place, and [`PageMut`]: one that is written there.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use pageout_engine::{PAGE_SIZE, Pfn};

use crate::arena::{Held, Pin, Writing};
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

impl Zeroes {
    pub(crate) fn page(&self) -> &[u8; PAGE_SIZE as usize] {
        &self.0
    }
}

impl Deref for Zeroes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A page of a file or a region, held in memory: [`crate::File::page`], [`crate::Region::page`].
pub struct PageRef<'a> {
    kept: Kept<'a>,
    len: usize,
}

/// What keeps the bytes of a page.
enum Kept<'a> {
    /// A place in the line of a thread. Places are counted only on request.
    Place(Held<'a>),
    /// A pin of its frame, which is counted.
    Pin(&'a LiveMachine, Pin<'a>),
    /// Nothing: it was never written, no frame holds it, and it reads as zeroes.
    Zeroes,
}

impl<'a> PageRef<'a> {
    /// Pins of a thread, if a place defines what it holds: places are counted only on request.
    pub(crate) const UNCOUNTED: i64 = 1;

    /// Takes over a frame that a place holds, with this many bytes of a page.
    #[inline(always)]
    pub(crate) fn held(held: Held<'a>, len: usize) -> PageRef<'a> {
        PageRef { kept: Kept::Place(held), len }
    }

    /// Takes over a pin of a frame that holds this many bytes of a page, the last of this many pins of this thread.
    pub(crate) fn new(
        (machine, path): (&'a LiveMachine, &Path),
        pin: Pin<'a>,
        len: usize,
        pins: i64,
    ) -> Result<PageRef<'a>, Error> {
        let page = PageRef { kept: Kept::Pin(machine, pin), len };
        if pins % COUNTED_AT_ONCE == 0 {
            check_pins(machine, path)?;
        }
        Ok(page)
    }

    /// A page of this many zeroes, which no frame holds.
    pub(crate) fn zeroes(len: usize) -> PageRef<'a> {
        PageRef { kept: Kept::Zeroes, len }
    }

    /// The frame, unless none holds the page; and the bytes of the page.
    pub(crate) fn parts(&self, machine: &LiveMachine) -> (Option<Pfn>, usize) {
        let frame = match &self.kept {
            Kept::Place(held) => Some(machine.arena.held_frame(held)),
            Kept::Pin(_, pin) => Some(pin.pfn()),
            Kept::Zeroes => None,
        };
        (frame, self.len)
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
        let bytes = match &self.kept {
            Kept::Place(held) => held.bytes(),
            Kept::Pin(_, pin) => pin.bytes(),
            Kept::Zeroes => &ZEROES[..],
        };
        &bytes[..self.len]
    }
}

/// A pin of a guard is about to go.
#[cold]
fn uncount(machine: &LiveMachine, pin: &Pin<'_>) {
    if pin.is_hold() {
        return;
    }
    machine.let_go_of_guard(pin.pfn());
    if local::count_pins(machine, -1).is_none() {
        machine.count_pins(-1);
    }
}

impl Drop for PageRef<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Kept::Pin(machine, pin) = &self.kept {
            uncount(machine, pin);
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
