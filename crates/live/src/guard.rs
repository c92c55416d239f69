//! [`PageRef`]: a page that is read in place.

use std::ops::Deref;

use crate::arena::Pin;
use crate::error::Error;
use crate::file::Inner as File;
use crate::local;

/// A page of a file, held in memory: [`crate::File::page`].
pub struct PageRef<'a> {
    file: &'a File,
    pin: Pin<'a>,
    len: usize,
}

impl<'a> PageRef<'a> {
    /// Takes over a pin of a frame that holds so many bytes of a page.
    #[inline]
    pub(crate) fn new(file: &'a File, pin: Pin<'a>, len: usize) -> Result<PageRef<'a>, Error> {
        /// So many more pins of a thread are counted before anybody looks how many there are in all.
        const COUNTED_AT_ONCE: i64 = 16;
        let page = PageRef { file, pin, len };
        let mut pins = 0;
        local::with_ring(&file.memory.machine, |ring| pins = ring.count_pins(1));
        if pins % COUNTED_AT_ONCE == 0 { page.check_pins() } else { Ok(page) }
    }

    /// Too many pages that can't be evicted would leave no room for others.
    #[cold]
    fn check_pins(self) -> Result<PageRef<'a>, Error> {
        let machine = &self.file.memory.machine;
        let pinned = machine.lock()?.pinned();
        if pinned <= machine.pins_max {
            Ok(self)
        } else {
            Err(Error::Pinned { pinned, most: machine.pins_max })
        }
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
        let machine = &self.file.memory.machine;
        if !local::with_ring(machine, |ring| _ = ring.count_pins(-1)) {
            // A thread that has read nothing itself, or is about to end.
            if let Ok(mut locked) = machine.lock() {
                locked.pins_of_ended -= 1;
            }
        }
    }
}
