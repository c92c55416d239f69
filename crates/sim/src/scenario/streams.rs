//! Streams of accesses: a task's one stream is made of the workloads and traces of its objects.
//!
//! ```text
//!   object 0   pattern ───────────────────── share 3 ──┐
//!   object 1   (parts of a pattern go there)           ├──▶ the task's stream: each access from one of them, drawn by
//!   object 2   trace, objects renumbered ─── share 1 ──┘    share, until all have ended
//! ```
//! If an object is accessed by calls of several pages, the workload generates calls, and the pages of a call follow each other.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pageout_workload::generator::{Limited, ZipfTables};
use pageout_workload::rng::SplitMix64;
use pageout_workload::trace::Packed;
use pageout_workload::{Access, AccessStream, Pattern, ReadOptions, TraceError, trace};

use crate::StreamSource;
use crate::calls::{Calls, Pages};

/// What an object's accesses come from, ready to be made as often as the task loops.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// Number of the object among the task's; a trace's object k is the task's object `object` + k.
    pub(super) object: u32,
    /// Relative to the task's other origins.
    pub(super) share: u32,
    /// Writes are made as reads.
    pub(super) read_only: bool,
    /// A generator or a file.
    pub(super) kind: OriginKind,
}

#[derive(Debug, Clone)]
pub(super) enum OriginKind {
    /// A pattern that was found valid for its object.
    Pattern(Pattern),
    /// A trace, read as it is replayed.
    Trace(PathBuf, Box<ReadOptions>),
    /// A trace that has been read.
    InMemory(Packed),
}

/// The stream of one loop of a task. Different `seed`s give different random choices. In objects for which `write_first` has a size in pages, the
/// first access to each page writes.
pub(super) fn stream(
    origins: &[Origin],
    write_first: &[Option<u64>],
    seed: u64,
    tables: &ZipfTables,
) -> Result<Box<dyn AccessStream>, TraceError> {
    let stream = shared(origins, seed, tables)?;
    if write_first.iter().all(Option::is_none) {
        return Ok(stream);
    }
    let touched = write_first.iter().map(|pages| Touched::new(pages.unwrap_or(0))).collect();
    Ok(Box::new(WriteFirst { stream, touched }))
}

fn shared(origins: &[Origin], seed: u64, tables: &ZipfTables) -> Result<Box<dyn AccessStream>, TraceError> {
    let mut parts = Vec::new();
    for (index, origin) in origins.iter().enumerate() {
        let stream = match &origin.kind {
            OriginKind::Pattern(pattern) => {
                let seed = SplitMix64::derive_seed(seed, index as u64);
                pattern
                    .stream_of(origin.object, seed, tables)
                    .expect("the pattern was checked with the scenario")
            }
            OriginKind::Trace(path, options) => trace::open_ahead(path, options)?,
            OriginKind::InMemory(packed) => Box::new(packed.stream()),
        };
        let shift = if matches!(origin.kind, OriginKind::Pattern(_)) { 0 } else { origin.object };
        let stream = if shift > 0 || origin.read_only {
            Box::new(Adjusted { stream, shift, read_only: origin.read_only }) as Box<dyn AccessStream>
        } else {
            stream
        };
        parts.push(Part { stream, share: origin.share.into(), chunk: Vec::new(), next: 0 });
    }
    if parts.len() == 1 {
        return Ok(parts.remove(0).stream);
    }
    // A seed of its own, so that which object is next does not follow from what is accessed in it.
    Ok(Box::new(Shared { parts, rng: SplitMix64::new(SplitMix64::derive_seed(seed, u64::MAX)) }))
}

/// The sources of `workers` that process the accesses of one source in turn. Each gets the next access when it asks, so the simulated order of
/// requests is the order of the stream.
pub(super) fn in_turn(source: StreamSource, workers: u32) -> Vec<StreamSource> {
    if workers == 1 {
        return vec![source];
    }
    let rounds = Arc::new(Mutex::new(Rounds { source, begun: None }));
    let worker = |_| {
        let rounds = Arc::clone(&rounds);
        let source: StreamSource = Box::new(move |turn| {
            let mut rounds = rounds.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(Box::new(InTurn { queue: rounds.queue(turn)? }))
        });
        source
    };
    (0..workers).map(worker).collect()
}

