//! A record of all that an engine learns of mapped regions, for another host that repeats it. [live-3 9]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that the engine has learned of mapped regions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MapEvent {
    /// An access: a fault, or a use of a page on its way out.
    Access {
        /// The page of the region.
        page: u64,
        /// The access writes, or its page has no contents yet.
        write: bool,
    },
    /// A sample.
    Sample {
        /// The pages of the question.
        pages: Range<u64>,
        /// Those of them that were used since the last sample.
        used: Vec<u64>,
    },
    /// The engine has asked for a frame, of whatever page.
    Close {
        /// False if the page is in use, and stays.
        is_closed: bool,
    },
}

/// The events since the record began, or since they were last taken.
#[derive(Default)]
pub(crate) struct Record {
    is_on: AtomicBool,
    events: Mutex<Vec<MapEvent>>,
    /// Faults in progress.
    faults: AtomicUsize,
}

impl Record {
    pub(super) fn begin(&self) {
        self.is_on.store(true, Ordering::Release);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Waits for faults in progress: a user goes on before its handler has ended.
    pub(super) fn await_faults(&self) {
        while self.faults.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }

    pub(super) fn take(&self) -> Vec<MapEvent> {
        std::mem::take(&mut self.events())
    }

    /// Adds an event. The caller has the engine's lock, so that events are in the order of the engine's calls.
    pub(crate) fn note(&self, event: impl FnOnce() -> MapEvent) {
        if self.is_on() {
            self.events().push(event());
        }
    }

    /// Serves a fault.
    pub(super) fn during<T>(&self, serve: impl FnOnce() -> T) -> T {
        self.faults.fetch_add(1, Ordering::AcqRel);
        let served = serve();
        self.faults.fetch_sub(1, Ordering::AcqRel);
        served
    }

    fn events(&self) -> MutexGuard<'_, Vec<MapEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
