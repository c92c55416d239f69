//! Frames that stand for pages of mapped regions. [live-3 2.1]
//!
//! ```text
//!   frame    of the arena      its memory holds the page                                      files, regions by guards and copies
//!            a token ─┬─ staged    the page is in a staging page: it was read or decompressed
//!                     ├─ zeroes    the page is new
//!                     └─ mapped    the page is in the memfd, and the user's
//! ```
//! The engine counts frames, and does not know where a page is. A page of a mapped region has its memory in the region's memfd. So its frame is only a
//! token of the budget, and its place in the arena has no memory. A fault gives the user a staged page, or zeroes. Then the token says `mapped` until the
//! frame is free, and the page leaves the memfd with it.
//!
//! A token changes under the engine's lock, or by the owner of its frame's gate. Its place in the arena gives its memory back when the frame becomes a
//! token for the first time since the arena used it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pageout_engine::{MmId, PAGE_SIZE, Pfn};

use super::faults::{Faults, Refused};
use super::mapping::Mapping;
use super::record::Record;
use super::sample::Pagemap;
use crate::mmap::Map;

const PAGE: usize = PAGE_SIZE as usize;

/// A frame's word. It says what the frame is, if its place in the arena has no memory, and if a device has got its page. Of a token it has the staging
/// page, the address space, and the page there.
const STATE: u64 = 3;
const STAGED: u64 = 1;
const ZEROES: u64 = 2;
const MAPPED: u64 = 3;
const RELEASED: u64 = 1 << 2;
const LEAVING: u64 = 1 << 3;
const PAGE_SHIFT: u32 = 4;
const PAGE_BITS: u32 = 29;
const SPACE_SHIFT: u32 = PAGE_SHIFT + PAGE_BITS;
const SPACE_BITS: u32 = 18;
const STAGING_SHIFT: u32 = SPACE_SHIFT + SPACE_BITS;

/// Staging pages. Few are used at a time: one per fault that is being served, and those of readahead.
const STAGING_PAGES: u16 = (1 << (64 - STAGING_SHIFT)) - 1;
/// No staging page was free, and the place in the arena serves as one.
const IN_ARENA: u16 = STAGING_PAGES;
/// Staging pages that keep their memory while no token uses them.
const STAGING_KEPT: u16 = 64;

/// Pages of a mapped region, at most.
pub(crate) const PAGES_MAX: u64 = (1 << PAGE_BITS) - 1;
/// Address spaces that mapped regions can be in.
pub(crate) const SPACES_MAX: u32 = 1 << SPACE_BITS;

/// The location of a frame's page.
pub(crate) enum Place {
    /// In the arena.
    Arena,
    /// In a staging page; None: the place in the arena serves as one.
    Staged(Option<*mut u8>),
    Zeroes,
    Mapped(Arc<Mapping>, u64),
}

/// What a token that has moved to another frame needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// Nothing.
    Token,
    /// Its place in the arena may have memory.
    ToUsedPlace,
    /// The page itself is in the arena, and must move.
    InArena,
}

/// The words of all frames.
pub(crate) struct Tokens {
    count: usize,
    /// There is, or was, a mapped region.
    is_used: AtomicBool,
    /// There from the first mapped region on.
    memory: OnceLock<TokenMemory>,
    /// By address space.
    maps: Mutex<BTreeMap<u32, Arc<Mapping>>>,
    /// Pages are being discarded, whose contents need no protection.
    is_discarding: AtomicBool,
    /// Pages that were used while they were on their way out, of which the engine is not notified yet.
    touched: Mutex<Vec<(MmId, u64)>>,
    has_touched: AtomicBool,
    pub(crate) record: Record,
}

struct TokenMemory {
    words: Map,
    staging: Map,
    /// Free staging pages, the one to use next last.
    free: Mutex<Vec<u16>>,
    pagemap: Pagemap,
    /// By which the kernel fails accesses to holes of an alias.
    alias_guard: Faults,
}

fn state_of(word: u64) -> u64 {
    word & STATE
}

