//! Compressed pages: the answers to the engine about a page's contents, and the bytes on their way into frames of the pool and back. [live-3 4]
//!
//! ```text
//!   ahead    lock ─▶ the pages that are probably next ─▶ unlock ─▶ the gate's version ─▶ copy, compress ─▶ the same version? ─▶ lock ─▶ ready
//!   store    the engine closes the gate, and asks ─▶ ready, and the gate was closed since? its length ─ no: compressed now
//!            ─▶ Op::ZswapStore names a place ─▶ the bytes go there
//!   load     Op::ZswapLoad ─▶ the bytes, from one frame of the pool or two ─▶ decompressed into the page's frame ─▶ its gate opens
//! ```
//! A page that a thread writes to after it was compressed has another version, and is compressed again. Bytes are ready for few pages: those that were
//! compressed ahead, and those that one step of reclaim stores. The operations of a step are carried out in order before the lock is free. The page
//! is unmapped, so nothing changes it between the engine's question and the operation.
//!
//! Decompression is done under the lock, as it is short. If it fails, the pool was overwritten by a bug: the cache is then poisoned.

use std::sync::{Arc, PoisonError};

use pageout_engine::{Compressed, Engine, ObjectPlace, PAGE_SIZE, PageContents, Pfn};

use super::{LiveMachine, Locked};
use crate::arena::Arena;
use crate::error::Error;
use crate::gate::Seen;
use crate::sync::{Mutex, MutexGuard};
use crate::zswap::{Compressor, Decompressor, PAGE, Zswap, ZswapAnswer, repeated_word};

/// Pages that are compressed ahead: as many as a step of reclaim takes, by whichever lists.
const AHEAD: usize = 64;
/// Pages that bytes are kept for, beyond those of a step.
const READY_MAX: usize = 2 * AHEAD;

/// The pool's bytes on their way, shared by the machine and its engine. It is only used under the engine's lock.
pub(crate) struct Zpool(Arc<Mutex<Parts>>);

/// Figures of compression.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ZpoolCounts {
    /// Pages that were compressed, in vain or not.
    pub(crate) compressions: u64,
    /// Those among them that were compressed under the engine's lock.
    pub(crate) under_lock: u64,
    /// Pages that have gone to the pool, those of one word included.
    pub(crate) stores: u64,
}

struct Parts {
    arena: Arc<Arena>,
    /// Pages of one word other than zero are stored as that word.
    finds_words: bool,
    ready: Vec<Ready>,
    by_lock: Compressor,
    /// None while a thread compresses ahead.
    ahead: Option<Box<Ahead>>,
    back: Decompressor,
    /// A page, and bytes of one.
    page: Box<[u8; PAGE]>,
    bytes: Vec<u8>,
    /// The engine has asked for lengths since a thread compressed ahead, or none has so far.
    is_due: bool,
    counts: ZpoolCounts,
    /// All answers to the engine, if they are recorded.
    answers: Option<Vec<ZswapAnswer>>,
}

/// A page whose contents are known.
struct Ready {
    pfn: Pfn,
    /// The state of its gate when it was open with these contents.
    seen: Seen,
    word: Option<u64>,
    /// None: it was not compressed.
    shrunk: Option<Shrunk>,
}

enum Shrunk {
    To(Box<[u8]>),
    Not,
}

impl Shrunk {
    fn of(bytes: Option<&[u8]>) -> Shrunk {
        bytes.map_or(Shrunk::Not, |bytes| Shrunk::To(bytes.into()))
    }

    fn len(&self) -> u16 {
        match self {
            Shrunk::To(bytes) => bytes.len() as u16,
            Shrunk::Not => PAGE_SIZE as u16,
        }
    }
}

/// Work of a thread that compresses ahead.
struct Ahead {
    compressor: Compressor,
    page: Box<[u8; PAGE]>,
    pages: Vec<Pfn>,
    done: Vec<Ready>,
}

