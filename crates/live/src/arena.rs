//! The arena: memory of all frames, and their gates, mapped once for the lifetime of the [`crate::Memory`].
//!
//! Frames are named by number. Nothing here knows what is in one: who reads a frame holds a pin on its gate, or throws away what it has read.
//! A forked child gets neither: frames are not there at all, and gates are zeroes, which is closed. So it finds nothing, and
//! no thread of its parent's ever touches its memory.
//!
//! Frames of slow memory have the highest numbers. Between the two nodes are numbers that no frame has, and addresses without memory.

use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pageout_engine::{PAGE_SIZE, Pfn};

use crate::copy::{copy_out, fetch};
use crate::gate::{Gate, Unpinned};
use crate::holds::{Hold, Holds};
use crate::map::{Done, Fault, Mapping, Moved, Place, Refused, Tokens};
use crate::mmap::Map;
use crate::node::Spin;

const PAGE: usize = PAGE_SIZE as usize;
/// Frames of a request whose locations take no allocation: those of a window of readahead.
const VECTORS_INLINE: usize = 64;
/// Fewer frames are not worth a setting of their own, as each costs the system a mapping.
const NARROWED_FRAMES: usize = 16;
/// Frames of one request: half as many vectors as a system call takes.
const VECTORS_MAX: usize = 512;

/// Frames, by number.
pub(crate) struct Arena {
    frames: Map,
    gates: Map,
    pub(crate) holds: Holds,
    count: usize,
    /// Frames are of slow memory from this number on.
    slow_from: u32,
    /// How long it takes to come to one of those, where that is emulated.
    delay: Option<Spin>,
    /// Times that a frame could not be closed because of pins.
    kept_by_pins: AtomicU64,
    /// Of [`OwnedPin`]s.
    owned_pins: AtomicU64,
    /// One page that says whether this is the process that has mapped it.
    is_ours: Map,
    /// Frames that stand for pages of mapped regions.
    pub(crate) tokens: Tokens,
}

impl Arena {
    /// The frames of each node, the fast one's first.
    pub(crate) fn new(nodes: &[Range<u32>], delay: Option<Spin>) -> io::Result<Arena> {
        let count = nodes.iter().map(|frames| frames.end as usize).max().unwrap_or(0);
        let frames = Map::of(count * PAGE, libc::PROT_NONE, libc::MADV_DONTFORK)?;
        for node in nodes {
            let bytes = bytes_of(node);
            frames.fill(bytes.clone())?;
            // Fewer translations for the processor to hold. A system that has no huge pages says no, and nothing is lost.
            let _ = frames.advise(bytes, libc::MADV_HUGEPAGE);
        }
        let gates = Map::new(count * size_of::<Gate>(), libc::MADV_WIPEONFORK)?;
        let slow_from = nodes.get(1).map_or(u32::MAX, |frames| frames.start);
        let is_ours = Map::new(PAGE, libc::MADV_WIPEONFORK)?;
        let [kept_by_pins, owned_pins] = [(); 2].map(|()| AtomicU64::new(0));
        let arena = Arena {
            frames,
            gates,
            holds: Holds::new(),
            count,
            slow_from,
            delay,
            kept_by_pins,
            owned_pins,
            is_ours,
            tokens: Tokens::new(count),
        };
        arena.ours().store(true, Ordering::Relaxed);
        Ok(arena)
    }

    /// The addresses of frames.
    pub(crate) fn addresses(&self, frames: &Range<u32>) -> Range<usize> {
        let (start, bytes) = self.frames.part(bytes_of(frames));
        start.addr()..start.addr() + bytes
    }

    /// Where the frames are, and how many bytes they have.
    pub(crate) fn place(&self) -> (*const u8, usize) {
        (self.frames.start(), self.count * PAGE)
    }