fn page_of(word: u64) -> u64 {
    word >> PAGE_SHIFT & ((1 << PAGE_BITS) - 1)
}

fn space_of(word: u64) -> u32 {
    (word >> SPACE_SHIFT) as u32 & (SPACES_MAX - 1)
}

fn staging_of(word: u64) -> u16 {
    (word >> STAGING_SHIFT) as u16
}

impl Tokens {
    pub(crate) fn new(count: usize) -> Tokens {
        Tokens {
            count,
            is_used: AtomicBool::new(false),
            memory: OnceLock::new(),
            maps: Mutex::default(),
            is_discarding: AtomicBool::new(false),
            touched: Mutex::default(),
            has_touched: AtomicBool::new(false),
            record: Record::default(),
        }
    }

    /// Returns true if a frame may be a token.
    #[inline(always)]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Makes room for tokens. True if this was the first call.
    ///
    /// # Errors
    /// The call that the system refuses: it gives no memory, or does not show the page tables.
    pub(crate) fn enable(&self) -> Result<bool, Refused> {
        if self.memory.get().is_none() {
            let map = |bytes| Refused::check("mmap(2)", Map::new(bytes, libc::MADV_DONTFORK));
            let memory = TokenMemory {
                words: map(self.count * size_of::<AtomicU64>())?,
                staging: map(usize::from(STAGING_PAGES) * PAGE)?,
                free: Mutex::new((0..STAGING_PAGES).rev().collect()),
                pagemap: Refused::check("open(2) of /proc/self/pagemap", Pagemap::open())?,
                alias_guard: Faults::open_for_none()?,
            };
            // Another thread may have been first.
            let _ = self.memory.set(memory);
        }
        Ok(!self.is_used.swap(true, Ordering::AcqRel))
    }

    fn memory(&self) -> &TokenMemory {
        self.memory.get().expect("it is there before the first token")
    }

    pub(crate) fn pagemap(&self) -> &Pagemap {
        &self.memory().pagemap
    }

    pub(crate) fn alias_guard(&self) -> &Faults {
        &self.memory().alias_guard
    }

    fn words(&self) -> &[AtomicU64] {
        let words = &self.memory().words;
        // SAFETY: the mapping is large enough for this many words, is aligned to a page, lives as long as `self`, and is only ever used as these. Any bits
        // are a valid word, and all change it through shared references.
        unsafe { std::slice::from_raw_parts(words.start().cast::<AtomicU64>(), self.count) }
    }

    fn word(&self, pfn: Pfn) -> &AtomicU64 {
        &self.words()[pfn.0 as usize]
    }