impl Ahead {
    /// Compresses the pages that are not being written to. It needs no lock.
    fn compress(&mut self, arena: &Arena, finds_words: bool) {
        for pfn in self.pages.drain(..) {
            let gate = arena.gate(pfn);
            let Some(seen) = gate.begin() else { continue };
            // Stores to a page of a mapped region do not pass the gate, unless they are faults.
            arena.tokens.protect_anyway(pfn);
            arena.copy_page(pfn, &mut self.page);
            if !gate.is_still(seen) {
                continue;
            }
            let word = repeated_word(&self.page[..]);
            let is_stored_as_word = word.is_some_and(|word| word == 0 || finds_words);
            let shrunk = (!is_stored_as_word).then(|| Shrunk::of(self.compressor.compress(&self.page[..])));
            self.done.push(Ready { pfn, seen, word, shrunk });
        }
    }
}

impl Parts {
    /// The known contents of a page whose gate is closed, if they are still true.
    fn find(&self, pfn: Pfn) -> Option<usize> {
        let at = self.ready.iter().position(|ready| ready.pfn == pfn)?;
        self.arena.gate(pfn).is_closed_since(self.ready[at].seen).then_some(at)
    }

    /// The same, looked up in the frame if it is not known.
    fn look(&mut self, pfn: Pfn) -> usize {
        if let Some(at) = self.find(pfn) {
            return at;
        }
        let seen = self.arena.gate(pfn).seen_before_closed();
        let seen = seen.expect("the engine asks about pages that it has closed");
        self.arena.copy_page(pfn, &mut self.page);
        let word = repeated_word(&self.page[..]);
        self.put(Ready { pfn, seen, word, shrunk: None })
    }

    /// Notes what is known of a page, and forgets what was known before.
    fn put(&mut self, ready: Ready) -> usize {
        self.ready.retain(|other| other.pfn != ready.pfn);
        self.ready.push(ready);
        self.ready.len() - 1
    }

    fn compressed_bytes(&mut self, pfn: Pfn) -> u16 {
        let at = self.look(pfn);
        self.is_due = true;
        if self.ready[at].shrunk.is_none() {
            self.arena.copy_page(pfn, &mut self.page);
            self.ready[at].shrunk = Some(Shrunk::of(self.by_lock.compress(&self.page[..])));
            self.counts.compressions += 1;
            self.counts.under_lock += 1;
        }
        self.ready[at].shrunk.as_ref().map_or(PAGE_SIZE as u16, Shrunk::len)
    }

    /// Puts a page's bytes where the engine says. It has asked for their length.
    fn store(&mut self, pfn: Pfn, to: Compressed) {
        let at = self.ready.iter().position(|ready| ready.pfn == pfn);
        let ready = self.ready.swap_remove(at.expect("the engine has asked about the page that it stores"));
        self.counts.stores += 1;
        let Compressed::At(place) = to else { return };
        match ready.shrunk.expect("the engine has asked for the length of a page that it stores") {
            Shrunk::To(bytes) => self.write(place, &bytes),
            Shrunk::Not => {
                self.arena.copy_page(pfn, &mut self.page);
                self.write(place, &self.page[..]);
            }
        }
    }

    fn write(&self, place: ObjectPlace, bytes: &[u8]) {
        assert_eq!(usize::from(place.length), bytes.len(), "bytes of a compressed page, and their place");
        let mut rest = bytes;
        for (pfn, part) in place.parts() {
            let (now, later) = rest.split_at(part.len());
            self.arena.copy_in(pfn, part.start, now);
            rest = later;
        }
    }

    /// The bytes at a place.
    fn read(&mut self, place: ObjectPlace) {
        self.bytes.clear();
        for (pfn, part) in place.parts() {
            let at = self.bytes.len();
            self.bytes.resize(at + part.len(), 0);
            self.arena.copy_out(pfn, part.start, &mut self.bytes[at..]);
        }
    }

