//! From pages to accesses: a leaf pattern only says which page comes next; here its accesses are counted, get their object, and
//! some of them become writes.

use super::writes::Writes;
use crate::trace::TraceError;
use crate::{Access, AccessStream};

/// Yields pages without end. One method suffices; a generator that is quicker in batches has its own `append`.
pub(super) trait PageGenerator: Send {
    /// The next page.
    fn next_page(&mut self) -> u64;

    /// Appends `count` reads of `object`.
    fn append(&mut self, object: u32, count: usize, out: &mut Vec<Access>) {
        out.extend((0..count).map(|_| Access::new(object, self.next_page(), false)));
    }
}

/// `ops` accesses of a page generator.
pub(super) struct Paged<G> {
    generator: G,
    object: u32,
    ops: u64,
    ops_left: u64,
    writes: Writes,
}

impl<G: PageGenerator> Paged<G> {
    pub(super) fn new(generator: G, object: u32, ops: u64, writes: Writes) -> Paged<G> {
        Paged { generator, object, ops, ops_left: ops, writes }
    }
}

impl<G: PageGenerator> AccessStream for Paged<G> {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let count = usize::try_from(self.ops_left).unwrap_or(usize::MAX).min(max);
        let start = out.len();
        self.generator.append(self.object, count, out);
        self.writes.apply(&mut out[start..]);
        self.ops_left -= count as u64;
        Ok(count)
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.ops)
    }
}