    /// Gives the memory of frames to the system. They are closed, and the caller's until it calls [`Arena::take_from_system`].
    pub(crate) fn give_to_system(&self, runs: &[Range<u32>]) -> io::Result<()> {
        for run in runs {
            run.clone().for_each(|pfn| self.assert_closed(Pfn(pfn)));
            // A page that is touched next to it must not make the system fill all of a huge page.
            if run.len() >= NARROWED_FRAMES {
                let _ = self.frames.advise(bytes_of(run), libc::MADV_NOHUGEPAGE);
            }
            self.frames.give_back(bytes_of(run))?;
        }
        Ok(())
    }

    /// Frames whose memory the system has got will be used again.
    pub(crate) fn take_from_system(&self, runs: &[Range<u32>]) {
        // The place of a token must not get memory as part of a huge page.
        for run in runs.iter().filter(|_| !self.tokens.is_used()) {
            let _ = self.frames.advise(bytes_of(run), libc::MADV_HUGEPAGE);
        }
    }

    /// Makes room for mapped regions. Frames have no new huge pages from then on: the places of tokens would get memory as parts of them.
    pub(crate) fn enable_tokens(&self) -> Result<(), Refused> {
        if self.tokens.enable()? {
            let _ = self.frames.advise(0..self.frames.bytes(), libc::MADV_NOHUGEPAGE);
        }
        Ok(())
    }

    /// Gives the memory of the place of a token to the system.
    pub(crate) fn release_place(&self, pfn: Pfn) {
        // If the system refuses it, a page more than the budget has memory.
        let _ = self.frames.give_back(bytes_of(&(pfn.0..pfn.0 + 1)));
    }

    /// The page of a frame goes to another one. Returns whether the frame is a token, and has moved.
    pub(crate) fn move_token(&self, from: Pfn, to: Pfn) -> bool {
        if !self.tokens.is_token(from) {
            return false;
        }
        match self.tokens.relocate(from, to) {
            Moved::Token => {}
            Moved::ToUsedPlace => self.release_place(to),
            Moved::InArena => {
                self.assert_closed(to);
                // SAFETY: both are pages of the mapping, and another one each. Their gates are closed.
                unsafe { std::ptr::copy_nonoverlapping(self.frame(from), self.frame(to), PAGE) };
            }
        }
        self.gate(to).open();
        true
    }

    /// A device has written the pages of these frames. Its entries would count as memory of the process.
    pub(crate) fn forget_aliases(&self, frames: &[Pfn]) {
        if !self.tokens.is_used() {
            return;
        }
        let mut pages: Vec<_> = frames.iter().filter_map(|&pfn| self.tokens.mapped(pfn)).collect();
        pages.sort_unstable_by_key(|(mapping, page)| (Arc::as_ptr(mapping).addr(), *page));
        for run in pages.chunk_by(|(of, page), (other, next)| Arc::ptr_eq(of, other) && page + 1 == *next) {
            let (mapping, first) = &run[0];
            // If the system refuses it, the entries stay until the pages leave memory.
            let _ = mapping.unmap_alias(*first..first + run.len() as u64);
        }
    }

    /// The location of a frame's page: in the arena, or if the frame is a token, where that says. A device reads a page there that is being written, and writes a
    /// page there that is being read.
    fn place_of(&self, pfn: Pfn) -> *mut u8 {
        match self.tokens.place(pfn) {
            Place::Arena | Place::Staged(None) => {
                self.tokens.note_used(pfn);
                self.frame(pfn)
            }
            Place::Staged(Some(at)) => at,
            Place::Mapped(mapping, page) => mapping.alias(page),
            Place::Zeroes => {
                self.tokens.note_used(pfn);
                // SAFETY: a frame of the mapping, which is a token: no reference leads there.
                unsafe { std::ptr::write_bytes(self.frame(pfn), 0, PAGE) };
                self.frame(pfn)
            }
        }
    }