    /// Fills a closed frame, and opens it.
    fn load(&mut self, pfn: Pfn, from: Compressed) {
        let arena = Arc::clone(&self.arena);
        if arena.tokens.is_token(pfn) {
            arena.stage(pfn, |page| self.unpack(pfn, from, page));
            arena.gate(pfn).open();
        } else {
            let mut writing = arena.fill(pfn);
            self.unpack(pfn, from, writing.bytes_mut());
        }
    }

    /// Decompresses a page.
    fn unpack(&mut self, pfn: Pfn, from: Compressed, page: &mut [u8]) {
        match from {
            Compressed::Word(word) => page.as_chunks_mut::<8>().0.fill(word.to_ne_bytes()),
            Compressed::At(place) => {
                self.read(place);
                if self.bytes.len() == PAGE {
                    page.copy_from_slice(&self.bytes);
                } else {
                    let is_page = self.back.decompress(&self.bytes, page);
                    assert!(is_page, "{place:?} of the pool has no page for {pfn:?}");
                }
            }
        }
    }

    fn relocate(&mut self, from: ObjectPlace, to: ObjectPlace) {
        self.read(from);
        let bytes = std::mem::take(&mut self.bytes);
        self.write(to, &bytes);
        self.bytes = bytes;
    }

    /// Begins to compress ahead: the pages that are next and whose contents are not known.
    fn begin_ahead(&mut self, engine: &Engine, is_reclaiming: bool) -> Option<Box<Ahead>> {
        if self.ready.len() > READY_MAX + AHEAD {
            self.forget_old();
        }
        if !self.is_due {
            return None;
        }
        let mut ahead = self.ahead.take()?;
        engine.swapped_next(AHEAD, is_reclaiming, &mut ahead.pages);
        // If no reclaim is near, the next call asks again.
        self.is_due = ahead.pages.is_empty();
        ahead.pages.retain(|&pfn| {
            let is_known = |ready: &Ready| {
                ready.pfn == pfn && self.arena.gate(pfn).begin().is_some_and(|seen| seen == ready.seen)
            };
            !self.ready.iter().any(is_known)
        });
        if ahead.pages.is_empty() {
            self.ahead = Some(ahead);
            return None;
        }
        Some(ahead)
    }

    /// Compressed pages are ready, if they have not changed.
    fn end_ahead(&mut self, mut ahead: Box<Ahead>) {
        self.counts.compressions += ahead.done.iter().filter(|ready| ready.shrunk.is_some()).count() as u64;
        ahead.done.drain(..).for_each(|ready| _ = self.put(ready));
        self.forget_old();
        self.ahead = Some(ahead);
    }

    /// Forgets pages that have changed or left memory, and the oldest of too many. No operation on a page is waiting.
    fn forget_old(&mut self) {
        let arena = Arc::clone(&self.arena);
        self.ready.retain(|ready| arena.gate(ready.pfn).begin().is_some_and(|seen| seen == ready.seen));
        let surplus = self.ready.len().saturating_sub(READY_MAX);
        self.ready.drain(..surplus);
    }
}

/// The engine's questions about pages.
struct Answers(Arc<Mutex<Parts>>);

impl PageContents for Answers {
    fn repeated_word(&mut self, pfn: Pfn) -> Option<u64> {
        let mut parts = lock(&self.0);
        let at = parts.look(pfn);
        let word = parts.ready[at].word;
        parts.record(ZswapAnswer::Word(word));
        word
    }

    fn compressed_bytes(&mut self, pfn: Pfn) -> u16 {
        let mut parts = lock(&self.0);
        let bytes = parts.compressed_bytes(pfn);
        parts.record(ZswapAnswer::Bytes(bytes));
        bytes
    }
}

impl Parts {
    fn record(&mut self, answer: ZswapAnswer) {
        self.answers.iter_mut().for_each(|answers| answers.push(answer));
    }
}

