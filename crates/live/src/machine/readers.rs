//! Readers of pages that no thread reads for itself: readahead, pending reads, and batches.
//!
//! ```text
//!   io_uring   a batch: its thread begins all reads in a ring that it has for that long, and waits for all
//!              else:    whoever asks for it begins it in a ring of all, and one thread waits for what has ended
//!   threads    a queue, from which a few threads read one after the other; who waits for a batch reads from it, too
//! ```

use std::io;
use std::sync::{Mutex, PoisonError};

use super::uring::Uring;
use crate::error::Error;
use crate::sync::Condvar;

/// The backend of reads that no single thread waits for ([`crate::Builder::backend`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// io_uring where the system lets the process have it, else threads.
    #[default]
    Any,
    /// io_uring, or [`Error::UringRefused`].
    Uring,
    /// Threads.
    Threads,
}

/// Those who read.
pub(super) struct Readers {
    backend: Backend,
    /// Why there is no io_uring, where it was wanted.
    refused: Option<io::Error>,
    /// The ring in which any thread begins reads that one thread waits for.
    pub(super) ring: Option<Uring>,
    /// Rings that no batch has at the moment.
    spare: Mutex<Vec<Uring>>,
    /// Threads that read, or wait for reads; none: the requesting thread makes a read.
    pub(super) threads: usize,
    /// There is something in the queue.
    pub(super) more: Condvar,
}

impl Readers {
    /// `threads`: the number of reading threads without io_uring; none: the requesting thread makes a read, with io_uring, too.
    pub(super) fn new(backend: Backend, threads: usize) -> Result<Readers, Error> {
        let mut readers = Readers {
            backend: Backend::Threads,
            refused: None,
            ring: None,
            spare: Mutex::default(),
            threads,
            more: Condvar::new(),
        };
        // A thread that waits in the kernel would stop threads that run one at a time.
        if backend == Backend::Threads || cfg!(feature = "shuttle") {
            return Ok(readers);
        }
        let for_all = || if threads == 0 { Ok(None) } else { Uring::for_all().map(Some) };
        match Uring::for_one().and_then(|one| Ok((one, for_all()?))) {
            Ok((one, for_all)) => {
                (readers.backend, readers.ring, readers.threads) = (Backend::Uring, for_all, threads.min(1));
                readers.give_back(one);
            }
            Err(source) if backend == Backend::Uring => return Err(Error::UringRefused { source }),
            Err(source) => readers.refused = Some(source),
        }
        Ok(readers)
    }

    pub(super) fn backend(&self) -> Backend {
        self.backend
    }

    /// A ring for one batch; none where there is no io_uring, or the system has no more of it.
    pub(super) fn lend(&self) -> Option<Uring> {
        if self.backend != Backend::Uring {
            return None;
        }
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.or_else(|| Uring::for_one().ok())
    }

    /// A batch has come to its end.
    pub(super) fn give_back(&self, ring: Uring) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(ring);
    }

    /// All look again: they are to stop, or something has panicked.
    pub(super) fn notify_all(&self) {
        self.more.notify_all();
        if let Some(ring) = &self.ring {
            ring.nudge();
        }
    }

    /// Returns their description.
    pub(super) fn describe(&self) -> String {
        let how = match (self.backend, self.threads) {
            (Backend::Uring, 0) => "by the requesting thread, batches by io_uring".to_owned(),
            (Backend::Uring, _) => "by the waiting thread, otherwise by io_uring".to_owned(),
            (_, 0) => "by the requesting thread".to_owned(),
            (_, 1) => "by the waiting thread, otherwise by one thread".to_owned(),
            (_, threads) => format!("by the waiting thread, otherwise by {threads} threads"),
        };
        match &self.refused {
            Some(refused) => format!("{how} (io_uring is not permitted: {refused})"),
            None => how,
        }
    }
}