    /// Copies the page of a frame that is closed, or that the caller checks afterwards.
    pub(crate) fn copy_page(&self, pfn: Pfn, to: &mut [u8; PAGE]) {
        match self.tokens.place(pfn) {
            Place::Arena | Place::Staged(None) => self.copy_out(pfn, 0, to),
            // SAFETY: a staging page, which belongs to the token alone, and is only written before its frame's gate opens.
            Place::Staged(Some(at)) => unsafe { copy_out(at, to) },
            Place::Zeroes => to.fill(0),
            Place::Mapped(mapping, page) => {
                mapping
                    .read_page(page, to)
                    .expect("a memfd has its pages in memory, or the system has no memory");
            }
        }
    }

    /// Fills the staging page of a token, whose gate is closed.
    pub(crate) fn stage(&self, pfn: Pfn, fill: impl FnOnce(&mut [u8])) {
        self.assert_closed(pfn);
        let at = match self.tokens.place(pfn) {
            Place::Staged(at) => at.unwrap_or_else(|| self.frame(pfn)),
            _ => panic!("{pfn:?} has no staging page, and is filled"),
        };
        // SAFETY: a staging page, or the token's place in the arena: a page of a mapping that lives as long as `self`, initialised, and this token's alone. Its
        // gate is closed, so no code reads it, and only the caller fills it: it has the engine's lock.
        fill(unsafe { std::slice::from_raw_parts_mut(at, PAGE) });
    }

    /// Gives the user of a mapped region the page of a token, whose gate the caller has, and wakes who waits for it. Returns whether the user's mapping
    /// exists.
    pub(crate) fn map_page(
        &self,
        writing: &Writing<'_>,
        mapping: &Mapping,
        fault: Fault,
        may_write: bool,
    ) -> io::Result<Done> {
        let page = mapping.page_at(fault.address);
        let (pfn, at) = (writing.pfn, mapping.user_page(page));
        // An earlier fault on it could not be served.
        mapping.find_again(page..page + 1);
        let from = match self.tokens.place(pfn) {
            Place::Arena => panic!("{pfn:?} is no token, and its page is faulted on"),
            Place::Mapped(of, its) => {
                assert!(std::ptr::eq(&*of, mapping) && its == page, "{pfn:?} is the token of page {its}");
                self.tokens.stays(pfn);
                if fault.is_missing && mapping.restore(page, may_write)? {
                    return Ok(Done::Yes);
                }
                return if may_write { mapping.faults.unprotect(at) } else { mapping.faults.wake(at) };
            }
            Place::Zeroes => crate::guard::ZEROES.page(),
            // SAFETY: a staging page, which is aligned, initialised, and this token's alone. Nothing writes it while the caller has the gate.
            Place::Staged(Some(at)) => unsafe { &*at.cast::<[u8; PAGE]>() },
            // SAFETY: a frame, which is aligned and initialised, and which nothing writes while the caller has its gate.
            Place::Staged(None) => unsafe { &*self.frame(pfn).cast::<[u8; PAGE]>() },
        };
        let done = mapping.faults.fill(at, from, !may_write)?;
        if done == Done::Yes && self.tokens.has_mapped(pfn) {
            self.release_place(pfn);
        }
        Ok(done)
    }

    /// Returns true if there is slow memory.
    pub(crate) fn has_slow(&self) -> bool {
        self.slow_from != u32::MAX
    }

    /// Returns true if a frame is of slow memory.
    #[inline(always)]
    pub(crate) fn is_slow(&self, pfn: Pfn) -> bool {
        pfn.0 >= self.slow_from
    }

    /// An access to a frame of slow memory waits.
    #[inline(always)]
    fn come_to(&self, pfn: Pfn) {
        if self.is_slow(pfn) {
            self.wait_for_slow();
        }
    }

    #[cold]
    fn wait_for_slow(&self) {
        self.delay.iter().for_each(|delay| delay.wait());
    }

    fn ours(&self) -> &AtomicBool {
        // SAFETY: the page is mapped for as long as `self`, is zeroes or what was stored here, and is only ever used as this.
        unsafe { &*self.is_ours.start().cast::<AtomicBool>() }
    }