/// After a panic the machine is poisoned, and this is not used any more.
fn lock(parts: &Mutex<Parts>) -> MutexGuard<'_, Parts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Zpool {
    /// # Errors
    /// [`Error::Io`] if a compressor gets no memory.
    pub(crate) fn new(
        zswap: Zswap,
        arena: &Arc<Arena>,
        finds_words: bool,
        records: bool,
    ) -> Result<Zpool, Error> {
        let io = |source| Error::Io { op: "making a compressor", path: "zswap".into(), page: None, source };
        let ahead = Ahead {
            compressor: Compressor::new(zswap).map_err(io)?,
            page: Box::new([0; PAGE]),
            pages: Vec::new(),
            done: Vec::new(),
        };
        Ok(Zpool(Arc::new(Mutex::new(Parts {
            arena: Arc::clone(arena),
            finds_words,
            ready: Vec::new(),
            by_lock: Compressor::new(zswap).map_err(io)?,
            ahead: Some(Box::new(ahead)),
            back: Decompressor::new(zswap).map_err(io)?,
            page: Box::new([0; PAGE]),
            bytes: Vec::new(),
            is_due: true,
            counts: ZpoolCounts::default(),
            answers: records.then(Vec::new),
        }))))
    }

    /// What the engine asks about pages.
    pub(crate) fn answers(&self) -> Box<dyn PageContents> {
        Box::new(Answers(Arc::clone(&self.0)))
    }

    pub(super) fn store(&self, pfn: Pfn, to: Compressed) {
        lock(&self.0).store(pfn, to);
    }

    pub(super) fn load(&self, pfn: Pfn, from: Compressed) {
        lock(&self.0).load(pfn, from);
    }

    pub(super) fn relocate(&self, from: ObjectPlace, to: ObjectPlace) {
        lock(&self.0).relocate(from, to);
    }

    pub(crate) fn counts(&self) -> ZpoolCounts {
        lock(&self.0).counts
    }

    pub(crate) fn given_answers(&self) -> Vec<ZswapAnswer> {
        lock(&self.0).answers.clone().unwrap_or_default()
    }
}

impl LiveMachine {
    /// Compresses pages without the lock that reclaim will probably store next, if others were stored since the last call.
    /// `is_reclaiming`: the caller does so.
    pub(super) fn compress_ahead<'a>(
        &'a self,
        locked: Locked<'a>,
        is_reclaiming: bool,
    ) -> Result<(Locked<'a>, bool), Error> {
        let Some(zpool) = &self.zpool else { return Ok((locked, false)) };
        let begun = lock(&zpool.0).begin_ahead(&locked.engine, is_reclaiming);
        let Some(mut ahead) = begun else { return Ok((locked, false)) };
        let finds_words = lock(&zpool.0).finds_words;
        drop(locked);
        ahead.compress(&self.arena, finds_words);
        let locked = self.lock()?;
        lock(&zpool.0).end_ahead(ahead);
        self.wake_idle();
        Ok((locked, true))
    }

    /// Compresses ahead for a task that may go on to reclaim. While it did so, or waited for another thread that did, others may have stored those pages: then
    /// the next ones.
    pub(super) fn compress_before<'a>(&'a self, mut locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        /// Others that are always faster do not keep it forever.
        const TIMES: usize = 4;
        for _ in 0..TIMES {
            let has_compressed;
            (locked, has_compressed) = self.compress_ahead(locked, true)?;
            if !has_compressed && !self.is_compressing() {
                break;
            }
            locked = self.await_compressed(locked)?;
        }
        Ok(locked)
    }

    /// Returns true if another thread compresses pages ahead. A reclaimer that does not wait for it would compress the same pages, with the lock.
    pub(super) fn is_compressing(&self) -> bool {
        self.zpool.as_ref().is_some_and(|zpool| lock(&zpool.0).ahead.is_none())
    }

    /// Waits until no other thread compresses pages ahead.
    pub(super) fn await_compressed<'a>(&'a self, locked: Locked<'a>) -> Result<Locked<'a>, Error> {
        self.wait_while(locked, |_| self.is_compressing())
    }
}

#[cfg(test)]
mod tests; // over a swap device that fails
