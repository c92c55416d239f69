//! A trace with accesses among its own that no event told, without those behind the ends of files, and calls on files where they were between its
//! accesses.

use std::path::Path;

use pageout_workload::trace::{self, Loaded, PlacedCall};
use pageout_workload::{Access, AccessStream, ReadOptions, TraceError};

/// The accesses of the trace with `more` inserted, in memory, and the calls on files with their new places. Each entry of `more` has the
/// number of trace accesses before it, in order. For each object the number of its pages is used, if known: a reader at the end of a file
/// asks for pages beyond it.
pub(super) fn woven(
    accesses: &Path,
    more: &[(u64, Access)],
    pages: &[Option<u64>],
    calls: &[PlacedCall],
) -> Result<(Loaded, Vec<PlacedCall>), TraceError> {
    let inner = trace::open(accesses, &ReadOptions::default())?;
    let (chunk, moved) = (Vec::new(), Vec::new());
    let mut woven = Woven { inner, chunk, at: 0, made: 0, more, pages, calls, moved };
    let loaded = trace::keep(&mut woven)?;
    let left = woven.calls.iter().map(|call| PlacedCall { access: woven.made, ..*call });
    let moved = woven.moved.iter().copied().chain(left).collect();
    Ok((loaded, moved))
}

/// A trace with accesses among its own.
struct Woven<'a> {
    inner: Box<dyn AccessStream>,
    chunk: Vec<Access>,
    /// Accesses of the trace so far,
    at: u64,
    /// and given out.
    made: u64,
    more: &'a [(u64, Access)],
    pages: &'a [Option<u64>],
    calls: &'a [PlacedCall],
    moved: Vec<PlacedCall>,
}

impl AccessStream for Woven<'_> {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let before = out.len();
        // All pages of a piece can be beyond the ends of files.
        while out.len() == before {
            self.chunk.clear();
            if self.inner.fill(&mut self.chunk, max)? == 0 {
                break;
            }
            for &access in &self.chunk {
                while let Some((&(_, access), rest)) =
                    self.more.split_first().filter(|((place, _), _)| *place <= self.at)
                {
                    out.push(access);
                    self.made += 1;
                    self.more = rest;
                }
                while let Some((call, rest)) =
                    self.calls.split_first().filter(|(call, _)| call.access <= self.at)
                {
                    self.moved.push(PlacedCall { access: self.made, ..*call });
                    self.calls = rest;
                }
                self.at += 1;
                let end = self.pages.get(access.object() as usize).copied().flatten();
                if end.is_none_or(|end| access.page() < end) {
                    out.push(access);
                    self.made += 1;
                }
            }
        }
        Ok(out.len() - before)
    }

    fn len_hint(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_stay_between_the_accesses_that_they_were_between() {
        use pageout_workload::InMemory;
        use pageout_workload::trace::FileCall;
        let access = |page| Access::new(0, page, false);
        let of_trace: Vec<Access> = [0, 1, 2, 9, 4].map(access).to_vec();
        let more = [(1, access(5)), (2, access(6)), (2, access(7))];
        let calls = [0, 2, 4, 5].map(|access| PlacedCall { access, object: 0, call: FileCall::Sync });
        let mut woven = Woven {
            inner: Box::new(InMemory::new(of_trace.into())),
            chunk: Vec::new(),
            at: 0,
            made: 0,
            more: &more,
            // Page 9 is behind the end.
            pages: &[Some(8)],
            calls: &calls,
            moved: Vec::new(),
        };
        let mut out = Vec::new();
        while woven.fill(&mut out, 2).unwrap() > 0 {}
        assert_eq!(out.iter().map(|access| access.page()).collect::<Vec<_>>(), [0, 5, 1, 6, 7, 2, 4]);
        assert_eq!(woven.moved.iter().map(|call| call.access).collect::<Vec<_>>(), [0, 5, 6]);
        assert_eq!(woven.calls.len(), 1, "the last is behind all");
    }
}