    /// Returns true if this process has made it; a forked child has not.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.ours().load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn gates(&self) -> &[Gate] {
        // SAFETY: the mapping is large enough for this many gates, is aligned to a page, lives as long as `self`, and is only ever used as gates. A
        // gate is an atomic word, for which any bits are valid, zeroes included; all change it through shared references.
        unsafe { std::slice::from_raw_parts(self.gates.start().cast::<Gate>(), self.count) }
    }

    /// The gate of a frame.
    #[inline(always)]
    pub(crate) fn gate(&self, pfn: Pfn) -> &Gate {
        &self.gates()[pfn.0 as usize]
    }

    /// The engine claims a frame from its readers; false if a reader has it.
    pub(crate) fn close(&self, pfn: Pfn) -> bool {
        let gate = self.gate(pfn);
        let mut is_closed = gate.close();
        if is_closed && self.holds.names(pfn.0) {
            gate.open();
            is_closed = false;
        }
        if !is_closed && gate.is_open() {
            self.kept_by_pins.fetch_add(1, Ordering::Relaxed);
        }
        if !is_closed && self.tokens.is_used() && gate.is_written() {
            self.tokens.note_served(pfn);
        }
        if is_closed && self.tokens.is_used() {
            if self.tokens.is_kept_by_use(pfn) {
                gate.open();
                return false;
            }
            self.tokens.protect(pfn);
        }
        is_closed
    }

    /// See [`Arena::close`].
    pub(crate) fn kept_by_pins(&self) -> u64 {
        self.kept_by_pins.load(Ordering::Relaxed)
    }

    /// Where a frame is.
    #[inline(always)]
    fn frame(&self, pfn: Pfn) -> *mut u8 {
        let at = pfn.0 as usize;
        assert!(at < self.count, "there is no frame {at}");
        // SAFETY: the frame lies within the mapping, by the line above.
        unsafe { self.frames.start().add(at * PAGE) }
    }

    /// Frames are written while they are closed: by the owner that got them from the engine, which opens them when it is done.
    fn assert_closed(&self, pfn: Pfn) {
        assert!(!self.gate(pfn).is_open(), "{pfn:?} is written while others may look at it");
    }

    /// Copies bytes of a frame, whatever becomes of it meanwhile.
    #[inline(always)]
    pub(crate) fn copy_out(&self, pfn: Pfn, offset: usize, to: &mut [u8]) {
        assert!(offset + to.len() <= PAGE, "a copy ends within its frame");
        self.come_to(pfn);
        // SAFETY: the bytes lie in the frame by the line above, and the frame in a mapping that lives as long as `self`. No reference that
        // can be written through leads there, so that `to` is other memory.
        unsafe { copy_out(self.frame(pfn).add(offset), to) };
    }

    /// Has the processor fetch the beginning of a frame, while something else is awaited.
    #[inline(always)]
    pub(crate) fn fetch(&self, pfn: Pfn) {
        fetch(self.frame(pfn));
    }

    /// Pins a frame. Whose page is in it is to be looked up again afterwards.
    #[inline(always)]
    pub(crate) fn pin(&self, pfn: Pfn) -> Result<Pin<'_>, Unpinned> {
        self.gate(pfn).pin()?;
        self.come_to(pfn);
        Ok(Pin { arena: self, pfn, hold: None })
    }

    /// The same by a place in a line of this thread's own, if it has one and a place is left.
    #[inline(always)]
    pub(crate) fn hold(&self, pfn: Pfn, line: Option<usize>) -> Result<Pin<'_>, Unpinned> {
        let Some(hold) = line.and_then(|line| self.holds.try_name(line, pfn.0)) else { return self.pin(pfn) };
        let pin = Pin { arena: self, pfn, hold: Some(hold) };
        let gate = self.gate(pfn);
        if !gate.is_open_after_hold() {
            return Err(if gate.is_written() { Unpinned::Written } else { Unpinned::Closed });
        }
        self.come_to(pfn);
        Ok(pin)
    }

    /// Holds an open frame by a place in a line of this thread's own, if a place is left. The result has two words, which a caller keeps in registers: in
    /// memory, a processor waits for words that are written one by one and read in pairs.
    #[inline(always)]
    pub(crate) fn hold_by_place(&self, pfn: Pfn, line: usize) -> Option<Held<'_>> {
        let at = NonNull::new(self.frame(pfn))?;
        let held = Held { at, hold: self.holds.try_name(line, pfn.0)? };
        if !self.gate(pfn).is_open_after_hold() {
            return None;
        }
        self.come_to(pfn);
        Some(held)
    }

    /// The frame that a place holds.
    pub(crate) fn held_frame(&self, held: &Held<'_>) -> Pfn {
        Pfn(((held.at.as_ptr().addr() - self.frames.start().addr()) / PAGE) as u32)
    }

    /// The page in a frame will be written to, with no other writer or reader. The caller must look up again afterwards which page is in the frame.
    #[inline]
    pub(crate) fn begin_write(&self, pfn: Pfn) -> Result<Writing<'_>, Unpinned> {
        self.gate(pfn).begin_write()?;
        let writing = WritingIn { arena: self, pfn };
        if self.holds.names(pfn.0) {
            return Err(Unpinned::Held);
        }
        self.come_to(pfn);
        Ok(writing)
    }

    /// Returns true if a frame has no holder and no writer at the moment.
    pub(crate) fn is_free_to_write(&self, pfn: Pfn) -> bool {
        !self.gate(pfn).is_taken() && !self.holds.names(pfn.0)
    }

    /// The same of a closed frame, which the caller has from the engine, and which holds nothing yet.
    pub(crate) fn fill(&self, pfn: Pfn) -> Writing<'_> {
        self.gate(pfn).take_over();
        if !self.tokens.is_token(pfn) {
            self.tokens.note_used(pfn);
        }
        WritingIn { arena: self, pfn }
    }

    /// How many pins there are that outlive their thread.
    pub(crate) fn owned_pins(&self) -> u64 {
        self.owned_pins.load(Ordering::Relaxed)
    }

    /// Counts a hold that outlives its thread, or one fewer. Returns how many there are.
    pub(crate) fn count_owned_pins(&self, more: i64) -> u64 {
        self.owned_pins.fetch_add(more as u64, Ordering::Relaxed).wrapping_add(more as u64)
    }

    /// What is in a frame.
    ///
    /// # Safety
    /// As long as it is borrowed, there is a pin on the frame, or a place that names it.
    unsafe fn pinned(&self, pfn: Pfn) -> &[u8] {
        // SAFETY: a frame is a page of a mapping that lives as long as `self`; all of it is initialised, as the system hands out zeroes. It is not
        // written meanwhile: `close` fails as long as a pin is on the gate or a place names the frame, and code that writes a frame asserts that it
        // is closed (`assert_closed`).
        unsafe { std::slice::from_raw_parts(self.frame(pfn), PAGE) }
    }

    /// Copies a frame to another. Both are closed.
    pub(crate) fn copy(&self, from: Pfn, to: Pfn) {
        assert_ne!(from, to, "a frame is copied to itself");
        self.assert_closed(to);
        self.tokens.note_used(to);
        self.come_to(from);
        // SAFETY: both are pages of the mapping, and another one each. Their gates are closed: who still copies from one throws that away.
        unsafe { std::ptr::copy_nonoverlapping(self.frame(from), self.frame(to), PAGE) };
    }

    /// Writes bytes to a frame from an offset on. The frame is closed, and stays closed: it is the engine's own.
    pub(crate) fn copy_in(&self, pfn: Pfn, offset: usize, from: &[u8]) {
        assert!(offset + from.len() <= PAGE, "a copy ends within its frame");
        self.assert_closed(pfn);
        self.tokens.note_used(pfn);
        // SAFETY: the bytes lie in the frame by the line above, and the frame in a mapping that lives as long as `self`. Its gate is closed, so no
        // reference leads there, and `from` is other memory. A thread that still copies from the frame discards the copy.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.frame(pfn).add(offset), from.len()) };
    }

    /// Fills a frame with zeroes from an offset on. It is closed.
    pub(crate) fn zero(&self, pfn: Pfn, from: usize) {
        assert!(from <= PAGE, "a frame ends before that");
        self.assert_closed(pfn);
        self.tokens.note_used(pfn);
        // SAFETY: the bytes lie in the frame, whose gate is closed: who still copies from it throws that away.
        unsafe { std::ptr::write_bytes(self.frame(pfn).add(from), 0, PAGE - from) };
    }

    /// Locations of frames that a file will be read into. The frames are closed.
    pub(crate) fn vectors(&self, frames: &[Pfn]) -> Vectors {
        match frames {
            [pfn] => Vectors::One(self.vector(*pfn)),
            _ => Vectors::Many(frames.iter().take(VECTORS_MAX).map(|&pfn| self.vector(pfn)).collect()),
        }
    }

    /// The location of nothing.
    const NO_PLACE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

    /// The location of a frame that a file will be read into. It is closed.
    #[inline]
    fn vector(&self, pfn: Pfn) -> libc::iovec {
        self.assert_closed(pfn);
        libc::iovec { iov_base: self.place_of(pfn).cast(), iov_len: PAGE }
    }

    /// Locations of frames that will be written to a file. The engine keeps each in its place until the write has ended.
    pub(crate) fn vectors_to_write(&self, frames: &[Pfn]) -> Vectors {
        let vector = |&pfn: &Pfn| libc::iovec { iov_base: self.place_of(pfn).cast(), iov_len: PAGE };
        match frames {
            [pfn] => Vectors::One(vector(pfn)),
            _ => Vectors::Many(frames.iter().take(VECTORS_MAX).map(vector).collect()),
        }
    }

    /// Writes frames to a file from an offset on, less so many bytes of the first; returns how many bytes it has taken.
    pub(crate) fn write_from(
        &self,
        frames: &[Pfn],
        most: usize,
        file: libc::c_int,
        offset: u64,
    ) -> io::Result<usize> {
        let mut vectors = self.vectors_to_write(frames);
        let vectors = vectors.cut(most);
        let offset =
            libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: each vector is a frame of the mapping, or the place of its page (`place_of`), or the beginning of one. The kernel only reads it, and it stays
        // until the write has ended. Others may write there meanwhile: then the page is written once more. The kernel checks everything else.
        let written = unsafe { libc::pwritev(file, vectors.as_ptr(), vectors.len() as libc::c_int, offset) };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }

    /// Reads a file from an offset into frames, which are closed; returns how many bytes it has given.
    pub(crate) fn read_into(
        &self,
        frames: &[Pfn],
        skip: usize,
        file: libc::c_int,
        offset: u64,
    ) -> io::Result<usize> {
        let (frames, mut room) = (&frames[skip / PAGE..], [Arena::NO_PLACE; VECTORS_INLINE]);
        let many;
        let vectors = if frames.len() <= VECTORS_INLINE {
            for (place, &pfn) in room.iter_mut().zip(frames) {
                *place = self.vector(pfn);
            }
            &room[..frames.len()]
        } else {
            many = self.vectors(frames);
            many.as_slice()
        };
        let offset =
            libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: each vector is a frame of the mapping, or the staging page of one, whose gate is closed. So no code relies on its contents, and the kernel checks everything else.
        let read = unsafe { libc::preadv(file, vectors.as_ptr(), vectors.len() as libc::c_int, offset) };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }
}

