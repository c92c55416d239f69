//! One access packed in a word, and the stream that everything in this crate produces.
//!
//! ```text
//!   63      62 ............ 40   39 ................................ 0
//!   write   object (23 bits)     page within the object (40 bits)
//! ```
//!
//! With one word per access, a chunk of a few thousand stays in the first-level cache while the simulator walks it.

use std::sync::Arc;

use crate::trace::{PlacedCall, Requests, TraceError};

const WRITE: u64 = 1 << 63;
const OBJECT_SHIFT: u32 = 40;
const PAGE_MASK: u64 = (1 << OBJECT_SHIFT) - 1;

/// One 4 KiB access: which object of the workload, which page in it, read or write. Packed in a `u64`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access(u64);

impl Access {
    /// The maximum number of objects of a workload: object numbers are below this.
    pub const OBJECTS_MAX: u32 = 1 << 23;
    /// The maximum number of pages of an object (4 PiB of 4 KiB pages): page numbers are below this.
    pub const PAGES_MAX: u64 = 1 << OBJECT_SHIFT;

    /// Packs an access. Readers and generators check their ranges once, where they learn them.
    ///
    /// # Panics
    /// When `object` or `page` does not fit: a page number spilling into the object bits would be a wrong access.
    #[inline] // readers and streams make one of each record, and the asserts keep it from being inlined unasked
    pub const fn new(object: u32, page: u64, write: bool) -> Access {
        assert!(object < Access::OBJECTS_MAX, "object number is below 2^23");
        assert!(page < Access::PAGES_MAX, "page number is below 2^40");
        Access((write as u64) << 63 | (object as u64) << OBJECT_SHIFT | page)
    }

    /// Number of the object in the workload, from 0.
    pub const fn object(self) -> u32 {
        ((self.0 & !WRITE) >> OBJECT_SHIFT) as u32
    }

    /// Number of the page in the object, from 0.
    pub const fn page(self) -> u64 {
        self.0 & PAGE_MASK
    }

    /// Returns whether the access writes.
    pub const fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    /// This access, writing if it did or `write` says so.
    pub const fn or_write(self, write: bool) -> Access {
        Access(self.0 | (write as u64) << 63)
    }

    /// This access as a read.
    pub const fn as_read(self) -> Access {
        Access(self.0 & !WRITE)
    }

    /// The packed word: bit 63 write, bits 40..63 object, bits 0..40 page. Every word is a valid access.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Access::bits`].
    pub const fn from_bits(bits: u64) -> Access {
        Access(bits)
    }
}

/// A stream of accesses, pulled in chunks so that a trace of 100 M records streams in constant memory.
pub trait AccessStream: Send {
    /// Appends up to `max` accesses to `out` and returns how many; `Ok(0)` means the end (or `max` was 0).
    ///
    /// On an error, what was read before it may have been appended. The stream is then over: a further call may return
    /// anything but does not panic.
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError>;

    /// Accesses in all from the start of the stream, when known before reading (for progress bars).
    fn len_hint(&self) -> Option<u64>;

    /// What the records read so far say besides their accesses; `None` of a stream that has no records.
    fn requests(&self) -> Option<Requests> {
        None
    }

    /// Returns the pages that deletes ended since the last call, in order, each with the number of the access that follows, counted from the start of
    /// the stream. None is beyond the returned accesses.
    fn take_removals(&mut self) -> Vec<PlacedCall> {
        Vec::new()
    }
}

impl<S: AccessStream + ?Sized> AccessStream for Box<S> {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        (**self).fill(out, max)
    }

    fn len_hint(&self) -> Option<u64> {
        (**self).len_hint()
    }

    fn requests(&self) -> Option<Requests> {
        (**self).requests()
    }

    fn take_removals(&mut self) -> Vec<PlacedCall> {
        (**self).take_removals()
    }
}

/// Accesses that are in memory already. Its copies share them and go on from where each is.
#[derive(Clone, Debug)]
pub struct InMemory {
    accesses: Arc<[Access]>,
    next: usize,
}

impl InMemory {
    /// A stream from the first of them on.
    pub fn new(accesses: Arc<[Access]>) -> InMemory {
        InMemory { accesses, next: 0 }
    }
}

impl AccessStream for InMemory {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let count = max.min(self.accesses.len() - self.next);
        out.extend_from_slice(&self.accesses[self.next..self.next + count]);
        self.next += count;
        Ok(count)
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.accesses.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_survive_packing_at_their_limits() {
        for object in [0, 1, Access::OBJECTS_MAX - 1] {
            for page in [0, 1, Access::PAGES_MAX - 1] {
                for write in [false, true] {
                    let access = Access::new(object, page, write);
                    assert_eq!((access.object(), access.page(), access.is_write()), (object, page, write));
                    assert_eq!(Access::from_bits(access.bits()), access);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "page number")]
    fn a_page_number_never_spills_into_the_object() {
        Access::new(0, Access::PAGES_MAX, false);
    }
}
