//! Reading ahead of a trace: a thread of its own reads the trace, some way ahead of the simulation that takes its accesses.
//!
//! Reading means decompressing, checking and decoding. A simulation that does it in between takes as much longer, although a machine has more than
//! one core. Accesses and errors come in the order in which they are read, so only the time differs.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::chunk::Chunk;
use super::error::TraceError;
use super::file_calls::PlacedCall;
use super::requests::Requests;
use crate::{Access, AccessStream};

/// Accesses that are read at a time.
const CHUNK: usize = 1 << 16;
/// Chunks that wait to be taken.
const WAITING: usize = 2;

pub(super) struct Ahead {
    /// What was read, up to an empty chunk or an error.
    chunks: Receiver<Result<Read, TraceError>>,
    /// Chunks that were taken, to be filled again: else each would be memory that the process has not touched before.
    taken: Sender<Vec<Access>>,
    chunk: Chunk,
    is_over: bool,
    len_hint: Option<u64>,
    requests: Option<Requests>,
    removals: Vec<PlacedCall>,
}

/// What was read at a time.
struct Read {
    accesses: Vec<Access>,
    removals: Vec<PlacedCall>,
    requests: Option<Requests>,
}

impl Ahead {
    /// Begins to read. The thread ends early if its output is not taken any more.
    #[allow(
        clippy::disallowed_methods,
        reason = "what is read, and in which order, does not depend on the thread"
    )]
    pub(super) fn new(stream: Box<dyn AccessStream>) -> Ahead {
        let len_hint = stream.len_hint();
        let (send, chunks) = sync_channel(WAITING);
        let (taken, empties) = channel();
        thread::spawn(move || read(stream, &send, &empties));
        let (requests, removals) = (None, Vec::new());
        Ahead { chunks, taken, chunk: Chunk::default(), is_over: false, len_hint, requests, removals }
    }

    /// Puts the next accesses in place of those that were taken.
    fn advance(&mut self, accesses: &mut Vec<Access>) -> Result<(), TraceError> {
        if self.is_over {
            return Ok(());
        }
        let next = self.chunks.recv().expect("the thread that reads a trace ends with an end or an error");
        self.is_over = next.as_ref().map_or(true, |next| next.accesses.is_empty());
        let Read { accesses: next, removals, requests } = next?;
        self.removals.extend(removals);
        self.requests = requests;
        // After the end, no more chunks are needed.
        _ = self.taken.send(std::mem::replace(accesses, next));
        Ok(())
    }
}

fn read(
    mut stream: Box<dyn AccessStream>,
    send: &SyncSender<Result<Read, TraceError>>,
    empties: &Receiver<Vec<Access>>,
) {
    loop {
        let mut chunk = empties.try_recv().unwrap_or_default();
        chunk.clear();
        let failed = stream.fill(&mut chunk, CHUNK).err();
        let is_over = chunk.is_empty() || failed.is_some();
        // Accesses that were read before an error come before it.
        let (removals, requests) = (stream.take_removals(), stream.requests());
        let mut is_wanted = chunk.is_empty() && failed.is_some()
            || send.send(Ok(Read { accesses: chunk, removals, requests })).is_ok();
        if let Some(error) = failed {
            is_wanted &= send.send(Err(error)).is_ok();
        }
        if is_over || !is_wanted {
            return;
        }
    }
}

impl AccessStream for Ahead {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut chunk = std::mem::take(&mut self.chunk);
        let filled = chunk.take(out, max, |accesses| self.advance(accesses));
        self.chunk = chunk;
        filled
    }

    fn len_hint(&self) -> Option<u64> {
        self.len_hint
    }

    fn requests(&self) -> Option<Requests> {
        self.requests.clone()
    }

    fn take_removals(&mut self) -> Vec<PlacedCall> {
        std::mem::take(&mut self.removals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::error::Place;

    /// So many accesses, then an error if it is to fail.
    struct Counting {
        left: u64,
        fails: bool,
    }

    impl AccessStream for Counting {
        fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
            let count = self.left.min(max as u64);
            out.extend((0..count).map(|at| Access::new(0, (self.left - at) % Access::PAGES_MAX, false)));
            self.left -= count;
            match count == 0 && self.fails {
                true => Err(TraceError::new("t", None, Place::default(), "it is torn")),
                false => Ok(count as usize),
            }
        }

        fn len_hint(&self) -> Option<u64> {
            Some(self.left)
        }
    }

    fn counting(accesses: u64, fails: bool) -> Ahead {
        Ahead::new(Box::new(Counting { left: accesses, fails }))
    }

    #[test]
    fn all_accesses_come_in_order_however_they_are_taken() {
        for (accesses, most) in [(0, 7), (1, 7), (300_000, 70_000), (300_000, 1 << 16), (1 << 17, usize::MAX)]
        {
            let mut ahead = counting(accesses, false);
            assert_eq!(ahead.len_hint(), Some(accesses));
            let mut pages = Vec::new();
            while ahead.fill(&mut pages, most).unwrap() > 0 {}
            assert!(
                pages.iter().map(|access| access.page()).eq((1..=accesses).rev()),
                "{accesses} by {most}"
            );
            assert_eq!(ahead.fill(&mut pages, most).unwrap(), 0, "and then no more");
        }
    }

    #[test]
    fn an_error_comes_after_what_was_read_before_it() {
        let mut ahead = counting(100_000, true);
        let mut pages = Vec::new();
        assert_eq!(ahead.fill(&mut pages, 100_000).unwrap(), 100_000);
        assert_eq!(ahead.fill(&mut pages, 1).unwrap_err().reason(), "it is torn");
        assert_eq!(ahead.fill(&mut pages, 1).unwrap(), 0);
    }

    #[test]
    fn who_stops_taking_ends_the_reading() {
        let mut ahead = counting(u64::MAX, false);
        assert_eq!(ahead.fill(&mut Vec::new(), 10).unwrap(), 10);
        drop(ahead);
    }
}