fn bytes_of(frames: &Range<u32>) -> Range<usize> {
    frames.start as usize * PAGE..frames.end as usize * PAGE
}

/// Locations of frames, in the format of system calls.
pub(crate) enum Vectors {
    /// Most reads are of a page.
    One(libc::iovec),
    /// One after the other.
    Many(Box<[libc::iovec]>),
}

// SAFETY: addresses, which can be used only by `unsafe`.
unsafe impl Send for Vectors {}

impl Vectors {
    pub(crate) fn as_slice(&self) -> &[libc::iovec] {
        match self {
            Vectors::One(one) => std::slice::from_ref(one),
            Vectors::Many(many) => many,
        }
    }

    /// The first bytes of it, so many at most.
    fn cut(&mut self, most: usize) -> &[libc::iovec] {
        let vectors = match self {
            Vectors::One(one) => std::slice::from_mut(one),
            Vectors::Many(many) => many,
        };
        let (mut left, mut used) = (most, 0);
        while left > 0 && used < vectors.len() {
            vectors[used].iov_len = vectors[used].iov_len.min(left);
            left -= vectors[used].iov_len;
            used += 1;
        }
        &vectors[..used]
    }
}

/// A frame whose page is being written to: no other code reads it, writes it, or takes it away as long as this exists. It borrows the arena, or owns a
/// share of it.
pub(crate) struct WritingIn<A: Deref<Target = Arena>> {
    arena: A,
    pfn: Pfn,
}

