//! Readers of whom the engine knows nothing: they look at frames that are open, and a page that is looked at stays where it is.
//!
//! What a frame holds is there before it is opened, so the store opens it. An answer is no at times although nobody is there any more:
//! somebody was, the moment before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pageout_engine::{FrameGate, Pfn};

use super::contents::Page;

#[derive(Default)]
struct Frames {
    open: BTreeSet<Pfn>,
    /// Frames that somebody looks at, and the page that he sees there.
    looked_at: BTreeMap<Pfn, Page>,
    /// Of a hundred questions, those that are answered by no although nobody is there; and the state of these draws.
    refuses: u8,
    seed: u64,
    /// A bug: every answer is yes, whoever looks.
    is_deaf: bool,
}

/// All frames, for the store, which fills them, and the engine, which takes them.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<Frames>>);

impl Gate {
    pub(crate) fn new(refuses: u8) -> Gate {
        Gate(Arc::new(Mutex::new(Frames { refuses, ..Frames::default() })))
    }

    /// A gate that closes before whoever looks.
    #[cfg(test)]
    pub(crate) fn deaf() -> Gate {
        Gate(Arc::new(Mutex::new(Frames { is_deaf: true, ..Frames::default() })))
    }

    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame holds what it should.
    pub(crate) fn filled(&self, pfn: Pfn) {
        self.frames().open.insert(pfn);
    }

    /// A frame is free, or another's contents are on their way.
    pub(crate) fn emptied(&self, pfn: Pfn) {
        let mut frames = self.frames();
        let page = frames.looked_at.get(&pfn);
        assert!(page.is_none(), "{pfn:?} is freed while somebody looks at {page:?} there");
        frames.open.remove(&pfn);
    }

    pub(crate) fn is_open(&self, pfn: Pfn) -> bool {
        self.frames().open.contains(&pfn)
    }

    /// Somebody looks at a page in its frame from now on.
    pub(crate) fn look(&self, pfn: Pfn, page: Page) {
        let mut frames = self.frames();
        assert!(frames.open.contains(&pfn), "{page:?} is accessed in {pfn:?}, which is closed");
        frames.looked_at.insert(pfn, page);
    }

    /// Those who look at the first of so many pages look away.
    pub(crate) fn look_away(&self, which: usize) {
        let mut frames = self.frames();
        let at = which % frames.looked_at.len().max(1);
        if let Some(pfn) = frames.looked_at.keys().nth(at).copied() {
            frames.looked_at.remove(&pfn);
        }
    }

    /// Nobody looks at a page any more.
    pub(crate) fn look_away_from(&self, page: Page) {
        self.frames().looked_at.retain(|_, seen| *seen != page);
    }

    /// Nobody looks at anything, and every answer is yes from now on.
    pub(crate) fn all_look_away(&self) {
        let mut frames = self.frames();
        frames.looked_at.clear();
        frames.refuses = 0;
    }

    pub(crate) fn looked_at(&self) -> Vec<(Pfn, Page)> {
        self.frames().looked_at.iter().map(|(&pfn, &page)| (pfn, page)).collect()
    }
}

impl FrameGate for Gate {
    fn close(&mut self, pfn: Pfn) -> bool {
        let mut frames = self.frames();
        if frames.is_deaf {
            return frames.open.remove(&pfn);
        }
        frames.seed =
            frames.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_refused = (frames.seed >> 33) % 100 < frames.refuses.into();
        !is_refused && !frames.looked_at.contains_key(&pfn) && frames.open.remove(&pfn)
    }

    fn open(&mut self, pfn: Pfn) {
        assert!(self.frames().open.insert(pfn), "{pfn:?} is opened, and was not closed");
    }
}
