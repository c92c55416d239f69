//! [`Length`]: the length of a file, for threads that take no lock, and how it is shortened while they run.
//!
//! ```text
//!   bytes   what callers are told                reach   how far an access may go that takes no lock: `bytes`, or less while bytes are taken away
//!
//!   read, guard   the gate or the hold of the page ─▶ `reach` ─▶ the bytes                   too far: take the lock, wait for the change, look again
//!   overwrite     the gate of the page ─▶ `reach` ─▶ the bytes                               the same
//!   other writes  a span: from the first page to the last, no byte is taken away
//!   cut           CHANGING ─▶ no span is left ─▶ the gate of the last page ─▶ `reach` narrows ─▶ nobody holds a page behind it?
//!                 no: `reach` is `bytes` again, and nothing has changed
//!                 yes: the rest of the last page is zeroed, `bytes` narrows ─▶ the gate opens ─▶ the pages behind go
//! ```
//! An access says that it is at a page before it looks at `reach`, and a cut narrows `reach` before it looks who is at a page. So one of the two sees the
//! other: the access goes back, or the cut is refused. Each result is then that of one order of the two calls. A read of several pages is
//! made again if bytes were taken away meanwhile (`cuts`), as it may have seen some pages before that and others after it.
//!
//! The rest of the last page is zeroed under the page's gate, together with the change of `reach`. Were it zeroed before or after that, a writer could come
//! in between, and its bytes would be there when the file grows again.
//!
//! `compared/tests/gate/` tries all orders of a cut, a writer, a guard and a reader, and cuts that leave out one of the steps.

use crate::atomic::{AtomicU64, Ordering, between_two};

/// In `spans`: the length is being changed, and the changing thread waits for those who have one.
const CHANGING: u64 = 1 << 63;

/// The length of a file.
pub(crate) struct Length {
    bytes: AtomicU64,
    reach: AtomicU64,
    /// Calls in progress during which no byte is taken away.
    spans: AtomicU64,
    /// Times that bytes were taken away, or were about to be.
    cuts: AtomicU64,
}

impl Length {
    pub(crate) fn new(bytes: u64) -> Length {
        let [spans, cuts] = [(); 2].map(|()| AtomicU64::new(0));
        Length { bytes: AtomicU64::new(bytes), reach: AtomicU64::new(bytes), spans, cuts }
    }

    /// Bytes of the file.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        // Acquire: a thread that sees the result of a cut also sees `reach` narrowed.
        self.bytes.load(Ordering::Acquire)
    }

    /// Returns true if an access may go up to a byte: asked by a caller that is at the page of it, by its gate or its hold.
    #[inline(always)]
    pub(crate) fn reaches(&self, end: u64) -> bool {
        // SeqCst: in the order of all such accesses it comes after the caller has said that it is at the page.
        end <= self.reach.load(Ordering::SeqCst)
    }

    /// The file is this long, or longer. Only who has a span, or changes the length, says so, and with the gate of the page that has its last byte.
    pub(crate) fn grow_to(&self, end: u64) {
        // In this order: `reach` is less than `bytes` only during a cut.
        self.reach.fetch_max(end, Ordering::SeqCst);
        self.bytes.fetch_max(end, Ordering::Release);
    }

    /// How often bytes were taken away so far.
    #[inline(always)]
    pub(crate) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Acquire)
    }

    /// Returns true if no bytes were taken away since `cuts` was read. The caller has read pages in between.
    #[inline(always)]
    pub(crate) fn is_uncut_since(&self, cuts: u64) -> bool {
        // The data was read before this load.
        crate::atomic::fence(Ordering::Acquire);
        self.cuts.load(Ordering::Relaxed) == cuts
    }

    /// Begins a call during which no byte is taken away; false if the length is being changed.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        let mut spans = self.spans.load(Ordering::Relaxed);
        while spans & CHANGING == 0 {
            match self.spans.compare_exchange_weak(spans, spans + 1, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => spans = now,
            }
        }
        false
    }

    /// Ends it. Returns whether a thread waits for that.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        self.spans.fetch_sub(1, Ordering::SeqCst) & CHANGING != 0
    }

    /// Stops new calls. Only one thread changes the length at a time: one that has the engine's lock and finds no other.
    pub(crate) fn begin_change(&self) {
        self.spans.fetch_add(CHANGING, Ordering::SeqCst);
    }

    /// See [`Length::begin_change`].
    pub(crate) fn end_change(&self) {
        self.spans.fetch_sub(CHANGING, Ordering::SeqCst);
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.spans.load(Ordering::SeqCst) & CHANGING != 0
    }

    /// Returns true if a call is in progress during which no byte may be taken away.
    pub(crate) fn has_spans(&self) -> bool {
        self.spans.load(Ordering::SeqCst) & !CHANGING != 0
    }

    /// Bytes from here on are about to be taken away: new calls can't access them. The caller then checks for earlier calls.
    pub(crate) fn narrow(&self, bytes: u64) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        self.reach.store(bytes, Ordering::SeqCst);
        between_two();
    }

    /// They stay: a call is in progress.
    pub(crate) fn widen(&self) {
        self.reach.store(self.bytes.load(Ordering::Relaxed), Ordering::SeqCst);
    }

    /// The file has this length, which is invisible before [`Length::widen`].
    pub(crate) fn resize(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Release);
    }

    /// They are gone: the file is this long.
    pub(crate) fn settle(&self, bytes: u64) {
        self.reach.store(bytes, Ordering::SeqCst);
        self.bytes.store(bytes, Ordering::Release);
    }
}
