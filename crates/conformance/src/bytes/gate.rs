//! Readers that the engine does not know: they read open frames directly, and a page that is being read stays where it is.
//!
//! The store opens a frame after it has filled it. The gate sometimes refuses to close a frame without a reader, as if a reader had
//! just left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pageout_engine::{FrameGate, Pfn};

use super::contents::Page;

#[derive(Default)]
struct Frames {
    open: BTreeSet<Pfn>,
    /// Frames with a reader, and the page that the reader sees there.
    looked_at: BTreeMap<Pfn, Page>,
    /// How many of a hundred questions are refused although the frame has no reader; and the state of this random
    /// choice.
    refuses: u8,
    seed: u64,
    /// A bug: every answer is yes, even if the frame has a reader.
    is_deaf: bool,
}

/// All frames, for the store, which fills them, and the engine, which takes them.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<Frames>>);

impl Gate {
    pub(crate) fn new(refuses: u8) -> Gate {
        Gate(Arc::new(Mutex::new(Frames { refuses, ..Frames::default() })))
    }

    /// A gate that closes frames under their readers.
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

    /// A reader reads a page in its frame from now on.
    pub(crate) fn look(&self, pfn: Pfn, page: Page) {
        let mut frames = self.frames();
        assert!(frames.open.contains(&pfn), "{page:?} is accessed in {pfn:?}, which is closed");
        frames.looked_at.insert(pfn, page);
    }

    /// The readers of one of the pages leave.
    pub(crate) fn look_away(&self, which: usize) {
        let mut frames = self.frames();
        let at = which % frames.looked_at.len().max(1);
        if let Some(pfn) = frames.looked_at.keys().nth(at).copied() {
            frames.looked_at.remove(&pfn);
        }
    }

    /// The readers of a page leave.
    pub(crate) fn look_away_from(&self, page: Page) {
        self.frames().looked_at.retain(|_, seen| *seen != page);
    }

    /// All readers leave, and every answer is yes from now on.
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