/// One that borrows the arena.
pub(crate) type Writing<'a> = WritingIn<&'a Arena>;
/// One that any thread may have, for any time.
pub(crate) type OwnedWriting = WritingIn<Arc<Arena>>;

impl Writing<'_> {
    /// The same without a borrow.
    pub(crate) fn into_owned(self, arena: &Arc<Arena>) -> OwnedWriting {
        assert!(std::ptr::eq(self.arena, &**arena), "a frame of another arena");
        let pfn = self.pfn;
        std::mem::forget(self);
        WritingIn { arena: Arc::clone(arena), pfn }
    }
}

impl<A: Deref<Target = Arena>> WritingIn<A> {
    pub(crate) fn pfn(&self) -> Pfn {
        self.pfn
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a frame is a page of a mapping that lives as long as the arena; all of it is initialised, as the system hands out zeroes. The gate
        // shows that it is being written to, so that no other reference to it exists, and only `bytes_mut` writes, which borrows this. Earlier
        // readers that still copy discard their copy.
        unsafe { std::slice::from_raw_parts(self.arena.frame(self.pfn), PAGE) }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; and this is the only such value of the frame, which is borrowed for as long. A device that reads the frame meanwhile reads
        // it once more later.
        unsafe { std::slice::from_raw_parts_mut(self.arena.frame(self.pfn), PAGE) }
    }
}

