//! Memory that the process maps for the cache, without a file.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use pageout_engine::PAGE_SIZE;

const PAGE: usize = PAGE_SIZE as usize;

/// Memory that was mapped, and goes with its owner.
pub(crate) struct Map {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is the only owner of what it has mapped, which any thread may use or unmap.
unsafe impl Send for Map {}
// SAFETY: by a shared reference one can only ask where it is.
unsafe impl Sync for Map {}

impl Map {
    /// Zeroes, which take memory where they are first touched. `in_child`: what `madvise` says a forked child finds there.
    pub(crate) fn new(bytes: usize, in_child: libc::c_int) -> io::Result<Map> {
        Map::of(bytes, libc::PROT_READ | libc::PROT_WRITE, in_child)
    }

    pub(crate) fn of(bytes: usize, protection: libc::c_int, in_child: libc::c_int) -> io::Result<Map> {
        let bytes = bytes.next_multiple_of(PAGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address that the system chooses: nothing that was there before changes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).expect("the system maps nothing at zero");
        let map = Map { at, bytes };
        map.advise(0..bytes, in_child)?;
        Ok(map)
    }

    /// Zeroes, which take memory page by page where they are first written.
    pub(crate) fn of_small_pages(bytes: usize) -> io::Result<Map> {
        let map = Map::of(bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MADV_NORMAL)?;
        // A system without huge pages refuses that, and has small ones alone.
        let _ = map.advise(0..map.bytes, libc::MADV_NOHUGEPAGE);
        Ok(map)
    }

    pub(crate) fn advise(&self, range: Range<usize>, advice: libc::c_int) -> io::Result<()> {
        let (at, bytes) = self.part(range);
        // SAFETY: the range is of this mapping; the advice that is given here changes what a child sees, or the size of the system's pages.
        told(unsafe { libc::madvise(at, bytes, advice) })
    }

    /// Puts memory at addresses of the mapping that have none.
    pub(crate) fn fill(&self, range: Range<usize>) -> io::Result<()> {
        let (at, bytes) = self.part(range);
        // SAFETY: the range is of this mapping, which only its owner uses.
        told(unsafe { libc::mprotect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) })
    }

    /// Gives the memory of a part to the system. It reads as zeroes then, and takes memory where it is touched next.
    pub(crate) fn give_back(&self, range: Range<usize>) -> io::Result<()> {
        let (at, bytes) = self.part(range);
        // SAFETY: the range is of this mapping. Its contents become zeroes. Either the caller has all frames in it, which are closed, so that no reference
        // leads there, and a thread that still copies from one discards its copy. Or they are atomic words, and zeroes before.
        told(unsafe { libc::madvise(at, bytes, libc::MADV_DONTNEED) })
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Where a page of it begins.
    pub(crate) fn page(&self, page: usize) -> *mut u8 {
        self.part(page * PAGE..(page + 1) * PAGE).0.cast()
    }

    /// Where a part of it begins, and its bytes.
    pub(crate) fn part(&self, range: Range<usize>) -> (*mut libc::c_void, usize) {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} is not part of a mapping");
        // SAFETY: the part begins within the mapping, by the line above.
        (unsafe { self.at.as_ptr().add(range.start) }.cast(), range.len())
    }
}

fn told(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and any reference into it borrows its owner.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