/// The loops of a source that several workers go through together.
struct Rounds {
    source: StreamSource,
    /// The last loop that was begun.
    begun: Option<(u32, Arc<Mutex<Queue>>)>,
}

impl Rounds {
    fn queue(&mut self, turn: u32) -> Result<Arc<Mutex<Queue>>, TraceError> {
        match &self.begun {
            Some((begun, queue)) if *begun >= turn => Ok(Arc::clone(queue)),
            _ => {
                let queue = Queue { stream: (self.source)(turn)?, chunk: Vec::new(), next: 0 };
                let queue = Arc::new(Mutex::new(queue));
                self.begun = Some((turn, Arc::clone(&queue)));
                Ok(queue)
            }
        }
    }
}

struct Queue {
    stream: Box<dyn AccessStream>,
    chunk: Vec<Access>,
    next: usize,
}

/// A worker's end of a queue.
struct InTurn {
    queue: Arc<Mutex<Queue>>,
}

impl AccessStream for InTurn {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Queue { stream, chunk, next } = &mut *queue;
        if *next == chunk.len() {
            chunk.clear();
            *next = 0;
            stream.fill(chunk, CHUNK)?;
        }
        // One at a time: what a worker takes ahead, no other can have while it waits.
        let taken = chunk.get(*next).filter(|_| max > 0);
        out.extend(taken);
        *next += usize::from(taken.is_some());
        Ok(usize::from(taken.is_some()))
    }

    fn len_hint(&self) -> Option<u64> {
        None
    }
}

/// A source of accesses to pages out of one of requests, at most so many in a loop.
pub(super) fn calls(mut source: StreamSource, calls: &[Calls], ops: Option<u64>) -> StreamSource {
    let calls = calls.iter().any(|calls| calls.pages > 1).then(|| calls.to_vec());
    if calls.is_none() && ops.is_none() {
        return source;
    }
    Box::new(move |turn| {
        let requests = source(turn)?;
        let stream = match &calls {
            Some(calls) => Box::new(Pages::new(requests, calls.clone())) as Box<dyn AccessStream>,
            None => requests,
        };
        Ok(match ops {
            Some(ops) => Box::new(Limited::new(stream, ops)),
            None => stream,
        })
    })
}

/// A stream with its objects renumbered, or its writes made reads.
struct Adjusted {
    stream: Box<dyn AccessStream>,
    shift: u32,
    read_only: bool,
}

impl AccessStream for Adjusted {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let start = out.len();
        let result = self.stream.fill(out, max);
        if self.shift == 0 {
            out[start..].iter_mut().for_each(|access| *access = access.as_read());
            return result;
        }
        for access in &mut out[start..] {
            // Objects beyond what an access can hold stay distinct from all the task has, which is what matters.
            let object = (access.object() + self.shift).min(Access::OBJECTS_MAX - 1);
            *access = Access::new(object, access.page(), access.is_write() && !self.read_only);
        }
        result
    }

    fn len_hint(&self) -> Option<u64> {
        self.stream.len_hint()
    }
}

/// A stream in which the first access to a page writes. Reading anonymous memory that was never written only maps the zero
/// page, which takes no memory; what real programs read they have written before.
struct WriteFirst {
    stream: Box<dyn AccessStream>,
    /// By object; of no pages for objects that it does not concern.
    touched: Vec<Touched>,
}

impl AccessStream for WriteFirst {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let start = out.len();
        let result = self.stream.fill(out, max);
        for access in &mut out[start..] {
            let touched = self.touched.get_mut(access.object() as usize);
            if touched.is_some_and(|touched| touched.is_first(access.page())) {
                *access = Access::new(access.object(), access.page(), true);
            }
        }
        result
    }

    fn len_hint(&self) -> Option<u64> {
        self.stream.len_hint()
    }
}

/// A bit a page, in pieces that appear when something in them is touched: mappings may be far larger than what is used.
struct Touched {
    pieces: Vec<Box<[u64]>>,
}

impl Touched {
    const PIECE_PAGES: u64 = 1 << 18;

    fn new(pages: u64) -> Touched {
        Touched { pieces: vec![Box::default(); pages.div_ceil(Touched::PIECE_PAGES) as usize] }
    }