impl<A: Deref<Target = Arena>> Drop for WritingIn<A> {
    #[inline]
    fn drop(&mut self) {
        self.arena.gate(self.pfn).end_write();
    }
}

/// A frame that stays open, and therefore unchanged, as long as this exists: a place says so.
pub(crate) struct Held<'a> {
    /// The frame, in an arena that lives as long as its places.
    at: NonNull<u8>,
    hold: &'a Hold,
}

// SAFETY: any thread may read a frame that is held, and take the name out of a place.
unsafe impl Send for Held<'_> {}
// SAFETY: by a shared reference one can only read the frame.
unsafe impl Sync for Held<'_> {}

impl Held<'_> {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `at` is a frame of an arena, by `hold_by_place`, which also borrows its places for longer than this. All of the frame is initialised, as the
        // system hands out zeroes. It is not written while a place names it: `close` fails, as for `pinned`.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), PAGE) }
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.hold.let_go();
    }
}

/// A frame that stays open, and therefore unchanged, as long as this exists.
pub(crate) struct Pin<'a> {
    arena: &'a Arena,
    pfn: Pfn,
    /// The place that says so; none: the gate does.
    hold: Option<&'a Hold>,
}

impl Pin<'_> {
    /// Returns true if a place says so, and the gate does not.
    #[inline(always)]
    pub(crate) fn is_hold(&self) -> bool {
        self.hold.is_some()
    }

    pub(crate) fn pfn(&self) -> Pfn {
        self.pfn
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: this is a pin on it.
        unsafe { self.arena.pinned(self.pfn) }
    }

    /// The same pin, without a thread.
    pub(crate) fn into_owned(self, arena: &Arc<Arena>) -> OwnedPin {
        assert!(std::ptr::eq(self.arena, &**arena), "a pin of another arena");
        let pfn = self.pfn;
        assert!(self.hold.is_none(), "a place is its thread's");
        std::mem::forget(self);
        arena.count_owned_pins(1);
        OwnedPin { arena: Arc::clone(arena), pfn }
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.hold {
            Some(hold) => hold.let_go(),
            None => self.arena.gate(self.pfn).unpin(),
        }
    }
}

