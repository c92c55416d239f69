//! Slab shrinkers: how many objects a call scans, by its priority and by what earlier calls have left undone (`do_shrink_slab`).
//!
//! After each pass over a group's lists the kernel offers its caches the same pressure, by *shrinkers*. Each reports how much it could
//! free, F. A call owes 2 (F >> priority), plus the work that earlier calls have left undone. It works that off in chunks of 128, as soon
//! as there is a full chunk (or F). Later calls owe the rest, up to 2 F. So reclaim touches a small cache only at low priorities: the
//! classic LRU gets there, MGLRU hardly ever. [tiering-zswap-6.12 1.4]
//!
//! Objects that cost nothing to make again (`seeks` is 0) are offered half of F at every priority. [reclaim 3.3]

use crate::story::{GfpFlags, Shrinker, Tracepoint};

/// Objects that are scanned together (SHRINK_BATCH).
const CHUNK: u64 = 128;
/// For each part of the lists that is scanned, 4 / seeks times as much of what shrinkers hold.
const SCANNED_PER_SHARE: u64 = 2;

/// A call of a shrinker in progress.
#[doc(alias = "do_shrink_slab")]
#[derive(Debug)]
pub(crate) struct ShrinkerCall {
    /// Objects that could be freed.
    freeable: u64,
    /// What is owed, of this call and earlier ones, before anything is done.
    owed: u64,
    /// What may be done in this call, and what was.
    budget: u64,
    scanned: u64,
    /// The part of what is owed that earlier calls have left undone.
    deferred: u64,
    priority: u8,
}

impl ShrinkerCall {
    /// Begins a call, taking over what earlier ones have left undone.
    pub(crate) fn begin(freeable: u64, deferred: &mut u64, priority: u8) -> ShrinkerCall {
        ShrinkerCall::with(SCANNED_PER_SHARE * (freeable >> priority), freeable, deferred, priority)
    }

    /// Begins a call for objects that cost nothing to make again.
    pub(crate) fn begin_costless(freeable: u64, deferred: &mut u64, priority: u8) -> ShrinkerCall {
        ShrinkerCall::with(freeable / 2, freeable, deferred, priority)
    }

    fn with(new: u64, freeable: u64, deferred: &mut u64, priority: u8) -> ShrinkerCall {
        let deferred = std::mem::take(deferred);
        let budget = ((deferred >> priority) + new).min(2 * freeable);
        ShrinkerCall { freeable, owed: deferred + new, budget, scanned: 0, deferred, priority }
    }

    /// The next chunk, if there is to be one.
    pub(crate) fn chunk(&self) -> Option<u64> {
        let is_due = self.budget > 0 && self.budget >= CHUNK.min(self.freeable);
        is_due.then(|| self.budget.min(CHUNK))
    }

    /// A chunk has freed something, and so it counts.
    pub(crate) fn note(&mut self, chunk: u64) {
        self.budget -= chunk;
        self.scanned += chunk;
    }

    /// `mm_shrink_slab_start`: what the call will do, before anything is done.
    pub(crate) fn traced_start(&self, shrinker: Shrinker, gfp: GfpFlags) -> Tracepoint {
        let ShrinkerCall { freeable, owed, deferred, priority, .. } = *self;
        let total_scan = self.budget + self.scanned;
        Tracepoint::ShrinkSlabStart {
            shrinker,
            gfp,
            deferred,
            freeable,
            delta: owed - deferred,
            total_scan,
            priority,
        }
    }

    /// `mm_shrink_slab_end`: what the call has done.
    pub(crate) fn traced_end(&self, shrinker: Shrinker, freed: u64) -> Tracepoint {
        let (deferred, left, total_scan) = (self.deferred, self.left(), self.budget);
        Tracepoint::ShrinkSlabEnd { shrinker, deferred, left, total_scan, freed }
    }

    pub(crate) fn scanned(&self) -> u64 {
        self.scanned
    }

    /// What is left to later calls.
    pub(crate) fn left(&self) -> u64 {
        self.owed.saturating_sub(self.scanned).min(2 * self.freeable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked_off(mut call: ShrinkerCall) -> (u64, u64) {
        while let Some(chunk) = call.chunk() {
            call.note(chunk);
        }
        (call.left(), call.scanned())
    }

    /// Calls of a kernel's `scan_shadow_nodes` (Linux 6.18), as its tracepoint tells them: owed before, freeable, priority; owed
    /// afterwards, and what was scanned.
    #[test]
    fn costless_calls_owe_and_scan_as_recorded() {
        for (before, freeable, priority, after, scanned) in [
            (0, 2, 11, 1, 0),
            (18, 11, 11, 22, 0),
            (44, 21, 12, 42, 0),
            (510, 260, 10, 512, 128),
            (510, 257, 11, 510, 128),
            (508, 265, 9, 512, 128),
            (508, 256, 12, 508, 128),
        ] {
            let call = ShrinkerCall::begin_costless(freeable, &mut { before }, priority);
            assert_eq!(worked_off(call), (after, scanned), "{before} owed of {freeable} at {priority}");
        }
    }

    /// Calls of a kernel's `zs_shrinker_scan`, as its tracepoint tells them: owed before, freeable, priority; owed afterwards, and
    /// what was scanned.
    #[test]
    fn calls_owe_and_scan_as_recorded() {
        for (before, freeable, priority, after, scanned) in [
            (0, 32, 5, 2, 0),
            (2, 32, 4, 6, 0),
            (14, 56, 5, 16, 0),
            (248, 168, 4, 268, 0),
            (284, 168, 3, 326, 0),
            (336, 168, 3, 336, 0),
            (196, 8, 6, 16, 0),
            (464, 232, 2, 452, 128),
            (560, 280, 3, 502, 128),
            (512, 256, 3, 448, 128),
        ] {
            let call = ShrinkerCall::begin(freeable, &mut { before }, priority);
            assert_eq!(worked_off(call), (after, scanned), "{before} owed of {freeable} at {priority}");
        }
    }
}