    fn maps(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Mapping>>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages of an address space are those of a mapping.
    pub(crate) fn add(&self, mm: MmId, mapping: &Arc<Mapping>) {
        let before = self.maps().insert(mm.0, Arc::clone(mapping));
        assert!(before.is_none(), "{mm:?} has two mappings");
    }

    pub(crate) fn remove(&self, mm: MmId) {
        self.maps().remove(&mm.0);
    }

    /// The mapping of an address space.
    pub(crate) fn mapping(&self, mm: MmId) -> Option<Arc<Mapping>> {
        self.maps().get(&mm.0).map(Arc::clone)
    }

    /// Returns true if a frame is a token.
    #[inline]
    pub(crate) fn is_token(&self, pfn: Pfn) -> bool {
        self.is_used() && state_of(self.word(pfn).load(Ordering::Acquire)) != 0
    }

    /// The location of a frame's page.
    pub(crate) fn place(&self, pfn: Pfn) -> Place {
        if !self.is_used() {
            return Place::Arena;
        }
        let word = self.word(pfn).load(Ordering::Acquire);
        match state_of(word) {
            STAGED => Place::Staged(self.staging_page(staging_of(word))),
            ZEROES => Place::Zeroes,
            MAPPED => {
                let mapping = self.mapping(MmId(space_of(word)));
                Place::Mapped(mapping.expect("a mapping stays as long as it has tokens"), page_of(word))
            }
            _ => Place::Arena,
        }
    }

    /// The mapping and the page of a token that is mapped.
    pub(crate) fn mapped(&self, pfn: Pfn) -> Option<(Arc<Mapping>, u64)> {
        match self.place(pfn) {
            Place::Mapped(mapping, page) => Some((mapping, page)),
            _ => None,
        }
    }

    fn staging_page(&self, at: u16) -> Option<*mut u8> {
        (at != IN_ARENA).then(|| self.memory().staging.page(usize::from(at)))
    }

    /// Makes a frame the token of a page, which is zeroes or will be staged. Returns whether its place in the arena may have memory.
    pub(crate) fn make(&self, pfn: Pfn, (mm, page): (MmId, u64), is_zeroes: bool) -> bool {
        let word = self.word(pfn);
        let before = word.load(Ordering::Relaxed);
        assert_eq!(state_of(before), 0, "{pfn:?} becomes a token, and is one");
        let (state, staging) = match is_zeroes {
            true => (ZEROES, IN_ARENA),
            false => (STAGED, self.take_staging_page()),
        };
        let released = if staging == IN_ARENA && !is_zeroes { 0 } else { RELEASED };
        let place = page << PAGE_SHIFT | u64::from(mm.0) << SPACE_SHIFT | u64::from(staging) << STAGING_SHIFT;
        word.store(state | released | place, Ordering::Release);
        released != 0 && before & RELEASED == 0
    }

    /// The page of a token is in the memfd from now on. Returns whether the place in the arena has served as staging page.
    pub(crate) fn has_mapped(&self, pfn: Pfn) -> bool {
        let word = self.word(pfn);
        let before = word.load(Ordering::Relaxed);
        assert!(matches!(state_of(before), STAGED | ZEROES), "{pfn:?} is mapped, and was {before:#x}");
        word.store(before & !(STATE | LEAVING) | MAPPED | RELEASED, Ordering::Release);
        if state_of(before) == STAGED {
            self.give_staging_page(staging_of(before));
        }
        before & RELEASED == 0
    }

    /// Ends a token whose frame is free, or whose page was discarded. Returns its page, if that is in the memfd.
    pub(crate) fn end(&self, pfn: Pfn) -> Option<(MmId, u64)> {
        let word = self.word(pfn);
        let before = word.load(Ordering::Relaxed);
        word.store(before & RELEASED, Ordering::Release);
        match state_of(before) {
            STAGED => {
                self.give_staging_page(staging_of(before));
                None
            }
            MAPPED => Some((MmId(space_of(before)), page_of(before))),
            _ => None,
        }
    }

    /// Ends a token if its page is in the memfd, or new: a page that was discarded. A page that is being read keeps its staging page.
    pub(crate) fn detach(&self, pfn: Pfn) -> Option<(MmId, u64)> {
        match state_of(self.word(pfn).load(Ordering::Relaxed)) {
            MAPPED | ZEROES => self.end(pfn),
            _ => None,
        }
    }

    /// The page of a token goes to another frame.
    pub(crate) fn relocate(&self, from: Pfn, to: Pfn) -> Moved {
        let (old, new) = (self.word(from), self.word(to));
        let (token, before) = (old.load(Ordering::Relaxed), new.load(Ordering::Relaxed));
        assert_eq!(state_of(before), 0, "{to:?} becomes a token, and is one");
        old.store(token & RELEASED, Ordering::Relaxed);
        new.store(token, Ordering::Release);
        match (token & RELEASED != 0, before & RELEASED != 0) {
            (false, _) => Moved::InArena,
            (true, false) => Moved::ToUsedPlace,
            (true, true) => Moved::Token,
        }
    }

    /// The arena uses the memory of a frame.
    #[inline]
    pub(crate) fn note_used(&self, pfn: Pfn) {
        if self.is_used() {
            let word = self.word(pfn);
            let before = word.load(Ordering::Relaxed);
            if before & RELEASED != 0 {
                word.store(before & !RELEASED, Ordering::Relaxed);
            }
        }
    }

    fn take_staging_page(&self) -> u16 {
        let free = &self.memory().free;
        free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or(IN_ARENA)
    }

    fn give_staging_page(&self, at: u16) {
        if at == IN_ARENA {
            return;
        }
        let memory = self.memory();
        if at >= STAGING_KEPT {
            // Its memory is only a surplus. If the system refuses it, the page is used unchanged.
            let _ = memory.staging.give_back(usize::from(at) * PAGE..(usize::from(at) + 1) * PAGE);
        }
        memory.free.lock().unwrap_or_else(PoisonError::into_inner).push(at);
    }

    /// A device gets the page of a frame: uses from now on are seen when the page is to leave ([`Tokens::is_kept_by_use`]).
    pub(crate) fn begins_to_leave(&self, pfn: Pfn) {
        if let Some((mapping, page)) = self.mapped(pfn) {
            // An entry that stays does not show later uses.
            if mapping.unmap_entries(page..page + 1).is_ok() {
                self.word(pfn).fetch_or(LEAVING, Ordering::AcqRel);
            }
        }
    }

    /// The user has got the page of a frame by a fault: the engine knows that it is used.
    pub(crate) fn stays(&self, pfn: Pfn) {
        let word = self.word(pfn);
        if word.load(Ordering::Relaxed) & LEAVING != 0 {
            word.fetch_and(!LEAVING, Ordering::AcqRel);
        }
    }

    /// Returns true if the page of a frame that was just closed was used since a device got it. A load does not fault then, and the engine would evict a
    /// page in use. Such a page stays, and the engine is notified of its use ([`Tokens::take_touched`]).
    pub(crate) fn is_kept_by_use(&self, pfn: Pfn) -> bool {
        if !self.is_used() || self.is_discarding.load(Ordering::Relaxed) {
            return false;
        }
        let word = self.word(pfn).load(Ordering::Acquire);
        if word & (STATE | LEAVING) != MAPPED | LEAVING {
            return false;
        }
        let Some((mapping, page)) = self.mapped(pfn) else { return false };
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (MmId(space_of(word)), page);
        if touched.contains(&name) {
            return true;
        }
        let mut used = Vec::new();
        let sampled = self.pagemap().sample(&mapping, page..page + 1, &mut used);
        if sampled.is_err() || used.is_empty() {
            return false;
        }
        touched.push(name);
        self.has_touched.store(true, Ordering::Release);
        true
    }

    /// The page of a frame could not be closed, as a handler is giving it to the user. The engine has removed its own entry before, and is notified that the
    /// page is used.
    pub(crate) fn note_served(&self, pfn: Pfn) {
        let word = self.word(pfn).load(Ordering::Acquire);
        if state_of(word) == 0 || self.is_discarding.load(Ordering::Relaxed) {
            return;
        }
        let name = (MmId(space_of(word)), page_of(word));
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        if !touched.contains(&name) {
            touched.push(name);
        }
        self.has_touched.store(true, Ordering::Release);
    }

    /// Returns true if pages were used while they were on their way out.
    #[inline]
    pub(crate) fn has_touched(&self) -> bool {
        self.has_touched.load(Ordering::Acquire)
    }

    /// Takes pages that were used while they were on their way out.
    pub(crate) fn take_touched(&self) -> Vec<(MmId, u64)> {
        if !self.has_touched.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if pages are being discarded: the holder of the engine's lock says so.
    pub(crate) fn set_discarding(&self, is_discarding: bool) {
        self.is_discarding.store(is_discarding, Ordering::Relaxed);
    }

    /// A frame was closed: stores to its page are faults from now on. No effect on other frames.
    pub(crate) fn protect(&self, pfn: Pfn) {
        if !self.is_discarding.load(Ordering::Relaxed) {
            self.protect_anyway(pfn);
        }
    }

    /// The same without the engine's lock, whose owner may be discarding other pages.
    pub(crate) fn protect_anyway(&self, pfn: Pfn) {
        if let Some((mapping, page)) = self.mapped(pfn) {
            mapping.protect(page);
        }
    }
}