/// The same that any thread may have, for as long as it likes.
pub(crate) struct OwnedPin {
    arena: Arc<Arena>,
    pfn: Pfn,
}

impl OwnedPin {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: this is a pin on it.
        unsafe { self.arena.pinned(self.pfn) }
    }
}

impl Drop for OwnedPin {
    fn drop(&mut self) {
        self.arena.count_owned_pins(-1);
        self.arena.gate(self.pfn).unpin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holds::ThreadNumber;

    /// An arena whose frame has been filled, and is open.
    fn open(pfn: Pfn) -> Arena {
        let arena = Arena::new(std::slice::from_ref(&(0..64)), None).expect("there is memory");
        arena.gate(pfn).open();
        arena
    }

    #[test]
    fn a_line_is_of_one_thread_at_a_time() {
        let arena = open(Pfn(0));
        let lines: Vec<_> = std::iter::from_fn(|| arena.holds.take_line(ThreadNumber(1))).collect();
        assert!(lines.iter().copied().eq(0..64));
        arena.holds.give_back(7);
        assert_eq!(
            [arena.holds.take_line(ThreadNumber(2)), arena.holds.take_line(ThreadNumber(3))],
            [Some(7), None]
        );
    }

    #[test]
    fn a_frame_is_closed_when_all_have_let_it_go_whatever_says_so() {
        let pfn = Pfn(5);
        let arena = open(pfn);
        let [one, other] = [1, 2].map(|thread| arena.holds.take_line(ThreadNumber(thread)));
        let by_one = arena.hold(pfn, one).ok();
        let by_other = arena.hold(pfn, other).ok();
        let by_gate = arena.hold(pfn, None).ok();
        assert!(by_one.is_some() && by_other.is_some() && by_gate.is_some());
        assert!(!arena.close(pfn) && arena.gate(pfn).is_open(), "it is open for others still");
        drop(by_one);
        drop(by_gate);
        // Whose thread has ended stays held.
        other.into_iter().for_each(|line| arena.holds.give_back(line));
        assert!(!arena.close(pfn));
        drop(by_other);
        assert!(arena.close(pfn));
        assert_eq!(arena.hold(pfn, one).err(), Some(Unpinned::Closed));
        assert!(!arena.holds.names(pfn.0), "who was refused has let go");
    }

    #[test]
    fn who_has_no_place_left_pins_the_gate() {
        let pfn = Pfn(0);
        let arena = open(pfn);
        let line = arena.holds.take_line(ThreadNumber(1));
        let pins: Vec<_> = (0..20).map_while(|_| arena.hold(pfn, line).ok()).collect();
        assert_eq!(pins.iter().filter(|pin| pin.hold.is_some()).count(), 16);
        assert_eq!(pins.len(), 20);
        let rest = pins.into_iter().filter(|pin| pin.hold.is_none()).collect::<Vec<_>>();
        drop(rest);
        assert!(arena.close(pfn));
    }
}