    /// Returns true if `page` was not touched before; now it is. Never for pages beyond the object's end.
    fn is_first(&mut self, page: u64) -> bool {
        let Some(piece) = self.pieces.get_mut((page / Touched::PIECE_PAGES) as usize) else { return false };
        if piece.is_empty() {
            *piece = vec![0; (Touched::PIECE_PAGES / 64) as usize].into_boxed_slice();
        }
        let (word, bit) = ((page % Touched::PIECE_PAGES / 64) as usize, 1 << (page % 64));
        let is_first = piece[word] & bit == 0;
        piece[word] |= bit;
        is_first
    }
}

struct Part {
    stream: Box<dyn AccessStream>,
    share: u64,
    chunk: Vec<Access>,
    next: usize,
}

const CHUNK: usize = 1024;

/// Several streams, each access drawn from one of them.
struct Shared {
    parts: Vec<Part>,
    rng: SplitMix64,
}

impl Shared {
    /// Gives every part something to draw from, and drops those that have ended.
    fn refill(&mut self) -> Result<(), TraceError> {
        let mut index = 0;
        while index < self.parts.len() {
            let part = &mut self.parts[index];
            if part.next == part.chunk.len() {
                part.chunk.clear();
                part.next = 0;
                if part.stream.fill(&mut part.chunk, CHUNK)? == 0 {
                    self.parts.remove(index);
                    continue;
                }
            }
            index += 1;
        }
        Ok(())
    }
}

impl AccessStream for Shared {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        self.refill()?;
        let mut filled = 0;
        while filled < max && !self.parts.is_empty() {
            let sum: u64 = self.parts.iter().map(|part| part.share).sum();
            let mut draw = self.rng.below(sum);
            let index = self.parts.iter().position(|part| {
                let is_drawn = draw < part.share;
                draw = draw.saturating_sub(part.share);
                is_drawn
            });
            let part = &mut self.parts[index.expect("the draw is below the sum of the shares")];
            out.push(part.chunk[part.next]);
            part.next += 1;
            filled += 1;
            if part.next == part.chunk.len() {
                self.refill()?;
            }
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.stream.len_hint()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequential(object: u32, pages: u64, share: u32) -> Origin {
        let pattern =
            serde_json::from_str(&format!(r#"{{"pattern": "sequential", "pages": {pages}}}"#)).unwrap();
        Origin { object, share, read_only: false, kind: OriginKind::Pattern(pattern) }
    }

    fn drain(origins: &[Origin], seed: u64) -> Vec<Access> {
        let mut stream = stream(origins, &[], seed, &ZipfTables::default()).unwrap();
        let mut out = Vec::new();
        while stream.fill(&mut out, 100).unwrap() > 0 {}
        out
    }

    #[test]
    fn objects_are_drawn_by_their_shares_and_none_is_lost() {
        let origins = [sequential(0, 3000, 3), sequential(2, 3000, 1)];
        let accesses = drain(&origins, 1);
        assert_eq!(accesses.len(), 6000);
        let first = accesses[..2000].iter().filter(|access| access.object() == 0).count();
        assert!((1400..1600).contains(&first), "{first}");
        let pages: Vec<u64> =
            accesses.iter().filter(|access| access.object() == 2).map(|access| access.page()).collect();
        assert!(pages.into_iter().eq(0..3000), "each stream keeps its order");
    }

    #[test]
    fn equal_seeds_give_equal_streams_and_others_do_not() {
        let origins = [sequential(0, 300, 1), sequential(1, 300, 1)];
        assert_eq!(drain(&origins, 1), drain(&origins, 1));
        assert_ne!(drain(&origins, 1), drain(&origins, 2));
    }

    #[test]
    fn a_read_only_origin_writes_nothing() {
        let pattern = serde_json::from_str(r#"{"pattern": "fill", "pages": 10}"#).unwrap();
        let origin = Origin { object: 0, share: 1, read_only: true, kind: OriginKind::Pattern(pattern) };
        assert!(drain(&[origin], 1).iter().all(|access| !access.is_write()));
    }

    #[test]
    fn the_first_access_to_a_page_writes_where_it_is_to() {
        let origins = [Origin { share: 1, ..sequential(0, 100, 1) }, sequential(1, 100, 1)];
        let mut stream = stream(&origins, &[Some(100), None], 1, &ZipfTables::default()).unwrap();
        let mut out = Vec::new();
        while stream.fill(&mut out, 64).unwrap() > 0 {}
        assert!(out.iter().all(|access| access.is_write() == (access.object() == 0)));
    }
}
