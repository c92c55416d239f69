//! Sizes of read(2) and write(2) calls: from requests to the pages of each, and from a page to the pages that its call still wants.
//!
//! ```text
//!   request 2 of calls of 4 pages   ──▶   pages 8, 9, 10, 11       each an access of its own, which wants 4, 3, 2, 1 pages
//! ```
//! Generated calls begin at multiples of their size, as block-sized I/O does. So the position of a page shows how much its call still needs, and accesses need
//! not carry it. Readahead uses it. Recorded calls say themselves which pages are theirs, before the first of their accesses.

use std::ops::Range;

use pageout_engine::{self as engine, ObjectId, PAGE_SIZE};
use pageout_workload::trace::FileCall;
use pageout_workload::{Access, AccessStream, TraceError};

use crate::task::decode;

/// The calls that an object is accessed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calls {
    /// Pages of each; at least 1, and below 2^20, so that bytes fit an access.
    pub pages: u32,
    /// Pages of the object, where the last call ends.
    pub end: u64,
    /// The first page of the current call, if it is a recorded one. Then `end` is where it ends.
    pub first: u64,
    /// Bytes of the first page of a recorded call before it, and of its last page behind it.
    pub outside: [u16; 2],
}

impl Calls {
    /// Each page is accessed by itself.
    pub const SINGLE: Calls = Calls::of(1, u64::MAX);

    /// So many pages by each call, up to the end of the object.
    pub const fn of(pages: u32, end: u64) -> Calls {
        Calls { pages, end, first: 0, outside: [0; 2] }
    }

    /// A recorded call. Other accesses are single pages.
    pub(crate) fn recorded(call: FileCall) -> Calls {
        let bytes = |byte: u64| (byte % PAGE_SIZE) as u16;
        match call {
            FileCall::Read { first, end } => Calls { first, ..Calls::of(u32::MAX, end) },
            FileCall::Write { from, to } => {
                let end = to.div_ceil(PAGE_SIZE);
                let outside = [bytes(from), (end * PAGE_SIZE - to) as u16];
                Calls { first: from / PAGE_SIZE, outside, ..Calls::of(u32::MAX, end) }
            }
            _ => Calls::SINGLE,
        }
    }

    /// The pages of a request.
    fn pages_of(self, request: u64) -> Range<u64> {
        let start = request.saturating_mul(self.pages.into());
        start..start.saturating_add(self.pages.into()).min(self.end)
    }

    /// Bytes that the call of this page needs from there on.
    #[inline]
    fn wanted(self, page: u64) -> u32 {
        if self.pages == u32::MAX {
            return self.wanted_of_recorded(page);
        }
        let size = u64::from(self.pages);
        let left = (size - page % size).min(self.end.saturating_sub(page).max(1));
        (left * PAGE_SIZE) as u32
    }

    #[cold]
    fn wanted_of_recorded(self, page: u64) -> u32 {
        match (self.first..self.end).contains(&page) {
            true => ((self.end - page).min(PAGES_MAX) * PAGE_SIZE) as u32 - u32::from(self.outside[1]),
            false => PAGE_SIZE as u32,
        }
    }
}

/// Pages of the longest call.
const PAGES_MAX: u64 = (1 << 20) - 1;

/// An access in the engine's terms, of a task whose objects are accessed by these calls.
#[inline]
pub(crate) fn decode_call(access: Access, calls: &[Calls]) -> engine::Access {
    let ObjectId(object) = decode(access).object;
    let calls = calls.get(object as usize).copied().unwrap_or(Calls::SINGLE);
    let offset = if access.page() == calls.first { calls.outside[0] } else { 0 };
    engine::Access { wanted: calls.wanted(access.page()), offset, ..decode(access) }
}

/// Requests taken from a stream at a time.
const CHUNK: usize = 1024;

/// A stream of requests as one of accesses to their pages. If an object is accessed by single pages, the two are the same.
pub(crate) struct Pages<S> {
    requests: S,
    /// The calls, by object.
    calls: Vec<Calls>,
    chunk: Vec<Access>,
    next: usize,
    /// The current request, and its remaining pages.
    request: Access,
    left: Range<u64>,
}

impl<S: AccessStream> Pages<S> {
    pub(crate) fn new(requests: S, calls: Vec<Calls>) -> Pages<S> {
        Pages { requests, calls, chunk: Vec::new(), next: 0, request: Access::new(0, 0, false), left: 0..0 }
    }

    /// Begins the next request; false if there is none.
    fn begin(&mut self) -> Result<bool, TraceError> {
        if self.next == self.chunk.len() {
            self.chunk.clear();
            self.next = 0;
            if self.requests.fill(&mut self.chunk, CHUNK)? == 0 {
                return Ok(false);
            }
        }
        self.request = self.chunk[self.next];
        self.next += 1;
        let calls = self.calls.get(self.request.object() as usize).copied().unwrap_or(Calls::SINGLE);
        self.left = calls.pages_of(self.request.page());
        Ok(true)
    }
}

impl<S: AccessStream> AccessStream for Pages<S> {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < max {
            let Some(page) = self.left.next() else {
                // Available accesses are returned before more are requested: the rest of a request need not wait for the next.
                if (filled > 0 && self.next == self.chunk.len()) || !self.begin()? {
                    break;
                }
                continue;
            };
            out.push(Access::new(self.request.object(), page, self.request.is_write()));
            filled += 1;
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        let (first, rest) = self.calls.split_first()?;
        let is_uniform = rest.iter().all(|calls| calls.pages == first.pages);
        let requests = self.requests.len_hint().filter(|_| is_uniform)?;
        Some(requests * u64::from(first.pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_workload::Pattern;

    fn sequential(requests: u64) -> Box<dyn AccessStream> {
        let text = format!(r#"{{"pattern": "sequential", "pages": {requests}}}"#);
        serde_json::from_str::<Pattern>(&text).unwrap().stream(0, 1).unwrap()
    }

    #[test]
    fn requests_become_their_pages_in_order_up_to_the_end_of_the_object() {
        for max in [1, 3, 100_000] {
            let mut stream = Pages::new(sequential(2_000), vec![Calls::of(4, 7_998)]);
            let mut out = Vec::new();
            while stream.fill(&mut out, max).unwrap() > 0 {}
            assert!(out.iter().map(|access| access.page()).eq(0..7_998), "{max} at a time");
        }
    }

    #[test]
    fn a_page_tells_what_its_call_still_wants() {
        let calls = [Calls::of(4, 10)];
        let wanted = |page| decode_call(Access::new(0, page, false), &calls).wanted / PAGE_SIZE as u32;
        assert_eq!((0..10).map(wanted).collect::<Vec<_>>(), [4, 3, 2, 1, 4, 3, 2, 1, 2, 1]);
        assert_eq!(decode_call(Access::new(1, 3, false), &calls).wanted, PAGE_SIZE as u32, "others: a page");
    }

    #[test]
    fn recorded_call_has_the_pages_that_it_names() {
        let wanted = |call, page| {
            let engine::Access { wanted, offset, .. } =
                decode_call(Access::new(0, page, false), &[Calls::recorded(call)]);
            (wanted, offset)
        };
        let read = FileCall::Read { first: 6, end: 9 };
        assert_eq!([5, 6, 8, 9].map(|page| wanted(read, page).0 / PAGE_SIZE as u32), [1, 3, 1, 1]);
        let write = FileCall::Write { from: 4100, to: 12_300 };
        assert_eq!([0, 1, 2, 3].map(|page| wanted(write, page)), [(4096, 0), (8204, 4), (4108, 0), (12, 0)]);
    }
}
